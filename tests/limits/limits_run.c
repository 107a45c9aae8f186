/* limits_run.c - one run of a statement that something may end. See limits.h. */
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L
#endif
#include "limits.h"

#include "../../ext/ext.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

extern int sqlite3_bpe_init(sqlite3 *, char **, const struct sqlite3_api_routines *);

static double seconds_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- The run at hand -------------------------------------------------------------------------- */

/* Read and written by the thread that runs the statement, but for what is atomic. */
static struct {
  wish wish;
  clockid_t clock;
  double start;
  bool active;
  long questions, after, longest_before;
  bool stopped;
  double last, longest;
  double uttered; /* CPU time at which the wish was uttered; 0: not yet */
} now;

/* Held while the target is looked at and interrupted: once it is NULL, nothing more comes. */
static pthread_mutex_t aiming = PTHREAD_MUTEX_INITIALIZER;
static sqlite3 *target; /* of the interrupting thread; NULL: none */
static double fire_at;
static _Atomic(double) fired_at;
static atomic_bool ending;
static pthread_t interrupter;
static clockid_t worker_clock;

bool watch_gaps, deaf;

int __real_interrupted(void *conn);
int __wrap_interrupted(void *conn);

static void look(void) {
  const double t = seconds_of(now.clock);
  if (t - now.last > now.longest) {
    now.longest = t - now.last;
    now.longest_before = now.questions;
  }
  now.last = t;
}

/* Every question of the extension comes here. */
int __wrap_interrupted(void *arg) {
  conn *c = arg;
  if (!now.active) return __real_interrupted(arg);
  now.questions++;
  if (now.stopped) now.after++;
  if (watch_gaps) look();
  if (now.wish.cause == QUESTION && now.questions >= now.wish.question) {
    if (!now.stopped) now.uttered = seconds_of(now.clock);
    now.stopped = true;
    c->stopped_by = SQLITE_INTERRUPT;
    return 1;
  }
  const int stop = !deaf && __real_interrupted(arg);
  if (stop) now.stopped = true;
  if (watch_gaps) now.last = seconds_of(now.clock);
  return stop;
}

static int on_progress(void *unused) {
  (void)unused;
  if (!now.active) return 0;
  if (watch_gaps) look();
  if (now.wish.cause != PROGRESS) return 0;
  const double t = seconds_of(now.clock);
  if (t - now.start < now.wish.at) return 0;
  /* The time was up at some moment since the last look; from then on the run is late. */
  if (now.uttered == 0) now.uttered = now.start + now.wish.at;
  return 1;
}

/* ---- The other thread ------------------------------------------------------------------------- */

static void *interrupt_at(void *unused) {
  (void)unused;
  const struct timespec nap = {0, 100000};
  while (!atomic_load(&ending)) {
    pthread_mutex_lock(&aiming);
    if (target != NULL && seconds_of(worker_clock) >= fire_at) {
      atomic_store(&fired_at, seconds_of(worker_clock));
      sqlite3_interrupt(target);
      target = NULL;
    }
    pthread_mutex_unlock(&aiming);
    nanosleep(&nap, NULL);
  }
  return NULL;
}

static void aim(sqlite3 *db, double at) {
  pthread_mutex_lock(&aiming);
  target = db;
  fire_at = at;
  pthread_mutex_unlock(&aiming);
}

void runs_begin(void) {
  atomic_store(&ending, false);
  if (pthread_create(&interrupter, NULL, interrupt_at, NULL) != 0) abort();
}

void runs_end(void) {
  atomic_store(&ending, true);
  pthread_join(interrupter, NULL);
}

/* ---- Running ----------------------------------------------------------------------------------- */

sqlite3 *open_loaded(void) {
  sqlite3 *db = NULL;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK || sqlite3_bpe_init(db, NULL, NULL) != SQLITE_OK) {
    printf("cannot open: %s\n", sqlite3_errmsg(db));
    exit(1);
  }
  return db;
}

