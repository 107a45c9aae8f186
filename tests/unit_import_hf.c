/* unit_import_hf.c - tokenizer.json: small files of both families, read, and refused by name. */
#include "import_files.h"

#define T(s) (s), sizeof(s) - 1

static text file;

static bpe_model *from(parts p) {
  tokenizer_json(&file, p);
  return import_with(file.at, file.len, NULL, NULL, NULL);
}

#define FLAGS(lstrip, rstrip, word, normalized, special)                                           \
  "\"single_word\":" word ",\"lstrip\":" lstrip ",\"rstrip\":" rstrip                              \
  ",\"normalized\":" normalized ",\"special\":" special
#define PLAIN FLAGS("false", "false", "false", "false", "true")
#define SPLIT(regex, behavior, invert)                                                             \
  "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"" regex "\"},\"behavior\":\"" behavior             \
  "\",\"invert\":" invert "}"
#define NO_REGEX                                                                                   \
  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}"
#define SEQUENCE(steps) "{\"type\":\"Sequence\",\"pretokenizers\":[" steps "]}"

/* ---- Byte level ---------------------------------------------------------------------------- */

static void test_merges(void) {
  static const char *const merges[] = {"\"a b\"", "[\"a\",\"b\"]"};
  for (int i = 0; i < 2; i++) /* I01 */
    check_ids(from((parts){.vocab = "\"ab\":256", .merges = merges[i]}), T("ab abc"),
              "256,220,256,66", false, false);
  check_refused(from((parts){.vocab = "\"ab\":256"}), BPE_BADMODEL, "model.merges: empty beside");
  check_ids(from((parts){.vocab = "\"ab\":256", .model = "\"ignore_merges\":true,"}), T("ab xab"),
            "256,220,87,64,65", false, false);
  check_ids(from((parts){.model = "\"dropout\":null,\"unk_token\":null,\"fuse_unk\":false,"
                                  "\"continuing_subword_prefix\":\"\","}),
            T("ab"), "64,65", false, false);
  check_refused(from((parts){.vocab = "\"ab\":256", .merges = "\"a b c\""}), BPE_BADMODEL,
                "model.merges[0]: not two tokens");
  check_refused(from((parts){.vocab = "\"ab\":256", .merges = "[\"a\",\"b\"],[\"ab\",\"c\"]"}),
                BPE_BADMODEL,
                "model.merges: 1: result of the merge is not in the vocabulary: ab + c");
  check_refused(from((parts){.vocab = "\"ab\":256", .merges = "[\"a\",\"bb\"]"}), BPE_BADMODEL,
                "merge of what is not in the vocabulary: bb");
  check_refused(from((parts){.vocab = "\"ab\":65", .merges = "\"a b\""}), BPE_BADMODEL,
                "b = 65 and ab = 65"); /* I21 */
  /* what other tools add: 17 truncation, 19 prefix spaces outside the pre-tokenizer */
  tokenizer_json(
      &file,
      (parts){.vocab = "\"\\u0120a\":256",
              .merges = "[\"\\u0120\",\"a\"]",
              .pre = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true}"});
  check_ids(import_with(file.at, file.len, NULL, NULL, NULL), T("a b"), "256,220,65", false, false);
  check_ids(
      from((parts){
          .post = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":false}"}),
      T("a b"), "64,220,65", false, false);
}

/* I17 */
static void test_truncation(void) {
  file.len = 0;
  add(&file,
      "{\"version\":\"1.0\",\"truncation\":{\"direction\":\"Right\",\"max_length\":4,"
      "\"strategy\":\"LongestFirst\",\"stride\":0},\"padding\":{\"strategy\":{\"Fixed\":20}},"
      "\"pre_tokenizer\":" BYTE_LEVEL ",\"model\":{\"vocab\":{");
  vocab_members(&file, "");
  add(&file, "},\"merges\":[]}}");
  check_ids(import_with(file.at, file.len, NULL, NULL, NULL), T("abcdefghij"),
            "64,65,66,67,68,69,70,71,72,73", false, false);
}

static void test_added(void) {
  static const struct {
    const char *flags, *text, *ids;
  } rows[] = {
      /* S09 */
      {FLAGS("true", "false", "false", "false", "true"), "a   <m> b", "64,256,220,65"},
      {FLAGS("false", "true", "false", "false", "true"), "a <m>  \n b", "64,220,256,65"},
      {FLAGS("true", "true", "false", "false", "true"), "a \t<m> b", "64,256,65"},
      {FLAGS("false", "false", "true", "false", "true"), "a<m>b <m> c <m>",
       "64,27,76,29,65,220,256,220,66,220,256"},
      {FLAGS("false", "false", "false", "false", "true"), "a <m> b", "64,220,256,220,65"},
      {FLAGS("false", "false", "true", "false", "true"), "<m>_<m>é<m>.<m>",
       "27,76,29,62,27,76,29,127,102,27,76,29,13,256"},
      {FLAGS("true", "true", "false", "false", "true"), "\xc2\xa0<m>\xe3\x80\x80<m> x",
       "256,256,87"},
      {FLAGS("true", "true", "false", "false", "true"), "\xff <m> \xff", "187,256,187"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char added[512];
    snprintf(added, sizeof added, "{\"id\":256,\"content\":\"<m>\",%s}", rows[i].flags);
    check_ids(from((parts){.added = added}), rows[i].text, strlen(rows[i].text), rows[i].ids, true,
              false);
  }
  /* S05: the longest; S11: added tokens that are not special are found always */
  check_ids(from((parts){.added = "{\"id\":256,\"content\":\"<|e|>\"," PLAIN "},"
                                  "{\"id\":257,\"content\":\"<|e|><|e|>\"," PLAIN "}"}),
            T("x<|e|><|e|>y<|e|>"), "87,257,88,256", true, false);
  bpe_model *m = from((parts){.added = "{\"id\":256,\"content\":\"ü\"," FLAGS(
                                  "false", "false", "false", "false", "false") "}"});
  check_ids(m, T("Führer für"), "37,184,71,81,68,81,220,69,184,81", false, true);
  check_ids(m, T("\xfc"), "184", false, true); /* which is what the vocabulary has there */
  if (m != NULL) check_decoded(m, (const uint32_t[]){37, 184}, 2, BPE_SPECIALS_SKIP, "F\xfc");
  bpe_model_free(m);
  check_refused(from((parts){.added = "{\"id\":300,\"content\":\"<s>\"," PLAIN "}", /* I13 */
                             .vocab = "\"<s>\":256"}),
                BPE_BADMODEL, "id is 256 in the vocabulary and 300 in added_tokens: <s>");
  check_refused(
      from((parts){.added = "{\"id\":257,\"content\":\"<s>\"," PLAIN "}", .vocab = "\"<v>\":257"}),
      BPE_BADMODEL, "<v> = 257 and <s> = 257");
  check_refused(from((parts){.added = "{\"id\":256,\"content\":\"\"," PLAIN "}"}), BPE_BADMODEL,
                "added_tokens: ");
  check_refused(from((parts){.added = "{\"content\":\"x\"," PLAIN "}"}), BPE_BADMODEL,
                "added_tokens: ");
}

/* An added token outside the vocabulary has the id that its place in the list gives it. */
static void test_ids(void) {
  static const struct {
    const char *added, *vocab, *says; /* NULL: it is read */
  } rows[] = {
      {"{\"id\":1000,\"content\":\"<s>\"," PLAIN "}", "", "id is 256 by its place, not 1000: <s>"},
      {"{\"id\":7,\"content\":\"<s>\"," PLAIN "}", "", "id is 256 by its place, not 7: <s>"},
      {"{\"id\":257,\"content\":\"<s>\"," PLAIN "},{\"id\":256,\"content\":\"<t>\"," PLAIN "}", "",
       "id is 256 by its place, not 257: <s>"},
      {"{\"id\":256,\"content\":\"<s>\"," PLAIN "},{\"id\":256,\"content\":\"<t>\"," PLAIN "}", "",
       "id is 257 by its place, not 256: <t>"},
      {"{\"id\":256,\"content\":\"<s>\"," PLAIN "},{\"id\":256,\"content\":\"<s>\"," PLAIN "}", "",
       "added_tokens: given twice: <s>"},
      {"{\"id\":1000,\"content\":\"<v>\"," PLAIN "},{\"id\":1001,\"content\":\"<s>\"," PLAIN "}",
       "\"<v>\":1000", "id is 257 by its place, not 1001: <s>"},
      {"{\"id\":256,\"content\":\"<s>\"," PLAIN "}", "\"<s>\":257",
       "id is 257 in the vocabulary and 256 in added_tokens: <s>"},
      {"{\"id\":257,\"content\":\"<s>\"," PLAIN "},{\"id\":1000,\"content\":\"<v>\"," PLAIN
       "},{\"id\":258,\"content\":\"<t>\"," PLAIN "}",
       "\"<v>\":1000", NULL},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bpe_model *m = from((parts){.added = rows[i].added, .vocab = rows[i].vocab});
    if (rows[i].says != NULL) check_refused(m, BPE_BADMODEL, rows[i].says);
    else check_ids(m, T("<t><v><s>"), "258,1000,257", true, false);
  }
}

/* An rstrip takes white space along in which another token would begin: refused, if one pass over
** the text looks for both. */
static void test_strips(void) {
  static const struct {
    const char *strips, *begins, *normalizer, *says; /* "normalized" of the two */
  } rows[] = {
      {"false", "{\"id\":257,\"content\":\"\\n\",\"normalized\":false", NULL, "\\x0a"},
      {"false", "{\"id\":257,\"content\":\" x\",\"normalized\":false", NULL, " x"},
      {"false", "{\"id\":257,\"content\":\"\\u0085\",\"normalized\":false", NULL, "\xc2\x85"},
      {"false", "{\"id\":257,\"content\":\"\\u200b\",\"normalized\":false", NULL, NULL},
      {"false", "{\"id\":257,\"content\":\"x \",\"normalized\":false", NULL, NULL},
      {"false", "{\"id\":257,\"content\":\" x\",\"normalized\":true", NULL, NULL},
      {"true", "{\"id\":257,\"content\":\" x\",\"normalized\":false", NULL, NULL},
      {"true", "{\"id\":257,\"content\":\" x\",\"normalized\":true", NULL, " x"},
      {"true", "{\"id\":257,\"content\":\"\\u00a8!\",\"normalized\":true", "NFC", NULL},
      {"true", "{\"id\":257,\"content\":\"\\u00a8!\",\"normalized\":true", "NFKC", "\xc2\xa8!"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char added[512], normalizer[64] = "null", says[64];
    snprintf(added, sizeof added,
             "{\"id\":256,\"content\":\"<m>\"," FLAGS("false", "true", "false", "%s",
                                                      "true") "},%s,\"special\":true}",
             rows[i].strips, rows[i].begins);
    if (rows[i].normalizer != NULL)
      snprintf(normalizer, sizeof normalizer, "{\"type\":\"%s\"}", rows[i].normalizer);
    bpe_model *m = from((parts){.added = added, .normalizer = normalizer});
    if (rows[i].says == NULL) {
      check_ids(m, T("<m> <m>"), "256,256", true, false);
      continue;
    }
    snprintf(says, sizeof says, "which an rstrip takes along: %s", rows[i].says);
    check_refused(m, BPE_BADMODEL, says);
  }
}

/* Overlapping added tokens: leftmost, the longest; a whole-word token inside a word is none. */
static void test_dancing(void) {
  static const char *const word[] = {"false", "true"};
  for (int i = 0; i < 2; i++) {
    char added[1024];
    snprintf(added, sizeof added,
             "{\"id\":256,\"content\":\"danc\"," PLAIN "},{\"id\":257,\"content\":\"nci\"," PLAIN
             "},{\"id\":258,\"content\":\"ing\",\"single_word\":%s,\"special\":true}",
             word[i]);
    check_ids(from((parts){.added = added}), T("dancing"), i == 0 ? "256,258" : "256,72,77,70",
              true, false);
  }
}

/* Added tokens that merging makes too, and tokens that no text becomes. */
static void test_roles(void) {
  bpe_model *m = from((parts){.vocab = "\"ab\":256,\"abc\":257",
                              .merges = "\"a b\",\"ab c\"",
                              .added = "{\"id\":256,\"content\":\"ab\"," PLAIN "}"});
  check_ids(m, T("abc"), "257", false, true);
  check_ids(m, T("abc"), "256,66", true, true);
  if (m != NULL) check_decoded(m, (const uint32_t[]){256, 66}, 2, BPE_SPECIALS_SKIP, "c");
  bpe_model_free(m);
  m = from((parts){.vocab = "\"\\u00e2\\u0126\\u00a2\":256,\"™\":100000",
                   .model = "\"ignore_merges\":true,"});
  check_ids(m, T("™"), "256", false, true);
  if (m != NULL) check_decoded(m, (const uint32_t[]){100000}, 1, BPE_SPECIALS_TEXT, "™");
  bpe_model_free(m);
}

/* What is normalized is looked for after the rest, in the normalized text. */
static void test_late(void) {
  check_ids(from((parts){.added = "{\"id\":256,\"content\":\"ab\"," FLAGS(
                             "false", "false", "false", "true",
                             "false") "},"
                                      "{\"id\":257,\"content\":\"bc\"," PLAIN "}"}),
            T("abc ab"), "64,257,220,256", true, false);
  check_ids(from((parts){.added = "{\"id\":256,\"content\":\"\\u1e69\"," FLAGS(
                             "false", "false", "false", "true", "false") "}",
                         .normalizer = "{\"type\":\"NFC\"}"}),
            T("xs\xcc\x87\xcc\xa3y"), "87,256,88", false, false);
  check_ids(from((parts){.added = "{\"id\":256,\"content\":\"s\\u0323\"," FLAGS(
                             "false", "false", "false", "false", "false") "}",
                         .normalizer = "{\"type\":\"NFC\"}"}),
            T("xs\xcc\xa3y\xe1\xb9\xa3"), "87,256,88,157,117,96", false, false);
  check_refused(from((parts){.added = "{\"id\":256,\"content\":\"ab\"," FLAGS(
                                 "false", "false", "false", "true", "false") "}",
                             .normalizer = "{\"type\":\"Prepend\",\"prepend\":\"x\"}"}),
                BPE_BADMODEL, "normalized under this normalizer: ab");
  check_refused(
      from((parts){.added = "{\"id\":256,\"content\":\"<\\u00e9\"," FLAGS(
                       "false", "false", "false", "true",
                       "true") "},{\"id\":257,\"content\":\"<e\\u0301\"," FLAGS("false", "false",
                                                                                "false", "true",
                                                                                "true") "}",
                   .normalizer = "{\"type\":\"NFC\"}"}),
      BPE_BADMODEL, "added_tokens: normalized, the same as another: <e\xcc\x81");
}

/* To the second look, what stands between two tokens of the first is a text of its own. */
static void test_late_edges(void) {
  static const struct {
    const char *flags, *text, *ids;
  } rows[] = {
      {FLAGS("false", "false", "true", "true", "false"), "a<w>", "64,256"},
      {FLAGS("false", "false", "true", "true", "false"), "<w>a<w>a", "256,64,256,64"},
      {FLAGS("false", "false", "true", "true", "false"), "ab<w>", "64,65,27,86,29"},
      {FLAGS("false", "false", "true", "true", "false"), "a<w><w>b", "64,256,27,86,29,65"},
      {FLAGS("true", "true", "false", "true", "false"), "a <w> a ", "64,256,64,220"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char added[512];
    snprintf(added, sizeof added,
             "{\"id\":64,\"content\":\"a\",\"special\":true},"
             "{\"id\":256,\"content\":\"<w>\",%s}",
             rows[i].flags);
    check_ids(from((parts){.added = added}), rows[i].text, strlen(rows[i].text), rows[i].ids, true,
              false);
  }
}

static void test_patterns(void) {
  bpe_info info;
  /* P25: DeepSeek cuts Chinese at U+9FA5 */
  bpe_model *m = from((parts){
      .pre = SEQUENCE(SPLIT("\\\\p{N}{1,3}", "Isolated", "false") "," SPLIT(
          "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", "Isolated",
          "false") "," SPLIT("[!\\\"#$%&'()*+,\\\\-./"
                             ":;<=>?@\\\\[\\\\\\\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\\\p{L}\\\\p{P}"
                             "\\\\p{S}]?"
                             "[\\\\p{L}\\\\p{M}]+| "
                             "?[\\\\p{P}\\\\p{S}]+[\\r\\n]*|\\\\s*[\\r\\n]+|\\\\s+(?!\\\\S)|\\\\s+",
                             "Isolated", "false") "," NO_REGEX)});
  if (CHECK(m != NULL)) {
    bpe_model_info(m, &info);
    CHECK_BYTES(info.pattern, info.pattern_len, "deepseek3", 9);
  } else {
    puts(last_error.text);
  }
  bpe_model_free(m);
  m = from(
      (parts){.vocab = "\"11\":256,\"a1\":257",
              .merges = "\"1 1\",\"a 1\"",
              .pre = SEQUENCE("{\"type\":\"Digits\",\"individual_digits\":true}," BYTE_LEVEL)});
  check_ids(m, T("a11 x11"), "64,16,16,220,87,16,16", false, true);
  if (m != NULL) {
    bpe_model_info(m, &info);
    CHECK(info.pattern_is_chain && !info.pattern_is_regex);
    CHECK_BYTES(info.pattern, info.pattern_len, "[{\"regex\":\"\\\\p{N}\"},\"gpt2\"]", 27);
  }
  bpe_model_free(m);
  m = from((parts){.vocab = "\"11\":256,\"a1\":257",
                   .merges = "\"1 1\",\"a 1\"",
                   .pre = SEQUENCE("{\"type\":\"Digits\",\"individual_digits\":false}," NO_REGEX)});
  check_ids(m, T("a11 x111"), "64,256,220,87,256,16", false, false);
  m = from((parts){.pre = SEQUENCE(SPLIT("[0-9]", "Isolated", "true") "," NO_REGEX)});
  if (CHECK(m != NULL)) {
    bpe_model_info(m, &info);
    CHECK(info.pattern_is_regex);
  }
  bpe_model_free(m);
}

static void test_wrapping(void) {
  bpe_info info;
  bpe_model *m = from((parts){
      .added =
          "{\"id\":256,\"content\":\"<s>\"," PLAIN "},{\"id\":257,\"content\":\"</s>\"," PLAIN "}",
      .post = "{\"type\":\"Sequence\",\"processors\":[" BYTE_LEVEL
              ",{\"type\":\"TemplateProcessing\",\"single\":["
              "{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\","
              "\"type_id\":0}},"
              "{\"SpecialToken\":{\"id\":\"x\",\"type_id\":0}}],\"pair\":[],\"special_tokens\":{"
              "\"<s>\":{\"id\":\"<s>\",\"ids\":[256],\"tokens\":[\"<s>\"]},"
              "\"x\":{\"id\":\"x\",\"ids\":[257,256],\"tokens\":[\"</s>\",\"<s>\"]}}}]}"});
  if (CHECK(m != NULL)) {
    bpe_model_info(m, &info);
    CHECK(info.n_bos == 1 && info.bos[0] == 256);
    CHECK(info.n_eos == 2 && info.eos[0] == 257 && info.eos[1] == 256);
  } else {
    puts(last_error.text);
  }
  bpe_model_free(m);
  m = from(
      (parts){.added = "{\"id\":256,\"content\":\"<s>\"," PLAIN "}",
              .post = "{\"type\":\"RobertaProcessing\",\"sep\":[\"</s>\",65],\"cls\":[\"<s>\",256],"
                      "\"trim_offsets\":true,\"add_prefix_space\":false}"});
  if (CHECK(m != NULL)) {
    bpe_model_info(m, &info);
    CHECK(info.n_bos == 1 && info.bos[0] == 256 && info.n_eos == 1 && info.eos[0] == 65);
  }
  bpe_model_free(m);
  /* names of one length, asked for in another order than they are listed in */
  m = from((parts){
      .added =
          "{\"id\":256,\"content\":\"<s>\"," PLAIN "},{\"id\":257,\"content\":\"<e>\"," PLAIN "}",
      .post = "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\"}},"
              "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"<e>\"}}],"
              "\"special_tokens\":{\"<e>\":{\"ids\":[257]},\"<s>\":{\"ids\":[256]},"
              "\"<x>\":{\"ids\":[65]}}}"});
  if (CHECK(m != NULL)) {
    bpe_model_info(m, &info);
    CHECK(info.n_bos == 1 && info.bos[0] == 256 && info.n_eos == 1 && info.eos[0] == 257);
  }
  bpe_model_free(m);
  check_refused(
      from((parts){
          .post = "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}},"
                  "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{}}"}),
      BPE_BADMODEL, "post_processor.special_tokens lacks x");
  check_refused(
      from((parts){
          .post = "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"x\"}},"
                  "{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"x\":{\"ids\":[900]}}}"}),
      BPE_BADMODEL, "BOS is no token: id 900");
}

/* ---- Characters ---------------------------------------------------------------------------- */

static void sentencepiece(text *t, const char *normalizer, const char *pre, const char *strip) {
  t->len = 0;
  add(t,
      "{\"added_tokens\":[{\"id\":0,\"content\":\"<unk>\"," PLAIN
      "},{\"id\":1,\"content\":\"<s>\"," PLAIN "},"
      "{\"id\":270,\"content\":\"▁▁\"," FLAGS(
          "false", "false", "false", "false",
          "false") "}],"
                   "\"normalizer\":%s,\"pre_tokenizer\":%s,\"post_processor\":null,\"decoder\":{"
                   "\"type\":\"Sequence\","
                   "\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":\"▁\"},\"content\":"
                   "\" \"},"
                   "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}%s]},\"model\":{\"type\":"
                   "\"BPE\",\"unk_token\":\"<unk>\","
                   "\"fuse_unk\":true,\"byte_fallback\":true,\"vocab\":{\"<unk>\":0,\"<s>\":1",
      normalizer, pre, strip);
  for (unsigned c = 0; c < 256; c++) add(t, ",\"<0x%02X>\":%u", c, 3 + c);
  add(t, ",\"▁\":260,\"a\":261,\"b\":262,\"é\":263,\"▁a\":264,\"▁ab\":265,\"▁▁\":270,\"A\":271},"
         "\"merges\":[[\"▁\",\"▁\"],\"▁ a\",[\"▁a\",\"b\"]]}}");
}

#define MARKS "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"▁\"}"

static void test_sentencepiece(void) {
  sentencepiece(
      &file,
      "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"▁\"}," MARKS
      "]}",
      "null", ",{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}");
  bpe_model *m = import_with(file.at, file.len, NULL, NULL, NULL);
  check_ids(m, T("ab"), "265", false, true);
  check_ids(m, T("ab a  b"), "265,264,270,262", false, true);
  check_ids(m, T("é中\xff"), "260,263,231,187,176,258", false, true); /* a fallback for each byte */
  check_ids(m, T("▁a"), "270,261", false, true);  /* a mark in the text is a space */
  check_ids(m, T("▁▁a"), "270,264", false, true); /* two are the added token; then a text begins */
  check_ids(m, T("a<s>b"), "264,1,260,262", true, true);
  check_ids(m, T(""), "", false, true);
  if (m != NULL) {
    check_decoded(m, (const uint32_t[]){265, 264}, 2, BPE_SPECIALS_TEXT, "ab a");
    check_decoded(m, (const uint32_t[]){1, 265}, 2, BPE_SPECIALS_TEXT, "<s> ab");
    check_decoded(m, (const uint32_t[]){1, 265}, 2, BPE_SPECIALS_SKIP, "ab");
    check_decoded(m, (const uint32_t[]){270, 231, 187, 176}, 4, BPE_SPECIALS_TEXT, " 中");
  }
  bpe_model_free(m);
  sentencepiece(&file, MARKS,
                "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},"
                "\"behavior\":\"MergedWithPrevious\",\"invert\":false}",
                "");
  check_ids(import_with(file.at, file.len, NULL, NULL, NULL), T("ab ab"), "261,262,265", false,
            false);
  sentencepiece(
      &file, "null",
      "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"always\",\"split\":true}",
      "");
  check_ids(import_with(file.at, file.len, NULL, NULL, NULL), T("ab  ab"), "265,260,265", false,
            false);
  sentencepiece(
      &file, "null",
      "{\"type\":\"Metaspace\",\"replacement\":\"▁\",\"prepend_scheme\":\"never\",\"split\":false}",
      "");
  check_ids(import_with(file.at, file.len, NULL, NULL, NULL), T("ab  ab"), "261,262,270,261,262",
            false, false);
}

/* A normalizer, a pre-tokenizer, and why they are refused. */
static void test_sentencepiece_refused(void) {
  static const char *const rows[][3] = {
      {"null",
       SEQUENCE("{\"type\":\"Digits\"},{\"type\":\"Metaspace\",\"replacement\":\"▁\"}"),
       "pre_tokenizer: prepends after another step: Metaspace"},
      {MARKS, SPLIT("a", "Isolated", "false"), "pre_tokenizer: regex with U+2581 for spaces: Split"},
      {"null",
       SEQUENCE(SPLIT("a", "Isolated", "false") ",{\"type\":\"Metaspace\",\"replacement\":\"▁\","
                                                "\"prepend_scheme\":\"never\"}"),
       "pre_tokenizer: after a regex: Metaspace"},
      {"{\"type\":\"Sequence\",\"normalizers\":[" MARKS ",{\"type\":\"NFKC\"}]}", "null",
       "normalizer: after the replacement of spaces: NFKC"},
      {"{\"type\":\"Sequence\",\"normalizers\":[" MARKS ",{\"type\":\"NFKD\"}]}", "null",
       "normalizer: after the replacement of spaces: NFKD"},
      {"{\"type\":\"Prepend\",\"prepend\":\"▁\"}", "null",
       "normalizer: U+2581 that stands for no space: Prepend"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    sentencepiece(&file, rows[i][0], rows[i][1], "");
    check_refused(import_with(file.at, file.len, NULL, NULL, NULL), BPE_BADMODEL, rows[i][2]);
  }
}

/* A special token that the vocabulary lacks is none of the characters that merging begins with. */
static void test_outside(void) {
  file.len = 0;
  add(&file, "{\"added_tokens\":[{\"id\":260,\"content\":\"中\",\"special\":true},"
             "{\"id\":258,\"content\":\"é\",\"special\":true}],"
             "\"normalizer\":" MARKS ",\"decoder\":{\"type\":\"Sequence\",\"decoders\":["
             "{\"type\":\"Replace\",\"pattern\":{\"String\":\"▁\"},\"content\":\" \"},"
             "{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"}]},"
             "\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":256,\"b\":257,"
             "\"é\":258,\"▁\":259");
  for (unsigned c = 0; c < 256; c++) add(&file, ",\"<0x%02X>\":%u", c, c);
  add(&file, "},\"merges\":[]}}");
  bpe_model *m = import_with(file.at, file.len, NULL, NULL, NULL);
  check_ids(m, T("a中é"), "256,228,184,173,258", false, true);
  check_ids(m, T("a中é"), "256,260,258", true, false);
  static const char one[] = "{\"added_tokens\":[{\"id\":3,\"content\":\"q\",\"special\":true}],"
                            "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false},"
                            "\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
                            "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]}}";
  m = import_with(one, sizeof one - 1, NULL, NULL, NULL);
  bpe_error e = {.status = BPE_OK};
  bpe_coder *c = NULL;
  uint64_t n;
  if (CHECK(m != NULL) && CHECK(bpe_coder_new(m, 0, &e, &c) == BPE_OK)) {
    CHECK(bpe_count(c, "aq", 2, NULL, &e, &n) == BPE_BADTEXT);
    CHECK(unit_says(&e, BPE_BADTEXT, 1, "no token for the byte at 1: 0x71"));
  }
  bpe_coder_free(c);
  check_ids(m, T("abq"), "2,3", true, false);
}

/* Long texts go window by window; a character may not be cut by one. */
static void test_long_characters(void) {
  static char source[3 * 4000 + 1], expected[1 << 16];
  size_t n = 0, k = 0;
  for (int i = 0; i < 3000; i++) {
    const char *s = i % 5 == 0 ? "é" : i % 3 == 0 ? "中" : i % 7 == 0 ? "\xe4" : "a";
    const char *ids = i % 5 == 0 ? "263" : i % 3 == 0 ? "231,187,176" : i % 7 == 0 ? "231" : "261";
    memcpy(source + n, s, strlen(s));
    n += strlen(s);
    k += (size_t)snprintf(expected + k, sizeof expected - k, "%s%s", k == 0 ? "" : ",", ids);
  }
  sentencepiece(&file, MARKS, "null", "");
  bpe_model *m = import_with(file.at, file.len, NULL, NULL, NULL);
  bpe_error e = {.status = BPE_OK};
  bpe_coder *c = NULL;
  bpe_buffer b;
  bpe_buffer_init(&b, &unit_alloc, 0);
  if (CHECK(m != NULL)) {
    CHECK(bpe_coder_new(m, 0, &e, &c) == BPE_OK);
    CHECK(bpe_encode_json(c, source, n, NULL, &e, &b) == BPE_OK);
    CHECK_BYTES(b.bytes + 1, b.len - 2, expected, k);
  }
  bpe_buffer_clear(&b);
  bpe_coder_free(c);
  bpe_model_free(m);
}

/* A random vocabulary of characters: tokens under their place in `tokens`, past the 256 bytes. */
enum { FIRST = 300, MOST_TOKENS = 80 };

typedef struct random_model {
  char tokens[MOST_TOKENS][64];
  int left[MOST_TOKENS], right[MOST_TOKENS]; /* of those that a merge makes */
  int n_chars, n;
} random_model;

static void draw_model(random_model *r) {
  static const char *const chars[] = {"a", "b", "中", "文", "é", "\xf0\x9f\x98\x80"};
  r->n = r->n_chars = 0;
  for (size_t i = 0; i < 6; i++)
    if (unit_below(4) != 0) strcpy(r->tokens[r->n_chars++], chars[i]);
  if (r->n_chars == 0) strcpy(r->tokens[r->n_chars++], "a");
  r->n = r->n_chars;
  for (int tries = 0; r->n < MOST_TOKENS && tries < 200; tries++) {
    const int l = (int)unit_below((uint32_t)r->n), q = (int)unit_below((uint32_t)r->n);
    char *to = r->tokens[r->n];
    if (strlen(r->tokens[l]) + strlen(r->tokens[q]) > 60) continue;
    const size_t n = strlen(r->tokens[l]);
    memmove(to, r->tokens[l], n);
    memmove(to + n, r->tokens[q], strlen(r->tokens[q]) + 1);
    bool there = false;
    for (int i = 0; i < r->n; i++) there |= strcmp(r->tokens[i], to) == 0;
    if (there) continue;
    r->left[r->n] = l;
    r->right[r->n++] = q;
  }
}

static bpe_model *import_random(const random_model *r) {
  file.len = 0;
  add(&file, "{\"normalizer\":null,\"pre_tokenizer\":null,\"decoder\":{\"type\":\"ByteFallback\"},"
             "\"model\":{\"byte_fallback\":true,\"vocab\":{\"<0x00>\":0");
  for (unsigned c = 1; c < 256; c++) add(&file, ",\"<0x%02X>\":%u", c, c);
  for (int i = 0; i < r->n; i++) add(&file, ",\"%s\":%d", r->tokens[i], FIRST + i);
  add(&file, "},\"merges\":[");
  for (int i = r->n_chars; i < r->n; i++)
    add(&file, "%s[\"%s\",\"%s\"]", i == r->n_chars ? "" : ",", r->tokens[r->left[i]],
        r->tokens[r->right[i]]);
  add(&file, "]}}");
  return import_with(file.at, file.len, NULL, NULL, NULL);
}

/* By the definition: characters that are tokens, bytes of the others; then the merge that stands
** first in the list, leftmost, again and again. */
static size_t slow_ids(const random_model *r, const uint8_t *s, size_t len, uint32_t *ids) {
  size_t n = 0;
  for (size_t i = 0; i < len;) {
    int found = -1;
    for (int k = 0; k < r->n_chars; k++) {
      const size_t c = strlen(r->tokens[k]);
      if (c <= len - i && memcmp(s + i, r->tokens[k], c) == 0) found = k;
    }
    ids[n++] = found < 0 ? s[i] : (uint32_t)(FIRST + found);
    i += found < 0 ? 1 : strlen(r->tokens[found]);
  }
  for (int k = r->n_chars; k < r->n;) {
    size_t at = n;
    for (size_t i = 0; i + 1 < n && at == n; i++)
      if (ids[i] == (uint32_t)(FIRST + r->left[k]) && ids[i + 1] == (uint32_t)(FIRST + r->right[k]))
        at = i;
    if (at == n) {
      k++;
      continue;
    }
    ids[at] = (uint32_t)(FIRST + k);
    memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof *ids);
    n--;
    k = r->n_chars; /* it may have made an earlier pair */
  }
  return n;
}

static void test_random_characters(void) {
  static const char *const bits[] = {"a", "b",    "中",       "文",   "é", "\xf0\x9f\x98\x80",
                                     "x", "\xe4", "\xb8\xad", "\xff", "語"};
  static uint8_t source[4096];
  static uint32_t expected[4096];
  static uint8_t packed[4 * 4096];
  for (int round = 0; round < 150; round++) {
    random_model r;
    draw_model(&r);
    bpe_model *m = import_random(&r);
    bpe_coder *c = NULL;
    if (!CHECK(m != NULL)) {
      puts(last_error.text);
      return;
    }
    CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK);
    for (int k = 0; k < 20; k++) {
      const uint32_t most = 1 + unit_below(11), n_parts = k < 12 ? unit_below(30) : unit_below(900);
      size_t len = 0;
      for (uint32_t i = 0; i < n_parts; i++) {
        const char *part = bits[unit_below(most)];
        memcpy(source + len, part, strlen(part));
        len += strlen(part);
      }
      const size_t n = slow_ids(&r, source, len, expected);
      for (size_t i = 0; i < 4 * n; i++) packed[i] = (uint8_t)(expected[i / 4] >> 8 * (i % 4));
      bpe_buffer b;
      bpe_buffer_init(&b, &unit_alloc, 0);
      CHECK(bpe_encode_packed(c, source, len, 32, NULL, NULL, &b) == BPE_OK);
      CHECK_BYTES(b.bytes, b.len, packed, n * 4);
      bpe_buffer_clear(&b);
    }
    bpe_coder_free(c);
    bpe_model_free(m);
  }
}

