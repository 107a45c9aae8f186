/* limits_subject.c - statements that take long: each function, table, aggregate and change of the
** extension, most of them more than once, on the inputs that are worst for them. See limits.h.
**
** Where SQLite copies or frees a value as large as the input in one go, which nobody can stop (a
** table's argument, a result), the input is not made larger than what that leaves time for.
*/
#include "limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Inputs ------------------------------------------------------------------------------------ */

static void repeat(char *to, size_t len, const char *unit) {
  const size_t n = strlen(unit);
  for (size_t i = 0; i < len; i++) to[i] = unit[i % n];
  while (len > 0 && len % n != 0) to[--len] = ' ';
}

static size_t make_letters(char *to, size_t len) {
  uint64_t state = 1;
  for (size_t i = 0; i < len; i++) to[i] = (char)('a' + random_next(&state) % 26);
  return len;
}

static size_t make_words(char *to, size_t len) {
  uint64_t state = 2;
  for (size_t i = 0; i < len;) {
    for (size_t n = 1 + random_next(&state) % 9; n > 0 && i < len; n--)
      to[i++] = (char)('a' + random_next(&state) % 26);
    if (i < len) to[i++] = random_next(&state) % 12 == 0 ? '.' : ' ';
    if (i < len && to[i - 1] == '.') to[i++] = random_next(&state) % 4 == 0 ? '\n' : ' ';
  }
  return len;
}

static size_t make_run(char *to, size_t len) {
  memset(to, 'a', len);
  return len;
}

static size_t make_blanks(char *to, size_t len) {
  memset(to, ' ', len);
  return len;
}

static size_t make_accents(char *to, size_t len) {
  repeat(to, len, "e\xcc\x81\xcc\xa7 ");
  return len;
}

static size_t make_marks(char *to, size_t len) {
  repeat(to, len, "\xcc\x81\xcc\xa7\xcd\x81\xcc\x80");
  return len;
}

static size_t make_malformed(char *to, size_t len) {
  memset(to, 0xff, len);
  return len;
}

static size_t make_specials(char *to, size_t len) {
  repeat(to, len, "<|endoftex|><|endoftext|>  ");
  return len;
}

/* Options: a list of strings, no two of them the same, that must not be there. */
static size_t make_names(char *to, size_t len) {
  enum { ROOM = 64 };
  size_t at = (size_t)snprintf(to, len, "{\"special\":{\"error\":[");
  for (unsigned i = 0; at + ROOM < len; i++)
    at += (size_t)snprintf(to + at, len - at, "%s\"<%u>\"", i == 0 ? "" : ",", i);
  return at + (size_t)snprintf(to + at, len - at, "]}}");
}

static size_t make_ids(char *to, size_t len) {
  memset(to, '1', len);
  for (size_t i = 4; i < len; i += 4) to[i] = ',';
  to[0] = '[';
  if (to[len - 2] == ',') to[len - 2] = '1';
  to[len - 1] = ']';
  return len;
}

static size_t make_spaced_ids(char *to, size_t len) {
  make_ids(to, len);
  for (size_t i = 4; i + 4 < len; i += 4) to[i + 1] = ' ';
  return len;
}

static size_t make_packed(char *to, size_t len) {
  for (size_t i = 0; i < len; i++) to[i] = (char)(i % 4 == 0 ? i / 4 % 250 : i % 4 == 1 ? 7 : 0);
  return len / 4 * 4;
}

/* Ids of tokens that are parts of characters. */
static size_t make_broken_ids(char *to, size_t len) {
  for (size_t i = 0; i < len; i++) to[i] = (char)(i % 4 == 0 ? 127 + i / 4 % 60 : 0);
  return len / 4 * 4;
}

static size_t make_document(char *to, size_t len) {
  make_ids(to, len);
  memcpy(to, "[256,97", 7);
  memcpy(to + len - 5, ",257]", 5);
  for (size_t i = 8; i + 8 < len; i += 4) memcpy(to + i, ",97 ", 4);
  memset(to + 7, ' ', 1);
  memset(to + (len - 8) / 4 * 4, ' ', len - 5 - (len - 8) / 4 * 4);
  return len;
}

