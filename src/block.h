/* block.h - 64 bytes of text as bit masks, bit i for byte i.
**
** Each byte is classified by ranges, in SSE2, AVX2, NEON or plain 64-bit words; all give the same
** masks. A character that is not ASCII has the bit of its class set for each of its bytes, so
** that shifting masks works on bytes as it does on characters:
**
**     text        d   i   e     ф   ф   ж   ж   ,
**     letter      1   1   1   . 1   1   1   1   .
**     blank       .   .   .   1 .   .   .   .   .
**     cont        .   .   .   . .   1   .   1   .      second and later bytes of characters
**
** Most such characters are looked up one by one; the big blocks of letters without case are
** ranges of their first byte. `known` is how many bytes the masks are right for: less than asked
** where the block's end cuts a character, or a character is met that the algebra of starts.h does
** not treat (white space and numbers that are not ASCII; marks, where letters have case).
*/
#ifndef BLOCK_H
#define BLOCK_H

#include "cpu.h"
#include "unicode.h"
#include "utf8.h"

#include <string.h>

enum { BLOCK = 64 };

typedef struct block_masks {
  uint64_t letter;   /* \p{L} */
  uint64_t upper;    /* Lu, Lt; beyond ASCII only when asked for cases */
  uint64_t caseless; /* Lm, Lo; only when asked for cases */
  uint64_t digit;    /* 0-9 */
  uint64_t space;    /* 9-13 and 32 */
  uint64_t newline;  /* 10 and 13 */
  uint64_t blank;    /* 32 */
  uint64_t quote;    /* the apostrophe */
  uint64_t slash;
  uint64_t cont;
  unsigned known;
} block_masks;

/* Index of the lowest, highest set bit; m != 0. */
static ALWAYS_INLINE unsigned lowest_bit(uint64_t m) {
  return (unsigned)__builtin_ctzll(m);
}
static ALWAYS_INLINE unsigned highest_bit(uint64_t m) {
  return 63u - (unsigned)__builtin_clzll(m);
}

/* ---- Ranges of bytes, in each kind of machine ---------------------------------------------- */

/* For a machine X, X_text is 64 bytes of text; X_load reads it, X_range tells which bytes are in
** [low, high], X_folded is the same text with bit 5 of every byte set, so letters are lower-case.
** SIMD has no unsigned comparison of bytes, but x in [low, high] exactly if x - low, modulo 256,
** is its own minimum with high - low. */

#ifdef HAVE_SSE2
typedef struct sse2_text {
  __m128i v[4];
} sse2_text;

static ALWAYS_INLINE sse2_text sse2_load(const uint8_t *s) {
  sse2_text t;
  for (size_t i = 0; i < 4; i++)
    t.v[i] = _mm_loadu_si128((const __m128i *)(const void *)(s + 16 * i));
  return t;
}

static ALWAYS_INLINE uint64_t sse2_range(sse2_text t, int low, int high) {
  uint64_t m = 0;
  for (int i = 0; i < 4; i++) {
    const __m128i d = _mm_sub_epi8(t.v[i], _mm_set1_epi8((char)low));
    const __m128i in = _mm_cmpeq_epi8(_mm_min_epu8(d, _mm_set1_epi8((char)(high - low))), d);
    m |= (uint64_t)(uint32_t)_mm_movemask_epi8(in) << 16 * i;
  }
  return m;
}

static ALWAYS_INLINE sse2_text sse2_folded(sse2_text t) {
  for (int i = 0; i < 4; i++) t.v[i] = _mm_or_si128(t.v[i], _mm_set1_epi8(0x20));
  return t;
}
#endif

#ifdef HAVE_AVX2
typedef struct avx2_text {
  __m256i v[2];
} avx2_text;

AVX2_TARGET static ALWAYS_INLINE avx2_text avx2_load(const uint8_t *s) {
  avx2_text t;
  for (size_t i = 0; i < 2; i++)
    t.v[i] = _mm256_loadu_si256((const __m256i *)(const void *)(s + 32 * i));
  return t;
}

