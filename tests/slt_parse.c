/* slt_parse.c - a test file as a script: the grammar, and the refusal of everything else.
**
** A file is a list of one-line directives and of records; a record is a head line, SQL up to an
** empty line, and, after a line of four dashes, the expected lines up to an empty line:
**
**     # a comment stands in a line of its own, between records
**     query IT rowsort
**     SELECT id, token FROM t
**     ----
**     1|a
**     2|NULL
**
** Refused with a place: unknown words, a head inside a record (an empty line is missing),
** directives that nothing follows, loops that do not nest, NUL bytes, a file without records.
*/
#include "slt.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Grammar --------------------------------------------------------------------------------
**
**     statement ok|error [TEXT]|count N                      SQL without rows to compare
**     query TYPES [nosort|rowsort|valuesort] [LABEL]          one letter a column: I R T B ?
**     query error [TEXT]                                      as statement error
**       TEXT: part of the message, or /an extended regex/; without it a ---- block is the message.
**       Before TEXT: code N, extcode N. Any head takes @NAME: run on that connection.
**     param ?1|:name I|R|T|B|N [VALUE]     for the next record; VALUE as results are shown
**     interrupt after N ticks              a progress handler stops the next record, which
**                                          is skipped where SQLite was built without them
**     skipif|onlyif CONDITION              the next record or directive; conditions are
**       sqlite, mysql.., sqlite<3.41 (< <= = >= > !=), utf16, bigendian, asan, valgrind, static,
**       noext, oom, small (-DBPE_SMALL), option:ENABLE_FTS5
**     connection NAME [readonly] [noext]   made when new, and current from here on
**     reopen                               closes the current connection and opens it again
**     db memory|file|wal|utf16le|utf16be   everything closed, a fresh database
**     config defensive|trusted_schema|triggers on|off
**     limit NAME N                         sqlite3_limit: length, sql_length, column, ...
**     load                                 the extension once more on this connection
**     backup FROM TO                       sqlite3_backup; each is a connection, or connection.schema
**     loop NAME FROM TO ... endloop        TO excluded; ${NAME} in all lines between
**     foreach NAME WORD... ... endloop
**     include PATH                         relative to this file
**     control resultmode rowwise|valuewise, control realfmt %.15g|%.3f, control sortmode MODE
**     halt                                 the rest of the file is checked but not run
*/

/* ---- Words ---------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *s) {
  return s + strspn(s, " \t");
}

/* The next word of *at, or NULL at the end. */
static char *next_word(const char **at, pool *p) {
  const char *s = skip_blanks(*at);
  const size_t n = strcspn(s, " \t");
  *at = skip_blanks(s + n);
  return n ? pool_copy(p, s, n) : NULL;
}

static bool refuse(text *why, const char *what, const char *object) {
  text_clear(why);
  text_printf(why, "%s%s%s", what, object ? ": " : "", object ? object : "");
  return false;
}

static bool parse_integer(const char *word, int64_t *out) {
  if (!word || !*word) return false;
  char *end;
  errno = 0;
  const long long n = strtoll(word, &end, 10);
  *out = n;
  return errno == 0 && *end == '\0';
}

static bool at_end(const char *args, text *why) {
  return *args == '\0' || refuse(why, "unexpected", args);
}

static bool is_name(const char *s) {
  if (!s || !*s) return false;
  for (; *s; s++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *s))
      return false;
  return true;
}

static bool one_of(const char *word, const char *const *names) {
  for (; word && *names; names++)
    if (strcmp(word, *names) == 0) return true;
  return false;
}

/* ---- Record heads --------------------------------------------------------------------------- */

/* Takes "@NAME" off the front of *at. */
static void take_connection(const char **at, pool *p, command *out) {
  if (**at == '@') out->on = next_word(at, p) + 1;
}

/* Takes "word N" off the front of *at. */
static void take_code(const char **at, const char *word, pool *p, int *out) {
  const char *s = *at;
  const char *first = next_word(&s, p);
  const char *second = next_word(&s, p);
  int64_t n;
  if (!first || strcmp(first, word) != 0 || !parse_integer(second, &n) || n < 1 || n > 65535)
    return;
  *out = (int)n;
  *at = s;
}

