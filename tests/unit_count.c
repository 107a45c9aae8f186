/* unit_count.c - the table of pieces, the reader that fills it, and the crew of threads. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#endif
#include "../src/crew.h"
#include "../src/pool.h"

#include <time.h>

#include "unit.h"

static count_key key_of(const char *s, size_t len) {
  return count_key_of((const uint8_t *)s, len, len);
}

/* Adds once; grows the table as an owner would. */
static bool add(count_table *t, const char *s, size_t len, uint64_t weight, uint64_t first) {
  const count_key k = key_of(s, len);
  while (!count_add(t, &k, (const uint8_t *)s, len, weight, first))
    if (count_grow(t, &unit_alloc, len, NULL, NULL, NULL) != BPE_OK) return false;
  return true;
}

/* The entry of a piece, or NULL. */
static const count_entry *find(const count_table *t, const char *s, size_t len) {
  uint8_t room[16];
  for (size_t i = 0; i < t->n; i++) {
    size_t n;
    const uint8_t *p = count_bytes(t, &t->entries[i], room, &n);
    if (n == len && memcmp(p, s, len) == 0) return &t->entries[i];
  }
  return NULL;
}

static void check_keys(void) {
  uint8_t a[64], b[64];
  for (size_t i = 0; i < sizeof a; i++) a[i] = (uint8_t)(i + 1);
  for (size_t len = 0; len <= 40; len++) {
    memset(b, 0xee, sizeof b);
    memcpy(b, a, len);
    const count_key x = count_key_of(a, len, len), y = count_key_of(b, len, sizeof b);
    CHECK(x.word[0] == y.word[0] && x.word[1] == y.word[1]); /* what is behind does not matter */
    CHECK(count_is_long(&x) == (len > COUNT_SHORT));
  }
  /* A piece that ends in NUL is not the one without. */
  const count_key x = key_of("a\0", 2), y = key_of("a", 1);
  CHECK(x.word[1] != y.word[1]);
}

static void check_table(void) {
  static const char long_form[] = "%d-long-enough-for-the-slab";
  count_table t;
  CHECK(count_init(&t, &unit_alloc, 4, 0, NULL) == BPE_OK);
  char text[40];
  for (int round = 1; round <= 3; round++)
    for (int i = 0; i < 5000; i++) {
      const int n = snprintf(text, sizeof text, i % 3 == 0 ? long_form : "%d", i);
      CHECK(add(&t, text, (size_t)n, (uint64_t)round, (uint64_t)(9000 - i - round)));
    }
  CHECK_EQ_INT(t.n, 5000);
  for (int i = 0; i < 5000; i += 77) {
    const int n = snprintf(text, sizeof text, i % 3 == 0 ? long_form : "%d", i);
    const count_entry *x = find(&t, text, (size_t)n);
    if (!CHECK(x != NULL)) continue;
    CHECK_EQ_INT(x->count, 6);
    CHECK_EQ_INT(x->first, 9000 - i - 3); /* the lowest that came */
  }
  CHECK(!t.overflow);
  CHECK(add(&t, "7", 1, COUNT_MAX - 6, 0));
  CHECK(!t.overflow && find(&t, "7", 1)->count == COUNT_MAX);
  CHECK(add(&t, "7", 1, 1, 0));
  CHECK(add(&t, "7", 1, COUNT_MAX, 0));
  CHECK(t.overflow && find(&t, "7", 1)->count == COUNT_MAX + 1);
  count_reset(&t);
  CHECK(t.n == 0 && !t.overflow && find(&t, "7", 1) == NULL);
  CHECK(add(&t, "", 0, 1, 0));
  CHECK(find(&t, "", 0) != NULL);
  count_clear(&t, &unit_alloc);
}

/* A table that cannot grow is as it was. */
static void check_growth_fails(void) {
  count_table t;
  char text[8];
  CHECK(count_init(&t, &unit_alloc, 40, 64, NULL) == BPE_OK);
  for (int i = 0; i < 40; i++) add(&t, text, (size_t)snprintf(text, sizeof text, "%d", i), 1, 0);
  const count_key k = key_of("the forty-first piece", 21);
  CHECK(!count_add(&t, &k, (const uint8_t *)"the forty-first piece", 21, 1, 0));
  for (size_t fail = 1; fail <= 2; fail++) {
    unit_fail(fail, false);
    const bpe_status st = count_grow(&t, &unit_alloc, 21000, NULL, NULL, NULL);
    CHECK(st == BPE_NOMEM && t.n == 40 && find(&t, "39", 2)->count == 1);
    unit_fail(0, false);
    count_clear(&t, &unit_alloc);
    CHECK(count_init(&t, &unit_alloc, 40, 64, NULL) == BPE_OK);
    for (int i = 0; i < 40; i++) add(&t, text, (size_t)snprintf(text, sizeof text, "%d", i), 1, 0);
  }
  count_clear(&t, &unit_alloc);
}

