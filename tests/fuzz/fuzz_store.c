/* fuzz_store.c - stored tokenizers whose rows anyone may have edited.
**
** A database begins with one good tokenizer of each kind; the input is a list of edits of the three
** tables, with the triggers on or off, and of uses. What must hold whatever was edited: a use
** answers or fails with a message; a tokenizer that the catalogue calls sealed answers, and decodes
** what it encoded; one that it does not is refused; sealing validates; the connection closes.
*/
#include "fuzz.h"

#include <sqlite3.h>

int sqlite3_bpe_init(sqlite3 *, char **, const sqlite3_api_routines *);

static const char setup[] =
    "INSERT INTO bpe_tokenizers(name, source) VALUES"
    "('m', '{\"pattern\":\"none\",\"merges\":[[97,98],[256,99],[97,97]],\"special_tokens\":[\"<s>\"],"
    "\"bos\":[\"<s>\"]}'),"
    "('w', '{\"pattern\":\"gpt2\",\"vocab\":{\"0\":\"61\",\"1\":\"62\",\"2\":\"6162\",\"9\":\"616261\"},"
    "\"merges\":[[\"61\",\"62\"],[\"6162\",\"61\"]],\"special_tokens\":{\"<t>\":5}}');"
    "CREATE TABLE saved AS SELECT * FROM bpe_model";

static const char *const edits[] = {
    "UPDATE bpe_model_vocab SET token = ?3 WHERE model_id = 1 + ?1 % 2 AND id = ?2 % 260",
    "UPDATE bpe_model_vocab SET id = ?3 WHERE model_id = 1 + ?1 % 2 AND id = ?2 % 260",
    "UPDATE bpe_model_vocab SET kind = ?3 WHERE model_id = 1 + ?1 % 2 AND id = ?2 % 260",
    "UPDATE bpe_model_vocab SET model_id = ?3 WHERE model_id = 1 + ?1 % 2 AND id = ?2 % 260",
    "INSERT OR REPLACE INTO bpe_model_vocab VALUES(1 + ?1 % 2, ?2 % 300, ?3, 'token')",
    "INSERT OR REPLACE INTO bpe_model_vocab VALUES(1 + ?1 % 2, ?2 % 300, ?3, 'special')",
    "INSERT OR REPLACE INTO bpe_model_vocab VALUES(1 + ?1 % 2, ?2 % 300, ?3, 'added')",
    "DELETE FROM bpe_model_vocab WHERE model_id = 1 + ?1 % 2 AND id = ?2 % 260",
    "UPDATE bpe_model_merges SET rank = ?3 WHERE model_id = 1 + ?1 % 2 AND rank = ?2 % 4",
    "UPDATE bpe_model_merges SET \"left\" = ?3 WHERE model_id = 1 + ?1 % 2 AND rank = ?2 % 4",
    "UPDATE bpe_model_merges SET \"right\" = ?3 WHERE model_id = 1 + ?1 % 2 AND rank = ?2 % 4",
    "UPDATE bpe_model_merges SET id = ?3 WHERE model_id = 1 + ?1 % 2 AND rank = ?2 % 4",
    "UPDATE bpe_model_merges SET count = ?3 WHERE model_id = 1 + ?1 % 2 AND rank = ?2 % 4",
    "INSERT OR REPLACE INTO bpe_model_merges VALUES(1 + ?1 % 2, ?2 % 5, ?1, ?2, ?3, NULL)",
    "DELETE FROM bpe_model_merges WHERE model_id = 1 + ?1 % 2 AND rank = ?2 % 4",
    "UPDATE bpe_model SET pattern = ?3 WHERE id = 1 + ?1 % 2",
    "UPDATE bpe_model SET options = ?3 WHERE id = 1 + ?1 % 2",
    "UPDATE bpe_model SET stats = ?3 WHERE id = 1 + ?1 % 2",
    "UPDATE bpe_model SET digest = ?3 WHERE id = 1 + ?1 % 2",
    "UPDATE bpe_model SET digest = (SELECT digest FROM saved WHERE id = 1 + ?2 % 2) WHERE id = 1 + ?1 % 2",
    "UPDATE bpe_model SET name = ?3 WHERE id = 1 + ?1 % 2",
    "UPDATE bpe_model SET id = ?3 WHERE id = 1 + ?1 % 2",
    ("INSERT OR REPLACE INTO bpe_model SELECT 1 + ?2 % 2, name, pattern, options, stats, digest"
     " FROM saved WHERE id = 1 + ?1 % 2 AND ?3 IS NOT NULL"),
    "UPDATE bpe_model SET options = '{\"format\":1,\"regex\":true}', pattern = ?3 WHERE id = 1 + ?1 % 2",
    "DELETE FROM bpe_model WHERE id = 1 + ?1 % 2 AND ?2 + ?3 > 0",
    "UPDATE bpe_tokenizers SET sealed = 1 WHERE schema = 'main' AND (?1 OR ?2 OR ?3 OR 1)",
    "DELETE FROM bpe_tokenizers WHERE schema = 'main' AND ?1 % 2 AND ?2 % 2 AND ?3 IS NULL",
    "UPDATE bpe_tokenizers SET name = 'z' || ?3 WHERE name = 'w' AND ?1 + ?2 > 0",
    "INSERT INTO bpe_tokenizers(name, source) SELECT 'n' || ?1, bpe_export('m', 'model') WHERE ?2 OR ?3 OR 1",
    "DROP TRIGGER IF EXISTS bpe_model_vocab_updated /* ?1 ?2 ?3 */",
};

