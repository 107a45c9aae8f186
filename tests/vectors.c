/* vectors.c - the reference data of tests/vectors, row by row, through SQL.
**
**     vectors [--ext ./bpe] [--vectors tests/vectors] [--fixtures DIR]
**
** The files come from the tokenizers whose ids we promise (data/ORIGIN.md says which). Each row
** of them is asked of every SQL function that could answer otherwise: the packed ids, the JSON
** list, the count, the token rows and the way back must agree with the reference and so with
** each other. A file that is missing, or is not the one listed in SHA256SUMS, is a failure.
**
** --fixtures checks files.json instead: whole texts of other projects' test suites, which are
** not in the tree. DIR is a folder that holds them; a missing one is a failure.
*/
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "loaded.h"
#include "ref_sha256.h"

typedef struct run {
  loaded t;
  const char *dir; /* of the vectors */
  char *sums;      /* SHA256SUMS, owned */
} run;

static char *read_file(const char *path, size_t *len) {
  char *bytes = NULL;
  FILE *f = fopen(path, "rb");
  *len = 0;
  if (!f) {
    return NULL;
  }
  if (fseek(f, 0, SEEK_END) == 0) {
    const long size = ftell(f);
    rewind(f);
    bytes = size < 0 ? NULL : malloc((size_t)size + 1);
    if (bytes) {
      *len = fread(bytes, 1, (size_t)size, f);
      bytes[*len] = 0;
    }
  }
  fclose(f);
  return bytes;
}

/* A file of the vectors, if it is the one that SHA256SUMS lists. */
static char *read_vectors(run *r, const char *name, size_t *len) {
  char path[1024], line[256], hex[65];
  snprintf(path, sizeof path, "%s/%s", r->dir, name);
  char *bytes = read_file(path, len);
  if (!loaded_check(&r->t, bytes != NULL, "%s: cannot read", path)) {
    return NULL;
  }
  sha256_hex(bytes, *len, hex);
  snprintf(line, sizeof line, "%s  %s\n", hex, name);
  if (!loaded_check(&r->t, strstr(r->sums, line) != NULL, "%s is not as listed in SHA256SUMS",
                    path)) {
    free(bytes);
    return NULL;
  }
  return bytes;
}

static void check_sums(run *r) {
  for (const char *p = r->sums; *p;) {
    char hex[65], name[128];
    size_t len;
    if (!loaded_check(&r->t, sscanf(p, "%64s  %127[^\n]", hex, name) == 2, "SHA256SUMS: %.80s",
                      p)) {
      return;
    }
    free(read_vectors(r, name, &len));
    p += strcspn(p, "\n");
    p += *p == '\n';
  }
}

/* ---- Rows ----------------------------------------------------------------------------------- */

typedef struct row {
  json_t *json;
  const char *text; /* borrowed from json */
  size_t len;
  uint8_t *ids; /* expected, packed little-endian; owned; NULL: none expected */
  size_t n_ids;
  char where[160];
} row;

typedef void row_check(run *, const row *, const void *how);

static void expect_ids(row *w) {
  const json_t *ids = json_object_get(w->json, "ids");
  if (!json_is_array(ids)) {
    return;
  }
  w->n_ids = json_array_size(ids);
  w->ids = malloc(4 * w->n_ids + 1);
  for (size_t i = 0; i < w->n_ids; i++) {
    const json_int_t id = json_integer_value(json_array_get(ids, i));
    for (int b = 0; b < 4; b++) {
      w->ids[4 * i + (size_t)b] = (uint8_t)(id >> 8 * b);
    }
  }
}

/* Calls fn for each line of a JSON Lines file. */
static void each_row(run *r, const char *name, row_check *fn, const void *how) {
  size_t len, number = 0;
  char *bytes = read_vectors(r, name, &len);
  if (!bytes) {
    return;
  }
  for (size_t at = 0; at < len;) {
    const char *end = memchr(bytes + at, '\n', len - at);
    const size_t n = end ? (size_t)(end - (bytes + at)) : len - at;
    json_error_t e;
    row w = {.json = json_loadb(bytes + at, n, JSON_ALLOW_NUL, &e)};
    snprintf(w.where, sizeof w.where, "%s:%zu", name, ++number);
    if (loaded_check(&r->t, w.json != NULL, "%s: %s", w.where, e.text)) {
      w.text = json_string_value(json_object_get(w.json, "text"));
      w.len = json_string_length(json_object_get(w.json, "text"));
      expect_ids(&w);
      fn(r, &w, how);
    }
    free(w.ids);
    json_decref(w.json);
    at += n + 1;
  }
  loaded_check(&r->t, number > 0, "%s: no rows", name);
  free(bytes);
}

