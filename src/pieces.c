/* pieces.c - looking up and filling the table of pieces.h. */
#include "pieces.h"

enum {
  LEAST_LINES = 4,
  LEAST_POOL = 4 * PIECES_LONGEST * 3,
  POOL_PARTS = 8, /* of the ring, made free one at a time */
  POOL_SHARE = 11 /* of 32 parts that there are in all */
};

/* In the rest of a long piece's value: its ids are kept, not its bytes. */
#define HAS_IDS (UINT32_C(1) << (VALUE_BITS - 1))

static enum piece_width best_width(void) {
#ifdef HAVE_AVX512
  if (avx512_runs()) return WIDTH_64;
#endif
#ifdef HAVE_AVX2
  if (avx2_runs()) return WIDTH_32;
#endif
  return WIDTH_16;
}

bool pieces_init(piece_table *t, const bpe_alloc *a, const vocab *v, size_t bytes) {
  *t = (piece_table){.alloc = *a, .v = v};
  t->width = best_width();
  t->high_bits = v->n_entries == 0 || v->entries[v->n_entries - 1].id >> 18 == 0 ? 2 : 8;
  size_t pool = bytes / 32 * POOL_SHARE;
  if (pool < LEAST_POOL) pool = LEAST_POOL;
  if (pool >= HAS_IDS) pool = HAS_IDS - 1;
  t->pool_cap = t->pool_free = (uint32_t)pool;
  t->n_lines = bytes > pool ? (bytes - pool) / sizeof *t->lines : 0;
  if (t->n_lines < LEAST_LINES) t->n_lines = LEAST_LINES;
  if (t->n_lines > UINT32_MAX) return false;
  t->block = mem_zero(a, t->n_lines * sizeof *t->lines + CACHE_LINE, 1);
  t->pool = mem_new(a, pool + PACKED_SLACK, 1);
  if (t->block == NULL || t->pool == NULL) {
    pieces_clear(t);
    return false;
  }
  t->lines = cache_aligned(t->block);
  return true;
}

void pieces_clear(piece_table *t) {
  mem_free(&t->alloc, t->block);
  mem_free(&t->alloc, t->pool);
  t->block = t->lines = NULL;
  t->pool = NULL;
}

size_t pieces_bytes(const piece_table *t) {
  return t->n_lines * sizeof *t->lines + t->pool_cap;
}

/* ---- Keys --------------------------------------------------------------------------------- */

void piece_text_init(piece_text *x, const uint8_t *bytes, size_t len) {
  const size_t tail = len < 16 ? len : 16;
  x->bytes = bytes;
  x->safe = len - tail + (tail == 16);
  memset(x->tail, 0, sizeof x->tail);
  if (tail != 0) memcpy(x->tail, bytes + x->safe - (tail == 16), tail);
}

/* Where 16 bytes may be read that begin with those of a piece that starts at `at`. */
static inline const uint8_t *readable(const piece_text *x, size_t at) {
  return at < x->safe ? x->bytes + at : x->tail + (at - (x->safe != 0 ? x->safe - 1 : 0));
}

piece_key pieces_key(const piece_text *x, size_t at, size_t len) {
  return len <= KEY_BYTES ? key_short(readable(x, at), len) : key_long(x->bytes + at, len);
}

static inline size_t first_line(const piece_table *t, piece_key k) {
  return hash_scaled(key_hash(k), t->n_lines);
}

static inline size_t second_line(const piece_table *t, piece_key k) {
  return hash_scaled((key_hash(k) ^ k.high) * KEY_FACTOR_HIGH, t->n_lines);
}

/* The place of this key in its line; PIECES_WAYS: it is not there. */
static ALWAYS_INLINE unsigned place_in(const piece_line *line, const piece_key *k) {
  return key_place(line->keys, k);
}

