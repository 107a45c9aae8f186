/* fuzz_regex.c - any pattern on any text: refused, given up, or a tiling that repeats, and where the
** slow twin understands the pattern, the tiling that it finds.
**
** Input: the pattern's length, a bit for splitting only, one that says whether the bytes of the
** pattern are it or choose parts of one that the twin understands, the pattern, then the text.
** Run it in the project's folder: the twin reads tests/vectors.
*/
#include "../prop_subject.h"
#include "fuzz.h"

enum { MOST_PIECES = 1024, MOST_TEXT = 1000, MOST_PATTERN = 512, TWIN_TEXT = 40, MOST_REPEATS = 6 };

static bpe_coder *coder(void) {
  static bpe_coder *c;
  if (c != NULL) return c;
  bpe_model *m;
  bpe_builder *b = bpe_builder_new(&fuzz_alloc);
  for (uint32_t i = 0; i < 256; i++) {
    const uint8_t byte = (uint8_t)i;
    bpe_builder_token(b, i, BPE_TOKEN, &byte, 1);
  }
  bpe_builder_grow(b, 'a', 'b', 256);
  bpe_builder_pattern(b, "none", 4, false);
  REQUIRE(bpe_builder_finish(b, NULL, &m) == BPE_OK);
  REQUIRE(bpe_coder_new(m, 16, NULL, &c) == BPE_OK);
  return c;
}

/* Ends of the pieces, and how many; the status that ended the walk. */
static bpe_status split(const bpe_walk_options *o, const input *text, size_t *stops, size_t *n) {
  bpe_walk *w;
  bpe_piece p;
  bpe_error e = {.status = BPE_OK};
  size_t at = 0;
  *n = 0;
  REQUIRE(bpe_walk_new(coder(), NULL, &w) == BPE_OK);
  bpe_status st = bpe_walk_start(w, text->at, text->left, o, &e);
  while (st == BPE_OK && (st = bpe_walk_next(w, &p, &e)) == BPE_OK) {
    REQUIRE(p.start == at && p.stop > at && p.stop <= text->left);
    at = p.stop;
    if (*n < MOST_PIECES) stops[(*n)++] = at;
  }
  fuzz_check_error(st, &e);
  REQUIRE(st == BPE_DONE ? at == text->left : st == BPE_REGEXLIMIT);
  bpe_walk_free(w);
  return st;
}

/* A piece of well-formed text is not cut inside a character. */
static void check_edges(const input *text, const size_t *stops, size_t n) {
  if (!bpe_utf8_valid(text->at, text->left)) return;
  for (size_t i = 0, at = 0; i < n; at = stops[i++])
    REQUIRE(bpe_utf8_valid(text->at + at, stops[i] - at));
}

/* A pattern of parts that the twin understands; its length. */
static size_t make_pattern(const uint8_t *bytes, size_t len, char *out, size_t room) {
  static const char *const atoms[] = {"a",         "b",        "\\p{L}",
                                      "\\p{N}",    "\\s",      "\\S",
                                      "[ab]",      "[^a]",     "[^\\s\\p{L}\\p{N}]",
                                      "\\p{Lu}",   "\\p{Ll}",  "[\\r\\n]",
                                      "'",         " ",        "(?:ab|a)",
                                      "(?i:st|k)", "\\P{L}",   "[a-z0-9]",
                                      "\\p{M}",    "\xc3\xa9", "[^\\p{P}\\p{S}]",
                                      "\\."};
  static const char *const repeats[] = {"",      "",     "",   "?",  "*",  "+",
                                        "{1,3}", "{2,}", "++", "*+", "?+", "{2}"};
  static const char *const ends[] = {"|", "|", "(?!\\S)", "$", "(?!a)", "(?!\\p{N})|"};
  size_t n = 0;
  for (size_t i = 0; i < len && n + 40 < room; i++) {
    const unsigned x = bytes[i];
    if (x >= 200) {
      n += (size_t)snprintf(out + n, room - n, "%s", ends[x % (sizeof ends / sizeof *ends)]);
      continue;
    }
    const unsigned again = i + 1 < len ? bytes[++i] % (sizeof repeats / sizeof *repeats) : 0;
    n += (size_t)snprintf(out + n, room - n, "%s%s", atoms[x % (sizeof atoms / sizeof *atoms)],
                          repeats[again]);
  }
  return n;
}

