/* unit_import.c - rank files, GPT-2's two files, minbpe models and plain descriptions, read and
** refused. tokenizer.json is unit_import_hf.c's.
*/
#include "import_files.h"

#define T(s) (s), sizeof(s) - 1

static text file;

static bpe_model *from(const char *source, const char *pattern, const char *specials) {
  return import_with(source, strlen(source), NULL, pattern, specials);
}

static bpe_model *from_file(const char *pattern, const char *specials) {
  return import_with(file.at, file.len, NULL, pattern, specials);
}

#define WORDS "/\\S+|\\s+"

/* ---- .tiktoken ----------------------------------------------------------------------------- */

static void test_ranks(void) {
  ranks(&file, "YWE= 256\n"); /* M05: a run of one letter */
  check_ids(from_file(WORDS, NULL), T("aaa aaaaa aaaa"), "256,97,32,256,256,97,32,256,256", false,
            false);
  ranks(&file, "YmM= 256\nYWI= 257\n"); /* M07: lowest rank first */
  check_ids(from_file(WORDS, NULL), T("abc abab bcab"), "97,256,32,257,257,32,256,257", false,
            false);
  ranks(&file, "0LA= 256\n0JE= 257\n0LI= 258\n0LDQkQ== 259\n0LLQsg== 260\n0Ys= 261\n0Ks= 262\n"
               "0YvQqw== 263\n"); /* P09: a change of case cuts in o200k, in Cyrillic too */
  check_ids(from_file("o200k", NULL), T("аБвввыЫ ЫыБ"), "256,257,260,258,261,262,32,262,261,257",
            false, false);
  ranks(&file, "\r\n  YWI=\t256  \r\n\n"); /* blanks and blank lines */
  check_ids(from_file("none", NULL), T("ab"), "256", false, false);
}

/* "abcd" is a token that its own merges do not reach: bc is taken first, then nothing fits. */
static void test_rank_forms(void) {
  bpe_info info;
  ranks(&file, "YWI= 256\nYmM= 257\nYWJj 258\n");
  bpe_model *m = from_file("none", NULL);
  if (!CHECK(m != NULL)) return;
  bpe_model_info(m, &info);
  CHECK(!info.whole);
  CHECK_EQ_INT(info.merge_count, 3);
  const bpe_merge last = bpe_model_merge(m, 2);
  CHECK(last.left == 256 && last.right == 'c' && last.id == 258);
  check_ids(m, T("abcbc"), "258,257", false, false);

  ranks(&file, "YmM= 256\nYWI= 257\nY2Q= 258\nYWJjZA== 259\n");
  m = from_file("none", NULL);
  if (!CHECK(m != NULL)) return;
  bpe_model_info(m, &info);
  CHECK(info.whole);
  CHECK_EQ_INT(info.merge_count, 4); /* ab + cd is the one split of abcd */
  check_ids(m, T("abcd"), "259", false, true);
  check_ids(m, T("abcdx"), "97,256,100,120", false, false);
}

static void test_rank_specials(void) {
  ranks(&file, "");
  check_ids(from_file(WORDS, "{\"[a.b]*\":900,\"<|end|>\":901}"), T("[a.b]*[axb]<|end|>end"),
            "900,91,97,120,98,93,901,101,110,100", true, false); /* S13: names are literal */
  check_ids(from_file(WORDS, "[\"<|e|>\",\"<|e|><|e|>\"]"), T("x<|e|><|e|>y<|e|>"),
            "120,257,121,256", true, false);
  bpe_model *m = from_file(WORDS, "{\"<|endofprompt|>\":300,\"<|reserved_300|>\":300}"); /* S07 */
  if (CHECK(m != NULL)) {
    check_decoded(m, (const uint32_t[]){300}, 1, BPE_SPECIALS_TEXT, "<|endofprompt|>");
    check_ids(m, T("<|reserved_300|>"), "300", true, false);
  }
  ranks(&file, "YWI= 256\n");
  check_ids(from_file(WORDS, "[\"ab\"]"), T("abx"), "256,120", true, false); /* keeps its id */
  check_refused(from_file(WORDS, "{\"\":900}"), BPE_BADMODEL, "empty special token"); /* S15 */
  check_refused(from_file(WORDS, "{\"ab\":300}"), BPE_BADMODEL,
                "special token has id 256 in the vocabulary, not 300: ab");
  check_refused(from_file(WORDS, "{\"<x>\":256}"), BPE_BADMODEL, "ab = 256 and <x> = 256");
  check_refused(from_file(WORDS, "{\"<x>\":4294967296}"), BPE_MISUSE, "<x>");
  check_refused(from_file(WORDS, "{\"<x>\":-1}"), BPE_MISUSE, "<x>");
  check_refused(from_file(WORDS, "[1]"), BPE_MISUSE, "no string");
  check_refused(from_file(WORDS, "[\"<x>\",\"<x>\"]"), BPE_BADMODEL, "given twice: <x>");
  check_refused(from_file(WORDS, "[\"<x>\""), BPE_BADMODEL, "special_tokens: ");
  check_refused(from_file(WORDS, "7"), BPE_MISUSE, "no array and no object");
}

