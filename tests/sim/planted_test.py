#!/usr/bin/env python3
"""Every planted bug is caught by the swarm within so many worlds; without one, the same worlds pass. Prints TAP.

    planted_test.py UET_SIM_PLANTED PLANTED_H
"""

import re
import subprocess
import sys
from pathlib import Path

SEEDS = 600
# Only a hostile peer reaches these.
HOSTILE_SEEDS = 1000
HOSTILE = {"null-context", "return-served", "ack-below-start", "bytes-not-covered", "close-keeps-reads"}
# Only security has these rules; a third of so many worlds is secured.
SECURE_SEEDS = 1000
SECURE = {"replay-ignored", "iv-without-epoch", "an-ignored", "trimmed-believed", "kdf-without-ssi", "guard-off", "clear-believed"}
# What was added to the worlds after the bugs had been counted in them.
PLAIN = "rendezvous,deferrals"
SWARM, HEADER = sys.argv[1:3]
names = re.findall(r'^      "([a-z-]+)"', Path(HEADER).read_text(), re.MULTILINE)
assert names[0] == "none" and len(names) > 10, names


def swarm(last, *args):
    done = subprocess.run([SWARM, "swarm", "--seeds", f"1..{last}", *args], capture_output=True, text=True, timeout=900)
    return done.returncode, done.stdout + done.stderr


print(f"1..{len(names)}")
passed = 0
for number, name in enumerate(names, 1):
    if name == "none":
        code, text = swarm(100, "--without", "hostile,secure," + PLAIN)
        ok, what = code == 0, "worlds without a bug pass"
    elif name in HOSTILE:
        code, text = swarm(HOSTILE_SEEDS, "--only", "hostile", "--without", "secure," + PLAIN, "--jobs", "2", "--plant", name)
        ok, what = code not in (0, 2), f"{name} is caught"
    elif name in SECURE:
        code, text = swarm(SECURE_SEEDS, "--only", "secure", "--without", PLAIN, "--plant", name)
        ok, what = code not in (0, 2), f"{name} is caught"
    else:
        code, text = swarm(SEEDS, "--without", "hostile,secure," + PLAIN, "--plant", name)
        ok, what = code not in (0, 2), f"{name} is caught"
    passed += ok
    print(f"{'ok' if ok else 'not ok'} {number} - {what}", flush=True)
    report = re.search(r"FAILED seed.*|Again:\n.*|worlds \d+.*", text)
    print(f"# {report.group(0)[:200] if report else text[:200]!r}".replace("\n", " "))
sys.exit(0 if passed == len(names) else 1)
