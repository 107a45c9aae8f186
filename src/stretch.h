/* stretch.h - what is left of a stretch, the text between two special tokens, again and again.
**
** The rest of a text is normalized and split as a text of its own, and of that a window wants the
** first few hundred tokens. To normalize and encode all of it each time is quadratic, so
**
**   - where the pattern is a scanner, a part is walked instead, from `from` to a place that
**     normalizing does not see across. Its pieces are true as far as the scanner is certain of
**     them; if that is not enough, the part is made twice as long and walked again.
**
**         from                      twice as long
**         |the |cat |sat |on t|        ...        |
**                         ^^^^ not certain
**
**   - where the stretch is one piece, its tokens are kept when it is walked first. Later a part is
**     encoded, until one of its tokens ends where a kept one does and the next kept one would not
**     merge with it: from there on the tokens are the kept ones.
**
**         kept                    |_The| cat| sat| on| the| mat|   ...
**         from behind |_The|          |_| cat| sat|      a part, with what is put before a text
**                                     ^^^^^^ and from here on as kept
**
** Any other pattern, and any normalizer that one cannot cut, has the whole rest walked.
**
**     stretch_start(&s, text, from, stop, e);
**     while ((st = stretch_next(&s, &p, e)) == BPE_OK) ... p.start, s.from + p.stops[i] ...
*/
#ifndef STRETCH_H
#define STRETCH_H

#include "encode.h"

typedef struct stretch_tokens {
  size_t start, stop; /* of the text; start == stop: nothing is kept */
  uint32_t *ids;      /* owned, and so are the other two */
  size_t *ends;       /* of what the text is normalized to */
  size_t *stops;      /* of the text, counted from `start` */
  size_t n, ids_cap, ends_cap, stops_cap;
} stretch_tokens;

typedef struct stretch_walk {
  bpe_coder *coder;
  bpe_alloc alloc;
  bpe_walk_options options;
  bool cuts, keeps;    /* by the pattern: parts are walked; tokens are kept */
  size_t late_longest; /* bytes of the longest name that is looked for in the normalized text */
  const uint8_t *text;
  size_t from, stop; /* what is walked, */
  size_t at;         /* and how far */
  bpe_walk *part;    /* owned; of text[from .. part_stop) */
  size_t part_stop;  /* == stop: the part is all there is */
  size_t settled;    /* a piece must end before this place in the part's base */
  size_t n_given;    /* pieces of the part, or tokens of `head` */
  bool joined;       /* not the part: `head`, and `kept` from its token `next` on */
  bpe_walk *whole;   /* owned; NULL, or what `kept` comes from */
  stretch_tokens head, kept;
  size_t next;
  size_t *stops; /* owned; of the tokens that are given, counted from `from` */
  size_t stops_cap;
  pace pace;
} stretch_walk;

/* Zeroed before. Clear it whatever this returns. */
bpe_status stretch_init(stretch_walk *, bpe_coder *, const bpe_walk_options *, bpe_error *);
void stretch_clear(stretch_walk *);
/* No special token of the options begins in text[from .. stop), which is followed by one, or by
** nothing. `text` is another one than before: stretch_forget. */
bpe_status stretch_start(stretch_walk *, const uint8_t *text, size_t from, size_t stop,
                         bpe_error *);
void stretch_forget(stretch_walk *);
/* BPE_OK: the next piece, or the next tokens of one; its start and stop are of the text, its stops
** counted from `from`. */
bpe_status stretch_next(stretch_walk *, bpe_piece *, bpe_error *);

#endif