static bool parse_error_tail(const char *args, pool *p, command *out) {
  out->expect = EXPECT_ERROR;
  take_connection(&args, p, out);
  take_code(&args, "code", p, &out->code);
  take_code(&args, "extcode", p, &out->extcode);
  const size_t n = strlen(args);
  if (n == 0) return true;
  out->regex = n > 2 && args[0] == '/' && args[n - 1] == '/';
  out->pattern = out->regex ? pool_copy(p, args + 1, n - 2) : pool_str(p, args);
  return true;
}

static bool parse_statement(const char *args, pool *p, command *out, text *why) {
  const char *word = next_word(&args, p);
  if (!word) return refuse(why, "statement needs ok, error or count", NULL);
  if (strcmp(word, "error") == 0) return parse_error_tail(args, p, out);
  if (strcmp(word, "count") == 0) {
    out->expect = EXPECT_COUNT;
    if (!parse_integer(next_word(&args, p), &out->low)) return refuse(why, "no count", NULL);
  } else if (strcmp(word, "ok") != 0) {
    return refuse(why, "unknown kind of statement", word);
  }
  take_connection(&args, p, out);
  return at_end(args, why);
}

static bool parse_sort(const char *word, sort_mode *out) {
  static const struct {
    const char *word;
    sort_mode mode;
  } modes[] = {{"nosort", SORT_NONE}, {"rowsort", SORT_ROWS}, {"valuesort", SORT_VALUES}};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(word, modes[i].word) != 0) continue;
    *out = modes[i].mode;
    return true;
  }
  return false;
}

static bool parse_query(const char *args, pool *p, command *out, text *why) {
  const char *word = next_word(&args, p);
  if (!word) return refuse(why, "query needs types or error", NULL);
  if (strcmp(word, "error") == 0) return parse_error_tail(args, p, out);
  if (word[strspn(word, "IRTB?")]) return refuse(why, "unknown type letter (I R T B ?)", word);
  out->expect = EXPECT_ROWS;
  out->types = word;
  out->sort = SORT_DEFAULT;
  for (int i = 0; *args; i++) {
    if (*args == '@') {
      take_connection(&args, p, out);
      return at_end(args, why);
    }
    word = next_word(&args, p);
    if (i == 0 && parse_sort(word, &out->sort)) continue;
    if (out->label) return refuse(why, "unexpected", word);
    if (out->sort == SORT_DEFAULT) return refuse(why, "unknown sort mode", word);
    out->label = word;
  }
  return true;
}

/* ---- Directives ----------------------------------------------------------------------------- */

static bool parse_nothing(const char *args, pool *p, command *out, text *why) {
  (void)p;
  (void)out;
  return at_end(args, why);
}

static bool parse_control(const char *args, pool *p, command *out, text *why) {
  static const char *const results[] = {"rowwise", "valuewise", NULL};
  static const char *const formats[] = {"%.15g", "%.3f", NULL};
  out->name = next_word(&args, p);
  out->value = next_word(&args, p);
  if (!out->name || !out->value) return refuse(why, "control needs a name and a value", NULL);
  const bool known = (strcmp(out->name, "resultmode") == 0 && one_of(out->value, results)) ||
                     (strcmp(out->name, "realfmt") == 0 && one_of(out->value, formats)) ||
                     (strcmp(out->name, "sortmode") == 0 && parse_sort(out->value, &out->sort));
  return known ? at_end(args, why) : refuse(why, "unknown control", out->name);
}

static bool parse_connection(const char *args, pool *p, command *out, text *why) {
  out->name = next_word(&args, p);
  if (!is_name(out->name)) return refuse(why, "connection needs a name", NULL);
  for (const char *word = next_word(&args, p); word; word = next_word(&args, p)) {
    if (strcmp(word, "readonly") == 0) out->readonly = true;
    else if (strcmp(word, "noext") == 0) out->noext = true;
    else return refuse(why, "unknown kind of connection", word);
  }
  return true;
}

static bool parse_db(const char *args, pool *p, command *out, text *why) {
  static const char *const kinds[] = {"memory", "file", "wal", "utf16le", "utf16be", NULL};
  out->name = next_word(&args, p);
  if (!one_of(out->name, kinds)) return refuse(why, "unknown kind of database", out->name);
  return at_end(args, why);
}

