/* unit_decode.c - ids to bytes: what specials give, what a document must be, and each refusal. */
#include "unit.h"

#define LIST(...) (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / 4

static void decodes(const bpe_model *m, const uint32_t *ids, size_t n, bpe_specials specials,
                    bool document, const char *expected, size_t len) {
  bpe_buffer b;
  bpe_error e = {.status = BPE_OK};
  bpe_buffer_init(&b, &unit_alloc, 0);
  CHECK_EQ_INT(bpe_decode(m, ids, n, specials, document, NULL, NULL, &e, &b), BPE_OK);
  CHECK_EQ_INT(e.status, BPE_OK);
  CHECK_BYTES(b.bytes, b.len, expected, len);
  bpe_buffer_clear(&b);
}

static void refuses(const bpe_model *m, const uint32_t *ids, size_t n, bpe_specials specials,
                    bool document, bpe_status status, uint64_t offset, const char *message) {
  bpe_buffer b;
  bpe_error e = {.status = BPE_OK};
  bpe_buffer_init(&b, &unit_alloc, 0);
  CHECK_EQ_INT(bpe_decode(m, ids, n, specials, document, NULL, NULL, &e, &b), status);
  if (!CHECK(unit_says(&e, status, offset, message))) printf("  expected: %s\n", message);
  bpe_buffer_clear(&b);
}

static void check_plain(const bpe_model *m) {
  decodes(m, NULL, 0, BPE_SPECIALS_TEXT, false, "", 0);
  decodes(m, LIST(258, 32, 257), BPE_SPECIALS_TEXT, false, "abc bc", 6);
  decodes(m, LIST('a', 'b'), BPE_SPECIALS_ERROR, false, "ab", 2); /* not what encoding gives */
  decodes(m, LIST(0, 255, 0), BPE_SPECIALS_TEXT, false, "\0\xff\0", 3);
  refuses(m, LIST('a', 261), BPE_SPECIALS_TEXT, false, BPE_BADTOKEN, 1,
          "unknown id at position 1: 261");
  refuses(m, LIST(BPE_NONE), BPE_SPECIALS_SKIP, false, BPE_BADTOKEN, 0,
          "unknown id at position 0: 4294967295");
}

static void check_specials(const bpe_model *m) {
  decodes(m, LIST(259, 'x', 260), BPE_SPECIALS_TEXT, false, "<s>x</s>", 8);
  decodes(m, LIST(259, 'x', 260), BPE_SPECIALS_SKIP, false, "x", 1);
  decodes(m, LIST(259), BPE_SPECIALS_SKIP, false, "", 0);
  refuses(m, LIST('a', 'b', 260, 259), BPE_SPECIALS_ERROR, false, BPE_BADTOKEN, 2,
          "control 260 at position 2");
}

/* In the order: length, BOS, EOS, what is inside, then each id. */
static void check_documents(const bpe_model *m) {
  decodes(m, LIST(259, 258, 260), BPE_SPECIALS_TEXT, true, "abc", 3);
  decodes(m, LIST(259, 258, 260), BPE_SPECIALS_ERROR, true, "abc", 3);
  decodes(m, LIST(259, 260), BPE_SPECIALS_TEXT, true, "", 0);
  refuses(m, NULL, 0, BPE_SPECIALS_TEXT, true, BPE_BADTOKEN, 0,
          "document needs at least 2 ids: found 0");
  refuses(m, LIST(999), BPE_SPECIALS_TEXT, true, BPE_BADTOKEN, 1,
          "document needs at least 2 ids: found 1");
  refuses(m, LIST(258, 999), BPE_SPECIALS_TEXT, true, BPE_BADTOKEN, 0,
          "expected BOS 259 at position 0: found 258");
  refuses(m, LIST(259, 999, 258), BPE_SPECIALS_TEXT, true, BPE_BADTOKEN, 2,
          "expected EOS 260 at position 2: found 258");
  refuses(m, LIST(259, 999, 259, 260), BPE_SPECIALS_TEXT, true, BPE_BADTOKEN, 2,
          "interior control 259 at position 2");
  refuses(m, LIST(259, 260, 260), BPE_SPECIALS_SKIP, true, BPE_BADTOKEN, 1,
          "interior control 260 at position 1");
  refuses(m, LIST(259, 'a', 999, 260), BPE_SPECIALS_TEXT, true, BPE_BADTOKEN, 2,
          "unknown id at position 2: 999");
}

