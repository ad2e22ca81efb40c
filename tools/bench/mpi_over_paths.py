#!/usr/bin/env python3
"""Open MPI between two processes on an emulated fabric: over one path, over four, and over four of which one dies once packets flow.
Prints rates and what they are to the one path of the same turn; medians of the turns.

    tools/bench/mpi_over_paths.py [--turns 3] [--rate 100] [--sizes 1048576,4194304] [BUILD]

Paths are slow, so that they and not the processors are what is measured: with less than two idle cores the figures mean nothing.
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "e2e"), str(ROOT / "tests" / "mpi")]
sys.dont_write_bytecode = True

from fabric_run import Fabric, leaf_spine  # noqa: E402
from harness import temporary_folder  # noqa: E402
from open_mpi import compile_program, need_open_mpi, start_by_messages  # noqa: E402

DELAY_US = 1000  # of a link: what the processors add to a round trip is little beside it
HEADERS = 120  # bytes of a frame besides its payload
DEAD = "spine2"
CASES = {"one path": (1, False), "four paths": (4, False), "four, one dies": (4, True)}
FLOWING = 200  # packets on the path before it dies
PATIENCE = 600


def base_rtt_us(path, host, payload):
    """Of a packet that finds no queue, and its acknowledgement: store and forward on four links whose Mb/s these are."""
    return 8 * DELAY_US + (payload + HEADERS) * 8 * (2 / path + 2 / host)


def packets(fabric, path):
    return next((p["data_packets"] for p in fabric.ctl("paths").get("paths", []) if p["name"] == path), 0)


def rate_of(row):
    """Mb/s of a message, or of the result of an all-reduce; nothing for other figures."""
    if "gbit_per_s" in row:
        return row["gbit_per_s"]["median"] * 1000
    return row["size"] * 8 / row["time_us"]["median"] if "time_us" in row else None


def measure(options, program, folder, paths, dies):
    """Rates by test and size. The host's link is as fast as four paths in each case, so that only these differ."""
    os.mkdir(folder)
    host = 4 * options.rate
    scenario = leaf_spine(2, paths, host, options.rate, DELAY_US)
    fabric = Fabric(str(options.build / "apps/fabric/uet-fabric"), folder, scenario, 2)
    base_rtt = base_rtt_us(options.rate, host, options.payload)
    try:
        job, _ = start_by_messages(str(options.build / "provider"), program, folder, 2, [str(options.runs), options.sizes], **{
            "FI_UET_PORT": fabric.port("%r"), "FI_UET_ADDR": "10.79.0.1|10.79.0.2", "FI_UET_LINK_MBPS": host,
            "FI_UET_BASE_RTT": f"{base_rtt:.0f}us", "FI_UET_TRIMMING": 1, "FI_UET_MAX_PAYLOAD": options.payload, "FI_UET_LB": "mixed",
            "FI_UET_PATHS": 64, "FI_UET_TRACE": ""})
        try:
            end = time.monotonic() + PATIENCE
            while dies and time.monotonic() < end and packets(fabric, DEAD) < FLOWING:
                time.sleep(0.05)
            if dies:
                fabric.ctl("kill", DEAD)
            status = job.wait(PATIENCE)
            if status != 0:
                sys.exit(job.report(status))
            rows = json.loads(job.output()[0])["results"]
        finally:
            job.kill()
    finally:
        fabric.stop()
    return {(row["test"], row["size"]): rate for row in rows if (rate := rate_of(row))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3, help="of each figure in a turn (3)")
    parser.add_argument("--payload", type=int, default=4096, help="bytes of a packet: a path has to hold several (4096)")
    parser.add_argument("--rate", type=int, default=100, metavar="MBPS", help="of each path (100)")
    parser.add_argument("--sizes", default="1048576,4194304", help="bytes of a message (1048576,4194304)")
    parser.add_argument("build", nargs="?", type=Path, default=ROOT / "build")
    options = parser.parse_args()
    need_open_mpi()
    rates, ratios = {}, {}
    with temporary_folder() as folder:
        program = compile_program(str(ROOT / "tests/bench/mpi_bench.cc"), folder)
        for turn in range(options.turns):
            one = {}
            for case, (paths, dies) in CASES.items():
                for key, rate in measure(options, program, os.path.join(folder, f"{turn}-{paths}-{dies}"), paths, dies).items():
                    one.setdefault(key, rate)
                    rates.setdefault((key, case), []).append(rate)
                    ratios.setdefault((key, case), []).append(rate / one[key])
                    print(f"turn {turn + 1}, {case}: {key[0]} {key[1]} bytes {rate:.1f} Mb/s", file=sys.stderr, flush=True)
    print(f"{'test':<16}{'bytes':>9}  {'':<16}{'Mb/s':>8}{'to one path':>13}")
    for (key, case), values in rates.items():
        print(f"{key[0]:<16}{key[1]:>9}  {case:<16}{statistics.median(values):>8.1f}{statistics.median(ratios[key, case]):>13.2f}")


main()
