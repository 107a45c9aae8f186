/* crew.h - counts the pieces of a corpus on several threads, into one table.
**
** Rows are copied into batches; workers take batches by turns, each counting into a table of its
** own that never grows. When a worker's table is full, or a piece is too long for it, the worker
** waits until the owner, the thread that adds rows, has emptied it into the one large table. So
** memory grows with the distinct pieces and not with rows, a worker costs its table of some 3 MB and
** two batches of half a MB each, only the owner allocates, and the sums do not depend on who counted
** what. While all batches are taken the owner counts too; with no workers it is all there is, and no
** thread is ever made.
**
**     row  row  row ...           long row: cut where every named scanner cuts, "a| b";
**      |    |    |                  |         with a regex or "none" the owner reads it whole
**     [ batch ] [ batch ]  -->  worker's table --> total     (owner's rows: straight to total)
*/
#ifndef CREW_H
#define CREW_H

#include "reader.h"

typedef struct crew crew;

typedef struct crew_options {
  size_t n_workers;           /* beside the owner */
  reader_rules rules;         /* what it points at is borrowed */
  const bpe_pattern *pattern; /* borrowed */
  bool keep_rows;             /* a row is one piece: never cut it */
  int (*stop)(void *ctx);     /* asked by the owner alone */
  void *stop_ctx;
} crew_options;

bpe_status crew_new(const bpe_alloc *, const crew_options *, bpe_error *, crew **out);
/* The text is read or copied before it returns. place: of its first byte in the corpus. */
bpe_status crew_add(crew *, const uint8_t *text, size_t len, uint64_t weight, uint64_t place,
                    bpe_error *);
/* Counts what is left and ends the threads; the table is then complete. */
bpe_status crew_finish(crew *, bpe_error *);
/* Of the owner's table; before crew_finish its numbers lag behind. */
count_table *crew_total(crew *);
/* Gives up the table's memory but keeps its numbers; after crew_finish. */
void crew_release(crew *);
void crew_free(crew *); /* ends the threads, wherever they are */

#endif
