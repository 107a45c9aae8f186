/* io_scenarios.c - statements for io_errors.c: every way to store, change and read. */
#include "io_errors.h"

#include <stddef.h>

#define MERGES "[[97,98],[256,99],[257,97],[100,101]]"
#define PLAIN "'{\"pattern\":\"none\",\"merges\":" MERGES "}'"
#define STORE(name) "INSERT INTO bpe_tokenizers(name, source) VALUES('" name "', " PLAIN ")"
#define STORE_IN(schema, name)                                                                     \
  "INSERT INTO bpe_tokenizers(name, schema, source) VALUES('" name "', '" schema "', " PLAIN ")"
#define TRAIN(name)                                                                                \
  "INSERT INTO bpe_tokenizers(name, source) SELECT '" name "', bpe_train(body, 290) FROM docs"
#define DELETE(name) "DELETE FROM bpe_tokenizers WHERE name = '" name "'"
#define RENAME(from, to) "UPDATE bpe_tokenizers SET name = '" to "' WHERE name = '" from "'"
/* Makes the connection know schema and tokenizers before anything fails. */
#define WARM                                                                                       \
  "SELECT bpe_count('abc', 'm'), (SELECT count(*) FROM bpe_tokenizers WHERE schema = 'main')"
/* Of a model, what is not seconds that training took: its merges, before the checksum. */
#define ENTRIES(model) "hex(substr(" model ", -832, 800))"
#define EXPORT(format) "bpe_export('m', '" format "')"

/* m: trained. r: every token merges to itself and has its id for its rank, so all formats hold
** it. u: its rows were edited by hand. w: nothing touches it but f, an index that tokenizes with
** it. */
const char scenario_setup[] =
    "INSERT INTO bpe_tokenizers(name, source) SELECT 'm', bpe_train(body, 300) FROM docs;"
    "INSERT INTO bpe_tokenizers(name, source)"
    " SELECT 'r', bpe_train(body, 270, '{\"pattern\":\"gpt2\"}') FROM docs;" STORE(
        "u") ";"
             "UPDATE bpe_model_merges SET count = 7 WHERE rank = 1 AND model_id ="
             " (SELECT id FROM bpe_model WHERE name = 'u');" STORE(
                 "w") ";"
                      "CREATE VIRTUAL TABLE f USING fts5(body, tokenize = 'bpe w');"
                      "INSERT INTO f SELECT body FROM docs LIMIT 20;"
                      "CREATE TABLE kept(body, n INTEGER);"
                      "INSERT INTO kept SELECT body, NULL FROM docs LIMIT 20;";

