/* encode.h - what the core shares of encode.c beside the walk of bpe.h: one piece at a time.
**
** A walk finds the pieces of a text and encodes each. Who finds pieces in another way, because it
** goes back, or looks at a text that is not all there yet, encodes them here, through the same
** table of pieces:
**
**     bpe_piece p = {.start = 3, .stop = 8};
**     st = coder_piece(c, text, len, &options, &p, e);      // p.ids[0 .. p.n_ids - 1]
*/
#ifndef ENCODE_H
#define ENCODE_H

#include "merge.h"
#include "model.h"

/* Fills the ids of the piece text[p->start .. p->stop), which are valid until the coder's next
** piece. text[0 .. len) may be read. Of the options only stop counts. */
bpe_status coder_piece(bpe_coder *, const uint8_t *text, size_t len, const bpe_walk_options *,
                       bpe_piece *p, bpe_error *);

/* What is split of the walk's latest stretch: the text, or what it is normalized to. */
typedef struct walk_base {
  const uint8_t *bytes;
  size_t len;
} walk_base;
walk_base walk_get_base(const bpe_walk *);
/* The place in the base of a place in the stretch where normalizer_cut cuts. */
size_t walk_base_place(const bpe_walk *, size_t at);
/* Where the last piece ends in the base. */
size_t walk_base_at(const bpe_walk *);
/* Where the walk's text begins in the one that messages about a place are to speak of. */
void walk_set_origin(bpe_walk *, size_t origin);

#endif
