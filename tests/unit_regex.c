/* unit_regex.c - PCRE2 behind its wall: matches that are empty or point back, limits, errors. */
#include "../src/regex.h"

#include <time.h>

#include "unit.h"

static regex *compile(const char *pattern) {
  regex *r;
  bpe_error e = {.status = BPE_OK};
  if (!CHECK(regex_new(&unit_alloc, pattern, strlen(pattern), &e, &r) == BPE_OK))
    printf("  %s: %s\n", pattern, e.text);
  return r;
}

/* All matches of the pattern, as "start-stop start-stop"; "!" for a failure. */
static void matches_of(regex *r, const char *pattern, const char *text, size_t len,
                       const char *expected) {
  char got[400] = "";
  size_t n = 0, from = 0;
  regex_match *m = NULL;
  if (r == NULL || !CHECK(regex_match_new(r, NULL, &m) == BPE_OK)) return;
  for (;;) {
    size_t start, stop;
    if (regex_next(r, m, (const uint8_t *)text, len, from, &start, &stop, NULL) != BPE_OK) {
      got[n++] = '!';
      break;
    }
    if (start == len) {
      CHECK_EQ_INT(stop, len);
      break;
    }
    CHECK(start >= from && stop > start && stop <= len);
    n += (size_t)snprintf(got + n, sizeof got - n, "%s%zu-%zu", n > 0 ? " " : "", start, stop);
    if (n > sizeof got - 32) break;
    from = stop;
  }
  if (!CHECK_BYTES(got, n, expected, strlen(expected)))
    printf("  /%s/: %.*s, expected %s\n", pattern, (int)n, got, expected);
  regex_match_free(m);
  regex_free(r);
}

static void matches(const char *pattern, const char *text, size_t len, const char *expected) {
  matches_of(compile(pattern), pattern, text, len, expected);
}

static void check_matching(void) {
  matches("a+", "aabaXa", 6, "0-2 3-4 5-6");
  matches("a+", "", 0, "");
  matches("x", "abc", 3, "");
  matches("\\w+", "un\xc3\xa9 \xe4\xb8\xad_1", 10, "0-4 5-10");
  matches("\\d", "1\xd9\xa3", 3, "0-1 1-3"); /* properties, not ASCII */
  matches("[\\s\\S]", "\0\n", 2, "0-1 1-2");
  matches(".", "a\nb", 3, "0-1 2-3");
  matches("\xe4\xb8\xad", "x\xe4\xb8\xad\xe4\xb8\xad", 7, "1-4 4-7");
  matches("(?i)\xc3\xa9", "\xc3\x89", 2, "0-2");
}

