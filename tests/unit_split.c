/* unit_split.c - patterns, and the tiling of a stretch: malformed runs, gaps of a regex, sizes. */
#include "../src/split.h"

#include "unit.h"

enum { MIB = 1 << 20, MOST_PIECES = 64 };

static bpe_pattern *pattern_of(const char *text, bool is_regex) {
  bpe_pattern *p;
  bpe_error e = {.status = BPE_OK};
  if (!CHECK(bpe_pattern_new(&unit_alloc, text, strlen(text), is_regex, &e, &p) == BPE_OK))
    printf("  %s: %s\n", text, e.text);
  return p;
}

/* Writes the ends of the pieces of text[from .. to); how many there are, or SIZE_MAX. */
static size_t split_all(const bpe_pattern *p, const char *text, size_t from, size_t to,
                        size_t stops[MOST_PIECES]) {
  splitter sp = {0};
  size_t n = 0;
  bpe_status st = split_start(&sp, p, (const uint8_t *)text, from, to, NULL);
  while (st == BPE_OK && sp.at < to && n < MOST_PIECES) {
    const size_t before = sp.at;
    st = split_next(&sp, NULL);
    if (!CHECK(sp.at > before && sp.at <= to)) break;
    stops[n++] = sp.at;
  }
  split_clear(&sp);
  return st == BPE_OK && (n == 0 ? from == to : stops[n - 1] == to) ? n : SIZE_MAX;
}

/* Pieces are expected as lengths: "2 1 1". */
static void splits(const char *pattern, bool is_regex, const char *text, size_t len,
                   const char *expected) {
  size_t stops[MOST_PIECES];
  char got[400] = "";
  bpe_pattern *p = pattern_of(pattern, is_regex);
  if (p == NULL) return;
  const size_t n = split_all(p, text, 0, len, stops);
  CHECK(n != SIZE_MAX);
  for (size_t i = 0, o = 0; n != SIZE_MAX && i < n; i++)
    o += (size_t)snprintf(got + o, sizeof got - o, "%s%zu", i > 0 ? " " : "",
                          stops[i] - (i > 0 ? stops[i - 1] : 0));
  if (!CHECK(strcmp(got, expected) == 0))
    printf("  %s: %s, expected %s\n", pattern, got, expected);
  bpe_pattern_free(p);
}

static void check_patterns(void) {
  int n = 0; /* every scanner, in its order, then none */
  for (; scan_name(n) != NULL; n++) {
    CHECK(strcmp(bpe_pattern_name(n), scan_name(n)) == 0);
    bpe_pattern_free(pattern_of(scan_name(n), false));
  }
  CHECK(n >= 6 && strcmp(bpe_pattern_name(n), "none") == 0);
  bpe_pattern_free(pattern_of("none", false));
  CHECK(bpe_pattern_name(n + 1) == NULL && bpe_pattern_name(n + 2) == NULL);
  CHECK(bpe_pattern_name(-1) == NULL);
  CHECK(strcmp(bpe_unicode_version(), "16.0.0") == 0);
  bpe_pattern *p = (bpe_pattern *)&unit_memory;
  bpe_error e = {.status = BPE_OK};
  CHECK_EQ_INT(bpe_pattern_new(&unit_alloc, "gpt5\n", 5, false, &e, &p), BPE_MISUSE);
  CHECK(p == NULL);
  CHECK(unit_says(&e, BPE_MISUSE, 0, "no such pattern: gpt5\\x0a"));
  CHECK_EQ_INT(bpe_pattern_new(&unit_alloc, "", 0, false, NULL, &p), BPE_MISUSE);
  CHECK_EQ_INT(bpe_pattern_new(&unit_alloc, "[", 0, false, NULL, &p), BPE_MISUSE);
  e = (bpe_error){.status = BPE_OK};
  CHECK_EQ_INT(bpe_pattern_new(&unit_alloc, "[", 1, false, &e, &p), BPE_BADMODEL);
  CHECK(unit_says(&e, BPE_BADMODEL, 1, "chain of patterns: premature EOF at byte 1"));
  CHECK_EQ_INT(bpe_pattern_new(&unit_alloc, "(", 1, true, NULL, &p), BPE_BADREGEX);
  CHECK(p == NULL);
  bpe_pattern_free(NULL);
}

static void check_scanners(void) {
  splits("gpt2", false, "", 0, "");
  splits("gpt2", false, "Hi there", 8, "2 6");
  splits("gpt2", false, "a\0b", 3, "1 1 1");
  splits("gpt2", false, "\0", 1, "1");
  splits("cl100k", false, "a\0b", 3, "1 2");
  splits("none", false, "", 0, "");
  splits("none", false, "any \xff thing\0", 12, "12");
}

