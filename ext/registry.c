/* registry.c - the tokenizers one connection has loaded, found by the name SQL gives.
**
** A name means a built-in encoding or a model that uses one (bpe_builtin_resolve knows both), else
** a stored tokenizer. Built-in ones are loaded when first asked for and stay until the connection
** closes. Of stored ones the last MAX_STORED stay, each for as long as its row says so:
**
** (R1) The row is read each time, in the transaction of the statement that asks (store.c). A
**      loaded tokenizer answers only if its row, but for the stats, and the state of the schema are
**      those it was loaded from. Triggers make the digest NULL when rows of its tokens and merges change,
**      so this is enough, unless
** (R2) this connection has its triggers switched off: then nothing may have changed at all; or
**      who asks shows what the digest says nothing of, such as counts: then nothing may have
**      changed in its file since it was loaded outside a transaction.
** (R3) Where a trigger is missing, or the row's version means nothing beyond this use, nothing is
**      kept.
** (R4) Loading reads while the row is still being read, so it sees the same state.
**
** Whoever uses one holds a reference, so it outlives the list if a statement still runs.
**
** Unknown names are refused with the nearest ones offered: those that contain the name or are
** contained in it, then those a few edits away.
**
**     bpe_count: no such tokenizer: cl100k (did you mean cl100k_base?)
*/
#include "ext.h"

#include <string.h>

enum { MAX_STORED = 16 };
enum { OFFERS = 3, LONGEST_OFFER = 64, MIN_PART = 3, MAX_CANDIDATES = 1000 };

void tokenizer_release(tokenizer *t) {
  if (!t || --t->refs > 0) return;
  bpe_coder_free(t->coder);
  bpe_model_free(t->model);
  sqlite3_free(t);
}

tokenizer *tokenizer_loaded(const conn *c, int builtin) {
  tokenizer *t = c->tokenizers;
  while (t && t->builtin != builtin) t = t->next;
  return t;
}

static int load_builtin(conn *c, int builtin, failure *f, tokenizer **out) {
  bpe_error e = {0};
  tokenizer *t = sqlite3_malloc64(sizeof *t);
  if (!t) return fail_code(f, SQLITE_NOMEM);
  *t = (tokenizer){.refs = 1, .builtin = builtin, .name = bpe_builtin_name(builtin)};
  bpe_status st = bpe_builtin_load(&c->alloc, builtin, &e, &t->model);
  if (st == BPE_OK) st = bpe_coder_new(t->model, 0, &e, &t->coder);
  if (st != BPE_OK) {
    tokenizer_release(t);
    return fail_status(f, st, &e);
  }
  t->next = c->tokenizers; /* the list holds the first reference */
  c->tokenizers = t;
  *out = t;
  return SQLITE_OK;
}

/* ---- Stored tokenizers --------------------------------------------------------------------- */

static bool triggers_off(conn *c) {
  int on = 1;
  const int rc = sqlite3_db_config(c->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, -1, &on);
  return rc == SQLITE_OK && !on;
}

static unsigned data_version(conn *c, const char *schema) {
  unsigned version = 0;
  (void)sqlite3_file_control(c->db, schema, SQLITE_FCNTL_DATA_VERSION, &version);
  return version;
}

