/* oom.c - every operation of bpe.h with memory running out at every single request.
**
** Each operation is run on a fresh stage with the k-th request for memory failing, k = 1, 2, ...
** until none is left to fail: once with only that request refused, once with all from there on.
** It must answer BPE_NOMEM, recording it and giving nothing, or what it answers with memory; run
** again on the same stage, now with memory, it must give that answer; and when the stage is taken
** down no block may be left. An operation that never came to BPE_NOMEM has shown nothing: that is
** a failure too.
**
**     oom [-v] [PART]     // -v: a line for each operation; PART: only those with this in their name
*/
#include "unit.h"

enum { TEXT_LEN = 6000, MOST_REQUESTS = 5000 };

/* What an operation works on. `answer` digests all it gave. */
typedef struct stage {
  bpe_model *model; /* set up before memory runs out; owned */
  bpe_coder *coder;
  bpe_walk *walk;
  bpe_finder *finder;
  bpe_error e;
  uint64_t answer;
  bool gave_on_failure; /* an output was not empty */
} stage;

static uint8_t text[TEXT_LEN];
static uint32_t ids[TEXT_LEN];

/* ---- Answers --------------------------------------------------------------------------------- */

static void answer_bytes(stage *s, const void *bytes, size_t len) {
  const uint8_t *p = bytes;
  for (size_t i = 0; i < len; i++) s->answer = (s->answer ^ p[i]) * UINT64_C(0x100000001b3);
}

static void answer_number(stage *s, uint64_t n) {
  answer_bytes(s, &n, sizeof n);
}

static void answer_model(stage *s, const bpe_model *m) {
  uint8_t digest[32];
  bpe_info info;
  if (bpe_model_digest(m, NULL, digest) != BPE_OK) return;
  bpe_model_info(m, &info);
  answer_bytes(s, digest, sizeof digest);
  for (size_t i = 0; i < info.merge_count && i < 100; i++)
    answer_number(s, bpe_model_merge(m, i).count);
}

/* ---- Making things --------------------------------------------------------------------------- */

/* Something of every kind: unsorted ids and merges, counts, long tokens, a regex, wrapping. */
static void describe(bpe_builder *b) {
  for (uint32_t c = 256; c-- > 0;) {
    const uint8_t byte = (uint8_t)c;
    bpe_builder_token(b, c, BPE_TOKEN, &byte, 1);
  }
  char run[600];
  memset(run, 'a', sizeof run);
  bpe_builder_token(b, 400, BPE_TOKEN, run, 100);
  bpe_builder_token(b, 401, BPE_TOKEN, run, sizeof run);
  bpe_builder_token(b, 302, BPE_TOKEN, "abc", 3);
  bpe_builder_token(b, 300, BPE_TOKEN, "ab", 2);
  bpe_builder_token(b, 301, BPE_TOKEN, "ca", 2);
  bpe_builder_merge(b, 9, 300, 'c', 302, 5);
  bpe_builder_merge(b, 7, 'c', 'a', 301, 0);
  bpe_builder_merge(b, 8, 'a', 'b', 300, 77);
  for (uint32_t i = 0; i < 40; i++) {
    char name[16];
    snprintf(name, sizeof name, "<|%u|>", (unsigned)i);
    bpe_builder_token(b, 500 + i, i % 4 == 0 ? BPE_ADDED : BPE_SPECIAL, name, strlen(name));
  }
  bpe_builder_pattern(b, "gpt2", 4, false);
  static const char regex[] = "\\pL+|\\d{1,3}|\\s+(?!\\S)|\\s+";
  bpe_builder_pattern(b, regex, strlen(regex), true);
  bpe_builder_bos(b, 501);
  bpe_builder_eos(b, 502);
  bpe_builder_eos(b, 503);
}

static bpe_status run_builder(stage *s) {
  bpe_model *m = (bpe_model *)s;
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  describe(b);
  const bpe_status st = bpe_builder_finish(b, &s->e, &m);
  if (st == BPE_OK) answer_model(s, m);
  else s->gave_on_failure = m != NULL;
  if (st == BPE_OK) bpe_model_free(m);
  return st;
}

