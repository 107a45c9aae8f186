/* import_stages.c - normalizer, pre-tokenizer and decoder of a tokenizer.json. See import_hf.c.
**
** Each stage is one step or a Sequence of them. Pre-tokenizers become one pattern: a published
** regex its name, another regex itself, several of them a chain. Their regexes are Oniguruma's; the
** few spellings that PCRE2 reads otherwise are refused. Steps that drop text are refused too: here
** every byte belongs to a piece.
*/
#include "import_stages.h"

#include "published.h"
#include "regex.h"

#include <string.h>

enum { MAX_ITEMS = 16 };

static const char space_mark[] = "\xe2\x96\x81"; /* U+2581 */

typedef bpe_status read_step(hf *, const doc_node *, void *ctx);

/* Calls `read` for a step, or for each of a sequence, which holds no sequences. */
static bpe_status each_step(hf *h, const doc_node *v, const char *path, const char *list_key,
                            read_step *read, void *ctx) {
  if (v == NULL || v->kind == DOC_NULL) return BPE_OK;
  if (hf_type(v) == NULL) return hf_refuse(h, v, path, "has no type");
  if (!hf_is(v, "Sequence")) return read(h, v, ctx);
  const doc_node *list = doc_get(v, list_key);
  if (!doc_has_kind(list, DOC_ARRAY)) return hf_refuse(h, v, path, "has no steps");
  for (const doc_node *x = list->first; x != NULL; x = x->next) {
    if (hf_type(x) == NULL || hf_is(x, "Sequence")) return hf_refuse(h, x, path, "not supported");
    const bpe_status st = read(h, x, ctx);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

/* ---- Normalizer ---------------------------------------------------------------------------- */

static bpe_status add_form(hf *h, const char *type) {
  static const char *const forms[][2] = {
      {"NFC", "nfc"}, {"NFD", "nfd"}, {"NFKC", "nfkc"}, {"NFKD", "nfkd"}};
  for (int i = 0; i < 4; i++) {
    if (strcmp(forms[i][0], type) != 0) continue;
    return normalizer_add_form(h->normalizer, forms[i][1], strlen(forms[i][1]), h->in->e);
  }
  return BPE_MISUSE; /* no form */
}

static bpe_status add_spaces(hf *h) {
  h->spaces = true;
  return normalizer_add_replace(h->normalizer, space_mark, 3, " ", 1, h->in->e);
}

static bool has_space(const doc_node *v) {
  return memchr(v->text, ' ', v->len) != NULL || strstr(v->text, space_mark) != NULL;
}

static bpe_status read_replace(hf *h, const doc_node *v) {
  const doc_node *from = doc_get(doc_get(v, "pattern"), "String"), *to = doc_get(v, "content");
  if (!doc_has_kind(from, DOC_STRING) || from->len == 0 || !doc_has_kind(to, DOC_STRING))
    return hf_refuse(h, v, "normalizer", "pattern that is no string");
  if (h->byte_fallback && doc_is(from, " ") && doc_is(to, space_mark)) return add_spaces(h);
  if (h->byte_fallback && (has_space(from) || has_space(to)))
    return hf_refuse(h, v, "normalizer", "other replacement of spaces");
  return normalizer_add_replace(h->normalizer, from->text, from->len, to->text, to->len, h->in->e);
}

static bpe_status read_prepend(hf *h, const doc_node *v) {
  const doc_node *text = doc_get(v, "prepend");
  if (!doc_has_kind(text, DOC_STRING) || text->len == 0)
    return hf_refuse(h, v, "normalizer", "nothing to prepend");
  if (h->byte_fallback && doc_is(text, space_mark))
    return normalizer_add_prepend(h->normalizer, " ", 1, h->in->e);
  if (h->byte_fallback && has_space(text))
    return hf_refuse(h, v, "normalizer", "not supported with spaces");
  return normalizer_add_prepend(h->normalizer, text->text, text->len, h->in->e);
}

static bpe_status read_normalizer(hf *h, const doc_node *v, void *ctx) {
  (void)ctx;
  const bpe_status st = add_form(h, hf_type(v)->text);
  if (st != BPE_MISUSE) return st;
  if (hf_is(v, "Replace")) return read_replace(h, v);
  if (hf_is(v, "Prepend")) return read_prepend(h, v);
  return hf_refuse(h, v, "normalizer", "not supported");
}

bpe_status hf_normalizer(hf *h, const doc_node *v) {
  bpe_status st = normalizer_new(&h->in->alloc, h->in->e, &h->normalizer);
  if (st == BPE_OK) st = each_step(h, v, "normalizer", "normalizers", read_normalizer, NULL);
  if (st != BPE_OK) return st;
  h->normalizes = normalizer_steps(h->normalizer) != 0;
  h->late_is_plain = normalizer_is_plain(h->normalizer);
  return st;
}

/* ---- Pre-tokenizer ------------------------------------------------------------------------- */

typedef struct item {
  const char *text; /* a name, or a regex */
  size_t len;
  bool is_regex;
} item;

typedef struct items {
  item list[MAX_ITEMS];
  size_t n;
} items;

static bpe_status add_item(hf *h, items *to, const doc_node *v, const char *text, size_t len,
                           bool is_regex) {
  if (to->n == MAX_ITEMS) return hf_refuse(h, v, "pre_tokenizer", "too many steps");
  to->list[to->n++] = (item){text, len, is_regex};
  return BPE_OK;
}

/* What the two read differently behind a backslash, or NULL: a word of Oniguruma's has marks and all
** connectors, \v is one character, \Q no quotation, and a script goes without its extensions. */
static const char *other_escape(const char *s, size_t len, bool in_class) {
  static const char *const escapes[] = {"\\h in", "\\H in", "\\v in", "\\V in", "\\w in",
                                        "\\W in", "\\Q in", "\\E in", "\\b in", "\\B in"};
  enum { N_ESCAPES = sizeof escapes / sizeof *escapes, IN_CLASS = N_ESCAPES - 2 };
  for (size_t k = 0; len > 1 && k < (in_class ? IN_CLASS : N_ESCAPES); k++)
    if (escapes[k][1] == s[1]) return escapes[k];
  if (len < 2 || (s[1] != 'p' && s[1] != 'P')) return NULL;
  if (len < 3 || s[2] != '{') return "property without { in";
  size_t n = 3;
  while (n < len && s[n] != '}') n++;
  return n - 3 > (s[3] == '^' ? 3 : 2) ? "script or property in" : NULL;
}

/* The length of a POSIX class at s[0] that both read alike, up to what both count as blank; 0. */
static size_t plain_posix(const char *s, size_t len) {
  static const char *const names[] = {"[:digit:]", "[:xdigit:]", "[:space:]", "[:blank:]",
                                      "[:cntrl:]"};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
    const size_t n = strlen(names[k]);
    if (len >= n && memcmp(s, names[k], n) == 0) return n;
  }
  return 0;
}

/* The length of the escape at s[0], with the braces of a property or a number. */
static size_t escape_length(const char *s, size_t len) {
  if (len < 3 || s[2] != '{' || (s[1] != 'p' && s[1] != 'P' && s[1] != 'x')) return 2;
  const char *end = memchr(s, '}', len);
  return end == NULL ? len : (size_t)(end - s) + 1;
}

/* What the two read differently of a class at s[0], or NULL; *n: the class with its brackets. */
static const char *other_class(const char *s, size_t len, size_t *n) {
  size_t i = len > 1 && s[1] == '^' ? 2 : 1;
  if (i < len && s[i] == ']') i++;
  for (; i < len && s[i] != ']'; i++) {
    const char next = i + 1 < len ? s[i + 1] : 0;
    if (s[i] == '\\') {
      const char *escape = other_escape(s + i, len - i, true);
      if (escape != NULL) return escape;
      i += escape_length(s + i, len - i) - 1;
    } else if (s[i] == '[') {
      const size_t posix = plain_posix(s + i, len - i);
      if (posix == 0) return next == ':' ? "POSIX class in" : "class inside a class in";
      i += posix - 1;
    } else if (s[i] == '&' && next == '&') {
      return "&& in";
    }
  }
  *n = i + 1;
  return NULL;
}

/* What the two read differently of anything else, of which s[0] is the first character, or NULL. */
static const char *other_sign(const char *s, size_t len) {
  static const char *const pairs[] = {"{, in", "}+ in", "(?m in"};
  if (s[0] == '^' || s[0] == '$') return "line anchor in";
  for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++) {
    const size_t n = strcspn(pairs[k], " ");
    if (len >= n && memcmp(s, pairs[k], n) == 0) return pairs[k];
  }
  return NULL;
}