static void check_odd_documents(void) {
  bpe_builder *b = unit_builder("gpt2");
  unit_special(b, 256, "<e>");
  bpe_builder_eos(b, 256);
  bpe_builder_eos(b, 256);
  bpe_model *m = unit_finish(b);
  if (m == NULL) return;
  decodes(m, LIST('a', 256, 256), BPE_SPECIALS_TEXT, true, "a", 1);
  decodes(m, LIST(256, 256), BPE_SPECIALS_TEXT, true, "", 0);
  refuses(m, LIST(256, 256, 256), BPE_SPECIALS_TEXT, true, BPE_BADTOKEN, 0,
          "interior control 256 at position 0");
  refuses(m, LIST(256, 'a', 256), BPE_SPECIALS_TEXT, true, BPE_BADTOKEN, 1,
          "expected EOS 256 at position 1: found 97");
  bpe_model_free(m);
  m = unit_finish(unit_builder("gpt2"));
  if (m == NULL) return;
  refuses(m, LIST('a'), BPE_SPECIALS_TEXT, true, BPE_MISUSE, 0,
          "tokenizer has no BOS or EOS tokens");
  bpe_model_free(m);
}

/* Added tokens are text to decode, whatever is said of specials; of two specials with one id the
** first counts; ids may be scattered. */
static void check_kinds(void) {
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  bpe_builder_token(b, 5, BPE_ADDED, "[+]", 3);
  unit_special(b, BPE_NONE - 1, "<2>");
  unit_special(b, BPE_NONE - 1, "<1>");
  bpe_builder_token(b, 70000, BPE_TOKEN, "\xe4", 1);
  bpe_builder_pattern(b, "none", 4, false);
  bpe_model *m = unit_finish(b);
  if (m == NULL) return;
  decodes(m, LIST(5, 70000, BPE_NONE - 1), BPE_SPECIALS_TEXT, false, "[+]\xe4<2>", 7);
  decodes(m, LIST(5, 70000, BPE_NONE - 1), BPE_SPECIALS_SKIP, false, "[+]\xe4", 4);
  decodes(m, LIST(5, 70000), BPE_SPECIALS_ERROR, false, "[+]\xe4", 4);
  refuses(m, LIST(5, 6), BPE_SPECIALS_TEXT, false, BPE_BADTOKEN, 1,
          "unknown id at position 1: 6");
  refuses(m, LIST(BPE_NONE - 1), BPE_SPECIALS_ERROR, false, BPE_BADTOKEN, 0,
          "control 4294967294 at position 0");
  bpe_model_free(m);
}

static int say_stop(void *asked) {
  return ++*(int *)asked == 3;
}

static int never_stop(void *asked) {
  ++*(int *)asked;
  return 0;
}

static void check_limits(const bpe_model *m) {
  enum { N = 100000 };
  uint32_t *ids = malloc(N * sizeof *ids);
  if (ids == NULL) abort();
  for (size_t i = 0; i < N; i++) ids[i] = 'x';
  bpe_buffer b;
  bpe_error e = {.status = BPE_OK};
  int asked = 0;
  bpe_buffer_init(&b, &unit_alloc, 0);
  CHECK_EQ_INT(bpe_decode(m, ids, N, BPE_SPECIALS_TEXT, false, never_stop, &asked, &e, &b), BPE_OK);
  CHECK(b.len == N && asked >= N >> 16);
  asked = 0;
  CHECK_EQ_INT(bpe_decode(m, ids, N, BPE_SPECIALS_TEXT, false, say_stop, &asked, &e, &b),
               BPE_STOPPED);
  CHECK(asked == 3 && e.status == BPE_STOPPED && e.offset < N);
  bpe_buffer_clear(&b);
  for (size_t less = 0; less < 2; less++) {
    b.limit = N - less;
    e = (bpe_error){.status = BPE_OK};
    CHECK_EQ_INT(bpe_decode(m, ids, N, BPE_SPECIALS_TEXT, false, NULL, NULL, &e, &b),
                 less ? BPE_TOOBIG : BPE_OK);
    CHECK_EQ_INT(e.status, less ? BPE_TOOBIG : BPE_OK);
    CHECK_EQ_INT(b.len, N - less);
    bpe_buffer_clear(&b);
  }
  free(ids);
}

int main(void) {
  bpe_model *m = unit_tiny("gpt2");
  if (m != NULL) {
    check_plain(m);
    check_specials(m);
    check_documents(m);
    check_limits(m);
  }
  bpe_model_free(m);
  check_odd_documents();
  check_kinds();
  return unit_summary();
}
