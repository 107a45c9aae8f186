/* import_stages.c - normalizer, pre-tokenizer and decoder of a tokenizer.json. See import_hf.c.
**
** Each stage is one step or a Sequence of them. Pre-tokenizers become one pattern: a published
** regex its name, another regex itself, several of them a chain. Their regexes are Oniguruma's:
** what PCRE2 reads otherwise is refused. So are steps that drop text, as here every byte belongs to
** a piece, and regexes that would see U+2581 there and a space here.
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

static bpe_status add_form(hf *h, const doc_node *v) {
  static const char *const forms[][2] = {
      {"NFC", "nfc"}, {"NFD", "nfd"}, {"NFKC", "nfkc"}, {"NFKD", "nfkd"}};
  const char *type = hf_type(v)->text;
  for (int i = 0; i < 4; i++) {
    if (strcmp(forms[i][0], type) != 0) continue;
    if (h->spaces && i >= 2) /* would make spaces that stay spaces */
      return hf_refuse(h, v, "normalizer", "after the replacement of spaces");
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
  if (h->byte_fallback && doc_is(text, space_mark)) {
    h->mark = v;
    return normalizer_add_prepend(h->normalizer, " ", 1, h->in->e);
  }
  if (h->byte_fallback && has_space(text))
    return hf_refuse(h, v, "normalizer", "not supported with spaces");
  return normalizer_add_prepend(h->normalizer, text->text, text->len, h->in->e);
}

static bpe_status read_normalizer(hf *h, const doc_node *v, void *ctx) {
  (void)ctx;
  const bpe_status st = add_form(h, v);
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
  bool has_split; /* by a regex */
} items;

static bpe_status add_item(hf *h, items *to, const doc_node *v, const char *text, size_t len,
                           bool is_regex) {
  if (to->n == MAX_ITEMS) return hf_refuse(h, v, "pre_tokenizer", "too many steps");
  to->list[to->n++] = (item){text, len, is_regex};
  return BPE_OK;
}

static bool starts_with(const char *s, size_t len, const char *start, size_t n) {
  return len >= n && memcmp(s, start, n) == 0;
}

static bool is_one_of(char c, const char *list) {
  return c != 0 && strchr(list, c) != NULL;
}

/* Whether the \x at s[0] has a number in braces, or digits of one below 80. */
static bool is_plain_number(const char *s, size_t len) {
  static const char hex[] = "0123456789abcdefABCDEF";
  if (len > 3 && s[2] == '{') return is_one_of(s[3], hex);
  return len > 2 && is_one_of(s[2], hex) && (s[2] < '8' || len == 3 || !is_one_of(s[3], hex));
}

/* What the two read differently behind a backslash, or NULL: a word of Oniguruma's has marks and all
** connectors, \v is one character, \Q no quotation, \R not atomic, \xe9 a byte, groups that are
** called keep what they matched, and a script goes without its extensions. */
static const char *other_escape(const char *s, size_t len, bool in_class) {
  static const char *const escapes[] = {"\\h in", "\\H in", "\\v in", "\\V in", "\\w in", "\\W in",
                                        "\\Q in", "\\E in", "\\c in", "\\b in", "\\B in", "\\g in",
                                        "\\k in", "\\K in", "\\N in", "\\R in", "\\X in"};
  enum { N_ESCAPES = sizeof escapes / sizeof *escapes, IN_CLASS = 9 };
  for (size_t k = 0; len > 1 && k < (in_class ? IN_CLASS : N_ESCAPES); k++)
    if (escapes[k][1] == s[1]) return escapes[k];
  if (len > 1 && is_one_of(s[1], "123456789")) return "back reference or octal number in";
  if (len > 1 && s[1] == 'x' && !is_plain_number(s, len)) return "\\x of no ASCII character in";
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
    if (starts_with(s, len, names[k], n)) return n;
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

/* Whether one character folds to these two, as the German sharp s does to ss. */
static bool is_folded(char a, char b) {
  static const char *const pairs[] = {"ff", "fi", "fl", "ss", "st"};
  for (size_t k = 0; k < sizeof pairs / sizeof *pairs; k++)
    if (pairs[k][0] == (a | 0x20) && pairs[k][1] == (b | 0x20)) return true;
  return false;
}

/* What the two may read differently of "(?i:" at s[0], or NULL; *n: up to its ")". */
static const char *other_case(const char *s, size_t len, size_t *n) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'|?-_ ";
  bool in_class = false;
  size_t i = 4;
  for (; i < len && s[i] != ')'; i++) {
    const bool opens = s[i] == '[' && !in_class, closes = s[i] == ']' && in_class;
    if (!(opens || (closes && s[i - 1] != '[') || is_one_of(s[i], plain)))
      return "(?i: with more than letters and classes of them in";
    if (!in_class && is_folded(s[i - 1], s[i])) return "(?i: with ff, fi, fl, ss or st in";
    if (opens || closes) in_class = opens;
  }
  *n = i;
  return in_class ? "(?i: with more than letters and classes of them in" : NULL;
}

