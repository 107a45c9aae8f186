/* regex.c - the only caller of PCRE2. See regex.h.
**
** Compiled with UTF and UCP. Matched with machine code where it can be had, with limits always:
** a limit hit is an error, never "no match". Memory comes from the caller's allocator, except
** that of the machine code, which PCRE2 maps itself.
**
** PCRE2 asks nobody while it matches, so it is never given much to do at once. An attempt is a
** match tried at one place; one attempt may take STEPS. A call makes only so many attempts that
** even if each looked at all of the text (PLACES_BYTES) and took its share of STEPS, it would be
** over in some ten milliseconds; where one needs more than its share, it is made by itself:
**
**     attempts at   0 1 2 3 | 4 5 6 7 | 8 | 9 10 | ...        8 ran out of its share of steps
**
** \G matches where a call begins, which is then not always where the search does. So a pattern with
** \G has a second code, in which it matches nowhere, for all places of a search but the first.
**
** \s and [:space:] are White_Space, as to Rust's regexes and to Oniguruma: PCRE2 itself has U+180E
** beside, and so in [:blank:]. (Not in a pattern with (?x), \Q, a verb or a callout, or with white space
** a thousand times.)
*/
#include "regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdio.h>
#include <string.h>

/* One attempt may try this many steps and hold this much: enough for any sane pattern on a piece of
** text. */
enum { STEPS = 2000000, DEPTH_LIMIT = 100000, HEAP_LIMIT_KIB = 65536 };
enum { PLACES_BYTES = 1 << 26, MOST_PLACES = 1 << 12 };
/* Of a pattern: the code of one that is longer, comments aside, has no room in PCRE2. */
enum { LONGEST_PATTERN = 1 << 18 };
enum { STOPPED = 1 << 20 }; /* no result of PCRE2's: it was asked for the match alone */
enum { JIT_STACK_START = 32 * 1024, JIT_STACK_MAX = 1024 * 1024 };

struct regex {
  bpe_alloc alloc;
  pcre2_general_context *memory;
  pcre2_code *code;
  pcre2_code *later; /* NULL: code; else for all places of a search but the first */
};

struct regex_match {
  bpe_alloc alloc;
  pcre2_general_context *memory;
  pcre2_match_context *context;
  pcre2_match_data *data;
  pcre2_jit_stack *stack;
  size_t places; /* attempts that the next call may make */
  int (*stop)(void *);
  void *stop_ctx;
};

static void *allocate(PCRE2_SIZE n, void *alloc) {
  return mem_new(alloc, n, 1);
}

static void release(void *p, void *alloc) {
  mem_free(alloc, p);
}

void regex_free(regex *r) {
  if (r == NULL) return;
  const bpe_alloc a = r->alloc;
  pcre2_code_free(r->code);
  pcre2_code_free(r->later);
  pcre2_general_context_free(r->memory);
  mem_free(&a, r);
}

/* ---- What is compiled ------------------------------------------------------------------------ */

/* In a class. A - beside either end stays a -, as it is beside \s. */
#define WHITE_SPACE "\\p{Z}\\t-\\r\\x85\\p{Z}"
#define OTHERS "\\S\\x{180e}\\S"

static const char *const posix[][2] = {
    {"[:space:]", WHITE_SPACE},
    {"[:^space:]", OTHERS},
    {"[:blank:]", "\\p{Zs}\\t\\p{Zs}"},
    {"[:^blank:]", "[:^blank:]\\x{180e}[:^blank:]"},
};

enum { MOST_GROWTH = 12 }; /* of a pattern that is rewritten, times its length */

typedef struct rewriting {
  const char *s;
  size_t len, at;
  bool later; /* \G is to match nowhere */
  bool plain; /* which bracket begins a class is not known: white space stays */
  bool is_quoted, in_class;
  bool any_start, any_space; /* there was a \G, white space */
  char *out;                 /* room for MOST_GROWTH times len + 1 */
  size_t n;
} rewriting;

static void keep(rewriting *w, size_t n) {
  if (n > w->len - w->at) n = w->len - w->at;
  memcpy(w->out + w->n, w->s + w->at, n);
  w->n += n;
  w->at += n;
}

static void put(rewriting *w, size_t n, const char *text) {
  memcpy(w->out + w->n, text, strlen(text));
  w->n += strlen(text);
  w->at += n;
}

static bool begins(const rewriting *w, const char *text) {
  const size_t n = strlen(text);
  return w->len - w->at >= n && memcmp(w->s + w->at, text, n) == 0;
}

