/* store_write.c - changes of stored tokenizers, each of them one statement and so all or nothing.
**
** SQLite undoes a failed statement, but not the statements that ran inside a virtual table's
** xUpdate before it failed. So each change is one statement on bpe_model, which calls the
** function bpe_private in its middle:
**
**     INSERT INTO bpe_model(...) SELECT ?1, ..., bpe_private(?6)
**
** The function writes vocabulary and merges, reads them back, and returns the digest of what it
** read. The outer statement has a journal of its own, because its row may violate a constraint;
** whatever the function or a trigger fails with, all three tables are as before. The model's row
** comes last, so a reader never sees a name with half a vocabulary, and a copy made row by row is
** unsealed until it is complete.
**
** Several rows changed by one statement are undone together too, in each schema: SQLite opens a
** journal for the user's statement in main only, and in another schema as soon as a statement
** inside it needs one there (begin_change).
**
** bpe_private has to be a registered function, but its argument is a pointer that only C code can
** bind: called from SQL it is an error.
*/
#include "ext.h"

#include <string.h>

static const char pointer_type[] = "bpe_job";

typedef struct job {
  conn *c;
  const char *schema;
  sqlite3_int64 id;
  const bpe_model *model; /* to be written; NULL: only read what is there */
  stored_head head;
  bool began; /* bpe_private was called */
  uint8_t digest[32];
  failure *f;
} job;

/* A statement on the job's schema, which the format names with %w. */
static int prepare(job *j, const char *format, sqlite3_stmt **out) {
  char *sql = sqlite3_mprintf(format, j->schema);
  *out = NULL;
  if (!sql) return fail_code(j->f, SQLITE_NOMEM);
  const int rc = sqlite3_prepare_v2(j->c->db, sql, -1, out, NULL);
  sqlite3_free(sql);
  return rc == SQLITE_OK ? rc : fail_db(j->f, j->c->db, rc);
}

/* With PRAGMA count_changes there is a row. */
static int run(job *j, sqlite3_stmt *stmt, int rc) {
  if (rc == SQLITE_OK) {
    do rc = sqlite3_step(stmt);
    while (rc == SQLITE_ROW);
  }
  if (rc == SQLITE_DONE) rc = sqlite3_reset(stmt);
  return rc == SQLITE_OK ? rc : fail_db(j->f, j->c->db, rc);
}

static int run_with_id(job *j, const char *format) {
  sqlite3_stmt *stmt;
  if (prepare(j, format, &stmt) == SQLITE_OK) run(j, stmt, sqlite3_bind_int64(stmt, 1, j->id));
  sqlite3_finalize(stmt);
  return j->f->rc;
}

/* ---- Rows ---------------------------------------------------------------------------------- */

static int write_vocab(job *j) {
  sqlite3_stmt *stmt;
  bpe_info info;
  bpe_model_info(j->model, &info);
  prepare(j,
          "INSERT INTO \"%w\".bpe_model_vocab(model_id, id, token, kind)"
          " VALUES(?1, ?2, ?3, ?4)",
          &stmt);
  if (j->f->rc == SQLITE_OK) sqlite3_bind_int64(stmt, 1, j->id);
  for (size_t i = 0; i < info.entry_count && j->f->rc == SQLITE_OK; i++) {
    const bpe_token t = bpe_model_token(j->model, i);
    int rc = sqlite3_bind_int64(stmt, 2, t.id);
    if (rc == SQLITE_OK) rc = sqlite3_bind_blob64(stmt, 3, t.bytes, t.len, SQLITE_STATIC);
    if (rc == SQLITE_OK) rc = sqlite3_bind_text(stmt, 4, stored_kind(t.kind), -1, SQLITE_STATIC);
    run(j, stmt, rc);
  }
  sqlite3_finalize(stmt);
  return j->f->rc;
}

