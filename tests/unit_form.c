/* unit_form.c - ids as bytes: every writer against a twin that prints them one by one.
**
** A batch is made up of random pieces, of one id, of several, of none that are kept, and written
** by each width of registers, in each form, from its start and from behind each piece that stops a
** writer. Nothing may be written outside of the room that was asked for.
*/
#include "../src/form_wide.h"
#include "../src/model.h"

#include "unit.h"

enum { GUARD = 64, MOST_IDS = PIECES_BATCH * PIECES_LONGEST };

static uint32_t ids_of[PIECES_BATCH][PIECES_LONGEST];
static size_t n_of[PIECES_BATCH]; /* 0: a piece whose ids are not kept */
static piece_batch batch;
static uint8_t room[GUARD + MOST_IDS * 11 + FORM_SLACK + GUARD], expected[MOST_IDS * 11];

/* An id with up to `bits` bits, short ones as often as long ones. */
static uint32_t random_id(unsigned bits) {
  const uint32_t most = (1u << (unit_below(bits) + 1)) - 1;
  return unit_random() & most;
}

/* Puts a piece of these ids into the table and returns its value there. */
static uint32_t add(piece_table *t, size_t i, const uint32_t *ids, size_t n, bool keep) {
  const uint8_t text[32] = {(uint8_t)i, (uint8_t)(i >> 8), 7, 7};
  piece_text x;
  piece_text_init(&x, text, sizeof text);
  const piece_key k = pieces_key(&x, 0, 4);
  pieces_add(t, k, text, 4, ids, n, keep);
  return pieces_find(t, &x, k, 0, 4);
}

/* Returns the number of ids that are kept. */
static size_t fill(piece_table *t, size_t n, unsigned bits, uint32_t longest, uint32_t stops) {
  size_t sum = 0;
  batch.n = n;
  for (size_t i = 0; i < n; i++) {
    const bool one = unit_below(4) != 0, kept = stops == 0 || unit_below(stops) != 0;
    const size_t count = one ? 1 : 1 + unit_below(longest);
    for (size_t k = 0; k < count; k++) ids_of[i][k] = random_id(bits);
    if (bits == 24) ids_of[i][0] &= NO_IDS - 1;
    for (size_t k = 0; k < count; k++) ids_of[i][k] -= ids_of[i][k] == NO_IDS;
    n_of[i] = kept ? count : 0;
    batch.values[i] = kept                 ? add(t, i, ids_of[i], count, true)
                      : unit_below(2) == 0 ? 0
                                           : (uint32_t)count << VALUE_BITS | NO_IDS;
    CHECK(pieces_has_ids(batch.values[i]) == kept);
    sum += n_of[i];
  }
  memset(batch.values + n, 0, PIECES_WIDE * sizeof *batch.values);
  return sum;
}

/* What the pieces from `at` on are, up to the first that is not kept, or does not fit: *at. */
static size_t twin(form f, size_t *at) {
  size_t len = 0;
  for (; *at < batch.n && n_of[*at] != 0; ++*at) {
    const uint32_t *ids = ids_of[*at];
    for (size_t k = 0; f == FORM_16 && k < n_of[*at]; k++)
      if (ids[k] > 65535) return len;
    for (size_t k = 0; k < n_of[*at]; k++) {
      char digits[16];
      const int n = snprintf(digits, sizeof digits, "%u,", ids[k]);
      if (f == FORM_JSON) memcpy(expected + len, digits, (size_t)n);
      for (size_t i = 0; f != FORM_JSON && i < most_bytes[f]; i++)
        expected[len + i] = (uint8_t)(ids[k] >> 8 * (unsigned)i);
      len += f == FORM_JSON ? (size_t)n : most_bytes[f];
    }
  }
  return len;
}

/* One call of the writer, from piece `at` on. Returns where the next begins. */
static size_t check_call(form f, const piece_table *t, size_t at, size_t n_ids) {
  size_t stop = at, theirs = at;
  const size_t len = twin(f, &theirs), asked = n_ids * most_bytes[f] + FORM_SLACK;
  memset(room, 0x5a, GUARD + asked + GUARD);
  uint8_t *const to = room + GUARD, *end = NULL;
  if (f == FORM_JSON) end = write_run(FORM_JSON, t, &batch, &stop, to, n_ids);
  if (f == FORM_16) end = write_run(FORM_16, t, &batch, &stop, to, n_ids);
  if (f == FORM_32) end = write_run(FORM_32, t, &batch, &stop, to, n_ids);
  CHECK(stop == theirs && (size_t)(end - to) == len && memcmp(to, expected, len) == 0);
  size_t outside = 0;
  for (size_t i = 0; i < GUARD; i++) outside += (size_t)(room[i] != 0x5a) + (size_t)(to[asked + i] != 0x5a);
  CHECK(outside == 0);
  return stop;
}

static void check_form(form f, unsigned bits, enum piece_width width, uint32_t longest,
                       uint32_t stops, const vocab *v) {
  piece_table t;
  if (!CHECK(pieces_init(&t, &unit_alloc, v, 1 << 20))) return;
  CHECK(t.high_bits == (bits > 18 ? 8 : 2));
  if (width < t.width) t.width = width;
  for (int round = 0; round < 60; round++) {
    const size_t n = round < 40 ? unit_below(40) : PIECES_BATCH - unit_below(3);
    const size_t n_ids = fill(&t, n, bits, longest, stops);
    for (size_t at = 0; at <= n; at++) at = check_call(f, &t, at, n_ids);
  }
  pieces_clear(&t);
}

/* A tokenizer with one id of so many bits. */
static bpe_model *with_id(unsigned bits) {
  bpe_builder *b = unit_builder("gpt2");
  const uint32_t id = bits == 8 ? 256 : (1u << bits) - 1 - (bits == 24);
  bpe_builder_token(b, id, BPE_TOKEN, "ab", 2);
  bpe_builder_merge(b, 0, 'a', 'b', id, 0);
  bpe_model *m = NULL;
  CHECK(bpe_builder_finish(b, NULL, &m) == BPE_OK);
  return m;
}

/* Numbers of every length, at the ends of each, in runs of any length. */
static void check_decimals(void) {
  uint64_t power = 1;
  for (int digits = 1; digits <= 10; digits++, power *= 10) {
    for (int side = -1; side <= 1; side++) {
      const uint32_t id = (uint32_t)(power - (power == 1) + (uint64_t)(int64_t)side * (power > 1));
      char text[16];
      uint8_t to[32];
      const int n = snprintf(text, sizeof text, "%u,", id);
      CHECK(write_decimal(to, id) == to + n && memcmp(to, text, (size_t)n) == 0);
    }
  }
}

int main(void) {
  static const unsigned bits[] = {8, 17, 18, 19, 24};
  static const uint32_t longest[] = {4, 12, PIECES_LONGEST}, stops[] = {0, 30, 3};
  check_decimals();
  for (size_t b = 0; b < sizeof bits / sizeof *bits; b++) {
    bpe_model *m = with_id(bits[b]);
    for (int w = 0; m != NULL && w < 3; w++)
      for (int f = 0; f < 3; f++)
        for (int k = 0; k < 3; k++)
          check_form((form)f, bits[b], (enum piece_width)w, longest[k], stops[k], &m->v);
    bpe_model_free(m);
  }
  return unit_summary();
}
