/* soak.c - runs the workers, kills some, and looks at what is left. soak.h says what is checked.
**
**     soak [--ext ./bpe] [--mode wal|rollback|both] [--threads T] [--processes P] [--kill]
**          [--seconds S] [--seed N] [--docs data/docs.sql] [--sabotage K]
**
** T workers in each of P processes (1: this one) work for S seconds, and on until every kind of
** operation has gone well at least once. --kill ends a process without warning now and then and
** starts another in its place. Afterwards: integrity_check, every digest, no row without a
** tokenizer, no memory, no open file. The seed decides what each worker asks for, not how they
** meet.
** --sabotage 1: wrong answers are expected; 2: a wrong book; 3: memory leaks; 4: a file stays open;
** 5: a wrong history; 6: rows are changed with triggers off; 7: threads share a plain variable,
** which ThreadSanitizer has to see. Then nothing is waited for.
**
** A check is a kind of operation that happened and never went wrong, or one of the last ones.
** Last line: N passed, N failed.
*/
#if !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE
#endif
#include "soak.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../test.h"

enum { LATEST_SECONDS = 300 };

const char *const kind_names[N_KINDS] = {
#define NAME_KIND(name) #name,
    KINDS(NAME_KIND)
#undef NAME_KIND
};

char *docs_sql;

static struct {
  const char *extension, *mode, *docs;
  int threads, processes, sabotage;
  bool kill;
  double seconds;
  uint64_t seed;
} options = {"./bpe", "both", "data/docs.sql", 8, 1, 0, false, 5, 1};

static unsigned long unguarded; /* sabotage 7 */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int open_files(void) {
  DIR *d = opendir("/proc/self/fd");
  int n = 0;
  if (!d) return 0;
  while (readdir(d)) n++;
  closedir(d);
  return n;
}

/* ---- Workers ----------------------------------------------------------------------------- */

static void *work(void *arg) {
  worker *w = arg;
  const unsigned long life = atomic_load(&w->s->lives[w->index]);
  w->random = w->s->seed * 0x9e3779b97f4a7c15u + (uint64_t)w->index * 1000003u + life * 7919u + 1;
  for (int i = 0; i < 20; i++) below(w, 2);
  w->pace = w->random;
  w->kind = K_reconnect;
  if (!worker_open(w) || !own_recover(w)) return NULL;
  while (!atomic_load(&w->s->stop)) {
    const bool late = atomic_load(&w->s->late);
    const uint32_t which = late ? 50 + below(w, 50) : below(w, 100);
    if (late) sqlite3_busy_timeout(w->db, 10000); /* what is missing shall come */
    w->op++;
    w->code = SQLITE_OK;
    if (w->s->sabotage == 7) unguarded++;
    if (which < 60) read_something(w);
    else if (which < 75) read_other(w);
    else if (which < 85) change_something(w);
    else if (which < 95) change_own(w);
    else keep_up(w);
    if (w->db == NULL) return NULL; /* a failure that is counted */
    if (!sqlite3_get_autocommit(w->db)) {
      wrong(w, "a transaction is left open");
      break;
    }
  }
  sqlite3_busy_timeout(w->db, 10000);
  own_check(w);
  worker_disconnect(w);
  if (w->s->sabotage == 3 && w->index == 0) (void)sqlite3_malloc(100);
  if (w->s->sabotage == 4 && w->index == 0) (void)open("/dev/null", O_RDONLY);
  return NULL;
}

/* The workers of one process. False: something failed that no worker could count. */
static bool work_together(shared *s, int process) {
  static worker workers[MAX_WORKERS];
  pthread_t threads[MAX_WORKERS];
  const int files = open_files();
  bool ok = true;
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < options.threads; i++) {
    workers[i].s = s;
    workers[i].index = process * options.threads + i;
    if (pthread_create(&threads[i], NULL, work, &workers[i]) != 0) abort(); /* a test may */
  }
  for (int i = 0; i < options.threads; i++) pthread_join(threads[i], NULL);
  if (sqlite3_memory_used() != 0) {
    printf("FAILED %lld bytes of memory are left\n", sqlite3_memory_used());
    ok = false;
  }
  if (open_files() != files) {
    printf("FAILED %d files are left open\n", open_files() - files);
    ok = false;
  }
  fflush(stdout);
  return ok;
}

