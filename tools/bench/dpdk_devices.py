#!/usr/bin/env python3
"""What memif without copying and virtio_user bring beside memif that copies: the bare ports (`uet-perf raw`) and UET over them
(`uet-perf fabric`), in turns, as one table. Two minutes.

    tools/bench/dpdk_devices.py [--rounds 3] [BUILD]

With hugepages, as root; give them back afterwards:
    echo 256 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
    tools/bench/dpdk_devices.py build-bench
    echo 0 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages
"""

import argparse
import csv
import io
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "e2e"))
sys.dont_write_bytecode = True

from harness import Job, free_port  # noqa: E402

ADDRESSES = ("10.78.1.1", "10.78.1.2")
DEVICES = {
    "memif": ("dpdk:net_memif0,role=server,socket={}", "dpdk:net_memif0,role=client,socket={}"),
    "memif, zero-copy": ("dpdk:net_memif0,role=server,socket={}", "dpdk:net_memif0,role=client,socket={},zero-copy=yes"),
    "vhost, virtio_user": ("dpdk:net_vhost0,iface={}", "dpdk:net_virtio_user0,path={}"),
}
FIGURES = {
    "raw Gb/s 4k": "bare port, packets of 4096 bytes",
    "raw Mpps 64": "bare port, packets of 64 bytes",
    "raw us": "bare port, half a round trip, median",
    "write Gb/s 4k": "UET, writes of 4 KiB, 16 in flight",
    "write Gb/s 64k": "UET, writes of 64 KiB, 16 in flight",
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
    def __init__(self, build, seconds):
        self.build, self.seconds, self.number = Path(build).resolve(), str(seconds), 0
        self.folder = tempfile.TemporaryDirectory(prefix="uet-devices-")
        self.pins = [["--pin", str(cpu)] for cpu in sorted(os.sched_getaffinity(0))[:2]]
        if len(self.pins) < 2:
            self.pins = [[], []]

    def start(self, end, *arguments, **env):
        env = {**os.environ, "FI_PROVIDER_PATH": str(self.build / "provider"), "LD_LIBRARY_PATH": str(self.build / "lib" / "dpdk"), **env}
        command = [str(self.build / "apps" / "uet-perf"), *arguments, *self.pins[end]]
        return Job(command, env, self.folder.name, f"{self.number}-{end}")

    def pair(self, device, begin, control=None):
        """What the second of both processes prints; `begin` starts an end of this device."""
        self.number += 1
        socket = os.path.join(self.folder.name, f"{self.number}.sock")
        jobs = []
        try:
            for end in (0, 1):
                jobs.append(begin(end, DEVICES[device][end].format(socket)))
                if end == 0:
                    self.wait_for_server(jobs[0], socket if "vhost" in device else None, control)
            status = [job.wait(SECONDS) for job in reversed(jobs)]
            if status != [0, 0]:
                raise Failed(f"{device}: " + "; ".join(job.output()[1].strip()[-200:] or f"exit status {s}" for job, s in zip(jobs, reversed(status))))
            return jobs[1].output()[0]
        finally:
            for job in jobs:
                job.kill()

    @staticmethod
    def wait_for_server(job, socket, control):
        if control:
            job.wait_until_it_listens(control)
        end = time.monotonic() + 10
        while socket and not control and not os.path.exists(socket) and job.process.poll() is None and time.monotonic() < end:
            time.sleep(0.02)

    def raw(self, device):
        def begin(end, port):
            return self.start(end, "raw", "--port", port, "--address", ADDRESSES[end], "--peer", ADDRESSES[1 - end],
                              "--seconds", self.seconds, "--timeout", "20", "--json" if end else "--server")
        result = json.loads(self.pair(device, begin).splitlines()[0])
        return {"raw Gb/s 4k": result["gbps"], "raw Mpps 64": result["small_packets_per_second"] / 1e6, "raw us": result["half_rtt_us_median"]}

    def fabric(self, device):
        control = free_port()

        def begin(end, port):
            more = ("write", "write-latency", "--sizes", "8,4k,64k", "--runs", "3", "--csv", "--peer", "127.0.0.1") if end else ("--listen", "127.0.0.1")
            return self.start(end, "fabric", *more, "--control-port", str(control), "--timeout", "20", FI_UET_PORT=port, FI_UET_ADDR=ADDRESSES[end])
        figures = {}
        for row in csv.DictReader(io.StringIO(self.pair(device, begin, control))):
            size = {"4096": "4k", "65536": "64k"}.get(row["bytes"])
            if row["test"] == "write" and size:
                figures[f"write Gb/s {size}"] = float(row["gbit_per_s_median"])
            elif row["test"] == "write-latency" and row["bytes"] == "8":
                figures["write us"] = float(row["half_rtt_us_median"])
        return figures


def table(seen):
    """Medians, each with its ratio to memif that copies; of UET also its part of the bare port."""
    lines = [f"{'':16}" + "".join(f"{name:>22}" for name in DEVICES)]
    for figure in FIGURES:
        cells = []
        base = seen["memif"].get(figure)
        for device in DEVICES:
            values = seen[device].get(figure)
            if not values:
                cells.append("-")
                continue
            median = statistics.median(values)
            text = f"{median:.2f}"
            if base and device != "memif":
                text += f" ({median / statistics.median(base):.2f}x)"
            raw = seen[device].get("raw us" if figure == "write us" else "raw Gb/s 4k")
            if figure.startswith("write") and raw:
                text += f" {median / statistics.median(raw):.2f}r"
            cells.append(text)
        lines.append(f"{figure:16}" + "".join(f"{cell:>22}" for cell in cells))
    return "\n".join(lines + ["", "x: against memif that copies; r: against the bare port on the same device"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1, help="of each measurement of a bare port")
    options = parser.parse_args()
    runner = Runner(options.build, options.seconds)
    seen, begun = {device: {} for device in DEVICES}, time.monotonic()
    failures = 0
    for _ in range(options.rounds):
        for device in DEVICES:
            for measure in (runner.raw, runner.fabric):
                try:
                    for figure, value in measure(device).items():
                        seen[device].setdefault(figure, []).append(value)
                except Failed as failed:
                    failures += 1
                    print(f"not measured: {failed}", file=sys.stderr)
    print(f"{hugepages()} hugepages of 2 MiB, {options.rounds} rounds, {time.monotonic() - begun:.0f} s\n")
    print(table(seen))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
