#!/usr/bin/env python3
"""Loads of each operation of two endpoints that wait for the cache, because a store just before had only a part of what they read.

    packet_stalls.py BUILD/tests/bench/packet_instructions [KIND[:IN-FLIGHT] ...]

A processor hands a load what a younger store still holds back if that one store has all of it. Otherwise the load waits until the
store, and every store before it, has reached the cache: some 15 cycles, and a hundred when one of those lines is another core's.
Instruction counts show none of that. Here the youngest of the last 40 stores of 120 instructions that overlaps a load decides; valgrind's
lackey tells every access. Two runs are subtracted, so that starting does not count, and the memory link between the endpoints is left out. Compare two builds of one machine: the counts depend
on the compiler, the C library and these two numbers, not on the time.
"""

import argparse
import bisect
import subprocess
from collections import Counter, deque
from pathlib import Path

from packet_instructions import LINK

OPERATIONS = (640, 1920)
KINDS = ("tagged", "write", "large")
STORES = 40
INSTRUCTIONS = 120
SHOWN = 0.05  # an operation; the total counts all
PIE_BASE = 0x108000  # where valgrind puts a position-independent program


def symbols_of(program):
    """Begins, ends and names of the functions of an ELF program, as valgrind sees them."""
    header = Path(program).read_bytes()[:18]
    base = PIE_BASE if header[16] == 3 else 0  # ET_DYN
    lines = subprocess.run(["nm", "-CS", "--defined-only", program], check=True, capture_output=True, text=True).stdout.splitlines()
    found = []
    for line in lines:
        words = line.split(" ", 3)
        if len(words) == 4 and words[2] in "tTwWiI":
            begin = base + int(words[0], 16)
            found.append((begin, begin + int(words[1], 16), words[3]))
    return sorted(found)


class Stalls:
    """Counts, by the load, the store and how much of the load it has."""

    def __init__(self):
        self.count = Counter()
        self.stores = deque(maxlen=STORES)  # (first, last + 1, number of the instruction, its address), youngest last
        self.now = self.at = 0

    def load(self, first, end):
        for begin, stop, when, by in reversed(self.stores):
            if self.now - when > INSTRUCTIONS:
                return
            if begin < end and first < stop:
                if begin > first or stop < end:
                    self.count[self.at, by, end - first, min(end, stop) - max(begin, first)] += 1
                return

    def take(self, line):
        kind = line[:2]
        if kind == "I ":
            self.now += 1
            self.at = int(line[3:line.index(",")], 16)
        elif kind in (" L", " S", " M"):
            address, _, size = line[3:].partition(",")
            first = int(address, 16)
            end = first + int(size)
            if kind != " S":
                self.load(first, end)
            if kind != " L":
                self.stores.append((first, end, self.now, self.at))


def run(program, kind, in_flight, operations):
    command = ["valgrind", "--tool=lackey", "--trace-mem=yes", "--log-fd=1", program, kind, str(operations), *in_flight]
    stalls = Stalls()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace") as job:
        for line in job.stdout:
            stalls.take(line)
    if job.returncode != 0:
        raise SystemExit(f"packet_stalls.py: {' '.join(command)} ended with {job.returncode}")
    return stalls.count


def stalls_of(program, kind, in_flight):
    few, many = (run(program, kind, in_flight, operations) for operations in OPERATIONS)
    many.subtract(few)
    return {where: n / (OPERATIONS[1] - OPERATIONS[0]) for where, n in many.items() if n > 0}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND[:IN-FLIGHT]")
    given = parser.parse_args()
    symbols = symbols_of(given.program)

    def place(address):
        i = bisect.bisect_right(symbols, (address, float("inf"))) - 1
        begin, end, name = symbols[i] if i >= 0 else (0, 0, "")
        return f"{name[:100]}+{address - begin:#x}" if begin <= address < end else f"a library, {address:#x}"

    for kind in given.kinds:
        name, *in_flight = kind.split(":")
        counted = stalls_of(given.program, name, in_flight)
        stalls = {where: n for where, n in counted.items() if not place(where[0]).startswith(LINK)}
        print(f"{kind}: {sum(stalls.values()):.1f} an operation, both ends")
        for (load, store, size, stored), n in sorted(stalls.items(), key=lambda item: -item[1]):
            if n >= SHOWN:
                print(f"  {n:6.2f}  {size:2} bytes at {place(load)}, of which {place(store)} had stored {stored}")


if __name__ == "__main__":
    main()
