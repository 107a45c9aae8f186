/* tab_tokenizers.c - the catalogue: every tokenizer that a name can mean, one row each, and the
** way to store, rename and remove them.
**
**   SELECT name, vocab_size, pattern FROM bpe_tokenizers;
**   INSERT INTO bpe_tokenizers(name, source) SELECT 'mine', bpe_train(body, 8000) FROM docs;
**   UPDATE bpe_tokenizers SET name = 'ours' WHERE name = 'mine';
**   DELETE FROM bpe_tokenizers WHERE name = 'ours';
**   SELECT name, stats FROM bpe_tokenizers WHERE sealed = 0;     what is wrong, and why
**
** (C1) Built-in encodings come first, in a fixed order, with schema 'builtin'; then those stored in
**      each schema, by name. Rows under a reserved name are not there.
** (C2) source, merges and options are the hidden inputs of an INSERT and NULL when read. Columns
**      that are computed must be NULL in an INSERT; so must the rowid.
** (C3) A stored tokenizer's row is read and checked whole when a column needs it, each time, and
**      not taken from those in use: "sealed" is what is true, not what was true. One that is not,
**      or that our triggers do not watch, has sealed = 0, the reason in stats, and NULL in what
**      cannot be known.
** (C4) A model that the connection does not use otherwise is freed when the cursor moves on, so
**      listing all of them holds one at a time.
** (C5) An existing name is refused, whatever the conflict clause says: content never changes under
**      a name. Only name and sealed can be updated, and sealed only to 1.
** (C6) The table owns the connection's kept statements (store.c).
** (C7) Rows have numbers for UPDATE and DELETE, which outlive the cursor: built-in ones their
**      index, stored ones the order in which this table saw (schema, name) first.
*/
#include "ext.h"

#include <string.h>

enum {
  NAME,
  SCHEMA,
  VOCAB_SIZE,
  TOKEN_COUNT,
  MERGE_COUNT,
  PATTERN,
  SPECIAL_TOKENS,
  BOS,
  EOS,
  DIGEST,
  SEALED,
  STATS,
  SOURCE,
  MERGES,
  OPTIONS,
  N_COLUMNS
};
static const char schema[] =
    "CREATE TABLE x(name TEXT, schema TEXT, vocab_size INTEGER, token_count INTEGER,"
    " merge_count INTEGER, pattern TEXT, special_tokens TEXT, bos TEXT, eos TEXT, digest TEXT,"
    " sealed INTEGER, stats TEXT, source HIDDEN, merges HIDDEN, options HIDDEN)";
static const char *const column_names[N_COLUMNS] = {
    "name",    "schema",         "vocab_size", "token_count", "merge_count",
    "pattern", "special_tokens", "bos",        "eos",         "digest",
    "sealed",  "stats",          "source",     "merges",      "options"};

static const double scan_cost = 1000, lookup_cost = 100;
static const sqlite3_int64 scan_rows = 10, lookup_rows = 1;

enum { BY_NAME = 1, BY_SCHEMA = 2 }; /* idxNum: equalities that xFilter gets, in this order */

typedef struct catalogue {
  table base;
  store *store;     /* owned (C6) */
  known_list known; /* C7 */
} catalogue;

typedef struct tokenizers_cursor {
  sqlite3_vtab_cursor base;
  int *rows; /* owned; numbers of the rows to come, from 0 */
  int n, at;
  const bpe_model *model; /* of the row, once needed; borrowed from the connection, or = own */
  bpe_model *own;
  bool looked; /* the row's model was asked for */
  char *fault; /* owned; why there is none */
} tokenizers_cursor;

static int n_builtin(void) {
  int n = 0;
  while (bpe_builtin_name(n)) n++;
  return n;
}

/* ---- Table --------------------------------------------------------------------------------- */

static int tokenizers_disconnect(sqlite3_vtab *vtab) {
  catalogue *t = (catalogue *)vtab;
  conn *c = t->base.c;
  if (c->store == t->store) c->store = NULL;
  store_free(t->store);
  known_clear(&t->known);
  sqlite3_free(t);
  conn_release(c);
  return SQLITE_OK;
}

