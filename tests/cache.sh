#!/bin/sh
# cache.sh - tests/cache has one file per way in which what a name means can change under a
# connection that has the tokenizer loaded: 26 of them, and each uses the tokenizer before the
# change as well as after it.
set -u
cd "$(dirname "$0")/cache" || exit 1
passed=0 failed=0
bad() { echo "cache: $1"; failed=$((failed + 1)); }
n=$(ls ./*.test | wc -l)
[ "$n" -eq 26 ] || bad "$n files, not 26"
for file in *.test; do
  uses=$(grep -c "^SELECT bpe_encode('abc'" "$file")
  if [ "$uses" -ge 2 ]; then passed=$((passed + 1)); else bad "$file uses no tokenizer twice"; fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
