/* load.c - the extension is loaded, used and closed again thousands of times in one process.
**
**     load [--ext ./bpe] [--cycles N] [--threads T] [--sabotage K]
**
** A cycle opens a connection, loads the extension, counts with a built-in encoding and with a
** stored tokenizer, and closes. Cycles run one after the other, with another copy of the extension
** by turns, in T threads at once, through sqlite3_auto_extension, and as a crowd of connections
** that open and close in any order. What a process has (heap in use, resident memory, open
** files, mappings) must be at the end what it was after the first tenth. Then the ways in which one
** connection can meet the extension twice.
** --sabotage 1: a cycle leaks memory of SQLite's; 2: a file; 3: heap; 4: a mapping; 5: more
** ids are decoded than there are, which only AddressSanitizer sees; 6: ids are where none may be,
** which only UndefinedBehaviorSanitizer sees (load-static).
** Last line: N passed, N failed.
*/
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* mallinfo2, malloc_trim */
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../test.h"

#ifdef SLT_STATIC
#include "../../src/bpe.h"
extern int sqlite3_bpe_init(sqlite3 *, char **, const struct sqlite3_api_routines *);
#endif

#define STORED "{\"pattern\":\"none\",\"merges\":[[97,98],[256,99]]}"

enum { CROWD = 16, RSS_SLACK_KB = 1024, HEAP_SLACK = 128 * 1024 };

static const char *extension = "./bpe";
static char folder[200], copy_path[300], file_path[300];
static int sabotage;
static atomic_ulong faults, n_cycles;

static void fault(const char *what, sqlite3 *db) {
  if (atomic_fetch_add(&faults, 1) < 20) printf("FAILED %s: %s\n", what, sqlite3_errmsg(db));
}

/* ---- What a process has ------------------------------------------------------------------ */

typedef struct holdings {
  long files, mappings, rss_kb;
  size_t heap;
} holdings;

static long count_files(void) {
  DIR *d = opendir("/proc/self/fd");
  long n = 0;
  if (!d) return 0;
  while (readdir(d)) n++;
  closedir(d);
  return n;
}

/* Mappings of files: those of the heap come and go. */
static long count_mappings(void) {
  FILE *f = fopen("/proc/self/maps", "r");
  char line[1000];
  long n = 0;
  while (f && fgets(line, sizeof line, f)) n += strchr(line, '/') != NULL;
  if (f) fclose(f);
  return n;
}

