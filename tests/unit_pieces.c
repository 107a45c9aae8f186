/* unit_pieces.c - the table of pieces met before may forget, but is never wrong.
**
** A shadow remembers what every piece became. Whatever the table still has must agree with it, by
** single look-ups and by the batch, with and without ids, in a table so small that lines are full,
** the pool is written over all the time, and places in it come again.
*/
#define _DEFAULT_SOURCE
#include "../src/merge.h"
#include "../src/model.h"
#include "../src/pieces.h"

#include "unit.h"

#include <sys/mman.h>
#include <unistd.h>

enum { TEXT = 1 << 14, MOST = 300 };

static uint8_t text[TEXT];
static merge_scratch scratch;

/* Letters of which unit_tiny merges some, so pieces have fewer ids than bytes. */
static void fill_text(uint32_t letters) {
  for (size_t i = 0; i < TEXT; i++) text[i] = (uint8_t)('a' + unit_below(letters));
}

static const uint32_t *truth(const vocab *v, size_t at, size_t len, size_t *n) {
  if (merge_piece(v, &scratch, text + at, len, n, NULL) != BPE_OK) abort();
  return scratch.ids;
}

static bool same_ids(const piece_table *t, uint32_t value, const uint32_t *ids, size_t n) {
  if (pieces_count(value) != n) return false;
  if (!pieces_has_ids(value)) return true;
  const uint8_t *packed = pieces_ids(t, value);
  if (pieces_first_id(t, value, packed) != ids[0]) return false;
  for (size_t i = 1; i < n; i++)
    if (kept_id(t, packed, n, i) != ids[i]) return false;
  return true;
}

/* Looks one piece up, and adds it if it is not there, or not with ids that are wanted. */
static bool one_piece(piece_table *t, const piece_text *x, size_t at, size_t len, bool keep,
                      size_t *found) {
  size_t n;
  const uint32_t *ids = truth(t->v, at, len, &n);
  const piece_key k = pieces_key(x, at, len);
  const uint32_t value = pieces_find(t, x, k, at, len);
  *found += value != 0;
  if (value != 0 && !same_ids(t, value, ids, n)) return false;
  if (value != 0 && (!keep || pieces_has_ids(value))) return true;
  pieces_add(t, k, x->bytes + at, len, ids, n, keep);
  const uint32_t again = pieces_find(t, x, k, at, len);
  if (len > PIECES_LONGEST || n > UINT8_MAX) return again == 0;
  return again != 0 && same_ids(t, again, ids, n) && (!keep || pieces_has_ids(again));
}

/* A batch of pieces of random lengths, looked up at once. */
static bool one_batch(piece_table *t, piece_batch *b, const piece_text *x, size_t *found) {
  size_t ends[PIECES_BATCH], n = 0, from = unit_below(TEXT - 1), at = from;
  b->n = 0;
  while (n < PIECES_BATCH && at < TEXT) {
    at += 1 + unit_below(unit_below(16) == 0 ? MOST : 12);
    if (at > TEXT) at = TEXT;
    ends[n++] = at - from / 2;
  }
  const size_t first = unit_below((uint32_t)n + 1); /* in two parts */
  pieces_collect(t, b, x, from, from / 2, ends, first);
  pieces_collect(t, b, x, first == 0 ? from : from / 2 + ends[first - 1], from / 2, ends + first,
                 n - first);
  const uint64_t sum = pieces_lookup(t, b);
  uint64_t expected = 0;
  size_t missed = 0;
  for (size_t i = 0; i < n; i++) {
    const size_t start = (size_t)(b->probes[i].start - text), len = piece_length(b, i);
    const uint32_t value = b->values[i];
    size_t n_ids;
    const uint32_t *ids = truth(t->v, start, len, &n_ids);
    if (start + len != from / 2 + ends[i]) return false;
    if (value != pieces_find(t, x, pieces_key(x, start, len), start, len)) return false;
    if (value != 0 && !same_ids(t, value, ids, n_ids)) return false;
    expected += pieces_count(value);
    missed += value == 0;
    *found += value != 0;
  }
  for (size_t m = 0; m < b->n_missed; m++)
    if (b->values[b->missed[m]] != 0) return false;
  return sum == expected && missed == b->n_missed;
}

