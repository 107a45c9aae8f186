/* registry.c - the tokenizers one connection has loaded, found by the name SQL gives.
**
** A name means a built-in encoding or a model that uses one (bpe_builtin_resolve knows both).
** A tokenizer is loaded when it is first asked for and stays until the connection closes, so a
** query over many rows pays once. Whoever uses one holds a reference, so it outlives even the
** connection's list if a statement still runs.
**
** Unknown names are refused with the nearest ones offered: those that contain the name or are
** contained in it, then those a few edits away.
**
**     bpe_count: no such tokenizer: cl100k (did you mean cl100k_base?)
*/
#include "ext.h"

#include <string.h>

enum { OFFERS = 3, LONGEST_OFFER = 64, MIN_PART = 3 };

void tokenizer_release(tokenizer *t)
{
  if (!t || --t->refs > 0) return;
  bpe_coder_free(t->coder);
  bpe_model_free(t->model);
  sqlite3_free(t);
}

tokenizer *tokenizer_loaded(const conn *c, int builtin)
{
  tokenizer *t = c->tokenizers;
  while (t && t->builtin != builtin) t = t->next;
  return t;
}

static int load_builtin(conn *c, int builtin, failure *f, tokenizer **out)
{
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

/* ---- Nearest names ------------------------------------------------------------------------- */

static char lower(char c)
{
  return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Whether `part` occurs in `whole`, in lower case. */
static bool occurs(const char *part, size_t part_len, const char *whole, size_t whole_len)
{
  for (size_t at = 0; at + part_len <= whole_len; at++) {
    size_t i = 0;
    while (i < part_len && lower(part[i]) == lower(whole[at + i])) i++;
    if (i == part_len) return true;
  }
  return false;
}

/* Levenshtein's distance in lower case, one row at a time; both at most LONGEST_OFFER long. */
static size_t distance(const char *a, size_t a_len, const char *b, size_t b_len)
{
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
  const char *names[OFFERS]; /* nearest first */
  size_t costs[OFFERS];
  int n;
} offers;

/* Puts the candidate in its place if it is near enough; of equals the first stays first. A part
** is as near as one edit, the same letters in another case are nearer. */
static void consider(offers *o, const char *name, size_t len, const char *candidate)
{
  const size_t c_len = strlen(candidate);
  if (c_len > LONGEST_OFFER) return;
  size_t cost = distance(name, len, candidate, c_len);
  const bool part = (len >= MIN_PART && occurs(name, len, candidate, c_len)) ||
                    (c_len >= MIN_PART && occurs(candidate, c_len, name, len));
  if (part && cost > 0) cost = 1;
  if (!part && cost > (len < 9 ? len / 3 : 3)) return;
  int at = o->n;
  while (at > 0 && o->costs[at - 1] > cost) at--;
  if (at == OFFERS) return;
  if (o->n < OFFERS) o->n++;
  for (int i = o->n - 1; i > at; i--) {
    o->names[i] = o->names[i - 1];
    o->costs[i] = o->costs[i - 1];
  }
  o->names[at] = candidate;
  o->costs[at] = cost;
}

static int no_such_tokenizer(bytes name, const char *problem, failure *f)
{
  offers o = {.n = 0};
  const char *text = (const char *)name.data;
  if (name.len <= LONGEST_OFFER) {
    for (int i = 0; bpe_builtin_name(i); i++) consider(&o, text, name.len, bpe_builtin_name(i));
    for (int i = 0; bpe_builtin_alias(i); i++) consider(&o, text, name.len, bpe_builtin_alias(i));
  }
  while (o.n > 1 && o.costs[o.n - 1] > o.costs[0] + 1) o.n--; /* far beside the nearest */
  char object[SHOWN_SIZE];
  shown(name, object);
  switch (o.n) {
  case 0: return fail(f, "%s: %s", problem, object);
  case 1: return fail(f, "%s: %s (did you mean %s?)", problem, object, o.names[0]);
  case 2:
    return fail(f, "%s: %s (did you mean %s or %s?)", problem, object, o.names[0], o.names[1]);
  default:
    return fail(f, "%s: %s (did you mean %s, %s or %s?)", problem, object, o.names[0],
                o.names[1], o.names[2]);
  }
}

/* ---- Finding ------------------------------------------------------------------------------- */

static int resolve(sqlite3_value *value, failure *f, int *builtin)
{
  bytes name = {(const uint8_t *)DEFAULT_TOKENIZER, strlen(DEFAULT_TOKENIZER)};
  if (value) {
    const int type = sqlite3_value_type(value);
    if (!value_bytes(value, &name)) return fail_code(f, SQLITE_NOMEM);
    if (type != SQLITE_TEXT) return no_such_tokenizer(name, "tokenizer must be TEXT", f);
    if (name.len == 0) return fail(f, "no such tokenizer: the name is empty");
  }
  *builtin = bpe_builtin_resolve((const char *)name.data, name.len);
  /* Names of stored tokenizers are looked for here, after the built-in ones. */
  if (*builtin < 0) return no_such_tokenizer(name, "no such tokenizer", f);
  return SQLITE_OK;
}

int tokenizer_get(conn *c, sqlite3_value *name, failure *f, tokenizer **out)
{
  int builtin = -1;
  *out = NULL;
  if (resolve(name, f, &builtin) != SQLITE_OK) return f->rc;
  tokenizer *t = tokenizer_loaded(c, builtin);
  if (!t && load_builtin(c, builtin, f, &t) != SQLITE_OK) return f->rc;
  t->refs++;
  *out = t;
  return SQLITE_OK;
}

bool tokenizer_spells_once(tokenizer *t)
{
  if (t->spelling == UNKNOWN) {
    bpe_info info;
    bpe_model_info(t->model, &info);
    t->spelling = DISTINCT;
    for (size_t i = 0; i < info.entry_count && t->spelling == DISTINCT; i++) {
      const bpe_token token = bpe_model_token(t->model, i);
      if (bpe_model_find_bytes(t->model, token.bytes, token.len) != i) t->spelling = DUPLICATES;
    }
  }
  return t->spelling == DISTINCT;
}
