#!/bin/sh
# run.sh - runs one check and keeps its count; or adds the counts up.
#
#     tests/run.sh TALLY COMMAND [ARG ...]   the command's last line is "N passed, N failed"
#     tests/run.sh --sum TALLY               prints the sum as such a line; fails if any failed
#
# A check that exits non-zero, prints no such line or passed nothing is a failure.
set -u
if [ "$1" = --sum ]; then
  awk '{ p += $1; f += $2 } END { printf "%d passed, %d failed\n", p, f; exit f > 0 || p == 0 }' "$2"
  exit
fi
tally=$1
shift
mkdir -p "$(dirname "$tally")"
log=$tally.$(basename "$1").$$
"$@" >"$log" 2>&1
code=$?
last=$(tail -n 1 "$log")
counts=$(printf '%s\n' "$last" | sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed$/\1 \2/p')
name=$(printf '%s ' "$@" | cut -c 1-60)
if [ "$code" -ne 0 ] || [ -z "$counts" ] || [ "${counts% *}" -eq 0 ] || [ "${counts#* }" -ne 0 ]; then
  tail -n 60 "$log" >&2
  echo "FAILED (exit $code): $name" >&2
  set -- ${counts:-0 1}
  [ "$2" -ne 0 ] || set -- "$1" 1
  echo "$1 $2" >>"$tally"
  rm -f "$log"
  exit 1
fi
echo "$counts" >>"$tally"
rm -f "$log"
printf '%-62s %s\n' "$name" "$last"
