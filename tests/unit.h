/* unit.h - what the unit tests, the allocation test and the fuzzers share: memory that is
** counted and can run out, random numbers that repeat, and tiny tokenizers.
**
** Every object of a test comes from unit_alloc, so that leaving with unit_memory.blocks != 0 is
** a leak whatever else watches. fail_at = k makes the k-th request from now on fail, once or,
** with `sticky`, together with all that follow:
**
**     unit_memory = (counted){.blocks = unit_memory.blocks, .fail_at = 1};
**     CHECK(mem_new(&unit_alloc, 1, 1) == NULL);
*/
#ifndef UNIT_H
#define UNIT_H

#include "../src/bpe.h"

#include <stdlib.h>

#include "test.h"

typedef struct counted {
  size_t blocks;   /* not yet freed */
  size_t requests; /* for memory, since fail_at was set */
  size_t fail_at;  /* 0: none fails */
  bool sticky;
  size_t refused;
} counted;

static inline void *counted_resize(void *ctx, void *p, size_t n) {
  counted *c = ctx;
  if (n == 0) {
    c->blocks -= p != NULL;
    free(p);
    return NULL;
  }
  c->requests++;
  if (c->fail_at != 0 && (c->sticky ? c->requests >= c->fail_at : c->requests == c->fail_at)) {
    c->refused++;
    return NULL;
  }
  if (n > PTRDIFF_MAX) return NULL; /* which malloc must refuse too, and a compiler warns of */
  void *q = realloc(p, n);
  if (q == NULL) abort();
  c->blocks += p == NULL;
  return q;
}

static counted unit_memory;
static const bpe_alloc unit_alloc = {.resize = counted_resize, .ctx = &unit_memory};

/* From now on the k-th request fails; 0: none does. */
static inline void unit_fail(size_t k, bool sticky) {
  unit_memory = (counted){.blocks = unit_memory.blocks, .fail_at = k, .sticky = sticky};
}

/* The same numbers in every run. */
static inline uint32_t unit_random(void) {
  static uint64_t state = UINT64_C(0x2545f4914f6cdd1d);
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state >> 32);
}

static inline uint32_t unit_below(uint32_t n) {
  return (uint32_t)((uint64_t)unit_random() * n >> 32);
}

/* Writes a code point, a surrogate too, as UTF-8; returns its length. */
static inline size_t unit_write_char(uint32_t cp, uint8_t s[4]) {
  if (cp < 0x80) {
    s[0] = (uint8_t)cp;
    return 1;
  }
  const size_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
  for (size_t i = n; --i > 0; cp >>= 6) s[i] = (uint8_t)(0x80 | (cp & 0x3f));
  s[0] = (uint8_t)((0xf00 >> n) | cp);
  return n;
}

/* A builder that has the 256 single bytes, each under its own value, and a pattern. */
static inline bpe_builder *unit_builder(const char *pattern) {
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  for (uint32_t c = 0; c < 256; c++) {
    const uint8_t byte = (uint8_t)c;
    bpe_builder_token(b, c, BPE_TOKEN, &byte, 1);
  }
  bpe_builder_pattern(b, pattern, strlen(pattern), false);
  return b;
}

static inline void unit_special(bpe_builder *b, uint32_t id, const char *name) {
  bpe_builder_token(b, id, BPE_SPECIAL, name, strlen(name));
}

/* The finished model, or NULL after a failed check. */
static inline bpe_model *unit_finish(bpe_builder *b) {
  bpe_error e = {.status = BPE_OK};
  bpe_model *m = NULL;
  const bpe_status st = bpe_builder_finish(b, &e, &m);
  if (!CHECK(st == BPE_OK && m != NULL)) printf("  %s\n", e.text);
  return m;
}

/* "abcabc" merges to 258 258 under 256 = a b, 257 = b c, 258 = ab c, 259 = the special <s>,
** 260 = </s>, which wrap a document. */
static inline bpe_model *unit_tiny(const char *pattern) {
  bpe_builder *b = unit_builder(pattern);
  bpe_builder_grow(b, 'a', 'b', 256);
  bpe_builder_grow(b, 'b', 'c', 257);
  bpe_builder_grow(b, 256, 'c', 258);
  unit_special(b, 259, "<s>");
  unit_special(b, 260, "</s>");
  bpe_builder_bos(b, 259);
  bpe_builder_eos(b, 260);
  return unit_finish(b);
}

/* Whether e says exactly this; prints what it says if not. */
static inline bool unit_says(const bpe_error *e, bpe_status status, uint64_t offset,
                             const char *text) {
  const bool same = e->status == status && e->offset == offset && strcmp(e->text, text) == 0;
  if (!same) printf("  status %d offset %llu: %s\n", (int)e->status,
                    (unsigned long long)e->offset, e->text);
  return same;
}

/* The last line of every main. */
static inline int unit_summary(void) {
  CHECK_EQ_INT(unit_memory.blocks, 0);
  return test_summary();
}

#endif
