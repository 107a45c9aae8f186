/* prop_altered.h - random tokenizers that change text before they split it, whose added tokens look
** at what is beside them, and texts that such tokenizers change: composed and decomposed letters,
** marks, replaced characters, white space.
**
**     altered_make(&s, &alloc, &rng);
**     len = altered_text(text, sizeof text, &rng);
*/
#ifndef PROP_ALTERED_H
#define PROP_ALTERED_H

#include "../src/bpe.h"
#include "prop_text.h"

typedef struct altered_subject {
  char name[400]; /* its pattern and settings */
  bpe_model *model;
  bpe_coder *coder;
  bpe_finder *all;
} altered_subject;

/* False, with a line on stdout: the core refused what it must accept. */
bool altered_make(altered_subject *, const bpe_alloc *, prop_rng *);
void altered_clear(altered_subject *);
size_t altered_text(uint8_t *out, size_t most, prop_rng *);

#endif