static bool parse_config(const char *args, pool *p, command *out, text *why) {
  static const char *const names[] = {"defensive", "trusted_schema", "triggers", NULL};
  static const char *const switches[] = {"on", "off", NULL};
  out->name = next_word(&args, p);
  const char *word = next_word(&args, p);
  if (!one_of(out->name, names)) return refuse(why, "unknown setting", out->name);
  if (!one_of(word, switches)) return refuse(why, "config needs on or off", NULL);
  out->on_off = strcmp(word, "on") == 0;
  return at_end(args, why);
}

static bool parse_limit(const char *args, pool *p, command *out, text *why) {
  static const char *const names[] = {"length",          "sql_length",      "column",
                                      "expr_depth",      "compound_select", "vdbe_op",
                                      "function_arg",    "attached",        "like_pattern_length",
                                      "variable_number", "trigger_depth",   NULL};
  out->name = next_word(&args, p);
  if (!one_of(out->name, names)) return refuse(why, "unknown limit", out->name);
  if (!parse_integer(next_word(&args, p), &out->low) || out->low < 0 || out->low > INT32_MAX)
    return refuse(why, "limit needs a number", NULL);
  return at_end(args, why);
}

static bool parse_interrupt(const char *args, pool *p, command *out, text *why) {
  const char *after = next_word(&args, p);
  const char *number = next_word(&args, p);
  const char *ticks = next_word(&args, p);
  if (!after || strcmp(after, "after") != 0 || !parse_integer(number, &out->low) || out->low < 0 ||
      !ticks || strcmp(ticks, "ticks") != 0)
    return refuse(why, "must be: interrupt after N ticks", NULL);
  return at_end(args, why);
}

static bool is_blob_literal(const char *s) {
  const size_t n = strlen(s);
  if (n < 3 || n % 2 == 0 || s[0] != 'X' || s[1] != '\'' || s[n - 1] != '\'') return false;
  for (size_t i = 2; i + 1 < n; i++)
    if (hex_digit(s[i]) < 0) return false;
  return true;
}

static bool check_value(const command *c) {
  int64_t integer;
  char *end;
  text t = {0};
  bool ok = false;
  switch (c->type) {
  case 'N': return *c->value == '\0';
  case 'I': return parse_integer(c->value, &integer);
  case 'R': return *c->value && (strtod(c->value, &end), *end == '\0');
  case 'B': return is_blob_literal(c->value);
  default:
    ok = *c->value && text_unescape(c->value, strlen(c->value), &t);
    text_free(&t);
    return ok;
  }
}

static bool parse_param(const char *args, pool *p, command *out, text *why) {
  out->name = next_word(&args, p);
  const char *type = next_word(&args, p);
  if (!out->name || !strchr("?:@$", out->name[0]) || !out->name[1] || !type)
    return refuse(why, "must be: param ?1|:name I|R|T|B|N value", NULL);
  if (strlen(type) != 1 || !strchr("IRTBN", *type)) return refuse(why, "unknown type letter", type);
  out->type = *type;
  out->value = pool_str(p, args);
  return check_value(out) || refuse(why, "malformed value", out->value);
}

static bool parse_loop(const char *args, pool *p, command *out, text *why) {
  out->name = next_word(&args, p);
  const bool ok = is_name(out->name) && parse_integer(next_word(&args, p), &out->low) &&
                  parse_integer(next_word(&args, p), &out->high);
  return ok ? at_end(args, why) : refuse(why, "must be: loop name from to", NULL);
}

static bool parse_foreach(const char *args, pool *p, command *out, text *why) {
  out->name = next_word(&args, p);
  if (!is_name(out->name) || !*args) return refuse(why, "must be: foreach name word...", NULL);
  out->words = pool_alloc(p, strlen(args) * sizeof *out->words);
  while (*args) out->words[out->n_words++] = next_word(&args, p);
  return true;
}

static bool parse_backup(const char *args, pool *p, command *out, text *why) {
  out->name = next_word(&args, p);
  out->value = next_word(&args, p);
  if (!out->name || !out->value) return refuse(why, "must be: backup from to", NULL);
  return at_end(args, why);
}

