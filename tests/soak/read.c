/* read.c - questions about names, each with the one answer it must get (K2, K3).
**
** A question is asked outside of a transaction, within one that has read `book` before, or in one
** statement that reads `book` itself; by a name that is a parameter or comes from a column; and
** while a statement is only half through.
*/
#include "soak.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const world main_world = {"main", "b", BOOKED}, side_world = {"aux", "s", SIDE};

const world *pick_world(worker *w) {
  return w->attached && below(w, 3) == 0 ? &side_world : &main_world;
}

void pick_name(worker *w, const world *x, char out[16]) {
  snprintf(out, 16, "%s%u", x->letter, below(w, (uint32_t)x->n));
}

static bool in_main(const world *x) {
  return x->schema[0] == 'm';
}

bool booked_state(worker *w, const world *x, const char *name, int *state) {
  ask(w,
      in_main(x) ? "SELECT variant, sealed FROM main.book WHERE name = ?1"
                 : "SELECT variant, sealed FROM aux.book WHERE name = ?1",
      "t", name);
  *state = ABSENT;
  if (!went_well(w, "book")) return false;
  if (w->code == SQLITE_ROW) {
    *state = atoi(w->column[0].data) + (w->column[1].data[0] == '0' ? UNSEALED : 0);
  }
  return true;
}

/* ---- One question ------------------------------------------------------------------------ */

/* The name as it may be written: alone or with its schema. */
static void spell(worker *w, const world *x, const char *name, char out[24]) {
  const bool full = below(w, 2) == 0;
  snprintf(out, 24, "%s%s%s", full ? x->schema : "", full ? "." : "", name);
}

/* The latest statement failed as it must: with this text. */
static bool refused(worker *w, const char *name, const char *text) {
  if (is_busy(w)) return false;
  if (w->code != SQLITE_ERROR || !strstr(w->message, text)) {
    return wrong(w, "%s: %d %s, not \"%s\"", name, w->code, w->message, text);
  }
  right(w);
  return true;
}

static bool answered(worker *w, const char *name, int column, const piece *expected) {
  if (!went_well(w, name)) return false;
  if (w->code != SQLITE_ROW || !column_is(w, column, expected)) {
    return wrong(w, "%s: %.100s, not %.100s", name,
                 w->code == SQLITE_ROW ? w->column[column].data : "no row", expected->data);
  }
  right(w);
  return true;
}

static bool judge(worker *w, const char *name, int state, const piece *expected) {
  if (state == ABSENT) return refused(w, name, "no such tokenizer");
  if (state >= UNSEALED) return refused(w, name, "tokenizer is unsealed");
  return answered(w, name, 0, expected);
}

static bool ask_question(worker *w, const char *name, int state, int q) {
  const int v = state >= 0 ? state % UNSEALED : 0, t = (int)below(w, TEXTS);
  const piece *in = question_input(q, v, t);
  ask(w, questions[q].sql, questions[q].input == IN_BLOB ? "bt" : "nt", in, name);
  return judge(w, name, state, &variants[v].answer[q][t]);
}

/* The catalogue's digest and the word sealed. */
static bool ask_catalogue(worker *w, const world *x, const char *name, int state) {
  char text[80];
  piece expected = {text, 0};
  ask(w,
      "SELECT CASE WHEN sealed THEN digest ELSE 'unsealed' END FROM bpe_tokenizers"
      " WHERE name = ?1 AND schema = ?2",
      "tt", name, x->schema);
  if (!went_well(w, name)) return false;
  snprintf(text, sizeof text, "%s",
           state >= UNSEALED ? "unsealed" : variants[state < 0 ? 0 : state].digest);
  expected.len = strlen(text);
  if (state != ABSENT) return answered(w, name, 0, &expected);
  if (w->code != SQLITE_DONE) return wrong(w, "%s is listed: %s", name, w->column[0].data);
  right(w);
  return true;
}

/* With the option digest: the right one or another. */
static bool ask_digest(worker *w, const char *name, int state) {
  char options[100];
  const int v = state >= 0 ? state % UNSEALED : 0, t = (int)below(w, TEXTS);
  const int claimed = below(w, 2) == 0 ? v : (int)below(w, VARIANTS);
  snprintf(options, sizeof options, "{\"digest\":\"%s\"}", variants[claimed].digest);
  ask(w, "SELECT bpe_encode(?1, ?2, ?3)", "ntt", &texts[t], name, options);
  if (state >= 0 && state < UNSEALED && claimed != v) {
    return refused(w, name, "option digest is not that of tokenizer");
  }
  return judge(w, name, state, &variants[v].answer[K_encode][t]);
}

