/* slt_db.c - the databases of one test file: opening, the extension, helper functions, closing.
**
** Each file starts on a fresh database with one connection, "default". Closing is a test in
** itself: sqlite3_close must answer SQLITE_OK, so no statement may be left; the caller then compares
** sqlite3_memory_used with what it was before. A database in a file lives in a directory of its
** own under TMPDIR, which goes with the session.
**
** Helper functions of SQL, on every connection:
**     fixture('name')       the bytes of ../fixtures/name, seen from the test file, as a BLOB
**     repeat_text(x, n)     x n times over, TEXT or BLOB as x is
**     db_path('name')       a path in the directory of the database, for ATTACH and VACUUM INTO
** and with --selftest, for proving that the runner notices: leak(), leak_statement(),
** leak_late() only when memory runs out, swallow(), which then answers 0 instead of saying so, and
** bpe_quiet(x), which returns x's integer and never allocates.
*/
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#endif

#include "slt.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef SLT_STATIC
struct sqlite3_api_routines;
extern int sqlite3_bpe_init(sqlite3 *, char **, const struct sqlite3_api_routines *);
#endif

/* ---- Helper functions ----------------------------------------------------------------------- */

static void fail(sqlite3_context *ctx, const char *what, const char *name) {
  char *message = sqlite3_mprintf("%s: %s", what, name);
  if (message) sqlite3_result_error(ctx, message, -1);
  else sqlite3_result_error_nomem(ctx);
  sqlite3_free(message);
}

static void fixture_path(const char *test, const char *name, text *out) {
  const char *slash = strrchr(test, '/');
  if (slash) text_append(out, test, (size_t)(slash - test) + 1);
  text_printf(out, "../fixtures/%s", name);
}

static void fixture_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  const session *s = sqlite3_user_data(ctx);
  const char *name = (const char *)sqlite3_value_text(argv[0]);
  text path = {0}, bytes = {0};
  (void)argc;
  if (!name) {
    if (sqlite3_value_type(argv[0]) == SQLITE_NULL) fail(ctx, "fixture", "no name");
    else sqlite3_result_error_nomem(ctx);
    return;
  }
  fixture_path(s->path, name, &path);
  if (name[0] == '/' || strstr(name, "..")) fail(ctx, "fixture: not below fixtures", name);
  else if (read_file(path.data, &bytes))
    sqlite3_result_blob64(ctx, bytes.data, bytes.len, SQLITE_TRANSIENT);
  else fail(ctx, "fixture: cannot read", path.data);
  text_free(&path);
  text_free(&bytes);
}

/* Writes n copies of the `len` bytes at the front of buffer behind each other. */
static void repeat(char *buffer, size_t len, size_t n) {
  const size_t total = len * n;
  for (size_t done = len; done < total;) {
    const size_t step = done < total - done ? done : total - done;
    memcpy(buffer + done, buffer, step);
    done += step;
  }
}

static void repeat_text_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  const bool blob = sqlite3_value_type(argv[0]) == SQLITE_BLOB;
  (void)argc;
  if (sqlite3_value_type(argv[0]) == SQLITE_NULL) return;
  const char *x = blob ? sqlite3_value_blob(argv[0]) : (const char *)sqlite3_value_text(argv[0]);
  const size_t len = (size_t)sqlite3_value_bytes(argv[0]);
  const sqlite3_int64 n = sqlite3_value_int64(argv[1]);
  if (!x && (len || !blob)) {
    sqlite3_result_error_nomem(ctx);
    return;
  }
  if (n > 0 && len > INT32_MAX / (size_t)n) {
    sqlite3_result_error_toobig(ctx);
    return;
  }
  const size_t total = n > 0 ? len * (size_t)n : 0;
  char *buffer = sqlite3_malloc64(total + 1);
  if (!buffer) {
    sqlite3_result_error_nomem(ctx);
    return;
  }
  if (total) {
    memcpy(buffer, x, len);
    repeat(buffer, len, (size_t)n);
  }
  buffer[total] = '\0';
  if (blob) sqlite3_result_blob64(ctx, buffer, total, sqlite3_free);
  else sqlite3_result_text64(ctx, buffer, total, sqlite3_free, SQLITE_UTF8);
}

/* A path beside the database in a file, for ATTACH and VACUUM INTO. */
static void db_path_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  const session *s = sqlite3_user_data(ctx);
  (void)argc;
  if (!s->dir) {
    sqlite3_result_error(ctx, "db_path: the database is not in a file", -1);
    return;
  }
  char *path = sqlite3_mprintf("%s/%s", s->dir, (const char *)sqlite3_value_text(argv[0]));
  if (path) sqlite3_result_text(ctx, path, -1, sqlite3_free);
  else sqlite3_result_error_nomem(ctx);
}

static void leak_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  (void)argc;
  (void)argv;
  sqlite3_result_int(ctx, sqlite3_malloc(100) != NULL);
}

