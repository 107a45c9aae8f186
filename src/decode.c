/* decode.c - ids to bytes, and what a list of ids has to be.
**
** Checks come in the order length, BOS, EOS, interior BOS or EOS, then each id; positions count
** in the list as given, BOS included. Any list of known ids decodes, whether or not encoding
** would have made it.
*/
#include "model.h"

enum { ID_WORK = 16 }; /* units, of an id besides its bytes */

static bool is_listed(const id_list *list, uint32_t id) {
  for (size_t i = 0; i < list->n; i++)
    if (list->ids[i] == id) return true;
  return false;
}

/* Checks a document's wrapping and narrows [from, to) to what is inside. */
static bpe_status unwrap(const bpe_model *m, const uint32_t *ids, size_t n, size_t *from,
                         size_t *to, pace *p, bpe_error *e) {
  const id_list *bos = &m->bos, *eos = &m->eos;
  if (bos->n + eos->n == 0)
    return set_error(e, BPE_MISUSE, 0, "tokenizer has no BOS or EOS tokens");
  if (n < bos->n + eos->n)
    return set_error(e, BPE_BADTOKEN, n, "document needs at least %zu ids: found %zu",
                     bos->n + eos->n, n);
  for (size_t i = 0; i < bos->n; i++)
    if (ids[i] != bos->ids[i])
      return set_error(e, BPE_BADTOKEN, i, "expected BOS %lu at position %zu: found %lu",
                       (unsigned long)bos->ids[i], i, (unsigned long)ids[i]);
  for (size_t i = 0; i < eos->n; i++) {
    const size_t at = n - eos->n + i;
    if (ids[at] != eos->ids[i])
      return set_error(e, BPE_BADTOKEN, at, "expected EOS %lu at position %zu: found %lu",
                       (unsigned long)eos->ids[i], at, (unsigned long)ids[at]);
  }
  *from = bos->n;
  *to = n - eos->n;
  for (size_t i = *from; i < *to && !pace_stopped(p, bos->n + eos->n); i++)
    if (is_listed(bos, ids[i]) || is_listed(eos, ids[i]))
      return set_error(e, BPE_BADTOKEN, i, "interior control %lu at position %zu",
                       (unsigned long)ids[i], i);
  return pace_add(p, 1, e);
}

/* What the decoder of a tokenizer that puts spaces before texts takes away from the start; *left is
** then 0. Done as soon as there is enough, so that little is moved. */
static void strip_left(bpe_buffer *out, size_t from, size_t *left) {
  const size_t most = *left;
  size_t n = 0;
  *left = 0;
  while (n < most && from + n < out->len && out->bytes[from + n] == ' ') n++;
  if (n == 0) return;
  memmove(out->bytes + from, out->bytes + from + n, out->len - from - n);
  out->len -= n;
}

bpe_status bpe_decode(const bpe_model *m, const uint32_t *ids, size_t n, bpe_specials specials,
                      bool document, int (*stop)(void *), void *stop_ctx, bpe_error *e,
                      bpe_buffer *out) {
  const vocab *v = &m->v;
  size_t from = 0, to = n;
  const size_t before = out->len;
  size_t strip = m->strip_left;
  pace p = {.stop = stop, .ctx = stop_ctx};
  if (document) {
    const bpe_status st = unwrap(m, ids, n, &from, &to, &p, e);
    if (st != BPE_OK) return st;
  }
  for (size_t i = from; i < to; i++) {
    const size_t at = vocab_find_id(v, ids[i]);
    if (at == v->n_entries)
      return set_error(e, BPE_BADTOKEN, i, "unknown id at position %zu: %lu", i,
                       (unsigned long)ids[i]);
    const vocab_entry *t = &v->entries[at];
    if (t->kind == BPE_SPECIAL && specials == BPE_SPECIALS_ERROR)
      return set_error(e, BPE_BADTOKEN, i, "control %lu at position %zu", (unsigned long)ids[i], i);
    if (t->kind != BPE_SPECIAL || specials == BPE_SPECIALS_TEXT)
      bpe_buffer_append(out, vocab_bytes(v, t), t->len);
    if (out->status != BPE_OK) break;
    if (strip != 0 && out->len - before >= strip) strip_left(out, before, &strip);
    if (pace_stopped(&p, ID_WORK + t->len)) return set_stopped_at(e, i);
  }
  if (out->status == BPE_OK) strip_left(out, before, &strip);
  return buffer_status(out, e);
}
