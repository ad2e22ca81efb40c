#!/usr/bin/env python3
"""uet-sim run: closed form, fields of the JSON object, determinism, exit codes. Prints TAP.

    run_test.py UET_SIM
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

FIELDS = ["flows", "completed", "bound_us", "fct_us", "job_us", "job_bound_us", "jain", "packets", "retransmissions", "timeouts",
          "trims", "drops", "marks", "spine_share", "ooo_distance_max", "paths", "events", "max_rss_kib", "wall_s"]
SIM = sys.argv[1]
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

    page = Path(folder) / "run.html"
    done = subprocess.run([SIM, "plot", "--pattern", "permutation", "--planes", "2", "--fail", "plane1/spine0@50", "--out", str(page)],
                          capture_output=True, text=True, timeout=120)
    html = page.read_text() if page.exists() else ""
    check("plot writes four charts", done.returncode == 0 and html.count("<svg") == 4, done.stderr)
    check("the page needs nothing else", not re.search(r"(src|href)=|url\(|https?:|@import|<script", html))
    charts = [ElementTree.fromstring(svg) for svg in re.findall("<svg.*?</svg>", html, re.S)]
    numbers = [float(n) for chart in charts for line in chart.iter("polyline") for point in line.get("points").split()
               for n in point.split(",")]
    check("its charts are well formed, with lines inside of the frame",
          len(charts) == 4 and len(numbers) > 200 and min(numbers) >= 0 and max(numbers) <= 640, f"{len(numbers)} numbers")
    check("a bar for each spine of each plane", len(list(charts[3].iter("rect"))) == 8 if len(charts) == 4 else False)


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
code, text, _ = compare("--pattern", "incast", "--hosts", "8", "--bytes", "100000", "--csv")
check("its CSV has a line for each row", code == 0 and [len(line.split(",")) for line in text.splitlines()] == [13, 13], text)
code, _, error = compare("--pattern", "incast", "--fault", "slow=spine0")
check("an unknown fault is a usage error that says what is meant", code == 2 and "degrade=LINKS" in error, error)
code, _, error = compare("--pattern", "incast", "--lb", "mixed,magic")
check("an unknown path choice is a usage error", code == 2 and "magic" in error, error)

print(f"1..{len(results)}")
sys.exit(0 if all(results) else 1)
