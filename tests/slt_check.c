/* slt_check.c - what came of a record against what the file says, and --rewrite.
**
** Rows are compared line by line: cells joined by '|', one row a line; or one value a line in
** value-wise mode and under valuesort. Sorted results are compared sorted, byte by byte. Two
** spellings of an expected line are the same: a blank at its very end is \x20 (which is what
** results print, because editors drop it), and in one-column rows \x7c is '|'.
**
** --rewrite replaces what a run can know better than the file: result lines, the N of
** `statement count`, the text of an error that came. It never turns a failure into a pass: an
** error that did not come, a query that failed, a wrong type stay failures, and so does anything
** in a loop or in an included file.
*/
#if !defined(_POSIX_C_SOURCE)
#define _POSIX_C_SOURCE 200809L /* regex.h */
#endif

#include "slt.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct check { /* one record under judgement */
  session *s;
  const script *sc;
  const node *n;
  const command *c;
  const char *sql;
  const char **expected;
  const outcome *o;
} check;

/* ---- Reports -------------------------------------------------------------------------------- */

enum { MAX_SHOWN = 20, MAX_SQL = 2000, MAX_LINE = 400 };

static void print_indented(const char *label, const char *s) {
  const size_t len = strlen(s);
  printf("  %s", label);
  for (size_t i = 0; i < len && i < MAX_SQL; i++) {
    putchar(s[i]);
    if (s[i] == '\n') printf("  %*s", (int)strlen(label), "");
  }
  puts(len > MAX_SQL ? " ..." : "");
}

static void fail_record(const check *k, const char *what, const char *detail) {
  report(k->s, k->sc, k->n, "%s%s", what, detail);
  print_indented("SQL: ", k->sql);
}

static void print_lines(char mark, const char **lines, size_t from, size_t to) {
  for (size_t i = from; i < to && i < from + MAX_SHOWN; i++)
    printf("  %c%.*s%s\n", mark, MAX_LINE, lines[i], strlen(lines[i]) > MAX_LINE ? "..." : "");
  if (to > from + MAX_SHOWN) printf("  %c... %zu more\n", mark, to - from - MAX_SHOWN);
}

/* The lines that differ, between the common head and the common tail. */
static void print_difference(const char **a, size_t n_a, const char **e, size_t n_e) {
  size_t head = 0, tail = 0;
  while (head < n_a && head < n_e && strcmp(a[head], e[head]) == 0) head++;
  while (tail < n_a - head && tail < n_e - head &&
         strcmp(a[n_a - 1 - tail], e[n_e - 1 - tail]) == 0)
    tail++;
  printf("  --- expected (%zu lines)\n  +++ actual (%zu lines)\n", n_e, n_a);
  if (head) printf("  @@ line %zu\n", head + 1);
  print_lines('-', e, head, n_e - tail);
  print_lines('+', a, head, n_a - tail);
}

/* ---- Rewriting ------------------------------------------------------------------------------ */

static bool may_rewrite(const check *k) {
  return k->s->set->rewrite && !k->n->in_loop && strcmp(k->sc->path, k->s->path) == 0;
}

static void add_edit(const check *k, size_t from, size_t to, text *replacement) {
  session *s = k->s;
  s->edits = slt_grow(s->edits, &s->edits_capacity, s->n_edits + 1, sizeof *s->edits);
  s->edits[s->n_edits++] = (edit){from, to, *replacement};
  s->rewritten++;
  s->passed++;
}

static void rewrite_block(const check *k, const char **lines, size_t n) {
  text t = {0};
  text_append_str(&t, "----\n");
  for (size_t i = 0; i < n; i++) text_printf(&t, "%s\n", lines[i]);
  add_edit(k, k->n->block, k->n->end, &t);
}

/* The head of an error or count record with a new end. */
static void rewrite_head(const check *k, const char *end) {
  const command *c = k->c;
  text t = {0};
  text_append_str(&t, c->kind == CMD_QUERY ? "query" : "statement");
  if (c->expect == EXPECT_COUNT) text_printf(&t, " count %s", end);
  else text_append_str(&t, " error");
  if (c->on) text_printf(&t, " @%s", c->on);
  if (c->code) text_printf(&t, " code %d", c->code);
  if (c->extcode) text_printf(&t, " extcode %d", c->extcode);
  if (c->expect == EXPECT_ERROR) text_printf(&t, " %s", end);
  text_append_str(&t, "\n");
  add_edit(k, k->n->line, k->n->line + 1, &t);
}

