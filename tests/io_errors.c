/* io_errors.c - every call to the file system fails in turn, under stored tokenizers.
**
**     io_errors [./bpe] [--all] [--only NAME] [-v] [--sabotage N]
**
** Each scenario is a few statements. They run on a fresh copy of a database, on the VFS "faulty",
** with its call number 0 failing, then number 1, ... until they run through without a failure:
** with a rollback journal and with WAL; once and from there on; as an I/O error, a full disk, or a
** lock that someone else holds; with a page cache that holds everything and one that spills.
** When a statement has failed,
**
** (I1) its code is that of a call that failed, and so is its extended code; a failure that hit
**      statements of the extension's own has a message that names the function first;
** (I2) the same connection, still open, sees the tables as they were before the statement, or, if
**      SQLite rolled the transaction back, as before that: tokenizers whole, with their digests;
**      a transaction that is still there can be committed, and holds the statements before;
** (I3) a fresh connection sees the same, and integrity_check says ok;
** (I4) the same connection runs the statements again, now to the end, with the right answers;
** (I5) after closing no memory and no file is left.
**
** A statement that succeeds although a call failed must have done its work. A series in which no
** call or no statement ever failed has shown nothing, and is a failure.
*/
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#endif
#include "io_errors.h"
#include "stored.h"
#include "vfs_faulty.h"

#include <stdlib.h>
#include <unistd.h>

enum { PAGE_SIZE = 1024, SMALL_CACHE = 5, MOST_CALLS = 20000 };

/* What to break, to see that it is noticed. */
enum { SOUND, MUTE, LEAKING, SWALLOWING, PIECEMEAL };

static const struct variant {
  const char *name;
  faulty_kind kind;
  bool sticky;
} variants[] = {
    {"I/O error", FAULTY_IO, false},   {"I/O errors from there on", FAULTY_IO, true},
    {"full disk", FAULTY_FULL, false}, {"full disk from there on", FAULTY_FULL, true},
    {"busy", FAULTY_BUSY, false},      {"busy from there on", FAULTY_BUSY, true},
};

enum { N_VARIANTS = sizeof variants / sizeof *variants };

typedef struct image {
  void *bytes; /* owned */
  size_t len;
} image;

/* A scenario in one setting, and what its statements give without failures. */
typedef struct series {
  loaded *t;
  const scenario *sc;
  bool wal, spill;
  int n;                            /* statements */
  char *states[MAX_STATEMENTS + 1]; /* before each of them, and after the last; owned */
  char *answers[MAX_STATEMENTS];    /* owned */
  int start_of[MAX_STATEMENTS];     /* the statement that began the transaction it is in */
  bool ends[MAX_STATEMENTS];        /* no transaction is left after it */
  long refusals, failures, in_own;  /* seen so far; in_own: in statements of the extension's */
} series;

/* One run of them. */
typedef struct attempt {
  series *s;
  sqlite3 *db;
  sqlite3_stmt *outer; /* the statement that runs */
  long n_refused;
  bool in_schema; /* one came while SQLite read the schema */
  bool in_own;    /* each refusal came in a statement of the extension's own */
  char where[200];
} attempt;

static const char *only;
static bool all, verbose;
static int sabotage;
static char folder[200];
static char path_main[230], path_other[230];
static image files[2][2], other_files[2]; /* by scenario_files and wal */
static long n_attempts;

/* ---- Files ---------------------------------------------------------------------------------- */

static bool read_image(const char *path, image *out) {
  FILE *f = fopen(path, "rb");
  if (!f) return false;
  fseek(f, 0, SEEK_END);
  out->len = (size_t)ftell(f);
  rewind(f);
  out->bytes = malloc(out->len);
  const bool ok = out->bytes && fread(out->bytes, 1, out->len, f) == out->len;
  fclose(f);
  return ok;
}

static bool write_image(const char *path, const image *in) {
  static const char *const suffixes[] = {"-journal", "-wal", "-shm"};
  for (int i = 0; i < 3; i++) {
    char beside[250];
    snprintf(beside, sizeof beside, "%s%s", path, suffixes[i]);
    unlink(beside);
  }
  FILE *f = fopen(path, "wb");
  if (!f) return false;
  const bool ok = in->len == 0 || fwrite(in->bytes, 1, in->len, f) == in->len;
  return fclose(f) == 0 && ok;
}

