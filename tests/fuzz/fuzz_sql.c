/* fuzz_sql.c - every function and table of the extension with any values.
**
** Input: a statement, how early it is interrupted, then the values of its parameters, of which ?2
** is mostly the name of a tokenizer. A statement may fail, but then with a message. Promises are
** statements whose columns, where they have a value, are 1. fuzz_query.c makes up statements.
*/
#include "sql.h"

/* Any values, any result. */
static const char *const asks[] = {
    "SELECT bpe_count(?1), bpe_count(?1, ?2), bpe_count(?1, ?2, ?3)",
    "SELECT bpe_encode(?1, ?2, ?3)",
    "SELECT bpe_encode_blob(?1, ?2, ?3)",
    "SELECT bpe_decode(?1, ?2, ?3)",
    "SELECT bpe_decode_blob(?1, ?2, ?3)",
    "SELECT bpe_token(?1, ?2), bpe_token_id(?1, ?2), bpe_resolve(?1)",
    "SELECT bpe_fits(?1, ?4, ?2, ?3)",
    "SELECT bpe_truncate(?1, ?4, ?2, ?3)",
    "SELECT bpe_ids_length(?1, ?3), bpe_ids_slice(?1, ?3, ?4), bpe_ids_slice(?1, ?3, ?4, 16)",
    "SELECT bpe_ansi(?1, ?2, ?3)",
    "SELECT bpe_html(?1, ?2, ?3)",
    "SELECT bpe_export(?2, ?1)",
    "SELECT bpe_version(), length(bpe_debug())",
    "SELECT bpe_train(column1, ?4, ?3) FROM (VALUES(?1), ('ab ab'), (?2), (NULL), ('the the'))",
    ("SELECT bpe_train(column1, 256 + abs(?4) % 40, ?3, column2) FROM (VALUES(?1, 2), ('ab', ?2), "
     "('b', 1))"),
    "SELECT a, bpe_train(b, 260, ?3, ?4) FROM t GROUP BY a",
    "SELECT bpe_token_stats(column1, ?2) FROM (VALUES(?1), (?3), (?4))",
    "SELECT * FROM bpe_tokens(?1, ?2, ?3) LIMIT 500",
    "SELECT * FROM bpe_pieces(?1, ?2, ?3) LIMIT 500",
    "SELECT * FROM bpe_chunks(?1, ?4, ?2, ?3) LIMIT 500",
    "SELECT * FROM bpe_trace(?1, ?2, ?3) LIMIT 500",
    "SELECT * FROM bpe_stream(?1, ?2, ?3) LIMIT 500",
    "SELECT * FROM bpe_ids(?1, ?4) WHERE seq >= ?3 LIMIT 500",
    "SELECT seq, start FROM bpe_tokens WHERE input = ?1 AND tokenizer = ?2 AND id = ?3",
    "SELECT * FROM bpe_vocab(?2) WHERE id = ?1 OR id = ?3 LIMIT 50",
    "SELECT * FROM bpe_vocab WHERE tokenizer = ?2 AND (token = ?1 OR text = ?3) LIMIT 50",
    "SELECT * FROM bpe_vocab(?2) WHERE text = ?1 AND id > ?3 LIMIT 50",
    "SELECT * FROM bpe_merges(?2) WHERE rank = ?1 OR id = ?3 LIMIT 50",
    "SELECT * FROM bpe_tokenizers WHERE schema = 'main' AND (name = ?1 OR digest = ?2)",
    "SELECT x.value, t.id FROM json_each(json_array(?1, ?4)) x, bpe_tokens(x.value, ?2) t LIMIT 99",
    "SELECT bpe_decode(json_array(?1, ?4), ?2)",
    "SELECT bpe_encode(?1, ?2, json_object('special', json_array(?3)))",
    "SELECT * FROM bpe_pieces(?1, ?2, json_object('regex', ?3)) LIMIT 500",
    ("SELECT * FROM bpe_chunks(?1, 2 + abs(?4) % 9, ?2, json_object('overlap', 1, 'at', ?3)) LIMIT "
     "99"),
    "SELECT bpe_export(?2, 'huggingface'), bpe_export(?2, 'tiktoken'), bpe_export(?2, 'minbpe')",
    "SELECT rowid, input, tokenizer, options FROM bpe_tokens(?1, ?2, ?3) LIMIT 9",
    "SELECT rowid, input, tokenizer, options FROM bpe_pieces(?1, ?2, ?3) LIMIT 9",
    "SELECT rowid, input, max_tokens, tokenizer, options FROM bpe_chunks(?1, ?4, ?2, ?3) LIMIT 9",
    "SELECT rowid, input, tokenizer, options FROM bpe_trace(?1, ?2, ?3) ORDER BY piece, step LIMIT "
    "9",
    "SELECT rowid, input, tokenizer, options FROM bpe_stream(?1, ?2, ?3) LIMIT 9",
    "SELECT rowid, input, width FROM bpe_ids(?1, ?3) LIMIT 9",
    "SELECT rowid, tokenizer FROM bpe_merges(?2) WHERE count > ?1 LIMIT 9",
    "SELECT rowid, tokenizer FROM bpe_vocab(?2) WHERE (token = ?1 AND token = ?3) OR length = ?4 "
    "LIMIT 9"};

