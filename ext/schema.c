/* schema.c - sql/schema.sql inside the extension: made where a tokenizer is stored, and compared
** with what a database says it has.
**
** The file is embedded, not repeated. Its statements are blocks between empty lines, each
** "CREATE TABLE|TRIGGER IF NOT EXISTS name...;". SQLite keeps the text of a statement from the
** name on, so "as we make it" is a comparison of texts: a view, a virtual table, other columns, a
** missing constraint and a trigger that does something else are all the same: not ours.
**
**     if (schema_check(c, "main", f, &bad) == SQLITE_OK && bad.name.len == 0) ... all are there
*/
#include "ext.h"

#include <string.h>

#if defined(__APPLE__)
#define SECTION ".section __TEXT,__const\n"
#define SYMBOL "_bpe_schema_sql"
#define HIDE(name) ".private_extern " name "\n"
#elif defined(_WIN32)
#define SECTION ".section .rdata,\"dr\"\n"
#define SYMBOL "bpe_schema_sql"
#define HIDE(name)
#else
#define SECTION ".section .rodata\n"
#define SYMBOL "bpe_schema_sql"
#define HIDE(name) ".hidden " name "\n"
#endif

/* The path is relative to the project's root, where make runs. */
__asm__(SECTION ".globl " SYMBOL "\n" HIDE(SYMBOL) SYMBOL ":\n"
                                                          ".incbin \"sql/schema.sql\"\n"
                                                          ".byte 0\n.text\n");

extern const char bpe_schema_sql[];

static const char create[] = "CREATE ", unless[] = "IF NOT EXISTS ";

/* *at NULL: the first. */
static bool schema_next(const char **at, schema_object *out) {
  const char *p = *at ? *at : bpe_schema_sql;
  while ((p = strstr(p, create)) != NULL && p != bpe_schema_sql && p[-1] != '\n') p++;
  if (!p) return false;
  const char *end = strstr(p, ";\n\n");
  if (!end) end = p + strlen(p) - 2; /* the last one */
  const char *name = strstr(p, unless) + strlen(unless);
  out->type = strncmp(p + strlen(create), "TABLE", 5) == 0 ? "table" : "trigger";
  out->text = (bytes){(const uint8_t *)name, (size_t)(end - name)};
  out->name = (bytes){(const uint8_t *)name, strcspn(name, "( \n")};
  *at = end;
  return true;
}

static bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || c == '_';
}

/* Whether `sql`, as SQLite keeps it, makes the object as schema.sql does. ALTER TABLE RENAME leaves
** quotes around names of tables, also when it is undone. */
static bool is_ours(const schema_object *o, const char *sql, size_t len) {
  const char *const begin = o->type[1] == 'a' ? "CREATE TABLE " : "CREATE TRIGGER ";
  const char *ours = (const char *)o->text.data;
  const size_t n = strlen(begin);
  if (!sql || len < n || memcmp(sql, begin, n) != 0) return false;
  bool quoted = false;
  size_t k = 0;
  for (size_t i = n; i < len; i++) {
    const char next = k < o->text.len ? ours[k] : 0;
    if (sql[i] == '"' && next != '"' && (quoted ? !is_word(next) : is_word(next))) {
      if (!quoted && k > 0 && is_word(ours[k - 1])) return false; /* inside a word */
      quoted = !quoted;
    } else if (sql[i] == next && (!quoted || is_word(next))) {
      k++;
    } else {
      return false;
    }
  }
  return k == o->text.len && !quoted;
}

int schema_check(conn *c, const char *schema, failure *f, schema_object *bad) {
  sqlite3_stmt *stmt = NULL;
  const char *at = NULL;
  schema_object o;
  bool good = true;
  *bad = (schema_object){.type = ""};
  char *sql =
      sqlite3_mprintf("SELECT sql FROM \"%w\".sqlite_master WHERE type = ?1 AND name = ?2", schema);
  if (!sql) return fail_code(f, SQLITE_NOMEM);
  int rc = sqlite3_prepare_v2(c->db, sql, -1, &stmt, NULL);
  sqlite3_free(sql);
  while (rc == SQLITE_OK && good && schema_next(&at, &o)) {
    const char *name = (const char *)o.name.data;
    rc = sqlite3_bind_text(stmt, 1, o.type, -1, SQLITE_STATIC);
    if (rc == SQLITE_OK) rc = sqlite3_bind_text(stmt, 2, name, (int)o.name.len, SQLITE_STATIC);
    if (rc == SQLITE_OK) rc = sqlite3_step(stmt);
    good = rc == SQLITE_ROW && is_ours(&o, (const char *)sqlite3_column_text(stmt, 0),
                                       (size_t)sqlite3_column_bytes(stmt, 0));
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) rc = sqlite3_reset(stmt);
  }
  if (rc == SQLITE_OK && !good) *bad = o;
  if (rc != SQLITE_OK) fail_db(f, c->db, rc);
  sqlite3_finalize(stmt);
  return f->rc;
}

int schema_create(conn *c, const char *schema, failure *f) {
  schema_object o, bad;
  const char *at = NULL;
  if (schema_check(c, schema, f, &bad) != SQLITE_OK) return f->rc;
  if (bad.name.len == 0) return SQLITE_OK;
  while (schema_next(&at, &o)) {
    char *sql = sqlite3_mprintf("CREATE %s IF NOT EXISTS \"%w\".%.*s", o.type, schema,
                                (int)o.text.len, o.text.data);
    if (!sql) return fail_code(f, SQLITE_NOMEM);
    const int rc = sqlite3_exec(c->db, sql, NULL, NULL, NULL);
    sqlite3_free(sql);
    if (rc != SQLITE_OK) return fail_db(f, c->db, rc);
  }
  if (schema_check(c, schema, f, &bad) != SQLITE_OK || bad.name.len == 0) return f->rc;
  return fail(f, "%s %.*s of schema %s is not as bpe makes it", bad.type, (int)bad.name.len,
              bad.name.data, schema);
}