static int tokenizers_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                              sqlite3_vtab **out, char **error) {
  conn *c = aux;
  (void)argc;
  (void)argv;
  (void)error;
  /* DIRECTONLY: the catalogue stores and deletes, so no view or trigger that came with a database
  ** file may reach it. */
  sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
  const int rc = sqlite3_declare_vtab(db, schema);
  if (rc != SQLITE_OK) return rc;
  catalogue *t = sqlite3_malloc64(sizeof *t);
  if (!t) return SQLITE_NOMEM;
  c->refs++; /* the module may be gone before the table is */
  *t = (catalogue){.base = {.c = c, .name = "bpe_tokenizers"}, .store = store_new(c, true)};
  if (!t->store) {
    tokenizers_disconnect(&t->base.base);
    return SQLITE_NOMEM;
  }
  c->store = t->store;
  *out = &t->base.base;
  return SQLITE_OK;
}

/* Hands an equality with the column to xFilter; SQLite compares again. */
static void use_equality(sqlite3_index_info *info, int column, int bit) {
  for (int i = 0; i < info->nConstraint; i++) {
    const struct sqlite3_index_constraint *k = &info->aConstraint[i];
    if (k->iColumn != column || k->op != SQLITE_INDEX_CONSTRAINT_EQ || !k->usable) continue;
    if (strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0) continue;
    info->aConstraintUsage[i].argvIndex = info->idxNum == 0 ? 1 : 2;
    info->idxNum |= bit;
    return;
  }
}

static int tokenizers_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  info->idxNum = 0;
  use_equality(info, NAME, BY_NAME);
  use_equality(info, SCHEMA, BY_SCHEMA);
  info->estimatedCost = info->idxNum & BY_NAME ? lookup_cost : scan_cost;
  info->estimatedRows = info->idxNum & BY_NAME ? lookup_rows : scan_rows;
  return SQLITE_OK;
}

/* ---- Rows ---------------------------------------------------------------------------------- */

static int tokenizers_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out) {
  (void)vtab;
  tokenizers_cursor *cur = sqlite3_malloc64(sizeof *cur);
  if (!cur) return SQLITE_NOMEM;
  *cur = (tokenizers_cursor){.at = 0};
  *out = &cur->base;
  return SQLITE_OK;
}

static void go_to(tokenizers_cursor *cur, int at) {
  bpe_model_free(cur->own);
  sqlite3_free(cur->fault);
  *cur = (tokenizers_cursor){.base = cur->base, .rows = cur->rows, .n = cur->n, .at = at};
}

static void reset(tokenizers_cursor *cur) {
  go_to(cur, 0);
  sqlite3_free(cur->rows);
  cur->rows = NULL;
  cur->n = 0;
}

static int tokenizers_close(sqlite3_vtab_cursor *base) {
  tokenizers_cursor *cur = (tokenizers_cursor *)base;
  reset(cur);
  sqlite3_free(cur);
  return SQLITE_OK;
}

/* A list of rows being made. */
typedef struct listing {
  catalogue *t;
  tokenizers_cursor *cur;
  store *store;
  int cap;
  bytes name, schema; /* only these, where there is an address */
  failure *f;
} listing;

static bool list_row(listing *l, int row) {
  tokenizers_cursor *cur = l->cur;
  if (cur->n == l->cap) {
    const int cap = l->cap * 2 + 16;
    int *rows = sqlite3_realloc64(cur->rows, (sqlite3_uint64)cap * sizeof *rows);
    if (!rows) {
      fail_code(l->f, SQLITE_NOMEM);
      return false;
    }
    cur->rows = rows;
    l->cap = cap;
  }
  cur->rows[cur->n++] = row;
  return true;
}

