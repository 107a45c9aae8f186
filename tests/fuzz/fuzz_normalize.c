/* fuzz_normalize.c - any normalizer on any text, against the obvious way to do it.
**
** Input: pattern and whether exports are tried too, the steps, each with its strings, then the
*text. The ids must be those of the
** same tokenizer without the normalizer on the text normalized here: the forms by utf8proc on each
** well-formed run as a whole, replacements by looking for the string at every byte. Ends of tokens
** must rise to the end of the text as it was given.
*/
#include "import.h"

#include <utf8proc.h>

enum { MOST_STEPS = 4, MOST_TEXT = 500, MOST_STRING = 12 };

typedef struct step {
  unsigned kind; /* 0-3: nfc, nfd, nfkc, nfkd; 4 replace; 5 prepend; 6 prefix_space */
  char from[MOST_STRING], to[MOST_STRING];
  size_t from_len, to_len;
} step;

static const char *const forms[] = {"nfc", "nfd", "nfkc", "nfkd"};

/* Up to MOST_STRING bytes, cut before what is malformed; strings of settings are UTF-8. */
static size_t take_string(input *in, char *out) {
  size_t len, n = 0;
  const uint8_t *p = take_bytes(in, take(in, MOST_STRING), &len);
  while (n < len && p[n] >= 0x20) {
    const size_t k = bpe_utf8_next(p + n, len - n);
    if (!bpe_utf8_valid(p + n, k)) break;
    memcpy(out + n, p + n, k);
    n += k;
  }
  return n;
}

static void put_string(page *p, const char *text, size_t len) {
  put(p, "\"", 1);
  for (size_t i = 0; i < len; i++) {
    if (text[i] == '"' || text[i] == '\\') put(p, "\\", 1);
    put(p, text + i, 1);
  }
  put(p, "\"", 1);
}

static void put_step(page *p, const step *s) {
  char word[32];
  if (s->kind < 4) put(p, word, (size_t)snprintf(word, sizeof word, "\"%s\"", forms[s->kind]));
  else if (s->kind == 6) put(p, "\"prefix_space\"", 14);
  else {
    put(p, s->kind == 4 ? "{\"replace\":[" : "{\"prepend\":", s->kind == 4 ? 12 : 11);
    if (s->kind == 4) put_string(p, s->from, s->from_len), put(p, ",", 1);
    put_string(p, s->to, s->to_len);
    put(p, s->kind == 4 ? "]}" : "}", s->kind == 4 ? 2 : 1);
  }
}

/* The well-formed runs of a text in a form; what is malformed stays. One ends before U+11A7, which
** utf8proc takes for a trailing consonant and loses; it composes with nothing. */
static void apply_form(const page *in, unsigned form, page *out) {
  static const int options[] = {UTF8PROC_COMPOSE, UTF8PROC_DECOMPOSE,
                                UTF8PROC_COMPOSE | UTF8PROC_COMPAT,
                                UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT};
  for (size_t i = 0; i < in->len;) {
    size_t end = i;
    while (end < in->len) {
      const size_t k = bpe_utf8_next(in->at + end, in->len - end);
      if (!bpe_utf8_valid(in->at + end, k)) break;
      if (end > i && k == 3 && memcmp(in->at + end, "\xe1\x86\xa7", 3) == 0) break;
      end += k;
    }
    if (end > i) {
      utf8proc_uint8_t *made = NULL;
      const utf8proc_ssize_t n =
          utf8proc_map((const utf8proc_uint8_t *)in->at + i, (utf8proc_ssize_t)(end - i), &made,
                       (utf8proc_option_t)(options[form] | UTF8PROC_STABLE));
      REQUIRE(n >= 0);
      put(out, made, (size_t)n);
      free(made);
    } else {
      put(out, in->at + end, 1);
      end++;
    }
    i = end;
  }
}

static void apply_step(const page *in, const step *s, page *out) {
  out->len = 0;
  if (s->kind < 4) {
    apply_form(in, s->kind, out);
    return;
  }
  const bool has_space = in->len > 0 && in->at[0] == ' ';
  if (in->len > 0 && s->kind == 5) put(out, s->to, s->to_len);
  if (in->len > 0 && s->kind == 6 && !has_space) put(out, " ", 1);
  for (size_t i = 0; i < in->len; i++) {
    const bool here =
        s->kind == 4 && s->from_len <= in->len - i && memcmp(in->at + i, s->from, s->from_len) == 0;
    put(out, here ? s->to : in->at + i, here ? s->to_len : 1);
    if (here) i += s->from_len - 1;
  }
}

