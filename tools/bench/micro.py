"""./bench --micro: the benchmark programs of tests/bench, each beside its stored table."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = ("dpdk_bench",)
TARGETS = [f"tests/bench/{name}" for name in PROGRAMS]


def add_options(parser):
    group = parser.add_argument_group("micro-benchmarks")
    group.add_argument("--micro", action="store_true", help="pools, devices and layers, a packet; compared with tests/bench/*.tsv")
    group.add_argument("--filter", default="", metavar="REGEX", help="only benchmarks whose name matches")
    group.add_argument("--micro-minutes", type=float, default=15, metavar="N", help="a program that is not through then is ended (15)")
    group.add_argument("--store", action="store_true", help="write the tables anew")


def has_hugepages():
    return int(Path("/proc/sys/vm/nr_hugepages").read_text()) > 0


def run(options, build):
    """On hugepages where the machine has some, and again without: the second table compares with the same stored one."""
    status = once(options, build, {})
    if has_hugepages():
        print("--- the same without hugepages")
        status = max(status, once(options, build, {"UET_BENCH_EAL": "--no-huge"}))
    return status


def once(options, build, environment):
    status = 0
    for name in PROGRAMS:
        program = build / "tests" / "bench" / name
        if not program.exists():
            print(f"not measured: {name}: not built (DPDK or Google Benchmark is missing)")
            continue
        command = [sys.executable, str(ROOT / "tools/bench_table.py"), "--minutes", str(options.micro_minutes), *(["--store"] if options.store else []),
                   *(["--filter", options.filter] if options.filter else []), str(program), str(ROOT / f"tests/bench/{name}.tsv")]
        status = max(status, subprocess.run(command, env={**os.environ, **environment}).returncode)
    return status
