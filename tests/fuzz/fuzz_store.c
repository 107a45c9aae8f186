/* fuzz_store.c - stored tokenizers whose rows anyone may have edited.
**
** Input: a list of edits of the tables, with the triggers on or off, and of uses; or, if the first
** byte says so, of bytes of the database file itself. What must hold whatever was edited: a use
** answers or fails with a message; a tokenizer that the catalogue calls sealed is not refused, and
** decodes what it encoded; what has the digest of an original has its ids; sealing validates; the
** connection closes.
*/
#include "fuzz.h"

/* Few tokens, so that an edit is likely to matter, and loading is fast. */
static const char store_setup[] =
    "INSERT INTO bpe_tokenizers(name, source) VALUES"
    "('m', "
    "'{\"pattern\":\"none\",\"vocab\":{\"97\":\"61\",\"98\":\"62\",\"99\":\"63\",\"256\":\"6162\","
    "\"257\":\"616263\",\"258\":\"6161\"},\"merges\":[[\"61\",\"62\"],[\"6162\",\"63\"],[\"61\","
    "\"61\"]],"
    "\"special_tokens\":{\"<s>\":259},\"bos\":[\"<s>\"]}'),"
    "('w', "
    "'{\"pattern\":\"gpt2\",\"vocab\":{\"0\":\"61\",\"1\":\"62\",\"2\":\"6162\",\"9\":\"616261\"},"
    "\"merges\":[[\"61\",\"62\"],[\"6162\",\"61\"]],\"special_tokens\":{\"<t>\":5}}'),"
    "('x', "
    "'{\"regex\":\"[ab]+|c\",\"vocab\":{\"3\":\"61\",\"4\":\"62\",\"5\":\"63\",\"7\":\"6261\"},"
    "\"merges\":[[\"62\",\"61\"]],\"special_tokens\":{\"ca\":8},\"whole\":true,\"eos\":[\"ca\"]}');"
    "CREATE TABLE saved AS SELECT * FROM bpe_model";
#define FUZZ_SETUP store_setup
#include "sql.h"

/* The id of one of a tokenizer's tokens. */
#define NTH                                                                                        \
  "(SELECT id FROM bpe_model_vocab ORDER BY model_id = 1 + ?1 % 3 DESC, id LIMIT 1 OFFSET ?2 % 8)"