static bpe_model *make_model(const char *pattern, const page *settings) {
  static const uint16_t pairs[][2] = {{'a', 'b'},   {0xc3, 0xa9}, {' ', 'a'},
                                      {0xcc, 0x81}, {256, 'c'},   {' ', ' '},
                                      {0xe2, 0x96}, {262, 0x81},  {'e', 259}};
  bpe_model *m;
  bpe_error e = {.status = BPE_OK};
  bpe_builder *b = bpe_builder_new(&fuzz_alloc);
  for (uint32_t c = 0; c < 256; c++) {
    const uint8_t byte = (uint8_t)c;
    bpe_builder_token(b, c, BPE_TOKEN, &byte, 1);
  }
  for (uint32_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
    bpe_builder_grow(b, pairs[i][0], pairs[i][1], 256 + i);
  bpe_builder_settings(b, pattern, strlen(pattern), settings->at, settings->len);
  const bpe_status st = bpe_builder_finish(b, &e, &m);
  fuzz_check_error(st, &e);
  if (st != BPE_OK) REQUIRE(m == NULL && st == BPE_BADMODEL);
  return m;
}

static void encode(const bpe_model *m, const void *text, size_t len, bpe_buffer *out) {
  bpe_coder *c;
  REQUIRE(bpe_coder_new(m, 64, NULL, &c) == BPE_OK);
  REQUIRE(bpe_encode_packed(c, text, len, 32, NULL, NULL, out) == BPE_OK);
  bpe_coder_free(c);
}

static void compare(const bpe_model *m, const bpe_model *plain, const input *text,
                    const step *steps, unsigned n) {
  static page pages[2];
  page *now = &pages[0], *next = &pages[1];
  bpe_buffer got, expected;
  bpe_buffer_init(&got, &fuzz_alloc, 0);
  bpe_buffer_init(&expected, &fuzz_alloc, 0);
  now->len = 0;
  put(now, text->at, text->left);
  for (unsigned i = 0; i + sabotage() < n; i++) {
    apply_step(now, &steps[i], next);
    page *t = now;
    now = next, next = t;
  }
  encode(m, text->at, text->left, &got);
  if (now->len < sizeof now->at) { /* else it may have been cut here */
    encode(plain, now->at, now->len, &expected);
    REQUIRE(got.len == expected.len &&
            (got.len == 0 || memcmp(got.bytes, expected.bytes, got.len) == 0));
  }
  bpe_buffer_clear(&got);
  bpe_buffer_clear(&expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const patterns[] = {"none", "gpt2", "whitespace", "o200k"};
  static page settings;
  static bpe_model *plain[sizeof patterns / sizeof *patterns];
  input in = {data, size};
  step steps[MOST_STEPS];
  const unsigned first = take(&in, 16), pattern = first % 4, n = 1 + take(&in, MOST_STEPS);
  settings.len = 0;
  if (plain[pattern] == NULL) {
    put(&settings, "{\"format\":1}", 12);
    plain[pattern] = make_model(patterns[pattern], &settings);
    settings.len = 0;
  }
  put(&settings, "{\"format\":1,\"normalizer\":[", 26);
  for (unsigned i = 0; i < n; i++) {
    step *s = &steps[i];
    s->kind = take(&in, 7);
    s->from_len = s->kind == 4 ? take_string(&in, s->from) : 0;
    s->to_len = s->kind == 4 || s->kind == 5 ? take_string(&in, s->to) : 0;
    if (i > 0) put(&settings, ",", 1);
    put_step(&settings, s);
  }
  put(&settings, "]}", 2);
  if (in.left > MOST_TEXT) in.left = MOST_TEXT;
  const size_t blocks = fuzz_blocks;
  bpe_model *m = make_model(patterns[pattern], &settings);
  if (m != NULL) {
    compare(m, plain[pattern], &in, steps, n);
    check_text(m, in.at, in.left, false);
    if (first / 4 == 3) check_exports(m);
  }
  bpe_model_free(m);
  REQUIRE(fuzz_blocks == blocks);
  return 0;
}
