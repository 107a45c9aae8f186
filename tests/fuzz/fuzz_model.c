/* fuzz_model.c - any description of a tokenizer: refused with a message, or sound.
**
** Input: builder calls, one byte for the call and some for its arguments, until a byte says that
** the description is complete; the rest is a text. Ids and ranks are small, so that they collide.
** A model that is accepted answers for itself what was told, and what it encodes decodes again.
*/
#include "fuzz.h"

enum { CALLS = 13, SMALL = 320, MOST_CALLS = 400 };

/* Mostly a small id, sometimes any. */
static uint32_t take_id(input *in) {
  const uint32_t x = take(in, 256) | take(in, 256) << 8;
  return x < 0xff00 ? x % SMALL : x < 0xff80 ? x << 8 : BPE_NONE - (0xffff - x);
}

static bool take_call(input *in, bpe_builder *b) {
  size_t len;
  const uint8_t *s;
  const unsigned call = take(in, CALLS);
  switch (call) {
    case 1: case 2: case 3: {
      const uint32_t id = take_id(in);
      s = take_bytes(in, take(in, 12), &len);
      bpe_builder_token(b, id, (bpe_kind)(call - 1), s, len);
      return true;
    }
    case 4: case 5: {
      const uint32_t rank = take_id(in), left = take_id(in), right = take_id(in);
      bpe_builder_merge(b, rank, left, right, take_id(in), call == 4 ? 0 : take(in, 256));
      return true;
    }
    case 6: {
      const uint32_t left = take_id(in), right = take_id(in);
      bpe_builder_grow(b, left, right, take_id(in));
      return true;
    }
    case 7: {
      const char *name = bpe_pattern_name((int)take(in, 16));
      if (name != NULL) bpe_builder_pattern(b, name, strlen(name), false);
      return true;
    }
    case 8:
      s = take_bytes(in, take(in, 24), &len);
      bpe_builder_pattern(b, len == 0 ? "" : (const char *)s, len, true);
      return true;
    case 9: bpe_builder_whole(b); return true;
    case 10: bpe_builder_bos(b, take_id(in)); return true;
    case 11: bpe_builder_eos(b, take_id(in)); return true;
    case 12: /* all single bytes, which few inputs would come to by themselves */
      for (uint32_t c = 0; c < 256; c++) {
        const uint8_t byte = (uint8_t)c;
        bpe_builder_token(b, c, BPE_TOKEN, &byte, 1);
      }
      return true;
    default: return false;
  }
}

static void check_model(const bpe_model *m, const bpe_info *info) {
  uint8_t digest[2][32];
  size_t ids = 0;
  for (size_t i = 0; i < info->entry_count; i++) {
    const bpe_token t = bpe_model_token(m, i);
    const size_t first = bpe_model_find_id(m, t.id), same = bpe_model_find_bytes(m, t.bytes, t.len);
    REQUIRE(t.len > 0 && t.len <= info->longest && t.id < info->vocab_size);
    REQUIRE(first <= i && bpe_model_token(m, first).id == t.id);
    REQUIRE(same < info->entry_count);
    const bpe_token u = bpe_model_token(m, same);
    REQUIRE(u.len == t.len && memcmp(u.bytes, t.bytes, t.len) == 0);
    ids += first == i;
  }
  REQUIRE(ids == info->token_count + sabotage());
  for (size_t i = 0; i < info->merge_count; i++) {
    const bpe_merge x = bpe_model_merge(m, i);
    const bpe_token l = bpe_model_token(m, bpe_model_find_id(m, x.left));
    const bpe_token r = bpe_model_token(m, bpe_model_find_id(m, x.right));
    REQUIRE(bpe_model_token(m, bpe_model_find_id(m, x.id)).len == l.len + r.len);
    REQUIRE(i == 0 || bpe_model_merge(m, i - 1).rank <= x.rank);
  }
  for (int i = 0; i < 2; i++) REQUIRE(bpe_model_digest(m, NULL, digest[i]) == BPE_OK);
  REQUIRE(memcmp(digest[0], digest[1], 32) == 0);
}

static void check_text(const bpe_model *m, const bpe_info *info, const input *text, bool document) {
  bpe_coder *c;
  bpe_walk *w;
  bpe_piece p;
  bpe_error e = {.status = BPE_OK};
  bpe_buffer out;
  uint64_t n = 0, count = 0;
  size_t at = 0;
  const bpe_walk_options o = {.document = document};
  bpe_buffer_init(&out, &fuzz_alloc, 0);
  REQUIRE(bpe_coder_new(m, 8, NULL, &c) == BPE_OK);
  REQUIRE(bpe_walk_new(c, NULL, &w) == BPE_OK);
  bpe_status st = bpe_walk_start(w, text->at, text->left, &o, &e);
  while (st == BPE_OK && (st = bpe_walk_next(w, &p, &e)) == BPE_OK) {
    REQUIRE(p.start == at && p.stop >= at && p.stop <= text->left);
    at = p.stop;
    n += p.n_ids;
    const bool is_wrapping = p.start == p.stop;
    if (!is_wrapping)
      REQUIRE(bpe_decode(m, p.ids, p.n_ids, BPE_SPECIALS_TEXT, false, NULL, NULL, NULL, &out) ==
              BPE_OK);
  }
  fuzz_check_error(st, &e);
  if (st == BPE_DONE) {
    REQUIRE(at == text->left);
    if (info->entry_count == info->token_count) { /* no id has two names */
      REQUIRE(out.len == text->left);
      REQUIRE(out.len == 0 || memcmp(out.bytes, text->at, out.len) == 0);
    }
  } else {
    REQUIRE(st == BPE_BADTEXT || st == BPE_REGEXLIMIT || st == BPE_MISUSE);
  }
  const bpe_status again = bpe_count(c, text->at, text->left, &o, NULL, &count);
  REQUIRE(st == BPE_DONE ? again == BPE_OK && count == n : again == st && count == 0);
  bpe_buffer_clear(&out);
  bpe_walk_free(w);
  bpe_coder_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {data, size};
  const size_t blocks = fuzz_blocks;
  bpe_model *m;
  bpe_info info;
  bpe_error e = {.status = BPE_OK};
  bpe_builder *b = bpe_builder_new(&fuzz_alloc);
  for (int i = 0; i < MOST_CALLS && take_call(&in, b); i++) continue;
  const bpe_status st = bpe_builder_finish(b, &e, &m);
  fuzz_check_error(st, &e);
  REQUIRE((st == BPE_OK) == (m != NULL));
  if (m != NULL) {
    if (in.left > 2000) in.left = 2000;
    bpe_model_info(m, &info);
    check_model(m, &info);
    check_text(m, &info, &in, false);
    check_text(m, &info, &in, true);
    bpe_model_free(m);
  }
  REQUIRE(fuzz_blocks == blocks);
  return 0;
}
