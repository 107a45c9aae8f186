/* import.h - what the importers share: the tokens of a file, indexed as they come, and its
** special tokens.
**
** Each importer fills an `importing`: tokens and specials by the functions below, merges and
** settings into its builder. bpe_import then turns tokens into entries and asks for the model:
**
**     st = import_token(in, bytes, len, id, line);     refuses a second token or a second id
**     at = import_find(in, bytes, len);                index of in->tokens, or in->n_tokens
*/
#ifndef IMPORT_H
#define IMPORT_H

#include "doc.h"
#include "model.h"

typedef struct import_entry {
  size_t offset; /* of the slab */
  uint32_t len, id;
  uint32_t where; /* line, or byte of a JSON text, for messages */
  uint8_t kind;   /* bpe_kind */
  uint8_t flags;  /* entry_flag */
  bool merges;    /* some merge names it */
  bool ordinary;  /* it was a token of text before it became special or added */
} import_entry;

typedef struct importing {
  bpe_alloc alloc;
  bpe_builder *b; /* owned */
  bpe_error *e;
  const bpe_import_options *options;
  const char *where_name; /* what `where` counts: "line" or "byte" */
  import_entry *tokens;   /* owned */
  size_t n_tokens, tokens_cap;
  uint8_t *slab; /* owned */
  size_t slab_len, slab_cap;
  uint64_t most_bytes;        /* of all tokens */
  uint64_t *by_bytes, *by_id; /* owned; high half: hash, low half: index + 1 */
  size_t mask;
  uint32_t highest; /* id */
  uint8_t *scratch; /* owned; import_scratch */
  size_t scratch_cap;
  pace pace; /* every token and merge counts its work here */
} importing;

const uint8_t *import_bytes(const importing *, size_t token);
/* Room for n bytes until it is asked for again, or import_find_joined is; NULL: out of memory. */
uint8_t *import_scratch(importing *, size_t n);
/* Whether so many bytes more are few enough for the source. */
bool import_has_room(const importing *, uint64_t len);
/* Copies a token. Equal bytes or an equal id is BPE_BADMODEL naming both. */
bpe_status import_token(importing *, const void *bytes, size_t len, uint32_t id, bpe_kind,
                        unsigned flags, size_t where);
/* Gives a token other bytes, by which it is not found. */
bpe_status import_respell(importing *, size_t token, const void *bytes, size_t len);
/* Index of the token with these bytes that merges and is not of last choice, or n_tokens. */
size_t import_find(const importing *, const void *bytes, size_t len);
/* The same among tokens with exactly these of the flags FALLBACK and UNUSED. */
size_t import_find_as(const importing *, const void *bytes, size_t len, unsigned flags);
size_t import_find_id(const importing *, uint32_t id);
/* The special token of this name, or n_tokens. */
size_t import_find_special(const importing *, const void *name, size_t len);
/* The token `left` followed by `right`, or n_tokens. */
BPE_CHECK bpe_status import_find_joined(importing *, size_t left, size_t right, size_t *out);
/* Hands a merge of tokens, by index, to the builder. */
void import_merge(importing *, uint32_t rank, size_t left, size_t right, size_t result);
/* The ids of the 256 single bytes: value, or GPT-2's rank, and first. */
bpe_status import_single_bytes(importing *, bool gpt2_order, uint32_t first);

/* A special token of this name: the token that has these bytes becomes it, or a new one is made.
** id BPE_NONE: its id is that of the vocabulary, or one past the highest. */
bpe_status import_special(importing *, const char *name, size_t len, uint32_t id, size_t where);
/* The caller's special tokens. */
bpe_status import_specials(importing *, const char *json, size_t len);
bpe_status import_special_list(importing *, const doc_node *);

/* The caller's pattern; BPE_MISUSE naming `format` if there is none. */
bpe_status import_pattern(importing *, const char *format);
/* BPE_MISUSE if the caller gave what the format says itself. */
bpe_status import_no_options(const importing *, const char *format);

/* Lines of a text: *line is the next, without its end; CR before LF is no part of it. */
typedef struct lines {
  const char *at, *end;
  size_t n; /* number of the line */
} lines;
bool next_line(lines *, const char **line, size_t *len);
/* Whole number 0 .. BPE_NONE - 1 in decimal, nothing else. */
bool parse_id(const char *text, size_t len, uint32_t *id);

/* The formats. in->b is there, source is not empty. */
bpe_status import_tiktoken(importing *, const char *text, size_t len);
bpe_status import_minbpe(importing *, const char *text, size_t len);
bpe_status import_gpt2(importing *, const doc_node *tokens, const char *merges, size_t len);
bpe_status import_plain(importing *, const doc_node *root);
bpe_status import_hf(importing *, const doc_node *root);

/* The tokens of a vocabulary in GPT-2's characters, and one merge of two of them. `at` counts
** what `where` says. */
bpe_status import_gpt2_vocab(importing *, const doc_node *tokens);
bpe_status import_named_merge(importing *, uint32_t rank, const char *where, size_t at,
                              const char *left, size_t left_len, const char *right,
                              size_t right_len);

#endif