/* Ids in order, so that tokens can grow out of each other, with no counts at all. */
static bpe_status run_growing(stage *s) {
  bpe_model *m = NULL;
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  for (uint32_t c = 0; c < 256; c++) {
    const uint8_t byte = (uint8_t)c;
    bpe_builder_token(b, c, BPE_TOKEN, &byte, 1);
  }
  for (uint32_t i = 256; i < 600; i++) bpe_builder_grow(b, i == 256 ? 'a' : i - 1, i % 256, i);
  bpe_builder_pattern(b, "o200k", 5, false);
  const bpe_status st = bpe_builder_finish(b, &s->e, &m);
  if (st == BPE_OK) answer_model(s, m);
  else s->gave_on_failure = m != NULL;
  bpe_model_free(m);
  return st;
}

static bpe_status load(stage *s, const char *name) {
  bpe_model *m = (bpe_model *)s;
  const bpe_status st =
      bpe_builtin_load(&unit_alloc, bpe_builtin_find(name, strlen(name)), &s->e, &m);
  if (st == BPE_OK) answer_model(s, m);
  else s->gave_on_failure = m != NULL;
  if (st == BPE_OK) bpe_model_free(m);
  return st;
}

static bpe_status run_load_gpt2(stage *s) {
  return load(s, "gpt2");
}

static bpe_status run_load_harmony(stage *s) {
  return load(s, "o200k_harmony");
}

static bpe_status new_pattern(stage *s, const char *pattern, bool is_regex) {
  bpe_pattern *p = (bpe_pattern *)s;
  const bpe_status st =
      bpe_pattern_new(&unit_alloc, pattern, strlen(pattern), is_regex, &s->e, &p);
  if (st == BPE_OK) bpe_pattern_free(p);
  else s->gave_on_failure = p != NULL;
  return st;
}

static bpe_status run_named_pattern(stage *s) {
  return new_pattern(s, "cl100k", false);
}

static bpe_status run_regex_pattern(stage *s) {
  return new_pattern(s,
                     "(?i:'s|'t)|[^\\r\\n\\pL\\pN]?\\pL+|(?<=x)y{1,30}|\\s+(?!\\S)|"
                     "[\\x{4e00}-\\x{9fff}]+",
                     true);
}

/* ---- Finders --------------------------------------------------------------------------------- */

static bpe_status found(stage *s, bpe_status st, bpe_finder *f) {
  static const char sample[] = "x<|1|><|4|>";
  const bpe_walk_options o = {.allowed = f};
  if (st != BPE_OK) {
    s->gave_on_failure = f != NULL;
    return st;
  }
  bpe_piece p; /* what it finds is told by the walk that was made before memory ran out */
  const size_t refused = unit_memory.refused;
  unit_fail(0, false);
  unit_memory.refused = refused;
  st = bpe_walk_start(s->walk, sample, sizeof sample - 1, &o, &s->e);
  while (st == BPE_OK && (st = bpe_walk_next(s->walk, &p, &s->e)) == BPE_OK)
    answer_number(s, p.stop * 1000 + p.ids[0]);
  bpe_finder_free(f);
  return st == BPE_DONE ? BPE_OK : st;
}

static bpe_status run_finder(stage *s) {
  bpe_finder *f = (bpe_finder *)s;
  const bpe_status st = bpe_finder_new(s->model, NULL, 0, &s->e, &f);
  return found(s, st, f);
}

static bpe_status run_named_finder(stage *s) {
  static const bpe_name names[] = {{"<|1|>", 5}, {"<|39|>", 6}};
  bpe_finder *f = (bpe_finder *)s;
  const bpe_status st = bpe_finder_new(s->model, names, 2, &s->e, &f);
  return found(s, st, f);
}

static bpe_status run_forbidden(stage *s) {
  static const bpe_name except[] = {{"<|1|>", 5}};
  bpe_finder *f = (bpe_finder *)s;
  const bpe_status st = bpe_finder_new_forbidden(s->model, NULL, 0, except, 1, &s->e, &f);
  return found(s, st, f);
}

/* ---- Encoding -------------------------------------------------------------------------------- */

static bpe_status run_coder(stage *s) {
  bpe_coder *c = (bpe_coder *)s;
  const bpe_status st = bpe_coder_new(s->model, 64, &s->e, &c);
  if (st == BPE_OK) bpe_coder_free(c);
  else s->gave_on_failure = c != NULL;
  return st;
}

