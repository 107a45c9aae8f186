/* oracle_vocab.c - the oracle's own table of tokens and merges, and its readers of rank files.
**
** Two chained hash tables, bytes -> id and (left, right) -> (rank, id), and a list id -> bytes.
** Of equal keys one wins for good: the lowest id for bytes, the first added for pairs.
**
** The .merges reader expands the compact form of data/encodings: "BPEM", a LEB128 number n, then
** for each id from 256 below n the numbers left+1 and right, or a single 0 where the id is
** not used. Ids below 256 are the single bytes, printable ones first. It refuses files that are
** short, long, or name an operand that is not there yet.
**
**     42 50 45 4d  82 02  02 02  00      n = 258; token 256 is ids 1 and 2: `"#`; 257 is a hole
*/
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct token {
  size_t at; /* in the slab */
  uint32_t len, id, next;
} token;

typedef struct pair {
  uint32_t left, right, rank, id, next;
} pair;

struct oracle_vocab {
  uint8_t *slab;
  size_t slab_len, slab_cap;
  token *tokens;
  size_t n_tokens, cap_tokens;
  pair *pairs;
  size_t n_pairs, cap_pairs;
  uint32_t *token_heads, *pair_heads; /* 1 + index, 0 = empty */
  size_t n_token_heads, n_pair_heads; /* powers of two */
  oracle_list by_id;                  /* 1 + index of the token, 0 = none */
  size_t longest;
};

oracle_vocab *oracle_vocab_new(void) {
  oracle_vocab *v = oracle_realloc(NULL, sizeof *v);
  memset(v, 0, sizeof *v);
  return v;
}

void oracle_vocab_free(oracle_vocab *v) {
  if (!v) return;
  free(v->slab);
  free(v->tokens);
  free(v->pairs);
  free(v->token_heads);
  free(v->pair_heads);
  oracle_list_clear(&v->by_id);
  free(v);
}

static size_t hash_bytes(const uint8_t *bytes, size_t len) {
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < len; i++) h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
  return (size_t)(h ^ (h >> 29));
}

static size_t hash_pair(uint32_t left, uint32_t right) {
  const uint64_t h = ((uint64_t)left << 32 | right) * UINT64_C(0x9e3779b97f4a7c15);
  return (size_t)(h ^ (h >> 31));
}

static size_t token_slot(const oracle_vocab *v, const token *t) {
  return hash_bytes(v->slab + t->at, t->len) & (v->n_token_heads - 1);
}

static size_t pair_slot(const oracle_vocab *v, const pair *p) {
  return hash_pair(p->left, p->right) & (v->n_pair_heads - 1);
}

static void rehash_tokens(oracle_vocab *v) {
  v->n_token_heads = v->n_token_heads ? v->n_token_heads * 2 : 512;
  v->token_heads = oracle_realloc(v->token_heads, v->n_token_heads * sizeof *v->token_heads);
  memset(v->token_heads, 0, v->n_token_heads * sizeof *v->token_heads);
  for (size_t i = 0; i < v->n_tokens; i++) {
    uint32_t *head = &v->token_heads[token_slot(v, &v->tokens[i])];
    v->tokens[i].next = *head;
    *head = (uint32_t)i + 1;
  }
}

static void rehash_pairs(oracle_vocab *v) {
  v->n_pair_heads = v->n_pair_heads ? v->n_pair_heads * 2 : 512;
  v->pair_heads = oracle_realloc(v->pair_heads, v->n_pair_heads * sizeof *v->pair_heads);
  memset(v->pair_heads, 0, v->n_pair_heads * sizeof *v->pair_heads);
  for (size_t i = 0; i < v->n_pairs; i++) {
    uint32_t *head = &v->pair_heads[pair_slot(v, &v->pairs[i])];
    v->pairs[i].next = *head;
    *head = (uint32_t)i + 1;
  }
}

void oracle_vocab_add(oracle_vocab *v, uint32_t id, const void *bytes, size_t len) {
  if (v->n_tokens == v->cap_tokens) {
    v->cap_tokens = v->cap_tokens ? v->cap_tokens * 2 : 512;
    v->tokens = oracle_realloc(v->tokens, v->cap_tokens * sizeof *v->tokens);
  }
  if (v->slab_cap - v->slab_len < len) {
    v->slab_cap = v->slab_cap * 2 + len;
    v->slab = oracle_realloc(v->slab, v->slab_cap);
  }
  if (len > 0) memcpy(v->slab + v->slab_len, bytes, len);
  token *t = &v->tokens[v->n_tokens++];
  *t = (token){.at = v->slab_len, .len = (uint32_t)len, .id = id};
  v->slab_len += len;
  if (len > v->longest) v->longest = len;
  while (v->by_id.n <= id) oracle_list_add(&v->by_id, 0);
  if (v->by_id.at[id] == 0) v->by_id.at[id] = (uint32_t)v->n_tokens;
  if (v->n_tokens > v->n_token_heads) {
    rehash_tokens(v);
  } else {
    uint32_t *head = &v->token_heads[token_slot(v, t)];
    t->next = *head;
    *head = (uint32_t)v->n_tokens;
  }
}

uint32_t oracle_vocab_find(const oracle_vocab *v, const uint8_t *bytes, size_t len) {
  uint32_t best = ORACLE_NONE;
  if (len > v->longest || v->n_token_heads == 0) return best;
  uint32_t i = v->token_heads[hash_bytes(bytes, len) & (v->n_token_heads - 1)];
  for (; i != 0; i = v->tokens[i - 1].next) {
    const token *t = &v->tokens[i - 1];
    if (t->id < best && t->len == len && memcmp(v->slab + t->at, bytes, len) == 0) best = t->id;
  }
  return best;
}

