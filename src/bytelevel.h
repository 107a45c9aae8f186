/* bytelevel.h - GPT-2's way of writing bytes as characters, and base64.
**
** Files of the GPT-2 family write a token's bytes as one character each: the printable ones of
** Latin-1 as themselves, the other 68, in order, as U+0100 to U+0143 (so a space is U+0120 and
** 0xad is U+0143). The same order, printable ones first, numbers the single bytes: '!' is 0, NUL
** is 188, space is 220.
**
**     bytelevel_decode("\u0120a", 3, out, &n)  gives the two bytes " a"
*/
#ifndef BYTELEVEL_H
#define BYTELEVEL_H

#include "base.h"

/* The byte that a character stands for, or -1. */
int bytelevel_byte(uint32_t cp);
/* Its character, as one or two bytes of UTF-8. */
size_t bytelevel_char(uint8_t byte, uint8_t out[2]);
/* The byte that GPT-2 numbers `rank`, 0 .. 255. */
uint8_t bytelevel_ranked(unsigned rank);
/* Bytes that well-formed text stands for; out has room for len. False: some character is none of
** the 256. */
bool bytelevel_decode(const char *text, size_t len, uint8_t *out, size_t *n);

/* Strict RFC 4648, padded. out has room for len / 4 * 3. */
bool base64_decode(const char *text, size_t len, uint8_t *out, size_t *n);
void base64_append(bpe_buffer *, const void *bytes, size_t len);

#endif
