#!/usr/bin/env python3
"""Instructions that one operation costs both endpoints together, and how many of them packet delivery executes itself.

    packet_instructions.py BUILD/tests/bench/packet_instructions [ANNOTATE-FUNCTIONS]

Counted by callgrind as the difference of two runs, so the cost of setting up does not matter. With a number, the dearest
functions of uet::pds follow. The counts depend on the compiler and on nothing else: compare two builds of one machine.
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

OPERATIONS = (500, 2500)


def function_costs(program, kind, operations):
    """Function -> instructions executed in it, without those of its callees."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, kind, str(operations)],
                       check=True, capture_output=True)
        names, costs, function, is_call = {}, Counter(), None, False
        for line in out.read_text().splitlines():
            if match := re.match(r"fn=\((\d+)\)(?: (.*))?", line):
                if match.group(2):
                    names[match.group(1)] = match.group(2)
                function = match.group(1)
            elif match := re.match(r"cfn=\((\d+)\) (.*)", line):
                names[match.group(1)] = match.group(2)
            elif line.startswith("calls="):
                is_call = True
            elif match := re.match(r"(?:\+|-|\*)?\d* ?(\d+)$", line):
                if not is_call:
                    costs[function] += int(match.group(1))
                is_call = False
        totals = Counter()
        for key, cost in costs.items():
            totals[names.get(key, key)] += cost
        return totals


def main():
    program = sys.argv[1]
    for kind in ("tagged", "ordered", "sprayed", "write"):
        few, many = (function_costs(program, kind, n) for n in OPERATIONS)
        per = {name: (many[name] - few[name]) / (OPERATIONS[1] - OPERATIONS[0]) for name in many}
        pds = {name: cost for name, cost in per.items() if "uet::pds::" in name.split("(")[0]}
        print(f"{kind}: {sum(per.values()):.1f} instructions an operation, {sum(pds.values()):.1f} of them in uet::pds")
        for name, cost in sorted(pds.items(), key=lambda item: -item[1])[:int(sys.argv[2]) if len(sys.argv) > 2 else 0]:
            print(f"  {cost:8.1f}  {name[:150]}")


main()
