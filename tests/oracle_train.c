/* oracle_train.c - training by the definition: count every pair, take the best, replace, again.
**
** All pieces of all rows are kept, in text order and as often as they occur. Each round reads
** them from the first to the last and counts their pairs in the order in which they are met;
** then every occurrence of the best pair is replaced, from the left.
*/
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

typedef struct sequence {
  uint32_t *ids; /* owned */
  size_t n;
  uint64_t weight;
} sequence;

typedef struct pair {
  uint32_t left, right;
  uint64_t count;
} pair;

typedef struct trainer {
  const oracle_train_options *o;
  sequence *sequences;
  size_t n_sequences, sequences_cap;
  uint8_t *tokens[4096]; /* bytes by id; NULL: none, or a special */
  size_t lens[4096];
  uint32_t byte_ids[256];
} trainer;

/* 0 .. 255, or GPT-2's: the bytes that print as themselves, then the others. */
static void set_byte_ids(trainer *t, uint32_t first) {
  uint32_t next = first;
  for (int round = 0; round < 2; round++) {
    for (int b = 0; b < 256; b++) {
      const bool prints = (b > 32 && b < 127) || (b > 160 && b != 173);
      if (t->o->gpt2_bytes ? prints == (round == 1) : round == 1) continue;
      t->byte_ids[b] = next;
      t->tokens[next] = oracle_realloc(NULL, 1);
      t->tokens[next][0] = (uint8_t)b;
      t->lens[next++] = 1;
    }
  }
}

static void add_piece(trainer *t, const uint8_t *s, size_t len, uint64_t weight) {
  if (t->n_sequences == t->sequences_cap) {
    t->sequences_cap = t->sequences_cap * 2 + 16;
    t->sequences = oracle_realloc(t->sequences, t->sequences_cap * sizeof *t->sequences);
  }
  sequence *q = &t->sequences[t->n_sequences++];
  *q = (sequence){oracle_realloc(NULL, len * sizeof *q->ids), len, weight};
  for (size_t i = 0; i < len; i++) q->ids[i] = t->byte_ids[s[i]];
}

static bool is_space(const oracle_train_options *o, const uint8_t *s, size_t len) {
  size_t i = 0;
  while (i < len) {
    uint32_t cp;
    const size_t n = oracle_utf8(s + i, len - i, &cp);
    if (n == 0 || !oracle_classes_has(o->classes, "\\s", cp)) return false;
    i += n;
  }
  return true;
}

static void add_stretch(trainer *t, const uint8_t *s, size_t len, uint64_t weight) {
  oracle_list lengths = {0};
  if (len == 0) return;
  oracle_split(t->o->pretokenized ? NULL : t->o->regex, s, len, &lengths);
  for (size_t i = 0; i < lengths.n; i++) {
    if (!t->o->skip_space || !is_space(t->o, s, lengths.at[i]))
      add_piece(t, s, lengths.at[i], weight);
    s += lengths.at[i];
  }
  oracle_list_clear(&lengths);
}

static void add_row(trainer *t, const oracle_row *row) {
  const uint8_t *s = (const uint8_t *)row->text;
  size_t from = 0, at = 0;
  while (at < row->len) {
    size_t longest = 0;
    for (size_t k = 0; k < t->o->n_specials; k++) {
      const oracle_special *x = &t->o->specials[k];
      if (x->len <= row->len - at && x->len > longest && memcmp(s + at, x->text, x->len) == 0)
        longest = x->len;
    }
    if (longest != 0) {
      add_stretch(t, s + from, at - from, row->weight);
      at += longest;
      from = at;
    } else {
      at++;
    }
  }
  add_stretch(t, s + from, at - from, row->weight);
}

static int compare_bytes(const trainer *t, uint32_t x, uint32_t y) {
  const size_t n = t->lens[x] < t->lens[y] ? t->lens[x] : t->lens[y];
  const int c = memcmp(t->tokens[x], t->tokens[y], n);
  if (c != 0) return c;
  return t->lens[x] < t->lens[y] ? -1 : t->lens[x] > t->lens[y];
}

