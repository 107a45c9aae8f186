/* tab_stream.c - the ids of a text of any size, read part by part from the rows of a statement.
**
**   bpe_stream(sql [, tokenizer [, options]])
**   SELECT count(*) FROM bpe_stream('SELECT body FROM parts ORDER BY n', 'o200k_base');
**
** (M1) The first column of the rows is the text, in their order, cut anywhere, also inside a
**      character or a special token: the ids are those of the whole. NULL parts are skipped.
** (M2) The statement begins with SELECT, VALUES or WITH, is one, reads only, and has no parameters.
**      It is prepared and runs on this connection, and is looked at before it is prepared.
** (M3) Memory is that of a piece and of what its pattern looks at, not of the text.
** (M4) A tokenizer with pattern none, a regex or a normalizer is an error: nothing of such a text
**      is certain before its end.
** (M5) What {"special":"error"} forbids is found when the stream comes to it, behind earlier rows.
** (M6) DIRECTONLY: a schema must not run statements that it carries as text.
** (M7) A statement may stream in its turn, up to MAX_NESTED streams one inside the other: a
**      temporary view may come back to itself through the text, where SQLite does not see it.
*/
#include "ext.h"

#include <string.h>

enum { SEQ, ID, INPUT };
enum { MAX_NESTED = 8 };

typedef struct stream_cursor {
  cursor base;
  sqlite3_stmt *stmt; /* owned; NULL: read to its end */
  bpe_stream *stream; /* owned */
  uint32_t *ids;      /* owned copy of the piece's ids */
  size_t n_ids, ids_cap, at;
} stream_cursor;

/* ---- The statement (M2) -------------------------------------------------------------------- */

/* Past white space and comments; an unended comment ends with the text, as in SQLite. */
static const char *skip_blanks(const char *s) {
  for (;;) {
    s += strspn(s, " \t\n\f\r");
    if (s[0] == '-' && s[1] == '-') {
      s += strcspn(s, "\n");
    } else if (s[0] == '/' && s[1] == '*') {
      const char *end = strstr(s + 2, "*/");
      s = end ? end + 2 : s + strlen(s);
    } else {
      return s;
    }
  }
}

