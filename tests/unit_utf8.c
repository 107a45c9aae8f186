/* unit_utf8.c - well-formed and malformed UTF-8 against Unicode's table 3-7, written out.
**
** A sequence is well-formed if one row of the table fits all its bytes; the maximal subpart of a
** malformed place is the longest start of a row that fits, or one byte. Every start of one and
** two bytes is compared, and every four bytes made of those at the edges of the ranges.
*/
#include "../src/utf8.h"

#include "unit.h"

typedef struct row {
  size_t len;
  uint8_t low[4], high[4];
} row;

static const row table[] = {
    {1, {0x00}, {0x7f}},
    {2, {0xc2, 0x80}, {0xdf, 0xbf}},
    {3, {0xe0, 0xa0, 0x80}, {0xe0, 0xbf, 0xbf}},
    {3, {0xe1, 0x80, 0x80}, {0xec, 0xbf, 0xbf}},
    {3, {0xed, 0x80, 0x80}, {0xed, 0x9f, 0xbf}},
    {3, {0xee, 0x80, 0x80}, {0xef, 0xbf, 0xbf}},
    {4, {0xf0, 0x90, 0x80, 0x80}, {0xf0, 0xbf, 0xbf, 0xbf}},
    {4, {0xf1, 0x80, 0x80, 0x80}, {0xf3, 0xbf, 0xbf, 0xbf}},
    {4, {0xf4, 0x80, 0x80, 0x80}, {0xf4, 0x8f, 0xbf, 0xbf}},
};

static const uint8_t edges[] = {0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2,
                                0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4,
                                0xf5, 0xff};

/* How much of the table's rows s begins with, at most; *whole: one is complete. */
static size_t fitting(const uint8_t *s, size_t len, bool *whole) {
  size_t best = 0;
  *whole = false;
  for (size_t k = 0; k < sizeof table / sizeof *table; k++) {
    const row *r = &table[k];
    size_t n = 0;
    while (n < r->len && n < len && s[n] >= r->low[n] && s[n] <= r->high[n]) n++;
    if (n == r->len) *whole = true;
    if (n > best) best = n;
  }
  return best == 0 ? 1 : best;
}

/* What repairing s gives, by the table. STRICT: the length before the first malformed byte. */
static size_t expected_repair(const uint8_t *s, size_t len, bpe_repair how, uint8_t *out) {
  size_t o = 0;
  for (size_t i = 0; i < len;) {
    bool whole;
    const size_t n = fitting(s + i, len - i, &whole);
    if (whole) {
      memcpy(out + o, s + i, n);
      o += n;
    } else if (how == BPE_REPAIR_STRICT) {
      return o;
    } else if (how != BPE_REPAIR_IGNORE) {
      bool held = how == BPE_REPAIR_HOLD && i + n == len;
      if (held && n == 1) { /* one byte held back: only if a sequence can begin with it */
        held = s[i] >= 0xc2 && s[i] <= 0xf4;
      }
      if (!held) {
        memcpy(out + o, "\xef\xbf\xbd", 3);
        o += 3;
      }
    }
    i += n;
  }
  return o;
}

static bool agrees(const uint8_t *s, size_t len) {
  bool whole;
  const size_t n = fitting(s, len, &whole);
  if (utf8_length(s, len) != (whole ? n : 0)) return false;
  if (bpe_utf8_next(s, len) != n) return false;
  if (!whole && utf8_subpart(s, len) != n) return false;
  size_t valid = 0, malformed = 0;
  while (valid < len) {
    const size_t k = fitting(s + valid, len - valid, &whole);
    if (!whole) break;
    valid += k;
  }
  while (malformed < len) {
    (void)fitting(s + malformed, len - malformed, &whole);
    if (whole) break;
    malformed++;
  }
  return utf8_valid_run(s, len) == valid && bpe_utf8_valid(s, len) == (valid == len) &&
         utf8_malformed_run(s, len) == malformed;
}

static bool repairs(const uint8_t *s, size_t len) {
  uint8_t expected[64];
  bool same = true;
  for (int how = BPE_REPAIR_REPLACE; how <= BPE_REPAIR_HOLD; how++) {
    bpe_error e = {.status = BPE_OK};
    bpe_buffer b;
    bpe_buffer_init(&b, &unit_alloc, 0);
    const size_t n = expected_repair(s, len, (bpe_repair)how, expected);
    const bpe_status st = bpe_utf8_repair(s, len, (bpe_repair)how, &e, &b);
    if (how == BPE_REPAIR_STRICT && n < len)
      same = same && st == BPE_BADTEXT && e.offset == n;
    else
      same = same && st == BPE_OK && b.len == n && (n == 0 || memcmp(b.bytes, expected, n) == 0);
    bpe_buffer_clear(&b);
  }
  return same;
}

