/* block.c - bytes to bit masks, 64 at a time: in SSE2, AVX2, NEON, or plain 64-bit words.
**
** All variants compute the same masks. A range test on bytes is one subtraction and one unsigned
** comparison: x in [a, b] exactly if x - a <= b - a, modulo 256; SIMD has no unsigned byte
** comparison, but min(y, k) == y says y <= k.
*/
#include "block.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

static inline uint64_t sse2_mask(__m128i m, int at) {
  return (uint64_t)(uint32_t)_mm_movemask_epi8(m) << at;
}

static inline __m128i sse2_range(__m128i c, int low, int high) {
  const __m128i d = _mm_sub_epi8(c, _mm_set1_epi8((char)low));
  return _mm_cmpeq_epi8(_mm_min_epu8(d, _mm_set1_epi8((char)(high - low))), d);
}

static inline __m128i sse2_equal(__m128i c, char x) {
  return _mm_cmpeq_epi8(c, _mm_set1_epi8(x));
}

static void classify_sse2(const uint8_t *s, block_masks *m) {
  memset(m, 0, sizeof *m);
  for (int at = 0; at < BLOCK; at += 16) {
    const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(s + at));
    const __m128i blank = sse2_equal(c, ' ');
    m->letter |= sse2_mask(sse2_range(_mm_or_si128(c, _mm_set1_epi8(0x20)), 'a', 'z'), at);
    m->upper |= sse2_mask(sse2_range(c, 'A', 'Z'), at);
    m->digit |= sse2_mask(sse2_range(c, '0', '9'), at);
    m->space |= sse2_mask(_mm_or_si128(sse2_range(c, 9, 13), blank), at);
    m->newline |= sse2_mask(_mm_or_si128(sse2_equal(c, '\n'), sse2_equal(c, '\r')), at);
    m->blank |= sse2_mask(blank, at);
    m->quote |= sse2_mask(sse2_equal(c, '\''), at);
    m->slash |= sse2_mask(sse2_equal(c, '/'), at);
    m->high |= sse2_mask(c, at);
  }
}
#endif

#if defined(__SSE2__) && defined(__GNUC__)
#include <immintrin.h>
#define HAVE_AVX2 1
#define AVX2 __attribute__((target("avx2")))

AVX2 static inline uint64_t avx2_mask(__m256i m, int at) {
  return (uint64_t)(uint32_t)_mm256_movemask_epi8(m) << at;
}

AVX2 static inline __m256i avx2_range(__m256i c, int low, int high) {
  const __m256i d = _mm256_sub_epi8(c, _mm256_set1_epi8((char)low));
  return _mm256_cmpeq_epi8(_mm256_min_epu8(d, _mm256_set1_epi8((char)(high - low))), d);
}

AVX2 static inline __m256i avx2_equal(__m256i c, char x) {
  return _mm256_cmpeq_epi8(c, _mm256_set1_epi8(x));
}

AVX2 static void classify_avx2(const uint8_t *s, block_masks *m) {
  memset(m, 0, sizeof *m);
  for (int at = 0; at < BLOCK; at += 32) {
    const __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)(s + at));
    const __m256i blank = avx2_equal(c, ' ');
    m->letter |= avx2_mask(avx2_range(_mm256_or_si256(c, _mm256_set1_epi8(0x20)), 'a', 'z'), at);
    m->upper |= avx2_mask(avx2_range(c, 'A', 'Z'), at);
    m->digit |= avx2_mask(avx2_range(c, '0', '9'), at);
    m->space |= avx2_mask(_mm256_or_si256(avx2_range(c, 9, 13), blank), at);
    m->newline |= avx2_mask(_mm256_or_si256(avx2_equal(c, '\n'), avx2_equal(c, '\r')), at);
    m->blank |= avx2_mask(blank, at);
    m->quote |= avx2_mask(avx2_equal(c, '\''), at);
    m->slash |= avx2_mask(avx2_equal(c, '/'), at);
    m->high |= avx2_mask(c, at);
  }
}

static bool runs_avx2(void) {
  return __builtin_cpu_supports("avx2");
}
#endif

#if defined(__ARM_NEON) && defined(__aarch64__)
#include <arm_neon.h>
#define HAVE_NEON 1

