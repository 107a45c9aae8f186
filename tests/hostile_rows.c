/* hostile_rows.c - database files whose storage tables are not what they seem.
**
**     hostile_rows [./bpe] [--full] [--sabotage]
**
** (1) Look-alikes: in place of each storage table a view (also one without end), a virtual table, a
**     table with other columns, types, keys, generated columns, constraints, indexes or triggers
**     that call back into the extension; in main, in temp and in an attached file. Everything that
**     uses stored tokenizers is then tried. It may work or fail with a message of ours; it may not
**     go on without end, answer wrongly, or touch the tokenizer of another schema.
** (2) Tampered rows: every column of every table, first and last rows, with values of every type
**     and at every edge; under the triggers, with them switched off, and by another program with the
**     constraints taken away. Whatever is answered is what was answered before; what can be sealed
**     again answers as its copy does.
** (3) Ids up to the highest, with gaps: what memory is used does not depend on them.
** (4) A token of 200 MB, with --full of 990 MB: it is refused by its length, unread; or read once,
**     where it is a tokenizer's first row. The tokenizer before does not notice.
**
** --full tries all values in all places; without it each place gets some of them, by turns. With
** --sabotage the answer that tampering is compared with is another one.
*/
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#endif
#include "hostile.h"

#define PLAIN "{\"pattern\":\"none\",\"merges\":[[97,98],[256,99]],\"special_tokens\":[\"<s>\"]," \
  "\"bos\":[\"<s>\"]}"
#define STORE(schema, name) \
  "INSERT INTO bpe_tokenizers(name, schema, source) VALUES('" name "', '" schema "', '" PLAIN "')"
#define ANSWER "[258,257,256]"

/* ---- (1) ------------------------------------------------------------------------------------- */

