/* import_hf.c - Hugging Face's tokenizer.json: the model, its added tokens, what wraps a text.
**
** Two families are read. Byte-level BPE, whose vocabulary is written in GPT-2's characters, and
** SentencePiece-style BPE with byte_fallback, whose vocabulary is text with U+2581 for the space
** and <0xHH> for single bytes. Of the latter, tokens are kept with real spaces: the normalizer
** that turns spaces into U+2581 becomes one that turns U+2581 into spaces, and decoding has
** nothing left to undo but a space at the start.
**
** Keys may be missing: byte_fallback, ignore_merges and fuse_unk are then false, use_regex true.
** truncation and padding, and whatever concerns offsets only, have no part in ids. unk_token is
** never reached where every byte is a token, and where one is not, encoding it is an error here.
** Everything else that is not done is refused by its name. import_stages.c has the normalizer, the
** pre-tokenizer and the decoder.
*/
#include "bytelevel.h"
#include "import_stages.h"
#include "utf8.h"

#include <string.h>

bpe_status hf_refuse(hf *h, const doc_node *v, const char *path, const char *why) {
  quoted q;
  const doc_node *type = hf_type(v);
  if (type == NULL)
    return set_error(h->in->e, BPE_BADMODEL, v == NULL ? 0 : v->offset, "tokenizer.json: %s: %s",
                     path, why);
  return set_error(h->in->e, BPE_BADMODEL, v->offset, "tokenizer.json: %s: %s: %s", path, why,
                   quote_bytes(&q, type->text, type->len));
}

const doc_node *hf_type(const doc_node *v) {
  const doc_node *type = doc_get(v, "type");
  return doc_has_kind(type, DOC_STRING) ? type : NULL;
}

bool hf_is(const doc_node *v, const char *type) {
  const doc_node *t = hf_type(v);
  return t != NULL && doc_is(t, type);
}

bool hf_bool(const doc_node *v, const char *key, bool missing) {
  const doc_node *x = doc_get(v, key);
  return x == NULL || x->kind == DOC_NULL ? missing : x->kind == DOC_TRUE;
}

/* ---- Vocabulary ---------------------------------------------------------------------------- */

enum { NODE_WORK = 16 }; /* units, of a value of the file besides its bytes */

/* "<0x0A>": the byte, or -1. */
static int fallback_byte(const char *s, size_t len) {
  static const char hex[] = "0123456789ABCDEF";
  if (len != 6 || memcmp(s, "<0x", 3) != 0 || s[5] != '>') return -1;
  const char *high = memchr(hex, s[3], 16), *low = memchr(hex, s[4], 16);
  return high == NULL || low == NULL ? -1 : (int)((high - hex) * 16 + (low - hex));
}

/* The token's text with spaces for U+2581, into out. */
static size_t unescape(const hf *h, const char *s, size_t len, uint8_t *out) {
  size_t n = 0;
  for (size_t i = 0; i < len;) {
    if (h->spaces && len - i >= 3 && memcmp(s + i, "\xe2\x96\x81", 3) == 0) {
      out[n++] = ' ';
      i += 3;
    } else {
      out[n++] = (uint8_t)s[i++];
    }
  }
  return n;
}

static bpe_status read_sp_token(hf *h, const doc_node *v, uint32_t id, uint8_t *scratch) {
  const int byte = fallback_byte(v->key, v->key_len);
  if (byte >= 0) {
    const uint8_t c = (uint8_t)byte;
    return import_token(h->in, &c, 1, id, BPE_TOKEN, ENTRY_FALLBACK, v->offset);
  }
  if (h->spaces && memchr(v->key, ' ', v->key_len) != NULL) /* no text has spaces by then */
    return import_token(h->in, v->key, v->key_len, id, BPE_TOKEN, ENTRY_UNUSED, v->offset);
  const size_t n = unescape(h, v->key, v->key_len, scratch);
  return import_token(h->in, scratch, n, id, BPE_TOKEN, 0, v->offset);
}

static bpe_status read_sp_vocab(hf *h, const doc_node *tokens) {
  pace *const p = &h->in->pace;
  size_t longest = 0;
  for (const doc_node *v = tokens->first; v != NULL && !pace_stopped(p, 4); v = v->next)
    if (v->key_len > longest) longest = v->key_len;
  uint8_t *scratch = mem_new(&h->in->alloc, longest, 1);
  bpe_status st = scratch == NULL ? set_nomem(h->in->e) : pace_add(p, 1, h->in->e);
  for (const doc_node *v = tokens->first; v != NULL && st == BPE_OK; v = v->next) {
    uint32_t id;
    if (!doc_id(v, &id)) st = hf_refuse(h, v, "model.vocab", "id is no number below 2^32-1");
    else st = read_sp_token(h, v, id, scratch);
  }
  mem_free(&h->in->alloc, scratch);
  if (st == BPE_OK && h->spaces && import_find(h->in, " ", 1) == h->in->n_tokens)
    return hf_refuse(h, tokens, "model.vocab", "no U+2581, which stands for spaces");
  return st;
}

