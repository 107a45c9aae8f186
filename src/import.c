/* import.c - tells formats apart by their content, and what importers share. See import.h. */
#include "import.h"

#include "bytelevel.h"

#include <stdio.h>
#include <string.h>

/* A source that names tokens by what they are made of can be small and they not: all their bytes
** are at most so many, and so many for each byte of the source. */
enum { MOST_BYTES = 1 << 24, MOST_TIMES = 64 };
enum { TOKEN_WORK = 64 }; /* units, of a token or merge besides its bytes */

/* No format has a longer line; of one that is, the rest counts as the next. */
enum { LONGEST_LINE = 1 << 22 };

/* ---- Tokens -------------------------------------------------------------------------------- */

const uint8_t *import_bytes(const importing *in, size_t token) {
  return in->slab + in->tokens[token].offset;
}

static uint64_t hash_id(uint32_t id) {
  return hash_step(hash_start(sizeof id), id, 0);
}

static void put_slot(uint64_t *slots, size_t mask, uint64_t hash, size_t token) {
  const uint64_t h = hash >> 32;
  size_t i = (size_t)h & mask;
  while (slots[i] != 0) i = (i + 1) & mask;
  slots[i] = h << 32 | (token + 1);
}

size_t import_find_id(const importing *in, uint32_t id) {
  if (in->n_tokens == 0) return 0;
  const uint64_t h = hash_id(id) >> 32;
  for (size_t i = (size_t)h & in->mask;; i = (i + 1) & in->mask) {
    const uint64_t slot = in->by_id[i];
    if (slot == 0) return in->n_tokens;
    const size_t k = (size_t)(uint32_t)slot - 1;
    if (slot >> 32 == h && in->tokens[k].id == id) return k;
  }
}

/* A token of these bytes whose flags, as far as `mask` goes, are those. */
static size_t find_bytes(const importing *in, const void *bytes, size_t len, unsigned mask,
                         unsigned flags) {
  if (in->n_tokens == 0) return 0;
  const uint64_t h = hash_bytes(bytes, len) >> 32;
  for (size_t i = (size_t)h & in->mask;; i = (i + 1) & in->mask) {
    const uint64_t slot = in->by_bytes[i];
    if (slot == 0) return in->n_tokens;
    const size_t k = (size_t)(uint32_t)slot - 1;
    if (slot >> 32 == h && in->tokens[k].len == len && (in->tokens[k].flags & mask) == flags &&
        memcmp(import_bytes(in, k), bytes, len) == 0)
      return k;
  }
}

/* Special tokens may share an id, and tokens of different roles their bytes: the first is the one
** to be found, and any number of others make no search longer. */
static void index_token(importing *in, size_t k) {
  const import_entry *t = &in->tokens[k];
  const unsigned roles = ENTRY_FALLBACK | ENTRY_UNUSED;
  const uint8_t *s = import_bytes(in, k);
  if (import_find_id(in, t->id) == in->n_tokens) put_slot(in->by_id, in->mask, hash_id(t->id), k);
  if (t->len != 0 && find_bytes(in, s, t->len, roles, t->flags & roles) == in->n_tokens)
    put_slot(in->by_bytes, in->mask, hash_bytes(s, t->len), k);
}