#ifdef HAVE_AVX2
/* By which halves of keys are equal, two bits for each key; those above are of no key. */
#define NO_THIRD 3, 3, 3, 0, 3, 3, 3, 0, 3, 3, 3, 0, 1, 1, 1, 0
#define THIRD 2, 2, 2, 0, 2, 2, 2, 0, 2, 2, 2, 0, 1, 1, 1, 0
#define PLACES NO_THIRD, NO_THIRD, NO_THIRD, THIRD
static const uint8_t place_of[256] = {PLACES, PLACES, PLACES, PLACES};
#undef PLACES
#undef THIRD
#undef NO_THIRD

/* The same; the fourth 16 bytes of the line are no key, and what they compare to is left out. */
AVX2_TARGET static ALWAYS_INLINE unsigned avx2_place_in(const piece_line *line,
                                                        const piece_key *k) {
  const __m256i key =
      _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)k));
  const __m256i *const keys = (const __m256i *)(const void *)line->keys;
  const __m256i a = _mm256_cmpeq_epi64(_mm256_load_si256(keys), key);
  const __m256i b = _mm256_cmpeq_epi64(_mm256_load_si256(keys + 1), key);
  const unsigned m = (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(a)) |
                     (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd(b)) << 4;
  return place_of[m];
}
#endif

#ifdef HAVE_AVX512
AVX512_TARGET static ALWAYS_INLINE unsigned avx512_place_in(const piece_line *line,
                                                            const piece_key *k) {
  const __m512i key = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)k));
  const __mmask8 equal = _mm512_cmpeq_epi64_mask(_mm512_loadu_si512((const void *)line->keys), key);
  return place_of[(unsigned)equal];
}
#endif

/* ---- The pool ----------------------------------------------------------------------------- */

/* Drops the values that point to pool[from .. to). */
static void drop(piece_table *t, uint32_t from, uint32_t to) {
  t->n_dropped++;
  for (size_t i = 0; i < t->n_lines; i++) {
    for (int k = 0; k < PIECES_WAYS; k++) {
      uint32_t *value = &t->lines[i].values[k], rest = *value & NO_IDS;
      const bool of_long = key_is_long(t->lines[i].keys[k]);
      if (of_long) rest &= ~HAS_IDS;
      if ((of_long || pieces_count(*value) > 1) && rest >= from && rest < to) *value = 0;
    }
  }
}

/* Room for n bytes; returns the place. n is far below pool_cap. */
static uint32_t take(piece_table *t, uint32_t n) {
  if (n > t->pool_cap - t->pool_at) t->pool_at = t->pool_free = 0;
  while (n > t->pool_free - t->pool_at) {
    const uint32_t part = t->pool_cap / POOL_PARTS + 1, left = t->pool_cap - t->pool_free;
    const uint32_t to = t->pool_free + (part < left ? part : left);
    drop(t, t->pool_free, to);
    t->pool_free = to;
  }
  t->pool_at += n;
  return t->pool_at - n;
}

static uint32_t put_ids(piece_table *t, const uint32_t *ids, size_t n) {
  const size_t n_high = (n * t->high_bits + 7) / 8;
  const uint32_t place = take(t, (uint32_t)(2 * n + n_high));
  uint8_t *const low = t->pool + place, *const high = low + 2 * n;
  memset(high, 0, n_high);
  for (size_t i = 0, bit = 0; i < n; i++, bit += t->high_bits) {
    low[2 * i] = (uint8_t)ids[i];
    low[2 * i + 1] = (uint8_t)(ids[i] >> 8);
    high[bit / 8] = (uint8_t)(high[bit / 8] | ids[i] >> 16 << bit % 8);
  }
  return place;
}

