/* random.h - numbers that look random and come again with the seed.
**
**     uint64_t state = random_seed(7);
**     const uint32_t die = 1 + random_below(&state, 6);
*/
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

#include <stdint.h>

/* 0 .. n - 1; xorshift64*, whose state is never 0. */
static inline uint32_t random_below(uint64_t *state, uint32_t n) {
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return (uint32_t)(((x * UINT64_C(0x2545f4914f6cdd1d)) >> 32) * n >> 32);
}

/* Near seeds give far states. */
static inline uint64_t random_seed(uint64_t seed) {
  uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15);
  state ^= state >> 29;
  if (state == 0) state = UINT64_C(0x9e3779b97f4a7c15);
  for (int i = 0; i < 8; i++) random_below(&state, 2);
  return state;
}

#endif
