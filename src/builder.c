/* builder.c - collects a description of a tokenizer and makes the model. See bpe.h.
**
** Sticky: the first failure of an append is kept and reported by bpe_builder_finish. Appending
** never looks at what it is given beyond what it needs to store it; vocab_seal judges.
*/
#include "merge.h"
#include "model.h"

/* Entries and slab offsets are 32 bits; the first two leave room for doubling them in tables. No
** token is so long that copying or comparing it would keep anyone waiting. */
enum { MAX_ENTRIES = 1 << 28, MAX_MERGES = 1 << 28, MAX_TOKEN = 1 << 26 };

enum { PART = 1 << 10 }; /* entries after which a quick loop asks */
enum { ROW_WORK = 16 };  /* units, of an entry besides its bytes, of a merge, of a flag */

enum { COPIED = 16 }; /* bytes copied at a time */

/* A flag for the entries of an id, given before or after them. */
typedef struct flag_row {
  uint32_t id;
  unsigned flag;
} flag_row;

struct bpe_builder {
  bpe_model *m; /* owned; under construction */
  bpe_error error;
  flag_row *flags; /* owned */
  size_t n_flags, flags_cap;
  bool vouched, sorted;
  pace pace;
};

bpe_builder *bpe_builder_new(const bpe_alloc *a) {
  bpe_builder *b = mem_zero(a, 1, sizeof *b);
  bpe_model *m = b == NULL ? NULL : mem_zero(a, 1, sizeof *m);
  if (m == NULL) {
    mem_free(a, b);
    return NULL;
  }
  m->alloc = m->v.alloc = *a;
  b->m = m;
  b->pace = pace_of(a);
  b->sorted = true;
  return b;
}

void bpe_builder_free(bpe_builder *b) {
  if (b == NULL) return;
  const bpe_alloc a = b->m->alloc;
  bpe_model_free(b->m);
  mem_free(&a, b->flags);
  mem_free(&a, b);
}

static bool failed(const bpe_builder *b) {
  return b == NULL || b->error.status != BPE_OK;
}

/* A new entry with room for its bytes and COPIED more, which the caller fills in; NULL on
** failure. */
static uint8_t *add_entry(bpe_builder *b, uint32_t id, bpe_kind kind, uint64_t len) {
  vocab *v = &b->m->v;
  if (v->n_entries >= MAX_ENTRIES || len > UINT32_MAX - v->slab_len) {
    set_error(&b->error, BPE_TOOBIG, id, "vocabulary too large");
    return NULL;
  }
  if (len > MAX_TOKEN) {
    set_error(&b->error, BPE_TOOBIG, id, "token is longer than %d bytes: id %lu", MAX_TOKEN,
              (unsigned long)id);
    return NULL;
  }
  if (pace_add(&b->pace, ROW_WORK + (size_t)len / 4, &b->error) != BPE_OK) return NULL;
  const size_t n = (size_t)len;
  if (!mem_grow(&v->alloc, (void **)&v->entries, &v->entries_cap, v->n_entries + 1,
                sizeof *v->entries) ||
      !mem_grow(&v->alloc, (void **)&v->slab, &v->slab_cap, v->slab_len + n + COPIED, 1)) {
    set_nomem(&b->error);
    return NULL;
  }
  if (v->n_entries > 0 && id < v->entries[v->n_entries - 1].id) b->sorted = false;
  v->entries[v->n_entries++] =
      (vocab_entry){id, (uint32_t)v->slab_len, (uint32_t)n, (uint8_t)kind, 0};
  uint8_t *to = v->slab + v->slab_len;
  v->slab_len += n;
  return to;
}

void bpe_builder_token(bpe_builder *b, uint32_t id, bpe_kind kind, const void *bytes, size_t len) {
  if (failed(b)) return;
  if (kind != BPE_TOKEN && len > SPECIAL_MAX) {
    set_error(&b->error, BPE_BADMODEL, id, "special token is longer than %d bytes: id %lu",
              SPECIAL_MAX, (unsigned long)id);
    return;
  }
  uint8_t *to = add_entry(b, id, kind, len);
  if (to != NULL && len != 0) memcpy(to, bytes, len);
}

