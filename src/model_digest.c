/* model_digest.c - the canonical encoding of a model, and its SHA-256.
**
** Two models with equal digests give equal ids for every text, whatever they are called and
** wherever they came from. The encoding is a sequence of numbers (LEB128) and byte strings (a
** number, then that many bytes):
**
**     "bpe1"                                      string
**     the settings (settings.c)                   string
**     the pattern: a name, a regex or a chain     string
**     entries; each: id, kind, bytes              number; number, number, string
**     merges; each: 1 if its rank is that of the  number; number
**       merge before, else 0; left, right, id       3 numbers
**
** Entries stand in order of id, those of one id as they were added; merges in order of rank,
** then left, then right. Ranks count only by their order, so a merge list that came with gaps is
** the same as one without. Of names that mean one scanner the first counts (scan.h). Counts,
** stats and the tokenizer's name are not part of it.
*/
#include "model.h"
#include "sha256.h"

/* Numbers are small and many: they are gathered before they are hashed. */
typedef struct gather {
  pace pace;
  bpe_status status; /* BPE_STOPPED: the rest is left out */
  bpe_error *e;
  sha256 hash;
  uint8_t bytes[512];
  size_t n;
} gather;

enum { HASH_WORK = 4 }; /* units for a byte */

/* Hashes bytes of any number, part by part. */
static void hash(gather *g, const uint8_t *s, size_t len) {
  enum { PART = 1 << 16 };
  for (size_t i = 0; i < len && g->status == BPE_OK;) {
    const size_t n = len - i < PART ? len - i : PART;
    sha256_add(&g->hash, s + i, n);
    i += n;
    g->status = pace_add(&g->pace, n * HASH_WORK, g->e);
  }
}

static void flush(gather *g) {
  hash(g, g->bytes, g->n);
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
    hash(g, s, len);
    return;
  }
  memcpy(g->bytes + g->n, s, len);
  g->n += len;
}

bpe_status bpe_model_digest(const bpe_model *m, bpe_error *e, uint8_t out[32]) {
  const vocab *v = &m->v;
  gather g = {.pace = pace_of(&m->alloc), .e = e};
  memset(out, 0, 32);
  sha256_init(&g.hash);
  add_string(&g, "bpe1", 4);
  add_string(&g, m->settings, m->settings_len);
  const bpe_pattern *p = m->pattern;
  const char *scanner = p->is_regex || p->scan == NULL ? NULL : scan_first_name(p->scan);
  if (scanner != NULL) add_string(&g, scanner, strlen(scanner));
  else add_string(&g, p->text, p->len);
  add_number(&g, v->n_entries);
  for (size_t i = 0; i < v->n_entries && g.status == BPE_OK; i++) {
    const vocab_entry *t = &v->entries[i];
    add_number(&g, t->id);
    add_number(&g, t->kind);
    add_string(&g, vocab_bytes(v, t), t->len);
  }
  add_number(&g, v->n_merges);
  for (size_t i = 0; i < v->n_merges && g.status == BPE_OK; i++) {
    const vocab_merge *x = &v->merges[i];
    add_number(&g, i > 0 && x->rank == x[-1].rank);
    add_number(&g, x->left);
    add_number(&g, x->right);
    add_number(&g, x->id);
  }
  flush(&g);
  if (g.status == BPE_OK) sha256_end(&g.hash, out);
  return g.status;
}
