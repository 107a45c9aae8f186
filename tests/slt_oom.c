/* slt_oom.c - every allocation of a record fails in turn.
**
** SQLite's allocator is wrapped before SQLite starts. A record is then run with allocation 0
** failing, then 1, 2, ... until a run has fewer allocations than that: once only, or that one
** and all later ones (sticky). An attempt must answer SQLITE_NOMEM, or exactly what the record
** answers with memory to spare; everything else means that a failure was swallowed or
** misreported. The whole series runs twice, because the first one passes through what is made
** only once (a tokenizer loaded, a virtual table connected) and the second one does not.
**
** An attempt must not change what the next one sees. SELECT, VALUES and EXPLAIN run as they are;
** anything else runs in a savepoint that is rolled back. Where that cannot be, the record runs
** once, without failures, and is counted as uninjected: transaction control, PRAGMA, ATTACH,
** VACUUM, and whatever comes inside a transaction of the test, because running out of memory
** rolls back all of it, even from a SELECT.
**
** SQLite may do without the text of an error message: when an allocation fails in a part that it
** marks as benign, the code alone must be right.
**
** Lookaside memory is off: it would hide small allocations. Past LONG allocations the steps
** grow, so that a long record costs n*log(n) and not n*n.
*/
#include "slt.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { LONG = 2000 };

/* ---- The allocator -------------------------------------------------------------------------- */

static sqlite3_mem_methods original;
static struct {
  bool armed, sticky, broken;
  int64_t left; /* allocations that still succeed */
  int64_t fired;
  int benign;        /* how deep in benign parts */
  bool has_benign;   /* SQLite reports them */
  bool first_benign; /* the first failure came in one, or that is not known */
} injector;

static void begin_benign(void) {
  injector.has_benign = true;
  injector.benign++;
}

static void end_benign(void) {
  injector.benign--;
}

static bool must_fail(void) {
  if (!injector.armed || injector.broken) return false;
  if (injector.left > 0) {
    injector.left--;
    return false;
  }
  if (injector.fired > 0 && !injector.sticky) return false;
  if (injector.fired++ == 0) injector.first_benign = injector.benign > 0 || !injector.has_benign;
  return true;
}

static void *failing_malloc(int n) {
  return must_fail() ? NULL : original.xMalloc(n);
}

static void *failing_realloc(void *p, int n) {
  return must_fail() ? NULL : original.xRealloc(p, n);
}

bool oom_install(void) {
  if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &original) != SQLITE_OK) return false;
  sqlite3_mem_methods failing = original;
  failing.xMalloc = failing_malloc;
  failing.xRealloc = failing_realloc;
  sqlite3_test_control(SQLITE_TESTCTRL_BENIGN_MALLOC_HOOKS, begin_benign, end_benign);
  return sqlite3_config(SQLITE_CONFIG_MALLOC, &failing) == SQLITE_OK &&
         sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) == SQLITE_OK;
}

void oom_break(void) {
  injector.broken = true;
}

static void arm(int64_t k, bool sticky) {
  injector.left = k;
  injector.fired = 0;
  injector.sticky = sticky;
  injector.armed = true;
}

/* Whether an allocation failed since arm(). */
static bool disarm(void) {
  injector.armed = false;
  return injector.fired > 0;
}

static int64_t after(int64_t k) {
  return k + 1 + k / LONG;
}

/* ---- Records -------------------------------------------------------------------------------- */

static const char *skip_to_word(const char *sql) {
  for (;;) {
    sql += strspn(sql, " \t\r\n;(");
    if (strncmp(sql, "--", 2) != 0) return sql;
    sql += strcspn(sql, "\n");
  }
}

static bool starts_with(const char *sql, const char *const *words) {
  const char *word = skip_to_word(sql);
  const size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
  for (; *words; words++)
    if (strlen(*words) == n && strncasecmp(*words, word, n) == 0) return true;
  return false;
}

static bool only_reads(const char *sql) {
  static const char *const words[] = {"SELECT", "VALUES", "EXPLAIN", NULL};
  return starts_with(sql, words);
}

