#!/bin/sh
# reproducible.sh - two builds, in folders, at times and in surroundings that differ, give one file.
#
# What is needed to build is copied to two folders with names of different lengths, with different
# times on the files, and built there with another umask, time zone, language, number of jobs and
# user name. Nothing of all that may be in what comes out: neither in bpe.so as it is installed, nor
# in what a debugger reads in it.
#
#     tests/reproducible.sh [--sabotage]      CC and CFLAGS as for make; with --sabotage the second
#                                             build is another one, and the check must fail
set -u
cd "$(dirname "$0")/.." || exit 1
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0
one=$scratch/a two=$scratch/another/place
mkdir -p "$one" "$two"
for folder in "$one" "$two"; do
  mkdir -p "$folder/data" "$folder/sql"
  cp -R Makefile src ext "$folder"
  cp -R data/encodings "$folder/data"
  cp sql/schema.sql "$folder/sql"
done
find "$two" -exec touch -t 200102030405 {} +

build() { # FOLDER, ARGUMENTS of make
  folder=$1
  shift
  (cd "$folder" && env -u MAKEFLAGS -u MAKELEVEL make "$@" CC="${CC:-cc}" bpe.so) >"$scratch/log" 2>&1 || {
    tail -n 20 "$scratch/log"
    echo "0 passed, 1 failed"
    exit 1
  }
}
other=
[ "${1-}" = --sabotage ] && other=-fno-inline
(umask 022 && export TZ=UTC LC_ALL=C USER=one && build "$one" CFLAGS="${CFLAGS:--O2 -g}")
[ -f "$one/bpe.so" ] || exit 1
sleep 1
(umask 077 && export TZ=Asia/Kathmandu LC_ALL=C.UTF-8 USER=two &&
  build "$two" -j2 B=elsewhere CFLAGS="${CFLAGS:--O2 -g}${other:+ $other}")
[ -f "$two/bpe.so" ] || exit 1

for file in "$one" "$two"; do
  if grep -qa "$scratch" "$file/bpe.so"; then
    echo "reproducible: $file/bpe.so names the folder it was built in"
    failed=$((failed + 1))
  else
    passed=$((passed + 1))
  fi
done
if cmp "$one/bpe.so" "$two/bpe.so"; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
sha256sum "$one/bpe.so" "$two/bpe.so" | cut -d' ' -f1 | sed 's/^/sha256 /'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
