/* fts5_bpe.c - full-text search by token: the FTS5 tokenizer `bpe`.
**
**   CREATE VIRTUAL TABLE f USING fts5(body, tokenize = 'bpe o200k_base');
**   CREATE VIRTUAL TABLE g USING fts5(body, tokenize = "bpe 'gpt-4' fold trim");
**
** The arguments are a tokenizer's name, o200k_base where there is none, and the words fold and
** trim. A name that is more than letters, digits and _ wants quotes of its own: "bpe 'gpt-4o'".
** (F1) The terms are the tokens' bytes, so a query hits where its sequence of tokens occurs. "cat"
**      and " cat" are two tokens: without trim a word finds itself only behind what it stands
**      behind in the query.
** (F2) fold makes text and query lower case before they are tokenized: Latin, Greek, Cyrillic,
**      Armenian and full-width letters.
** (F3) trim tokenizes as if a blank came before a text or query that begins with such a letter or a
**      digit, takes blanks off the terms, and drops those that are nothing else.
** (F4) Offsets are those of the text, moved out to whole characters, and never go back: of the
**      tokens that share a character the first has it. A byte 0 in a term is a byte C0.
** (F5) A prefix query takes its last token for a prefix of bytes: "tok*" finds "token" and not what
**      is tokenized "t" "ok".
** (F6) The name is looked up when text is tokenized, not when the table is opened, so that a table
**      whose tokenizer is gone can be read and dropped. FTS5 has no way for a message, only for a
**      code; the message goes to sqlite3_log.
** Where SQLite has no FTS5, nothing is registered.
*/
#include "ext.h"

#include <string.h>

enum { SHORT_TERM = 128 };

typedef struct fts_tokenizer {
  conn *c;             /* borrowed: the registration holds it */
  sqlite3_value *name; /* owned; NULL: the default */
  bool fold, trim;
} fts_tokenizer;

/* ---- Making one ----------------------------------------------------------------------------- */

/* An SQL value of a string, which only a statement can make. */
static int make_value(sqlite3 *db, const char *text, sqlite3_value **out) {
  sqlite3_stmt *stmt = NULL;
  *out = NULL;
  int rc = sqlite3_prepare_v2(db, "SELECT ?1", -1, &stmt, NULL);
  if (rc == SQLITE_OK) rc = sqlite3_bind_text(stmt, 1, text, -1, SQLITE_STATIC);
  if (rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_ROW) {
    *out = sqlite3_value_dup(sqlite3_column_value(stmt, 0));
  }
  sqlite3_finalize(stmt);
  if (rc == SQLITE_OK && !*out) rc = SQLITE_NOMEM;
  return rc;
}

static void fts_delete(Fts5Tokenizer *arg) {
  fts_tokenizer *t = (fts_tokenizer *)arg;
  if (!t) return;
  sqlite3_value_free(t->name);
  sqlite3_free(t);
}

static int fts_create(void *aux, const char **argv, int argc, Fts5Tokenizer **out) {
  fts_tokenizer *t = sqlite3_malloc64(sizeof *t);
  int rc = SQLITE_OK;
  if (!t) return SQLITE_NOMEM;
  *t = (fts_tokenizer){.c = aux};
  for (int i = 0; i < argc && rc == SQLITE_OK; i++) {
    if (strcmp(argv[i], "fold") == 0) t->fold = true;
    else if (strcmp(argv[i], "trim") == 0) t->trim = true;
    else if (i == 0) rc = make_value(t->c->db, argv[i], &t->name);
    else rc = SQLITE_ERROR;
  }
  if (rc != SQLITE_OK) {
    fts_delete((Fts5Tokenizer *)t);
    return rc;
  }
  *out = (Fts5Tokenizer *)t;
  return SQLITE_OK;
}

/* ---- Text (F2, F3) --------------------------------------------------------------------------- */

