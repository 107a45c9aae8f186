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
  if (rc == SQLITE_OK) rc = sqlite3_step(stmt);
  if (rc == SQLITE_ROW) {
    *out = sqlite3_value_dup(sqlite3_column_value(stmt, 0));
    rc = *out ? SQLITE_OK : SQLITE_NOMEM;
  }
  sqlite3_finalize(stmt);
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

/* Upper case, in order: every `step`-th code point from `first` to `last` is lower case `add`
** further on. Those of F2 in the Basic Multilingual Plane whose lower case has as many bytes. */
typedef struct folding {
  uint16_t first, last, step;
  int32_t add;
} folding;

static const folding foldings[] = {
    {0x41, 0x5a, 1, 32},       {0xc0, 0xd6, 1, 32},         {0xd8, 0xde, 1, 32},
    {0x100, 0x12e, 2, 1},      {0x132, 0x136, 2, 1},        {0x139, 0x147, 2, 1},
    {0x14a, 0x176, 2, 1},      {0x178, 0x178, 1, -121},     {0x179, 0x17d, 2, 1},
    {0x181, 0x181, 1, 210},    {0x182, 0x184, 2, 1},        {0x186, 0x186, 1, 206},
    {0x187, 0x187, 1, 1},      {0x189, 0x18a, 1, 205},      {0x18b, 0x18b, 1, 1},
    {0x18e, 0x18e, 1, 79},     {0x18f, 0x18f, 1, 202},      {0x190, 0x190, 1, 203},
    {0x191, 0x191, 1, 1},      {0x193, 0x193, 1, 205},      {0x194, 0x194, 1, 207},
    {0x196, 0x196, 1, 211},    {0x197, 0x197, 1, 209},      {0x198, 0x198, 1, 1},
    {0x19c, 0x19c, 1, 211},    {0x19d, 0x19d, 1, 213},      {0x19f, 0x19f, 1, 214},
    {0x1a0, 0x1a4, 2, 1},      {0x1a6, 0x1a6, 1, 218},      {0x1a7, 0x1a7, 1, 1},
    {0x1a9, 0x1a9, 1, 218},    {0x1ac, 0x1ac, 1, 1},        {0x1ae, 0x1ae, 1, 218},
    {0x1af, 0x1af, 1, 1},      {0x1b1, 0x1b2, 1, 217},      {0x1b3, 0x1b5, 2, 1},
    {0x1b7, 0x1b7, 1, 219},    {0x1b8, 0x1b8, 1, 1},        {0x1bc, 0x1bc, 1, 1},
    {0x1c4, 0x1c4, 1, 2},      {0x1c5, 0x1c5, 1, 1},        {0x1c7, 0x1c7, 1, 2},
    {0x1c8, 0x1c8, 1, 1},      {0x1ca, 0x1ca, 1, 2},        {0x1cb, 0x1db, 2, 1},
    {0x1de, 0x1ee, 2, 1},      {0x1f1, 0x1f1, 1, 2},        {0x1f2, 0x1f4, 2, 1},
    {0x1f6, 0x1f6, 1, -97},    {0x1f7, 0x1f7, 1, -56},      {0x1f8, 0x21e, 2, 1},
    {0x220, 0x220, 1, -130},   {0x222, 0x232, 2, 1},        {0x23b, 0x23b, 1, 1},
    {0x23d, 0x23d, 1, -163},   {0x241, 0x241, 1, 1},        {0x243, 0x243, 1, -195},
    {0x244, 0x244, 1, 69},     {0x245, 0x245, 1, 71},       {0x246, 0x24e, 2, 1},
    {0x370, 0x372, 2, 1},      {0x376, 0x376, 1, 1},        {0x37f, 0x37f, 1, 116},
    {0x386, 0x386, 1, 38},     {0x388, 0x38a, 1, 37},       {0x38c, 0x38c, 1, 64},
    {0x38e, 0x38f, 1, 63},     {0x391, 0x3a1, 1, 32},       {0x3a3, 0x3ab, 1, 32},
    {0x3cf, 0x3cf, 1, 8},      {0x3d8, 0x3ee, 2, 1},        {0x3f4, 0x3f4, 1, -60},
    {0x3f7, 0x3f7, 1, 1},      {0x3f9, 0x3f9, 1, -7},       {0x3fa, 0x3fa, 1, 1},
    {0x3fd, 0x3ff, 1, -130},   {0x400, 0x40f, 1, 80},       {0x410, 0x42f, 1, 32},
    {0x460, 0x480, 2, 1},      {0x48a, 0x4be, 2, 1},        {0x4c0, 0x4c0, 1, 15},
    {0x4c1, 0x4cd, 2, 1},      {0x4d0, 0x52e, 2, 1},        {0x531, 0x556, 1, 48},
    {0x1e00, 0x1e94, 2, 1},    {0x1ea0, 0x1efe, 2, 1},      {0x1f08, 0x1f0f, 1, -8},
    {0x1f18, 0x1f1d, 1, -8},   {0x1f28, 0x1f2f, 1, -8},     {0x1f38, 0x1f3f, 1, -8},
    {0x1f48, 0x1f4d, 1, -8},   {0x1f59, 0x1f5f, 2, -8},     {0x1f68, 0x1f6f, 1, -8},
    {0x1f88, 0x1f8f, 1, -8},   {0x1f98, 0x1f9f, 1, -8},     {0x1fa8, 0x1faf, 1, -8},
    {0x1fb8, 0x1fb9, 1, -8},   {0x1fba, 0x1fbb, 1, -74},    {0x1fbc, 0x1fbc, 1, -9},
    {0x1fc8, 0x1fcb, 1, -86},  {0x1fcc, 0x1fcc, 1, -9},     {0x1fd8, 0x1fd9, 1, -8},
    {0x1fda, 0x1fdb, 1, -100}, {0x1fe8, 0x1fe9, 1, -8},     {0x1fea, 0x1feb, 1, -112},
    {0x1fec, 0x1fec, 1, -7},   {0x1ff8, 0x1ff9, 1, -128},   {0x1ffa, 0x1ffb, 1, -126},
    {0x1ffc, 0x1ffc, 1, -9},   {0x2c60, 0x2c60, 1, 1},      {0x2c63, 0x2c63, 1, -3814},
    {0x2c67, 0x2c6b, 2, 1},    {0x2c72, 0x2c72, 1, 1},      {0x2c75, 0x2c75, 1, 1},
    {0xa640, 0xa66c, 2, 1},    {0xa680, 0xa69a, 2, 1},      {0xa722, 0xa72e, 2, 1},
    {0xa732, 0xa76e, 2, 1},    {0xa779, 0xa77b, 2, 1},      {0xa77d, 0xa77d, 1, -35332},
    {0xa77e, 0xa786, 2, 1},    {0xa78b, 0xa78b, 1, 1},      {0xa790, 0xa792, 2, 1},
    {0xa796, 0xa7a8, 2, 1},    {0xa7b3, 0xa7b3, 1, 928},    {0xa7b4, 0xa7c2, 2, 1},
    {0xa7c4, 0xa7c4, 1, -48},  {0xa7c6, 0xa7c6, 1, -35384}, {0xa7c7, 0xa7c9, 2, 1},
    {0xa7d0, 0xa7d0, 1, 1},    {0xa7d6, 0xa7d8, 2, 1},      {0xa7f5, 0xa7f5, 1, 1},
    {0xff21, 0xff3a, 1, 32},
};

