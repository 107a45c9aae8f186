/* prop_text.c - see prop_text.h.
**
** The kinds exist because each finds faults that the others miss: random bytes hardly ever hold
** two letters in a row, natural fragments are never malformed, and neither fills a window of a
** long merge. The fragments of PROP_CROSSING hold one of everything that a published pattern
** tells apart: letters with and without case, titlecase, modifier letters, marks, digits of
** three kinds, blanks that only some engines count as such, contractions and almost-contractions.
*/
#include "prop_text.h"

#include <stdlib.h>
#include <string.h>

prop_rng prop_seed(uint64_t seed, uint64_t number) {
  uint64_t x = seed * UINT64_C(0x9e3779b97f4a7c15) + number + 1;
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  x ^= x >> 31;
  return (prop_rng){.state = x ? x : 1};
}

prop_rng prop_bytes(const uint8_t *bytes, size_t len) {
  prop_rng rng = prop_seed(1, 0);
  rng.bytes = bytes;
  rng.left = len;
  return rng;
}

uint64_t prop_next(prop_rng *rng) {
  uint64_t x = rng->state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  rng->state = x;
  x *= UINT64_C(0x2545f4914f6cdd1d);
  if (rng->left == 0) return x;
  rng->left--;
  return (uint64_t)*rng->bytes++ << 56 | x >> 8;
}

uint32_t prop_below(prop_rng *rng, uint32_t n) {
  return (uint32_t)((prop_next(rng) >> 32) * n >> 32);
}

bool prop_one_in(prop_rng *rng, uint32_t n) {
  return prop_below(rng, n) == 0;
}

static const char *const kind_names[PROP_KINDS] = {
  "random bytes", "malformed mix", "class-crossing", "ASCII crossing",
  "special tokens", "run", "noisy runs", "vocabulary tokens", "small alphabet"};

const char *prop_kind_name(prop_kind kind) {
  return kind_names[kind];
}

/* ---- Building -------------------------------------------------------------------------------- */

static void append(prop_text *t, const void *bytes, size_t len) {
  if (t->cap - t->len < len) {
    t->cap = t->cap * 2 + len + 64;
    t->bytes = oracle_realloc(t->bytes, t->cap);
  }
  if (len > 0) memcpy(t->bytes + t->len, bytes, len);
  t->len += len;
}

static void append_byte(prop_text *t, uint32_t byte) {
  const uint8_t b = (uint8_t)byte;
  append(t, &b, 1);
}

static void append_point(prop_text *t, uint32_t cp) {
  if (cp < 0x80) {
    append_byte(t, cp);
    return;
  }
  const uint32_t n = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
  append_byte(t, (0xf00U >> n & 0xff) | cp >> (6 * (n - 1)));
  for (uint32_t i = n - 1; i-- > 0;) append_byte(t, 0x80 | (cp >> (6 * i) & 0x3f));
}

static const char *const fragments[] = {
  "a", "b", "Z", "x1", "the", "Data", "HTTPServer", "iPhone", "Re", "S", "\u00e9", "\u00df",
  "\u042f", "\u0434", "\u01c5", "\u1f88", "\u02b0", "\u00aa", "\u4eca", "\u306e", "\u6f22\u5b57",
  "\u30d5\u30fc", "\u30fb", "\u309c", "\u3099", "\u3040",
  "\u0e17\u0e35", "\u0915", "\u093f", "\u0301", "\u20dd", "\U0001d504", "\u1c89", "\u05d0",
  "'", "'s", "'S", "'t", "'re", "'VE", "'m", "'ll", "'lL", "'d", "'\u017f", "\u017f", "\u2019s",
  "'x", "''s", "can't", "I'LL", "\u212a",
  " ", " ", "  ", "   ", "\n", "\r\n", "\r", "\n\n", "\t", "\v", "\f", "\u00a0", "\u3000",
  "\xc2\x85", "\u2028", "\u200b", "\ufeff", "\u180e", "\u1680", "\x1c", " \n ", "\n  ",
  ".", ",", "!", "?!", "\"", "-", "_", "__", "(", ")", "/", "//", "/\n", ";\n\n", "\\n", "{", "$",
  "\u00b0", "=", "==", "<|", "|>", "\u2014", "\u3002", "\u00ab",
  "1", "23", "456", "4567", "\u00bd", "\u0663", "\u00b2", "\u2167", "\u3007", "3.14",
  "\U0001f600", "\U0001f469\u200d\U0001f4bb", "\ufe0f", "\u200d", "\U0001f1e9\U0001f1ea"};

