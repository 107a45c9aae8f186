/* train_merge.c - one merge at a time over the slots of train_merge.h.
**
** Merging the pair (l, r) to T at slot p, with its neighbours x and y:
**
**     slot          s       p       q       e              q = p + len(l), e = q + len(r)
**     symbols       x       l       r       y
**     pairs         (x,l)   (l,r)   (r,y)
**     becomes       x       T               y
**     pairs         (x,T)   (T,y)   -                      (x,l) and (r,y) count less
**
** Occurrences are taken from the left, so where l = r the overlapping ones ("aaa") are outdated
** when their turn comes. The pairs with T are all new, so they need no table to be found in, only
** what with_left[x] and with_right[y] were set to since this merge began.
*/
#include "train_merge.h"

enum {
  PART = 1 << 15, /* slots after which a quick loop asks */
  BLOCK = 8       /* slots per entry of piece_of */
};

/* Units of work: */
enum {
  PIECE_WORK = 8,    /* of a look at a piece */
  SLOT_WORK = 2,     /* of a slot laid out, of the pair there counted or listed */
  TIDY_WORK = 4,     /* of a slot in a list that is tidied */
  PAIR_WORK = 16,    /* of its pair */
  SKIP_WORK = 8,     /* of a slot that is outdated */
  MERGE_WORK = 64,   /* of an occurrence merged */
  LIST_WORK = 32,    /* of the pairs beside it listed */
  SYMBOL_WORK = 128, /* of a new symbol besides */
  TOKEN_WORK = 16    /* of a token counted */
};

static const uint32_t dull = 0; /* the pair that stands for all that may never merge */

void train_clear(train_state *t) {
  const bpe_alloc a = t->alloc;
  mem_free(&a, t->text);
  mem_free(&a, t->symbol);
  mem_free(&a, t->pair);
  mem_free(&a, t->starts);
  mem_free(&a, t->weights);
  mem_free(&a, t->piece_of);
  mem_free(&a, t->pairs);
  mem_free(&a, t->lists);
  mem_free(&a, t->symbols);
  mem_free(&a, t->with_left);
  mem_free(&a, t->with_right);
  mem_free(&a, t->merges);
  memset(t, 0, sizeof *t);
  t->alloc = a;
}

/* ---- Layout -------------------------------------------------------------------------------- */

/* Sets n_slots to what the table's pieces take. */
static bpe_status count_slots(train_state *t, const count_table *table, bpe_error *e) {
  uint8_t room[16];
  size_t n = 1, len;
  for (size_t i = 0; i < table->n; i++) {
    const bpe_status st = pace_add(&t->pace, PIECE_WORK, e);
    if (st != BPE_OK) return st;
    count_bytes(table, &table->entries[i], room, &len);
    if (len < 2) continue;
    if (!size_add(n, len + 1, &n) || n >= TRAIN_NONE / 4 * 3)
      return set_error(e, BPE_TOOBIG, 0, "too much distinct text");
  }
  t->n_slots = n;
  return BPE_OK;
}

/* The entries of a table in order of first appearance: least significant digit first. */
static bpe_status sort_by_first(train_state *t, const count_table *table, uint32_t *order,
                                bpe_error *e) {
  enum { BITS = 11, DIGITS = 1 << BITS };
  uint64_t highest = 0;
  for (size_t i = 0; i < table->n; i++) {
    order[i] = (uint32_t)i;
    if (table->entries[i].first > highest) highest = table->entries[i].first;
    const bpe_status st = pace_add(&t->pace, PIECE_WORK, e);
    if (st != BPE_OK) return st;
  }
  if (t->tie != BPE_TIE_FIRST) return BPE_OK;
  uint32_t *other = mem_new(&t->alloc, table->n, sizeof *other);
  if (other == NULL) return set_nomem(e);
  bpe_status st = BPE_OK;
  for (int shift = 0; shift < 64 && highest >> shift != 0 && st == BPE_OK; shift += BITS) {
    size_t at[DIGITS + 1] = {0};
    for (size_t i = 0; i < table->n && st == BPE_OK; i++) {
      at[(table->entries[order[i]].first >> shift & (DIGITS - 1)) + 1]++;
      st = pace_add(&t->pace, PIECE_WORK, e);
    }
    for (size_t d = 0; d < DIGITS; d++) at[d + 1] += at[d];
    for (size_t i = 0; i < table->n && st == BPE_OK; i++) {
      other[at[table->entries[order[i]].first >> shift & (DIGITS - 1)]++] = order[i];
      st = pace_add(&t->pace, (size_t)2 * PIECE_WORK, e);
    }
    for (size_t i = 0; i < table->n && st == BPE_OK; i++) {
      order[i] = other[i];
      st = pace_add(&t->pace, PIECE_WORK, e);
    }
  }
  mem_free(&t->alloc, other);
  return st;
}