static bool parse_include(const char *args, pool *p, command *out, text *why) {
  if (!*args) return refuse(why, "include needs a file", NULL);
  out->name = pool_str(p, args);
  return true;
}

/* ---- Conditions ----------------------------------------------------------------------------- */

/* "3.41" or "3.40.1" as 3041000, 3040001; 0 when it is neither. */
static int parse_version(const char *s) {
  int parts[3] = {0, 0, 0};
  for (int i = 0; i < 3; i++) {
    const size_t n = strspn(s, "0123456789");
    if (n == 0 || n > 3) return 0;
    parts[i] = atoi(s);
    s += n;
    if (*s == '\0') return parts[0] * 1000000 + parts[1] * 1000 + parts[2];
    if (*s++ != '.') return 0;
  }
  return 0;
}

static bool parse_condition(const char *args, pool *p, command *out, text *why) {
  static const struct {
    const char *word;
    condition_kind kind;
  } words[] = {{"sqlite", IF_SQLITE},       {"mysql", IF_OTHER_DB},      {"mssql", IF_OTHER_DB},
               {"oracle", IF_OTHER_DB},     {"postgresql", IF_OTHER_DB}, {"utf16", IF_UTF16},
               {"bigendian", IF_BIGENDIAN}, {"asan", IF_ASAN},           {"valgrind", IF_VALGRIND},
               {"static", IF_STATIC},       {"noext", IF_NOEXT},         {"oom", IF_OOM},
               {"small", IF_SMALL}};
  static const char *const operators[] = {"<", "<=", "=", ">=", ">", "!=", NULL};
  const char *word = next_word(&args, p);
  if (!word) return refuse(why, "no condition", NULL);
  if (!at_end(args, why)) return false;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(word, words[i].word) != 0) continue;
    out->when.kind = words[i].kind;
    return true;
  }
  if (strncmp(word, "option:", 7) == 0 && word[7]) {
    out->when.kind = IF_FEATURE;
    out->when.feature = word + 7;
    return true;
  }
  const size_t n = strncmp(word, "sqlite", 6) == 0 ? strspn(word + 6, "<>=!") : 0;
  if (n == 0 || n > 2) return refuse(why, "unknown condition", word);
  memcpy(out->when.op, word + 6, n);
  out->when.kind = IF_VERSION;
  out->when.version = parse_version(word + 6 + n);
  const bool ok = out->when.version && one_of(out->when.op, operators);
  return ok || refuse(why, "unknown condition", word);
}

/* ---- Heads ---------------------------------------------------------------------------------- */

static const struct keyword {
  const char *word;
  command_kind kind;
  bool (*parse)(const char *args, pool *, command *, text *why);
} keywords[] = {
    {"statement", CMD_STATEMENT, parse_statement},
    {"query", CMD_QUERY, parse_query},
    {"halt", CMD_HALT, parse_nothing},
    {"control", CMD_CONTROL, parse_control},
    {"connection", CMD_CONNECTION, parse_connection},
    {"reopen", CMD_REOPEN, parse_nothing},
    {"db", CMD_DB, parse_db},
    {"config", CMD_CONFIG, parse_config},
    {"limit", CMD_LIMIT, parse_limit},
    {"interrupt", CMD_INTERRUPT, parse_interrupt},
    {"param", CMD_PARAM, parse_param},
    {"loop", CMD_LOOP, parse_loop},
    {"foreach", CMD_FOREACH, parse_foreach},
    {"endloop", CMD_ENDLOOP, parse_nothing},
    {"include", CMD_INCLUDE, parse_include},
    {"skipif", CMD_SKIPIF, parse_condition},
    {"onlyif", CMD_ONLYIF, parse_condition},
    {"load", CMD_LOAD, parse_nothing},
    {"backup", CMD_BACKUP, parse_backup},
};

static const struct keyword *find_keyword(const char *line) {
  const size_t n = strcspn(line, " \t");
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
    if (strlen(keywords[i].word) == n && memcmp(keywords[i].word, line, n) == 0)
      return keywords + i;
  return NULL;
}

bool command_parse(const char *line, pool *p, command *out, text *why) {
  const struct keyword *k = find_keyword(line);
  *out = (command){0};
  if (!k) return refuse(why, "unknown keyword", line);
  out->kind = k->kind;
  return k->parse(skip_blanks(line + strlen(k->word)), p, out, why);
}

