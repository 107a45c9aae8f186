/* fuzz_encode.c - any text through any built-in encoding, any pattern and the walk's options.
**
** Input: encoding, pattern, options, then the text. The pieces must tile the text, their ids
** decode to it and number what bpe_count says, and a coder that remembers next to nothing must
** agree. A short text is also encoded by the oracle, from the definition, with any of the patterns,
** and then its traces and streams have the oracle's ids too. Run it in the project's folder: the
** oracle reads data/encodings and tests/vectors.
*/
#include "paths.h"

enum { ENCODINGS = 7, ORACLE_TEXT = 300 };

static const char *const merge_files[ENCODINGS] = {
    "data/encodings/r50k_base.merges",   "data/encodings/r50k_base.merges",
    "data/encodings/p50k_base.merges",   "data/encodings/p50k_base.merges",
    "data/encodings/cl100k_base.merges", "data/encodings/o200k_base.merges",
    "data/encodings/o200k_base.merges"};

static const char *const regexes[] = {"\\S+|\\s+", "(?<=b)a|\\pL", ".{3}", "a*", "[a-z]+|\\p{N}{1,2}"};

enum { N_REGEXES = sizeof regexes / sizeof *regexes };

/* An encoding and what encodes with it; made when first met, kept. */
static struct subject {
  bpe_model *model;
  bpe_coder *coder, *tiny;
  bpe_finder *all;
  oracle_model oracle;
} subjects[ENCODINGS];

static struct subject *subject_of(unsigned which) {
  static oracle_classes *classes;
  static oracle_vocab *vocabs[ENCODINGS];
  struct subject *s = &subjects[which];
  if (s->model != NULL) return s;
  bpe_info info;
  REQUIRE(bpe_builtin_load(&fuzz_alloc, (int)which, NULL, &s->model) == BPE_OK);
  REQUIRE(bpe_coder_new(s->model, 0, NULL, &s->coder) == BPE_OK);
  REQUIRE(bpe_coder_new(s->model, 2, NULL, &s->tiny) == BPE_OK);
  REQUIRE(bpe_finder_new(s->model, NULL, 0, NULL, &s->all) == BPE_OK);
  bpe_model_info(s->model, &info);
  if (classes == NULL) classes = oracle_classes_read("tests/vectors/unicode-classes.json");
  REQUIRE(classes != NULL);
  unsigned same = 0;
  while (strcmp(merge_files[same], merge_files[which]) != 0) same++;
  if (vocabs[same] == NULL) vocabs[same] = oracle_vocab_read_merges(merge_files[same]);
  REQUIRE(vocabs[same] != NULL);
  s->oracle = (oracle_model){.regex = oracle_regex_new(classes, oracle_pattern(info.pattern)),
                             .vocab = vocabs[same], .by_rank = true, .whole = true};
  REQUIRE(s->oracle.regex != NULL);
  return s;
}

/* Named patterns, then regexes; NULL for 0: the encoding's own. Kept. */
static const bpe_pattern *pattern_of(unsigned which) {
  static bpe_pattern *patterns[64];
  if (which == 0) return NULL;
  if (patterns[which] == NULL) {
    unsigned n_names = 0;
    while (bpe_pattern_name((int)n_names) != NULL) n_names++;
    const char *text = which <= n_names ? bpe_pattern_name((int)which - 1)
                                        : regexes[(which - 1 - n_names) % N_REGEXES];
    REQUIRE(bpe_pattern_new(&fuzz_alloc, text, strlen(text), which > n_names, NULL,
                            &patterns[which]) == BPE_OK);
  }
  return patterns[which];
}

/* Walks the text: pieces that tile it, ids appended to out. */
static void walk(bpe_coder *c, const input *text, const bpe_walk_options *o, oracle_list *out) {
  bpe_walk *w;
  bpe_piece p;
  bpe_error e = {.status = BPE_OK};
  size_t at = 0;
  REQUIRE(bpe_walk_new(c, &e, &w) == BPE_OK);
  bpe_status st = bpe_walk_start(w, text->at, text->left, o, &e);
  while (st == BPE_OK && (st = bpe_walk_next(w, &p, &e)) == BPE_OK) {
    REQUIRE(p.start == at && p.stop > at && p.stop <= text->left);
    REQUIRE(o->split_only ? p.n_ids == 0 : p.n_ids > 0 && p.n_ids <= p.stop - p.start);
    for (size_t i = 0; i < p.n_ids; i++) oracle_list_add(out, p.ids[i]);
    at = p.stop;
  }
  REQUIRE(st == BPE_DONE && at == text->left);
  fuzz_check_error(st, &e);
  bpe_walk_free(w);
}

