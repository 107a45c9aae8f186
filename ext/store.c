/* store.c - where stored tokenizers are looked up: one kept statement per schema.
**
** A name is looked up by reading its row's digest in the transaction of the statement that asks,
** each time. So rollback, WAL snapshots, other connections, ATTACH and DETACH need no thought: what
** is read is what is true for the caller. That has to be fast, hence the kept statements:
**
** (S1) They belong to the eponymous table bpe_tokenizers, whose xDisconnect frees them; kept
**      anywhere else they would make sqlite3_close answer SQLITE_BUSY. Where that table cannot be
**      reached (a table of the same name hides it), a store of one call takes its place.
** (S2) A host may have finalized every statement before it closes: only those that SQLite still
**      lists are finalized.
** (S3) A schema without bpe_model keeps a statement that reads nothing, but is prepared anew by
**      SQLite when that schema changes. `version` changes with it, and never has a value twice.
** (S4) INDEXED BY makes the lookup one probe of an index that only a real table with our
**      constraint has: a view or virtual table of that name is an error, not a query.
**      "+?1" keeps a bound name from being looked at by the planner, which would prepare anew.
** (S5) While a statement of the store runs, the store is busy: whatever comes back to it through a
**      generated column, a trigger or a view that someone put there is "recursive use".
**
**     store *s = store_begin(c, f);
**     if (s) {
**       if (store_seek(s, name, f, &row) == SQLITE_OK && row.found) ... the read is open ...
**       store_end(s);
**     }
*/
#include "ext.h"

#include <string.h>

enum { MAX_TRIES = 3 }; /* a schema cannot change while we look, but may have before */

typedef struct place {
  char *schema;                /* owned */
  sqlite3_stmt *find;          /* owned; NULL: to be prepared */
  bool has_table;              /* find looks names up; else it watches (S3) */
  bool foreign;                /* there is a bpe_model, but none of ours */
  bool open;                   /* find stands at a row, or has failed */
  int prepared;                /* how often SQLite had prepared it anew when last seen */
  sqlite3_int64 version, seen; /* seen: the one for which `foreign` was found out */
} place;

struct store {
  conn *c;       /* borrowed */
  bool kept;     /* belongs to the catalogue's table; else to one call */
  place *places; /* owned; in the order of the connection's schemas */
  int n, cap;
  sqlite3_stmt *list; /* owned; schemas, where SQLite has no function for it */
};

/* ---- Life ---------------------------------------------------------------------------------- */

/* S2 */
static void finalize(conn *c, sqlite3_stmt *mine) {
  sqlite3_stmt *stmt = mine ? sqlite3_next_stmt(c->db, NULL) : NULL;
  while (stmt && stmt != mine) stmt = sqlite3_next_stmt(c->db, stmt);
  if (stmt) sqlite3_finalize(stmt);
}

static void cut_places(store *s, int n) {
  while (s->n > n) {
    place *p = &s->places[--s->n];
    finalize(s->c, p->find);
    sqlite3_free(p->schema);
  }
}

int stored_step(conn *c, sqlite3_stmt *stmt, failure *f) {
  const int limit = sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, -1);
  const bool is_ours = limit > LONGEST_STORED;
  if (is_ours) sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, LONGEST_STORED);
  const int rc = sqlite3_step(stmt);
  if (is_ours) sqlite3_limit(c->db, SQLITE_LIMIT_LENGTH, limit);
  if ((rc & 0xff) == SQLITE_TOOBIG && is_ours) {
    fail(f, "a stored value has more than %d bytes", LONGEST_STORED);
  }
  return rc;
}

store *store_new(conn *c, bool kept) {
  store *s = sqlite3_malloc64(sizeof *s);
  if (s) *s = (store){.c = c, .kept = kept};
  return s;
}

void store_free(store *s) {
  if (!s) return;
  cut_places(s, 0);
  finalize(s->c, s->list);
  sqlite3_free(s->places);
  sqlite3_free(s);
}