static bpe_status run_walk(stage *s) {
  bpe_walk *w = (bpe_walk *)s;
  bpe_piece p;
  bpe_status st = bpe_walk_new(s->coder, &s->e, &w);
  if (st != BPE_OK) {
    s->gave_on_failure = w != NULL;
    return st;
  }
  const bpe_walk_options o = {.allowed = s->finder, .document = true};
  st = bpe_walk_start(w, text, TEXT_LEN, &o, &s->e);
  while (st == BPE_OK && (st = bpe_walk_next(w, &p, &s->e)) == BPE_OK) {
    answer_number(s, p.stop);
    answer_bytes(s, p.ids, p.n_ids * sizeof *p.ids);
  }
  if (st != BPE_DONE) CHECK_EQ_INT(bpe_walk_next(w, &p, NULL), BPE_DONE); /* it is over */
  bpe_walk_free(w);
  return st == BPE_DONE ? BPE_OK : st;
}

static bpe_status run_count(stage *s) {
  uint64_t n = 99;
  const bpe_status st = bpe_count(s->coder, text, TEXT_LEN, NULL, &s->e, &n);
  if (st == BPE_OK) answer_number(s, n);
  else s->gave_on_failure = n != 0;
  return st;
}

/* Another pattern, so that the walk's match data must be made anew each time. */
static bpe_status run_count_by_regex(stage *s) {
  bpe_pattern *p;
  uint64_t n = 99;
  static const char regex[] = "(?:(?=a)a|[bc])+|.";
  bpe_status st = bpe_pattern_new(&unit_alloc, regex, strlen(regex), true, &s->e, &p);
  if (st != BPE_OK) return st;
  const bpe_walk_options o = {.pattern = p};
  st = bpe_count(s->coder, text, TEXT_LEN, &o, &s->e, &n);
  if (st == BPE_OK) answer_number(s, n);
  uint64_t same = 1; /* the coder's walk must forget the pattern before it goes */
  if (bpe_count(s->coder, "", 0, NULL, NULL, &same) == BPE_OK) CHECK_EQ_INT(same, 0);
  bpe_pattern_free(p);
  return st;
}

static bpe_status buffered(stage *s, bpe_status st, bpe_buffer *b) {
  if (st == BPE_OK) answer_bytes(s, b->bytes, b->len);
  else CHECK_EQ_INT(st, BPE_NOMEM);
  bpe_buffer_clear(b);
  return st;
}

static bpe_status run_encode_json(stage *s) {
  bpe_buffer b;
  bpe_buffer_init(&b, &unit_alloc, 0);
  return buffered(s, bpe_encode_json(s->coder, text, TEXT_LEN, NULL, &s->e, &b), &b);
}

static bpe_status run_encode_packed(stage *s) {
  bpe_buffer b;
  const bpe_walk_options o = {.allowed = s->finder, .document = true};
  bpe_buffer_init(&b, &unit_alloc, 0);
  return buffered(s, bpe_encode_packed(s->coder, text, TEXT_LEN, 16, &o, &s->e, &b), &b);
}

static bpe_status run_decode(stage *s) {
  bpe_buffer b;
  bpe_buffer_init(&b, &unit_alloc, 0);
  return buffered(s, bpe_decode(s->model, ids, TEXT_LEN, BPE_SPECIALS_TEXT, false, NULL, NULL,
                                &s->e, &b), &b);
}

static bpe_status run_repair(stage *s) {
  bpe_buffer b;
  bpe_buffer_init(&b, &unit_alloc, 0);
  return buffered(s, bpe_utf8_repair(text, TEXT_LEN, BPE_REPAIR_REPLACE, &s->e, &b), &b);
}

/* ---- The loop -------------------------------------------------------------------------------- */

static const struct {
  const char *name;
  bpe_status (*run)(stage *);
} operations[] = {
    {"builder", run_builder},
    {"builder, growing", run_growing},
    {"load gpt2", run_load_gpt2},
    {"load o200k_harmony", run_load_harmony},
    {"pattern, named", run_named_pattern},
    {"pattern, regex", run_regex_pattern},
    {"finder, all", run_finder},
    {"finder, named", run_named_finder},
    {"finder, forbidden", run_forbidden},
    {"coder", run_coder},
    {"walk", run_walk},
    {"count", run_count},
    {"count by another regex", run_count_by_regex},
    {"encode json", run_encode_json},
    {"encode packed", run_encode_packed},
    {"decode", run_decode},
    {"repair", run_repair},
};

