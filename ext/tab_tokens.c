/* tab_tokens.c - the tokens of a text as rows.
**
**   bpe_tokens(text [, tokenizer [, options]])
**   SELECT seq, id, text, start, stop FROM bpe_tokens('hello world', 'cl100k_base');
**   0|15339|hello|0|5
**   1|1917| world|5|11
**
** (K1) One row per id of bpe_encode, in order; start and stop are byte offsets and tile the text.
**      Where a tokenizer changes text before it splits it, they are those of the text as given.
** (K2) char_start is the index of the character that holds the token's first byte, char_stop one
**      past the one that holds its last; so tokens inside one character share it. A maximal
**      malformed part counts as one character.
** (K3) piece counts the pre-tokens, as bpe_pieces does; NULL where special = 1, which is for
**      special and added tokens and, with start = stop, the BOS and EOS tokens of a document.
**
** The cursor pulls: it holds the text, one piece's ids, and nothing of what comes after, so LIMIT
** stops the work. It copies the ids, because another cursor may use the same coder between rows.
*/
#include "ext.h"

enum { SEQ, ID, TOKEN, TEXT, START, STOP, CHAR_START, CHAR_STOP, PIECE, SPECIAL, INPUT };

/* idxNum: those of the arguments, and */
enum { WANTS_CHARS = 1 << MAX_ARGUMENTS };

typedef struct tokens_cursor {
  cursor base;
  bpe_walk *walk; /* owned; over the input */
  bool wants_chars;
  uint32_t *ids; /* owned copy of the piece's ids */
  size_t *stops; /* owned copy of its stops; NULL: it has none */
  size_t n_ids, ids_cap, at;
  bpe_piece piece;            /* its ids and stops are stale */
  sqlite3_int64 piece_number; /* of the latest that is not special */
  size_t start, stop;
  bpe_token token;
  size_t char_from, char_to; /* bytes of the character the count has reached */
  sqlite3_int64 char_index;  /* its index */
  sqlite3_int64 char_start, char_stop;
} tokens_cursor;

static void tokens_plan(sqlite3_index_info *info, int n_argv) {
  (void)n_argv;
  if (table_uses(info, CHAR_START, CHAR_STOP)) info->idxNum |= WANTS_CHARS;
}

static void tokens_start(cursor *base, int idx_num, sqlite3_value *key, failure *f) {
  (void)key;
  tokens_cursor *cur = (tokens_cursor *)base;
  cur->wants_chars = idx_num & WANTS_CHARS;
  cur->piece_number = -1;
  cursor_walk(base, &cur->walk, f);
}

static int copy_ids(tokens_cursor *cur, failure *f) {
  const size_t n = cur->piece.n_ids;
  if (n > cur->ids_cap) {
    uint32_t *ids = sqlite3_realloc64(cur->ids, (sqlite3_uint64)n * sizeof *ids);
    if (!ids) return fail_code(f, SQLITE_NOMEM);
    cur->ids = ids;
    cur->ids_cap = n;
  }
  work w = {.f = f};
  for (size_t i = 0; i < n && !work_stopped(&w, 1); i++) cur->ids[i] = cur->piece.ids[i];
  sqlite3_free(cur->stops);
  cur->stops = NULL;
  if (n > 0 && cur->piece.stops) {
    cur->stops = sqlite3_malloc64((sqlite3_uint64)n * sizeof *cur->stops);
    if (!cur->stops) return fail_code(f, SQLITE_NOMEM);
    for (size_t i = 0; i < n && !work_stopped(&w, 1); i++) cur->stops[i] = cur->piece.stops[i];
  }
  if (f->rc != SQLITE_OK) return f->rc;
  cur->n_ids = n;
  cur->at = 0;
  cur->stop = cur->piece.start;
  if (!cur->piece.special) cur->piece_number++;
  return SQLITE_OK;
}

/* The next piece that has ids, or eof. */
static void next_piece(tokens_cursor *cur, failure *f) {
  do {
    bpe_error e = {0};
    const bpe_status st = bpe_walk_next(cur->walk, &cur->piece, &e);
    cursor_status(&cur->base, st, &e, f);
    if (st != BPE_OK || copy_ids(cur, f) != SQLITE_OK) return;
  } while (cur->n_ids == 0);
}

