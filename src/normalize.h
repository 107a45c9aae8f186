/* normalize.h - what a tokenizer does to text before splitting it, and the way back.
**
** A normalizer is a list of steps: the four Unicode forms, a string replaced by another, a string
** put before the text, a space put before it unless it begins with one. Only well-formed runs are
** changed; malformed bytes pass as they are. The result remembers where it comes from: places of
** the normalized text map to places of the source, rising, and a place inside a stretch that was
** rewritten maps to the end of that stretch in the source.
**
**     source      "e" U+0301 "x"           normal_apply(&t, nfc, ...) : t.text = U+00E9 "x"
**                 0    1      3            normal_source(&t, 2) == 3
**
** Text that a normalizer leaves alone is not copied: t.changed is false.
*/
#ifndef NORMALIZE_H
#define NORMALIZE_H

#include "base.h"

typedef struct normalizer normalizer;

bpe_status normalizer_new(const bpe_alloc *, bpe_error *, normalizer **out);
void normalizer_free(normalizer *);
/* form: nfc, nfd, nfkc or nfkd. False: no such form. */
bool normalizer_is_form(const char *form, size_t len);
bpe_status normalizer_add_form(normalizer *, const char *form, size_t len, bpe_error *);
/* from is not empty and well-formed; so is `to`. */
bpe_status normalizer_add_replace(normalizer *, const char *from, size_t from_len, const char *to,
                                  size_t to_len, bpe_error *);
bpe_status normalizer_add_prepend(normalizer *, const char *text, size_t len, bpe_error *);
bpe_status normalizer_add_prefix_space(normalizer *, bpe_error *);
size_t normalizer_steps(const normalizer *);
/* Only the forms: what replaces single characters by others for the eye alike. */
bool normalizer_is_plain(const normalizer *);
/* Appends the steps as a JSON array: "nfc", {"replace":[a,b]}, {"prepend":a}, "prefix_space". */
void normalizer_write(const normalizer *, bpe_buffer *);
/* Appends them as tokenizer.json has them. marks: spaces are written as U+2581 there. A space put
** before the text by prefix_space is the pre-tokenizer's business there. */
void normalizer_write_hf(const normalizer *, bool marks, bpe_buffer *);
bool normalizer_has_prefix_space(const normalizer *);
/* Whether U+2581 becomes a space, so that a file of the family would have the two turned round. */
bool normalizer_marks_spaces(const normalizer *);

/* One caller's scratch and result. Zero it, set alloc, use it again and again, clear it. */
typedef struct normal_text {
  bpe_alloc alloc;
  const uint8_t *text; /* the result: the source's bytes unless changed */
  size_t len;
  bool changed;
  struct normal_stage *stages; /* owned; one for each step */
  size_t n_stages, n_used;     /* there are; those that changed something, in order */
  int32_t *points;             /* owned; code points of a stretch under way */
  size_t points_cap;
  int (*stop)(void *ctx); /* as in bpe_walk_options */
  void *stop_ctx;
  pace pace; /* of the latest normal_apply and what was asked of its result */
} normal_text;

bpe_status normal_apply(normal_text *, const normalizer *, const uint8_t *s, size_t len,
                        bpe_error *);
/* Place in the source of a place in the result. Asked in rising order. Of no use once the pace is
** stopped. */
size_t normal_source(normal_text *, size_t at);
/* Where the text may be cut: a place behind < cut <= at < len, not far before `at`, such that the
** normalized parts, one behind the other, are the normalized text, but for what is put before each.
** Steps that replace longer strings than a character allow none; n may be NULL. 0: none found. */
size_t normalizer_cut(const normalizer *n, const uint8_t *s, size_t len, size_t behind, size_t at);
/* The place in the result of such a cut in the source. */
size_t normal_place(const normal_text *, size_t at);
void normal_clear(normal_text *);

#endif
