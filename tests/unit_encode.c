/* unit_encode.c - the walk: pieces, specials, wrapping, the table of pieces, errors, stopping. */
#include "unit.h"

enum { KIB64 = 1 << 16 };

static bpe_coder *coder_of(const bpe_model *m, size_t slots) {
  bpe_coder *c = NULL;
  if (m != NULL) CHECK_EQ_INT(bpe_coder_new(m, slots, NULL, &c), BPE_OK);
  return c;
}

static bpe_model *builtin(const char *name) {
  bpe_model *m = NULL;
  CHECK_EQ_INT(bpe_builtin_load(&unit_alloc, bpe_builtin_find(name, strlen(name)), NULL, &m),
               BPE_OK);
  return m;
}

/* The text encodes to this JSON; counting, packing and walking agree with it. */
static void encodes(bpe_coder *c, const char *text, size_t len, const bpe_walk_options *o,
                    const char *expected) {
  bpe_buffer json, packed;
  bpe_buffer_init(&json, &unit_alloc, 0);
  bpe_buffer_init(&packed, &unit_alloc, 0);
  bpe_error e = {.status = BPE_OK};
  uint64_t n = 99;
  CHECK_EQ_INT(bpe_encode_json(c, text, len, o, &e, &json), BPE_OK);
  if (!CHECK_BYTES(json.bytes, json.len, expected, strlen(expected)))
    printf("  %.*s, expected %s\n", (int)json.len, (const char *)json.bytes, expected);
  CHECK_EQ_INT(bpe_encode_packed(c, text, len, 32, o, &e, &packed), BPE_OK);
  CHECK_EQ_INT(bpe_count(c, text, len, o, &e, &n), BPE_OK);
  CHECK_EQ_INT(packed.len, 4 * n);
  bpe_buffer again;
  bpe_buffer_init(&again, &unit_alloc, 0);
  for (size_t i = 0; i < n; i++) {
    const uint8_t *p = packed.bytes + 4 * i;
    bpe_buffer_append(&again, i == 0 ? "[" : ",", 1);
    bpe_buffer_append_decimal(&again, p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                                          (uint32_t)p[3] << 24);
  }
  bpe_buffer_append(&again, n == 0 ? "[]" : "]", n == 0 ? 2 : 1);
  CHECK_BYTES(again.bytes, again.len, json.bytes, json.len);
  bpe_buffer_clear(&json);
  bpe_buffer_clear(&packed);
  bpe_buffer_clear(&again);
}

/* Encoding and counting fail alike, with this error. */
static void fails(bpe_coder *c, const char *text, size_t len, const bpe_walk_options *o,
                  bpe_status status, uint64_t offset, const char *message) {
  for (int how = 0; how < 2; how++) {
    bpe_error e = {.status = BPE_OK};
    bpe_buffer b;
    bpe_buffer_init(&b, &unit_alloc, 0);
    uint64_t n = 99;
    CHECK_EQ_INT(how == 0 ? bpe_count(c, text, len, o, &e, &n)
                          : bpe_encode_json(c, text, len, o, &e, &b), status);
    CHECK(unit_says(&e, status, offset, message));
    CHECK(how == 1 || n == 0);
    bpe_buffer_clear(&b);
  }
}

static void check_builtins(void) {
  static const char *const rows[][2] = {
      {"gpt2", "[31373,995]"},       {"r50k_base", "[31373,995]"}, {"p50k_base", "[31373,995]"},
      {"p50k_edit", "[31373,995]"},  {"cl100k_base", "[15339,1917]"},
      {"o200k_base", "[24912,2375]"}, {"o200k_harmony", "[24912,2375]"}};
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    bpe_model *m = builtin(rows[k][0]);
    bpe_coder *c = coder_of(m, 0);
    if (c == NULL) continue;
    CHECK(bpe_coder_model(c) == m);
    encodes(c, "", 0, NULL, "[]");
    encodes(c, NULL, 0, NULL, "[]");
    encodes(c, "hello world", 11, NULL, rows[k][1]);
    encodes(c, "hello world", 11, NULL, rows[k][1]);
    bpe_coder_free(c);
    bpe_model_free(m);
  }
}