static int by_place(const void *a, const void *b) {
  const edit *x = a, *y = b;
  return x->from < y->from ? -1 : x->from > y->from;
}

bool edits_write(session *s, const script *sc) {
  text out = {0};
  size_t line = 0;
  if (s->n_edits == 0) return true;
  qsort(s->edits, s->n_edits, sizeof *s->edits, by_place);
  for (size_t i = 0; i < s->n_edits; i++) {
    for (; line < s->edits[i].from; line++) text_printf(&out, "%s\n", sc->lines[line]);
    text_append(&out, s->edits[i].replacement.data, s->edits[i].replacement.len);
    line = s->edits[i].to;
  }
  for (; line < sc->n_lines; line++) text_printf(&out, "%s\n", sc->lines[line]);
  const bool ok = replace_file(sc->path, &out);
  if (!ok) report(s, NULL, NULL, "cannot rewrite");
  text_free(&out);
  return ok;
}

/* ---- Rows ----------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A line as results print it: see the remark at the top. */
static const char *normal_line(const check *k, const char *line, bool one_column) {
  const size_t len = strlen(line);
  text t = {0};
  for (size_t i = 0; i < len; i++) {
    if (one_column && strncmp(line + i, "\\x7c", 4) == 0) {
      text_append_str(&t, "|");
      i += 3;
    } else if (line[i] == '\\' && i + 1 < len) {
      text_append(&t, line + i++, 2);
    } else if (line[i] == ' ' && i + 1 == len) {
      text_append_str(&t, "\\x20");
    } else {
      text_append(&t, line + i, 1);
    }
  }
  const char *copy = pool_copy(&k->s->record_strings, text_str(&t), t.len);
  text_free(&t);
  return copy;
}

static void join_row(const check *k, size_t row, text *out) {
  const size_t n = (size_t)k->o->n_columns;
  text_clear(out);
  for (size_t i = 0; i < n; i++) {
    if (i) text_append_str(out, "|");
    text_append_str(out, k->o->values.data + k->o->cells[row * n + i]);
  }
}

/* The result as lines, sorted as the record wants. */
static const char **make_lines(const check *k, sort_mode sort, size_t *n) {
  const outcome *o = k->o;
  pool *p = &k->s->record_strings;
  const bool values = sort == SORT_VALUES || (k->s->valuewise && sort != SORT_ROWS);
  const size_t width = o->n_columns && !values ? (size_t)o->n_columns : 1;
  const char **lines = pool_alloc(p, (o->n_cells + 1) * sizeof *lines);
  text t = {0};
  *n = o->n_cells / width;
  for (size_t i = 0; i < *n; i++) {
    if (values) text_clear(&t), text_append_str(&t, o->values.data + o->cells[i]);
    else join_row(k, i, &t);
    lines[i] = normal_line(k, text_str(&t), false);
  }
  text_free(&t);
  if (sort != SORT_NONE) qsort(lines, *n, sizeof *lines, by_bytes);
  return lines;
}

static bool check_label(const check *k, const char **lines, size_t n) {
  session *s = k->s;
  text rows = {0};
  if (!k->c->label) return true;
  for (size_t i = 0; i < n; i++) text_printf(&rows, "%s\n", lines[i]);
  for (size_t i = 0; i < s->n_labels; i++) {
    if (strcmp(s->labels[i].name, k->c->label) != 0) continue;
    const bool same = strcmp(text_str(&s->labels[i].rows), text_str(&rows)) == 0;
    if (!same) fail_record(k, "differs from the result labelled ", k->c->label);
    text_free(&rows);
    return same;
  }
  s->labels = slt_grow(s->labels, &s->labels_capacity, s->n_labels + 1, sizeof *s->labels);
  s->labels[s->n_labels].name = pool_str(&s->file_strings, k->c->label);
  s->labels[s->n_labels++].rows = rows;
  return true;
}