bool ask_about(worker *w, const world *x, const char *name, int state) {
  static const kind hows[] = {K_encode, K_encode,   K_encode_blob, K_count,
                              K_count,  K_tokens,   K_decode,      K_decode_blob,
                              K_chunks, K_truncate, K_catalogue,   K_digest};
  static const kind long_hows[] = {K_vocab, K_merges, K_export, K_column, K_stats};
  const kind before = w->kind;
  char full[24];
  w->kind = hows[below(w, sizeof hows / sizeof *hows)];
  if (below(w, 20) == 0) w->kind = long_hows[below(w, sizeof long_hows / sizeof *long_hows)];
  spell(w, x, name, full);
  const bool ok = w->kind == K_catalogue ? ask_catalogue(w, x, name, state)
                  : w->kind == K_digest  ? ask_digest(w, full, state)
                                         : ask_question(w, full, state, (int)w->kind);
  if (ok) count_done(w, w->kind);
  else if (is_busy(w)) count_busy(w, w->kind);
  w->kind = before;
  return ok;
}

/* ---- Whole files ------------------------------------------------------------------------- */

bool book_text(worker *w, const world *x, char *out, size_t size) {
  size_t n = 0;
  sqlite3_stmt *stmt =
      ask_rows(w,
               in_main(x) ? "SELECT name, variant, sealed FROM main.book ORDER BY name"
                          : "SELECT name, variant, sealed FROM aux.book ORDER BY name",
               "");
  out[0] = 0;
  while (stmt && ask_step(w, stmt) == SQLITE_ROW && n < size) {
    const bool sealed = w->column[2].data[0] == '1';
    n += (size_t)snprintf(out + n, size - n, "%s %s ", w->column[0].data,
                          sealed ? variants[atoi(w->column[1].data)].digest : "unsealed");
  }
  if (stmt) sqlite3_reset(stmt);
  return went_well(w, "book");
}

bool compare_world(worker *w, const world *x) {
  char expected[MAX_TEXT], pattern[8];
  if (!book_text(w, x, expected, sizeof expected)) return false;
  snprintf(pattern, sizeof pattern, "%s?", x->letter);
  ask(w,
      "SELECT coalesce(group_concat(line, ''), '') FROM (SELECT name || ' ' ||"
      " CASE WHEN sealed THEN digest ELSE 'unsealed' END || ' ' AS line FROM bpe_tokenizers"
      " WHERE schema = ?1 AND name GLOB ?2 ORDER BY name)",
      "tt", x->schema, pattern);
  const piece p = {expected, strlen(expected)};
  return answered(w, x->schema, 0, &p);
}

/* ---- Ways to read ------------------------------------------------------------------------ */

/* One statement, in a transaction of its own, that reads the book as well. */
static bool read_statement(worker *w) {
  const world *x = pick_world(w);
  const int t = (int)below(w, TEXTS);
  char name[16], full[24];
  pick_name(w, x, name);
  spell(w, x, name, full);
  ask(w,
      in_main(x) ? "SELECT CASE WHEN sealed THEN bpe_encode(?1, ?2) END, variant, sealed"
                   " FROM main.book WHERE name = ?3"
                 : "SELECT CASE WHEN sealed THEN bpe_encode(?1, ?2) END, variant, sealed"
                   " FROM aux.book WHERE name = ?3",
      "ntt", &texts[t], full, name);
  if (!went_well(w, full)) return false;
  if (w->code == SQLITE_DONE || w->column[2].data[0] == '0') return true;
  return answered(w, full, 0, &variants[atoi(w->column[1].data)].answer[K_encode][t]);
}