/* A row that should have come did not. */
static void no_row(run *r, const row *w, const char *tokenizer, const char *options) {
  loaded_check(&r->t, false, "%s: %s %s: %s", w->where, tokenizer ? tokenizer : "(default)",
               options ? options : "", sqlite3_errmsg(r->t.db));
}

/* ---- Ids ------------------------------------------------------------------------------------ */

typedef struct ids_how {
  const char *tokenizer; /* NULL: the forms without that argument */
  sqlite3_stmt *encode, *tokens;
} ids_how;

static char *ids_as_json(const row *w) {
  char *out = malloc(12 * w->n_ids + 3), *p = out;
  *p++ = '[';
  for (size_t i = 0; i < w->n_ids; i++) {
    p += sprintf(p, "%s%lld", i ? "," : "",
                 (long long)json_integer_value(
                   json_array_get(json_object_get(w->json, "ids"), i)));
  }
  memcpy(p, "]", 2);
  return out;
}

static void check_token_rows(run *r, const row *w, const ids_how *h) {
  size_t n = 0;
  sqlite3_int64 at = 0;
  bool same = true;
  for (bool more = loaded_row(h->tokens, w->text, w->len, h->tokenizer, NULL); more;
       more = sqlite3_step(h->tokens) == SQLITE_ROW) {
    const sqlite3_int64 id = sqlite3_column_int64(h->tokens, 0);
    same = same && n < w->n_ids && sqlite3_column_int64(h->tokens, 1) == at;
    same = same && id == json_integer_value(json_array_get(json_object_get(w->json, "ids"), n));
    at = sqlite3_column_int64(h->tokens, 2);
    n++;
  }
  loaded_check(&r->t, same && n == w->n_ids && (size_t)at == w->len, "%s: %s: token rows",
               w->where, h->tokenizer ? h->tokenizer : "(default)");
}

static void check_ids(run *r, const row *w, const void *how) {
  const ids_how *h = how;
  sqlite3_stmt *s = h->encode;
  if (!loaded_row(s, w->text, w->len, h->tokenizer, NULL)) {
    no_row(r, w, h->tokenizer, NULL);
    return;
  }
  const char *name = h->tokenizer ? h->tokenizer : "(default)";
  char *json = ids_as_json(w);
  const char *got = (const char *)sqlite3_column_text(s, 1);
  loaded_check(&r->t, got && !strcmp(got, json), "%s: %s: ids\n  got      %s\n  expected %s",
               w->where, name, got ? got : "NULL", json);
  loaded_check(&r->t, loaded_blob_is(s, 0, w->ids, 4 * w->n_ids), "%s: %s: packed ids", w->where,
               name);
  loaded_check(&r->t, sqlite3_column_int64(s, 2) == (sqlite3_int64)w->n_ids, "%s: %s: count",
               w->where, name);
  loaded_check(&r->t, loaded_blob_is(s, 3, w->text, w->len), "%s: %s: round trip", w->where, name);
  check_token_rows(r, w, h);
  free(json);
}

static void check_all_ids(run *r) {
  static const char *const files[][2] = {
    {"gpt2", "gpt2"},           {"gpt2", "r50k_base"},          {"p50k_base", "p50k_base"},
    {"p50k_edit", "p50k_edit"}, {"cl100k_base", "cl100k_base"}, {"o200k_base", "o200k_base"},
    {"o200k_base", NULL},       {"o200k_harmony", "o200k_harmony"},
  };
  const ids_how named = {
    .encode = loaded_prepare(&r->t, "SELECT bpe_encode_blob(?1, ?2), bpe_encode(?1, ?2),"
                                    " bpe_count(?1, ?2),"
                                    " bpe_decode_blob(bpe_encode(?1, ?2), ?2)"),
    .tokens = loaded_prepare(&r->t, "SELECT id, start, stop FROM bpe_tokens(?1, ?2)"),
  };
  const ids_how plain = {
    .encode = loaded_prepare(&r->t, "SELECT bpe_encode_blob(?1), bpe_encode(?1), bpe_count(?1),"
                                    " bpe_decode_blob(bpe_encode_blob(?1))"),
    .tokens = loaded_prepare(&r->t, "SELECT id, start, stop FROM bpe_tokens(?1)"),
  };
  if (!named.encode || !named.tokens || !plain.encode || !plain.tokens) {
    return;
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char name[64];
    ids_how how = files[i][1] ? named : plain;
    how.tokenizer = files[i][1];
    snprintf(name, sizeof name, "%s.jsonl", files[i][0]);
    each_row(r, name, check_ids, &how);
  }
}

