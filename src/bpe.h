/* bpe.h - byte-level BPE: the one public header of the core.
**
** A bpe_model is a tokenizer: tokens, merges, pattern, special tokens. It is immutable once
** made and may be shared by any number of threads. A bpe_coder is one thread's mutable side of
** a model: a bounded table of pieces already encoded, and scratch. A bpe_walk goes through one
** text, piece by piece; encode, count, token rows and traces are loops over the same walk:
**
**     bpe_model *m;  bpe_coder *c;  bpe_walk *w;  bpe_piece p;  bpe_error e = {0};
**     bpe_builtin_load(&alloc, bpe_builtin_resolve("gpt-4", 5), &e, &m);
**     bpe_coder_new(m, 0, &e, &c);
**     bpe_walk_new(c, &e, &w);
**     bpe_walk_start(w, "hello world", 11, NULL, &e);
**     while ((st = bpe_walk_next(w, &p, &e)) == BPE_OK) ... p.ids[0 .. p.n_ids-1] ...
**     // st == BPE_DONE: the text is used up; anything else: e says what and where
**
** Text is pointer and length, any bytes; NUL does not end it. Lengths are in bytes. Every
** fallible function returns a bpe_status, empties its outputs first and fills them only on
** BPE_OK; a bpe_error may be NULL, and the first failure recorded in it stays.
*/
#ifndef BPE_H
#define BPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BPE_VERSION "0.1.0"

/* "No such id" everywhere. Ids are therefore 0 .. BPE_NONE-1. */
#define BPE_NONE UINT32_MAX

#if defined(__GNUC__)
#define BPE_CHECK __attribute__((warn_unused_result))
#else
#define BPE_CHECK
#endif

typedef enum bpe_status {
  BPE_OK = 0,
  BPE_DONE,       /* bpe_walk_next: the text is used up; no failure */
  BPE_NOMEM,      /* the allocator said no */
  BPE_TOOBIG,     /* a size does not fit, or passes a limit the caller gave */
  BPE_BADMODEL,   /* a tokenizer's description contradicts itself */
  BPE_BADREGEX,   /* the pattern does not compile */
  BPE_REGEXLIMIT, /* the pattern needs more matching than is allowed */
  BPE_BADTOKEN,   /* an id that the tokenizer does not have, or may not be there */
  BPE_BADTEXT,    /* the text holds what the call or the tokenizer rules out */
  BPE_STOPPED,    /* the caller's stop callback said so */
  BPE_MISUSE      /* the call makes no sense (no BOS or EOS to add, name that is no special) */
} bpe_status;

typedef struct bpe_error {
  bpe_status status;
  uint64_t offset; /* byte of the text, or index of the id, where status has a place */
  char text[256];  /* one line, lower case, object last; cut at a character when too long */
} bpe_error;

/* What the core needs of its caller: memory, and leave to go on.
**
** resize(ctx, NULL, n) allocates, resize(ctx, p, n) reallocates, resize(ctx, p, 0) frees and
** returns NULL. NULL for n > 0 is out of memory; p is then untouched. All memory of the core
** comes through here, and every object keeps a copy.
**
** stop(ctx) may be NULL. Work that can be long and is given no stop callback of its own, which is
** making, reading, writing and digesting models and repairing text, asks it every few ms, on the
** thread that does the work; non-zero ends the work with BPE_STOPPED. */
typedef struct bpe_alloc {
  void *(*resize)(void *ctx, void *p, size_t n);
  void *ctx;
  int (*stop)(void *ctx);
} bpe_alloc;

/* ---- Once per process ------------------------------------------------------------------------ */

#define BPE_SEED_BYTES 24

/* Random bytes that nobody else knows, before anything else is called. They decide where things
** stand in tables, so that no text and no vocabulary can be made to be slow; no answer depends on
** them. Only the first call counts. */
void bpe_seed(const uint8_t bytes[BPE_SEED_BYTES]);

/* ---- Bytes that grow (owned; zero it, fill it, free or hand over its memory) ------------- */

/* Sticky: after a failure every append is a complete no-op, and `status` says what happened
** first. `limit` (0 = none) makes growth past it BPE_TOOBIG. */
typedef struct bpe_buffer {
  uint8_t *bytes; /* owned, from alloc.resize */
  size_t len, cap;
  size_t limit;
  bpe_status status;
  bpe_alloc alloc;
} bpe_buffer;

