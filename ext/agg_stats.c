/* agg_stats.c - how often a tokenizer's tokens occur in the rows of a query.
**
**   bpe_token_stats(text [, tokenizer])    TEXT, a JSON object
**
**   SELECT bpe_token_stats(column1) FROM (VALUES ('a b'), ('a'));
**   {"texts":2,"bytes":4,"tokens":3,"distinct":2,"unused":199998,"counts":[[64,2,2],[287,1,1]]}
**
** texts, bytes, tokens: of the rows. distinct: ids that occur; unused: those of the vocabulary that
** do not. counts: for each id that occurs, in order: id, occurrences, texts that have it.
** (S1) NULL text is skipped; no other rows, or a NULL tokenizer, gives NULL.
** (S2) The tokenizer must be the same for all rows of a group.
** (S3) Special tokens in the text are text, as everywhere without options.
** (S4) Memory is proportional to the ids that occur, so many groups cost what they have.
*/
#include "ext.h"

#include <string.h>

enum { FIRST_SLOTS = 1024 };

typedef struct slot {
  uint64_t occurrences; /* 0: empty */
  uint64_t texts, last; /* last: number of the text that counted it last */
  uint32_t id;
} slot;

/* One group. SQLite zeroes it, and calls final for each, whatever happened. */
typedef struct stats {
  bool failed;
  call *call; /* a reference; NULL: no row yet */
  bpe_walk *walk;
  slot *slots; /* owned; a power of two of them */
  size_t mask, n;
  uint64_t texts, bytes, tokens;
} stats;

static void stats_clear(stats *s) {
  bpe_walk_free(s->walk);
  call_release(s->call);
  sqlite3_free(s->slots);
  *s = (stats){.failed = s->failed};
}

static slot *find_slot(slot *slots, size_t mask, uint32_t id) {
  size_t i = (size_t)(id * UINT32_C(0x9e3779b1) >> 7) & mask;
  while (slots[i].occurrences != 0 && slots[i].id != id) i = (i + 1) & mask;
  return &slots[i];
}

static bool grow(stats *s, work *w) {
  const size_t n = s->slots ? 2 * (s->mask + 1) : FIRST_SLOTS;
  slot *slots = sqlite3_malloc64((sqlite3_uint64)n * sizeof *slots);
  if (!slots) return false;
  for (size_t i = 0; i < n && !work_stopped(w, 8); i++) slots[i] = (slot){.occurrences = 0};
  for (size_t i = 0; s->slots && i <= s->mask && !work_stopped(w, 8); i++) {
    if (s->slots[i].occurrences != 0) *find_slot(slots, n - 1, s->slots[i].id) = s->slots[i];
  }
  if (w->f->rc != SQLITE_OK) {
    sqlite3_free(slots);
    return false;
  }
  sqlite3_free(s->slots);
  s->slots = slots;
  s->mask = n - 1;
  return true;
}

static int add_ids(stats *s, const uint32_t *ids, size_t n, failure *f) {
  work w = {.f = f};
  for (size_t i = 0; i < n; i++) {
    if ((!s->slots || s->n >= s->mask / 2) && !grow(s, &w)) return fail_code(f, SQLITE_NOMEM);
    if (work_stopped(&w, 8)) return f->rc;
    slot *t = find_slot(s->slots, s->mask, ids[i]);
    s->n += t->occurrences == 0;
    t->id = ids[i];
    t->occurrences++;
    if (t->last != s->texts) t->texts++;
    t->last = s->texts;
  }
  s->tokens += n;
  return SQLITE_OK;
}

static int add_text(stats *s, bytes text, failure *f) {
  bpe_error e = {0};
  bpe_piece p;
  s->texts++;
  s->bytes += text.len;
  bpe_status st = bpe_walk_start(s->walk, text.data, text.len, &s->call->walk, &e);
  while (st == BPE_OK && (st = bpe_walk_next(s->walk, &p, &e)) == BPE_OK) {
    if (add_ids(s, p.ids, p.n_ids, f) != SQLITE_OK) return f->rc;
  }
  return st == BPE_DONE ? SQLITE_OK : fail_status(f, st, &e);
}

