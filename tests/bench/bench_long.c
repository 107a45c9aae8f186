/* bench_long.c - one value of up to a megabyte, of the texts that tokenizers are slow on.
**
** Per encoding and text, in every round: prefixes of 25 KB, 100 KB and 1 MB, each given as one
** value to bpe_count and to bpe_encode_blob on a connection that has seen no text but 'hi'.
** Growth is time per byte at 1 MB over time per byte at 25 KB: about 1 is linear in the length,
** 40 would be quadratic. Below 1, fixed costs show in the short prefix.
*/
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const char *const texts[] = {"a1m",    "sp1m", "nl1m",  "punct1m", "randlet1m",
                                    "rand1m", "ab1m", "cjk1m", "digits1m"};
#define N_TEXTS (sizeof texts / sizeof *texts)

static const struct prefix {
  size_t bytes;
  const char *count, *blob; /* names of the figures */
} prefixes[] = {{25000, "count 25 KB", "blob 25 KB"},
                {100000, "count 100 KB", "blob 100 KB"},
                {SIZE_MAX, "count 1 MB", "blob 1 MB"}};
#define N_PREFIXES (sizeof prefixes / sizeof *prefixes)

static const char count_sql[] = "SELECT bpe_count(?1, ?2)";
static const char blob_sql[] = "SELECT length(bpe_encode_blob(?1, ?2)) / 4";

static char *read_text(const bench *b, const char *name, size_t *len) {
  sqlite3 *db = NULL;
  sqlite3_stmt *s = NULL;
  if (sqlite3_open_v2(b->db, &db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK ||
      sqlite3_prepare_v2(db, "SELECT body FROM long WHERE name = ?", -1, &s, NULL) != SQLITE_OK) {
    die("%s: %s", b->db, sqlite3_errmsg(db));
  }
  sqlite3_bind_text(s, 1, name, -1, SQLITE_STATIC);
  if (sqlite3_step(s) != SQLITE_ROW) die("%s has no text %s", b->db, name);
  *len = (size_t)sqlite3_column_bytes(s, 0);
  char *copy = malloc(*len);
  if (!copy) die("out of memory");
  memcpy(copy, sqlite3_column_blob(s, 0), *len);
  sqlite3_finalize(s);
  sqlite3_close(db);
  return copy;
}

static double timed(bench *b, const char *sql, const char *encoding, const char *text, size_t len,
                    int64_t *n) {
  sqlite3 *db = open_connection(b, NULL);
  load_model(db, encoding);
  const double start = cpu_seconds();
  *n = run_integer(db, sql, text, len, encoding);
  const double speed = (double)len * 1e-6 / (cpu_seconds() - start);
  close_connection(db);
  return speed;
}

/* One text and encoding: all prefixes, both operations, and how time grows between them. */
static void measure(bench *b, const char *encoding, const char *name, const char *text,
                    size_t whole) {
  double count[N_PREFIXES], blob[N_PREFIXES];
  for (size_t p = 0; p < N_PREFIXES; p++) {
    size_t len = prefixes[p].bytes < whole ? prefixes[p].bytes : whole;
    while (len < whole && ((unsigned char)text[len] & 0xC0) == 0x80) len--;
    int64_t counted, encoded;
    count[p] = timed(b, count_sql, encoding, text, len, &counted);
    blob[p] = timed(b, blob_sql, encoding, text, len, &encoded);
    if (counted != encoded) die("%s: count and encode differ for %s", encoding, name);
    figure_add(b, "long", encoding, name, prefixes[p].count, "MB/s", count[p]);
    figure_add(b, "long", encoding, name, prefixes[p].blob, "MB/s", blob[p]);
  }
  figure_add(b, "long", encoding, name, "count growth", "", count[0] / count[N_PREFIXES - 1]);
  figure_add(b, "long", encoding, name, "blob growth", "", blob[0] / blob[N_PREFIXES - 1]);
}

void long_round(bench *b) {
  for (size_t t = 0; t < N_TEXTS; t++) {
    size_t whole;
    char *text = read_text(b, texts[t], &whole);
    for (size_t e = 0; bench_encodings[e]; e++) {
      measure(b, bench_encodings[e], texts[t], text, whole);
    }
    free(text);
  }
}

static void print_line(bench *b, const char *encoding, const char *text) {
  printf("%-12s %-10s", encoding, text);
  for (int blob = 0; blob < 2; blob++) {
    for (size_t p = 0; p < N_PREFIXES; p++) {
      const char *what = blob ? prefixes[p].blob : prefixes[p].count;
      printf(" %7.1f", median(figure_find(b, "long", encoding, text, what)));
    }
    const char *growth = blob ? "blob growth" : "count growth";
    printf(" %6.2f  ", median(figure_find(b, "long", encoding, text, growth)));
  }
  putchar('\n');
}

void long_print(bench *b) {
  printf("\nOne value, MB/s of CPU time; growth = time per byte at 1 MB over that at 25 KB\n"
         "%-12s %-10s %23s %7s  %23s %7s\n%-12s %-10s",
         "", "", "bpe_count", "", "bpe_encode_blob", "", "encoding", "text");
  for (int i = 0; i < 2; i++) printf(" %7s %7s %7s %6s  ", "25 KB", "100 KB", "1 MB", "growth");
  putchar('\n');
  for (size_t e = 0; bench_encodings[e]; e++) {
    for (size_t t = 0; t < N_TEXTS; t++) print_line(b, bench_encodings[e], texts[t]);
  }
}
