/* perf.c - the fast paths, each over a fixed text, for counting their instructions.
**
**     perf PATH       runs it once; without a PATH, lists them
**
** Under callgrind with --toggle-collect=measured only what measured() does is counted: not
** starting up, not making the text, and, where a path is about pieces seen before, not the pass
** that sees them. Texts are made from a fixed seed and have what the paths tell apart: words that
** come again as they do in prose, code with digits and runs of spaces, several scripts.
*/
#include "../../src/bpe.h"
#include "../../src/blocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT = 300000, ROW = 4000, WORDS = 3000, WORD = 24 };

static void *resize(void *ctx, void *p, size_t n) {
  (void)ctx;
  if (n == 0) {
    free(p);
    return NULL;
  }
  p = realloc(p, n);
  if (p == NULL) abort();
  return p;
}

static const bpe_alloc memory = {.resize = resize};
static uint8_t text[TEXT + WORD];
static size_t text_len;
static bpe_model *model;
static bpe_coder *coder;
static bpe_error error;
static uint64_t result;

/* ---- Texts -------------------------------------------------------------------------------- */

static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

static uint32_t below(uint32_t n) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)((state >> 32) * n >> 32);
}

static const char *const prose[] = {"th", "e",  "a",  "in", "er", "on",  "re",
                                    "st", "en", "ti", "or", "al", "ing", "tion",
                                    "ly", "es", "un", "ex", "co", "pr",  "o"};
static const char *const scripts[] = {"\xd0\xbf\xd1\x80",
                                      "\xd0\xbe",
                                      "\xd1\x81\xd1\x82",
                                      "\xe7\x9a\x84",
                                      "\xe4\xb8\xad",
                                      "\xe6\x96\x87",
                                      "\xed\x95\x9c",
                                      "\xea\xb5\xad",
                                      "\xd9\x85",
                                      "\xd9\x86",
                                      "\xc3\xa9",
                                      "\xce\xb1\xce\xbb",
                                      "ti",
                                      "e",
                                      "\xe3\x81\xae",
                                      "\xe3\x82\x8b"};

static void make_words(char words[][WORD], const char *const *parts, uint32_t n_parts) {
  for (int i = 0; i < WORDS; i++) {
    words[i][0] = 0;
    for (uint32_t k = 1 + below(4); k > 0; k--) {
      const char *part = parts[below(n_parts)];
      if (strlen(words[i]) + strlen(part) < WORD) strcat(words[i], part);
    }
  }
}

/* Word i is met about as often as 1 / i. */
static const char *some_word(char words[][WORD]) {
  return words[below(1 + below(1 + below(WORDS)))];
}

static void put(const char *s) {
  const size_t n = strlen(s);
  if (text_len + n > TEXT) return;
  memcpy(text + text_len, s, n);
  text_len += n;
}

static void make_text(const char *const *parts, uint32_t n_parts, const char *const *between,
                      uint32_t n_between) {
  static char words[WORDS][WORD];
  make_words(words, parts, n_parts);
  for (text_len = 0; text_len < TEXT - 2 * WORD;) {
    put(some_word(words));
    put(below(3) != 0 ? " " : between[below(n_between)]);
  }
}

static void make_prose(void) {
  static const char *const between[] = {", ", ". ", " ", ".\n\n", "'s ", " - ", "; ", " 1987 "};
  make_text(prose, sizeof prose / sizeof *prose, between, sizeof between / sizeof *between);
}

static void make_code(void) {
  static const char *const between[] = {
      "(",        "):\n    ", " = ",        "_",    ".",     ";\n\n\t\t", "->",
      " == 0x1f", "[12345]",  "\n        ", " /* ", " */\n", "\"",        "Get"};
  make_text(prose, sizeof prose / sizeof *prose, between, sizeof between / sizeof *between);
}

static void make_scripts(void) {
  static const char *const between[] = {"\xe3\x80\x82", "\xef\xbc\x8c", " ",   "", "",
                                        ", ",           "\n",           " 12 "};
  make_text(scripts, sizeof scripts / sizeof *scripts, between, sizeof between / sizeof *between);
}

