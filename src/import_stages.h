/* import_stages.h - what the two halves of the tokenizer.json importer share.
**
** import_hf.c reads the model and the tokens, import_stages.c what happens to text before and
** after. The stages come first: they say which family a file belongs to.
*/
#ifndef IMPORT_STAGES_H
#define IMPORT_STAGES_H

#include "import.h"

typedef struct hf {
  importing *in;
  normalizer *normalizer; /* owned until import_hf hands it to the builder */
  bool byte_level;        /* the vocabulary is in GPT-2's characters */
  bool byte_fallback;
  bool whole;
  bool spaces;          /* U+2581 stands for the space */
  bool normalizes;      /* before added tokens are looked for the second time */
  bool late_is_plain;   /* added tokens may be looked for in normalized text */
  bool all_late;        /* all of them are, and nothing normalizes: it makes no difference */
  const doc_node *mark; /* the step that prepends U+2581, or NULL */
  size_t n_vocab;       /* tokens that are not from added_tokens alone */
  uint32_t strip;
  const doc_node *vocab_at, *merges_at;
} hf;

/* BPE_BADMODEL "tokenizer.json: <path>: <why>: <type of v>". */
bpe_status hf_refuse(hf *, const doc_node *v, const char *path, const char *why);
const doc_node *hf_type(const doc_node *); /* its "type", or NULL */
bool hf_is(const doc_node *, const char *type);
bool hf_bool(const doc_node *, const char *key, bool missing);

bpe_status hf_normalizer(hf *, const doc_node *);
bpe_status hf_pre_tokenizer(hf *, const doc_node *);
bpe_status hf_decoder(hf *, const doc_node *);

#endif
