/* fuzz_import_gpt2.c - vocab.json and merges.txt, parted by a NUL; \x01 stands for the members of
** the 256 single bytes.
*/
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static page p;
  const bpe_import_options o = {.pattern = "gpt2", .pattern_len = 4};
  const uint8_t *nul = size == 0 ? NULL : memchr(data, 0, size);
  const size_t n = nul == NULL ? size : (size_t)(nul - data);
  p.len = 0;
  for (size_t i = 0; i < n; i++) {
    if (data[i] == 1) put_members(&p);
    else put(&p, data + i, 1);
  }
  check_import(p.at, p.len, nul == NULL ? NULL : nul + 1, nul == NULL ? 0 : size - n - 1, &o);
  return 0;
}
