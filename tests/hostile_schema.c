/* hostile_schema.c - database files whose schema calls what the extension offers.
**
**     hostile_schema [./bpe] [--sabotage]
**
** Someone makes a file with stand-ins of our functions, which may do anything in a schema, and
** someone else opens it with the real ones. For each way to call each function and table from each
** place that a schema has (views, triggers, generated columns, CHECK, DEFAULT, indexes on
** expressions and partial ones), with the schema trusted and not, defensive or not, with triggers
** and without, what happens must be what the flags promise:
**
**     'i'  innocuous: runs anywhere                  'n'  runs where the schema is trusted
**     'd'  runs in no schema, trusted or not         det  may stand where answers must not change
**
** What SQLite lists of ours must all be here. Then come the switches of a careful host: DEFENSIVE,
** no triggers, no views, query_only, and an authorizer that refuses each request in turn. With
** --sabotage one promise is said wrong.
*/
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* mkdtemp */
#endif
#include "hostile.h"

#include <stdint.h>

#define PLAIN "{\"pattern\":\"none\",\"merges\":[[97,98],[256,99]]}"
#define STORE(name) "INSERT INTO bpe_tokenizers(name, source) VALUES('" name "', '" PLAIN "')"
#define USE "SELECT bpe_encode('abcab', 'm')"
#define ANSWER "[257,256]"
#define COUNTS "(SELECT count(*) FROM bpe_model) || ' ' ||" \
  " (SELECT count(*) FROM bpe_model_vocab) || ' ' || (SELECT count(*) FROM bpe_model_merges)"

/* ---- What there is to call ------------------------------------------------------------------- */

typedef struct callable {
  const char *name;
  const char *format; /* of the call; %s: the argument */
  char promise;
  bool det;
  enum { SCALAR, AGGREGATE, TABLE } kind;
} callable;

