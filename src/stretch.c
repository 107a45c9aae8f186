/* stretch.c - see stretch.h. */
#include "stretch.h"

#include "utf8.h"

#include <string.h>

enum {
  PART = USUALLY(4096, 48),         /* bytes of the first part where parts are walked, */
  JOIN_PART = USUALLY(512, 24),     /* and where they are joined to what is kept */
  GIVEN = USUALLY(256, 8),          /* kept tokens given at a time */
  LONG_STRETCH = USUALLY(4096, 64), /* bytes from which tokens are kept */
  ID_WORK = 8,                      /* units, of a look at the token of an id */
  JOIN_WORK = 64                    /* and of a try to join */
};

bpe_status stretch_init(stretch_walk *s, bpe_coder *c, const bpe_walk_options *o, bpe_error *e) {
  const bpe_model *m = bpe_coder_model(c);
  const bpe_pattern *p = o->pattern != NULL ? o->pattern : m->pattern;
  const bpe_finder *finder = o->allowed != NULL ? o->allowed : m->added;
  const bpe_finder *late = finder == NULL ? NULL : special_late(finder);
  s->coder = c;
  s->alloc = m->alloc;
  s->options = *o;
  s->late_longest = special_longest(late);
  s->pace = (pace){.stop = o->stop, .ctx = o->stop_ctx};
  s->cuts = p->scan != NULL && p->n_chain == 0;
  s->keeps = p->scan == NULL && p->regex == NULL && p->n_chain == 0 && late == NULL && !m->v.whole;
  return bpe_walk_new(c, e, &s->part);
}

static void clear_tokens(stretch_tokens *k, const bpe_alloc *a) {
  mem_free(a, k->ids);
  mem_free(a, k->ends);
  mem_free(a, k->stops);
}

void stretch_clear(stretch_walk *s) {
  const bpe_alloc a = s->alloc;
  if (s->coder == NULL) return;
  bpe_walk_free(s->whole);
  bpe_walk_free(s->part);
  clear_tokens(&s->kept, &a);
  clear_tokens(&s->head, &a);
  mem_free(&a, s->stops);
  memset(s, 0, sizeof *s);
}

void stretch_forget(stretch_walk *s) {
  s->kept.start = s->kept.stop = 0;
}

/* ---- Parts ---------------------------------------------------------------------------------- */

/* Finds how far the part decides about the pieces of the rest. */
static bpe_status find_settled(stretch_walk *s, bpe_error *e) {
  const walk_base b = walk_get_base(s->part);
  /* Where a late name may begin that goes on behind the part, it is as if the part ended. */
  size_t len = b.len > s->late_longest ? b.len - s->late_longest : 0;
  while (len > 0 && len < b.len && (b.bytes[len] & 0xc0) == 0x80) len--;
  s->settled = scan_settled(b.bytes, len, &s->pace);
  return pace_add(&s->pace, 0, e);
}

/* Begins to walk a part of about `len` bytes and of more than `behind`, or all of the rest. */
static bpe_status begin_part(stretch_walk *s, size_t behind, size_t len, bpe_error *e) {
  const normalizer *n = bpe_coder_model(s->coder)->normalizer;
  const uint8_t *text = s->text + s->from;
  const size_t left = s->stop - s->from;
  walk_set_origin(s->part, s->from);
  for (;;) {
    size_t cut = 0;
    for (; cut == 0 && len < left; len = len < left / 2 ? 2 * len : left)
      cut = normalizer_cut(n, text, left, behind, len);
    if (cut == 0) cut = left;
    s->part_stop = s->from + cut;
    s->settled = SIZE_MAX;
    const bpe_status st = bpe_walk_start(s->part, text, cut, &s->options, e);
    if (st == BPE_OK && cut < left) return find_settled(s, e);
    if (st != BPE_BADTEXT || cut == left) return st;
    behind = cut; /* what grew too much by itself may not in a longer text */
    len = 2 * cut;
  }
}

/* Makes the part longer and goes to the piece that was not certain. */
static bpe_status grow_part(stretch_walk *s, bpe_error *e) {
  const size_t len = s->part_stop - s->from;
  bpe_piece p;
  bpe_status st = begin_part(s, len, 2 * len, e);
  for (size_t i = 0; i < s->n_given && st == BPE_OK; i++) st = bpe_walk_next(s->part, &p, e);
  return st;
}

