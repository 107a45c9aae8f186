/* doc.h - JSON documents of models, read whole: settings, vocabularies, tokenizer.json.
**
** Reading is yajl's: one value, strict JSON, valid UTF-8, no recursion. A document is a tree of
** small nodes in chunks that are freed together; strings are decoded, numbers kept as written.
** Keys may repeat in the tree; doc_keys refuses that for objects with a fixed set of keys, and
** readers of large objects find out through their own tables.
**
**     doc d;
**     st = doc_parse(&alloc, text, len, "settings", e, &d);
**     if (st == BPE_OK) ... doc_get(d.root, "bos") ...
**     doc_clear(&d);
*/
#ifndef DOC_H
#define DOC_H

#include "base.h"

typedef enum doc_kind {
  DOC_NULL,
  DOC_TRUE,
  DOC_FALSE,
  DOC_NUMBER,
  DOC_STRING,
  DOC_ARRAY,
  DOC_OBJECT
} doc_kind;

typedef struct doc_node {
  const struct doc_node *next;  /* sibling */
  const struct doc_node *first; /* child of an array or object */
  const char *text;             /* of a number or string, NUL-terminated */
  const char *key;              /* in an object, else "" */
  uint32_t len, key_len;        /* a container's len: its children */
  uint32_t offset;              /* where in the source the value ends, for messages */
  uint8_t kind;
} doc_node;

typedef struct doc {
  bpe_alloc alloc;
  const doc_node *root;
  struct doc_chunk *chunks; /* owned */
} doc;

/* `what` begins the message about malformed text, which is BPE_BADMODEL. On failure *out is
** empty, and clearing it is fine. */
bpe_status doc_parse(const bpe_alloc *, const void *text, size_t len, const char *what, bpe_error *,
                     doc *out);
void doc_clear(doc *);

/* First value under the key, or NULL. `object` may be NULL or no object: NULL. */
const doc_node *doc_get(const doc_node *object, const char *key);
bool doc_is(const doc_node *, const char *text); /* a string of exactly this text */
/* A whole number 0 .. BPE_NONE - 1. */
bool doc_id(const doc_node *, uint32_t *id);
static inline bool doc_has_kind(const doc_node *v, doc_kind kind) {
  return v != NULL && v->kind == kind;
}
/* BPE_BADMODEL naming the first key that is not in the list (up to NULL) or is there twice. */
bpe_status doc_keys(const doc_node *object, const char *what, const char *const *known,
                    bpe_error *);

#endif
