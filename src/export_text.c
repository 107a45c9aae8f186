/* export_text.c - the formats of one token or merge a line: tiktoken, minbpe, GPT-2.
**
** GPT-2's two files are byte for byte as published: the vocabulary with ", " and ": " and
** characters past ASCII as \uXXXX, the merges under "#version: 0.2".
*/
#include "bytelevel.h"
#include "export.h"
#include "published.h"
#include "unicode.h"
#include "utf8.h"

#include <stdio.h>

enum { ROW_WORK = 64 }; /* units, of an entry or merge besides its bytes */

static void add(bpe_buffer *b, const char *text) {
  bpe_buffer_append(b, text, strlen(text));
}

static bpe_status cannot(const char *format, const char *what, const bpe_model *m,
                         const vocab_entry *t, bpe_error *e) {
  quoted q;
  return set_error(e, BPE_BADMODEL, t->id, "%s cannot carry %s: token %lu: %s", format, what,
                   (unsigned long)t->id, quote_bytes(&q, vocab_bytes(&m->v, t), t->len));
}

bpe_status export_tiktoken(const bpe_model *m, bpe_error *e, bpe_buffer *out) {
  pace p = pace_of(&m->alloc);
  for (size_t i = 0; i < m->v.n_entries; i++) {
    if (buffer_failed(out, &p, ROW_WORK + 2 * (size_t)m->v.entries[i].len)) break;
    const vocab_entry *t = &m->v.entries[i];
    if (t->kind == BPE_ADDED) return cannot("tiktoken", "an added token", m, t, e);
    if (!entry_merges(t)) continue;
    base64_append(out, vocab_bytes(&m->v, t), t->len);
    bpe_buffer_append(out, " ", 1);
    bpe_buffer_append_decimal(out, t->id);
    bpe_buffer_append(out, "\n", 1);
  }
  return buffer_status(out, e);
}

/* ---- minbpe -------------------------------------------------------------------------------- */

/* The length of the character at s[0] if Python counts it as white space, else 0. */
static size_t python_space(const uint8_t *s, size_t len) {
  size_t n = utf8_length(s, len);
  if (n == 0) return 0;
  const uint32_t c = utf8_decode(s, &n);
  return (c >= 0x1c && c <= 0x1f) || unicode_class(c) == CLASS_SPACE ? n : 0;
}

static bool has_python_space(const uint8_t *s, size_t len) {
  for (size_t i = 0; i < len; i++)
    if (python_space(s + i, len - i) != 0) return true;
  return false;
}

/* minbpe takes white space off both ends of a line. */
static bool is_stripped(const uint8_t *s, size_t len) {
  size_t last = len == 0 ? 0 : len - 1;
  while (last > 0 && (s[last] & 0xc0) == 0x80) last--;
  return len > 0 && (python_space(s, len) != 0 || python_space(s + last, len - last) != 0);
}

static bpe_status write_minbpe_pattern(const bpe_model *m, bpe_error *e, bpe_buffer *out) {
  const bpe_pattern *p = m->pattern;
  const char *text = p->is_regex ? p->text : published_regex(p->text, p->len);
  if (text == NULL && !(p->scan == NULL && p->regex == NULL && p->n_chain == 0))
    return set_error(e, BPE_BADMODEL, 0,
                     "minbpe cannot carry a pattern that is no single regex: %s", p->text);
  if (text == NULL) text = "";
  if (p->is_regex && (p->len != strlen(text) || strpbrk(text, "\r\n") != NULL))
    return set_error(e, BPE_BADMODEL, 0, "minbpe cannot carry a regex with line ends or NUL");
  if (p->is_regex && is_stripped((const uint8_t *)text, p->len))
    return set_error(e, BPE_BADMODEL, 0,
                     "minbpe cannot carry a regex with white space at an end: %s", text);
  add(out, text);
  add(out, "\n");
  return BPE_OK;
}

static bpe_status write_minbpe_specials(const bpe_model *m, bpe_error *e, bpe_buffer *out) {
  size_t n = 0;
  pace p = pace_of(&m->alloc);
  for (size_t i = 0; i < m->v.n_entries && !pace_stopped(&p, 1); i++)
    n += m->v.entries[i].kind == BPE_SPECIAL;
  bpe_buffer_append_decimal(out, n);
  add(out, "\n");
  for (size_t i = 0; i < m->v.n_entries; i++) {
    const vocab_entry *t = &m->v.entries[i];
    if (buffer_failed(out, &p, 4)) break;
    if (t->kind == BPE_ADDED) return cannot("minbpe", "an added token", m, t, e);
    if (t->kind != BPE_SPECIAL) continue;
    const uint8_t *s = vocab_bytes(&m->v, t);
    if (has_python_space(s, t->len)) return cannot("minbpe", "white space in a name", m, t, e);
    bpe_buffer_append(out, s, t->len);
    add(out, " ");
    bpe_buffer_append_decimal(out, t->id);
    add(out, "\n");
  }
  return buffer_status(out, e);
}

