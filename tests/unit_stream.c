/* unit_stream.c - a text in parts has the ids it has as a whole, wherever it is cut.
**
** Every cut into two parts and into parts of one, two, ... bytes; texts of what makes cuts matter:
** runs that a pattern looks through, characters, special tokens, malformed bytes. What is decided
** early is seen by making the stream believe that little is enough, which needs long texts.
*/
#include "unit.h"

#include <stdio.h>

enum { MOST = 1 << 20 };

static uint32_t whole[MOST], parts[MOST];

static size_t encode(bpe_coder *c, const uint8_t *text, size_t len, const bpe_walk_options *o) {
  bpe_walk *w = NULL;
  bpe_piece p;
  size_t n = 0;
  CHECK(bpe_walk_new(c, NULL, &w) == BPE_OK && bpe_walk_start(w, text, len, o, NULL) == BPE_OK);
  while (bpe_walk_next(w, &p, NULL) == BPE_OK)
    for (size_t i = 0; i < p.n_ids; i++) whole[n++] = p.ids[i];
  bpe_walk_free(w);
  return n;
}

static bpe_status drain(bpe_stream *s, size_t *n) {
  const uint32_t *ids;
  size_t k;
  bpe_status st;
  while ((st = bpe_stream_next(s, &ids, &k, NULL)) == BPE_OK)
    for (size_t i = 0; i < k; i++) parts[(*n)++] = ids[i];
  return st;
}

/* The text in parts of `step` bytes, the first of `first`; whether the ids are those of the whole,
** which are known. Returns how many there were before the end. */
static size_t stream(bpe_coder *c, const uint8_t *text, size_t len, const bpe_walk_options *o,
                     size_t first, size_t step, size_t n_whole) {
  bpe_stream *s = NULL;
  size_t n = 0, at = 0;
  CHECK(bpe_stream_new(c, o, NULL, &s) == BPE_OK);
  for (size_t part = first; at < len; part = step) {
    if (part > len - at) part = len - at;
    CHECK(bpe_stream_add(s, text + at, part, NULL) == BPE_OK);
    at += part;
    if (drain(s, &n) != BPE_DONE) break;
  }
  const size_t early = n;
  bpe_stream_end(s);
  CHECK_EQ_INT(drain(s, &n), BPE_DONE);
  CHECK(n == n_whole && memcmp(parts, whole, n * sizeof *whole) == 0);
  bpe_stream_free(s);
  return early;
}

static size_t make_text(uint8_t *out, size_t want, bool few) {
  static const char *const bits[] = {
      " ",  "  ",   "\n",   " \n ", "\t", "a",           "the",  "The",      "'s",   "'",   "12",
      "é",  "É",    "日本", "。",   "क्",  "👩‍👩", "\xff", "\xe6\x97", "\x80", "<s>", "<",
      "<s", "</s>", "...",  "//",   "/",  "A",           "abc",  "中A",      "a中"};
  enum { N = sizeof bits / sizeof *bits };
  const uint32_t a = unit_below(N), b = unit_below(N);
  size_t n = 0;
  while (n + 16 < want) {
    const uint32_t which = !few ? unit_below(N) : unit_below(12) == 0 ? b : a;
    const size_t len = strlen(bits[which]);
    memcpy(out + n, bits[which], len);
    n += len;
  }
  return n;
}

static const char *const patterns[] = {"gpt2", "cl100k", "o200k", "llama3", "qwen2", "tekken"};

static void check_short(void) {
  uint8_t text[80];
  for (int round = 0; round < 60; round++) {
    bpe_model *m = unit_tiny(patterns[round % 6]);
    bpe_coder *c = NULL;
    bpe_finder *all = NULL;
    CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK &&
          bpe_finder_new(m, NULL, 0, NULL, &all) == BPE_OK);
    const bpe_walk_options o = {.allowed = round % 2 == 0 ? all : NULL, .document = round % 3 == 0};
    const size_t len = make_text(text, sizeof text, round % 5 == 0);
    const size_t n = encode(c, text, len, &o);
    for (size_t cut = 1; cut <= len; cut++) stream(c, text, len, &o, cut, len, n);
    for (size_t step = 1; step < 8; step++) stream(c, text, len, &o, step, step, n);
    bpe_finder_free(all);
    bpe_coder_free(c);
    bpe_model_free(m);
  }
}

/* Long enough to be decided before its end, cut at every place of a stretch in turn. */
static void check_long(void) {
  enum { LONG = 150000 };
  uint8_t *text = malloc(LONG);
  for (int round = 0; round < 36 && text != NULL; round++) {
    bpe_model *m = unit_tiny(patterns[round % 6]);
    bpe_coder *c = NULL;
    bpe_finder *all = NULL;
    CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK &&
          bpe_finder_new(m, NULL, 0, NULL, &all) == BPE_OK);
    const bpe_walk_options o = {.allowed = round % 2 == 0 ? all : NULL};
    const bool few = round % 3 == 0;
    const size_t len = make_text(text, LONG, few);
    const size_t n = encode(c, text, len, &o);
    for (size_t k = 0; k < 12; k++) {
      const size_t early = stream(c, text, len, &o, 65536 + k, 1 + unit_below(40000), n);
      CHECK(few || early > n / 3);
    }
    bpe_finder_free(all);
    bpe_coder_free(c);
    bpe_model_free(m);
  }
  free(text);
}

