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

enum { SEQ, PIECE, TEXT, START, STOP, INPUT, TOKENIZER, OPTIONS };
static const char schema[] =
    "CREATE TABLE x(seq INTEGER, piece BLOB, text TEXT, start INTEGER, stop INTEGER,"
    " input HIDDEN, tokenizer HIDDEN, options HIDDEN)";

static const arguments args = {.first_column = INPUT,
                               .n = 3,
                               .n_required = 1,
                               .tokenizer = 1,
                               .options = 2,
                               .who = FOR_PIECES};

static const double scan_cost = 1000, scan_rows = 100;

typedef struct pieces_cursor {
  sqlite3_vtab_cursor base;
  scan scan;
  bool eof;
  bpe_piece piece;
  sqlite3_int64 seq;
} pieces_cursor;

static int pieces_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                          sqlite3_vtab **out, char **error) {
  (void)argc;
  (void)argv;
  return table_connect(db, aux, "bpe_pieces", schema, out, error);
}

static int pieces_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  int n_argv;
  const int rc = table_plan(&args, info, &n_argv);
  if (rc != SQLITE_OK) return rc;
  info->orderByConsumed = table_ordered_by(info, SEQ);
  info->estimatedCost = table_cost(&args, info, scan_cost);
  info->estimatedRows = (sqlite3_int64)scan_rows;
  return SQLITE_OK;
}

static int pieces_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out) {
  (void)vtab;
  pieces_cursor *cur = sqlite3_malloc64(sizeof *cur);
  if (!cur) return SQLITE_NOMEM;
  *cur = (pieces_cursor){.eof = true};
  *out = &cur->base;
  return SQLITE_OK;
}

static void reset(pieces_cursor *cur) {
  scan_close(&cur->scan);
  *cur = (pieces_cursor){.base = cur->base, .eof = true};
}

static int pieces_close(sqlite3_vtab_cursor *base) {
  pieces_cursor *cur = (pieces_cursor *)base;
  reset(cur);
  sqlite3_free(cur);
  return SQLITE_OK;
}

static int advance(pieces_cursor *cur) {
  bpe_status st;
  bpe_error e = {0};
  do {
    st = bpe_walk_next(cur->scan.walk, &cur->piece, &e);
  } while (st == BPE_OK && cur->piece.special); /* P1 */
  cur->seq++;
  cur->eof = st != BPE_OK;
  if (st == BPE_OK || st == BPE_DONE) return SQLITE_OK;
  failure f = table_failure(cur->base.pVtab);
  fail_status(&f, st, &e);
  return failure_to_vtab(&f, cur->base.pVtab);
}

static int pieces_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                         sqlite3_value **argv) {
  (void)idx_str;
  (void)argc;
  pieces_cursor *cur = (pieces_cursor *)base;
  failure f = table_failure(base->pVtab);
  bool empty;
  reset(cur);
  if (scan_open(&cur->scan, (table *)base->pVtab, &args, idx_num, argv, &f, &empty) != SQLITE_OK) {
    return failure_to_vtab(&f, base->pVtab);
  }
  if (empty) return SQLITE_OK;
  cur->seq = -1;
  return advance(cur);
}

static int pieces_next(sqlite3_vtab_cursor *base) {
  return advance((pieces_cursor *)base);
}

static int pieces_eof(sqlite3_vtab_cursor *base) {
  return ((pieces_cursor *)base)->eof;
}

static int pieces_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column) {
  const pieces_cursor *cur = (const pieces_cursor *)base;
  const uint8_t *const piece = cur->scan.input.data + cur->piece.start;
  const size_t len = cur->piece.stop - cur->piece.start;
  switch (column) {
  case SEQ: sqlite3_result_int64(ctx, cur->seq); break;
  case PIECE: sqlite3_result_blob64(ctx, piece, len, SQLITE_TRANSIENT); break;
  case TEXT: return result_repaired(ctx, ((table *)base->pVtab)->c, piece, len);
  case START: sqlite3_result_int64(ctx, (sqlite3_int64)cur->piece.start); break;
  case STOP: sqlite3_result_int64(ctx, (sqlite3_int64)cur->piece.stop); break;
  default: scan_result(&cur->scan, &args, ctx, column); break;
  }
  return SQLITE_OK;
}

static int pieces_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = ((pieces_cursor *)base)->seq + 1;
  return SQLITE_OK;
}

const sqlite3_module pieces_module = {
    .iVersion = 0,
    .xCreate = NULL, /* eponymous only */
    .xConnect = pieces_connect,
    .xBestIndex = pieces_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = pieces_open,
    .xClose = pieces_close,
    .xFilter = pieces_filter,
    .xNext = pieces_next,
    .xEof = pieces_eof,
    .xColumn = pieces_column,
    .xRowid = pieces_rowid,
};
