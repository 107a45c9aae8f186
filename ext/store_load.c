/* store_load.c - a stored tokenizer's rows as a model.
**
** Rows are anyone's: a hand, another program, damage may have made them. So every value is checked
** for type and range, the core's builder checks what they mean together, and the digest of what
** came out is compared with the one that the row claims. A row that cannot be is named:
**
**     bpe_count: tokenizer is damaged: mine: bpe_model_vocab, model_id 1, id 7: token is TEXT
**
** Loading happens while the statement that found the row is still open, so it reads the same state
** of the database.
**
** (L1) Not sealed (no digest), or a table that is not ours: "unsealed".
** (L2) Sealed, and not what was sealed: "damaged".
** (L3) Without one of our triggers, nobody would notice a change. It is read all the same, because
**      a dump makes triggers last, but what was read serves one statement and is not kept.
** (L4) The stats decide nothing, so text there that is no JSON is as good as none.
** (L5) Where SQLite compares a key it reads all of it, and the tokens are in one. So the rows of the
**      two big tables are not asked for by "model_id = ?1", which is compared with each: they are
**      read from the first on, up to the first that is another's.
*/
#include "ext.h"

#include <limits.h>
#include <string.h>

/* What the two big tables have in common while they are read. */
typedef struct rows {
  conn *c;
  sqlite3_stmt *stmt;
  sqlite3_int64 model;
  sqlite3_int64 n; /* read so far */
  failure *f;
} rows;

static int open_rows(rows *r, const char *schema, const char *format) {
  char *sql = sqlite3_mprintf(format, schema);
  if (!sql) return fail_code(r->f, SQLITE_NOMEM);
  int rc = sqlite3_prepare_v2(r->c->db, sql, -1, &r->stmt, NULL);
  sqlite3_free(sql);
  if (rc == SQLITE_OK) rc = sqlite3_bind_int64(r->stmt, 1, r->model);
  return rc == SQLITE_OK ? rc : fail_db(r->f, r->c->db, rc);
}

/* SQLITE_ROW, SQLITE_DONE, or what the failure came of. */
static int next_row(rows *r) {
  const int rc = stored_step(r->c, r->stmt, r->f);
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) fail_db(r->f, r->c->db, rc);
  return rc;
}

static const char *column_type(rows *r, int column) {
  static const char *const names[] = {"", "INTEGER", "REAL", "TEXT", "BLOB", "NULL"};
  return names[sqlite3_column_type(r->stmt, column)];
}

/* A value that must be an INTEGER 0 .. most. */
static bool take_number(rows *r, int column, uint64_t most, uint64_t *out) {
  const sqlite3_int64 x = sqlite3_column_int64(r->stmt, column);
  *out = (uint64_t)x;
  return x >= 0 && (uint64_t)x <= most && sqlite3_column_type(r->stmt, column) == SQLITE_INTEGER;
}

/* ---- Vocabulary ---------------------------------------------------------------------------- */

static const char *const kinds[] = {"token", "special", "added"};

const char *stored_kind(bpe_kind kind) {
  return kinds[kind];
}

static int bad_token(rows *r, const char *what) {
  char id[SHOWN_SIZE];
  bytes text = {(const uint8_t *)"", 0};
  const unsigned char *s = sqlite3_column_text(r->stmt, 0);
  if (s) text = (bytes){s, (size_t)sqlite3_column_bytes(r->stmt, 0)};
  return fail(r->f, "bpe_model_vocab, model_id %lld, id %s: %s", r->model, shown(text, id), what);
}

