/* encode.c - the one walk: special tokens, pieces, ids. Counting, encoding and token rows are
** loops over it.
**
**     text      "Hi <|endoftext|>there"
**     special_find    finds          |<|endoftext|>|        when the caller allows it
**     split_next      |Hi| |                        |there|
**     piece_ids       [13347] [220]  [100257]       [19041]
**
** Where a tokenizer normalizes, the stretch between two special tokens is normalized first, and
** names that are looked for only then (late ones) cut it once more; `base` is the text that is
** being split, the source or the normalized stretch, and what goes out is in places of the source.
**
** piece_ids looks a piece up in the coder's table of pieces seen before, then among the tokens,
** and merges it only if it is in neither. Counting and encoding a whole text do the first for a
** batch of pieces at a time (pieces.h), and counting then looks at no ids.
*/
#include "encode.h"

#include "form_wide.h"
#include "unseen.h"

enum {
  PIECE_BYTES = USUALLY(1 << 22, 1 << 16), /* of the table of pieces, unless said otherwise */
  STOP_INTERVAL = 1 << 16,                 /* bytes of text between two questions to stop */
  IDS_PER_RESERVE = 1024,
  MOST_EXPECTED = 1 << 16, /* bytes of text whose ids have room made for them at first */
  ID_WORK = 8              /* units, of a look at the token of an id */
};

enum phase { PHASE_BOS, PHASE_TEXT, PHASE_EOS, PHASE_DONE };

struct bpe_walk {
  bpe_coder *coder;
  const uint8_t *text;
  size_t len;
  bpe_walk_options options;
  const bpe_finder *finder; /* allowed specials and added tokens; NULL: there are none */
  splitter split;           /* of the stretch before `special`, or before `late` inside it */
  special_match special;    /* the next one; start == len: none */
  const uint8_t *base;      /* what is split: text, or a normalized stretch of it */
  size_t base_len;
  piece_text pieces;             /* of base */
  size_t base_start, base_stop;  /* of the stretch, in base */
  const bpe_finder *late_finder; /* NULL: nothing is looked for in base */
  special_match late;            /* the next there; start == base_stop: none */
  bool mapped;                   /* base is not text: places go through `normal` */
  size_t done;                   /* mapped: the text up to here is in pieces */
  normal_text normal;
  size_t normal_from; /* where the normalized stretch begins in text */
  size_t *stops;      /* owned; of the tokens of the last mapped piece */
  size_t stops_cap;
  enum phase phase;
  size_t asked;  /* text position at the last question to stop */
  size_t origin; /* of the text in the one that errors speak of */
};

struct bpe_coder {
  const bpe_model *model;
  bpe_alloc alloc;
  piece_table pieces;
  piece_batch batch;
  unseen unseen; /* of the batch, or, when counting, of several */
  merge_scratch merge;
  uint32_t one;            /* the id of a piece that is a token */
  uint32_t few[UINT8_MAX]; /* ids from the table of pieces */
  bpe_walk walk;           /* that of bpe_count and bpe_encode_* */
};

/* ---- Coder -------------------------------------------------------------------------------- */

bpe_status bpe_coder_new(const bpe_model *m, size_t piece_bytes, bpe_error *e, bpe_coder **out) {
  *out = NULL;
  bpe_coder *c = mem_zero(&m->alloc, 1, sizeof *c);
  if (c == NULL) return set_nomem(e);
  c->model = m;
  c->alloc = c->merge.alloc = m->alloc;
  c->walk.coder = c;
  c->walk.normal.alloc = m->alloc;
  if (!pieces_init(&c->pieces, &m->alloc, &m->v, piece_bytes == 0 ? PIECE_BYTES : piece_bytes) ||
      !unseen_init(&c->unseen, &m->alloc, &m->v)) {
    bpe_coder_free(c);
    return set_nomem(e);
  }
  *out = c;
  return BPE_OK;
}

void bpe_coder_free(bpe_coder *c) {
  if (c == NULL) return;
  const bpe_alloc a = c->alloc;
  split_clear(&c->walk.split);
  normal_clear(&c->walk.normal);
  mem_free(&a, c->walk.stops);
  merge_scratch_clear(&c->merge);
  pieces_clear(&c->pieces);
  unseen_clear(&c->unseen, &a);
  mem_free(&a, c);
}

