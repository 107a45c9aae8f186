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

static bpe_status read_sp_token(hf *h, const doc_node *v, uint32_t id) {
  const int byte = fallback_byte(v->key, v->key_len);
  if (byte >= 0) {
    const uint8_t c = (uint8_t)byte;
    return import_token(h->in, &c, 1, id, BPE_TOKEN, ENTRY_FALLBACK, v->offset);
  }
  if (h->spaces && memchr(v->key, ' ', v->key_len) != NULL) /* no text has spaces by then */
    return import_token(h->in, v->key, v->key_len, id, BPE_TOKEN, ENTRY_UNUSED, v->offset);
  uint8_t *scratch = import_scratch(h->in, v->key_len);
  if (scratch == NULL) return set_nomem(h->in->e);
  const size_t n = unescape(h, v->key, v->key_len, scratch);
  return import_token(h->in, scratch, n, id, BPE_TOKEN, 0, v->offset);
}

static bpe_status read_sp_vocab(hf *h, const doc_node *tokens) {
  bpe_status st = BPE_OK;
  for (const doc_node *v = tokens->first; v != NULL && st == BPE_OK; v = v->next) {
    uint32_t id;
    if (!doc_id(v, &id)) st = hf_refuse(h, v, "model.vocab", "id is no number below 2^32-1");
    else st = read_sp_token(h, v, id);
  }
  if (st == BPE_OK && h->spaces && import_find(h->in, " ", 1) == h->in->n_tokens)
    return hf_refuse(h, tokens, "model.vocab", "no U+2581, which stands for spaces");
  return st;
}

/* ---- Merges -------------------------------------------------------------------------------- */

