/* unit_scan.c - the hand-written splitters, one published rule at a time.
**
** A row is a pattern and a text with a bar wherever a piece ends; the expected bars are those of
** the published regexes. (Texts have no bar of their own; the reference vectors have.)
*/
#include "../src/scan.h"

#include "unit.h"

static const struct {
  const char *pattern, *pieces;
} rows[] = {
  /* Contractions: case-sensitive only in gpt2, a suffix of the word in o200k, absent in tekken. */
  {"gpt2", "I|'ll| don|'t| we|'ve| it|'s| he|'d| I|'m| you|'re"},
  {"gpt2", "I|'|LL| it|'|S"},
  {"gpt2", "a|'t|x|'|lx|'|l"},
  {"gpt2", "'t|x"},
  {"cl100k", "I|'LL| it|'S| we|'vE| he|'\xc5\xbf|x"},
  {"cl100k", "'t|'t|x"},
  {"llama3", "I|'LL| can|'t"},
  {"qwen2", "I|'LL| can|'t"},
  {"o200k", "I'LL| it's| he'\xc5\xbf|x| '|tx"},
  {"o200k", "'s| '|s"},
  {"tekken", "I|'LL| can|'t"},
  /* Words, and the one character before them that joins. */
  {"gpt2", "hello| world| | two|\t|Tab|(|x"},
  {"cl100k", "hello| world| | two|\tTab|(x|\n|x|.| y"},
  {"o200k", "hello| World|Foo|Bar| HTTPServerx|(X|\n|y"},
  {"o200k", "camel|Case|ABCdef|ABC"},
  {"tekken", "camel|Case|ABCdef|ABC"},
  {"o200k", "A\xcc\x81" "B\xcc\x81" "c"},
  {"o200k", "\xe4\xb8\xad\xe6\x96\x87" "A\xe4\xb8\xad" "Bc"},
  {"o200k", "\xe4\xb8\xad\xe6\x96\x87" "abc|Def"},
  {"o200k", ".\xcc\x81x\xcc\x81|X"},
  /* Numbers. */
  {"gpt2", "a|12345| 678|b"},
  {"cl100k", "a|123|45| |678|9|b"},
  {"llama3", "123|45| |6"},
  {"qwen2", "a|1|2|3| |4|b"},
  {"o200k", "123|456|7|.|8"},
  {"tekken", "1|2|3"},
  {"cl100k", "\xc2\xb2\xd9\xa3\xe2\x85\xa7|1"},
  /* The rest, with the newlines that join it. */
  {"gpt2", "a|!!|\n|\n|b| ?."},
  {"cl100k", "a|!!\n\n|b| ?.\r\n|c"},
  {"o200k", "a|!!\n//|b| /|x"},
  {"o200k", "a|/\n/"},
  {"tekken", "!//"},
  /* White space. */
  {"gpt2", "  | a| |\t|b|   "},
  {"gpt2", "\n\n|\n|a"},
  {"cl100k", "  \n|a|  \n\n|  | b| \t "},
  {"cl100k", " \n \n| | x"},
  {"o200k", "\xc2\xa0\xe3\x80\x80| x"},
  {"o200k", " \r\n|  "},
  /* DeepSeek's runs of ideographs and kana are cut once more: U+30FB and U+30A0 are punctuation,
  ** U+309C is a symbol, U+3099 a mark, and U+3040 nothing at all. */
  {"deepseek3", "\u30b5\u30fc\u30d0\u30fc|\u30fb|\u30eb\u30fc\u30e0"},
  {"deepseek3", "\u3075|\u309c\u30fb\u30a0|\n|\u304b\u3099|\u30fb|!\n|x"},
  {"deepseek3", "\u4e2d|\u3040\u3040|\u3040\u4e2d| \u9fa6|\u9fa5|1|\u3042"},
  /* Two names of our own. */
  {"whitespace", " \t\xc2\xa0|a,b\xe2\x80\x8b!|\n|c"},
  {"words", "a_1\xcc\x81\xc2\xb2\xe4\xb8\xad|,| |(|b|)| \n"},
};

static bool known(const char *name) {
  return scan_find(name, strlen(name)) != NULL;
}

static void check_row(size_t k) {
  const scan_rules *r = scan_find(rows[k].pattern, strlen(rows[k].pattern));
  char text[200], got[400];
  size_t len = 0, n = 0;
  for (const char *p = rows[k].pieces; *p; p++)
    if (*p != '|') text[len++] = *p;
  for (size_t at = 0; at < len;) {
    const size_t piece = scan_piece(r, (const uint8_t *)text + at, len - at);
    if (!CHECK(piece > 0 && piece <= len - at)) return;
    if (at > 0) got[n++] = '|';
    memcpy(got + n, text + at, piece);
    n += piece;
    at += piece;
  }
  if (!CHECK_BYTES(got, n, rows[k].pieces, strlen(rows[k].pieces)))
    printf("  %s: %.*s, expected %s\n", rows[k].pattern, (int)n, got, rows[k].pieces);
}

