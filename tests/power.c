/* power.c - the power fails while tokenizers are stored, renamed and removed.
**
**     power [./bpe] [--seed N] [--disks N] [-v] [--sabotage N]
**
** A database on the VFS "power" has random steps run on it (stored.h) until, at a random call,
** the power fails. What was not synced is then lost, kept, mixed or spoiled by sectors, the
** database is opened again - which may meet the next cut - and must be what it was before the
** step that failed or after it: each tokenizer whole or not there at all, with its digest, and
** integrity_check says ok. With a rollback journal that SQLite deletes, the last step may be undone
** too: synchronous=FULL does not sync the folder after the deletion. With EXTRA it does, and a
** journal that is cut to nothing, and WAL, are synced: the last step must be there. Then the steps
** go on, until the next cut.
**
** Each disk draws: rollback journal (deleted or cut to nothing) or WAL; page, sector and cache
** size; how often WAL is written back; whether a write can spoil its neighbours in the sector.
** Everything comes from the seed, so a disk that failed can be run again: --seed S --disks 1.
*/
#include "stored.h"
#include "vfs_power.h"

#include <stdlib.h>

/* What to break, to see that it is noticed. */
enum { SOUND, LYING, CARELESS, PIECEMEAL };

typedef enum journal { DELETED, TRUNCATED, WRITE_AHEAD, N_JOURNALS } journal;

typedef struct machine {
  journal journal;
  int page_size, sector, cache, autocheckpoint;
  bool powersafe, extra;
} machine;

/* What the database may hold when it is opened again. */
typedef struct allowed {
  shelf now, next; /* what the last step that was done left, and what the one under way may */
  shelf before;    /* what the step before the last change left, which may be undone */
} allowed;

static int sabotage;
static long n_steps, n_calls, n_cuts, n_recoveries, n_next, n_undone;

/* ---- Machines ------------------------------------------------------------------------------- */

/* WAL is not tried where a write can spoil its neighbours: SQLite fills the last sector up before
** it syncs, but when it has lost that filling to one power failure it goes on in the middle of the
** sector, and the next failure can take what was there. */
static machine machine_draw(uint64_t *random) {
  static const int pages[] = {512, 1024, 4096}, sectors[] = {512, 512, 4096};
  static const int caches[] = {1, 10, 2000}, checkpoints[] = {1, 20, 1000};
  machine m = {.journal = (journal)random_below(random, N_JOURNALS)};
  m.page_size = pages[random_below(random, 3)];
  m.sector = sectors[random_below(random, 3)];
  m.cache = caches[random_below(random, 3)];
  m.autocheckpoint = checkpoints[random_below(random, 3)];
  m.powersafe = random_below(random, 2);
  if (m.journal == WRITE_AHEAD) m.powersafe = true;
  if (!stored_may_spill(m.journal == WRITE_AHEAD)) m.cache = caches[2];
  m.extra = m.journal == DELETED && random_below(random, 2);
  return m;
}

static const char *journal_name(journal j) {
  static const char *const names[] = {"DELETE", "TRUNCATE", "WAL"};
  return names[j];
}

static sqlite3 *open_on(loaded *t, const machine *m) {
  sqlite3 *db = stored_open(t, "x.db", "power");
  char sql[200];
  snprintf(sql, sizeof sql,
           "PRAGMA journal_mode = %s; PRAGMA synchronous = %s; PRAGMA cache_size = %d;"
           "PRAGMA wal_autocheckpoint = %d",
           journal_name(m->journal),
           sabotage == CARELESS ? "OFF"
           : m->extra           ? "EXTRA"
                                : "FULL",
           m->cache, m->autocheckpoint);
  if (db) sqlite3_exec(db, sql, NULL, NULL, NULL); /* the power may fail here too */
  return db;
}

/* ---- Cuts ----------------------------------------------------------------------------------- */

/* Steps until the power fails, at most so many. */
static void run_steps(loaded *t, sqlite3 *db, uint64_t *random, allowed *a, int most) {
  for (int i = 0; i < most && !power_is_cut(); i++) {
    a->next = a->now;
    char *sql =
        sabotage == PIECEMEAL ? shelf_step_loose(random, &a->next) : shelf_step(random, &a->next);
    const int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    if (rc == SQLITE_OK) {
      n_steps++;
      if (memcmp(&a->now, &a->next, sizeof a->now) != 0) a->before = a->now;
      a->now = a->next;
    } else {
      loaded_check(t, power_is_cut(), "%s: %d %s", sql, rc, sqlite3_errmsg(db));
    }
    sqlite3_free(sql);
  }
}

/* Whether the state is that of the shelf, which is then the state from now on. */
static bool settles(allowed *a, const char *state, const shelf *s) {
  char *wanted = shelf_state(s);
  const bool same = strcmp(state, wanted) == 0;
  sqlite3_free(wanted);
  if (same) a->now = a->next = a->before = *s;
  return same;
}