static callable callables[] = {
    {"bpe_count", "bpe_count(%s)", 'i', true, SCALAR},
    {"bpe_count", "bpe_count(%s, 'gpt2')", 'n', true, SCALAR},
    {"bpe_count", "bpe_count(%s, 'gpt2', '{}')", 'n', true, SCALAR},
    {"bpe_encode", "bpe_encode(%s)", 'i', true, SCALAR},
    {"bpe_encode", "bpe_encode(%s, 'gpt2')", 'n', true, SCALAR},
    {"bpe_encode", "bpe_encode(%s, 'gpt2', '{}')", 'n', true, SCALAR},
    {"bpe_encode_blob", "bpe_encode_blob(%s)", 'i', true, SCALAR},
    {"bpe_encode_blob", "bpe_encode_blob(%s, 'gpt2')", 'n', true, SCALAR},
    {"bpe_encode_blob", "bpe_encode_blob(%s, 'gpt2', '{}')", 'n', true, SCALAR},
    {"bpe_decode", "bpe_decode('[1]' || substr(%s, 1, 0))", 'i', true, SCALAR},
    {"bpe_decode", "bpe_decode('[1]' || substr(%s, 1, 0), 'gpt2')", 'n', true, SCALAR},
    {"bpe_decode", "bpe_decode('[1]' || substr(%s, 1, 0), 'gpt2', '{}')", 'n', true, SCALAR},
    {"bpe_decode_blob", "bpe_decode_blob('[1]' || substr(%s, 1, 0))", 'i', true, SCALAR},
    {"bpe_decode_blob", "bpe_decode_blob('[1]' || substr(%s, 1, 0), 'gpt2')", 'n', true, SCALAR},
    {"bpe_decode_blob", "bpe_decode_blob('[1]' || substr(%s, 1, 0), 'gpt2', '{}')", 'n', true,
     SCALAR},
    {"bpe_token", "bpe_token(length(%s))", 'i', true, SCALAR},
    {"bpe_token", "bpe_token(length(%s), 'gpt2')", 'n', true, SCALAR},
    {"bpe_token_id", "bpe_token_id(%s)", 'i', true, SCALAR},
    {"bpe_token_id", "bpe_token_id(%s, 'gpt2')", 'n', true, SCALAR},
    {"bpe_fits", "bpe_fits(%s, 5)", 'i', true, SCALAR},
    {"bpe_fits", "bpe_fits(%s, 5, 'gpt2')", 'n', true, SCALAR},
    {"bpe_fits", "bpe_fits(%s, 5, 'gpt2', '{}')", 'n', true, SCALAR},
    {"bpe_truncate", "bpe_truncate(%s, 5)", 'i', true, SCALAR},
    {"bpe_truncate", "bpe_truncate(%s, 5, 'gpt2')", 'n', true, SCALAR},
    {"bpe_truncate", "bpe_truncate(%s, 5, 'gpt2', '{}')", 'n', true, SCALAR},
    {"bpe_ansi", "bpe_ansi(%s)", 'i', false, SCALAR},
    {"bpe_ansi", "bpe_ansi(%s, 'gpt2')", 'n', false, SCALAR},
    {"bpe_ansi", "bpe_ansi(%s, 'gpt2', '{}')", 'n', false, SCALAR},
    {"bpe_html", "bpe_html(%s)", 'i', false, SCALAR},
    {"bpe_html", "bpe_html(%s, 'gpt2')", 'n', false, SCALAR},
    {"bpe_html", "bpe_html(%s, 'gpt2', '{}')", 'n', false, SCALAR},
    {"bpe_ids_length", "bpe_ids_length(zeroblob(8 * length(%s)))", 'i', true, SCALAR},
    {"bpe_ids_length", "bpe_ids_length(zeroblob(8 * length(%s)), 16)", 'i', true, SCALAR},
    {"bpe_ids_slice", "bpe_ids_slice(zeroblob(8 * length(%s)), 0, 1)", 'i', true, SCALAR},
    {"bpe_ids_slice", "bpe_ids_slice(zeroblob(8 * length(%s)), 0, 1, 16)", 'i', true, SCALAR},
    {"bpe_resolve", "bpe_resolve(%s)", 'n', false, SCALAR},
    {"bpe_version", "bpe_version() || %s", 'i', false, SCALAR},
    {"bpe_debug", "bpe_debug() || %s", 'd', true, SCALAR},
    {"bpe_export", "bpe_export('gpt2' || substr(%s, 1, 0), 'model')", 'd', true, SCALAR},
    {"bpe_private", "bpe_private(%s)", 'd', false, SCALAR},
    {"bpe_train", "bpe_train(%s, 300)", 'd', false, AGGREGATE},
    {"bpe_train", "bpe_train(%s, 300, '{}')", 'd', false, AGGREGATE},
    {"bpe_train", "bpe_train(%s, 300, '{}', 1)", 'd', false, AGGREGATE},
    {"bpe_token_stats", "bpe_token_stats(%s)", 'i', true, AGGREGATE},
    {"bpe_token_stats", "bpe_token_stats(%s, 'gpt2')", 'n', true, AGGREGATE},
    {"bpe_tokens", "bpe_tokens(%s)", 'n', false, TABLE},
    {"bpe_pieces", "bpe_pieces(%s)", 'n', false, TABLE},
    {"bpe_chunks", "bpe_chunks(%s, 9)", 'n', false, TABLE},
    {"bpe_trace", "bpe_trace(%s)", 'n', false, TABLE},
    {"bpe_ids", "bpe_ids(zeroblob(4 * length(%s)))", 'n', false, TABLE},
    {"bpe_vocab", "bpe_vocab('gpt2' || substr(%s, 1, 0))", 'n', false, TABLE},
    {"bpe_merges", "bpe_merges('gpt2' || substr(%s, 1, 0))", 'n', false, TABLE},
    {"bpe_stream", "bpe_stream('SELECT ' || quote(%s))", 'd', false, TABLE},
    {"bpe_tokenizers", "bpe_tokenizers WHERE name <> %s", 'd', false, TABLE},
};

enum { N_CALLABLES = sizeof callables / sizeof *callables };

/* ---- Where a schema can call it -------------------------------------------------------------- */

