/* window.c - texts cut to a number of tokens: limits that still hold when one counts again.
**
** Counts do not add up: what a start of a text is split into, and merged to, depends on what comes
** behind it. In cl100k,
**
**     "23" "  " TAB "7"     has four tokens; its first three alone,
**     "23" "  TAB"          are two; and with other vocabularies they may as well be more
**
** So each candidate, the end of token k for k = most, most - 1, ..., is counted by itself and the
** first that holds is taken. Counting again is cheap, because only the last pieces can differ:
**
**     pieces of the text      |a  |b  |c  |d  | ...
**     the candidate           |a  |b  |c'|          ends inside d
**     scan_settled says       ^^^^^^^ these end where they end, whatever follows
**
** The pieces of a window are kept as marks: where one begins, and how many tokens come before.
** At the other end, a suffix of a text is split otherwise only until one of its pieces ends where
** a piece of the text ends; from there on the marks know the count. Both shortcuts need a pattern
** that looks at nothing behind it; a regex or a text that is changed first is counted whole.
*/
#include "rewalk.h"

#include "natural.h"
#include "utf8.h"

#include <string.h>

typedef struct mark {
  size_t start;         /* of a piece or, where pieces do not show tokens, of a token */
  uint64_t before : 63; /* tokens before it */
  uint64_t single : 1;  /* it is one token */
} mark;

struct bpe_windows {
  bpe_coder *coder;
  bpe_alloc alloc;
  bpe_walk_options options; /* without BOS, EOS and what is forbidden */
  bpe_window_options how;
  uint64_t wraps, room; /* BOS and EOS tokens; what they leave */
  const uint8_t *text;
  size_t len;
  bool plain, local; /* rewalk_is_plain; and the pattern is a scanner or "none" */
  rewalk main, again;
  mark *marks; /* owned; of the text from `from` on */
  size_t n_marks, marks_cap;
  size_t marks_end; /* where the last one ends */
  uint64_t total;   /* tokens up to there */
  size_t *ends;     /* owned; of the tokens of text[ends_start .. ends_stop), one piece */
  size_t n_ends, ends_cap;
  size_t ends_start, ends_stop;
  size_t end;         /* of a single token */
  size_t from, least; /* the next window begins at `from` and ends behind `least` */
  pace pace;          /* of what is not walking */
};

/* Units of work: of a candidate that is counted again, a place that may be a cut, an id. */
enum { TRY_WORK = 64, LOOK_WORK = 16, ID_WORK = 8 };

/* ---- Making and marking --------------------------------------------------------------------- */

void bpe_windows_free(bpe_windows *w) {
  if (w == NULL) return;
  const bpe_alloc a = w->alloc;
  rewalk_clear(&w->main);
  rewalk_clear(&w->again);
  mem_free(&a, w->marks);
  mem_free(&a, w->ends);
  mem_free(&a, w);
}

/* The failures that concern the whole text: forbidden strings, no BOS or EOS to add. */
static bpe_status check_text(bpe_coder *c, const uint8_t *text, size_t len,
                             const bpe_walk_options *o, bpe_error *e) {
  bpe_walk *walk;
  if (!o->document && o->forbidden == NULL) return BPE_OK;
  bpe_status st = bpe_walk_new(c, e, &walk);
  if (st == BPE_OK) st = bpe_walk_start(walk, text, len, o, e);
  bpe_walk_free(walk);
  return st;
}

bpe_status bpe_windows_new(bpe_coder *c, const void *text, size_t len, const bpe_walk_options *o,
                           const bpe_window_options *how, bpe_error *e, bpe_windows **out) {
  *out = NULL;
  const bpe_model *m = bpe_coder_model(c);
  const bpe_walk_options none = {0};
  if (o == NULL) o = &none;
  bpe_status st = check_text(c, text, len, o, e);
  if (st != BPE_OK) return st;
  const uint64_t wraps = o->document ? m->bos.n + m->eos.n : 0;
  if (wraps > how->most)
    return set_error(e, BPE_MISUSE, 0, "the BOS and EOS tokens alone are more than the limit: %llu",
                     (unsigned long long)how->most);
  bpe_windows *w = mem_zero(&m->alloc, 1, sizeof *w);
  if (w == NULL) return set_nomem(e);
  w->coder = c;
  w->alloc = m->alloc;
  w->options = *o;
  w->pace = (pace){.stop = o->stop, .ctx = o->stop_ctx};
  w->how = *how;
  w->wraps = wraps;
  w->room = how->most - wraps;
  w->text = text;
  w->len = len;
  const bpe_pattern *p = o->pattern != NULL ? o->pattern : m->pattern;
  w->plain = rewalk_is_plain(m, o);
  w->local = w->plain && p->regex == NULL;
  st = rewalk_init(&w->main, c, o, NULL, e);
  if (st == BPE_OK) st = rewalk_init(&w->again, c, o, &w->main.own, e);
  if (st == BPE_OK) st = rewalk_start(&w->main, w->text, len, 0, len, e);
  if (st != BPE_OK) {
    bpe_windows_free(w);
    return st;
  }
  *out = w;
  return BPE_OK;
}

