/* export.c - formats by name, and the proof that what was written comes back. See export.h. */
#include "export.h"

#include "bytelevel.h"
#include "doc.h"

#include <string.h>

enum { ROW_WORK = 32 }; /* units, of an entry or merge besides its bytes */

typedef struct export_row {
  const char *name;
  export_write *write;
  export_write *merges; /* what goes with it to be imported again, or NULL */
  bool has_pattern;     /* the format says the pattern and special tokens itself */
  bool says_whole;
} export_row;

static const export_row formats[] = {
    {"model", bpe_model_write, NULL, true, true},
    {"tiktoken", export_tiktoken, NULL, false, false},
    {"huggingface", export_huggingface, NULL, true, true},
    {"gpt2-vocab", export_gpt2_vocab, export_gpt2_merges, false, false},
    {"gpt2-merges", export_gpt2_merges, NULL, false, false},
    {"minbpe", export_minbpe, NULL, true, true},
};

#define N_FORMATS ((int)(sizeof formats / sizeof *formats))

const char *bpe_format_name(int i) {
  return i >= 0 && i < N_FORMATS ? formats[i].name : NULL;
}

void export_byte_level(bpe_buffer *b, const uint8_t *bytes, size_t len) {
  uint8_t *to = bpe_buffer_reserve(b, 2 * len);
  size_t n = 0;
  for (size_t i = 0; i < len && to != NULL; i++) n += bytelevel_char(bytes[i], to + n);
  bpe_buffer_commit(b, n);
}

bpe_status export_one_id_each(const bpe_model *m, const char *format, bpe_error *e) {
  pace p = pace_of(&m->alloc);
  for (size_t i = 1; i < m->v.n_entries && !pace_stopped(&p, 2); i++)
    if (m->v.entries[i].id == m->v.entries[i - 1].id)
      return set_error(e, BPE_BADMODEL, m->v.entries[i].id,
                       "%s cannot carry two tokens with one id: %lu", format,
                       (unsigned long)m->v.entries[i].id);
  return pace_add(&p, 1, e);
}

/* ---- The proof ----------------------------------------------------------------------------- */

/* Special tokens as bpe_import takes them: {"name": id, ...}. */
static void list_specials(const bpe_model *m, bpe_buffer *b) {
  bool any = false;
  pace p = pace_of(&m->alloc);
  bpe_buffer_append(b, "{", 1);
  for (size_t i = 0; i < m->v.n_entries && !buffer_failed(b, &p, 1); i++) {
    const vocab_entry *t = &m->v.entries[i];
    if (t->kind != BPE_SPECIAL) continue;
    if (any) bpe_buffer_append(b, ",", 1);
    bpe_buffer_append_json(b, vocab_bytes(&m->v, t), t->len);
    bpe_buffer_append(b, ":", 1);
    bpe_buffer_append_decimal(b, t->id);
    any = true;
    pace_stopped(&p, ROW_WORK + t->len);
  }
  bpe_buffer_append(b, "}", 1);
}

static bool same_text(const void *a, size_t a_len, const void *b, size_t b_len) {
  return a_len == b_len && memcmp(a, b, a_len) == 0;
}

static bool same_entry(const bpe_model *m, const bpe_model *back, size_t i) {
  const vocab *v = &m->v, *w = &back->v;
  if (i >= w->n_entries) return false;
  const vocab_entry *t = &v->entries[i], *u = &w->entries[i];
  const bpe_name x = model_spelling(m, t), y = model_spelling(back, u);
  return t->id == u->id && t->kind == u->kind && t->flags == u->flags &&
         same_text(vocab_bytes(v, t), t->len, vocab_bytes(w, u), u->len) &&
         same_text(x.text, x.len, y.text, y.len);
}

static bool same_merge(const vocab *v, const vocab *w, size_t i) {
  if (i >= w->n_merges) return false;
  const vocab_merge *x = &v->merges[i], *y = &w->merges[i];
  return x->left == y->left && x->right == y->right && x->id == y->id &&
         (i == 0 || (x->rank == x[-1].rank) == (y->rank == y[-1].rank));
}

