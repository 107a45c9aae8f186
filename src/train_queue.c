/* train_queue.c - buckets and one heap. See train_queue.h. */
#include "train_queue.h"

enum {
  MANTISSA = 10,         /* bits of a count that tell buckets apart */
  EXACT = 2 << MANTISSA, /* counts below have a bucket each */
  N_BUCKETS = EXACT + (62 - MANTISSA) * (1 << MANTISSA) /* counts are below 2^63 */
};

/* Units of work: of a pair that leaves its bucket, that is sifted down, that is looked at on top. */
enum { SORT_WORK = 32, SIFT_WORK = 64, TAKE_WORK = 128 };

static size_t bucket_of(uint64_t count) {
  if (count < EXACT) return (size_t)count;
  size_t shift = 1; /* count >> shift is in EXACT / 2 .. EXACT - 1 */
  while (count >> shift >= EXACT) shift++;
  return EXACT + (shift - 1) * (EXACT / 2) + (size_t)(count >> shift) - EXACT / 2;
}

bpe_status train_queue_init(train_queue *q, train_state *t, bpe_error *e) {
  *q = (train_queue){.at = N_BUCKETS};
  q->buckets = mem_new(&t->alloc, N_BUCKETS, sizeof *q->buckets);
  if (q->buckets == NULL) return set_nomem(e);
  memset(q->buckets, 0xff, N_BUCKETS * sizeof *q->buckets); /* TRAIN_NONE */
  return BPE_OK;
}

void train_queue_clear(train_queue *q, const bpe_alloc *a) {
  mem_free(a, q->buckets);
  mem_free(a, q->heap);
  *q = (train_queue){.buckets = NULL};
}

/* Whether symbol x's bytes are greater than y's; x != y. */
static bool is_greater(const train_state *t, uint32_t x, uint32_t y) {
  const train_symbol *a = &t->symbols[x], *b = &t->symbols[y];
  if (a->start != b->start) return a->start > b->start;
  const int c = memcmp(t->text + a->at, t->text + b->at, a->len < b->len ? a->len : b->len);
  return c != 0 ? c > 0 : a->len > b->len;
}

/* Whether x is to be merged before y. */
static bool comes_first(const train_state *t, const queued *x, const queued *y) {
  if (x->count != y->count) return x->count > y->count;
  if (t->tie != BPE_TIE_BYTES) return x->key < y->key;
  const train_pair *a = &t->pairs[x->pair], *b = &t->pairs[y->pair];
  if (a->left != b->left) return is_greater(t, a->left, b->left);
  return a->right != b->right && is_greater(t, a->right, b->right);
}

static void sift_up(train_queue *q, const train_state *t, size_t i) {
  const queued x = q->heap[i];
  while (i > 0) {
    const size_t parent = (i - 1) / 2;
    if (!comes_first(t, &x, &q->heap[parent])) break;
    q->heap[i] = q->heap[parent];
    i = parent;
  }
  q->heap[i] = x;
}

static void sift_down(train_queue *q, const train_state *t, size_t i) {
  const queued x = q->heap[i];
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= q->n) break;
    if (child + 1 < q->n && comes_first(t, &q->heap[child + 1], &q->heap[child])) child++;
    if (!comes_first(t, &q->heap[child], &x)) break;
    q->heap[i] = q->heap[child];
    i = child;
  }
  q->heap[i] = x;
}

static queued current(train_state *t, uint32_t pair) {
  const train_pair *p = &t->pairs[pair];
  queued x = {.count = p->count, .pair = pair};
  if (t->tie == BPE_TIE_IDS) x.key = (uint64_t)p->left << 32 | p->right;
  if (t->tie == BPE_TIE_FIRST) x.key = train_first_slot(t, pair);
  return x;
}

static void put_in_bucket(train_queue *q, train_state *t, uint32_t pair, size_t bucket) {
  t->pairs[pair].next = q->buckets[bucket];
  q->buckets[bucket] = pair;
}

bpe_status train_queue_add(train_queue *q, train_state *t, uint32_t pair, bpe_error *e) {
  const size_t bucket = bucket_of(t->pairs[pair].count);
  if (bucket != q->at) {
    put_in_bucket(q, t, pair, bucket);
    return BPE_OK;
  }
  if (!mem_grow(&t->alloc, (void **)&q->heap, &q->cap, q->n + 1, sizeof *q->heap))
    return set_nomem(e);
  q->heap[q->n++] = current(t, pair);
  sift_up(q, t, q->n - 1);
  return BPE_OK;
}

/* Goes down to the next bucket that holds a pair and makes it the heap. */
static bpe_status fill_heap(train_queue *q, train_state *t, bpe_error *e) {
  while (q->n == 0 && q->at > 0) {
    q->at--;
    uint32_t pair = q->buckets[q->at];
    q->buckets[q->at] = TRAIN_NONE;
    while (pair != TRAIN_NONE) {
      const uint32_t next = t->pairs[pair].next;
      const uint64_t count = t->pairs[pair].count;
      const size_t bucket = bucket_of(count);
      if (bucket != q->at) {
        if (count >= t->min_count) put_in_bucket(q, t, pair, bucket);
      } else {
        if (!mem_grow(&t->alloc, (void **)&q->heap, &q->cap, q->n + 1, sizeof *q->heap))
          return set_nomem(e);
        q->heap[q->n++] = current(t, pair);
      }
      const bpe_status st = pace_add(&t->pace, SORT_WORK, e);
      if (st != BPE_OK) return st;
      pair = next;
    }
    for (size_t i = q->n / 2; i-- > 0;) {
      sift_down(q, t, i);
      const bpe_status st = pace_add(&t->pace, SIFT_WORK, e);
      if (st != BPE_OK) return st;
    }
  }
  return BPE_OK;
}

static void take_top(train_queue *q, const train_state *t) {
  q->heap[0] = q->heap[--q->n];
  if (q->n > 0) sift_down(q, t, 0);
}

bpe_status train_queue_take(train_queue *q, train_state *t, uint32_t *pair, bpe_error *e) {
  *pair = TRAIN_NONE;
  for (;;) {
    bpe_status st = q->n > 0 ? BPE_OK : fill_heap(q, t, e);
    if (st != BPE_OK || q->n == 0) return st;
    const queued top = q->heap[0];
    const uint64_t count = t->pairs[top.pair].count;
    const size_t bucket = bucket_of(count);
    if (bucket != q->at || count < t->min_count) {
      take_top(q, t);
      if (count >= t->min_count) put_in_bucket(q, t, top.pair, bucket);
    } else {
      const queued now = current(t, top.pair);
      if (now.count == top.count && now.key == top.key) {
        take_top(q, t);
        *pair = top.pair;
        return BPE_OK;
      }
      q->heap[0] = now;
      sift_down(q, t, 0);
    }
    st = pace_add(&t->pace, TAKE_WORK, e);
    if (st != BPE_OK) return st;
  }
}