static int take_token(rows *r, bpe_builder *b) {
  uint64_t id;
  int kind = 0;
  if (!take_number(r, 0, BPE_NONE - 1, &id)) return bad_token(r, "id is no number below 2^32-1");
  if (sqlite3_column_type(r->stmt, 1) != SQLITE_BLOB) {
    char what[32];
    sqlite3_snprintf(sizeof what, what, "token is %s", column_type(r, 1));
    return bad_token(r, what);
  }
  const void *token = sqlite3_column_blob(r->stmt, 1);
  const size_t len = (size_t)sqlite3_column_bytes(r->stmt, 1);
  if (len == 0) return bad_token(r, "token is empty");
  if (!token) return fail_code(r->f, SQLITE_NOMEM);
  if (sqlite3_column_type(r->stmt, 2) != SQLITE_TEXT) {
    char what[32];
    sqlite3_snprintf(sizeof what, what, "kind is %s", column_type(r, 2));
    return bad_token(r, what);
  }
  const char *name = (const char *)sqlite3_column_text(r->stmt, 2);
  if (!name) return fail_code(r->f, SQLITE_NOMEM);
  const size_t name_len = (size_t)sqlite3_column_bytes(r->stmt, 2);
  while (kind < 3 && (strlen(kinds[kind]) != name_len || strcmp(name, kinds[kind]) != 0)) kind++;
  if (kind == 3) return bad_token(r, "kind is none of token, special, added");
  bpe_builder_token(b, (uint32_t)id, (bpe_kind)kind, token, len);
  return SQLITE_OK;
}

/* ---- Merges -------------------------------------------------------------------------------- */

static int bad_merge(rows *r, const char *what) {
  char rank[SHOWN_SIZE];
  bytes text = {(const uint8_t *)"", 0};
  const unsigned char *s = sqlite3_column_text(r->stmt, 0);
  if (s) text = (bytes){s, (size_t)sqlite3_column_bytes(r->stmt, 0)};
  return fail(r->f, "bpe_model_merges, model_id %lld, rank %s: %s", r->model, shown(text, rank),
              what);
}

static int take_merge(rows *r, bpe_builder *b) {
  static const char *const what[] = {
      "rank is no number below 2^32-1", "left is no number below 2^32-1",
      "right is no number below 2^32-1", "id is no number below 2^32-1"};
  uint64_t x[4], count = 0;
  for (int i = 0; i < 4; i++) {
    if (!take_number(r, i, BPE_NONE - 1, &x[i])) return bad_merge(r, what[i]);
  }
  if (sqlite3_column_type(r->stmt, 4) != SQLITE_NULL && !take_number(r, 4, INT64_MAX, &count)) {
    return bad_merge(r, "count is no number");
  }
  bpe_builder_merge(b, (uint32_t)x[0], (uint32_t)x[1], (uint32_t)x[2], (uint32_t)x[3], count);
  return SQLITE_OK;
}

/* ---- The whole ----------------------------------------------------------------------------- */

/* L5. In the order of the primary key; model_ids that are no number, which someone planted, come
** last. The "+" is for '1': it is not 1, neither here nor in a key. */
#define VOCAB_ROWS " FROM \"%w\".bpe_model_vocab WHERE model_id >= ?1 ORDER BY model_id, id, token"
#define MERGE_ROWS                                                                                 \
  " FROM \"%w\".bpe_model_merges WHERE model_id >= ?1"                                             \
  " ORDER BY model_id, rank, \"left\", \"right\""
#define IS_OWN "+model_id = ?1"
#define ONE_IS_OWN(rows)                                                                           \
  "SELECT CASE WHEN typeof(model_id) NOT IN ('text', 'blob') THEN " IS_OWN " END" rows             \
  " LIMIT 1 OFFSET ?2"

typedef struct big_table {
  const char *select;
  const char *is_own; /* whether row number ?2, from 0, is the tokenizer's */
  int own;            /* the column that says so in `select` */
  int (*take)(rows *, bpe_builder *);
} big_table;

static const big_table big_tables[] = {
    {"SELECT id, token, kind, " IS_OWN VOCAB_ROWS, ONE_IS_OWN(VOCAB_ROWS), 3, take_token},
    {"SELECT rank, \"left\", \"right\", id, count, " IS_OWN MERGE_ROWS, ONE_IS_OWN(MERGE_ROWS), 5,
     take_merge},
};