void bpe_builder_merge(bpe_builder *b, uint32_t rank, uint32_t left, uint32_t right, uint32_t id,
                       uint64_t count) {
  if (failed(b)) return;
  vocab *v = &b->m->v;
  if (v->n_merges >= MAX_MERGES) {
    set_error(&b->error, BPE_TOOBIG, rank, "too many merges");
    return;
  }
  if (pace_add(&b->pace, ROW_WORK, &b->error) != BPE_OK) return;
  const size_t had = v->counts == NULL ? 0 : v->n_merges;
  if (!mem_grow(&v->alloc, (void **)&v->merges, &v->merges_cap, v->n_merges + 1,
                sizeof *v->merges) ||
      ((count != 0 || v->counts != NULL) &&
       !mem_grow(&v->alloc, (void **)&v->counts, &v->counts_cap, v->n_merges + 1,
                 sizeof *v->counts))) {
    set_nomem(&b->error);
    return;
  }
  if (v->counts != NULL) {
    for (size_t i = had; i < v->n_merges && !pace_stopped(&b->pace, 1); i++) v->counts[i] = 0;
    v->counts[v->n_merges] = count;
  }
  v->merges[v->n_merges++] = (vocab_merge){rank, left, right, id};
}

/* The entry of an id among those added so far, which are in order. */
static const vocab_entry *added_entry(const vocab *v, uint32_t id) {
  if (id < v->n_entries && v->entries[id].id == id) return &v->entries[id];
  const size_t i = vocab_find_id(v, id);
  return i != v->n_entries ? &v->entries[i] : NULL;
}

/* Copies within the slab, where COPIED bytes behind `from` and `to` may be read and written. A short
** token goes as a whole block; what that brings too much is overwritten by the next. */
static inline void copy_token(uint8_t *to, const uint8_t *from, size_t len) {
  uint8_t block[COPIED];
  if (len > COPIED) {
    memcpy(to, from, len);
    return;
  }
  memcpy(block, from, COPIED);
  memcpy(to, block, COPIED);
}

void builder_fetch(const bpe_builder *b, uint32_t id) {
  if (id < b->m->v.n_entries) PREFETCH(&b->m->v.entries[id]);
}

void bpe_builder_grow(bpe_builder *b, uint32_t left, uint32_t right, uint32_t id) {
  if (failed(b)) return;
  vocab *v = &b->m->v;
  const vocab_entry *l = added_entry(v, left), *r = added_entry(v, right);
  if (!b->sorted || l == NULL || r == NULL) {
    set_error(&b->error, BPE_BADMODEL, id, "operand is not defined yet: token %lu",
              (unsigned long)id);
    return;
  }
  const vocab_entry x = *l, y = *r; /* adding may move them */
  uint8_t *to = add_entry(b, id, BPE_TOKEN, (uint64_t)x.len + y.len);
  if (to == NULL) return;
  copy_token(to, vocab_bytes(v, &x), x.len);
  copy_token(to + x.len, vocab_bytes(v, &y), y.len);
  bpe_builder_merge(b, (uint32_t)v->n_merges, left, right, id, 0);
}

void bpe_builder_pattern(bpe_builder *b, const char *text, size_t len, bool is_regex) {
  if (failed(b)) return;
  bpe_pattern_free(b->m->pattern);
  const bpe_status st =
      bpe_pattern_new(&b->m->alloc, text, len, is_regex, &b->error, &b->m->pattern);
  if (st == BPE_MISUSE) b->error.status = BPE_BADMODEL;
}

void bpe_builder_whole(bpe_builder *b) {
  if (!failed(b)) b->m->v.whole = true;
}

static void add_id(bpe_builder *b, id_list *list, uint32_t id) {
  if (list->n == BPE_MOST_AROUND) {
    set_error(&b->error, BPE_BADMODEL, id, "more than %d tokens before or after a document",
              BPE_MOST_AROUND);
    return;
  }
  if (!mem_grow(&b->m->alloc, (void **)&list->ids, &list->cap, list->n + 1, sizeof *list->ids))
    set_nomem(&b->error);
  else list->ids[list->n++] = id;
}

void bpe_builder_bos(bpe_builder *b, uint32_t id) {
  if (!failed(b)) add_id(b, &b->m->bos, id);
}

void bpe_builder_eos(bpe_builder *b, uint32_t id) {
  if (!failed(b)) add_id(b, &b->m->eos, id);
}

void bpe_builder_stats(bpe_builder *b, const char *json, size_t len) {
  if (failed(b)) return;
  bpe_model *m = b->m;
  mem_free(&m->alloc, m->stats);
  m->stats_len = 0;
  m->stats = mem_new(&m->alloc, len, 1);
  if (m->stats == NULL) {
    set_nomem(&b->error);
    return;
  }
  if (pace_copy(&b->pace, m->stats, json, len, &b->error) == BPE_OK) m->stats_len = len;
}

void builder_flag(bpe_builder *b, uint32_t id, unsigned flag) {
  if (failed(b) || pace_add(&b->pace, ROW_WORK, &b->error) != BPE_OK) return;
  if (!mem_grow(&b->m->alloc, (void **)&b->flags, &b->flags_cap, b->n_flags + 1, sizeof *b->flags))
    set_nomem(&b->error);
  else b->flags[b->n_flags++] = (flag_row){id, flag};
}

