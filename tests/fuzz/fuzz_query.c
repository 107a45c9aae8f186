/* fuzz_query.c - statements made up: schemas, queries and changes over the whole surface.
**
** Input: which allocation of SQLite's (and so of ours) fails, if any, and how early a statement is
** interrupted; then a byte, 0 for SQL as it stands, else the input is read as decisions of a small
** grammar: tables with generated columns, CHECKs, expression indexes, triggers, views, FTS5 tables
** with our tokenizer, tokenizers stored, renamed, cut, deleted and edited by hand, transactions,
** savepoints, attached databases, and queries that join, filter, group and nest our functions and
** tables. A statement may fail, but then with a message; one that reads gives the same again; the
** connection stays usable, and closes.
*/
#include "sql.h"

enum { MOST_SQL = 6000, MOST_STATEMENTS = 10, DEPTH = 4, TICKS = 60, RUNS_PER_CONNECTION = 2000 };

/* ---- The grammar ----------------------------------------------------------------------------- */

typedef struct maker {
  input *in;
  int scope[2]; /* the tables that x and y stand for */
  char sql[MOST_SQL];
  size_t len;
} maker;

static void put(maker *m, const char *text) {
  const size_t n = strlen(text);
  if (n > sizeof m->sql - m->len - 1) return;
  memcpy(m->sql + m->len, text, n);
  m->len += n;
}

static const char *pick(maker *m, const char *const *list, unsigned n) {
  return list[take(m->in, n)];
}
#define PICK(m, list) put(m, pick(m, list, (unsigned)LENGTH(list)))

static const char *const literals[] = {"NULL",
                                       "0",
                                       "1",
                                       "2",
                                       "97",
                                       "256",
                                       "-1",
                                       "1e3",
                                       "9223372036854775807",
                                       "'ab'",
                                       "x'6162'",
                                       "x'ff00'",
                                       "''",
                                       "x''",
                                       "'the cab ab<s>'",
                                       "' the the'",
                                       "'e' || char(769)",
                                       "char(0)",
                                       "'[97,98]'",
                                       "x'6100000062000000'",
                                       "zeroblob(8)",
                                       "4.5"};

static const char *const names[] = {"'m'", "'g'",     "'h'",      "'w'",    "'m'", "'g'",
                                    "'n'", "'aux.n'", "'main.m'", "'gpt2'", "'z'"};

/* Kinds of arguments: t text, T tokenizer, o options, n number, e anything. */
static const struct {
  const char *name, *args;
} functions[] = {{"bpe_count", "tTo"},
                 {"bpe_encode", "tTo"},
                 {"bpe_encode_blob", "tTo"},
                 {"bpe_decode", "eTo"},
                 {"bpe_decode_blob", "eTo"},
                 {"bpe_token", "nT"},
                 {"bpe_token_id", "tT"},
                 {"bpe_fits", "tnTo"},
                 {"bpe_truncate", "tnTo"},
                 {"bpe_resolve", "t"},
                 {"bpe_ids_length", "en"},
                 {"bpe_ids_slice", "ennn"},
                 {"bpe_ansi", "tTo"},
                 {"bpe_html", "tTo"},
                 {"bpe_export", "Te"},
                 {"bpe_train", "tnon"},
                 {"bpe_token_stats", "tT"},
                 {"bpe_debug", ""},
                 {"bpe_private", "e"},
                 {"count", "e"},
                 {"group_concat", "e"},
                 {"hex", "e"},
                 {"json", "e"},
                 {"json_array_length", "e"},
                 {"substr", "tnn"},
                 {"typeof", "e"},
                 {"max", "e"},
                 {"json_extract", "ee"},
                 {"quote", "e"},
                 {"json_group_array", "e"}};

/* What a query can read, with its columns (not all of bpe_tokenizers, which loads every encoding);
 * those of functions go by the arguments' kinds. */
