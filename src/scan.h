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

/* A long piece that was found: what is to be known of it to answer for the places inside. */
typedef struct scan_found {
  size_t start, stop; /* start == stop: there is none */
  size_t tail;        /* where the slashes, or marks and letters without case, at its end begin */
} scan_found;

/* The piece s[start .. stop); looks at no more than its tail. Not true once the pace is stopped. */
scan_found scan_long(const uint8_t *s, size_t start, size_t stop, pace *);
/* Whether the piece that starts at the character s[at] inside a found one, which was found in the
** same text s[.. len), ends where that does. Looks at a few characters only. What it does not see,
** it denies: then the piece at `at` is short, or differs, or, found by scanning, is one of which it
** sees more. */
bool scan_same_end(const scan_rules *, const uint8_t *s, const scan_found *, size_t at, size_t len);

/* How far s[0 .. len), the start of a longer text, decides about itself: a piece of any scanner
** that ends before the returned place ends there whatever follows. s is well-formed or not; len is
** no place inside a character. */
size_t scan_settled(const uint8_t *s, size_t len, pace *); /* 0 once the pace is stopped */

#endif
