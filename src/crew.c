/* crew.c - batches, workers and their owner. See crew.h.
**
** Under the pool's lock: the two lists of batches, every worker's state and batch, quit, and the
** first failure. A worker touches its reader and table only while it is WORKING, the owner only
** while it is not, so those need no lock. `cancel` alone is read without it.
*/
#include "crew.h"

#include "pool.h"

#include <stdatomic.h>

enum {
  BATCH_BYTES = USUALLY(1 << 18, 256),
  BATCH_ROWS = USUALLY(1 << 13, 8),
  LONG_ROW = BATCH_BYTES / 2,         /* a row from this length on is cut or counted where it is */
  WORKER_PIECES = USUALLY(40000, 16), /* of a worker's table, which is to stay in a near cache */
  WORKER_BYTES = USUALLY(1 << 20, 256), /* of pieces longer than COUNT_SHORT */
  FIRST_PIECES = USUALLY(4000, 16),     /* of the owner's table */
  FIRST_BYTES = USUALLY(1 << 12, 64)
};

typedef struct batch_row {
  uint64_t weight, place;
  uint32_t start, len; /* of the batch's bytes */
} batch_row;

typedef struct batch {
  struct batch *next;
  size_t n_rows, done, len;
  batch_row rows[BATCH_ROWS];
  uint8_t bytes[BATCH_BYTES];
} batch;

/* An allocator for what a worker's regex asks for. While the worker is at it nothing is to be
** had, and what it gives back is kept for the owner to free. */
typedef struct guard {
  bpe_alloc real;
  bool locked;
  void *later; /* blocks given back, each beginning with the address of the next */
} guard;

typedef struct worker {
  crew *crew;
  enum { IDLE, WORKING, STUCK } state;
  batch *batch; /* the one it is at */
  bool in_row;
  bool wants_memory; /* STUCK: the regex, not the table */
  reader reader;
  count_table table;
  bpe_pattern *pattern; /* owned; NULL: the crew's, which needs no memory */
  guard guard;
} worker;

struct crew {
  bpe_alloc alloc;
  crew_options o;
  pool *pool;
  worker *workers;   /* owned; options.n_workers */
  size_t n_started;  /* the first of them */
  size_t n_to_start; /* as many are wanted; fewer once the platform has refused one */
  count_table total;
  reader reader;  /* the owner's */
  batch *filling; /* owned; the rows to come go there */
  size_t n_batches;
  batch *queue, **queue_end; /* filled */
  batch *idle;               /* empty */
  bool quit, failed;
  bpe_error error; /* the first failure of a worker */
  atomic_int cancel;
};

/* ---- Memory for workers -------------------------------------------------------------------- */

static void *guarded_resize(void *ctx, void *p, size_t n) {
  guard *g = ctx;
  if (!g->locked) return g->real.resize(g->real.ctx, p, n);
  if (n == 0 && p != NULL) {
    memcpy(p, &g->later, sizeof g->later); /* every block has room for an address: mem_new's */
    g->later = p;
  }
  return NULL;
}

static void guard_release(guard *g) {
  while (g->later != NULL) {
    void *p = g->later;
    memcpy(&g->later, p, sizeof g->later);
    g->real.resize(g->real.ctx, p, 0);
  }
}

static int cancelled(void *arg) {
  crew *c = arg;
  return atomic_load_explicit(&c->cancel, memory_order_relaxed);
}

/* ---- Workers ------------------------------------------------------------------------------- */

static void begin_row(reader *r, batch *b) {
  const batch_row *row = &b->rows[b->done];
  reader_begin(r, b->bytes + row->start, row->len, row->weight, row->place);
}

/* Goes on with the worker's batch as far as its memory allows. */
static read_end work(worker *w, bpe_error *e) {
  for (batch *b = w->batch; b->done < b->n_rows; b->done++) {
    if (!w->in_row) begin_row(&w->reader, b);
    w->in_row = true;
    const read_end end = reader_run(&w->reader, &w->table, e);
    if (end != READ_DONE) return end;
    w->in_row = false;
  }
  return READ_DONE;
}

static batch *take_filled(crew *c) {
  batch *b = c->queue;
  if (b == NULL) return NULL;
  c->queue = b->next;
  if (c->queue == NULL) c->queue_end = &c->queue;
  return b;
}

