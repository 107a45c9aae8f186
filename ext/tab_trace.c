/* tab_trace.c - how a text becomes ids, merge by merge.
**
**   bpe_trace(text [, tokenizer [, options]])
**   SELECT piece, step, left, right, id, replacements, after FROM bpe_trace('aab', 'gpt2');
**   0|0|NULL|NULL|NULL|NULL|[64,64,65]
**   0|1|64|65|397|1|[64,397]
**
** (R1) Step 0 of a piece has the ids that merging begins with; each further row is a longest run of
**      merges of one pair that follow each other, with the piece's ids before and after.
** (R2) The last `after` of each piece, put together, is bpe_encode of the text.
** (R3) A piece that is a token and for that is not merged is one step, rank, left and right NULL.
** (R4) Pieces are counted from 0, and special tokens, BOS and EOS, which have only a step 0, with
**      them. A byte that is no token is null in `before` and `after`.
** (R5) Rows are made when they are asked for: a row costs what its piece has tokens.
*/
#include "ext.h"

enum { PIECE, STEP, RANK, LEFT, RIGHT, ID, REPLACEMENTS, BEFORE, AFTER, INPUT };

typedef struct trace_cursor {
  cursor base;
  bpe_trace *trace; /* owned; over the input */
  bpe_step step;
} trace_cursor;

static void trace_plan(sqlite3_index_info *info, int n_argv) {
  (void)n_argv;
  if (info->nOrderBy == 2 && info->aOrderBy[0].iColumn == PIECE && !info->aOrderBy[0].desc &&
      info->aOrderBy[1].iColumn == STEP && !info->aOrderBy[1].desc) {
    info->orderByConsumed = 1;
  }
}

static void trace_start(cursor *base, int idx_num, sqlite3_value *key, failure *f) {
  (void)idx_num;
  (void)key;
  trace_cursor *cur = (trace_cursor *)base;
  bpe_error e = {0};
  bpe_status st = bpe_trace_new(base->call->tok->coder, &e, &cur->trace);
  if (st == BPE_OK) {
    st = bpe_trace_start(cur->trace, base->input.data, base->input.len, &base->call->walk, &e);
  }
  if (st != BPE_OK) fail_status(f, st, &e);
}

static void trace_next(cursor *base, failure *f) {
  trace_cursor *cur = (trace_cursor *)base;
  bpe_error e = {0};
  cursor_status(base, bpe_trace_next(cur->trace, &cur->step, &e), &e, f);
}

static int result_ids(const cursor *cur, sqlite3_context *ctx, const uint32_t *ids, size_t n) {
  conn *c = cursor_conn(cur);
  failure f = table_failure(cur->base.pVtab);
  work w = {.f = &f};
  bpe_buffer b;
  result_begin(c, &b);
  bpe_buffer_append(&b, "[", 1);
  for (size_t i = 0; i < n && b.status == BPE_OK && !work_stopped(&w, 16); i++) {
    if (i > 0) bpe_buffer_append(&b, ",", 1);
    if (ids[i] == BPE_NONE) bpe_buffer_append(&b, "null", 4);
    else bpe_buffer_append_decimal(&b, ids[i]);
  }
  bpe_buffer_append(&b, "]", 1);
  if (result_end(ctx, c, &b, true, &f) == SQLITE_OK) sqlite3_result_subtype(ctx, JSON_SUBTYPE);
  return failure_to_vtab(&f, cur->base.pVtab);
}

static void result_id(sqlite3_context *ctx, uint32_t id) {
  if (id != BPE_NONE) sqlite3_result_int64(ctx, id);
}

static int trace_column(cursor *base, sqlite3_context *ctx, int column) {
  const bpe_step *s = &((const trace_cursor *)base)->step;
  switch (column) {
  case PIECE: sqlite3_result_int64(ctx, (sqlite3_int64)s->piece); break;
  case STEP: sqlite3_result_int64(ctx, (sqlite3_int64)s->step); break;
  case RANK: result_id(ctx, s->rank); break;
  case LEFT: result_id(ctx, s->left); break;
  case RIGHT: result_id(ctx, s->right); break;
  case ID: result_id(ctx, s->id); break;
  case REPLACEMENTS:
    if (s->before) sqlite3_result_int64(ctx, (sqlite3_int64)s->replacements);
    break;
  case BEFORE: return s->before ? result_ids(base, ctx, s->before, s->n_before) : SQLITE_OK;
  case AFTER: return result_ids(base, ctx, s->after, s->n_after);
  }
  return SQLITE_OK;
}

static void trace_end(cursor *base) {
  bpe_trace_free(((trace_cursor *)base)->trace);
}

const table_function trace_table = {
    .name = "bpe_trace",
    .schema = "CREATE TABLE x(piece INTEGER, step INTEGER, rank INTEGER, left INTEGER,"
              " right INTEGER, id INTEGER, replacements INTEGER, before TEXT, after TEXT,"
              " input HIDDEN, tokenizer HIDDEN, options HIDDEN)",
    .args = {.first_column = INPUT,
             .n = 3,
             .n_required = 1,
             .tokenizer = 1,
             .options = 2,
             .who = FOR_TRACE,
             .reads_text = true,
             .needs = "a text argument"},
    .order = PIECE,
    .cost = 10000,
    .rows = 1000,
    .cursor_size = sizeof(trace_cursor),
    .plan = trace_plan,
    .start = trace_start,
    .next = trace_next,
    .column = trace_column,
    .end = trace_end,
};
