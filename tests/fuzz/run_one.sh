#!/bin/sh
# Runs one fuzzer for a while.
#
# usage: tests/fuzz/run_one.sh FUZZER SEED_DIRECTORY WORK_DIRECTORY [SECONDS]
# SECONDS: without it the same walk each time, some ten seconds of an idle core and a minute at most; when UET_TEST_DEPTH is "long" 600,
# and 3600 for the stateful targets. What the fuzzer learns stays in WORK_DIRECTORY/corpus, what breaks it in WORK_DIRECTORY/findings;
# exit code 1 then, 2 for wrong usage.
set -eu
[ $# -ge 3 ] || { sed -n '4,7s/^# //p' "$0" >&2; exit 2; }
fuzzer=$1 seeds=$2 work=$3
# A seed, a number of inputs and no learning from comparisons (which differs from run to run) make the same walk each time, so that a
# change is to blame for what it finds. Long runs walk by the clock (seed 0), and learn.
seed=4793 seconds=60 learns=0
case $fuzzer in
  *fuzz_headers | *fuzz_uet) inputs=1000000 ;;
  *fuzz_frame) inputs=600000 ;;
  *fuzz_capture) inputs=300000 ;;
  *fuzz_sealed) inputs=60000 ;;
  *fuzz_key_file) inputs=40000 ;;
  *fuzz_endpoint) inputs=100 ;;
  *fuzz_calls) inputs=400 ;;
  *) inputs=10000 ;;
esac
case ${UET_TEST_DEPTH:-}:$fuzzer in
  long:*fuzz_endpoint | long:*fuzz_calls) seed=0 seconds=3600 inputs=-1 learns=1 ;;
  long:*) seed=0 seconds=600 inputs=-1 learns=1 ;;
esac
[ $# -lt 4 ] || { seconds=$4 inputs=-1 learns=1; }

# Inputs of the stateful ones reach thousands of features each: to weigh them all took most of the time.
case $fuzzer in *fuzz_endpoint | *fuzz_calls) entropic=0 ;; *) entropic=1 ;; esac

start=$(date +%s)
mkdir -p "$work/corpus" "$work/findings"
if "$fuzzer" -seed="$seed" -runs="$inputs" -use_cmp="$learns" -entropic="$entropic" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=1024 -max_len=4096 -verbosity=0 -print_final_stats=1 \
    -artifact_prefix="$work/findings/" "$work/corpus" "$seeds" >"$work/log" 2>&1; then
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
  echo "$(basename "$fuzzer"): $runs inputs in $(($(date +%s) - start)) s, nothing found"
else
  echo "$(basename "$fuzzer"): failed, see $work" >&2
  tail -40 "$work/log" >&2
  exit 1
fi