/* Tables of twice the tokens at least, filled anew. */
static bpe_status grow_index(importing *in) {
  const size_t n = power_of_two(4 * in->n_tokens, 1 << 12);
  uint64_t *by_bytes = pace_zero(&in->pace, &in->alloc, n, sizeof *by_bytes, in->e);
  uint64_t *by_id =
      by_bytes == NULL ? NULL : pace_zero(&in->pace, &in->alloc, n, sizeof *by_id, in->e);
  if (by_id == NULL) {
    mem_free(&in->alloc, by_bytes);
    return in->pace.stopped ? BPE_STOPPED : BPE_NOMEM;
  }
  mem_free(&in->alloc, in->by_bytes);
  mem_free(&in->alloc, in->by_id);
  in->by_bytes = by_bytes;
  in->by_id = by_id;
  in->mask = n - 1;
  for (size_t k = 0; k < in->n_tokens; k++) {
    index_token(in, k);
    const bpe_status st = pace_add(&in->pace, TOKEN_WORK + in->tokens[k].len, in->e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

size_t import_find(const importing *in, const void *bytes, size_t len) {
  return find_bytes(in, bytes, len, ENTRY_FALLBACK | ENTRY_UNUSED, 0);
}

size_t import_find_as(const importing *in, const void *bytes, size_t len, unsigned flags) {
  return find_bytes(in, bytes, len, ENTRY_FALLBACK | ENTRY_UNUSED, flags);
}

size_t import_find_special(const importing *in, const void *bytes, size_t len) {
  const size_t k = find_bytes(in, bytes, len, 0, 0);
  return k != in->n_tokens && in->tokens[k].kind == BPE_SPECIAL ? k : in->n_tokens;
}

/* Counts work; a failure of the builder, to which merges go, ends the import too. */
static bpe_status go_on(importing *in, size_t units) {
  const bpe_error *e = builder_error(in->b);
  if (e->status != BPE_OK) return set_error(in->e, e->status, e->offset, "%s", e->text);
  return pace_add(&in->pace, units, in->e);
}

uint8_t *import_scratch(importing *in, size_t n) {
  const size_t least = n == 0 ? 1 : n;
  if (!mem_grow(&in->alloc, (void **)&in->scratch, &in->scratch_cap, least, 1)) return NULL;
  return in->scratch;
}

bpe_status import_find_joined(importing *in, size_t left, size_t right, size_t *out) {
  const import_entry *l = &in->tokens[left], *r = &in->tokens[right];
  const size_t len = (size_t)l->len + r->len;
  *out = in->n_tokens;
  if (len > UINT32_MAX) return BPE_OK; /* no token is so long */
  uint8_t *joined = import_scratch(in, len);
  if (joined == NULL) return set_nomem(in->e);
  memcpy(joined, import_bytes(in, left), l->len);
  memcpy(joined + l->len, import_bytes(in, right), r->len);
  *out = import_find(in, joined, len);
  return go_on(in, TOKEN_WORK + len);
}

static bpe_status twice(importing *in, size_t had, uint32_t id, const void *bytes, size_t len,
                        size_t where, const char *what) {
  quoted q, p;
  char places[64] = "";
  const import_entry *t = &in->tokens[had];
  if (t->where != 0 && where != 0) /* 0: stands nowhere in the source */
    (void)snprintf(places, sizeof places, " (%ss %lu and %lu)", in->where_name,
                   (unsigned long)t->where, (unsigned long)where);
  return set_error(in->e, BPE_BADMODEL, where, "duplicate %s: %s = %lu and %s = %lu%s", what,
                   quote_bytes(&q, import_bytes(in, had), t->len), (unsigned long)t->id,
                   quote_bytes(&p, bytes, len), (unsigned long)id, places);
}

bool import_has_room(const importing *in, uint64_t len) {
  return len <= in->most_bytes && in->slab_len <= in->most_bytes - len;
}

static bool add_bytes(importing *in, const void *bytes, size_t len) {
  size_t need;
  if (!size_add(in->slab_len, len, &need) ||
      !mem_grow(&in->alloc, (void **)&in->slab, &in->slab_cap, need, 1))
    return false;
  memcpy(in->slab + in->slab_len, bytes, len);
  in->slab_len = need;
  return true;
}

bpe_status import_respell(importing *in, size_t token, const void *bytes, size_t len) {
  import_entry *t = &in->tokens[token];
  const size_t offset = in->slab_len;
  if (!add_bytes(in, bytes, len)) return set_nomem(in->e);
  t->offset = offset;
  t->len = (uint32_t)len;
  return go_on(in, TOKEN_WORK + len);
}

bpe_status import_token(importing *in, const void *bytes, size_t len, uint32_t id, bpe_kind kind,
                        unsigned flags, size_t where) {
  if (in->n_tokens >= UINT32_MAX / 8 || len > UINT32_MAX)
    return set_error(in->e, BPE_TOOBIG, where, "vocabulary too large");
  if (len == 0)
    return set_error(in->e, BPE_BADMODEL, where, "empty token: id %lu (%s %zu)", (unsigned long)id,
                     in->where_name, where);
  if (!import_has_room(in, len))
    return set_error(in->e, BPE_TOOBIG, where,
                     "tokens have more than %llu bytes, far more than their source (%s %zu)",
                     (unsigned long long)in->most_bytes, in->where_name, where);
  bpe_status st = go_on(in, TOKEN_WORK + 2 * len);
  if (st == BPE_OK && 4 * in->n_tokens >= in->mask) st = grow_index(in);
  if (st != BPE_OK) return st;
  size_t had = import_find_id(in, id);
  if (had != in->n_tokens && !(kind != BPE_TOKEN && in->tokens[had].kind != BPE_TOKEN))
    return twice(in, had, id, bytes, len, where, in->where_name[0] == 'l' ? "rank" : "id");
  had = import_find_as(in, bytes, len, flags & (ENTRY_FALLBACK | ENTRY_UNUSED));
  if (had != in->n_tokens && kind == BPE_TOKEN && in->tokens[had].kind == BPE_TOKEN)
    return twice(in, had, id, bytes, len, where, "token");
  const size_t offset = in->slab_len;
  if (!add_bytes(in, bytes, len) || !mem_grow(&in->alloc, (void **)&in->tokens, &in->tokens_cap,
                                              in->n_tokens + 1, sizeof *in->tokens))
    return set_nomem(in->e);
  in->tokens[in->n_tokens] = (import_entry){.offset = offset,
                                            .len = (uint32_t)len,
                                            .id = id,
                                            .where = (uint32_t)where,
                                            .kind = (uint8_t)kind,
                                            .flags = (uint8_t)flags};
  if (id > in->highest) in->highest = id;
  index_token(in, in->n_tokens++);
  return BPE_OK;
}

void import_merge(importing *in, uint32_t rank, size_t left, size_t right, size_t result) {
  in->tokens[left].merges = in->tokens[right].merges = in->tokens[result].merges = true;
  bpe_builder_merge(in->b, rank, in->tokens[left].id, in->tokens[right].id, in->tokens[result].id,
                    0);
}

bpe_status import_single_bytes(importing *in, bool gpt2_order, uint32_t first) {
  for (unsigned i = 0; i < 256; i++) {
    const uint8_t byte = gpt2_order ? bytelevel_ranked(i) : (uint8_t)i;
    const bpe_status st = import_token(in, &byte, 1, first + i, BPE_TOKEN, 0, 0);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

/* ---- Special tokens ------------------------------------------------------------------------ */

static bpe_status next_free_id(const importing *in, uint32_t *id) {
  *id = in->n_tokens == 0 ? 0 : in->highest + 1;
  return *id == BPE_NONE ? set_error(in->e, BPE_TOOBIG, in->highest, "no id is left") : BPE_OK;
}

bpe_status import_special(importing *in, const char *name, size_t len, uint32_t id, size_t where) {
  quoted q;
  if (len == 0) return set_error(in->e, BPE_BADMODEL, where, "empty special token");
  const size_t had = find_bytes(in, name, len, ENTRY_FALLBACK, 0);
  if (had != in->n_tokens) {
    import_entry *t = &in->tokens[had];
    if (t->kind == BPE_SPECIAL)
      return set_error(in->e, BPE_BADMODEL, where, "special token given twice: %s",
                       quote_bytes(&q, name, len));
    if (id != BPE_NONE && id != t->id)
      return set_error(in->e, BPE_BADMODEL, where,
                       "special token has id %lu in the vocabulary, not %lu: %s",
                       (unsigned long)t->id, (unsigned long)id, quote_bytes(&q, name, len));
    t->ordinary = t->kind == BPE_TOKEN && !(t->flags & ENTRY_UNUSED);
    t->kind = BPE_SPECIAL;
    t->flags &= (uint8_t)~ENTRY_UNUSED;
    return BPE_OK;
  }
  if (id == BPE_NONE) {
    const bpe_status st = next_free_id(in, &id);
    if (st != BPE_OK) return st;
  }
  return import_token(in, name, len, id, BPE_SPECIAL, 0, where);
}

bpe_status import_special_list(importing *in, const doc_node *list) {
  quoted q;
  if (list->kind != DOC_OBJECT && list->kind != DOC_ARRAY)
    return set_error(in->e, BPE_MISUSE, 0, "special_tokens is no array and no object");
  for (const doc_node *v = list->first; v != NULL; v = v->next) {
    const bool named = list->kind == DOC_OBJECT;
    const doc_node *x = v;
    uint32_t id = BPE_NONE;
    if (named && !doc_id(v, &id))
      return set_error(in->e, BPE_MISUSE, 0, "id of special token is no number below 2^32-1: %s",
                       quote_bytes(&q, v->key, v->key_len));
    if (!named && x->kind != DOC_STRING)
      return set_error(in->e, BPE_MISUSE, 0, "special_tokens holds what is no string");
    bpe_status st = named ? import_special(in, v->key, v->key_len, id, 0)
                          : import_special(in, x->text, x->len, BPE_NONE, 0);
    if (st == BPE_OK) st = pace_add(&in->pace, TOKEN_WORK, in->e);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

bpe_status import_specials(importing *in, const char *json, size_t len) {
  if (json == NULL) return BPE_OK;
  doc d;
  bpe_status st = doc_parse(&in->alloc, json, len, "special_tokens", in->e, &d);
  if (st == BPE_OK) st = import_special_list(in, d.root);
  doc_clear(&d);
  return st;
}

/* ---- Options and lines --------------------------------------------------------------------- */

bpe_status import_pattern(importing *in, const char *format) {
  const bpe_import_options *o = in->options;
  if (o->pattern == NULL)
    return set_error(in->e, BPE_MISUSE, 0,
                     "%s says no pattern: give a pattern's name, or {\"regex\": ...}", format);
  bpe_builder_pattern(in->b, o->pattern, o->pattern_len, o->pattern_is_regex);
  return BPE_OK;
}

bpe_status import_no_options(const importing *in, const char *format) {
  const bpe_import_options *o = in->options;
  if (o->pattern != NULL)
    return set_error(in->e, BPE_MISUSE, 0, "%s has its own pattern: give none", format);
  if (o->special_tokens != NULL)
    return set_error(in->e, BPE_MISUSE, 0, "%s has its own special tokens: give none", format);
  if (o->whole)
    return set_error(in->e, BPE_MISUSE, 0, "%s says itself whether pieces stay whole", format);
  return BPE_OK;
}

bool next_line(lines *l, const char **line, size_t *len) {
  if (l->at == l->end) return false;
  const size_t left = (size_t)(l->end - l->at), near = left < LONGEST_LINE ? left : LONGEST_LINE;
  const char *newline = memchr(l->at, '\n', near);
  const char *stop = newline != NULL ? newline : l->at + near;
  *line = l->at;
  *len = (size_t)(stop - l->at);
  if (*len > 0 && stop[-1] == '\r') --*len;
  l->at = newline != NULL ? newline + 1 : stop;
  l->n++;
  return true;
}

bool parse_id(const char *text, size_t len, uint32_t *id) {
  uint64_t n = 0;
  if (len == 0 || len > 10) return false;
  for (size_t i = 0; i < len; i++) {
    if (text[i] < '0' || text[i] > '9') return false;
    n = n * 10 + (uint64_t)(text[i] - '0');
  }
  if (n >= BPE_NONE) return false;
  *id = (uint32_t)n;
  return true;
}

/* ---- The whole ----------------------------------------------------------------------------- */

static void import_clear(importing *in) {
  bpe_builder_free(in->b);
  mem_free(&in->alloc, in->tokens);
  mem_free(&in->alloc, in->slab);
  mem_free(&in->alloc, in->by_bytes);
  mem_free(&in->alloc, in->by_id);
  mem_free(&in->alloc, in->scratch);
}

/* A special token that text becomes as well, if the options do not let it be one: as part of
** merges, as the byte that they begin with, or as a piece that is kept whole. */
static bool is_text_too(const importing *in, const import_entry *t) {
  return t->merges || (t->ordinary && (t->len == 1 || builder_is_whole(in->b)));
}

static void add_entries(importing *in) {
  for (size_t k = 0; k < in->n_tokens && !builder_failed(in->b); k++) {
    const import_entry *t = &in->tokens[k];
    unsigned flags = t->flags;
    if (t->kind != BPE_TOKEN && is_text_too(in, t)) flags |= ENTRY_MERGES;
    bpe_builder_token(in->b, t->id, (bpe_kind)t->kind, import_bytes(in, k), t->len);
    for (unsigned f = 1; f <= flags; f <<= 1)
      if (flags & f) builder_flag(in->b, t->id, f);
  }
}

/* GPT-2's vocab.json: every value is a number. */
static bool is_vocab(importing *in, const doc_node *root) {
  for (const doc_node *v = root->first; v != NULL && !pace_stopped(&in->pace, 4); v = v->next)
    if (v->kind != DOC_NUMBER) return false;
  return root->first != NULL;
}

static bpe_status import_json(importing *in, const char *text, size_t len, const char *merges,
                              size_t merges_len) {
  doc d;
  bpe_status st = doc_parse(&in->alloc, text, len, "source", in->e, &d);
  in->where_name = "byte";
  if (st == BPE_OK && is_vocab(in, d.root)) {
    st = import_gpt2(in, d.root, merges, merges_len);
  } else if (st == BPE_OK && merges != NULL) {
    st = set_error(in->e, BPE_MISUSE, 0, "merges go with a vocab.json only");
  } else if (st == BPE_OK && doc_get(d.root, "model") != NULL) {
    st = import_hf(in, d.root);
  } else if (st == BPE_OK) {
    st = import_plain(in, d.root);
  }
  doc_clear(&d);
  return st;
}

static bpe_status import_source(importing *in, const char *text, size_t len, const char *merges,
                                size_t merges_len) {
  static const char minbpe[] = "minbpe";
  if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) { /* a byte order mark */
    text += 3;
    len -= 3;
  }
  size_t i = 0;
  while (i < len && (text[i] == ' ' || text[i] == '\t' || text[i] == '\r' || text[i] == '\n') &&
         !pace_stopped(&in->pace, 1))
    i++;
  if (in->pace.stopped) return set_stopped(in->e);
  if (i == len) return set_error(in->e, BPE_BADMODEL, 0, "source is empty");
  if (text[i] == '{') return import_json(in, text, len, merges, merges_len);
  if (merges != NULL) return set_error(in->e, BPE_MISUSE, 0, "merges go with a vocab.json only");
  if (len >= strlen(minbpe) && memcmp(text, minbpe, strlen(minbpe)) == 0)
    return import_minbpe(in, text, len);
  return import_tiktoken(in, text, len);
}

bpe_status bpe_import(const bpe_alloc *a, const void *source, size_t len, const void *merges,
                      size_t merges_len, const bpe_import_options *options, bpe_error *e,
                      bpe_model **out) {
  static const bpe_import_options no_options;
  *out = NULL;
  importing in = {.alloc = *a,
                  .b = bpe_builder_new(a),
                  .e = e,
                  .options = options != NULL ? options : &no_options,
                  .where_name = "line",
                  .most_bytes = MOST_BYTES + MOST_TIMES * (uint64_t)len,
                  .pace = pace_of(a)};
  if (in.b == NULL) return set_nomem(e);
  bpe_status st;
  if (model_blob_is(source, len)) {
    st = import_no_options(&in, "a model");
    if (st == BPE_OK && merges != NULL)
      st = set_error(e, BPE_MISUSE, 0, "merges go with a vocab.json only");
    if (st == BPE_OK) st = bpe_model_parse(a, source, len, e, out);
    import_clear(&in);
    return st;
  }
  st = import_source(&in, source, len, merges, merges_len);
  if (st == BPE_OK) {
    if (in.options->whole) bpe_builder_whole(in.b);
    add_entries(&in);
    st = bpe_builder_finish(in.b, e, out);
    in.b = NULL;
  }
  import_clear(&in);
  return st;
}
