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

enum { SEQ, TEXT, TOKENS, START, STOP, INPUT };

typedef struct chunks_cursor {
  cursor base;
  bpe_windows *windows; /* owned; over the input */
  bpe_window window;
} chunks_cursor;

static void chunks_start(cursor *base, int idx_num, sqlite3_value *key, failure *f) {
  (void)idx_num;
  (void)key;
  const call *k = base->call;
  bpe_error e = {0};
  bpe_window_options how = {.overlap = k->opt.overlap, .cut = k->opt.cut};
  if (value_limit(base->args[1], 1, f, &how.most) != SQLITE_OK) return;
  if (how.overlap >= how.most) {
    fail(f, "option overlap must be less than max_tokens: %llu", (unsigned long long)how.overlap);
    return;
  }
  const bpe_status st = bpe_windows_new(k->tok->coder, base->input.data, base->input.len, &k->walk,
                                        &how, &e, &((chunks_cursor *)base)->windows);
  if (st != BPE_OK) fail_status(f, st, &e);
}

static void chunks_next(cursor *base, failure *f) {
  chunks_cursor *cur = (chunks_cursor *)base;
  bpe_error e = {0};
  const bpe_status st = bpe_windows_next(cur->windows, &cur->window, &e);
  if (st == BPE_TOOBIG) fail_text(f, &e); /* C4 */
  else cursor_status(base, st, &e, f);
}

static int chunks_column(cursor *base, sqlite3_context *ctx, int column) {
  const bpe_window *w = &((const chunks_cursor *)base)->window;
  switch (column) {
  case SEQ: sqlite3_result_int64(ctx, base->row); break;
  case TEXT: result_part(ctx, base->args[0], base->input, w->start, w->stop); break;
  case TOKENS: sqlite3_result_int64(ctx, (sqlite3_int64)w->tokens); break;
  case START: sqlite3_result_int64(ctx, (sqlite3_int64)w->start); break;
  case STOP: sqlite3_result_int64(ctx, (sqlite3_int64)w->stop); break;
  }
  return SQLITE_OK;
}

static void chunks_end(cursor *base) {
  bpe_windows_free(((chunks_cursor *)base)->windows);
}

const table_function chunks_table = {
    .name = "bpe_chunks",
    .schema = "CREATE TABLE x(seq INTEGER, text TEXT, tokens INTEGER, start INTEGER, stop INTEGER,"
              " input HIDDEN, max_tokens HIDDEN, tokenizer HIDDEN, options HIDDEN)",
    .args = {.first_column = INPUT,
             .n = 4,
             .n_required = 2,
             .tokenizer = 2,
             .options = 3,
             .who = FOR_CHUNKS,
             .reads_text = true,
             .needs = "a text and a max_tokens argument"},
    .order = SEQ,
    .cost = 1000,
    .rows = 10,
    .cursor_size = sizeof(chunks_cursor),
    .start = chunks_start,
    .next = chunks_next,
    .column = chunks_column,
    .end = chunks_end,
};
