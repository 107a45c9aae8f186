/* lanes.h - merges several short pieces by turns, on processors that compare a whole line of pairs
** at once (AVX2, AVX-512).
**
** A merge waits for the two lines of the table of pairs that its new pairs may be in. So each piece
** takes a step, asks for its lines, and leaves the turn to the next; when its turn comes again, the
** lines are there. A step needs no branch that is often guessed wrong. Where there are many pieces,
** AVX-512 does one step of sixteen of them at once (columns.h).
**
**     merge_job jobs[] = {{.s = text, .len = 7, .ids = ids}, ...};
**     if (lanes_fit(v)) lanes_best()(v, room, jobs, n);      jobs[i].n ids, at jobs[i].ids
*/
#ifndef LANES_H
#define LANES_H

#include "columns.h"

/* A piece being merged: as in merge_short, symbols in places 1 to n between two that are in no
** pair, a bit for each place that has a symbol, and a key for each pair. */
typedef struct lane {
  uint32_t symbol[1 << SHORT_PLACE_BITS], key[1 << SHORT_PLACE_BITS];
  uint64_t live;
  size_t n_keys;        /* those of 0 to n - 1, and what fills the last vector */
  uint64_t right, left; /* the pairs asked for, as words, and their lines */
  const uint64_t *right_line, *left_line;
  unsigned at, before; /* the places where they begin */
  merge_job *job;
} lane;

/* Room for either way, on a cache line of its own, whatever is there. */
typedef union lanes_room {
  lane lanes[LANES];
  columns columns;
} lanes_room;

typedef void lanes_merge(const vocab *, lanes_room *, merge_job *, size_t n);

/* The best of this processor; NULL: it has none. */
lanes_merge *lanes_best(void);
/* The one of this name, "avx512" or "avx2"; NULL: it does not run here. */
lanes_merge *lanes_named(const char *name);

/* Whether pieces of up to SHORT_PIECE bytes can be merged here. */
static inline bool lanes_fit(const vocab *v) {
  return v->pairs.lines != NULL && v->n_merges != 0 && v->n_merges < SHORT_MOST_ORDER;
}

#endif