typedef struct place {
  const char *name;
  const char *make;     /* %s: the call; of an aggregate or table: SELECT ... FROM */
  const char *argument; /* for the call */
  const char *use;
  bool det;     /* wants answers that do not change */
  bool selects; /* make wants a whole SELECT */
  bool fires;   /* is a trigger: nothing happens where those are switched off */
  bool blind;   /* SQLite looks at the flags of functions only whose answers do not change */
} place;

static const place places[] = {
    {"view", "CREATE VIEW v AS %s", "body", "SELECT * FROM h.v", .selects = true},
    {"trigger", "CREATE TRIGGER r AFTER INSERT ON t BEGIN INSERT INTO log SELECT count(*) FROM (%s);"
     " END", "body", "INSERT INTO h.t(body) VALUES('hello')", .selects = true, .fires = true},
    {"trigger of a view", "CREATE VIEW v AS SELECT * FROM t; CREATE TRIGGER r INSTEAD OF UPDATE ON v"
     " WHEN (SELECT count(*) FROM (%s)) BEGIN SELECT 1; END", "body", "UPDATE h.v SET body = 'b'",
     .selects = true, .fires = true},
    {"virtual column", "CREATE TABLE g(body, n AS (%s)); INSERT INTO g VALUES('hello')", "body",
     "SELECT n FROM h.g", .det = true},
    {"stored column", "CREATE TABLE g(body, n AS (%s) STORED)", "body",
     "INSERT INTO h.g VALUES('hello')", .det = true},
    {"CHECK", "CREATE TABLE g(body, CHECK (%s IS NOT 0.5))", "body",
     "INSERT INTO h.g VALUES('hello')", .blind = true},
    {"DEFAULT", "CREATE TABLE g(body, n DEFAULT (%s))", "'hello'",
     "INSERT INTO h.g(body) VALUES('hello')", .det = false},
    {"index", "CREATE INDEX i ON t(%s)", "body", "INSERT INTO h.t VALUES('hello')", .det = true},
    {"partial index", "CREATE INDEX i ON t(body) WHERE %s IS NOT 0.5", "body",
     "INSERT INTO h.t VALUES('hello')", .det = true},
};

enum { N_PLACES = sizeof places / sizeof *places };

static void stand_in(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  (void)argc;
  (void)argv;
  sqlite3_result_int(ctx, 1);
}

static char *call_of(const callable *c, const place *p) {
  char *call = sqlite3_mprintf(c->format, c->kind == TABLE ? "'hello'" : p->argument), *whole;
  if (!p->selects) return call;
  if (c->kind == TABLE) whole = sqlite3_mprintf("SELECT * FROM %s", call);
  else whole = sqlite3_mprintf("SELECT %s FROM t", call);
  sqlite3_free(call);
  return whole;
}

static void plant(hostile *h, const callable *c, const place *p) {
  sqlite3 *db = hostile_open_bare(h, "planted.db");
  for (int i = 0; i < N_CALLABLES; i++)
    sqlite3_create_function(db, callables[i].name, -1,
                            SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, NULL, stand_in,
                            NULL, NULL);
  char *call = call_of(c, p), *make = sqlite3_mprintf(p->make, call);
  hostile_run(h, db, "CREATE TABLE t(body); INSERT INTO t VALUES('hello world'), (NULL);"
                     "CREATE TABLE log(x)");
  hostile_run(h, db, make);
  sqlite3_free(make);
  sqlite3_free(call);
  hostile_close(h, db);
}

/* How careful the host is that opens the file. */
typedef struct caution {
  bool trusted, defensive, triggers;
} caution;