static int write_merges(job *j) {
  sqlite3_stmt *stmt;
  bpe_info info;
  bpe_model_info(j->model, &info);
  prepare(j,
          "INSERT INTO \"%w\".bpe_model_merges(model_id, rank, \"left\", \"right\", id, count)"
          " VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
          &stmt);
  if (j->f->rc == SQLITE_OK) sqlite3_bind_int64(stmt, 1, j->id);
  for (size_t i = 0; i < info.merge_count && j->f->rc == SQLITE_OK; i++) {
    const bpe_merge m = bpe_model_merge(j->model, i);
    sqlite3_bind_int64(stmt, 2, m.rank);
    sqlite3_bind_int64(stmt, 3, m.left);
    sqlite3_bind_int64(stmt, 4, m.right);
    sqlite3_bind_int64(stmt, 5, m.id);
    const int rc = m.count > 0 ? sqlite3_bind_int64(stmt, 6, (sqlite3_int64)m.count)
                               : sqlite3_bind_null(stmt, 6);
    run(j, stmt, rc);
  }
  sqlite3_finalize(stmt);
  return j->f->rc;
}

/* The digest of the rows as they are, which must be the model's if there is one. */
static int digest_rows(job *j) {
  bpe_model *m;
  uint8_t meant[32];
  if (j->model) stored_build(j->c, j->schema, j->id, &j->head, j->f, &m);
  else stored_read(j->c, j->schema, j->id, j->f, &m);
  if (j->f->rc != SQLITE_OK) return j->f->rc;
  bpe_error e = {0};
  bpe_status st = bpe_model_digest(m, &e, j->digest);
  bpe_model_free(m);
  if (st == BPE_OK && !j->model) return SQLITE_OK;
  if (st == BPE_OK) st = bpe_model_digest(j->model, &e, meant);
  if (st != BPE_OK) return fail_status(j->f, st, &e);
  if (memcmp(meant, j->digest, sizeof meant) == 0) return SQLITE_OK;
  return fail(j->f, "the rows that were stored are not those of the source");
}

static void private_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  (void)argc;
  job *j = sqlite3_value_pointer(argv[0], pointer_type);
  if (!j) {
    sqlite3_result_error(ctx, "bpe_private: not for use in SQL", -1);
    return;
  }
  j->began = true;
  if (j->model) {
    /* Leftovers of an id, where rows were deleted without the triggers. */
    run_with_id(j, "DELETE FROM \"%w\".bpe_model_vocab WHERE model_id = ?1");
    if (j->f->rc == SQLITE_OK) {
      run_with_id(j, "DELETE FROM \"%w\".bpe_model_merges WHERE model_id = ?1");
    }
    if (j->f->rc == SQLITE_OK && write_vocab(j) == SQLITE_OK) write_merges(j);
  }
  if (j->f->rc == SQLITE_OK && digest_rows(j) == SQLITE_OK) {
    sqlite3_result_blob(ctx, j->digest, (int)sizeof j->digest, SQLITE_TRANSIENT);
  } else {
    sqlite3_result_error_code(ctx, j->f->rc); /* the text stays in the job */
  }
}

/* ---- Changes ------------------------------------------------------------------------------- */

/* Two specials may share an id, and the first is what it decodes to. Rows have no order but that
** of their bytes. */
static int check_order(const bpe_model *m, failure *f) {
  bpe_info info;
  work w = {.f = f};
  bpe_model_info(m, &info);
  for (size_t i = 1; i < info.entry_count && !work_stopped(&w, 4); i++) {
    const bpe_token a = bpe_model_token(m, i - 1), b = bpe_model_token(m, i);
    if (a.id != b.id) continue;
    const int order = memcmp(a.bytes, b.bytes, a.len < b.len ? a.len : b.len);
    if (order > 0 || (order == 0 && a.len >= b.len)) {
      return fail(f, "tokens that share an id must come in order of their bytes: id %u", a.id);
    }
  }
  return f->rc;
}

static int next_id(job *j) {
  sqlite3_stmt *stmt;
  if (prepare(j, "SELECT max(id) FROM \"%w\".bpe_model", &stmt) == SQLITE_OK) {
    const int rc = sqlite3_step(stmt);
    const sqlite3_int64 last = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
    if (rc == SQLITE_DONE) fail(j->f, "bpe_model cannot be read"); /* an authorizer says so */
    else if (rc != SQLITE_ROW) fail_db(j->f, j->c->db, rc);
    else if (last == INT64_MAX) fail(j->f, "no id is left in bpe_model");
    else j->id = last < 1 ? 1 : last + 1;
  }
  sqlite3_finalize(stmt);
  return j->f->rc;
}