/* What the two may read differently of "(" at s[0], or NULL; *n: what is read. In atomic and
** possessive groups, and before them, PCRE2 10.42 keeps repeats from giving back what they have to,
** as in (a+)(b)?+a. */
static const char *other_group(const char *s, size_t len, size_t *n) {
  static const char *const alike[] = {"(?:", "(?=", "(?!", "(?<"};
  if (starts_with(s, len, "(*", 2)) return "(* in";
  if (starts_with(s, len, "(?#", 3)) return "comment in";
  if (starts_with(s, len, "(?>", 3)) return "atomic group in";
  if (starts_with(s, len, "(?i:", 4)) return other_case(s, len, n);
  for (size_t k = 0; k < sizeof alike / sizeof *alike; k++)
    if (starts_with(s, len, alike[k], 3)) return NULL;
  return starts_with(s, len, "(?", 2) ? "flag or unknown group in" : NULL;
}

/* Whether s[0] is the brace of a count with blanks, which some PCRE2 take for part of it. */
static bool is_blank_count(const char *s, size_t len) {
  bool blank = false;
  size_t i = 1;
  for (; i < len && is_one_of(s[i], "0123456789, \t"); i++) blank |= s[i] == ' ' || s[i] == '\t';
  return s[0] == '{' && blank && i < len && s[i] == '}';
}

/* What the two read differently of anything else, of which s[0] is the first character, or NULL. Of
** a group that may match nothing, n times, Oniguruma leaves out some; {n}? is no {n} to it. */
static const char *other_sign(const char *s, size_t len) {
  static const char *const signs[] = {"{, in",  "}+ in",  "}? in", "){ in",
                                      ")?+ in", ")*+ in", ")++ in"};
  if (s[0] == '^' || s[0] == '$') return "line anchor in";
  for (size_t k = 0; k < sizeof signs / sizeof *signs; k++)
    if (starts_with(s, len, signs[k], strcspn(signs[k], " "))) return signs[k];
  return is_blank_count(s, len) ? "blank between { and } in" : NULL;
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
    } else if (s[i] == '(') {
      other = other_group(s + i, len - i, &n);
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
  if (h->spaces) return hf_refuse(h, v, "pre_tokenizer", "regex with U+2581 for spaces");
  to->has_split = true;
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
  if (to->has_split) return hf_refuse(h, v, "pre_tokenizer", "after a regex");
  if (!never && to->n != 0) return hf_refuse(h, v, "pre_tokenizer", "prepends after another step");
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
    bpe_buffer_append_json(&text, x->list[i].text, x->list[i].len);
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
  if (h->mark != NULL && !h->spaces)
    return hf_refuse(h, h->mark, "normalizer", "U+2581 that stands for no space");
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
    if (!doc_is(doc_get(v, "replacement"), space_mark))
      return hf_refuse(h, v, "decoder", "not supported");
    if (!doc_is(doc_get(v, "prepend_scheme"), "never")) /* drops each U+2581 of the first token */
      return hf_refuse(h, v, "decoder", "prepend_scheme other than never");
    d->to_spaces = true;
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