static bool same(bytes a, bytes b) {
  return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

static bool wanted(bytes filter, const char *text, size_t len) {
  return !filter.data || same(filter, (bytes){(const uint8_t *)text, len});
}

static bool list_stored(void *ctx, int place, bytes name) {
  listing *l = ctx;
  if (l->name.data && !same(l->name, name)) return true;
  const int number = known_number(&l->t->known, store_schema(l->store, place), name);
  if (number < 0) fail_code(l->f, SQLITE_NOMEM);
  return number >= 0 && list_row(l, n_builtin() + number);
}

static int list_all(listing *l) {
  const char *name;
  for (int i = 0; (name = bpe_builtin_name(i)) != NULL; i++) {
    if (!wanted(l->name, name, strlen(name)) || !wanted(l->schema, "builtin", 7)) continue;
    if (!list_row(l, i)) return l->f->rc;
  }
  l->store = store_begin(l->t->base.c, l->f);
  if (!l->store) return l->f->rc;
  const char *in;
  for (int i = 0; l->f->rc == SQLITE_OK && (in = store_schema(l->store, i)) != NULL; i++) {
    if (wanted(l->schema, in, strlen(in))) store_each(l->store, i, l->f, list_stored, l);
  }
  store_end(l->store);
  return l->f->rc;
}

/* A filter that is no TEXT filters nothing here. False: out of memory. */
static bool take_filter(sqlite3_value *v, bytes *out) {
  return sqlite3_value_type(v) != SQLITE_TEXT || value_bytes(v, out);
}

static int tokenizers_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                             sqlite3_value **argv) {
  (void)idx_str;
  tokenizers_cursor *cur = (tokenizers_cursor *)base;
  failure f = table_failure(base->pVtab);
  listing l = {.t = (catalogue *)base->pVtab, .cur = cur, .f = &f};
  reset(cur);
  if ((idx_num & BY_NAME && !take_filter(argv[0], &l.name)) ||
      (idx_num & BY_SCHEMA && !take_filter(argv[argc - 1], &l.schema))) {
    return SQLITE_NOMEM;
  }
  list_all(&l);
  return f.rc == SQLITE_OK ? SQLITE_OK : failure_to_vtab(&f, base->pVtab);
}

static int tokenizers_next(sqlite3_vtab_cursor *base) {
  tokenizers_cursor *cur = (tokenizers_cursor *)base;
  go_to(cur, cur->at + 1);
  return SQLITE_OK;
}

static int tokenizers_eof(sqlite3_vtab_cursor *base) {
  const tokenizers_cursor *cur = (const tokenizers_cursor *)base;
  return cur->at >= cur->n;
}

static int tokenizers_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  const tokenizers_cursor *cur = (const tokenizers_cursor *)base;
  *rowid = cur->rows[cur->at] + 1;
  return SQLITE_OK;
}

/* The stored tokenizer with a row's number, NULL for a built-in one. */
static const known *known_of(const catalogue *t, sqlite3_int64 row) {
  const sqlite3_int64 i = row - n_builtin();
  return i >= 0 && i < t->known.n ? &t->known.list[i] : NULL;
}

/* ---- Columns ------------------------------------------------------------------------------- */

/* C4 */
static int need_builtin(tokenizers_cursor *cur, conn *c, int builtin, failure *f) {
  const tokenizer *t = tokenizer_loaded(c, builtin);
  if (t) {
    cur->model = t->model;
    return SQLITE_OK;
  }
  bpe_error e = {0};
  const bpe_status st = bpe_builtin_load(&c->alloc, builtin, &e, &cur->own);
  if (st != BPE_OK) return fail_status(f, st, &e);
  cur->model = cur->own;
  return SQLITE_OK;
}

/* The row of a stored tokenizer; *place -1: there is no such schema any more. */
static int seek_known(store *s, const known *k, failure *f, int *place, stored_row *row) {
  *row = (stored_row){.found = false};
  *place = store_find_schema(s, (bytes){(const uint8_t *)k->schema, strlen(k->schema)});
  return *place < 0 ? SQLITE_OK : store_seek_in(s, *place, k->name, f, row);
}

/* C3 */
static int need_stored(tokenizers_cursor *cur, conn *c, const known *k, failure *f) {
  int place;
  stored_row row;
  failure why = {.name = f->name, .c = c};
  store *s = store_begin(c, f);
  if (!s) return f->rc;
  schema_object missing;
  if (seek_known(s, k, &why, &place, &row) == SQLITE_OK && row.found) {
    if (stored_load(c, k->name, &row, &why, &cur->own, &missing) == SQLITE_OK &&
        missing.name.len > 0) {
      fail_missing(&why, &missing, row.schema);
    }
  } else if (why.rc == SQLITE_OK) {
    fail(&why, "it was removed");
  }
  store_end(s);
  cur->model = cur->own;
  if (why.rc == SQLITE_ERROR && why.text) {
    cur->fault = sqlite3_mprintf("%s", why.text + strlen(why.name) + 2);
    if (!cur->fault) fail_code(f, SQLITE_NOMEM);
    failure_clear(&why);
  } else if (why.rc != SQLITE_OK) {
    *f = why;
  }
  return f->rc;
}

