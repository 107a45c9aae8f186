/* encode.c - the one walk: special tokens, pieces, ids. Counting, encoding and token rows are
** loops over it.
**
**     text      "Hi <|endoftext|>there"
**     special_next    finds          |<|endoftext|>|        when the caller allows it
**     split_next      |Hi| |                        |there|
**     piece_ids       [13347] [220]  [100257]       [19041]
**
** Where a tokenizer normalizes, the stretch between two special tokens is normalized first, and
** names that are looked for only then (late ones) cut it once more; `base` is the text that is
** being split, the source or the normalized stretch, and what goes out is in places of the source.
**
** piece_ids looks a piece up in the coder's table of pieces seen before, then among the tokens,
** and merges it only if it is in neither. The table is bounded: a bucket of two slots keeps the
** two pieces met last of those that hash to it. Pieces of more than 15 bytes or 3 ids are not
** kept.
*/
#include "encode.h"

enum {
  DEFAULT_SLOTS = 1 << 16,
  SHORT_KEY = 15,         /* bytes of a piece that a slot's key can hold */
  SLOT_IDS = 3,
  STOP_INTERVAL = 1 << 16, /* bytes of text between two questions to stop */
  IDS_PER_RESERVE = 1024
};

/* The bytes of a piece, zero-padded, its length in the last byte: equal keys, equal pieces. */
typedef struct piece_key {
  uint64_t low, high;
} piece_key;

typedef struct piece_slot {
  piece_key key; /* high == 0: empty */
  uint32_t ids[SLOT_IDS], n;
} piece_slot;

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
  size_t base_stop;         /* end of the stretch, in base */
  const bpe_finder *late_finder; /* NULL: nothing is looked for in base */
  special_match late;       /* the next there; start == base_stop: none */
  bool mapped;              /* base is not text: places go through `normal` */
  size_t done;              /* mapped: the text up to here is in pieces */
  normal_text normal;
  size_t normal_from; /* where the normalized stretch begins in text */
  size_t *stops; /* owned; of the tokens of the last mapped piece */
  size_t stops_cap;
  enum phase phase;
  size_t asked; /* text position at the last question to stop */
};

struct bpe_coder {
  const bpe_model *model;
  bpe_alloc alloc;
  piece_slot *slots; /* owned; buckets of two */
  size_t mask;
  merge_scratch merge;
  uint32_t one; /* the id of a piece that is a token */
  bpe_walk walk; /* that of bpe_count and bpe_encode_* */
};

/* ---- Coder -------------------------------------------------------------------------------- */