/* A maximal malformed run is one piece; what lies between is a text of its own. */
static void check_malformed(void) {
  splits("gpt2", false, "\xff\xfe\x80 a", 5, "3 2");
  splits("gpt2", false, "ab\xe4\xb8" "cd", 6, "2 2 2");
  splits("gpt2", false, "ab\xe4\xb8", 4, "2 2");
  splits("gpt2", false, "a  \xff" "b", 5, "1 2 1 1"); /* lookahead ends at the malformed byte */
  splits("gpt2", false, "\xc3", 1, "1");
  splits("gpt2", false, "\xe4\xb8\xad\xe4\xb8", 5, "3 2");
  splits("cl100k", false, "x\xed\xa0\x80\xed\xb0\x80y", 8, "1 6 1"); /* surrogates */
  splits("o200k", false, "'\xff's", 4, "1 1 2");
  splits("o200k", false, "it\xff's", 5, "2 1 2");
  splits("\\w+", true, "ab\xff" "cd", 5, "2 1 2");
  splits("(?<=b)\\w", true, "ab\xff" "cd", 5, "2 1 2"); /* lookbehind does not see over it */
  splits("^\\w", true, "ab\xff" "cd", 5, "1 1 1 1 1");
  splits("\\w$", true, "ab\xff" "cd", 5, "1 1 1 1 1");
}

static void check_regexes(void) {
  splits("", true, "abc", 3, "3");
  splits("x", true, "abc", 3, "3");
  splits("b", true, "abcb", 4, "1 1 1 1");
  splits("b+", true, "bb--b", 5, "2 2 1");
  splits("b*", true, "abbc", 4, "1 2 1");
  splits("b*", true, "\xe4\xb8\xad" "bb\xf0\x90\x80\x80" "b\xc3\xa9", 12, "3 2 4 1 2");
  splits("b*", true, "\xf0\x90\x80\x80\xf0\x90\x80\x80\xff" "aaaaaabba", 18, "8 1 6 2 1");
  splits("a\\Kb", true, "abab", 4, "1 1 1 1");
  splits(".", true, "\xe4\xb8\xad\0\n", 5, "3 1 1");
  splits("\\s+(?!\\S)|\\S+", true, "a  b c", 6, "1 1 1 1 1 1");
}

/* A stretch ends where it is said to, not where the text does, and begins anywhere. */
static void check_stretches(void) {
  static const char text[] = "one  two";
  size_t stops[MOST_PIECES];
  for (int is_regex = 0; is_regex < 2; is_regex++) {
    bpe_pattern *p = is_regex ? pattern_of(" ?\\pL+|\\s+(?!\\S)|\\s+", true)
                              : pattern_of("gpt2", false);
    if (p == NULL) return;
    CHECK_EQ_INT(split_all(p, text, 0, 8, stops), 3);
    CHECK(stops[0] == 3 && stops[1] == 4);
    CHECK_EQ_INT(split_all(p, text, 1, 5, stops), 2); /* "ne" and both blanks */
    CHECK(stops[0] == 3 && stops[1] == 5);
    CHECK_EQ_INT(split_all(p, text, 5, 5, stops), 0);
    CHECK_EQ_INT(split_all(p, text, 8, 8, stops), 0);
    bpe_pattern_free(p);
  }
}

/* One splitter goes from pattern to pattern, keeping no match of the one before. */
static void check_changing_patterns(void) {
  bpe_pattern *p[3] = {pattern_of("a+", true), pattern_of("none", false), pattern_of("b+", true)};
  splitter sp = {0};
  for (int round = 0; round < 9; round++) {
    static const uint8_t text[] = "aabb";
    const int k = round * 2 % 3;
    CHECK_EQ_INT(split_start(&sp, p[k], text, 0, 4, NULL), BPE_OK);
    CHECK_EQ_INT(split_next(&sp, NULL), BPE_OK);
    CHECK_EQ_INT(sp.at, k == 1 ? 4 : 2);
  }
  split_clear(&sp);
  for (int k = 0; k < 3; k++) bpe_pattern_free(p[k]);
}