static void check_decoding(const struct subject *s, const input *text, const oracle_list *ids) {
  bpe_buffer b;
  bpe_buffer_init(&b, &fuzz_alloc, 0);
  REQUIRE(bpe_decode(s->model, ids->at, ids->n, BPE_SPECIALS_TEXT, false, NULL, NULL, NULL, &b) ==
          BPE_OK);
  REQUIRE(b.len == text->left && (b.len == 0 || memcmp(b.bytes, text->at, b.len) == 0));
  bpe_buffer_clear(&b);
}

static void check_json(const struct subject *s, const input *text, const bpe_walk_options *o,
                       const oracle_list *ids) {
  bpe_buffer json, expected;
  bpe_buffer_init(&json, &fuzz_alloc, 0);
  bpe_buffer_init(&expected, &fuzz_alloc, 0);
  REQUIRE(bpe_encode_json(s->coder, text->at, text->left, o, NULL, &json) == BPE_OK);
  for (size_t i = 0; i < ids->n; i++) {
    bpe_buffer_append(&expected, i == 0 ? "[" : ",", 1);
    bpe_buffer_append_decimal(&expected, ids->at[i]);
  }
  bpe_buffer_append(&expected, ids->n == 0 ? "[]" : "]", ids->n == 0 ? 2 : 1);
  REQUIRE(json.len == expected.len && memcmp(json.bytes, expected.bytes, json.len) == 0);
  bpe_buffer_clear(&json);
  bpe_buffer_clear(&expected);
}

/* The oracle's form of pattern_of; *known: it can say it. Code points whose class PCRE2 sees
** otherwise are not in texts that a class of a regex splits. */
static oracle_regex *oracle_of(const struct subject *s, unsigned which, const input *text,
                               bool *known) {
  static oracle_classes *classes;
  static oracle_regex *made[64];
  unsigned n_names = 0;
  *known = true;
  if (which == 0) return s->oracle.regex;
  while (bpe_pattern_name((int)n_names) != NULL) n_names++;
  const char *regex = which <= n_names ? oracle_pattern(bpe_pattern_name((int)which - 1))
                                       : regexes[(which - 1 - n_names) % N_REGEXES];
  for (size_t i = 0; which > n_names && i < text->left; i++) *known = *known && text->at[i] < 0x80;
  if (classes == NULL) classes = oracle_classes_read("tests/vectors/unicode-classes.json");
  const char *error;
  size_t at;
  if (made[which] == NULL && regex[0] != 0)
    made[which] = oracle_regex_try(classes, regex, &error, &at);
  if (made[which] == NULL && regex[0] != 0) *known = false;
  return made[which];
}

static void check_oracle(const struct subject *s, unsigned which, unsigned pattern,
                         const input *text, const bpe_walk_options *o, const oracle_list *ids) {
  static oracle_result r;
  static answer expected;
  size_t n = 0;
  bool known;
  oracle_model m = s->oracle;
  m.regex = oracle_of(s, pattern, text, &known);
  if (!known) return;
  const oracle_special *found =
      o->allowed != NULL ? oracle_specials(bpe_builtin_name((int)which), &n) : NULL;
  oracle_encode(&m, text->at, text->left, found, n, &r);
  REQUIRE(!r.failed && r.ids.n == ids->n);
  REQUIRE(ids->n == 0 || memcmp(r.ids.at, ids->at, ids->n * sizeof *ids->at) == 0);
  prop_rng rng = prop_bytes(text->at, text->left);
  encode_packed(s->coder, text, o, &expected);
  REQUIRE(expected.n == ids->n);
  check_trace_ids(s->coder, text, o, &expected);
  check_stream_ids(s->coder, text, o, &rng, &expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {data, size};
  unsigned n_names = 0;
  while (bpe_pattern_name((int)n_names) != NULL) n_names++;
  const unsigned which = take(&in, ENCODINGS), pattern = take(&in, 1 + n_names + N_REGEXES);
  const unsigned bits = take(&in, 8);
  const struct subject *s = subject_of(which);
  const bool specials = bits & 1;
  const bpe_walk_options o = {.allowed = specials ? s->all : NULL, .pattern = pattern_of(pattern),
                              .split_only = bits & 2};
  static oracle_list ids, again;
  uint64_t n = 1;
  ids.n = again.n = 0;
  walk(s->coder, &in, &o, &ids);
  walk(s->tiny, &in, &o, &again);
  REQUIRE(ids.n == again.n + sabotage() && (ids.n == 0 || memcmp(ids.at, again.at, 4 * ids.n) == 0));
  if (!o.split_only) {
    REQUIRE(bpe_count(s->coder, in.at, in.left, &o, NULL, &n) == BPE_OK && n == ids.n);
    /* o200k_harmony has two names for one id, which decodes to the first. */
    if (!specials || which != ENCODINGS - 1) check_decoding(s, &in, &ids);
    check_json(s, &in, &o, &ids);
    if (in.left <= ORACLE_TEXT) check_oracle(s, which, pattern, &in, &o, &ids);
  }
  return 0;
}
