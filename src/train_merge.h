/* train_merge.h - the merge loop of training: from distinct pieces and their counts to merges.
**
** Symbols are numbers: 0 .. 255 the single bytes in the order of their ids, 256 + r the result of
** merge r. Pieces stand behind each other in slots, a byte each, with one empty slot between:
**
**     slot      0   1   2   3   4   5   6   7
**     text          l   o   w       n   e
**     symbol    -   l  300 300  -   n   e   -       300 = "ow", at its first and last slot
**     pair      .   7   .   .   .   9   .   .       7 = (l, 300), 9 = (n, e)
**
** A symbol of length n at slot i ends where symbol[i + n - 1] says so again, so neighbours are
** found without links. pair[i] is the pair that begins at slot i: the count of a pair that a merge
** breaks up is found without hashing. Every pair keeps the list of its slots, in rising order;
** one that no longer holds is seen from pair[i] and skipped. A merge costs as much as it replaces,
** so all of training costs as much as there is text in the distinct pieces.
**
** A pair comes into being with its newest symbol and only loses occurrences from then on; the
** queue (train_queue.h) lives on that.
*/
#ifndef TRAIN_MERGE_H
#define TRAIN_MERGE_H

#include "count.h"

#define TRAIN_NONE UINT32_MAX /* no pair, no symbol */

typedef struct train_pair {
  uint64_t count;
  uint32_t left, right; /* symbols */
  uint32_t at, n;       /* its slots: lists[at .. at + n), some of them outdated */
  uint32_t next;        /* in its bucket of the queue */
} train_pair;

typedef struct train_symbol {
  uint64_t start;   /* its first 8 bytes, the first highest: compares as they do */
  uint32_t at, len; /* its bytes: text[at .. at + len) */
} train_symbol;

typedef struct train_merge {
  uint32_t left, right; /* symbols */
  uint64_t count;
} train_merge;

typedef struct train_state {
  bpe_alloc alloc;
  bpe_tie tie;
  uint64_t min_count;
  uint64_t max_len; /* of a symbol, in bytes; UINT64_MAX: any */
  pace pace;

  uint8_t *text; /* owned, as is all below; n_slots */
  uint32_t *symbol, *pair;
  size_t n_slots;
  uint32_t *starts; /* of each piece: its first slot, rising */
  uint64_t *weights;
  size_t n_pieces;
  uint32_t *piece_of; /* of every BLOCK slots: the piece of the first, or the one before it */

  train_pair *pairs; /* pairs[0] stands for all pairs that may never merge */
  size_t n_pairs, pairs_cap;
  uint32_t *lists;
  size_t lists_len, lists_cap;
  train_symbol *symbols;
  size_t n_symbols, symbols_cap;
  uint32_t *with_left, *with_right; /* the pair of each symbol with the newest, if it is new */
  size_t left_cap, right_cap;
  train_merge *merges;
  size_t n_merges, merges_cap;
} train_state;

/* Lays out the table's pieces of two or more bytes, those met first first if the tie rule asks
** for that, and counts their pairs. order[b] is the symbol of byte b. */
bpe_status train_start(train_state *, const count_table *, const uint8_t order[256], bpe_error *);
/* Merges pairs[number] and makes its result the newest symbol. New pairs are pairs[*first_new ..]. */
bpe_status train_merge_pair(train_state *, uint32_t number, size_t *first_new, bpe_error *);
/* The first slot where the pair still holds; its count is not 0. Any, once the pace is stopped. */
uint32_t train_first_slot(train_state *, uint32_t number);
/* Symbols that are left, each as often as its piece counts; at most COUNT_MAX. */
bpe_status train_tokens(train_state *, uint64_t *sum, bpe_error *);
void train_clear(train_state *);

#endif