static void rewrite_escape(rewriting *w) {
  const char next = w->at + 1 < w->len ? w->s[w->at + 1] : 0;
  const bool is_space = next == 's' && !w->plain, is_other = next == 'S' && !w->plain;
  w->any_space |= is_space || is_other;
  if (is_space) {
    put(w, 2, w->in_class ? WHITE_SPACE : "[" WHITE_SPACE "]");
  } else if (is_other) {
    put(w, 2, w->in_class ? OTHERS : "[" OTHERS "]");
  } else if (next == 'G' && !w->in_class) {
    w->any_start = true;
    if (w->later) put(w, 2, "(?!)");
    else keep(w, 2);
  } else {
    w->is_quoted = next == 'Q';
    keep(w, next == 'c' ? 3 : 2);
  }
}

/* At a [: in a class, which is a POSIX class if a name and :] follow. */
static void rewrite_posix(rewriting *w) {
  for (size_t i = 0; i < sizeof posix / sizeof *posix; i++) {
    if (!begins(w, posix[i][0])) continue;
    w->any_space = true;
    put(w, strlen(posix[i][0]), posix[i][1]);
    return;
  }
  const char *const s = w->s + w->at;
  size_t n = 2;
  while (n < w->len - w->at && (s[n] == '^' || (s[n] >= 'a' && s[n] <= 'z'))) n++;
  const bool is_one = w->len - w->at - n >= 2 && s[n] == ':' && s[n + 1] == ']';
  keep(w, is_one ? n + 2 : 1);
}

/* The pattern as PCRE2 is to read it, into w->out, and a NUL. */
static void rewrite(rewriting *w) {
  while (w->at < w->len) {
    if (w->is_quoted) {
      w->is_quoted = !begins(w, "\\E");
      keep(w, w->is_quoted ? 1 : 2);
    } else if (begins(w, "\\")) {
      rewrite_escape(w);
    } else if (w->in_class && begins(w, "[:")) {
      rewrite_posix(w);
    } else if (w->in_class) {
      w->in_class = !begins(w, "]");
      keep(w, 1);
    } else if (begins(w, "(?#")) {
      const char *end = memchr(w->s + w->at, ')', w->len - w->at);
      keep(w, end == NULL ? w->len : (size_t)(end - w->s) - w->at);
    } else {
      w->in_class = !w->plain && begins(w, "[");
      keep(w, begins(w, "[^]") ? 3 : begins(w, "[]") || begins(w, "[^") ? 2 : 1);
    }
  }
  w->out[w->n] = 0;
}

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Whether a bracket of the pattern need not begin a class: it may stand in a comment where blanks and
** what follows a # are one, in the name of a verb, in a callout, or quoted. */
static bool has_other_brackets(const char *s, size_t len) {
  for (size_t i = 0; i + 1 < len; i++) {
    if (s[i] == '\\' && (s[i + 1] == 'Q' || s[i + 1] == 'E')) return true;
    if (s[i] != '(' || (s[i + 1] != '?' && s[i + 1] != '*')) continue;
    if (s[i + 1] == '*' || (i + 2 < len && s[i + 2] == 'C')) return true;
    for (size_t k = i + 2; k < len && (s[k] == '^' || s[k] == '-' || is_letter(s[k])); k++)
      if (s[k] == 'x') return true;
  }
  return false;
}

/* Whether the pattern may look behind, where a \G may be true once more. */
static bool may_look_behind(const char *s, size_t len) {
  for (size_t i = 0; i + 1 < len; i++)
    if (s[i] == '(' &&
        (s[i + 1] == '*' || (i + 3 < len && s[i + 1] == '?' && s[i + 2] == '<' &&
                             (s[i + 3] == '=' || s[i + 3] == '!' || s[i + 3] == '*'))))
      return true;
  return false;
}

/* ---- Compiling ------------------------------------------------------------------------------ */

