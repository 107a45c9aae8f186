/* utf8.c - validation and repair. See utf8.h.
**
** Validation skips ASCII eight bytes at a time; everything else goes through utf8_length, the
** one definition of "well-formed". Where AVX2 runs, 32 bytes are judged at once, after J. Keiser
** and D. Lemire, "Validating UTF-8 in less than one instruction per byte": a malformed place shows
** in two bytes by three of their four halves, each of which names the faults it could be part of,
** and what must be a third or fourth byte is known by the byte two or three before.
*/
#include "utf8.h"

#include "cpu.h"

#include <string.h>

#ifdef HAVE_AVX2
enum {                  /* faults of a byte and the one before it */
       SHORT_CHAR = 1,  /* first byte, then no continuation */
       LONG_CHAR = 2,   /* ASCII, then continuation */
       OVERLONG_3 = 4,  /* E0, then below A0 */
       TOO_LARGE = 8,   /* F4, then 90 and up, or F5 and up */
       SURROGATE = 16,  /* ED, then A0 and up */
       OVERLONG_2 = 32, /* C0 and C1 */
       OVERLONG_4 = 64, /* F0, then below 90; F5 and up, then below 90 */
       TWO_CONTS = 128, /* none if a third or fourth byte is due */
       ANY_LOW = SHORT_CHAR | LONG_CHAR | TWO_CONTS
};

#define TWICE(...) _mm256_setr_epi8(__VA_ARGS__, __VA_ARGS__)
#define FAULTS(x) ((char)(x))

/* The faults of 32 bytes, of which `before` are the bytes before; zero: none. */
AVX2_TARGET static ALWAYS_INLINE __m256i faults_of(__m256i bytes, __m256i before) {
  const char c = FAULTS(TWO_CONTS), l = FAULTS(LONG_CHAR), a = FAULTS(ANY_LOW);
  const char large = FAULTS(ANY_LOW | TOO_LARGE | OVERLONG_4);
  const __m256i by_first_high =
      TWICE(l, l, l, l, l, l, l, l, c, c, c, c, SHORT_CHAR | OVERLONG_2, SHORT_CHAR,
            SHORT_CHAR | OVERLONG_3 | SURROGATE, SHORT_CHAR | TOO_LARGE | OVERLONG_4);
  const __m256i by_first_low =
      TWICE(FAULTS(ANY_LOW | OVERLONG_2 | OVERLONG_3 | OVERLONG_4), FAULTS(ANY_LOW | OVERLONG_2), a,
            a, FAULTS(ANY_LOW | TOO_LARGE), large, large, large, large, large, large, large, large,
            FAULTS(ANY_LOW | TOO_LARGE | OVERLONG_4 | SURROGATE), large, large);
  const char cont = FAULTS(LONG_CHAR | OVERLONG_2 | TWO_CONTS), s = SHORT_CHAR;
  const __m256i by_second_high =
      TWICE(s, s, s, s, s, s, s, s, FAULTS(cont | OVERLONG_3 | OVERLONG_4),
            FAULTS(cont | OVERLONG_3 | TOO_LARGE), FAULTS(cont | SURROGATE | TOO_LARGE),
            FAULTS(cont | SURROGATE | TOO_LARGE), s, s, s, s);
  const __m256i nibble = _mm256_set1_epi8(0x0f);
  const __m256i across = _mm256_permute2x128_si256(before, bytes, 0x21);
  const __m256i one = _mm256_alignr_epi8(bytes, across, 15);
  const __m256i two = _mm256_alignr_epi8(bytes, across, 14);
  const __m256i three = _mm256_alignr_epi8(bytes, across, 13);
  const __m256i high_one = _mm256_and_si256(_mm256_srli_epi16(one, 4), nibble);
  const __m256i high = _mm256_and_si256(_mm256_srli_epi16(bytes, 4), nibble);
  const __m256i pair = _mm256_and_si256(
      _mm256_and_si256(_mm256_shuffle_epi8(by_first_high, high_one),
                       _mm256_shuffle_epi8(by_first_low, _mm256_and_si256(one, nibble))),
      _mm256_shuffle_epi8(by_second_high, high));
  const __m256i third = _mm256_subs_epu8(two, _mm256_set1_epi8((char)(0xe0 - 0x80)));
  const __m256i fourth = _mm256_subs_epu8(three, _mm256_set1_epi8((char)(0xf0 - 0x80)));
  const __m256i due =
      _mm256_and_si256(_mm256_or_si256(third, fourth), _mm256_set1_epi8((char)TWO_CONTS));
  return _mm256_xor_si256(due, pair);
}

