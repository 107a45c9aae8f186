/* form.h - ids as bytes: JSON, or packed in 16 or 32 bits, little-endian.
**
** Writers put ids where room was made for the most that they can take, and FORM_SLACK bytes more;
** they return where the ids end. The form is a constant wherever these are used, so each use has
** the code of one form.
**
**     to = write_id(FORM_JSON, to, 15339);      "15339," and a few bytes behind it are written
*/
#ifndef FORM_H
#define FORM_H

#include "pieces.h"

typedef enum form { FORM_JSON, FORM_16, FORM_32 } form;

/* Bytes of an id at most, in each form; writers may write FORM_SLACK bytes more. */
static const size_t most_bytes[] = {11, 2, 4};
/* Bytes that four bytes of text usually give: one id and a bit. */
static const size_t usual_bytes[] = {6, 2, 4};
enum { FORM_SLACK = 128 };

static ALWAYS_INLINE void put_word(uint8_t *to, uint64_t word) {
#if LITTLE_ENDIAN_WORDS
  memcpy(to, &word, 8);
#else
  for (int k = 0; k < 8; k++) to[k] = (uint8_t)(word >> 8 * k);
#endif
}

/* Decimal digits and a comma. Below 10^8 the number is cut into two halves of four digits, these
** into quarters of two, those into digits, each in a lane of its own of one word; the leading
** zeros are then shifted out. */
static ALWAYS_INLINE uint8_t *write_decimal(uint8_t *to, uint32_t id) {
  if (id < 100000000) {
    const uint64_t halves = id / 10000 | (uint64_t)(id % 10000) << 32;
    const uint64_t hundreds = halves * 10486 >> 20 & UINT64_C(0x0000007f0000007f);
    const uint64_t quarters = hundreds | (halves - 100 * hundreds) << 16;
    const uint64_t tens = quarters * 103 >> 10 & UINT64_C(0x000f000f000f000f);
    const uint64_t digits = tens | (quarters - 10 * tens) << 8;
    const unsigned zeros = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) / 8;
    put_word(to, (digits | UINT64_C(0x3030303030303030)) >> 8 * zeros);
    to += 8 - zeros;
  } else {
    uint8_t digits[10];
    size_t at = sizeof digits;
    do digits[--at] = (uint8_t)('0' + id % 10);
    while ((id /= 10) != 0);
    memcpy(to, digits + at, sizeof digits - at);
    to += sizeof digits - at;
  }
  *to++ = ',';
  return to;
}

static ALWAYS_INLINE uint8_t *write_32(uint8_t *to, uint32_t id) {
#if LITTLE_ENDIAN_WORDS
  memcpy(to, &id, 4);
#else
  for (int k = 0; k < 4; k++) to[k] = (uint8_t)(id >> 8 * k);
#endif
  return to + 4;
}

/* Writes one id; NULL if it does not fit. */
static ALWAYS_INLINE uint8_t *write_id(form f, uint8_t *to, uint32_t id) {
  if (f == FORM_JSON) return write_decimal(to, id);
  if (f == FORM_32) return write_32(to, id);
  if (id > UINT16_MAX) return NULL;
  to[0] = (uint8_t)id;
  to[1] = (uint8_t)(id >> 8);
  return to + 2;
}

/* Writes the ids of the batch's pieces from *at on, up to the first whose ids are not kept or do
** not fit. Returns where they end; *at: that piece. */
static ALWAYS_INLINE uint8_t *write_kept(form f, const piece_table *t, const piece_batch *b,
                                         size_t *at, uint8_t *to) {
  size_t i = *at;
  for (; i < b->n && pieces_has_ids(b->values[i]); i++) {
    const uint32_t value = b->values[i];
    const uint8_t *const ids = pieces_ids(t, value);
    const size_t n = pieces_count(value);
    uint8_t *end = write_id(f, to, pieces_first_id(t, value, ids));
    for (size_t k = 1; k < n && end != NULL; k++) end = write_id(f, end, kept_id(t, ids, n, k));
    if (end == NULL) break;
    to = end;
  }
  *at = i;
  return to;
}

/* The same for FORM_32. Most pieces have one id, few more than four, so four are written, whatever
** the number: a branch on it would often be guessed wrong. */
static inline uint8_t *write_kept_32(const piece_table *t, const piece_batch *b, size_t *at,
                                     uint8_t *to) {
  const size_t n_pieces = b->n;
  size_t i = *at;
  for (; i < n_pieces && pieces_has_ids(b->values[i]); i++) {
    const uint32_t value = b->values[i];
    const uint8_t *const ids = pieces_ids(t, value);
    const size_t n = pieces_count(value);
    write_32(to, pieces_first_id(t, value, ids));
    for (size_t k = 1; k < 4; k++) write_32(to + 4 * k, kept_id(t, ids, n, k));
    for (size_t k = 4; k < n; k++) write_32(to + 4 * k, kept_id(t, ids, n, k));
    to += 4 * n;
  }
  *at = i;
  return to;
}

#endif
