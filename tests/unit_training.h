/* unit_training.h - rows of text and a training over them, for the tests of the trainer.
**
**     static const row rows[] = {{"low", 5}, ROW("lower"), END};
**     const bpe_train_options o = options("gpt2", BPE_TIE_BYTES);
**     bpe_model *m = train(rows, 260, &o);
*/
#ifndef UNIT_TRAINING_H
#define UNIT_TRAINING_H

#include "unit.h"

typedef struct row {
  const char *text; /* NULL ends the rows */
  uint64_t weight;
} row;

#define ROW(text) {text, 1}
#define END {NULL, 0}

static inline bpe_status train_with(const row *rows, uint32_t vocab_size, const bpe_train_options *o,
                             bpe_error *e, bpe_model **out) {
  bpe_trainer *t = NULL;
  *out = NULL;
  bpe_status st = bpe_trainer_new(&unit_alloc, vocab_size, o, e, &t);
  for (; rows->text != NULL && st == BPE_OK; rows++)
    st = bpe_trainer_add(t, rows->text, strlen(rows->text), rows->weight, e);
  if (st == BPE_OK) st = bpe_trainer_finish(t, e, out);
  bpe_trainer_free(t);
  return st;
}

static inline bpe_model *train(const row *rows, uint32_t vocab_size, const bpe_train_options *o) {
  bpe_error e = {.status = BPE_OK};
  bpe_model *m;
  if (!CHECK(train_with(rows, vocab_size, o, &e, &m) == BPE_OK)) printf("  %s\n", e.text);
  return m;
}

static inline bpe_train_options options(const char *pattern, bpe_tie tie) {
  return (bpe_train_options){.pattern = pattern, .pattern_len = strlen(pattern), .tie = tie,
                             .threads = 1};
}

#endif
