/* oracle.h - the slow twin of the tokenizer: the definition, executed literally.
**
** What the core computes with hand-written scanners, packed tables and queues is computed here a
** second time in the most obvious way, so that the two can be compared on any input. A pattern
** is its published string, interpreted by a backtracking matcher over code points; a piece is
** merged by looking for the lowest pair again and again; special tokens are found by trying all
** of them at every byte. Nothing is shared with the core: no header, no table, no reader.
** Character classes come from a file of reference data.
**
**     oracle_classes *c = oracle_classes_read("tests/vectors/unicode-classes.json");
**     oracle_model m = {.regex = oracle_regex_new(c, oracle_pattern("gpt2")),
**                       .vocab = oracle_vocab_read_merges("data/encodings/r50k_base.merges"),
**                       .by_rank = true, .whole = true};
**     oracle_encode(&m, "hello world", 11, NULL, 0, &out);   // out.ids: 31373 995
**
** It is test code: a bad file or pattern is a line on stderr and NULL, lack of memory ends the
** program. Inputs of a few ten KB are fine, more is a matter of patience (merging is quadratic).
*/
#ifndef ORACLE_H
#define ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORACLE_NONE UINT32_MAX

/* realloc that does not fail; free the result with free(). */
void *oracle_realloc(void *p, size_t n);
/* A whole file with a NUL behind it, or NULL and a line on stderr; the caller frees it. */
uint8_t *oracle_read_file(const char *path, size_t *len);

typedef struct oracle_list {
  uint32_t *at; /* owned */
  size_t n, cap;
} oracle_list;

void oracle_list_add(oracle_list *, uint32_t);
void oracle_list_clear(oracle_list *);

/* ---- Patterns (oracle_regex.c) --------------------------------------------------------------- */

typedef struct oracle_classes oracle_classes;

oracle_classes *oracle_classes_read(const char *path);
void oracle_classes_free(oracle_classes *);
/* name as in a pattern: "\\p{L}", "\\s". */
bool oracle_classes_has(const oracle_classes *, const char *name, uint32_t cp);

/* A compiled pattern with its backtracking stack: one thread at a time. */
typedef struct oracle_regex oracle_regex;

/* Of a pattern of several lines the first is compiled, and the others hang on it as `next`. */
oracle_regex *oracle_regex_new(const oracle_classes *, const char *pattern);
oracle_regex *oracle_regex_next(const oracle_regex *); /* borrowed; NULL: that is all */
/* The same without the line on stderr: what is wrong, and how many characters were read. */
oracle_regex *oracle_regex_try(const oracle_classes *, const char *pattern, const char **error,
                               size_t *at);
void oracle_regex_free(oracle_regex *);
/* End of the match that begins exactly at `at`, or SIZE_MAX. The text is cps[0 .. n-1]. */
size_t oracle_regex_match(oracle_regex *, const uint32_t *cps, size_t n, size_t at);

/* The published string of a named pattern, "" for none, NULL for a name that is unknown. */
const char *oracle_pattern(const char *name);

/* ---- Pieces (oracle.c) ----------------------------------------------------------------------- */

/* Code point at text[0] and its length, or length 0 where no well-formed character begins. */
size_t oracle_utf8(const uint8_t *text, size_t len, uint32_t *cp);

/* Appends the lengths of the pieces of the text; regex NULL is the pattern `none`. */
void oracle_split(oracle_regex *, const void *text, size_t len, oracle_list *lengths);

/* ---- Vocabularies (oracle_vocab.c) ----------------------------------------------------------- */

typedef struct oracle_vocab oracle_vocab;

oracle_vocab *oracle_vocab_new(void);
oracle_vocab *oracle_vocab_read_merges(const char *path);   /* data/encodings/NAME.merges */
oracle_vocab *oracle_vocab_read_tiktoken(const char *path); /* base64, blank, rank; per line */
void oracle_vocab_free(oracle_vocab *);
/* A token that takes part in merging. Of tokens with equal bytes the lowest id counts. */
void oracle_vocab_add(oracle_vocab *, uint32_t id, const void *bytes, size_t len);
/* A merge of a merge list. Of equal pairs the first added counts. */
void oracle_vocab_merge(oracle_vocab *, uint32_t rank, uint32_t left, uint32_t right, uint32_t id);
uint32_t oracle_vocab_find(const oracle_vocab *, const uint8_t *bytes, size_t len);
/* Rank and id of a pair; false if it is none. */
bool oracle_vocab_find_pair(const oracle_vocab *, uint32_t left, uint32_t right, uint32_t *rank,
                            uint32_t *id);
const uint8_t *oracle_vocab_bytes(const oracle_vocab *, uint32_t id, size_t *len); /* or NULL */
uint32_t oracle_vocab_size(const oracle_vocab *); /* highest id + 1 */
size_t oracle_vocab_longest(const oracle_vocab *);

/* ---- Encoding (oracle.c) --------------------------------------------------------------------- */

typedef struct oracle_special {
  const char *text; /* borrowed */
  size_t len;
  uint32_t id;
} oracle_special;

/* The special tokens of a built-in encoding, or NULL; *n of them. */
const oracle_special *oracle_specials(const char *encoding, size_t *n);

typedef struct oracle_model {
  oracle_regex *regex; /* NULL: pattern none */
  oracle_vocab *vocab;
  bool by_rank; /* a pair's rank is the id of its concatenation; else the merge list says */
  bool whole;   /* a piece that is a token is emitted as it is */
} oracle_model;

typedef struct oracle_piece {
  size_t start, stop;
  size_t first, n; /* its ids in oracle_result.ids */
  bool special;
} oracle_piece;

typedef struct oracle_result {
  oracle_piece *pieces; /* owned */
  size_t n_pieces, cap_pieces;
  oracle_list ids;
  bool failed;      /* a byte is left that is no token: ids end before it */
  size_t failed_at; /* its offset */
} oracle_result;

/* Fills `out`, reusing what it owns; zero it before its first use. */
void oracle_encode(const oracle_model *, const void *text, size_t len, const oracle_special *,
                   size_t n_special, oracle_result *out);
void oracle_result_clear(oracle_result *);

/* ---- Training (oracle_train.c) --------------------------------------------------------------- */

typedef struct oracle_row {
  const char *text;
  size_t len;
  uint64_t weight; /* 0: the row does not count */
} oracle_row;

typedef struct oracle_train_options {
  const oracle_classes *classes; /* for skip_space */
  oracle_regex *regex;           /* NULL: pattern none */
  bool pretokenized;             /* the regex is not applied */
  bool skip_space;               /* pieces that begin with white space do not count */
  const oracle_special *specials; /* their ids do not matter */
  size_t n_specials;
  enum { ORACLE_SPECIALS_LAST, ORACLE_SPECIALS_FIRST, ORACLE_SPECIALS_AFTER_BYTES } place;
  enum { ORACLE_TIE_BYTES, ORACLE_TIE_IDS, ORACLE_TIE_FIRST } tie;
  bool gpt2_bytes;
  uint64_t min_frequency, max_token_length; /* 0: none */
} oracle_train_options;

typedef struct oracle_trained {
  uint32_t left, right, id;
  uint64_t count;
} oracle_trained;

/* Learns up to `max` merges, ids up to 4095; returns how many there are. *tokens: of the rows
** after the last of them, each as often as its row counts. */
size_t oracle_train(const oracle_row *, size_t n, const oracle_train_options *,
                    oracle_trained *merges, size_t max, uint64_t *tokens);

#endif
