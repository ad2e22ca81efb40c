#!/usr/bin/env python3
"""uet-sim run, plot and compare: closed form, fields of the JSON object, names of runs, determinism, the page, exit codes. Prints TAP.

    run_test.py UET_SIM
"""

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from browser import MISSING, browser, drawn  # noqa: E402

FIELDS = ["run", "flows", "completed", "bound_us", "fct_us", "job_us", "job_bound_us", "jain", "packets", "retransmissions", "timeouts",
          "trims", "drops", "marks", "spine_share", "ooo_distance_max", "paths", "events", "max_rss_kib", "wall_s"]
SIM = os.path.abspath(sys.argv[1])
results = []


def check(name, ok, why=""):
    results.append(ok)
    print(f"{'ok' if ok else 'not ok'} {len(results)} - {name}")
    if not ok and why:
        print(f"# {why}")


def run(*args):
    done = subprocess.run([SIM, "run", "--json", *args], capture_output=True, text=True, timeout=120)
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else None, done.stderr


def matrix(folder, name, text):
    path = Path(folder) / name
    path.write_text(text)
    return str(path)


with tempfile.TemporaryDirectory() as folder:
    # Covers: CC system test "single flow": the store-and-forward bound within 0.1 %.
    for size, bound in ((8000, 14.341), (2_000_000, 176.20), (20_000_000, 1638.75)):
        path = matrix(folder, "one.cm", f"Nodes 16\nConnections 1\n0->13 id 1 start 0 size {size}\n")
        code, r, _ = run("--matrix", path, "--cc", "nscc")
        fct = r["fct_us"]["max"]
        check(f"one flow of {size} bytes meets the closed form", code == 0 and abs(fct / bound - 1) < 0.001, f"{fct} us")
        check(f"its bound is the published one ({size})", abs(r["bound_us"] / bound - 1) < 0.0005, str(r["bound_us"]))
    check("the JSON object has exactly its fields", list(r) == FIELDS and list(r["fct_us"]) == ["min", "median", "p99", "max"])
    code, r, _ = run("--matrix", path, "--cc", "rccc")
    check("one flow with receiver credit takes at most 1.5 % more", r["fct_us"]["max"] <= 1.015 * r["bound_us"])

    uneven = {}
    for packets in ((1, 1), (16, 1), (1, 16)):
        calm = ("--calm-run-packets", str(packets[1])) if packets[1] > 1 else ()
        code, r, _ = run("--pattern", "permutation", "--hosts", "64", "--lb", "oblivious", "--paths", "16", "--run-packets", str(packets[0]), *calm)
        uneven[packets] = r["job_us"] / r["job_bound_us"]
        check(f"the JSON object names the packets in a row that endpoints take ({packets})",
              (r["run"]["run_packets"], r["run"]["calm_run_packets"]) == (packets[0], max(packets)), str(r["run"]))
    # [decision 127]
    check("packets in a row on one path are uneven", uneven[16, 1] > 1.2 * uneven[1, 1], str(uneven))
    check("but not where they wait for a calm fabric", uneven[1, 16] < 1.05 * uneven[1, 1], str(uneven))

    incast = "Nodes 32\nConnections 8\n" + "".join(
        f"{h}->0 id {i + 1} start 0 size 1000000\n" for i, h in enumerate((4, 7, 11, 14, 17, 21, 25, 28)))
    path = matrix(folder, "incast.cm", incast)
    for cc, limit, jain in (("nscc", 1.08, 0.97), ("rccc", 1.02, 0.999), ("both", 1.02, 0.999)):
        code, r, _ = run("--matrix", path, "--cc", cc)
        share = r["fct_us"]["max"] / r["bound_us"]
        check(f"incast of 8, {cc}: within {limit} of the bound and fair", share <= limit and r["jain"] >= jain,
              f"{share:.3f}, Jain {r['jain']}")
    # Peers of a single packet never prove themselves: the tables of the hosts have a place for each of them all the same.
    code, r, _ = run("--pattern", "all-to-all", "--hosts", "16", "--bytes", "10000")
    check("messages of one packet from all hosts find a place at once", code == 0 and r["retransmissions"] == 0
          and r["fct_us"]["max"] < 50, f"{r['retransmissions']} retransmissions, max {r['fct_us']['max']} us")
    code, one, _ = run("--matrix", path, "--seed", "5")
    code, two, _ = run("--matrix", path, "--seed", "5")
    for r in (one, two):
        del r["wall_s"], r["max_rss_kib"]
    check("equal seeds give equal results", one == two)

    chain = ("Nodes 16\nConnections 2\nTriggers 1\n0->13 id 1 start 0 size 2000000 recv_done_trigger 1\n"
             "13->5 id 2 trigger 1 size 2000000\ntrigger id 1 oneshot\n")
    per_flow = Path(folder) / "flows.csv"
    code, r, _ = run("--matrix", matrix(folder, "chain.cm", chain), "--per-flow", str(per_flow))
    rows = per_flow.read_text().splitlines()
    check("a trigger starts its flow when the other has arrived", code == 0 and len(rows) == 3
          and 165 < float(rows[2].split(",")[4]) < 177, "\n# ".join(rows))

    code, _, error = run("--matrix", matrix(folder, "bad.cm", "Nodes 4\n0->9 size 5\n"))
    check("a malformed matrix is refused with the reason", code == 1 and "bad.cm" in error and "needs more than" in error, error)
    code, _, error = run("--matrix", str(Path(folder) / "missing.cm"))
    check("a missing matrix is refused", code == 1 and "cannot be opened" in error, error)
    code, _, error = run("--matrix", path, "--lb", "magic")
    check("an unknown option value is a usage error", code == 2, error)
    code, _, error = run("--matrix", path, "--fail", "spine9")
    check("an unknown link is a usage error", code == 2 and "names no link" in error, error)
    code, r, _ = run("--matrix", path, "--end-us", "100")
    check("flows that do not end in time are counted", code == 1 and r["completed"] == 0 and r["fct_us"]["max"] is None)
    burst = ("--pattern", "incast", "--hosts", "64", "--bytes", "100000", "--packets")
    code, r, error = run(*burst, "1000")
    check("a run that needs more packets than it may have is no result", code == 2 and r is None and "all 1000 packets are in use" in error
          and "--packets" in error, f"{code} {error}")
    code, r, error = run(*burst, "4000")
    check("one that needs fewer is", code == 0, error)
    some = ("--pattern", "incast", "--hosts", "8", "--bytes", "200000", "--end-us", "100")
    rows = Path(folder) / "some.csv"
    code, r, _ = run(*some, "--per-flow", str(rows))
    fct = r["fct_us"]
    check("what some flows took tells nothing of the slowest, nor of shares", code == 1 and 0 < r["completed"] < r["flows"] and fct["median"]
          and [fct["p99"], fct["max"], r["jain"]] == [None] * 3, str(r))
    text = subprocess.run([SIM, "run", *some], capture_output=True, text=True, timeout=120).stdout
    check("nor does the text", "of those that completed" in text and "slowest flow" not in text and "Jain" not in text, text)
    dead = ("--pattern", "permutation", "--hosts", "8", "--fail", "host0@10")
    code, r, _ = run(*dead, "--per-flow", str(rows))
    lines = [dict(zip(*pair)) for pair in [(rows.read_text().split("\n")[0].split(","), line.split(",")) for line in rows.read_text().split("\n")[1:-1]]]
    check("a flow that failed has no time and no rate", {bool(f["fct_us"]) for f in lines if f["state"] == "done"} == {True}
          and {(f["fct_us"], f["rate_gbps"]) for f in lines if f["state"].startswith("failed")} == {("", "")}, str(lines))

    # Faults that overlap.
    one = matrix(folder, "one.cm", "Nodes 16\nConnections 1\n0->13 id 1 start 0 size 2000000\n")
    _, half, _ = run("--matrix", one, "--degrade", "host0=0.5")
    _, r, _ = run("--matrix", one, "--degrade", "host0=0.5", "--degrade", "host0=0.25@5-10")
    check("a slow link stays slow when it was even slower for a while", r["job_us"] > half["job_us"] + 1, f"{r['job_us']} {half['job_us']}")
    _, r, _ = run("--matrix", one, "--fail", "host0@0-1000", "--degrade", "host0=0.5@10-20")
    check("a dead link stays dead when it gets slow, and when it is no longer slow", r["job_us"] > 1000, str(r["job_us"]))
    packet = matrix(folder, "packet.cm", "Nodes 16\nConnections 1\n0->13 id 1 start 0 size 4086\n")
    _, r, _ = run("--matrix", packet, "--degrade", "host0>leaf0=0.25")
    check("a fault of the beginning is there before the first packet", abs(r["job_us"] - r["bound_us"] - 3 * 0.332) < 1e-6, f"{r['job_us']} {r['bound_us']}")
    late = matrix(folder, "late.cm", "Nodes 16\nConnections 1\n0->13 id 1 start 121000000 size 4086\n")
    _, r, _ = run("--matrix", late, "--fail", "host0@0-120~100")
    check("one that comes and goes ends at its end", abs(r["job_us"] - r["job_bound_us"]) < 1e-6, f"{r['job_us']} {r['job_bound_us']}")
    for options in (("--degrade", "host0=nan"), ("--degrade", "host0=0.5@nan"), ("--fail", "host0@0-inf"), ("--end-us", "1e14"),
                    ("--end-us", "nan"), ("--end-us", "0"), ("--link-gbps", "nan"), ("--repair-us", "nan")):
        code, _, error = run("--matrix", packet, *options)
        check(f"{' '.join(options)} is a usage error", code == 2 and error, error)

    # Bounds begin where the flow does.
    for start, pattern in ((1_000_000_000, None), (0, ("--pattern", "permutation", "--hosts", "8", "--bytes", "100"))):
        late = matrix(folder, "late.cm", f"Nodes 16\nConnections 1\n0->13 id 1 start {start} size 2000000\n")
        done = subprocess.run([SIM, "run", *(pattern or ("--matrix", late))], capture_output=True, text=True, timeout=120)
        shares = re.findall(r"([0-9.]+) times its bound", done.stdout)
        check(f"bounds are met, but not beaten ({pattern or 'late flow'})", len(shares) == 2 and all(1 <= float(s) < 1.002 for s in shares), done.stdout)
    _, r, _ = run("--pattern", "permutation", "--hosts", "8", "--bytes", "100")
    check("nor by the whole job", r["bound_us"] <= r["fct_us"]["max"] and r["job_bound_us"] <= r["job_us"], str(r))

    trace = Path(folder) / "run.trace"
    run("--pattern", "permutation", "--hosts", "4", "--bytes", "40000", "--trace", str(trace))
    lines = [json.loads(line) for line in trace.read_text().splitlines()]
    check("events are told as FI_UET_TRACE does, with the host", lines and all(list(e)[:3] == ["t", "host", "event"] for e in lines)
          and all(re.fullmatch("[a-z_]+", key) for e in lines for key in e), str(lines[:3]))

    # A matrix is not overwritten.
    kept = matrix(folder, "kept.cm", incast)
    os.link(kept, Path(folder) / "alias.cm")
    for option in ("--per-flow", "--trace"):
        for path_of in (kept, str(Path(folder) / "alias.cm")):
            code, _, error = run("--matrix", kept, option, path_of)
            check(f"{option} into the matrix is refused", code == 2 and "is the --matrix to read" in error
                  and Path(kept).read_text() == incast, error)

    # What cannot be written says why.
    few = ("--pattern", "permutation", "--hosts", "4", "--bytes", "4000")
    for options, why in ((("--per-flow", "/dev/full"), "No space left"), (("--per-flow", f"{folder}/no/flows"), "No such file"),
                         (("--trace", f"{folder}/no/trace"), "No such file"), (("--trace", "/dev/full"), "to its end")):
        code, r, error = run(*few, *options)
        check(f"{' '.join(options).replace(folder, '')} fails with the reason", code == 1 and why in error and "cannot be written" in error, error)
        if options[0] == "--per-flow":
            check(f"before the run where it can be known, behind the figures where not ({options[1].replace(folder, '')})",
                  (r is not None) == (options[1] == "/dev/full"), str(r))

    # What would have no effect is refused.
    flows = matrix(folder, "few.cm", "Nodes 4\nConnections 1\n0->3 id 1 start 0 size 9\n")
    for options, why in ((("--matrix", flows, "--hosts", "64"), "excludes"), (("--matrix", flows, "--bytes", "1000"), "excludes"),
                         ((*few, "--run-packets", "8", "--calm-run-packets", "2"), "at least --run-packets"),
                         ((*few[:4], "--bytes", "8x"), "8x"), ((*few[:4], "--bytes", "0"), "number of bytes"), ((*few, "--queue-bytes", "-1"), "number of bytes")):
        code, _, error = run(*options)
        check(f"{' '.join(options[-4:]).replace(folder, '')} is a usage error", code == 2 and why in error, error)
    done = subprocess.run([SIM, "run", *few, "--path-state"], capture_output=True, text=True, timeout=120)
    check("--path-state that goes nowhere is a usage error", done.returncode == 2 and "--per-flow" in done.stderr and not done.stdout, done.stderr)
    code, r, error = run("--pattern", "permutation", "--hosts", "4", "--bytes", "8k")
    check("bytes may have k, M or G behind them", code == 0 and r["run"]["bytes"] == 8192, error)
    done = subprocess.run([SIM, "frob", "--seeds", "1"], capture_output=True, text=True, timeout=120)
    check("a command that does not exist is named", done.returncode == 2 and "no command 'frob'" in done.stderr and "swarm" in done.stderr, done.stderr)
    done = subprocess.run([SIM, "plto"], capture_output=True, text=True, timeout=120)
    check("and the one that is meant", done.returncode == 2 and "did you mean plot?" in done.stderr, done.stderr)
    code, r, _ = run("--matrix", matrix(folder, "two.cm", "Nodes 16\nConnections 2\n0->13 id 1 start 0 size 4086\n1->14 id 2 start 0 size 40860\n"))
    fct = r["fct_us"]
    check("the median of two flows is the mean, their p99 the slower one",
          abs(fct["median"] - (fct["min"] + fct["max"]) / 2) < 1e-5 and fct["p99"] == fct["max"] > fct["min"], str(fct))

    # What was run stands beside what came of it.
    options = ("--pattern", "ring-allreduce", "--hosts", "8", "--bytes", "80000", "--lb", "mixed", "--planes", "2", "--seed", "7",
               "--degrade", "plane0/spine0=0.5@10-90", "--fail", "host3@20~8", "--repair-us", "30")
    code, r, _ = run(*options)
    named = r["run"] if r else {}
    check("the JSON object names what was run", code == 0 and all(named.get(k) == v for k, v in {
        "pattern": "ring-allreduce", "hosts": 8, "bytes": 80000, "tiers": 2, "planes": 2, "link_gbps": 100, "cc": "nscc", "lb": "mixed",
        "paths": 64, "trimming": True, "repair_us": 30, "seed": 7,
        "faults": ["plane0/spine0 at 50 % from 10 us to 90 us", "host3 down for half of every 8 us from 20 us"]}.items()), str(named))
    done = subprocess.run([SIM, "run", *options], capture_output=True, text=True, timeout=120)
    _, percent, _ = run("--pattern", "permutation", "--hosts", "8", "--bytes", "20000", "--degrade", "spine0=12.5%@3")
    check("a factor may be a percentage", percent and percent["run"]["faults"] == ["spine0 at 12.5 % from 3 us"], str(percent))
    code, _, error = run("--pattern", "permutation", "--degrade", "spine0=125%")
    check("not one above a hundred", code == 2 and "nor a percentage" in error, error)
    check("so does the text", done.returncode == 0 and all(words in done.stdout for words in (
        "ring-allreduce, 8 hosts, 80000 bytes a host", "in each of 2 planes, 100 Gb/s links", "cc nscc, lb mixed, 64 paths",
        "plane0/spine0 at 50 % from 10 us to 90 us, host3 down for half of every 8 us from 20 us; switches route around")), done.stdout)
    check("a flow of a collective has no bound of its own", "whole job" in done.stdout and "slowest flow" not in done.stdout, done.stdout)