/* ---- Reader -------------------------------------------------------------------------------- */

static bpe_pattern *pattern_of(const char *text, bool is_regex) {
  bpe_pattern *p = NULL;
  CHECK(bpe_pattern_new(&unit_alloc, text, strlen(text), is_regex, NULL, &p) == BPE_OK);
  return p;
}

static bpe_finder *finder_of(const char *const *names) {
  bpe_finder *f;
  CHECK(special_new(&unit_alloc, NULL, &f) == BPE_OK);
  for (uint32_t i = 0; names[i] != NULL; i++)
    CHECK(special_add(f, names[i], strlen(names[i]), i, 0, NULL) == BPE_OK);
  CHECK(special_seal(f, NULL) == BPE_OK);
  return f;
}

/* A row in a table that has room for one piece at a time, emptied again and again. */
static void check_resume(void) {
  static const char *const names[] = {"<|x|>", NULL};
  static const char text[] = "one two<|x|>two <|x|><|x|>three";
  static const char *const pieces[] = {"one", " two", "two", " ", "three"};
  bpe_pattern *p = pattern_of("gpt2", false);
  bpe_finder *f = finder_of(names);
  const reader_rules rules = {.specials = f};
  reader r = {.rules = &rules, .pattern = p};
  count_table t;
  size_t n = 0;
  CHECK(count_init(&t, &unit_alloc, 1, 0, NULL) == BPE_OK);
  reader_begin(&r, (const uint8_t *)text, sizeof text - 1, 3, 100);
  for (read_end end = READ_FULL; end == READ_FULL; n++) {
    end = reader_run(&r, &t, NULL);
    if (!CHECK(n < 5 && t.n == 1)) break;
    const count_entry *x = find(&t, pieces[n], strlen(pieces[n]));
    CHECK(x != NULL && x->count == 3 && x->first >= 100);
    count_reset(&t);
  }
  CHECK_EQ_INT(n, 5);
  reader_clear(&r);
  count_clear(&t, &unit_alloc);
  bpe_finder_free(f);
  bpe_pattern_free(p);
}

/* White space does not count where the pattern says so; malformed runs do. */
static void check_skip_space(void) {
  static const char text[] = " a\xc2\xa0 b\xff\xff\xe3\x80\x80\n";
  bpe_pattern *p = pattern_of("whitespace", false);
  const reader_rules rules = {.skip_space = true};
  reader r = {.rules = &rules, .pattern = p};
  count_table t;
  CHECK(count_init(&t, &unit_alloc, 40, 0, NULL) == BPE_OK);
  reader_begin(&r, (const uint8_t *)text, sizeof text - 1, 1, 0);
  CHECK(reader_run(&r, &t, NULL) == READ_DONE);
  CHECK_EQ_INT(t.n, 3);
  CHECK(find(&t, "a", 1) != NULL && find(&t, "b", 1) != NULL && find(&t, "\xff\xff", 2) != NULL);
  reader_clear(&r);
  count_clear(&t, &unit_alloc);
  bpe_pattern_free(p);
}

/* Special tokens across the windows in which they are looked for. */
static void check_windows(void) {
  enum { LEN = (1 << 21) + 100 };
  static const char *const names[] = {"<ab>", "<ab><abc>", NULL};
  bpe_pattern *p = pattern_of("none", false);
  bpe_finder *f = finder_of(names);
  const reader_rules rules = {.specials = f};
  char *text = malloc(LEN);
  if (text == NULL) abort();
  for (size_t at = (1 << 20) - 12; at < (1 << 20) + 3; at++) {
    reader r = {.rules = &rules, .pattern = p};
    size_t start, stop;
    memset(text, '<', LEN);
    memcpy(text + at, "<ab><abc>", 9);
    reader_begin(&r, (const uint8_t *)text, LEN, 1, 0);
    CHECK(reader_stretch(&r, &start, &stop, NULL) && start == 0 && stop == at);
    CHECK(reader_stretch(&r, &start, &stop, NULL) && start == at + 9 && stop == LEN);
    CHECK(!reader_stretch(&r, &start, &stop, NULL));
  }
  free(text);
  bpe_finder_free(f);
  bpe_pattern_free(p);
}

/* ---- Crew ---------------------------------------------------------------------------------- */

typedef struct text {
  char *bytes;
  size_t len;
} text;

