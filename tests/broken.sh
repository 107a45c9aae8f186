#!/bin/sh
# broken.sh [BUILD] - the checks that break nothing of their own, each over something that is broken.
#
# A copy of the sources, with the objects of BUILD, is changed in one place at a time and made again;
# what looks at that place must then fail, with something passed and something failed in its last
# line, so that a check which cannot run at all does not pass for one that sees. After that come the
# checks without a build: run.sh, the C tests' own header, layers.sh, cache.sh, perf/guard.sh with a
# valgrind of ours, and the programs for texts of others, which must miss them.
#
#     $ tests/broken.sh build
#     42 passed, 0 failed
set -u
here=$(cd "$(dirname "$0")/.." && pwd) || exit 2
build=${1:-build}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
tree=$work/tree
passed=0 failed=0
verdict() { # NAME HELD
  if [ "$2" = yes ]; then passed=$((passed + 1)); return; fi
  failed=$((failed + 1))
  echo "broken: $1"
  tail -n 5 "$work/out" | sed 's/^/    /'
}
# red NAME COMMAND...: in the copy; fails, and its last line has both kinds.
red() {
  name=$1
  shift
  held=no
  if ! (cd "$tree" && "$@") >"$work/out" 2>&1 &&
    tail -n 1 "$work/out" | grep -q '^[1-9][0-9]* passed, [1-9][0-9]* failed$'; then held=yes; fi
  verdict "$name does not see it" $held
}
# refused NAME TEXT COMMAND...: fails, and says TEXT.
refused() {
  name=$1 text=$2
  shift 2
  held=no
  if ! (cd "$tree" && "$@") >"$work/out" 2>&1 && grep -qF -e "$text" "$work/out"; then held=yes; fi
  verdict "$name" $held
}
accepted() { # NAME COMMAND...
  name=$1
  shift
  (cd "$tree" && "$@") >"$work/out" 2>&1 && held=yes || held=no
  verdict "$name" $held
}

mkdir -p "$tree/build" "$tree/tests"
cp -Rp "$here/src" "$here/ext" "$here/Makefile" "$tree"
for folder in src ext tests; do
  mkdir -p "$tree/build/$folder"
  cp -p "$here/$build/$folder"/*.[od] "$tree/build/$folder"
done
for part in data sql README.md; do ln -s "$here/$part" "$tree/$part"; done
for part in "$here"/tests/*; do ln -s "$part" "$tree/tests/"; done
make_all() {
  (cd "$tree" && env -u MAKEFLAGS -u MAKELEVEL make B=build "$@") >"$work/out" 2>&1 || {
    verdict "the broken one does not build" no
    echo "$passed passed, $failed failed"
    exit 1
  }
}
broken=
# break_it FILE SED: makes what is broken so far whole again, and breaks one line of FILE.
break_it() {
  if [ -n "$broken" ]; then
    cp -p "$here/$broken" "$tree/$broken"
    cp -p "$here/$build/${broken%.c}.o" "$tree/build/${broken%.c}.o"
  fi
  broken=$1
  sed "$2" "$here/$1" >"$tree/$1"
  if [ "$(diff "$here/$1" "$tree/$1" | grep -c '^>')" != 1 ]; then
    echo "$1: $2" >"$work/out"
    verdict "nothing to break, or more than one line" no
  fi
}

# The libraries inside are visible, so that another extension's can take their place.
make_all HIDE= bpe.so
red exports.sh tests/exports.sh
red poison.sh tests/poison/poison.sh
rm "$tree/bpe.so"

# Short pieces are not merged.
break_it src/merge.c 's/^  return b < a ? b : a;$/  return b < a ? a : b;/'
make_all bpe.so build/bin/vectors build/bin/bugs build/bin/unit_merge
red vectors build/bin/vectors
red bugs build/bin/bugs
red unit_merge build/bin/unit_merge
red recipes.sh tests/recipes.sh
red demo.sh tests/demo.sh

# A window of a long piece is not freed.
break_it src/merge.c '/^  mem_free(&a, m->window);$/s/.*/  (void)0;/'
make_all build/bin/oom
red oom build/bin/oom builder

# A window may end inside a character.
break_it src/window.c 's/^\(  if (at == 0 .*w->text.at. & 0xc0) != 0x\)80) return true;$/\1c0) return true;/'
make_all build/bin/prop_window
red prop_window build/bin/prop_window --cases 2000

# A tokenizer is not deleted.
break_it ext/store_write.c '/"DELETE FROM ..%w..\.bpe_model WHERE id = ?1"/s/id = /id = -/'
make_all bpe.so build/bin/store_c
red shell.sh tests/shell.sh
red store_c build/bin/store_c

