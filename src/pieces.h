/* pieces.h - a bounded table of pieces and the ids that they became, for one coder.
**
** A piece of up to 15 bytes is its own key (key.h), so no bytes are followed to tell it from
** others. Three keys and what they stand for fill one cache line:
**
**     | key 16 | key 16 | key 16 | value 4 | value 4 | value 4 | 0 |
**
** A piece is in one of the two lines that its hash names, or nowhere. A value is the number of
** ids, in its upper 8 bits, and below it the id itself if it is one, or the place of the ids in
** the pool: the lower 16 bits of each, then the upper ones of all, two each if no id of the
** vocabulary has more, otherwise eight. A longer piece has its hash and length for a key; what it is is
** told by what the pool has of it, its bytes or the ids whose bytes are its own. Ids are kept only
** for who wants them: counting keeps none.
**
** The pool is a ring: what is old is written over, after the values that point there have been
** dropped. So memory is fixed, and so is the work of a lookup. Pieces are looked up by the batch:
** first all keys and the lines they name, which are fetched meanwhile; then all values, without a
** branch, as most are there; then the few that were not, one by one.
**
**     b.n = 0;   pieces_collect(t, &b, &text, from, base, ends, n);   ... and more ...
**     pieces_lookup(t, &b);   b.values[i] == 0: not there: merge, pieces_add
*/
#ifndef PIECES_H
#define PIECES_H

#include "vocab.h"

enum {
  PIECES_LONGEST = 255,
  PIECES_WAYS = 3,
  PIECES_BATCH = 256,
  PIECES_WIDE = 16, /* values that are looked at together */
  VALUE_BITS = 24,  /* of an id or a place */
  PACKED_SLACK = 16 /* bytes that may be read from any place on */
};

/* What stands for an id or a place where there is none to be had. */
#define NO_IDS ((UINT32_C(1) << VALUE_BITS) - 1)

typedef struct piece_line {
  piece_key keys[PIECES_WAYS];
  uint32_t values[PIECES_WAYS + 1]; /* 0: empty; the last is always 0 */
} piece_line;

/* Bytes that are compared at once: one key, two with AVX2, a whole line with AVX-512. */
enum piece_width { WIDTH_16, WIDTH_32, WIDTH_64 };

typedef struct piece_table {
  bpe_alloc alloc;
  const vocab *v;    /* borrowed */
  piece_line *lines; /* on cache lines of their own, in block */
  void *block;       /* owned */
  size_t n_lines;
  uint8_t *pool; /* owned; a ring, and PACKED_SLACK more */
  uint32_t pool_cap;
  uint32_t pool_at, pool_free; /* the next place; no value points between it and pool_free */
  unsigned high_bits;          /* of a kept id, beyond 16 */
  enum piece_width width;      /* how keys are compared here */
  uint32_t n_dropped;          /* changes when values, even those just looked up, may be void */
} piece_table;

/* About `bytes` in all, shared out between lines and pool. False: out of memory. */
bool pieces_init(piece_table *, const bpe_alloc *, const vocab *, size_t bytes);
void pieces_clear(piece_table *);
size_t pieces_bytes(const piece_table *);

/* A text whose pieces are looked up. 16 bytes are read wherever a piece starts; the last 16 bytes
** of the text have a copy with zeros behind it, so that nothing behind the text is read. */
typedef struct piece_text {
  const uint8_t *bytes; /* borrowed */
  size_t safe;          /* from here on, read the copy */
  uint8_t tail[32];
} piece_text;

void piece_text_init(piece_text *, const uint8_t *bytes, size_t len);

/* A piece that is looked up. */
typedef struct piece_probe {
  piece_key key;
  const piece_line *line;
  const uint8_t *start;
} piece_probe;

/* Pieces of one text that are looked up together, in order; n == 0 when there are none yet. */
typedef struct piece_batch {
  size_t n, n_missed, n_long;
  piece_probe probes[PIECES_BATCH + 1]; /* of the last, only start: where the piece before ends */
  uint32_t values[PIECES_BATCH + PIECES_WIDE]; /* behind the last: 0 */
  uint32_t missed[2 * PIECES_BATCH];           /* indices of those whose value is 0, in no order */
  uint32_t longs[PIECES_BATCH]; /* indices of those with more bytes than a key holds */
} piece_batch;

static inline size_t piece_length(const piece_batch *b, size_t i) {
  return (size_t)(b->probes[i + 1].start - b->probes[i].start);
}

/* Adds n pieces that tile text[from .. base + ends[n - 1]), each ending at base + its end. There
** must be room for them, and `from` must be where the one before ended. */
void pieces_collect(const piece_table *, piece_batch *, const piece_text *, size_t from,
                    size_t base, const size_t *ends, size_t n);
/* Looks them up. Returns the number of ids of those found. */
uint64_t pieces_lookup(const piece_table *, piece_batch *);

piece_key pieces_key(const piece_text *, size_t at, size_t len);
/* The value of one piece, whose key is given; 0: it is not there. */
uint32_t pieces_find(const piece_table *, const piece_text *, piece_key, size_t at, size_t len);

static inline uint32_t pieces_count(uint32_t value) {
  return value >> VALUE_BITS;
}

/* Whether the ids of a value are kept. */
static inline bool pieces_has_ids(uint32_t value) {
  return value != 0 && (value & NO_IDS) != NO_IDS;
}

/* Where the ids of a value are; those of a single one are not, but may be read like others. */
static inline const uint8_t *pieces_ids(const piece_table *t, uint32_t value) {
  return t->pool + (pieces_count(value) == 1 ? 0 : value & NO_IDS);
}

/* Id i of the n at `ids`, where pieces_ids says n > 1. */
static inline uint32_t kept_id(const piece_table *t, const uint8_t *ids, size_t n, size_t i) {
  const size_t bit = i * t->high_bits;
  const uint32_t high = (uint32_t)ids[2 * n + bit / 8] >> bit % 8 & ((1u << t->high_bits) - 1);
  return ids[2 * i] | (uint32_t)ids[2 * i + 1] << 8 | high << 16;
}

static inline uint32_t pieces_first_id(const piece_table *t, uint32_t value, const uint8_t *ids) {
  return pieces_count(value) == 1 ? value & NO_IDS : kept_id(t, ids, pieces_count(value), 0);
}

/* Keeps a piece, in place of an old one of its lines if need be, unless it is too long; without
** `keep`, the number of its ids, and they themselves only where that is free. ids may be NULL if
** they are not to be kept. */
void pieces_add(piece_table *, piece_key, const uint8_t *s, size_t len, const uint32_t *ids,
                size_t n, bool keep);

#endif
