#!/bin/sh
# selftest.sh - proves that mutate.py tells checks that see from checks that do not.
#
# It makes a project of one source and one check, and mutates it twice: with a check of every
# answer all mutants must be killed, but for the one line that nothing asks for; with a check that
# asks nothing all must live, and the run must fail. Then the reading of C: sites in code that is
# compiled, and none in comments, strings, directives, assertions, array sizes and #if 0.
#
#     $ tests/mutate/selftest.sh
#     9 passed, 0 failed
#
# Without python3 it says so and checks nothing: mutation is not part of `make test`.
set -u
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v python3 >/dev/null; then
  echo "mutate: no python3 to check it with"
  echo "1 passed, 0 failed"
  exit 0
fi
toy=$(mktemp -d) || exit 2
trap 'rm -rf "$toy" "$toy.out" "$toy.log"' EXIT
passed=0 failed=0
check() { # NAME EXPECTED ACTUAL
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); return; fi
  failed=$((failed + 1))
  printf 'mutate: %s\n  expected: %s\n  actual:   %s\n' "$1" "$2" "$3"
}

mkdir "$toy/src" "$toy/tests"
cp "$here/../run.sh" "$toy/tests/run.sh"
cat >"$toy/src/toy.c" <<'END'
/* toy.c - a comment: 1 < 2 && !x */
#include "toy.h"
#define SKIPPED(x) ((x) + 1)
static char sized[12];
static const char *const text = "3 == 4";
int clamp(int x, int low, int high) {
  static_assert(sizeof(int) > 1, "an int");
#if 0
  x = x + 1;
#endif
  if (x < low) return low;
  if (x > high) return high;
  return x;
}
int steps(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) {
    if ((i & 3) == 2) continue;
    sum += i + 2;
  }
  return sum;
}
int unasked(void) {
  return sized[0] + text[0];
}
END
cat >"$toy/src/toy.h" <<'END'
#include <assert.h>
int clamp(int x, int low, int high);
int steps(int n);
int unasked(void);
END
cat >"$toy/tests/check.c" <<'END'
#include "../src/toy.h"
#include <stdio.h>
int main(void) {
  int bad = 0;
  for (int low = -2; low < 3; low++)
    for (int high = low; high < 3; high++)
      for (int x = -4; x < 5; x++) {
        const int y = clamp(x, low, high);
        bad += y != (x < low ? low : x > high ? high : x);
      }
  static const int sums[] = {0, 2, 5, 5, 10, 16, 23, 23, 32};
  for (int n = 0; n < 9; n++) bad += steps(n) != sums[n];
  printf("1 passed, %d failed\n", bad);
  return bad != 0;
}
END
cat >"$toy/Makefile" <<'END'
RUN = tests/run.sh build/tally
test: build/bin/check bpe.so
	@$(RUN) build/bin/check
build/src/toy.o: src/toy.c src/toy.h
	@mkdir -p build/src build/bin
	$(CC) -std=c11 $(CFLAGS) -c -o $@ $<
build/bin/check: tests/check.c build/src/toy.o
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^
bpe.so: build/src/toy.o
	cp $< $@
END

mutate() { python3 "$here/mutate.py" --root "$toy" --out "$toy.out" --mutants 16 >"$toy.log" 2>&1; }
mutate
check 'only what nothing asks for lives' '' \
  "$(sed -n 's/^- src.toy.c \w* `` \(.*\) `` → .*/\1/p' "$toy.log" | grep -v '^return sized')"
check 'a good check kills' yes "$(grep -q '([789][0-9][.0-9]* %)' "$toy.log" && echo yes)"
check 'alive without a reason fails' 1 "$(grep -c '^1[0-9] passed, [1-9] failed$' "$toy.log")"
mkdir "$toy/tests/mutate"
{ echo '## Equivalent'; sed -n 's/([a-z]*, line [0-9]*)$/nobody asks/p' "$toy.log"; } \
  >"$toy/tests/mutate/SURVIVORS.md"
mutate
check 'what is explained does not' '100.0 % killed, 16 passed, 0 failed' \
  "$(grep -o '100.0 % killed$' "$toy.log"), $(tail -1 "$toy.log")"
check 'the table has all' '16' "$(awk -F '\t' 'NF == 7 && $2 ~ /^[0-9]+$/' "$toy.out/mutants.tsv" | wc -l)"
rm -rf "$toy.out" "$toy/tests/mutate"
sed -i 's/bad += .*;/;/' "$toy/tests/check.c"
mutate
check 'a blind check fails' 1 $?
check 'a blind check kills nothing' '(0.0' "$(grep -o '(0[.]0' "$toy.log")"
check 'no site where there is no code' '' "$(sed -n 's/^- src.toy.c \w* `` \(.*\) `` → .*/\1/p' \
  "$toy.log" | grep 'static\|SKIPPED\|x + 1\|comment')"
check 'all were tried' '16 mutants' "$(grep -o '^16 mutants' "$toy.log")"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
