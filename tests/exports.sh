#!/bin/sh
# exports.sh - what the built extension shows to the process that loads it, and wants from it.
#
# SQLite loads extensions into one namespace. A symbol of ours that is visible could be taken for
# another extension's, and one that we leave open could be bound to another's copy. So:
# (1) exactly one symbol is defined: the entry point;
# (2) nothing of SQLite, PCRE2, yajl or utf8proc is left undefined: the first comes through the pointer that
#     SQLite passes in, the others are inside;
# (3) none of their libraries is needed at load time.
#
#     tests/exports.sh [./bpe.so]
set -u
ext=${1:-./bpe.so}
passed=0
failed=0

check() { # check NAME EXPECTED ACTUAL
  if [ "$2" = "$3" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf '%s: %s\n  expected: %s\n  actual:   %s\n' "$ext" "$1" "$2" "$3"
  fi
}

if ! [ -r "$ext" ]; then
  echo "$ext: no such file"
  echo "0 passed, 1 failed"
  exit 1
fi

defined=$(nm -D --defined-only "$ext" | awk '{print $NF}' | sort | tr '\n' ' ')
check 'defined symbols' 'sqlite3_bpe_init ' "$defined"

undefined=$(nm -D --undefined-only "$ext" | awk '{print $NF}')
for prefix in sqlite3_ pcre2_ yajl_ utf8proc_ json_ bpe_; do
  found=$(printf '%s\n' "$undefined" | grep "^_*$prefix" | sort | tr '\n' ' ')
  check "undefined symbols with $prefix" '' "$found"
done

needed=$(objdump -p "$ext" | awk '$1 == "NEEDED" {print $2}')
for library in libsqlite3 libpcre2 libyajl libutf8proc libjansson; do
  found=$(printf '%s\n' "$needed" | grep "^$library" | tr '\n' ' ')
  check "needed libraries named $library" '' "$found"
done

# The checks above must be able to see anything at all.
check 'libc is needed' '1' "$(printf '%s\n' "$needed" | grep -c '^libc\.')"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