static bpe_status add_piece(train_state *t, const uint8_t *s, size_t len, uint64_t weight,
                            const uint8_t order[256], size_t *at, bpe_error *e) {
  const size_t from = *at, end = from + len;
  const uint32_t number = (uint32_t)t->n_pieces++;
  t->starts[number] = (uint32_t)from;
  t->weights[number] = weight;
  size_t block = (from + BLOCK - 1) / BLOCK;
  for (size_t i = from; i < end;) { /* a piece can be as long as a corpus */
    const size_t n = end - i < PART ? end - i : PART, to = i + n;
    for (; i < to; i++) {
      t->text[i] = s[i - from];
      t->symbol[i] = order[s[i - from]];
    }
    for (; block * BLOCK <= i; block++) t->piece_of[block] = number;
    const bpe_status st = pace_add(&t->pace, n * SLOT_WORK, e);
    if (st != BPE_OK) return st;
  }
  t->symbol[end] = TRAIN_NONE;
  *at = end + 1;
  return BPE_OK;
}

static bpe_status lay_out(train_state *t, const count_table *table, const uint8_t order[256],
                          bpe_error *e) {
  uint32_t *sorted = mem_new(&t->alloc, table->n, sizeof *sorted);
  if (sorted == NULL) return set_nomem(e);
  uint8_t room[16];
  size_t at = 1, len;
  t->symbol[0] = TRAIN_NONE;
  t->piece_of[0] = 0;
  bpe_status st = sort_by_first(t, table, sorted, e);
  for (size_t i = 0; i < table->n && st == BPE_OK; i++) {
    const count_entry *x = &table->entries[sorted[i]];
    const uint8_t *s = count_bytes(table, x, room, &len);
    st =
        len < 2 ? pace_add(&t->pace, PIECE_WORK, e) : add_piece(t, s, len, x->count, order, &at, e);
  }
  mem_free(&t->alloc, sorted);
  return st;
}

static uint64_t weight_at(const train_state *t, uint32_t slot) {
  size_t k = t->piece_of[slot / BLOCK];
  while (k + 1 < t->n_pieces && t->starts[k + 1] <= slot) k++;
  return t->weights[k];
}

/* ---- Pairs --------------------------------------------------------------------------------- */

static bpe_status new_pair(train_state *t, uint32_t left, uint32_t right, uint32_t *out,
                           bpe_error *e) {
  if (t->n_pairs >= TRAIN_NONE) return set_error(e, BPE_TOOBIG, 0, "too many pairs");
  if (!mem_grow(&t->alloc, (void **)&t->pairs, &t->pairs_cap, t->n_pairs + 1, sizeof *t->pairs))
    return set_nomem(e);
  *out = (uint32_t)t->n_pairs++;
  t->pairs[*out] = (train_pair){.left = left, .right = right, .next = TRAIN_NONE};
  return BPE_OK;
}

static bool may_merge(const train_state *t, uint32_t left, uint32_t right) {
  return (uint64_t)t->symbols[left].len + t->symbols[right].len <= t->max_len;
}

/* Makes the pairs of single bytes and counts them; grid[left << 8 | right] is a pair's number. */
static bpe_status count_pairs(train_state *t, uint32_t *grid, bpe_error *e) {
  uint32_t number;
  bpe_status st = new_pair(t, TRAIN_NONE, TRAIN_NONE, &number, e); /* dull */
  for (size_t i = 0; i + 1 < t->n_slots && st == BPE_OK; i++) {
    const uint32_t left = t->symbol[i], right = t->symbol[i + 1];
    if (i % PART == 0) st = pace_add(&t->pace, (size_t)PART * SLOT_WORK, e);
    if (left == TRAIN_NONE || right == TRAIN_NONE) continue;
    uint32_t *of = &grid[left << 8 | right];
    if (*of == dull && st == BPE_OK) st = new_pair(t, left, right, of, e);
    train_pair *p = &t->pairs[*of];
    p->count += weight_at(t, (uint32_t)i);
    p->n++;
    if (p->count > COUNT_MAX)
      st = set_error(e, BPE_TOOBIG, 0, "weights of a pair add up to more than 2^63 - 1");
  }
  return st;
}

