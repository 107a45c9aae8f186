/* prop_window.c - windows over random texts against brute force over every number of tokens.
**
**     prop_window [--cases N] [--seed S] [--only CASE]
**
** What is checked is in window_check.h. Limits are small, texts short and made of what makes counts
** fall as a text grows: blanks, line ends, contractions, cut characters.
*/
#define _POSIX_C_SOURCE 200809L
#include "prop_altered.h"
#include "prop_subject.h"
#include "window_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 64, N_BUILTINS = 5, MAX_FAILURES = 10 };

static const char *const builtins[N_BUILTINS] = {"gpt2", "cl100k_base", "o200k_base",
                                                 "o200k_harmony", "p50k_edit"};

/* ---- Texts -------------------------------------------------------------------------------- */

/* What cuts change: runs of blanks and line ends, quotes, capitals, characters in pieces. */
static size_t tricky_text(uint8_t *out, size_t most, prop_rng *rng) {
  static const char *const parts[] = {" ",
                                      " ",
                                      "  ",
                                      "   ",
                                      "\t",
                                      "\n",
                                      "\r\n",
                                      "\n\n",
                                      "23",
                                      "1",
                                      "x",
                                      "abc",
                                      "ABC",
                                      "Ab",
                                      "'s",
                                      "'LL",
                                      "'",
                                      "\"",
                                      "//",
                                      "/",
                                      ".",
                                      "...",
                                      "!",
                                      "é",
                                      "É",
                                      "日本",
                                      "語",
                                      "。",
                                      "क्ष",
                                      "ि",
                                      "👩‍👩‍👧",
                                      "👍🏽",
                                      "\xe2\x80\x8d",
                                      "\xff",
                                      "\xe6\x97",
                                      "\xf0\x9f\x91",
                                      "\x80",
                                      "ß",
                                      "Ж",
                                      "ж",
                                      "0",
                                      "\xc2\xa0",
                                      "\xe3\x80\x80",
                                      "İ",
                                      "the ",
                                      "ing",
                                      "==",
                                      "<|endoftext|>",
                                      "<|",
                                      "",
                                      "A",
                                      "中A",
                                      "a中"};
  const uint32_t n_parts = sizeof parts / sizeof *parts;
  const uint32_t few = prop_one_in(rng, 2) ? 2 + prop_below(rng, 4) : n_parts;
  uint32_t chosen[8];
  for (int i = 0; i < 8; i++) chosen[i] = prop_below(rng, n_parts);
  const size_t want = prop_below(rng, prop_one_in(rng, 8) ? (uint32_t)most : 40);
  size_t len = 0;
  if (prop_one_in(rng, 6)) { /* a run that is one piece, more or less, and what may end it */
    static const char *const runs[] = {"a", "A", "中", " ", "\n", "\r\n",
                                       "/", "!", "+",  "7", "ि",  "é"};
    const char *unit = runs[prop_below(rng, sizeof runs / sizeof *runs)];
    if (prop_one_in(rng, 2)) {
      const char *before = parts[prop_below(rng, n_parts)];
      for (size_t i = 0; before[i] != 0; i++) out[len++] = (uint8_t)before[i];
    }
    for (uint32_t n = 18 + prop_below(rng, 40); n > 0 && len + 4 < most; n--)
      for (size_t i = 0; unit[i] != 0; i++) out[len++] = (uint8_t)unit[i];
  }
  while (len < want) {
    const char *part = parts[few < 8 ? chosen[prop_below(rng, few)] : prop_below(rng, n_parts)];
    const size_t n = strlen(part);
    if (len + n > most) break;
    memcpy(out + len, part, n);
    len += n;
    if (n == 0) len += 0, out[len < most ? len++ : len - 1] = 'q';
  }
  return len;
}

static void make_case(window_case *t, const prop_subject *s, prop_text *scratch, prop_rng *rng) {
  t->coder = s->coder;
  t->options = (bpe_walk_options){0};
  t->wraps = 0;
  if (prop_one_in(rng, 3)) t->options.allowed = s->all;
  if (s->n_bos + s->n_eos > 0 && prop_one_in(rng, 3)) {
    t->options.document = true;
    t->wraps = s->n_bos + s->n_eos;
  }
  if (!s->is_random && !prop_one_in(rng, 4)) {
    t->len = tricky_text(t->text, WINDOW_TEXT, rng);
    return;
  }
  prop_text_make(scratch, rng, &s->source);
  t->len = scratch->len < WINDOW_TEXT ? scratch->len : WINDOW_TEXT;
  if (t->len > 0) memcpy(t->text, scratch->bytes, t->len);
}

