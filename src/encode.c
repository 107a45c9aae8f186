/* encode.c - the one walk: special tokens, pieces, ids. Counting, encoding and token rows are
** loops over it.
**
**     text      "Hi <|endoftext|>there"
**     special_next    finds          |<|endoftext|>|        when the caller allows it
**     split_next      |Hi| |                        |there|
**     piece_ids       [13347] [220]  [100257]       [19041]
**
** piece_ids looks a piece up in the coder's table of pieces seen before, then among the tokens,
** and merges it only if it is in neither. The table is bounded: a bucket of two slots keeps the
** two pieces met last of those that hash to it. Pieces of more than 15 bytes or 3 ids are not
** kept.
*/
#include "merge.h"
#include "model.h"
#include "pieces.h"

enum {
  PIECE_BYTES = 1 << 22,   /* memory of the table of pieces, unless said otherwise */
  STOP_INTERVAL = 1 << 16, /* bytes of text between two questions to stop */
  IDS_PER_RESERVE = 1024
};

enum phase { PHASE_BOS, PHASE_TEXT, PHASE_EOS, PHASE_DONE };

struct bpe_walk {
  bpe_coder *coder;
  const uint8_t *text;
  size_t len;
  bpe_walk_options options;
  const bpe_finder *finder; /* allowed specials and added tokens; NULL: there are none */
  splitter split;           /* of the stretch before `special` */
  special_match special;    /* the next one; start == len: none */
  enum phase phase;
  size_t asked; /* text position at the last question to stop */
};

struct bpe_coder {
  const bpe_model *model;
  bpe_alloc alloc;
  piece_table pieces;
  merge_scratch merge;
  uint32_t one; /* the id of a piece that is a token */
  bpe_walk walk; /* that of bpe_count and bpe_encode_* */
};

/* ---- Coder -------------------------------------------------------------------------------- */

