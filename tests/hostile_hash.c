/* hostile_hash.c - vocabularies and texts made to meet in one place of a table.
**
**     hostile_hash [--ext ./bpe] [--seed N] [--sabotage]
**
** Whoever knows the factors of hash.h can invert its hashes, and that is done here, with those that
** a process has before bpe_seed: thousands of tokens, pairs, ids and pieces of which all go to one
** slot. Then the process is seeded, as the extension does it, and the work on each set must be at
** most RATIO times that on a set of the same shape made at random; both are CPU time, the least of
** some runs, and SLACK_MS is what a clock may be off by. With --ext a built extension, which has to
** find a secret of its own, stores such vocabularies too. Other sets need no inverting: they differ where a hash might not look, or by what a
** weak one would let cancel out, or not at all.
**
** No answer may depend on the secret: digests and ids are the same before and after.
**
** Vocabularies are read through every door: the builder (as rows and BLOBs are), and the importer,
** which has tables of its own. With --sabotage nothing is seeded, and the sets that were made for
** that must be seen to be slow.
*/
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#endif
#include "../src/count.h"
#include "../src/vocab.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <time.h>

#include "unit.h"

enum { RATIO = 4, SLACK_MS = 2, RUNS = 3, FIRST_ID = 1000 };
enum { N_TOKENS = 16000, N_IDS = 8000, N_PAIRS = 16000, N_PIECES = 16000 };

static hash_factors known; /* to the attacker */
static uint64_t state = 1;