static const struct {
  const char *name, *args, *columns[12];
} tables[] = {
    {"bpe_tokens",
     "tTo",
     {"seq", "id", "token", "text", "start", "stop", "char_stop", "piece", "special", "input"}},
    {"bpe_pieces", "tTo", {"seq", "piece", "text", "start", "stop", "input", "tokenizer"}},
    {"bpe_chunks", "tnTo", {"seq", "text", "tokens", "start", "stop", "max_tokens", "options"}},
    {"bpe_trace",
     "tTo",
     {"piece", "step", "rank", "\"left\"", "id", "replacements", "before", "after"}},
    {"bpe_stream", "sTo", {"seq", "id", "input", "tokenizer"}},
    {"bpe_ids", "en", {"seq", "id"}},
    {"bpe_vocab", "T", {"id", "token", "text", "special", "length", "tokenizer"}},
    {"bpe_merges", "T", {"rank", "\"left\"", "\"right\"", "id", "token", "text", "count"}},
    {"json_each", "e", {"value", "key", "type", "id"}},
    {"t", NULL, {"a", "b", "c", "b"}},
    {"u", NULL, {"a", "b", "c", "d"}},
    {"v", NULL, {"text", "tokens"}},
    {"f", NULL, {"b", "rowid", "rank"}},
    {"fv", NULL, {"term", "doc", "cnt"}},
    {"(SELECT * FROM bpe_tokenizers WHERE schema = 'main')",
     NULL,
     {"name", "pattern", "vocab_size", "sealed", "stats"}},
    {"(SELECT name, schema, sealed, rowid FROM bpe_tokenizers)",
     NULL,
     {"name", "schema", "sealed", "rowid"}},
    {"bpe_model", NULL, {"id", "name", "pattern", "options", "digest"}},
    {"bpe_model_vocab", NULL, {"model_id", "id", "token", "kind"}},
    {"bpe_model_merges", NULL, {"model_id", "rank", "\"left\"", "id", "count"}},
    {"aux.t", NULL, {"a", "b", "c"}},
    {"sqlite_schema", NULL, {"name", "sql", "type"}}};

enum { FIRST_TABLE = 9 }; /* t */

static void expr(maker *m, int depth);
static void query(maker *m, int depth);

/* A text of the input's own, or a word that means something, quoted. */
static void put_string(maker *m) {
  char text[64];
  size_t len, n = 0;
  if (take(m->in, 2) == 0) {
    char *q = sqlite3_mprintf("%Q", words[take(m->in, LENGTH(words))]);
    if (q != NULL) put(m, q);
    sqlite3_free(q);
    return;
  }
  const uint8_t *p = take_bytes(m->in, take(m->in, 24), &len);
  text[n++] = '\'';
  for (size_t i = 0; i < len && p[i] != 0; i++) {
    if (p[i] == '\'') text[n++] = '\'';
    text[n++] = (char)p[i];
  }
  text[n++] = '\'';
  text[n] = 0;
  put(m, text);
}

static void put_options(maker *m) {
  char *q = sqlite3_mprintf("%Q", words[take(m->in, OPTIONS)]);
  if (q != NULL) put(m, q);
  sqlite3_free(q);
}

static void argument(maker *m, char kind, int depth) {
  const bool odd = take(m->in, 8) == 7;
  if (odd) expr(m, depth - 1);
  else if (kind == 'T') PICK(m, names);
  else if (kind == 'o') put_options(m);
  else if (kind == 's') put(m, take(m->in, 2) ? "'SELECT b FROM t'" : "'VALUES(''ab''),(x''c3'')'");
  else if (kind == 'n') PICK(m, literals);
  else if (kind == 't' && take(m->in, 2)) put_string(m);
  else expr(m, depth - 1);
}

/* At least the first argument; the rest as long as the input says. */
static void arguments(maker *m, const char *kinds, int depth) {
  put(m, "(");
  for (size_t i = 0; kinds[i] != 0; i++) {
    if (i > 0 && (i > 1 || kinds[0] == 'T') && take(m->in, 4) == 0) break;
    if (i > 0) put(m, ", ");
    argument(m, kinds[i], depth);
  }
  put(m, ")");
}

static void column(maker *m) {
  const unsigned which = take(m->in, 2), n = take(m->in, 12);
  const char *const *list = tables[m->scope[which]].columns;
  unsigned k = 0;
  while (k < n && k + 1 < LENGTH(tables[0].columns) && list[k + 1] != NULL) k++;
  if (m->scope[which] != m->scope[!which]) put(m, which ? "y." : "x.");
  put(m, list[k]);
}

