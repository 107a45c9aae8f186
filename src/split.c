/* split.c - patterns, and the tiling of split.h. */
#include "split.h"

#include "doc.h"
#include "unicode.h"
#include "utf8.h"

#include <string.h>

static const char none_name[] = "none";

enum { MAX_CHAIN = 16 };

const char *bpe_pattern_name(int i) {
  const char *name = scan_name(i);
  if (name != NULL) return name;
  return i > 0 && scan_name(i - 1) != NULL ? none_name : NULL;
}

const char *bpe_unicode_version(void) {
  return unicode_version;
}

static void free_one(bpe_pattern *p) {
  if (p == NULL) return;
  const bpe_alloc a = p->alloc;
  regex_free(p->regex);
  mem_free(&a, p->chain);
  mem_free(&a, p->text);
  mem_free(&a, p);
}

void bpe_pattern_free(bpe_pattern *p) {
  if (p == NULL) return;
  for (size_t i = 0; i < p->n_chain; i++) free_one(p->chain[i]);
  free_one(p);
}

/* A pattern that is no chain, unless the caller makes it one. */
static bpe_status new_one(const bpe_alloc *a, const char *text, size_t len, bool is_regex,
                          bool is_chain, bpe_error *e, bpe_pattern **out) {
  *out = NULL;
  const scan_rules *scan = NULL;
  if (is_regex) {
    scan = scan_find_regex(text, len);
  } else if (!is_chain) {
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
    if (is_regex && scan == NULL) st = regex_new(a, text, len, e, &p->regex);
  }
  if (st != BPE_OK) {
    free_one(p);
    return st;
  }
  *out = p;
  return BPE_OK;
}

static bpe_status fill_chain(bpe_pattern *p, const doc_node *list, bpe_error *e) {
  if (!doc_has_kind(list, DOC_ARRAY) || list->len < 2 || list->len > MAX_CHAIN)
    return set_error(e, BPE_MISUSE, 0, "chain of patterns must be a JSON array of 2 to %d",
                     MAX_CHAIN);
  /* NOLINTNEXTLINE(bugprone-sizeof-expression): an array of pointers is meant */
  p->chain = mem_zero(&p->alloc, list->len, sizeof *p->chain);
  if (p->chain == NULL) return set_nomem(e);
  for (const doc_node *v = list->first; v != NULL; v = v->next) {
    const doc_node *inner = v->len == 1 ? doc_get(v, "regex") : NULL;
    const doc_node *x = inner != NULL ? inner : v;
    if (x->kind != DOC_STRING)
      return set_error(e, BPE_MISUSE, v->offset, "pattern %zu of the chain is no name and no regex",
                       p->n_chain);
    const bpe_status st =
        new_one(&p->alloc, x->text, x->len, inner != NULL, false, e, &p->chain[p->n_chain]);
    if (st != BPE_OK) return st;
    p->n_chain++;
  }
  return BPE_OK;
}

bpe_status bpe_pattern_new(const bpe_alloc *a, const char *text, size_t len, bool is_regex,
                           bpe_error *e, bpe_pattern **out) {
  *out = NULL;
  if (is_regex || len == 0 || text[0] != '[') return new_one(a, text, len, is_regex, false, e, out);
  bpe_pattern *p;
  doc d;
  bpe_status st = new_one(a, text, len, false, true, e, &p);
  if (st != BPE_OK) return st;
  st = doc_parse(a, text, len, "chain of patterns", e, &d);
  if (st == BPE_OK) st = fill_chain(p, d.root, e);
  doc_clear(&d);
  if (st != BPE_OK) {
    bpe_pattern_free(p);
    return st;
  }
  *out = p;
  return BPE_OK;
}

void split_set_stop(splitter *sp, int (*stop)(void *ctx), void *ctx) {
  sp->stop = stop;
  sp->stop_ctx = ctx;
  if (sp->match != NULL) regex_match_stop(sp->match, stop, ctx);
  for (size_t i = 0; i < sp->n_levels; i++) {
    splitter *level = &sp->levels[i]; /* which has none itself */
    level->stop = stop;
    level->stop_ctx = ctx;
    if (level->match != NULL) regex_match_stop(level->match, stop, ctx);
  }
}

static bpe_status start_one(splitter *sp, const bpe_pattern *p, const uint8_t *text, size_t from,
                            size_t to, bpe_error *e) {
  if (p->regex != NULL && sp->match_of != p) {
    regex_match_free(sp->match);
    sp->match_of = NULL;
    const bpe_status st = regex_match_new(p->regex, e, &sp->match);
    if (st != BPE_OK) return st;
    sp->match_of = p;
    regex_match_stop(sp->match, sp->stop, sp->stop_ctx);
  }
  sp->pattern = p;
  sp->text = text;
  sp->at = sp->base = sp->well_start = sp->well_end = from;
  sp->next = sp->n = 0;
  sp->end = to;
  return BPE_OK;
}

