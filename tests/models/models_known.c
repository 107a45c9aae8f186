/* models_known.c - single answers of public models that other programs got wrong: the cases of
** tests/BUGS.md whose tokenizer is not built in. P31's generator is that of tests/bugs.c.
*/
#include "models.h"

#include <stdlib.h>

#include "../ref_sha256.h"
#include "../test.h"

static void *resize(void *ctx, void *p, size_t n) {
  (void)ctx;
  if (n == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, n);
}

static const bpe_alloc alloc = {.resize = resize};

static const struct {
  const char *name, *text, *ids; /* ids as JSON */
} rows[] = {
    {"llama3",
     "- \xc2\x85"
     "7\xc2\x85",
     "[12,220,116360,22,116360]"}, /* P03 */
    {"qwen3",
     "- \xc2\x85"
     "7\xc2\x85",
     "[12,220,126,227,22,126,227]"},                                                       /* P03 */
    {"llama3", "->x[10](n):\n\t1234567", "[405,87,58,605,9725,77,997,197,4513,10961,22]"}, /* P13 */
    {"qwen3", "->x[10](n):\n\t1234567",
     "[405,87,58,16,15,9533,77,982,197,16,17,18,19,20,21,22]"}, /* P13 */
    {"llama3", "a\n\nb\n\n\n\n", "[64,271,65,1038]"},           /* P19 */
    {"llama3", " \n|\\n| \\n", "[720,23813,77,91,1144,77]"},    /* P21 */
    {"qwen3", "\u1c89\\u|\U00031350\\n|\U0001e4d0\\u",
     "[128233,231,3770,91,172,109,235,238,1699,91,172,252,241,238,3770]"}, /* P23 */
    {"llama3", " hukuk soubor Vi\u1ec7t", "[119422,127539,101798]"},       /* M03 */
    /* The last pattern cuts runs of kana, too. */
    {"deepseek_v3", "\u30d5\u309c \u30d5\u30fb\u30d5", "[15587,665,253,223,15587,4825,15587]"},
};

static void check_rows(bpe_coder *c, const char *name) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].name, name) != 0) continue;
    bpe_buffer b;
    bpe_buffer_init(&b, &alloc, 0);
    CHECK(bpe_encode_json(c, rows[i].text, strlen(rows[i].text), NULL, NULL, &b) == BPE_OK);
    CHECK_BYTES(b.bytes, b.len, rows[i].ids, strlen(rows[i].ids));
    bpe_buffer_clear(&b);
  }
}

/* P25: the ideograph behind the last of the range is a piece of its own. */
static void check_cjk_edge(bpe_coder *c) {
  static const char text[] = "\u9fa5\u9fa6";
  const bpe_walk_options o = {.split_only = true};
  bpe_walk *w = NULL;
  bpe_piece p;
  if (!CHECK(bpe_walk_new(c, NULL, &w) == BPE_OK)) return;
  CHECK(bpe_walk_start(w, text, 6, &o, NULL) == BPE_OK);
  CHECK(bpe_walk_next(w, &p, NULL) == BPE_OK && p.start == 0 && p.stop == 3);
  CHECK(bpe_walk_next(w, &p, NULL) == BPE_OK && p.start == 3 && p.stop == 6);
  CHECK(bpe_walk_next(w, &p, NULL) == BPE_DONE);
  bpe_walk_free(w);
}

/* S17: a reserved special decodes. O05: offsets where pieces are found whole. */
static void check_llama3(const bpe_model *m, bpe_coder *c) {
  static const size_t stops[] = {2, 5, 13, 14};
  const uint32_t reserved = 128011;
  bpe_buffer b;
  bpe_walk *w = NULL;
  bpe_piece p;
  bpe_buffer_init(&b, &alloc, 0);
  CHECK(bpe_decode(m, &reserved, 1, BPE_SPECIALS_TEXT, false, NULL, NULL, NULL, &b) == BPE_OK);
  CHECK_BYTES(b.bytes, b.len, "<|reserved_special_token_6|>", 28);
  bpe_buffer_clear(&b);
  if (!CHECK(bpe_walk_new(c, NULL, &w) == BPE_OK)) return;
  CHECK(bpe_walk_start(w, "is it raining?", 14, NULL, NULL) == BPE_OK);
  for (size_t i = 0; i < 4; i++) {
    CHECK(bpe_walk_next(w, &p, NULL) == BPE_OK);
    CHECK(p.n_ids == 1 && p.stops == NULL);
    CHECK_EQ_INT(p.stop, stops[i]);
  }
  bpe_walk_free(w);
}

