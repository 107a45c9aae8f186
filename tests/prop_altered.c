/* prop_altered.c - see prop_altered.h. */
#include "prop_altered.h"

#include <stdio.h>
#include <string.h>

/* What texts and tokens are made of. */
static const char *const parts[] = {
  " ", " ", "a", "b", "e", "x", "ab", "a b", "\u00e9", "e\u0301", "\u0301", "\u0323", "\u0301\u0323",
  "\u1e69", "s\u0307\u0323", "\u1100\u1161", "\u1100\u1161\u11a8", "\uac00", "\u11a8", "\uac00\u11a8",
  "\ufb01", "\u212b", "\u0344", "\u2581", "\u3000", "\u00a0", "\n", "\n\n", "1", "23", "'s", "X",
  "\u4e2d", "\u304b\u3099", "\xff", "\xe2\x96", "\x80", ".", "!?", "<m>", "<n>", "<", "ing", " ing ", "<a long name>", "<a long name", "\U0001f469"};

enum { PARTS = sizeof parts / sizeof *parts, CHARS = 6, MERGES = 48 };

static const char *any_part(prop_rng *rng) {
  return parts[prop_below(rng, PARTS)];
}

size_t altered_text(uint8_t *out, size_t most, prop_rng *rng) {
  const char *few[6];
  const bool of_few = prop_one_in(rng, 2), runs = prop_one_in(rng, 3);
  const size_t want = prop_below(rng, prop_one_in(rng, 3) ? (uint32_t)most : 60);
  size_t len = 0;
  for (int i = 0; i < 6; i++) few[i] = any_part(rng);
  while (len < want) {
    const char *part = of_few ? few[prop_below(rng, 6)] : any_part(rng);
    const size_t n = strlen(part);
    for (uint32_t times = runs && prop_one_in(rng, 6) ? prop_below(rng, 40) : 1;
         times > 0 && len + n <= most; times--, len += n)
      memcpy(out + len, part, n);
    if (most - len < 8) break;
  }
  return len;
}

/* Appends one of the strings; "" says nothing. */
static void choose(char *json, size_t size, prop_rng *rng, const char *const *from, uint32_t n) {
  const size_t len = strlen(json);
  snprintf(json + len, size - len, "%s", from[prop_below(rng, n)]);
}

static void make_settings(char *json, size_t size, bool chars, prop_rng *rng) {
  static const char *const steps[] = {
    "\"nfc\"", "\"nfd\"", "\"nfkc\"", "\"nfkd\"", "\"prefix_space\"", "{\"prepend\":\" \"}",
    "{\"prepend\":\"e\"}", "{\"replace\":[\"\u2581\",\" \"]}", "{\"replace\":[\" \",\"\u2581\"]}",
    "{\"replace\":[\"x\",\"\"]}", "{\"replace\":[\"b\",\"e\u0301\"]}", "{\"replace\":[\"e\",\"aa\"]}",
    "{\"replace\":[\"a\",\"\u0301\"]}", "{\"replace\":[\"ab\",\"b\"]}", "{\"replace\":[\"  \",\" \"]}"};
  static const char *const flags[] = {
    ",\"lstrip\":[900]", ",\"rstrip\":[900]", ",\"lstrip\":[900,901],\"rstrip\":[901]", ",\"word\":[901]",
    ",\"late\":[901,903]", ",\"rstrip\":[900],\"late\":[900]", ",\"lstrip\":[903],\"late\":[903]",
    ",\"word\":[901],\"late\":[901,903]"};
  snprintf(json, size, "{\"format\":1");
  if (prop_one_in(rng, 4)) snprintf(json + strlen(json), size - strlen(json), ",\"whole\":true");
  if (!prop_one_in(rng, 6)) {
    const char *before = ",\"normalizer\":[";
    for (uint32_t n = 1 + prop_below(rng, 3); n > 0; n--, before = ",") {
      choose(json, size, rng, &before, 1);
      choose(json, size, rng, steps, sizeof steps / sizeof *steps);
    }
    snprintf(json + strlen(json), size - strlen(json), "]");
  }
  if (chars) {
    const char *before = ",\"characters\":true,\"fallback\":[";
    for (int i = 128; i < 256; i++, before = ",")
      snprintf(json + strlen(json), size - strlen(json), "%s%d", before, i);
    snprintf(json + strlen(json), size - strlen(json), "]");
  }
  snprintf(json + strlen(json), size - strlen(json), ",\"strip\":%u", 1 + prop_below(rng, 2));
  if (prop_one_in(rng, 2)) choose(json, size, rng, flags, sizeof flags / sizeof *flags);
  snprintf(json + strlen(json), size - strlen(json), "}");
}

