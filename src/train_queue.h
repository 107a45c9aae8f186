/* train_queue.h - the pair to merge next: highest count first, equals by the tie rule.
**
** Counts only fall and new pairs never count more than the pair just merged. So pairs wait in
** unsorted buckets by count, and only the highest bucket that holds any is sorted, as a heap. A
** pair's count may be outdated where it waits; it is looked at again when its turn comes, and
** goes down to the bucket where it belongs. Pairs of rare counts, most of all, are never compared.
**
**     bucket of a count c:  c itself below 2^11, then 2^10 to every power of two
*/
#ifndef TRAIN_QUEUE_H
#define TRAIN_QUEUE_H

#include "train_merge.h"

typedef struct queued {
  uint64_t count;
  uint64_t key; /* smaller comes first; BPE_TIE_BYTES: unused */
  uint32_t pair;
} queued;

typedef struct train_queue {
  uint32_t *buckets; /* owned; the last pair that came, or TRAIN_NONE */
  size_t at;         /* the bucket that is in the heap */
  queued *heap;      /* owned */
  size_t n, cap;
} train_queue;

bpe_status train_queue_init(train_queue *, train_state *, bpe_error *);
void train_queue_clear(train_queue *, const bpe_alloc *);
/* Adds a pair of a count of at least 1, not more than that of the last one taken. */
bpe_status train_queue_add(train_queue *, train_state *, uint32_t pair, bpe_error *);
/* Takes the next pair; TRAIN_NONE: there is none left. */
bpe_status train_queue_take(train_queue *, train_state *, uint32_t *pair, bpe_error *);

#endif
