/* limits_bounds.c - SQLite's own limits: lengths of values, memory, and what statements may be.
**
** Whatever a limit is, an answer is the right one or SQLite's own error, never a value beyond the
** limit, and when the limit is gone everything works as before.
*/
#include "limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG_TEXT = 300000 };

bool lax, halfway;

typedef struct call {
  const char *sql; /* ?1: a text of words */
  bool always;     /* its answer is so short that no limit of ours forbids it */
} call;

#define FIVE "'cl100k_base'"

static const call calls[] = {
    {"SELECT bpe_count(?1)", true},
    {"SELECT bpe_count(?1, " FIVE ")", true},
    {"SELECT bpe_encode(?1)", false},
    {"SELECT bpe_encode_blob(?1)", false},
    {"SELECT bpe_encode_blob('a', 'gpt2', '{\"pad_to\":200000,\"pad\":\"<|endoftext|>\"}')", false},
    {"SELECT bpe_encode_blob('a', 'gpt2', '{\"pad_to\":4000000000,\"pad\":\"<|endoftext|>\"}')",
     false},
    {"SELECT bpe_decode(bpe_encode_blob(?1, 'gpt2'), 'gpt2')", false},
    {"SELECT bpe_decode_blob(bpe_encode_blob(?1, 'gpt2', '{\"width\":16}'), 'gpt2',"
     " '{\"width\":16}')", false},
    {"SELECT bpe_decode(bpe_encode(substr(?1, 1, 60000)))", false},
    {"SELECT bpe_token(100, 'gpt2')", true},
    {"SELECT bpe_token_id('the', 'gpt2')", true},
    {"SELECT bpe_fits(?1, 1000)", true},
    {"SELECT bpe_truncate(?1, 1000)", true},
    {"SELECT bpe_truncate(?1, 1000000)", false},
    {"SELECT bpe_resolve('gpt-4')", true},
    {"SELECT bpe_ids_length(bpe_encode_blob(substr(?1, 1, 1000)))", true},
    {"SELECT bpe_ids_slice(bpe_encode_blob(?1, 'gpt2', '{\"width\":16}'), 1, 30000, 16)", false},
    {"SELECT bpe_ansi(?1)", false},
    {"SELECT bpe_html(?1)", false},
    {"SELECT bpe_export('gpt2', 'model')", false},
    {"SELECT bpe_export('gpt2', 'tiktoken')", false},
    {"SELECT bpe_export('gpt2', 'huggingface')", false},
    {"SELECT bpe_export('gpt2', 'gpt2-vocab')", false},
    {"SELECT bpe_export('gpt2', 'gpt2-merges')", false},
    {"SELECT bpe_export('tiny', 'minbpe')", true},
    {"SELECT bpe_token_stats(?1, 'gpt2')", false},
    {"SELECT length(bpe_train(?1, 400)) > 400", true},
    {"SELECT length(bpe_train(?1, 30000)) > 400", false},
    {"SELECT bpe_version()", true},
    {"SELECT length(bpe_debug()) > 9", true},
    {"SELECT count(*), max(length(text)) FROM bpe_tokens(?1)", true},
    {"SELECT count(*), max(length(piece)) FROM bpe_pieces(?1)", true},
    {"SELECT max(length(text)) FROM bpe_pieces(?1, 'gpt2', '{\"pattern\":\"none\"}')", true},
    {"SELECT count(*) FROM bpe_chunks(?1, 50)", true},
    {"SELECT max(length(text)) FROM bpe_chunks(?1, 100000)", false},
    {"SELECT max(length(after)) FROM bpe_trace(substr(?1, 1, 2000))", true},
    {"SELECT length(after) FROM bpe_trace(replace(?1, ' ', 'a'), 'gpt2') LIMIT 1", false},
    {"SELECT count(*) FROM bpe_stream('SELECT ''a b c''')", true},
    {"SELECT count(*) FROM bpe_ids(bpe_encode_blob(?1, 'gpt2', '{\"width\":16}'), 16)", false},
    {"SELECT max(length(text)) FROM bpe_vocab('gpt2')", true},
    {"SELECT max(rank) FROM bpe_merges('gpt2')", true},
    {"SELECT count(*) FROM bpe_tokenizers WHERE sealed", true},
    {"SELECT digest, pattern, special_tokens FROM bpe_tokenizers WHERE name = 'gpt2'", true},
};

#define N_CALLS (sizeof calls / sizeof *calls)

typedef struct answer {
  int rc;
  char *text;  /* of the first column of the first row; the caller's */
  int longest; /* value of any column */
} answer;