/* What is done to a schema that has a tokenizer m; %s: the schema. */
static const char *const forms[] = {
    "DROP TABLE %s.bpe_model; CREATE VIEW %s.bpe_model AS SELECT 1 AS id, 'm' AS name, 'none' AS"
    " pattern, '{\"format\":1}' AS options, NULL AS stats, zeroblob(32) AS digest",
    "DROP TABLE %s.bpe_model; CREATE VIEW %s.bpe_model AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
    " SELECT i + 1 FROM n) SELECT i AS id, 'm' || i AS name, 'none' AS pattern, '{}' AS options, NULL"
    " AS stats, zeroblob(32) AS digest FROM n",
    "DROP TABLE %s.bpe_model_vocab; CREATE VIEW %s.bpe_model_vocab AS WITH RECURSIVE n(i) AS (SELECT 1"
    " UNION ALL SELECT i + 1 FROM n) SELECT 1 AS model_id, i AS id, CAST('t' || i AS BLOB) AS token,"
    " 'token' AS kind FROM n",
    "DROP TABLE %s.bpe_model_merges; CREATE VIEW %s.bpe_model_merges AS WITH RECURSIVE n(i) AS (SELECT"
    " 1 UNION ALL SELECT i + 1 FROM n) SELECT 1 AS model_id, i AS rank, i AS \"left\", i AS \"right\","
    " i AS id, NULL AS count FROM n",
    "DROP TABLE %s.bpe_model; CREATE VIEW %s.bpe_model AS SELECT 1 AS id, 'm' AS name, 'none' AS"
    " pattern, '{}' AS options, NULL AS stats, bpe_encode_blob('x', 'm') AS digest",
    "DROP TABLE %s.bpe_model_vocab; CREATE VIEW %s.bpe_model_vocab AS SELECT 1 AS model_id, id, token,"
    " 'token' AS kind FROM bpe_vocab('m')",
    "DROP TABLE %s.bpe_model; CREATE VIRTUAL TABLE %s.bpe_model USING fts5(id, name, pattern, options,"
    " stats, digest)",
    "DROP TABLE %s.bpe_model_vocab; CREATE VIRTUAL TABLE %s.bpe_model_vocab USING fts5(model_id, id,"
    " token, kind, tokenize = 'bpe m')",
    "DROP TABLE %s.bpe_model_merges; CREATE VIRTUAL TABLE %s.bpe_model_merges USING rtree(a, b, c)",
    "DROP TABLE %s.bpe_model; CREATE TABLE %s.bpe_model(id, name UNIQUE, pattern, options, stats,"
    " digest); INSERT INTO %s.bpe_model VALUES('1', 'm', 'none', '{\"format\":1}', NULL, zeroblob(32))",
    "DROP TABLE %s.bpe_model; CREATE TABLE %s.bpe_model(id INTEGER PRIMARY KEY, name BLOB UNIQUE NOT"
    " NULL, pattern BLOB, options INTEGER, stats REAL, digest TEXT)",
    "DROP TABLE %s.bpe_model; CREATE TABLE %s.bpe_model(name TEXT UNIQUE NOT NULL)",
    "DROP TABLE %s.bpe_model; CREATE TABLE %s.bpe_model(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT"
    " NULL, pattern TEXT, options TEXT, stats TEXT, digest BLOB) WITHOUT ROWID;"
    "INSERT INTO %s.bpe_model VALUES(1, 'm', 'none', '{}', NULL, zeroblob(32))",
    "DROP TABLE %s.bpe_model; CREATE TABLE %s.bpe_model(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT"
    " NULL COLLATE NOCASE, pattern TEXT, options TEXT, stats TEXT, digest BLOB);"
    "INSERT INTO %s.bpe_model VALUES(1, 'M', 'none', '{}', NULL, zeroblob(32))",
    "DROP TABLE %s.bpe_model; CREATE TABLE %s.bpe_model(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT"
    " NULL, pattern TEXT, options TEXT, stats TEXT, digest BLOB AS (bpe_encode_blob(name, 'm')));"
    "INSERT INTO %s.bpe_model(id, name) VALUES(1, 'm')",
    "DROP TABLE %s.bpe_model; CREATE TABLE %s.bpe_model(id INTEGER PRIMARY KEY, name TEXT UNIQUE NOT"
    " NULL, pattern TEXT, options TEXT, stats TEXT, digest BLOB, CHECK (bpe_count(name, 'm') < 9))",
    "DROP TABLE %s.bpe_model_vocab; CREATE TABLE %s.bpe_model_vocab(model_id, id, token, kind);"
    "INSERT INTO %s.bpe_model_vocab VALUES(1, 97, x'61', 'token')",
    "DROP TABLE %s.bpe_model_vocab; CREATE TABLE %s.bpe_model_vocab(model_id INTEGER NOT NULL, id"
    " INTEGER NOT NULL, token BLOB AS (bpe_token(id, 'm')), kind TEXT NOT NULL);"
    "INSERT INTO %s.bpe_model_vocab VALUES(1, 97, 'token')",
    "DROP TABLE %s.bpe_model_merges; CREATE TABLE %s.bpe_model_merges(model_id INTEGER NOT NULL, rank"
    " INTEGER NOT NULL, \"left\" INTEGER NOT NULL, \"right\" INTEGER NOT NULL, id INTEGER NOT NULL,"
    " count INTEGER, PRIMARY KEY(model_id, rank, \"left\", \"right\"))",
    "DROP TABLE %s.bpe_model_merges; CREATE TABLE %s.bpe_model_merges(x)",
    "DROP TABLE %s.bpe_model_vocab", "DROP TABLE %s.bpe_model_merges", "DROP TABLE %s.bpe_model",
    "CREATE INDEX %s.planted ON bpe_model(bpe_count(name, 'gpt2'))",
    "CREATE INDEX %s.planted ON bpe_model_merges(rank) WHERE bpe_count(rank, 'gpt2') > 0",
    "CREATE TRIGGER %s.planted BEFORE INSERT ON bpe_model BEGIN SELECT RAISE(IGNORE); END",
    "CREATE TRIGGER %s.planted BEFORE INSERT ON bpe_model_vocab BEGIN SELECT RAISE(IGNORE); END",
    "CREATE TRIGGER %s.planted AFTER INSERT ON bpe_model_vocab WHEN NEW.id = 99 BEGIN"
    " UPDATE bpe_model_vocab SET id = 1000 WHERE model_id = NEW.model_id AND id = 98; END",
    "CREATE TRIGGER %s.planted AFTER INSERT ON bpe_model_merges BEGIN DELETE FROM bpe_model_vocab; END",
    "CREATE TRIGGER %s.planted AFTER INSERT ON bpe_model BEGIN UPDATE bpe_model SET name = 'm2' WHERE"
    " id = NEW.id; END",
    "CREATE TRIGGER %s.planted AFTER INSERT ON bpe_model BEGIN SELECT bpe_count('abc', 'm'); END",
    "CREATE TRIGGER %s.planted AFTER DELETE ON bpe_model BEGIN SELECT RAISE(FAIL, 'planted'); END",
    "CREATE TRIGGER %s.planted AFTER DELETE ON bpe_model BEGIN INSERT INTO bpe_model(id, name, digest)"
    " VALUES(OLD.id, OLD.name, OLD.digest); END",
    "CREATE TRIGGER %s.planted AFTER UPDATE ON bpe_model WHEN NEW.digest IS NULL BEGIN"
    " UPDATE bpe_model SET digest = OLD.digest WHERE id = NEW.id; END;"
    "UPDATE %s.bpe_model_vocab SET kind = 'added' WHERE id = 258",
    "DROP TRIGGER %s.bpe_model_vocab_updated;"
    "CREATE TRIGGER %s.bpe_model_vocab_updated AFTER UPDATE ON bpe_model_vocab BEGIN SELECT 1; END;"
    "UPDATE %s.bpe_model_vocab SET kind = 'added' WHERE id = 258",
};

