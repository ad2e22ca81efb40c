#!/usr/bin/env python3
"""Runs a Google Benchmark program, prints cycles, instructions and nanoseconds a packet, and compares with a stored table.

    bench_table.py [--store] [--filter REGEX] [--minutes 15] PROGRAM TABLE

Each row is printed when it is measured. After --minutes the program is ended, and the table with what there is.

The table says on which machine it was made. Cycles of another machine, or of one that is busy, say little: look at what changed
against the rest of its column. Instructions hold anywhere; they are there where the kernel lets a process count its own.
--store writes the table anew; with --filter, or when time was up, the other rows stay as they are. "new" marks what is not stored. Ends with
1 when the program fails or is not through in time.
"""

import argparse
import json
import platform
import subprocess
import sys
import threading
from pathlib import Path


def measured(program, pattern, seconds):
    """Rows as they come, by name; a sentence in the place of figures where there are none. Raises TimeoutExpired when time is up."""
    command = ["stdbuf", "-oL", program, "--benchmark_format=json", "--benchmark_min_time=0.02"]  # by lines, into a pipe too
    if pattern:
        command.append(f"--benchmark_filter={pattern}")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        is_over = threading.Event()
        alarm = threading.Timer(seconds, lambda: (is_over.set(), process.kill()))
        alarm.start()
        try:
            yield from rows_in(process.stdout)
        finally:
            alarm.cancel()
            if process.poll() is None and not is_over.is_set():
                process.wait()
        if is_over.is_set():
            raise subprocess.TimeoutExpired(command, seconds)
        if process.wait() != 0:
            raise subprocess.CalledProcessError(process.returncode, command)


def rows_in(lines):
    """Google Benchmark writes one object for each benchmark when it is through, indented by four."""
    one = None
    for line in lines:
        if line.rstrip() == "    {":
            one = []
        elif line.rstrip() in ("    }", "    },") and one is not None:
            yield row_of(json.loads("{" + "".join(one) + "}"))
            one = None
        elif one is not None:
            one.append(line)


def row_of(one):
    name = one["name"].split("/iterations:")[0]
    if one.get("error_occurred"):
        return name, one.get("error_message", "failed")
    return name, (one.get("cycles"), one.get("instructions"), 1e9 / one["items_per_second"])


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
    change = f"{100 * (now / before - 1):+6.0f}%" if before else "new"
    return f"{now:9.1f} {change:>7}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("program")
    parser.add_argument("table", type=Path)
    options = parser.parse_args()
    machine, stored = read(options.table)
    print(f"a packet, and how that differs from {options.table.name} ({machine})")
    print(f"{'':44}{'cycles':>9} {'':>7} {'instr.':>9} {'':>7} {'ns':>9}", flush=True)
    rows, problem = {}, ""
    try:
        for name, values in measured(options.program, options.filter, options.minutes * 60):
            rows[name] = values
            before = stored.get(name, (None, None, None))
            told = f" {values}" if isinstance(values, str) else " ".join(cell(now, then) for now, then in zip(values, before))
            print(f"{name:44}{told}", flush=True)
    except subprocess.TimeoutExpired:
        problem = f"the rest was not measured: {options.minutes:g} minutes are over (--minutes)"
    except subprocess.CalledProcessError as failed:
        problem = f"{options.program} failed: exit status {failed.returncode}"
    if problem:
        print(problem)
    if options.store:
        kept = {name: values for name, values in stored.items() if (options.filter or problem) and name not in rows}
        write(options.table, {**kept, **rows})
    sys.exit(1 if problem or not rows else 0)


main()
