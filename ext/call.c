/* call.c - options bound to a tokenizer, and kept for as long as they cannot change.
**
** A call is everything that a scan or a scalar needs besides its text: tokenizer, options,
** finders for special tokens, pattern. It is immutable and counted. Building one can cost more
** than a short text (a finder over a thousand special tokens), so it is kept:
**
** - A scalar keeps it as auxdata. SQLite keeps auxdata of argument i for as long as argument i is
**   constant, so a call without options hangs at the tokenizer, and one with options at the
**   options, where the tokenizer is compared at each use because it may be a column.
** - A table function keeps its latest one and compares both arguments (tables.c).
** - The connection keeps the one of the default tokenizer without options, the most common, and
**   the latest few others, for arguments that come from a table but seldom change.
**
** The name of a built-in encoding means one content for good. That of a stored tokenizer means what
** its row says to the statement that asks: what is kept beyond a statement looks again each time,
** and what is kept for a statement stays what it was when that began.
*/
#include "ext.h"

#include <string.h>

void call_release(void *arg) {
  call *k = arg;
  if (!k || --k->refs > 0) return;
  bpe_finder_free(k->allowed);
  bpe_finder_free(k->forbidden);
  bpe_pattern_free(k->pattern);
  tokenizer_release(k->tok);
  options_clear(&k->opt);
  sqlite3_free(k);
}

static int check_digest(const call *k, failure *f) {
  if (!k->opt.has_digest) return SQLITE_OK;
  const uint8_t *digest = tokenizer_digest(k->tok, f);
  if (!digest) return f->rc;
  if (memcmp(digest, k->opt.digest, sizeof k->opt.digest) == 0) return SQLITE_OK;
  return fail(f, "option digest is not that of tokenizer: %s", k->tok->name);
}

static int bind_finders(call *k, failure *f) {
  const bpe_model *m = k->tok->model;
  const options *o = &k->opt;
  bpe_error e = {0};
  bpe_status st = BPE_OK;
  if (o->allow_all) {
    st = bpe_finder_new(m, NULL, 0, &e, &k->allowed);
  } else if (o->allow.n > 0) {
    st = bpe_finder_new(m, o->allow.names, o->allow.n, &e, &k->allowed);
  }
  if (st != BPE_OK) return fail_status(f, st, &e);
  if (o->forbid_all) {
    st = bpe_finder_new_forbidden(m, NULL, 0, NULL, 0, &e, &k->forbidden);
  } else if (o->forbid_rest && !o->allow_all) { /* of "all" nothing is the rest */
    st = bpe_finder_new_forbidden(m, NULL, 0, o->allow.names, o->allow.n, &e, &k->forbidden);
  } else if (o->forbid.n > 0) {
    st = bpe_finder_new_forbidden(m, o->forbid.names, o->forbid.n, NULL, 0, &e, &k->forbidden);
  }
  return st == BPE_OK ? SQLITE_OK : fail_status(f, st, &e);
}

static int bind(conn *c, call *k, int who, failure *f) {
  const options *o = &k->opt;
  bpe_error e = {0};
  if (check_digest(k, f) != SQLITE_OK || bind_finders(k, f) != SQLITE_OK) return f->rc;
  if (o->has_pattern) {
    const bpe_status st =
        bpe_pattern_new(&c->alloc, o->pattern.text, o->pattern.len, o->is_regex, &e, &k->pattern);
    if (st != BPE_OK) return fail_status(f, st, &e);
  }
  k->walk = (bpe_walk_options){
      .allowed = k->allowed,
      .forbidden = k->forbidden,
      .pattern = k->pattern,
      .document = o->document,
      .split_only = who == FOR_PIECES,
      .stop = interrupted,
      .stop_ctx = c,
  };
  return SQLITE_OK;
}

/* An absent or NULL value is no bytes. False: out of memory. */
static bool key_bytes(sqlite3_value *v, bytes *out) {
  *out = (bytes){.data = (const uint8_t *)"", .len = 0};
  return !v || value_is_null(v) || value_bytes(v, out);
}

static call *call_alloc(bytes tokenizer_key, bytes options_key) {
  const sqlite3_uint64 size = sizeof(call) + (sqlite3_uint64)tokenizer_key.len + options_key.len;
  call *k = sqlite3_malloc64(size);
  if (!k) return NULL;
  uint8_t *keys = (uint8_t *)(k + 1);
  *k = (call){
      .refs = 1,
      .tokenizer_key = {keys, tokenizer_key.len},
      .options_key = {keys + tokenizer_key.len, options_key.len},
  };
  memcpy(keys, tokenizer_key.data, tokenizer_key.len);
  memcpy(keys + tokenizer_key.len, options_key.data, options_key.len);
  return k;
}

