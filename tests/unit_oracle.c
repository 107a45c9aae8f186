/* unit_oracle.c - the oracle against the reference data: if the judge errs, no verdict counts.
**
**     unit_oracle [--vectors tests/vectors] [--encodings data/encodings]
**                 [--classes tests/vectors/unicode-classes.json]
**
** Every row of the split files and of the id files (with and without special tokens) that the
** real tokenizers produced goes through the oracle. What those cannot show, because their
** strings are valid UTF-8 and their vocabularies complete, is checked by hand below: malformed
** bytes, gaps, possessive quantifiers, refused patterns, merge lists with a byte missing. Rows
** of an absent file are a failure.
*/
#include "oracle.h"
#include "test.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static oracle_classes *classes;

/* ---- Reference files ------------------------------------------------------------------------- */

typedef struct rows {
  FILE *file;
  char *line;
  size_t cap, number;
  char path[512];
  json_t *row; /* borrowed by the caller until the next call */
} rows;

static bool rows_open(rows *r, const char *dir, const char *name, const char *suffix) {
  *r = (rows){0};
  snprintf(r->path, sizeof r->path, "%s/%s%s.jsonl", dir, name, suffix);
  r->file = fopen(r->path, "r");
  if (!r->file) printf("%s: cannot read\n", r->path);
  return CHECK(r->file != NULL);
}

static bool rows_next(rows *r) {
  size_t len = 0;
  json_decref(r->row);
  r->row = NULL;
  for (int c; (c = getc(r->file)) != EOF && c != '\n';) {
    if (len == r->cap) r->line = oracle_realloc(r->line, r->cap = r->cap * 2 + 4096);
    r->line[len++] = (char)c;
  }
  r->number++;
  if (len > 0) r->row = json_loadb(r->line, len, JSON_ALLOW_NUL, NULL);
  if (len > 0) CHECK(r->row != NULL);
  return r->row != NULL;
}

static void rows_close(rows *r) {
  CHECK(r->number > 100);
  fclose(r->file);
  free(r->line);
}

static const char *row_text(const rows *r, size_t *len) {
  const json_t *text = json_object_get(r->row, "text");
  *len = json_string_length(text);
  return json_string_value(text);
}

static bool same_list(const uint32_t *at, size_t n, const json_t *expected) {
  if (json_array_size(expected) != n) return false;
  for (size_t i = 0; i < n; i++) {
    if (json_integer_value(json_array_get(expected, i)) != (json_int_t)at[i]) return false;
  }
  return true;
}

static void check_splits(const char *dir, const char *kind, const char *file,
                         const char *pattern) {
  rows r;
  oracle_list lengths = {0};
  oracle_regex *re = oracle_regex_new(classes, oracle_pattern(pattern));
  if (CHECK(re != NULL) && rows_open(&r, dir, kind, file)) {
    while (rows_next(&r)) {
      size_t len;
      const char *text = row_text(&r, &len);
      lengths.n = 0;
      oracle_split(re, text, len, &lengths);
      if (!CHECK(same_list(lengths.at, lengths.n, json_object_get(r.row, "piece_bytes")))) {
        printf("  %s:%zu\n", r.path, r.number);
      }
    }
    rows_close(&r);
  }
  oracle_list_clear(&lengths);
  oracle_regex_free(re);
}

/* The special tokens that a row of NAME.special.jsonl allows. */
static size_t allowed(const char *encoding, const json_t *names, oracle_special out[2048]) {
  size_t n, n_out = 0;
  const oracle_special *all = oracle_specials(encoding, &n);
  for (size_t i = 0; i < n; i++) {
    bool take = json_is_string(names);
    for (size_t k = 0; k < json_array_size(names); k++) {
      take |= strcmp(json_string_value(json_array_get(names, k)), all[i].text) == 0;
    }
    if (take) out[n_out++] = all[i];
  }
  return n_out;
}

static void check_ids(const char *dir, const char *encoding, const char *suffix,
                      const oracle_model *m) {
  static oracle_special specials[2048];
  rows r;
  oracle_result out = {0};
  if (!rows_open(&r, dir, encoding, suffix)) return;
  while (rows_next(&r)) {
    size_t len, n = 0;
    const char *text = row_text(&r, &len);
    const json_t *ids = json_object_get(r.row, "ids"), *names;
    if (!ids) continue; /* an error row: the oracle knows nothing of forbidden tokens */
    names = json_object_get(r.row, "allowed_special");
    if (names) n = allowed(encoding, names, specials);
    oracle_encode(m, text, len, specials, n, &out);
    if (!CHECK(!out.failed && same_list(out.ids.at, out.ids.n, ids))) {
      printf("  %s:%zu\n", r.path, r.number);
    }
  }
  rows_close(&r);
  oracle_result_clear(&out);
}

