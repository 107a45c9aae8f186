/* merge.c - the merge loop in its three shapes. See merge.h.
**
** Why windows are exact. Call E(x) the tokens of x, and a pair of tokens (t, u) stable if
** E(tu) = [t, u].
**
** (1) Neighbours in any E(x) are stable. Merging x never crosses the boundary between t and u;
**     each time it merges inside tu it takes the lowest, leftmost pair of all, which is then the
**     lowest, leftmost inside tu; so merging tu alone takes the same steps, and ends the same.
** (2) If all neighbours in a list of tokens are stable, the list is E of its bytes. Take the
**     first merge that crosses a boundary, between t and u: up to there the merges inside tu are
**     those of tu alone, as in (1), so E(tu) would make it too. But E(tu) = [t, u].
**
** Neither step needs ranks to rise with ids, or every token to be reachable. So a long piece is
** merged in windows: each begins at one of the last tokens of what is done already,
**
**     done:    ... p | q | r | s          tail = 2: the window begins at r
**     window:            r'| s'| t | u ...
**
** and when r' = r, everything left of it may stay: (q, r') is stable because (q, r) was. If not,
** more tokens are taken back. A window whose bytes are those of the last one is not merged
** again, which makes runs of one character, or of any short period, cheap.
*/
#include "merge.h"

#include "utf8.h"

enum {
  WINDOW = SHORT_PIECE - 3, /* bytes of a window, at least, and a character that it cuts */
  TAIL = 4,                 /* tokens taken back at first */
  FAN = 16,                 /* children of a tournament node */
  MAX_LEVELS = 9,           /* FAN^MAX_LEVELS > 2^32 */
  STOP_INTERVAL = 1 << 16,  /* bytes between two questions to stop */
  START_WORK = 8,           /* units, of a symbol to begin with */
  MERGE_WORK = 64           /* and of a merge in a tournament */
};

void merge_scratch_clear(merge_scratch *m) {
  const bpe_alloc a = m->alloc;
  mem_free(&a, m->ids);
  mem_free(&a, m->window);
  mem_free(&a, m->last_ids);
  memset(m, 0, sizeof *m);
  m->alloc = a;
}

/* The same from characters, and where one is no token, from its bytes. p NULL:
** nobody may stop it. */
static size_t start_chars(const vocab *v, const uint8_t *s, size_t len, uint32_t *ids,
                          uint32_t *rank, uint32_t *to, pace *p) {
  size_t n = 0;
  for (size_t i = 0; i < len && (p == NULL || !pace_stopped(p, START_WORK));) {
    const size_t k = utf8_length(s + i, len - i);
    const size_t at = k == 0 ? v->n_entries : vocab_find_bytes(v, s + i, k);
    if (at != v->n_entries && !(v->entries[at].flags & ENTRY_UNUSED)) {
      ids[n++] = v->entries[at].id;
      i += k;
    } else {
      for (const size_t end = i + (k == 0 ? 1 : k); i < end; i++) ids[n++] = v->byte_ids[s[i]];
    }
  }
  for (size_t i = 0; i + 1 < n && (p == NULL || !pace_stopped(p, START_WORK)); i++)
    rank[i] = pair_map_find(&v->pairs, ids[i], ids[i + 1], &to[i]);
  return n;
}

/* The same of a short piece. Apart, so that merging bytes does not pay for the pace. */
static NEVER_INLINE size_t start_few_chars(const vocab *v, const uint8_t *s, size_t len,
                                           uint32_t *ids, uint32_t *rank, uint32_t *to) {
  return start_chars(v, s, len, ids, rank, to, NULL);
}

size_t merge_start(const vocab *v, const uint8_t *s, size_t len, uint32_t *ids, uint32_t *rank,
                   uint32_t *to, pace *p) {
  if (v->chars) return start_chars(v, s, len, ids, rank, to, p);
  for (size_t i = 0; i < len && !pace_stopped(p, 2); i++) {
    ids[i] = v->byte_ids[s[i]];
    if (i + 1 == len) break;
    const byte_pair x = v->byte_pairs[s[i] << 8 | s[i + 1]];
    rank[i] = x.order;
    to[i] = x.id;
  }
  return len;
}

/* Place of the least of r[0 .. n), the first of equals; n > 0. */
static inline size_t place_of_least(const uint32_t *r, size_t n) {
  uint64_t least = (uint64_t)r[0] << 32;
  for (size_t i = 1; i < n; i++) {
    const uint64_t x = (uint64_t)r[i] << 32 | i;
    least = x < least ? x : least;
  }
  return (uint32_t)least;
}

static inline uint32_t least_of(uint32_t a, uint32_t b) {
  return b < a ? b : a;
}

static inline uint32_t least_of_group(const uint32_t *k) {
  return least_of(least_of(least_of(k[0], k[1]), least_of(k[2], k[3])),
                  least_of(least_of(k[4], k[5]), least_of(k[6], k[7])));
}

