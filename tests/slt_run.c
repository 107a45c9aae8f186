/* slt_run.c - a script executed: directives, loops, conditions, and one record at a time.
**
** A record's SQL is exactly one statement. It is prepared, bound, stepped to its end and
** finalized; what came of it is an `outcome`, judged elsewhere. Nothing here fails a test by
** itself except what no expectation could mean: a second statement, a parameter that is not
** there, a value of another type than the head announced. Types are strict: no cast hides what
** a function returned; only NULL fits every letter.
**
**     loop n 1 4
**     query I
**     SELECT ${n} * ${n}          runs for n = 1, 2, 3; ${n} stands in expected lines too
**     ----
**     ...
**     endloop
*/
#include "slt.h"

#include <stdlib.h>
#include <string.h>

/* ---- Outcomes ------------------------------------------------------------------------------- */

void outcome_clear(outcome *o) {
  o->rc = o->extrc = SQLITE_OK;
  o->in_step = false;
  o->n_columns = 0;
  o->changes = 0;
  o->n_cells = 0;
  text_clear(&o->error);
  text_clear(&o->fault);
  text_clear(&o->values);
}

void outcome_free(outcome *o) {
  text_free(&o->error);
  text_free(&o->fault);
  text_free(&o->values);
  free(o->cells);
  *o = (outcome){0};
}

static bool text_equal(const text *a, const text *b) {
  return a->len == b->len && memcmp(text_str(a), text_str(b), a->len) == 0;
}

bool outcome_equal(const outcome *a, const outcome *b) {
  return a->extrc == b->extrc && a->n_columns == b->n_columns && a->n_cells == b->n_cells &&
         a->changes == b->changes && text_equal(&a->error, &b->error) &&
         text_equal(&a->fault, &b->fault) && text_equal(&a->values, &b->values);
}

/* ---- One statement -------------------------------------------------------------------------- */

static void set_failure(outcome *o, sqlite3 *db, int rc, const char *message) {
  o->rc = rc & 0xff;
  o->extrc = rc;
  text_clear(&o->error);
  text_append_str(&o->error, message ? message : sqlite3_errmsg(db));
}

/* Whether SQL holds nothing but blanks, semicolons and comments. */
static bool is_empty_sql(const char *s) {
  for (;;) {
    s += strspn(s, " \t\r\n\f;");
    if (strncmp(s, "--", 2) == 0) {
      s += strcspn(s, "\n");
    } else if (strncmp(s, "/*", 2) == 0) {
      const char *end = strstr(s + 2, "*/");
      s = end ? end + 2 : s + strlen(s);
    } else {
      return *s == '\0';
    }
  }
}

static int bind_blob_literal(sqlite3_stmt *stmt, int i, const char *literal) {
  const size_t n = strlen(literal) / 2 - 1; /* X'..' */
  unsigned char *bytes = slt_alloc(n);
  for (size_t j = 0; j < n; j++)
    bytes[j] = (unsigned char)(hex_digit(literal[2 + 2 * j]) * 16 + hex_digit(literal[3 + 2 * j]));
  const int rc = sqlite3_bind_blob64(stmt, i, bytes, n, SQLITE_TRANSIENT);
  free(bytes);
  return rc;
}

static int bind_text_value(sqlite3_stmt *stmt, int i, const char *value) {
  text t = {0};
  if (strcmp(value, "(empty)") != 0) text_unescape(value, strlen(value), &t);
  const int rc = sqlite3_bind_text64(stmt, i, text_str(&t), t.len, SQLITE_TRANSIENT, SQLITE_UTF8);
  text_free(&t);
  return rc;
}

