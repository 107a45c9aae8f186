/* split.h - cuts a stretch of text into pieces that tile every byte.
**
** A pattern is a scanner, a regex or "none". Malformed UTF-8 is cut out first: a maximal run of
** it is one piece, and each well-formed run between is a text of its own, whose end lookahead
** sees. What a regex does not match between two matches is a piece too. "none" never cuts. A
** chain cuts by its first pattern, each piece of that by the second, and so on; every piece is a
** text of its own to the next pattern.
**
**     split_start(&sp, pattern, text, 0, len);
**     while (sp.at < len) { st = split_next(&sp, &stop, e); ... piece is [old sp.at, stop) ... }
*/
#ifndef SPLIT_H
#define SPLIT_H

#include "regex.h"
#include "scan.h"

struct bpe_pattern {
  bpe_alloc alloc;
  char *text; /* owned, NUL-terminated: the name or the regex */
  size_t len;
  bool is_regex;
  const scan_rules *scan; /* at most one of these is set; none: "none" */
  regex *regex;           /* owned */
  bpe_pattern **chain;    /* owned, and so are its patterns, which are no chains */
  size_t n_chain;
};

enum { SPLIT_BATCH = 256 };

/* Zero it before first use; start it for every stretch; clear it at the end. */
typedef struct splitter {
  const bpe_pattern *pattern;
  const uint8_t *text;
  size_t at, end; /* what is left of the stretch */
  size_t base;    /* ends[next .. n - 1], counted from base, are those of the next pieces */
  size_t next, n;
  size_t well_start; /* the well-formed run that holds `at`; empty when at == well_end */
  size_t well_end;
  size_t match_start, match_stop; /* regex: the next match, valid when >= at */
  regex_match *match;             /* owned; made for match_of */
  const bpe_pattern *match_of;
  int (*stop)(void *ctx); /* as in bpe_walk_options; split_set_stop changes it */
  void *stop_ctx;
  struct splitter *levels; /* owned; one for each pattern of a chain, over a piece of the last */
  size_t n_levels;
  bpe_alloc alloc; /* of levels */
  size_t ends[SPLIT_BATCH];
} splitter;

/* Who is asked about stopping from now on, in the stretch under way too; NULL: nobody. */
void split_set_stop(splitter *, int (*stop)(void *ctx), void *ctx);
bpe_status split_start(splitter *, const bpe_pattern *, const uint8_t *text, size_t from, size_t to,
                       bpe_error *);
/* Finds the ends of the next pieces, one at least, when those found before are used up: n > next
** and base + ends[next] is the end of the piece at `at`. at < end. */
bpe_status split_fill(splitter *, bpe_error *);

/* Moves `at` to the end of the piece that begins there. at < end. */
static inline bpe_status split_next(splitter *sp, bpe_error *e) {
  if (sp->next == sp->n) {
    const bpe_status st = split_fill(sp, e);
    if (st != BPE_OK) return st;
  }
  sp->at = sp->base + sp->ends[sp->next++];
  return BPE_OK;
}

void split_clear(splitter *);

#endif
