/* bugs.c - failures of other tokenizers that one line of SQL cannot show (BUGS.md lists them all).
**
**     bugs [--ext ./bpe] [--slow] [--tmp build]
**
** Generated texts whose ids are known by digest (P31, F03), runs with a limit of processor time
** (F01..F09), bounded memory (F13), other file names of the extension (Q17), and connections
** that come and go (Q19). --slow is for valgrind: times are not judged; nor are they in a build
** under AddressSanitizer. The generator of P31 and F03 is x = x * 1664525 + 1013904223 mod 2^32,
** of which the upper 16 bits count.
*/
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loaded.h"
#include "ref_sha256.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define IS_SLOW true
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define IS_SLOW true
#endif
#ifndef IS_SLOW
#define IS_SLOW false
#endif

static const char *const encodings[] = {"gpt2", "cl100k_base", "o200k_base"};
enum { N_ENCODINGS = 3 };

typedef struct run {
  loaded t;
  const char *extension, *tmp;
  bool slow;
} run;

typedef struct string {
  char *data;
  size_t len, cap;
} string;

static void append(string *s, const void *bytes, size_t len) {
  if (s->len + len + 1 > s->cap) {
    s->cap = 2 * (s->len + len) + 64;
    s->data = realloc(s->data, s->cap);
  }
  memcpy(s->data + s->len, bytes, len);
  s->len += len;
  s->data[s->len] = 0;
}

static void repeat(string *s, const char *unit, size_t n) {
  for (size_t i = 0; i < n; i++) append(s, unit, strlen(unit));
}

static uint32_t draw(uint32_t *x) {
  *x = *x * 1664525 + 1013904223;
  return *x >> 16;
}

static void check_digest(run *r, const string *s, const char *expected, const char *what) {
  char hex[65];
  sha256_hex(s->data, s->len, hex);
  loaded_check(&r->t, !strcmp(hex, expected), "%s: digest %s", what, hex);
}

/* Appends "1 2 3" for the JSON list that the statement's first column holds; how many ids. */
static size_t append_ids(string *out, sqlite3_stmt *s) {
  const char *json = (const char *)sqlite3_column_text(s, 0);
  const size_t len = json ? strlen(json) : 0;
  size_t n = len > 2;
  for (size_t i = 1; i + 1 < len; i++) {
    append(out, json[i] == ',' ? " " : json + i, 1);
    n += json[i] == ',';
  }
  return n;
}

/* ---- Generated texts ------------------------------------------------------------------------ */

/* P31: a thousand strings that put every class beside every other. */
static void check_class_crossing(run *r) {
  static const char *const alphabet[] = {
    "a", "b", "the", "Data", "Re", "S", "X", "\u00e9", "\u00df", "\u044f", "\u0414", "\u4eca",
    "\u306e", "\u6f22", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\xc2\x85", "\u3000", ".", ",",
    "!", "'", "'s", "'LL", "\"", "-", "_", "(", "/", "//", "1", "23", "4567", "\u00bd", "\u0663",
    "\u00b2", "\U0001f600", "\U0001f469\u200d\U0001f4bb", "\ufeff", "\u02b0", "\u01c5", "\u093f",
    "\u0915", "\u0e17\u0e35", "\u1c89", "\\n", "{", "<|", "|>", "$", "\u00b0",
  };
  static const struct {
    size_t tokens;
    const char *digest; /* of the ids joined by spaces, the lines joined by line ends */
  } expected[N_ENCODINGS] = {
    {18581, "02ae7657a2d8589a540df73bdac4b707b5d6cb6e2e4459727158c5b8e2d48707"},
    {15441, "723c8b337ff0b5b3a91688e48172f26abdbef4d3c58787bfbedbf797b4604f1e"},
    {14081, "40cbca0833b65c4777d40bd51a552d2ae5ff8584cc635beb9c8e93b0910a11f4"},
  };
  sqlite3_stmt *s = loaded_prepare(
    &r->t, "SELECT bpe_encode(?1, ?2), bpe_decode(bpe_encode(?1, ?2), ?2) = ?1");
  string corpus = {0}, ids[N_ENCODINGS] = {{0}};
  size_t tokens[N_ENCODINGS] = {0};
  uint32_t x = 11;
  for (int i = 0; s && i < 1000; i++) {
    if (i > 0) append(&corpus, "", 1);
    const size_t start = corpus.len, n = 1 + draw(&x) % 24;
    for (size_t k = 0; k < n; k++) {
      const char *part = alphabet[draw(&x) % (sizeof alphabet / sizeof *alphabet)];
      append(&corpus, part, strlen(part));
    }
    for (int e = 0; e < N_ENCODINGS; e++) {
      if (i > 0) append(&ids[e], "\n", 1);
      const bool row = loaded_row(s, corpus.data + start, corpus.len - start, encodings[e], NULL);
      loaded_check(&r->t, row && sqlite3_column_int(s, 1), "P31, %s, string %d: %s", encodings[e],
                   i, row ? "no round trip" : sqlite3_errmsg(r->t.db));
      if (row) tokens[e] += append_ids(&ids[e], s);
    }
  }
  sqlite3_reset(s);
  check_digest(r, &corpus, "25db44b05987a8d5060dd835b66bc03ad8847b1e17bdadb44595ebdcf6f1b366",
               "P31, the texts");
  for (int e = 0; e < N_ENCODINGS; e++) {
    loaded_check(&r->t, tokens[e] == expected[e].tokens, "P31, %s: %zu tokens", encodings[e],
                 tokens[e]);
    check_digest(r, &ids[e], expected[e].digest, encodings[e]);
    free(ids[e].data);
  }
  free(corpus.data);
}

