/* unit_block.c - many pieces at a time must be what scan_piece finds one by one, in every variant
** that this machine runs, for every pattern.
**
** Texts are drawn from parts that cross all classes, so that runs begin and end at every place of
** a block; they are put right before a page that may not be read, at every alignment.
*/
#define _DEFAULT_SOURCE
#include "../src/block.h"
#include "../src/scan.h"

#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

enum { LONGEST = 4096, MOST_ENDS = LONGEST + BLOCK };

static uint8_t *wall; /* the byte before it is readable, it is not */

static void build_wall(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), room = 4 * page;
  uint8_t *p = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED || mprotect(p + room, page, PROT_NONE) != 0) abort();
  wall = p + room;
}

/* What texts are made of, in groups, so that a text can keep to a few and have long runs. */
static const char *const parts[] = {
    "a",
    "e",
    "s",
    "t",
    "re",
    "ll",
    "ve",
    "d",
    "m", /* letters, contractions */
    "A",
    "S",
    "LL",
    "Re",
    " ",
    " ",
    "  ",
    "\t",
    "\n",
    "\r",
    "\r\n",
    "\v",
    "\f", /* white space */
    "0",
    "12",
    "345",
    "9876543210",
    "'",
    "'s",
    "'LL",
    "'re",
    "'\xc5\xbf",
    "\xc5\xbf",
    "''",
    "/",
    "!",
    "-",
    ".\n",
    "/\n/",
    "(",
    "\x01",
    "\x7f",
    "\0",
    "\xd0\x96",
    "\xd0\xb6",
    "\xd1\x80",
    "\xd1\xa0",
    "\xd2\x81",
    "\xd2\x82",
    "\xd2\x83", /* Cyrillic */
    "\xc3\xa9",
    "\xc3\x89",
    "\xc3\x97",
    "\xc2\xa0",
    "\xc2\xab",
    "\xc2\xb2",
    "\xc7\x85",
    "\xca\xb0",
    "\xe4\xb8\xad",
    "\xe4\xb7\x80",
    "\xe5\x80\x80",
    "\xe9\xbf\xbf",
    "\xea\xb0\x80",
    "\xeb\xa0\x80",
    "\xed\x9e\xa3",
    "\xed\x9f\xbb",
    "\xe3\x80\x80",
    "\xe3\x80\x81",
    "\xe3\x81\x82",
    "\xef\xbc\x8c",
    "\xcc\x81",
    "\xe0\xa4\xbf",
    "\xd9\xa3",
    "\xe2\x80\xa8",
    "\xe2\x85\xa7",
    "\xe2\x80\x99",
    "\xf0\x9f\x98\x80",
    "\xf0\x90\x90\x80",
    "\xf0\xa0\x80\x80",
    "\xf0\x9d\x9f\x98",
    "\xf0\x9e\xa4\xa2",
};
enum { N_PARTS = sizeof parts / sizeof *parts };

static size_t random_text(uint8_t *s, size_t most) {
  const uint32_t kinds = 1 + unit_below(7);
  uint32_t chosen[7];
  size_t len = 0;
  for (uint32_t k = 0; k < kinds; k++) chosen[k] = unit_below(N_PARTS);
  for (;;) {
    const char *p = parts[unit_below(16) == 0 ? unit_below(N_PARTS) : chosen[unit_below(kinds)]];
    const size_t n = *p == 0 ? 1 : strlen(p);
    for (uint32_t times = unit_below(8) == 0 ? 1 + unit_below(70) : 1; times > 0; times--) {
      if (len + n > most) return len;
      memcpy(s + len, p, n);
      len += n;
    }
  }
}

static bool check_text(blocks_list *list, const scan_rules *r, const uint8_t *s, size_t len,
                       size_t max) {
  static size_t ends[MOST_ENDS];
  size_t at = 0;
  for (size_t from = 0; from < len;) {
    const size_t n = scan_pieces_by(list, r, s + from, len - from, ends, max);
    if (n == 0 || n > max) return false;
    for (size_t i = 0; i < n; i++) {
      at += scan_piece(r, s + at, len - at);
      if (from + ends[i] != at) return false;
    }
    from = at;
  }
  return at == len;
}

static void check_variants(const uint8_t *s, size_t len, size_t max) {
  for (int i = 0; blocks_name(i) != NULL; i++) {
    blocks_list *list = blocks_named(blocks_name(i));
    if (list == NULL) continue; /* compiled, but this machine does not run it */
    for (int k = 0; scan_name(k) != NULL; k++) {
      const scan_rules *r = scan_find(scan_name(k), strlen(scan_name(k)));
      if (check_text(list, r, s, len, max)) continue;
      CHECK(false);
      printf("  %s, %s, %zu bytes, max %zu:", blocks_name(i), scan_name(k), len, max);
      for (size_t b = 0; b < len; b++) printf(" %02x", s[b]);
      printf("\n");
    }
  }
  CHECK(true);
}

/* Every length up to 200, ending at the wall, so at every alignment too. */
static void check_page_end(void) {
  static uint8_t text[LONGEST];
  for (size_t len = 0; len <= 200; len++) {
    for (int round = 0; round < 40; round++) {
      const size_t n = random_text(text, len);
      memcpy(wall - n, text, n);
      check_variants(wall - n, n, SCAN_LEAST);
    }
  }
}

static void check_long(void) {
  static uint8_t text[LONGEST];
  for (int round = 0; round < 4000; round++) {
    const size_t n = random_text(text, 200 + unit_below(LONGEST - 200));
    memcpy(wall - n, text, n);
    check_variants(wall - n, n, SCAN_LEAST + unit_below(LONGEST - SCAN_LEAST));
  }
}

/* The ranges of first bytes that block.h takes for letters without looking. */
static void check_ranges(void) {
  for (uint32_t cp = 0x5000; cp <= 0x9fff; cp++) CHECK_EQ_INT(unicode_class(cp), CLASS_LETTER);
  for (uint32_t cp = 0xb000; cp <= 0xcfff; cp++) CHECK_EQ_INT(unicode_class(cp), CLASS_LETTER);
  for (uint32_t cp = 0x400; cp <= 0x47f; cp++) CHECK(CLASSES_L >> unicode_class(cp) & 1);
}

static void check_names(void) {
  CHECK(blocks_named("words") != NULL);
  CHECK(blocks_named("abacus") == NULL);
  CHECK(blocks_name(-1) == NULL);
  blocks_list *best = NULL;
  for (int i = 0; blocks_name(i) != NULL && best == NULL; i++) best = blocks_named(blocks_name(i));
  CHECK(best == blocks_best());
}

int main(void) {
  build_wall();
  check_names();
  check_ranges();
  check_page_end();
  check_long();
  return unit_summary();
}