const bpe_model *bpe_coder_model(const bpe_coder *c) {
  return c->model;
}

void bpe_coder_stat(const bpe_coder *c, bpe_coder_stats *out) {
  const merge_scratch *m = &c->merge;
  *out = (bpe_coder_stats){
      .piece_slots = c->pieces.n_lines * PIECES_WAYS,
      .piece_bytes = pieces_bytes(&c->pieces),
      .scratch_bytes = (m->ids_cap + m->window_cap + m->last_cap) * sizeof(uint32_t),
  };
}

/* ---- One piece ----------------------------------------------------------------------------- */

/* Ids of a piece that is not in the table. */
static bpe_status merge_or_find(bpe_coder *c, piece_key k, const uint8_t *s, size_t len,
                                const uint32_t **ids, size_t *n, bpe_error *e) {
  const vocab *v = &c->model->v;
  if (len <= v->longest) {
    const size_t at = vocab_find_key(v, k, s, len);
    if (at != v->n_entries && vocab_direct(v, at)) {
      c->one = v->entries[at].id;
      *ids = &c->one;
      *n = 1;
      return BPE_OK;
    }
  }
  const bpe_status st = merge_piece(v, &c->merge, s, len, n, e);
  *ids = c->merge.ids;
  return st;
}

/* The ids of a value, unpacked, or NULL. */
static const uint32_t *kept_ids(bpe_coder *c, uint32_t value) {
  if (!pieces_has_ids(value)) return NULL;
  const uint8_t *ids = pieces_ids(&c->pieces, value);
  const size_t n = pieces_count(value);
  c->few[0] = pieces_first_id(&c->pieces, value, ids);
  for (size_t i = 1; i < n; i++) c->few[i] = kept_id(&c->pieces, ids, n, i);
  return c->few;
}

/* The ids of a piece, from wherever they are to be had. Without `keep`, *ids may be NULL: only
** *n counts. */
static bpe_status piece_ids(bpe_coder *c, const piece_text *x, size_t at, size_t len, bool keep,
                            const uint32_t **ids, size_t *n, bpe_error *e) {
  const piece_key k = pieces_key(x, at, len);
  const uint32_t value = pieces_find(&c->pieces, x, k, at, len);
  if (value != 0) {
    *ids = keep ? kept_ids(c, value) : NULL;
    *n = pieces_count(value);
    if (*ids != NULL || !keep) return BPE_OK;
  }
  const bpe_status st = merge_or_find(c, k, x->bytes + at, len, ids, n, e);
  if (st != BPE_OK) return st;
  for (size_t i = 0; c->model->lacks_bytes && i < *n; i++)
    if ((*ids)[i] == BPE_NONE) return BPE_OK; /* an error every time, never in the table */
  pieces_add(&c->pieces, k, x->bytes + at, len, *ids, *n, keep);
  return BPE_OK;
}

/* The place in text of a place in base; what ends a mapped base ends the stretch. */
static size_t place_in_text(bpe_walk *w, size_t at) {
  if (!w->mapped) return at;
  return at == w->base_stop ? w->special.start : w->normal_from + normal_source(&w->normal, at);
}

/* A model without some bytes: the first id that is none is an error naming its byte. `at`: start
** of the piece in base; w: NULL, or the walk whose base that is. */
static bpe_status check_bytes(const vocab *v, const uint8_t *base, size_t at, const bpe_piece *p,
                              const bpe_walk_options *o, bpe_walk *w, bpe_error *e) {
  pace work = {.stop = o->stop, .ctx = o->stop_ctx};
  for (size_t i = 0; i < p->n_ids; i++) {
    if (pace_stopped(&work, ID_WORK)) return set_stopped_at(e, at);
    if (p->ids[i] == BPE_NONE) {
      const size_t place = w == NULL ? at : w->origin + place_in_text(w, at);
      return set_error(e, BPE_BADTEXT, place, "no token for the byte at %zu: 0x%02x", place,
                       base[at]);
    }
    at += v->entries[vocab_find_id(v, p->ids[i])].len;
  }
  return BPE_OK;
}

