/* unit_base.c - the floor: first errors, quoting, checked memory, the sticky buffer. */
#include "../src/base.h"

#include "unit.h"

static void check_first_error_stays(void) {
  bpe_error e = {.status = BPE_OK};
  CHECK_EQ_INT(set_error(&e, BPE_BADTEXT, 7, "bad %s", "thing"), BPE_BADTEXT);
  CHECK(unit_says(&e, BPE_BADTEXT, 7, "bad thing"));
  CHECK_EQ_INT(set_error(&e, BPE_MISUSE, 8, "later"), BPE_MISUSE);
  CHECK(unit_says(&e, BPE_BADTEXT, 7, "bad thing"));
  CHECK_EQ_INT(set_nomem(&e), BPE_NOMEM);
  CHECK(unit_says(&e, BPE_BADTEXT, 7, "bad thing"));
  CHECK_EQ_INT(set_error(NULL, BPE_TOOBIG, 0, "unheard"), BPE_TOOBIG);
  e = (bpe_error){.status = BPE_OK};
  CHECK_EQ_INT(set_nomem(&e), BPE_NOMEM);
  CHECK(unit_says(&e, BPE_NOMEM, 0, "out of memory"));
}

/* A text that is too long is cut between characters, wherever they fall. */
static void check_long_error(void) {
  static const char *const characters[] = {"x", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\x9f\x98\x80"};
  for (size_t k = 0; k < 4; k++) {
    for (size_t shift = 0; shift < 4; shift++) {
      char text[600] = "";
      for (size_t i = 0; i < shift; i++) strcat(text, "-");
      while (strlen(text) < 400) strcat(text, characters[k]);
      bpe_error e = {.status = BPE_OK};
      set_error(&e, BPE_MISUSE, 0, "%s", text);
      const size_t n = strlen(e.text);
      CHECK(n < sizeof e.text && n > sizeof e.text - 8);
      CHECK(bpe_utf8_valid(e.text, n));
      CHECK(memcmp(e.text, text, n) == 0);
    }
  }
  char fits[256];
  memset(fits, 'y', 255);
  fits[255] = 0;
  bpe_error e = {.status = BPE_OK};
  set_error(&e, BPE_MISUSE, 0, "%s", fits);
  CHECK_BYTES(e.text, strlen(e.text), fits, 255);
}

static bool quotes_as(const char *bytes, size_t len, const char *expected) {
  quoted q;
  const char *text = quote_bytes(&q, bytes, len);
  return CHECK_BYTES(text, strlen(text), expected, strlen(expected));
}

static void check_quoting(void) {
  quotes_as("", 0, "");
  quotes_as("plain text", 10, "plain text");
  quotes_as("a\0b", 3, "a\\x00b");
  quotes_as("\n\t\x1b\x7f", 4, "\\x0a\\x09\\x1b\\x7f");
  quotes_as("\xe4\xb8\xad", 3, "\xe4\xb8\xad");
  quotes_as("\xe4\xb8", 2, "\\xe4\\xb8");
  quotes_as("\xff" "a\xc0\x80", 4, "\\xffa\\xc0\\x80");
  for (size_t len = 0; len < 300; len++) { /* whatever is given, a short line of UTF-8 comes out */
    uint8_t bytes[300];
    for (size_t i = 0; i < len; i++) bytes[i] = (uint8_t)unit_below(256);
    quoted q;
    const char *text = quote_bytes(&q, bytes, len);
    const size_t n = strlen(text);
    CHECK(n < sizeof q.text && bpe_utf8_valid(text, n));
    CHECK(len < 80 || strcmp(text + n - 3, "...") == 0);
    for (size_t i = 0; i < n; i++)
      if (!CHECK((uint8_t)text[i] >= 0x20 && text[i] != 0x7f)) return;
  }
}

static void check_memory(void) {
  uint8_t *p = mem_new(&unit_alloc, 0, 8);
  CHECK(p != NULL);
  mem_free(&unit_alloc, p);
  mem_free(&unit_alloc, NULL);
  CHECK(mem_new(&unit_alloc, SIZE_MAX, 2) == NULL);
  CHECK(mem_new(&unit_alloc, SIZE_MAX / 2 + 1, 2) == NULL);
  CHECK(mem_zero(&unit_alloc, SIZE_MAX / 4, 8) == NULL);
  p = mem_zero(&unit_alloc, 3, 5);
  if (!CHECK(p != NULL)) return;
  for (size_t i = 0; i < 15; i++) CHECK_EQ_INT(p[i], 0);
  mem_free(&unit_alloc, p);
  CHECK_EQ_INT(unit_memory.blocks, 0);
}

static void check_growth(void) {
  uint16_t *list = NULL;
  size_t cap = 0, n = 0;
  unit_fail(0, false);
  while (n < 5000) {
    if (!CHECK(mem_grow(&unit_alloc, (void **)&list, &cap, n + 1, sizeof *list))) break;
    CHECK(cap > n);
    list[n] = (uint16_t)n;
    n++;
  }
  CHECK(unit_memory.requests < 25); /* so growth is geometric */
  const size_t before = cap;
  unit_fail(1, false);
  CHECK(!mem_grow(&unit_alloc, (void **)&list, &cap, cap + 1, sizeof *list));
  CHECK_EQ_INT(cap, before);
  CHECK(!mem_grow(&unit_alloc, (void **)&list, &cap, SIZE_MAX, sizeof *list));
  CHECK(!mem_grow(&unit_alloc, (void **)&list, &cap, SIZE_MAX / 2 + 1, sizeof *list));
  CHECK_EQ_INT(cap, before);
  CHECK(mem_grow(&unit_alloc, (void **)&list, &cap, cap, sizeof *list));
  CHECK_EQ_INT(cap, before);
  bool same = true;
  for (size_t i = 0; i < n; i++) same = same && list[i] == i;
  CHECK(same);
  mem_free(&unit_alloc, list);
}

static void check_sizes(void) {
  size_t sum;
  CHECK(size_add(2, 3, &sum) && sum == 5);
  CHECK(size_add(SIZE_MAX, 0, &sum) && sum == SIZE_MAX);
  CHECK(!size_add(SIZE_MAX, 1, &sum));
  CHECK_EQ_INT(power_of_two(0, 16), 16);
  CHECK_EQ_INT(power_of_two(16, 16), 16);
  CHECK_EQ_INT(power_of_two(17, 16), 32);
  CHECK_EQ_INT(power_of_two(1000, 1), 1024);
  CHECK(power_of_two(SIZE_MAX / 2 + 1, 2) == SIZE_MAX / 2 + 1);
  CHECK_EQ_INT(power_of_two(SIZE_MAX / 2 + 2, 2), 0);
  CHECK_EQ_INT(power_of_two(SIZE_MAX, 2), 0);
}

static void check_buffer(void) {
  bpe_buffer b;
  bpe_buffer_init(&b, &unit_alloc, 0);
  bpe_buffer_append(&b, NULL, 0);
  CHECK_EQ_INT(b.len, 0);
  bpe_buffer_append(&b, "ids ", 4);
  bpe_buffer_append_decimal(&b, 0);
  bpe_buffer_append(&b, " ", 1);
  bpe_buffer_append_decimal(&b, 1000000007);
  bpe_buffer_append(&b, " ", 1);
  bpe_buffer_append_decimal(&b, UINT64_MAX);
  CHECK_BYTES(b.bytes, b.len, "ids 0 1000000007 18446744073709551615", 37);
  uint8_t *to = bpe_buffer_reserve(&b, 3);
  CHECK_EQ_INT(b.len, 37);
  if (CHECK(to != NULL)) memcpy(to, "!!!", 3);
  bpe_buffer_commit(&b, 2);
  CHECK_BYTES(b.bytes + 37, b.len - 37, "!!", 2);
  CHECK_EQ_INT(buffer_status(&b, NULL), BPE_OK);
  bpe_buffer_clear(&b);
  CHECK_EQ_INT(b.len, 0);
  bpe_buffer_append(&b, "again", 5);
  CHECK_BYTES(b.bytes, b.len, "again", 5);
  bpe_buffer_clear(&b);
}

static void check_buffer_limit(void) {
  bpe_buffer b;
  bpe_error e = {.status = BPE_OK};
  bpe_buffer_init(&b, &unit_alloc, 5);
  bpe_buffer_append(&b, "abc", 3);
  CHECK(bpe_buffer_reserve(&b, 100) != NULL); /* only what is committed counts */
  bpe_buffer_commit(&b, 2);
  CHECK_EQ_INT(b.status, BPE_OK);
  CHECK_EQ_INT(b.len, 5);
  bpe_buffer_append(&b, "", 0);
  CHECK_EQ_INT(b.status, BPE_OK);
  bpe_buffer_append(&b, "x", 1);
  CHECK_EQ_INT(b.status, BPE_TOOBIG);
  CHECK_EQ_INT(b.len, 5);
  CHECK(bpe_buffer_reserve(&b, 0) == NULL);
  bpe_buffer_append(&b, "", 0);
  bpe_buffer_append_decimal(&b, 1);
  CHECK_EQ_INT(b.len, 5);
  CHECK_EQ_INT(buffer_status(&b, &e), BPE_TOOBIG);
  CHECK(unit_says(&e, BPE_TOOBIG, 5, "result too big"));
  bpe_buffer_clear(&b);
  CHECK_EQ_INT(b.status, BPE_OK);
  CHECK_EQ_INT(b.limit, 5);
  bpe_buffer_append(&b, "123456", 6);
  CHECK_EQ_INT(b.status, BPE_TOOBIG);
  CHECK_EQ_INT(b.len, 0);
  bpe_buffer_clear(&b);
}

static void check_buffer_without_memory(void) {
  bpe_buffer b;
  bpe_error e = {.status = BPE_OK};
  bpe_buffer_init(&b, &unit_alloc, 0);
  bpe_buffer_append(&b, "abc", 3);
  unit_fail(1, false);
  CHECK(bpe_buffer_reserve(&b, 10000) == NULL);
  CHECK_EQ_INT(b.status, BPE_NOMEM);
  bpe_buffer_append(&b, "d", 1); /* there is memory again, but something is missing already */
  bpe_buffer_commit(&b, 1);
  CHECK_BYTES(b.bytes, b.len, "abc", 3);
  CHECK_EQ_INT(buffer_status(&b, &e), BPE_NOMEM);
  CHECK(unit_says(&e, BPE_NOMEM, 0, "out of memory"));
  bpe_buffer_clear(&b);
  bpe_buffer_append(&b, "ab", 2);
  CHECK(bpe_buffer_reserve(&b, SIZE_MAX) == NULL); /* does not even add up */
  CHECK_EQ_INT(b.status, BPE_NOMEM);
  CHECK_BYTES(b.bytes, b.len, "ab", 2);
  bpe_buffer_clear(&b);
}

/* ---- Pace ------------------------------------------------------------------------------------ */

typedef struct row {
  uint32_t key, place;
} row;

static int by_key(const void *a, const void *b) {
  const row *x = a, *y = b;
  return x->key < y->key ? -1 : x->key > y->key;
}

static int after_some(void *ctx) {
  return --*(int *)ctx < 0;
}

static bool is_sorted(const row *list, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (list[i - 1].key > list[i].key ||
        (list[i - 1].key == list[i].key && list[i - 1].place > list[i].place))
      return false;
  return true;
}

static void check_sort(void) {
  enum { N = 70000 };
  static row list[N];
  pace nobody = {.stop = NULL};
  for (size_t n = 0; n < N; n = n < 70 ? n + 1 : n * 3 + 1) {
    uint64_t sum = 0, sum_after = 0;
    for (size_t i = 0; i < n; i++) {
      list[i] = (row){unit_below(n < 100 ? 5 : 1000000), (uint32_t)i};
      sum += list[i].key + 3 * (uint64_t)i;
    }
    CHECK(pace_sort(&nobody, &unit_alloc, list, n, sizeof *list, by_key, NULL) == BPE_OK);
    for (size_t i = 0; i < n; i++) sum_after += list[i].key + 3 * (uint64_t)list[i].place;
    CHECK(is_sorted(list, n) && sum == sum_after);
  }
  int left = 3;
  bpe_error e = {.status = BPE_OK};
  pace p = {.stop = after_some, .ctx = &left};
  for (size_t i = 0; i < N; i++) list[i] = (row){unit_random(), (uint32_t)i};
  CHECK(pace_sort(&p, &unit_alloc, list, N, sizeof *list, by_key, &e) == BPE_STOPPED);
  CHECK(left == -1 && unit_says(&e, BPE_STOPPED, 0, "interrupted"));
  CHECK(pace_add(&p, 1, NULL) == BPE_STOPPED && left == -1); /* once stopped, always; asked no more */
  unit_fail(1, false);
  CHECK(pace_sort(&nobody, &unit_alloc, list, N, sizeof *list, by_key, NULL) == BPE_NOMEM);
  unit_fail(0, false);
}

static void check_copy(void) {
  enum { N = 3 << 20 };
  uint8_t *from = malloc(N), *to = calloc(N, 1);
  bpe_error e = {.status = BPE_OK};
  int left = 1;
  pace nobody = {.stop = NULL}, p = {.stop = after_some, .ctx = &left};
  if (!CHECK(from != NULL && to != NULL)) return;
  for (size_t i = 0; i < N; i++) from[i] = (uint8_t)(i * 7 >> 3);
  CHECK(pace_copy(&nobody, to, from, N, NULL) == BPE_OK && memcmp(from, to, N) == 0);
  CHECK(pace_copy(&p, to, from, N, &e) == BPE_STOPPED);
  uint8_t *zeros = pace_zero(&nobody, &unit_alloc, N, 1, NULL);
  size_t wrong = zeros == NULL;
  for (size_t i = 0; i < N && zeros != NULL; i++) wrong += zeros[i] != 0;
  CHECK_EQ_INT(wrong, 0);
  mem_free(&unit_alloc, zeros);
  left = 1;
  p = (pace){.stop = after_some, .ctx = &left};
  CHECK(pace_zero(&p, &unit_alloc, N, 1, &e) == NULL && p.stopped);
  free(from);
  free(to);
}

/* ---- JSON in parts --------------------------------------------------------------------------- */

static void check_json_part(void) {
  enum { N = 5000000 };
  char *text = malloc(N);
  if (!CHECK(text != NULL)) return;
  CHECK_EQ_INT(bpe_json_part("[1,2]", 5, 0), 5);
  for (size_t i = 0; i < N; i++) text[i] = "\"a,\\\"b\", "[i % 9]; /* "a,\"b", */
  size_t parts = 0, wrong = 0;
  for (size_t at = 0, to; at < N; at = to, parts++) {
    to = bpe_json_part(text, N, at);
    if (!CHECK(to > at)) break;
    wrong += to != N && (to % 9 == 0 ? 0 : to % 9 != 8); /* behind the comma or the blank */
    wrong += to - at > (1 << 16) + 9;
  }
  CHECK(wrong == 0 && parts > 60);
  memset(text, 'x', N);
  CHECK_EQ_INT(bpe_json_part(text, N, 0), 0); /* a word */
  text[0] = '"';
  CHECK_EQ_INT(bpe_json_part(text, N, 0), 0); /* a string */
  CHECK_EQ_INT(bpe_json_part(text, BPE_JSON_LONGEST, 0), BPE_JSON_LONGEST); /* that has no end */
  text[BPE_JSON_LONGEST - 1] = '"';
  CHECK(bpe_json_part(text, BPE_JSON_LONGEST + 2, 0) == BPE_JSON_LONGEST + 2);
  memset(text, ' ', N);
  CHECK(bpe_json_part(text, N, 0) <= 1 << 16);
  free(text);
}

int main(void) {
  check_sort();
  check_copy();
  check_json_part();
  check_first_error_stays();
  check_long_error();
  check_quoting();
  check_memory();
  check_growth();
  check_sizes();
  check_buffer();
  check_buffer_limit();
  check_buffer_without_memory();
  return unit_summary();
}
