/* export.h - what the writers of formats share.
**
** A writer appends its text and refuses only what it cannot spell. Whether the text means the same
** tokenizer is not argued case by case: bpe_export imports it again, given back what the format
** does not carry, and compares digests; a difference is refused naming the first thing that did
** not come back.
*/
#ifndef EXPORT_H
#define EXPORT_H

#include "model.h"

typedef bpe_status export_write(const bpe_model *, bpe_error *, bpe_buffer *);

bpe_status export_tiktoken(const bpe_model *, bpe_error *, bpe_buffer *);
bpe_status export_minbpe(const bpe_model *, bpe_error *, bpe_buffer *);
bpe_status export_gpt2_vocab(const bpe_model *, bpe_error *, bpe_buffer *);
bpe_status export_gpt2_merges(const bpe_model *, bpe_error *, bpe_buffer *);
bpe_status export_huggingface(const bpe_model *, bpe_error *, bpe_buffer *);

/* Appends the bytes in GPT-2's characters, as they are or as a JSON string's inside. */
void export_byte_level(bpe_buffer *, const uint8_t *bytes, size_t len);
/* BPE_BADMODEL naming the first id that two tokens share. */
bpe_status export_one_id_each(const bpe_model *, const char *format, bpe_error *);

#endif
