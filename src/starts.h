/* starts.h - the splitters' rules as algebra on the masks of block.h.
**
** Each function answers for one family of scan.c: bit i of the result is set where a piece starts
** at byte i, up to the last start that the first `known` bytes of the block decide. Bit 0 is not
** set: that a piece starts there is what the caller knows. 0: nothing is decided.
*/
#ifndef STARTS_H
#define STARTS_H

#include "block.h"

uint64_t starts_gpt2(const block_masks *, const uint8_t *s, unsigned known, unsigned max_digits);
uint64_t starts_cl100k(const block_masks *, const uint8_t *s, unsigned known,
                       unsigned max_digits);
/* contractions: (?i:C)? after a word. */
uint64_t starts_o200k(const block_masks *, const uint8_t *s, unsigned known, unsigned max_digits,
                      bool contractions);

/* Length of a contraction at s[0], an apostrophe, or 0; `folded` ignores ASCII case. Looks at no
** more than s[2]. U+017F is the caller's. */
unsigned starts_contraction(const uint8_t *s, bool folded);

#endif