bpe_status bpe_coder_new(const bpe_model *m, size_t piece_slots, bpe_error *e, bpe_coder **out) {
  *out = NULL;
  const size_t n = power_of_two(piece_slots == 0 ? DEFAULT_SLOTS : piece_slots, 2);
  bpe_coder *c = mem_zero(&m->alloc, 1, sizeof *c);
  if (c == NULL) return set_nomem(e);
  c->model = m;
  c->alloc = c->merge.alloc = m->alloc;
  c->walk.coder = c;
  c->walk.normal.alloc = m->alloc;
  c->mask = n - 1;
  c->slots = n == 0 ? NULL : mem_zero(&m->alloc, n, sizeof *c->slots);
  if (c->slots == NULL) {
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
  mem_free(&a, c->slots);
  mem_free(&a, c);
}

const bpe_model *bpe_coder_model(const bpe_coder *c) {
  return c->model;
}

void bpe_coder_stat(const bpe_coder *c, bpe_coder_stats *out) {
  const merge_scratch *m = &c->merge;
  *out = (bpe_coder_stats){
      .piece_slots = c->mask + 1,
      .piece_bytes = (c->mask + 1) * sizeof *c->slots,
      .scratch_bytes = (m->ids_cap + m->window_cap + m->last_cap) * sizeof(uint32_t),
  };
}

/* ---- One piece ----------------------------------------------------------------------------- */

/* `readable` bytes may be read at s; len <= SHORT_KEY. */
static inline piece_key make_key(const uint8_t *s, size_t len, size_t readable) {
  static const uint8_t keep[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                   255, 255, 255, 255, 255, 255, 255, 255};
  uint8_t b[16] = {0};
  if (readable >= 16) {
    uint64_t w[2], m[2];
    memcpy(w, s, 16);
    memcpy(m, keep + 16 - len, 16);
    w[0] &= m[0];
    w[1] &= m[1];
    memcpy(b, w, 16);
  } else {
    memcpy(b, s, len);
  }
  b[15] = (uint8_t)len;
  piece_key k;
  memcpy(&k, b, 16);
  return k;
}

static inline piece_slot *bucket(const bpe_coder *c, piece_key k) {
  const uint64_t h = hash_mix(hash_mix(k.low ^ HASH_K1) ^ k.high);
  return &c->slots[(size_t)h & c->mask & ~(size_t)1];
}

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
  if (len > SHORT_KEY) return merge_or_find(c, s, len, ids, n, e);
  const piece_key k = make_key(s, len, readable);
  piece_slot *b = bucket(c, k);
  for (int way = 0; way < 2; way++) {
    if (b[way].key.low != k.low || b[way].key.high != k.high) continue;
    *ids = b[way].ids;
    *n = b[way].n;
    return BPE_OK;
  }
  const bpe_status st = merge_or_find(c, s, len, ids, n, e);
  if (st != BPE_OK || *n > SLOT_IDS) return st;
  if (c->model->lacks_bytes)
    for (size_t i = 0; i < *n; i++)
      if ((*ids)[i] == BPE_NONE) return BPE_OK; /* an error every time, never in the table */
  b[1] = b[0];
  b[0].key = k;
  b[0].n = (uint32_t)*n;
  memcpy(b[0].ids, *ids, *n * sizeof **ids);
  return BPE_OK;
}

/* A model without some bytes: the first id that is none is an error naming its byte. `at`: start
** of the piece in base. */
static bpe_status check_bytes(bpe_walk *w, size_t at, const bpe_piece *p, bpe_error *e) {
  const vocab *v = &w->coder->model->v;
  for (size_t i = 0; i < p->n_ids; i++) {
    if (p->ids[i] == BPE_NONE) {
      const size_t place = w->mapped ? normal_source(&w->normal, at) : at;
      return set_error(e, BPE_BADTEXT, place, "no token for the byte at %zu: 0x%02x", place,
                       w->base[at]);
    }
    at += v->entries[vocab_find_id(v, p->ids[i])].len;
  }
  return BPE_OK;
}

