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
  normalizer_free(m->normalizer);
  for (size_t i = 0; i < m->n_names; i++) mem_free(&a, m->names[i].text);
  mem_free(&a, m->names);
  mem_free(&a, m->settings);
  mem_free(&a, m);
}

void bpe_model_info(const bpe_model *m, bpe_info *info) {
  const vocab *v = &m->v;
  *info = (bpe_info){
      .pattern = m->pattern->text,
      .pattern_len = m->pattern->len,
      .pattern_is_regex = m->pattern->is_regex,
      .pattern_is_chain = m->pattern->n_chain != 0,
      .normalizes = m->alters,
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
  uint32_t id = special_id(m->specials, bytes, len, NULL);
  if (id == BPE_NONE && m->added != NULL) id = special_id(m->added, bytes, len, NULL);
  if (id == BPE_NONE) return vocab_find_bytes(v, bytes, len);
  const size_t first = vocab_find_id(v, id);
  size_t i = first; /* of entries that share the id, the one with these bytes */
  while (i < v->n_entries && v->entries[i].id == id &&
         (v->entries[i].len != len || memcmp(vocab_bytes(v, &v->entries[i]), bytes, len) != 0))
    i++;
  return i < v->n_entries && v->entries[i].id == id ? i : first;
}

bpe_merge bpe_model_merge(const bpe_model *m, size_t i) {
  const vocab_merge *x = &m->v.merges[i];
  return (bpe_merge){x->rank, x->left, x->right, x->id, m->v.counts == NULL ? 0 : m->v.counts[i]};
}

bpe_name model_spelling(const bpe_model *m, const vocab_entry *t) {
  size_t low = 0, high = m->n_names;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (m->names[middle].id < t->id) low = middle + 1;
    else high = middle;
  }
  if (low < m->n_names && m->names[low].id == t->id)
    return (bpe_name){m->names[low].text, m->names[low].len};
  return (bpe_name){(const char *)vocab_bytes(&m->v, t), t->len};
}

static bool is_among(const bpe_name *names, size_t n, bpe_name x, pace *p) {
  for (size_t i = 0; i < n && !pace_stopped(p, 2); i++)
    if (names[i].len == x.len && memcmp(names[i].text, x.text, x.len) == 0) return true;
  return false;
}

/* What a finder looks for: names of the caller's, and the model's entries of some kinds. */
typedef struct wanted {
  const bpe_name *names;
  size_t n;
  unsigned kinds; /* mask of 1 << bpe_kind */
  const bpe_name *except;
  size_t n_except;
  bool literal; /* names are looked for as they are spelled, whatever their flags */
} wanted;

static bool is_wanted(const wanted *w, const bpe_model *m, const vocab_entry *t, pace *p) {
  return (w->kinds >> t->kind & 1) && !is_among(w->except, w->n_except, model_spelling(m, t), p);
}

enum { NAME_WORK = 64 }; /* units, of a name besides its bytes */

/* A finder under way: names, and those that are looked for after normalization. */
typedef struct filling {
  bpe_finder *now, *late; /* owned */
  normal_text normal;
  bool any_late;
} filling;

static bpe_status add_name(const bpe_model *m, filling *f, bpe_name x, uint32_t id, unsigned flags,
                           bpe_error *e) {
  if (!(flags & ENTRY_LATE)) return special_add(f->now, x.text, x.len, id, flags, e);
  f->any_late = true;
  if (m->normalizer == NULL) return special_add(f->late, x.text, x.len, id, flags, e);
  const bpe_status st = normal_apply(&f->normal, m->normalizer, (const uint8_t *)x.text, x.len, e);
  if (st != BPE_OK) return st;
  return special_add(f->late, f->normal.text, f->normal.len, id, flags, e);
}

static bpe_status fill_finder(const bpe_model *m, const wanted *w, filling *f, bpe_error *e) {
  const vocab *v = &m->v;
  pace p = pace_of(&m->alloc);
  bpe_status st = BPE_OK;
  for (size_t i = 0; i < w->n && st == BPE_OK; i++) {
    unsigned flags = 0;
    const uint32_t id = special_id(m->specials, w->names[i].text, w->names[i].len, &flags);
    st = add_name(m, f, w->names[i], id, w->literal ? 0 : flags, e);
    if (st == BPE_OK) st = pace_add(&p, NAME_WORK + w->names[i].len, e);
  }
  for (size_t i = 0; i < v->n_named && st == BPE_OK; i++) {
    const vocab_entry *t = &v->entries[v->named[i]];
    if (is_wanted(w, m, t, &p))
      st = add_name(m, f, model_spelling(m, t), t->id, w->literal ? 0 : t->flags, e);
    if (st == BPE_OK) st = pace_add(&p, NAME_WORK + t->len, e);
  }
  return st;
}

static bpe_status make_finder(const bpe_model *m, const wanted *w, bpe_error *e, bpe_finder **out) {
  *out = NULL;
  filling f = {.normal.alloc = m->alloc};
  bpe_status st = special_new(&m->alloc, e, &f.now);
  if (st == BPE_OK) st = special_new(&m->alloc, e, &f.late);
  if (st == BPE_OK) st = fill_finder(m, w, &f, e);
  if (st == BPE_OK) st = special_seal(f.now, e);
  if (st == BPE_OK) st = special_seal(f.late, e);
  normal_clear(&f.normal);
  if (st != BPE_OK) {
    bpe_finder_free(f.now);
    bpe_finder_free(f.late);
    return st;
  }
  if (f.any_late) {
    special_set_late(f.now, f.late);
  } else {
    bpe_finder_free(f.late);
  }
  *out = f.now;
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
    if (special_id(m->specials, names[i].text, names[i].len, NULL) == BPE_NONE)
      return set_error(e, BPE_MISUSE, i, "no such special token: %s",
                       quote_bytes(&q, names[i].text, names[i].len));
  }
  return make_finder(m, &(wanted){.names = names, .n = n, .kinds = 1u << BPE_ADDED}, e, out);
}

bpe_status bpe_finder_new_forbidden(const bpe_model *m, const bpe_name *names, size_t n,
                                    const bpe_name *except, size_t n_except, bpe_error *e,
                                    bpe_finder **out) {
  const wanted given = {.names = names, .n = n, .literal = true};
  const wanted rest = {
      .kinds = 1u << BPE_SPECIAL, .except = except, .n_except = n_except, .literal = true};
  return make_finder(m, names != NULL ? &given : &rest, e, out);
}
