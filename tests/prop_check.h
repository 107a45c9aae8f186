/* prop_check.h - one text, one tokenizer, one way of calling: does the core do as the oracle says?
**
**     const prop_mode mode = prop_mode_random(&rng, subject);
**     const char *what = prop_check(subject, &mode, text, len, &counts);
**     if (what) prop_check_print();        // NULL: all holds
**
** The mode is chosen before the text and kept while a failing text is shrunk.
*/
#ifndef PROP_CHECK_H
#define PROP_CHECK_H

#include "prop_subject.h"

typedef enum prop_allow { PROP_ALLOW_NONE, PROP_ALLOW_SOME, PROP_ALLOW_ALL } prop_allow;

typedef struct prop_mode {
  prop_allow allow;
  uint64_t subset; /* PROP_ALLOW_SOME: special i if bit i % 64 is set */
  bool forbid;     /* the specials that are not allowed are an error */
  bool document;   /* BOS and EOS around it */
  bool by_turns;   /* a second walk on the same coder between the steps of the first */
  size_t pattern;  /* another than the tokenizer's: world.other[pattern - 1]; 0: its own */
  bool tiny;       /* the coder with hardly any piece table */
} prop_mode;

/* What the cases were like; only numbers, so that two can be added. */
typedef struct prop_counts {
  uint64_t allowed, found, forbidden, document, by_turns, pattern, untokenized;
  uint64_t bytes, pieces, ids, long_bytes;
} prop_counts;

prop_mode prop_mode_random(prop_rng *, const prop_subject *);
void prop_mode_print(const prop_mode *, const prop_subject *);

/* NULL, or what does not hold. counts may be NULL. */
const char *prop_check(prop_subject *, const prop_mode *, const uint8_t *text, size_t len,
                       prop_counts *);
/* Pieces and ids, expected and got, of the check that failed last. */
void prop_check_print(void);
void prop_check_clear(void);

#endif
