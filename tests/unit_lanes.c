/* unit_lanes.c - pieces merged by turns become what each becomes alone.
**
** Every kind of lanes that this processor has, over random pieces of every length and jobs of
** every number; vocabularies whose ids follow the merges and others, crowded lines of the table of
** pairs, characters instead of bytes, the public encodings.
*/
#include "../src/lanes.h"
#include "../src/model.h"

#include "unit.h"

enum { MOST_JOBS = 100, TEXT = 1 << 13 };

static const char *const names[] = {"avx512", "avx2"};
static uint8_t text[TEXT];
static lanes_room *room;

static void fill_text(const char *letters) {
  const size_t n = strlen(letters);
  for (size_t i = 0; i < TEXT; i++) text[i] = (uint8_t)letters[unit_below((uint32_t)n)];
}

static bool same_alone(const vocab *v, merge_scratch *m, const merge_job *j) {
  size_t n;
  if (merge_piece(v, m, j->s, j->len, &n, NULL) != BPE_OK || n != j->n) return false;
  return j->ids == NULL || memcmp(m->ids, j->ids, n * sizeof *j->ids) == 0;
}

/* Jobs of random pieces; `most` bytes at most. */
static void check_jobs(const bpe_model *m, uint32_t most, int rounds) {
  static uint32_t ids[MOST_JOBS * SHORT_PIECE];
  merge_job jobs[MOST_JOBS];
  merge_scratch scratch = {.alloc = unit_alloc};
  if (!CHECK(lanes_fit(&m->v))) return;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    lanes_merge *merge = lanes_named(names[k]);
    size_t wrong = 0;
    for (int round = 0; merge != NULL && round < rounds; round++) {
      const size_t n = unit_below(MOST_JOBS + 1);
      for (size_t i = 0; i < n; i++) {
        const uint32_t len = 1 + unit_below(most);
        jobs[i] = (merge_job){.s = text + unit_below(TEXT - len), .len = len};
        if (unit_below(2) == 0) jobs[i].ids = ids + i * SHORT_PIECE;
      }
      merge(&m->v, room, jobs, n);
      for (size_t i = 0; i < n; i++) wrong += !same_alone(&m->v, &scratch, &jobs[i]);
    }
    CHECK_EQ_INT(wrong, 0);
  }
  merge_scratch_clear(&scratch);
}

static void check_model(bpe_model *m, int rounds) {
  if (m == NULL) return;
  check_jobs(m, 4, rounds);
  check_jobs(m, 17, rounds);
  check_jobs(m, SHORT_PIECE, rounds);
  bpe_model_free(m);
}

/* Random merges of a few letters, in an order of their own; with `gaps`, ids that do not follow
** the order of merges. */
static bpe_model *random_model(uint32_t n, bool gaps) {
  enum { MOST = 400 };
  uint32_t ids[MOST], n_ids = 0;
  uint8_t bytes[MOST][SHORT_PIECE];
  size_t len[MOST];
  bpe_builder *b = unit_builder("none");
  for (uint32_t c = 'a'; c <= 'd'; c++, n_ids++) {
    ids[n_ids] = c;
    bytes[n_ids][0] = (uint8_t)c;
    len[n_ids] = 1;
  }
  for (uint32_t rank = 0; rank < n && n_ids < MOST;) {
    const uint32_t l = unit_below(n_ids), r = unit_below(n_ids);
    uint8_t *const to = bytes[n_ids];
    if (len[l] + len[r] > 12) continue;
    memcpy(to, bytes[l], len[l]);
    memcpy(to + len[l], bytes[r], len[r]);
    len[n_ids] = len[l] + len[r];
    bool again = false;
    for (uint32_t i = 0; i < n_ids && !again; i++)
      again = len[i] == len[n_ids] && memcmp(bytes[i], to, len[i]) == 0;
    if (again) continue;
    ids[n_ids] = gaps ? 256 + (n - rank) * 3 : 256 + rank;
    bpe_builder_token(b, ids[n_ids], BPE_TOKEN, to, len[n_ids]);
    bpe_builder_merge(b, rank++, ids[l], ids[r], ids[n_ids], 0);
    n_ids++;
  }
  return unit_finish(b);
}

/* Merging begins with characters; bytes are the last choice. */
static bpe_model *chars_model(void) {
  bpe_builder *b = unit_builder("none");
  builder_chars(b);
  for (uint32_t c = 0; c < 256; c++) builder_flag(b, c, ENTRY_FALLBACK);
  bpe_builder_token(b, 256, BPE_TOKEN, "a", 1);
  bpe_builder_token(b, 257, BPE_TOKEN, "b", 1);
  bpe_builder_token(b, 258, BPE_TOKEN, "\xc3\xa9", 2);
  bpe_builder_grow(b, 256, 257, 259);
  bpe_builder_grow(b, 256, 258, 260);
  return unit_finish(b);
}

/* Ids and merges as many as a word has room for, and one more. */
static void check_limits(void) {
  for (uint32_t over = 0; over < 2; over++) {
    bpe_builder *b = unit_builder("none");
    const uint32_t last = (1u << PAIR_ID_BITS) - 2 + over;
    bpe_builder_token(b, last, BPE_TOKEN, "ab", 2);
    bpe_builder_merge(b, 0, 'a', 'b', last, 0);
    bpe_builder_token(b, 300, BPE_TOKEN, "abab", 4);
    bpe_builder_merge(b, 1, last, last, 300, 0);
    bpe_model *m = unit_finish(b);
    if (m == NULL) return;
    CHECK(lanes_fit(&m->v) == (over == 0));
    if (over == 0) check_jobs(m, 20, 200);
    bpe_model_free(m);
  }
}

int main(void) {
  void *block = malloc(sizeof *room + CACHE_LINE);
  if (block == NULL) abort();
  room = cache_aligned(block);
  fill_text("abcd");
  check_model(unit_tiny("none"), 300);
  for (int k = 0; k < 40; k++) check_model(random_model(1 + unit_below(350), k % 2 == 1), 60);
  check_limits();
  fill_text("ab\xc3\xa9 ");
  check_model(chars_model(), 300);
  fill_text("etaoin shrdlu ETAOIN,.\n\xc3\xa9");
  for (int which = 0; bpe_builtin_name(which) != NULL; which++) {
    bpe_model *m = NULL;
    CHECK(bpe_builtin_load(&unit_alloc, which, NULL, &m) == BPE_OK);
    check_model(m, 300);
  }
  free(block);
  return unit_summary();
}