static answer ask(sqlite3 *db, const char *sql, const char *text, size_t len) {
  answer a = {.rc = SQLITE_OK};
  sqlite3_stmt *s = NULL;
  a.rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  if (a.rc == SQLITE_OK && sqlite3_bind_parameter_count(s) > 0)
    a.rc = sqlite3_bind_text64(s, 1, text, len, SQLITE_STATIC, SQLITE_UTF8);
  if (a.rc == SQLITE_OK) a.rc = sqlite3_step(s);
  if (a.rc == SQLITE_ROW) {
    for (int i = 0; i < sqlite3_column_count(s); i++)
      if (sqlite3_column_bytes(s, i) > a.longest) a.longest = sqlite3_column_bytes(s, i);
    const void *bytes = sqlite3_column_blob(s, 0);
    const int n = sqlite3_column_bytes(s, 0);
    a.text = malloc((size_t)n + 1);
    if (a.text != NULL && n > 0) memcpy(a.text, bytes, (size_t)n);
    if (a.text != NULL) a.text[n] = 0;
  }
  sqlite3_finalize(s);
  return a;
}

static bool same(const answer *a, const answer *b) {
  return a->rc == b->rc && a->longest == b->longest &&
         (a->text == NULL) == (b->text == NULL) &&
         (a->text == NULL || strcmp(a->text, b->text) == 0);
}

static char *make_text(size_t *len) {
  char *text = malloc(LONG_TEXT);
  uint64_t state = 7;
  if (text == NULL) abort();
  for (size_t i = 0; i < LONG_TEXT; i++)
    text[i] = random_next(&state) % 6 == 0 ? ' ' : (char)('a' + random_next(&state) % 26);
  *len = LONG_TEXT;
  return text;
}

static sqlite3 *open_prepared(void) {
  sqlite3 *db = open_loaded();
  check(run_script(db, "CREATE TABLE t(x); INSERT INTO t VALUES('aaab ab'), ('b ab ab');"
                       "INSERT INTO bpe_tokenizers(name, source) SELECT 'tiny', bpe_train(x, 260)"
                       " FROM t"),
        "preparation");
  return db;
}

/* How many of n are checked. */
static size_t some(size_t n) {
  return lax || halfway ? 1 : n;
}

static void set_heap_limit(sqlite3_int64 bytes) {
  sqlite3_hard_heap_limit64(lax ? 0 : bytes);
}

/* Gives back what it was. */
static int set_limit(sqlite3 *db, int id, int value) {
  return sqlite3_limit(db, id, lax ? -1 : value);
}

/* What a change that failed would leave behind, if it was made by halves. */
static void leave_half(sqlite3 *db) {
  if (halfway)
    run_script(db, "INSERT INTO bpe_model(name, pattern, options) VALUES('half' || random(),"
                   " 'none', '{\"format\":1}')");
}

/* ---- SQLITE_LIMIT_LENGTH -------------------------------------------------------------------- */

static void check_length(int limit) {
  size_t len;
  char *text = make_text(&len);
  if (len > (size_t)limit) len = (size_t)limit * 3 / 4; /* the input is within it too */
  sqlite3 *db = open_prepared();
  const int usual = sqlite3_limit(db, SQLITE_LIMIT_LENGTH, -1);
  for (size_t i = 0; i < N_CALLS; i++) {
    const answer whole = ask(db, calls[i].sql, text, len);
    set_limit(db, SQLITE_LIMIT_LENGTH, limit);
    const answer limited = ask(db, calls[i].sql, text, len);
    sqlite3_limit(db, SQLITE_LIMIT_LENGTH, usual);
    const answer again = ask(db, calls[i].sql, text, len);
    const bool toobig = limited.rc == SQLITE_TOOBIG && whole.longest >= 0;
    check(toobig ? !calls[i].always || limit <= 1000 : same(&limited, &whole),
          "length %d: %s: %d, %d bytes, not %d, %d", limit, calls[i].sql, limited.rc,
          limited.longest, whole.rc, whole.longest);
    check(limited.longest <= limit, "length %d: %s: %d bytes", limit, calls[i].sql,
          limited.longest);
    check(same(&again, &whole), "length %d: %s: afterwards %d", limit, calls[i].sql, again.rc);
    free(whole.text);
    free(limited.text);
    free(again.text);
  }
  check(sqlite3_close(db) == SQLITE_OK, "close");
  free(text);
}

