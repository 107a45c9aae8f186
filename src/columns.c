/* columns.c - see columns.h. */
#include "columns.h"

#ifdef HAVE_AVX512

#define NO_KEY (BPE_NONE << SHORT_PLACE_BITS) /* no pair: this, or more */

/* An id that fits a pair's word and is in no pair. */
#define NO_SYMBOL ((UINT32_C(1) << PAIR_ID_BITS) - 1)

/* Begins a piece in column i, where no pair is left: its symbols, the keys of their pairs, and
** nothing asked for yet. */
static ALWAYS_INLINE void start(const vocab *v, columns *c, unsigned i, merge_job *j) {
  const uint8_t *const s = j->s;
  size_t n = j->len;
  c->job[i] = j;
  if (v->chars) {
    uint32_t ids[SHORT_PIECE], orders[SHORT_PIECE], to[SHORT_PIECE];
    pace never = {0}; /* a short piece */
    n = merge_start(v, s, n, ids, orders, to, &never);
    for (size_t k = 0; k < n; k++) c->symbol[k + 1][i] = ids[k];
    for (size_t k = 1; k < n; k++) c->key[k][i] = orders[k - 1] << SHORT_PLACE_BITS | (uint32_t)k;
  } else {
    c->symbol[1][i] = v->byte_ids[s[0]];
    for (size_t k = 1; k < n; k++) {
      const uint32_t order = v->byte_pairs[s[k - 1] << 8 | s[k]].order;
      c->symbol[k + 1][i] = v->byte_ids[s[k]];
      c->key[k][i] = order << SHORT_PLACE_BITS | (uint32_t)k;
    }
  }
  c->symbol[0][i] = c->symbol[n + 1][i] = NO_SYMBOL;
  c->live[i] = ~UINT64_C(0) >> (SHORT_PIECE - n);
  c->at[i] = c->before[i] = 0;
  c->right[i] = c->left[i] = 0; /* in the empty line there is no pair at all */
  c->right_line[i] = c->left_line[i] = v->pairs.lines + v->pairs.n_lines * PAIR_LINE;
}

static ALWAYS_INLINE void finish(columns *c, unsigned i) {
  merge_job *j = c->job[i];
  j->n = (size_t)__builtin_popcountll(c->live[i]) - 2;
  if (j->ids == NULL) return;
  uint64_t rest = c->live[i] & (c->live[i] - 1); /* without place 0 */
  for (size_t k = 0; k < j->n; k++, rest &= rest - 1)
    j->ids[k] = c->symbol[__builtin_ctzll(rest)][i];
}

/* The lines where eight pairs may be; where the bitmap says that one is in none, the empty one. */
AVX512_TARGET static ALWAYS_INLINE __m512i ask(const pair_map *m, __m512i left, __m512i right) {
  const __m512i h =
      _mm512_xor_si512(_mm512_mullo_epi64(left, _mm512_set1_epi64((long long)hash_secret.a)),
                       _mm512_mullo_epi64(right, _mm512_set1_epi64((long long)hash_secret.b)));
  const __m512i bit =
      _mm512_and_si512(_mm512_srli_epi64(h, 24), _mm512_set1_epi64((long long)m->filter_mask));
  const __m512i words = _mm512_i64gather_epi64(_mm512_srli_epi64(bit, 6), m->filter, 8);
  const __m512i shift = _mm512_and_si512(bit, _mm512_set1_epi64(63));
  const __mmask8 may_be =
      _mm512_test_epi64_mask(_mm512_srlv_epi64(words, shift), _mm512_set1_epi64(1));
  const __m512i n = _mm512_set1_epi64((long long)m->n_lines);
  const __m512i line = _mm512_srli_epi64(_mm512_mul_epu32(_mm512_srli_epi64(h, 32), n), 32);
  return _mm512_add_epi64(_mm512_set1_epi64((long long)(uintptr_t)m->lines),
                          _mm512_slli_epi64(_mm512_mask_mov_epi64(n, may_be, line), 6));
}

AVX512_TARGET static ALWAYS_INLINE __m512i number_of(__m512i bit) {
  return _mm512_sub_epi64(_mm512_set1_epi64(63), _mm512_lzcnt_epi64(bit));
}

