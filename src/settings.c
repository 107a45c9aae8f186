/* settings.c - what a tokenizer is besides entries, merges and pattern, as a JSON object.
**
** One text, canonical: keys in this order, each only where it says something, no white space.
**
**     format       1; the version of all this (not part of the digest)
**     regex        true: the pattern is a regex
**     whole        true: a piece that is a token is emitted whole
**     bos, eos     ids around a document
**     normalizer   the steps of normalize.h, in order
**     characters   true: merging begins with characters
**     strip        n: decoding drops up to n spaces from the start
**     fallback, unused, merging, lstrip, rstrip, word, late
**                  ids of the entries with that flag (vocab.h)
**     names        [[id, "spelling"], ...]: how text spells a special or added token where that
**                  is not its bytes
**
** The digest, the model BLOB and stored tokenizers all use this text. Reading refuses what it does
** not know, so that a later format is never read as an earlier one.
*/
#include "doc.h"
#include "model.h"

enum { FORMAT = 1 };

enum { PART = 1 << 10 }; /* entries after which a quick loop asks */
enum { ROW_WORK = 32 };  /* units, of an id or a name besides its bytes */

typedef struct flag_key {
  const char *key;
  unsigned flag;
} flag_key;

static const flag_key flag_keys[] = {
    {"fallback", ENTRY_FALLBACK}, {"unused", ENTRY_UNUSED}, {"merging", ENTRY_MERGES},
    {"lstrip", ENTRY_LSTRIP},     {"rstrip", ENTRY_RSTRIP}, {"word", ENTRY_WORD},
    {"late", ENTRY_LATE},
};

#define N_FLAG_KEYS (sizeof flag_keys / sizeof *flag_keys)

/* ---- Writing ------------------------------------------------------------------------------- */

static void add(bpe_buffer *b, const char *text) {
  bpe_buffer_append(b, text, strlen(text));
}

static void add_key(bpe_buffer *b, const char *key) {
  if (b->len > 0 && b->bytes[b->len - 1] != '{') add(b, ",");
  add(b, "\"");
  add(b, key);
  add(b, "\":");
}

static void add_ids(bpe_buffer *b, const char *key, const id_list *ids, pace *p) {
  if (ids->n == 0) return;
  add_key(b, key);
  for (size_t i = 0; i < ids->n && !buffer_failed(b, p, ROW_WORK); i++) {
    add(b, i == 0 ? "[" : ",");
    bpe_buffer_append_decimal(b, ids->ids[i]);
  }
  add(b, "]");
}

/* The flags that some entry has. */
static unsigned all_flags(bpe_buffer *b, const vocab *v, pace *p) {
  unsigned flags = 0;
  for (size_t i = 0; i < v->n_entries; i++) {
    if (i % PART == 0 && buffer_failed(b, p, PART)) break;
    flags |= v->entries[i].flags;
  }
  return flags;
}

/* Entries that share an id share its flags: the id stands once. */
static void add_flag(bpe_buffer *b, const vocab *v, const flag_key *f, pace *p) {
  bool any = false;
  for (size_t i = 0; i < v->n_entries; i++) {
    if (i % PART == 0 && buffer_failed(b, p, PART)) return;
    if (!(v->entries[i].flags & f->flag)) continue;
    if (i > 0 && v->entries[i - 1].id == v->entries[i].id) continue;
    if (!any) add_key(b, f->key);
    add(b, any ? "," : "[");
    bpe_buffer_append_decimal(b, v->entries[i].id);
    any = true;
  }
  if (any) add(b, "]");
}

static void add_names(bpe_buffer *b, const bpe_model *m, pace *p) {
  if (m->n_names == 0) return;
  add_key(b, "names");
  for (size_t i = 0; i < m->n_names && !buffer_failed(b, p, ROW_WORK + m->names[i].len); i++) {
    add(b, i == 0 ? "[[" : ",[");
    bpe_buffer_append_decimal(b, m->names[i].id);
    add(b, ",");
    bpe_buffer_append_json(b, m->names[i].text, m->names[i].len);
    add(b, "]");
  }
  add(b, "]");
}