/* The next row is too big. If it is another tokenizer's, that is nothing to this one. Some versions
** of SQLite say so of a long row whichever column is asked for, hence the limit. */
static void forgive_others(rows *r, const char *schema, const big_table *t) {
  failure f = {.name = r->f->name, .c = r->c};
  rows next = {.c = r->c, .model = r->model, .f = &f};
  bool is_own = true;
  if (open_rows(&next, schema, t->is_own) == SQLITE_OK) {
    sqlite3_bind_int64(next.stmt, 2, r->n);
    const int limit = sqlite3_limit(r->c->db, SQLITE_LIMIT_LENGTH, INT_MAX);
    const int rc = sqlite3_step(next.stmt);
    sqlite3_limit(r->c->db, SQLITE_LIMIT_LENGTH, limit);
    if (rc == SQLITE_ROW) is_own = sqlite3_column_int(next.stmt, 0);
    else if (rc != SQLITE_DONE) fail_db(&f, r->c->db, rc);
  }
  sqlite3_finalize(next.stmt);
  if (f.rc == SQLITE_OK && is_own) return;
  failure_clear(r->f);
  *r->f = f;
}

static int read_table(rows *r, const char *schema, const big_table *t, bpe_builder *b) {
  int rc = SQLITE_OK;
  open_rows(r, schema, t->select);
  for (r->n = 0; r->f->rc == SQLITE_OK; r->n++) {
    rc = next_row(r);
    if (rc != SQLITE_ROW || !sqlite3_column_int(r->stmt, t->own)) break;
    t->take(r, b);
  }
  sqlite3_finalize(r->stmt);
  r->stmt = NULL;
  if ((rc & 0xff) == SQLITE_TOOBIG) forgive_others(r, schema, t);
  return r->f->rc;
}

int stored_build(conn *c, const char *schema, sqlite3_int64 id, const stored_head *head, failure *f,
                 bpe_model **out) {
  rows r = {.c = c, .model = id, .f = f};
  bpe_error e = {0};
  *out = NULL;
  bpe_builder *b = bpe_builder_new(&c->alloc);
  if (!b) return fail_code(f, SQLITE_NOMEM);
  bpe_builder_settings(b, (const char *)head->pattern.data, head->pattern.len,
                       (const char *)head->options.data, head->options.len);
  if (head->stats.len > 0) {
    bpe_builder_stats(b, (const char *)head->stats.data, head->stats.len);
  }
  for (int i = 0; i < 2 && f->rc == SQLITE_OK; i++) read_table(&r, schema, &big_tables[i], b);
  if (f->rc != SQLITE_OK) {
    bpe_builder_free(b);
    return f->rc;
  }
  const bpe_status st = bpe_builder_finish(b, &e, out);
  if (st == BPE_OK) return SQLITE_OK;
  return st == BPE_TOOBIG ? fail_text(f, &e) : fail_status(f, st, &e);
}

/* A column that must be TEXT, or may also be NULL, which is no bytes. */
static int head_text(rows *r, int column, const char *name, bool may_be_null, bytes *out) {
  const int type = sqlite3_column_type(r->stmt, column);
  *out = (bytes){(const uint8_t *)"", 0};
  if (may_be_null && type == SQLITE_NULL) return SQLITE_OK;
  if (type != SQLITE_TEXT) {
    return fail(r->f, "bpe_model, id %lld: %s is %s", r->model, name, column_type(r, column));
  }
  const unsigned char *text = sqlite3_column_text(r->stmt, column);
  if (!text) return fail_code(r->f, SQLITE_NOMEM);
  *out = (bytes){text, (size_t)sqlite3_column_bytes(r->stmt, column)};
  return SQLITE_OK;
}

static bool any_event(void *ctx, json_kind kind, bytes text) {
  (void)ctx;
  (void)kind;
  (void)text;
  return true;
}

