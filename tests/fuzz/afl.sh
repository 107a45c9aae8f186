#!/bin/bash
# afl.sh FUZZERS WORK SECONDS TARGET[=SECONDS] ... - the fuzzers under AFL++, which changes inputs in
# other ways than libFuzzer and sees comparisons' operands.
#
# FUZZERS/fuzzer-TARGET is one that afl-clang-fast has linked. A row for each: CPU seconds, executions,
# edges reached, inputs kept (in WORK/TARGET/default/queue), and findings: crashes, broken promises and
# time-outs (WORK/TARGET/default/crashes and hangs). Last line: N passed, N failed.
#
#     $ tests/fuzz/afl.sh build/fuzz-afl/bin build/fuzz-afl/work 300 import_hf store=600
set -u
here=$(dirname "$0")
fuzzers=$1 work=$2 seconds=$3
shift 3
passed=0 failed=0
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
export AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 AFL_NO_UI=1 AFL_NO_AFFINITY=1 \
  AFL_AUTORESUME=1
ticks_of() { # PID: of processor time, of it and its children, those that are over and those that are not
  local sum=0 pid fields
  for pid in "$1" $(pgrep -P "$1") $(pgrep -P "$1" | xargs -rn1 pgrep -P); do
    fields=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null) || continue
    # shellcheck disable=SC2086
    set -- $fields
    sum=$((sum + ${12:-0} + ${13:-0} + ${14:-0} + ${15:-0}))
  done
  echo $sum
}
row() { printf '%-17s %-8s %-15s %8s %10s %8s %7s %9s\n' "$@"; }
row date commit target cpu_s execs edges inputs findings
for spec in "$@"; do
  target=${spec%%=*} for_seconds=$seconds
  [ "$spec" = "$target" ] || for_seconds=${spec#*=}
  out=$work/$target dict=()
  stats=$out/default/fuzzer_stats
  mkdir -p "$out"
  [ ! -f "$here/$target.dict" ] || dict=(-x "$here/$target.dict")
  afl-fuzz -i "$here/corpus/$target" -o "$out" -V "$for_seconds" -t "${FUZZ_TIMEOUT:-20}000" -m none \
    "${dict[@]}" -- "$fuzzers/fuzzer-$target" >"$work/$target.log" 2>&1 &
  cpu=0
  while kill -0 $! 2>/dev/null; do # it kills the process that runs the target, so nobody adds that up
    now=$(ticks_of $!)
    [ "$now" -le "$cpu" ] || cpu=$now
    sleep 2
  done
  cpu=$((cpu / $(getconf CLK_TCK)))
  stat() { sed -n "s/^$1 *: *//p" "$stats" 2>/dev/null; }
  bad=$(($(stat saved_crashes || echo 0) + $(stat saved_hangs || echo 0)))
  row "$(date '+%F %H:%M')" "$commit" "$target" "$cpu" "$(stat execs_done)" "$(stat edges_found)" \
    "$(stat corpus_count)" "$bad"
  if [ -n "$(stat execs_done)" ] && [ "$bad" = 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    tail -n 5 "$work/$target.log"
  fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
