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

/* The scanner that is equal to a regex which has no name, or NULL: those of single digits and of
** runs of them, which other programs put before a named pattern. */
const scan_rules *scan_find_regex(const char *text, size_t len);
const scan_rules *scan_find(const char *name, size_t len); /* NULL: no such scanner */
const char *scan_name(int i);                              /* NULL past the last */
/* Of the names that split every text alike, the first: llama3 is cl100k. Not for scan_find_regex.
 */
const char *scan_first_name(const scan_rules *);

/* Length of the first piece of s, which is well-formed. len > 0. */
size_t scan_piece(const scan_rules *, const uint8_t *s, size_t len);

/* The pieces of s as far as `max` ends go, which are counted from s: the same as max calls of
** scan_piece, many at a time. s is well-formed; max >= SCAN_LEAST. Returns how many; 0: len is 0.
** Nothing of it is true once the pace is stopped, which is asked inside pieces that are long. */
enum { SCAN_LEAST = 64 };
size_t scan_pieces(const scan_rules *, const uint8_t *s, size_t len, size_t *ends, size_t max,
                   pace *);
size_t scan_pieces_by(blocks_list *list, const scan_rules *r, const uint8_t *s, size_t len,
                      size_t *ends, size_t max); /* by a variant of one's choice */

/* Given a piece s[from .. end): whether the one that starts at `at` inside it, in what is left of
** s, ends there too. True only where a few characters and the piece's ends show it: for the runs
** that make pieces long, so that cutting them needs no look at all of them again. */
bool scan_same_end(const scan_rules *, const uint8_t *s, size_t from, size_t at, size_t end,
                   size_t len);

/* How far s[0 .. len), the start of a longer text, decides about itself: a piece of any scanner
** that ends before the returned place ends there whatever follows. s is well-formed or not; len is
** no place inside a character. */
size_t scan_settled(const uint8_t *s, size_t len, pace *); /* 0 once the pace is stopped */

#endif
