/* own.c - names that one worker alone changes, one autocommit statement at a time (K3).
**
** The owner writes the new state into the name's history before it asks for the change, and says
** afterwards that it holds; a change that was refused is taken back by a further entry. So an
** answer between `done` before the question and `begun` after it must be among the entries:
**
**     begun     4        5              5      6 (5 was refused)
**     done      4        4              5      6
**     owner      | DELETE .............. |
**     reader           | question ... |              may see entries 4 and 5
**
** Not so where connections share a cache: there a transaction may begin with what another one has
** been looking at for a while, so such a worker does not ask about the names of others.
*/
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void own_name(int owner, int i, char out[24]) {
  snprintf(out, 24, "o%d_%d", owner, i);
}

static atomic_int *entry(history *h, unsigned long i) {
  return &h->state[i % HISTORY];
}

static int state_now(history *h) {
  return atomic_load(entry(h, atomic_load(&h->done)));
}

static void will_be(history *h, int state) {
  const unsigned long next = atomic_load(&h->begun) + 1;
  atomic_store(entry(h, next), state);
  atomic_store(&h->begun, next);
}

static void is_now(history *h) {
  atomic_store(&h->done, atomic_load(&h->begun));
}

/* ---- The owner --------------------------------------------------------------------------- */

static int ask_state(worker *w, const char *name, int *state) {
  ask(w, "SELECT digest FROM bpe_tokenizers WHERE name = ?1 AND schema = 'main'", "t", name);
  *state = ABSENT;
  if (w->code != SQLITE_ROW) return w->code;
  for (int v = 0; v < VARIANTS; v++) {
    if (strcmp(variants[v].digest, w->column[0].data) == 0) *state = v;
  }
  if (*state == ABSENT) wrong(w, "%s has an unknown content: %s", name, w->column[0].data);
  return w->code;
}

/* What the owner's names mean is certain now. */
static bool check_one(worker *w, int i) {
  char name[24];
  const int state = state_now(&w->s->own[w->index][i]);
  own_name(w->index, i, name);
  const int t = (int)below(w, TEXTS);
  ask(w, "SELECT bpe_encode(?1, ?2)", "nt", &texts[t], name);
  if (state == ABSENT) {
    if (is_busy(w)) return false;
    if (w->code == SQLITE_ERROR && strstr(w->message, "no such tokenizer")) {
      right(w);
      return true;
    }
    return wrong(w, "%s is absent: %d %s", name, w->code, w->message);
  }
  if (!went_well(w, name)) return false;
  if (!column_is(w, 0, &variants[state].answer[K_encode][t])) {
    return wrong(w, "%s is not variant %d: %.100s", name, state, w->column[0].data);
  }
  right(w);
  return true;
}

bool own_check(worker *w) {
  bool ok = true;
  for (int i = 0; i < OWN; i++) {
    bool held = false;
    for (int tries = 0; tries == 0 || (is_busy(w) && tries < 10000); tries++) {
      if (tries > 0) sqlite3_sleep(1);
      w->code = SQLITE_OK;
      held = check_one(w, i);
    }
    ok = held && ok;
  }
  return ok;
}

static bool end_change(worker *w, history *a, int a_before, history *b) {
  const bool ok = went_well(w, "a change of an own name");
  if (!ok) {
    will_be(a, a_before);
    if (b) will_be(b, ABSENT);
  }
  is_now(a);
  if (b) is_now(b);
  return ok;
}

static void store(worker *w, int i, bool train) {
  char name[24];
  const int v = (int)below(w, VARIANTS);
  history *h = &w->s->own[w->index][i];
  own_name(w->index, i, name);
  w->kind = train ? K_own_train : K_own_store;
  will_be(h, w->s->sabotage == 5 ? (v + 1) % VARIANTS : v);
  if (train) {
    char *sql = sqlite3_mprintf("INSERT INTO bpe_tokenizers(name, source) SELECT %Q, (%s)", name,
                                variants[v].recipe);
    w->code = sqlite3_exec(w->db, sql, NULL, NULL, NULL);
    snprintf(w->message, sizeof w->message, "%s", sqlite3_errmsg(w->db));
    sqlite3_free(sql);
  } else {
    ask(w, "INSERT INTO bpe_tokenizers(name, source) VALUES(?1, ?2)", "tb", name,
        &variants[v].model);
  }
  end_change(w, h, ABSENT, NULL);
}

static void change(worker *w, int i, int state) {
  char from[24], to[24];
  const int j = (i + 1) % OWN;
  history *h = &w->s->own[w->index][i], *other = &w->s->own[w->index][j];
  own_name(w->index, i, from);
  own_name(w->index, j, to);
  if (below(w, 2) == 0 && state_now(other) == ABSENT) {
    w->kind = K_own_rename;
    will_be(h, ABSENT);
    will_be(other, state);
    ask(w, "UPDATE bpe_tokenizers SET name = ?2 WHERE name = ?1", "tt", from, to);
    end_change(w, h, state, other);
  } else {
    w->kind = K_own_delete;
    will_be(h, ABSENT);
    ask(w, "DELETE FROM bpe_tokenizers WHERE name = ?1", "t", from);
    end_change(w, h, state, NULL);
  }
}