/* Some MB of words, few or many distinct ones, with runs of one letter. */
static text make_text(size_t len, uint32_t n_words, uint32_t longest) {
  text x = {malloc(len + 64), 0};
  if (x.bytes == NULL) abort();
  while (x.len < len) {
    if (unit_below(20000) == 0) {
      const size_t run = unit_below(longest);
      memset(x.bytes + x.len, 'z', run < len - x.len ? run : len - x.len);
      x.len += run < len - x.len ? run : len - x.len;
    }
    uint32_t word = unit_below(n_words) + 1;
    for (uint32_t k = word; k != 0; k /= 11) x.bytes[x.len++] = (char)('a' + k % 11);
    x.bytes[x.len++] = word % 50 == 0 ? '\n' : ' ';
  }
  x.len = len;
  return x;
}

/* Sums that do not depend on the order of entries. */
typedef struct sums {
  uint64_t n, count, mixed;
} sums;

static sums sum_up(const count_table *t) {
  sums s = {.n = t->n};
  uint8_t room[16];
  for (size_t i = 0; i < t->n; i++) {
    size_t len;
    const uint8_t *p = count_bytes(t, &t->entries[i], room, &len);
    s.count += t->entries[i].count;
    s.mixed += (hash_bytes(p, len) ^ t->entries[i].first) * (2 * t->entries[i].count + 1);
  }
  return s;
}

static bpe_status run_crew(const text *x, size_t row, size_t workers, const bpe_pattern *p,
                           const bpe_finder *f, int (*stop)(void *), void *ctx, bpe_error *e,
                           sums *out) {
  const crew_options o = {.n_workers = workers, .pattern = p, .stop = stop, .stop_ctx = ctx,
                          .rules = {.specials = f}};
  crew *c;
  bpe_status st = crew_new(&unit_alloc, &o, e, &c);
  if (st != BPE_OK) return st;
  for (size_t at = 0; at < x->len && st == BPE_OK;) {
    size_t len = row;
    if (len > x->len - at) len = x->len - at;
    st = crew_add(c, (const uint8_t *)x->bytes + at, len, 1 + at % 2, at, e);
    at += len;
  }
  if (st == BPE_OK) st = crew_finish(c, e);
  if (st == BPE_OK) *out = sum_up(crew_total(c));
  crew_free(c);
  return st;
}

static void check_crew(const char *pattern, bool is_regex, uint32_t n_words, size_t row,
                       uint32_t longest) {
  static const char *const names[] = {"<|x|>", NULL};
  text x = make_text(3000000, n_words, longest);
  for (int i = 0; i < 100; i++) memcpy(x.bytes + unit_below(2900000), "<|x|>", 5);
  bpe_pattern *p = pattern_of(pattern, is_regex);
  bpe_finder *f = finder_of(names);
  sums one = {0};
  CHECK(run_crew(&x, row, 0, p, f, NULL, NULL, NULL, &one) == BPE_OK);
  for (size_t workers = 1; workers <= 6; workers += 5) {
    sums many = {0};
    bpe_error e = {.status = BPE_OK};
    if (!CHECK(run_crew(&x, row, workers, p, f, NULL, NULL, &e, &many) == BPE_OK))
      printf("  %s\n", e.text);
    CHECK(memcmp(&one, &many, sizeof one) == 0);
  }
  bpe_finder_free(f);
  bpe_pattern_free(p);
  free(x.bytes);
}

static int stop_after(void *ctx) {
  int *left = ctx;
  return (*left)-- <= 0;
}

/* A wish that is said only once is obeyed as well. */
static int stop_once(void *ctx) {
  int *left = ctx;
  return (*left)-- == 0;
}

/* Wherever it is stopped, the threads end and nothing is left. */
static void check_crew_stops(void) {
  text x = make_text(2000000, 50000, 300000);
  bpe_pattern *p = pattern_of("o200k", false);
  for (int asks = 0; asks < 24; asks++) {
    int left = asks / 2;
    bpe_error e = {.status = BPE_OK};
    sums s;
    CHECK(run_crew(&x, 3000, 3, p, NULL, asks % 2 == 0 ? stop_after : stop_once, &left, &e, &s) ==
          BPE_STOPPED);
    CHECK(unit_says(&e, BPE_STOPPED, e.offset, "interrupted"));
  }
  bpe_pattern_free(p);
  free(x.bytes);
}

/* Memory, and whether the question to stop is answered yes: once much of it was asked for. The first
** answer comes late, so that a worker has begun with what is there. */
typedef struct watched {
  bool much, asked;
} watched;

static void *watched_resize(void *ctx, void *p, size_t n) {
  watched *w = ctx;
  if (n >= (size_t)4 << 20) w->much = true;
  return unit_alloc.resize(unit_alloc.ctx, p, n);
}

static int had_much(void *ctx) {
  const struct timespec late = {.tv_nsec = 100000000};
  watched *w = ctx;
  if (!w->asked) (void)nanosleep(&late, NULL);
  w->asked = true;
  return w->much;
}