/* The schema number i, asked for in order; *name NULL past the last. */
static int next_schema(store *s, int i, failure *f, const char **name) {
#if SQLITE_VERSION_NUMBER >= 3039000
  if (HAVE(3039000, db_name)) {
    *name = sqlite3_db_name(s->c->db, i);
    return SQLITE_OK;
  }
#endif
  int rc = SQLITE_OK;
  *name = i == 1 ? "temp" : NULL; /* which is listed only once it has something */
  if (*name) return SQLITE_OK;
  if (!s->list) rc = sqlite3_prepare_v2(s->c->db, "PRAGMA database_list", -1, &s->list, NULL);
  if (rc == SQLITE_OK && i == 0) sqlite3_reset(s->list);
  if (rc == SQLITE_OK) rc = sqlite3_step(s->list);
  if (rc == SQLITE_ROW && sqlite3_column_int(s->list, 0) == 1) rc = sqlite3_step(s->list);
  if (rc == SQLITE_ROW) *name = (const char *)sqlite3_column_text(s->list, 1);
  if (rc == SQLITE_ROW && *name) return SQLITE_OK;
  if (rc == SQLITE_DONE) rc = sqlite3_reset(s->list);
  else if (rc == SQLITE_ROW) rc = SQLITE_NOMEM;
  return rc == SQLITE_OK ? rc : fail_db(f, s->c->db, rc);
}

static int add_place(store *s, const char *schema, failure *f) {
  if (s->n == s->cap) {
    const int cap = s->cap + 8;
    place *places = sqlite3_realloc64(s->places, (sqlite3_uint64)cap * sizeof *places);
    if (!places) return fail_code(f, SQLITE_NOMEM);
    s->places = places;
    s->cap = cap;
  }
  char *copy = sqlite3_mprintf("%s", schema);
  if (!copy) return fail_code(f, SQLITE_NOMEM);
  s->places[s->n++] = (place){.schema = copy};
  return SQLITE_OK;
}

/* Makes the places those that the connection has. One that was detached and attached again under
** the same name and number is the same place: DETACH made SQLite prepare every statement anew. */
static int match_places(store *s, failure *f) {
  for (int i = 0;; i++) {
    const char *schema;
    if (next_schema(s, i, f, &schema) != SQLITE_OK) return f->rc;
    if (!schema) {
      cut_places(s, i);
      return SQLITE_OK;
    }
    if (i < s->n && strcmp(s->places[i].schema, schema) == 0) continue;
    cut_places(s, i);
    if (add_place(s, schema, f) != SQLITE_OK) return f->rc;
  }
}

/* Has SQLite connect the catalogue's table, which makes c->store. */
static int connect_store(conn *c, failure *f) {
  sqlite3_stmt *stmt = NULL;
  const int rc = sqlite3_prepare_v2(c->db, "SELECT 1 FROM bpe_tokenizers", -1, &stmt, NULL);
  sqlite3_finalize(stmt);
  return rc == SQLITE_NOMEM ? fail_code(f, rc) : SQLITE_OK;
}

store *store_begin(conn *c, failure *f) {
  if (c->storage_busy) { /* S5 */
    fail(f, "recursive use of stored tokenizers");
    return NULL;
  }
  if (!c->store && connect_store(c, f) != SQLITE_OK) return NULL;
  store *s = c->store ? c->store : store_new(c, false); /* S1 */
  if (!s) {
    fail_code(f, SQLITE_NOMEM);
    return NULL;
  }
  c->storage_busy = true;
  if (match_places(s, f) == SQLITE_OK) return s;
  store_end(s);
  return NULL;
}

void store_end(store *s) {
  s->c->storage_busy = false;
  store_rest(s);
  if (!s->kept) store_free(s);
}

void store_rest(store *s) {
  for (int i = 0; i < s->n; i++) {
    place *p = &s->places[i];
    if (p->open) sqlite3_reset(p->find);
    p->open = false;
  }
}

conn *store_conn(const store *s) {
  return s->c;
}

bool store_is_kept(const store *s) {
  return s->kept;
}

/* ---- Schemas ------------------------------------------------------------------------------- */

const char *store_schema(const store *s, int i) {
  return i < s->n ? s->places[i].schema : NULL;
}

bool store_is_foreign(const store *s, int i) {
  return s->places[i].foreign && !s->places[i].has_table;
}

int store_find_schema(const store *s, bytes name) {
  for (int i = 0; i < s->n; i++) {
    const char *schema = s->places[i].schema;
    if (strlen(schema) == name.len &&
        sqlite3_strnicmp(schema, (const char *)name.data, (int)name.len) == 0) {
      return i;
    }
  }
  /* The first is main, whatever SQLITE_DBCONFIG_MAINDBNAME calls it. */
  const bool is_main = name.len == 4 && sqlite3_strnicmp("main", (const char *)name.data, 4) == 0;
  return is_main && s->n > 0 ? 0 : -1;
}