static void check_state(loaded *t, sqlite3 *db, const machine *m, allowed *a, const char *where) {
  char *state = stored_state(db, "main");
  const shelf next = a->next, before = a->before;
  bool good = settles(a, state, &a->now);
  if (!good && settles(a, state, &next)) good = ++n_next > 0;
  if (!good && m->journal == DELETED && !m->extra && settles(a, state, &before))
    good = ++n_undone > 0;
  if (!good) {
    char *now = shelf_state(&a->now), *then = shelf_state(&next);
    loaded_check(t, false, "%s:\n  holds   %s\n  and not %s\n  or      %s", where, state, now,
                 then);
    sqlite3_free(now);
    sqlite3_free(then);
  } else {
    loaded_check(t, true, "%s", where);
    stored_works(t, db, &a->now, where);
  }
  sqlite3_free(state);
}

/* Opens what is left, as often as the power fails meanwhile. */
static sqlite3 *recover(loaded *t, const machine *m, uint64_t *random, const char *where) {
  for (int tries = 0; tries < 20; tries++) {
    power_restore(random);
    if (random_below(random, 2)) power_cut_after(random_below(random, 40));
    sqlite3 *db = open_on(t, m);
    if (!db) return NULL;
    sqlite3_exec(db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
    power_lie(sabotage == LYING);
    if (!power_is_cut()) {
      power_cut_after(-1);
      return db;
    }
    loaded_check(t, sqlite3_close(db) == SQLITE_OK, "%s: close", where);
    n_recoveries++;
  }
  loaded_check(t, false, "%s: could not be opened", where);
  return NULL;
}

/* A disk with a database of documents, all of it synced. */
static bool make_disk(loaded *t, const machine *m) {
  power_file("x.db", NULL, 0);
  sqlite3 *db = stored_open(t, "x.db", "power");
  const bool made = db && stored_make(t, db, m->page_size, journal_name(m->journal));
  if (!loaded_check(t, sqlite3_close(db) == SQLITE_OK && made, "a new database")) return false;
  size_t len;
  const void *bytes = power_bytes("x.db", &len);
  void *copy = malloc(len);
  if (copy) memcpy(copy, bytes, len);
  const bool ok = loaded_check(t, copy && power_file("x.db", copy, len), "no memory");
  free(copy);
  return ok;
}

/* A disk, some cuts on it, and what is left in the end. */
static void run_machine(loaded *t, uint64_t seed) {
  uint64_t random = random_seed(seed);
  const machine m = machine_draw(&random);
  const sqlite3_int64 memory = sqlite3_memory_used();
  char where[150];
  snprintf(where, sizeof where, "seed %llu (%s%s, page %d, sector %d%s, cache %d, checkpoint %d)",
           (unsigned long long)seed, journal_name(m.journal), m.extra ? " EXTRA" : "", m.page_size,
           m.sector, m.powersafe ? " safe" : "", m.cache, m.autocheckpoint);
  allowed a = {shelf_empty(), shelf_empty(), shelf_empty()};
  power_machine(m.sector, m.powersafe);
  sqlite3 *db = make_disk(t, &m) ? open_on(t, &m) : NULL;
  power_lie(sabotage == LYING);
  for (int cut = 0; db && cut < 3; cut++) {
    power_cut_after((long)random_below(&random, 4u << random_below(&random, 9)));
    run_steps(t, db, &random, &a, 40);
    n_calls += power_calls();
    const bool is_cut = power_is_cut();
    n_cuts += is_cut;
    power_lie(false);
    loaded_check(t, sqlite3_close(db) == SQLITE_OK, "%s: close after cut %d", where, cut);
    db = is_cut ? recover(t, &m, &random, where) : open_on(t, &m);
    if (db) check_state(t, db, &m, &a, where);
  }
  power_lie(false);
  if (db) loaded_check(t, sqlite3_close(db) == SQLITE_OK, "%s: close", where);
  power_free();
  const sqlite3_int64 left = sqlite3_memory_used() - memory;
  loaded_check(t, left == 0, "%s: %lld bytes left", where, (long long)left);
}

int main(int argc, char **argv) {
  loaded t;
  stored_options o = {.extension = "./bpe", .seed = 1, .count_name = "--disks", .count = 300};
  if (!stored_arguments(&o, argc, argv)) return 2;
  sabotage = o.sabotage;
  if (!power_install() || !stored_begin(&t, o.extension)) return 1;
  for (long i = 0; i < o.count && t.failed < LOADED_SHOWN; i++)
    run_machine(&t, o.seed + (uint64_t)i);
  if (o.verbose)
    printf(
        "%ld disks from seed %llu on: %ld cuts, %ld more while recovering, %ld steps done,\n"
        "%ld writes and syncs; after a cut the step under way was there %ld times, and %ld times\n"
        "the last one was undone\n",
        o.count, (unsigned long long)o.seed, n_cuts, n_recoveries, n_steps, n_calls, n_next,
        n_undone);
  return loaded_end(&t);
}