void builder_name(bpe_builder *b, uint32_t id, const char *text, size_t len) {
  if (failed(b)) return;
  bpe_model *m = b->m;
  char *copy = mem_new(&m->alloc, len, 1);
  if (copy == NULL || len > UINT32_MAX ||
      !mem_grow(&m->alloc, (void **)&m->names, &m->names_cap, m->n_names + 1, sizeof *m->names)) {
    mem_free(&m->alloc, copy);
    set_nomem(&b->error);
    return;
  }
  memcpy(copy, text, len);
  m->names[m->n_names++] = (model_name){id, (uint32_t)len, copy};
}

bool builder_is_whole(const bpe_builder *b) {
  return !failed(b) && b->m->v.whole;
}

void builder_chars(bpe_builder *b) {
  if (!failed(b)) b->m->v.chars = true;
}

void builder_strip_left(bpe_builder *b, uint32_t n) {
  if (!failed(b)) b->m->strip_left = n;
}

void builder_normalizer(bpe_builder *b, normalizer *n) {
  if (failed(b)) {
    normalizer_free(n);
    return;
  }
  normalizer_free(b->m->normalizer);
  b->m->normalizer = n;
}

bpe_error *builder_error(bpe_builder *b) {
  return &b->error;
}

const bpe_alloc *builder_alloc(const bpe_builder *b) {
  return &b->m->alloc;
}

bool builder_failed(const bpe_builder *b) {
  return failed(b);
}

void builder_reserve(bpe_builder *b, size_t n, size_t bytes) {
  if (failed(b)) return;
  vocab *v = &b->m->v;
  if (!mem_grow(&v->alloc, (void **)&v->entries, &v->entries_cap, n, sizeof *v->entries) ||
      !mem_grow(&v->alloc, (void **)&v->merges, &v->merges_cap, n, sizeof *v->merges) ||
      !mem_grow(&v->alloc, (void **)&v->slab, &v->slab_cap, bytes, 1)) {
    set_nomem(&b->error);
    return;
  }
  mem_all_used(v->entries, n * sizeof *v->entries);
  mem_all_used(v->merges, n * sizeof *v->merges);
}

void builder_vouch(bpe_builder *b) {
  if (!failed(b)) b->vouched = true;
}

/* Finds out which tokens, taken as one piece, merge to themselves. */
static bpe_status mark_direct(vocab *v, bool all, pace *p, bpe_error *e) {
  merge_scratch scratch = {.alloc = v->alloc, .stop = v->alloc.stop, .stop_ctx = v->alloc.ctx};
  bpe_status st = BPE_OK;
  for (size_t i = 0; i < v->n_entries && st == BPE_OK; i++) {
    const vocab_entry *t = &v->entries[i];
    if (!entry_merges(t) || (t->flags & ENTRY_UNUSED)) continue;
    size_t n = 0;
    if (!all) st = merge_piece(v, &scratch, vocab_bytes(v, t), t->len, &n, e);
    if (all || (n == 1 && scratch.ids[0] == t->id)) v->direct[i / 64] |= UINT64_C(1) << i % 64;
    if (st == BPE_OK && !all) st = pace_add(p, ROW_WORK * (size_t)t->len, e);
    if (i % PART == 0 && pace_stopped(p, PART)) st = set_stopped(e);
  }
  merge_scratch_clear(&scratch);
  return st;
}

static bpe_status check_wrapping(const bpe_model *m, const id_list *list, const char *what, pace *p,
                                 bpe_error *e) {
  for (size_t i = 0; i < list->n && !pace_stopped(p, ROW_WORK); i++)
    if (vocab_find_id(&m->v, list->ids[i]) == m->v.n_entries)
      return set_error(e, BPE_BADMODEL, i, "%s is no token: id %lu", what,
                       (unsigned long)list->ids[i]);
  return pace_add(p, 1, e);
}