static void use_planted(hostile *h, sqlite3 *db, const callable *c, const place *p, caution host) {
  char *how = sqlite3_mprintf("%s in a %s,%s trusted%s%s", c->format, p->name,
                              host.trusted ? "" : " not", host.defensive ? ", defensive" : "",
                              host.triggers ? "" : ", no triggers");
  char *attach = sqlite3_mprintf("ATTACH %Q AS h", hostile_path(h, "planted.db"));
  sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, (int)host.trusted, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, (int)host.defensive, NULL);
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, (int)host.triggers, NULL);
  int rc = hostile_try(h, db, attach); /* reads what tables and indexes call already */
  const bool attached = rc == SQLITE_OK;
  sqlite3_free(attach);
  const bool may =
      (c->promise == 'i' || (c->promise == 'n' && host.trusted)) && (c->det || !p->det);
  const bool unseen = p->blind && !c->det && c->promise != 'i';
  if (attached) rc = hostile_try(h, db, p->use);
  const char *said = sqlite3_errmsg(db);
  if (p->fires && !host.triggers) {
    const bool is_view = rc != SQLITE_OK && strstr(said, "cannot modify v because it is a view");
    loaded_check(&h->t, attached && (rc == SQLITE_OK || is_view), "%s: %d %s", how, rc, said);
    if (attached) hostile_gives(h, db, "SELECT count(*) FROM h.log", "0");
  } else {
    loaded_check(&h->t, unseen || (rc == SQLITE_OK) == may, "%s: %d %s", how, rc, said);
    if (rc != SQLITE_OK)
      loaded_check(&h->t, strstr(said, "unsafe use of") || strstr(said, "non-deterministic") ||
                              (unseen && strstr(said, "bpe_private: not for use in SQL")),
                   "%s: %d %s", how, rc, said);
  }
  if (attached) hostile_run(h, db, "DETACH h");
  sqlite3_free(how);
}

/* Under all settings, the triggers last: what they put in the log stays. */
static void check_planted(hostile *h, sqlite3 *db, const callable *c, const place *p) {
  plant(h, c, p);
  for (int i = 0; i < 8; i++)
    use_planted(h, db, c, p, (caution){(i & 1) != 0, (i & 2) != 0, (i & 4) != 0});
  hostile_remove(h, "planted.db");
}

/* Every function and module of ours is among the callables, with each number of arguments. */
static void check_listed(hostile *h, sqlite3 *db) {
  sqlite3_stmt *s = NULL;
  int n = 0;
  sqlite3_prepare_v2(db, "SELECT name, narg FROM pragma_function_list WHERE name LIKE 'bpe%'"
                         " UNION ALL SELECT name, -1 FROM pragma_module_list WHERE name LIKE 'bpe%'",
                     -1, &s, NULL);
  for (; sqlite3_step(s) == SQLITE_ROW; n++) {
    const char *name = (const char *)sqlite3_column_text(s, 0);
    int has = 0, wants = sqlite3_column_int(s, 1);
    for (int i = 0; i < N_CALLABLES; i++) {
      if (strcmp(callables[i].name, name) != 0) continue;
      int commas = 0, depth = 0;
      for (const char *p = strchr(callables[i].format, '('); p && *p; p++) {
        depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
        if (depth == 0) break;
        commas += depth == 1 && *p == ',';
      }
      has += wants <= 0 || commas + 1 == wants;
    }
    loaded_check(&h->t, has > 0, "%s with %d arguments is not checked", name, wants);
  }
  sqlite3_finalize(s);
  loaded_check(&h->t, n == 0 || n > 40, "only %d of ours are listed", n); /* 0: no pragmas */
}

/* The catalogue's own statements, from triggers that came with the file. */
static void check_catalogue(hostile *h, sqlite3 *db) {
  static const char *const bodies[] = {
      STORE("planted"), "DELETE FROM bpe_tokenizers", "UPDATE bpe_tokenizers SET name = 'x'",
      "UPDATE bpe_tokenizers SET sealed = 1", "INSERT INTO log SELECT name FROM bpe_tokenizers"};
  for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
    sqlite3 *maker = hostile_open_bare(h, "planted.db");
    char *make = sqlite3_mprintf("CREATE TABLE t(body); CREATE TABLE log(x);"
                                 "CREATE TRIGGER r AFTER INSERT ON t BEGIN %s; END", bodies[i]);
    hostile_run(h, maker, make);
    sqlite3_free(make);
    hostile_close(h, maker);
    for (int k = 0; k < 4; k++) {
      sqlite3 *victim = hostile_open(h, "planted.db");
      sqlite3_db_config(victim, SQLITE_DBCONFIG_TRUSTED_SCHEMA, k & 1, NULL);
      sqlite3_db_config(victim, SQLITE_DBCONFIG_DEFENSIVE, k >> 1, NULL);
      hostile_run(h, victim, STORE("m"));
      hostile_fails(h, victim, "INSERT INTO t VALUES(1)", SQLITE_ERROR, "unsafe use of");
      hostile_gives(h, victim, USE, ANSWER);
      hostile_gives(h, victim, "SELECT count(*) FROM t", "0");
      hostile_run(h, victim, "DELETE FROM bpe_tokenizers WHERE name = 'm'");
      hostile_close(h, victim);
    }
    hostile_remove(h, "planted.db");
  }
  (void)db;
}

