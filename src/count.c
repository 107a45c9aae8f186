/* count.c - making, growing and reading the table of count.h; adding is inline there. */
#include "count.h"

/* Entries per slot, in eighths: linear probing stays short below. */
enum { LOAD_EIGHTHS = 5 };
enum { ENTRY_WORK = 8 }; /* units, of an entry that gets another slot */

static size_t carried(size_t slots) {
  return slots / 8 * LOAD_EIGHTHS;
}

/* Slots for n entries; 0: more than numbers of 32 bits can tell apart. */
static size_t slots_for(size_t n) {
  if (n > UINT32_MAX / 2) return 0;
  return power_of_two(n / LOAD_EIGHTHS * 8 + 8, 64);
}

bpe_status count_init(count_table *t, const bpe_alloc *a, size_t n, size_t bytes, bpe_error *e) {
  *t = (count_table){.slots = NULL};
  const size_t slots = slots_for(n);
  if (slots == 0) return set_error(e, BPE_TOOBIG, n, "too many distinct pieces");
  t->slots = mem_zero(a, slots, sizeof *t->slots);
  t->entries = mem_new(a, n, sizeof *t->entries);
  t->slab = mem_new(a, bytes, 1);
  if (t->slots == NULL || t->entries == NULL || t->slab == NULL) {
    count_clear(t, a);
    return set_nomem(e);
  }
  t->mask = slots - 1;
  t->cap = n;
  t->slab_cap = bytes;
  return BPE_OK;
}

void count_clear(count_table *t, const bpe_alloc *a) {
  mem_free(a, t->slots);
  mem_free(a, t->entries);
  mem_free(a, t->slab);
  *t = (count_table){.slots = NULL};
}

void count_reset(count_table *t) {
  memset(t->slots, 0, (t->mask + 1) * sizeof *t->slots);
  t->n = t->slab_len = 0;
  t->overflow = false;
}

static bpe_status grow_slots(count_table *t, const bpe_alloc *a, int (*stop)(void *), void *ctx,
                             bpe_error *e) {
  count_table next = *t;
  const size_t slots = slots_for(2 * t->n + 64);
  if (slots == 0) return set_error(e, BPE_TOOBIG, t->n, "too many distinct pieces");
  pace p = {.stop = stop, .ctx = ctx};
  next.slots = pace_zero(&p, a, slots, sizeof *next.slots, e);
  if (next.slots == NULL) return p.stopped ? BPE_STOPPED : BPE_NOMEM;
  next.mask = slots - 1;
  for (size_t k = 0; k < t->n; k++) {
    size_t i = count_slot(&next, &t->entries[k].key);
    while (next.slots[i] != 0) i = (i + 1) & next.mask;
    next.slots[i] = (uint32_t)k + 1;
    const bpe_status st = pace_add(&p, ENTRY_WORK, e);
    if (st != BPE_OK) {
      mem_free(a, next.slots);
      return st;
    }
  }
  mem_free(a, t->slots);
  *t = next;
  return BPE_OK;
}

bpe_status count_grow(count_table *t, const bpe_alloc *a, size_t len, int (*stop)(void *),
                      void *ctx, bpe_error *e) {
  size_t bytes;
  if (t->n >= carried(t->mask + 1)) {
    const bpe_status st = grow_slots(t, a, stop, ctx, e);
    if (st != BPE_OK) return st;
  }
  if (!mem_grow(a, (void **)&t->entries, &t->cap, t->n + 1, sizeof *t->entries))
    return set_nomem(e);
  if (len > COUNT_SHORT &&
      (!size_add(len, sizeof(size_t), &bytes) || !size_add(t->slab_len, bytes, &bytes) ||
       !mem_grow(a, (void **)&t->slab, &t->slab_cap, bytes, 1)))
    return set_nomem(e);
  return BPE_OK;
}

static size_t place_of(const count_key *k) {
  return (size_t)((k->word[1] & ~COUNT_LONG_MARK) >> COUNT_PLACE_SHIFT);
}

const uint8_t *count_bytes(const count_table *t, const count_entry *entry, uint8_t room[16],
                           size_t *len) {
  if (count_is_long(&entry->key)) {
    const uint8_t *at = t->slab + place_of(&entry->key);
    memcpy(len, at, sizeof *len);
    return at + sizeof *len;
  }
  memcpy(room, &entry->key, 16);
  *len = room[COUNT_SHORT];
  return room;
}

bool count_same_long(const count_table *t, const count_entry *entry, const count_key *k,
                     const uint8_t *s, size_t len) {
  if (entry->key.word[0] != k->word[0] || !count_is_long(&entry->key)) return false;
  size_t n;
  uint8_t room[16];
  const uint8_t *at = count_bytes(t, entry, room, &n);
  return n == len && memcmp(at, s, len) == 0;
}

bool count_insert(count_table *t, size_t slot, const count_key *k, const uint8_t *s, size_t len,
                  uint64_t weight, uint64_t first) {
  if (t->n >= t->cap || t->n >= carried(t->mask + 1)) return false;
  count_entry *entry = &t->entries[t->n];
  *entry = (count_entry){*k, weight, first};
  if (len > COUNT_SHORT) {
    const size_t left = t->slab_cap - t->slab_len;
    if (left < sizeof len || left - sizeof len < len) return false;
    entry->key.word[1] |= (uint64_t)t->slab_len << COUNT_PLACE_SHIFT;
    memcpy(t->slab + t->slab_len, &len, sizeof len);
    uint8_t *const to = t->slab + t->slab_len + sizeof len;
    if (t->pace == NULL) memcpy(to, s, len);
    else if (pace_copy(t->pace, to, s, len, NULL) != BPE_OK) return false;
    t->slab_len += sizeof len + len;
  }
  t->slots[slot] = (uint32_t)++t->n;
  return true;
}