/* The index of the character that holds byte `at`, which never decreases from call to call; at
** the end of the text, the number of characters. */
static sqlite3_int64 char_holding(tokens_cursor *cur, size_t at, work *w) {
  while (cur->char_to <= at && cur->char_from < cur->base.input.len && !work_stopped(w, 4)) {
    if (cur->char_to > 0) cur->char_index++;
    cur->char_from = cur->char_to;
    if (cur->char_from == cur->base.input.len) break;
    cur->char_to +=
        bpe_utf8_next(cur->base.input.data + cur->char_from, cur->base.input.len - cur->char_from);
  }
  return cur->char_index;
}

/* Fills what the row of the current id needs. */
static void describe(tokens_cursor *cur, failure *f) {
  work w = {.f = f};
  const bpe_model *m = cur->base.call->tok->model;
  cur->token = bpe_model_token(m, bpe_model_find_id(m, cur->ids[cur->at]));
  cur->start = cur->stop;
  if (cur->stops) cur->stop = cur->stops[cur->at];
  else cur->stop = cur->piece.special ? cur->piece.stop : cur->start + cur->token.len;
  if (!cur->wants_chars) return;
  cur->char_start = char_holding(cur, cur->start, &w);
  cur->char_stop = cur->char_start;
  if (cur->stop > cur->start) cur->char_stop = char_holding(cur, cur->stop - 1, &w) + 1;
}

static void tokens_next(cursor *base, failure *f) {
  tokens_cursor *cur = (tokens_cursor *)base;
  cur->at++;
  if (cur->at >= cur->n_ids) next_piece(cur, f);
  if (f->rc == SQLITE_OK && !base->eof) describe(cur, f);
}

static int tokens_column(cursor *base, sqlite3_context *ctx, int column) {
  const tokens_cursor *cur = (const tokens_cursor *)base;
  const bpe_token *token = &cur->token;
  switch (column) {
  case SEQ: sqlite3_result_int64(ctx, base->row); break;
  case ID: sqlite3_result_int64(ctx, cur->ids[cur->at]); break;
  case TOKEN: sqlite3_result_blob64(ctx, token->bytes, token->len, SQLITE_TRANSIENT); break;
  case TEXT: return result_repaired(base, ctx, token->bytes, token->len);
  case START: sqlite3_result_int64(ctx, (sqlite3_int64)cur->start); break;
  case STOP: sqlite3_result_int64(ctx, (sqlite3_int64)cur->stop); break;
  case CHAR_START: sqlite3_result_int64(ctx, cur->char_start); break;
  case CHAR_STOP: sqlite3_result_int64(ctx, cur->char_stop); break;
  case PIECE:
    if (!cur->piece.special) sqlite3_result_int64(ctx, cur->piece_number);
    break;
  case SPECIAL: sqlite3_result_int(ctx, cur->piece.special); break;
  }
  return SQLITE_OK;
}

static void tokens_end(cursor *base) {
  tokens_cursor *cur = (tokens_cursor *)base;
  bpe_walk_free(cur->walk);
  sqlite3_free(cur->ids);
  sqlite3_free(cur->stops);
}

const table_function tokens_table = {
    .name = "bpe_tokens",
    .schema = "CREATE TABLE x(seq INTEGER, id INTEGER, token BLOB, text TEXT, start INTEGER,"
              " stop INTEGER, char_start INTEGER, char_stop INTEGER, piece INTEGER,"
              " special INTEGER, input HIDDEN, tokenizer HIDDEN, options HIDDEN)",
    .args = {.first_column = INPUT,
             .n = 3,
             .n_required = 1,
             .tokenizer = 1,
             .options = 2,
             .who = FOR_TOKENS,
             .reads_text = true,
             .needs = "a text argument"},
    .order = SEQ,
    .cost = 1000,
    .rows = 100,
    .cursor_size = sizeof(tokens_cursor),
    .plan = tokens_plan,
    .start = tokens_start,
    .next = tokens_next,
    .column = tokens_column,
    .end = tokens_end,
};
