/* reader.c - rows to stretches to pieces. See reader.h. */
#include "reader.h"

#include "unicode.h"
#include "utf8.h"

enum { STOP_INTERVAL = 1 << 16 }; /* bytes of text between two questions to stop */
enum { CHAR_WORK = 4 };           /* units, of a look at a character */

void reader_begin(reader *r, const uint8_t *text, size_t len, uint64_t weight, uint64_t base) {
  r->text = text;
  r->len = len;
  r->weight = weight;
  r->base = base;
  r->next = 0;
  r->pending = false;
  r->split.at = r->split.end = 0;
}

void reader_set_stop(reader *r, int (*stop)(void *ctx), void *ctx) {
  r->stop = stop;
  r->stop_ctx = ctx;
  split_set_stop(&r->split, stop, ctx);
}

void reader_clear(reader *r) {
  split_clear(&r->split);
}

size_t reader_piece_len(const reader *r) {
  return r->split.at - r->start;
}

static bpe_status stopped(const reader *r, size_t at, bpe_error *e) {
  if (r->stop == NULL || !r->stop(r->stop_ctx)) return BPE_OK;
  return set_stopped_at(e, at);
}

/* The first special token at or after `from`. */
static bpe_status find_special(const reader *r, size_t from, special_match *m, bpe_error *e) {
  *m = (special_match){r->len, 0, BPE_NONE};
  if (r->rules->specials == NULL) return BPE_OK;
  return special_find(r->rules->specials, r->text, from, r->len, r->stop, r->stop_ctx, e, m);
}

bool reader_stretch(reader *r, size_t *start, size_t *stop, bpe_error *e) {
  while (r->next < r->len) {
    special_match m;
    if (find_special(r, r->next, &m, e) != BPE_OK) return false;
    *start = r->next;
    *stop = m.start;
    r->next = m.start + m.len;
    if (*stop > *start) return true;
  }
  return false;
}

/* Whether a piece is white space: with pretokenized rows its first character does not say it. */
static bool is_space(reader *r, const uint8_t *s, size_t len) {
  r->pace = (pace){.stop = r->stop, .ctx = r->stop_ctx};
  for (size_t i = 0, n; i < len && !pace_stopped(&r->pace, CHAR_WORK); i += n) {
    if (utf8_length(s + i, len - i) == 0) return false;
    if (unicode_class(utf8_decode(s + i, &n)) != CLASS_SPACE) return false;
  }
  return true;
}

/* The same for a piece that is long enough to ask meanwhile. */
static bool count_long(reader *r, count_table *t, const uint8_t *s, size_t len) {
  const size_t n = (len - 1) / 16; /* parts before the last one */
  r->pace = (pace){.stop = r->stop, .ctx = r->stop_ctx};
  uint64_t h = hash_start(len);
  for (size_t i = 0; i < n && !pace_stopped(&r->pace, STOP_INTERVAL);) {
    const size_t some = n - i < STOP_INTERVAL / 16 ? n - i : STOP_INTERVAL / 16;
    h = hash_part(h, s + 16 * i, some);
    i += some;
  }
  if (r->pace.stopped) return false;
  const count_key k = {{hash_end(h, s + 16 * n, len - 16 * n), COUNT_LONG_MARK}};
  t->pace = &r->pace;
  const bool added = count_add(t, &k, s, len, r->weight, r->base + r->start);
  t->pace = NULL;
  return added;
}

/* Counts the piece at hand, text[start .. split.at). False: no room, or stopped. */
static inline bool count_piece(reader *r, count_table *t) {
  const uint8_t *s = r->text + r->start;
  const size_t n = r->split.at - r->start;
  if (n > STOP_INTERVAL) return count_long(r, t, s, n);
  const count_key k = count_key_of(s, n, r->len - r->start);
  return count_add(t, &k, s, n, r->weight, r->base + r->start);
}

static bool stopped_inside(const reader *r, bpe_error *e) {
  if (r->pace.stopped) set_stopped(e);
  return r->pace.stopped;
}

static read_end run_stretch(reader *r, count_table *t, bpe_error *e) {
  splitter *sp = &r->split;
  const bool skip_space = r->rules->skip_space;
  while (sp->at < sp->end) {
    if (r->base + sp->at >= r->ask) {
      if (stopped(r, sp->at, e) != BPE_OK) return READ_FAILED;
      r->ask = r->base + sp->at + STOP_INTERVAL;
    }
    r->start = sp->at;
    if (split_next(sp, e) != BPE_OK) return READ_FAILED;
    if (skip_space && is_space(r, r->text + r->start, sp->at - r->start)) {
      if (stopped_inside(r, e)) return READ_FAILED;
      continue;
    }
    if (!count_piece(r, t)) {
      if (stopped_inside(r, e)) return READ_FAILED;
      r->pending = true;
      return READ_FULL;
    }
  }
  return READ_DONE;
}

read_end reader_run(reader *r, count_table *t, bpe_error *e) {
  if (r->pending) {
    if (!count_piece(r, t)) return stopped_inside(r, e) ? READ_FAILED : READ_FULL;
    r->pending = false;
  }
  for (;;) {
    const read_end end = run_stretch(r, t, e);
    if (end != READ_DONE) return end;
    bpe_error own = {.status = BPE_OK};
    size_t from, to;
    if (!reader_stretch(r, &from, &to, &own)) {
      if (own.status == BPE_OK) return READ_DONE;
      set_error(e, own.status, own.offset, "%s", own.text);
      return READ_FAILED;
    }
    if (split_start(&r->split, r->pattern, r->text, from, to, e) != BPE_OK) return READ_FAILED;
  }
}
