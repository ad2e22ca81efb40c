#!/usr/bin/env python3
"""Every DPDK device that needs no hardware: the bare port (`uet-perf raw`) and UET over it with its bytes verified (`uet-perf fabric`),
in turns, as one table of medians with their ratios to memif in the same run, beside the stored table of ratios. A few minutes.

    tools/bench/dpdk_devices.py [--rounds 3] [--only 'memif*;tap*'] [--store] [BUILD]

With hugepages, as root; give them back afterwards:
    echo 512 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
    tools/bench/dpdk_devices.py build-bench
    echo 0 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages

Ends with 1 when a device was not measured. A device that this machine cannot have is named with the reason.
"""

import argparse
import csv
import fnmatch
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
sys.dont_write_bytecode = True

import box  # noqa: E402
import machine  # noqa: E402
from harness import Job, free_port  # noqa: E402

STORED = ROOT / "tests" / "bench" / "dpdk_devices.tsv"
PAGE = ROOT / "docs" / "nics.md"
TAP = "uettap0"


class Device(NamedTuple):
    """The ports of both ends; {} is a socket of the run. `place`: both processes here, in two namespaces that veth joins, or, for a
    TAP interface and a port on it, in one. `arguments`: EAL's, which only `uet-perf fabric` takes."""

    ends: tuple
    place: str = "here"
    packet: int = 4096
    arguments: str = ""


def on_interface(driver, interface="pkt0", more=""):
    return Device((f"dpdk:net_{driver}0,iface={interface}{more}",) * 2, "veth", 1400)


BASE = "memif"
DEVICES = {
    BASE: Device(("dpdk:net_memif0,role=server,socket={}", "dpdk:net_memif0,role=client,socket={}")),
    "memif, file": Device(("dpdk:net_memif0,role=server,socket-abstract=no,socket={}", "dpdk:net_memif0,role=client,socket-abstract=no,socket={}")),
    "memif, zero-copy": Device(("dpdk:net_memif0,role=server,socket={}", "dpdk:net_memif0,role=client,socket={},zero-copy=yes")),
    "vhost, virtio_user": Device(("dpdk:net_vhost0,iface={}", "dpdk:net_virtio_user0,path={}")),
    "af_packet": on_interface("af_packet"),
    "af_packet, qdisc": on_interface("af_packet", more=",qdisc_bypass=0"),  # by default frames pass the queueing discipline by
    "af_xdp": on_interface("af_xdp", "xdp0"),
    "pcap": on_interface("pcap"),
    "tap, af_packet": Device((f"dpdk:net_tap0,iface={TAP}", f"dpdk:net_af_packet0,iface={TAP}"), "tap", 1400),
    "bonding": Device(("dpdk:net_bonding0",) * 2, "veth", 1400,
                      "--vdev=net_af_packet7,iface=pkt0 --vdev=net_bonding0,mode=1,slave=net_af_packet7"),
    "failsafe": Device(("dpdk:net_failsafe0,dev(net_af_packet7,iface=pkt0)",) * 2, "veth", 1400),
}
FIGURES = {
    "raw Gb/s": "bare port, packets of 4096 bytes, or of 1400 on an interface of the kernel",
    "raw Mpps": "bare port, packets of 64 bytes",
    "raw us": "bare port, half a round trip, median",
    "write 4k": "UET, writes of 4 KiB, 16 in flight, Gb/s",
    "write 64k": "UET, writes of 64 KiB, 16 in flight, Gb/s",
    "write us": "UET, half a round trip of an 8-byte write, median",
}
SECONDS = 45  # for one pair of processes


class Failed(Exception):
    pass


