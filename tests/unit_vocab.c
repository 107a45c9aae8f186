/* unit_vocab.c - the tables of map.h and vocab.h, and every way a description can be refused.
**
** Refusals are pinned by status, offset and message: they are what a person sees who made the
** description.
*/
#include "../src/model.h"

#include "unit.h"

static pace nobody; /* asks no one */

/* `high` is added to all ids, and makes them too large for one word where it is. */
static void check_pair_map(uint32_t high, bool regular) {
  enum { N = 2000, IDS = 300 };
  static vocab_merge list[N];
  pair_map m;
  size_t n = 0, wrong = 0;
  for (int i = 0; i < N; i++) {
    list[n] = (vocab_merge){(uint32_t)n / 2 * 3, high + unit_below(IDS), high + unit_below(IDS),
                            regular ? high + (uint32_t)n : unit_below(IDS)};
    if (regular) list[n].rank = (uint32_t)n;
    else if (n % 2 == 1) list[n].id = list[n - 1].id; /* of one rank */
    bool is_new = true;
    for (size_t k = 0; k < n && is_new; k++)
      is_new = list[k].left != list[n].left || list[k].right != list[n].right;
    n += is_new;
  }
  if (!CHECK(pair_map_init(&m, &unit_alloc, list, n, high + IDS, &nobody, NULL) == BPE_OK)) return;
  for (size_t i = 0; i < n; i++) {
    wrong += !pair_map_add(&m, i);
    wrong += i % 2 == 1 && pair_map_add(&m, i);
  }
  CHECK(n > N / 2 && n < N); /* some were there already */
  CHECK((m.lines == NULL) == (high != 0));
  CHECK(m.regular == regular);
  for (size_t k = 0; k < n; k++) {
    uint32_t id = 0;
    const uint32_t order = pair_map_find(&m, list[k].left, list[k].right, &id);
    wrong += order != (regular ? k : k / 2 * 2) || id != list[k].id;
    wrong += pair_map_rank(&m, order) != list[k].rank;
  }
  CHECK_EQ_INT(wrong, 0);
  size_t found = 0;
  for (uint32_t l = 0; l < IDS; l++) {
    uint32_t id;
    for (uint32_t r = 0; r < IDS; r++)
      found += pair_map_find(&m, high + l, high + r, &id) != BPE_NONE;
    wrong += pair_map_find(&m, BPE_NONE, l, &id) != BPE_NONE;
    wrong += pair_map_find(&m, l, BPE_NONE, &id) != BPE_NONE;
    wrong += pair_map_find(&m, l + (1u << PAIR_ID_BITS), l, &id) != BPE_NONE;
  }
  CHECK_EQ_INT(found, n);
  CHECK_EQ_INT(wrong, 0);
  CHECK_EQ_INT(pair_map_rank(&m, BPE_NONE), BPE_NONE);
  pair_map_clear(&m, &unit_alloc);
  pair_map_clear(&m, &unit_alloc);
}

static void check_empty_pair_map(void) {
  pair_map m;
  uint32_t id;
  if (!CHECK(pair_map_init(&m, &unit_alloc, NULL, 0, 0, &nobody, NULL) == BPE_OK)) return;
  CHECK_EQ_INT(pair_map_find(&m, 0, 0, &id), BPE_NONE);
  CHECK_EQ_INT(pair_map_find(&m, BPE_NONE, BPE_NONE, &id), BPE_NONE);
  pair_map_clear(&m, &unit_alloc);
  CHECK(pair_map_init(&m, &unit_alloc, NULL, SIZE_MAX, 0, &nobody, NULL) == BPE_NOMEM);
  pair_map_clear(&m, &unit_alloc);
}

static void check_hash(void) {
  uint8_t s[40] = {0};
  for (size_t len = 0; len < sizeof s; len++) { /* zero bytes at the end count */
    CHECK(hash_bytes(s, len) == hash_bytes(s, len));
    if (len > 0) CHECK(hash_bytes(s, len) != hash_bytes(s, len - 1));
  }
  s[39] = 1;
  CHECK(hash_bytes(s, 40) != hash_bytes(s + 1, 39));
}

