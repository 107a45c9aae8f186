/* hash.c - the secret of hash.h, set once. */
#include "hash.h"

#include <stdatomic.h>

/* Until bpe_seed is called: fractions of square roots. Any would do, and are known to all. */
hash_factors hash_secret = {UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xd6e8feb86659fd93),
                            UINT64_C(0x6a09e667f3bcc909)};

void bpe_seed(const uint8_t bytes[BPE_SEED_BYTES]) {
  enum { NEW, BUSY, SET };
  static atomic_int state = NEW;
  int now = NEW;
  if (atomic_compare_exchange_strong(&state, &now, BUSY)) {
    memcpy(&hash_secret.a, bytes, 8);
    memcpy(&hash_secret.b, bytes + 8, 8);
    memcpy(&hash_secret.c, bytes + 16, 8);
    hash_secret.a |= 1;
    hash_secret.b |= 1;
    atomic_store(&state, SET);
  }
  while (atomic_load(&state) != SET) continue; /* another thread is at the lines above */
}
