/* published.h - the named patterns as the regexes that files of other programs spell out.
**
** A file that spells a published regex, character for character, means the named pattern; every
** other regex stays one. deepseek3 is three regexes, each splitting the pieces of the one before.
**
**     published_name("\\p{N}{1,3}", 9) == NULL
*/
#ifndef PUBLISHED_H
#define PUBLISHED_H

#include "base.h"

/* The regex of a named pattern that is a single one, or NULL. */
const char *published_regex(const char *name, size_t len);
/* The named pattern of a regex, or NULL. */
const char *published_name(const char *regex, size_t len);

enum { DEEPSEEK3_STEPS = 3 };
extern const char *const published_deepseek3[DEEPSEEK3_STEPS];

#endif