/* ---- Time -------------------------------------------------------------------------------- */

static unsigned long total(const shared *s, kind k, size_t member) {
  unsigned long n = 0;
  for (int i = 0; i < s->n_workers; i++) {
    n += atomic_load((const atomic_ulong *)((const char *)&s->tallies[i][k] + member));
  }
  return n;
}

static bool all_happened(const shared *s) {
  for (kind k = 0; k < N_KINDS; k++) {
    if (total(s, k, offsetof(tally, done)) == 0) return false;
  }
  return true;
}

static bool is_over(shared *s, double began) {
  const double t = now() - began;
  if (s->sabotage == 1 || s->sabotage == 2 || s->sabotage == 5) { /* which workers have to see */
    return atomic_load(&s->failures) > 0 || t >= LATEST_SECONDS;
  }
  if (s->sabotage > 0) return t >= options.seconds;
  if (t >= options.seconds) atomic_store(&s->late, true);
  if (atomic_load(&s->failures) > 1000) return true;
  return t >= options.seconds && (all_happened(s) || t >= options.seconds + LATEST_SECONDS);
}

static void *keep_time(void *arg) {
  shared *s = arg;
  const double began = now();
  while (!is_over(s, began)) usleep(20000);
  atomic_store(&s->stop, true);
  return NULL;
}

/* Whoever waits for ever is ended, which is a failure as well. */
static void set_alarm(void) {
  alarm((unsigned)options.seconds + 3 * LATEST_SECONDS);
}

static bool run_threads(shared *s) {
  pthread_t clock;
  set_alarm();
  if (pthread_create(&clock, NULL, keep_time, s) != 0) abort();
  const bool ok = work_together(s, 0);
  pthread_join(clock, NULL);
  return ok;
}

/* ---- Processes --------------------------------------------------------------------------- */

static pid_t start(shared *s, int process) {
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    set_alarm();
    _exit(work_together(s, process) ? 0 : 1);
  }
  return pid;
}

static bool ended_well(int status, bool was_killed) {
  if (was_killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) return true;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  printf("FAILED a process ended with status %d\n", status);
  return false;
}

/* Ends one of the processes and starts its successor. */
static bool kill_one(shared *s, pid_t *pids, unsigned long *n_killed) {
  int status;
  const int i = rand() % options.processes;
  kill(pids[i], SIGKILL);
  waitpid(pids[i], &status, 0);
  for (int t = 0; t < options.threads; t++) atomic_fetch_add(&s->lives[i * options.threads + t], 1);
  pids[i] = start(s, i);
  ++*n_killed;
  return ended_well(status, true);
}

static bool run_processes(shared *s, unsigned long *n_killed) {
  pid_t pids[MAX_WORKERS];
  const double began = now();
  double next_kill = began + 0.3;
  bool ok = true;
  srand((unsigned)s->seed);
  for (int i = 0; i < options.processes; i++) pids[i] = start(s, i);
  while (!is_over(s, began)) {
    usleep(20000);
    if (!options.kill || now() < next_kill) continue;
    ok = kill_one(s, pids, n_killed) && ok;
    next_kill = now() + 0.1 + rand() % 1000 / 1000.0;
  }
  atomic_store(&s->stop, true);
  for (int i = 0; i < options.processes; i++) {
    int status;
    waitpid(pids[i], &status, 0);
    ok = ended_well(status, false) && ok;
  }
  return ok;
}

/* ---- Before and after -------------------------------------------------------------------- */