/* Words for each way of merging, specials, digits, malformed bytes. */
static void make_text(void) {
  static const size_t words[] = {1, 3, 20, 47, 48, 49, 120, 256, 257, 258, 1500, 90, 5, 2500};
  size_t at = 0;
  for (size_t k = 0; at < TEXT_LEN; k++) {
    const size_t n = words[k % (sizeof words / sizeof *words)];
    for (size_t i = 0; i < n && at < TEXT_LEN; i++) text[at++] = (uint8_t)('a' + unit_below(3));
    static const char between[] = " 12345 <|7|><|8|>\xff\xe4\xb8\xad\xe4  <|9|";
    for (size_t i = 0; i + 1 < sizeof between && at < TEXT_LEN; i++)
      text[at++] = (uint8_t)between[i];
  }
  for (size_t i = 0; i < TEXT_LEN; i++) ids[i] = i % 7 == 0 ? 300 + unit_below(3) : unit_below(256);
}

static bool stage_open(stage *s) {
  *s = (stage){.answer = 1};
  unit_fail(0, false);
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  describe(b);
  return CHECK(bpe_builder_finish(b, NULL, &s->model) == BPE_OK &&
               bpe_coder_new(s->model, 64, NULL, &s->coder) == BPE_OK &&
               bpe_walk_new(s->coder, NULL, &s->walk) == BPE_OK &&
               bpe_finder_new(s->model, NULL, 0, NULL, &s->finder) == BPE_OK);
}

static void stage_close(stage *s) {
  bpe_walk_free(s->walk);
  bpe_finder_free(s->finder);
  bpe_coder_free(s->coder);
  bpe_model_free(s->model);
  CHECK_EQ_INT(unit_memory.blocks, 0);
}

/* The operation with the k-th request failing; *refused: how many did. */
static bpe_status try_once(size_t which, size_t k, bool sticky, uint64_t expected,
                           size_t *refused) {
  stage s;
  if (!stage_open(&s)) return BPE_MISUSE;
  unit_fail(k, sticky);
  const bpe_status st = operations[which].run(&s);
  *refused = unit_memory.refused;
  unit_fail(0, false);
  bool good = st == BPE_OK ? s.answer == expected
                           : st == BPE_NOMEM && !s.gave_on_failure &&
                                 unit_says(&s.e, BPE_NOMEM, 0, "out of memory");
  s.answer = 1;
  s.e = (bpe_error){.status = BPE_OK};
  good = good && operations[which].run(&s) == BPE_OK && s.answer == expected;
  if (!CHECK(good)) printf("  %s: request %zu%s\n", operations[which].name, k,
                           sticky ? " and all after it" : "");
  stage_close(&s);
  return st;
}

static void check_operation(size_t which, bool verbose) {
  stage s;
  if (!stage_open(&s)) return;
  CHECK_EQ_INT(operations[which].run(&s), BPE_OK);
  const uint64_t expected = s.answer;
  stage_close(&s);
  size_t n_nomem = 0, n_ok = 0, requests = 0;
  for (int sticky = 0; sticky < 2; sticky++) {
    for (size_t k = 1;; k++) {
      size_t refused = 0;
      const bpe_status st = try_once(which, k, sticky, expected, &refused);
      if (refused == 0) break;
      n_nomem += st == BPE_NOMEM;
      n_ok += st == BPE_OK;
      requests = k;
      if (!CHECK(k < MOST_REQUESTS)) break;
    }
  }
  if (!CHECK(n_nomem > 0)) printf("  %s: never out of memory\n", operations[which].name);
  if (verbose)
    printf("%-24s %3zu requests: %zu times out of memory, %zu times done all the same\n",
           operations[which].name, requests, n_nomem, n_ok);
}

int main(int argc, char **argv) {
  const bool verbose = argc > 1 && strcmp(argv[1], "-v") == 0;
  const char *part = argc > 1 + verbose ? argv[1 + verbose] : "";
  size_t n = 0;
  make_text();
  for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
    if (strstr(operations[i].name, part) == NULL) continue;
    check_operation(i, verbose);
    n++;
  }
  CHECK(n > 0);
  return unit_summary();
}
