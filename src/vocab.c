/* vocab.c - checks a tokenizer's tables and indexes them. See vocab.h.
**
** vocab_seal refuses, naming the first offender: an empty token, an id given to two tokens (two
** specials may share one, but not hundreds), a pair listed twice, a merge whose operands or result
** are no tokens, whose result is not the operands' bytes joined, or whose rank it shares with another result.
*/
#include "vocab.h"

enum {
  AHEAD = 16,       /* entries or merges whose places in tables are fetched ahead */
  TOKEN_LINES = 5,  /* eighths of a line for each entry */
  MAX_SHARING = 256 /* special tokens of one id, which are looked through one by one */
};

/* Units of work of a step for each entry or merge. */
enum { LOOK = 2, INDEX = 16, CHECK = 64 };

void vocab_clear(vocab *v) {
  const bpe_alloc a = v->alloc;
  mem_free(&a, v->entries);
  mem_free(&a, v->named);
  mem_free(&a, v->slab);
  mem_free(&a, v->merges);
  mem_free(&a, v->counts);
  mem_free(&a, v->token_block);
  mem_free(&a, v->direct);
  mem_free(&a, v->byte_pairs);
  pair_map_clear(&v->pairs, &a);
  memset(v, 0, sizeof *v);
}

size_t vocab_find_id(const vocab *v, uint32_t id) {
  if (id < v->n_dense) return id;
  size_t low = v->n_dense, high = v->n_entries;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (v->entries[middle].id < id) low = middle + 1;
    else high = middle;
  }
  return low < v->n_entries && v->entries[low].id == id ? low : v->n_entries;
}

/* Loops that do next to nothing for each element ask once for a part of them. */
enum { PART = 1 << 10 };

static size_t part_end(size_t i, size_t n) {
  return n - i < PART ? n : i + PART;
}

static int compare_entries(const void *a, const void *b) {
  const vocab_entry *x = a, *y = b;
  if (x->id != y->id) return x->id < y->id ? -1 : 1;
  return x->offset < y->offset ? -1 : x->offset > y->offset; /* as they were added */
}

bpe_status vocab_sort(vocab *v, pace *p, bpe_error *e) {
  bool sorted = true;
  for (size_t i = 1, end; i < v->n_entries && sorted && !pace_stopped(p, (size_t)PART * LOOK);
       i = end) {
    end = part_end(i, v->n_entries);
    for (size_t k = i; k < end && sorted; k++)
      sorted = compare_entries(&v->entries[k - 1], &v->entries[k]) < 0;
  }
  bpe_status st = pace_add(p, LOOK, e);
  if (!sorted && st == BPE_OK)
    st = pace_sort(p, &v->alloc, v->entries, v->n_entries, sizeof *v->entries, compare_entries, e);
  v->n_dense = 0;
  for (size_t end = 0;
       v->n_dense == end && end < v->n_entries && !pace_stopped(p, (size_t)PART * LOOK);) {
    end = part_end(end, v->n_entries);
    while (v->n_dense < end && v->entries[v->n_dense].id == v->n_dense) v->n_dense++;
  }
  return st == BPE_OK ? pace_add(p, LOOK, e) : st;
}