static bool make_file(shared *s, const char *path) {
  worker w = {.s = s, .random = 1, .kind = K_reconnect};
  bool ok = worker_connect(&w, path, 0);
  ok = ok &&
       sqlite3_exec(w.db, s->wal ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE",
                    NULL, NULL, NULL) == SQLITE_OK;
  ok = ok && sqlite3_exec(
                 w.db, "CREATE TABLE book(name TEXT PRIMARY KEY, variant INTEGER, sealed INTEGER)",
                 NULL, NULL, NULL) == SQLITE_OK;
  ok = ok && sqlite3_exec(w.db, docs_sql, NULL, NULL, NULL) == SQLITE_OK;
  if (path == s->side_path) { /* the main file gets its tables by whoever is the first */
    ask(&w, "INSERT INTO bpe_tokenizers(name, source) VALUES('s0', ?1)", "b", &variants[0].model);
    ok = ok && went_well(&w, "s0");
    ask(&w, "INSERT INTO book(name, variant, sealed) VALUES('s0', 0, 1)", "");
  }
  ok = ok && went_well(&w, "book");
  if (!ok) printf("%s: %s\n", path, sqlite3_errmsg(w.db));
  return worker_disconnect(&w) && ok;
}

static bool is_ok(worker *w, const char *sql, const char *expected) {
  const int rc = ask(w, sql, "");
  const bool has = rc == SQLITE_ROW || rc == SQLITE_DONE;
  if (has && w->column[0].data && strcmp(w->column[0].data, expected) == 0) return true;
  printf("  %s: %s\n", sql, has && w->column[0].data ? w->column[0].data : w->message);
  return false;
}

