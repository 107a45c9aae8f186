/* bench_threads.c - connections at once: does one more thread give one more share?
**
** Each thread has a connection of its own with the corpus in it, and counts it, warm. Bytes a
** second of wall time of two threads at once, by those of one, which are measured right before and
** right after. On a machine where others work too the figure says little: then the two threads do
** not have two processors.
*/
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>

#include "bench.h"

enum { THREADS = 2, PASSES = 24 };

typedef struct worker {
  sqlite3 *db;
  const char *encoding;
  int64_t sum;
} worker;

static void *count_rows(void *arg) {
  worker *w = arg;
  w->sum = 0;
  for (int i = 0; i < PASSES; i++)
    w->sum += run_integer(w->db, "SELECT sum(bpe_count(body, ?2)) FROM docs", NULL, 0, w->encoding);
  return NULL;
}

/* Wall seconds of n workers at once. */
static double together(worker *w, int n) {
  pthread_t threads[THREADS];
  const double start = wall_seconds();
  for (int i = 0; i < n; i++)
    if (pthread_create(&threads[i], NULL, count_rows, &w[i]) != 0) die("no thread");
  for (int i = 0; i < n; i++) pthread_join(threads[i], NULL);
  const double seconds = wall_seconds() - start;
  for (int i = 1; i < n; i++)
    if (w[i].sum != w[0].sum) die("threads count differently");
  return seconds;
}

void threads_round(bench *b) {
  for (int e = 0; bench_encodings[e]; e++) {
    for (int c = 0; bench_corpora[c]; c++) {
      worker w[THREADS];
      for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){.db = open_connection(b, bench_corpora[c]), .encoding = bench_encodings[e]};
        count_rows(&w[i]);
      }
      const double before = together(w, 1), both = together(w, THREADS), after = together(w, 1);
      figure_add(b, "threads", bench_encodings[e], bench_corpora[c], "two", "times",
                 THREADS * (before + after) / 2 / both);
      for (int i = 0; i < THREADS; i++) close_connection(w[i].db);
    }
  }
}

void threads_print(bench *b) {
  printf("\nTwo threads, each with a connection, times one\n");
  for (int e = 0; bench_encodings[e]; e++) {
    printf("%-12s", bench_encodings[e]);
    for (int c = 0; bench_corpora[c]; c++) {
      const figure *f = figure_find(b, "threads", bench_encodings[e], bench_corpora[c], "two");
      printf("  %s %.2f (%.2f-%.2f)", bench_corpora[c], median(f), lowest(f), highest(f));
    }
    putchar('\n');
  }
}
