#!/bin/sh
# python.sh - the extension in the ways that Python has of SQLite.
#
#     tests/hosts/python.sh
#
# The system's sqlite3 module, and from PyPI apsw, pysqlite3 and sqlean, which carry newer SQLites
# of their own, and Datasette, which loads the extension into its threads. Each runs smoke.py.
# PYTHON (default /usr/bin/python3, as Debian's loads extensions) makes the environment.
. tests/hosts/lib.sh

python=${PYTHON-/usr/bin/python3}
need "$python"
here=$hosts/python
packages='apsw==3.54.1.0 pysqlite3-binary==0.5.4.post2 sqlean.py==3.50.4.5 datasette==0.65.5'
if [ "$(cat "$here/packages" 2>/dev/null)" != "$packages" ]; then
  must "$python" -m venv --clear "$here"
  # shellcheck disable=SC2086 # packages are words
  must "$here/bin/pip" install --quiet --disable-pip-version-check $packages
  echo "$packages" >"$here/packages"
fi
for host in sqlite3 pysqlite3 sqlean apsw datasette; do
  try "python: $host" "$here/bin/python" tests/hosts/smoke.py "$host" ./bpe
  must_fail "python: $host" "$here/bin/python" tests/hosts/smoke.py "$host" ./bpe "$wrong_smoke"
done
finish
