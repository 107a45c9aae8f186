/* rewalk.h - a walk that can go back: the rest of a text, from any byte on, as a text of its own.
**
** Cutting a text into windows means to begin again and again: where one window ends the next
** begins, and it is split and encoded as if nothing stood before it. bpe_walk_start would do, but
** asks the whole rest about well-formed bytes and special tokens each time, which is quadratic.
** A rewalk keeps what it knows of the text ahead:
**
**     rewalk_start(&r, text, len, 0, len, e);
**     while ((st = rewalk_next(&r, &p, e)) == BPE_OK) ... p.start, p.stop, p.ids ...
**     st = rewalk_seek(&r, p.start, e);                      // the same text from there on
**
** Long pieces are kept with their tokens. Every list of tokens that stand side by side in the
** encoding of a piece is the encoding of its bytes (merge.c says why), so a piece that is part of
** a kept one, from token to token, is not merged again. Nor is a scanner sent through a long piece
** again, from where its end is the one that was found. What is left of a text that is changed before
** it is split is the business of stretch.h.
**
** What it refuses: BOS and EOS, and forbidden special tokens; both belong to whole texts.
*/
#ifndef REWALK_H
#define REWALK_H

#include "stretch.h"

/* A long piece and where its tokens end. */
typedef struct long_piece {
  size_t start, stop; /* of the text; start == stop: none is kept */
  uint32_t *ids;      /* owned */
  size_t *ends;       /* owned; of the text */
  size_t n, ids_cap, ends_cap;
} long_piece;

typedef struct rewalk {
  bpe_coder *coder;
  bpe_alloc alloc;
  bpe_walk_options options;
  const bpe_finder *finder; /* NULL: no special tokens are looked for */
  const bpe_pattern *pattern;
  const uint8_t *text;
  size_t len, stop; /* readable bytes; where the text ends */
  bool plain;       /* rewalk_is_plain; otherwise what is left of a stretch is walked by `left` */
  stretch_walk left;
  bpe_walk *walk; /* owned; NULL, or walks all of the rest: a special token looks back */
  size_t base;    /* where the text of `walk` or `left` begins */
  splitter split; /* of the stretch before `special` */
  special_match special;
  size_t stretch; /* where it begins */
  long_piece own;
  const long_piece *known; /* own, or another rewalk's */
  scan_found found;        /* the last long piece that a scanner went through, */
  scan_found inner;        /* and the last one that begins and ends inside that */
  size_t asked;            /* bytes since the last question to stop */
  size_t at;
} rewalk;

/* Whether each byte of a text belongs to exactly one token as long as its bytes, and where a piece
** or special token is depends on no byte before it. */
bool rewalk_is_plain(const bpe_model *, const bpe_walk_options *);

/* Zeroed before; `known` NULL: keeps long pieces itself. Clear it whatever this returns. */
bpe_status rewalk_init(rewalk *, bpe_coder *, const bpe_walk_options *, const long_piece *known,
                       bpe_error *);
void rewalk_clear(rewalk *);
/* The text is text[from .. to), of text[0 .. len) that may be read. */
bpe_status rewalk_start(rewalk *, const uint8_t *text, size_t len, size_t from, size_t to,
                        bpe_error *);
/* Fills the ids of a piece that is kept, or part of a kept one, and *ends with where its tokens
** end. False: it is not. */
bool rewalk_find_known(const long_piece *, bpe_piece *, const size_t **ends);
/* From now on the text is what follows `at`, an end of a token at most as far as the walk is. */
bpe_status rewalk_seek(rewalk *, size_t at, bpe_error *);
/* BPE_OK: the next piece, offsets of the whole text; BPE_DONE: there is none. */
bpe_status rewalk_next(rewalk *, bpe_piece *, bpe_error *);

#endif