static void check_rows(const check *k) {
  const sort_mode sort = k->c->sort == SORT_DEFAULT ? k->s->sort : k->c->sort;
  const size_t n_expected = k->n->n_expected;
  size_t n = 0;
  const char **lines = make_lines(k, sort, &n);
  const bool one_column = k->o->n_columns == 1 || k->s->valuewise || sort == SORT_VALUES;
  const char **expected = pool_alloc(&k->s->record_strings, (n_expected + 1) * sizeof *expected);
  for (size_t i = 0; i < n_expected; i++) expected[i] = normal_line(k, k->expected[i], one_column);
  if (sort != SORT_NONE) qsort(expected, n_expected, sizeof *expected, by_bytes);
  bool same = k->n->has_block && n == n_expected;
  for (size_t i = 0; same && i < n; i++) same = strcmp(lines[i], expected[i]) == 0;
  if (!check_label(k, lines, n)) return;
  if (same) {
    k->s->passed++;
  } else if (may_rewrite(k)) {
    rewrite_block(k, lines, n);
  } else {
    fail_record(k, k->n->has_block ? "result differs" : "a query without a ---- block", "");
    print_difference(lines, n, expected, n_expected);
  }
}

/* ---- Errors --------------------------------------------------------------------------------- */

/* 1: matches, 0: does not, -1: no regex. */
static int match_regex(const char *pattern, const char *s) {
  regex_t r;
  if (regcomp(&r, pattern, REG_EXTENDED | REG_NOSUB) != 0) return -1;
  const bool match = regexec(&r, s, 0, NULL, 0) == 0;
  regfree(&r);
  return match;
}

static bool equals_block(const check *k) {
  text t = {0};
  for (size_t i = 0; i < k->n->n_expected; i++)
    text_printf(&t, "%s%s", i ? "\n" : "", k->expected[i]);
  const bool same = strcmp(text_str(&t), text_str(&k->o->error)) == 0;
  text_free(&t);
  return same;
}

static void mismatch(const check *k, const char *wanted) {
  fail_record(k, "another error came", "");
  if (wanted) printf("  expected: %s\n", wanted);
  else print_lines('-', k->expected, 0, k->n->n_expected);
  printf("  actual:   %s\n", text_str(&k->o->error));
}

static bool is_one_line(const char *s) {
  return *s && !strpbrk(s, "\n\r") && *s != '/' && *s != '@';
}

static void check_message(const check *k) {
  const char *message = text_str(&k->o->error);
  const command *c = k->c;
  int match = 1;
  if (c->regex) match = match_regex(c->pattern, message);
  else if (c->pattern) match = strstr(message, c->pattern) != NULL;
  else if (k->n->has_block) match = equals_block(k);
  if (match == 1) {
    k->s->passed++;
  } else if (match < 0) {
    fail_record(k, "not a regular expression: ", c->pattern);
  } else if (may_rewrite(k) && is_one_line(message) && !c->regex) {
    if (k->n->has_block) rewrite_block(k, &message, 1);
    else rewrite_head(k, message);
  } else {
    mismatch(k, c->pattern);
  }
}

static void check_error(const check *k) {
  const outcome *o = k->o;
  char codes[64];
  snprintf(codes, sizeof codes, "code %d, extcode %d: ", o->rc, o->extrc);
  if (o->rc == SQLITE_OK) {
    fail_record(k, "no error came, but one was expected", "");
  } else if ((k->c->code && k->c->code != o->rc) || (k->c->extcode && k->c->extcode != o->extrc)) {
    fail_record(k, "an error of another code came: ", codes);
    printf("  actual:   %s\n", text_str(&o->error));
  } else {
    check_message(k);
  }
}

static void check_count(const check *k) {
  char n[32];
  if (k->o->changes == k->c->low) {
    k->s->passed++;
    return;
  }
  snprintf(n, sizeof n, "%lld", (long long)k->o->changes);
  if (may_rewrite(k)) rewrite_head(k, n);
  else fail_record(k, "rows changed: ", n);
}

void record_check(session *s, const script *sc, const node *n, const command *c, const char *sql,
                  const char **expected, outcome *o) {
  const check k = {s, sc, n, c, sql, expected, o};
  if (o->fault.len) fail_record(&k, "", text_str(&o->fault));
  else if (c->expect == EXPECT_ERROR) check_error(&k);
  else if (o->rc != SQLITE_OK) {
    fail_record(&k, "failed: ", text_str(&o->error));
  } else if (c->expect == EXPECT_ROWS) check_rows(&k);
  else if (c->expect == EXPECT_COUNT) check_count(&k);
  else s->passed++;
}
