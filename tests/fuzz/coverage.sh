#!/bin/sh
# coverage.sh BIN WORK [CORPUS] - what of src/ and ext/ the kept inputs of each fuzz target reach.
#
# BIN holds replay-TARGET, built with -fprofile-instr-generate -fcoverage-mapping. A row for each
# target, one for all of them together, then each file; WORK/uncovered.txt has the lines that no
# target reaches. CORPUS is a folder of inputs for each target instead of tests/fuzz/corpus.
#
#     $ tests/fuzz/coverage.sh build/fuzz-coverage/bin build/fuzz-coverage
set -u
here=$(dirname "$0")
bin=$1 work=$2 corpus=${3:-$here/corpus}
cov=${LLVM_COV:-llvm-cov} profdata=${LLVM_PROFDATA:-llvm-profdata}
here_is=-path-equivalence=.,$(pwd) # objects name their sources from the project's folder
objects=
row() { # NAME, then a TOTAL line of `llvm-cov report`: regions, functions, lines, branches
  printf '%-17s %8s %8s %8s %8s\n' "$1" "$2" "$3" "$4" "$5"
}
totals() { # NAME PROFILE OBJECT...
  name=$1 profile=$2
  shift 2
  # shellcheck disable=SC2046
  row "$name" $("$cov" report "$@" -instr-profile="$profile" "$here_is" src ext |
    awk '$1 == "TOTAL" { print $4, $7, $10, $13 }')
}
rm -f "$work"/*.profraw "$work"/*.profdata
row target regions functions lines branches
for f in "$here"/fuzz_*.c; do
  target=${f##*/fuzz_}
  target=${target%.c}
  LLVM_PROFILE_FILE=$work/$target.profraw "$bin/replay-$target" "$corpus/$target" >"$work/$target.log" 2>&1 ||
    { tail -n 5 "$work/$target.log"; exit 1; }
  "$profdata" merge -o "$work/$target.profdata" "$work/$target.profraw" || exit 1
  totals "$target" "$work/$target.profdata" "$bin/replay-$target"
  objects="$objects -object $bin/replay-$target"
done
"$profdata" merge -o "$work/all.profdata" "$work"/*.profraw || exit 1
rm -f "$work"/*.profraw
# shellcheck disable=SC2086
set -- ${objects# -object }
totals together "$work/all.profdata" "$@"
"$cov" report "$@" -instr-profile="$work/all.profdata" "$here_is" src ext |
  awk '$1 ~ /\.[ch]$/ { printf "%-24s %8s %8s %8s %8s\n", $1, $4, $7, $10, $13 }'
"$cov" show "$@" -instr-profile="$work/all.profdata" "$here_is" src ext 2>/dev/null |
  awk -F '|' '/^\/.*:$/ { file = $0 } NF > 2 && $2 ~ /^ *0$/ { print file $0 }' | sed 's|^.*/\(src\|ext\)/|\1/|' \
  >"$work/uncovered.txt"
echo "lines that no target reaches: $(wc -l <"$work/uncovered.txt") ($work/uncovered.txt)"
