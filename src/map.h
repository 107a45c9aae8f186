/* map.h - the table of pairs, (left id, right id) -> what they merge to.
**
** A merge's order stands for its rank: the place of the first merge of its rank in the list, which
** is sorted by rank, so orders compare as ranks do. The table is made once for a known list, never
** deleted from and never grown:
**
**     uint32_t id, order = pair_map_find(&m, left, right, &id);
**     if (order != BPE_NONE) ... the pair becomes id ...
**
** A slot is one word of 64 bits where ids have at most 21 and orders at most 22, as in nearly all
** tokenizers:
**
**     | left 21 | right 21 | order 22 |
**
** Eight slots fill a cache line; a pair is in the line that its hash names, or, where that one is
** full, in one of those behind it, up to the first that is not. Merges that were made one id after
** the other tell their id by their order; others are looked up in the list. Larger numbers have
** slots of four words of 32 bits.
**
** Most pairs that merging asks for are not in the table. A bitmap of one hashed bit per pair,
** small enough for a near cache, answers nine in ten of those without touching the table.
*/
#ifndef MAP_H
#define MAP_H

#include "cpu.h"
#include "hash.h"

typedef struct vocab_merge {
  uint32_t rank, left, right, id;
} vocab_merge;

enum {
  PAIR_ID_BITS = 21,
  PAIR_ORDER_BITS = 22,
  PAIR_LINE = 8,  /* slots that are searched at once */
  FILTER_BITS = 8 /* of the bitmap for each pair, at least */
};

#define PAIR_NO_ORDER ((UINT32_C(1) << PAIR_ORDER_BITS) - 1)

typedef struct pair_slot {
  uint32_t left; /* BPE_NONE: empty */
  uint32_t right;
  uint32_t order, id;
} pair_slot;

typedef struct pair_map {
  const vocab_merge *merges; /* borrowed; by rank */
  void *block;               /* owned; holds one of the two: */
  uint64_t *lines;           /* NULL: numbers are too large; an empty slot has all bits set */
  pair_slot *slots;
  size_t n_lines;   /* of PAIR_LINE slots; behind them is a line that stays empty */
  uint64_t *filter; /* owned */
  uint64_t filter_mask;
  uint32_t order; /* of the merge added last */
  bool regular;   /* a merge's id is its order + first_id */
  uint32_t first_id;
} pair_map;

/* A table for n merges, sorted by rank, which must stay, and of ids up to most_id. */
BPE_CHECK bpe_status pair_map_init(pair_map *, const bpe_alloc *, const vocab_merge *, size_t n,
                                   uint32_t most_id, pace *, bpe_error *);
void pair_map_clear(pair_map *, const bpe_alloc *);

/* Adds merge i, all before it being added. False: the pair is there already. */
bool pair_map_add(pair_map *, size_t i);

static inline uint32_t pair_map_rank(const pair_map *m, uint32_t order) {
  return order == BPE_NONE ? BPE_NONE : m->merges[order].rank;
}

static inline size_t pair_map_line(const pair_map *m, uint64_t hash) {
  return (size_t)(((hash >> 32) * m->n_lines) >> 32);
}

static inline uint64_t pair_map_bit(const pair_map *m, uint64_t hash) {
  return hash >> 24 & m->filter_mask;
}

/* Fetches the place of a merge that will be added soon. Always inline, because gcc takes a function
** that does nothing but prefetch for one that does nothing, and drops the calls. */
static ALWAYS_INLINE void pair_map_fetch(const pair_map *m, size_t i) {
  const uint64_t h = hash_two(m->merges[i].left, m->merges[i].right);
  const size_t at = pair_map_line(m, h) * PAIR_LINE;
  PREFETCH(m->filter + pair_map_bit(m, h) / 64);
  if (m->lines != NULL) PREFETCH(m->lines + at);
  else PREFETCH(m->slots + at);
}

/* The order in this line, or PAIR_NO_ORDER. `pair` is left and right in their places. */
static inline uint32_t pair_line_find(const uint64_t *line, uint64_t pair) {
  uint32_t order = PAIR_NO_ORDER;
  for (int i = 0; i < PAIR_LINE; i++) {
    const uint64_t rest = line[i] ^ pair;
    order = rest < PAIR_NO_ORDER ? (uint32_t)rest : order;
  }
  return order;
}

/* The slot that holds this pair, or the empty one where it would go. */
static inline pair_slot *pair_map_slot(const pair_map *m, uint64_t hash, uint32_t left,
                                       uint32_t right) {
  const size_t n = m->n_lines * PAIR_LINE;
  size_t i = pair_map_line(m, hash) * PAIR_LINE;
  while (m->slots[i].left != BPE_NONE && (m->slots[i].left != left || m->slots[i].right != right))
    i = i + 1 == n ? 0 : i + 1;
  return &m->slots[i];
}

static inline uint64_t pair_word(uint32_t left, uint32_t right) {
  return ((uint64_t)left << PAIR_ID_BITS | right) << PAIR_ORDER_BITS;
}

/* Order of the pair, and through *id what it becomes; BPE_NONE: none, and *id is anything. An id
** that is BPE_NONE is in no pair. */
static inline uint32_t pair_map_find(const pair_map *m, uint32_t left, uint32_t right,
                                     uint32_t *id) {
  const uint64_t h = hash_two(left, right), bit = pair_map_bit(m, h);
  if (!(m->filter[bit / 64] >> bit % 64 & 1)) return BPE_NONE;
  if (m->lines == NULL) {
    const pair_slot *p = pair_map_slot(m, h, left, right);
    *id = p->id;
    return p->order;
  }
  if ((left | right) >> PAIR_ID_BITS != 0) return BPE_NONE;
  size_t at = pair_map_line(m, h);
  const uint64_t *line = m->lines + at * PAIR_LINE;
  const uint64_t pair = pair_word(left, right);
  uint32_t order = pair_line_find(line, pair);
  while (order == PAIR_NO_ORDER && line[PAIR_LINE - 1] != UINT64_MAX) {
    at = at + 1 == m->n_lines ? 0 : at + 1;
    line = m->lines + at * PAIR_LINE;
    order = pair_line_find(line, pair);
  }
  if (order == PAIR_NO_ORDER) return BPE_NONE;
  *id = m->regular ? order + m->first_id : m->merges[order].id;
  return order;
}

#endif