AVX2_TARGET static ALWAYS_INLINE uint64_t avx2_range(avx2_text t, int low, int high) {
  uint64_t m = 0;
  for (int i = 0; i < 2; i++) {
    const __m256i d = _mm256_sub_epi8(t.v[i], _mm256_set1_epi8((char)low));
    const __m256i in =
        _mm256_cmpeq_epi8(_mm256_min_epu8(d, _mm256_set1_epi8((char)(high - low))), d);
    m |= (uint64_t)(uint32_t)_mm256_movemask_epi8(in) << 32 * i;
  }
  return m;
}

AVX2_TARGET static ALWAYS_INLINE avx2_text avx2_folded(avx2_text t) {
  for (int i = 0; i < 2; i++) t.v[i] = _mm256_or_si256(t.v[i], _mm256_set1_epi8(0x20));
  return t;
}
#endif

#ifdef HAVE_AVX512
typedef struct avx512_text {
  __m512i v;
} avx512_text;

AVX512_TARGET static ALWAYS_INLINE avx512_text avx512_load(const uint8_t *s) {
  return (avx512_text){_mm512_loadu_si512((const void *)s)};
}

AVX512_TARGET static ALWAYS_INLINE uint64_t avx512_range(avx512_text t, int low, int high) {
  const __m512i d = _mm512_sub_epi8(t.v, _mm512_set1_epi8((char)low));
  return _mm512_cmple_epu8_mask(d, _mm512_set1_epi8((char)(high - low)));
}

AVX512_TARGET static ALWAYS_INLINE avx512_text avx512_folded(avx512_text t) {
  return (avx512_text){_mm512_or_si512(t.v, _mm512_set1_epi8(0x20))};
}
#endif

#ifdef HAVE_NEON
typedef struct neon_text {
  uint8x16_t v[4];
} neon_text;

static ALWAYS_INLINE neon_text neon_load(const uint8_t *s) {
  neon_text t;
  for (size_t i = 0; i < 4; i++) t.v[i] = vld1q_u8(s + 16 * i);
  return t;
}

