/* limits.c - runs every subject under everything that may end it. See limits.h. */
#include "limits.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 40, SLACK_BYTES = 1 << 16, SLACK_BLOCKS = 24, SETTLING = 4, TRIES = 2 };

tally checks;

static struct {
  cause cause;
  long moments;    /* wishes uttered before the end of a run, of each subject */
  double least;    /* seconds of CPU time that a subject takes at least, if its input can grow */
  double bound;    /* seconds of CPU time from the wish to the end */
  uint64_t seed;
  const char *only, *from; /* the subjects whose names begin so; from that one on */
  const char *encoding;
  int cut; /* tokens of what is stored while the time is taken, 0: all */
  int sabotage; /* 1: the bound holds for nothing; 2: nobody is told to stop; 3: lax; 4: halfway */
} options = {.moments = 20, .least = 0.06, .bound = 0.050, .seed = 1, .encoding = "gpt2"};

bool check(bool held, const char *format, ...) {
  if (held) {
    checks.passed++;
    return true;
  }
  if (checks.failed++ < SHOWN) {
    va_list args;
    va_start(args, format);
    printf("FAILED ");
    vprintf(format, args);
    printf("\n");
    va_end(args);
  }
  return false;
}

uint64_t random_next(uint64_t *state) {
  uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
  return x ^ x >> 31;
}

double random_part(uint64_t *state) {
  return (double)(random_next(state) >> 11) / 9007199254740992.0;
}

/* ---- One subject -------------------------------------------------------------------------------- */

typedef struct memory {
  sqlite3_int64 bytes, blocks; /* blocks: those of the pages too */
  int pages;                   /* bytes of these */
} memory;

typedef struct state {
  sqlite3 *db;
  const subject *x;
  input in;
  outcome whole; /* of the run that nothing ended */
  char *small;   /* what the small query answers */
  memory memory; /* after a whole run */
  int n_ended;
} state;

/* SQLite's memory, but for the pages of the connection's databases, which are in memory too. */
static memory memory_now(sqlite3 *db) {
  memory m = {0};
  sqlite3_int64 high;
  int pages = 0, most;
  sqlite3_status64(SQLITE_STATUS_MEMORY_USED, &m.bytes, &high, 0);
  sqlite3_status64(SQLITE_STATUS_MALLOC_COUNT, &m.blocks, &high, 0);
  if (db != NULL) sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_USED, &pages, &most, 0);
  m.bytes -= pages;
  m.pages = pages;
  return m;
}

static bool make_of_size(state *s, size_t size) {
  free(s->in.bytes);
  s->in = (input){.bytes = malloc(size), .len = size};
  if (s->in.bytes == NULL) return false;
  s->in.len = s->x->make(s->in.bytes, size);
  return true;
}

static outcome whole_run(state *s) {
  run_script(s->db, s->x->before);
  const outcome o = run_once(s->db, s->x, &s->in, (wish){.cause = NOTHING});
  run_script(s->db, s->x->after);
  return o;
}

/* Of two runs, for a first one fills caches and the machine has other work: the shorter one. */
static bool measure(state *s) {
  const outcome first = whole_run(s);
  s->whole = whole_run(s);
  if (first.seconds < s->whole.seconds) s->whole.seconds = first.seconds;
  return first.rc == SQLITE_DONE && s->whole.rc == SQLITE_DONE && first.answer == s->whole.answer;
}

/* Finds an input that takes long enough, and what is right. */
static bool begin(state *s, sqlite3 *db, const subject *x) {
  *s = (state){.db = db, .x = x};
  size_t size = x->size;
  if (x->make != NULL && !make_of_size(s, size)) return false;
  bool fine = measure(s);
  while (x->make != NULL && fine && s->whole.seconds < options.least && size < x->most) {
    double factor = options.least / (s->whole.seconds + 0.001) * 1.1;
    if (factor > 4) factor = 4;
    if (factor < 1.2) factor = 1.2;
    size = (double)size * factor < (double)x->most ? (size_t)((double)size * factor) : x->most;
    if (!make_of_size(s, size)) return false;
    fine = measure(s);
  }
  if (!check(fine, "%s: two answers, or %d %s", x->name, s->whole.rc, sqlite3_errmsg(db)))
    return false;
  s->small = first_value(db, x->small);
  s->memory = memory_now(db);
  return s->small != NULL;
}

