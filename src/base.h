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
** success, and *list is then whatever the allocator moved it to. */
bool mem_grow(const bpe_alloc *, void **list, size_t *cap, size_t need, size_t size);

static inline bool size_add(size_t a, size_t b, size_t *sum) {
  *sum = a + b;
  return *sum >= a;
}

/* The buffer's status, with its failure recorded. */
bpe_status buffer_status(const bpe_buffer *, bpe_error *);

/* The smallest power of two >= n and >= least; least is a power of two. 0: does not fit. */
size_t power_of_two(size_t n, size_t least);

#endif
