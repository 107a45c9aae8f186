/* unseen.c - see unseen.h. */
#include "unseen.h"

bool unseen_init(unseen *u, const bpe_alloc *a, const vocab *v) {
  u->merge = lanes_fit(v) ? lanes_best() : NULL;
  if (u->merge == NULL) return true;
  u->block = mem_new(a, sizeof *u->room + CACHE_LINE, 1);
  if (u->block == NULL) return false;
  u->room = cache_aligned(u->block);
  return true;
}

void unseen_clear(unseen *u, const bpe_alloc *a) {
  mem_free(a, u->block);
}

void unseen_note(unseen *u, const piece_table *t, const piece_batch *b) {
  unseen_piece *p = u->pieces + u->n;
  for (size_t m = 0; m < b->n_missed; m++, p++) {
    const uint32_t i = b->missed[m];
    const piece_key k = b->probes[i].key;
    *p = (unseen_piece){k, b->probes[i].start, piece_length(b, i), i};
    PREFETCH(vocab_line(t->v, k));
  }
  u->n += b->n_missed;
}

/* What the line of a key says of it: the entry and 1, where the key is long only if its bytes are
** the same; 0: it is no token; TOKEN_OVER: that is not decided there. */
static ALWAYS_INLINE uint32_t look(const vocab *v, piece_key k) {
  const token_line *line = vocab_line(v, k);
  const uint32_t says[4] = {line->entries[0], line->entries[1], line->entries[2], line->over};
  return says[key_place(line->keys, &k)];
}

/* A piece that is a token: its value, and a place in the table. */
static void take_token(piece_table *t, const unseen_piece *p, uint32_t id, piece_batch *b) {
  if (b != NULL) b->values[p->i] = UINT32_C(1) << VALUE_BITS | id;
  pieces_add(t, p->key, p->s, p->len, &id, 1, true);
}

/* Whether a piece whose line does not decide it is a token. */
static bool is_token(const vocab *v, const unseen_piece *p, uint32_t *id) {
  if (p->len > v->longest) return false;
  const size_t at = vocab_find_key(v, p->key, p->s, p->len);
  if (at == v->n_entries || !vocab_direct(v, at)) return false;
  *id = v->entries[at].id;
  return true;
}

/* Makes a job of a piece, or finds the one that it is again; one that is too long is left. */
static ALWAYS_INLINE void add_job(unseen *u, uint16_t k, bool keep) {
  const unseen_piece *p = &u->pieces[k];
  uint16_t *const recent = &u->recent[key_hash(p->key) >> 58];
  size_t j = *recent;
  u->job_of[p->i] = NO_JOB;
  if (p->len > SHORT_PIECE || u->merge == NULL) {
    u->left[u->n_left++] = k;
    return;
  }
  /* What is no longer a job is compared as well: && would be a branch, often guessed wrong. */
  const unsigned same =
      (unsigned)(j < u->n_jobs) & (u->keys[j].low == p->key.low) & (u->keys[j].high == p->key.high);
  if (same && (p->len <= KEY_BYTES || memcmp(u->jobs[j].s, p->s, p->len) == 0)) {
    u->times[j]++;
  } else {
    j = u->n_jobs++;
    *recent = (uint16_t)j;
    u->keys[j] = p->key;
    u->times[j] = 1;
    u->jobs[j] = (merge_job){.s = p->s, .len = p->len};
    if (keep) {
      u->jobs[j].ids = u->ids + u->n_ids;
      u->n_ids += p->len;
    }
  }
  u->job_of[p->i] = (uint16_t)j;
}

/* A piece whose line does not decide what it is. Returns the number of its ids, if it is a token. */
static uint64_t settle_unsure(unseen *u, piece_table *t, piece_batch *b, uint16_t k) {
  const unseen_piece *p = &u->pieces[k];
  uint32_t id;
  if (!is_token(t->v, p, &id)) {
    add_job(u, k, b != NULL);
  } else if (id < NO_IDS) {
    take_token(t, p, id, b);
    return 1;
  } else {
    u->job_of[p->i] = NO_JOB;
    u->left[u->n_left++] = k;
  }
  return 0;
}

uint64_t unseen_settle(unseen *u, piece_table *t, piece_batch *b) {
  const vocab *v = t->v;
  uint16_t tokens[UNSEEN_MOST], jobs[UNSEEN_MOST], unsure[UNSEEN_MOST];
  uint32_t at[UNSEEN_MOST];
  size_t n_tokens = 0, n_jobs = 0, n_unsure = 0;
  uint64_t sum = 0;
  u->n_left = 0;
  for (size_t m = 0; m < u->n; m++) {
    const piece_key key = u->pieces[m].key;
    at[m] = look(v, key);
    const size_t entry = at[m] - 1 < v->n_entries ? at[m] - 1 : 0;
    /* Facts without a branch: && would be one, often guessed wrong. */
    const unsigned is_there = at[m] - 1 == entry, direct = vocab_direct(v, entry);
    const unsigned known = is_there & direct & (key_is_long(key) ? 0u : 1u), none = at[m] == 0;
    tokens[n_tokens] = jobs[n_jobs] = unsure[n_unsure] = (uint16_t)m;
    n_tokens += known;
    n_jobs += none;
    n_unsure += 1 - (known | none);
  }
  for (size_t k = 0; k < n_tokens; k++) {
    const uint32_t entry = at[tokens[k]] - 1;
    const uint32_t id = entry < v->n_dense ? entry : v->entries[entry].id;
    if (id < NO_IDS) take_token(t, &u->pieces[tokens[k]], id, b), sum++;
    else sum += settle_unsure(u, t, b, tokens[k]);
  }
  for (size_t k = 0; k < n_unsure; k++) sum += settle_unsure(u, t, b, unsure[k]);
  for (size_t k = 0; k < n_jobs; k++) add_job(u, jobs[k], b != NULL);
  if (u->n_jobs != 0) u->merge(v, u->room, u->jobs, u->n_jobs);
  for (size_t j = 0; j < u->n_jobs; j++) sum += u->jobs[j].n * u->times[j];
  return sum;
}

void unseen_keep(unseen *u, piece_table *t, bool keep) {
  for (size_t j = 0; j < u->n_jobs; j++)
    pieces_add(t, u->keys[j], u->jobs[j].s, u->jobs[j].len, u->jobs[j].ids, u->jobs[j].n, keep);
  u->n = u->n_jobs = u->n_ids = 0;
}
