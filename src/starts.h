/* starts.h - the splitters' rules as algebra on the masks of block.h.
**
** A block begins where a piece is known to start, so nothing has to be carried over from the text
** before it. "m << 1" asks about the byte before, "m >> 1" about the byte after, and adding to a
** mask carries through a run of set bits:
**
**     text            a   c a t ' s   2 3 4 5   ,   i f ! \n x
**     letter          1 . 1 1 1 . 1 . . . . . . . . 1 1 . . 1
**     blank           . 1 . . . . . 1 . . . . . 1 . . . . . .      (also runs of white space)
**     starts (cl100k) 1 1 . . . 1 . 1 1 . . 1 1 . 1 . . 1 . 1
**
** A text is runs of letters L, digits N, white space S and others O, and the rules say where a
** piece starts in terms of runs. Let a run's first byte be X & ~(X << 1).
**
**   N   a run's first byte, and every max_digits-th after it
**   S   a run's first byte; its last byte, when something else follows: \s+(?!\S) gave it back.
**       In cl100k and o200k a newline ends \s*[\r\n]+, so the byte after the last newline of a
**       run too; and newlines right after others belong to those, they are not S at all
**   O   a run's first byte, unless a blank before it was given back: " ?" takes it
**   L   a run's first byte, unless what is before it is prefixed to it: in gpt2 a blank; in the
**       others any white space but a newline, or an other that is a run and a piece of its own.
**       In o200k also every upper-case letter after a lower-case one
**
** Contractions are few; they are looked at one by one. Each function gives the places where a
** piece starts, up to the last that the block's known bytes decide: a run of white space or a
** contraction that they cut is left out. Bit 0 is not set: that a piece starts there is what the
** caller knows. 0: nothing is decided. scan.c has the patterns, and the definition for one piece.
*/
#ifndef STARTS_H
#define STARTS_H

#include "block.h"

/* Set bits at and below bit i < 64. */
static ALWAYS_INLINE uint64_t up_to(unsigned i) {
  return ~UINT64_C(0) >> ((63 - i) & 63);
}

static ALWAYS_INLINE uint64_t first_of_run(uint64_t m) {
  return m & ~(m << 1);
}

/* The set bits of m that follow without a gap on those of `from`, which are set in m too, one at
** most in each run of m. */
static ALWAYS_INLINE uint64_t rest_of_run(uint64_t m, uint64_t from) {
  return m & ~(m + from);
}

/* Length of a contraction at s[0], an apostrophe, or 0; `folded` ignores case, by which U+017F is
** an s too. Looks at no more than s[2]. */
static ALWAYS_INLINE unsigned starts_contraction(const uint8_t *s, bool folded) {
  const uint8_t fold = folded ? 0x20 : 0;
  const uint8_t c = s[1] | fold;
  if (c == 's' || c == 't' || c == 'm' || c == 'd') return 2;
  if (c == 'r' || c == 'v') return (s[2] | fold) == 'e' ? 3 : 0;
  if (c == 'l') return (s[2] | fold) == 'l' ? 3 : 0;
  return folded && s[1] == 0xc5 && s[2] == 0xbf ? 3 : 0;
}

static ALWAYS_INLINE uint64_t starts_digits(uint64_t digit, unsigned max_digits) {
  if (max_digits == 1) return digit;
  uint64_t starts = first_of_run(digit);
  /* Digits with three before them in their run: each third of these starts a piece. */
  uint64_t later = digit & digit << 1 & digit << 2 & digit << 3;
  while (later != 0) {
    const unsigned i = lowest_bit(later);
    starts |= UINT64_C(1) << i;
    later &= ~(UINT64_C(7) << i);
  }
  return starts;
}

/* The last byte that is decided. Where what is known ends inside white space, only what comes
** before that run is, and the run's first byte. */
static ALWAYS_INLINE unsigned starts_decided(uint64_t space, unsigned known) {
  const uint64_t before = ~space & up_to(known - 1);
  if (before == 0) return 0;
  return highest_bit(before) + (unsigned)(space >> (known - 1) & 1);
}

static ALWAYS_INLINE uint64_t starts_gpt2(const block_masks *m, const uint8_t *s) {
  const uint64_t letter = m->letter, digit = m->digit, space = m->space;
  const uint64_t other = ~(letter | digit | space);
  unsigned last = starts_decided(space, m->known);
  const uint64_t not_taken = ~(m->blank << 1);
  uint64_t starts =
      first_of_run(space) | (space & ~(space >> 1)) |
      ((first_of_run(letter) | first_of_run(digit) | first_of_run(other)) & not_taken);
  for (uint64_t quotes = m->quote & first_of_run(other) & not_taken; quotes != 0;
       quotes &= quotes - 1) {
    const unsigned i = lowest_bit(quotes);
    if (i > last) break;
    if (i + 3 >= m->known) {
      last = i;
      break;
    }
    const unsigned n = starts_contraction(s + i, false);
    if (n == 0) continue;
    starts &= ~(UINT64_C(6) << i); /* inside it */
    starts |= UINT64_C(1) << (i + n);
  }
  return starts & up_to(last) & ~UINT64_C(1);
}

