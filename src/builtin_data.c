/* builtin_data.c - the compact encodings of data/encodings/, as bytes of this object.
**
** The assembler includes the files, which costs no compile time and works the same when cross
** compiling. Paths are relative to the project's root, where make runs.
*/
#include "builtin_data.h"

#if defined(__APPLE__)
#define SECTION ".section __TEXT,__const\n"
#define SYMBOL(name) "_" name
#define HIDE(name) ".private_extern " SYMBOL(name) "\n"
#elif defined(_WIN32)
#define SECTION ".section .rdata,\"dr\"\n"
#define SYMBOL(name) name
#define HIDE(name)
#else
#define SECTION ".section .rodata\n"
#define SYMBOL(name) name
#define HIDE(name) ".hidden " SYMBOL(name) "\n"
#endif

#define EMBED(name, path)                                                                          \
  __asm__(SECTION ".globl " SYMBOL(name) "\n" HIDE(name) ".globl " SYMBOL(name "_end") "\n" HIDE(  \
      name "_end") ".balign 16\n" SYMBOL(name) ":\n"                                               \
                                               ".incbin \"data/encodings/" path                    \
                                               "\"\n" SYMBOL(name "_end") ":\n"                    \
                                                                          ".byte 0\n.text\n")

EMBED("builtin_r50k", "r50k_base.merges");
EMBED("builtin_p50k", "p50k_base.merges");
EMBED("builtin_cl100k", "cl100k_base.merges");
EMBED("builtin_o200k", "o200k_base.merges");
