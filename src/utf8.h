/* utf8.h - well-formed UTF-8 and what is not, by Unicode's table 3-7.
**
** A byte belongs to a well-formed sequence or to a malformed run; decoding left to right decides
** which, and deciding does not depend on how far the malformed bytes before it were skipped. The
** maximal subpart of a malformed place is the longest start of some well-formed sequence found
** there, or one byte; it is what U+FFFD replaces.
*/
#ifndef UTF8_H
#define UTF8_H

#include "base.h"

/* Length of the well-formed sequence at s[0], 0 if there is none. len > 0. */
static inline size_t utf8_length(const uint8_t *s, size_t len) {
  const uint8_t c = s[0];
  if (c < 0x80) return 1;
  if (c < 0xc2 || len < 2) return 0;
  const uint8_t d = s[1];
  if ((d & 0xc0) != 0x80) return 0;
  if (c < 0xe0) return 2;
  if (c < 0xf0) {
    if (len < 3 || (s[2] & 0xc0) != 0x80) return 0;
    if ((c == 0xe0 && d < 0xa0) || (c == 0xed && d >= 0xa0)) return 0;
    return 3;
  }
  if (c > 0xf4 || len < 4 || (s[2] & 0xc0) != 0x80 || (s[3] & 0xc0) != 0x80) return 0;
  if ((c == 0xf0 && d < 0x90) || (c == 0xf4 && d >= 0x90)) return 0;
  return 4;
}

/* Code point and length of the sequence at s[0], which is well-formed. */
static inline uint32_t utf8_decode(const uint8_t *s, size_t *len) {
  const uint32_t c = s[0];
  if (c < 0x80) {
    *len = 1;
    return c;
  }
  if (c < 0xe0) {
    *len = 2;
    return (c & 0x1f) << 6 | (s[1] & 0x3fu);
  }
  if (c < 0xf0) {
    *len = 3;
    return (c & 0x0f) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
  }
  *len = 4;
  return (c & 0x07) << 18 | (s[1] & 0x3fu) << 12 | (s[2] & 0x3fu) << 6 | (s[3] & 0x3fu);
}

/* Length of the longest well-formed start of s. */
size_t utf8_valid_run(const uint8_t *s, size_t len);
/* Length of the malformed run at s[0]; 0 if s is empty or starts well-formed. */
size_t utf8_malformed_run(const uint8_t *s, size_t len);
enum { UTF8_LONG = 1 << 16 };

/* Both of a text that can be long: shorter than they are once the pace is stopped. */
size_t utf8_long_valid_run(pace *, const uint8_t *s, size_t len);
static inline size_t utf8_paced_valid_run(pace *p, const uint8_t *s, size_t len) {
  return len < UTF8_LONG ? utf8_valid_run(s, len) : utf8_long_valid_run(p, s, len);
}
size_t utf8_paced_malformed_run(pace *, const uint8_t *s, size_t len);
/* Length of the maximal subpart at s[0], where no well-formed sequence starts. len > 0. */
size_t utf8_subpart(const uint8_t *s, size_t len);

#endif
