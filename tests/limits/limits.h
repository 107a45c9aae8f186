/* limits.h - what the files of this folder share: statements that take long, and one run of one.
**
** A subject is a statement with an input so large that it runs for a while. It is run to its end
** once, which gives its answer, its time and how often it asks whether to stop; then again and
** again, and each time something wants it to end: another thread's sqlite3_interrupt, a progress
** handler whose time is up, or the stop callback itself at a chosen question. The extension is
** linked in with `interrupted` wrapped, so that its questions can be counted.
**
**     limits interrupt --moments 20 --least 0.06     sqlite3_interrupt from another thread
**     limits progress ...                             a progress handler with a time limit
**     limits question ...                             the stop callback says so
**     limits each ...                                 the three by turns
**     limits gaps                                     the longest CPU time between two questions
**     limits length | heap | others                   SQLite's own limits
**
** A subject's moments depend on --seed and on nothing that ran before it, and its line is printed
** when it is done: a long run goes on with --from NAME where it was ended.
*/
#ifndef LIMITS_H
#define LIMITS_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Checks -------------------------------------------------------------------------------- */

typedef struct tally {
  long passed, failed;
} tally;

extern tally checks;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
bool check(bool held, const char *format, ...);

/* ---- Random numbers ------------------------------------------------------------------------- */

uint64_t random_next(uint64_t *state);
double random_part(uint64_t *state); /* 0 <= x < 1 */

/* ---- Subjects (limits_subject.c) ------------------------------------------------------------ */

typedef size_t make_input(char *to, size_t len); /* returns how much of it is used */

typedef struct subject {
  const char *name;
  const char *sql;    /* ?1: the input */
  const char *before; /* run before each run, NULL: nothing */
  const char *after;  /* and after one that came to its end */
  const char *small;  /* a query whose answer must always be the same */
  make_input *make;   /* NULL: the statement has no input */
  size_t size;        /* bytes of input to begin with */
  size_t most;        /* and at most */
  bool is_blob;
  bool has_threads; /* time is that of the process */
} subject;

extern const subject subjects[]; /* up to one without a name */
/* Makes the stored tokenizers and sources that subjects use; `encoding` is what the large ones are
** copies of. What is stored while the time is taken has `cut` tokens, or all of them with 0. */
bool subjects_prepare(sqlite3 *, const char *encoding, int cut);

/* ---- Runs (limits_run.c) ---------------------------------------------------------------------- */

sqlite3 *open_loaded(void);
bool run_script(sqlite3 *, const char *sql);
/* The first column of the first row, as text that the caller frees; NULL: an error. */
char *first_value(sqlite3 *, const char *sql);

typedef enum cause { NOTHING, INTERRUPT, PROGRESS, QUESTION, EACH } cause; /* EACH: by turns */

typedef struct wish {
  cause cause;
  double at;     /* seconds of CPU time from the start of the run */
  long question; /* QUESTION: which one is answered with stop, from 1 on */
} wish;

typedef struct outcome {
  int rc; /* SQLITE_DONE, or what the statement failed with */
  uint64_t answer;
  double seconds;      /* of CPU time in all */
  bool asked;          /* the wish was uttered before the end */
  double late;         /* seconds of CPU time from then to the end */
  long questions;      /* in all */
  long after;          /* and after one was answered with stop */
  double longest;      /* CPU time between two questions, or looks of SQLite's own (gaps) */
  long longest_before; /* question */
} outcome;

typedef struct input {
  char *bytes;
  size_t len;
} input;

void runs_begin(void); /* starts the thread that interrupts */
void runs_end(void);
extern bool watch_gaps; /* let a progress handler look at each step */
extern bool deaf;       /* no question is passed on, to see that someone notices */
outcome run_once(sqlite3 *, const subject *, const input *, wish);

/* ---- SQLite's limits (limits_bounds.c) -------------------------------------------------------- */

/* To see that someone notices. Then each is checked at its lowest only. */
extern bool lax;     /* no limit is set */
extern bool halfway; /* a change that fails leaves something behind */
void check_lengths(void);
void check_heap(void);
void check_others(void);

#endif
