#!/usr/bin/env bash
# Runs the model of secured openings through spin: the correct models must hold, each planted fault must be found.
# Usage: run_opening.sh [workdir]. Exit 77 when spin is not installed.
set -eu
command -v spin >/dev/null || { echo "spin is not installed: apt-get install spin"; exit 77; }
model=$(cd "$(dirname "$0")" && pwd)/opening.pml
work=${1:-$(mktemp -d)}
mkdir -p "$work"
cd "$work"
failed=0

# run NAME EXPECTED(0 errors|1 error) DEFINES...
run() {
  local name=$1 expected=$2 errors states; shift 2
  rm -f pan.* pan
  spin "$@" -a "$model" >spin.log 2>&1 || { cat spin.log; exit 1; }
  cc -O2 -DSAFETY -DCOLLAPSE -DVECTORSZ=2048 -DMEMLIM=4096 -w -o pan pan.c
  timeout 300 ./pan -m200000 >"$name.out" 2>&1 || true
  errors=$(sed -n 's/.*errors: \([0-9]*\).*/\1/p' "$name.out")
  states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' "$name.out")
  if grep -q 'max search depth too small\|Search not completed\|out of memory' "$name.out" && [ "$expected" = 0 ]; then
    errors="search was not complete"
  fi
  if [ "${errors:-none}" = "$expected" ]; then
    echo "ok $name: ${states:-?} states, errors: $errors"
  else
    echo "FAILED $name: errors: ${errors:-none reported}, expected $expected"; tail -20 "$name.out"; failed=$((failed + 1))
  fi
}

run expected_start 0
run expected_start_and_low_challenge 0 -DLOW=90 -DRECORDS=2 -DREPLAYS=1
run challenge 0 -DMETHOD=1
run keys_of_while_the_target_was_away 0 -DRENEWED -DRECORDS=2 -DREPLAYS=1
run words_held_back 0 -DHELD -DMETHOD=1 -DMESSAGES=1 -DREPLAYS=1 -DRESTARTS=0
run words_held_back_and_no_way_back 0 -DHELD -DMETHOD=1 -DMESSAGES=1 -DREPLAYS=1 -DRESTARTS=0 -DNO_WAY_BACK
run finds_missing_guard 1 -DNO_GUARD
run finds_missing_floor 1 -DNO_FLOOR_AT_CLOSE
run finds_trust_in_strangers 1 -DTRUST_STRANGERS
run finds_trust_in_the_known 1 -DTRUST_THE_KNOWN -DLOW=90 -DRECORDS=2 -DREPLAYS=1
run finds_trust_in_what_was_overtaken 1 -DRENEWED -DRECORDS=2 -DREPLAYS=1 -DTRUST_OVERTAKEN
run finds_any_start_confirms 1 -DMETHOD=1 -DANY_CONFIRMS
run finds_old_word_that_is_heeded 1 -DHELD -DMETHOD=1 -DMESSAGES=1 -DREPLAYS=1 -DRESTARTS=0 -DNO_WAY_BACK -DHEED_OLD_WORDS
run finds_fatal_answer_to_stale_syn 1 -DSTALE_IS_FATAL
[ "$failed" = 0 ]