/* A rank that is there already is noticed wherever among the others it is kept. */
static void test_scattered_ranks(void) {
  enum { N = 1200, TRIES = 100 };
  static uint32_t rank[N];
  ranks(&file, "");
  for (uint32_t i = 0; i < N; i++) {
    rank[i] = 256 + unit_random() / 2;
    add(&file, "a%c%cb %lu\n", 'A' + (int)(i / 26 % 26) + (i >= 676 ? 32 : 0), 'a' + (int)(i % 26),
        (unsigned long)rank[i]);
  }
  const size_t len = file.len;
  for (uint32_t i = 0; i < TRIES; i++) {
    file.len = len;
    add(&file, "zzz%c %lu\n", 'a' + (int)(i % 26), (unsigned long)rank[i * N / TRIES]);
    check_refused(from_file(WORDS, NULL), BPE_BADMODEL, "duplicate rank: ");
  }
}

static void test_bad_ranks(void) {
  static const char *const bad[][2] = {
      /* I07 */
      {"IQ== 0\nIg==\n", "line 2 is not a token in base64 and its rank: Ig=="},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 10\n", "line 1 "},
      {"<html>502</html>\n", "line 1 "},
      {"IQ== zero\n", "line 1 "},
      {"IQ== 1.5\n", "line 1 "},
      {"IQ== -1\n", "line 1 "},
      {"IQ== 4294967296\n", "line 1 "},
      {"IQ== 4294967295\n", "line 1 "},
      {"IQ== 0 extra\n", "line 1 "},
      {"IQ= 0\n", "line 1 "},
      {"IR== 0\n", "line 1 "}, /* bits that no byte has */
      {"I=== 0\n", "line 1 "},
      {"= 0\n", "line 1 "},
      {"null", "line 1 "},
      {" \n\n", "source is empty"},
      {"", "source is empty"},
      {"YQ== 0\nYg== 1\nYWI= 2\n", "no token for the byte 0x00 (254 bytes have none)"}, /* I11 */
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    check_refused(from(bad[i][0], WORDS, NULL), BPE_BADMODEL, bad[i][1]);
  ranks(&file, "YWI= 300\nY2Q= 300\n"); /* I09 */
  check_refused(from_file(WORDS, NULL), BPE_BADMODEL,
                "duplicate rank: ab = 300 and cd = 300 (lines 257 and 258)");
  ranks(&file, "YWI= 300\nYWI= 301\n");
  check_refused(from_file(WORDS, NULL), BPE_BADMODEL, "duplicate token: ab = 300 and ab = 301");
  ranks(&file, "");
  check_refused(from_file(NULL, NULL), BPE_MISUSE, "a rank file says no pattern");
  check_refused(from_file("gtp2", NULL), BPE_BADMODEL, "no such pattern: gtp2");
  check_refused(from_file("/(", NULL), BPE_BADREGEX, "regex error");
  check_refused(import_with(file.at, file.len, "a b\n", "gpt2", NULL), BPE_MISUSE,
                "vocab.json only");
  file.len = 0;
  for (int i = 0; i < 1500; i++) add(&file, "YWFh");
  add(&file, " 0\n");
  check_refused(from_file("gpt2", NULL), BPE_TOOBIG, "bytes in line 1");
}

/* ---- vocab.json and merges.txt ------------------------------------------------------------- */

static bpe_model *from_vocab(const char *members, const char *merges, const char *specials) {
  file.len = 0;
  add(&file, "{");
  vocab_members(&file, members);
  add(&file, "}");
  return import_with(file.at, file.len, merges, "gpt2", specials);
}

static void test_gpt2_files(void) {
  static const char *const same[] = {
      /* I05 */
      "#version: 0.2\na b\nc d\n",
      "#version: 0.2\r\na b\r\nc d",
      "a b\nc d\n\n",
      "\xef\xbb\xbf#version: 0.2\na b\nc d",
      "\xef\xbb\xbf\x61 b\nc d\n",
  };
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    check_ids(from_vocab("\"ab\":256,\"cd\":257", same[i], NULL), T("ab cd"), "256,220,257", false,
              false);
  /* I03: a line of # is a merge */
  check_ids(from_vocab("\"##\":256,\"####\":257,\"#version\":258", "# #\n## ##\n", NULL),
            T("## #### #version"), "256,220,257,220,2,85,68,81,82,72,78,77", false, false);
  bpe_model *m =
      from_vocab("\"<|endoftext|>\":300,\"｜x｜\":301", "", "[\"<|endoftext|>\",\"｜x｜\"]");
  check_ids(m, T("a<|endoftext|>｜x｜"), "64,300,301", true, false);
  m = from_vocab("\"｜x｜\":301", "", NULL); /* no text becomes it, but it decodes */
  if (CHECK(m != NULL)) check_decoded(m, (const uint32_t[]){301}, 1, BPE_SPECIALS_TEXT, "｜x｜");
  bpe_model_free(m);
}

/* I25: which byte is which character and which id. */
static void test_alphabet(void) {
  uint8_t all[256];
  char expected[2048];
  size_t n = 0;
  uint32_t id_of[256];
  for (unsigned rank = 0, low = 0; rank < 256; rank++) {
    const unsigned cp = gpt2_character(rank);
    if (cp < 0x100) id_of[cp] = rank;
    else {
      while ((low >= 0x21 && low <= 0x7e) || (low >= 0xa1 && low != 0xad)) low++;
      id_of[low++] = rank;
    }
  }
  CHECK(id_of[0x21] == 0 && id_of[0x7e] == 93 && id_of[0xa1] == 94 && id_of[0] == 188 &&
        id_of[0x20] == 220 && id_of[0x7f] == 221 && id_of[0xad] == 255);
  for (unsigned c = 0; c < 256; c++) {
    all[c] = (uint8_t)c;
    n += (size_t)snprintf(expected + n, sizeof expected - n, "%s%lu", c == 0 ? "" : ",",
                          (unsigned long)id_of[c]);
  }
  check_ids(from_vocab("", "", NULL), (const char *)all, 256, expected, false, false);
}

static void test_bad_gpt2_files(void) {
  check_refused(from_vocab("\"ab\":256", NULL, NULL), BPE_MISUSE, "needs its merges.txt");
  check_refused(from_vocab("\"ab\":256", "a b c\n", NULL), BPE_BADMODEL,
                "merges line 1: not two tokens");
  check_refused(from_vocab("\"ab\":256", "a b\na\n", NULL), BPE_BADMODEL,
                "merges line 2: not two tokens");
  check_refused(from_vocab("\"ab\":256", "a b\n\na b\n", NULL), BPE_BADMODEL, "merges line 2: ");
  check_refused(from_vocab("\"ab\":256", "#version: 0.2\nab c\n", NULL), BPE_BADMODEL,
                "merges line 2: result of the merge is not in the vocabulary: ab + c");
  check_refused(from_vocab("\"ab\":256", "abc b\n", NULL), BPE_BADMODEL,
                "merges line 1: merge of what is not in the vocabulary: abc");
  check_refused(from_vocab("\"ab\":256", "a b\na b\n", NULL), BPE_BADMODEL, "pair listed twice");
  check_refused(from_vocab("\"ab\":65", "a b\n", NULL), BPE_BADMODEL,
                "b = 65 and ab = 65"); /* I21 */
  check_refused(from_vocab("\"ab\":256,\"ab\":257", "a b\n", NULL), BPE_BADMODEL,
                "ab = 256 and ab = 257");
  check_refused(from_vocab("\"ab\":4294967295", "a b\n", NULL), BPE_BADMODEL, "id is no number");
  check_refused(from_vocab("\"ab\":2.0", "a b\n", NULL), BPE_BADMODEL, "id is no number");
  check_refused(from_vocab("\"\":256", "", NULL), BPE_BADMODEL, "empty token");
  check_refused(import_with(T("{\"a\":0}"), "", NULL, NULL), BPE_MISUSE, "says no pattern");
}

/* ---- minbpe -------------------------------------------------------------------------------- */

static void test_minbpe(void) {
  static const char *const bad[][2] = {
      {"minbpe v2\n\n0\n97 98\n", "line 1: version"},
      {"minbpe v1\n\n0\n256 97\n97 98\n", "line 4: merge names an id that is not made yet"},
      {"minbpe v1\n\n3\n<|x|> 259\n", "line 5: ends before all special tokens"},
      {"minbpe v1\n\n1\n258 <|x|>\n97 98\n", "line 4: is no special token and its id"},
      {"minbpe v1\n\n1\n<|x|> 256\n97 98\n", "line 5: merge makes the id of a special token"},
      {"minbpe v1\n\n1\n<|x|> 97\n97 98\n", "line 4: special token has the id of a byte"},
      {"minbpe v1\n\n1\n 300\n", "line 4: "},
      {"minbpe v1\n\n0\n97\n", "line 4: is no merge"},
      {"minbpe v1\n\n0\n97 98 99\n", "line 4: is no merge"},
      {"minbpe v1\n\n0\n97 98\n97 98\n", "token: ab = 256 and ab = 257"},
      {"minbpe v1\n\nx\n", "line 3: "},
      {"minbpe v1\n", "line 2: "},
      {"minbpe v1\n(\n0\n", "regex error"},
  };
  check_ids(from("minbpe v1\n\\S+|\\s+\n2\n<|a b|> 258\n<|x|> 259\n97 98\n256 99\n", NULL, NULL),
            T("abc<|a b|>ab"), "257,258,256", true, false); /* I23 */
  check_ids(from("minbpe v1\n\n0\n97 97\n256 97\n257 98\n", NULL, NULL), T("aaabdaaabac"),
            "258,100,258,97,99", false, false); /* Wikipedia's example */
  bpe_model *m = from("minbpe v1\r\n's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+|"
                      " ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+\r\n0\r\n",
                      NULL, NULL);
  bpe_info info;
  if (CHECK(m != NULL)) {
    bpe_model_info(m, &info);
    CHECK(!info.pattern_is_regex);
    CHECK_BYTES(info.pattern, info.pattern_len, "gpt2", 4);
  }
  bpe_model_free(m);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    m = from(bad[i][0], NULL, NULL);
    check_refused(m, last_error.status, bad[i][1]);
    CHECK(last_error.status == BPE_BADMODEL || last_error.status == BPE_BADREGEX);
  }
  check_refused(from("minbpe v1\n\n0\n", "gpt2", NULL), BPE_MISUSE, "has its own pattern");
  const bpe_import_options whole = {.whole = true};
  last_error = (bpe_error){.status = BPE_OK};
  CHECK(bpe_import(&unit_alloc, "minbpe v1\n\n0\n", 13, NULL, 0, &whole, &last_error, &m) ==
        BPE_MISUSE);
  CHECK(strstr(last_error.text, "says itself whether pieces stay whole") != NULL);
  check_refused(from("minbpe v1\n\n0\n", NULL, "[]"), BPE_MISUSE, "has its own special tokens");
}