/* NULL where there is nothing. */
static int bind_text(sqlite3_stmt *stmt, int i, bytes text) {
  if (text.len == 0) return sqlite3_bind_null(stmt, i);
  return sqlite3_bind_text64(stmt, i, (const char *)text.data, text.len, SQLITE_STATIC,
                             SQLITE_UTF8);
}

static int insert_row(job *j, bytes name) {
  sqlite3_stmt *stmt;
  if (prepare(j,
              "INSERT INTO \"%w\".bpe_model(id, name, pattern, options, stats, digest)"
              " SELECT ?1, ?2, ?3, ?4, ?5, bpe_private(?6)",
              &stmt) == SQLITE_OK) {
    int rc = sqlite3_bind_int64(stmt, 1, j->id);
    if (rc == SQLITE_OK) rc = bind_text(stmt, 2, name);
    if (rc == SQLITE_OK) rc = bind_text(stmt, 3, j->head.pattern);
    if (rc == SQLITE_OK) rc = bind_text(stmt, 4, j->head.options);
    if (rc == SQLITE_OK) rc = bind_text(stmt, 5, j->head.stats);
    if (rc == SQLITE_OK) rc = sqlite3_bind_pointer(stmt, 6, j, pointer_type, NULL);
    run(j, stmt, rc);
  }
  sqlite3_finalize(stmt);
  return j->f->rc;
}

/* Whether the row is there, with this name and digest; no bytes, NULL: with any. A trigger that
** someone put on our tables may have changed or skipped what was written. */
static int find_row(job *j, bytes name, const uint8_t *digest, bool *found) {
  sqlite3_stmt *stmt;
  *found = false;
  if (prepare(j,
              "SELECT 1 FROM \"%w\".bpe_model WHERE id = ?1"
              " AND (?2 IS NULL OR name = ?2) AND (?3 IS NULL OR digest = ?3)",
              &stmt) == SQLITE_OK) {
    int rc = sqlite3_bind_int64(stmt, 1, j->id);
    if (rc == SQLITE_OK) rc = bind_text(stmt, 2, name);
    if (rc == SQLITE_OK) rc = sqlite3_bind_blob(stmt, 3, digest, 32, SQLITE_STATIC);
    if (rc == SQLITE_OK) rc = sqlite3_step(stmt);
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) fail_db(j->f, j->c->db, rc);
    *found = rc == SQLITE_ROW;
  }
  sqlite3_finalize(stmt);
  return j->f->rc;
}

static int check_row(job *j, bytes name, const uint8_t *digest) {
  char text[SHOWN_SIZE];
  bool found;
  if (find_row(j, name, digest, &found) != SQLITE_OK || found) return j->f->rc;
  return fail(j->f, "the row of bpe_model is not as it was stored: %s", shown(name, text));
}

/* Changes nothing, but might change several rows and then fail, so SQLite opens a journal in the
** schema: for it, and for the statement that it is part of. */
static int begin_change(job *j) {
  return run_with_id(j, "UPDATE \"%w\".bpe_model SET name = name WHERE id > ?1 AND id < ?1");
}

static void delete_all(job *j) {
  run_with_id(j, "DELETE FROM \"%w\".bpe_model WHERE id = ?1");
  if (j->f->rc == SQLITE_OK) {
    run_with_id(j, "DELETE FROM \"%w\".bpe_model_vocab WHERE model_id = ?1");
  }
  if (j->f->rc == SQLITE_OK) {
    run_with_id(j, "DELETE FROM \"%w\".bpe_model_merges WHERE model_id = ?1");
  }
}

/* What a trigger's RAISE(FAIL) or RAISE(IGNORE) leaves behind, which SQLite does not undo. */
static void clean_up(job j) {
  failure ignored = {.name = j.f->name, .c = j.c};
  j.f = &ignored;
  delete_all(&j);
  failure_clear(&ignored);
}

