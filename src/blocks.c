/* blocks.c - the loop over blocks, for each family and each kind of machine. See blocks.h. */
#include "blocks.h"

#include "starts.h"

enum { LEAST_TAIL = 20 }; /* bytes at the end that are worth a block */

/* Lists base + the index of each set bit. Writes eight places at a time, whatever their number:
** branches on each bit would be guessed wrong once a block. */
static ALWAYS_INLINE size_t list_bits(uint64_t bits, size_t base, size_t *list) {
#define PUT_NEXT(k) (list[k] = base + lowest_bit(bits | UINT64_C(1) << 63), bits &= bits - 1)
  const size_t n = (size_t)__builtin_popcountll(bits);
  for (const size_t *const end = list + n; list < end; list += 8) {
    PUT_NEXT(0), PUT_NEXT(1), PUT_NEXT(2), PUT_NEXT(3);
    PUT_NEXT(4), PUT_NEXT(5), PUT_NEXT(6), PUT_NEXT(7);
  }
  return n;
}

#define avx2_list_bits list_bits
#define sse2_list_bits list_bits
#define neon_list_bits list_bits
#define words_list_bits list_bits

#ifdef HAVE_AVX512
/* The same: the numbers of the set bits are pressed together, and then added eight at a time. */
AVX512_TARGET static ALWAYS_INLINE size_t avx512_list_bits(uint64_t bits, size_t base,
                                                           size_t *list) {
  static const uint8_t numbers[BLOCK] = {
      0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
      22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
      44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
  const size_t n = (size_t)__builtin_popcountll(bits);
  const __m512i from = _mm512_set1_epi64((long long)base);
  uint8_t set[BLOCK];
  _mm512_storeu_si512(set, _mm512_maskz_compress_epi8(bits, _mm512_loadu_si512(numbers)));
  for (size_t i = 0; i < n; i += 8) {
    const __m128i eight = _mm_loadl_epi64((const __m128i *)(const void *)(set + i));
    _mm512_storeu_si512(list + i, _mm512_add_epi64(_mm512_cvtepu8_epi64(eight), from));
  }
  return n;
}
#endif

/* The loop of machine X for one family, which is a constant where this is used. */
#define BLOCK_LOOP(X, TARGET)                                                                      \
  BLOCK_CLASSIFIER(X, TARGET)                                                                      \
  TARGET static ALWAYS_INLINE size_t X##_loop(const block_rules *r, int family, const uint8_t *s,  \
                                              size_t len, size_t at, size_t *ends, size_t max) {   \
    size_t n = 0;                                                                                  \
    uint8_t copy[BLOCK];                                                                           \
    while (n + BLOCK <= max) {                                                                     \
      const uint8_t *block = s + at;                                                               \
      unsigned known = BLOCK;                                                                      \
      if (len - at < BLOCK) {                                                                      \
        if (len - at < LEAST_TAIL) break;                                                          \
        known = (unsigned)(len - at);                                                              \
        memset(copy, 0, sizeof copy);                                                              \
        block = memcpy(copy, block, known);                                                        \
      }                                                                                            \
      block_masks m;                                                                               \
      X##_classify(block, known, family == FAMILY_O200K, &m);                                      \
      uint64_t starts = 0;                                                                         \
      if (m.known == 0) break;                                                                     \
      if (family == FAMILY_GPT2) starts = starts_gpt2(&m, block);                                  \
      if (family == FAMILY_CL100K) starts = starts_cl100k(&m, block, r->max_digits);               \
      if (family == FAMILY_O200K)                                                                  \
        starts = starts_o200k(&m, block, r->max_digits, r->contractions);                          \
      if (starts == 0) break;                                                                      \
      n += X##_list_bits(starts, at, ends + n);                                                    \
      at += highest_bit(starts);                                                                   \
    }                                                                                              \
    return n;                                                                                      \
  }

#define BLOCK_VARIANT(X, TARGET)                                                                   \
  BLOCK_LOOP(X, TARGET)                                                                            \
  TARGET static size_t X##_list(const block_rules *r, const uint8_t *s, size_t len, size_t from,   \
                                size_t *ends, size_t max) {                                        \
    if (r->family == FAMILY_GPT2) return X##_loop(r, FAMILY_GPT2, s, len, from, ends, max);        \
    if (r->family == FAMILY_CL100K) return X##_loop(r, FAMILY_CL100K, s, len, from, ends, max);    \
    if (r->family == FAMILY_O200K) return X##_loop(r, FAMILY_O200K, s, len, from, ends, max);      \
    return 0;                                                                                      \
  }

static bool always(void) {
  return true;
}

#define ANY_TARGET

#ifdef HAVE_AVX512
BLOCK_VARIANT(avx512, AVX512_TARGET)
#endif
#ifdef HAVE_AVX2
BLOCK_VARIANT(avx2, AVX2_TARGET)
#endif
#ifdef HAVE_SSE2
BLOCK_VARIANT(sse2, ANY_TARGET)
#endif
#ifdef HAVE_NEON
BLOCK_VARIANT(neon, ANY_TARGET)
#endif
BLOCK_VARIANT(words, ANY_TARGET)

static const struct variant {
  const char *name;
  blocks_list *list;
  bool (*runs)(void);
} variants[] = {
#ifdef HAVE_AVX512
    {"avx512", avx512_list, avx512_runs},
#endif
#ifdef HAVE_AVX2
    {"avx2", avx2_list, avx2_runs},
#endif
#ifdef HAVE_SSE2
    {"sse2", sse2_list, always},
#endif
#ifdef HAVE_NEON
    {"neon", neon_list, always},
#endif
    {"words", words_list, always},
};

#define N_VARIANTS ((int)(sizeof variants / sizeof *variants))

blocks_list *blocks_best(void) {
  int i = 0;
  while (!variants[i].runs()) i++; /* the last always does */
  return variants[i].list;
}

blocks_list *blocks_named(const char *name) {
  for (int i = 0; i < N_VARIANTS; i++)
    if (strcmp(variants[i].name, name) == 0 && variants[i].runs()) return variants[i].list;
  return NULL;
}

const char *blocks_name(int i) {
  return i >= 0 && i < N_VARIANTS ? variants[i].name : NULL;
}