/* Behind the pattern is a NUL: PCRE2 10.42 reads the number of a (*LIMIT_MATCH= to where it ends and
** one more, not to where the pattern does. */
static bpe_status compile(pcre2_compile_context *context, const char *pattern, size_t len,
                          bpe_error *e, pcre2_code **out) {
  /* No \C: after a match that ends inside a character the rest would not be UTF-8. $ is the very
  ** end, as to Rust's regexes, in which patterns of tokenizers are published. No optimizations of
  ** where to start: those of 10.42 miss matches, with machine code and without it. */
  enum {
    FLAGS = PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C |
            PCRE2_USE_OFFSET_LIMIT | PCRE2_NO_START_OPTIMIZE
  };
  int code;
  PCRE2_SIZE at;
  *out = pcre2_compile((PCRE2_SPTR)pattern, len, FLAGS, &code, &at, context);
  if (*out == NULL && code == PCRE2_ERROR_HEAP_FAILED) return set_nomem(e);
  if (*out == NULL) {
    PCRE2_UCHAR text[160];
    pcre2_get_error_message(code, text, sizeof text);
    if (at > len) at = len; /* it counts the NUL */
    return set_error(e, BPE_BADREGEX, at, "regex error at byte %zu: %s", (size_t)at, (char *)text);
  }
  return BPE_OK;
}

/* Compiles the pattern rewritten, where that makes a difference. `text` has room for it. */
static bpe_status compile_rewritten(regex *r, pcre2_compile_context *context, rewriting *w,
                                    bpe_error *e) {
  pcre2_code *code = NULL;
  bpe_status st = BPE_OK;
  w->plain = has_other_brackets(w->s, w->len);
  const rewriting fresh = *w;
  rewrite(w);
  if (w->any_space) {
    st = compile(context, w->out, w->n, NULL, &code);
    if (st == BPE_NOMEM) return set_nomem(e);
    if (st == BPE_OK) { /* else it is too large for PCRE2, and stays as it was */
      pcre2_code_free(r->code);
      r->code = code;
    }
  }
  if (!w->any_start) return BPE_OK;
  if (may_look_behind(w->s, w->len))
    return set_error(e, BPE_BADREGEX, 0, "regex error: \\G beside a lookbehind is not supported");
  *w = fresh;
  w->later = true;
  rewrite(w);
  return compile(context, w->out, w->n, e, &r->later);
}

/* The pattern is compiled as it is first, for messages that point into it: a copy of it. */
static bpe_status compile_all(regex *r, pcre2_compile_context *context, const char *pattern,
                              size_t len, bpe_error *e) {
  pcre2_set_max_pattern_length(context, LONGEST_PATTERN);
  /* Whatever the library was built for: pieces are the same everywhere. */
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_set_bsr(context, PCRE2_BSR_UNICODE);
  rewriting w = {.s = pattern, .len = len, .out = mem_new(&r->alloc, len + 1, MOST_GROWTH)};
  if (w.out == NULL) return set_nomem(e);
  memcpy(w.out, pattern, len);
  w.out[len] = 0;
  bpe_status st = compile(context, w.out, len, e, &r->code);
  pcre2_set_max_pattern_length(context, PCRE2_UNSET);
  if (st == BPE_OK) st = compile_rewritten(r, context, &w, e);
  mem_free(&r->alloc, w.out);
  if (st != BPE_OK) return st;
  /* Refused where memory may not be executable; matching then interprets. */
  (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
  if (r->later != NULL) (void)pcre2_jit_compile(r->later, PCRE2_JIT_COMPLETE);
  return BPE_OK;
}

bpe_status regex_new(const bpe_alloc *a, const char *pattern, size_t len, bpe_error *e,
                     regex **out) {
  *out = NULL;
  regex *r = mem_zero(a, 1, sizeof *r);
  if (r == NULL) return set_nomem(e);
  r->alloc = *a;
  bpe_status st = BPE_NOMEM;
  pcre2_compile_context *context = NULL;
  r->memory = pcre2_general_context_create(allocate, release, &r->alloc);
  if (r->memory != NULL) context = pcre2_compile_context_create(r->memory);
  if (context == NULL) set_nomem(e);
  else st = compile_all(r, context, pattern, len, e);
  pcre2_compile_context_free(context);
  if (st != BPE_OK) {
    regex_free(r);
    return st;
  }
  *out = r;
  return BPE_OK;
}

bool regex_matches_nothing(const regex *r) {
  uint32_t may = 1;
  return pcre2_pattern_info(r->code, PCRE2_INFO_MATCHEMPTY, &may) != 0 || may != 0;
}

/* ---- Matching ------------------------------------------------------------------------------- */

void regex_match_free(regex_match *m) {
  if (m == NULL) return;
  const bpe_alloc a = m->alloc;
  pcre2_jit_stack_free(m->stack);
  pcre2_match_data_free(m->data);
  pcre2_match_context_free(m->context);
  pcre2_general_context_free(m->memory);
  mem_free(&a, m);
}

bpe_status regex_match_new(const regex *r, bpe_error *e, regex_match **out) {
  *out = NULL;
  regex_match *m = mem_zero(&r->alloc, 1, sizeof *m);
  if (m == NULL) return set_nomem(e);
  m->alloc = r->alloc;
  m->places = MOST_PLACES;
  m->memory = pcre2_general_context_create(allocate, release, &m->alloc);
  if (m->memory != NULL) {
    m->context = pcre2_match_context_create(m->memory);
    m->data = pcre2_match_data_create(1, m->memory); /* the match itself, no groups */
  }
  if (m->context == NULL || m->data == NULL) {
    regex_match_free(m);
    return set_nomem(e);
  }
  pcre2_set_depth_limit(m->context, DEPTH_LIMIT);
  pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
  m->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, m->memory);
  if (m->stack != NULL) pcre2_jit_stack_assign(m->context, NULL, m->stack);
  *out = m;
  return BPE_OK;
}