void bpe_buffer_init(bpe_buffer *, const bpe_alloc *, size_t limit);
void bpe_buffer_append(bpe_buffer *, const void *bytes, size_t len);
void bpe_buffer_append_decimal(bpe_buffer *, uint64_t value);
/* A JSON string literal of the bytes, U+FFFD where they are malformed. */
void bpe_buffer_append_json(bpe_buffer *, const void *text, size_t len);
/* Room for `len` more bytes at the returned place, NULL on failure; commit counts those written,
** and only committing looks at the limit. */
uint8_t *bpe_buffer_reserve(bpe_buffer *, size_t len);
void bpe_buffer_commit(bpe_buffer *, size_t len);
void bpe_buffer_clear(bpe_buffer *); /* frees the memory; usable again, with the same limit */

/* ---- Models ------------------------------------------------------------------------------ */

typedef struct bpe_model bpe_model;

typedef enum bpe_kind {
  BPE_TOKEN,   /* takes part in merging */
  BPE_SPECIAL, /* found in text only when the caller allows it */
  BPE_ADDED    /* found in text always, before the pattern */
} bpe_kind;

/* A builder collects a description in any order; bpe_builder_finish validates it whole. Sticky
** like bpe_buffer: only finish reports, and it frees the builder whatever happens. */
typedef struct bpe_builder bpe_builder;

bpe_builder *bpe_builder_new(const bpe_alloc *); /* NULL: out of memory; the rest take NULL */
/* Token `id` is `bytes`. Two specials may share an id: the first added is what it decodes to. */
void bpe_builder_token(bpe_builder *, uint32_t id, bpe_kind, const void *bytes, size_t len);
/* The adjacent pair (left, right) becomes id; lower ranks first. Several pairs may share a rank
** if they share the id (a rank file, every split of a token). count: how often training saw it,
** 0 = unknown. The token must be left's bytes followed by right's. */
void bpe_builder_merge(bpe_builder *, uint32_t rank, uint32_t left, uint32_t right, uint32_t id,
                       uint64_t count);
/* The next merge in rank order makes the new token `id`: one call for token and merge. Both
** operands must have been added before. */
void bpe_builder_grow(bpe_builder *, uint32_t left, uint32_t right, uint32_t id);
/* A pattern's name (see bpe_pattern_new), or a regex. */
void bpe_builder_pattern(bpe_builder *, const char *text, size_t len, bool is_regex);
/* A piece that is a token is emitted whole, merged or not (HF's ignore_merges). */
void bpe_builder_whole(bpe_builder *);
/* Appends one id to the list that goes before (bos) or after a document; either has so many at
** most. */
enum { BPE_MOST_AROUND = 256 };
void bpe_builder_bos(bpe_builder *, uint32_t id);
void bpe_builder_eos(bpe_builder *, uint32_t id);
/* Training figures as a JSON object: shown, not interpreted, no part of the digest. */
void bpe_builder_stats(bpe_builder *, const char *json, size_t len);
void bpe_builder_free(bpe_builder *);
BPE_CHECK bpe_status bpe_builder_finish(bpe_builder *, bpe_error *, bpe_model **out);

void bpe_model_free(bpe_model *);

typedef struct bpe_token {
  uint32_t id;
  bpe_kind kind;
  const uint8_t *bytes; /* borrowed from the model */
  size_t len;
} bpe_token;

typedef struct bpe_merge {
  uint32_t rank, left, right, id;
  uint64_t count; /* 0 = unknown */
} bpe_merge;

typedef struct bpe_info {
  const char *pattern; /* name or regex, borrowed, NUL-terminated */
  size_t pattern_len;
  bool pattern_is_regex;
  bool pattern_is_chain; /* several patterns one inside the other; the text is a JSON array */
  bool normalizes;       /* a text and its tokens need not have the same bytes: text is normalized,
                         ** or added tokens take white space along or are spelled otherwise.
                         ** Byte bounds, decode(encode(x)) = x and streaming do not hold */
  bool whole;
  uint32_t vocab_size; /* highest id + 1: the rows of an embedding */
  size_t token_count;  /* distinct ids */
  size_t entry_count;  /* tokens by index; more than token_count where specials share an id */
  size_t merge_count;
  size_t longest;            /* bytes of the longest token */
  const uint32_t *bos, *eos; /* borrowed */
  size_t n_bos, n_eos;
  const char *stats; /* JSON, borrowed; NULL: none */
  size_t stats_len;
} bpe_info;