/* Each byte of m is 0 or 255: keep one bit of each, at its place in its half, and add up. */
static inline uint64_t neon_mask(uint8x16_t m, int at) {
  static const uint8_t place[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const uint8x16_t b = vandq_u8(m, vld1q_u8(place));
  const uint64_t low = vaddv_u8(vget_low_u8(b)), high = vaddv_u8(vget_high_u8(b));
  return (low | high << 8) << at;
}

static inline uint8x16_t neon_range(uint8x16_t c, uint8_t low, uint8_t high) {
  return vcleq_u8(vsubq_u8(c, vdupq_n_u8(low)), vdupq_n_u8((uint8_t)(high - low)));
}

static inline uint8x16_t neon_equal(uint8x16_t c, uint8_t x) {
  return vceqq_u8(c, vdupq_n_u8(x));
}

static void classify_neon(const uint8_t *s, block_masks *m) {
  memset(m, 0, sizeof *m);
  for (int at = 0; at < BLOCK; at += 16) {
    const uint8x16_t c = vld1q_u8(s + at);
    const uint8x16_t blank = neon_equal(c, ' ');
    m->letter |= neon_mask(neon_range(vorrq_u8(c, vdupq_n_u8(0x20)), 'a', 'z'), at);
    m->upper |= neon_mask(neon_range(c, 'A', 'Z'), at);
    m->digit |= neon_mask(neon_range(c, '0', '9'), at);
    m->space |= neon_mask(vorrq_u8(neon_range(c, 9, 13), blank), at);
    m->newline |= neon_mask(vorrq_u8(neon_equal(c, '\n'), neon_equal(c, '\r')), at);
    m->blank |= neon_mask(blank, at);
    m->quote |= neon_mask(neon_equal(c, '\''), at);
    m->slash |= neon_mask(neon_equal(c, '/'), at);
    m->high |= neon_mask(vcgeq_u8(c, vdupq_n_u8(0x80)), at);
  }
}
#endif

/* ---- Eight bytes in a word: every byte's high bit is its answer ---- */

#define EACH(x) (UINT64_C(0x0101010101010101) * (uint64_t)(x))
#define HIGH EACH(0x80)

/* Bytes of w, all below 0x80, that are >= x, for x in 1 .. 0x80. */
static inline uint64_t word_at_least(uint64_t w, unsigned x) {
  return (w + EACH(0x80 - x)) & HIGH;
}

static inline uint64_t word_range(uint64_t w, unsigned low, unsigned high) {
  return word_at_least(w, low) & ~word_at_least(w, high + 1);
}

/* The high bits of the eight bytes, byte 0's first. */
static inline uint64_t word_mask(uint64_t high_bits, int at) {
  return ((high_bits >> 7) * UINT64_C(0x0102040810204080)) >> 56 << at;
}

static void classify_words(const uint8_t *s, block_masks *m) {
  memset(m, 0, sizeof *m);
  for (int at = 0; at < BLOCK; at += 8) {
    uint64_t w = 0;
    for (int i = 0; i < 8; i++) w |= (uint64_t)s[at + i] << 8 * i;
    const uint64_t low = w & ~HIGH, ascii = ~w & HIGH;
    const uint64_t blank = word_range(low, ' ', ' ');
    m->letter |= word_mask(word_range(low | EACH(0x20), 'a', 'z') & ascii, at);
    m->upper |= word_mask(word_range(low, 'A', 'Z') & ascii, at);
    m->digit |= word_mask(word_range(low, '0', '9') & ascii, at);
    m->space |= word_mask((word_range(low, 9, 13) | blank) & ascii, at);
    m->newline |= word_mask((word_range(low, 10, 10) | word_range(low, 13, 13)) & ascii, at);
    m->blank |= word_mask(blank & ascii, at);
    m->quote |= word_mask(word_range(low, '\'', '\'') & ascii, at);
    m->slash |= word_mask(word_range(low, '/', '/') & ascii, at);
    m->high |= word_mask(w & HIGH, at);
  }
}

/* ---- Choice ---- */

static bool always(void) {
  return true;
}

static const struct variant {
  const char *name;
  block_classify *classify;
  bool (*runs)(void);
} variants[] = {
#ifdef HAVE_AVX2
    {"avx2", classify_avx2, runs_avx2},
#endif
#ifdef __SSE2__
    {"sse2", classify_sse2, always},
#endif
#ifdef HAVE_NEON
    {"neon", classify_neon, always},
#endif
    {"words", classify_words, always},
};

#define N_VARIANTS ((int)(sizeof variants / sizeof *variants))

block_classify *block_best(void) {
  int i = 0;
  while (!variants[i].runs()) i++; /* the last always does */
  return variants[i].classify;
}

block_classify *block_named(const char *name) {
  for (int i = 0; i < N_VARIANTS; i++)
    if (strcmp(variants[i].name, name) == 0 && variants[i].runs()) return variants[i].classify;
  return NULL;
}

const char *block_name(int i) {
  return i >= 0 && i < N_VARIANTS ? variants[i].name : NULL;
}
