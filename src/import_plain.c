/* import_plain.c - a tokenizer described in a few lines of JSON, in one of two forms.
**
** (1) In training ids: 0-255 are the byte values, 256 + r is the result of merge r. The layout
**     says which ids they get, as in training:
**
**       {"pattern": "none", "merges": [[32, 208], [208, 176]], "special_tokens": ["<s>", "</s>"],
**        "special_ids": "first", "bos": ["<s>"], "eos": ["</s>"]}
**
**     special_ids  last (after everything), first (bytes begin after them), after_bytes
**     byte_order   raw, or gpt2: printable ones first
**
** (2) By bytes in hex, ids given:
**
**       {"pattern": "gpt2", "vocab": {"0": "61", "1": "62", "2": "6162"}, "merges": [["61", "62"]],
**        "special_tokens": {"<s>": 3}}
**
** Both: pattern (a name) or regex; whole: true keeps pieces that are tokens whole; bos and eos are
** names of special tokens. What is not said in the description, the caller may say; not both.
*/
#include "import.h"

#include <string.h>

static const char what[] = "description";

enum { NODE_WORK = 8 }; /* units, of a value of the description besides its bytes */

static bpe_status bad(importing *in, const doc_node *v, const char *why) {
  return set_error(in->e, BPE_BADMODEL, v == NULL ? 0 : v->offset, "%s: %s", what, why);
}

static bpe_status bad_merge(importing *in, size_t rank, const char *why) {
  return set_error(in->e, BPE_BADMODEL, rank, "%s: merge %zu: %s", what, rank, why);
}

/* ---- Form 1 -------------------------------------------------------------------------------- */

typedef struct layout {
  uint32_t first_byte, first_merge, first_special;
} layout;

static bpe_status read_layout(importing *in, const doc_node *root, layout *out) {
  const doc_node *where = doc_get(root, "special_ids"), *list = doc_get(root, "special_tokens");
  const uint64_t n = list == NULL ? 0 : list->len;
  const doc_node *merges = doc_get(root, "merges");
  if (list != NULL && list->kind != DOC_ARRAY)
    return bad(in, list, "special_tokens with merges of ids is an array of names");
  if (256 + n + merges->len >= BPE_NONE) return bad(in, root, "ids do not fit in 32 bits");
  const uint32_t specials = (uint32_t)n;
  if (where == NULL || doc_is(where, "last")) *out = (layout){0, 256, 256 + merges->len};
  else if (doc_is(where, "first")) *out = (layout){specials, specials + 256, 0};
  else if (doc_is(where, "after_bytes")) *out = (layout){0, 256 + specials, 256};
  else return bad(in, where, "special_ids is none of last, first, after_bytes");
  return BPE_OK;
}

/* Index of the token that a training id means, before merge `rank`; n_tokens: not made yet. Bytes
** are tokens 0-255 in order of id, merges follow. */
static size_t trained(const importing *in, const uint8_t rank_of[256], uint32_t id) {
  return id < 256 ? rank_of[id] : id < in->n_tokens ? id : in->n_tokens;
}

/* Whether the pair stands before `v` in the list. Asked once, on the way to an error. */
static bool is_repeated(importing *in, const doc_node *list, const doc_node *v,
                        const uint32_t id[2]) {
  for (const doc_node *x = list->first; x != v && !pace_stopped(&in->pace, NODE_WORK);
       x = x->next) {
    uint32_t left, right;
    if (doc_id(x->first, &left) && doc_id(x->first->next, &right) && left == id[0] &&
        right == id[1])
      return true;
  }
  return false;
}