enum { N_FORMS = sizeof forms / sizeof *forms };

/* What a user does. %s: the hostile schema. The first is asked for the answer. */
static const char *const uses[] = {
    "SELECT bpe_encode('abcab', '%s.m', '{\"document\":true}')",
    "SELECT bpe_encode('abcab', 'm', '{\"document\":true}')",
    "SELECT count(*) FROM bpe_tokens('abcab', 'm')",
    "SELECT count(*) FROM bpe_vocab('m')",
    "SELECT count(*) FROM bpe_merges('m')",
    "SELECT bpe_token_stats('abcab', 'm')",
    "SELECT length(bpe_export('m', 'model'))",
    "SELECT bpe_resolve('m')",
    "SELECT bpe_resolve('nobody')",
    "SELECT name, digest, stats, sealed FROM bpe_tokenizers WHERE schema <> 'builtin'",
    "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'm'",
    "INSERT INTO bpe_tokenizers(name, schema, source) VALUES('n', '%s', '" PLAIN "')",
    "SELECT bpe_encode('abcab', 'n', '{\"document\":true}')",
    "UPDATE bpe_tokenizers SET name = 'o' WHERE name = 'm'",
    "DELETE FROM bpe_tokenizers WHERE name IN ('m', 'n', 'o')",
    STORE("main", "again"),
};

static char *in_schema(const char *format, const char *schema) {
  return sqlite3_mprintf(format, schema, schema, schema, schema);
}

static void check_use(hostile *h, sqlite3 *db, int form, int use, const char *schema) {
  char *sql = in_schema(uses[use], schema);
  const bool answers = strncmp(uses[use], "SELECT bpe_encode", 17) == 0;
  if (answers) {
    char *got = hostile_value(h, db, sql);
    loaded_check(&h->t, h->ticks <= HOSTILE_TICKS, "form %d in %s never ends: %s", form, schema, sql);
    loaded_check(&h->t, !got || strcmp(got, ANSWER) == 0, "form %d in %s: %s: %s", form, schema, sql,
                 got);
    sqlite3_free(got);
  }
  const int rc = hostile_try(h, db, sql);
  const char *said = sqlite3_errmsg(db);
  loaded_check(&h->t,
               rc == SQLITE_OK || rc == SQLITE_CONSTRAINT || strncmp(said, "bpe_", 4) == 0 ||
                   strstr(said, "unsafe use of") || strstr(said, "malformed database schema"),
               "form %d in %s: %s: %d %s", form, schema, sql, rc, said);
  sqlite3_free(sql);
}