static bool begins_with(const char *s, const char *word) {
  const size_t n = strlen(word);
  const char c = sqlite3_strnicmp(s, word, (int)n) == 0 ? s[n] : 'x';
  return !(c == '_' || c == '$' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z') || (unsigned char)c >= 0x80);
}

/* What SQLite says about the statement, with its code. What a stream inside it said has our name
** already. */
static int statement_failure(const stream_cursor *cur, int rc, failure *f) {
  const conn *c = cursor_conn(&cur->base);
  const size_t n = strlen(f->name);
  if (rc != SQLITE_ERROR) return fail_db(f, c->db, rc);
  const char *text = sqlite3_errmsg(c->db);
  if (strncmp(text, f->name, n) == 0 && text[n] == ':' && text[n + 1] == ' ') text += n + 2;
  return fail(f, "%s", text);
}

static int prepare(stream_cursor *cur, failure *f) {
  sqlite3 *db = cursor_conn(&cur->base)->db;
  sqlite3_value *arg = cur->base.args[0];
  char text[SHOWN_SIZE];
  if (sqlite3_value_type(arg) != SQLITE_TEXT) {
    return fail(f, "the statement must be TEXT, not %s", value_type_name(arg));
  }
  const char *sql = (const char *)sqlite3_value_text(arg), *tail;
  if (!sql) return fail_code(f, SQLITE_NOMEM);
  const size_t len = (size_t)sqlite3_value_bytes(arg);
  if (strlen(sql) != len) return fail(f, "the statement has a NUL in it");
  if (cursor_conn(&cur->base)->streams > MAX_NESTED) { /* M7 */
    return fail(f, "nested too deeply: %s", shown((bytes){(const uint8_t *)sql, len}, text));
  }
  const char *first = skip_blanks(sql);
  if (!begins_with(first, "SELECT") && !begins_with(first, "VALUES") &&
      !begins_with(first, "WITH")) {
    return fail(f, "the statement must be a SELECT, VALUES or WITH: %s",
                shown((bytes){(const uint8_t *)first, strlen(first)}, text));
  }
  const int rc = sqlite3_prepare_v2(db, sql, (int)len + 1, &cur->stmt, &tail);
  if (rc != SQLITE_OK) return statement_failure(cur, rc, f);
  while (*(tail = skip_blanks(tail)) == ';') tail++;
  if (*tail) return fail(f, "more than one statement");
  if (!sqlite3_stmt_readonly(cur->stmt)) return fail(f, "the statement must not write");
  if (sqlite3_bind_parameter_count(cur->stmt) > 0) {
    return fail(f, "the statement must not have parameters");
  }
  return SQLITE_OK;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

/* The next part goes into the stream, or its end. */
static int read_part(stream_cursor *cur, failure *f) {
  bpe_error e = {0};
  bytes part;
  const int rc = sqlite3_step(cur->stmt);
  if (rc == SQLITE_DONE) {
    sqlite3_finalize(cur->stmt);
    cur->stmt = NULL;
    bpe_stream_end(cur->stream);
    return SQLITE_OK;
  }
  if (rc != SQLITE_ROW) return statement_failure(cur, rc, f);
  sqlite3_value *v = sqlite3_column_value(cur->stmt, 0);
  if (value_is_null(v)) return SQLITE_OK;
  if (!value_bytes(v, &part)) return fail_code(f, SQLITE_NOMEM);
  const bpe_status st = bpe_stream_add(cur->stream, part.data, part.len, &e);
  return st == BPE_OK ? SQLITE_OK : fail_status(f, st, &e);
}

static int take_ids(stream_cursor *cur, const uint32_t *ids, size_t n, failure *f) {
  if (n > cur->ids_cap) {
    uint32_t *more = sqlite3_realloc64(cur->ids, (sqlite3_uint64)n * sizeof *more);
    if (!more) return fail_code(f, SQLITE_NOMEM);
    cur->ids = more;
    cur->ids_cap = n;
  }
  work w = {.f = f};
  for (size_t i = 0; i < n && !work_stopped(&w, 1); i++) cur->ids[i] = ids[i];
  if (f->rc != SQLITE_OK) return f->rc;
  cur->n_ids = n;
  cur->at = 0;
  return SQLITE_OK;
}

/* ---- The table ------------------------------------------------------------------------------ */

static void stream_start(cursor *base, int idx_num, sqlite3_value *key, failure *f) {
  (void)idx_num;
  (void)key;
  stream_cursor *cur = (stream_cursor *)base;
  const call *k = base->call;
  bpe_error e = {0};
  cursor_conn(base)->streams++;
  const int rc = prepare(cur, f);
  cursor_conn(base)->streams--;
  if (rc != SQLITE_OK) return;
  const bpe_status st = bpe_stream_new(k->tok->coder, &k->walk, &e, &cur->stream);
  if (st != BPE_OK) fail_status(f, st, &e);
}

static void stream_next(cursor *base, failure *f) {
  stream_cursor *cur = (stream_cursor *)base;
  cursor_conn(base)->streams++;
  cur->at++;
  while (cur->at >= cur->n_ids && !base->eof && f->rc == SQLITE_OK) {
    bpe_error e = {0};
    const uint32_t *ids;
    size_t n;
    const bpe_status st = bpe_stream_next(cur->stream, &ids, &n, &e);
    if (st == BPE_OK) take_ids(cur, ids, n, f);
    else if (st == BPE_DONE && cur->stmt) read_part(cur, f);
    else cursor_status(base, st, &e, f);
  }
  cursor_conn(base)->streams--;
}

static int stream_column(cursor *base, sqlite3_context *ctx, int column) {
  const stream_cursor *cur = (const stream_cursor *)base;
  switch (column) {
  case SEQ: sqlite3_result_int64(ctx, base->row); break;
  case ID: sqlite3_result_int64(ctx, cur->ids[cur->at]); break;
  }
  return SQLITE_OK;
}

static void stream_end(cursor *base) {
  stream_cursor *cur = (stream_cursor *)base;
  sqlite3_finalize(cur->stmt);
  bpe_stream_free(cur->stream);
  sqlite3_free(cur->ids);
}

const table_function stream_table = {
    .name = "bpe_stream",
    .schema = "CREATE TABLE x(seq INTEGER, id INTEGER, input HIDDEN, tokenizer HIDDEN,"
              " options HIDDEN)",
    .args = {.first_column = INPUT,
             .n = 3,
             .n_required = 1,
             .tokenizer = 1,
             .options = 2,
             .who = FOR_STREAM,
             .needs = "a statement as text"},
    .direct_only = true, /* M6 */
    .order = SEQ,
    .cost = 1e9,
    .rows = 1000000,
    .cursor_size = sizeof(stream_cursor),
    .start = stream_start,
    .next = stream_next,
    .column = stream_column,
    .end = stream_end,
};
