/* blocks.h - lists where pieces end, a block of 64 bytes at a time.
**
** There is a variant for each kind of machine that this was compiled for, and for each family of
** patterns, with everything that the inner loop does in one place: what the compiler may use in
** the one must not run on another. All variants give the same answers.
**
**     n = blocks_best()(&rules, s, len, from, ends, max);
**
** The answer may be short, or none at all: where it ends, scan_piece must find the next piece.
*/
#ifndef BLOCKS_H
#define BLOCKS_H

#include "base.h"

typedef struct block_rules {
  enum { FAMILY_NONE, FAMILY_GPT2, FAMILY_CL100K, FAMILY_O200K } family; /* none: no blocks */
  unsigned max_digits; /* 1 or 3, but for gpt2, which has no limit */
  bool contractions;   /* of o200k: (?i:C)? after a word */
} block_rules;

typedef size_t blocks_list(const block_rules *, const uint8_t *s, size_t len, size_t from,
                           size_t *ends, size_t max);

/* The fastest variant that this machine runs, and all that it runs, by name, for tests. Each
** lists ends of pieces of s, counted from s, which is well-formed UTF-8; a piece starts at `from`.
** ends has room for max, and while 64 more fit, the list goes on. */
blocks_list *blocks_best(void);
blocks_list *blocks_named(const char *name); /* NULL: not here */
const char *blocks_name(int i);              /* NULL past the last */

#endif
