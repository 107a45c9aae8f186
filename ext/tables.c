/* tables.c - what the table functions have in common: one module, and arguments as hidden columns.
**
** bpe_tokens('text', 'gpt2') is, to SQLite, a scan of a table with the constraints input = 'text'
** AND tokenizer = 'gpt2' on hidden columns. The rules, the same for every table:
** (T1) An equality on a hidden column is its argument; the plan takes the first and leaves any
**      other to SQLite, which compares it with what the column returns: the argument.
** (T2) An argument that this join order cannot give yet makes the order impossible
**      (SQLITE_CONSTRAINT), never the argument absent.
** (T3) A needed argument that nobody gives is an error, but not before the scan: SQLite also plans
**      parts of a query by themselves, such as the sides of an OR, and only must not choose them.
**      NULL text or tokenizer is no rows.
** (T4) idxNum says which arguments xFilter gets, in column order; a key of the function's own plan
**      comes behind them.
*/
#include "ext.h"

#include <string.h>

typedef struct function_table {
  table base;
  const table_function *f;
  call *last; /* of the latest scan: joins start a scan per row; a reference */
} function_table;

const table_function *const table_functions[] = {&tokens_table, &pieces_table, &chunks_table,
                                                 &trace_table,  &stream_table, &ids_table,
                                                 &vocab_table,  &merges_table, NULL};

static const table_function *function_of(const cursor *cur) {
  return ((const function_table *)cur->base.pVtab)->f;
}

failure table_failure(const sqlite3_vtab *vtab) {
  const table *t = (const table *)vtab;
  return (failure){.name = t->name, .c = t->c};
}

/* ---- Table --------------------------------------------------------------------------------- */

static int table_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **error) {
  (void)argc;
  (void)error; /* a failed declaration is ours alone, and SQLite words it */
  const table_function *const *f = table_functions;
  while (strcmp((*f)->name, argv[0]) != 0) f++; /* argv[0] is the name that was registered */
  if ((*f)->direct_only) sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
  const int rc = sqlite3_declare_vtab(db, (*f)->schema);
  if (rc != SQLITE_OK) return rc;
  function_table *t = sqlite3_malloc64(sizeof *t);
  if (!t) return SQLITE_NOMEM;
  *t = (function_table){.base = {.c = aux, .name = (*f)->name}, .f = *f};
  *out = &t->base.base;
  return SQLITE_OK;
}

static int table_disconnect(sqlite3_vtab *vtab) {
  call_release(((function_table *)vtab)->last);
  sqlite3_free(vtab);
  return SQLITE_OK;
}

/* ---- Plan ---------------------------------------------------------------------------------- */

static int plan_arguments(const arguments *a, sqlite3_index_info *info, int *n_argv) {
  int given[MAX_ARGUMENTS] = {-1, -1, -1, -1}; /* T1: the constraint that gives the argument */
  bool later[MAX_ARGUMENTS] = {false};
  for (int i = 0; i < info->nConstraint; i++) {
    const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
    const int arg = constraint->iColumn - a->first_column;
    if (arg < 0 || arg >= a->n || constraint->op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    if (!constraint->usable) later[arg] = true;
    else if (given[arg] < 0) given[arg] = i;
  }
  *n_argv = 0;
  info->idxNum = 0;
  for (int arg = 0; arg < a->n; arg++) {
    if (given[arg] < 0 && later[arg]) return SQLITE_CONSTRAINT; /* T2 */
  }
  for (int arg = 0; arg < a->n; arg++) {
    if (given[arg] < 0) continue;
    info->aConstraintUsage[given[arg]].argvIndex = ++*n_argv;
    info->aConstraintUsage[given[arg]].omit = 1;
    info->idxNum |= 1 << arg; /* T4 */
  }
  return SQLITE_OK;
}

static bool is_missing(const arguments *a, int idx_num) {
  const int required = (1 << a->n_required) - 1;
  return (idx_num & required) != required;
}

bool table_ordered_by(const sqlite3_index_info *info, int column) {
  if (info->nOrderBy != 1 || info->aOrderBy[0].desc) return false;
  return info->aOrderBy[0].iColumn == column || info->aOrderBy[0].iColumn == -1;
}

bool table_uses(const sqlite3_index_info *info, int first, int last) {
  sqlite3_uint64 used = info->colUsed;
  for (int i = first; i <= last; i++) {
    if (used & (sqlite3_uint64)1 << i) return true;
  }
  return false;
}

static int table_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  static const double impossible = 1e99;
  const table_function *f = ((function_table *)vtab)->f;
  int n_argv;
  const int rc = plan_arguments(&f->args, info, &n_argv);
  if (rc != SQLITE_OK) return rc;
  info->orderByConsumed = table_ordered_by(info, f->order);
  info->estimatedCost = f->cost;
  info->estimatedRows = f->rows;
  if (f->plan) f->plan(info, n_argv);
  if (is_missing(&f->args, info->idxNum)) info->estimatedCost = impossible; /* T3 */
  return SQLITE_OK;
}

/* ---- Scan ---------------------------------------------------------------------------------- */

static int table_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out) {
  const size_t size = ((function_table *)vtab)->f->cursor_size;
  cursor *cur = sqlite3_malloc64(size);
  if (!cur) return SQLITE_NOMEM;
  memset(cur, 0, size);
  *out = &cur->base;
  return SQLITE_OK;
}

/* Ends the scan, if there is one: the cursor is as new. */
static void reset(cursor *cur) {
  const sqlite3_vtab_cursor base = cur->base;
  const table_function *f = function_of(cur);
  if (f->end) f->end(cur);
  for (int i = 0; i < MAX_ARGUMENTS; i++) sqlite3_value_free(cur->args[i]);
  call_release(cur->call);
  memset(cur, 0, f->cursor_size);
  cur->base = base;
}

