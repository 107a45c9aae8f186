/* unit_train_run.c - how a training runs: when memory or time runs out, what it tells while it
** runs, how much memory it takes, and the queue of pairs under it.
*/
#include "../src/train_queue.h"

#include "unit_training.h"

/* ---- Memory, time, progress ---------------------------------------------------------------- */

static const row mixed[] = {
    {"the quick brown fox jumps over the lazy dog, the end", 3},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa<s>bbbbbbbbb", 1},
    {"a piece of text that is much longer than others", 2}, {"\xff\xfe\xfd", 1}, END};

static bpe_train_options mixed_options(bpe_tie tie) {
  static const bpe_name s = {"<s>", 3};
  static const uint32_t first[] = {0};
  bpe_train_options o = options(" ?[a-z]+|.", tie);
  o.is_regex = true;
  o.specials = &s;
  o.n_specials = 1;
  o.bos = first;
  o.n_bos = 1;
  return o;
}

/* Whichever request fails, once or from then on: out of memory and nothing left, or the same
** model. */
static void check_memory(void) {
  const bpe_train_options o = mixed_options(BPE_TIE_FIRST);
  uint8_t whole[32], digest[32];
  bpe_model *m = train(mixed, 320, &o);
  CHECK(bpe_model_digest(m, NULL, whole) == BPE_OK);
  bpe_model_free(m);
  size_t failures = 0;
  for (size_t k = 2; k < 20000; k++) {
    unit_fail(k / 2, k % 2 == 0);
    bpe_error e = {.status = BPE_OK};
    const bpe_status st = train_with(mixed, 320, &o, &e, &m);
    const bool refused = unit_memory.refused > 0;
    unit_fail(0, false);
    if (st == BPE_OK) {
      CHECK(bpe_model_digest(m, NULL, digest) == BPE_OK);
      CHECK(memcmp(whole, digest, sizeof whole) == 0);
      bpe_model_free(m);
    } else {
      CHECK(st == BPE_NOMEM && e.status == BPE_NOMEM && m == NULL);
      failures++;
    }
    if (!CHECK_EQ_INT(unit_memory.blocks, 0) || !refused) break;
  }
  CHECK(failures > 20);
}

/* Memory in bytes, as an allocator sees it: each block is behind its size. */
typedef struct sized {
  size_t now, peak;
} sized;

static void *sized_resize(void *ctx, void *p, size_t n) {
  enum { HEAD = 16 };
  sized *s = ctx;
  char *block = p != NULL ? (char *)p - HEAD : NULL;
  size_t old = 0;
  if (block != NULL) memcpy(&old, block, sizeof old);
  s->now -= old;
  if (n == 0) {
    free(block);
    return NULL;
  }
  block = realloc(block, n + HEAD);
  if (block == NULL) abort();
  memcpy(block, &n, sizeof n);
  s->now += n;
  if (s->now > s->peak) s->peak = s->now;
  return block + HEAD;
}

static size_t peak_of(int rows, unsigned threads) {
  sized memory = {0, 0};
  const bpe_alloc a = {.resize = sized_resize, .ctx = &memory};
  bpe_train_options o = options("gpt2", BPE_TIE_BYTES);
  bpe_trainer *t;
  bpe_model *m;
  char text[100];
  o.threads = threads;
  CHECK(bpe_trainer_new(&a, 400, &o, NULL, &t) == BPE_OK);
  for (int i = 0; i < rows; i++) {
    const int n = snprintf(text, sizeof text,
                           "the quick brown fox number %d jumps over it again and again", i % 1000);
    if (bpe_trainer_add(t, text, (size_t)n, 1, NULL) != BPE_OK) abort();
  }
  CHECK(bpe_trainer_finish(t, NULL, &m) == BPE_OK);
  bpe_model_free(m);
  bpe_trainer_free(t);
  CHECK_EQ_INT(memory.now, 0);
  return memory.peak;
}

/* T19: memory follows distinct pieces, not rows. */
static void check_growth(void) {
  const size_t few = peak_of(20000, 1), many = peak_of(200000, 1);
  CHECK(many < 32000000 && many <= few + few / 10);
  CHECK(peak_of(200000, 3) < 32000000);
}

static int stop_after(void *ctx) {
  int *left = ctx;
  return (*left)-- <= 0;
}