void settings_write(const bpe_model *m, bpe_buffer *b) {
  pace p = pace_of(&m->alloc);
  add(b, "{");
  if (m->pattern->is_regex) add_key(b, "regex"), add(b, "true");
  if (m->v.whole) add_key(b, "whole"), add(b, "true");
  add_ids(b, "bos", &m->bos, &p);
  add_ids(b, "eos", &m->eos, &p);
  if (m->normalizer != NULL) {
    add_key(b, "normalizer");
    normalizer_write(m->normalizer, b);
  }
  if (m->v.chars) add_key(b, "characters"), add(b, "true");
  if (m->strip_left != 0) {
    add_key(b, "strip");
    bpe_buffer_append_decimal(b, m->strip_left);
  }
  const unsigned flags = all_flags(b, &m->v, &p);
  for (size_t i = 0; i < N_FLAG_KEYS; i++)
    if (flags & flag_keys[i].flag) add_flag(b, &m->v, &flag_keys[i], &p);
  add_names(b, m, &p);
  add(b, "}");
}

bpe_status bpe_model_settings(const bpe_model *m, bpe_error *e, bpe_buffer *out) {
  add(out, "{\"format\":");
  bpe_buffer_append_decimal(out, FORMAT);
  if (m->settings_len > 2) add(out, ",");
  bpe_buffer_append(out, m->settings + 1, m->settings_len - 1);
  return buffer_status(out, e);
}

/* ---- Reading ------------------------------------------------------------------------------- */

static const char what[] = "settings";

static bpe_status bad(const doc_node *v, const char *key, bpe_error *e) {
  return set_error(e, BPE_BADMODEL, v->offset, "%s: bad value of %s", what, key);
}

static bpe_status read_bool(const doc_node *root, const char *key, bool *out, bpe_error *e) {
  const doc_node *v = doc_get(root, key);
  if (v == NULL) return BPE_OK;
  if (v->kind != DOC_TRUE && v->kind != DOC_FALSE) return bad(v, key, e);
  *out = v->kind == DOC_TRUE;
  return BPE_OK;
}

