/* train_reference.c - training on the texts of other projects' test suites, merge for merge.
**
**     train_reference --fixtures DIR
**
** DIR holds train/NAME.json, each naming a text, a pattern and a tie rule and listing the merges
** with their counts; the texts under peers/ and data/; the merges and vocabularies that those
** projects publish. Neither texts nor references are part of this tree. A file that is missing is
** a failure, not a case less.
*/
#include "../src/bpe.h"

#include <dirent.h>
#include <stdlib.h>

#include "test.h"

static void *resize(void *ctx, void *p, size_t n) {
  (void)ctx;
  if (n == 0) {
    free(p);
    return NULL;
  }
  void *q = realloc(p, n);
  if (q == NULL) abort();
  return q;
}

static const bpe_alloc heap = {.resize = resize};
static const char *fixtures;

static char *read_file(const char *name, size_t *len) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", fixtures, name);
  FILE *f = fopen(path, "rb");
  *len = 0;
  if (!CHECK(f != NULL)) {
    printf("  %s\n", path);
    return NULL;
  }
  size_t cap = 1 << 16, n;
  char *s = resize(NULL, NULL, cap + 1);
  while ((n = fread(s + *len, 1, cap - *len, f)) > 0) {
    *len += n;
    if (*len == cap) s = resize(NULL, s, (cap *= 2) + 1);
  }
  s[*len] = 0;
  fclose(f);
  return s;
}

/* ---- Reading the references ---------------------------------------------------------------- */

static void put_utf8(char *out, size_t *n, unsigned cp) {
  if (cp < 0x80) {
    out[(*n)++] = (char)cp;
  } else if (cp < 0x800) {
    out[(*n)++] = (char)(0xc0 | cp >> 6);
    out[(*n)++] = (char)(0x80 | (cp & 63));
  } else {
    out[(*n)++] = (char)(0xe0 | cp >> 12);
    out[(*n)++] = (char)(0x80 | (cp >> 6 & 63));
    out[(*n)++] = (char)(0x80 | (cp & 63));
  }
}

/* The JSON string that begins at *at, its '"' included; moves *at behind it. No surrogates. */
static size_t json_string(const char **at, char *out, size_t cap) {
  size_t n = 0;
  const char *s = *at + 1;
  for (; *s != '"' && *s != 0 && n + 4 < cap; s++) {
    if (*s != '\\') {
      out[n++] = *s;
      continue;
    }
    static const char from[] = "nrtbf", to[] = "\n\r\t\b\f";
    s++;
    const char *known = strchr(from, *s);
    if (*s == 'u') {
      char hex[5] = {s[1], s[2], s[3], s[4], 0};
      put_utf8(out, &n, (unsigned)strtoul(hex, NULL, 16));
      s += 4;
    } else {
      out[n++] = known != NULL && *s != 0 ? to[known - from] : *s;
    }
  }
  out[n] = 0;
  *at = *s == '"' ? s + 1 : s;
  return n;
}

/* The string behind a key of the document; "" if it is not there. */
static size_t json_field(const char *doc, const char *key, char *out, size_t cap) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *at = strstr(doc, quoted);
  out[0] = 0;
  if (at == NULL) return 0;
  at += strlen(quoted);
  while (*at == ' ' || *at == '[' || *at == '\n') at++;
  return *at == '"' ? json_string(&at, out, cap) : 0;
}

static size_t unhex(const char *s, size_t len, uint8_t *out) {
  for (size_t i = 0; i + 1 < len; i += 2) {
    const char hex[3] = {s[i], s[i + 1], 0};
    out[i / 2] = (uint8_t)strtoul(hex, NULL, 16);
  }
  return len / 2;
}

/* ---- Training ------------------------------------------------------------------------------ */

static bpe_model *train(const char *text, size_t len, uint32_t merges,
                        const bpe_train_options *o) {
  bpe_error e = {.status = BPE_OK};
  bpe_trainer *t = NULL;
  bpe_model *m = NULL;
  bpe_status st = bpe_trainer_new(&heap, 256 + (uint32_t)o->n_specials + merges, o, &e, &t);
  if (st == BPE_OK) st = bpe_trainer_add(t, text, len, 1, &e);
  if (st == BPE_OK) st = bpe_trainer_finish(t, &e, &m);
  if (!CHECK(st == BPE_OK)) printf("  %s\n", e.text);
  bpe_trainer_free(t);
  return m;
}

static bpe_token token_of(const bpe_model *m, uint32_t id) {
  return bpe_model_token(m, bpe_model_find_id(m, id));
}

