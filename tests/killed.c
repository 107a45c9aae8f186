/* killed.c - a process is killed while it stores, renames and removes tokenizers.
**
**     killed [./bpe] [--seed N] [--kills N] [-v] [--sabotage N]
**
** A child runs random steps (stored.h) on a database file, and after each counts it in memory that
** it shares with its parent, who kills it (SIGKILL) after a random time and opens the file: it must
** be what it was after the counted steps or after one more, each tokenizer whole with its digest,
** and integrity_check says ok. The next child goes on from there; after five, with a journal of the
** other kind. The moments are drawn from the seed, but where in its work they meet the child is
** up to the machine.
*/
#if !defined(_DEFAULT_SOURCE)
#define _DEFAULT_SOURCE /* mkdtemp, usleep, MAP_ANONYMOUS */
#endif
#include "stored.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST = 50000, PATIENCE = 10000 }; /* microseconds; milliseconds */
enum { PAGE_SIZE = 1024, MOST_STEPS = 1000000 };

/* What to break, to see that it is noticed. */
enum { SOUND, PIECEMEAL };

/* What a child has to do: steps from a shelf on, and the numbers to draw them from. */
typedef struct task {
  const char *path;
  uint64_t random;
  shelf shelf;
  bool wal;
} task;

/* Shared with the child, which alone writes it. */
typedef struct progress {
  volatile bool ready; /* the child has opened the file */
  volatile long steps;
  volatile int failed; /* a step did: its code */
} progress;

static int sabotage;
static progress *shared;

static const char *settings(uint64_t *random, bool wal) {
  static const char *const sql[] = {
      "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 20",
      "PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 3",
      "PRAGMA synchronous = NORMAL; PRAGMA cache_size = 50",
      "PRAGMA synchronous = OFF; PRAGMA cache_size = 5",
  };
  return sql[random_below(random, stored_may_spill(wal) ? 4 : 2)];
}

static char *next_step(uint64_t *random, shelf *s) {
  return sabotage == PIECEMEAL ? shelf_step_loose(random, s) : shelf_step(random, s);
}

/* The child: never returns. */
static void work(loaded *t, task k) {
  sqlite3 *db = stored_open(t, k.path, NULL);
  int rc = db ? sqlite3_exec(db, settings(&k.random, k.wal), NULL, NULL, NULL) : SQLITE_CANTOPEN;
  shared->ready = true;
  for (long i = 0; rc == SQLITE_OK && i < MOST_STEPS; i++) {
    char *sql = next_step(&k.random, &k.shelf);
    rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    if (rc == SQLITE_OK) shared->steps++;
  }
  shared->failed = rc;
  for (;;) pause();
}

/* Starts a child and kills it. False: there is none, or it failed by itself. */
static bool run_child(loaded *t, const task *k, uint32_t microseconds, int kill_number) {
  shared->ready = false;
  shared->steps = 0;
  shared->failed = 0;
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) work(t, *k);
  if (!loaded_check(t, pid > 0, "fork")) return false;
  if (kill_number % 4 > 0) /* else while it is still opening, too */
    for (int i = 0; i < PATIENCE && !shared->ready; i++) usleep(1000);
  usleep(microseconds);
  int status;
  const bool killed = kill(pid, SIGKILL) == 0 && waitpid(pid, &status, 0) == pid &&
                      WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  loaded_check(t, killed, "kill %d: the child ended by itself", kill_number);
  return loaded_check(t, shared->failed == 0, "kill %d: a step failed: %d", kill_number,
                      shared->failed) &&
         killed;
}

/* Whether the file holds the shelf after the counted steps or one more; *k moves on to it. */
static bool check_file(loaded *t, task *k, int kill_number) {
  char where[60];
  snprintf(where, sizeof where, "kill %d, after %ld steps", kill_number, shared->steps);
  sqlite3 *db = stored_open(t, k->path, NULL);
  if (!db) return false;
  settings(&k->random, k->wal);
  for (long i = 0; i < shared->steps; i++) sqlite3_free(next_step(&k->random, &k->shelf));
  task one_more = *k;
  sqlite3_free(next_step(&one_more.random, &one_more.shelf));
  char *state = stored_state(db, "main"), *now = shelf_state(&k->shelf),
       *next = shelf_state(&one_more.shelf);
  bool good = strcmp(state, now) == 0;
  if (!good && strcmp(state, next) == 0) {
    *k = one_more;
    good = true;
  }
  loaded_check(t, good, "%s:\n  holds   %s\n  and not %s\n  or      %s", where, state, now, next);
  sqlite3_free(state);
  sqlite3_free(now);
  sqlite3_free(next);
  if (good) good = stored_works(t, db, &k->shelf, where);
  if (good && kill_number % 5 == 4) { /* the next ones work with the other journal */
    k->wal = !k->wal;
    good = stored_run(t, db, k->wal ? "PRAGMA journal_mode = WAL" : "PRAGMA journal_mode = DELETE");
  }
  return loaded_check(t, sqlite3_close(db) == SQLITE_OK, "%s: close", where) && good;
}

static void run_kills(loaded *t, task *k, const stored_options *o) {
  uint64_t moments = random_seed(o->seed + 1);
  long steps = 0;
  bool good = true;
  for (int i = 0; i < o->count && good; i++) {
    good = run_child(t, k, random_below(&moments, LONGEST), i) && check_file(t, k, i);
    steps += shared->steps;
  }
  if (o->verbose)
    printf("seed %llu: %ld kills, %ld steps done\n", (unsigned long long)o->seed, o->count, steps);
  loaded_check(t, steps > 0, "no child did any step");
}

static bool run_in(loaded *t, const char *folder, const stored_options *o) {
  char path[300];
  snprintf(path, sizeof path, "%s/killed.db", folder);
  task k = {.path = path, .random = random_seed(o->seed), .shelf = shelf_empty()};
  sqlite3 *db = stored_open(t, path, NULL);
  const bool made = db && stored_make(t, db, PAGE_SIZE, "DELETE");
  sqlite3_close(db);
  if (made) run_kills(t, &k, o);
  static const char *const suffixes[] = {"", "-journal", "-wal", "-shm"};
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s/killed.db%s", folder, suffixes[i]);
    unlink(path);
  }
  return rmdir(folder) == 0;
}

int main(int argc, char **argv) {
  loaded t;
  stored_options o = {.extension = "./bpe", .seed = 1, .count_name = "--kills", .count = 50};
  const char *parent = getenv("TMPDIR");
  char folder[200];
  if (!stored_arguments(&o, argc, argv)) return 2;
  sabotage = o.sabotage;
  snprintf(folder, sizeof folder, "%.150s/killed-XXXXXX", parent && *parent ? parent : "/tmp");
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED || !mkdtemp(folder) || !stored_begin(&t, o.extension)) return 1;
  loaded_check(&t, run_in(&t, folder, &o), "%s is not empty", folder);
  return loaded_end(&t);
}
