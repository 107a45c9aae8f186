#!/bin/sh
# bench.sh - everything `make bench` does: the texts, our own figures, tiktoken beside them.
#
#     tests/bench/bench.sh PROGRAM           EXT=./bpe ROUNDS=7 B=build PYTHON=/usr/bin/python3
#     tests/bench/bench.sh --peers           only the comparison with other tokenizers
#
# PROGRAM is what bench.c and its parts were built to. Figures go to the screen and to
# B/bench.json, B/bench-peers.json, B/bench-train.json and B/bench-train-scale.json; the texts and
# a Python environment are kept in B for the next time. Needs, the first time, the network: npm for
# one text, PyPI for the other tokenizers; those that not every machine can have are tried, and done
# without. Packages of Debian that are missing are named; INSTALL=1 gets them. PYTHON must be one whose sqlite3 module
# loads extensions; Debian's does.
set -eu

program=$1
here=$(dirname "$0")
ext=${EXT-./bpe}
rounds=${ROUNDS-7}
build=${B-build}
python=${PYTHON-/usr/bin/python3}

"$python" "$here/make_corpora.py" ${INSTALL:+--install} "$build/corpora"

venv=$build/venv
if ! cmp -s "$here/requirements.txt" "$venv/made-of"; then
  "$python" -m venv --clear "$venv"
  "$venv/bin/python" -m pip --quiet --disable-pip-version-check install -r "$here/requirements.txt"
  for package in toktok-rs==0.3.0 fastokens==0.3.5 tokie==0.1.4; do
    "$venv/bin/python" -m pip --quiet --disable-pip-version-check install "$package" ||
      echo "without $package: it does not install"
  done
  cp "$here/requirements.txt" "$venv/made-of"
fi

if [ "$program" = --peers ]; then
  exec "$venv/bin/python" "$here/peers.py" --ext "$ext" --db "$build/corpora/corpora.db" \
    --files "$build/peers" --rounds "$rounds" --json "$build/bench-peers.json"
fi

"$program" --ext "$ext" --db "$build/corpora/corpora.db" --rounds "$rounds" \
  --json "$build/bench.json"
"$venv/bin/python" "$here/peers.py" --ext "$ext" --db "$build/corpora/corpora.db" \
  --files "$build/peers" --rounds "$rounds" --json "$build/bench-peers.json"
"$venv/bin/python" "$here/train.py" --ext "$ext" --corpora "$build/corpora" \
  --json "$build/bench-train.json"
"$venv/bin/python" "$here/train.py" --ext "$ext" --corpora "$build/corpora" --scale \
  --json "$build/bench-train-scale.json"
