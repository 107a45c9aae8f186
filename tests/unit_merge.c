/* unit_merge.c - merging against its definition, executed literally, on random merge lists.
**
** A list is small and unfriendly on purpose: few letters, so that everything merges with
** everything; ranks in random order, so that what a merge makes may merge before what made it;
** several pairs with one result; a byte that is no token. Texts are random, one letter, or
** periodic, their lengths those where merge.c changes its method, and around.
**
** Last, every token of every built-in encoding must merge to itself: loading relies on it.
*/
#include "../src/merge.h"
#include "../src/model.h"

#include "unit.h"

enum { MAX_IDS = 80, MAX_TOKEN = 40, MAX_TEXT = 20000, NO_BYTE = 'z' };

/* The test's own description of a list. */
typedef struct list {
  uint8_t bytes[MAX_IDS][MAX_TOKEN];
  size_t len[MAX_IDS], n_ids, n_letters;
  uint32_t rank[MAX_IDS][MAX_IDS], to[MAX_IDS][MAX_IDS]; /* rank BPE_NONE: no merge */
} list;

static uint32_t find_token(const list *l, const uint8_t *s, size_t len) {
  for (size_t i = 0; i < l->n_ids; i++)
    if (l->len[i] == len && memcmp(l->bytes[i], s, len) == 0) return (uint32_t)i;
  return BPE_NONE;
}

static void make_list(list *l, uint32_t letters, uint32_t joins) {
  uint32_t ranks[MAX_IDS], n_ranks = 0;
  memset(l, 0, sizeof *l);
  memset(l->rank, 0xff, sizeof l->rank);
  l->n_letters = letters;
  for (uint32_t i = 0; i < letters; i++, l->n_ids++) {
    l->bytes[i][0] = (uint8_t)('a' + i);
    l->len[i] = 1;
  }
  for (uint32_t i = 0; i < joins; i++) { /* distinct ranks in random order, with gaps */
    const uint32_t at = unit_below(n_ranks + 1);
    ranks[n_ranks++] = ranks[at];
    ranks[at] = 3 * i;
  }
  for (uint32_t i = 0; i < joins; i++) {
    const uint32_t a = unit_below((uint32_t)l->n_ids), b = unit_below((uint32_t)l->n_ids);
    uint8_t s[2 * MAX_TOKEN];
    const size_t len = l->len[a] + l->len[b];
    if (len > MAX_TOKEN || l->rank[a][b] != BPE_NONE) continue;
    memcpy(s, l->bytes[a], l->len[a]);
    memcpy(s + l->len[a], l->bytes[b], l->len[b]);
    uint32_t id = find_token(l, s, len), rank = ranks[i];
    if (id == BPE_NONE) {
      id = (uint32_t)l->n_ids++;
      memcpy(l->bytes[id], s, len);
      l->len[id] = len;
    } else if (unit_below(2) == 0) { /* a second pair with the same result shares its rank */
      for (size_t x = 0; x < l->n_ids; x++)
        for (size_t y = 0; y < l->n_ids; y++)
          if (l->rank[x][y] != BPE_NONE && l->to[x][y] == id) rank = l->rank[x][y];
    }
    l->rank[a][b] = rank;
    l->to[a][b] = id;
  }
}

static bpe_model *model_of(const list *l) {
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  for (uint32_t i = 0; i < l->n_ids; i++)
    bpe_builder_token(b, i, BPE_TOKEN, l->bytes[i], l->len[i]);
  for (uint32_t x = 0; x < l->n_ids; x++)
    for (uint32_t y = 0; y < l->n_ids; y++)
      if (l->rank[x][y] != BPE_NONE) bpe_builder_merge(b, l->rank[x][y], x, y, l->to[x][y], 0);
  bpe_builder_pattern(b, "none", 4, false);
  return unit_finish(b);
}