/* U+180E, three bytes, is no white space; in whichever way it is asked for. */
static void check_white_space(void) {
  static const char text[] = "a\xe1\xa0\x8e \xc2\xa0\xe2\x80\xa8";
  static const struct {
    const char *pattern, *expected;
  } rows[] = {
      {"\\s+", "4-10"},
      {"\\S+", "0-4"},
      {"[\\s]+", "4-10"},
      {"[^\\s]+", "0-4"},
      {"[\\S]+", "0-4"},
      {"[^\\S]+", "4-10"},
      {"[\\s\\S]+", "0-10"},
      {"[^\\s\\p{L}]+", "1-4"},
      {"\\s", "4-5 5-7 7-10"},
      {"[[:space:]]+", "4-10"},
      {"[[:^space:]]+", "0-4"},
      {"[[:blank:]]+", "4-7"},
      {"[[:^blank:]]+", "0-4 7-10"},
      {"[^[:space:]x]+", "0-4"},
      {"[[:space:][:^space:]]+", "0-10"},
      {"[[:x\\s]+", "4-10"},
      {"[\\s-]+", "4-10"},
      {"[]\\s]+", "4-10"},
      {"[^]\\s]+", "0-4"},
      {"[[:alpha:]\\s]+", "0-1 4-10"},
      {"\\Q\\s\\E|a", "0-1"},
      {"\\\\s|a", "0-1"},
      {"\\cs|a", "0-1"},
      {"(?#[)\\s+(?#])", "4-10"},
      {"(?x) [a] \\s* # [\n | b", "0-10"}, /* left as it is */
      {"[\\E]\\s]+", "1-10"},
      {"(*MARK:[)\\s+", "1-10"},
      {"(*:[)\\s+", "1-10"},
      {"(?C\"[\")\\s+", "1-10"},
      {"(?Ux) it # [\n|\\s", "1-4 4-5 5-7 7-10"},
      {"(?-x:\\s+)", "1-10"},
      {"(?i:\\s+)", "4-10"},
      {"\\G\\S|\\s", "0-1 1-4 4-5 5-7 7-10"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    matches(rows[i].pattern, text, 10, rows[i].expected);
  matches("[\\s-]+", "- a", 3, "0-2");
  matches("(?x)\\Ga\n|b # [", "aab", 3, "0-1 1-2 2-3");
}

static void check_empty_matches(void) {
  matches("", "abc", 3, "");
  matches("b*", "abbc", 4, "1-3");
  matches("(?=a)", "aaa", 3, "");
  matches("x*?", "xx", 2, "");
  matches("\\b|c", "ab c", 4, ""); /* the boundary before c is empty: the search goes on behind c */
  matches("\\b|..", "ab cd", 5, "1-3");
  matches("$|b", "ab", 2, "1-2");
  matches("|\xe4\xb8\xad", "\xe4\xb8\xad\xe4\xb8\xad", 6, "");
}

static void check_looking_around(void) {
  matches("(?<=a)b", "abab", 4, "1-2 3-4"); /* looks behind the end of the last match */
  matches("(?<=b)a", "ba", 2, "1-2");
  matches("(?<!\xe4\xb8\xad)x", "\xe4\xb8\xadxx", 5, "4-5");
  matches("^a", "aaa", 3, "0-1");
  matches("\\Ga", "aaba", 4, "0-1 1-2");
  matches("\\Ga|b", "xaxb", 4, "3-4"); /* nowhere but where the search began */
  matches("\\G\\Ga|\\Q\\G\\Eb|c", "a\\Gbc", 5, "0-1 1-4 4-5");
  matches("(?!\\G)a", "aaa", 3, "1-2");
  matches("\\s+(?!\\S)|\\s+|\\S+", "a  b ", 5, "0-1 1-2 2-3 3-4 4-5");
  matches("a\\z", "aa", 2, "1-2");
  matches("a$", "a\na\n", 4, ""); /* the very end, not the end of the last line */
  matches("a$|\\n$", "a\na\n", 4, "3-4");
  matches("a\\Z", "a\na\n", 4, "2-3");
  matches("(?m)a$", "a\na\r\n", 5, "0-1"); /* lines end in a line feed alone */
  matches(".\\R", "a\rb\xc2\x85", 5, "0-2 2-5");
  matches("(?=a)c*a", "aab", 3, "0-1 1-2"); /* the a that is looked at is the one that matches */
  matches("(?>a+?)b", "aab", 3, "1-3");     /* what an attempt failed on may match from elsewhere */
}

/* A search is made of many calls: over more places than one call tries, and in pieces of a text whose
** characters have three bytes. */
static void check_far(void) {
  enum { N = 30000 };
  static char text[N + 3];
  regex *r;
  bpe_error e = {.status = BPE_OK};
  for (int i = 0; i < N; i += 3) memcpy(text + i, "\xe4\xb8\xad", 3);
  memcpy(text + N, "ab", 2);
  matches("ab", text, N + 2, "30000-30002");
  matches("\\Ga|b", text, N + 2, "30001-30002");
  matches("(?<=\xe4\xb8\xad)a", text, N + 2, "30000-30001");
  matches("^\xe4\xb8\xad|b", text, N + 2, "0-3 30001-30002");
  matches("(?:\xe4\xb8\xad|\xe4\xb8\xad\xe4\xb8\xad){1,9}\\d|b", text, N + 2, "30001-30002");
  static const char *const behind[] = {"(?<=\\G)a",    "(?<!b)\\Ga",
                                       "\\Ga(?<=a)",   "(*plb:b)\\Ga",
                                       "\\Ga|(?<*b)c", "(*positive_lookbehind:b)\\G"};
  for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
    e = (bpe_error){.status = BPE_OK};
    CHECK(regex_new(&unit_alloc, behind[i], strlen(behind[i]), &e, &r) == BPE_BADREGEX);
    CHECK(unit_says(&e, BPE_BADREGEX, 0, "regex error: \\G beside a lookbehind is not supported"));
  }
  /* Groups that only look like one, and one that is not there because it is quoted or \G is. */
  matches("\\G(?<n>a)|(?=b)b|(?i:C)", "aabc", 4, "0-1 1-2 2-3 3-4");
  matches("(?<=a)b|\\QG\\G\\E|\\\\", "abG\\G\\", 6, "1-2 2-5 5-6");
}

/* PCRE2 before 10.38 takes \K in a lookaround, which can move the start to where it pleases. */
static void matches_if_taken(const char *pattern, const char *text, size_t len,
                             const char *expected) {
  regex *r;
  const bpe_status st = regex_new(&unit_alloc, pattern, strlen(pattern), NULL, &r);
  CHECK(st == BPE_OK || st == BPE_BADREGEX);
  if (st == BPE_OK) matches_of(r, pattern, text, len, expected);
}

static void check_reset_start(void) {
  matches("a\\Kb", "abab", 4, "1-2 3-4");
  matches("ab\\K", "abab", 4, "");
  matches_if_taken("(?<=\\Ka)b", "abb", 3, "0-2");        /* into what nobody has matched yet */
  matches_if_taken("(?<=\\K..)c|b", "abc", 3, "1-2 2-3"); /* into a match: not before its end */
  matches_if_taken("(?=ab\\K)a", "abc", 3, "");           /* ends before it starts */
}

static void check_errors(void) {
  static const struct {
    const char *pattern;
    size_t at;
  } rows[] = {{"(", 1},         {"a)", 1},       {"[a", 2},   {"*", 0},
              {"\\p{Nope}", 8}, {"(?<=a*)b", 0}, {"\xff", 0}, {"\\", 1}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    regex *r = (regex *)&unit_memory;
    bpe_error e = {.status = BPE_OK};
    CHECK_EQ_INT(regex_new(&unit_alloc, rows[k].pattern, strlen(rows[k].pattern), &e, &r),
                 BPE_BADREGEX);
    CHECK(r == NULL);
    char begin[64];
    snprintf(begin, sizeof begin, "regex error at byte %zu: ", rows[k].at);
    CHECK_EQ_INT(e.status, BPE_BADREGEX);
    CHECK_EQ_INT(e.offset, rows[k].at);
    if (!CHECK(strncmp(e.text, begin, strlen(begin)) == 0)) printf("  %s\n", e.text);
  }
  regex_free(NULL);
  regex_match_free(NULL);
}

/* Part of a character is no place to match: what follows it would be read as a character. */
static void check_single_bytes_refused(void) {
  regex *r;
  CHECK_EQ_INT(regex_new(&unit_alloc, "\\C", 2, NULL, &r), BPE_BADREGEX);
  regex_free(r);
}

/* A pattern that would run for ages is an error soon, and the match data is good afterwards. */
static void check_limits(void) {
  static const char *const patterns[] = {"(a+)+$", "(?:a|aa)+$", "(a*)*b", "(.*)*(.*)*(.*)*x",
                                         "^(a?){40}a{40}b"};
  char text[5001];
  memset(text, 'a', sizeof text);
  text[sizeof text - 1] = 'c';
  for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
    regex_match *m = NULL;
    regex *r = compile(patterns[k]);
    bpe_error e = {.status = BPE_OK};
    size_t start, stop;
    if (r == NULL || !CHECK(regex_match_new(r, NULL, &m) == BPE_OK)) return;
    const clock_t began = clock();
    const bpe_status st =
        regex_next(r, m, (const uint8_t *)text, sizeof text, 0, &start, &stop, &e);
    const double seconds = (double)(clock() - began) / CLOCKS_PER_SEC;
    if (st != BPE_OK) { /* the engine may also prove that there is no match */
      CHECK_EQ_INT(st, BPE_REGEXLIMIT);
      CHECK(strncmp(e.text, "regex gave up at byte 0: ", 25) == 0);
    } else {
      CHECK_EQ_INT(start, sizeof text);
    }
    if (k == 0) CHECK_EQ_INT(st, BPE_REGEXLIMIT);
    if (!CHECK(seconds < 2)) printf("  /%s/: %.1f s\n", patterns[k], seconds);
    CHECK_EQ_INT(regex_next(r, m, (const uint8_t *)"xxaaaaxx", 8, 0, &start, &stop, NULL), BPE_OK);
    regex_match_free(m);
    regex_free(r);
  }
}

