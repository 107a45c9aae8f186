/* result.c - answers that are bytes.
**
** A short answer is written into a buffer that the connection keeps, and SQLite copies it, into
** memory that it keeps as well: a query over rows allocates nothing for each of them. A longer one
** is handed over as it is.
**
**     bpe_buffer b;
**     result_begin(c, &b);            ... fill it ...
**     if (failed) result_drop(c, &b);
**     else result_give(ctx, c, &b, true);
*/
#include "ext.h"

enum { KEPT = 1 << 16 }; /* bytes of the buffer that the connection keeps, at most */

void result_begin(conn *c, bpe_buffer *b) {
  *b = c->kept; /* taken: whoever comes meanwhile gets a fresh one */
  c->kept = (bpe_buffer){0};
  if (b->bytes == NULL) bpe_buffer_init(b, &c->alloc, 0);
  b->limit = (size_t)sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, -1);
}

void result_drop(conn *c, bpe_buffer *b) {
  if (b->cap <= KEPT && c->kept.bytes == NULL && b->bytes != NULL) {
    b->len = 0;
    b->status = BPE_OK;
    c->kept = *b;
  } else {
    bpe_buffer_clear(b);
  }
}

void result_give(sqlite3_context *ctx, conn *c, bpe_buffer *b, bool as_text) {
  const bool kept = b->cap <= KEPT;
  const char *text = b->len == 0 ? "" : (const char *)b->bytes; /* NULL would be a NULL */
  void (*const how)(void *) = b->len == 0 ? SQLITE_STATIC : kept ? SQLITE_TRANSIENT : sqlite3_free;
  if (as_text) sqlite3_result_text64(ctx, text, b->len, how, SQLITE_UTF8);
  else sqlite3_result_blob64(ctx, text, b->len, how);
  if (b->len == 0 || kept) result_drop(c, b);
}