static bool same_bytes(bytes a, bytes b) {
  if (!a.data || !b.data) return a.data == b.data;
  return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* R1 */
static bool is_of_row(const tokenizer *t, bytes name, const stored_row *row) {
  return t->builtin < 0 && t->version == row->version && t->id == row->id && row->sealed &&
         memcmp(t->digest, row->digest, sizeof t->digest) == 0 &&
         same_bytes((bytes){(const uint8_t *)t->own_name, t->name_len}, name) &&
         same_bytes(t->pattern, row->pattern) && same_bytes(t->options, row->options);
}

/* R2 */
static bool is_current(conn *c, const tokenizer *t, const stored_row *row, int who) {
  const bool unchanged = t->changes == sqlite3_total_changes(c->db);
  if (!unchanged && triggers_off(c)) return false;
  return !(who & SHOWS_RANKS) ||
         (unchanged && t->committed && t->data_version == data_version(c, row->schema));
}

static tokenizer *find_stored(conn *c, bytes name, const stored_row *row, int who) {
  tokenizer **at = &c->tokenizers;
  for (tokenizer *t; (t = *at) != NULL; at = &t->next) {
    if (!is_of_row(t, name, row)) continue;
    if (!is_current(c, t, row, who)) return NULL;
    *at = t->next; /* to the front */
    t->next = c->tokenizers;
    c->tokenizers = t;
    return t;
  }
  return NULL;
}

/* Whether t was loaded from an earlier state of the row or of its schema, which will not come back,
** or from the same as the newest. */
static bool is_outdated(const conn *c, const tokenizer *t, const stored_row *row) {
  const size_t n = strlen(row->schema);
  return t != c->tokenizers && t->builtin < 0 && (t->version != row->version || t->id == row->id) &&
         strncmp(t->name, row->schema, n) == 0 && t->name[n] == '.';
}

static void drop_others(conn *c, const stored_row *row) {
  int n = 0;
  tokenizer **at = &c->tokenizers;
  while (*at) {
    tokenizer *t = *at;
    if (t->builtin < 0 && (++n > MAX_STORED || is_outdated(c, t, row))) {
      *at = t->next;
      tokenizer_release(t);
    } else {
      at = &t->next;
    }
  }
}

static bytes append(uint8_t **at, bytes from) {
  if (from.len != 0) memcpy(*at, from.data, from.len);
  const bytes copy = {from.data ? *at : NULL, from.len};
  *at += from.len;
  return copy;
}

/* R3, R4. The caller gets the only reference. */
static int load_stored(store *s, bytes name, const stored_row *row, failure *f, tokenizer **out) {
  conn *c = store_conn(s);
  schema_object missing;
  bpe_error e = {0};
  const size_t schema_len = strlen(row->schema);
  const sqlite3_uint64 size = sizeof(tokenizer) + schema_len + (sqlite3_uint64)name.len + 2 +
                              row->pattern.len + row->options.len;
  tokenizer *t = sqlite3_malloc64(size);
  if (!t) return fail_code(f, SQLITE_NOMEM);
  char *full = (char *)(t + 1);
  memcpy(full, row->schema, schema_len);
  full[schema_len] = '.';
  memcpy(full + schema_len + 1, name.data, name.len);
  full[schema_len + 1 + name.len] = 0;
  uint8_t *rest = (uint8_t *)full + schema_len + name.len + 2;
  *t = (tokenizer){.refs = 1,
                   .builtin = -1,
                   .name = full,
                   .own_name = full + schema_len + 1,
                   .name_len = name.len,
                   .id = row->id,
                   .version = row->version,
                   .changes = sqlite3_total_changes(c->db),
                   .data_version = data_version(c, row->schema),
                   .committed = sqlite3_get_autocommit(c->db) != 0,
                   .has_digest = true};
  t->pattern = append(&rest, row->pattern);
  t->options = append(&rest, row->options);
  memcpy(t->digest, row->digest, sizeof t->digest);
  if (stored_load(c, name, row, f, &t->model, &missing) == SQLITE_OK) {
    t->kept = store_is_kept(s) && missing.name.len == 0;
    const bpe_status st = bpe_coder_new(t->model, 0, &e, &t->coder);
    if (st != BPE_OK) fail_status(f, st, &e);
  }
  if (f->rc != SQLITE_OK) tokenizer_release(t);
  else *out = t;
  return f->rc;
}

/* ---- Nearest names ------------------------------------------------------------------------- */

static char lower(char c) {
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether `part` occurs in `whole`, in lower case. */
static bool occurs(const char *part, size_t part_len, const char *whole, size_t whole_len) {
  for (size_t at = 0; at + part_len <= whole_len; at++) {
    size_t i = 0;
    while (i < part_len && lower(part[i]) == lower(whole[at + i])) i++;
    if (i == part_len) return true;
  }
  return false;
}

/* Levenshtein's distance in lower case, one row at a time; both at most LONGEST_OFFER long. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len) {
  size_t row[LONGEST_OFFER + 1];
  for (size_t j = 0; j <= b_len; j++) row[j] = j;
  for (size_t i = 1; i <= a_len; i++) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b_len; j++) {
      const size_t above = row[j];
      size_t best = diagonal + (lower(a[i - 1]) != lower(b[j - 1]));
      if (above + 1 < best) best = above + 1;
      if (row[j - 1] + 1 < best) best = row[j - 1] + 1;
      row[j] = best;
      diagonal = above;
    }
  }
  return row[b_len];
}

typedef struct offers {
  bytes wanted;
  const store *store;                    /* while stored names are considered */
  char names[OFFERS][LONGEST_OFFER + 1]; /* nearest first */
  size_t costs[OFFERS];
  int n, seen;
} offers;

/* What an edit counts beside the distance, which decides among equals. */
enum { EDIT = LONGEST_OFFER + 1 };

/* Puts the candidate in its place if it is near enough; of equals the first stays first. A part
** is as near as one edit, the same letters in another case are nearer. */
static void consider(offers *o, const char *candidate, size_t c_len) {
  const char *name = (const char *)o->wanted.data;
  const size_t len = o->wanted.len;
  if (len > LONGEST_OFFER || c_len > LONGEST_OFFER) return;
  const size_t edits = distance(name, len, candidate, c_len);
  const bool part = (len >= MIN_PART && occurs(name, len, candidate, c_len)) ||
                    (c_len >= MIN_PART && occurs(candidate, c_len, name, len));
  if (!part && edits > (len < 9 ? len / 3 : 3)) return;
  const size_t cost = (part && edits > 1 ? 1 : edits) * EDIT + edits;
  for (int i = 0; i < o->n; i++) { /* the same name in another schema */
    if (memcmp(o->names[i], candidate, c_len) == 0 && o->names[i][c_len] == 0) return;
  }
  int at = o->n;
  while (at > 0 && o->costs[at - 1] > cost) at--;
  if (at == OFFERS) return;
  if (o->n < OFFERS) o->n++;
  for (int i = o->n - 1; i > at; i--) {
    memcpy(o->names[i], o->names[i - 1], sizeof o->names[i]);
    o->costs[i] = o->costs[i - 1];
  }
  memcpy(o->names[at], candidate, c_len);
  o->names[at][c_len] = 0;
  o->costs[at] = cost;
}

static void consider_builtin(offers *o) {
  const char *name;
  for (int i = 0; (name = bpe_builtin_name(i)) != NULL; i++) consider(o, name, strlen(name));
  for (int i = 0; (name = bpe_builtin_alias(i)) != NULL; i++) consider(o, name, strlen(name));
}

static bool consider_stored(void *ctx, int schema, bytes name) {
  offers *o = ctx;
  char text[SHOWN_SIZE], full[2 * SHOWN_SIZE];
  shown(name, text); /* names from a database may hold anything */
  if (name.len == o->wanted.len && memcmp(name.data, o->wanted.data, name.len) == 0) {
    /* Its beginning was taken for a schema's name. */
    sqlite3_snprintf(sizeof full, full, "%s.%s", store_schema(o->store, schema), text);
    consider(o, full, strlen(full));
  } else {
    consider(o, text, strlen(text));
  }
  return ++o->seen < MAX_CANDIDATES;
}

static int no_such_tokenizer(offers *o, const char *problem, failure *f) {
  /* Not what is far beside the nearest. */
  while (o->n > 1 && o->costs[o->n - 1] / EDIT > o->costs[0] / EDIT + 1) o->n--;
  char object[SHOWN_SIZE];
  shown(o->wanted, object);
  switch (o->n) {
  case 0: return fail(f, "%s: %s", problem, object);
  case 1: return fail(f, "%s: %s (did you mean %s?)", problem, object, o->names[0]);
  case 2:
    return fail(f, "%s: %s (did you mean %s or %s?)", problem, object, o->names[0], o->names[1]);
  default:
    return fail(f, "%s: %s (did you mean %s, %s or %s?)", problem, object, o->names[0], o->names[1],
                o->names[2]);
  }
}

/* Names a table that stands where stored tokenizers would, and is none of ours. */
static int not_ours(store *s, bytes name, failure *f) {
  char object[SHOWN_SIZE];
  for (int i = 0; store_schema(s, i); i++) {
    if (!store_is_foreign(s, i)) continue;
    return fail(f, "no such tokenizer: %s (bpe_model of schema %s is not as bpe makes it)",
                shown(name, object), store_schema(s, i));
  }
  return f->rc;
}

static int not_stored(store *s, bytes name, failure *f) {
  offers o = {.wanted = name, .store = s};
  if (not_ours(s, name, f) != SQLITE_OK) return f->rc;
  consider_builtin(&o);
  for (int i = 0; store_schema(s, i); i++) {
    if (store_each(s, i, f, consider_stored, &o) != SQLITE_OK) return f->rc;
  }
  return no_such_tokenizer(&o, "no such tokenizer", f);
}

/* ---- Finding ------------------------------------------------------------------------------- */

static int get_builtin(conn *c, int builtin, failure *f, tokenizer **out) {
  tokenizer *t = tokenizer_loaded(c, builtin);
  if (!t) load_builtin(c, builtin, f, &t);
  if (!t) return f->rc;
  t->refs++;
  *out = t;
  return SQLITE_OK;
}

static int get_stored(store *s, bytes name, int who, failure *f, tokenizer **out) {
  conn *c = store_conn(s);
  stored_row row;
  if (store_seek(s, name, f, &row) != SQLITE_OK) return f->rc;
  if (!row.found) return not_stored(s, name, f);
  store_split(s, &name);
  tokenizer *t = find_stored(c, name, &row, who);
  if (!t) {
    if (load_stored(s, name, &row, f, &t) != SQLITE_OK) return f->rc;
    if (!t->kept) {
      *out = t;
      return SQLITE_OK;
    }
    t->next = c->tokenizers; /* the list holds the first reference */
    c->tokenizers = t;
    drop_others(c, &row);
  }
  t->refs++;
  *out = t;
  return SQLITE_OK;
}

/* A stored tokenizer of that name was found before: no built-in encoding has it. */
static bool was_stored(const conn *c, bytes name) {
  for (const tokenizer *t = c->tokenizers; t; t = t->next) {
    if (t->builtin < 0 && t->name_len == name.len &&
        memcmp(t->own_name, name.data, name.len) == 0) {
      return true;
    }
  }
  return false;
}

int tokenizer_named(conn *c, bytes name, int who, failure *f, tokenizer **out) {
  *out = NULL;
  if (name.len == 0) return fail(f, "no such tokenizer: the name is empty");
  const int builtin =
      was_stored(c, name) ? -1 : bpe_builtin_resolve((const char *)name.data, name.len);
  if (builtin >= 0) return get_builtin(c, builtin, f, out);
  store *s = store_begin(c, f);
  if (!s) return f->rc;
  get_stored(s, name, who, f, out);
  store_end(s);
  return f->rc;
}

int tokenizer_get(conn *c, sqlite3_value *value, int who, failure *f, tokenizer **out) {
  bytes name = {(const uint8_t *)DEFAULT_TOKENIZER, strlen(DEFAULT_TOKENIZER)};
  *out = NULL;
  if (value) {
    const int type = sqlite3_value_type(value);
    if (!value_bytes(value, &name)) return fail_code(f, SQLITE_NOMEM);
    if (type != SQLITE_TEXT) {
      offers o = {.wanted = name};
      consider_builtin(&o);
      return no_such_tokenizer(&o, "tokenizer must be TEXT", f);
    }
  }
  return tokenizer_named(c, name, who, f, out);
}

int tokenizer_resolve(conn *c, bytes name, failure *f, char **out) {
  stored_row row;
  *out = NULL;
  const int builtin = bpe_builtin_resolve((const char *)name.data, name.len);
  if (builtin >= 0) {
    *out = sqlite3_mprintf("%s", bpe_builtin_name(builtin));
    return *out ? SQLITE_OK : fail_code(f, SQLITE_NOMEM);
  }
  store *s = store_begin(c, f);
  if (!s) return f->rc;
  if (store_seek(s, name, f, &row) == SQLITE_OK && row.found) {
    const bool in_main = row.schema == store_schema(s, 0);
    store_split(s, &name);
    *out = sqlite3_mprintf("%s%s%.*s", in_main ? "" : row.schema, in_main ? "" : ".", (int)name.len,
                           name.data);
    if (!*out) fail_code(f, SQLITE_NOMEM);
  }
  store_end(s);
  return f->rc;
}

const uint8_t *tokenizer_digest(tokenizer *t, failure *f) {
  bpe_error e = {0};
  if (!t->has_digest) {
    const bpe_status st = bpe_model_digest(t->model, &e, t->digest);
    if (st != BPE_OK) {
      fail_status(f, st, &e);
      return NULL;
    }
  }
  t->has_digest = true;
  return t->digest;
}

int tokenizer_spells_once(tokenizer *t, failure *f, bool *once) {
  enum { FIND_WORK = 64 };
  work w = {.f = f};
  *once = t->spelling == DISTINCT;
  if (t->spelling != UNKNOWN) return SQLITE_OK;
  bpe_info info;
  bpe_model_info(t->model, &info);
  bool same = true;
  for (size_t i = 0; i < info.entry_count && same; i++) {
    const bpe_token token = bpe_model_token(t->model, i);
    if (work_stopped(&w, FIND_WORK + token.len)) return f->rc;
    same = bpe_model_find_bytes(t->model, token.bytes, token.len) == i;
  }
  t->spelling = same ? DISTINCT : DUPLICATES;
  *once = same;
  return SQLITE_OK;
}
