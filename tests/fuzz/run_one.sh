#!/bin/sh
# Runs one fuzzer for a while.
#
# usage: tests/fuzz/run_one.sh FUZZER SEED_DIRECTORY WORK_DIRECTORY [SECONDS]
# SECONDS: 10, or when UET_TEST_DEPTH is "long" 600, and 3600 for the stateful targets. What the fuzzer learns stays in WORK_DIRECTORY/corpus, what breaks it
# in WORK_DIRECTORY/findings; exit code 1 then, 2 for wrong usage.
set -eu
[ $# -ge 3 ] || { sed -n '4,6s/^# //p' "$0" >&2; exit 2; }
fuzzer=$1 seeds=$2 work=$3
# The same walk each time, so that a change is to blame for what it finds; another one in each long run (0: by the clock).
case ${UET_TEST_DEPTH:-} in long) seconds=600 seed=0 ;; *) seconds=10 seed=4793 ;; esac
case ${UET_TEST_DEPTH:-}:$fuzzer in long:*fuzz_endpoint | long:*fuzz_calls) seconds=3600 ;; esac
seconds=${4:-$seconds}

# Inputs of the stateful ones reach thousands of features each: to weigh them all took most of the time.
case $fuzzer in *fuzz_endpoint | *fuzz_calls) entropic=0 ;; *) entropic=1 ;; esac

mkdir -p "$work/corpus" "$work/findings"
if "$fuzzer" -seed="$seed" -entropic="$entropic" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=1024 -max_len=4096 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$work/findings/" "$work/corpus" "$seeds" >"$work/log" 2>&1; then
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
  echo "$(basename "$fuzzer"): $runs inputs in $seconds s, nothing found"
else
  echo "$(basename "$fuzzer"): failed, see $work" >&2
  tail -40 "$work/log" >&2
  exit 1
fi
