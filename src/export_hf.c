/* export_hf.c - a tokenizer as Hugging Face's tokenizer.json.
**
** Special and added tokens stand in the vocabulary too, so that they keep their ids when there are
** gaps: a loader numbers those that it does not find there from the vocabulary's size on. Where
** that gives the same ids, one that would mean something else in the vocabulary is left out of it. A
** vocabulary of characters is written with U+2581 for spaces and <0xHH> for single bytes, as it was
** read.
*/
#include "bytelevel.h"
#include "doc.h"
#include "export.h"
#include "published.h"

#include <stdio.h>

static void add(bpe_buffer *b, const char *text) {
  bpe_buffer_append(b, text, strlen(text));
}

static void add_number(bpe_buffer *b, uint64_t n) {
  bpe_buffer_append_decimal(b, n);
}

static void add_bool(bpe_buffer *b, const char *key, bool yes) {
  add(b, key);
  add(b, yes ? "true" : "false");
}

/* What the writing of one model needs beside it. */
typedef struct writing {
  const bpe_model *m;
  bpe_buffer *out;
  bpe_buffer name; /* scratch */
  bool spaces;     /* U+2581 stands for the space */
  size_t outside;  /* ids from here to the number of entries are not in the vocabulary */
  pace pace;
} writing;

enum { ROW_WORK = 64 }; /* units, of an entry or merge besides its bytes */

/* ---- Tokens -------------------------------------------------------------------------------- */

/* The token's bytes as the vocabulary spells them. */
static void spell(writing *w, const vocab_entry *t) {
  const uint8_t *s = vocab_bytes(&w->m->v, t);
  w->name.len = 0;
  if (t->kind != BPE_TOKEN && (w->m->v.chars || !(t->flags & ENTRY_MERGES))) {
    const bpe_name name = model_spelling(w->m, t);
    bpe_buffer_append(&w->name, name.text, name.len);
  } else if (t->flags & ENTRY_UNUSED) {
    bpe_buffer_append(&w->name, s, t->len);
  } else if (t->flags & ENTRY_FALLBACK) {
    char text[8];
    (void)snprintf(text, sizeof text, "<0x%02X>", (unsigned)*s);
    add(&w->name, text);
  } else if (w->m->v.chars) {
    for (size_t i = 0; i < t->len; i++) {
      if (w->spaces && s[i] == ' ') add(&w->name, "\xe2\x96\x81");
      else bpe_buffer_append(&w->name, &s[i], 1);
    }
  } else {
    export_byte_level(&w->name, s, t->len);
  }
}

static void add_token(writing *w, const vocab_entry *t) {
  spell(w, t);
  if (w->name.bytes != NULL) bpe_buffer_append_json(w->out, w->name.bytes, w->name.len);
}

/* Whether the vocabulary would have other bytes for this token, or what merging begins with, or a
** token of text where pieces that are tokens are kept whole. */
static bool means_other(writing *w, const vocab_entry *t) {
  if (w->m->v.chars || w->m->v.whole) return true;
  const bpe_name x = model_spelling(w->m, t);
  size_t n;
  w->name.len = 0;
  uint8_t *scratch = bpe_buffer_reserve(&w->name, x.len);
  return scratch != NULL && bytelevel_decode(x.text, x.len, scratch, &n) &&
         (n != t->len || memcmp(scratch, vocab_bytes(&w->m->v, t), n) != 0);
}

/* Of the tokens that would be numbered rightly outside the vocabulary, the first that has to be. */
static void find_outside(writing *w) {
  const vocab *v = &w->m->v;
  w->outside = v->n_entries;
  for (size_t id = v->n_entries; id-- > 0;) {
    const size_t at = vocab_find_id(v, (uint32_t)id);
    if (at == v->n_entries || entry_merges(&v->entries[at])) return;
    if (buffer_failed(w->out, &w->pace, ROW_WORK + v->entries[at].len)) return;
    if (means_other(w, &v->entries[at])) w->outside = id;
  }
}