static void expr(maker *m, int depth) {
  static const char *const operators[] = {" = ",   " < ",    " >= ", " || ",     " + ",
                                          " AND ", " OR ",   " IS ", " IS NOT ", " LIKE ",
                                          " <> ",  " GLOB ", " % ",  " MATCH ",  "->>"};
  const unsigned what = depth <= 0 ? take(m->in, 4) : take(m->in, 14);
  switch (what) {
  case 0: column(m); return;
  case 1: PICK(m, literals); return;
  case 2: put_string(m); return;
  case 3: PICK(m, names); return;
  case 4:
  case 5:
  case 6:
  case 7: {
    const unsigned f = take(m->in, LENGTH(functions));
    put(m, functions[f].name);
    arguments(m, functions[f].args, depth);
    return;
  }
  case 8:
  case 9:
    put(m, "(");
    expr(m, depth - 1);
    PICK(m, operators);
    expr(m, depth - 1);
    put(m, ")");
    return;
  case 10:
    put(m, "(");
    query(m, depth - 1);
    put(m, ")");
    return;
  case 11:
    expr(m, depth - 1);
    put(m, take(m->in, 2) ? " IN (1, 97, " : " IN (");
    if (take(m->in, 2)) expr(m, depth - 1);
    else put(m, "'ab', x'6162'");
    put(m, ")");
    return;
  case 12:
    put(m, "CAST(");
    expr(m, depth - 1);
    put(m, take(m->in, 2) ? " AS BLOB)" : " AS TEXT)");
    return;
  default:
    put(m, "CASE WHEN ");
    expr(m, depth - 1);
    put(m, " THEN ");
    expr(m, depth - 1);
    put(m, " END");
  }
}

/* Its text is kept apart, because what a query selects comes before it. */
static void relation(maker *m, int depth, int which, char *text, size_t room) {
  const size_t start = m->len;
  const unsigned t = take(m->in, LENGTH(tables));
  if (depth > 1 && take(m->in, 8) == 7) put(m, "("), query(m, depth - 1), put(m, ")");
  else {
    put(m, tables[t].name);
    if (tables[t].args != NULL && take(m->in, 8) != 7) arguments(m, tables[t].args, depth - 1);
  }
  put(m, which ? " y" : " x");
  const size_t n = m->len - start < room ? m->len - start : 0;
  memcpy(text, m->sql + start, n);
  text[n] = 0;
  m->len = start;
  m->scope[which] = (int)t;
}

/* What the tables look up, or a hidden column set by an equality. */
static void condition(maker *m, int depth) {
  static const char *const operators[] = {" = ", " = ", " > ", " IS ", " LIKE ", " <= "};
  static const char *const hidden[] = {
      "x.input = ", "x.tokenizer = ", "x.options = ", "x.max_tokens = ", "x.schema = "};
  const unsigned what = take(m->in, 6);
  if (what == 0) PICK(m, hidden);
  else if (what < 5) column(m), PICK(m, operators);
  expr(m, depth - 1);
}

static void query(maker *m, int depth) {
  static const char *const joins[] = {" , ", " JOIN ", " LEFT JOIN "};
  static const char *const unions[] = {" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT "};
  char from[1000], other[1000] = "";
  const int outer[2] = {m->scope[0], m->scope[1]};
  relation(m, depth, 0, from, sizeof from);
  m->scope[1] = m->scope[0];
  const bool join = take(m->in, 3) == 2;
  if (join) relation(m, depth, 1, other, sizeof other);
  put(m, take(m->in, 8) == 7 ? "SELECT DISTINCT " : "SELECT ");
  if (take(m->in, 4) == 3) put(m, "*");
  else expr(m, depth);
  put(m, " FROM ");
  put(m, from);
  if (join) {
    PICK(m, joins);
    put(m, other);
    if (take(m->in, 2)) put(m, " ON "), condition(m, depth);
  }
  if (take(m->in, 2)) put(m, " WHERE "), condition(m, depth);
  if (take(m->in, 8) == 7) put(m, " GROUP BY "), expr(m, depth - 1);
  if (take(m->in, 10) == 9) PICK(m, unions), put(m, "SELECT "), expr(m, depth - 1);
  if (take(m->in, 6) == 5) put(m, take(m->in, 2) ? " ORDER BY 1" : " ORDER BY 1 DESC");
  if (take(m->in, 2)) put(m, " LIMIT 20");
  memcpy(m->scope, outer, sizeof outer);
}