/* ---- Merges -------------------------------------------------------------------------------- */

static bpe_status merge_sp(hf *h, uint32_t rank, const char *part[2], const size_t len[2]) {
  quoted q;
  uint8_t bytes[4096];
  size_t token[2];
  for (int i = 0; i < 2; i++) {
    const size_t n = len[i] > sizeof bytes ? 0 : unescape(h, part[i], len[i], bytes);
    token[i] = n == 0 ? h->in->n_tokens : import_find(h->in, bytes, n);
    if (token[i] == h->in->n_tokens)
      return set_error(h->in->e, BPE_BADMODEL, rank,
                       "model.merges[%lu]: merge of what is not in the vocabulary: %s",
                       (unsigned long)rank, quote_bytes(&q, part[i], len[i]));
  }
  size_t result;
  const bpe_status st = import_find_joined(h->in, token[0], token[1], &result);
  if (st != BPE_OK) return st;
  if (result == h->in->n_tokens)
    return set_error(h->in->e, BPE_BADMODEL, rank,
                     "model.merges[%lu]: result of the merge is not in the vocabulary: %s ...",
                     (unsigned long)rank, quote_bytes(&q, part[0], len[0]));
  import_merge(h->in, rank, token[0], token[1], result);
  return BPE_OK;
}

/* "a b", or ["a", "b"]. */
static bool pair_of(const doc_node *v, const char *part[2], size_t len[2]) {
  if (v->kind == DOC_STRING) {
    const char *space = memchr(v->text, ' ', v->len);
    if (space == NULL || memchr(space + 1, ' ', v->len - (size_t)(space + 1 - v->text)))
      return false;
    part[0] = v->text;
    len[0] = (size_t)(space - v->text);
    part[1] = space + 1;
    len[1] = v->len - len[0] - 1;
    return len[0] > 0 && len[1] > 0;
  }
  if (v->kind != DOC_ARRAY || v->len != 2) return false;
  const doc_node *x = v->first;
  for (int i = 0; i < 2; i++, x = x->next) {
    if (x->kind != DOC_STRING || x->len == 0) return false;
    part[i] = x->text;
    len[i] = x->len;
  }
  return true;
}

