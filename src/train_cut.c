/* train_cut.c - a trained tokenizer cut down to a smaller vocabulary.
**
** The first k merges of a training are what training to k merges gives. What the ids look like is
** read off the model: 256 single bytes in one run of ids, merges whose results rise from one by
** one in the order they were learned, special tokens in one run before, between or behind, and of
** these alone BOS and EOS. Each token, taken as one piece, merges to itself, and nothing else is
** said of any token or of the text. Any other model was not made by training and is refused. Where
** training ended early, because nothing was left to merge, all sizes up to the one asked for then
** give the model as it is. The stats go along: they are those of the training, whose size is added
** as cut_from, once, however often its result is cut.
**
**     specials | bytes | merges         bytes | merges | specials
**     the same   the same   the first k              the first k, specials moved down
*/
#include "doc.h"
#include "model.h"

typedef struct shape {
  uint32_t n_specials, n_merges;
  uint32_t specials, merges; /* first id of each; the bytes' is 0 or n_specials */
} shape;

static bool is_run(const vocab *v, bpe_kind kind, uint32_t from, uint32_t n, pace *p) {
  for (uint32_t i = 0; i < n && !pace_stopped(p, 2); i++)
    if (v->entries[from + i].kind != kind) return false;
  return true;
}

/* Whether tokens say more than their bytes and kind, or text is changed: no training makes that. */
static bool has_extras(const bpe_model *m) {
  return m->alters || m->v.any_flags != 0 || m->v.chars || m->v.whole;
}

static bool are_specials(const id_list *list, const shape *s) {
  for (size_t i = 0; i < list->n; i++)
    if (list->ids[i] < s->specials || list->ids[i] - s->specials >= s->n_specials) return false;
  return true;
}

/* Every id has one entry, and the kinds stand as training puts them. */
static bool find_shape(const bpe_model *m, shape *s, pace *p) {
  const vocab *v = &m->v;
  if (has_extras(m) || v->n_entries != v->n_dense || v->n_entries < 256 + v->n_merges) return false;
  const uint32_t n = (uint32_t)v->n_entries, merges = (uint32_t)v->n_merges;
  *s = (shape){.n_specials = n - 256 - merges, .n_merges = merges};
  const uint32_t first = v->entries[0].kind == BPE_SPECIAL ? s->n_specials : 0;
  const bool between = first == 0 && n > 256 && v->entries[256].kind == BPE_SPECIAL && merges > 0 &&
                       v->entries[n - 1].kind == BPE_TOKEN;
  s->merges = first + 256 + (between ? s->n_specials : 0);
  s->specials = first != 0 ? 0 : between ? 256 : 256 + merges;
  if (!is_run(v, BPE_TOKEN, first, 256, p) || !is_run(v, BPE_TOKEN, s->merges, merges, p) ||
      !is_run(v, BPE_SPECIAL, s->specials, s->n_specials, p) || !are_specials(&m->bos, s) ||
      !are_specials(&m->eos, s))
    return false;
  for (uint32_t i = 0; i < 256; i++)
    if (v->entries[first + i].len != 1 || !vocab_direct(v, first + i)) return false;
  for (uint32_t r = 0; r < merges && !pace_stopped(p, 4); r++) {
    const vocab_merge *x = &v->merges[r];
    if (x->id != s->merges + r || x->left >= x->id || x->right >= x->id || !vocab_direct(v, x->id))
      return false;
  }
  return true;
}

/* What the figures of a training tell. Text that is no JSON object tells nothing. */
typedef struct figures {
  bool any, empty; /* there is an object; it has no keys */
  bool cut;        /* it tells already of the size before the first cut, which is to stay */
  uint32_t wanted; /* merges the training was to make: those there are, unless it tells of more */
} figures;