void bpe_model_info(const bpe_model *, bpe_info *);
/* Entry i of entry_count, in order of id. */
bpe_token bpe_model_token(const bpe_model *, size_t i);
/* First entry with this id, or entry_count. */
size_t bpe_model_find_id(const bpe_model *, uint32_t id);
/* Entry of exactly these bytes, or entry_count: a special of that name first, else lowest id. */
size_t bpe_model_find_bytes(const bpe_model *, const void *bytes, size_t len);
/* Merge i of merge_count, in order of rank (then left, right). */
bpe_merge bpe_model_merge(const bpe_model *, size_t i);
/* SHA-256 over the canonical encoding (model_digest.c) of all that decides ids. Fails only by
** BPE_STOPPED, and then *out is zero. */
BPE_CHECK bpe_status bpe_model_digest(const bpe_model *, bpe_error *, uint8_t out[32]);

/* A model as one string of bytes that any machine reads back to a model of the same digest, with
** counts and stats (model_blob.c has the layout). Parsing trusts nothing. */
BPE_CHECK bpe_status bpe_model_write(const bpe_model *, bpe_error *, bpe_buffer *);
BPE_CHECK bpe_status bpe_model_parse(const bpe_alloc *, const void *bytes, size_t len, bpe_error *,
                                     bpe_model **out);

/* What a tokenizer is besides its entries, merges and pattern, as a JSON object whose keys are
** listed in settings.c: format (its version), whole, bos, eos, how text is normalized, how added
** tokens match. A model put together again from its entries (bpe_builder_token), its merges
** (bpe_builder_merge), its pattern's text and these settings has the same digest. Settings of a
** later format, unknown keys and ids that are no token are BPE_BADMODEL. */
BPE_CHECK bpe_status bpe_model_settings(const bpe_model *, bpe_error *, bpe_buffer *json);
void bpe_builder_settings(bpe_builder *, const char *pattern, size_t pattern_len, const char *json,
                          size_t len);

/* ---- Formats ------------------------------------------------------------------------------ */

/* What a file does not say about itself. All zero: nothing. */
typedef struct bpe_import_options {
  const char *pattern; /* a pattern's name, or a regex; NULL: the source's own */
  size_t pattern_len;
  bool pattern_is_regex;
  const char *special_tokens; /* JSON: an object of name -> id, or an array of names; NULL: none */
  size_t special_len;
  bool whole; /* a piece that is a token stays whole, where the format does not say */
} bpe_import_options;

/* A model from a source whose format its content shows: a model of bpe_model_write, a .tiktoken
** rank file, a Hugging Face tokenizer.json, a minbpe .model, GPT-2's vocab.json with `merges` =
** merges.txt (NULL with every other format), or a plain JSON description (import_plain.c).
** What a source asks for and we do not do is an error that names it; e->offset is the line or the
** byte where there is one. Options that the source answers itself are BPE_MISUSE. */
BPE_CHECK bpe_status bpe_import(const bpe_alloc *, const void *source, size_t len,
                                const void *merges, size_t merges_len, const bpe_import_options *,
                                bpe_error *, bpe_model **out);

/* Appends the model in a format: model (bytes), tiktoken, huggingface, gpt2-vocab, gpt2-merges
** or minbpe (text). An unknown format is BPE_MISUSE; content that the format cannot carry is
** BPE_BADMODEL naming the first offender. */
BPE_CHECK bpe_status bpe_export(const bpe_model *, const char *format, size_t len, bpe_error *,
                                bpe_buffer *);
const char *bpe_format_name(int i); /* names of bpe_export by index; NULL past the last */

/* ---- Built-in encodings ------------------------------------------------------------------ */

/* Index of a built-in encoding by its own name, or by a model's name, exact or by prefix as
** tiktoken maps them; -1 if there is none. */
int bpe_builtin_find(const char *name, size_t len);
int bpe_builtin_resolve(const char *name, size_t len);
const char *bpe_builtin_name(int which); /* NULL past the last */
/* The exact model names that bpe_builtin_resolve knows, by index, for lists and suggestions. */
const char *bpe_builtin_alias(int i); /* NULL past the last */
BPE_CHECK bpe_status bpe_builtin_load(const bpe_alloc *, int which, bpe_error *, bpe_model **out);

