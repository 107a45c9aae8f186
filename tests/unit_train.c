/* unit_train.c - the trainer: known results, and what it refuses. Cases named T01 ... are faults
** that were reported against other trainers. unit_train_run.c has how a training runs.
*/
#include "../src/count.h"
#include "../src/model.h"

#include "unit_training.h"

/* The merges as "left right count, ...", bytes outside of '!' .. '~' as \xHH. */
static void write_token(char *out, size_t cap, const bpe_model *m, uint32_t id) {
  const bpe_token x = bpe_model_token(m, bpe_model_find_id(m, id));
  size_t n = strlen(out);
  for (size_t i = 0; i < x.len && n + 5 < cap; i++) {
    const bool plain = x.bytes[i] > ' ' && x.bytes[i] < 127;
    n += (size_t)snprintf(out + n, cap - n, plain ? "%c" : "\\x%02x", x.bytes[i]);
  }
}

static void check_merges(const bpe_model *m, const char *expected) {
  char text[2000] = "";
  bpe_info info;
  if (m == NULL) return;
  bpe_model_info(m, &info);
  for (size_t i = 0; i < info.merge_count; i++) {
    const bpe_merge x = bpe_model_merge(m, i);
    if (i > 0) strcat(text, ", ");
    write_token(text, sizeof text - 40, m, x.left);
    strcat(text, " ");
    write_token(text, sizeof text - 40, m, x.right);
    const size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, " %llu", (unsigned long long)x.count);
  }
  CHECK_BYTES(text, strlen(text), expected, strlen(expected));
  if (strcmp(text, expected) != 0) printf("  %s\n  expected\n  %s\n", text, expected);
}

/* Trains and gives the model up. */
static void check_training(const row *rows, uint32_t vocab_size, const bpe_train_options *o,
                           const char *expected) {
  bpe_model *m = train(rows, vocab_size, o);
  check_merges(m, expected);
  bpe_model_free(m);
}

/* ---- Known results ------------------------------------------------------------------------- */

/* The assignment's word counts, its first counts and its twelve merges. */
static void check_words(void) {
  static const row rows[] = {{"low", 5}, {"lower", 2}, {"widest", 3}, {"newest", 6}, END};
  static const row text[] = {
      ROW("low low low low low lower lower widest widest widest\tnewest newest newest\n"
          "newest newest newest"), END};
  static const bpe_name end = {"<|endoftext|>", 13};
  bpe_train_options o = options("whitespace", BPE_TIE_BYTES);
  static const char twelve[] = "s t 9, e st 9, o w 7, l ow 7, w est 6, n e 6, ne west 6, w i 3, "
                               "wi d 3, wid est 3, low e 2, lowe r 2";
  check_training(rows, 256 + 12, &o, twelve);
  check_training(text, 256 + 12, &o, twelve);
  o.pretokenized = true;
  check_training(rows, 256 + 12, &o, twelve);
  o.pretokenized = false;
  o.specials = &end;
  o.n_specials = 1;
  o.place = BPE_PLACE_FIRST;
  bpe_model *m = train(rows, 257 + 6, &o);
  static const char *const tokens[] = {"st", "est", "ow", "low", "west", "ne"};
  bpe_info info;
  bpe_model_info(m, &info);
  CHECK_EQ_INT(info.token_count, 263);
  for (uint32_t i = 0; i < 6; i++) {
    const bpe_token x = bpe_model_token(m, 257 + i);
    CHECK_BYTES(x.bytes, x.len, tokens[i], strlen(tokens[i]));
  }
  bpe_model_free(m);
}

/* Wikipedia's example, by every tie rule; overlapping pairs count, and merge from the left. */
static void check_overlaps(void) {
  static const row wiki[] = {ROW("aaabdaaabac"), END};
  bpe_train_options o = options("none", BPE_TIE_FIRST);
  check_training(wiki, 259, &o, "a a 4, aa a 2, aaa b 2");
  o.tie = BPE_TIE_IDS;
  check_training(wiki, 259, &o, "a a 4, a b 2, aa ab 2");
  o.tie = BPE_TIE_BYTES;
  check_training(wiki, 259, &o, "a a 4, aa a 2, aaa b 2");
  static const row runs[] = {ROW("aaaa"), ROW("aaaaaaa"), END};
  check_training(runs, 300, &o, "a a 9, aa aa 3, aaaa aa 1, aaaaaa a 1");
}

