/* pieces.h - a bounded table of pieces and the ids that they became, for one coder.
**
** A piece of up to 15 bytes is its own key: its bytes in 128 bits, zero-padded, its length in the
** last byte, so two pieces are equal exactly if their keys are, and no bytes are followed. Three
** keys and what they stand for fill one cache line, and a piece is in the line that its hash
** names or nowhere:
**
**     | key 16 | key 16 | key 16 | value 4 | value 4 | value 4 | spare 4 |
**
** A value is the number of ids, in its upper 8 bits, and below it the id, if it is one that fits,
** or where in the pool they are. The pool is a ring of words: what is old is written over, and a
** place tells whether it still holds what it did. A longer piece has its hash and its place in
** the pool for a key, and its bytes there. So memory is fixed, and so is the work of a lookup.
**
**     const uint32_t value = pieces_find(t, s, len, readable);
**     if (value == 0 || (ids = pieces_ids(t, value, &one)) == NULL) ... merge, pieces_add ...
*/
#ifndef PIECES_H
#define PIECES_H

#include "map.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
  SHORT_KEY = 15,      /* bytes of a piece that a key can hold */
  PIECES_LONGEST = 255,
  PIECES_WAYS = 3,
  VALUE_BITS = 24      /* of an id or a place */
};

typedef struct piece_key {
  uint64_t low, high;
} piece_key;

typedef struct piece_line {
  piece_key keys[PIECES_WAYS];
  uint32_t values[PIECES_WAYS]; /* 0: empty */
  uint32_t spare;
} piece_line;

typedef struct piece_table {
  bpe_alloc alloc;
  piece_line *lines; /* on cache lines of their own, in block */
  void *block;       /* owned */
  size_t n_lines;
  uint32_t *pool;    /* owned; a ring */
  uint32_t pool_cap; /* words; a power of two, at most 1 << (VALUE_BITS - 1) */
  uint32_t pool_end; /* words ever taken, modulo 1 << VALUE_BITS; place % pool_cap is where */
} piece_table;

/* About `bytes` in all, shared out between lines and pool. False: out of memory. */
bool pieces_init(piece_table *, const bpe_alloc *, size_t bytes);
void pieces_clear(piece_table *);
size_t pieces_bytes(const piece_table *);

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { LAST_BYTE = 0 }; /* shift to the byte of a word that is last in memory */
#else
enum { LAST_BYTE = 56 };
#endif

/* The key of a short piece; `readable` bytes may be read at s. */
static inline piece_key pieces_key(const uint8_t *s, size_t len, size_t readable) {
  static const uint8_t keep[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                   255, 255, 255, 255, 255, 255, 255, 255};
  uint64_t low = 0, high = 0, low_mask, high_mask;
  if (readable >= 16) {
    memcpy(&low, s, 8);
    memcpy(&high, s + 8, 8);
    memcpy(&low_mask, keep + 16 - len, 8);
    memcpy(&high_mask, keep + 24 - len, 8);
    low &= low_mask;
    high &= high_mask;
  } else {
    uint8_t b[16] = {0};
    memcpy(b, s, len);
    memcpy(&low, b, 8);
    memcpy(&high, b + 8, 8);
  }
  return (piece_key){low, high | (uint64_t)len << LAST_BYTE};
}

static inline uint64_t pieces_hash(piece_key k) {
  const uint64_t h = (k.low ^ HASH_K1) * HASH_K2 ^ (k.high ^ k.high >> 29) * HASH_K1;
  return h ^ h >> 29;
}

static inline piece_line *pieces_line(const piece_table *t, uint64_t hash) {
  return &t->lines[((hash & UINT32_MAX) * t->n_lines) >> 32];
}

/* The value under this key in this line, or 0. */
static inline uint32_t pieces_look(const piece_line *line, piece_key k) {
#if defined(__SSE2__)
  const __m128i key = _mm_set_epi64x((long long)k.high, (long long)k.low);
  const __m128i *const keys = (const __m128i *)(const void *)line->keys;
  const int a = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(keys), key));
  const int b = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(keys + 1), key));
  const int c = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(keys + 2), key));
  const uint32_t is_a = 0u - (uint32_t)(a == 0xffff), is_b = 0u - (uint32_t)(b == 0xffff),
                 is_c = 0u - (uint32_t)(c == 0xffff);
#else
  const piece_key *const x = line->keys;
  const uint32_t is_a = 0u - (uint32_t)(((x[0].low ^ k.low) | (x[0].high ^ k.high)) == 0),
                 is_b = 0u - (uint32_t)(((x[1].low ^ k.low) | (x[1].high ^ k.high)) == 0),
                 is_c = 0u - (uint32_t)(((x[2].low ^ k.low) | (x[2].high ^ k.high)) == 0);
#endif
  return (is_a & line->values[0]) | (is_b & line->values[1]) | (is_c & line->values[2]);
}

static inline uint32_t pieces_find_short(const piece_table *t, const uint8_t *s, size_t len,
                                         size_t readable) {
  const piece_key k = pieces_key(s, len, readable);
  return pieces_look(pieces_line(t, pieces_hash(k)), k);
}

/* The same for a longer piece. */
uint32_t pieces_find_long(const piece_table *, const uint8_t *s, size_t len);

static inline uint32_t pieces_count(uint32_t value) {
  return value >> VALUE_BITS;
}

/* The ids of a value, through *one if it is one; NULL: they are written over. */
const uint32_t *pieces_ids(const piece_table *, uint32_t value, uint32_t *one);

/* Keeps a piece, in place of the one met longest ago in its line, unless it is too long. */
void pieces_add(piece_table *, const uint8_t *s, size_t len, size_t readable, const uint32_t *ids,
                size_t n);

#endif