/* A phrase of FTS5's, and one whose last token is a prefix. */
static size_t make_phrase(char *to, size_t len) {
  to[0] = to[len - 1] = '"';
  make_words(to + 1, len - 2);
  return len;
}

static size_t make_prefix(char *to, size_t len) {
  make_phrase(to, len - 1);
  to[len - 1] = '*';
  return len;
}

/* Merges that all make different tokens: of two bytes, then of three. */
static size_t add_merges(char *to, size_t len, size_t n, const char *form, const char *between) {
  for (unsigned i = 0; n + 40 < len && i < 12000000; i++) {
    if (i > 0) n += (size_t)snprintf(to + n, len - n, "%s", between);
    const unsigned left = i < 65536 ? i >> 8 : 256 + ((i - 65536) >> 8);
    n += (size_t)snprintf(to + n, len - n, form, left, i & 255);
  }
  return n;
}

static size_t make_plain(char *to, size_t len) {
  size_t n = (size_t)snprintf(to, len, "{\"pattern\":\"none\",\"merges\":[");
  n = add_merges(to, len, n, "[%u,%u]", ",");
  return n + (size_t)snprintf(to + n, len - n, "]}");
}

static size_t make_minbpe(char *to, size_t len) {
  const size_t n = (size_t)snprintf(to, len, "minbpe v1\n\n0\n");
  return add_merges(to, len, n, "%u %u", "\n");
}

/* A vocabulary of nothing but white space and commas: JSON that says little in many bytes. */
static size_t make_airy(char *to, size_t len) {
  memset(to, ' ', len);
  memcpy(to, "{\"pattern\":\"none\",\"merges\":[[97,98]", 35);
  to[len - 2] = ']';
  to[len - 1] = '}';
  return len;
}

/* ---- Subjects ---------------------------------------------------------------------------------- */

#define MB ((size_t)1000000)
#define FORGET "CREATE TABLE forget(x); DROP TABLE forget" /* stored tokenizers are loaded anew */
#define STORED "SELECT group_concat(name || hex(digest)) FROM (SELECT * FROM bpe_model ORDER BY name)"
#define INSERT_FROM(what, more) \
  "INSERT INTO bpe_tokenizers(name, source" more ") SELECT 'new', body" what
#define REMOVE "DELETE FROM bpe_tokenizers WHERE name = 'new'"
#define ROWS_OF(number) \
  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < " number ") "
#define ROWS ROWS_OF("40")
/* For functions that take no time: many rows, between which SQLite stops. */
#define MANY ROWS_OF("length(?1)")