bpe_status coder_piece(bpe_coder *c, const uint8_t *text, size_t len, const bpe_walk_options *o,
                       bpe_piece *p, bpe_error *e) {
  c->merge.stop = o->stop;
  c->merge.stop_ctx = o->stop_ctx;
  const bpe_status st =
      piece_ids(c, text + p->start, p->stop - p->start, len - p->start, &p->ids, &p->n_ids, e);
  size_t at = p->start;
  for (size_t i = 0; st == BPE_OK && c->model->lacks_bytes && i < p->n_ids; i++) {
    if (p->ids[i] == BPE_NONE)
      return set_error(e, BPE_BADTEXT, at, "no token for the byte at %zu: 0x%02x", at, text[at]);
    at += c->model->v.entries[vocab_find_id(&c->model->v, p->ids[i])].len;
  }
  return st;
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

/* Looks for the next late name in base and begins to split what comes before it. */
static bpe_status begin_split(bpe_walk *w, size_t from, bpe_error *e) {
  w->late = w->late_finder == NULL
                ? (special_match){w->base_stop, 0, BPE_NONE}
                : special_next(w->late_finder, w->base, from, w->base_stop);
  const bpe_pattern *p = w->options.pattern;
  return split_start(&w->split, p != NULL ? p : w->coder->model->pattern, w->base, from,
                     w->late.start, e);
}

/* Looks for the next special token and begins the stretch before it. */
static bpe_status begin_stretch(bpe_walk *w, size_t from, bpe_error *e) {
  w->special = w->finder == NULL ? (special_match){w->len, 0, BPE_NONE}
                                 : special_next(w->finder, w->text, from, w->len);
  w->base = w->text;
  w->base_len = w->len;
  w->base_stop = w->special.start;
  w->mapped = false;
  const normalizer *n = w->coder->model->normalizer;
  if (n == NULL) return begin_split(w, from, e);
  const bpe_status st = normal_apply(&w->normal, n, w->text + from, w->special.start - from, e);
  if (st != BPE_OK) return st;
  if (!w->normal.changed) return begin_split(w, from, e);
  w->mapped = true;
  w->normal_from = w->done = from;
  w->base = w->normal.text;
  w->base_len = w->base_stop = w->normal.len;
  return begin_split(w, 0, e);
}

/* The place in text of a place in base, which is mapped; what ends base ends the stretch. */
static size_t place_in_text(bpe_walk *w, size_t at) {
  return at == w->base_stop ? w->special.start : w->normal_from + normal_source(&w->normal, at);
}

/* Turns the piece base[start .. stop) into one of text, and says where its tokens end there. */
static bpe_status map_piece(bpe_walk *w, size_t start, size_t stop, bpe_piece *p, bpe_error *e) {
  const vocab *v = &w->coder->model->v;
  if (!mem_grow(&w->coder->alloc, (void **)&w->stops, &w->stops_cap, p->n_ids, sizeof *w->stops))
    return set_nomem(e);
  for (size_t i = 0; i < p->n_ids; i++) {
    start += v->entries[vocab_find_id(v, p->ids[i])].len;
    w->stops[i] = place_in_text(w, p->special ? stop : start);
  }
  p->start = w->done;
  p->stop = w->done = place_in_text(w, stop);
  if (p->n_ids != 0) p->stops = w->stops;
  return BPE_OK;
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
  w->split.stop = w->options.stop;
  w->split.stop_ctx = w->options.stop_ctx;
  w->normal.stop = w->options.stop;
  w->normal.stop_ctx = w->options.stop_ctx;
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
  return (bpe_piece){
      .start = at, .stop = at, .ids = list->ids, .n_ids = list->n, .special = true};
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
    st = piece_ids(c, w->base + start, p->stop - start, w->base_len - start, &p->ids, &p->n_ids, e);
    if (st == BPE_OK && c->model->lacks_bytes) st = check_bytes(w, start, p, e);
  }
  if (st == BPE_OK && w->mapped) st = map_piece(w, start, p->stop, p, e);
  return st;
}

/* Asks whether to stop, if the piece that ends at `at` makes enough text since the last time. */
static bpe_status ask(bpe_walk *w, size_t at, bpe_error *e) {
  if (w->options.stop == NULL || at - w->asked < STOP_INTERVAL) return BPE_OK;
  w->asked = at;
  return w->options.stop(w->options.stop_ctx) ? set_error(e, BPE_STOPPED, at, "interrupted")
                                              : BPE_OK;
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

/* Counts the pieces whose ends are found already, as far as the table of pieces has them, and
** leaves the rest, which walk_next takes. This is bpe_count's inner loop: it touches no ids. */
static uint64_t count_known(bpe_walk *w) {
  splitter *sp = &w->split;
  const bpe_coder *c = w->coder;
  const uint8_t *const text = w->base;
  size_t at = sp->at, i = sp->next;
  uint64_t sum = 0;
  for (; i < sp->n; i++) {
    const size_t stop = sp->base + sp->ends[i], len = stop - at;
    if (len > SHORT_KEY || w->base_len - at < 16) break;
    const piece_key k = make_key(text + at, len, 16);
    const piece_slot *b = bucket(c, k);
    const bool first = b[0].key.low == k.low && b[0].key.high == k.high;
    const bool second = b[1].key.low == k.low && b[1].key.high == k.high;
    if (!first && !second) break;
    sum += b[first ? 0 : 1].n;
    at = stop;
  }
  sp->at = at;
  sp->next = i;
  if (w->mapped) w->done = place_in_text(w, at);
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
  bpe_piece p;
  while (sum <= most && (st = bpe_walk_next(&c->walk, &p, e)) == BPE_OK)
    sum += p.n_ids + count_known(&c->walk);
  if (st != BPE_OK && st != BPE_DONE) return st;
  *fits = sum <= most;
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