/* The tokenizer of the other schema is as it was; unless SQLite reads no schema at all, because one
** calls what it may not. */
static void check_good(hostile *h, sqlite3 *db, const char *sql, const char *expected) {
  char *got = hostile_value(h, db, sql);
  if (!got) {
    loaded_check(&h->t, strstr(sqlite3_errmsg(db), "malformed database schema"), "%s: %s", sql,
                 sqlite3_errmsg(db));
  } else {
    loaded_check(&h->t, strcmp(got, expected) == 0, "%s: %s", sql, got);
  }
  sqlite3_free(got);
}

static void check_form(hostile *h, int form, const char *schema, const char *other, bool trusted) {
  sqlite3 *db = hostile_open(h, NULL);
  hostile_run(h, db, "ATTACH ':memory:' AS h");
  char *good = in_schema("INSERT INTO bpe_tokenizers(name, schema, source) VALUES('good', '%s', '" PLAIN
                         "')", other);
  char *bad = in_schema("INSERT INTO bpe_tokenizers(name, schema, source) VALUES('m', '%s', '" PLAIN
                        "')", schema);
  char *plant = in_schema(forms[form], schema);
  hostile_run(h, db, good);
  hostile_run(h, db, bad);
  const int rc = hostile_try(h, db, plant);
  const char *said = sqlite3_errmsg(db);
  loaded_check(&h->t, rc == SQLITE_OK || strstr(said, "no such module") || strncmp(said, "bpe_", 4) == 0,
               "%s: %s", plant, said);
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, trusted, NULL);
  for (size_t i = 0; i < sizeof uses / sizeof *uses; i++) {
    check_use(h, db, form, (int)i, schema);
    check_good(h, db, "SELECT bpe_encode('abcab', 'good', '{\"document\":true}')", ANSWER);
  }
  check_good(h, db, "SELECT sealed FROM bpe_tokenizers WHERE name = 'good'", "1");
  sqlite3_free(good);
  sqlite3_free(bad);
  sqlite3_free(plant);
  hostile_close(h, db);
}

static void check_look_alikes(hostile *h) {
  static const char *const where[][2] = {{"h", "main"}, {"main", "temp"}, {"temp", "h"}};
  for (int form = 0; form < N_FORMS; form++)
    for (int i = 0; i < 3; i++)
      for (int trusted = 0; trusted < 2; trusted++)
        check_form(h, form, where[i][0], where[i][1], trusted);
}

/* ---- (2) ------------------------------------------------------------------------------------- */

static const struct {
  const char *table, *column;
  const char *rows[3]; /* which */
} columns[] = {
    {"bpe_model", "id", {"name = 'm'"}},
    {"bpe_model", "name", {"name = 'm'"}},
    {"bpe_model", "pattern", {"name = 'm'"}},
    {"bpe_model", "options", {"name = 'm'"}},
    {"bpe_model", "stats", {"name = 'm'"}},
    {"bpe_model", "digest", {"name = 'm'"}},
    {"bpe_model_vocab", "model_id", {"id = 97", "id = 256", "id = 258"}},
    {"bpe_model_vocab", "id", {"id = 0", "id = 97", "id = 258"}},
    {"bpe_model_vocab", "token", {"id = 97", "id = 257", "id = 258"}},
    {"bpe_model_vocab", "kind", {"id = 97", "id = 257", "id = 258"}},
    {"bpe_model_merges", "model_id", {"rank = 0", "rank = 1"}},
    {"bpe_model_merges", "rank", {"rank = 0", "rank = 1"}},
    {"bpe_model_merges", "\"left\"", {"rank = 0", "rank = 1"}},
    {"bpe_model_merges", "\"right\"", {"rank = 0", "rank = 1"}},
    {"bpe_model_merges", "id", {"rank = 0", "rank = 1"}},
    {"bpe_model_merges", "count", {"rank = 0", "rank = 1"}},
};