/* Changes of the schema, of tables and of tokenizers; $ stands for an expression, @ for a query. */
static const char *const changes[] = {
    "CREATE TABLE k(a, b, d AS ($))",
    "CREATE TABLE k(a, b, c AS (bpe_count(b, 'w')) STORED, d CHECK ($))",
    "CREATE TABLE IF NOT EXISTS k(a DEFAULT ($), b, c, d)",
    "CREATE TABLE k AS @",
    "CREATE INDEX i ON t($)",
    "CREATE INDEX i ON t(bpe_count(b)) WHERE $",
    "CREATE INDEX j ON u(bpe_count(b, 'm'))",
    "CREATE VIEW w AS @",
    "CREATE VIEW w(id, text) AS SELECT $, b FROM t",
    "SELECT * FROM k, w",
    "INSERT INTO k(a, b) VALUES($, $)",
    "CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO u(a, b) VALUES($, $); END",
    "CREATE TRIGGER q BEFORE UPDATE ON t BEGIN SELECT $; DELETE FROM t WHERE a = $; END",
    ("CREATE TRIGGER p INSTEAD OF INSERT ON v BEGIN INSERT INTO bpe_tokenizers(name, source) "
     "VALUES('p', $); END"),
    "INSERT INTO t VALUES($, $, $)",
    "INSERT INTO u(a, b) VALUES($, $)",
    "INSERT OR REPLACE INTO t(a, b) @",
    "INSERT INTO v(text, tokens) VALUES($, $)",
    "UPDATE t SET b = $ WHERE $",
    "UPDATE u SET b = $",
    "DELETE FROM t WHERE $",
    "CREATE VIRTUAL TABLE l USING fts5(b, c, tokenize = 'bpe g')",
    "CREATE VIRTUAL TABLE l USING fts5(b, tokenize = 'bpe m fold trim')",
    ("CREATE VIRTUAL TABLE l USING fts5(b, content = 't', content_rowid = 'a', tokenize = 'bpe h "
     "trim')"),
    "CREATE VIRTUAL TABLE lv USING fts5vocab(l, col)",
    "INSERT INTO l(rowid, b) SELECT rowid, b FROM t",
    "SELECT * FROM l WHERE l MATCH $",
    "SELECT * FROM lv",
    "INSERT INTO f(rowid, b) SELECT rowid, b FROM t",
    "INSERT INTO f(b) VALUES($)",
    "SELECT rowid, snippet(f, 0, '<', '>', '', 5), bm25(f) FROM f WHERE f MATCH $",
    "SELECT highlight(f, 0, '[', ']') FROM f('ab' || $)",
    "INSERT INTO f(f) VALUES('rebuild')",
    "INSERT INTO f(f) VALUES('integrity-check')",
    "DELETE FROM f WHERE rowid = $",
    "DROP TABLE f",
    "INSERT INTO bpe_tokenizers(name, source) VALUES('n', $)",
    "INSERT INTO bpe_tokenizers(name, source) SELECT 'n', bpe_train(b, 262) FROM t",
    "INSERT INTO bpe_tokenizers(name, source) SELECT 'n' || a, bpe_export($, 'model') FROM t",
    ("INSERT OR IGNORE INTO bpe_tokenizers(name, source, pattern) VALUES('n', "
     "'{\"merges\":[[97,98]]}', $)"),
    ("INSERT OR REPLACE INTO bpe_tokenizers(name, source, options) VALUES('m', bpe_export('g', "
     "'model'), $)"),
    ("INSERT INTO bpe_tokenizers(name, schema, source, merges, special_tokens) VALUES('n', 'aux', "
     "$, $, $)"),
    ("INSERT INTO bpe_tokenizers(name, schema, source) VALUES('n', 'aux', bpe_export('m', "
     "'huggingface'))"),
    "UPDATE bpe_tokenizers SET name = $ WHERE name = 'm' AND schema = 'main'",
    "UPDATE bpe_tokenizers SET name = 'm' WHERE schema = 'main' AND $",
    "UPDATE bpe_tokenizers SET sealed = 1 WHERE schema = 'main' AND $",
    "DELETE FROM bpe_tokenizers WHERE name = $ AND schema = 'main'",
    "UPDATE bpe_tokenizers SET sealed = $ WHERE name = 'm' AND schema = 'main'",
    "UPDATE bpe_tokenizers SET digest = $ WHERE name = 'g' AND schema = 'main'",
    "INSERT INTO bpe_tokenizers(name, source, vocab_size) VALUES('n', $, $)",
    "INSERT INTO bpe_tokenizers(name, schema, source) VALUES($, $, bpe_export('m', 'model'))",
    "DELETE FROM bpe_tokenizers WHERE name = 'gpt2'",
    "SELECT x.rowid, x.input, x.tokenizer, x.options FROM bpe_chunks($, 3, 'g') x",
    "SELECT bpe_resolve(name), bpe_resolve('main.' || name), bpe_resolve('aux.' || $) FROM "
    "bpe_model",
    "INSERT INTO bpe_tokenizers(name, source, options) SELECT 'n' || a, bpe_train(b, 270), "
    "'{\"vocab_size\":' ||"
    " (256 + a) || '}' FROM t GROUP BY a",
    "UPDATE OR IGNORE bpe_tokenizers SET name = 'g' WHERE schema = 'main'",
    "UPDATE bpe_model_vocab SET token = $ WHERE id = $",
    "UPDATE bpe_model_merges SET rank = rank + 1 WHERE $",
    "DELETE FROM bpe_model_vocab WHERE $",
    "INSERT INTO bpe_model_vocab SELECT 1, id + 300, token, kind FROM bpe_model_vocab",
    "DELETE FROM bpe_model WHERE $",
    "UPDATE bpe_model SET options = $",
    "UPDATE bpe_model SET digest = zeroblob(32) WHERE name = 'm'",
    "DROP TABLE bpe_model_merges",
    "DROP TRIGGER bpe_model_vocab_updated",
    "ALTER TABLE bpe_model RENAME TO bpe_other",
    "ALTER TABLE bpe_model_vocab ADD COLUMN more",
    "ALTER TABLE bpe_model RENAME COLUMN options TO settings",
    "CREATE VIEW bpe_other AS SELECT * FROM bpe_model",
    "DROP VIEW v",
    "DROP TABLE u",
    "DROP INDEX i",
    "ALTER TABLE t RENAME TO v",
    "BEGIN",
    "BEGIN IMMEDIATE",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "RELEASE s",
    "VACUUM",
    "ANALYZE",
    "REINDEX",
    "ATTACH ':memory:' AS aux",
    "CREATE TABLE aux.t(a, b, c)",
    "DETACH aux",
    "EXPLAIN QUERY PLAN @",
    "EXPLAIN @",
    "PRAGMA integrity_check",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA trusted_schema = ON",
    "PRAGMA recursive_triggers = ON",
    "PRAGMA foreign_keys = ON",
    "PRAGMA table_xinfo(bpe_tokens)",
    "PRAGMA query_only = ON",
    "PRAGMA query_only = OFF",
    "PRAGMA writable_schema = ON",
    "UPDATE sqlite_schema SET sql = replace(sql, 'AFTER', 'BEFORE')",
    "PRAGMA cell_size_check = ON",
    "PRAGMA secure_delete = ON"};

