/* stored.c - states of stored tokenizers as text, and random steps between them. */
#include "stored.h"

#include <stdlib.h>

static const char *const names[NAMES] = {"ant", "bee", "cat", "dog", "eel"};

/* Without and with specials, long tokens that take overflow pages, trained with counts, a big one.
 */
static const char *const sources[VARIANTS] = {
    "'{\"pattern\":\"none\",\"merges\":[[97,98],[256,99]]}'",
    "'{\"pattern\":\"gpt2\",\"merges\":[[97,98]],\"special_tokens\":[\"<s>\",\"</s>\"]}'",
    "'{\"pattern\":\"none\",\"merges\":[[97,97],[256,256],[257,257],[258,258],[259,259],[260,260],"
    "[261,261],[262,262],[263,263],[264,264],[265,265],[266,266]]}'",
    "(SELECT bpe_train(body, 262) FROM docs)",
    "(SELECT bpe_train(body, 300, '{\"special_tokens\":[\"<s>\"],\"pattern\":\"words\"}') FROM "
    "docs)",
    "(SELECT bpe_train(body, 700, '{\"pattern\":\"whitespace\"}') FROM docs)",
};

static const char make_docs[] =
    "CREATE TABLE docs(body);"
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 90)"
    " INSERT INTO docs SELECT 'the cat ' || (i * i) || ' sat on ' || hex(i * 7919 % 1009) || ' "
    "mats '"
    " || substr('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', i % 32) || char(20013, 97 + i % 17) FROM n";

#define QUESTION "'abcab the cat 7 <s> aaaaaaaaa'"

enum { N_SUMS = 8 };

/* What a tokenizer adds to a state, and how it answers. */
static struct {
  char *digest, *answer; /* from sqlite3_mprintf, for as long as the program runs */
  sqlite3_int64 sums[N_SUMS];
} variants[VARIANTS];

static const char *extension_path;

/* ---- Arguments ------------------------------------------------------------------------------ */

bool stored_arguments(stored_options *o, int argc, char **argv) {
  for (int i = 1; i < argc; i++) {
    const bool more = i + 1 < argc;
    if (strcmp(argv[i], "-v") == 0) o->verbose = true;
    else if (strcmp(argv[i], "--seed") == 0 && more) o->seed = strtoull(argv[++i], NULL, 10);
    else if (strcmp(argv[i], o->count_name) == 0 && more) o->count = atol(argv[++i]);
    else if (strcmp(argv[i], "--sabotage") == 0 && more) o->sabotage = atoi(argv[++i]);
    else if (argv[i][0] != '-') o->extension = argv[i];
    else {
      printf("%s [./bpe] [--seed N] [%s N] [-v] [--sabotage N]\n", argv[0], o->count_name);
      return false;
    }
  }
  return true;
}

/* ---- Connections ---------------------------------------------------------------------------- */

sqlite3 *stored_open(loaded *t, const char *path, const char *vfs) {
  sqlite3 *db = NULL;
  int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs);
#ifdef SLT_STATIC
  if (rc == SQLITE_OK) rc = sqlite3_bpe_init(db, NULL, NULL);
#else
  if (rc == SQLITE_OK) rc = sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_load_extension(db, extension_path, NULL, NULL);
#endif
  if (rc == SQLITE_OK) return db;
  loaded_check(t, false, "open %s: %d %s", path, rc, sqlite3_errmsg(db));
  sqlite3_close(db);
  return NULL;
}

bool stored_run(loaded *t, sqlite3 *db, const char *sql) {
  const int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
  if (rc == SQLITE_OK) return true;
  return loaded_check(t, false, "%s: %d %s", sql, rc, sqlite3_errmsg(db));
}

/* The first value of a statement as text, from sqlite3_mprintf; an error's text in its place. */
static char *value_of(sqlite3 *db, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *sql = sqlite3_vmprintf(format, args);
  va_end(args);
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_step(s);
  char *value = rc == SQLITE_ROW ? sqlite3_mprintf("%s", sqlite3_column_text(s, 0)) : NULL;
  if (rc == SQLITE_ROW) rc = sqlite3_step(s);
  if (rc != SQLITE_DONE) {
    sqlite3_free(value);
    value = sqlite3_mprintf("error %d: %s", rc, sqlite3_errmsg(db));
  }
  sqlite3_finalize(s);
  sqlite3_free(sql);
  return value;
}

bool stored_make(loaded *t, sqlite3 *db, int page_size, const char *journal_mode) {
  char *sql = sqlite3_mprintf("PRAGMA page_size = %d; PRAGMA journal_mode = %s; %s", page_size,
                              journal_mode, make_docs);
  const bool ok = stored_run(t, db, sql);
  sqlite3_free(sql);
  return ok;
}