/* Whether s begins with the bytes of a token; it has `len` bytes, and the token not more. */
static inline bool begins_with(const vocab *v, const vocab_entry *e, const uint8_t *s, size_t len) {
  const uint8_t *bytes = vocab_bytes(v, e);
  uint64_t a, b;
  if (e->len > sizeof a || len < sizeof a || v->slab_cap - e->offset < sizeof a)
    return memcmp(s, bytes, e->len) == 0;
  memcpy(&a, s, sizeof a); /* one comparison, without a branch on the length */
  memcpy(&b, bytes, sizeof b);
  const unsigned rest = 64 - 8 * e->len;
  return (LITTLE_ENDIAN_WORDS ? (a ^ b) << rest : (a ^ b) >> rest) == 0;
}

/* Whether the bytes of these ids are s. */
static bool spells(const piece_table *t, const uint8_t *ids, size_t n, const uint8_t *s,
                   size_t len) {
  for (size_t i = 0; i < n; i++) {
    const size_t k = vocab_find_id(t->v, kept_id(t, ids, n, i));
    if (k == t->v->n_entries) return false;
    const vocab_entry *e = &t->v->entries[k];
    if (e->len > len || !begins_with(t->v, e, s, len)) return false;
    s += e->len;
    len -= e->len;
  }
  return len == 0;
}

/* The value of a long piece that its key found, as a short piece has it; 0 if it is another. */
static uint32_t long_value(const piece_table *t, uint32_t value, const uint8_t *s, size_t len) {
  const uint32_t count = pieces_count(value), place = value & (HAS_IDS - 1);
  if (value == 0) return 0;
  if ((value & HAS_IDS) == 0)
    return memcmp(t->pool + place, s, len) == 0 ? count << VALUE_BITS | NO_IDS : 0;
  if (!spells(t, t->pool + place, count, s, len)) return 0;
  return count << VALUE_BITS | (count == 1 ? kept_id(t, t->pool + place, 1, 0) : place);
}

/* ---- Looking up --------------------------------------------------------------------------- */

uint32_t pieces_find(const piece_table *t, const piece_text *x, piece_key k, size_t at,
                     size_t len) {
  if (len > PIECES_LONGEST) return 0;
  const piece_line *line = &t->lines[first_line(t, k)];
  uint32_t value = line->values[place_in(line, &k)];
  if (value == 0) {
    line = &t->lines[second_line(t, k)];
    value = line->values[place_in(line, &k)];
  }
  return len <= KEY_BYTES ? value : long_value(t, value, x->bytes + at, len);
}

/* A piece's key where it is not just 15 bytes or fewer, far from the end of the text. */
static piece_key other_key(const piece_text *x, const uint8_t *s, size_t len) {
  return pieces_key(x, (size_t)(s - x->bytes), len);
}

void pieces_collect(const piece_table *t, piece_batch *b, const piece_text *x, size_t from,
                    size_t base, const size_t *ends, size_t n) {
  const piece_line *const lines = t->lines;
  const size_t n_lines = t->n_lines;
  const uint8_t *const origin = x->bytes + base, *const safe = x->bytes + x->safe;
  const uint8_t *at = x->bytes + from;
  piece_probe *p = b->probes + b->n;
  if (b->n == 0) b->n_long = 0;
  for (const size_t *const end = ends + n; ends < end; ends++, p++) {
    const uint8_t *const stop = origin + *ends;
    const size_t len = (size_t)(stop - at);
    p->start = at;
    if (len <= KEY_BYTES && at < safe) {
      p->key = key_short(at, len);
    } else {
      if (len > KEY_BYTES) b->longs[b->n_long++] = (uint32_t)(p - b->probes);
      p->key = other_key(x, at, len);
    }
    p->line = lines + hash_scaled(key_hash(p->key), n_lines);
    PREFETCH(p->line);
    at = stop;
  }
  p->start = at;
  b->n += n;
}

/* The first look at each piece, in the first of its lines. */
static void first_look(piece_batch *b) {
  for (size_t i = 0, n = b->n; i < n; i++) {
    const piece_probe *p = &b->probes[i];
    b->values[i] = p->line->values[place_in(p->line, &p->key)];
  }
}

