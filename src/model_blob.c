/* model_blob.c - a model as one string of bytes: bpe_model_write and bpe_model_parse.
**
** Numbers are LEB128, strings a number and that many bytes, so it reads the same on any machine:
**
**     "bpemodel"                                          8 bytes
**     1                                                   number: the version of this layout
**     settings, pattern, stats ("" for none)              3 strings
**     number of entries; each: its id minus that of the   number; number, number, string
**       entry before (0 for the first), kind, bytes
**     number of merges; 1 if counts follow, else 0        2 numbers
**     merges; each: its rank minus that of the merge      number; number, number, number
**       before, left, right, id; then the counts            numbers
**     SHA-256 of all that                                 32 bytes
**
** Entries and merges stand in the model's own order. Parsing believes nothing: the checksum comes
** first, which tells damage from error; every read is bounded by the bytes that are there; and
** what was read goes through the builder like any other description.
*/
#include "model.h"
#include "sha256.h"

enum { VERSION = 1, CHECKSUM = 32 };

static const char magic[] = "bpemodel";

enum { MAGIC = sizeof magic - 1 };

/* ---- Writing ------------------------------------------------------------------------------- */

static void put_number(bpe_buffer *b, uint64_t x) {
  uint8_t bytes[10];
  size_t n = 0;
  for (; x >= 0x80; x >>= 7) bytes[n++] = (uint8_t)(x | 0x80);
  bytes[n++] = (uint8_t)x;
  bpe_buffer_append(b, bytes, n);
}

static void put_string(bpe_buffer *b, const void *s, size_t len) {
  put_number(b, len);
  bpe_buffer_append(b, s, len);
}

enum { ROW_WORK = 16, HASH_WORK = 4 }; /* units, of an entry or merge, and of a hashed byte */

static bpe_status put_entries(bpe_buffer *b, const vocab *v, pace *p, bpe_error *e) {
  bpe_status st = BPE_OK;
  uint32_t before = 0;
  put_number(b, v->n_entries);
  for (size_t i = 0; i < v->n_entries && st == BPE_OK; i++) {
    const vocab_entry *t = &v->entries[i];
    put_number(b, t->id - before);
    put_number(b, t->kind);
    put_string(b, vocab_bytes(v, t), t->len);
    before = t->id;
    st = pace_add(p, ROW_WORK + t->len / 4, e);
  }
  return st;
}

static bpe_status put_merges(bpe_buffer *b, const vocab *v, pace *p, bpe_error *e) {
  bpe_status st = BPE_OK;
  uint32_t before = 0;
  put_number(b, v->n_merges);
  put_number(b, v->counts != NULL);
  for (size_t i = 0; i < v->n_merges && st == BPE_OK; i++) {
    const vocab_merge *x = &v->merges[i];
    put_number(b, x->rank - before);
    put_number(b, x->left);
    put_number(b, x->right);
    put_number(b, x->id);
    before = x->rank;
    st = pace_add(p, ROW_WORK, e);
  }
  for (size_t i = 0; i < v->n_merges && v->counts != NULL && st == BPE_OK; i++) {
    put_number(b, v->counts[i]);
    st = pace_add(p, ROW_WORK, e);
  }
  return st;
}

static bpe_status checksum(pace *p, const uint8_t *bytes, size_t len, bpe_error *e,
                           uint8_t out[CHECKSUM]) {
  enum { PART = 1 << 16 };
  sha256 h;
  sha256_init(&h);
  for (size_t i = 0; i < len;) {
    const size_t n = len - i < PART ? len - i : PART;
    sha256_add(&h, bytes + i, n);
    i += n;
    const bpe_status st = pace_add(p, n * HASH_WORK, e);
    if (st != BPE_OK) return st;
  }
  sha256_end(&h, out);
  return BPE_OK;
}

bpe_status bpe_model_write(const bpe_model *m, bpe_error *e, bpe_buffer *out) {
  const size_t start = out->len;
  pace p = pace_of(&m->alloc);
  uint8_t sum[CHECKSUM];
  bpe_buffer settings;
  bpe_buffer_init(&settings, &m->alloc, 0);
  bpe_status st = bpe_model_settings(m, e, &settings);
  if (st == BPE_OK) {
    bpe_buffer_append(out, magic, MAGIC);
    put_number(out, VERSION);
    put_string(out, settings.bytes, settings.len);
    put_string(out, m->pattern->text, m->pattern->len);
    put_string(out, m->stats, m->stats_len);
    st = put_entries(out, &m->v, &p, e);
    if (st == BPE_OK) st = put_merges(out, &m->v, &p, e);
    if (st == BPE_OK) st = buffer_status(out, e);
  }
  bpe_buffer_clear(&settings);
  if (st == BPE_OK) st = checksum(&p, out->bytes + start, out->len - start, e, sum);
  if (st != BPE_OK) return st;
  bpe_buffer_append(out, sum, CHECKSUM);
  return buffer_status(out, e);
}

/* ---- Reading ------------------------------------------------------------------------------- */

/* Sticky: after a failure every read gives 0. */
typedef struct reader {
  const uint8_t *bytes;
  size_t at, end;
  bpe_status status;
  bpe_error *e;
} reader;

static uint64_t bad(reader *r, const char *what) {
  if (r->status == BPE_OK)
    r->status = set_error(r->e, BPE_BADMODEL, r->at, "model: %s at byte %zu", what, r->at);
  return 0;
}

