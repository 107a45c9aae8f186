/* map.c - making and freeing the table of map.h; looking up is inline there. */
#include "map.h"

enum {
  LINE_FILL = 5,    /* pairs for each line of PAIR_LINE, on average */
  EMPTIED = 1 << 12 /* lines at a time */
};

bpe_status pair_map_init(pair_map *m, const bpe_alloc *a, const vocab_merge *merges, size_t n,
                         uint32_t most_id, pace *p, bpe_error *e) {
  *m = (pair_map){.merges = merges, .regular = true, .n_lines = n / LINE_FILL + 1};
  if (n > UINT32_MAX) return set_nomem(e);
  const bool narrow = most_id < (UINT32_C(1) << PAIR_ID_BITS) - 1 && n < PAIR_NO_ORDER;
  const size_t bytes = PAIR_LINE * (narrow ? sizeof *m->lines : sizeof *m->slots);
  const size_t bits = power_of_two(FILTER_BITS * n, 64);
  m->block = mem_new(a, m->n_lines + 2, bytes);
  if (m->block == NULL) return set_nomem(e);
  mem_all_used(m->block, (m->n_lines + 2) * bytes);
  m->filter = pace_zero(p, a, bits / 64, sizeof *m->filter, e);
  if (m->filter == NULL) return p->stopped ? BPE_STOPPED : BPE_NOMEM;
  m->filter_mask = bits - 1;
  uint8_t *at = cache_aligned(m->block);
  const size_t n_lines = m->n_lines + 1; /* and the one that stays empty */
  for (size_t i = 0; i < n_lines; i += EMPTIED) {
    const size_t some = n_lines - i < EMPTIED ? n_lines - i : EMPTIED;
    memset(at + i * bytes, 0xff, some * bytes);
    const bpe_status st = pace_add(p, some * bytes / 4, e);
    if (st != BPE_OK) return st;
  }
  if (narrow) m->lines = (uint64_t *)(void *)at;
  else m->slots = (pair_slot *)(void *)at;
  if (n != 0) m->first_id = merges[0].id;
  return BPE_OK;
}

void pair_map_clear(pair_map *m, const bpe_alloc *a) {
  mem_free(a, m->block);
  mem_free(a, m->filter);
  *m = (pair_map){0};
}

/* False: the pair is there already. */
static bool add_word(pair_map *m, uint64_t hash, uint64_t word) {
  for (size_t at = pair_map_line(m, hash);; at = at + 1 == m->n_lines ? 0 : at + 1) {
    uint64_t *line = m->lines + at * PAIR_LINE;
    for (int i = 0; i < PAIR_LINE; i++) {
      if ((line[i] ^ word) >> PAIR_ORDER_BITS == 0) return false;
      if (line[i] != UINT64_MAX) continue;
      line[i] = word;
      return true;
    }
  }
}

bool pair_map_add(pair_map *m, size_t i) {
  const vocab_merge *x = &m->merges[i];
  const uint64_t h = hash_two(x->left, x->right), bit = pair_map_bit(m, h);
  if (i == 0 || x->rank != x[-1].rank) m->order = (uint32_t)i;
  if (m->lines != NULL) {
    if (!add_word(m, h, pair_word(x->left, x->right) | m->order)) return false;
  } else {
    pair_slot *slot = pair_map_slot(m, h, x->left, x->right);
    if (slot->left != BPE_NONE) return false;
    *slot = (pair_slot){x->left, x->right, m->order, x->id};
  }
  if (x->id != m->order + m->first_id) m->regular = false;
  m->filter[bit / 64] |= UINT64_C(1) << bit % 64;
  return true;
}