/* More nesting than the stack of the machine code holds falls back to the heap. */
static void check_deep(void) {
  enum { LEN = 40000 };
  char *text = malloc(LEN);
  if (text == NULL) abort();
  memset(text, 'a', LEN);
  size_t start = 0, stop = 0;
  regex_match *m = NULL;
  regex *r = compile("(?:(a)|b)*");
  if (r != NULL && CHECK(regex_match_new(r, NULL, &m) == BPE_OK)) {
    const bpe_status st = regex_next(r, m, (const uint8_t *)text, LEN, 0, &start, &stop, NULL);
    CHECK(st == BPE_OK || st == BPE_REGEXLIMIT);
    CHECK(st != BPE_OK || (start == 0 && stop == LEN));
  }
  regex_match_free(m);
  regex_free(r);
  free(text);
}

static int third(void *ctx) {
  return ++*(int *)ctx == 3;
}

/* Before each attempt there is a question, also where a match is empty and the search goes on. */
static void check_stop(void) {
  static const struct {
    const char *pattern;
    int calls; /* of regex_next until the third question */
  } rows[] = {{"a*b|a", 3}, {"a*b|", 1}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    int asked = 0, calls = 0;
    size_t from = 0, start;
    regex_match *m = NULL;
    regex *r = compile(rows[k].pattern);
    bpe_error e = {.status = BPE_OK};
    if (r == NULL || !CHECK(regex_match_new(r, NULL, &m) == BPE_OK)) return;
    regex_match_stop(m, third, &asked);
    bpe_status st = BPE_OK;
    for (; st == BPE_OK && from < 8; calls++)
      st = regex_next(r, m, (const uint8_t *)"aaaaaaaa", 8, from, &start, &from, &e);
    CHECK_EQ_INT(st, BPE_STOPPED);
    CHECK_EQ_INT(calls, rows[k].calls);
    CHECK(unit_says(&e, BPE_STOPPED, 2, "interrupted"));
    regex_match_free(m);
    regex_free(r);
  }
}

static void check_version(void) {
  char version[64];
  bool jit;
  bpe_pcre2_version(version, &jit);
  CHECK(version[0] == '1' && version[1] == '0' && version[2] == '.');
  CHECK(strlen(version) < sizeof version);
}

int main(void) {
  check_matching();
  check_white_space();
  check_empty_matches();
  check_looking_around();
  check_far();
  check_reset_start();
  check_errors();
  check_single_bytes_refused();
  check_limits();
  check_deep();
  check_stop();
  check_version();
  return unit_summary();
}