static const char *const edits[] = {
    "UPDATE bpe_model_vocab SET token = ?3 WHERE model_id = 1 + ?1 % 3 AND id = " NTH,
    "UPDATE bpe_model_vocab SET id = ?3 WHERE model_id = 1 + ?1 % 3 AND id = " NTH,
    "UPDATE bpe_model_vocab SET kind = ?3 WHERE model_id = 1 + ?1 % 3 AND id = " NTH,
    "UPDATE bpe_model_vocab SET model_id = ?3 WHERE model_id = 1 + ?1 % 3 AND id = " NTH,
    "INSERT OR REPLACE INTO bpe_model_vocab VALUES(1 + ?1 % 3, ?2 % 300, ?3, 'token')",
    "INSERT OR REPLACE INTO bpe_model_vocab VALUES(1 + ?1 % 3, ?2 % 300, ?3, 'special')",
    "INSERT OR REPLACE INTO bpe_model_vocab VALUES(1 + ?1 % 3, ?2 % 300, ?3, 'added')",
    "DELETE FROM bpe_model_vocab WHERE model_id = 1 + ?1 % 3 AND id = " NTH,
    "UPDATE bpe_model_merges SET rank = ?3 WHERE model_id = 1 + ?1 % 3 AND rank = ?2 % 4",
    "UPDATE bpe_model_merges SET \"left\" = ?3 WHERE model_id = 1 + ?1 % 3 AND rank = ?2 % 4",
    "UPDATE bpe_model_merges SET \"right\" = ?3 WHERE model_id = 1 + ?1 % 3 AND rank = ?2 % 4",
    "UPDATE bpe_model_merges SET id = ?3 WHERE model_id = 1 + ?1 % 3 AND rank = ?2 % 4",
    "UPDATE bpe_model_merges SET count = ?3 WHERE model_id = 1 + ?1 % 3 AND rank = ?2 % 4",
    "INSERT OR REPLACE INTO bpe_model_merges VALUES(1 + ?1 % 3, ?2 % 5, ?1, ?2, ?3, NULL)",
    "DELETE FROM bpe_model_merges WHERE model_id = 1 + ?1 % 3 AND rank = ?2 % 4",
    "UPDATE bpe_model SET pattern = ?3 WHERE id = 1 + ?1 % 3",
    "UPDATE bpe_model SET options = ?3 WHERE id = 1 + ?1 % 3",
    "UPDATE bpe_model SET stats = ?3 WHERE id = 1 + ?1 % 3",
    "UPDATE bpe_model SET digest = ?3 WHERE id = 1 + ?1 % 3",
    ("UPDATE bpe_model SET digest = (SELECT digest FROM saved WHERE id = 1 + ?2 % 3) WHERE id = 1 "
     "+ "
     "?1 % 3"),
    "UPDATE bpe_model SET name = ?3 WHERE id = 1 + ?1 % 3",
    "UPDATE bpe_model SET id = ?3 WHERE id = 1 + ?1 % 3",
    ("INSERT OR REPLACE INTO bpe_model SELECT 1 + ?2 % 3, name, pattern, options, stats, digest"
     " FROM saved WHERE id = 1 + ?1 % 3 AND ?3 IS NOT NULL"),
    ("UPDATE bpe_model SET options = '{\"format\":1,\"regex\":true}', pattern = ?3 WHERE id = 1 + "
     "?1 % 3"),
    "DELETE FROM bpe_model WHERE id = 1 + ?1 % 3 AND ?2 + ?3 > 0",
    "UPDATE bpe_tokenizers SET sealed = 1 WHERE schema = 'main' AND (?1 OR ?2 OR ?3 OR 1)",
    "DELETE FROM bpe_tokenizers WHERE schema = 'main' AND ?1 % 2 AND ?2 % 2 AND ?3 IS NULL",
    "UPDATE bpe_tokenizers SET name = 'z' || ?3 WHERE name = 'w' AND ?1 + ?2 > 0",
    ("INSERT INTO bpe_tokenizers(name, source) SELECT 'n' || ?1, bpe_export('m', 'model') WHERE ?2 "
     "OR ?3 OR 1"),
    "DROP TRIGGER IF EXISTS bpe_model_vocab_updated /* ?1 ?2 ?3 */",
    "DROP TRIGGER IF EXISTS bpe_model_merges_updated /* ?1 ?2 ?3 */",
    "UPDATE bpe_model_vocab SET id = id + ?2 % 3 WHERE model_id = 1 + ?1 % 3 AND id > ?3",
    ("UPDATE OR REPLACE bpe_model_merges SET rank = ?2 % 4 - rank WHERE model_id = 1 + ?1 % 3 AND "
     "?3 IS NOT 0"),
    ("UPDATE bpe_model SET options = replace(options, '{', '{' || ?3 || ',') WHERE id = 1 + ?1 % 3 "
     "AND ?2 > 9"),
    ("UPDATE bpe_model SET options = json_set(options, '$.bos[0]', ?2 % 300, '$.whole', json(?3)) "
     "WHERE id = 1 + ?1 % 3"),
    ("UPDATE bpe_model SET options = json_set(options, '$.normalizer', json(?3)) WHERE id = 1 + ?1 "
     "% 3 AND ?2 IS NOT 0"),
    ("UPDATE bpe_model SET options = json_set(options, '$.characters', json('true'), '$.unused', "
     "json_array(?2 % 300))"
     " WHERE id = 1 + ?1 % 3 AND ?3 IS NOT 0"),
    "ALTER TABLE bpe_model_vocab ADD COLUMN more DEFAULT 1 /* ?1 ?2 ?3 */",
    "ALTER TABLE bpe_model_merges RENAME COLUMN count TO often /* ?1 ?2 ?3 */",
    "ALTER TABLE bpe_model RENAME TO bpe_model_merges_of /* ?1 ?2 ?3 */",
    "DROP TABLE bpe_model_merges /* ?1 ?2 ?3 */",
    "CREATE TABLE bpe_model_merges(model_id, rank, \"left\", \"right\", id, count) /* ?1 ?2 ?3 */",
    "CREATE TABLE bpe_model(id, name, pattern, options, stats, digest)",
    "INSERT INTO bpe_model SELECT * FROM saved WHERE ?1 + ?2 > 0 OR ?3",
    "DROP TABLE bpe_model",
    "ALTER TABLE saved RENAME TO bpe_model",
    "CREATE VIEW bpe_model AS SELECT id, name, pattern, options, stats, digest FROM saved",
    ("CREATE TRIGGER more AFTER UPDATE ON bpe_model BEGIN UPDATE bpe_model_vocab SET token = 'x' "
     "WHERE id = 97; END"),
    ("CREATE TRIGGER less BEFORE INSERT ON bpe_model_vocab WHEN NEW.id = 98 BEGIN SELECT "
     "raise(IGNORE); END"),
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    "SAVEPOINT s",
    "ROLLBACK TO s",
    "RELEASE s",
};

