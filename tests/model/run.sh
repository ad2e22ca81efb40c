#!/usr/bin/env bash
# Runs the PDC model through spin: the correct model must hold, each planted fault must be found.
# Usage: run.sh [workdir]. Exit 77 when spin is not installed.
set -eu
command -v spin >/dev/null || { echo "spin is not installed: apt-get install spin"; exit 77; }
model=$(cd "$(dirname "$0")" && pwd)/pdc.pml
work=${1:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"
passed=0 failed=0

# run NAME EXPECTED(0 errors|1 error) DEFINES...
run() {
  local name=$1 expected=$2; shift 2
  rm -f pan.* pan
  spin "$@" -a "$model" >spin.log 2>&1 || { cat spin.log; exit 1; }
  cc -O2 -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=4096 -w -o pan pan.c
  timeout 300 ./pan -m200000 >"$name.out" 2>&1 || true
  local errors states
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$name.out")
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$name.out")
  if grep -q 'max search depth too small\|Search not completed\|out of memory' "$name.out" && [ "$expected" = 0 ]; then
    echo "FAILED $name: search was not complete"; tail -5 "$name.out"; failed=$((failed + 1)); return
  fi
  if { [ "$expected" = 0 ] && [ "${errors:-x}" = 0 ]; } || { [ "$expected" = 1 ] && [ "${errors:-0}" != 0 ]; }; then
    echo "ok $name: ${states:-?} states, errors: ${errors:-?}"; passed=$((passed + 1))
  else
    echo "FAILED $name: errors: ${errors:-none reported}, expected $expected"; tail -20 "$name.out"; failed=$((failed + 1))
  fi
}

run correct_two_packets 0
run correct_three_packets 0 -DN=3 -DLOSSES=1 -DCOPIES=1 -DRETRIES=2
run finds_missing_tombstone 1 -DNO_TOMBSTONE
run finds_cack_past_uncleared_response 1 -DCACK_PASSES_GTD
run finds_clear_before_answer 1 -DCLEAR_ON_SACK
run finds_early_close 1 -DCLOSE_EARLY
run finds_inv_dpdcid_on_close_as_error 1 -DINV_IS_FATAL

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
