/* test.h - checks and the summary line of the C tests.
**
**     int main(void) {
**       CHECK_EQ_INT(n_ids, 3);                                   // actual, expected
**       CHECK_BYTES(out, out_len, "ab", 2);
**       return test_summary();                                    // "3 passed, 0 failed"
**     }
**
** A check evaluates each argument once, returns whether it held, and never stops the program, so
** `if (!CHECK(p)) return;` guards what follows. A program without any check fails.
*/
#ifndef TEST_H
#define TEST_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static unsigned long test_passed, test_failed;

#define CHECK(cond) test_check((cond) ? true : false, __FILE__, __LINE__, #cond)
#define CHECK_EQ_INT(actual, expected) \
  test_equal((long long)(actual), (long long)(expected), __FILE__, __LINE__, #actual)
#define CHECK_BYTES(actual, actual_len, expected, expected_len) \
  test_bytes((actual), (actual_len), (expected), (expected_len), __FILE__, __LINE__, #actual)

static inline bool test_check(bool held, const char *file, int line, const char *what) {
  if (held) test_passed++;
  else {
    test_failed++;
    printf("%s:%d: %s\n", file, line, what);
  }
  return held;
}

static inline bool test_equal(long long a, long long e, const char *file, int line,
                              const char *what) {
  if (!test_check(a == e, file, line, what)) printf("  is %lld, expected %lld\n", a, e);
  return a == e;
}

static inline bool test_bytes(const void *a, size_t a_len, const void *e, size_t e_len,
                              const char *file, int line, const char *what) {
  const bool same = a_len == e_len && (a_len == 0 || memcmp(a, e, a_len) == 0);
  if (test_check(same, file, line, what)) return true;
  printf("  is %zu bytes:", a_len);
  for (size_t i = 0; i < a_len && i < 32; i++) printf(" %02x", ((const unsigned char *)a)[i]);
  printf("\n  expected %zu bytes:", e_len);
  for (size_t i = 0; i < e_len && i < 32; i++) printf(" %02x", ((const unsigned char *)e)[i]);
  printf("\n");
  return false;
}

static inline int test_summary(void) {
  printf("%lu passed, %lu failed\n", test_passed, test_failed);
  return test_failed != 0 || test_passed == 0;
}

#endif
