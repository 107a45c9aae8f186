/* prop_subject.h - the tokenizers of the property tests: each one twice, in the core and in the
** oracle, built from the same description.
**
** Built-in encodings are made once. A random one is small and odd on purpose: few different
** bytes, so that everything merges with everything; ranks out of order; several pairs with one
** result; tokens that nothing reaches; bytes that are no token; special tokens that begin alike;
** chains, in which the last byte of a long piece decides about the first.
**
**     prop_world w;
**     prop_world_open(&w, "data/encodings", "tests/vectors/unicode-classes.json", false);
**     prop_subject_random(&s, &w, seed, number);     // or prop_subject_builtin(&s, &w, "gpt2")
**     ... s.model against s.oracle ...
**     prop_subject_clear(&s);
*/
#ifndef PROP_SUBJECT_H
#define PROP_SUBJECT_H

#include "../src/bpe.h"
#include "prop_text.h"

enum { PROP_PATTERNS = 48, PROP_OTHERS = 16, PROP_FOUND = 8, PROP_WRAP = 2 };

/* What subjects share: reference data, compiled patterns and tables, made when first used. */
typedef struct prop_world {
  bpe_alloc alloc;
  const char *encodings;
  oracle_classes *classes;
  oracle_vocab *ranks[4];
  const char *pattern[PROP_PATTERNS];
  oracle_regex *regex[PROP_PATTERNS];
  size_t n_patterns;
  /* Patterns that a walk may be given instead of the tokenizer's, in both forms. */
  const char *other_name[PROP_OTHERS];
  bpe_pattern *other[PROP_OTHERS];
  oracle_regex *other_regex[PROP_OTHERS];
  size_t n_others;
  bool sabotage; /* the oracle takes every pattern for another one: all must fail */
} prop_world;

bool prop_world_open(prop_world *, const char *encodings, const char *classes, bool sabotage);
void prop_world_close(prop_world *);
/* Which code points must not be in texts that a regex splits: PCRE2 classes them otherwise.
** False: a class differs where no version of Unicode does. */
bool prop_world_avoid(const prop_world *, bool (**avoid)(uint32_t cp));
/* The oracle's side of a pattern: NULL for "", which is `none`. */
oracle_regex *prop_world_regex(prop_world *, const char *pattern);

typedef struct prop_subject {
  char name[200];
  bool is_random;
  oracle_model oracle;
  /* Added tokens first, then special ones: with nothing allowed the first n_added are found. */
  const oracle_special *found;
  size_t n_added, n_found;
  uint32_t bos[PROP_WRAP], eos[PROP_WRAP];
  size_t n_bos, n_eos;
  prop_source source;
  const prop_world *world; /* borrowed */
  bpe_model *model; /* owned */
  bpe_coder *coder; /* owned, with the usual piece table */
  bpe_coder *tiny;  /* owned, with hardly any, so that entries push each other out */
  bpe_finder *all;  /* owned: allows every special token */
  /* Owned by a random subject, pointed at by the above. */
  oracle_special own_found[PROP_FOUND];
  char own_names[PROP_FOUND][16];
  char own_alphabet[256];
} prop_subject;

/* False, with a line on stdout: the core refused what it must accept. */
bool prop_subject_builtin(prop_subject *, prop_world *, const char *name);
bool prop_subject_random(prop_subject *, prop_world *, uint64_t seed, uint64_t number);
/* The same from numbers under way; `number` is only part of its name. */
bool prop_subject_make(prop_subject *, prop_world *, prop_rng *, uint64_t number);
void prop_subject_clear(prop_subject *);
/* Throws the coders away, and all they remember, for new ones. */
bool prop_subject_forget(prop_subject *);

#endif