/* ---- Patterns ---------------------------------------------------------------------------- */

typedef struct bpe_pattern bpe_pattern;

/* Named patterns are those of bpe_pattern_name; an unknown name is BPE_MISUSE. A regex is PCRE2
** syntax with UTF and UCP, $ the very end and nothing else; BPE_BADREGEX says why and where. A text
** that begins with [ and is no regex is a chain: a JSON array of names and {"regex": ...}, each
** splitting the pieces of the one before. */
BPE_CHECK bpe_status bpe_pattern_new(const bpe_alloc *, const char *text, size_t len, bool is_regex,
                                     bpe_error *, bpe_pattern **out);
void bpe_pattern_free(bpe_pattern *);
const char *bpe_pattern_name(int i);              /* named patterns by index; NULL past the last */
const char *bpe_unicode_version(void);            /* of the named patterns' character classes */
const char *bpe_normalizer_unicode_version(void); /* of the normal forms of imported tokenizers */
/* "10.42 2022-12-11", and whether patterns are compiled to machine code here. */
void bpe_pcre2_version(char out[64], bool *jit);

/* ---- Special tokens allowed in a text ----------------------------------------------------- */

/* A set of strings to look for: leftmost first, the longest of those that start there. */
typedef struct bpe_finder bpe_finder;

typedef struct bpe_name {
  const char *text; /* borrowed during the call */
  size_t len;
} bpe_name;

/* The model's added tokens, and of its specials all (names NULL) or those named. A name that is
** no special of the model is BPE_MISUSE. Needed only where specials are allowed: without a
** finder a walk looks for the model's added tokens alone. */
BPE_CHECK bpe_status bpe_finder_new(const bpe_model *, const bpe_name *names, size_t n, bpe_error *,
                                    bpe_finder **out);
/* Strings whose presence in the text is an error: those given, whatever they are; or, with
** names NULL, every special of the model that is not in `except`. */
BPE_CHECK bpe_status bpe_finder_new_forbidden(const bpe_model *, const bpe_name *names, size_t n,
                                              const bpe_name *except, size_t n_except, bpe_error *,
                                              bpe_finder **out);
void bpe_finder_free(bpe_finder *);

/* ---- Encoding ----------------------------------------------------------------------------- */

typedef struct bpe_coder bpe_coder; /* borrows its model; one thread at a time */
typedef struct bpe_walk bpe_walk;   /* borrows its coder; several may be under way by turns */

typedef struct bpe_piece {
  size_t start, stop;  /* bytes of the text */
  const uint32_t *ids; /* valid until the next call on any walk of this coder */
  size_t n_ids;        /* 0 with options.split_only */
  const size_t *stops; /* NULL: the tokens' bytes tile the piece. Else, where the text was changed
                       ** before it was split, the byte of the text where each token ends */
  bool special;        /* a special or added token, or (start == stop) a BOS or EOS */
} bpe_piece;

typedef struct bpe_walk_options {
  const bpe_finder *allowed;   /* NULL: only the model's added tokens; borrowed for the walk */
  const bpe_finder *forbidden; /* NULL: nothing; the whole text is searched before anything */
  const bpe_pattern *pattern;  /* NULL: the model's */
  bool document;               /* BOS tokens first, EOS tokens last; none to add: BPE_MISUSE */
  bool split_only;             /* pieces without ids */
  int (*stop)(void *ctx);      /* asked at least every 64 KiB of text; non-zero ends the walk */
  void *stop_ctx;
} bpe_walk_options;

/* piece_bytes: memory for the table of pieces met before, about; 0 = 4 MiB. There is a least, and
** more than there can be is BPE_NOMEM. */
BPE_CHECK bpe_status bpe_coder_new(const bpe_model *, size_t piece_bytes, bpe_error *,
                                   bpe_coder **out);
void bpe_coder_free(bpe_coder *);
const bpe_model *bpe_coder_model(const bpe_coder *);
typedef struct bpe_coder_stats {
  size_t piece_slots, piece_bytes; /* the table of pieces: how many it can hold, its memory */
  size_t scratch_bytes;            /* what long pieces have left allocated */
} bpe_coder_stats;
void bpe_coder_stat(const bpe_coder *, bpe_coder_stats *);