static void check_tiny(void) {
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = coder_of(m, 0);
  if (c == NULL) return;
  encodes(c, "abc abc", 7, NULL, "[258,32,258]");
  encodes(c, "a\0b", 3, NULL, "[97,0,98]");
  encodes(c, "ab\xff" "c", 4, NULL, "[256,255,99]");
  encodes(c, "<s>abc</s>", 10, NULL, "[60,115,62,258,60,47,115,62]");
  const bpe_walk_options split_only = {.split_only = true};
  encodes(c, "abc abc", 7, &split_only, "[]"); /* its pieces have no ids */
  encodes(c, "cabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc", 55, NULL,
          "[99,258,258,258,258,258,258,258,258,258,258,258,258,258,258,258,258,258,258]");
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* Ids about 2^24, from where on a table of pieces that keeps three bytes of each cannot have them,
** alone, beside others and at the end of a batch. */
static void check_large_ids(void) {
  static const char text[] = "ab cd ef abcdef\nabab cdcd efef ab cd ef";
  static const char expected[] =
      "[16777214,32,16777215,32,16777216,32,16777214,16777215,16777216,10,16777214,16777214,32,"
      "16777215,16777215,32,16777216,16777216,32,16777214,32,16777215,32,16777216]";
  bpe_builder *b = unit_builder("whitespace");
  bpe_builder_grow(b, 'a', 'b', 0xfffffe);
  bpe_builder_grow(b, 'c', 'd', 0xffffff);
  bpe_builder_grow(b, 'e', 'f', 0x1000000);
  bpe_model *m = unit_finish(b);
  bpe_coder *c = coder_of(m, 0);
  for (int again = 0; c != NULL && again < 3; again++)
    encodes(c, text, sizeof text - 1, NULL, expected);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* Pieces too long for the table of pieces, several in one batch: each is counted, each time. */
static void check_long_pieces(void) {
  enum { PIECES = 7, LONG = 300 };
  char text[PIECES * (LONG + PIECES + 1)];
  size_t len = 0;
  for (size_t i = 0; i < PIECES; i++) {
    memset(text + len, (int)('d' + i), LONG + i);
    len += LONG + i;
    text[len++] = '\n';
  }
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = coder_of(m, 0);
  for (int again = 0; c != NULL && again < 2; again++) {
    uint64_t n = 0;
    bpe_buffer packed;
    bpe_buffer_init(&packed, &unit_alloc, 0);
    CHECK_EQ_INT(bpe_count(c, text, len, NULL, NULL, &n), BPE_OK);
    CHECK_EQ_INT(n, len);
    CHECK_EQ_INT(bpe_encode_packed(c, text, len, 16, NULL, NULL, &packed), BPE_OK);
    CHECK_EQ_INT(packed.len, 2 * len);
    bpe_buffer_clear(&packed);
  }
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* A token that no merges reach is met only where pieces that are tokens are taken whole. */
static void check_out_of_reach(void) {
  static const char text[] = "ab cd abcdefghijklmnopq\ncd ab abcdefghijklmnopq";
  for (int whole = 0; whole < 2; whole++) {
    bpe_builder *b = unit_builder("whitespace");
    bpe_builder_grow(b, 'c', 'd', 256);
    bpe_builder_token(b, 300, BPE_TOKEN, "ab", 2);
    bpe_builder_token(b, 301, BPE_TOKEN, "abcdefghijklmnopq", 17);
    if (whole) bpe_builder_whole(b);
    bpe_model *m = unit_finish(b);
    bpe_coder *c = coder_of(m, 0);
    for (int again = 0; c != NULL && again < 2; again++)
      encodes(c, text, sizeof text - 1, NULL,
              whole ? "[300,32,256,32,301,10,256,32,300,32,301]"
                    : "[97,98,32,256,32,97,98,256,101,102,103,104,105,106,107,108,109,110,111,112,"
                      "113,10,256,32,97,98,32,97,98,256,101,102,103,104,105,106,107,108,109,110,"
                      "111,112,113]");
    bpe_coder_free(c);
    bpe_model_free(m);
  }
}

/* Whichever request for memory fails, encoding says so or gives the same ids, and the coder can be
** used again. */
static void check_memory(void) {
  enum { LEN = 60000 };
  char *text = malloc(LEN);
  if (text == NULL) return;
  for (size_t i = 0; i < LEN; i++) text[i] = (char)(i % 9 == 0 ? ' ' : 'a' + (int)unit_below(5));
  bpe_model *m = unit_tiny("gpt2");
  bpe_buffer whole, packed;
  bpe_buffer_init(&whole, &unit_alloc, 0);
  bpe_coder *c = coder_of(m, 0);
  CHECK_EQ_INT(bpe_encode_packed(c, text, LEN, 32, NULL, NULL, &whole), BPE_OK);
  for (size_t k = 1; k < 100; k++) {
    bpe_coder *fresh = coder_of(m, 0);
    unit_fail(k, false);
    bpe_buffer_init(&packed, &unit_alloc, 0);
    const bpe_status st = bpe_encode_packed(fresh, text, LEN, 32, NULL, NULL, &packed);
    const bool refused = unit_memory.refused > 0;
    unit_fail(0, false);
    const bool same = packed.len == whole.len && memcmp(packed.bytes, whole.bytes, whole.len) == 0;
    CHECK(st == BPE_OK ? same : refused && st == BPE_NOMEM);
    bpe_buffer_clear(&packed);
    bpe_buffer_init(&packed, &unit_alloc, 0);
    CHECK(bpe_encode_packed(fresh, text, LEN, 32, NULL, NULL, &packed) == BPE_OK);
    CHECK(packed.len == whole.len && memcmp(packed.bytes, whole.bytes, whole.len) == 0);
    bpe_buffer_clear(&packed);
    bpe_coder_free(fresh);
    if (!refused && CHECK(k > 2)) break;
  }
  bpe_buffer_clear(&whole);
  bpe_coder_free(c);
  bpe_model_free(m);
  free(text);
}

static void check_document(void) {
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = coder_of(m, 0);
  if (c == NULL) return;
  const bpe_walk_options o = {.document = true};
  encodes(c, "abc", 3, &o, "[259,258,260]");
  encodes(c, "", 0, &o, "[259,260]");
  bpe_walk *w;
  bpe_piece p;
  CHECK_EQ_INT(bpe_walk_new(c, NULL, &w), BPE_OK);
  CHECK_EQ_INT(bpe_walk_next(w, &p, NULL), BPE_DONE); /* nothing begun */
  CHECK_EQ_INT(bpe_walk_start(w, "ab c", 4, &o, NULL), BPE_OK);
  static const struct { size_t start, stop; uint32_t id; bool special; } expected[] = {
      {0, 0, 259, true}, {0, 2, 256, false}, {2, 4, 32, false}, {4, 4, 260, true}};
  for (size_t i = 0; i < 4; i++) {
    CHECK_EQ_INT(bpe_walk_next(w, &p, NULL), BPE_OK);
    CHECK(p.start == expected[i].start && p.stop == expected[i].stop);
    CHECK(p.ids[0] == expected[i].id && p.special == expected[i].special);
    CHECK_EQ_INT(p.n_ids, i == 2 ? 2 : 1);
  }
  CHECK_EQ_INT(bpe_walk_next(w, &p, NULL), BPE_DONE);
  CHECK_EQ_INT(bpe_walk_next(w, &p, NULL), BPE_DONE);
  CHECK(p.ids == NULL && p.n_ids == 0);
  bpe_walk_free(w);
  bpe_walk_free(NULL);
  bpe_coder_free(c);
  bpe_model_free(m);
  bpe_builder *b = unit_builder("gpt2");
  unit_special(b, 256, "<e>");
  bpe_builder_eos(b, 256);
  bpe_builder_eos(b, 'x');
  m = unit_finish(b);
  c = coder_of(m, 0);
  if (c != NULL) encodes(c, "ab", 2, &o, "[97,98,256,120]");
  bpe_coder_free(c);
  bpe_model_free(m);
  m = unit_finish(unit_builder("gpt2"));
  c = coder_of(m, 0);
  if (c != NULL) fails(c, "ab", 2, &o, BPE_MISUSE, 0, "tokenizer has no BOS or EOS tokens");
  if (c != NULL) encodes(c, "ab", 2, NULL, "[97,98]");
  bpe_coder_free(c);
  bpe_coder_free(NULL);
  bpe_model_free(m);
}

static void check_specials(void) {
  bpe_builder *b = unit_builder("cl100k");
  unit_special(b, 256, "<1>");
  unit_special(b, 257, "<1><2>");
  bpe_builder_token(b, 258, BPE_ADDED, "[+]", 3);
  bpe_builder_token(b, 259, BPE_TOKEN, "ab", 2);
  bpe_builder_merge(b, 0, 'a', 'b', 259, 0);
  bpe_model *m = unit_finish(b);
  bpe_coder *c = coder_of(m, 0);
  if (c == NULL) return;
  bpe_finder *all = NULL, *one = NULL, *none = NULL, *rest = NULL;
  const bpe_name name = {"<1>", 3};
  CHECK_EQ_INT(bpe_finder_new(m, NULL, 0, NULL, &all), BPE_OK);
  CHECK_EQ_INT(bpe_finder_new(m, &name, 1, NULL, &one), BPE_OK);
  CHECK_EQ_INT(bpe_finder_new(m, &name, 0, NULL, &none), BPE_OK);
  CHECK_EQ_INT(bpe_finder_new_forbidden(m, NULL, 0, &name, 1, NULL, &rest), BPE_OK);
  bpe_walk_options o = {.allowed = all};
  encodes(c, "a<1><2>b[+]", 11, &o, "[97,257,98,258]");
  encodes(c, "<1><1><2><1>", 12, &o, "[256,257,256]");
  encodes(c, "a<1>b", 5, &o, "[97,256,98]"); /* what stands between is not joined */
  encodes(c, "<1>ab<1", 7, &o, "[256,259,60,49]");
  o.allowed = one;
  encodes(c, "<1><2>[+]", 9, &o, "[256,60,50,62,258]");
  encodes(c, "a[+]b", 5, NULL, "[97,258,98]"); /* added tokens need no leave */
  o.allowed = none;
  encodes(c, "[+]<1>", 6, &o, "[258,60,49,62]");
  o = (bpe_walk_options){.forbidden = rest};
  encodes(c, "<1>", 3, &o, "[60,49,62]");
  fails(c, "ab<1><2>", 8, &o, BPE_BADTEXT, 2, "special token not allowed at byte 2: <1><2>");
  encodes(c, "ab", 2, &o, "[259]");
  o = (bpe_walk_options){.forbidden = all};
  fails(c, "a[+]", 4, &o, BPE_BADTEXT, 1, "special token not allowed at byte 1: [+]");
  bpe_finder_free(all);
  bpe_finder_free(one);
  bpe_finder_free(none);
  bpe_finder_free(rest);
  bpe_coder_free(c);
  bpe_model_free(m);
}

static void check_patterns(void) {
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = coder_of(m, 0);
  bpe_pattern *none, *single, *limit;
  if (c == NULL) return;
  CHECK_EQ_INT(bpe_pattern_new(&unit_alloc, "none", 4, false, NULL, &none), BPE_OK);
  CHECK_EQ_INT(bpe_pattern_new(&unit_alloc, ".", 1, true, NULL, &single), BPE_OK);
  CHECK_EQ_INT(bpe_pattern_new(&unit_alloc, "(a|aa)+(a|aa)+(a|aa)+$", 22, true, NULL, &limit),
               BPE_OK);
  bpe_walk_options o = {.pattern = single};
  encodes(c, "abc", 3, &o, "[97,98,99]");
  o.pattern = none;
  encodes(c, "abc", 3, &o, "[258]");
  encodes(c, "a\xff" "bc ab", 7, &o, "[97,255,257,32,256]");
  encodes(c, "abc", 3, NULL, "[258]");
  o.pattern = limit;
  bpe_error e = {.status = BPE_OK};
  uint64_t n = 1;
  CHECK_EQ_INT(bpe_count(c, "xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", 51, &o, &e, &n),
               BPE_REGEXLIMIT);
  CHECK_EQ_INT(n, 0);
  encodes(c, "abc", 3, NULL, "[258]"); /* the coder is as good as before */
  o = (bpe_walk_options){.split_only = true, .document = true};
  bpe_walk *w;
  bpe_piece p;
  CHECK_EQ_INT(bpe_walk_new(c, NULL, &w), BPE_OK);
  CHECK_EQ_INT(bpe_walk_start(w, "ab  c", 5, &o, NULL), BPE_OK);
  size_t at = 0, pieces = 0;
  while (bpe_walk_next(w, &p, NULL) == BPE_OK) {
    CHECK(p.start == at && (p.special || p.n_ids == 0));
    at = p.stop;
    pieces++;
  }
  CHECK(at == 5 && pieces == 5);
  bpe_walk_free(w);
  bpe_pattern_free(none);
  bpe_pattern_free(single);
  bpe_pattern_free(limit);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* A tokenizer of a, b and ab only: any other byte is an error, also the second time, when the
** piece is in the table, and in pieces of all three methods of merging. */
static void check_missing_bytes(void) {
  bpe_builder *b = bpe_builder_new(&unit_alloc);
  bpe_builder_token(b, 1, BPE_TOKEN, "a", 1);
  bpe_builder_token(b, 2, BPE_TOKEN, "b", 1);
  bpe_builder_token(b, 3, BPE_TOKEN, "ab", 2);
  bpe_builder_merge(b, 0, 1, 2, 3, 0);
  bpe_builder_pattern(b, "gpt2", 4, false);
  bpe_model *m = unit_finish(b);
  bpe_coder *c = coder_of(m, 0);
  if (c == NULL) return;
  encodes(c, "abba", 4, NULL, "[3,2,1]");
  for (int again = 0; again < 2; again++) {
    fails(c, "abba abc", 8, NULL, BPE_BADTEXT, 4, "no token for the byte at 4: 0x20");
    fails(c, "abc", 3, NULL, BPE_BADTEXT, 2, "no token for the byte at 2: 0x63");
    fails(c, "\xff", 1, NULL, BPE_BADTEXT, 0, "no token for the byte at 0: 0xff");
    fails(c, "ab\xff", 3, NULL, BPE_BADTEXT, 2, "no token for the byte at 2: 0xff");
  }
  char text[600];
  for (size_t i = 0; i < sizeof text; i++) text[i] = "ab"[i % 2];
  for (size_t at = 0; at < sizeof text; at += 29) {
    const char was = text[at];
    char message[64];
    text[at] = 'Q';
    snprintf(message, sizeof message, "no token for the byte at %zu: 0x51", at);
    fails(c, text, at + 1, NULL, BPE_BADTEXT, at, message);
    fails(c, text, sizeof text, NULL, BPE_BADTEXT, at, message);
    text[at] = was;
  }
  encodes(c, "", 0, NULL, "[]");
  bpe_coder_free(c);
  bpe_model_free(m);
}

static void check_packing(void) {
  bpe_builder *b = unit_builder("gpt2");
  bpe_builder_token(b, 65535, BPE_TOKEN, "ab", 2);
  bpe_builder_token(b, 65536, BPE_TOKEN, "cd", 2);
  bpe_builder_merge(b, 0, 'a', 'b', 65535, 0);
  bpe_builder_merge(b, 1, 'c', 'd', 65536, 0);
  bpe_model *m = unit_finish(b);
  bpe_coder *c = coder_of(m, 0);
  if (c == NULL) return;
  bpe_buffer out;
  bpe_error e = {.status = BPE_OK};
  bpe_buffer_init(&out, &unit_alloc, 0);
  CHECK_EQ_INT(bpe_encode_packed(c, "abx", 3, 16, NULL, &e, &out), BPE_OK);
  CHECK_BYTES(out.bytes, out.len, "\xff\xff\x78\0", 4);
  CHECK_EQ_INT(bpe_encode_packed(c, "cd", 2, 32, NULL, &e, &out), BPE_OK);
  CHECK_BYTES(out.bytes + 4, out.len - 4, "\0\0\1\0", 4);
  CHECK_EQ_INT(bpe_encode_packed(c, "ab acd", 6, 16, NULL, &e, &out), BPE_TOOBIG);
  CHECK(unit_says(&e, BPE_TOOBIG, 2, "id does not fit in 16 bits: 65536"));
  e = (bpe_error){.status = BPE_OK};
  CHECK_EQ_INT(bpe_encode_packed(c, "", 0, 8, NULL, &e, &out), BPE_MISUSE);
  CHECK(unit_says(&e, BPE_MISUSE, 0, "width must be 16 or 32: 8"));
  bpe_buffer_clear(&out);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* A limit that the result just fits is no failure; one byte less is. */
static void check_limits(void) {
  bpe_model *m = unit_tiny("none");
  bpe_coder *c = coder_of(m, 0);
  if (c == NULL) return;
  char text[5000];
  memset(text, 'x', sizeof text);
  for (size_t n = 0; n <= sizeof text; n = n * 3 + 1) {
    const size_t json_len = n == 0 ? 2 : 4 * n + 1;
    for (size_t less = 0; less < 2; less++) {
      bpe_buffer b;
      bpe_error e = {.status = BPE_OK};
      bpe_buffer_init(&b, &unit_alloc, json_len - less);
      CHECK_EQ_INT(bpe_encode_json(c, text, n, NULL, &e, &b), less ? BPE_TOOBIG : BPE_OK);
      CHECK_EQ_INT(e.status, less ? BPE_TOOBIG : BPE_OK);
      CHECK(b.len <= b.limit);
      bpe_buffer_clear(&b);
      if (n == 0) continue;
      bpe_buffer_init(&b, &unit_alloc, 4 * n - less);
      CHECK_EQ_INT(bpe_encode_packed(c, text, n, 32, NULL, NULL, &b), less ? BPE_TOOBIG : BPE_OK);
      bpe_buffer_clear(&b);
    }
  }
  bpe_coder_free(c);
  bpe_model_free(m);
}

static void check_table_sizes(void) {
  char text[100]; /* one long piece */
#ifdef BPE_SMALL
  enum { USUAL = 2016 };
#else
  enum { USUAL = 129024 };
#endif
  static const size_t rows[][2] = {{0, USUAL}, {1, 12}, {3000, 12}, {1 << 16, 2016}};
  bpe_model *m = unit_tiny("gpt2");
  for (size_t k = 0; m != NULL && k < 4; k++) {
    bpe_coder *c = coder_of(m, rows[k][0]);
    bpe_coder_stats s;
    if (c == NULL) continue;
    bpe_coder_stat(c, &s);
    CHECK_EQ_INT(s.piece_slots, rows[k][1]);
    CHECK(s.piece_bytes >= s.piece_slots * 16 && s.scratch_bytes == 0);
    encodes(c, "abc abc", 7, NULL, "[258,32,258]");
    uint64_t n = 0;
    memset(text, 'b', 100);
    CHECK(bpe_count(c, text, 100, NULL, NULL, &n) == BPE_OK && n == 100);
    bpe_coder_stat(c, &s);
    CHECK(s.scratch_bytes > 0);
    bpe_coder_free(c);
  }
  bpe_error e = {.status = BPE_OK};
  bpe_coder *c = (bpe_coder *)&unit_memory;
  if (m != NULL) CHECK_EQ_INT(bpe_coder_new(m, SIZE_MAX, &e, &c), BPE_NOMEM);
  CHECK(c == NULL && e.status == BPE_NOMEM);
  bpe_model_free(m);
}

/* Fills s with words that come again, some of them at the limits of what the table keeps. */
static void make_words(uint8_t *s, size_t len) {
  for (size_t at = 0; at < len;) {
    if (at > 300 && unit_below(2) == 0) { /* something from before */
      const size_t from = unit_below((uint32_t)at - 200), n = 1 + unit_below(40);
      for (size_t i = 0; i < n && at < len; i++) s[at++] = s[from + i];
    } else if (unit_below(8) == 0) {
      s[at++] = (uint8_t)unit_below(256);
    } else {
      s[at++] = ' ';
      for (uint32_t n = 1 + unit_below(18); n > 0 && at < len; n--)
        s[at++] = (uint8_t)('a' + unit_below(26) * unit_below(2));
    }
  }
}

/* However few pieces are remembered, and wherever a text ends, the ids are the same. (The text is
** in memory of exactly its size, so that a sanitizer sees any byte read behind it.) */
static void check_table(void) {
  bpe_model *m = builtin("cl100k_base");
  bpe_coder *usual = coder_of(m, 0), *tiny = coder_of(m, 2);
  if (usual == NULL || tiny == NULL) return;
  for (int round = 0; round < 300; round++) {
    const size_t len = unit_below(2000);
    uint8_t *text = malloc(len == 0 ? 1 : len);
    bpe_buffer b[3];
    if (text == NULL) abort();
    make_words(text, len);
    bpe_coder *fresh = coder_of(m, 16);
    for (int k = 0; k < 3; k++) {
      bpe_buffer_init(&b[k], &unit_alloc, 0);
      CHECK_EQ_INT(bpe_encode_packed(k == 0 ? usual : k == 1 ? tiny : fresh, text, len, 32, NULL,
                                     NULL, &b[k]), BPE_OK);
      if (k > 0) CHECK_BYTES(b[k].bytes, b[k].len, b[0].bytes, b[0].len);
    }
    for (int k = 0; k < 3; k++) bpe_buffer_clear(&b[k]);
    bpe_coder_free(fresh);
    free(text);
  }
  bpe_coder_free(usual);
  bpe_coder_free(tiny);
  bpe_model_free(m);
}

/* Tables of every size between too small for all pieces and large enough, so that some piece's ids
** give way while they stand in the batch that is being written. */
static void check_giving_way(void) {
  enum { WORDS = 150, LETTERS = 14, SIZES = 8 };
  bpe_model *m = builtin("cl100k_base");
  bpe_coder *usual = coder_of(m, 0), *small[SIZES];
  char words[WORDS][LETTERS], text[400 * LETTERS];
  for (size_t k = 0; k < SIZES; k++) small[k] = coder_of(m, (size_t)1000 << k);
  for (size_t i = 0; i < WORDS; i++)
    for (size_t k = 0; k < LETTERS; k++)
      words[i][k] = k == 0 ? ' ' : (char)('a' + unit_below(26));
  for (int round = 0; round < 40; round++) {
    bpe_buffer expected, b;
    for (size_t i = 0; i < sizeof text; i += LETTERS)
      memcpy(text + i, words[unit_below(round % 2 == 0 ? WORDS : WORDS / 3)], LETTERS);
    bpe_buffer_init(&expected, &unit_alloc, 0);
    CHECK_EQ_INT(bpe_encode_packed(usual, text, sizeof text, 32, NULL, NULL, &expected), BPE_OK);
    for (size_t k = 0; k < SIZES; k++) {
      bpe_buffer_init(&b, &unit_alloc, 0);
      CHECK_EQ_INT(bpe_encode_packed(small[k], text, sizeof text, 32, NULL, NULL, &b), BPE_OK);
      CHECK_BYTES(b.bytes, b.len, expected.bytes, expected.len);
      bpe_buffer_clear(&b);
    }
    bpe_buffer_clear(&expected);
  }
  for (size_t k = 0; k < SIZES; k++) bpe_coder_free(small[k]);
  bpe_coder_free(usual);
  bpe_model_free(m);
}

/* A piece's key is its bytes, its length too, and never what follows it. */
static void check_keys(void) {
  bpe_model *m = unit_tiny("none");
  bpe_coder *c = coder_of(m, 2);
  if (c == NULL) return;
  encodes(c, "a", 1, NULL, "[97]");
  encodes(c, "a\0", 2, NULL, "[97,0]");
  encodes(c, "a\0\0", 3, NULL, "[97,0,0]");
  encodes(c, "\0", 1, NULL, "[0]");
  encodes(c, "\0\0", 2, NULL, "[0,0]");
  encodes(c, "a", 1, NULL, "[97]");
  encodes(c, "abcabcabcabcabc", 15, NULL, "[258,258,258,258,258]");
  encodes(c, "abcabcabcabcabcX", 15, NULL, "[258,258,258,258,258]");
  encodes(c, "abcabcabc0123456789", 9, NULL, "[258,258,258]");
  encodes(c, "abcabcabc", 9, NULL, "[258,258,258]");
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* Walks of one coder go on by turns as if each were alone. */
static void check_turns(void) {
  bpe_model *m = unit_tiny("gpt2");
  bpe_coder *c = coder_of(m, 0);
  bpe_walk *w[2];
  static const char *const texts[2] = {"abc bc c", "c ab  abcabc x"};
  static const uint32_t expected[2][10] = {{258, 32, 257, 32, 99}, {99, 32, 256, 32, 32, 258, 258,
                                                                   32, 120}};
  uint32_t got[2][10] = {{0}, {0}};
  size_t n[2] = {0, 0};
  if (c == NULL) return;
  for (int k = 0; k < 2; k++) {
    CHECK_EQ_INT(bpe_walk_new(c, NULL, &w[k]), BPE_OK);
    CHECK_EQ_INT(bpe_walk_start(w[k], texts[k], strlen(texts[k]), NULL, NULL), BPE_OK);
  }
  for (int left = 2, k = 0; left > 0; k = 1 - k) {
    bpe_piece p;
    if (n[k] == 10) continue;
    if (bpe_walk_next(w[k], &p, NULL) == BPE_OK) {
      for (size_t i = 0; i < p.n_ids && n[k] < 10; i++) got[k][n[k]++] = p.ids[i];
    } else {
      n[k] = 10;
      left--;
    }
    encodes(c, "cab", 3, NULL, "[99,256]");
  }
  for (int k = 0; k < 2; k++) {
    CHECK_BYTES(got[k], sizeof got[k], expected[k], sizeof expected[k]);
    bpe_walk_free(w[k]);
  }
  bpe_coder_free(c);
  bpe_model_free(m);
}

typedef struct patience {
  size_t asked, stop_at; /* 0: never */
} patience;

static int lose_patience(void *ctx) {
  patience *p = ctx;
  p->asked++;
  return p->stop_at != 0 && p->asked >= p->stop_at;
}

/* Every 64 KiB of text there is a question, whatever the text is like; and saying stop once is
** enough, after which the walk is over and the coder as good as before. */
static void check_stopping(void) {
  enum { LEN = 1 << 20 };
  static const char *const units[] = {"ab c ", "a", "\xff", "\n", "abc", "<1>", "\xe4\xb8\xad"};
  bpe_builder *b = unit_builder("cl100k");
  unit_special(b, 256, "<1>");
  bpe_model *m = unit_finish(b);
  bpe_coder *c = coder_of(m, 0);
  bpe_finder *all = NULL;
  char *text = malloc(LEN);
  if (c == NULL || text == NULL || bpe_finder_new(m, NULL, 0, NULL, &all) != BPE_OK) return;
  for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
    const size_t n = strlen(units[k]);
    patience p = {0};
    uint64_t count;
    bpe_error e = {.status = BPE_OK};
    const bpe_walk_options o = {.allowed = k < 4 ? NULL : all, .stop = lose_patience,
                                .stop_ctx = &p};
    for (size_t i = 0; i < LEN; i++) text[i] = units[k][i % n];
    CHECK_EQ_INT(bpe_count(c, text, LEN, &o, NULL, &count), BPE_OK);
    if (!CHECK(p.asked >= LEN / KIB64 - 1)) printf("  %zu questions: %s\n", p.asked, units[k]);
    p = (patience){.stop_at = 3};
    CHECK_EQ_INT(bpe_count(c, text, LEN, &o, &e, &count), BPE_STOPPED);
    CHECK_EQ_INT(p.asked, 3);
    CHECK(e.offset <= 5 * KIB64 && strcmp(e.text, "interrupted") == 0);
    bpe_walk *w;
    bpe_piece piece;
    CHECK_EQ_INT(bpe_walk_new(c, NULL, &w), BPE_OK);
    p = (patience){.stop_at = 1};
    bpe_status st = bpe_walk_start(w, text, LEN, &o, NULL);
    while (st == BPE_OK) st = bpe_walk_next(w, &piece, NULL);
    CHECK_EQ_INT(st, BPE_STOPPED);
    CHECK_EQ_INT(bpe_walk_next(w, &piece, NULL), BPE_DONE);
    bpe_walk_free(w);
    encodes(c, "ab", 2, NULL, "[97,98]");
  }
  bpe_finder_free(all);
  free(text);
  bpe_coder_free(c);
  bpe_model_free(m);
}

int main(void) {
  check_builtins();
  check_tiny();
  check_large_ids();
  check_long_pieces();
  check_out_of_reach();
  check_memory();
  check_document();
  check_specials();
  check_patterns();
  check_missing_bytes();
  check_packing();
  check_limits();
  check_table_sizes();
  check_table();
  check_giving_way();
  check_keys();
  check_turns();
  check_stopping();
  return unit_summary();
}
