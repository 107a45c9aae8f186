/* map.c - making and freeing the table of map.h; looking up is inline there. */
#include "map.h"

bool pair_map_init(pair_map *m, const bpe_alloc *a, size_t n_keys) {
  const size_t n = n_keys > SIZE_MAX / 2 ? 0 : power_of_two(2 * n_keys, 64);
  m->slots = n == 0 ? NULL : mem_new(a, n, sizeof *m->slots);
  m->filter = n == 0 ? NULL : mem_zero(a, n / 64 * FILTER_BITS, sizeof *m->filter);
  if (m->slots == NULL || m->filter == NULL) return false;
  memset(m->slots, 0xff, n * sizeof *m->slots); /* every left = BPE_NONE */
  m->mask = n - 1;
  return true;
}

void pair_map_clear(pair_map *m, const bpe_alloc *a) {
  mem_free(a, m->slots);
  mem_free(a, m->filter);
  *m = (pair_map){0};
}

bool pair_map_add(pair_map *m, pair_slot pair) {
  const uint64_t h = hash_pair(pair.left, pair.right);
  pair_slot *slot = pair_map_slot(m, h, pair.left, pair.right);
  if (slot->left != BPE_NONE) return false;
  *slot = pair;
  const size_t bit = (size_t)(h >> 24) & (m->mask * FILTER_BITS + FILTER_BITS - 1);
  m->filter[bit / 64] |= UINT64_C(1) << bit % 64;
  return true;
}