static void put_idle(crew *c, batch *b) {
  b->next = c->idle;
  c->idle = b;
}

/* What came of a round of work; lock held. */
static void settle(worker *w, read_end end, const bpe_error *e) {
  crew *c = w->crew;
  w->wants_memory = end == READ_FAILED && e->status == BPE_NOMEM;
  if (end == READ_FULL || w->wants_memory) {
    w->state = STUCK;
    return;
  }
  if (end == READ_FAILED && !c->failed) {
    c->failed = true;
    c->error = *e;
  }
  w->in_row = false;
  w->state = IDLE;
  put_idle(c, w->batch);
  w->batch = NULL;
}

static void worker_main(void *arg) {
  worker *w = arg;
  crew *c = w->crew;
  pool_lock(c->pool);
  while (!c->quit) {
    if (w->state == IDLE && c->queue != NULL) {
      w->batch = take_filled(c);
      w->state = WORKING;
    }
    if (w->state != WORKING) {
      pool_wait_work(c->pool);
      continue;
    }
    bpe_error e = {.status = BPE_OK};
    w->guard.locked = true;
    pool_unlock(c->pool);
    const read_end end = work(w, &e);
    pool_lock(c->pool);
    w->guard.locked = false;
    settle(w, end, &e);
    pool_wake_owner(c->pool);
  }
  pool_unlock(c->pool);
}

/* A pattern of the worker's own, with all memory that an ordinary match needs. */
static bpe_status own_pattern(worker *w, bpe_error *e) {
  static const uint8_t text[] = "a b";
  const bpe_pattern *p = w->crew->o.pattern;
  const bpe_alloc guarded = {.resize = guarded_resize, .ctx = &w->guard};
  bpe_status st = bpe_pattern_new(&guarded, p->text, p->len, p->is_regex, e, &w->pattern);
  if (st != BPE_OK) return st;
  w->reader.pattern = w->pattern;
  st = split_start(&w->reader.split, w->pattern, text, 0, sizeof text - 1, e);
  if (st == BPE_OK && split_next(&w->reader.split, NULL) == BPE_NOMEM) st = set_nomem(e);
  return st;
}

static bpe_status start_worker(crew *c, worker *w, bpe_error *e) {
  w->crew = c;
  w->guard.real = c->alloc;
  w->reader.rules = &c->o.rules;
  w->reader.pattern = c->o.pattern;
  reader_set_stop(&w->reader, cancelled, c);
  bpe_status st = BPE_OK;
  if (w->table.slots == NULL) st = count_init(&w->table, &c->alloc, WORKER_PIECES, WORKER_BYTES, e);
  if (st == BPE_OK && c->o.pattern->scan == NULL && w->pattern == NULL) st = own_pattern(w, e);
  if (st == BPE_OK && pool_start(c->pool, worker_main, w)) c->n_started++;
  else c->n_to_start = c->n_started; /* the platform has no more threads to give */
  return st;
}

/* ---- The owner ----------------------------------------------------------------------------- */

static bpe_status owner_stopped(crew *c, bpe_error *e) {
  if (c->o.stop == NULL || !c->o.stop(c->o.stop_ctx)) return BPE_OK;
  return set_stopped(e);
}

static bpe_status grow_total(crew *c, size_t len, bpe_error *e) {
  return count_grow(&c->total, &c->alloc, len, c->o.stop, c->o.stop_ctx, e);
}

/* Runs a reader to the end of its row, counting into the total. */
static bpe_status read_row(crew *c, reader *r, bpe_error *e) {
  for (;;) {
    bpe_error own = {.status = BPE_OK};
    switch (reader_run(r, &c->total, &own)) {
    case READ_DONE: return BPE_OK;
    case READ_FAILED: return set_error(e, own.status, own.offset, "%s", own.text);
    case READ_FULL: break;
    }
    const bpe_status st = grow_total(c, reader_piece_len(r), e);
    if (st != BPE_OK) return st;
  }
}

static bpe_status read_batch(crew *c, batch *b, bpe_error *e) {
  bpe_status st = BPE_OK;
  for (; b->done < b->n_rows && st == BPE_OK; b->done++) {
    begin_row(&c->reader, b);
    st = read_row(c, &c->reader, e);
  }
  return st;
}

