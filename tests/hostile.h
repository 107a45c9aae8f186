/* hostile.h - what the hostile_* programs share that talk SQL: connections, checks, limits.
**
**     hostile_begin(&h, argc, argv);                a folder for files, and the extension's path
**     sqlite3 *db = hostile_open(&h, "x.db");       NULL name: in memory
**     hostile_run(&h, db, "CREATE TABLE t(x)");
**     hostile_gives(&h, db, "SELECT 1", "1");
**     hostile_fails(&h, db, "SELECT nope", SQLITE_ERROR, "no such column");
**     hostile_close(&h, db);                        everything must be given back
**     return hostile_end(&h);
**
** Every statement may take so many steps of SQLite's machine, so what never ends is a failure and
** not a hang. A statement's message must say whose it is where the code is SQLITE_ERROR.
*/
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include "loaded.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

enum { HOSTILE_TICK = 1000, HOSTILE_TICKS = 20000 }; /* steps, and how many times as many */

typedef struct hostile {
  loaded t;
  const char *extension;
  bool sabotage, full;
  char folder[200], path[300];
  long ticks;
} hostile;

static inline int hostile_tick(void *ctx) {
  hostile *h = ctx;
  return ++h->ticks > HOSTILE_TICKS;
}

static inline void hostile_begin(hostile *h, int argc, char **argv) {
  const char *parent = getenv("TMPDIR");
  *h = (hostile){.extension = "./bpe"};
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--sabotage") == 0) h->sabotage = true;
    else if (strcmp(argv[i], "--full") == 0) h->full = true;
    else h->extension = argv[i];
  }
  snprintf(h->folder, sizeof h->folder, "%.150s/hostile-XXXXXX",
           parent && *parent ? parent : "/tmp");
  if (!mkdtemp(h->folder)) exit(2);
}

static inline const char *hostile_path(hostile *h, const char *name) {
  snprintf(h->path, sizeof h->path, "%s/%s", h->folder, name);
  return h->path;
}

static inline void hostile_remove(hostile *h, const char *name) {
  unlink(hostile_path(h, name));
}

static inline bool hostile_load(hostile *h, sqlite3 *db) {
#ifdef SLT_STATIC
  (void)h;
  return sqlite3_bpe_init(db, NULL, NULL) == SQLITE_OK;
#else
  return sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL) == SQLITE_OK &&
         sqlite3_load_extension(db, h->extension, NULL, NULL) == SQLITE_OK;
#endif
}

/* A connection without the extension. */
static inline sqlite3 *hostile_open_bare(hostile *h, const char *name) {
  sqlite3 *db = NULL;
  const int rc = sqlite3_open(name ? hostile_path(h, name) : ":memory:", &db);
  loaded_check(&h->t, rc == SQLITE_OK, "open: %s", sqlite3_errmsg(db));
  sqlite3_exec(db, "PRAGMA synchronous = off", NULL, NULL, NULL);
  return db;
}

static inline sqlite3 *hostile_open(hostile *h, const char *name) {
  sqlite3 *db = hostile_open_bare(h, name);
  loaded_check(&h->t, hostile_load(h, db), "load: %s", sqlite3_errmsg(db));
  sqlite3_progress_handler(db, HOSTILE_TICK, hostile_tick, h);
  return db;
}

static inline void hostile_close(hostile *h, sqlite3 *db) {
  const int rc = sqlite3_close(db);
  loaded_check(&h->t, rc == SQLITE_OK, "close: %d", rc);
  if (rc != SQLITE_OK) sqlite3_close_v2(db);
}

static inline int hostile_try(hostile *h, sqlite3 *db, const char *sql) {
  h->ticks = 0;
  const int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  if (h->ticks > HOSTILE_TICKS) loaded_check(&h->t, false, "never ends: %s", sql);
  return rc;
}

static inline void hostile_run(hostile *h, sqlite3 *db, const char *sql) {
  const int rc = hostile_try(h, db, sql);
  loaded_check(&h->t, rc == SQLITE_OK, "%.200s: %d %s", sql, rc, sqlite3_errmsg(db));
}

static inline void hostile_fails(hostile *h, sqlite3 *db, const char *sql, int code,
                                 const char *text) {
  const int rc = hostile_try(h, db, sql);
  loaded_check(&h->t, rc == code && strstr(sqlite3_errmsg(db), text),
               "%.200s: %d %s, not %d %s", sql, rc, sqlite3_errmsg(db), code, text);
}

/* The first value of a statement as text, the caller's to sqlite3_free; NULL: it fails, has no row
** or is NULL. */
static inline char *hostile_value(hostile *h, sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  char *out = NULL;
  h->ticks = 0;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
    const char *text = (const char *)sqlite3_column_text(s, 0);
    if (text) out = sqlite3_mprintf("%s", text);
  }
  sqlite3_finalize(s);
  return out;
}

static inline void hostile_gives(hostile *h, sqlite3 *db, const char *sql, const char *expected) {
  char *got = hostile_value(h, db, sql);
  loaded_check(&h->t, got && strcmp(got, expected) == 0, "%.200s: %s, not %s", sql,
               got ? got : sqlite3_errmsg(db), expected);
  sqlite3_free(got);
}

static inline double hostile_cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static inline int hostile_end(hostile *h) {
  rmdir(h->folder);
  printf("%ld passed, %ld failed\n", h->t.passed, h->t.failed);
  return h->t.failed > 0 || h->t.passed == 0;
}

#endif
