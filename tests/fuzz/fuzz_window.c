/* fuzz_window.c - limits over any text: fits, truncate, windows, traces.
**
** Input: encoding, or the bytes that a tokenizer which alters texts is made from, special tokens,
** limit, overlap, cut, then the text. What is kept must count to at most the limit and begin and end
** with characters; windows must tile the text or overlap, and count to what they say; a trace must
** end in the ids of the walk.
*/
#include "../prop_altered.h"
#include "fuzz.h"

enum { ENCODINGS = 7 };

static struct subject {
  bpe_model *model;
  bpe_coder *coder;
  bpe_finder *all;
} subjects[ENCODINGS];

static struct subject *subject_of(unsigned which) {
  struct subject *s = &subjects[which];
  if (s->model != NULL) return s;
  REQUIRE(bpe_builtin_load(&fuzz_alloc, (int)which, NULL, &s->model) == BPE_OK);
  REQUIRE(bpe_coder_new(s->model, 0, NULL, &s->coder) == BPE_OK);
  REQUIRE(bpe_finder_new(s->model, NULL, 0, NULL, &s->all) == BPE_OK);
  return s;
}

static uint64_t count(const struct subject *s, const uint8_t *text, size_t len,
                      const bpe_walk_options *o) {
  uint64_t n;
  REQUIRE(bpe_count(s->coder, text, len, o, NULL, &n) == BPE_OK);
  return n;
}

static void check_boundary(const input *in, size_t at) {
  size_t i = 0;
  while (i < at) i += bpe_utf8_next(in->at + i, in->left - i);
  REQUIRE(i == at);
}

static void check_windows(const struct subject *s, const input *in, const bpe_walk_options *o,
                          const bpe_window_options *how) {
  bpe_windows *ws;
  bpe_window w;
  bpe_status st = bpe_windows_new(s->coder, in->at, in->left, o, how, NULL, &ws);
  size_t start = 0, stop = 0;
  REQUIRE(st == BPE_OK);
  while ((st = bpe_windows_next(ws, &w, NULL)) == BPE_OK) {
    REQUIRE(w.start <= stop && w.stop > stop && (stop == 0 || w.start > start));
    REQUIRE(how->overlap != 0 || w.start == stop);
    REQUIRE(w.tokens <= how->most && w.tokens == count(s, in->at + w.start, w.stop - w.start, o));
    if (w.start < stop) REQUIRE(count(s, in->at + w.start, stop - w.start, o) <= how->overlap);
    check_boundary(in, w.stop);
    start = w.start;
    stop = w.stop;
  }
  REQUIRE(st == BPE_DONE ? stop == in->left : st == BPE_TOOBIG);
  bpe_windows_free(ws);
}

static void check_trace(const struct subject *s, const input *in, const bpe_walk_options *o) {
  bpe_trace *t;
  bpe_step step;
  bpe_status st;
  uint64_t done = 0, last = 0;
  REQUIRE(bpe_trace_new(s->coder, NULL, &t) == BPE_OK);
  REQUIRE(bpe_trace_start(t, in->at, in->left, o, NULL) == BPE_OK);
  while ((st = bpe_trace_next(t, &step, NULL)) == BPE_OK) {
    if (step.step == 0) done += last;
    else if (step.left == BPE_NONE) REQUIRE(step.n_before == last && step.n_after == 1); /* whole */
    else REQUIRE(step.n_before == last && last - step.n_after == step.replacements);
    last = step.n_after;
  }
  REQUIRE(st == BPE_DONE && done + last == count(s, in->at, in->left, o));
  bpe_trace_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {data, size};
  const unsigned which = take(&in, ENCODINGS + 2);
  altered_subject altered = {.model = NULL};
  struct subject made;
  const struct subject *s = &made;
  if (which < ENCODINGS) {
    s = subject_of(which);
  } else {
    const size_t n = in.left < 64 ? in.left : 64;
    prop_rng rng = prop_bytes(in.at, n);
    in.at += n, in.left -= n;
    REQUIRE(altered_make(&altered, &fuzz_alloc, &rng));
    made = (struct subject){altered.model, altered.coder, altered.all};
  }
  const bpe_walk_options o = {.allowed = take(&in, 2) == 1 ? s->all : NULL};
  bpe_window_options how = {.most = 1 + take(&in, 40)};
  how.overlap = take(&in, (unsigned)how.most);
  how.cut = (bpe_cut)take(&in, 4);
  if (in.left > 3000) in.left = 3000;
  const uint64_t n = count(s, in.at, in.left, &o);
  size_t start, stop;
  bool fits;
  REQUIRE(bpe_fits(s->coder, in.at, in.left, &o, how.most, NULL, &fits) == BPE_OK);
  REQUIRE(fits == (n + 1000 * sabotage() <= how.most));
  for (int left = 0; left < 2; left++) {
    REQUIRE(bpe_truncate(s->coder, in.at, in.left, &o, how.most, left == 1, NULL, &start, &stop) ==
            BPE_OK);
    REQUIRE(left == 1 ? stop == in.left : start == 0);
    REQUIRE(!fits || (start == 0 && stop == in.left));
    REQUIRE(count(s, in.at + start, stop - start, &o) <= how.most);
    check_boundary(&in, start);
    check_boundary(&in, stop);
  }
  check_windows(s, &in, &o, &how);
  check_trace(s, &in, &o);
  if (s == &made) altered_clear(&altered);
  return 0;
}