bpe_status export_minbpe(const bpe_model *m, bpe_error *e, bpe_buffer *out) {
  pace p = pace_of(&m->alloc);
  for (unsigned c = 0; c < 256; c++) {
    if (m->v.byte_ids[c] == BPE_NONE)
      return set_error(e, BPE_BADMODEL, c,
                       "minbpe cannot carry a vocabulary that lacks bytes: "
                       "there is no token for byte 0x%02x",
                       c);
    if (m->v.byte_ids[c] != c)
      return set_error(e, BPE_BADMODEL, c,
                       "minbpe cannot carry ids of bytes that are not their value: "
                       "byte 0x%02x is %lu",
                       c, (unsigned long)m->v.byte_ids[c]);
  }
  add(out, "minbpe v1\n");
  bpe_status st = write_minbpe_pattern(m, e, out);
  if (st == BPE_OK) st = write_minbpe_specials(m, e, out);
  if (st != BPE_OK) return st;
  for (size_t i = 0; i < m->v.n_merges && !buffer_failed(out, &p, ROW_WORK); i++) {
    const vocab_merge *x = &m->v.merges[i];
    if (x->id != 256 + i)
      return set_error(e, BPE_BADMODEL, x->rank,
                       "minbpe cannot carry merge %lu, which makes %lu, not %zu",
                       (unsigned long)x->rank, (unsigned long)x->id, 256 + i);
    bpe_buffer_append_decimal(out, x->left);
    add(out, " ");
    bpe_buffer_append_decimal(out, x->right);
    add(out, "\n");
  }
  return buffer_status(out, e);
}

/* ---- GPT-2 --------------------------------------------------------------------------------- */

static void add_escape(bpe_buffer *b, uint32_t unit) {
  char text[8];
  (void)snprintf(text, sizeof text, "\\u%04x", (unsigned)(unit & 0xffff));
  bpe_buffer_append(b, text, 6);
}

/* A JSON string in ASCII, as Python's json module writes it. */
static void add_ascii_string(bpe_buffer *b, const uint8_t *s, size_t len) {
  static const char plain[] = "\b\t\n\f\r\"\\", letter[] = "btnfr\"\\";
  add(b, "\"");
  for (size_t i = 0, n; i < len; i += n) {
    n = 1;
    const char *short_form = s[i] == 0 ? NULL : strchr(plain, s[i]);
    if (short_form != NULL) {
      add(b, "\\");
      bpe_buffer_append(b, &letter[short_form - plain], 1);
    } else if (s[i] >= 0x20 && s[i] < 0x7f) {
      bpe_buffer_append(b, &s[i], 1);
    } else if (utf8_length(s + i, len - i) == 0) {
      add_escape(b, 0xfffd);
    } else {
      const uint32_t cp = utf8_decode(s + i, &n);
      if (cp >= 0x10000) {
        add_escape(b, 0xd800 + ((cp - 0x10000) >> 10));
        add_escape(b, 0xdc00 + ((cp - 0x10000) & 0x3ff));
      } else {
        add_escape(b, cp);
      }
    }
  }
  add(b, "\"");
}

/* A special token stands as its name; the others as their bytes. Where pieces that are tokens are
** kept whole, one that no text becomes is left to the caller's special tokens. */
bpe_status export_gpt2_vocab(const bpe_model *m, bpe_error *e, bpe_buffer *out) {
  bpe_status st = export_one_id_each(m, "gpt2-vocab", e);
  pace p = pace_of(&m->alloc);
  bpe_buffer name;
  bpe_buffer_init(&name, &m->alloc, 0);
  add(out, "{");
  bool any = false;
  for (size_t i = 0; i < m->v.n_entries && st == BPE_OK; i++) {
    const vocab_entry *t = &m->v.entries[i];
    if (buffer_failed(out, &p, ROW_WORK + 8 * (size_t)t->len)) break;
    if (m->v.whole && !entry_merges(t)) continue;
    const uint8_t *s = vocab_bytes(&m->v, t);
    name.len = 0;
    if (t->kind == BPE_TOKEN && !(t->flags & ENTRY_UNUSED)) export_byte_level(&name, s, t->len);
    else bpe_buffer_append(&name, s, t->len);
    if (any) add(out, ", ");
    any = true;
    if (name.bytes != NULL) add_ascii_string(out, name.bytes, name.len);
    add(out, ": ");
    bpe_buffer_append_decimal(out, t->id);
    st = buffer_status(&name, e);
  }
  add(out, "}");
  bpe_buffer_clear(&name);
  return st == BPE_OK ? buffer_status(out, e) : st;
}

bpe_status export_gpt2_merges(const bpe_model *m, bpe_error *e, bpe_buffer *out) {
  const vocab *v = &m->v;
  pace p = pace_of(&m->alloc);
  add(out, "#version: 0.2\n");
  for (size_t i = 0; i < v->n_merges; i++) {
    const vocab_entry *l = &v->entries[vocab_find_id(v, v->merges[i].left)];
    const vocab_entry *r = &v->entries[vocab_find_id(v, v->merges[i].right)];
    if (buffer_failed(out, &p, ROW_WORK + 4 * ((size_t)l->len + r->len))) break;
    export_byte_level(out, vocab_bytes(v, l), l->len);
    add(out, " ");
    export_byte_level(out, vocab_bytes(v, r), r->len);
    add(out, "\n");
  }
  return buffer_status(out, e);
}
