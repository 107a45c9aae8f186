/* models.c - public tokenizer.json files against the ids of the library that they belong to.
**
**     models DIR VECTORS EXPORTS NAME...      DIR/NAME/tokenizer.json, VECTORS/hf_NAME.jsonl
**
** Every row of a vector file is encoded with all special tokens allowed, which is how the rows were
** made, also as a document where the row says what that gives, and its ids are decoded, with and
** without special tokens. The file is imported, written as a model, and read back: everything is
** asked of the model that came back. Rows known to differ are listed in `excused`, with the reason;
** one of them that does not differ any more is a failure too. Each model is also written to
** EXPORTS/hf_NAME.json, and so are some built-in encodings, for hf_export.py to load.
*/
#define _POSIX_C_SOURCE 200809L

#include "models.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "../test.h"

/* `n` of the rows whose ids differ because the library normalizes by tables of an old Unicode:
** claude 3201 has U+107B6, whose compatibility mapping is newer. */
typedef struct excuse {
  const char *name;
  int row;
} excuse;

static const excuse excused[] = {{"claude", 3201}};

static void *resize(void *ctx, void *p, size_t n) {
  (void)ctx;
  if (n == 0) {
    free(p);
    return NULL;
  }
  return realloc(p, n);
}

static const bpe_alloc alloc = {.resize = resize};