/* A code point in lower case, where that has as many bytes. */
static uint32_t fold_char(uint32_t c) {
  size_t low = 0, high = sizeof foldings / sizeof *foldings;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    const folding *f = &foldings[middle];
    if (c > f->last) low = middle + 1;
    else if (c < f->first) high = middle;
    else return (c - f->first) % f->step == 0 ? (uint32_t)((int32_t)c + f->add) : c;
  }
  return c;
}

/* Lower case in place; malformed bytes stay. */
static int fold(uint8_t *s, size_t len, failure *f) {
  work w = {.f = f};
  for (size_t i = 0, n; i < len && !work_stopped(&w, 4); i += n) {
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
  return f->rc;
}

/* Whether the text begins with a digit or a letter of F2's scripts, about. */
static bool begins_word(const uint8_t *s, size_t len) {
  if (len == 0) return false;
  const uint8_t c = s[0];
  if ((c >= '0' && c <= '9') || (uint8_t)((c | 0x20) - 'a') < 26) return true;
  if (len > 1 && c >= 0xc3 && c <= 0xd6) return true; /* U+00C0 to U+05BF */
  if (len < 3) return false;
  switch (c) {
  case 0xe1: return s[1] >= 0xb8 && s[1] <= 0xbf; /* U+1E00 to U+1FFF */
  case 0xe2: return s[1] == 0xb1;                 /* U+2C40 to U+2C7F */
  case 0xea: return s[1] == 0x99 || s[1] == 0x9a || (s[1] >= 0x9c && s[1] <= 0x9f); /* U+A640 on */
  case 0xef: return (s[1] == 0xbc && s[2] >= 0xa1) || (s[1] == 0xbd && s[2] <= 0x9a);
  default: return false;
  }
}

/* What is tokenized: the text, or a copy, which the caller frees. *shift: bytes put before. */
static int make_text(const fts_tokenizer *t, bytes in, failure *f, uint8_t **copy, bytes *out,
                     size_t *shift) {
  *copy = NULL;
  *out = in;
  *shift = t->trim && begins_word(in.data, in.len) ? 1 : 0;
  if (!t->fold && *shift == 0) return SQLITE_OK;
  uint8_t *s = sqlite3_malloc64((sqlite3_uint64)in.len + 1);
  if (!s) return SQLITE_NOMEM;
  s[0] = ' ';
  memcpy(s + *shift, in.data, in.len);
  *copy = s;
  if (t->fold && fold(s + *shift, in.len, f) != SQLITE_OK) return f->rc;
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

static int take_piece(sink *k, const bpe_model *m, const bpe_piece *p, failure *f) {
  enum { TERM_WORK = 256 };
  work w = {.f = f};
  size_t stop = p->start;
  int rc = SQLITE_OK;
  for (size_t i = 0; i < p->n_ids && rc == SQLITE_OK; i++) {
    const bpe_token t = bpe_model_token(m, bpe_model_find_id(m, p->ids[i]));
    const size_t start = stop;
    stop = p->stops ? p->stops[i] : p->special ? p->stop : start + t.len;
    rc = work_stopped(&w, TERM_WORK + t.len) ? f->rc : take(k, t.bytes, t.len, start, stop);
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
    rc = take_piece(k, tok->model, &p, f);
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
  int rc = tokenizer_get(t->c, t->name, 0, &f, &tok); /* F6 */
  if (rc == SQLITE_OK) {
    rc = make_text(t, given, &f, &copy, &text, &k.shift);
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
