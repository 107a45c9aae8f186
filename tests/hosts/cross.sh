#!/bin/sh
# cross.sh - the extension and its tests on a processor that this machine does not have.
#
#     tests/hosts/cross.sh aarch64|s390x|i386
#
# They are compiled with Debian's cross compiler and linked with Debian's own libraries for that
# processor, SQLite's too, and run under qemu-user (i386: by this processor itself). aarch64 has a
# splitter of its own, in NEON; s390x keeps numbers the other way round; i386 has pointers and
# sizes of 32 bits, once without SIMD and once with SSE2 and AVX2.
#
# The libraries are unpacked under build/hosts, by an apt whose lists and state are there as well:
# nothing is installed, and no architecture is added to this system.
#
# What must be the same everywhere is in the tests as bytes: digests, the BLOB of a model, packed
# ids, and every reference value. At the end a database written here is read there, and the other
# way round. EVERY=1 runs everything; otherwise two files of tests/sql and one unit test are left
# out, which are long and only read and write the formats of others, and random cases are fewer.
. tests/hosts/lib.sh

usage="cross.sh aarch64|s390x|i386"
case ${1-} in
  aarch64) debian=arm64 compiler=aarch64-linux-gnu-gcc emulator=qemu-aarch64 machine=AArch64 ;;
  s390x) debian=s390x compiler=s390x-linux-gnu-gcc emulator=qemu-s390x machine=S/390 ;;
  i386) debian=i386 compiler=i686-linux-gnu-gcc emulator='' machine=80386 ;;
  *) die "usage: $usage" ;;
esac
arch=$1
need "$compiler" apt-get dpkg-deb sqlite3 readelf ${emulator:+"$emulator"}
here=$hosts/$arch
root=$here/root
mkdir -p "$here"

# ---- Libraries -----------------------------------------------------------------------------------