static bpe_status differs(const bpe_model *m, const bpe_model *back, const char *format,
                          bpe_error *e) {
  const vocab *v = &m->v;
  pace p = pace_of(&m->alloc);
  quoted q;
  for (size_t i = 0; i < v->n_entries && !pace_stopped(&p, ROW_WORK); i++) {
    const vocab_entry *t = &v->entries[i];
    if (!same_entry(m, back, i))
      return set_error(e, BPE_BADMODEL, t->id, "%s cannot carry this tokenizer: token %lu: %s",
                       format, (unsigned long)t->id, quote_bytes(&q, vocab_bytes(v, t), t->len));
  }
  for (size_t i = 0; i < v->n_merges && !pace_stopped(&p, ROW_WORK); i++) {
    const vocab_merge *x = &v->merges[i];
    if (!same_merge(v, &back->v, i))
      return set_error(e, BPE_BADMODEL, x->rank,
                       "%s cannot carry this tokenizer: merge %lu (%lu, %lu)", format,
                       (unsigned long)x->rank, (unsigned long)x->left, (unsigned long)x->right);
  }
  const bpe_status st = pace_add(&p, 1, e);
  if (st != BPE_OK) return st;
  if (back->v.n_merges > v->n_merges) {
    const vocab_merge *x = &back->v.merges[v->n_merges];
    return set_error(e, BPE_BADMODEL, x->rank,
                     "%s cannot carry this tokenizer: it is read with merge %lu (%lu, %lu)", format,
                     (unsigned long)x->rank, (unsigned long)x->left, (unsigned long)x->right);
  }
  if (m->pattern->is_regex && !back->pattern->is_regex)
    return set_error(e, BPE_BADMODEL, 0, "%s cannot carry this regex: it is read as pattern %s",
                     format, back->pattern->text);
  return set_error(e, BPE_BADMODEL, 0, "%s cannot carry this tokenizer: %s", format,
                   quote_bytes(&q, m->settings, m->settings_len));
}

/* Imports what was written, with what the format does not carry. */
static bpe_status import_again(const bpe_model *m, const export_row *r, const bpe_buffer *text,
                               bpe_error *e, bpe_model **back) {
  bpe_buffer specials, merges;
  bpe_buffer_init(&specials, &m->alloc, 0);
  bpe_buffer_init(&merges, &m->alloc, 0);
  bpe_import_options o = {.whole = m->v.whole && !r->says_whole};
  bpe_status st = BPE_OK;
  if (!r->has_pattern) {
    list_specials(m, &specials);
    st = buffer_status(&specials, e);
    o.special_tokens = (const char *)specials.bytes;
    o.special_len = specials.len;
    o.pattern = m->pattern->text;
    o.pattern_len = m->pattern->len;
    o.pattern_is_regex = m->pattern->is_regex;
  }
  if (st == BPE_OK && r->merges != NULL) st = r->merges(m, e, &merges);
  bpe_error why = {0};
  if (st == BPE_OK)
    st = bpe_import(&m->alloc, text->bytes, text->len, r->merges == NULL ? NULL : merges.bytes,
                    merges.len, &o, &why, back);
  if (st == BPE_BADMODEL || st == BPE_MISUSE || st == BPE_BADREGEX ||
      (st == BPE_TOOBIG && why.status == BPE_TOOBIG)) {
    (void)set_error(e, BPE_BADMODEL, why.offset, "%s cannot carry this tokenizer: %s", r->name,
                    why.text);
    st = BPE_BADMODEL;
  } else if (st != BPE_OK && why.status != BPE_OK) {
    (void)set_error(e, st, why.offset, "%s", why.text);
  }
  bpe_buffer_clear(&specials);
  bpe_buffer_clear(&merges);
  return st;
}

static bpe_status prove(const bpe_model *m, const export_row *r, const bpe_buffer *text,
                        bpe_error *e) {
  bpe_model *back = NULL;
  bpe_status st = import_again(m, r, text, e, &back);
  if (st == BPE_OK) {
    uint8_t digest[2][32];
    st = bpe_model_digest(m, e, digest[0]);
    if (st == BPE_OK) st = bpe_model_digest(back, e, digest[1]);
    if (st == BPE_OK && memcmp(digest[0], digest[1], 32) != 0) st = differs(m, back, r->name, e);
  }
  bpe_model_free(back);
  return st;
}

bpe_status bpe_export(const bpe_model *m, const char *format, size_t len, bpe_error *e,
                      bpe_buffer *out) {
  const export_row *r = formats;
  quoted q;
  while (r < formats + N_FORMATS && (strlen(r->name) != len || memcmp(r->name, format, len) != 0))
    r++;
  if (r == formats + N_FORMATS)
    return set_error(e, BPE_MISUSE, 0, "no such format: %s", quote_bytes(&q, format, len));
  if (r->write == bpe_model_write) return bpe_model_write(m, e, out);
  const export_row *whole = r->write == export_gpt2_merges ? r - 1 : r; /* proved with its vocab */
  bpe_buffer text;
  bpe_buffer_init(&text, &m->alloc, 0);
  bpe_status st = whole->write(m, e, &text);
  if (st == BPE_OK) st = prove(m, whole, &text, e);
  if (st == BPE_OK && whole != r) {
    bpe_buffer_clear(&text);
    st = r->write(m, e, &text);
  }
  uint8_t *const to = st == BPE_OK ? bpe_buffer_reserve(out, text.len) : NULL;
  if (to != NULL) {
    pace p = pace_of(&m->alloc);
    st = pace_copy(&p, to, text.bytes, text.len, e);
  }
  if (st == BPE_OK) {
    bpe_buffer_commit(out, text.len);
    st = buffer_status(out, e);
  }
  bpe_buffer_clear(&text);
  return st;
}
