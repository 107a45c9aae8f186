/* base.c - errors, memory and the growing buffer. See base.h.
**
** Nothing here prints, aborts or keeps state. A size that does not fit in size_t is treated as
** memory that cannot be had.
*/
#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* madvise */
#endif
#include "base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

bpe_status set_error(bpe_error *e, bpe_status status, uint64_t offset, const char *format, ...) {
  if (e == NULL || e->status != BPE_OK) return status;
  va_list args;
  va_start(args, format);
  e->status = status;
  e->offset = offset;
  const int n = vsnprintf(e->text, sizeof e->text, format, args);
  va_end(args);
  if (n >= (int)sizeof e->text) { /* cut: not inside a character */
    size_t end = sizeof e->text - 1;
    while (end > 0 && ((uint8_t)e->text[end - 1] & 0xc0) == 0x80) end--;
    if (end > 0 && (uint8_t)e->text[end - 1] >= 0xc0) end--;
    e->text[end] = 0;
  }
  return status;
}

const char *quote_bytes(quoted *out, const void *bytes, size_t len) {
  static const char hex[] = "0123456789abcdef";
  const uint8_t *s = bytes;
  size_t o = 0;
  for (size_t i = 0; i < len;) {
    const size_t n = bpe_utf8_next(s + i, len - i);
    const bool plain = s[i] >= 0x20 && s[i] != 0x7f && bpe_utf8_valid(s + i, n);
    if (o + 4 * n + 4 > sizeof out->text) { /* room for n escapes, "..." and NUL */
      memcpy(out->text + o, "...", 3);
      o += 3;
      break;
    }
    for (size_t k = 0; k < n; k++) {
      if (plain) {
        out->text[o++] = (char)s[i + k];
      } else {
        out->text[o++] = '\\';
        out->text[o++] = 'x';
        out->text[o++] = hex[s[i + k] >> 4];
        out->text[o++] = hex[s[i + k] & 15];
      }
    }
    i += n;
  }
  out->text[o] = 0;
  return out->text;
}

bool pace_ask(pace *p) {
  if (!p->stopped && p->stop != NULL && p->stop(p->ctx)) p->stopped = true;
  p->work = p->stopped ? PACE_STRIDE : 0; /* once stopped, always */
  return p->stopped;
}

bpe_status set_stopped_at(bpe_error *e, size_t at) {
  return set_error(e, BPE_STOPPED, at, "interrupted");
}

bpe_status set_stopped(bpe_error *e) {
  return set_stopped_at(e, 0);
}

void *mem_new(const bpe_alloc *a, size_t count, size_t size) {
  if (size != 0 && count > SIZE_MAX / size) return NULL;
  const size_t n = count * size;
  return a->resize(a->ctx, NULL, n == 0 ? 1 : n);
}

void *mem_zero(const bpe_alloc *a, size_t count, size_t size) {
  void *p = mem_new(a, count, size);
  if (p == NULL) return NULL;
  mem_all_used(p, count * size);
  memset(p, 0, count * size);
  return p;
}

/* Bytes moved in about one unit of work, and at a time. */
enum { BYTES_OF_WORK = 4, COPY_PART = 1 << 20 };

bpe_status pace_copy(pace *p, void *to, const void *from, size_t len, bpe_error *e) {
  for (size_t i = 0; i < len;) {
    const size_t n = len - i < COPY_PART ? len - i : COPY_PART;
    memcpy((uint8_t *)to + i, (const uint8_t *)from + i, n);
    i += n;
    const bpe_status st = pace_add(p, n / BYTES_OF_WORK, e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

void *pace_zero(pace *p, const bpe_alloc *a, size_t count, size_t size, bpe_error *e) {
  uint8_t *list = mem_new(a, count, size);
  if (list == NULL) {
    set_nomem(e);
    return NULL;
  }
  const size_t len = count * size;
  mem_all_used(list, len);
  for (size_t i = 0; i < len;) {
    const size_t n = len - i < COPY_PART ? len - i : COPY_PART;
    memset(list + i, 0, n);
    i += n;
    if (pace_add(p, n / BYTES_OF_WORK, e) == BPE_OK) continue;
    mem_free(a, list);
    return NULL;
  }
  return list;
}

void mem_free(const bpe_alloc *a, void *p) {
  if (p != NULL) a->resize(a->ctx, p, 0);
}

bool mem_grow_more(const bpe_alloc *a, void **list, size_t *cap, size_t need, size_t size) {
  size_t n = *cap + *cap / 2 + 16;
  if (n < need) n = need;
  if (n < *cap || n > SIZE_MAX / size) return false;
  void *p = a->resize(a->ctx, *list, n * size);
  if (p == NULL) return false;
  *list = p;
  *cap = n;
  return true;
}

void mem_all_used(void *block, size_t bytes) {
#ifdef MADV_HUGEPAGE
  enum { ANY_PAGE = 1 << 16, LARGE_PAGE = 1 << 21 }; /* no system's usual pages are larger */
  if (bytes < LARGE_PAGE) return;
  const size_t skip = (0 - (uintptr_t)block) % ANY_PAGE;
  (void)madvise((uint8_t *)block + skip, bytes - skip, MADV_HUGEPAGE);
#else
  (void)block;
  (void)bytes;
#endif
}

size_t power_of_two(size_t n, size_t least) {
  size_t p = least;
  while (p != 0 && p < n) p <<= 1;
  return p;
}

void bpe_buffer_init(bpe_buffer *b, const bpe_alloc *a, size_t limit) {
  memset(b, 0, sizeof *b);
  b->alloc = *a;
  b->limit = limit;
}

uint8_t *bpe_buffer_reserve(bpe_buffer *b, size_t len) {
  if (b->status != BPE_OK) return NULL;
  size_t need;
  if (!size_add(b->len, len, &need) ||
      !mem_grow(&b->alloc, (void **)&b->bytes, &b->cap, need == 0 ? 1 : need, 1)) {
    b->status = BPE_NOMEM;
    return NULL;
  }
  return b->bytes + b->len;
}

void bpe_buffer_commit(bpe_buffer *b, size_t len) {
  if (b->status != BPE_OK) return;
  if (b->limit != 0 && len > b->limit - b->len) b->status = BPE_TOOBIG;
  else b->len += len;
}

void bpe_buffer_append(bpe_buffer *b, const void *bytes, size_t len) {
  uint8_t *to = bpe_buffer_reserve(b, len);
  if (to != NULL && len != 0) memcpy(to, bytes, len);
  bpe_buffer_commit(b, len);
}

bpe_status buffer_status(const bpe_buffer *b, bpe_error *e) {
  if (b->status == BPE_NOMEM) return set_nomem(e);
  if (b->status == BPE_STOPPED) return set_stopped(e);
  if (b->status == BPE_TOOBIG) return set_error(e, BPE_TOOBIG, b->len, "result too big");
  return b->status;
}

void bpe_buffer_append_decimal(bpe_buffer *b, uint64_t value) {
  char digits[20];
  size_t at = sizeof digits;
  do digits[--at] = (char)('0' + value % 10);
  while ((value /= 10) != 0);
  bpe_buffer_append(b, digits + at, sizeof digits - at);
}

void bpe_buffer_clear(bpe_buffer *b) {
  const bpe_alloc a = b->alloc;
  const size_t limit = b->limit;
  mem_free(&a, b->bytes);
  bpe_buffer_init(b, &a, limit);
}