AVX512_TARGET static ALWAYS_INLINE __m512i word_of(__m512i left, __m512i right) {
  return _mm512_slli_epi64(_mm512_or_si512(_mm512_slli_epi64(left, PAIR_ID_BITS), right),
                           PAIR_ORDER_BITS);
}

/* Of eight columns from `from` on: which symbols are joined, and the pairs of what they become.
** goes: where there are any; elsewhere nothing is changed that is looked at again. */
AVX512_TARGET static ALWAYS_INLINE void step_half(const pair_map *m, columns *c, unsigned from,
                                                  __mmask8 goes) {
  const __m512i one = _mm512_set1_epi64(1), zero = _mm512_setzero_si512();
  const __m512i column = _mm512_add_epi64(_mm512_set1_epi64((long long)from),
                                          _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7));
  const __m512i at =
      _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(c->at + from)));
  const __m512i made =
      _mm512_cvtepu32_epi64(_mm256_loadu_si256((const __m256i *)(const void *)(c->made + from)));
  const __m512i live = _mm512_loadu_si512(c->live + from);
  const __m512i bit = _mm512_sllv_epi64(one, at);
  const __m512i above =
      _mm512_andnot_si512(_mm512_sub_epi64(_mm512_add_epi64(bit, bit), one), live);
  const __m512i gone = _mm512_and_si512(above, _mm512_sub_epi64(zero, above));
  const __m512i rest = _mm512_xor_si512(above, gone);
  const __m512i after = number_of(_mm512_and_si512(rest, _mm512_sub_epi64(zero, rest)));
  const __m512i before =
      number_of(_mm512_or_si512(one, _mm512_and_si512(live, _mm512_sub_epi64(bit, one))));
  const __m512i left = _mm512_cvtepu32_epi64(
      _mm512_i64gather_epi32(_mm512_add_epi64(_mm512_slli_epi64(before, 4), column), c->symbol, 4));
  const __m512i right = _mm512_cvtepu32_epi64(
      _mm512_i64gather_epi32(_mm512_add_epi64(_mm512_slli_epi64(after, 4), column), c->symbol, 4));
  _mm512_storeu_si512(c->live + from, _mm512_mask_andnot_epi64(live, goes, gone, live));
  _mm256_storeu_si256((__m256i *)(void *)(c->before + from), _mm512_cvtepi64_epi32(before));
  _mm256_storeu_si256((__m256i *)(void *)(c->gone + from), _mm512_cvtepi64_epi32(number_of(gone)));
  _mm512_storeu_si512(c->right + from, word_of(made, right));
  _mm512_storeu_si512(c->left + from, word_of(left, made));
  _mm512_storeu_si512(c->right_line + from, ask(m, made, right));
  _mm512_storeu_si512(c->left_line + from, ask(m, left, made));
}

/* Joins the two symbols of the least key of each column, and asks for the pairs that they are in
** now. Returns which columns had a pair. */
AVX512_TARGET static ALWAYS_INLINE unsigned step(const pair_map *m, columns *c, size_t rows,
                                                 const unsigned *busy, size_t n) {
  __m512i least = _mm512_loadu_si512(c->key[1]);
  for (size_t r = 2; r < rows; r++) least = _mm512_min_epu32(least, _mm512_loadu_si512(c->key[r]));
  const __mmask16 goes = _mm512_cmplt_epu32_mask(least, _mm512_set1_epi32((int)NO_KEY));
  const __m512i first = _mm512_maskz_mov_epi32(goes, least);
  const __m512i order = _mm512_srli_epi32(first, SHORT_PLACE_BITS);
  const __m512i made = m->regular
                           ? _mm512_add_epi32(order, _mm512_set1_epi32((int)m->first_id))
                           : _mm512_i32gather_epi32(_mm512_slli_epi32(order, 2), &m->merges->id, 4);
  _mm512_storeu_si512(c->made, made);
  _mm512_storeu_si512(c->at,
                      _mm512_and_si512(first, _mm512_set1_epi32((1 << SHORT_PLACE_BITS) - 1)));
  step_half(m, c, 0, (__mmask8)goes);
  if (busy[n - 1] >= LANES / 2) step_half(m, c, LANES / 2, (__mmask8)(goes >> LANES / 2));
  for (size_t k = 0; k < n; k++) {
    const unsigned i = busy[k];
    PREFETCH(c->right_line[i]);
    PREFETCH(c->left_line[i]);
    c->symbol[c->at[i]][i] = c->made[i];
    c->key[c->gone[i]][i] = BPE_NONE;
  }
  return goes;
}

