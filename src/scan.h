/* scan.h - hand-written splitters for the named patterns, equal to their published regexes.
**
** A scanner is asked for the first piece of well-formed UTF-8 whose end is the end of the text,
** as far as lookahead goes. It always finds one: the named patterns match every character. Time
** is linear over a whole text: no byte is looked at more than a few times.
**
**     scan_piece(scan_find("gpt2", 4), "hello world", 11) == 5
*/
#ifndef SCAN_H
#define SCAN_H

#include "blocks.h"

typedef struct scan_rules scan_rules;

const scan_rules *scan_find(const char *name, size_t len); /* NULL: no such scanner */
const char *scan_name(int i);                              /* NULL past the last */

/* Length of the first piece of s, which is well-formed. len > 0. */
size_t scan_piece(const scan_rules *, const uint8_t *s, size_t len);

/* The pieces of s as far as `max` ends go, which are counted from s: the same as max calls of
** scan_piece, many at a time. s is well-formed; max >= SCAN_LEAST. Returns how many; 0: len is 0. */
enum { SCAN_LEAST = 64 };
size_t scan_pieces(const scan_rules *, const uint8_t *s, size_t len, size_t *ends, size_t max);
size_t scan_pieces_by(blocks_list *, const scan_rules *, const uint8_t *s, size_t len,
                      size_t *ends, size_t max); /* by a variant of one's choice */

#endif