int store_split(const store *s, bytes *name) {
  for (size_t n = 0; n < name->len; n++) {
    if (name->data[n] != '.') continue;
    const int i = store_find_schema(s, (bytes){name->data, n});
    if (i < 0) continue; /* a schema's name may have dots */
    *name = (bytes){name->data + n + 1, name->len - n - 1};
    return i;
  }
  return -1;
}

bool name_is_reserved(bytes name) {
  return bpe_builtin_resolve((const char *)name.data, name.len) >= 0;
}

/* ---- Rows ---------------------------------------------------------------------------------- */

/* S3, S4 */
static int prepare(conn *c, place *p, failure *f) {
  int rc = SQLITE_ERROR, watch = 0;
  for (; watch < 2 && rc == SQLITE_ERROR; watch++) {
    char *sql = sqlite3_mprintf(watch ? "SELECT 1 FROM \"%w\".sqlite_master LIMIT 0"
                                      : "SELECT id, digest, pattern, options FROM \"%w\".bpe_model"
                                        " INDEXED BY sqlite_autoindex_bpe_model_1 WHERE name = +?1",
                                p->schema);
    if (!sql) return fail_code(f, SQLITE_NOMEM);
    rc = sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &p->find, NULL);
    sqlite3_free(sql);
  }
  if (rc != SQLITE_OK) return fail_db(f, c->db, rc);
  p->has_table = watch == 1;
  p->prepared = 0;
  p->version = ++c->versions;
  return SQLITE_OK;
}

/* Whether the schema has anything that is called bpe_model. */
static int look_for_foreign(conn *c, place *p, failure *f) {
  sqlite3_stmt *stmt = NULL;
  char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\".sqlite_master WHERE name = 'bpe_model'"
                              " COLLATE NOCASE",
                              p->schema);
  if (!sql) return fail_code(f, SQLITE_NOMEM);
  int rc = sqlite3_prepare_v2(c->db, sql, -1, &stmt, NULL);
  sqlite3_free(sql);
  if (rc == SQLITE_OK) rc = sqlite3_step(stmt);
  p->foreign = rc == SQLITE_ROW;
  if (rc != SQLITE_ROW && rc != SQLITE_DONE) fail_db(f, c->db, rc);
  sqlite3_finalize(stmt);
  return f->rc;
}

/* Steps the place's statement: SQLITE_ROW or SQLITE_DONE, SQLITE_SCHEMA if it has to be prepared
** differently, or a failure. SQLite says SQLITE_ERROR for both; `last`: that it is no schema. */
static int step(conn *c, place *p, bytes name, bool last, failure *f) {
  int rc = SQLITE_OK;
  if (p->open) sqlite3_reset(p->find); /* from an earlier search */
  if (p->has_table) {
    rc = sqlite3_bind_text64(p->find, 1, (const char *)name.data, name.len, SQLITE_TRANSIENT,
                             SQLITE_UTF8);
  }
  if (rc == SQLITE_OK) rc = stored_step(c, p->find, f);
  p->open = rc != SQLITE_DONE || p->has_table; /* to be reset before the next bind */
  const int prepared = sqlite3_stmt_status(p->find, SQLITE_STMTSTATUS_REPREPARE, 0);
  if (prepared != p->prepared) {
    p->prepared = prepared;
    p->version = ++c->versions;
    if (!p->has_table) return SQLITE_SCHEMA;
  }
  if (rc == SQLITE_ROW || rc == SQLITE_DONE || f->rc != SQLITE_OK) return rc;
  return rc == SQLITE_ERROR && !last ? SQLITE_SCHEMA : fail_db(f, c->db, rc);
}

/* The temporary schema has no database behind it until something is put there, and a look into it
** would make one, to be looked into each time. */
static bool is_open(conn *c, const place *p) {
  unsigned version;
  return sqlite3_file_control(c->db, p->schema, SQLITE_FCNTL_DATA_VERSION, &version) !=
         SQLITE_ERROR;
}

static int seek(conn *c, place *p, bytes name, failure *f, bool *found) {
  *found = false;
  if (!p->find && !is_open(c, p)) return SQLITE_OK;
  for (int tries = 0; tries < MAX_TRIES; tries++) {
    if (!p->find && prepare(c, p, f) != SQLITE_OK) return f->rc;
    const bool fresh = p->seen != p->version;
    const int rc = step(c, p, name, tries > 0, f);
    if (f->rc != SQLITE_OK) return f->rc;
    if (fresh && !p->has_table && look_for_foreign(c, p, f) != SQLITE_OK) return f->rc;
    p->seen = p->version;
    *found = rc == SQLITE_ROW && p->has_table;
    if (rc != SQLITE_SCHEMA) return SQLITE_OK;
    sqlite3_finalize(p->find);
    p->find = NULL;
    p->open = false;
  }
  return fail_code(f, SQLITE_SCHEMA);
}

