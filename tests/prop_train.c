/* prop_train.c - random corpora through the trainer and through the oracle, which must agree.
**
**     prop_train [--cases N] [--seed S] [--only CASE] [--classes FILE] [--sabotage 1]
**
** A case is some short rows over few characters, so that ties and overlaps are the rule, with
** random weights and options. Checked: every merge and its count; ids; the number of tokens left;
** the figures; that threads and the order of rows change nothing; that rows which are pieces
** already give the same model; that a cut model is the smaller training; that no two tokens have
** equal bytes and each, taken as one piece, merges to itself. Every so often a case is large
** enough for threads to start. Seed and number decide everything: `--seed S --only CASE` repeats
** one. --sabotage 1 gives the oracle another tie rule, to show that a failure is one. Last line:
** N passed, N failed.
*/
#include "../src/merge.h"
#include "../src/model.h"

#include "oracle.h"
#include "unit.h"

enum { MAX_ROWS = 8, MAX_SPECIALS = 3, MAX_MERGES = 60, BIG_EVERY = 4000 };

typedef struct world {
  oracle_classes *classes;
  oracle_regex *regexes[12];
  const char *names[12];
  int n_patterns;
  uint64_t seed;
  bool sabotage;
} world;

typedef struct corpus {
  oracle_row rows[MAX_ROWS];
  char text[MAX_ROWS][160];
  size_t n;
  oracle_special specials[MAX_SPECIALS];
  bpe_name names[MAX_SPECIALS];
  uint32_t bos[2], eos[2];
  uint32_t merges; /* asked for */
  bpe_train_options o;
  oracle_train_options oracle;
} corpus;

/* The same numbers in every run. */
#define MIX_1 UINT64_C(0x9e3779b97f4a7c15)
#define MIX_2 UINT64_C(0xd6e8feb86659fd93)

static uint64_t mix(uint64_t x) {
  x *= MIX_2;
  return x ^ x >> 32;
}

static uint64_t state;

static uint32_t below(uint32_t n) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)((state >> 32) * n >> 32);
}

/* ---- Cases --------------------------------------------------------------------------------- */

static const char *const alphabets[][8] = {
    {"a", "b"},
    {"a", "b", "c", " "},
    {"a", "A", "b", "'s", " ", "\n", "1", "!"},
    {"\xe4\xb8\xad", "\xe6\x96\x87", "\xc3\xa9", " ", "x"},
    {"\xff", "\x80", "\xe4", "a", "\xc3", "\xa9"},
    {" ", "\t", "\n", "\xc2\xa0", "a", "_"},
    {"0", "1", "23", ".", "a", " a"},
    {"ab", "ba", "abab", "<", "|>", "aaa"},
};
enum { N_ALPHABETS = sizeof alphabets / sizeof *alphabets };

static size_t make_text(char *out, size_t cap) {
  const uint32_t which = below(N_ALPHABETS);
  uint32_t n_letters = 0;
  while (n_letters < 8 && alphabets[which][n_letters] != NULL) n_letters++;
  size_t len = 0;
  for (uint32_t n = below(below(4) == 0 ? 60 : 16); n > 0; n--) {
    const char *x = alphabets[which][below(n_letters)];
    if (len + strlen(x) > cap) break;
    memcpy(out + len, x, strlen(x));
    len += strlen(x);
  }
  if (len > 0 && below(16) == 0) out[below((uint32_t)len)] = 0;
  return len;
}

static uint64_t make_weight(void) {
  switch (below(8)) {
    case 0: return below(4);
    case 1: return UINT64_C(2500000000);
    default: return 1;
  }
}

