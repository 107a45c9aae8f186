/* tab_chunks.c - a text as windows of at most so many tokens.
**
**   bpe_chunks(text, max_tokens [, tokenizer [, options]])
**   SELECT seq, text, tokens FROM bpe_chunks('one two three four five', 2);
**   0|one two|2
**   1| three four|2
**   2| five|1
**
** (C1) Each chunk is the longest that bpe_truncate allows from its start, and `tokens` is what
**      bpe_count says of it with the same options: at most max_tokens. text[start .. stop) of the
**      input, BLOB if that is one. Without overlap the chunks are the input, cut.
** (C2) {"overlap":n}, n < max_tokens: the next chunk begins at the earliest token of this one, but
**      not its first, for which what both have is at most n tokens by itself, BOS and EOS aside.
**      Where a chunk would then have nothing new, it begins at the end of the one before.
** (C3) {"at":"paragraph"} cuts at the last blank line within the limit, if there is one that token
**      and character allow; else as "sentence"; else as "piece", between pieces of bpe_pieces; else
**      as "token". A sentence ends behind . ! ? and an ellipsis, and quotes and brackets closing
**      there, when white space, a CJK character or the end follows, and behind their CJK sisters
**      always. What fits whole is not cut.
** (C4) Where not even one character fits, as most emoji in one token, that is an error that names
**      the byte.
** (C5) One pass; memory is that of one chunk and, where it is longer, of the piece it ends in.
*/
#include "ext.h"

enum { SEQ, TEXT, TOKENS, START, STOP, INPUT, MAX_TOKENS, TOKENIZER, OPTIONS };
static const char schema[] =
    "CREATE TABLE x(seq INTEGER, text TEXT, tokens INTEGER, start INTEGER, stop INTEGER,"
    " input HIDDEN, max_tokens HIDDEN, tokenizer HIDDEN, options HIDDEN)";

static const arguments args = {.first_column = INPUT,
                               .n = 4,
                               .n_required = 2,
                               .tokenizer = 2,
                               .options = 3,
                               .who = FOR_CHUNKS,
                               .no_walk = true,
                               .needs = "a text and a max_tokens argument"};

static const double scan_cost = 1000, scan_rows = 10;

typedef struct chunks_cursor {
  sqlite3_vtab_cursor base;
  scan scan;
  bpe_windows *windows; /* owned; over scan.input */
  bpe_window window;
  sqlite3_int64 seq;
  bool eof;
} chunks_cursor;

static int chunks_connect(sqlite3 *db, void *aux, int argc, const char *const *argv,
                          sqlite3_vtab **out, char **error) {
  (void)argc;
  (void)argv;
  return table_connect(db, aux, "bpe_chunks", schema, out, error);
}

static int chunks_best_index(sqlite3_vtab *vtab, sqlite3_index_info *info) {
  (void)vtab;
  int n_argv;
  const int rc = table_plan(&args, info, &n_argv);
  if (rc != SQLITE_OK) return rc;
  info->orderByConsumed = table_ordered_by(info, SEQ);
  info->estimatedCost = table_cost(&args, info, scan_cost);
  info->estimatedRows = (sqlite3_int64)scan_rows;
  return SQLITE_OK;
}

static int chunks_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out) {
  (void)vtab;
  chunks_cursor *cur = sqlite3_malloc64(sizeof *cur);
  if (!cur) return SQLITE_NOMEM;
  *cur = (chunks_cursor){.eof = true};
  *out = &cur->base;
  return SQLITE_OK;
}

static void reset(chunks_cursor *cur) {
  bpe_windows_free(cur->windows);
  scan_close(&cur->scan);
  *cur = (chunks_cursor){.base = cur->base, .eof = true};
}

static int chunks_close(sqlite3_vtab_cursor *base) {
  reset((chunks_cursor *)base);
  sqlite3_free(base);
  return SQLITE_OK;
}

