/* write.c - transactions that change booked names and `book` with them (K2).
**
** A transaction makes some changes, each within a savepoint or not, asks after each what the name
** means now, and is committed or rolled back; then nothing but what `book` says may be true. What
** fails is tried on purpose as well: a name that is taken, several rows of which one is bad.
*/
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMIT_TRIES = 30 };

/* One change: the name's new state goes into *state. False: nothing was changed. */
typedef bool change_fn(worker *, const world *, const char *name, int *state);

/* SQL for either schema, made when it is wanted; not kept. */
static int run(worker *w, char *sql) {
  w->code = sqlite3_exec(w->db, sql, NULL, NULL, NULL);
  snprintf(w->message, sizeof w->message, "%s", sqlite3_errmsg(w->db));
  sqlite3_free(sql);
  return w->code;
}

static bool write_book(worker *w, const world *x, const char *name, int state) {
  if (state == ABSENT) {
    run(w, sqlite3_mprintf("DELETE FROM %s.book WHERE name = %Q", x->schema, name));
  } else {
    int v = state % UNSEALED;
    if (w->s->sabotage == 2) v = (v + 1) % VARIANTS;
    run(w, sqlite3_mprintf("REPLACE INTO %s.book(name, variant, sealed) VALUES(%Q, %d, %d)",
                           x->schema, name, v, state < UNSEALED));
  }
  return went_well(w, "book");
}

/* ---- Changes of a name that is free ------------------------------------------------------ */

static bool store(worker *w, const world *x, const char *name, int *state) {
  const int v = (int)below(w, VARIANTS);
  w->kind = K_store;
  ask(w, "INSERT INTO bpe_tokenizers(name, schema, source) VALUES(?1, ?2, ?3)", "ttb", name,
      x->schema, &variants[v].model);
  *state = v;
  return went_well(w, name);
}

static bool train(worker *w, const world *x, const char *name, int *state) {
  const int v = (int)below(w, VARIANTS);
  w->kind = K_train;
  run(w, sqlite3_mprintf("INSERT INTO bpe_tokenizers(name, schema, source) SELECT %Q, %Q, (%s)",
                         name, x->schema, variants[v].recipe));
  *state = v;
  return went_well(w, name);
}

/* From another stored one, which the same statement reads. */
static bool copy(worker *w, const world *x, const char *name, int *state) {
  char from[16];
  w->kind = K_copy;
  pick_name(w, &main_world, from);
  if (!booked_state(w, &main_world, from, state) || *state < 0 || *state >= UNSEALED) return false;
  ask(w, "INSERT INTO bpe_tokenizers(name, schema, source) SELECT ?1, ?2, bpe_export(?3, 'model')",
      "ttt", name, x->schema, from);
  return went_well(w, name);
}

/* ---- Changes of one that exists ---------------------------------------------------------- */

static bool delete (worker *w, const world *x, const char *name, int *state) {
  w->kind = K_delete;
  if (below(w, 2) == 0) {
    ask(w, "DELETE FROM bpe_tokenizers WHERE name = ?1 AND schema = ?2", "tt", name, x->schema);
  } else {
    run(w, sqlite3_mprintf("DELETE FROM %s.bpe_model WHERE name = %Q", x->schema, name));
  }
  *state = ABSENT;
  return went_well(w, name);
}

/* To a free name of the world, in whose row of `book` the state goes; this name is then free. */
static bool rename_to(worker *w, const world *x, const char *name, int *state) {
  char to[16];
  int taken = UNSEALED;
  w->kind = K_rename;
  for (int i = 0; i < x->n; i++) {
    pick_name(w, x, to);
    if (!booked_state(w, x, to, &taken)) return false;
    if (taken == ABSENT) break;
  }
  if (taken != ABSENT) return false;
  ask(w, "UPDATE bpe_tokenizers SET name = ?2 WHERE name = ?1 AND schema = ?3", "ttt", name, to,
      x->schema);
  if (!went_well(w, name) || !write_book(w, x, to, *state) || !ask_about(w, x, to, *state)) {
    return false;
  }
  *state = ABSENT;
  return true;
}

/* By hand, so that it is unsealed; the content stays, as the seal will find. */
static bool edit(worker *w, const world *x, const char *name, int *state) {
  w->kind = K_edit;
  run(w,
      sqlite3_mprintf("UPDATE %s.bpe_model_%s WHERE model_id ="
                      " (SELECT id FROM %s.bpe_model WHERE name = %Q)",
                      x->schema, below(w, 2) ? "merges SET rank = rank" : "vocab SET kind = kind",
                      x->schema, name));
  *state = *state % UNSEALED + UNSEALED;
  return went_well(w, name);
}

static bool seal(worker *w, const world *x, const char *name, int *state) {
  w->kind = K_seal;
  ask(w, "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = ?1 AND schema = ?2", "tt", name,
      x->schema);
  *state %= UNSEALED;
  return went_well(w, name);
}

/* ---- What must fail, and change nothing -------------------------------------------------- */