/* Calls `each` with every id of a list. */
static bpe_status read_ids(bpe_builder *b, const doc_node *root, const char *key,
                           void (*each)(bpe_builder *, uint32_t id, unsigned flag), unsigned flag,
                           bpe_error *e) {
  const doc_node *list = doc_get(root, key);
  if (list == NULL) return BPE_OK;
  if (list->kind != DOC_ARRAY) return bad(list, key, e);
  pace p = pace_of(builder_alloc(b));
  for (const doc_node *v = list->first; v != NULL; v = v->next) {
    uint32_t id;
    if (!doc_id(v, &id)) return bad(v, key, e);
    each(b, id, flag);
    const bpe_status st = pace_add(&p, ROW_WORK, e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

static void add_bos(bpe_builder *b, uint32_t id, unsigned flag) {
  (void)flag;
  bpe_builder_bos(b, id);
}

static void add_eos(bpe_builder *b, uint32_t id, unsigned flag) {
  (void)flag;
  bpe_builder_eos(b, id);
}

static bpe_status read_names(bpe_builder *b, const doc_node *root, bpe_error *e) {
  const doc_node *list = doc_get(root, "names");
  if (list == NULL) return BPE_OK;
  if (list->kind != DOC_ARRAY) return bad(list, "names", e);
  pace p = pace_of(builder_alloc(b));
  for (const doc_node *v = list->first; v != NULL; v = v->next) {
    uint32_t id;
    if (v->kind != DOC_ARRAY || v->len != 2 || !doc_id(v->first, &id) ||
        !doc_has_kind(v->first->next, DOC_STRING) || v->first->next->len == 0)
      return bad(v, "names", e);
    builder_name(b, id, v->first->next->text, v->first->next->len);
    const bpe_status st = pace_add(&p, ROW_WORK + v->first->next->len, e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

static bpe_status read_step(normalizer *n, const doc_node *v, bpe_error *e) {
  if (doc_is(v, "prefix_space")) return normalizer_add_prefix_space(n, e);
  if (v->kind == DOC_STRING && normalizer_is_form(v->text, v->len))
    return normalizer_add_form(n, v->text, v->len, e);
  const doc_node *x = v->kind == DOC_OBJECT && v->len == 1 ? v->first : NULL;
  if (x != NULL && x == doc_get(v, "prepend") && x->kind == DOC_STRING && x->len > 0)
    return normalizer_add_prepend(n, x->text, x->len, e);
  if (x != NULL && x == doc_get(v, "replace") && x->kind == DOC_ARRAY && x->len == 2) {
    const doc_node *from = x->first, *to = from->next;
    if (from->kind == DOC_STRING && from->len > 0 && to->kind == DOC_STRING)
      return normalizer_add_replace(n, from->text, from->len, to->text, to->len, e);
  }
  return bad(v, "normalizer", e);
}

static bpe_status read_normalizer(bpe_builder *b, const doc_node *root, bpe_error *e) {
  const doc_node *list = doc_get(root, "normalizer");
  if (list == NULL) return BPE_OK;
  if (list->kind != DOC_ARRAY || list->len == 0) return bad(list, "normalizer", e);
  normalizer *n;
  bpe_status st = normalizer_new(builder_alloc(b), e, &n);
  for (const doc_node *v = list->first; v != NULL && st == BPE_OK; v = v->next)
    st = read_step(n, v, e);
  if (st == BPE_OK) builder_normalizer(b, n);
  else normalizer_free(n);
  return st;
}

/* The version comes first: a later format may have keys that are not known here. */
static bpe_status read_format(const doc_node *root, bpe_error *e) {
  uint32_t format;
  const doc_node *v = doc_get(root, "format");
  if (!doc_has_kind(root, DOC_OBJECT))
    return set_error(e, BPE_BADMODEL, 0, "%s: not a JSON object", what);
  if (!doc_id(v, &format) || format == 0)
    return set_error(e, BPE_BADMODEL, 0, "%s: no format", what);
  if (format > FORMAT)
    return set_error(e, BPE_BADMODEL, 0, "%s: format is later than this version's %d: %lu", what,
                     FORMAT, (unsigned long)format);
  return BPE_OK;
}

static bpe_status read_all(bpe_builder *b, const doc_node *root, const char *pattern,
                           size_t pattern_len, bpe_error *e) {
  static const char *const keys[] = {"format",     "regex",      "whole",  "bos",      "eos",
                                     "normalizer", "characters", "strip",  "fallback", "unused",
                                     "merging",    "lstrip",     "rstrip", "word",     "late",
                                     "names",      NULL};
  bool is_regex = false, whole = false, chars = false;
  bpe_status st = read_format(root, e);
  if (st == BPE_OK) st = doc_keys(root, what, keys, e);
  if (st == BPE_OK) st = read_bool(root, "regex", &is_regex, e);
  if (st == BPE_OK) st = read_bool(root, "whole", &whole, e);
  if (st == BPE_OK) st = read_bool(root, "characters", &chars, e);
  if (st == BPE_OK) st = read_ids(b, root, "bos", add_bos, 0, e);
  if (st == BPE_OK) st = read_ids(b, root, "eos", add_eos, 0, e);
  for (size_t i = 0; i < N_FLAG_KEYS && st == BPE_OK; i++)
    st = read_ids(b, root, flag_keys[i].key, builder_flag, flag_keys[i].flag, e);
  if (st == BPE_OK) st = read_names(b, root, e);
  if (st == BPE_OK) st = read_normalizer(b, root, e);
  const doc_node *strip = doc_get(root, "strip");
  uint32_t n = 0;
  if (st == BPE_OK && strip != NULL && !doc_id(strip, &n)) st = bad(strip, "strip", e);
  if (st != BPE_OK) return st;
  if (whole) bpe_builder_whole(b);
  if (chars) builder_chars(b);
  builder_strip_left(b, n);
  bpe_builder_pattern(b, pattern, pattern_len, is_regex);
  return BPE_OK;
}

void bpe_builder_settings(bpe_builder *b, const char *pattern, size_t pattern_len, const char *json,
                          size_t len) {
  if (builder_failed(b)) return;
  doc d;
  if (doc_parse(builder_alloc(b), json, len, what, builder_error(b), &d) == BPE_OK)
    (void)read_all(b, d.root, pattern, pattern_len, builder_error(b));
  doc_clear(&d);
}