/* Whether p, met later than q, is to be merged rather than q. */
static bool is_better(const trainer *t, const pair *p, const pair *q) {
  if (p->count != q->count) return p->count > q->count;
  if (t->o->tie == ORACLE_TIE_FIRST) return false;
  if (t->o->tie == ORACLE_TIE_IDS)
    return p->left != q->left ? p->left < q->left : p->right < q->right;
  const int c = compare_bytes(t, p->left, q->left);
  return c != 0 ? c > 0 : compare_bytes(t, p->right, q->right) > 0;
}

/* The best pair; false: there is none. */
static bool find_best(const trainer *t, pair *best) {
  pair *pairs = NULL;
  size_t n = 0, cap = 0, k;
  for (size_t i = 0; i < t->n_sequences; i++) {
    const sequence *q = &t->sequences[i];
    for (size_t j = 0; j + 1 < q->n; j++) {
      const uint32_t left = q->ids[j], right = q->ids[j + 1];
      for (k = 0; k < n && (pairs[k].left != left || pairs[k].right != right); k++) continue;
      if (k == n) {
        if (n == cap) pairs = oracle_realloc(pairs, (cap = cap * 2 + 64) * sizeof *pairs);
        pairs[n++] = (pair){left, right, 0};
      }
      pairs[k].count += q->weight;
    }
  }
  const uint64_t least = t->o->min_frequency > 1 ? t->o->min_frequency : 1;
  bool found = false;
  for (k = 0; k < n; k++) {
    const pair *p = &pairs[k];
    if (p->count < least) continue;
    if (t->o->max_token_length != 0 &&
        t->lens[p->left] + t->lens[p->right] > t->o->max_token_length)
      continue;
    if (!found || is_better(t, p, best)) *best = *p;
    found = true;
  }
  free(pairs);
  return found;
}

static void replace(sequence *q, uint32_t left, uint32_t right, uint32_t id) {
  size_t n = 0;
  for (size_t j = 0; j < q->n; j++) {
    if (j + 1 < q->n && q->ids[j] == left && q->ids[j + 1] == right) {
      q->ids[n++] = id;
      j++;
    } else {
      q->ids[n++] = q->ids[j];
    }
  }
  q->n = n;
}

static void name_token(trainer *t, uint32_t id, uint32_t left, uint32_t right) {
  const size_t l = t->lens[left], r = t->lens[right];
  t->tokens[id] = oracle_realloc(NULL, l + r);
  memcpy(t->tokens[id], t->tokens[left], l);
  memcpy(t->tokens[id] + l, t->tokens[right], r);
  t->lens[id] = l + r;
}

size_t oracle_train(const oracle_row *rows, size_t n_rows, const oracle_train_options *o,
                    oracle_trained *merges, size_t max, uint64_t *tokens) {
  trainer *t = oracle_realloc(NULL, sizeof *t);
  memset(t, 0, sizeof *t);
  t->o = o;
  const uint32_t specials = (uint32_t)o->n_specials;
  set_byte_ids(t, o->place == ORACLE_SPECIALS_FIRST ? specials : 0);
  const uint32_t first = 256 + (o->place == ORACLE_SPECIALS_LAST ? 0 : specials);
  for (size_t i = 0; i < n_rows; i++)
    if (rows[i].weight != 0) add_row(t, &rows[i]);
  size_t n = 0;
  pair best = {0, 0, 0};
  for (; n < max && first + n < 4096 && find_best(t, &best); n++) {
    const uint32_t id = first + (uint32_t)n;
    name_token(t, id, best.left, best.right);
    merges[n] = (oracle_trained){best.left, best.right, id, best.count};
    for (size_t i = 0; i < t->n_sequences; i++)
      replace(&t->sequences[i], best.left, best.right, id);
  }
  *tokens = 0;
  for (size_t i = 0; i < t->n_sequences; i++) {
    *tokens += t->sequences[i].n * t->sequences[i].weight;
    free(t->sequences[i].ids);
  }
  for (size_t i = 0; i < 4096; i++) free(t->tokens[i]);
  free(t->sequences);
  free(t);
  return n;
}
