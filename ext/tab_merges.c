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

typedef struct merges_cursor {
  cursor base;
  size_t n;
} merges_cursor;

static void merges_start(cursor *base, int idx_num, sqlite3_value *key, failure *f) {
  (void)idx_num;
  (void)key;
  (void)f;
  bpe_info info;
  bpe_model_info(base->call->tok->model, &info);
  ((merges_cursor *)base)->n = info.merge_count;
}

static void merges_next(cursor *base, failure *f) {
  (void)f;
  base->eof = (size_t)base->row >= ((merges_cursor *)base)->n;
}

static int merges_column(cursor *base, sqlite3_context *ctx, int column) {
  const bpe_model *m = base->call->tok->model;
  const bpe_merge merge = bpe_model_merge(m, (size_t)base->row);
  const bpe_token token = bpe_model_token(m, bpe_model_find_id(m, merge.id));
  switch (column) {
  case RANK: sqlite3_result_int64(ctx, merge.rank); break;
  case LEFT: sqlite3_result_int64(ctx, merge.left); break;
  case RIGHT: sqlite3_result_int64(ctx, merge.right); break;
  case ID: sqlite3_result_int64(ctx, merge.id); break;
  case TOKEN: sqlite3_result_blob64(ctx, token.bytes, token.len, SQLITE_TRANSIENT); break;
  case TEXT: return result_repaired(base, ctx, token.bytes, token.len);
  case COUNT:
    if (merge.count > 0) sqlite3_result_int64(ctx, (sqlite3_int64)merge.count);
    break;
  }
  return SQLITE_OK;
}

const table_function merges_table = {
    .name = "bpe_merges",
    .schema = "CREATE TABLE x(rank INTEGER, \"left\" INTEGER, \"right\" INTEGER, id INTEGER,"
              " token BLOB, text TEXT, count INTEGER, tokenizer HIDDEN)",
    .args = {.first_column = TOKENIZER, .n = 1, .options = -1, .who = FOR_MERGES},
    .order = RANK,
    .cost = 1e6,
    .rows = 100000,
    .cursor_size = sizeof(merges_cursor),
    .start = merges_start,
    .next = merges_next,
    .column = merges_column,
};
