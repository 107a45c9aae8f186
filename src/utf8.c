/* utf8.c - validation and repair. See utf8.h.
**
** Validation skips ASCII eight bytes at a time; everything else goes through utf8_length, the
** one definition of "well-formed".
*/
#include "utf8.h"

#include <string.h>

size_t utf8_valid_run(const uint8_t *s, size_t len) {
  size_t i = 0;
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
  for (size_t i = 0; i < len;) {
    const size_t good = utf8_valid_run(s + i, len - i);
    bpe_buffer_append(out, s + i, good);
    i += good;
    if (i == len) break;
    if (how == BPE_REPAIR_STRICT)
      return set_error(e, BPE_BADTEXT, i, "malformed UTF-8 at byte %zu", i);
    const size_t bad = utf8_subpart(s + i, len - i);
    const bool held = how == BPE_REPAIR_HOLD && is_incomplete(s + i, bad, len - i);
    if (!held && how != BPE_REPAIR_IGNORE) bpe_buffer_append(out, "\xef\xbf\xbd", 3);
    i += bad;
  }
  return buffer_status(out, e);
}
