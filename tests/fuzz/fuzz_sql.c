/* fuzz_sql.c - the SQL surface, with the extension linked in (-DSQLITE_CORE).
**
** Input: a template, then the values of its parameters; or, for template 0, SQL as it stands. A
** statement may fail, but then with a message, and never by a
** crash, and the connection closes. Templates ending in "= 1" are
** promises: where they give a value, it is 1.
*/
#include "fuzz.h"

#include <sqlite3.h>

int sqlite3_bpe_init(sqlite3 *, char **, const sqlite3_api_routines *);

static const char *const templates[] = {
    "",
    "SELECT bpe_count(?1)",
    "SELECT bpe_count(?1, ?2)",
    "SELECT bpe_count(?1, ?2, ?3)",
    "SELECT bpe_encode(?1, ?2, ?3)",
    "SELECT bpe_encode_blob(?1, ?2, ?3)",
    "SELECT bpe_decode(?1, ?2, ?3)",
    "SELECT bpe_decode_blob(?1, ?2, ?3)",
    "SELECT bpe_token(?1, ?2), bpe_token_id(?1, ?2), bpe_resolve(?1)",
    "SELECT * FROM bpe_tokens(?1, ?2, ?3) LIMIT 500",
    "SELECT * FROM bpe_pieces(?1, ?2, ?3) LIMIT 500",
    "SELECT seq, start FROM bpe_tokens WHERE input = ?1 AND tokenizer = ?2 AND id = ?3",
    "SELECT * FROM bpe_vocab(?1) WHERE id = ?2 OR id = ?3 LIMIT 50",
    "SELECT * FROM bpe_vocab WHERE tokenizer = ?1 AND (token = ?2 OR text = ?3) LIMIT 50",
    "SELECT * FROM bpe_vocab(?1) WHERE text = ?2 AND id > ?3 LIMIT 50",
    "SELECT * FROM bpe_merges(?1) WHERE rank = ?2 OR id = ?3 LIMIT 50",
    "SELECT name, vocab_size, pattern FROM bpe_tokenizers WHERE name = ?1 OR digest = ?2",
    "SELECT x.value, t.id FROM json_each(json_array(?1, ?2)) x, bpe_tokens(x.value, ?3) t LIMIT 99",
    "SELECT bpe_count(?1, ?2) = json_array_length(bpe_encode(?1, ?2)) = 1",
    "SELECT bpe_count(?1, ?2, ?3) = (SELECT count(*) FROM bpe_tokens(?1, ?2, ?3)) = 1"
    " WHERE ?1 IS NOT NULL AND ?2 IS NOT NULL",
    "SELECT bpe_decode_blob(bpe_encode_blob(?1, ?2), ?2) = CAST(?1 AS BLOB) = 1",
    "SELECT (SELECT group_concat(hex(piece), '') FROM bpe_pieces(?1, ?2)) = hex(?1) = 1"
    " WHERE hex(?1) <> ''",
    "SELECT bpe_decode(json_array(?1, ?2), ?3)",
    "SELECT bpe_encode(?1, ?2, json_object('special', json_array(?3)))",
    "SELECT * FROM bpe_pieces(?1, ?2, json_object('regex', ?3)) LIMIT 500",
    "SELECT bpe_version(), length(bpe_debug())",
};

enum { N_TEMPLATES = sizeof templates / sizeof *templates, MAX_SQL = 2000 };
/* TICKS of 1000 steps of SQLite's machine for an input. */
enum { TICKS = 300, RUNS_PER_CONNECTION = 500 };

/* Strings that mean something, so that not every input has to find them. */
static const char *const words[] = {
    "gpt2", "cl100k_base", "o200k_base", "o200k_harmony", "p50k_edit", "gpt-4", "gpt-4o-mini",
    "gpt-oss-20b", "no such", "{}", "{\"special\":\"allow\"}", "{\"special\":\"error\"}",
    "{\"special\":{\"allow\":\"all\",\"error\":\"rest\"}}", "{\"special\":[\"<|endoftext|>\"]}",
    "{\"width\":16}", "{\"pad_to\":9,\"pad\":\"<|endoftext|>\"}", "{\"document\":true}",
    "{\"errors\":\"hold\"}", "{\"errors\":\"strict\"}", "{\"pattern\":\"qwen2\"}",
    "{\"regex\":\"\\\\w+\"}", "{\"regex\":\"(\"}", "{\"digest\":\"00\"}", "{\"special\":null}",
    "[1,2,3]", "[200000]", "[-1]", "[1.5]", "<|endoftext|>", "a<|endoftext|>b"};

enum { N_WORDS = sizeof words / sizeof *words };

