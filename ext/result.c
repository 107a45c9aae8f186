/* result.c - answers that are bytes.
**
** A short answer is written into a buffer that the connection keeps, and SQLite copies it, into
** memory that it keeps as well: a query over rows allocates nothing for each of them. A longer one
** is handed over as it is.
**
**     bpe_buffer b;
**     result_begin(c, &b);
**     ... fill it, or record a failure ...
**     if (result_end(ctx, c, &b, true, &f) != SQLITE_OK) failure_to_context(&f, ctx);
*/
#include "ext.h"

#include <string.h>

enum { KEPT = 1 << 16 }; /* bytes of the buffer that the connection keeps, at most */

void result_begin(conn *c, bpe_buffer *b) {
  *b = c->kept; /* taken: whoever comes meanwhile gets a fresh one */
  c->kept = (bpe_buffer){0};
  if (b->bytes == NULL) bpe_buffer_init(b, &c->alloc, 0);
  b->limit = (size_t)sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, -1);
}

static void drop(conn *c, bpe_buffer *b) {
  if (b->cap <= KEPT && c->kept.bytes == NULL && b->bytes != NULL) {
    b->len = 0;
    b->status = BPE_OK;
    c->kept = *b;
  } else {
    bpe_buffer_clear(b);
  }
}

/* SQLite copies a text that does not end with a NUL as soon as it is a result, which of a large one
** takes a while and twice the memory. So it gets one, and is told by a length of -1, which it
** finds out itself again; where the text has a NUL inside, its length must be said. */
static void give_text(sqlite3_context *ctx, bpe_buffer *b) {
  uint8_t *end = bpe_buffer_reserve(b, 1);
  if (end) *end = 0;
  if (end && b->len < INT32_MAX && !memchr(b->bytes, 0, b->len)) {
    sqlite3_result_text(ctx, (const char *)b->bytes, -1, sqlite3_free);
  } else {
    sqlite3_result_text64(ctx, (const char *)b->bytes, b->len, sqlite3_free, SQLITE_UTF8);
  }
}

int result_end(sqlite3_context *ctx, conn *c, bpe_buffer *b, bool as_text, failure *f) {
  if (b->status != BPE_OK) fail_status(f, b->status, NULL);
  if (f->rc != SQLITE_OK) {
    drop(c, b);
  } else if (b->cap <= KEPT) {
    const char *text = b->len == 0 ? "" : (const char *)b->bytes; /* NULL would be a NULL */
    if (as_text) sqlite3_result_text64(ctx, text, b->len, SQLITE_TRANSIENT, SQLITE_UTF8);
    else sqlite3_result_blob64(ctx, text, b->len, SQLITE_TRANSIENT);
    drop(c, b);
  } else if (as_text) {
    give_text(ctx, b);
  } else {
    sqlite3_result_blob64(ctx, b->bytes, b->len, sqlite3_free);
  }
  return f->rc;
}