/* Gives every pair that may merge a place for its list; the others count nothing from now on. */
static bpe_status place_pairs(train_state *t, bpe_error *e) {
  for (size_t k = 1; k < t->n_pairs; k++) {
    train_pair *p = &t->pairs[k];
    p->at = (uint32_t)t->lists_len;
    if (p->count < t->min_count || !may_merge(t, p->left, p->right)) p->count = 0;
    else t->lists_len += p->n;
    p->n = 0;
  }
  t->lists_cap = t->lists_len + t->lists_len / 4 + 16;
  t->lists = mem_new(&t->alloc, t->lists_cap, sizeof *t->lists);
  return t->lists == NULL ? set_nomem(e) : BPE_OK;
}

static void list_slot(train_state *t, uint32_t pair, uint32_t slot) {
  train_pair *p = &t->pairs[pair];
  t->lists[p->at + p->n++] = slot;
}

static bpe_status list_pairs(train_state *t, const uint32_t *grid, bpe_error *e) {
  for (size_t i = 0; i < t->n_slots; i++) {
    t->pair[i] = TRAIN_NONE;
    if (i + 1 < t->n_slots && t->symbol[i] != TRAIN_NONE && t->symbol[i + 1] != TRAIN_NONE) {
      const uint32_t pair = grid[t->symbol[i] << 8 | t->symbol[i + 1]];
      t->pair[i] = t->pairs[pair].count > 0 ? pair : dull;
      if (t->pair[i] != dull) list_slot(t, pair, (uint32_t)i);
    }
    if (i % PART == 0) {
      const bpe_status st = pace_add(&t->pace, (size_t)PART * SLOT_WORK, e);
      if (st != BPE_OK) return st;
    }
  }
  return BPE_OK;
}

/* ---- Symbols ------------------------------------------------------------------------------- */

static bpe_status new_symbol(train_state *t, uint32_t at, uint32_t len, bpe_error *e) {
  const size_t n = t->n_symbols + 1;
  if (!mem_grow(&t->alloc, (void **)&t->symbols, &t->symbols_cap, n, sizeof *t->symbols) ||
      !mem_grow(&t->alloc, (void **)&t->with_left, &t->left_cap, n, sizeof *t->with_left) ||
      !mem_grow(&t->alloc, (void **)&t->with_right, &t->right_cap, n, sizeof *t->with_right))
    return set_nomem(e);
  uint64_t start = 0;
  for (uint32_t i = 0; i < 8; i++) start = start << 8 | (i < len ? t->text[at + i] : 0);
  t->symbols[t->n_symbols] = (train_symbol){start, at, len};
  t->with_left[t->n_symbols] = t->with_right[t->n_symbols] = 0;
  t->n_symbols = n;
  return BPE_OK;
}

/* Single bytes may occur nowhere in the text: theirs lie behind all slots. */
static bpe_status byte_symbols(train_state *t, const uint8_t order[256], bpe_error *e) {
  for (int b = 0; b < 256; b++) t->text[t->n_slots + order[b]] = (uint8_t)b;
  bpe_status st = BPE_OK;
  for (uint32_t k = 0; k < 256 && st == BPE_OK; k++)
    st = new_symbol(t, (uint32_t)t->n_slots + k, 1, e);
  return st;
}

bpe_status train_start(train_state *t, const count_table *table, const uint8_t order[256],
                       bpe_error *e) {
  bpe_status st = count_slots(t, table, e);
  if (st != BPE_OK) return st;
  const size_t n = t->n_slots;
  t->text = mem_new(&t->alloc, n + 256, 1);
  t->symbol = mem_new(&t->alloc, n, sizeof *t->symbol);
  t->starts = mem_new(&t->alloc, table->n, sizeof *t->starts);
  t->weights = mem_new(&t->alloc, table->n, sizeof *t->weights);
  t->piece_of = mem_new(&t->alloc, n / BLOCK + 1, sizeof *t->piece_of);
  uint32_t *grid = mem_zero(&t->alloc, 1 << 16, sizeof *grid); /* all dull */
  st = BPE_NOMEM;
  if (t->text == NULL || t->symbol == NULL || t->starts == NULL || t->weights == NULL ||
      t->piece_of == NULL || grid == NULL) {
    set_nomem(e);
    goto done;
  }
  st = byte_symbols(t, order, e);
  if (st == BPE_OK) st = lay_out(t, table, order, e);
  if (st == BPE_OK) st = count_pairs(t, grid, e);
  if (st == BPE_OK) st = place_pairs(t, e);
  if (st != BPE_OK) goto done;
  t->pair = mem_new(&t->alloc, n, sizeof *t->pair);
  st = t->pair == NULL ? set_nomem(e) : list_pairs(t, grid, e);
done:
  mem_free(&t->alloc, grid);
  return st;
}