/* ---- Special tokens ------------------------------------------------------------------------- */

typedef struct special_how {
  const char *tokenizer;
  sqlite3_stmt *encode;
} special_how;

static void check_special_as(run *r, const row *w, const special_how *h, const char *options) {
  const char *error = json_string_value(json_object_get(w->json, "error"));
  sqlite3_stmt *s = h->encode;
  const bool got = loaded_row(s, w->text, w->len, h->tokenizer, options);
  if (error) {
    const char *name = strstr(error, "not allowed: ");
    const char *message = sqlite3_errmsg(r->t.db);
    loaded_check(&r->t, !got && name && strstr(message, name + strlen("not allowed: ")),
                 "%s: %s %s: expected \"%s\", got \"%s\"", w->where, h->tokenizer, options, error,
                 got ? "ids" : message);
  } else if (!got) {
    no_row(r, w, h->tokenizer, options);
  } else {
    loaded_check(&r->t,
                 loaded_blob_is(s, 0, w->ids, 4 * w->n_ids) &&
                   sqlite3_column_int64(s, 1) == (sqlite3_int64)w->n_ids,
                 "%s: %s %s: ids", w->where, h->tokenizer, options);
  }
}

/* allowed_special and disallowed_special are the option `special`: in full, and in the short
** form where there is one. */
static void check_special(run *r, const row *w, const void *how) {
  const special_how *h = how;
  json_t *allowed = json_object_get(w->json, "allowed_special");
  json_t *disallowed = json_object_get(w->json, "disallowed_special");
  const bool allow_all = json_is_string(allowed), error_rest = json_is_string(disallowed);
  const bool allow_none = json_is_array(allowed) && json_array_size(allowed) == 0;
  const bool error_none = json_is_array(disallowed) && json_array_size(disallowed) == 0;
  json_t *full = json_pack("{s:{s:O,s:o}}", "special", "allow", allowed, "error",
                           error_rest ? json_string("rest") : json_incref(disallowed));
  char *options = json_dumps(full, 0);
  check_special_as(r, w, h, options);
  free(options);
  json_decref(full);
  if (allow_all) {
    check_special_as(r, w, h, "{\"special\":\"allow\"}");
  } else if (allow_none && error_rest) {
    check_special_as(r, w, h, "{\"special\":\"error\"}");
  } else if (allow_none && error_none) {
    check_special_as(r, w, h, "{\"special\":\"text\"}");
    check_special_as(r, w, h, "{}");
  } else if (error_none) {
    json_t *names = json_pack("{s:O}", "special", allowed);
    options = json_dumps(names, 0);
    check_special_as(r, w, h, options);
    free(options);
    json_decref(names);
  }
}

/* ---- Decoding ------------------------------------------------------------------------------- */

typedef struct decode_how {
  const char *tokenizer;
  sqlite3_stmt *blob, *text, *single;
} decode_how;

static size_t unhex(const char *hex, uint8_t *out) {
  size_t n = 0;
  for (unsigned byte; sscanf(hex + 2 * n, "%2x", &byte) == 1; n++) {
    out[n] = (uint8_t)byte;
  }
  return n;
}

static void check_unknown_ids(run *r, const row *w, const decode_how *h, const char *ids) {
  char id[24];
  snprintf(id, sizeof id, "%lld",
           (long long)json_integer_value(json_array_get(json_object_get(w->json, "ids"), 0)));
  sqlite3_stmt *const both[] = {h->blob, h->text};
  for (int i = 0; i < 2; i++) {
    const bool got = loaded_row(both[i], ids, strlen(ids), h->tokenizer, NULL);
    loaded_check(&r->t, !got && strstr(sqlite3_errmsg(r->t.db), id),
                 "%s: %s: an error naming %s, got \"%s\"", w->where, h->tokenizer, id,
                 got ? "a row" : sqlite3_errmsg(r->t.db));
  }
}

