/* loaded.h - what test programs share that talk SQL to the built extension.
**
** A `loaded` is a database in memory with the extension in it, through SQLite's own loader, or
** linked in when compiled with -DSLT_STATIC. Checks are counted in it; loaded_end prints the
** sum as the last line and gives the exit code:
**
**     loaded t;
**     if (!loaded_begin(&t, "./bpe")) return 1;
**     sqlite3_stmt *s = loaded_prepare(&t, "SELECT bpe_count(?1, ?2)");
**     if (loaded_row(s, text, len, "gpt2", NULL)) loaded_check(&t, sqlite3_column_int(s, 0) == 3,
**                                                              "count of %s", where);
**     return loaded_end(&t);
*/
#ifndef TEST_LOADED_H
#define TEST_LOADED_H

#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#ifdef SLT_STATIC
extern int sqlite3_bpe_init(sqlite3 *, char **, const struct sqlite3_api_routines *);
#endif

enum { LOADED_STATEMENTS = 24, LOADED_SHOWN = 25 };

typedef struct loaded {
  sqlite3 *db;
  sqlite3_stmt *statements[LOADED_STATEMENTS]; /* all that were prepared, finalized at the end */
  int n_statements;
  long passed, failed;
} loaded;

static inline bool loaded_begin(loaded *t, const char *extension) {
  char *message = NULL;
  *t = (loaded){0};
  int rc = sqlite3_open(":memory:", &t->db);
#ifdef SLT_STATIC
  (void)extension;
  if (rc == SQLITE_OK) {
    rc = sqlite3_bpe_init(t->db, &message, NULL);
  }
#else
  if (rc == SQLITE_OK) {
    rc = sqlite3_db_config(t->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  }
  if (rc == SQLITE_OK) {
    rc = sqlite3_load_extension(t->db, extension, NULL, &message);
  }
#endif
  if (rc != SQLITE_OK) {
    printf("cannot load the extension: %s\n", message ? message : sqlite3_errmsg(t->db));
    sqlite3_free(message);
    sqlite3_close(t->db);
  }
  return rc == SQLITE_OK;
}

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static inline bool loaded_check(loaded *t, bool ok, const char *format, ...);

/* Counts a check; a failed one is printed, the first LOADED_SHOWN of them. Gives `ok` back. */
static inline bool loaded_check(loaded *t, bool ok, const char *format, ...) {
  if (ok) {
    t->passed++;
    return true;
  }
  if (t->failed++ < LOADED_SHOWN) {
    va_list args;
    va_start(args, format);
    printf("FAILED ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
  }
  return false;
}

/* A statement of the run's; NULL, counted as a failure, if it does not compile. */
static inline sqlite3_stmt *loaded_prepare(loaded *t, const char *sql) {
  sqlite3_stmt *s = NULL;
  const bool room = t->n_statements < LOADED_STATEMENTS;
  const int rc = room ? sqlite3_prepare_v2(t->db, sql, -1, &s, NULL) : SQLITE_FULL;
  if (loaded_check(t, rc == SQLITE_OK, "%s: %s", sql, sqlite3_errmsg(t->db))) {
    t->statements[t->n_statements++] = s;
  }
  return s;
}

/* Binds ?1 text, ?2 tokenizer, ?3 options, as far as the statement has them and they are not
** NULL, and steps once: true if there is a row. `text` must live until the next call. */
static inline bool loaded_row(sqlite3_stmt *s, const char *text, size_t len, const char *tokenizer,
                              const char *options) {
  sqlite3_reset(s);
  sqlite3_clear_bindings(s);
  sqlite3_bind_text64(s, 1, text ? text : "", len, SQLITE_STATIC, SQLITE_UTF8);
  if (tokenizer) {
    sqlite3_bind_text(s, 2, tokenizer, -1, SQLITE_TRANSIENT);
  }
  if (options) {
    sqlite3_bind_text(s, 3, options, -1, SQLITE_TRANSIENT);
  }
  return sqlite3_step(s) == SQLITE_ROW;
}

/* Whether a column is a BLOB of exactly these bytes. */
static inline bool loaded_blob_is(sqlite3_stmt *s, int column, const void *bytes, size_t len) {
  const void *got = sqlite3_column_blob(s, column);
  return sqlite3_column_type(s, column) == SQLITE_BLOB &&
         (size_t)sqlite3_column_bytes(s, column) == len && (len == 0 || !memcmp(got, bytes, len));
}

static inline int loaded_end(loaded *t) {
  for (int i = 0; i < t->n_statements; i++) {
    sqlite3_finalize(t->statements[i]);
  }
  const int rc = sqlite3_close(t->db);
  loaded_check(t, rc == SQLITE_OK, "close: result code %d", rc);
  printf("%ld passed, %ld failed\n", t->passed, t->failed);
  return t->failed > 0 || t->passed == 0;
}

#endif
