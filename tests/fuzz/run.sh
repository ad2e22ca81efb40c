#!/bin/sh
# Builds the fuzzers with clang and runs each for a while.
#
# usage: tests/fuzz/run.sh SECONDS [BUILD_DIRECTORY]
# Inputs that fail stay in BUILD_DIRECTORY/findings; exit code 1 then, 2 for wrong usage, 77 without clang.
set -eu
[ $# -ge 1 ] || { echo "usage: $0 SECONDS [BUILD_DIRECTORY]" >&2; exit 2; }
seconds=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${2:-$root/build-fuzz}
command -v clang++ >/dev/null || { echo "$0: clang++ is not installed" >&2; exit 77; }

targets="frame uet headers capture"
[ -f "$build/build.ninja" ] || CXX=clang++ CC=clang meson setup "$build" "$root" -Dfuzz=true \
  -Ddpdk=disabled -Dprovider=disabled -Dbench=disabled >"$build.log" 2>&1 || { cat "$build.log" >&2; exit 1; }
programs=
for t in $targets; do programs="$programs tests/fuzz/fuzz_$t"; done
# shellcheck disable=SC2086
ninja -C "$build" $programs >"$build.log" 2>&1 || { tail -40 "$build.log" >&2; exit 1; }

mkdir -p "$build/findings"
status=0
for t in $targets; do
  mkdir -p "$build/corpus/$t"
  if "$build/tests/fuzz/fuzz_$t" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 -max_len=4096 -verbosity=0 \
      -print_final_stats=1 -artifact_prefix="$build/findings/$t-" \
      "$build/corpus/$t" "$root/tests/fuzz/corpus/$t" >"$build/$t.log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$t.log")
    echo "fuzz_$t: $runs inputs in $seconds s, nothing found"
  else
    echo "fuzz_$t: failed, see $build/$t.log and $build/findings" >&2
    tail -30 "$build/$t.log" >&2
    status=1
  fi
done
exit $status
