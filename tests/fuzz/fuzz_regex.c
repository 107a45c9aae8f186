/* fuzz_regex.c - any pattern on any text: refused, given up, or a tiling that repeats.
**
** Input: the pattern's length, a bit for splitting only, the pattern, then the text.
*/
#include "fuzz.h"

enum { MOST_PIECES = 1024, MOST_TEXT = 1000 };

static bpe_coder *coder(void) {
  static bpe_coder *c;
  if (c != NULL) return c;
  bpe_model *m;
  bpe_builder *b = bpe_builder_new(&fuzz_alloc);
  for (uint32_t i = 0; i < 256; i++) {
    const uint8_t byte = (uint8_t)i;
    bpe_builder_token(b, i, BPE_TOKEN, &byte, 1);
  }
  bpe_builder_grow(b, 'a', 'b', 256);
  bpe_builder_pattern(b, "none", 4, false);
  REQUIRE(bpe_builder_finish(b, NULL, &m) == BPE_OK);
  REQUIRE(bpe_coder_new(m, 16, NULL, &c) == BPE_OK);
  return c;
}

/* Ends of the pieces, and how many; the status that ended the walk. */
static bpe_status split(const bpe_walk_options *o, const input *text, size_t *stops, size_t *n) {
  bpe_walk *w;
  bpe_piece p;
  bpe_error e = {.status = BPE_OK};
  size_t at = 0;
  *n = 0;
  REQUIRE(bpe_walk_new(coder(), NULL, &w) == BPE_OK);
  bpe_status st = bpe_walk_start(w, text->at, text->left, o, &e);
  while (st == BPE_OK && (st = bpe_walk_next(w, &p, &e)) == BPE_OK) {
    REQUIRE(p.start == at && p.stop > at && p.stop <= text->left);
    at = p.stop;
    if (*n < MOST_PIECES) stops[(*n)++] = at;
  }
  fuzz_check_error(st, &e);
  REQUIRE(st == BPE_DONE ? at == text->left : st == BPE_REGEXLIMIT);
  bpe_walk_free(w);
  return st;
}

/* A piece of well-formed text is not cut inside a character. */
static void check_edges(const input *text, const size_t *stops, size_t n) {
  if (!bpe_utf8_valid(text->at, text->left)) return;
  for (size_t i = 0, at = 0; i < n; at = stops[i++])
    REQUIRE(bpe_utf8_valid(text->at + at, stops[i] - at));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static size_t stops[2][MOST_PIECES];
  input in = {data, size};
  size_t len, n[2];
  const unsigned most = take(&in, 64);
  const bool split_only = take(&in, 2);
  const char *regex = (const char *)take_bytes(&in, most, &len);
  if (in.left > MOST_TEXT) in.left = MOST_TEXT;
  (void)coder();
  const size_t blocks = fuzz_blocks;
  bpe_pattern *p;
  bpe_error e = {.status = BPE_OK};
  const bpe_status st = bpe_pattern_new(&fuzz_alloc, len == 0 ? "" : regex, len, true, &e, &p);
  fuzz_check_error(st, &e);
  REQUIRE((st == BPE_OK) == (p != NULL));
  if (p != NULL) {
    const bpe_walk_options o = {.pattern = p, .split_only = split_only};
    const bpe_status first = split(&o, &in, stops[0], &n[0]);
    REQUIRE(split(&o, &in, stops[1], &n[1]) == first && n[0] == n[1]);
    REQUIRE(memcmp(stops[0], stops[1], n[0] * sizeof **stops) == 0);
    if (first == BPE_DONE) check_edges(&in, stops[0], n[0]);
    bpe_pattern_free(p);
  } else {
    REQUIRE(st == BPE_BADREGEX && e.offset <= len);
  }
  REQUIRE(fuzz_blocks <= blocks + 3); /* the coder's scratch, made once */
  return 0;
}