def hugepages():
    try:
        return int(Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages").read_text())
    except OSError:
        return 0


class Runner:
    def __init__(self, options, veth):
        self.build, self.seconds, self.number, self.veth = Path(options.build).resolve(), str(options.seconds), 0, veth
        self.count = ("--count", str(options.count)) if options.count else ()
        self.folder = tempfile.TemporaryDirectory(prefix="uet-devices-")
        cpus = machine.pair_of_cpus()
        self.pins = [["--pin", str(cpu)] for cpu in cpus] if cpus else [[], []]

    def why_not(self, device):
        return self.veth.why_not if device.place != "here" else ""

    def namespace(self, device, end):
        if device.place == "here":
            return None
        return self.veth.names[end if device.place == "veth" else 0]

    def start(self, device, end, *arguments, **env):
        env = {**os.environ, "FI_PROVIDER_PATH": str(self.build / "provider"), "LD_LIBRARY_PATH": str(self.build / "lib" / "dpdk"), **env}
        command = [str(self.build / "apps" / "uet-perf"), *arguments, *self.pins[end]]
        return Job(command, env, self.folder.name, f"{self.number}-{end}", self.namespace(device, end))

    def pair(self, device, begin, control=None):
        """What the second of both processes prints; `begin` starts an end of this device."""
        self.number += 1
        if device.place == "tap":
            self.make_tap()
        socket = os.path.join(self.folder.name, f"{self.number}.sock")
        jobs = []
        try:
            for end in (0, 1):
                jobs.append(begin(end, device.ends[end].format(socket)))
                if end == 0:
                    self.wait_for_first(device, jobs[0], socket, control)
            status = [job.wait(SECONDS) for job in reversed(jobs)]
            if status != [0, 0]:
                raise Failed("; ".join(self.last_words(job, s) for job, s in zip(jobs, reversed(status))))
            return jobs[1].output()[0]
        finally:
            for job in jobs:
                job.kill()

    def make_tap(self):
        """The TAP interface, before its driver opens it: both ends of UET open their ports at once, and the other one's is on it."""
        subprocess.run(["ip", "-n", self.veth.names[0], "link", "delete", TAP], capture_output=True)
        for words in (["tuntap", "add", "dev", TAP, "mode", "tap", "multi_queue"], ["link", "set", TAP, "up"]):
            subprocess.run(["ip", "-n", self.veth.names[0], *words], check=True, capture_output=True)

    @staticmethod
    def last_words(job, status):
        """Without what libraries below the device say."""
        told = [line for line in job.output()[1].splitlines() if line.strip() and not line.startswith(("libbpf:", "libxdp:"))]
        return (told[-1][:250] + ", " if told else "") + ("still running" if status is None else f"exit status {status}")

    def wait_for_first(self, device, job, socket, control):
        if control:  # both ends open their ports when they have met
            return job.wait_until_it_listens(control)
        there = lambda: "vhost" not in device.ends[0] or os.path.exists(socket)  # noqa: E731
        end = time.monotonic() + 10
        while not there() and job.process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)

    def raw(self, device):
        if device.arguments:
            return {}

        def begin(end, port):
            return self.start(device, end, "raw", "--port", port, "--address", box.FABRIC[end], "--peer", box.FABRIC[1 - end], "--size",
                              str(device.packet), "--seconds", self.seconds, "--timeout", "20", "--json" if end else "--server")
        result = json.loads(self.pair(device, begin).splitlines()[0])
        return {"raw Gb/s": result["gbps"], "raw Mpps": result["small_packets_per_second"] / 1e6, "raw us": result["half_rtt_us_median"]}

    def fabric(self, device):
        control = free_port()
        meeting = box.CONTROL[0] if device.place == "veth" else "127.0.0.1"
        more = {"FI_UET_DPDK_ARGS": device.arguments} if device.arguments else {}

        def begin(end, port):
            asked = ("write", "write-latency", "--sizes", "8,4k,64k", "--runs", "3", *self.count, "--csv", "--peer",
                     meeting) if end else ("--listen", meeting)
            return self.start(device, end, "fabric", *asked, "--control-port", str(control), "--timeout", "20", FI_UET_PORT=port,
                              FI_UET_ADDR=box.FABRIC[end], **more)
        figures = {}
        for row in csv.DictReader(io.StringIO(self.pair(device, begin, control))):
            size = {"4096": "4k", "65536": "64k"}.get(row["bytes"])
            if row["test"] == "write" and size and row["gbit_per_s_median"]:
                figures[f"write {size}"] = float(row["gbit_per_s_median"])
            elif row["test"] == "write-latency" and row["bytes"] == "8" and row["half_rtt_us_median"]:
                figures["write us"] = float(row["half_rtt_us_median"])
        if len(figures) < 3:
            raise Failed(f"only {', '.join(figures) or 'nothing'} was measured")
        return figures


def medians(seen):
    return {device: {figure: statistics.median(values) for figure, values in figures.items()} for device, figures in seen.items()}


def ratios(middle):
    """To memif in the same run, by device and figure."""
    base = middle.get(BASE, {})
    return {(device, figure): value / base[figure] for device, figures in middle.items() for figure, value in figures.items()
            if device != BASE and base.get(figure)}


def read_stored():
    if not STORED.is_file():
        return "nothing is stored yet", {}
    first, *lines = STORED.read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("pages\t")]
    return first.lstrip("# "), {(pages, device, figure): float(ratio) for pages, device, figure, ratio in rows}


def write_stored(pages, now):
    _, kept = read_stored()
    kept.update({(pages, *key): ratio for key, ratio in now.items()})
    STORED.write_text(f"# ratios to memif; {machine.processor()}, Linux {os.uname().release}\npages\tdevice\tfigure\tratio\n" + "".join(
        "\t".join([*key, f"{ratio:.3f}"]) + "\n" for key, ratio in sorted(kept.items())))