static const char *const values[] = {
    "NULL", "-1", "0", "1", "2", "98", "256", "257", "258", "259", "2147483647", "2147483648",
    "4294967294", "4294967295", "4294967296", "9223372036854775807", "-9223372036854775808", "0.5",
    "1e300", "'x'", "''", "'97'", "'special'", "'added'", "'gpt2'", "'{\"format\":1}'",
    "'2'", "1.0",
    "'{\"format\":2}'", "'{\"format\":1,\"whole\":true}'", "'{\"format\":1,\"regex\":true}'", "x''",
    "x'61'", "x'62'", "x'ff'", "zeroblob(32)", "zeroblob(1000000)", "char(0) || 'm'", "'gpt-4'",
    "(SELECT digest FROM bpe_model WHERE name = 'other')", "'m.m'", "'main.m'",
};

enum { SOME = 7 }; /* one in so many, without --full */

enum {
  N_COLUMNS = sizeof columns / sizeof *columns,
  N_VALUES = sizeof values / sizeof *values
};

#define ASK(name) "SELECT bpe_encode('abcab', '" name "', '{\"document\":true}') || " \
  "bpe_count('cabcab<s>', '" name "', '{\"special\":\"allow\"}') || bpe_decode('[257,256,99]', '" \
  name "')"

static const char *baseline = ANSWER "4abcabc"; /* "[258,257,256]", "c" "abc" "ab" "<s>", ... */

static void check_tampered(hostile *h, sqlite3 *db, const char *what) {
  char *got = hostile_value(h, db, ASK("m"));
  char *sealed = hostile_value(h, db, "SELECT sealed FROM bpe_tokenizers WHERE name = 'm'");
  if (got) loaded_check(&h->t, strcmp(got, baseline) == 0, "%s: %s", what, got);
  else {
    const int rc = hostile_try(h, db, ASK("m"));
    loaded_check(&h->t, rc == SQLITE_ERROR && strncmp(sqlite3_errmsg(db), "bpe_", 4) == 0,
                 "%s: %d %s", what, rc, sqlite3_errmsg(db));
    loaded_check(&h->t, !sealed || strcmp(sealed, "0") == 0, "%s: sealed, and %s", what,
                 sqlite3_errmsg(db));
  }
  sqlite3_free(got);
  sqlite3_free(sealed);
  got = hostile_value(h, db, "SELECT bpe_encode('abcab', 'other')");
  /* A row may have gone over to it; where the column has its type, '2' is 2. */
  const bool moved = strstr(what, "model_id = 2") || strstr(what, "model_id = '2'");
  if (got) loaded_check(&h->t, strcmp(got, "[97,98,99,97,98]") == 0, "%s: other: %s", what, got);
  else
    loaded_check(&h->t, moved && strstr(sqlite3_errmsg(db), ": other: "), "%s: other: %s", what,
                 sqlite3_errmsg(db));
  sqlite3_free(got);
}

/* What can be sealed after all is a tokenizer like any: its copy answers the same. */
static void check_sealing(hostile *h, sqlite3 *db, const char *what) {
  static const char *const both[] = {
      "SELECT bpe_encode('abcab<s>', 'm', '{\"special\":\"allow\"}')",
      "SELECT bpe_encode('abcab<s>', 'copy', '{\"special\":\"allow\"}')"};
  int rc = hostile_try(h, db, "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'm'");
  if (rc != SQLITE_OK) {
    loaded_check(&h->t, strncmp(sqlite3_errmsg(db), "bpe_tokenizers: ", 16) == 0, "%s: sealing: %d %s",
                 what, rc, sqlite3_errmsg(db));
    return;
  }
  rc = hostile_try(h, db, "INSERT INTO bpe_tokenizers(name, source) SELECT 'copy', bpe_export('m',"
                          " 'model')");
  if (rc != SQLITE_OK) {
    loaded_check(&h->t, strncmp(sqlite3_errmsg(db), "bpe_", 4) == 0, "%s: copying: %d %s", what, rc,
                 sqlite3_errmsg(db));
    return;
  }
  char *m = hostile_value(h, db, both[0]), *copy = hostile_value(h, db, both[1]);
  loaded_check(&h->t, (!m && !copy) || (m && copy && strcmp(m, copy) == 0), "%s: %s and %s", what,
               m ? m : "NULL", copy ? copy : "NULL");
  sqlite3_free(m);
  sqlite3_free(copy);
}

