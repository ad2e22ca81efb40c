#!/usr/bin/env python3
"""The programs of this folder by Open MPI over the provider: every operation of MPI that communicates, and messages encrypted over
memif through an emulated fabric of four paths. With UET_TEST_DEPTH=long also by many ranks, and all programs over the fabric.

    run.py SOURCE-FOLDER PROVIDER-FOLDER UET-KEYS DPDK-PLUG-IN [UET-FABRIC]
"""

import os
import subprocess
import sys

from open_mpi import by_messages, by_one_sided, compile_program, find_unshare, need_open_mpi

from harness import Tap, need_provider, temporary_folder
from fabric_run import FOUR_PATHS, Fabric

FABRIC_RANKS = 4

# What Open MPI 4.1.4 cannot do, over shared memory and tcp alike: its component "pt2pt" waits for ever at a put under a lock with
# MPI_MODE_NOCHECK. Its "rdma" over btl ofi ends the program at accumulates that are no sums or replacements, and waits for ever at
# a put into a dynamic window, over the provider "sockets" too. Over shared memory it ends the program at a compare and swap.
MESSAGES = [("collectives", 5, []), ("messages", 3, []), ("threads", 2, []), ("windows", 3, ["no-nocheck"])]
MANY = [("collectives", 8, ["50"]), ("computing", 8, [])]
LONG = [("computing", 2, []), ("computing", 4, ["40"]), ("collectives", 24, ["20000"]), ("messages", 12, ["3000"]), ("threads", 4, ["400"]),
        ("windows", 8, ["no-nocheck"])]


BTL_OFI = ["no-dynamic", "sums"]


def over_udp(tap, provider, programs, folder, is_long):
    for name, ranks, arguments in MESSAGES + MANY + (LONG if is_long else []):
        tap.result(f"{name}, {ranks} ranks",
                   by_messages(provider, programs[name], folder, ranks, arguments, seconds=900 if is_long else 240))
    unshare = find_unshare()
    if not unshare:
        tap.skip("windows by btl ofi", "no host names of our own: unshare --uts is not allowed")
        return
    for ranks in (3, 6) if is_long else (3,):
        tap.result(f"windows by btl ofi, {ranks} ranks",
                   by_one_sided(provider, programs["windows"], folder, unshare, ranks, BTL_OFI, seconds=600))


def over_memif(tap, provider, programs, folder, uet_fabric, chosen, how="", **more):
    """Each rank is a host of a fabric with four paths between its leaves."""
    for name, _, arguments in chosen:
        place = os.path.join(folder, f"{name}-fabric{len(more)}")
        os.mkdir(place)
        fabric = Fabric(uet_fabric, place, FOUR_PATHS, FABRIC_RANKS)
        try:
            settings = {"FI_UET_PORT": fabric.port("%r"), "FI_UET_ADDR": "|".join(f"10.79.0.{n + 1}" for n in range(FABRIC_RANKS)),
                        "FI_UET_TRIMMING": 1, "FI_UET_LINK_GBPS": 1, "FI_UET_BASE_RTT": "2ms", **more}
            tap.result(f"{name} over memif and a fabric, {FABRIC_RANKS} ranks{how}",
                       by_messages(provider, programs[name], place, FABRIC_RANKS, arguments, seconds=900, **settings))
        finally:
            fabric.stop()


def main():
    source, provider, uet_keys, plugin, *uet_fabric = sys.argv[1:]
    need_provider(provider)
    need_open_mpi()
    is_long = os.environ.get("UET_TEST_DEPTH") == "long"
    tap = Tap()
    with temporary_folder() as folder:
        programs = {name: compile_program(os.path.join(source, name + ".cc"), folder)
                    for name in ("collectives", "computing", "messages", "threads", "windows")}
        over_udp(tap, provider, programs, folder, is_long)
        if uet_fabric and os.path.exists(plugin):
            keys = os.path.join(folder, "keys.json")
            subprocess.run([uet_keys, "new", "--out", keys, "--state-dir", os.path.join(folder, "counters")], check=True,
                           stdout=subprocess.DEVNULL)
            over_memif(tap, provider, programs, folder, uet_fabric[0], MESSAGES if is_long else MESSAGES[1:2], ", encrypted",
                       FI_UET_KEYS=keys)
            if is_long:
                over_memif(tap, provider, programs, folder, uet_fabric[0], MESSAGES)
    tap.finish()


main()
