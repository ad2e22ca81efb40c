#!/usr/bin/env python3
"""What FI_UET_PCAP writes of a real run: uet-dump, tshark and scapy agree on every field of it, and the sums are right.

    capture.py PROVIDER-FOLDER DPDK-PLUG-IN UET_DUMP PLUGIN.lua SCAPY-FOLDER NAMES.json
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

from harness import SKIP, Tap, need_program, need_provider, own_addresses, pingpong, temporary_folder

AGREEMENT = pathlib.Path(__file__).parent.parent / "wire" / "agreement_test.py"
ROUNDS, SIZE = 10, 65536
RUNS = [
    ("as it comes", {}),
    ("no CRC, small packets", {"FI_UET_PROTECT": "none", "FI_UET_MAX_PAYLOAD": "1024"}),
    ("with loss", {"FI_UET_IMPAIR": "loss=0.01,reorder=0.05,seed=5"}),
]


def agreement(tap, name, generated, capture):
    run = subprocess.run([sys.executable, AGREEMENT, *generated, capture], stdout=subprocess.PIPE, text=True)
    if run.returncode == SKIP:
        tap.skip(name, run.stdout.strip())
    else:
        tap.result(name, "" if run.returncode == 0 else run.stdout)


def check_column(plugin, capture):
    """The Info column of tshark tells PDC identifiers, PSNs, and the message's place. Nothing to try without tshark."""
    if not shutil.which("tshark"):
        return ""
    lines = subprocess.run(["tshark", "-X", f"lua_script:{plugin}", "-r", capture], capture_output=True, check=True, text=True).stdout
    wanted = [r"_REQ \d+>(\d+|new) psn \d+ .*SEND msg \d+ offset \d+", r" ACK\S* \d+>\d+ cack \d+ ack \d+ "]
    return "\n".join(f"no line has {pattern}" for pattern in wanted if not re.search(pattern, lines))


def check_sums(dump, capture, payload_bytes):
    output = subprocess.run([dump, "--stats", "--json", capture], capture_output=True, check=True, text=True).stdout
    sums = json.loads(output)
    problems = []
    if sums["packets_with_problems"] != 0:
        problems.append(f"{sums['packets_with_problems']} packets with problems")
    if sums["payload_bytes"] < payload_bytes:
        problems.append(f"{sums['payload_bytes']} payload bytes, {payload_bytes} were sent")
    if sums["gaps"] != 0:
        problems.append(f"{sums['gaps']} PSNs never seen")
    return "\n".join(problems)


def run(tap, name, provider, generated, ends_of, size, rounds):
    with temporary_folder() as folder:
        capture = {"FI_UET_PCAP": f"{folder}/%p.pcapng"}
        server, client = ({**settings, **capture} for settings in ends_of(folder))
        arguments = ["-m", "tagged", "-S", str(size), "-I", str(rounds)]
        tap.result(f"{name}: fi_pingpong", pingpong(folder, provider, server, client, arguments))
        captures = sorted(pathlib.Path(folder).glob("*.pcapng"))
        tap.result(f"{name}: two captures", "" if len(captures) == 2 else f"{captures}")
        for capture in captures[:1]:
            tap.result(f"{name}: sums", check_sums(generated[0], capture, 2 * rounds * size))
            tap.result(f"{name}: tshark's column", check_column(generated[1], capture))
            agreement(tap, f"{name}: three decoders agree", generated, capture)


def memif_ends(folder):
    """What ./demo joins."""
    port = f"dpdk:net_memif0,socket={folder}/memif.sock,socket-abstract=no,role="
    return [{"FI_UET_PORT": port + role, "FI_UET_ADDR": address}
            for role, address in (("server", "10.77.0.1"), ("client", "10.77.0.2"))]


def main():
    provider, plugin, *generated = sys.argv[1:]
    need_provider(provider)
    need_program("fi_pingpong")
    tap = Tap()
    for name, settings in RUNS:
        ends = {"FI_UET_ADDR": own_addresses(2), **settings}
        run(tap, name, provider, generated, lambda _: (ends, ends), SIZE, ROUNDS)
    if os.path.exists(plugin):
        run(tap, "the demo's", provider, generated, memif_ends, 20000, ROUNDS)
    else:
        tap.skip("the demo's", "built without DPDK")
    tap.finish()


main()
