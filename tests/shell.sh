#!/bin/sh
# shell.sh - the sqlite3 shell stores, uses and removes tokenizers, and says nothing when it exits.
#
# The shell reports statements that were not finalized when it closes, and a dump of a database
# with stored tokenizers must restore where the extension is not loaded.
#
#     tests/shell.sh [./bpe]
set -u
ext=${1:-./bpe}
shell=${SQLITE_SHELL:-sqlite3}
passed=0 failed=0
check() { # check NAME EXPECTED ACTUAL
  if [ "$2" = "$3" ]; then passed=$((passed + 1)); return; fi
  failed=$((failed + 1))
  printf 'shell: %s\n  expected: %s\n  actual:   %s\n' "$1" "$2" "$3"
}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
store="INSERT INTO bpe_tokenizers(name, source) VALUES('m', '{\"pattern\":\"none\",\"merges\":[[97,98],[256,99]]}')"
check 'store and use' '[257]' "$("$shell" "$dir/a.db" ".load $ext" "$store" "SELECT bpe_encode('abc', 'm')" 2>&1)"
check 'use in another process' '[257,99]' "$("$shell" "$dir/a.db" ".load $ext" "SELECT bpe_encode('abcc', 'm')" 2>&1)"
check 'an error, then the end' 'no such tokenizer' \
  "$("$shell" "$dir/a.db" ".load $ext" "SELECT bpe_encode('abcc', 'n')" 2>&1 | grep -o 'no such tokenizer')"
check 'read without the extension' '258|2' \
  "$("$shell" "$dir/a.db" 'SELECT (SELECT count(*) FROM bpe_model_vocab), count(*) FROM bpe_model_merges' 2>&1)"
check 'edit without the extension' '1' \
  "$("$shell" "$dir/a.db" 'BEGIN' "UPDATE bpe_model_merges SET \"left\" = 98" 'SELECT digest IS NULL FROM bpe_model' 'ROLLBACK' 2>&1)"
"$shell" "$dir/a.db" .dump >"$dir/a.sql" 2>&1
check 'restore without the extension' '' "$("$shell" "$dir/b.db" ".read $dir/a.sql" 2>&1)"
check 'use what was restored' '[257]|1' \
  "$("$shell" "$dir/b.db" ".load $ext" "SELECT bpe_encode('abc', 'm'), sealed FROM bpe_tokenizers WHERE name = 'm'" 2>&1)"
check 'integrity' 'ok' "$("$shell" "$dir/b.db" 'PRAGMA integrity_check' 2>&1)"
check 'remove' '0|0|0' "$("$shell" "$dir/b.db" ".load $ext" "DELETE FROM bpe_tokenizers WHERE name = 'm'" \
  'SELECT (SELECT count(*) FROM bpe_model), (SELECT count(*) FROM bpe_model_vocab), (SELECT count(*) FROM bpe_model_merges)' 2>&1)"
# Names that come before the text that uses them: the order in which a dump restores. Newer shells
# trust no schema until told to, and a column that names its tokenizer needs that.
trust='PRAGMA trusted_schema = ON'
"$shell" "$dir/a.db" ".load $ext" "$trust" \
  "CREATE TABLE doc(body TEXT, n INTEGER AS (bpe_count(body, 'm')) STORED)" \
  "INSERT INTO doc(body) VALUES('abcabc')" >"$dir/out" 2>&1
"$shell" "$dir/a.db" ".load $ext" "$trust" .dump >"$dir/a.sql" 2>&1
check 'restore a column that uses it' 'abcabc|2' \
  "$("$shell" "$dir/c.db" ".load $ext" "$trust" ".read $dir/a.sql" 'SELECT * FROM doc' 2>&1)"
# The progress of a training: one line on stderr that is written over, and ended.
"$shell" :memory: ".load $ext" "$trust" "SELECT length(bpe_train('the cat the cat', 300, '{\"progress\":true}')) > 0" 2>"$dir/err" >/dev/null
check 'progress is one line' '1' "$(wc -l <"$dir/err" | tr -d ' ')"
check 'progress of both phases' 'counting merging' \
  "$(tr '\r' '\n' <"$dir/err" | sed -n 's/^bpe_train: \([a-z]*\), 1 rows, .*/\1/p' | uniq | tr '\n' ' ' | sed 's/ $//')"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
