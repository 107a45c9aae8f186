/* unit_model.c - what a model says about itself, its digest, and the built-in encodings.
**
** The digests below were computed apart from this code: the encoding that model_digest.c
** describes, written out by hand in Python for the same descriptions, through hashlib.sha256.
*/
#include "../src/model.h"
#include "../src/sha256.h"

#include "unit.h"

static void digest_hex(const bpe_model *m, char out[65]) {
  uint8_t digest[32];
  CHECK(bpe_model_digest(m, NULL, digest) == BPE_OK);
  for (int i = 0; i < 32; i++) snprintf(out + 2 * i, 3, "%02x", digest[i]);
}

/* Frees the model. */
static void has_digest(bpe_model *m, const char *expected) {
  char hex[65];
  if (m == NULL) return;
  digest_hex(m, hex);
  CHECK_BYTES(hex, 64, expected, 64);
  bpe_model_free(m);
}

/* ids out of order, a long token, two specials with one id, an added token, wrapping, a regex */
static bpe_model *odd_model(void) {
  char run[600];
  memset(run, 'x', sizeof run);
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  unit_special(b, 50, "<2>");
  bpe_builder_token(b, 9, BPE_TOKEN, "ab", 2);
  bpe_builder_token(b, BPE_NONE - 1, BPE_ADDED, "+", 1);
  bpe_builder_token(b, 3, BPE_TOKEN, "a", 1);
  bpe_builder_token(b, 20, BPE_TOKEN, run, sizeof run);
  unit_special(b, 50, "<1>");
  bpe_builder_token(b, 7, BPE_TOKEN, "b", 1);
  bpe_builder_merge(b, 5, 3, 7, 9, 1000); /* the count is not part of the digest */
  bpe_builder_pattern(b, "a|\\d", 4, true);
  bpe_builder_whole(b);
  bpe_builder_eos(b, 50);
  bpe_builder_eos(b, 3);
  return unit_finish(b);
}

/* Every split of two tokens; ranks as given, which need not be the ids. */
static bpe_model *splits_model(uint32_t rank_ab, uint32_t rank_bc, uint32_t rank_abc) {
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  for (uint32_t c = 'a'; c <= 'c'; c++) bpe_builder_token(b, c, BPE_TOKEN, &"abc"[c - 'a'], 1);
  bpe_builder_token(b, 256, BPE_TOKEN, "ab", 2);
  bpe_builder_token(b, 257, BPE_TOKEN, "bc", 2);
  bpe_builder_token(b, 258, BPE_TOKEN, "abc", 3);
  bpe_builder_merge(b, rank_ab, 'a', 'b', 256, 0);
  bpe_builder_merge(b, rank_bc, 'b', 'c', 257, 0);
  bpe_builder_merge(b, rank_abc, 256, 'c', 258, 0);
  bpe_builder_merge(b, rank_abc, 'a', 257, 258, 0);
  bpe_builder_pattern(b, "none", 4, false);
  bpe_builder_whole(b);
  return unit_finish(b);
}

static void check_known_digests(void) {
  has_digest(unit_tiny("gpt2"),
             "ec1fa0b2fa753937a64fc39133d4e83a35813a562a42bb1581fbb02d1806fd95");
  has_digest(odd_model(), "b964439cb22ea0e1b374e19c9db1497c2bdb9dd89e8ffe8f5a15a76e7a82e07a");
  has_digest(splits_model(256, 257, 258),
             "4e904c683f8d74bcde0c9569ec45cf182bb8d14eaed7f7f5a89f34ca0ea36c29");
  has_digest(splits_model(0, 1, 2), /* gaps between ranks mean nothing */
             "4e904c683f8d74bcde0c9569ec45cf182bb8d14eaed7f7f5a89f34ca0ea36c29");
  has_digest(splits_model(3, 70000, BPE_NONE - 1),
             "4e904c683f8d74bcde0c9569ec45cf182bb8d14eaed7f7f5a89f34ca0ea36c29");
}

