#!/bin/sh
# guard.sh - instructions of each fast path, against those that are kept in this folder.
#
#     tests/perf/guard.sh PROGRAM [--keep]
#
# A path that takes 3 % more than is kept fails; one that takes 3 % less is said, and --keep writes
# down what is. Counts depend on the compiler and on what the processor has (AVX2 or not), not on
# how busy the machine is. They are kept for one compiler; with another there is nothing to compare,
# which is said and is no failure.
set -u

program=$1
keep=${2-}
here=$(dirname "$0")
machine=$(valgrind -q "$program" --machine) # as valgrind has it
compiler=$(${CC:-cc} --version | head -n 1)
file=$here/$machine.txt
passed=0 failed=0

count() {
  valgrind --tool=callgrind --toggle-collect=measured --callgrind-out-file=/dev/null "$program" "$1" \
    2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

if [ "$keep" = --keep ]; then
  echo "# $compiler" >"$file.new"
  for path in $("$program"); do echo "$path $(count "$path")" | tee -a "$file.new"; done
  mv "$file.new" "$file"
  exit
fi
if [ ! -f "$file" ] || [ "$(sed -n 's/^# //p' "$file" | head -n 1)" != "$compiler" ]; then
  echo "perf-guard: nothing is kept for $machine and $compiler"
  echo "1 passed, 0 failed"
  exit
fi
for path in $("$program"); do
  kept=$(sed -n "s/^$path //p" "$file")
  now=$(count "$path")
  if [ -z "$kept" ] || [ -z "$now" ]; then
    echo "perf-guard: $path: nothing kept or nothing counted"
    failed=$((failed + 1))
    continue
  fi
  change=$(awk "BEGIN { printf \"%+.1f\", 100 * ($now / $kept - 1) }")
  verdict=
  if awk "BEGIN { exit !($now > 1.03 * $kept) }"; then verdict=' SLOWER'; failed=$((failed + 1))
  else passed=$((passed + 1)); fi
  if awk "BEGIN { exit !($now < 0.97 * $kept) }"; then verdict=' faster: keep it'; fi
  printf '%-20s %12s %6s %%%s\n' "$path" "$now" "$change" "$verdict"
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