/* T01: nothing to merge. */
static void check_nothing(void) {
  static const row none[] = {END}, empty[] = {ROW(""), ROW(""), END}, blank[] = {ROW("   "), END};
  for (int tie = 0; tie < 3; tie++) {
    const bpe_train_options o = options("gpt2", (bpe_tie)tie);
    check_training(none, 260, &o, "");
    check_training(empty, 260, &o, "");
    check_training(blank, 260, &o, "\\x20 \\x20 2, \\x20\\x20 \\x20 1");
  }
}

/* T03: vocab_size counts bytes, merges and special tokens, and nothing else. */
static void check_size(void) {
  static const row rows[] = {
      ROW("na\xc3\xafve caf\xc3\xa9 \xe6\xbc\xa2 \xf0\x9f\xa6\x99 abc abc abc"), END};
  static const bpe_name names[] = {{"<a>", 3}, {"<b>", 3}};
  bpe_train_options o = options("gpt2", BPE_TIE_BYTES);
  for (uint32_t n = 0; n <= 2; n++) {
    bpe_info info;
    o.specials = names;
    o.n_specials = n;
    bpe_model *m = train(rows, 258, &o);
    bpe_model_info(m, &info);
    CHECK_EQ_INT(info.vocab_size, 258);
    CHECK_EQ_INT(info.merge_count, 2 - n);
    bpe_model_free(m);
  }
}

/* T05: ties do not depend on the order of rows, except where that is the rule. */
static void check_ties(void) {
  static const row set[2][7] = {
      {ROW("dd"), ROW("cc"), ROW("dd"), ROW("cc"), ROW("bb"), ROW("aa"), END},
      {ROW("aa"), ROW("bb"), ROW("cc"), ROW("dd"), ROW("cc"), ROW("dd"), END}};
  for (int i = 0; i < 2; i++) {
    bpe_train_options o = options("gpt2", BPE_TIE_BYTES);
    check_training(set[i], 260, &o, "d d 2, c c 2, b b 1, a a 1");
    o.tie = BPE_TIE_IDS;
    check_training(set[i], 260, &o, "c c 2, d d 2, a a 1, b b 1");
    o.tie = BPE_TIE_FIRST;
    check_training(set[i], 260, &o,
                   i == 0 ? "d d 2, c c 2, b b 1, a a 1" : "c c 2, d d 2, a a 1, b b 1");
  }
  /* Part by part: among (A,B) (A,C) (B,ZZ) (BA,A) the last is the greatest. */
  static const row parts[] = {{"ZZ", 9}, {"BA", 8},  {"AB", 1}, {"AC", 1},
                              {"BZZ", 1}, {"BAA", 1}, END};
  const bpe_train_options o = options("none", BPE_TIE_BYTES);
  check_training(parts, 256 + 6, &o, "Z Z 10, B A 9, BA A 1, B ZZ 1, A C 1, A B 1");
}

/* What comes first is told by the whole of its place, however far into the text that is. */
static void check_far_ties(void) {
  static const size_t far[] = {1 << 11, 1 << 22}; /* where another digit of the sorting begins */
  for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
    char *before = malloc(far[i] + 200), *between = malloc(200);
    if (before == NULL || between == NULL) abort();
    for (size_t k = 0; k < far[i]; k++) before[k] = k % 2 == 0 ? 'q' : ' ';
    memcpy(between, before, 200);
    before[far[i] - 100] = between[199] = 0;
    const row rows[] = {{before, 1}, ROW("yx"), {between, 1}, ROW("ab"), ROW("zy"), END};
    const bpe_train_options o = options("whitespace", BPE_TIE_FIRST);
    check_training(rows, 300, &o, "y x 1, a b 1, z y 1");
    free(before);
    free(between);
  }
}

