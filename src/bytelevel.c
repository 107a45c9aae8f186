/* bytelevel.c - see bytelevel.h. */
#include "bytelevel.h"

#include "utf8.h"

enum { PRINTABLE = 188, FIRST_SUBSTITUTE = 0x100 };

static bool is_printable(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad && byte <= 0xff);
}

/* The others are 00-20, 7f-a0 and ad: 33, 34 and 1 of them. */
static unsigned substitute_rank(unsigned byte) {
  return byte <= 0x20 ? byte : byte <= 0xa0 ? byte - 0x7f + 33 : 67;
}

int bytelevel_byte(uint32_t cp) {
  if (cp < 0x100) return is_printable(cp) ? (int)cp : -1;
  const uint32_t rank = cp - FIRST_SUBSTITUTE;
  if (rank < 33) return (int)rank;
  if (rank < 67) return (int)(rank - 33 + 0x7f);
  return rank == 67 ? 0xad : -1;
}

size_t bytelevel_char(uint8_t byte, uint8_t out[2]) {
  const unsigned cp = is_printable(byte) ? byte : FIRST_SUBSTITUTE + substitute_rank(byte);
  if (cp < 0x80) {
    out[0] = (uint8_t)cp;
    return 1;
  }
  out[0] = (uint8_t)(0xc0 | cp >> 6);
  out[1] = (uint8_t)(0x80 | (cp & 0x3f));
  return 2;
}

uint8_t bytelevel_ranked(unsigned rank) {
  if (rank >= PRINTABLE) return (uint8_t)bytelevel_byte(FIRST_SUBSTITUTE + rank - PRINTABLE);
  if (rank < 94) return (uint8_t)(rank + 0x21);
  return (uint8_t)(rank < 106 ? rank - 94 + 0xa1 : rank - 106 + 0xae);
}

bool bytelevel_decode(const char *text, size_t len, uint8_t *out, size_t *n) {
  const uint8_t *s = (const uint8_t *)text;
  *n = 0;
  for (size_t i = 0, k; i < len; i += k) {
    if (utf8_length(s + i, len - i) == 0) return false;
    const int byte = bytelevel_byte(utf8_decode(s + i, &k));
    if (byte < 0) return false;
    out[(*n)++] = (uint8_t)byte;
  }
  return true;
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_value(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(const char *text, size_t len, uint8_t *out, size_t *n) {
  *n = 0;
  if (len % 4 != 0) return false;
  for (size_t i = 0; i < len; i += 4) {
    size_t pad = 0;
    if (i + 4 == len) pad = text[i + 3] != '=' ? 0 : text[i + 2] != '=' ? 1 : 2;
    uint32_t bits = 0;
    for (size_t k = 0; k < 4; k++) {
      const int value = k >= 4 - pad ? 0 : digit_value(text[i + k]);
      if (value < 0) return false;
      bits = bits << 6 | (uint32_t)value;
    }
    if (pad != 0 && (bits & (pad == 1 ? 0xffu : 0xffffu)) != 0) return false; /* stray bits */
    for (size_t k = 0; k < 3 - pad; k++) out[(*n)++] = (uint8_t)(bits >> (16 - 8 * k));
  }
  return true;
}

void base64_append(bpe_buffer *b, const void *bytes, size_t len) {
  const uint8_t *s = bytes;
  for (size_t i = 0; i < len; i += 3) {
    const size_t n = len - i < 3 ? len - i : 3;
    uint32_t bits = (uint32_t)s[i] << 16;
    if (n > 1) bits |= (uint32_t)s[i + 1] << 8;
    if (n > 2) bits |= s[i + 2];
    char out[4] = {digits[bits >> 18], digits[bits >> 12 & 63], '=', '='};
    if (n > 1) out[2] = digits[bits >> 6 & 63];
    if (n > 2) out[3] = digits[bits & 63];
    bpe_buffer_append(b, out, 4);
  }
}
