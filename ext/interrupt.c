/* interrupt.c - lets sqlite3_interrupt, progress handlers and their time limits stop long loops.
**
** SQLite asks a progress handler only while it runs byte code, and none runs while a function
** works on one big text. So every TICK_NS this file runs a small statement of its own, whose byte
** code gives the handler its turn; a handler's refusal, or an interrupt, comes back as the
** statement's result code. From SQLite 3.41 on, sqlite3_is_interrupted answers for interrupts at
** every call, and the statement is only for the handlers.
**
** A handler is called once per N steps, and N is the host's choice. SMALL_ROWS give it some 3000
** steps, which is enough for the common N of 1000; every BIG_EVERY-th tick runs BIG_ROWS, which
** is some 75000 steps and 2 to 3 ms, for hosts that chose a large N.
**
** It keeps no statement: one that outlives its call would make sqlite3_close answer BUSY. It
** refuses nothing: where the statement cannot run (an authorizer forbids it), the loop goes on.
*/
#if !defined(_WIN32) && !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200112L
#endif
#include "ext.h"

#ifdef _WIN32
#include <windows.h>
#else
#include <time.h>
#endif

enum { SMALL_ROWS = 200, BIG_ROWS = 5000, BIG_EVERY = 16 };
#define TICK_NS INT64_C(10000000)

static int64_t monotonic_ns(void) {
#ifdef _WIN32
  return (int64_t)GetTickCount64() * 1000000;
#else
  struct timespec t;
  if (clock_gettime(CLOCK_MONOTONIC, &t) != 0) return 0;
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
#endif
}

/* Runs the statement. SQLITE_INTERRUPT or SQLITE_NOMEM: stop, with that code; else go on. */
static int tick(sqlite3 *db, int rows) {
  static const char sql[] =
      "WITH RECURSIVE tick(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM tick WHERE n < ?1)"
      " SELECT max(n) FROM tick";
  sqlite3_stmt *stmt = NULL;
  int rc = sqlite3_prepare_v2(db, sql, (int)sizeof sql, &stmt, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_bind_int(stmt, 1, rows);
  if (rc == SQLITE_OK) rc = sqlite3_step(stmt);
  sqlite3_finalize(stmt);
  return rc == SQLITE_INTERRUPT || rc == SQLITE_NOMEM ? rc : SQLITE_OK;
}

int interrupted(void *arg) {
  conn *c = arg;
#if SQLITE_VERSION_NUMBER >= 3041000
  c->stopped_by = SQLITE_INTERRUPT;
  if (HAVE(3041000, is_interrupted) && sqlite3_is_interrupted(c->db)) return 1;
#endif
  const int64_t now = monotonic_ns();
  if (now < c->next_tick) return 0;
  c->ticks++;
  c->stopped_by = tick(c->db, c->ticks % BIG_EVERY == 0 ? BIG_ROWS : SMALL_ROWS);
  c->next_tick = monotonic_ns() + TICK_NS;
  return c->stopped_by != SQLITE_OK;
}
