/* count.h - how often each distinct piece occurs: an open-addressing table.
**
** Entries stand side by side in order of arrival; slots hold their numbers. A piece of up to 15
** bytes is its own key, its length in the last of 16 bytes; of a longer one the entry has hash
** and place, and the bytes lie in a slab behind their length. `first` is the lowest place that
** came with the piece, which orders pieces by first appearance whatever thread met them when.
**
** Adding never allocates: it says "full", and whoever owns the memory makes room and adds again.
**
**     const count_key k = count_key_of("the", 3, 3);
**     while (!count_add(&t, &k, "the", 1, place)) ... count_grow(&t, &alloc, 3, ...) ...
*/
#ifndef COUNT_H
#define COUNT_H

#include "hash.h"

/* Sums of weights stay below 2^63: SQL has no larger integers. */
#define COUNT_MAX ((uint64_t)INT64_MAX)

enum { COUNT_SHORT = 15 }; /* bytes of a piece that is its own key */

typedef struct count_key {
  uint64_t word[2]; /* in memory order: bytes and length, or hash, place and LONG_MARK */
} count_key;

typedef struct count_entry {
  count_key key;
  uint64_t count; /* of weights; above COUNT_MAX once the sum has passed it */
  uint64_t first;
} count_entry;

typedef struct count_table {
  uint32_t *slots; /* owned; number of the entry + 1; 0: empty */
  size_t mask;
  count_entry *entries; /* owned */
  size_t n, cap;        /* cap: as many as the slots carry, too */
  uint8_t *slab;        /* owned; of long pieces, each behind its length as a size_t */
  size_t slab_len, slab_cap;
  bool overflow; /* some count has passed COUNT_MAX */
  pace *pace;    /* borrowed; NULL, or to be asked while a piece is copied: then it is full */
} count_table;

/* An empty table with room for n pieces and `bytes` of long ones. */
bpe_status count_init(count_table *, const bpe_alloc *, size_t n, size_t bytes, bpe_error *);
void count_clear(count_table *, const bpe_alloc *); /* frees */
void count_reset(count_table *);                    /* empties, keeping the memory */
/* Makes room for one more piece of `len` bytes, at least doubling what is short. stop as in
** bpe_walk_options. On failure the table is as before. */
bpe_status count_grow(count_table *, const bpe_alloc *, size_t len, int (*stop)(void *),
                      void *stop_ctx, bpe_error *);

/* Bytes of an entry's piece; those of a short one are copied to `room`. */
const uint8_t *count_bytes(const count_table *, const count_entry *, uint8_t room[16], size_t *len);

/* The key of a piece whose first `readable` >= len bytes may be read. */
static inline count_key count_key_of(const uint8_t *s, size_t len, size_t readable);
/* Adds weight to the piece that the key was made of. False: no room, and nothing was added. */
static inline bool count_add(count_table *, const count_key *, const uint8_t *s, size_t len,
                             uint64_t weight, uint64_t first);

/* ---- Inline ------------------------------------------------------------------------------- */

/* The byte that is last in memory, which tells the two kinds of key apart. */
#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__) &&                                    \
    __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
enum { COUNT_LAST_BYTE = 0, COUNT_PLACE_SHIFT = 8 };
#else
enum { COUNT_LAST_BYTE = 56, COUNT_PLACE_SHIFT = 0 };
#endif
#define COUNT_LONG_MARK (UINT64_C(255) << COUNT_LAST_BYTE)

static inline bool count_is_long(const count_key *k) {
  return (k->word[1] & COUNT_LONG_MARK) == COUNT_LONG_MARK;
}

static inline count_key count_key_of(const uint8_t *s, size_t len, size_t readable) {
  static const uint8_t keep[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                   255, 255, 255, 255, 255, 255, 255, 255};
  count_key k = {{0, 0}};
  if (len > COUNT_SHORT) {
    k.word[0] = hash_bytes(s, len);
    k.word[1] = COUNT_LONG_MARK; /* the place comes with the entry */
    return k;
  }
  if (readable >= sizeof k) {
    count_key m;
    memcpy(&k, s, sizeof k);
    memcpy(&m, keep + sizeof k - len, sizeof m);
    k.word[0] &= m.word[0];
    k.word[1] &= m.word[1];
  } else if (len != 0) {
    memcpy(&k, s, len);
  }
  k.word[1] |= (uint64_t)len << COUNT_LAST_BYTE;
  return k;
}

static inline size_t count_slot(const count_table *t, const count_key *k) {
  if (count_is_long(k)) return (size_t)k->word[0] & t->mask;
  return (size_t)hash_fold(k->word[0] ^ hash_secret.c, k->word[1] ^ hash_secret.a) & t->mask;
}

/* Whether the entry is that of the long piece. */
bool count_same_long(const count_table *, const count_entry *, const count_key *, const uint8_t *s,
                     size_t len);
/* Puts a new entry into its slot; false: no room. */
bool count_insert(count_table *, size_t slot, const count_key *, const uint8_t *s, size_t len,
                  uint64_t weight, uint64_t first);

static inline bool count_add(count_table *t, const count_key *k, const uint8_t *s, size_t len,
                             uint64_t weight, uint64_t first) {
  const bool is_long = count_is_long(k);
  for (size_t i = count_slot(t, k);; i = (i + 1) & t->mask) {
    if (t->slots[i] == 0) return count_insert(t, i, k, s, len, weight, first);
    count_entry *e = &t->entries[t->slots[i] - 1];
    if (is_long ? !count_same_long(t, e, k, s, len)
                : (e->key.word[0] != k->word[0] || e->key.word[1] != k->word[1]))
      continue;
    e->count += weight;
    if (e->count > COUNT_MAX) {
      e->count = COUNT_MAX + 1; /* far from wrapping */
      t->overflow = true;
    }
    if (first < e->first) e->first = first;
    return true;
  }
}

#endif