bool is_record(const command *c) {
  return c->kind == CMD_STATEMENT || c->kind == CMD_QUERY;
}

bool is_prefix(const command *c) {
  return c->kind == CMD_SKIPIF || c->kind == CMD_ONLYIF || c->kind == CMD_PARAM ||
         c->kind == CMD_INTERRUPT;
}

/* ---- Files ---------------------------------------------------------------------------------- */

static bool fail_at(const script *s, size_t line, text *why, const char *reason) {
  text place = {0};
  text_printf(&place, "%s:%zu: %s", s->path, line + 1, reason);
  text_clear(why);
  text_append(why, place.data, place.len);
  text_free(&place);
  return false;
}

static bool split_lines(script *s, text *why) {
  char *at = s->source.data;
  char *const end = at + s->source.len;
  size_t capacity = 0;
  while (at < end) {
    s->lines = slt_grow(s->lines, &capacity, s->n_lines + 1, sizeof *s->lines);
    s->lines[s->n_lines++] = at;
    char *newline = memchr(at, '\n', (size_t)(end - at));
    if (!newline) newline = end;
    if (memchr(at, '\0', (size_t)(newline - at)))
      return fail_at(s, s->n_lines - 1, why, "NUL byte");
    *newline = '\0';
    at = newline + 1;
  }
  return true;
}

static bool is_blank(const char *line) {
  return *skip_blanks(line) == '\0';
}

/* Whether a line inside a record reads as the head of the next one. */
static bool looks_like_head(const char *line, pool *p) {
  command c;
  text why = {0};
  const bool record = strncmp(line, "statement ", 10) == 0 || strncmp(line, "query ", 6) == 0;
  const bool head = record && command_parse(line, p, &c, &why);
  text_free(&why);
  return head;
}

/* The lines of a record after its head at n->line. */
static bool parse_body(script *s, node *n, text *why) {
  size_t at = n->line + 1;
  text sql = {0};
  bool ok = true;
  for (; ok && at < s->n_lines && !is_blank(s->lines[at]); at++) {
    if (strcmp(s->lines[at], "----") == 0) break;
    if (s->lines[at][0] == '#' || looks_like_head(s->lines[at], &s->strings))
      ok = fail_at(s, at, why, "inside a record: an empty line is missing before this one");
    if (sql.len) text_append_str(&sql, "\n");
    text_append_str(&sql, s->lines[at]);
  }
  n->block = at;
  if (ok && sql.len == 0) ok = fail_at(s, n->line, why, "a record without SQL");
  n->sql = pool_str(&s->strings, text_str(&sql));
  text_free(&sql);
  if (ok && at < s->n_lines && strcmp(s->lines[at], "----") == 0) {
    n->has_block = true;
    n->expected = s->lines + at + 1;
    for (at++; ok && at < s->n_lines && s->lines[at][0]; at++, n->n_expected++)
      if (looks_like_head(s->lines[at], &s->strings))
        ok = fail_at(s, at, why, "inside a record: an empty line is missing before this one");
  }
  n->end = at;
  return ok;
}

static bool check_block(const script *s, const node *n, text *why) {
  const command *c = &n->cmd;
  if (!n->has_block || c->expect == EXPECT_ROWS) return true;
  if (c->expect != EXPECT_ERROR) return fail_at(s, n->block, why, "a statement has no results");
  if (c->pattern) return fail_at(s, n->block, why, "an error has one text: here or in its head");
  return true;
}

static node *add_node(script *s, size_t line) {
  s->nodes = slt_grow(s->nodes, &s->nodes_capacity, s->n_nodes + 1, sizeof *s->nodes);
  node *n = &s->nodes[s->n_nodes++];
  n->line = line;
  n->head = s->lines[line];
  return n;
}

/* One head, and the body of a record. *next: the line to go on with. */
static bool parse_node(script *s, size_t line, bool in_loop, size_t *next, text *why) {
  node *n = add_node(s, line);
  text reason = {0};
  n->in_loop = in_loop;
  n->late = in_loop && strstr(n->head, "${") != NULL;
  bool ok = true;
  if (n->late && find_keyword(n->head)) n->cmd.kind = find_keyword(n->head)->kind;
  else ok = command_parse(n->head, &s->strings, &n->cmd, &reason);
  if (!ok) fail_at(s, line, why, text_str(&reason));
  text_free(&reason);
  *next = line + 1;
  if (!ok || !is_record(&n->cmd)) return ok;
  s->n_records++;
  if (!parse_body(s, n, why)) return false;
  *next = n->end;
  return n->late || check_block(s, n, why);
}