static uint64_t random_word(void) {
  state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t x = (state ^ state >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

/* ---- Sets of equally long strings ------------------------------------------------------------ */

typedef struct strings {
  uint8_t *bytes;
  size_t n, len;
} strings;

static strings strings_new(size_t n, size_t len) {
  strings s = {malloc(n * len), n, len};
  if (s.bytes == NULL) abort();
  for (size_t i = 0; i < n * len; i++) s.bytes[i] = (uint8_t)random_word();
  return s;
}

static void put(strings *s, size_t i, size_t at, uint64_t word) {
  memcpy(s->bytes + i * s->len + at, &word, sizeof word);
}

static uint64_t inverse(uint64_t odd) {
  uint64_t x = odd;
  for (int i = 0; i < 6; i++) x *= 2 - odd * x;
  return x;
}

/* As keys, k.low * a ^ k.high * b = i: upper halves of 0. */
static strings short_tokens(size_t n) {
  strings s = strings_new(n, 8);
  const uint64_t high = (uint64_t)8 << KEY_LAST;
  for (size_t i = 0; i < n; i++) put(&s, i, 0, (i ^ high * known.b) * inverse(known.a));
  return s;
}

/* The first sixteen bytes are any; the next undo what the hash made of them. */
static strings long_tokens(size_t n) {
  strings s = strings_new(n, 48);
  for (size_t i = 0; i < n; i++) {
    const uint64_t h = hash_step(hash_start(s.len), i, 7);
    put(&s, i, 0, i);
    put(&s, i, 8, 7);
    put(&s, i, 16, h);
    for (size_t k = 24; k < s.len; k += 8) put(&s, i, k, 7);
  }
  return s;
}

/* Every 16 bytes as they are, or with high bits turned over in both halves: in a hash of products
** that are cut to a word, with a shift of half a word after each, the second undoes the first,
** whatever the secret. */
static strings turned_tokens(size_t n, uint64_t first, uint64_t second) {
  strings s = strings_new(n, 16 * 17);
  for (size_t i = 1; i < n; i++) {
    memcpy(s.bytes + i * s.len, s.bytes, s.len);
    for (size_t k = 0; k < 16; k++) {
      if (!(i >> k & 1)) continue;
      uint64_t w[2];
      memcpy(w, s.bytes + 16 * k, sizeof w);
      put(&s, i, 16 * k, w[0] ^ first);
      put(&s, i, 16 * k + 8, w[1] ^ second);
    }
  }
  return s;
}

/* Different in the middle only, as far from both ends as can be. */
static strings middle_tokens(size_t n) {
  strings s = strings_new(n, 800);
  for (size_t i = 1; i < n; i++) {
    memcpy(s.bytes + i * s.len, s.bytes, s.len);
    put(&s, i, s.len / 2, i);
  }
  return s;
}

/* As pieces that are counted: a product with 0. */
static strings counted_pieces(size_t n) {
  strings s = strings_new(n, COUNT_SHORT);
  for (size_t i = 0; i < n; i++) {
    put(&s, i, 0, known.c);
    for (size_t k = 8; k < s.len; k++) s.bytes[i * s.len + k] = (uint8_t)(i >> 8 * (k - 8));
  }
  return s;
}

/* ---- Time ------------------------------------------------------------------------------------ */

static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

typedef bool job(const void *set);

static double least(job *work, const void *set, double so_far) {
  const double start = cpu_ms();
  CHECK(work(set));
  const double took = cpu_ms() - start;
  return took < so_far ? took : so_far;
}

static void compare(const char *what, job *work, const void *hostile, const void *benign) {
  double bad = 1e9, good = 1e9;
  for (int i = 0; i < RUNS; i++) {
    good = least(work, benign, good);
    bad = least(work, hostile, bad);
  }
  printf("%-36s %8.2f ms, at random %8.2f ms\n", what, bad, good);
  CHECK(bad <= RATIO * good + SLACK_MS);
}

/* ---- What is done with a set ----------------------------------------------------------------- */

static bpe_model *model_of(const strings *s) {
  bpe_builder *b = unit_builder("none");
  bpe_error e = {0};
  bpe_model *m = NULL;
  for (size_t i = 0; i < s->n; i++)
    bpe_builder_token(b, FIRST_ID + (uint32_t)i, BPE_TOKEN, s->bytes + i * s->len, s->len);
  bpe_builder_whole(b);
  if (bpe_builder_finish(b, &e, &m) != BPE_OK) printf("  %s\n", e.text);
  return m;
}

static bool build(const void *set) {
  bpe_model *m = model_of(set);
  bpe_model_free(m);
  return m != NULL;
}

/* Every token is encoded, and a text that is nearly one. */
static bool find(const void *set) {
  const strings *s = set;
  bpe_model *m = model_of(s);
  bpe_coder *c = NULL;
  bpe_walk *w = NULL;
  bpe_piece p;
  size_t wrong = m == NULL;
  if (!wrong) wrong = bpe_coder_new(m, 0, NULL, &c) != BPE_OK || bpe_walk_new(c, NULL, &w) != BPE_OK;
  uint8_t *text = malloc(s->len);
  for (size_t i = 0; i < 2 * s->n && !wrong; i++) {
    memcpy(text, s->bytes + i / 2 * s->len, s->len);
    text[s->len - 1] ^= i % 2;
    wrong = bpe_walk_start(w, text, s->len, NULL, NULL) != BPE_OK ||
            bpe_walk_next(w, &p, NULL) != BPE_OK;
    if (i % 2 == 0) wrong |= p.n_ids != 1 || p.ids[0] != FIRST_ID + i / 2;
  }
  free(text);
  bpe_walk_free(w);
  bpe_coder_free(c);
  bpe_model_free(m);
  return !wrong;
}

/* {"pattern": "none", "vocab": {id: hex, ...}, "merges": []}; ids NULL: one after the other. */
static char *description(const strings *s, const uint32_t *ids) {
  static const char hex[] = "0123456789abcdef";
  char *text = malloc(100 + (256 + s->n) * (2 * s->len + 20)), *to = text;
  if (text == NULL) abort();
  to += sprintf(to, "{\"pattern\":\"none\",\"merges\":[],\"vocab\":{\"0\":\"00\"");
  for (unsigned c = 1; c < 256; c++) to += sprintf(to, ",\"%u\":\"%02x\"", c, c);
  for (size_t i = 0; i < s->n; i++) {
    to += sprintf(to, ",\"%lu\":\"", (unsigned long)(ids != NULL ? ids[i] : FIRST_ID + i));
    for (size_t k = 0; k < s->len; k++) {
      *to++ = hex[s->bytes[i * s->len + k] >> 4];
      *to++ = hex[s->bytes[i * s->len + k] & 15];
    }
    *to++ = '"';
  }
  strcpy(to, "}}");
  return text;
}

static bool import(const void *text) {
  bpe_model *m = NULL;
  bpe_error e = {0};
  if (bpe_import(&unit_alloc, text, strlen(text), NULL, 0, NULL, &e, &m) != BPE_OK)
    printf("  %s\n", e.text);
  bpe_model_free(m);
  return m != NULL;
}

static bool train(const void *set) {
  const strings *s = set;
  const bpe_train_options o = {.pattern = "none", .pattern_len = 4, .pretokenized = true,
                               .threads = 1};
  bpe_trainer *t = NULL;
  bpe_model *m = NULL;
  bpe_error e = {0};
  bpe_status st = bpe_trainer_new(&unit_alloc, 256, &o, &e, &t);
  for (size_t i = 0; i < s->n && st == BPE_OK; i++)
    st = bpe_trainer_add(t, s->bytes + i * s->len, s->len, 1, &e);
  if (st == BPE_OK) st = bpe_trainer_finish(t, &e, &m);
  bpe_trainer_free(t);
  bpe_model_free(m);
  return st == BPE_OK;
}

/* ---- Ids and pairs --------------------------------------------------------------------------- */

static const char *extension; /* NULL: none */

/* In a process's first connection or a later one: the extension seeds itself when it is loaded. */
static bool store(const void *text) {
  sqlite3 *db = NULL;
  sqlite3_stmt *s = NULL;
  bool ok = sqlite3_open(":memory:", &db) == SQLITE_OK &&
            sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL) == SQLITE_OK &&
            sqlite3_load_extension(db, extension, NULL, NULL) == SQLITE_OK &&
            sqlite3_prepare_v2(db, "INSERT INTO bpe_tokenizers(name, source) VALUES('m', ?1)", -1, &s,
                               NULL) == SQLITE_OK &&
            sqlite3_bind_text(s, 1, text, -1, SQLITE_STATIC) == SQLITE_OK &&
            sqlite3_step(s) == SQLITE_DONE;
  if (!ok) printf("  %s\n", sqlite3_errmsg(db));
  sqlite3_finalize(s);
  sqlite3_close(db);
  return ok;
}

/* Ids whose place among 2^15 is the same. */
static uint32_t *meeting_ids(size_t n) {
  uint32_t *ids = malloc(n * sizeof *ids);
  if (ids == NULL) abort();
  size_t k = 0;
  for (uint32_t id = FIRST_ID; k < n && id < BPE_NONE - 1; id++)
    if ((hash_step(hash_start(sizeof id), id, 0) >> 32 & 0x7fff) == 0) ids[k++] = id;
  if (k < n) abort();
  return ids;
}

typedef struct pairs {
  uint32_t left[N_PAIRS], right[N_PAIRS];
  size_t n, n_lines;
} pairs;

enum { PAIR_IDS = 12000, LINES = N_PAIRS / 6, NEAR_LINES = 64 };

static bool is_near(uint32_t left, uint32_t right) {
  const uint64_t hash = left * known.a ^ right * known.b;
  return ((hash >> 32) * (LINES + 1)) >> 32 < NEAR_LINES;
}

/* Pairs of ids that go to the first of a table's lines, or, not near, any. */
static void find_pairs(pairs *p, bool near) {
  p->n = 0;
  for (uint32_t l = 0; l < PAIR_IDS && p->n < N_PAIRS; l++) {
    const size_t most = p->n + 40;
    uint32_t r = (uint32_t)(random_word() % PAIR_IDS);
    for (uint32_t k = 0; k < PAIR_IDS && p->n < most && p->n < N_PAIRS; k++) {
      if (!near || is_near(l, r)) {
        p->left[p->n] = l;
        p->right[p->n++] = r;
      }
      r = r + 1 == PAIR_IDS ? 0 : r + 1;
    }
  }
  if (p->n < N_PAIRS) abort();
}

/* The table of merges, filled, and asked for every pair and one that is not there. */
static bool fill_pairs(const void *set) {
  static vocab_merge merges[N_PAIRS];
  const pairs *p = set;
  pair_map m;
  size_t wrong = 0;
  uint32_t id;
  for (size_t i = 0; i < N_PAIRS; i++)
    merges[i] = (vocab_merge){(uint32_t)i, p->left[i], p->right[i], PAIR_IDS + (uint32_t)i};
  pace nobody = {0};
  if (pair_map_init(&m, &unit_alloc, merges, N_PAIRS, PAIR_IDS + N_PAIRS, &nobody, NULL) != BPE_OK)
    abort();
  for (size_t i = 0; i < N_PAIRS; i++) wrong += !pair_map_add(&m, i);
  for (size_t i = 0; i < N_PAIRS; i++) {
    wrong += pair_map_find(&m, p->left[i], p->right[i], &id) != i || id != merges[i].id;
    wrong += pair_map_find(&m, p->left[i], PAIR_IDS + p->right[i], &id) != BPE_NONE;
  }
  pair_map_clear(&m, &unit_alloc);
  return wrong == 0;
}

/* ---- What must not depend on it --------------------------------------------------------------- */

/* Digests of a tokenizer trained with the tie rule that looks at order, of one imported, and a sum
** over ids. Nothing of what they are made with outlives the call. */
typedef struct answers {
  uint8_t trained[32], imported[32];
  uint64_t ids;
} answers;

static answers ask(void) {
  static const char text[] = "The cat ate the hat; the bat sat.\n\n\tIt\xe2\x80\x99s 12345 \xff\xfe!";
  const bpe_train_options o = {.tie = BPE_TIE_FIRST, .threads = 2};
  bpe_trainer *t = NULL;
  bpe_model *m = NULL;
  bpe_coder *c = NULL;
  bpe_walk *w = NULL;
  bpe_piece p;
  answers a = {.ids = 1};
  bool ok = bpe_trainer_new(&unit_alloc, 300, &o, NULL, &t) == BPE_OK;
  for (int i = 0; i < 500 && ok; i++)
    ok = bpe_trainer_add(t, text + i % 20, sizeof text - 1 - (size_t)(i % 20), 1 + (uint64_t)i % 3,
                         NULL) == BPE_OK;
  if (CHECK(ok && bpe_trainer_finish(t, NULL, &m) == BPE_OK))
    CHECK(bpe_model_digest(m, NULL, a.trained) == BPE_OK);
  bpe_trainer_free(t);
  bpe_model_free(m);
  const char *merges = "{\"pattern\":\"gpt2\",\"merges\":[[97,116],[104,101],[116,257],[99,256]]}";
  if (CHECK(bpe_import(&unit_alloc, merges, strlen(merges), NULL, 0, NULL, NULL, &m) == BPE_OK))
    CHECK(bpe_model_digest(m, NULL, a.imported) == BPE_OK);
  bpe_model_free(m);
  for (int which = 0; bpe_builtin_name(which) != NULL; which++) {
    ok = bpe_builtin_load(&unit_alloc, which, NULL, &m) == BPE_OK &&
         bpe_coder_new(m, 0, NULL, &c) == BPE_OK && bpe_walk_new(c, NULL, &w) == BPE_OK &&
         bpe_walk_start(w, text, sizeof text - 1, NULL, NULL) == BPE_OK;
    CHECK(ok);
    while (ok && bpe_walk_next(w, &p, NULL) == BPE_OK)
      for (size_t i = 0; i < p.n_ids; i++) a.ids = a.ids * 31 + p.ids[i];
    bpe_walk_free(w);
    bpe_coder_free(c);
    bpe_model_free(m);
  }
  return a;
}

static void check_answers(const answers *a, const answers *b) {
  CHECK_BYTES(a->trained, 32, b->trained, 32);
  CHECK_BYTES(a->imported, 32, b->imported, 32);
  CHECK(a->ids == b->ids && a->ids != 1);
}

static void check_fold(void) {
  size_t wrong = 0;
  for (int i = 0; i < 10000; i++) {
    const uint64_t x = random_word() >> i % 64, y = random_word();
    wrong += hash_fold(x, y) != hash_fold_plain(x, y);
  }
  CHECK_EQ_INT(wrong, 0);
  CHECK(hash_fold(UINT64_MAX, UINT64_MAX) == hash_fold_plain(UINT64_MAX, UINT64_MAX));
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void check_strings(const char *what, strings hostile) {
  char name[80];
  strings benign = strings_new(hostile.n, hostile.len);
  snprintf(name, sizeof name, "%s: builder", what);
  compare(name, build, &hostile, &benign);
  snprintf(name, sizeof name, "%s: encoder", what);
  compare(name, find, &hostile, &benign);
  char *bad = description(&hostile, NULL), *good = description(&benign, NULL);
  snprintf(name, sizeof name, "%s: importer", what);
  compare(name, import, bad, good);
  snprintf(name, sizeof name, "%s: extension", what);
  if (extension != NULL) compare(name, store, bad, good);
  free(bad);
  free(good);
  snprintf(name, sizeof name, "%s: trainer", what);
  compare(name, train, &hostile, &benign);
  free(hostile.bytes);
  free(benign.bytes);
}

static void check_ids(uint32_t *hostile) {
  strings s = strings_new(N_IDS, 8);
  uint32_t *benign = malloc(N_IDS * sizeof *benign);
  if (benign == NULL) abort();
  for (size_t i = 0; i < N_IDS; i++) benign[i] = hostile[i] + (uint32_t)(random_word() % 1000);
  char *bad = description(&s, hostile), *good = description(&s, benign);
  compare("ids of one place: importer", import, bad, good);
  free(bad);
  free(good);
  free(benign);
  free(hostile);
  free(s.bytes);
}

/* Rows may give the same bytes to any number of ids. */
static void check_equal(void) {
  strings same = strings_new(N_TOKENS, 8), benign = strings_new(N_TOKENS, 8);
  for (size_t i = 1; i < same.n; i++) memcpy(same.bytes + i * same.len, same.bytes, same.len);
  compare("equal tokens: builder", build, &same, &benign);
  free(same.bytes);
  free(benign.bytes);
}

int main(int argc, char **argv) {
  uint8_t seed[BPE_SEED_BYTES];
  bool sabotage = false;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--sabotage") == 0) sabotage = true;
    else if (strcmp(argv[i], "--ext") == 0 && i + 1 < argc) extension = argv[++i];
    else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc) state = strtoull(argv[++i], NULL, 10);
    else return 2;
  }
  printf("seed %llu\n", (unsigned long long)state);
  known = hash_secret;
  static pairs near, any;
  find_pairs(&near, true);
  find_pairs(&any, false);
  uint32_t *ids = meeting_ids(N_IDS);
  const strings sets[] = {short_tokens(N_TOKENS), long_tokens(N_TOKENS), counted_pieces(N_PIECES),
                          turned_tokens(N_TOKENS, UINT64_C(1) << 63, UINT64_C(0x8000000080000000)),
                          turned_tokens(N_TOKENS, UINT64_C(1) << 63, UINT64_C(1) << 63),
                          middle_tokens(N_TOKENS / 4)};
  static const char *const names[] = {"short tokens",  "long tokens", "counted pieces",
                                      "bits undone", "highest bits", "middles"};
  const answers before = ask();
  for (size_t i = 0; i < sizeof seed; i++) seed[i] = (uint8_t)random_word();
  if (!sabotage) bpe_seed(seed);
  CHECK(sabotage == (hash_secret.a == known.a && hash_secret.b == known.b));
  const answers after = ask();
  check_answers(&before, &after);
  check_fold();
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) check_strings(names[i], sets[i]);
  check_ids(ids);
  compare("pairs of one place: table", fill_pairs, &near, &any);
  check_equal();
  CHECK_EQ_INT(unit_memory.blocks, 0);
  return test_summary();
}