static void check_names(void) {
  static const char *const names[] = {"gpt2", "cl100k", "o200k", "llama3", "qwen2", "tekken",
                                      "deepseek3", "whitespace", "words"};
  for (int i = 0; i < 9; i++) {
    CHECK(known(names[i]));
    CHECK(strcmp(scan_name(i), names[i]) == 0);
  }
  CHECK(scan_name(9) == NULL && scan_name(-1) == NULL);
  CHECK(!known("") && !known("gpt") && !known("gpt22") && !known("GPT2") && !known("none"));
  CHECK(scan_find("gpt2x", 4) != NULL);
  CHECK(scan_find("gpt2\0", 5) == NULL);
}

/* Whatever the text, pieces are not empty, do not pass its end and end between characters. */
static void check_tiling(void) {
  static const char *const parts[] = {"a", "Z", "\xc7\x85", "\xca\xb0", "\xe4\xb8\xad", "\xcc\x81",
                                      "1", "\xd9\xa3", " ", "\n", "\r", "\t", "\xc2\x85",
                                      "\xe2\x80\xa8", "\u30fb", "\u3040", "'", "s", "ll", "\xc5\xbf", "/", "!",
                                      "\xf0\x9f\x98\x80", "\xf0\x90\x90\x80", "\x01", "_"};
  enum { N_PARTS = sizeof parts / sizeof *parts };
  for (int round = 0; round < 20000; round++) {
    const char *name = scan_name((int)unit_below(9));
    const scan_rules *r = scan_find(name, strlen(name));
    char text[80] = "";
    for (uint32_t n = 1 + unit_below(12); n > 0; n--) strcat(text, parts[unit_below(N_PARTS)]);
    const size_t len = strlen(text);
    size_t at = 0, piece;
    for (; at < len; at += piece) {
      piece = scan_piece(r, (const uint8_t *)text + at, len - at);
      if (piece == 0 || piece > len - at || !bpe_utf8_valid(text + at, piece)) break;
    }
    if (at != len && !CHECK_EQ_INT(at, len)) printf("  %s: %s\n", name, text);
  }
}

/* A run of one class is one piece however long, except where digits are counted. */
static void check_long_runs(void) {
  enum { LEN = 100000 };
  char *text = malloc(LEN + 1);
  if (text == NULL) abort();
  for (int i = 0; scan_name(i) != NULL; i++) {
    const scan_rules *r = scan_find(scan_name(i), strlen(scan_name(i)));
    for (const char *c = "aA!\n "; *c; c++) {
      memset(text, *c, LEN);
      CHECK_EQ_INT(scan_piece(r, (const uint8_t *)text, LEN), LEN);
      CHECK_EQ_INT(scan_piece(r, (const uint8_t *)text, 1), 1);
    }
    memset(text, ' ', LEN); /* the last blank belongs to the word */
    text[LEN] = 'x';
    const char *name = scan_name(i);
    const bool ours = strcmp(name, "whitespace") == 0 || strcmp(name, "words") == 0;
    CHECK_EQ_INT(scan_piece(r, (const uint8_t *)text, LEN + 1), ours ? LEN : LEN - 1);
    memset(text, '7', LEN);
    const bool single = strcmp(name, "qwen2") == 0 || strcmp(name, "tekken") == 0;
    CHECK_EQ_INT(scan_piece(r, (const uint8_t *)text, LEN),
                 ours || strcmp(name, "gpt2") == 0 ? LEN : single ? 1 : 3);
  }
  free(text);
}

static const scan_rules *some_scanner(void) {
  const char *const name = scan_name((int)unit_below(9));
  switch (unit_below(12)) {
  case 0: return scan_find_regex("\\p{N}", 5);
  case 1: return scan_find_regex("\\p{N}+", 6);
  default: return scan_find(name, strlen(name));
  }
}