static void append_fragment(prop_text *t, prop_rng *rng) {
  const uint32_t n = sizeof fragments / sizeof *fragments;
  const char *f = fragments[prop_below(rng, n)];
  append(t, f, strlen(f));
}

/* NUL is no fragment, because fragments are C strings; it comes in here. */
static void append_crossing(prop_text *t, prop_rng *rng) {
  static const uint32_t tops[] = {0x80, 0x250, 0x3000, 0x10000, 0x20000, 0x110000};
  if (prop_one_in(rng, 80)) {
    append_byte(t, 0);
  } else if (prop_one_in(rng, 8)) {
    const uint32_t cp = prop_below(rng, tops[prop_below(rng, sizeof tops / sizeof *tops)]);
    append_point(t, cp >= 0xd800 && cp < 0xe000 ? 0x4e00 + (cp & 0x3ff) : cp);
  } else {
    append_fragment(t, rng);
  }
}

static void append_malformed(prop_text *t, prop_rng *rng) {
  static const char *const bad[] = {
    "\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc3", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xe4\xb8",
    "\xed\xa0\x80", "\xed\xbf\xbf", "\xed\xa0\xbd\xed\xb8\x80", "\xf0\x80\x80\x80",
    "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf0\x9f", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xf8",
    "\xfe", "\xff", "\xff\xff", "\xe2\x80", "\xc2 ", "\xe3\x81's"};
  if (prop_one_in(rng, 2)) append_crossing(t, rng);
  else if (prop_one_in(rng, 4)) append_byte(t, 0x80 + prop_below(rng, 0x80));
  else {
    const char *b = bad[prop_below(rng, sizeof bad / sizeof *bad)];
    append(t, b, strlen(b));
  }
}

static void append_special(prop_text *t, prop_rng *rng, const prop_source *source) {
  if (source->n_specials == 0 || prop_one_in(rng, 3)) {
    append_crossing(t, rng);
    return;
  }
  const oracle_special *s = &source->specials[prop_below(rng, (uint32_t)source->n_specials)];
  const uint32_t len = (uint32_t)s->len;
  switch (prop_below(rng, 6)) {
    case 0: append(t, s->text, prop_below(rng, len + 1)); break;
    case 1: {
      const uint32_t from = prop_below(rng, len);
      append(t, s->text + from, len - from);
      break;
    }
    case 2: {
      append(t, s->text, len);
      t->bytes[t->len - 1 - prop_below(rng, len)] ^= (uint8_t)(1U << prop_below(rng, 8));
      break;
    }
    default: append(t, s->text, len);
  }
}

static void append_token(prop_text *t, prop_rng *rng, const prop_source *source) {
  size_t len = 0;
  const uint8_t *bytes = NULL;
  if (source->vocab) {
    const uint32_t n = oracle_vocab_size(source->vocab);
    bytes = oracle_vocab_bytes(source->vocab, prop_below(rng, n), &len);
  }
  if (bytes) append(t, bytes, len);
  else append_crossing(t, rng);
}

static void append_run(prop_text *t, prop_rng *rng, size_t len) {
  prop_text unit = {0};
  if (prop_one_in(rng, 4)) append_byte(&unit, prop_below(rng, 256));
  else if (prop_one_in(rng, 2)) append_byte(&unit, (uint8_t)" a=0\n-x'"[prop_below(rng, 8)]);
  else append_crossing(&unit, rng);
  for (const size_t end = t->len + len; t->len < end && unit.len > 0;) {
    append(t, unit.bytes, unit.len);
  }
  free(unit.bytes);
}

/* Few fragments, so that every short sequence of them comes up at every offset of a block. */
static void append_ascii(prop_text *t, prop_rng *rng) {
  static const char *const ascii[] = {
    "a", "b", "S", "B", "re", "LL", "aB", "Ab", "s", "don", "'", "'s", "'S", "'t", "'ll", "'vE",
    " ", " ", "  ", "\n", "\r", "\n\n", "\t", " \n", "\n ", "/", "//", ".", "!", "-", "..", "\x7f",
    "1", "2", "34", "567", "8901"};
  const char *f = ascii[prop_below(rng, sizeof ascii / sizeof *ascii)];
  append(t, f, strlen(f));
  if (prop_one_in(rng, 16)) append_run(t, rng, prop_below(rng, 12));
  if (prop_one_in(rng, 250)) append_crossing(t, rng);
}

