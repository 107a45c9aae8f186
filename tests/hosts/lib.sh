# lib.sh - what the scripts of tests/hosts share; they source it, and run in the tree's root.
#
# A script tries the extension in one kind of host. It fetches and builds what it needs under
# $hosts (build/hosts), keeps that for the next time, and counts what it tried:
#
#     . tests/hosts/lib.sh
#     need npm
#     try 'apsw' "$python" tests/hosts/smoke.py apsw "$ext"     last line "N passed, N failed"
#     must_fail 'apsw' "$python" tests/hosts/smoke.py apsw "$ext" "$wrong_smoke"
#     finish                                                     prints the sum as its last line
#
# Each `try` also writes a line to $hosts/report. What cannot be fetched or built ends the script
# as a failure: nothing is skipped for want of a tool.
set -eu
hosts=${HOSTS-build/hosts} # relative to the tree
script="$(basename "$0" .sh)${1:+ $*}" began=$(date +%s)
mkdir -p "$hosts"
passed=0 failed=0
cc=${CC-cc}
log=$(pwd)/$hosts/log.$$
trap 'rm -f "$log" "$log.npm"' EXIT

die() {
  echo "$(basename "$0"): $*"
  echo "$passed passed, $((failed + 1)) failed"
  exit 1
}

need() {
  for tool; do command -v "$tool" >/dev/null || die "$tool is missing"; done
}

# must COMMAND...: runs it silently; when it fails, shows what it said and ends the script.
must() {
  "$@" >"$log" 2>&1 && return
  tail -n 30 "$log"
  die "failed: $*"
}

say() { # to the reader and to the report
  echo "$*"
  echo "$*" >>"$hosts/report"
}

