#!/bin/sh
# poison.sh - a neighbour with the same names inside changes no answer of bpe's.
#
#     tests/poison/poison.sh                 EXT=./bpe SHELL_BIN=sqlite3 CC=cc BUILD=build/poison
#
# Runs statements.sql in the sqlite3 shell with bpe alone, with poison.so loaded before it, after
# it, and between two uses of it; answers and errors must be the same byte for byte. First it shows
# that the poison works: careless.so, built without our precautions, lives alone and dies beside it.
# Needs: a C compiler, nm, libsqlite3-dev, libpcre2-dev, sqlite3, a bpe.so that is not stripped.
# Last line: N passed, N failed.
set -eu

here=$(dirname "$0")
ext=${EXT-./bpe}
shell=${SHELL_BIN-sqlite3}
cc=${CC-cc}
build=${BUILD-build/poison}
passed=0
failed=0

result() { # $1: what; $2: 0 is good
  if [ "$2" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAIL $1"
  fi
}

# Statements on standard input; answers, then errors, then the shell's exit code go to $1. The
# place in the script that the shell puts before an error depends on the .load lines: left out.
run() {
  rc=0
  "$shell" -batch :memory: >"$1.out" 2>"$1.err" || rc=$?
  { cat "$1.out"; sed 's/ *near line [0-9]*//' "$1.err"; echo "exit $rc"; } >"$1"
}

mkdir -p "$build"
# Every name inside bpe.so, functions and tables, its libraries' and its own, that could be another
# extension's: with an underscore, so that no name of libc's is among them.
nm "${ext%.so}.so" | awk '$2 ~ /^[tTrRdDbB]$/ && $3 ~ /._/ &&
  $3 !~ /^_[A-Z_]|[.]|_tm_clones$|^frame_dummy$|^sqlite3_/ { print $3 }' |
  sort -u >"$build/names"
awk 'BEGIN { print "void poison_called(const char *);" }
  { printf "void %s(void) { poison_called(\"%s\"); }\n", $1, $1 }' "$build/names" >"$build/names.c"
$cc -std=c11 -O1 -Wall -Wextra -fPIC -shared "$here/poison.c" "$build/names.c" -o "$build/poison.so"
$cc -std=c11 -O1 -Wall -Wextra -fPIC -shared "$here/careless.c" -o "$build/careless.so" -lpcre2-8

for name in pcre2_compile_8 pcre2_match_8 bpe_walk_next; do
  grep -qx "$name" "$build/names" && good=0 || good=1
  result "$name is not among the names of bpe.so" "$good"
done
{ echo ".load $build/careless"; echo 'SELECT careless();'; } | run "$build/careless.alone"
grep -q '^10\.' "$build/careless.alone" && good=0 || good=1
result 'careless.so does not work even alone' "$good"
{ echo ".load $build/poison"; echo ".load $build/careless"; echo 'SELECT careless();'; } |
  run "$build/careless.poisoned"
grep -q '^poison: called' "$build/careless.poisoned" && good=0 || good=1
result 'the poison kills nobody' "$good"
{ echo ".load $build/poison"; echo 'SELECT poison();'; } | run "$build/poison.alone"
grep -q '^present$' "$build/poison.alone" && good=0 || good=1
result 'poison.so does not load' "$good"

statements=$here/statements.sql
{ echo ".load $ext"; cat "$statements" "$statements"; } | run "$build/alone"
{ echo ".load $build/poison"; echo ".load $ext"; cat "$statements" "$statements"; } |
  run "$build/before"
{ echo ".load $ext"; echo ".load $build/poison"; cat "$statements" "$statements"; } |
  run "$build/after"
{ echo ".load $ext"; cat "$statements"; echo ".load $build/poison"; cat "$statements"; } |
  run "$build/between"

# An extension that did not load must not pass for one that did.
test "$(grep -cx '2|\[15339,1917\]' "$build/alone")" -eq 2 && good=0 || good=1
result 'bpe alone gives no answers' "$good"
for order in before after between; do
  cmp -s "$build/alone" "$build/$order" && good=0 || good=1
  result "poison loaded $order bpe: see diff $build/alone $build/$order" "$good"
done
echo "$passed passed, $failed failed"
test "$failed" -eq 0
