/* window_check.c - see window_check.h. */
#include "window_check.h"

#include "../src/scan.h"

#include <stdlib.h>
#include <string.h>

typedef struct tokens {
  size_t ends[20 * WINDOW_LONG_TEXT]; /* of the text, without BOS and EOS; normalizing makes more of it */
  size_t n;
} tokens;

static const char *failed; /* what does not hold in the case at hand */

static bool holds(bool ok, const char *what) {
  if (!ok && failed == NULL) failed = what;
  return ok;
}

/* ---- The definition ----------------------------------------------------------------------- */

static uint64_t count(const window_case *t, size_t from, size_t to) {
  uint64_t n = 0;
  holds(bpe_count(t->coder, t->text + from, to - from, &t->options, NULL, &n) == BPE_OK, "count");
  return n;
}

static void encode(const window_case *t, size_t from, size_t to, tokens *out) {
  bpe_walk *w = NULL;
  bpe_piece p;
  const bpe_model *m = bpe_coder_model(t->coder);
  out->n = 0;
  if (bpe_walk_new(t->coder, NULL, &w) != BPE_OK ||
      bpe_walk_start(w, t->text + from, to - from, &t->options, NULL) != BPE_OK)
    exit(2);
  while (bpe_walk_next(w, &p, NULL) == BPE_OK) {
    size_t at = from + p.start;
    if (p.special && p.start == p.stop) continue;
    for (size_t i = 0; i < p.n_ids; i++) {
      at += bpe_model_token(m, bpe_model_find_id(m, p.ids[i])).len;
      out->ends[out->n++] = p.stops != NULL ? from + p.stops[i] : p.special ? from + p.stop : at;
    }
  }
  bpe_walk_free(w);
}

static bool is_boundary(const window_case *t, size_t at) {
  size_t i = 0;
  while (i < at) i += bpe_utf8_next(t->text + i, t->len - i);
  return i == at;
}

/* The end of the longest window of text[from .. len). */
static size_t longest_right(const window_case *t, size_t from, uint64_t most, size_t least) {
  static tokens k;
  encode(t, from, t->len, &k);
  if (k.n + t->wraps <= most && t->len > least) return t->len;
  for (uint64_t i = most - t->wraps < k.n ? most - t->wraps : k.n; i > 0; i--) {
    const size_t to = k.ends[i - 1];
    if (to <= least) break;
    if (is_boundary(t, to) && count(t, from, to) <= most) return to;
  }
  return from;
}

/* The start of the longest suffix of text[from .. to) but for the whole, unless that is allowed. */
static size_t longest_left(const window_case *t, size_t from, size_t to, uint64_t most,
                           bool whole) {
  static tokens k;
  encode(t, from, to, &k);
  if (whole && k.n + t->wraps <= most) return from;
  for (uint64_t i = most - t->wraps < k.n ? most - t->wraps : k.n; i > 0; i--) {
    const size_t at = i == k.n ? from : k.ends[k.n - i - 1];
    if (at != from && at < to && is_boundary(t, at) && count(t, at, to) <= most) return at;
  }
  return to;
}

/* ---- Checks ------------------------------------------------------------------------------- */

static void check_truncate(const window_case *t, uint64_t most) {
  size_t start, stop;
  bpe_status st =
      bpe_truncate(t->coder, t->text, t->len, &t->options, most, false, NULL, &start, &stop);
  if (most < t->wraps) {
    holds(st == BPE_MISUSE, "too small a limit is refused");
    return;
  }
  holds(st == BPE_OK && start == 0, "truncate");
  holds(stop == longest_right(t, 0, most, 0), "the longest start is kept");
  st = bpe_truncate(t->coder, t->text, t->len, &t->options, most, true, NULL, &start, &stop);
  holds(st == BPE_OK && stop == t->len, "truncate left");
  holds(start == longest_left(t, 0, t->len, most, true), "the longest end is kept");
}

static void check_fits(const window_case *t, uint64_t n) {
  for (uint64_t most = n > 3 ? n - 3 : 0; most < n + 3; most++) {
    bool fits;
    holds(bpe_fits(t->coder, t->text, t->len, &t->options, most, NULL, &fits) == BPE_OK, "fits");
    holds(fits == (n <= most), "fits is count <= limit");
  }
}

/* Where the next window begins, as bpe.h and README have it. */
static void advance(const window_case *t, const bpe_window_options *how, const bpe_window *w,
                    size_t *from, size_t *least) {
  *least = w->stop;
  *from = w->stop;
  if (how->overlap == 0 || w->stop == t->len) return;
  window_case bare = *t; /* the overlap is counted without BOS and EOS */
  bare.options.document = false;
  bare.wraps = 0;
  *from = longest_left(&bare, w->start, w->stop, how->overlap, false);
}

