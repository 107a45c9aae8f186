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

enum { PIECE, STEP, RANK, LEFT, RIGHT, ID, REPLACEMENTS, BEFORE, AFTER, INPUT, TOKENIZER, OPTIONS };
static const char schema[] =
    "CREATE TABLE x(piece INTEGER, step INTEGER, rank INTEGER, left INTEGER, right INTEGER,"
    " id INTEGER, replacements INTEGER, before TEXT, after TEXT, input HIDDEN, tokenizer HIDDEN,"
    " options HIDDEN)";

static const arguments args = {.first_column = INPUT,
                               .n = 3,
                               .n_required = 1,
                               .tokenizer = 1,
                               .options = 2,
                               .who = FOR_TRACE,
                               .no_walk = true};

static const double scan_cost = 10000, scan_rows = 1000;

typedef struct trace_cursor {
  sqlite3_vtab_cursor base;
  scan scan;
  bpe_trace *trace; /* owned; over scan.input */
  bpe_step step;
  sqlite3_int64 row;
  bool eof;
} trace_cursor;

static int trace_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **error) {
  (void)argc;
  (void)argv;
  return table_connect(db, aux, "bpe_trace", schema, out, error);
}

static int trace_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  int n_argv;
  const int rc = table_plan(&args, info, &n_argv);
  if (rc != SQLITE_OK) return rc;
  info->orderByConsumed = table_ordered_by(info, PIECE);
  if (info->nOrderBy == 2 && info->aOrderBy[0].iColumn == PIECE && !info->aOrderBy[0].desc &&
      info->aOrderBy[1].iColumn == STEP && !info->aOrderBy[1].desc) {
    info->orderByConsumed = 1;
  }
  info->estimatedCost = table_cost(&args, info, scan_cost);
  info->estimatedRows = (sqlite3_int64)scan_rows;
  return SQLITE_OK;
}

static int trace_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out) {
  (void)vtab;
  trace_cursor *cur = sqlite3_malloc64(sizeof *cur);
  if (!cur) return SQLITE_NOMEM;
  *cur = (trace_cursor){.eof = true};
  *out = &cur->base;
  return SQLITE_OK;
}

static void reset(trace_cursor *cur) {
  bpe_trace_free(cur->trace);
  scan_close(&cur->scan);
  *cur = (trace_cursor){.base = cur->base, .eof = true};
}

static int trace_close(sqlite3_vtab_cursor *base) {
  reset((trace_cursor *)base);
  sqlite3_free(base);
  return SQLITE_OK;
}

static int advance(trace_cursor *cur) {
  bpe_error e = {0};
  const bpe_status st = bpe_trace_next(cur->trace, &cur->step, &e);
  cur->row++;
  cur->eof = st != BPE_OK;
  if (st == BPE_OK || st == BPE_DONE) return SQLITE_OK;
  failure f = table_failure(cur->base.pVtab);
  fail_status(&f, st, &e);
  return failure_to_vtab(&f, cur->base.pVtab);
}

static int start_trace(trace_cursor *cur, failure *f) {
  const call *k = cur->scan.call;
  bpe_error e = {0};
  if (!value_bytes(cur->scan.args[0], &cur->scan.input)) return fail_code(f, SQLITE_NOMEM);
  bpe_status st = bpe_trace_new(k->tok->coder, &e, &cur->trace);
  if (st == BPE_OK) {
    st = bpe_trace_start(cur->trace, cur->scan.input.data, cur->scan.input.len, &k->walk, &e);
  }
  return st == BPE_OK ? SQLITE_OK : fail_status(f, st, &e);
}

static int trace_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                        sqlite3_value **argv) {
  (void)idx_str;
  (void)argc;
  trace_cursor *cur = (trace_cursor *)base;
  failure f = table_failure(base->pVtab);
  bool empty;
  reset(cur);
  if (scan_open(&cur->scan, (table *)base->pVtab, &args, idx_num, argv, &f, &empty) != SQLITE_OK) {
    return failure_to_vtab(&f, base->pVtab);
  }
  if (empty) return SQLITE_OK;
  if (start_trace(cur, &f) != SQLITE_OK) return failure_to_vtab(&f, base->pVtab);
  return advance(cur);
}

static int trace_next(sqlite3_vtab_cursor *base) {
  return advance((trace_cursor *)base);
}

static int trace_eof(sqlite3_vtab_cursor *base) {
  return ((trace_cursor *)base)->eof;
}

static int result_ids(sqlite3_context *ctx, sqlite3_vtab *vtab, const uint32_t *ids, size_t n) {
  conn *c = ((table *)vtab)->c;
  failure f = table_failure(vtab);
  work w = {.f = &f};
  bpe_buffer b;
  bpe_buffer_init(&b, &c->alloc, (size_t)sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, -1));
  bpe_buffer_append(&b, "[", 1);
  for (size_t i = 0; i < n && b.status == BPE_OK && !work_stopped(&w, 16); i++) {
    if (i > 0) bpe_buffer_append(&b, ",", 1);
    if (ids[i] == BPE_NONE) bpe_buffer_append(&b, "null", 4);
    else bpe_buffer_append_decimal(&b, ids[i]);
  }
  bpe_buffer_append(&b, "]", 1);
  if (f.rc != SQLITE_OK) {
    bpe_buffer_clear(&b);
    return failure_to_vtab(&f, vtab);
  }
  if (b.status != BPE_OK) {
    const int rc = b.status == BPE_NOMEM ? SQLITE_NOMEM : SQLITE_TOOBIG;
    bpe_buffer_clear(&b);
    return rc;
  }
  result_buffer(ctx, &b);
  sqlite3_result_subtype(ctx, JSON_SUBTYPE);
  return SQLITE_OK;
}

static void result_id(sqlite3_context *ctx, uint32_t id) {
  if (id != BPE_NONE) sqlite3_result_int64(ctx, id);
}

static int trace_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column) {
  const trace_cursor *cur = (trace_cursor *)base;
  const bpe_step *s = &cur->step;
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
  case BEFORE: return s->before ? result_ids(ctx, base->pVtab, s->before, s->n_before) : SQLITE_OK;
  case AFTER: return result_ids(ctx, base->pVtab, s->after, s->n_after);
  default: scan_result(&cur->scan, &args, ctx, column); break;
  }
  return SQLITE_OK;
}

static int trace_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = ((trace_cursor *)base)->row;
  return SQLITE_OK;
}

const sqlite3_module trace_module = {
    .iVersion = 0,
    .xCreate = NULL, /* eponymous only */
    .xConnect = trace_connect,
    .xBestIndex = trace_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = trace_open,
    .xClose = trace_close,
    .xFilter = trace_filter,
    .xNext = trace_next,
    .xEof = trace_eof,
    .xColumn = trace_column,
    .xRowid = trace_rowid,
};
