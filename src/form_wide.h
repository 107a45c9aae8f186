/* form_wide.h - the writers of form.h by the width of the processor's registers.
**
**     to = write_run(f, t, b, &i, to, found);      like write_kept, with room for `found` ids
*/
#ifndef FORM_WIDE_H
#define FORM_WIDE_H

#include "form.h"

#ifdef HAVE_AVX2
/* The same. Pieces of one id come in runs: eight values are looked at, and written as they are, as
** many as they may be; then the piece that ends the run. */
AVX2_TARGET static inline uint8_t *avx2_write_kept_32(const piece_table *t, const piece_batch *b,
                                                      size_t *at, uint8_t *to) {
  const uint8_t *const pool = t->pool;
  const uint32_t *const values = b->values;
  const __m256i ids_only = _mm256_set1_epi32((int)NO_IDS), one = _mm256_set1_epi32(1);
  const __m128i high_only = _mm_set1_epi32((1 << t->high_bits) - 1);
  const __m128i shifts =
      _mm_mullo_epi32(_mm_setr_epi32(0, 1, 2, 3), _mm_set1_epi32((int)t->high_bits));
  for (size_t i = *at;;) {
    const __m256i eight = _mm256_loadu_si256((const __m256i *)(const void *)(values + i));
    const __m256i ids = _mm256_and_si256(eight, ids_only);
    const __m256i single =
        _mm256_andnot_si256(_mm256_cmpeq_epi32(ids, ids_only),
                            _mm256_cmpeq_epi32(_mm256_srli_epi32(eight, VALUE_BITS), one));
    const unsigned others = ~(unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(single));
    const unsigned run = (unsigned)__builtin_ctz(others); /* at most 8 */
    _mm256_storeu_si256((__m256i *)(void *)to, ids);
    to += (size_t)4 * run;
    i += run;
    if (run == 8) continue;
    const uint32_t value = values[i]; /* behind the last piece: 0 */
    if (!pieces_has_ids(value)) {
      *at = i;
      return to;
    }
    const uint8_t *const packed = pool + (value & NO_IDS);
    const size_t n = pieces_count(value);
    const __m128i low = _mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i *)(const void *)packed));
    int32_t word;
    memcpy(&word, packed + 2 * n, sizeof word);
    const __m128i high = _mm_and_si128(_mm_srlv_epi32(_mm_set1_epi32(word), shifts), high_only);
    _mm_storeu_si128((__m128i *)(void *)to, _mm_or_si128(low, _mm_slli_epi32(high, 16)));
    for (size_t k = 4; k < n; k++) write_32(to + 4 * k, kept_id(t, packed, n, k));
    to += 4 * n;
    i++;
  }
}
#endif

#ifdef HAVE_AVX512
/* The same, without a branch on what a piece has. Where the ids of each go is told by adding up
** the numbers of ids, sixteen pieces at a time, which also lists those that have several. Then
** for each of these the single ids before it are written, sixteen whatever their number, and its
** own, eight whatever theirs: what is too much is written over by what comes behind. */
AVX512_TARGET static inline uint8_t *
avx512_write_kept_32(const piece_table *t, const piece_batch *b, size_t *at, uint8_t *to) {
  uint32_t ids[PIECES_BATCH + 32], places[PIECES_BATCH + 16], several[PIECES_BATCH + 16];
  const uint8_t *const pool = t->pool;
  const uint32_t *const values = b->values + *at;
  const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi32(1);
  const __m512i ids_only = _mm512_set1_epi32((int)NO_IDS), last = _mm512_set1_epi32(15);
  __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i before = zero;
  size_t n = 0, n_several = 0;
  for (unsigned run = 16; run == 16; n += run) {
    const __m512i v = _mm512_loadu_si512(values + n);
    const __m512i rest = _mm512_and_si512(v, ids_only), counts = _mm512_srli_epi32(v, VALUE_BITS);
    const unsigned kept = _mm512_test_epi32_mask(v, v) & _mm512_cmpneq_epi32_mask(rest, ids_only);
    __m512i sums = counts;
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 15));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 14));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 12));
    sums = _mm512_add_epi32(sums, _mm512_alignr_epi32(sums, zero, 8));
    sums = _mm512_add_epi32(sums, before);
    run = (unsigned)__builtin_ctz(~kept); /* at most 16 */
    const unsigned more = _mm512_cmpgt_epu32_mask(counts, one) & ((1u << run) - 1);
    _mm512_storeu_si512(ids + n, rest);
    _mm512_storeu_si512(places + n, _mm512_sub_epi32(sums, counts));
    _mm512_storeu_si512(several + n_several, _mm512_maskz_compress_epi32((__mmask16)more, numbers));
    n_several += (unsigned)__builtin_popcount(more);
    numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(16));
    before = _mm512_permutexvar_epi32(last, sums);
  }
  *at += n;
  const __m256i high_only = _mm256_set1_epi32((1 << t->high_bits) - 1);
  const __m256i eighth = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i bits = _mm256_mullo_epi32(eighth, _mm256_set1_epi32((int)t->high_bits));
  const __m256i words = _mm256_srli_epi32(bits, 5);
  const __m256i shifts = _mm256_and_si256(bits, _mm256_set1_epi32(31));
  size_t done = 0;
  for (size_t m = 0; m < n_several; m++) {
    const size_t k = several[m], own = pieces_count(values[k]);
    uint8_t *out = to + (size_t)4 * places[k];
    uint8_t *single = out - 4 * (k - done);
    for (; done < k; done += 16, single += 64)
      _mm512_storeu_si512(single, _mm512_loadu_si512(ids + done));
    done = k + 1;
    const uint8_t *const packed = pool + ids[k];
    const __m256i low =
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)packed));
    int64_t high_word;
    memcpy(&high_word, packed + 2 * own, sizeof high_word);
    const __m256i high = _mm256_and_si256(
        _mm256_srlv_epi32(_mm256_permutevar8x32_epi32(_mm256_set1_epi64x(high_word), words),
                          shifts),
        high_only);
    _mm256_storeu_si256((__m256i *)(void *)out, _mm256_or_si256(low, _mm256_slli_epi32(high, 16)));
    for (size_t j = 8; j < own; j++) write_32(out + 4 * j, kept_id(t, packed, own, j));
  }
  if (n == 0) return to;
  uint8_t *const end = to + (size_t)4 * (places[n - 1] + pieces_count(values[n - 1]));
  uint8_t *single = end - 4 * (n - done);
  for (; done < n; done += 16, single += 64)
    _mm512_storeu_si512(single, _mm512_loadu_si512(ids + done));
  return end;
}