static void add_vocab(writing *w) {
  const vocab *v = &w->m->v;
  bool any = false;
  add(w->out, "\"vocab\":{");
  for (size_t i = 0; i < v->n_entries; i++) {
    const uint32_t id = v->entries[i].id;
    if (buffer_failed(w->out, &w->pace, ROW_WORK + 8 * (size_t)v->entries[i].len)) return;
    if (id >= w->outside && id < v->n_entries) continue;
    if (any) add(w->out, ",");
    add_token(w, &v->entries[i]);
    add(w->out, ":");
    add_number(w->out, id);
    any = true;
  }
  add(w->out, "},\"merges\":[");
  for (size_t i = 0; i < v->n_merges; i++) {
    const vocab_entry *l = &v->entries[vocab_find_id(v, v->merges[i].left)];
    const vocab_entry *r = &v->entries[vocab_find_id(v, v->merges[i].right)];
    if (buffer_failed(w->out, &w->pace, ROW_WORK + 8 * ((size_t)l->len + r->len))) return;
    add(w->out, i > 0 ? ",[" : "[");
    add_token(w, l);
    add(w->out, ",");
    add_token(w, r);
    add(w->out, "]");
  }
  add(w->out, "]");
}

static void add_added_tokens(writing *w) {
  const vocab *v = &w->m->v;
  bool any = false;
  add(w->out, "\"added_tokens\":[");
  for (size_t i = 0; i < v->n_entries; i++) {
    const vocab_entry *t = &v->entries[i];
    if (buffer_failed(w->out, &w->pace, t->kind == BPE_TOKEN ? 1 : 4 * ROW_WORK)) return;
    if (t->kind == BPE_TOKEN) continue;
    const bpe_name name = model_spelling(w->m, t);
    add(w->out, any ? ",{\"id\":" : "{\"id\":");
    add_number(w->out, t->id);
    add(w->out, ",\"content\":");
    bpe_buffer_append_json(w->out, name.text, name.len);
    add_bool(w->out, ",\"single_word\":", t->flags & ENTRY_WORD);
    add_bool(w->out, ",\"lstrip\":", t->flags & ENTRY_LSTRIP);
    add_bool(w->out, ",\"rstrip\":", t->flags & ENTRY_RSTRIP);
    add_bool(w->out, ",\"normalized\":", t->flags & ENTRY_LATE);
    add_bool(w->out, ",\"special\":", t->kind == BPE_SPECIAL);
    add(w->out, "}");
    any = true;
  }
  add(w->out, "]");
}

/* ---- Stages -------------------------------------------------------------------------------- */

static void add_split(bpe_buffer *b, const char *text, size_t len) {
  add(b, "{\"type\":\"Split\",\"pattern\":{\"Regex\":");
  bpe_buffer_append_json(b, text, len);
  add(b, "},\"behavior\":\"Isolated\",\"invert\":false},");
}

static void add_byte_level(bpe_buffer *b, bool prefix_space, bool use_regex) {
  add_bool(b, "{\"type\":\"ByteLevel\",\"add_prefix_space\":", prefix_space);
  add_bool(b, ",\"trim_offsets\":true,\"use_regex\":", use_regex);
  add(b, "}");
}

static void add_pattern(bpe_buffer *b, const bpe_pattern *p) {
  const char *text = p->is_regex ? p->text : published_regex(p->text, p->len);
  if (text != NULL) add_split(b, text, p->is_regex ? p->len : strlen(text));
  else if (p->scan != NULL && !p->is_regex && strcmp(p->text, "deepseek3") == 0)
    for (int i = 0; i < DEEPSEEK3_STEPS; i++)
      add_split(b, published_deepseek3[i], strlen(published_deepseek3[i]));
}