static int stop_once(void *ctx) {
  int *left = ctx;
  return (*left)-- == 0;
}

/* Asked often, and obeyed, in both phases, though the wish may be said only once. */
static void check_stops(void) {
  enum { LEN = 300000 };
  char *text = malloc(LEN + 1);
  if (text == NULL) abort();
  for (int i = 0; i < LEN; i++) text[i] = (char)('a' + unit_below(26));
  text[LEN] = 0;
  const row rows[] = {{text, 1}, END};
  int asks = 0, left;
  for (bpe_status st = BPE_STOPPED; st == BPE_STOPPED; asks++) {
    bpe_train_options o = options(asks % 2 == 0 ? "none" : "o200k", BPE_TIE_FIRST);
    bpe_model *m;
    left = asks;
    o.stop = asks % 4 < 2 ? stop_after : stop_once;
    o.stop_ctx = &left;
    st = train_with(rows, 600, &o, NULL, &m);
    CHECK_EQ_INT(st, left < 0 ? BPE_STOPPED : BPE_OK);
    bpe_model_free(m);
    if (!CHECK(asks < 10000)) break;
  }
  CHECK(asks > 50);
  free(text);
}

typedef struct seen {
  int calls, merging;
  bpe_train_progress last;
} seen;

static void see(void *ctx, const bpe_train_progress *p) {
  seen *s = ctx;
  s->calls++;
  s->merging += p->merging;
  CHECK(p->rows >= s->last.rows && p->bytes >= s->last.bytes && p->merges >= s->last.merges);
  s->last = *p;
}

static void check_progress(void) {
  seen s = {.calls = 0};
  bpe_train_options o = mixed_options(BPE_TIE_IDS);
  o.progress = see;
  o.progress_ctx = &s;
  bpe_model *m = train(mixed, 320, &o);
  bpe_info info;
  bpe_model_info(m, &info);
  CHECK(s.calls >= 2 && s.merging >= 1);
  CHECK_EQ_INT(s.last.rows, 4);
  CHECK_EQ_INT(s.last.merges, info.merge_count);
  CHECK_EQ_INT(s.last.wanted, 63);
  CHECK(info.stats_len > 2 && info.stats[0] == '{' && info.stats[info.stats_len - 1] == '}');
  CHECK(strncmp(info.stats, "{\"rows\":4,\"bytes\":", 18) == 0);
  bpe_model_free(m);
}

/* ---- The queue ----------------------------------------------------------------------------- */

/* Counts of all sizes come out in falling order, wherever their buckets are. */
static void check_queue(void) {
  enum { N = 3000 };
  train_state t = {.alloc = unit_alloc, .tie = BPE_TIE_IDS, .min_count = 3};
  train_queue q;
  t.pairs = malloc(N * sizeof *t.pairs);
  if (t.pairs == NULL) abort();
  CHECK(train_queue_init(&q, &t, NULL) == BPE_OK);
  size_t n = 0;
  for (uint32_t i = 0; i < N; i++) {
    const uint64_t high = (uint64_t)unit_random() << 31 | unit_random();
    uint64_t count = high >> unit_below(63);
    if (i == 0) count = COUNT_MAX;
    if (count == 0) count = 1;
    t.pairs[i] = (train_pair){.count = count, .left = i, .right = N - i};
    CHECK(train_queue_add(&q, &t, i, NULL) == BPE_OK);
  }
  for (uint32_t i = 0; i < N; i += 7) t.pairs[i].count /= 1 + unit_below(1000); /* outdated */
  for (uint32_t i = 0; i < N; i++) n += t.pairs[i].count >= 3;
  uint64_t last = UINT64_MAX;
  uint32_t pair, before = 0;
  bool falling = true;
  for (; train_queue_take(&q, &t, &pair, NULL) == BPE_OK && pair != TRAIN_NONE; n--) {
    const uint64_t count = t.pairs[pair].count;
    falling &= count < last || (count == last && pair > before);
    last = count;
    before = pair;
  }
  CHECK(falling);
  CHECK_EQ_INT(n, 0);
  train_queue_clear(&q, &unit_alloc);
  free(t.pairs);
}

int main(void) {
  check_memory();
  check_growth();
  check_stops();
  check_progress();
  check_queue();
  return unit_summary();
}