/* All names by one statement: the name is a column. */
static bool read_names(worker *w) {
  const world *x = pick_world(w);
  const int t = (int)below(w, TEXTS);
  bool ok = true;
  sqlite3_stmt *stmt = ask_rows(
      w,
      in_main(x)
          ? "SELECT bpe_encode(?1, name), variant, name FROM main.book WHERE sealed"
          : "SELECT bpe_encode(?1, 'aux.' || name), variant, name FROM aux.book WHERE sealed",
      "n", &texts[t]);
  while (ok && stmt && ask_step(w, stmt) == SQLITE_ROW) {
    const int v = atoi(w->column[1].data);
    ok = answered(w, w->column[2].data, 0, &variants[v].answer[K_encode][t]);
  }
  if (stmt) sqlite3_reset(stmt);
  return ok && went_well(w, "names");
}

/* A statement that others may overtake between its rows. */
static bool read_walk(worker *w) {
  char name[16];
  bool ok = true;
  pick_name(w, &main_world, name);
  sqlite3_stmt *stmt =
      ask_rows(w,
               "SELECT bpe_encode(docs.body, ?1), book.variant, docs.id FROM book, docs"
               " WHERE book.name = ?1 AND sealed AND docs.id <= ?2",
               "ti", name, TEXTS);
  while (ok && stmt && ask_step(w, stmt) == SQLITE_ROW) {
    const int v = atoi(w->column[1].data), t = atoi(w->column[2].data) - 1;
    ok = answered(w, name, 0, &variants[v].answer[K_encode][t]);
    if (below(w, 3) == 0) sqlite3_sleep((int)below(w, 3));
    else sched_yield();
  }
  if (stmt) sqlite3_reset(stmt);
  return ok && went_well(w, name);
}

/* A transaction that stays open while others change what it sees the old state of. */
static bool read_snapshot(worker *w) {
  char name[16];
  int state;
  ask(w, "BEGIN", "");
  bool ok = went_well(w, "BEGIN");
  for (int i = 0; ok && i < 6; i++) {
    const world *x = pick_world(w);
    pick_name(w, x, name);
    ok = booked_state(w, x, name, &state) && ask_about(w, x, name, state);
    if (i == 2) sqlite3_sleep((int)below(w, 4));
  }
  return end_reading(w) && ok;
}

static bool read_compare(worker *w) {
  ask(w, "BEGIN", "");
  bool ok = went_well(w, "BEGIN") && compare_world(w, &main_world) &&
            (!w->attached || compare_world(w, &side_world));
  return end_reading(w) && ok;
}

/* The catalogue in a transaction of its own, also of a file that is not the main one: each row is
** whole, or unsealed because someone edited it. */
static bool read_listing(worker *w) {
  const world *x = pick_world(w);
  bool ok = true;
  sqlite3_stmt *stmt = ask_rows(w,
                                "SELECT name, sealed, coalesce(digest, ''), coalesce(stats, '')"
                                " FROM bpe_tokenizers WHERE schema = ?1",
                                "t", x->schema);
  while (ok && stmt && ask_step(w, stmt) == SQLITE_ROW) {
    bool known = w->column[1].data[0] == '0' && strstr(w->column[3].data, "its rows were changed");
    for (int v = 0; v < VARIANTS; v++) {
      known = known || strcmp(w->column[2].data, variants[v].digest) == 0;
    }
    if (known) right(w);
    else ok = wrong(w, "%s: %s %s", w->column[0].data, w->column[2].data, w->column[3].data);
    if (below(w, 4) == 0) sched_yield();
  }
  if (stmt) sqlite3_reset(stmt);
  return ok && went_well(w, "listing");
}

static bool read_builtin(worker *w) {
  const int t = (int)below(w, TEXTS);
  ask(w, "SELECT bpe_decode(bpe_encode(?1, 'gpt2'), 'gpt2')", "n", &texts[t]);
  return answered(w, "gpt2", 0, &texts[t]);
}

void read_something(worker *w) {
  static const struct way {
    kind k;
    bool (*read)(worker *);
    uint32_t weight;
  } ways[] = {{K_statement, read_statement, 25}, {K_names, read_names, 15},
              {K_walk, read_walk, 15},           {K_snapshot, read_snapshot, 30},
              {K_compare, read_compare, 8},      {K_listing, read_listing, 5},
              {K_builtin, read_builtin, 2}};
  uint32_t at = below(w, 100);
  int i = 0;
  while (at >= ways[i].weight) at -= ways[i++].weight;
  w->kind = ways[i].k;
  const bool ok = ways[i].read(w);
  if (ok) count_done(w, w->kind);
  else if (is_busy(w)) count_busy(w, w->kind);
}
