/* unit_unicode.c - the generated table against the classes that reference tokenizers use.
**
** tests/vectors/unicode-classes.json lists, for each class of the published patterns, the code
** points that two engines put in it: tiktoken's ("tiktoken_wasm") and that of Hugging Face's
** tokenizers ("hf_onig"). Every code point of the table is compared with both:
**
**     "\\p{Lt}": {"tiktoken_wasm": "1c5 1c8 1cb 1f2 1f88-1f8f ...", ...}
*/
#include "../src/unicode.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

enum { CODE_POINTS = 0x110000 };

/* Several classes of the file may make up one of ours: then `names` are a sum. */
static const struct {
  const char *names[2];
  unsigned classes;
} expected[] = {
  {{"\\s", NULL}, CLASS_BIT(CLASS_SPACE)},
  {{"\\p{N}", NULL}, CLASS_BIT(CLASS_NUMBER)},
  {{"\\p{L}", NULL}, CLASSES_L},
  {{"\\p{Lu}", "\\p{Lt}"}, CLASS_BIT(CLASS_UPPER)},
  {{"\\p{Ll}", NULL}, CLASS_BIT(CLASS_LOWER)},
  {{"\\p{Lm}", "\\p{Lo}"}, CLASS_BIT(CLASS_LETTER)},
  {{"\\p{M}", NULL}, CLASS_BIT(CLASS_MARK)},
  {{"\\p{P}", NULL}, CLASS_BIT(CLASS_PUNCT)},
  {{"\\p{S}", NULL}, CLASS_BIT(CLASS_SYMBOL)},
};

/* Marks the code points of "41-5a 61-7a aa"; how many there are. */
static size_t mark_ranges(bool *set, const char *ranges) {
  size_t n = 0;
  for (char *p = (char *)(uintptr_t)ranges; *p;) {
    const unsigned long low = strtoul(p, &p, 16);
    const unsigned long high = *p == '-' ? strtoul(p + 1, &p, 16) : low;
    if (!CHECK(low <= high && high < CODE_POINTS) || !CHECK(*p == ' ' || *p == 0)) return n;
    for (unsigned long cp = low; cp <= high; cp++, n++) set[cp] = true;
    p += *p == ' ';
  }
  return n;
}

static void compare(const json_t *file, const char *engine, size_t which, bool *set) {
  size_t n = 0, wrong = 0, members = 0;
  memset(set, 0, CODE_POINTS * sizeof *set);
  for (size_t i = 0; i < 2 && expected[which].names[i]; i++) {
    const json_t *class = json_object_get(file, expected[which].names[i]);
    const char *ranges = json_string_value(json_object_get(class, engine));
    if (!CHECK(ranges != NULL)) return;
    n += mark_ranges(set, ranges);
  }
  for (uint32_t cp = 0; cp < CODE_POINTS; cp++) {
    const bool in = (CLASS_BIT(unicode_class(cp)) & expected[which].classes) != 0;
    members += in;
    if (in != set[cp] && wrong++ == 0) {
      printf("U+%04X: %s of %s is %d, here it is class %u\n", (unsigned)cp,
             expected[which].names[0], engine, set[cp], unicode_class(cp));
    }
  }
  CHECK_EQ_INT(wrong, 0);
  CHECK_EQ_INT(members, n); /* so the sums do not overlap */
}

int main(int argc, char **argv) {
  static const char *const engines[] = {"tiktoken_wasm", "hf_onig"};
  const char *path = argc > 1 ? argv[1] : "tests/vectors/unicode-classes.json";
  bool *set = malloc(CODE_POINTS * sizeof *set);
  json_error_t e;
  json_t *file = json_load_file(path, 0, &e);
  if (!CHECK(file != NULL) || !CHECK(set != NULL)) printf("%s: %s\n", path, e.text);
  for (size_t i = 0; file && set && i < sizeof engines / sizeof *engines; i++) {
    for (size_t k = 0; k < sizeof expected / sizeof *expected; k++) {
      compare(file, engines[i], k, set);
    }
  }
  uint32_t sound = 0; /* every entry is one of the enum's */
  while (sound < CODE_POINTS && unicode_class(sound) <= CLASS_SYMBOL) sound++;
  CHECK_EQ_INT(sound, CODE_POINTS);
  CHECK(!strcmp(unicode_version, "16.0.0"));
  json_decref(file);
  free(set);
  return test_summary();
}