# What is loaded stays, whatever becomes of its row.
break_it ext/registry.c 's/^\( *return t->builtin < 0 \&\& \)t->version == row->version \&\& \(t->id\)/\1\2/'
make_all bpe.so build/bin/slt
red "slt over tests/cache" build/bin/slt --ext ./bpe tests/cache/*.test

# Programs for texts of others that are not there.
make_all build/bin/import_fixtures build/bin/train_reference build/bin/models
for program in vectors import_fixtures train_reference; do
  refused "$program misses nothing" ', ' build/bin/$program --fixtures "$work/none"
done
refused 'models misses nothing' ' failed' build/bin/models "$work" tests/vectors "$work" gpt2

# exports.sh: another symbol, and libraries that are not inside.
red exports.sh tests/exports.sh build/poison/careless.so

# layers.sh, cache.sh: the sources themselves.
break_it src/base.c '1,/^#include/s/^#include.*/&\n#include "encode.h"/'
red layers.sh tests/layers.sh
break_it src/base.c '2s/^/** sqlite3\n/'
red layers.sh tests/layers.sh
break_it ext/known.c '1,/^#include/s/^#include.*/&\n#include "..\/src\/base.h"/'
red layers.sh tests/layers.sh
break_it ext/known.c '1,/^#include/s/^#include.*/&\nSQLITE_EXTENSION_INIT1/'
red layers.sh tests/layers.sh
rm "$tree/tests/cache"
cp -R "$here/tests/cache" "$tree/tests/cache"
rm "$tree/tests/cache/rollback.test"
red 'cache.sh: a missing file' tests/cache.sh
sed "/^SELECT bpe_encode('abc'/d" "$here/tests/cache/rename_away.test" >"$tree/tests/cache/rollback.test"
red 'cache.sh: a file that asks nothing' tests/cache.sh

# run.sh takes nothing for a success that is none.
run() { # NAME SCRIPT: refused
  refused "run.sh takes $1" FAILED tests/run.sh "$work/tally" sh -c "$2"
}
accepted 'run.sh does not take a success' tests/run.sh "$work/tally" echo '7 passed, 0 failed'
accepted 'run.sh does not add up' test "$(cat "$work/tally")" = '7 0'
run 'a failure' "echo '7 passed, 1 failed'"
run 'an exit code' "echo '7 passed, 0 failed'; exit 3"
run 'no count' true
run 'a count that is not last' "echo '7 passed, 0 failed'; echo"
run 'nothing' "echo '0 passed, 0 failed'"
refused 'run.sh adds failures up to none' '21 passed, 5 failed' tests/run.sh --sum "$work/tally"
: >"$work/none"
refused 'run.sh adds nothing up to something' '0 passed' tests/run.sh --sum "$work/none"

# The header of the C tests.
c_test() { # NAME CHECKS
  printf '#include "test.h"\nint main(void) {\n%s\n  return test_summary();\n}\n' "$2" >"$work/t.c"
  ${CC:-cc} -std=c11 -I"$here/tests" -o "$work/t" "$work/t.c" >"$work/out" 2>&1
  refused "test.h: $1" ' failed' "$work/t"
}
c_test 'false' 'CHECK(1); CHECK(0);'
c_test 'unequal' 'CHECK(1); CHECK_EQ_INT(1, 2);'
c_test 'other bytes' 'CHECK(1); CHECK_BYTES("ab", 2, "ac", 2);'
c_test 'bytes more' 'CHECK(1); CHECK_BYTES("ab", 2, "ab", 1);'
c_test 'no check' ''

# guard.sh, with a valgrind that counts what it is told.
mkdir "$work/perf"
cp "$here/tests/perf/guard.sh" "$work/perf"
printf '#!/bin/sh\n[ "${1-}" = --machine ] && echo toy || echo path\n' >"$work/perf/toy"
printf '#!/bin/sh\nif [ "$1" = -q ]; then exec "$2" "$3"; fi\necho "Collected : $COUNT"\n' \
  >"$work/perf/valgrind"
chmod +x "$work/perf/toy" "$work/perf/valgrind"
guard() { # COUNT [--keep]
  COUNT=$1 PATH=$work/perf:$PATH sh "$work/perf/guard.sh" "$work/perf/toy" ${2-}
}
accepted 'guard.sh keeps' guard 1000 --keep
accepted 'guard.sh: 2.9 % more' guard 1029
refused 'guard.sh: 3.1 % more' SLOWER guard 1031
refused 'guard.sh: no count' '0 passed, 1 failed' guard ''
sed -i '/^path/d' "$work/perf/toy.txt"
refused 'guard.sh: nothing kept' '0 passed, 1 failed' guard 1000

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