/* The lowest rank, the leftmost of equals, again and again. */
static size_t slow_merge(const list *l, const uint8_t *s, size_t n, uint32_t *ids) {
  for (size_t i = 0; i < n; i++)
    ids[i] = s[i] < 'a' + l->n_letters ? (uint32_t)(s[i] - 'a') : BPE_NONE;
  for (;;) {
    size_t at = 0;
    uint32_t least = BPE_NONE;
    for (size_t i = 0; i + 1 < n; i++) {
      if (ids[i] == BPE_NONE || ids[i + 1] == BPE_NONE) continue;
      const uint32_t rank = l->rank[ids[i]][ids[i + 1]];
      if (rank < least) {
        least = rank;
        at = i;
      }
    }
    if (least == BPE_NONE) return n;
    ids[at] = l->to[ids[at]][ids[at + 1]];
    n--;
    memmove(ids + at + 1, ids + at + 2, (n - at - 1) * sizeof *ids);
  }
}

static void make_text(const list *l, uint8_t *s, size_t len) {
  const uint32_t kind = unit_below(5), letters = (uint32_t)l->n_letters;
  const size_t period = kind < 2 ? len + 1 : 1 + unit_below(kind == 2 ? 3 : 40);
  for (size_t i = 0; i < len; i++)
    s[i] = i >= period ? s[i - period] : (uint8_t)('a' + unit_below(letters));
  if (kind == 4) /* a periodic text with a few flaws */
    for (int k = 0; k < 3; k++) s[unit_below((uint32_t)len)] = (uint8_t)('a' + unit_below(letters));
  if (unit_below(4) == 0) s[unit_below((uint32_t)len)] = NO_BYTE;
}

static bool agrees(const list *l, const bpe_model *m, merge_scratch *scratch, const uint8_t *s,
                   size_t len) {
  static uint32_t expected[MAX_TEXT];
  size_t n = 0;
  const size_t n_expected = slow_merge(l, s, len, expected);
  if (merge_piece(&m->v, scratch, s, len, &n, NULL) != BPE_OK) return false;
  if (n == n_expected && memcmp(scratch->ids, expected, n * sizeof *expected) == 0) return true;
  printf("  %zu bytes: %zu ids, expected %zu\n", len, n, n_expected);
  return false;
}

/* Random lists, and for each texts of lengths low to high. */
static void check_random(uint32_t n_lists, size_t low, size_t high, size_t step) {
  static list l;
  static uint8_t text[MAX_TEXT];
  merge_scratch scratch = {.alloc = unit_alloc};
  for (uint32_t k = 0; k < n_lists; k++) {
    make_list(&l, 1 + unit_below(4), 1 + unit_below(60));
    bpe_model *m = model_of(&l);
    if (m == NULL) break;
    for (size_t len = low; len <= high; len += step) {
      make_text(&l, text, len);
      if (!CHECK(agrees(&l, m, &scratch, text, len))) break;
    }
    bpe_model_free(m);
  }
  merge_scratch_clear(&scratch);
}

/* Lists whose merges only ever make sense one after the other: "a" doubled again and again, and
** a chain that eats a run from its left end. */
static void check_chains(void) {
  static list l;
  static uint8_t text[MAX_TEXT];
  merge_scratch scratch = {.alloc = unit_alloc};
  for (int reverse = 0; reverse < 2; reverse++) {
    for (int chain = 0; chain < 2; chain++) {
      memset(&l, 0, sizeof l);
      memset(l.rank, 0xff, sizeof l.rank);
      l.n_letters = l.n_ids = 1;
      l.bytes[0][0] = 'a';
      l.len[0] = 1;
      const uint32_t steps = chain ? 38 : 5;
      for (uint32_t i = 0; i < steps; i++, l.n_ids++) {
        const uint32_t right = chain ? 0 : i;
        l.len[i + 1] = l.len[i] + l.len[right];
        memset(l.bytes[i + 1], 'a', l.len[i + 1]);
        l.rank[i][right] = reverse ? steps - i : i;
        l.to[i][right] = i + 1;
      }
      bpe_model *m = model_of(&l);
      if (m == NULL) return;
      memset(text, 'a', sizeof text);
      for (size_t len = 1; len <= 1100; len++)
        if (!CHECK(agrees(&l, m, &scratch, text, len))) break;
      CHECK(agrees(&l, m, &scratch, text, 5003));
      bpe_model_free(m);
    }
  }
  merge_scratch_clear(&scratch);
}

