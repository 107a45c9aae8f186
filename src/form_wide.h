/* form_wide.h - the writers of form.h by the width of the processor's registers.
**
**     to = write_run(f, t, b, &i, to, found);      like write_kept, with room for `found` ids
*/
#ifndef FORM_WIDE_H
#define FORM_WIDE_H

#include "form.h"

#ifdef HAVE_AVX2
/* What the upper bits of kept ids take to be moved where they belong, eight ids at a time. */
typedef struct high_parts {
  __m256i word, shift, mask;
  size_t bytes;
} high_parts;

AVX2_TARGET static ALWAYS_INLINE high_parts avx2_high_parts(const piece_table *t) {
  const __m256i at = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                        _mm256_set1_epi32((int)t->high_bits));
  return (high_parts){.word = _mm256_srli_epi32(at, 5),
                      .shift = _mm256_and_si256(at, _mm256_set1_epi32(31)),
                      .mask = _mm256_set1_epi32((1 << t->high_bits) - 1),
                      .bytes = t->high_bits};
}

/* Writes the n ids at `packed`, and up to 7 more. */
AVX2_TARGET static ALWAYS_INLINE void avx2_write_ids(uint8_t *to, const uint8_t *packed, size_t n,
                                                     const high_parts *h) {
  const uint8_t *highs = packed + 2 * n;
  for (size_t k = 0; k < n; k += 8, highs += h->bytes) {
    int64_t words;
    memcpy(&words, highs, sizeof words);
    const __m256i high = _mm256_srlv_epi32(
        _mm256_permutevar8x32_epi32(_mm256_set1_epi64x(words), h->word), h->shift);
    const __m256i low =
        _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(packed + 2 * k)));
    const __m256i ids =
        _mm256_or_si256(low, _mm256_slli_epi32(_mm256_and_si256(high, h->mask), 16));
    _mm256_storeu_si256((__m256i *)(void *)(to + 4 * k), ids);
  }
}

/* write_kept for FORM_32. Pieces of one id come in runs: eight values are looked at, and written as
** they are, as many as they may be; then the piece that ends the run. */
AVX2_TARGET static inline uint8_t *avx2_write_kept_32(const piece_table *t, const piece_batch *b,
                                                      size_t *at, uint8_t *to) {
  const uint32_t *const values = b->values;
  const __m256i ids_only = _mm256_set1_epi32((int)NO_IDS), one = _mm256_set1_epi32(1);
  const high_parts h = avx2_high_parts(t);
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
    const size_t n = pieces_count(value);
    avx2_write_ids(to, t->pool + (value & NO_IDS), n, &h);
    to += 4 * n;
    i++;
  }
}

/* Where ids are written that are to become text at `to`: behind the room for the text of `most`,
** which never reaches those not yet read. */
static ALWAYS_INLINE uint8_t *ids_behind(uint8_t *to, size_t most) {
  return to + (most_bytes[FORM_JSON] - 4) * most + FORM_SLACK / 2;
}

/* Writes n ids in decimal, four at a time, digits as write_decimal has them in a lane of 64 bits for
** each: seven, then a comma. */
AVX2_TARGET static inline uint8_t *avx2_write_decimals(uint8_t *to, const uint8_t *ids, size_t n) {
  const __m256i ten_thousand = _mm256_set1_epi64x(10000), most = _mm256_set1_epi64x(9999999);
  const __m256i divisor = _mm256_set1_epi64x(3518437209); /* 2^45 / 10,000, rounded up */
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const __m256i id =
        _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i *)(const void *)(ids + 4 * i)));
    if (_mm256_movemask_epi8(_mm256_cmpgt_epi64(id, most)) != 0) break;
    const __m256i upper = _mm256_srli_epi64(_mm256_mul_epu32(id, divisor), 45);
    const __m256i lower = _mm256_sub_epi64(id, _mm256_mul_epu32(upper, ten_thousand));
    const __m256i halves = _mm256_or_si256(upper, _mm256_slli_epi64(lower, 32));
    const __m256i hundreds =
        _mm256_srli_epi16(_mm256_mulhi_epu16(halves, _mm256_set1_epi16(10486)), 4);
    const __m256i units =
        _mm256_sub_epi16(halves, _mm256_mullo_epi16(hundreds, _mm256_set1_epi16(100)));
    const __m256i quarters = _mm256_or_si256(hundreds, _mm256_slli_epi32(units, 16));
    const __m256i tens =
        _mm256_srli_epi16(_mm256_mullo_epi16(quarters, _mm256_set1_epi16(103)), 10);
    const __m256i ones =
        _mm256_sub_epi16(quarters, _mm256_mullo_epi16(tens, _mm256_set1_epi16(10)));
    uint64_t digits[4];
    _mm256_storeu_si256((__m256i *)(void *)digits,
                        _mm256_srli_epi64(_mm256_or_si256(tens, _mm256_slli_epi16(ones, 8)), 8));
    for (int k = 0; k < 4; k++) {
      const unsigned zeros = (unsigned)__builtin_ctzll(digits[k] | UINT64_C(1) << 48) / 8;
      put_word(to, (digits[k] | UINT64_C(0x2c30303030303030)) >> 8 * zeros);
      to += 8 - zeros;
    }
  }
  for (; i < n; i++) {
    uint32_t id;
    memcpy(&id, ids + 4 * i, sizeof id);
    to = write_decimal(to, id);
  }
  return to;
}

/* write_kept for FORM_JSON, of at most `most` ids. */
AVX2_TARGET static inline uint8_t *avx2_write_kept_json(const piece_table *t, const piece_batch *b,
                                                        size_t *at, uint8_t *to, size_t most) {
  const uint8_t *const ids = ids_behind(to, most);
  const uint8_t *const end = avx2_write_kept_32(t, b, at, ids_behind(to, most));
  return avx2_write_decimals(to, ids, (size_t)(end - ids) / 4);
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
  const high_parts h = avx2_high_parts(t);
  size_t done = 0;
  for (size_t m = 0; m < n_several; m++) {
    const size_t k = several[m], own = pieces_count(values[k]);
    uint8_t *out = to + (size_t)4 * places[k];
    uint8_t *single = out - 4 * (k - done);
    for (; done < k; done += 16, single += 64)
      _mm512_storeu_si512(single, _mm512_loadu_si512(ids + done));
    done = k + 1;
    avx2_write_ids(out, pool + ids[k], own, &h);
  }
  if (n == 0) return to;
  uint8_t *const end = to + (size_t)4 * (places[n - 1] + pieces_count(values[n - 1]));
  uint8_t *single = end - 4 * (n - done);
  for (; done < n; done += 16, single += 64)
    _mm512_storeu_si512(single, _mm512_loadu_si512(ids + done));
  return end;
}

/* The same, eight at a time. Bytes from the first digit that is not 0 on, at the latest from the
** last digit, are moved together. */
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

/* write_kept for FORM_JSON, of at most `most` ids. */
AVX512_TARGET static inline uint8_t *avx512_write_kept_json(const piece_table *t,
                                                            const piece_batch *b, size_t *at,
                                                            uint8_t *to, size_t most) {
  const uint8_t *const ids = ids_behind(to, most);
  const uint8_t *const end = avx512_write_kept_32(t, b, at, ids_behind(to, most));
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
  if (f == FORM_JSON && t->width != WIDTH_16) return avx2_write_kept_json(t, b, at, to, most);
#endif
  return f == FORM_32 ? write_kept_32(t, b, at, to) : write_kept(f, t, b, at, to);
}

#endif