static int bind_param(sqlite3_stmt *stmt, const command *p, outcome *o) {
  int i = sqlite3_bind_parameter_index(stmt, p->name);
  if (i == 0 && p->name[0] == '?') i = atoi(p->name + 1);
  if (i < 1 || i > sqlite3_bind_parameter_count(stmt)) {
    text_printf(&o->fault, "no such parameter: %s", p->name);
    return SQLITE_OK;
  }
  switch (p->type) {
  case 'N': return sqlite3_bind_null(stmt, i);
  case 'I': return sqlite3_bind_int64(stmt, i, strtoll(p->value, NULL, 10));
  case 'R': return sqlite3_bind_double(stmt, i, strtod(p->value, NULL));
  case 'B': return bind_blob_literal(stmt, i, p->value);
  default: return bind_text_value(stmt, i, p->value);
  }
}

static const char *type_name(int type) {
  switch (type) {
  case SQLITE_INTEGER: return "INTEGER";
  case SQLITE_FLOAT: return "REAL";
  case SQLITE_TEXT: return "TEXT";
  case SQLITE_BLOB: return "BLOB";
  default: return "NULL";
  }
}

static bool type_fits(int type, char letter) {
  switch (letter) {
  case 'I': return type == SQLITE_INTEGER || type == SQLITE_NULL;
  case 'R': return type == SQLITE_FLOAT || type == SQLITE_NULL;
  case 'T': return type == SQLITE_TEXT || type == SQLITE_NULL;
  case 'B': return type == SQLITE_BLOB || type == SQLITE_NULL;
  default: return true;
  }
}

/* Adds one row's cells. False: out of memory, or a type that does not fit (o->fault). */
static bool add_row(const session *s, sqlite3_stmt *stmt, const command *c, bool bar, outcome *o) {
  for (int i = 0; i < o->n_columns; i++) {
    const int type = sqlite3_column_type(stmt, i);
    o->cells = slt_grow(o->cells, &o->cells_capacity, o->n_cells + 1, sizeof *o->cells);
    o->cells[o->n_cells] = o->values.len;
    if (!value_render(stmt, i, s->real_format, bar, &o->values)) return false;
    text_append(&o->values, "", 1);
    if (c->expect == EXPECT_ROWS && !type_fits(type, c->types[i])) {
      const size_t row = o->n_cells / (size_t)o->n_columns + 1;
      text_printf(&o->fault, "row %zu column %d is %s %s, not %c", row, i + 1, type_name(type),
                  o->values.data + o->cells[o->n_cells], c->types[i]);
      return false;
    }
    o->n_cells++;
  }
  return true;
}

static void step_all(session *s, sqlite3 *db, sqlite3_stmt *stmt, const command *c, outcome *o) {
  const sort_mode sort = c->sort == SORT_DEFAULT ? s->sort : c->sort;
  int rc = SQLITE_OK;
  o->n_columns = sqlite3_column_count(stmt);
  if (c->expect == EXPECT_ROWS && strlen(c->types) != (size_t)o->n_columns) {
    text_printf(&o->fault, "%d columns, but %zu types", o->n_columns, strlen(c->types));
    return;
  }
  const bool bar = o->n_columns > 1 && !s->valuewise && sort != SORT_VALUES;
  o->in_step = true;
  for (size_t i = 0; i < s->n_params && rc == SQLITE_OK && !o->fault.len; i++)
    rc = bind_param(stmt, &s->params[i], o);
  if (rc == SQLITE_OK && o->fault.len) return;
  if (rc == SQLITE_OK) rc = SQLITE_ROW;
  while (rc == SQLITE_ROW && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
    if (add_row(s, stmt, c, bar, o)) continue;
    if (!o->fault.len) set_failure(o, db, SQLITE_NOMEM, sqlite3_errstr(SQLITE_NOMEM));
    return;
  }
  if (rc != SQLITE_DONE) set_failure(o, db, rc, NULL);
  else if (!sqlite3_stmt_readonly(stmt)) o->changes = sqlite3_changes(db);
}

/* One tick is this many instructions of SQLite's virtual machine. */
enum { TICK = 100 };

static int count_down(void *ticks_left) {
  return (*(int64_t *)ticks_left)-- <= 0;
}