BPE_CHECK bpe_status bpe_walk_new(bpe_coder *, bpe_error *, bpe_walk **out);
void bpe_walk_free(bpe_walk *);
/* Begins a text, which is borrowed until the next start or free; options NULL = all zero. */
BPE_CHECK bpe_status bpe_walk_start(bpe_walk *, const void *text, size_t len,
                                    const bpe_walk_options *, bpe_error *);
/* BPE_OK: *piece is the next; the pieces tile the text in order, but a text that normalizing leaves
** nothing of has none. BPE_DONE: no more. */
BPE_CHECK bpe_status bpe_walk_next(bpe_walk *, bpe_piece *piece, bpe_error *);

/* The whole text at once, over a walk of the coder's own. */
BPE_CHECK bpe_status bpe_count(bpe_coder *, const void *text, size_t len, const bpe_walk_options *,
                               bpe_error *, uint64_t *n);
/* Whether bpe_count gives at most `most`: by the text's length where that decides, else by counting
** until there are more. Past that place the text is not looked at, so a byte there that has no
** token is no failure. */
BPE_CHECK bpe_status bpe_fits(bpe_coder *, const void *text, size_t len, const bpe_walk_options *,
                              uint64_t most, bpe_error *, bool *fits);
/* Appends the ids as "[1,2,3]". */
BPE_CHECK bpe_status bpe_encode_json(bpe_coder *, const void *text, size_t len,
                                     const bpe_walk_options *, bpe_error *, bpe_buffer *);
/* Appends the ids as little-endian integers of `width` 16 or 32 bits; an id that does not fit
** is BPE_TOOBIG. */
BPE_CHECK bpe_status bpe_encode_packed(bpe_coder *, const void *text, size_t len, int width,
                                       const bpe_walk_options *, bpe_error *, bpe_buffer *);

/* ---- Windows (window.c) ------------------------------------------------------------------- */

/* What is kept of a text to have at most `most` tokens: the bytes *start .. *stop - 1, which are
** the first k tokens of the text, or with `left` the last k, and begin and end with characters;
** k is the largest number <= most for which those bytes, encoded by themselves with the same
** options, give at most `most` tokens. BPE_MISUSE: not even no text does, because of BOS and EOS.
*/
BPE_CHECK bpe_status bpe_truncate(bpe_coder *, const void *text, size_t len,
                                  const bpe_walk_options *, uint64_t most, bool left, bpe_error *,
                                  size_t *start, size_t *stop);

typedef enum bpe_cut { BPE_CUT_TOKEN, BPE_CUT_PIECE, BPE_CUT_SENTENCE, BPE_CUT_PARAGRAPH } bpe_cut;

typedef struct bpe_window_options {
  uint64_t most;    /* tokens of a window, BOS and EOS included; > 0 */
  uint64_t overlap; /* tokens of a window that begin the next one too; < most */
  bpe_cut cut;      /* where to cut if there is such a place; else at the next finer kind */
} bpe_window_options;

typedef struct bpe_window {
  size_t start, stop; /* bytes of the text */
  uint64_t tokens;    /* of these bytes by themselves, BOS and EOS included */
} bpe_window;

/* Goes through a text window by window, each as long as can be from its start: what bpe_truncate
** gives of the rest, or a cut of the wanted kind within that. */
typedef struct bpe_windows bpe_windows; /* borrows its coder */

/* The text and what the options point at are borrowed until the free. */
BPE_CHECK bpe_status bpe_windows_new(bpe_coder *, const void *text, size_t len,
                                     const bpe_walk_options *, const bpe_window_options *,
                                     bpe_error *, bpe_windows **out);
void bpe_windows_free(bpe_windows *);
/* BPE_DONE: no more. BPE_TOOBIG: not one character from e->offset on has few enough tokens. */
BPE_CHECK bpe_status bpe_windows_next(bpe_windows *, bpe_window *, bpe_error *);

/* ---- Traces (trace.c) --------------------------------------------------------------------- */

/* How a text becomes ids, step by step: for each piece first what merging begins with, then each
** longest run of merges of one pair that follow each other. */
typedef struct bpe_trace bpe_trace; /* borrows its coder */