static bpe_status add_mark(bpe_windows *w, size_t start, uint64_t before, bool single,
                           bpe_error *e) {
  if (w->n_marks == w->marks_cap &&
      !mem_grow(&w->alloc, (void **)&w->marks, &w->marks_cap, w->n_marks + 1, sizeof *w->marks))
    return set_nomem(e);
  w->marks[w->n_marks++] = (mark){start, before & (UINT64_MAX >> 1), single};
  return BPE_OK;
}

/* Marks a piece that r has read. Text before it that normalizing leaves nothing of is part of it. */
static bpe_status add_piece(bpe_windows *w, const rewalk *r, const bpe_piece *p, bpe_error *e) {
  bpe_status st = BPE_OK;
  if (p->stops == NULL || p->special) {
    st = add_mark(w, w->marks_end, w->total, p->special, e);
  } else {
    for (size_t i = 0; i < p->n_ids && st == BPE_OK; i++)
      st = add_mark(w, i == 0 ? w->marks_end : r->base + p->stops[i - 1], w->total + i, true, e);
  }
  w->total += p->n_ids;
  w->marks_end = p->stop;
  return st;
}

static void forget_marks(bpe_windows *w, size_t from) {
  w->n_marks = 0;
  w->total = 0;
  w->marks_end = from;
}

/* Marks the text from `from` on until there are more than `most` tokens. *whole: there are not. */
static bpe_status read_marks(bpe_windows *w, size_t from, uint64_t most, bool *whole,
                             bpe_error *e) {
  bpe_piece p;
  forget_marks(w, from);
  *whole = false;
  bpe_status st = rewalk_seek(&w->main, from, e);
  while (st == BPE_OK && w->total <= most) {
    st = rewalk_next(&w->main, &p, e);
    if (st == BPE_OK) st = add_piece(w, &w->main, &p, e);
  }
  *whole = st == BPE_DONE;
  return st == BPE_DONE ? BPE_OK : st;
}

static size_t mark_stop(const bpe_windows *w, size_t i) {
  return i + 1 < w->n_marks ? w->marks[i + 1].start : w->marks_end;
}

/* Finds the ends of the tokens of a piece, if they are not those that are there already. */
static bpe_status find_ends(bpe_windows *w, bpe_piece *p, bpe_error *e) {
  const vocab *v = &bpe_coder_model(w->coder)->v;
  if (w->n_ends != 0 && w->ends_start == p->start && w->ends_stop == p->stop) return BPE_OK;
  const bpe_status st = coder_piece(w->coder, w->text, w->len, &w->options, p, e);
  if (st != BPE_OK) return st;
  w->n_ends = 0;
  if (!mem_grow(&w->alloc, (void **)&w->ends, &w->ends_cap, p->n_ids, sizeof *w->ends))
    return set_nomem(e);
  size_t at = p->start;
  for (size_t t = 0; t < p->n_ids; t++) {
    w->ends[t] = at += v->entries[vocab_find_id(v, p->ids[t])].len;
    if (pace_stopped(&w->pace, ID_WORK)) return set_stopped(e);
  }
  w->n_ends = p->n_ids;
  w->ends_start = p->start;
  w->ends_stop = p->stop;
  return BPE_OK;
}

/* Where the tokens of a marked piece end, valid until the next call. */
static bpe_status ends_of(bpe_windows *w, size_t i, const size_t **ends, size_t *n, bpe_error *e) {
  bpe_piece p = {.start = w->marks[i].start, .stop = mark_stop(w, i)};
  if (w->marks[i].single) {
    w->end = p.stop;
    *ends = &w->end;
    *n = 1;
    return BPE_OK;
  }
  if (p.stop - p.start > bpe_coder_model(w->coder)->v.longest &&
      rewalk_find_known(&w->main.own, &p, ends)) {
    *n = p.n_ids;
    return BPE_OK;
  }
  const bpe_status st = find_ends(w, &p, e);
  *ends = w->ends;
  *n = w->n_ends;
  return st;
}

