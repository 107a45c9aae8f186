/* base.h - the floor of the core: errors, memory, checked sizes. Every other room stands on it.
**
** mem_* are the only callers of an allocator. set_error is the only writer of a bpe_error, so
** "the first failure stays" holds everywhere. Typical use:
**
**     if (!mem_grow(&a, (void **)&list, &cap, n + 1, sizeof *list)) return set_nomem(e);
*/
#ifndef BASE_H
#define BASE_H

#include "bpe.h"

#if defined(__GNUC__)
#define NEVER_INLINE __attribute__((noinline))
#else
#define NEVER_INLINE
#endif

/* A size from which text is treated otherwise, as a constant. Fuzzers' inputs are short: they are
** built with -DBPE_SMALL, and what lies behind such a size is then behind the small one. */
#ifdef BPE_SMALL
#define USUALLY(size, small) (small)
#else
#define USUALLY(size, small) (size)
#endif

/* Records a failure, printf-style, unless one is recorded already, and returns its status.
** offset: as bpe_error has it. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
bpe_status
set_error(bpe_error *, bpe_status, uint64_t offset, const char *format, ...);

/* Inline, so that an analyzer of the caller sees that it is never BPE_OK. */
static inline bpe_status set_nomem(bpe_error *e) {
  (void)set_error(e, BPE_NOMEM, 0, "out of memory");
  return BPE_NOMEM;
}

/* Bytes as they may stand in a message: malformed ones and control characters as \xHH, cut with
** "..." after about 60 bytes. Returns out. */
typedef struct quoted {
  char text[80];
} quoted;
const char *quote_bytes(quoted *out, const void *bytes, size_t len);

/* count * size bytes, uninitialised or zeroed; NULL when out of memory or past SIZE_MAX. A count
** of 0 gives a real, freeable object. */
void *mem_new(const bpe_alloc *, size_t count, size_t size);
void *mem_zero(const bpe_alloc *, size_t count, size_t size);
void mem_free(const bpe_alloc *, void *);
/* Makes room for `need` elements in *list by at least half as much again; *cap changes only on
** success, and *list is then whatever the allocator moved it to, and not NULL. */
bool mem_grow_more(const bpe_alloc *, void **list, size_t *cap, size_t need, size_t size);

static inline bool mem_grow(const bpe_alloc *a, void **list, size_t *cap, size_t need,
                            size_t size) {
  return (*list != NULL && need <= *cap) || mem_grow_more(a, list, cap, need, size);
}

/* Asks the system for large pages, a hint, for a block that will be written from end to end: a
** table of some MB is then there after a few page faults instead of thousands. */
void mem_all_used(void *block, size_t bytes);

static inline bool size_add(size_t a, size_t b, size_t *sum) {
  *sum = a + b;
  return *sum >= a;
}

enum { CACHE_LINE = 64 };

/* The first address on a cache line of its own in a block that has CACHE_LINE - 1 bytes to spare. */
static inline void *cache_aligned(void *block) {
  uint8_t *const at = block;
  return at + (0 - (uintptr_t)at) % CACHE_LINE;
}

/* Counts long work, and asks whether to stop. A unit of work is to take a nanosecond or a few, so
** that some PACE_STRIDE of them between two questions take about one millisecond.
**
**     pace p = pace_of(&alloc);
**     for (...) { ...; if ((st = pace_add(&p, 4, e)) != BPE_OK) return st; }
*/
enum { PACE_STRIDE = 1 << 18 };

typedef struct pace {
  int (*stop)(void *ctx); /* NULL: never */
  void *ctx;
  size_t work;  /* since the last question */
  bool stopped; /* stays */
} pace;

static inline pace pace_of(const bpe_alloc *a) {
  return (pace){.stop = a->stop, .ctx = a->ctx};
}

bool pace_ask(pace *); /* true: stop */

/* The same for a loop that has no status to return. */
static inline bool pace_stopped(pace *p, size_t units) {
  p->work += units;
  return p->work >= PACE_STRIDE && pace_ask(p);
}

bpe_status set_stopped(bpe_error *);
bpe_status set_stopped_at(bpe_error *, size_t at);

static inline bpe_status pace_add(pace *p, size_t units, bpe_error *e) {
  return pace_stopped(p, units) ? set_stopped(e) : BPE_OK;
}

/* memcpy, and mem_zero of much memory: NULL with *e set where it failed or was stopped. */
bpe_status pace_copy(pace *, void *to, const void *from, size_t len, bpe_error *);
void *pace_zero(pace *, const bpe_alloc *, size_t count, size_t size, bpe_error *);

/* Sorts n elements, of which equals may come in any order, in memory for as many more. Unlike
** qsort it takes that from the allocator and can be stopped; the list is then in no order. */
bpe_status pace_sort(pace *, const bpe_alloc *, void *list, size_t n, size_t size,
                     int (*compare)(const void *, const void *), bpe_error *);

/* For a loop that writes: whether it need not go on, because the buffer failed or is to stop, which
** fails it. */
static inline bool buffer_failed(bpe_buffer *b, pace *p, size_t units) {
  if (pace_stopped(p, units) && b->status == BPE_OK) b->status = BPE_STOPPED;
  return b->status != BPE_OK;
}

/* The buffer's status, with its failure recorded. */
bpe_status buffer_status(const bpe_buffer *, bpe_error *);

/* The smallest power of two >= n and >= least; least is a power of two. 0: does not fit. */
size_t power_of_two(size_t n, size_t least);

#endif