/* ---- Refused by name ----------------------------------------------------------------------- */

static void test_refused(void) {
  static const struct {
    parts p;
    const char *what;
  } rows[] = {
      {{.pre = "{\"type\":\"Mystery\"}"}, "pre_tokenizer: not supported: Mystery"}, /* I15 */
      {{.pre = "{\"type\":\"Whitespace\"}"}, "pre_tokenizer: not supported: Whitespace"},
      {{.pre = SEQUENCE("{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"}," BYTE_LEVEL)},
       "pre_tokenizer: not supported: Punctuation"}, /* P27 */
      {{.pre = SEQUENCE(BYTE_LEVEL ",{\"type\":\"Digits\"}")}, "a step after ByteLevel: Digits"},
      {{.pre = SEQUENCE(SPLIT("x", "Removed", "false") "," NO_REGEX)},
       "Split behavior is not supported: Removed"},
      {{.pre = SEQUENCE(SPLIT("x", "Removed", "true") "," NO_REGEX)}, "Removed, inverted"},
      {{.pre = SEQUENCE(SPLIT("x", "MergedWithNext", "false") "," NO_REGEX)}, "MergedWithNext"},
      {{.pre = SEQUENCE(SPLIT("\\\\p{N}{1,3}+", "Isolated", "false") "," NO_REGEX)},
       "}+ in a regex"},
      {{.pre = SEQUENCE(SPLIT("^a", "Isolated", "false") "," NO_REGEX)}, "line anchor in a regex"},
      {{.pre = SEQUENCE(SPLIT("(", "Isolated", "false") "," NO_REGEX)}, "regex error"},
      {{.pre = SEQUENCE(SPLIT("a\\\\", "Isolated", "false") "," NO_REGEX)}, "regex error"},
      {{.pre = SEQUENCE(SPLIT("\\\\p", "Isolated", "false") "," NO_REGEX)},
       "property without { in a regex"},
      {{.pre = SEQUENCE(SPLIT("\\\\PL", "Isolated", "false") "," NO_REGEX)},
       "property without { in a regex"},
      {{.pre = SEQUENCE(SPLIT("\\\\p{", "Isolated", "false") "," NO_REGEX)}, "regex error"},
      {{.pre = SEQUENCE(SPLIT("\\\\p{L", "Isolated", "false") "," NO_REGEX)}, "regex error"},
      {{.pre = SEQUENCE(SPLIT("\\\\x{41", "Isolated", "false") "," NO_REGEX)}, "regex error"},
      {{.pre = "null"}, "neither a ByteLevel pre-tokenizer nor byte_fallback"},
      {{.pre = "7"}, "pre_tokenizer: has no type"},
      {{.model = "\"byte_fallback\":true,"}, "byte_fallback beside a ByteLevel"},
      {{.model = "\"byte_fallback\":true,\"ignore_merges\":true,", .pre = "null"},
       "model: byte_fallback beside ignore_merges"},
      {{.model = "\"end_of_word_suffix\":\"</w>\","}, "model.end_of_word_suffix is not supported"},
      {{.model = "\"continuing_subword_prefix\":\"##\","},
       "model.continuing_subword_prefix is not"},
      {{.model = "\"end_of_word_suffix\":7,"}, "model.end_of_word_suffix is not supported"},
      {{.model = "\"dropout\":0.1,"}, "model.dropout: is not supported"},
      {{.model = "\"dropout\":true,"}, "model.dropout: is not supported"},
      {{.model = "\"dropout\":[],"}, "model.dropout: is not supported"},
      {{.pre = SEQUENCE(SPLIT("a$", "Isolated", "false") "," NO_REGEX)}, "line anchor in a regex"},
      {{.pre = SEQUENCE(SPLIT("a*", "Isolated", "false") "," NO_REGEX)},
       "a match of nothing in a regex"},
      {{.pre = SEQUENCE(SPLIT("\\\\h", "Isolated", "false") "," NO_REGEX)}, "\\h in a regex"},
      {{.pre = SEQUENCE(SPLIT("[^\\\\H]", "Isolated", "false") "," NO_REGEX)}, "\\H in a regex"},
      {{.pre = SEQUENCE(SPLIT("[a[b]]", "Isolated", "false") "," NO_REGEX)},
       "class inside a class in a regex"},
      {{.pre = SEQUENCE(SPLIT("[a&&b]", "Isolated", "false") "," NO_REGEX)}, "&& in a regex"},
      {{.pre = SEQUENCE(SPLIT("(?m:a.)", "Isolated", "false") "," NO_REGEX)},
       "flag or unknown group in a regex"},
      {{.pre = SEQUENCE(SPLIT("a(?i)b|c", "Isolated", "false") "," NO_REGEX)},
       "flag or unknown group in a regex"},
      {{.pre = SEQUENCE(SPLIT("(?", "Isolated", "false") "," NO_REGEX)},
       "flag or unknown group in a regex"},
      {{.pre = SEQUENCE(SPLIT("(?#[)x$(?#])", "Isolated", "false") "," NO_REGEX)},
       "comment in a regex"},
      {{.pre = SEQUENCE(SPLIT("(*ACCEPT)", "Isolated", "false") "," NO_REGEX)}, "(* in a regex"},
      {{.pre = SEQUENCE(SPLIT("(?>a+?)b", "Isolated", "false") "," NO_REGEX)},
       "atomic group in a regex"},
      {{.pre = SEQUENCE(SPLIT("(a+)(b)?+a", "Isolated", "false") "," NO_REGEX)}, ")?+ in a regex"},
      {{.pre = SEQUENCE(SPLIT("(?i:sS)", "Isolated", "false") "," NO_REGEX)},
       "(?i: with ff, fi, fl, ss or st in a regex"},
      {{.pre = SEQUENCE(SPLIT("(?i:[)]ss)", "Isolated", "false") "," NO_REGEX)},
       "(?i: with more than letters and classes of them in a regex"},
      {{.pre = SEQUENCE(SPLIT("(?i:[])]ss)", "Isolated", "false") "," NO_REGEX)},
       "(?i: with more than letters and classes of them in a regex"},
      {{.pre = SEQUENCE(SPLIT("(?i:[a", "Isolated", "false") "," NO_REGEX)},
       "(?i: with more than letters and classes of them in a regex"},
      {{.pre = SEQUENCE(SPLIT("(?i:a", "Isolated", "false") "," NO_REGEX)}, "regex error"},
      {{.pre = SEQUENCE(SPLIT("a{2}?", "Isolated", "false") "," NO_REGEX)}, "}? in a regex"},
      {{.pre = SEQUENCE(SPLIT("(a*){2}a", "Isolated", "false") "," NO_REGEX)}, "){ in a regex"},
      {{.pre = SEQUENCE(SPLIT("a{1, 2}", "Isolated", "false") "," NO_REGEX)},
       "blank between { and } in a regex"},
      {{.pre = SEQUENCE(SPLIT("\\\\c[x$]", "Isolated", "false") "," NO_REGEX)}, "\\c in a regex"},
      {{.pre = SEQUENCE(SPLIT("(a)\\\\1", "Isolated", "false") "," NO_REGEX)},
       "back reference or octal number in a regex"},
      {{.pre = SEQUENCE(SPLIT("\\\\xc3\\\\xa9", "Isolated", "false") "," NO_REGEX)},
       "\\x of no ASCII character in a regex"},
      {{.pre = SEQUENCE(SPLIT("a\\\\x", "Isolated", "false") "," NO_REGEX)},
       "\\x of no ASCII character in a regex"},
      {{.pre = SEQUENCE("{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"Isolated\"},"
                        NO_REGEX)},
       "pattern that is no regex"},
      {{.post = "{\"type\":\"Sequence\"}"}, "post_processor: no processors in: Sequence"},
      {{.normalizer = "{\"type\":\"Lowercase\"}"}, "normalizer: not supported: Lowercase"},
      {{.normalizer = "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"\"}"},
       "not supported: Precompiled"},
      {{.normalizer = "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},\"content\":\"b\"}"},
       "pattern that is no string"},
      {{.normalizer =
            "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Sequence\",\"normalizers\":[]}]}"},
       "not supported: Sequence"},
      {{.post = "{\"type\":\"Mystery\"}"}, "post_processor: not supported: Mystery"},
      {{.decoder = "{\"type\":\"WordPiece\"}"}, "decoder: not supported: WordPiece"},
      {{.vocab = "{\"a\":\"x\",\"b\":1}"}, "id is no number"},
      {{.more = "\"special\":1,"}, "unknown key: special"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    check_refused(from(rows[i].p),
                  strcmp(rows[i].what, "regex error") == 0 ? BPE_BADREGEX : BPE_BADMODEL,
                  rows[i].what);
  static const parts taken[] = {
      {.model = "\"dropout\":0,\"end_of_word_suffix\":\"\","},
      {.model = "\"dropout\":0.0,\"end_of_word_suffix\":null,"},
      {.model = "\"dropout\":\"0\",\"continuing_subword_prefix\":\"\","},
      {.model = "\"dropout\":null,"},
      {.post = "null"},
      {.pre = SEQUENCE(SPLIT("[^]&a]+|[]b]|[[:digit:]]|&&|\\\\[(?i:c)", "Isolated", "false") ","
                       NO_REGEX)},
      {.pre = SEQUENCE(SPLIT("'(?i:[sdmt]|ll|ve|re)|(?i:[a-z]s?t)", "Isolated", "false") ","
                       NO_REGEX)},
      {.pre = SEQUENCE(SPLIT("(?:a)(?=b)(?!c)(?<=e)(?<!f)(?<g>h)", "Isolated", "false") ","
                       NO_REGEX)},
      {.pre = SEQUENCE(SPLIT("a{2}|b{ 2|c{2,}|\\\\x41\\\\x{e9}\\\\x7", "Isolated", "false") ","
                       NO_REGEX)},
  };
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    bpe_model *m = from(taken[i]);
    CHECK(m != NULL);
    bpe_model_free(m);
  }
  for (int i = 0; i < 2; i++) { /* I15, and a file cut short */
    tokenizer_json(&file, (parts){.vocab = ""});
    if (i == 0) memcpy(strstr(file.at, "\"BPE\""), "\"UNI\"", 5);
    else file.len /= 2;
    check_refused(import_with(file.at, file.len, NULL, NULL, NULL), BPE_BADMODEL,
                  i == 0 ? "only BPE is read, not: UNI" : "source: ");
  }
  tokenizer_json(&file, (parts){.vocab = ""});
  check_refused(import_with(file.at, file.len, NULL, "gpt2", NULL), BPE_MISUSE,
                "has its own pattern");
  check_refused(import_with(file.at, file.len, NULL, NULL, "[]"), BPE_MISUSE,
                "its own special tokens");
  check_refused(import_with(file.at, file.len, "a b", NULL, NULL), BPE_MISUSE, "vocab.json only");
}

/* ---- Memory and size ----------------------------------------------------------------------- */

static void exhaust(void) {
  size_t refused = 0;
  for (size_t k = 2; k < 200000; k++) {
    bpe_model *m = NULL;
    bpe_error e = {.status = BPE_OK};
    const size_t before = unit_memory.blocks;
    unit_fail(k / 2, k % 2 == 0);
    const bpe_status st = bpe_import(&unit_alloc, file.at, file.len, NULL, 0, NULL, &e, &m);
    const bool done = unit_memory.refused == 0;
    unit_fail(0, false);
    bpe_model_free(m);
    if (unit_memory.blocks != before && !CHECK(unit_memory.blocks == before)) return;
    if (done) break;
    refused += st == BPE_NOMEM;
    if (st != BPE_NOMEM && st != BPE_OK && !CHECK(st == BPE_NOMEM)) return;
  }
  CHECK(refused > 20);
}

static void test_memory(void) {
  tokenizer_json(&file, (parts){.vocab = "\"ab\":256",
                                .merges = "\"a b\"",
                                .normalizer = "{\"type\":\"NFC\"}",
                                .added = "{\"id\":257,\"content\":\"<s>\"," FLAGS(
                                    "true", "false", "false", "true", "true") "}",
                                .pre = SEQUENCE(SPLIT("a|b", "Isolated", "false") "," BYTE_LEVEL)});
  exhaust();
  sentencepiece(&file, MARKS, "null", "");
  exhaust();
}

/* F11: a hundred thousand added tokens. The test has no clock; a quadratic import would be felt. */
static void test_many_added(void) {
  enum { N = 100000 };
  text *big = calloc(1, sizeof *big);
  char *json = malloc(64 * 1024 + N * 64);
  if (big == NULL || json == NULL) return;
  tokenizer_json(big, (parts){.added = "@"});
  const char *at = strchr(big->at, '@');
  size_t n = (size_t)(at - big->at);
  memcpy(json, big->at, n);
  for (int i = 0; i < N; i++)
    n += (size_t)sprintf(json + n, "%s{\"id\":%d,\"content\":\"<t%d>\",\"special\":true}",
                         i == 0 ? "" : ",", 256 + i, i);
  strcpy(json + n, at + 1);
  check_ids(import_with(json, strlen(json), NULL, NULL, NULL), T("<t7><t99999>"), "263,100255",
            true, false);
  free(json);
  free(big);
}

int main(void) {
  test_merges();
  test_truncation();
  test_added();
  test_ids();
  test_strips();
  test_dancing();
  test_roles();
  test_late();
  test_late_edges();
  test_patterns();
  test_wrapping();
  test_sentencepiece();
  test_sentencepiece_refused();
  test_outside();
  test_long_characters();
  test_random_characters();
  test_refused();
  test_memory();
  test_many_added();
  return unit_summary();
}