static int begin_group(stats *s, conn *c, sqlite3_value *name, failure *f) {
  bpe_error e = {0};
  if (call_new(c, name, NULL, FOR_COUNT, f, &s->call) != SQLITE_OK) return f->rc;
  const bpe_status st = bpe_walk_new(s->call->tok->coder, &e, &s->walk);
  return st == BPE_OK ? SQLITE_OK : fail_status(f, st, &e);
}

static void stats_step(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  conn *c = sqlite3_user_data(ctx);
  failure f = {.name = "bpe_token_stats", .c = c};
  sqlite3_value *name = argc > 1 ? argv[1] : NULL;
  bytes text;
  if (value_is_null(argv[0]) || (name && value_is_null(name))) return; /* S1 */
  stats *s = sqlite3_aggregate_context(ctx, sizeof *s);
  if (!s) {
    sqlite3_result_error_nomem(ctx);
    return;
  }
  if (s->failed) return;
  if (!value_bytes(argv[0], &text)) fail_code(&f, SQLITE_NOMEM);
  else if (!s->call) begin_group(s, c, name, &f);
  else if (!call_is_for(s->call, name, NULL, FOR_COUNT)) { /* S2 */
    fail(&f, "the tokenizer must be the same in all rows of a group");
  }
  if (f.rc == SQLITE_OK) add_text(s, text, &f);
  if (f.rc == SQLITE_OK) return;
  s->failed = true;
  stats_clear(s);
  failure_to_context(&f, ctx);
}

/* Moves the slots in use to the front, in order of id; the map is none afterwards. */
static void sort_slots(stats *s, work *w) {
  size_t n = 0;
  for (size_t i = 0; i <= s->mask && !work_stopped(w, 2); i++) {
    if (s->slots[i].occurrences != 0) s->slots[n++] = s->slots[i];
  }
  for (size_t gap = n / 2; gap > 0; gap = gap == 2 ? 1 : gap * 5 / 11) { /* Shell's */
    for (size_t i = gap; i < n && !work_stopped(w, 8); i++) {
      const slot x = s->slots[i];
      size_t k = i;
      for (; k >= gap && s->slots[k - gap].id > x.id; k -= gap) s->slots[k] = s->slots[k - gap];
      s->slots[k] = x;
    }
  }
}

static void append(bpe_buffer *b, const char *before, uint64_t n) {
  bpe_buffer_append(b, before, strlen(before));
  bpe_buffer_append_decimal(b, n);
}

static int write_stats(stats *s, bpe_buffer *b, failure *f) {
  work w = {.f = f};
  bpe_info info;
  bpe_model_info(s->call->tok->model, &info);
  append(b, "{\"texts\":", s->texts);
  append(b, ",\"bytes\":", s->bytes);
  append(b, ",\"tokens\":", s->tokens);
  append(b, ",\"distinct\":", s->n);
  append(b, ",\"unused\":", info.token_count - s->n);
  bpe_buffer_append(b, ",\"counts\":[", 11);
  if (s->n > 0) sort_slots(s, &w);
  for (size_t i = 0; i < s->n && b->status == BPE_OK && !work_stopped(&w, 64); i++) {
    append(b, i == 0 ? "[" : ",[", s->slots[i].id);
    append(b, ",", s->slots[i].occurrences);
    append(b, ",", s->slots[i].texts);
    bpe_buffer_append(b, "]", 1);
  }
  bpe_buffer_append(b, "]}", 2);
  return f->rc;
}

static void stats_final(sqlite3_context *ctx) {
  conn *c = sqlite3_user_data(ctx);
  stats *s = sqlite3_aggregate_context(ctx, 0);
  failure f = {.name = "bpe_token_stats", .c = c};
  bpe_buffer b;
  if (!s || !s->call) return; /* S1, or failed */
  result_begin(c, &b);
  write_stats(s, &b, &f);
  stats_clear(s);
  if (result_end(ctx, c, &b, true, &f) != SQLITE_OK) failure_to_context(&f, ctx);
  else sqlite3_result_subtype(ctx, JSON_SUBTYPE);
}

/* As in fn_encode.c. */
enum {
  ALONE = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS | SQLITE_RESULT_SUBTYPE,
  NAMED = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_RESULT_SUBTYPE
};

const aggregate_row stats_aggregates[] = {
    {"bpe_token_stats", 1, ALONE, stats_step, stats_final},
    {"bpe_token_stats", 2, NAMED, stats_step, stats_final},
    {NULL, 0, 0, NULL, NULL},
};
