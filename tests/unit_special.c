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
  CHECK(special_seal(f, NULL) == BPE_OK);
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

typedef struct clock {
  int asked, stop_at; /* stop_at 0: never */
} clock;

static int tick(void *ctx) {
  clock *c = ctx;
  return ++c->asked == c->stop_at;
}

/* A long name that nearly matches everywhere: asked about stopping by the work, not the text. */
static void check_long(void) {
  enum { NAME = 5000, TEXT = 100000 };
  char *name_text = malloc(NAME + 1), *other = malloc(NAME), *text = malloc(TEXT);
  if (name_text == NULL || other == NULL || text == NULL) return;
  memset(name_text, 'a', NAME);
  memset(other, 'a', NAME);
  memset(text, 'a', TEXT);
  name_text[NAME] = 'b';
  other[NAME - 1] = 'c';
  const name names[] = {{name_text, NAME + 1, 1}, {other, NAME, 2}, {"aab", 3, 3}};
  for (size_t n = 1; n <= 3; n++) {
    bpe_finder *f = finder_of(names, n);
    if (f == NULL) break;
    special_match m;
    clock c = {0, 0};
    bpe_error e = {.status = BPE_OK};
    const uint8_t *s = (const uint8_t *)text;
    CHECK_EQ_INT(special_find(f, s, 0, TEXT, tick, &c, &e, &m), BPE_OK);
    CHECK(m.start == TEXT && m.id == BPE_NONE && c.asked > 50);
    c = (clock){0, 3};
    CHECK_EQ_INT(special_find(f, s, 0, TEXT, tick, &c, &e, &m), BPE_STOPPED);
    CHECK(c.asked == 3 && m.start == TEXT && e.offset < TEXT / 10);
    text[TEXT - 7] = 'b';
    finds(f, text, TEXT, 0, TEXT - 7 - NAME, NAME + 1, 1);
    finds(f, text, TEXT, TEXT - NAME, n < 3 ? TEXT : TEXT - 9, n < 3 ? 0 : 3, n < 3 ? BPE_NONE : 3);
    text[TEXT - 7] = 'a';
    bpe_finder_free(f);
  }
  free(name_text);
  free(other);
  free(text);
}

static void check_limit(void) {
  bpe_finder *f;
  bpe_error e = {.status = BPE_OK};
  char *text = malloc(SPECIAL_MAX + 1);
  if (text == NULL || !CHECK(special_new(&unit_alloc, &e, &f) == BPE_OK)) return;
  memset(text, 'a', SPECIAL_MAX + 1);
  CHECK_EQ_INT(special_add(f, text, SPECIAL_MAX, 1, 0, &e), BPE_OK);
  CHECK_EQ_INT(special_add(f, text, SPECIAL_MAX + 1, 1, 0, &e), BPE_MISUSE);
  CHECK(unit_says(&e, BPE_MISUSE, 1, "special token is longer than 65535 bytes: 65536"));
  bpe_finder_free(f);
  free(text);
}

/* A name with these flags, "<s>" as 7. */
static bpe_finder *flagged(unsigned flags) {
  bpe_finder *f;
  if (!CHECK(special_new(&unit_alloc, NULL, &f) == BPE_OK)) return NULL;
  CHECK_EQ_INT(special_add(f, "<s>", 3, 7, flags, NULL), BPE_OK);
  CHECK(special_seal(f, NULL) == BPE_OK);
  return f;
}

/* A name that stands alone: beside a word character it does not count. */
static void check_word(void) {
  static const struct {
    const char *beside;
    bool word;
  } rows[] = {{"a", true},         {"2", true},         {"_", true},       {"\xc2\xb2", false},
              {"\xc2\xbd", false}, {"\xe2\x85\xa1", true}, {"\xd9\xa3", true}, {"-", false},
              {"\xe2\x91\xa0", false}, {"\xf0\x9f\xaf\xb9", true}, {"\xe4\xb8\xad", true}};
  bpe_finder *f = flagged(ENTRY_WORD);
  for (size_t i = 0; f != NULL && i < sizeof rows / sizeof rows[0]; i++) {
    char text[16];
    const size_t n = strlen(rows[i].beside);
    const int len = snprintf(text, sizeof text, "%s<s>", rows[i].beside);
    if (rows[i].word) finds(f, text, (size_t)len, 0, (size_t)len, 0, BPE_NONE);
    else finds(f, text, (size_t)len, 0, n, 3, 7);
  }
  bpe_finder_free(f);
}

