/* unicode.h - class of a code point, by the Unicode version of the reference tokenizers.
**
** unicode_table.c is generated (data/make_unicode.py). The classes are those that published
** patterns tell apart, so each is one value and a set of classes is a bit mask:
**
**     class_in(unicode_class(0x4e2d), CLASS_BIT(CLASS_LETTER) | CLASS_BIT(CLASS_MARK))
*/
#ifndef UNICODE_H
#define UNICODE_H

#include <stdint.h>

enum {
  CLASS_OTHER,  /* everything below does not apply: controls, unassigned, private use */
  CLASS_SPACE,  /* \s: White_Space */
  CLASS_NUMBER, /* \p{N} */
  CLASS_UPPER,  /* \p{Lu} \p{Lt} */
  CLASS_LOWER,  /* \p{Ll} */
  CLASS_LETTER, /* \p{Lm} \p{Lo} */
  CLASS_MARK,   /* \p{M} */
  CLASS_PUNCT,  /* \p{P} */
  CLASS_SYMBOL  /* \p{S} */
};

#define CLASS_BIT(c) (1u << (c))
#define CLASSES_L (CLASS_BIT(CLASS_UPPER) | CLASS_BIT(CLASS_LOWER) | CLASS_BIT(CLASS_LETTER))

extern const uint8_t unicode_stage1[4352];         /* code point >> 8 -> block */
extern const uint8_t unicode_stage2[][256];        /* block, low byte -> class */
extern const uint32_t unicode_word_numbers[83][2]; /* first, last: \p{Nd} and \p{Nl}, in order */
extern const char unicode_version[];

/* cp <= 0x10ffff */
static inline unsigned unicode_class(uint32_t cp) {
  return unicode_stage2[unicode_stage1[cp >> 8]][cp & 0xff];
}

#endif
