#!/bin/bash
# soak.sh FUZZERS WORK SECONDS [TARGET[=SECONDS] ...] - fuzzes for long, and says what came of it.
#
# Runs FUZZERS/fuzzer-TARGET for so many seconds each, one after the other, from the kept inputs and
# from those it found in WORK/TARGET before. A row for each: CPU seconds, executions, those a CPU
# second, edges and features reached, inputs found, findings (crashes, broken promises, leaks,
# time-outs, too much memory: kept in WORK/findings/TARGET). Targets come from tests/fuzz/fuzz_*.c.
#
# FUZZ_SEED repeats a run; FUZZ_TIMEOUT (20) is in seconds of the clock, too few where many share a
# processor.
#
#     $ tests/fuzz/soak.sh build/fuzz-clang/bin build/fuzz-clang/corpus 480 sql=900 store
set -u
here=$(dirname "$0")
fuzzers=$1 work=$2 seconds=$3
shift 3
if [ $# = 0 ]; then
  for f in "$here"/fuzz_*.c; do
    f=${f##*/fuzz_}
    set -- "$@" "${f%.c}"
  done
fi
passed=0 failed=0
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
figure() { # NAME LOG: of libFuzzer's final statistics
  sed -n "s/^stat::$1: *//p" "$2" | tail -n 1
}
count_findings() {
  find "$findings" -type f ! -name 'slow-unit-*' | wc -l
}
row() { printf '%-17s %-8s %-15s %8s %10s %8s %7s %8s %7s %9s\n' "$@"; }
row date commit target cpu_s execs exec/cpu edges features inputs findings
for spec in "$@"; do
  target=${spec%%=*} for_seconds=$seconds
  [ "$spec" = "$target" ] || for_seconds=${spec#*=}
  found=$work/$target findings=$work/findings/$target
  mkdir -p "$found" "$findings"
  log=$work/$target.log dict=()
  [ ! -f "$here/$target.dict" ] || dict=(-dict="$here/$target.dict")
  before=$(count_findings)
  TIMEFORMAT='%U %S'
  { time "$fuzzers/fuzzer-$target" -seed="${FUZZ_SEED:-0}" -max_total_time="$for_seconds" -max_len=4096 -timeout="${FUZZ_TIMEOUT:-20}" \
      -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="$findings/" "${dict[@]}" \
      "$found" "$here/corpus/$target" >"$log" 2>&1; } 2>"$log.time"
  cpu=$(tail -n 1 "$log.time" | awk '{ printf "%d", $1 + $2 }')
  execs=$(figure number_of_executed_units "$log")
  reached=$(grep -o 'cov: [0-9]* ft: [0-9]*' "$log" | tail -n 1)
  edges=${reached#cov: } features=${reached##* }
  bad=$(($(count_findings) - before))
  row "$(date '+%F %H:%M')" "$commit" "$target" "$cpu" "${execs:-0}" \
    "$((${execs:-0} / (cpu > 0 ? cpu : 1)))" "${edges%% *}" "$features" \
    "$(find "$found" -type f | wc -l)" "$bad"
  if [ "$bad" = 0 ] && [ -n "$execs" ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    grep -a -A 30 -e 'does not hold' -e ERROR -e 'runtime error' "$log" || tail -n 5 "$log"
  fi
done
echo "$passed passed, $failed failed"
[ $failed = 0 ]