static bool make_image(loaded *t, const char *path, bool wal, const char *setup, image *out) {
  const image none = {NULL, 0};
  if (!loaded_check(t, write_image(path, &none), "write %s", path)) return false;
  sqlite3 *db = stored_open(t, path, NULL);
  bool ok = db && stored_make(t, db, PAGE_SIZE, wal ? "WAL" : "DELETE");
  if (ok && setup) ok = stored_run(t, db, setup);
  ok = loaded_check(t, sqlite3_close(db) == SQLITE_OK, "close %s", path) && ok;
  return ok && loaded_check(t, read_image(path, out), "read %s", path);
}

static bool make_images(loaded *t) {
  snprintf(path_main, sizeof path_main, "%s/main.db", folder);
  snprintf(path_other, sizeof path_other, "%s/other.db", folder);
  for (int wal = 0; wal < 2; wal++) {
    if (!make_image(t, path_main, wal, scenario_setup, &files[FILES_FULL][wal]) ||
        !make_image(t, path_main, wal, NULL, &files[FILES_EMPTY][wal]) ||
        !make_image(t, path_other, wal, NULL, &other_files[wal])) {
      return false;
    }
  }
  return true;
}

static void remove_files(void) {
  const image none = {NULL, 0};
  write_image(path_main, &none);
  write_image(path_other, &none);
  unlink(path_main);
  unlink(path_other);
  rmdir(folder);
  for (int wal = 0; wal < 2; wal++) {
    free(files[FILES_FULL][wal].bytes);
    free(files[FILES_EMPTY][wal].bytes);
    free(other_files[wal].bytes);
  }
}

/* ---- Connections and states ----------------------------------------------------------------- */

static bool restore_files(const series *s) {
  return write_image(path_main, &files[s->sc->files][s->wal]) &&
         write_image(path_other, &other_files[s->wal]);
}

static bool attach_other(loaded *t, sqlite3 *db) {
  char *sql = sqlite3_mprintf("ATTACH %Q AS other", path_other);
  const bool ok = stored_run(t, db, sql);
  sqlite3_free(sql);
  return ok;
}

/* A connection on fresh files, as far as the scenario goes before anything fails. */
static sqlite3 *open_stage(series *s, const char *vfs) {
  if (!loaded_check(s->t, restore_files(s), "%s: files", s->sc->name)) return NULL;
  sqlite3 *db = stored_open(s->t, path_main, vfs);
  if (!db) return NULL;
  bool ok = !s->sc->other || attach_other(s->t, db);
  if (ok && s->sc->before) ok = stored_run(s->t, db, s->sc->before);
  char sql[100];
  snprintf(sql, sizeof sql, "PRAGMA cache_size = %d; PRAGMA %s.cache_size = %d", SMALL_CACHE,
           s->sc->other ? "other" : "temp", SMALL_CACHE);
  if (ok && s->spill) ok = stored_run(s->t, db, sql);
  if (ok) return db;
  sqlite3_close(db);
  return NULL;
}

/* The states of the schemas that a scenario is about; temp is seen on its own connection only. */
static char *whole_state(sqlite3 *db, const scenario *sc, bool own) {
  char *in_main = stored_state(db, "main");
  char *other = sc->other ? stored_state(db, "other") : NULL;
  char *temp = sc->temp && own ? stored_state(db, "temp") : NULL;
  char *state = sqlite3_mprintf("%s%s%s%s%s", in_main, other ? "\n  other: " : "",
                                other ? other : "", temp ? "\n  temp: " : "", temp ? temp : "");
  sqlite3_free(in_main);
  sqlite3_free(other);
  sqlite3_free(temp);
  return state;
}

/* Whether a state is the expected one, which is of the scenario's own connection. */
static bool is_state(const char *state, const char *expected, bool own) {
  const size_t n = strlen(state);
  return strncmp(state, expected, n) == 0 &&
         (expected[n] == 0 || (!own && strncmp(expected + n, "\n  temp: ", 9) == 0));
}

static bool check_state(const attempt *a, sqlite3 *db, const char *expected, const char *what) {
  const bool own = db == a->db;
  char *state = whole_state(db, a->s->sc, own);
  const bool same =
      loaded_check(a->s->t, is_state(state, expected, own), "%s: %s\n  has     %s\n  and not %s",
                   a->where, what, state, expected);
  sqlite3_free(state);
  return same;
}

static void check_integrity(const attempt *a, sqlite3 *db, const char *sql) {
  sqlite3_stmt *stmt = NULL;
  sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
  const bool row = sqlite3_step(stmt) == SQLITE_ROW;
  const char *text = row ? (const char *)sqlite3_column_text(stmt, 0) : sqlite3_errmsg(db);
  loaded_check(a->s->t, strcmp(text, "ok") == 0, "%s: %s: %s", a->where, sql, text);
  sqlite3_finalize(stmt);
}