static int compare_ids(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

static int compare_names(const void *a, const void *b) {
  return compare_ids(&((const model_name *)a)->id, &((const model_name *)b)->id);
}

static bpe_status bad_flag(uint32_t id, const char *why, bpe_error *e) {
  return set_error(e, BPE_BADMODEL, id, "%s: id %lu", why, (unsigned long)id);
}

/* Whether an entry may have a flag: which flags are for which kinds. */
static bpe_status check_flag(const vocab *v, const vocab_entry *t, unsigned flag, bpe_error *e) {
  const unsigned token_flags = ENTRY_FALLBACK | ENTRY_UNUSED;
  if ((t->kind == BPE_TOKEN) != ((flag & token_flags) != 0))
    return bad_flag(t->id, "flag is not for this kind of token", e);
  if ((flag & ENTRY_FALLBACK) && (t->len != 1 || !v->chars))
    return bad_flag(t->id, "fallback is for single bytes beside characters", e);
  return BPE_OK;
}

/* Hands the flags to their entries, which come to be in order of id. */
static bpe_status set_flags(vocab *v, const flag_row *rows, size_t n, pace *p, bpe_error *e) {
  if (n == 0) return BPE_OK;
  const bpe_status sorted = vocab_sort(v, p, e);
  if (sorted != BPE_OK) return sorted;
  for (size_t i = 0; i < n; i++) {
    size_t at = vocab_find_id(v, rows[i].id);
    if (at == v->n_entries) return bad_flag(rows[i].id, "flag is for no token", e);
    if (v->entries[at].flags & rows[i].flag) continue; /* and so has each that shares the id */
    for (; at < v->n_entries && v->entries[at].id == rows[i].id; at++) {
      bpe_status st = check_flag(v, &v->entries[at], rows[i].flag, e);
      if (st == BPE_OK) st = pace_add(p, ROW_WORK, e);
      if (st != BPE_OK) return st;
      v->entries[at].flags |= (uint8_t)rows[i].flag;
    }
  }
  return BPE_OK;
}

static bpe_status set_names(bpe_model *m, pace *p, bpe_error *e) {
  bpe_status st = pace_sort(p, &m->alloc, m->names, m->n_names, sizeof *m->names, compare_names, e);
  for (size_t i = 0; i < m->n_names && st == BPE_OK; i++) {
    const uint32_t id = m->names[i].id;
    const size_t at = vocab_find_id(&m->v, id);
    if (at == m->v.n_entries || m->v.entries[at].kind == BPE_TOKEN)
      return bad_flag(id, "name is for no special token", e);
    if (i > 0 && m->names[i - 1].id == id) return bad_flag(id, "two names for one token", e);
    st = pace_add(p, ROW_WORK, e);
  }
  return st;
}

static bpe_status keep_settings(bpe_model *m, bpe_error *e) {
  bpe_buffer text;
  bpe_buffer_init(&text, &m->alloc, 0);
  settings_write(m, &text);
  const bpe_status st = buffer_status(&text, e);
  if (st != BPE_OK) {
    bpe_buffer_clear(&text);
    return st;
  }
  m->settings = (char *)text.bytes;
  m->settings_len = text.len;
  return BPE_OK;
}

static bpe_status finish(bpe_builder *b, bpe_error *e) {
  bpe_model *m = b->m;
  if (m->pattern == NULL) return set_error(e, BPE_BADMODEL, 0, "no pattern");
  pace *const p = &b->pace;
  bpe_status st = set_flags(&m->v, b->flags, b->n_flags, p, e);
  m->v.vouched = b->vouched;
  if (st == BPE_OK) st = vocab_seal(&m->v, e);
  if (st == BPE_OK) st = set_names(m, p, e);
  if (st == BPE_OK) st = mark_direct(&m->v, b->vouched || m->v.whole, p, e);
  if (st == BPE_OK) st = check_wrapping(m, &m->bos, "BOS", p, e);
  if (st == BPE_OK) st = check_wrapping(m, &m->eos, "EOS", p, e);
  if (st == BPE_OK) st = model_finder(m, 1u << BPE_SPECIAL, e, &m->specials);
  bool any_added = false;
  for (size_t i = 0; i < m->v.n_named && st == BPE_OK && !any_added; i++)
    any_added = m->v.entries[m->v.named[i]].kind == BPE_ADDED;
  if (st == BPE_OK && any_added) st = model_finder(m, 1u << BPE_ADDED, e, &m->added);
  if (st == BPE_OK) st = keep_settings(m, e);
  if (st != BPE_OK) return st;
  const unsigned altering = ENTRY_LSTRIP | ENTRY_RSTRIP | ENTRY_WORD | ENTRY_LATE;
  m->alters = m->normalizer != NULL || m->n_names != 0 || m->strip_left != 0 ||
              (m->v.any_flags & altering) != 0;
  for (int c = 0; c < 256; c++) m->lacks_bytes |= m->v.byte_ids[c] == BPE_NONE;
  return pace_add(p, 1, e);
}

bpe_status bpe_builder_finish(bpe_builder *b, bpe_error *e, bpe_model **out) {
  *out = NULL;
  if (b == NULL) return set_nomem(e);
  bpe_status st = b->error.status;
  if (st != BPE_OK) {
    if (e != NULL && e->status == BPE_OK) *e = b->error;
  } else {
    st = finish(b, e);
  }
  if (st == BPE_OK) {
    const bpe_alloc a = b->m->alloc;
    *out = b->m;
    mem_free(&a, b->flags);
    mem_free(&a, b);
  } else {
    bpe_builder_free(b);
  }
  return st;
}