int call_new(conn *c, sqlite3_value *name, sqlite3_value *opts, int who, failure *f, call **out) {
  *out = NULL;
  bytes name_key, options_key;
  if (!key_bytes(name, &name_key) || !key_bytes(opts, &options_key)) {
    return fail_code(f, SQLITE_NOMEM);
  }
  call *k = call_alloc(name_key, options_key);
  if (!k) return fail_code(f, SQLITE_NOMEM);
  k->who = who;
  k->has_tokenizer = name != NULL;
  k->has_options = opts && !value_is_null(opts);
  int rc = tokenizer_get(c, name, who, f, &k->tok);
  if (rc == SQLITE_OK) rc = options_parse(opts, who, f, &k->opt);
  if (rc == SQLITE_OK) rc = bind(c, k, who, f);
  if (rc == SQLITE_OK) *out = k;
  else call_release(k);
  return rc;
}

static bool is_key(sqlite3_value *v, bytes key) {
  bytes b;
  return sqlite3_value_type(v) == SQLITE_TEXT && value_bytes(v, &b) && b.len == key.len &&
         memcmp(b.data, key.data, b.len) == 0;
}

bool call_is_for(const call *k, sqlite3_value *name, sqlite3_value *opts, int who) {
  const bool has_options = opts && !value_is_null(opts);
  return k->who == who && k->has_tokenizer == (name != NULL) && k->has_options == has_options &&
         (!name || is_key(name, k->tokenizer_key)) &&
         (!has_options || is_key(opts, k->options_key));
}

int call_again(conn *c, call **kept, sqlite3_value *name, sqlite3_value *opts, int who,
               failure *f) {
  call *k = *kept;
  tokenizer *now = NULL;
  if (k && call_is_for(k, name, opts, who)) {
    if (k->tok->builtin >= 0) return SQLITE_OK;
    if (k->tok->kept && tokenizer_named(c, k->tokenizer_key, who, f, &now) != SQLITE_OK)
      return f->rc;
    const bool same = now == k->tok;
    tokenizer_release(now);
    if (same) return SQLITE_OK;
  }
  if (call_new(c, name, opts, who, f, &k) != SQLITE_OK) return f->rc;
  call_release(*kept);
  *kept = k;
  return SQLITE_OK;
}

/* The default tokenizer without options, which is the same call whoever asks. */
static int call_plain(conn *c, failure *f, call **out) {
  if (!c->plain && call_new(c, NULL, NULL, FOR_COUNT, f, &c->plain) != SQLITE_OK) return f->rc;
  c->plain->refs++;
  *out = c->plain;
  return SQLITE_OK;
}

/* Where the latest call with these arguments is kept, or is to be. */
static call **recent_place(conn *c, sqlite3_value *name, sqlite3_value *opts, int who) {
  for (int i = 0; i < RECENT_CALLS && c->recent[i]; i++) {
    if (call_is_for(c->recent[i], name, opts, who)) return &c->recent[i];
  }
  const int i = c->next_recent;
  c->next_recent = (i + 1) % RECENT_CALLS;
  return &c->recent[i];
}

int call_get(sqlite3_context *ctx, int argc, sqlite3_value **argv, int tokenizer_arg, int who,
             failure *f, call **out) {
  conn *c = sqlite3_user_data(ctx);
  *out = NULL;
  if (argc <= tokenizer_arg) return call_plain(c, f, out);
  sqlite3_value *name = argv[tokenizer_arg];
  sqlite3_value *opts = argc > tokenizer_arg + 1 ? argv[tokenizer_arg + 1] : NULL;
  if (opts && value_is_null(opts)) opts = NULL;
  if (value_is_null(name)) return SQLITE_OK;
  const int slot = opts ? tokenizer_arg + 1 : tokenizer_arg;
  call *k = sqlite3_get_auxdata(ctx, slot);
  if (k && k->has_options == (opts != NULL) && is_key(name, k->tokenizer_key)) {
    k->refs++;
    *out = k;
    return SQLITE_OK;
  }
  call **kept = recent_place(c, name, opts, who);
  if (call_again(c, kept, name, opts, who, f) != SQLITE_OK) return f->rc;
  *out = k = *kept;
  k->refs += 2; /* the caller's, and the slot's, whose destructor may run in set_auxdata */
  sqlite3_set_auxdata(ctx, slot, k, call_release);
  return SQLITE_OK;
}

bool call_begin(sqlite3_context *ctx, int argc, sqlite3_value **argv, int tokenizer_arg, int who,
                failure *f, call **out, bytes *text) {
  *out = NULL;
  *text = (bytes){.data = (const uint8_t *)""};
  for (int i = 0; i < tokenizer_arg; i++) {
    if (value_is_null(argv[i])) return false;
  }
  int rc = call_get(ctx, argc, argv, tokenizer_arg, who, f, out);
  if (rc == SQLITE_OK && *out && !value_bytes(argv[0], text)) rc = fail_code(f, SQLITE_NOMEM);
  if (rc == SQLITE_OK) return *out != NULL;
  call_release(*out);
  failure_to_context(f, ctx);
  return false;
}