def plot(folder, *args):
    """Exit status, the page's data, the page, stderr."""
    page = Path(folder) / "run.html"
    page.unlink(missing_ok=True)
    done = subprocess.run([SIM, "plot", "--out", str(page), *args], capture_output=True, text=True, timeout=120)
    html = page.read_text() if page.exists() else ""
    found = re.search(r'id="data">(.*?)</script>', html)
    return done.returncode, json.loads(found[1])["runs"] if found else [], html, done.stderr


def flows_of_steps(rows):
    return [(row[0], row[1]) for row in rows]


def check_page(folder):
    ring = ("--pattern", "ring-allreduce", "--hosts", "8", "--bytes", "400000", "--degrade", "spine0=0.25")
    code, runs, html, error = plot(folder, *ring, "--fail", "spine1@20-60", "--versus", "--lb oblivious", "--versus", "--matrix none")
    check("a run that cannot be played is no page", code == 1 and not html and "none: cannot be opened" in error, error)
    code, runs, html, error = plot(folder, *ring, "--fail", "spine1@20-60", "--versus", "--lb oblivious --degrade spine1=0.5")
    if "libjs-d3" in error:
        print("# built without the package libjs-d3: no page")
        return
    check("plot draws two runs into one page", code == 0 and len(runs) == 2, error)
    check("the page needs nothing else", not re.search(r"<(?:script|link|img)[^>]*(?:src|href)=", html))
    check("it names what was run", [r["faults"] for r in runs] == [
        "spine0 at 25 %, spine1 down from 20 us to 60 us", "spine1 at 50 %, spine1 down from 20 us to 60 us"]
        and "lb oblivious" in runs[1]["transport"] and runs[1]["command"].endswith(
            "--hosts 8 --bytes 400000 --fail spine1@20-60 --lb oblivious --degrade spine1=0.5"), str([r["command"] for r in runs]))
    check("a ring has a step for each time that its parts move on", all(
        flows_of_steps(r["steps"]) == [(n, 8) for n in range(14)] for r in runs), str(runs and runs[0]["steps"]))
    check("steps end one after the other", all(a[4] < b[4] for r in runs for a, b in zip(r["steps"], r["steps"][1:])))
    check("spines with faults are marked", [[(bool(t[2]), t[3]) for t in r["tops"]] for r in runs] == [
        [(True, False), (True, True)], [(False, False), (True, True)]], str(runs and runs[0]["tops"]))
    if browser() is None:
        print(f"# {MISSING}: the page is not drawn")
    else:
        document, said = drawn(browser(), Path(folder) / "run.html", folder)
        check("a browser draws all charts", 'data-ready="2 runs, 7 charts"' in document, document[-1500:] + said)
        check("faults are colored", document.count('fill="#d62728"') >= 3 and document.count('fill="#ff7f0e"') >= 2)
    tree = ("--pattern", "tree-allreduce", "--hosts", "7", "--bytes", "9000")
    _, runs, _, _ = plot(folder, *tree)
    check("a tree goes up and down", len(runs) == 1 and flows_of_steps(runs[0]["steps"]) == [(0, 4), (1, 2), (2, 2), (3, 4)],
          str(runs and runs[0]["steps"]))
    circle = ("Nodes 8\nConnections 3\nTriggers 2\n0->1 id 1 start 0 size 9 recv_done_trigger 1\n1->2 id 2 trigger 1 size 9 recv_done_trigger 2\n"
              "2->3 id 3 trigger 2 size 9 recv_done_trigger 1\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n")
    _, runs, _, error = plot(folder, "--matrix", matrix(folder, "circle.cm", circle))
    check("flows that wait for each other have steps too", runs and flows_of_steps(runs[0]["steps"]) == [(0, 1), (1, 1), (2, 1)], error)
    waiting = ("Nodes 8\nConnections 3\nTriggers 2\n0->1 id 1 start 0 size 9000\n1->2 id 2 trigger 1 size 9 recv_done_trigger 2\n"
               "2->3 id 3 trigger 2 size 9 recv_done_trigger 1\ntrigger id 1 oneshot\ntrigger id 2 oneshot\n")
    path = matrix(folder, "waiting.cm", waiting)
    code, runs, _, error = plot(folder, "--matrix", path)
    check("a page ends though flows wait for each other", code == 1 and runs and runs[0]["figures"][0][1] == "1 of 3", f"{code} {error}")
    code, r, error = run("--matrix", path, "--degrade", "spine0=0.5~10")
    check("and so do links that flap", code == 1 and r["completed"] == 1, f"{code} {error}")
    code, runs, html, error = plot(folder, "--pattern", "permutation", "--hosts", "8", "--fail", "host0@10")
    check("a flow that a dead host keeps for a minute makes no page of minutes", code == 1 and runs and 1000 < len(runs[0]["queues"]) <= 4000
          and runs[0]["ended"] > 1e6, f"{code} {error}")
    two = matrix(folder, "two.cm", "Nodes 8\nConnections 2\n0->1 id 1 start 0 size 9000\n2->3 id 2 start 0 size 90000\n")
    _, runs, _, error = plot(folder, "--matrix", two)
    check("the median of a step of two flows is the mean", runs and abs(runs[0]["steps"][0][5] - sum(runs[0]["times"]) / 2) < 0.002, f"{error} {runs and runs[0]['steps']}")
    for text, why in (("--lb magic", "none of"), ("--out x", "not expected"), ("--pattern none", "no pattern"), ("--fail spine77", "names no link")):
        code, _, html, error = plot(folder, *ring, "--versus", text)
        check(f"--versus '{text}' is a usage error", code == 2 and not html and why in error, error)
    # Before the first run is played.
    for out, options, why in (("no/run.html", (), "cannot be written"), ("run.html", ("--versus", "--matrix bad.cm"), "bad.cm"),
                              ("run.html", ("--versus", "--fail spine77"), "names no link")):
        done = subprocess.run([SIM, "plot", *ring, "--out", str(Path(folder) / out), *options], capture_output=True, text=True, timeout=120, cwd=folder)
        check(f"plot finds out before it runs: {why}", done.returncode in (1, 2) and why in done.stderr and not done.stdout, done.stdout + done.stderr)
    code, _, _, error = plot(folder, "--matrix", matrix(folder, "few.cm", "Nodes 4\nConnections 1\n0->3 id 1 start 0 size 9\n"), "--versus", "--hosts 8")
    check("--versus takes no hosts of a pattern where there is none", code == 2 and "--pattern" in error, error)
    code, _, _, error = plot(folder, *ring, "--versus", "--seed 2", "--per-flow", str(Path(folder) / "flows"))
    check("files of one run and two runs contradict each other", code == 2 and "--versus" in error, error)


