/* paths.h - every way through a text must say what the slow twin says: prop_check.h has the walk,
** the count, the lists and decoding; here are traces, streams and, by brute force, windows.
**
** The expected ids are those of bpe_encode_packed, once prop_check has found them to be the twin's.
** A text that has no ids fails in the same way on every path.
*/
#ifndef FUZZ_PATHS_H
#define FUZZ_PATHS_H

#include "../prop_check.h"
#include "../window_check.h"
#include "fuzz.h"

enum { MOST_IDS = 1 << 16 };

typedef struct answer {
  uint32_t ids[MOST_IDS];
  size_t n;
  bpe_status status;
} answer;

static inline void encode_packed(bpe_coder *c, const input *text, const bpe_walk_options *o,
                                 answer *out) {
  bpe_buffer b;
  bpe_error e = {.status = BPE_OK};
  bpe_buffer_init(&b, &fuzz_alloc, 0);
  out->status = bpe_encode_packed(c, text->at, text->left, 32, o, &e, &b);
  fuzz_check_error(out->status, &e);
  out->n = out->status == BPE_OK ? b.len / 4 : 0;
  REQUIRE(out->n <= MOST_IDS);
  for (size_t i = 0; i < out->n; i++) {
    const uint8_t *p = b.bytes + 4 * i;
    out->ids[i] = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
  }
  bpe_buffer_clear(&b);
}

/* A step replaces neighbours `left`, `right` by `id`, as often as it says, and nothing else. */
static inline void check_step(const bpe_step *s) {
  size_t at = 0;
  uint64_t n = 0;
  if (s->rank == BPE_NONE) return; /* a piece that is a token, taken whole */
  for (size_t i = 0; i < s->n_before; i++, at++) {
    REQUIRE(at < s->n_after);
    if (s->after[at] == s->before[i]) continue;
    REQUIRE(s->after[at] == s->id && i + 1 < s->n_before);
    REQUIRE(s->before[i] == s->left && s->before[i + 1] == s->right);
    i++;
    n++;
  }
  REQUIRE(at == s->n_after && n == s->replacements);
}

static inline void check_trace_ids(bpe_coder *c, const input *text, const bpe_walk_options *o,
                                   const answer *expected) {
  static uint32_t last[MOST_IDS];
  bpe_trace *t;
  bpe_step s;
  size_t done = 0, n = 0;
  bpe_error e = {.status = BPE_OK};
  REQUIRE(bpe_trace_new(c, NULL, &t) == BPE_OK);
  bpe_status st = bpe_trace_start(t, text->at, text->left, o, &e);
  while (st == BPE_OK && (st = bpe_trace_next(t, &s, &e)) == BPE_OK) {
    if (s.step == 0) {
      REQUIRE(expected->status != BPE_OK ||
              (done + n <= expected->n && memcmp(expected->ids + done, last, 4 * n) == 0));
      done += n;
    } else {
      REQUIRE(s.n_before == n && memcmp(s.before, last, 4 * n) == 0);
      check_step(&s);
    }
    n = s.n_after;
    REQUIRE(n <= MOST_IDS);
    memcpy(last, s.after, 4 * n);
  }
  fuzz_check_error(st, &e);
  if (expected->status == BPE_OK) {
    REQUIRE(st == BPE_DONE && done + n == expected->n);
    REQUIRE(memcmp(expected->ids + done, last, 4 * n) == 0);
  }
  bpe_trace_free(t);
}

/* In parts of the sizes that the numbers say. */
static inline void check_stream_ids(bpe_coder *c, const input *text, const bpe_walk_options *o,
                                    prop_rng *rng, const answer *expected) {
  bpe_stream *s;
  bpe_error e = {.status = BPE_OK};
  const uint32_t *ids;
  size_t n, done = 0, at = 0;
  bpe_status st = bpe_stream_new(c, o, &e, &s);
  fuzz_check_error(st, &e);
  if (st != BPE_OK) {
    REQUIRE(st == BPE_MISUSE);
    return;
  }
  for (bool ended = false; st == BPE_OK && !ended;) {
    size_t part = 1 + prop_below(rng, prop_one_in(rng, 4) ? 200 : 6);
    if (part > text->left - at) part = text->left - at;
    ended = part == 0;
    if (ended) bpe_stream_end(s);
    else st = bpe_stream_add(s, text->at + at, part, &e);
    at += part;
    while (st == BPE_OK && (st = bpe_stream_next(s, &ids, &n, &e)) == BPE_OK) {
      if (expected->status == BPE_OK)
        REQUIRE(done + n <= expected->n && memcmp(expected->ids + done, ids, 4 * n) == 0);
      done += n;
    }
    if (st == BPE_DONE) st = BPE_OK;
  }
  fuzz_check_error(st, &e);
  REQUIRE(st == expected->status);
  if (st == BPE_OK) REQUIRE(done == expected->n);
  bpe_stream_free(s);
}

/* All of it for one text of a subject. */
static inline void check_paths(prop_subject *s, const input *text, prop_rng *rng) {
  static answer expected;
  static window_case w;
  const prop_mode mode = prop_mode_random(rng, s);
  const char *wrong = prop_check(s, &mode, text->at, text->left, NULL);
  if (wrong != NULL) {
    printf("%s: %s; ", s->name, wrong);
    prop_mode_print(&mode, s);
    prop_check_print();
  }
  REQUIRE(wrong == NULL);
  bpe_walk_options o = {
      .allowed = prop_one_in(rng, 2) ? s->all : NULL,
      .document = s->n_bos + s->n_eos > 0 && prop_one_in(rng, 3),
  };
  bpe_finder *forbidden = NULL;
  if (o.allowed == NULL && prop_one_in(rng, 3))
    REQUIRE(bpe_finder_new_forbidden(s->model, NULL, 0, NULL, 0, NULL, &forbidden) == BPE_OK);
  o.forbidden = forbidden;
  encode_packed(s->coder, text, &o, &expected);
  check_trace_ids(s->coder, text, &o, &expected);
  check_stream_ids(s->coder, text, &o, rng, &expected);
  bpe_finder_free(forbidden);
  o.forbidden = NULL;
  if (text->left > WINDOW_TEXT) return;
  w.coder = s->coder;
  w.options = o;
  w.wraps = o.document ? s->n_bos + s->n_eos : 0;
  w.len = text->left;
  if (w.len > 0) memcpy(w.text, text->at, w.len);
  wrong = window_check(&w, rng);
  if (wrong != NULL) printf("%s: %s\n", s->name, wrong);
  REQUIRE(wrong == NULL);
}

#endif
