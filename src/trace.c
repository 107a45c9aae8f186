/* trace.c - the merges of each piece of a text, one row for each run of merges of the same pair.
**
** The encoder looks pieces up and merges long ones in windows; the trace takes the definition's
** way, so that what it shows is why: of the adjacent pairs the lowest rank, leftmost first.
**
**     a a b a a b      step 0: the bytes
**     X b X b          step 1: a a -> X, 2 replacements
**     Y Y              step 2: X b -> Y, 2 replacements
**
** A run ends when a merge of another pair comes first: one of lower rank that the run itself has
** made, or one of the same rank further left. One pass over the piece finds a run and carries it
** out, so a step costs what its row holds, and nothing is done before it is asked for.
*/
#include "encode.h"

#include <string.h>

enum { ID_WORK = 8, STEP_WORK = 64 }; /* units, of a look at an id's token, and of a step */

struct bpe_trace {
  bpe_walk *walk; /* owned */
  bpe_coder *coder;
  bpe_alloc alloc;
  const uint8_t *text;
  uint32_t *ids, *rank, *to; /* owned; rank and result of ids[i] with ids[i + 1] */
  size_t n, ids_cap, rank_cap, to_cap;
  uint32_t *before; /* owned */
  size_t before_cap;
  uint8_t *bytes; /* owned; of a piece that is not as it stands in the text */
  size_t bytes_cap;
  uint32_t whole; /* the token that the piece is taken for whole; BPE_NONE: it is merged */
  bool begun;     /* there is a piece */
  bpe_step step;
  pace pace; /* of the steps */
};

bpe_status bpe_trace_new(bpe_coder *c, bpe_error *e, bpe_trace **out) {
  *out = NULL;
  const bpe_alloc a = bpe_coder_model(c)->alloc;
  bpe_trace *t = mem_zero(&a, 1, sizeof *t);
  if (t == NULL) return set_nomem(e);
  t->alloc = a;
  t->coder = c;
  const bpe_status st = bpe_walk_new(c, e, &t->walk);
  if (st != BPE_OK) {
    bpe_trace_free(t);
    return st;
  }
  *out = t;
  return BPE_OK;
}

void bpe_trace_free(bpe_trace *t) {
  if (t == NULL) return;
  const bpe_alloc a = t->alloc;
  bpe_walk_free(t->walk);
  mem_free(&a, t->ids);
  mem_free(&a, t->rank);
  mem_free(&a, t->to);
  mem_free(&a, t->before);
  mem_free(&a, t->bytes);
  mem_free(&a, t);
}

bpe_status bpe_trace_start(bpe_trace *t, const void *text, size_t len, const bpe_walk_options *o,
                           bpe_error *e) {
  t->text = text;
  t->begun = false;
  t->step = (bpe_step){0};
  t->pace = o != NULL ? (pace){.stop = o->stop, .ctx = o->stop_ctx} : (pace){.stop = NULL};
  return bpe_walk_start(t->walk, text, len, o, e);
}

static bool make_room(bpe_trace *t, size_t n) {
  return mem_grow(&t->alloc, (void **)&t->ids, &t->ids_cap, n, sizeof *t->ids) &&
         mem_grow(&t->alloc, (void **)&t->rank, &t->rank_cap, n, sizeof *t->rank) &&
         mem_grow(&t->alloc, (void **)&t->to, &t->to_cap, n, sizeof *t->to) &&
         mem_grow(&t->alloc, (void **)&t->before, &t->before_cap, n, sizeof *t->before);
}

/* The bytes that are merged: those of the text, or of the tokens where the text was changed. */
static bpe_status piece_bytes(bpe_trace *t, const bpe_piece *p, const uint8_t **s, size_t *len,
                              bpe_error *e) {
  const vocab *v = &bpe_coder_model(t->coder)->v;
  *s = t->text + p->start;
  *len = p->stop - p->start;
  if (p->stops == NULL) return BPE_OK;
  *len = 0;
  for (size_t i = 0; i < p->n_ids && !pace_stopped(&t->pace, ID_WORK); i++)
    *len += v->entries[vocab_find_id(v, p->ids[i])].len;
  if (!mem_grow(&t->alloc, (void **)&t->bytes, &t->bytes_cap, *len, 1)) return set_nomem(e);
  size_t at = 0;
  for (size_t i = 0; i < p->n_ids && !pace_stopped(&t->pace, ID_WORK); i++) {
    const vocab_entry *x = &v->entries[vocab_find_id(v, p->ids[i])];
    memcpy(t->bytes + at, vocab_bytes(v, x), x->len);
    at += x->len;
  }
  *s = t->bytes;
  return pace_add(&t->pace, 0, e);
}

