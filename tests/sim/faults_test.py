#!/usr/bin/env python3
"""uet-sim run under faults, with several planes, with bad input. Nothing may hang or die of a signal. Prints TAP.

    faults_test.py UET_SIM
"""

import csv
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SIM = sys.argv[1]
SEED = 20
results = []


def check(name, ok, why=""):
    results.append(bool(ok))
    print(f"{'ok' if ok else 'not ok'} {len(results)} - {name}", flush=True)
    if not ok and why:
        print("# " + str(why)[:500].replace("\n", "\n# "))


def call(*args):
    try:
        done = subprocess.run([SIM, "run", "--json", *map(str, args)], capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return 99, None, "hangs"
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else None, done.stderr


def permutation(*args, tiers=2, size=2_000_000, lb="mixed"):
    return call("--pattern", "permutation", "--hosts", 32 if tiers == 2 else 54, "--tiers", tiers, "--bytes", size,
                "--lb", lb, *args)


def faults():
    """Every kind of trouble in both kinds of tree: the flows end."""
    for tiers, top, cable, one_way in ((2, "spine0", "leaf2-spine1", "spine1>leaf2"),
                                       (3, "core0", "leaf2-agg1", "core1>agg0")):
        middle = ["agg2"] if tiers == 3 else []
        for what in [top, cable, one_way, "leaf1", "host5", *middle]:
            for times in ("@20-400", "@20-1000~100"):
                code, r, error = permutation("--fail", what + times, tiers=tiers)
                check(f"{tiers} tiers, {what}{times} fails: all flows end", code == 0, error or r)
        for what in [top, cable, one_way, *middle]:
            code, r, error = permutation("--fail", what + "@20", tiers=tiers)
            check(f"{tiers} tiers, {what}@20 fails for good: all flows end", code == 0, error or r)
            code, r, error = permutation("--degrade", what + "=0.1@10-300", "--degrade", "leaf0=0.5", tiers=tiers)
            check(f"{tiers} tiers, {what} is slow for a while: all flows end", code == 0, error or r)
        for cc in ("rccc", "both", "none"):
            code, r, error = permutation("--fail", top + "@20", "--cc", cc, tiers=tiers)
            check(f"{tiers} tiers, {top}@20 fails, {cc}: all flows end", code == 0, error or r)
        code, r, error = permutation("--fail", top + "@20", "--no-trim", tiers=tiers)
        check(f"{tiers} tiers, {top}@20 fails, no trimming: all flows end", code == 0, error or r)
    code, r, error = permutation("--fail", "host5")
    check("flows of a host that is dead from the beginning fail, the others end", code == 1 and r["completed"] == 30, error or r)


def route_repair():
    for tiers, what in ((2, "spine0@20"), (2, "leaf2-spine1@20"), (3, "core0@20"), (3, "agg1@20")):
        _, without, _ = permutation("--fail", what, tiers=tiers)
        code, r, error = permutation("--fail", what, "--repair-us", 30, tiers=tiers)
        check(f"{tiers} tiers, {what}: repaired routes lose less ({without['drops']} -> {r['drops']})",
              code == 0 and r["drops"] < without["drops"], error)
    code, r, _ = permutation("--repair-us", 0)
    _, plain, _ = permutation()
    check("without a fault there is nothing to repair", code == 0 and r["fct_us"] == plain["fct_us"])


def planes(folder):
    for n in (2, 4, 8):
        code, r, _ = permutation("--planes", n, size=8_000_000)
        share = r["fct_us"]["max"] / r["bound_us"]
        check(f"{n} planes: within 1.35 of the bound of {n} ports ({share:.2f})", code == 0 and share < 1.35, r)
        by_plane = [sum(r["spine_share"][p * 4:p * 4 + 4]) for p in range(n)]
        check(f"{n} planes: packets spread over all of them", max(by_plane) - min(by_plane) < 0.1 / n, by_plane)
    whole = permutation("--planes", 2, size=8_000_000)[1]["fct_us"]["max"]
    single = permutation(size=8_000_000)[1]["fct_us"]["max"]
    # Covers: CC system test "several ports": a port of a host, its peer's port, a whole plane, all with fail-over.
    for what in ("plane1/host7", "plane0/host0", "plane1", "plane0/leaf3"):
        code, r, error = permutation("--planes", 2, "--fail", what + "@50", size=8_000_000)
        took = r["fct_us"]["max"]
        check(f"{what} fails at 50 us: the other plane carries on ({took:.0f} us; two planes {whole:.0f}, one {single:.0f})",
              code == 0 and took < 1.15 * single, error)
        code, r, error = permutation("--planes", 2, "--fail", what + "@50-150", size=8_000_000)
        back = r["fct_us"]["max"]
        check(f"{what} is back at 150 us ({back:.0f} us)", code == 0 and back <= 1.1 * took, error)
        code, r, error = permutation("--planes", 2, "--fail", what + "@10-3000~100", size=8_000_000)
        check(f"{what} flaps: all flows end", code == 0, error)
    _, r, _ = permutation("--planes", 2, "--fail", "plane1@50-150", size=8_000_000)
    check("the plane that came back is used again", sum(r["spine_share"][4:]) > 0.25, r["spine_share"])
    # A path of a dead port of the peer rests for 10 ms, then returns with one packet.
    matrix = Path(folder) / "long.cm"
    matrix.write_text("Nodes 32\nConnections 1\n0->29 id 1 start 0 size 40000000\n")
    for what, most in (("plane1/host29@1000", 32_500), ("plane1/host29@1000-3000", 26_000), ("plane1/host0@1000-3000", 18_500)):
        for cc in ("nscc", "rccc"):
            code, r, error = call("--matrix", matrix, "--planes", 2, "--link-gbps", 10, "--lb", "mixed", "--cc", cc, "--fail", what)
            check(f"{what}, {cc}: 40 MB take {r['fct_us']['max']:.0f} us of at most {most}", code == 0 and r["fct_us"]["max"] <= most, error)
    for lb in ("oblivious", "bitmap", "reps", "reps_legacy", "single"):
        code, r, error = permutation("--planes", 2, "--fail", "plane1/host7@50", lb=lb)
        check(f"a port fails with --lb {lb}: all flows end", code == 0, error)
    for cc in ("rccc", "both", "none"):
        code, r, error = permutation("--planes", 3, "--fail", "plane2/host7@50-200", "--cc", cc, tiers=3)
        check(f"three planes of three tiers, a port fails for a while, {cc}: all flows end", code == 0, error)
    code, one, _ = permutation("--planes", 2, "--fail", "plane1/host7@50", "--seed", 5)
    code, two, _ = permutation("--planes", 2, "--fail", "plane1/host7@50", "--seed", 5)
    for r in (one, two):
        del r["wall_s"], r["max_rss_kib"]
    check("equal seeds give equal results with planes too", one == two)


def path_state(folder):
    per_flow = Path(folder) / "flows.csv"
    code, r, error = permutation("--fail", "spine0@20", "--path-state", "--per-flow", per_flow)
    totals = r["paths"]
    check("path totals add up", totals["good"] + totals["evicted"] + totals["returning"] == totals["known"] == 32 * 64, totals)
    check("a dead spine shows in them", totals["evicted"] > 0, totals)
    states = r["path_state"]
    paths = [p for flow in states for p in flow["paths"]]
    check("every flow lists its paths", len(states) == 32 and all(f["paths"] for f in states))
    fields = ["entropy", "plane", "state", "score", "rtt_us", "sent", "marks", "trims", "losses"]
    check("every path has exactly its fields", all(list(p) == fields for p in paths), paths[0])
    check("evicted paths are those that lost something", all(p["losses"] > 0 for p in paths if p["state"] == "evicted"
                                                              and p["sent"] > 0) and any(p["state"] == "evicted" for p in paths))
    check("round trips are plausible", all(2 < p["rtt_us"] < 100 for p in paths if p["rtt_us"]))
    rows = list(csv.DictReader(open(per_flow)))
    listed = list(csv.DictReader(open(str(per_flow) + ".paths")))
    check("the CSV files say the same", len(listed) == len(paths) and len(rows) == 32
          and sum(int(x["losses"]) for x in rows) == sum(p["losses"] for p in paths)
          and sum(int(x["paths_evicted"]) for x in rows) == totals["evicted"])
    _, r, _ = permutation("--planes", 2, "--path-state")
    check("paths name their plane", {p["plane"] for f in r["path_state"] for p in f["paths"]} == {0, 1})
    check("without the option the object stays small", "path_state" not in permutation()[1])


GOOD = """Nodes 8
Connections 4
Triggers 2
0->3 id 1 start 0 size 20000 send_done_trigger 1
1->4 id 2 start 1000000 size 1 recv_done_trigger 2
2->5 id 3 trigger 1 size 4086
5->0 id 4 trigger 2 size 4087 prio 3
trigger id 1 oneshot
trigger id 2 barrier count 1
"""

BAD = {  # text: what the message must say
    "": "Nodes",
    "Nodes -3\n": "line 1",
    "Nodes 4\nConnections -1\n": "line 2",
    "Nodes 4\nConnections 2\n0->1 id 1 start 0 size 5\n": "2",
    "Nodes 99999999999999999999\n": "line 1",
    "Nodes 4\n0->1 id 1 start 0\n": "size",
    "Nodes 4\n0->1 id 1 start -5 size 3\n": "line 2",
    "Nodes 4\n0->1 id 1 start 0 size -3\n": "line 2",
    "Nodes 4\n0->1 id 1 start 0 size 0\n": "size",
    "Nodes 4\n0->0 id 1 start 0 size 3\n": "one host",
    "Nodes 4\n0->9 id 1 start 0 size 3\n": "nodes",
    "Nodes 4\n-1->2 id 1 start 0 size 3\n": "line 2",
    "Nodes 4\n0->1 id 1 start 0 size 3\n1->2 id 1 start 0 size 3\n": "twice",
    "Nodes 4\n0->1 id 1 trigger 7 size 3\n": "no trigger 7",
    "Nodes 4\n0->1 id 1 trigger 1 start 3 size 3\ntrigger id 1 oneshot\n": "not both",
    "Nodes 4\ntrigger id 1 oneshot\ntrigger id 1 oneshot\n": "twice",
    "Nodes 4\ntrigger id 1 sometimes\n": "kind",
    "Nodes 4\ntrigger id 1 barrier count 0\n": "at least 1",
    "Nodes 4\ntrigger id 1 barrier\n": "count",
    "Nodes 4\ntrigger\n": "id",
    "Nodes 4\nbanana\n": "banana",
    "Nodes 4\n0->1 id 1 start 0 size 3 colour 5\n": "colour",
}


def matrices(folder):
    path = Path(folder) / "m.cm"
    path.write_text(GOOD)
    code, r, error = call("--matrix", path)
    check("start, trigger and barrier lines work", code == 0 and r["flows"] == 4, error)
    for text, part in BAD.items():
        path.write_text(text)
        code, _, error = call("--matrix", path)
        check(f"refused with the reason: {text.strip()[-60:]!r}", code == 1 and part in error and "m.cm" in error, error or "accepted")
    path.write_text("Nodes 4\n0->1 id 1 trigger 1 size 9 send_done_trigger 1\n2->3 id 2 start 0 size 9\ntrigger id 1 oneshot\n")
    code, r, error = call("--matrix", path)
    check("a flow that waits for itself never starts, and the run ends", code == 1 and r["completed"] == 1, error)

    rng = random.Random(SEED)
    words = ["-1", "0", "1", "id", "start", "size", "trigger", "oneshot", "barrier", "count", "->", "0->1", "\n", "99999999999999999999",
             "#", "Nodes", "Connections", "\0", "1e9", "multishot", "send_done_trigger"]
    bad = []
    for _ in range(150):
        tokens = GOOD.replace("\n", " \n ").split(" ")
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(tokens))
            kind = rng.randrange(4)
            if kind == 0:
                del tokens[at]
            elif kind == 1:
                tokens[at] = rng.choice(words)
            elif kind == 2:
                tokens.insert(at, rng.choice(words))
            else:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
        path.write_text(" ".join(tokens))
        code, r, error = call("--matrix", path, "--end-us", 2000)
        if code not in (0, 1) or (r is None and not error):
            bad.append((code, error, " ".join(tokens)))
    check(f"150 damaged matrices (seed {SEED}) are played or refused", not bad, bad[:1])


