/* fuzz_blob.c - model BLOBs: the first byte says whether the rest gets a right checksum, without
** which nothing behind the version is read.
*/
#include "../../src/sha256.h"
#include "import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static page p;
  input in = {data, size};
  const unsigned sum = take(&in, 4);
  p.len = 0;
  put(&p, in.at, in.left < sizeof p.at - 64 ? in.left : sizeof p.at - 64);
  if (sum != 0) {
    uint8_t digest[32];
    sha256 h;
    sha256_init(&h);
    sha256_add(&h, p.at, p.len);
    sha256_end(&h, digest);
    put(&p, digest, 32);
  }
  check_import(p.at, p.len, NULL, 0, NULL);
  return 0;
}