static sqlite3 *open_with_models(hostile *h, const char *name) {
  sqlite3 *db = hostile_open(h, name);
  hostile_run(h, db, STORE("main", "m"));
  hostile_run(h, db, "INSERT INTO bpe_tokenizers(name, source) VALUES('other',"
                     " '{\"pattern\":\"none\",\"merges\":[]}')");
  hostile_gives(h, db, ASK("m"), ANSWER "4abcabc");
  return db;
}

static char *tampering(int column, const char *row, int value) {
  return sqlite3_mprintf("UPDATE %s SET %s = %s WHERE %s AND %s = 1", columns[column].table,
                         columns[column].column, values[value], row,
                         strcmp(columns[column].table, "bpe_model") == 0 ? "id" : "model_id");
}

/* Where triggers see it, and where they are switched off. */
static void check_columns(hostile *h) {
  for (int on = 0; on < 2; on++) {
    sqlite3 *db = open_with_models(h, NULL);
    sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, on, NULL);
    for (int c = 0; c < N_COLUMNS; c++)
      for (int r = 0; r < 3 && columns[c].rows[r]; r++)
        for (int v = h->full ? 0 : (c + r) % SOME; v < N_VALUES; v += h->full ? 1 : SOME) {
          char *sql = tampering(c, columns[c].rows[r], v);
          hostile_run(h, db, "SAVEPOINT s");
          const int rc = hostile_try(h, db, sql);
          loaded_check(&h->t, rc == SQLITE_OK || rc == SQLITE_CONSTRAINT || rc == SQLITE_MISMATCH,
                       "%s: %d %s", sql, rc, sqlite3_errmsg(db));
          check_tampered(h, db, sql);
          check_sealing(h, db, sql);
          hostile_run(h, db, "ROLLBACK TO s; RELEASE s");
          hostile_gives(h, db, ASK("m"), ANSWER "4abcabc");
          sqlite3_free(sql);
        }
    hostile_close(h, db);
  }
}

/* By a program without the extension, that takes triggers, constraints and the type of model_id away
** and gives them back in the text of the schema. */
static void check_offline(hostile *h) {
  static const char take[] =
      "PRAGMA writable_schema = on;"
      "CREATE TABLE kept AS SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name LIKE 'bpe_model%';"
      "DELETE FROM sqlite_master WHERE type = 'trigger';"
      "UPDATE sqlite_master SET sql = replace(replace(sql, 'NOT NULL', ''), 'model_id INTEGER', 'model_id')"
      " WHERE name LIKE 'bpe_model%';"
      "PRAGMA writable_schema = reset";
  static const char give[] =
      "PRAGMA writable_schema = on;"
      "UPDATE sqlite_master SET sql = (SELECT sql FROM kept WHERE kept.name = sqlite_master.name)"
      " WHERE name LIKE 'bpe_model%';"
      "INSERT INTO sqlite_master SELECT 'trigger', name, tbl_name, 0, sql FROM kept WHERE type ="
      " 'trigger';"
      "PRAGMA writable_schema = reset; DROP TABLE kept";
  for (int c = 0; c < N_COLUMNS; c++)
    for (int v = 0; v < N_VALUES; v += h->full ? 1 : v < 1 ? 1 + c % SOME : SOME) {
      hostile_close(h, open_with_models(h, "tampered.db"));
      sqlite3 *db = hostile_open_bare(h, "tampered.db");
      char *sql = tampering(c, columns[c].rows[0], v);
      hostile_run(h, db, take);
      hostile_try(h, db, sql);
      hostile_run(h, db, give);
      hostile_close(h, db);
      db = hostile_open(h, "tampered.db");
      check_tampered(h, db, sql);
      check_sealing(h, db, sql);
      hostile_close(h, db);
      hostile_remove(h, "tampered.db");
      sqlite3_free(sql);
    }
}

