/* store_c.c - stored tokenizers through the C interface: what no SQL file can do.
**
**     store_c [./bpe] [tests/fixtures]
**
** Closing with kept statements, authorizers, two connections at odds, a full disk, interrupts, a
** database that an earlier version wrote. Each check is one function on databases of its own;
** after every failure the tables must be as they were and the connection must close.
*/
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#endif
#include "loaded.h"

#include <stdlib.h>
#include <unistd.h>

#define PLAIN "{\"pattern\":\"none\",\"merges\":[[97,98],[256,99]]}"
#define STORE(name) \
  "INSERT INTO bpe_tokenizers(name, source) VALUES('" name "', '" PLAIN "')"

static const char *extension = "./bpe", *fixtures = "tests/fixtures";
static char folder[200];

/* ---- Connections ---------------------------------------------------------------------------- */

static bool load(sqlite3 *db) {
#ifdef SLT_STATIC
  return sqlite3_bpe_init(db, NULL, NULL) == SQLITE_OK;
#else
  return sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL) == SQLITE_OK &&
         sqlite3_load_extension(db, extension, NULL, NULL) == SQLITE_OK;
#endif
}

static sqlite3 *open_as(loaded *t, const char *path, int flags) {
  sqlite3 *db = NULL;
  const int rc = sqlite3_open_v2(path, &db, flags | SQLITE_OPEN_URI, NULL);
  loaded_check(t, rc == SQLITE_OK && load(db), "open %s: %s", path, sqlite3_errmsg(db));
  return db;
}