/* A code point in lower case, where that has as many bytes. */
static uint32_t fold_char(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 0x20 : c;
  if (c >= 0xc0 && c <= 0xde) return c == 0xd7 ? c : c + 0x20;
  if (c >= 0x100 && c <= 0x17f) {
    if (c == 0x178) return 0xff;
    if (c == 0x130 || c == 0x131 || c == 0x138 || c == 0x149 || c == 0x17f) return c;
    const bool odd_is_upper = (c >= 0x139 && c <= 0x148) || c >= 0x179;
    return (c & 1) == odd_is_upper ? c + 1 : c;
  }
  if (c >= 0x1f8 && c <= 0x21f) return (c & 1) == 0 ? c + 1 : c;
  if (c >= 0x391 && c <= 0x3ab) return c == 0x3a2 ? c : c + 0x20;
  if (c == 0x386) return 0x3ac;
  if (c >= 0x388 && c <= 0x38a) return c + 0x25;
  if (c == 0x38c) return 0x3cc;
  if (c == 0x38e || c == 0x38f) return c + 0x3f;
  if (c >= 0x400 && c <= 0x40f) return c + 0x50;
  if (c >= 0x410 && c <= 0x42f) return c + 0x20;
  if (c == 0x4c0) return 0x4cf;
  if (c >= 0x4c1 && c <= 0x4ce) return (c & 1) != 0 ? c + 1 : c;
  if ((c >= 0x460 && c <= 0x481) || (c >= 0x48a && c <= 0x4bf) || (c >= 0x4d0 && c <= 0x52f)) {
    return (c & 1) == 0 ? c + 1 : c;
  }
  if (c >= 0x531 && c <= 0x556) return c + 0x30;
  if ((c >= 0x1e00 && c <= 0x1e95) || (c >= 0x1ea0 && c <= 0x1eff)) return (c & 1) == 0 ? c + 1 : c;
  return c >= 0xff21 && c <= 0xff3a ? c + 0x20 : c;
}

/* Lower case in place; malformed bytes stay. */
static void fold(uint8_t *s, size_t len) {
  for (size_t i = 0, n; i < len; i += n) {
    n = bpe_utf8_next(s + i, len - i);
    if (n == 1) {
      if (s[i] < 0x80) s[i] = (uint8_t)fold_char(s[i]);
    } else if (n == 2 && s[i] < 0xe0) {
      const uint32_t c = fold_char((s[i] & 0x1fu) << 6 | (s[i + 1] & 0x3fu));
      s[i] = (uint8_t)(0xc0 | c >> 6);
      s[i + 1] = (uint8_t)(0x80 | (c & 0x3f));
    } else if (n == 3 && s[i] < 0xf0) {
      const uint32_t c =
          fold_char((s[i] & 0x0fu) << 12 | (s[i + 1] & 0x3fu) << 6 | (s[i + 2] & 0x3fu));
      s[i + 1] = (uint8_t)(0x80 | (c >> 6 & 0x3f));
      s[i + 2] = (uint8_t)(0x80 | (c & 0x3f));
    }
  }
}

/* Whether the text begins with a digit or a letter of a script that writes words apart. */
static bool begins_word(const uint8_t *s, size_t len) {
  if (len == 0) return false;
  const uint8_t c = s[0];
  if ((c >= '0' && c <= '9') || (uint8_t)((c | 0x20) - 'a') < 26) return true;
  return len > 1 && c >= 0xc3 && c <= 0xd6; /* U+00C0 to U+05BF */
}

/* What is tokenized: the text, or a copy, which the caller frees. *shift: bytes put before. */
static int make_text(const fts_tokenizer *t, bytes in, uint8_t **copy, bytes *out, size_t *shift) {
  *copy = NULL;
  *out = in;
  *shift = t->trim && begins_word(in.data, in.len) ? 1 : 0;
  if (!t->fold && *shift == 0) return SQLITE_OK;
  uint8_t *s = sqlite3_malloc64((sqlite3_uint64)in.len + 1);
  if (!s) return SQLITE_NOMEM;
  s[0] = ' ';
  memcpy(s + *shift, in.data, in.len);
  if (t->fold) fold(s + *shift, in.len);
  *copy = s;
  *out = (bytes){.data = s, .len = in.len + *shift};
  return SQLITE_OK;
}

/* ---- Terms (F1, F4) -------------------------------------------------------------------------- */

typedef int take_token(void *ctx, int flags, const char *term, int len, int start, int stop);

typedef struct sink {
  take_token *take;
  void *ctx;
  bytes text; /* as given */
  size_t shift, last_stop;
  bool trim;
} sink;

/* The start of the character that goes on across text[at], or `at`. */
static size_t char_floor(bytes text, size_t at) {
  if (at >= text.len || (text.data[at] & 0xc0) != 0x80) return at;
  size_t lead = at;
  for (int k = 0; k < 3 && lead > 0 && (text.data[lead] & 0xc0) == 0x80; k++) lead--;
  return lead + bpe_utf8_next(text.data + lead, text.len - lead) > at ? lead : at;
}

static size_t char_ceil(bytes text, size_t at) {
  const size_t lead = char_floor(text, at);
  return lead == at ? at : lead + bpe_utf8_next(text.data + lead, text.len - lead);
}

