/* unseen.h - the pieces of a batch that the table of pieces did not have.
**
** A first pass over a text is a walk from one such piece to the next, and what they cost is not
** work but wrong guesses: is this one a token, is it a long one, is there another pair. So they go
** through a few passes together, each without branches that depend on a piece:
**
**     collect   which are tokens; these get their value, and a place in the table
**     merge     the others, by turns (lanes.h); a piece that comes twice is merged once
**     keep      puts them in the table, when the values of the batch are no longer needed
**
** What is left in b->missed is for piece-by-piece treatment: longer than SHORT_PIECE, or with an
** id too large for the table.
*/
#ifndef UNSEEN_H
#define UNSEEN_H

#include "lanes.h"
#include "pieces.h"

enum {
  UNSEEN_FEW = 32, /* jobs that are worth merging together */
  UNSEEN_MOST = PIECES_BATCH + UNSEEN_FEW,
  UNSEEN_RECENT = 64 /* places by hash, to find the same piece again */
};

#define NO_JOB UINT16_MAX

typedef struct unseen {
  lanes_merge *merge; /* NULL: no jobs are made */
  size_t n, n_ids;
  merge_job jobs[UNSEEN_MOST];
  piece_key keys[UNSEEN_MOST];
  uint32_t times[UNSEEN_MOST];    /* how often this piece was there */
  uint16_t job_of[PIECES_BATCH];  /* of a piece of the last batch whose value is 0; or NO_JOB */
  uint16_t recent[UNSEEN_RECENT]; /* a job that was there, or anything */
  lane lanes[LANES];
  uint32_t ids[PIECES_BATCH * SHORT_PIECE]; /* of jobs that want them, of one batch */
} unseen;

/* Takes what it can from b->missed. Tokens get their value in b and a place in the table; others
** become jobs, with room for their ids if `keep`. Returns the number of tokens. At most UNSEEN_FEW
** jobs may be there already, none if `keep`. */
size_t unseen_collect(unseen *, piece_table *, piece_batch *, bool keep);

/* The job of piece i of the last batch, whose value is 0; NULL: it is none. */
static inline const merge_job *unseen_job(const unseen *u, size_t i) {
  return u->job_of[i] == NO_JOB ? NULL : &u->jobs[u->job_of[i]];
}

/* Merges all jobs. Returns the sum of their ids, each as often as it was there. */
uint64_t unseen_merge(unseen *, const vocab *);

/* Puts all jobs in the table, and forgets them. */
void unseen_keep(unseen *, piece_table *, bool keep);

#endif
