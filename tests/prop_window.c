/* prop_window.c - windows over random texts against brute force over every number of tokens.
**
**     prop_window [--cases N] [--seed S] [--only CASE]
**
** For any bytes x, tokenizer and limit n: bpe_fits is count <= n; bpe_truncate keeps the first
** (last) k tokens' bytes for the largest k <= n that ends (begins) with a character and counts to
** at most n, found here by trying every k from above; windows are the same applied to the rest,
** tile the text or overlap by what the definition says, and count to what they claim. Pieces that
** scan_settled calls settled are those of the longer text. Limits are small, texts short and made
** of what makes counts fall as a text grows: blanks, line ends, contractions, cut characters.
*/
#define _POSIX_C_SOURCE 200809L
#include "../src/scan.h"
#include "prop_subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 64, MOST_TEXT = 400, N_BUILTINS = 5, MAX_FAILURES = 10 };

static const char *const builtins[N_BUILTINS] = {"gpt2", "cl100k_base", "o200k_base",
                                                 "o200k_harmony", "p50k_edit"};

typedef struct tokens {
  size_t ends[MOST_TEXT + 8]; /* of the text, without BOS and EOS */
  size_t n;
} tokens;

typedef struct window_case {
  bpe_coder *coder;
  bpe_walk_options options;
  uint64_t wraps;
  uint8_t text[MOST_TEXT];
  size_t len;
} window_case;

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
      out->ends[out->n++] = p.special ? from + p.stop : at;
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
  tokens k;
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
  tokens k;
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

/* What scan_same_end says of a place in a long piece, against the scanner. */
static void check_same_end(const scan_rules *r, const uint8_t *s, size_t from, size_t end,
                           size_t len) {
  for (size_t at = from + 1; at < end; at++) {
    if ((s[at] & 0xc0) == 0x80 || !scan_same_end(r, s, from, at, end, len)) continue;
    if (!holds(scan_piece(r, s + at, len - at) == end - at, "a long piece ends where it ended"))
      return;
  }
}

static void check_settled(const char *pattern, const uint8_t *text, size_t len) {
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
    if (start + b < settled) holds(a == b, "a settled piece is as in the longer text");
    if (start + a < settled) holds(a == b, "a piece that ends settled is as in the part");
    if (a != b) break;
    start += a;
  }
}

/* ---- Texts -------------------------------------------------------------------------------- */

/* What cuts change: runs of blanks and line ends, quotes, capitals, characters in pieces. */
static size_t tricky_text(uint8_t *out, size_t most, prop_rng *rng) {
  static const char *const parts[] = {" ",
                                      " ",
                                      "  ",
                                      "   ",
                                      "\t",
                                      "\n",
                                      "\r\n",
                                      "\n\n",
                                      "23",
                                      "1",
                                      "x",
                                      "abc",
                                      "ABC",
                                      "Ab",
                                      "'s",
                                      "'LL",
                                      "'",
                                      "\"",
                                      "//",
                                      "/",
                                      ".",
                                      "...",
                                      "!",
                                      "é",
                                      "É",
                                      "日本",
                                      "語",
                                      "。",
                                      "क्ष",
                                      "ि",
                                      "👩‍👩‍👧",
                                      "👍🏽",
                                      "\xe2\x80\x8d",
                                      "\xff",
                                      "\xe6\x97",
                                      "\xf0\x9f\x91",
                                      "\x80",
                                      "ß",
                                      "Ж",
                                      "ж",
                                      "0",
                                      "\xc2\xa0",
                                      "\xe3\x80\x80",
                                      "İ",
                                      "the ",
                                      "ing",
                                      "==",
                                      "<|endoftext|>",
                                      "<|",
                                      "",
                                      "A",
                                      "中A",
                                      "a中"};
  const uint32_t n_parts = sizeof parts / sizeof *parts;
  const uint32_t few = prop_one_in(rng, 2) ? 2 + prop_below(rng, 4) : n_parts;
  uint32_t chosen[8];
  for (int i = 0; i < 8; i++) chosen[i] = prop_below(rng, n_parts);
  const size_t want = prop_below(rng, prop_one_in(rng, 8) ? (uint32_t)most : 40);
  size_t len = 0;
  if (prop_one_in(rng, 6)) { /* a run that is one piece, more or less, and what may end it */
    static const char *const runs[] = {"a", "A", "中", " ", "\n", "\r\n",
                                       "/", "!", "+",  "7", "ि",  "é"};
    const char *unit = runs[prop_below(rng, sizeof runs / sizeof *runs)];
    if (prop_one_in(rng, 2)) {
      const char *before = parts[prop_below(rng, n_parts)];
      for (size_t i = 0; before[i] != 0; i++) out[len++] = (uint8_t)before[i];
    }
    for (uint32_t n = 18 + prop_below(rng, 40); n > 0 && len + 4 < most; n--)
      for (size_t i = 0; unit[i] != 0; i++) out[len++] = (uint8_t)unit[i];
  }
  while (len < want) {
    const char *part = parts[few < 8 ? chosen[prop_below(rng, few)] : prop_below(rng, n_parts)];
    const size_t n = strlen(part);
    if (len + n > most) break;
    memcpy(out + len, part, n);
    len += n;
    if (n == 0) len += 0, out[len < most ? len++ : len - 1] = 'q';
  }
  return len;
}