static bpe_status read_figures(const bpe_model *m, uint32_t n_merges, figures *f, bpe_error *e) {
  bpe_error own = {.status = BPE_OK};
  uint32_t made, wanted;
  doc d;
  *f = (figures){.wanted = n_merges};
  if (m->stats == NULL) return BPE_OK;
  const bpe_status st = doc_parse(&m->alloc, m->stats, m->stats_len, "stats", &own, &d);
  if (st == BPE_OK && doc_has_kind(d.root, DOC_OBJECT)) {
    f->any = true;
    f->empty = d.root->first == NULL;
    f->cut = doc_get(d.root, "cut_from") != NULL;
    if (!f->cut && doc_id(doc_get(d.root, "merges"), &made) && made == n_merges &&
        doc_id(doc_get(d.root, "merges_wanted"), &wanted) && wanted > n_merges)
      f->wanted = wanted;
  }
  doc_clear(&d);
  return st == BPE_OK || st == BPE_BADMODEL ? BPE_OK : set_error(e, st, 0, "%s", own.text);
}

/* The figures of the whole training, marked with the size that it had. */
static bpe_status mark_figures(const bpe_model *m, bool empty, bpe_builder *to, bpe_error *e) {
  const char *const rest = (const char *)memchr(m->stats, '{', m->stats_len) + 1;
  bpe_buffer b;
  bpe_buffer_init(&b, &m->alloc, 0);
  bpe_buffer_append(&b, "{\"cut_from\":", 12);
  bpe_buffer_append_decimal(&b, m->v.n_entries);
  if (!empty) bpe_buffer_append(&b, ",", 1);
  bpe_buffer_append(&b, rest, m->stats_len - (size_t)(rest - m->stats));
  const bpe_status st = buffer_status(&b, e);
  if (st == BPE_OK) bpe_builder_stats(to, (const char *)b.bytes, b.len);
  bpe_buffer_clear(&b);
  return st;
}

bpe_status bpe_model_cut(const bpe_model *m, uint32_t vocab_size, bpe_error *e, bpe_model **out) {
  *out = NULL;
  const vocab *v = &m->v;
  shape s;
  pace p = pace_of(&m->alloc);
  const bool trained = find_shape(m, &s, &p);
  if (p.stopped) return set_stopped(e);
  if (!trained) return set_error(e, BPE_MISUSE, 0, "only a trained tokenizer can be cut to a size");
  figures f;
  bpe_status st = read_figures(m, s.n_merges, &f, e);
  if (st != BPE_OK) return st;
  const uint64_t least = 256 + (uint64_t)s.n_specials, most = least + f.wanted;
  if (vocab_size < least || vocab_size > most)
    return set_error(e, BPE_MISUSE, 0, "vocab_size is not in %llu to %llu: %lu",
                     (unsigned long long)least, (unsigned long long)most,
                     (unsigned long)vocab_size);
  if (vocab_size > v->n_entries) vocab_size = (uint32_t)v->n_entries;
  const uint32_t n = vocab_size - 256 - s.n_specials, gone = s.n_merges - n;
  const uint32_t specials_move = s.specials > s.merges ? gone : 0;
  bpe_builder *to = bpe_builder_new(&m->alloc);
  if (to == NULL) return set_nomem(e);
  builder_vouch(to);
  bpe_builder_pattern(to, m->pattern->text, m->pattern->len, m->pattern->is_regex);
  for (uint32_t i = 0; i < v->n_entries && !builder_failed(to); i++) {
    const vocab_entry *x = &v->entries[i];
    if (i >= s.merges + n && i < s.merges + s.n_merges) continue;
    bpe_builder_token(to, x->kind == BPE_SPECIAL ? i - specials_move : i, (bpe_kind)x->kind,
                      vocab_bytes(v, x), x->len);
  }
  for (uint32_t r = 0; r < n && !builder_failed(to); r++) {
    const bpe_merge x = bpe_model_merge(m, r);
    bpe_builder_merge(to, r, x.left, x.right, x.id, x.count);
  }
  for (size_t i = 0; i < m->bos.n; i++) bpe_builder_bos(to, m->bos.ids[i] - specials_move);
  for (size_t i = 0; i < m->eos.n; i++) bpe_builder_eos(to, m->eos.ids[i] - specials_move);
  if (gone > 0 && f.any && !f.cut) st = mark_figures(m, f.empty, to, e);
  else if (m->stats != NULL) bpe_builder_stats(to, m->stats, m->stats_len);
  if (st != BPE_OK) {
    bpe_builder_free(to);
    return st;
  }
  return bpe_builder_finish(to, e, out);
}