bool stored_may_spill(bool wal) {
  return !wal || sqlite3_libversion_number() >= 3053000;
}

/* ---- States --------------------------------------------------------------------------------- */

/* What is summed in each table: the rows, and what should not change unseen. */
static const struct {
  const char *table, *format;
} summed[] = {
    {"bpe_model", "SELECT count(*) || ' ' || ifnull(sum(length(stats)), 0) FROM \"%w\".bpe_model"},
    {"bpe_model_vocab",
     "SELECT count(*) || ' ' || ifnull(sum(id), 0) || ' ' || ifnull(sum(length(token)), 0)"
     " FROM \"%w\".bpe_model_vocab"},
    {"bpe_model_merges",
     "SELECT count(*) || ' ' || ifnull(sum(rank), 0) || ' ' || ifnull(sum(count), 0)"
     " FROM \"%w\".bpe_model_merges"},
};
static const char *const nothing[] = {"0 0", "0 0 0", "0 0 0"};

static char *sums_of(sqlite3 *db, const char *schema, int table) {
  char *there = value_of(db,
                         "SELECT count(*) FROM \"%w\".sqlite_master WHERE type = 'table'"
                         " AND name = %Q",
                         schema, summed[table].table);
  if (strcmp(there, "1") == 0) {
    sqlite3_free(there);
    return value_of(db, summed[table].format, schema);
  }
  if (strcmp(there, "0") != 0) return there;
  sqlite3_free(there);
  return sqlite3_mprintf("%s", nothing[table]);
}

char *stored_state(sqlite3 *db, const char *schema) {
  char *list = value_of(db,
                        "SELECT ifnull(group_concat(name || ' ' || sealed || ' ' || digest, ', '),"
                        " '') FROM (SELECT name, sealed, ifnull(digest, 'none') AS digest"
                        " FROM bpe_tokenizers WHERE schema = %Q ORDER BY name)",
                        schema);
  char *sums[3];
  for (int i = 0; i < 3; i++) sums[i] = sums_of(db, schema, i);
  char *state = sqlite3_mprintf("%s; %s; %s; %s", list, sums[0], sums[1], sums[2]);
  for (int i = 0; i < 3; i++) sqlite3_free(sums[i]);
  sqlite3_free(list);
  return state;
}

char *shelf_state(const shelf *s) {
  sqlite3_str *out = sqlite3_str_new(NULL);
  sqlite3_int64 sums[N_SUMS] = {0};
  for (int i = 0; i < NAMES; i++) {
    if (s->held[i] < 0) continue;
    sqlite3_str_appendf(out, "%s%s 1 %s", sqlite3_str_length(out) > 0 ? ", " : "", names[i],
                        variants[s->held[i]].digest);
    for (int j = 0; j < N_SUMS; j++) sums[j] += variants[s->held[i]].sums[j];
  }
  sqlite3_str_appendf(out, "; %lld %lld; %lld %lld %lld; %lld %lld %lld", sums[0], sums[1], sums[2],
                      sums[3], sums[4], sums[5], sums[6], sums[7]);
  return sqlite3_str_finish(out);
}

bool stored_works(loaded *t, sqlite3 *db, const shelf *s, const char *where) {
  char *check = value_of(db, "PRAGMA integrity_check");
  bool good = loaded_check(t, strcmp(check, "ok") == 0, "%s: integrity_check: %s", where, check);
  sqlite3_free(check);
  for (int i = 0; i < NAMES; i++) {
    if (s->held[i] < 0) continue;
    char *answer = value_of(db, "SELECT bpe_encode(" QUESTION ", %Q)", names[i]);
    const bool same = strcmp(answer, variants[s->held[i]].answer) == 0;
    good = loaded_check(t, same, "%s: %s gives %s", where, names[i], answer) && good;
    sqlite3_free(answer);
  }
  return good;
}

/* Learns what a variant adds to an empty state, and how it answers. */
static bool learn(loaded *t, int variant) {
  char *sql =
      sqlite3_mprintf("INSERT INTO bpe_tokenizers(name, source) VALUES('x', %s)", sources[variant]);
  const bool ok = stored_run(t, t->db, sql);
  sqlite3_free(sql);
  variants[variant].digest = value_of(t->db, "SELECT digest FROM bpe_tokenizers WHERE name = 'x'");
  variants[variant].answer = value_of(t->db, "SELECT bpe_encode(" QUESTION ", 'x')");
  char *state = stored_state(t->db, "main");
  sqlite3_int64 *n = variants[variant].sums;
  const char *sums = strchr(state, ';');
  const bool read = ok && sums &&
                    sscanf(sums, "; %lld %lld; %lld %lld %lld; %lld %lld %lld", &n[0], &n[1], &n[2],
                           &n[3], &n[4], &n[5], &n[6], &n[7]) == N_SUMS;
  loaded_check(t, read && n[0] == 1 && n[2] > 255, "variant %d is stored: %s", variant, state);
  sqlite3_free(state);
  return stored_run(t, t->db, "DELETE FROM bpe_tokenizers WHERE name = 'x'") && read;
}