/* ---- Plain descriptions -------------------------------------------------------------------- */

static void test_layouts(void) {
  /* bytes + 2, merges from 258, wrapped by 0 and 1 */
  bpe_model *m = from("{\"pattern\":\"none\",\"special_tokens\":[\"<bos>\",\"<eos>\"],"
                      "\"special_ids\":\"first\",\"bos\":[\"<bos>\"],\"eos\":[\"<eos>\"],"
                      "\"merges\":[[32,208],[208,176],[209,130]]}",
                      NULL, NULL);
  bpe_info info;
  check_ids(m, T(" а"), "258,178", false, true);
  check_ids(m, T("т"), "260", false, true);
  check_ids(m, T("\xff\xfe"), "257,256", false, true);
  if (CHECK(m != NULL)) {
    bpe_model_info(m, &info);
    CHECK(info.n_bos == 1 && info.bos[0] == 0 && info.n_eos == 1 && info.eos[0] == 1);
    check_decoded(m, (const uint32_t[]){34, 259}, 2, BPE_SPECIALS_ERROR, " а");
  }
  bpe_model_free(m);
  check_ids(
      from("{\"pattern\":\"none\",\"special_tokens\":[\"<s>\"],\"merges\":[[97,98]]}", NULL, NULL),
      T("ab<s>"), "256,257", true, false);
  check_ids(
      from("{\"pattern\":\"none\",\"special_tokens\":[\"<s>\"],\"special_ids\":\"after_bytes\","
           "\"merges\":[[97,98],[256,256]]}",
           NULL, NULL),
      T("abab<s>ab"), "258,256,257", true, false);
  check_ids(from("{\"pattern\":\"none\",\"byte_order\":\"gpt2\",\"merges\":[[97,98]]}", NULL, NULL),
            T("ab! "), "256,0,220", false, false);
  check_ids(from("{\"merges\":[[97,98]]}", "gpt2", "[\"<s>\"]"), T("ab<s>"), "256,257", true,
            false);
}