/* Index of the last mark with start <= at, the first mark's start being so. */
static size_t mark_at(const bpe_windows *w, size_t at) {
  size_t low = 0, high = w->n_marks;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (w->marks[middle].start <= at) low = middle;
    else high = middle;
  }
  return low;
}

/* Whether no character of the text goes on across `at`. */
static bool is_char_boundary(const bpe_windows *w, size_t at) {
  if (at == 0 || at >= w->len || (w->text[at] & 0xc0) != 0x80) return true;
  size_t lead = at - 1;
  while (lead > 0 && at - lead < 3 && (w->text[lead] & 0xc0) == 0x80) lead--;
  return lead + bpe_utf8_next(w->text + lead, w->len - lead) <= at;
}

/* ---- Counting again ------------------------------------------------------------------------- */

/* The last mark from which text[from .. to) must be split again. */
static size_t unsettled_mark(bpe_windows *w, size_t from, size_t to) {
  if (!w->local) return 0;
  const size_t settled = from + scan_settled(w->text + from, to - from, &w->pace);
  size_t i = w->n_marks - 1;
  while (i > 0 && w->marks[i].start >= settled && !pace_stopped(&w->pace, 1)) i--;
  return i;
}

/* Tokens of text[from .. to) by itself, or some number above `most`. The marks begin at `from` and
** go as far as `to`, which is the end of a token. */
static bpe_status count_prefix(bpe_windows *w, size_t from, size_t to, uint64_t most, uint64_t *n,
                               bpe_error *e) {
  const size_t i = unsettled_mark(w, from, to);
  bpe_piece p;
  *n = w->marks[i].before;
  bpe_status st = pace_add(&w->pace, TRY_WORK, e);
  if (st == BPE_OK) st = rewalk_start(&w->again, w->text, w->len, w->marks[i].start, to, e);
  while (st == BPE_OK && *n <= most) {
    st = rewalk_next(&w->again, &p, e);
    if (st == BPE_OK) *n += p.n_ids;
  }
  return st == BPE_DONE ? BPE_OK : st;
}

/* Tokens of text[from .. to) by itself, or some number above `most`, where the marks end at `to`
** and `from` is the end of one of their tokens. */
static bpe_status count_suffix(bpe_windows *w, size_t from, size_t to, uint64_t most, uint64_t *n,
                               bpe_error *e) {
  size_t i = mark_at(w, from);
  bpe_piece p;
  *n = 0;
  bpe_status st = pace_add(&w->pace, TRY_WORK, e);
  if (st == BPE_OK) st = rewalk_start(&w->again, w->text, w->len, from, to, e);
  while (st == BPE_OK && *n <= most) {
    st = rewalk_next(&w->again, &p, e);
    if (st != BPE_OK) break;
    *n += p.n_ids;
    if (!w->local) continue;
    while (i < w->n_marks && w->marks[i].start < p.stop && !pace_stopped(&w->pace, 1)) i++;
    if ((st = pace_add(&w->pace, 0, e)) != BPE_OK) break;
    if (i < w->n_marks && w->marks[i].start == p.stop) { /* the same pieces from here on */
      *n += w->total - w->marks[i].before;
      return BPE_OK;
    }
  }
  return st == BPE_DONE ? BPE_OK : st;
}

/* ---- Cutting -------------------------------------------------------------------------------- */

/* Whether text[from .. to) is a window: *n is then its count. */
static bpe_status try_cut(bpe_windows *w, size_t from, size_t to, bool *holds, uint64_t *n,
                          bpe_error *e) {
  *holds = false;
  if (!is_char_boundary(w, to)) return BPE_OK;
  const bpe_status st = count_prefix(w, from, to, w->room, n, e);
  *holds = st == BPE_OK && *n <= w->room;
  return st;
}

/* The longest window at `from`, by tokens; *to == from: there is none that ends behind `least`. */
static bpe_status cut_at_token(bpe_windows *w, size_t from, size_t least, size_t *to, uint64_t *n,
                               bpe_error *e) {
  *to = from;
  *n = 0;
  for (size_t i = w->n_marks; i-- > 0;) {
    const size_t *ends;
    size_t n_ends;
    bpe_status st = pace_add(&w->pace, 1, e);
    if (st == BPE_OK && w->marks[i].before >= w->room) continue;
    if (st == BPE_OK) st = ends_of(w, i, &ends, &n_ends, e);
    if (st != BPE_OK) return st;
    const uint64_t room = w->room - w->marks[i].before;
    for (size_t k = n_ends < room ? n_ends : (size_t)room; k > 0; k--) {
      bool holds;
      if (ends[k - 1] <= least) return BPE_OK;
      const size_t end = ends[k - 1];
      st = pace_add(&w->pace, 2, e);
      if (st == BPE_OK) st = try_cut(w, from, end, &holds, n, e);
      if (st != BPE_OK) return st;
      if (!holds) continue;
      *to = end;
      return BPE_OK;
    }
  }
  return BPE_OK;
}

