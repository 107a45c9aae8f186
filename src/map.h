/* map.h - the table of pairs, (left id, right id) -> (rank, id), and the hash of bytes.
**
** The table is made once for a known number of keys, at most half full, never deleted from and
** never grown, so a probe needs no state and ends at the first empty slot:
**
**     uint32_t id, rank = pair_map_find(&m, left, right, &id);
**     if (rank != BPE_NONE) ... the pair becomes id ...
**
** Most pairs that merging asks for are not in the table. A bitmap of one hashed bit per pair,
** small enough for a near cache, answers nine in ten of those without touching the table.
*/
#ifndef MAP_H
#define MAP_H

#include "base.h"

#include <string.h>

/* Multiplicative hashing; the high bits are the good ones. */
#define HASH_K1 UINT64_C(0x9e3779b97f4a7c15)
#define HASH_K2 UINT64_C(0xd6e8feb86659fd93)

static inline uint64_t hash_mix(uint64_t h) {
  h *= HASH_K2;
  return h ^ h >> 32;
}

static inline uint64_t hash_bytes(const uint8_t *s, size_t len) {
  uint64_t h = len * HASH_K1, w = 0;
  while (len > 8) {
    memcpy(&w, s, 8);
    h = hash_mix(h ^ w);
    s += 8;
    len -= 8;
  }
  w = 0;
  memcpy(&w, s, len);
  return hash_mix(hash_mix(h ^ w));
}

typedef struct pair_slot {
  uint32_t left; /* BPE_NONE: empty */
  uint32_t right;
  uint32_t rank, id;
} pair_slot;

typedef struct pair_map {
  pair_slot *slots; /* owned */
  size_t mask;
  uint64_t *filter; /* owned; FILTER_BITS bits for each slot */
} pair_map;

enum { FILTER_BITS = 4 };

bool pair_map_init(pair_map *, const bpe_alloc *, size_t n_keys);
void pair_map_clear(pair_map *, const bpe_alloc *);

/* False: the pair is there already. */
bool pair_map_add(pair_map *, pair_slot);

static inline uint64_t hash_pair(uint32_t left, uint32_t right) {
  return (left * HASH_K1 ^ right) * HASH_K2;
}

/* The slot that holds this pair, or the empty one where it would go. */
static inline pair_slot *pair_map_slot(const pair_map *m, uint64_t hash, uint32_t left,
                                       uint32_t right) {
  size_t i = (size_t)(hash >> 32) & m->mask;
  while (m->slots[i].left != BPE_NONE &&
         (m->slots[i].left != left || m->slots[i].right != right))
    i = (i + 1) & m->mask;
  return &m->slots[i];
}

/* Rank of the pair, and through *id what it becomes; BPE_NONE, and *id is left alone: none. An
** id that is BPE_NONE is in no pair. */
static inline uint32_t pair_map_find(const pair_map *m, uint32_t left, uint32_t right,
                                     uint32_t *id) {
  const uint64_t h = hash_pair(left, right);
  const size_t bit = (size_t)(h >> 24) & (m->mask * FILTER_BITS + FILTER_BITS - 1);
  if (!(m->filter[bit / 64] >> bit % 64 & 1)) return BPE_NONE;
  const pair_slot *p = pair_map_slot(m, h, left, right);
  *id = p->id;
  return p->rank;
}

#endif