/* Symbols stand in places 1 to n, and BPE_NONE, which no pair has, in 0 and n + 1, so that each has
** neighbours; `live` has a bit for each place that has a symbol. A key is the order of the pair
** that begins at a place, and the place: the least key is the lowest rank, leftmost. least[] is
** that of each GROUP of keys, so that a merge looks at the keys near it and one number a group. */
static size_t merge_short(const vocab *v, const uint8_t *s, size_t len, uint32_t *ids) {
  enum { PLACES = 64, GROUP = 8 };
  uint32_t symbol[PLACES], to[PLACES], key[PLACES], least[PLACES / GROUP];
  const uint32_t none = BPE_NONE << SHORT_PLACE_BITS;
  size_t n = len;
  if (v->chars) n = start_few_chars(v, s, len, symbol + 1, key + 1, to + 1);
  else
    for (size_t i = 0; i < n; i++) symbol[i + 1] = v->byte_ids[s[i]];
  for (size_t i = 1; i < n; i++) {
    if (!v->chars) {
      const byte_pair p = v->byte_pairs[s[i - 1] << 8 | s[i]];
      key[i] = p.order;
      to[i] = p.id;
    }
    key[i] = key[i] << SHORT_PLACE_BITS | (uint32_t)i;
  }
  const size_t n_groups = n / GROUP + 1; /* with the keys of 0 to n, and what fills the last */
  key[0] = symbol[0] = symbol[n + 1] = BPE_NONE;
  for (size_t i = n; i < n_groups * GROUP; i++) key[i] = BPE_NONE;
  size_t group = 0;
  do least[group] = least_of_group(key + group * GROUP);
  while (++group < n_groups);
  uint64_t live = ~UINT64_C(0) >> (62 - n); /* 0 to n + 1 */
  for (;;) {
    uint32_t first = least[0];
    for (size_t g = 1; g < n_groups; g++) first = least_of(first, least[g]);
    if (first >= none) break;
    const unsigned at = first & ((1u << SHORT_PLACE_BITS) - 1);
    const unsigned gone = at + 1 + (unsigned)__builtin_ctzll(live >> at >> 1);
    const unsigned right = gone + 1 + (unsigned)__builtin_ctzll(live >> gone >> 1);
    const unsigned left = 63 - (unsigned)__builtin_clzll(live & ((UINT64_C(1) << at) - 1));
    const uint32_t made = symbol[at] = to[at];
    live &= ~(UINT64_C(1) << gone);
    key[gone] = BPE_NONE;
    key[at] = pair_map_find(&v->pairs, made, symbol[right], &to[at]) << SHORT_PLACE_BITS | at;
    key[left] = pair_map_find(&v->pairs, symbol[left], made, &to[left]) << SHORT_PLACE_BITS | left;
    for (size_t g = left / GROUP; g <= gone / GROUP; g++)
      least[g] = least_of_group(key + g * GROUP);
  }
  size_t n_ids = 0;
  for (uint64_t rest = live & ~UINT64_C(1); (rest & (rest - 1)) != 0; rest &= rest - 1)
    ids[n_ids++] = symbol[__builtin_ctzll(rest)];
  return n_ids;
}

/* A tournament over ranks: level 0 has one per symbol, each level above the least of every FAN
** below, the top at most FAN. Levels are padded with BPE_NONE. */
typedef struct tournament {
  uint32_t *level[MAX_LEVELS];
  int top;
} tournament;

static inline uint32_t least_of_fan(const uint32_t *r) {
  uint32_t least = r[0];
  for (int i = 1; i < FAN; i++) least = r[i] < least ? r[i] : least;
  return least;
}

static size_t padded(size_t n) {
  return (n + FAN - 1) / FAN * FAN;
}

/* Lays the levels above level[0], whose n ranks are set, into memory that follows it. */
static void tournament_build(tournament *t, size_t n) {
  t->top = 0;
  for (size_t i = n; i < padded(n); i++) t->level[0][i] = BPE_NONE;
  while (n > FAN) {
    const uint32_t *below = t->level[t->top];
    uint32_t *above = t->level[t->top] + padded(n);
    n = padded(n) / FAN;
    for (size_t i = 0; i < n; i++) above[i] = least_of_fan(below + i * FAN);
    for (size_t i = n; i < padded(n); i++) above[i] = BPE_NONE;
    t->level[++t->top] = above;
  }
}

static inline void tournament_set(tournament *t, size_t i, uint32_t rank) {
  t->level[0][i] = rank;
  for (int k = 0; k < t->top; k++) {
    i /= FAN;
    const uint32_t least = least_of_fan(t->level[k] + i * FAN);
    if (t->level[k + 1][i] == least) return;
    t->level[k + 1][i] = least;
  }
}

/* Place of the lowest rank, the leftmost of equals. */
static inline size_t tournament_least(const tournament *t) {
  size_t i = 0; /* first child of the winner so far */
  for (int k = t->top;; k--) {
    i += place_of_least(t->level[k] + i, FAN);
    if (k == 0) return i;
    i *= FAN;
  }
}