bpe_status coder_piece(bpe_coder *c, const uint8_t *text, size_t len, const bpe_walk_options *o,
                       bpe_piece *p, bpe_error *e) {
  c->merge.stop = o->stop;
  c->merge.stop_ctx = o->stop_ctx;
  piece_text x;
  piece_text_init(&x, text, len);
  const bpe_status st = piece_ids(c, &x, p->start, p->stop - p->start, true, &p->ids, &p->n_ids, e);
  if (st != BPE_OK || !c->model->lacks_bytes) return st;
  return check_bytes(&c->model->v, text, p->start, p, o, NULL, e);
}

/* ---- The walk ------------------------------------------------------------------------------- */

bpe_status bpe_walk_new(bpe_coder *c, bpe_error *e, bpe_walk **out) {
  *out = NULL;
  bpe_walk *w = mem_zero(&c->alloc, 1, sizeof *w);
  if (w == NULL) return set_nomem(e);
  w->coder = c;
  w->normal.alloc = c->alloc;
  w->phase = PHASE_DONE;
  *out = w;
  return BPE_OK;
}

void bpe_walk_free(bpe_walk *w) {
  if (w == NULL) return;
  const bpe_alloc a = w->coder->alloc;
  split_clear(&w->split);
  normal_clear(&w->normal);
  mem_free(&a, w->stops);
  mem_free(&a, w);
}

/* Looks for the next late name in base, to which the stretch is a text of its own, and begins to
** split what comes before it. */
static bpe_status begin_split(bpe_walk *w, size_t from, bpe_error *e) {
  w->late = (special_match){w->base_stop, 0, BPE_NONE};
  if (w->late_finder != NULL) {
    const size_t start = w->base_start;
    const bpe_status st =
        special_find(w->late_finder, w->base + start, from - start, w->base_stop - start,
                     w->options.stop, w->options.stop_ctx, e, &w->late);
    if (st != BPE_OK) return st;
    w->late.start += start;
  }
  const bpe_pattern *p = w->options.pattern;
  return split_start(&w->split, p != NULL ? p : w->coder->model->pattern, w->base, from,
                     w->late.start, e);
}

/* Looks for the next special token and begins the stretch before it. */
static bpe_status begin_stretch(bpe_walk *w, size_t from, bpe_error *e) {
  bpe_status st = BPE_OK;
  w->special = (special_match){w->len, 0, BPE_NONE};
  if (w->finder != NULL)
    st = special_find(w->finder, w->text, from, w->len, w->options.stop, w->options.stop_ctx, e,
                      &w->special);
  if (st != BPE_OK) return st;
  w->base = w->text;
  w->base_len = w->len;
  w->base_start = from;
  w->base_stop = w->special.start;
  w->mapped = false;
  piece_text_init(&w->pieces, w->base, w->base_len);
  const normalizer *n = w->coder->model->normalizer;
  if (n == NULL) return begin_split(w, from, e);
  st = normal_apply(&w->normal, n, w->text + from, w->special.start - from, e);
  if (st != BPE_OK) return st;
  if (!w->normal.changed) return begin_split(w, from, e);
  w->mapped = true;
  w->normal_from = w->done = from;
  w->base = w->normal.text;
  w->base_start = 0;
  w->base_len = w->base_stop = w->normal.len;
  piece_text_init(&w->pieces, w->base, w->base_len);
  return begin_split(w, 0, e);
}

/* Turns the piece base[start .. stop) into one of text, and says where its tokens end there. */
static bpe_status map_piece(bpe_walk *w, size_t start, size_t stop, bpe_piece *p, bpe_error *e) {
  const vocab *v = &w->coder->model->v;
  if (!mem_grow(&w->coder->alloc, (void **)&w->stops, &w->stops_cap, p->n_ids, sizeof *w->stops))
    return set_nomem(e);
  for (size_t i = 0; i < p->n_ids; i++) {
    const bpe_status st = pace_add(&w->normal.pace, ID_WORK, e);
    if (st != BPE_OK) return st;
    start += v->entries[vocab_find_id(v, p->ids[i])].len;
    w->stops[i] = place_in_text(w, p->special ? stop : start);
  }
  p->start = w->done;
  p->stop = w->done = place_in_text(w, stop);
  if (p->n_ids != 0) p->stops = w->stops;
  return pace_add(&w->normal.pace, 0, e);
}

