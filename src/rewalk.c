/* rewalk.c - see rewalk.h. */
#include "rewalk.h"

#include "utf8.h"

#include <string.h>

enum {
  LONG_PIECE = USUALLY(1024, 32), /* bytes from which a piece is kept, or where it ends */
  STOP_INTERVAL = 1 << 16,        /* bytes between two questions to stop */
  ID_WORK = 8                     /* units, of a look at the token of an id */
};

static const bpe_pattern *pattern_of(const bpe_model *m, const bpe_walk_options *o) {
  return o->pattern != NULL ? o->pattern : m->pattern;
}

bool rewalk_is_plain(const bpe_model *m, const bpe_walk_options *o) {
  return !m->alters && pattern_of(m, o)->n_chain == 0 &&
         special_is_plain(o->allowed != NULL ? o->allowed : m->added);
}

bpe_status rewalk_init(rewalk *r, bpe_coder *c, const bpe_walk_options *o, const long_piece *known,
                       bpe_error *e) {
  const bpe_model *m = bpe_coder_model(c);
  r->coder = c;
  r->alloc = m->alloc;
  r->options = (bpe_walk_options){
      .allowed = o->allowed, .pattern = o->pattern, .stop = o->stop, .stop_ctx = o->stop_ctx};
  r->finder = o->allowed != NULL ? o->allowed : m->added;
  r->pattern = pattern_of(m, o);
  r->known = known != NULL ? known : &r->own;
  split_set_stop(&r->split, o->stop, o->stop_ctx);
  r->plain = rewalk_is_plain(m, o);
  if (r->plain) return BPE_OK;
  if (special_is_blind(r->finder)) return stretch_init(&r->left, c, &r->options, e);
  return bpe_walk_new(c, e, &r->walk);
}

void rewalk_clear(rewalk *r) {
  const bpe_alloc a = r->alloc;
  if (r->coder == NULL) return;
  bpe_walk_free(r->walk);
  stretch_clear(&r->left);
  split_clear(&r->split);
  mem_free(&a, r->own.ids);
  mem_free(&a, r->own.ends);
  memset(r, 0, sizeof *r);
}

/* Begins what is left of a stretch. */
static bpe_status begin_left(rewalk *r, size_t from, bpe_error *e) {
  r->base = r->at = from;
  return stretch_start(&r->left, r->text, from, r->special.start, e);
}

static bpe_status begin_stretch(rewalk *r, size_t from, bpe_error *e) {
  r->stretch = from;
  r->special = (special_match){r->stop, 0, BPE_NONE};
  if (r->finder != NULL) {
    const bpe_status st = special_find(r->finder, r->text, from, r->stop, r->options.stop,
                                       r->options.stop_ctx, e, &r->special);
    if (st != BPE_OK) return st;
  }
  if (!r->plain) return begin_left(r, from, e);
  return split_start(&r->split, r->pattern, r->text, from, r->special.start, e);
}

static bpe_status begin(rewalk *r, size_t from, bpe_error *e) {
  r->at = from;
  if (r->walk == NULL) return begin_stretch(r, from, e);
  r->base = from;
  walk_set_origin(r->walk, from);
  return bpe_walk_start(r->walk, r->text + from, r->stop - from, &r->options, e);
}

bpe_status rewalk_start(rewalk *r, const uint8_t *text, size_t len, size_t from, size_t to,
                        bpe_error *e) {
  r->text = text;
  r->len = len;
  r->stop = to;
  r->found = r->inner = (scan_found){0};
  stretch_forget(&r->left);
  return begin(r, from, e);
}

/* Moves the splitter to `at`, in its stretch, keeping the ends found already where that is one. */
static void move_split(splitter *sp, size_t at) {
  sp->match_start = sp->match_stop = at; /* a match that began before is none of this text */
  if (at < sp->well_start || at > sp->well_end) {
    sp->at = sp->base = sp->well_start = sp->well_end = at;
    sp->next = sp->n = 0;
    return;
  }
  sp->well_start = at;
  sp->at = at;
  size_t i = sp->n;
  if (sp->pattern->regex != NULL) { /* it may have looked at what is before `at` */
    sp->base = at;
    sp->next = sp->n = 0;
    return;
  }
  while (i > 0 && sp->base + sp->ends[i - 1] > at) i--;
  if (sp->n > 0 && (i > 0 ? sp->base + sp->ends[i - 1] == at : sp->base == at)) {
    sp->next = i;
  } else {
    sp->base = at;
    sp->next = sp->n = 0;
  }
}

bpe_status rewalk_seek(rewalk *r, size_t at, bpe_error *e) {
  if (r->walk != NULL || at < r->stretch || at > r->special.start) return begin(r, at, e);
  if (!r->plain) return begin_left(r, at, e);
  r->at = at;
  move_split(&r->split, at);
  return BPE_OK;
}

/* Index of the token that ends at `at` in a kept piece, plus one; 0 where the piece begins; n + 1
** if no token ends there. */
static size_t tokens_up_to(const long_piece *k, size_t at) {
  if (at == k->start) return 0;
  size_t low = 0, high = k->n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (k->ends[middle] < at) low = middle + 1;
    else high = middle;
  }
  return low < k->n && k->ends[low] == at ? low + 1 : k->n + 1;
}

bool rewalk_find_known(const long_piece *k, bpe_piece *p, const size_t **ends) {
  if (k->start == k->stop || p->start < k->start || p->stop > k->stop) return false;
  const size_t first = tokens_up_to(k, p->start), end = tokens_up_to(k, p->stop);
  if (first > k->n || end > k->n) return false;
  p->ids = k->ids + first;
  p->n_ids = end - first;
  *ends = k->ends + first;
  return true;
}

