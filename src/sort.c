/* sort.c - pace_sort of base.h: merging from the bottom up, with no recursion.
**
**     3 1 | 2 9 | 7 4        runs of RUN, sorted by insertion
**     1 3   2 9   4 7
**     1 2 3 9   | 4 7        two neighbours at a time, to and fro between list and copy
**     1 2 3 4 7 9
*/
#include "base.h"

#include <string.h>

enum { RUN = 8, COMPARISON = 8 /* units of work */ };

typedef struct sorting {
  pace *p;
  size_t n, size;
  int (*compare)(const void *, const void *);
} sorting;

/* Sorts list[from .. to), a few elements; `spare` has room for one. */
static void insert_run(const sorting *s, uint8_t *list, size_t from, size_t to, uint8_t *spare) {
  for (size_t i = from + 1; i < to; i++) {
    size_t k = i;
    memcpy(spare, list + i * s->size, s->size);
    while (k > from && s->compare(list + (k - 1) * s->size, spare) > 0) k--;
    memmove(list + (k + 1) * s->size, list + k * s->size, (i - k) * s->size);
    memcpy(list + k * s->size, spare, s->size);
  }
}

/* Merges in[a .. b) and in[b .. c) to out[a .. c). */
static bpe_status merge_runs(const sorting *s, const uint8_t *in, uint8_t *out, size_t a, size_t b,
                             size_t c, bpe_error *e) {
  size_t left = a, right = b;
  for (size_t to = a; to < c; to++) {
    const bool from_left =
        left < b && (right == c || s->compare(in + left * s->size, in + right * s->size) <= 0);
    const size_t from = from_left ? left++ : right++;
    memcpy(out + to * s->size, in + from * s->size, s->size);
    const bpe_status st = pace_add(s->p, COMPARISON, e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

/* The sorted elements end up in *in. */
static bpe_status sort_by_merging(const sorting *s, uint8_t **in, uint8_t *out, bpe_error *e) {
  bpe_status st = BPE_OK;
  for (size_t i = 0; i < s->n && st == BPE_OK; i += RUN) {
    insert_run(s, *in, i, s->n - i < RUN ? s->n : i + RUN, out);
    st = pace_add(s->p, (size_t)RUN * COMPARISON, e);
  }
  for (size_t width = RUN; width < s->n && st == BPE_OK; width *= 2) {
    for (size_t a = 0; a < s->n && st == BPE_OK; a += 2 * width) {
      const size_t b = s->n - a < width ? s->n : a + width;
      const size_t c = s->n - b < width ? s->n : b + width;
      st = merge_runs(s, *in, out, a, b, c, e);
    }
    uint8_t *const was = *in;
    *in = out;
    out = was;
  }
  return st;
}

bpe_status pace_sort(pace *p, const bpe_alloc *a, void *list, size_t n, size_t size,
                     int (*compare)(const void *, const void *), bpe_error *e) {
  if (n < 2) return BPE_OK;
  const sorting s = {p, n, size, compare};
  uint8_t *const copy = mem_new(a, n, size);
  uint8_t *in = list;
  if (copy == NULL) return set_nomem(e);
  bpe_status st = sort_by_merging(&s, &in, copy, e);
  if (st == BPE_OK && in == copy) st = pace_copy(p, list, copy, n * size, e);
  mem_free(a, copy);
  return st;
}
