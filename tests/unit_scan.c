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

int main(void) {
  check_names();
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) check_row(k);
  check_tiling();
  check_long_runs();
  return unit_summary();
}
