/* json.c - where to cut a JSON text for a parser that is fed in parts. See bpe_json_part.
**
** A parser that meets the end of a part inside a string reads the string again with the next, so
** parts end outside. It is asked nothing meanwhile, so strings, numbers and words have a limit.
*/
#include "base.h"

#include <string.h>

enum { PART = 1 << 16 };

/* Behind the string that begins at s[at]; 0: it is too long, or does not end. */
static size_t string_end(const uint8_t *s, size_t len, size_t at) {
  const size_t most = len - at < BPE_JSON_LONGEST ? len : at + BPE_JSON_LONGEST;
  for (size_t i = at + 1; i < most; i++) {
    if (s[i] == '"') return i + 1;
    if (s[i] == '\\') i++;
  }
  return most == len ? len : 0;
}

static bool is_apart(uint8_t c) {
  return c == ',' || c == ':' || c == '[' || c == ']' || c == '{' || c == '}' || c == ' ' ||
         c == '\n' || c == '\r' || c == '\t';
}

size_t bpe_json_part(const void *text, size_t len, size_t at) {
  const uint8_t *s = text;
  size_t last = at; /* where what is no string began */
  for (size_t i = at; i < len;) {
    if (is_apart(s[i])) {
      last = ++i;
      if (i - at >= PART) return i;
    } else if (s[i] == '"') {
      i = last = string_end(s, len, i);
      if (i == 0) return 0;
    } else if (++i - last > BPE_JSON_LONGEST) {
      return 0;
    }
  }
  return len;
}
