/* special.h - finds special tokens in text: leftmost first, of those the longest.
**
** With the names <|a|> and <|a|><|b|>, the text "x<|a|><|b|>" has one match, at 1, of the second.
** Names are kept sorted; from a byte that begins some name, the range of names that agree with
** the text so far is narrowed byte by byte, so a place costs at most the longest name times a
** binary search, whatever the number of names.
*/
#ifndef SPECIAL_H
#define SPECIAL_H

#include "base.h"

typedef struct special_match {
  size_t start, len; /* of the text; start == the text's length: none */
  uint32_t id;       /* BPE_NONE for a string that is no token of the model */
} special_match;

/* n names to come, of `bytes` bytes in all. */
bpe_status special_new(const bpe_alloc *, size_t n, size_t bytes, bpe_error *, bpe_finder **out);
/* Copies a name; refuses an empty one. A name added twice keeps the first id. */
bpe_status special_add(bpe_finder *, const void *name, size_t len, uint32_t id, bpe_error *);
void special_seal(bpe_finder *);
/* Id of exactly this name, or BPE_NONE. */
uint32_t special_id(const bpe_finder *, const void *name, size_t len);
/* The first match that starts in text[from .. len). */
special_match special_next(const bpe_finder *, const uint8_t *text, size_t from, size_t len);

#endif