static const char *const values[] = {"none",
                                     "gpt2",
                                     "whitespace",
                                     "o200k",
                                     "a+|b",
                                     "(",
                                     "[\"gpt2\",{\"regex\":\"a\"}]",
                                     "true",
                                     "[\"nfc\"]",
                                     "[\"nfkd\",{\"prepend\":\" \"}]",
                                     "[{\"replace\":[\" \",\"\u2581\"]},\"prefix_space\"]",
                                     "\"bos\":[256]",
                                     "\"names\":[[97,\"x\"]]",
                                     "\"lstrip\":[259],\"rstrip\":[259]",
                                     "\"fallback\":[97,98]",
                                     "\"strip\":1",
                                     "\"merging\":[265],\"late\":[265],\"word\":[265]",
                                     "{\"format\":1}",
                                     "{\"format\":2}"};

static const char *pick_word(input *in) {
  return values[take(in, LENGTH(values))];
}

enum { MAX_EDITS = 8, MAX_VALUE = 40, RUNS_PER_CONNECTION = 1000, MOST_TICKS = 1 << 20 };

static int bind_edit(sqlite3_stmt *s, int i, input *in) {
  size_t len;
  const uint8_t *p;
  switch (take(in, 6)) {
  case 0: return sqlite3_bind_null(s, i);
  case 1: return sqlite3_bind_int64(s, i, (sqlite3_int64)take(in, 256) + 10);
  case 2: return sqlite3_bind_int64(s, i, (sqlite3_int64)(int32_t)take_u32(in) * 3);
  case 3: return sqlite3_bind_text(s, i, pick_word(in), -1, SQLITE_STATIC);
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
  const char *sql = edits[take(in, LENGTH(edits))];
  if (getenv("FUZZ_SHOW") != NULL) fprintf(stderr, "%s;\n", sql);
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) == SQLITE_OK) {
    const int n = sqlite3_bind_parameter_count(s);
    for (int i = 1; i <= n && i < 3; i++)
      REQUIRE(sqlite3_bind_int64(s, i, (sqlite3_int64)take(in, 256) * 256 + take(in, 256)) ==
              SQLITE_OK);
    if (n == 3) REQUIRE(bind_edit(s, 3, in) == SQLITE_OK);
    const int rc = sqlite3_step(s);
    REQUIRE(rc == SQLITE_DONE || sqlite3_errmsg(db)[0] != 0);
    REQUIRE(rc != SQLITE_MISUSE && rc != SQLITE_SCHEMA);
  }
  sqlite3_finalize(s);
}

static const char use[] =
    "SELECT bpe_decode_blob(bpe_encode_blob(?1, ?2), ?2), (SELECT count(*) FROM bpe_vocab(?2)),"
    " length(bpe_export(?2, 'model')), bpe_encode(?1, ?2), bpe_encode(?1, ?2, "
    "'{\"special\":\"allow\"}'),"
    " (SELECT count(*) FROM bpe_merges(?2))";
static const char text[] = "abaababc";

/* A tokenizer with the digest of an original answers as that does. */
static void compare_with_original(sqlite3_value *digest, sqlite3_stmt *u) {
  static sqlite3_stmt *find, *same;
  static const char sql[] = "SELECT name FROM bpe_tokenizers WHERE schema = 'main' AND digest = ?1";
  if (find == NULL) REQUIRE(sqlite3_prepare_v2(original(), sql, -1, &find, NULL) == SQLITE_OK);
  if (same == NULL) REQUIRE(sqlite3_prepare_v2(original(), use, -1, &same, NULL) == SQLITE_OK);
  sqlite3_bind_value(find, 1, digest);
  if (sqlite3_step(find) == SQLITE_ROW) {
    sqlite3_bind_blob(same, 1, text, sizeof text - 1, SQLITE_STATIC);
    sqlite3_bind_value(same, 2, sqlite3_column_value(find, 0));
    REQUIRE(sqlite3_step(same) == SQLITE_ROW);
    for (int i = 3; i < 6; i++)
      REQUIRE(strcmp((const char *)sqlite3_column_text(u, i),
                     (const char *)sqlite3_column_text(same, i)) == 0);
    sqlite3_reset(same);
  }
  sqlite3_reset(find);
}