static sqlite3 *open_file(loaded *t, const char *name) {
  char path[300];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return open_as(t, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

static sqlite3 *open_memory(loaded *t) {
  return open_as(t, ":memory:", SQLITE_OPEN_READWRITE);
}

static void close_well(loaded *t, sqlite3 *db, const char *where) {
  const int rc = sqlite3_close(db);
  loaded_check(t, rc == SQLITE_OK, "%s: close: %d", where, rc);
  if (rc != SQLITE_OK) sqlite3_close_v2(db);
}

static void run(loaded *t, sqlite3 *db, const char *sql) {
  const int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  loaded_check(t, rc == SQLITE_OK, "%s: %d %s", sql, rc, sqlite3_errmsg(db));
}

/* The statement fails with this code, and a message that holds the text. */
static void fails(loaded *t, sqlite3 *db, const char *sql, int code, const char *text) {
  const int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  loaded_check(t, rc == code && strstr(sqlite3_errmsg(db), text), "%s: %d %s, not %d %s", sql, rc,
               sqlite3_errmsg(db), code, text);
}

/* The first value of a statement, as text. */
static void gives(loaded *t, sqlite3 *db, const char *sql, const char *expected) {
  sqlite3_stmt *s = NULL;
  const bool row = sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK &&
                   sqlite3_step(s) == SQLITE_ROW;
  const char *got = row ? (const char *)sqlite3_column_text(s, 0) : sqlite3_errmsg(db);
  loaded_check(t, row && got && strcmp(got, expected) == 0, "%s: %s, not %s", sql,
               got ? got : "NULL", expected);
  sqlite3_finalize(s);
}

#define USE "SELECT bpe_encode('abcab', 'm')"
#define ANSWER "[257,256]"
#define ROWS "SELECT (SELECT count(*) FROM bpe_model) || ' ' ||" \
  " (SELECT count(*) FROM bpe_model_vocab) || ' ' || (SELECT count(*) FROM bpe_model_merges)"

/* ---- Closing -------------------------------------------------------------------------------- */

static void check_close(loaded *t) {
  sqlite3 *db = open_memory(t);
  sqlite3_stmt *s = NULL;
  run(t, db, STORE("m"));
  gives(t, db, USE, ANSWER);
  loaded_check(t, sqlite3_next_stmt(db, NULL) != NULL, "no statement is kept");
  run(t, db, "ATTACH ':memory:' AS aux");
  gives(t, db, USE, ANSWER);
  run(t, db, "VACUUM");
  run(t, db, "DETACH aux"); /* no kept statement stands in the way */
  gives(t, db, USE, ANSWER);
  run(t, db, "DROP TABLE bpe_model");
  fails(t, db, USE, SQLITE_ERROR, "bpe_encode: no such tokenizer: m");
  /* A statement of the host's is left: close is refused, and everything goes on. */
  run(t, db, "CREATE TABLE t(x)");
  sqlite3_prepare_v2(db, "SELECT x FROM t", -1, &s, NULL);
  loaded_check(t, sqlite3_close(db) == SQLITE_BUSY, "close with a statement left");
  run(t, db, "DROP TABLE bpe_model_vocab");
  run(t, db, "DROP TABLE bpe_model_merges");
  run(t, db, STORE("m"));
  gives(t, db, USE, ANSWER);
  sqlite3_finalize(s);
  close_well(t, db, "close");
}

/* A host that finalizes whatever it finds before it closes. */
static void check_finalized(loaded *t) {
  sqlite3 *db = open_memory(t);
  run(t, db, STORE("m"));
  gives(t, db, USE, ANSWER);
  int n = 0;
  for (sqlite3_stmt *s; (s = sqlite3_next_stmt(db, NULL)) != NULL; n++) sqlite3_finalize(s);
  loaded_check(t, n > 0, "no statement to finalize");
  close_well(t, db, "finalized by the host");
}

static void check_loaded_twice(loaded *t) {
  sqlite3 *db = open_memory(t);
  run(t, db, STORE("m"));
  gives(t, db, USE, ANSWER);
  loaded_check(t, load(db), "second load");
  gives(t, db, USE, ANSWER);
  run(t, db, STORE("n"));
  loaded_check(t, load(db), "third load");
  gives(t, db, "SELECT count(*) FROM bpe_tokenizers WHERE schema = 'main' AND sealed", "2");
  close_well(t, db, "loaded three times");
}

/* A statement that runs keeps what it began with, and closing waits for it. */
static void check_running(loaded *t) {
  sqlite3 *db = open_memory(t);
  sqlite3_stmt *s = NULL;
  run(t, db, STORE("m"));
  sqlite3_prepare_v2(db, "WITH n(i) AS (VALUES(1), (2), (3)) SELECT bpe_encode('abc', 'm') FROM n",
                     -1, &s, NULL);
  loaded_check(t, sqlite3_step(s) == SQLITE_ROW, "first row");
  run(t, db, "DELETE FROM bpe_tokenizers WHERE name = 'm'");
  loaded_check(t, sqlite3_step(s) == SQLITE_ROW &&
                      strcmp((const char *)sqlite3_column_text(s, 0), "[257]") == 0,
               "second row");
  sqlite3_reset(s);
  loaded_check(t, sqlite3_step(s) == SQLITE_ERROR, "a new run of a removed tokenizer");
  sqlite3_finalize(s);
  close_well(t, db, "running");
}

/* ---- Authorizers ---------------------------------------------------------------------------- */

static int answer_of_authorizer;
static const char *table_of_authorizer;

static int authorize(void *ctx, int action, const char *a, const char *b, const char *c,
                     const char *d) {
  (void)ctx;
  (void)b;
  (void)c;
  (void)d;
  const bool about = (action == SQLITE_READ || action == SQLITE_INSERT) && a != NULL &&
                     strcmp(a, table_of_authorizer) == 0;
  return about ? answer_of_authorizer : SQLITE_OK;
}

static void check_authorizer(loaded *t) {
  sqlite3 *db = open_memory(t);
  run(t, db, STORE("m"));
  gives(t, db, USE, ANSWER);
  table_of_authorizer = "bpe_model";
  answer_of_authorizer = SQLITE_DENY;
  sqlite3_set_authorizer(db, authorize, NULL);
  fails(t, db, USE, SQLITE_AUTH, "prohibited");
  fails(t, db, "SELECT count(*) FROM bpe_tokens('abc', 'm')", SQLITE_AUTH, "prohibited");
  gives(t, db, "SELECT bpe_encode('hello world', 'gpt2')", "[31373,995]");
  fails(t, db, "SELECT sealed FROM bpe_tokenizers", SQLITE_AUTH, "prohibited");
  fails(t, db, STORE("n"), SQLITE_AUTH, "prohibited");
  answer_of_authorizer = SQLITE_IGNORE; /* every column reads as NULL */
  fails(t, db, USE, SQLITE_ERROR, "bpe_encode: ");
  answer_of_authorizer = SQLITE_DENY;
  table_of_authorizer = "bpe_model_merges";
  sqlite3_set_authorizer(db, authorize, NULL);
  fails(t, db, USE, SQLITE_AUTH, "prohibited");
  fails(t, db, STORE("n"), SQLITE_AUTH, "prohibited");
  table_of_authorizer = "bpe_tokenizers"; /* where the kept statements live: slower, and right */
  sqlite3_set_authorizer(db, authorize, NULL);
  gives(t, db, USE, ANSWER);
  sqlite3_set_authorizer(db, NULL, NULL);
  gives(t, db, USE, ANSWER);
  gives(t, db, ROWS, "1 258 2");
  close_well(t, db, "authorizer");
}

/* ---- Two connections ------------------------------------------------------------------------- */

static void check_busy(loaded *t) {
  sqlite3 *a = open_file(t, "busy.db"), *b = open_file(t, "busy.db");
  run(t, a, STORE("m"));
  gives(t, b, USE, ANSWER);
  run(t, a, "BEGIN IMMEDIATE");
  gives(t, b, USE, ANSWER);
  fails(t, b, STORE("n"), SQLITE_BUSY, "locked");
  fails(t, b, "DELETE FROM bpe_tokenizers WHERE name = 'm'", SQLITE_BUSY, "locked");
  run(t, a, STORE("n"));
  run(t, a, "COMMIT");
  gives(t, b, "SELECT bpe_encode('abcab', 'n')", ANSWER);
  fails(t, b, STORE("n"), SQLITE_ERROR, "bpe_tokenizers: tokenizer exists already: n");
  run(t, a, "BEGIN EXCLUSIVE");
  fails(t, b, USE, SQLITE_BUSY, "locked");
  fails(t, b, "SELECT bpe_resolve('nobody')", SQLITE_BUSY, "locked");
  fails(t, b, "SELECT sealed FROM bpe_tokenizers", SQLITE_BUSY, "locked");
  run(t, a, "COMMIT");
  gives(t, b, USE, ANSWER);
  gives(t, b, ROWS, "2 516 4");
  close_well(t, a, "busy a");
  close_well(t, b, "busy b");
}

/* A tokenizer that is removed while the catalogue is being read, from its own schema's list. */
static void check_removed(loaded *t) {
  sqlite3 *db = open_memory(t);
  sqlite3_stmt *s = NULL;
  const char *const sql = "SELECT name, sealed, stats FROM bpe_tokenizers", *got;
  run(t, db, STORE("m"));
  run(t, db, STORE("n"));
  loaded_check(t, sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK, "%s", sql);
  do got = sqlite3_step(s) == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
  while (got && strcmp(got, "m") != 0);
  loaded_check(t, got && sqlite3_column_int(s, 1) == 1, "the row of m");
  run(t, db, "DELETE FROM bpe_tokenizers WHERE name = 'n'");
  loaded_check(t, sqlite3_step(s) == SQLITE_ROW, "the row of n");
  got = (const char *)sqlite3_column_text(s, 0);
  loaded_check(t, got && strcmp(got, "n") == 0, "%s, not n", got ? got : "NULL");
  loaded_check(t, sqlite3_column_type(s, 1) == SQLITE_INTEGER && !sqlite3_column_int(s, 1),
               "what is gone is not sealed");
  got = (const char *)sqlite3_column_text(s, 2);
  loaded_check(t, got && strcmp(got, "{\"unsealed\":\"it was removed\"}") == 0, "stats: %s",
               got ? got : "NULL");
  loaded_check(t, sqlite3_step(s) == SQLITE_DONE, "no more rows");
  sqlite3_finalize(s);
  close_well(t, db, "removed");
}

static sqlite3 *reader;

/* What another connection sees while a tokenizer is being stored. */
static void peek_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  loaded *t = sqlite3_user_data(ctx);
  (void)argc;
  (void)argv;
  gives(t, reader, USE, ANSWER);
  fails(t, reader, "SELECT bpe_count('abc', 'n')", SQLITE_ERROR, "no such tokenizer: n");
  gives(t, reader, ROWS, "1 258 2");
}

static void check_reader(loaded *t) {
  sqlite3 *db = open_file(t, "reader.db");
  run(t, db, "PRAGMA journal_mode = WAL");
  run(t, db, STORE("m"));
  reader = open_file(t, "reader.db");
  sqlite3_create_function(db, "peek", 0, SQLITE_UTF8, t, peek_func, NULL, NULL);
  run(t, db, "CREATE TRIGGER planted AFTER INSERT ON bpe_model_vocab WHEN NEW.id = 257"
             " BEGIN SELECT peek(); END");
  run(t, db, "CREATE TRIGGER planted2 AFTER INSERT ON bpe_model BEGIN SELECT peek(); END");
  run(t, db, STORE("n"));
  gives(t, reader, "SELECT bpe_encode('abcab', 'n')", ANSWER);
  close_well(t, reader, "reader");
  close_well(t, db, "writer");
}

/* ---- Where nothing can be written ------------------------------------------------------------- */

static void check_readonly(loaded *t) {
  char path[300];
  sqlite3 *db = open_file(t, "readonly.db");
  run(t, db, STORE("m"));
  run(t, db, "PRAGMA query_only = on");
  gives(t, db, USE, ANSWER);
  fails(t, db, STORE("n"), SQLITE_READONLY, "readonly");
  fails(t, db, "DELETE FROM bpe_tokenizers WHERE name = 'm'", SQLITE_READONLY, "readonly");
  fails(t, db, "UPDATE bpe_tokenizers SET name = 'x' WHERE name = 'm'", SQLITE_READONLY, "readonly");
  close_well(t, db, "query_only");
  snprintf(path, sizeof path, "%s/readonly.db", folder);
  db = open_as(t, path, SQLITE_OPEN_READONLY);
  gives(t, db, USE, ANSWER);
  gives(t, db, "SELECT sealed FROM bpe_tokenizers WHERE name = 'm'", "1");
  fails(t, db, STORE("n"), SQLITE_READONLY, "readonly");
  close_well(t, db, "read-only");
}

/* The disk is full after every possible number of pages. */
static void check_full(loaded *t, const char *before, const char *after) {
  sqlite3 *db = open_file(t, "full.db");
  run(t, db, "DROP TABLE IF EXISTS bpe_model");
  run(t, db, "DROP TABLE IF EXISTS bpe_model_vocab");
  run(t, db, "DROP TABLE IF EXISTS bpe_model_merges");
  run(t, db, "VACUUM");
  run(t, db, STORE("m"));
  int n = 0;
  for (int pages = 1; pages < 100; pages++) {
    char sql[100];
    snprintf(sql, sizeof sql, "PRAGMA max_page_count = %d", pages);
    run(t, db, sql);
    sqlite3_exec(db, before, NULL, NULL, NULL);
    const int rc = sqlite3_exec(db, STORE("n"), NULL, NULL, NULL);
    if (rc == SQLITE_OK) break;
    loaded_check(t, rc == SQLITE_FULL, "%d pages: %d %s", pages, rc, sqlite3_errmsg(db));
    sqlite3_exec(db, after, NULL, NULL, NULL); /* may have been rolled back already */
    gives(t, db, ROWS, "1 258 2");
    gives(t, db, USE, ANSWER);
    n++;
  }
  sqlite3_exec(db, after, NULL, NULL, NULL);
  loaded_check(t, n > 2, "the disk was full %d times", n);
  gives(t, db, ROWS, "2 516 4");
  gives(t, db, "PRAGMA integrity_check", "ok");
  close_well(t, db, "full");
}

static int ticks_left;

static int count_down(void *ctx) {
  (void)ctx;
  return ticks_left-- <= 0;
}

static void check_interrupted(loaded *t) {
  if (sqlite3_compileoption_used("OMIT_PROGRESS_CALLBACK")) return; /* nothing could interrupt it */
  sqlite3 *db = open_memory(t);
  run(t, db, STORE("m"));
  int n = 0;
  for (int ticks = 0; ticks < 100000; ticks += 1 + ticks / 3) {
    ticks_left = ticks;
    sqlite3_progress_handler(db, 10, count_down, NULL);
    const int rc = sqlite3_exec(db, STORE("n"), NULL, NULL, NULL);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    if (rc == SQLITE_OK) break;
    loaded_check(t, rc == SQLITE_INTERRUPT, "%d ticks: %d %s", ticks, rc, sqlite3_errmsg(db));
    gives(t, db, ROWS, "1 258 2");
    gives(t, db, USE, ANSWER);
    n++;
  }
  loaded_check(t, n > 5, "interrupted %d times", n);
  gives(t, db, "SELECT bpe_encode('abcab', 'n')", ANSWER);
  close_well(t, db, "interrupted");
}

/* A virtual table over a stored tokenizer is made, and stopped at every step: it says so. */
static void check_interrupted_making(loaded *t) {
  if (sqlite3_compileoption_used("OMIT_PROGRESS_CALLBACK")) return;
  sqlite3 *db = open_memory(t);
  run(t, db, STORE("m"));
  int n = 0;
  for (int ticks = 0; ticks < 100000; ticks++) {
    ticks_left = ticks;
    sqlite3_progress_handler(db, 1, count_down, NULL);
    const int rc = sqlite3_exec(db, "CREATE VIRTUAL TABLE f USING fts5(x, tokenize = 'bpe m')",
                                NULL, NULL, NULL);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    if (rc == SQLITE_OK) break;
    loaded_check(t, rc == SQLITE_INTERRUPT, "%d ticks: %d %s", ticks, rc, sqlite3_errmsg(db));
    run(t, db, "DROP TABLE IF EXISTS f"); /* it may be there, and the last word was stopped */
    n++;
  }
  loaded_check(t, n > 5, "interrupted %d times", n);
  close_well(t, db, "interrupted while making a table");
}

/* ---- A database that the first version wrote ------------------------------------------------- */

static void check_old(loaded *t) {
  char path[300];
  snprintf(path, sizeof path, "file:%s/store_1.db?immutable=1", fixtures);
  sqlite3 *db = open_as(t, path, SQLITE_OPEN_READONLY);
  gives(t, db, "SELECT group_concat(name || ' ' || sealed, ', ') FROM bpe_tokenizers"
               " WHERE schema = 'main'", "cat 1, frozen 1, trained 1");
  gives(t, db, "SELECT group_concat(substr(digest, 1, 16), ' ') FROM bpe_tokenizers"
               " WHERE schema = 'main'", "96654698f3a7b575 444f41f020298574 d8f33f54cd93a27f");
  gives(t, db, "SELECT bpe_encode('the cat ate', 'cat')", "[9,7,1,5,10,3]");
  gives(t, db, "SELECT bpe_encode(' а', 'frozen', '{\"document\":true}')", "[0,258,178,1]");
  gives(t, db, "SELECT bpe_encode('newest lowest', 'trained')", "[261,260,32,259,257]");
  gives(t, db, "SELECT group_concat(count, ' ') FROM bpe_merges('trained')", "9 9 7 7 6 6");
  close_well(t, db, "old database");
}

/* ---- The whole ------------------------------------------------------------------------------- */

static void remove_folder(void) {
  static const char *const names[] = {"busy.db", "reader.db", "readonly.db", "full.db"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

int main(int argc, char **argv) {
  loaded t;
  const char *parent = getenv("TMPDIR");
  if (argc > 1) extension = argv[1];
  if (argc > 2) fixtures = argv[2];
  snprintf(folder, sizeof folder, "%.150s/store-XXXXXX", parent && *parent ? parent : "/tmp");
  if (!mkdtemp(folder) || !loaded_begin(&t, extension)) return 1;
  check_close(&t);
  check_finalized(&t);
  check_loaded_twice(&t);
  check_running(&t);
  check_authorizer(&t);
  check_busy(&t);
  check_removed(&t);
  check_reader(&t);
  check_readonly(&t);
  check_full(&t, "SELECT 1", "SELECT 1");
  check_full(&t, "BEGIN", "COMMIT");
  check_full(&t, "SAVEPOINT s", "RELEASE s");
  check_interrupted(&t);
  check_interrupted_making(&t);
  check_old(&t);
  remove_folder();
  return loaded_end(&t);
}