/* One field of the tiny tokenizer changed at a time. */
static bpe_model *variant(int which) {
  bpe_builder *b = unit_builder(which == 1 ? "cl100k" : "gpt2");
  if (which == 2) bpe_builder_pattern(b, "gpt2", 4, true);
  if (which == 3) bpe_builder_whole(b);
  bpe_builder_token(b, 256, which == 4 ? BPE_SPECIAL : BPE_TOKEN, which == 5 ? "ac" : "ab", 2);
  bpe_builder_token(b, which == 6 ? 300 : 257, BPE_TOKEN, "bc", 2);
  if (which == 7) bpe_builder_token(b, 258, BPE_TOKEN, "abc", 3);
  if (which != 4 && which != 5) bpe_builder_merge(b, which == 8 ? 9 : 0, 'a', 'b', 256, 0);
  if (which != 6 && which != 9) bpe_builder_merge(b, 3, 'b', 'c', 257, 0);
  bpe_builder_token(b, 400, which == 10 ? BPE_ADDED : BPE_SPECIAL, "<1>", 3);
  if (which == 11) unit_special(b, 400, "<2>");
  if (which != 12) bpe_builder_bos(b, 400);
  if (which == 13) bpe_builder_bos(b, 400);
  if (which == 14) bpe_builder_eos(b, 400);
  return unit_finish(b);
}

static void check_digests_differ(void) {
  enum { N = 15 };
  char hex[N][65];
  for (int i = 0; i < N; i++) {
    bpe_model *m = variant(i);
    if (m == NULL) return;
    digest_hex(m, hex[i]);
    bpe_model_free(m);
    for (int k = 0; k < i; k++)
      if (!CHECK(strcmp(hex[i], hex[k]) != 0)) printf("  variants %d and %d\n", k, i);
  }
}

/* Specials of one id are told apart by which came first, for that is what decodes. */
static void check_order_of_specials(void) {
  char hex[2][65];
  for (int i = 0; i < 2; i++) {
    bpe_builder *b = unit_builder("gpt2");
    unit_special(b, 256, i == 0 ? "<1>" : "<2>");
    unit_special(b, 256, i == 0 ? "<2>" : "<1>");
    bpe_model *m = unit_finish(b);
    if (m == NULL) return;
    digest_hex(m, hex[i]);
    CHECK_EQ_INT(bpe_model_find_bytes(m, "<1>", 3), i == 0 ? 256 : 257);
    CHECK_EQ_INT(bpe_model_find_bytes(m, "<2>", 3), i == 0 ? 257 : 256);
    CHECK_EQ_INT(bpe_model_find_id(m, 256), 256);
    bpe_model_free(m);
  }
  CHECK(strcmp(hex[0], hex[1]) != 0);
}

static void check_info(void) {
  bpe_model *m = odd_model();
  if (m == NULL) return;
  bpe_info info;
  bpe_model_info(m, &info);
  CHECK_BYTES(info.pattern, strlen(info.pattern), "a|\\d", 4);
  CHECK(info.pattern_len == 4 && info.pattern_is_regex && info.whole);
  CHECK_EQ_INT(info.vocab_size, BPE_NONE);
  CHECK_EQ_INT(info.token_count, 6);
  CHECK_EQ_INT(info.entry_count, 7);
  CHECK_EQ_INT(info.merge_count, 1);
  CHECK_EQ_INT(info.longest, 600);
  CHECK(info.n_bos == 0 && info.n_eos == 2 && info.eos[0] == 50 && info.eos[1] == 3);
  const uint32_t ids[] = {3, 7, 9, 20, 50, 50, BPE_NONE - 1};
  for (size_t i = 0; i < 7; i++) {
    const bpe_token t = bpe_model_token(m, i);
    CHECK_EQ_INT(t.id, ids[i]);
    CHECK_EQ_INT(bpe_model_find_id(m, t.id), i == 5 ? 4 : i);
    CHECK_EQ_INT(bpe_model_find_bytes(m, t.bytes, t.len), i);
    CHECK_EQ_INT(t.kind, i < 4 ? BPE_TOKEN : i < 6 ? BPE_SPECIAL : BPE_ADDED);
  }
  CHECK_EQ_INT(bpe_model_find_id(m, 4), 7);
  CHECK_EQ_INT(bpe_model_find_bytes(m, "", 0), 7);
  CHECK_EQ_INT(bpe_model_find_bytes(m, "abc", 3), 7);
  const bpe_merge x = bpe_model_merge(m, 0);
  CHECK(x.rank == 5 && x.left == 3 && x.right == 7 && x.id == 9 && x.count == 1000);
  bpe_model_free(m);
}

