/* lanes.c - see lanes.h. */
#include "lanes.h"

enum { COLUMNS_FEWEST = 7 }; /* jobs that are worth columns */

#define NO_KEY (BPE_NONE << SHORT_PLACE_BITS) /* no pair: this, or more */

/* An id that fits a pair's word and is in no pair. */
#define NO_SYMBOL ((UINT32_C(1) << PAIR_ID_BITS) - 1)

static ALWAYS_INLINE uint32_t id_of(const pair_map *m, uint32_t order) {
  return m->regular ? order + m->first_id : m->merges[order].id;
}

/* The line where a pair may be; where the bitmap says that it is in none, the empty one, without a
** branch that would be guessed wrong half the time. */
static ALWAYS_INLINE const uint64_t *ask(const pair_map *m, uint32_t left, uint32_t right) {
  const uint64_t h = hash_two(left, right), bit = pair_map_bit(m, h);
  const uint64_t may_be = m->filter[bit / 64] >> bit % 64 & 1;
  const size_t empty = m->n_lines, at = empty ^ ((empty ^ pair_map_line(m, h)) & (0 - may_be));
  const uint64_t *line = m->lines + at * PAIR_LINE;
  PREFETCH(line);
  return line;
}

/* The key of a pair, found in its line at `in`, or, where that is none and full, behind it. */
static ALWAYS_INLINE uint32_t key_found(const pair_map *m, const uint64_t *line, unsigned in,
                                        uint64_t pair, unsigned place) {
  const uint32_t none = 0 - (uint32_t)(in >> 3);
  const uint32_t order = (uint32_t)line[in & 7] & PAIR_NO_ORDER;
  if ((line[PAIR_LINE - 1] & none) != none) {
    uint32_t id;
    const uint32_t left = (uint32_t)(pair >> (PAIR_ID_BITS + PAIR_ORDER_BITS));
    const uint32_t right = (uint32_t)(pair >> PAIR_ORDER_BITS) & NO_SYMBOL;
    return pair_map_find(m, left, right, &id) << SHORT_PLACE_BITS | place;
  }
  return order << SHORT_PLACE_BITS | place | none;
}

/* Begins a piece: its symbols, and the keys of their pairs. */
static ALWAYS_INLINE void start(const vocab *v, lane *l, merge_job *j) {
  const uint8_t *const s = j->s;
  size_t n = j->len;
  l->job = j;
  l->n_keys = (n + 15) & ~(size_t)15;
  memset(l->key, 0xff, l->n_keys * sizeof *l->key);
  if (v->chars) {
    uint32_t to[SHORT_PIECE];
    pace never = {0}; /* a short piece */
    n = merge_start(v, s, n, l->symbol + 1, l->key + 1, to, &never);
    for (size_t i = 1; i < n; i++) l->key[i] = l->key[i] << SHORT_PLACE_BITS | (uint32_t)i;
  } else {
    for (size_t i = 0; i < n; i++) l->symbol[i + 1] = v->byte_ids[s[i]];
    for (size_t i = 1; i < n; i++)
      l->key[i] = v->byte_pairs[s[i - 1] << 8 | s[i]].order << SHORT_PLACE_BITS | (uint32_t)i;
  }
  l->symbol[0] = l->symbol[n + 1] = NO_SYMBOL;
  l->live = ~UINT64_C(0) >> (SHORT_PIECE - n);
}

static ALWAYS_INLINE void finish(lane *l) {
  merge_job *j = l->job;
  j->n = (size_t)__builtin_popcountll(l->live) - 2;
  if (j->ids == NULL) return;
  uint64_t rest = l->live & (l->live - 1); /* without place 0 */
  for (size_t i = 0; i < j->n; i++, rest &= rest - 1) j->ids[i] = l->symbol[__builtin_ctzll(rest)];
}

#ifdef HAVE_AVX2
AVX2_TARGET static ALWAYS_INLINE uint32_t avx2_least(const uint32_t *keys, size_t n) {
  const __m256i *const at = (const __m256i *)(const void *)keys;
  __m256i least = _mm256_min_epu32(_mm256_loadu_si256(at), _mm256_loadu_si256(at + 1));
  for (size_t i = 2; i < n / 8; i++) least = _mm256_min_epu32(least, _mm256_loadu_si256(at + i));
  __m128i four = _mm_min_epu32(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));
  four = _mm_min_epu32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_min_epu32(four, _mm_shuffle_epi32(four, 0xb1));
  return (uint32_t)_mm_cvtsi128_si32(four);
}

