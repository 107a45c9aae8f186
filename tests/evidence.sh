#!/bin/sh
# evidence.sh - prints tests/EVIDENCE.md: the last results of the runs that take too long for every
# change, as they came. Each is a file of tests/evidence, replaced or added to by whoever runs it.
#
#     tests/evidence.sh > tests/EVIDENCE.md
set -eu
cd "$(dirname "$0")/evidence"
echo '# Evidence

The last results of the long runs, as they came: command, commit, date, versions, load, figures, and what
has not been run. `tests/evidence.sh` puts this page together from `tests/evidence`.'
for file in *.txt; do
  printf '\n## %s\n\n```text\n' "${file%.txt}"
  cat "$file"
  echo '```'
done