/* The key of a pair, found in its line or, where that is full and has it not, behind it. */
AVX512_TARGET static ALWAYS_INLINE uint32_t key_of(const pair_map *m, const uint64_t *line,
                                                   uint64_t pair, uint32_t place) {
  const __m512i slots = _mm512_loadu_si512((const void *)line);
  const __m512i other = _mm512_xor_si512(slots, _mm512_set1_epi64((long long)pair));
  const __mmask8 same = _mm512_cmplt_epu64_mask(other, _mm512_set1_epi64(1 << PAIR_ORDER_BITS));
  const __m512i it = _mm512_mask_compress_epi64(_mm512_set1_epi64(-1), same, slots);
  const uint32_t found = (uint32_t)_mm_cvtsi128_si32(_mm512_castsi512_si128(it));
  const uint32_t none = 0 - (uint32_t)(found == UINT32_MAX); /* no slot has all these bits */
  if ((line[PAIR_LINE - 1] & none) != none) {
    const uint32_t left = (uint32_t)(pair >> (PAIR_ID_BITS + PAIR_ORDER_BITS));
    uint32_t id;
    return pair_map_find(m, left, (uint32_t)(pair >> PAIR_ORDER_BITS) & NO_SYMBOL, &id)
               << SHORT_PLACE_BITS |
           place;
  }
  return (found & PAIR_NO_ORDER) << SHORT_PLACE_BITS | place | none;
}

/* Finds the pairs that the last step asked for. */
AVX512_TARGET static ALWAYS_INLINE void answer(const pair_map *m, columns *c, const unsigned *busy,
                                               size_t n) {
  for (size_t k = 0; k < n; k++) {
    const unsigned i = busy[k];
    c->key[c->at[i]][i] = key_of(m, c->right_line[i], c->right[i], c->at[i]);
    c->key[c->before[i]][i] = key_of(m, c->left_line[i], c->left[i], c->before[i]);
  }
}

/* Where column i was: the next piece, or none. */
static ALWAYS_INLINE bool refill(const vocab *v, columns *c, unsigned i, merge_job **next,
                                 const merge_job *stop) {
  finish(c, i);
  if (*next == stop) return false;
  start(v, c, i, (*next)++);
  return true;
}

AVX512_TARGET void columns_merge(const vocab *v, columns *c, merge_job *jobs, size_t n) {
  const merge_job *const stop = jobs + n;
  unsigned busy[LANES], mine;
  size_t rows = 2; /* that any piece has a key in, and row 0 */
  for (size_t i = 0; i < n; i++) rows = jobs[i].len > rows ? jobs[i].len : rows;
  memset(c->key, 0xff, rows * sizeof *c->key);
  for (size_t i = 0; i < LANES; i++) c->live[i] = 7; /* of those without a piece: one symbol */
  for (n = 0; n < LANES && jobs < stop; n++) start(v, c, busy[n] = (unsigned)n, jobs++);
  mine = (1u << n) - 1;
  while (n != 0) {
    unsigned done = mine & ~step(&v->pairs, c, rows, busy, n);
    if (done != 0) {
      for (; done != 0; done &= done - 1) {
        const unsigned i = (unsigned)__builtin_ctz(done);
        if (!refill(v, c, i, &jobs, stop)) mine &= ~(1u << i);
      }
      n = 0;
      for (unsigned rest = mine; rest != 0; rest &= rest - 1)
        busy[n++] = (unsigned)__builtin_ctz(rest);
    }
    answer(&v->pairs, c, busy, n);
  }
}
#endif