/* I3 */
static void check_fresh(attempt *a, const char *expected, const char *what) {
  loaded *t = a->s->t;
  sqlite3 *db = stored_open(t, path_main, NULL);
  if (!db) return;
  if (!a->s->sc->other || attach_other(t, db)) {
    check_state(a, db, expected, what);
    check_integrity(a, db, "PRAGMA main.integrity_check");
    if (a->s->sc->other) check_integrity(a, db, "PRAGMA other.integrity_check");
  }
  loaded_check(t, sqlite3_close(db) == SQLITE_OK, "%s: close of a fresh one", a->where);
}

/* ---- Running ------------------------------------------------------------------------------- */

/* A part of a deletion as a statement of its own. */
static int delete_a_part(sqlite3 *db, const char *sql) {
  if (sabotage != PIECEMEAL || strncmp(sql, "DELETE FROM bpe_tokenizers", 26) != 0)
    return SQLITE_OK;
  return sqlite3_exec(db, "DELETE FROM bpe_model_merges WHERE model_id = 1", NULL, NULL, NULL);
}

/* Runs a statement; *answer: its rows as text, from sqlite3_str_finish. */
static int run_statement(attempt *a, const char *sql, char **answer) {
  sqlite3_str *out = sqlite3_str_new(NULL);
  int rc = delete_a_part(a->db, sql);
  if (rc == SQLITE_OK) rc = sqlite3_prepare_v2(a->db, sql, -1, &a->outer, NULL);
  if (rc == SQLITE_OK) {
    while ((rc = sqlite3_step(a->outer)) == SQLITE_ROW) {
      for (int i = 0; i < sqlite3_column_count(a->outer); i++) {
        const char *text = (const char *)sqlite3_column_text(a->outer, i);
        sqlite3_str_appendf(out, "%s|", text ? text : "NULL");
      }
    }
    if (rc == SQLITE_DONE) rc = SQLITE_OK;
  }
  const int again = sqlite3_finalize(a->outer);
  a->outer = NULL;
  *answer = sqlite3_str_finish(out);
  return rc == SQLITE_OK ? again : rc;
}

/* Whether a statement of the extension's own runs now, inside the scenario's. */
static void look_around(void *ctx) {
  attempt *a = ctx;
  bool own = false;
  if (!a->outer) a->in_schema = true; /* it is being prepared */
  for (sqlite3_stmt *s = NULL; (s = sqlite3_next_stmt(a->db, s)) != NULL;) {
    if (s == a->outer || !sqlite3_stmt_busy(s)) continue;
    if (sqlite3_sql(s)) own = true;
    else a->in_schema = true; /* a statement without a text is SQLite's own */
  }
  a->in_own = own && (a->n_refused == 0 || a->in_own);
  a->n_refused++;
}

/* Learns states and answers. */
static bool rehearse(series *s) {
  attempt a = {.s = s, .db = open_stage(s, NULL)};
  if (!a.db) return false;
  bool ok = true;
  s->states[0] = whole_state(a.db, s->sc, true);
  for (s->n = 0; ok && s->n < MAX_STATEMENTS && s->sc->sql[s->n]; s->n++) {
    const bool alone = sqlite3_get_autocommit(a.db);
    s->start_of[s->n] = alone ? s->n : s->start_of[s->n - 1];
    const int rc = run_statement(&a, s->sc->sql[s->n], &s->answers[s->n]);
    ok = loaded_check(s->t, rc == SQLITE_OK, "%s: %s: %d %s", s->sc->name, s->sc->sql[s->n], rc,
                      sqlite3_errmsg(a.db));
    s->states[s->n + 1] = whole_state(a.db, s->sc, true);
    s->ends[s->n] = sqlite3_get_autocommit(a.db);
  }
  loaded_check(s->t, sqlite3_close(a.db) == SQLITE_OK, "%s: close", s->sc->name);
  return ok;
}

static void series_free(series *s) {
  for (int i = 0; i <= MAX_STATEMENTS; i++) sqlite3_free(s->states[i]);
  for (int i = 0; i < MAX_STATEMENTS; i++) sqlite3_free(s->answers[i]);
}

/* Runs statements from number `from` on; returns the one that failed, or their number. */
static int run_from(attempt *a, int from, int *rc) {
  const series *s = a->s;
  *rc = SQLITE_OK;
  for (int i = from; i < s->n; i++) {
    char *answer;
    *rc = run_statement(a, s->sc->sql[i], &answer);
    const bool right =
        *rc != SQLITE_OK || strcmp(answer ? answer : "", s->answers[i] ? s->answers[i] : "") == 0;
    loaded_check(s->t, right, "%s: %s\n  gives   %.300s\n  and not %.300s", a->where, s->sc->sql[i],
                 answer ? answer : "", s->answers[i] ? s->answers[i] : "");
    sqlite3_free(answer);
    if (*rc != SQLITE_OK && sabotage == SWALLOWING) *rc = SQLITE_OK;
    if (*rc != SQLITE_OK) return i;
  }
  return s->n;
}

