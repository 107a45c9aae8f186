/* unit_normalize.c - normal forms against utf8proc's own over whole texts, and the way back. */
#include "../src/normalize.h"

#include <time.h>
#include <utf8proc.h>

#include "unit.h"

#include <utf8proc.h>

#define T(s) (s), sizeof(s) - 1

static normal_text scratch;

static normalizer *form(const char *name) {
  normalizer *n = NULL;
  CHECK(normalizer_new(&unit_alloc, NULL, &n) == BPE_OK);
  if (name != NULL) CHECK(normalizer_add_form(n, name, strlen(name), NULL) == BPE_OK);
  return n;
}

/* Code points that meet: letters with marks of several classes, composed ones, jamo and syllables,
** compatibility characters, marks that come second in a pair but reorder nothing. */
static const uint32_t points[] = {
    'a',    'e',    ' ',    'x',    0xe9,    0xc5,    0x1e69,  0x212b,  0x300,   0x301,  0x323,
    0x327,  0x307,  0x345,  0x344,  0xf73,   0xf71,   0xf72,   0x1100,  0x1161,  0x11a8, 0xac00,
    0xac01, 0xd7a3, 0x304b, 0x3099, 0x304c,  0xff76,  0xff9e,  0xfb01,  0x2460,  0x33a5, 0xfdfa,
    0x9c7,  0x9be,  0x9d7,  0x2126, 0xf900,  0x4e2d,  0x1d15e, 0x1d165, 0x1f600, 0xa0,   0x5b4,
    0x5bc,  0xb94,  0xb92,  0xbd7,  0x1112e, 0x11127, 0x115bf};

static size_t random_text(uint8_t *out, size_t n) {
  size_t len = 0;
  for (size_t i = 0; i < n; i++)
    len += (size_t)utf8proc_encode_char(
        (utf8proc_int32_t)points[unit_below(sizeof points / sizeof *points)], out + len);
  return len;
}

/* Places come back in order, from 0 to len, both ends exact. */
static void check_places(size_t source_len) {
  size_t before = 0;
  bool rising = true;
  for (size_t i = 0; i <= scratch.len; i++) {
    const size_t at = normal_source(&scratch, i);
    rising = rising && at >= before && at <= source_len;
    before = at;
  }
  CHECK(rising && before == source_len);
}