void record_run(session *s, sqlite3 *db, const command *c, const char *sql, outcome *o) {
  sqlite3_stmt *stmt = NULL;
  const char *tail = NULL;
  int64_t ticks = s->ticks;
  outcome_clear(o);
  if (ticks >= 0) sqlite3_progress_handler(db, TICK, count_down, &ticks);
  const int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, &tail);
  if (rc != SQLITE_OK) set_failure(o, db, rc, NULL);
  else if (!stmt) text_append_str(&o->fault, "no SQL statement");
  else if (!is_empty_sql(tail)) text_append_str(&o->fault, "more than one SQL statement");
  else step_all(s, db, stmt, c, o);
  sqlite3_finalize(stmt);
  if (ticks >= 0 || s->ticks >= 0) sqlite3_progress_handler(db, 0, NULL, NULL);
}

/* ---- Substitution --------------------------------------------------------------------------- */

/* line with each ${name} replaced; NULL: no such variable, reported. */
static const char *expand(session *s, const script *sc, const node *n, const char *line, pool *p) {
  if (s->n_variables == 0 || !strstr(line, "${")) return line;
  text out = {0};
  const char *at = line;
  for (const char *open; (open = strstr(at, "${")) != NULL;) {
    const char *close = strchr(open, '}');
    const size_t len = close ? (size_t)(close - open) - 2 : 0;
    const variable *found = NULL;
    for (size_t i = 0; close && i < s->n_variables; i++)
      if (strlen(s->variables[i].name) == len && memcmp(s->variables[i].name, open + 2, len) == 0)
        found = &s->variables[i];
    if (!found) {
      report(s, sc, n, "no such loop variable: %s", open);
      text_free(&out);
      return NULL;
    }
    text_append(&out, at, (size_t)(open - at));
    text_append(&out, found->value.data, found->value.len);
    at = close + 1;
  }
  text_append_str(&out, at);
  const char *copy = pool_copy(p, out.data, out.len);
  text_free(&out);
  return copy;
}

/* ---- Records -------------------------------------------------------------------------------- */

static void forget_prefixes(session *s) {
  s->n_params = 0;
  s->ticks = -1;
  pool_clear(&s->record_strings);
}

static bool run_record(session *s, const script *sc, const node *n, const command *c) {
  outcome o = {0};
  const connection *conn = c->on ? session_find(s, c->on) : &s->connections[s->current];
  const char *sql = expand(s, sc, n, n->sql, &s->record_strings);
  const char **expected = pool_alloc(&s->record_strings, (n->n_expected + 1) * sizeof *expected);
  for (size_t i = 0; sql && i < n->n_expected; i++) {
    expected[i] = expand(s, sc, n, n->expected[i], &s->record_strings);
    if (!expected[i]) sql = NULL;
  }
  if (!sql) return false;
  if (!conn) {
    report(s, sc, n, "no such connection: %s", c->on);
    return false;
  }
  if (s->set->oom == OOM_OFF) record_run(s, conn->db, c, sql, &o);
  else oom_record(s, sc, n, c, sql, conn->db, &o);
  record_check(s, sc, n, c, sql, expected, &o);
  outcome_free(&o);
  forget_prefixes(s);
  return true;
}

/* ---- Directives ----------------------------------------------------------------------------- */

static bool compare_version(const condition *c) {
  const int n = sqlite3_libversion_number();
  if (strcmp(c->op, "<") == 0) return n < c->version;
  if (strcmp(c->op, "<=") == 0) return n <= c->version;
  if (strcmp(c->op, "=") == 0) return n == c->version;
  if (strcmp(c->op, ">=") == 0) return n >= c->version;
  if (strcmp(c->op, ">") == 0) return n > c->version;
  return n != c->version;
}

static bool under_asan(void) {
#if defined(__SANITIZE_ADDRESS__)
  return true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  return true;
#else
  return false;
#endif
#else
  return false;
#endif
}

static bool under_valgrind(void) {
  const char *preload = getenv("LD_PRELOAD");
  return preload && strstr(preload, "vgpreload");
}

static bool is_static(void) {
#ifdef SLT_STATIC
  return true;
#else
  return false;
#endif
}

static bool is_small(void) {
#ifdef BPE_SMALL
  return true;
#else
  return false;
#endif
}

