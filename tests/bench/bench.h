/* bench.h - what the parts of the benchmark share: settings, clocks, figures, connections.
**
** A figure is one thing measured several times. Parts add a value per round, in any order, and
** print tables of medians when all rounds are done:
**
**     figure_add(b, "rows", "cl100k_base", "prose", "count warm", "MB/s", mb_per_second);
**     ... later: print_median(figure_find(b, "rows", "cl100k_base", "prose", "count warm"));
**
** Nothing here judges a speed. A failing statement, an answer that changes between rounds, or a
** missing corpus ends the program with exit code 1: a figure for wrong work is worth nothing.
*/
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sqlite3.h>

#define MAX_ROUNDS 51
#define MAX_FIGURES 1024

typedef struct figure {
  const char *part, *encoding, *input, *what, *unit; /* all borrowed, literals or settings */
  double values[MAX_ROUNDS];
  int n;
} figure;

typedef struct bench {
  const char *self;  /* argv[0], to start again for a measurement in a fresh process */
  const char *ext;   /* the extension, as given to load_extension */
  const char *db;    /* corpora.db of make_corpora.py */
  const char *shell; /* the sqlite3 shell */
  int rounds;
  figure *figures;
  int n_figures;
} bench;

extern const char *const bench_encodings[]; /* those whose speed is measured; NULL ends it */
extern const char *const bench_corpora[];   /* tables of b->db; NULL ends it */

_Noreturn void die(const char *format, ...);

double cpu_seconds(void);  /* of this thread */
double wall_seconds(void); /* since some fixed moment */
double resident_mb(void);  /* of this process, in 10^6 bytes */
double peak_mb(void);      /* the most that it ever was */

figure *figure_find(bench *, const char *part, const char *encoding, const char *input,
                    const char *what);
void figure_add(bench *, const char *part, const char *encoding, const char *input,
                const char *what, const char *unit, double value);
double median(const figure *);
double lowest(const figure *);
double highest(const figure *);

/* A connection with the extension loaded, and with corpus (if any) copied into its table docs. */
sqlite3 *open_connection(const bench *, const char *corpus);
void close_connection(sqlite3 *);
void execute(sqlite3 *, const char *sql);
/* Loads the encoding's model, so that what is timed next is encoding alone. */
void load_model(sqlite3 *, const char *encoding);
/* Runs one statement that gives one integer. text may be NULL; ?1 = text, ?2 = encoding. */
int64_t run_integer(sqlite3 *, const char *sql, const char *text, size_t len, const char *encoding);

/* The parts. Each measures one round, or prints its tables. */
void rows_round(bench *);
void rows_print(bench *);
void long_round(bench *);
void long_print(bench *);
void threads_round(bench *);
void threads_print(bench *);
void start_round(bench *);
void start_print(bench *);
void memory_measure(bench *);
void memory_print(bench *);
int memory_child(bench *, const char *encoding); /* what the fresh process does */

#endif