/* For tokenizers of any size. */
static const char *const promises[] = {
    "SELECT bpe_count(?1, ?2) = json_array_length(bpe_encode(?1, ?2))",
    ("SELECT bpe_count(?1, ?2, ?3) = (SELECT count(*) FROM bpe_tokens(?1, ?2, ?3))"
     " WHERE ?1 IS NOT NULL AND ?2 IS NOT NULL"),
    "SELECT bpe_decode_blob(bpe_encode_blob(?1, ?2), ?2) = CAST(?1 AS BLOB) WHERE ?2 <> 'h'",
    ("SELECT (SELECT group_concat(hex(piece), '') FROM bpe_pieces(?1, ?2)) = hex(?1)"
     " WHERE hex(?1) <> ''"),
    "SELECT bpe_fits(?1, abs(?4) % 40, ?2, ?3) = (bpe_count(?1, ?2, ?3) <= abs(?4) % 40)",
    "SELECT bpe_count(bpe_truncate(?1, abs(?4) % 40, ?2, ?3), ?2, ?3) <= abs(?4) % 40",
    ("SELECT instr(?1, bpe_truncate(?1, abs(?4) % 40, ?2)) = 1 WHERE hex(?1) <> '' AND typeof(?1) "
     "<> 'real'"),
    ("SELECT (SELECT group_concat(hex(text), '') FROM bpe_chunks(?1, 8 + abs(?4) % 40, ?2)) = "
     "hex(?1)"
     " WHERE hex(?1) <> ''"),
    ("SELECT tokens <= 8 + abs(?4) % 40, hex(text) = hex(substr(CAST(?1 AS BLOB), start + 1, stop -"
     " start)) FROM bpe_chunks(?1, 8 + abs(?4) % 40, ?2, ?3)"),
    "SELECT tokens = bpe_count(text, ?2) FROM bpe_chunks(?1, 8 + abs(?4) % 40, ?2)",
    ("SELECT (SELECT json_group_array(id) FROM bpe_stream('SELECT ' || quote(?1), ?2)) = "
     "bpe_encode(?1, ?2)"
     " WHERE instr(?1, char(0)) = 0 AND typeof(?1) IN ('text', 'blob')"),
    ("SELECT (SELECT json_group_array(id) FROM bpe_ids(bpe_encode_blob(?1, ?2))) = bpe_encode(?1, "
     "?2)"
     " WHERE ?1 IS NOT NULL"),
    "SELECT bpe_ids_length(bpe_encode_blob(?1, ?2)) = bpe_count(?1, ?2)",
    ("SELECT hex(bpe_ids_slice(e, 0, n)) || hex(bpe_ids_slice(e, n, 1 << 20)) = hex(e) FROM"
     " (SELECT bpe_encode_blob(?1, ?2) AS e, abs(?4) % 9 AS n) WHERE n IS NOT NULL"),
    "SELECT json_extract(bpe_token_stats(?1, ?2), '$.tokens') = bpe_count(?1, ?2)",
    ("SELECT v.token = t.token, v.text = t.text, t.stop - t.start = v.length OR ?2 = 'h'"
     " FROM bpe_tokens(?1, ?2) t JOIN bpe_vocab(?2) v ON v.id = t.id"),
    ("SELECT bpe_token_id(bpe_token(?4, ?2), ?2) <= ?4, bpe_token(bpe_token_id(?1, ?2), ?2) = "
     "CAST(?1 AS BLOB)"
     " WHERE typeof(?4) = 'integer'"),
    ("SELECT (SELECT json_group_array(value) FROM (SELECT j.value FROM bpe_trace(?1, ?2) r, "
     "json_each(r.after) j"
     " WHERE r.step = (SELECT max(q.step) FROM bpe_trace(?1, ?2) q WHERE q.piece = r.piece)))"
     " = bpe_encode(?1, ?2) WHERE ?1 IS NOT NULL"),
};

