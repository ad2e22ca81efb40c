#!/usr/bin/env python3
"""Instructions that one operation costs each of two endpoints, by stage.

    packet_instructions.py BUILD/tests/bench/packet_instructions [KIND[:IN-FLIGHT] ...] [--functions N]
    packet_instructions.py BUILD/tests/bench/pdc_instructions spread:PDCS one:PDCS [--functions N]

Counted by callgrind as the difference of two runs, so the cost of setting up does not matter; what the memory link between the
endpoints executes is left out. With --functions the dearest N functions of each end follow, callees not counted. The counts
depend on the compiler and on nothing else: compare two builds of one machine, of build type release.
"""

import argparse
import re
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

OPERATIONS = (640, 2560)
KINDS = ("tagged", "tagged:1", "ordered", "sprayed", "write", "write:1", "large")
ENDS = {"initiator": "uet::test::initiator_*", "target": "uet::test::target_*"}
LINK = "uet::test::MemoryLink::"
# Stage -> functions whose cost with that of their callees it is, and of which stage it is a part.
STAGES = {
    "post": (("uet::test::initiator_posts", "uet::test::initiator_writes", "uet::test::target_posts"), None),
    "  hand to delivery": (("uet::pds::Pds::submit(",), "post"),
    "open": (("uet::fep::Integrity::open(",), None),
    "delivery in": (("uet::pds::Pds::on_packet(",), None),
    "  messages in": (("uet::ses::Ses::on_request(", "uet::ses::Ses::on_response(",
                        "uet::ses::Ses::on_further_response("), "delivery in"),
    "delivery out": (("uet::pds::Pds::poll_transmit(",), None),
    "  cut": (("uet::ses::Ses::emit_segment(",), "delivery out"),
    "seal": (("uet::fep::Integrity::seal_later(",), None),
}


class Profile:
    """Costs of functions: in themselves, and with their callees."""

    def __init__(self):
        self.own, self.inclusive = Counter(), Counter()

    def add(self, text, sign, operations):
        names, function, callee = {}, None, None
        for line in text.splitlines():
            if match := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line):
                if match.group(3):
                    names[match.group(2)] = match.group(3)
                name = names[match.group(2)]
                if match.group(1):
                    callee = name
                else:
                    function, callee = name, None
            elif match := re.match(r"(?:[+-]?\d+|\*) (\d+)$", line):
                cost = sign * int(match.group(1)) / operations
                if callee != function:
                    self.inclusive[function] += cost
                if callee is None:
                    self.own[function] += cost
                callee = None

    def of(self, prefixes):
        return sum(cost for name, cost in self.inclusive.items() if name.startswith(prefixes))


def run(program, kind, in_flight, operations, functions):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        subprocess.run(["valgrind", "--tool=callgrind", f"--toggle-collect={functions}",
                        f"--callgrind-out-file={out}", program, kind, str(operations), *in_flight],
                       check=True, capture_output=True)
        return out.read_text()


def profile_of(program, kind, in_flight, functions):
    profile = Profile()
    for operations, sign in zip(OPERATIONS, (-1, 1)):
        profile.add(run(program, kind, in_flight, operations, functions), sign, OPERATIONS[1] - OPERATIONS[0])
    return profile


def describe(title, profile, functions):
    own = {name: cost for name, cost in profile.own.items() if not name.startswith(LINK)}
    link = profile.of((LINK + "End::receive(", LINK + "End::send("))
    total = sum(profile.own.values()) - link
    print(f"{title}: {total:.0f} instructions an operation")
    covered = 0
    for stage, (names, parent) in STAGES.items():
        cost = profile.of(names)
        covered += cost if parent is None else 0
        if cost > 0.5:
            print(f"  {stage:20}{cost:8.0f}")
    print(f"  {'the rest of the turn':20}{total - covered:8.0f}")
    for name, cost in sorted(own.items(), key=lambda item: -item[1])[:functions]:
        print(f"    {cost:8.1f}  {name[:150]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("kinds", nargs="*", default=KINDS, metavar="KIND[:IN-FLIGHT]")
    parser.add_argument("--functions", type=int, default=0)
    given = parser.parse_args()
    for kind in given.kinds:
        name, *in_flight = kind.split(":")
        for end, functions in ENDS.items():
            describe(f"{kind}, {end}", profile_of(given.program, name, in_flight, functions), given.functions)


if __name__ == "__main__":
    main()