static ALWAYS_INLINE uint64_t neon_range(neon_text t, int low, int high) {
  static const uint8_t place[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  uint64_t m = 0;
  for (int i = 0; i < 4; i++) { /* one bit of each byte, at its place in its half; then add up */
    const uint8x16_t d = vsubq_u8(t.v[i], vdupq_n_u8((uint8_t)low));
    const uint8x16_t b = vandq_u8(vcleq_u8(d, vdupq_n_u8((uint8_t)(high - low))), vld1q_u8(place));
    const uint64_t lower = vaddv_u8(vget_low_u8(b)), upper = vaddv_u8(vget_high_u8(b));
    m |= (lower | upper << 8) << 16 * i;
  }
  return m;
}

static ALWAYS_INLINE neon_text neon_folded(neon_text t) {
  for (int i = 0; i < 4; i++) t.v[i] = vorrq_u8(t.v[i], vdupq_n_u8(0x20));
  return t;
}
#endif

/* Eight bytes in a word, byte 0 lowest; every byte's high bit is its answer. */
#define EACH(x) (UINT64_C(0x0101010101010101) * (uint64_t)(x))

typedef struct words_text {
  uint64_t w[8];
} words_text;

static ALWAYS_INLINE words_text words_load(const uint8_t *s) {
  words_text t = {{0}};
  for (int i = 0; i < BLOCK; i++) t.w[i / 8] |= (uint64_t)s[i] << i % 8 * 8;
  return t;
}

/* low and high are on the same side of 0x80. Adding 0x80 - x carries into the high bit exactly
** where the low seven bits are at least x. */
static ALWAYS_INLINE uint64_t words_range(words_text t, int low, int high) {
  const uint64_t side = low < 0x80 ? 0 : EACH(0x80);
  const uint64_t add_low = EACH(0x80 - (low & 0x7f)), add_high = EACH(0x7f - (high & 0x7f));
  uint64_t m = 0;
  for (int i = 0; i < 8; i++) {
    const uint64_t seven = t.w[i] & EACH(0x7f);
    const uint64_t in = (seven + add_low) & ~(seven + add_high) & ~(t.w[i] ^ side) & EACH(0x80);
    m |= ((in >> 7) * UINT64_C(0x0102040810204080)) >> 56 << 8 * i;
  }
  return m;
}

static ALWAYS_INLINE words_text words_folded(words_text t) {
  for (int i = 0; i < 8; i++) t.w[i] |= EACH(0x20);
  return t;
}

/* ---- Classes ------------------------------------------------------------------------------- */

/* Sets in bytes at once what is set in the first bytes of characters. */
static ALWAYS_INLINE uint64_t whole_chars(uint64_t firsts, uint64_t cont) {
  return firsts | (cont & ~(cont + (firsts << 1 & cont)));
}

/* The first bytes of the characters behind those whose first bytes are given. */
static ALWAYS_INLINE uint64_t next_chars(uint64_t firsts, uint64_t cont) {
  const uint64_t behind = firsts << 1;
  return ((cont + (behind & cont)) | behind) & ~cont;
}

/* The characters beyond ASCII. firsts: their first bytes; letters: those of them that are known to
** be caseless letters, or, where case does not matter, letters. */
static ALWAYS_INLINE void classify_beyond_ascii(const uint8_t *s, block_masks *m, uint64_t firsts,
                                                uint64_t letters, bool cases) {
  const unsigned stop =
      CLASS_BIT(CLASS_SPACE) | CLASS_BIT(CLASS_NUMBER) | (cases ? CLASS_BIT(CLASS_MARK) : 0);
  uint64_t upper = 0, caseless = letters;
  const unsigned last = highest_bit(firsts);
  const unsigned last_len = s[last] < 0xe0 ? 2 : s[last] < 0xf0 ? 3 : 4;
  if (last + last_len > m->known) m->known = last < m->known ? last : m->known;
  for (uint64_t rest = firsts & ~letters; rest != 0; rest &= rest - 1) {
    const unsigned i = lowest_bit(rest);
    if (i >= m->known) break;
    size_t n;
    const unsigned class = unicode_class(utf8_decode(s + i, &n));
    if (stop >> class & 1) {
      m->known = i;
      break;
    }
    letters |= (uint64_t)(CLASSES_L >> class & 1) << i;
    if (!cases) continue;
    upper |= (uint64_t)(class == CLASS_UPPER) << i;
    caseless |= (uint64_t)(class == CLASS_LETTER) << i;
  }
  m->letter |= whole_chars(letters, m->cont);
  if (!cases) return;
  m->upper |= whole_chars(upper, m->cont);
  m->caseless = whole_chars(caseless, m->cont);
}

/* Classifies s[0 .. BLOCK), of which `known` bytes are text, for machine X. Of first bytes, E5-E9
** mean U+5000-9FFF and EB-EC U+B000-CFFF, all letters without case; D0-D1 mean U+0400-047F, all
** letters. */
#define BLOCK_CLASSIFIER(X, TARGET)                                                                \
  TARGET static ALWAYS_INLINE void X##_classify(const uint8_t *s, unsigned known, bool cases,      \
                                                block_masks *m) {                                  \
    const X##_text t = X##_load(s);                                                                \
    const uint64_t high = X##_range(t, 0x80, 0xff);                                                \
    m->letter = X##_range(X##_folded(t), 'a', 'z');                                                \
    m->upper = cases ? X##_range(t, 'A', 'Z') : 0;                                                 \
    m->caseless = 0;                                                                               \
    m->digit = X##_range(t, '0', '9');                                                             \
    m->blank = X##_range(t, ' ', ' ');                                                             \
    m->space = X##_range(t, 9, 13) | m->blank;                                                     \
    m->newline = X##_range(t, '\n', '\n') | X##_range(t, '\r', '\r');                              \
    m->quote = X##_range(t, '\'', '\'');                                                           \
    m->slash = cases ? X##_range(t, '/', '/') : 0;                                                 \
    m->cont = 0;                                                                                   \
    m->known = known;                                                                              \
    if (high == 0) return;                                                                         \
    m->cont = X##_range(t, 0x80, 0xbf);                                                            \
    uint64_t letters = X##_range(t, 0xe5, 0xe9) | X##_range(t, 0xeb, 0xec);                        \
    if (!cases) letters |= X##_range(t, 0xd0, 0xd1);                                               \
    classify_beyond_ascii(s, m, high & ~m->cont, letters, cases);                                  \
  }

#endif
