/* tab_tokenizers.c - the catalogue: every tokenizer that a name can mean, one row each.
**
**   SELECT name, vocab_size, pattern FROM bpe_tokenizers;
**
** (C1) Built-in encodings come first, in a fixed order, with schema 'builtin'; they are sealed and
**      have no training figures.
** (C2) source, merges and options are the hidden inputs of an INSERT and NULL when read.
** (C3) It is read-only: SQLite itself refuses INSERT, UPDATE and DELETE.
** (C4) A model is loaded only when a row's columns need it, after SQLite has compared the name;
**      one that the connection does not use otherwise is freed when the cursor moves on, so
**      listing all of them holds one at a time.
*/
#include "ext.h"

#include <string.h>

enum {
  NAME, SCHEMA, VOCAB_SIZE, TOKEN_COUNT, MERGE_COUNT, PATTERN, SPECIAL_TOKENS, BOS, EOS, DIGEST,
  SEALED, STATS, SOURCE, MERGES, OPTIONS
};
static const char schema[] =
    "CREATE TABLE x(name TEXT, schema TEXT, vocab_size INTEGER, token_count INTEGER,"
    " merge_count INTEGER, pattern TEXT, special_tokens TEXT, bos TEXT, eos TEXT, digest TEXT,"
    " sealed INTEGER, stats TEXT, source HIDDEN, merges HIDDEN, options HIDDEN)";

static const double scan_cost = 100;
static const sqlite3_int64 scan_rows = 10;

typedef struct tokenizers_cursor {
  sqlite3_vtab_cursor base;
  int at;           /* index of the built-in encoding */
  const bpe_model *model; /* of the row, once needed; borrowed from the connection, or = own */
  bpe_model *own;
} tokenizers_cursor;

static int tokenizers_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                              sqlite3_vtab **out, char **error)
{
  (void)argc;
  (void)argv;
  /* DIRECTONLY: the catalogue stores and deletes, so no view or trigger that came with a database
  ** file may reach it. */
  if (HAVE(3031000, vtab_config)) sqlite3_vtab_config(db, SQLITE_VTAB_DIRECTONLY);
  return table_connect(db, aux, "bpe_tokenizers", schema, out, error);
}

static int tokenizers_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
  (void)vtab;
  info->estimatedCost = scan_cost;
  info->estimatedRows = scan_rows;
  return SQLITE_OK;
}

static int tokenizers_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
  (void)vtab;
  tokenizers_cursor *cur = sqlite3_malloc64(sizeof *cur);
  if (!cur) return SQLITE_NOMEM;
  *cur = (tokenizers_cursor){.at = 0};
  *out = &cur->base;
  return SQLITE_OK;
}

static void go_to(tokenizers_cursor *cur, int at)
{
  bpe_model_free(cur->own);
  *cur = (tokenizers_cursor){.base = cur->base, .at = at};
}

static int tokenizers_close(sqlite3_vtab_cursor *base)
{
  tokenizers_cursor *cur = (tokenizers_cursor *)base;
  go_to(cur, 0);
  sqlite3_free(cur);
  return SQLITE_OK;
}

static int tokenizers_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str,
                             int argc, sqlite3_value **argv)
{
  (void)idx_num;
  (void)idx_str;
  (void)argc;
  (void)argv;
  go_to((tokenizers_cursor *)base, 0);
  return SQLITE_OK;
}

static int tokenizers_next(sqlite3_vtab_cursor *base)
{
  tokenizers_cursor *cur = (tokenizers_cursor *)base;
  go_to(cur, cur->at + 1);
  return SQLITE_OK;
}

static int tokenizers_eof(sqlite3_vtab_cursor *base)
{
  return bpe_builtin_name(((tokenizers_cursor *)base)->at) == NULL;
}

/* C4 */
static int need_model(tokenizers_cursor *cur, conn *c, failure *f)
{
  if (cur->model) return SQLITE_OK;
  const tokenizer *t = tokenizer_loaded(c, cur->at);
  if (t) {
    cur->model = t->model;
    return SQLITE_OK;
  }
  bpe_error e = {0};
  const bpe_status st = bpe_builtin_load(&c->alloc, cur->at, &e, &cur->own);
  if (st != BPE_OK) return fail_status(f, st, &e);
  cur->model = cur->own;
  return SQLITE_OK;
}