/* ---- Judging -------------------------------------------------------------------------------- */

/* Whether the code is that of a call that was refused, as far as SQLite itself lets it through:
** who waits for a lock in WAL mode gives up with codes of its own, and of a failure to read the
** schema only the low byte is left, as of one inside FTS5. */
static bool is_right_code(const attempt *a, int rc, int extended) {
  if ((extended & 0xff) != rc) return false;
  if (faulty_gave(extended)) return true;
  if (faulty_gave(SQLITE_BUSY)) return rc == SQLITE_BUSY || rc == SQLITE_PROTOCOL;
  return (a->in_schema || a->s->sc->full_text) && rc == (faulty_first() & 0xff);
}

/* I1. Called before the connection does anything else; gives the extended code. */
static int judge(attempt *a, int rc, const char *sql) {
  loaded *t = a->s->t;
  const int extended = sqlite3_extended_errcode(a->db);
  const char *message = sqlite3_errmsg(a->db);
  a->s->failures++;
  loaded_check(t, is_right_code(a, rc, extended),
               "%s: %s\n  answers %d, extended %d, and not %d: %s", a->where, sql, rc, extended,
               faulty_first(), message);
  if (!a->in_own || a->s->sc->full_text) return extended;
  a->s->in_own++;
  const size_t word = strspn(message, "abcdefghijklmnopqrstuvwxyz0123456789_");
  loaded_check(t, strncmp(message, "bpe_", 4) == 0 && strncmp(message + word, ": ", 2) == 0,
               "%s: %s\n  does not name the function first: %s", a->where, sql, message);
  return extended;
}

/* The state that a failed statement leaves, as a number for s->states, and for I4 where to go on.
** Two ways of SQLite's own are allowed for: when a lock cannot be given back, that can be an
** error of a statement that is done; and a RELEASE that failed while it ended the transaction has
** done so or rolled back, but leaves the connection in a transaction, which is empty. */
static int state_after(const attempt *a, int failed, int code, int *again) {
  const series *s = a->s;
  const bool rolled_back = sqlite3_get_autocommit(a->db);
  const bool commits = s->start_of[failed] < failed && s->ends[failed];
  const bool releases = commits && code != SQLITE_BUSY &&
                        strncmp(s->sc->sql[failed], "RELEASE", 7) == 0;
  *again = s->start_of[failed];
  if (code == SQLITE_IOERR_UNLOCK && (rolled_back || releases) && s->ends[failed]) {
    char *state = whole_state(a->db, s->sc, true);
    const bool done = is_state(state, s->states[failed + 1], true);
    sqlite3_free(state);
    if (done) return *again = failed + 1;
  }
  return rolled_back || releases ? s->start_of[failed] : failed;
}

/* I2, I3, I4, after statement `failed` has. */
static void check_after_failure(attempt *a, int failed, int code, bool commit) {
  const series *s = a->s;
  loaded *t = s->t;
  int again, rc;
  /* FTS5 keeps a BLOB open, for which SQLite repeats the error once, whoever reads next. */
  if (s->sc->full_text) sqlite3_exec(a->db, "SELECT count(*) FROM docs", NULL, NULL, NULL);
  int now = state_after(a, failed, code, &again);
  check_state(a, a->db, s->states[now], "after it");
  if (!sqlite3_get_autocommit(a->db)) {
    const char *end = commit ? "COMMIT" : "ROLLBACK";
    rc = sqlite3_exec(a->db, end, NULL, NULL, NULL);
    loaded_check(t, rc == SQLITE_OK, "%s: %s: %d %s", a->where, end, rc, sqlite3_errmsg(a->db));
    if (!commit && now <= failed) now = s->start_of[failed];
    check_state(a, a->db, s->states[now], end);
  }
  check_fresh(a, s->states[now], "a fresh connection");
  if (now != s->start_of[failed] && again < now) return; /* half of it is committed */
  const int end = run_from(a, again, &rc);
  loaded_check(t, end == s->n, "%s: again: %d %s", a->where, rc, sqlite3_errmsg(a->db));
  check_state(a, a->db, s->states[s->n], "after running it again");
}