static int need_model(tokenizers_cursor *cur, catalogue *t, failure *f) {
  if (cur->looked) return SQLITE_OK;
  const int row = cur->rows[cur->at];
  const known *k = known_of(t, row);
  if (k) need_stored(cur, t->base.c, k, f);
  else need_builtin(cur, t->base.c, row, f);
  cur->looked = f->rc == SQLITE_OK;
  return f->rc;
}

static void special_tokens(const bpe_model *m, bpe_buffer *b, failure *f) {
  work w = {.f = f};
  bpe_info info;
  bpe_model_info(m, &info);
  bpe_buffer_append(b, "{", 1);
  for (size_t i = 0; i < info.entry_count && b->status == BPE_OK; i++) {
    const bpe_token token = bpe_model_token(m, i);
    if (work_stopped(&w, token.kind == BPE_TOKEN ? 4 : 64 + token.len)) break;
    if (token.kind == BPE_TOKEN) continue;
    if (b->len > 1) bpe_buffer_append(b, ",", 1);
    bpe_buffer_append_json(b, token.bytes, token.len);
    bpe_buffer_append(b, ":", 1);
    bpe_buffer_append_decimal(b, token.id);
  }
  bpe_buffer_append(b, "}", 1);
}

static int result_digest(const bpe_model *m, sqlite3_context *ctx, failure *f) {
  static const char digits[] = "0123456789abcdef";
  uint8_t sum[32];
  char hex[64];
  bpe_error e = {0};
  const bpe_status st = bpe_model_digest(m, &e, sum);
  if (st != BPE_OK) return fail_status(f, st, &e);
  for (size_t i = 0; i < sizeof sum; i++) {
    hex[2 * i] = digits[sum[i] >> 4];
    hex[2 * i + 1] = digits[sum[i] & 15];
  }
  sqlite3_result_text(ctx, hex, (int)sizeof hex, SQLITE_TRANSIENT);
  return SQLITE_OK;
}

/* The columns that are JSON. */
static int json_column(const tokenizers_cursor *cur, conn *c, sqlite3_context *ctx, int column,
                       failure *f) {
  bpe_info info = {0};
  bpe_buffer b;
  if (cur->model) bpe_model_info(cur->model, &info);
  if (column == STATS && !cur->fault && info.stats_len == 0) return SQLITE_OK; /* NULL */
  result_begin(c, &b);
  if (column == SPECIAL_TOKENS) {
    special_tokens(cur->model, &b, f);
  } else if (column == BOS) {
    json_append_ids(&b, info.bos, info.n_bos, f);
  } else if (column == EOS) {
    json_append_ids(&b, info.eos, info.n_eos, f);
  } else if (cur->fault) {
    bpe_buffer_append(&b, "{\"unsealed\":", 12);
    bpe_buffer_append_json(&b, cur->fault, strlen(cur->fault));
    bpe_buffer_append(&b, "}", 1);
  } else {
    bpe_buffer_append(&b, info.stats, info.stats_len);
  }
  return result_end(ctx, c, &b, true, f);
}

static int model_column(tokenizers_cursor *cur, catalogue *t, sqlite3_context *ctx, int column,
                        failure *f) {
  bpe_info info;
  if (need_model(cur, t, f) != SQLITE_OK) return f->rc;
  if (column == SEALED) {
    sqlite3_result_int(ctx, cur->fault == NULL);
    return SQLITE_OK;
  }
  if (column == STATS) return json_column(cur, t->base.c, ctx, column, f);
  if (!cur->model) return SQLITE_OK;
  bpe_model_info(cur->model, &info);
  switch (column) {
  case VOCAB_SIZE: sqlite3_result_int64(ctx, info.vocab_size); break;
  case TOKEN_COUNT: sqlite3_result_int64(ctx, (sqlite3_int64)info.token_count); break;
  case MERGE_COUNT: sqlite3_result_int64(ctx, (sqlite3_int64)info.merge_count); break;
  case PATTERN:
    sqlite3_result_text64(ctx, info.pattern, info.pattern_len, SQLITE_TRANSIENT, SQLITE_UTF8);
    break;
  case DIGEST: return result_digest(cur->model, ctx, f);
  default: return json_column(cur, t->base.c, ctx, column, f);
  }
  return SQLITE_OK;
}

