/* reader.h - one thread's way through the rows of a corpus: special tokens cut out, the rest
** split, each piece counted.
**
** A reader can be left at any piece, when the table that counts is full, and goes on where it was
** when there is room again, on any thread. So a worker may count into memory that it was given
** and leave asking for more to the thread that may.
**
**     reader_begin(&r, row, len, 1, 0);
**     while ((end = reader_run(&r, &table, &e)) == READ_FULL) ... make room ...
*/
#ifndef READER_H
#define READER_H

#include "count.h"
#include "special.h"
#include "split.h"

/* What all readers of a training have in common. */
typedef struct reader_rules {
  const bpe_finder *specials; /* NULL: none; borrowed */
  bool skip_space;            /* pieces of white space do not count */
} reader_rules;

typedef enum read_end {
  READ_DONE, /* the row is used up */
  READ_FULL, /* the table has no room for the piece at hand */
  READ_FAILED
} read_end;

/* Zero it, set the first two and, if anyone is to be asked, reader_set_stop; clear it at the end. */
typedef struct reader {
  const reader_rules *rules;
  const bpe_pattern *pattern; /* this reader's own: matching may need memory of its allocator */
  int (*stop)(void *ctx);     /* NULL, or asked at least every 64 KiB of text */
  void *stop_ctx;
  splitter split;
  const uint8_t *text; /* of the row, borrowed */
  size_t len;
  uint64_t weight, base; /* base: place of the row's first byte in the corpus */
  uint64_t ask;          /* place from which to ask about stopping again */
  size_t next;           /* where the stretch after this one begins */
  size_t start;          /* of the piece at hand */
  bool pending;          /* it is not counted yet */
  pace pace;             /* of the piece at hand, where that is long */
} reader;

/* Who is asked about stopping from now on, in the row under way too. */
void reader_set_stop(reader *, int (*stop)(void *ctx), void *ctx);
void reader_begin(reader *, const uint8_t *text, size_t len, uint64_t weight, uint64_t base);
read_end reader_run(reader *, count_table *, bpe_error *);
/* Bytes of the piece that was at hand when reader_run said READ_FULL. */
size_t reader_piece_len(const reader *);
/* Sets *start, *stop to the next stretch that holds no special token, at or after the end of the
** last; false: there is none. For a caller that splits rows itself; *e has a failure. */
bool reader_stretch(reader *, size_t *start, size_t *stop, bpe_error *e);
void reader_clear(reader *);

#endif