static void check_decode(run *r, const row *w, const void *how) {
  const decode_how *h = how;
  const char *hex = json_string_value(json_object_get(w->json, "hex"));
  const char *single = json_string_value(json_object_get(w->json, "single_hex"));
  char *ids = ids_as_json(w);
  uint8_t *bytes = malloc(hex ? strlen(hex) / 2 + 1 : 1);
  const size_t len = hex ? unhex(hex, bytes) : 0;
  if (!hex) {
    check_unknown_ids(r, w, h, ids);
  } else if (!loaded_row(h->blob, ids, strlen(ids), h->tokenizer, NULL)) {
    no_row(r, w, h->tokenizer, NULL);
  } else {
    loaded_check(&r->t, loaded_blob_is(h->blob, 0, bytes, len), "%s: %s: bytes", w->where,
                 h->tokenizer);
    /* Text that is whole UTF-8 comes back unchanged; what is repaired is tested elsewhere. */
    json_t *whole = json_stringn((const char *)bytes, len);
    if (whole && loaded_row(h->text, ids, strlen(ids), h->tokenizer, NULL)) {
      loaded_check(&r->t, loaded_blob_is(h->text, 0, bytes, len), "%s: %s: text", w->where,
                   h->tokenizer);
    } else if (whole) {
      no_row(r, w, h->tokenizer, NULL);
    }
    json_decref(whole);
  }
  if (single || json_object_get(w->json, "single_error")) {
    const bool row_came = loaded_row(h->single, ids, strlen(ids), h->tokenizer, NULL);
    loaded_check(&r->t,
                 row_came && (single ? loaded_blob_is(h->single, 0, bytes, len)
                                     : sqlite3_column_type(h->single, 0) == SQLITE_NULL),
                 "%s: %s: single token", w->where, h->tokenizer);
  }
  free(bytes);
  free(ids);
}

static void check_specials_and_decode(run *r) {
  static const char *const tokenizers[] = {"gpt2",        "p50k_base",  "p50k_edit",
                                           "cl100k_base", "o200k_base", "o200k_harmony"};
  special_how special = {
    .encode = loaded_prepare(&r->t, "SELECT bpe_encode_blob(?1, ?2, ?3), bpe_count(?1, ?2, ?3)"),
  };
  decode_how decode = {
    .blob = loaded_prepare(&r->t, "SELECT bpe_decode_blob(?1, ?2)"),
    .text = loaded_prepare(&r->t, "SELECT CAST(bpe_decode(?1, ?2) AS BLOB)"),
    .single = loaded_prepare(&r->t, "SELECT bpe_token(json_extract(?1, '$[0]'), ?2)"),
  };
  if (!special.encode || !decode.blob || !decode.text || !decode.single) {
    return;
  }
  for (size_t i = 0; i < sizeof tokenizers / sizeof *tokenizers; i++) {
    char name[64];
    special.tokenizer = decode.tokenizer = tokenizers[i];
    snprintf(name, sizeof name, "%s.special.jsonl", tokenizers[i]);
    each_row(r, name, check_special, &special);
    snprintf(name, sizeof name, "%s.decode.jsonl", tokenizers[i]);
    each_row(r, name, check_decode, &decode);
  }
}

/* ---- Pieces --------------------------------------------------------------------------------- */

typedef struct split_how {
  const char *options;
  sqlite3_stmt *pieces;
} split_how;

static void check_pieces(run *r, const row *w, const void *how) {
  const split_how *h = how;
  const json_t *sizes = json_object_get(w->json, "piece_bytes");
  size_t n = 0, at = 0;
  bool same = true;
  for (bool more = loaded_row(h->pieces, w->text, w->len, "gpt2", h->options); more && same;
       more = sqlite3_step(h->pieces) == SQLITE_ROW) {
    const size_t size = (size_t)json_integer_value(json_array_get(sizes, n++));
    same = size > 0 && at + size <= w->len && loaded_blob_is(h->pieces, 2, w->text + at, size) &&
           (size_t)sqlite3_column_int64(h->pieces, 0) == at &&
           (size_t)sqlite3_column_int64(h->pieces, 1) == at + size;
    at += size;
  }
  sqlite3_reset(h->pieces);
  loaded_check(&r->t, same && n == json_array_size(sizes) && at == w->len,
               "%s: %s: piece %zu of \"%s\"", w->where, h->options, n, w->text);
}

