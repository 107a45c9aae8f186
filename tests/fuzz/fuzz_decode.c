/* fuzz_decode.c - any list of ids through any built-in encoding, and any bytes through repair.
**
** Input: encoding, what specials give, document or not, then ids of three bytes each, every other
** one brought into range. What decodes must be the tokens' bytes, one after the other, and encode
** and decode to itself; what does not must name an id that is at fault. Then the bytes decoded are
** repaired in every way.
*/
#include "fuzz.h"

enum { ENCODINGS = 7, MOST_IDS = 4096 };

static bpe_model *model_of(unsigned which) {
  static bpe_model *models[ENCODINGS + 1];
  if (models[which] != NULL) return models[which];
  if (which < ENCODINGS) {
    REQUIRE(bpe_builtin_load(&fuzz_alloc, (int)which, NULL, &models[which]) == BPE_OK);
  } else { /* the built-ins have nothing to wrap a document in */
    bpe_builder *b = bpe_builder_new(&fuzz_alloc);
    for (uint32_t c = 0; c < 256; c++) {
      const uint8_t byte = (uint8_t)c;
      bpe_builder_token(b, c, BPE_TOKEN, &byte, 1);
    }
    bpe_builder_token(b, 256, BPE_SPECIAL, "<s>", 3);
    bpe_builder_token(b, 258, BPE_ADDED, "[+]", 3);
    bpe_builder_bos(b, 256);
    bpe_builder_eos(b, 256);
    bpe_builder_eos(b, 'x');
    bpe_builder_pattern(b, "gpt2", 4, false);
    REQUIRE(bpe_builder_finish(b, NULL, &models[which]) == BPE_OK);
  }
  return models[which];
}

/* Without a document: every id gives its bytes, or one is at fault. */
static void check_decoded(const bpe_model *m, const uint32_t *ids, size_t n, bpe_specials how,
                          bpe_status st, const bpe_error *e, const bpe_buffer *out) {
  bpe_info info;
  size_t at = 0;
  bpe_model_info(m, &info);
  for (size_t i = 0; i < n; i++) {
    const size_t k = bpe_model_find_id(m, ids[i]);
    const bool known = k != info.entry_count;
    const bpe_token t = known ? bpe_model_token(m, k) : (bpe_token){.id = 0};
    if (!known || (t.kind == BPE_SPECIAL && how == BPE_SPECIALS_ERROR)) {
      REQUIRE(st == BPE_BADTOKEN && e->offset == i);
      return;
    }
    if (t.kind == BPE_SPECIAL && how == BPE_SPECIALS_SKIP) continue;
    REQUIRE(at + t.len <= out->len && memcmp(out->bytes + at, t.bytes, t.len) == 0);
    at += t.len;
  }
  REQUIRE(st == BPE_OK && at == out->len + sabotage());
}

/* Whatever bytes came out encode to ids that give them again. */
static void check_again(const bpe_model *m, const bpe_buffer *bytes) {
  bpe_coder *c;
  bpe_buffer packed, again;
  static uint32_t ids[1 << 20];
  bpe_buffer_init(&packed, &fuzz_alloc, 0);
  bpe_buffer_init(&again, &fuzz_alloc, 0);
  REQUIRE(bpe_coder_new(m, 64, NULL, &c) == BPE_OK);
  REQUIRE(bpe_encode_packed(c, bytes->bytes, bytes->len, 32, NULL, NULL, &packed) == BPE_OK);
  const size_t n = packed.len / 4;
  REQUIRE(n <= sizeof ids / sizeof *ids);
  for (size_t i = 0; i < n; i++) {
    const uint8_t *p = packed.bytes + 4 * i;
    ids[i] = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
  }
  REQUIRE(bpe_decode(m, ids, n, BPE_SPECIALS_ERROR, false, NULL, NULL, NULL, &again) == BPE_OK);
  REQUIRE(again.len == bytes->len);
  REQUIRE(again.len == 0 || memcmp(again.bytes, bytes->bytes, again.len) == 0);
  bpe_coder_free(c);
  bpe_buffer_clear(&packed);
  bpe_buffer_clear(&again);
}

static void check_repair(const bpe_buffer *bytes) {
  const bool valid = bpe_utf8_valid(bytes->bytes, bytes->len);
  for (int how = BPE_REPAIR_REPLACE; how <= BPE_REPAIR_HOLD; how++) {
    bpe_buffer out;
    bpe_error e = {.status = BPE_OK};
    bpe_buffer_init(&out, &fuzz_alloc, 0);
    const bpe_status st = bpe_utf8_repair(bytes->bytes, bytes->len, (bpe_repair)how, &e, &out);
    fuzz_check_error(st, &e);
    REQUIRE((st != BPE_OK) == (how == BPE_REPAIR_STRICT && !valid));
    REQUIRE(bpe_utf8_valid(out.bytes, out.len));
    if (valid) REQUIRE(out.len == bytes->len);
    else if (st != BPE_OK) REQUIRE(e.offset < bytes->len && bpe_utf8_valid(bytes->bytes, e.offset));
    bpe_buffer_clear(&out);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {data, size};
  const bpe_model *m = model_of(take(&in, ENCODINGS + 1));
  const bpe_specials how = (bpe_specials)take(&in, 3);
  const bool document = take(&in, 2);
  static uint32_t ids[MOST_IDS];
  size_t n = 0;
  bpe_info info;
  bpe_model_info(m, &info);
  const size_t blocks = fuzz_blocks;
  while (in.left > 0 && n < MOST_IDS) {
    const uint32_t x = take(&in, 256) | take(&in, 256) << 8 | take(&in, 256) << 16;
    ids[n] = n % 2 == 0 ? x % info.vocab_size : x;
    n++;
  }
  bpe_buffer out;
  bpe_error e = {.status = BPE_OK};
  bpe_buffer_init(&out, &fuzz_alloc, 0);
  bpe_status st = bpe_decode(m, ids, n, how, document, NULL, NULL, &e, &out);
  fuzz_check_error(st, &e);
  if (!document) check_decoded(m, ids, n, how, st, &e, &out);
  else if (st == BPE_OK) REQUIRE(n >= info.n_bos + info.n_eos);
  else REQUIRE(st == BPE_MISUSE || (st == BPE_BADTOKEN && e.offset <= n));
  check_again(m, &out);
  check_repair(&out);
  bpe_buffer_clear(&out);
  REQUIRE(fuzz_blocks == blocks);
  return 0;
}