const subject subjects[] = {
    /* Counting and encoding */
    {"count letters", "SELECT bpe_count(?1)", NULL, NULL, "SELECT bpe_count('hello world')",
     make_letters, MB / 4, 400 * MB, true, false},
    {"count words", "SELECT bpe_count(?1, 'cl100k_base')", NULL, NULL,
     "SELECT bpe_count('hello world')", make_words, MB / 4, 400 * MB, true, false},
    {"count one run", "SELECT bpe_count(?1, 'cl100k_base')", NULL, NULL,
     "SELECT bpe_count('aaaa', 'cl100k_base')", make_run, MB / 4, 400 * MB, true, false},
    {"count blanks", "SELECT bpe_count(?1)", NULL, NULL, "SELECT bpe_count('   ')", make_blanks,
     MB / 4, 400 * MB, true, false},
    {"count malformed", "SELECT bpe_count(?1, 'gpt2')", NULL, NULL,
     "SELECT bpe_count(x'ffff', 'gpt2')", make_malformed, MB / 4, 400 * MB, true, false},
    {"count normalized", "SELECT bpe_count(?1, 'nfc')", NULL, NULL, "SELECT bpe_count('aaa', 'nfc')",
     make_accents, 1 * MB, 100 * MB, true, false},
    {"count one segment", "SELECT bpe_count(?1, 'nfc')", NULL, NULL,
     "SELECT bpe_count('aaa', 'nfc')", make_marks, 1 * MB, 100 * MB, true, false},
    {"count specials", "SELECT bpe_count(?1, 'gpt2', '{\"special\":\"allow\"}')", NULL, NULL,
     "SELECT bpe_count('a<|endoftext|>', 'gpt2', '{\"special\":\"allow\"}')", make_specials,
     MB / 4, 400 * MB, true, false},
    {"count forbidden", "SELECT bpe_count(?1, 'gpt2', '{\"special\":{\"error\":[\"<|x\"]}}')", NULL,
     NULL, "SELECT bpe_count('a', 'gpt2')", make_specials, MB / 4, 400 * MB, true, false},
    {"count with names", "SELECT bpe_count('a', 'tiny', ?1)", FORGET, NULL,
     "SELECT bpe_count('a', 'tiny')", make_names, MB / 4, 16 * MB, false, false},
    {"encode words", "SELECT bpe_encode(?1)", NULL, NULL, "SELECT bpe_encode('hello world')",
     make_words, MB / 4, 40 * MB, true, false},
    {"encode one run", "SELECT bpe_encode(?1, 'gpt2')", NULL, NULL, "SELECT bpe_encode('aaa', 'gpt2')",
     make_run, MB / 4, 30 * MB, true, false},
    {"encode_blob words", "SELECT bpe_encode_blob(?1)", NULL, NULL,
     "SELECT hex(bpe_encode_blob('hello world'))", make_words, MB / 4, 60 * MB, true, false},
    {"encode_blob letters", "SELECT bpe_encode_blob(?1, 'gpt2', '{\"width\":16}')", NULL, NULL,
     "SELECT hex(bpe_encode_blob('abc', 'gpt2', '{\"width\":16}'))", make_letters, MB / 4, 60 * MB,
     true, false},
    {"encode_blob padded",
     "SELECT length(bpe_encode_blob('a', 'gpt2', '{\"pad\":\"<|endoftext|>\",\"pad_to\":'"
     " || (length(?1) * 40) || '}'))", NULL, NULL, "SELECT hex(bpe_encode_blob('abc', 'gpt2'))",
     make_run, 50000, 1 * MB, true, false},
    {"fits letters", "SELECT bpe_fits(?1, length(?1) / 8 * 6)", NULL, NULL,
     "SELECT bpe_fits('a b c', 2)", make_letters, MB / 4, 400 * MB, true, false},
    {"truncate words", "SELECT length(bpe_truncate(?1, length(?1) / 4))", NULL, NULL,
     "SELECT bpe_truncate('a b c', 2)", make_words, MB / 4, 200 * MB, true, false},
    {"truncate left", "SELECT length(bpe_truncate(?1, length(?1) / 8, 'gpt2', '{\"side\":\"left\"}'))",
     NULL, NULL, "SELECT bpe_truncate('a b c', 2)", make_words, MB / 4, 200 * MB, true, false},
    {"truncate one run", "SELECT length(bpe_truncate(?1, length(?1) / 16, 'cl100k_base'))", NULL,
     NULL, "SELECT bpe_truncate('a b c', 2)", make_run, MB / 4, 200 * MB, true, false},
    {"ansi", "SELECT bpe_ansi(?1)", NULL, NULL, "SELECT bpe_ansi('a b')", make_words, MB / 2,
     40 * MB, false, false},
    {"html one run", "SELECT bpe_html(?1, 'gpt2')", NULL, NULL, "SELECT bpe_html('a b')", make_run,
     MB / 2, 2 * MB, true, false},
    /* Decoding */
    {"decode json", "SELECT bpe_decode(?1)", NULL, NULL, "SELECT bpe_decode('[1,2]')", make_ids,
     MB / 4, 200 * MB, false, false},
    {"decode spaced json", "SELECT bpe_decode_blob(?1)", NULL, NULL, "SELECT bpe_decode('[1,2]')",
     make_spaced_ids, MB / 4, 200 * MB, false, false},
    {"decode packed", "SELECT bpe_decode_blob(?1, 'gpt2')", NULL, NULL,
     "SELECT hex(bpe_decode_blob('[1,2]'))", make_packed, MB / 4, 60 * MB, true, false},
    {"decode repaired", "SELECT bpe_decode(?1, 'gpt2')", NULL, NULL, "SELECT bpe_decode('[1,2]')",
     make_broken_ids, MB / 4, 60 * MB, true, false},
    {"decode a document", "SELECT bpe_decode(?1, 'wrapped', '{\"document\":true}')", NULL, NULL,
     "SELECT bpe_decode('[256,97,257]', 'wrapped', '{\"document\":true}')", make_document, 2 * MB,
     200 * MB, false, false},
    /* Packed ids */
    {"ids_length", MANY "SELECT sum(bpe_ids_length(?1) + bpe_ids_length(?1, 16)) FROM n", NULL,
     NULL, "SELECT bpe_ids_length(x'0100000002000000')", make_packed, 20000, 8 * MB, true,
     false},
    {"ids_slice", MANY "SELECT sum(length(bpe_ids_slice(?1, i / 8, 100))) FROM n", NULL, NULL,
     "SELECT hex(bpe_ids_slice(x'0100000002000000', 1, 1))", make_packed, 20000, 8 * MB, true,
     false},
    {"ids_slice of most", "SELECT bpe_ids_slice(?1, 1, length(?1) / 2 - 2, 16)", NULL, NULL,
     "SELECT hex(bpe_ids_slice(x'0100000002000000', 1, 1))", make_packed, 4 * MB, 8 * MB, true,
     false},
    /* Names */
    {"resolve", MANY "SELECT count(bpe_resolve(iif(i % 3 = 0, 'big', 'gpt-4-' || i))) FROM n", NULL,
     NULL, "SELECT bpe_resolve('gpt-4') || bpe_resolve('big')", make_run, 5000, 4 * MB, true,
     false},
    {"resolve a long name", "SELECT bpe_resolve(?1)", NULL, NULL, "SELECT bpe_resolve('gpt-4')",
     make_words, MB / 4, 8 * MB, false, false},
    /* Loading, on the way to small answers */
    {"token of a stored one", "SELECT hex(bpe_token(100, 'big'))", FORGET, NULL,
     "SELECT hex(bpe_token(100, 'big'))", NULL, 0, 0, false, false},
    {"token_id of a stored one", "SELECT bpe_token_id('the', 'big')", FORGET, NULL,
     "SELECT bpe_token_id('the', 'big')", NULL, 0, 0, false, false},
    {"digest of a stored one", "SELECT bpe_count('a', 'big', '{\"digest\":\"' || ("
     "SELECT lower(hex(digest)) FROM bpe_model WHERE name = 'big') || '\"}')", FORGET, NULL,
     "SELECT bpe_token_id('the', 'big')", NULL, 0, 0, false, false},
    /* Exporting */
    {"export model", "SELECT bpe_export('big', 'model')", FORGET, NULL,
     "SELECT length(bpe_export('tiny', 'model'))", NULL, 0, 0, false, false},
    {"export tiktoken", "SELECT bpe_export('big', 'tiktoken')", NULL, NULL,
     "SELECT length(bpe_export('tiny', 'tiktoken'))", NULL, 0, 0, false, false},
    {"export huggingface", "SELECT bpe_export('big', 'huggingface')", NULL, NULL,
     "SELECT length(bpe_export('tiny', 'huggingface'))", NULL, 0, 0, false, false},
    {"export gpt2-vocab", "SELECT bpe_export('big', 'gpt2-vocab')", NULL, NULL,
     "SELECT length(bpe_export('tiny', 'gpt2-vocab'))", NULL, 0, 0, false, false},
    {"export gpt2-merges", "SELECT bpe_export('big', 'gpt2-merges')", NULL, NULL,
     "SELECT length(bpe_export('tiny', 'gpt2-merges'))", NULL, 0, 0, false, false},
    {"export minbpe", "SELECT bpe_export('pairs', 'minbpe')", NULL, NULL,
     "SELECT length(bpe_export('tiny', 'minbpe'))", NULL, 0, 0, false, false},
    /* Aggregates */
    {"token_stats", "SELECT bpe_token_stats(?1)", NULL, NULL, "SELECT bpe_token_stats('a b')",
     make_words, MB / 4, 400 * MB, true, false},
    {"token_stats of one run", "SELECT bpe_token_stats(?1, 'gpt2')", NULL, NULL,
     "SELECT bpe_token_stats('a b')", make_run, MB / 4, 200 * MB, true, false},
    {"train one value", "SELECT length(bpe_train(?1, 2000, '{\"threads\":1}')) > 2000", NULL, NULL,
     "SELECT length(bpe_train('a b ab', 257)) > 257", make_words, MB / 4, 200 * MB, true, false},
    {"train with threads", "SELECT length(bpe_train(?1, 2000, '{\"threads\":4}')) > 2000", NULL,
     NULL, "SELECT length(bpe_train('a b ab', 257)) > 257", make_words, MB / 4, 200 * MB, true,
     true},
    {"train many rows", ROWS "SELECT length(bpe_train(substr(?1, i * 100, length(?1) / 4), 1000))"
     " > 1000 FROM n", NULL, NULL, "SELECT length(bpe_train('a b ab', 257)) > 257", make_words, MB / 2,
     20 * MB, false, true},
    {"train without pattern",
     "SELECT length(bpe_train(?1, 400, '{\"pattern\":\"none\",\"threads\":1}')) > 400", NULL, NULL,
     "SELECT length(bpe_train('a b ab', 257)) > 257", make_letters, MB / 4, 100 * MB, true, false},
    {"train one run", "SELECT length(bpe_train(?1, 300, '{\"threads\":1,\"tie\":\"first\"}')) > 300",
     NULL, NULL, "SELECT length(bpe_train('a b ab', 257)) > 257", make_run, MB / 4, 100 * MB, true,
     false},
    {"train by a regex",
     "SELECT length(bpe_train(?1, 400, '{\"regex\":\"\\\\w+\",\"threads\":3}')) > 400", NULL, NULL,
     "SELECT length(bpe_train('a b ab', 257)) > 257", make_words, MB / 2, 100 * MB, true, true},
    /* Tables */
    {"tokens", "SELECT count(*), sum(stop), sum(char_stop) FROM bpe_tokens(?1)", NULL, NULL,
     "SELECT count(*) FROM bpe_tokens('a b')", make_words, MB / 2, 50 * MB, true, false},
    {"tokens of one run", "SELECT count(*), sum(char_stop) FROM bpe_tokens(?1, 'gpt2')", NULL, NULL,
     "SELECT count(*) FROM bpe_tokens('a b')", make_run, MB / 4, 50 * MB, true, false},
    {"tokens normalized", "SELECT count(*), sum(char_stop) FROM bpe_tokens(?1, 'nfc')", NULL, NULL,
     "SELECT count(*) FROM bpe_tokens('a b')", make_accents, MB / 4, 50 * MB, true, false},
    {"pieces", "SELECT count(*), sum(stop) FROM bpe_pieces(?1)", NULL, NULL,
     "SELECT count(*) FROM bpe_pieces('a b')", make_words, 1 * MB, 50 * MB, true, false},
    {"pieces of one run", "SELECT count(*) FROM bpe_pieces(?1, 'gpt2', '{\"pattern\":\"words\"}')",
     NULL, NULL, "SELECT count(*) FROM bpe_pieces('a b')", make_run, MB / 4, 20 * MB, true, false},
    {"pieces by a regex", "SELECT count(*) FROM bpe_pieces(?1, 'gpt2', '{\"regex\":\"[^ ]+ ?\"}')",
     NULL, NULL, "SELECT count(*) FROM bpe_pieces('a b')", make_words, 1 * MB, 50 * MB, true,
     false},
    {"pieces by a slow regex",
     "SELECT count(*) FROM bpe_pieces(?1, 'gpt2', '{\"regex\":\"(?:a|aa){1,12}\\\\d|(?:\\\\w\\\\w?){1,9}!\"}')",
     NULL, NULL, "SELECT count(*) FROM bpe_pieces('a b')", make_run, 500, 400000, false, false},
    {"pieces by a quadratic regex",
     "SELECT count(*) FROM bpe_pieces(?1, 'gpt2', '{\"regex\":\"\\\\p{L}+\\\\p{L}\\\\d\"}')",
     NULL, NULL, "SELECT count(*) FROM bpe_pieces('a b')", make_run, 20000, 4000000, false, false},
    {"chunks", "SELECT count(*), sum(tokens) FROM bpe_chunks(?1, 100)", NULL, NULL,
     "SELECT count(*) FROM bpe_chunks('a b c', 2)", make_words, MB / 2, 50 * MB, true, false},
    {"chunks of sentences",
     "SELECT count(*) FROM bpe_chunks(?1, 100000, 'gpt2', '{\"at\":\"sentence\",\"overlap\":5000}')",
     NULL, NULL, "SELECT count(*) FROM bpe_chunks('a b c', 2)", make_words, MB / 2, 50 * MB, true,
     false},
    {"chunks of one run",
     "SELECT count(*) FROM bpe_chunks(?1, 300000, 'cl100k_base', '{\"at\":\"paragraph\"}')", NULL,
     NULL, "SELECT count(*) FROM bpe_chunks('a b c', 2)", make_run, 1 * MB, 50 * MB, true, false},
    {"chunks of blanks", "SELECT count(*) FROM bpe_chunks(?1, 3000, 'cl100k_base')", NULL, NULL,
     "SELECT count(*) FROM bpe_chunks('a b c', 2)", make_blanks, MB / 4, 50 * MB, true, false},
    {"chunks normalized", "SELECT count(*) FROM bpe_chunks(?1, 100, 'nfc')", NULL, NULL,
     "SELECT count(*) FROM bpe_chunks('a b c', 2, 'nfc')", make_accents, MB / 4, 50 * MB, true, false},
    {"chunks of one piece", "SELECT count(*) FROM bpe_chunks(?1, 100, 'prefixed', '{\"overlap\":20}')", NULL,
     NULL, "SELECT count(*) FROM bpe_chunks('a b c', 3, 'prefixed')", make_words, MB / 4, 50 * MB, true,
     false},
    {"trace", "SELECT count(*), sum(replacements) FROM bpe_trace(?1)", NULL, NULL,
     "SELECT count(*) FROM bpe_trace('a b')", make_words, MB / 4, 50 * MB, true, false},
    {"trace of one run", "SELECT sum(length(after)) FROM bpe_trace(?1, 'gpt2')", NULL, NULL,
     "SELECT count(*) FROM bpe_trace('a b')", make_run, MB / 4, 50 * MB, true, false},
    {"stream", "SELECT count(*), sum(id) FROM bpe_stream('SELECT body FROM parts')", NULL, NULL,
     "SELECT count(*) FROM bpe_stream('SELECT ''a b''')", NULL, 0, 0, false, false},
    {"stream of one run", "SELECT count(*) FROM bpe_stream('SELECT body FROM runs')", NULL, NULL,
     "SELECT count(*) FROM bpe_stream('SELECT ''a b''')", NULL, 0, 0, false, false},
    {"ids", "SELECT count(*), sum(id) FROM bpe_ids(?1)", NULL, NULL,
     "SELECT count(*) FROM bpe_ids(x'01000000')", make_packed, MB / 4, 50 * MB, true, false},
    {"vocab", "SELECT count(*), sum(length) FROM bpe_vocab('big') WHERE text > ''", FORGET, NULL,
     "SELECT count(*) FROM bpe_vocab('tiny')", NULL, 0, 0, false, false},
    {"vocab lookup", "SELECT count(*) FROM bpe_vocab('big') WHERE text = 'the'", FORGET, NULL,
     "SELECT count(*) FROM bpe_vocab('tiny')", NULL, 0, 0, false, false},
    {"merges", "SELECT count(*), sum(rank) FROM bpe_merges('big') WHERE text > ''", FORGET, NULL,
     "SELECT count(*) FROM bpe_merges('tiny')", NULL, 0, 0, false, false},
    {"tokenizers", "SELECT name, digest, special_tokens, sealed FROM bpe_tokenizers WHERE name ="
     " 'big'", NULL, NULL, "SELECT count(*) FROM bpe_tokenizers WHERE schema = 'builtin'", NULL, 0,
     0, false, false},
    /* Storing */
    {"store a model", INSERT_FROM(" FROM sources WHERE kind = 'model'", ""), NULL, REMOVE, STORED,
     NULL, 0, 0, false, false},
    {"store tiktoken", INSERT_FROM(", 'cl100k' FROM sources WHERE kind = 'tiktoken'", ", pattern"),
     NULL, REMOVE, STORED, NULL, 0, 0, false, false},
    {"store huggingface", INSERT_FROM(" FROM sources WHERE kind = 'huggingface'", ""), NULL, REMOVE,
     STORED, NULL, 0, 0, false, false},
    {"store gpt2", "INSERT INTO bpe_tokenizers(name, source, merges, pattern) SELECT 'new', a.body,"
     " b.body, 'cl100k' FROM sources a, sources b WHERE a.kind = 'gpt2-vocab' AND b.kind ="
     " 'gpt2-merges'", NULL, REMOVE, STORED, NULL, 0, 0, false, false},
    {"store minbpe", "INSERT INTO bpe_tokenizers(name, source) VALUES('new', ?1)", NULL, REMOVE,
     STORED, make_minbpe, 100000, 8 * MB, false, false},
    {"store plain", "INSERT INTO bpe_tokenizers(name, source) VALUES('new', ?1)", NULL, REMOVE,
     STORED, make_plain, 100000, 8 * MB, false, false},
    {"store airy json", "INSERT INTO bpe_tokenizers(name, source) VALUES('new', ?1)", NULL, REMOVE,
     STORED, make_airy, MB / 4, 40 * MB, false, false},
    {"seal", "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'open'",
     "UPDATE bpe_model SET digest = NULL WHERE name = 'open'", NULL,
     "SELECT count(*) FROM bpe_model_vocab WHERE model_id = (SELECT id FROM bpe_model WHERE name ="
     " 'open')", NULL, 0, 0, false, false},
    {"rename", "UPDATE bpe_tokenizers SET name = 'moved' WHERE name = 'open'", FORGET,
     "UPDATE bpe_tokenizers SET name = 'open' WHERE name = 'moved'",
     "SELECT count(*) FROM bpe_model WHERE name = 'open'", NULL, 0, 0, false, false},
    {"delete", "DELETE FROM bpe_tokenizers WHERE name = 'spare'",
     "INSERT INTO bpe_tokenizers(name, source) SELECT 'spare', body FROM sources WHERE kind ="
     " 'whole' AND NOT EXISTS (SELECT 1 FROM bpe_model WHERE name = 'spare')", NULL,
     "SELECT count(*) FROM bpe_model WHERE name = 'big'", NULL, 0, 0, false, false},
    /* Full text */
    {"fts5 insert", "INSERT INTO f(body) VALUES(?1)", NULL, "DELETE FROM f",
     "SELECT count(*) FROM f", make_words, MB / 4, 50 * MB, true, false},
    {"fts5 one run", "INSERT INTO g(body) VALUES(?1)", NULL, "DELETE FROM g",
     "SELECT count(*) FROM g", make_run, MB / 4, 50 * MB, true, false},
    {"fts5 match",
     "SELECT highlight(q, 0, '[', ']') FROM q WHERE q MATCH '\"some 17\" OR \"text some\"'", NULL,
     NULL, "SELECT count(*) FROM q WHERE q MATCH '\"17 text\"'", NULL, 0, 0, false, false},
    {"fts5 match prefix", "SELECT snippet(q, 0, '[', ']', '', 9) FROM q WHERE q MATCH '1* OR te*'",
     NULL, NULL, "SELECT count(*) FROM q WHERE q MATCH '17 + te*'", NULL, 0, 0, false, false},
    {"fts5 match a long phrase", "SELECT count(*) FROM q WHERE q MATCH ?1", NULL, NULL,
     "SELECT count(*) FROM q WHERE q MATCH '\"17 text\"'", make_phrase, MB / 8, MB / 3, false,
     false},
    {"fts5 match a long prefix", "SELECT count(*) FROM q WHERE q MATCH ?1", NULL, NULL,
     "SELECT count(*) FROM q WHERE q MATCH '17 + te*'", make_prefix, MB / 8, MB / 3, false, false},
    {.name = NULL},
};

