/* import_files.h - small files of every format, made where they are needed, and what to ask of
** the model that they give.
**
** A file begins with the 256 single bytes; `extra` continues it. GPT-2's characters are computed
** here from their definition, not by the code under test:
**
**     text f;  ranks(&f, "YWI= 256\n");
**     check_ids(import_with(f.at, f.len, NULL, "gpt2", NULL), "ab", 2, "256", false, false);
*/
#ifndef IMPORT_FILES_H
#define IMPORT_FILES_H

#include "unit.h"

typedef struct text {
  char at[96 * 1024];
  size_t len;
} text;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static inline void
add(text *t, const char *format, ...);

#include <stdarg.h>

static inline void add(text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  t->len += (size_t)vsnprintf(t->at + t->len, sizeof t->at - t->len, format, args);
  va_end(args);
  if (t->len >= sizeof t->at) abort();
}

/* A rank file: bytes under their values. */
static inline void ranks(text *t, const char *extra) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  t->len = 0;
  for (unsigned c = 0; c < 256; c++) add(t, "%c%c== %u\n", digits[c >> 2], digits[(c & 3) << 4], c);
  add(t, "%s", extra);
}

/* GPT-2's character of the byte that it numbers `rank`. */
static inline unsigned gpt2_character(unsigned rank) {
  if (rank < 94) return 0x21 + rank;
  if (rank < 106) return 0xa1 + rank - 94;
  return rank < 188 ? 0xae + rank - 106 : 0x100 + rank - 188;
}

/* Members of a vocab.json: the bytes in GPT-2's order, then extra. */
static inline void vocab_members(text *t, const char *extra) {
  for (unsigned rank = 0; rank < 256; rank++)
    add(t, "%s\"\\u%04x\":%u", rank == 0 ? "" : ",", gpt2_character(rank), rank);
  add(t, "%s%s", *extra == 0 ? "" : ",", extra);
}

/* The parts of a tokenizer.json, JSON each; NULL: the usual. */
typedef struct parts {
  const char *added, *normalizer, *pre, *post, *decoder, *model, *vocab, *merges, *more;
} parts;

#define BYTE_LEVEL                                                                                 \
  "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}"

/* model: members beside type, vocab and merges; whole vocabularies begin with '{'. */
static inline void tokenizer_json(text *t, parts p) {
  t->len = 0;
  add(t, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,%s", p.more ? p.more : "");
  add(t, "\"added_tokens\":[%s],\"normalizer\":%s", p.added ? p.added : "",
      p.normalizer ? p.normalizer : "null");
  add(t, ",\"pre_tokenizer\":%s,\"post_processor\":%s", p.pre ? p.pre : BYTE_LEVEL,
      p.post ? p.post : "null");
  add(t, ",\"decoder\":%s,\"model\":{\"type\":\"BPE\",%s", p.decoder ? p.decoder : BYTE_LEVEL,
      p.model ? p.model : "");
  add(t, "\"vocab\":");
  if (p.vocab != NULL && *p.vocab == '{') {
    add(t, "%s", p.vocab);
  } else {
    add(t, "{");
    vocab_members(t, p.vocab ? p.vocab : "");
    add(t, "}");
  }
  add(t, ",\"merges\":[%s]}}", p.merges ? p.merges : "");
}

static bpe_error last_error;

/* The model of a file, or NULL; pattern NULL: none given; "/x": the regex x. */
static inline bpe_model *import_with(const char *source, size_t len, const char *merges,
                                     const char *pattern, const char *specials) {
  bpe_model *m = NULL;
  bpe_import_options o = {.special_tokens = specials,
                          .special_len = specials ? strlen(specials) : 0};
  if (pattern != NULL) {
    o.pattern_is_regex = *pattern == '/';
    o.pattern = pattern + o.pattern_is_regex;
    o.pattern_len = strlen(o.pattern);
  }
  last_error = (bpe_error){.status = BPE_OK};
  const bpe_status st = bpe_import(&unit_alloc, source, len, merges, merges ? strlen(merges) : 0,
                                   &o, &last_error, &m);
  CHECK((st == BPE_OK) == (m != NULL));
  CHECK(st == last_error.status);
  return m;
}

/* The ids of a text as "1,2"; then frees the model. */
static inline void check_ids(bpe_model *m, const char *source, size_t len, const char *expected,
                             bool specials, bool keep) {
  bpe_error e = {.status = BPE_OK};
  bpe_coder *c = NULL;
  bpe_finder *all = NULL;
  bpe_buffer b;
  char list[4096];
  if (!CHECK(m != NULL)) {
    printf("  %s\n", last_error.text);
    return;
  }
  bpe_buffer_init(&b, &unit_alloc, 0);
  CHECK(bpe_coder_new(m, 0, &e, &c) == BPE_OK);
  if (specials) CHECK(bpe_finder_new(m, NULL, 0, &e, &all) == BPE_OK);
  const bpe_walk_options o = {.allowed = all};
  const int n = snprintf(list, sizeof list, "[%s]", expected);
  if (bpe_encode_json(c, source, len, &o, &e, &b) != BPE_OK) printf("  %s\n", e.text);
  CHECK_BYTES(b.bytes, b.len, list, (size_t)n);
  uint64_t count = 0, commas = *expected != 0;
  for (const char *s = expected; *s != 0; s++) commas += *s == ',';
  CHECK(bpe_count(c, source, len, &o, &e, &count) == BPE_OK);
  CHECK_EQ_INT(count, commas);
  bpe_buffer_clear(&b);
  bpe_finder_free(all);
  bpe_coder_free(c);
  if (!keep) bpe_model_free(m);
}

/* The import fails with this status and a message that contains `what`. */
static inline void check_refused(bpe_model *m, bpe_status status, const char *what) {
  if (!CHECK(m == NULL)) {
    printf("  expected: %s\n", what);
    bpe_model_free(m);
    return;
  }
  CHECK_EQ_INT(last_error.status, status);
  if (!CHECK(strstr(last_error.text, what) != NULL))
    printf("  is: %s\n  expected: %s\n", last_error.text, what);
}

static inline void check_decoded(bpe_model *m, const uint32_t *ids, size_t n, bpe_specials how,
                                 const char *expected) {
  bpe_error e = {.status = BPE_OK};
  bpe_buffer b;
  bpe_buffer_init(&b, &unit_alloc, 0);
  CHECK(bpe_decode(m, ids, n, how, false, NULL, NULL, &e, &b) == BPE_OK);
  CHECK_BYTES(b.bytes, b.len, expected, strlen(expected));
  bpe_buffer_clear(&b);
}

static inline bool same_digest(const bpe_model *a, const bpe_model *b) {
  uint8_t d[2][32];
  if (bpe_model_digest(a, NULL, d[0]) != BPE_OK) return false;
  if (bpe_model_digest(b, NULL, d[1]) != BPE_OK) return false;
  return memcmp(d[0], d[1], 32) == 0;
}

#endif
