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
  piece_text pieces; /* of text */
};

struct bpe_coder {
  const bpe_model *model;
  bpe_alloc alloc;
  piece_table pieces;
  merge_scratch merge;
  uint32_t one; /* the id of a piece that is a token */
  uint32_t few[UINT8_MAX]; /* ids from the table of pieces */
  bpe_walk walk; /* that of bpe_count and bpe_encode_* */
  piece_batch batch;
};

/* ---- Coder -------------------------------------------------------------------------------- */

bpe_status bpe_coder_new(const bpe_model *m, size_t piece_bytes, bpe_error *e, bpe_coder **out) {
  *out = NULL;
  bpe_coder *c = mem_zero(&m->alloc, 1, sizeof *c);
  if (c == NULL) return set_nomem(e);
  c->model = m;
  c->alloc = c->merge.alloc = m->alloc;
  c->walk.coder = c;
  if (!pieces_init(&c->pieces, &m->alloc, &m->v, piece_bytes == 0 ? PIECE_BYTES : piece_bytes)) {
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

/* A model without some bytes: the first id that is none is an error naming its byte. */
static bpe_status check_bytes(const bpe_walk *w, size_t at, const uint32_t *ids, size_t n,
                              bpe_error *e) {
  const vocab *v = &w->coder->model->v;
  for (size_t i = 0; i < n; i++) {
    if (ids[i] == BPE_NONE)
      return set_error(e, BPE_BADTEXT, at, "no token for the byte at %zu: 0x%02x", at,
                       w->text[at]);
    at += v->entries[vocab_find_id(v, ids[i])].len;
  }
  return BPE_OK;
}

/* The ids of a value, unpacked, or NULL. */
static const uint32_t *kept_ids(bpe_coder *c, uint32_t value) {
  if (!pieces_has_ids(value)) return NULL;
  const uint8_t *ids = pieces_ids(&c->pieces, value);
  c->few[0] = pieces_first_id(value, ids);
  for (size_t i = 1; i < pieces_count(value); i++) c->few[i] = packed_id(ids, i);
  return c->few;
}

/* The ids of a piece, from wherever they are to be had. Without `keep`, *ids may be NULL: only
** *n counts. */
static bpe_status piece_ids(bpe_walk *w, size_t at, size_t len, bool keep, const uint32_t **ids,
                            size_t *n, bpe_error *e) {
  bpe_coder *c = w->coder;
  const uint32_t value = pieces_find(&c->pieces, &w->pieces, at, len);
  if (value != 0) {
    *ids = keep ? kept_ids(c, value) : NULL;
    *n = pieces_count(value);
    if (*ids != NULL || !keep) return BPE_OK;
  }
  c->merge.stop = w->options.stop;
  c->merge.stop_ctx = w->options.stop_ctx;
  bpe_status st = merge_or_find(c, w->text + at, len, ids, n, e);
  if (st == BPE_OK && c->model->lacks_bytes) st = check_bytes(w, at, *ids, *n, e);
  if (st == BPE_OK) pieces_add(&c->pieces, &w->pieces, at, len, *ids, *n, keep);
  return st;
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
  piece_text_init(&w->pieces, w->text, len);
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

static bpe_status ask_to_stop(bpe_walk *w, bpe_error *e) {
  const size_t at = w->split.at;
  if (w->options.stop == NULL || at - w->asked < STOP_INTERVAL) return BPE_OK;
  w->asked = at;
  if (!w->options.stop(w->options.stop_ctx)) return BPE_OK;
  return set_error(e, BPE_STOPPED, at, "interrupted");
}

static bpe_status next_piece(bpe_walk *w, bpe_piece *p, bpe_error *e) {
  const size_t start = w->split.at;
  bpe_status st = split_next(&w->split, e);
  if (st != BPE_OK) return st;
  *p = (bpe_piece){.start = start, .stop = w->split.at};
  if (!w->options.split_only)
    st = piece_ids(w, start, p->stop - start, true, &p->ids, &p->n_ids, e);
  return st == BPE_OK ? ask_to_stop(w, e) : st;
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

/* ---- Whole texts ------------------------------------------------------------------------------ */

/* The pieces of a stretch can be taken by the batch: there are some left, and none can fail in a
** way that must name the first place. */
static bool has_batches(const bpe_walk *w) {
  return w->phase == PHASE_TEXT && w->split.at < w->split.end && !w->options.split_only &&
         !w->coder->model->lacks_bytes;
}

/* Finds the next pieces of the stretch and looks them up. *n: the ids of those found. */
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
    sp->at = b->starts[b->n];
    sp->next = sp->n;
  } while (sp->at < sp->end && b->n + SPLIT_BATCH <= PIECES_BATCH);
  *n = pieces_lookup(&c->pieces, b, &w->pieces);
  return BPE_OK;
}

/* Counts what is left of the stretch, which touches no ids. */
static bpe_status count_stretch(bpe_walk *w, uint64_t *sum, bpe_error *e) {
  const piece_batch *b = &w->coder->batch;
  bpe_status st = BPE_OK;
  while (st == BPE_OK && w->split.at < w->split.end) {
    uint64_t found;
    if ((st = next_batch(w, &found, e)) != BPE_OK) break;
    *sum += found;
    for (size_t m = 0; m < b->n_missed && st == BPE_OK; m++) {
      const size_t i = b->missed[m];
      const uint32_t *ids;
      size_t n = 0;
      st = piece_ids(w, b->starts[i], b->starts[i + 1] - b->starts[i], false, &ids, &n, e);
      *sum += n;
    }
    if (st == BPE_OK) st = ask_to_stop(w, e);
  }
  return st;
}

bpe_status bpe_count(bpe_coder *c, const void *text, size_t len, const bpe_walk_options *o,
                     bpe_error *e, uint64_t *n) {
  *n = 0;
  uint64_t sum = 0;
  bpe_piece p;
  bpe_walk *w = &c->walk;
  bpe_status st = bpe_walk_start(w, text, len, o, e);
  while (st == BPE_OK) {
    if (has_batches(w)) st = count_stretch(w, &sum, e);
    if (st == BPE_OK && (st = bpe_walk_next(w, &p, e)) == BPE_OK) sum += p.n_ids;
  }
  if (st != BPE_DONE) return st;
  *n = sum;
  return BPE_OK;
}

/* ---- Forms of ids ----------------------------------------------------------------------------- */

typedef enum form { FORM_JSON, FORM_16, FORM_32 } form;

/* Bytes of an id at most, in each form; writers may write FORM_SLACK bytes more. */
static const size_t most_bytes[] = {11, 2, 4};
enum { FORM_SLACK = 16 };

static ALWAYS_INLINE void put_word(uint8_t *to, uint64_t word) {
#if LITTLE_ENDIAN_WORDS
  memcpy(to, &word, 8);
#else
  for (int k = 0; k < 8; k++) to[k] = (uint8_t)(word >> 8 * k);
#endif
}

/* Decimal digits and a comma. Below 10^8 the number is cut into two halves of four digits, these
** into quarters of two, those into digits, each in a lane of its own of one word; the leading
** zeros are then shifted out. */
static ALWAYS_INLINE uint8_t *write_decimal(uint8_t *to, uint32_t id) {
  if (id < 100000000) {
    const uint64_t halves = id / 10000 | (uint64_t)(id % 10000) << 32;
    const uint64_t hundreds = halves * 10486 >> 20 & UINT64_C(0x0000007f0000007f);
    const uint64_t quarters = hundreds | (halves - 100 * hundreds) << 16;
    const uint64_t tens = quarters * 103 >> 10 & UINT64_C(0x000f000f000f000f);
    const uint64_t digits = tens | (quarters - 10 * tens) << 8;
    const unsigned zeros = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) / 8;
    put_word(to, (digits | UINT64_C(0x3030303030303030)) >> 8 * zeros);
    to += 8 - zeros;
  } else {
    uint8_t digits[10];
    size_t at = sizeof digits;
    do digits[--at] = (uint8_t)('0' + id % 10);
    while ((id /= 10) != 0);
    memcpy(to, digits + at, sizeof digits - at);
    to += sizeof digits - at;
  }
  *to++ = ',';
  return to;
}

static ALWAYS_INLINE uint8_t *write_32(uint8_t *to, uint32_t id) {
#if LITTLE_ENDIAN_WORDS
  memcpy(to, &id, 4);
#else
  for (int k = 0; k < 4; k++) to[k] = (uint8_t)(id >> 8 * k);
#endif
  return to + 4;
}

/* Writes one id; NULL if it does not fit. */
static ALWAYS_INLINE uint8_t *write_id(form f, uint8_t *to, uint32_t id) {
  if (f == FORM_JSON) return write_decimal(to, id);
  if (f == FORM_32) return write_32(to, id);
  if (id > UINT16_MAX) return NULL;
  to[0] = (uint8_t)id;
  to[1] = (uint8_t)(id >> 8);
  return to + 2;
}

static bpe_status too_wide(size_t at, uint32_t id, bpe_error *e) {
  return set_error(e, BPE_TOOBIG, at, "id does not fit in 16 bits: %lu", (unsigned long)id);
}

/* Appends any number of ids, of a piece at `at`. */
static ALWAYS_INLINE bpe_status append_ids(form f, size_t at, const uint32_t *ids, size_t n,
                                    bpe_buffer *out, bpe_error *e) {
  for (size_t i = 0; i < n;) {
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

/* Writes the ids of a value; NULL if one does not fit, which *id is then. */
static ALWAYS_INLINE uint8_t *write_kept(form f, uint8_t *to, const piece_table *t, uint32_t value,
                                  uint32_t *id) {
  const uint8_t *const ids = pieces_ids(t, value);
  const size_t n = pieces_count(value);
  size_t i = 1;
  to = write_id(f, to, *id = pieces_first_id(value, ids));
  if (f == FORM_32) { /* few pieces have more ids than are written in any case */
    uint8_t *const end = to + 4 * (n - 1);
    for (; i < FORM_SLACK / 4; i++) to = write_32(to, packed_id(ids, i));
    for (; i < n; i++) to = write_32(to, packed_id(ids, i));
    return end;
  }
  for (; i < n && to != NULL; i++) to = write_id(f, to, *id = packed_id(ids, i));
  return to;
}

/* Appends the ids of a batch. */
static ALWAYS_INLINE bpe_status append_batch(form f, bpe_walk *w, uint64_t found, bpe_buffer *out,
                                      bpe_error *e) {
  bpe_coder *c = w->coder;
  const piece_batch *b = &c->batch;
  const size_t room = (size_t)found * most_bytes[f] + FORM_SLACK;
  const uint32_t n_dropped = c->pieces.n_dropped;
  uint8_t *start = bpe_buffer_reserve(out, room), *to = start;
  for (size_t i = 0; i < b->n; i++) {
    if (start == NULL) return buffer_status(out, e);
    const uint32_t value = b->values[i];
    if (pieces_has_ids(value) && c->pieces.n_dropped == n_dropped) {
      uint32_t id = 0;
      to = write_kept(f, to, &c->pieces, value, &id);
      if (to == NULL) return too_wide(b->starts[i], id, e);
      continue;
    }
    const size_t at = b->starts[i];
    const uint32_t *ids;
    size_t n;
    bpe_status st = piece_ids(w, at, b->starts[i + 1] - at, true, &ids, &n, e);
    if (st != BPE_OK) return st;
    bpe_buffer_commit(out, (size_t)(to - start));
    if ((st = append_ids(f, at, ids, n, out, e)) != BPE_OK) return st;
    start = to = bpe_buffer_reserve(out, room);
  }
  bpe_buffer_commit(out, (size_t)(to - start));
  return buffer_status(out, e);
}

static ALWAYS_INLINE bpe_status encode(form f, bpe_coder *c, const void *text, size_t len,
                                const bpe_walk_options *o, bpe_error *e, bpe_buffer *out) {
  bpe_piece p;
  bpe_walk *w = &c->walk;
  bpe_status st = bpe_walk_start(w, text, len, o, e);
  while (st == BPE_OK) {
    while (has_batches(w) && st == BPE_OK) {
      uint64_t found;
      st = next_batch(w, &found, e);
      if (st == BPE_OK) st = append_batch(f, w, found, out, e);
      if (st == BPE_OK) st = ask_to_stop(w, e);
    }
    if (st == BPE_OK && (st = bpe_walk_next(w, &p, e)) == BPE_OK)
      st = append_ids(f, p.start, p.ids, p.n_ids, out, e);
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