/* A name that no regex is published for is lost here, and found missing by the proof. */
static void add_pre_tokenizer(writing *w) {
  const bpe_pattern *p = w->m->pattern;
  const bool prefix = w->m->normalizer != NULL && normalizer_has_prefix_space(w->m->normalizer);
  add(w->out, ",\"pre_tokenizer\":");
  if (w->m->v.chars) {
    add(w->out, "null");
  } else if (p->scan != NULL && strcmp(p->text, "gpt2") == 0) {
    add_byte_level(w->out, prefix, true);
  } else {
    add(w->out, "{\"type\":\"Sequence\",\"pretokenizers\":[");
    add_pattern(w->out, p);
    for (size_t i = 0; i < p->n_chain; i++) add_pattern(w->out, p->chain[i]);
    add_byte_level(w->out, prefix, false);
    add(w->out, "]}");
  }
}

static const char *json_name(bpe_buffer *b, const bpe_model *m, uint32_t id) {
  const vocab_entry *t = &m->v.entries[vocab_find_id(&m->v, id)];
  const bpe_name name = model_spelling(m, t);
  b->len = 0;
  bpe_buffer_append_json(b, name.text, name.len);
  bpe_buffer_append(b, "", 1);
  return b->status != BPE_OK ? "" : (const char *)b->bytes;
}

static void add_template(writing *w, bool pair) {
  const bpe_model *m = w->m;
  bool any = false;
  for (int k = 0; k < (pair ? 4 : 3); k++) {
    const id_list *list = k == 0 ? &m->bos : k == 3 || (k == 2 && !pair) ? &m->eos : NULL;
    if (list == NULL) {
      add(w->out, any ? "," : "");
      add(w->out, k == 1 ? "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}"
                         : "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}");
      any = true;
      continue;
    }
    for (size_t i = 0; i < list->n; i++) {
      if (buffer_failed(w->out, &w->pace, ROW_WORK)) return;
      add(w->out, any ? ",{\"SpecialToken\":{\"id\":" : "{\"SpecialToken\":{\"id\":");
      add(w->out, json_name(&w->name, m, list->ids[i]));
      add(w->out, k == 3 ? ",\"type_id\":1}}" : ",\"type_id\":0}}");
      any = true;
    }
  }
}

static void add_post_processor(writing *w) {
  const bpe_model *m = w->m;
  const id_list *lists[2] = {&m->bos, &m->eos};
  bool any = false;
  add(w->out, ",\"post_processor\":");
  if (m->bos.n + m->eos.n == 0) {
    add(w->out, "null");
    return;
  }
  add(w->out, "{\"type\":\"TemplateProcessing\",\"single\":[");
  add_template(w, false);
  add(w->out, "],\"pair\":[");
  add_template(w, true);
  add(w->out, "],\"special_tokens\":{");
  for (int k = 0; k < 2; k++) {
    for (size_t i = 0; i < lists[k]->n; i++) {
      bool before = false;
      if (buffer_failed(w->out, &w->pace, ROW_WORK + i + (k == 1 ? m->bos.n : 0))) return;
      for (size_t j = 0; j < i; j++) before |= lists[k]->ids[j] == lists[k]->ids[i];
      for (size_t j = 0; j < m->bos.n && k == 1; j++) before |= m->bos.ids[j] == lists[k]->ids[i];
      if (before) continue;
      const char *name = json_name(&w->name, m, lists[k]->ids[i]);
      add(w->out, any ? "," : "");
      add(w->out, name);
      add(w->out, ":{\"id\":");
      add(w->out, name);
      add(w->out, ",\"ids\":[");
      add_number(w->out, lists[k]->ids[i]);
      add(w->out, "],\"tokens\":[");
      add(w->out, name);
      add(w->out, "]}");
      any = true;
    }
  }
  add(w->out, "}}");
}

