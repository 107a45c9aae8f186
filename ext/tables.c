/* tables.c - what the table functions have in common: arguments as hidden columns, and their plan.
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
** (T4) idxNum says which arguments xFilter gets, in column order.
*/
#include "ext.h"

int table_connect(sqlite3 *db, conn *c, const char *name, const char *schema, sqlite3_vtab **out,
                  char **error) {
  (void)error; /* a failed declaration is ours alone, and SQLite words it */
  const int rc = sqlite3_declare_vtab(db, schema);
  if (rc != SQLITE_OK) return rc;
  table *t = sqlite3_malloc64(sizeof *t);
  if (!t) return SQLITE_NOMEM;
  *t = (table){.c = c, .name = name};
  *out = &t->base;
  return SQLITE_OK;
}

int table_disconnect(sqlite3_vtab *vtab) {
  table *t = (table *)vtab;
  call_release(t->last);
  sqlite3_free(t);
  return SQLITE_OK;
}

failure table_failure(const sqlite3_vtab *vtab) {
  const table *t = (const table *)vtab;
  return (failure){.name = t->name, .c = t->c};
}

int table_plan(const arguments *a, sqlite3_index_info *info, int *n_argv) {
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

double table_cost(const arguments *a, const sqlite3_index_info *info, double cost) {
  static const double impossible = 1e99;
  return is_missing(a, info->idxNum) ? impossible : cost; /* T3 */
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

static sqlite3_value *argument(const scan *s, int i) {
  return i < 0 ? NULL : s->args[i];
}

/* The call of the table's latest scan if the arguments are the same, else a new one. */
static int scan_call(table *t, scan *s, sqlite3_value *name, sqlite3_value *opts, int who,
                     failure *f) {
  if (call_again(t->c, &t->last, name, opts, who, f) != SQLITE_OK) return f->rc;
  t->last->refs++;
  s->call = t->last;
  return SQLITE_OK;
}

static int start_walk(scan *s, failure *f) {
  bpe_error e = {0};
  if (!value_bytes(s->args[0], &s->input)) return fail_code(f, SQLITE_NOMEM);
  bpe_status st = bpe_walk_new(s->call->tok->coder, &e, &s->walk);
  if (st == BPE_OK) {
    st = bpe_walk_start(s->walk, s->input.data, s->input.len, &s->call->walk, &e);
  }
  return st == BPE_OK ? SQLITE_OK : fail_status(f, st, &e);
}

int scan_open(scan *s, table *t, const arguments *a, int idx_num, sqlite3_value **argv, failure *f,
              bool *empty) {
  *empty = false;
  if (is_missing(a, idx_num)) return fail(f, "needs %s", a->needs ? a->needs : "a text argument");
  for (int i = 0, next = 0; i < a->n; i++) {
    if (!(idx_num & 1 << i)) continue;
    s->args[i] = sqlite3_value_dup(argv[next++]);
    if (!s->args[i]) return fail_code(f, SQLITE_NOMEM);
    if (i != a->options && value_is_null(s->args[i])) *empty = true;
  }
  if (*empty) return SQLITE_OK;
  if (a->tokenizer >= 0)
    scan_call(t, s, argument(s, a->tokenizer), argument(s, a->options), a->who, f);
  if (f->rc == SQLITE_OK && a->n_required > 0 && !a->no_walk) start_walk(s, f);
  return f->rc;
}

void scan_close(scan *s) {
  bpe_walk_free(s->walk);
  for (int i = 0; i < MAX_ARGUMENTS; i++) sqlite3_value_free(s->args[i]);
  call_release(s->call);
  *s = (scan){0};
}

void scan_result(const scan *s, const arguments *a, sqlite3_context *ctx, int column) {
  const int i = column - a->first_column;
  if (s->args[i]) {
    sqlite3_result_value(ctx, s->args[i]);
  } else if (i == a->tokenizer) {
    sqlite3_result_text(ctx, DEFAULT_TOKENIZER, -1, SQLITE_STATIC);
  }
}

int result_repaired(sqlite3_context *ctx, conn *c, const void *text, size_t len) {
  bpe_error e = {0};
  bool valid;
  bpe_status st = bpe_utf8_check(&c->alloc, text, len, &e, &valid);
  if (st == BPE_STOPPED) return c->stopped_by;
  if (valid) {
    sqlite3_result_text64(ctx, text, len, SQLITE_TRANSIENT, SQLITE_UTF8);
    return SQLITE_OK;
  }
  bpe_buffer b;
  const int limit = sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, -1);
  bpe_buffer_init(&b, &c->alloc, (size_t)limit);
  st = bpe_utf8_repair(text, len, BPE_REPAIR_REPLACE, &e, &b);
  if (st != BPE_OK) {
    bpe_buffer_clear(&b);
    return st == BPE_STOPPED ? c->stopped_by : st == BPE_NOMEM ? SQLITE_NOMEM : SQLITE_TOOBIG;
  }
  result_buffer(ctx, &b);
  return SQLITE_OK;
}