static int table_close(sqlite3_vtab_cursor *base) {
  reset((cursor *)base);
  sqlite3_free(base);
  return SQLITE_OK;
}

static sqlite3_value *argument(const cursor *cur, int i) {
  return i < 0 ? NULL : cur->args[i];
}

/* Takes the arguments and what they mean. *n is how many there are; *empty: one of them is NULL and
** may not be, so there are no rows, and no call. */
static int take_arguments(cursor *cur, int idx_num, sqlite3_value **argv, failure *f, int *n,
                          bool *empty) {
  function_table *t = (function_table *)cur->base.pVtab;
  const arguments *a = &t->f->args;
  if (is_missing(a, idx_num)) return fail(f, "needs %s", a->needs);
  for (int i = 0; i < a->n; i++) {
    if (!(idx_num & 1 << i)) continue;
    cur->args[i] = sqlite3_value_dup(argv[(*n)++]);
    if (!cur->args[i]) return fail_code(f, SQLITE_NOMEM);
    if (i != a->options && value_is_null(cur->args[i])) *empty = true;
  }
  if (*empty) return SQLITE_OK;
  if (a->tokenizer >= 0) { /* the call of the latest scan, if the arguments are the same */
    sqlite3_value *name = argument(cur, a->tokenizer), *opts = argument(cur, a->options);
    if (call_again(t->base.c, &t->last, name, opts, a->who, f) != SQLITE_OK) return f->rc;
    t->last->refs++;
    cur->call = t->last;
  }
  if (a->reads_text && !value_bytes(cur->args[0], &cur->input)) return fail_code(f, SQLITE_NOMEM);
  return SQLITE_OK;
}

/* The current row is there, or it is the end, or a failure: what SQLite wants to hear of it. */
static int settle(cursor *cur, failure *f) {
  if (f->rc == SQLITE_OK) return SQLITE_OK;
  cur->eof = true;
  return failure_to_vtab(f, cur->base.pVtab);
}

static int table_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                        sqlite3_value **argv) {
  (void)idx_str;
  cursor *cur = (cursor *)base;
  const table_function *function = function_of(cur);
  failure f = table_failure(base->pVtab);
  bool empty = false;
  int n = 0;
  reset(cur);
  take_arguments(cur, idx_num, argv, &f, &n, &empty);
  cur->eof = empty;
  if (f.rc == SQLITE_OK && !empty) function->start(cur, idx_num, n < argc ? argv[n] : NULL, &f);
  if (f.rc == SQLITE_OK && !empty) function->next(cur, &f);
  return settle(cur, &f);
}

static int table_next(sqlite3_vtab_cursor *base) {
  cursor *cur = (cursor *)base;
  failure f = table_failure(base->pVtab);
  cur->row++;
  function_of(cur)->next(cur, &f);
  return settle(cur, &f);
}

static int table_eof(sqlite3_vtab_cursor *base) {
  return ((cursor *)base)->eof;
}

static int table_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column) {
  cursor *cur = (cursor *)base;
  const table_function *f = function_of(cur);
  const int i = column - f->args.first_column;
  if (i < 0 || (!cur->args[i] && i != f->args.tokenizer)) return f->column(cur, ctx, column);
  if (cur->args[i]) sqlite3_result_value(ctx, cur->args[i]);
  else sqlite3_result_text(ctx, DEFAULT_TOKENIZER, -1, SQLITE_STATIC);
  return SQLITE_OK;
}

static int table_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = ((cursor *)base)->row + 1;
  return SQLITE_OK;
}

const sqlite3_module table_function_module = {
    .iVersion = 0,
    .xCreate = NULL, /* eponymous only */
    .xConnect = table_connect,
    .xBestIndex = table_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = table_open,
    .xClose = table_close,
    .xFilter = table_filter,
    .xNext = table_next,
    .xEof = table_eof,
    .xColumn = table_column,
    .xRowid = table_rowid,
};

/* ---- For the table functions ---------------------------------------------------------------- */

void cursor_status(cursor *cur, bpe_status st, const bpe_error *e, failure *f) {
  if (st == BPE_DONE) cur->eof = true;
  else if (st != BPE_OK) fail_status(f, st, e);
}

void cursor_walk(cursor *cur, bpe_walk **out, failure *f) {
  bpe_error e = {0};
  bpe_status st = bpe_walk_new(cur->call->tok->coder, &e, out);
  if (st == BPE_OK)
    st = bpe_walk_start(*out, cur->input.data, cur->input.len, &cur->call->walk, &e);
  if (st != BPE_OK) fail_status(f, st, &e);
}

int result_repaired(const cursor *cur, sqlite3_context *ctx, const void *text, size_t len) {
  conn *c = cursor_conn(cur);
  failure f = table_failure(cur->base.pVtab);
  bpe_error e = {0};
  bpe_buffer b;
  bool valid = false;
  bpe_status st = bpe_utf8_check(&c->alloc, text, len, &e, &valid);
  if (valid) {
    sqlite3_result_text64(ctx, text, len, SQLITE_TRANSIENT, SQLITE_UTF8);
    return SQLITE_OK;
  }
  result_begin(c, &b);
  if (st == BPE_OK) st = bpe_utf8_repair(text, len, BPE_REPAIR_REPLACE, &e, &b);
  if (st != BPE_OK) fail_status(&f, st, &e);
  result_end(ctx, c, &b, true, &f);
  return failure_to_vtab(&f, cur->base.pVtab);
}
