#!/bin/sh
# selftest.sh BIN [tsan|asan|ubsan] - proves that soak and load can fail: each sabotage is reported,
# as what it is. tsan, asan, ubsan: that a build with ThreadSanitizer, AddressSanitizer or
# UndefinedBehaviorSanitizer sees what that is for, the latter two in the objects that are tested.
#
#     $ tests/soak/selftest.sh build/bin
#     10 passed, 0 failed
set -u
bin=$1 passed=0 failed=0
out=$(mktemp) || exit 2
trap 'rm -f "$out"' EXIT
expect() { # TEXT COMMAND...: fails, and says TEXT
  text=$1
  shift
  if ! "$@" >"$out" 2>&1 && grep -qF -e "$text" "$out"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "selftest: $* does not fail with: $text"
    tail -n 5 "$out"
  fi
}
soak() { # K TEXT
  expect "$2" "$bin/soak" --mode wal --seconds 1 --sabotage "$1"
}
load() { # K TEXT
  expect "$2" "$bin/load" --cycles 50 --sabotage "$1"
}
if [ "${2-}" = tsan ]; then
  expect 'ThreadSanitizer: data race' "$bin/soak-static" --mode wal --seconds 2 --sabotage 7
  echo "$passed passed, $failed failed"
  exit "$failed"
fi
if [ "${2-}" = asan ]; then
  expect 'SUMMARY: AddressSanitizer: heap-buffer-overflow ext/' \
    "$bin/load-static" --cycles 50 --sabotage 5
  expect 'LeakSanitizer: detected memory leaks' "$bin/load-static" --cycles 50 --sabotage 1
  echo "$passed passed, $failed failed"
  exit "$failed"
fi
if [ "${2-}" = ubsan ]; then
  expect 'runtime error: load of misaligned address' "$bin/load-static" --cycles 50 --sabotage 6
  echo "$passed passed, $failed failed"
  exit "$failed"
fi
soak 1 'FAILED worker'
soak 2 'FAILED worker'
soak 3 'bytes of memory are left'
soak 4 'files are left open'
soak 5 'FAILED worker'
soak 6 'is damaged'
load 1 'sqlite3_memory_used()'
load 2 'b.files'
load 3 'b.heap'
load 4 'b.mappings'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