void change_own(worker *w) {
  const int hot = atomic_load(&w->s->hot);
  const bool in_focus = hot / OWN == w->index && below(w, 4) > 0;
  const int i = in_focus ? hot % OWN : (int)below(w, OWN);
  for (uint32_t n = in_focus ? 1 + below(w, 8) : 1; n > 0; n--) {
    const int state = state_now(&w->s->own[w->index][i]);
    if (state == ABSENT) store(w, i, below(w, 6) == 0);
    else change(w, i, state);
    if (is_busy(w)) count_busy(w, w->kind);
    else count_done(w, w->kind);
    check_one(w, i);
  }
}

/* An earlier life of this worker may have been killed within a change. */
bool own_recover(worker *w) {
  for (int i = 0; i < OWN; i++) {
    char name[24];
    int state, tries = 0;
    history *h = &w->s->own[w->index][i];
    const unsigned long begun = atomic_load(&h->begun);
    own_name(w->index, i, name);
    while (ask_state(w, name, &state) != SQLITE_ROW && is_busy(w) && ++tries < 10000)
      sqlite3_sleep(1);
    if (!went_well(w, name)) return wrong(w, "%s cannot be read", name);
    bool known = false;
    for (unsigned long at = atomic_load(&h->done); at <= begun; at++) {
      known = known || atomic_load(entry(h, at)) == state;
    }
    if (!known) return wrong(w, "%s came back with a state it never had: %d", name, state);
    will_be(h, state);
    is_now(h);
  }
  return true;
}

/* ---- The others -------------------------------------------------------------------------- */

/* Whether one of the entries explains the answer to text t, or (t < 0) the digest. */
static bool explained(worker *w, history *h, unsigned long first, unsigned long last, int t) {
  const bool absent = t < 0 ? w->code == SQLITE_DONE
                            : w->code == SQLITE_ERROR && strstr(w->message, "no such tokenizer");
  if (last - first >= HISTORY) return true;
  for (unsigned long at = first; at <= last; at++) {
    const int v = atomic_load(entry(h, at));
    if (v == ABSENT ? absent
                    : w->code == SQLITE_ROW &&
                          (t < 0 ? strcmp(w->column[0].data, variants[v].digest) == 0
                                 : column_is(w, 0, &variants[v].answer[K_encode][t]))) {
      return true;
    }
  }
  return wrong(w, "states %lu to %lu do not explain: %d %.100s", first, last, w->code,
               w->code == SQLITE_ROW ? w->column[0].data : w->message);
}

/* Outside of a transaction: a question, or the catalogue. */
static void read_alone(worker *w, history *h, const char *name) {
  const int t = below(w, 3) == 0 ? -1 : (int)below(w, TEXTS);
  const unsigned long first = atomic_load(&h->done);
  if (t >= 0) ask(w, "SELECT bpe_encode(?1, ?2)", "nt", &texts[t], name);
  else ask(w, "SELECT digest FROM bpe_tokenizers WHERE name = ?1", "t", name);
  if (!is_busy(w) && explained(w, h, first, atomic_load(&h->begun), t)) right(w);
}

/* In a transaction: what the catalogue shows is what answers, then and later. Busy is possible: the
** question looks into the attached file as well, which the transaction has not read before. */
static void read_within(worker *w, history *h, const char *name) {
  int state;
  ask(w, "BEGIN", "");
  const unsigned long first = atomic_load(&h->done);
  ask_state(w, name, &state);
  bool ok = !is_busy(w) && explained(w, h, first, atomic_load(&h->begun), -1);
  for (int i = 0; ok && i < 2; i++) {
    const int t = (int)below(w, TEXTS);
    ask(w, "SELECT bpe_encode(?1, ?2)", "nt", &texts[t], name);
    if (is_busy(w)) break;
    if (state == ABSENT) {
      ok = w->code == SQLITE_ERROR && strstr(w->message, "no such tokenizer");
    } else {
      ok = w->code == SQLITE_ROW && column_is(w, 0, &variants[state].answer[K_encode][t]);
    }
    if (ok) right(w);
    else wrong(w, "%s is not %d in its transaction: %d %s", name, state, w->code, w->message);
    if (i == 0) sqlite3_sleep((int)below(w, 3));
  }
  end_reading(w); /* and leaves the code */
}

void read_other(worker *w) {
  if (shares_cache(w)) return;
  const int n = w->s->n_workers * OWN;
  int which = below(w, 2) ? (int)below(w, (uint32_t)n) : atomic_load(&w->s->hot);
  if (below(w, 100) == 0) atomic_store(&w->s->hot, which = (int)below(w, (uint32_t)n));
  const int owner = which / OWN, i = which % OWN;
  char name[24];
  own_name(owner, i, name);
  w->kind = K_other;
  if (below(w, 2) == 0) read_alone(w, &w->s->own[owner][i], name);
  else read_within(w, &w->s->own[owner][i], name);
  if (is_busy(w)) count_busy(w, w->kind);
  else count_done(w, w->kind);
}
