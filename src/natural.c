/* natural.c - see natural.h. */
#include "natural.h"

#include "unicode.h"
#include "utf8.h"

/* White space and closing marks behind a sentence are looked through as far as this, in bytes. */
enum { REACH = 64 };

/* The character that ends at text[at] and where it begins; 0 where none does. */
static uint32_t char_before(const uint8_t *text, size_t from, size_t at, size_t *start) {
  size_t n;
  for (size_t k = 1; k <= 4 && k <= at - from; k++) {
    if ((text[at - k] & 0xc0) == 0x80) continue;
    if (utf8_length(text + at - k, k) != k) break;
    *start = at - k;
    return utf8_decode(text + at - k, &n);
  }
  *start = at;
  return 0;
}

static bool is_blank(uint32_t c) {
  return unicode_class(c) == CLASS_SPACE;
}

static bool is_closing(uint32_t c) {
  switch (c) {
  case '"':
  case '\'':
  case ')':
  case ']':
  case '}':
  case 0xbb:
  case 0x2019:
  case 0x201d:
  case 0x203a:
  case 0x300b:
  case 0x300d:
  case 0x300f:
  case 0x3011:
  case 0xff09:
  case 0xff3d:
  case 0xff63: return true;
  default: return false;
  }
}

static bool is_wide_terminator(uint32_t c) {
  return c == 0x3002 || c == 0xff01 || c == 0xff0e || c == 0xff1f || c == 0xff61;
}

static bool is_cjk(uint32_t c) {
  return (c >= 0x2e80 && c <= 0x9fff) || (c >= 0xac00 && c <= 0xd7af) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0xff00 && c <= 0xffef) ||
         (c >= 0x20000 && c <= 0x3ffff);
}

/* Whether a sentence whose marks go up to text[at] ends there, by what comes next. */
static bool ends_before(const uint8_t *text, size_t at, size_t len, bool wide) {
  size_t n;
  if (at == len) return true;
  if (utf8_length(text + at, len - at) == 0) return wide;
  const uint32_t next = utf8_decode(text + at, &n);
  if (is_closing(next) || is_wide_terminator(next)) return false;
  return wide || is_blank(next) || is_cjk(next);
}

bool is_sentence_end(const uint8_t *text, size_t from, size_t at, size_t len) {
  const size_t floor = at - from > REACH ? at - REACH : from;
  size_t end = at, start;
  uint32_t c = char_before(text, floor, end, &start);
  while (is_blank(c)) c = char_before(text, floor, end = start, &start);
  const size_t behind = end;
  while (is_closing(c)) c = char_before(text, floor, start, &start);
  const bool wide = is_wide_terminator(c);
  if (!wide && c != '.' && c != '!' && c != '?' && c != 0x2026) return false;
  return at > behind || ends_before(text, at, len, wide);
}

bool is_paragraph_end(const uint8_t *text, size_t from, size_t at, size_t len) {
  const size_t floor = at - from > REACH ? at - REACH : from;
  if (at == floor || (text[at - 1] != '\n' && text[at - 1] != '\r')) return false;
  if (text[at - 1] == '\r' && at < len && text[at] == '\n') return false;
  size_t i = at - 1;
  if (text[i] == '\n' && i > floor && text[i - 1] == '\r') i--;
  while (i > floor && (text[i - 1] == ' ' || text[i - 1] == '\t')) i--;
  return i > floor && (text[i - 1] == '\n' || text[i - 1] == '\r');
}
