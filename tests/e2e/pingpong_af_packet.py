#!/usr/bin/env python3
"""fi_pingpong between two network namespaces joined by veth, through DPDK's af_packet driver: clean and impaired.

    pingpong_af_packet.py PROVIDER-FOLDER DPDK-PLUG-IN
"""

import os
import subprocess
import sys

from harness import Tap, need_program, need_provider, pingpong, skip_all, temporary_folder

IMPAIR = {"FI_UET_IMPAIR": "loss=0.01,reorder=0.05,duplicate=0.01,seed=13"}
CONTROL = ("192.0.2.1", "192.0.2.2")  # kernel addresses of the control connection; UET has 10.78.0.x


class Namespaces:
    """Two namespaces, a veth pair for UET without kernel addresses, and one for fi_pingpong's control connection."""

    def __init__(self):
        tag = f"uet{os.getpid()}"
        self.names = (f"{tag}a", f"{tag}b")
        try:
            for name in self.names:
                self.ip("netns", "add", name)
            for link in ("uet0", "ctl0"):
                self.ip("link", "add", link, "netns", self.names[0], "type", "veth", "peer", "name", link, "netns",
                        self.names[1])
            for name, address in zip(self.names, CONTROL):
                self.ip("-n", name, "link", "set", "lo", "up")
                self.ip("-n", name, "link", "set", "uet0", "mtu", "9000", "up")
                self.ip("-n", name, "address", "add", f"{address}/24", "dev", "ctl0")
                self.ip("-n", name, "link", "set", "ctl0", "up")
        except (OSError, RuntimeError):
            self.remove()
            raise

    @staticmethod
    def ip(*arguments):
        run = subprocess.run(["ip", *arguments], capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(f"ip {' '.join(arguments)}: {run.stderr.strip()}")

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def main():
    provider, plugin = sys.argv[1:]
    need_provider(provider)
    need_program("fi_pingpong")
    if not os.path.exists(plugin):
        skip_all("built without DPDK")
    if os.geteuid() != 0:
        skip_all("network namespaces and af_packet sockets need root")
    try:
        namespaces = Namespaces()
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
