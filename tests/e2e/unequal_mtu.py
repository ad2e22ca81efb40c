#!/usr/bin/env python3
"""Two processes whose interfaces have different MTUs, with a router between them that tells of packets too large for
it: kernel UDP over IPv4 and IPv6, every pair of MTUs, writes, reads and sends both ways. Two more over a memif, and on
one Ethernet (veth), by kernel UDP and by af_packet, where nothing tells and the narrower end drops what is too large.

    unequal_mtu.py PROVIDER-FOLDER UET-PERF
"""

import itertools
import os
import subprocess
import sys

from harness import Job, Namespaces, Tap, base_env, free_port, need_provider, temporary_folder

MTUS = (1400, 1500, 9000, 65535)
TESTS = ("write", "read", "send")
SIZE = 100001  # several packets of every size, and a rest
ETHERNET_PAIRS = ((1400, 1500), (1500, 9000), (1400, 9000))
MEMIF_MTUS = (1400, 1500, 9000, 16128)  # the last is the most that DPDK ports take
ENDS = {"a": ("192.0.2", "2001:db8:a::"), "b": ("198.51.100", "2001:db8:b::")}


class Network:
    """Namespaces a and b with a link each to the router r."""

    def __init__(self):
        self.names = {n: f"uet{os.getpid()}{n}" for n in "arb"}
        try:
            for name in self.names.values():
                Namespaces.ip("netns", "add", name)
                Namespaces.ip("-n", name, "link", "set", "lo", "up")
            for variable in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
                Namespaces.set(self.names["r"], f"net/{variable}", 1)
            for end, (v4, v6) in ENDS.items():
                Namespaces.ip("link", "add", "uet0", "netns", self.names[end], "type", "veth", "peer", "name", f"to{end}",
                              "netns", self.names["r"])
                for name, link, host in ((self.names[end], "uet0", 2), (self.names["r"], f"to{end}", 1)):
                    Namespaces.ip("-n", name, "address", "add", f"{v4}.{host}/24", "dev", link)
                    Namespaces.ip("-n", name, "link", "set", link, "up")
                    Namespaces.ip("-n", name, "address", "add", f"{v6}{host}/64", "dev", link, "nodad")
                Namespaces.ip("-n", self.names[end], "route", "add", "default", "via", f"{v4}.1")
                Namespaces.ip("-n", self.names[end], "-6", "route", "add", "default", "via", f"{v6}1")
        except (OSError, RuntimeError, subprocess.CalledProcessError):
            self.remove()
            raise

    def set_mtu(self, end, mtu):
        for name, link in ((self.names[end], "uet0"), (self.names["r"], f"to{end}")):
            Namespaces.ip("-n", name, "link", "set", link, "mtu", str(mtu))
        for family in ("-4", "-6"):
            Namespaces.ip("-n", self.names[end], family, "route", "flush", "cache")

    def remove(self):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def exchange(network, folder, provider, perf, family, client, server):
    """All tests in one connection; the server's data is checked there, the client's here."""
    common = [perf, "fabric", *TESTS, "--size", str(SIZE), "--count", "20", "--window", "4", "--control-port", "4794", "--timeout",
              "30"]
    address = {end: f"{ENDS[end][0]}.2" if family == 4 else f"{ENDS[end][1]}2" for end in ENDS}
    env = {end: base_env(provider, FI_UET_ADDR=address[end]) for end in ENDS}
    listen = f"{ENDS[server][0]}.2"
    jobs = [Job([*common, "--listen", listen], env[server], folder, "server", network.names[server])]
    try:
        jobs[0].wait_until_it_listens(4794)
        jobs.append(Job([*common, "--peer", listen], env[client], folder, "client", network.names[client]))
        states = [job.wait(60) for job in reversed(jobs)]
        if states == [0, 0]:
            return ""
        return "\n".join(job.report(state) for job, state in zip(reversed(jobs), states))
    finally:
        for job in jobs:
            job.kill()


def over_memif(folder, provider, perf, server, client):
    """The address of uet-perf's own connection is the loopback interface's; `server` and `client` are MTUs."""
    port = str(free_port())
    socket = os.path.join(folder, f"memif-{server}-{client}.sock")
    jobs = []
    try:
        for role, mtu, last in (("server", server, 1), ("client", client, 2)):
            env = base_env(provider, FI_UET_MTU=str(mtu), FI_UET_ADDR=f"10.78.0.{last}",
                           FI_UET_PORT=f"dpdk:net_memif0,role={role},socket-abstract=no,socket={socket}")
            test = [] if role == "server" else [*TESTS, "--size", str(SIZE), "--count", "20", "--window", "4", "--runs", "1",
                                                "--peer", "127.0.0.1"]
            jobs.append(Job([perf, "fabric", *test, "--control-port", port, "--timeout", "30"], env, folder, f"{role}-{mtu}"))
            if role == "server":
                jobs[0].wait_until_it_listens(int(port))
        states = [job.wait(60) for job in reversed(jobs)]
        return "" if states == [0, 0] else "\n".join(job.report(state) for job, state in zip(reversed(jobs), states))
    finally:
        for job in jobs:
            job.kill()