/* One run, with call number k failing. False: no call failed any more. */
static bool attempt_once(series *s, const struct variant *v, long k) {
  loaded *t = s->t;
  const sqlite3_int64 memory = sqlite3_memory_used();
  attempt a = {.s = s, .db = open_stage(s, "faulty")};
  if (!a.db) return false;
  snprintf(a.where, sizeof a.where, "%s: %s%s: %s at call %ld", s->sc->name,
           s->wal ? "WAL" : "rollback journal", s->spill ? ", small cache" : "", v->name, k);
  faulty_arm((faulty_plan){.kind = v->kind,
                           .sticky = v->sticky,
                           .after = k,
                           .refused = look_around,
                           .ctx = &a,
                           .mute = sabotage == MUTE});
  int rc;
  const int end = run_from(&a, 0, &rc);
  const bool refused = faulty_disarm();
  n_attempts++;
  s->refusals += refused;
  if (end < s->n) {
    const int code = judge(&a, rc, s->sc->sql[end]);
    check_after_failure(&a, end, code, k % 2 == 0);
  } else {
    check_state(&a, a.db, s->states[s->n], "done all the same");
    check_fresh(&a, s->states[s->n], "a fresh connection, done all the same");
  }
  rc = sqlite3_close(a.db);
  loaded_check(t, rc == SQLITE_OK, "%s: close: %d", a.where, rc);
  if (sabotage == LEAKING && sqlite3_malloc(1) == NULL) return false;
  loaded_check(t, faulty_open_files() == 0, "%s: %ld files left open", a.where,
               faulty_open_files());
  const sqlite3_int64 left = sqlite3_memory_used() - memory; /* I5 */
  loaded_check(t, left == 0, "%s: %lld bytes left", a.where, (long long)left);
  return refused;
}

/* ---- Series --------------------------------------------------------------------------------- */

/* The quick run takes longer and longer steps, and of the six kinds of failure every other. */
static long next_call(long k) {
  return all ? k + 1 : 2 * k + 1;
}

static void run_series(loaded *t, const scenario *sc, bool wal, bool spill, int odd) {
  series s = {.t = t, .sc = sc, .wal = wal, .spill = spill};
  if (rehearse(&s)) {
    for (int i = all ? 0 : odd; i < N_VARIANTS; i += all ? 1 : 2) {
      const long before = t->failed;
      long k = 0;
      while (k < MOST_CALLS && t->failed < before + 3 && attempt_once(&s, &variants[i], k))
        k = next_call(k);
      loaded_check(t, k < MOST_CALLS, "%s: it never comes to an end", sc->name);
    }
    loaded_check(t, s.refusals > 0 && (s.failures > 0 || !all), "%s: nothing ever failed",
                 sc->name);
  }
  if (verbose)
    printf("%-34s %-7s %-5s %6ld calls refused, %6ld statements failed, %6ld in our own\n",
           sc->name, wal ? "WAL" : "journal", spill ? "small" : "", s.refusals, s.failures,
           s.in_own);
  series_free(&s);
}

/* In every setting; the quick run in one of the four, by turns. */
static void run_scenario(loaded *t, const scenario *sc) {
  const int turn = (int)(sc - scenarios);
  for (int i = 0; i < 4; i++) {
    const bool wal = i & 1, spill = i & 2;
    if ((wal && sc->two_files) || (!all && i != turn % (sc->two_files ? 1 : 4))) continue;
    run_series(t, sc, wal, spill, turn / 4 % 2);
  }
}

static bool take_arguments(int argc, char **argv, const char **extension) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--all") == 0) all = true;
    else if (strcmp(argv[i], "-v") == 0) verbose = true;
    else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[++i];
    else if (strcmp(argv[i], "--sabotage") == 0 && i + 1 < argc) sabotage = atoi(argv[++i]);
    else if (argv[i][0] != '-') *extension = argv[i];
    else return false;
  }
  return true;
}

int main(int argc, char **argv) {
  loaded t;
  const char *extension = "./bpe", *parent = getenv("TMPDIR");
  setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
  if (!take_arguments(argc, argv, &extension)) {
    puts("io_errors [./bpe] [--all] [--only NAME] [-v] [--sabotage N]");
    return 2;
  }
  snprintf(folder, sizeof folder, "%.150s/io-XXXXXX", parent && *parent ? parent : "/tmp");
  if (!mkdtemp(folder) || !faulty_install() || !stored_begin(&t, extension)) return 1;
  if (make_images(&t)) {
    for (const scenario *sc = scenarios; sc->name; sc++)
      if (!only || strcmp(only, sc->name) == 0) run_scenario(&t, sc);
  }
  printf("%ld runs\n", n_attempts);
  remove_files();
  return loaded_end(&t);
}