static void special_tokens(const bpe_model *m, bpe_buffer *b)
{
  bpe_info info;
  bool first = true;
  bpe_model_info(m, &info);
  bpe_buffer_append(b, "{", 1);
  for (size_t i = 0; i < info.entry_count; i++) {
    const bpe_token token = bpe_model_token(m, i);
    if (token.kind == BPE_TOKEN) continue;
    if (!first) bpe_buffer_append(b, ",", 1);
    first = false;
    json_append_string(b, token.bytes, token.len);
    bpe_buffer_append(b, ":", 1);
    bpe_buffer_append_decimal(b, token.id);
  }
  bpe_buffer_append(b, "}", 1);
}

static void digest(const bpe_model *m, sqlite3_context *ctx)
{
  static const char digits[] = "0123456789abcdef";
  uint8_t sum[32];
  char hex[64];
  bpe_model_digest(m, sum);
  for (size_t i = 0; i < sizeof sum; i++) {
    hex[2 * i] = digits[sum[i] >> 4];
    hex[2 * i + 1] = digits[sum[i] & 15];
  }
  sqlite3_result_text(ctx, hex, (int)sizeof hex, SQLITE_TRANSIENT);
}

/* The columns that are JSON. */
static int json_column(const tokenizers_cursor *cur, conn *c, sqlite3_context *ctx, int column,
                       failure *f)
{
  bpe_info info;
  bpe_buffer b;
  bpe_model_info(cur->model, &info);
  bpe_buffer_init(&b, &c->alloc, (size_t)sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, -1));
  if (column == SPECIAL_TOKENS) special_tokens(cur->model, &b);
  else if (column == BOS) json_append_ids(&b, info.bos, info.n_bos);
  else json_append_ids(&b, info.eos, info.n_eos);
  if (b.status != BPE_OK) {
    fail_code(f, b.status == BPE_NOMEM ? SQLITE_NOMEM : SQLITE_TOOBIG);
    bpe_buffer_clear(&b);
    return f->rc;
  }
  sqlite3_result_text64(ctx, (const char *)b.bytes, b.len, sqlite3_free, SQLITE_UTF8);
  return SQLITE_OK;
}

static int model_column(tokenizers_cursor *cur, conn *c, sqlite3_context *ctx, int column,
                        failure *f)
{
  bpe_info info;
  if (need_model(cur, c, f) != SQLITE_OK) return f->rc;
  bpe_model_info(cur->model, &info);
  switch (column) {
  case VOCAB_SIZE: sqlite3_result_int64(ctx, info.vocab_size); break;
  case TOKEN_COUNT: sqlite3_result_int64(ctx, (sqlite3_int64)info.token_count); break;
  case MERGE_COUNT: sqlite3_result_int64(ctx, (sqlite3_int64)info.merge_count); break;
  case PATTERN:
    sqlite3_result_text64(ctx, info.pattern, info.pattern_len, SQLITE_TRANSIENT, SQLITE_UTF8);
    break;
  case DIGEST: digest(cur->model, ctx); break;
  default: return json_column(cur, c, ctx, column, f);
  }
  return SQLITE_OK;
}

static int tokenizers_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column)
{
  tokenizers_cursor *cur = (tokenizers_cursor *)base;
  failure f = table_failure(base->pVtab);
  switch (column) {
  case NAME: sqlite3_result_text(ctx, bpe_builtin_name(cur->at), -1, SQLITE_STATIC); break;
  case SCHEMA: sqlite3_result_text(ctx, "builtin", -1, SQLITE_STATIC); break;
  case SEALED: sqlite3_result_int(ctx, 1); break;
  case STATS:
  case SOURCE:
  case MERGES:
  case OPTIONS: break;
  default: model_column(cur, ((table *)base->pVtab)->c, ctx, column, &f); break;
  }
  return f.rc == SQLITE_OK ? SQLITE_OK : failure_to_vtab(&f, base->pVtab);
}

static int tokenizers_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid)
{
  *rowid = ((tokenizers_cursor *)base)->at + 1;
  return SQLITE_OK;
}

const sqlite3_module tokenizers_module = {
    .iVersion = 0,
    .xCreate = NULL, /* eponymous only */
    .xConnect = tokenizers_connect,
    .xBestIndex = tokenizers_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = tokenizers_open,
    .xClose = tokenizers_close,
    .xFilter = tokenizers_filter,
    .xNext = tokenizers_next,
    .xEof = tokenizers_eof,
    .xColumn = tokenizers_column,
    .xRowid = tokenizers_rowid,
};
