/* upkeep.c - what happens to a file beside reading and writing: VACUUM, checkpoints, journal modes,
** copies, other changes of the schema, files that come and go, connections that end.
**
** Copies (VACUUM INTO, the backup interface) are one moment of the file, so each must agree with
** the `book` it brought along.
*/
#include "soak.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool exec(worker *w, const char *sql) {
  w->code = sqlite3_exec(w->db, sql, NULL, NULL, NULL);
  snprintf(w->message, sizeof w->message, "%s", sqlite3_errmsg(w->db));
  return went_well(w, sql);
}

static void settle(worker *w, const char *what) {
  if (went_well(w, what)) count_done(w, w->kind);
  else count_busy(w, w->kind);
}

static void attach(worker *w) {
  char sql[400];
  w->kind = w->attached ? K_detach : K_attach;
  snprintf(sql, sizeof sql, "ATTACH '%s' AS aux", w->s->side_path);
  if (exec(w, w->attached ? "DETACH aux" : sql)) w->attached = !w->attached;
  settle(w, "attach");
}

static void vacuum(worker *w) {
  w->kind = K_vacuum;
  exec(w, "VACUUM");
  settle(w, "VACUUM");
}

/* A second connection to the copy, with this worker's index; it must be quiet there. */
static bool compare_copy(worker *w, worker *copy) {
  const bool ok = compare_world(copy, &main_world);
  if (!ok && is_busy(copy)) wrong(w, "a copy of one's own is busy: %s", copy->message);
  if (ok) right(w);
  return ok;
}

/* Not from a shared cache: SQLite (3.40 at least) then waits for ever if another thread opens the
** same file meanwhile, because the two take SQLite's own mutexes in different orders. */
static void vacuum_into(worker *w) {
  char path[330], sql[400];
  worker copy = {.s = w->s, .index = w->index, .random = w->random | 1, .op = w->op};
  snprintf(path, sizeof path, "%s/copy-%d.db", w->s->folder, w->index);
  snprintf(sql, sizeof sql, "VACUUM INTO '%s'", path);
  if (shares_cache(w)) return;
  unlink(path);
  w->kind = copy.kind = K_vacuum_into;
  if (exec(w, sql)) {
    if (worker_connect(&copy, path, 0)) compare_copy(w, &copy);
    worker_disconnect(&copy);
  }
  settle(w, "VACUUM INTO");
  unlink(path);
}

/* Into a connection that has tokenizers of the same names loaded already. */
static void backup(worker *w) {
  worker copy = {.s = w->s, .index = w->index, .random = w->random | 1, .op = w->op};
  w->kind = copy.kind = K_backup;
  if (!worker_connect(&copy, ":memory:", 0)) return;
  ask(&copy, "INSERT INTO bpe_tokenizers(name, source) VALUES('b0', ?1), ('b1', ?1)", "b",
      &variants[below(w, VARIANTS)].model);
  ask(&copy, "SELECT bpe_count('the', 'b0'), bpe_count('the', 'b1')", "");
  if (!went_well(&copy, "the backup's destination")) return;
  sqlite3_backup *b = sqlite3_backup_init(copy.db, "main", w->db, "main");
  const int step = b ? sqlite3_backup_step(b, -1) : sqlite3_errcode(copy.db);
  const int rc = sqlite3_backup_finish(b);
  w->code = step == SQLITE_DONE ? rc : step;
  snprintf(w->message, sizeof w->message, "%s", sqlite3_errmsg(copy.db));
  if (went_well(w, "backup")) compare_copy(w, &copy);
  settle(w, "backup");
  worker_disconnect(&copy);
}

static void checkpoint(worker *w) {
  static const int modes[] = {SQLITE_CHECKPOINT_PASSIVE, SQLITE_CHECKPOINT_FULL,
                              SQLITE_CHECKPOINT_RESTART, SQLITE_CHECKPOINT_TRUNCATE};
  w->kind = K_checkpoint;
  w->code = sqlite3_wal_checkpoint_v2(w->db, "main", modes[below(w, 4)], NULL, NULL);
  snprintf(w->message, sizeof w->message, "%s", sqlite3_errmsg(w->db));
  settle(w, "checkpoint");
}

static void journal(worker *w) {
  static const char *const modes[] = {"PRAGMA journal_mode = DELETE",
                                      "PRAGMA journal_mode = TRUNCATE",
                                      "PRAGMA journal_mode = PERSIST"};
  static const char *const sizes[] = {"PRAGMA cache_size = 10", "PRAGMA cache_size = 2000",
                                      "PRAGMA mmap_size = 0", "PRAGMA mmap_size = 33554432"};
  w->kind = K_journal;
  if (!w->s->wal) exec(w, modes[below(w, 3)]);
  if (!is_busy(w)) exec(w, sizes[below(w, 4)]);
  settle(w, "journal");
}

/* Makes every connection prepare its statements anew. */
static void schema(worker *w) {
  w->kind = K_schema;
  exec(w, below(w, 2) ? "CREATE TABLE IF NOT EXISTS passing(x)" : "DROP TABLE IF EXISTS passing");
  settle(w, "schema");
}

static void reconnect(worker *w) {
  w->kind = K_reconnect;
  w->code = SQLITE_OK;
  if (worker_disconnect(w) && worker_open(w)) settle(w, "reconnect");
}

void keep_up(worker *w) {
  static const struct way {
    void (*run)(worker *);
    uint32_t weight;
  } ways[] = {{attach, 25},  {vacuum, 8}, {vacuum_into, 7}, {checkpoint, 20},
              {journal, 15}, {backup, 5}, {schema, 10},     {reconnect, 10}};
  uint32_t at = below(w, 100);
  int i = 0;
  while (at >= ways[i].weight) at -= ways[i++].weight;
  w->code = SQLITE_OK;
  ways[i].run(w);
}