static void clear_levels(splitter *sp) {
  for (size_t i = 0; i < sp->n_levels; i++) regex_match_free(sp->levels[i].match);
  if (sp->levels != NULL) mem_free(&sp->alloc, sp->levels);
  sp->levels = NULL;
  sp->n_levels = 0;
}

/* Makes room for the levels of a chain and begins the first. */
static bpe_status start_levels(splitter *sp, const bpe_pattern *p, const uint8_t *text, size_t from,
                               size_t to, bpe_error *e) {
  if (sp->n_levels < p->n_chain) {
    splitter *levels = mem_zero(&p->alloc, p->n_chain, sizeof *levels);
    if (levels == NULL) return set_nomem(e);
    clear_levels(sp);
    sp->levels = levels;
    sp->n_levels = p->n_chain;
    sp->alloc = p->alloc;
    split_set_stop(sp, sp->stop, sp->stop_ctx);
  }
  for (size_t i = 0; i < p->n_chain; i++) {
    const bpe_status st = start_one(&sp->levels[i], p->chain[i], text, from, i == 0 ? to : from, e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

bpe_status split_start(splitter *sp, const bpe_pattern *p, const uint8_t *text, size_t from,
                       size_t to, bpe_error *e) {
  bpe_status st = BPE_OK;
  if (p->n_chain != 0) st = start_levels(sp, p, text, from, to, e);
  return st == BPE_OK ? start_one(sp, p, text, from, to, e) : st;
}

void split_clear(splitter *sp) {
  clear_levels(sp);
  regex_match_free(sp->match);
  memset(sp, 0, sizeof *sp);
}

/* Finds the well-formed run that starts at `at`; empty if none does. */
static bpe_status find_well_formed(splitter *sp, pace *p, bpe_error *e) {
  const size_t n = utf8_paced_valid_run(p, sp->text + sp->at, sp->end - sp->at);
  sp->well_start = sp->at;
  sp->well_end = sp->at + n;
  sp->match_start = sp->match_stop = sp->at;
  return p->stopped ? set_stopped(e) : BPE_OK;
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

static bpe_status fill_one(splitter *sp, bpe_error *e) {
  const bpe_pattern *p = sp->pattern;
  pace work = {.stop = sp->stop, .ctx = sp->stop_ctx};
  if (p->scan == NULL && p->regex == NULL) return found_one(sp, sp->end);
  if (sp->at == sp->well_end) {
    bpe_status st = find_well_formed(sp, &work, e);
    if (st != BPE_OK) return st;
    if (sp->at == sp->well_end) {
      const size_t n = utf8_paced_malformed_run(&work, sp->text + sp->at, sp->end - sp->at);
      if (work.stopped) return set_stopped(e);
      sp->well_start = sp->well_end = sp->at + n;
      return found_one(sp, sp->at + n);
    }
  }
  if (p->regex != NULL) return fill_by_regex(sp, e);
  sp->base = sp->at;
  sp->next = 0;
  sp->n =
      scan_pieces(p->scan, sp->text + sp->at, sp->well_end - sp->at, sp->ends, SPLIT_BATCH, &work);
  return work.stopped ? set_stopped(e) : BPE_OK;
}

/* The deepest level that has something left takes its next piece; below it each level begins
** anew with the piece of the level above. */
static bpe_status fill_by_chain(splitter *sp, bpe_error *e) {
  const size_t n = sp->pattern->n_chain;
  size_t k = n - 1;
  while (sp->levels[k].at == sp->levels[k].end) k--; /* level 0 ends where sp does */
  for (;; k++) {
    splitter *level = &sp->levels[k];
    const size_t from = level->at;
    if (level->next == level->n) {
      const bpe_status st = fill_one(level, e);
      if (st != BPE_OK) return st;
    }
    level->at = level->base + level->ends[level->next++];
    if (k == n - 1) return found_one(sp, level->at);
    const bpe_status st =
        start_one(level + 1, sp->pattern->chain[k + 1], sp->text, from, level->at, e);
    if (st != BPE_OK) return st;
  }
}

bpe_status split_fill(splitter *sp, bpe_error *e) {
  return sp->pattern->n_chain != 0 ? fill_by_chain(sp, e) : fill_one(sp, e);
}