static void check_encoding(const char *dir, const char *encodings, const char *encoding,
                           const char *ranks, const char *pattern) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s.merges", encodings, ranks);
  oracle_model m = {.regex = oracle_regex_new(classes, oracle_pattern(pattern)),
                    .vocab = oracle_vocab_read_merges(path), .by_rank = true, .whole = true};
  if (CHECK(m.regex != NULL) && CHECK(m.vocab != NULL)) {
    check_ids(dir, encoding, "", &m);
    check_ids(dir, encoding, ".special", &m);
  }
  oracle_regex_free(m.regex);
  oracle_vocab_free(m.vocab);
}

/* ---- By hand --------------------------------------------------------------------------------- */

/* The pieces of text, each followed by a bar, are `expected`. */
static bool splits_as(const char *pattern, const char *text, size_t len, const char *expected) {
  oracle_list lengths = {0};
  oracle_regex *re = *pattern ? oracle_regex_new(classes, pattern) : NULL;
  char barred[256];
  size_t n = 0, at = 0;
  if (*pattern && !CHECK(re != NULL)) return false;
  oracle_split(re, text, len, &lengths);
  for (size_t i = 0; i < lengths.n && n + lengths.at[i] + 2 < sizeof barred; i++) {
    memcpy(barred + n, text + at, lengths.at[i]);
    n += lengths.at[i];
    at += lengths.at[i];
    barred[n++] = '|';
  }
  barred[n] = 0;
  oracle_list_clear(&lengths);
  oracle_regex_free(re);
  if (at == len && n == strlen(expected) && memcmp(barred, expected, n) == 0) return true;
  printf("  %s: is %s, expected %s\n", pattern, barred, expected);
  return false;
}

#define SPLITS(pattern, text, expected) \
  CHECK(splits_as(pattern, text, sizeof text - 1, expected))

static void check_patterns(void) {
  SPLITS("\\p{N}{1,3}", "1234567", "123|456|7|");
  SPLITS("\\p{N}{1,3}+|x", "1234x", "123|4|x|");
  SPLITS("\\p{N}{2}", "12345", "12|34|5|");
  SPLITS("a+", "xxaaxyaz", "xx|aa|xy|a|z|");
  SPLITS("a*", "baab", "b|aa|b|");
  SPLITS("a++b|a", "aaab", "aaab|");
  SPLITS("a++ab|a", "aaab", "a|a|a|b|");
  SPLITS("(?:ab)++ab|a|b", "abab", "a|b|a|b|");
  SPLITS("(?:ab)+ab|a|b", "abab", "abab|");
  SPLITS("(?:a|ab)(?:c|bcd)", "abcd", "abcd|");
  SPLITS("(?:a|ab){2}c", "xaabcx", "x|aabc|x|");
  SPLITS("\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s|\\S+", "a\n  b\n  ", "a|\n| | |b|\n  |");
  SPLITS("\\p{N}+\n[ab]+(?!\\S)|x", "1abab2abcx", "1|abab|2|abc|x|");
  SPLITS("(?i:s)|(?i:k)", "sS\xc5\xbfkK\xe2\x84\xaa", "s|S|\xc5\xbf|k|K|\xe2\x84\xaa|");
  SPLITS("[a-c\\-x]+", "ab-xdc", "ab-x|d|c|");
  SPLITS("[^\\p{L}]+|\\P{N}+", "12ab3", "12|ab|3|");
  SPLITS("\xe4\xb8\xad|[\xe4\xb8\x80-\xe4\xb8\x8a]+", "\xe4\xb8\xad\xe4\xb8\x81\xe4\xb8\x82",
         "\xe4\xb8\xad|\xe4\xb8\x81\xe4\xb8\x82|");
  static const char *const refused[] = {"(a)", "a+?", "(?:a*)*", "\\q", "[a", "(?:a", "a)",
                                        "a{2,1}", "\\p{Xx}", "*", "[b-a]", "\xff", "(?=a)",
                                        "a\\"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    const char *error;
    size_t at;
    oracle_regex *re = oracle_regex_try(classes, refused[i], &error, &at);
    if (!CHECK(re == NULL && error != NULL)) printf("  %s\n", refused[i]);
    oracle_regex_free(re);
  }
}

