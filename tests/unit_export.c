/* unit_export.c - formats written: the published files byte for byte, round trips by digest, and
** what a format cannot carry, refused by name. Also the model BLOB: damage, and every cut.
*/
#include "import_files.h"
#include "ref_sha256.h"

#define T(s) (s), sizeof(s) - 1

static text file;

static bpe_buffer exported(const bpe_model *m, const char *format, bpe_status *st) {
  bpe_buffer b;
  bpe_buffer_init(&b, &unit_alloc, 0);
  last_error = (bpe_error){.status = BPE_OK};
  *st = bpe_export(m, format, strlen(format), &last_error, &b);
  return b;
}

static bpe_model *builtin(const char *name) {
  bpe_error e = {.status = BPE_OK};
  bpe_model *m = NULL;
  CHECK(bpe_builtin_load(&unit_alloc, bpe_builtin_find(name, strlen(name)), &e, &m) == BPE_OK);
  return m;
}

/* ---- Published files ----------------------------------------------------------------------- */

static void check_published(const char *name, const char *format, const char *expected) {
  bpe_status st;
  char hex[65];
  bpe_model *m = builtin(name);
  bpe_buffer b = exported(m, format, &st);
  if (!CHECK(st == BPE_OK)) puts(last_error.text);
  sha256_hex(b.bytes, b.len, hex);
  if (!CHECK(strcmp(hex, expected) == 0)) printf("  %s %s\n", name, format);
  bpe_buffer_clear(&b);
  bpe_model_free(m);
}

static void test_published(void) {
  check_published("r50k_base", "tiktoken",
                  "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930");
  check_published("p50k_base", "tiktoken",
                  "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069");
  check_published("cl100k_base", "tiktoken",
                  "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7");
  check_published("o200k_base", "tiktoken",
                  "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d");
  check_published("gpt2", "gpt2-vocab",
                  "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783");
  check_published("gpt2", "gpt2-merges",
                  "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5");
}

/* The digests of the built-in encodings, which stored data refers to. They were computed apart from
** this code: a script merged the published rank files and wrote model_digest.c's encoding. */
static void test_digests(void) {
  static const char *const rows[][2] = {
      {"gpt2", "e5920db9ffb4f583d54d6e07b8aec1ffce3502561e6fb869c9a1615b56f3ffd4"},
      {"r50k_base", "e5920db9ffb4f583d54d6e07b8aec1ffce3502561e6fb869c9a1615b56f3ffd4"},
      {"p50k_base", "f4b7b40d3f72c33205c6be689bfa5bde57ac15803a71b0d7a98e930f9d853fa8"},
      {"p50k_edit", "a8695fd2cb1bd488f5077cb1c8872bed4bf8a8e5653fdacb27b96106779f74e2"},
      {"cl100k_base", "c4cd8aa7c2d5731acfa1dcd651c9fe963eb683343048ec3104442bc5df4e7d7c"},
      {"o200k_base", "ab299188e8b02f6a390a273505c6bcad84005fb28ca099d52cce95cad7b9e03d"},
      {"o200k_harmony", "c6e170311503bd4a67e7020e30b974c46259b6996e7604c5182f3eb7b1221ca2"},
  };
  for (int i = 0; bpe_builtin_name(i) != NULL; i++) {
    uint8_t digest[32];
    char hex[65];
    bpe_model *m = builtin(bpe_builtin_name(i));
    if (!CHECK(i < 7 && m != NULL)) return;
    CHECK(bpe_model_digest(m, NULL, digest) == BPE_OK);
    for (int k = 0; k < 32; k++) snprintf(hex + 2 * k, 3, "%02x", digest[k]);
    CHECK(strcmp(bpe_builtin_name(i), rows[i][0]) == 0);
    CHECK_BYTES(hex, 64, rows[i][1], 64);
    bpe_model_free(m);
  }
}

/* ---- Round trips --------------------------------------------------------------------------- */

