/* key.h - bytes of a piece as 128 bits that can be compared and hashed without following them.
**
** Up to KEY_BYTES bytes are their own key, zero-padded, with their length in the last byte, so two
** are equal exactly if their keys are. Of longer ones the key is a hash and the length; equal keys
** then only say that a look at the bytes is worth it.
**
**     "cat"     63 61 74 00 00 00 00 00 00 00 00 00 00 00 00 03
*/
#ifndef KEY_H
#define KEY_H

#include "map.h"

enum {
  KEY_BYTES = 15,
  KEY_SLACK = 16, /* bytes that are read where a short piece begins */
  KEY_LONG = 255  /* instead of the length, where the key is a hash */
};

typedef struct piece_key {
  uint64_t low, high;
} piece_key;

enum { KEY_LAST = LITTLE_ENDIAN_WORDS ? 56 : 0 }; /* shift to the byte that is last in memory */

/* len <= KEY_BYTES; KEY_SLACK bytes may be read. */
static ALWAYS_INLINE piece_key key_short(const uint8_t *s, size_t len) {
  static const uint8_t keep[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                   255, 255, 255, 255, 255, 255, 255, 255};
  uint64_t low, high, low_mask, high_mask;
  memcpy(&low, s, 8);
  memcpy(&high, s + 8, 8);
  memcpy(&low_mask, keep + 16 - len, 8);
  memcpy(&high_mask, keep + 24 - len, 8);
  return (piece_key){low & low_mask, (high & high_mask) | (uint64_t)len << KEY_LAST};
}

/* Of sixteen bytes at a time, and of the last sixteen. len > KEY_BYTES. */
static inline piece_key key_long(const uint8_t *s, size_t len) {
  const uint64_t length = LITTLE_ENDIAN_WORDS ? (uint64_t)len & 0xffffffff : (uint64_t)len << 8;
  uint64_t h = hash_start(len), w[2];
  for (size_t i = 0; i + 16 < len; i += 16) {
    memcpy(w, s + i, 16);
    h = hash_step(h, w[0], w[1]);
  }
  memcpy(w, s + len - 16, 16);
  return (piece_key){hash_step(h, w[0], w[1]), (uint64_t)KEY_LONG << KEY_LAST | length};
}

/* The key of any bytes, reading nothing else. */
static inline piece_key key_any(const uint8_t *s, size_t len) {
  if (len > KEY_BYTES) return key_long(s, len);
  uint8_t copy[KEY_SLACK] = {0};
  for (size_t i = 0; i < len; i++) copy[i] = s[i];
  return key_short(copy, len);
}

static inline bool key_is_long(piece_key k) {
  return (k.high >> KEY_LAST & 255) == KEY_LONG;
}

/* The place of a key among three, the first of equals; 3: it is not there. */
static ALWAYS_INLINE unsigned key_place(const piece_key *three, const piece_key *k) {
#ifdef HAVE_SSE2
  const __m128i key = _mm_loadu_si128((const __m128i *)(const void *)k);
  const __m128i *const keys = (const __m128i *)(const void *)three;
  const __m128i a = _mm_cmpeq_epi32(_mm_load_si128(keys), key);
  const __m128i b = _mm_cmpeq_epi32(_mm_load_si128(keys + 1), key);
  const __m128i c = _mm_cmpeq_epi32(_mm_load_si128(keys + 2), key);
  /* Four bits for each key, all set where it is the one. */
  const __m128i all = _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, c));
  const unsigned m = (unsigned)_mm_movemask_epi8(all);
  const unsigned found = (m & m >> 1 & m >> 2 & m >> 3 & 0x111) | 0x1000;
  return (unsigned)__builtin_ctz(found) >> 2;
#else
  unsigned at = 3;
  for (unsigned i = 3; i-- > 0;)
    at = ((three[i].low ^ k->low) | (three[i].high ^ k->high)) == 0 ? i : at;
  return at;
#endif
}

/* Good in its upper half. Known to all, so only for tables that look at a bounded number of
** places whatever they hold. */
#define KEY_FACTOR_LOW UINT64_C(0x9e3779b97f4a7c15)
#define KEY_FACTOR_HIGH UINT64_C(0xd6e8feb86659fd93)

static inline uint64_t key_hash(piece_key k) {
  return k.low * KEY_FACTOR_LOW ^ k.high * KEY_FACTOR_HIGH;
}

/* n, scaled by the upper half of a hash as a fraction. */
static inline size_t hash_scaled(uint64_t hash, size_t n) {
  return (size_t)(((hash >> 32) * n) >> 32);
}

#endif
