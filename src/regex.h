/* regex.h - patterns that have no hand-written scanner: PCRE2, behind a wall.
**
** regex.c alone includes pcre2.h. Subjects are well-formed UTF-8 (checked by the caller, once),
** so PCRE2's own check is off: it would look at the whole rest of the text at every match. The
** compiled code is immutable; what a match needs is a regex_match, one per thread.
*/
#ifndef REGEX_H
#define REGEX_H

#include "base.h"

typedef struct regex regex;
typedef struct regex_match regex_match;

bpe_status regex_new(const bpe_alloc *, const char *pattern, size_t len, bpe_error *, regex **out);
void regex_free(regex *);
/* Whether it may match where nothing is. Never false where it does. */
bool regex_matches_nothing(const regex *);
bpe_status regex_match_new(const regex *, bpe_error *, regex_match **out);
void regex_match_free(regex_match *);
/* Who is asked about stopping, before each attempt to match; NULL: nobody. */
void regex_match_stop(regex_match *, int (*stop)(void *), void *ctx);

/* The first non-empty match in s[from .. len), s being the whole subject: *start == *stop == len
** if there is none. After an empty match the search goes on one character later. */
bpe_status regex_next(const regex *, regex_match *, const uint8_t *s, size_t len, size_t from,
                      size_t *start, size_t *stop, bpe_error *);

#endif