/* Adds a table's counts to the total and empties it. */
static bpe_status empty_table(crew *c, count_table *t, bpe_error *e) {
  uint8_t room[16];
  for (size_t i = 0; i < t->n; i++) {
    const count_entry *x = &t->entries[i];
    count_key k = x->key;
    size_t len;
    const uint8_t *s = count_bytes(t, x, room, &len);
    if (count_is_long(&k)) k.word[1] = COUNT_LONG_MARK;
    while (!count_add(&c->total, &k, s, len, x->count, x->first)) {
      const bpe_status st = grow_total(c, len, e);
      if (st != BPE_OK) return st;
    }
  }
  c->total.overflow |= t->overflow;
  count_reset(t);
  return BPE_OK;
}

/* Empties the table of a stuck worker, which has then room for any piece of a batch, and takes
** the row at hand off it when matching needs more memory than it has. */
static bpe_status help(crew *c, worker *w, bpe_error *e) {
  guard_release(&w->guard);
  bpe_status st = empty_table(c, &w->table, e);
  if (st != BPE_OK || !w->wants_memory) return st;
  reader_set_stop(&w->reader, c->o.stop, c->o.stop_ctx);
  st = read_row(c, &w->reader, e);
  reader_set_stop(&w->reader, cancelled, c);
  w->in_row = false;
  if (st == BPE_OK) w->batch->done++;
  return st;
}

/* Helps every worker that is stuck. *busy: some are still working. */
static bpe_status help_all(crew *c, bool *busy, bpe_error *e) {
  *busy = false;
  for (size_t i = 0; i < c->n_started; i++) {
    worker *w = &c->workers[i];
    pool_lock(c->pool);
    const bool stuck = w->state == STUCK;
    *busy |= w->state == WORKING;
    pool_unlock(c->pool);
    if (!stuck) continue;
    const bpe_status st = help(c, w, e);
    if (st != BPE_OK) return st;
    pool_lock(c->pool);
    w->state = WORKING;
    *busy = true;
    pool_wake_workers(c->pool);
    pool_unlock(c->pool);
  }
  return BPE_OK;
}

/* The first failure of a worker, if there is one. */
static bpe_status workers_failure(crew *c, bpe_error *e) {
  pool_lock(c->pool);
  const bool failed = c->failed;
  pool_unlock(c->pool);
  return failed ? set_error(e, c->error.status, c->error.offset, "%s", c->error.text) : BPE_OK;
}

/* Hands the batch that is being filled to the workers; starts one more if that helps. */
static bpe_status submit(crew *c, bpe_error *e) {
  batch *b = c->filling;
  c->filling = NULL;
  bool idle = false;
  pool_lock(c->pool);
  b->next = NULL;
  *c->queue_end = b;
  c->queue_end = &b->next;
  for (size_t i = 0; i < c->n_started; i++) idle |= c->workers[i].state == IDLE;
  pool_wake_workers(c->pool);
  pool_unlock(c->pool);
  bpe_status st = workers_failure(c, e);
  if (st == BPE_OK && !idle && c->n_started < c->n_to_start)
    st = start_worker(c, &c->workers[c->n_started], e);
  bool busy;
  if (st == BPE_OK) st = help_all(c, &busy, e);
  if (st == BPE_OK) st = owner_stopped(c, e);
  return st;
}

/* An empty batch to fill: a new one, while there are few; one that is idle; or one that waits
** for a worker, which the owner counts itself. */
static bpe_status next_batch(crew *c, bpe_error *e) {
  pool_lock(c->pool);
  batch *b = c->idle, *filled = NULL;
  if (b != NULL) c->idle = b->next;
  else if (c->n_batches >= 2 * c->n_to_start + 1) filled = take_filled(c);
  pool_unlock(c->pool);
  if (filled != NULL) {
    const bpe_status st = read_batch(c, filled, e);
    if (st != BPE_OK) {
      mem_free(&c->alloc, filled);
      return st;
    }
    b = filled;
  }
  if (b == NULL) {
    b = mem_new(&c->alloc, 1, sizeof *b);
    if (b == NULL) return set_nomem(e);
    c->n_batches++;
  }
  b->n_rows = b->done = b->len = 0;
  c->filling = b;
  return BPE_OK;
}

