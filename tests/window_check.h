/* window_check.h - limits and windows of one text, against brute force.
**
** For any bytes x, tokenizer and limit n: bpe_fits is count <= n; bpe_truncate keeps the first
** (last) k tokens' bytes for the largest k <= n that ends (begins) with a character and counts to
** at most n, found here by trying every k from above; windows are the same applied to the rest,
** tile the text or overlap by what the definition says, and count to what they claim. Pieces that
** scan_settled calls settled are those of the longer text.
**
**     window_case t = {.coder = c, .options = o, .wraps = number of BOS and EOS if o.document};
**     ... t.text, t.len ...
**     const char *wrong = window_check(&t, &rng);   // NULL; or what does not hold
*/
#ifndef WINDOW_CHECK_H
#define WINDOW_CHECK_H

#include "../src/bpe.h"
#include "prop_text.h"

enum { WINDOW_TEXT = 400, WINDOW_LONG_TEXT = 16000 };

typedef struct window_case {
  bpe_coder *coder;
  bpe_walk_options options;
  uint64_t wraps;
  uint8_t text[WINDOW_LONG_TEXT]; /* WINDOW_TEXT of them for window_check */
  size_t len;
} window_case;

/* The numbers choose the limits, and the pattern of scan_settled. Static state: one thread. */
const char *window_check(const window_case *, prop_rng *);
/* Windows alone, of a text that is longer than what is walked at a time. */
const char *window_check_long(const window_case *, prop_rng *);

#endif
