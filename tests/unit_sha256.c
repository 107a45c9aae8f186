/* unit_sha256.c - SHA-256 against published digests, and against the tests' own implementation
** for every length across the block boundaries, in one part and in many.
*/
#include "../src/sha256.h"

#include "ref_sha256.h"
#include "unit.h"

/* Hashes s in parts of at most `part` bytes. */
static void hash_hex(const void *s, size_t len, size_t part, char hex[65]) {
  sha256 h;
  uint8_t out[32];
  sha256_init(&h);
  for (size_t at = 0; at < len;) {
    const size_t n = len - at < part ? len - at : part;
    sha256_add(&h, (const uint8_t *)s + at, n);
    at += n;
  }
  sha256_end(&h, out);
  for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", out[i]);
}

static void check_published(void) {
  static const struct {
    const char *text, *digest;
  } rows[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
       "lmnopqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
  };
  char hex[65];
  for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
    hash_hex(rows[k].text, strlen(rows[k].text), SIZE_MAX, hex);
    CHECK_BYTES(hex, 64, rows[k].digest, 64);
  }
  static uint8_t million[1000000];
  memset(million, 'a', sizeof million);
  hash_hex(million, sizeof million, 1001, hex);
  CHECK_BYTES(hex, 64, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", 64);
}

static void check_lengths(void) {
  static const size_t parts[] = {1, 3, 63, 64, 65, SIZE_MAX};
  uint8_t s[201];
  for (size_t i = 0; i < sizeof s; i++) s[i] = (uint8_t)(i * 7 + 1);
  for (size_t len = 0; len < sizeof s; len++) {
    char expected[65], hex[65];
    sha256_hex(s, len, expected);
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
      hash_hex(s, len, parts[k], hex);
      CHECK_BYTES(hex, 64, expected, 64);
    }
  }
}

/* Parts of no bytes change nothing. */
static void check_empty_parts(void) {
  sha256 h;
  uint8_t out[32];
  sha256_init(&h);
  sha256_add(&h, "", 0);
  sha256_add(&h, "ab", 2);
  sha256_add(&h, "", 0);
  sha256_add(&h, "c", 1);
  sha256_end(&h, out);
  CHECK(out[0] == 0xba && out[1] == 0x78 && out[31] == 0xad);
}

int main(void) {
  check_published();
  check_lengths();
  check_empty_parts();
  return unit_summary();
}
