/* unit_trace.c - traces against the walk, on random merge lists and on the cases that runs of
*merges
** turn on: ranks that fall, pairs that share a rank, tokens taken whole.
*/
#include "unit.h"

#include <stdio.h>

/* The steps of a text as "0:97,98 1:256*1=256", piece after piece. */
static const char *steps(bpe_coder *c, const char *text, const bpe_walk_options *o) {
  static char out[2000];
  size_t n = 0;
  bpe_trace *t = NULL;
  bpe_step s;
  bpe_error e = {.status = BPE_OK};
  out[0] = 0;
  bpe_status st = bpe_trace_new(c, &e, &t);
  if (st == BPE_OK) st = bpe_trace_start(t, text, strlen(text), o, &e);
  while (st == BPE_OK && (st = bpe_trace_next(t, &s, &e)) == BPE_OK && n < 1800) {
    n += (size_t)snprintf(out + n, sizeof out - n, "%s%llu.%llu", n > 0 ? " " : "",
                          (unsigned long long)s.piece, (unsigned long long)s.step);
    if (s.before != NULL)
      n += (size_t)snprintf(out + n, sizeof out - n, "(%d*%llu)", (int)s.rank,
                            (unsigned long long)s.replacements);
    for (size_t i = 0; i < s.n_after; i++)
      n += (size_t)snprintf(out + n, sizeof out - n, "%c%d", i == 0 ? ':' : ',', (int)s.after[i]);
  }
  bpe_trace_free(t);
  if (st != BPE_DONE) snprintf(out, sizeof out, "%d: %s", (int)st, e.text);
  return out;
}

static void gives(const char *got, const char *expected) {
  if (!CHECK(strcmp(got, expected) == 0)) printf("  %s\n  expected %s\n", got, expected);
}