static void check_all_pieces(run *r) {
  static const char *const files[][2] = {
    {"gpt2", "gpt2"},     {"cl100k", "cl100k"}, {"cl100k", "llama3"},
    {"o200k", "o200k"},   {"qwen2", "qwen2"},   {"tekken", "tekken"},
    {"deepseek_v3", "deepseek3"},
  };
  split_how how = {
    .pieces = loaded_prepare(&r->t, "SELECT start, stop, piece FROM bpe_pieces(?1, ?2, ?3)"),
  };
  if (!how.pieces) {
    return;
  }
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char name[64], options[64];
    snprintf(options, sizeof options, "{\"pattern\":\"%s\"}", files[i][1]);
    how.options = options;
    snprintf(name, sizeof name, "split_%s.jsonl", files[i][0]);
    each_row(r, name, check_pieces, &how);
    snprintf(name, sizeof name, "splitcp_%s.jsonl", files[i][0]);
    each_row(r, name, check_pieces, &how);
  }
}

/* ---- Whole texts: count, digest of the ids, the ids at both ends ---------------------------- */

static bool ends_match(const json_t *expected, const uint8_t *ids, size_t n, bool last) {
  const size_t k = json_array_size(expected);
  bool same = k <= n;
  for (size_t i = 0; same && i < k; i++) {
    const uint8_t *p = ids + 4 * (last ? n - k + i : i);
    const uint32_t id = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
                        (uint32_t)p[3] << 24;
    same = json_integer_value(json_array_get(expected, i)) == id;
  }
  return same;
}

static void check_text(run *r, sqlite3_stmt *s, const json_t *expected, const char *text,
                       size_t len, const char *options, const char *where) {
  const char *tokenizer = json_string_value(json_object_get(expected, "encoding"));
  const char *digest = json_string_value(json_object_get(expected, "ids_le32_sha256"));
  const json_int_t count = json_integer_value(json_object_get(expected, "count"));
  char hex[65];
  if (!loaded_row(s, text, len, tokenizer, options)) {
    loaded_check(&r->t, false, "%s: %s: %s", where, tokenizer, sqlite3_errmsg(r->t.db));
    return;
  }
  const uint8_t *ids = sqlite3_column_blob(s, 0);
  const size_t n = (size_t)sqlite3_column_bytes(s, 0) / 4;
  loaded_check(&r->t, sqlite3_column_int64(s, 1) == count && (json_int_t)n == count,
               "%s: %s: count %lld, %zu ids, expected %lld", where, tokenizer,
               (long long)sqlite3_column_int64(s, 1), n, (long long)count);
  loaded_check(&r->t, ends_match(json_object_get(expected, "first"), ids, n, false),
               "%s: %s: first ids", where, tokenizer);
  loaded_check(&r->t, ends_match(json_object_get(expected, "last"), ids, n, true),
               "%s: %s: last ids", where, tokenizer);
  sha256_hex(ids, 4 * n, hex);
  loaded_check(&r->t, digest && !strcmp(hex, digest), "%s: %s: digest of the ids", where,
               tokenizer);
}

static json_t *load_list(run *r, const char *name) {
  size_t len;
  json_error_t e;
  char *bytes = read_vectors(r, name, &len);
  json_t *list = bytes ? json_loadb(bytes, len, JSON_ALLOW_NUL, &e) : NULL;
  loaded_check(&r->t, json_array_size(list) > 0, "%s: not a list", name);
  free(bytes);
  return list;
}

static sqlite3_stmt *prepare_whole(run *r) {
  return loaded_prepare(&r->t, "SELECT bpe_encode_blob(?1, ?2, ?3), bpe_count(?1, ?2, ?3)");
}

static void check_long_runs(run *r) {
  json_t *list = load_list(r, "long_runs.json");
  sqlite3_stmt *s = prepare_whole(r);
  for (size_t i = 0; s && i < json_array_size(list); i++) {
    const json_t *w = json_array_get(list, i);
    const json_t *unit = json_object_get(w, "unit");
    const size_t size = json_string_length(unit);
    const size_t repeat = (size_t)json_integer_value(json_object_get(w, "repeat"));
    char where[64], *text = malloc(size * repeat + 1);
    for (size_t k = 0; k < repeat; k++) {
      memcpy(text + k * size, json_string_value(unit), size);
    }
    snprintf(where, sizeof where, "long_runs.json: %s x %zu", json_string_value(unit), repeat);
    check_text(r, s, w, text, size * repeat, NULL, where);
    sqlite3_reset(s);
    free(text);
  }
  json_decref(list);
}

/* ---- Fixtures: texts that are not in the tree ----------------------------------------------- */

