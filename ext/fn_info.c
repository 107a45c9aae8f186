/* fn_info.c - single tokens, names, and what this build is made of.
**
**   bpe_token(id [, tokenizer])        BLOB, the token's bytes; NULL if there is no such id
**   bpe_token_id(bytes [, tokenizer])  INTEGER, the id of exactly that token; NULL if there is none
**   bpe_resolve(name)                  TEXT, what a name means: an encoding's name, or that of a
**                                      stored tokenizer, with its schema unless that is main; NULL
**   bpe_version()                      TEXT
**   bpe_debug()                        TEXT, a JSON object for reports of faults
**
** bpe_token takes an INTEGER only: an id that arrives as text is a mistake somewhere else. A
** number that is no id is the plain answer NULL, as for any id that the tokenizer does not have.
*/
#include "ext.h"

#include <string.h>
#include <yajl/yajl_version.h>

static void token_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  failure f = {.name = "bpe_token", .c = sqlite3_user_data(ctx)};
  call *k = NULL;
  if (value_is_null(argv[0])) return;
  if (sqlite3_value_type(argv[0]) != SQLITE_INTEGER) {
    fail(&f, "id must be an INTEGER, not %s", value_type_name(argv[0]));
  } else {
    call_get(ctx, argc, argv, 1, 0, &f, &k);
  }
  if (k) {
    const sqlite3_int64 id = sqlite3_value_int64(argv[0]);
    bpe_info info;
    bpe_model_info(k->tok->model, &info);
    size_t at = info.entry_count;
    if (id >= 0 && id < (sqlite3_int64)BPE_NONE) {
      at = bpe_model_find_id(k->tok->model, (uint32_t)id);
    }
    if (at < info.entry_count) {
      const bpe_token token = bpe_model_token(k->tok->model, at);
      sqlite3_result_blob64(ctx, token.bytes, token.len, SQLITE_TRANSIENT);
    }
  }
  if (f.rc != SQLITE_OK) failure_to_context(&f, ctx);
  call_release(k);
}

static void token_id_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  failure f = {.name = "bpe_token_id", .c = sqlite3_user_data(ctx)};
  call *k = NULL;
  bytes token;
  if (value_is_null(argv[0])) return;
  call_get(ctx, argc, argv, 1, 0, &f, &k);
  if (k && !value_bytes(argv[0], &token)) {
    fail_code(&f, SQLITE_NOMEM);
  } else if (k) {
    bpe_info info;
    bpe_model_info(k->tok->model, &info);
    const size_t at = bpe_model_find_bytes(k->tok->model, token.data, token.len);
    if (at < info.entry_count) sqlite3_result_int64(ctx, bpe_model_token(k->tok->model, at).id);
  }
  if (f.rc != SQLITE_OK) failure_to_context(&f, ctx);
  call_release(k);
}

static void resolve_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  (void)argc;
  conn *c = sqlite3_user_data(ctx);
  failure f = {.name = "bpe_resolve", .c = c};
  bytes name;
  char *meant = NULL;
  if (sqlite3_value_type(argv[0]) != SQLITE_TEXT) return;
  if (!value_bytes(argv[0], &name)) fail_code(&f, SQLITE_NOMEM);
  else if (name.len > 0) tokenizer_resolve(c, name, &f, &meant);
  if (f.rc != SQLITE_OK) failure_to_context(&f, ctx);
  else if (meant) sqlite3_result_text(ctx, meant, -1, sqlite3_free);
}

static void version_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  (void)argc;
  (void)argv;
  sqlite3_result_text(ctx, BPE_VERSION, -1, SQLITE_STATIC);
}

/* ---- bpe_debug ------------------------------------------------------------------------------ */

#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#elif defined(__GNUC__)
#define COMPILER "gcc " __VERSION__
#else
#define COMPILER "unknown"
#endif

#define STRING_OF(x) #x
#define DOTTED(a, b, c) STRING_OF(a) "." STRING_OF(b) "." STRING_OF(c)
#define YAJL_VERSION_TEXT DOTTED(YAJL_MAJOR, YAJL_MINOR, YAJL_MICRO)

