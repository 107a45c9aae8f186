/* hash.h - hashes that nobody can aim at who does not know this process.
**
** Texts and vocabularies come from anyone, and whoever can foretell where their pieces and tokens
** go in a table can have them all go to one place, which makes every search as long as the table.
** So the hashes have secret factors, which bpe_seed sets once. Where things stand in tables depends
** on them, and how long it takes to find them; no answer does.
**
** Two kinds of hash are built from them. Of a number or two, the upper half of a product with an
** odd factor: two given numbers agree in n upper bits for 2 in 2^n factors. Of more, the
** 128-bit product of what came so far with a factor, folded to 64 bits: unlike in a product cut to
** 64 bits, where the highest bit of what goes in stays the highest bit alone, no change of the
** input makes a change of the product that could be foretold and undone by the next word.
**
**     const uint64_t h = hash_bytes("hello", 5);
*/
#ifndef HASH_H
#define HASH_H

#include "base.h"

#include <string.h>

/* Random bits, the lowest of each set. */
typedef struct hash_factors {
  uint64_t a, b, c;
} hash_factors;

extern hash_factors hash_secret; /* constant once bpe_seed was called */

/* The two halves of the product, one over the other. */
static inline uint64_t hash_fold_plain(uint64_t x, uint64_t y) {
  const uint64_t x0 = (uint32_t)x, x1 = x >> 32, y0 = (uint32_t)y, y1 = y >> 32;
  const uint64_t low = x0 * y0, a = x1 * y0, b = x0 * y1, high = x1 * y1;
  const uint64_t middle = (low >> 32) + (uint32_t)a + (uint32_t)b;
  return (middle << 32 | (uint32_t)low) ^ (high + (a >> 32) + (b >> 32) + (middle >> 32));
}

/* The same. */
static inline uint64_t hash_fold(uint64_t x, uint64_t y) {
#if defined(__SIZEOF_INT128__) && !defined(PLAIN_C)
  __extension__ typedef unsigned __int128 wide;
  const wide z = (wide)x * y;
  return (uint64_t)z ^ (uint64_t)(z >> 64);
#else
  return hash_fold_plain(x, y);
#endif
}

/* Two words more of what is hashed. */
static inline uint64_t hash_step(uint64_t h, uint64_t first, uint64_t second) {
  return hash_fold(h ^ first, hash_secret.b ^ second);
}

/* What the hash of so many bytes begins with. */
static inline uint64_t hash_start(size_t len) {
  return hash_secret.c ^ len;
}

/* Goes on with the hash of bytes of which the last, 16 at most, are not yet at hand. */
static inline uint64_t hash_part(uint64_t h, const uint8_t *s, size_t n_16) {
  uint64_t w[2];
  for (; n_16 > 0; n_16--, s += 16) {
    memcpy(w, s, 16);
    h = hash_step(h, w[0], w[1]);
  }
  return h;
}

static inline uint64_t hash_end(uint64_t h, const uint8_t *s, size_t len) {
  uint64_t w[2] = {0, 0};
  memcpy(w, s, len);
  return hash_step(hash_step(h, w[0], w[1]), 0, 0);
}

/* Good in all bits. */
static inline uint64_t hash_bytes(const uint8_t *s, size_t len) {
  const size_t n = len == 0 ? 0 : (len - 1) / 16;
  return hash_end(hash_part(hash_start(len), s, n), s + 16 * n, len - 16 * n);
}

/* Of two numbers; good in its upper half. */
static inline uint64_t hash_two(uint64_t x, uint64_t y) {
  return x * hash_secret.a ^ y * hash_secret.b;
}

#endif
