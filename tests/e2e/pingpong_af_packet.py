#!/usr/bin/env python3
"""fi_pingpong between two network namespaces joined by veth, through DPDK's af_packet driver: clean and impaired.

    pingpong_af_packet.py PROVIDER-FOLDER DPDK-PLUG-IN
"""

import os
import sys

from harness import Namespaces, Tap, need_program, need_provider, pingpong, skip_all, temporary_folder

IMPAIR = {"FI_UET_IMPAIR": "loss=0.01,reorder=0.05,duplicate=0.01,seed=13"}
CONTROL = ("192.0.2.1", "192.0.2.2")  # kernel addresses of the control connection; UET has 10.78.0.x


def main():
    provider, plugin = sys.argv[1:]
    need_provider(provider)
    need_program("fi_pingpong")
    if not os.path.exists(plugin):
        skip_all("built without DPDK")
    if os.geteuid() != 0:
        skip_all("network namespaces and af_packet sockets need root")
    try:
        namespaces = Namespaces({"uet0": None, "ctl0": CONTROL})
    except (OSError, RuntimeError) as problem:
        skip_all(f"cannot make network namespaces with veth here: {problem}")
    cases = [
        ("msg, all sizes", {}, ["-m", "msg", "-S", "all"]),
        ("tagged, all sizes", {}, ["-m", "tagged", "-S", "all"]),
        ("1 % loss, 5 % reorder, 1 % duplication, msg", IMPAIR, ["-m", "msg", "-S", "all", "-I", "10"]),
        ("1 % loss, 5 % reorder, 1 % duplication, tagged", IMPAIR, ["-m", "tagged", "-S", "all", "-I", "10"]),
    ]
    tap = Tap()
    try:
        with temporary_folder() as folder:
            for name, extra, arguments in cases:
                server, client = ({"FI_UET_PORT": "dpdk:net_af_packet0,iface=uet0", "FI_UET_ADDR": f"10.78.0.{n}", **extra}
                                  for n in (1, 2))
                tap.result(name, pingpong(folder, provider, server, client, arguments,
                                          namespaces=namespaces.names, control=CONTROL[0]))
    finally:
        namespaces.remove()
    tap.finish()


main()