static bpe_status add_to_batch(crew *c, const uint8_t *text, size_t len, uint64_t weight,
                               uint64_t place, bpe_error *e) {
  if (c->filling != NULL &&
      (c->filling->n_rows == BATCH_ROWS || BATCH_BYTES - c->filling->len < len)) {
    const bpe_status st = submit(c, e);
    if (st != BPE_OK) return st;
  }
  if (c->filling == NULL) {
    const bpe_status st = next_batch(c, e);
    if (st != BPE_OK) return st;
  }
  batch *b = c->filling;
  memcpy(b->bytes + b->len, text, len);
  b->rows[b->n_rows++] = (batch_row){weight, place, (uint32_t)b->len, (uint32_t)len};
  b->len += len;
  return BPE_OK;
}

static bpe_status read_here(crew *c, const uint8_t *text, size_t len, uint64_t weight,
                            uint64_t place, bpe_error *e) {
  reader_begin(&c->reader, text, len, weight, place);
  return read_row(c, &c->reader, e);
}

/* Whether rows may be cut at is_cut: not by a regex, even one that has a scanner. */
static bool may_cut(const crew *c) {
  const bpe_pattern *p = c->o.pattern;
  return !c->o.keep_rows && p->scan != NULL && !p->is_regex;
}

/* Between two ASCII letters, before the space: every named pattern but "none" ends a piece there,
** whatever is left and right of it. */
static bool is_cut(const uint8_t *s, size_t i) {
  const uint8_t a = s[i - 1] | 0x20, b = s[i + 1] | 0x20;
  return s[i] == ' ' && a >= 'a' && a <= 'z' && b >= 'a' && b <= 'z';
}

/* A part of the stretch s[at .. end) that a batch can hold, or, where no cut is near, the part up
** to the next one; returns where it ends. */
static size_t part_end(const uint8_t *s, size_t at, size_t end, pace *p) {
  if (end - at <= LONG_ROW) return end;
  for (size_t i = at + LONG_ROW; i > at + LONG_ROW / 2; i--)
    if (i + 1 < end && is_cut(s, i)) return i;
  for (size_t i = at + LONG_ROW + 1; i + 1 < end && !pace_stopped(p, 2); i++)
    if (is_cut(s, i)) return i;
  return end;
}

/* A long row: its stretches between special tokens are cut into parts that are rows like any. */
static bpe_status add_parts(crew *c, const uint8_t *text, size_t len, uint64_t weight,
                            uint64_t place, bpe_error *e) {
  reader r = {.rules = &c->o.rules};
  bpe_error own = {.status = BPE_OK};
  pace p = {.stop = c->o.stop, .ctx = c->o.stop_ctx};
  bpe_status st = BPE_OK;
  size_t at, end;
  reader_set_stop(&r, c->o.stop, c->o.stop_ctx);
  reader_begin(&r, text, len, weight, place);
  while (st == BPE_OK && reader_stretch(&r, &at, &end, &own)) {
    while (at < end && st == BPE_OK) {
      const size_t to = part_end(text, at, end, &p);
      if (p.stopped) return set_stopped(e);
      if (to - at <= LONG_ROW) st = add_to_batch(c, text + at, to - at, weight, place + at, e);
      else st = read_here(c, text + at, to - at, weight, place + at, e);
      at = to;
    }
  }
  return own.status == BPE_OK ? st : set_error(e, own.status, own.offset, "%s", own.text);
}

bpe_status crew_add(crew *c, const uint8_t *text, size_t len, uint64_t weight, uint64_t place,
                    bpe_error *e) {
  if (c->n_to_start == 0 && c->filling == NULL) return read_here(c, text, len, weight, place, e);
  if (len <= LONG_ROW) return add_to_batch(c, text, len, weight, place, e);
  return may_cut(c) ? add_parts(c, text, len, weight, place, e)
                    : read_here(c, text, len, weight, place, e);
}

/* ---- Beginning and end --------------------------------------------------------------------- */

