/* cpu.h - what the compiler and the processor can do beyond plain C.
**
** The build is for the baseline of its machine. Code for more than that is in functions of their
** own, marked AVX2_TARGET or AVX512_TARGET, which only run after avx2_runs() or avx512_runs() has
** said yes; each has a twin in plain C, or in what the baseline has, that gives the same answer.
** With PLAIN_C there is plain C alone, which is what `make plain` tests.
*/
#ifndef CPU_H
#define CPU_H

#include <stdbool.h>

#if defined(__GNUC__)
#define ALWAYS_INLINE inline __attribute__((always_inline))
#define PREFETCH(p) __builtin_prefetch(p)
#else
#define ALWAYS_INLINE inline
#define PREFETCH(p) ((void)(p))
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define LITTLE_ENDIAN_WORDS 1
#else
#define LITTLE_ENDIAN_WORDS 0
#endif

#if defined(__SSE2__) && !defined(PLAIN_C)
#include <emmintrin.h>
#define HAVE_SSE2 1
#endif

#if defined(__SSE2__) && defined(__GNUC__) && !defined(PLAIN_C)
#include <immintrin.h>
#define HAVE_AVX2 1
#define AVX2_TARGET __attribute__((target("avx2,bmi,lzcnt,popcnt")))

static inline bool avx2_runs(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("popcnt");
}
#endif

#if defined(HAVE_AVX2) && defined(__LP64__)
#define HAVE_AVX512 1
#define AVX512_TARGET                                                                              \
  __attribute__((                                                                                  \
      target("avx2,bmi,lzcnt,popcnt,avx512f,avx512cd,avx512dq,avx512bw,avx512vl,avx512vbmi2")))

static inline bool avx512_runs(void) {
  return avx2_runs() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512cd") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vbmi2");
}
#endif

#if defined(__ARM_NEON) && defined(__aarch64__) && !defined(PLAIN_C)
#include <arm_neon.h>
#define HAVE_NEON 1
#endif

#endif
