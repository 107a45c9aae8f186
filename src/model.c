/* model.c - what a model says about itself, and the finders made from its tokens. */
#include "model.h"

void bpe_model_free(bpe_model *m) {
  if (m == NULL) return;
  const bpe_alloc a = m->alloc;
  vocab_clear(&m->v);
  bpe_pattern_free(m->pattern);
  bpe_finder_free(m->specials);
  bpe_finder_free(m->added);
  mem_free(&a, m->bos.ids);
  mem_free(&a, m->eos.ids);
  mem_free(&a, m->stats);
  mem_free(&a, m);
}

void bpe_model_info(const bpe_model *m, bpe_info *info) {
  const vocab *v = &m->v;
  *info = (bpe_info){
      .pattern = m->pattern->text,
      .pattern_len = m->pattern->len,
      .pattern_is_regex = m->pattern->is_regex,
      .whole = v->whole,
      .vocab_size = v->n_entries == 0 ? 0 : v->entries[v->n_entries - 1].id + 1,
      .token_count = v->n_ids,
      .entry_count = v->n_entries,
      .merge_count = v->n_merges,
      .longest = v->longest,
      .bos = m->bos.ids,
      .eos = m->eos.ids,
      .n_bos = m->bos.n,
      .n_eos = m->eos.n,
      .stats = m->stats,
      .stats_len = m->stats_len,
  };
}

bpe_token bpe_model_token(const bpe_model *m, size_t i) {
  const vocab_entry *t = &m->v.entries[i];
  return (bpe_token){t->id, (bpe_kind)t->kind, vocab_bytes(&m->v, t), t->len};
}

size_t bpe_model_find_id(const bpe_model *m, uint32_t id) {
  return vocab_find_id(&m->v, id);
}

size_t bpe_model_find_bytes(const bpe_model *m, const void *bytes, size_t len) {
  const vocab *v = &m->v;
  uint32_t id = special_id(m->specials, bytes, len);
  if (id == BPE_NONE && m->added != NULL) id = special_id(m->added, bytes, len);
  if (id == BPE_NONE) return vocab_find_bytes(v, bytes, len);
  size_t i = vocab_find_id(v, id); /* of entries that share the id, the one with these bytes */
  while (v->entries[i].len != len || memcmp(vocab_bytes(v, &v->entries[i]), bytes, len) != 0) i++;
  return i;
}

bpe_merge bpe_model_merge(const bpe_model *m, size_t i) {
  const vocab_merge *x = &m->v.merges[i];
  return (bpe_merge){x->rank, x->left, x->right, x->id,
                     m->v.counts == NULL ? 0 : m->v.counts[i]};
}

static bool is_among(const bpe_name *names, size_t n, const vocab *v, const vocab_entry *t) {
  for (size_t i = 0; i < n; i++)
    if (names[i].len == t->len && memcmp(names[i].text, vocab_bytes(v, t), t->len) == 0)
      return true;
  return false;
}

/* What a finder looks for: names of the caller's, and the model's entries of some kinds. */
typedef struct wanted {
  const bpe_name *names;
  size_t n;
  unsigned kinds; /* mask of 1 << bpe_kind */
  const bpe_name *except;
  size_t n_except;
} wanted;

static bool is_wanted(const wanted *w, const vocab *v, const vocab_entry *t) {
  return (w->kinds >> t->kind & 1) && !is_among(w->except, w->n_except, v, t);
}

static bpe_status fill_finder(const bpe_model *m, const wanted *w, bpe_finder *f, bpe_error *e) {
  const vocab *v = &m->v;
  bpe_status st = BPE_OK;
  for (size_t i = 0; i < w->n && st == BPE_OK; i++)
    st = special_add(f, w->names[i].text, w->names[i].len,
                     special_id(m->specials, w->names[i].text, w->names[i].len), e);
  for (size_t i = 0; i < v->n_entries && st == BPE_OK; i++) {
    const vocab_entry *t = &v->entries[i];
    if (is_wanted(w, v, t)) st = special_add(f, vocab_bytes(v, t), t->len, t->id, e);
  }
  return st;
}

static bpe_status make_finder(const bpe_model *m, const wanted *w, bpe_error *e,
                              bpe_finder **out) {
  *out = NULL;
  const vocab *v = &m->v;
  size_t n = w->n, bytes = 0;
  for (size_t i = 0; i < w->n; i++)
    if (!size_add(bytes, w->names[i].len, &bytes)) return set_nomem(e);
  for (size_t i = 0; i < v->n_entries; i++) {
    if (!is_wanted(w, v, &v->entries[i])) continue;
    n++;
    bytes += v->entries[i].len;
  }
  bpe_finder *f;
  bpe_status st = special_new(&m->alloc, n, bytes, e, &f);
  if (st == BPE_OK) st = fill_finder(m, w, f, e);
  if (st != BPE_OK) {
    bpe_finder_free(f);
    return st;
  }
  special_seal(f);
  *out = f;
  return BPE_OK;
}

bpe_status model_finder(const bpe_model *m, unsigned kinds, bpe_error *e, bpe_finder **out) {
  return make_finder(m, &(wanted){.kinds = kinds}, e, out);
}

bpe_status bpe_finder_new(const bpe_model *m, const bpe_name *names, size_t n, bpe_error *e,
                          bpe_finder **out) {
  *out = NULL;
  if (names == NULL) return model_finder(m, 1u << BPE_SPECIAL | 1u << BPE_ADDED, e, out);
  for (size_t i = 0; i < n; i++) {
    quoted q;
    if (special_id(m->specials, names[i].text, names[i].len) == BPE_NONE)
      return set_error(e, BPE_MISUSE, i, "no such special token: %s",
                       quote_bytes(&q, names[i].text, names[i].len));
  }
  return make_finder(m, &(wanted){.names = names, .n = n, .kinds = 1u << BPE_ADDED}, e, out);
}

bpe_status bpe_finder_new_forbidden(const bpe_model *m, const bpe_name *names, size_t n,
                                    const bpe_name *except, size_t n_except, bpe_error *e,
                                    bpe_finder **out) {
  const wanted given = {.names = names, .n = n};
  const wanted rest = {.kinds = 1u << BPE_SPECIAL, .except = except, .n_except = n_except};
  return make_finder(m, names != NULL ? &given : &rest, e, out);
}
