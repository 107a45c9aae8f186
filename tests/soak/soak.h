/* soak.h - many connections at once on one file, each answer compared with the one it must be.
**
** The files of this folder but load.c are one program, soak. What makes it strict is how it knows
** the right answer while everybody changes everything:
**
** (K1) A tokenizer is always one of VARIANTS contents, whose answers a connection of its own gave
**      before anything else ran (variants.c).
** (K2) The names b0 ... of the main file and s0 ... of the attached one are changed in
**      transactions that change the plain table `book` with them. So what a transaction reads in
**      `book` is exactly what the extension must answer in it.
** (K3) The names o<worker>_<i> are changed by one worker only, one autocommit statement each, and
**      noted before and after in a history in shared memory. An answer must belong to a state that
**      the name had between the question and the answer.
** (K4) "busy" and "locked" are no failures, but what they refuse must not have happened; nor is, in
**      a shared cache, a statement that another connection's rollback ends. Any other error is a
**      failure, unless it says of a name what K2 and K3 say of it.
**
**     worker w = {.s = shared, .index = index, .random = seed};
**     if (worker_open(&w)) change_something(&w), read_something(&w);
**     worker_disconnect(&w);
*/
#ifndef SOAK_H
#define SOAK_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  VARIANTS = 10,
  TEXTS = 12,
  BOOKED = 8,
  SIDE = 4,
  OWN = 3,
  MAX_WORKERS = 32,
  HISTORY = 1 << 14,
  KEPT = 64,
  COLUMNS = 4,
  MAX_TEXT = 1000
};

/* What a name means: a variant, a variant whose rows were changed, nothing. */
enum { ABSENT = -1, UNSEALED = 64 };

#define KINDS(X)                                                                                   \
  X(encode) X(encode_blob) X(count) X(tokens) X(decode) X(decode_blob) X(vocab) X(merges)          \
  X(export) X(column) X(chunks) X(truncate) X(stats) X(catalogue) X(digest) X(builtin)             \
  X(statement) X(names) X(snapshot) X(walk) X(compare) X(listing) X(other)                         \
  X(store) X(train) X(copy) X(delete) X(rename) X(edit) X(seal) X(refused)                         \
  X(savepoint) X(commit) X(rollback) X(own_store) X(own_train) X(own_delete) X(own_rename)         \
  X(attach) X(detach) X(vacuum) X(vacuum_into) X(checkpoint) X(journal) X(backup) X(schema)        \
  X(reconnect)

typedef enum kind {
#define NAME_KIND(name) K_##name,
  KINDS(NAME_KIND)
#undef NAME_KIND
  N_KINDS
} kind;

extern const char *const kind_names[N_KINDS];

/* ---- Shared by all workers, also of other processes -------------------------------------- */

/* What one name was, is, and is about to be (K3). Entry i is state[i % HISTORY]. */
typedef struct history {
  atomic_ulong begun, done; /* the newest entry; the newest that is known to hold */
  atomic_int state[HISTORY];
} history;

typedef struct tally {
  atomic_ulong done, busy, answers;
} tally;

typedef struct shared {
  /* Set before the workers start. */
  const char *extension; /* NULL: linked in */
  char path[300], side_path[320], folder[280];
  bool wal;
  int n_workers;
  uint64_t seed;
  int sabotage;
  /* Set by anyone. */
  atomic_bool late; /* the time is over, but not everything has happened */
  atomic_bool stop;
  atomic_ulong failures;
  tally tallies[MAX_WORKERS][N_KINDS];
  history own[MAX_WORKERS][OWN];
  atomic_int hot; /* owner * OWN + i of the name that is asked for and changed most */
  atomic_ulong lives[MAX_WORKERS]; /* how often a worker's process was started */
} shared;

/* ---- Contents (variants.c) --------------------------------------------------------------- */

/* The questions whose answer depends on the content alone, numbered by their kinds. */
enum { QUESTIONS = K_stats + 1 };

typedef struct piece {
  char *data; /* owned; NUL-terminated */
  size_t len;
} piece;