/* Every format either gives a text that means the same model again, which bpe_export itself makes
** sure of, or an error that names the format; which it is, is said here: "mthvgb". */
static void check_formats(bpe_model *m, const char *can) {
  static const char *const names[] = {"model",      "tiktoken",    "huggingface",
                                      "gpt2-vocab", "gpt2-merges", "minbpe"};
  if (!CHECK(m != NULL)) {
    printf("  %s\n", last_error.text);
    return;
  }
  for (int i = 0; i < 6; i++) {
    bpe_status st;
    CHECK(strcmp(bpe_format_name(i), names[i]) == 0);
    bpe_buffer b = exported(m, names[i], &st);
    const bool expected = strchr(can, "mthvgb"[i]) != NULL;
    if (!CHECK((st == BPE_OK) == expected)) printf("  %s: %s\n", names[i], last_error.text);
    if (st != BPE_OK) {
      CHECK(st == BPE_BADMODEL && b.len == 0);
      CHECK(strstr(last_error.text, " cannot carry ") != NULL);
    }
    bpe_model *back = NULL;
    bpe_error e = {.status = BPE_OK};
    if (st == BPE_OK && (i == 0 || i == 2 || i == 5)) { /* those that say everything themselves */
      CHECK(bpe_import(&unit_alloc, b.bytes, b.len, NULL, 0, NULL, &e, &back) == BPE_OK);
      CHECK(back != NULL && same_digest(m, back));
    }
    bpe_model_free(back);
    bpe_buffer_clear(&b);
  }
  bpe_model_free(m);
}

static bpe_model *plain(const char *json) {
  return import_with(json, strlen(json), NULL, NULL, NULL);
}

static void test_lacking_bytes(void) {
  bpe_status st;
  bpe_model *m = plain("{\"pattern\":\"gpt2\",\"vocab\":{\"0\":\"61\"},\"merges\":[]}");
  if (!CHECK(m != NULL)) return;
  bpe_buffer b = exported(m, "minbpe", &st);
  CHECK(unit_says(&last_error, BPE_BADMODEL, 0,
                  "minbpe cannot carry a vocabulary that lacks bytes: "
                  "there is no token for byte 0x00"));
  bpe_buffer_clear(&b);
  bpe_model_free(m);
}

/* So many ids that some are looked for where others are. */
static void test_many_merges(void) {
  enum { N = 3000 };
  bpe_buffer json;
  bpe_buffer_init(&json, &unit_alloc, 0);
  static const char head[] = "{\"pattern\":\"gpt2\",\"merges\":";
  bpe_buffer_append(&json, head, sizeof head - 1);
  for (unsigned i = 0; i < N; i++) {
    char pair[24];
    const int n = snprintf(pair, sizeof pair, "%c[%u,%u]", i == 0 ? '[' : ',', i / 60, 64 + i % 60);
    bpe_buffer_append(&json, pair, (size_t)n);
  }
  bpe_buffer_append(&json, "]}", 2);
  check_formats(import_with((const char *)json.bytes, json.len, NULL, NULL, NULL), "mthvgb");
  bpe_buffer_clear(&json);
}

/* A token that stands before and after a text, or twice, is listed once: keys are not repeated. */
static void test_names_once(void) {
  static const char *const around[] = {
      "\"bos\":[\"<s>\"],\"eos\":[\"<s>\"]",
      "\"bos\":[\"<s>\",\"<s>\"],\"eos\":[]",
      "\"bos\":[],\"eos\":[\"<s>\",\"<s>\"]",
      "\"bos\":[\"<t>\",\"<s>\"],\"eos\":[\"<u>\",\"<s>\"]",
  };
  for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
    char json[300];
    bpe_status st;
    snprintf(json, sizeof json,
             "{\"pattern\":\"none\",\"merges\":[],\"special_tokens\":[\"<s>\",\"<t>\",\"<u>\"],%s}",
             around[i]);
    bpe_model *m = plain(json);
    if (!CHECK(m != NULL)) return;
    bpe_buffer b = exported(m, "huggingface", &st);
    bpe_buffer_append(&b, "", 1);
    const char *first = st == BPE_OK ? strstr((const char *)b.bytes, "\"<s>\":{\"id\"") : NULL;
    CHECK(first != NULL && strstr(first + 1, "\"<s>\":{\"id\"") == NULL);
    bpe_buffer_clear(&b);
    check_formats(m, "mh");
  }
}