/* ---- What a sealed vocabulary answers -------------------------------------------------------- */

static void check_tiny(void) {
  bpe_model *m = unit_tiny("gpt2");
  if (m == NULL) return;
  const vocab *v = &m->v;
  CHECK_EQ_INT(v->n_entries, 261);
  CHECK_EQ_INT(v->n_ids, 261);
  CHECK_EQ_INT(v->n_dense, 261);
  CHECK_EQ_INT(v->n_merges, 3);
  CHECK_EQ_INT(v->longest, 4);
  CHECK_EQ_INT(v->entries[vocab_find_bytes(v, (const uint8_t *)"abc", 3)].id, 258);
  CHECK_EQ_INT(v->entries[vocab_find_bytes(v, (const uint8_t *)"\0", 1)].id, 0);
  CHECK_EQ_INT(vocab_find_bytes(v, (const uint8_t *)"abd", 3), v->n_entries);
  CHECK_EQ_INT(vocab_find_bytes(v, (const uint8_t *)"", 0), v->n_entries);
  CHECK_EQ_INT(vocab_find_bytes(v, (const uint8_t *)"<s>", 3), v->n_entries);
  CHECK_EQ_INT(vocab_find_id(v, 260), 260);
  CHECK_EQ_INT(vocab_find_id(v, 261), v->n_entries);
  CHECK_EQ_INT(vocab_find_id(v, BPE_NONE), v->n_entries);
  for (uint32_t c = 0; c < 256; c++) CHECK_EQ_INT(v->byte_ids[c], c);
  CHECK_EQ_INT(v->byte_pairs['a' << 8 | 'b'].id, 256);
  CHECK_EQ_INT(v->byte_pairs['a' << 8 | 'b'].order, 0);
  CHECK_EQ_INT(v->byte_pairs['b' << 8 | 'a'].order, BPE_NONE);
  uint32_t id;
  CHECK_EQ_INT(pair_map_find(&v->pairs, 256, 'c', &id), 2);
  CHECK_EQ_INT(id, 258);
  for (size_t i = 0; i < 259; i++) CHECK(vocab_direct(v, i));
  CHECK(!vocab_direct(v, 259));
  CHECK(!m->lacks_bytes);
  bpe_model_free(m);
}

/* Ids with gaps, out of order, up to the highest; equal bytes; specials that share an id. */
static void check_scattered(void) {
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  bpe_builder_token(b, BPE_NONE - 1, BPE_TOKEN, "ab", 2);
  bpe_builder_token(b, 7, BPE_TOKEN, "a", 1);
  unit_special(b, 50, "<second>");
  unit_special(b, 50, "<first>");
  bpe_builder_token(b, 3, BPE_TOKEN, "a", 1);
  bpe_builder_token(b, 9, BPE_TOKEN, "b", 1);
  bpe_builder_token(b, 0, BPE_ADDED, "+", 1);
  bpe_builder_merge(b, 20, 7, 9, BPE_NONE - 1, 0);
  bpe_builder_merge(b, 10, 3, 9, BPE_NONE - 1, 0);
  bpe_builder_pattern(b, "none", 4, false);
  bpe_model *m = unit_finish(b);
  if (m == NULL) return;
  const vocab *v = &m->v;
  CHECK_EQ_INT(v->n_entries, 7);
  CHECK_EQ_INT(v->n_ids, 6);
  CHECK_EQ_INT(v->n_dense, 1);
  CHECK_EQ_INT(vocab_find_id(v, 3), 1);
  CHECK_EQ_INT(vocab_find_id(v, 50), 4); /* the first added of the two */
  CHECK_BYTES(vocab_bytes(v, &v->entries[4]), v->entries[4].len, "<second>", 8);
  CHECK_EQ_INT(vocab_find_id(v, BPE_NONE - 1), 6);
  CHECK_EQ_INT(vocab_find_id(v, 8), v->n_entries);
  CHECK_EQ_INT(v->byte_ids['a'], 3); /* the lower id */
  CHECK_EQ_INT(v->entries[vocab_find_bytes(v, (const uint8_t *)"a", 1)].id, 3);
  CHECK_EQ_INT(v->byte_ids['c'], BPE_NONE);
  CHECK_EQ_INT(v->byte_ids['+'], BPE_NONE);
  CHECK(m->lacks_bytes && m->added != NULL);
  CHECK_EQ_INT(v->merges[0].rank, 10);
  CHECK(vocab_direct(v, 1) && !vocab_direct(v, 2)); /* nothing merges to the second "a" */
  CHECK(vocab_direct(v, 6));
  bpe_model_free(m);
}