bpe_status bpe_walk_start(bpe_walk *w, const void *text, size_t len, const bpe_walk_options *o,
                          bpe_error *e) {
  const bpe_model *m = w->coder->model;
  w->text = w->base = text;
  w->len = w->base_len = len;
  w->options = o != NULL ? *o : (bpe_walk_options){0};
  w->finder = w->options.allowed != NULL ? w->options.allowed : m->added;
  w->late_finder = w->finder == NULL ? NULL : special_late(w->finder);
  w->asked = 0;
  w->phase = PHASE_DONE; /* until everything below went well */
  split_set_stop(&w->split, w->options.stop, w->options.stop_ctx);
  w->normal.stop = w->options.stop;
  w->normal.stop_ctx = w->options.stop_ctx;
  if (w->options.document && m->bos.n + m->eos.n == 0)
    return set_error(e, BPE_MISUSE, 0, "tokenizer has no BOS or EOS tokens");
  if (w->options.forbidden != NULL) {
    special_match f;
    quoted q;
    const bpe_status st = special_find(w->options.forbidden, w->text, 0, len, w->options.stop,
                                       w->options.stop_ctx, e, &f);
    if (st != BPE_OK) return st;
    if (f.start != len)
      return set_error(e, BPE_BADTEXT, f.start, "special token not allowed at byte %zu: %s",
                       f.start, quote_bytes(&q, w->text + f.start, f.len));
  }
  const bpe_status st = begin_stretch(w, 0, e);
  if (st == BPE_OK) w->phase = w->options.document ? PHASE_BOS : PHASE_TEXT;
  return st;
}

/* The tokens before or after a document, as one piece of no bytes. */
static bpe_piece wrapping(const id_list *list, size_t at) {
  return (bpe_piece){.start = at, .stop = at, .ids = list->ids, .n_ids = list->n, .special = true};
}

static bpe_status next_piece(bpe_walk *w, bpe_piece *p, bpe_error *e) {
  bpe_coder *c = w->coder;
  const size_t start = w->split.at;
  bpe_status st = split_next(&w->split, e);
  if (st != BPE_OK) return st;
  *p = (bpe_piece){.start = start, .stop = w->split.at};
  if (!w->options.split_only) {
    c->merge.stop = w->options.stop;
    c->merge.stop_ctx = w->options.stop_ctx;
    st = piece_ids(c, &w->pieces, start, p->stop - start, true, &p->ids, &p->n_ids, e);
    if (st == BPE_OK && c->model->lacks_bytes)
      st = check_bytes(&c->model->v, w->base, start, p, &w->options, w, e);
  }
  if (st == BPE_OK && w->mapped) st = map_piece(w, start, p->stop, p, e);
  return st;
}

/* Asks whether to stop, if the piece that ends at `at` makes enough text since the last time. */
static bpe_status ask(bpe_walk *w, size_t at, bpe_error *e) {
  if (w->options.stop == NULL || at - w->asked < STOP_INTERVAL) return BPE_OK;
  w->asked = at;
  return w->options.stop(w->options.stop_ctx) ? set_stopped_at(e, at) : BPE_OK;
}

static bpe_piece special_piece(bpe_walk *w, size_t start, size_t stop, uint32_t id) {
  w->coder->one = id;
  return (bpe_piece){.start = start,
                     .stop = stop,
                     .ids = &w->coder->one,
                     .n_ids = w->options.split_only ? 0 : 1,
                     .special = true};
}

static bpe_status next_special(bpe_walk *w, bpe_piece *p, bpe_error *e) {
  const size_t start = w->special.start, stop = start + w->special.len;
  *p = special_piece(w, start, stop, w->special.id);
  return begin_stretch(w, stop, e);
}

static bpe_status next_late(bpe_walk *w, bpe_piece *p, bpe_error *e) {
  const size_t start = w->late.start, stop = start + w->late.len;
  *p = special_piece(w, start, stop, w->late.id);
  bpe_status st = w->mapped ? map_piece(w, start, stop, p, e) : BPE_OK;
  if (st == BPE_OK) st = begin_split(w, stop, e);
  return st;
}

