#!/usr/bin/env python3
"""A spine dies under traffic: how fast flows leave it, and that they end. Prints TAP.

    dead_spine_test.py UET_SIM

Told from the events of the endpoints. A spine that is down swallows packets, so a transmission that never arrived (nor was
cut on the way) after the spine died was sent onto it.
"""

import json
import random
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

SIM = sys.argv[1]
HOSTS, SIZE, DIES_AT_US, BASE_RTT_NS = 32, 8_000_000, 100, 9348
results = []


def check(name, ok, why=""):
    results.append(ok)
    print(f"{'ok' if ok else 'not ok'} {len(results)} - {name} ({why})", flush=True)


def permutation(seed):
    order = list(range(HOSTS))
    random.Random(seed).shuffle(order)
    return {order[i]: order[(i + 1) % HOSTS] for i in range(HOSTS)}


def events_of(trace, to):
    """Per source: transmissions as (time, psn), arrivals at its destination as psn -> times, and its first inferred loss."""
    source_of = {d: s for s, d in to.items()}
    sent, arrived, first_sign = defaultdict(list), defaultdict(lambda: defaultdict(list)), {}
    for line in trace.open():
        e = json.loads(line)
        name, host, at = e["event"], e["host"], e["t"]
        if name in ("request-sent", "retransmitted"):
            sent[host].append((at, e["psn"]))
        elif name in ("request-delivered", "duplicate", "nack-sent"):
            arrived[source_of[host]][e["psn"]].append(at)
        elif name in ("inferred-loss", "rto") and at >= DIES_AT_US * 1000:
            first_sign.setdefault(host, at)
    return sent, arrived, first_sign


def lost_among(sent, arrived):
    """Transmissions of one source without an arrival of their own: the n-th arrival of a PSN belongs to its n-th survivor."""
    times, lost = defaultdict(list), []
    for at, psn in sent:
        times[psn].append(at)
    for psn, starts in times.items():
        for i, at in enumerate(starts):
            end = starts[i + 1] if i + 1 < len(starts) else float("inf")
            if not any(at < t <= end for t in arrived[psn]):
                lost.append(at)
    return lost


# Covers: the system test "one dead path" of [CC 10]
with tempfile.TemporaryDirectory() as folder:
    for lb, seed, extra in (("mixed", 1, []), ("mixed", 7, ["--paths", "16"]), ("bitmap", 3, []), ("reps", 5, []),
                            ("mixed", 9, ["--no-trim"])):
        to = permutation(seed)
        matrix, trace = Path(folder) / "m.cm", Path(folder) / "trace"
        matrix.write_text("\n".join([f"Nodes {HOSTS}", f"Connections {HOSTS}"] + [
            f"{s}->{d} id {i + 1} start 0 size {SIZE}" for i, (s, d) in enumerate(to.items())]) + "\n")
        done = subprocess.run(
            [SIM, "run", "--json", "--matrix", matrix, "--cc", "nscc", "--lb", lb, "--seed", str(seed), "--fail",
             f"spine0@{DIES_AT_US}", "--trace", trace, *extra], capture_output=True, text=True, timeout=300)
        r = json.loads(done.stdout)
        sent, arrived, first_sign = events_of(trace, to)
        before = after = late = 0
        for host, packets in sent.items():
            if host not in first_sign:
                continue
            off = first_sign[host] + 3 * BASE_RTT_NS
            after += sum(at > off for at, _ in packets)
            lost = lost_among(packets, arrived[host])
            late += sum(at > off for at in lost)
            before += sum(DIES_AT_US * 1000 < at <= off for at in lost)
        name = " ".join([lb, "seed", str(seed), *extra])
        check(f"{name}: every flow ends", r["completed"] == HOSTS, f"{r['completed']} of {HOSTS}")
        check(f"{name}: every flow saw the failure, and was on the dead spine", len(first_sign) >= HOSTS * 3 // 4 and before > 150,
              f"{len(first_sign)} flows, {before} packets lost on it")
        # Without trimming one loss is no proof: a path is left after two.
        limit = 0.01 if "--no-trim" in extra else 0.001
        check(f"{name}: off the dead spine three base RTTs after the first sign", late <= limit * after,
              f"{late} of {after} packets, {100 * late / after:.2f} %")
        # Three quarters of the capacity from 100 us on: 1.28 of the bound, all flows equal.
        # Most runs take 1.4 to 1.6. With 16 values a flow may keep few that lead elsewhere: of 18 runs two took 1.9 to 2.0.
        figure = r["fct_us"]["max"] / r["bound_us"]
        limit = 2.1 if "--paths" in extra else 1.85
        check(f"{name}: the last flow ends soon", figure <= limit, f"{figure:.3f} of the healthy bound")
print(f"1..{len(results)}")
sys.exit(0 if all(results) else 1)
