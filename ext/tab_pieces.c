/* tab_pieces.c - the pre-tokens of a text as rows: what the pattern makes of it before merging.
**
**   bpe_pieces(text [, tokenizer [, options]])
**   SELECT seq, text, start, stop FROM bpe_pieces('hello world', 'cl100k_base');
**   0|hello|0|5
**   1| world|5|11
**
** (P1) The pieces tile the text in order. Special tokens that the options allow, and added tokens,
**      are no pieces and are left out; they are the only gaps.
** (P2) {"pattern": name} or {"regex": text} replaces the tokenizer's pattern for this scan.
** (P3) piece is the bytes, text the same as TEXT with U+FFFD where they are not UTF-8.
**
** The cursor pulls piece after piece, so LIMIT stops the work.
*/
#include "ext.h"

enum { SEQ, PIECE, TEXT, START, STOP, INPUT };

typedef struct pieces_cursor {
  cursor base;
  bpe_walk *walk; /* owned */
  bpe_piece piece;
} pieces_cursor;

static void pieces_start(cursor *base, int idx_num, sqlite3_value *key, failure *f) {
  (void)idx_num;
  (void)key;
  cursor_walk(base, &((pieces_cursor *)base)->walk, f);
}

static void pieces_next(cursor *base, failure *f) {
  pieces_cursor *cur = (pieces_cursor *)base;
  bpe_status st;
  bpe_error e = {0};
  do {
    st = bpe_walk_next(cur->walk, &cur->piece, &e);
  } while (st == BPE_OK && cur->piece.special); /* P1 */
  cursor_status(base, st, &e, f);
}

static int pieces_column(cursor *base, sqlite3_context *ctx, int column) {
  const pieces_cursor *cur = (const pieces_cursor *)base;
  const uint8_t *const piece = base->input.data + cur->piece.start;
  const size_t len = cur->piece.stop - cur->piece.start;
  switch (column) {
  case SEQ: sqlite3_result_int64(ctx, base->row); break;
  case PIECE: sqlite3_result_blob64(ctx, piece, len, SQLITE_TRANSIENT); break;
  case TEXT: return result_repaired(base, ctx, piece, len);
  case START: sqlite3_result_int64(ctx, (sqlite3_int64)cur->piece.start); break;
  case STOP: sqlite3_result_int64(ctx, (sqlite3_int64)cur->piece.stop); break;
  }
  return SQLITE_OK;
}

static void pieces_end(cursor *base) {
  bpe_walk_free(((pieces_cursor *)base)->walk);
}

const table_function pieces_table = {
    .name = "bpe_pieces",
    .schema = "CREATE TABLE x(seq INTEGER, piece BLOB, text TEXT, start INTEGER, stop INTEGER,"
              " input HIDDEN, tokenizer HIDDEN, options HIDDEN)",
    .args = {.first_column = INPUT,
             .n = 3,
             .n_required = 1,
             .tokenizer = 1,
             .options = 2,
             .who = FOR_PIECES,
             .reads_text = true,
             .needs = "a text argument"},
    .order = SEQ,
    .cost = 1000,
    .rows = 100,
    .cursor_size = sizeof(pieces_cursor),
    .start = pieces_start,
    .next = pieces_next,
    .column = pieces_column,
    .end = pieces_end,
};