/* ---- Preparation -------------------------------------------------------------------------------- */

bool subjects_prepare(sqlite3 *db, const char *encoding, int cut) {
  static const char script[] =
      "CREATE TABLE parts(body); CREATE TABLE runs(body); CREATE TABLE sources(kind, body);"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
      " INSERT INTO parts SELECT replace(printf('%.400c', 'x'), 'x', printf(' some %d text', i)) FROM n;"
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)"
      " INSERT INTO runs SELECT printf('%.200000c', 'a') FROM n;"
      "INSERT INTO bpe_tokenizers(name, source) SELECT 'tiny', bpe_train(body, 300) FROM"
      " (SELECT body FROM parts LIMIT 3);"
      "INSERT INTO bpe_tokenizers(name, source) SELECT 'nfc', replace(bpe_export('tiny',"
      " 'huggingface'), '\"normalizer\":null', '\"normalizer\":{\"type\":\"NFC\"}');"
      "INSERT INTO bpe_tokenizers(name, source) VALUES('prefixed', '{\"pattern\":\"none\",\"merges\":"
      "[[101,32]]}');"
      "UPDATE bpe_model SET options = '{\"format\":1,\"normalizer\":[{\"prepend\":\" \"}]}'"
      " WHERE name = 'prefixed';"
      "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'prefixed';"
      "INSERT INTO bpe_tokenizers(name, source) VALUES('wrapped', '{\"pattern\":\"none\",\"merges\":"
      "[],\"special_tokens\":[\"<s>\",\"</s>\"],\"bos\":[\"<s>\"],\"eos\":[\"</s>\"]}');"
      "INSERT INTO bpe_tokenizers(name, source) SELECT 'pairs', '{\"pattern\":\"none\",\"merges\":[' ||"
      " group_concat('[' || (i >> 8) || ',' || (i & 255) || ']') || ']}' FROM (WITH RECURSIVE n(i) AS"
      " (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) SELECT i FROM n);"
      "CREATE VIRTUAL TABLE f USING fts5(body, tokenize = 'bpe gpt2 fold trim');"
      "CREATE VIRTUAL TABLE g USING fts5(body, tokenize = 'bpe gpt2');"
      "CREATE VIRTUAL TABLE q USING fts5(body, tokenize = 'bpe gpt2 fold trim');"
      "INSERT INTO q SELECT substr(body, 1 + 12 * column1, 600) FROM parts, (VALUES(0), (1), (2));";
  static const char copies[] =
      "INSERT INTO bpe_tokenizers(name, source) SELECT 'big', bpe_export('%s', 'model');"
      "INSERT INTO sources SELECT 'whole', bpe_export('big', 'model');"
      "INSERT INTO bpe_tokenizers(name, source) SELECT column1, body FROM (VALUES('open'),"
      " ('spare')), sources;"
      "INSERT INTO bpe_tokenizers(name, source, options) SELECT 'cut', body,"
      " iif(%d > 0, '{\"vocab_size\":%d}', NULL) FROM sources;"
      "INSERT INTO sources SELECT column1, bpe_export('cut', column1) FROM (VALUES('model'),"
      " ('tiktoken'), ('huggingface'), ('gpt2-vocab'), ('gpt2-merges'));"
      "DELETE FROM bpe_tokenizers WHERE name = 'cut'";
  char text[sizeof copies + 100];
  snprintf(text, sizeof text, copies, encoding, cut, cut);
  return run_script(db, script) && run_script(db, text);
}