/* F03: a hundred thousand letters in one piece, without a repetition. */
static void check_letters(run *r) {
  static const char *const expected[N_ENCODINGS] = {
    "e0d29d9fdb1f2d5f6d0eba18f2c27ee5a674379dd259d8b5f25ffe2a47b84c49",
    "d1d9e82b4b8c06bffaba5b569ef2f040cb9390eb507f97c5863d1e47656b782f",
    "082b56bbaec8f828af14bdb7ed2946b70f2416c2ca35c48e09182595f109e9ac",
  };
  sqlite3_stmt *s = loaded_prepare(&r->t, "SELECT bpe_encode(?1, ?2)");
  string text = {0};
  uint32_t x = 1;
  for (int i = 0; i < 100000; i++) append(&text, &(char){(char)(97 + draw(&x) % 26)}, 1);
  check_digest(r, &text, "fdf5c435ffe0f5a6c293b84e5bdc3959bc581b5ee2218e77700da49ac94f9e8e",
               "F03, the text");
  for (int e = 0; s && e < N_ENCODINGS; e++) {
    string ids = {0};
    const clock_t start = clock();
    const bool row = loaded_row(s, text.data, text.len, encodings[e], NULL);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (loaded_check(&r->t, row, "F03, %s: %s", encodings[e], sqlite3_errmsg(r->t.db))) {
      append_ids(&ids, s);
      check_digest(r, &ids, expected[e], "F03");
    }
    loaded_check(&r->t, r->slow || seconds < 0.5, "F03, %s: %.2f s", encodings[e], seconds);
    free(ids.data);
  }
  sqlite3_reset(s);
  free(text.data);
}

/* ---- Long runs, with a time limit ----------------------------------------------------------- */

static void check_runs(run *r) {
  static const struct {
    const char *name, *prefix, *unit;
    size_t n;
    const char *suffix;
    sqlite3_int64 counts[N_ENCODINGS]; /* -1: no reference */
    double seconds;
  } runs[] = {
    {"F01", "", "^", 1000000, "", {250000, 250000, 125000}, 2},
    {"F05", "", "x", 524288, "", {65536, 65536, 65536}, 1.5},
    {"F07 spaces", "", " ", 1000000, "", {1000000, 7813, 7813}, 1},
    {"F07 line ends", "", "\n", 1000000, "", {500000, 31250, 62500}, 1},
    {"F07 spaces, x", "", " ", 1000000, "x", {1000000, 7814, 7814}, 1},
    {"F09 zeros", "", "0", 300000, "", {-1, 100000, 100000}, 1},
    {"F09 's", "", "'s", 100000, "", {-1, 100000, 100000}, 1},
    {"F09 carets", " ", "^", 100000, "\n", {-1, 25003, 12504}, 1},
  };
  sqlite3_stmt *s = loaded_prepare(&r->t, "SELECT bpe_count(?1, ?2)");
  for (size_t i = 0; s && i < sizeof runs / sizeof *runs; i++) {
    string text = {0};
    repeat(&text, runs[i].prefix, 1);
    repeat(&text, runs[i].unit, runs[i].n);
    repeat(&text, runs[i].suffix, 1);
    for (int e = 0; e < N_ENCODINGS; e++) {
      const clock_t start = clock();
      const bool row = loaded_row(s, text.data, text.len, encodings[e], NULL);
      const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
      const sqlite3_int64 n = row ? sqlite3_column_int64(s, 0) : -1;
      loaded_check(&r->t, row && (runs[i].counts[e] < 0 || n == runs[i].counts[e]),
                   "%s, %s: %lld tokens", runs[i].name, encodings[e], (long long)n);
      loaded_check(&r->t, r->slow || seconds < runs[i].seconds, "%s, %s: %.2f s", runs[i].name,
                   encodings[e], seconds);
    }
    sqlite3_reset(s);
    free(text.data);
  }
}