/* The twin tries everything: patterns with few repetitions, none of a group, and short texts. */
static bool is_simple(const char *regex, size_t len) {
  unsigned repeats = 0;
  for (size_t i = 0; i < len; i++) {
    if (regex[i] == 0 || regex[i] == '\n') return false; /* lines are steps to the twin */
    /* What a word or a digit is depends on PCRE2's version, and the twin goes by a later Unicode. */
    if (regex[i] == '\\' && i + 1 < len && strchr("wWdDbB", regex[i + 1]) != NULL) return false;
    if (strchr("*+{", regex[i]) == NULL) continue;
    if (i > 0 && regex[i - 1] == ')') return false;
    repeats++;
  }
  return repeats <= MOST_REPEATS && bpe_utf8_valid(regex, len);
}

/* Where the twin understands the pattern, the pieces are its pieces. */
static void check_twin(const char *regex, size_t len, input text, const size_t *stops, size_t n) {
  static prop_world world;
  static bool (*avoid)(uint32_t cp);
  static oracle_list lengths;
  char pattern[MOST_PATTERN + 1];
  const char *error;
  size_t at, end = 0;
  if (avoid == NULL)
    REQUIRE(
        prop_world_open(&world, "data/encodings", "tests/vectors/unicode-classes.json", false) &&
        prop_world_avoid(&world, &avoid));
  memcpy(pattern, regex, len);
  pattern[len] = 0;
  const bool caseless = strstr(pattern, "(?i") != NULL;
  for (size_t i = 0, step; i < text.left; i += step) {
    uint32_t cp;
    step = oracle_utf8(text.at + i, text.left - i, &cp);
    /* Case beyond ASCII is PCRE2's business. */
    if (step != 0 && (avoid(cp) || (caseless && cp >= 0x80))) return;
    if (step == 0) step = 1;
  }
  oracle_regex *twin = oracle_regex_try(world.classes, pattern, &error, &at);
  if (twin == NULL) return;
  lengths.n = 0;
  oracle_split(twin, text.at, text.left, &lengths);
  REQUIRE(lengths.n == n + sabotage());
  for (size_t i = 0; i < n; i++) REQUIRE(stops[i] == (end += lengths.at[i]));
  oracle_regex_free(twin);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static size_t stops[2][MOST_PIECES];
  char made[MOST_PATTERN];
  input in = {data, size};
  size_t len, n[2];
  const unsigned most = take(&in, 64), how = take(&in, 4);
  const char *regex = (const char *)take_bytes(&in, most, &len);
  if (how >= 2) {
    len = make_pattern((const uint8_t *)regex, len, made, sizeof made);
    regex = made;
  }
  if (in.left > MOST_TEXT) in.left = MOST_TEXT;
  (void)coder();
  const size_t blocks = fuzz_blocks;
  bpe_pattern *p;
  bpe_error e = {.status = BPE_OK};
  const bpe_status st = bpe_pattern_new(&fuzz_alloc, len == 0 ? "" : regex, len, true, &e, &p);
  fuzz_check_error(st, &e);
  REQUIRE((st == BPE_OK) == (p != NULL));
  if (p != NULL) {
    const bpe_walk_options o = {.pattern = p, .split_only = how & 1};
    const bpe_status first = split(&o, &in, stops[0], &n[0]);
    REQUIRE(split(&o, &in, stops[1], &n[1]) == first && n[0] == n[1]);
    REQUIRE(memcmp(stops[0], stops[1], n[0] * sizeof **stops) == 0);
    if (first == BPE_DONE) check_edges(&in, stops[0], n[0]);
    if (first == BPE_DONE && in.left <= TWIN_TEXT && is_simple(regex, len))
      check_twin(regex, len, in, stops[0], n[0]);
    bpe_pattern_free(p);
  } else {
    REQUIRE(st == BPE_BADREGEX && e.offset <= len);
  }
  REQUIRE(fuzz_blocks <= blocks + 3); /* the coder's scratch, made once */
  return 0;
}