static void make_case(window_case *t, const prop_subject *s, prop_text *scratch, prop_rng *rng) {
  t->coder = s->coder;
  t->options = (bpe_walk_options){0};
  t->wraps = 0;
  if (prop_one_in(rng, 3)) t->options.allowed = s->all;
  if (s->n_bos + s->n_eos > 0 && prop_one_in(rng, 3)) {
    t->options.document = true;
    t->wraps = s->n_bos + s->n_eos;
  }
  if (!s->is_random && !prop_one_in(rng, 4)) {
    t->len = tricky_text(t->text, MOST_TEXT, rng);
    return;
  }
  prop_text_make(scratch, rng, &s->source);
  t->len = scratch->len < MOST_TEXT ? scratch->len : MOST_TEXT;
  if (t->len > 0) memcpy(t->text, scratch->bytes, t->len);
}

static void check_case(window_case *t, const prop_subject *s, prop_rng *rng) {
  static const char *const patterns[] = {"gpt2",   "cl100k",    "o200k",      "llama3", "qwen2",
                                         "tekken", "deepseek3", "whitespace", "words"};
  uint64_t n;
  (void)s;
  failed = NULL;
  check_settled(patterns[prop_below(rng, 9)], t->text, t->len);
  if (bpe_count(t->coder, t->text, t->len, &t->options, NULL, &n) != BPE_OK) return;
  check_fits(t, n);
  check_truncate(t, prop_below(rng, (uint32_t)n + 3));
  check_truncate(t, prop_below(rng, 4));
  bpe_window_options how = {.most = 1 + prop_below(rng, (uint32_t)n + 1)};
  if (prop_one_in(rng, 2) && how.most > 12) how.most = 1 + prop_below(rng, 12);
  if (prop_one_in(rng, 2)) how.overlap = prop_below(rng, (uint32_t)how.most);
  if (prop_one_in(rng, 3)) how.cut = (bpe_cut)prop_below(rng, 4);
  check_windows(t, &how);
}

static void print_failure(const window_case *t, const prop_subject *s, uint64_t number) {
  printf(
      "FAILED case %llu: %s: %s\n  allowed %d document %d, %zu bytes: ", (unsigned long long)number,
      s->name, failed, t->options.allowed != NULL, t->options.document, t->len);
  for (size_t i = 0; i < t->len; i++) printf("%02x", t->text[i]);
  printf("\n");
}

int main(int argc, char **argv) {
  uint64_t cases = 100000, seed = 1, only = UINT64_MAX, passed = 0, bad = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const uint64_t n = strtoull(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--cases") == 0) cases = n;
    else if (strcmp(argv[i], "--seed") == 0) seed = n;
    else if (strcmp(argv[i], "--only") == 0) only = n;
    else return 2;
  }
  static prop_world world;
  static prop_subject built[N_BUILTINS], random_one;
  static window_case t;
  prop_text scratch = {0};
  if (!prop_world_open(&world, "data/encodings", "tests/vectors/unicode-classes.json", false))
    return 2;
  for (int i = 0; i < N_BUILTINS; i++)
    if (!prop_subject_builtin(&built[i], &world, builtins[i])) return 2;
  for (uint64_t g = 0; g * GROUP < cases && bad < MAX_FAILURES; g++) {
    if (only != UINT64_MAX && g != only / GROUP) continue;
    const bool is_random = g % 3 == 2;
    if (is_random && !prop_subject_random(&random_one, &world, seed, g)) return 2;
    const prop_subject *s = is_random ? &random_one : &built[g / 3 * 2 % N_BUILTINS];
    if (g % 3 == 1) s = &built[(g / 3 + 1) % N_BUILTINS];
    for (uint64_t i = g * GROUP; i < (g + 1) * GROUP && i < cases; i++) {
      prop_rng rng = prop_seed(seed, i);
      if (only != UINT64_MAX && i != only) continue;
      make_case(&t, s, &scratch, &rng);
      check_case(&t, s, &rng);
      if (failed == NULL) passed++;
      else bad++, print_failure(&t, s, i);
    }
    if (is_random) prop_subject_clear(&random_one);
  }
  for (int i = 0; i < N_BUILTINS; i++) prop_subject_clear(&built[i]);
  prop_text_clear(&scratch);
  prop_world_close(&world);
  printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)bad);
  return bad != 0 || passed == 0;
}
