/* fuzz_import_hf.c - tokenizer.json: \x01 in the input stands for the vocabulary's members of the
** 256 single bytes, \x02 for those of byte_fallback, <0x00> to <0xFF>.
*/
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static page p;
  p.len = 0;
  for (size_t i = 0; i < size; i++) {
    if (data[i] == 1) put_members(&p);
    else if (data[i] == 2)
      for (unsigned c = 0; c < 256; c++) {
        char line[24];
        put(&p, line,
            (size_t)snprintf(line, sizeof line, "%s\"<0x%02X>\":%u", c == 0 ? "" : ",", c, c + 3));
      }
    else put(&p, data + i, 1);
  }
  check_import(p.at, p.len, NULL, 0, NULL);
  return 0;
}