/* Everything that is true of a file at rest. */
static void check_file(shared *s, const char *path, bool is_main) {
  worker w = {.s = s, .random = 1, .kind = K_compare};
  if (!CHECK(worker_connect(&w, path, 0))) return;
  if (s->sabotage == 6) {
    sqlite3_db_config(w.db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_exec(w.db, "DELETE FROM bpe_model_vocab WHERE id = 255", NULL, NULL, NULL);
  }
  CHECK(is_ok(&w, "PRAGMA integrity_check", "ok"));
  CHECK(is_ok(&w, "PRAGMA journal_mode", s->wal ? "wal" : "delete"));
  CHECK(is_ok(&w,
              "SELECT count(*) FROM bpe_model_vocab WHERE model_id NOT IN"
              " (SELECT id FROM bpe_model)",
              "0"));
  CHECK(is_ok(&w,
              "SELECT count(*) FROM bpe_model_merges WHERE model_id NOT IN"
              " (SELECT id FROM bpe_model)",
              "0"));
  /* The catalogue reads and digests each one whole; what is unsealed is said to be in the book. */
  CHECK(is_ok(&w,
              "SELECT count(*) FROM bpe_tokenizers WHERE schema = 'main' AND NOT sealed AND"
              " name NOT IN (SELECT name FROM book WHERE NOT sealed)",
              "0"));
  CHECK(is_ok(&w,
              "SELECT count(*) FROM bpe_model m JOIN bpe_tokenizers t USING(name)"
              " WHERE t.sealed AND lower(hex(m.digest)) <> t.digest",
              "0"));
  const world as_main = {"main", is_main ? main_world.letter : side_world.letter, BOOKED};
  CHECK(compare_world(&w, &as_main));
  for (w.index = 0; is_main && w.index < s->n_workers; w.index++) CHECK(own_check(&w));
  CHECK(worker_disconnect(&w));
}

static void report(const shared *s, unsigned long n_killed) {
  unsigned long answers = 0, done = 0;
  printf("  %-12s %10s %10s %10s\n", "operation", "done", "busy", "answers");
  for (kind k = 0; k < N_KINDS; k++) {
    const unsigned long n = total(s, k, offsetof(tally, done));
    printf("  %-12s %10lu %10lu %10lu\n", kind_names[k], n, total(s, k, offsetof(tally, busy)),
           total(s, k, offsetof(tally, answers)));
    done += n;
    answers += total(s, k, offsetof(tally, answers));
    if (!test_check(n > 0 || s->sabotage > 0, __FILE__, __LINE__,
                    "an operation that never went well")) {
      printf("  %s\n", kind_names[k]);
    }
  }
  printf("  %lu operations, %lu answers checked, %lu wrong", done, answers,
         atomic_load(&s->failures));
  if (options.kill) printf(", %lu processes killed", n_killed);
  printf("\n");
}

static void run_mode(shared *s, bool wal) {
  const double began = now();
  unsigned long n_killed = 0;
  memset(s, 0, sizeof *s);
  s->extension = options.extension;
  s->wal = wal;
  s->n_workers = options.threads * options.processes;
  s->seed = options.seed;
  s->sabotage = options.sabotage;
  for (int i = 0; i < MAX_WORKERS; i++) {
    for (int j = 0; j < OWN; j++) atomic_init(&s->own[i][j].state[0], ABSENT);
  }
  snprintf(s->folder, sizeof s->folder, "%s/bpe-soak-XXXXXX",
           getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  if (!CHECK(mkdtemp(s->folder) != NULL)) return;
  snprintf(s->path, sizeof s->path, "%s/soak.db", s->folder);
  snprintf(s->side_path, sizeof s->side_path, "%s/side.db", s->folder);
  if (!CHECK(make_file(s, s->path) && make_file(s, s->side_path))) return;
  CHECK(sqlite3_memory_used() == 0);
  sqlite3_shutdown(); /* nothing of SQLite's goes through fork */
  const bool ok = options.processes > 1 ? run_processes(s, &n_killed) : run_threads(s);
  CHECK(ok);
  alarm(0);
  printf("soak: %s, %d processes with %d threads, seed %llu, %.1f s\n", wal ? "WAL" : "rollback",
         options.processes, options.threads, (unsigned long long)s->seed, now() - began);
  report(s, n_killed);
  check_file(s, s->path, true);
  check_file(s, s->side_path, false);
  CHECK(atomic_load(&s->failures) == 0);
  CHECK(sqlite3_memory_used() == 0);
  char command[320];
  snprintf(command, sizeof command, "rm -r '%s'", s->folder);
  CHECK(system(command) == 0);
}

static bool read_docs(void) {
  FILE *f = fopen(options.docs, "rb");
  docs_sql = calloc(1, 1 << 17);
  const size_t n = f && docs_sql ? fread(docs_sql, 1, (1 << 17) - 1, f) : 0;
  if (f) fclose(f);
  if (n == 0) printf("cannot read %s\n", options.docs);
  return n > 0;
}

static bool take_option(const char *name, const char *value) {
  if (strcmp(name, "--ext") == 0) options.extension = value;
  else if (strcmp(name, "--mode") == 0) options.mode = value;
  else if (strcmp(name, "--docs") == 0) options.docs = value;
  else if (strcmp(name, "--threads") == 0) options.threads = atoi(value);
  else if (strcmp(name, "--processes") == 0) options.processes = atoi(value);
  else if (strcmp(name, "--seconds") == 0) options.seconds = atof(value);
  else if (strcmp(name, "--seed") == 0) options.seed = strtoull(value, NULL, 10);
  else if (strcmp(name, "--sabotage") == 0) options.sabotage = atoi(value);
  else return false;
  return true;
}

int main(int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--kill") == 0) options.kill = true;
    else if (i + 1 >= argc || !take_option(argv[i], argv[i + 1])) {
      printf("soak: not an option: %s\n0 passed, 1 failed\n", argv[i]);
      return 2;
    } else {
      i++;
    }
  }
  if (options.threads < 1 || options.processes < 1 ||
      options.threads * options.processes > MAX_WORKERS) {
    printf("soak: at most %d workers\n0 passed, 1 failed\n", MAX_WORKERS);
    return 2;
  }
  shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s == MAP_FAILED || !read_docs()) return 2;
  memset(s, 0, sizeof *s);
  s->extension = options.extension;
  if (CHECK(variants_make(s))) {
    for (int v = 0; v < VARIANTS && options.sabotage == 1; v++) {
      variants[v].answer[K_encode][v].data[1] ^= 1;
    }
    if (strcmp(options.mode, "rollback") != 0) run_mode(s, true);
    if (strcmp(options.mode, "wal") != 0) run_mode(s, false);
  }
  variants_free();
  free(docs_sql);
  munmap(s, sizeof *s);
  return test_summary();
}