static bool is_merge(const bpe_model *m, size_t i, const uint8_t *left, size_t left_len,
                     const uint8_t *right, size_t right_len) {
  const bpe_merge x = bpe_model_merge(m, i);
  const bpe_token l = token_of(m, x.left), r = token_of(m, x.right);
  return l.len == left_len && memcmp(l.bytes, left, left_len) == 0 && r.len == right_len &&
         memcmp(r.bytes, right, right_len) == 0;
}

/* ---- train/NAME.json ----------------------------------------------------------------------- */

static const struct {
  const char *rule;
  bpe_tie tie;
  bpe_place place;
  bool gpt2;
} rules[] = {
    {"lexmax", BPE_TIE_BYTES, BPE_PLACE_LAST, false},
    {"first", BPE_TIE_FIRST, BPE_PLACE_LAST, false},
    {"byteid_min", BPE_TIE_IDS, BPE_PLACE_LAST, false},
    {"hf256", BPE_TIE_IDS, BPE_PLACE_FIRST, true},
};

/* Where a text lies, by its name without folders. */
static const char *const texts[] = {
    "peers/cs336/corpus.en", "peers/cs336/german.txt", "peers/cs336/tinystories_sample.txt",
    "peers/minbpe/taylorswift.txt", "peers/texts/botchan.txt", "peers/texts/runs.txt",
    "peers/texts/tinyshakespeare.txt", "peers/texts/wagahaiwa_nekodearu.txt",
};

static const char *place_of(const char *input) {
  const char *slash = strrchr(input, '/');
  const char *name = slash != NULL ? slash : input;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (strcmp(strrchr(texts[i], '/') + (slash == NULL), name) == 0) return texts[i];
  return NULL;
}

static void check_merges(const bpe_model *m, const char *doc, const char *file) {
  const char *at = strstr(doc, "\"merges_hex\":");
  bpe_info info;
  bpe_model_info(m, &info);
  size_t n = 0;
  if (!CHECK(at != NULL)) return;
  at = strchr(at, '[') + 1;
  for (; (at = strpbrk(at, "[]")) != NULL && *at == '['; n++) {
    char hex[2][600];
    uint8_t bytes[2][300];
    at = strchr(at, '"');
    const size_t l = unhex(hex[0], json_string(&at, hex[0], sizeof hex[0]), bytes[0]);
    at = strchr(at, '"');
    const size_t r = unhex(hex[1], json_string(&at, hex[1], sizeof hex[1]), bytes[1]);
    const uint64_t count = strtoull(at + 1, NULL, 10);
    at = strchr(at, ']') + 1;
    if (n < info.merge_count &&
        !CHECK(is_merge(m, n, bytes[0], l, bytes[1], r) && bpe_model_merge(m, n).count == count))
      printf("  %s, merge %zu: %s %s %llu\n", file, n, hex[0], hex[1], (unsigned long long)count);
  }
  if (!CHECK_EQ_INT(info.merge_count, n)) printf("  %s\n", file);
}

static void check_reference(const char *file) {
  char path[512], input[256], name[64], pattern[512], rule[64], special[64];
  snprintf(path, sizeof path, "train/%s", file);
  size_t doc_len, len;
  char *doc = read_file(path, &doc_len);
  if (doc == NULL) return;
  json_field(doc, "input", input, sizeof input);
  json_field(doc, "pattern_name", name, sizeof name);
  json_field(doc, "pattern", pattern, sizeof pattern);
  json_field(doc, "tie_rule", rule, sizeof rule);
  const char *list = strstr(doc, "\"special_tokens_split_out\":");
  const bool has_special = list != NULL && strncmp(strchr(list, '['), "[]", 2) != 0;
  json_field(doc, "special_tokens_split_out", special, sizeof special);
  const char *wanted = strstr(doc, "\"requested_merges\":");
  const char *place = place_of(input);
  char *text = CHECK(place != NULL && wanted != NULL) ? read_file(place, &len) : NULL;
  const bool is_regex = strcmp(name, "minbpe_gpt4") == 0;
  const char *used = is_regex ? pattern : name;
  const bpe_name specials[] = {{special, strlen(special)}};
  bpe_train_options o = {.pattern = used, .pattern_len = strlen(used), .is_regex = is_regex,
                         .specials = specials, .n_specials = has_special, .threads = 1};
  size_t r = 0;
  while (r < sizeof rules / sizeof *rules && strcmp(rules[r].rule, rule) != 0) r++;
  if (text != NULL && CHECK(r < sizeof rules / sizeof *rules)) {
    o.tie = rules[r].tie;
    o.place = rules[r].place;
    o.gpt2_bytes = rules[r].gpt2;
    bpe_model *m = train(text, len, (uint32_t)atoi(strchr(wanted, ':') + 1), &o);
    if (m != NULL) check_merges(m, doc, file);
    bpe_model_free(m);
  }
  free(text);
  free(doc);
}

