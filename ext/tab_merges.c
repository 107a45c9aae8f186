/* tab_merges.c - the merges of a tokenizer as rows: exactly the pairs that the encoder uses.
**
**   bpe_merges([tokenizer])
**   SELECT rank, left, right, id, text FROM bpe_merges('gpt2') LIMIT 1;       0|220|83|256| t
**
** (M1) Rows come in order of rank, then left, then right. A rank may have several rows where a
**      tokenizer joins every split of a token, which then share the id.
** (M2) token and text are those of the id. count is how often training saw the pair when it chose
**      it, NULL where that is not known.
*/
#include "ext.h"

enum { RANK, LEFT, RIGHT, ID, TOKEN, TEXT, COUNT, TOKENIZER };
static const char schema[] =
    "CREATE TABLE x(rank INTEGER, \"left\" INTEGER, \"right\" INTEGER, id INTEGER, token BLOB,"
    " text TEXT, count INTEGER, tokenizer HIDDEN)";

static const arguments args = {.first_column = TOKENIZER,
                               .n = 1,
                               .n_required = 0,
                               .tokenizer = 0,
                               .options = -1,
                               .who = FOR_MERGES};

static const double scan_cost = 1e6;
static const sqlite3_int64 scan_rows = 100000;

typedef struct merges_cursor {
  sqlite3_vtab_cursor base;
  scan scan;
  size_t at, end; /* merges still to come, the current one included */
} merges_cursor;

static int merges_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                          sqlite3_vtab **out, char **error) {
  (void)argc;
  (void)argv;
  return table_connect(db, aux, "bpe_merges", schema, out, error);
}

static int merges_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  int n_argv;
  const int rc = table_plan(&args, info, &n_argv);
  if (rc != SQLITE_OK) return rc;
  info->orderByConsumed = table_ordered_by(info, RANK);
  info->estimatedCost = scan_cost;
  info->estimatedRows = scan_rows;
  return SQLITE_OK;
}

static int merges_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out) {
  (void)vtab;
  merges_cursor *cur = sqlite3_malloc64(sizeof *cur);
  if (!cur) return SQLITE_NOMEM;
  *cur = (merges_cursor){.at = 0};
  *out = &cur->base;
  return SQLITE_OK;
}

static void reset(merges_cursor *cur) {
  scan_close(&cur->scan);
  *cur = (merges_cursor){.base = cur->base};
}

static int merges_close(sqlite3_vtab_cursor *base) {
  merges_cursor *cur = (merges_cursor *)base;
  reset(cur);
  sqlite3_free(cur);
  return SQLITE_OK;
}

static int merges_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                         sqlite3_value **argv) {
  (void)idx_str;
  (void)argc;
  merges_cursor *cur = (merges_cursor *)base;
  failure f = table_failure(base->pVtab);
  bool empty;
  bpe_info info;
  reset(cur);
  if (scan_open(&cur->scan, (table *)base->pVtab, &args, idx_num, argv, &f, &empty) != SQLITE_OK) {
    return failure_to_vtab(&f, base->pVtab);
  }
  if (empty) return SQLITE_OK;
  bpe_model_info(cur->scan.call->tok->model, &info);
  cur->end = info.merge_count;
  return SQLITE_OK;
}

static int merges_next(sqlite3_vtab_cursor *base) {
  ((merges_cursor *)base)->at++;
  return SQLITE_OK;
}

static int merges_eof(sqlite3_vtab_cursor *base) {
  const merges_cursor *cur = (const merges_cursor *)base;
  return cur->at >= cur->end;
}

static int merges_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column) {
  const merges_cursor *cur = (const merges_cursor *)base;
  const bpe_model *m = cur->scan.call->tok->model;
  const bpe_merge merge = bpe_model_merge(m, cur->at);
  const bpe_token token = bpe_model_token(m, bpe_model_find_id(m, merge.id));
  switch (column) {
  case RANK: sqlite3_result_int64(ctx, merge.rank); break;
  case LEFT: sqlite3_result_int64(ctx, merge.left); break;
  case RIGHT: sqlite3_result_int64(ctx, merge.right); break;
  case ID: sqlite3_result_int64(ctx, merge.id); break;
  case TOKEN: sqlite3_result_blob64(ctx, token.bytes, token.len, SQLITE_TRANSIENT); break;
  case TEXT: return result_repaired(ctx, ((table *)base->pVtab)->c, token.bytes, token.len);
  case COUNT:
    if (merge.count > 0) sqlite3_result_int64(ctx, (sqlite3_int64)merge.count);
    break;
  default: scan_result(&cur->scan, &args, ctx, column); break;
  }
  return SQLITE_OK;
}

static int merges_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = (sqlite3_int64)((merges_cursor *)base)->at + 1;
  return SQLITE_OK;
}

const sqlite3_module merges_module = {
    .iVersion = 0,
    .xCreate = NULL, /* eponymous only */
    .xConnect = merges_connect,
    .xBestIndex = merges_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = merges_open,
    .xClose = merges_close,
    .xFilter = merges_filter,
    .xNext = merges_next,
    .xEof = merges_eof,
    .xColumn = merges_column,
    .xRowid = merges_rowid,
};