static void leak_statement_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  sqlite3_stmt *stmt;
  (void)argc;
  (void)argv;
  sqlite3_result_int(
      ctx, sqlite3_prepare_v2(sqlite3_context_db_handle(ctx), "SELECT 1", -1, &stmt, NULL));
}

static void swallow_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  void *p = sqlite3_malloc(100);
  (void)argc;
  (void)argv;
  sqlite3_result_int(ctx, p != NULL);
  sqlite3_free(p);
}

static void leak_late_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  void *p = sqlite3_malloc(100);
  void *q = p ? sqlite3_malloc(100) : NULL;
  (void)argc;
  (void)argv;
  if (!q) {
    sqlite3_result_error_nomem(ctx);
    return;
  }
  sqlite3_free(p);
  sqlite3_free(q);
}

static void quiet_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  (void)argc;
  sqlite3_result_int64(ctx, sqlite3_value_int64(argv[0]));
}

static int add_helpers(session *s, sqlite3 *db) {
  static const struct {
    const char *name;
    int n_arg;
    bool selftest;
    void (*func)(sqlite3_context *, int, sqlite3_value **);
  } helpers[] = {
      {"fixture", 1, false, fixture_func},    {"repeat_text", 2, false, repeat_text_func},
      {"db_path", 1, false, db_path_func},
      {"leak", 0, true, leak_func},           {"leak_statement", 0, true, leak_statement_func},
      {"leak_late", 0, true, leak_late_func}, {"swallow", 0, true, swallow_func},
      {"bpe_quiet", 1, true, quiet_func},
  };
  for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++) {
    if (helpers[i].selftest && !s->set->selftest) continue;
    const int flags = SQLITE_UTF8 | (helpers[i].selftest ? 0 : SQLITE_DETERMINISTIC);
    const int rc = sqlite3_create_function_v2(db, helpers[i].name, helpers[i].n_arg, flags, s,
                                              helpers[i].func, NULL, NULL, NULL);
    if (rc != SQLITE_OK) return rc;
  }
  return SQLITE_OK;
}

/* ---- The extension -------------------------------------------------------------------------- */

bool extension_load(const settings *set, sqlite3 *db, text *why) {
  char *message = NULL;
  int rc;
  if (!set->extension) return true;
#ifdef SLT_STATIC
  rc = sqlite3_bpe_init(db, &message, NULL);
#else
  rc = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_load_extension(db, set->extension, NULL, &message);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
#endif
  if (rc != SQLITE_OK)
    text_printf(why, "cannot load %s: %s", set->extension, message ? message : sqlite3_errstr(rc));
  sqlite3_free(message);
  return rc == SQLITE_OK;
}

/* ---- Connections ---------------------------------------------------------------------------- */

static bool in_file(const session *s) {
  return strcmp(s->db_kind, "file") == 0 || strcmp(s->db_kind, "wal") == 0;
}

/* The path of the database, making its directory when it is the first in a file. */
static bool database_path(session *s, text *out) {
  if (!in_file(s)) {
    text_append_str(out, ":memory:");
    return true;
  }
  if (!s->dir) {
    const char *parent = getenv("TMPDIR");
    text dir = {0};
    text_printf(&dir, "%s/slt-XXXXXX", parent && *parent ? parent : "/tmp");
    if (!mkdtemp(dir.data)) {
      report(s, NULL, NULL, "cannot make a directory like %s", dir.data);
      text_free(&dir);
      return false;
    }
    s->dir = dir.data;
  }
  text_printf(out, "%s/test.db", s->dir);
  return true;
}

/* The statements that make a new database what db_kind says. */
static int prepare_database(const session *s, sqlite3 *db) {
  const char *encoding = strncmp(s->db_kind, "utf16", 5) == 0 ? s->db_kind : s->set->encoding;
  int rc = SQLITE_OK;
  if (encoding && strcmp(encoding, "utf16le") == 0)
    rc = sqlite3_exec(db, "PRAGMA encoding='UTF-16le'", NULL, NULL, NULL);
  if (encoding && strcmp(encoding, "utf16be") == 0)
    rc = sqlite3_exec(db, "PRAGMA encoding='UTF-16be'", NULL, NULL, NULL);
  if (rc == SQLITE_OK && strcmp(s->db_kind, "wal") == 0)
    rc = sqlite3_exec(db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL);
  return rc;
}

