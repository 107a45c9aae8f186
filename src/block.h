/* block.h - finds all piece starts in 64 bytes of text at once.
**
** A block begins at a place where a piece is known to start, so nothing has to be carried over
** from the text before it: whatever follows is decided by the block's own bytes. Each byte is
** classified into bit masks, bit i for byte i, and the splitter's rules become boolean algebra on
** masks and shifted masks ("m << 1" asks about the byte before, "m >> 1" about the byte after):
**
**     text            a   c a t ' s   2 3 4 5   ,   i f ! \n x
**     letter          1 . 1 1 1 . 1 . . . . . . . . 1 1 . . 1
**     blank           . 1 . . . . . 1 . . . . . 1 . . . . . .      (also runs of white space)
**     starts (cl100k) 1 1 . . . 1 . 1 1 . . 1 1 . 1 . . 1 . 1
**
** What the block cannot decide - a run of white space or a contraction that its end cuts, bytes
** that are not ASCII - is left to the caller: the mask returned ends at the last start that is
** certain, and the next block begins there. If that is the block's first byte, scan_piece takes
** one piece in its own way. The scalar functions of scan.c are the definition; this is the same,
** faster, and tests compare the two on every pattern.
*/
#ifndef BLOCK_H
#define BLOCK_H

#include "base.h"

enum { BLOCK = 64 };

typedef struct block_masks {
  uint64_t letter; /* ASCII letters */
  uint64_t upper;
  uint64_t digit;
  uint64_t space;   /* 9-13 and 32 */
  uint64_t newline; /* 10 and 13 */
  uint64_t blank;   /* 32 */
  uint64_t quote;   /* the apostrophe */
  uint64_t slash;
  uint64_t high; /* 0x80 and above */
} block_masks;

/* Classifies s[0 .. BLOCK). */
typedef void block_classify(const uint8_t *s, block_masks *);

/* The fastest classifier that this processor runs, and all that it runs, by name, for tests. */
block_classify *block_best(void);
block_classify *block_named(const char *name);
const char *block_name(int i); /* NULL past the last */

/* Index of the lowest, highest set bit; m != 0. */
static inline unsigned lowest_bit(uint64_t m) {
  return (unsigned)__builtin_ctzll(m);
}
static inline unsigned highest_bit(uint64_t m) {
  return 63u - (unsigned)__builtin_clzll(m);
}

#endif