static void make_specials(corpus *c) {
  static const char *const names[] = {"ab", "a", "<|", "aba", " a", "\xff", "b b", "<||>"};
  size_t n = below(3) == 0 ? 1 + below(MAX_SPECIALS) : 0;
  const uint32_t at = below(8);
  for (size_t i = 0; i < n; i++) {
    const char *x = names[(at + 3 * i) % 8];
    c->names[i] = (bpe_name){x, strlen(x)};
    c->specials[i] = (oracle_special){x, strlen(x), 0};
  }
  for (int i = 0; i < 2; i++) {
    c->bos[i] = n > 0 ? below((uint32_t)n) : 0;
    c->eos[i] = n > 0 ? below((uint32_t)n) : 0;
  }
  c->o.bos = c->bos;
  c->o.eos = c->eos;
  c->o.n_bos = n > 0 ? below(3) : 0;
  c->o.n_eos = n > 0 ? below(3) : 0;
  c->o.specials = c->names;
  c->o.n_specials = c->oracle.n_specials = n;
  c->oracle.specials = c->specials;
}

static void make_options(const world *w, corpus *c) {
  static const bpe_tie ties[] = {BPE_TIE_BYTES, BPE_TIE_IDS, BPE_TIE_FIRST};
  static const bpe_place places[] = {BPE_PLACE_LAST, BPE_PLACE_FIRST, BPE_PLACE_AFTER_BYTES};
  const int pattern = (int)below((uint32_t)w->n_patterns);
  c->o.pattern = w->names[pattern];
  c->o.pattern_len = strlen(w->names[pattern]);
  c->oracle.classes = w->classes;
  c->oracle.regex = w->regexes[pattern];
  c->oracle.skip_space = strcmp(w->names[pattern], "whitespace") == 0;
  c->o.pretokenized = c->oracle.pretokenized = below(8) == 0;
  uint32_t tie = below(3);
  const uint32_t place = below(3);
  c->o.tie = ties[tie];
  if (w->sabotage) tie = (tie + 1) % 3;
  c->oracle.tie = tie == 0 ? ORACLE_TIE_BYTES : tie == 1 ? ORACLE_TIE_IDS : ORACLE_TIE_FIRST;
  c->o.place = places[place];
  c->oracle.place = place == 0   ? ORACLE_SPECIALS_LAST
                    : place == 1 ? ORACLE_SPECIALS_FIRST
                                 : ORACLE_SPECIALS_AFTER_BYTES;
  c->o.gpt2_bytes = c->oracle.gpt2_bytes = below(2) == 0;
  c->o.min_frequency = c->oracle.min_frequency = below(3) == 0 ? below(5) : 0;
  c->o.max_token_length = c->oracle.max_token_length = below(4) == 0 ? 1 + below(6) : 0;
  c->o.threads = 1;
  c->merges = below(8) == 0 ? MAX_MERGES : below(20);
}

static void make_case(const world *w, uint64_t number, corpus *c) {
  state = (w->seed + 1) * MIX_1 ^ (number + 1) * MIX_2;
  for (int i = 0; i < 4; i++) below(2);
  memset(c, 0, sizeof *c);
  c->n = below(MAX_ROWS);
  for (size_t i = 0; i < c->n; i++) {
    const size_t len = make_text(c->text[i], sizeof c->text[i]);
    c->rows[i] = (oracle_row){c->text[i], len, make_weight()};
  }
  make_specials(c);
  make_options(w, c);
}

/* ---- Checks -------------------------------------------------------------------------------- */

static bpe_model *train_rows(const oracle_row *rows, size_t n, uint32_t merges,
                             const bpe_train_options *o) {
  bpe_error e = {.status = BPE_OK};
  bpe_trainer *t = NULL;
  bpe_model *m = NULL;
  bpe_status st =
      bpe_trainer_new(&unit_alloc, 256 + (uint32_t)o->n_specials + merges, o, &e, &t);
  for (size_t i = 0; i < n && st == BPE_OK; i++)
    st = bpe_trainer_add(t, rows[i].text, rows[i].len, rows[i].weight, &e);
  if (st == BPE_OK) st = bpe_trainer_finish(t, &e, &m);
  if (!CHECK(st == BPE_OK && m != NULL)) printf("  %s\n", e.text);
  bpe_trainer_free(t);
  return m;
}

