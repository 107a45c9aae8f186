#!/bin/sh
# node.sh - the extension in the ways that Node has of SQLite.
#
#     tests/hosts/node.sh
#
# node:sqlite, better-sqlite3 (no progress handler, defensive) and libsql (a fork, of 3.45.1). Node
# itself comes from npm too: node:sqlite needs a newer one than Debian's. None of the packages'
# scripts run; those that are compiled carry what is. Each runs smoke.js.
. tests/hosts/lib.sh

need npm
here=$hosts/node
case $(uname -m) in
  x86_64) machine=x64 ;;
  aarch64) machine=arm64 ;;
  *) die "npm has no Node for $(uname -m)" ;;
esac
packages="node-linux-$machine@24.22.3 $sqlite_newest libsql@0.5.29"
if [ "$(cat "$here/packages" 2>/dev/null)" != "$packages" ]; then
  rm -rf "$here"
  mkdir -p "$here"
  echo '{"private": true}' >"$here/package.json"
  # shellcheck disable=SC2086 # packages are words
  must npm install --silent --no-audit --no-fund --ignore-scripts --prefix "$here" $packages
  echo "$packages" >"$here/packages"
fi
run() { # ARG...: smoke.js in that folder, where the packages are
  (cd "$here" && "node_modules/node-linux-$machine/bin/node" ../../../tests/hosts/smoke.js "$@")
}
for host in better-sqlite3 node:sqlite libsql; do
  try "node: $host" run "$host" ../../../bpe
  must_fail "node: $host" run "$host" ../../../bpe "../../../$wrong_smoke"
done
finish