#ifdef SQLITE_CORE
#define LINKAGE "static"
#else
#define LINKAGE "loadable"
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZERS "address"
#else
#define SANITIZERS ""
#endif

static void add_key(bpe_buffer *b, const char *key) {
  bpe_buffer_append(b, b->len > 1 ? ", " : "", b->len > 1 ? 2 : 0);
  bpe_buffer_append_json(b, key, strlen(key));
  bpe_buffer_append(b, ": ", 2);
}

static void add_text(bpe_buffer *b, const char *key, const char *value) {
  add_key(b, key);
  bpe_buffer_append_json(b, value, strlen(value));
}

static void add_number(bpe_buffer *b, const char *before, size_t value, const char *after) {
  bpe_buffer_append(b, before, strlen(before));
  bpe_buffer_append_decimal(b, value);
  bpe_buffer_append(b, after, strlen(after));
}

static void add_tokenizers(bpe_buffer *b, const conn *c) {
  add_key(b, "tokenizers");
  bpe_buffer_append(b, "[", 1);
  for (const tokenizer *t = c->tokenizers; t; t = t->next) {
    bpe_coder_stats stats;
    bpe_coder_stat(t->coder, &stats);
    bpe_buffer_append(b, "{\"name\": ", 9);
    bpe_buffer_append_json(b, t->name, strlen(t->name));
    add_number(b, ", \"piece_slots\": ", stats.piece_slots, "");
    add_number(b, ", \"piece_bytes\": ", stats.piece_bytes, "");
    add_number(b, ", \"scratch_bytes\": ", stats.scratch_bytes, t->next ? "}, " : "}");
  }
  bpe_buffer_append(b, "]", 1);
}

static void debug_func(sqlite3_context *ctx, int argc, sqlite3_value **argv) {
  (void)argc;
  (void)argv;
  conn *c = sqlite3_user_data(ctx);
  failure f = {.name = "bpe_debug", .c = c};
  char pcre2[64];
  bool jit;
  bpe_buffer b;
  bpe_pcre2_version(pcre2, &jit);
  result_begin(c, &b);
  bpe_buffer_append(&b, "{", 1);
  add_text(&b, "version", BPE_VERSION);
  add_text(&b, "sqlite", sqlite3_libversion());
  add_text(&b, "sqlite_headers", SQLITE_VERSION);
  add_text(&b, "pcre2", pcre2);
  add_key(&b, "pcre2_jit");
  bpe_buffer_append(&b, jit ? "true" : "false", jit ? 4 : 5);
  add_text(&b, "unicode", bpe_unicode_version());
  add_text(&b, "yajl", YAJL_VERSION_TEXT);
  add_text(&b, "compiler", COMPILER);
  add_text(&b, "options", SANITIZERS[0] ? LINKAGE " sanitize=" SANITIZERS : LINKAGE);
  add_tokenizers(&b, c);
  bpe_buffer_append(&b, "}", 1);
  if (result_end(ctx, c, &b, true, &f) != SQLITE_OK) failure_to_context(&f, ctx);
}

/* bpe_resolve is not DETERMINISTIC: what a name means may be stored or removed at any time.
** bpe_version is INNOCUOUS but not DETERMINISTIC: the next release answers otherwise. bpe_debug is
** DIRECTONLY: no schema has business with the details of a build; and DETERMINISTIC, as is
** bpe_export. The others as in fn_encode.c. */
enum {
  ALONE = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS,
  NAMED = SQLITE_UTF8 | SQLITE_DETERMINISTIC
};

const function_row info_functions[] = {
    {"bpe_token", 1, ALONE, token_func},
    {"bpe_token", 2, NAMED, token_func},
    {"bpe_token_id", 1, ALONE, token_id_func},
    {"bpe_token_id", 2, NAMED, token_id_func},
    {"bpe_resolve", 1, SQLITE_UTF8, resolve_func},
    {"bpe_version", 0, SQLITE_UTF8 | SQLITE_INNOCUOUS, version_func},
    {"bpe_debug", 0, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, debug_func},
    {NULL, 0, 0, NULL},
};