bool oracle_vocab_find_pair(const oracle_vocab *v, uint32_t left, uint32_t right, uint32_t *rank,
                            uint32_t *id) {
  if (v->n_pair_heads == 0) return false;
  uint32_t i = v->pair_heads[hash_pair(left, right) & (v->n_pair_heads - 1)];
  for (; i != 0; i = v->pairs[i - 1].next) {
    const pair *p = &v->pairs[i - 1];
    if (p->left != left || p->right != right) continue;
    *rank = p->rank;
    *id = p->id;
    return true;
  }
  return false;
}

void oracle_vocab_merge(oracle_vocab *v, uint32_t rank, uint32_t left, uint32_t right,
                        uint32_t id) {
  uint32_t known_rank, known_id;
  if (oracle_vocab_find_pair(v, left, right, &known_rank, &known_id)) return;
  if (v->n_pairs == v->cap_pairs) {
    v->cap_pairs = v->cap_pairs ? v->cap_pairs * 2 : 512;
    v->pairs = oracle_realloc(v->pairs, v->cap_pairs * sizeof *v->pairs);
  }
  pair *p = &v->pairs[v->n_pairs++];
  *p = (pair){.left = left, .right = right, .rank = rank, .id = id};
  if (v->n_pairs > v->n_pair_heads) {
    rehash_pairs(v);
  } else {
    uint32_t *head = &v->pair_heads[pair_slot(v, p)];
    p->next = *head;
    *head = (uint32_t)v->n_pairs;
  }
}

const uint8_t *oracle_vocab_bytes(const oracle_vocab *v, uint32_t id, size_t *len) {
  *len = 0;
  if (id >= v->by_id.n || v->by_id.at[id] == 0) return NULL;
  const token *t = &v->tokens[v->by_id.at[id] - 1];
  *len = t->len;
  return v->slab + t->at;
}

uint32_t oracle_vocab_size(const oracle_vocab *v) {
  return (uint32_t)v->by_id.n;
}

size_t oracle_vocab_longest(const oracle_vocab *v) {
  return v->longest;
}

/* ---- Readers --------------------------------------------------------------------------------- */

static oracle_vocab *refuse(oracle_vocab *v, uint8_t *file, const char *path, const char *why) {
  fprintf(stderr, "oracle: %s: %s\n", path, why);
  oracle_vocab_free(v);
  free(file);
  return NULL;
}

/* Printable bytes of Latin-1 first, then the others, each in order of value. */
static void add_single_bytes(oracle_vocab *v) {
  uint32_t id = 0;
  for (int printable = 1; printable >= 0; printable--) {
    for (int b = 0; b < 256; b++) {
      const int is_printable = (b > 0x20 && b < 0x7f) || (b > 0xa0 && b != 0xad);
      const uint8_t byte = (uint8_t)b;
      if (is_printable == printable) oracle_vocab_add(v, id++, &byte, 1);
    }
  }
}

typedef struct cursor {
  const uint8_t *at, *end;
  bool failed;
} cursor;

static uint32_t read_varint(cursor *c) {
  uint32_t value = 0;
  for (int shift = 0; shift < 32; shift += 7) {
    if (c->at == c->end) break;
    const uint8_t b = *c->at++;
    value |= (uint32_t)(b & 0x7f) << shift;
    if (b < 0x80) return value;
  }
  c->failed = true;
  return 0;
}

oracle_vocab *oracle_vocab_read_merges(const char *path) {
  size_t len;
  uint8_t *file = oracle_read_file(path, &len);
  if (!file) return NULL;
  oracle_vocab *v = oracle_vocab_new();
  if (len < 4 || memcmp(file, "BPEM", 4) != 0) return refuse(v, file, path, "not a merge file");
  cursor c = {.at = file + 4, .end = file + len};
  add_single_bytes(v);
  const uint32_t n = read_varint(&c);
  uint8_t *joined = NULL;
  for (uint32_t id = 256; id < n && !c.failed; id++) {
    const uint32_t left = read_varint(&c);
    if (left == 0) continue;
    const uint32_t right = read_varint(&c);
    size_t left_len, right_len;
    const uint8_t *a = oracle_vocab_bytes(v, left - 1, &left_len);
    const uint8_t *b = oracle_vocab_bytes(v, right, &right_len);
    if (!a || !b) {
      c.failed = true;
      break;
    }
    joined = oracle_realloc(joined, left_len + right_len);
    memcpy(joined, a, left_len);
    memcpy(joined + left_len, b, right_len);
    oracle_vocab_add(v, id, joined, left_len + right_len);
  }
  free(joined);
  if (c.failed || c.at != c.end) return refuse(v, file, path, "damaged merge file");
  free(file);
  return v;
}

static int base64_value(int c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

oracle_vocab *oracle_vocab_read_tiktoken(const char *path) {
  size_t len;
  uint8_t *file = oracle_read_file(path, &len);
  if (!file) return NULL;
  oracle_vocab *v = oracle_vocab_new();
  for (const uint8_t *at = file; *at;) {
    uint8_t bytes[1024];
    size_t n = 0;
    uint32_t bits = 0;
    int n_bits = 0;
    for (int value; n < sizeof bytes && (value = base64_value(*at)) >= 0; at++) {
      bits = bits << 6 | (uint32_t)value;
      n_bits += 6;
      if (n_bits >= 8) bytes[n++] = (uint8_t)(bits >> (n_bits -= 8));
    }
    while (*at == '=') at++;
    char *end = NULL;
    const unsigned long rank = *at == ' ' ? strtoul((const char *)at, &end, 10) : 0;
    if (!end || *end != '\n') return refuse(v, file, path, "damaged rank file");
    oracle_vocab_add(v, (uint32_t)rank, bytes, n);
    at = (const uint8_t *)end + 1;
  }
  free(file);
  return v;
}