# try NAME COMMAND...: counts what its last line says.
try() {
  name=$1
  shift
  code=0
  "$@" >"$log" 2>&1 || code=$?
  last=$(tail -n 1 "$log")
  counts=$(echo "$last" | sed -n 's/^\([0-9][0-9]*\) passed, \([0-9][0-9]*\) failed$/\1 \2/p')
  good=${counts% *} bad=${counts#* }
  if [ "$code" -ne 0 ] || [ -z "$counts" ] || [ "$good" -eq 0 ] || [ "$bad" -ne 0 ]; then
    tail -n 40 "$log"
    good=${good:-0} bad=${bad:-1}
    [ "$bad" -ne 0 ] || bad=1
    last="$good passed, $bad failed (exit $code): $*"
  fi
  passed=$((passed + good)) failed=$((failed + bad))
  say "$(printf '%-44s %s' "$name" "$last")"
}

# must_fail NAME COMMAND...: a check that one failure and nothing else is what it reports.
must_fail() {
  name=$1
  shift
  code=0
  "$@" >"$log" 2>&1 || code=$?
  if [ "$code" -eq 1 ] && tail -n 1 "$log" | grep -q ' passed, 1 failed$'; then
    passed=$((passed + 1))
    return
  fi
  tail -n 20 "$log"
  failed=$((failed + 1))
  say "$name: it did not notice a wrong result"
}

finish() {
  times >"$log" # the second line is of what this script ran; a subshell would say nothing
  cpu=$(sed -n '2s/[ms]/ /gp' "$log" | awk '{ printf "%.0f", $1 * 60 + $2 + $3 * 60 + $4 }')
  say "$(printf '%-44s %s' "$script" "$cpu s of CPU time, $(($(date +%s) - began)) s in all")"
  echo "$passed passed, $failed failed"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
  exit
}

# The statements that every host runs, and the same with one result that is wrong.
smoke=tests/hosts/smoke.test
wrong_smoke=$hosts/wrong.test
sed 's/^\[257,256\]|abcab$/[257,256]|abcba/' "$smoke" >"$wrong_smoke.$$"
! cmp -s "$smoke" "$wrong_smoke.$$" || die "no result of $smoke was made wrong"
mv "$wrong_smoke.$$" "$wrong_smoke"

# npm_package NAME@VERSION FOLDER: unpacks it there, unless it is. npm checks the archive against
# the registry's checksum; none of the package's scripts run.
npm_package() {
  [ "$(cat "$2/package-is" 2>/dev/null)" != "$1" ] || return 0
  need npm tar
  rm -rf "$2"
  mkdir -p "$2"
  archive=$(cd "$2" && npm pack --silent "$1" 2>"$log.npm" | tail -n 1) || archive=
  [ -n "$archive" ] || die "npm has no $1: $(tail -n 3 "$log.npm")"
  must tar -xzf "$2/$archive" -C "$2" --strip-components=1
  rm "$2/$archive"
  echo "$1" >"$2/package-is"
}

# Where amalgamations of SQLite are found: the packages that bindings for Node carry.
sqlite_newest=better-sqlite3@13.2.0 # 3.54.1
sqlite_oldest=better-sqlite3@6.0.0  # 3.31.1
sqlite_shell=sqlite3@6.0.1          # 3.52.0 with the shell's source

# sqlite_source newest|oldest: makes $hosts/sqlite-WHICH/{sqlite3.c,sqlite3.h,sqlite3ext.h}.
sqlite_source() {
  source=$hosts/sqlite-$1
  [ ! -f "$source/sqlite3ext.h" ] || return 0
  if [ "$1" = newest ]; then package=$sqlite_newest; else package=$sqlite_oldest; fi
  npm_package "$package" "$hosts/npm-$1"
  mkdir -p "$source"
  if [ -f "$hosts/npm-$1/deps/sqlite3.tar.gz" ]; then
    must tar -xzf "$hosts/npm-$1/deps/sqlite3.tar.gz" -C "$source"
  else
    cp "$hosts/npm-$1/deps/sqlite3/"sqlite3*.[ch] "$source/"
  fi
  [ -f "$source/sqlite3ext.h" ] || die "$package has no amalgamation"
}

# sqlite_library SOURCE.c FOLDER COMPILER FLAG...: makes FOLDER/libsqlite3.so.0. It has the soname
# of every system's SQLite, so the very programs that were linked with that one run on it with
# LD_LIBRARY_PATH=FOLDER.
sqlite_library() {
  from=$1 into=$2 compiler=$3
  shift 3
  wanted="$compiler $(cksum <"$from") $*"
  [ "$(cat "$into/made-of" 2>/dev/null)" != "$wanted" ] || return 0
  mkdir -p "$into"
  must "$compiler" -O1 -fPIC -shared -w "$@" "$from" -o "$into/libsqlite3.so.0" \
    -Wl,-soname,libsqlite3.so.0 -lm -ldl -lpthread
  ln -sf libsqlite3.so.0 "$into/libsqlite3.so"
  echo "$wanted" >"$into/made-of"
}

# is_file VERSION [OPTION...]: makes $is, a test that fails unless the SQLite is of that version and
# was built with those options: without it, nothing would show that the system's was not used.
is_file() {
  is=$hosts/is-$1.$$.test
  version=$1
  shift
  {
    printf 'query T\nSELECT sqlite_version()\n----\n%s\n' "$version"
    for option; do
      printf '\nquery I\nSELECT count(*) FROM pragma_compile_options\n'
      printf "WHERE compile_options = '%s'\n----\n1\n" "$option"
    done
  } >"$is"
}

# private_apt FOLDER ARCHITECTURE deb|deb-src: an apt whose lists and state are in FOLDER, which
# knows only this Debian's own release, and touches nothing of the system's. Use it with
# APT_CONFIG=FOLDER/conf in the environment.
private_apt() {
  apt=$(pwd)/$1
  release=$(. /etc/os-release && echo "${VERSION_CODENAME-}")
  # shellcheck disable=SC2016 # apt's own names
  source=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' \
    'Created-By: Packages' | sed -n "s/^$release main //p" | head -n 1)
  [ -n "$source" ] || die "apt knows no source for $release: run apt-get update"
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/none"
  : >"$apt/state/status"
  echo "$3 $source $release main" >"$apt/list"
  cat >"$apt/conf" <<END
APT::Architecture "$2";
APT::Architectures { "$2"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Dir::State "$apt/state";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/list";
Dir::Etc::sourceparts "$apt/none";
END
  must env APT_CONFIG="$apt/conf" apt-get update -q
}