static void statement(maker *m) {
  m->len = 0;
  if (take(m->in, 3) == 0) query(m, DEPTH);
  else {
    for (const char *c = pick(m, changes, LENGTH(changes)); *c != 0; c++) {
      if (*c == '$') expr(m, 2);
      else if (*c == '@') query(m, 3);
      else put(m, (char[]){*c, 0});
    }
  }
  m->sql[m->len] = 0;
}

/* ---- Running --------------------------------------------------------------------------------- */

static int deny(void *ctx, int action, const char *a, const char *b, const char *c, const char *d) {
  (void)ctx, (void)b, (void)c, (void)d;
  if (action == SQLITE_ATTACH && a != NULL && strcmp(a, ":memory:") != 0) return SQLITE_DENY;
  switch (action) { /* temp is not put back with the database */
  case SQLITE_CREATE_TEMP_TABLE:
  case SQLITE_CREATE_TEMP_VIEW:
  case SQLITE_CREATE_TEMP_TRIGGER:
  case SQLITE_CREATE_TEMP_INDEX: return SQLITE_DENY;
  default: return SQLITE_OK;
  }
}

/* PRAGMA as SQL as it stands could name files and outlast the input. */
static int deny_more(void *ctx, int action, const char *a, const char *b, const char *c,
                     const char *d) {
  return action == SQLITE_PRAGMA ? SQLITE_DENY : deny(ctx, action, a, b, c, d);
}

/* Whether it answers the same again. Not bpe_train, whose answer says how long it took, and not the
** hidden column that bears the name of an FTS5 table, which the grammar does not read. */
static bool is_steady(const char *sql) {
  return strstr(sql, "debug") == NULL && strstr(sql, "random") == NULL &&
         strstr(sql, "time") == NULL && strstr(sql, "date") == NULL &&
         strstr(sql, "changes") == NULL && strstr(sql, "bpe_train") == NULL;
}