/* What Oniguruma and PCRE2 read differently, or NULL. */
static const char *other_meaning(const char *s, size_t len) {
  const char *other = NULL;
  for (size_t i = 0, n = 1; i < len && other == NULL; i += n) {
    n = 1;
    if (s[i] == '\\') {
      other = other_escape(s + i, len - i, false);
      n = escape_length(s + i, len - i);
    } else if (s[i] == '[') {
      other = other_class(s + i, len - i, &n);
    } else {
      other = other_sign(s + i, len - i);
    }
  }
  return other;
}

/* A regex that is no published one. Where it matches nothing the library cuts, and here nothing
** does. */
static bpe_status add_regex(hf *h, items *to, const doc_node *v, const doc_node *text) {
  const char *other = other_meaning(text->text, text->len);
  if (other == NULL) {
    regex *r;
    const bpe_status st = regex_new(&h->in->alloc, text->text, text->len, h->in->e, &r);
    if (st != BPE_OK) return st;
    if (regex_matches_nothing(r)) other = "a match of nothing in";
    regex_free(r);
  }
  if (other != NULL)
    return set_error(h->in->e, BPE_BADMODEL, v->offset,
                     "tokenizer.json: pre_tokenizer: %s a regex is not supported", other);
  return add_item(h, to, v, text->text, text->len, true);
}