static void check_all_short(void) {
  size_t wrong = 0, tried = 0;
  for (unsigned x = 0; x < 0x10000; x++) {
    const uint8_t s[2] = {(uint8_t)(x >> 8), (uint8_t)x};
    wrong += !agrees(s, 2) || !repairs(s, 2);
    if (s[1] == 0) wrong += !agrees(s, 1) || !repairs(s, 1);
    tried++;
  }
  CHECK_EQ_INT(wrong, 0);
  CHECK_EQ_INT(tried, 0x10000);
}

static void check_edges(void) {
  const size_t n = sizeof edges;
  size_t wrong = 0;
  for (size_t x = 0; x < n * n * n * n; x++) {
    const uint8_t s[4] = {edges[x / n / n / n], edges[x / n / n % n], edges[x / n % n],
                          edges[x % n]};
    /* Of three, the fourth is behind the end and must not be looked at. */
    if (!agrees(s, 4) || !agrees(s, 3) || (x % 8 == 0 && (!repairs(s, 4) || !repairs(s, 3)))) {
      if (wrong++ == 0) printf("%02x %02x %02x %02x\n", s[0], s[1], s[2], s[3]);
    }
  }
  CHECK_EQ_INT(wrong, 0);
}

static void check_decoding(void) {
  size_t wrong = 0;
  for (uint32_t cp = 0; cp < 0x110000; cp++) {
    uint8_t s[4];
    const size_t n = unit_write_char(cp, s);
    const bool surrogate = cp >= 0xd800 && cp < 0xe000;
    size_t len = 0;
    if (surrogate) wrong += utf8_length(s, n) != 0;
    else wrong += utf8_length(s, n) != n || utf8_decode(s, &len) != cp || len != n;
  }
  CHECK_EQ_INT(wrong, 0);
}

/* The fast way over ASCII must end where the bad byte is, wherever words begin. */
static void check_runs(void) {
  for (size_t shift = 0; shift < 9; shift++) {
    for (size_t at = 0; at <= 40; at++) {
      uint8_t s[64];
      memset(s, 'a', sizeof s);
      if (at >= 3) memcpy(s + shift, "\xe2\x82\xac", 3);
      if (at < 40) s[shift + at] = 0xff;
      CHECK_EQ_INT(utf8_valid_run(s + shift, 40), at);
    }
  }
  CHECK_EQ_INT(utf8_valid_run((const uint8_t *)"", 0), 0);
  CHECK_EQ_INT(utf8_malformed_run((const uint8_t *)"", 0), 0);
  CHECK_EQ_INT(utf8_malformed_run((const uint8_t *)"\xff\x80\xe2\x82" "a", 5), 4);
  CHECK(bpe_utf8_valid(NULL, 0));
}

static void repairs_to(const char *s, size_t len, bpe_repair how, const char *out, size_t n) {
  bpe_buffer b;
  bpe_buffer_init(&b, &unit_alloc, 0);
  CHECK_EQ_INT(bpe_utf8_repair(s, len, how, NULL, &b), BPE_OK);
  CHECK_BYTES(b.bytes, b.len, out, n);
  bpe_buffer_clear(&b);
}

#define SUBST "\xef\xbf\xbd"

