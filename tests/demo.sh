#!/bin/sh
# demo.sh - the README session on data/docs.sql, compared with sql/demo.out; then the same
# questions to this machine's own documents; then every example of README.md (tests/readme.awk).
#
#     tests/demo.sh [--rewrite]     EXT=./bpe SHELL_BIN=sqlite3
set -u
cd "$(dirname "$0")/.." || exit 1
ext=${EXT-./bpe} sql=${SHELL_BIN-sqlite3} out=build/demo
mkdir -p "$out"
passed=0 failed=0
check() { # name, then a command
  name=$1
  shift
  if "$@"; then passed=$((passed + 1)); else echo "FAILED: $name"; failed=$((failed + 1)); fi
}
shell() { "$sql" -batch -bail "$@"; }

{ echo ".load $ext"; cat data/docs.sql; echo '.mode column'; echo '.echo on'; grep -v '^--' sql/demo.sql; } |
  shell :memory: >"$out/demo.out" 2>&1
check 'the session runs' test $? -eq 0
if [ "${1-}" = --rewrite ]; then cp "$out/demo.out" sql/demo.out; fi
cat "$out/demo.out"
check 'sql/demo.out is what the session prints' diff -u sql/demo.out "$out/demo.out"

echo
echo '-- The documents of this machine:'
{ echo ".load $ext"; echo '.mode column'; grep -v '^--' sql/demo_system.sql; } | shell :memory: >"$out/system.out" 2>&1
check 'the documents of this machine are read' test $? -eq 0
cat "$out/system.out"
# files, bytes, tokens, decoded_back: every file decodes to itself
check 'every file decodes back' awk 'NR == 3 { exit !($1 > 10 && $1 == $4 && $3 > 1000) }' "$out/system.out"

echo
echo '-- The examples of README.md:'
rm -rf "$out/readme"
mkdir -p "$out/readme"
awk -v dir="$out/readme" -f tests/readme.awk README.md
for example in "$out"/readme/*.sql; do
  { echo ".load $ext"; cat data/docs.sql; echo '.changes off'; cat "$example"; } |
    shell :memory: >"${example%.sql}.got" 2>&1
  check "README example $(head -n 1 "$example")" diff -u "${example%.sql}.out" "${example%.sql}.got"
done
check 'README has examples' test "$(ls "$out"/readme/*.sql | wc -l)" -ge 2
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
