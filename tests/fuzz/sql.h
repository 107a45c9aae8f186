/* sql.h - what the SQL fuzz targets share: a database to begin with, values, running a statement.
**
** The database has a table of texts, another with columns and an index made of them, a view, a full
** text index, and four small tokenizers, each of another kind:
**
**     m  merges by ids, pattern none, a special token that goes before a document
**     w  tokens spelled out, not for every byte, so that most texts have no ids
**     g  GPT-2's pattern, a few merges, three special tokens
**     h  the same behind a normalizer, so that a text and its tokens differ
**
** Opening one and storing all that takes long, so a target keeps a connection and puts the
** database back, byte by byte, where an input has written. The extension is linked in.
*/
#ifndef FUZZ_SQL_H
#define FUZZ_SQL_H

#include "fuzz.h"

#include <sqlite3.h>

int sqlite3_bpe_init(sqlite3 *, char **, const sqlite3_api_routines *);

#ifndef FUZZ_SETUP /* a target may have its own */
#define FUZZ_SETUP setup
static const char setup[] =
    "INSERT INTO bpe_tokenizers(name, source) VALUES"
    "('m', "
    "'{\"pattern\":\"none\",\"merges\":[[97,98],[256,99],[97,97]],\"special_tokens\":[\"<s>\"],"
    "\"bos\":[\"<s>\"]}'),"
    "('w', "
    "'{\"pattern\":\"gpt2\",\"vocab\":{\"0\":\"61\",\"1\":\"62\",\"2\":\"6162\",\"9\":\"616261\"},"
    "\"merges\":[[\"61\",\"62\"],[\"6162\",\"61\"]],\"special_tokens\":{\"<t>\":5}}'),"
    "('g', "
    "'{\"pattern\":\"gpt2\",\"merges\":[[32,116],[104,101],[256,257],[101,114],[97,98],[260,99],"
    "[32,32],[48,48],[204,129]],\"special_tokens\":[\"<s>\",\"</s>\",\"<|endoftext|>\"],"
    "\"bos\":[\"<s>\"],\"eos\":[\"</s>\"]}');"
    "INSERT INTO bpe_tokenizers(name, source) SELECT 'h', replace(bpe_export('g', 'huggingface'),"
    " '\"normalizer\":null', '\"normalizer\":{\"type\":\"NFC\"}');"
    "CREATE TABLE t(a, b, c);"
    "INSERT INTO t VALUES(1, 'the cab ab', x'6162'), (2, 'é' || char(769) || '<s> ÉŸİ ΩЖ' || "
    "char(0) || 'Ab', NULL),"
    " (3, '', 2.5);"
    "CREATE TABLE u(a, b, c AS (bpe_count(b, 'm')) STORED, d AS (bpe_encode(b, 'g')));"
    "CREATE INDEX ui ON u(c, bpe_count(b, 'g')); INSERT INTO u SELECT a, b FROM t;"
    "CREATE VIEW v AS SELECT b AS text, bpe_count(b, 'g') AS tokens FROM t;"
    "CREATE VIRTUAL TABLE f USING fts5(b, tokenize = 'bpe g fold trim'); INSERT INTO f(b) SELECT b "
    "FROM "
    "t;"
    "CREATE VIRTUAL TABLE fv USING fts5vocab(f, row);";
#endif

static const char *const tokenizers[] = {
    "m", "g", "h", "w", "gpt2", "cl100k_base", "o200k_base", "main.g", "gpt-4o", "no such"};

