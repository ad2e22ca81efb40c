#!/usr/bin/env python3
"""1024 hosts within 4 GiB: a permutation in two and in three tiers. Prints TAP.

    large_test.py UET_SIM
"""

import json
import subprocess
import sys

MOST_KIB = 4 * 1024 * 1024
ok_all = True
cases = [(2, "mixed", []), (3, "mixed", []), (3, "bitmap", ["--fail", "core0@50", "--repair-us", "50"])]
for number, (tiers, lb, more) in enumerate(cases, 1):
    command = [sys.argv[1], "run", "--json", "--pattern", "permutation", "--hosts", "1024", "--bytes", "2000000", "--tiers", str(tiers),
               "--lb", lb, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900)
    r = json.loads(done.stdout) if done.stdout.startswith("{") else None
    ok = done.returncode == 0 and r is not None and r["max_rss_kib"] <= MOST_KIB
    ok_all = ok_all and ok
    what = f"{r['max_rss_kib'] / 1024:.0f} MiB, {r['wall_s']:.0f} s, {r['fct_us']['max'] / r['bound_us']:.3f} of the bound" if r else done.stderr
    print(f"{'ok' if ok else 'not ok'} {number} - 1024 hosts, {tiers} tiers, {lb} {' '.join(more)}: {what}", flush=True)
print(f"1..{len(cases)}")
sys.exit(0 if ok_all else 1)
