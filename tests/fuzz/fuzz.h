/* fuzz.h - what the fuzz targets share: a failing check, counted memory, reading an input.
**
** A target is one LLVMFuzzerTestOneInput. Its input begins with bytes that choose what is done,
** each taken modulo the number of choices, so that every input means something; the rest is the
** text. libFuzzer drives it, or replay.c, which runs kept inputs with any compiler:
**
**     input in = {data, size};
**     const unsigned which = take(&in, 7);          // 0 .. 6; 0 when the input is used up
**     ... in.at[0 .. in.left-1] is what remains ...
*/
#ifndef FUZZ_H
#define FUZZ_H

#include "../../src/bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken promise ends the process: that is how a fuzzer learns of it. */
#define REQUIRE(cond) ((cond) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #cond))

static inline void fuzz_fail(const char *file, int line, const char *what) {
  fflush(stdout); /* what the check has printed about it */
  fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, what);
  abort();
}

/* 1 if the selftest wants a promise that is false: every target then fails, or checks nothing. */
static inline unsigned sabotage(void) {
  static int wanted = -1;
  if (wanted < 0) wanted = getenv("FUZZ_SABOTAGE") != NULL;
  return (unsigned)wanted;
}

typedef struct input {
  const uint8_t *at;
  size_t left;
} input;

static inline unsigned take(input *in, unsigned choices) {
  if (in->left == 0) return 0;
  in->left--;
  return *in->at++ % choices;
}

static inline uint32_t take_u32(input *in) {
  uint32_t x = 0;
  for (int i = 0; i < 4; i++) x = x << 8 | take(in, 256);
  return x;
}

/* The next n bytes, or as many as there are: *len. */
static inline const uint8_t *take_bytes(input *in, size_t n, size_t *len) {
  const uint8_t *p = in->at;
  *len = n < in->left ? n : in->left;
  if (*len != 0) in->at += *len;
  in->left -= *len;
  return p;
}

/* ---- Memory ----------------------------------------------------------------------------------- */

/* A model takes large blocks, and under a sanitizer the system maps and clears each anew: most of
** an input's time. So freed ones are kept, out of bounds until they are used again. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) && defined(__linux__)
#define KEEPS_BLOCKS 1
#include <malloc.h>
#include <sanitizer/asan_interface.h>
#endif
#endif

enum { LARGE = 1 << 17, KEPT = 16 };
#ifdef KEEPS_BLOCKS
static void *fuzz_kept[KEPT];
#endif

/* A block of at least n bytes and not too many; NULL: none is kept. */
static inline void *take_kept(size_t n) {
#ifdef KEEPS_BLOCKS
  for (int i = 0; n >= LARGE && i < KEPT; i++) {
    const size_t has = fuzz_kept[i] == NULL ? 0 : malloc_usable_size(fuzz_kept[i]);
    if (has < n || has / 2 > n) continue;
    void *p = fuzz_kept[i];
    fuzz_kept[i] = NULL;
    ASAN_UNPOISON_MEMORY_REGION(p, n);
    return p;
  }
#endif
  (void)n;
  return NULL;
}

static inline bool keep_block(void *p, size_t has) {
#ifdef KEEPS_BLOCKS
  for (int i = 0; has >= LARGE && i < KEPT; i++) {
    if (fuzz_kept[i] != NULL) continue;
    fuzz_kept[i] = p;
    ASAN_POISON_MEMORY_REGION(p, has);
    return true;
  }
#endif
  (void)p, (void)has;
  return false;
}

/* Blocks of the core not yet freed; a target ends with as many as it began. */
static size_t fuzz_blocks;

static inline void *fuzz_resize(void *ctx, void *p, size_t n) {
  (void)ctx;
  if (n == 0) {
    fuzz_blocks -= p != NULL;
#ifdef KEEPS_BLOCKS
    if (p != NULL && keep_block(p, malloc_usable_size(p))) return NULL;
#endif
    free(p);
    return NULL;
  }
  void *q = p == NULL ? take_kept(n) : NULL;
  if (q == NULL) q = realloc(p, n);
  if (q != NULL) fuzz_blocks += p == NULL;
  return q;
}

static const bpe_alloc fuzz_alloc = {.resize = fuzz_resize};

/* A failure is told in full, a success leaves the record alone. */
static inline void fuzz_check_error(bpe_status st, const bpe_error *e) {
  REQUIRE((st == BPE_OK || st == BPE_DONE) == (e->status == BPE_OK));
  if (e->status == BPE_OK) return;
  REQUIRE(e->status == st);
  const size_t len = strlen(e->text);
  REQUIRE(len > 0 && bpe_utf8_valid(e->text, len) && strchr(e->text, '\n') == NULL);
}

#endif
