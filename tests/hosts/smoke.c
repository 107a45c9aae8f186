/* smoke.c - does the extension work on the SQLite that this program was linked with?
**
**     smoke            prints the SQLite's version
**     smoke ./bpe      loads the extension and compares one answer of each kind as well
**
** The test files say what is right in detail; this only shows that a SQLite, above all one built
** without some of its parts, can load the extension, call every kind of function and table it
** registers, load it a second time, and close. It refuses a SQLite that is not newer than 3.40:
** the loader would then have found the system's.
*/
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

static int passed, failed;

static void check(const char *what, int ok, const char *detail) {
  if (ok) {
    passed++;
    return;
  }
  failed++;
  printf("FAIL %s: %s\n", what, detail);
}

static void check_answer(sqlite3 *db, const char *sql, const char *expected) {
  sqlite3_stmt *s = NULL;
  char got[512] = "";
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK && sqlite3_step(s) == SQLITE_ROW) {
    const unsigned char *text = sqlite3_column_text(s, 0);
    snprintf(got, sizeof got, "%s", text ? (const char *)text : "NULL");
  } else {
    snprintf(got, sizeof got, "%s", sqlite3_errmsg(db));
  }
  sqlite3_finalize(s);
  check(sql, strcmp(got, expected) == 0, got);
}

static void load(sqlite3 *db, const char *ext) {
  char *message = NULL;
  const int rc = sqlite3_load_extension(db, ext, NULL, &message);
  check("load", rc == SQLITE_OK, message ? message : "no message");
  sqlite3_free(message);
}

static void try_extension(const char *ext) {
  static const char *const answers[][2] = {
      {"SELECT bpe_count('hello world')", "2"},
      {"SELECT bpe_encode('hello world', 'cl100k_base')", "[15339,1917]"},
      {"SELECT hex(bpe_encode_blob('hello world', 'cl100k_base'))", "EB3B00007D070000"},
      {"SELECT bpe_decode('[15339,1917]', 'cl100k_base')", "hello world"},
      {"SELECT CAST(bpe_decode_blob('[15339,1917]', 'cl100k_base') AS TEXT)", "hello world"},
      {"SELECT bpe_resolve('gpt-4')", "cl100k_base"},
      {"SELECT bpe_token_id('hello', 'cl100k_base')", "15339"},
      {"SELECT CAST(bpe_token(15339, 'cl100k_base') AS TEXT)", "hello"},
      {"SELECT json_array(bpe_encode('hello', 'cl100k_base'))", "[[15339]]"},
      {"SELECT group_concat(text, '|') FROM bpe_tokens('hello world', 'cl100k_base')",
       "hello| world"},
      {"SELECT group_concat(text, '|') FROM bpe_pieces('a1 b', 'gpt2', '{\"regex\":\"[a-z]\"}')",
       "a|1 |b"},
      {"SELECT id FROM bpe_vocab('cl100k_base') WHERE text = 'hello'", "15339"},
      {"SELECT count(*) FROM bpe_merges('gpt2')", "50000"},
      {"SELECT count(*) FROM bpe_tokenizers WHERE schema = 'builtin'", "7"},
      {"SELECT bpe_count('x', 'nope')", "bpe_count: no such tokenizer: nope"},
      {"SELECT json_extract(bpe_debug(), '$.sqlite')", NULL},
  };
  sqlite3 *db = NULL;
  check("open", sqlite3_open(":memory:", &db) == SQLITE_OK, "");
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 1, NULL);
  for (int again = 0; again < 2; again++) {
    load(db, ext);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
      const char *expected = answers[i][1] ? answers[i][1] : sqlite3_libversion();
      check_answer(db, answers[i][0], expected);
    }
  }
  /* A long text, so that the loops look for interrupts by whatever way this SQLite has. */
  check_answer(db, "SELECT bpe_count(hex(zeroblob(1000000)), 'cl100k_base') > 600000", "1");
  check("close", sqlite3_close(db) == SQLITE_OK, "busy");
}

int main(int argc, char **argv) {
  printf("SQLite %s\n", sqlite3_libversion());
  check("newer than 3.40", sqlite3_libversion_number() >= 3041000, sqlite3_libversion());
  if (argc > 1) try_extension(argv[1]);
  printf("%d passed, %d failed\n", passed, failed);
  return failed ? 1 : 0;
}