/* ---- (3) ------------------------------------------------------------------------------------- */

static void check_ids(hostile *h) {
  enum { MOST_MB = 24 };
  static const char *const calls[] = {
      "SELECT bpe_encode('abab', 'far')", "SELECT hex(bpe_encode_blob('abab', 'far'))",
      "SELECT bpe_decode('[4294967294]', 'far')", "SELECT bpe_token_id('ab', 'far')",
      "SELECT length(bpe_token(4294967294, 'far'))", "SELECT vocab_size FROM bpe_tokenizers WHERE name"
      " = 'far'", "SELECT count(*) FROM bpe_vocab('far')", "SELECT max(id) FROM bpe_vocab('far')",
      "SELECT id FROM bpe_merges('far')", "SELECT json_extract(bpe_token_stats('abab', 'far'),"
      " '$.counts[0][0]')", "SELECT bpe_count('abab', 'far')", "SELECT length(bpe_export('far', 'model'))"
      " > 0", "SELECT bpe_truncate('abab', 1, 'far')", "SELECT max(id) FROM bpe_tokens('abab', 'far')"};
  static const char *const answers[] = {
      "[4294967294,4294967294]", "FEFFFFFFFEFFFFFF", "ab", "4294967294", "2", "4294967295", "257",
      "4294967294", "4294967294", "4294967294", "2", "1", "ab", "4294967294"};
  sqlite3 *db = hostile_open(h, NULL);
  /* The bytes have ids with gaps of 2^24 - 1, beyond 2^31 for half of them. */
  hostile_run(h, db, "INSERT INTO bpe_tokenizers(name, source) SELECT 'far', json_object('pattern',"
                     " 'none', 'merges', json('[[\"61\",\"62\"]]'), 'vocab', json_patch("
                     "json_group_object(i * 16777215, printf('%02x', i)), '{\"4294967294\":\"6162\"}'))"
                     " FROM (WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i <"
                     " 255) SELECT i FROM n)");
  sqlite3_memory_highwater(1);
  const sqlite3_int64 before = sqlite3_memory_used();
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) hostile_gives(h, db, calls[i], answers[i]);
  const sqlite3_int64 most = sqlite3_memory_highwater(0) - before;
  loaded_check(&h->t, most < MOST_MB << 20, "ids with gaps take %lld bytes", (long long)most);
  hostile_fails(h, db, "SELECT bpe_encode_blob('ab', 'far', '{\"width\":16}')", SQLITE_ERROR,
                "bpe_encode_blob: ");
  hostile_fails(h, db, "SELECT bpe_decode('[4294967295]', 'far')", SQLITE_ERROR, "bpe_decode: ");
  hostile_fails(h, db, "SELECT bpe_decode('[4294967296]', 'far')", SQLITE_ERROR, "bpe_decode: ");
  hostile_fails(h, db, "SELECT bpe_decode('[-1]', 'far')", SQLITE_ERROR, "bpe_decode: ");
  hostile_fails(h, db, "SELECT bpe_decode('[5]', 'far')", SQLITE_ERROR, "bpe_decode: ");
  hostile_close(h, db);
}

/* ---- (4) ------------------------------------------------------------------------------------- */

enum { LONG_MORE = 8 << 20, LONG_MS = 50 }; /* bytes, CPU time; a fraction of a millisecond is usual */