static int advance(chunks_cursor *cur) {
  bpe_error e = {0};
  const bpe_status st = bpe_windows_next(cur->windows, &cur->window, &e);
  cur->seq++;
  cur->eof = st != BPE_OK;
  if (st == BPE_OK || st == BPE_DONE) return SQLITE_OK;
  failure f = table_failure(cur->base.pVtab);
  if (st == BPE_TOOBIG) fail_text(&f, &e); /* C4 */
  else fail_status(&f, st, &e);
  return failure_to_vtab(&f, cur->base.pVtab);
}

static int start_windows(chunks_cursor *cur, failure *f) {
  const call *k = cur->scan.call;
  bpe_error e = {0};
  bpe_window_options how = {.overlap = k->opt.overlap, .cut = k->opt.cut};
  if (!value_bytes(cur->scan.args[0], &cur->scan.input)) return fail_code(f, SQLITE_NOMEM);
  if (value_limit(cur->scan.args[1], 1, f, &how.most) != SQLITE_OK) return f->rc;
  if (how.overlap >= how.most) {
    return fail(f, "option overlap must be less than max_tokens: %llu",
                (unsigned long long)how.overlap);
  }
  const bpe_status st = bpe_windows_new(k->tok->coder, cur->scan.input.data, cur->scan.input.len,
                                        &k->walk, &how, &e, &cur->windows);
  return st == BPE_OK ? SQLITE_OK : fail_status(f, st, &e);
}

static int chunks_filter(sqlite3_vtab_cursor *base, int idx_num, const char *idx_str, int argc,
                         sqlite3_value **argv) {
  (void)idx_str;
  (void)argc;
  chunks_cursor *cur = (chunks_cursor *)base;
  failure f = table_failure(base->pVtab);
  bool empty;
  reset(cur);
  if (scan_open(&cur->scan, (table *)base->pVtab, &args, idx_num, argv, &f, &empty) != SQLITE_OK) {
    return failure_to_vtab(&f, base->pVtab);
  }
  if (empty) return SQLITE_OK;
  if (start_windows(cur, &f) != SQLITE_OK) return failure_to_vtab(&f, base->pVtab);
  cur->seq = -1;
  return advance(cur);
}

static int chunks_next(sqlite3_vtab_cursor *base) {
  return advance((chunks_cursor *)base);
}

static int chunks_eof(sqlite3_vtab_cursor *base) {
  return ((chunks_cursor *)base)->eof;
}

static int chunks_column(sqlite3_vtab_cursor *base, sqlite3_context *ctx, int column) {
  const chunks_cursor *cur = (chunks_cursor *)base;
  const bpe_window *w = &cur->window;
  switch (column) {
  case SEQ: sqlite3_result_int64(ctx, cur->seq); break;
  case TEXT: result_part(ctx, cur->scan.args[0], cur->scan.input, w->start, w->stop); break;
  case TOKENS: sqlite3_result_int64(ctx, (sqlite3_int64)w->tokens); break;
  case START: sqlite3_result_int64(ctx, (sqlite3_int64)w->start); break;
  case STOP: sqlite3_result_int64(ctx, (sqlite3_int64)w->stop); break;
  default: scan_result(&cur->scan, &args, ctx, column); break;
  }
  return SQLITE_OK;
}

static int chunks_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *rowid) {
  *rowid = ((chunks_cursor *)base)->seq + 1;
  return SQLITE_OK;
}

const sqlite3_module chunks_module = {
    .iVersion = 0,
    .xCreate = NULL, /* eponymous only */
    .xConnect = chunks_connect,
    .xBestIndex = chunks_best_index,
    .xDisconnect = table_disconnect,
    .xOpen = chunks_open,
    .xClose = chunks_close,
    .xFilter = chunks_filter,
    .xNext = chunks_next,
    .xEof = chunks_eof,
    .xColumn = chunks_column,
    .xRowid = chunks_rowid,
};
