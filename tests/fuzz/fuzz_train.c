/* fuzz_train.c - any rows, weights and options through the trainer.
**
** Input: pattern, tie rule, places, limits, number of merges, special tokens, then rows, each its
** weight, its length and its bytes. The merges must be those of the oracle, which trains from the
** definition; the rows in reverse order, at times on three threads, must give the same model; a cut
** must be the smaller training. Run it in the project's folder: the oracle reads tests/vectors.
*/
#include "../oracle.h"
#include "fuzz.h"

enum { MAX_ROWS = 12, MAX_MERGES = 40, MAX_TEXT = 1500 };

static const char *const patterns[] = {"gpt2", "cl100k", "o200k",      "llama3", "qwen2",
                                       "tekken", "words", "whitespace", "none",   "[a-c]+|\\s"};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns, REGEX = N_PATTERNS - 1 };

typedef struct subject {
  bpe_train_options o;
  oracle_train_options oracle;
  oracle_special specials[3];
  bpe_name names[3];
  oracle_row rows[MAX_ROWS];
  size_t n_rows, bytes;
  uint32_t merges;
} subject;

static const oracle_classes *classes(void) {
  static oracle_classes *all;
  if (all == NULL) all = oracle_classes_read("tests/vectors/unicode-classes.json");
  REQUIRE(all != NULL);
  return all;
}

static void take_options(input *in, subject *s) {
  static oracle_regex *regexes[N_PATTERNS];
  const unsigned pattern = take(in, N_PATTERNS), tie = take(in, 3), place = take(in, 3);
  const unsigned flags = take(in, 4);
  const char *published = pattern == REGEX ? patterns[REGEX] : oracle_pattern(patterns[pattern]);
  if (regexes[pattern] == NULL && published[0] != 0)
    regexes[pattern] = oracle_regex_new(classes(), published);
  s->o = (bpe_train_options){
      .pattern = patterns[pattern],
      .pattern_len = strlen(patterns[pattern]),
      .is_regex = pattern == REGEX,
      .pretokenized = (flags & 1) != 0,
      .gpt2_bytes = (flags & 2) != 0,
      .tie = (bpe_tie)tie,
      .place = (bpe_place)place,
      .min_frequency = take(in, 4),
      .max_token_length = take(in, 9),
      .threads = 1,
  };
  s->oracle = (oracle_train_options){
      .classes = classes(),
      .regex = regexes[pattern],
      .pretokenized = s->o.pretokenized,
      .skip_space = strcmp(patterns[pattern], "whitespace") == 0,
      .tie = tie == 0 ? ORACLE_TIE_BYTES : tie == 1 ? ORACLE_TIE_IDS : ORACLE_TIE_FIRST,
      .place = place == 0   ? ORACLE_SPECIALS_LAST
               : place == 1 ? ORACLE_SPECIALS_FIRST
                            : ORACLE_SPECIALS_AFTER_BYTES,
      .gpt2_bytes = s->o.gpt2_bytes,
      .min_frequency = s->o.min_frequency,
      .max_token_length = s->o.max_token_length,
  };
  s->merges = take(in, MAX_MERGES + 1);
}

/* Names that are empty or given twice are left out: they are errors. */
static void take_specials(input *in, subject *s) {
  size_t n = 0;
  for (unsigned i = take(in, 4); i > 0; i--) {
    size_t len;
    const uint8_t *p = take_bytes(in, 1 + take(in, 4), &len);
    bool again = len == 0;
    for (size_t k = 0; k < n; k++)
      again |= s->names[k].len == len && memcmp(s->names[k].text, p, len) == 0;
    if (again) continue;
    s->names[n] = (bpe_name){(const char *)p, len};
    s->specials[n++] = (oracle_special){(const char *)p, len, 0};
  }
  s->o.specials = s->names;
  s->oracle.specials = s->specials;
  s->o.n_specials = s->oracle.n_specials = n;
}

static void take_rows(input *in, subject *s) {
  while (in->left > 0 && s->n_rows < MAX_ROWS && s->bytes < MAX_TEXT) {
    size_t len;
    const unsigned weight = take(in, 4), want = take(in, 256);
    const uint8_t *p = take_bytes(in, want, &len);
    s->rows[s->n_rows++] = (oracle_row){(const char *)p, len, weight == 3 ? 3000000000 : weight};
    s->bytes += len;
  }
}

static bpe_model *train(const subject *s, uint32_t merges, bool reversed) {
  bpe_error e = {.status = BPE_OK};
  bpe_trainer *t;
  bpe_model *m;
  bpe_train_options o = s->o;
  o.threads = reversed && merges % 2 == 1 ? 3 : 1; /* a thread takes longer than all the rest */
  REQUIRE(bpe_trainer_new(&fuzz_alloc, 256 + (uint32_t)o.n_specials + merges, &o, &e, &t) ==
          BPE_OK);
  for (size_t i = 0; i < s->n_rows; i++) {
    const oracle_row *x = &s->rows[reversed ? s->n_rows - 1 - i : i];
    REQUIRE(bpe_trainer_add(t, x->text, x->len, x->weight, &e) == BPE_OK);
  }
  REQUIRE(bpe_trainer_finish(t, &e, &m) == BPE_OK);
  bpe_trainer_free(t);
  return m;
}

static void require_same(const bpe_model *a, bpe_model *b) {
  uint8_t x[32], y[32];
  REQUIRE(bpe_model_digest(a, NULL, x) == BPE_OK);
  REQUIRE(bpe_model_digest(b, NULL, y) == BPE_OK);
  REQUIRE(memcmp(x, y, sizeof x) == 0);
  bpe_model_free(b);
}

static void compare(const subject *s, const bpe_model *m) {
  oracle_trained expected[MAX_MERGES];
  uint64_t tokens;
  const size_t n = oracle_train(s->rows, s->n_rows, &s->oracle, expected, s->merges, &tokens);
  bpe_info info;
  bpe_model_info(m, &info);
  REQUIRE(info.merge_count == n + sabotage());
  for (size_t i = 0; i < n; i++) {
    const bpe_merge x = bpe_model_merge(m, i);
    REQUIRE(x.left == expected[i].left && x.right == expected[i].right &&
            x.id == expected[i].id && x.count == expected[i].count);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {data, size};
  subject s = {.n_rows = 0};
  take_options(&in, &s);
  take_specials(&in, &s);
  take_rows(&in, &s);
  bpe_model *m = train(&s, s.merges, false), *cut;
  compare(&s, m);
  if (s.o.tie != BPE_TIE_FIRST) require_same(m, train(&s, s.merges, true));
  bpe_info info;
  bpe_model_info(m, &info);
  const uint32_t half = (uint32_t)info.merge_count / 2;
  REQUIRE(bpe_model_cut(m, 256 + (uint32_t)s.o.n_specials + half, NULL, &cut) == BPE_OK);
  bpe_model *smaller = train(&s, half, false);
  require_same(smaller, cut);
  bpe_model_free(smaller);
  /* What was asked for is all that there is; more, or less than bytes and specials, is refused. */
  const uint32_t least = 256 + (uint32_t)s.o.n_specials;
  REQUIRE(bpe_model_cut(m, least + s.merges, NULL, &cut) == BPE_OK);
  require_same(m, cut);
  REQUIRE(bpe_model_cut(m, least + s.merges + 1, NULL, &cut) == BPE_MISUSE);
  REQUIRE(bpe_model_cut(m, least - 1, NULL, &cut) == BPE_MISUSE);
  bpe_model_free(m);
  REQUIRE(fuzz_blocks == 0);
  return 0;
}