static bpe_status next_of_part(stretch_walk *s, bpe_piece *p, bpe_error *e) {
  for (;;) {
    bpe_status st = bpe_walk_next(s->part, p, e);
    if (st == BPE_OK && walk_base_at(s->part) < s->settled) break;
    if (st != BPE_OK && (st != BPE_DONE || s->part_stop == s->stop)) return st;
    if ((st = grow_part(s, e)) != BPE_OK) return st;
  }
  s->n_given++;
  p->start += s->from;
  p->stop += s->from;
  s->at = p->stop;
  return BPE_OK;
}

/* ---- Tokens that are kept ------------------------------------------------------------------- */

static bpe_status add_tokens(stretch_walk *s, stretch_tokens *k, const bpe_piece *p, bpe_error *e) {
  const vocab *v = &bpe_coder_model(s->coder)->v;
  const size_t n = k->n + p->n_ids;
  size_t at = k->n > 0 ? k->ends[k->n - 1] : 0;
  if (!mem_grow(&s->alloc, (void **)&k->ids, &k->ids_cap, n, sizeof *k->ids) ||
      !mem_grow(&s->alloc, (void **)&k->ends, &k->ends_cap, n, sizeof *k->ends) ||
      !mem_grow(&s->alloc, (void **)&k->stops, &k->stops_cap, n, sizeof *k->stops))
    return set_nomem(e);
  for (size_t i = 0; i < p->n_ids; i++) {
    if (pace_stopped(&s->pace, ID_WORK)) return set_stopped_at(e, k->start + at);
    at += v->entries[vocab_find_id(v, p->ids[i])].len;
    k->ids[k->n] = p->ids[i];
    k->ends[k->n] = at;
    k->stops[k->n++] = p->stops != NULL ? p->stops[i] : at;
  }
  return BPE_OK;
}

/* Goes to the end of a walk that began at `from` and keeps its tokens. */
static bpe_status keep_tokens(stretch_walk *s, stretch_tokens *k, bpe_walk *w, bpe_error *e) {
  bpe_piece p;
  bpe_status st;
  k->n = 0;
  k->start = k->stop = s->from;
  while ((st = bpe_walk_next(w, &p, e)) == BPE_OK)
    if ((st = add_tokens(s, k, &p, e)) != BPE_OK) return st;
  if (st != BPE_DONE) return st;
  k->stop = s->stop;
  return BPE_OK;
}

static bpe_status keep_stretch(stretch_walk *s, bpe_error *e) {
  bpe_status st = BPE_OK;
  stretch_forget(s);
  if (s->whole == NULL) st = bpe_walk_new(s->coder, e, &s->whole);
  if (st != BPE_OK) return st;
  walk_set_origin(s->whole, s->from);
  st = bpe_walk_start(s->whole, s->text + s->from, s->stop - s->from, &s->options, e);
  return st == BPE_OK ? keep_tokens(s, &s->kept, s->whole, e) : st;
}

/* Whether the kept token `next` can follow a token of the part: `at` is where they meet. Both are
** whole characters, so that what they are merged from does not depend on what is beside them; and
** if they stand beside each other when they are all there is, no merge joins them (merge.c says
** why), whatever is before and behind. */
static bpe_status is_joint(stretch_walk *s, walk_base b, size_t at, uint32_t left, uint32_t right,
                           bool *is, bpe_error *e) {
  const vocab *v = &bpe_coder_model(s->coder)->v;
  const size_t before = v->entries[vocab_find_id(v, left)].len,
               behind = v->entries[vocab_find_id(v, right)].len;
  bpe_piece p = {.start = at - before, .stop = at + behind};
  *is = false;
  if (behind > b.len - at || utf8_length(b.bytes + at, behind) == 0 ||
      utf8_valid_run(b.bytes + p.start, before) != before ||
      utf8_valid_run(b.bytes + at, behind) != behind)
    return BPE_OK;
  const bpe_status st = coder_piece(s->coder, b.bytes, b.len, &s->options, &p, e);
  if (st != BPE_OK) return st;
  *is = p.n_ids == 2 && p.ids[0] == left && p.ids[1] == right;
  return pace_add(&s->pace, JOIN_WORK, e);
}