/* T07: pairs that occur once are merged, too. */
static void check_once(void) {
  static const row rows[] = {ROW("kl"), ROW("klm"), ROW("lmn"), ROW("lm"), ROW("no"), END};
  bpe_train_options o = options("gpt2", BPE_TIE_IDS);
  o.gpt2_bytes = true;
  check_training(rows, 270, &o, "l m 3, k l 1, k lm 1, n o 1, lm n 1");
  o = options("gpt2", BPE_TIE_FIRST);
  check_training(rows, 270, &o, "l m 3, k l 1, k lm 1, lm n 1, n o 1");
  o.tie = BPE_TIE_BYTES;
  check_training(rows, 270, &o, "l m 3, n o 1, lm n 1, k lm 1, k l 1");
}

/* T09: tokens of limited length. */
static void check_length(void) {
  static const row rows[] = {ROW("c cac ab c accc a a b a cb ccccc abab"), END};
  bpe_train_options o = options("gpt2", BPE_TIE_IDS);
  o.max_token_length = 2;
  check_training(rows, 300, &o,
                 "\\x20 a 6, c c 6, \\x20 c 3, \\x20 b 1, a b 1, a c 1");
  o.tie = BPE_TIE_FIRST;
  check_training(rows, 300, &o,
                 "\\x20 a 6, c c 6, \\x20 c 3, a c 1, \\x20 b 1, b a 1");
  o.tie = BPE_TIE_BYTES;
  check_training(rows, 300, &o,
                 "c c 6, \\x20 a 6, \\x20 c 3, b a 1, a c 1, \\x20 b 1");
  o.max_token_length = 1;
  check_training(rows, 300, &o, "");
}

/* T11: min_frequency is the count of the pair at its turn. */
static void check_frequency(void) {
  static const row rows[] = {ROW("abab cd cd ef"), ROW("abab"), END};
  bpe_train_options o = options("gpt2", BPE_TIE_IDS);
  o.min_frequency = 2;
  check_training(rows, 300, &o, "a b 4, \\x20 c 2, ab ab 2, \\x20c d 2");
  o.tie = BPE_TIE_FIRST;
  check_training(rows, 300, &o, "a b 4, ab ab 2, \\x20 c 2, \\x20c d 2");
  o.tie = BPE_TIE_BYTES;
  check_training(rows, 300, &o, "a b 4, c d 2, ab ab 2, \\x20 cd 2");
  o.min_frequency = 5;
  check_training(rows, 300, &o, "");
}

/* T13: a special token is cut out, so no merge can spell it. */
static void check_special(void) {
  static const row rows[] = {ROW("ing ing sing ring ing king"), END};
  static const bpe_name ing = {"ing", 3};
  bpe_train_options o = options("gpt2", BPE_TIE_BYTES);
  o.specials = &ing;
  o.n_specials = 1;
  bpe_model *m = train(rows, 262, &o);
  check_merges(m, "\\x20 s 1, \\x20 r 1, \\x20 k 1");
  CHECK_EQ_INT(bpe_model_find_bytes(m, "ing", 3), 259);
  bpe_model_free(m);
}

/* T15, T17: line ends stay in their row, and long rows count. */
static void check_rows(void) {
  static const row lines[] = {ROW("a\n\nb"), ROW("c\n\nd\n\n"), ROW("\n\n\n"), END};
  const bpe_train_options o = options("gpt2", BPE_TIE_IDS);
  check_training(lines, 300, &o, "\\x0a \\x0a 3, \\x0a\\x0a \\x0a 1");
  char *text = malloc(120001);
  if (text == NULL) abort();
  for (int i = 0; i < 40000; i++) memcpy(text + 3 * i, "zx ", 3);
  text[120000] = 0;
  const row rows[] = {{text + 38000 * 3, 1}, {text, 1}, END};
  check_training(rows, 258, &o, "z x 42000, \\x20 zx 41998");
  free(text);
}