/* Sorts the entries and sets what follows from their order. */
static bpe_status seal_entries(vocab *v, pace *p, bpe_error *e) {
  const bpe_status sorted = vocab_sort(v, p, e);
  if (sorted != BPE_OK) return sorted;
  memset(v->byte_ids, 0xff, sizeof v->byte_ids);
  size_t sharing = 0;
  for (size_t i = 0; i < v->n_entries; i++) {
    const vocab_entry *t = &v->entries[i];
    if (t->id == BPE_NONE)
      return set_error(e, BPE_BADMODEL, t->id, "id too large: %lu", (unsigned long)t->id);
    if (t->len == 0)
      return set_error(e, BPE_BADMODEL, t->id, "empty token: id %lu", (unsigned long)t->id);
    if (i > 0 && t->id == t[-1].id) {
      if (t->kind == BPE_TOKEN || t[-1].kind == BPE_TOKEN)
        return set_error(e, BPE_BADMODEL, t->id, "two tokens with one id: %lu",
                         (unsigned long)t->id);
      if (++sharing == MAX_SHARING)
        return set_error(e, BPE_BADMODEL, t->id, "more than %d tokens share an id: %lu",
                         MAX_SHARING, (unsigned long)t->id);
    } else {
      sharing = 0;
      v->n_ids++;
    }
    if (t->len > v->longest) v->longest = t->len;
    v->n_named += t->kind != BPE_TOKEN;
    v->any_flags |= t->flags;
    const uint8_t first = v->slab[t->offset];
    const unsigned role = t->flags & (ENTRY_FALLBACK | ENTRY_UNUSED);
    if (entry_merges(t) && t->len == 1 && role == (v->chars ? ENTRY_FALLBACK : 0u) &&
        v->byte_ids[first] == BPE_NONE)
      v->byte_ids[first] = t->id;
    if (i % PART == 0 && pace_stopped(p, (size_t)PART * LOOK)) return set_stopped(e);
  }
  return BPE_OK;
}

static inline piece_key vocab_key(const vocab *v, const vocab_entry *t) {
  const uint8_t *s = vocab_bytes(v, t);
  return t->len <= KEY_BYTES ? key_short(s, t->len) : key_long(s, t->len);
}

static token_line *next_line(const vocab *v, token_line *line) {
  return line + 1 == v->token_lines + v->n_token_lines ? v->token_lines : line + 1;
}

/* The entry of this line that has these bytes, and 1; 0: none. */
static inline uint32_t find_in(const vocab *v, const token_line *line, const piece_key *k,
                               const uint8_t *s, size_t len) {
  for (unsigned i = key_place(line->keys, k); i < 3 && line->entries[i] != 0; i++) {
    if (len <= KEY_BYTES) return line->entries[i];
    const vocab_entry *e = &v->entries[line->entries[i] - 1];
    if (e->len == len && memcmp(vocab_bytes(v, e), s, len) == 0) return line->entries[i];
  }
  return 0;
}

size_t vocab_find_key(const vocab *v, piece_key k, const uint8_t *s, size_t len) {
  for (token_line *line = vocab_line(v, k);; line = next_line(v, line)) {
    const uint32_t found = find_in(v, line, &k, s, len);
    if (found != 0) return found - 1;
    if (line->over == 0) return v->n_entries;
  }
}

/* Gives an entry the first place there is for its key. Equal bytes: the lower id, which is there
** already, is the one to be found. */
static void index_entry(vocab *v, size_t at, const piece_key *k) {
  const vocab_entry *t = &v->entries[at];
  token_line *line = vocab_line(v, *k);
  for (;;) {
    if (find_in(v, line, k, vocab_bytes(v, t), t->len) != 0) return;
    unsigned i = 0;
    while (i < 3 && line->entries[i] != 0) i++;
    if (i < 3) {
      line->keys[i] = *k;
      line->entries[i] = (uint32_t)at + 1;
      return;
    }
    line->over = TOKEN_OVER;
    line = next_line(v, line);
  }
}