bpe_status bpe_walk_next(bpe_walk *w, bpe_piece *p, bpe_error *e) {
  const bpe_model *m = w->coder->model;
  bpe_status st = BPE_OK;
  *p = (bpe_piece){0};
  if (w->phase == PHASE_BOS) {
    w->phase = PHASE_TEXT;
    if (w->options.document && m->bos.n != 0) {
      *p = wrapping(&m->bos, 0);
      return BPE_OK;
    }
  }
  if (w->phase == PHASE_TEXT) {
    if (w->split.at < w->split.end) st = next_piece(w, p, e);
    else if (w->late.start < w->base_stop) st = next_late(w, p, e);
    else if (w->special.start < w->len) st = next_special(w, p, e);
    else w->phase = PHASE_EOS;
    if (st == BPE_OK && w->phase == PHASE_TEXT) st = ask(w, p->stop, e);
    if (st != BPE_OK) {
      *p = (bpe_piece){0};
      w->phase = PHASE_DONE;
    }
    if (w->phase != PHASE_EOS) return st;
  }
  if (w->phase == PHASE_EOS) {
    w->phase = PHASE_DONE;
    if (w->options.document && m->eos.n != 0) {
      *p = wrapping(&m->eos, w->len);
      return BPE_OK;
    }
  }
  return BPE_DONE;
}

/* ---- A walk over the start of a longer text ------------------------------------------------- */

walk_base walk_get_base(const bpe_walk *w) {
  return (walk_base){w->base + w->base_start, w->base_stop - w->base_start};
}

size_t walk_base_place(const bpe_walk *w, size_t at) {
  return w->mapped ? normal_place(&w->normal, at) : at;
}

size_t walk_base_at(const bpe_walk *w) {
  return w->split.at - w->base_start;
}

void walk_set_origin(bpe_walk *w, size_t origin) {
  w->origin = origin;
}

/* ---- Many pieces -------------------------------------------------------------------------- */

/* The next pieces can be taken by the batch: there are some, they need no work of their own, and
** none can fail in a way that must name the first place. */
static bool has_batches(const bpe_walk *w) {
  return w->phase == PHASE_TEXT && w->split.at < w->split.end && !w->options.split_only &&
         !w->coder->model->lacks_bytes;
}

/* Finds the next pieces and looks them up. *n: the ids of those found. */
static bpe_status next_batch(bpe_walk *w, uint64_t *n, bpe_error *e) {
  splitter *sp = &w->split;
  bpe_coder *c = w->coder;
  piece_batch *b = &c->batch;
  b->n = 0;
  do {
    if (sp->next == sp->n) {
      const bpe_status st = split_fill(sp, e);
      if (st != BPE_OK) return st;
    }
    pieces_collect(&c->pieces, b, &w->pieces, sp->at, sp->base, sp->ends + sp->next,
                   sp->n - sp->next);
    sp->at = sp->base + sp->ends[sp->n - 1];
    sp->next = sp->n;
  } while (sp->at < sp->end && b->n + SPLIT_BATCH <= PIECES_BATCH);
  c->merge.stop = w->options.stop;
  c->merge.stop_ctx = w->options.stop_ctx;
  *n = pieces_lookup(&c->pieces, b);
  return BPE_OK;
}

/* Settles what was noted while counting; *sum grows by its ids. */
static bpe_status count_unseen(bpe_walk *w, uint64_t *sum, bpe_error *e) {
  bpe_coder *c = w->coder;
  unseen *u = &c->unseen;
  bpe_status st = BPE_OK;
  *sum += unseen_settle(u, &c->pieces, NULL);
  unseen_keep(u, &c->pieces, false);
  for (size_t k = 0; k < u->n_left && st == BPE_OK; k++) {
    const unseen_piece *p = &u->pieces[u->left[k]];
    const uint32_t *ids;
    size_t n = 0;
    st = piece_ids(c, &w->pieces, (size_t)(p->s - w->base), p->len, false, &ids, &n, e);
    *sum += n;
  }
  return st;
}

/* Counts what is left of the stretch, or until there are more than `most`. No ids are touched. */
static bpe_status count_stretch(bpe_walk *w, uint64_t most, uint64_t *sum, bpe_error *e) {
  bpe_coder *c = w->coder;
  bpe_status st = BPE_OK;
  c->unseen.n = 0;
  while (st == BPE_OK && w->split.at < w->split.end && *sum <= most) {
    uint64_t found;
    if ((st = next_batch(w, &found, e)) != BPE_OK) break;
    *sum += found;
    if (c->batch.n_missed != 0) unseen_note(&c->unseen, &c->pieces, &c->batch);
    if (unseen_full(&c->unseen)) st = count_unseen(w, sum, e);
    if (w->mapped) w->done = place_in_text(w, w->split.at);
    if (st == BPE_OK) st = pace_add(&w->normal.pace, 0, e);
    if (st == BPE_OK) st = ask(w, w->mapped ? w->done : w->split.at, e);
  }
  return st == BPE_OK && c->unseen.n != 0 ? count_unseen(w, sum, e) : st;
}