/* What a constraint gives as a lookup, and as a filter over all rows. */
static const char *const scans[] = {
    ("SELECT (SELECT json_group_array(hex(token) || id) FROM bpe_vocab(?2) WHERE id = ?1) ="
     " (SELECT json_group_array(hex(token) || id) FROM bpe_vocab(?2) WHERE CAST(id AS INTEGER) = "
     "?1)"),
    ("SELECT (SELECT json_group_array(id) FROM bpe_vocab(?2) WHERE text = ?1) ="
     " (SELECT json_group_array(id) FROM bpe_vocab(?2) WHERE CAST(text AS TEXT) = ?1)"),
    ("SELECT (SELECT json_group_array(id) FROM bpe_vocab(?2) WHERE token = CAST(?1 AS BLOB)) ="
     " (SELECT json_group_array(id) FROM bpe_vocab(?2) WHERE CAST(token AS BLOB) = CAST(?1 AS "
     "BLOB))"),
    ("SELECT (SELECT json_group_array(rank) FROM bpe_merges(?2) WHERE id = ?1) ="
     " (SELECT json_group_array(rank) FROM bpe_merges(?2) WHERE CAST(id AS INTEGER) = ?1)"),
    ("SELECT (SELECT json_group_array(id) FROM bpe_merges(?2) WHERE \"left\" = ?1 AND rank < ?4) ="
     " (SELECT json_group_array(id) FROM bpe_merges(?2) WHERE CAST(\"left\" AS INTEGER) = ?1 AND "
     "CAST(rank AS INTEGER) < ?4)"),
    ("SELECT (SELECT json_group_array(seq) FROM bpe_tokens(?1, ?2) WHERE id = ?4) ="
     " (SELECT json_group_array(seq) FROM bpe_tokens(?1, ?2) WHERE CAST(id AS INTEGER) = ?4)"),
    ("SELECT (SELECT json_group_array(id) FROM bpe_ids(?1) WHERE seq = ?4) ="
     " (SELECT json_group_array(id) FROM bpe_ids(?1) WHERE CAST(seq AS INTEGER) = ?4)"),
    "SELECT count(*) = 1 FROM bpe_tokenizers WHERE name = ?2 AND schema = 'main'",
    ("SELECT count(*) = vocab_size OR name = 'w' FROM bpe_vocab(?2), bpe_tokenizers WHERE name = "
     "?2 "
     "AND schema = 'main'"),
};

/* Sum of the tables; TICKS thousand steps for an input. */
enum {
  N_ASKS = LENGTH(asks),
  N_PROMISES = LENGTH(promises),
  N_SCANS = LENGTH(scans),
  TICKS = 100,
  RUNS_PER_CONNECTION = 5000
};

/* One connection serves many inputs, for a tokenizer takes long to load; now and then it closes,
** which it can only if nothing was left open. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static sqlite3 *db;
  static int ticks;
  static unsigned runs;
  input in = {data, size};
  sqlite3_stmt *s = NULL;
  unsigned which = take(&in, N_ASKS + N_PROMISES + N_SCANS);
  const unsigned early = take(&in, 16);
  if (db == NULL) db = open_database(&ticks);
  ticks = early == 0 ? 1 : TICKS;
  const bool scan = which >= N_ASKS + N_PROMISES, promise = which >= N_ASKS;
  const char *sql = scan      ? scans[which - N_ASKS - N_PROMISES]
                    : promise ? promises[which - N_ASKS]
                              : asks[which];
  if (sqlite3_prepare_v2(db, sql, -1, &s, NULL) != SQLITE_OK)
    fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
  REQUIRE(s != NULL);
  const bool small = scan || strstr(sql, "bpe_export") != NULL; /* of a large one it takes long */
  for (int i = 1; i <= sqlite3_bind_parameter_count(s); i++) {
    const int rc = i == 2 ? bind_tokenizer(s, i, &in, small) : bind_value(s, i, &in);
    REQUIRE(rc == SQLITE_OK);
  }
  run(db, s, promise, NULL);
  sqlite3_finalize(s);
  if (++runs % RUNS_PER_CONNECTION == 0) {
    REQUIRE(sqlite3_close(db) == SQLITE_OK);
    db = NULL;
  }
  return 0;
}