/* Storing and loading under a limit: no half of a tokenizer, whatever the limit is. */
static void check_length_of_store(int limit) {
  sqlite3 *db = open_prepared();
  char *model = first_value(db, "SELECT hex(bpe_export('gpt2', 'model'))");
  check(run_script(db, "CREATE TABLE source AS SELECT bpe_export('tiny', 'model') AS body"),
        "a source");
  const int usual = set_limit(db, SQLITE_LIMIT_LENGTH, limit);
  const answer a =
      ask(db, "INSERT INTO bpe_tokenizers(name, source) SELECT 'new', body FROM source", NULL, 0);
  check(a.rc == SQLITE_DONE || a.rc == SQLITE_TOOBIG, "length %d: storing: %d %s", limit, a.rc,
        sqlite3_errmsg(db));
  const answer b = ask(db, "SELECT bpe_encode('aaab', 'tiny')", NULL, 0);
  check(b.rc == SQLITE_ROW || b.rc == SQLITE_TOOBIG, "length %d: using: %d %s", limit, b.rc,
        sqlite3_errmsg(db));
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, usual);
  if (a.rc != SQLITE_DONE) leave_half(db);
  char *n = first_value(db, "SELECT count(*) FROM bpe_tokenizers WHERE schema = 'main' AND sealed");
  check(n != NULL && strcmp(n, a.rc == SQLITE_DONE ? "2" : "1") == 0, "length %d: %s stored", limit,
        n);
  char *rows = first_value(db, "SELECT (SELECT count(DISTINCT model_id) FROM bpe_model_vocab) ="
                               " (SELECT count(*) FROM bpe_model)");
  check(rows != NULL && strcmp(rows, "1") == 0, "length %d: rows of nothing", limit);
  free(rows);
  free(n);
  free(a.text);
  free(b.text);
  free(model);
  check(sqlite3_close(db) == SQLITE_OK, "close");
}

void check_lengths(void) {
  static const int limits[] = {1000, 20000, 65536, 1000000};
  static const int of_store[] = {30, 100, 300, 1000, 4096, 65536, 1000000};
  for (size_t i = 0; i < some(sizeof limits / sizeof *limits); i++) check_length(limits[i]);
  for (size_t i = 0; i < some(sizeof of_store / sizeof *of_store); i++)
    check_length_of_store(of_store[i]);
}

/* ---- hard_heap_limit ---------------------------------------------------------------------------- */

/* Runs every call under so much memory in all. Each ends with its answer or with SQLITE_NOMEM. */
static void check_heap_of(long mb) {
  size_t len;
  char *text = make_text(&len);
  long short_of = 0;
  for (size_t i = 0; i < N_CALLS; i++) {
    sqlite3 *db = open_prepared();
    char sql[80];
    const answer whole = ask(db, calls[i].sql, text, len);
    check(sqlite3_close(db) == SQLITE_OK, "close");
    db = open_prepared();
    snprintf(sql, sizeof sql, "PRAGMA hard_heap_limit = %ld", mb << 20);
    char *set = first_value(db, sql);
    check(set != NULL && atol(set) == mb << 20, "%s: %s", sql, set);
    free(set);
    if (lax) set_heap_limit(0);
    const answer limited = ask(db, calls[i].sql, text, len);
    const int used = (int)(sqlite3_memory_used() >> 20);
    sqlite3_hard_heap_limit64(0);
    short_of += limited.rc == SQLITE_NOMEM;
    check(limited.rc == SQLITE_NOMEM || same(&limited, &whole), "heap %ld MB: %s: %d %s, not %d",
          mb, calls[i].sql, limited.rc, sqlite3_errmsg(db), whole.rc);
    check(used <= mb, "heap %ld MB: %s: %d MB used", mb, calls[i].sql, used);
    const answer again = ask(db, calls[i].sql, text, len);
    check(same(&again, &whole), "heap %ld MB: %s: afterwards %d %s", mb, calls[i].sql, again.rc,
          sqlite3_errmsg(db));
    free(whole.text);
    free(limited.text);
    free(again.text);
    check(sqlite3_close(db) == SQLITE_OK, "heap %ld MB: %s: close", mb, calls[i].sql);
  }
  check(mb >= 32 || short_of > 0, "heap %ld MB: nothing was short of it", mb);
  printf("hard_heap_limit %ld MB: %ld of %zu calls out of memory\n", mb, short_of, N_CALLS);
  free(text);
}

/* What changes stored tokenizers. */
static const char *const stored_work[] = {
    "INSERT INTO bpe_tokenizers(source, name) SELECT body, 'new' FROM sources WHERE kind ="
    " 'trained'",
    "INSERT INTO bpe_tokenizers(source, name) SELECT body, 'new' FROM sources WHERE kind ="
    " 'huggingface'",
    "INSERT INTO bpe_tokenizers(source, name) SELECT bpe_train(x, 259), 'new' FROM t",
    "UPDATE bpe_tokenizers SET name = 'other' WHERE name = 'large'",
    "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'open'",
    "DELETE FROM bpe_tokenizers WHERE name = 'large'",
};