static char *read_file(const char *path, size_t *len) {
  FILE *f = fopen(path, "rb");
  if (f == NULL) return NULL;
  fseek(f, 0, SEEK_END);
  const long size = ftell(f);
  rewind(f);
  char *text = malloc((size_t)size + 1);
  *len = text == NULL ? 0 : fread(text, 1, (size_t)size, f);
  if (text != NULL) text[*len] = 0;
  fclose(f);
  return text;
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool is_excused(const char *name, int row) {
  for (size_t i = 0; i < sizeof excused / sizeof *excused; i++)
    if (excused[i].row == row && strcmp(excused[i].name, name) == 0) return true;
  return false;
}

/* Import, BLOB and back; NULL after a failed check. */
static bpe_model *load(const char *dir, const char *name) {
  char path[4096];
  size_t len;
  bpe_error e = {0};
  bpe_model *m = NULL, *back = NULL;
  snprintf(path, sizeof path, "%s/%s/tokenizer.json", dir, name);
  char *text = read_file(path, &len);
  if (!CHECK(text != NULL)) return NULL;
  const double start = seconds();
  if (!CHECK(bpe_import(&alloc, text, len, NULL, 0, NULL, &e, &m) == BPE_OK)) puts(e.text);
  printf("%s: %.2f s for %.1f MB\n", name, seconds() - start, (double)len / 1e6);
  free(text);
  if (m == NULL) return NULL;
  bpe_buffer blob;
  bpe_buffer_init(&blob, &alloc, 0);
  uint8_t digest[2][32] = {{0}};
  CHECK(bpe_model_digest(m, NULL, digest[0]) == BPE_OK);
  CHECK(bpe_model_write(m, &e, &blob) == BPE_OK);
  if (!CHECK(bpe_model_parse(&alloc, blob.bytes, blob.len, &e, &back) == BPE_OK)) puts(e.text);
  bpe_buffer_clear(&blob);
  bpe_model_free(m);
  if (back == NULL) return NULL;
  CHECK(bpe_model_digest(back, NULL, digest[1]) == BPE_OK);
  CHECK(memcmp(digest[0], digest[1], 32) == 0);
  return back;
}

static uint32_t *list_of(const json_t *ids) {
  uint32_t *list = malloc((json_array_size(ids) + 1) * sizeof *list);
  for (size_t i = 0; i < json_array_size(ids); i++)
    list[i] = (uint32_t)json_integer_value(json_array_get(ids, i));
  return list;
}

/* Whether the text has exactly these ids, and its pieces tile it. */
static bool same_ids(bpe_coder *c, const bpe_finder *allowed, const json_t *text, const json_t *ids,
                     bool document) {
  bpe_error e = {0};
  bpe_walk *w;
  bpe_piece p;
  bpe_status st;
  size_t n = 0, at = 0;
  bool same = true;
  const bpe_walk_options o = {.allowed = allowed, .document = document};
  if (bpe_walk_new(c, &e, &w) != BPE_OK) return false;
  st = bpe_walk_start(w, json_string_value(text), json_string_length(text), &o, &e);
  while (st == BPE_OK && (st = bpe_walk_next(w, &p, &e)) == BPE_OK) {
    same = same && p.start == at && p.stop >= p.start;
    at = p.stop;
    for (size_t i = 0; i < p.n_ids; i++, n++)
      same = same && n < json_array_size(ids) &&
             p.ids[i] == (uint32_t)json_integer_value(json_array_get(ids, n));
    if (p.stops != NULL && p.n_ids > 0) same = same && p.stops[p.n_ids - 1] == p.stop;
  }
  if (st != BPE_DONE) printf("  %s\n", e.text);
  bpe_walk_free(w);
  uint64_t count = 0;
  if (bpe_count(c, json_string_value(text), json_string_length(text), &o, &e, &count) != BPE_OK)
    return false;
  return same && st == BPE_DONE && n == json_array_size(ids) && count == n &&
         at == json_string_length(text);
}

static bool same_text(const bpe_model *m, const json_t *ids, bpe_specials specials,
                      const json_t *text) {
  bpe_error e = {0};
  bpe_buffer raw, out;
  uint32_t *list = list_of(ids);
  bpe_buffer_init(&raw, &alloc, 0);
  bpe_buffer_init(&out, &alloc, 0);
  bpe_status st = bpe_decode(m, list, json_array_size(ids), specials, false, NULL, NULL, &e, &raw);
  if (st == BPE_OK) st = bpe_utf8_repair(raw.bytes, raw.len, BPE_REPAIR_REPLACE, &e, &out);
  const bool same = st == BPE_OK && out.len == json_string_length(text) &&
                    (out.len == 0 || memcmp(out.bytes, json_string_value(text), out.len) == 0);
  free(list);
  bpe_buffer_clear(&raw);
  bpe_buffer_clear(&out);
  return same;
}

static void check_row(const bpe_model *m, bpe_coder *c, const bpe_finder *all, const char *name,
                      const json_t *row) {
  const int n = (int)json_integer_value(json_object_get(row, "n"));
  const json_t *text = json_object_get(row, "text"), *ids = json_object_get(row, "ids");
  const json_t *document = json_object_get(row, "ids_with_special");
  const json_t *decoded = json_object_get(row, "decoded");
  const json_t *skipped = json_object_get(row, "decoded_skip_special");
  if (decoded == NULL) decoded = text;
  if (skipped == NULL) skipped = decoded;
  const bool same = same_ids(c, all, text, ids, false);
  if (is_excused(name, n)) {
    if (!CHECK(!same)) printf("  %s row %d is right now\n", name, n);
  } else {
    if (!CHECK(same)) {
      printf("  %s row %d: ", name, n);
      json_dumpf(row, stdout, JSON_ENSURE_ASCII);
      bpe_buffer b;
      bpe_buffer_init(&b, &alloc, 0);
      const bpe_walk_options o = {.allowed = all};
      if (bpe_encode_json(c, json_string_value(text), json_string_length(text), &o, NULL, &b) ==
          BPE_OK)
        printf("\n  is %.*s\n", (int)b.len, (const char *)b.bytes);
      bpe_buffer_clear(&b);
    }
    if (document != NULL) CHECK(same_ids(c, all, text, document, true));
  }
  if (!CHECK(same_text(m, ids, BPE_SPECIALS_TEXT, decoded))) printf("  %s row %d\n", name, n);
  if (!CHECK(same_text(m, ids, BPE_SPECIALS_SKIP, skipped))) printf("  %s row %d\n", name, n);
}

static void write_export(const bpe_model *m, const char *dir, const char *prefix,
                         const char *name) {
  char path[4096];
  bpe_error e = {0};
  bpe_buffer b;
  bpe_buffer_init(&b, &alloc, 0);
  if (!CHECK(bpe_export(m, "huggingface", 11, &e, &b) == BPE_OK)) puts(e.text);
  snprintf(path, sizeof path, "%s/%s%s.json", dir, prefix, name);
  FILE *f = fopen(path, "wb");
  if (CHECK(f != NULL)) {
    CHECK(fwrite(b.bytes, 1, b.len, f) == b.len);
    CHECK(fclose(f) == 0);
  }
  bpe_buffer_clear(&b);
}

static void check_model(const char *dir, const char *vectors, const char *exports,
                        const char *name) {
  char path[4096];
  size_t len;
  bpe_error e = {0};
  bpe_coder *c = NULL;
  bpe_finder *all = NULL;
  bpe_model *m = load(dir, name);
  if (m == NULL) return;
  CHECK(bpe_coder_new(m, 0, &e, &c) == BPE_OK);
  CHECK(bpe_finder_new(m, NULL, 0, &e, &all) == BPE_OK);
  snprintf(path, sizeof path, "%s/hf_%s.jsonl", vectors, name);
  char *text = read_file(path, &len);
  if (CHECK(text != NULL) && c != NULL && all != NULL) {
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
      json_t *row = json_loads(line, JSON_ALLOW_NUL, NULL);
      if (CHECK(row != NULL)) check_row(m, c, all, name, row);
      json_decref(row);
    }
  }
  free(text);
  if (c != NULL) check_known(m, c, name, &test_passed, &test_failed);
  write_export(m, exports, "hf_", name);
  bpe_finder_free(all);
  bpe_coder_free(c);
  bpe_model_free(m);
}

int main(int argc, char **argv) {
  static const char *const builtins[] = {"gpt2", "p50k_base", "p50k_edit", "cl100k_base",
                                         "o200k_base"};
  for (int i = 4; i < argc; i++) check_model(argv[1], argv[2], argv[3], argv[i]);
  for (int i = 0; argc > 3 && i < 5; i++) {
    bpe_model *m = NULL;
    const int which = bpe_builtin_find(builtins[i], strlen(builtins[i]));
    CHECK(bpe_builtin_load(&alloc, which, NULL, &m) == BPE_OK);
    if (m != NULL) write_export(m, argv[3], "", builtins[i]);
    bpe_model_free(m);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%ld MB resident at most\n", usage.ru_maxrss / 1024);
  return test_summary();
}