static bool runs_alone(const char *sql) {
  static const char *const words[] = {"BEGIN",     "COMMIT",  "END",    "ROLLBACK",
                                      "SAVEPOINT", "RELEASE", "PRAGMA", "ATTACH",
                                      "DETACH",    "VACUUM",  NULL};
  return starts_with(sql, words);
}

static bool calls_bpe(const char *sql) {
  for (; *sql; sql++)
    if (strncasecmp(sql, "bpe_", 4) == 0) return true;
  return false;
}

static bool is_nomem(const outcome *o) {
  return o->rc == SQLITE_NOMEM || o->extrc == SQLITE_IOERR_NOMEM;
}

/* A failure whose message got lost where SQLite allows that. */
static bool lost_message(const outcome *o) {
  return o->rc != SQLITE_OK && injector.first_benign &&
         strcmp(text_str(&o->error), sqlite3_errstr(o->extrc)) == 0;
}

static bool same_answer(const outcome *got, const outcome *real, bool lost) {
  return lost ? got->extrc == real->extrc : outcome_equal(got, real);
}

static bool undo(sqlite3 *db) {
  if (sqlite3_get_autocommit(db)) return true; /* running out of memory undid it already */
  return sqlite3_exec(db, "ROLLBACK TO slt_oom", NULL, NULL, NULL) == SQLITE_OK &&
         sqlite3_exec(db, "RELEASE slt_oom", NULL, NULL, NULL) == SQLITE_OK;
}

/* One run with allocation k failing. False: the savepoint could not be handled. */
static bool attempt(session *s, sqlite3 *db, const command *c, const char *sql, int64_t k,
                    outcome *o, bool *fired) {
  const bool guarded = !only_reads(sql);
  if (guarded && sqlite3_exec(db, "SAVEPOINT slt_oom", NULL, NULL, NULL) != SQLITE_OK) return false;
  arm(k, s->set->oom == OOM_STICKY);
  record_run(s, db, c, sql, o);
  *fired = disarm();
  return !guarded || undo(db);
}

static void describe(const outcome *o, text *out) {
  if (o->rc != SQLITE_OK) text_printf(out, "error %d: %s", o->extrc, text_str(&o->error));
  else if (o->fault.len) text_append_str(out, text_str(&o->fault));
  else if (o->n_cells == 0) text_printf(out, "no values, %lld changes", (long long)o->changes);
  else text_printf(out, "%zu values, the first: %.200s", o->n_cells, o->values.data);
}

/* A record under injection, and the first answers that were not NOMEM: [1] a message lost. */
typedef struct series {
  session *s;
  const script *sc;
  const node *n;
  const char *sql;
  struct {
    bool is_set;
    outcome o;
    int64_t k;
  } survivors[2];
} series;

static void report_difference(series *r, int64_t k, const outcome *got, const outcome *real) {
  text a = {0}, b = {0};
  describe(got, &a);
  describe(real, &b);
  report(r->s, r->sc, r->n, "with allocation %lld failing: neither NOMEM nor the right result",
         (long long)k);
  printf("  SQL: %.2000s\n  then:    %s\n  without: %s\n", r->sql, text_str(&a), text_str(&b));
  text_free(&a);
  text_free(&b);
}

/* False: a difference was reported. */
static bool judge(series *r, int64_t k, outcome *o) {
  session *s = r->s;
  s->injected++;
  if (is_nomem(o)) {
    s->nomem++;
    if (o->in_step && calls_bpe(r->sql)) s->nomem_in_bpe++;
    return true;
  }
  const bool lost = lost_message(o);
  if (!r->survivors[lost].is_set) {
    r->survivors[lost].is_set = true;
    r->survivors[lost].k = k;
    r->survivors[lost].o = *o;
    *o = (outcome){0};
    return true;
  }
  if (same_answer(o, &r->survivors[lost].o, lost)) return true;
  report_difference(r, k, o, &r->survivors[lost].o);
  return false;
}

