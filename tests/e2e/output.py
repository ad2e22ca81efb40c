#!/usr/bin/env python3
"""Output that cannot be written is a failure of every tool, told in one line: a full device, a closed descriptor, a reader that has gone.

    output.py BUILD-FOLDER
"""

import os
import signal
import struct
import subprocess
import sys
from pathlib import Path

from harness import Tap, temporary_folder

RAW_IP = 101


def capture(path):
    """A packet too short to be decoded makes a line."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, RAW_IP) + struct.pack("<IIII", 1, 0, 20, 20) + bytes(20))


def commands(build, folder):
    """What ends at once and has something to say."""
    apps, packets, keys = build / "apps", f"{folder}/packets.pcap", f"{folder}/keys.json"
    capture(packets)
    flows = f"{folder}/flows.cm"
    Path(flows).write_text("Nodes 2\nConnections 1\n0->1 id 1 start 0 size 1000\n", encoding="ascii")
    return {
        "uet-dump": [apps / "uet-dump", packets],
        "uet-dump --stats": [apps / "uet-dump", "--stats", packets],
        "uet-stat": [apps / "uet-stat", "--json"],
        "uet-drill": [apps / "drill/uet-drill", "--list"],
        "uet-fabric": [apps / "fabric/uet-fabric", "keys"],
        "uet-sim run": [apps / "uet-sim", "run", "--matrix", flows],
        "uet-sim run --json": [apps / "uet-sim", "run", "--json", "--matrix", flows],
        "uet-sim swarm": [apps / "uet-sim", "swarm", "--seeds", "1"],
        "uet-perf": [apps / "uet-perf", "copy", "--sizes", "64", "--count", "10", "--runs", "1"],
        "uet-perf --json": [apps / "uet-perf", "copy", "--json", "--sizes", "64", "--count", "10", "--runs", "1"],
        "uet-keys new": [apps / "keys/uet-keys", "new", "--out", keys, "--state-dir", f"{folder}/state"],
        "uet-keys check": [apps / "keys/uet-keys", "check", keys],
        "uet-interop": [sys.executable, apps / "interop/uet-interop", "--list"],
    }


def close_output():
    os.close(1)


def ignore_broken_pipes():
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


def run(command, folder, stdout, start):
    environment = {**os.environ, "XDG_RUNTIME_DIR": folder}  # no live endpoints of others
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=120, env=environment,
                          preexec_fn=start, restore_signals=False)


def gone_reader():
    read, write = os.pipe()
    os.close(read)
    return write


# Figures are flushed one by one, and the reason is gone at the end.
FLUSHED = ("uet-perf",)
WAYS = {
    "a full device": (lambda: os.open("/dev/full", os.O_WRONLY), None, "No space left on device"),
    "a closed descriptor": (lambda: os.open(os.devnull, os.O_WRONLY), close_output, ""),
    "a reader that has gone": (gone_reader, ignore_broken_pipes, "Broken pipe"),
}


def main():
    tap = Tap()
    build = Path(sys.argv[1])
    for way, (open_output, start, reason) in WAYS.items():
        with temporary_folder() as folder:
            for name, command in commands(build, folder).items():
                if not Path(command[-2 if "interop" in name else 0]).exists():
                    tap.skip(f"{name}: {way}", "not built")
                    continue
                output = open_output()
                done = run(command, folder, output, start)
                os.close(output)
                program = name.split()[0]
                lines = [line for line in done.stderr.splitlines() if line.startswith(f"{program}: standard output cannot be written")]
                told = len(lines) == 1 and (reason in lines[0] or name in FLUSHED)
                good = done.returncode == 1 and told and "terminate" not in done.stderr
                tap.result(f"{name}: {way}", "" if good else str(done))
    tap.finish()


main()