/* Writes n ids in decimal, eight at a time, digits as write_decimal has them in a lane of 64 bits
** for each: seven, then a comma. Bytes from the first digit that is not 0 on, at the latest from
** the last digit, are moved together. ids may lie behind what is written, as far as said below. */
AVX512_TARGET static inline uint8_t *avx512_write_decimals(uint8_t *to, const uint8_t *ids,
                                                           size_t n) {
  const __m512i ten_thousand = _mm512_set1_epi64(10000), too_many = _mm512_set1_epi64(9999999);
  const __m512i text = _mm512_set1_epi64(0x2c30303030303030);
  for (size_t i = 0; i < n; i += 8) {
    const unsigned eight = n - i < 8 ? (unsigned)(n - i) : 8;
    const __mmask8 lanes = (__mmask8)((1u << eight) - 1);
    const __m512i id = _mm512_cvtepu32_epi64(_mm256_maskz_loadu_epi32(lanes, ids + 4 * i));
    if (_mm512_cmpgt_epu64_mask(id, too_many) != 0) {
      for (size_t k = i; k < i + eight; k++) {
        uint32_t one;
        memcpy(&one, ids + 4 * k, sizeof one);
        to = write_decimal(to, one);
      }
      continue;
    }
    const __m512i upper =
        _mm512_srli_epi64(_mm512_mul_epu32(id, _mm512_set1_epi64(3518437209)), 45);
    const __m512i lower = _mm512_sub_epi64(id, _mm512_mul_epu32(upper, ten_thousand));
    const __m512i halves = _mm512_or_si512(upper, _mm512_slli_epi64(lower, 32));
    const __m512i hundreds =
        _mm512_srli_epi16(_mm512_mulhi_epu16(halves, _mm512_set1_epi16(10486)), 4);
    const __m512i units =
        _mm512_sub_epi16(halves, _mm512_mullo_epi16(hundreds, _mm512_set1_epi16(100)));
    const __m512i quarters = _mm512_or_si512(hundreds, _mm512_slli_epi32(units, 16));
    const __m512i tens =
        _mm512_srli_epi16(_mm512_mullo_epi16(quarters, _mm512_set1_epi16(103)), 10);
    const __m512i ones =
        _mm512_sub_epi16(quarters, _mm512_mullo_epi16(tens, _mm512_set1_epi16(10)));
    const __m512i digits = _mm512_srli_epi64(_mm512_or_si512(tens, _mm512_slli_epi16(ones, 8)), 8);
    const uint64_t seen = _mm512_test_epi8_mask(digits, digits) | UINT64_C(0x4040404040404040);
    const uint64_t before = seen ^ (seen - UINT64_C(0x0101010101010101));
    const uint64_t keep = (seen | ~before) & UINT64_MAX >> (64 - 8 * eight);
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(keep, _mm512_or_si512(digits, text)));
    to += __builtin_popcountll(keep);
  }
  return to;
}

/* write_kept for FORM_JSON, of at most `most` ids. They are first written behind the room for
** their text, 11 bytes each; text never reaches those not yet read. */
AVX512_TARGET static inline uint8_t *avx512_write_kept_json(const piece_table *t,
                                                            const piece_batch *b, size_t *at,
                                                            uint8_t *to, size_t most) {
  uint8_t *const ids = to + (most_bytes[FORM_JSON] - 4) * most + FORM_SLACK / 2;
  const uint8_t *const end = avx512_write_kept_32(t, b, at, ids);
  return avx512_write_decimals(to, ids, (size_t)(end - ids) / 4);
}
#endif

/* write_kept for what this processor can do. most: ids that there is room for. */
static ALWAYS_INLINE uint8_t *write_run(form f, const piece_table *t, const piece_batch *b,
                                        size_t *at, uint8_t *to, size_t most) {
  (void)most;
#ifdef HAVE_AVX512
  if (f == FORM_32 && t->width == WIDTH_64) return avx512_write_kept_32(t, b, at, to);
  if (f == FORM_JSON && t->width == WIDTH_64) return avx512_write_kept_json(t, b, at, to, most);
#endif
#ifdef HAVE_AVX2
  if (f == FORM_32 && t->width != WIDTH_16) return avx2_write_kept_32(t, b, at, to);
#endif
  return f == FORM_32 ? write_kept_32(t, b, at, to) : write_kept(f, t, b, at, to);
}

#endif
