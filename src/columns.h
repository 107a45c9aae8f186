/* columns.h - sixteen short pieces merged side by side, with AVX-512.
**
** A table whose columns are pieces: row r has what is in place r of each. So one instruction does
** for sixteen pieces what it would for one: the least key is the least of all rows, and the pairs
** to ask for are hashed eight at a time. Only the lines where these may be are searched one by one.
**
**            piece 0   piece 1   piece 2  ...
**     row 0     |         |         |            in no pair
**     row 1     l         t         s            symbols, and in a second table the key of each with
**     row 2     ow        a         p            the next in its column: order, then place, so that
**     row 3     -         k         a            the least is the pair that is merged next
**     row 4     |         e         ce
*/
#ifndef COLUMNS_H
#define COLUMNS_H

#include "merge.h"

enum { LANES = 16 }; /* pieces at a time */

/* One piece: its bytes, 1 to SHORT_PIECE of them, and where its ids go, as many at most. */
typedef struct merge_job {
  const uint8_t *s;
  size_t len;
  uint32_t *ids; /* NULL: only their number is wanted */
  size_t n;      /* of ids, when done */
} merge_job;

typedef struct columns {
  uint32_t key[1 << SHORT_PLACE_BITS][LANES], symbol[1 << SHORT_PLACE_BITS][LANES];
  uint64_t live[LANES];               /* a bit for each place that has a symbol */
  uint64_t right[LANES], left[LANES]; /* the pairs asked for, as words, and their lines */
  const uint64_t *right_line[LANES], *left_line[LANES];
  uint32_t at[LANES], before[LANES]; /* the places where they begin */
  uint32_t gone[LANES], made[LANES]; /* the place that was joined to `at`, and what they became */
  merge_job *job[LANES];
} columns;

#ifdef HAVE_AVX512
/* Of a vocabulary that lanes_fit. The columns are room, whatever is there. */
AVX512_TARGET void columns_merge(const vocab *, columns *, merge_job *, size_t n);
#endif

#endif