static void test_by_bytes(void) {
  check_ids(
      from(
          "{\"pattern\":\"none\",\"vocab\":{\"7\":\"61\",\"1\":\"62\",\"2\":\"6162\",\"9\":\"fF\"},"
          "\"merges\":[[\"61\",\"62\"]],\"special_tokens\":{\"<s>\":3},\"bos\":[\"<s>\"]}",
          NULL, NULL),
      T("ab\xff"
        "a"),
      "2,9,7", false, false);
  bpe_model *m = from("{\"pattern\":\"none\",\"vocab\":{\"0\":\"61\"},\"merges\":[]}", NULL, NULL);
  bpe_error e = {.status = BPE_OK};
  bpe_coder *c = NULL;
  uint64_t n = 0;
  if (!CHECK(m != NULL)) return;
  CHECK(bpe_coder_new(m, 0, &e, &c) == BPE_OK);
  for (int i = 0; i < 2; i++) { /* I11: the second time too */
    e.status = BPE_OK;
    CHECK(bpe_count(c, "az", 2, NULL, &e, &n) == BPE_BADTEXT);
    CHECK(unit_says(&e, BPE_BADTEXT, 1, "no token for the byte at 1: 0x7a"));
  }
  bpe_coder_free(c);
  bpe_model_free(m);
}

