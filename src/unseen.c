/* unseen.c - see unseen.h. */
#include "unseen.h"

/* What the line of a key says of it: the entry and 1, where the key is long only if its bytes are
** the same; 0: it is no token; TOKEN_OVER: that is not decided there. */
static ALWAYS_INLINE uint32_t look(const vocab *v, piece_key k) {
  const token_line *line = vocab_line(v, k);
  const uint32_t says[4] = {line->entries[0], line->entries[1], line->entries[2], line->over};
  return says[key_place(line->keys, &k)];
}

/* Gives a piece that is a token its value. */
static void take_token(piece_table *t, piece_batch *b, size_t i, uint32_t id) {
  b->values[i] = UINT32_C(1) << VALUE_BITS | id;
  pieces_add(t, b->probes[i].key, b->probes[i].start, piece_length(b, i), &id, 1, true);
}

/* Whether a piece whose line does not decide it is a token. */
static bool is_token(const vocab *v, const piece_batch *b, size_t i, uint32_t *id) {
  const size_t len = piece_length(b, i);
  if (len > v->longest) return false;
  const size_t at = vocab_find_key(v, b->probes[i].key, b->probes[i].start, len);
  if (at == v->n_entries || !vocab_direct(v, at)) return false;
  *id = v->entries[at].id;
  return true;
}

/* Makes a job of a piece, or finds the one that it is again. */
static void add_job(unseen *u, const piece_batch *b, size_t i, bool keep) {
  const piece_key k = b->probes[i].key;
  const size_t len = piece_length(b, i);
  uint16_t *const recent = &u->recent[key_hash(k) >> 58];
  size_t j = *recent;
  if (j < u->n && u->keys[j].low == k.low && u->keys[j].high == k.high && u->jobs[j].len == len &&
      (len <= KEY_BYTES || memcmp(u->jobs[j].s, b->probes[i].start, len) == 0)) {
    u->times[j]++;
  } else {
    j = u->n++;
    *recent = (uint16_t)j;
    u->keys[j] = k;
    u->times[j] = 1;
    u->jobs[j] = (merge_job){.s = b->probes[i].start, .len = len};
    if (keep) {
      u->jobs[j].ids = u->ids + u->n_ids;
      u->n_ids += len;
    }
  }
  u->job_of[i] = (uint16_t)j;
}

size_t unseen_collect(unseen *u, piece_table *t, piece_batch *b, bool keep) {
  const vocab *v = t->v;
  uint32_t at[PIECES_BATCH], tokens[PIECES_BATCH], others[PIECES_BATCH], left[PIECES_BATCH];
  size_t n_tokens = 0, n_others = 0, n_left = 0, n = 0;
  if (b->n_missed == 0) return 0;
  for (size_t m = 0; m < b->n_missed; m++) PREFETCH(vocab_line(v, b->probes[b->missed[m]].key));
  for (size_t m = 0; m < b->n_missed; m++) {
    const piece_key key = b->probes[b->missed[m]].key;
    at[m] = look(v, key);
    const size_t entry = at[m] - 1 < v->n_entries ? at[m] - 1 : 0;
    /* Three facts without a branch: && would be one, often guessed wrong. */
    const unsigned is_there = at[m] - 1 == entry, direct = vocab_direct(v, entry);
    const unsigned known = is_there & direct & (key_is_long(key) ? 0u : 1u);
    tokens[n_tokens] = (uint32_t)m;
    others[n_others] = (uint32_t)m;
    n_tokens += known;
    n_others += 1 - known;
  }
  for (size_t k = 0; k < n_tokens; k++) {
    const uint32_t i = b->missed[tokens[k]], entry = at[tokens[k]] - 1;
    const uint32_t id = entry < v->n_dense ? entry : v->entries[entry].id;
    if (id < NO_IDS) take_token(t, b, i, id), n++;
    else u->job_of[i] = NO_JOB, left[n_left++] = i;
  }
  for (size_t k = 0; k < n_others; k++) {
    const uint32_t i = b->missed[others[k]];
    const size_t len = piece_length(b, i);
    uint32_t id;
    if (at[others[k]] != 0 && is_token(v, b, i, &id)) {
      if (id < NO_IDS) {
        take_token(t, b, i, id);
        n++;
        continue;
      }
    } else if (len <= SHORT_PIECE && u->merge != NULL) {
      add_job(u, b, i, keep);
      continue;
    }
    u->job_of[i] = NO_JOB;
    left[n_left++] = i;
  }
  b->n_missed = n_left;
  memcpy(b->missed, left, n_left * sizeof *left);
  return n;
}

uint64_t unseen_merge(unseen *u, const vocab *v) {
  uint64_t sum = 0;
  if (u->n != 0) u->merge(v, u->lanes, u->jobs, u->n);
  for (size_t j = 0; j < u->n; j++) sum += u->jobs[j].n * u->times[j];
  return sum;
}

void unseen_keep(unseen *u, piece_table *t, bool keep) {
  for (size_t j = 0; j < u->n; j++)
    pieces_add(t, u->keys[j], u->jobs[j].s, u->jobs[j].len, u->jobs[j].ids, u->jobs[j].n, keep);
  u->n = u->n_ids = 0;
}
