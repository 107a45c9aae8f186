/* bench_process.c - whole processes: how long the shell takes to a first answer, and how much
** memory an encoding keeps.
**
** start    wall time of `sqlite3 :memory: -cmd '.load ./bpe' "SELECT bpe_count('hi', ...)"`, from
**          before the process exists to after it is gone; `shell alone` is the same with
**          `SELECT 1` and nothing loaded. START_RUNS runs a round.
** memory   this program started again per encoding, with nothing in it but a connection and the
**          extension: resident bytes more after the first answer than before, and more again
**          after a pass over the multilingual corpus (the table of pieces has then grown).
*/
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

#define START_RUNS 9

extern char **environ;

static const char *const started[] = {"gpt2", "cl100k_base", "o200k_base"};
#define N_STARTED (sizeof started / sizeof *started)
static const char *const kept[] = {"gpt2",        "r50k_base",  "p50k_base",    "p50k_edit",
                                   "cl100k_base", "o200k_base", "o200k_harmony"};
#define N_KEPT (sizeof kept / sizeof *kept)

/* Runs a program, gives what it wrote, ended by NUL, and dies unless it exits with 0. */
static void run_process(const char *const argv[], char *out, size_t size) {
  int ends[2], status = -1;
  pid_t pid;
  posix_spawn_file_actions_t actions;
  if (pipe(ends) != 0) die("no pipe");
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  const int rc = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (rc != 0) die("%s: %s", argv[0], strerror(rc));
  size_t len = 0;
  for (;;) {
    const ssize_t n = read(ends[0], out + len, size - 1 - len);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || (len += (size_t)n) == size - 1) break;
  }
  out[len] = 0;
  close(ends[0]);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  if (status != 0) die("%s failed, status %d", argv[0], status);
}

static double shell_ms(const bench *b, const char *encoding) {
  char load[512], sql[128], out[64];
  snprintf(load, sizeof load, ".load %.500s", b->ext);
  snprintf(sql, sizeof sql, "SELECT bpe_count('hi', '%s')", encoding ? encoding : "");
  const char *const with[] = {b->shell, ":memory:", "-cmd", load, sql, NULL};
  const char *const without[] = {b->shell, ":memory:", "SELECT 1", NULL};
  const double start = wall_seconds();
  run_process(encoding ? with : without, out, sizeof out);
  const double ms = (wall_seconds() - start) * 1e3;
  if (strcmp(out, "1\n") != 0) die("the shell answers %s", out);
  return ms;
}

void start_round(bench *b) {
  for (size_t i = 0; i <= N_STARTED; i++) {
    const char *encoding = i ? started[i - 1] : NULL;
    figure f = {.n = 0};
    while (f.n < START_RUNS) f.values[f.n++] = shell_ms(b, encoding);
    figure_add(b, "start", encoding ? encoding : "", "hi", "shell", "ms", median(&f));
  }
}

void start_print(bench *b) {
  printf("\nThe shell from start to end, ms of wall time\n");
  for (size_t i = 0; i <= N_STARTED; i++) {
    const char *encoding = i ? started[i - 1] : "";
    const figure *f = figure_find(b, "start", encoding, "hi", "shell");
    printf("%-14s %5.1f (%.1f-%.1f)\n", i ? encoding : "shell alone", median(f), lowest(f),
           highest(f));
  }
}

int memory_child(bench *b, const char *encoding) {
  sqlite3 *db = open_connection(b, "multi");
  (void)run_integer(db, "SELECT sum(length(CAST(body AS BLOB))) FROM docs", NULL, 0, NULL);
  const double before = resident_mb();
  load_model(db, encoding);
  const double loaded = resident_mb(), peak = peak_mb();
  (void)run_integer(db, "SELECT sum(bpe_count(body, ?2)) FROM docs", NULL, 0, encoding);
  printf("%.3f %.3f %.3f\n", loaded - before, peak - before, resident_mb() - before);
  close_connection(db);
  return 0;
}

void memory_measure(bench *b) {
  for (size_t i = 0; i < N_KEPT; i++) {
    char out[128];
    const char *const argv[] = {b->self,          "--ext", b->ext, "--db", b->db,
                                "--memory-child", kept[i], NULL};
    double first, peak, pass;
    run_process(argv, out, sizeof out);
    if (sscanf(out, "%lf %lf %lf", &first, &peak, &pass) != 3) {
      die("memory of %s: %s", kept[i], out);
    }
    figure_add(b, "memory", kept[i], "hi", "resident", "MB", first);
    figure_add(b, "memory", kept[i], "hi", "peak", "MB", peak);
    figure_add(b, "memory", kept[i], "multi", "resident", "MB", pass);
  }
}

void memory_print(bench *b) {
  printf("\nResident memory, MB more than before   after 'hi'   peak until then   after multi\n");
  for (size_t i = 0; i < N_KEPT; i++) {
    printf("%-38s %10.1f %17.1f %13.1f\n", kept[i],
           median(figure_find(b, "memory", kept[i], "hi", "resident")),
           median(figure_find(b, "memory", kept[i], "hi", "peak")),
           median(figure_find(b, "memory", kept[i], "multi", "resident")));
  }
}