/* T21: one piece of a million letters. */
static void check_giant(void) {
  enum { LEN = 1000000 };
  char *text = malloc(LEN + 1);
  uint32_t x = 5;
  if (text == NULL) abort();
  for (int i = 0; i < LEN; i++) {
    x = x * 1664525 + 1013904223;
    text[i] = "ACGT"[x >> 16 & 3];
  }
  text[LEN] = 0;
  const row rows[] = {{text, 1}, END};
  const bpe_train_options o = options("none", BPE_TIE_BYTES);
  check_training(rows, 262, &o,
                 "A G 62576, T T 62559, A C 62504, T G 50032, T C 49952, G G 34463");
  bpe_model *m = train(rows, 512, &o);
  bpe_info info;
  bpe_model_info(m, &info);
  CHECK_EQ_INT(info.merge_count, 256);
  bpe_model_free(m);
  free(text);
}

/* T25: ids of bytes do not depend on the corpus. */
static void check_byte_ids(void) {
  static const row rows[] = {ROW("ACGTACGT"), END};
  bpe_train_options o = options("gpt2", BPE_TIE_BYTES);
  bpe_model *m = train(rows, 260, &o);
  for (uint32_t b = 0; b < 256; b++) CHECK_EQ_INT(bpe_model_token(m, b).bytes[0], b);
  CHECK_EQ_INT(bpe_model_merge(m, 0).id, 256);
  bpe_model_free(m);
  o.gpt2_bytes = true;
  m = train(rows, 260, &o);
  CHECK_EQ_INT(bpe_model_token(m, 0).bytes[0], '!');
  CHECK_EQ_INT(bpe_model_token(m, 93).bytes[0], '~');
  CHECK_EQ_INT(bpe_model_token(m, 94).bytes[0], 0xa1);
  CHECK_EQ_INT(bpe_model_token(m, 188).bytes[0], 0);
  CHECK_EQ_INT(bpe_model_token(m, 220).bytes[0], ' ');
  CHECK_EQ_INT(bpe_model_token(m, 255).bytes[0], 0xad);
  bpe_model_free(m);
}

/* Bytes, then special tokens, then merges. */
static void check_layout(void) {
  static const row rows[] = {{"the cat the cat<|pad|>the", 40}, END};
  static const bpe_name names[] = {{"<|endoftext|>", 13}, {"<|pad|>", 7}};
  static const uint32_t bos[] = {0}, eos[] = {1, 0};
  bpe_train_options o = options("words", BPE_TIE_BYTES);
  o.specials = names;
  o.n_specials = 2;
  o.place = BPE_PLACE_AFTER_BYTES;
  o.bos = bos;
  o.eos = eos;
  o.n_bos = 1;
  o.n_eos = 2;
  bpe_model *m = train(rows, 300, &o);
  bpe_info info;
  bpe_model_info(m, &info);
  check_merges(m, "t h 120, th e 120, c a 80, ca t 80");
  CHECK_EQ_INT(bpe_model_merge(m, 0).id, 258);
  CHECK_EQ_INT(bpe_model_find_bytes(m, "<|pad|>", 7), 257);
  CHECK(info.n_bos == 1 && info.bos[0] == 256);
  CHECK(info.n_eos == 2 && info.eos[0] == 257 && info.eos[1] == 256);
  bpe_model *cut;
  CHECK(bpe_model_cut(m, 259, NULL, &cut) == BPE_OK);
  check_merges(cut, "t h 120");
  bpe_model_free(cut);
  bpe_model_free(m);
}