/* Merges in any order with their counts beside them, whether or not all have one. */
static void check_counts(void) {
  bpe_builder *b = unit_builder("none");
  bpe_builder_token(b, 256, BPE_TOKEN, "aa", 2);
  bpe_builder_token(b, 257, BPE_TOKEN, "bb", 2);
  bpe_builder_token(b, 258, BPE_TOKEN, "cc", 2);
  bpe_builder_merge(b, 5, 'c', 'c', 258, 0);
  bpe_builder_merge(b, 3, 'b', 'b', 257, 70);
  bpe_builder_merge(b, 4, 'a', 'a', 256, UINT64_MAX);
  bpe_model *m = unit_finish(b);
  if (m == NULL) return;
  const uint64_t counts[3] = {70, UINT64_MAX, 0};
  const uint32_t ranks[3] = {3, 4, 5}, ids[3] = {257, 256, 258};
  for (size_t i = 0; i < 3; i++) {
    const bpe_merge x = bpe_model_merge(m, i);
    CHECK(x.count == counts[i] && x.rank == ranks[i] && x.id == ids[i]);
  }
  bpe_model_free(m);
}

/* Several pairs of one rank make one token: all splits of a rank file. */
static void check_shared_rank(void) {
  bpe_builder *b = unit_builder("none");
  bpe_builder_token(b, 256, BPE_TOKEN, "ab", 2);
  bpe_builder_token(b, 257, BPE_TOKEN, "bc", 2);
  bpe_builder_token(b, 258, BPE_TOKEN, "abc", 3);
  bpe_builder_merge(b, 258, 256, 'c', 258, 0);
  bpe_builder_merge(b, 258, 'a', 257, 258, 0);
  bpe_builder_merge(b, 256, 'a', 'b', 256, 0);
  bpe_builder_merge(b, 257, 'b', 'c', 257, 0);
  bpe_builder_whole(b);
  bpe_model *m = unit_finish(b);
  if (m == NULL) return;
  CHECK_EQ_INT(m->v.n_merges, 4);
  CHECK(m->v.merges[2].left == 'a' && m->v.merges[3].left == 256);
  CHECK(m->v.whole);
  bpe_model_free(m);
}

/* ---- What is refused ------------------------------------------------------------------------- */

static void refuses(bpe_builder *b, bpe_status status, uint64_t offset, const char *text) {
  bpe_error e = {.status = BPE_OK};
  bpe_model *m = (bpe_model *)&unit_memory;
  const size_t before = unit_memory.blocks;
  CHECK_EQ_INT(bpe_builder_finish(b, &e, &m), status);
  if (!CHECK(unit_says(&e, status, offset, text))) printf("  expected: %s\n", text);
  CHECK(m == NULL);
  CHECK(unit_memory.blocks < before);
}

