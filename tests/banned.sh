#!/bin/sh
# banned.sh - functions that src/ and ext/ may not use, whoever asks for them.
#
# Two looks. (1) Without its comments, no source names a function of the list below: those that
# write without a bound, keep state between calls, read numbers without saying where they end, end
# the process, or run another; and none that takes memory, which is the host's to give. (2) No object
# asks libc for anything but the names of the second list (looked at on Linux), so that whatever is
# new there is a decision. Arrays whose length is no constant are the compilers' to refuse (-Wvla).
#
#     tests/banned.sh BUILD      BUILD: the folder whose src/*.o and ext/*.o to look at
#     tests/banned.sh --selftest      each rule must find what breaks it
set -u
cd "$(dirname "$0")/.." || exit 1
names='strcpy|strncpy|stpcpy|strcat|strncat|sprintf|vsprintf|gets|scanf|sscanf|fscanf|strtok|strtok_r
|atoi|atol|atoll|atof|strdup|strndup|alloca|rand|srand|random|drand48|system|popen|exec[lv]p?e?|fork
|getenv|setenv|putenv|tmpnam|mktemp|tempnam|setlocale|localtime|gmtime|asctime|ctime|strerror
|abort|exit|_exit|assert|printf|puts|perror|malloc|calloc|realloc|free|signal|qsort_r|bsearch'
names=$(printf '%s' "$names" | tr -d '\n')
libc='memchr memcmp memcpy memmove memset qsort strchr strcmp strcspn strlen strncmp strpbrk strspn strstr
snprintf vsnprintf fputs fputc fflush stderr clock_gettime sysconf sched_getaffinity __sched_cpucount
setjmp _setjmp longjmp madvise sigfillset pthread_cond_broadcast pthread_cond_destroy pthread_cond_init
pthread_cond_signal pthread_cond_timedwait pthread_cond_wait pthread_create pthread_join
pthread_mutex_destroy pthread_mutex_init pthread_mutex_lock pthread_mutex_unlock pthread_sigmask
__cpu_model __cpu_indicator_init __popcountdi2 _GLOBAL_OFFSET_TABLE_ __stack_chk_fail'
libc=" $(printf '%s' "$libc" | tr '\n' ' ') "
passed=0 failed=0
bad() { echo "banned: $1"; failed=$((failed + 1)); }

uses() { # FILE: the banned names that it calls, outside of comments and strings
  tr '\n' '\001' <"$1" |
    sed -E "s,\"([^\"\\\\]|\\\\.)*\"|'([^'\\\\]|\\\\.)+'|/\\*([^*]|\\*+[^*/])*\\*+/|//[^$(printf '\001')]*, ,g" |
    tr '\001' '\n' | grep -oE "(^|[^A-Za-z0-9_.>])($names) *\\(" | tr -d ' ({}!&|=,;' | sort -u |
    tr '\n' ' '
}

wants() { # the names that no object below BUILD/src and BUILD/ext defines, and no library of ours
  nm "$@" | awk '
    NF == 2 && $1 == "U" { wanted[$2] = 1 }
    NF == 3 && $2 ~ /[TtDdBbRrVvWw]/ { defined[$3] = 1 }
    END { for (x in wanted) if (!(x in defined)) print x }' |
    grep -vE '^(pcre2|yajl|utf8proc)_' | sort
}

if [ "$1" = --selftest ]; then
  scratch=$(mktemp -d) || exit 2
  trap 'rm -rf "$scratch"' EXIT
  echo 'int a(char *b) { return sprintf(b, "strcpy(") + c->free(1); } /* "rand() */' >"$scratch/a.c"
  [ "$(uses "$scratch/a.c")" = "sprintf " ] || bad "a call is not found: $(uses "$scratch/a.c")"
  echo 'int open(const char *, int); int a(void) { return open("x", 0); }' >"$scratch/b.c"
  ${CC:-cc} -c -o "$scratch/b.o" "$scratch/b.c"
  [ "$(wants "$scratch/b.o")" = open ] || bad "a new name of libc is not found: $(wants "$scratch/b.o")"
  passed=$((2 - failed))
else
  for file in src/*.[ch] ext/*.[ch]; do
    found=$(uses "$file")
    if [ -z "$found" ]; then passed=$((passed + 1)); else bad "$file uses $found"; fi
  done
  [ "$(uname -s)" != Linux ] || for name in $(wants "$1"/src/*.o "$1"/ext/*.o); do
    case $libc in *" $name "*) passed=$((passed + 1)) ;; *) bad "an object asks for $name" ;; esac
  done
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
