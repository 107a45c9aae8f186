/* fixtures.c - imports of other projects' files, which are not in the tree.
**
**     import_fixtures --fixtures DIR        DIR/peers/minbpe, DIR/peers/cs336, DIR/vocab
**
** minbpe's two models of its own text encode that text to ids known by count and digest, from a
** plain encoder written for the purpose. CS336's copy of GPT-2's files is the built-in gpt2, digest
** and all, with and without the #version line. Every rank file of vocab/ is the built-in encoding.
*/
#include "../../src/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "../ref_sha256.h"
#include "../test.h"

static const char *folder = "";

static void *resize(void *ctx, void *p, size_t n) {
  (void)ctx;
  if (n == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, n);
}

static const bpe_alloc alloc = {.resize = resize};

/* The file's bytes behind `room` free ones; a missing file is a failure. */
static char *read_file(const char *name, size_t room, size_t *len) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "rb");
  *len = 0;
  if (!CHECK(f != NULL)) {
    printf("  %s\n", path);
    return NULL;
  }
  fseek(f, 0, SEEK_END);
  const long size = ftell(f);
  rewind(f);
  char *text = malloc(room + (size_t)size + 1);
  if (text != NULL) *len = fread(text + room, 1, (size_t)size, f);
  fclose(f);
  return text;
}

static bpe_model *import(const char *source, size_t len, const char *merges, size_t merges_len,
                         const char *pattern, const char *specials) {
  bpe_error e = {0};
  bpe_model *m = NULL;
  const bpe_import_options o = {.pattern = pattern,
                                .pattern_len = pattern == NULL ? 0 : strlen(pattern),
                                .special_tokens = specials,
                                .special_len = specials == NULL ? 0 : strlen(specials)};
  if (source == NULL) return NULL;
  if (!CHECK(bpe_import(&alloc, source, len, merges, merges_len, &o, &e, &m) == BPE_OK))
    printf("  %s\n", e.text);
  return m;
}

static bool same_as_builtin(const bpe_model *m, const char *name) {
  uint8_t digest[2][32] = {{0}};
  bpe_model *b = NULL;
  if (m == NULL ||
      bpe_builtin_load(&alloc, bpe_builtin_find(name, strlen(name)), NULL, &b) != BPE_OK)
    return false;
  if (bpe_model_digest(m, NULL, digest[0]) != BPE_OK) return false;
  if (bpe_model_digest(b, NULL, digest[1]) != BPE_OK) return false;
  bpe_model_free(b);
  return memcmp(digest[0], digest[1], 32) == 0;
}

static void check_minbpe(const char *name, size_t tokens, const char *digest) {
  size_t len, text_len;
  char *source = read_file(name, 0, &len);
  char *text = read_file("peers/minbpe/taylorswift.txt", 0, &text_len);
  bpe_model *m = import(source, len, NULL, 0, NULL, NULL);
  bpe_coder *c = NULL;
  bpe_buffer ids;
  char hex[65];
  bpe_buffer_init(&ids, &alloc, 0);
  if (m != NULL && text != NULL && CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK)) {
    CHECK(bpe_encode_packed(c, text, text_len, 32, NULL, NULL, &ids) == BPE_OK);
    CHECK_EQ_INT(ids.len / 4, tokens);
    sha256_hex(ids.bytes, ids.len, hex);
    CHECK(strcmp(hex, digest) == 0);
    bpe_buffer back;
    bpe_buffer_init(&back, &alloc, 0);
    CHECK(bpe_export(m, "minbpe", 6, NULL, &back) == BPE_OK);
    CHECK_BYTES(back.bytes, back.len, source, len);
    bpe_buffer_clear(&back);
  }
  bpe_buffer_clear(&ids);
  bpe_coder_free(c);
  bpe_model_free(m);
  free(source);
  free(text);
}

static void check_gpt2(void) {
  static const char header[] = "#version: 0.2\n", special[] = "{\"<|endoftext|>\":50256}";
  const size_t n = sizeof header - 1;
  size_t len, merges_len;
  char *source = read_file("peers/cs336/gpt2_vocab.json", 0, &len);
  char *merges = read_file("peers/cs336/gpt2_merges.txt", n, &merges_len);
  if (source != NULL && merges != NULL) {
    bpe_model *m = import(source, len, merges + n, merges_len, "gpt2", special);
    CHECK(same_as_builtin(m, "gpt2"));
    bpe_model_free(m);
    memcpy(merges, header, n);
    m = import(source, len, merges, n + merges_len, "gpt2", special);
    CHECK(same_as_builtin(m, "gpt2"));
    bpe_model_free(m);
    /* two specials that overlap, the second appended: one double and one single */
    m = import(source, len, merges, n + merges_len, "gpt2",
               "[\"<|endoftext|>\",\"<|endoftext|><|endoftext|>\"]");
    bpe_coder *c = NULL;
    bpe_finder *all = NULL;
    bpe_buffer ids;
    bpe_buffer_init(&ids, &alloc, 0);
    static const char text[] = "Hello, how <|endoftext|><|endoftext|> are you?<|endoftext|>";
    static const char expected[] = "[15496,11,703,220,50257,389,345,30,50256]";
    if (m != NULL && CHECK(bpe_coder_new(m, 0, NULL, &c) == BPE_OK) &&
        CHECK(bpe_finder_new(m, NULL, 0, NULL, &all) == BPE_OK)) {
      const bpe_walk_options o = {.allowed = all};
      CHECK(bpe_encode_json(c, text, sizeof text - 1, &o, NULL, &ids) == BPE_OK);
      CHECK_BYTES(ids.bytes, ids.len, expected, sizeof expected - 1);
    }
    bpe_buffer_clear(&ids);
    bpe_finder_free(all);
    bpe_coder_free(c);
    bpe_model_free(m);
  }
  free(source);
  free(merges);
}

static void check_ranks(const char *name, const char *pattern, const char *specials) {
  char path[128];
  size_t len;
  snprintf(path, sizeof path, "vocab/%s.tiktoken", name);
  char *source = read_file(path, 0, &len);
  bpe_model *m = import(source, len, NULL, 0, pattern, specials);
  CHECK(same_as_builtin(m, name));
  bpe_model_free(m);
  free(source);
}

int main(int argc, char **argv) {
  if (argc != 3 || strcmp(argv[1], "--fixtures") != 0) {
    puts("usage: import_fixtures --fixtures DIR\n0 passed, 1 failed");
    return 1;
  }
  folder = argv[2];
  check_minbpe("peers/minbpe/taylorswift-regex.model", 87339,
               "c2adb998083a3907e8f8c475f10c89918be02dd99af89cc351f755808e8730e6");
  check_minbpe("peers/minbpe/taylorswift-basic.model", 95851,
               "2f24fb790c4eeaf09045016305dec2ec29f4ee2eab2368556036140ee2dee539");
  check_gpt2();
  check_ranks("r50k_base", "gpt2", "{\"<|endoftext|>\":50256}");
  check_ranks("p50k_base", "gpt2", "{\"<|endoftext|>\":50256}");
  check_ranks("cl100k_base", "cl100k",
              "{\"<|endoftext|>\":100257,\"<|fim_prefix|>\":100258,\"<|fim_middle|>\":100259,"
              "\"<|fim_suffix|>\":100260,\"<|endofprompt|>\":100276}");
  check_ranks("o200k_base", "o200k", "{\"<|endoftext|>\":199999,\"<|endofprompt|>\":200018}");
  return test_summary();
}