/* Indexes the entries that merge and are, or are not, last choices. Each has its line fetched while
** those AHEAD of it are put into theirs. */
static bpe_status index_some(vocab *v, bool last, pace *p, bpe_error *e) {
  piece_key keys[AHEAD];
  for (size_t k = 0; k < v->n_entries + AHEAD; k++) {
    piece_key *const key = &keys[k % AHEAD];
    if (k >= AHEAD) {
      const vocab_entry *t = &v->entries[k - AHEAD];
      const unsigned late = t->flags & (ENTRY_FALLBACK | ENTRY_UNUSED);
      if (entry_merges(t) && last == (late != 0)) index_entry(v, k - AHEAD, key);
    }
    if (k < v->n_entries) {
      *key = vocab_key(v, &v->entries[k]);
      PREFETCH(vocab_line(v, *key));
    }
    const bpe_status st = pace_add(p, INDEX, e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

/* Most are at the end, and the walk is over once all are found. */
static bpe_status list_named(vocab *v, pace *p, bpe_error *e) {
  v->named = mem_new(&v->alloc, v->n_named, sizeof *v->named);
  if (v->named == NULL) return set_nomem(e);
  for (size_t i = v->n_entries, left = v->n_named; left > 0 && !pace_stopped(p, LOOK);)
    if (v->entries[--i].kind != BPE_TOKEN) v->named[--left] = (uint32_t)i;
  return pace_add(p, LOOK, e);
}

static bpe_status index_bytes(vocab *v, pace *p, bpe_error *e) {
  const size_t n = v->n_entries / 8 * TOKEN_LINES + TOKEN_LINES;
  if (v->n_entries >= TOKEN_OVER - 1) return set_error(e, BPE_TOOBIG, 0, "too many tokens");
  v->token_block = pace_zero(p, &v->alloc, n + 1, sizeof *v->token_lines, e);
  if (v->token_block == NULL) return p->stopped ? BPE_STOPPED : BPE_NOMEM;
  v->direct = mem_zero(&v->alloc, v->n_entries / 64 + 1, sizeof *v->direct);
  if (v->direct == NULL ||
      !mem_grow(&v->alloc, (void **)&v->slab, &v->slab_cap, v->slab_len + KEY_SLACK, 1))
    return set_nomem(e);
  v->token_lines = cache_aligned(v->token_block);
  v->n_token_lines = n;
  bpe_status st = index_some(v, false, p, e);
  const bool any_last = (v->any_flags & (ENTRY_FALLBACK | ENTRY_UNUSED)) != 0;
  if (any_last && st == BPE_OK) st = index_some(v, true, p, e);
  return st;
}

static int compare_merges(const void *a, const void *b) {
  const vocab_merge *x = a, *y = b;
  if (x->rank != y->rank) return x->rank < y->rank ? -1 : 1;
  if (x->left != y->left) return x->left < y->left ? -1 : 1;
  return x->right < y->right ? -1 : x->right > y->right;
}

/* Sorts the merges and, beside them, their counts. */
static bpe_status sort_merges(vocab *v, pace *p, bpe_error *e) {
  bool sorted = true;
  for (size_t i = 1, end; i < v->n_merges && sorted && !pace_stopped(p, (size_t)PART * LOOK);
       i = end) {
    end = part_end(i, v->n_merges);
    for (size_t k = i; k < end && sorted; k++)
      sorted = compare_merges(&v->merges[k - 1], &v->merges[k]) <= 0;
  }
  bpe_status st = pace_add(p, LOOK, e);
  if (sorted || st != BPE_OK) return st;
  if (v->counts == NULL)
    return pace_sort(p, &v->alloc, v->merges, v->n_merges, sizeof *v->merges, compare_merges, e);
  struct pair {
    vocab_merge merge;
    uint64_t count;
  } * list; /* merge first: one comparison */
  list = mem_new(&v->alloc, v->n_merges, sizeof *list);
  if (list == NULL) return set_nomem(e);
  for (size_t i = 0; i < v->n_merges && !pace_stopped(p, LOOK); i++) {
    list[i].merge = v->merges[i];
    list[i].count = v->counts[i];
  }
  st = pace_add(p, LOOK, e);
  if (st == BPE_OK)
    st = pace_sort(p, &v->alloc, list, v->n_merges, sizeof *list, compare_merges, e);
  for (size_t i = 0; i < v->n_merges && st == BPE_OK; i++) {
    v->merges[i] = list[i].merge;
    v->counts[i] = list[i].count;
    st = pace_add(p, LOOK, e);
  }
  mem_free(&v->alloc, list);
  return st;
}

static bpe_status bad_merge(const vocab_merge *m, const char *what, bpe_error *e) {
  return set_error(e, BPE_BADMODEL, m->rank, "%s: merge %lu (%lu, %lu)", what,
                   (unsigned long)m->rank, (unsigned long)m->left, (unsigned long)m->right);
}

static const vocab_entry *operand(const vocab *v, uint32_t id) {
  const size_t i = vocab_find_id(v, id);
  if (i == v->n_entries || !entry_merges(&v->entries[i])) return NULL;
  return v->entries[i].flags & (ENTRY_FALLBACK | ENTRY_UNUSED) ? NULL : &v->entries[i];
}

static bpe_status check_merge(const vocab *v, const vocab_merge *m, pace *p, bpe_error *e) {
  const vocab_entry *l = operand(v, m->left), *r = operand(v, m->right), *t = operand(v, m->id);
  if (l == NULL || r == NULL) return bad_merge(m, "operand is no token", e);
  if (t == NULL) return bad_merge(m, "result is no token", e);
  if ((uint64_t)l->len + r->len != t->len ||
      memcmp(vocab_bytes(v, t), vocab_bytes(v, l), l->len) != 0 ||
      memcmp(vocab_bytes(v, t) + l->len, vocab_bytes(v, r), r->len) != 0)
    return bad_merge(m, "result is not its operands joined", e);
  return pace_add(p, CHECK + t->len / 4, e);
}

static bpe_status index_merges(vocab *v, pace *p, bpe_error *e) {
  bpe_status st = sort_merges(v, p, e);
  if (st != BPE_OK) return st;
  const uint32_t most_id = v->n_entries == 0 ? 0 : v->entries[v->n_entries - 1].id;
  st = pair_map_init(&v->pairs, &v->alloc, v->merges, v->n_merges, most_id, p, e);
  if (st != BPE_OK) return st;
  for (size_t i = 0; i < v->n_merges; i++) {
    const vocab_merge *m = &v->merges[i];
    if (i + AHEAD < v->n_merges) pair_map_fetch(&v->pairs, i + AHEAD);
    if (!v->vouched && (st = check_merge(v, m, p, e)) != BPE_OK) return st;
    if (m->rank == BPE_NONE) return bad_merge(m, "rank too large", e);
    if (i > 0 && m->rank == m[-1].rank && m->id != m[-1].id)
      return bad_merge(m, "two results share a rank", e);
    if (!pair_map_add(&v->pairs, i)) return bad_merge(m, "pair listed twice", e);
    if (i % PART == 0 && pace_stopped(p, (size_t)PART * INDEX)) return set_stopped(e);
  }
  return BPE_OK;
}

/* The merges of single bytes, which is where merging any piece begins. */
static bpe_status index_byte_pairs(vocab *v, pace *p, bpe_error *e) {
  v->byte_pairs = mem_new(&v->alloc, 1 << 16, sizeof *v->byte_pairs);
  if (v->byte_pairs == NULL) return set_nomem(e);
  memset(v->byte_pairs, 0xff, (1 << 16) * sizeof *v->byte_pairs);
  if (v->chars) return BPE_OK;
  uint32_t order = 0;
  for (size_t i = 0; i < v->n_merges; i++) {
    const vocab_merge *m = &v->merges[i];
    if (i != 0 && m->rank != m[-1].rank) order = (uint32_t)i;
    if (i % PART == 0 && pace_stopped(p, (size_t)PART * LOOK)) return set_stopped(e);
    const vocab_entry *t = &v->entries[vocab_find_id(v, m->id)];
    if (t->len != 2) continue;
    const uint8_t *s = vocab_bytes(v, t);
    if (v->byte_ids[s[0]] == m->left && v->byte_ids[s[1]] == m->right)
      v->byte_pairs[s[0] << 8 | s[1]] = (byte_pair){order, m->id};
  }
  return BPE_OK;
}

bpe_status vocab_seal(vocab *v, bpe_error *e) {
  pace p = pace_of(&v->alloc);
  bpe_status st = seal_entries(v, &p, e);
  if (st == BPE_OK) st = list_named(v, &p, e);
  if (st == BPE_OK) st = index_bytes(v, &p, e);
  if (st == BPE_OK) st = index_merges(v, &p, e);
  if (st == BPE_OK) st = index_byte_pairs(v, &p, e);
  return st;
}
