/* bench.c - how fast bpe is through SQL: settings, rounds, the report.
**
** bench [--ext ./bpe] [--db build/corpora/corpora.db] [--shell sqlite3] [--rounds 5]
**       [--json FILE] [--only rows,long,threads,start,memory]
**
** Five parts, in files of their own: rows of 4 KB (bench_rows.c), one value of up to a megabyte
** (bench_long.c), two threads at once (bench_threads.c), a whole shell from start to end and resident
** memory (bench_process.c). One thread unless said otherwise; MB is 10^6 bytes of UTF-8 text; MB/s are of this thread's CPU time, so that a busy
** machine changes them little. The parts' rounds alternate, so that a slow minute falls on all.
**
** Absolute figures hold for one machine. To compare with another tokenizer, measure both in one
** run: peers.py does.
*/
#define _POSIX_C_SOURCE 200809L

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

const char *const bench_encodings[] = {"cl100k_base", "o200k_base", NULL};
const char *const bench_corpora[] = {"prose", "code", "multi", NULL};

void die(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("bench: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
  exit(1);
}

/* ---- Clocks and memory -------------------------------------------------------------------- */

static double seconds(clockid_t clock) {
  struct timespec t;
  if (clock_gettime(clock, &t) != 0) die("no clock");
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double cpu_seconds(void) {
  return seconds(CLOCK_THREAD_CPUTIME_ID);
}
double wall_seconds(void) {
  return seconds(CLOCK_MONOTONIC);
}

/* The line `field` of a file of /proc/self, in kB there, in MB here. */
static double process_mb(const char *path, const char *field) {
  FILE *f = fopen(path, "r");
  char line[256];
  double kb = 0;
  while (f && fgets(line, sizeof line, f)) {
    if (strncmp(line, field, strlen(field)) == 0) kb = strtod(line + strlen(field), NULL);
  }
  if (f) fclose(f);
  if (kb <= 0) die("%s has no %s", path, field);
  return kb * 1024e-6;
}

/* The kernel's running count (VmRSS) may lag by many pages; the sum over the mappings does not. */
double resident_mb(void) {
  return process_mb("/proc/self/smaps_rollup", "Rss:");
}
double peak_mb(void) {
  return process_mb("/proc/self/status", "VmHWM:");
}

/* ---- Figures ------------------------------------------------------------------------------ */

figure *figure_find(bench *b, const char *part, const char *encoding, const char *input,
                    const char *what) {
  for (int i = 0; i < b->n_figures; i++) {
    figure *f = &b->figures[i];
    if (strcmp(f->part, part) == 0 && strcmp(f->encoding, encoding) == 0 &&
        strcmp(f->input, input) == 0 && strcmp(f->what, what) == 0) {
      return f;
    }
  }
  return NULL;
}

void figure_add(bench *b, const char *part, const char *encoding, const char *input,
                const char *what, const char *unit, double value) {
  figure *f = figure_find(b, part, encoding, input, what);
  if (!f) {
    if (b->n_figures == MAX_FIGURES) die("more than %d figures", MAX_FIGURES);
    f = &b->figures[b->n_figures++];
    *f = (figure){.part = part, .encoding = encoding, .input = input, .what = what, .unit = unit};
  }
  if (f->n < MAX_ROUNDS) f->values[f->n++] = value;
}

static int compare_doubles(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

double median(const figure *f) {
  double v[MAX_ROUNDS];
  memcpy(v, f->values, sizeof v);
  qsort(v, (size_t)f->n, sizeof *v, compare_doubles);
  return f->n % 2 ? v[f->n / 2] : (v[f->n / 2 - 1] + v[f->n / 2]) / 2;
}

double lowest(const figure *f) {
  double v = f->values[0];
  for (int i = 1; i < f->n; i++) v = f->values[i] < v ? f->values[i] : v;
  return v;
}

double highest(const figure *f) {
  double v = f->values[0];
  for (int i = 1; i < f->n; i++) v = f->values[i] > v ? f->values[i] : v;
  return v;
}

/* ---- Connections -------------------------------------------------------------------------- */

void execute(sqlite3 *db, const char *sql) {
  char *message = NULL;
  if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) die("%s: %s", message, sql);
}

sqlite3 *open_connection(const bench *b, const char *corpus) {
  sqlite3 *db = NULL;
  char *message = NULL;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) die("%s", sqlite3_errmsg(db));
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  if (sqlite3_load_extension(db, b->ext, NULL, &message) != SQLITE_OK) die("%s", message);
  if (corpus) {
    char *sql = sqlite3_mprintf(
        "ATTACH %Q AS corpora; CREATE TABLE docs AS SELECT body FROM corpora.%Q; DETACH corpora",
        b->db, corpus);
    execute(db, sql);
    sqlite3_free(sql);
  }
  return db;
}

void close_connection(sqlite3 *db) {
  if (sqlite3_close(db) != SQLITE_OK) die("the connection does not close");
}

int64_t run_integer(sqlite3 *db, const char *sql, const char *text, size_t len,
                    const char *encoding) {
  sqlite3_stmt *s = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK) die("%s", sqlite3_errmsg(db));
  const int n = sqlite3_bind_parameter_count(s);
  if (n >= 1) sqlite3_bind_text64(s, 1, text, len, SQLITE_STATIC, SQLITE_UTF8);
  if (n >= 2) sqlite3_bind_text(s, 2, encoding, -1, SQLITE_STATIC);
  if (sqlite3_step(s) != SQLITE_ROW) die("%s: %s", sqlite3_errmsg(db), sql);
  const int64_t result = sqlite3_column_int64(s, 0);
  if (sqlite3_finalize(s) != SQLITE_OK) die("%s", sqlite3_errmsg(db));
  return result;
}