/* ---- Whole texts -------------------------------------------------------------------------- */

/* Counts a text whose walk has begun, or until there are more than `most`. */
static bpe_status count_walk(bpe_walk *w, uint64_t most, bpe_error *e, uint64_t *sum) {
  bpe_status st = BPE_OK;
  bpe_piece p;
  while (st == BPE_OK && *sum <= most) {
    if (has_batches(w)) st = count_stretch(w, most, sum, e);
    if (st == BPE_OK && *sum <= most && (st = bpe_walk_next(w, &p, e)) == BPE_OK) *sum += p.n_ids;
  }
  return st == BPE_DONE ? BPE_OK : st;
}

bpe_status bpe_count(bpe_coder *c, const void *text, size_t len, const bpe_walk_options *o,
                     bpe_error *e, uint64_t *n) {
  *n = 0;
  uint64_t sum = 0;
  bpe_status st = bpe_walk_start(&c->walk, text, len, o, e);
  if (st == BPE_OK) st = count_walk(&c->walk, UINT64_MAX, e, &sum);
  if (st == BPE_OK) *n = sum;
  return st;
}

/* Whether the length of the text decides: every token has a byte, and at most v->longest. */
static bool length_decides(const bpe_walk *w, uint64_t room, bool *fits) {
  const bpe_model *m = w->coder->model;
  *fits = w->len <= room;
  if (m->lacks_bytes || m->normalizer != NULL || !special_is_plain(w->finder)) return false;
  return *fits || (w->len - 1) / m->v.longest >= room;
}

bpe_status bpe_fits(bpe_coder *c, const void *text, size_t len, const bpe_walk_options *o,
                    uint64_t most, bpe_error *e, bool *fits) {
  *fits = false;
  const bpe_model *m = c->model;
  const uint64_t wraps = o != NULL && o->document ? m->bos.n + m->eos.n : 0;
  bpe_status st = bpe_walk_start(&c->walk, text, len, o, e);
  if (st != BPE_OK || wraps > most) return st;
  if (length_decides(&c->walk, most - wraps, fits)) return BPE_OK;
  *fits = false;
  uint64_t sum = 0;
  st = count_walk(&c->walk, most, e, &sum);
  if (st == BPE_OK) *fits = sum <= most;
  return st;
}

/* ---- Encoding ----------------------------------------------------------------------------- */

static bpe_status too_wide(size_t at, uint32_t id, bpe_error *e) {
  return set_error(e, BPE_TOOBIG, at, "id does not fit in 16 bits: %lu", (unsigned long)id);
}

/* Appends any number of ids, of a piece at `at`. */
static ALWAYS_INLINE bpe_status append_ids(form f, const bpe_walk *w, size_t at,
                                           const uint32_t *ids, size_t n, bpe_buffer *out,
                                           bpe_error *e) {
  pace p = {.stop = w->options.stop, .ctx = w->options.stop_ctx};
  for (size_t i = 0; i < n;) {
    if (i != 0 && pace_stopped(&p, (size_t)IDS_PER_RESERVE * 4)) return set_stopped_at(e, at);
    const size_t stop = n - i < IDS_PER_RESERVE ? n : i + IDS_PER_RESERVE;
    uint8_t *const start = bpe_buffer_reserve(out, (stop - i) * most_bytes[f] + FORM_SLACK);
    if (start == NULL) return buffer_status(out, e);
    uint8_t *to = start;
    for (; i < stop; i++) {
      to = write_id(f, to, ids[i]);
      if (to == NULL) return too_wide(at, ids[i], e);
    }
    bpe_buffer_commit(out, (size_t)(to - start));
  }
  return buffer_status(out, e);
}

/* Finds the ids of the batch's pieces that the table did not have; returns the number of them. */
static NEVER_INLINE uint64_t resolve_batch(bpe_coder *c) {
  c->unseen.n = 0;
  unseen_note(&c->unseen, &c->pieces, &c->batch);
  return unseen_settle(&c->unseen, &c->pieces, &c->batch);
}