static uint64_t get_number(reader *r, uint64_t most) {
  uint64_t x = 0;
  if (r->status != BPE_OK) return 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (r->at == r->end) return bad(r, "ends too early");
    const uint8_t c = r->bytes[r->at++];
    if (shift == 63 && c > 1) break;
    x |= (uint64_t)(c & 0x7f) << shift;
    if (c < 0x80) return x <= most ? x : bad(r, "number out of range");
  }
  return bad(r, "number out of range");
}

static const uint8_t *get_string(reader *r, size_t *len) {
  *len = (size_t)get_number(r, r->end - r->at);
  if (*len > r->end - r->at) *len = (size_t)bad(r, "ends too early");
  const uint8_t *s = r->bytes + r->at;
  r->at += *len;
  return s;
}

static void get_entries(reader *r, bpe_builder *b) {
  uint64_t id = 0;
  const uint64_t n = get_number(r, r->end - r->at);
  for (uint64_t i = 0; i < n && r->status == BPE_OK && !builder_failed(b); i++) {
    size_t len;
    id += get_number(r, BPE_NONE);
    const uint64_t kind = get_number(r, BPE_ADDED);
    const uint8_t *s = get_string(r, &len);
    if (id >= BPE_NONE) bad(r, "id too large");
    if (r->status == BPE_OK) bpe_builder_token(b, (uint32_t)id, (bpe_kind)kind, s, len);
  }
}

static void get_merges(reader *r, bpe_builder *b, pace *p) {
  const uint64_t n = get_number(r, r->end - r->at);
  const uint64_t has_counts = get_number(r, 1);
  reader counts = *r;
  for (uint64_t i = 0; i < n && has_counts != 0 && counts.status == BPE_OK; i++) {
    if (pace_stopped(p, ROW_WORK)) counts.status = set_stopped(r->e);
    for (int k = 0; k < 4; k++) (void)get_number(&counts, BPE_NONE);
  }
  uint64_t rank = 0;
  for (uint64_t i = 0; i < n && r->status == BPE_OK && counts.status == BPE_OK; i++) {
    if (builder_failed(b)) break;
    rank += get_number(r, BPE_NONE);
    const uint32_t left = (uint32_t)get_number(r, BPE_NONE);
    const uint32_t right = (uint32_t)get_number(r, BPE_NONE);
    const uint32_t id = (uint32_t)get_number(r, BPE_NONE);
    const uint64_t count = has_counts ? get_number(&counts, UINT64_MAX) : 0;
    if (rank >= BPE_NONE) bad(r, "rank too large");
    if (r->status == BPE_OK && counts.status == BPE_OK)
      bpe_builder_merge(b, (uint32_t)rank, left, right, id, count);
  }
  if (has_counts && r->status == BPE_OK) *r = counts;
}

static bpe_status get_model(reader *r, bpe_builder *b, pace *p) {
  size_t settings_len, pattern_len, stats_len;
  const uint8_t *settings = get_string(r, &settings_len);
  const uint8_t *pattern = get_string(r, &pattern_len);
  const uint8_t *stats = get_string(r, &stats_len);
  if (r->status != BPE_OK) return r->status;
  bpe_builder_settings(b, (const char *)pattern, pattern_len, (const char *)settings, settings_len);
  if (stats_len != 0) bpe_builder_stats(b, (const char *)stats, stats_len);
  get_entries(r, b);
  get_merges(r, b, p);
  /* Where the builder has failed and the reader has not, finish says why. */
  if (!builder_failed(b) && r->at != r->end) bad(r, "has more than a model");
  return r->status;
}

bpe_status bpe_model_parse(const bpe_alloc *a, const void *bytes, size_t len, bpe_error *e,
                           bpe_model **out) {
  *out = NULL;
  reader r = {.bytes = bytes, .at = MAGIC, .end = len, .e = e};
  if (!model_blob_is(bytes, len)) return set_error(e, BPE_BADMODEL, 0, "model: not a model");
  const uint64_t version = get_number(&r, UINT32_MAX);
  if (r.status != BPE_OK) return r.status;
  if (version != VERSION)
    return set_error(e, BPE_BADMODEL, MAGIC, "model: layout version is %llu, not %d",
                     (unsigned long long)version, VERSION);
  if (len < r.at + CHECKSUM) return set_error(e, BPE_BADMODEL, len, "model: ends too early");
  r.end = len - CHECKSUM;
  uint8_t sum[CHECKSUM];
  pace p = pace_of(a);
  const bpe_status st = checksum(&p, r.bytes, r.end, e, sum);
  if (st != BPE_OK) return st;
  if (memcmp(sum, r.bytes + r.end, CHECKSUM) != 0)
    return set_error(e, BPE_BADMODEL, r.end, "model: damaged or cut short: wrong checksum");
  bpe_builder *b = bpe_builder_new(a);
  if (b == NULL) return set_nomem(e);
  if (get_model(&r, b, &p) != BPE_OK) {
    bpe_builder_free(b);
    return r.status;
  }
  return bpe_builder_finish(b, e, out);
}

bool model_blob_is(const void *bytes, size_t len) {
  return len >= MAGIC && memcmp(bytes, magic, MAGIC) == 0;
}
