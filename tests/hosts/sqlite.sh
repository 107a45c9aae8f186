#!/bin/sh
# sqlite.sh - the SQLites that the extension must run on, from the oldest to the newest.
#
#     tests/hosts/sqlite.sh [system|oldest|newest|trimmed|single|built ...]        default: all
#
# One bpe.so and one set of test programs, those that `make` built on this system's headers, run on
# each: the libraries are put in the loader's way, and a test asks SQLite itself for its version.
#
#   system    the one that this system has
#   oldest    3.31.1, the oldest that README promises
#   newest    3.54.1, which refuses a function that sets a subtype without having said so
#   trimmed   the same by clang, without progress handlers, deprecated calls, shared cache, strings
#             in double quotes; THREADSAFE=2. What SQLite hands an extension has holes there, and
#             an extension that does not look first crashes
#   single    the same with THREADSAFE=0: no mutexes at all, also not around memory
#   built     bpe.so built in other ways: by clang, on the newest headers, on the oldest; each runs
#             on the newest and on the oldest SQLite
. tests/hosts/lib.sh

need "$cc" sqlite3
for file in bpe.so build/bin/slt build/bin/vectors build/bin/bugs build/bin/store_c; do
  [ -e "$file" ] || die "no $file: run make first"
done
sql_tests=$(ls tests/sql/*.test tests/cache/*.test)
parts='-DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_JSON1 -DSQLITE_ENABLE_COLUMN_METADATA
  -DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_ENABLE_STAT4 -DSQLITE_ENABLE_MATH_FUNCTIONS'
holes='-DSQLITE_ENABLE_FTS5 -DSQLITE_DQS=0 -DSQLITE_DEFAULT_MEMSTATUS=1 -DSQLITE_THREADSAFE=2
  -DSQLITE_LIKE_DOESNT_MATCH_BLOBS -DSQLITE_OMIT_DEPRECATED -DSQLITE_OMIT_PROGRESS_CALLBACK
  -DSQLITE_OMIT_SHARED_CACHE -DSQLITE_OMIT_TCL_VARIABLE -DSQLITE_USE_URI=0'

# library NAME: makes that SQLite and sets `on`, where its library is, and `is`.
library() {
  on=$(pwd)/$hosts/lib-$1
  # shellcheck disable=SC2086 # flags are words
  case $1 in
    system)
      on=
      is_file "$(sqlite3 :memory: 'SELECT sqlite_version()')"
      ;;
    oldest)
      sqlite_source oldest
      sqlite_library "$hosts/sqlite-oldest/sqlite3.c" "$on" "$cc" $parts
      is_file 3.31.1 THREADSAFE=1
      ;;
    newest)
      sqlite_source newest
      sqlite_library "$hosts/sqlite-newest/sqlite3.c" "$on" "$cc" $parts -DSQLITE_STRICT_SUBTYPE=1
      is_file 3.54.1 THREADSAFE=1
      ;;
    trimmed)
      need clang # which takes a minute for it with -O1
      sqlite_source newest
      sqlite_library "$hosts/sqlite-newest/sqlite3.c" "$on" clang -O0 $holes
      is_file 3.54.1 THREADSAFE=2 OMIT_PROGRESS_CALLBACK OMIT_DEPRECATED OMIT_SHARED_CACHE DQS=0
      ;;
    single)
      sqlite_source newest
      sqlite_library "$hosts/sqlite-newest/sqlite3.c" "$on" "$cc" $parts -DSQLITE_THREADSAFE=0
      is_file 3.54.1 THREADSAFE=0
      ;;
  esac
}

with() { # COMMAND...: on that library
  env LD_LIBRARY_PATH="$on" "$@"
}

# tests NAME EXT: all tests of SQL.
tests() {
  try "$1: smoke" with build/bin/slt --ext "$2" "$is" "$smoke"
  must_fail "$1: smoke" with build/bin/slt --ext "$2" "$wrong_smoke"
  # shellcheck disable=SC2086
  try "$1: SQL tests" with build/bin/slt --ext "$2" $sql_tests
  try "$1: store" with build/bin/store_c "$2"
  rm -f "$is"
}

# build_extension NAME COMPILER HEADERS: $hosts/ext-NAME/bpe.so; only what sees SQLite's headers is
# compiled anew, unless it is another compiler.
build_extension() {
  core=$(ls src/*.c | sed 's,^src/\(.*\)\.c$,build/src/\1.o,')
  [ "$2" = "$cc" ] || core=$(ls src/*.c | sed "s,^src/\(.*\)\.c\$,$hosts/ext-$1/src/\1.o,")
  must make --no-print-directory -j2 B="$hosts/ext-$1" CC="$2" WERROR=-Werror \
    EXT="$hosts/ext-$1/bpe.so" SQLITE_CFLAGS="${3:+-isystem $3}" \
    CORE="$(echo "$core" | tr '\n' ' ')" "$hosts/ext-$1/bpe.so"
}

built() {
  need clang
  sqlite_source newest
  sqlite_source oldest
  build_extension clang clang ''
  build_extension newest-headers "$cc" "$hosts/sqlite-newest"
  build_extension oldest-headers "$cc" "$hosts/sqlite-oldest"
  for way in clang newest-headers oldest-headers; do
    ext=./$hosts/ext-$way/bpe
    for which in oldest newest; do
      library "$which"
      try "$way on $which: smoke" with build/bin/slt --ext "$ext" "$is" "$smoke"
      rm -f "$is"
    done
  done
  # shellcheck disable=SC2086
  try "newest-headers on newest: SQL tests" with build/bin/slt \
    --ext "./$hosts/ext-newest-headers/bpe" $sql_tests
}

[ $# -gt 0 ] || set -- system oldest newest trimmed single built
for kind; do
  case $kind in
    built) built ;;
    system | oldest | newest | trimmed | single)
      library "$kind"
      tests "$kind" ./bpe
      ;;
    *) die "no such SQLite: $kind" ;;
  esac
done
if [ "$1" != built ]; then
  # Ids do not depend on SQLite, so one of them is enough: the last.
  try "$kind: vectors" with build/bin/vectors
  try "$kind: bugs of others" with build/bin/bugs
fi
finish
