#!/usr/bin/env python3
"""The tables of docs/performance.md: what an operation costs each end by stage, in instructions and nanoseconds, and a model made of a
few constants beside what whole endpoints take.

    performance_table.py BUILD-BENCH

Instructions are counted by valgrind. Times are those of the processor (user and kernel) for a thread that does the work of both
ends, the best of several repetitions, so that they hold on a machine that does other work as well. Prints Markdown.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools" / "bench")]
sys.dont_write_bytecode = True

import box  # noqa: E402
import machine  # noqa: E402
from packet_instructions import ENDS, LINK, STAGES, profile_of  # noqa: E402

KINDS = {"tagged": "tagged message of 64 bytes, 64 in flight", "write": "write of 4 KiB, 16 in flight"}
OPERATIONS = (20_000, 120_000)
# Their instructions are counted by the byte, and each executes for many bytes.
COPIES = ("memcpy", "memmove")
CRC = ("uet::wire::uet_crc(",)  # with the library that it calls, whose functions have no names
BURST, WRITE = 16, 4096  # of the benchmarks, and what is written for the count of instructions


class Cost:
    """Instructions of an operation at one end."""

    def __init__(self, profile):
        self.with_link = sum(profile.own.values())
        self.total = self.with_link - profile.of((LINK + "End::receive(", LINK + "End::send("))
        self.stages = {stage: profile.of(names) for stage, (names, parent) in STAGES.items()}
        self.stages["rest of the turn"] = self.total - sum(
            profile.of(names) for names, parent in STAGES.values() if parent is None)
        self.by_byte = profile.of(CRC) + sum(cost for name, cost in profile.own.items() if any(word in name for word in COPIES))


def cpu_seconds(*command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before.ru_utime


def ns_of_operation(program, kind, tries=7):
    """Both ends and the link between them, on one core."""
    few, many = (min(cpu_seconds(program, kind, str(n)) for _ in range(tries)) for n in OPERATIONS)
    return (many - few) / (OPERATIONS[1] - OPERATIONS[0]) * 1e9


def benchmarks(program, repetitions=5):
    """Name -> the row of the repetition that took least."""
    run = subprocess.run([program, "--benchmark_filter=^(bytes|port|endpoint_write)/", "--benchmark_format=json",
                          "--benchmark_min_time=0.01", f"--benchmark_repetitions={repetitions}"], stdout=subprocess.PIPE, check=True)
    best = {}
    for row in json.loads(run.stdout)["benchmarks"]:
        name = row["run_name"].split("/iterations:")[0].split("/repeats:")[0]
        if row["run_type"] == "iteration" and "items_per_second" in row and (
                name not in best or row["items_per_second"] > best[name]["items_per_second"]):
            best[name] = row
    return best


class Model:
    """ns of a packet of a write, both ends together: so much for a message, a packet, a byte, and a call of a driver or the kernel."""

    def __init__(self, costs, ns_of_write, rows):
        self.rows = rows
        self.byte = {kind: self.ns(f"bytes/{kind}/8192") / 8192 for kind in ("copied", "crc")}
        initiator, target = costs["write", "initiator"], costs["write", "target"]
        # The bytes are counted by themselves: each end copies them, and has them under the CRC.
        instructions = initiator.with_link + target.with_link - initiator.by_byte - target.by_byte
        ns_of_instruction = (ns_of_write - WRITE * 2 * sum(self.byte.values())) / instructions
        self.message = initiator.stages["post"] * ns_of_instruction
        self.packet = (initiator.total + target.total - initiator.by_byte - target.by_byte) * ns_of_instruction - self.message
        self.ports = {port: self.port(port) for port in ("memif", "udp")}

    def ns(self, name):
        return 1e9 / self.rows[name]["items_per_second"]

    def port(self, port):
        """A call each way, a packet, a byte: from packets sent one at a time, sixteen at a time, and large."""
        one, many, large = self.ns(f"port/{port}/1/64"), self.ns(f"port/{port}/{BURST}/64"), self.ns(f"port/{port}/{BURST}/8256")
        call = (one - many) * BURST / (BURST - 1)
        return {"call": call, "packet": one - call, "byte": (large - many) / (8256 - 64)}

    def predict(self, port, size, packets, answers, calls):
        p, payload = self.ports[port], size / packets
        ns = self.message / packets + self.packet
        ns += (1 + answers) * p["packet"] + calls * p["call"] / 2 + p["byte"] * payload
        # Kernel sockets take user memory as it is; everywhere each end copies once. Each end looks at every byte for the CRC.
        copies = 1 if port == "udp" else 2
        return ns + payload * (copies * self.byte["copied"] + 2 * self.byte["crc"])


def print_stages(costs, ns):
    print("| stage | " + " | ".join(f"{kind}, {side}" for kind in KINDS for side in ENDS) + " |")
    print("|---|" + "---:|" * len(KINDS) * len(ENDS))
    columns = [(costs[kind, side], ns[kind]) for kind in KINDS for side in ENDS]
    for stage in columns[0][0].stages:
        name = f"of it: {stage.strip()}" if stage.startswith(" ") else stage
        print(f"| {name} | " + " | ".join(f"{c.stages[stage]:.0f} / {c.stages[stage] * t:.0f}" for c, t in columns) + " |")
    print("| **all** | " + " | ".join(f"**{c.total:.0f} / {c.total * t:.0f}**" for c, t in columns) + " |")
    print("| of it: copy and CRC | " + " | ".join(f"{c.by_byte:.0f}" for c, t in columns) + " |")


def print_model(model):
    print("\n| constant of the model, both ends together | ns |\n|---|---:|")
    print(f"| a message (posted, completed) | {model.message:.0f} |\n| a packet in our layers, with its answer | {model.packet:.0f} |")
    print(f"| a byte copied; a byte under the CRC | {model.byte['copied']:.4f}; {model.byte['crc']:.4f} |")
    for port, p in model.ports.items():
        print(f"| {port}: a call each way; a packet; a byte | {p['call']:.0f}; {p['packet']:.0f}; {p['byte']:.4f} |")
    print("\n| write, 16 in flight | packets of a write | answers a packet | calls a packet | predicted ns a packet | measured | off |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for name, row in model.rows.items():
        if not name.startswith("endpoint_write/"):
            continue
        _, port, size = name.split("/")
        packets, answers, calls = row["packets_of_a_write"], row["answers"], row["calls"]
        predicted, measured = model.predict(port, int(size), packets, answers, calls), model.ns(name)
        print(f"| {port}, {size} bytes | {packets:.0f} | {answers:.2f} | {calls:.2f} | {predicted:.0f} | {measured:.0f} "
              f"| {100 * (predicted / measured - 1):+.0f} % |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    build = parser.parse_args().build.resolve()
    programs = ("tests/bench/packet_instructions", "tests/bench/dpdk_bench")
    if missing := [p for p in programs if not (build / p).exists()]:
        parser.error(f"not built: ninja -C {build} {' '.join(missing)}")
    box.enter()
    program = str(build / programs[0])
    costs = {(kind, side): Cost(profile_of(program, kind, [], functions)) for kind in KINDS for side, functions in ENDS.items()}
    times = {kind: ns_of_operation(program, kind) for kind in KINDS}
    ns = {kind: times[kind] / sum(costs[kind, side].with_link for side in ENDS) for kind in KINDS}
    rows = benchmarks(str(build / programs[1]))
    commit = machine.said("git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD")
    print(f"{machine.processor()}, Linux {machine.platform.release()}, commit {commit}.\n")
    print_stages(costs, ns)
    print_model(Model(costs, times["write"], rows))


main()