bool stored_begin(loaded *t, const char *extension) {
  extension_path = extension;
  if (!loaded_begin(t, extension)) return false;
  bool ok = stored_run(t, t->db, make_docs);
  for (int i = 0; i < VARIANTS && ok; i++) ok = learn(t, i);
  if (!ok) loaded_end(t);
  return ok;
}

/* ---- Steps ---------------------------------------------------------------------------------- */

shelf shelf_empty(void) {
  shelf s;
  for (int i = 0; i < NAMES; i++) s.held[i] = -1;
  return s;
}

/* A name that is taken, or free, -1: there is none. */
static int any_name(uint64_t *random, const shelf *s, bool taken) {
  const int first = (int)random_below(random, NAMES);
  for (int i = 0; i < NAMES; i++)
    if ((s->held[(first + i) % NAMES] >= 0) == taken) return (first + i) % NAMES;
  return -1;
}

static void remove_loosely(sqlite3_str *out, int name) {
  sqlite3_str_appendf(out,
                      "DELETE FROM bpe_model_merges WHERE model_id ="
                      " (SELECT id FROM bpe_model WHERE name = %Q);"
                      "DELETE FROM bpe_model WHERE name = %Q;\n",
                      names[name], names[name]);
}

/* One statement that changes the shelf. */
static void change(sqlite3_str *out, uint64_t *random, shelf *s, bool loose) {
  const int taken = any_name(random, s, true), unused = any_name(random, s, false);
  const uint32_t what = random_below(random, 4);
  if (taken >= 0 && unused >= 0 && what == 0) {
    sqlite3_str_appendf(out, "UPDATE bpe_tokenizers SET name = %Q WHERE name = %Q;\n",
                        names[unused], names[taken]);
    s->held[unused] = s->held[taken];
    s->held[taken] = -1;
  } else if (taken >= 0 && (unused < 0 || what == 1)) {
    if (loose) remove_loosely(out, taken);
    else sqlite3_str_appendf(out, "DELETE FROM bpe_tokenizers WHERE name = %Q;\n", names[taken]);
    s->held[taken] = -1;
  } else {
    const int variant = (int)random_below(random, VARIANTS);
    sqlite3_str_appendf(out, "INSERT INTO bpe_tokenizers(name, source) VALUES(%Q, %s);\n",
                        names[unused], sources[variant]);
    s->held[unused] = variant;
  }
}

static void some_changes(sqlite3_str *out, uint64_t *random, shelf *s) {
  for (uint32_t n = 1 + random_below(random, 3); n > 0; n--) change(out, random, s, false);
}

/* BEGIN, and what comes of it. */
static void transaction(sqlite3_str *out, uint64_t *random, shelf *s) {
  const shelf before = *s;
  const uint32_t how = random_below(random, 4);
  sqlite3_str_appendall(out, how == 3 ? "SAVEPOINT outermost;\n" : "BEGIN;\n");
  some_changes(out, random, s);
  if (how >= 2) {
    const shelf middle = *s;
    sqlite3_str_appendall(out, "SAVEPOINT inner;\n");
    some_changes(out, random, s);
    sqlite3_str_appendall(out, "ROLLBACK TO inner;\n");
    *s = middle;
  }
  if (how == 3) {
    sqlite3_str_appendall(out, "RELEASE outermost;\n");
  } else if (how == 0) {
    sqlite3_str_appendall(out, "ROLLBACK;\n");
    *s = before;
  } else {
    sqlite3_str_appendall(out, "COMMIT;\n");
  }
}

char *shelf_step(uint64_t *random, shelf *s) {
  sqlite3_str *out = sqlite3_str_new(NULL);
  switch (random_below(random, 12)) {
  case 0: sqlite3_str_appendall(out, "VACUUM;\n"); break;
  case 1: sqlite3_str_appendall(out, "PRAGMA wal_checkpoint(TRUNCATE);\n"); break;
  case 2:
  case 3:
  case 4: transaction(out, random, s); break;
  default: change(out, random, s, false); break;
  }
  return sqlite3_str_finish(out);
}

char *shelf_step_loose(uint64_t *random, shelf *s) {
  sqlite3_str *out = sqlite3_str_new(NULL);
  change(out, random, s, true);
  return sqlite3_str_finish(out);
}
