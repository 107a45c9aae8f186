/* model.h - a tokenizer, complete: vocabulary, pattern, special tokens, what wraps a document.
**
** Immutable once bpe_builder_finish has made it, and without any scratch, so threads may share
** it. builder.c makes it, model.c answers questions about it, model_digest.c names its content.
*/
#ifndef MODEL_H
#define MODEL_H

#include "special.h"
#include "split.h"
#include "vocab.h"

typedef struct id_list {
  uint32_t *ids; /* owned */
  size_t n, cap;
} id_list;

struct bpe_model {
  bpe_alloc alloc;
  vocab v;
  bpe_pattern *pattern;  /* owned */
  bpe_finder *specials;  /* owned; every BPE_SPECIAL */
  bpe_finder *added;     /* owned; every BPE_ADDED, or NULL if there is none */
  id_list bos, eos;
  char *stats; /* owned, JSON; NULL: none */
  size_t stats_len;
  bool lacks_bytes; /* some byte is no token: encoding can fail */
};

/* A finder over the model's entries whose kind is in `kinds` (a mask of 1 << bpe_kind). */
bpe_status model_finder(const bpe_model *, unsigned kinds, bpe_error *, bpe_finder **out);

/* The caller vouches that every token, taken as one piece, merges to itself, which finish would
** otherwise find out token by token. The built-in encodings do; a test does it for them. */
void builder_vouch(bpe_builder *);

#endif