static bpe_status read_split(hf *h, const doc_node *v, items *to) {
  const doc_node *pattern = doc_get(v, "pattern"), *how = doc_get(v, "behavior");
  const doc_node *regex_text = doc_get(pattern, "Regex"), *string = doc_get(pattern, "String");
  const bool invert = hf_bool(v, "invert", false);
  if (h->spaces && doc_is(string, " ")) return BPE_OK; /* no text has spaces by then */
  if (!doc_has_kind(regex_text, DOC_STRING))
    return hf_refuse(h, v, "pre_tokenizer", "pattern that is no regex");
  const char *name = published_name(regex_text->text, regex_text->len);
  const bool keeps_all =
      doc_is(how, "Isolated") || (doc_is(how, "Removed") && invert && name != NULL);
  if (!keeps_all) {
    quoted q;
    return set_error(h->in->e, BPE_BADMODEL, v->offset,
                     "tokenizer.json: pre_tokenizer: Split behavior is not supported: %s%s",
                     how == NULL ? "" : quote_bytes(&q, how->text, how->len),
                     invert ? ", inverted" : "");
  }
  if (name != NULL) return add_item(h, to, v, name, strlen(name), false);
  for (int i = 0; i < DEEPSEEK3_STEPS; i++)
    if (doc_is(regex_text, published_deepseek3[i]))
      return add_item(h, to, v, regex_text->text, regex_text->len, true);
  return add_regex(h, to, v, regex_text);
}

static bpe_status read_byte_level(hf *h, const doc_node *v, items *to) {
  if (h->spaces) return hf_refuse(h, v, "pre_tokenizer", "not supported with U+2581 for spaces");
  h->byte_level = true;
  if (hf_bool(v, "add_prefix_space", true)) {
    if (to->n != 0) return hf_refuse(h, v, "pre_tokenizer", "add_prefix_space after another step");
    const bpe_status st = normalizer_add_prefix_space(h->normalizer, h->in->e);
    if (st != BPE_OK) return st;
    h->late_is_plain = false;
  }
  return hf_bool(v, "use_regex", true) ? add_item(h, to, v, "gpt2", 4, false) : BPE_OK;
}

static bpe_status read_metaspace(hf *h, const doc_node *v, items *to) {
  static const char words[] = " ?[^ ]+| ";
  const doc_node *scheme = doc_get(v, "prepend_scheme");
  const bool never =
      doc_is(scheme, "never") || (scheme == NULL && !hf_bool(v, "add_prefix_space", true));
  if (!h->byte_fallback || !doc_is(doc_get(v, "replacement"), space_mark))
    return hf_refuse(h, v, "pre_tokenizer", "not supported");
  if (!never && scheme != NULL && !doc_is(scheme, "always"))
    return hf_refuse(h, v, "pre_tokenizer", "prepend_scheme other than always and never");
  bpe_status st = add_spaces(h);
  if (st == BPE_OK && !never) st = normalizer_add_prefix_space(h->normalizer, h->in->e);
  h->late_is_plain = false;
  if (st != BPE_OK || !hf_bool(v, "split", true)) return st;
  return add_item(h, to, v, words, strlen(words), true);
}