/* L4 */
static int drop_bad_stats(rows *r, bytes *stats) {
  failure ignored = {.name = r->f->name, .c = r->c};
  if (stats->len == 0) return SQLITE_OK;
  const int rc = json_read(*stats, "stats", &ignored, any_event, NULL);
  if (rc != SQLITE_OK && rc != SQLITE_ERROR) {
    *r->f = ignored;
    return rc;
  }
  if (rc == SQLITE_ERROR) stats->len = 0;
  failure_clear(&ignored);
  return SQLITE_OK;
}

int stored_read(conn *c, const char *schema, sqlite3_int64 id, failure *f, bpe_model **out) {
  rows r = {.c = c, .model = id, .f = f};
  stored_head head;
  *out = NULL;
  open_rows(&r, schema, "SELECT pattern, options, stats FROM \"%w\".bpe_model WHERE id = ?1");
  if (f->rc == SQLITE_OK && next_row(&r) == SQLITE_DONE)
    fail(f, "bpe_model, id %lld: no such row", id);
  if (f->rc == SQLITE_OK && head_text(&r, 0, "pattern", false, &head.pattern) == SQLITE_OK &&
      head_text(&r, 1, "options", false, &head.options) == SQLITE_OK &&
      head_text(&r, 2, "stats", true, &head.stats) == SQLITE_OK &&
      drop_bad_stats(&r, &head.stats) == SQLITE_OK) {
    stored_build(c, schema, id, &head, f, out);
  }
  sqlite3_finalize(r.stmt);
  return f->rc;
}

/* Puts `what` and the name before a message about rows. Codes that are SQLite's own stay. */
static int about(failure *f, const char *what, const char *name, failure *inner) {
  if (inner->rc == SQLITE_ERROR && inner->text) {
    fail(f, "%s: %s: %s", what, name, inner->text + strlen(inner->name) + 2);
  } else if (f->rc == SQLITE_OK) {
    *f = (failure){.name = f->name, .c = f->c, .rc = inner->rc, .text = inner->text};
    inner->text = NULL;
  }
  failure_clear(inner);
  return f->rc;
}

int fail_missing(failure *f, const schema_object *o, const char *schema) {
  return fail(f, "%s %.*s of schema %s is missing or not as bpe makes it", o->type,
              (int)o->name.len, o->name.data, schema);
}

int stored_load(conn *c, bytes name, const stored_row *row, failure *f, bpe_model **out,
                schema_object *missing) {
  static const char unsealed[] = "tokenizer is unsealed";
  failure inner = {.name = f->name, .c = c};
  char text[SHOWN_SIZE];
  uint8_t digest[32];
  *out = NULL;
  shown(name, text);
  if (!row->sealed) { /* L1 */
    return fail(f,
                "%s: %s: its rows were changed; UPDATE bpe_tokenizers SET sealed = 1 WHERE "
                "name = '%s' checks them",
                unsealed, text, text);
  }
  if (schema_check(c, row->schema, &inner, missing) == SQLITE_OK && missing->name.len > 0 &&
      missing->type[1] ==
          'a') { /* tables come before triggers: a trigger means that all are there */
    fail_missing(&inner, missing, row->schema);
  }
  if (inner.rc != SQLITE_OK) return about(f, unsealed, text, &inner);
  if (stored_read(c, row->schema, row->id, &inner, out) == SQLITE_OK) { /* L2 */
    bpe_error e = {0};
    const bpe_status st = bpe_model_digest(*out, &e, digest);
    if (st == BPE_OK && memcmp(digest, row->digest, sizeof digest) == 0) return SQLITE_OK;
    bpe_model_free(*out);
    *out = NULL;
    if (st != BPE_OK) fail_status(&inner, st, &e);
    else fail(&inner, "its rows are not those that were sealed");
  }
  return about(f, "tokenizer is damaged", text, &inner);
}