static long resident_kb(void) {
  FILE *f = fopen("/proc/self/statm", "r");
  long size, resident = 0;
  if (f && fscanf(f, "%ld %ld", &size, &resident) != 2) resident = 0;
  if (f) fclose(f);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static holdings take_stock(void) {
  malloc_trim(0);
  return (holdings){count_files(), count_mappings(), resident_kb(), mallinfo2().uordblks};
}

/* Under valgrind and sanitizers, which replace malloc and keep what was freed, there is no heap to
** be measured; they find what is lost themselves. */
static void check_flat(const char *what, holdings a) {
  const holdings b = take_stock();
  printf("  %-22s files %ld -> %ld, mappings %ld -> %ld, heap %zu -> %zu, resident %ld -> %ld KB\n",
         what, a.files, b.files, a.mappings, b.mappings, a.heap, b.heap, a.rss_kb, b.rss_kb);
  CHECK_EQ_INT(b.files, a.files);
  CHECK_EQ_INT(b.mappings, a.mappings);
  CHECK(b.heap <= a.heap + HEAP_SLACK);
  if (b.heap > 0) CHECK(b.rss_kb <= a.rss_kb + RSS_SLACK_KB + a.rss_kb / 50);
  CHECK_EQ_INT(sqlite3_memory_used(), 0);
}

/* ---- A connection ------------------------------------------------------------------------ */

static int load_from(sqlite3 *db, const char *path) {
#ifdef SLT_STATIC
  (void)path;
  return sqlite3_bpe_init(db, NULL, NULL);
#else
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  return sqlite3_load_extension(db, path, NULL, NULL);
#endif
}

static bool gives(sqlite3 *db, const char *sql, const char *expected) {
  sqlite3_stmt *s = NULL;
  const bool row =
      sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW;
  const char *got = row ? (const char *)sqlite3_column_text(s, 0) : NULL;
  const bool same = got && strcmp(got, expected) == 0;
  if (!same) fault(sql, db);
  sqlite3_finalize(s);
  return same;
}

/* The file has the tokenizer m; a database in memory gets one. */
static void use(sqlite3 *db, bool in_memory) {
  if (in_memory &&
      sqlite3_exec(db, "INSERT INTO bpe_tokenizers(name, source) VALUES('m', '" STORED "')", NULL,
                   NULL, NULL) != SQLITE_OK) {
    fault("store", db);
  }
  gives(db, "SELECT bpe_encode('hello world', 'gpt2')", "[31373,995]");
  gives(db, "SELECT bpe_encode('abcab', 'm')", "[257,256]");
  gives(db, "SELECT group_concat(id) FROM bpe_tokens('abcab', 'm')", "257,256");
}

static void close_well(sqlite3 *db) {
  if (sqlite3_close(db) == SQLITE_OK) return;
  fault("close", db);
  sqlite3_close_v2(db);
}

static sqlite3 *open_one(bool in_memory, const char *path) {
  sqlite3 *db = NULL;
  if (sqlite3_open(in_memory ? ":memory:" : file_path, &db) != SQLITE_OK) fault("open", db);
  if (path && load_from(db, path) != SQLITE_OK) fault("load", db);
  return db;
}

/* The last of the ids is not there. */
static void decode_past(sqlite3 *db) {
  enum { LEN = 64 };
  sqlite3_stmt *s = NULL;
  char *ids = calloc(LEN, 1);
  if (ids && sqlite3_prepare_v2(db, "SELECT bpe_decode(?1)", -1, &s, NULL) == SQLITE_OK &&
      sqlite3_bind_blob64(s, 1, ids, LEN + 4, SQLITE_STATIC) == SQLITE_OK) {
    sqlite3_step(s);
  }
  sqlite3_finalize(s);
  free(ids);
}

#ifdef SLT_STATIC
static void *resize(void *ctx, void *p, size_t n) {
  (void)ctx;
  if (n > 0) return realloc(p, n);
  free(p);
  return NULL;
}

/* The ids begin at an odd address. */
static void decode_askew(void) {
  const bpe_alloc alloc = {.resize = resize};
  char room[2 * sizeof(uint32_t)] = {0};
  const uintptr_t odd = (uintptr_t)room | 1;
  bpe_model *m = NULL;
  bpe_buffer b;
  bpe_buffer_init(&b, &alloc, 0);
  if (bpe_builtin_load(&alloc, 0, NULL, &m) == BPE_OK &&
      bpe_decode(m, (const uint32_t *)odd, 1, BPE_SPECIALS_TEXT, false, NULL, NULL, NULL, &b) != BPE_OK) {
    atomic_fetch_add(&faults, 1);
  }
  bpe_buffer_clear(&b);
  bpe_model_free(m);
}
#endif

static void cycle(unsigned long i, const char *path) {
  const bool in_memory = i % 2 == 0;
  sqlite3 *db = open_one(in_memory, path);
  use(db, in_memory);
  if (sabotage == 5) decode_past(db);
#ifdef SLT_STATIC
  if (sabotage == 6 && i == 0) decode_askew();
#endif
  close_well(db);
  atomic_fetch_add(&n_cycles, 1);
  if (sabotage == 1) (void)sqlite3_malloc(64);
  if (sabotage == 2 && i % 50 == 0) (void)open("/dev/null", O_RDONLY);
  if (sabotage == 3) {
    void *volatile lost = malloc(4096);
    (void)lost;
  }
  if (sabotage == 4 && i % 50 == 0) {
    const int f = open(file_path, O_RDONLY);
    (void)mmap(NULL, 4096, PROT_READ, MAP_SHARED, f, 0);
    close(f);
  }
}

/* ---- Many -------------------------------------------------------------------------------- */

/* The first tenth, and each kind of cycle once. */
static unsigned long warm(unsigned long n) {
  return n / 10 < 6 ? 6 : n / 10;
}

static void one_after_the_other(unsigned long n) {
  holdings first = {0};
  for (unsigned long i = 0; i < n; i++) {
    if (i == warm(n)) first = take_stock();
    cycle(i, extension);
  }
  check_flat("one after the other", first);
}

/* Two copies by turns, and others that hold the library open and let it go. */
static void two_copies(unsigned long n) {
  holdings first = {0};
  for (unsigned long i = 0; i < n; i++) {
    if (i == warm(n)) first = take_stock();
#ifndef SLT_STATIC
    char path[310];
    snprintf(path, sizeof path, "%s.so", i % 3 ? copy_path : extension);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle && atomic_fetch_add(&faults, 1) < 20) printf("FAILED %s\n", dlerror());
    cycle(i, i % 4 < 2 ? extension : copy_path);
    if (handle) dlclose(handle);
#else
    cycle(i, extension);
#endif
  }
  check_flat("two copies", first);
}