/* A match that is too deep for a worker is made for it by the owner, who can be stopped then, too:
** before the next attempt in the row, and not behind it. */
static void check_help_stops(void) {
  enum { DEEP = 40000, FLAT = 110000, ROWS = 3, BEFORE = 6 };
  /* Where pointers have 32 bits it takes half the memory, and a worker makes it; at twice the depth
  ** it is over the limit. */
  if (sizeof(void *) < 8) return;
  watched w = {false, false};
  const bpe_alloc a = {.resize = watched_resize, .ctx = &w};
  static const char deepest[] = "(?:(a)|b)*c|x|y| ";
  bpe_pattern *p;
  CHECK(bpe_pattern_new(&a, deepest, sizeof deepest - 1, true, NULL, &p) == BPE_OK);
  const crew_options o = {.n_workers = 1, .pattern = p, .stop = had_much, .stop_ctx = &w};
  uint8_t *deep = malloc(DEEP), *flat = malloc(FLAT);
  bpe_error e = {.status = BPE_OK};
  crew *c;
  if (deep == NULL || flat == NULL) abort();
  for (size_t i = 0; i < FLAT; i++) flat[i] = (uint8_t)("xy "[i % 3]);
  for (size_t i = 0; i < DEEP; i++) deep[i] = i < BEFORE ? flat[i] : (uint8_t)("ab"[i % 2]);
  bpe_status st = crew_new(&a, &o, &e, &c);
  if (st == BPE_OK) st = crew_add(c, deep, DEEP, 1, 0, &e);
  for (size_t i = 0; i < ROWS && st == BPE_OK; i++)
    st = crew_add(c, flat, FLAT, 1, DEEP + i * FLAT, &e);
  if (st == BPE_OK) st = crew_finish(c, &e);
  CHECK(st == BPE_STOPPED && e.offset >= BEFORE);
  CHECK(unit_says(&e, BPE_STOPPED, e.offset, "interrupted"));
  crew_free(c);
  bpe_pattern_free(p);
  free(deep);
  free(flat);
}

/* A regex that gives up does so on every thread with the same words. */
static void check_crew_fails(void) {
  text x = make_text(1500000, 1000, 300000);
  bpe_pattern *p = pattern_of("(?:[a-z]+[a-z]+)+!|x", true);
  memset(x.bytes + 600000, 'q', 100);
  for (size_t workers = 0; workers < 3; workers++) {
    bpe_error e = {.status = BPE_OK};
    sums s;
    CHECK(run_crew(&x, 4000, workers, p, NULL, NULL, NULL, &e, &s) == BPE_REGEXLIMIT);
    CHECK(strncmp(e.text, "regex gave up at byte ", 22) == 0);
  }
  bpe_pattern_free(p);
  free(x.bytes);
}

/* Memory that runs out on any request is a failure of the whole, or changes nothing. */
static void check_crew_memory(void) {
  text x = make_text(1200000, 60000, 300000);
  bpe_pattern *p = pattern_of("\\w+|\\W", true);
  sums one = {0}, s;
  CHECK(run_crew(&x, 5000, 0, p, NULL, NULL, NULL, NULL, &one) == BPE_OK);
  for (size_t k = 1; k < 60; k++) {
    unit_fail(k, k % 2 == 0);
    const bpe_status st = run_crew(&x, 5000, 2, p, NULL, NULL, NULL, NULL, &s);
    CHECK(st == BPE_NOMEM || (st == BPE_OK && memcmp(&one, &s, sizeof s) == 0));
    CHECK(st == BPE_OK || unit_memory.refused > 0);
    unit_fail(0, false);
  }
  bpe_pattern_free(p);
  free(x.bytes);
}

int main(void) {
  check_keys();
  check_table();
  check_growth_fails();
  check_resume();
  check_skip_space();
  check_windows();
  CHECK(pool_cores() >= 1 && pool_clock() > 0);
  check_crew("o200k", false, 2000, 3000, 300000);
  check_crew("gpt2", false, 200000, 100, 300000);
  check_crew("cl100k", false, 50000, 1500000, 300000); /* rows that are cut */
  check_crew("whitespace", false, 500, 200000, 300000);
  check_crew("none", false, 500, 150000, 300000);
  check_crew("\\p{N}", true, 50000, 1500000, 300000); /* scanners, but rows are not cut */
  check_crew("\\p{N}+", true, 50000, 200000, 300000);
  check_crew(" ?\\w+|\\s+|.", true, 100000, 20000, 300000);
  check_crew("(?:(a)|[b-z])*|\\s", true, 1000, 100000, 95000); /* matches too deep for a worker */
  check_crew_stops();
  check_help_stops();
  check_crew_fails();
  check_crew_memory();
  return unit_summary();
}