/* FTS5 before 3.44 measures terms with strlen. */
static int take_without_nul(sink *k, const uint8_t *term, size_t len, int start, int stop) {
  uint8_t few[SHORT_TERM], *copy = few;
  if (!memchr(term, 0, len)) return k->take(k->ctx, 0, (const char *)term, (int)len, start, stop);
  if (len > sizeof few && !(copy = sqlite3_malloc64(len))) return SQLITE_NOMEM;
  for (size_t i = 0; i < len; i++) copy[i] = term[i] ? term[i] : 0xc0;
  const int rc = k->take(k->ctx, 0, (const char *)copy, (int)len, start, stop);
  if (copy != few) sqlite3_free(copy);
  return rc;
}

static int take(sink *k, const uint8_t *term, size_t len, size_t start, size_t stop) {
  if (k->trim) {
    for (; len > 0 && term[0] == ' '; len--, term++) {
      if (start < stop) start++;
    }
    for (; len > 0 && term[len - 1] == ' '; len--) {
      if (start < stop) stop--;
    }
    if (len == 0) return SQLITE_OK;
  }
  start = start > k->shift ? char_floor(k->text, start - k->shift) : 0;
  stop = stop > k->shift ? char_ceil(k->text, stop - k->shift) : 0;
  if (start < k->last_stop) start = k->last_stop;
  if (stop < start) stop = start;
  k->last_stop = stop;
  return take_without_nul(k, term, len, (int)start, (int)stop);
}

static int take_piece(sink *k, const bpe_model *m, const bpe_piece *p) {
  size_t stop = p->start;
  int rc = SQLITE_OK;
  for (size_t i = 0; i < p->n_ids && rc == SQLITE_OK; i++) {
    const bpe_token t = bpe_model_token(m, bpe_model_find_id(m, p->ids[i]));
    const size_t start = stop;
    stop = p->stops ? p->stops[i] : p->special ? p->stop : start + t.len;
    rc = take(k, t.bytes, t.len, start, stop);
  }
  return rc;
}

static int walk_text(const fts_tokenizer *t, tokenizer *tok, bytes text, sink *k, failure *f) {
  const bpe_walk_options o = {.stop = interrupted, .stop_ctx = t->c};
  bpe_error e = {0};
  bpe_walk *w;
  bpe_piece p;
  int rc = SQLITE_OK;
  bpe_status st = bpe_walk_new(tok->coder, &e, &w);
  if (st == BPE_OK) st = bpe_walk_start(w, text.data, text.len, &o, &e);
  while (st == BPE_OK && rc == SQLITE_OK && (st = bpe_walk_next(w, &p, &e)) == BPE_OK) {
    rc = take_piece(k, tok->model, &p);
  }
  bpe_walk_free(w);
  if (st != BPE_OK && st != BPE_DONE) rc = fail_status(f, st, &e);
  return rc;
}

static int fts_tokenize(Fts5Tokenizer *arg, void *ctx, int flags, const char *data, int len,
                        take_token *take_one) {
  const fts_tokenizer *t = (const fts_tokenizer *)arg;
  failure f = {.name = "bpe", .c = t->c};
  const bytes given = {(const uint8_t *)(data && len > 0 ? data : ""),
                       data && len > 0 ? (size_t)len : 0};
  tokenizer *tok;
  uint8_t *copy;
  bytes text;
  sink k = {.take = take_one, .ctx = ctx, .text = given, .trim = t->trim};
  (void)flags;
  int rc = tokenizer_get(t->c, t->name, &f, &tok); /* F6 */
  if (rc == SQLITE_OK) {
    rc = make_text(t, given, &copy, &text, &k.shift);
    if (rc == SQLITE_OK) rc = walk_text(t, tok, text, &k, &f);
    sqlite3_free(copy);
    tokenizer_release(tok);
  }
  if (f.text) sqlite3_log(f.rc, "%s", f.text);
  failure_clear(&f);
  return rc;
}

/* ---- Registration --------------------------------------------------------------------------- */

/* FTS5's functions, or NULL: SQLite has none, or may not say. */
static fts5_api *find_fts5(sqlite3 *db) {
  fts5_api *api = NULL;
  sqlite3_stmt *stmt = NULL;
  if (sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &stmt, NULL) == SQLITE_OK &&
      sqlite3_bind_pointer(stmt, 1, (void *)&api, "fts5_api_ptr", NULL) == SQLITE_OK) {
    sqlite3_step(stmt);
  }
  sqlite3_finalize(stmt);
  return api;
}

int fts5_register(conn *c) {
  fts5_api *api = find_fts5(c->db);
  if (!api || api->iVersion < 2) return SQLITE_OK;
  fts5_tokenizer methods = {
      .xCreate = fts_create, .xDelete = fts_delete, .xTokenize = fts_tokenize};
  c->refs++;
  const int rc = api->xCreateTokenizer(api, "bpe", c, &methods, conn_release);
  if (rc != SQLITE_OK) conn_release(c); /* unlike SQLite's own, it leaves that to the caller */
  return rc;
}