/* Notes which values are 0, and adds up the numbers of ids. */
static uint64_t sum_up(piece_batch *b) {
  uint64_t sum = 0;
  size_t n_missed = 0;
  for (size_t i = 0; i < b->n; i++) {
    sum += pieces_count(b->values[i]);
    b->missed[n_missed] = (uint32_t)i;
    n_missed += b->values[i] == 0;
  }
  b->n_missed = n_missed;
  return sum;
}

#ifdef HAVE_AVX512
AVX512_TARGET static void avx512_first_look(piece_batch *b) {
  for (size_t i = 0, n = b->n; i < n; i++) {
    const piece_probe *p = &b->probes[i];
    b->values[i] = p->line->values[avx512_place_in(p->line, &p->key)];
  }
}

AVX512_TARGET static uint64_t avx512_sum_up(piece_batch *b) {
  __m512i sums = _mm512_setzero_si512();
  __m512i numbers = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  size_t n_missed = 0;
  for (size_t i = 0; i < b->n; i += 16) {
    const __mmask16 own = (__mmask16)(b->n - i < 16 ? (1u << (b->n - i)) - 1 : 0xffff);
    const __m512i values = _mm512_maskz_loadu_epi32(own, b->values + i);
    const __mmask16 none = _mm512_mask_testn_epi32_mask(own, values, values);
    sums = _mm512_add_epi32(sums, _mm512_srli_epi32(values, VALUE_BITS));
    _mm512_storeu_si512(b->missed + n_missed, _mm512_maskz_compress_epi32(none, numbers));
    n_missed += (unsigned)__builtin_popcount(none);
    numbers = _mm512_add_epi32(numbers, _mm512_set1_epi32(16));
  }
  b->n_missed = n_missed;
  return (uint32_t)_mm512_reduce_add_epi32(sums);
}
#endif

#ifdef HAVE_AVX2
AVX2_TARGET static void avx2_first_look(piece_batch *b) {
  for (size_t i = 0, n = b->n; i < n; i++) {
    const piece_probe *p = &b->probes[i];
    b->values[i] = p->line->values[avx2_place_in(p->line, &p->key)];
  }
}

AVX2_TARGET static uint64_t avx2_sum_up(piece_batch *b) {
  __m256i sums = _mm256_setzero_si256();
  size_t n_missed = 0;
  for (size_t i = b->n; i % 8 != 0; i++) b->values[i] = NO_IDS; /* no ids, and not 0 */
  for (size_t i = 0; i < b->n; i += 8) {
    const __m256i values = _mm256_loadu_si256((const __m256i *)(const void *)(b->values + i));
    const __m256i none = _mm256_cmpeq_epi32(values, _mm256_setzero_si256());
    sums = _mm256_add_epi32(sums, _mm256_srli_epi32(values, VALUE_BITS));
    unsigned m = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(none));
    for (; m != 0; m &= m - 1) b->missed[n_missed++] = (uint32_t)i + (unsigned)__builtin_ctz(m);
  }
  b->n_missed = n_missed;
  uint32_t lanes[8];
  _mm256_storeu_si256((__m256i *)(void *)lanes, sums);
  uint64_t sum = 0;
  for (int i = 0; i < 8; i++) sum += lanes[i];
  return sum;
}
#endif

static uint64_t look_first(const piece_table *t, piece_batch *b) {
#ifdef HAVE_AVX512
  if (t->width == WIDTH_64) {
    avx512_first_look(b);
    return avx512_sum_up(b);
  }
#endif
#ifdef HAVE_AVX2
  if (t->width == WIDTH_32) {
    avx2_first_look(b);
    return avx2_sum_up(b);
  }
#endif
  (void)t;
  first_look(b);
  return sum_up(b);
}