static bpe_status merge_sp(hf *h, uint32_t rank, const char *part[2], const size_t len[2]) {
  quoted q;
  size_t token[2];
  for (int i = 0; i < 2; i++) {
    uint8_t *bytes = import_scratch(h->in, len[i]);
    if (bytes == NULL) return set_nomem(h->in->e);
    const size_t n = unescape(h, part[i], len[i], bytes);
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

/* An entry's flags, of the pass that looks for it and of how it is found. */
static unsigned added_flags(const hf *h, const doc_node *v) {
  unsigned flags = 0;
  if (hf_bool(v, "lstrip", false)) flags |= ENTRY_LSTRIP;
  if (hf_bool(v, "rstrip", false)) flags |= ENTRY_RSTRIP;
  if (hf_bool(v, "single_word", false)) flags |= ENTRY_WORD;
  if (!h->all_late && hf_bool(v, "normalized", !hf_bool(v, "special", false))) flags |= ENTRY_LATE;
  return flags;
}

static bpe_status refuse_added(hf *h, const doc_node *content, const char *why) {
  quoted q;
  return set_error(h->in->e, BPE_BADMODEL, content->offset, "tokenizer.json: added_tokens: %s: %s",
                   why, quote_bytes(&q, content->text, content->len));
}

/* Names under way: all of them, or the late ones as normalized text has them. */
typedef struct names {
  bpe_finder *seen; /* owned */
  normal_text normal;
  const doc_node *strips, *blank; /* of one pass: takes what follows along; begins with that */
  bool late;
} names;

/* The text that a name is looked for as; the names' until the next one. */
static bpe_status name_text(hf *h, names *x, const doc_node *content, bpe_name *out) {
  *out = (bpe_name){content->text, content->len};
  if (!x->late) return BPE_OK;
  const bpe_status st = normal_apply(&x->normal, h->normalizer, (const uint8_t *)content->text,
                                     content->len, h->in->e);
  *out = (bpe_name){(const char *)x->normal.text, x->normal.len};
  return st;
}

static bpe_status note_name(hf *h, names *x, const doc_node *v, uint32_t n) {
  const doc_node *content = doc_get(v, "content");
  const unsigned flags = added_flags(h, v);
  bpe_name name;
  bpe_status st = name_text(h, x, content, &name);
  if (st != BPE_OK) return st;
  if (((flags & ENTRY_LATE) != 0) == x->late) {
    if (flags & ENTRY_RSTRIP) x->strips = content;
    if (special_strips((const uint8_t *)name.text, name.len)) x->blank = content;
    if (x->strips != NULL && x->blank != NULL)
      return refuse_added(h, x->blank, "begins with white space, which an rstrip takes along");
  }
  return special_add(x->seen, name.text, name.len, n, 0, h->in->e);
}

static bpe_status check_name(hf *h, names *x, const doc_node *v, uint32_t n) {
  const doc_node *content = doc_get(v, "content");
  bpe_name name;
  const bpe_status st = name_text(h, x, content, &name);
  if (st != BPE_OK || special_id(x->seen, name.text, name.len, NULL) == n) return st;
  return refuse_added(h, content, x->late ? "normalized, the same as another" : "given twice");
}

/* Calls `each` with every entry whose name is among those, and its number. */
static bpe_status each_name(hf *h, names *x, const doc_node *list,
                            bpe_status each(hf *, names *, const doc_node *, uint32_t)) {
  bpe_status st = BPE_OK;
  uint32_t n = 0;
  for (const doc_node *v = list->first; v != NULL && st == BPE_OK; v = v->next, n++) {
    const size_t len = doc_get(v, "content")->len;
    if (x->late && !(added_flags(h, v) & ENTRY_LATE)) continue;
    if (len <= SPECIAL_MAX) st = each(h, x, v, n); /* others are refused with the vocabulary */
    if (st == BPE_OK) st = pace_add(&h->in->pace, NODE_WORK + len, h->in->e);
  }
  return st;
}

/* What a pass over a text makes of two names: of equal ones the library has a choice of its own, and
** it finds one in the white space that another has taken along. */
static bpe_status check_names(hf *h, const doc_node *list, bool late) {
  names x = {.normal.alloc = h->in->alloc, .late = late};
  bpe_status st = special_new(&h->in->alloc, h->in->e, &x.seen);
  if (st == BPE_OK) st = each_name(h, &x, list, note_name);
  if (st == BPE_OK) st = special_seal(x.seen, h->in->e);
  if (st == BPE_OK) st = each_name(h, &x, list, check_name);
  bpe_finder_free(x.seen);
  normal_clear(&x.normal);
  return st;
}

/* Whether a token is the vocabulary's and not taken by another name. */
static bool is_free(const hf *h, size_t at) {
  return at < h->n_vocab && h->in->tokens[at].kind == BPE_TOKEN;
}

/* The token of the vocabulary that is spelled like this, or n_tokens; in scratch the bytes that it
** has or would have. */
static size_t find_in_vocab(const hf *h, const doc_node *content, uint8_t *scratch, size_t *n) {
  const char *s = content->text;
  const size_t len = content->len;
  unsigned flags = 0;
  size_t at;
  if (h->byte_level) {
    const bool decoded = bytelevel_decode(s, len, scratch, n);
    at = decoded ? import_find(h->in, scratch, *n) : import_find_as(h->in, s, len, ENTRY_UNUSED);
    if (is_free(h, at)) return at;
    memcpy(scratch, s, len); /* outside the vocabulary it is text, as it stands */
    *n = len;
    return h->in->n_tokens;
  }
  *n = unescape(h, s, len, scratch);
  if (fallback_byte(s, len) >= 0) {
    scratch[0] = (uint8_t)fallback_byte(s, len);
    *n = 1;
    flags = ENTRY_FALLBACK;
  }
  at = h->spaces && memchr(s, ' ', len) != NULL ? import_find_as(h->in, s, len, ENTRY_UNUSED)
                                                : import_find_as(h->in, scratch, *n, flags);
  return is_free(h, at) ? at : h->in->n_tokens;
}

/* The library goes by no id of the file: what the vocabulary spells has its id there, the others
** are numbered from the vocabulary's size on, whatever ids that has. A file that says otherwise is
** refused, but for a character that stands for another byte: that it is in the vocabulary is news
** to whoever added it, so it has the id of that byte, as in the library. */
static bpe_status check_id(hf *h, const doc_node *content, uint32_t *id, size_t at) {
  quoted q;
  const bool in_vocab = at != h->in->n_tokens;
  const uint32_t real = in_vocab ? h->in->tokens[at].id : (uint32_t)h->in->n_tokens;
  const bool is_symbol =
      in_vocab && h->byte_level && h->in->tokens[at].len == 1 && content->len > 1;
  const uint32_t said = *id;
  if (is_symbol) *id = real;
  if (*id == real) return BPE_OK;
  return set_error(
      h->in->e, BPE_BADMODEL, content->offset,
      in_vocab ? "tokenizer.json: id is %lu in the vocabulary and %lu in added_tokens: %s"
               : "tokenizer.json: added_tokens: id is %lu by its place, not %lu: %s",
      (unsigned long)real, (unsigned long)said, quote_bytes(&q, content->text, content->len));
}

/* Of a byte and its character, merging begins with the one and falls back on the other: an added
** token may be either, but not the first beside the second. */
static bool is_byte_beside(const hf *h, size_t at) {
  const importing *in = h->in;
  return at != in->n_tokens && (in->tokens[at].flags & ENTRY_FALLBACK) &&
         import_find(in, import_bytes(in, at), 1) < h->n_vocab;
}

/* Whether bytes of the vocabulary that are an added token too are those of no text and of no merge:
** then they are only how the file spells the text, as "\u00fc" spells 0xfc. */
static bool is_spelling(const hf *h, size_t at, const doc_node *content) {
  const import_entry *t = &h->in->tokens[at];
  if (!h->byte_level) return (t->flags & ENTRY_UNUSED) != 0;
  return !t->merges && t->len > 1 && t->len < content->len &&
         utf8_valid_run(import_bytes(h->in, at), t->len) < t->len;
}

/* An added token that the vocabulary has too is one entry with both roles; its spelling is told
** where that is not its bytes. */
static bpe_status add_token(hf *h, const doc_node *v, const doc_node *content, uint32_t id) {
  size_t n = 0;
  importing *in = h->in;
  uint8_t *scratch = import_scratch(in, content->len);
  if (scratch == NULL) return set_nomem(in->e);
  const bpe_kind kind = hf_bool(v, "special", false) ? BPE_SPECIAL : BPE_ADDED;
  const unsigned flags = added_flags(h, v);
  if ((flags & ENTRY_LATE) && !h->late_is_plain)
    return refuse_added(h, content, "normalized under this normalizer");
  size_t at = find_in_vocab(h, content, scratch, &n);
  const bool in_vocab = at != in->n_tokens;
  if (is_byte_beside(h, at)) return refuse_added(h, content, "a byte beside its character");
  bpe_status st = check_id(h, content, &id, at);
  if (st == BPE_OK && !in_vocab) st = import_token(in, scratch, n, id, kind, flags, v->offset);
  const bool merges = in_vocab && !(in->tokens[at].flags & ENTRY_UNUSED);
  const bool respelled = in_vocab && is_spelling(h, at, content);
  if (st == BPE_OK && respelled)
    st = h->byte_level ? import_respell(in, at, content->text, content->len)
                       : import_respell(in, at, scratch, n);
  if (st != BPE_OK) return st;
  if (!in_vocab) at = in->n_tokens - 1;
  import_entry *t = &in->tokens[at];
  /* What text becomes goes on being that; outside the vocabulary it never was. */
  const uint8_t *s = import_bytes(in, at);
  t->merges |= merges && (t->len == 1 || (!h->byte_level && utf8_length(s, t->len) == t->len));
  t->ordinary = merges && !respelled;
  t->kind = (uint8_t)kind;
  t->flags = (uint8_t)flags;
  if (t->len != content->len || memcmp(s, content->text, content->len) != 0)
    builder_name(in->b, id, content->text, content->len);
  return BPE_OK;
}

static bpe_status read_added(hf *h, const doc_node *list) {
  if (list == NULL || list->kind == DOC_NULL) return BPE_OK;
  if (list->kind != DOC_ARRAY) return hf_refuse(h, list, "added_tokens", "is no array");
  bool all_late = !h->normalizes && list->first != NULL;
  for (const doc_node *v = list->first; v != NULL; v = v->next) {
    const doc_node *content = doc_get(v, "content");
    uint32_t id;
    if (!doc_has_kind(content, DOC_STRING) || content->len == 0 || !doc_id(doc_get(v, "id"), &id))
      return hf_refuse(h, v, "added_tokens", "entry without content and id");
    const bpe_status st = pace_add(&h->in->pace, NODE_WORK, h->in->e);
    if (st != BPE_OK) return st;
    all_late = all_late && (added_flags(h, v) & ENTRY_LATE);
  }
  h->all_late = all_late;
  h->n_vocab = h->in->n_tokens;
  bpe_status st = check_names(h, list, false);
  for (const doc_node *v = list->first; v != NULL && st == BPE_OK; v = v->next) {
    uint32_t id = 0;
    if (doc_id(doc_get(v, "id"), &id)) st = add_token(h, v, doc_get(v, "content"), id);
    if (st == BPE_OK) st = pace_add(&h->in->pace, NODE_WORK, h->in->e);
  }
  return st == BPE_OK ? check_names(h, list, true) : st;
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