static const char *failed; /* what does not hold in the case at hand */

static void print_failure(const window_case *t, const char *name, uint64_t number) {
  printf(
      "FAILED case %llu: %s: %s\n  allowed %d document %d, %zu bytes: ", (unsigned long long)number,
      name, failed, t->options.allowed != NULL, t->options.document, t->len);
  for (size_t i = 0; i < t->len; i++) printf("%02x", t->text[i]);
  printf("\n");
}

/* A tokenizer that alters texts, and one of those. */
static bool check_altered(window_case *t, const prop_world *w, prop_rng *rng, uint64_t number) {
  altered_subject s;
  if (!altered_make(&s, &w->alloc, rng)) exit(2);
  for (int i = 0; i < 4; i++) {
    t->coder = s.coder;
    t->options = (bpe_walk_options){.allowed = prop_one_in(rng, 3) ? s.all : NULL};
    t->wraps = 0;
    t->len = altered_text(t->text, WINDOW_TEXT, rng);
    failed = window_check(t, rng);
    if (failed != NULL) {
      print_failure(t, s.name, number);
      break;
    }
  }
  if (failed == NULL && prop_one_in(rng, 100)) {
    t->options.allowed = NULL;
    for (t->len = 0; t->len < WINDOW_LONG_TEXT - WINDOW_TEXT;)
      t->len += altered_text(t->text + t->len, WINDOW_TEXT, rng);
    failed = window_check_long(t, rng);
    if (failed != NULL) print_failure(t, s.name, number);
  }
  altered_clear(&s);
  return failed == NULL;
}

int main(int argc, char **argv) {
  uint64_t cases = 100000, seed = 1, only = UINT64_MAX, passed = 0, bad = 0;
  for (int i = 1; i + 1 < argc; i += 2) {
    const uint64_t n = strtoull(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--cases") == 0) cases = n;
    else if (strcmp(argv[i], "--seed") == 0) seed = n;
    else if (strcmp(argv[i], "--only") == 0) only = n;
    else return 2;
  }
  static prop_world world;
  static prop_subject built[N_BUILTINS], random_one;
  static window_case t;
  prop_text scratch = {0};
  if (!prop_world_open(&world, "data/encodings", "tests/vectors/unicode-classes.json", false))
    return 2;
  for (int i = 0; i < N_BUILTINS; i++)
    if (!prop_subject_builtin(&built[i], &world, builtins[i])) return 2;
  for (uint64_t g = 0; g * GROUP < cases && bad < MAX_FAILURES; g++) {
    if (only != UINT64_MAX && g != only / GROUP) continue;
    const bool is_random = g % 4 == 2, is_altered = g % 4 == 3;
    if (is_random && !prop_subject_random(&random_one, &world, seed, g)) return 2;
    const prop_subject *s = is_random ? &random_one : &built[g / 4 * 2 % N_BUILTINS];
    if (g % 4 == 1) s = &built[(g / 4 + 1) % N_BUILTINS];
    for (uint64_t i = g * GROUP; i < (g + 1) * GROUP && i < cases; i++) {
      prop_rng rng = prop_seed(seed, i);
      if (only != UINT64_MAX && i != only) continue;
      if (is_altered) {
        if (check_altered(&t, &world, &rng, i)) passed++;
        else bad++;
        continue;
      }
      make_case(&t, s, &scratch, &rng);
      failed = window_check(&t, &rng);
      if (failed == NULL) passed++;
      else bad++, print_failure(&t, s->name, i);
    }
    if (is_random) prop_subject_clear(&random_one);
  }
  for (int i = 0; i < N_BUILTINS; i++) prop_subject_clear(&built[i]);
  prop_text_clear(&scratch);
  prop_world_close(&world);
  printf("%llu passed, %llu failed\n", (unsigned long long)passed, (unsigned long long)bad);
  return bad != 0 || passed == 0;
}