/* One statement on them: what it says, or answers, and how much memory it takes at most. */
static void check_cost(hostile *h, sqlite3 *db, const char *sql, const char *refusal, sqlite3_int64 most) {
  sqlite3_memory_highwater(1);
  const sqlite3_int64 before = sqlite3_memory_used();
  const double start = hostile_cpu_ms();
  if (refusal) hostile_fails(h, db, sql, SQLITE_ERROR, refusal);
  else hostile_gives(h, db, sql, baseline);
  const double ms = hostile_cpu_ms() - start;
  const sqlite3_int64 took = sqlite3_memory_highwater(0) - before;
  loaded_check(&h->t, took < most, "%s: %lld bytes", sql, (long long)took);
  loaded_check(&h->t, most > LONG_MORE || ms < LONG_MS, "%s: %.0f ms", sql, ms);
  loaded_check(&h->t, sqlite3_memory_used() < before + LONG_MORE, "%s: %lld bytes are kept", sql,
               (long long)(sqlite3_memory_used() - before));
}

static sqlite3 *open_long(hostile *h) {
  sqlite3 *db = hostile_open(h, "long.db");
  hostile_run(h, db, "PRAGMA journal_mode = off; PRAGMA cache_size = -1000");
  return db;
}

/* Plants a token of `size` bytes in the tokenizer m, as a program does that has taken the triggers
** away. Nothing is read of it, unless it is the first row of m (`reads`), which SQLite compares to
** find it, and then once. To the tokenizer before it is nothing, also where a host has a limit of
** its own. Each connection loads them anew. */
static void check_long_token(hostile *h, int id, int size, bool reads) {
  static const char *const refused[][2] = {
      {"UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'm'", "bpe_tokenizers: "},
      {"SELECT bpe_count('ab', 'm')", "bpe_count: tokenizer is damaged: m: "},
      {"SELECT count(*) FROM bpe_vocab('m')", "bpe_vocab: tokenizer is damaged: m: "},
      {"SELECT bpe_export('m', 'model')", "bpe_export: tokenizer is damaged: m: "},
  };
  const sqlite3_int64 most = reads ? size + LONG_MORE : LONG_MORE;
  sqlite3 *db = open_long(h);
  char *digest = hostile_value(h, db, "SELECT hex(digest) FROM bpe_model WHERE name = 'm'");
  char *insert = sqlite3_mprintf("INSERT INTO bpe_model_vocab(model_id, id, token, kind) SELECT id, %d,"
                                 " zeroblob(%d), 'token' FROM bpe_model WHERE name = 'm';"
                                 "UPDATE bpe_model SET digest = x'%s'", id, size, digest);
  char *take = sqlite3_mprintf("DELETE FROM bpe_model_vocab WHERE id = %d", id);
  hostile_run(h, db, insert);
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    char *message = sqlite3_mprintf("%sa stored value has more than 67108864 bytes", refused[i][1]);
    check_cost(h, db, refused[i][0], message, most);
    sqlite3_free(message);
  }
  check_cost(h, db, ASK("before"), NULL, LONG_MORE);
  hostile_close(h, db);
  db = open_long(h);
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, size / 2);
  check_cost(h, db, ASK("before"), NULL, LONG_MORE);
  hostile_close(h, db);
  db = open_long(h);
  hostile_run(h, db, take);
  hostile_run(h, db, "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'm'");
  hostile_gives(h, db, ASK("m"), baseline);
  hostile_close(h, db);
  sqlite3_free(insert);
  sqlite3_free(take);
  sqlite3_free(digest);
}

static void check_long_tokens(hostile *h) {
  sqlite3 *db = open_long(h);
  hostile_run(h, db, STORE("main", "before"));
  hostile_run(h, db, STORE("main", "m"));
  hostile_close(h, db);
  check_long_token(h, 300, h->full ? 990000000 : 200000000, false);
  check_long_token(h, -1, 70000000, true);
  hostile_remove(h, "long.db");
}

int main(int argc, char **argv) {
  hostile h;
  hostile_begin(&h, argc, argv);
  if (h.sabotage) baseline = "[]";
  check_ids(&h);
  if (!h.sabotage) check_long_tokens(&h);
  if (!h.sabotage) check_look_alikes(&h);
  check_columns(&h);
  check_offline(&h);
  return hostile_end(&h);
}