static void test_round_trips(void) {
  check_formats(builtin("p50k_edit"), "mthvg");
  check_formats(plain("{\"pattern\":\"gpt2\",\"merges\":[[97,98],[256,99]]}"), "mthvgb");
  check_formats(plain("{\"pattern\":\"none\",\"merges\":[],\"special_tokens\":[\"<|ab|>\"]}"),
                "mthvgb");
  /* What Python takes for white space, minbpe takes off or splits at. */
  static const char *const spaced[] = {"a b",      " a",       "a\\t",     "a\\u00a0",
                                       "\\u3000a", "a\\u001c", "a\\u2028b"};
  for (size_t i = 0; i < sizeof spaced / sizeof *spaced; i++) {
    char json[100];
    snprintf(json, sizeof json, "{\"pattern\":\"none\",\"merges\":[],\"special_tokens\":[\"%s\"]}",
             spaced[i]);
    check_formats(plain(json), "mthvg");
  }
  check_formats(plain("{\"regex\":\"\\u3000|.\",\"merges\":[[97,98]]}"), "mthvg");
  check_formats(plain("{\"regex\":\".|\\u000b\",\"merges\":[[97,98]]}"), "mthvg");
  /* A published regex, given as one, is read as its name: another digest. */
  check_formats(plain("{\"regex\":\"'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+|"
                      " ?[^\\\\s\\\\p{L}\\\\p{N}]+|\\\\s+(?!\\\\S)|\\\\s+\",\"merges\":[[97,98]]}"),
                "mtvg");
  check_formats(
      plain("{\"regex\":\"\\\\d+|.\",\"merges\":[[97,98]],\"special_tokens\":[\"x\\ny\"]}"),
      "mthvg");
  check_formats(plain("{\"regex\":\"\\\\w+|.\",\"merges\":[[97,98]]}"),
                "mtvgb"); /* read otherwise */
  check_formats(plain("{\"pattern\":\"deepseek3\",\"merges\":[[97,98]]}"), "mthvg");
  check_formats(plain("{\"pattern\":\"tekken\",\"merges\":[[97,98]],\"byte_order\":\"gpt2\"}"),
                "mthvg");
  check_formats(plain("{\"pattern\":\"llama3\",\"merges\":[[97,98]],\"special_tokens\":[\"<s>\"],"
                      "\"special_ids\":\"first\"}"),
                "mthvg");
  check_formats(plain("{\"pattern\":\"gpt2\",\"merges\":[[97,98]],\"special_tokens\":[\"<s>\"],"
                      "\"bos\":[\"<s>\"],\"eos\":[\"<s>\"]}"),
                "mh");
  /* ids of merges that do not rise with rank */
  check_formats(plain("{\"pattern\":\"gpt2\",\"vocab\":{\"0\":\"61\",\"1\":\"62\",\"3\":\"6161\","
                      "\"2\":\"6262\"},"
                      "\"merges\":[[\"61\",\"61\"],[\"62\",\"62\"]]}"),
                "mhvg");
  /* two merges to one token */
  check_formats(
      plain("{\"pattern\":\"gpt2\",\"vocab\":{\"0\":\"61\",\"1\":\"6161\",\"2\":\"616161\"},"
            "\"merges\":[[\"61\",\"61\"],[\"6161\",\"61\"],[\"61\",\"6161\"]]}"),
      "mhvg");
  /* a token out of reach, kept whole or not */
  check_formats(plain("{\"pattern\":\"gpt2\",\"vocab\":{\"0\":\"61\",\"1\":\"6162\",\"2\":\"62\"},"
                      "\"merges\":[]}"),
                "mvg");
  check_formats(plain("{\"pattern\":\"gpt2\",\"vocab\":{\"0\":\"61\",\"1\":\"6162\",\"2\":\"62\"},"
                      "\"merges\":[],\"whole\":true}"),
                "mhvg");
  ranks(&file, "YmM= 256\nYWI= 257\nY2Q= 258\nYWJjZA== 259\n"); /* every split, whole pieces */
  check_formats(import_with(file.at, file.len, NULL, "gpt2", NULL), "mthvg");
  ranks(&file, "YmM= 256\nYWJjZA== 257\nYWI= 258\nY2Q= 259\neHk= 260\neXo= 261\neHl6 262\n");
  check_formats(import_with(file.at, file.len, NULL, "gpt2", NULL), "mt");
  check_formats(plain("{\"pattern\":\"gpt2\",\"merges\":[],\"special_tokens\":[\"é\"]}"), "mtb");
}