int stored_insert(store *s, const char *schema, bytes name, const bpe_model *m, failure *f) {
  job j = {.c = store_conn(s), .schema = schema, .model = m, .f = f};
  bpe_info info;
  bpe_error e = {0};
  bpe_buffer settings;
  store_rest(s);
  bpe_model_info(m, &info);
  if (info.pattern_len == 0)
    return fail(f, "pattern is an empty regex"); /* its column may not be */
  if (check_order(m, f) != SQLITE_OK || schema_create(j.c, schema, f) != SQLITE_OK ||
      next_id(&j) != SQLITE_OK) {
    return f->rc;
  }
  bpe_buffer_init(&settings, &j.c->alloc, 0);
  const bpe_status st = bpe_model_settings(m, &e, &settings);
  j.head = (stored_head){{(const uint8_t *)info.pattern, info.pattern_len},
                         {settings.bytes, settings.len},
                         {(const uint8_t *)info.stats, info.stats_len}};
  if (st != BPE_OK) fail_status(f, st, &e);
  else if (insert_row(&j, name) == SQLITE_OK) check_row(&j, name, j.digest);
  bpe_buffer_clear(&settings);
  if (j.began && ((f->rc & 0xff) == SQLITE_CONSTRAINT || f->rc == SQLITE_ERROR)) clean_up(j);
  return f->rc;
}

int stored_delete(store *s, const stored_row *row, bytes name, failure *f) {
  job j = {.c = store_conn(s), .schema = row->schema, .id = row->id, .f = f};
  const bytes any = {(const uint8_t *)"", 0};
  char text[SHOWN_SIZE];
  bool found;
  store_rest(s);
  if (begin_change(&j) != SQLITE_OK) return f->rc;
  /* The trigger deletes the other rows in the same statement. Where it is missing they are
  ** leftovers, and no harm if this stops between the statements. */
  delete_all(&j);
  if (f->rc != SQLITE_OK || find_row(&j, any, NULL, &found) != SQLITE_OK || !found) return f->rc;
  return fail(f, "the row of bpe_model was not deleted: %s", shown(name, text));
}

int stored_rename(store *s, const stored_row *row, bytes name, failure *f) {
  job j = {.c = store_conn(s), .schema = row->schema, .id = row->id, .f = f};
  sqlite3_stmt *stmt;
  store_rest(s);
  if (begin_change(&j) != SQLITE_OK) return f->rc;
  if (prepare(&j, "UPDATE \"%w\".bpe_model SET name = ?2 WHERE id = ?1", &stmt) == SQLITE_OK) {
    int rc = sqlite3_bind_int64(stmt, 1, row->id);
    if (rc == SQLITE_OK) rc = bind_text(stmt, 2, name);
    run(&j, stmt, rc);
  }
  sqlite3_finalize(stmt);
  return f->rc == SQLITE_OK ? check_row(&j, name, NULL) : f->rc;
}

int stored_seal(store *s, const stored_row *row, bytes name, failure *f) {
  job j = {.c = store_conn(s), .schema = row->schema, .id = row->id, .f = f};
  sqlite3_stmt *stmt;
  store_rest(s);
  if (schema_create(j.c, row->schema, f) == SQLITE_OK && begin_change(&j) == SQLITE_OK &&
      prepare(&j, "UPDATE \"%w\".bpe_model SET digest = bpe_private(?2) WHERE id = ?1", &stmt) ==
          SQLITE_OK) {
    int rc = sqlite3_bind_int64(stmt, 1, row->id);
    if (rc == SQLITE_OK) rc = sqlite3_bind_pointer(stmt, 2, &j, pointer_type, NULL);
    run(&j, stmt, rc);
    sqlite3_finalize(stmt);
  }
  return f->rc == SQLITE_OK ? check_row(&j, name, j.digest) : f->rc;
}

/* DIRECTONLY, so that no schema can even try it. */
const function_row store_functions[] = {
    {"bpe_private", 1, SQLITE_UTF8 | SQLITE_DIRECTONLY, private_func},
    {NULL, 0, 0, NULL},
};