void load_model(sqlite3 *db, const char *encoding) {
  if (run_integer(db, "SELECT bpe_count(?1, ?2)", "hi", 2, encoding) < 1) {
    die("%s counts no token in 'hi'", encoding);
  }
}

/* ---- The report --------------------------------------------------------------------------- */

static void machine_name(char out[128]) {
  FILE *f = fopen("/proc/cpuinfo", "r");
  char line[256];
  snprintf(out, 128, "unknown");
  while (f && fgets(line, sizeof line, f)) {
    const char *colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    line[strcspn(line, "\n")] = 0;
    snprintf(out, 128, "%.100s", colon + 2);
    break;
  }
  if (f) fclose(f);
}

static void write_json(const bench *b, const char *path, const char *machine) {
  FILE *f = fopen(path, "w");
  if (!f) die("cannot write %s", path);
  fprintf(f, "{\"machine\":\"%s\",\"sqlite\":\"%s\",\"figures\":[", machine, sqlite3_libversion());
  for (int i = 0; i < b->n_figures; i++) {
    const figure *v = &b->figures[i];
    fprintf(f,
            "%s\n{\"part\":\"%s\",\"encoding\":\"%s\",\"input\":\"%s\",\"what\":\"%s\","
            "\"unit\":\"%s\",\"median\":%.4g,\"min\":%.4g,\"max\":%.4g,\"n\":%d}",
            i ? "," : "", v->part, v->encoding, v->input, v->what, v->unit, median(v), lowest(v),
            highest(v), v->n);
  }
  fputs("\n]}\n", f);
  if (fclose(f) != 0) die("cannot write %s", path);
}

/* What the project set out to reach, on the machine that its published figures are from. Another
** machine may miss a goal, so a miss is said and is no failure. "" stands for any. */
static const struct goal {
  const char *part, *encoding, *input, *what;
  double bound;
  bool at_most;
} goals[] = {
    {"rows", "cl100k_base", "prose", "count warm", 600, false},
    {"rows", "cl100k_base", "code", "count warm", 400, false},
    {"rows", "cl100k_base", "multi", "count warm", 270, false},
    {"long", "", "", "count 1 MB", 50, false},
    {"long", "", "", "blob 1 MB", 50, false},
    {"long", "", "", "count growth", 2, true},
    {"long", "", "", "blob growth", 2, true},
    {"short", "", "", "count warm", 250, true},
    {"threads", "", "", "two", 1.9, false},
    {"start", "cl100k_base", "", "shell", 20, true},
    {"start", "o200k_base", "", "shell", 30, true},
    {"memory", "", "hi", "resident", 40, true},
};

