#!/usr/bin/env python3
"""Runs the traffic matrices of the published measurements and holds the results against bands. Prints a table, or TAP.

    acceptance.py UET_SIM [--quick] [--only TEXT] [--seeds N] [--matrices FOLDER] [--tap]

Matrices are built in; with --matrices, files of the same names are taken from FOLDER instead. Every row is the worst of
its seeds. --quick leaves out what takes long: large fabrics, large flows, all seeds but the first.
Exit code 0 when every band holds but those of KNOWN_MISSES, which the README of apps/sim explains.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

PERM_32 = [7, 30, 3, 23, 28, 19, 27, 16, 18, 15, 4, 26, 8, 2, 29, 12, 22, 21, 0, 11, 1, 31, 9, 14, 6, 10, 5, 25, 13, 17,
           20, 24]


def flows_of(pairs, size):
    return [(s, d, 0, size) for s, d in pairs]


def derangement(hosts, seed):
    """One cycle through all hosts: no host sends to itself."""
    order = list(range(hosts))
    random.Random(seed).shuffle(order)
    to = {order[i]: order[(i + 1) % hosts] for i in range(hosts)}
    return [(h, to[h]) for h in range(hosts)]


def spread(n):
    """`n` sources of a fabric of 128 hosts: one in the rack of the destination 0, the others over all pods."""
    return [(1 if i == 0 else i * 128 // n, 0) for i in range(n)]


MB, KB = 1_000_000, 1024
P32 = list(enumerate(PERM_32))
MATRICES = {
    "single_16_8KB": (16, flows_of([(0, 13)], 8000)),
    "single_16_2MB": (16, flows_of([(0, 13)], 2 * MB)),
    "single_16_20MB": (16, flows_of([(0, 13)], 20 * MB)),
    "perm_16_2MB": (16, flows_of(derangement(16, 16), 2 * MB)),
    "perm_32_2MB": (32, flows_of(P32, 2 * MB)),
    "perm_32_8MB": (32, flows_of(P32, 8 * MB)),
    "perm_32b_2MB": (32, flows_of(derangement(32, 77), 2 * MB)),
    "perm_32b_8MB": (32, flows_of(derangement(32, 77), 8 * MB)),
    "perm_128_2MB": (128, flows_of(derangement(128, 128), 2 * MB)),
    "incast_32_8to1_1MB": (32, flows_of([(h, 0) for h in (4, 7, 11, 14, 18, 21, 25, 28)], MB)),
    "incast_32_8to1_8MB": (32, flows_of([(h, 0) for h in (4, 7, 11, 14, 18, 21, 25, 28)], 8 * MB)),
    "incast_32_2to1_1MB": (32, flows_of([(4, 0), (21, 0)], MB)),
    "incast_128_8to1_1MB": (128, flows_of(spread(8), MB)),
    "incast_128_32to1_1MB": (128, flows_of(spread(32), MB)),
    "incast_128_100to1_1MB": (128, flows_of(spread(100), MB)),
    "incast_128_100to1_64KB": (128, flows_of(spread(100), 64 * KB)),
    "outcast_32_1to8_1MB": (32, flows_of([(0, h) for h in (4, 7, 11, 14, 18, 21, 25, 28)], MB)),
    "a2a_16_64KB": (16, flows_of([(s, d) for s in range(16) for d in range(16) if s != d], 64 * KB)),
    "a2a_32_16KB": (32, flows_of([(s, d) for s in range(32) for d in range(32) if s != d], 16 * KB)),
    "join_32_2to1_10MB": (32, [(4, 0, 0, 10 * MB), (21, 0, 200_000_000, 10 * MB)]),
    "leave_32_20MB_2MB": (32, [(4, 0, 0, 20 * MB), (21, 0, 0, 2 * MB)]),
    "rtt_16_2to1_10MB": (16, [(1, 0, 0, 10 * MB), (13, 0, 0, 10 * MB)]),
}

# Name, matrix, options: what is not reached yet.
KNOWN_MISSES = [
    ("permutation, aim", "perm_128_2MB", ""),
    ("slow spine, aim", "", "--lb bitmap"),
    ("slow spine, aim", "perm_32_8MB", "--lb mixed"),
    ("dead spine", "", ""),
]


@dataclass
class Case:
    """One band. `check` sees the JSON of a run and returns a figure and whether it is good."""
    name: str
    matrix: str
    options: list
    band: str
    check: object
    quick: bool = False
    seeds: int = 0
    per_flow: bool = False


def within(limit, jain=0.0, median=None, share=None):
    def check(r, _):
        figure = r["fct_us"]["max"] / r["bound_us"]
        ok = r["completed"] == r["flows"] and figure <= limit and r["jain"] >= jain
        if median:
            ok = ok and r["fct_us"]["median"] <= median * r["bound_us"]
        if share:
            ok = ok and r["spine_share"][0] <= share
        return figure, ok
    return check


def at_least(limit, share=None):
    def check(r, _):
        figure = r["fct_us"]["max"] / r["bound_us"]
        return figure, figure >= limit and (share is None or r["spine_share"][0] >= share)
    return check


def exactly(tolerance):
    def check(r, _):
        figure = r["fct_us"]["max"] / r["bound_us"]
        return figure, abs(figure - 1) <= tolerance
    return check


def all_flows_near(value, tolerance):
    def check(_, flows):
        worst = max((f["fct"] / value for f in flows), key=lambda x: abs(x - 1))
        return worst, abs(worst - 1) <= tolerance
    return check


def long_flow(limit):
    def check(_, flows):
        figure = max(f["end"] for f in flows) / 1796.6
        return figure, figure <= limit
    return check


def rate_ratio(limit):
    """While both run, one flow may get so much more than the other; the link stays full."""
    def check(r, flows):
        first, last = sorted(f["fct"] for f in flows)
        # The link is full to the end, so the slower flow moved all but this share of its bytes in the company of the other.
        figure = 1 / max(1 - 2 * (last - first) / last, 0.01)
        return figure, figure <= limit and r["fct_us"]["max"] <= 1.01 * r["bound_us"]
    return check


def dead_spine(limit):
    def check(r, _):
        figure = r["fct_us"]["max"] / r["bound_us"]
        return figure, r["completed"] == r["flows"] and figure <= limit
    return check


def options(cc="nscc", lb="bitmap", *more):
    return ["--cc", cc, "--lb", lb, *more]


def cases():
    for size in ("8KB", "2MB", "20MB"):
        for cc in ("nscc", "none"):
            yield Case("single", f"single_16_{size}", options(cc), "= 1 +- 0.001", exactly(0.001), quick=True, seeds=1)
    for lb in ("oblivious", "reps", "reps_legacy", "mixed", "single"):
        yield Case("single", "single_16_20MB", options("nscc", lb), "= 1 +- 0.001", exactly(0.001), seeds=1)
    for cc in ("rccc", "both"):
        yield Case("single", "single_16_20MB", options(cc), "<= 1.015", within(1.015), quick=True, seeds=1)
    for lb in ("bitmap", "mixed"):
        for matrix in ("perm_32_2MB", "perm_32_8MB", "perm_16_2MB", "perm_128_2MB", "perm_32b_2MB"):
            yield Case("permutation", matrix, options("nscc", lb), "<= 1.20, median 1.11", within(1.20, median=1.11),
                       quick=matrix == "perm_32_2MB")
    for matrix in ("perm_32_2MB", "perm_32b_2MB", "perm_128_2MB"):
        yield Case("permutation, aim", matrix, options("nscc", "mixed"), "<= 1.08", within(1.08))
    for cc in ("rccc", "both"):
        for lb in ("bitmap", "mixed"):
            yield Case("permutation", "perm_32_2MB", options(cc, lb), "<= 1.20", within(1.20))
    for matrix in ("perm_32_2MB", "perm_128_2MB"):
        yield Case("oblivious", matrix, options("nscc", "oblivious"), "<= 1.50", within(1.50))
        yield Case("oblivious, 256", matrix, options("nscc", "oblivious", "--paths", "256"), "<= 1.20", within(1.20))
        yield Case("one path", matrix, options("nscc", "oblivious", "--paths", "1"), ">= 2.5", at_least(2.5),
                   quick=matrix == "perm_32_2MB")
    yield Case("no trimming", "perm_32_2MB", options("nscc", "bitmap", "--no-trim"), "<= 1.20", within(1.20))
    for n, limit in ((8, 1.08), (32, 1.04), (100, 1.04)):
        yield Case("incast", f"incast_128_{n}to1_1MB", options("nscc"), f"<= {limit}, Jain 0.97", within(limit, 0.97))
        for cc in ("rccc", "both"):
            yield Case("incast", f"incast_128_{n}to1_1MB", options(cc), "<= 1.02, Jain 0.999", within(1.02, 0.999))
    for lb in ("bitmap", "mixed"):
        yield Case("incast", "incast_128_100to1_64KB", options("nscc", lb), "<= 1.09", within(1.09), quick=lb == "bitmap")
        yield Case("incast", "incast_128_100to1_64KB", options("both", lb), "<= 1.07", within(1.07))
    for matrix in ("incast_32_8to1_1MB", "incast_32_8to1_8MB", "incast_32_2to1_1MB"):
        quick = matrix == "incast_32_8to1_1MB"
        yield Case("incast", matrix, options("nscc"), "<= 1.08, Jain 0.97", within(1.08, 0.97), quick=quick)
        for cc in ("rccc", "both"):
            yield Case("incast", matrix, options(cc), "<= 1.02, Jain 0.999", within(1.02, 0.999), quick=quick)
    yield Case("incast, no trimming", "incast_128_32to1_1MB", options("nscc", "bitmap", "--no-trim"), "<= 1.25",
               within(1.25))
    yield Case("late joiner", "join_32_2to1_10MB", options("nscc"), "both 1434 us +- 15 %", all_flows_near(1434, 0.15),
               per_flow=True)
    yield Case("late joiner", "join_32_2to1_10MB", options("rccc"), "both 1434 us +- 1 %", all_flows_near(1434, 0.01),
               per_flow=True)
    yield Case("leaver", "leave_32_20MB_2MB", options("nscc"), "<= 1.01", long_flow(1.01), per_flow=True)
    yield Case("leaver", "leave_32_20MB_2MB", options("rccc"), "<= 1.01", long_flow(1.01), per_flow=True)
    yield Case("two distances", "rtt_16_2to1_10MB", options("nscc"), "rates <= 1.6, link full", rate_ratio(1.6),
               per_flow=True)
    for lb in ("bitmap", "mixed"):
        yield Case("slow spine", "perm_32_8MB", options("nscc", lb, "--degrade", "1"), "<= 1.40, share 0.10",
                   within(1.40, share=0.10))
    for lb in ("bitmap", "mixed"):
        for matrix in ("perm_32_8MB", "perm_32b_8MB"):
            yield Case("slow spine, aim", matrix, options("nscc", lb, "--degrade", "1"), "<= 1.15", within(1.15))
    yield Case("slow spine", "perm_32_8MB", options("nscc", "oblivious", "--degrade", "1"), ">= 2, share 0.17",
               at_least(2, share=0.17))
    for cc in ("nscc", "both"):
        yield Case("dead spine", "perm_32_8MB", options(cc, "bitmap", "--fail", "spine0@100"), "<= 1.50", dead_spine(1.50))
        yield Case("dead spine", "perm_32_8MB", options(cc, "mixed", "--fail", "spine0@100"), "<= 1.50", dead_spine(1.50))
    yield Case("outcast", "outcast_32_1to8_1MB", options("nscc"), "659.1 us +- 1 %, Jain 0.999",
               all_flows_near(659.1, 0.01), per_flow=True, quick=True)
    yield Case("all to all", "a2a_16_64KB", options("nscc"), "<= 1.30", within(1.30), quick=True)
    yield Case("all to all", "a2a_32_16KB", options("nscc"), "<= 1.70", within(1.70))


class Runner:
    def __init__(self, sim, folder, given):
        self.sim, self.folder, self.given = sim, Path(folder), given

    def matrix_path(self, name):
        if self.given and (Path(self.given) / f"{name}.cm").exists():
            return Path(self.given) / f"{name}.cm"
        path = self.folder / f"{name}.cm"
        if not path.exists():
            nodes, flows = MATRICES[name]
            lines = [f"Nodes {nodes}", f"Connections {len(flows)}"]
            lines += [f"{s}->{d} id {i + 1} start {t} size {b}" for i, (s, d, t, b) in enumerate(flows)]
            path.write_text("\n".join(lines) + "\n")
        return path

    def run(self, case, seed):
        per_flow = self.folder / f"{id(case)}-{seed}.csv"
        command = [self.sim, "run", "--json", "--matrix", str(self.matrix_path(case.matrix)), "--seed", str(seed),
                   *case.options]
        if case.per_flow:
            command += ["--per-flow", str(per_flow)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
        if not done.stdout.startswith("{"):
            return None, False, f"seed {seed}: {done.stderr.strip()}", 0
        r = json.loads(done.stdout)
        if r["fct_us"]["max"] is None:
            return None, False, f"seed {seed}: nothing completed", r["wall_s"]
        flows = []
        if case.per_flow:
            for row in per_flow.read_text().splitlines()[1:]:
                cells = row.split(",")
                flows.append({"fct": float(cells[6] or "inf"), "end": float(cells[5] or "inf")})
        figure, ok = case.check(r, flows)
        return figure, ok, r, r["wall_s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sim")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name, matrix or options contain this")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--matrices")
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    chosen = [c for c in cases() if (c.quick or not args.quick)
              and args.only in f"{c.name} {c.matrix} {' '.join(c.options)}"]
    bad = missed = 0
    if not args.tap:
        print(f"{'case':20} {'matrix':24} {'options':42} {'bound us':>9} {'best':>6} {'worst':>6} {'rtx':>6} "
              f"{'wall s':>6}  band")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(args.jobs) as pool:
        runner = Runner(args.sim, folder, args.matrices)
        for number, case in enumerate(chosen, 1):
            count = 1 if args.quick else case.seeds or args.seeds
            runner.matrix_path(case.matrix)
            outcomes = list(pool.map(lambda seed: runner.run(case, seed), range(1, count + 1)))
            # The worst of the seeds counts, and here the worst is what shows that spraying is needed.
            judge = any if case.band.startswith(">=") else all
            ok = judge(o[1] for o in outcomes)
            is_known = any(case.name == n and m in case.matrix and o in " ".join(case.options) for n, m, o in KNOWN_MISSES)
            missed += not ok
            bad += not ok and not is_known
            runs = [o for o in outcomes if o[0] is not None]
            why = "; ".join(o[2] for o in outcomes if o[0] is None)
            figures = [o[0] for o in runs] or [float("nan")]
            text = (f"{case.name:20} {case.matrix:24} {' '.join(case.options):42} "
                    f"{runs[0][2]['bound_us'] if runs else 0:9.1f} {min(figures):6.3f} {max(figures):6.3f} "
                    f"{max((o[2]['retransmissions'] for o in runs), default=0):6} {max(o[3] for o in outcomes):6.2f}  "
                    f"{case.band} {why}")
            if args.tap:
                note = " (known miss)" if is_known and not ok else ""
                good = ok or is_known
                print(f"{'ok' if good else 'not ok'} {number} - {' '.join(text.split())}{note}", flush=True)
            else:
                print(f"{text} {'' if ok else 'known miss' if is_known else 'MISSED'}", flush=True)
    if args.tap:
        print(f"1..{len(chosen)}")
    else:
        print(f"{len(chosen) - missed} of {len(chosen)} bands hold")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