static void check_windows(const window_case *t, const bpe_window_options *how) {
  bpe_windows *ws;
  bpe_window w;
  size_t from = 0, least = 0;
  bpe_status st = bpe_windows_new(t->coder, t->text, t->len, &t->options, how, NULL, &ws);
  if (how->most < t->wraps) {
    holds(st == BPE_MISUSE, "too small a limit of windows is refused");
    return;
  }
  if (!holds(st == BPE_OK, "windows")) return;
  while (failed == NULL && (st = bpe_windows_next(ws, &w, NULL)) == BPE_OK) {
    size_t stop = longest_right(t, from, how->most, least > from ? least : from);
    if (stop == from && least > from) {
      from = least;
      stop = longest_right(t, from, how->most, from);
    }
    holds(w.start == from, "a window begins where it should");
    holds(how->cut == BPE_CUT_TOKEN ? w.stop == stop : w.stop <= stop && w.stop > least,
          "a window is the longest");
    holds(w.stop > w.start && is_boundary(t, w.stop), "a window ends with a character");
    holds(w.tokens == count(t, w.start, w.stop) && w.tokens <= how->most, "a window's count");
    advance(t, how, &w, &from, &least);
  }
  if (st == BPE_DONE) holds(from == t->len, "windows go to the end");
  else if (st == BPE_TOOBIG) {
    if (least > from) from = least;
    holds(longest_right(t, from, how->most, from) == from, "no window is an error");
  } else {
    holds(false, "windows go on");
  }
  bpe_windows_free(ws);
}

/* What scan_same_end says of the places in a long piece, against the scanner. */
static void check_same_end(const scan_rules *r, const uint8_t *s, size_t from, size_t end,
                           size_t len) {
  pace nobody = {.stop = NULL};
  const scan_found f = scan_long(s, from, end, &nobody);
  for (size_t at = from + 1; at < end; at++) {
    if ((s[at] & 0xc0) == 0x80 || !scan_same_end(r, s, &f, at, len)) continue;
    if (!holds(scan_piece(r, s + at, len - at) == end - at, "a long piece ends where it ended"))
      return;
  }
}

static void check_settled(const char *pattern, const uint8_t *text, size_t len, prop_rng *rng) {
  const scan_rules *r = scan_find(pattern, strlen(pattern));
  size_t part = 0, start = 0;
  while (part < len) {
    const size_t n = bpe_utf8_next(text + part, len - part);
    if (!bpe_utf8_valid(text + part, n)) break;
    part += n;
  }
  len = part; /* a scanner wants well-formed text */
  while (part > len / 2) {
    part--;
    while (part > 0 && part < len && (text[part] & 0xc0) == 0x80) part--;
  }
  pace nobody = {.stop = NULL};
  const size_t settled = scan_settled(text, part, &nobody);
  holds(settled <= part, "settled is within");
  while (start < part) {
    const size_t a = scan_piece(r, text + start, len - start);
    const size_t b = scan_piece(r, text + start, part - start);
    check_same_end(r, text, start, start + a, len);
    size_t inside = start + prop_below(rng, (uint32_t)a);
    while ((text[inside] & 0xc0) == 0x80) inside--;
    check_same_end(r, text, inside, inside + scan_piece(r, text + inside, len - inside), len);
    if (start + b < settled) holds(a == b, "a settled piece is as in the longer text");
    if (start + a < settled) holds(a == b, "a piece that ends settled is as in the part");
    if (a != b) break;
    start += a;
  }
}

const char *window_check(const window_case *t, prop_rng *rng) {
  static const char *const patterns[] = {"gpt2",   "cl100k",    "o200k",      "llama3", "qwen2",
                                         "tekken", "deepseek3", "whitespace", "words"};
  uint64_t n;
  failed = NULL;
  check_settled(patterns[prop_below(rng, 9)], t->text, t->len, rng);
  if (bpe_count(t->coder, t->text, t->len, &t->options, NULL, &n) != BPE_OK) return NULL;
  check_fits(t, n);
  check_truncate(t, prop_below(rng, (uint32_t)n + 3));
  check_truncate(t, prop_below(rng, 4));
  bpe_window_options how = {.most = 1 + prop_below(rng, (uint32_t)n + 1)};
  if (prop_one_in(rng, 2) && how.most > 12) how.most = 1 + prop_below(rng, 12);
  if (prop_one_in(rng, 2)) how.overlap = prop_below(rng, (uint32_t)how.most);
  if (prop_one_in(rng, 3)) how.cut = (bpe_cut)prop_below(rng, 4);
  check_windows(t, &how);
  return failed;
}

const char *window_check_long(const window_case *t, prop_rng *rng) {
  bpe_window_options how = {.most = 100 + prop_below(rng, prop_one_in(rng, 3) ? 6000 : 1000)};
  if (prop_one_in(rng, 2)) how.overlap = prop_below(rng, (uint32_t)how.most / 2);
  failed = NULL;
  check_windows(t, &how);
  return failed;
}
