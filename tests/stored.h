/* stored.h - stored tokenizers under failure: what a database holds of them, as one text, and
** random steps that store, rename and remove them, with what it must hold afterwards.
**
** What is compared is stored_state(): the catalogue's rows with "sealed", for which the extension
** reads and digests everything that was stored, and sums over the three tables, which also show
** rows that belong to no tokenizer. Tables that are empty or not there yet are the same state.
**
** A `shelf` says which of VARIANTS tokenizers stands under each of NAMES names. shelf_step makes
** SQL that changes some of that, and the shelf that the database equals once all of it is done:
**
**     if (!stored_begin(&t, "./bpe")) return 1;                  // opens t.db, knows the variants
**     char *sql = shelf_step(&random, &shelf);
**     ... run it on a database that stored_make made ...
**     char *state = stored_state(db, "main"), *wanted = shelf_state(&shelf);
*/
#ifndef TEST_STORED_H
#define TEST_STORED_H

#include "loaded.h"
#include "random.h"

enum { NAMES = 5, VARIANTS = 6 };

typedef struct shelf {
  int held[NAMES]; /* a variant, or -1 */
} shelf;

/* What a program on random steps is told: [./bpe] [--seed N] [--COUNT N] [-v] [--sabotage N]. */
typedef struct stored_options {
  const char *extension;
  uint64_t seed;
  const char *count_name; /* "--disks" */
  long count;
  bool verbose;
  int sabotage; /* what to break, to see that it is noticed; 0: nothing */
} stored_options;

/* Takes what is given into the defaults; false: it says how the program is called. */
bool stored_arguments(stored_options *, int argc, char **argv);

/* loaded_begin, and learns digests and sums of the variants. */
bool stored_begin(loaded *, const char *extension);
/* A connection with the extension; NULL and a failed check if there is none. vfs: NULL, default. */
sqlite3 *stored_open(loaded *, const char *path, const char *vfs);
/* Runs SQL; false and a failed check if it fails. */
bool stored_run(loaded *, sqlite3 *, const char *sql);
/* A new database's settings and its table docs, of which some variants are trained. */
bool stored_make(loaded *, sqlite3 *, int page_size, const char *journal_mode);

/* Whether a page cache so small that it spills is a fair test. Before 3.53 it is not with WAL:
*SQLite
** itself then writes frames without good checksums after a ROLLBACK TO, or after a statement that
** was undone, and when WAL is read anew the whole transaction is lost. (3.40 has that, 3.53 has
** not; none between was looked at.) */
bool stored_may_spill(bool wal);

/* Both to be freed with sqlite3_free. What cannot be read is the text of the error. */
char *stored_state(sqlite3 *, const char *schema);
char *shelf_state(const shelf *);
/* Whether integrity_check says ok and every tokenizer on the shelf answers as it should. */
bool stored_works(loaded *, sqlite3 *, const shelf *, const char *where);

shelf shelf_empty(void);
/* SQL to be freed with sqlite3_free; *s becomes what it leads to. */
char *shelf_step(uint64_t *random, shelf *s);
/* The same with each tokenizer removed and renamed by several statements, which is not all or
** nothing: to see that someone notices. */
char *shelf_step_loose(uint64_t *random, shelf *s);

#endif