static uint32_t draw(uint32_t *x) {
  *x = *x * 1664525 + 1013904223;
  return *x >> 16;
}

/* P31: a thousand strings that put every class beside every other, by digest of all ids. */
static void check_class_crossing(bpe_coder *c, uint64_t tokens, const char *digest) {
  static const char *const alphabet[] = {
      "a",      "b",      "the",      "Data",   "Re",         "S",
      "X",      "\u00e9", "\u00df",   "\u044f", "\u0414",     "\u4eca",
      "\u306e", "\u6f22", " ",        "  ",     "\n",         "\r\n",
      "\t",     "\u00a0", "\xc2\x85", "\u3000", ".",          ",",
      "!",      "'",      "'s",       "'LL",    "\"",         "-",
      "_",      "(",      "/",        "//",     "1",          "23",
      "4567",   "\u00bd", "\u0663",   "\u00b2", "\U0001f600", "\U0001f469\u200d\U0001f4bb",
      "\ufeff", "\u02b0", "\u01c5",   "\u093f", "\u0915",     "\u0e17\u0e35",
      "\u1c89", "\\n",    "{",        "<|",     "|>",         "$",
      "\u00b0",
  };
  bpe_buffer ids, text;
  uint32_t x = 11;
  uint64_t n_ids = 0;
  char hex[65];
  bpe_buffer_init(&ids, &alloc, 0);
  bpe_buffer_init(&text, &alloc, 0);
  for (int i = 0; i < 1000; i++) {
    text.len = 0;
    for (uint32_t n = 1 + draw(&x) % 24; n > 0; n--) {
      const char *part = alphabet[draw(&x) % (sizeof alphabet / sizeof *alphabet)];
      bpe_buffer_append(&text, part, strlen(part));
    }
    if (i > 0) bpe_buffer_append(&ids, "\n", 1);
    const size_t start = ids.len;
    if (!CHECK(bpe_encode_json(c, text.bytes, text.len, NULL, NULL, &ids) == BPE_OK)) break;
    /* "[1,2]" to "1 2" */
    memmove(ids.bytes + start, ids.bytes + start + 1, ids.len - start - 1);
    ids.len -= 2;
    n_ids += ids.len > start;
    for (size_t k = start; k < ids.len; k++) {
      if (ids.bytes[k] != ',') continue;
      ids.bytes[k] = ' ';
      n_ids++;
    }
  }
  CHECK_EQ_INT(n_ids, tokens);
  sha256_hex(ids.bytes, ids.len, hex);
  CHECK(strcmp(hex, digest) == 0);
  bpe_buffer_clear(&ids);
  bpe_buffer_clear(&text);
}

void check_known(const bpe_model *m, bpe_coder *c, const char *name, unsigned long *passed,
                 unsigned long *failed) {
  check_rows(c, name);
  if (strcmp(name, "llama3") == 0) {
    check_llama3(m, c);
    check_class_crossing(c, 14490,
                         "1aefec3e8825db29bf9a2ffaa9f9a76befbc93c8af5510cab13646ef04f2b285");
  } else if (strcmp(name, "qwen3") == 0) {
    check_class_crossing(c, 14644,
                         "b70cb1469b4205fb9c59e07c3a5d51c15d52c94147be10133e09c1a14caa8271");
  } else if (strcmp(name, "deepseek_v3") == 0) {
    check_cjk_edge(c);
    check_class_crossing(c, 14447,
                         "b99146b5113d97a0b97f6a2e25d106fcea546ba31379160864435353a89553d6");
  }
  *passed += test_passed;
  *failed += test_failed;
  test_passed = test_failed = 0;
}
