/* unseen.h - the pieces that the table of pieces did not have.
**
** A first pass over a text is a walk from one such piece to the next, and what they cost is not
** work but waiting and wrong guesses: is this one a token, is it a long one, is there another pair.
** So they are only noted, while what tells is fetched, and settled when there are many of them, or
** the text ends, in a few passes over all, each without branches that depend on a piece:
**
**     note      remembers the pieces that a batch has missed
**     settle    which are tokens, these get a place in the table; the others are merged by turns
**               (lanes.h), each once
**     keep      puts these in the table, when the values of the batch are no longer needed
**
** Who wants ids settles each batch by itself, and has them by the places of its pieces. What is in
** `left` then is for piece-by-piece treatment: longer than SHORT_PIECE, or with an id too large for
** the table.
*/
#ifndef UNSEEN_H
#define UNSEEN_H

#include "lanes.h"
#include "pieces.h"

enum {
  UNSEEN_MOST = 2 * PIECES_BATCH,
  UNSEEN_RECENT = 64 /* places by hash, to find the same piece again */
};

#define NO_JOB UINT16_MAX

typedef struct unseen_piece {
  piece_key key;
  const uint8_t *s;
  size_t len;
  uint32_t i; /* its place in its batch */
} unseen_piece;

typedef struct unseen {
  lanes_merge *merge; /* NULL: no jobs are made */
  lanes_room *room;
  void *block; /* owned; holds the room */
  size_t n, n_left, n_jobs, n_ids;
  unseen_piece pieces[UNSEEN_MOST]; /* noted */
  uint16_t left[UNSEEN_MOST];       /* of these, those that were not settled */
  merge_job jobs[UNSEEN_MOST];
  piece_key keys[UNSEEN_MOST];
  uint32_t times[UNSEEN_MOST];              /* how often this piece was there */
  uint16_t recent[UNSEEN_RECENT];           /* a job that was there, or anything */
  uint16_t job_of[PIECES_BATCH];            /* of a piece of the batch; or NO_JOB */
  uint32_t ids[PIECES_BATCH * SHORT_PIECE]; /* of jobs that want them, of one batch */
} unseen;

/* False: out of memory. */
bool unseen_init(unseen *, const bpe_alloc *, const vocab *);
void unseen_clear(unseen *, const bpe_alloc *);

/* Notes what the lookup has missed. There must be room: not unseen_full. */
void unseen_note(unseen *, const piece_table *, const piece_batch *);

static inline bool unseen_full(const unseen *u) {
  return u->n + PIECES_BATCH > UNSEEN_MOST;
}

/* Settles what was noted, and returns the number of ids of all but those in `left`. With a batch,
** the only one that was noted, values go to its pieces, and the ids of jobs are kept. */
uint64_t unseen_settle(unseen *, piece_table *, piece_batch *);

/* The job of piece i of the batch, whose value is 0; NULL: it is none. */
static inline const merge_job *unseen_job(const unseen *u, size_t i) {
  return u->job_of[i] == NO_JOB ? NULL : &u->jobs[u->job_of[i]];
}

/* Puts all jobs in the table, with ids if `keep`, and forgets all but `left` and its pieces. */
void unseen_keep(unseen *, piece_table *, bool keep);

#endif