static void check_examples(void) {
  bpe_model *m = unit_tiny("none");
  if (m == NULL) return;
  merge_scratch scratch = {.alloc = unit_alloc};
  size_t n;
  CHECK_EQ_INT(merge_piece(&m->v, &scratch, (const uint8_t *)"abcbcab", 7, &n, NULL), BPE_OK);
  const uint32_t expected[] = {258, 257, 256};
  CHECK_BYTES(scratch.ids, n * 4, expected, sizeof expected);
  CHECK_EQ_INT(merge_piece(&m->v, &scratch, (const uint8_t *)"\0", 1, &n, NULL), BPE_OK);
  CHECK(n == 1 && scratch.ids[0] == 0);
  merge_scratch_clear(&scratch);
  CHECK(scratch.ids == NULL && scratch.ids_cap == 0);
  CHECK_EQ_INT(merge_piece(&m->v, &scratch, (const uint8_t *)"ab", 2, &n, NULL), BPE_OK);
  CHECK(n == 1 && scratch.ids[0] == 256);
  merge_scratch_clear(&scratch);
  bpe_model_free(m);
}

static int say_stop(void *asked) {
  ++*(int *)asked;
  return 1;
}

static void check_stopping(void) {
  enum { LEN = 1 << 20 };
  uint8_t *text = malloc(LEN);
  bpe_model *m = unit_tiny("none");
  if (text == NULL || m == NULL) abort();
  int asked = 0;
  size_t n;
  bpe_error e = {.status = BPE_OK};
  merge_scratch scratch = {.alloc = unit_alloc, .stop = say_stop, .stop_ctx = &asked};
  for (size_t i = 0; i < LEN; i++) text[i] = (uint8_t)('a' + i % 3);
  CHECK_EQ_INT(merge_piece(&m->v, &scratch, text, LEN, &n, &e), BPE_STOPPED);
  CHECK_EQ_INT(asked, 1);
  CHECK(e.offset <= 2 << 16 && strcmp(e.text, "interrupted") == 0);
  scratch.stop = NULL;
  CHECK_EQ_INT(merge_piece(&m->v, &scratch, text, LEN, &n, NULL), BPE_OK);
  CHECK_EQ_INT(n, LEN / 3 + 1);
  merge_scratch_clear(&scratch);
  bpe_model_free(m);
  free(text);
}

/* What bpe_builtin_load vouches for, and that no byte is missing. */
static void check_builtins(void) {
  merge_scratch scratch = {.alloc = unit_alloc};
  for (int which = 0; bpe_builtin_name(which) != NULL; which++) {
    bpe_model *m;
    size_t wrong = 0, tokens = 0;
    if (!CHECK(bpe_builtin_load(&unit_alloc, which, NULL, &m) == BPE_OK)) continue;
    const vocab *v = &m->v;
    for (size_t i = 0; i < v->n_entries; i++) {
      const vocab_entry *t = &v->entries[i];
      if (t->kind != BPE_TOKEN) continue;
      size_t n = 0;
      tokens++;
      wrong += merge_piece(v, &scratch, vocab_bytes(v, t), t->len, &n, NULL) != BPE_OK || n != 1 ||
               scratch.ids[0] != t->id || !vocab_direct(v, i);
      wrong += vocab_find_bytes(v, vocab_bytes(v, t), t->len) != i;
    }
    CHECK_EQ_INT(wrong, 0);
    CHECK_EQ_INT(tokens, v->n_merges + 256);
    for (int c = 0; c < 256; c++) CHECK(v->byte_ids[c] != BPE_NONE);
    CHECK(!m->lacks_bytes && !v->whole);
    bpe_model_free(m);
  }
  merge_scratch_clear(&scratch);
}

int main(void) {
  check_examples();
  check_random(300, 1, 70, 1);
  check_random(40, 240, 280, 1);
  check_random(60, 500, 1100, 31);
  check_random(4, 20000, 20000, 1);
  check_chains();
  check_stopping();
  check_builtins();
  return unit_summary();
}