static void check_malformed(void) {
  const char *gpt2 = oracle_pattern("gpt2");
  SPLITS("", "a\xff b", "a\xff b|");
  SPLITS(gpt2, "a\xff\xfe" "b 1", "a|\xff\xfe|b| 1|");
  /* Lookahead sees the end of a stretch: the two blanks before the bad byte stay together. */
  SPLITS(gpt2, "x  \xff y", "x|  |\xff| y|");
  SPLITS(gpt2, "\xe4\xb8\xe4\xb8\xad\xe4", "\xe4\xb8|\xe4\xb8\xad|\xe4|");
  SPLITS(gpt2, "\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xf8",
         "\xc0\x80\xed\xa0\x80\xf4\x90\x80\x80\xf8|");
  SPLITS(gpt2, "\xf4\x8f\xbf\xbf\xef\xbf\xbf\xdf\xbf", "\xf4\x8f\xbf\xbf\xef\xbf\xbf\xdf\xbf|");
}

static void check_merging(void) {
  oracle_vocab *v = oracle_vocab_new();
  oracle_result out = {0};
  for (uint32_t b = 0; b < 26; b++) {
    const char c = (char)('a' + b);
    if (c != 'q') oracle_vocab_add(v, b, &c, 1);
  }
  oracle_vocab_add(v, 100, "ab", 2);
  oracle_vocab_add(v, 101, "bc", 2);
  oracle_vocab_add(v, 102, "abc", 3);
  oracle_vocab_merge(v, 0, 1, 2, 101);   /* b c */
  oracle_vocab_merge(v, 1, 0, 1, 100);   /* a b */
  oracle_vocab_merge(v, 2, 100, 2, 102); /* ab c: never reached, b c comes first */
  oracle_model m = {.vocab = v};
  oracle_encode(&m, "abcab", 5, NULL, 0, &out);
  CHECK(out.ids.n == 3 && out.ids.at[0] == 0 && out.ids.at[1] == 101 && out.ids.at[2] == 100);
  m.whole = true;
  oracle_encode(&m, "abc", 3, NULL, 0, &out);
  CHECK(out.ids.n == 1 && out.ids.at[0] == 102);
  m.by_rank = true; /* abcabc: ab first (100), then ab+c (102) */
  oracle_encode(&m, "abcabc", 6, NULL, 0, &out);
  CHECK(out.ids.n == 2 && out.ids.at[0] == 102 && out.ids.at[1] == 102);
  oracle_encode(&m, "abxq", 4, NULL, 0, &out);
  CHECK(out.failed && out.failed_at == 3);
  const oracle_special specials[] = {{"x", 1, 7}, {"xx", 2, 8}, {"xxb", 3, 9}};
  oracle_encode(&m, "xxxbaxxb", 8, specials, 3, &out);
  CHECK(!out.failed && out.ids.n == 5 && out.ids.at[0] == 8 && out.ids.at[1] == 7);
  CHECK(out.n_pieces == 4 && out.pieces[1].special && !out.pieces[2].special &&
        out.pieces[2].start == 3 && out.pieces[2].stop == 5 && out.pieces[2].n == 2);
  oracle_encode(&m, "", 0, specials, 3, &out);
  CHECK(out.ids.n == 0 && out.n_pieces == 0);
  oracle_result_clear(&out);
  oracle_vocab_free(v);
}

int main(int argc, char **argv) {
  const char *vectors = "tests/vectors", *encodings = "data/encodings";
  const char *class_file = "tests/vectors/unicode-classes.json";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--vectors") == 0) vectors = argv[i + 1];
    if (strcmp(argv[i], "--encodings") == 0) encodings = argv[i + 1];
    if (strcmp(argv[i], "--classes") == 0) class_file = argv[i + 1];
  }
  classes = oracle_classes_read(class_file);
  if (!CHECK(classes != NULL)) return test_summary();
  check_patterns();
  check_malformed();
  check_merging();
  static const struct {
    const char *file, *pattern;
  } split[] = {{"gpt2", "gpt2"},   {"cl100k", "cl100k"}, {"o200k", "o200k"},
               {"qwen2", "qwen2"}, {"tekken", "tekken"}, {"deepseek_v3", "deepseek3"}};
  for (size_t i = 0; i < sizeof split / sizeof *split; i++) {
    check_splits(vectors, "split_", split[i].file, split[i].pattern);
    check_splits(vectors, "splitcp_", split[i].file, split[i].pattern);
  }
  check_encoding(vectors, encodings, "gpt2", "r50k_base", "gpt2");
  check_encoding(vectors, encodings, "p50k_edit", "p50k_base", "gpt2");
  check_encoding(vectors, encodings, "cl100k_base", "cl100k_base", "cl100k");
  check_encoding(vectors, encodings, "o200k_harmony", "o200k_base", "o200k");
  oracle_classes_free(classes);
  return test_summary();
}