typedef struct lane {
  unsigned long n, number;
} lane;

static void *run_lane(void *arg) {
  const lane *l = arg;
  for (unsigned long i = 0; i < l->n; i++) {
    cycle(i + l->number, (i + l->number) % 3 ? extension : copy_path);
  }
  return NULL;
}

static void at_once(unsigned long n, int n_threads) {
  holdings first = {0};
  for (int round = 0; round < 10; round++) { /* each with threads of its own */
    pthread_t threads[64];
    lane lanes[64];
    if (round == 1) first = take_stock();
    for (int i = 0; i < n_threads; i++) {
      lanes[i] = (lane){n / 10 / (unsigned long)n_threads + 1, (unsigned long)i};
      if (pthread_create(&threads[i], NULL, run_lane, &lanes[i]) != 0) abort(); /* a test may */
    }
    for (int i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  }
  check_flat("threads at once", first);
}

static void by_themselves(unsigned long n) {
  holdings first = {0};
  void *handle = NULL;
  void (*entry)(void) = NULL;
#ifdef SLT_STATIC
  entry = (void (*)(void))sqlite3_bpe_init;
#else
  char path[310];
  snprintf(path, sizeof path, "%s.so", extension);
  handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  void *symbol = handle ? dlsym(handle, "sqlite3_bpe_init") : NULL;
  memcpy(&entry, &symbol, sizeof entry);
#endif
  if (!CHECK(entry != NULL)) return;
  CHECK(sqlite3_auto_extension(entry) == SQLITE_OK);
  CHECK(sqlite3_auto_extension(entry) == SQLITE_OK); /* once is enough */
  for (unsigned long i = 0; i < n; i++) {
    if (i == warm(n)) first = take_stock();
    cycle(i, i % 5 == 0 ? extension : NULL); /* also on top of it */
  }
  CHECK(sqlite3_cancel_auto_extension(entry) == 1);
  sqlite3_reset_auto_extension();
  sqlite3 *db = open_one(true, NULL);
  CHECK(sqlite3_exec(db, "SELECT bpe_version()", NULL, NULL, NULL) == SQLITE_ERROR);
  close_well(db);
  sqlite3_shutdown(); /* which frees the list */
  check_flat("by themselves", first);
  if (handle) dlclose(handle);
}

/* Connections of either copy that open and close in any order. */
static void crowd(unsigned long n) {
  sqlite3 *open[CROWD] = {0};
  holdings first = {0};
  uint64_t x = 88172645463325252u;
  for (unsigned long i = 0; i < n; i++) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    const unsigned at = (unsigned)(x >> 32) % CROWD;
    if (open[at]) {
      use(open[at], false);
      close_well(open[at]);
      open[at] = NULL;
    } else {
      open[at] = open_one(false, (x >> 40) % 2 ? extension : copy_path);
      use(open[at], false);
      atomic_fetch_add(&n_cycles, 1);
    }
    if (i != warm(n) && i != n - 1) continue;
    for (int j = 0; j < CROWD; j++) {
      if (open[j]) close_well(open[j]);
      open[j] = NULL;
    }
    if (i == warm(n)) first = take_stock();
  }
  check_flat("a crowd", first);
}