static void test_bad_descriptions(void) {
  static const char *const bad[][2] = {
      {"{\"pattern\":\"none\",\"merges\":[[97,98],[97,98]]}", "merge 1: repeats an earlier pair"},
      {"{\"pattern\":\"none\",\"merges\":[[97,97],[256,97],[97,256]]}",
       "merge 2: makes a token that is there"},
      {"{\"pattern\":\"none\",\"merges\":[[97,257],[97,98]]}",
       "merge 0: operand is not defined yet"},
      {"{\"pattern\":\"none\",\"merges\":[[256,97]]}", "merge 0: operand is not defined yet"},
      {"{\"pattern\":\"none\",\"merges\":[[97]]}", "merge 0: is no pair of ids"},
      {"{\"pattern\":\"none\",\"merges\":[[97,-1]]}", "merge 0: is no pair of ids"},
      {"{\"pattern\":\"none\",\"merges\":[[97,1.5]]}", "merge 0: is no pair of ids"},
      {"{\"pattern\":\"none\",\"merges\":[[97,4294967296]]}", "merge 0: is no pair of ids"},
      {"{\"pattern\":\"none\",\"merges\":7}", "no array of merges"},
      {"{\"pattern\":\"none\"}", "no array of merges"},
      {"{\"pattern\":\"none\",\"merges\":[],\"merges\":[]}", "key given twice: merges"},
      {"{\"pattern\":\"none\",\"merges\":[],\"tie\":\"bytes\"}", "unknown key: tie"},
      {"{\"pattern\":\"none\",\"merges\":[],\"special_ids\":\"middle\"}", "special_ids is none of"},
      {"{\"pattern\":\"none\",\"merges\":[],\"byte_order\":1}", "byte_order is neither"},
      {"{\"pattern\":\"none\",\"merges\":[],\"byte_order\":\"utf8\"}", "byte_order is neither"},
      {"{\"pattern\":\"none\",\"merges\":[[97,98],[97,99],[98,98],[97,98]]}",
       "merge 3: repeats an earlier pair"},
      {"{\"pattern\":\"none\",\"merges\":[],\"special_tokens\":[7]}", "holds what is no string"},
      {"{\"pattern\":\"none\",\"merges\":[],\"special_tokens\":{\"<s>\":256}}", "is an array of names"},
      {"{\"pattern\":7,\"merges\":[]}", "pattern is no string"},
      {"{\"regex\":[],\"merges\":[]}", "pattern is no string"},
      {"{\"pattern\":\"none\",\"merges\":[],\"bos\":7}", "bos or eos is no array of names"},
      {"{\"pattern\":\"none\",\"merges\":[],\"eos\":[7]}", "bos or eos holds what is no string"},
      {"{\"pattern\":\"none\",\"vocab\":[],\"merges\":[]}", "vocab is no object of id -> hex"},
      {"{\"pattern\":\"none\",\"vocab\":{},\"merges\":[],\"byte_order\":\"raw\"}",
       "byte_order and special_ids go with merges of ids"},
      {"{\"pattern\":\"none\",\"vocab\":{},\"merges\":[],\"special_ids\":\"last\"}",
       "byte_order and special_ids go with merges of ids"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"61\"},\"merges\":[\"6161\"]}",
       "merge 0: is no pair"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"61\"},\"merges\":[[\"61\"]]}",
       "merge 0: is no pair"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"61\"},\"merges\":[[\"61\",7]]}",
       "merge 0: operand is no hex string"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":7},\"merges\":[]}", "no hex string"},
      {"{\"pattern\":\"none\",\"merges\":[],\"bos\":[\"<s>\"]}", "bos is no special token: <s>"},
      {"{\"pattern\":\"none\",\"merges\":[],\"special_tokens\":[\"a\"]}",
       "special token is a token already"},
      {"{\"pattern\":\"none\",\"merges\":[],\"special_tokens\":[\"\"]}", "empty special token"},
      {"{\"pattern\":\"nope\",\"merges\":[]}", "no such pattern: nope"},
      {"{\"pattern\":\"none\",\"merges\":[],\"whole\":1}", "whole is neither"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"6\"},\"merges\":[]}", "no hex string"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"6/\"},\"merges\":[]}", "no hex string"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"6:\"},\"merges\":[]}", "no hex string"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"6@\"},\"merges\":[]}", "no hex string"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"6G\"},\"merges\":[]}", "no hex string"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"6`\"},\"merges\":[]}", "no hex string"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"6g\"},\"merges\":[]}", "no hex string"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"/6\"},\"merges\":[]}", "no hex string"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"g6\"},\"merges\":[]}", "no hex string"},
      {"{\"pattern\":\"none\",\"vocab\":{\"x\":\"61\"},\"merges\":[]}", "key of vocab is no id"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"61\",\"1\":\"61\"},\"merges\":[]}",
       "duplicate token"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"61\",\"0\":\"62\"},\"merges\":[]}",
       "duplicate id: a = 0 and b = 0 (bytes "},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"61\"},\"merges\":[[\"61\",\"61\"]]}",
       "merge 0: result is no token"},
      {"{\"pattern\":\"none\",\"vocab\":{\"0\":\"61\"},\"merges\":[[\"61\",\"62\"]]}",
       "merge 0: operand is no token"},
      {"{\"merges\":[", "premature EOF"},
      {"{\"merges\":[]}x", "trailing garbage"},
      {"{'merges':[]}", "source: "},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    check_refused(from(bad[i][0], NULL, NULL), BPE_BADMODEL, bad[i][1]);
  check_refused(from("{\"pattern\":\"none\",\"vocab\":{\"5\":\"61\"},\"merges\":[],"
                     "\"special_tokens\":{\"<s>\":5}}",
                     NULL, NULL),
                BPE_BADMODEL, "duplicate id: a = 5 and <s> = 5");
  CHECK(strchr(last_error.text, '(') == NULL); /* the list says no places */
  check_refused(from("{\"merges\":[]}", NULL, NULL), BPE_MISUSE, "says no pattern");
  check_refused(from("{\"pattern\":\"none\",\"merges\":[]}", "gpt2", NULL), BPE_MISUSE,
                "two patterns");
  check_refused(from("{\"pattern\":\"none\",\"regex\":\"a\",\"merges\":[]}", NULL, NULL),
                BPE_MISUSE, "two patterns");
  check_refused(from("{\"pattern\":\"none\",\"merges\":[],\"special_tokens\":[]}", NULL, "[]"),
                BPE_MISUSE, "its own special tokens");
}

