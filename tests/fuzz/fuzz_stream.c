/* fuzz_stream.c - any text, cut into any parts, has the ids it has as a whole.
**
** Input: encoding, special tokens, how often the text is repeated (what is decided before the end
** needs length), sizes of parts, then the text.
*/
#include "fuzz.h"

enum { ENCODINGS = 7, SIZES = 8 };
#ifdef BPE_SMALL
enum { MOST = 4000 };
#else
enum { MOST = 70000 };
#endif

static struct subject {
  bpe_model *model;
  bpe_coder *coder;
  bpe_finder *all;
} subjects[ENCODINGS];

static struct subject *subject_of(unsigned which) {
  struct subject *s = &subjects[which];
  if (s->model != NULL) return s;
  REQUIRE(bpe_builtin_load(&fuzz_alloc, (int)which, NULL, &s->model) == BPE_OK);
  REQUIRE(bpe_coder_new(s->model, 0, NULL, &s->coder) == BPE_OK);
  REQUIRE(bpe_finder_new(s->model, NULL, 0, NULL, &s->all) == BPE_OK);
  return s;
}

static size_t drain(bpe_stream *s, uint32_t *out) {
  const uint32_t *ids;
  size_t n, all = 0;
  bpe_status st;
  while ((st = bpe_stream_next(s, &ids, &n, NULL)) == BPE_OK) {
    memcpy(out + all, ids, n * sizeof *ids);
    all += n;
  }
  REQUIRE(st == BPE_DONE);
  return all;
}

static void check(const struct subject *s, const uint8_t *text, size_t len,
                  const bpe_walk_options *o, const size_t sizes[SIZES]) {
  bpe_buffer whole;
  bpe_stream *stream;
  uint32_t *ids = malloc((len + 1) * sizeof *ids);
  REQUIRE(ids != NULL);
  size_t n = 0;
  bpe_buffer_init(&whole, &fuzz_alloc, 0);
  REQUIRE(bpe_encode_packed(s->coder, text, len, 32, o, NULL, &whole) == BPE_OK);
  REQUIRE(bpe_stream_new(s->coder, o, NULL, &stream) == BPE_OK);
  for (size_t at = 0, i = 0; at < len; i = (i + 1) % SIZES) {
    const size_t part = sizes[i] < len - at ? sizes[i] : len - at;
    REQUIRE(bpe_stream_add(stream, text + at, part, NULL) == BPE_OK);
    at += part;
    n += drain(stream, ids + n);
  }
  bpe_stream_end(stream);
  n += drain(stream, ids + n);
  REQUIRE(n == whole.len / 4 + sabotage());
  for (size_t i = 0; i < n; i++) {
    const uint8_t *p = whole.bytes + 4 * i;
    REQUIRE(ids[i] == ((uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                       (uint32_t)p[3] << 24));
  }
  bpe_stream_free(stream);
  bpe_buffer_clear(&whole);
  free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {data, size};
  const struct subject *s = subject_of(take(&in, ENCODINGS));
  const bpe_walk_options o = {.allowed = take(&in, 2) == 1 ? s->all : NULL};
  const unsigned long_text = take(&in, 8);
  size_t sizes[SIZES];
  for (int i = 0; i < SIZES; i++) {
    const size_t n = take(&in, 64);
    sizes[i] = 1 + (long_text == 7 ? n * 1500 : n);
  }
  size_t repeat = long_text == 7 && in.left > 0 ? MOST / in.left + 1 : 1;
  if (in.left * repeat > 2 * MOST) repeat = 1;
  uint8_t *text = malloc(in.left * repeat + 1);
  REQUIRE(text != NULL);
  for (size_t i = 0; i < repeat; i++)
    if (in.left != 0) memcpy(text + i * in.left, in.at, in.left);
  check(s, text, in.left * repeat, &o, sizes);
  free(text);
  return 0;
}