bool run_script(sqlite3 *db, const char *sql) {
  char *error = NULL;
  if (sql == NULL || sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK) return true;
  printf("%.200s: %s\n", sql, error);
  sqlite3_free(error);
  return false;
}

char *first_value(sqlite3 *db, const char *sql) {
  sqlite3_stmt *s = NULL;
  char *copy = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
    const char *text = (const char *)sqlite3_column_text(s, 0);
    copy = strdup(text != NULL ? text : "NULL");
  } else {
    printf("%s: %s\n", sql, sqlite3_errmsg(db));
  }
  sqlite3_finalize(s);
  return copy;
}

static uint64_t hash(uint64_t h, const void *from, size_t len) {
  const uint8_t *s = from;
  for (; len >= 8; s += 8, len -= 8) {
    uint64_t w;
    memcpy(&w, s, 8);
    h = (h ^ w) * UINT64_C(0x9e3779b97f4a7c15);
    h ^= h >> 32;
  }
  for (; len > 0; s++, len--) h = (h ^ *s) * UINT64_C(0x100000001b3);
  return h;
}

static uint64_t hash_row(sqlite3_stmt *s, uint64_t h) {
  for (int i = 0; i < sqlite3_column_count(s); i++) {
    const void *value = sqlite3_column_type(s, i) == SQLITE_BLOB
                            ? sqlite3_column_blob(s, i)
                            : (const void *)sqlite3_column_text(s, i);
    h = hash(h + (uint64_t)sqlite3_column_type(s, i), value, (size_t)sqlite3_column_bytes(s, i));
  }
  return h;
}

outcome run_once(sqlite3 *db, const subject *x, const input *in, wish w) {
  outcome o = {.rc = SQLITE_ERROR};
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, x->sql, -1, &s, NULL) != SQLITE_OK) {
    printf("%s: %s\n", x->sql, sqlite3_errmsg(db));
    return o;
  }
  if (x->is_blob) sqlite3_bind_blob64(s, 1, in->bytes, in->len, SQLITE_STATIC);
  else if (in->bytes) sqlite3_bind_text64(s, 1, in->bytes, in->len, SQLITE_STATIC, SQLITE_UTF8);
  if (w.cause == PROGRESS) sqlite3_progress_handler(db, 1000, on_progress, NULL);
  else if (watch_gaps) sqlite3_progress_handler(db, 1, on_progress, NULL);
  memset(&now, 0, sizeof now);
  now.clock = x->has_threads ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_THREAD_CPUTIME_ID;
  if (x->has_threads) worker_clock = CLOCK_PROCESS_CPUTIME_ID;
  else pthread_getcpuclockid(pthread_self(), &worker_clock);
  now.wish = w;
  now.start = now.last = seconds_of(now.clock);
  now.active = true;
  atomic_store(&fired_at, 0);
  if (w.cause == INTERRUPT) aim(db, now.start + w.at);
  uint64_t answer = 1;
  double own = 0; /* time of this program's after the wish, which nobody could cut short */
  while ((o.rc = sqlite3_step(s)) == SQLITE_ROW) {
    const double from = seconds_of(now.clock);
    answer = hash_row(s, answer);
    now.last = seconds_of(now.clock);
    const double fired = w.cause == INTERRUPT ? atomic_load(&fired_at) : now.uttered;
    if (fired != 0) own += now.last - (fired > from ? fired : from);
  }
  const double end = seconds_of(now.clock);
  now.active = false;
  aim(NULL, 0);
  sqlite3_progress_handler(db, 0, NULL, NULL);
  const double uttered = w.cause == INTERRUPT ? atomic_load(&fired_at) : now.uttered;
  o.answer = answer;
  o.seconds = end - now.start;
  o.asked = uttered != 0 && uttered <= end;
  o.late = o.asked ? end - uttered - own : 0;
  o.questions = now.questions;
  o.after = now.after;
  o.longest = now.longest;
  o.longest_before = now.longest_before;
  sqlite3_finalize(s);
  return o;
}
