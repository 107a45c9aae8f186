/* fuzz_import_plain.c - any source as it stands, and behind a NUL the special_tokens given beside
** it: plain descriptions in JSON, and whatever else is told apart by its content.
*/
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const uint8_t *nul = size == 0 ? NULL : memchr(data, 0, size);
  const size_t n = nul == NULL ? size : (size_t)(nul - data);
  bpe_import_options o = {0};
  if (nul != NULL) {
    o.special_tokens = (const char *)nul + 1;
    o.special_len = size - n - 1;
    o.pattern = "none";
    o.pattern_len = 4;
  }
  check_import(data, n, NULL, 0, &o);
  return 0;
}