/* ---- Memory and time ----------------------------------------------------------------------- */

/* Every allocation of an import fails, once and from then on: no memory is an error, and nothing is left. */
static void exhaust(const char *source, const char *merges, const char *pattern) {
  size_t refused = 0;
  for (size_t k = 2;; k++) {
    bpe_model *m = NULL;
    bpe_error e = {.status = BPE_OK};
    const size_t before = unit_memory.blocks;
    const bpe_import_options o = {.pattern = pattern, .pattern_len = pattern ? strlen(pattern) : 0};
    unit_fail(k / 2, k % 2 == 0);
    const bpe_status st = bpe_import(&unit_alloc, source, strlen(source), merges,
                                     merges ? strlen(merges) : 0, &o, &e, &m);
    const bool done = unit_memory.refused == 0;
    unit_fail(0, false);
    bpe_model_free(m);
    if (unit_memory.blocks != before && !CHECK(unit_memory.blocks == before)) break;
    if (done) {
      CHECK(st == BPE_OK);
      break;
    }
    if (st == BPE_OK) continue; /* machine code for a regex is not needed */
    if (st == BPE_NOMEM) refused++;
    else if (!CHECK(st == BPE_NOMEM)) {
      printf("  allocation %zu of %.20s: status %d %s\n", k, source, (int)st, e.text);
      break;
    }
  }
  CHECK(refused > 5);
}

static void test_memory(void) {
  ranks(&file, "YWI= 256\nYWJj 257\n");
  file.at[file.len] = 0;
  exhaust(file.at, NULL, "gpt2");
  exhaust("minbpe v1\na|b\n1\n<x> 400\n97 98\n", NULL, NULL);
  exhaust(
      "{\"pattern\":\"none\",\"merges\":[[97,98]],\"special_tokens\":[\"<s>\"],\"bos\":[\"<s>\"]}",
      NULL, NULL);
  exhaust("{\"pattern\":\"none\",\"vocab\":{\"0\":\"61\"},\"merges\":[]}", NULL, NULL);
  exhaust("{\"a\":0,\"b\":1,\"ab\":2}", "a b\n", "gpt2");
}

int main(void) {
  test_ranks();
  test_rank_forms();
  test_rank_specials();
  test_bad_ranks();
  test_scattered_ranks();
  test_gpt2_files();
  test_alphabet();
  test_bad_gpt2_files();
  test_minbpe();
  test_layouts();
  test_by_bytes();
  test_bad_descriptions();
  test_memory();
  return unit_summary();
}