static void check_references(void) {
  char path[1024];
  snprintf(path, sizeof path, "%s/train", fixtures);
  DIR *dir = opendir(path);
  size_t n = 0;
  if (!CHECK(dir != NULL)) return;
  for (struct dirent *x; (x = readdir(dir)) != NULL;) {
    const size_t len = strlen(x->d_name);
    if (len < 6 || strcmp(x->d_name + len - 5, ".json") != 0) continue;
    check_reference(x->d_name);
    n++;
  }
  closedir(dir);
  CHECK(n >= 32);
}

/* ---- CS336 --------------------------------------------------------------------------------- */

/* GPT-2's spelling of bytes, one character each, back to bytes. */
static size_t from_gpt2(const char *s, size_t len, uint8_t *out) {
  size_t n = 0;
  for (size_t i = 0; i < len; n++) {
    const unsigned char c = (unsigned char)s[i];
    unsigned cp = c;
    if (c >= 0x80) cp = (c & 31u) << 6 | ((unsigned char)s[i + 1] & 63u);
    i += c >= 0x80 ? 2 : 1;
    if (cp >= 256) { /* 256 + k is the k-th byte that is not printable */
      unsigned b = 0, k = cp - 256;
      for (;; b++) {
        const bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
        if (!printable && k-- == 0) break;
      }
      cp = b;
    }
    out[n] = (uint8_t)cp;
  }
  return n;
}

static void check_cs336_vocab(const bpe_model *m) {
  size_t len, n = 0;
  char *doc = read_file("peers/cs336/train-bpe-reference-vocab.json", &len);
  if (doc == NULL) return;
  bpe_info info;
  bpe_model_info(m, &info);
  for (const char *at = doc; (at = strchr(at, '"')) != NULL; n++) {
    char token[256];
    uint8_t bytes[256];
    const size_t token_len = json_string(&at, token, sizeof token);
    const uint32_t id = (uint32_t)strtoul(strchr(at, ':') + 1, NULL, 10);
    const bool special = id == 0;
    const size_t n_bytes = special ? token_len : from_gpt2(token, token_len, bytes);
    const size_t i = bpe_model_find_bytes(m, special ? token : (char *)bytes, n_bytes);
    if (!CHECK(i < info.entry_count)) printf("  no such token: %s\n", token);
    if (special) CHECK_EQ_INT(i, 0);
    at = strchr(at, ':');
  }
  CHECK_EQ_INT(n, 500);
  CHECK_EQ_INT(info.token_count, 500);
  free(doc);
}

static void check_cs336(void) {
  const bpe_name end = {"<|endoftext|>", 13};
  const bpe_train_options o = {.pattern = "gpt2", .pattern_len = 4, .specials = &end,
                               .n_specials = 1, .place = BPE_PLACE_FIRST, .gpt2_bytes = true};
  size_t len, merges_len, n = 0;
  char *text = read_file("peers/cs336/corpus.en", &len);
  char *merges = read_file("peers/cs336/train-bpe-reference-merges.txt", &merges_len);
  bpe_model *m = text != NULL && merges != NULL ? train(text, len, 243, &o) : NULL;
  if (m != NULL) {
    for (char *line = strtok(merges, "\n"); line != NULL; line = strtok(NULL, "\n"), n++) {
      uint8_t bytes[2][256];
      const size_t cut = strcspn(line, " ");
      const size_t l = from_gpt2(line, cut, bytes[0]);
      const size_t r = from_gpt2(line + cut + 1, strlen(line + cut + 1), bytes[1]);
      if (!CHECK(n < 243 && is_merge(m, n, bytes[0], l, bytes[1], r))) printf("  %s\n", line);
    }
    CHECK_EQ_INT(n, 243);
    check_cs336_vocab(m);
  }
  bpe_model_free(m);
  free(text);
  free(merges);
}

/* No token but the special one holds "<|". */
static void check_cs336_special(void) {
  const bpe_name end = {"<|endoftext|>", 13};
  const bpe_train_options o = {.pattern = "gpt2", .pattern_len = 4, .specials = &end,
                               .n_specials = 1};
  size_t len;
  char *text = read_file("peers/cs336/tinystories_sample.txt", &len);
  bpe_model *m = text != NULL ? train(text, len, 743, &o) : NULL;
  if (m == NULL) {
    free(text);
    return;
  }
  bpe_info info;
  bpe_model_info(m, &info);
  for (size_t i = 0; i < info.entry_count; i++) {
    const bpe_token x = bpe_model_token(m, i);
    bool found = false;
    for (size_t k = 0; k + 1 < x.len; k++) found |= x.bytes[k] == '<' && x.bytes[k + 1] == '|';
    CHECK(found == (x.kind == BPE_SPECIAL));
  }
  bpe_model_free(m);
  free(text);
}

/* ---- minbpe -------------------------------------------------------------------------------- */