static bool matches(const char *pattern, const char *value) {
  return !*pattern || strcmp(pattern, value) == 0;
}

static void goals_print(const bench *b) {
  int n = 0, met = 0;
  putchar('\n');
  for (int i = 0; i < b->n_figures; i++) {
    const figure *f = &b->figures[i];
    for (size_t k = 0; k < sizeof goals / sizeof *goals; k++) {
      const struct goal *g = &goals[k];
      if (strcmp(g->part, f->part) != 0 || strcmp(g->what, f->what) != 0 ||
          !matches(g->encoding, f->encoding) || !matches(g->input, f->input)) {
        continue;
      }
      const double v = median(f);
      const bool good = g->at_most ? v <= g->bound : v >= g->bound;
      n++, met += good;
      if (!good) {
        printf("missed: %s %s %s %s: %.1f %s, goal %s %g\n", f->part, f->encoding, f->input,
               f->what, v, f->unit, g->at_most ? "at most" : "at least", g->bound);
      }
    }
  }
  printf("%d of %d goals met\n", met, n);
}

static bool wanted(const char *only, const char *part) {
  return !only || strstr(only, part);
}

static void run(bench *b, const char *only) {
  /* The process figures come first and fresh: they are the ones a grown heap would change. */
  if (wanted(only, "memory")) memory_measure(b);
  for (int round = 0; round < b->rounds; round++) {
    if (isatty(2)) fprintf(stderr, "\rbench: round %d of %d", round + 1, b->rounds);
    if (wanted(only, "start")) start_round(b);
    if (wanted(only, "rows")) rows_round(b);
    if (wanted(only, "long")) long_round(b);
    if (wanted(only, "threads")) threads_round(b);
  }
  if (isatty(2)) fputs("\r                              \r", stderr);
  if (wanted(only, "rows")) rows_print(b);
  if (wanted(only, "long")) long_print(b);
  if (wanted(only, "threads")) threads_print(b);
  if (wanted(only, "start")) start_print(b);
  if (wanted(only, "memory")) memory_print(b);
}

int main(int argc, char **argv) {
  bench b = {.self = argv[0],
             .ext = "./bpe",
             .db = "build/corpora/corpora.db",
             .shell = "sqlite3",
             .rounds = 5};
  const char *rounds = NULL, *json = NULL, *only = NULL, *child = NULL;
  const struct {
    const char *name, **value;
  } settings[] = {
      {"--ext", &b.ext}, {"--db", &b.db},   {"--shell", &b.shell},      {"--rounds", &rounds},
      {"--json", &json}, {"--only", &only}, {"--memory-child", &child},
  };
  for (int i = 1; i < argc; i += 2) {
    size_t k = 0;
    while (k < sizeof settings / sizeof *settings && strcmp(argv[i], settings[k].name) != 0) k++;
    if (k == sizeof settings / sizeof *settings) die("no such option: %s", argv[i]);
    if (i + 1 == argc) die("%s needs a value", argv[i]);
    *settings[k].value = argv[i + 1];
  }
  if (child) return memory_child(&b, child);
  if (rounds) b.rounds = atoi(rounds);
  if (b.rounds < 1 || b.rounds > MAX_ROUNDS) die("--rounds is 1 to %d", MAX_ROUNDS);
  b.figures = calloc(MAX_FIGURES, sizeof *b.figures);
  if (!b.figures) die("out of memory");
  char machine[128];
  machine_name(machine);
  printf("%s, SQLite %s, %d round%s: medians (lowest-highest)\n", machine, sqlite3_libversion(),
         b.rounds, b.rounds == 1 ? "" : "s");
  fflush(stdout);
  run(&b, only);
  goals_print(&b);
  if (json) write_json(&b, json, machine);
  free(b.figures);
  return 0;
}