static bpe_status is_token_end(bpe_windows *w, size_t at, bool *is, bpe_error *e) {
  const size_t i = mark_at(w, at);
  const size_t *ends;
  size_t n;
  *is = w->marks[i].start == at || mark_stop(w, i) == at;
  if (*is) return BPE_OK;
  const bpe_status st = ends_of(w, i, &ends, &n, e);
  if (st != BPE_OK) return st;
  size_t low = 0, high = n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (ends[middle] < at) low = middle + 1;
    else high = middle;
  }
  *is = low < n && ends[low] == at;
  return BPE_OK;
}

/* Lowers *to to the last cut of the wanted kind behind `least`, if there is one. */
static bpe_status cut_at_text(bpe_windows *w, size_t from, size_t least, bpe_cut cut, size_t *to,
                              uint64_t *n, bpe_error *e) {
  for (size_t at = *to; at > least; at--) {
    bool holds;
    uint64_t count;
    bpe_status st = pace_add(&w->pace, LOOK_WORK, e);
    if (st != BPE_OK) return st;
    if (cut == BPE_CUT_PARAGRAPH ? !is_paragraph_end(w->text, from, at, w->len)
                                 : !is_sentence_end(w->text, from, at, w->len))
      continue;
    st = is_token_end(w, at, &holds, e);
    if (st == BPE_OK && holds) st = try_cut(w, from, at, &holds, &count, e);
    if (st != BPE_OK) return st;
    if (!holds) continue;
    *to = at;
    *n = count;
    return BPE_OK;
  }
  return BPE_DONE;
}

static bpe_status cut_at_piece(bpe_windows *w, size_t from, size_t least, size_t *to, uint64_t *n,
                               bpe_error *e) {
  if (*to == w->marks_end) return BPE_OK;
  for (size_t i = mark_at(w, *to) + 1; i-- > 0 && w->marks[i].start > least;) {
    bool holds;
    uint64_t count;
    const bpe_status st = try_cut(w, from, w->marks[i].start, &holds, &count, e);
    if (st != BPE_OK) return st;
    if (!holds) continue;
    *to = w->marks[i].start;
    *n = count;
    return BPE_OK;
  }
  return BPE_OK;
}

static bpe_status choose_cut(bpe_windows *w, size_t from, size_t least, size_t *to, uint64_t *n,
                             bpe_error *e) {
  bpe_status st = cut_at_token(w, from, least, to, n, e);
  if (st != BPE_OK || *to == from || w->how.cut == BPE_CUT_TOKEN) return st;
  for (bpe_cut cut = w->how.cut; cut > BPE_CUT_PIECE; cut--) {
    st = cut_at_text(w, from, least, cut, to, n, e);
    if (st != BPE_DONE) return st;
  }
  return cut_at_piece(w, from, least, to, n, e);
}

/* The start of the longest suffix of the marked text, whose end is `to`, that has at most `most`
** tokens by itself and begins behind the text's start; `to` if there is none. */
static bpe_status cut_left(bpe_windows *w, size_t to, uint64_t most, size_t *start, bpe_error *e) {
  *start = to;
  if (w->n_marks == 0) return BPE_OK;
  const uint64_t skip = w->total > most ? w->total - most : 0; /* tokens */
  size_t i = 0;
  while (i + 1 < w->n_marks && w->marks[i + 1].before <= skip && !pace_stopped(&w->pace, 1)) i++;
  for (; i < w->n_marks; i++) {
    const size_t *ends;
    size_t n_ends;
    bpe_status st = ends_of(w, i, &ends, &n_ends, e);
    if (st != BPE_OK) return st;
    const uint64_t before = w->marks[i].before;
    for (size_t k = skip > before ? (size_t)(skip - before) : 0; k < n_ends; k++) {
      const size_t at = k == 0 ? w->marks[i].start : ends[k - 1];
      uint64_t n;
      if ((st = pace_add(&w->pace, 2, e)) != BPE_OK) return st;
      if (at == w->from || at >= to || !is_char_boundary(w, at)) continue;
      st = count_suffix(w, at, to, most, &n, e);
      if (st != BPE_OK) return st;
      if (n > most) continue;
      *start = at;
      return BPE_OK;
    }
  }
  return BPE_OK;
}

/* ---- Truncation ----------------------------------------------------------------------------- */