static void check_table(const vocab *v, size_t bytes, enum piece_width width, uint32_t letters, bool full) {
  static piece_batch b;
  piece_table t;
  piece_text x;
  size_t found = 0, wrong = 0;
  fill_text(letters);
  piece_text_init(&x, text, TEXT);
  if (!CHECK(pieces_init(&t, &unit_alloc, v, bytes))) return;
  if (width < t.width) t.width = width;
  CHECK(pieces_bytes(&t) <= (bytes > 4096 ? bytes : 4096));
  for (int round = 0; round < 20000; round++) {
    size_t len = 1 + unit_below(unit_below(4) == 0 ? MOST : 8);
    const size_t at = unit_below(unit_below(2) == 0 ? TEXT : TEXT / 64);
    if (len > TEXT - at) len = TEXT - at;
    wrong += !one_piece(&t, &x, at, len, unit_below(2) == 0, &found);
    if (round % 100 == 0) wrong += !one_batch(&t, &b, &x, &found);
  }
  CHECK_EQ_INT(wrong, 0);
  CHECK(found > 1000);
  CHECK((t.n_dropped > 20) == full);
  pieces_clear(&t);
}

/* Ids too large for three bytes are not kept, and a piece of one is counted all the same. */
static void check_large_ids(const vocab *v) {
  piece_table t;
  piece_text x;
  const uint32_t ids[] = {NO_IDS, NO_IDS - 1, 7};
  piece_text_init(&x, text, TEXT);
  if (!CHECK(pieces_init(&t, &unit_alloc, v, 1))) return;
  for (size_t n = 1; n <= 3; n++) {
    const piece_key k = pieces_key(&x, n, 5);
    pieces_add(&t, k, x.bytes + n, 5, ids, n, true);
    const uint32_t value = pieces_find(&t, &x, k, n, 5);
    CHECK(pieces_count(value) == n && !pieces_has_ids(value));
  }
  const piece_key k = pieces_key(&x, 9, 5);
  pieces_add(&t, k, x.bytes + 9, 5, ids + 1, 1, false);
  CHECK(same_ids(&t, pieces_find(&t, &x, k, 9, 5), ids + 1, 1));
  pieces_clear(&t);
}

/* Keys read nothing behind the text, and are those of the bytes alone. */
static void check_page_end(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  uint8_t *p = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED || mprotect(p + page, page, PROT_NONE) != 0) abort();
  size_t wrong = 0;
  for (size_t i = 0; i < page; i++) p[i] = (uint8_t)unit_random();
  for (size_t len = 0; len <= 200; len++) {
    const uint8_t *s = p + page - len;
    piece_text x;
    piece_text_init(&x, s, len);
    for (size_t at = 0; at < len; at++) {
      for (size_t n = 1; n <= len - at; n++) {
        const piece_key a = pieces_key(&x, at, n), b = key_any(s + at, n);
        wrong += a.low != b.low || a.high != b.high;
      }
    }
  }
  CHECK_EQ_INT(wrong, 0);
  munmap(p, 2 * page);
}

static void check_memory(const vocab *v) {
  piece_table t;
  for (size_t k = 1; k <= 2; k++) {
    unit_fail(k, false);
    CHECK(!pieces_init(&t, &unit_alloc, v, 1 << 16));
  }
  unit_fail(0, false);
  CHECK(!pieces_init(&t, &unit_alloc, v, SIZE_MAX));
}

int main(void) {
  scratch.alloc = unit_alloc;
  bpe_model *m = unit_tiny("gpt2");
  if (m != NULL) {
    for (int k = 0; k < 3; k++) {
      const enum piece_width wide = (enum piece_width)k;
      check_table(&m->v, 1, wide, 3, true);
      check_table(&m->v, 1 << 16, wide, 3, true);
      check_table(&m->v, 1 << 16, wide, 26, true);
      check_table(&m->v, 1 << 24, wide, 26, false);
    }
    check_large_ids(&m->v);
    check_memory(&m->v);
  }
  check_page_end();
  merge_scratch_clear(&scratch);
  bpe_model_free(m);
  return unit_summary();
}