static void check_repair_examples(void) {
  /* The example of the Unicode standard, table 3-8 and those that follow it. */
  repairs_to("a\xf1\x80\x80\xe1\x80\xc2" "b\x80" "c\x80\xbf" "d", 13, BPE_REPAIR_REPLACE,
             "a" SUBST SUBST SUBST "b" SUBST "c" SUBST SUBST "d", 22);
  repairs_to("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82" "A", 9, BPE_REPAIR_REPLACE,
             SUBST SUBST SUBST SUBST SUBST SUBST SUBST SUBST "A", 25);
  repairs_to("\xed\xa0\x80" "A", 4, BPE_REPAIR_REPLACE, SUBST SUBST SUBST "A", 10);
  repairs_to("x\xe4\xb8", 3, BPE_REPAIR_HOLD, "x", 1);
  repairs_to("x\xf0\x90\x80\x80", 3, BPE_REPAIR_HOLD, "x", 1); /* nothing behind the end is read */
  repairs_to("x\xe4\xb8", 3, BPE_REPAIR_REPLACE, "x" SUBST, 4);
  repairs_to("x\xe4\xb8y", 4, BPE_REPAIR_HOLD, "x" SUBST "y", 5);
  repairs_to("x\xe4\xff", 3, BPE_REPAIR_HOLD, "x" SUBST SUBST, 7);
  repairs_to("x\xff", 2, BPE_REPAIR_HOLD, "x" SUBST, 4);
  repairs_to("x\x80y\xe4\xb8", 5, BPE_REPAIR_IGNORE, "xy", 2);
  repairs_to("", 0, BPE_REPAIR_HOLD, "", 0);
  bpe_error e = {.status = BPE_OK};
  bpe_buffer b;
  bpe_buffer_init(&b, &unit_alloc, 0);
  CHECK_EQ_INT(bpe_utf8_repair("ab\0\xc3", 4, BPE_REPAIR_STRICT, &e, &b), BPE_BADTEXT);
  CHECK(unit_says(&e, BPE_BADTEXT, 3, "malformed UTF-8 at byte 3"));
  bpe_buffer_clear(&b);
  b.limit = 4;
  e = (bpe_error){.status = BPE_OK};
  CHECK_EQ_INT(bpe_utf8_repair("ab\xff\xff", 4, BPE_REPAIR_REPLACE, &e, &b), BPE_TOOBIG);
  CHECK_EQ_INT(e.status, BPE_TOOBIG);
  bpe_buffer_clear(&b);
}

/* A text is repaired in parts, which may end inside a character. */
static void check_repair_far(void) {
  enum { N = 3 * UTF8_LONG };
  static char text[N + 6];
  for (size_t shift = 0; shift < 4; shift++) {
    memset(text, 'x', shift);
    for (size_t i = 0; i < N; i += 3) memcpy(text + shift + i, "\xe4\xb8\xad", 3);
    text[shift + N] = '\xff';
    bpe_error e = {.status = BPE_OK};
    bpe_buffer b;
    bpe_buffer_init(&b, &unit_alloc, 0);
    CHECK_EQ_INT(bpe_utf8_repair(text, shift + N + 1, BPE_REPAIR_STRICT, &e, &b), BPE_BADTEXT);
    CHECK_EQ_INT(e.offset, shift + N);
    CHECK_BYTES(b.bytes, b.len, text, shift + N);
    bpe_buffer_clear(&b);
    repairs_to(text, shift + N + 1, BPE_REPAIR_IGNORE, text, shift + N);
    CHECK_EQ_INT(bpe_utf8_repair(text, shift + N + 1, BPE_REPAIR_REPLACE, NULL, &b), BPE_OK);
    CHECK(b.len == shift + N + 3 && memcmp(b.bytes, text, shift + N) == 0);
    CHECK(b.len >= 3 && memcmp(b.bytes + b.len - 3, SUBST, 3) == 0);
    bpe_buffer_clear(&b);
  }
}

/* Texts long enough to be judged many bytes at a time: whole characters, and somewhere among them
** a few bytes at the edges of the ranges. */
static void check_long_runs(void) {
  enum { LONG = 300 };
  uint8_t s[LONG + 4];
  size_t wrong = 0;
  for (int round = 0; round < 200000; round++) {
    size_t len = 0, expected = 0;
    const size_t most = unit_below(LONG);
    const uint32_t kinds = 1 + unit_below(4);
    while (len < most) {
      const row *r = &table[unit_below(kinds) == 0 ? unit_below(9) : 0];
      for (size_t k = 0; k < r->len; k++)
        s[len++] = (uint8_t)(r->low[k] + unit_below(r->high[k] - r->low[k] + 1u));
    }
    if (unit_below(4) != 0 && len > 4) {
      const size_t at = unit_below((uint32_t)len - 4);
      for (uint32_t k = 0; k <= unit_below(4); k++) s[at + k] = edges[unit_below(sizeof edges)];
    }
    const size_t cut = unit_below(4);
    if (cut < len) len -= cut;
    for (bool whole = true; expected < len;) {
      const size_t n = fitting(s + expected, len - expected, &whole);
      if (!whole) break;
      expected += n;
    }
    wrong += utf8_valid_run(s, len) != expected;
  }
  CHECK_EQ_INT(wrong, 0);
}

int main(void) {
  check_all_short();
  check_edges();
  check_decoding();
  check_runs();
  check_repair_examples();
  check_repair_far();
  check_long_runs();
  return unit_summary();
}