static bpe_status read_trained_merges(importing *in, const doc_node *list, const layout *at) {
  uint8_t rank_of[256];
  size_t rank = 0;
  bpe_status st = BPE_OK;
  for (unsigned i = 0; i < 256; i++) rank_of[import_bytes(in, i)[0]] = (uint8_t)i;
  for (const doc_node *v = list->first; v != NULL && st == BPE_OK; v = v->next, rank++) {
    uint32_t id[2];
    if (v->kind != DOC_ARRAY || v->len != 2 || !doc_id(v->first, &id[0]) ||
        !doc_id(v->first->next, &id[1])) {
      st = bad_merge(in, rank, "is no pair of ids");
      break;
    }
    const size_t l = trained(in, rank_of, id[0]), r = trained(in, rank_of, id[1]);
    if (l == in->n_tokens || r == in->n_tokens) {
      st = bad_merge(in, rank, "operand is not defined yet");
      break;
    }
    const size_t n_left = in->tokens[l].len, n = n_left + in->tokens[r].len;
    if (!import_has_room(in, n)) {
      st = set_error(in->e, BPE_TOOBIG, rank, "%s: merge %zu: tokens have more than %llu bytes",
                     what, rank, (unsigned long long)in->most_bytes);
      break;
    }
    uint8_t *joined = import_scratch(in, n);
    if (joined == NULL) {
      st = set_nomem(in->e);
      break;
    }
    memcpy(joined, import_bytes(in, l), n_left);
    memcpy(joined + n_left, import_bytes(in, r), n - n_left);
    if (import_find(in, joined, n) != in->n_tokens) {
      st = bad_merge(in, rank,
                     is_repeated(in, list, v, id) ? "repeats an earlier pair"
                                                  : "makes a token that is there already");
      break;
    }
    st = import_token(in, joined, n, at->first_merge + (uint32_t)rank, BPE_TOKEN, 0, v->offset);
    if (st == BPE_OK) import_merge(in, (uint32_t)rank, l, r, in->n_tokens - 1);
  }
  return st;
}

static bpe_status read_trained(importing *in, const doc_node *root) {
  const doc_node *order = doc_get(root, "byte_order"), *list = doc_get(root, "special_tokens");
  layout at = {0};
  if (order != NULL && !doc_is(order, "raw") && !doc_is(order, "gpt2"))
    return bad(in, order, "byte_order is neither raw nor gpt2");
  bpe_status st = read_layout(in, root, &at);
  if (st == BPE_OK) st = import_single_bytes(in, doc_is(order, "gpt2"), at.first_byte);
  if (st == BPE_OK) st = read_trained_merges(in, doc_get(root, "merges"), &at);
  for (const doc_node *v = list == NULL ? NULL : list->first; v != NULL && st == BPE_OK;
       v = v->next) {
    if (v->kind != DOC_STRING) return bad(in, v, "special_tokens holds what is no string");
    if (import_find(in, v->text, v->len) != in->n_tokens)
      return bad(in, v, "special token is a token already");
    st = import_special(in, v->text, v->len, at.first_special++, v->offset);
  }
  return st;
}

/* ---- Form 2 -------------------------------------------------------------------------------- */