static bool open_connection(session *s, connection *c) {
  text path = {0}, why = {0};
  const int flags = c->readonly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  if (!database_path(s, &path)) return false;
  int rc = sqlite3_open_v2(path.data, &c->db, flags, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_extended_result_codes(c->db, 1);
  if (rc == SQLITE_OK && !c->readonly) rc = prepare_database(s, c->db);
  if (rc == SQLITE_OK) rc = add_helpers(s, c->db);
  if (rc != SQLITE_OK)
    report(s, NULL, NULL, "cannot open %s: %s", path.data, sqlite3_errmsg(c->db));
  bool ok = rc == SQLITE_OK;
  if (ok && !c->noext && !extension_load(s->set, c->db, &why)) {
    report(s, NULL, NULL, "%s", text_str(&why));
    ok = false;
  }
  text_free(&path);
  text_free(&why);
  return ok;
}

/* The extension may keep statements that it finalizes when the connection closes; one that is left
** when it does not close is a leak. */
static bool close_connection(session *s, connection *c) {
  const int rc = sqlite3_close(c->db);
  if (rc != SQLITE_OK) {
    sqlite3_stmt *left = sqlite3_next_stmt(c->db, NULL);
    if (left) report(s, NULL, NULL, "connection %s: a statement is left: %s", c->name, sqlite3_sql(left));
    report(s, NULL, NULL, "connection %s: sqlite3_close: %s", c->name, sqlite3_errstr(rc));
    sqlite3_close_v2(c->db);
  }
  c->db = NULL;
  return rc == SQLITE_OK;
}

connection *session_find(session *s, const char *name) {
  for (size_t i = 0; i < s->n_connections; i++)
    if (strcmp(s->connections[i].name, name) == 0) return &s->connections[i];
  return NULL;
}

static connection *add_connection(session *s, const char *name) {
  s->connections = slt_grow(s->connections, &s->connections_capacity, s->n_connections + 1,
                            sizeof *s->connections);
  connection *c = &s->connections[s->n_connections++];
  *c = (connection){.name = pool_str(&s->file_strings, name)};
  return c;
}

bool session_open(session *s) {
  s->current = s->n_connections;
  return open_connection(s, add_connection(s, "default"));
}

bool session_switch(session *s, const command *cmd) {
  connection *c = session_find(s, cmd->name);
  if (!c) {
    c = add_connection(s, cmd->name);
    c->readonly = cmd->readonly;
    c->noext = cmd->noext;
    if (!open_connection(s, c)) return false;
  } else if ((cmd->readonly && !c->readonly) || (cmd->noext && !c->noext)) {
    report(s, NULL, NULL, "connection %s is open already, and of another kind", cmd->name);
    return false;
  }
  s->current = (size_t)(c - s->connections);
  return true;
}

bool session_reopen(session *s) {
  connection *c = &s->connections[s->current];
  const bool closed = close_connection(s, c);
  return open_connection(s, c) && closed;
}

/* Splits "connection.schema"; without a dot the schema is main. */
static const connection *find_side(session *s, const char *side, const char **schema) {
  const char *dot = strchr(side, '.');
  char *name = pool_copy(&s->file_strings, side, dot ? (size_t)(dot - side) : strlen(side));
  *schema = dot ? dot + 1 : "main";
  return session_find(s, name);
}

bool session_backup(session *s, const command *cmd) {
  const char *from_schema, *to_schema;
  const connection *from = find_side(s, cmd->name, &from_schema);
  const connection *to = find_side(s, cmd->value, &to_schema);
  if (!from || !to) {
    report(s, NULL, NULL, "no such connection: %s", from ? cmd->value : cmd->name);
    return false;
  }
  sqlite3_backup *b = sqlite3_backup_init(to->db, to_schema, from->db, from_schema);
  if (b) sqlite3_backup_step(b, -1);
  const int rc = b ? sqlite3_backup_finish(b) : sqlite3_errcode(to->db);
  if (rc != SQLITE_OK) report(s, NULL, NULL, "backup: %s", sqlite3_errstr(rc));
  return rc == SQLITE_OK;
}

static void remove_database(session *s) {
  if (!s->dir) return;
  DIR *dir = opendir(s->dir);
  for (const struct dirent *d; dir && (d = readdir(dir)) != NULL;) {
    text path = {0};
    text_printf(&path, "%s/%s", s->dir, d->d_name);
    if (d->d_name[0] != '.') remove(path.data);
    text_free(&path);
  }
  if (dir) closedir(dir);
  rmdir(s->dir);
  free(s->dir);
  s->dir = NULL;
}

bool session_close(session *s) {
  bool ok = true;
  for (size_t i = 0; i < s->n_connections; i++)
    if (!close_connection(s, &s->connections[i])) ok = false;
  s->n_connections = 0;
  remove_database(s);
  return ok;
}

bool session_restart(session *s, const char *kind) {
  const bool closed = session_close(s);
  s->db_kind = pool_str(&s->file_strings, kind);
  return session_open(s) && closed;
}

void session_free(session *s) {
  free(s->connections);
  for (size_t i = 0; i < s->n_labels; i++) text_free(&s->labels[i].rows);
  free(s->labels);
  for (size_t i = 0; i < s->n_edits; i++) text_free(&s->edits[i].replacement);
  free(s->edits);
  for (size_t i = 0; i < MAX_LOOPS; i++) text_free(&s->variables[i].value);
  free(s->params);
  text_free(&s->suspects);
  pool_clear(&s->record_strings);
  pool_clear(&s->file_strings);
}