static void end(state *s) {
  free(s->in.bytes);
  free(s->small);
}

/* What must be true after a run, however it ended. */
static void check_after(state *s, const outcome *o, const char *how, double at) {
  const subject *x = s->x;
  memory *const had = &s->memory;
  if (o->rc == SQLITE_DONE) {
    check(o->answer == s->whole.answer, "%s, %s at %.4f: a wrong answer", x->name, how, at);
    run_script(s->db, x->after);
  } else {
    check(o->rc == SQLITE_INTERRUPT && o->asked, "%s, %s at %.4f: %d %s", x->name, how, at, o->rc,
          sqlite3_errmsg(s->db));
  }
  check(sqlite3_get_autocommit(s->db) != 0, "%s, %s at %.4f: in a transaction", x->name, how, at);
  char *small = first_value(s->db, x->small);
  check(small != NULL && strcmp(small, s->small) == 0, "%s, %s at %.4f: then %s, not %s", x->name,
        how, at, small != NULL ? small : "nothing", s->small);
  free(small);
  const memory m = memory_now(s->db);
  if (s->n_ended < SETTLING) { /* what an ended run leaves in caches shows in the first few */
    s->n_ended++;
    if (m.bytes > had->bytes) had->bytes = m.bytes;
    if (m.blocks > had->blocks) had->blocks = m.blocks;
    had->pages = m.pages;
  }
  check(m.bytes <= had->bytes + SLACK_BYTES &&
            (m.pages != had->pages || m.blocks <= had->blocks + SLACK_BLOCKS),
        "%s, %s at %.4f: %lld bytes in %lld blocks are left, not %lld in %lld", x->name, how, at,
        (long long)m.bytes, (long long)m.blocks, (long long)had->bytes, (long long)had->blocks);
}

static const char *const cause_names[] = {"nothing", "interrupt", "progress", "question", "each"};

/* Of all subjects. */
static struct {
  long subjects, runs, asked, stopped;
  double latest;
  const char *latest_of;
} sum;

/* A run may end before its moment comes: then another one is tried, but not for ever. */
static void try_subject(sqlite3 *db, const subject *x, uint64_t seed) {
  state s;
  uint64_t random = seed;
  long runs = 0, asked = 0, stopped = 0;
  double latest = 0;
  if (begin(&s, db, x)) {
    for (long i = 0; i < TRIES * options.moments && asked < options.moments; i++) {
      const double part = random_part(&random);
      const cause c = options.cause == EACH ? (cause)(INTERRUPT + i % 3) : options.cause;
      const char *how = cause_names[c];
      if (c == QUESTION && s.whole.questions == 0) continue;
      const wish w = {.cause = c,
                      .at = part * s.whole.seconds,
                      .question = 1 + (long)(part * (double)s.whole.questions)};
      run_script(db, x->before);
      const outcome o = run_once(db, x, &s.in, w);
      check_after(&s, &o, how, w.at);
      runs++;
      asked += o.asked;
      stopped += o.rc != SQLITE_DONE;
      if (!o.asked) s.whole.seconds = o.seconds; /* so long does it take now */
      if (o.late > latest) latest = o.late;
      check(o.late < options.bound && options.sabotage != 1, "%s, %s at %.4f: %.1f ms late", x->name,
            how, w.at, o.late * 1e3);
      if (c == QUESTION)
        check(o.after == 0, "%s, question %ld: %ld asked after it", x->name, w.question, o.after);
    }
    printf("%-30s %6.3f s %7ld questions %5ld runs %5ld asked %5ld stopped %6.1f ms late at most\n",
           x->name, s.whole.seconds, s.whole.questions, runs, asked, stopped, latest * 1e3);
    fflush(stdout);
    sum.runs += runs;
    sum.asked += asked;
    sum.stopped += stopped;
    if (latest > sum.latest) {
      sum.latest = latest;
      sum.latest_of = x->name;
    }
  }
  end(&s);
}

