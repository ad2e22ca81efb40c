#!/usr/bin/env python3
"""fi_pingpong between two processes that a DPDK memif joins: clean, impaired, IPv4, IPv6, native IP.

    pingpong_memif.py PROVIDER-FOLDER DPDK-PLUG-IN
"""

import os
import sys

from harness import Tap, need_program, need_provider, pingpong, skip_all, temporary_folder

IMPAIR = {"FI_UET_IMPAIR": "loss=0.01,reorder=0.05,duplicate=0.01,seed=12"}


def ends(folder, addresses, extra):
    """Settings of the two ends of a fresh memif."""
    ends.count += 1
    path = os.path.join(folder, f"memif{ends.count}.sock")
    return [{"FI_UET_PORT": f"dpdk:net_memif0,role={role},socket={path},socket-abstract=no", "FI_UET_ADDR": address, **extra}
            for role, address in zip(("server", "client"), addresses)]


ends.count = 0


def main():
    provider, plugin = sys.argv[1:]
    need_provider(provider)
    need_program("fi_pingpong")
    if not os.path.exists(plugin):
        skip_all("built without DPDK")
    v4, v6 = ("10.77.0.1", "10.77.0.2"), ("fd00:77::1", "fd00:77::2")
    cases = [
        ("msg, all sizes", v4, {}, ["-m", "msg", "-S", "all"]),
        ("tagged, all sizes", v4, {}, ["-m", "tagged", "-S", "all"]),
        ("IPv6", v6, {}, ["-m", "tagged", "-S", "all"]),
        ("datagrams", v4, {}, ["-e", "dgram", "-S", "all"]),
        ("native IP", v4, {"FI_UET_ENCAP": "ip"}, ["-S", "all"]),
        ("VLAN 7", v4, {"FI_UET_VLAN": "7"}, ["-S", "all"]),
        ("1 % loss, 5 % reorder, 1 % duplication, msg", v4, IMPAIR, ["-m", "msg", "-S", "all", "-I", "10"]),
        ("1 % loss, 5 % reorder, 1 % duplication, tagged", v4, IMPAIR, ["-m", "tagged", "-S", "all", "-I", "10"]),
    ]
    tap = Tap()
    with temporary_folder() as folder:
        for name, addresses, extra, arguments in cases:
            server, client = ends(folder, addresses, extra)
            tap.result(name, pingpong(folder, provider, server, client, arguments))
    tap.finish()


main()
