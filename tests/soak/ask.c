/* ask.c - a worker's connection, its statements, and what counts as a failure.
**
** Statements are kept, as hosts keep them, and found by the address of their text: they outlive
** every change of what the names in them mean. One in eight is prepared anew.
*/
#include "soak.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SLT_STATIC
extern int sqlite3_bpe_init(sqlite3 *, char **, const struct sqlite3_api_routines *);
#endif

enum { SHOWN_FAILURES = 25, INSIST_MS = 20000 };

/* Xorshift; the state is never 0. */
uint32_t below(worker *w, uint32_t n) {
  w->random ^= w->random << 13;
  w->random ^= w->random >> 7;
  w->random ^= w->random << 17;
  return (uint32_t)((w->random >> 32) * n >> 32);
}

/* ---- Connections ------------------------------------------------------------------------- */

static bool load(worker *w) {
#ifdef SLT_STATIC
  return sqlite3_bpe_init(w->db, NULL, NULL) == SQLITE_OK;
#else
  char *message = NULL;
  const int rc = sqlite3_load_extension(w->db, w->s->extension, NULL, &message);
  if (rc != SQLITE_OK) printf("load: %s\n", message ? message : "no message");
  sqlite3_free(message);
  return rc == SQLITE_OK;
#endif
}

bool worker_connect(worker *w, const char *path, int flags) {
  flags |= w->random & 1 ? SQLITE_OPEN_FULLMUTEX : SQLITE_OPEN_NOMUTEX;
  flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  w->attached = false;
  if (sqlite3_open_v2(path, &w->db, flags, NULL) != SQLITE_OK) {
    return wrong(w, "open %s: %s", path, sqlite3_errmsg(w->db));
  }
  sqlite3_db_config(w->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  return load(w) || wrong(w, "the extension cannot be loaded: %s", sqlite3_errmsg(w->db));
}

bool shares_cache(const worker *w) {
  return w->index % 4 == 3;
}

/* Called as each statement begins, the extension's own among them: now and then a question takes
** its time, so that others come in between. */
static int dawdle(unsigned event, void *arg, void *stmt, void *sql) {
  worker *w = arg;
  (void)event;
  (void)stmt;
  if (((const char *)sql)[0] != 'S') return 0;
  w->pace = w->pace * 6364136223846793005u + 1442695040888963407u;
  const unsigned which = (unsigned)(w->pace >> 56);
  if (which < 4) sqlite3_sleep(1 + (int)which);
  else if (which < 32) sched_yield();
  return 0;
}

bool worker_open(worker *w) {
  static const int patience[] = {0, 20, 200, 2000};
  if (!worker_connect(w, w->s->path, shares_cache(w) ? SQLITE_OPEN_SHAREDCACHE : 0)) return false;
  sqlite3_extended_result_codes(w->db, (int)below(w, 2));
  sqlite3_busy_timeout(w->db, patience[below(w, 4)]);
  sqlite3_trace_v2(w->db, SQLITE_TRACE_STMT, dawdle, w);
  return insist(w, "PRAGMA synchronous = OFF");
}

static void forget(worker *w) {
  for (int i = 0; i < KEPT; i++) {
    sqlite3_finalize(w->kept[i].stmt);
    w->kept[i].stmt = NULL;
    w->kept[i].sql = NULL;
  }
}

bool worker_disconnect(worker *w) {
  forget(w);
  for (int i = 0; i < COLUMNS; i++) {
    free(w->column[i].data);
    w->column[i] = (piece){NULL, 0};
    w->room[i] = 0;
  }
  const int rc = sqlite3_close(w->db); /* refuses if a statement is left */
  if (rc != SQLITE_OK) {
    wrong(w, "close: %d %s", rc, sqlite3_errmsg(w->db));
    sqlite3_close_v2(w->db);
  }
  w->db = NULL;
  return rc == SQLITE_OK;
}

/* ---- Statements -------------------------------------------------------------------------- */

static void note(worker *w, int rc) {
  w->code = rc;
  snprintf(w->message, sizeof w->message, "%s", sqlite3_errmsg(w->db));
}

static sqlite3_stmt *prepared(worker *w, const char *sql) {
  int i = 0;
  while (i < KEPT && w->kept[i].sql && w->kept[i].sql != sql) i++;
  if (i == KEPT) {
    forget(w);
    i = 0;
  }
  if (w->kept[i].sql && below(w, 8) == 0) {
    sqlite3_finalize(w->kept[i].stmt);
    w->kept[i].stmt = NULL;
  }
  if (!w->kept[i].stmt) {
    const int rc =
        sqlite3_prepare_v3(w->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &w->kept[i].stmt, NULL);
    w->kept[i].sql = sql;
    if (rc != SQLITE_OK) note(w, rc);
  }
  return w->kept[i].stmt;
}

static int bind(sqlite3_stmt *stmt, int i, char how, va_list *args) {
  const piece *p;
  switch (how) {
  case 't': return sqlite3_bind_text(stmt, i, va_arg(*args, const char *), -1, SQLITE_TRANSIENT);
  case 'i': return sqlite3_bind_int(stmt, i, va_arg(*args, int));
  case 'b':
    p = va_arg(*args, const piece *);
    return sqlite3_bind_blob64(stmt, i, p->data, p->len, SQLITE_STATIC);
  default:
    p = va_arg(*args, const piece *);
    return sqlite3_bind_text64(stmt, i, p->data, p->len, SQLITE_STATIC, SQLITE_UTF8);
  }
}

static sqlite3_stmt *bound(worker *w, const char *sql, const char *binds, va_list *args) {
  sqlite3_stmt *stmt = prepared(w, sql);
  int rc = SQLITE_OK;
  for (int i = 0; stmt && binds[i] && rc == SQLITE_OK; i++) rc = bind(stmt, i + 1, binds[i], args);
  if (rc == SQLITE_OK) return stmt;
  note(w, rc);
  return NULL;
}

static void copy_columns(worker *w, sqlite3_stmt *stmt) {
  const int n = sqlite3_column_count(stmt);
  for (int i = 0; i < n && i < COLUMNS; i++) {
    const void *data = sqlite3_column_blob(stmt, i);
    const size_t len = (size_t)sqlite3_column_bytes(stmt, i);
    if (w->room[i] < len + 1) {
      char *grown = realloc(w->column[i].data, 2 * len + 64);
      if (!grown) abort(); /* a test may */
      w->column[i].data = grown;
      w->room[i] = 2 * len + 64;
    }
    if (len > 0) memcpy(w->column[i].data, data, len);
    w->column[i].data[len] = 0;
    w->column[i].len = len;
  }
}

int ask_step(worker *w, sqlite3_stmt *stmt) {
  const int rc = sqlite3_step(stmt);
  w->code = rc;
  if (rc == SQLITE_ROW) copy_columns(w, stmt);
  else if (rc != SQLITE_DONE) note(w, rc);
  return rc;
}

sqlite3_stmt *ask_rows(worker *w, const char *sql, const char *binds, ...) {
  va_list args;
  va_start(args, binds);
  sqlite3_stmt *stmt = bound(w, sql, binds, &args);
  va_end(args);
  return stmt;
}

int ask(worker *w, const char *sql, const char *binds, ...) {
  va_list args;
  va_start(args, binds);
  sqlite3_stmt *stmt = bound(w, sql, binds, &args);
  va_end(args);
  if (!stmt) return w->code;
  int rc = ask_step(w, stmt);
  /* A statement that changes something has done so when it is through. */
  while (rc == SQLITE_ROW && !sqlite3_stmt_readonly(stmt)) rc = ask_step(w, stmt);
  const int end = sqlite3_reset(stmt);
  if (rc == SQLITE_ROW && end != SQLITE_OK) note(w, rc = end);
  return rc;
}

/* ---- Verdicts ---------------------------------------------------------------------------- */

bool is_busy(const worker *w) {
  const int code = w->code & 0xff;
  return code == SQLITE_BUSY || code == SQLITE_LOCKED ||
         (code == SQLITE_ABORT && shares_cache(w)); /* whoever shares it has rolled back */
}

bool wrong(worker *w, const char *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (atomic_fetch_add(&w->s->failures, 1) < SHOWN_FAILURES) {
    printf("FAILED worker %d, operation %lu, %s: %s\n", w->index, w->op, kind_names[w->kind], text);
    fflush(stdout);
  }
  return false;
}

bool went_well(worker *w, const char *what) {
  if (w->code == SQLITE_ROW || w->code == SQLITE_DONE || w->code == SQLITE_OK) return true;
  if (is_busy(w)) return false;
  return wrong(w, "%s: %d %s", what, w->code, w->message);
}

bool column_is(const worker *w, int column, const piece *p) {
  const piece *c = &w->column[column];
  return c->len == p->len && (p->len == 0 || memcmp(c->data, p->data, p->len) == 0);
}

bool insist(worker *w, const char *sql) {
  for (int i = 0; i < INSIST_MS; i++) {
    w->code = sqlite3_exec(w->db, sql, NULL, NULL, NULL);
    snprintf(w->message, sizeof w->message, "%s", sqlite3_errmsg(w->db));
    if (!is_busy(w)) return went_well(w, sql);
    sqlite3_sleep(1);
  }
  return wrong(w, "%s: busy for ever", sql);
}

bool end_reading(worker *w) {
  const int code = w->code;
  if (sqlite3_get_autocommit(w->db)) return true;
  const char *sql = below(w, 2) ? "COMMIT" : "ROLLBACK";
  const int rc = shares_cache(w) ? SQLITE_BUSY : sqlite3_exec(w->db, sql, NULL, NULL, NULL);
  const bool ok = rc == SQLITE_OK || (shares_cache(w) && insist(w, sql));
  if (!ok) wrong(w, "the end of a reading transaction: %d %s", rc, sqlite3_errmsg(w->db));
  w->code = code;
  return ok;
}

static tally *tally_of(worker *w, kind k) {
  return &w->s->tallies[w->index][k];
}

void right(worker *w) {
  atomic_fetch_add_explicit(&tally_of(w, w->kind)->answers, 1, memory_order_relaxed);
}

void count_done(worker *w, kind k) {
  atomic_fetch_add_explicit(&tally_of(w, k)->done, 1, memory_order_relaxed);
}

void count_busy(worker *w, kind k) {
  atomic_fetch_add_explicit(&tally_of(w, k)->busy, 1, memory_order_relaxed);
}