def memif_pairs(tap, folder, provider, perf):
    if not os.path.exists(os.path.join(provider, "../lib/dpdk/libuet-dpdk.so")):
        return tap.skip("unequal MTUs over a memif", "built without DPDK")
    for number, pair in enumerate(itertools.combinations(MEMIF_MTUS, 2)):
        pair = pair[::-1] if number % 2 else pair  # the server's comes first
        tap.result(f"MTU {pair[0]} and {pair[1]} over a memif", over_memif(folder, provider, perf, *pair))


class Ethernet:
    """Two namespaces, and a veth between them with addresses of the kernel's at both ends."""

    def __init__(self):
        self.pair = Namespaces({"uet0": ("192.0.2.1", "192.0.2.2")})

    def set_mtus(self, mtus):
        for name, mtu in zip(self.pair.names, mtus):
            Namespaces.ip("-n", name, "link", "set", "uet0", "mtu", str(mtu))

    def exchange(self, folder, provider, perf, port, addresses, server, **settings):
        """`server`: which of the two ends it is."""
        common = [perf, "fabric", "--control-port", "4794", "--timeout", "30"]
        env = [base_env(provider, FI_UET_PORT=port, FI_UET_ADDR=address, **settings) for address in addresses]
        listen = f"192.0.2.{server + 1}"
        names = self.pair.names
        jobs = [Job([*common, "--listen", listen], env[server], folder, "server", names[server])]
        try:
            jobs[0].wait_until_it_listens(4794)
            jobs.append(Job([*common, *TESTS, "--size", str(SIZE), "--count", "20", "--window", "4", "--runs", "1", "--peer",
                             listen], env[1 - server], folder, "client", names[1 - server]))
            states = [job.wait(40) for job in reversed(jobs)]
            problem = "" if states == [0, 0] else "\n".join(job.report(state) for job, state in zip(reversed(jobs), states))
            if "FI_UET_MTU" in settings and "is more than port udp:uet0 carries" not in "".join(jobs[0].output() + jobs[1].output()):
                problem += "the end with the smaller MTU does not complain of FI_UET_MTU"
            return problem
        finally:
            for job in jobs:
                job.kill()


def ethernet_pairs(tap, folder, provider, perf):
    ports = {"udp:uet0": ("192.0.2.1", "192.0.2.2")}
    if os.path.exists(os.path.join(provider, "../lib/dpdk/libuet-dpdk.so")):
        ports["dpdk:net_af_packet0,iface=uet0"] = ("192.0.2.11", "192.0.2.12")
    ethernet = Ethernet()
    try:
        for mtus in ETHERNET_PAIRS:
            ethernet.set_mtus(mtus)
            for port, addresses in ports.items():
                too_much = {"FI_UET_MTU": max(mtus)} if port.startswith("udp") else {}
                for server in (0, 1):
                    tap.result(f"MTU {mtus[0]} and {mtus[1]} on one Ethernet, {port}, server {'ab'[server]}",
                               ethernet.exchange(folder, provider, perf, port, addresses, server, **too_much))
    finally:
        ethernet.pair.remove()


def main():
    provider, perf = sys.argv[1:]
    need_provider(provider)
    tap = Tap()
    with temporary_folder() as folder:
        memif_pairs(tap, folder, provider, perf)
    try:
        network = Network()
    except (OSError, RuntimeError, subprocess.CalledProcessError) as why:
        tap.skip("kernel UDP", f"no network namespaces: {why}")
        tap.finish()
    try:
        with temporary_folder() as folder:
            ethernet_pairs(tap, folder, provider, perf)
            for a in MTUS:
                network.set_mtu("a", a)
                for b in MTUS:
                    network.set_mtu("b", b)
                    family = 4 if (MTUS.index(a) + MTUS.index(b)) % 2 == 0 else 6
                    problems = [exchange(network, folder, provider, perf, family, *ends) for ends in (("a", "b"), ("b", "a"))]
                    tap.result(f"MTU {a} and {b}, IPv{family}", "\n".join(filter(None, problems)))
    finally:
        network.remove()
    tap.finish()


main()