with tempfile.TemporaryDirectory() as folder:
    check_page(folder)


def compare(*args):
    done = subprocess.run([SIM, "compare", *args], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout, done.stderr


code, text, _ = compare("--pattern", "permutation", "--bytes", "200000", "--cc", "nscc,both", "--lb", "single,mixed", "--fault", "none",
                        "--fault", "degrade=spine0=0.25", "--seeds", "2", "--json")
rows = json.loads(text)["rows"] if code == 0 else []
check("compare runs every fault with every algorithm and path choice", [(r["fault"], r["cc"], r["lb"]) for r in rows] == [
    (fault, cc, lb) for fault in ("none", "degrade=spine0=0.25") for cc in ("nscc", "both") for lb in ("single", "mixed")], text)
check("each with every seed", all(len(r["job_us"]) == 2 for r in rows))
_, alone, _ = run("--pattern", "permutation", "--bytes", "200000", "--cc", "both", "--lb", "mixed", "--seed", "2")
check("a seed gives what run gives", len(rows) == 8 and rows[3]["job_us"][1] == alone["job_us"], f"{rows[3:4]} {alone['job_us']}")
check("a slow spine shows", len(rows) == 8 and min(rows[5]["of_bound"]) > max(rows[1]["of_bound"]))
code, text, _ = compare("--pattern", "permutation", "--hosts", "8", "--bytes", "20000", "--degrade", "spine0=0.5", "--fault", "none", "--fault",
                        "fail=spine1@5", "--seeds", "1", "--no-trim", "--json")
table = json.loads(text) if code == 0 else {"rows": [], "run": {}}
check("compare names the faults of all lines in each", [r["fault"] for r in table["rows"]] == ["degrade=spine0=0.5", "degrade=spine0=0.5+fail=spine1@5"], text)
check("and what all lines share", {k: table["run"].get(k) for k in ("pattern", "hosts", "bytes", "trimming", "lb", "seed")} == {
    "pattern": "permutation", "hosts": 8, "bytes": 20000, "trimming": False, "lb": None, "seed": None}, text)
code, text, _ = compare("--matrix", str(Path(__file__).resolve().parents[2] / "examples/permutation.cm"), "--degrade", "spine0", "--seeds", "1")
check("its text does, too", code == 0 and "permutation.cm, 32 hosts, 32 flows" in text and "8 leaves, 4 spines" in text
      and "\ndegrade=spine0 " in text, text)
code, text, _ = compare("--pattern", "incast", "--hosts", "8", "--bytes", "100000", "--csv")
check("its CSV has a line for each row", code == 0 and [len(line.split(",")) for line in text.splitlines()] == [13, 13], text)
code, _, error = compare("--pattern", "incast", "--fault", "slow=spine0")
check("an unknown fault is a usage error that says what is meant", code == 2 and "degrade=LINKS" in error, error)
for faults, why in ((("none", "foo"), "degrade=LINKS"), (("none", "fail=spine99"), "names no link")):
    code, text, error = compare("--pattern", "incast", "--hosts", "8", "--fault", faults[0], "--fault", faults[1])
    check(f"a wrong fault is found before the first row: {faults[1]}", code == 2 and why in error and not text, text + error)
with subprocess.Popen([SIM, "compare", "--pattern", "permutation", "--hosts", "16", "--bytes", "1M", "--lb", "single,mixed", "--seeds", "15", "--csv"],
                      stdout=subprocess.PIPE, text=True) as job:
    lines = [job.stdout.readline(), job.stdout.readline()]
    job.kill()
    check("rows come one by one", lines[1].startswith("none,nscc,single,0,") and "mixed" not in job.stdout.read(), str(lines))
code, _, error = compare("--pattern", "incast", "--lb", "mixed,magic")
check("an unknown path choice is a usage error", code == 2 and "magic" in error, error)


def swarm(*args, **more):
    done = subprocess.run([SIM, "swarm", *args], capture_output=True, text=True, timeout=120, **more)
    return done.returncode, done.stdout, done.stderr


def no_processes():
    """The limit does not hold for root."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


code, _, error = swarm("--seeds", "1", "--without", "loss,hostlie")
check("an unknown ingredient is a usage error that lists them", code == 2 and "'hostlie'" in error and "hostile" in error
      and "tiny-window" in error and "late-duplicate" in error, error)
for options in (("--seeds", "-1"), ("--seeds", "1..-1"), ("--seeds", "1..2x"), ("--seeds", "1", "--ops", "-1"), ("--seeds", "1", "--episodes", "1,-2")):
    code, text, error = swarm(*options)
    check(f"{' '.join(options)} is a usage error", code == 2 and "want" in error and not text, f"{code} {text} {error}")
code, text, _ = swarm("--help")
known = re.search(r"--without TEXT\s+leave these out, with commas between: (.*)", text)
known = [word.strip() for word in known[1].split(",")] if known else []
code, _, error = swarm("--seeds", "1..3", "--without", ",".join(known))
check("--help lists them", code == 0 and {"hostile", "secure", "planes", "corrupt", "dead-plane"} <= set(known), f"{known} {error}")
only = next(word for word in ("secure", "hostile", "honest") if "worlds 0 " in swarm("--seeds", "2", "--only", word)[1])
for jobs in ("1", "2"):
    code, _, error = swarm("--seeds", "2", "--only", only, "--jobs", jobs)
    check(f"no world at all is a failure ({jobs} jobs)", code == 1 and "no world" in error, f"{code} {error}")
code, _, error = swarm("--seeds", "1", "--events", "9")
check("--events without --verbose is a usage error", code == 2 and "--verbose" in error, error)
for options, why in ((("--seeds", "3", "--ops", "9999"), "--ops 9999: no world"), (("--seeds", "1", "--verbose", "--events", "100000000000"), "--events")):
    code, text, error = swarm(*options)
    check(f"{' '.join(options)} is refused", code in (1, 2) and why in error, f"{code} {text} {error}")
code, text, _ = swarm("--seeds", "1..6", "--only", "honest", "--expect-all")
_, left_out, _ = swarm("--seeds", "1..6", "--only", "honest", "--without", "secure", "--expect-all")
never = [re.search(r"never occurred:(.*)", said)[1].split() for said in (text, left_out)]
played = re.search(r"secured worlds (\d+)", text)
check("--expect-all wants what was not left out", code == 1 and "attackers" not in never[0] + never[1] and "secured-worlds" not in never[1]
      and ("secured-worlds" in never[0]) == (played is None), f"{never}")
_, text, _ = swarm("--seeds", "1", "--without", "hold", "--expect-all")
never = re.search(r"never occurred:(.*)", text)[1].split()
check("no secured world is one that never occurred", ("secured-worlds" in never) == ("secured worlds" not in text), text)
try:
    code, text, error = swarm("--seeds", "1..8", "--jobs", "2", preexec_fn=no_processes, env=dict(os.environ, ASAN_OPTIONS="detect_leaks=0"))
    check("worlds for which there is no process are a failure", code == 1 and error.count("cannot start a process: ") == 2, f"{code} {text} {error}")
except PermissionError:
    print(f"# another user cannot run {SIM}: processes are not limited")

print(f"1..{len(results)}")
sys.exit(0 if all(results) else 1)