static void test_forms(void) {
  static const struct {
    const char *name;
    int options;
  } rows[] = {{"nfc", UTF8PROC_STABLE | UTF8PROC_COMPOSE},
              {"nfd", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
              {"nfkc", UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
              {"nfkd", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};
  for (size_t r = 0; r < 4; r++) {
    normalizer *n = form(rows[r].name);
    for (int i = 0; i < 20000; i++) {
      uint8_t text[256], *expected = NULL;
      const size_t len = random_text(text, 1 + unit_below(12));
      const utf8proc_ssize_t m =
          utf8proc_map(text, (utf8proc_ssize_t)len, &expected, (utf8proc_option_t)rows[r].options);
      CHECK(normal_apply(&scratch, n, text, len, NULL) == BPE_OK);
      if (!CHECK_BYTES(scratch.text, scratch.len, expected, (size_t)m)) {
        printf("  %s of %.*s\n", rows[r].name, (int)len, (const char *)text);
        i = 20000;
      }
      CHECK(scratch.changed == ((size_t)m != len || memcmp(text, expected, len) != 0));
      check_places(len);
      free(expected);
    }
    normalizer_free(n);
  }
}

static void check(const normalizer *n, const char *source, size_t len, const char *expected,
                  size_t expected_len) {
  CHECK(normal_apply(&scratch, n, (const uint8_t *)source, len, NULL) == BPE_OK);
  CHECK_BYTES(scratch.text, scratch.len, expected, expected_len);
  check_places(len);
}

static void test_places(void) {
  normalizer *n = form("nfc");
  check(n, T("e\xcc\x81x"), T("\xc3\xa9x"));
  CHECK_EQ_INT(normal_source(&scratch, 0), 0);
  CHECK_EQ_INT(normal_source(&scratch, 1), 3); /* inside what was rewritten: its end */
  CHECK_EQ_INT(normal_source(&scratch, 2), 3);
  CHECK_EQ_INT(normal_source(&scratch, 0), 0); /* and back again */
  check(n,
        T("a\xff"
          "e\xcc\x81\xcc"),
        T("a\xff\xc3\xa9\xcc"));                    /* malformed bytes pass */
  check(n, T("e\xff\xcc\x81"), T("e\xff\xcc\x81")); /* and keep apart */
  check(n, T(""), T(""));
  CHECK(!scratch.changed && scratch.text != NULL);
  check(n, T("plain"), T("plain"));
  CHECK(!scratch.changed);
  normalizer_free(n);
}

static void test_strings(void) {
  bpe_buffer b;
  normalizer *n = form(NULL);
  CHECK(normalizer_steps(n) == 0 && normalizer_is_plain(n));
  CHECK(normalizer_add_prepend(n, " ", 1, NULL) == BPE_OK);
  CHECK(normalizer_add_replace(n, "\xe2\x96\x81", 3, " ", 1, NULL) == BPE_OK);
  CHECK(!normalizer_is_plain(n) && normalizer_marks_spaces(n) && !normalizer_has_prefix_space(n));
  check(n,
        T("a\xe2\x96\x81"
          "b"),
        T(" a b"));
  CHECK_EQ_INT(normal_source(&scratch, 1), 0);
  CHECK_EQ_INT(normal_source(&scratch, 2), 1);
  CHECK_EQ_INT(normal_source(&scratch, 3), 4);
  check(n, T(""), T(""));
  check(n, T("\xe2\x96\x81\xe2\x96"), T("  \xe2\x96"));
  check(n, T("\xe2\xe2\x96\x81"), T(" \xe2 "));
  bpe_buffer_init(&b, &unit_alloc, 0);
  normalizer_write(n, &b);
  CHECK_BYTES(b.bytes, b.len, "[{\"prepend\":\" \"},{\"replace\":[\"\xe2\x96\x81\",\" \"]}]", 41);
  bpe_buffer_clear(&b);
  normalizer_free(n);

  n = form("nfkc");
  CHECK(normalizer_add_replace(n, "fi", 2, "", 0, NULL) == BPE_OK);
  CHECK(normalizer_add_replace(n, "aa", 2, "a", 1, NULL) == BPE_OK);
  CHECK(normalizer_add_prefix_space(n, NULL) == BPE_OK);
  check(n, T("\xef\xac\x81x\xef\xac\x81"), T(" x")); /* a ligature, twice, to nothing */
  check(n, T("aaaaa"), T(" aaa"));
  check(n, T(" fi"), T(" "));
  check(n, T("fi"), T(""));
  normalizer_free(n);
  n = form(NULL);
  bpe_status st = BPE_OK;
  int steps = 0;
  for (bpe_error e = {.status = BPE_OK}; st == BPE_OK && steps < 100; steps++)
    st = normalizer_add_prefix_space(n, &e);
  CHECK(st == BPE_BADMODEL && steps == 17);
  normalizer_free(n);
}

/* A string that comes again in itself, against looking for it at every place. */
static void test_replace(void) {
  for (int round = 0; round < 20000; round++) {
    char from[8], text[40], expected[80];
    size_t from_len = 1 + unit_below(7), len = unit_below(sizeof text), n = 0;
    for (size_t i = 0; i < from_len; i++) from[i] = (char)('a' + unit_below(2));
    for (size_t i = 0; i < len; i++) text[i] = (char)('a' + unit_below(unit_below(20) == 0 ? 3 : 2));
    for (size_t i = 0; i < len;) {
      const bool here = len - i >= from_len && memcmp(text + i, from, from_len) == 0;
      expected[n++] = here ? '-' : text[i];
      i += here ? from_len : 1;
    }
    normalizer *r = form(NULL);
    CHECK(normalizer_add_replace(r, from, from_len, "-", 1, NULL) == BPE_OK);
    check(r, text, len, expected, n);
    normalizer_free(r);
  }
}

/* A long string that is nearly met at each place: comparing it there would take a minute. */
static void test_long_replace(void) {
  enum { FROM = 1 << 20, TEXT = 2 * FROM };
  char *text = malloc(TEXT), *from = malloc(FROM);
  normalizer *n = form(NULL);
  if (text == NULL || from == NULL) return;
  memset(text, 'a', TEXT);
  memset(from, 'a', FROM);
  from[FROM - 1] = 'b';
  CHECK(normalizer_add_replace(n, from, FROM, "c", 1, NULL) == BPE_OK);
  const clock_t before = clock();
  CHECK(normal_apply(&scratch, n, (const uint8_t *)text, TEXT, NULL) == BPE_OK);
  CHECK(!scratch.changed);
  text[TEXT - 1] = 'b';
  CHECK(normal_apply(&scratch, n, (const uint8_t *)text, TEXT, NULL) == BPE_OK);
  CHECK_EQ_INT(scratch.len, TEXT - FROM + 1);
  CHECK(clock() - before < 5 * CLOCKS_PER_SEC);
  free(text);
  free(from);
  normalizer_free(n);
}

/* Marks in falling order, which an insertion sort would take hours over. */
static void test_many_marks(void) {
  enum { N = 400000 };
  char *text = malloc(2 * N + 1);
  normalizer *n = form("nfc");
  if (text == NULL) return;
  text[0] = 'a';
  for (int i = 0; i < N; i++) memcpy(text + 1 + 2 * i, i % 2 == 0 ? "\xcc\x95" : "\xcc\xa7", 2);
  CHECK(normal_apply(&scratch, n, (const uint8_t *)text, 2 * N + 1, NULL) == BPE_OK);
  CHECK_EQ_INT(scratch.len, 2 * N + 1);
  CHECK(memcmp(scratch.text, "a\xcc\xa7\xcc\xa7", 5) == 0);
  CHECK(memcmp(scratch.text + scratch.len - 2, "\xcc\x95", 2) == 0);
  free(text);
  normalizer_free(n);
}

/* Segments that are composed pair by pair, against utf8proc's own composition of the whole: a
** character with nothing behind it that begins a segment. The first marks, of classes that do not
** fall, come in their order, which utf8proc would take long to put them in; from 0x1161 on, which
** are of class 0, at random. */
static void test_long_segments(void) {
  enum { N = 20000, SORTED = 5 };
  static const int32_t marks[] = {0x327, 0x323, 0x301, 0x300,  0x315, 0x1161,
                                  0x11a8, 0x9be, 0xb3e, 0x3099, 0xbd7};
  static const int32_t bases[] = {'e', 'c', 0x4e8, 0x1100, 0x9c7, 0xb47, 0xb92, 0x304b, 0x301};
  enum { MARKS = sizeof marks / sizeof *marks, BASES = sizeof bases / sizeof *bases };
  static int32_t list[4 * N];
  static uint8_t text[4 * N], expected[4 * N];
  normalizer *n = form("nfc");
  for (int k = 1; k <= 3 * MARKS; k++) {
    size_t len = 0, n_points = N, end = 0;
    const int most = (k - 1) % MARKS + 1;
    for (int i = 0; i < N; i++) {
      if (i == 0) list[i] = bases[k % BASES];
      else if (most <= SORTED) list[i] = marks[i * most / N];
      else list[i] = marks[unit_below((uint32_t)most)];
      len += (size_t)utf8proc_encode_char(list[i], text + len);
    }
    n_points = (size_t)utf8proc_decompose(text, (utf8proc_ssize_t)len, list, 4 * N,
                                          UTF8PROC_DECOMPOSE | UTF8PROC_STABLE);
    n_points = (size_t)utf8proc_normalize_utf32(list, (utf8proc_ssize_t)n_points,
                                                UTF8PROC_COMPOSE | UTF8PROC_STABLE);
    for (size_t i = 0; i < n_points; i++)
      end += (size_t)utf8proc_encode_char(list[i], expected + end);
    CHECK(normal_apply(&scratch, n, text, len, NULL) == BPE_OK);
    CHECK_BYTES(scratch.text, scratch.len, expected, end);
  }
  normalizer_free(n);
}

static int say_stop(void *ctx) {
  return ++*(int *)ctx > 2;
}

static void test_stop_and_memory(void) {
  enum { N = 100000 };
  normalizer *n = form("nfd");
  char *text = malloc(3 * N);
  int asked = 0;
  bpe_error e = {.status = BPE_OK};
  if (text == NULL) return;
  for (int i = 0; i < N; i++) memcpy(text + 3 * i, "\xea\xb0\x80", 3);
  scratch.stop = say_stop;
  scratch.stop_ctx = &asked;
  CHECK(normal_apply(&scratch, n, (const uint8_t *)text, 3 * N, &e) == BPE_STOPPED);
  CHECK_EQ_INT(asked, 3);
  scratch.stop = NULL;
  for (size_t k = 1;; k++) {
    normal_clear(&scratch);
    unit_fail(k, false);
    const bpe_status st =
        normal_apply(&scratch, n, (const uint8_t *)"\xea\xb0\x80-\xea\xb0\x80", 7, NULL);
    const bool done = unit_memory.refused == 0;
    unit_fail(0, false);
    if (!CHECK(st == (done ? BPE_OK : BPE_NOMEM)) || done) break;
  }
  free(text);
  normalizer_free(n);
}

static void add_random_step(normalizer *n, char *name) {
  static const char *const forms[] = {"nfc", "nfd", "nfkc", "nfkd"};
  static const char *const replaced[][2] = {{" ", "\u2581"}, {"x", ""},        {"a", "\u0301"}, {"e", "aa"},
                                            {"e", "e\u0301"}, {"\u0301", "x"}, {"  ", " "},     {"ax", "e"},
                                            {"\uac00", "\u1161"}, {"x", "\uac00"}};
  const uint32_t k = unit_below(14);
  strcat(name, k < 4 ? forms[k] : replaced[k - 4][0]);
  strcat(name, " ");
  if (k < 4) CHECK(normalizer_add_form(n, forms[k], strlen(forms[k]), NULL) == BPE_OK);
  else
    CHECK(normalizer_add_replace(n, replaced[k - 4][0], strlen(replaced[k - 4][0]), replaced[k - 4][1],
                                 strlen(replaced[k - 4][1]), NULL) == BPE_OK);
}

/* Where a text may be cut its parts are normalized to the parts of what the whole becomes, and the
** places behind the cut come from where they come from in the second part. */
static void check_cut(normalizer *n, const char *name, const uint8_t *s, size_t len, size_t cut) {
  static normal_text left, right;
  left.alloc = right.alloc = unit_alloc;
  CHECK(normal_apply(&scratch, n, s, len, NULL) == BPE_OK && normal_apply(&left, n, s, cut, NULL) == BPE_OK &&
        normal_apply(&right, n, s + cut, len - cut, NULL) == BPE_OK);
  bool same = scratch.len == left.len + right.len &&
              memcmp(scratch.text, left.text, left.len) == 0 &&
              memcmp(scratch.text + left.len, right.text, right.len) == 0 &&
              normal_place(&scratch, cut) == left.len && normal_place(&left, cut) == left.len;
  for (size_t i = 0; i < right.len && same; i++)
    same = normal_source(&scratch, left.len + i) == cut + normal_source(&right, i);
  if (!CHECK(same)) {
    printf("  steps %s, cut at %zu of %zu:", name, cut, len);
    for (size_t i = 0; i < len; i++) printf(" %02x", s[i]);
    printf("\n");
  }
  normal_clear(&left);
  normal_clear(&right);
}

/* What stands behind a place as it is may still become, step by step, what joins what is before. */
static void test_no_cuts(void) {
  static const struct {
    const char *first, *from, *to, *second, *from2, *to2, *third, *text;
  } rows[] = {{"nfc", "\uac00", "\u1161", "nfc", NULL, NULL, NULL, "\u1100\u1100\u1161"},
              {"nfd", "e", "\u0301", "nfc", NULL, NULL, NULL, "a\u00e9"},
              {NULL, "x", "\u0301", "nfc", "\u00e1", "\u0323", "nfd", "eax"},
              {"nfd", "e", "\u0301", "nfc", "\u00e1", "\u0323", "nfd", "xa\u00e9"},
              {NULL, "x", "\u0301", "nfc", NULL, NULL, NULL, "ax"},
              {NULL, "  ", "x", NULL, NULL, NULL, NULL, "   "}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    normalizer *n = form(rows[i].first);
    const uint8_t *s = (const uint8_t *)rows[i].text;
    CHECK(normalizer_add_replace(n, rows[i].from, strlen(rows[i].from), rows[i].to, strlen(rows[i].to), NULL) ==
          BPE_OK);
    if (rows[i].second != NULL)
      CHECK(normalizer_add_form(n, rows[i].second, strlen(rows[i].second), NULL) == BPE_OK);
    if (rows[i].from2 != NULL)
      CHECK(normalizer_add_replace(n, rows[i].from2, strlen(rows[i].from2), rows[i].to2, strlen(rows[i].to2),
                                   NULL) == BPE_OK);
    if (rows[i].third != NULL)
      CHECK(normalizer_add_form(n, rows[i].third, strlen(rows[i].third), NULL) == BPE_OK);
    const size_t first = utf8proc_utf8class[s[0]] > 0 ? (size_t)utf8proc_utf8class[s[0]] : 1;
    if (!CHECK(normalizer_cut(n, s, strlen(rows[i].text), 0, first) == 0)) printf("  row %zu\n", i);
    normalizer_free(n);
  }
}

static void test_cuts(void) {
  static const char *const parts[] = {" ", "a", "x", "e", "\u0301", "\uac00", "\u11a8", "\u1161", "\u1100", "\xff"};
  uint8_t text[600];
  int found = 0;
  for (int round = 0; round < 20000; round++) {
    char name[100] = "";
    normalizer *n = form(NULL);
    for (uint32_t k = unit_below(5); k > 0; k--) add_random_step(n, name);
    size_t len = 0;
    for (uint32_t k = unit_below(12); k > 0; k--) {
      const char *part = parts[unit_below(10)];
      if (unit_below(2) == 0) len += random_text(text + len, 1);
      memcpy(text + len, part, strlen(part));
      len += strlen(part);
    }
    if (len > 1) {
      const size_t at = 1 + unit_below((uint32_t)len - 1), behind = unit_below((uint32_t)at);
      const size_t cut = normalizer_cut(normalizer_steps(n) > 0 ? n : NULL, text, len, behind, at);
      CHECK(cut == 0 || (cut > behind && cut <= at));
      if (cut != 0) check_cut(n, name, text, len, cut);
      found += cut != 0;
    }
    normalizer_free(n);
  }
  CHECK(found > 5000);
}

/* "15.0.0": numbers and dots. */
static void check_version(void) {
  const char *version = bpe_normalizer_unicode_version();
  CHECK(version[0] >= '1' && version[0] <= '9');
  CHECK(strspn(version, "0123456789.") == strlen(version) && strchr(version, '.') != NULL);
}

/* Sixteen steps, of whatever kind, and no more. */
static void check_most_steps(void) {
  for (int kind = 0; kind < 3; kind++) {
    bpe_error e = {.status = BPE_OK};
    normalizer *n = form(NULL);
    bpe_status st = BPE_OK;
    int steps = 0;
    for (; steps < 20 && st == BPE_OK; steps++)
      st = kind == 0   ? normalizer_add_form(n, T("nfc"), &e)
           : kind == 1 ? normalizer_add_prepend(n, T("x"), &e)
                       : normalizer_add_replace(n, T("a"), T("b"), &e);
    CHECK_EQ_INT(steps, 17);
    CHECK(unit_says(&e, BPE_BADMODEL, 16, "more than 16 normalizer steps"));
    CHECK_EQ_INT(normalizer_steps(n), 16);
    normalizer_free(n);
  }
}

int main(void) {
  check_version();
  check_most_steps();
  scratch.alloc = unit_alloc;
  test_forms();
  test_places();
  test_strings();
  test_replace();
  test_long_replace();
  test_many_marks();
  test_long_segments();
  test_no_cuts();
  test_cuts();
  test_stop_and_memory();
  normal_clear(&scratch);
  return unit_summary();
}
