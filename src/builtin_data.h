/* builtin_data.h - where the embedded encodings begin and end; data/ORIGIN.md has the format. */
#ifndef BUILTIN_DATA_H
#define BUILTIN_DATA_H

#include <stdint.h>

#if defined(__GNUC__) && !defined(_WIN32)
#define HIDDEN __attribute__((visibility("hidden")))
#else
#define HIDDEN
#endif

extern HIDDEN const uint8_t builtin_r50k[], builtin_r50k_end[];
extern HIDDEN const uint8_t builtin_p50k[], builtin_p50k_end[];
extern HIDDEN const uint8_t builtin_cl100k[], builtin_cl100k_end[];
extern HIDDEN const uint8_t builtin_o200k[], builtin_o200k_end[];

#endif