static bpe_status read_pre_tokenizer(hf *h, const doc_node *v, void *ctx) {
  items *to = ctx;
  if (h->byte_level) return hf_refuse(h, v, "pre_tokenizer", "a step after ByteLevel");
  if (hf_is(v, "ByteLevel")) return read_byte_level(h, v, to);
  if (hf_is(v, "Split")) return read_split(h, v, to);
  if (hf_is(v, "Metaspace")) return read_metaspace(h, v, to);
  if (hf_is(v, "Digits"))
    return hf_bool(v, "individual_digits", false) ? add_item(h, to, v, "\\p{N}", 5, true)
                                                  : add_item(h, to, v, "\\p{N}+", 6, true);
  return hf_refuse(h, v, "pre_tokenizer", "not supported");
}

static bool is_deepseek3(const items *x) {
  if (x->n != DEEPSEEK3_STEPS) return false;
  for (size_t i = 0; i < x->n; i++)
    if (!x->list[i].is_regex || strlen(published_deepseek3[i]) != x->list[i].len ||
        memcmp(published_deepseek3[i], x->list[i].text, x->list[i].len) != 0)
      return false;
  return true;
}

static bpe_status set_chain(hf *h, const items *x) {
  bpe_buffer text;
  bpe_buffer_init(&text, &h->in->alloc, 0);
  for (size_t i = 0; i < x->n; i++) {
    bpe_buffer_append(&text, i == 0 ? "[" : ",", 1);
    if (x->list[i].is_regex) bpe_buffer_append(&text, "{\"regex\":", 9);
    doc_append_string(&text, x->list[i].text, x->list[i].len);
    if (x->list[i].is_regex) bpe_buffer_append(&text, "}", 1);
  }
  bpe_buffer_append(&text, "]", 1);
  const bpe_status st = buffer_status(&text, h->in->e);
  if (st == BPE_OK) bpe_builder_pattern(h->in->b, (const char *)text.bytes, text.len, false);
  bpe_buffer_clear(&text);
  return st;
}

bpe_status hf_pre_tokenizer(hf *h, const doc_node *v) {
  items x = {.n = 0};
  const bpe_status st = each_step(h, v, "pre_tokenizer", "pretokenizers", read_pre_tokenizer, &x);
  if (st != BPE_OK) return st;
  if (is_deepseek3(&x)) bpe_builder_pattern(h->in->b, "deepseek3", 9, false);
  else if (x.n == 0) bpe_builder_pattern(h->in->b, "none", 4, false);
  else if (x.n == 1)
    bpe_builder_pattern(h->in->b, x.list[0].text, x.list[0].len, x.list[0].is_regex);
  else return set_chain(h, &x);
  return BPE_OK;
}

/* ---- Decoder ------------------------------------------------------------------------------- */

typedef struct decoding {
  bool to_spaces, bytes, fused;
} decoding;

static bpe_status read_decoder(hf *h, const doc_node *v, void *ctx) {
  decoding *d = ctx;
  const doc_node *content = doc_get(v, "content");
  uint32_t start = 0, stop = 0;
  if (h->byte_level) {
    if (hf_is(v, "ByteLevel") || hf_is(v, "Fuse")) return BPE_OK;
  } else if (hf_is(v, "Replace")) {
    if (h->spaces && doc_is(doc_get(doc_get(v, "pattern"), "String"), space_mark) &&
        doc_is(content, " ")) {
      d->to_spaces = true;
      return BPE_OK;
    }
  } else if (hf_is(v, "Metaspace") && h->spaces) {
    d->to_spaces = true;
    if (!doc_is(doc_get(v, "prepend_scheme"), "never")) h->strip = 1;
    return BPE_OK;
  } else if (hf_is(v, "ByteFallback")) {
    d->bytes = true;
    return BPE_OK;
  } else if (hf_is(v, "Fuse")) {
    d->fused = true;
    return BPE_OK;
  } else if (hf_is(v, "Strip") && d->fused && doc_is(content, " ") &&
             doc_id(doc_get(v, "start"), &start) && doc_id(doc_get(v, "stop"), &stop) &&
             stop == 0) {
    h->strip += start;
    return BPE_OK;
  }
  return hf_refuse(h, v, "decoder", "not supported");
}

bpe_status hf_decoder(hf *h, const doc_node *v) {
  decoding d = {0};
  const bpe_status st = each_step(h, v, "decoder", "decoders", read_decoder, &d);
  if (st != BPE_OK || h->byte_level) return st;
  if (!d.bytes) return hf_refuse(h, v, "decoder", "no ByteFallback beside byte_fallback");
  if (h->spaces && !d.to_spaces) return hf_refuse(h, v, "decoder", "U+2581 stays in decoded text");
  return BPE_OK;
}