static bool is_utf16(const session *s) {
  return strncmp(s->db_kind, "utf16", 5) == 0 ||
         (s->set->encoding && strncmp(s->set->encoding, "utf16", 5) == 0);
}

static bool holds(const session *s, const condition *c) {
  const uint16_t one = 1;
  switch (c->kind) {
  case IF_SQLITE: return true;
  case IF_OTHER_DB: return false;
  case IF_VERSION: return compare_version(c);
  case IF_UTF16: return is_utf16(s);
  case IF_BIGENDIAN: return *(const unsigned char *)&one == 0;
  case IF_ASAN: return under_asan();
  case IF_VALGRIND: return under_valgrind();
  case IF_STATIC: return is_static();
  case IF_NOEXT: return s->set->extension == NULL;
  case IF_OOM: return s->set->oom != OOM_OFF;
  case IF_SMALL: return is_small();
  case IF_FEATURE: return sqlite3_compileoption_used(c->feature) != 0;
  }
  return false;
}

static bool apply_config(session *s, const script *sc, const node *n, const command *c) {
  const int op = strcmp(c->name, "defensive") == 0        ? SQLITE_DBCONFIG_DEFENSIVE
                 : strcmp(c->name, "trusted_schema") == 0 ? SQLITE_DBCONFIG_TRUSTED_SCHEMA
                                                          : SQLITE_DBCONFIG_ENABLE_TRIGGER;
  int now = -1;
  const int rc = sqlite3_db_config(s->connections[s->current].db, op, (int)c->on_off, &now);
  if (rc == SQLITE_OK && now == (int)c->on_off) return true;
  report(s, sc, n, "cannot configure %s", c->name);
  return false;
}

static bool apply_limit(session *s, const command *c) {
  static const struct {
    const char *name;
    int id;
  } limits[] = {{"length", SQLITE_LIMIT_LENGTH},
                {"sql_length", SQLITE_LIMIT_SQL_LENGTH},
                {"column", SQLITE_LIMIT_COLUMN},
                {"expr_depth", SQLITE_LIMIT_EXPR_DEPTH},
                {"compound_select", SQLITE_LIMIT_COMPOUND_SELECT},
                {"vdbe_op", SQLITE_LIMIT_VDBE_OP},
                {"function_arg", SQLITE_LIMIT_FUNCTION_ARG},
                {"attached", SQLITE_LIMIT_ATTACHED},
                {"like_pattern_length", SQLITE_LIMIT_LIKE_PATTERN_LENGTH},
                {"variable_number", SQLITE_LIMIT_VARIABLE_NUMBER},
                {"trigger_depth", SQLITE_LIMIT_TRIGGER_DEPTH}};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
    if (strcmp(c->name, limits[i].name) == 0)
      sqlite3_limit(s->connections[s->current].db, limits[i].id, (int)c->low);
  return true;
}

static bool apply_control(session *s, const command *c) {
  if (strcmp(c->name, "resultmode") == 0) s->valuewise = strcmp(c->value, "valuewise") == 0;
  else if (strcmp(c->name, "realfmt") == 0) s->real_format = pool_str(&s->file_strings, c->value);
  else s->sort = c->sort;
  return true;
}

static bool load_again(session *s, const script *sc, const node *n) {
  text why = {0};
  const bool ok = extension_load(s->set, s->connections[s->current].db, &why);
  if (!ok) report(s, sc, n, "%s", text_str(&why));
  text_free(&why);
  return ok;
}

/* The late parse of a param must live until its record has run. */
static void keep_param(session *s, const command *c) {
  s->params = slt_grow(s->params, &s->params_capacity, s->n_params + 1, sizeof *s->params);
  s->params[s->n_params++] = *c;
}