/* Step 0 of the next piece, which a walk has read: where merging begins. */
static bpe_status begin_piece(bpe_trace *t, const bpe_piece *p, bpe_error *e) {
  const vocab *v = &bpe_coder_model(t->coder)->v;
  const uint8_t *s = NULL;
  size_t len = p->n_ids;
  t->whole = BPE_NONE;
  if (!p->special) {
    const bpe_status st = piece_bytes(t, p, &s, &len, e);
    if (st != BPE_OK) return st;
    if (v->whole && p->n_ids == 1 && vocab_find_bytes(v, s, len) != v->n_entries)
      t->whole = p->ids[0];
  }
  if (!make_room(t, len)) return set_nomem(e);
  if (p->special) {
    memcpy(t->ids, p->ids, len * sizeof *t->ids);
    for (size_t i = 0; i < len; i++) t->rank[i] = BPE_NONE;
    t->n = len;
  } else {
    t->n = merge_start(v, s, len, t->ids, t->rank, t->to, &t->pace);
  }
  const bpe_status begun = pace_add(&t->pace, 0, e);
  if (begun != BPE_OK) return begun;
  t->step = (bpe_step){.piece = t->begun ? t->step.piece + 1 : 0,
                       .start = p->start,
                       .stop = p->stop,
                       .rank = BPE_NONE,
                       .left = BPE_NONE,
                       .right = BPE_NONE,
                       .id = BPE_NONE,
                       .after = t->ids,
                       .n_after = t->n};
  t->begun = true;
  return BPE_OK;
}

/* Place of the lowest rank, leftmost first; n if there is no pair left. */
static size_t least_pair(bpe_trace *t) {
  size_t at = t->n;
  uint32_t least = BPE_NONE;
  for (size_t i = 0; i + 1 < t->n && !pace_stopped(&t->pace, 1); i++) {
    if (t->rank[i] >= least) continue;
    least = t->rank[i];
    at = i;
  }
  return at;
}

/* Ranks the pairs that ids[w], just merged, makes with its neighbours, the right one being ids[k].
** True: one of them comes before the pair of this run, whose rank is `rank`. */
static bool rank_neighbours(bpe_trace *t, size_t w, size_t k, uint32_t rank) {
  const vocab *v = &bpe_coder_model(t->coder)->v;
  bool sooner = false;
  if (w > 0) {
    t->rank[w - 1] = pair_map_find(&v->pairs, t->ids[w - 1], t->ids[w], &t->to[w - 1]);
    sooner = t->rank[w - 1] <= rank;
  }
  t->rank[w] = BPE_NONE;
  if (k < t->n) {
    t->rank[w] = pair_map_find(&v->pairs, t->ids[w], t->ids[k], &t->to[w]);
    sooner = sooner || t->rank[w] <= rank;
  }
  return sooner;
}

/* Carries out the run of merges that begins at `at`, moving what is behind it to the left. */
static void merge_run(bpe_trace *t, size_t at) {
  const uint32_t rank = t->rank[at], left = t->ids[at], right = t->ids[at + 1], id = t->to[at];
  uint64_t replacements = 0;
  bool over = false;
  size_t w = at, k = at;
  while (k < t->n && !pace_stopped(&t->pace, 4)) {
    const bool lowest = !over && k + 1 < t->n && t->rank[k] == rank;
    if (lowest && t->ids[k] == left && t->ids[k + 1] == right) {
      t->ids[w] = id;
      k += 2;
      replacements++;
      over = rank_neighbours(t, w, k, rank);
    } else {
      over = over || lowest;
      t->ids[w] = t->ids[k];
      t->rank[w] = t->rank[k];
      t->to[w] = t->to[k];
      k++;
    }
    w++;
  }
  t->n = w;
  t->step.rank = pair_map_rank(&bpe_coder_model(t->coder)->v.pairs, rank);
  t->step.left = left;
  t->step.right = right;
  t->step.id = id;
  t->step.replacements = replacements;
}

/* The next step of the piece at hand; false: it has none. */
static bool next_step(bpe_trace *t) {
  const size_t at = t->whole == BPE_NONE ? least_pair(t) : 0;
  if (at == t->n || pace_copy(&t->pace, t->before, t->ids, t->n * sizeof *t->ids, NULL) != BPE_OK)
    return false;
  t->step.step++;
  t->step.before = t->before;
  t->step.n_before = t->n;
  if (t->whole != BPE_NONE) {
    t->step.id = t->ids[0] = t->whole;
    t->step.replacements = 1;
    t->rank[0] = BPE_NONE;
    t->n = 1;
    t->whole = BPE_NONE;
  } else {
    merge_run(t, at);
  }
  t->step.after = t->ids;
  t->step.n_after = t->n;
  return true;
}

bpe_status bpe_trace_next(bpe_trace *t, bpe_step *out, bpe_error *e) {
  bpe_piece p;
  *out = (bpe_step){0};
  const bool stepped = t->begun && next_step(t);
  if (pace_stopped(&t->pace, STEP_WORK)) return set_stopped_at(e, t->step.start);
  if (!stepped) {
    bpe_status st = bpe_walk_next(t->walk, &p, e);
    if (st == BPE_OK) st = begin_piece(t, &p, e);
    if (st != BPE_OK) return st;
  }
  *out = t->step;
  return BPE_OK;
}