static void check_bad_tokens(void) {
  bpe_builder *b = unit_builder("gpt2");
  bpe_builder_token(b, 65, BPE_TOKEN, "twice", 5);
  refuses(b, BPE_BADMODEL, 65, "two tokens with one id: 65");
  b = unit_builder("gpt2");
  unit_special(b, 66, "<s>");
  refuses(b, BPE_BADMODEL, 66, "two tokens with one id: 66");
  b = unit_builder("gpt2");
  bpe_builder_token(b, 300, BPE_TOKEN, "", 0);
  refuses(b, BPE_BADMODEL, 300, "empty token: id 300");
  b = unit_builder("gpt2");
  bpe_builder_token(b, 300, BPE_SPECIAL, NULL, 0);
  refuses(b, BPE_BADMODEL, 300, "empty token: id 300");
  b = bpe_builder_new(&unit_alloc);
  bpe_builder_token(b, 1, BPE_TOKEN, NULL, 0); /* before there is any memory for bytes */
  bpe_builder_pattern(b, "none", 4, false);
  refuses(b, BPE_BADMODEL, 1, "empty token: id 1");
  b = unit_builder("gpt2");
  bpe_builder_token(b, BPE_NONE, BPE_TOKEN, "x", 1);
  refuses(b, BPE_BADMODEL, BPE_NONE, "id too large: 4294967295");
}

static void check_bad_merges(void) {
  static const struct {
    uint32_t rank, left, right, id;
    const char *text;
  } rows[] = {
      {1, 400, 'b', 300, "operand is no token: merge 1 (400, 98)"},
      {1, 'a', 400, 300, "operand is no token: merge 1 (97, 400)"},
      {1, 301, 'b', 300, "operand is no token: merge 1 (301, 98)"}, /* a special */
      {1, 'a', 'b', 400, "result is no token: merge 1 (97, 98)"},
      {1, 'a', 'b', 301, "result is no token: merge 1 (97, 98)"},
      {1, 'a', 'b', BPE_NONE, "result is no token: merge 1 (97, 98)"},
      {1, 'a', 'c', 300, "result is not its operands joined: merge 1 (97, 99)"},
      {1, 'b', 'a', 300, "result is not its operands joined: merge 1 (98, 97)"},
      {1, 'a', 300, 300, "result is not its operands joined: merge 1 (97, 300)"},
      {2, 'c', 'd', 302, "pair listed twice: merge 2 (99, 100)"},
      {0, 'a', 'b', 300, "two results share a rank: merge 0 (99, 100)"},
      {BPE_NONE, 'a', 'b', 300, "rank too large: merge 4294967295 (97, 98)"},
  };
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    bpe_builder *b = unit_builder("gpt2");
    bpe_builder_token(b, 300, BPE_TOKEN, "ab", 2);
    unit_special(b, 301, "ab");
    bpe_builder_token(b, 302, BPE_TOKEN, "cd", 2);
    bpe_builder_merge(b, 0, 'c', 'd', 302, 0);
    bpe_builder_merge(b, rows[k].rank, rows[k].left, rows[k].right, rows[k].id, 0);
    refuses(b, BPE_BADMODEL, rows[k].rank, rows[k].text);
  }
}

static void check_bad_growth(void) {
  bpe_builder *b = unit_builder("gpt2");
  bpe_builder_grow(b, 'a', 256, 257);
  refuses(b, BPE_BADMODEL, 257, "operand is not defined yet: token 257");
  b = unit_builder("gpt2");
  unit_special(b, 256, "<s>");
  bpe_builder_grow(b, 256, 'a', 257);
  refuses(b, BPE_BADMODEL, 0, "operand is no token: merge 0 (256, 97)");
  b = unit_builder("gpt2");
  bpe_builder_token(b, 300, BPE_TOKEN, "x1", 2);
  bpe_builder_token(b, 299, BPE_TOKEN, "x2", 2); /* out of order: nothing can be found any more */
  bpe_builder_grow(b, 'a', 'b', 301);
  refuses(b, BPE_BADMODEL, 301, "operand is not defined yet: token 301");
}

