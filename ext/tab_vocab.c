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

/* idxNum: those of the arguments, and the one key that is looked up. */
enum { BY_TOKEN = 1 << MAX_ARGUMENTS, BY_ID = 2 << MAX_ARGUMENTS, BY_TEXT = 4 << MAX_ARGUMENTS };

typedef struct vocab_cursor {
  cursor base;   /* row: number of the entry */
  size_t end;    /* of the entries that may be rows */
  uint8_t *only; /* owned; NULL, or the bytes that a row must have */
  size_t only_len;
} vocab_cursor;

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

static void vocab_plan(sqlite3_index_info *info, int n_argv) {
  static const double lookup_cost = 10, wrong_cost = 1e15;
  static const struct {
    int column, bit;
    bool binary;
  } keys[] = {{TOKEN, BY_TOKEN, true}, {ID, BY_ID, false}, {TEXT, BY_TEXT, true}};
  int key = -1;
  bool hopeless = false, wrong = false;
  for (size_t i = 0; i < sizeof keys / sizeof keys[0] && key < 0; i++) {
    key = find_key(info, keys[i].column, keys[i].binary, &hopeless);
    if (keys[i].column == TOKEN) wrong = hopeless;
    if (key < 0) continue;
    info->idxNum |= keys[i].bit;
    info->aConstraintUsage[key].argvIndex = n_argv + 1;
    info->aConstraintUsage[key].omit = keys[i].column == TOKEN; /* V3 */
    info->estimatedCost = lookup_cost;
    info->estimatedRows = 1;
  }
  if (wrong) info->estimatedCost = wrong_cost;
}

static void narrow_to_id(vocab_cursor *cur, sqlite3_value *key) {
  /* The column's affinity applies to the key before they are compared: '15' and 15.0 are 15. */
  const int type = sqlite3_value_numeric_type(key);
  const sqlite3_int64 id = sqlite3_value_int64(key);
  const bpe_model *m = cur->base.call->tok->model;
  const size_t end = cur->end;
  cur->end = 0;
  if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) return;
  if (type == SQLITE_FLOAT && sqlite3_value_double(key) != (double)id) return;
  if (id < 0 || id >= (sqlite3_int64)BPE_NONE) return;
  cur->end = bpe_model_find_id(m, (uint32_t)id);
  cur->base.row = (sqlite3_int64)cur->end;
  while (cur->end < end && bpe_model_token(m, cur->end).id == (uint32_t)id) cur->end++;
}

static int narrow_to_bytes(vocab_cursor *cur, bytes key, failure *f) {
  tokenizer *t = cur->base.call->tok;
  const size_t at = bpe_model_find_bytes(t->model, key.data, key.len);
  bool once = true;
  if (at < cur->end && tokenizer_spells_once(t, f, &once) != SQLITE_OK) return f->rc;
  if (once) {
    cur->base.row = (sqlite3_int64)at;
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

static void vocab_start(cursor *base, int idx_num, sqlite3_value *key, failure *f) {
  vocab_cursor *cur = (vocab_cursor *)base;
  bpe_info info;
  bpe_model_info(base->call->tok->model, &info);
  cur->end = info.entry_count;
  if (key) narrow(cur, idx_num, key, f);
}

static bpe_token current(const cursor *base) {
  return bpe_model_token(base->call->tok->model, (size_t)base->row);
}

/* The first row from the entry on that has the bytes. */
static void vocab_next(cursor *base, failure *f) {
  const vocab_cursor *cur = (const vocab_cursor *)base;
  work w = {.f = f};
  for (; cur->only && (size_t)base->row < cur->end; base->row++) {
    const bpe_token t = current(base);
    if (t.len == cur->only_len && memcmp(t.bytes, cur->only, t.len) == 0) break;
    if (work_stopped(&w, 4)) return;
  }
  base->eof = (size_t)base->row >= cur->end;
}

static int vocab_column(cursor *base, sqlite3_context *ctx, int column) {
  const bpe_token token = current(base);
  switch (column) {
  case ID: sqlite3_result_int64(ctx, token.id); break;
  case TOKEN: sqlite3_result_blob64(ctx, token.bytes, token.len, SQLITE_TRANSIENT); break;
  case TEXT: return result_repaired(base, ctx, token.bytes, token.len);
  case SPECIAL: sqlite3_result_int(ctx, token.kind != BPE_TOKEN); break;
  case LENGTH: sqlite3_result_int64(ctx, (sqlite3_int64)token.len); break;
  }
  return SQLITE_OK;
}

static void vocab_end(cursor *base) {
  sqlite3_free(((vocab_cursor *)base)->only);
}

const table_function vocab_table = {
    .name = "bpe_vocab",
    .schema = "CREATE TABLE x(id INTEGER, token BLOB, text TEXT, special INTEGER, length INTEGER,"
              " tokenizer HIDDEN)",
    .args = {.first_column = TOKENIZER, .n = 1, .options = -1},
    .order = ID,
    .cost = 1e6,
    .rows = 100000,
    .cursor_size = sizeof(vocab_cursor),
    .plan = vocab_plan,
    .start = vocab_start,
    .next = vocab_next,
    .column = vocab_column,
    .end = vocab_end,
};
