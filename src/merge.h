/* merge.h - merges one piece into ids: of the adjacent pairs that the vocabulary lists, the one
** of lowest rank, leftmost first, again and again.
**
** Three ways to the same answer: a short piece by scanning an array, a longer one by a
** tournament over the ranks, a long one window by window (merge.c says why that is exact).
** Time is n log n at worst and linear in practice; memory is that of a window plus the ids.
*/
#ifndef MERGE_H
#define MERGE_H

#include "vocab.h"

enum {
  SHORT_PIECE = 62,     /* bytes up to which an array scan wins */
  SHORT_PLACE_BITS = 6, /* a place in a short piece, from 0 to SHORT_PIECE + 1 */
  SHORT_MOST_ORDER = (1 << (32 - SHORT_PLACE_BITS)) - 1 /* orders below this go with a place */
};

/* One caller's scratch: zero it, set alloc, use it for any number of pieces, clear it. */
typedef struct merge_scratch {
  bpe_alloc alloc;
  uint32_t *ids; /* owned; the result of the last merge_piece */
  size_t ids_cap;
  uint32_t *window; /* owned; arrays of the window being merged */
  size_t window_cap;
  uint32_t *last_ids; /* owned; ids of the window merged last */
  size_t last_cap;
  int (*stop)(void *ctx); /* NULL, or asked now and then; non-zero gives BPE_STOPPED */
  void *stop_ctx;
} merge_scratch;

void merge_scratch_clear(merge_scratch *);

/* Where merging s begins: its symbols, and the rank and result of each with the next one, which the
** last does not have. Room for len in each; returns their number. Of no use once the pace is
** stopped. */
size_t merge_start(const vocab *, const uint8_t *s, size_t len, uint32_t *ids, uint32_t *rank,
                   uint32_t *to, pace *);

/* Merges s into scratch->ids[0 .. *n - 1]. A byte that is no token and was not merged away is
** BPE_NONE there. len > 0. */
bpe_status merge_piece(const vocab *, merge_scratch *, const uint8_t *s, size_t len, size_t *n,
                       bpe_error *);

#endif