/* Strings that mean something, so that not every input has to find them. */
/* The first OPTIONS are options of functions, as they should be. */
enum { OPTIONS = 33 };
static const char *const words[] = {
    "{}", "{\"special\":\"allow\"}", "{\"special\":\"error\"}", "{\"special\":\"skip\"}",
    "{\"special\":{\"allow\":\"all\",\"error\":\"rest\"}}", "{\"special\":[\"<s>\"]}",
    "{\"special\":{\"allow\":[\"<s>\"],\"error\":[\"</s>\",\"x\"]}}", "{\"document\":true}",
    "{\"document\":true,\"special\":\"allow\"}", "{\"width\":16}",
    "{\"width\":32,\"special\":\"text\"}", "{\"pad_to\":9,\"pad\":\"<s>\"}", "{\"pad_to\":9}",
    "{\"errors\":\"hold\"}", "{\"errors\":\"strict\"}", "{\"errors\":\"ignore\"}",
    "{\"pattern\":\"qwen2\"}", "{\"regex\":\"\\\\w+\"}", "{\"regex\":\"(\"}", "{\"digest\":\"00\"}",
    "{\"special\":null}", "{\"side\":\"left\"}", "{\"overlap\":2}", "{\"at\":\"piece\"}",
    "{\"at\":\"sentence\"}", "{\"at\":\"paragraph\",\"overlap\":1}", "{\"at\":\"token\"}",
    "{\"pattern\":\"none\",\"threads\":1}",
    "{\"pattern\":\"gpt2\",\"tie\":\"first\",\"threads\":2}",
    ("{\"tie\":\"ids\",\"special_tokens\":[\"<s>\"],\"bos\":[\"<s>\"],\"special_ids\":\"first\","
     "\"threads\":1}"),
    "{\"byte_order\":\"gpt2\",\"min_frequency\":2,\"max_token_length\":4,\"threads\":1}",
    "{\"pretokenized\":true,\"regex\":\"a+\",\"threads\":1}", "{\"vocab_size\":258}", "[1,2,3]",
    "[97,98,256]", "[200000]", "[-1]", "[1.5]", "[]", "[97", "<s>", "a<|endoftext|>b",
    "the cab. ab ab?\n\n the", "ab", "model", "tiktoken", "huggingface", "gpt2-vocab",
    "gpt2-merges", "minbpe", "SELECT b FROM t", "VALUES('ab'),(x'c3'),('\xc2')",
    "SELECT id FROM bpe_tokens('ab','m')", "SELECT seq FROM bpe_stream('SELECT b FROM t', 'g')",
    "3\n", "e\xcc\x81\xef\xac\x81 \xe2\x84\xab",
    /* options that are wrong, or right for few */
    "{\"special\":{\"allow\":1}}", "{\"special\":{\"error\":2}}", "{\"special\":{\"x\":1}}",
    "{\"special\":{\"error\":[\"ab\",\"<s>\"]}}", "{\"document\":1}", "{\"width\":5}",
    "{\"pad_to\":-1,\"pad\":\"a\"}", "{\"pad_to\":4,\"pad\":\"zzz\"}",
    "{\"pad_to\":40,\"pad\":\"<s>\",\"width\":16}", "{\"errors\":\"x\"}", "{\"side\":\"x\"}",
    "{\"overlap\":-1}", "{\"overlap\":100}", "{\"threads\":-1}", "{\"min_frequency\":-1}",
    "{\"max_token_length\":0}", "{\"tie\":\"x\"}",
    "{\"special_tokens\":[\"<s>\",\"x\"],\"eos\":[\"x\"],\"special_ids\":\"after_bytes\","
    "\"threads\":1}",
    "{\"special_ids\":1}", "{\"byte_order\":1}", "{\"special_tokens\":[\"<s>\"],\"bos\":[\"x\"]}",
    "{\"whole\":true}", "{\"vocab_size\":0}", "{\"width\":16,\"width\":16}",
    "{\"special\":[[[[[[[[]]]]]]]]}", "{\"special\":[\"\\ud800\"]}",
    "{\"special\":[\"\\uD83D\\uDE00\"]}", "{} x",
    "{\"digest\":\"0123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789\"}",
    "-- a\n/* b */ SELECT b FROM t", "SELECT ?1", "SELECT nope"};

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static inline int bind_value(sqlite3_stmt *s, int i, input *in) {
  size_t len;
  const uint8_t *p;
  switch (take(in, 9)) {
  case 0: return sqlite3_bind_null(s, i);
  case 1: return sqlite3_bind_int64(s, i, (sqlite3_int64)(int32_t)take_u32(in));
  case 2: return sqlite3_bind_int64(s, i, (sqlite3_int64)take(in, 256) - 3);
  case 3: return sqlite3_bind_double(s, i, (double)take_u32(in) / 256);
  case 4:
  case 5: return sqlite3_bind_text(s, i, words[take(in, LENGTH(words))], -1, SQLITE_STATIC);
  case 6:
    p = take_bytes(in, take(in, 256), &len);
    return sqlite3_bind_blob(s, i, len == 0 ? (const void *)"" : p, (int)len, SQLITE_TRANSIENT);
  default:
    p = take_bytes(in, take(in, 256), &len);
    return sqlite3_bind_text(s, i, len == 0 ? "" : (const char *)p, (int)len, SQLITE_TRANSIENT);
  }
}

/* A name, mostly of a tokenizer that is small. */
static inline int bind_tokenizer(sqlite3_stmt *s, int i, input *in, bool small) {
  const unsigned x = take(in, 64);
  const unsigned which = small || x < 48 ? x % 4 : x < 60 ? x % (unsigned)LENGTH(tokenizers) : 99;
  if (which == 99) return bind_value(s, i, in);
  return sqlite3_bind_text(s, i, tokenizers[which], -1, SQLITE_STATIC);
}