bpe_status bpe_coder_new(const bpe_model *m, size_t piece_slots, bpe_error *e, bpe_coder **out) {
  *out = NULL;
  bpe_coder *c = mem_zero(&m->alloc, 1, sizeof *c);
  if (c == NULL) return set_nomem(e);
  c->model = m;
  c->alloc = c->merge.alloc = m->alloc;
  c->walk.coder = c;
  if (!pieces_init(&c->pieces, &m->alloc, piece_slots == 0 ? PIECE_BYTES : piece_slots)) {
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
  merge_scratch_clear(&c->merge);
  pieces_clear(&c->pieces);
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

static bpe_status merge_or_find(bpe_coder *c, const uint8_t *s, size_t len, const uint32_t **ids,
                                size_t *n, bpe_error *e) {
  const vocab *v = &c->model->v;
  if (len <= v->longest) {
    const size_t at = vocab_find_bytes(v, s, len);
    if (at != v->n_entries && v->entries[at].direct) {
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

static bpe_status piece_ids(bpe_coder *c, const uint8_t *s, size_t len, size_t readable,
                            const uint32_t **ids, size_t *n, bpe_error *e) {
  piece_table *t = &c->pieces;
  const uint32_t value = len <= SHORT_KEY ? pieces_find_short(t, s, len, readable)
                                          : pieces_find_long(t, s, len);
  if (value != 0) {
    *ids = pieces_ids(t, value, &c->one);
    *n = pieces_count(value);
    if (*ids != NULL) return BPE_OK;
  }
  const bpe_status st = merge_or_find(c, s, len, ids, n, e);
  if (st == BPE_OK) pieces_add(t, s, len, readable, *ids, *n);
  return st;
}

/* A model without some bytes: the first id that is none is an error naming its byte. */
static bpe_status check_bytes(const bpe_walk *w, const bpe_piece *p, bpe_error *e) {
  const vocab *v = &w->coder->model->v;
  size_t at = p->start;
  for (size_t i = 0; i < p->n_ids; i++) {
    if (p->ids[i] == BPE_NONE)
      return set_error(e, BPE_BADTEXT, at, "no token for the byte at %zu: 0x%02x", at,
                       w->text[at]);
    at += v->entries[vocab_find_id(v, p->ids[i])].len;
  }
  return BPE_OK;
}

/* ---- The walk ------------------------------------------------------------------------------- */

bpe_status bpe_walk_new(bpe_coder *c, bpe_error *e, bpe_walk **out) {
  *out = NULL;
  bpe_walk *w = mem_zero(&c->alloc, 1, sizeof *w);
  if (w == NULL) return set_nomem(e);
  w->coder = c;
  w->phase = PHASE_DONE;
  *out = w;
  return BPE_OK;
}

void bpe_walk_free(bpe_walk *w) {
  if (w == NULL) return;
  const bpe_alloc a = w->coder->alloc;
  split_clear(&w->split);
  mem_free(&a, w);
}

/* Looks for the next special token and begins the stretch before it. */
static bpe_status begin_stretch(bpe_walk *w, size_t from, bpe_error *e) {
  w->special = w->finder == NULL ? (special_match){w->len, 0, BPE_NONE}
                                 : special_next(w->finder, w->text, from, w->len);
  const bpe_pattern *p = w->options.pattern;
  return split_start(&w->split, p != NULL ? p : w->coder->model->pattern, w->text, from,
                     w->special.start, e);
}

bpe_status bpe_walk_start(bpe_walk *w, const void *text, size_t len, const bpe_walk_options *o,
                          bpe_error *e) {
  const bpe_model *m = w->coder->model;
  w->text = text;
  w->len = len;
  w->options = o != NULL ? *o : (bpe_walk_options){0};
  w->finder = w->options.allowed != NULL ? w->options.allowed : m->added;
  w->asked = 0;
  w->phase = PHASE_DONE; /* until everything below went well */
  w->split.stop = w->options.stop;
  w->split.stop_ctx = w->options.stop_ctx;
  if (w->options.document && m->bos.n + m->eos.n == 0)
    return set_error(e, BPE_MISUSE, 0, "tokenizer has no BOS or EOS tokens");
  if (w->options.forbidden != NULL) {
    const special_match f = special_next(w->options.forbidden, w->text, 0, len);
    quoted q;
    if (f.start != len)
      return set_error(e, BPE_BADTEXT, f.start, "special token not allowed at byte %zu: %s",
                       f.start, quote_bytes(&q, w->text + f.start, f.len));
  }
  const bpe_status st = begin_stretch(w, 0, e);
  if (st == BPE_OK) w->phase = PHASE_BOS;
  return st;
}

/* The tokens before or after a document, as one piece of no bytes. */
static bpe_piece wrapping(const id_list *list, size_t at) {
  return (bpe_piece){at, at, list->ids, list->n, true};
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
    st = piece_ids(c, w->text + start, p->stop - start, w->len - start, &p->ids, &p->n_ids, e);
    if (st == BPE_OK && c->model->lacks_bytes) st = check_bytes(w, p, e);
  }
  if (st == BPE_OK && w->options.stop != NULL && p->stop - w->asked >= STOP_INTERVAL) {
    w->asked = p->stop;
    if (w->options.stop(w->options.stop_ctx))
      st = set_error(e, BPE_STOPPED, p->stop, "interrupted");
  }
  return st;
}

static bpe_status next_special(bpe_walk *w, bpe_piece *p, bpe_error *e) {
  const size_t start = w->special.start, stop = start + w->special.len;
  w->coder->one = w->special.id;
  *p = (bpe_piece){start, stop, &w->coder->one, w->options.split_only ? 0 : 1, true};
  return begin_stretch(w, stop, e);
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
    else if (w->special.start < w->len) st = next_special(w, p, e);
    else w->phase = PHASE_EOS;
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

/* Counts the pieces whose ends are found already, as far as the table of pieces has them, and
** leaves the rest, which walk_next takes. This is bpe_count's inner loop: it touches no ids. */
static uint64_t count_known(bpe_walk *w) {
  splitter *sp = &w->split;
  const bpe_coder *c = w->coder;
  const uint8_t *const text = w->text;
  size_t at = sp->at, i = sp->next;
  uint64_t sum = 0;
  for (; i < sp->n; i++) {
    const size_t stop = sp->base + sp->ends[i], len = stop - at;
    if (w->len - at < 16) break;
    const uint32_t value = len <= SHORT_KEY ? pieces_find_short(&c->pieces, text + at, len, 16)
                                            : pieces_find_long(&c->pieces, text + at, len);
    if (value == 0) break;
    sum += pieces_count(value);
    at = stop;
  }
  sp->at = at;
  sp->next = i;
  return sum;
}

/* ---- Whole texts ------------------------------------------------------------------------------ */

bpe_status bpe_count(bpe_coder *c, const void *text, size_t len, const bpe_walk_options *o,
                     bpe_error *e, uint64_t *n) {
  *n = 0;
  uint64_t sum = 0;
  bpe_piece p;
  bpe_status st = bpe_walk_start(&c->walk, text, len, o, e);
  if (st != BPE_OK) return st;
  while ((st = bpe_walk_next(&c->walk, &p, e)) == BPE_OK) sum += p.n_ids + count_known(&c->walk);
  if (st != BPE_DONE) return st;
  *n = sum;
  return BPE_OK;
}

/* One form of writing ids: `most` bytes each at most, at `to`; returns the end, NULL if an id
** does not fit. */
typedef uint8_t *write_ids(uint8_t *to, const uint32_t *ids, size_t n);

static uint8_t *write_json(uint8_t *to, const uint32_t *ids, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint8_t digits[10];
    size_t at = sizeof digits;
    uint32_t id = ids[i];
    do digits[--at] = (uint8_t)('0' + id % 10);
    while ((id /= 10) != 0);
    memcpy(to, digits + at, sizeof digits - at);
    to += sizeof digits - at;
    *to++ = ',';
  }
  return to;
}

static uint8_t *write_packed32(uint8_t *to, const uint32_t *ids, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (int k = 0; k < 4; k++) *to++ = (uint8_t)(ids[i] >> 8 * k);
  return to;
}

static uint8_t *write_packed16(uint8_t *to, const uint32_t *ids, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (ids[i] > UINT16_MAX) return NULL;
    *to++ = (uint8_t)ids[i];
    *to++ = (uint8_t)(ids[i] >> 8);
  }
  return to;
}

static bpe_status too_wide(const bpe_piece *p, bpe_error *e) {
  size_t i = 0;
  while (p->ids[i] <= UINT16_MAX) i++;
  return set_error(e, BPE_TOOBIG, p->start, "id does not fit in 16 bits: %lu",
                   (unsigned long)p->ids[i]);
}

static bpe_status encode(bpe_coder *c, const void *text, size_t len, const bpe_walk_options *o,
                         write_ids *write, size_t most, bpe_error *e, bpe_buffer *out) {
  bpe_piece p;
  bpe_status st = bpe_walk_start(&c->walk, text, len, o, e);
  if (st != BPE_OK) return st;
  while ((st = bpe_walk_next(&c->walk, &p, e)) == BPE_OK) {
    for (size_t i = 0; i < p.n_ids;) {
      const size_t n = p.n_ids - i < IDS_PER_RESERVE ? p.n_ids - i : IDS_PER_RESERVE;
      uint8_t *to = bpe_buffer_reserve(out, n * most);
      if (to == NULL) return buffer_status(out, e);
      const uint8_t *end = write(to, p.ids + i, n);
      if (end == NULL) return too_wide(&p, e);
      bpe_buffer_commit(out, (size_t)(end - to));
      i += n;
    }
    if (out->status != BPE_OK) return buffer_status(out, e);
  }
  return st == BPE_DONE ? BPE_OK : st;
}

bpe_status bpe_encode_json(bpe_coder *c, const void *text, size_t len, const bpe_walk_options *o,
                           bpe_error *e, bpe_buffer *out) {
  bpe_buffer_append(out, "[", 1);
  const size_t open = out->len;
  const bpe_status st = encode(c, text, len, o, write_json, 11, e, out);
  if (st != BPE_OK) return st;
  if (out->len > open) out->bytes[out->len - 1] = ']'; /* over the last comma */
  else bpe_buffer_append(out, "]", 1);
  return buffer_status(out, e);
}

bpe_status bpe_encode_packed(bpe_coder *c, const void *text, size_t len, int width,
                             const bpe_walk_options *o, bpe_error *e, bpe_buffer *out) {
  if (width == 16) return encode(c, text, len, o, write_packed16, 2, e, out);
  if (width == 32) return encode(c, text, len, o, write_packed32, 4, e, out);
  return set_error(e, BPE_MISUSE, 0, "width must be 16 or 32: %d", width);
}
