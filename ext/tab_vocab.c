/* tab_vocab.c - the tokens of a tokenizer as rows.
**
**   bpe_vocab([tokenizer])
**   SELECT id, text FROM bpe_vocab('cl100k_base') WHERE token = 'hello';      15339|hello
**
** (V1) One row per entry in order of id; two special tokens that share an id are two rows.
** (V2) text is the bytes as TEXT, U+FFFD where they are not UTF-8; length is in bytes.
** (V3) id = ?, token = ? and text = ? are lookups. token = ? takes TEXT as well as BLOB, although
**      SQL holds the two for unequal: the constraint is answered here and not checked again. So a
**      plan in which it cannot be answered here is made to look expensive.
** (V4) text = ? is a lookup for text without U+FFFD, where it means the token of these bytes, and
**      only with the BINARY collation; else SQLite compares row by row.
**
** A key finds one entry; where the vocabulary spells two entries alike, the scan finds all.
*/
#include "ext.h"

#include <string.h>

enum { ID, TOKEN, TEXT, SPECIAL, LENGTH, TOKENIZER };
static const char schema[] =
    "CREATE TABLE x(id INTEGER, token BLOB, text TEXT, special INTEGER, length INTEGER,"
    " tokenizer HIDDEN)";

static const arguments args = {
    .first_column = TOKENIZER, .n = 1, .n_required = 0, .tokenizer = 0, .options = -1, .who = 0};

/* idxNum: table_plan's bits, and the one key that is looked up. */
enum { BY_TOKEN = 1 << MAX_ARGUMENTS, BY_ID = 2 << MAX_ARGUMENTS, BY_TEXT = 4 << MAX_ARGUMENTS };

static const double lookup_cost = 10, scan_cost = 1e6, wrong_cost = 1e15;
static const sqlite3_int64 lookup_rows = 1, scan_rows = 100000;

typedef struct vocab_cursor {
  sqlite3_vtab_cursor base;
  scan scan;
  size_t at, end; /* entries still to come, the current one included */
  uint8_t *only;  /* owned; NULL, or the bytes that a row must have */
  size_t only_len;
} vocab_cursor;

static int vocab_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                         sqlite3_vtab **out, char **error) {
  (void)argc;
  (void)argv;
  return table_connect(db, aux, "bpe_vocab", schema, out, error);
}

/* The first usable equality on the column, or -1; *hopeless if there are only unusable ones. */
static int find_key(sqlite3_index_info *info, int column, bool binary, bool *hopeless) {
  *hopeless = false;
  for (int i = 0; i < info->nConstraint; i++) {
    const struct sqlite3_index_constraint *constraint = &info->aConstraint[i];
    if (constraint->iColumn != column || constraint->op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    if (binary && strcmp(sqlite3_vtab_collation(info, i), "BINARY") != 0) continue;
    if (constraint->usable) return i;
    *hopeless = true;
  }
  return -1;
}

static int vocab_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  static const struct {
    int column, bit;
    bool binary;
  } keys[] = {{TOKEN, BY_TOKEN, true}, {ID, BY_ID, false}, {TEXT, BY_TEXT, true}};
  int n_argv, key = -1;
  bool hopeless = false, wrong = false;
  const int rc = table_plan(&args, info, &n_argv);
  if (rc != SQLITE_OK) return rc;
  for (size_t i = 0; i < sizeof keys / sizeof keys[0] && key < 0; i++) {
    key = find_key(info, keys[i].column, keys[i].binary, &hopeless);
    if (keys[i].column == TOKEN) wrong = hopeless;
    if (key < 0) continue;
    info->idxNum |= keys[i].bit;
    info->aConstraintUsage[key].argvIndex = n_argv + 1;
    info->aConstraintUsage[key].omit = keys[i].column == TOKEN; /* V3 */
  }
  info->orderByConsumed = table_ordered_by(info, ID);
  info->estimatedCost = wrong ? wrong_cost : key >= 0 ? lookup_cost : scan_cost;
  info->estimatedRows = key >= 0 ? lookup_rows : scan_rows;
  return SQLITE_OK;
}

static int vocab_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out) {
  (void)vtab;
  vocab_cursor *cur = sqlite3_malloc64(sizeof *cur);
  if (!cur) return SQLITE_NOMEM;
  *cur = (vocab_cursor){.at = 0};
  *out = &cur->base;
  return SQLITE_OK;
}

static void reset(vocab_cursor *cur) {
  scan_close(&cur->scan);
  sqlite3_free(cur->only);
  *cur = (vocab_cursor){.base = cur->base};
}

static int vocab_close(sqlite3_vtab_cursor *base) {
  vocab_cursor *cur = (vocab_cursor *)base;
  reset(cur);
  sqlite3_free(cur);
  return SQLITE_OK;
}

static bpe_token current(const vocab_cursor *cur) {
  return bpe_model_token(cur->scan.call->tok->model, cur->at);
}

/* Goes on from entry `at`, which may do, to the first that does. */
static int settle(vocab_cursor *cur) {
  failure f = table_failure(cur->base.pVtab);
  work w = {.f = &f};
  for (; cur->only && cur->at < cur->end; cur->at++) {
    const bpe_token t = current(cur);
    if (t.len == cur->only_len && memcmp(t.bytes, cur->only, t.len) == 0) break;
    if (work_stopped(&w, 4)) return failure_to_vtab(&f, cur->base.pVtab);
  }
  return SQLITE_OK;
}

