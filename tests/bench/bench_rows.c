/* bench_rows.c - rows of about 4 KB: what a person sees who counts a table of documents.
**
** Per encoding, corpus and operation, in every round: a new connection, the corpus copied into
** memory, the encoding's model loaded, then
**
**     cold   the first pass over the rows: every piece of text is new to the connection
**     warm   the same statement again, immediately
**
** Reading the rows is part of both; `scan` is that alone (each row's bytes handed to a function
** that does not look at them). The sum must be the same in every pass, and the ids of
** bpe_encode_blob as many as bpe_count says.
**
** Short rows are the prose cut to 20 bytes each: nanoseconds of a bpe_count, the second pass, beyond
** what reading the row takes.
*/
#include <stdio.h>
#include <string.h>

#include "bench.h"

static const struct operation {
  const char *name, *cold, *warm, *sql;
} operations[] = {
    {"count", "count cold", "count warm", "SELECT sum(bpe_count(body, ?2)) FROM docs"},
    {"blob", "blob cold", "blob warm",
     "SELECT sum(length(bpe_encode_blob(body, ?2))) / 4 FROM docs"},
    {"json", "json cold", "json warm", "SELECT sum(length(bpe_encode(body, ?2))) FROM docs"},
};
#define N_OPERATIONS (sizeof operations / sizeof *operations)

static double timed(sqlite3 *db, const char *sql, const char *encoding, int64_t bytes,
                    int64_t *sum) {
  const double start = cpu_seconds();
  *sum = run_integer(db, sql, NULL, 0, encoding);
  return (double)bytes * 1e-6 / (cpu_seconds() - start);
}

/* Both passes of all operations; the counts of all passes must agree. */
static void measure(bench *b, const char *encoding, const char *corpus) {
  int64_t sums[N_OPERATIONS], again;
  for (size_t i = 0; i < N_OPERATIONS; i++) {
    const struct operation *op = &operations[i];
    sqlite3 *db = open_connection(b, corpus);
    const int64_t bytes =
        run_integer(db, "SELECT sum(length(CAST(body AS BLOB))) FROM docs", NULL, 0, NULL);
    load_model(db, encoding);
    const double cold = timed(db, op->sql, encoding, bytes, &sums[i]);
    const double warm = timed(db, op->sql, encoding, bytes, &again);
    if (again != sums[i]) die("%s of %s changed on the second pass", op->name, corpus);
    figure_add(b, "rows", encoding, corpus, op->cold, "MB/s", cold);
    figure_add(b, "rows", encoding, corpus, op->warm, "MB/s", warm);
    close_connection(db);
  }
  if (sums[0] != sums[1]) die("%s: count and encode differ for %s", encoding, corpus);
  const figure *ids = figure_find(b, "rows", encoding, corpus, "ids");
  if (ids && ids->values[0] != (double)sums[0]) die("%s of %s changed", encoding, corpus);
  figure_add(b, "rows", encoding, corpus, "ids", "ids", (double)sums[0]);
}

static void measure_scan(bench *b, const char *corpus) {
  static const char sql[] = "SELECT sum(length(CAST(body AS BLOB))) FROM docs";
  sqlite3 *db = open_connection(b, corpus);
  int64_t bytes = run_integer(db, sql, NULL, 0, NULL);
  figure_add(b, "rows", "", corpus, "scan", "MB/s", timed(db, sql, NULL, bytes, &bytes));
  close_connection(db);
}

static double seconds_of(sqlite3 *db, const char *sql, const char *encoding) {
  const double start = cpu_seconds();
  (void)run_integer(db, sql, NULL, 0, encoding);
  return cpu_seconds() - start;
}

static void measure_short(bench *b) {
  static const char count[] = "SELECT sum(bpe_count(body, ?2)) FROM short";
  static const char scan[] = "SELECT sum(length(CAST(body AS BLOB))) FROM short";
  sqlite3 *db = open_connection(b, "prose");
  execute(db, "CREATE TABLE short AS WITH n(k) AS (SELECT 0 UNION ALL SELECT k + 1 FROM n"
              " WHERE k < 199) SELECT CAST(substr(CAST(body AS BLOB), 1 + 20 * k, 20) AS TEXT) AS"
              " body FROM (SELECT body FROM docs LIMIT 1000), n WHERE length(body) >= 4000");
  const double rows = (double)run_integer(db, "SELECT count(*) FROM short", NULL, 0, NULL);
  for (size_t e = 0; bench_encodings[e]; e++) {
    seconds_of(db, count, bench_encodings[e]);
    const double counting = seconds_of(db, count, bench_encodings[e]);
    const double reading = seconds_of(db, scan, NULL);
    figure_add(b, "short", bench_encodings[e], "prose", "count warm", "ns",
               (counting - reading) / rows * 1e9);
  }
  close_connection(db);
}

void rows_round(bench *b) {
  for (size_t c = 0; bench_corpora[c]; c++) {
    measure_scan(b, bench_corpora[c]);
    for (size_t e = 0; bench_encodings[e]; e++) measure(b, bench_encodings[e], bench_corpora[c]);
  }
  measure_short(b);
}

static void print_line(bench *b, const char *encoding, const char *what) {
  printf("%-12s %-11s", encoding, what);
  for (size_t c = 0; bench_corpora[c]; c++) {
    char cell[64];
    const figure *f = figure_find(b, "rows", encoding, bench_corpora[c], what);
    snprintf(cell, sizeof cell, "%.0f (%.0f-%.0f)", median(f), lowest(f), highest(f));
    printf(" %-20s", cell);
  }
  putchar('\n');
}

void rows_print(bench *b) {
  printf("\nRows of about 4 KB, MB/s of CPU time\n%-12s %-11s", "encoding", "pass");
  for (size_t c = 0; bench_corpora[c]; c++) printf(" %-20s", bench_corpora[c]);
  putchar('\n');
  print_line(b, "", "scan");
  for (size_t e = 0; bench_encodings[e]; e++) {
    for (size_t i = 0; i < N_OPERATIONS; i++) {
      print_line(b, bench_encodings[e], operations[i].cold);
      print_line(b, bench_encodings[e], operations[i].warm);
    }
  }
  printf("rows of 20 bytes, ns each:");
  for (size_t e = 0; bench_encodings[e]; e++)
    printf(" %s %.0f", bench_encodings[e],
           median(figure_find(b, "short", bench_encodings[e], "prose", "count warm")));
  putchar('\n');
}
