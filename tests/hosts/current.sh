#!/bin/sh
# current.sh - a current SQLite to test under, beside the one that the system has.
#
#     tests/hosts/current.sh [--trimmed] [FOLDER]           default: build/hosts
#
# makes FOLDER/sqlite/{sqlite3.c,sqlite3.h,sqlite3ext.h,libsqlite3.so} from the amalgamation that
# the npm package better-sqlite3 carries. Test programs built with
#     -IFOLDER/sqlite -LFOLDER/sqlite -Wl,-rpath,FOLDER/sqlite -lsqlite3
# then run on it, while bpe.so stays the file that was built against the system's headers: that one
# build runs on both is what is tested. The library has no soname, so the loader cannot take the
# system's in its place; smoke.c prints which one it got.
#
# --trimmed makes FOLDER/sqlite-trimmed instead, compiled as better-sqlite3 itself is (no progress
# handler, no deprecated calls, no shared cache ...): there the pointers that SQLite hands an
# extension have holes, and an extension that does not look first crashes.
#
# Either way smoke.c is then built and run on the result if EXT (default ./bpe) is there.
# Needs: npm, tar, a C compiler (CC). What is already made is kept. npm checks the archive against
# the registry's checksum. Refuses, by failing, an archive without an amalgamation and a SQLite
# that is not newer than 3.40.
set -eu

package=better-sqlite3@12.11.1
trimmed=
if [ "${1-}" = --trimmed ]; then
  trimmed=1
  shift
fi
folder=${1-build/hosts}
here=$(dirname "$0")
cc=${CC-cc}
ext=${EXT-./bpe}
out=$folder/sqlite${trimmed:+-trimmed}

common='-DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_ENABLE_DBSTAT_VTAB
  -DSQLITE_ENABLE_STAT4 -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_STRICT_SUBTYPE=1'
holes='-DSQLITE_ENABLE_FTS5 -DSQLITE_DQS=0 -DSQLITE_DEFAULT_MEMSTATUS=0 -DSQLITE_THREADSAFE=2
  -DSQLITE_LIKE_DOESNT_MATCH_BLOBS -DSQLITE_OMIT_DEPRECATED -DSQLITE_OMIT_PROGRESS_CALLBACK
  -DSQLITE_OMIT_SHARED_CACHE -DSQLITE_OMIT_TCL_VARIABLE -DSQLITE_USE_URI=0'
flags=$common
if [ -n "$trimmed" ]; then flags=$holes; fi

need() {
  command -v "$1" >/dev/null || { echo "current.sh: $1 is missing" >&2; exit 1; }
}

fetch() {
  need npm
  mkdir -p "$folder/package"
  archive=$(cd "$folder" && npm pack --silent "$package" | tail -n 1)
  tar -xzf "$folder/$archive" -C "$folder/package" --strip-components=1
  rm "$folder/$archive"
}

compile() {
  sources=$folder/package/deps/sqlite3
  if [ ! -f "$sources/sqlite3.c" ]; then fetch; fi
  if [ ! -f "$sources/sqlite3.c" ]; then
    echo "current.sh: $package has no deps/sqlite3/sqlite3.c" >&2
    exit 1
  fi
  mkdir -p "$out"
  cp "$sources/sqlite3.c" "$sources/sqlite3.h" "$sources/sqlite3ext.h" "$out/"
  # shellcheck disable=SC2086 # the flags are words
  $cc -O1 -g -fPIC -shared $flags "$out/sqlite3.c" -o "$out/libsqlite3.so.new" -lm -ldl -lpthread
  mv "$out/libsqlite3.so.new" "$out/libsqlite3.so"
  echo "$cc $package $flags" >"$out/made-of"
}

need "${cc%% *}"
if [ ! -f "$out/libsqlite3.so" ] || [ "$(cat "$out/made-of")" != "$cc $package $flags" ]; then
  compile
fi

absolute=$(cd "$out" && pwd)
$cc -std=c11 -O1 -Wall -Wextra -I"$absolute" "$here/smoke.c" -o "$out/smoke" \
  -L"$absolute" -Wl,-rpath,"$absolute" -lsqlite3
if [ -e "$ext.so" ] || [ -e "$ext" ]; then
  "$out/smoke" "$ext"
else
  "$out/smoke"
  echo "current.sh: no $ext.so, so it was not tried" >&2
fi