/* Directives without a say in what runs next. False: stop this file. */
static bool run_directive(session *s, const script *sc, const node *n, const command *c,
                          int depth) {
  switch (c->kind) {
  case CMD_CONTROL: return apply_control(s, c);
  case CMD_CONNECTION: return session_switch(s, c);
  case CMD_REOPEN: return session_reopen(s);
  case CMD_BACKUP: return session_backup(s, c);
  case CMD_DB: return session_restart(s, c->name);
  case CMD_CONFIG: return apply_config(s, sc, n, c);
  case CMD_LIMIT: return apply_limit(s, c);
  case CMD_LOAD: return load_again(s, sc, n);
  case CMD_INTERRUPT:
    s->ticks = c->low;
    s->skip = s->skip || sqlite3_compileoption_used("OMIT_PROGRESS_CALLBACK");
    return true;
  case CMD_PARAM: keep_param(s, c); return true;
  case CMD_SKIPIF: s->skip = s->skip || holds(s, &c->when); return true;
  case CMD_ONLYIF: s->skip = s->skip || !holds(s, &c->when); return true;
  case CMD_INCLUDE: return script_run(s, n->child, depth + 1);
  default: return run_record(s, sc, n, c);
  }
}

/* ---- Loops ---------------------------------------------------------------------------------- */

typedef struct frame {
  command loop;
  size_t node;
  int64_t at; /* the number itself, or an index into words */
} frame;

static int64_t loop_end(const command *c) {
  return c->kind == CMD_LOOP ? c->high : (int64_t)c->n_words;
}

static void set_variable(session *s, const frame *f) {
  variable *v = &s->variables[s->n_variables - 1];
  v->name = f->loop.name;
  text_clear(&v->value);
  if (f->loop.kind == CMD_LOOP) text_printf(&v->value, "%lld", (long long)f->at);
  else text_append_str(&v->value, f->loop.words[f->at]);
}

/* The command of a node, substituted and parsed again if it holds ${...}. */
static bool late_command(session *s, const script *sc, const node *n, command *out) {
  *out = n->cmd;
  if (!n->late) return true;
  const bool loop = out->kind == CMD_LOOP || out->kind == CMD_FOREACH;
  pool *p = loop ? &s->file_strings : &s->record_strings;
  const char *line = expand(s, sc, n, n->head, p);
  text why = {0};
  if (!line) return false;
  const bool ok = command_parse(line, p, out, &why);
  if (!ok) report(s, sc, n, "%s", text_str(&why));
  text_free(&why);
  return ok;
}

/* Passes over a node that a condition ruled out; the index to go on from. */
static size_t pass_over(session *s, const script *sc, size_t i) {
  const node *n = &sc->nodes[i];
  const bool loop = n->cmd.kind == CMD_LOOP || n->cmd.kind == CMD_FOREACH;
  s->skip = false;
  if (is_record(&n->cmd)) s->skipped++;
  forget_prefixes(s);
  return loop ? n->match : i;
}

bool script_run(session *s, const script *sc, int depth) {
  frame frames[MAX_LOOPS];
  size_t n_frames = 0;
  for (size_t i = 0; i < sc->n_nodes; i++) {
    const node *n = &sc->nodes[i];
    command c;
    if (s->skip && !is_prefix(&n->cmd)) {
      i = pass_over(s, sc, i);
      continue;
    }
    if (!late_command(s, sc, n, &c) || c.kind == CMD_HALT) return false;
    if (c.kind == CMD_ENDLOOP) {
      frame *f = &frames[n_frames - 1];
      if (++f->at < loop_end(&f->loop)) {
        set_variable(s, f);
        i = f->node;
      } else {
        n_frames--;
        s->n_variables--;
      }
    } else if (c.kind == CMD_LOOP || c.kind == CMD_FOREACH) {
      frame *f = &frames[n_frames];
      *f = (frame){c, i, c.kind == CMD_LOOP ? c.low : 0};
      if (f->at >= loop_end(&c)) {
        i = n->match;
      } else if (s->n_variables == MAX_LOOPS) {
        report(s, sc, n, "loops too deep");
        return false;
      } else {
        n_frames++;
        s->n_variables++;
        set_variable(s, f);
      }
    } else if (!run_directive(s, sc, n, &c, depth)) {
      return false;
    }
  }
  return true;
}