/* Letters, marks and numbers apart, \w is a list of single characters and ranges: all their ends,
** and what is next to them. */
static void check_word_ends(void) {
  static const struct {
    uint32_t first, last;
  } ranges[] = {{0x5f, 0x5f},       {0x200c, 0x200d},   {0x203f, 0x2040},   {0x2054, 0x2054},
                {0x24b6, 0x24e9},   {0xfe33, 0xfe34},   {0xfe4d, 0xfe4f},   {0xff3f, 0xff3f},
                {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
  bpe_finder *f = flagged(ENTRY_WORD);
  for (size_t i = 0; f != NULL && i < sizeof ranges / sizeof *ranges; i++) {
    const uint32_t first = ranges[i].first, last = ranges[i].last;
    for (uint32_t cp = first - 1; cp <= last + 1; cp++) {
      uint8_t text[8];
      const size_t n = unit_write_char(cp, text);
      memcpy(text + n, "<s>", 3);
      const bool word = cp >= first && cp <= last;
      const bool found = special_next(f, text, 0, n + 3).id == 7;
      if (!CHECK(found == !word)) printf("  U+%04lX\n", (unsigned long)cp);
    }
  }
  bpe_finder_free(f);
}

/* Each flag does what it says and nothing of what another says. */
static void check_flags(void) {
  static const struct {
    unsigned flags;
    size_t start, len; /* of the match in " <s> " */
    bool in_word;      /* "a<s>b" has it too */
  } rows[] = {{0, 1, 3, true},
              {ENTRY_LATE, 1, 3, true},
              {ENTRY_WORD, 1, 3, false},
              {ENTRY_LSTRIP, 0, 4, true},
              {ENTRY_RSTRIP, 1, 4, true},
              {ENTRY_LSTRIP | ENTRY_RSTRIP, 0, 5, true},
              {ENTRY_WORD | ENTRY_LSTRIP, 0, 4, false},
              {ENTRY_WORD | ENTRY_RSTRIP, 1, 4, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bpe_finder *f = flagged(rows[i].flags);
    if (f == NULL) return;
    finds(f, " <s> ", 5, 0, rows[i].start, rows[i].len, 7);
    finds(f, "a<s>b", 5, 0, rows[i].in_word ? 1 : 5, rows[i].in_word ? 3 : 0,
          rows[i].in_word ? 7 : BPE_NONE);
    finds(f, "\t <s>\n ", 7, 1, rows[i].start == 0 ? 1 : 2,
          rows[i].len + (rows[i].flags & ENTRY_RSTRIP ? 1 : 0), 7); /* no further than `from` */
    bpe_finder_free(f);
  }
}

/* What a strip takes along is White_Space. */
static void check_strips(void) {
  static const uint32_t spaces[] = {0x09,   0x0a,   0x0d,   0x20,   0x85,   0xa0,  0x1680,
                                    0x2000, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000};
  static const uint32_t others[] = {0x08, 0x0e, 0x1f, 0x61, 0x180e, 0x200b, 0x2060, 0xfeff};
  uint8_t text[8];
  for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
    CHECK(special_strips(text, unit_write_char(spaces[i], text)));
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    CHECK(!special_strips(text, unit_write_char(others[i], text)));
  CHECK(!special_strips((const uint8_t *)"\xe3\x80", 2));
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
  check_long();
  check_limit();
  check_word();
  check_word_ends();
  check_flags();
  check_strips();
  check_random();
  return unit_summary();
}