/* Counts of 64 bits, and what is too much for them. */
static void check_weights(void) {
  static const row many[] = {{"ab", UINT64_C(2500000000)}, {"ab", UINT64_C(2500000000)}, END};
  static const row most[] = {{"ab", COUNT_MAX}, {"c", 0}, END};
  static const row piece[] = {{"ab", COUNT_MAX}, {"ab", 1}, END};
  static const row pair[] = {{"ab", COUNT_MAX}, {"abc", 1}, END};
  static const row big[] = {{"ab", COUNT_MAX + 1}, END};
  const bpe_train_options o = options("none", BPE_TIE_BYTES);
  bpe_model *m;
  check_training(many, 300, &o, "a b 5000000000");
  check_training(most, 300, &o, "a b 9223372036854775807");
  bpe_error e = {.status = BPE_OK};
  CHECK(train_with(piece, 300, &o, &e, &m) == BPE_TOOBIG);
  CHECK(unit_says(&e, BPE_TOOBIG, 0, "weights of a piece add up to more than 2^63 - 1"));
  e = (bpe_error){.status = BPE_OK};
  CHECK(train_with(pair, 300, &o, &e, &m) == BPE_TOOBIG);
  CHECK(unit_says(&e, BPE_TOOBIG, 0, "weights of a pair add up to more than 2^63 - 1"));
  e = (bpe_error){.status = BPE_OK};
  CHECK(train_with(big, 300, &o, &e, &m) == BPE_MISUSE);
}

/* ---- Refusals ------------------------------------------------------------------------------ */

static void check_refused(uint32_t vocab_size, const bpe_train_options *o, bpe_status status,
                          uint64_t offset, const char *text) {
  bpe_error e = {.status = BPE_OK};
  bpe_trainer *t;
  CHECK(bpe_trainer_new(&unit_alloc, vocab_size, o, &e, &t) == status && t == NULL);
  CHECK(unit_says(&e, status, offset, text));
}

static void check_options(void) {
  static const bpe_name empty[] = {{"a", 1}, {"", 0}}, twice[] = {{"a", 1}, {"b", 1}, {"a", 1}};
  static const uint32_t third[] = {2};
  bpe_train_options o = options("gpt2", BPE_TIE_BYTES);
  check_refused(255, &o, BPE_MISUSE, 0,
                "vocab_size is too small for 256 bytes and 0 special tokens: 255");
  check_refused(UINT32_MAX, &o, BPE_MISUSE, 0, "vocab_size must be less than 2^31: 4294967295");
  o.specials = empty;
  o.n_specials = 2;
  check_refused(257, &o, BPE_MISUSE, 0,
                "vocab_size is too small for 256 bytes and 2 special tokens: 257");
  check_refused(300, &o, BPE_MISUSE, 1, "empty special token");
  o.specials = twice;
  o.n_specials = 3;
  check_refused(300, &o, BPE_MISUSE, 2, "special token is given twice: a");
  o.n_specials = 2;
  o.bos = third;
  o.n_bos = 1;
  check_refused(300, &o, BPE_MISUSE, 0, "BOS or EOS is no special token");
  o.bos = NULL;
  o.n_bos = 0;
  for (int i = 0; i < 2; i++) { /* as many as a model may have, and one more */
    static const uint32_t many[BPE_MOST_AROUND + 1] = {0};
    bpe_trainer *t;
    o.bos = o.eos = many;
    size_t *const n = i == 0 ? &o.n_bos : &o.n_eos;
    *n = BPE_MOST_AROUND;
    CHECK(bpe_trainer_new(&unit_alloc, 300, &o, NULL, &t) == BPE_OK);
    bpe_trainer_free(t);
    *n = BPE_MOST_AROUND + 1;
    check_refused(300, &o, BPE_MISUSE, 256, "more than 256 tokens before or after a document");
    *n = 0;
  }
  o = options("gpt3", BPE_TIE_BYTES);
  check_refused(300, &o, BPE_MISUSE, 0, "no such pattern: gpt3");
  o = options("(", BPE_TIE_BYTES);
  o.is_regex = true;
  check_refused(300, &o, BPE_BADREGEX, 1, "regex error at byte 1: missing closing parenthesis");
}

