/* unit_window.c - limits, windows and cuts: what random texts seldom meet, and failed allocations.
** The definition itself is prop_window.c's.
*/
#include "../src/natural.h"
#include "../src/rewalk.h"

#include "unit.h"

static bpe_coder *coder_of(bpe_model *m) {
  bpe_coder *c = NULL;
  CHECK(m != NULL && bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
  return c;
}

/* The windows of a text as "0-3:2 3-5:1", or what they failed with. */
static const char *windows(bpe_coder *c, const char *text, size_t len, const bpe_walk_options *o,
                           bpe_window_options how) {
  static char out[600];
  bpe_windows *w;
  bpe_window x;
  bpe_error e = {.status = BPE_OK};
  size_t n = 0;
  out[0] = 0;
  bpe_status st = bpe_windows_new(c, text, len, o, &how, &e, &w);
  while (st == BPE_OK && (st = bpe_windows_next(w, &x, &e)) == BPE_OK && n < 500)
    n += (size_t)snprintf(out + n, sizeof out - n, "%s%zu-%zu:%llu", n > 0 ? " " : "", x.start,
                          x.stop, (unsigned long long)x.tokens);
  bpe_windows_free(w);
  if (st != BPE_DONE)
    snprintf(out, sizeof out, "%d at %llu: %s", (int)st, (unsigned long long)e.offset, e.text);
  return out;
}

static void gives(const char *got, const char *expected) {
  if (!CHECK(strcmp(got, expected) == 0)) printf("  %s\n  expected %s\n", got, expected);
}

static void check_windows(void) {
  bpe_model *m = unit_tiny("none");
  bpe_coder *c = coder_of(m);
  const bpe_walk_options document = {.document = true};
  gives(windows(c, "", 0, NULL, (bpe_window_options){.most = 1}), "");
  gives(windows(c, "abcabcx", 7, NULL, (bpe_window_options){.most = 2}), "0-6:2 6-7:1");
  gives(windows(c, "abcabcx", 7, NULL, (bpe_window_options){.most = 3}), "0-7:3");
  gives(windows(c, "abcabcabc", 9, NULL, (bpe_window_options){.most = 2, .overlap = 1}),
        "0-6:2 3-9:2");
  /* Two tokens of a character: no window of two has the overlap too. */
  gives(windows(c, "xy\xc3\xa9", 4, NULL, (bpe_window_options){.most = 2, .overlap = 1}),
        "0-2:2 2-4:2");
  gives(windows(c, "abcabc", 6, &document, (bpe_window_options){.most = 3}), "0-3:3 3-6:3");
  gives(windows(c, "abc", 3, &document, (bpe_window_options){.most = 2}),
        "3 at 0: what begins at byte 0 needs more than 2 tokens");
  gives(windows(c, "abc", 3, &document, (bpe_window_options){.most = 1}),
        "10 at 0: the BOS and EOS tokens alone are more than the limit: 1");
  /* A character is not cut, a malformed byte is one. */
  gives(windows(c, "a\xc3\xa9z\xff\xff", 6, NULL, (bpe_window_options){.most = 2}),
        "0-1:1 1-3:2 3-5:2 5-6:1");
  gives(windows(c, "a\xc3\xa9", 3, NULL, (bpe_window_options){.most = 1}),
        "3 at 1: what begins at byte 1 needs more than 1 tokens");
  bpe_coder_free(c);
  bpe_model_free(m);
}

static void check_specials(void) {
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = coder_of(m);
  bpe_finder *all = NULL, *bad = NULL;
  bpe_error e = {.status = BPE_OK};
  CHECK(bpe_finder_new(m, NULL, 0, NULL, &all) == BPE_OK);
  CHECK(bpe_finder_new_forbidden(m, NULL, 0, NULL, 0, NULL, &bad) == BPE_OK);
  const bpe_walk_options allow = {.allowed = all}, forbid = {.forbidden = bad};
  gives(windows(c, "ab<s>ab</s>", 11, &allow, (bpe_window_options){.most = 2}), "0-5:2 5-11:2");
  gives(windows(c, "ab<s>ab</s>", 11, &allow, (bpe_window_options){.most = 3, .overlap = 1}),
        "0-7:3 5-11:2");
  gives(windows(c, "ab<s>", 5, &forbid, (bpe_window_options){.most = 9}),
        "8 at 2: special token not allowed at byte 2: <s>");
  size_t start, stop;
  CHECK_EQ_INT(bpe_truncate(c, "ab<s>ab", 7, &allow, 2, false, &e, &start, &stop), BPE_OK);
  CHECK(start == 0 && stop == 5);
  CHECK_EQ_INT(bpe_truncate(c, "ab<s>ab", 7, &allow, 2, true, &e, &start, &stop), BPE_OK);
  CHECK(start == 2 && stop == 7);
  bpe_finder_free(all);
  bpe_finder_free(bad);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* A byte without token: an error where it is met, not seen where the limit comes first. */
static void check_no_byte(void) {
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  bpe_builder_token(b, 0, BPE_TOKEN, "a", 1);
  bpe_builder_pattern(b, "gpt2", 4, false);
  bpe_model *m = unit_finish(b);
  bpe_coder *c = coder_of(m);
  bpe_error e = {.status = BPE_OK};
  size_t start, stop;
  bool fits = true;
  CHECK_EQ_INT(bpe_truncate(c, "aab", 3, NULL, 9, false, &e, &start, &stop), BPE_BADTEXT);
  CHECK(unit_says(&e, BPE_BADTEXT, 2, "no token for the byte at 2: 0x62"));
  e = (bpe_error){.status = BPE_OK};
  CHECK_EQ_INT(bpe_fits(c, "a\na\nb", 5, NULL, 9, &e, &fits), BPE_BADTEXT);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* A regex looks behind: pieces of a window are those of the rest alone. */
static void check_regex(void) {
  bpe_builder *b = unit_builder("none");
  static const char pattern[] = "(?<=x)ab|a|b|x";
  bpe_builder_grow(b, 'a', 'b', 256);
  bpe_builder_pattern(b, pattern, sizeof pattern - 1, true);
  bpe_model *m = unit_finish(b);
  bpe_coder *c = coder_of(m);
  gives(windows(c, "xabxab", 6, NULL, (bpe_window_options){.most = 2}), "0-3:2 3-6:2");
  gives(windows(c, "xabxab", 6, NULL, (bpe_window_options){.most = 1}),
        "0-1:1 1-2:1 2-3:1 3-4:1 4-5:1 5-6:1");
  gives(windows(c, "xabxab", 6, NULL, (bpe_window_options){.most = 3, .overlap = 1}),
        "0-4:3 3-6:2");
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* The places of a text where a kind of cut may be, as a string of marks below it. */
static void ends(const char *text, const char *sentences, const char *paragraphs) {
  const uint8_t *s = (const uint8_t *)text;
  const size_t len = strlen(text);
  char got[200], blank[200];
  memset(got, ' ', sizeof got);
  memset(blank, ' ', sizeof blank);
  for (size_t at = 1; at <= len; at++) {
    if (is_sentence_end(s, 0, at, len)) got[at] = '^';
    if (is_paragraph_end(s, 0, at, len)) blank[at] = '^';
  }
  got[len + 1] = blank[len + 1] = 0;
  if (!CHECK(memcmp(got, sentences, strlen(sentences)) == 0 && strlen(sentences) <= len + 1))
    printf("  %s\n  %s\n  %s\n", text, got, sentences);
  if (!CHECK(memcmp(blank, paragraphs, strlen(paragraphs)) == 0)) printf("  %s|\n", blank);
}

static void check_natural(void) {
  ends("One. Two? \"Three!\" 3.14", "    ^^   ^^       ^^    ", "    ");
  ends("e.g. a.b ?! x", "    ^^     ^^ ", " ");
  ends("a\n\nb\n \nc\n", "          ", "   ^   ^  ");
  ends("a.\r\n\r\nb", "  ^^^^^ ", "      ^ ");
  ends("(a.) b", "    ^^ ", "  ");
  ends("", "", "");
  ends(".", " ^", " ");
  ends("a\xe3\x80\x82z\xe3\x80\x82\xe3\x80\x8d\x63", "    ^      ^ ", " "); /* a。z。」c */
  ends("a.\xe6\x97\xa5", "  ^  ", " ");
}

/* Tokenizers that change text before they split it, and whose added tokens look at what is beside
** them: nothing is taken for granted, everything still holds. */
static void check_changed(void) {
  static const char head[] =
      "{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
      "\"String\":"
      "\"\xe2\x96\x81\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
      "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]},"
      "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFC\"},"
      "{\"type\":\"Prepend\",\"prepend\":\"\xe2\x96\x81\"},"
      "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\xe2\x96\x81\"}]},"
      "\"added_tokens\":[{\"id\":268,\"content\":\"<m>\",\"special\":false,\"normalized\":false,"
      "\"lstrip\":true,\"rstrip\":true,\"single_word\":false},"
      "{\"id\":269,\"content\":\"ing\",\"special\":false,\"normalized\":false,"
      "\"lstrip\":false,\"rstrip\":false,\"single_word\":true}],"
      "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{"
      "\"\xe2\x96\x81\":0,\"a\":1,\"b\":2,\"\u00e9\":3,\"e\":4,\"\xe2\x96\x81\x61\":5,\"ab\":6,"
      "\"\xe2\x96\x81\x61\x62\":7,\"i\":8,\"n\":9,\"g\":10,"
      "\"ng\":11";
  static const char tail[] =
      "},\"merges\":[\"\xe2\x96\x81 a\",\"a b\",\"\xe2\x96\x81\x61 b\",\"n g\"]}}";
  static const char *const texts[] = {"ab ab  ab",
                                      "ae\xcc\x81 b",
                                      "a <m> b  <m>ab",
                                      "ing aing ing",
                                      "  a",
                                      "ab<m>",
                                      "ing",
                                      "e\xcc\x81\xc3\xa9 ingab ing b"};
  static char json[8192];
  size_t json_len = (size_t)snprintf(json, sizeof json, "%s", head);
  for (int i = 0; i < 256; i++)
    json_len +=
        (size_t)snprintf(json + json_len, sizeof json - json_len, ",\"<0x%02X>\":%d", i, 12 + i);
  json_len += (size_t)snprintf(json + json_len, sizeof json - json_len, "%s", tail);
  bpe_model *m = NULL;
  bpe_error e = {.status = BPE_OK};
  if (!CHECK(bpe_import(&unit_alloc, json, json_len, NULL, 0, NULL, &e, &m) == BPE_OK)) {
    printf("  %s\n", e.text);
    return;
  }
  bpe_coder *c = coder_of(m);
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const char *text = texts[i];
    const size_t len = strlen(text);
    uint64_t all;
    CHECK(bpe_count(c, text, len, NULL, NULL, &all) == BPE_OK);
    for (uint64_t most = 1; most < all + 3; most++) {
      bool fits;
      size_t start, stop, at = 0;
      uint64_t n;
      CHECK(bpe_fits(c, text, len, NULL, most, NULL, &fits) == BPE_OK && fits == (all <= most));
      for (int left = 0; left < 2; left++) {
        CHECK(bpe_truncate(c, text, len, NULL, most, left == 1, NULL, &start, &stop) == BPE_OK);
        CHECK(bpe_count(c, text + start, stop - start, NULL, NULL, &n) == BPE_OK && n <= most);
        CHECK(!fits || (start == 0 && stop == len));
      }
      const bpe_window_options how = {.most = most, .overlap = most > 2 ? 1 : 0};
      bpe_windows *w;
      bpe_window x;
      bpe_status st = bpe_windows_new(c, text, len, NULL, &how, NULL, &w);
      while (st == BPE_OK && (st = bpe_windows_next(w, &x, NULL)) == BPE_OK) {
        CHECK(x.start <= at && x.stop > at && x.tokens <= most);
        CHECK(bpe_count(c, text + x.start, x.stop - x.start, NULL, NULL, &n) == BPE_OK &&
              n == x.tokens);
        at = x.stop;
      }
      CHECK(st == BPE_DONE ? at == len : st == BPE_TOOBIG);
      bpe_windows_free(w);
    }
    bpe_trace *t;
    bpe_step step;
    uint64_t done = 0, last = 0;
    bpe_status st = bpe_trace_new(c, NULL, &t);
    if (st == BPE_OK) st = bpe_trace_start(t, text, len, NULL, NULL);
    while (st == BPE_OK && (st = bpe_trace_next(t, &step, NULL)) == BPE_OK) {
      if (step.step == 0) done += last;
      last = step.n_after;
    }
    CHECK(st == BPE_DONE && done + last == all);
    bpe_trace_free(t);
  }
  bpe_stream *s;
  CHECK_EQ_INT(bpe_stream_new(c, NULL, NULL, &s), BPE_MISUSE);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* A long piece is taken apart without being merged again: as fast as one that is not. */
static void check_long(void) {
  enum { LEN = 1 << 20 };
  bpe_model *m = NULL;
  bpe_error e = {.status = BPE_OK};
  char *text = malloc(LEN);
  CHECK(text != NULL &&
        bpe_builtin_load(&unit_alloc, bpe_builtin_find("cl100k_base", 11), &e, &m) == BPE_OK);
  bpe_coder *c = coder_of(m);
  for (int kind = 0; kind < 3 && text != NULL; kind++) {
    for (size_t i = 0; i < LEN; i++)
      text[i] = (char)(kind == 0 ? 'x' : kind == 1 ? 'a' + (int)unit_below(26) : 0xff);
    bpe_windows *w;
    bpe_window x;
    size_t at = 0;
    const bpe_window_options how = {.most = 64};
    CHECK(bpe_windows_new(c, text, LEN, NULL, &how, &e, &w) == BPE_OK);
    while (bpe_windows_next(w, &x, &e) == BPE_OK && x.start == at && x.tokens <= 64) at = x.stop;
    CHECK_EQ_INT(at, LEN);
    bpe_windows_free(w);
  }
  free(text);
  bpe_coder_free(c);
  bpe_model_free(m);
}

static int count_question(void *ctx) {
  ++*(int *)ctx;
  return 0;
}

/* Where a window begins in a long piece, the scanner does not go through what is left of it: it would
** be asked whether to stop a dozen times on that way. */
static void check_long_scans(void) {
  enum { LEN = 1 << 20, WINDOWS = 60 };
  static const struct {
    const char *pattern, *run, *behind;
  } rows[] = {{"gpt2", "xX", "1"},
              {"gpt2", "+\u0301", "a"},
              {"cl100k", "xX", "1"},
              {"cl100k", "\n", " x"},
              {"llama3", "!.", "a"},
              {"qwen2", "\u4e2d\u0e01", ""},
              {"o200k", "xyz", "Z"},
              {"o200k", "\u0e01\u0e34", "A"},
              {"o200k", "//\n", "!x"},
              {"o200k", "\u0e01", "'s"},
              {"tekken", "XY", "x"},
              {"deepseek3", "aB\u0e01", "1"},
              {"deepseek3", "\u4e2d\u3042", "a"},
              {"whitespace", "xy", " "},
              {"words", "xy", " "}};
  char *text = malloc(LEN + 8);
  for (size_t k = 0; k < sizeof rows / sizeof *rows && text != NULL; k++) {
    bpe_model *m = unit_finish(unit_builder(rows[k].pattern));
    bpe_coder *c = coder_of(m);
    const size_t unit = strlen(rows[k].run);
    size_t len = 0;
    for (text[len++] = '!'; len < LEN - unit; len += unit) memcpy(text + len, rows[k].run, unit);
    memcpy(text + len, rows[k].behind, strlen(rows[k].behind));
    len += strlen(rows[k].behind);
    int asked = 0, once = 0;
    const bpe_walk_options o = {.stop = count_question, .stop_ctx = &asked};
    const bpe_window_options how = {.most = 8};
    bpe_windows *w;
    bpe_window x;
    CHECK(bpe_windows_new(c, text, len, &o, &how, NULL, &w) == BPE_OK);
    for (int i = 0; i < WINDOWS; i++) {
      CHECK(bpe_windows_next(w, &x, NULL) == BPE_OK);
      if (i == 3) once = asked;
    }
    if (!CHECK(asked - once < 3 * WINDOWS))
      printf("  %s, %s: asked %d times\n", rows[k].pattern, rows[k].run, asked - once);
    bpe_windows_free(w);
    bpe_coder_free(c);
    bpe_model_free(m);
  }
  free(text);
}

/* Nor is what is left of a text normalized and encoded again for each window. */
static void check_altered_rests(void) {
  enum { LEN = 1 << 20, WINDOWS = 60 };
  static const struct {
    const char *pattern, *settings, *text;
  } rows[] = {{"qwen2", "{\"format\":1,\"normalizer\":[\"nfc\"]}", "the cat sat, "},
              {"qwen2", "{\"format\":1,\"normalizer\":[\"nfc\"]}", "caf\u00e9 cafe\u0301 \uac00 "},
              {"gpt2", "{\"format\":1,\"normalizer\":[\"nfkc\"]}", "\ufb01ne \u304b\u3099"},
              {"gpt2", "{\"format\":1,\"normalizer\":[\"prefix_space\"]}", "the cat "},
              {"o200k", "{\"format\":1,\"late\":[257]}", "the cat "},
              {"none", "{\"format\":1,\"normalizer\":[{\"prepend\":\" \"}]}", "the cat "},
              {"none",
               "{\"format\":1,\"normalizer\":[{\"prepend\":\" \"},{\"replace\":[\"a\",\" \"]}]}",
               "that "},
              {"none", "{\"format\":1,\"normalizer\":[\"nfd\"]}", "caf\u00e9 "},
              {"none", "{\"format\":1,\"strip\":1}", "the cat "}};
  char *text = malloc(LEN);
  for (size_t k = 0; k < sizeof rows / sizeof *rows && text != NULL; k++) {
    bpe_builder *b = unit_builder("none");
    bpe_builder_grow(b, 't', 'h', 256);
    bpe_builder_token(b, 257, BPE_ADDED, "<late>", 6);
    bpe_builder_settings(b, rows[k].pattern, strlen(rows[k].pattern), rows[k].settings,
                         strlen(rows[k].settings));
    bpe_model *m = unit_finish(b);
    bpe_coder *c = coder_of(m);
    const size_t unit = strlen(rows[k].text);
    size_t len = 0;
    for (; len < LEN - unit; len += unit) memcpy(text + len, rows[k].text, unit);
    int asked = 0, once = 0;
    const bpe_walk_options o = {.stop = count_question, .stop_ctx = &asked};
    const bpe_window_options how = {.most = 100, .overlap = 10};
    bpe_windows *w;
    bpe_window x;
    CHECK(bpe_windows_new(c, text, len, &o, &how, NULL, &w) == BPE_OK);
    for (int i = 0; i < WINDOWS; i++) {
      CHECK(bpe_windows_next(w, &x, NULL) == BPE_OK);
      if (i == 3) once = asked;
    }
    if (!CHECK(asked - once < WINDOWS))
      printf("  %s, %s: asked %d times\n", rows[k].pattern, rows[k].settings, asked - once);
    bpe_windows_free(w);
    bpe_coder_free(c);
    bpe_model_free(m);
  }
  free(text);
}

/* Sentences that never end where a token does: asking at each place costs neither its piece again
** nor all tokens before it, also where two long pieces take turns. */
static void check_far_sentences(void) {
  enum { UNITS = 8000, UNIT = 3, LEN = UNITS * UNIT };
  bpe_builder *b = unit_builder("none");
  bpe_builder_grow(b, '.', ' ', 256);
  bpe_builder_grow(b, 256, 'a', 257);
  unit_special(b, 258, "<s>");
  bpe_model *m = unit_finish(b);
  bpe_coder *c = coder_of(m);
  bpe_finder *all = NULL;
  char *text = malloc(LEN);
  CHECK(text != NULL && bpe_finder_new(m, NULL, 0, NULL, &all) == BPE_OK);
  for (int two = 0; two < 2 && text != NULL; two++) {
    int asked = 0;
    const bpe_walk_options o = {.allowed = all, .stop = count_question, .stop_ctx = &asked};
    const bpe_window_options how = {.most = UNITS - 10, .cut = BPE_CUT_SENTENCE};
    bpe_windows *w;
    bpe_window x;
    for (size_t i = 0; i < LEN; i++) text[i] = ". a"[i % UNIT];
    if (two == 1) memcpy(text + LEN / 2, "<s>", 3);
    CHECK(bpe_windows_new(c, text, LEN, &o, &how, NULL, &w) == BPE_OK);
    CHECK(bpe_windows_next(w, &x, NULL) == BPE_OK);
    /* The next finer cut: behind the special token, or at the limit. */
    CHECK_EQ_INT(x.stop, two == 1 ? LEN / 2 + 3 : (UNITS - 10) * UNIT);
    if (!CHECK(asked < 60)) printf("  %d: asked %d times, %zu\n", two, asked, x.stop);
    bpe_windows_free(w);
  }
  free(text);
  bpe_finder_free(all);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* All windows of a text, and what is left of it from both sides, count what they say. */
static void counts_hold(bpe_coder *c, const char *text, size_t len) {
  for (uint64_t most = 6; most < 90; most += 11) {
    const bpe_window_options how = {.most = most, .overlap = most > 20 ? most / 3 : 0};
    bpe_windows *w;
    bpe_window x;
    size_t start, stop, at = 0;
    uint64_t n;
    CHECK(bpe_windows_new(c, text, len, NULL, &how, NULL, &w) == BPE_OK);
    while (bpe_windows_next(w, &x, NULL) == BPE_OK) {
      CHECK(bpe_count(c, text + x.start, x.stop - x.start, NULL, NULL, &n) == BPE_OK);
      if (!CHECK(n == x.tokens && n <= most && x.start <= at)) break;
      at = x.stop;
    }
    CHECK_EQ_INT(at, len);
    bpe_windows_free(w);
    for (int left = 0; left < 2; left++) {
      CHECK(bpe_truncate(c, text, len, NULL, most, left == 1, NULL, &start, &stop) == BPE_OK);
      CHECK(bpe_count(c, text + start, stop - start, NULL, NULL, &n) == BPE_OK && n <= most);
    }
  }
}

/* Long pieces that would end elsewhere if they began in their middle: newlines after others take
** the blanks behind them along once they are white space, and letters without case a capital. */
static void check_other_ends(void) {
  static const char *const patterns[] = {"cl100k", "o200k"};
  for (int k = 0; k < 2; k++) {
    bpe_builder *b = unit_builder(patterns[k]);
    bpe_builder_grow(b, '\n', ' ', 256);
    bpe_builder_grow(b, ' ', '\n', 257);
    bpe_builder_grow(b, 0xad, 'A', 258); /* the last byte of U+4E2D */
    bpe_model *m = unit_finish(b);
    bpe_coder *c = coder_of(m);
    char text[2200];
    for (size_t blanks = 1; blanks < 4; blanks++) {
      size_t len = 0;
      text[len++] = '!';
      for (int i = 0; i < 1500; i++) text[len++] = '\n';
      for (size_t i = 0; i < blanks; i++) text[len++] = ' ';
      memcpy(text + len, "\n x", 3);
      counts_hold(c, text, len + 3);
      len = 0;
      text[len++] = 'a';
      for (int i = 0; i < 700; i++, len += 3) memcpy(text + len, "\xe4\xb8\xad", 3);
      memcpy(text + len, "Abc", 3);
      counts_hold(c, text, len + blanks);
    }
    bpe_coder_free(c);
    bpe_model_free(m);
  }
}

/* Of texts that are changed first, with runs that no part may end in, that are one piece, or that
** become much longer. */
static void check_altered_ends(void) {
  enum { LEN = 9000 };
#define LONGER "0123456789012345678901234567890123456789012345678901234567890123456789abcdefghij"
#define MARKS_4 "\u0301\u0323\u0301\u0323"
#define MARKS_64 MARKS_4 MARKS_4 MARKS_4 MARKS_4 MARKS_4 MARKS_4 MARKS_4 MARKS_4
#define MARKS MARKS_64 MARKS_64 MARKS_64 MARKS_64 MARKS_64 MARKS_64 MARKS_64 MARKS_64 MARKS_64 MARKS_64
  static const char *const units[] = {"a",   "\u0301",   "\xff",   "x",           "ab \u00e9",
                                      "<m>", "the cat ", "\u00e9", MARKS "the cat sat on the mat "};
  enum { UNITS = sizeof units / sizeof *units };
  static const char *const settings[] = {
      "{\"format\":1,\"normalizer\":[\"nfc\"]}",
      "{\"format\":1,\"normalizer\":[{\"prepend\":\" \"},\"nfkd\"]}",
      "{\"format\":1,\"normalizer\":[{\"replace\":[\"ab\",\"c\"]}]}",
      "{\"format\":1,\"normalizer\":[{\"replace\":[\"x\",\"" LONGER "\"]}]}",
      "{\"format\":1,\"late\":[270]}", "{\"format\":1,\"normalizer\":[{\"prepend\":\"a\"}]}"};
  static char text[LEN + 1000];
  for (size_t k = 0; k < 12; k++) {
    bpe_builder *b = unit_builder("none");
    bpe_builder_grow(b, 't', 'h', 256);
    bpe_builder_grow(b, 'a', 'a', 257);
    bpe_builder_grow(b, 0xcc, 0x81, 258);
    bpe_builder_token(b, 270, BPE_ADDED, "<m>", 3);
    const char *pattern = k % 2 == 0 ? "qwen2" : "none";
    bpe_builder_settings(b, pattern, strlen(pattern), settings[k / 2], strlen(settings[k / 2]));
    bpe_model *m = unit_finish(b);
    bpe_coder *c = coder_of(m);
    for (size_t u = 0; u < UNITS; u++) {
      const size_t unit = strlen(units[u]);
      size_t len = 0;
      memcpy(text, "the ", 4);
      for (len = 4; len < LEN; len += unit) memcpy(text + len, units[u], unit);
      memcpy(text + len, " the cat", 8);
      const bpe_window_options how = {.most = 600, .overlap = 50};
      bpe_windows *w;
      bpe_window x;
      size_t at = 0;
      uint64_t n;
      bpe_status st = bpe_windows_new(c, text, len + 8, NULL, &how, NULL, &w);
      while (st == BPE_OK && (st = bpe_windows_next(w, &x, NULL)) == BPE_OK) {
        CHECK(bpe_count(c, text + x.start, x.stop - x.start, NULL, NULL, &n) == BPE_OK);
        if (!CHECK(n == x.tokens && n <= 600 && x.start <= at)) printf("  settings %zu, text %zu\n", k, u);
        at = x.stop;
      }
      CHECK(at == len + 8 || (k / 2 == 3 && u == 3 && st == BPE_BADTEXT)); /* 80 times as long */
      bpe_windows_free(w);
    }
    bpe_coder_free(c);
    bpe_model_free(m);
  }
}

/* The same of any runs side by side, for each pattern. */
static void check_runs(void) {
  static const char *const patterns[] = {"gpt2",   "cl100k",    "o200k",      "llama3", "qwen2",
                                         "tekken", "deepseek3", "whitespace", "words"};
  static const char *const units[] = {"a",      "A", "\u4e2d", "\u3042", "\u0e01\u0e34",
                                      "\u0301", " ", "\n",     "/",      "/\n",
                                      "!",      "+", "\u3000", "xY"};
  static const char *const between[] = {"", "'s", "A", "a", "\n", " ", "!", "1", "\xff", "<s>"};
  for (uint32_t round = 0; round < 90; round++) {
    bpe_builder *b = unit_builder(patterns[round % 9]);
    bpe_builder_grow(b, '\n', ' ', 256);
    bpe_builder_grow(b, 'a', 'A', 257);
    bpe_builder_grow(b, '/', '/', 258);
    bpe_builder_grow(b, 0xad, 'A', 259);
    bpe_builder_grow(b, '\n', '\n', 260);
    bpe_model *m = unit_finish(b);
    bpe_coder *c = coder_of(m);
    char text[4000];
    size_t len = 0;
    for (uint32_t n = 1 + unit_below(3); n > 0; n--) {
      const char *unit = units[unit_below(14)], *end = between[unit_below(10)];
      const size_t stop = len + 1030 + unit_below(200);
      for (; len < stop; len += strlen(unit)) memcpy(text + len, unit, strlen(unit));
      memcpy(text + len, end, strlen(end));
      len += strlen(end);
    }
    counts_hold(c, text, len);
    bpe_coder_free(c);
    bpe_model_free(m);
  }
}

/* Each allocation fails once: no leak, and the coder still works. */
static void check_memory(void) {
  static const char text[] = "abcabc abc  ab\n\nx. ab abcabcabcabc 12 ab\xc3\xa9<s>abc";
  bpe_model *m = unit_tiny("o200k");
  bpe_coder *c = coder_of(m);
  const bpe_window_options how = {.most = 4, .overlap = 2, .cut = BPE_CUT_PARAGRAPH};
  for (size_t k = 1; k < 200; k++) {
    bpe_error e = {.status = BPE_OK};
    bpe_windows *w;
    bpe_window x;
    size_t start, stop;
    unit_fail(k, false);
    bpe_status st = bpe_windows_new(c, text, sizeof text - 1, NULL, &how, &e, &w);
    while (st == BPE_OK) st = bpe_windows_next(w, &x, &e);
    bpe_windows_free(w);
    if (st == BPE_DONE)
      st = bpe_truncate(c, text, sizeof text - 1, NULL, 5, true, &e, &start, &stop);
    const bool refused = unit_memory.refused > 0;
    unit_fail(0, false);
    if (!CHECK(refused ? st == BPE_NOMEM : st == BPE_OK)) break;
    if (!refused) break;
  }
  bpe_coder_free(c);
  bpe_model_free(m);
}

static int stop_now(void *ctx) {
  return ++*(int *)ctx > 2;
}

static void check_stop(void) {
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = coder_of(m);
  char *text = malloc(1 << 20);
  int asked = 0;
  const bpe_walk_options o = {.stop = stop_now, .stop_ctx = &asked};
  size_t start, stop;
  for (size_t i = 0; text != NULL && i < 1 << 20; i++) text[i] = i % 7 == 0 ? ' ' : 'a';
  CHECK_EQ_INT(bpe_truncate(c, text, 1 << 20, &o, 1 << 19, true, NULL, &start, &stop), BPE_STOPPED);
  free(text);
  bpe_coder_free(c);
  bpe_model_free(m);
}

int main(void) {
  check_windows();
  check_specials();
  check_no_byte();
  check_regex();
  check_natural();
  check_changed();
  check_long();
  check_long_scans();
  check_altered_rests();
  check_altered_ends();
  check_far_sentences();
  check_other_ends();
  check_runs();
  check_memory();
  check_stop();
  return unit_summary();
}