/* Whether b, which is given up, is the same as a. */
static bool is_same(const bpe_model *a, bpe_model *b) {
  uint8_t x[32], y[32];
  if (b == NULL) return false;
  if (bpe_model_digest(a, NULL, x) != BPE_OK) return false;
  if (bpe_model_digest(b, NULL, y) != BPE_OK) return false;
  bool same = memcmp(x, y, sizeof x) == 0;
  bpe_info ia, ib;
  bpe_model_info(a, &ia);
  bpe_model_info(b, &ib);
  for (size_t i = 0; i < ia.merge_count && i < ib.merge_count; i++)
    same &= bpe_model_merge(a, i).count == bpe_model_merge(b, i).count;
  bpe_model_free(b);
  return same;
}

static uint64_t figure(const bpe_info *info, const char *key) {
  char text[512], name[64];
  snprintf(text, sizeof text, "%.*s", (int)info->stats_len, info->stats);
  snprintf(name, sizeof name, "\"%s\":", key);
  const char *at = strstr(text, name);
  return at != NULL ? strtoull(at + strlen(name), NULL, 10) : UINT64_MAX;
}

static bool check_merges(const corpus *c, const bpe_model *m) {
  oracle_trained expected[MAX_MERGES];
  uint64_t tokens;
  const size_t n =
      oracle_train(c->rows, c->n, &c->oracle, expected, c->merges, &tokens);
  bpe_info info;
  bpe_model_info(m, &info);
  bool good = CHECK_EQ_INT(info.merge_count, n) && CHECK_EQ_INT(figure(&info, "tokens"), tokens);
  for (size_t i = 0; i < n && good; i++) {
    const bpe_merge x = bpe_model_merge(m, i);
    good = CHECK_EQ_INT(x.left, expected[i].left) && CHECK_EQ_INT(x.right, expected[i].right) &&
           CHECK_EQ_INT(x.id, expected[i].id) && CHECK_EQ_INT(x.count, expected[i].count) &&
           CHECK_EQ_INT(x.rank, i);
  }
  return good;
}

/* Specials where they belong; what wraps a document; ids without holes. */
static bool check_ids(const corpus *c, const bpe_model *m) {
  bpe_info info;
  bpe_model_info(m, &info);
  const size_t n = c->o.n_specials, merges = info.merge_count;
  bool good = CHECK_EQ_INT(info.vocab_size, 256 + n + merges) &&
              CHECK_EQ_INT(info.token_count, 256 + n + merges);
  const size_t first = c->o.place == BPE_PLACE_FIRST ? 0
                       : c->o.place == BPE_PLACE_LAST ? 256 + merges
                                                      : 256;
  for (size_t i = 0; i < n && good; i++) {
    const bpe_token x = bpe_model_token(m, first + i);
    good = CHECK(x.kind == BPE_SPECIAL) &&
           CHECK_BYTES(x.bytes, x.len, c->names[i].text, c->names[i].len);
  }
  good &= CHECK_EQ_INT(info.n_bos, c->o.n_bos) && CHECK_EQ_INT(info.n_eos, c->o.n_eos);
  for (size_t i = 0; i < c->o.n_bos; i++) good &= CHECK_EQ_INT(info.bos[i], first + c->bos[i]);
  for (size_t i = 0; i < c->o.n_eos; i++) good &= CHECK_EQ_INT(info.eos[i], first + c->eos[i]);
  return good;
}

/* No two tokens have equal bytes; each one's bytes, as one piece, give that token. */
static bool check_theorem(const bpe_model *m) {
  merge_scratch scratch = {.alloc = unit_alloc};
  bool good = true;
  for (size_t i = 0; i < m->v.n_entries && good; i++) {
    const vocab_entry *x = &m->v.entries[i];
    if (x->kind != BPE_TOKEN) continue;
    size_t n = 0;
    good = vocab_find_bytes(&m->v, vocab_bytes(&m->v, x), x->len) == i &&
           merge_piece(&m->v, &scratch, vocab_bytes(&m->v, x), x->len, &n, NULL) == BPE_OK &&
           n == 1 && scratch.ids[0] == x->id;
  }
  merge_scratch_clear(&scratch);
  return CHECK(good);
}