/* ---- Merging ------------------------------------------------------------------------------- */

/* Drops all slots that are outdated from the lists of the first n pairs, which lie in the order
** of the pairs, but none from the list of `kept`. On failure the lists are of no use any more. */
static bpe_status tidy_lists(train_state *t, size_t n, uint32_t kept, bpe_error *e) {
  size_t to = 0;
  for (size_t k = 0; k < n; k++) {
    train_pair *p = &t->pairs[k];
    const size_t from = p->at, end = from + p->n;
    p->at = (uint32_t)to;
    for (size_t i = from; i < end; i++) {
      if (k == kept || t->pair[t->lists[i]] == k) t->lists[to++] = t->lists[i];
      if (i % PART == 0) {
        const bpe_status st = pace_add(&t->pace, (size_t)PART * TIDY_WORK, e);
        if (st != BPE_OK) return st;
      }
    }
    p->n = (uint32_t)(to - p->at);
    const bpe_status st = pace_add(&t->pace, PAIR_WORK, e);
    if (st != BPE_OK) return st;
  }
  t->lists_len = to;
  return BPE_OK;
}

/* The pair (left, right), one of which is the newest symbol; *of is its note. */
static bpe_status note_pair(train_state *t, uint32_t *of, size_t first_new, uint32_t left,
                            uint32_t right, bpe_error *e) {
  if (*of >= first_new) return BPE_OK;
  if (may_merge(t, left, right)) return new_pair(t, left, right, of, e);
  *of = dull;
  return BPE_OK;
}

/* One occurrence more of a pair with the newest symbol, at this slot. */
static void gain(train_state *t, uint32_t pair, uint64_t weight, uint32_t slot) {
  t->pair[slot] = pair;
  if (pair == dull) return;
  t->pairs[pair].count += weight;
  t->pairs[pair].n++;
}

static void lose(train_state *t, uint32_t slot, uint64_t weight, size_t first_new) {
  const uint32_t pair = t->pair[slot];
  if (pair == dull) return;
  t->pairs[pair].count -= weight;
  if (pair >= first_new) t->pairs[pair].n--;
}

/* Merges the occurrence at slot p, as drawn above. */
static bpe_status merge_at(train_state *t, uint32_t p, const train_pair *pair, uint32_t to,
                           size_t first_new, bpe_error *e) {
  const uint32_t q = p + t->symbols[pair->left].len, end = q + t->symbols[pair->right].len;
  const uint64_t weight = weight_at(t, p);
  const uint32_t x = t->symbol[p - 1];
  bpe_status st = BPE_OK;
  t->symbol[p] = t->symbol[end - 1] = to;
  if (x != TRAIN_NONE) {
    const uint32_t s = p - t->symbols[x].len;
    lose(t, s, weight, first_new);
    uint32_t *of = x == to ? &t->with_right[to] : &t->with_left[x];
    st = note_pair(t, of, first_new, x, to, e);
    if (st != BPE_OK) return st;
    gain(t, *of, weight, s);
  }
  if (t->pair[q] != TRAIN_NONE) {
    const uint32_t y = t->symbol[end];
    lose(t, q, weight, first_new);
    st = note_pair(t, &t->with_right[y], first_new, to, y, e);
    if (st != BPE_OK) return st;
    gain(t, t->with_right[y], weight, p);
    t->pair[q] = TRAIN_NONE;
  } else {
    t->pair[p] = TRAIN_NONE;
  }
  return BPE_OK;
}

