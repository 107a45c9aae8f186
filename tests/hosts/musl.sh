#!/bin/sh
# musl.sh - the extension on a C library that is not glibc: musl, as in Alpine and static images.
#
#     tests/hosts/musl.sh
#
# PCRE2, yajl, utf8proc and jansson are compiled from Debian's sources with Debian's musl-gcc, and
# so are SQLite and its shell, from the package that carries both. bpe.so is then loaded into that
# shell and into the test programs, which run on musl's loader; musl's stacks for threads are small,
# and its malloc hands out other addresses.
. tests/hosts/lib.sh

need musl-gcc apt-get readelf
here=$hosts/musl
sources=$here/sources
mkdir -p "$here/include" "$here/lib"

# ---- Libraries -----------------------------------------------------------------------------------

fetch() {
  private_apt "$here/apt" "$(dpkg --print-architecture)" deb-src
  rm -rf "$sources.new"
  mkdir -p "$sources.new"
  (cd "$sources.new" && must env APT_CONFIG="$apt/conf" apt-get source -q --download-only \
    pcre2 yajl utf8proc jansson)
  for name in pcre2 yajl utf8proc jansson; do
    mkdir "$sources.new/$name"
    must tar -xzf "$sources.new/$name"_*.orig.tar.gz -C "$sources.new/$name" --strip-components=1
  done
  mv "$sources.new" "$sources"
}

archive() { # NAME FILE.c...: lib/libNAME.a of them, compiled with $flags
  name=$1
  shift
  mkdir -p "$here/$name.o"
  for file; do
    # shellcheck disable=SC2086 # flags are words
    must musl-gcc -O2 -fPIC -w $flags -c -o "$here/$name.o/$(basename "$file" .c).o" "$file"
  done
  must ar rcs "$here/lib/lib$name.a" "$here/$name.o"/*.o
}

build_pcre2() {
  s=$sources/pcre2/src
  cp "$s/pcre2.h.generic" "$here/include/pcre2.h"
  cp "$s/config.h.generic" "$s/config.h"
  cp "$s/pcre2_chartables.c.dist" "$s/pcre2_chartables.c"
  flags="-DHAVE_CONFIG_H -DPCRE2_CODE_UNIT_WIDTH=8 -DSUPPORT_PCRE2_8 -DSUPPORT_UNICODE
    -DSUPPORT_JIT -DPCRE2_STATIC -I$here/include -I$s"
  # shellcheck disable=SC2046
  archive pcre2-8 $(for part in auto_possess chartables chkdint compile config context convert \
    dfa_match error extuni find_bracket jit_compile maketables match match_data newline ord2utf \
    pattern_info script_run serialize string_utils study substitute substring tables ucd valid_utf \
    xclass; do file=$s/pcre2_$part.c; [ ! -f "$file" ] || echo "$file"; done)
}

build_yajl() {
  s=$sources/yajl/src
  mkdir -p "$here/include/yajl"
  cp "$s"/api/*.h "$here/include/yajl/"
  sed 's/${YAJL_MAJOR}/2/; s/${YAJL_MINOR}/1/; s/${YAJL_MICRO}/0/' "$s/api/yajl_version.h.cmake" \
    >"$here/include/yajl/yajl_version.h"
  flags="-I$here/include -I$s"
  archive yajl_s "$s"/*.c
}

build_rest() {
  s=$sources/utf8proc
  cp "$s/utf8proc.h" "$here/include/"
  flags="-DUTF8PROC_STATIC -I$s"
  archive utf8proc "$s/utf8proc.c"
  s=$sources/jansson/src
  cp "$s/jansson.h" "$here/include/"
  sed 's/@json_inline@/inline/; s/@json_have_long_long@/1/; s/@json_have_localeconv@/1/;
    s/@json_have_atomic_builtins@/1/; s/@json_have_sync_builtins@/1/' "$s/jansson_config.h.in" \
    >"$here/include/jansson_config.h"
  : >"$here/include/jansson_private_config.h"
  flags="-DHAVE_STDINT_H -DHAVE_LOCALE_H -I$here/include -I$s"
  archive jansson "$s"/*.c
}

build_sqlite() {
  npm_package "$sqlite_shell" "$hosts/npm-shell"
  mkdir -p "$sources/sqlite"
  must tar -xzf "$hosts/npm-shell"/deps/sqlite-autoconf-*.tar.gz -C "$sources/sqlite" \
    --strip-components=1
  s=$sources/sqlite
  cp "$s/sqlite3.h" "$s/sqlite3ext.h" "$here/include/"
  sqlite_library "$s/sqlite3.c" "$here/lib" musl-gcc -DSQLITE_ENABLE_FTS5 \
    -DSQLITE_ENABLE_COLUMN_METADATA -DSQLITE_ENABLE_DBSTAT_VTAB -DSQLITE_ENABLE_STAT4
  must musl-gcc -O1 -w -I"$here/include" "$s/shell.c" -o "$here/sqlite3" -L"$here/lib" -lsqlite3 \
    -Wl,-rpath,"$(pwd)/$here/lib"
}

[ -d "$sources" ] || fetch
[ -f "$here/lib/libpcre2-8.a" ] || build_pcre2
[ -f "$here/lib/libyajl_s.a" ] || build_yajl
[ -f "$here/lib/libjansson.a" ] || build_rest
[ -x "$here/sqlite3" ] || build_sqlite

# ---- The extension and the tests -----------------------------------------------------------------

lib=$(pwd)/$here/lib
units='unit_train unit_count unit_encode unit_regex unit_normalize unit_import_hf'
# shellcheck disable=SC2046
must make --no-print-directory -j2 B="$here" EXT="$here/bpe.so" CC=musl-gcc WERROR=-Werror \
  CFLAGS="-O2 -isystem $here/include" PCRE2_LIB="$lib/libpcre2-8.a" YAJL_LIB="$lib/libyajl_s.a" \
  UTF8PROC_LIB="$lib/libutf8proc.a" LDFLAGS="-L$lib" \
  SQLITE_LIBS="-L$lib -lsqlite3 -Wl,-rpath,$lib" "$here/bpe.so" \
  $(for x in $units slt vectors bugs store_c prop_train; do echo "$here/bin/$x"; done)
! readelf -d "$here/bpe.so" | grep -q 'libc.so.6' || die "bpe.so wants glibc"
readelf -l "$here/sqlite3" | grep -q ld-musl || die "the shell is not musl's"

ext=./$here/bpe
is_file "$("$here/sqlite3" :memory: 'SELECT sqlite_version()')"
try "musl: smoke" "$here/bin/slt" --ext "$ext" "$is" "$smoke"
rm -f "$is"
must_fail "musl: smoke" "$here/bin/slt" --ext "$ext" "$wrong_smoke"
try "musl: shell" env SQLITE_SHELL="$here/sqlite3" tests/shell.sh "$ext"
# shellcheck disable=SC2046
try "musl: SQL tests" "$here/bin/slt" --ext "$ext" $(ls tests/sql/*.test tests/cache/*.test)
try "musl: vectors" "$here/bin/vectors" --ext "$ext"
try "musl: bugs of others" "$here/bin/bugs" --ext "$ext"
try "musl: store" "$here/bin/store_c" "$ext"
try "musl: slow twin of training" "$here/bin/prop_train" --cases 2000
for unit in $units; do try "musl: $unit" "$here/bin/$unit"; done
finish
