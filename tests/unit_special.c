/* unit_special.c - finding names in text: leftmost, of those the longest; against trying all. */
#include "../src/special.h"

#include "unit.h"

typedef struct name {
  const char *text;
  size_t len;
  uint32_t id;
} name;

static bpe_finder *finder_of(const name *names, size_t n) {
  bpe_finder *f;
  bpe_error e = {.status = BPE_OK};
  if (!CHECK(special_new(&unit_alloc, &e, &f) == BPE_OK)) return NULL;
  for (size_t i = 0; i < n; i++)
    CHECK_EQ_INT(special_add(f, names[i].text, names[i].len, names[i].id, 0, &e), BPE_OK);
  special_seal(f);
  return f;
}

static bool finds(const bpe_finder *f, const char *text, size_t len, size_t from, size_t start,
                  size_t n, uint32_t id) {
  const special_match m = special_next(f, (const uint8_t *)text, from, len);
  const bool same = m.start == start && m.len == n && m.id == id;
  if (!CHECK(same))
    printf("  start %zu len %zu id %lu, expected %zu %zu %lu\n", m.start, m.len,
           (unsigned long)m.id, start, n, (unsigned long)id);
  return same;
}

static void check_examples(void) {
  static const name names[] = {
      {"<|a|>", 5, 1}, {"<|a|><|b|>", 10, 2}, {"<|endoftext|>", 13, 3}, {"<|end", 5, 4}};
  bpe_finder *f = finder_of(names, 4);
  if (f == NULL) return;
  finds(f, "x<|a|><|b|>", 11, 0, 1, 10, 2);
  finds(f, "x<|a|><|b|", 10, 0, 1, 5, 1);
  finds(f, "x<|a|><|b|>", 11, 2, 11, 0, BPE_NONE);
  finds(f, "<|endoftext|>", 13, 0, 0, 13, 3);
  finds(f, "<|endoftext|", 12, 0, 0, 5, 4);
  finds(f, "<|en<|endoftext|><|endoftext|>", 30, 0, 4, 13, 3);
  finds(f, "<|en<|endoftext|><|endoftext|>", 30, 17, 17, 13, 3);
  finds(f, "<|endof<|endoftext|>", 20, 0, 0, 5, 4);
  finds(f, "<<<|<|<|a|>", 11, 0, 6, 5, 1);
  finds(f, "", 0, 0, 0, 0, BPE_NONE);
  finds(f, "<|a|>", 5, 5, 5, 0, BPE_NONE);
  CHECK_EQ_INT(special_next(f, NULL, 0, 0).id, BPE_NONE);
  CHECK_EQ_INT(special_id(f, "<|a|>", 5, NULL), 1);
  CHECK_EQ_INT(special_id(f, "<|a|><|b|>", 10, NULL), 2);
  CHECK_EQ_INT(special_id(f, "<|a|><", 6, NULL), BPE_NONE);
  CHECK_EQ_INT(special_id(f, "<|a|", 4, NULL), BPE_NONE);
  CHECK_EQ_INT(special_id(f, "", 0, NULL), BPE_NONE);
  bpe_finder_free(f);
}

/* Only whole occurrences count, and they do not overlap when the search goes on behind one. */
static void check_overlap(void) {
  static const name names[] = {{"aba", 3, 7}};
  bpe_finder *f = finder_of(names, 1);
  if (f == NULL) return;
  finds(f, "ababa", 5, 0, 0, 3, 7);
  finds(f, "ababa", 5, 3, 5, 0, BPE_NONE);
  finds(f, "ababa", 5, 1, 2, 3, 7);
  bpe_finder_free(f);
}

static void check_duplicates(void) {
  static const name names[] = {
      {"b", 1, 5}, {"dup", 3, 9}, {"dup", 3, 2}, {"a", 1, 6}, {"dup", 3, 1}, {"du", 2, 8}};
  bpe_finder *f = finder_of(names, 6);
  if (f == NULL) return;
  CHECK_EQ_INT(special_id(f, "dup", 3, NULL), 9); /* the first added */
  CHECK_EQ_INT(special_id(f, "du", 2, NULL), 8);
  finds(f, "..dup", 5, 0, 2, 3, 9);
  bpe_finder_free(f);
}

static void check_binary(void) {
  static const name names[] = {
      {"\0", 1, 1}, {"\0\0x", 3, 2}, {"\xff\xfe", 2, 3}, {"\xff", 1, 4}, {"\xff\0", 2, 5}};
  bpe_finder *f = finder_of(names, 5);
  if (f == NULL) return;
  finds(f, "a\0\0y", 4, 0, 1, 1, 1);
  finds(f, "a\0\0x", 4, 0, 1, 3, 2);
  finds(f, "\xfe\xff\xfe", 3, 0, 1, 2, 3);
  finds(f, "\xff\xff\xfe", 3, 0, 0, 1, 4);
  finds(f, "\xff\0", 2, 0, 0, 2, 5);
  bpe_finder_free(f);
}

static void check_empty(void) {
  bpe_error e = {.status = BPE_OK};
  bpe_finder *f = finder_of(NULL, 0);
  if (f == NULL) return;
  finds(f, "anything", 8, 0, 8, 0, BPE_NONE);
  CHECK_EQ_INT(special_id(f, "x", 1, NULL), BPE_NONE);
  bpe_finder_free(f);
  bpe_finder_free(NULL);
  if (!CHECK(special_new(&unit_alloc, &e, &f) == BPE_OK)) return;
  CHECK_EQ_INT(special_add(f, "", 0, 1, 0, &e), BPE_MISUSE);
  CHECK(unit_says(&e, BPE_MISUSE, 0, "empty special token"));
  bpe_finder_free(f);
}

static special_match slow_next(const name *names, size_t n, const char *text, size_t from,
                               size_t len) {
  for (size_t i = from; i < len; i++) {
    special_match best = {len, 0, BPE_NONE};
    for (size_t k = 0; k < n; k++)
      if (names[k].len > best.len && names[k].len <= len - i &&
          memcmp(text + i, names[k].text, names[k].len) == 0)
        best = (special_match){i, names[k].len, names[k].id};
    if (best.len > 0) return best;
  }
  return (special_match){len, 0, BPE_NONE};
}

/* Few letters, so that names begin alike and texts nearly match. */
static void check_random(void) {
  for (int round = 0; round < 3000; round++) {
    char letters[10][8];
    name names[10];
    char text[64];
    const uint32_t kinds = 1 + unit_below(3);
    const size_t n = unit_below(11), len = unit_below(sizeof text);
    for (size_t i = 0; i < n; i++) {
      names[i] = (name){letters[i], 1 + unit_below(8), (uint32_t)i};
      for (size_t k = 0; k < names[i].len; k++) letters[i][k] = (char)(0x7f + unit_below(kinds));
    }
    for (size_t k = 0; k < len; k++) text[k] = (char)(0x7f + unit_below(kinds));
    bpe_finder *f = finder_of(names, n);
    if (f == NULL) return;
    for (size_t from = 0; from <= len; from++) {
      const special_match a = special_next(f, (const uint8_t *)text, from, len);
      const special_match b = slow_next(names, n, text, from, len);
      if (a.start != b.start || a.len != b.len || a.id != b.id)
        if (!finds(f, text, len, from, b.start, b.len, b.id)) break;
    }
    bpe_finder_free(f);
  }
}

int main(void) {
  check_examples();
  check_overlap();
  check_duplicates();
  check_binary();
  check_empty();
  check_random();
  return unit_summary();
}
