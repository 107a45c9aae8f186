/* model_digest.c - the canonical encoding of a model, and its SHA-256.
**
** Two models with equal digests give equal ids for every text, whatever they are called and
** wherever they came from. The encoding is a sequence of numbers (LEB128) and byte strings (a
** number, then that many bytes):
**
**     "bpe1"                                      string
**     1 if pieces that are tokens stay whole      number
**     1 if the pattern is a regex, the pattern    number, string
**     entries; each: id, kind, bytes              number; number, number, string
**     merges; each: 1 if its rank is that of the  number; number
**       merge before, else 0; left, right, id       3 numbers
**     BOS ids, EOS ids                            number and numbers, twice
**
** Entries stand in order of id, those of one id as they were added; merges in order of rank,
** then left, then right. Ranks count only by their order, so a merge list that came with gaps is
** the same as one without. Counts and names are not part of it.
*/
#include "model.h"
#include "sha256.h"

/* Numbers are small and many: they are gathered before they are hashed. */
typedef struct gather {
  sha256 hash;
  uint8_t bytes[512];
  size_t n;
} gather;

static void flush(gather *g) {
  sha256_add(&g->hash, g->bytes, g->n);
  g->n = 0;
}

static void add_number(gather *g, uint64_t x) {
  if (g->n > sizeof g->bytes - 10) flush(g);
  for (; x >= 0x80; x >>= 7) g->bytes[g->n++] = (uint8_t)(x | 0x80);
  g->bytes[g->n++] = (uint8_t)x;
}

static void add_string(gather *g, const void *s, size_t len) {
  add_number(g, len);
  if (len > sizeof g->bytes - g->n) flush(g);
  if (len > sizeof g->bytes) {
    sha256_add(&g->hash, s, len);
    return;
  }
  memcpy(g->bytes + g->n, s, len);
  g->n += len;
}

static void add_ids(gather *g, const id_list *list) {
  add_number(g, list->n);
  for (size_t i = 0; i < list->n; i++) add_number(g, list->ids[i]);
}

void bpe_model_digest(const bpe_model *m, uint8_t out[32]) {
  const vocab *v = &m->v;
  gather g = {.n = 0};
  sha256_init(&g.hash);
  add_string(&g, "bpe1", 4);
  add_number(&g, v->whole);
  add_number(&g, m->pattern->is_regex);
  add_string(&g, m->pattern->text, m->pattern->len);
  add_number(&g, v->n_entries);
  for (size_t i = 0; i < v->n_entries; i++) {
    const vocab_entry *t = &v->entries[i];
    add_number(&g, t->id);
    add_number(&g, t->kind);
    add_string(&g, vocab_bytes(v, t), t->len);
  }
  add_number(&g, v->n_merges);
  for (size_t i = 0; i < v->n_merges; i++) {
    const vocab_merge *x = &v->merges[i];
    add_number(&g, i > 0 && x->rank == x[-1].rank);
    add_number(&g, x->left);
    add_number(&g, x->right);
    add_number(&g, x->id);
  }
  add_ids(&g, &m->bos);
  add_ids(&g, &m->eos);
  flush(&g);
  sha256_end(&g.hash, out);
}