bpe_status crew_new(const bpe_alloc *a, const crew_options *o, bpe_error *e, crew **out) {
  *out = NULL;
  crew *c = mem_zero(a, 1, sizeof *c);
  if (c == NULL) return set_nomem(e);
  c->alloc = *a;
  c->o = *o;
  c->n_to_start = o->n_workers;
  c->queue_end = &c->queue;
  atomic_init(&c->cancel, 0);
  c->reader.rules = &c->o.rules;
  c->reader.pattern = o->pattern;
  reader_set_stop(&c->reader, o->stop, o->stop_ctx);
  bpe_status st = count_init(&c->total, a, FIRST_PIECES, FIRST_BYTES, e);
  if (st == BPE_OK && o->n_workers > 0) {
    c->pool = pool_new(a, o->n_workers);
    c->workers = mem_zero(a, o->n_workers, sizeof *c->workers);
    if (c->pool == NULL || c->workers == NULL) st = set_nomem(e);
  }
  if (st != BPE_OK) {
    crew_free(c);
    return st;
  }
  *out = c;
  return BPE_OK;
}

count_table *crew_total(crew *c) {
  return &c->total;
}

void crew_release(crew *c) {
  const size_t n = c->total.n;
  count_clear(&c->total, &c->alloc);
  c->total.n = n;
}

/* Tells the threads to end, and waits for it. */
static void dismiss(crew *c) {
  if (c->pool == NULL) return;
  atomic_store_explicit(&c->cancel, 1, memory_order_relaxed);
  pool_lock(c->pool);
  c->quit = true;
  pool_wake_workers(c->pool);
  pool_unlock(c->pool);
  pool_join(c->pool);
}

/* Counts all batches that are filled, until no worker is at one. */
static bpe_status drain(crew *c, bpe_error *e) {
  for (;;) {
    bpe_status st = workers_failure(c, e);
    if (st != BPE_OK) return st;
    pool_lock(c->pool);
    batch *b = take_filled(c);
    pool_unlock(c->pool);
    if (b != NULL) {
      st = read_batch(c, b, e);
      mem_free(&c->alloc, b);
    }
    if (st == BPE_OK) st = owner_stopped(c, e);
    bool busy;
    if (st == BPE_OK) st = help_all(c, &busy, e);
    if (st != BPE_OK) return st;
    if (b != NULL) continue;
    if (!busy) break;
    pool_lock(c->pool);
    bool working = false, stuck = false; /* as it is now */
    for (size_t i = 0; i < c->n_started; i++) {
      working |= c->workers[i].state == WORKING;
      stuck |= c->workers[i].state == STUCK;
    }
    if (working && !stuck) pool_wait_news(c->pool);
    pool_unlock(c->pool);
  }
  return workers_failure(c, e);
}

bpe_status crew_finish(crew *c, bpe_error *e) {
  if (c->pool == NULL) return BPE_OK;
  bpe_status st = BPE_OK;
  if (c->filling != NULL) {
    st = read_batch(c, c->filling, e); /* the others are still at theirs */
    mem_free(&c->alloc, c->filling);
    c->filling = NULL;
  }
  if (st == BPE_OK) st = drain(c, e);
  dismiss(c);
  for (size_t i = 0; i < c->n_started && st == BPE_OK; i++)
    if ((st = owner_stopped(c, e)) == BPE_OK) st = empty_table(c, &c->workers[i].table, e);
  return st;
}

static void free_batches(crew *c, batch *b) {
  while (b != NULL) {
    batch *next = b->next;
    mem_free(&c->alloc, b);
    b = next;
  }
}

void crew_free(crew *c) {
  if (c == NULL) return;
  const bpe_alloc a = c->alloc;
  dismiss(c);
  for (size_t i = 0; c->workers != NULL && i < c->o.n_workers; i++) {
    worker *w = &c->workers[i];
    guard_release(&w->guard);
    reader_clear(&w->reader);
    bpe_pattern_free(w->pattern);
    count_clear(&w->table, &a);
    mem_free(&a, w->batch);
  }
  free_batches(c, c->queue);
  free_batches(c, c->idle);
  mem_free(&a, c->filling);
  mem_free(&a, c->workers);
  pool_free(c->pool);
  reader_clear(&c->reader);
  count_clear(&c->total, &a);
  mem_free(&a, c);
}