typedef struct bpe_step {
  uint64_t piece, step;           /* counted from 0; special tokens, BOS and EOS are pieces too */
  size_t start, stop;             /* bytes of the piece */
  uint32_t rank, left, right, id; /* BPE_NONE in step 0; rank, left and right also where a piece
                                  ** that is a token is taken whole */
  uint64_t replacements;
  const uint32_t *before, *after; /* the piece's ids, BPE_NONE for a byte that is no token; valid
                                  ** until the next call; before is NULL in step 0 */
  size_t n_before, n_after;
} bpe_step;

BPE_CHECK bpe_status bpe_trace_new(bpe_coder *, bpe_error *, bpe_trace **out);
void bpe_trace_free(bpe_trace *);
/* As bpe_walk_start; the text is borrowed until the next start or free. */
BPE_CHECK bpe_status bpe_trace_start(bpe_trace *, const void *text, size_t len,
                                     const bpe_walk_options *, bpe_error *);
BPE_CHECK bpe_status bpe_trace_next(bpe_trace *, bpe_step *, bpe_error *);

/* ---- Streams (stream.c) ------------------------------------------------------------------- */

/* One text that comes in parts, cut anywhere, with the ids it has as a whole. Only what is not
** decided yet is kept: a piece and what its pattern looks at behind it. */
typedef struct bpe_stream bpe_stream; /* borrows its coder */

/* BPE_MISUSE: the tokenizer's pattern is none, a regex or a chain, or it changes text or what
** surrounds its special tokens, so that no piece is certain before the end. */
BPE_CHECK bpe_status bpe_stream_new(bpe_coder *, const bpe_walk_options *, bpe_error *,
                                    bpe_stream **out);
void bpe_stream_free(bpe_stream *);
/* The next part; it is copied. A forbidden string is found when its last byte comes. */
BPE_CHECK bpe_status bpe_stream_add(bpe_stream *, const void *part, size_t len, bpe_error *);
void bpe_stream_end(bpe_stream *); /* there are no more parts */
/* BPE_OK: ids are the next, valid until the next call on the stream or any walk of its coder.
** BPE_DONE: none before more is added; after the end, none at all. */
BPE_CHECK bpe_status bpe_stream_next(bpe_stream *, const uint32_t **ids, size_t *n, bpe_error *);

/* ---- Decoding ----------------------------------------------------------------------------- */

typedef enum bpe_specials {
  BPE_SPECIALS_TEXT, /* a special id gives its text */
  BPE_SPECIALS_SKIP, /* nothing */
  BPE_SPECIALS_ERROR /* BPE_BADTOKEN naming id and position */
} bpe_specials;

/* Appends the bytes of the ids. document: the list must begin with the model's BOS and end with
** its EOS tokens, have none of them between, and they give no bytes. Positions in errors count
** in the list as given. stop as in bpe_walk_options, may be NULL. */
BPE_CHECK bpe_status bpe_decode(const bpe_model *, const uint32_t *ids, size_t n, bpe_specials,
                                bool document, int (*stop)(void *), void *stop_ctx, bpe_error *,
                                bpe_buffer *);

/* ---- Training ------------------------------------------------------------------------------ */

/* Learns a vocabulary from texts: of the adjacent pairs that occur most often, by their current
** count, one becomes a token, again and again. The result depends on the texts, their weights and
** the options alone: not on threads, nor on the order of the texts, unless tie says so. */
typedef struct bpe_trainer bpe_trainer;

typedef enum bpe_tie {                /* of pairs with equal counts */
                       BPE_TIE_BYTES, /* the greatest (left bytes, right bytes), compared part by
                                         part */
                       BPE_TIE_IDS,   /* the smallest (left id, right id) */
                       BPE_TIE_FIRST  /* the one met first when the current sequences are read in
                                         text order */
} bpe_tie;

typedef enum bpe_place {                  /* of the special tokens' ids */
                         BPE_PLACE_LAST,  /* after bytes and merges */
                         BPE_PLACE_FIRST, /* before the bytes */
                         BPE_PLACE_AFTER_BYTES
} bpe_place;

