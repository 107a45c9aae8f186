/* natural.h - where sentences and paragraphs end, by a rule that fits in a few lines.
**
** A sentence ends behind . ! ? or an ellipsis, and any closing quotes and brackets that follow,
** if white space, a CJK character or the end of the text comes next; behind the full-width marks
** of Chinese and Japanese in any case. White space behind it may belong to it, as far as wanted:
** each place up to the next character is an end.
**
**     He said "No." Then|      the places: behind the quote, and behind the blank
**     3.14|  e.g. this         no end inside the number; one behind "e.g.": it is a rule, no parser
**     好。|「早！」|と         each behind the mark and its bracket
**
** A paragraph ends behind a blank line: a line end that follows a line end, with nothing but
** blanks and tabs between.
*/
#ifndef NATURAL_H
#define NATURAL_H

#include "base.h"

/* Whether text[from .. at) ends so; what comes behind is looked at up to len. from <= at <= len. */
bool is_sentence_end(const uint8_t *text, size_t from, size_t at, size_t len);
bool is_paragraph_end(const uint8_t *text, size_t from, size_t at, size_t len);

#endif
