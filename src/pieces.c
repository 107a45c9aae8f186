/* pieces.c - filling the table of pieces.h. */
#include "pieces.h"

enum { LINE = 64, LONG_MARK = 255, LEAST_LINES = 4, LEAST_POOL = 1 << 10 };

#define PLACE_MASK ((UINT32_C(1) << VALUE_BITS) - 1)

bool pieces_init(piece_table *t, const bpe_alloc *a, size_t bytes) {
  *t = (piece_table){.alloc = *a, .pool_cap = LEAST_POOL};
  while (t->pool_cap < 1u << (VALUE_BITS - 1) && t->pool_cap * 8 * sizeof *t->pool <= bytes)
    t->pool_cap *= 2; /* an eighth to a quarter of all */
  const size_t pool_bytes = t->pool_cap * sizeof *t->pool;
  t->n_lines = bytes > pool_bytes ? (bytes - pool_bytes) / sizeof *t->lines : 0;
  if (t->n_lines < LEAST_LINES) t->n_lines = LEAST_LINES;
  if (t->n_lines > UINT32_MAX) t->n_lines = UINT32_MAX;
  t->block = mem_zero(a, t->n_lines * sizeof *t->lines + LINE, 1);
  t->pool = mem_new(a, t->pool_cap, sizeof *t->pool);
  if (t->block == NULL || t->pool == NULL) {
    pieces_clear(t);
    return false;
  }
  t->lines = (piece_line *)(((uintptr_t)t->block + LINE - 1) & ~(uintptr_t)(LINE - 1));
  return true;
}

void pieces_clear(piece_table *t) {
  mem_free(&t->alloc, t->block);
  mem_free(&t->alloc, t->pool);
  t->block = t->lines = NULL;
  t->pool = NULL;
}

size_t pieces_bytes(const piece_table *t) {
  return t->n_lines * sizeof *t->lines + t->pool_cap * sizeof *t->pool;
}

/* Room for n words in one stretch of the ring; returns the place. n is far below pool_cap. */
static uint32_t take(piece_table *t, uint32_t n) {
  const uint32_t left = t->pool_cap - t->pool_end % t->pool_cap;
  uint32_t place = t->pool_end;
  if (n > left) place += left; /* the end of the ring stays unused this time */
  t->pool_end = (place + n) & PLACE_MASK;
  return place & PLACE_MASK;
}

/* Whether n words taken at this place are still there. */
static bool is_held(const piece_table *t, uint32_t place) {
  return ((t->pool_end - place) & PLACE_MASK) <= t->pool_cap;
}

static uint32_t *word_at(const piece_table *t, uint32_t place) {
  return t->pool + place % t->pool_cap;
}

/* A long piece's key: its hash, and its place and length where a short one's last byte is. */
static piece_key long_key(uint64_t hash, uint32_t place, size_t len) {
  const uint64_t rest = (uint64_t)len << 32 | place;
  return (piece_key){hash, LAST_BYTE == 0 ? rest << 8 | LONG_MARK
                                          : (uint64_t)LONG_MARK << LAST_BYTE | rest};
}

static uint32_t place_of(piece_key k) {
  return (uint32_t)(LAST_BYTE == 0 ? k.high >> 8 : k.high) & PLACE_MASK;
}

uint32_t pieces_find_long(const piece_table *t, const uint8_t *s, size_t len) {
  if (len > PIECES_LONGEST) return 0;
  const uint64_t hash = hash_bytes(s, len);
  const piece_line *line = pieces_line(t, hash);
  for (int i = 0; i < PIECES_WAYS; i++) {
    const piece_key k = line->keys[i];
    if (k.low != hash || line->values[i] == 0) continue;
    const uint32_t place = place_of(k);
    const piece_key expected = long_key(hash, place, len);
    if (k.high == expected.high && is_held(t, place) && memcmp(word_at(t, place), s, len) == 0)
      return line->values[i];
  }
  return 0;
}

const uint32_t *pieces_ids(const piece_table *t, uint32_t value, uint32_t *one) {
  const uint32_t rest = value & PLACE_MASK;
  if (pieces_count(value) == 1) {
    *one = rest;
    return one;
  }
  return is_held(t, rest) ? word_at(t, rest) : NULL;
}

void pieces_add(piece_table *t, const uint8_t *s, size_t len, size_t readable, const uint32_t *ids,
                size_t n) {
  if (len > PIECES_LONGEST || n == 0 || n > UINT8_MAX) return;
  if (n == 1 && ids[0] > PLACE_MASK) return;
  const uint32_t byte_words = len <= SHORT_KEY ? 0 : (uint32_t)(len + 3) / 4;
  const uint32_t id_words = n == 1 ? 0 : (uint32_t)n;
  const uint32_t place = byte_words + id_words == 0 ? 0 : take(t, byte_words + id_words);
  piece_key k;
  uint64_t hash;
  if (len <= SHORT_KEY) {
    k = pieces_key(s, len, readable);
    hash = pieces_hash(k);
  } else {
    hash = hash_bytes(s, len);
    k = long_key(hash, place, len);
    memcpy(word_at(t, place), s, len);
  }
  const uint32_t ids_at = (place + byte_words) & PLACE_MASK;
  if (id_words != 0) memcpy(word_at(t, place) + byte_words, ids, n * sizeof *ids);
  piece_line *line = pieces_line(t, hash);
  int at = 0;
  while (at < PIECES_WAYS - 1 && line->values[at] != 0) at++;
  for (; at > 0; at--) {
    line->keys[at] = line->keys[at - 1];
    line->values[at] = line->values[at - 1];
  }
  line->keys[0] = k;
  line->values[0] = (uint32_t)n << VALUE_BITS | (n == 1 ? ids[0] : ids_at);
}