static script *load_file(const char *path, int depth, text *why);

static bool load_child(script *s, node *n, int depth, text *why) {
  text path = {0};
  const char *slash = strrchr(s->path, '/');
  if (n->late) return fail_at(s, n->line, why, "include cannot depend on a loop");
  if (depth == MAX_INCLUDES) return fail_at(s, n->line, why, "includes too deep");
  if (slash && n->cmd.name[0] != '/') text_append(&path, s->path, (size_t)(slash - s->path) + 1);
  text_append_str(&path, n->cmd.name);
  n->child = load_file(path.data, depth + 1, why);
  text_free(&path);
  if (n->child) s->n_records += n->child->n_records;
  return n->child != NULL;
}

/* What a node demands of its neighbours: loops nest, prefixes precede what they apply to. */
static bool check_order(script *s, text *why) {
  size_t open[MAX_LOOPS];
  size_t depth = 0;
  bool for_record = false, for_any = false;
  for (size_t i = 0; i < s->n_nodes; i++) {
    node *n = &s->nodes[i];
    const command_kind kind = n->cmd.kind;
    if (for_record && !is_prefix(&n->cmd) && !is_record(&n->cmd))
      return fail_at(s, n->line, why, "param and interrupt must precede a record");
    if (for_any && kind == CMD_ENDLOOP) return fail_at(s, n->line, why, "endloop is no record");
    for_record = kind == CMD_PARAM || kind == CMD_INTERRUPT || (for_record && is_prefix(&n->cmd));
    for_any = is_prefix(&n->cmd);
    if (kind == CMD_LOOP || kind == CMD_FOREACH) {
      if (depth == MAX_LOOPS) return fail_at(s, n->line, why, "loops too deep");
      open[depth++] = i;
    } else if (kind == CMD_ENDLOOP) {
      if (depth == 0) return fail_at(s, n->line, why, "endloop without loop");
      n->match = open[--depth];
      s->nodes[n->match].match = i;
    }
  }
  if (depth) return fail_at(s, s->nodes[open[depth - 1]].line, why, "loop without endloop");
  if (for_any) return fail_at(s, s->nodes[s->n_nodes - 1].line, why, "nothing follows");
  return true;
}

static bool parse_lines(script *s, int depth, text *why) {
  size_t loops = 0;
  for (size_t line = 0; line < s->n_lines;) {
    if (is_blank(s->lines[line]) || s->lines[line][0] == '#') {
      line++;
      continue;
    }
    if (!parse_node(s, line, loops > 0, &line, why)) return false;
    node *n = &s->nodes[s->n_nodes - 1];
    if (n->cmd.kind == CMD_LOOP || n->cmd.kind == CMD_FOREACH) loops++;
    if (n->cmd.kind == CMD_ENDLOOP && loops) loops--;
    if (n->cmd.kind == CMD_INCLUDE && !load_child(s, n, depth, why)) return false;
  }
  return check_order(s, why);
}

static script *load_file(const char *path, int depth, text *why) {
  script *s = slt_alloc(sizeof *s);
  s->path = pool_str(&s->strings, path);
  bool ok = read_file(path, &s->source);
  if (!ok) {
    text_clear(why);
    text_printf(why, "%s: %s", path, strerror(errno));
  }
  ok = ok && split_lines(s, why) && parse_lines(s, depth, why);
  if (ok && s->n_records == 0) ok = fail_at(s, 0, why, "a file without records");
  if (ok) return s;
  script_free(s);
  return NULL;
}

script *script_load(const char *path, text *why) {
  return load_file(path, 0, why);
}

void script_free(script *s) {
  if (!s) return;
  for (size_t i = 0; i < s->n_nodes; i++) script_free(s->nodes[i].child);
  free(s->nodes);
  free(s->lines);
  text_free(&s->source);
  pool_clear(&s->strings);
  free(s);
}
