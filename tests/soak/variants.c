/* variants.c - the contents that names can have, and what each answers.
**
** Some are written down, most are trained from the table docs with patterns that go through
** different scanners and PCRE2, so that their code runs in many threads. The answers come
** from a connection to a database in memory that knows nothing else, before any thread starts; that
** they are right is other tests' business, here they only have to be the same whatever happens
** around.
*/
#include "soak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const question questions[QUESTIONS] = {
    [K_encode] = {"SELECT bpe_encode(?1, ?2)", IN_TEXT},
    [K_encode_blob] = {"SELECT bpe_encode_blob(?1, ?2)", IN_TEXT},
    [K_count] = {"SELECT bpe_count(?1, ?2)", IN_TEXT},
    [K_tokens] = {"SELECT group_concat(id || ' ' || start) FROM bpe_tokens(?1, ?2)", IN_TEXT},
    [K_decode] = {"SELECT bpe_decode(?1, ?2)", IN_JSON},
    [K_decode_blob] = {"SELECT bpe_decode_blob(?1, ?2)", IN_BLOB},
    [K_vocab] = {"SELECT group_concat(id || hex(token) || coalesce(special, '')) FROM"
                 " (SELECT id, token, special FROM bpe_vocab(?2)) WHERE ?1 IS NULL",
                 IN_NOTHING},
    [K_merges] = {"SELECT group_concat(\"left\" || ' ' || \"right\" || ' ' || id) FROM"
                  " (SELECT \"left\", \"right\", id FROM bpe_merges(?2)) WHERE ?1 IS NULL",
                  IN_NOTHING},
    [K_export] = {"SELECT bpe_export(?2, 'huggingface') WHERE ?1 IS NULL", IN_NOTHING},
    [K_column] = {"SELECT sum(bpe_count(body, ?2)) FROM docs WHERE ?1 IS NULL", IN_NOTHING},
    [K_chunks] = {"SELECT group_concat(start || ' ' || tokens) FROM bpe_chunks(?1, 9, ?2)",
                  IN_TEXT},
    [K_truncate] = {"SELECT bpe_truncate(?1, 9, ?2)", IN_TEXT},
    [K_stats] = {"SELECT bpe_token_stats(body, ?2) FROM docs WHERE ?1 IS NULL", IN_NOTHING},
};

variant variants[VARIANTS] = {
    {.recipe = "SELECT '{\"pattern\":\"none\",\"merges\":[[116,104],[256,101],[32,257]]}'"},
    {.recipe = "SELECT '{\"pattern\":\"none\",\"merges\":[[104,101],[116,256],[32,116]]}'"},
    {.recipe = "SELECT bpe_train(body, 300, '{\"threads\":1}') FROM docs"},
    {.recipe = "SELECT bpe_train(body, 400, '{\"threads\":2}') FROM docs"},
    {.recipe = "SELECT bpe_train(body, 350, '{\"threads\":1,\"pattern\":\"gpt2\"}')"
               " FROM docs WHERE id % 2 = 0"},
    {.recipe = "SELECT bpe_train(body, 350, '{\"threads\":2,\"pattern\":\"cl100k\"}')"
               " FROM docs WHERE id % 2 = 1"},
    {.recipe =
         "SELECT bpe_train(body, 320, '{\"threads\":2,\"regex\":\"\\\\p{L}+|\\\\P{L}\"}') FROM docs"},
    {.recipe = "SELECT bpe_train(body, 330, '{\"threads\":1,\"pattern\":\"none\"}') FROM docs"},
    {.recipe = "SELECT bpe_train(body, 340, '{\"threads\":1,\"pattern\":\"qwen2\","
               "\"special_tokens\":[\"<s>\",\"</s>\"],\"bos\":[\"<s>\"]}') FROM docs"},
    {.recipe =
         "SELECT bpe_train(body, 420, '{\"threads\":1,\"tie\":\"ids\",\"byte_order\":\"gpt2\"}')"
         " FROM docs"},
};

piece texts[TEXTS];

static bool copy_column(sqlite3_stmt *stmt, int column, piece *out) {
  const void *data = sqlite3_column_blob(stmt, column);
  out->len = (size_t)sqlite3_column_bytes(stmt, column);
  out->data = malloc(out->len + 1);
  if (!out->data) return false;
  if (out->len > 0) memcpy(out->data, data, out->len);
  out->data[out->len] = 0;
  return true;
}

const piece *question_input(int number, int variant_index, int text) {
  static const piece nothing = {NULL, 0};
  const variant *v = &variants[variant_index];
  switch (questions[number].input) {
  case IN_TEXT: return &texts[text];
  case IN_JSON: return &v->answer[K_encode][text];
  case IN_BLOB: return &v->answer[K_encode_blob][text];
  default: return &nothing;
  }
}