static void make_letters(void) {
  for (text_len = 0; text_len < TEXT / 4; text_len++) text[text_len] = (uint8_t)('a' + below(26));
}

/* ---- What is measured ------------------------------------------------------------------------ */

static void load(void) {
  bpe_model_free(model);
  if (bpe_builtin_load(&memory, bpe_builtin_find("cl100k_base", 11), &error, &model) != BPE_OK)
    abort();
}

static void fresh(void) {
  bpe_coder_free(coder);
  if (bpe_coder_new(model, 0, &error, &coder) != BPE_OK) abort();
}

static void count(void) {
  for (size_t at = 0; at < text_len; at += ROW) {
    uint64_t n;
    const size_t len = text_len - at < ROW ? text_len - at : ROW;
    if (bpe_count(coder, text + at, len, NULL, &error, &n) != BPE_OK) abort();
    result += n;
  }
}

static void count_whole(void) {
  if (bpe_count(coder, text, text_len, NULL, &error, &result) != BPE_OK) abort();
}

static void encode(int width) {
  for (size_t at = 0; at < text_len; at += ROW) {
    bpe_buffer b;
    const size_t len = text_len - at < ROW ? text_len - at : ROW;
    bpe_buffer_init(&b, &memory, 0);
    const bpe_status st = width == 0
                              ? bpe_encode_json(coder, text + at, len, NULL, &error, &b)
                              : bpe_encode_packed(coder, text + at, len, width, NULL, &error, &b);
    if (st != BPE_OK) abort();
    result += b.len;
    bpe_buffer_clear(&b);
  }
}

static void blob(void) {
  encode(32);
}

static void json(void) {
  encode(0);
}

static void count_short(void) {
  for (size_t at = 0; at + 20 < text_len; at += 20) {
    uint64_t n;
    if (bpe_count(coder, text + at, 20, NULL, &error, &n) != BPE_OK) abort();
    result += n;
  }
}

static const struct path {
  const char *name;
  void (*make)(void);
  void (*seen)(void); /* before; NULL: nothing */
  void (*run)(void);
} paths[] = {
    {"count-prose", make_prose, count, count},
    {"count-code", make_code, count, count},
    {"count-scripts", make_scripts, count, count},
    {"count-first-prose", make_prose, NULL, count},
    {"count-first-code", make_code, NULL, count},
    {"count-first-scripts", make_scripts, NULL, count},
    {"count-20-bytes", make_prose, count_short, count_short},
    {"count-letters", make_letters, NULL, count_whole},
    {"blob-prose", make_prose, blob, blob},
    {"blob-scripts", make_scripts, blob, blob},
    {"json-prose", make_prose, json, json},
    {"load-cl100k", make_letters, NULL, load},
};

__attribute__((noinline)) void measured(void (*run)(void)); /* found by its name */
void measured(void (*run)(void)) {
  run();
  __asm__ volatile(""); /* no tail call, which would leave measured() at once */
}

int main(int argc, char **argv) {
  const size_t n = sizeof paths / sizeof *paths;
  if (argc < 2) {
    for (size_t i = 0; i < n; i++) puts(paths[i].name);
    return 0;
  }
  if (strcmp(argv[1], "--machine") == 0) {
    for (int i = 0; blocks_name(i) != NULL; i++)
      if (blocks_named(blocks_name(i)) == blocks_best()) puts(blocks_name(i));
    return 0;
  }
  for (size_t i = 0; i < n; i++) {
    if (strcmp(argv[1], paths[i].name) != 0) continue;
    paths[i].make();
    load();
    fresh();
    if (paths[i].seen != NULL) paths[i].seen();
    measured(paths[i].run);
    printf("%llu\n", (unsigned long long)result);
    bpe_coder_free(coder);
    bpe_model_free(model);
    return 0;
  }
  return 1;
}