static int bind_value(sqlite3_stmt *s, int i, input *in) {
  size_t len;
  const uint8_t *p;
  switch (take(in, 8)) {
    case 0: return sqlite3_bind_null(s, i);
    case 1: return sqlite3_bind_int64(s, i, (sqlite3_int64)(int32_t)take_u32(in));
    case 2: return sqlite3_bind_double(s, i, (double)take_u32(in) / 256);
    case 3: case 4: return sqlite3_bind_text(s, i, words[take(in, N_WORDS)], -1, SQLITE_STATIC);
    case 5:
      p = take_bytes(in, take(in, 256), &len);
      return sqlite3_bind_blob(s, i, len == 0 ? (const void *)"" : p, (int)len, SQLITE_TRANSIENT);
    default:
      p = take_bytes(in, take(in, 256), &len);
      return sqlite3_bind_text(s, i, len == 0 ? "" : (const char *)p, (int)len, SQLITE_TRANSIENT);
  }
}

static int deny(void *ctx, int action, const char *a, const char *b, const char *c,
                      const char *d) {
  (void)ctx, (void)a, (void)b, (void)c, (void)d;
  switch (action) {
    case SQLITE_ATTACH: case SQLITE_PRAGMA: /* files, and settings that outlast the input */
    case SQLITE_CREATE_TEMP_TABLE: case SQLITE_CREATE_TEMP_VIEW: case SQLITE_CREATE_TEMP_TRIGGER:
      return SQLITE_DENY; /* temp is not emptied with the database */
    default: return SQLITE_OK;
  }
}

static int give_up(void *ticks) {
  return --*(int *)ticks < 0;
}

static sqlite3 *open_database(int *ticks) {
  sqlite3 *db;
  char *error = NULL;
  REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
  REQUIRE(sqlite3_bpe_init(db, &error, NULL) == SQLITE_OK);
  sqlite3_set_authorizer(db, deny, NULL);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1000000);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 25000);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 100);
  sqlite3_progress_handler(db, 1000, give_up, ticks);
  return db;
}

/* Steps to the end, looking at every column as a reader would. */
static void run(sqlite3 *db, sqlite3_stmt *s, bool promise) {
  int rc, rows = 0;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW && rows++ < 1000) {
    for (int i = 0; i < sqlite3_column_count(s); i++) {
      const int type = sqlite3_column_type(s, i);
      const void *p = sqlite3_column_blob(s, i);
      const int len = sqlite3_column_bytes(s, i);
      REQUIRE(len == 0 || p != NULL);
      if (promise) REQUIRE(type == SQLITE_NULL || sqlite3_column_int(s, i) == 1);
    }
  }
  if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
    const char *text = sqlite3_errmsg(db);
    REQUIRE(text != NULL && text[0] != 0);
  }
}

static void run_template(sqlite3 *db, unsigned which, input *in) {
  sqlite3_stmt *s;
  const char *sql = templates[which];
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
    fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
  REQUIRE(s != NULL);
  for (int i = 1; i <= sqlite3_bind_parameter_count(s); i++)
    REQUIRE(bind_value(s, i, in) == SQLITE_OK);
  run(db, s, strstr(sql, "= 1") != NULL);
  sqlite3_finalize(s);
}

static void run_sql(sqlite3 *db, const input *in) {
  char *sql = malloc(in->left + 1);
  if (sql == NULL) abort();
  if (in->left != 0) memcpy(sql, in->at, in->left);
  sql[in->left] = 0;
  const char *rest = sql;
  for (int i = 0; i < 8 && *rest != 0; i++) {
    sqlite3_stmt *s = NULL;
    if (sqlite3_prepare_v2(db, rest, -1, &s, &rest) != SQLITE_OK) break;
    if (s != NULL) run(db, s, false);
    sqlite3_finalize(s);
  }
  free(sql);
}

/* The database as it was: empty. */
static void reset(sqlite3 *db, int *ticks) {
  *ticks = 1 << 20;
  if (!sqlite3_get_autocommit(db)) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
  sqlite3_set_authorizer(db, NULL, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_RESET_DATABASE, 1, 0);
  REQUIRE(sqlite3_exec(db, "VACUUM", NULL, NULL, NULL) == SQLITE_OK);
  sqlite3_db_config(db, SQLITE_DBCONFIG_RESET_DATABASE, 0, 0);
  sqlite3_set_authorizer(db, deny, NULL);
}

/* One connection serves many inputs, for a tokenizer takes long to load; now and then it closes,
** which it can only if nothing was left open. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sqlite3 *db;
  static int ticks;
  static unsigned runs;
  input in = {data, size};
  const unsigned which = take(&in, N_TEMPLATES);
  if (db == NULL) db = open_database(&ticks);
  ticks = TICKS;
  if (which != 0) run_template(db, which, &in);
  else if (in.left <= MAX_SQL) run_sql(db, &in);
  if (which == 0) reset(db, &ticks);
  if (++runs % RUNS_PER_CONNECTION == 0) {
    REQUIRE(sqlite3_close(db) == SQLITE_OK);
    db = NULL;
  }
  return 0;
}
