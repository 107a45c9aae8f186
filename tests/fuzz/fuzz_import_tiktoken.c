/* fuzz_import_tiktoken.c - rank files: one byte says whether the 256 single bytes come first, one
** chooses the pattern, `whole` and special tokens; the rest is lines.
*/
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  static page p;
  input in = {data, size};
  const unsigned base = take(&in, 2), how = take(&in, 16);
  bpe_import_options o = {.whole = how & 1};
  if (how & 2)
    o = (bpe_import_options){
        .pattern = "a+|b", .pattern_len = 4, .pattern_is_regex = true, .whole = how & 1};
  else if (how != 15) o.pattern = "gpt2", o.pattern_len = 4;
  if (how & 4) o.special_tokens = "[\"<s>\",\"ab\"]", o.special_len = 12;
  p.len = 0;
  for (unsigned c = 0; c < 256 && base; c++) {
    char line[24];
    put(&p, line,
        (size_t)snprintf(line, sizeof line, "%c%c== %u\n", digits[c >> 2], digits[(c & 3) << 4],
                         c));
  }
  put(&p, in.at, in.left);
  check_import(p.at, p.len, NULL, 0, &o);
  return 0;
}
