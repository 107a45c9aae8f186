#!/bin/sh
# recipes.sh - runs every sql/recipes/*.sql on a fresh database that has data/docs.sql, and compares
# what it prints with the .out beside it; then reads the training export with Python.
#
#     tests/recipes.sh [--rewrite]     EXT=./bpe SHELL_BIN=sqlite3
#
# A recipe is plain SQL, written to be read; the shell prints it with .echo, results in columns.
set -u
cd "$(dirname "$0")/.." || exit 1
ext=${EXT-./bpe} sql=${SHELL_BIN-sqlite3} out=build/recipes
mkdir -p "$out"
passed=0 failed=0
check() { # name, then a command
  name=$1
  shift
  if "$@"; then passed=$((passed + 1)); else echo "FAILED: $name"; failed=$((failed + 1)); fi
}
for recipe in sql/recipes/*.sql; do
  this=$(basename "$recipe" .sql)
  { echo ".load $ext"; cat data/docs.sql; echo '.mode column'; echo '.changes off'; cat "$recipe"; } |
    "$sql" -batch -bail :memory: >"$out/$this.out" 2>&1
  check "$this runs" test $? -eq 0
  if [ "${1-}" = --rewrite ]; then cp "$out/$this.out" "sql/recipes/$this.out"; fi
  check "$this prints its .out" diff -u "sql/recipes/$this.out" "$out/$this.out"
done
check 'there are recipes' test "$passed" -ge 2
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