typedef struct bpe_train_progress {
  bool merging;         /* false: still counting */
  uint64_t rows, bytes; /* so far */
  uint64_t distinct;    /* pieces; while threads count, those they have handed in */
  uint32_t merges, wanted;
  uint64_t count_ns, merge_ns; /* spent in either phase */
} bpe_train_progress;

enum { BPE_MOST_THREADS = 1024 }; /* more are not made */

typedef struct bpe_train_options {
  const char *pattern; /* NULL: o200k; a name or a regex */
  size_t pattern_len;
  bool is_regex;
  bool pretokenized;        /* texts are pieces already: the pattern is stored, not applied */
  const bpe_name *specials; /* texts are cut at them; not empty, none twice */
  size_t n_specials;
  bpe_place place;
  const uint32_t *bos, *eos; /* by index into specials */
  size_t n_bos, n_eos;
  bool gpt2_bytes; /* ids of the bytes: printable ones first, not by value */
  bpe_tie tie;
  uint64_t min_frequency;    /* a pair that occurs less often is not merged; 0 means 1 */
  uint64_t max_token_length; /* in bytes; 0: no limit */
  unsigned threads;          /* 0: one per core; 1: no thread is made */
  int (*stop)(void *ctx);    /* asked by the calling thread every few ms; non-zero ends it */
  void *stop_ctx;
  void (*progress)(void *ctx, const bpe_train_progress *); /* told now and then; NULL: nobody */
  void *progress_ctx;
} bpe_train_options;

/* vocab_size counts bytes, merges and special tokens; too small for bytes and special tokens is
** BPE_MISUSE, as are options that contradict each other. All options are copied. */
BPE_CHECK bpe_status bpe_trainer_new(const bpe_alloc *, uint32_t vocab_size,
                                     const bpe_train_options *, bpe_error *, bpe_trainer **out);
/* The text counts `weight` times, at most 2^63 - 1; 0: not at all. It is read or copied before
** this returns. After a failure every call fails the same way. */
BPE_CHECK bpe_status bpe_trainer_add(bpe_trainer *, const void *text, size_t len, uint64_t weight,
                                     bpe_error *);
/* Fewer merges than asked for are a result: there was nothing left to merge. Once only. */
BPE_CHECK bpe_status bpe_trainer_finish(bpe_trainer *, bpe_error *, bpe_model **out);
void bpe_trainer_free(bpe_trainer *); /* at any time, also while its threads count */

/* Exactly the tokenizer that training to vocab_size would have given instead: bytes, all special
** tokens, the first merges. BPE_MISUSE: the model was not made by training, or vocab_size is not
** between its bytes and specials and all of it, or the size that training was asked for, where it
** ended with less. */
BPE_CHECK bpe_status bpe_model_cut(const bpe_model *, uint32_t vocab_size, bpe_error *,
                                   bpe_model **out);

/* ---- UTF-8 -------------------------------------------------------------------------------- */

typedef enum bpe_repair {
  BPE_REPAIR_REPLACE, /* U+FFFD for each maximal subpart */
  BPE_REPAIR_STRICT,  /* BPE_BADTEXT with the offset of the first malformed byte */
  BPE_REPAIR_IGNORE,  /* malformed bytes are left out */
  BPE_REPAIR_HOLD     /* as REPLACE, but an incomplete character at the end is left out */
} bpe_repair;

/* Appends the text with its malformed parts treated as said. */
BPE_CHECK bpe_status bpe_utf8_repair(const void *text, size_t len, bpe_repair, bpe_error *,
                                     bpe_buffer *);
bool bpe_utf8_valid(const void *text, size_t len);
/* The same of a text that can be long: asks the allocator's stop. */
BPE_CHECK bpe_status bpe_utf8_check(const bpe_alloc *, const void *text, size_t len, bpe_error *,
                                    bool *valid);
/* Where to cut the JSON text[at .. len) that a parser is given in parts, so that none ends inside
** a string, number or word: a place behind `at` at about 64 KiB, or `len`. 0: one of them is
** longer than BPE_JSON_LONGEST. text[at] is no place inside one. */
enum { BPE_JSON_LONGEST = 1 << 22 };
size_t bpe_json_part(const void *text, size_t len, size_t at);
/* Bytes of the character at text[0]: 1-4 for a well-formed one, else the length of the maximal
** subpart, which counts as one character. len > 0. */
size_t bpe_utf8_next(const void *text, size_t len);

#endif