/* A special whose name is a token's bytes too is found before it. */
static void check_find_bytes(void) {
  bpe_builder *b = unit_builder("gpt2");
  bpe_builder_token(b, 256, BPE_TOKEN, "ab", 2);
  bpe_builder_token(b, 257, BPE_TOKEN, "ab", 2);
  unit_special(b, 258, "ab");
  unit_special(b, 259, "\xff");
  bpe_model *m = unit_finish(b);
  if (m == NULL) return;
  CHECK_EQ_INT(bpe_model_find_bytes(m, "ab", 2), 258);
  CHECK_EQ_INT(bpe_model_find_bytes(m, "\xff", 1), 259);
  CHECK_EQ_INT(bpe_model_find_bytes(m, "\0", 1), 0);
  bpe_model_free(m);
}

static void check_finders(void) {
  bpe_builder *b = unit_builder("gpt2");
  unit_special(b, 256, "<1>");
  unit_special(b, 257, "<2>");
  bpe_builder_token(b, 258, BPE_ADDED, "<+>", 3);
  bpe_model *m = unit_finish(b);
  if (m == NULL) return;
  static const bpe_name one = {"<1>", 3}, plus = {"<+>", 3}, no = {"<\n>", 3}, ab = {"ab", 2};
  const uint8_t *text = (const uint8_t *)"<1><2><+>ab";
  bpe_finder *f;
  bpe_error e = {.status = BPE_OK};
  CHECK_EQ_INT(bpe_finder_new(m, NULL, 0, &e, &f), BPE_OK);
  CHECK(special_next(f, text, 0, 11).id == 256 && special_next(f, text, 3, 11).id == 257);
  CHECK_EQ_INT(special_next(f, text, 6, 11).id, 258);
  bpe_finder_free(f);
  CHECK_EQ_INT(bpe_finder_new(m, &one, 1, &e, &f), BPE_OK);
  CHECK(special_next(f, text, 0, 11).id == 256 && special_next(f, text, 1, 11).id == 258);
  bpe_finder_free(f);
  CHECK_EQ_INT(bpe_finder_new(m, &one, 0, &e, &f), BPE_OK); /* none of the specials */
  CHECK_EQ_INT(special_next(f, text, 0, 11).id, 258);
  bpe_finder_free(f);
  CHECK_EQ_INT(bpe_finder_new(m, &no, 1, &e, &f), BPE_MISUSE);
  CHECK(f == NULL && unit_says(&e, BPE_MISUSE, 0, "no such special token: <\\x0a>"));
  e = (bpe_error){.status = BPE_OK};
  CHECK_EQ_INT(bpe_finder_new(m, &plus, 1, &e, &f), BPE_MISUSE); /* it cannot be disallowed */
  CHECK(unit_says(&e, BPE_MISUSE, 0, "no such special token: <+>"));
  CHECK_EQ_INT(bpe_finder_new_forbidden(m, &ab, 1, NULL, 0, NULL, &f), BPE_OK);
  CHECK_EQ_INT(special_next(f, text, 0, 11).start, 9);
  CHECK_EQ_INT(special_next(f, text, 0, 11).id, BPE_NONE);
  bpe_finder_free(f);
  CHECK_EQ_INT(bpe_finder_new_forbidden(m, NULL, 0, &one, 1, NULL, &f), BPE_OK);
  CHECK_EQ_INT(special_next(f, text, 0, 11).id, 257);
  CHECK_EQ_INT(special_next(f, text, 4, 11).start, 11); /* added tokens are no specials */
  bpe_finder_free(f);
  e = (bpe_error){.status = BPE_OK};
  CHECK_EQ_INT(bpe_finder_new_forbidden(m, &(bpe_name){"", 0}, 1, NULL, 0, &e, &f), BPE_MISUSE);
  CHECK(f == NULL && unit_says(&e, BPE_MISUSE, 0, "empty special token"));
  bpe_model_free(m);
}

/* ---- Built-in encodings ---------------------------------------------------------------------- */