/* Texts of files.json by the path it gives them, and where they lie under --fixtures. */
static const char *const fixtures[][2] = {
  {"peers/cs336/address.txt", "peers/cs336/address.txt"},
  {"peers/cs336/corpus.en", "peers/cs336/corpus.en"},
  {"peers/cs336/german.txt", "peers/cs336/german.txt"},
  {"peers/cs336/special_token_double_newlines_non_whitespace.txt",
   "peers/cs336/special_token_double_newlines_non_whitespace.txt"},
  {"peers/cs336/special_token_trailing_newlines.txt",
   "peers/cs336/special_token_trailing_newlines.txt"},
  {"peers/cs336/tinystories_sample.txt", "peers/cs336/tinystories_sample.txt"},
  {"peers/minbpe/taylorswift.txt", "peers/minbpe/taylorswift.txt"},
  {"peers/sentencepiece/botchan.txt", "peers/texts/botchan.txt"},
  {"peers/sentencepiece/wagahaiwa_nekodearu.txt", "peers/texts/wagahaiwa_nekodearu.txt"},
  {"peers/char-rnn/tinyshakespeare.txt", "peers/texts/tinyshakespeare.txt"},
};

static void check_fixture(run *r, sqlite3_stmt *s, const json_t *list, const char *dir,
                          const char *const names[2]) {
  char path[1024], hex[65], where[256];
  size_t len, rows = 0;
  snprintf(path, sizeof path, "%s/%s", dir, names[1]);
  char *text = read_file(path, &len);
  if (!loaded_check(&r->t, text != NULL, "%s: cannot read", path)) {
    return;
  }
  sha256_hex(text, len, hex);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *w = json_array_get(list, i);
    const char *name = json_string_value(json_object_get(w, "file"));
    const char *mode = json_string_value(json_object_get(w, "mode"));
    const char *digest = json_string_value(json_object_get(w, "file_sha256"));
    if (!name || strcmp(name, names[0]) != 0) {
      continue;
    }
    rows++;
    if (loaded_check(&r->t, digest && !strcmp(digest, hex), "%s: not the text that was encoded",
                     path)) {
      snprintf(where, sizeof where, "%s, %s", names[0], mode);
      check_text(r, s, w, text, len, !strcmp(mode, "all") ? "{\"special\":\"allow\"}" : NULL,
                 where);
    }
  }
  loaded_check(&r->t, rows > 0, "%s: not in files.json", names[0]);
  sqlite3_reset(s);
  free(text);
}

static void check_fixtures(run *r, const char *dir) {
  json_t *list = load_list(r, "files.json");
  sqlite3_stmt *s = prepare_whole(r);
  for (size_t i = 0; i < json_array_size(list); i++) {
    const char *name = json_string_value(json_object_get(json_array_get(list, i), "file"));
    bool known = name && !strncmp(name, "corpora/", 8); /* too big to keep: built, never stored */
    for (size_t k = 0; name && k < sizeof fixtures / sizeof *fixtures; k++) {
      known = known || !strcmp(name, fixtures[k][0]);
    }
    loaded_check(&r->t, known, "files.json: %s is not looked for", name ? name : "(no name)");
  }
  for (size_t i = 0; s && i < sizeof fixtures / sizeof *fixtures; i++) {
    check_fixture(r, s, list, dir, fixtures[i]);
  }
  json_decref(list);
}

int main(int argc, char **argv) {
  const char *extension = "./bpe", *texts = NULL;
  run r = {.dir = "tests/vectors"};
  char path[1024];
  size_t len;
  for (int i = 1; i < argc; i += 2) {
    const char **value = !strcmp(argv[i], "--ext")        ? &extension
                         : !strcmp(argv[i], "--vectors")  ? &r.dir
                         : !strcmp(argv[i], "--fixtures") ? &texts
                                                          : NULL;
    if (!value || i + 1 == argc) {
      printf("usage: vectors [--ext ./bpe] [--vectors DIR] [--fixtures DIR]\n");
      return 2;
    }
    *value = argv[i + 1];
  }
  snprintf(path, sizeof path, "%s/SHA256SUMS", r.dir);
  r.sums = read_file(path, &len);
  if (!r.sums) {
    printf("%s: cannot read\n", path);
    return 1;
  }
  if (!loaded_begin(&r.t, extension)) {
    free(r.sums);
    return 1;
  }
  if (texts) {
    check_fixtures(&r, texts);
  } else {
    check_sums(&r);
    check_all_ids(&r);
    check_specials_and_decode(&r);
    check_all_pieces(&r);
    check_long_runs(&r);
  }
  free(r.sums);
  return loaded_end(&r.t);
}