/* ---- A careful host's switches --------------------------------------------------------------- */

/* Everything that is done with stored tokenizers works. */
static void check_all_work(hostile *h, sqlite3 *db) {
  hostile_run(h, db, STORE("m"));
  hostile_gives(h, db, USE, ANSWER);
  hostile_run(h, db, "UPDATE bpe_tokenizers SET name = 'n' WHERE name = 'm'");
  hostile_fails(h, db, USE, SQLITE_ERROR, "bpe_encode: no such tokenizer: m");
  hostile_run(h, db, "UPDATE bpe_tokenizers SET name = 'm' WHERE name = 'n'");
  hostile_run(h, db, STORE("n"));
  hostile_gives(h, db, USE, ANSWER);
  hostile_gives(h, db, "SELECT group_concat(name || sealed, ' ') FROM bpe_tokenizers WHERE schema"
                       " = 'main'", "m1 n1");
  hostile_run(h, db, "DELETE FROM bpe_tokenizers WHERE name = 'n'");
  hostile_gives(h, db, "SELECT " COUNTS, "1 258 2");
  /* A row changed by hand: seen with triggers by its digest, without them by what it says. */
  hostile_run(h, db, "UPDATE bpe_model_merges SET rank = rank + 1 WHERE rank = 1");
  hostile_run(h, db, "UPDATE bpe_model_merges SET rank = rank + 1 WHERE rank = 0");
  hostile_run(h, db, "UPDATE bpe_model_merges SET rank = 0 WHERE rank = 2");
  int rc = hostile_try(h, db, USE);
  loaded_check(&h->t, rc == SQLITE_ERROR && strstr(sqlite3_errmsg(db), "bpe_encode: tokenizer is "),
               "changed: %d %s", rc, sqlite3_errmsg(db));
  hostile_run(h, db, "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'm'");
  hostile_gives(h, db, USE, ANSWER); /* no pair of the other merge's exists before it is made */
  hostile_gives(h, db, "PRAGMA integrity_check", "ok");
}

static void check_switches(hostile *h) {
  static const struct {
    int op, value;
    const char *name;
  } switches[] = {
      {SQLITE_DBCONFIG_DEFENSIVE, 1, "defensive"},
      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, "no triggers"},
      {SQLITE_DBCONFIG_ENABLE_VIEW, 0, "no views"},
      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, "not trusted"},
      {SQLITE_DBCONFIG_DQS_DDL, 0, "no double-quoted strings in DDL"},
      {SQLITE_DBCONFIG_DQS_DML, 0, "no double-quoted strings"},
      {SQLITE_DBCONFIG_ENABLE_FKEY, 1, "foreign keys"},
      {SQLITE_DBCONFIG_LEGACY_ALTER_TABLE, 1, "legacy ALTER"},
  };
  enum { N = sizeof switches / sizeof *switches };
  for (int i = 0; i <= N; i++) { /* the last time all of them */
    sqlite3 *db = hostile_open(h, NULL);
    for (int k = 0; k < N; k++) {
      if (i != N && i != k) continue;
      const int rc = sqlite3_db_config(db, switches[k].op, switches[k].value, NULL);
      loaded_check(&h->t, rc == SQLITE_OK, "%s: %d", switches[k].name, rc);
    }
    check_all_work(h, db);
    hostile_close(h, db);
  }
  sqlite3 *db = hostile_open(h, NULL);
  hostile_run(h, db, "PRAGMA cell_size_check = on");
  hostile_run(h, db, "PRAGMA recursive_triggers = on");
  hostile_run(h, db, "PRAGMA reverse_unordered_selects = on");
  hostile_run(h, db, "PRAGMA case_sensitive_like = on");
  check_all_work(h, db);
  hostile_run(h, db, "PRAGMA query_only = on");
  hostile_gives(h, db, USE, ANSWER);
  hostile_fails(h, db, STORE("n"), SQLITE_READONLY, "readonly");
  hostile_fails(h, db, "DELETE FROM bpe_tokenizers WHERE name = 'm'", SQLITE_READONLY, "readonly");
  hostile_close(h, db);
}