/* Notes the record when running out of memory at allocation k leaves memory behind again and
** again. A cache that is still filling does that too, so this counts only if the file leaks. */
static bool suspect_leak(series *r, const command *c, sqlite3 *db, int64_t k, outcome *o) {
  for (int again = 0; again < 3; again++) {
    bool fired;
    const sqlite3_int64 before = sqlite3_memory_used();
    if (!attempt(r->s, db, c, r->sql, k, o, &fired)) return false;
    if (sqlite3_memory_used() <= before) return true;
  }
  if (r->s->suspects.len < 2000)
    text_printf(&r->s->suspects, "%s:%zu: with allocation %lld failing, memory seems to leak\n",
                r->sc->path, r->n->line + 1, (long long)k);
  return true;
}

/* All attempts, one after the other. False: stop, a failure was reported. */
static bool run_series(series *r, const command *c, sqlite3 *db) {
  outcome o = {0};
  bool ok = true, fired = true;
  for (int64_t k = 0; ok && fired; k = after(k)) {
    const sqlite3_int64 before = sqlite3_memory_used();
    bool undone = attempt(r->s, db, c, r->sql, k, &o, &fired);
    if (undone && fired) ok = judge(r, k, &o);
    if (undone && fired && sqlite3_memory_used() > before) undone = suspect_leak(r, c, db, k, &o);
    if (!undone) {
      report(r->s, r->sc, r->n, "the savepoint failed: %s", sqlite3_errmsg(db));
      ok = false;
    }
  }
  outcome_free(&o);
  return ok;
}

void oom_record(session *s, const script *sc, const node *n, const command *c, const char *sql,
                sqlite3 *db, outcome *real) {
  series r = {.s = s, .sc = sc, .n = n, .sql = sql};
  if (runs_alone(sql) || !sqlite3_get_autocommit(db)) {
    s->uninjected++;
    record_run(s, db, c, sql, real);
    return;
  }
  if (calls_bpe(sql)) s->bpe_records++;
  const bool ok = run_series(&r, c, db) && run_series(&r, c, db);
  record_run(s, db, c, sql, real);
  for (int lost = 0; lost < 2; lost++) {
    if (ok && r.survivors[lost].is_set && !same_answer(&r.survivors[lost].o, real, lost))
      report_difference(&r, r.survivors[lost].k, &r.survivors[lost].o, real);
    outcome_free(&r.survivors[lost].o);
  }
}

/* ---- Loading -------------------------------------------------------------------------------- */

static int64_t query_integer(sqlite3 *db, const char *sql) {
  sqlite3_stmt *stmt = NULL;
  int64_t n = -1;
  if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW)
    n = sqlite3_column_int64(stmt, 0);
  sqlite3_finalize(stmt);
  return n;
}

/* Loads with allocation k failing; k < 0: none. Returns what is registered then, 0 when loading
** was refused, -1 when closing or the memory count is wrong. */
static int64_t load_once(const settings *set, int64_t k, bool *fired, text *why) {
  const sqlite3_int64 before = sqlite3_memory_used();
  sqlite3 *db = NULL;
  int64_t n = 0;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) return -1;
  if (k >= 0) arm(k, set->oom == OOM_STICKY);
  const bool loaded = extension_load(set, db, why);
  *fired = disarm();
  if (loaded)
    n = query_integer(db, "SELECT (SELECT count(*) FROM pragma_function_list) + "
                          "(SELECT count(*) FROM pragma_module_list)");
  const bool closed = sqlite3_close(db) == SQLITE_OK;
  return closed && sqlite3_memory_used() == before ? n : -1;
}

bool oom_load(const settings *set) {
  unsigned long injected = 0, refused = 0;
  bool fired = true;
  text why = {0};
  const int64_t all = load_once(set, -1, &fired, &why);
  bool ok = all > 0;
  fired = true;
  for (int64_t k = 0; ok && fired; k = after(k)) {
    text_clear(&why);
    const int64_t n = load_once(set, k, &fired, &why);
    injected += fired;
    refused += n == 0;
    ok = n == 0 ? fired : n == all;
    if (!ok)
      printf("loading with allocation %lld failing: %s\n", (long long)k,
             n < 0   ? "a leak, or the connection does not close"
             : n > 0 ? "loaded, but something is missing"
                     : text_str(&why));
  }
  if (ok && set->extension && refused == 0) {
    puts("loading: no failed allocation was ever noticed");
    ok = false;
  }
  printf("loading: %lu allocations failed, %lu times refused\n", injected, refused);
  text_free(&why);
  return ok;
}