/* ---- Memory, names, connections ------------------------------------------------------------- */

/* F13: texts without end, each different, leave no more behind than a table of fixed size. */
static void check_memory(run *r) {
  enum { LIMIT = 32 << 20 };
  sqlite3_stmt *s = loaded_prepare(
    &r->t, "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)"
           " SELECT sum(bpe_count(printf('%d-', i) || hex(randomblob(2000)), 'cl100k_base'))"
           " FROM n");
  if (!s) return;
  const sqlite3_int64 before = sqlite3_memory_used();
  sqlite3_memory_highwater(1);
  loaded_check(&r->t, sqlite3_step(s) == SQLITE_ROW, "F13: %s", sqlite3_errmsg(r->t.db));
  sqlite3_reset(s);
  loaded_check(&r->t, sqlite3_memory_highwater(0) - before < LIMIT, "F13: %lld bytes at the peak",
               (long long)(sqlite3_memory_highwater(0) - before));
  loaded_check(&r->t, sqlite3_memory_used() - before < LIMIT, "F13: %lld bytes stay",
               (long long)(sqlite3_memory_used() - before));
}

#ifndef SLT_STATIC
static bool copy_file(const char *from, const char *to) {
  char block[8192];
  size_t n;
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  bool good = in && out;
  while (good && (n = fread(block, 1, sizeof block, in)) > 0) {
    good = fwrite(block, 1, n, out) == n;
  }
  if (in) fclose(in);
  return (!out || fclose(out) == 0) && good;
}

#ifdef __APPLE__
#define LIBRARY ".dylib"
#else
#define LIBRARY ".so"
#endif

/* Q17: the entry point is found by the file's name, also with a prefix and a version. */
static void check_file_names(run *r) {
  static const char *const names[] = {"libbpe" LIBRARY, "bpe-1.2" LIBRARY, "bpe" LIBRARY};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char from[512], to[512];
    loaded other;
    snprintf(from, sizeof from, "%s" LIBRARY, r->extension);
    snprintf(to, sizeof to, "%s/%s", r->tmp, names[i]);
    if (!loaded_check(&r->t, copy_file(from, to), "Q17: cannot copy %s to %s", from, to)) continue;
    const bool good = loaded_begin(&other, to);
    loaded_check(&r->t, good, "Q17: %s", to);
    if (good) sqlite3_close(other.db);
    remove(to);
  }
}
#endif

/* Q19: open, use everything, leave a cursor half way, fail, close; nothing is left behind. */
static const char *const uses[] = {
    "SELECT bpe_count('a b', 'gpt2'), bpe_encode('a b', 'gpt2'), bpe_encode_blob('a b', 'gpt2')",
    "SELECT bpe_decode('[64]', 'gpt2'), bpe_decode_blob('[64]', 'gpt2'), bpe_token(64, 'gpt2')",
    "SELECT bpe_token_id('a', 'gpt2'), bpe_resolve('gpt-4'), bpe_version(), bpe_debug()",
    "SELECT bpe_fits('a b', 1, 'gpt2'), bpe_truncate('a b', 1, 'gpt2')",
    "SELECT bpe_ids_length(x'0000000001000000'), bpe_ids_slice(x'0000000001000000', 1, 1)",
    "SELECT bpe_ansi('a b', 'gpt2'), bpe_html('a b', 'gpt2')",
    "SELECT length(bpe_export('mine', 'huggingface')), length(bpe_export('mine', 'model'))",
    "SELECT bpe_token_stats(column1, 'mine') FROM (VALUES ('a b'), ('b')) GROUP BY column1",
    "SELECT bpe_train(column1, 257) FROM (VALUES ('abab'), ('cdcd')) GROUP BY column1",
    "SELECT * FROM bpe_tokens('a b c d', 'gpt2')",
    "SELECT * FROM bpe_pieces('a b c d', 'gpt2')",
    "SELECT * FROM bpe_chunks('a b c d', 1, 'gpt2')",
    "SELECT * FROM bpe_trace('hello', 'gpt2')",
    "SELECT * FROM bpe_stream('VALUES (''a b c d''), (''e'')', 'gpt2')",
    "SELECT * FROM bpe_ids(x'0000000001000000')",
    "SELECT * FROM bpe_vocab('gpt2')",
    "SELECT * FROM bpe_merges('gpt2')",
    "SELECT * FROM bpe_tokenizers",
    "SELECT bpe_count('abab', 'mine') FROM bpe_vocab('mine')",
    "UPDATE bpe_tokenizers SET name = 'ours' WHERE name = 'mine'",
};