/* Places inside a piece, wherever that begins: where it is said to end there too, it does. Texts are
** of a few kinds of characters each, mostly runs; capitals behind letters without case, newlines
** between slashes, marks among others, all that one of the two may read otherwise. */
static void check_same_ends(void) {
  static const char *const parts[] = {
      "a",      "Z",      "\u4e2d", "\u0e01", "\u0301", "1",  " ",      "\n", "\r", "\t",
      "\u3000", "\u30fb", "\u3042", "\u3040", "'",      "s",  "'s",     "ll", "R",  "\u017f",
      "/",      "!",      "+",      "\u00e9", "\u01c5", "\x01", "\u3002", "_",  "re", "\u00b2"};
  enum { N_PARTS = sizeof parts / sizeof *parts };
  pace nobody = {.stop = NULL};
  size_t said = 0;
  for (int round = 0; round < 100000; round++) {
    const scan_rules *r = some_scanner();
    const char *few[4];
    const uint32_t n_few = 1 + unit_below(4);
    char text[200];
    size_t len = 0;
    for (uint32_t i = 0; i < n_few; i++) few[i] = parts[unit_below(N_PARTS)];
    while (len < 24) {
      const char *part = few[unit_below(n_few)];
      for (uint32_t n = unit_below(4) == 0 ? 1 + unit_below(8) : 1; n > 0; n--) {
        memcpy(text + len, part, strlen(part));
        len += strlen(part);
      }
    }
    const uint8_t *s = (const uint8_t *)text;
    size_t start = unit_below(12);
    while ((s[start] & 0xc0) == 0x80) start++;
    const scan_found f = scan_long(s, start, start + scan_piece(r, s + start, len - start), &nobody);
    for (size_t at = f.start + 1; at < f.stop; at++) {
      if ((s[at] & 0xc0) == 0x80 || !scan_same_end(r, s, &f, at, len)) continue;
      said++;
      if (CHECK(at + scan_piece(r, s + at, len - at) == f.stop)) continue;
      printf("  %zu to %zu, from %zu: %.*s\n", f.start, f.stop, at, (int)len, text);
      return;
    }
  }
  CHECK(said > 200000);
}

/* What makes pieces long does not make them be gone through again: of the places in a run, all but
** a few at its ends are said to end where it does, or are where a long run of another kind begins,
** in which they are. */
static void check_long_same_ends(void) {
  static const struct {
    const char *patterns, *before, *run, *behind;
  } runs[] = {
      {"gpt2 cl100k llama3 qwen2 o200k deepseek3 whitespace words", " ", "xX", "1"},
      {"gpt2 cl100k llama3 qwen2 o200k deepseek3 whitespace words", "", "\u0e01", "A"},
      {"o200k tekken", "a", "\u0e01\u0e34", "A1"},
      {"o200k tekken", "A", "\u0e01", "AbA"},
      {"o200k", "", "a", "'sA"},
      {"o200k tekken", "a", "\u0e01", "AAA1"},
      {"deepseek3 whitespace words", "", "\u4e2d\u3042", "a"},
      {"deepseek3", "!", "abc", "\u00e9"},
      {"gpt2 cl100k llama3 qwen2 o200k tekken deepseek3 whitespace words", " ", "!.", " x"},
      {"gpt2 cl100k llama3 qwen2 o200k tekken whitespace", "", "+\u3002", "\n\n//!x"},
      {"cl100k llama3 qwen2 o200k tekken deepseek3 whitespace", "!", "\n", " \n x"},
      {"cl100k llama3 qwen2 o200k tekken deepseek3 whitespace", "!", "\n", "  x"},
      {"o200k tekken", "!", "\n", "/"},
      {"o200k tekken", "", "/", "1"},
      {"o200k tekken", "!\n", "/", "!!"},
      {"o200k tekken", "!\n", "/", "\n!"},
      {"cl100k qwen2 o200k tekken gpt2 deepseek3 whitespace words", "a", " \t\u3000", "  b"},
      {"cl100k qwen2 o200k tekken gpt2 deepseek3 whitespace words", "", " \n", " "},
      {"gpt2 cl100k llama3 qwen2", "!", "\u0301", "a"},
      {"gpt2 words whitespace", "", "12", "a"},
      {"deepseek3 whitespace words", "", "\x01", "a"},
  };
  pace nobody = {.stop = NULL};
  for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
    char text[1000] = "", name[20];
    strcat(text, runs[k].before);
    while (strlen(text) < 900) strcat(text, runs[k].run);
    strcat(text, runs[k].behind);
    const uint8_t *s = (const uint8_t *)text;
    const size_t len = strlen(text);
    for (const char *p = runs[k].patterns; sscanf(p, "%19s", name) == 1;) {
      const scan_rules *r = scan_find(name, strlen(name));
      scan_found f = {0}, inner = {0};
      size_t gone_through = 0;
      for (size_t at = 0; at < len; at++) {
        if ((s[at] & 0xc0) == 0x80) continue;
        if (at > inner.start && at < inner.stop && scan_same_end(r, s, &inner, at, len)) continue;
        if (at > f.start && at < f.stop && scan_same_end(r, s, &f, at, len)) continue;
        const size_t n = scan_piece(r, s + at, len - at);
        gone_through += n;
        if (n <= 32) continue;
        const scan_found x = scan_long(s, at, at + n, &nobody);
        if (at > f.start && at + n < f.stop) inner = x;
        else f = x;
      }
      if (!CHECK(gone_through < 4 * len)) printf("  run %zu, %s: %zu\n", k, name, gone_through);
      p += strspn(p, " ");
      p += strcspn(p, " ");
    }
  }
}

int main(void) {
  check_names();
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) check_row(k);
  check_tiling();
  check_long_runs();
  check_same_ends();
  check_long_same_ends();
  return unit_summary();
}