static const char *const patterns[] = {"none", "gpt2", "whitespace", "o200k", "a+|b", "("};

enum { N_EDITS = sizeof edits / sizeof *edits, MAX_EDITS = 8, MAX_VALUE = 40 };

static int bind_value(sqlite3_stmt *s, int i, input *in) {
  size_t len;
  const uint8_t *p;
  switch (take(in, 6)) {
    case 0: return sqlite3_bind_null(s, i);
    case 1: return sqlite3_bind_int64(s, i, (sqlite3_int64)take(in, 256) + 10);
    case 2: return sqlite3_bind_int64(s, i, (sqlite3_int64)(int32_t)take_u32(in) * 3);
    case 3: return sqlite3_bind_text(s, i, patterns[take(in, 6)], -1, SQLITE_STATIC);
    case 4:
      p = take_bytes(in, take(in, MAX_VALUE), &len);
      return sqlite3_bind_text64(s, i, (const char *)p, len, SQLITE_TRANSIENT, SQLITE_UTF8);
    default:
      p = take_bytes(in, take(in, MAX_VALUE), &len);
      return len == 0 ? sqlite3_bind_zeroblob(s, i, 0)
                      : sqlite3_bind_blob64(s, i, p, len, SQLITE_TRANSIENT);
  }
}

/* An edit may fail; then it says why. */
static void edit(sqlite3 *db, input *in) {
  sqlite3_stmt *s = NULL;
  sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, (int)take(in, 2), 0);
  if (sqlite3_prepare_v2(db, edits[take(in, N_EDITS)], -1, &s, NULL) == SQLITE_OK) {
    const int n = sqlite3_bind_parameter_count(s);
    for (int i = 1; i <= n && i < 3; i++)
      REQUIRE(sqlite3_bind_int64(s, i, (sqlite3_int64)take(in, 256) * 256 + take(in, 256)) == SQLITE_OK);
    if (n == 3) REQUIRE(bind_value(s, 3, in) == SQLITE_OK);
    const int rc = sqlite3_step(s);
    REQUIRE(rc == SQLITE_DONE || sqlite3_errmsg(db)[0] != 0);
    REQUIRE(rc != SQLITE_MISUSE && rc != SQLITE_SCHEMA);
  }
  sqlite3_finalize(s);
}

/* Uses what the catalogue lists: sealed is what works, on a text that all of these can encode or
** say why not. */
static void use_all(sqlite3 *db) {
  static const char list[] = "SELECT name, sealed FROM bpe_tokenizers WHERE schema = 'main'";
  static const char use[] = "SELECT bpe_decode_blob(bpe_encode_blob(?1, ?2), ?2) = ?1,"
                            " (SELECT count(*) FROM bpe_vocab(?2)), length(bpe_export(?2, 'model'))";
  sqlite3_stmt *s, *u;
  REQUIRE(sqlite3_prepare_v2(db, list, -1, &s, NULL) == SQLITE_OK);
  REQUIRE(sqlite3_prepare_v2(db, use, -1, &u, NULL) == SQLITE_OK);
  while (sqlite3_step(s) == SQLITE_ROW) {
    sqlite3_bind_blob(u, 1, "abaabab", 7, SQLITE_STATIC);
    sqlite3_bind_value(u, 2, sqlite3_column_value(s, 0));
    const int rc = sqlite3_step(u);
    if (rc == SQLITE_ROW) REQUIRE(sqlite3_column_int(u, 0) == 1);
    else REQUIRE(sqlite3_errmsg(db)[0] != 0);
    if (rc == SQLITE_ROW) REQUIRE(sqlite3_column_int(u, 1) > 0 && sqlite3_column_int(u, 2) > 0);
    const bool refused = rc == SQLITE_ERROR && (strstr(sqlite3_errmsg(db), "is unsealed") ||
                                                strstr(sqlite3_errmsg(db), "is damaged"));
    if (sqlite3_column_int(s, 1)) REQUIRE(!refused);
    sqlite3_reset(u);
  }
  sqlite3_finalize(u);
  REQUIRE(sqlite3_finalize(s) == SQLITE_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  input in = {data, size};
  sqlite3 *db = NULL;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK || sqlite3_bpe_init(db, NULL, NULL) != SQLITE_OK) abort();
  REQUIRE(sqlite3_exec(db, setup, NULL, NULL, NULL) == SQLITE_OK);
  for (int i = 0; i < MAX_EDITS && in.left > 0; i++) {
    if (take(&in, 3) == 0) use_all(db);
    edit(db, &in);
  }
  use_all(db);
  REQUIRE(sqlite3_close(db) == SQLITE_OK);
  return 0;
}