static int tokenizers_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column) {
  tokenizers_cursor *cur = (tokenizers_cursor *)base;
  catalogue *t = (catalogue *)base->pVtab;
  failure f = table_failure(base->pVtab);
  const int row = cur->rows[cur->at];
  const known *k = known_of(t, row);
  if (sqlite3_vtab_nochange(ctx)) return SQLITE_OK; /* an UPDATE that leaves it alone */
  switch (column) {
  case NAME:
    if (k) {
      sqlite3_result_text64(ctx, (const char *)k->name.data, k->name.len, SQLITE_TRANSIENT,
                            SQLITE_UTF8);
    } else {
      sqlite3_result_text(ctx, bpe_builtin_name(row), -1, SQLITE_STATIC);
    }
    break;
  case SCHEMA: sqlite3_result_text(ctx, k ? k->schema : "builtin", -1, SQLITE_TRANSIENT); break;
  case SEALED:
    if (k) model_column(cur, t, ctx, column, &f);
    else sqlite3_result_int(ctx, 1);
    break;
  case STATS:
    if (k) model_column(cur, t, ctx, column, &f);
    break;
  case SOURCE:
  case MERGES:
  case OPTIONS: break;
  default: model_column(cur, t, ctx, column, &f); break;
  }
  return f.rc == SQLITE_OK ? SQLITE_OK : failure_to_vtab(&f, base->pVtab);
}

/* ---- Changes ------------------------------------------------------------------------------- */

/* C2. values: the columns. */
static int insert(catalogue *t, store *s, sqlite3_value **values, failure *f, int *number) {
  static const int computed[] = {VOCAB_SIZE, TOKEN_COUNT, MERGE_COUNT, BOS,
                                 EOS,        DIGEST,      SEALED,      STATS};
  const store_input in = {values[SOURCE], values[MERGES], values[PATTERN], values[SPECIAL_TOKENS],
                          values[OPTIONS]};
  bytes name;
  int place = -1;
  bpe_model *m;
  for (size_t i = 0; i < sizeof computed / sizeof computed[0]; i++) {
    if (!value_is_null(values[computed[i]])) {
      return fail(f, "%s is computed and cannot be given", column_names[computed[i]]);
    }
  }
  if (store_take_name(s, values[NAME], f, &name) != SQLITE_OK ||
      store_take_schema(s, values[SCHEMA], f, &place) != SQLITE_OK ||
      store_refuse(s, place, name, f) != SQLITE_OK ||
      store_import(t->base.c, &in, f, &m) != SQLITE_OK) {
    return f->rc;
  }
  *number = known_number(&t->known, store_schema(s, place), name);
  if (*number < 0) fail_code(f, SQLITE_NOMEM);
  else stored_insert(s, store_schema(s, place), name, m, f);
  bpe_model_free(m);
  return f->rc;
}

static int seal(store *s, const known *k, const stored_row *row, sqlite3_value *v, failure *f) {
  failure ignored = {.name = f->name, .c = f->c};
  bpe_model *m;
  schema_object missing;
  if (sqlite3_value_type(v) != SQLITE_INTEGER || sqlite3_value_int64(v) != 1) {
    return fail(f, "sealed can only be set to 1");
  }
  const int rc = stored_load(store_conn(s), k->name, row, &ignored, &m, &missing);
  bpe_model_free(m);
  if (rc == SQLITE_OK && missing.name.len == 0) return SQLITE_OK;
  if (rc != SQLITE_OK && rc != SQLITE_ERROR) {
    *f = ignored;
    return rc;
  }
  failure_clear(&ignored);
  return stored_seal(s, row, k->name, f);
}

/* C5 */
static int update(store *s, const known *k, sqlite3_value **values, const bool *had, failure *f) {
  int place;
  stored_row row;
  bytes name;
  for (int i = 0; i < N_COLUMNS; i++) {
    if (i == NAME || i == SEALED || sqlite3_value_nochange(values[i]) || had[i]) continue;
    return fail(f, "only name and sealed can be updated, not %s", column_names[i]);
  }
  if (seek_known(s, k, f, &place, &row) != SQLITE_OK) return f->rc;
  if (!row.found) return fail(f, "the tokenizer was removed meanwhile");
  if (!sqlite3_value_nochange(values[SEALED]) && !had[SEALED]) seal(s, k, &row, values[SEALED], f);
  if (f->rc != SQLITE_OK || sqlite3_value_nochange(values[NAME])) return f->rc;
  if (store_take_name(s, values[NAME], f, &name) != SQLITE_OK || same(name, k->name)) return f->rc;
  if (store_refuse(s, place, name, f) == SQLITE_OK) stored_rename(s, &row, name, f);
  return f->rc;
}