static bool make_texts(sqlite3 *db) {
  sqlite3_stmt *stmt = NULL;
  bool ok = sqlite3_prepare_v2(db, "SELECT body FROM docs WHERE id <= ?1 ORDER BY id", -1, &stmt,
                               NULL) == SQLITE_OK;
  sqlite3_bind_int(stmt, 1, TEXTS);
  for (int i = 0; i < TEXTS && ok; i++) {
    ok = sqlite3_step(stmt) == SQLITE_ROW && copy_column(stmt, 0, &texts[i]);
  }
  sqlite3_finalize(stmt);
  return ok;
}

static bool make_answers(sqlite3 *db, int index) {
  for (int q = 0; q < QUESTIONS; q++) {
    sqlite3_stmt *stmt = NULL;
    if (sqlite3_prepare_v2(db, questions[q].sql, -1, &stmt, NULL) != SQLITE_OK) return false;
    for (int t = 0; t < TEXTS; t++) {
      const piece *in = question_input(q, index, t);
      if (questions[q].input == IN_BLOB)
        sqlite3_bind_blob64(stmt, 1, in->data, in->len, SQLITE_STATIC);
      else sqlite3_bind_text64(stmt, 1, in->data, in->len, SQLITE_STATIC, SQLITE_UTF8);
      sqlite3_bind_text(stmt, 2, "v", -1, SQLITE_STATIC);
      const bool ok = sqlite3_step(stmt) == SQLITE_ROW &&
                      sqlite3_column_type(stmt, 0) != SQLITE_NULL &&
                      copy_column(stmt, 0, &variants[index].answer[q][t]);
      sqlite3_reset(stmt);
      if (!ok) {
        sqlite3_finalize(stmt);
        return false;
      }
    }
    sqlite3_finalize(stmt);
  }
  return true;
}

static bool make_variant(sqlite3 *db, int index) {
  variant *v = &variants[index];
  sqlite3_stmt *stmt = NULL;
  char *sql =
      sqlite3_mprintf("INSERT INTO bpe_tokenizers(name, source) SELECT 'v', (%s)", v->recipe);
  bool ok = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK;
  sqlite3_free(sql);
  ok = ok && sqlite3_prepare_v2(db,
                                "SELECT digest, bpe_export(name, 'model') FROM bpe_tokenizers"
                                " WHERE name = 'v'",
                                -1, &stmt, NULL) == SQLITE_OK;
  ok = ok && sqlite3_step(stmt) == SQLITE_ROW && copy_column(stmt, 1, &v->model);
  if (ok) snprintf(v->digest, sizeof v->digest, "%s", (const char *)sqlite3_column_text(stmt, 0));
  sqlite3_finalize(stmt);
  return ok && make_answers(db, index);
}

/* A check that another content would pass as well is none: of any two, half of the texts have
** different ids. */
static bool tell_apart(int a, int b) {
  int same = 0;
  for (int t = 0; t < TEXTS; t++) {
    const piece *x = &variants[a].answer[K_encode][t], *y = &variants[b].answer[K_encode][t];
    if (x->len == y->len && memcmp(x->data, y->data, x->len) == 0) same++;
  }
  if (same * 2 <= TEXTS && strcmp(variants[a].digest, variants[b].digest) != 0) return true;
  printf("variants %d and %d encode %d of %d texts alike\n", a, b, same, TEXTS);
  return false;
}

/* On a connection of its own, which has no other content to confuse it with. */
static bool make_alone(const shared *s, int index) {
  worker w = {.s = (shared *)s};
  bool ok = worker_connect(&w, ":memory:", 0) &&
            sqlite3_exec(w.db, docs_sql, NULL, NULL, NULL) == SQLITE_OK;
  if (index == 0) ok = ok && make_texts(w.db);
  ok = ok && make_variant(w.db, index);
  if (!ok) printf("variant %d: %s\n", index, sqlite3_errmsg(w.db));
  return worker_disconnect(&w) && ok;
}

bool variants_make(const shared *s) {
  bool ok = true;
  for (int i = 0; i < VARIANTS && ok; i++) ok = make_alone(s, i);
  for (int i = 0; i < VARIANTS && ok; i++) {
    for (int j = 0; j < i && ok; j++) ok = tell_apart(i, j);
  }
  return ok;
}

void variants_free(void) {
  for (int i = 0; i < VARIANTS; i++) {
    free(variants[i].model.data);
    for (int q = 0; q < QUESTIONS; q++) {
      for (int t = 0; t < TEXTS; t++) free(variants[i].answer[q][t].data);
    }
  }
  for (int t = 0; t < TEXTS; t++) free(texts[t].data);
}