def write_page():
    """The stored ratios as the table of docs/nics.md, between its two marks."""
    about, stored = read_stored()
    cell = lambda pages, device, figure: f"{stored[pages, device, figure]:.2f}" if (pages, device, figure) in stored else "-"  # noqa: E731
    heads = [f"{figure}, {'lower' if figure.endswith(' us') else 'higher'} is better" for figure in FIGURES]
    rows = [f"| device | {' | '.join(heads)} |", f"|---|{'---|' * len(FIGURES)}"]
    for device in [name for name in DEVICES if any(key[1] == name for key in stored)]:
        cells = [f"{cell('ordinary', device, figure)} / {cell('huge', device, figure)}" for figure in FIGURES]
        rows.append(f"| {device} | {' | '.join(cells)} |")
    begin, end = "<!-- begin of the table of dpdk_devices.py -->\n", "<!-- end of it -->\n"
    text = PAGE.read_text()
    before, rest = text.split(begin)
    PAGE.write_text(before + begin + "\n".join([*rows, "", f"Without hugepages / with them; {about}."]) + "\n" + end + rest.split(end)[1])


def table(middle, pages):
    """A row for each device and two lines in it: medians, and ratios to memif with what they differ from the stored ones."""
    about, stored = read_stored()
    now = ratios(middle)
    lines = [f"{'':20}" + "".join(f"{figure:>16}" for figure in FIGURES)]
    for device, figures in middle.items():
        lines.append(f"{device:20}" + "".join(f"{figures[f]:>16.2f}" if f in figures else f"{'-':>16}" for f in FIGURES))
        if device == BASE or not figures:
            continue
        cells = []
        for figure in FIGURES:
            ratio, before = now.get((device, figure)), stored.get((pages, device, figure))
            change = f" {100 * (ratio / before - 1):+.0f}%" if ratio and before else ""
            cells.append(f"{ratio:.2f}x{change}" if ratio else "")
        lines.append(f"{'':20}" + "".join(f"{cell:>16}" for cell in cells))
    lines += ["", f"x: to memif in this run; %: how that differs from {STORED.name} ({about})", *(f"{f}: {what}" for f, what in FIGURES.items())]
    return "\n".join(lines)


def measure(runner, options, names):
    seen, failures, begun = {name: {} for name in names}, 0, time.monotonic()
    for number in range(options.rounds):
        for name in names:
            if time.monotonic() - begun > options.minutes * 60:
                print(f"round {number + 1} of {options.rounds} ends before {name}: {options.minutes:g} minutes are over (--minutes)", file=sys.stderr)
                return seen, failures + sum(not figures for figures in seen.values())
            for one in (runner.raw, runner.fabric):
                try:
                    for figure, value in one(DEVICES[name]).items():
                        seen[name].setdefault(figure, []).append(value)
                except (Failed, ValueError, KeyError, IndexError) as failed:
                    failures += 1
                    print(f"not measured: {name}, {one.__name__}: {failed}", file=sys.stderr, flush=True)
        print(f"round {number + 1} of {options.rounds}: {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    return seen, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement of a bare port (1)")
    parser.add_argument("--count", type=int, metavar="N", help="messages of a run of UET, fewer on a machine that is busy (64 MiB worth of them)")
    parser.add_argument("--minutes", type=float, default=15, help="nothing begins after so many (15)")
    parser.add_argument("--only", default="*", metavar="NAMES", help="separated by semicolons, * stands for anything; memif is always measured")
    parser.add_argument("--store", action="store_true", help="write the table of ratios anew, for memory of this kind, and that of docs/nics.md")
    options = parser.parse_args()
    box.enter()
    patterns = options.only.split(";")
    names = [name for name in DEVICES if name == BASE or any(fnmatch.fnmatch(name, p) for p in patterns)]
    veth = box.Veth()
    runner = Runner(options, veth)
    missing = {name: runner.why_not(DEVICES[name]) for name in names if runner.why_not(DEVICES[name])}
    pages = "huge" if hugepages() else "ordinary"
    begun = time.monotonic()
    try:
        seen, failures = measure(runner, options, [name for name in names if name not in missing])
    finally:
        veth.close()
    middle = medians(seen)
    print(f"{hugepages()} hugepages of 2 MiB, {time.monotonic() - begun:.0f} s, load {machine.load():.1f}\n")
    print(table(middle, pages))
    for name, why in missing.items():
        print(f"not here: {name}: {why}")
    if options.store:
        write_stored(pages, ratios(middle))
        write_page()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