/* Merges s into ids, which has room for len. Symbols are a list linked through next and prev. */
static bpe_status merge_window(const vocab *v, merge_scratch *m, const uint8_t *s, size_t len,
                               uint32_t *ids, size_t *n, bpe_error *e) {
  *n = 0;
  if (len >= UINT32_MAX / 8) return set_error(e, BPE_TOOBIG, 0, "piece too long to merge");
  if (!mem_grow(&m->alloc, (void **)&m->window, &m->window_cap, 3 * len + 2 * padded(len) + 256,
                sizeof *m->window))
    return set_nomem(e);
  uint32_t *to = m->window, *next = to + len, *prev = next + len;
  tournament t;
  t.level[0] = prev + len;
  pace p = {.stop = m->stop, .ctx = m->stop_ctx};
  const size_t n_start = merge_start(v, s, len, ids, t.level[0], to, &p);
  if (p.stopped) return set_stopped(e);
  for (size_t i = 0; i < n_start; i++) {
    next[i] = (uint32_t)i + 1;
    prev[i] = (uint32_t)i - 1;
  }
  t.level[0][n_start - 1] = BPE_NONE;
  tournament_build(&t, n_start);
  for (;;) {
    const size_t i = tournament_least(&t);
    if (t.level[0][i] == BPE_NONE) break;
    if (pace_stopped(&p, MERGE_WORK)) return set_stopped(e);
    const uint32_t gone = next[i];
    ids[i] = to[i];
    next[i] = next[gone];
    tournament_set(&t, gone, BPE_NONE);
    ids[gone] = BPE_NONE;
    if (next[i] < n_start) {
      prev[next[i]] = (uint32_t)i;
      tournament_set(&t, i, pair_map_find(&v->pairs, ids[i], ids[next[i]], &to[i]));
    } else {
      tournament_set(&t, i, BPE_NONE);
    }
    if (i > 0)
      tournament_set(&t, prev[i], pair_map_find(&v->pairs, ids[prev[i]], ids[i], &to[prev[i]]));
  }
  for (size_t i = 0; i < n_start; i = next[i]) ids[(*n)++] = ids[i]; /* *n <= i */
  return BPE_OK;
}

static size_t token_length(const vocab *v, uint32_t id) {
  return id == BPE_NONE ? 1 : v->entries[vocab_find_id(v, id)].len;
}

/* The window, shortened so that it does not end inside a character of the text after it. */
static size_t whole_chars(const uint8_t *s, size_t window, size_t len) {
  for (size_t k = 0; k < 3 && window < len && (s[window] & 0xc0) == 0x80; k++) window--;
  return window;
}

static bpe_status merge_any(const vocab *v, merge_scratch *m, const uint8_t *s, size_t len,
                            uint32_t *ids, size_t *n, bpe_error *e) {
  if (len > SHORT_PIECE || v->n_merges >= SHORT_MOST_ORDER)
    return merge_window(v, m, s, len, ids, n, e);
  *n = merge_short(v, s, len, ids);
  return BPE_OK;
}

static bpe_status merge_long(const vocab *v, merge_scratch *m, const uint8_t *s, size_t len,
                             size_t *n, bpe_error *e) {
  const uint8_t *last = NULL; /* the window merged last: its bytes, their number, its ids' */
  size_t last_len = 0, n_last = 0;
  size_t done = 0, asked = 0;
  for (size_t tail = TAIL; done < len;) {
    if (tail > *n) tail = *n;
    size_t from = done;
    for (size_t i = 1; i <= tail; i++) from -= token_length(v, m->ids[*n - i]);
    size_t window = WINDOW;
    if (window < 2 * (done - from)) window = 2 * (done - from);
    if (window > len - from) window = len - from;
    if (v->chars) window = whole_chars(s + from, window, len - from);
    if (last == NULL || window != last_len || memcmp(last, s + from, window) != 0) {
      if (!mem_grow(&m->alloc, (void **)&m->last_ids, &m->last_cap, window, sizeof *m->ids))
        return set_nomem(e);
      const bpe_status st = merge_any(v, m, s + from, window, m->last_ids, &n_last, e);
      if (st != BPE_OK) return st;
      last = s + from;
      last_len = window;
    }
    if (tail < *n && m->last_ids[0] != m->ids[*n - tail]) {
      tail *= 2;
      continue;
    }
    if (!mem_grow(&m->alloc, (void **)&m->ids, &m->ids_cap, *n + n_last, sizeof *m->ids))
      return set_nomem(e);
    memcpy(m->ids + (*n - tail), m->last_ids, n_last * sizeof *m->ids);
    *n += n_last - tail;
    done = from + window;
    tail = TAIL;
    if (m->stop != NULL && done - asked >= STOP_INTERVAL) {
      asked = done;
      if (m->stop(m->stop_ctx)) return set_stopped_at(e, done);
    }
  }
  return BPE_OK;
}

bpe_status merge_piece(const vocab *v, merge_scratch *m, const uint8_t *s, size_t len, size_t *n,
                       bpe_error *e) {
  *n = 0;
  if (!mem_grow(&m->alloc, (void **)&m->ids, &m->ids_cap, SHORT_PIECE, sizeof *m->ids))
    return set_nomem(e);
  if (len <= SHORT_PIECE) return merge_any(v, m, s, len, m->ids, n, e);
  return merge_long(v, m, s, len, n, e);
}