AVX2_TARGET static ALWAYS_INLINE unsigned avx2_search(const uint64_t *line, uint64_t pair) {
  const __m256i *const at = (const __m256i *)(const void *)line;
  const __m256i key = _mm256_set1_epi64x((long long)pair), zero = _mm256_setzero_si256();
  const __m256i a =
      _mm256_srli_epi64(_mm256_xor_si256(_mm256_loadu_si256(at), key), PAIR_ORDER_BITS);
  const __m256i b =
      _mm256_srli_epi64(_mm256_xor_si256(_mm256_loadu_si256(at + 1), key), PAIR_ORDER_BITS);
  const int low = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(a, zero)));
  const int high = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(b, zero)));
  return (unsigned)__builtin_ctz((unsigned)low | (unsigned)high << 4 | 1u << PAIR_LINE);
}

/* Joins the two symbols of the least key and asks for the pairs that they are in now. False: no pair
** is left. */
AVX2_TARGET static ALWAYS_INLINE bool avx2_step(const pair_map *m, lane *l) {
  const uint32_t first = avx2_least(l->key, l->n_keys);
  if (first >= NO_KEY) return false;
  const unsigned at = first & ((1u << SHORT_PLACE_BITS) - 1);
  const uint32_t made = id_of(m, first >> SHORT_PLACE_BITS);
  const unsigned gone = at + 1 + (unsigned)__builtin_ctzll(l->live >> at >> 1);
  const unsigned after = gone + 1 + (unsigned)__builtin_ctzll(l->live >> gone >> 1);
  const unsigned before = 63 - (unsigned)__builtin_clzll(l->live & ((UINT64_C(1) << at) - 1));
  const uint32_t left = l->symbol[before], right = l->symbol[after];
  l->symbol[at] = made;
  l->key[gone] = BPE_NONE;
  l->live &= ~(UINT64_C(1) << gone);
  l->at = at;
  l->before = before;
  l->right = pair_word(made, right);
  l->left = pair_word(left, made);
  l->right_line = ask(m, made, right);
  l->left_line = ask(m, left, made);
  return true;
}

/* Begins the next piece that has something to merge, and finishes those before it. */
AVX2_TARGET static bool avx2_refill(const vocab *v, lane *l, merge_job **next,
                                    const merge_job *stop) {
  while (*next < stop) {
    start(v, l, (*next)++);
    if (avx2_step(&v->pairs, l)) return true;
    finish(l);
  }
  return false;
}

/* What the last step asked for, of all pieces, then the next step of each, or of the next piece. */
AVX2_TARGET static void avx2_merge(const vocab *v, lanes_room *room, merge_job *jobs, size_t n) {
  const pair_map *m = &v->pairs;
  const merge_job *const stop = jobs + n;
  lane *turn[LANES];
  size_t busy = 0;
  while (busy < LANES && avx2_refill(v, &room->lanes[busy], &jobs, stop)) {
    turn[busy] = &room->lanes[busy];
    busy++;
  }
  while (busy != 0) {
    for (size_t i = 0; i < busy; i++) {
      lane *l = turn[i];
      const unsigned right = avx2_search(l->right_line, l->right);
      const unsigned left = avx2_search(l->left_line, l->left);
      l->key[l->at] = key_found(m, l->right_line, right, l->right, l->at);
      l->key[l->before] = key_found(m, l->left_line, left, l->left, l->before);
    }
    for (size_t i = 0; i < busy;) {
      lane *l = turn[i];
      bool goes_on = avx2_step(m, l);
      if (!goes_on) {
        finish(l);
        goes_on = avx2_refill(v, l, &jobs, stop);
      }
      if (goes_on) i++;
      else turn[i] = turn[--busy];
    }
  }
}
#endif

#ifdef HAVE_AVX512
static void avx512_merge(const vocab *v, lanes_room *room, merge_job *jobs, size_t n) {
  if (n < COLUMNS_FEWEST) avx2_merge(v, room, jobs, n);
  else columns_merge(v, &room->columns, jobs, n);
}
#endif

static const struct variant {
  const char *name;
  lanes_merge *merge;
  bool (*runs)(void);
} variants[] = {
#ifdef HAVE_AVX512
    {"avx512", avx512_merge, avx512_runs},
#endif
#ifdef HAVE_AVX2
    {"avx2", avx2_merge, avx2_runs},
#endif
    {NULL, NULL, NULL},
};

lanes_merge *lanes_best(void) {
  int i = 0;
  while (variants[i].name != NULL && !variants[i].runs()) i++;
  return variants[i].merge;
}

lanes_merge *lanes_named(const char *name) {
  for (int i = 0; variants[i].name != NULL; i++)
    if (strcmp(variants[i].name, name) == 0 && variants[i].runs()) return variants[i].merge;
  return NULL;
}