static const struct {
  const char *name, *pattern;
  uint32_t vocab_size;
  size_t tokens, entries, merges, longest;
} builtins[] = {
    {"gpt2", "gpt2", 50257, 50257, 50257, 50000, 128},
    {"r50k_base", "gpt2", 50257, 50257, 50257, 50000, 128},
    {"p50k_base", "gpt2", 50281, 50281, 50281, 50024, 128},
    {"p50k_edit", "gpt2", 50284, 50284, 50284, 50024, 128},
    {"cl100k_base", "cl100k", 100277, 100261, 100261, 100000, 128},
    {"o200k_base", "o200k", 200019, 200000, 200000, 199742, 128},
    {"o200k_harmony", "o200k", 201088, 201088, 201089, 199742, 128},
};

static void check_builtins(void) {
  for (int i = 0; i < 7; i++) {
    bpe_model *m;
    bpe_info info;
    const size_t len = strlen(builtins[i].name);
    CHECK(strcmp(bpe_builtin_name(i), builtins[i].name) == 0);
    CHECK_EQ_INT(bpe_builtin_find(builtins[i].name, len), i);
    CHECK_EQ_INT(bpe_builtin_find(builtins[i].name, len - 1), -1);
    unit_fail(0, false);
    if (!CHECK(bpe_builtin_load(&unit_alloc, i, NULL, &m) == BPE_OK)) continue;
    CHECK(unit_memory.requests < 200);
    bpe_model_info(m, &info);
    CHECK(strcmp(info.pattern, builtins[i].pattern) == 0 && !info.pattern_is_regex);
    CHECK_EQ_INT(info.vocab_size, builtins[i].vocab_size);
    CHECK_EQ_INT(info.token_count, builtins[i].tokens);
    CHECK_EQ_INT(info.entry_count, builtins[i].entries);
    CHECK_EQ_INT(info.merge_count, builtins[i].merges);
    CHECK_EQ_INT(info.longest, builtins[i].longest);
    CHECK(info.n_bos == 0 && info.n_eos == 0 && !info.whole);
    size_t wrong = 0;
    for (size_t k = 1; k < info.merge_count; k++)
      wrong += bpe_model_merge(m, k).rank != k || bpe_model_merge(m, k).count != 0;
    CHECK_EQ_INT(wrong, 0);
    bpe_model_free(m);
  }
  CHECK(bpe_builtin_name(7) == NULL && bpe_builtin_name(-1) == NULL);
}

static void check_shared_special(void) {
  bpe_model *m;
  const int which = bpe_builtin_find("o200k_harmony", 13);
  if (!CHECK(bpe_builtin_load(&unit_alloc, which, NULL, &m) == BPE_OK)) return;
  const bpe_token t = bpe_model_token(m, bpe_model_find_id(m, 200018));
  CHECK_BYTES(t.bytes, t.len, "<|endofprompt|>", 15);
  CHECK_EQ_INT(bpe_model_token(m, bpe_model_find_bytes(m, "<|reserved_200018|>", 19)).id, 200018);
  CHECK_EQ_INT(bpe_model_token(m, bpe_model_find_bytes(m, "<|reserved_201087|>", 19)).id, 201087);
  bpe_model_free(m);
}

static const struct {
  const char *name, *encoding; /* NULL: none */
} resolved[] = {
    {"gpt2", "gpt2"}, {"o200k_base", "o200k_base"}, {"gpt-4o", "o200k_base"},
    {"gpt-4", "cl100k_base"}, {"gpt-4-turbo", "cl100k_base"}, {"gpt-4.1-nano", "o200k_base"},
    {"gpt-4o-2024-05-13", "o200k_base"}, {"gpt-5", "o200k_base"}, {"gpt-5-mini", "o200k_base"},
    {"gpt-5.1", "o200k_base"}, {"gpt-oss-120b", "o200k_harmony"}, {"o1", "o200k_base"},
    {"o1-preview", "o200k_base"}, {"o3-mini", "o200k_base"}, {"gpt-2", "gpt2"},
    {"text-embedding-3-small", "cl100k_base"}, {"davinci", "r50k_base"},
    {"text-davinci-003", "p50k_base"}, {"code-davinci-edit-001", "p50k_edit"},
    {"ft:gpt-4o:org::id", "o200k_base"}, {"ft:gpt-4:x", "cl100k_base"},
    {"ft:gpt-3.5-turbo:my", "cl100k_base"}, {"gpt-3.5-turbo-0125", "cl100k_base"},
    {"gpt-35-turbo", "cl100k_base"}, {"chatgpt-4o-latest", "o200k_base"},
    {"", NULL}, {"gpt", NULL}, {"gpt-4x", NULL}, {"GPT-4", NULL}, {"o11", NULL}, {"gpt-oss", NULL},
    {"gpt-2-x", NULL}, {"text-embedding-3-", NULL}, {"cl100k", NULL}, {" gpt-4", NULL},
};

