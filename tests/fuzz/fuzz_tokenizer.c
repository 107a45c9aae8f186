/* fuzz_tokenizer.c - any small tokenizer, any text, every path: all as the slow twin has it.
**
** Input: how many bytes describe the tokenizer, those bytes, each of which decides one thing about
** it (prop_subject.h: rank file, merge list or chain, tokens, ranks, patterns, special tokens,
** BOS and EOS); eight bytes for what is asked of it; how the rest becomes the text: as it is, or
** each byte as one of the tokenizer's alphabet, so that everything merges, or that again and again.
** Run it in the project's folder: the twin reads tests/vectors.
*/
#include "paths.h"

enum { MOST_TEXT = 1200, CHOICES = 8 };

static prop_world *world(void) {
  static prop_world w;
  static bool open;
  if (!open)
    REQUIRE(
        prop_world_open(&w, "data/encodings", "tests/vectors/unicode-classes.json", sabotage()));
  open = true;
  return &w;
}

/* The tokenizer of the description; the last one is kept, without what its coders remember. */
static prop_subject *subject_of(const uint8_t *bytes, size_t len) {
  static prop_subject s;
  static uint8_t described[256];
  static size_t described_len = SIZE_MAX;
  if (described_len == len && (len == 0 || memcmp(described, bytes, len) == 0)) {
    REQUIRE(prop_subject_forget(&s));
    return &s;
  }
  if (described_len != SIZE_MAX) prop_subject_clear(&s);
  prop_rng rng = prop_bytes(bytes, len);
  REQUIRE(prop_subject_make(&s, world(), &rng, len));
  if (len != 0) memcpy(described, bytes, len);
  described_len = len;
  return &s;
}

/* Characters that a regex would class by an older Unicode than the twin's end the text. */
static void cut_avoided(const prop_subject *s, input *text) {
  if (s->source.avoid == NULL) return;
  for (size_t at = 0, n; at < text->left; at += n) {
    uint32_t cp;
    n = oracle_utf8(text->at + at, text->left - at, &cp);
    if (n != 0 && s->source.avoid(cp)) text->left = at;
    if (n == 0) n = 1;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static uint8_t made[MOST_TEXT];
  input in = {data, size};
  size_t len;
  const uint8_t *bytes = take_bytes(&in, take(&in, 256), &len);
  prop_subject *s = subject_of(bytes, len);
  bytes = take_bytes(&in, CHOICES, &len);
  prop_rng rng = prop_bytes(bytes, len);
  const unsigned how = take(&in, 4);
  input text = in;
  if (text.left > MOST_TEXT) text.left = MOST_TEXT;
  if (how != 0 && in.left > 0) {
    text.at = made;
    if (how == 3) text.left = MOST_TEXT;
    for (size_t i = 0; i < text.left; i++)
      made[i] = (uint8_t)s->own_alphabet[in.at[i % in.left] % s->source.alphabet_len];
  }
  cut_avoided(s, &text);
  check_paths(s, &text, &rng);
  return 0;
}