/* Texts of a mebibyte and more, whose characters lie across every boundary inside. */
static void check_large(void) {
  static const char *const letters[] = {"a", "\xc3\xa9", "\xe4\xb8\xad", "\xf0\xa0\x80\x80"};
  enum { LEN = 3 * MIB + 100 };
  char *text = malloc(LEN + 8);
  if (text == NULL) abort();
  bpe_pattern *p[3] = {pattern_of("gpt2", false), pattern_of("\\pL+", true),
                       pattern_of("none", false)};
  for (size_t k = 0; k < 4; k++) {
    const size_t n = strlen(letters[k]);
    for (size_t shift = 0; shift < n; shift++) {
      size_t len = shift, stops[MOST_PIECES];
      memset(text, 'x', shift);
      for (; len + n <= LEN; len += n) memcpy(text + len, letters[k], n);
      for (int i = 0; i < 3; i++) {
        CHECK_EQ_INT(split_all(p[i], text, 0, len, stops), 1);
        CHECK_EQ_INT(split_all(p[i], text, shift, len, stops), 1);
      }
      text[len] = '\xf0'; /* an incomplete character behind the last whole one */
      CHECK_EQ_INT(split_all(p[0], text, 0, len + 1, stops), 2);
      CHECK_EQ_INT(stops[0], len);
      for (size_t at = MIB - 4; at < MIB + 4; at++) { /* and a malformed byte at the boundary */
        if ((at - shift) % n != 0) continue;
        const char was = text[at];
        text[at] = '\xff';
        CHECK_EQ_INT(split_all(p[0], text, 0, len, stops), 3);
        CHECK_EQ_INT(stops[0], at);
        CHECK_EQ_INT(stops[1], at + n);
        text[at] = was;
      }
    }
  }
  for (int i = 0; i < 3; i++) bpe_pattern_free(p[i]);
  free(text);
}

static int say_stop(void *asked) {
  return ++*(int *)asked >= 2;
}

static void check_stopping(void) {
  char *text = malloc(3 * MIB);
  if (text == NULL) abort();
  memset(text, 'a', 3 * MIB);
  int asked = 0;
  bpe_error e = {.status = BPE_OK};
  bpe_pattern *p = pattern_of("gpt2", false);
  splitter sp = {.stop = say_stop, .stop_ctx = &asked};
  CHECK_EQ_INT(split_start(&sp, p, (const uint8_t *)text, 0, 3 * MIB, &e), BPE_OK);
  CHECK_EQ_INT(split_next(&sp, &e), BPE_STOPPED);
  CHECK_EQ_INT(asked, 2);
  CHECK(strcmp(e.text, "interrupted") == 0);
  split_clear(&sp);
  bpe_pattern_free(p);
  free(text);
}

static int never(void *asked) {
  (*(int *)asked)++;
  return 0;
}

static int always(void *asked) {
  (*(int *)asked)++;
  return 1;
}

/* Another who is asked from now on, in the middle of a stretch, whatever the pattern is made of. */
static void check_other_stop(void) {
  static const char *const names[] = {"[a-z]", "[\"none\",{\"regex\":\"[a-z]\"}]",
                                      "[{\"regex\":\"[a-z]\"},\"none\"]"};
  for (int i = 0; i < 3; i++) {
    int first = 0, second = 0;
    bpe_pattern *p = pattern_of(names[i], i == 0);
    splitter sp = {.stop = never, .stop_ctx = &first};
    if (p == NULL) return;
    CHECK_EQ_INT(split_start(&sp, p, (const uint8_t *)"abcd", 0, 4, NULL), BPE_OK);
    CHECK_EQ_INT(split_next(&sp, NULL), BPE_OK);
    split_set_stop(&sp, never, &second);
    CHECK_EQ_INT(split_next(&sp, NULL), BPE_OK);
    CHECK(first == 1 && second == 1);
    split_set_stop(&sp, always, &second);
    CHECK_EQ_INT(split_next(&sp, NULL), BPE_STOPPED);
    split_set_stop(&sp, NULL, NULL);
    CHECK_EQ_INT(split_next(&sp, NULL), BPE_OK);
    CHECK(sp.at == 3 && first == 1 && second == 2);
    split_clear(&sp);
    bpe_pattern_free(p);
  }
}

static void check_limit(void) {
  static const char text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!";
  bpe_pattern *p = pattern_of("(a|aa)+(a|aa)+(a|aa)+$", true);
  splitter sp = {0};
  bpe_error e = {.status = BPE_OK};
  if (p == NULL) return;
  CHECK_EQ_INT(split_start(&sp, p, (const uint8_t *)text, 0, sizeof text - 1, NULL), BPE_OK);
  const bpe_status st = split_next(&sp, &e);
  CHECK_EQ_INT(st, BPE_REGEXLIMIT);
  CHECK_EQ_INT(sp.at, 0);
  split_clear(&sp);
  bpe_pattern_free(p);
}

int main(void) {
  check_patterns();
  check_scanners();
  check_malformed();
  check_regexes();
  check_stretches();
  check_changing_patterns();
  check_large();
  check_stopping();
  check_other_stop();
  check_limit();
  return unit_summary();
}
