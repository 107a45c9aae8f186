/* tab_ids.c - packed ids as rows.
**
**   bpe_ids(blob [, width])
**   SELECT seq, id FROM bpe_ids(bpe_encode_blob('hello world', 'cl100k_base'));
**   0|15339
**   1|1917
**
** The BLOB and width as in fn_ids.c. NULL gives no rows. seq = n and rowid = n + 1 are lookups.
*/
#include "ext.h"

enum { SEQ, ID, INPUT, WIDTH };
static const char schema[] = "CREATE TABLE x(seq INTEGER, id INTEGER, input HIDDEN, width HIDDEN)";

static const arguments args = {.first_column = INPUT,
                               .n = 2,
                               .n_required = 1,
                               .tokenizer = -1,
                               .options = -1,
                               .no_walk = true,
                               .needs = "a BLOB of packed ids"};

/* idxNum: table_plan's bits, and */
enum { BY_SEQ = 1 << MAX_ARGUMENTS };

static const double scan_cost = 1000, scan_rows = 1000, lookup_cost = 1;

typedef struct ids_cursor {
  sqlite3_vtab_cursor base;
  scan scan;
  bytes packed; /* of the scan's copy */
  size_t size, at, stop;
} ids_cursor;

static int ids_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                       sqlite3_vtab **out, char **error) {
  (void)argc;
  (void)argv;
  return table_connect(db, aux, "bpe_ids", schema, out, error);
}

static int ids_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  int n_argv;
  const int rc = table_plan(&args, info, &n_argv);
  if (rc != SQLITE_OK) return rc;
  info->orderByConsumed = table_ordered_by(info, SEQ);
  info->estimatedCost = table_cost(&args, info, scan_cost);
  info->estimatedRows = (sqlite3_int64)scan_rows;
  for (int i = 0; i < info->nConstraint; i++) {
    const struct sqlite3_index_constraint *c = &info->aConstraint[i];
    if (c->iColumn != SEQ || c->op != SQLITE_INDEX_CONSTRAINT_EQ || !c->usable) continue;
    info->aConstraintUsage[i].argvIndex = ++n_argv; /* SQLite compares once more: 1.5, 'a' */
    info->idxNum |= BY_SEQ;
    info->estimatedCost = table_cost(&args, info, lookup_cost);
    info->estimatedRows = 1;
    break;
  }
  return SQLITE_OK;
}

static int ids_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out) {
  (void)vtab;
  ids_cursor *cur = sqlite3_malloc64(sizeof *cur);
  if (!cur) return SQLITE_NOMEM;
  *cur = (ids_cursor){0};
  *out = &cur->base;
  return SQLITE_OK;
}

static void reset(ids_cursor *cur) {
  scan_close(&cur->scan);
  *cur = (ids_cursor){.base = cur->base};
}

static int ids_close(sqlite3_vtab_cursor *base) {
  reset((ids_cursor *)base);
  sqlite3_free(base);
  return SQLITE_OK;
}

static void narrow(ids_cursor *cur, sqlite3_value *seq) {
  const sqlite3_int64 n = sqlite3_value_int64(seq);
  if (n < 0 || (uint64_t)n >= cur->stop) {
    cur->at = cur->stop;
  } else {
    cur->at = (size_t)n;
    cur->stop = cur->at + 1;
  }
}

static int ids_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                      sqlite3_value **argv) {
  (void)idx_str;
  ids_cursor *cur = (ids_cursor *)base;
  failure f = table_failure(base->pVtab);
  bool empty;
  reset(cur);
  if (scan_open(&cur->scan, (table *)base->pVtab, &args, idx_num, argv, &f, &empty) == SQLITE_OK &&
      !empty) {
    value_packed(cur->scan.args[0], cur->scan.args[1], &f, &cur->packed, &cur->size);
  }
  if (f.rc != SQLITE_OK) return failure_to_vtab(&f, base->pVtab);
  if (empty) return SQLITE_OK;
  cur->stop = cur->packed.len / cur->size;
  if (idx_num & BY_SEQ) narrow(cur, argv[argc - 1]);
  return SQLITE_OK;
}

static int ids_next(sqlite3_vtab_cursor *base) {
  ((ids_cursor *)base)->at++;
  return SQLITE_OK;
}

static int ids_eof(sqlite3_vtab_cursor *base) {
  const ids_cursor *cur = (ids_cursor *)base;
  return cur->at >= cur->stop;
}

static int ids_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column) {
  const ids_cursor *cur = (ids_cursor *)base;
  const uint8_t *p = cur->packed.data + cur->at * cur->size;
  uint32_t id = p[0] | (uint32_t)p[1] << 8;
  if (cur->size == 4) id |= (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
  switch (column) {
  case SEQ: sqlite3_result_int64(ctx, (sqlite3_int64)cur->at); break;
  case ID: sqlite3_result_int64(ctx, id); break;
  default:
    if (cur->scan.args[column - INPUT]) sqlite3_result_value(ctx, cur->scan.args[column - INPUT]);
    else sqlite3_result_int(ctx, 32);
    break;
  }
  return SQLITE_OK;
}

static int ids_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = (sqlite3_int64)((ids_cursor *)base)->at + 1;
  return SQLITE_OK;
}

const sqlite3_module ids_module = {
    .iVersion = 0,
    .xCreate = NULL, /* eponymous only */
    .xConnect = ids_connect,
    .xBestIndex = ids_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = ids_open,
    .xClose = ids_close,
    .xFilter = ids_filter,
    .xNext = ids_next,
    .xEof = ids_eof,
    .xColumn = ids_column,
    .xRowid = ids_rowid,
};