/* Whether the connection may be another after it. made: by the grammar. */
static bool run_one(sqlite3 *db, const char *sql, const char **rest, int *ticks, int ticks_each,
                    bool made) {
  sqlite3_stmt *s = NULL;
  uint64_t sum[2];
  *ticks = ticks_each;
  *rest = NULL;
  if (sqlite3_prepare_v2(db, sql, -1, &s, rest) != SQLITE_OK || s == NULL) {
    REQUIRE(s == NULL && sqlite3_errmsg(db)[0] != 0);
    return false;
  }
  const bool reads = sqlite3_stmt_readonly(s) != 0;
  const bool memory = until_failure != 0;
  const int rc = run(db, s, false, &sum[0]);
  const int reset = sqlite3_reset(s);
  REQUIRE(rc == SQLITE_ROW || rc == SQLITE_DONE ? reset == SQLITE_OK : true);
  if (made && reads && rc == SQLITE_DONE && !memory && sqlite3_column_count(s) > 0 &&
      is_steady(sql)) {
    *ticks = 1 << 20;
    const int again = run(db, s, false, &sum[1]);
    if (again != rc || sum[0] != sum[1]) fprintf(stderr, "%s\n", sql);
    REQUIRE(again == rc && sum[0] == sum[1]);
  }
  sqlite3_finalize(s);
  return !reads || strncmp(sql, "PRAGMA", 6) == 0;
}

static bool run_raw(sqlite3 *db, const input *in, int *ticks, int ticks_each) {
  char sql[2001];
  const size_t len = in->left < sizeof sql - 1 ? in->left : sizeof sql - 1;
  bool wrote = false;
  if (len > 0) memcpy(sql, in->at, len);
  sql[len] = 0;
  const char *rest = sql;
  sqlite3_set_authorizer(db, deny_more, NULL);
  for (int i = 0; i < MOST_STATEMENTS && rest != NULL && *rest != 0; i++)
    wrote |= run_one(db, rest, &rest, ticks, ticks_each, false);
  return wrote;
}

/* The connection as it was; false: another one is needed. */
static bool reset(sqlite3 *db, int *ticks) {
  *ticks = 1 << 20;
  sqlite3_set_authorizer(db, NULL, NULL);
  if (!sqlite3_get_autocommit(db)) sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
  sqlite3_exec(db, "DETACH aux", NULL, NULL, NULL);
  REQUIRE(
      sqlite3_exec(
          db,
          "PRAGMA trusted_schema = ON; PRAGMA recursive_triggers = OFF; PRAGMA query_only = OFF;"
          "PRAGMA foreign_keys = OFF; PRAGMA writable_schema = OFF; PRAGMA secure_delete = OFF",
          NULL, NULL, NULL) == SQLITE_OK);
  return restore(db);
}

/* After whatever came before, the tokenizers answer. */
static void check_alive(sqlite3 *db) {
  sqlite3_stmt *s = NULL;
  REQUIRE(sqlite3_prepare_v2(db,
                             "SELECT bpe_encode('the cab', 'g') = '[116,257,32,99,260]',"
                             " bpe_encode('abca', 'm') = '[257,97]'",
                             -1, &s, NULL) == SQLITE_OK);
  REQUIRE(run(db, s, true, NULL) == SQLITE_DONE);
  sqlite3_finalize(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sqlite3 *db;
  static int ticks;
  static unsigned runs;
  static maker m;
  input in = {data, size};
  if (db == NULL) db = open_database(&ticks);
  const unsigned failing = take(&in, 8), nth = take(&in, 256) * 2 + 1, early = take(&in, 16);
  const int ticks_each = early == 0 ? 1 : TICKS;
  sqlite3_set_authorizer(db, deny, NULL);
  bool wrote = false;
  if (take(&in, 16) == 0) {
    if (failing == 0) until_failure = (int)nth;
    wrote = run_raw(db, &in, &ticks, ticks_each);
  } else {
    m.in = &in;
    m.scope[0] = m.scope[1] = FIRST_TABLE;
    for (int i = 0; i < MOST_STATEMENTS && in.left > 0; i++) {
      const char *rest;
      statement(&m);
      if (getenv("FUZZ_SHOW") != NULL) fprintf(stderr, "%s;\n", m.sql);
      if (failing == 0 && i > 0) until_failure = (int)nth;
      wrote |= run_one(db, m.sql, &rest, &ticks, ticks_each, true);
      until_failure = 0;
    }
  }
  until_failure = 0;
  bool usable = !wrote && sqlite3_get_autocommit(db);
  if (!usable) usable = reset(db, &ticks);
  ticks = 1 << 20;
  if (usable) check_alive(db);
  if (++runs % RUNS_PER_CONNECTION == 0 || !usable) {
    REQUIRE(sqlite3_close(db) == SQLITE_OK);
    db = NULL;
  }
  return 0;
}