/* All that is stored, and that no row belongs to nobody. */
static const char stored_state[] =
    "SELECT group_concat(quote(name) || quote(pattern) || quote(options) || quote(digest) || ' ' ||"
    " (SELECT count(*) || ' ' || total(id) || ' ' || total(length(token)) FROM bpe_model_vocab WHERE"
    " model_id = m.id) || ' ' || (SELECT count(*) || ' ' || total(rank * id) FROM bpe_model_merges"
    " WHERE model_id = m.id), ', ') || '; ' || (SELECT count(*) FROM bpe_model_vocab) || ' ' ||"
    " (SELECT count(*) FROM bpe_model_merges) FROM (SELECT * FROM bpe_model ORDER BY name) m";

static sqlite3 *open_stored(void) {
  static const char script[] =
      "CREATE TABLE sources AS SELECT 'trained' AS kind, bpe_train(x || ' ' || hex(x) || n, 900) AS"
      " body FROM t, (WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n * 7 % 100003 FROM n LIMIT"
      " 2000) SELECT n FROM n);"
      "INSERT INTO bpe_tokenizers(name, source) SELECT column1, body FROM (VALUES('large'),"
      " ('open')), sources;"
      "UPDATE bpe_model SET digest = NULL WHERE name = 'open';"
      "INSERT INTO sources VALUES('huggingface', bpe_export('large', 'huggingface'))";
  sqlite3 *db = open_prepared();
  check(run_script(db, script), "stored tokenizers");
  return db;
}

/* Makes one change with so much memory more than there is in use: it is whole, or there is none and
** then it can be made. Tells whether it was made at once. */
static bool check_heap_of_change(const char *sql, sqlite3_int64 more, const char *changed) {
  sqlite3 *db = open_stored();
  char *before = first_value(db, stored_state);
  set_heap_limit(sqlite3_memory_used() + more);
  const answer limited = ask(db, sql, NULL, 0);
  sqlite3_hard_heap_limit64(0);
  const bool made = limited.rc == SQLITE_DONE;
  if (!made) leave_half(db);
  check(made || limited.rc == SQLITE_NOMEM, "%lld bytes more: %s: %d %s", (long long)more, sql,
        limited.rc, sqlite3_errmsg(db));
  check(sqlite3_get_autocommit(db) != 0, "%lld bytes more: %s: in a transaction", (long long)more,
        sql);
  char *after = first_value(db, stored_state);
  const char *right = made ? changed : before;
  check(after != NULL && right != NULL && strcmp(after, right) == 0,
        "%lld bytes more: %s: %d, and then %.400s", (long long)more, sql, limited.rc,
        after != NULL ? after : "nothing");
  free(after);
  const answer again = made ? (answer){.rc = SQLITE_DONE} : ask(db, sql, NULL, 0);
  after = first_value(db, stored_state);
  check(again.rc == SQLITE_DONE && after != NULL && strcmp(after, changed) == 0,
        "%lld bytes more: %s: afterwards %d %s", (long long)more, sql, again.rc,
        sqlite3_errmsg(db));
  free(after);
  after = first_value(db, "SELECT group_concat(bpe_count('aaab ab', name), '') FROM bpe_model WHERE"
                          " digest IS NOT NULL");
  check(after != NULL && strlen(after) > 0, "%lld bytes more: %s: does not count", (long long)more,
        sql);
  free(after);
  after = first_value(db, "PRAGMA integrity_check");
  check(after != NULL && strcmp(after, "ok") == 0, "%lld bytes more: %s: no integrity",
        (long long)more, sql);
  free(after);
  free(before);
  free(limited.text);
  free(again.text);
  check(sqlite3_close(db) == SQLITE_OK, "close");
  return made;
}

static void check_heap_of_store(void) {
  static const sqlite3_int64 more[] = {0,      20000,   60000,   150000,  300000,
                                       500000, 1000000, 3000000, 10000000};
  enum { N = sizeof more / sizeof *more };
  for (size_t i = 0; i < some(sizeof stored_work / sizeof *stored_work); i++) {
    sqlite3 *db = open_stored();
    check(run_script(db, stored_work[i]), "%s", stored_work[i]);
    char *changed = first_value(db, stored_state);
    check(sqlite3_close(db) == SQLITE_OK, "close");
    int made = 0;
    for (int k = 0; k < N && changed != NULL; k++)
      made += check_heap_of_change(stored_work[i], more[k], changed);
    check(made > 0 && made < N, "%s: made %d times of %d", stored_work[i], made, N);
    printf("hard_heap_limit of %d sizes: %d out of memory: %.60s\n", N, N - made, stored_work[i]);
    free(changed);
  }
}