static void narrow_to_id(vocab_cursor *cur, sqlite3_value *key) {
  /* The column's affinity applies to the key before they are compared: '15' and 15.0 are 15. */
  const int type = sqlite3_value_numeric_type(key);
  const sqlite3_int64 id = sqlite3_value_int64(key);
  const bpe_model *m = cur->scan.call->tok->model;
  const size_t end = cur->end;
  cur->end = 0;
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;
  if (type == SQLITE_FLOAT && sqlite3_value_double(key) != (double)id) return;
  if (id < 0 || id >= (sqlite3_int64)BPE_NONE) return;
  cur->at = bpe_model_find_id(m, (uint32_t)id);
  cur->end = cur->at;
  while (cur->end < end && bpe_model_token(m, cur->end).id == (uint32_t)id) cur->end++;
}

static int narrow_to_bytes(vocab_cursor *cur, bytes key, failure *f) {
  tokenizer *t = cur->scan.call->tok;
  const size_t at = bpe_model_find_bytes(t->model, key.data, key.len);
  bool once = true;
  if (at < cur->end && tokenizer_spells_once(t, f, &once) != SQLITE_OK) return f->rc;
  if (once) {
    cur->at = at;
    cur->end = at < cur->end ? at + 1 : at;
    return SQLITE_OK;
  }
  cur->only = sqlite3_malloc64((sqlite3_uint64)key.len + 1);
  if (!cur->only) return fail_code(f, SQLITE_NOMEM);
  memcpy(cur->only, key.data, key.len);
  cur->only_len = key.len;
  return SQLITE_OK;
}

static bool has_replacement(bytes text) {
  for (size_t i = 0; i + 3 <= text.len; i++) {
    if (memcmp(text.data + i, "\xEF\xBF\xBD", 3) == 0) return true;
  }
  return false;
}

static int narrow(vocab_cursor *cur, int idx_num, sqlite3_value *key, failure *f) {
  bytes text;
  const int type = sqlite3_value_type(key);
  const bool other = idx_num & BY_TOKEN && type != SQLITE_TEXT && type != SQLITE_BLOB;
  if (type == SQLITE_NULL || other) {
    cur->end = 0;
  } else if (idx_num & BY_ID) {
    narrow_to_id(cur, key);
  } else if (!value_bytes(key, &text)) {
    return fail_code(f, SQLITE_NOMEM);
  } else if (idx_num & BY_TOKEN ||
             (bpe_utf8_valid(text.data, text.len) && !has_replacement(text))) {
    return narrow_to_bytes(cur, text, f);
  } /* V4: else all rows, and SQLite compares */
  return SQLITE_OK;
}

static int vocab_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                        sqlite3_value **argv) {
  (void)idx_str;
  vocab_cursor *cur = (vocab_cursor *)base;
  failure f = table_failure(base->pVtab);
  bool empty;
  bpe_info info;
  reset(cur);
  if (scan_open(&cur->scan, (table *)base->pVtab, &args, idx_num, argv, &f, &empty) != SQLITE_OK) {
    return failure_to_vtab(&f, base->pVtab);
  }
  if (empty) return SQLITE_OK;
  bpe_model_info(cur->scan.call->tok->model, &info);
  cur->end = info.entry_count;
  if (idx_num & (BY_TOKEN | BY_ID | BY_TEXT)) narrow(cur, idx_num, argv[argc - 1], &f);
  if (f.rc != SQLITE_OK) return failure_to_vtab(&f, base->pVtab);
  return settle(cur);
}

static int vocab_next(sqlite3_vtab_cursor *base) {
  vocab_cursor *cur = (vocab_cursor *)base;
  cur->at++;
  return settle(cur);
}

static int vocab_eof(sqlite3_vtab_cursor *base) {
  const vocab_cursor *cur = (const vocab_cursor *)base;
  return cur->at >= cur->end;
}

static int vocab_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column) {
  const vocab_cursor *cur = (const vocab_cursor *)base;
  const bpe_token token = current(cur);
  switch (column) {
  case ID: sqlite3_result_int64(ctx, token.id); break;
  case TOKEN: sqlite3_result_blob64(ctx, token.bytes, token.len, SQLITE_TRANSIENT); break;
  case TEXT: return result_repaired(ctx, ((table *)base->pVtab)->c, token.bytes, token.len);
  case SPECIAL: sqlite3_result_int(ctx, token.kind != BPE_TOKEN); break;
  case LENGTH: sqlite3_result_int64(ctx, (sqlite3_int64)token.len); break;
  default: scan_result(&cur->scan, &args, ctx, column); break;
  }
  return SQLITE_OK;
}

static int vocab_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = (sqlite3_int64)((vocab_cursor *)base)->at + 1;
  return SQLITE_OK;
}

const sqlite3_module vocab_module = {
    .iVersion = 0,
    .xCreate = NULL, /* eponymous only */
    .xConnect = vocab_connect,
    .xBestIndex = vocab_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = vocab_open,
    .xClose = vocab_close,
    .xFilter = vocab_filter,
    .xNext = vocab_next,
    .xEof = vocab_eof,
    .xColumn = vocab_column,
    .xRowid = vocab_rowid,
};
