/* special.c - the sorted list of names behind special.h. */
#include "special.h"

#include <stdlib.h>
#include <string.h>

typedef struct name_entry {
  const uint8_t *text; /* of the slab */
  size_t len;
  size_t order; /* of adding: the first of equals counts */
  uint32_t id;
} name_entry;

struct bpe_finder {
  bpe_alloc alloc;
  name_entry *names; /* owned; sorted once sealed */
  size_t n, cap;
  uint8_t *slab; /* owned */
  size_t slab_len;
  bool first[256]; /* some name begins with this byte */
  int only;        /* the one byte that all names begin with, or -1 */
};

void bpe_finder_free(bpe_finder *f) {
  if (f == NULL) return;
  const bpe_alloc a = f->alloc;
  mem_free(&a, f->names);
  mem_free(&a, f->slab);
  mem_free(&a, f);
}

bpe_status special_new(const bpe_alloc *a, size_t n, size_t bytes, bpe_error *e,
                       bpe_finder **out) {
  *out = NULL;
  bpe_finder *f = mem_zero(a, 1, sizeof *f);
  if (f == NULL) return set_nomem(e);
  f->alloc = *a;
  f->cap = n;
  f->names = mem_new(a, n, sizeof *f->names);
  f->slab = mem_new(a, bytes, 1);
  if (f->names == NULL || f->slab == NULL) {
    bpe_finder_free(f);
    return set_nomem(e);
  }
  *out = f;
  return BPE_OK;
}

bpe_status special_add(bpe_finder *f, const void *name, size_t len, uint32_t id, bpe_error *e) {
  if (len == 0) return set_error(e, BPE_MISUSE, f->n, "empty special token");
  uint8_t *to = f->slab + f->slab_len;
  memcpy(to, name, len);
  f->slab_len += len;
  f->names[f->n] = (name_entry){to, len, f->n, id};
  f->n++;
  return BPE_OK;
}

static int compare_names(const void *a, const void *b) {
  const name_entry *x = a, *y = b;
  const int c = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
  if (c != 0) return c;
  if (x->len != y->len) return x->len < y->len ? -1 : 1;
  return x->order < y->order ? -1 : x->order > y->order;
}

void special_seal(bpe_finder *f) {
  qsort(f->names, f->n, sizeof *f->names, compare_names);
  size_t kept = 0;
  for (size_t i = 0; i < f->n; i++) {
    const name_entry *x = &f->names[i];
    if (kept > 0 && f->names[kept - 1].len == x->len &&
        memcmp(f->names[kept - 1].text, x->text, x->len) == 0)
      continue;
    f->names[kept++] = *x;
    f->first[x->text[0]] = true;
  }
  f->n = kept;
  f->only = kept > 0 && f->names[0].text[0] == f->names[kept - 1].text[0] ? f->names[0].text[0] : -1;
}

/* First name in [low, high) whose byte at `at` is >= c; they agree before `at`, and a name that
** ends there counts as smaller than any byte. */
static size_t lower_bound(const bpe_finder *f, size_t low, size_t high, size_t at, unsigned c) {
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const name_entry *x = &f->names[middle];
    if (x->len <= at || x->text[at] < c) low = middle + 1;
    else high = middle;
  }
  return low;
}

/* Index of the longest name that begins text, or n. */
static size_t longest_at(const bpe_finder *f, const uint8_t *text, size_t len) {
  size_t low = 0, high = f->n, best = f->n;
  for (size_t at = 0; at < len && low < high; at++) {
    low = lower_bound(f, low, high, at, text[at]);
    high = lower_bound(f, low, high, at, text[at] + 1u);
    if (low < high && f->names[low].len == at + 1) best = low; /* the shortest comes first */
  }
  return best;
}

uint32_t special_id(const bpe_finder *f, const void *name, size_t len) {
  const size_t i = longest_at(f, name, len);
  return i != f->n && f->names[i].len == len ? f->names[i].id : BPE_NONE;
}

special_match special_next(const bpe_finder *f, const uint8_t *text, size_t from, size_t len) {
  for (size_t i = from; i < len && f->n > 0; i++) {
    if (f->only >= 0) {
      const uint8_t *p = memchr(text + i, f->only, len - i);
      if (p == NULL) break;
      i = (size_t)(p - text);
    } else if (!f->first[text[i]]) {
      continue;
    }
    const size_t k = longest_at(f, text + i, len - i);
    if (k != f->n) return (special_match){i, f->names[k].len, f->names[k].id};
  }
  return (special_match){len, 0, BPE_NONE};
}