static void check_resolving(void) {
  for (size_t k = 0; k < sizeof resolved / sizeof *resolved; k++) {
    const int i = bpe_builtin_resolve(resolved[k].name, strlen(resolved[k].name));
    const char *got = bpe_builtin_name(i), *expected = resolved[k].encoding;
    if (!CHECK(expected == NULL ? i == -1 : got != NULL && strcmp(got, expected) == 0))
      printf("  %s\n", resolved[k].name);
  }
  CHECK_EQ_INT(bpe_builtin_resolve("gpt-4\0", 6), -1);
  CHECK_EQ_INT(bpe_builtin_resolve(NULL, 0), -1);
  int n = 0;
  for (; bpe_builtin_alias(n) != NULL; n++)
    CHECK(bpe_builtin_resolve(bpe_builtin_alias(n), strlen(bpe_builtin_alias(n))) >= 0);
  CHECK(n > 40);
  CHECK(bpe_builtin_alias(-1) == NULL);
}

/* The longest special token, and one more byte. */
static void check_long_special(void) {
  static char name[65536];
  memset(name, 's', sizeof name);
  for (size_t more = 0; more < 2; more++) {
    bpe_error e = {.status = BPE_OK};
    bpe_model *m = NULL;
    bpe_builder *b = bpe_builder_new(&unit_alloc);
    bpe_builder_token(b, 0, BPE_TOKEN, "a", 1);
    bpe_builder_token(b, 7, BPE_SPECIAL, name, sizeof name - 1 + more);
    bpe_builder_token(b, 8, BPE_TOKEN, "b", 1); /* after a failure: nothing */
    bpe_builder_pattern(b, "none", 4, false);
    const bpe_status st = bpe_builder_finish(b, &e, &m);
    CHECK(st == (more == 0 ? BPE_OK : BPE_BADMODEL) && (m != NULL) == (more == 0));
    if (more != 0)
      CHECK(unit_says(&e, BPE_BADMODEL, 7, "special token is longer than 65535 bytes: id 7"));
    bpe_model_free(m);
  }
}

/* Behind the version: a number that 64 bits hold, one that they do not, and one that is cut. */
static void check_blob_numbers(void) {
  static const struct {
    const char *bytes, *text;
  } cases[] = {
      {"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "number out of range"},
      {"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "number out of range"},
      {"\x01\x80\x80", "ends too early"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint8_t blob[64] = "bpemodel";
    const size_t n = strlen(cases[i].bytes), len = 8 + n;
    memcpy(blob + 8, cases[i].bytes, n);
    sha256 h;
    sha256_init(&h);
    sha256_add(&h, blob, len);
    sha256_end(&h, blob + len);
    bpe_error e = {.status = BPE_OK};
    bpe_model *m;
    CHECK(bpe_model_parse(&unit_alloc, blob, len + 32, &e, &m) == BPE_BADMODEL && m == NULL);
    if (!CHECK(strstr(e.text, cases[i].text) != NULL)) printf("  %s\n", e.text);
    e = (bpe_error){.status = BPE_OK};
    CHECK(bpe_model_parse(&unit_alloc, blob, 9, &e, &m) == BPE_BADMODEL && m == NULL);
    CHECK(unit_says(&e, BPE_BADMODEL, 9, "model: ends too early"));
  }
}

int main(void) {
  check_known_digests();
  check_digests_differ();
  check_order_of_specials();
  check_info();
  check_find_bytes();
  check_finders();
  check_builtins();
  check_shared_special();
  check_resolving();
  check_long_special();
  check_blob_numbers();
  return unit_summary();
}