static const char *const refusals[] = {
    "SELECT bpe_count('a', 'no such tokenizer')",
    "SELECT bpe_decode('[999999]', 'gpt2')",
    "SELECT bpe_encode('<|endoftext|>', 'gpt2', '{\"special\":\"error\"}')",
    "SELECT bpe_export('gpt2', 'no such format')",
    "SELECT bpe_train('abab', 257, '{\"tie\":\"none\"}')",
    "SELECT * FROM bpe_tokens('a', 'no such tokenizer')",
    "SELECT * FROM bpe_stream('SELECT nothing')",
    "SELECT bpe_private(1)",
    "INSERT INTO bpe_tokenizers(name, source) VALUES('bad', 'no source')",
};

enum { N_USES = sizeof uses / sizeof *uses, N_REFUSALS = sizeof refusals / sizeof *refusals };

static bool has_word(const char *text, const char *word) {
  const size_t len = strlen(word);
  for (const char *p = text; (p = strstr(p, word)) != NULL; p += len)
    if (p[len] != '_' && (p[len] < 'a' || p[len] > 'z')) return true;
  return false;
}

/* No function and no table of the extension is missing above. */
static void check_uses(run *r, sqlite3 *db) {
  static const char list[] = "SELECT name FROM pragma_function_list WHERE substr(name, 1, 4) = 'bpe_'"
                             " UNION SELECT name FROM pragma_module_list WHERE substr(name, 1, 4) = 'bpe_'";
  sqlite3_stmt *s = NULL;
  int n = 0;
  sqlite3_prepare_v2(db, list, -1, &s, NULL);
  while (s && sqlite3_step(s) == SQLITE_ROW) {
    const char *name = (const char *)sqlite3_column_text(s, 0);
    bool used = false;
    for (int i = 0; i < N_USES && !used; i++) used = has_word(uses[i], name);
    for (int i = 0; i < N_REFUSALS && !used; i++) used = has_word(refusals[i], name);
    loaded_check(&r->t, used, "Q19: %s is not used", name);
    n++;
  }
  loaded_check(&r->t, n > 0, "Q19: functions cannot be listed: %s", sqlite3_errmsg(db));
  sqlite3_finalize(s);
}

/* One row at most: the cursor stays half way. */
static void use(run *r, sqlite3 *db, const char *sql, bool works) {
  sqlite3_stmt *s = NULL;
  int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_step(s);
  loaded_check(&r->t, works ? rc == SQLITE_ROW || rc == SQLITE_DONE : rc == SQLITE_ERROR,
               "Q19: %s: %d %s", sql, rc, sqlite3_errmsg(db));
  sqlite3_finalize(s);
}

static void check_connections(run *r) {
  static const char store[] =
      "INSERT INTO bpe_tokenizers(name, source) SELECT 'mine', bpe_train('abab', 257)";
  sqlite3_int64 used = 0;
  for (int i = 0; i < (r->slow ? 3 : 50); i++) {
    loaded c;
    if (!loaded_check(&r->t, loaded_begin(&c, r->extension), "Q19: connection %d", i)) return;
    if (i == 0) check_uses(r, c.db);
    use(r, c.db, store, true);
    for (int k = 0; k < N_USES; k++) use(r, c.db, uses[k], true);
    for (int k = 0; k < N_REFUSALS; k++) use(r, c.db, refusals[k], false);
    loaded_check(&r->t, sqlite3_close(c.db) == SQLITE_OK, "Q19: close of connection %d", i);
    if (i == 0) used = sqlite3_memory_used(); /* after what is allocated once for all */
  }
  loaded_check(&r->t, sqlite3_memory_used() == used, "Q19: %lld bytes more than after the first",
               (long long)(sqlite3_memory_used() - used));
}

int main(int argc, char **argv) {
  run r = {.extension = "./bpe", .tmp = "build", .slow = IS_SLOW};
  for (int i = 1; i < argc; i++) {
    const char **value = !strcmp(argv[i], "--ext")   ? &r.extension
                         : !strcmp(argv[i], "--tmp") ? &r.tmp
                                                     : NULL;
    if (!strcmp(argv[i], "--slow")) {
      r.slow = true;
    } else if (value && i + 1 < argc) {
      *value = argv[++i];
    } else {
      printf("usage: bugs [--ext ./bpe] [--slow] [--tmp build]\n");
      return 2;
    }
  }
  if (!loaded_begin(&r.t, r.extension)) return 1;
  check_class_crossing(&r);
  check_letters(&r);
  check_runs(&r);
  check_memory(&r);
#ifndef SLT_STATIC
  check_file_names(&r);
#endif
  check_connections(&r);
  return loaded_end(&r.t);
}