uint64_t pieces_lookup(const piece_table *t, piece_batch *b) {
  uint64_t sum = look_first(t, b);
  size_t still = 0;
  for (size_t m = 0; m < b->n_missed; m++) {
    const uint32_t i = b->missed[m];
    const piece_line *line = &t->lines[second_line(t, b->probes[i].key)];
    const uint32_t value = line->values[place_in(line, &b->probes[i].key)];
    b->values[i] = value;
    sum += pieces_count(value);
    b->missed[still] = i;
    still += value == 0;
  }
  for (size_t m = 0; m < b->n_long; m++) {
    const uint32_t i = b->longs[m], value = b->values[i];
    if (value == 0) continue;
    b->values[i] = long_value(t, value, b->probes[i].start, piece_length(b, i));
    if (b->values[i] != 0) continue;
    sum -= pieces_count(value);
    b->missed[still++] = i;
  }
  b->n_missed = still;
  memset(b->values + b->n, 0, PIECES_WIDE * sizeof *b->values);
  return sum;
}

/* ---- Filling ------------------------------------------------------------------------------ */

/* An empty place in this line, or PIECES_WAYS. */
static inline unsigned empty_in(const piece_line *line) {
  const unsigned empty = (unsigned)(line->values[0] == 0) | (unsigned)(line->values[1] == 0) << 1 |
                         (unsigned)(line->values[2] == 0) << 2 | 1u << PIECES_WAYS;
  return (unsigned)__builtin_ctz(empty);
}

/* Moves some piece of a full line to its other line, if that has room. The place it leaves, or
** PIECES_WAYS. */
static unsigned make_room(piece_table *t, piece_line *line) {
  for (unsigned at = PIECES_WAYS; at-- > 0;) {
    const piece_key k = line->keys[at];
    piece_line *other = &t->lines[first_line(t, k)];
    if (other == line) other = &t->lines[second_line(t, k)];
    const unsigned to = other == line ? PIECES_WAYS : empty_in(other);
    if (to == PIECES_WAYS) continue;
    other->keys[to] = k;
    other->values[to] = line->values[at];
    line->values[at] = 0;
    return at;
  }
  return PIECES_WAYS;
}

/* Puts a key where it is, else where nothing is, else where something can move away, else in
** place of what came first to its first line. */
static void put(piece_table *t, piece_key k, uint32_t value) {
  piece_line *const first = &t->lines[first_line(t, k)];
  piece_line *const second = &t->lines[second_line(t, k)];
  piece_line *line = first;
  unsigned at = place_in(first, &k);
  if (at == PIECES_WAYS) at = place_in(line = second, &k);
  if (at == PIECES_WAYS) at = empty_in(line = first);
  if (at == PIECES_WAYS) at = empty_in(line = second);
  if (at == PIECES_WAYS) at = make_room(t, line = first);
  if (at == PIECES_WAYS) at = make_room(t, line = second);
  if (at == PIECES_WAYS) {
    line = first;
    for (at = PIECES_WAYS - 1; at > 0; at--) {
      line->keys[at] = line->keys[at - 1];
      line->values[at] = line->values[at - 1];
    }
  }
  line->keys[at] = k;
  line->values[at] = value;
}

void pieces_add(piece_table *t, piece_key k, const uint8_t *s, size_t len, const uint32_t *ids,
                size_t n, bool keep) {
  if (len > PIECES_LONGEST || n == 0 || n > UINT8_MAX) return;
  uint32_t rest = NO_IDS;
  for (size_t i = 0; keep && i < n; i++) keep = ids[i] < NO_IDS;
  if (len > KEY_BYTES) {
    if (keep) {
      rest = put_ids(t, ids, n) | HAS_IDS;
    } else {
      rest = take(t, (uint32_t)len);
      memcpy(t->pool + rest, s, len);
    }
  } else if (n == 1) {
    if (ids != NULL && ids[0] < NO_IDS) rest = ids[0];
  } else if (keep) {
    rest = put_ids(t, ids, n);
  }
  put(t, k, (uint32_t)n << VALUE_BITS | rest);
}
