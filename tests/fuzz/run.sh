#!/bin/sh
# Builds the fuzzers alone with clang and runs each for a while. ./check does the same in its sanitizer build.
#
# usage: tests/fuzz/run.sh SECONDS [BUILD_DIRECTORY]
# Exit code 1 when something was found, 2 for wrong usage, 77 without clang.
set -eu
[ $# -ge 1 ] || { echo "usage: $0 SECONDS [BUILD_DIRECTORY]" >&2; exit 2; }
seconds=$1
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${2:-$root/build-fuzz}
command -v clang++ >/dev/null || { echo "$0: clang++ is not installed" >&2; exit 77; }

targets="frame uet headers capture sealed key_file endpoint calls"
[ -f "$build/build.ninja" ] || CXX=clang++ CC=clang meson setup "$build" "$root" -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false -Doptimization=1 \
  -Ddpdk=disabled -Dprovider=disabled -Dbench=disabled >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
programs=
for t in $targets; do programs="$programs tests/fuzz/fuzz_$t"; done
# shellcheck disable=SC2086
ninja -C "$build" $programs >"$build.log" 2>&1 || { tail -40 "$build.log" >&2; exit 1; }

status=0
for t in $targets; do
  "$here/run_one.sh" "$build/tests/fuzz/fuzz_$t" "$here/corpus/$t" "$build/tests/fuzz/work/$t" "$seconds" || status=1
done
exit $status
