#!/bin/sh
# reproducible.sh - two builds, in folders, at times and in surroundings that differ, give one file.
#
# What is needed to build is copied to two folders with names of different lengths, with different
# times on the files, and built there with another umask, time zone, language, number of jobs and
# user name. Nothing of all that may be in what comes out: neither in bpe.so as it is installed, nor
# in what a debugger reads in it. Then one object of the second build is made once more without the
# precautions, and the same questions must find it out.
#
#     tests/reproducible.sh      CC and CFLAGS as for make
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
check() { # NAME, then a command
  name=$1
  shift
  if "$@"; then passed=$((passed + 1)); else echo "reproducible: $name"; failed=$((failed + 1)); fi
}
names_its_folder() { grep -qa "$scratch" "$1/bpe.so"; }
differ() { ! cmp -s "$one/bpe.so" "$two/bpe.so"; }
no() { ! "$@"; }

(umask 022 && export TZ=UTC LC_ALL=C USER=one && build "$one" CFLAGS="${CFLAGS:--O2 -g}")
[ -f "$one/bpe.so" ] || exit 1
sleep 1
(umask 077 && export TZ=Asia/Kathmandu LC_ALL=C.UTF-8 USER=two &&
  build "$two" -j2 B=elsewhere CFLAGS="${CFLAGS:--O2 -g}")
[ -f "$two/bpe.so" ] || exit 1

check "the first build names its folder" no names_its_folder "$one"
check "the second build names its folder" no names_its_folder "$two"
check "the builds differ" no differ
sha256sum "$one/bpe.so" "$two/bpe.so" | cut -d' ' -f1 | sed 's/^/sha256 /'

rm "$two/elsewhere/src/base.o"
build "$two" B=elsewhere CFLAGS="${CFLAGS:--O2 -g}" FLAGS="-std=c11 ${CFLAGS:--O2 -g} -fPIC -fvisibility=hidden"
check "a folder's name is not noticed" names_its_folder "$two"
check "another build is not noticed" differ
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
