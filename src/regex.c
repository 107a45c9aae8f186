/* regex.c - the only caller of PCRE2. See regex.h.
**
** Compiled with UTF and UCP. Matched with machine code where it can be had, with limits always:
** a limit hit is an error, never "no match". Memory comes from the caller's allocator, except
** that of the machine code, which PCRE2 maps itself.
*/
#include "regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdio.h>
#include <string.h>

/* One match may try this many steps and hold this much: enough for any sane pattern on a piece of
** text, and well under a second when it is not one. */
enum { MATCH_LIMIT = 10000000, DEPTH_LIMIT = 100000, HEAP_LIMIT_KIB = 65536 };
enum { JIT_STACK_START = 32 * 1024, JIT_STACK_MAX = 1024 * 1024 };

struct regex {
  bpe_alloc alloc;
  pcre2_general_context *memory;
  pcre2_code *code;
};

struct regex_match {
  bpe_alloc alloc;
  pcre2_general_context *memory;
  pcre2_match_context *context;
  pcre2_match_data *data;
  pcre2_jit_stack *stack;
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
  pcre2_general_context_free(r->memory);
  mem_free(&a, r);
}

bpe_status regex_new(const bpe_alloc *a, const char *pattern, size_t len, bpe_error *e,
                     regex **out) {
  *out = NULL;
  regex *r = mem_zero(a, 1, sizeof *r);
  if (r == NULL) return set_nomem(e);
  r->alloc = *a;
  bpe_status st = BPE_NOMEM;
  pcre2_compile_context *compile = NULL;
  r->memory = pcre2_general_context_create(allocate, release, &r->alloc);
  if (r->memory == NULL) goto done;
  compile = pcre2_compile_context_create(r->memory);
  if (compile == NULL) goto done;
  int code;
  PCRE2_SIZE at;
  /* No \C: after a match that ends inside a character the rest would not be UTF-8. */
  r->code = pcre2_compile((PCRE2_SPTR)pattern, len, PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C,
                          &code, &at, compile);
  if (r->code == NULL) {
    if (code == PCRE2_ERROR_HEAP_FAILED) goto done;
    PCRE2_UCHAR text[160];
    pcre2_get_error_message(code, text, sizeof text);
    st = set_error(e, BPE_BADREGEX, at, "regex error at byte %zu: %s", (size_t)at, (char *)text);
    goto done;
  }
  /* Refused where memory may not be executable; matching then interprets. */
  (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
  st = BPE_OK;
done:
  pcre2_compile_context_free(compile);
  if (st != BPE_OK) {
    regex_free(r);
    return st == BPE_NOMEM ? set_nomem(e) : st;
  }
  *out = r;
  return BPE_OK;
}

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
  m->memory = pcre2_general_context_create(allocate, release, &m->alloc);
  if (m->memory != NULL) {
    m->context = pcre2_match_context_create(m->memory);
    m->data = pcre2_match_data_create(1, m->memory); /* the match itself, no groups */
  }
  if (m->context == NULL || m->data == NULL) {
    regex_match_free(m);
    return set_nomem(e);
  }
  pcre2_set_match_limit(m->context, MATCH_LIMIT);
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

bpe_status regex_next(const regex *r, regex_match *m, const uint8_t *s, size_t len, size_t from,
                      size_t *start, size_t *stop, bpe_error *e) {
  *start = *stop = len;
  while (from < len) {
    /* One attempt may look at all of the text, so bytes matched say nothing about time. */
    if (m->stop != NULL && m->stop(m->stop_ctx))
      return set_error(e, BPE_STOPPED, from, "interrupted");
    int n = pcre2_match(r->code, s, len, from, PCRE2_NO_UTF_CHECK, m->data, m->context);
    if (n == PCRE2_ERROR_JIT_STACKLIMIT) /* the interpreter keeps its stack on the heap */
      n = pcre2_match(r->code, s, len, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, m->data,
                      m->context);
    if (n == PCRE2_ERROR_NOMATCH) return BPE_OK;
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
