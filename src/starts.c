/* starts.c - see starts.h; scan.c has the patterns and what they mean for one piece.
**
** A text is runs of letters L, digits N, white space S and others O, and the rules say where a
** piece starts in terms of runs. Let a run's first byte be X & ~(X << 1).
**
**   N   a run's first byte, and every max_digits-th after it
**   S   a run's first byte; its last byte, when something else follows: \s+(?!\S) gave it back.
**       In cl100k and o200k a newline ends \s*[\r\n]+, so the byte after the last newline of a
**       run too; and newlines right after others belong to those, they are not S at all
**   O   a run's first byte, unless a blank before it was given back: " ?" takes it
**   L   a run's first byte, unless the byte before it is prefixed to it: in gpt2 a blank; in the
**       others any white space but a newline, or an other that is a run and a piece of its own
**       In o200k also every upper-case letter after a lower-case one
**
** Contractions are few; they are looked at one by one.
*/
#include "starts.h"

/* Set bits at and below / below bit i. */
static inline uint64_t up_to(unsigned i) {
  return ~UINT64_C(0) >> (63 - i);
}
static inline uint64_t below(unsigned i) {
  return (UINT64_C(1) << i) - 1;
}

static inline uint64_t first_of_run(uint64_t m) {
  return m & ~(m << 1);
}

/* The set bits of m that follow without a gap on those of `from`, which are set in m too, one at
** most in each run of m: adding carries through the rest of the run. */
static inline uint64_t rest_of_run(uint64_t m, uint64_t from) {
  return m & ~(m + from);
}

unsigned starts_contraction(const uint8_t *s, bool folded) {
  const uint8_t fold = folded ? 0x20 : 0;
  const uint8_t c = s[1] | fold;
  if (c == 's' || c == 't' || c == 'm' || c == 'd') return 2;
  if (c == 'r' || c == 'v') return (s[2] | fold) == 'e' ? 3 : 0;
  return c == 'l' && (s[2] | fold) == 'l' ? 3 : 0;
}

static uint64_t digit_starts(uint64_t digit, unsigned max_digits) {
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

/* Where what is known ends inside white space, only what comes before that run is decided, and
** the run's first byte. */
static unsigned decided_spaces(uint64_t space, unsigned known) {
  if (!(space >> (known - 1) & 1)) return known - 1;
  const uint64_t before = ~space & up_to(known - 1);
  return before == 0 ? 0 : highest_bit(before) + 1;
}

uint64_t starts_gpt2(const block_masks *m, const uint8_t *s, unsigned known, unsigned max_digits) {
  (void)max_digits; /* runs of digits are not limited */
  const uint64_t letter = m->letter, digit = m->digit, space = m->space;
  const uint64_t other = ~(letter | digit | space | m->high);
  unsigned last = decided_spaces(space, known);
  const uint64_t not_taken = ~(m->blank << 1);
  uint64_t starts = first_of_run(space) | (space & ~(space >> 1)) |
                    (first_of_run(letter) & not_taken) | (first_of_run(digit) & not_taken) |
                    (first_of_run(other) & not_taken);
  for (uint64_t quotes = m->quote & first_of_run(other) & not_taken; quotes != 0;
       quotes &= quotes - 1) {
    const unsigned i = lowest_bit(quotes);
    if (i > last) break;
    if (i + 3 >= known) {
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
static uint64_t space_starts(const block_masks *m, uint64_t space, unsigned *last) {
  const uint64_t newline = m->newline & space, plain = space & ~newline;
  /* Runs of plain white space after a newline: a piece of their own if no newline follows them. */
  const uint64_t after = plain & newline << 1;
  const uint64_t behind = (plain + after) & ~plain; /* the byte behind each such run */
  const uint64_t undecided = behind & newline;
  if (undecided != 0) { /* blank lines with blanks in them: leave the run to scan_piece */
    const uint64_t runs = first_of_run(space) & below(lowest_bit(undecided));
    const unsigned run = highest_bit(runs);
    if (run < *last) *last = run;
  }
  return first_of_run(space) | after | (plain & ~(m->space >> 1));
}

uint64_t starts_cl100k(const block_masks *m, const uint8_t *s, unsigned known,
                       unsigned max_digits) {
  const uint64_t letter = m->letter, digit = m->digit;
  const uint64_t other = ~(letter | digit | m->space | m->high);
  const uint64_t space = m->space & ~rest_of_run(m->newline, other << 1 & m->newline);
  const uint64_t plain = space & ~m->newline;
  unsigned last = decided_spaces(m->space, known);
  uint64_t starts = digit_starts(digit, max_digits) | space_starts(m, space, &last);
  const uint64_t alone = first_of_run(other) & ~(m->blank << 1);
  starts |= alone | (first_of_run(letter) & ~(plain << 1) & ~(alone << 1));
  for (uint64_t quotes = m->quote & alone; quotes != 0; quotes &= quotes - 1) {
    const unsigned i = lowest_bit(quotes);
    if (i > last) break;
    if (i + 3 >= known) {
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
static uint64_t slashed_tails(const block_masks *m, uint64_t other) {
  const uint64_t tail = m->newline | m->slash;
  uint64_t taken = 0;
  for (uint64_t from = other << 1 & m->newline; from != 0;) {
    const uint64_t run = rest_of_run(tail, from & (0 - from));
    taken |= run;
    from &= ~run;
  }
  return taken;
}

uint64_t starts_o200k(const block_masks *m, const uint8_t *s, unsigned known, unsigned max_digits,
                      bool contractions) {
  const uint64_t letter = m->letter, digit = m->digit;
  uint64_t other = ~(letter | digit | m->space | m->high);
  const uint64_t taken = slashed_tails(m, other);
  const uint64_t space = m->space & ~taken;
  const uint64_t plain = space & ~m->newline;
  other &= ~taken;
  unsigned last = decided_spaces(m->space, known);
  uint64_t starts = digit_starts(digit, max_digits) | space_starts(m, space, &last);
  const uint64_t alone = first_of_run(other) & ~(m->blank << 1);
  starts |= alone | (first_of_run(letter) & ~(plain << 1) & ~(alone << 1));
  starts |= m->upper & (letter & ~m->upper) << 1;
  unsigned end = 0; /* of the contraction before: a piece starts there, so no word ends there */
  uint64_t quotes = contractions ? m->quote & letter << 1 : 0;
  for (; quotes != 0; quotes &= quotes - 1) {
    const unsigned i = lowest_bit(quotes);
    if (i > last) break;
    if (i + 3 >= known) {
      last = i - 1;
      break;
    }
    const unsigned n = i == end ? 0 : starts_contraction(s + i, true);
    if (n == 0) continue;
    starts &= ~(UINT64_C(7) << i & below(i + n));
    starts |= UINT64_C(1) << (i + n);
    end = i + n;
  }
  return starts & up_to(last) & ~UINT64_C(1);
}
