#!/bin/sh
# selftest.sh [RUNNER] - proves that the SQL test runner can fail, and that it does not always.
#
# Each selftest/*.test says in its first line what must become of it: "# passes", or
# "# fails: TEXT" with a piece of the output; an "# options:" line adds options. Files run with
# plain SQLite and the helper functions of --selftest. Then come the things that no single file
# shows: unknown options, no files at all, an extension that is not there, fixtures, --rewrite.
#
#     $ tests/selftest.sh
#     63 passed, 0 failed

runner=${1:-build/bin/slt}
here=$(dirname "$0")
if [ ! -x "$runner" ]; then
  echo "selftest: no runner: $runner"
  exit 2
fi
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
passed=0
failed=0

verdict() { # NAME HELD
  if [ "$2" = yes ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "selftest: $1"
    sed 's/^/    /' "$scratch/out"
  fi
}

# expect NAME STATUS TEXT ARGS...: STATUS is pass or fail; the output must hold TEXT.
expect() {
  name=$1 status=$2 text=$3
  shift 3
  "$runner" "$@" >"$scratch/out" 2>&1
  code=$?
  held=yes
  if [ "$status" = pass ] && [ $code -ne 0 ]; then held=no; fi
  if [ "$status" = fail ] && { [ $code -eq 0 ] || [ $code -gt 2 ]; }; then held=no; fi
  grep -qF -e "$text" "$scratch/out" || held=no
  verdict "$name" $held
}

for file in "$here"/selftest/*.test; do
  first=$(head -n 1 "$file")
  options=$(sed -n 's/^# options: //p' "$file")
  case $first in
    "# passes") expect "$file" pass ", 0 failed" --no-ext --selftest $options "$file" ;;
    "# fails: "*) expect "$file" fail "${first#\# fails: }" --no-ext --selftest $options "$file" ;;
    *)
      echo "no verdict in the first line" >"$scratch/out"
      verdict "$file" no
      ;;
  esac
done

good=$here/selftest/good.test
expect "an unknown option" fail "not an option" --no-ext --quick "$good"
expect "an option without its value" fail "not an option" --no-ext --filter
expect "an unknown encoding" fail "not an option" --no-ext --encoding latin1 "$good"
expect "rewriting under oom" fail "exclude each other" --no-ext --rewrite --oom "$good"
expect "no files" fail "0 passed, 0 failed" --no-ext
expect "a filter that fits nothing" fail "0 passed, 0 failed" --no-ext --filter nope "$good"
expect "an absent file" fail "nope.test: No such file" --no-ext "$here/nope.test"
expect "a good file beside a bad one" fail "3 passed, 2 failed" --no-ext --selftest \
  "$good" "$here/selftest/no_error.test" "$here/selftest/wrong_value.test"
expect "helpers of the selftest are not there otherwise" fail "no such function: leak" \
  --no-ext "$here/selftest/leak.test"
expect "oom=sticky notices a swallowed failure" fail "neither NOMEM nor the right result" \
  --no-ext --selftest --oom=sticky "$here/selftest/oom_swallowed.test"

mkdir "$scratch/sql" "$scratch/fixtures"
printf 'a\0\377' >"$scratch/fixtures/bytes"
printf "query B\nSELECT fixture('bytes')\n----\nX'6100ff'\n" >"$scratch/sql/fixture.test"
expect "a fixture" pass "1 passed, 0 failed" --no-ext "$scratch/sql/fixture.test"

# --rewrite fills in results and keeps the rest, but makes no error and no type right.
cat >"$scratch/sql/rewrite.test" <<'END'
# A comment.
query IT rowsort
VALUES (2, 'b'), (1, 'a')
----
7|z

# Another.
query I
SELECT 1

statement error no such table
SELECT nope

statement count 5
SELECT 1

statement error
SELECT 1

query I
SELECT 'x'
----
1
END
cat >"$scratch/wanted" <<'END'
# A comment.
query IT rowsort
VALUES (2, 'b'), (1, 'a')
----
1|a
2|b

# Another.
query I
SELECT 1
----
1

statement error no such column: nope
SELECT nope

statement count 0
SELECT 1

statement error
SELECT 1

query I
SELECT 'x'
----
1
END
expect "rewriting reports what it cannot" fail "4 passed, 2 failed, 4 rewritten" \
  --no-ext --rewrite "$scratch/sql/rewrite.test"
diff -u "$scratch/wanted" "$scratch/sql/rewrite.test" >"$scratch/out" && held=yes || held=no
verdict "rewriting" $held
expect "a rewritten file" fail "4 passed, 2 failed" --no-ext "$scratch/sql/rewrite.test"

# The extension that is not there cannot be told from one linked in, so only a runner that loads
# can notice.
if ! "$runner" --ext "$scratch/nope" "$good" --selftest >/dev/null 2>&1; then
  expect "an absent extension" fail "cannot load" --ext "$scratch/nope" "$good"
fi

# The scripts of tests/hosts count what their hosts report: lib.sh must take nothing for a success
# that is none. host EXPECTED-LAST-LINE STATUS SCRIPT
host() {
  (cd "$here/.." && HOSTS=build/selftest-hosts sh -c ". tests/hosts/lib.sh; $3; finish") \
    >"$scratch/out" 2>&1
  [ $? -eq "$2" ] && [ "$(tail -n 1 "$scratch/out")" = "$1" ] && held=yes || held=no
  verdict "host: $3" $held
}
host '7 passed, 0 failed' 0 "try a echo '7 passed, 0 failed'"
host '7 passed, 1 failed' 1 "try a sh -c 'echo 7 passed, 0 failed; exit 9'"
host '3 passed, 1 failed' 1 "try a echo '3 passed, 1 failed'"
host '0 passed, 1 failed' 1 "try a echo '0 passed, 0 failed'"
host '0 passed, 1 failed' 1 "try a true"
host '0 passed, 1 failed' 1 "try a /no/such/command"
host '0 passed, 1 failed' 1 "need no-such-tool"
host '2 passed, 1 failed' 1 "try a echo '2 passed, 0 failed'; must false"
host '0 passed, 1 failed' 1 "must_fail a echo '7 passed, 0 failed'"
host '0 passed, 1 failed' 1 "must_fail a sh -c 'echo no such module; exit 1'"
host '1 passed, 0 failed' 0 "must_fail a sh -c 'echo 6 passed, 1 failed; exit 1'"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