/* Uses what the catalogue lists: sealed is what works, on a text that all of these can encode or
** say why not. */
static void use_all(sqlite3 *db, bool intact) {
  static const char list[] =
      "SELECT name, sealed, digest, pattern, stats, vocab_size, special_tokens"
      " FROM bpe_tokenizers WHERE schema = 'main'";
  sqlite3_stmt *s = NULL, *u = NULL;
  if (sqlite3_prepare_v2(db, list, -1, &s, NULL) != SQLITE_OK) REQUIRE(!intact);
  if (sqlite3_prepare_v2(db, use, -1, &u, NULL) != SQLITE_OK) REQUIRE(!intact);
  while (s != NULL && u != NULL && sqlite3_step(s) == SQLITE_ROW) {
    sqlite3_bind_blob(u, 1, text, sizeof text - 1, SQLITE_STATIC);
    sqlite3_bind_value(u, 2, sqlite3_column_value(s, 0));
    const int rc = sqlite3_step(u);
    if (rc == SQLITE_ROW) {
      REQUIRE(sqlite3_column_bytes(u, 0) == sizeof text - 1 &&
              memcmp(sqlite3_column_blob(u, 0), text, sizeof text - 1) == 0);
      REQUIRE(sqlite3_column_int(u, 1) > (int)sabotage() * 1000 && sqlite3_column_int(u, 2) > 0);
      compare_with_original(sqlite3_column_value(s, 2), u);
    } else {
      REQUIRE(rc != SQLITE_DONE && sqlite3_errmsg(db)[0] != 0);
    }
    const bool refused = rc == SQLITE_ERROR && (strstr(sqlite3_errmsg(db), "is unsealed") ||
                                                strstr(sqlite3_errmsg(db), "is damaged"));
    if (refused) REQUIRE(!sqlite3_column_int(s, 1));
    sqlite3_reset(u);
  }
  sqlite3_finalize(u);
  const int rc = sqlite3_finalize(s);
  if (rc != SQLITE_OK) REQUIRE(sqlite3_errmsg(db)[0] != 0);
}

/* A database file of its own, with some of its bytes others, opened as anyone's file. */
static void use_damaged(input *in) {
  static uint8_t *image;
  static sqlite3_int64 size;
  sqlite3 *db = NULL;
  if (image == NULL) image = sqlite3_serialize(original(), "main", &size, 0);
  uint8_t *copy = sqlite3_malloc64((sqlite3_uint64)size);
  REQUIRE(image != NULL && copy != NULL);
  memcpy(copy, image, (size_t)size);
  while (in->left > 0) {
    const uint32_t at = take(in, 256) | take(in, 256) << 8;
    size_t len;
    const uint8_t *p = take_bytes(in, 1 + take(in, 4), &len);
    for (size_t i = 0; i < len && at + i < (size_t)size; i++) copy[at + i] = p[i];
  }
  REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK &&
          sqlite3_bpe_init(db, NULL, NULL) == SQLITE_OK);
  REQUIRE(sqlite3_deserialize(db, "main", copy, size, size,
                              SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE) ==
          SQLITE_OK);
  use_all(db, false);
  sqlite3_exec(db, "UPDATE bpe_tokenizers SET sealed = 1 WHERE schema = 'main'", NULL, NULL, NULL);
  sqlite3_exec(db, "DELETE FROM bpe_tokenizers WHERE name = 'm' AND schema = 'main'", NULL, NULL,
               NULL);
  use_all(db, false);
  REQUIRE(sqlite3_close(db) == SQLITE_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sqlite3 *db;
  static int ticks;
  static unsigned runs;
  input in = {data, size};
  if (db == NULL) db = open_database(&ticks);
  ticks = MOST_TICKS;
  if (take(&in, 8) == 7) {
    use_damaged(&in);
  } else {
    for (int i = 0; i < MAX_EDITS && in.left > 0; i++) {
      if (take(&in, 4) == 0) use_all(db, true);
      edit(db, &in);
    }
    use_all(db, true);
  }
  sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
  if (!restore(db) || ++runs % RUNS_PER_CONNECTION == 0) {
    REQUIRE(sqlite3_close(db) == SQLITE_OK);
    db = NULL;
  }
  return 0;
}