static bpe_status read_merges(hf *h, const doc_node *list) {
  uint32_t rank = 0;
  for (const doc_node *v = list->first; v != NULL; v = v->next, rank++) {
    const char *part[2] = {"", ""};
    size_t len[2] = {0, 0};
    if (!pair_of(v, part, len))
      return set_error(h->in->e, BPE_BADMODEL, v->offset, "model.merges[%lu]: not two tokens",
                       (unsigned long)rank);
    const bpe_status st = h->byte_level ? import_named_merge(h->in, rank, "model.merges:", rank,
                                                             part[0], len[0], part[1], len[1])
                                        : merge_sp(h, rank, part, len);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

/* A vocabulary of longer tokens without merges is one that was read wrongly somewhere. */
static bool has_long_tokens(const importing *in) {
  for (size_t k = 0; k < in->n_tokens; k++)
    if (in->tokens[k].len > 1 && in->tokens[k].kind == BPE_TOKEN &&
        !(in->tokens[k].flags & ENTRY_UNUSED))
      return true;
  return false;
}

static bpe_status read_model(hf *h, const doc_node *m) {
  static const char *const refused[] = {"continuing_subword_prefix", "end_of_word_suffix"};
  const doc_node *type = hf_type(m), *dropout = doc_get(m, "dropout");
  const doc_node *tokens = doc_get(m, "vocab"), *merges = doc_get(m, "merges");
  if (type != NULL && !doc_is(type, "BPE"))
    return hf_refuse(h, m, "model", "only BPE is read, not");
  for (int i = 0; i < 2; i++) {
    const doc_node *v = doc_get(m, refused[i]);
    if (v != NULL && v->kind != DOC_NULL && !(v->kind == DOC_STRING && v->len == 0))
      return set_error(h->in->e, BPE_BADMODEL, v->offset,
                       "tokenizer.json: model.%s is not supported", refused[i]);
  }
  if (dropout != NULL && dropout->kind != DOC_NULL && !doc_is(dropout, "0") &&
      strcmp(dropout->text, "0.0") != 0 && strcmp(dropout->text, "0") != 0)
    return hf_refuse(h, dropout, "model.dropout", "is not supported");
  if (!doc_has_kind(tokens, DOC_OBJECT)) return hf_refuse(h, m, "model.vocab", "is no object in");
  if (!doc_has_kind(merges, DOC_ARRAY)) return hf_refuse(h, m, "model.merges", "is no array in");
  h->byte_fallback = hf_bool(m, "byte_fallback", false);
  h->whole = hf_bool(m, "ignore_merges", false);
  if (!h->byte_level && !h->byte_fallback)
    return hf_refuse(h, m, "model", "neither a ByteLevel pre-tokenizer nor byte_fallback");
  if (h->byte_level && h->byte_fallback)
    return hf_refuse(h, m, "model", "byte_fallback beside a ByteLevel pre-tokenizer");
  if (h->byte_fallback && h->whole) /* the spelling <0x41> would be a token */
    return hf_refuse(h, m, "model", "byte_fallback beside ignore_merges");
  h->vocab_at = tokens;
  h->merges_at = merges;
  return BPE_OK;
}

/* ---- Added tokens -------------------------------------------------------------------------- */

/* The token of the vocabulary that is spelled like this, or n_tokens; in scratch the bytes that it
** has or would have. */
static size_t find_in_vocab(const hf *h, const doc_node *content, uint8_t *scratch, size_t *n) {
  const char *s = content->text;
  const size_t len = content->len;
  unsigned flags = 0;
  if (h->byte_level) {
    const bool decoded = bytelevel_decode(s, len, scratch, n);
    const size_t at =
        decoded ? import_find(h->in, scratch, *n) : import_find_as(h->in, s, len, ENTRY_UNUSED);
    if (at != h->in->n_tokens) return at;
    memcpy(scratch, s, len); /* outside the vocabulary it is text, as it stands */
    *n = len;
    return at;
  }
  *n = unescape(h, s, len, scratch);
  if (fallback_byte(s, len) >= 0) {
    scratch[0] = (uint8_t)fallback_byte(s, len);
    *n = 1;
    flags = ENTRY_FALLBACK;
  } else if (h->spaces && memchr(s, ' ', len) != NULL) {
    flags = ENTRY_UNUSED;
  }
  return import_find_as(h->in, scratch, *n, flags);
}

/* An added token that the vocabulary has too is one entry with both roles; its spelling is told
** where that is not its bytes. Two ids for the same bytes are an error. But where the file spells
** a text like "\u00fc", which in the vocabulary means the byte 0xfc, the id is the vocabulary's, as
** it is for the library that the file belongs to. */
static bpe_status add_token(hf *h, const doc_node *v, const doc_node *content, uint32_t id,
                            uint8_t *scratch) {
  quoted q;
  size_t n = 0;
  importing *in = h->in;
  const bpe_kind kind = hf_bool(v, "special", false) ? BPE_SPECIAL : BPE_ADDED;
  unsigned flags = 0;
  if (hf_bool(v, "lstrip", false)) flags |= ENTRY_LSTRIP;
  if (hf_bool(v, "rstrip", false)) flags |= ENTRY_RSTRIP;
  if (hf_bool(v, "single_word", false)) flags |= ENTRY_WORD;
  if (hf_bool(v, "normalized", kind == BPE_ADDED)) flags |= ENTRY_LATE;
  if ((flags & ENTRY_LATE) && !h->all_late && !h->late_is_plain)
    return set_error(in->e, BPE_BADMODEL, v->offset,
                     "tokenizer.json: added_tokens: normalized under this normalizer: %s",
                     quote_bytes(&q, content->text, content->len));
  if (h->all_late) flags &= ~(unsigned)ENTRY_LATE;
  size_t at = find_in_vocab(h, content, scratch, &n);
  const bool in_vocab = at != in->n_tokens && in->tokens[at].kind == BPE_TOKEN;
  const bool same_bytes = at != in->n_tokens && in->tokens[at].len == content->len &&
                          memcmp(import_bytes(in, at), content->text, content->len) == 0;
  if (at != in->n_tokens && h->byte_level && !same_bytes) id = in->tokens[at].id;
  if (at != in->n_tokens && in->tokens[at].id != id)
    return set_error(in->e, BPE_BADMODEL, v->offset,
                     "tokenizer.json: id is %lu in the vocabulary and %lu in added_tokens: %s",
                     (unsigned long)in->tokens[at].id, (unsigned long)id,
                     quote_bytes(&q, content->text, content->len));
  if (at == in->n_tokens) {
    const bpe_status st = import_token(in, scratch, n, id, kind, flags, v->offset);
    if (st != BPE_OK) return st;
    at = in->n_tokens - 1;
  }
  import_entry *t = &in->tokens[at];
  t->kind = (uint8_t)kind;
  t->flags = (uint8_t)flags;
  /* What merging begins with goes on being that; outside the vocabulary it never was. */
  const uint8_t *s = import_bytes(in, at);
  t->merges |= in_vocab && (t->len == 1 || (!h->byte_level && utf8_length(s, t->len) == t->len));
  if (t->len != content->len || memcmp(s, content->text, content->len) != 0)
    builder_name(in->b, id, content->text, content->len);
  return BPE_OK;
}

static bpe_status read_added(hf *h, const doc_node *list) {
  if (list == NULL || list->kind == DOC_NULL) return BPE_OK;
  if (list->kind != DOC_ARRAY) return hf_refuse(h, list, "added_tokens", "is no array");
  size_t longest = 0;
  h->all_late = !h->normalizes && list->first != NULL;
  for (const doc_node *v = list->first; v != NULL; v = v->next) {
    const doc_node *content = doc_get(v, "content");
    uint32_t id;
    if (!doc_has_kind(content, DOC_STRING) || content->len == 0 || !doc_id(doc_get(v, "id"), &id))
      return hf_refuse(h, v, "added_tokens", "entry without content and id");
    if (content->len > longest) longest = content->len;
    const bpe_status st = pace_add(&h->in->pace, NODE_WORK, h->in->e);
    if (st != BPE_OK) return st;
    h->all_late = h->all_late && hf_bool(v, "normalized", !hf_bool(v, "special", false));
  }
  uint8_t *scratch = mem_new(&h->in->alloc, longest, 1);
  bpe_status st = scratch == NULL ? set_nomem(h->in->e) : BPE_OK;
  for (const doc_node *v = list->first; v != NULL && st == BPE_OK; v = v->next) {
    uint32_t id = 0;
    if (doc_id(doc_get(v, "id"), &id)) st = add_token(h, v, doc_get(v, "content"), id, scratch);
    if (st == BPE_OK) st = pace_add(&h->in->pace, NODE_WORK, h->in->e);
  }
  mem_free(&h->in->alloc, scratch);
  return st;
}

/* ---- Around a text ------------------------------------------------------------------------- */

typedef void add_id(bpe_builder *, uint32_t id);

static bpe_status add_template_token(hf *h, const doc_node *map, const doc_node *name,
                                     add_id *add) {
  quoted q;
  const doc_node *entry = NULL;
  pace *const p = &h->in->pace;
  for (const doc_node *v = map == NULL ? NULL : map->first; v != NULL; v = v->next) {
    const bpe_status st = pace_add(p, NODE_WORK, h->in->e);
    if (st != BPE_OK) return st;
    if (v->key_len == name->len && memcmp(v->key, name->text, name->len) == 0) entry = v;
  }
  const doc_node *ids = doc_get(entry, "ids");
  if (!doc_has_kind(ids, DOC_ARRAY))
    return set_error(h->in->e, BPE_BADMODEL, name->offset,
                     "tokenizer.json: post_processor.special_tokens lacks %s",
                     quote_bytes(&q, name->text, name->len));
  for (const doc_node *v = ids->first; v != NULL; v = v->next) {
    uint32_t id;
    if (!doc_id(v, &id)) return hf_refuse(h, v, "post_processor.special_tokens", "bad id");
    add(h->in->b, id);
    const bpe_status st = pace_add(p, NODE_WORK, h->in->e);
    if (st != BPE_OK) return st;
  }
  const bpe_error *failure = builder_error(h->in->b); /* they are too many */
  if (failure->status == BPE_OK) return BPE_OK;
  return set_error(h->in->e, failure->status, failure->offset, "%s", failure->text);
}

static bpe_status read_template(hf *h, const doc_node *v) {
  const doc_node *single = doc_get(v, "single"), *map = doc_get(v, "special_tokens");
  bool after = false;
  if (!doc_has_kind(single, DOC_ARRAY))
    return hf_refuse(h, v, "post_processor", "no template of single texts in");
  for (const doc_node *x = single->first; x != NULL; x = x->next) {
    const doc_node *special = doc_get(x, "SpecialToken"), *id = doc_get(special, "id");
    if (doc_get(x, "Sequence") != NULL) {
      if (after) return hf_refuse(h, v, "post_processor", "the text stands twice in");
      after = true;
    } else if (!doc_has_kind(id, DOC_STRING)) {
      return hf_refuse(h, v, "post_processor", "neither token nor text in");
    } else {
      const bpe_status st =
          add_template_token(h, map, id, after ? bpe_builder_eos : bpe_builder_bos);
      if (st != BPE_OK) return st;
    }
  }
  return after ? BPE_OK : hf_refuse(h, v, "post_processor", "no text in");
}

/* BertProcessing and RobertaProcessing: ["name", id] before, and after. */
static bpe_status read_bert(hf *h, const doc_node *v) {
  static const char *const keys[] = {"cls", "sep"};
  for (int i = 0; i < 2; i++) {
    const doc_node *pair = doc_get(v, keys[i]);
    uint32_t id;
    if (!doc_has_kind(pair, DOC_ARRAY) || pair->len != 2 || !doc_id(pair->first->next, &id))
      return hf_refuse(h, v, "post_processor", "no cls and sep in");
    if (i == 0) bpe_builder_bos(h->in->b, id);
    else bpe_builder_eos(h->in->b, id);
  }
  return BPE_OK;
}

static bpe_status read_post_step(hf *h, const doc_node *v, int *n) {
  if (hf_is(v, "ByteLevel")) return BPE_OK; /* trims offsets; ids stay */
  if (++*n > 1) return hf_refuse(h, v, "post_processor", "a second step around the text");
  if (hf_is(v, "TemplateProcessing")) return read_template(h, v);
  if (hf_is(v, "BertProcessing") || hf_is(v, "RobertaProcessing")) return read_bert(h, v);
  return hf_refuse(h, v, "post_processor", "not supported");
}

static bpe_status read_post(hf *h, const doc_node *v) {
  int n = 0;
  if (v == NULL || v->kind == DOC_NULL) return BPE_OK;
  if (!hf_is(v, "Sequence")) return read_post_step(h, v, &n);
  const doc_node *list = doc_get(v, "processors");
  if (!doc_has_kind(list, DOC_ARRAY)) return hf_refuse(h, v, "post_processor", "no processors in");
  for (const doc_node *x = list->first; x != NULL; x = x->next) {
    const bpe_status st = read_post_step(h, x, &n);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

/* ---- The whole ----------------------------------------------------------------------------- */

bpe_status import_hf(importing *in, const doc_node *root) {
  static const char *const keys[] = {
      "version",       "truncation",     "padding", "added_tokens", "normalizer",
      "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
  hf h = {.in = in};
  bpe_status st = import_no_options(in, "a tokenizer.json");
  if (st == BPE_OK) st = doc_keys(root, "tokenizer.json", keys, in->e);
  if (st != BPE_OK) return st;
  const doc_node *m = doc_get(root, "model");
  if (!doc_has_kind(m, DOC_OBJECT)) return hf_refuse(&h, m, "model", "is no object");
  h.byte_fallback = hf_bool(m, "byte_fallback", false);
  st = hf_normalizer(&h, doc_get(root, "normalizer"));
  if (st == BPE_OK) st = hf_pre_tokenizer(&h, doc_get(root, "pre_tokenizer"));
  if (st == BPE_OK) st = read_model(&h, m);
  if (st == BPE_OK) st = hf_decoder(&h, doc_get(root, "decoder"));
  if (st == BPE_OK)
    st = h.byte_level ? import_gpt2_vocab(in, h.vocab_at) : read_sp_vocab(&h, h.vocab_at);
  if (st == BPE_OK) st = read_merges(&h, h.merges_at);
  if (st == BPE_OK) st = read_added(&h, doc_get(root, "added_tokens"));
  if (st == BPE_OK && h.merges_at->len == 0 && !h.whole && has_long_tokens(in))
    st = hf_refuse(&h, h.merges_at, "model.merges", "empty beside a vocabulary of longer tokens");
  if (st == BPE_OK) st = read_post(&h, doc_get(root, "post_processor"));
  if (st != BPE_OK) {
    normalizer_free(h.normalizer);
    return st;
  }
  if (h.normalizer != NULL && normalizer_steps(h.normalizer) == 0) {
    normalizer_free(h.normalizer);
    h.normalizer = NULL;
  }
  if (h.normalizer != NULL) builder_normalizer(in->b, h.normalizer);
  if (h.byte_fallback) builder_chars(in->b);
  if (h.whole) bpe_builder_whole(in->b);
  builder_strip_left(in->b, h.strip);
  return BPE_OK;
}