static bpe_status keep(rewalk *r, const bpe_piece *p, bpe_error *e) {
  const vocab *v = &bpe_coder_model(r->coder)->v;
  long_piece *k = &r->own;
  k->start = k->stop = 0;
  if (!mem_grow(&r->alloc, (void **)&k->ids, &k->ids_cap, p->n_ids, sizeof *k->ids) ||
      !mem_grow(&r->alloc, (void **)&k->ends, &k->ends_cap, p->n_ids, sizeof *k->ends))
    return set_nomem(e);
  pace work = {.stop = r->options.stop, .ctx = r->options.stop_ctx};
  size_t at = p->start;
  for (size_t i = 0; i < p->n_ids; i++) {
    const bpe_status st = pace_add(&work, ID_WORK, e);
    if (st != BPE_OK) return st;
    k->ids[i] = p->ids[i];
    at += v->entries[vocab_find_id(v, p->ids[i])].len;
    k->ends[i] = at;
  }
  k->n = p->n_ids;
  k->start = p->start;
  k->stop = p->stop;
  return BPE_OK;
}

/* Keeps where a long piece ends that was just gone through. */
static bpe_status note_end(rewalk *r, size_t start, size_t stop, bpe_error *e) {
  if (stop - start <= LONG_PIECE || r->pattern->scan == NULL || r->known != &r->own) return BPE_OK;
  pace work = {.stop = r->options.stop, .ctx = r->options.stop_ctx};
  const scan_found f = scan_long(r->text, start, stop, &work);
  if (work.stopped) return set_stopped(e);
  if (start > r->found.start && stop < r->found.stop) {
    r->inner = f;
  } else {
    r->found = f;
    r->inner = (scan_found){0};
  }
  return BPE_OK;
}

/* Whether the piece at the splitter's place, inside f, ends where f does. */
static bool ends_with(rewalk *r, const scan_found *f) {
  splitter *sp = &r->split;
  if (sp->at <= f->start || sp->at >= f->stop) return false;
  if (utf8_length(r->text + f->start, r->stop - f->start) == 0) { /* a malformed run */
    sp->well_start = sp->well_end = f->stop;
    return true;
  }
  return sp->at < sp->well_end && f->stop <= sp->well_end &&
         scan_same_end(r->pattern->scan, r->text, f, sp->at, sp->well_end);
}

/* Where the walk has gone back into a long piece: finds the end of what is left of it without going
** through it again, if that is where the long piece ends. */
static bool find_end(rewalk *r) {
  splitter *sp = &r->split;
  if (sp->next < sp->n || r->pattern->scan == NULL) return false;
  const scan_found *f = ends_with(r, &r->inner) ? &r->inner : &r->found;
  if (f == &r->found && !ends_with(r, f)) return false;
  sp->base = sp->at;
  sp->ends[0] = f->stop - sp->at;
  sp->next = 0;
  sp->n = 1;
  return true;
}

static bpe_status piece_of(rewalk *r, size_t start, size_t stop, bpe_piece *p, bpe_error *e) {
  const size_t longest = bpe_coder_model(r->coder)->v.longest;
  const size_t *ends;
  *p = (bpe_piece){.start = start, .stop = stop};
  const bool is_long = stop - start > LONG_PIECE && stop - start > longest;
  if (is_long && rewalk_find_known(r->known, p, &ends)) return BPE_OK;
  const bpe_status st = coder_piece(r->coder, r->text, r->len, &r->options, p, e);
  return st == BPE_OK && is_long && r->known == &r->own ? keep(r, p, e) : st;
}

static bpe_status next_of_walk(rewalk *r, bpe_piece *p, bpe_error *e) {
  const bpe_status st = bpe_walk_next(r->walk, p, e);
  p->start += r->base;
  p->stop += r->base;
  return st;
}

/* The next piece before `special`. */
static bpe_status next_of_stretch(rewalk *r, bpe_piece *p, bpe_error *e) {
  if (!r->plain) return stretch_next(&r->left, p, e);
  const size_t start = r->split.at;
  if (start == r->split.end) return BPE_DONE;
  const bool known = find_end(r);
  bpe_status st = split_next(&r->split, e);
  if (st == BPE_OK && !known) st = note_end(r, start, r->split.at, e);
  return st == BPE_OK ? piece_of(r, start, r->split.at, p, e) : st;
}

static bpe_status next_special(rewalk *r, bpe_piece *p, bpe_error *e) {
  const size_t start = r->special.start, stop = start + r->special.len;
  static const uint32_t none = 0;
  if (start == r->stop) return BPE_DONE;
  /* Which token it is, no window asks. */
  *p = (bpe_piece){.start = start, .stop = stop, .ids = &none, .n_ids = 1, .special = true};
  return begin_stretch(r, stop, e);
}

bpe_status rewalk_next(rewalk *r, bpe_piece *p, bpe_error *e) {
  if (r->walk != NULL) return next_of_walk(r, p, e);
  bpe_status st = next_of_stretch(r, p, e);
  if (st == BPE_DONE) st = next_special(r, p, e);
  if (st == BPE_OK && r->options.stop != NULL) {
    r->asked += p->stop - p->start;
    if (r->asked >= STOP_INTERVAL) {
      r->asked = 0;
      if (r->options.stop(r->options.stop_ctx)) st = set_stopped_at(e, p->stop);
    }
  }
  return st;
}