static int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Bytes of a hex string, in place of its text. */
static bool from_hex(const doc_node *v, uint8_t *out, size_t *n) {
  *n = v->len / 2;
  if (v->kind != DOC_STRING || v->len % 2 != 0) return false;
  for (size_t i = 0; i < *n; i++) {
    const int high = hex_value(v->text[2 * i]), low = hex_value(v->text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = (uint8_t)(high << 4 | low);
  }
  return true;
}

static bpe_status read_vocab(importing *in, const doc_node *list, uint8_t *scratch) {
  for (const doc_node *v = list->first; v != NULL; v = v->next) {
    uint32_t id;
    size_t n;
    if (!parse_id(v->key, v->key_len, &id)) return bad(in, v, "key of vocab is no id");
    if (!from_hex(v, scratch, &n)) return bad(in, v, "token in vocab is no hex string");
    const bpe_status st = import_token(in, scratch, n, id, BPE_TOKEN, 0, v->offset);
    if (st != BPE_OK) return st;
  }
  return BPE_OK;
}

static bpe_status read_hex_merges(importing *in, const doc_node *list, uint8_t *scratch) {
  size_t rank = 0;
  for (const doc_node *v = list->first; v != NULL; v = v->next, rank++) {
    size_t part[2];
    if (v->kind != DOC_ARRAY || v->len != 2) return bad_merge(in, rank, "is no pair");
    const doc_node *x = v->first;
    for (int i = 0; i < 2; i++, x = x->next) {
      size_t n;
      if (!from_hex(x, scratch, &n)) return bad_merge(in, rank, "operand is no hex string");
      part[i] = import_find(in, scratch, n);
      if (part[i] == in->n_tokens) return bad_merge(in, rank, "operand is no token");
    }
    size_t result;
    const bpe_status st = import_find_joined(in, part[0], part[1], &result);
    if (st != BPE_OK) return st;
    if (result == in->n_tokens) return bad_merge(in, rank, "result is no token");
    import_merge(in, (uint32_t)rank, part[0], part[1], result);
  }
  return BPE_OK;
}

static size_t longest_string(importing *in, const doc_node *list, size_t longest) {
  for (const doc_node *v = list->first; v != NULL && !pace_stopped(&in->pace, NODE_WORK);
       v = v->next) {
    if (v->kind == DOC_STRING && v->len > longest) longest = v->len;
    if (v->kind != DOC_ARRAY) continue;
    for (const doc_node *x = v->first; x != NULL && !pace_stopped(&in->pace, NODE_WORK);
         x = x->next)
      if (x->kind == DOC_STRING && x->len > longest) longest = x->len;
  }
  return longest;
}

static bpe_status read_by_bytes(importing *in, const doc_node *root) {
  const doc_node *tokens = doc_get(root, "vocab"), *merges = doc_get(root, "merges");
  const doc_node *specials = doc_get(root, "special_tokens");
  if (tokens->kind != DOC_OBJECT) return bad(in, tokens, "vocab is no object of id -> hex");
  if (doc_get(root, "byte_order") != NULL || doc_get(root, "special_ids") != NULL)
    return bad(in, root, "byte_order and special_ids go with merges of ids, not with a vocab");
  const size_t longest = longest_string(in, tokens, longest_string(in, merges, 0));
  uint8_t *scratch = mem_new(&in->alloc, longest, 1);
  bpe_status st = scratch == NULL ? set_nomem(in->e) : pace_add(&in->pace, 1, in->e);
  if (st == BPE_OK) st = read_vocab(in, tokens, scratch);
  if (st == BPE_OK) st = read_hex_merges(in, merges, scratch);
  mem_free(&in->alloc, scratch);
  if (st == BPE_OK && specials != NULL) st = import_special_list(in, specials);
  return st;
}

/* ---- Both ---------------------------------------------------------------------------------- */

static bpe_status read_pattern(importing *in, const doc_node *root) {
  const doc_node *name = doc_get(root, "pattern"), *pattern = doc_get(root, "regex");
  const doc_node *v = name != NULL ? name : pattern;
  if (v == NULL) return import_pattern(in, "the description");
  if (in->options->pattern != NULL || (name != NULL && pattern != NULL))
    return set_error(in->e, BPE_MISUSE, v->offset, "%s: two patterns", what);
  if (v->kind != DOC_STRING) return bad(in, v, "pattern is no string");
  bpe_builder_pattern(in->b, v->text, v->len, name == NULL);
  return BPE_OK;
}

static bpe_status read_wrapping(importing *in, const doc_node *root, const char *key,
                                void (*add)(bpe_builder *, uint32_t id)) {
  const doc_node *list = doc_get(root, key);
  quoted q;
  if (list == NULL) return BPE_OK;
  if (list->kind != DOC_ARRAY) return bad(in, list, "bos or eos is no array of names");
  for (const doc_node *v = list->first; v != NULL; v = v->next) {
    if (v->kind != DOC_STRING) return bad(in, v, "bos or eos holds what is no string");
    const size_t k = import_find_special(in, v->text, v->len);
    if (k == in->n_tokens)
      return set_error(in->e, BPE_BADMODEL, v->offset, "%s: %s is no special token: %s", what, key,
                       quote_bytes(&q, v->text, v->len));
    add(in->b, in->tokens[k].id);
  }
  return BPE_OK;
}

bpe_status import_plain(importing *in, const doc_node *root) {
  static const char *const keys[] = {
      "pattern", "regex", "merges", "vocab", "special_tokens", "special_ids", "byte_order",
      "bos",     "eos",   "whole",  NULL};
  bpe_status st = doc_keys(root, what, keys, in->e);
  if (st != BPE_OK) return st;
  const doc_node *merges = doc_get(root, "merges"), *whole = doc_get(root, "whole");
  if (!doc_has_kind(merges, DOC_ARRAY)) return bad(in, merges, "no array of merges");
  if (whole != NULL && whole->kind != DOC_TRUE && whole->kind != DOC_FALSE)
    return bad(in, whole, "whole is neither true nor false");
  if (doc_get(root, "special_tokens") != NULL && in->options->special_tokens != NULL)
    return set_error(in->e, BPE_MISUSE, 0, "%s has its own special tokens: give none", what);
  st = doc_get(root, "vocab") != NULL ? read_by_bytes(in, root) : read_trained(in, root);
  if (st == BPE_OK) st = read_pattern(in, root);
  if (st == BPE_OK && doc_get(root, "special_tokens") == NULL)
    st = import_specials(in, in->options->special_tokens, in->options->special_len);
  if (st == BPE_OK) st = read_wrapping(in, root, "bos", bpe_builder_bos);
  if (st == BPE_OK) st = read_wrapping(in, root, "eos", bpe_builder_eos);
  if (st == BPE_OK && doc_has_kind(whole, DOC_TRUE)) bpe_builder_whole(in->b);
  return st;
}