/* Length of a well-formed start of s, in whole characters, that may not be the longest. */
AVX2_TARGET static size_t avx2_valid_start(const uint8_t *s, size_t len) {
  __m256i before = _mm256_setzero_si256();
  size_t i = 0;
  for (; len - i >= 64; i += 64) {
    const __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(s + i));
    const __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(s + i + 32));
    if (_mm256_movemask_epi8(_mm256_or_si256(a, b)) == 0 && (i == 0 || s[i - 1] < 0x80)) {
      before = b;
      continue;
    }
    const __m256i faults = _mm256_or_si256(faults_of(a, before), faults_of(b, a));
    if (!_mm256_testz_si256(faults, faults)) break;
    before = b;
  }
  for (size_t k = 1; k <= 3 && k <= i && s[i - k] >= 0x80; k++) /* a character may go on there */
    if (s[i - k] >= 0xc0) return i - k;
  return i;
}
#endif

size_t utf8_valid_run(const uint8_t *s, size_t len) {
  size_t i = 0;
#ifdef HAVE_AVX2
  if (len >= 64 && avx2_runs()) i = avx2_valid_start(s, len);
#endif
  while (i < len) {
    if (s[i] < 0x80) {
      while (i + 8 <= len) {
        uint64_t w;
        memcpy(&w, s + i, 8);
        if (w & 0x8080808080808080u) break;
        i += 8;
      }
      while (i < len && s[i] < 0x80) i++;
    } else {
      const size_t n = utf8_length(s + i, len - i);
      if (n == 0) break;
      i += n;
    }
  }
  return i;
}

size_t utf8_malformed_run(const uint8_t *s, size_t len) {
  size_t i = 0;
  while (i < len && utf8_length(s + i, len - i) == 0) i++;
  return i;
}

/* Bytes judged at a time, and units of work for each of them at worst. */
enum { STRIDE = UTF8_LONG, BYTE_WORK = 4 };

size_t utf8_long_valid_run(pace *p, const uint8_t *s, size_t len) {
  for (size_t i = 0;;) {
    const size_t left = len - i, part = left < STRIDE ? left : STRIDE;
    const size_t n = utf8_valid_run(s + i, part);
    i += n;
    /* A part's end may cut a character; then the next part shows whether it goes on. */
    if (part == left || n == 0 || pace_stopped(p, n * BYTE_WORK)) return i;
  }
}

size_t utf8_paced_malformed_run(pace *p, const uint8_t *s, size_t len) {
  size_t i = 0;
  while (i < len && utf8_length(s + i, len - i) == 0 && !pace_stopped(p, BYTE_WORK)) i++;
  return i;
}

size_t utf8_subpart(const uint8_t *s, size_t len) {
  const uint8_t c = s[0];
  if (c < 0xc2 || c > 0xf4 || len < 2) return 1;
  const uint8_t low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
  const uint8_t high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
  if (s[1] < low || s[1] > high) return 1;
  const size_t whole = c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
  size_t n = 2;
  while (n < whole && n < len && (s[n] & 0xc0) == 0x80) n++;
  return n;
}

bool bpe_utf8_valid(const void *text, size_t len) {
  return utf8_valid_run(text, len) == len;
}

bpe_status bpe_utf8_check(const bpe_alloc *a, const void *text, size_t len, bpe_error *e,
                          bool *valid) {
  pace p = pace_of(a);
  *valid = utf8_paced_valid_run(&p, text, len) == len;
  return pace_add(&p, 0, e);
}

size_t bpe_utf8_next(const void *text, size_t len) {
  const size_t n = utf8_length(text, len);
  return n != 0 ? n : utf8_subpart(text, len);
}

/* Whether the malformed subpart s[0..n) runs into the end of the text only for want of bytes. */
static bool is_incomplete(const uint8_t *s, size_t n, size_t len) {
  if (n != len || s[0] < 0xc2 || s[0] > 0xf4) return false;
  return n < (s[0] < 0xe0 ? 2u : s[0] < 0xf0 ? 3u : 4u);
}

bpe_status bpe_utf8_repair(const void *text, size_t len, bpe_repair how, bpe_error *e,
                           bpe_buffer *out) {
  const uint8_t *s = text;
  pace p = pace_of(&out->alloc);
  for (size_t i = 0; i < len;) {
    const size_t part = len - i < STRIDE ? len - i : STRIDE;
    const size_t good = utf8_valid_run(s + i, part);
    bpe_buffer_append(out, s + i, good);
    i += good;
    if (i == len || buffer_failed(out, &p, (1 + good) * BYTE_WORK)) break;
    if (utf8_length(s + i, len - i) != 0) continue; /* it went on, past the part */
    if (how == BPE_REPAIR_STRICT)
      return set_error(e, BPE_BADTEXT, i, "malformed UTF-8 at byte %zu", i);
    const size_t bad = utf8_subpart(s + i, len - i);
    const bool held = how == BPE_REPAIR_HOLD && is_incomplete(s + i, bad, len - i);
    if (!held && how != BPE_REPAIR_IGNORE) bpe_buffer_append(out, "\xef\xbf\xbd", 3);
    i += bad;
  }
  return buffer_status(out, e);
}