/* Appends the ids of a piece of the batch that has no ids among the values. */
static ALWAYS_INLINE bpe_status append_piece(form f, bpe_walk *w, size_t i, bpe_buffer *out,
                                             bpe_error *e) {
  bpe_coder *c = w->coder;
  const piece_batch *b = &c->batch;
  const size_t at = (size_t)(b->probes[i].start - w->base);
  const merge_job *job = b->values[i] == 0 ? unseen_job(&c->unseen, i) : NULL;
  if (job != NULL) return append_ids(f, w, at, job->ids, job->n, out, e);
  const uint32_t *ids;
  size_t n;
  const bpe_status st = piece_ids(c, &w->pieces, at, piece_length(b, i), true, &ids, &n, e);
  return st == BPE_OK ? append_ids(f, w, at, ids, n, out, e) : st;
}

/* Appends the ids of a batch. Keeping a piece may void the values of those behind it. */
static ALWAYS_INLINE bpe_status append_batch(form f, bpe_walk *w, uint64_t found, bpe_buffer *out,
                                             bpe_error *e) {
  bpe_coder *c = w->coder;
  const piece_batch *b = &c->batch;
  const uint32_t n_dropped = c->pieces.n_dropped;
  if (b->n_missed != 0) found += resolve_batch(c);
  bpe_status st = BPE_OK;
  for (size_t i = 0; st == BPE_OK; i++) {
    uint8_t *const to = bpe_buffer_reserve(out, (size_t)found * most_bytes[f] + FORM_SLACK);
    if (to == NULL) break;
    if (c->pieces.n_dropped == n_dropped)
      bpe_buffer_commit(out, (size_t)(write_run(f, &c->pieces, b, &i, to, (size_t)found) - to));
    if (i == b->n) break;
    st = append_piece(f, w, i, out, e);
  }
  if (b->n_missed != 0) unseen_keep(&c->unseen, &c->pieces, true);
  return st == BPE_OK ? buffer_status(out, e) : st;
}

static ALWAYS_INLINE bpe_status encode(form f, bpe_coder *c, const void *text, size_t len,
                                       const bpe_walk_options *o, bpe_error *e, bpe_buffer *out) {
  bpe_piece p;
  bpe_walk *w = &c->walk;
  bpe_status st = bpe_walk_start(w, text, len, o, e);
  const size_t about = len < MOST_EXPECTED ? len : MOST_EXPECTED;
  if (st == BPE_OK) bpe_buffer_reserve(out, about * usual_bytes[f] / 4 + (size_t)2 * FORM_SLACK);
  while (st == BPE_OK) {
    while (has_batches(w) && !w->mapped && st == BPE_OK) {
      uint64_t found;
      st = next_batch(w, &found, e);
      if (st == BPE_OK) st = append_batch(f, w, found, out, e);
      if (st == BPE_OK) st = ask(w, w->split.at, e);
    }
    if (st == BPE_OK && (st = bpe_walk_next(w, &p, e)) == BPE_OK)
      st = append_ids(f, w, p.start, p.ids, p.n_ids, out, e);
  }
  return st == BPE_DONE ? BPE_OK : st;
}

bpe_status bpe_encode_json(bpe_coder *c, const void *text, size_t len, const bpe_walk_options *o,
                           bpe_error *e, bpe_buffer *out) {
  bpe_buffer_append(out, "[", 1);
  const size_t open = out->len;
  const bpe_status st = encode(FORM_JSON, c, text, len, o, e, out);
  if (st != BPE_OK) return st;
  if (out->len > open) out->bytes[out->len - 1] = ']'; /* over the last comma */
  else bpe_buffer_append(out, "]", 1);
  return buffer_status(out, e);
}

bpe_status bpe_encode_packed(bpe_coder *c, const void *text, size_t len, int width,
                             const bpe_walk_options *o, bpe_error *e, bpe_buffer *out) {
  if (width == 16) return encode(FORM_16, c, text, len, o, e, out);
  if (width == 32) return encode(FORM_32, c, text, len, o, e, out);
  return set_error(e, BPE_MISUSE, 0, "width must be 16 or 32: %d", width);
}