void regex_match_stop(regex_match *m, int (*stop)(void *), void *ctx) {
  m->stop = stop;
  m->stop_ctx = ctx;
}

static bpe_status match_error(int code, size_t at, bpe_error *e) {
  if (code == PCRE2_ERROR_NOMEMORY) return set_nomem(e);
  PCRE2_UCHAR text[120];
  pcre2_get_error_message(code, text, sizeof text);
  return set_error(e, BPE_REGEXLIMIT, at, "regex gave up at byte %zu: %s", at, (char *)text);
}

/* The first character at or behind s[at]. */
static size_t char_start(const uint8_t *s, size_t len, size_t at) {
  while (at < len && (s[at] & 0xc0) == 0x80) at++;
  return at;
}

/* Tries to match at some places from `from` on, as many as m->places says and the rest of the text
** allows; *to is then the first place that was not tried. PCRE2's result. */
static int attempt(const pcre2_code *code, regex_match *m, const uint8_t *s, size_t len,
                   size_t from, size_t *to) {
  const size_t most = PLACES_BYTES / (len - from);
  if (m->places > most) m->places = most > 0 ? most : 1;
  for (;;) {
    *to = len - from > m->places ? from + m->places : len;
    pcre2_set_offset_limit(m->context, *to - 1);
    pcre2_set_match_limit(m->context, (uint32_t)(STEPS / m->places + 1));
    int n = pcre2_match(code, s, len, from, PCRE2_NO_UTF_CHECK, m->data, m->context);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter keeps its stack on the heap */
      n = pcre2_match(code, s, len, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data, m->context);
    const size_t places = m->places;
    m->places = n == PCRE2_ERROR_MATCHLIMIT ? 1 : n >= 0 ? MOST_PLACES : 2 * places;
    if (m->places > MOST_PLACES) m->places = MOST_PLACES;
    if (n != PCRE2_ERROR_MATCHLIMIT || places == 1) return n;
    if (m->stop != NULL && m->stop(m->stop_ctx)) return STOPPED;
  }
}

bpe_status regex_next(const regex *r, regex_match *m, const uint8_t *s, size_t len, size_t from,
                      size_t *start, size_t *stop, bpe_error *e) {
  const size_t first = from;
  *start = *stop = len;
  while (from < len) {
    /* One attempt may look at all of the text, so bytes matched say nothing about time. */
    if (m->stop != NULL && m->stop(m->stop_ctx)) return set_stopped_at(e, from);
    size_t to;
    if (r->later != NULL && from == first) m->places = 1;
    const pcre2_code *code = r->later != NULL && from != first ? r->later : r->code;
    const int n = attempt(code, m, s, len, from, &to);
    if (n == STOPPED) return set_stopped_at(e, from);
    if (n == PCRE2_ERROR_NOMATCH) {
      from = char_start(s, len, to);
      continue;
    }
    if (n < 0) return match_error(n, from, e);
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(m->data);
    size_t a = at[0];
    const size_t b = at[1];
    if (a < from) a = from; /* \K inside a lookbehind can point back */
    if (b > a && b <= len) {
      *start = a;
      *stop = b;
      return BPE_OK;
    }
    from = a < len ? a + bpe_utf8_next(s + a, len - a) : len;
  }
  return BPE_OK;
}

void bpe_pcre2_version(char out[64], bool *jit) {
  char text[64] = "";
  uint32_t has = 0;
  if (pcre2_config(PCRE2_CONFIG_VERSION, NULL) <= (int)sizeof text)
    pcre2_config(PCRE2_CONFIG_VERSION, text);
  pcre2_config(PCRE2_CONFIG_JIT, &has);
  (void)snprintf(out, 64, "%s", text);
  *jit = has != 0;
}