typedef struct question {
  const char *sql; /* ?1: what `input` says; ?2: the tokenizer's name */
  enum { IN_TEXT, IN_JSON, IN_BLOB, IN_NOTHING } input;
} question;

typedef struct variant {
  piece model;
  char digest[65];
  const char *recipe; /* SQL that makes the source from the table docs */
  piece answer[QUESTIONS][TEXTS];
} variant;

extern const question questions[QUESTIONS];
extern variant variants[VARIANTS];
extern piece texts[TEXTS];
extern char *docs_sql; /* data/docs.sql */

/* False, with a line on stdout: the contents cannot be made or are too alike to tell apart. */
bool variants_make(const shared *);
void variants_free(void);
/* What the question's ?1 is, of a text under a variant. */
const piece *question_input(int number, int variant, int text);

/* ---- A worker and its statements (ask.c) ------------------------------------------------- */

typedef struct worker {
  shared *s;
  int index;
  sqlite3 *db;
  uint64_t random, pace; /* what it asks for; how fast */
  unsigned long op;
  kind kind;
  bool attached; /* the side file, as aux */
  struct {
    const char *sql;
    sqlite3_stmt *stmt;
  } kept[KEPT];
  /* Of the latest statement. */
  piece column[COLUMNS];
  size_t room[COLUMNS];
  int code;
  char message[300];
} worker;

uint32_t below(worker *, uint32_t n);
/* flags: SQLITE_OPEN_SHAREDCACHE or 0. */
bool worker_connect(worker *, const char *path, int flags);
/* One worker in four shares its pages with the others of its process that do. */
bool shares_cache(const worker *);
/* worker_connect to the shared file, as every worker does. */
bool worker_open(worker *);
bool worker_disconnect(worker *);

/* Runs SQL up to its first row; gives SQLITE_ROW with the columns copied, SQLITE_DONE, or the
** error, with its message. binds: one letter per parameter: t char *, n text (piece *), b BLOB
** (piece *), i int. The SQL's address is what a kept statement is found by. */
int ask(worker *, const char *sql, const char *binds, ...);
/* A statement to be stepped by the caller, bound likewise; NULL after an error, noted as ask does.
** The caller resets it. */
sqlite3_stmt *ask_rows(worker *, const char *sql, const char *binds, ...);
int ask_step(worker *, sqlite3_stmt *);
/* After the above: true, it went well; false, busy or locked, or a failure that is now counted. */
bool went_well(worker *, const char *what);
bool is_busy(const worker *);
/* Runs SQL that others may only delay. */
bool insist(worker *, const char *sql);
/* Ends a transaction that changed nothing, which only a shared cache may delay. The latest code
** stays. */
bool end_reading(worker *);
/* Counts a failure and prints it, the first few of all. Gives false. */
bool wrong(worker *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Counts an answer of the worker's current kind. */
void right(worker *);
void count_done(worker *, kind);
void count_busy(worker *, kind);
bool column_is(const worker *, int column, const piece *);

/* ---- Questions (read.c) ------------------------------------------------------------------ */

/* Which names, and where they are written down. */
typedef struct world {
  const char *schema, *letter;
  int n;
} world;

extern const world main_world, side_world;

const world *pick_world(worker *);
void pick_name(worker *, const world *, char out[16]);
/* The state of a booked name as this transaction sees it. False: busy, or a failure. */
bool booked_state(worker *, const world *, const char *name, int *state);
/* Asks once about a name that has to be in the state. */
bool ask_about(worker *, const world *, const char *name, int state);
/* What the catalogue has to say of the world's names, from `book`: "b0 <digest> b3 unsealed ". */
bool book_text(worker *, const world *, char *out, size_t size);
bool compare_world(worker *, const world *);
void read_something(worker *);
void read_other(worker *);

/* ---- Changes (write.c, own.c), upkeep (upkeep.c) ----------------------------------------- */

void change_something(worker *);
void change_own(worker *);
/* After a process was killed: what the owner's names are now, which only the file knows. */
bool own_recover(worker *);
bool own_check(worker *);
void keep_up(worker *);

#endif