/* After a failure every call fails the same way; after the end, too. */
static void check_sticky(void) {
  bpe_train_options o = options("(?:a+a+)+!|x", BPE_TIE_BYTES);
  o.is_regex = true;
  static const char bad[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  bpe_error e = {.status = BPE_OK}, again = {.status = BPE_OK};
  bpe_trainer *t;
  bpe_model *m;
  CHECK(bpe_trainer_new(&unit_alloc, 300, &o, &e, &t) == BPE_OK);
  CHECK(bpe_trainer_add(t, bad, sizeof bad - 1, 1, &e) == BPE_REGEXLIMIT);
  CHECK(bpe_trainer_add(t, "b", 1, 1, &again) == BPE_REGEXLIMIT);
  CHECK(strcmp(e.text, again.text) == 0);
  CHECK(bpe_trainer_finish(t, NULL, &m) == BPE_REGEXLIMIT && m == NULL);
  bpe_trainer_free(t);
  o = options("gpt2", BPE_TIE_BYTES);
  CHECK(bpe_trainer_new(&unit_alloc, 300, &o, NULL, &t) == BPE_OK);
  CHECK(bpe_trainer_finish(t, NULL, &m) == BPE_OK);
  bpe_model_free(m);
  CHECK(bpe_trainer_finish(t, NULL, &m) == BPE_MISUSE && m == NULL);
  CHECK(bpe_trainer_add(t, "b", 1, 1, NULL) == BPE_MISUSE);
  bpe_trainer_free(t);
  bpe_trainer_free(NULL);
}

static size_t vocab_size(const bpe_model *m) {
  bpe_info info;
  bpe_model_info(m, &info);
  return info.token_count;
}

static void check_cut_refused(void) {
  static const row rows[] = {ROW("abababab"), END};
  const bpe_train_options o = options("none", BPE_TIE_BYTES);
  bpe_error e = {.status = BPE_OK};
  bpe_model *m = train(rows, 258, &o), *cut;
  CHECK(bpe_model_cut(m, 259, &e, &cut) == BPE_MISUSE && cut == NULL);
  CHECK(unit_says(&e, BPE_MISUSE, 0, "vocab_size is not in 256 to 258: 259"));
  CHECK(bpe_model_cut(m, 255, NULL, &cut) == BPE_MISUSE);
  bpe_model_free(m);
  e = (bpe_error){.status = BPE_OK};
  m = NULL;
  CHECK(bpe_builtin_load(&unit_alloc, bpe_builtin_find("gpt2", 4), NULL, &m) == BPE_OK);
  bpe_status st = bpe_model_cut(m, 1000, &e, &cut); /* its layout is that of a training */
  CHECK(st == BPE_OK);
  bpe_model_free(cut);
  bpe_model_free(m);
  CHECK(bpe_builtin_load(&unit_alloc, bpe_builtin_find("p50k_base", 9), NULL, &m) == BPE_OK);
  st = bpe_model_cut(m, 1000, &e, &cut);
  CHECK(st == BPE_MISUSE && cut == NULL);
  CHECK(unit_says(&e, BPE_MISUSE, 0, "only a trained tokenizer can be cut to a size"));
  bpe_model_free(m);
}

/* What no training says, beside a vocabulary that one could have made. */
enum extra {
  EXTRA_NONE,
  EXTRA_LSTRIP,
  EXTRA_RSTRIP,
  EXTRA_WORD,
  EXTRA_LATE,
  EXTRA_MERGES,
  EXTRA_UNUSED,
  EXTRA_NAME,
  EXTRA_STRIP_LEFT,
  EXTRA_NORMALIZER,
  EXTRA_WHOLE,
  EXTRA_CHARS,
  EXTRA_BOS,
  EXTRA_EOS,
  EXTRA_OUT_OF_REACH, /* a token that its bytes do not merge to */
  EXTRA_TWICE,        /* of one byte, two tokens */
  N_EXTRAS
};

static void add_extra(bpe_builder *b, enum extra x) {
  static const struct {
    uint32_t id;
    unsigned flag;
  } flags[] = {[EXTRA_LSTRIP] = {259, ENTRY_LSTRIP}, [EXTRA_RSTRIP] = {259, ENTRY_RSTRIP},
               [EXTRA_WORD] = {259, ENTRY_WORD},     [EXTRA_LATE] = {259, ENTRY_LATE},
               [EXTRA_MERGES] = {259, ENTRY_MERGES}, [EXTRA_UNUSED] = {'z', ENTRY_UNUSED}};
  normalizer *n = NULL;
  if (x != EXTRA_NONE && x <= EXTRA_UNUSED) builder_flag(b, flags[x].id, flags[x].flag);
  if (x == EXTRA_NAME) builder_name(b, 259, "<t>", 3);
  if (x == EXTRA_STRIP_LEFT) builder_strip_left(b, 1);
  if (x == EXTRA_WHOLE) bpe_builder_whole(b);
  if (x == EXTRA_CHARS) builder_chars(b);
  if (x == EXTRA_BOS) bpe_builder_bos(b, 'a');
  if (x == EXTRA_EOS) bpe_builder_eos(b, 258);
  if (x != EXTRA_NORMALIZER) return;
  CHECK(normalizer_new(&unit_alloc, NULL, &n) == BPE_OK);
  CHECK(normalizer_add_form(n, "nfc", 3, NULL) == BPE_OK);
  builder_normalizer(b, n);
}

static void check_cut_extras(void) {
  for (int x = EXTRA_NONE; x < N_EXTRAS; x++) {
    bpe_builder *b = bpe_builder_new(&unit_alloc);
    bpe_builder_pattern(b, "gpt2", 4, false);
    for (uint32_t c = 0; c < 256; c++) {
      const uint8_t byte = (uint8_t)(x == EXTRA_TWICE && c == 'y' ? 'x' : c);
      bpe_builder_token(b, c, BPE_TOKEN, &byte, 1);
    }
    bpe_builder_grow(b, 'a', 'b', 256);
    bpe_builder_grow(b, 'b', 'c', 257);
    if (x == EXTRA_OUT_OF_REACH) bpe_builder_grow(b, 'a', 257, 258);
    else bpe_builder_grow(b, 256, 'c', 258);
    unit_special(b, 259, "<s>");
    bpe_builder_bos(b, 259);
    add_extra(b, (enum extra)x);
    bpe_model *m = unit_finish(b), *cut = NULL;
    bpe_error e = {.status = BPE_OK};
    const bpe_status st = bpe_model_cut(m, 258, &e, &cut);
    if (!CHECK_EQ_INT(st, x == EXTRA_NONE ? BPE_OK : BPE_MISUSE)) printf("  extra %d\n", x);
    CHECK(x == EXTRA_NONE ||
          unit_says(&e, BPE_MISUSE, 0, "only a trained tokenizer can be cut to a size"));
    bpe_model_free(cut);
    bpe_model_free(m);
  }
}

/* Training that ran out of pairs would have given the same for every size up to the one asked
** for; what is cut down to less is not such a training. */
static void check_cut_above(void) {
  static const row rows[] = {ROW("abababab"), END};
  const bpe_train_options o = options("none", BPE_TIE_BYTES);
  bpe_error e = {.status = BPE_OK};
  bpe_model *m = train(rows, 340, &o), *cut, *less;
  CHECK_EQ_INT(vocab_size(m), 259);
  for (uint32_t size = 258; size <= 341; size++) {
    const bpe_status st = bpe_model_cut(m, size, &e, &cut);
    CHECK_EQ_INT(st, size <= 340 ? BPE_OK : BPE_MISUSE);
    if (cut != NULL) CHECK_EQ_INT(vocab_size(cut), size < 259 ? size : 259);
    bpe_model_free(cut);
  }
  CHECK(unit_says(&e, BPE_MISUSE, 0, "vocab_size is not in 256 to 340: 341"));
  CHECK(bpe_model_cut(m, 300, NULL, &cut) == BPE_OK);
  CHECK(bpe_model_cut(cut, 340, NULL, &less) == BPE_OK);
  bpe_model_free(cut);
  bpe_model_free(less);
  CHECK(bpe_model_cut(m, 258, NULL, &cut) == BPE_OK);
  CHECK(bpe_model_cut(cut, 259, NULL, &less) == BPE_MISUSE && less == NULL);
  bpe_model_free(cut);
  bpe_model_free(m);
}

/* The stats of what is cut, however they are written, stay what they are: JSON, or nothing. */
static void check_cut_stats(void) {
  static const char *const stats[][2] = {
      {"{\"merges\":2}", "{\"cut_from\":258,\"merges\":2}"},
      {" {\n\"a\":{}} ", "{\"cut_from\":258,\n\"a\":{}} "},
      {"{ }", "{\"cut_from\":258 }"},
      {"{}", "{\"cut_from\":258}"},
      {"{\"cut_from\":300,\"merges\":2}", "{\"cut_from\":300,\"merges\":2}"},
      {"[\"{\"]", "[\"{\"]"},
      {"no {JSON}", "no {JSON}"},
      {NULL, NULL},
  };
  for (size_t i = 0; i < sizeof stats / sizeof *stats; i++) {
    bpe_builder *b = unit_builder("none");
    bpe_builder_grow(b, 'a', 'b', 256);
    bpe_builder_grow(b, 256, 'c', 257);
    if (stats[i][0] != NULL) bpe_builder_stats(b, stats[i][0], strlen(stats[i][0]));
    bpe_model *m = unit_finish(b), *cut;
    for (uint32_t size = 257; size <= 258; size++) {
      const char *const expected = stats[i][size == 257];
      bpe_info info;
      CHECK(bpe_model_cut(m, size, NULL, &cut) == BPE_OK);
      bpe_model_info(cut, &info);
      CHECK((info.stats == NULL) == (expected == NULL));
      if (expected != NULL) CHECK_BYTES(info.stats, info.stats_len, expected, strlen(expected));
      bpe_model_free(cut);
    }
    CHECK(bpe_model_cut(m, 259, NULL, &cut) == BPE_MISUSE && cut == NULL);
    bpe_model_free(m);
  }
}

/* Cut to a size it is what training to that size gives, BOS and EOS too, wherever these are. */
static void check_cut_places(void) {
  static const row rows[] = {ROW("the cat sat on the mat, the cat sat there"), END};
  static const bpe_name names[] = {{"<s>", 3}, {"</s>", 4}};
  static const uint32_t bos[] = {0}, eos[] = {1, 0};
  for (int place = 0; place < 3; place++) {
    bpe_train_options o = options("gpt2", BPE_TIE_BYTES);
    o.specials = names;
    o.n_specials = 2;
    o.bos = bos;
    o.n_bos = 1;
    o.eos = eos;
    o.n_eos = 2;
    o.place = (bpe_place)place;
    bpe_model *m = train(rows, 268, &o);
    for (uint32_t size = 258; size <= 268; size++) {
      uint8_t digests[2][32];
      bpe_model *cut = NULL, *trained = train(rows, size, &o);
      CHECK(bpe_model_cut(m, size, NULL, &cut) == BPE_OK);
      CHECK(cut != NULL && bpe_model_digest(cut, NULL, digests[0]) == BPE_OK &&
            bpe_model_digest(trained, NULL, digests[1]) == BPE_OK);
      if (!CHECK(memcmp(digests[0], digests[1], 32) == 0)) printf("  %d, %u\n", place, size);
      bpe_model_free(cut);
      bpe_model_free(trained);
    }
    bpe_model_free(m);
  }
}

static void check_special_limit(void) {
  bpe_error e = {.status = BPE_OK};
  bpe_trainer *t;
  char *name = malloc(65536);
  if (name == NULL) return;
  memset(name, 's', 65536);
  const bpe_name names[] = {{name, 65536}};
  bpe_train_options o = options("none", BPE_TIE_BYTES);
  o.specials = names;
  o.n_specials = 1;
  CHECK(bpe_trainer_new(&unit_alloc, 300, &o, &e, &t) == BPE_MISUSE && t == NULL);
  CHECK(unit_says(&e, BPE_MISUSE, 0, "special token is longer than 65535 bytes: 65536"));
  free(name);
}

int main(void) {
  check_words();
  check_overlaps();
  check_nothing();
  check_size();
  check_ties();
  check_far_ties();
  check_once();
  check_length();
  check_frequency();
  check_special();
  check_rows();
  check_giant();
  check_byte_ids();
  check_layout();
  check_weights();
  check_options();
  check_sticky();
  check_cut_refused();
  check_cut_extras();
  check_cut_above();
  check_cut_places();
  check_cut_stats();
  check_special_limit();
  return unit_summary();
}