/* Steps to the end, looking at every column as a reader would, and sums up what it saw. promise:
** where a column has a value, it is 1. */
static inline int run(sqlite3 *db, sqlite3_stmt *s, bool promise, uint64_t *sum) {
  int rc, rows = 0;
  uint64_t h = 14695981039346656037u;
  while ((rc = sqlite3_step(s)) == SQLITE_ROW && rows++ < 1000) {
    for (int i = 0; i < sqlite3_column_count(s); i++) {
      const int type = sqlite3_column_type(s, i);
      const uint8_t *p = sqlite3_column_blob(s, i);
      const int len = sqlite3_column_bytes(s, i);
      REQUIRE(len == 0 || p != NULL || type == SQLITE_NULL || sqlite3_errcode(db) == SQLITE_NOMEM);
      h = (h ^ (unsigned)type) * 1099511628211u;
      for (int k = 0; p != NULL && k < len; k++) h = (h ^ p[k]) * 1099511628211u;
      const bool holds =
          !promise || type == SQLITE_NULL || sqlite3_column_int(s, i) == 1 + (int)sabotage();
      if (!holds) fprintf(stderr, "column %d of %s\n", i, sqlite3_expanded_sql(s));
      REQUIRE(holds);
    }
  }
  if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
    const char *text = sqlite3_errmsg(db);
    REQUIRE(text != NULL && text[0] != 0 && rc != SQLITE_MISUSE && rc != SQLITE_INTERNAL);
  }
  if (sum != NULL) *sum = h;
  return rc;
}

/* ---- Memory -----------------------------------------------------------------------------------
 */

/* SQLite's memory: each block with its size before it, freed large ones kept as in fuzz.h; and
 *where
 ** a target says so, an allocation fails. */
enum { HEADER = 16 };
static int until_failure; /* 0: none fails; 1: the next */

static inline void *mem_malloc(int n) {
  if (until_failure > 0 && --until_failure == 0) return NULL;
  int *p = take_kept((size_t)n + HEADER);
  if (p == NULL) p = malloc((size_t)n + HEADER);
  if (p == NULL) return NULL;
  *p = n;
  return p + HEADER / sizeof *p;
}

static inline int *start_of(void *p) {
  return (int *)p - HEADER / sizeof(int);
}

static inline void mem_free(void *p) {
  int *start = start_of(p);
  if (!keep_block(start, (size_t)*start + HEADER)) free(start);
}

static inline void *mem_realloc(void *p, int n) {
  if (until_failure > 0 && --until_failure == 0) return NULL;
  int *start = realloc(start_of(p), (size_t)n + HEADER);
  if (start == NULL) return NULL;
  *start = n;
  return start + HEADER / sizeof *start;
}

static inline int mem_size(void *p) {
  return *start_of(p);
}

static inline int mem_roundup(int n) {
  return (n + 7) & ~7;
}

static inline int mem_init(void *ctx) {
  (void)ctx;
  return SQLITE_OK;
}

static inline void mem_shutdown(void *ctx) {
  (void)ctx;
}

static inline void configure_memory(void) {
  static const sqlite3_mem_methods methods = {mem_malloc,  mem_free, mem_realloc,  mem_size,
                                              mem_roundup, mem_init, mem_shutdown, NULL};
  REQUIRE(sqlite3_config(SQLITE_CONFIG_MALLOC, &methods) == SQLITE_OK);
}

/* ---- Databases --------------------------------------------------------------------------------
 */

static inline int give_up(void *ticks) {
  return --*(int *)ticks < 0;
}

/* The database of the head remark, made once. */
static inline sqlite3 *original(void) {
  static sqlite3 *db;
  if (db != NULL) return db;
  configure_memory();
  REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
  REQUIRE(sqlite3_bpe_init(db, NULL, NULL) == SQLITE_OK);
  REQUIRE(sqlite3_exec(db, FUZZ_SETUP, NULL, NULL, NULL) == SQLITE_OK);
  return db;
}

/* False: a transaction is under way still. FTS5 leaves one behind when a rebuild fails. */
static inline bool restore(sqlite3 *db) {
  sqlite3_backup *b = sqlite3_backup_init(db, "main", original(), "main");
  if (b == NULL) return false;
  REQUIRE(sqlite3_backup_step(b, -1) == SQLITE_DONE);
  REQUIRE(sqlite3_backup_finish(b) == SQLITE_OK);
  return true;
}

/* ticks: how many thousand steps of SQLite's machine a statement may take. */
static inline sqlite3 *open_database(int *ticks) {
  sqlite3 *db;
  (void)original();
  REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
  REQUIRE(sqlite3_bpe_init(db, NULL, NULL) == SQLITE_OK);
  REQUIRE(restore(db));
  sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1000000);
  sqlite3_limit(db, SQLITE_LIMIT_VDBE_OP, 25000);
  sqlite3_limit(db, SQLITE_LIMIT_EXPR_DEPTH, 100);
  sqlite3_progress_handler(db, 1000, give_up, ticks);
  return db;
}

#endif