static void check_tiny(void) {
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = NULL;
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
  bpe_finder *all = NULL;
  CHECK(bpe_finder_new(m, NULL, 0, NULL, &all) == BPE_OK);
  const bpe_walk_options o = {.allowed = all, .document = true};
  gives(steps(c, "", NULL), "");
  gives(steps(c, "x", NULL), "0.0:120");
  gives(steps(c, "abcab", NULL), "0.0:97,98,99,97,98 0.1(0*2):256,99,256 0.2(2*1):258,256");
  gives(steps(c, "bc!", NULL), "0.0:98,99 0.1(1*1):257 1.0:33");
  gives(steps(c, "a<s>", &o), "0.0:259 1.0:97 2.0:259 3.0:260");
  bpe_finder_free(all);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* "a b" is made last but one and merges before what made it possible: the run of a+a ends. */
static void check_falling_ranks(void) {
  bpe_builder *b = unit_builder("none");
  bpe_builder_token(b, 256, BPE_TOKEN, "aa", 2);
  bpe_builder_token(b, 257, BPE_TOKEN, "aaaa", 4);
  bpe_builder_merge(b, 5, 'a', 'a', 256, 0);
  bpe_builder_merge(b, 2, 256, 256, 257, 0);
  bpe_model *m = unit_finish(b);
  bpe_coder *c = NULL;
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
  gives(steps(c, "aaaaaaa", NULL),
        "0.0:97,97,97,97,97,97,97 0.1(5*2):256,256,97,97,97 0.2(2*1):257,97,97,97"
        " 0.3(5*1):257,256,97");
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* A rank file's token with two splits: pairs of one rank, the leftmost first. */
static void check_shared_rank(void) {
  bpe_builder *b = unit_builder("none");
  bpe_builder_token(b, 256, BPE_TOKEN, "ab", 2);
  bpe_builder_token(b, 257, BPE_TOKEN, "bc", 2);
  bpe_builder_token(b, 258, BPE_TOKEN, "abc", 3);
  bpe_builder_token(b, 259, BPE_TOKEN, "xyz", 3);
  bpe_builder_merge(b, 1, 'a', 'b', 256, 0);
  bpe_builder_merge(b, 0, 'b', 'c', 257, 0);
  bpe_builder_merge(b, 2, 256, 'c', 258, 0);
  bpe_builder_merge(b, 2, 'a', 257, 258, 0);
  bpe_builder_whole(b);
  bpe_model *m = unit_finish(b);
  bpe_coder *c = NULL;
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
  gives(steps(c, "abcabcab", NULL),
        "0.0:97,98,99,97,98,99,97,98 0.1(0*2):97,257,97,257,97,98 0.2(1*1):97,257,97,257,256"
        " 0.3(2*2):258,258,256");
  gives(steps(c, "xyz", NULL), "0.0:120,121,122 0.1(-1*1):259");
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* The last ids of each piece are the walk's; steps follow from each other. */
static void check_text(bpe_coder *c, const uint8_t *text, size_t len) {
  static uint32_t ids[600], traced[600];
  size_t n = 0, done = 0, n_last = 0; /* traced: `done` ids of pieces before, n_last of this one */
  bpe_trace *t = NULL;
  bpe_walk *w = NULL;
  bpe_piece p;
  bpe_step s;
  CHECK(bpe_trace_new(c, NULL, &t) == BPE_OK && bpe_walk_new(c, NULL, &w) == BPE_OK);
  bpe_status st = bpe_walk_start(w, text, len, NULL, NULL);
  while (st == BPE_OK && (st = bpe_walk_next(w, &p, NULL)) == BPE_OK)
    for (size_t i = 0; i < p.n_ids; i++) ids[n++] = p.ids[i];
  st = bpe_trace_start(t, text, len, NULL, NULL);
  bool follows = true;
  while (st == BPE_OK && (st = bpe_trace_next(t, &s, NULL)) == BPE_OK) {
    if (s.step == 0) done += n_last;
    else
      follows = follows && s.n_before == n_last && s.n_before - s.n_after == s.replacements &&
                memcmp(s.before, traced + done, n_last * sizeof *traced) == 0;
    n_last = s.n_after;
    memcpy(traced + done, s.after, n_last * sizeof *traced);
  }
  CHECK(follows && st == BPE_DONE);
  CHECK(done + n_last == n && memcmp(traced, ids, n * sizeof *ids) == 0);
  bpe_trace_free(t);
  bpe_walk_free(w);
}

static void check_random(void) {
  for (int round = 0; round < 300; round++) {
    bpe_builder *b = unit_builder(round % 2 == 0 ? "none" : "gpt2");
    char made[40][24];
    uint32_t made_ids[40], n = 3;
    for (uint32_t i = 0; i < 3; i++) {
      made[i][0] = (char)('a' + i);
      made[i][1] = 0;
      made_ids[i] = (uint32_t)('a' + i);
    }
    uint32_t ranks[32];
    for (uint32_t i = 0; i < 32; i++) ranks[i] = i;
    for (uint32_t i = 31; i > 0; i--) {
      const uint32_t k = unit_below(i + 1), x = ranks[i];
      ranks[i] = ranks[k];
      ranks[k] = x;
    }
    for (uint32_t i = 0; i < 20; i++) { /* distinct texts only: the first pair that makes one */
      char text[48];
      const uint32_t l = unit_below(n), r = unit_below(n);
      snprintf(text, sizeof text, "%s%s", made[l], made[r]);
      bool is_new = strlen(text) < 20;
      for (uint32_t k = 0; k < n; k++) is_new = is_new && strcmp(made[k], text) != 0;
      if (!is_new) continue;
      snprintf(made[n], sizeof made[n], "%.20s", text);
      made_ids[n] = 256 + i;
      bpe_builder_token(b, 256 + i, BPE_TOKEN, text, strlen(text));
      bpe_builder_merge(b, ranks[i], made_ids[l], made_ids[r], 256 + i, 0);
      n++;
    }
    bpe_model *m = unit_finish(b);
    bpe_coder *c = NULL;
    CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
    for (int k = 0; k < 20; k++) {
      uint8_t text[200];
      const size_t len = 1 + unit_below(sizeof text);
      for (size_t i = 0; i < len; i++) text[i] = (uint8_t)("aabbc a"[unit_below(7)]);
      check_text(c, text, len);
    }
    bpe_coder_free(c);
    bpe_model_free(m);
  }
}

static void check_memory(void) {
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = NULL;
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
  for (size_t k = 1; k < 50; k++) {
    bpe_trace *t;
    bpe_step s;
    unit_fail(k, false);
    bpe_status st = bpe_trace_new(c, NULL, &t);
    if (st == BPE_OK) st = bpe_trace_start(t, "abcabcabc abcabc", 16, NULL, NULL);
    while (st == BPE_OK) st = bpe_trace_next(t, &s, NULL);
    bpe_trace_free(t);
    const bool refused = unit_memory.refused > 0;
    unit_fail(0, false);
    if (!CHECK(st == (refused ? BPE_NOMEM : BPE_DONE)) || !refused) break;
  }
  bpe_coder_free(c);
  bpe_model_free(m);
}

static int stop_at_once(void *ctx) {
  return *(int *)ctx;
}

/* Asked every few thousand steps. */
static void check_stop(void) {
  enum { PIECES = 20000, MOST_STEPS = 5000 };
  static char text[4 * PIECES];
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = NULL;
  bpe_trace *t = NULL;
  bpe_step s;
  bpe_error e = {.status = BPE_OK};
  int stop = 0, steps = 0;
  const bpe_walk_options o = {.stop = stop_at_once, .stop_ctx = &stop};
  for (size_t i = 0; i < sizeof text; i++) text[i] = "abc "[i % 4];
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
  CHECK(bpe_trace_new(c, NULL, &t) == BPE_OK);
  CHECK(bpe_trace_start(t, text, sizeof text, &o, NULL) == BPE_OK);
  CHECK(bpe_trace_next(t, &s, NULL) == BPE_OK);
  stop = 1;
  bpe_status st = BPE_OK;
  while (st == BPE_OK && steps < MOST_STEPS) {
    st = bpe_trace_next(t, &s, &e);
    steps++;
  }
  CHECK(st == BPE_STOPPED && e.status == BPE_STOPPED && strcmp(e.text, "interrupted") == 0);
  bpe_trace_free(t);
  bpe_coder_free(c);
  bpe_model_free(m);
}

int main(void) {
  check_tiny();
  check_falling_ranks();
  check_shared_rank();
  check_random();
  check_memory();
  check_stop();
  return unit_summary();
}