/* Names that the vocabulary of a tokenizer.json spells otherwise, or not at all. */
static void test_spellings(void) {
  static const struct {
    uint32_t first;              /* id; 256 is the next */
    const char *names[2], *says; /* NULL: it is written and read again */
  } rows[] = {
      {256, {"\n", " "}, NULL},
      {300, {"\n", " "}, NULL},
      {256, {"<ü>", "<s>"}, NULL},
      {300, {"|é|", "‹ü>"}, NULL},
      {256, {"<s>", "<Ã©>"}, NULL},
      {256, {"<Ã©>", "<s>"}, NULL},
      {300, {"<s>", "<Ã©>"}, "token 301: <Ã©>"},
      {256, {"<s>", "é"}, "token 257 is spelled as token 233 is: é"},
      {300, {"Ġ", "é"}, "token 300 is spelled as token 32 is: Ġ"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    bpe_status st;
    bpe_builder *builder = unit_builder("gpt2");
    unit_special(builder, rows[i].first, rows[i].names[0]);
    unit_special(builder, rows[i].first + 1, rows[i].names[1]);
    bpe_model *m = unit_finish(builder), *back = NULL;
    if (m == NULL) return;
    bpe_buffer b = exported(m, "huggingface", &st);
    if (rows[i].says == NULL) {
      if (CHECK(st == BPE_OK)) back = import_with((const char *)b.bytes, b.len, NULL, NULL, NULL);
      CHECK(back != NULL && same_digest(m, back));
    } else if (!CHECK(st == BPE_BADMODEL && strstr(last_error.text, rows[i].says) != NULL)) {
      puts(last_error.text);
    }
    bpe_buffer_clear(&b);
    bpe_model_free(back);
    bpe_model_free(m);
  }
}

#define FLAGS                                                                                      \
  "\"single_word\":true,\"lstrip\":true,\"rstrip\":true,\"normalized\":false,\"special\":false"

static void test_full_models(void) {
  tokenizer_json(
      &file,
      (parts){
          .added = "{\"id\":258,\"content\":\"<m>\"," FLAGS
                   "},{\"id\":259,\"content\":\"中▁\",\"special\":true},"
                   "{\"id\":260,\"content\":\"late\",\"normalized\":true,\"special\":false}",
          .normalizer =
              "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":\"NFD\"}]}",
          .vocab = "\"ab\":256,\"中\":257",
          .merges = "[\"a\",\"b\"]",
          .pre = "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\",\"individual_"
                 "digits\":true}," BYTE_LEVEL "]}",
          .post = "{\"type\":\"BertProcessing\",\"cls\":[\"\",259],\"sep\":[\"\",256]}"});
  check_formats(import_with(file.at, file.len, NULL, NULL, NULL), "mh");
  tokenizer_json(
      &file,
      (parts){.pre = "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"use_regex\":true}",
              .added = "{\"id\":256,\"content\":\"<m>\",\"normalized\":true,\"special\":true}"});
  check_formats(import_with(file.at, file.len, NULL, NULL, NULL), "mh");
  file.len = 0;
  add(&file,
      "{\"added_tokens\":[{\"id\":270,\"content\":\"▁▁\",\"normalized\":false,\"special\":false}],"
      "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":"
      "\"▁\"},"
      "{\"type\":\"Replace\",\"pattern\":{\"String\":\" "
      "\"},\"content\":\"▁\"}]},\"pre_tokenizer\":null,"
      "\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{"
      "\"String\":\"▁\"},"
      "\"content\":\" "
      "\"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" \","
      "\"start\":1,\"stop\":0}]},\"model\":{\"byte_fallback\":true,\"vocab\":{\"▁\":260,\"▁▁\":270,"
      "\"x y\":271");
  for (unsigned c = 0; c < 256; c++) add(&file, ",\"<0x%02X>\":%u", c, 3 + c);
  add(&file, "},\"merges\":[\"▁ ▁\"]}}");
  check_formats(import_with(file.at, file.len, NULL, NULL, NULL), "mh");
}

/* What stands before the vocabulary of a tokenizer.json, and gives the model up. */
static void check_frame(bpe_model *m, const char *expected) {
  bpe_status st;
  if (!CHECK(m != NULL)) return;
  bpe_buffer b = exported(m, "huggingface", &st);
  bpe_buffer_append(&b, "", 1);
  char *vocab = st == BPE_OK ? strstr((char *)b.bytes, "\"vocab\":{") : NULL;
  if (CHECK(vocab != NULL)) {
    *vocab = 0;
    if (!CHECK(strcmp((char *)b.bytes, expected) == 0))
      printf("  %s\n  expected\n  %s\n", (char *)b.bytes, expected);
  }
  bpe_buffer_clear(&b);
  bpe_model_free(m);
}

/* Whole texts: a loader may mind what a round trip through our own reader does not. */
static void test_frames(void) {
  check_frame(
      plain("{\"pattern\":\"gpt2\",\"merges\":[[97,98]],\"special_tokens\":[\"<s>\"],"
            "\"bos\":[\"<s>\"]}"),
      "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[{\"id\":257,"
      "\"content\":\"<s>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,"
      "\"normalized\":false,\"special\":true}],\"normalizer\":null,\"pre_tokenizer\":{"
      "\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true},"
      "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":"
      "\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\",\"type_id\":0}}],\"pair\":["
      "{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},"
      "{\"Sequence\":{\"id\":\"A\",\"type_id\":0}},"
      "{\"Sequence\":{\"id\":\"B\",\"type_id\":1}}],\"special_tokens\":{\"<s>\":{\"id\":\"<s>\","
      "\"ids\":[257],\"tokens\":[\"<s>\"]}}},\"decoder\":{\"type\":\"ByteLevel\","
      "\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},\"model\":{"
      "\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
      "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,"
      "\"ignore_merges\":false,");
  for (int strip = 0; strip < 3; strip++) {
    char expected[1000], strips[80] = "";
    if (strip > 0)
      snprintf(strips, sizeof strips,
               ",{\"type\":\"Strip\",\"content\":\" \",\"start\":%d,\"stop\":0}", strip);
    snprintf(expected, sizeof expected,
             "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[],"
             "\"normalizer\":null,\"pre_tokenizer\":null,\"post_processor\":null,\"decoder\":{"
             "\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},"
             "{\"type\":\"Fuse\"}%s]},"
             "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,"
             "\"continuing_subword_prefix\":null,\"end_of_word_suffix\":null,\"fuse_unk\":true,"
             "\"byte_fallback\":true,\"ignore_merges\":false,",
             strips);
    file.len = 0;
    add(&file,
        "{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},"
        "{\"type\":\"Fuse\"}%s]},\"model\":{\"byte_fallback\":true,\"vocab\":{\"a\":0",
        strips);
    for (unsigned c = 0; c < 256; c++) add(&file, ",\"<0x%02X>\":%u", c, 1 + c);
    add(&file, "},\"merges\":[]}}");
    check_frame(import_with(file.at, file.len, NULL, NULL, NULL), expected);
  }
}

/* ---- The BLOB ------------------------------------------------------------------------------ */

static void check_blob_refused(const uint8_t *bytes, size_t len) {
  bpe_model *m = NULL;
  bpe_error e = {.status = BPE_OK};
  const bpe_status st = bpe_model_parse(&unit_alloc, bytes, len, &e, &m);
  CHECK(st == BPE_BADMODEL && m == NULL && strncmp(e.text, "model: ", 7) == 0);
  bpe_model_free(m);
}

/* Numbers end within 64 bits and within what is asked for; the layout's version is the first. */
static void test_blob_numbers(void) {
  static const struct {
    const char *number, *says;
    size_t len;
    uint64_t at;
  } rows[] = {
      {"", "model: ends too early at byte 8", 0, 8},
      {"\x80", "model: ends too early at byte 9", 1, 9},
      {"\x81", "model: ends too early at byte 9", 1, 9},
      {"\x02", "model: layout version is 2, not 1", 1, 8},
      {"\xff\xff\xff\xff\x0f", "model: layout version is 4294967295, not 1", 5, 8},
      {"\x80\x80\x80\x80\x10", "model: number out of range at byte 13", 5, 13},
      {"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", "model: ends too early", 10, 18},
      {"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x01", "model: number out of range at byte 18", 10, 18},
      {"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x02", "model: number out of range at byte 18", 10, 18},
      {"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80", "model: number out of range at byte 18", 10, 18},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char blob[20] = "bpemodel";
    bpe_model *m = NULL;
    bpe_error e = {.status = BPE_OK};
    memcpy(blob + 8, rows[i].number, rows[i].len);
    CHECK_EQ_INT(bpe_model_parse(&unit_alloc, blob, 8 + rows[i].len, &e, &m), BPE_BADMODEL);
    CHECK(unit_says(&e, BPE_BADMODEL, rows[i].at, rows[i].says));
  }
}

/* Counts of merges of any size come back, and are 0 where none was given. */
static void test_blob_counts(void) {
  static const uint64_t counts[] = {0, 0, 1, UINT64_MAX, 0, UINT64_C(1) << 63, 127, 128};
  enum { N = sizeof counts / sizeof *counts };
  bpe_builder *b = unit_builder("none");
  for (uint32_t i = 0; i < N; i++) {
    const uint8_t pair[2] = {(uint8_t)('a' + i), 'z'};
    bpe_builder_token(b, 256 + i, BPE_TOKEN, pair, 2);
    bpe_builder_merge(b, i, pair[0], pair[1], 256 + i, counts[i]);
  }
  bpe_model *m = unit_finish(b), *back = NULL;
  bpe_status st;
  if (m == NULL) return;
  bpe_buffer blob = exported(m, "model", &st);
  CHECK(st == BPE_OK && bpe_model_parse(&unit_alloc, blob.bytes, blob.len, NULL, &back) == BPE_OK);
  for (uint32_t i = 0; i < N; i++) {
    CHECK(bpe_model_merge(m, i).count == counts[i]);
    CHECK(back != NULL && bpe_model_merge(back, i).count == counts[i]);
  }
  bpe_buffer_clear(&blob);
  bpe_model_free(back);
  bpe_model_free(m);
}

static void test_blob(void) {
  bpe_builder *b = unit_builder("cl100k");
  bpe_builder_token(b, 256, BPE_TOKEN, "ab", 2);
  bpe_builder_merge(b, 9, 'a', 'b', 256, 77);
  bpe_builder_token(b, BPE_NONE - 1, BPE_ADDED, "+", 1);
  bpe_builder_stats(b, "{\"rows\":1}", 10);
  bpe_model *m = unit_finish(b), *back = NULL;
  bpe_error e = {.status = BPE_OK};
  bpe_status st;
  if (m == NULL) return;
  bpe_buffer blob = exported(m, "model", &st);
  CHECK(st == BPE_OK);
  CHECK(bpe_model_parse(&unit_alloc, blob.bytes, blob.len, &e, &back) == BPE_OK);
  if (back != NULL) {
    bpe_info info;
    bpe_model_info(back, &info);
    CHECK_BYTES(info.stats, info.stats_len, "{\"rows\":1}", 10);
    CHECK(bpe_model_merge(back, 0).count == 77 && bpe_model_merge(back, 0).rank == 9);
    CHECK(same_digest(m, back));
  }
  bpe_model_free(back);
  for (size_t len = 0; len < blob.len; len++) check_blob_refused(blob.bytes, len);
  for (size_t i = 0; i < blob.len; i++) {
    blob.bytes[i] ^= 1;
    check_blob_refused(blob.bytes, blob.len);
    blob.bytes[i] ^= 1;
  }
  bpe_buffer_append(&blob, "", 1);
  check_blob_refused(blob.bytes, blob.len);
  for (size_t k = 1;; k++) { /* every allocation fails once */
    unit_fail(k, false);
    st = bpe_model_parse(&unit_alloc, blob.bytes, blob.len - 1, NULL, &back);
    const bool done = unit_memory.refused == 0;
    unit_fail(0, false);
    if (!CHECK(st == (done ? BPE_OK : BPE_NOMEM))) break;
    bpe_model_free(back);
    if (done) break;
  }
  bpe_buffer_clear(&blob);
  bpe_model_free(m);
}

/* Settings alone, as a store keeps them. */
static void test_settings(void) {
  static const char *const bad[][2] = {
      {"", "premature EOF"},
      {"[]", "not a JSON object"},
      {"{}", "no format"},
      {"{\"format\":2}", "format is later than this version's 1: 2"},
      {"{\"format\":1,\"bos\":[7.5]}", "bad value of bos"},
      {"{\"format\":1,\"bos\":7}", "bad value of bos"},
      {"{\"format\":1,\"bos\":[999]}", "BOS is no token: id 999"},
      {"{\"format\":1,\"whole\":1}", "bad value of whole"},
      {"{\"format\":1,\"regexp\":true}", "unknown key: regexp"},
      {"{\"format\":1,\"format\":1}", "key given twice: format"},
      {"{\"format\":1,\"lstrip\":[97]}", "flag is not for this kind of token: id 97"},
      {"{\"format\":1,\"unused\":[900]}", "flag is for no token: id 900"},
      {"{\"format\":1,\"unused\":[300]}", "flag is not for this kind of token: id 300"},
      {"{\"format\":1,\"fallback\":[97]}", "fallback is for single bytes beside characters"},
      {"{\"format\":1,\"names\":[[97,\"x\"]]}", "name is for no special token: id 97"},
      {"{\"format\":1,\"names\":[[300,\"x\"],[300,\"y\"]]}", "two names for one token: id 300"},
      {"{\"format\":1,\"names\":[[300,\"\"]]}", "bad value of names"},
      {"{\"format\":1,\"names\":[300]}", "bad value of names"},
      {"{\"format\":1,\"names\":{\"300\":\"x\"}}", "bad value of names"},
      {"{\"format\":1,\"names\":[[300]]}", "bad value of names"},
      {"{\"format\":1,\"names\":[[300,\"x\",\"y\"]]}", "bad value of names"},
      {"{\"format\":1,\"names\":[[\"300\",\"x\"]]}", "bad value of names"},
      {"{\"format\":1,\"names\":[[300,7]]}", "bad value of names"},
      {"{\"format\":1,\"normalizer\":[\"NFC\"]}", "bad value of normalizer"},
      {"{\"format\":1,\"normalizer\":[{\"replace\":[\"\",\"x\"]}]}", "bad value of normalizer"},
      {"{\"format\":1,\"normalizer\":[]}", "bad value of normalizer"},
      {"{\"format\":1,\"strip\":-1}", "bad value of strip"},
      {"{\"format\":1,\"regex\":true}", NULL},
      {"{\"format\":1,\"whole\":false,\"merging\":[300],\"lstrip\":[300],\"names\":[[300,\"é\"]],"
       "\"normalizer\":[\"nfkc\",{\"replace\":[\"a\",\"\"]},{\"prepend\":\"x\"},\"prefix_space\"],"
       "\"bos\":[97],\"strip\":2}",
       NULL},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    bpe_model *m = NULL;
    bpe_error e = {.status = BPE_OK};
    bpe_builder *b = bpe_builder_new(&unit_alloc);
    bpe_builder_settings(b, "none", 4, bad[i][0], strlen(bad[i][0]));
    bpe_builder_token(b, 97, BPE_TOKEN, "a", 1);
    unit_special(b, 300, "<s>");
    const bpe_status st = bpe_builder_finish(b, &e, &m);
    if (bad[i][1] != NULL) {
      CHECK(st == BPE_BADMODEL);
      if (!CHECK(strstr(e.text, bad[i][1]) != NULL)) printf("  %s: %s\n", bad[i][0], e.text);
    } else if (!CHECK(st == BPE_OK)) {
      printf("  %s: %s\n", bad[i][0], e.text);
    }
    bpe_model_free(m);
  }
}

static void test_misuse(void) {
  bpe_status st;
  bpe_model *m = unit_tiny("none");
  bpe_buffer b = exported(m, "gguf", &st);
  CHECK(unit_says(&last_error, BPE_MISUSE, 0, "no such format: gguf") && st == BPE_MISUSE);
  CHECK(bpe_format_name(6) == NULL && bpe_format_name(-1) == NULL);
  bpe_buffer_clear(&b);
  for (int i = 0; bpe_format_name(i) != NULL; i++) {
    for (size_t k = 1; k < 10000; k++) { /* a failing allocation is no refusal */
      bpe_error e = {.status = BPE_OK};
      unit_fail(k, false);
      bpe_buffer_init(&b, &unit_alloc, 0);
      st = bpe_export(m, bpe_format_name(i), strlen(bpe_format_name(i)), &e, &b);
      const bool done = unit_memory.refused == 0;
      unit_fail(0, false);
      bpe_buffer_clear(&b);
      if (done) break;
      if (!CHECK(st == BPE_NOMEM || st == BPE_OK)) {
        printf("  %s allocation %zu: %s\n", bpe_format_name(i), k, e.text);
        break;
      }
    }
  }
  bpe_model_free(m);
}

int main(void) {
  test_published();
  test_digests();
  test_round_trips();
  test_spellings();
  test_lacking_bytes();
  test_names_once();
  test_many_merges();
  test_full_models();
  test_frames();
  test_blob();
  test_blob_numbers();
  test_blob_counts();
  test_settings();
  test_misuse();
  return unit_summary();
}