void check_heap(void) {
  static const long sizes[] = {2, 8, 16, 32, 64};
  for (size_t i = 0; i < some(sizeof sizes / sizeof *sizes); i++) check_heap_of(sizes[i]);
  check_heap_of_store();
}

/* ---- The other limits ----------------------------------------------------------------------------- */

static const struct {
  int id;
  const char *name;
  int low;
} other_limits[] = {
    {SQLITE_LIMIT_SQL_LENGTH, "SQL_LENGTH", 200},
    {SQLITE_LIMIT_COLUMN, "COLUMN", 4},
    {SQLITE_LIMIT_EXPR_DEPTH, "EXPR_DEPTH", 3},
    {SQLITE_LIMIT_COMPOUND_SELECT, "COMPOUND_SELECT", 1},
    {SQLITE_LIMIT_VDBE_OP, "VDBE_OP", 60},
    {SQLITE_LIMIT_FUNCTION_ARG, "FUNCTION_ARG", 2},
    {SQLITE_LIMIT_ATTACHED, "ATTACHED", 0},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, "LIKE_PATTERN_LENGTH", 1},
    {SQLITE_LIMIT_VARIABLE_NUMBER, "VARIABLE_NUMBER", 1},
    {SQLITE_LIMIT_TRIGGER_DEPTH, "TRIGGER_DEPTH", 1},
    {SQLITE_LIMIT_WORKER_THREADS, "WORKER_THREADS", 0},
};

static const char *const other_work[] = {
    "SELECT bpe_encode('aaab ab', 'tiny')",
    "SELECT count(*) FROM bpe_vocab('tiny')",
    "SELECT name FROM bpe_tokenizers WHERE schema = 'main'",
    "INSERT INTO bpe_tokenizers(name, source) SELECT 'new', bpe_train(x, 259) FROM t",
    "UPDATE bpe_tokenizers SET name = 'other' WHERE name = 'tiny'",
    "UPDATE bpe_tokenizers SET name = 'tiny' WHERE name = 'other'",
    "DELETE FROM bpe_tokenizers WHERE name = 'new'",
};

/* Either as without the limit, or an error; and nothing half done. Gives back how many failed. */
static long check_other(int id, const char *name, int limit) {
  sqlite3 *db = open_prepared(), *plain = open_prepared();
  long failures = 0;
  for (size_t i = 0; i < sizeof other_work / sizeof *other_work; i++) {
    const answer right = ask(plain, other_work[i], NULL, 0);
    const int usual = set_limit(db, id, limit);
    answer a = ask(db, other_work[i], NULL, 0);
    const char *message = sqlite3_errmsg(db);
    const bool failed = a.rc != SQLITE_ROW && a.rc != SQLITE_DONE;
    check(failed ? message[0] != 0 && strcmp(message, "not an error") != 0 : same(&a, &right),
          "%s %d: %s: %d %s", name, limit, other_work[i], a.rc, message);
    sqlite3_limit(db, id, usual);
    failures += failed;
    if (failed) leave_half(db);
    free(a.text);
    if (failed) a = ask(db, other_work[i], NULL, 0);
    else a = (answer){.rc = right.rc, .text = NULL, .longest = right.longest};
    check(a.rc == right.rc, "%s %d: %s: afterwards %d %s", name, limit, other_work[i], a.rc,
          sqlite3_errmsg(db));
    free(a.text);
    free(right.text);
  }
  char *n = first_value(db, "SELECT count(*) || ' ' || sum(sealed) FROM bpe_tokenizers WHERE schema"
                            " = 'main'");
  check(n != NULL && strcmp(n, "1 1") == 0, "%s %d: %s tokenizers are left", name, limit, n);
  free(n);
  check(sqlite3_close(db) == SQLITE_OK && sqlite3_close(plain) == SQLITE_OK, "close");
  return failures;
}

void check_others(void) {
  long failures = 0;
  for (size_t i = 0; i < sizeof other_limits / sizeof *other_limits; i++) {
    sqlite3 *db = open_loaded();
    const int usual = sqlite3_limit(db, other_limits[i].id, -1);
    sqlite3_close(db);
    for (int limit = other_limits[i].low; limit < usual && limit < 100000; limit = 2 * limit + 1)
      failures += check_other(other_limits[i].id, other_limits[i].name, limit);
  }
  check(failures > 0, "no other limit was ever met");
  printf("other limits: %ld statements failed\n", failures);
}
