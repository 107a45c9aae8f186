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

/* idxNum: those of the arguments, and */
enum { BY_SEQ = 1 << MAX_ARGUMENTS };

typedef struct ids_cursor {
  cursor base;
  packed ids; /* of the argument's copy */
  size_t stop;
} ids_cursor;

static void ids_plan(sqlite3_index_info *info, int n_argv) {
  for (int i = 0; i < info->nConstraint; i++) {
    const struct sqlite3_index_constraint *c = &info->aConstraint[i];
    if (c->iColumn != SEQ || c->op != SQLITE_INDEX_CONSTRAINT_EQ || !c->usable) continue;
    info->aConstraintUsage[i].argvIndex = n_argv + 1; /* SQLite compares once more: 1.5, 'a' */
    info->idxNum |= BY_SEQ;
    info->estimatedCost = 1;
    info->estimatedRows = 1;
    return;
  }
}

static void narrow(ids_cursor *cur, sqlite3_value *seq) {
  const sqlite3_int64 n = sqlite3_value_int64(seq);
  if (n < 0 || (uint64_t)n >= cur->stop) {
    cur->stop = 0;
  } else {
    cur->base.row = n;
    cur->stop = (size_t)n + 1;
  }
}

static void ids_start(cursor *base, int idx_num, sqlite3_value *key, failure *f) {
  ids_cursor *cur = (ids_cursor *)base;
  if (value_packed(base->args[0], base->args[1], f, &cur->ids) != SQLITE_OK) return;
  cur->stop = cur->ids.n;
  if (idx_num & BY_SEQ) narrow(cur, key);
}

static void ids_next(cursor *base, failure *f) {
  (void)f;
  base->eof = (size_t)base->row >= ((ids_cursor *)base)->stop;
}

static int ids_column(cursor *base, sqlite3_context *ctx, int column) {
  const ids_cursor *cur = (const ids_cursor *)base;
  switch (column) {
  case SEQ: sqlite3_result_int64(ctx, base->row); break;
  case ID: sqlite3_result_int64(ctx, packed_id(&cur->ids, (size_t)base->row)); break;
  case WIDTH: sqlite3_result_int(ctx, 32); break;
  }
  return SQLITE_OK;
}

const table_function ids_table = {
    .name = "bpe_ids",
    .schema = "CREATE TABLE x(seq INTEGER, id INTEGER, input HIDDEN, width HIDDEN)",
    .args = {.first_column = INPUT,
             .n = 2,
             .n_required = 1,
             .tokenizer = -1,
             .options = -1,
             .needs = "a BLOB of packed ids"},
    .order = SEQ,
    .cost = 1000,
    .rows = 1000,
    .cursor_size = sizeof(ids_cursor),
    .plan = ids_plan,
    .start = ids_start,
    .next = ids_next,
    .column = ids_column,
};