/* The rows split by a walk, piece by piece, as rows of a training that does not split. */
static bool check_pretokenized(const corpus *c, const bpe_model *m) {
  bpe_error e = {.status = BPE_OK};
  bpe_trainer *t = NULL;
  bpe_model *again = NULL;
  bpe_coder *coder = NULL;
  bpe_walk *walk = NULL;
  bpe_finder *finder = NULL;
  bpe_train_options o = c->o;
  bpe_piece p;
  o.pretokenized = true;
  const uint32_t size = 256 + (uint32_t)o.n_specials + c->merges;
  bpe_status st = bpe_trainer_new(&unit_alloc, size, &o, &e, &t);
  if (st == BPE_OK) st = bpe_coder_new(m, 64, &e, &coder);
  if (st == BPE_OK) st = bpe_walk_new(coder, &e, &walk);
  if (st == BPE_OK) st = bpe_finder_new(m, NULL, 0, &e, &finder);
  const bpe_walk_options wo = {.allowed = finder, .split_only = true};
  for (size_t i = 0; i < c->n && st == BPE_OK; i++) {
    st = bpe_walk_start(walk, c->rows[i].text, c->rows[i].len, &wo, &e);
    while (st == BPE_OK && (st = bpe_walk_next(walk, &p, &e)) == BPE_OK)
      if (!p.special)
        st = bpe_trainer_add(t, c->rows[i].text + p.start, p.stop - p.start, c->rows[i].weight,
                             &e);
    if (st == BPE_DONE) st = BPE_OK;
  }
  if (st == BPE_OK) st = bpe_trainer_finish(t, &e, &again);
  const bool good = CHECK(st == BPE_OK && is_same(m, again));
  if (st != BPE_OK) printf("  %s\n", e.text);
  bpe_walk_free(walk);
  bpe_coder_free(coder);
  bpe_finder_free(finder);
  bpe_trainer_free(t);
  return good;
}

static bool check_cut(const corpus *c, const bpe_model *m) {
  bpe_info info;
  bpe_error e = {.status = BPE_OK};
  bpe_model *cut;
  bpe_model_info(m, &info);
  const uint32_t merges = below((uint32_t)info.merge_count + 1);
  if (!CHECK(bpe_model_cut(m, 256 + (uint32_t)c->o.n_specials + merges, &e, &cut) == BPE_OK)) {
    printf("  %s\n", e.text);
    return false;
  }
  bpe_model *smaller = train_rows(c->rows, c->n, merges, &c->o);
  const bool good = smaller != NULL && CHECK(is_same(smaller, cut));
  bpe_model_free(smaller);
  return good;
}

static void shuffle(oracle_row *rows, size_t n) {
  for (size_t i = n; i > 1; i--) {
    const size_t k = below((uint32_t)i);
    const oracle_row x = rows[k];
    rows[k] = rows[i - 1];
    rows[i - 1] = x;
  }
}

static bool check_case(const world *w, uint64_t number) {
  corpus c;
  make_case(w, number, &c);
  bpe_model *m = train_rows(c.rows, c.n, c.merges, &c.o);
  if (m == NULL) return false;
  bool good = check_merges(&c, m) && check_ids(&c, m) && check_theorem(m) && check_cut(&c, m);
  if (good && !c.o.pretokenized) good = check_pretokenized(&c, m);
  if (good && c.o.tie != BPE_TIE_FIRST) {
    shuffle(c.rows, c.n);
    c.o.threads = 2;
    good = CHECK(is_same(m, train_rows(c.rows, c.n, c.merges, &c.o)));
  }
  bpe_model_free(m);
  return good;
}