static void measure_gaps(sqlite3 *db, const subject *x) {
  state s;
  if (begin(&s, db, x)) {
    watch_gaps = true;
    run_script(db, x->before);
    const outcome o = run_once(db, x, &s.in, (wish){.cause = NOTHING});
    run_script(db, x->after);
    watch_gaps = false;
    check(o.longest < options.bound / 2, "%s: asks nothing for %.1f ms, before question %ld",
          x->name, o.longest * 1e3, o.longest_before);
    printf("%-30s %6.3f s %7ld questions %6.2f ms between two at most (%ld)\n", x->name,
           s.whole.seconds, o.questions, o.longest * 1e3, o.longest_before);
    fflush(stdout);
  }
  end(&s);
}

/* ---- All ------------------------------------------------------------------------------------------ */

static void all_subjects(bool gaps) {
  sqlite3_initialize();
  const memory before = memory_now(NULL);
  sqlite3 *db = open_loaded();
  uint64_t random = options.seed;
  bool begun = options.from == NULL;
  printf("seed %llu\n", (unsigned long long)options.seed);
  if (!check(subjects_prepare(db, options.encoding, options.cut), "preparation")) exit(1);
  for (const subject *x = subjects; x->name != NULL; x++) {
    const uint64_t seed = random_next(&random);
    begun = begun || strcmp(options.from, x->name) == 0;
    if (!begun) continue;
    if (options.only != NULL && strncmp(options.only, x->name, strlen(options.only)) != 0) continue;
    sum.subjects++;
    if (gaps) measure_gaps(db, x);
    else try_subject(db, x, seed);
  }
  check(sum.subjects > 0, "no subject");
  if (!gaps)
    printf("%ld subjects, %ld runs, %ld asked to stop, %ld stopped, %.1f ms late at most (%s)\n",
           sum.subjects, sum.runs, sum.asked, sum.stopped, sum.latest * 1e3,
           sum.latest_of != NULL ? sum.latest_of : "none");
  char *whole = first_value(db, "PRAGMA integrity_check");
  check(whole != NULL && strcmp(whole, "ok") == 0, "integrity: %s", whole);
  free(whole);
  check(sqlite3_close(db) == SQLITE_OK, "close");
  const memory after = memory_now(NULL);
  check(before.bytes == after.bytes && before.blocks == after.blocks,
        "%lld bytes in %lld blocks are lost", (long long)(after.bytes - before.bytes),
        (long long)(after.blocks - before.blocks));
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "";
  for (int i = 2; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--moments") == 0) options.moments = atol(argv[i + 1]);
    else if (strcmp(argv[i], "--least") == 0) options.least = atof(argv[i + 1]);
    else if (strcmp(argv[i], "--bound-ms") == 0) options.bound = atof(argv[i + 1]) / 1e3;
    else if (strcmp(argv[i], "--seed") == 0) options.seed = strtoull(argv[i + 1], NULL, 10);
    else if (strcmp(argv[i], "--only") == 0) options.only = argv[i + 1];
    else if (strcmp(argv[i], "--from") == 0) options.from = argv[i + 1];
    else if (strcmp(argv[i], "--encoding") == 0) options.encoding = argv[i + 1];
    else if (strcmp(argv[i], "--cut") == 0) options.cut = atoi(argv[i + 1]);
    else if (strcmp(argv[i], "--sabotage") == 0) options.sabotage = atoi(argv[i + 1]);
    else mode = "";
  }
  for (int c = INTERRUPT; c <= EACH; c++)
    if (strcmp(mode, cause_names[c]) == 0) options.cause = (cause)c;
  deaf = options.sabotage == 2;
  lax = options.sabotage == 3;
  halfway = options.sabotage == 4;
  if (options.cause != NOTHING || strcmp(mode, "gaps") == 0) {
    runs_begin();
    all_subjects(options.cause == NOTHING);
    runs_end();
  } else if (strcmp(mode, "length") == 0) {
    check_lengths();
  } else if (strcmp(mode, "heap") == 0) {
    check_heap();
  } else if (strcmp(mode, "others") == 0) {
    check_others();
  } else {
    printf("usage: limits interrupt|progress|question|each|gaps|length|heap|others [--moments N]\n"
           "  [--least SECONDS] [--bound-ms N] [--seed N] [--only NAME] [--from NAME]\n"
           "  [--encoding NAME] [--cut TOKENS]\n");
    return 2;
  }
  printf("%ld passed, %ld failed\n", checks.passed, checks.failed);
  return checks.failed != 0 || checks.passed == 0;
}