/* ---- Twice on one connection ------------------------------------------------------------- */

static void twice(const char *path) {
  sqlite3 *db = open_one(true, extension);
  sqlite3_stmt *s = NULL;
  use(db, true);
  CHECK(sqlite3_prepare_v2(db, "SELECT bpe_encode('abcab', 'm')", -1, &s, NULL) == SQLITE_OK);
  CHECK(sqlite3_step(s) == SQLITE_ROW);
  CHECK(load_from(db, path) != SQLITE_OK); /* functions in use are not replaced */
  CHECK(strcmp((const char *)sqlite3_column_text(s, 0), "[257,256]") == 0);
  CHECK(sqlite3_step(s) == SQLITE_DONE);
  CHECK(gives(db, "SELECT bpe_encode('abcab', 'm')", "[257,256]"));
  sqlite3_reset(s);
  CHECK(load_from(db, path) == SQLITE_OK);
  CHECK(sqlite3_step(s) == SQLITE_ROW); /* prepared before */
  CHECK(strcmp((const char *)sqlite3_column_text(s, 0), "[257,256]") == 0);
  sqlite3_finalize(s);
  for (int i = 0; i < 5; i++) CHECK(load_from(db, i % 2 ? path : extension) == SQLITE_OK);
  use(db, false);
  CHECK(sqlite3_exec(db, "DELETE FROM bpe_tokenizers WHERE name = 'm'", NULL, NULL, NULL) ==
        SQLITE_OK);
  use(db, true);
  close_well(db);
}

/* ---- All --------------------------------------------------------------------------------- */

static bool prepare_files(void) {
  char command[800];
  snprintf(folder, sizeof folder, "%s/bpe-load-XXXXXX",
           getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  if (!mkdtemp(folder)) return false;
  snprintf(file_path, sizeof file_path, "%s/m.db", folder);
  snprintf(copy_path, sizeof copy_path, "%s/bpe", folder);
#ifndef SLT_STATIC
  snprintf(command, sizeof command, "cp '%s.so' '%s.so'", extension, copy_path);
  if (system(command) != 0) return false;
#endif
  (void)command;
  sqlite3 *db = open_one(false, extension);
  const bool ok =
      sqlite3_exec(db, "INSERT INTO bpe_tokenizers(name, source) VALUES('m', '" STORED "')", NULL,
                   NULL, NULL) == SQLITE_OK;
  close_well(db);
  return ok;
}

int main(int argc, char **argv) {
  /* Each arena of threads keeps the most that it ever had, and malloc_trim leaves it that. */
  mallopt(M_ARENA_MAX, 1);
  unsigned long n = 200;
  int n_threads = 8;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--ext") == 0) extension = argv[i + 1];
    else if (strcmp(argv[i], "--cycles") == 0) n = strtoul(argv[i + 1], NULL, 10);
    else if (strcmp(argv[i], "--threads") == 0) n_threads = atoi(argv[i + 1]);
    else if (strcmp(argv[i], "--sabotage") == 0) sabotage = atoi(argv[i + 1]);
    else n = 0;
  }
  if (argc % 2 == 0 || n < 50 || n_threads < 1 || n_threads > 64 || !prepare_files()) {
    printf("load: see the first lines of load.c\n0 passed, 1 failed\n");
    return 2;
  }
  one_after_the_other(n);
  two_copies(n / 5);
  at_once(n, n_threads);
  by_themselves(n / 5);
  crowd(n / 5);
  twice(extension);
  twice(copy_path);
  CHECK_EQ_INT(sqlite3_memory_used(), 0);
  CHECK_EQ_INT(atomic_load(&faults), 0);
  char command[300];
  snprintf(command, sizeof command, "rm -r '%s'", folder);
  CHECK(system(command) == 0);
  printf("load: %lu connections loaded, used and closed\n", atomic_load(&n_cycles));
  return test_summary();
}