static void check_minbpe(const char *file, size_t n_merges) {
  size_t doc_len, len, n = 0;
  char *doc = read_file(file, &doc_len), *text = read_file("peers/minbpe/taylorswift.txt", &len);
  if (doc == NULL || text == NULL) goto done;
  char *pattern = strchr(doc, '\n') + 1;
  char *line = strchr(pattern, '\n');
  *line++ = 0;
  int specials = atoi(line);
  while (specials-- >= 0) line = strchr(line, '\n') + 1;
  const bool none = pattern[0] == 0;
  const bpe_train_options o = {.pattern = none ? "none" : pattern,
                               .pattern_len = none ? 4 : strlen(pattern),
                               .is_regex = !none, .tie = BPE_TIE_FIRST};
  bpe_model *m = train(text, len, (uint32_t)n_merges, &o);
  for (; m != NULL && *line != 0 && n < n_merges; n++) {
    const uint32_t left = (uint32_t)strtoul(line, &line, 10);
    const uint32_t right = (uint32_t)strtoul(line, &line, 10);
    const bpe_merge x = bpe_model_merge(m, n);
    if (!CHECK(x.left == left && x.right == right)) printf("  %s, merge %zu\n", file, n);
    line += strspn(line, "\r\n");
  }
  CHECK_EQ_INT(n, n_merges);
  bpe_model_free(m);
done:
  free(doc);
  free(text);
}

/* ---- Alice --------------------------------------------------------------------------------- */

static uint64_t count(bpe_coder *c, const char *text, size_t len) {
  bpe_error e = {.status = BPE_OK};
  uint64_t n = 0;
  CHECK(bpe_count(c, text, len, NULL, &e, &n) == BPE_OK);
  return n;
}

static void check_alice(void) {
  static const struct {
    const char *left, *right;
    uint64_t count;
  } first[] = {
      {"e", " ", 4433}, {" ", "t", 3302},  {"\xe2", "\x80", 3247}, {" ", "a", 2335},
      {" t", "h", 2253}, {"i", "n", 2011}, {"t", " ", 1904},       {"e", "r", 1813},
      {"d", " ", 1703}, {"o", "u", 1554},  {" ", "s", 1467},       {" th", "e ", 1270},
  };
  static const struct {
    uint32_t vocab_size;
    uint64_t tokens;
  } sizes[] = {{276, 115623}, {300, 100971}, {512, 68155}, {1024, 50279}, {2048, 39213},
               {4096, 30673}};
  const bpe_train_options o = {.pattern = "none", .pattern_len = 4, .tie = BPE_TIE_FIRST};
  size_t len;
  char *text = read_file("data/alice.txt", &len);
  bpe_model *m = text != NULL ? train(text, len, 4096 - 256, &o) : NULL;
  for (size_t i = 0; m != NULL && i < sizeof first / sizeof *first; i++) {
    CHECK(is_merge(m, i, (const uint8_t *)first[i].left, strlen(first[i].left),
                   (const uint8_t *)first[i].right, strlen(first[i].right)));
    CHECK_EQ_INT(bpe_model_merge(m, i).count, first[i].count);
  }
  for (size_t i = 0; m != NULL && i < sizeof sizes / sizeof *sizes; i++) {
    bpe_model *cut;
    bpe_coder *c = NULL;
    bpe_error e = {.status = BPE_OK};
    if (!CHECK(bpe_model_cut(m, sizes[i].vocab_size, &e, &cut) == BPE_OK) ||
        !CHECK(bpe_coder_new(cut, 0, &e, &c) == BPE_OK))
      continue;
    CHECK_EQ_INT(count(c, text, len), sizes[i].tokens);
    if (sizes[i].vocab_size == 512) {
      CHECK_EQ_INT(count(c, "strawberry", 10), 6);
      CHECK_EQ_INT(count(c, "Alice was beginning to get very tired", 37), 14);
      static const char cafe[] = "caf\xc3\xa9 \xe2\x80\x94 na\xc3\xafve \xe2\x80\x94 "
                                 "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e";
      CHECK_EQ_INT(count(c, cafe, sizeof cafe - 1), 23);
    }
    bpe_coder_free(c);
    bpe_model_free(cut);
  }
  bpe_model_free(m);
  free(text);
}

int main(int argc, char **argv) {
  if (argc != 3 || strcmp(argv[1], "--fixtures") != 0) {
    printf("usage: train_reference --fixtures DIR\n");
    return 2;
  }
  fixtures = argv[2];
  check_references();
  check_cs336();
  check_cs336_special();
  check_minbpe("peers/minbpe/taylorswift-regex.model", 256);
  check_minbpe("peers/minbpe/taylorswift-basic.model", 128);
  check_alice();
  return test_summary();
}
