/* import.h - what every importer's fuzz target asks of a source: it is refused with a message, or
** the model is sound: it survives the BLOB, every export that claims to carry it, and a text.
*/
#ifndef FUZZ_IMPORT_H
#define FUZZ_IMPORT_H

#include "fuzz.h"

static inline bool same_model(const bpe_model *a, const bpe_model *b) {
  uint8_t d[2][32];
  REQUIRE(bpe_model_digest(a, NULL, d[0]) == BPE_OK);
  REQUIRE(bpe_model_digest(b, NULL, d[1]) == BPE_OK);
  return memcmp(d[0], d[1], 32) == 0;
}

static inline void check_exports(const bpe_model *m) {
  for (int i = 0; bpe_format_name(i) != NULL; i++) {
    const char *name = bpe_format_name(i);
    bpe_error e = {.status = BPE_OK};
    bpe_buffer b;
    bpe_buffer_init(&b, &fuzz_alloc, 0);
    const bpe_status st = bpe_export(m, name, strlen(name), &e, &b);
    fuzz_check_error(st, &e);
    REQUIRE(st == BPE_OK || b.len == 0);
    if (strcmp(name, "model") == 0 || strcmp(name, "huggingface") == 0 ||
        strcmp(name, "minbpe") == 0) {
      bpe_model *back = NULL;
      if (st == BPE_OK) {
        REQUIRE(bpe_import(&fuzz_alloc, b.bytes, b.len, NULL, 0, NULL, &e, &back) == BPE_OK);
        REQUIRE(same_model(m, back));
      } else {
        REQUIRE(strcmp(name, "model") != 0);
      }
      bpe_model_free(back);
    }
    bpe_buffer_clear(&b);
  }
}

/* Pieces tile the text, token ends rise, and ids decode; to the text, if nothing changes it. */
static inline void check_text(const bpe_model *m, const uint8_t *text, size_t len, bool specials) {
  bpe_error e = {.status = BPE_OK};
  bpe_coder *c = NULL;
  bpe_walk *w = NULL;
  bpe_finder *all = NULL;
  bpe_piece p;
  bpe_info info;
  bpe_buffer ids, back;
  bpe_model_info(m, &info);
  bpe_buffer_init(&ids, &fuzz_alloc, 0);
  bpe_buffer_init(&back, &fuzz_alloc, 0);
  REQUIRE(bpe_coder_new(m, 64, &e, &c) == BPE_OK && bpe_walk_new(c, &e, &w) == BPE_OK);
  if (specials) REQUIRE(bpe_finder_new(m, NULL, 0, &e, &all) == BPE_OK);
  const bpe_walk_options o = {.allowed = all};
  bpe_status st = bpe_walk_start(w, text, len, &o, &e);
  size_t at = 0;
  uint64_t count = 0, n = 0;
  while (st == BPE_OK && (st = bpe_walk_next(w, &p, &e)) == BPE_OK) {
    REQUIRE(p.start == at && p.stop >= p.start && p.stop <= len);
    for (size_t i = 0; p.stops != NULL && i < p.n_ids; i++) {
      REQUIRE(p.stops[i] >= at && p.stops[i] <= p.stop);
      at = p.stops[i];
    }
    bpe_buffer_append(&ids, p.ids, p.n_ids * sizeof *p.ids);
    count += p.n_ids;
    at = p.stop;
  }
  fuzz_check_error(st, &e);
  const bpe_status counted = bpe_count(c, text, len, &o, NULL, &n);
  REQUIRE((counted == BPE_OK) == (st == BPE_DONE));
  if (st == BPE_DONE) {
    const bool vanished = info.normalizes && count == 0; /* then it has no pieces either */
    REQUIRE((at == len || (vanished && at == 0)) && n == count + sabotage());
    const bpe_status d = bpe_decode(m, (const uint32_t *)(const void *)ids.bytes, (size_t)count,
                                    BPE_SPECIALS_TEXT, false, NULL, NULL, &e, &back);
    REQUIRE(d == BPE_OK);
    if (!info.normalizes && !specials)
      REQUIRE(back.len == len && (len == 0 || memcmp(back.bytes, text, len) == 0));
  }
  bpe_buffer_clear(&ids);
  bpe_buffer_clear(&back);
  bpe_finder_free(all);
  bpe_walk_free(w);
  bpe_coder_free(c);
}

static inline void check_import(const void *source, size_t len, const void *merges,
                                size_t merges_len, const bpe_import_options *o) {
  static const char text[] = "ab abc  <|a|> aab\xff\xe4\xb8\xad 12e\xcc\x81\xe2\x96\x81 <s>\n\n x";
  bpe_error e = {.status = BPE_OK};
  bpe_model *m = NULL;
  const size_t before = fuzz_blocks;
  const bpe_status st = bpe_import(&fuzz_alloc, source, len, merges, merges_len, o, &e, &m);
  fuzz_check_error(st, &e);
  REQUIRE((st == BPE_OK) == (m != NULL));
  if (m != NULL) {
    bpe_info info;
    bpe_model_info(m, &info);
    if (info.entry_count < 2000) check_exports(m);
    check_text(m, (const uint8_t *)text, sizeof text - 1, false);
    check_text(m, (const uint8_t *)text, sizeof text - 1, true);
    check_text(m, (const uint8_t *)"abaab", 5, false); /* for those that lack most bytes */
  }
  bpe_model_free(m);
  REQUIRE(fuzz_blocks == before);
}

/* Text under way, of bounded size. */
typedef struct page {
  char at[1 << 16];
  size_t len;
} page;

static inline void put(page *p, const void *s, size_t len) {
  if (len > sizeof p->at - p->len) len = sizeof p->at - p->len;
  memcpy(p->at + p->len, s, len);
  p->len += len;
}

/* The single bytes as members of a vocab.json, ids in GPT-2's order. */
static inline void put_members(page *p) {
  for (unsigned i = 0; i < 256; i++) {
    char line[24];
    const unsigned cp = i < 94    ? 0x21 + i
                        : i < 106 ? 0xa1 + i - 94
                        : i < 188 ? 0xae + i - 106
                                  : 0x100 + i - 188;
    put(p, line, (size_t)snprintf(line, sizeof line, "%s\"\\u%04x\":%u", i == 0 ? "" : ",", cp, i));
  }
}

#endif
