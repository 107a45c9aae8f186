/* split.c - patterns, and the tiling of split.h. */
#include "split.h"

#include "unicode.h"
#include "utf8.h"

#include <string.h>

static const char none_name[] = "none";

/* Well-formed bytes are counted this many at a time, to ask about stopping in between. */
enum { STRIDE = 1 << 20 };

const char *bpe_pattern_name(int i) {
  const char *name = scan_name(i);
  if (name != NULL) return name;
  return i > 0 && scan_name(i - 1) != NULL ? none_name : NULL;
}

const char *bpe_unicode_version(void) {
  return unicode_version;
}

void bpe_pattern_free(bpe_pattern *p) {
  if (p == NULL) return;
  const bpe_alloc a = p->alloc;
  regex_free(p->regex);
  mem_free(&a, p->text);
  mem_free(&a, p);
}

bpe_status bpe_pattern_new(const bpe_alloc *a, const char *text, size_t len, bool is_regex,
                           bpe_error *e, bpe_pattern **out) {
  *out = NULL;
  const scan_rules *scan = NULL;
  if (!is_regex) {
    scan = scan_find(text, len);
    if (scan == NULL && (len != strlen(none_name) || memcmp(text, none_name, len) != 0)) {
      quoted q;
      return set_error(e, BPE_MISUSE, 0, "no such pattern: %s", quote_bytes(&q, text, len));
    }
  }
  bpe_pattern *p = mem_zero(a, 1, sizeof *p);
  if (p == NULL) return set_nomem(e);
  p->alloc = *a;
  p->scan = scan;
  p->is_regex = is_regex;
  p->len = len;
  p->text = len < SIZE_MAX ? mem_new(a, len + 1, 1) : NULL;
  bpe_status st = BPE_OK;
  if (p->text == NULL) {
    st = set_nomem(e);
  } else {
    memcpy(p->text, text, len);
    p->text[len] = 0;
    if (is_regex) st = regex_new(a, text, len, e, &p->regex);
  }
  if (st != BPE_OK) {
    bpe_pattern_free(p);
    return st;
  }
  *out = p;
  return BPE_OK;
}

bpe_status split_start(splitter *sp, const bpe_pattern *p, const uint8_t *text, size_t from,
                       size_t to, bpe_error *e) {
  if (p->regex != NULL && sp->match_of != p) {
    regex_match_free(sp->match);
    sp->match_of = NULL;
    const bpe_status st = regex_match_new(p->regex, e, &sp->match);
    if (st != BPE_OK) return st;
    sp->match_of = p;
  }
  sp->pattern = p;
  sp->text = text;
  sp->at = sp->base = sp->well_start = sp->well_end = from;
  sp->next = sp->n = 0;
  sp->end = to;
  return BPE_OK;
}

void split_clear(splitter *sp) {
  regex_match_free(sp->match);
  memset(sp, 0, sizeof *sp);
}

/* Finds the well-formed run that starts at `at`; empty if none does. */
static bpe_status find_well_formed(splitter *sp, bpe_error *e) {
  size_t i = sp->at;
  for (;;) {
    const size_t left = sp->end - i, part = left < STRIDE ? left : STRIDE;
    const size_t n = utf8_valid_run(sp->text + i, part);
    i += n;
    /* A part's end may cut a character; then the next part shows whether it goes on. */
    if (part == left || n == 0) break;
    if (sp->stop != NULL && sp->stop(sp->stop_ctx))
      return set_error(e, BPE_STOPPED, i, "interrupted");
  }
  sp->well_start = sp->at;
  sp->well_end = i;
  sp->match_start = sp->match_stop = sp->at;
  return BPE_OK;
}

/* The piece at `at` is all that is found: it ends there. */
static bpe_status found_one(splitter *sp, size_t end) {
  sp->base = sp->at;
  sp->ends[0] = end - sp->at;
  sp->next = 0;
  sp->n = 1;
  return BPE_OK;
}

static bpe_status fill_by_regex(splitter *sp, bpe_error *e) {
  if (sp->match_stop <= sp->at) { /* the last match is behind: look for the next */
    const size_t base = sp->well_start;
    size_t start, stop;
    const bpe_status st = regex_next(sp->pattern->regex, sp->match, sp->text + base,
                                     sp->well_end - base, sp->at - base, &start, &stop, e);
    if (st != BPE_OK) return st;
    sp->match_start = base + start;
    sp->match_stop = base + stop;
  }
  return found_one(sp, sp->at < sp->match_start ? sp->match_start : sp->match_stop);
}

bpe_status split_fill(splitter *sp, bpe_error *e) {
  const bpe_pattern *p = sp->pattern;
  if (p->scan == NULL && p->regex == NULL) return found_one(sp, sp->end);
  if (sp->at == sp->well_end) {
    const bpe_status st = find_well_formed(sp, e);
    if (st != BPE_OK) return st;
    if (sp->at == sp->well_end) {
      const size_t n = utf8_malformed_run(sp->text + sp->at, sp->end - sp->at);
      sp->well_start = sp->well_end = sp->at + n;
      return found_one(sp, sp->at + n);
    }
  }
  if (p->regex != NULL) return fill_by_regex(sp, e);
  sp->base = sp->at;
  sp->next = 0;
  sp->n = scan_pieces(p->scan, sp->text + sp->at, sp->well_end - sp->at, sp->ends, SPLIT_BATCH);
  return BPE_OK;
}
