/* models.h - what models.c asks of models_known.c. */
#ifndef MODELS_H
#define MODELS_H

#include "../../src/bpe.h"

/* Checks a model by name against answers that were reported one by one; returns how many failed. */
void check_known(const bpe_model *, bpe_coder *, const char *name, unsigned long *passed,
                 unsigned long *failed);

#endif
