/* fuzz_import_minbpe.c - minbpe's .model: the input is the file behind its first line. */
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static page p;
  p.len = 0;
  put(&p, "minbpe v1\n", 10);
  put(&p, data, size);
  check_import(p.at, p.len, NULL, 0, NULL);
  return 0;
}