/* Index of the first token that ends at `place` or behind it. */
static size_t first_end(const stretch_tokens *k, size_t place) {
  size_t low = 0, high = k->n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (k->ends[middle] < place) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Looks for the first place where tokens of the part, which are `head`, and kept ones meet. Behind
** a cut both are of the same normalized text. */
static bpe_status find_joint(stretch_walk *s, bool *found, bpe_error *e) {
  const stretch_tokens *k = &s->kept;
  stretch_tokens *h = &s->head;
  const size_t len = s->part_stop - s->from,
               cut = normalizer_cut(bpe_coder_model(s->coder)->normalizer, s->text + s->from, len,
                                    0, len / 2);
  *found = false;
  if (cut == 0) return BPE_OK;
  const walk_base b = walk_get_base(s->part);
  const size_t ours = walk_base_place(s->part, cut),
               theirs = walk_base_place(s->whole, s->from + cut - k->start);
  for (size_t i = first_end(h, ours), j = first_end(k, theirs); i < h->n && j + 1 < k->n;) {
    const size_t x = h->ends[i] - ours, y = k->ends[j] - theirs;
    if (x == y) {
      const bpe_status st = is_joint(s, b, h->ends[i], h->ids[i], k->ids[j + 1], found, e);
      if (st != BPE_OK) return st;
      if (*found) {
        h->n = i + 1;
        s->next = j + 1;
        return BPE_OK;
      }
    }
    if (x <= y) i++;
    if (y <= x) j++;
  }
  return BPE_OK;
}

/* Finds the tokens of the rest among the kept ones, or keeps them, or begins a part that is all. */
static bpe_status join(stretch_walk *s, bpe_error *e) {
  const stretch_tokens *k = &s->kept;
  s->joined = s->from == k->start || s->stop != k->stop || s->from < k->start;
  if (s->joined) {
    s->head.n = s->next = 0;
    return s->from == k->start && s->stop == k->stop ? BPE_OK : keep_stretch(s, e);
  }
  for (size_t len = 0; !s->joined; len = s->part_stop - s->from) {
    bpe_status st = begin_part(s, len, len == 0 ? JOIN_PART : 2 * len, e);
    if (st != BPE_OK || s->part_stop == s->stop) return st;
    st = keep_tokens(s, &s->head, s->part, e);
    if (st == BPE_OK) st = find_joint(s, &s->joined, e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

/* The next tokens of the head or, behind it, of those that are kept. */
static bpe_status next_joined(stretch_walk *s, bpe_piece *p, bpe_error *e) {
  const bool in_head = s->n_given < s->head.n;
  const stretch_tokens *k = in_head ? &s->head : &s->kept;
  size_t *at = in_head ? &s->n_given : &s->next;
  const size_t end = in_head ? s->head.n : k->n, n = end - *at < GIVEN ? end - *at : GIVEN;
  const size_t before = s->from - k->start; /* k->start <= from */
  if (n == 0) return BPE_DONE;
  if (!mem_grow(&s->alloc, (void **)&s->stops, &s->stops_cap, GIVEN, sizeof *s->stops))
    return set_nomem(e);
  for (size_t i = 0; i < n; i++) s->stops[i] = k->stops[*at + i] - before;
  *p = (bpe_piece){.start = s->at,
                   .stop = s->from + s->stops[n - 1],
                   .ids = k->ids + *at,
                   .n_ids = n,
                   .stops = s->stops};
  s->at = p->stop;
  *at += n;
  return BPE_OK;
}

/* ---- The walk ------------------------------------------------------------------------------- */

bpe_status stretch_start(stretch_walk *s, const uint8_t *text, size_t from, size_t stop,
                         bpe_error *e) {
  const size_t given = s->at - s->from; /* the last time: it will be about as much again */
  s->text = text;
  s->from = s->at = from;
  s->stop = stop;
  s->n_given = 0;
  s->joined = false;
  if (s->keeps && stop - from > LONG_STRETCH) return join(s, e);
  return begin_part(s, 0, s->cuts ? given + given / 4 + PART : stop - from, e);
}

bpe_status stretch_next(stretch_walk *s, bpe_piece *p, bpe_error *e) {
  return s->joined ? next_joined(s, p, e) : next_of_part(s, p, e);
}