static void add_decoder(writing *w) {
  add(w->out, ",\"decoder\":");
  if (!w->m->v.chars) {
    add_byte_level(w->out, true, true);
    return;
  }
  add(w->out, "{\"type\":\"Sequence\",\"decoders\":[");
  if (w->spaces)
    add(w->out,
        "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\xe2\x96\x81\"},\"content\":\" \"},");
  add(w->out, "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}");
  if (w->m->strip_left != 0) {
    add(w->out, ",{\"type\":\"Strip\",\"content\":\" \",\"start\":");
    add_number(w->out, w->m->strip_left);
    add(w->out, ",\"stop\":0}");
  }
  add(w->out, "]}");
}

/* The vocabulary's entry that is spelled like this, or n_entries. */
static size_t find_spelled(const vocab *v, bpe_name x, uint8_t *scratch) {
  size_t n;
  if (bytelevel_decode(x.text, x.len, scratch, &n)) return vocab_find_bytes(v, scratch, n);
  const size_t at = vocab_find_bytes(v, (const uint8_t *)x.text, x.len);
  return at != v->n_entries && (v->entries[at].flags & ENTRY_UNUSED) ? at : v->n_entries;
}

/* A token outside merging is spelled as text has it, and no other token may be. */
static bpe_status check_spelling(writing *w, const vocab_entry *t, bpe_error *e) {
  const vocab *v = &w->m->v;
  const bpe_name x = model_spelling(w->m, t);
  quoted q;
  w->name.len = 0;
  uint8_t *scratch = bpe_buffer_reserve(&w->name, x.len);
  if (scratch == NULL) return buffer_status(&w->name, e);
  const size_t at = find_spelled(v, x, scratch);
  if (at == v->n_entries) return BPE_OK;
  return set_error(
      e, BPE_BADMODEL, t->id,
      "huggingface cannot carry this tokenizer: token %lu is spelled as token %lu is: %s",
      (unsigned long)t->id, (unsigned long)v->entries[at].id, quote_bytes(&q, x.text, x.len));
}

static bpe_status check_spellings(writing *w, bpe_error *e) {
  const vocab *v = &w->m->v;
  bpe_status st = BPE_OK;
  for (size_t i = 0; i < v->n_named && !v->chars && st == BPE_OK; i++) {
    const vocab_entry *t = &v->entries[v->named[i]];
    if (!(t->flags & ENTRY_MERGES)) st = check_spelling(w, t, e);
    if (st == BPE_OK) st = pace_add(&w->pace, ROW_WORK + t->len, e);
  }
  return st;
}

bpe_status export_huggingface(const bpe_model *m, bpe_error *e, bpe_buffer *out) {
  bpe_status st = export_one_id_each(m, "huggingface", e);
  if (st != BPE_OK) return st;
  writing w = {.m = m, .out = out, .pace = pace_of(&m->alloc)};
  w.spaces = m->normalizer != NULL && normalizer_marks_spaces(m->normalizer);
  bpe_buffer_init(&w.name, &m->alloc, 0);
  st = check_spellings(&w, e);
  if (st != BPE_OK) {
    bpe_buffer_clear(&w.name);
    return st;
  }
  add(out, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,");
  add_added_tokens(&w);
  add(out, ",\"normalizer\":");
  if (m->normalizer == NULL) add(out, "null");
  else normalizer_write_hf(m->normalizer, w.spaces, out);
  add_pre_tokenizer(&w);
  add_post_processor(&w);
  add_decoder(&w);
  add(out, ",\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
           "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,");
  add_bool(out, "\"fuse_unk\":", m->v.chars);
  add_bool(out, ",\"byte_fallback\":", m->v.chars);
  add_bool(out, ",\"ignore_merges\":", m->v.whole);
  add(out, ",");
  find_outside(&w);
  add_vocab(&w);
  add(out, "}}");
  st = buffer_status(&w.name, e);
  bpe_buffer_clear(&w.name);
  return st == BPE_OK ? buffer_status(out, e) : st;
}