/* White space of cl100k and o200k, `space` being without the newlines that others took. *last is
** lowered where the block does not decide. */
static ALWAYS_INLINE uint64_t starts_space(const block_masks *m, uint64_t space, unsigned *last) {
  const uint64_t newline = m->newline & space, plain = space & ~newline;
  /* Runs of plain white space after a newline: a piece of their own if no newline follows them. */
  const uint64_t after = plain & newline << 1;
  const uint64_t behind = (plain + after) & ~plain; /* the byte behind each such run */
  const uint64_t undecided = behind & newline;
  if (undecided != 0) { /* blank lines with blanks in them: leave the run to scan_piece */
    const uint64_t runs = first_of_run(space) & up_to(lowest_bit(undecided));
    const unsigned run = highest_bit(runs);
    if (run < *last) *last = run;
  }
  return first_of_run(space) | after | (plain & ~(m->space >> 1));
}

static ALWAYS_INLINE uint64_t starts_cl100k(const block_masks *m, const uint8_t *s,
                                            unsigned max_digits) {
  const uint64_t letter = m->letter, digit = m->digit;
  const uint64_t other = ~(letter | digit | m->space);
  const uint64_t space = m->space & ~rest_of_run(m->newline, other << 1 & m->newline);
  const uint64_t plain = space & ~m->newline;
  unsigned last = starts_decided(m->space, m->known);
  uint64_t starts = starts_digits(digit, max_digits) | starts_space(m, space, &last);
  const uint64_t alone = first_of_run(other) & ~(m->blank << 1);
  starts |= alone | (first_of_run(letter) & ~(plain << 1) & ~next_chars(alone, m->cont));
  for (uint64_t quotes = m->quote & alone; quotes != 0; quotes &= quotes - 1) {
    const unsigned i = lowest_bit(quotes);
    if (i > last) break;
    if (i + 3 >= m->known) {
      last = i;
      break;
    }
    const unsigned n = starts_contraction(s + i, true);
    if (n != 0) starts |= UINT64_C(1) << (i + n);
  }
  return starts & up_to(last) & ~UINT64_C(1);
}

/* Newlines and slashes that [\r\n/]* takes after others: from the first newline of a run of both
** that has an other before it. A slash is an other itself where it is not taken. */
static ALWAYS_INLINE uint64_t starts_tails(const block_masks *m, uint64_t other) {
  const uint64_t tail = m->newline | m->slash;
  uint64_t taken = 0;
  for (uint64_t from = other << 1 & m->newline; from != 0;) {
    const uint64_t run = rest_of_run(tail, from & (0 - from));
    taken |= run;
    from &= ~run;
  }
  return taken;
}

/* contractions: (?i:C)? after a word. */
static ALWAYS_INLINE uint64_t starts_o200k(const block_masks *m, const uint8_t *s,
                                           unsigned max_digits, bool contractions) {
  const uint64_t letter = m->letter, digit = m->digit;
  uint64_t other = ~(letter | digit | m->space);
  const uint64_t taken = starts_tails(m, other);
  const uint64_t space = m->space & ~taken;
  const uint64_t plain = space & ~m->newline;
  other &= ~taken;
  unsigned last = starts_decided(m->space, m->known);
  uint64_t starts = starts_digits(digit, max_digits) | starts_space(m, space, &last);
  const uint64_t alone = first_of_run(other) & ~(m->blank << 1);
  starts |= alone | (first_of_run(letter) & ~(plain << 1) & ~next_chars(alone, m->cont));
  starts |= m->upper & (letter & ~m->upper) << 1;
  /* Upper-case after caseless letters belongs to them or not by what follows, however far. */
  const uint64_t mixed = m->upper & m->caseless << 1;
  if (mixed != 0) {
    const uint64_t runs = first_of_run(letter) & up_to(lowest_bit(mixed));
    const unsigned run = runs == 0 ? 0 : highest_bit(runs);
    if (run < last) last = run;
  }
  unsigned end = 0; /* of the contraction before: a piece starts there, so no word ends there */
  uint64_t quotes = contractions ? m->quote & letter << 1 : 0;
  for (; quotes != 0; quotes &= quotes - 1) {
    const unsigned i = lowest_bit(quotes);
    if (i > last) break;
    if (i + 3 >= m->known) {
      last = i - 1;
      break;
    }
    const unsigned n = i == end ? 0 : starts_contraction(s + i, true);
    if (n == 0) continue;
    starts &= ~(UINT64_C(7) << i);
    starts |= UINT64_C(1) << (i + n);
    end = i + n;
  }
  return starts & up_to(last) & ~UINT64_C(1);
}

#endif
