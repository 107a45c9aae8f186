/* sha256.h - SHA-256 (FIPS 180-4) over bytes that come in parts.
**
**     sha256 h;  sha256_init(&h);  sha256_add(&h, "abc", 3);  sha256_end(&h, out);
*/
#ifndef SHA256_H
#define SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct sha256 {
  uint32_t state[8];
  uint64_t len; /* bytes so far */
  uint8_t block[64];
} sha256;

void sha256_init(sha256 *);
void sha256_add(sha256 *, const void *bytes, size_t len);
void sha256_end(sha256 *, uint8_t out[32]);

#endif
