/* prop_sql.c - see prop_sql.h.
**
** Three statements per text: the scalar functions, bpe_tokens, bpe_pieces. Each answer is compared
** with the oracle's, and so with each other: the count with the ids, the length of the JSON array
** with both, the ids of the table with those of the blob.
*/
#include "prop_sql.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { SCALARS, TOKENS, PIECES };

static const char *const sql[PROP_SQL_STATEMENTS] = {
  "SELECT bpe_encode_blob(?1, ?2, ?3), bpe_count(?1, ?2, ?3), bpe_encode(?1, ?2, ?3),"
  "  json_array_length(bpe_encode(?1, ?2, ?3)),"
  "  bpe_decode_blob(bpe_encode_blob(?1, ?2, ?3), ?2),"
  "  bpe_decode_blob(bpe_encode(?1, ?2, ?3), ?2)",
  "SELECT seq, id, token, start, stop, special, piece FROM bpe_tokens(?1, ?2, ?3)",
  "SELECT seq, piece, start, stop FROM bpe_pieces(?1, ?2, ?3)"};

bool prop_sql_open(prop_sql *q, const char *extension) {
  char *message = NULL;
  *q = (prop_sql){0};
  int rc = sqlite3_open(":memory:", &q->db);
  if (rc == SQLITE_OK) {
    rc = sqlite3_db_config(q->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  }
  if (rc == SQLITE_OK) rc = sqlite3_load_extension(q->db, extension, NULL, &message);
  for (int i = 0; i < PROP_SQL_STATEMENTS && rc == SQLITE_OK; i++) {
    rc = sqlite3_prepare_v2(q->db, sql[i], -1, &q->statement[i], NULL);
  }
  if (rc != SQLITE_OK) {
    printf("FAILED %s: %s\n", extension, message ? message : sqlite3_errmsg(q->db));
  }
  sqlite3_free(message);
  return rc == SQLITE_OK;
}

void prop_sql_close(prop_sql *q) {
  for (int i = 0; i < PROP_SQL_STATEMENTS; i++) sqlite3_finalize(q->statement[i]);
  sqlite3_close(q->db);
  oracle_result_clear(&q->expected);
  *q = (prop_sql){0};
}

static sqlite3_stmt *bind(const prop_sql *q, int which, const prop_subject *s, bool allow,
                          bool as_text, const uint8_t *text, size_t len) {
  sqlite3_stmt *stmt = q->statement[which];
  const char *bytes = len > 0 ? (const char *)text : "";
  sqlite3_reset(stmt);
  if (as_text) sqlite3_bind_text64(stmt, 1, bytes, len, SQLITE_STATIC, SQLITE_UTF8);
  else sqlite3_bind_blob64(stmt, 1, bytes, len, SQLITE_STATIC);
  sqlite3_bind_text(stmt, 2, s->name, -1, SQLITE_STATIC);
  if (allow) sqlite3_bind_text(stmt, 3, "{\"special\":\"allow\"}", -1, SQLITE_STATIC);
  else sqlite3_bind_null(stmt, 3);
  return stmt;
}

static bool column_is(sqlite3_stmt *stmt, int column, const void *bytes, size_t len) {
  const void *got = sqlite3_column_blob(stmt, column);
  return (size_t)sqlite3_column_bytes(stmt, column) == len &&
         (len == 0 || (got && memcmp(got, bytes, len) == 0));
}

/* What a special token's id decodes to: the first name with that id. */
static const oracle_special *special_of(const prop_subject *s, uint32_t id) {
  for (size_t i = 0; i < s->n_found; i++) {
    if (s->found[i].id == id) return &s->found[i];
  }
  return NULL;
}

/* Column is the text, but for special tokens with an id of several names. */
static bool decoded_is(const prop_sql *q, const prop_subject *s, sqlite3_stmt *stmt, int column,
                       const uint8_t *text) {
  const uint8_t *got = sqlite3_column_blob(stmt, column);
  const size_t len = (size_t)sqlite3_column_bytes(stmt, column);
  size_t at = 0;
  for (size_t i = 0; i < q->expected.n_pieces; i++) {
    const oracle_piece *p = &q->expected.pieces[i];
    const uint8_t *bytes = text + p->start;
    size_t n = p->stop - p->start;
    if (p->special) {
      const oracle_special *name = special_of(s, q->expected.ids.at[p->first]);
      bytes = (const uint8_t *)name->text;
      n = name->len;
    }
    if (len - at < n || memcmp(got + at, bytes, n) != 0) return false;
    at += n;
  }
  return at == len;
}

static const char *check_scalars(const prop_sql *q, const prop_subject *s, sqlite3_stmt *stmt,
                                 const uint8_t *text) {
  const oracle_list *ids = &q->expected.ids;
  if (sqlite3_step(stmt) != SQLITE_ROW) return "scalars: error";
  const uint8_t *packed = sqlite3_column_blob(stmt, 0);
  if ((size_t)sqlite3_column_bytes(stmt, 0) != 4 * ids->n) return "bpe_encode_blob: length";
  for (size_t i = 0; i < ids->n; i++) {
    const uint8_t *p = packed + 4 * i;
    const uint32_t id = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
    if (id != ids->at[i]) return "bpe_encode_blob: ids differ";
  }
  if (sqlite3_column_int64(stmt, 1) != (sqlite3_int64)ids->n) return "bpe_count";
  if (sqlite3_column_int64(stmt, 3) != (sqlite3_int64)ids->n) return "bpe_encode: array length";
  const char *json = (const char *)sqlite3_column_text(stmt, 2);
  if (!json || *json++ != '[') return "bpe_encode: no array";
  for (size_t i = 0; i < ids->n; i++) {
    char number[16];
    const int n = snprintf(number, sizeof number, "%u%c", ids->at[i], i + 1 < ids->n ? ',' : ']');
    if (strncmp(json, number, (size_t)n) != 0) return "bpe_encode: ids differ";
    json += n;
  }
  if (!decoded_is(q, s, stmt, 4, text)) return "bpe_decode_blob of a blob is not the text";
  if (!decoded_is(q, s, stmt, 5, text)) return "bpe_decode_blob of JSON is not the text";
  return NULL;
}

static const char *check_tokens(const prop_sql *q, const prop_subject *s, sqlite3_stmt *stmt,
                                const uint8_t *text, size_t len) {
  const oracle_result *want = &q->expected;
  size_t at = 0, row = 0, number = 0; /* number: of pieces that are no special token */
  for (size_t i = 0; i < want->n_pieces; i++) {
    const oracle_piece *p = &want->pieces[i];
    for (size_t k = 0; k < p->n; k++, row++) {
      if (sqlite3_step(stmt) != SQLITE_ROW) return "bpe_tokens: ends early";
      const uint32_t id = want->ids.at[p->first + k];
      const size_t stop = (size_t)sqlite3_column_int64(stmt, 4);
      if (sqlite3_column_int64(stmt, 0) != (sqlite3_int64)row) return "bpe_tokens: seq";
      if (sqlite3_column_int64(stmt, 1) != id) return "bpe_tokens: id";
      if (sqlite3_column_int64(stmt, 3) != (sqlite3_int64)at) return "bpe_tokens: start";
      if (stop < at || stop > len) return "bpe_tokens: stop";
      if (sqlite3_column_int(stmt, 5) != p->special) return "bpe_tokens: special";
      if (p->special) {
        const oracle_special *name = special_of(s, id);
        if (!column_is(stmt, 2, name->text, name->len)) return "bpe_tokens: name of a special";
        if (sqlite3_column_type(stmt, 6) != SQLITE_NULL) return "bpe_tokens: piece of a special";
      } else {
        if (!column_is(stmt, 2, text + at, stop - at)) return "bpe_tokens: token";
        if (sqlite3_column_int64(stmt, 6) != (sqlite3_int64)number) return "bpe_tokens: piece";
      }
      at = stop;
    }
    if (at != p->stop) return "bpe_tokens: tokens do not tile the piece";
    number += !p->special;
  }
  return sqlite3_step(stmt) == SQLITE_DONE ? NULL : "bpe_tokens: rows after the last";
}

static const char *check_pieces(const prop_sql *q, sqlite3_stmt *stmt, const uint8_t *text) {
  size_t row = 0;
  for (size_t i = 0; i < q->expected.n_pieces; i++) {
    const oracle_piece *p = &q->expected.pieces[i];
    if (p->special) continue;
    if (sqlite3_step(stmt) != SQLITE_ROW) return "bpe_pieces: ends early";
    if (sqlite3_column_int64(stmt, 0) != (sqlite3_int64)row++) return "bpe_pieces: seq";
    if (sqlite3_column_int64(stmt, 2) != (sqlite3_int64)p->start) return "bpe_pieces: start";
    if (sqlite3_column_int64(stmt, 3) != (sqlite3_int64)p->stop) return "bpe_pieces: stop";
    if (!column_is(stmt, 1, text + p->start, p->stop - p->start)) return "bpe_pieces: piece";
  }
  return sqlite3_step(stmt) == SQLITE_DONE ? NULL : "bpe_pieces: rows after the last";
}

const char *prop_sql_check(prop_sql *q, const prop_subject *s, bool allow, bool as_text,
                           const uint8_t *text, size_t len) {
  oracle_encode(&s->oracle, text, len, s->found, allow ? s->n_found : 0, &q->expected);
  const char *what =
    check_scalars(q, s, bind(q, SCALARS, s, allow, as_text, text, len), text);
  if (!what) {
    what = check_tokens(q, s, bind(q, TOKENS, s, allow, as_text, text, len), text, len);
  }
  if (!what) what = check_pieces(q, bind(q, PIECES, s, allow, as_text, text, len), text);
  for (int i = 0; i < PROP_SQL_STATEMENTS; i++) sqlite3_reset(q->statement[i]);
  return what;
}