/* ---- Large cases --------------------------------------------------------------------------- */

/* One row of some hundred KB now and then, many short ones; few pieces, or many. */
static bool check_big_case(const world *w, uint64_t number) {
  enum { BYTES = 3000000, ROWS = 40000 };
  corpus c;
  make_case(w, number, &c);
  char *text = malloc(BYTES + 64);
  oracle_row *rows = malloc(ROWS * sizeof *rows);
  if (text == NULL || rows == NULL) abort();
  const uint32_t n_words = 4 + below(below(2) == 0 ? 60000 : 100), longest = 1 + below(12);
  size_t len = 0, n = 0;
  while (len < BYTES) {
    uint64_t word = below(n_words) * MIX_1;
    for (uint64_t k = 2 + word % longest; k > 0; k--, word = mix(word))
      text[len++] = (char)('a' + (word >> 40) % 17);
    text[len++] = below(90) == 0 ? '\n' : ' ';
  }
  len = BYTES;
  for (size_t at = 0; at < len && n < ROWS; n++) {
    size_t part = below(40) == 0 ? below(700000) : below(400);
    if (part > len - at) part = len - at;
    rows[n] = (oracle_row){text + at, part, 1 + below(2)};
    at += part;
  }
  bpe_model *m = train_rows(rows, n, 300, &c.o);
  bool good = m != NULL && check_theorem(m);
  for (unsigned threads = 2; threads <= 7 && good; threads += 5) {
    if (c.o.tie != BPE_TIE_FIRST) shuffle(rows, n);
    c.o.threads = threads;
    good = CHECK(is_same(m, train_rows(rows, n, 300, &c.o)));
  }
  bpe_model_free(m);
  free(rows);
  free(text);
  return good;
}

/* ---- Main ---------------------------------------------------------------------------------- */

static bool make_world(world *w, const char *classes) {
  static const char *const names[] = {"gpt2", "cl100k", "o200k", "llama3", "qwen2", "tekken",
                                      "whitespace", "words", "none"};
  w->classes = oracle_classes_read(classes);
  if (w->classes == NULL) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *published = oracle_pattern(names[i]);
    w->names[i] = names[i];
    if (published[0] != 0) w->regexes[i] = oracle_regex_new(w->classes, published);
    w->n_patterns++;
  }
  return true;
}

int main(int argc, char **argv) {
  world w = {.seed = 1};
  uint64_t cases = 100000, only = UINT64_MAX;
  const char *classes = "tests/vectors/unicode-classes.json";
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--cases") == 0) cases = strtoull(argv[i + 1], NULL, 10);
    else if (strcmp(argv[i], "--seed") == 0) w.seed = strtoull(argv[i + 1], NULL, 10);
    else if (strcmp(argv[i], "--only") == 0) only = strtoull(argv[i + 1], NULL, 10);
    else if (strcmp(argv[i], "--classes") == 0) classes = argv[i + 1];
    else if (strcmp(argv[i], "--sabotage") == 0) w.sabotage = atoi(argv[i + 1]) != 0;
  }
  printf("prop_train: seed %llu, %llu cases\n", (unsigned long long)w.seed,
         (unsigned long long)cases);
  if (!CHECK(make_world(&w, classes))) return test_summary();
  for (uint64_t k = only == UINT64_MAX ? 0 : only; k < cases && test_failed == 0; k++) {
    const bool big = k % BIG_EVERY == BIG_EVERY - 1;
    if (!(big ? check_big_case(&w, k) : check_case(&w, k)))
      printf("  --seed %llu --only %llu\n", (unsigned long long)w.seed, (unsigned long long)k);
    if (only != UINT64_MAX) break;
  }
  for (int i = 0; i < w.n_patterns; i++) oracle_regex_free(w.regexes[i]);
  oracle_classes_free(w.classes);
  return unit_summary();
}