/* ---- An authorizer --------------------------------------------------------------------------- */

static long requests, refused_at;
static int refusal;

static int authorize(void *ctx, int action, const char *a, const char *b, const char *c,
                     const char *d) {
  (void)ctx, (void)action, (void)a, (void)b, (void)c, (void)d;
  return ++requests == refused_at ? refusal : SQLITE_OK;
}

/* Refuses each request of a statement in turn: then it fails and nothing has happened, or it goes
** on by another way and all has. */
static void check_refused(hostile *h, const char *sql, const char *before, const char *after) {
  long failures = 0;
  for (refused_at = 1; refused_at < 10000; refused_at++) {
    sqlite3 *db = hostile_open(h, NULL);
    hostile_run(h, db, STORE("m"));
    requests = 0;
    sqlite3_set_authorizer(db, authorize, NULL);
    const int rc = hostile_try(h, db, sql);
    const bool was_asked = requests >= refused_at;
    const char *said = sqlite3_errmsg(db);
    loaded_check(&h->t, rc == SQLITE_OK || rc == SQLITE_AUTH || rc == SQLITE_ERROR ||
                             rc == SQLITE_CONSTRAINT,
                 "%s, request %ld: %d %s", sql, refused_at, rc, said);
    failures += rc != SQLITE_OK;
    requests = INT32_MIN;
    sqlite3_set_authorizer(db, authorize, NULL); /* which has all statements prepared anew */
    const char *state = "SELECT coalesce(group_concat(name || sealed, ' ') || ' ', '') || " COUNTS
                        " FROM bpe_tokenizers WHERE schema = 'main'";
    if (rc != SQLITE_OK) hostile_gives(h, db, state, before);
    else if (refusal == SQLITE_DENY) hostile_gives(h, db, state, after);
    hostile_close(h, db);
    if (!was_asked) break;
  }
  loaded_check(&h->t, failures > 0 && refused_at < 10000, "%s: %ld of %ld refusals made it fail",
               sql, failures, refused_at);
}

static void check_authorizer(hostile *h) {
  for (int i = 0; i < 2; i++) {
    refusal = i == 0 ? SQLITE_DENY : SQLITE_IGNORE;
    check_refused(h, STORE("n"), "m1 1 258 2", "m1 n1 2 516 4");
    check_refused(h, "DELETE FROM bpe_tokenizers WHERE name = 'm'", "m1 1 258 2", "0 0 0");
    check_refused(h, "UPDATE bpe_tokenizers SET name = 'o' WHERE name = 'm'", "m1 1 258 2",
                  "o1 1 258 2");
    check_refused(h, USE, "m1 1 258 2", "m1 1 258 2");
  }
}

int main(int argc, char **argv) {
  hostile h;
  hostile_begin(&h, argc, argv);
  if (h.sabotage) callables[0].promise = 'n';
  sqlite3 *db = hostile_open(&h, NULL);
  check_listed(&h, db);
  for (int i = 0; i < N_CALLABLES; i++) {
    for (int k = 0; k < N_PLACES; k++)
      if (callables[i].kind == SCALAR || places[k].selects)
        check_planted(&h, db, &callables[i], &places[k]);
  }
  hostile_close(&h, db);
  if (!h.sabotage) {
    check_catalogue(&h, NULL);
    check_switches(&h);
    check_authorizer(&h);
  }
  return hostile_end(&h);
}