static int delete (store *s, const known *k, failure *f) {
  int place;
  stored_row row;
  if (seek_known(s, k, f, &place, &row) != SQLITE_OK || !row.found) return f->rc;
  return stored_delete(s, &row, k->name, f);
}

/* UPDATE FROM gives every column, whether it changes or not: which ones the row has already. */
static int compare_row(conn *c, int argc, sqlite3_value **argv, failure *f, bool *had) {
  static const char sql[] =
      "SELECT name IS ?2, schema IS ?3, vocab_size IS ?4, token_count IS ?5, merge_count IS ?6,"
      " pattern IS ?7, special_tokens IS ?8, bos IS ?9, eos IS ?10, digest IS ?11, sealed IS ?12,"
      " stats IS ?13, source IS ?14, merges IS ?15, options IS ?16 FROM main.bpe_tokenizers"
      " WHERE rowid = ?1";
  enum { GIVEN = SCHEMA }; /* that an UPDATE without FROM does not give */
  sqlite3_stmt *stmt = NULL;
  if (argc == 1 || value_is_null(argv[0]) || sqlite3_value_nochange(argv[2 + GIVEN]))
    return SQLITE_OK;
  int rc = sqlite3_prepare_v2(c->db, sql, -1, &stmt, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_bind_value(stmt, 1, argv[0]);
  for (int i = 0; i < N_COLUMNS && rc == SQLITE_OK; i++)
    rc = sqlite3_bind_value(stmt, i + 2, argv[2 + i]);
  if (rc == SQLITE_OK) rc = sqlite3_step(stmt);
  for (int i = 0; i < N_COLUMNS && rc == SQLITE_ROW; i++) had[i] = sqlite3_column_int(stmt, i) != 0;
  if (rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) fail_db(f, c->db, rc);
  sqlite3_finalize(stmt);
  return f->rc;
}

/* argv: the old rowid; the new one; the columns. */
static int change(catalogue *t, store *s, int argc, sqlite3_value **argv, const bool *had,
                  failure *f, sqlite3_int64 *rowid) {
  int number = -1;
  if (value_is_null(argv[0])) {
    if (!value_is_null(argv[1])) return fail(f, "rowid is computed and cannot be given");
    if (insert(t, s, argv + 2, f, &number) == SQLITE_OK) *rowid = n_builtin() + number + 1;
    return f->rc;
  }
  const sqlite3_int64 row = sqlite3_value_int64(argv[0]) - 1;
  const known *k = known_of(t, row);
  if (!k) {
    const char *name = row >= 0 && row < n_builtin() ? bpe_builtin_name((int)row) : "";
    return fail(f, "built-in encodings cannot be changed: %s", name);
  }
  if (argc == 1) return delete (s, k, f);
  if (sqlite3_value_int64(argv[1]) - 1 != row) return fail(f, "rowid cannot be updated");
  return update(s, k, argv + 2, had, f);
}

static int tokenizers_update(sqlite3_vtab *vtab, int argc, sqlite3_value **argv,
                             sqlite3_int64 *rowid) {
  catalogue *t = (catalogue *)vtab;
  failure f = table_failure(vtab);
  bool had[N_COLUMNS] = {false};
  store *s = NULL;
  if (compare_row(t->base.c, argc, argv, &f, had) == SQLITE_OK) s = store_begin(t->base.c, &f);
  if (s) {
    change(t, s, argc, argv, had, &f, rowid);
    store_end(s);
  }
  return f.rc == SQLITE_OK ? SQLITE_OK : failure_to_vtab(&f, vtab);
}

const sqlite3_module tokenizers_module = {
    .iVersion = 0,
    .xCreate = NULL, /* eponymous only */
    .xConnect = tokenizers_connect,
    .xBestIndex = tokenizers_best_index,
    .xDisconnect = tokenizers_disconnect,
    .xOpen = tokenizers_open,
    .xClose = tokenizers_close,
    .xFilter = tokenizers_filter,
    .xNext = tokenizers_next,
    .xEof = tokenizers_eof,
    .xColumn = tokenizers_column,
    .xRowid = tokenizers_rowid,
    .xUpdate = tokenizers_update,
};