static void check_refused(void) {
  bpe_model *m = unit_tiny("none");
  bpe_coder *c = NULL;
  bpe_stream *s = (bpe_stream *)&unit_memory;
  bpe_error e = {.status = BPE_OK};
  bpe_pattern *p = NULL;
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
  CHECK_EQ_INT(bpe_stream_new(c, NULL, &e, &s), BPE_MISUSE);
  CHECK(s == NULL);
  CHECK(unit_says(&e, BPE_MISUSE, 0, "a tokenizer with this pattern cannot stream: none"));
  CHECK(bpe_pattern_new(&unit_alloc, "a+", 2, true, NULL, &p) == BPE_OK);
  const bpe_walk_options o = {.pattern = p};
  CHECK_EQ_INT(bpe_stream_new(c, &o, NULL, &s), BPE_MISUSE);
  bpe_pattern_free(p);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* A forbidden string is found across parts, at its place in the text, and the longest of two. */
static void check_forbidden(void) {
  static const bpe_name names[] = {{"<s>", 3}, {"<s>!!", 5}};
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = NULL;
  bpe_finder *bad = NULL;
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
  CHECK(bpe_finder_new_forbidden(m, names, 2, NULL, 0, NULL, &bad) == BPE_OK);
  const bpe_walk_options o = {.forbidden = bad};
  for (size_t step = 1; step < 9; step++) {
    for (size_t end = 0; end < 2; end++) {
      static const char text[] = "abc abc <s>!!";
      const size_t len = end == 0 ? 13 : 12;
      bpe_stream *s = NULL;
      bpe_error e = {.status = BPE_OK};
      const uint32_t *ids;
      size_t n;
      bpe_status st = bpe_stream_new(c, &o, &e, &s);
      for (size_t at = 0; st == BPE_OK && at < len; at += step)
        st = bpe_stream_add(s, text + at, step < len - at ? step : len - at, &e);
      CHECK(end != 0 || st == BPE_BADTEXT); /* with its last byte, not at the end */
      if (st == BPE_OK) bpe_stream_end(s);
      while (st == BPE_OK) st = bpe_stream_next(s, &ids, &n, &e);
      CHECK(unit_says(&e, BPE_BADTEXT, 8,
                      end == 0 ? "special token not allowed at byte 8: <s>!!"
                               : "special token not allowed at byte 8: <s>"));
      bpe_stream_free(s);
    }
  }
  bpe_finder_free(bad);
  bpe_coder_free(c);
  bpe_model_free(m);
}

static int count_question(void *ctx) {
  ++*(int *)ctx;
  return 0;
}

/* After the end the last bytes are searched for a long forbidden string once, not for each piece:
** here it is nearly met at each of them. */
static void check_one_search(void) {
  enum { PIECES = 2000 };
  static char text[2 * PIECES], name[2 * PIECES + 1];
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = NULL;
  bpe_finder *bad = NULL;
  bpe_stream *s = NULL;
  int asked = 0;
  size_t n = 0;
  for (size_t i = 0; i < sizeof text; i++) text[i] = name[i] = i % 2 == 0 ? ' ' : 'a';
  name[sizeof text] = 'b';
  const bpe_name names[] = {{name, sizeof name}};
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
  CHECK(bpe_finder_new_forbidden(m, names, 1, NULL, 0, NULL, &bad) == BPE_OK);
  const bpe_walk_options o = {.forbidden = bad, .stop = count_question, .stop_ctx = &asked};
  CHECK(bpe_stream_new(c, &o, NULL, &s) == BPE_OK);
  CHECK(bpe_stream_add(s, text, sizeof text, NULL) == BPE_OK);
  bpe_stream_end(s);
  CHECK_EQ_INT(drain(s, &n), BPE_DONE);
  CHECK_EQ_INT(n, sizeof text);
  if (!CHECK(asked < 20)) printf("  asked %d times\n", asked);
  bpe_stream_free(s);
  bpe_finder_free(bad);
  bpe_coder_free(c);
  bpe_model_free(m);
}

static void check_no_byte(void) {
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  bpe_builder_token(b, 0, BPE_TOKEN, "a", 1);
  bpe_builder_token(b, 1, BPE_TOKEN, " ", 1);
  bpe_builder_pattern(b, "gpt2", 4, false);
  bpe_model *m = unit_finish(b);
  bpe_coder *c = NULL;
  bpe_stream *s = NULL;
  bpe_error e = {.status = BPE_OK};
  const uint32_t *ids;
  size_t n;
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK && bpe_stream_new(c, NULL, NULL, &s) == BPE_OK);
  bpe_status st = BPE_OK;
  for (int i = 0; i < 100000 && st == BPE_OK; i++) {
    st = bpe_stream_add(s, "a a ", 4, &e);
    while (st == BPE_OK) st = bpe_stream_next(s, &ids, &n, &e);
    if (st == BPE_DONE) st = BPE_OK;
  }
  CHECK(bpe_stream_add(s, "b", 1, &e) == BPE_OK);
  bpe_stream_end(s);
  while (st == BPE_OK) st = bpe_stream_next(s, &ids, &n, &e);
  CHECK(unit_says(&e, BPE_BADTEXT, 400000, "no token for the byte at 400000: 0x62"));
  bpe_stream_free(s);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* A byte without a token is no failure while a special token or a piece that is a token may hold it;
** once no piece that does can be a token, it is one, before the end. */
static void check_bytes_to_come(void) {
  enum { BEFORE = 70000, BEHIND = 4000, ROOM = BEFORE + BEHIND };
  static const char bs[] = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
  static const char *const bits[] = {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa<s>", " \xc3\xa9 ",
                                     " bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb "};
  static uint8_t text[ROOM];
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  bpe_builder_token(b, 0, BPE_TOKEN, "a", 1);
  bpe_builder_token(b, 1, BPE_TOKEN, " ", 1);
  bpe_builder_token(b, 2, BPE_TOKEN, "\xc3\xa9", 2);
  bpe_builder_token(b, 3, BPE_TOKEN, bs, sizeof bs - 1);
  unit_special(b, 4, "<s>");
  bpe_builder_whole(b);
  bpe_builder_pattern(b, "whitespace", 10, false);
  bpe_model *m = unit_finish(b);
  bpe_coder *c = NULL;
  bpe_finder *all = NULL;
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK &&
        bpe_finder_new(m, NULL, 0, NULL, &all) == BPE_OK);
  const bpe_walk_options o = {.allowed = all};
  for (size_t k = 0; k < sizeof bits / sizeof *bits; k++) {
    const size_t len = strlen(bits[k]);
    for (size_t i = 0; i < ROOM; i++) text[i] = i % 2 == 0 ? 'a' : ' ';
    memcpy(text + BEFORE, bits[k], len);
    const size_t n = encode(c, text, ROOM, &o);
    for (size_t cut = 1; cut <= len; cut++) stream(c, text, ROOM, &o, BEFORE + cut, ROOM, n);
  }
  for (size_t behind = 0; behind < 100; behind += 80) {
    bpe_stream *s = NULL;
    bpe_error e = {.status = BPE_OK};
    const uint32_t *ids;
    size_t n;
    bpe_status st = bpe_stream_new(c, &o, &e, &s);
    memset(text + BEFORE, 'a', BEHIND);
    text[BEFORE] = 'b';
    if (st == BPE_OK) st = bpe_stream_add(s, text, BEFORE + 1 + behind, &e);
    while (st == BPE_OK) st = bpe_stream_next(s, &ids, &n, &e);
    CHECK_EQ_INT(st, behind == 0 ? BPE_DONE : BPE_BADTEXT);
    if (st == BPE_DONE) bpe_stream_end(s);
    while (st == BPE_DONE || st == BPE_OK) st = bpe_stream_next(s, &ids, &n, &e);
    CHECK(unit_says(&e, BPE_BADTEXT, BEFORE, "no token for the byte at 70000: 0x62"));
    bpe_stream_free(s);
  }
  bpe_finder_free(all);
  bpe_coder_free(c);
  bpe_model_free(m);
}

static void check_memory(void) {
  bpe_model *m = unit_tiny("o200k");
  bpe_coder *c = NULL;
  CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
  for (size_t k = 1; k < 50; k++) {
    bpe_stream *s;
    size_t n = 0;
    unit_fail(k, false);
    bpe_status st = bpe_stream_new(c, NULL, NULL, &s);
    for (int i = 0; st == BPE_OK && i < 8; i++) st = bpe_stream_add(s, "abc abcabc\n", 11, NULL);
    if (st == BPE_OK) {
      bpe_stream_end(s);
      st = drain(s, &n);
    }
    bpe_stream_free(s);
    const bool refused = unit_memory.refused > 0;
    unit_fail(0, false);
    if (!CHECK(st == (refused ? BPE_NOMEM : BPE_DONE)) || !refused) break;
  }
  bpe_coder_free(c);
  bpe_model_free(m);
}

int main(void) {
  check_short();
  check_long();
  check_refused();
  check_forbidden();
  check_one_search();
  check_no_byte();
  check_bytes_to_come();
  check_memory();
  return unit_summary();
}
