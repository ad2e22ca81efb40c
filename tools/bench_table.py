#!/usr/bin/env python3
"""Runs a Google Benchmark program, prints cycles, instructions and nanoseconds a packet, and compares with a stored table.

    bench_table.py [--store] [--filter REGEX] PROGRAM TABLE

The table says on which machine it was made. Cycles of another machine, or of one that is busy, say little: look at what changed
against the rest of its column. Instructions hold anywhere; they are there where the kernel lets a process count its own.
--store writes the table anew; with --filter the other rows stay as they are. Ends with 1 only when the program fails.
"""

import argparse
import json
import platform
import subprocess
import sys
from pathlib import Path


def run(program, pattern):
    command = [program, "--benchmark_format=json", "--benchmark_min_time=0.02"]
    if pattern:
        command.append(f"--benchmark_filter={pattern}")
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    rows = {}
    for one in json.loads(done.stdout)["benchmarks"]:
        one["name"] = one["name"].split("/iterations:")[0]
        if one.get("error_occurred"):
            rows[one["name"]] = one.get("error_message", "failed")
        else:
            rows[one["name"]] = (one.get("cycles"), one.get("instructions"), 1e9 / one["items_per_second"])
    return rows


def number(text):
    return float(text) if text != "-" else None


def read(path):
    lines = path.read_text().splitlines() if path.is_file() else []
    if not lines:
        return "nothing is stored there", {}
    rows = [line.split("\t") for line in lines if line and not line.startswith(("#", "name\t"))]
    return lines[0].lstrip("# "), {name: tuple(map(number, values)) for name, *values in rows}


def write(path, rows):
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    with open(path, "w") as out:
        out.write(f"# {model}, Linux {platform.release()}\nname\tcycles\tinstructions\tns\n")
        for name, values in rows.items():
            if not isinstance(values, str):
                out.write("\t".join([name, *("-" if v is None else f"{v:.1f}" for v in values)]) + "\n")


def cell(now, before):
    if now is None:
        return f"{'-':>9} {'':>7}"
    change = f"{100 * (now / before - 1):+6.0f}%" if before else ""
    return f"{now:9.1f} {change:>7}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("program")
    parser.add_argument("table", type=Path)
    options = parser.parse_args()
    machine, stored = read(options.table)
    rows = run(options.program, options.filter)
    print(f"a packet, and how that differs from {options.table.name} ({machine})")
    print(f"{'':44}{'cycles':>9} {'':>7} {'instr.':>9} {'':>7} {'ns':>9}")
    for name, values in rows.items():
        if isinstance(values, str):
            print(f"{name:44} {values}")
            continue
        before = stored.get(name, (None, None, None))
        print(f"{name:44}" + " ".join(cell(now, then) for now, then in zip(values, before)))
    if options.store:
        kept = {name: values for name, values in stored.items() if options.filter and name not in rows}
        write(options.table, {**kept, **rows})
    sys.exit(1 if not rows else 0)


main()