/* As it stands there: TEXT of a UTF-16 database is not converted. */
static bytes column_bytes(sqlite3_stmt *stmt, int i) {
  if (sqlite3_column_type(stmt, i) == SQLITE_NULL) return (bytes){.data = NULL};
  const uint8_t *data = sqlite3_column_blob(stmt, i); /* NULL if it is empty */
  if (!data) return (bytes){.data = (const uint8_t *)""};
  return (bytes){.data = data, .len = (size_t)sqlite3_column_bytes(stmt, i)};
}

static void read_row(const place *p, stored_row *out) {
  sqlite3_stmt *stmt = p->find;
  *out = (stored_row){.found = true, .schema = p->schema, .version = p->version};
  out->id = sqlite3_column_int64(stmt, 0);
  const void *digest = sqlite3_column_blob(stmt, 1); /* NULL where the column is */
  out->sealed = digest && sqlite3_column_bytes(stmt, 1) == (int)sizeof out->digest;
  if (out->sealed) memcpy(out->digest, digest, sizeof out->digest);
  out->pattern = column_bytes(stmt, 2);
  out->options = column_bytes(stmt, 3);
}

/* Names are C strings in the catalogue and in messages; a planted one with a NUL is not there. */
static bool has_nul(bytes name) {
  return name.len > 0 && memchr(name.data, 0, name.len) != NULL;
}

int store_seek_in(store *s, int i, bytes name, failure *f, stored_row *out) {
  bool found;
  *out = (stored_row){.found = false};
  if (has_nul(name)) return SQLITE_OK;
  if (seek(s->c, &s->places[i], name, f, &found) == SQLITE_OK && found) {
    read_row(&s->places[i], out);
  }
  return f->rc;
}

int store_seek(store *s, bytes name, failure *f, stored_row *out) {
  bytes rest = name;
  const int pinned = store_split(s, &rest);
  *out = (stored_row){.found = false};
  if (pinned >= 0 && name_is_reserved(rest)) return SQLITE_OK; /* planted */
  if (pinned >= 0) return store_seek_in(s, pinned, rest, f, out);
  for (int i = 0; i < s->n; i++) {
    stored_row row;
    if (store_seek_in(s, i, name, f, &row) != SQLITE_OK) return f->rc;
    if (row.found && out->found) {
      char text[SHOWN_SIZE];
      shown(name, text);
      return fail(f, "tokenizer is in two schemas: %s.%s and %s.%s", out->schema, text, row.schema,
                  text);
    }
    if (row.found) *out = row;
  }
  return SQLITE_OK;
}

int store_each(store *s, int i, failure *f, stored_name *each, void *ctx) {
  bool found;
  sqlite3_stmt *stmt = NULL;
  place *p = &s->places[i];
  if (seek(s->c, p, (bytes){(const uint8_t *)"", 0}, f, &found) != SQLITE_OK) return f->rc;
  if (!p->has_table) return SQLITE_OK;
  char *sql = sqlite3_mprintf("SELECT name FROM \"%w\".bpe_model"
                              " INDEXED BY sqlite_autoindex_bpe_model_1"
                              " WHERE name > '' ORDER BY name",
                              p->schema);
  if (!sql) return fail_code(f, SQLITE_NOMEM);
  int rc = sqlite3_prepare_v2(s->c->db, sql, -1, &stmt, NULL);
  sqlite3_free(sql);
  while (rc == SQLITE_OK && (rc = stored_step(s->c, stmt, f)) == SQLITE_ROW) {
    if (sqlite3_column_type(stmt, 0) != SQLITE_TEXT) break; /* BLOBs come last */
    bytes name = {.data = sqlite3_column_text(stmt, 0)};
    name.len = (size_t)sqlite3_column_bytes(stmt, 0);
    rc = name.data ? SQLITE_OK : SQLITE_NOMEM;
    if (!name.data || has_nul(name) || name_is_reserved(name)) continue;
    if (!each(ctx, i, name)) break;
  }
  if (rc != SQLITE_OK && rc != SQLITE_ROW && rc != SQLITE_DONE) fail_db(f, s->c->db, rc);
  sqlite3_finalize(stmt);
  return f->rc;
}