const scenario scenarios[] = {
    /* Storing, in each format. */
    {.name = "store", .sql = {STORE("x")}},
    {.name = "store the first", .sql = {STORE("x")}, .files = FILES_EMPTY},
    {.name = "store, warm", .before = WARM, .sql = {STORE("x")}},
    {.name = "store, OR REPLACE",
     .sql = {"INSERT OR REPLACE INTO bpe_tokenizers(name, source) SELECT 'x', " PLAIN}},
    {.name = "store, OR IGNORE",
     .sql = {"INSERT OR IGNORE INTO bpe_tokenizers(name, source) VALUES('x', " PLAIN ")"}},
    {.name = "store, OR ROLLBACK",
     .sql = {"BEGIN", STORE("v"),
             "INSERT OR ROLLBACK INTO bpe_tokenizers(name, source) VALUES('x', " PLAIN ")",
             "COMMIT"}},
    {.name = "store, OR FAIL",
     .sql = {"BEGIN",
             "INSERT OR FAIL INTO bpe_tokenizers(name, source) VALUES('x', " PLAIN "), ('y', " PLAIN
             ")",
             "COMMIT"}},
    {.name = "store two",
     .sql = {"INSERT INTO bpe_tokenizers(name, source) VALUES('x', " PLAIN "), ('y', " PLAIN ")"}},
    {.name = "store a model",
     .sql = {"INSERT INTO bpe_tokenizers(name, source) VALUES('x', " EXPORT("model") ")"}},
    {.name = "store a tokenizer.json",
     .sql = {"INSERT INTO bpe_tokenizers(name, source) SELECT 'x', " EXPORT("huggingface")}},
    {.name = "store a rank file",
     .sql = {"INSERT INTO bpe_tokenizers(name, source, pattern) VALUES('x', bpe_export('r', "
             "'tiktoken'),"
             " 'gpt2')"}},
    {.name = "store vocab.json and merges.txt",
     .sql = {"INSERT INTO bpe_tokenizers(name, source, merges, pattern) VALUES('x',"
             " bpe_export('r', 'gpt2-vocab'), bpe_export('r', 'gpt2-merges'), 'gpt2')"}},
    {.name = "store a minbpe model",
     .sql = {"INSERT INTO bpe_tokenizers(name, source) VALUES('x', bpe_export('r', 'minbpe'))"}},
    {.name = "store a trained one", .sql = {TRAIN("x")}},
    {.name = "store a trained one as the first", .sql = {TRAIN("x")}, .files = FILES_EMPTY},
    {.name = "store a cut one",
     .sql = {"INSERT INTO bpe_tokenizers(name, source, options) VALUES('x', " EXPORT(
         "model") ", '{\"vocab_size\":280}')"}},
    {.name = "store in temp",
     .before = "PRAGMA temp_store = FILE",
     .sql = {STORE_IN("temp", "x")},
     .temp = true},
    {.name = "store in an attached file", .sql = {STORE_IN("other", "x")}, .other = true},

    /* Removing, renaming, sealing. */
    {.name = "delete", .sql = {DELETE("m")}},
    {.name = "delete, warm", .before = WARM, .sql = {DELETE("m")}},
    {.name = "delete all",
     .sql = {"DELETE FROM bpe_tokenizers WHERE schema = 'main' AND name <> 'w'"}},
    {.name = "rename", .sql = {RENAME("m", "x")}},
    {.name = "rename, warm", .before = WARM, .sql = {RENAME("m", "x")}},
    {.name = "seal", .sql = {"UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'u'"}},
    {.name = "seal and rename",
     .sql = {"UPDATE bpe_tokenizers SET sealed = 1, name = 'x' WHERE name = 'u'"}},
    {.name = "edit by hand and seal",
     .sql = {"UPDATE bpe_model_vocab SET kind = 'special' WHERE id = 7 AND model_id ="
             " (SELECT id FROM bpe_model WHERE name = 'r')",
             "UPDATE bpe_tokenizers SET sealed = 1 WHERE name = 'r'"}},

    /* In transactions. */
    {.name = "commit", .sql = {"BEGIN", STORE("x"), DELETE("m"), RENAME("r", "m"), "COMMIT"}},
    {.name = "commit, immediate",
     .before = WARM,
     .sql = {"BEGIN IMMEDIATE", TRAIN("x"), DELETE("r"), "COMMIT"}},
    {.name = "roll back",
     .before = WARM,
     .sql = {"BEGIN", STORE("x"), DELETE("m"), "ROLLBACK", STORE("y")}},
    {.name = "roll back to a savepoint",
     .before = WARM,
     .sql = {"BEGIN", STORE("x"), "SAVEPOINT s", DELETE("m"), STORE("m"), "ROLLBACK TO s",
             "COMMIT"}},
    {.name = "release a savepoint",
     .sql = {"SAVEPOINT s", DELETE("r"), "SAVEPOINT i", STORE("r"), "RELEASE i", "RELEASE s"}},
    {.name = "a savepoint in a savepoint",
     .sql = {"SAVEPOINT s", STORE("x"), "ROLLBACK TO s", STORE("y"), "RELEASE s"}},
    {.name = "use within a transaction",
     .sql = {"BEGIN", TRAIN("x"), "SELECT bpe_encode('the cat sat', 'x')", "ROLLBACK",
             "SELECT bpe_resolve('x')"}},
    {.name = "two files in one transaction",
     .sql = {"BEGIN", STORE("x"), STORE_IN("other", "y"), DELETE("m"), "COMMIT"},
     .other = true,
     .two_files = true},

    /* Reading: the first use of a stored tokenizer, and later ones. */
    {.name = "encode", .sql = {"SELECT bpe_encode('the cat sat', 'm')"}},
    {.name = "encode, warm",
     .before = WARM,
     .sql = {"SELECT bpe_encode('the cat sat', 'm'), bpe_count('abc', 'r')"}},
    {.name = "encode each row", .sql = {"SELECT sum(bpe_count(body, 'm')) FROM docs"}},
    {.name = "decode",
     .sql = {"SELECT bpe_decode(bpe_encode('the cat', 'm'), 'm'), bpe_token(260, 'm')"}},
    {.name = "budget",
     .sql = {"SELECT bpe_fits('the cat', 3, 'm'), bpe_truncate('the cat sat', 3, 'main.m')"}},
    {.name = "tokens",
     .sql = {"SELECT count(*), sum(t.id) FROM docs, bpe_tokens(docs.body, 'm') t"}},
    {.name = "chunks", .sql = {"SELECT count(*) FROM docs, bpe_chunks(docs.body, 9, 'm') c"}},
    {.name = "vocab", .sql = {"SELECT count(*), sum(length) FROM bpe_vocab('m')"}},
    {.name = "merges", .sql = {"SELECT count(*), sum(count) FROM bpe_merges('m')"}},
    {.name = "trace and pieces",
     .sql = {"SELECT count(*) FROM bpe_trace('the cat', 'm')",
             "SELECT count(*) FROM bpe_pieces('the cat', 'm')"}},
    {.name = "stream",
     .sql = {"SELECT count(*), sum(id) FROM bpe_stream('SELECT body FROM docs', 'm')"}},
    {.name = "train from a table", .sql = {"SELECT " ENTRIES("bpe_train(body, 300)") " FROM docs"}},
    {.name = "train with weights",
     .sql = {"SELECT " ENTRIES(
         "bpe_train(body, 300, NULL, length(body))") " FROM docs GROUP BY length(body) "
                                                     "% 3"}},
    {.name = "catalogue",
     .sql = {"SELECT name, sealed, digest, stats FROM bpe_tokenizers WHERE schema = 'main'"}},
    {.name = "unsealed", .sql = {"SELECT name, stats FROM bpe_tokenizers WHERE sealed = 0"}},
    {.name = "resolve",
     .sql = {"SELECT bpe_resolve('m'), bpe_resolve('main.r'), bpe_resolve('nobody')"}},
    {.name = "export", .sql = {"SELECT hex(" EXPORT("model") "), " EXPORT("huggingface")}},

    /* Writing to other tables what a stored tokenizer answers. */
    {.name = "update a column", .sql = {"UPDATE kept SET n = bpe_count(body, 'm')"}},
    {.name = "create an index", .sql = {"CREATE INDEX by_n ON kept(bpe_count(body, 'm'))"}},
    {.name = "full text, insert",
     .sql = {"INSERT INTO f SELECT body FROM docs LIMIT 30 OFFSET 20"},
     .full_text = true},
    {.name = "full text, query",
     .sql = {"SELECT count(*) FROM f WHERE f MATCH '\"cat\"'"},
     .full_text = true},
    {.name = NULL},
};
