/* special.h - finds special tokens in text: leftmost first, of those the longest.
**
** With the names <|a|> and <|a|><|b|>, the text "x<|a|><|b|>" has one match, at 1, of the second.
** Names are kept sorted; from a byte that begins some name, the range of names that agree with
** the text so far is narrowed: the text is compared with the first and the last of the range at
** once, as far as it goes, and where it leaves either a binary search cuts the range. A place costs
** at most the length of the names, of which there is a limit; a search asks about stopping by the
** work it has done, not by the text it has passed.
**
** A name may take the white space around it along, or count only where no word character touches
** it. A match that does not count hides what it covers: the search goes on behind it.
*/
#ifndef SPECIAL_H
#define SPECIAL_H

#include "vocab.h"

typedef struct special_match {
  size_t start, len; /* of the text, white space included; start == the text's length: none */
  uint32_t id;       /* BPE_NONE for a string that is no token of the model */
} special_match;

enum { SPECIAL_MAX = 65535 }; /* bytes of a name */

bpe_status special_new(const bpe_alloc *, bpe_error *, bpe_finder **out);
/* Copies a name; refuses an empty one and one over SPECIAL_MAX. A name added twice keeps the first
** id. flags: those of enum entry_flag that say how a name is found. */
bpe_status special_add(bpe_finder *, const void *name, size_t len, uint32_t id, unsigned flags,
                       bpe_error *);
BPE_CHECK bpe_status special_seal(bpe_finder *, bpe_error *);
/* Hangs the names that are looked for in normalized text behind the others; it is moved. */
void special_set_late(bpe_finder *, bpe_finder *late);
const bpe_finder *special_late(const bpe_finder *); /* NULL: there are none */
size_t special_longest(const bpe_finder *f);        /* bytes of the longest name; f may be NULL */
/* Whether each name is found wherever it stands and takes nothing else along; f may be NULL. */
bool special_is_plain(const bpe_finder *f);
/* Whether no name is looked for in the text as it stands that depends on what is before it. */
bool special_is_blind(const bpe_finder *f);
/* Id of exactly this name, late ones included, or BPE_NONE. *flags may be NULL. */
uint32_t special_id(const bpe_finder *, const void *name, size_t len, unsigned *flags);
/* Whether white space begins here, as it is taken along. len > 0. */
bool special_strips(const uint8_t *s, size_t len);
/* The first match in text[from .. len). What comes before `from` is looked at, never taken. */
special_match special_next(const bpe_finder *, const uint8_t *text, size_t from, size_t len);
/* The same, asking `stop` (may be NULL) every few ms at least; BPE_STOPPED if it said so. */
bpe_status special_find(const bpe_finder *, const uint8_t *text, size_t from, size_t len,
                        int (*stop)(void *), void *ctx, bpe_error *, special_match *);

#endif
