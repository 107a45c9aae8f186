/* model.h - a tokenizer, complete: vocabulary, pattern, special tokens, what wraps a document.
**
** Immutable once bpe_builder_finish has made it, and without any scratch, so threads may share
** it. builder.c makes it, model.c answers questions about it, model_digest.c names its content.
*/
#ifndef MODEL_H
#define MODEL_H

#include "normalize.h"
#include "special.h"
#include "split.h"
#include "vocab.h"

typedef struct id_list {
  uint32_t *ids; /* owned */
  size_t n, cap;
} id_list;

/* A special or added token that text spells otherwise than its bytes. */
typedef struct model_name {
  uint32_t id;
  uint32_t len;
  char *text; /* owned */
} model_name;

struct bpe_model {
  bpe_alloc alloc;
  vocab v;
  bpe_pattern *pattern;   /* owned */
  normalizer *normalizer; /* owned; NULL: text is taken as it is */
  model_name *names;      /* owned, by id */
  size_t n_names, names_cap;
  bool alters;         /* bytes of a text and of its tokens need not be the same */
  uint32_t strip_left; /* decoding drops up to so many spaces from the start */
  char *settings;      /* owned: settings_write's, without the format; made by finish */
  size_t settings_len;
  bpe_finder *specials; /* owned; every BPE_SPECIAL */
  bpe_finder *added;    /* owned; every BPE_ADDED, or NULL if there is none */
  id_list bos, eos;
  char *stats; /* owned, JSON; NULL: none */
  size_t stats_len;
  bool lacks_bytes; /* some byte is no token: encoding can fail */
};

/* A finder over the model's entries whose kind is in `kinds` (a mask of 1 << bpe_kind). */
bpe_status model_finder(const bpe_model *, unsigned kinds, bpe_error *, bpe_finder **out);

/* How text spells a special or added token. */
bpe_name model_spelling(const bpe_model *, const vocab_entry *);

/* ---- settings.c ---- */

/* The canonical text of what bpe_model_settings tells, without its first key, the format. */
void settings_write(const bpe_model *, bpe_buffer *);

/* ---- model_blob.c ---- */

/* Whether the bytes begin as bpe_model_write's do. */
bool model_blob_is(const void *bytes, size_t len);

/* ---- builder.c: what only settings and importers say ---- */

/* Gives the entries with this id a flag (enum entry_flag) when the model is finished. */
void builder_flag(bpe_builder *, uint32_t id, unsigned flag);
void builder_name(bpe_builder *, uint32_t id, const char *text, size_t len);
/* Merging begins with characters. */
void builder_chars(bpe_builder *);
bool builder_is_whole(const bpe_builder *);
void builder_strip_left(bpe_builder *, uint32_t n);
void builder_normalizer(bpe_builder *, normalizer *); /* moved; not on failure: freed */
/* Records a failure of the caller's, to be reported by bpe_builder_finish. */
bpe_error *builder_error(bpe_builder *);
const bpe_alloc *builder_alloc(const bpe_builder *);
bool builder_failed(const bpe_builder *);

/* The caller vouches that every merge joins its operands' bytes and gives a token, and that every
** token, taken as one piece, merges to itself, which finish would otherwise find out one by one.
** The built-in encodings do; a test does it for them. */
void builder_vouch(bpe_builder *);
/* Makes room for so many entries, each with a merge, and bytes in all. */
void builder_reserve(bpe_builder *, size_t n, size_t bytes);
/* Fetches what bpe_builder_grow will soon look up of an operand. */
void builder_fetch(const bpe_builder *, uint32_t id);

#endif