/* Few bytes: in random order; in a period of up to 12 that is broken now and then; or ascending,
** where what the end of a stretch merges to can decide about its beginning. */
static void append_small(prop_text *t, prop_rng *rng, const prop_source *source, size_t len) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDE";
  const char *alphabet = source->alphabet_len > 0 ? source->alphabet : letters;
  const uint32_t all = (uint32_t)(source->alphabet_len > 0 ? source->alphabet_len
                                                           : sizeof letters - 1);
  const uint32_t n = prop_one_in(rng, 3) ? all : 1 + prop_below(rng, all);
  const uint32_t from = prop_below(rng, all - n + 1);
  const uint32_t shape = prop_below(rng, 3);
  const uint32_t period = shape == 0 ? 1 + prop_below(rng, 12) : 0;
  const uint32_t breaks = 1U << prop_below(rng, 12);
  const size_t start = t->len;
  uint32_t next = prop_below(rng, n);
  while (t->len < start + len) {
    if (period > 0 && t->len - start >= period && !prop_one_in(rng, breaks + 1)) {
      append_byte(t, t->bytes[t->len - period]);
      continue;
    }
    append_byte(t, (uint8_t)alphabet[from + next]);
    next = shape == 1 && next + 1 < n && !prop_one_in(rng, breaks + 1) ? next + 1
                                                                       : prop_below(rng, n);
    if (shape == 1 && next + 1 == n && prop_one_in(rng, 2)) next = 0;
  }
}

/* ---- Choosing -------------------------------------------------------------------------------- */

static size_t random_length(prop_rng *rng, bool long_often) {
  const uint32_t r = prop_below(rng, 20000);
  if (r < 2) return prop_below(rng, 20000);
  if (r < (long_often ? 300 : 40)) return 900 + prop_below(rng, 3000);
  if (r < 2400) return 64 + prop_below(rng, 236);
  return prop_below(rng, r < 11000 ? 25 : 65);
}

static prop_kind random_kind(prop_rng *rng, const prop_source *source) {
  static const uint8_t shares[PROP_KINDS] = {7, 13, 26, 13, 14, 5, 7, 10, 5};
  if (source->alphabet_len > 0 && !prop_one_in(rng, 3)) return PROP_SMALL;
  uint32_t r = prop_below(rng, 100);
  prop_kind kind = PROP_RANDOM;
  for (; r >= shares[kind]; kind++) r -= shares[kind];
  return kind;
}

static void avoid_points(prop_text *t, bool (*avoid)(uint32_t)) {
  for (size_t at = 0; at < t->len;) {
    uint32_t cp;
    const size_t n = oracle_utf8(t->bytes + at, t->len - at, &cp);
    if (n > 0 && avoid(cp)) memset(t->bytes + at, 'x', n);
    at += n > 0 ? n : 1;
  }
}

void prop_text_make(prop_text *t, prop_rng *rng, const prop_source *source) {
  size_t len = random_length(rng, source->long_often);
  t->len = 0;
  t->kind = random_kind(rng, source);
  if (t->kind == PROP_ASCII && len < 65) len = prop_below(rng, 200);
  /* A long text of letters only is one long piece: what a window of a merge is for. */
  if (len >= 900 && prop_one_in(rng, 2)) t->kind = PROP_SMALL;
  while (t->len < len) {
    switch (t->kind) {
      case PROP_RANDOM: append_byte(t, prop_below(rng, 256)); break;
      case PROP_MALFORMED: append_malformed(t, rng); break;
      case PROP_CROSSING: append_crossing(t, rng); break;
      case PROP_ASCII: append_ascii(t, rng); break;
      case PROP_SPECIAL: append_special(t, rng, source); break;
      case PROP_RUN: append_run(t, rng, len); break;
      case PROP_NOISY_RUN:
        append_run(t, rng, prop_below(rng, 40));
        append_crossing(t, rng);
        break;
      case PROP_TOKENS: append_token(t, rng, source); break;
      case PROP_SMALL: case PROP_KINDS: append_small(t, rng, source, len); break;
    }
  }
  /* Cut anywhere, in the middle of a character too. */
  if (t->len > len && prop_one_in(rng, 2)) t->len = len;
  if (source->avoid) avoid_points(t, source->avoid);
}

void prop_text_clear(prop_text *t) {
  free(t->bytes);
  *t = (prop_text){0};
}
