/* vocab.h - the immutable tables of a tokenizer: tokens by id and by bytes, merges by pair.
**
** Entries stand in order of id; their bytes lie in one slab. An entry is `direct` when its bytes,
** taken as one piece, are known to merge to it, so that a piece found among the tokens needs no
** merging. Only entries that take part in merging are found by bytes here; the names of specials
** are special.h's.
**
** A vocabulary of characters (`chars`) begins merging with characters, not bytes: a character
** that is no token falls back on the tokens of its bytes, which merge with nothing.
**
**     const size_t i = vocab_find_bytes(v, (const uint8_t *)"hello", 5);
**     if (i != v->n_entries) ... v->entries[i].id ...
*/
#ifndef VOCAB_H
#define VOCAB_H

#include "key.h"

enum entry_flag {
  ENTRY_FALLBACK = 1 << 0, /* stands for its one byte where the character is no token */
  ENTRY_UNUSED = 1 << 1,   /* decodes, but no text becomes it */
  ENTRY_MERGES = 1 << 2,   /* special or added, and takes part in merging as well */
  ENTRY_LSTRIP = 1 << 3,   /* in a text, takes the white space before it along */
  ENTRY_RSTRIP = 1 << 4,   /* and after it */
  ENTRY_WORD = 1 << 5,     /* is found only where no word character touches it */
  ENTRY_LATE = 1 << 6      /* is looked for in normalized text, after the others */
};

typedef struct vocab_entry {
  uint32_t id;
  uint32_t offset, len; /* of the slab; len > 0 */
  uint8_t kind;         /* bpe_kind */
  uint8_t flags;        /* entry_flag */
} vocab_entry;

/* Three keys of entries and what they are, one cache line. An entry is in the line that its hash
** names or, where that was full, in the first behind it that was not; `over` then says so in each
** line on the way. */
typedef struct token_line {
  piece_key keys[3];
  uint32_t entries[3]; /* and 1; 0: nothing is there */
  uint32_t over;       /* 0, or TOKEN_OVER */
} token_line;

#define TOKEN_OVER UINT32_MAX

/* What two single bytes become; order BPE_NONE: they do not merge. */
typedef struct byte_pair {
  uint32_t order, id;
} byte_pair;

typedef struct vocab {
  bpe_alloc alloc;
  vocab_entry *entries; /* owned, by (id, offset) */
  size_t n_entries, entries_cap;
  size_t n_ids;    /* distinct ids */
  size_t n_dense;  /* entries[i].id == i for all i below */
  uint32_t *named; /* owned; the entries that are no BPE_TOKEN, in order: few */
  size_t n_named;
  unsigned any_flags; /* of all entries together */
  uint8_t *slab;      /* owned; sealed, KEY_SLACK bytes may be read from the start of any entry */
  size_t slab_len, slab_cap;
  vocab_merge *merges; /* owned, by (rank, left, right) */
  size_t n_merges, merges_cap;
  uint64_t *counts; /* owned, of each merge; NULL: all unknown */
  size_t counts_cap;
  size_t longest;    /* bytes of the longest entry */
  void *token_block; /* owned; holds token_lines: the entries that merge, by their bytes */
  token_line *token_lines;
  size_t n_token_lines;
  uint64_t *direct; /* owned; a bit for each entry */
  pair_map pairs;
  byte_pair *byte_pairs;  /* owned; [first << 8 | second], what `pairs` says of their ids */
  uint32_t byte_ids[256]; /* id of each single byte; BPE_NONE: there is none */
  bool whole;             /* a piece that is a token is emitted whole: every token is direct */
  bool vouched;           /* merges need not be checked, see builder_vouch */
  bool chars;             /* merging begins with characters; byte_ids are the fallbacks */
} vocab;

void vocab_clear(vocab *);

/* Puts the entries in order of id, so that vocab_find_id finds them. */
BPE_CHECK bpe_status vocab_sort(vocab *, pace *, bpe_error *);

/* Sorts, checks and indexes what a builder has put into entries, slab, merges and counts. */
bpe_status vocab_seal(vocab *, bpe_error *);

/* The first entry with this id, or n_entries. */
size_t vocab_find_id(const vocab *, uint32_t id);

static inline const uint8_t *vocab_bytes(const vocab *v, const vocab_entry *e) {
  return v->slab + e->offset;
}

static inline bool entry_merges(const vocab_entry *e) {
  return e->kind == BPE_TOKEN || (e->flags & ENTRY_MERGES);
}

static inline bool vocab_direct(const vocab *v, size_t entry) {
  return v->direct[entry / 64] >> entry % 64 & 1;
}

/* The first line that may have a key. */
static inline token_line *vocab_line(const vocab *v, piece_key k) {
  return &v->token_lines[hash_scaled(hash_two(k.low, k.high), v->n_token_lines)];
}

/* The entry that merges, of exactly these bytes, with the lowest id, or n_entries. Fallbacks and
** unused entries come after all others. k: the key of the bytes. */
size_t vocab_find_key(const vocab *, piece_key k, const uint8_t *s, size_t len);

static inline size_t vocab_find_bytes(const vocab *v, const uint8_t *s, size_t len) {
  return vocab_find_key(v, key_any(s, len), s, len);
}

#endif
