/* prop_text.h - random texts for the property tests, and the random numbers behind them.
**
** Every case has its own generator, seeded with the run's seed and the case's number, so a case
** can be repeated alone. A text is of one kind of PROP_KINDS; lengths are mostly 0 to 64 bytes,
** sometimes to 300, rarely to 20,000.
**
**     prop_rng rng = prop_seed(seed, number);
**     prop_text_make(&text, &rng, &source);      // text.bytes, text.len, text.kind
*/
#ifndef PROP_TEXT_H
#define PROP_TEXT_H

#include "oracle.h"

typedef struct prop_rng {
  uint64_t state;       /* never 0 */
  const uint8_t *bytes; /* borrowed; the first numbers come from these, one each */
  size_t left;
} prop_rng;

prop_rng prop_seed(uint64_t seed, uint64_t number);
/* For fuzzers: a byte decides one number, so that changing it changes one thing; behind the last
** the numbers go on as from a seed. */
prop_rng prop_bytes(const uint8_t *bytes, size_t len);
uint64_t prop_next(prop_rng *);
uint32_t prop_below(prop_rng *, uint32_t n); /* 0 .. n-1; n > 0 */
bool prop_one_in(prop_rng *, uint32_t n);

typedef enum prop_kind {
  PROP_RANDOM,    /* any bytes */
  PROP_MALFORMED, /* characters among truncated, overlong, surrogate and stray bytes */
  PROP_CROSSING,  /* fragments of all classes, so that every few bytes the class changes */
  PROP_ASCII,     /* the same in ASCII, where whole blocks of text may be looked at together */
  PROP_SPECIAL,   /* special tokens, whole, cut, doubled, with a byte changed */
  PROP_RUN,       /* one character again and again */
  PROP_NOISY_RUN, /* runs with something else between */
  PROP_TOKENS,    /* tokens of the vocabulary, put side by side */
  PROP_SMALL,     /* few different bytes: random, periodic, or in stretches of ascending order */
  PROP_KINDS
} prop_kind;

const char *prop_kind_name(prop_kind);

/* What a text is made for; all of it may be zero. */
typedef struct prop_source {
  const oracle_special *specials;
  size_t n_specials;
  const oracle_vocab *vocab;
  const char *alphabet; /* bytes of PROP_SMALL texts, which are then most of all texts */
  size_t alphabet_len;
  bool long_often; /* texts that a long merge cuts into windows: one in a hundred, not in 500 */
  bool (*avoid)(uint32_t cp); /* code points that must not occur */
} prop_source;

typedef struct prop_text {
  uint8_t *bytes; /* owned */
  size_t len, cap;
  prop_kind kind;
} prop_text;

void prop_text_make(prop_text *, prop_rng *, const prop_source *);
void prop_text_clear(prop_text *);

#endif