/* Makes room for the lists of the new pairs, which are all empty as yet. `kept` is the pair being
** merged, whose list is still needed. */
static bpe_status place_lists(train_state *t, size_t first_new, uint32_t kept, bpe_error *e) {
  size_t n = 0;
  for (size_t k = first_new; k < t->n_pairs; k++)
    if (t->pairs[k].count >= t->min_count) n += t->pairs[k].n;
  if (t->lists_cap - t->lists_len < n) {
    const bpe_status st = tidy_lists(t, first_new, kept, e);
    if (st != BPE_OK) return st;
    if (n >= TRAIN_NONE - t->lists_len)
      return set_error(e, BPE_TOOBIG, 0, "too much distinct text");
    if (!mem_grow(&t->alloc, (void **)&t->lists, &t->lists_cap, t->lists_len + n, sizeof *t->lists))
      return set_nomem(e);
  }
  for (size_t k = first_new; k < t->n_pairs; k++) {
    train_pair *p = &t->pairs[k];
    p->at = (uint32_t)t->lists_len;
    if (p->count >= t->min_count) t->lists_len += p->n;
    p->n = 0;
  }
  return BPE_OK;
}

/* Lists the pair at this slot, if it is one that may merge one day. */
static void list_new(train_state *t, uint32_t slot) {
  const uint32_t pair = t->pair[slot];
  if (pair == TRAIN_NONE || pair == dull) return;
  if (t->pairs[pair].count < t->min_count) t->pair[slot] = dull;
  else list_slot(t, pair, slot);
}

/* Merges all occurrences of a pair, which are then the whole of its list. */
static bpe_status merge_all(train_state *t, uint32_t number, uint32_t to, size_t first_new,
                            bpe_error *e) {
  const train_pair pair = t->pairs[number];
  uint32_t *const list = t->lists + pair.at;
  uint32_t n = 0;
  for (uint32_t i = 0; i < pair.n; i++) {
    if (t->pair[list[i]] != number) continue;
    list[n++] = list[i];
    bpe_status st = merge_at(t, list[n - 1], &pair, to, first_new, e);
    if (st == BPE_OK) st = pace_add(&t->pace, MERGE_WORK, e);
    if (st != BPE_OK) return st;
  }
  t->pairs[number].count = 0;
  t->pairs[number].n = n;
  return BPE_OK;
}

/* Lists the pairs on both sides of all new symbols. */
static bpe_status list_all(train_state *t, const train_pair *done, uint32_t to, bpe_error *e) {
  for (uint32_t i = 0; i < done->n; i++) {
    const uint32_t p = t->lists[done->at + i], x = t->symbol[p - 1];
    if (x != TRAIN_NONE && x != to) list_new(t, p - t->symbols[x].len);
    list_new(t, p); /* of two new symbols side by side, by the left one alone */
    const bpe_status st = pace_add(&t->pace, LIST_WORK, e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

bpe_status train_merge_pair(train_state *t, uint32_t number, size_t *first_new, bpe_error *e) {
  const uint32_t to = (uint32_t)t->n_symbols, at = train_first_slot(t, number);
  train_pair *pair = &t->pairs[number];
  *first_new = t->n_pairs;
  if (!mem_grow(&t->alloc, (void **)&t->merges, &t->merges_cap, t->n_merges + 1, sizeof *t->merges))
    return set_nomem(e);
  t->merges[t->n_merges++] = (train_merge){pair->left, pair->right, pair->count};
  bpe_status st = new_symbol(t, at, t->symbols[pair->left].len + t->symbols[pair->right].len, e);
  if (st == BPE_OK) st = merge_all(t, number, to, *first_new, e);
  if (st == BPE_OK) st = place_lists(t, *first_new, number, e);
  if (st == BPE_OK) st = list_all(t, &t->pairs[number], to, e);
  if (st != BPE_OK) return st;
  t->pairs[number].n = 0;
  return pace_add(&t->pace, SYMBOL_WORK, e);
}

uint32_t train_first_slot(train_state *t, uint32_t number) {
  train_pair *p = &t->pairs[number];
  while (t->pair[t->lists[p->at]] != number && !pace_stopped(&t->pace, SKIP_WORK)) {
    p->at++;
    p->n--;
  }
  return t->lists[p->at];
}

bpe_status train_tokens(train_state *t, uint64_t *sum, bpe_error *e) {
  *sum = 0;
  for (size_t k = 0; k < t->n_pieces; k++) {
    uint64_t n = 0;
    for (size_t i = t->starts[k]; t->symbol[i] != TRAIN_NONE; i += t->symbols[t->symbol[i]].len) {
      n++;
      const bpe_status st = pace_add(&t->pace, TOKEN_WORK, e);
      if (st != BPE_OK) return st;
    }
    *sum = n > (COUNT_MAX - *sum) / t->weights[k] ? COUNT_MAX : *sum + n * t->weights[k];
  }
  return BPE_OK;
}
