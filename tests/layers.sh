#!/bin/sh
# layers.sh - the include lists of src/ and ext/ point only downwards.
#
# Each line of the table names a room and the rooms whose headers it may include; a room's .c
# may always include its own .h. Beside them: bpe.h for all, base.h for src/. What is not in the
# table is refused, so a new room has to say where it stands. Further rules: src/ never names
# sqlite3, ext/ sees only bpe.h and ext.h, pcre2.h is regex.c's alone, yajl is doc.c's and json.c's.
set -u
cd "$(dirname "$0")/.." || exit 1
table='
base:
sort: base
json: base
cpu:
utf8: base cpu
unicode:
unicode_table: unicode
hash: base
map: hash cpu
key: map
sha256:
block: cpu utf8 unicode
starts: block
blocks: starts
scan: blocks utf8 unicode
regex: utf8
split: scan regex doc utf8 unicode
special: vocab unicode utf8
vocab: key
pieces: vocab
merge: vocab utf8
model: normalize special split vocab
builder: merge model
model_digest: model sha256
form: pieces
form_wide: form pieces
columns: merge
lanes: columns merge
unseen: lanes pieces
encode: merge model pieces form_wide unseen
natural: utf8 unicode
stretch: encode merge model vocab utf8
rewalk: stretch encode merge model vocab utf8
window: rewalk natural utf8 encode merge model
trace: encode merge model
stream: encode merge model utf8
decode: model
doc: base
normalize: doc utf8
settings: doc model
model_blob: model sha256
bytelevel: base utf8
published: base
import: bytelevel doc model
import_tiktoken: bytelevel import
import_minbpe: import published
import_gpt2: bytelevel import
import_plain: import
import_stages: import published regex
import_hf: bytelevel import_stages utf8
export: bytelevel doc model
export_text: bytelevel export published unicode utf8
export_hf: bytelevel doc export published
builtin: model builtin_data
pool:
count: hash
reader: count special split unicode utf8
crew: pool reader
train: crew model pool train_queue
train_merge: count
train_queue: train_merge
train_cut: doc model
builtin_data:
'
passed=0 failed=0
bad() { echo "layers: $1"; failed=$((failed + 1)); }
for file in src/*.[ch]; do
  room=$(basename "${file%.*}")
  [ "$room" = bpe ] && continue
  line=$(printf '%s\n' "$table" | grep "^$room:") || { bad "$file: no such room in the table"; continue; }
  allowed=" ${line#*:} $room base bpe "
  for header in $(sed -n 's/^ *# *include "\(.*\)\.h".*/\1/p' "$file"); do
    case $allowed in
      *" $header "*) passed=$((passed + 1)) ;;
      *) bad "$file may not include $header.h" ;;
    esac
  done
  if grep -q 'sqlite3' "$file"; then bad "$file names sqlite3"; fi
  case $file in src/regex.c) ;; *) grep -q '^ *# *include.*pcre2\.h' "$file" && bad "$file includes pcre2.h" ;; esac
done
for file in ext/*.[ch]; do
  for header in $(sed -n 's/^ *# *include "\(.*\)".*/\1/p' "$file"); do
    case $file:$header in
      *:ext.h | ext/ext.h:../src/bpe.h | ext/ext.h:sqlite3.h | ext/ext.h:sqlite3ext.h)
        passed=$((passed + 1)) ;;
      *) bad "$file may not include $header" ;;
    esac
  done
  grep -q '^ *# *include.*pcre2\.h' "$file" && bad "$file includes pcre2.h"
done
n=$(grep -l '^ *SQLITE_EXTENSION_INIT1' ext/*.c | tr '\n' ' ')
[ "$n" = "ext/ext_main.c " ] || bad "SQLITE_EXTENSION_INIT1 belongs in ext/ext_main.c alone: $n"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