def options():
    for args, part in ((["--cc", "foo"], "none of"), (["--lb", "foo"], "none of"), (["--paths", 3], "power of two"), (["--planes", 0], "range"),
                       (["--planes", 9], "range"), (["--tiers", 4], "tiers"), (["--degrade", "spine0=2"], "factor"),
                       (["--degrade", "9"], "only 4"), (["--fail", "spine0@5-2"], "after the start"), (["--fail", "spine0@x"], "no time"),
                       (["--fail", "plane1/spine0"], "names no link"), (["--seed", "-1"], "negative"), (["--repair-us", "-1"], "range"),
                       (["--mtu-payload", 0], "range"), (["--hop-ns", "-1"], "range"), (["--link-gbps", 0], "range"),
                       (["--bytes", 0], "range"), (["--end-us", "-1"], "end-us"), (["--nonsense"], "nonsense"),
                       (["--matrix", "also.cm"], "either")):
        code, _, error = call("--pattern", "permutation", *args)
        check(f"usage error with a reason: {' '.join(map(str, args))}", code == 2 and part in error, error)
    code, _, error = call("--pattern", "banana")
    check("an unknown pattern is a usage error that lists the known ones", code == 2 and "pipeline" in error, error)


with tempfile.TemporaryDirectory() as folder:
    faults()
    route_repair()
    planes(folder)
    path_state(folder)
    matrices(folder)
    options()
print(f"1..{len(results)}")
sys.exit(0 if all(results) else 1)