static void check_bad_frame(void) {
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  refuses(b, BPE_BADMODEL, 0, "no pattern");
  b = unit_builder("gpt5");
  refuses(b, BPE_BADMODEL, 0, "no such pattern: gpt5");
  b = unit_builder("gpt2");
  bpe_builder_bos(b, 'x');
  bpe_builder_bos(b, 300);
  refuses(b, BPE_BADMODEL, 1, "BOS is no token: id 300");
  b = unit_builder("gpt2");
  bpe_builder_eos(b, BPE_NONE);
  refuses(b, BPE_BADMODEL, 0, "EOS is no token: id 4294967295");
  b = unit_builder("gpt2");
  bpe_builder_pattern(b, "a(b", 3, true);
  bpe_error e = {.status = BPE_OK};
  bpe_model *m;
  CHECK_EQ_INT(bpe_builder_finish(b, &e, &m), BPE_BADREGEX);
  CHECK(strncmp(e.text, "regex error at byte 3: ", 23) == 0);
  CHECK_EQ_INT(e.offset, 3);
}

/* The first failure is what finish reports, whatever came after. */
static void check_stickiness(void) {
  bpe_builder *b = unit_builder("gpt2");
  bpe_builder_grow(b, 'a', 999, 256);
  bpe_builder_pattern(b, "gpt5", 4, false);
  bpe_builder_grow(b, 'a', 'b', 256);
  bpe_builder_token(b, 257, BPE_TOKEN, "", 0);
  bpe_builder_merge(b, 0, 1, 2, 3, 4);
  bpe_builder_whole(b);
  bpe_builder_bos(b, 77777);
  bpe_builder_eos(b, 77777);
  builder_vouch(b);
  refuses(b, BPE_BADMODEL, 256, "operand is not defined yet: token 256");
  b = bpe_builder_new(&unit_alloc);
  bpe_builder_pattern(b, "x", 1, false);
  bpe_error e = {.status = BPE_BADTEXT, .offset = 3, .text = "before"};
  bpe_model *m;
  CHECK_EQ_INT(bpe_builder_finish(b, &e, &m), BPE_BADMODEL);
  CHECK(unit_says(&e, BPE_BADTEXT, 3, "before"));
}

static void check_null_builder(void) {
  bpe_error e = {.status = BPE_OK};
  bpe_model *m;
  unit_fail(1, false);
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  CHECK(b == NULL);
  unit_fail(0, false);
  bpe_builder_token(b, 0, BPE_TOKEN, "a", 1);
  bpe_builder_merge(b, 0, 0, 0, 0, 0);
  bpe_builder_grow(b, 0, 0, 0);
  bpe_builder_pattern(b, "gpt2", 4, false);
  bpe_builder_whole(b);
  bpe_builder_bos(b, 0);
  bpe_builder_eos(b, 0);
  builder_vouch(b);
  bpe_builder_free(b);
  CHECK_EQ_INT(bpe_builder_finish(b, &e, &m), BPE_NOMEM);
  CHECK(unit_says(&e, BPE_NOMEM, 0, "out of memory"));
  bpe_model_free(NULL);
}

/* No tokens at all is a tokenizer too; it can encode nothing but "". The last pattern counts. */
static void check_nothing(void) {
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  bpe_builder_pattern(b, "gpt2", 4, false);
  bpe_builder_pattern(b, "a|b", 3, true);
  bpe_model *m = unit_finish(b);
  if (m == NULL) return;
  bpe_info info;
  bpe_model_info(m, &info);
  CHECK(info.vocab_size == 0 && info.token_count == 0 && info.merge_count == 0);
  CHECK(info.pattern_is_regex && strcmp(info.pattern, "a|b") == 0 && info.pattern_len == 3);
  CHECK_EQ_INT(bpe_model_find_id(m, 0), 0);
  CHECK_EQ_INT(bpe_model_find_bytes(m, "a", 1), 0);
  bpe_model_free(m);
  b = unit_builder("gpt2");
  bpe_builder_free(b);
}

int main(void) {
  check_pair_map(0, false);
  check_pair_map(0, true);
  check_pair_map(1u << PAIR_ID_BITS, false);
  check_empty_pair_map();
  check_hash();
  check_tiny();
  check_scattered();
  check_counts();
  check_shared_rank();
  check_bad_tokens();
  check_bad_merges();
  check_bad_growth();
  check_bad_frame();
  check_stickiness();
  check_null_builder();
  check_nothing();
  return unit_summary();
}