/* The tokens so far, by id. */
typedef struct token_list {
  struct {
    uint8_t bytes[20];
    size_t len;
    bool merges;
  } at[256 + CHARS + MERGES];
  uint32_t n;
} token_list;

static uint32_t find_token(const token_list *k, const uint8_t *s, size_t len) {
  uint32_t i = 0;
  while (i < k->n && (k->at[i].len != len || memcmp(k->at[i].bytes, s, len) != 0)) i++;
  return i;
}

static void add_token(token_list *k, const void *s, size_t len, bool merges) {
  memcpy(k->at[k->n].bytes, s, len);
  k->at[k->n].len = len;
  k->at[k->n++].merges = merges;
}

/* A token that s begins with, often the longest; k->n: there is none. */
static uint32_t some_token(const token_list *k, const uint8_t *s, size_t len, prop_rng *rng) {
  uint32_t best = k->n;
  for (uint32_t i = 0; i < k->n; i++)
    if (k->at[i].merges && k->at[i].len <= len && memcmp(k->at[i].bytes, s, k->at[i].len) == 0 &&
        (best == k->n || (k->at[i].len > k->at[best].len && !prop_one_in(rng, 3))))
      best = i;
  return best;
}

/* All bytes, where merging begins with characters a few of those, and merges of what stands side by
** side in a text, so that they happen. */
static void make_tokens(bpe_builder *b, bool chars, prop_rng *rng) {
  static const char *const some[CHARS] = {"\u00e9", "\u0301", "\u2581", "\uac00", "\u1e69", "\u4e2d"};
  token_list k = {.n = 0};
  uint8_t text[200];
  for (uint32_t i = 0; i < 256; i++) {
    const uint8_t byte = (uint8_t)i;
    add_token(&k, &byte, 1, !chars || i < 128);
  }
  for (int i = 0; chars && i < CHARS; i++) add_token(&k, some[i], strlen(some[i]), true);
  for (uint32_t i = 0; i < k.n; i++) bpe_builder_token(b, i, BPE_TOKEN, k.at[i].bytes, k.at[i].len);
  for (uint32_t tries = 0; tries < 2 * MERGES && k.n < 256 + CHARS + MERGES; tries++) {
    const size_t len = altered_text(text, sizeof text, rng);
    const size_t at = len > 0 ? prop_below(rng, (uint32_t)len) : 0;
    const uint32_t left = some_token(&k, text + at, len - at, rng);
    if (left == k.n) continue;
    const size_t middle = at + k.at[left].len;
    const uint32_t right = some_token(&k, text + middle, len - middle, rng);
    if (right == k.n) continue;
    const size_t joined = k.at[left].len + k.at[right].len;
    if (joined > sizeof k.at[0].bytes || find_token(&k, text + at, joined) != k.n) continue;
    bpe_builder_grow(b, left, right, k.n);
    add_token(&k, text + at, joined, true);
  }
}

bool altered_make(altered_subject *s, const bpe_alloc *a, prop_rng *rng) {
  static const char *const patterns[] = {"none", "none", "gpt2", "cl100k", "o200k", "qwen2",
                                         "deepseek3", "words", "whitespace"};
  bpe_error e = {0};
  char json[2000];
  const char *pattern = patterns[prop_below(rng, sizeof patterns / sizeof *patterns)];
  const bool chars = prop_one_in(rng, 3);
  make_settings(json, sizeof json, chars, rng);
  snprintf(s->name, sizeof s->name, "altering, pattern %s, settings %s", pattern, json);
  s->model = NULL, s->coder = NULL, s->all = NULL;
  bpe_builder *b = bpe_builder_new(a);
  make_tokens(b, chars, rng);
  bpe_builder_token(b, 900, BPE_ADDED, "<m>", 3);
  bpe_builder_token(b, 901, BPE_ADDED, "ing", 3);
  bpe_builder_token(b, 902, BPE_SPECIAL, "<n>", 3);
  bpe_builder_token(b, 903, BPE_ADDED, "<a long name>", 13);
  bpe_builder_settings(b, pattern, strlen(pattern), json, strlen(json));
  if (bpe_builder_finish(b, &e, &s->model) == BPE_OK &&
      bpe_coder_new(s->model, 0, &e, &s->coder) == BPE_OK &&
      bpe_finder_new(s->model, NULL, 0, &e, &s->all) == BPE_OK)
    return true;
  printf("FAILED %s: status %d: %s\n", s->name, (int)e.status, e.text);
  return false;
}

void altered_clear(altered_subject *s) {
  bpe_finder_free(s->all);
  bpe_coder_free(s->coder);
  bpe_model_free(s->model);
}