static bool refused(worker *w, const world *x, const char *name, int *state) {
  const char *const free_name = x == &main_world ? "b_free" : "s_free", *text;
  const piece *model = &variants[below(w, VARIANTS)].model;
  w->kind = K_refused;
  switch (below(w, 3)) {
  case 0:
    ask(w, "INSERT INTO bpe_tokenizers(name, schema, source) VALUES(?4, ?2, ?3), (?1, ?2, ?3)",
        "ttbt", name, x->schema, model, free_name);
    text = "tokenizer exists already";
    break;
  case 1:
    ask(w,
        "INSERT INTO bpe_tokenizers(name, schema, source) VALUES(?4, ?2, ?3), (?1, ?2, 'nonsense')",
        "ttbt", "b_other", x->schema, model, free_name);
    text = "bpe_tokenizers: line 1";
    break;
  default:
    ask(w, "UPDATE bpe_tokenizers SET name = 'gpt2' WHERE name = ?1 AND schema = ?2", "tt", name,
        x->schema);
    text = "name is a built-in";
    break;
  }
  if (is_busy(w)) return false;
  if (w->code != SQLITE_ERROR || !strstr(w->message, text)) {
    return wrong(w, "%s was not refused: %d %s", name, w->code, w->message);
  }
  right(w);
  return ask_about(w, x, free_name, ABSENT) && ask_about(w, x, name, *state);
}

/* ---- Transactions ------------------------------------------------------------------------ */

static change_fn *pick_change(worker *w, int state) {
  static change_fn *const if_free[] = {store, store, train, copy};
  static change_fn *const if_sealed[] = {delete, delete, rename_to, edit, refused};
  static change_fn *const if_unsealed[] = {seal, seal, delete};
  if (state == ABSENT) return if_free[below(w, 4)];
  return state < UNSEALED ? if_sealed[below(w, 5)] : if_unsealed[below(w, 3)];
}

static bool change_one(worker *w) {
  const world *x = pick_world(w);
  char name[16];
  int state;
  pick_name(w, x, name);
  if (!booked_state(w, x, name, &state) || !ask_about(w, x, name, state)) return false;
  w->code = SQLITE_OK;
  const bool ok = pick_change(w, state)(w, x, name, &state);
  if (ok) count_done(w, w->kind);
  else if (is_busy(w)) count_busy(w, w->kind);
  if (!ok) return !is_busy(w); /* there was nothing to do */
  return write_book(w, x, name, state) && ask_about(w, x, name, state);
}

static bool change_within_savepoint(worker *w) {
  char before[MAX_TEXT], after[MAX_TEXT];
  const bool back = below(w, 2) == 0;
  run(w, sqlite3_mprintf("SAVEPOINT p"));
  if (!went_well(w, "SAVEPOINT") || !book_text(w, &main_world, before, sizeof before)) return false;
  for (uint32_t n = 1 + below(w, 2); n > 0; n--) {
    if (!change_one(w)) return false;
  }
  w->kind = K_savepoint;
  if (back && run(w, sqlite3_mprintf("ROLLBACK TO p")) != SQLITE_OK) {
    return went_well(w, "ROLLBACK TO");
  }
  if (!book_text(w, &main_world, after, sizeof after)) return false;
  if (back && strcmp(before, after) != 0) return wrong(w, "the savepoint did not come back");
  if (back && !compare_world(w, &main_world)) return false;
  run(w, sqlite3_mprintf("RELEASE p"));
  if (!went_well(w, "RELEASE")) return false;
  count_done(w, K_savepoint);
  return true;
}

/* Ends the transaction, whatever its state. */
static void end(worker *w, bool commit) {
  for (int i = 0; commit && i < COMMIT_TRIES && !sqlite3_get_autocommit(w->db); i++) {
    w->kind = K_commit;
    ask(w, "COMMIT", "");
    if (went_well(w, "COMMIT")) {
      count_done(w, w->kind);
      return;
    }
    count_busy(w, w->kind);
    if (!is_busy(w)) break;
    sqlite3_sleep(1 + (int)below(w, 3));
  }
  w->kind = K_rollback;
  if (sqlite3_get_autocommit(w->db) || insist(w, "ROLLBACK")) count_done(w, w->kind);
}

void change_something(worker *w) {
  static const char *const begins[] = {"BEGIN IMMEDIATE", "BEGIN IMMEDIATE", "BEGIN",
                                       "BEGIN EXCLUSIVE"};
  char name[16];
  int state;
  w->kind = K_commit;
  ask(w, begins[below(w, 4)], "");
  if (!went_well(w, "BEGIN")) {
    count_busy(w, w->kind);
    return;
  }
  bool ok = true;
  for (uint32_t n = 1 + below(w, 3); ok && n > 0; n--) {
    ok = below(w, 3) == 0 ? change_within_savepoint(w) : change_one(w);
  }
  end(w, ok && below(w, 4) > 0);
  const world *x = pick_world(w);
  pick_name(w, x, name);
  ask(w, "BEGIN", "");
  if (booked_state(w, x, name, &state)) ask_about(w, x, name, state);
  w->kind = K_rollback;
  end_reading(w);
}