fetch() {
  private_apt "$here/apt" "$debian" deb
  rm -rf "$here/debs"
  mkdir "$here/debs"
  (cd "$here/debs" && must env APT_CONFIG="$apt/conf" apt-get download -q libc6 libpcre2-8-0 \
    libpcre2-dev libyajl-dev libutf8proc-dev libutf8proc2 libjansson-dev libjansson4 \
    libsqlite3-dev libsqlite3-0 sqlite3 libreadline8 libtinfo6 zlib1g)
  rm -rf "$root.new"
  for deb in "$here"/debs/*.deb; do must dpkg-deb -x "$deb" "$root.new"; done
  mv "$root.new" "$root"
}

[ -d "$root" ] || fetch
libraries=$(echo "$root"/usr/lib/*-linux-gnu)
triple=$(basename "$libraries")
absolute=$(pwd)/$root

# ---- Programs ------------------------------------------------------------------------------------

if [ -n "$emulator" ]; then
  start="$emulator -L $absolute -E LD_LIBRARY_PATH=$(pwd)/$libraries"
else
  start="$absolute/lib/$triple/ld-linux.so.2 --library-path $absolute/lib/$triple:$(pwd)/$libraries"
fi
there() { # PROGRAM ARG...: runs it on that processor
  # shellcheck disable=SC2086 # start is words
  $start "$@"
}

build() { # FOLDER FLAGS TARGET...
  folder=$1 flags=$2
  shift 2
  must make --no-print-directory -j2 B="$folder" EXT="$folder/bpe.so" CC="$compiler" \
    WERROR=-Werror \
    CFLAGS="-O2 $flags -isystem $root/usr/include -isystem $root/usr/include/$triple" \
    LDFLAGS="-Wl,-rpath-link,$libraries -Wl,-rpath-link,$root/lib/$triple" \
    PCRE2_LIB="$libraries/libpcre2-8.a" YAJL_LIB="$libraries/libyajl_s.a" \
    UTF8PROC_LIB="$libraries/libutf8proc.a" SQLITE_LIBS="-L$libraries -lsqlite3" "$@"
}

programs() { for name; do echo "$here/bin/$name"; done; }
units=$(cd tests && for file in unit_*.c; do echo "${file%.c}"; done)
# shellcheck disable=SC2046,SC2086
build "$here" '' "$here/bpe.so" $(programs $units slt vectors bugs store_c prop prop_train)
readelf -h "$here/bpe.so" | grep -q "Machine:.*$machine" || die "bpe.so is not for $arch"
ext=./$here/bpe

# ---- Tests ---------------------------------------------------------------------------------------

sql_tests=$(ls tests/sql/*.test tests/cache/*.test)
cases=8000
if [ -z "${EVERY-}" ]; then
  sql_tests=$(echo "$sql_tests" | grep -v -e sql/export.test -e sql/import.test)
  units=$(echo "$units" | grep -v unit_export)
  cases=2000
fi
is_file 3.40.1
for unit in $units; do try "$arch: $unit" there "$here/bin/$unit"; done
try "$arch: smoke" there "$here/bin/slt" --ext "$ext" "$is" "$smoke"
rm -f "$is"
must_fail "$arch: smoke" there "$here/bin/slt" --ext "$ext" "$wrong_smoke"
# shellcheck disable=SC2086
try "$arch: SQL tests" there "$here/bin/slt" --ext "$ext" $sql_tests
try "$arch: vectors" there "$here/bin/vectors" --ext "$ext"
try "$arch: bugs of others" there "$here/bin/bugs" --ext "$ext"
try "$arch: store" there "$here/bin/store_c" "$ext"
try "$arch: slow twin" there "$here/bin/prop" --core --cases $cases
try "$arch: slow twin of training" there "$here/bin/prop_train" --cases $((cases / 10))

if [ "$arch" = i386 ]; then
  simd=$here/sse2
  build "$simd" '-msse2' "$simd/bin/unit_block" "$simd/bin/unit_split" "$simd/bin/unit_encode" \
    "$simd/bin/prop"
  for unit in unit_block unit_split unit_encode; do
    try "$arch, SIMD: $unit" there "$simd/bin/$unit"
  done
  try "$arch, SIMD: slow twin" there "$simd/bin/prop" --core --cases $cases
fi

# ---- Databases from one to the other -------------------------------------------------------------

shell=$here/sqlite3
printf '#!/bin/sh\nexec %s %s "$@"\n' "$start" "$absolute/usr/bin/sqlite3" >"$shell"
chmod +x "$shell"
try "$arch: shell" env SQLITE_SHELL="$(pwd)/$shell" tests/shell.sh "$ext"

trains="INSERT INTO bpe_tokenizers(name, source) SELECT 'mine', bpe_train(body, 700) FROM docs"
reads="SELECT digest FROM bpe_tokenizers WHERE name = 'mine'; SELECT bpe_encode(body, 'mine'),
  hex(bpe_encode_blob(body, 'mine')), bpe_decode(bpe_encode(body, 'mine'), 'mine') = body FROM docs;
  SELECT sealed FROM bpe_tokenizers WHERE name = 'mine'; PRAGMA integrity_check;"

exchange() { # here and there: each writes a database, and each reads both
  rm -f "$here"/*.db "$here"/*.read
  sqlite3 "$here/a.db" '.load ./bpe' '.read data/docs.sql' "$trains" || return 1
  "$shell" "$here/b.db" ".load $ext" '.read data/docs.sql' "$trains" || return 1
  for db in a b; do
    sqlite3 "$here/$db.db" '.load ./bpe' "$reads" >"$here/$db.here.read" || return 1
    "$shell" "$here/$db.db" ".load $ext" "$reads" >"$here/$db.there.read" || return 1
  done
  same=0
  for file in a.there b.here b.there; do
    cmp "$here/a.here.read" "$here/$file.read" && same=$((same + 1))
  done
  [ "$(wc -l <"$here/a.here.read")" -gt 30 ] || return 1
  echo "$same passed, $((3 - same)) failed"
}
try "$arch: databases exchanged" exchange
finish