/* Marks the whole text, and forgets those marks that lie more than the limit before its end. */
static bpe_status read_all(bpe_windows *w, bpe_error *e) {
  enum { FORGET_AT = USUALLY(4096, 64) };
  bpe_piece p;
  bpe_status st;
  forget_marks(w, 0);
  while ((st = rewalk_next(&w->main, &p, e)) == BPE_OK) {
    st = add_piece(w, &w->main, &p, e);
    if (st != BPE_OK) return st;
    const size_t half = w->n_marks / 2;
    if (w->n_marks < FORGET_AT || w->n_marks < w->marks_cap ||
        w->total - w->marks[half].before <= w->room)
      continue;
    for (size_t i = half; i < w->n_marks && !pace_stopped(&w->pace, 2); i++)
      w->marks[i - half] = w->marks[i];
    w->n_marks -= half;
    if ((st = pace_add(&w->pace, 0, e)) != BPE_OK) return st;
  }
  return st == BPE_DONE ? BPE_OK : st;
}

bpe_status bpe_truncate(bpe_coder *c, const void *text, size_t len, const bpe_walk_options *o,
                        uint64_t most, bool left, bpe_error *e, size_t *start, size_t *stop) {
  *start = *stop = 0;
  bpe_windows *w;
  const bpe_window_options how = {.most = most};
  bpe_status st = bpe_windows_new(c, text, len, o, &how, e, &w);
  if (w == NULL) return st;
  size_t from = 0, to = len;
  bool whole = w->plain && !bpe_coder_model(c)->lacks_bytes && len <= w->room;
  if (whole) {
    st = BPE_OK;
  } else if (left) {
    st = read_all(w, e);
    whole = st == BPE_OK && w->total <= w->room;
    if (st == BPE_OK && !whole) st = cut_left(w, len, w->room, &from, e);
  } else {
    uint64_t n;
    st = read_marks(w, 0, w->room, &whole, e);
    if (st == BPE_OK && !whole) st = cut_at_token(w, 0, 0, &to, &n, e);
  }
  if (st == BPE_OK) {
    *start = from;
    *stop = to;
  }
  bpe_windows_free(w);
  return st;
}

/* ---- Windows -------------------------------------------------------------------------------- */

/* Marks text[from .. to) as it is by itself, keeping the marks that hold. */
static bpe_status mark_again(bpe_windows *w, size_t from, size_t to, bpe_error *e) {
  const size_t i = unsettled_mark(w, from, to);
  bpe_piece p;
  w->total = w->marks[i].before;
  w->marks_end = w->marks[i].start;
  w->n_marks = i;
  bpe_status st = rewalk_start(&w->again, w->text, w->len, w->marks_end, to, e);
  while (st == BPE_OK) {
    st = rewalk_next(&w->again, &p, e);
    if (st == BPE_OK) st = add_piece(w, &w->again, &p, e);
  }
  return st == BPE_DONE ? BPE_OK : st;
}

static bpe_status no_window(const bpe_windows *w, bpe_error *e) {
  return set_error(e, BPE_TOOBIG, w->from, "what begins at byte %llu needs more than %llu tokens",
                   (unsigned long long)w->from, (unsigned long long)w->how.most);
}

/* Where the next window begins, given the one that is marked and ends at `to`. */
static bpe_status next_start(bpe_windows *w, size_t to, size_t *next, bpe_error *e) {
  *next = to;
  if (w->how.overlap == 0) return BPE_OK;
  const bpe_status st = mark_again(w, w->from, to, e);
  return st == BPE_OK ? cut_left(w, to, w->how.overlap, next, e) : st;
}

bpe_status bpe_windows_next(bpe_windows *w, bpe_window *out, bpe_error *e) {
  size_t to = w->len, next = w->len;
  uint64_t n = 0;
  bool whole;
  *out = (bpe_window){0};
  if (w->from == w->len) return BPE_DONE;
  for (;;) {
    bpe_status st = read_marks(w, w->from, w->room, &whole, e);
    if (st == BPE_OK && whole) n = w->total;
    if (st == BPE_OK && !whole)
      st = choose_cut(w, w->from, w->least > w->from ? w->least : w->from, &to, &n, e);
    if (st != BPE_OK) return st;
    if (to > w->from) break;
    if (w->least <= w->from) return no_window(w, e);
    w->from = w->least; /* with the overlap there is no room for anything new: without */
    to = w->len;
  }
  *out = (bpe_window){w->from, to, n + w->wraps};
  if (!whole) {
    const bpe_status st = next_start(w, to, &next, e);
    if (st != BPE_OK) return st;
  }
  w->from = next;
  w->least = to;
  return BPE_OK;
}
