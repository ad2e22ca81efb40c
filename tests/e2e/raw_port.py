#!/usr/bin/env python3
"""The ports themselves, without UET: `uet-perf raw` between two processes over kernel UDP and over every DPDK device that carries frames between two processes
without hardware.

    raw_port.py UET-PERF DPDK-PLUG-IN
"""

import json
import os
import signal
import socket
import struct
import sys
import time

from harness import Job, Namespaces, Tap, own_addresses, temporary_folder

A, B = "10.78.1.1", "10.78.1.2"


class Bench:
    def __init__(self, perf, folder):
        self.perf, self.folder, self.number = perf, folder, 0

    def start(self, role, port, address, peer, *more, namespace=None):
        self.number += 1
        command = [self.perf, "raw", "--port", port, "--address", address, "--peer", peer, "--seconds", "0.2",
                   "--pings", "200", "--timeout", "20", *(["--server"] if role == "server" else ["--json"]), *more]
        return Job(command, dict(os.environ), self.folder, f"{role}{self.number}", namespace)

    def check(self, client, server, lossless=True, **expected):
        """Empty when both ended well and the client's result makes sense."""
        try:
            status = [client.wait(60), server.wait(30)]
            if status != [0, 0]:
                return client.report(status[0]) + server.report(status[1])
            result = json.loads(client.output()[0])
            if result["received"] == 0 or result["pings_lost"] > 100:
                return f"nothing came through: {result}"
            if lossless and result["received"] != result["sent"]:
                return f"a lossless link lost packets: {result}"
            if any(result[key] != value for key, value in expected.items()):
                return f"{expected} expected: {result}"
            return ""
        finally:
            client.kill()
            server.kill()


def udp(bench):
    a, b = own_addresses(2).split("|")
    server = bench.start("server", "udp", a, b)
    client = bench.start("client", "udp", b, a, "--copy", "--memory", "128k")
    return bench.check(client, server, lossless=False, copy=True, memory=131072)


def memory_of_the_server(bench):
    """A client that asks for more than the server was given is told so."""
    a, b = own_addresses(2).split("|")
    for most, status, text in (("4M", 0, ""), ("2M", 1, "give it --copy --memory 4096k")):
        server = bench.start("server", "udp", a, b, "--copy", "--memory", most, "--timeout", "5")
        client = bench.start("client", "udp", b, a, "--copy", "--memory", "4M")
        try:
            got = [client.wait(60), server.wait(30)]
            if got != [status, 0] or text not in client.output()[1]:
                return client.report(got[0]) + server.report(got[1])
        finally:
            client.kill()
            server.kill()
    return ""


def options_that_do_not_fit(bench):
    """Said at once, in the words of the tool."""
    a, b = own_addresses(2).split("|")
    for status, options, text in (
            (2, ["--peer", a], "Give --address"),
            (2, ["--peer", a, "--port", "dpdk:net_memif0"], "Give --address"),
            (2, ["--address", b, "--peer", "::1"], "one family"),
            (2, ["--port", "udp:" + b, "--peer", "::1"], "one family"),
            (1, ["--address", b, "--peer", a, "--native-ip"], "leave --native-ip out"),
            (1, ["--address", "224.0.0.1", "--peer", a], "set --address to one")):
        bench.number += 1
        start = time.monotonic()
        job = Job([bench.perf, "raw", *options], dict(os.environ), bench.folder, f"refused{bench.number}")
        try:
            got = job.wait(20)
            if got != status or text not in job.output()[1] or "FI_UET" in job.output()[1] or time.monotonic() - start > 10:
                return f"{options}\n" + job.report(got)
        finally:
            job.kill()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind((a, UET_PORT))
        server = bench.start("server", "udp", a, b)
        try:
            status = server.wait(20)
            said = server.output()[1]
            return "" if status == 1 and "with --address" in said and "FI_UET" not in said else server.report(status)
        finally:
            server.kill()


START, READY, DATA, END, REPORT, BYE, GONE = 1, 2, 3, 6, 7, 8, 9
UET_PORT, VERSION = 4793, 3


class Client:
    """Of a server over kernel UDP, packet by packet (apps/perf/raw_message.h). A session has runs from 1 on."""

    def __init__(self, address, server, session):
        self.server, self.session = (server, UET_PORT), session
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, UET_PORT))

    def say(self, kind, run=1):
        self.socket.sendto(struct.pack(">BBBBI", kind, run, 0, VERSION, self.session) + bytes(56), self.server)

    def ask(self, question, answer, seconds=20):
        """What is behind the header of the answer to this session; None without one."""
        self.socket.settimeout(0.1)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.say(question)
            try:
                packet = self.socket.recv(2048)
            except OSError:  # also while the server starts
                continue
            if packet[0] == answer and struct.unpack_from(">I", packet, 4)[0] == self.session:
                return packet[8:]
        return None


def a_client_after_one_that_was_interrupted(bench):
    """Both number their runs from 1. Nothing of the first is in the report to the second."""
    a, b = own_addresses(2).split("|")
    server = bench.start("server", "udp", a, b)
    try:
        counted = []
        for session, packets in ((7, 5), (8, 3)):
            client = Client(b, a, session)
            if client.ask(START, READY) is None:
                return "not ready\n" + server.report(None)
            for _ in range(packets):
                client.say(DATA)
            if session == 8:
                client.session = 7  # late packets of the first client
                client.say(DATA)
                client.session = 8
            report = client.ask(END, REPORT)
            counted.append(report and struct.unpack_from(">Q", report)[0])
            if session == 8:
                client.ask(BYE, GONE)
            client.socket.close()
        return "" if counted == [5, 3] and server.wait(20) == 0 else f"{counted} packets\n" + server.report(None)
    finally:
        server.kill()


def memif(bench, socket, client_first=False, vlan="0", native=False, of_client=""):
    more = ["--vlan", vlan, *(["--native-ip"] if native else [])]
    ends = {"server": ("server", f"dpdk:net_memif0,role=server,socket={socket}", A, B, *more),
            "client": ("client", f"dpdk:net_memif0,role=client,socket={socket}{of_client}", B, A, *more)}
    jobs = {}
    for end in ("client", "server") if client_first else ("server", "client"):
        jobs[end] = bench.start(*ends[end])
        time.sleep(1.5 if client_first else 0)
    return bench.check(jobs["client"], jobs["server"])


def memif_v6(bench, socket):
    server = bench.start("server", f"dpdk:net_memif0,role=server,socket={socket}", "fd00:78::1", "fd00:78::2")
    client = bench.start("client", f"dpdk:net_memif0,role=client,socket={socket}", "fd00:78::2", "fd00:78::1")
    return bench.check(client, server)


def killed_peer(bench, socket, victim_role):
    """The survivor must end with a sentence, not with a signal."""
    jobs = {"server": bench.start("server", f"dpdk:net_memif0,role=server,socket={socket}", A, B, "--timeout", "3"),
            "client": bench.start("client", f"dpdk:net_memif0,role=client,socket={socket}", B, A, "--timeout", "3",
                                  "--seconds", "20")}
    try:
        time.sleep(3)
        victim = jobs.pop(victim_role)
        victim.process.send_signal(signal.SIGKILL)
        survivor = next(iter(jobs.values()))
        status = survivor.wait(60)
        return "" if status == 1 else survivor.report(status)
    finally:
        for job in (*jobs.values(), victim):
            job.kill()


def af_packet(bench, with_addresses):
    veth = Namespaces({"uet0": (A, B) if with_addresses else None})
    try:
        server = bench.start("server", "dpdk:net_af_packet0,iface=uet0", A, B, namespace=veth.names[0])
        client = bench.start("client", "dpdk:net_af_packet0,iface=uet0", B, A, namespace=veth.names[1])
        return bench.check(client, server, lossless=False)
    finally:
        veth.remove()


def wait_for_file(path, job, seconds=30):
    end = time.monotonic() + seconds
    while not os.path.exists(path) and job.process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


def virtio_user(bench, socket):
    """The nearest thing to a commodity NIC. Each end outlives the other's by its own exit status."""
    server = bench.start("server", f"dpdk:net_vhost0,iface={socket}", A, B)
    wait_for_file(socket, server)
    client = bench.start("client", f"dpdk:net_virtio_user0,path={socket}", B, A)
    return bench.check(client, server, lossless=False)


def on_veth(bench, first, second):
    """Two ports, each on one end of a veth pair with an MTU that XDP runs with."""
    veth = Namespaces({"uet0": None})
    try:
        for name in veth.names:
            veth.ip("-n", name, "link", "set", "uet0", "mtu", "1500")
        server = bench.start("server", first, A, B, "--size", "1024", namespace=veth.names[0])
        client = bench.start("client", second, B, A, "--size", "1024", namespace=veth.names[1])
        return bench.check(client, server, lossless=False)
    finally:
        veth.remove()


def on_tap(bench):
    """A TAP interface that the driver takes over, and a port on that interface, as a program of the kernel would be."""
    veth = Namespaces({})
    name, tap = veth.names[0], "uettap0"
    try:
        # Made before both: the port on it may be opened first.
        veth.ip("-n", name, "tuntap", "add", "dev", tap, "mode", "tap", "multi_queue")
        veth.ip("-n", name, "link", "set", tap, "up")
        server = bench.start("server", f"dpdk:net_tap0,iface={tap}", A, B, "--size", "1024", namespace=name)
        client = bench.start("client", f"dpdk:net_af_packet0,iface={tap}", B, A, "--size", "1024", namespace=name)
        return bench.check(client, server, lossless=False)
    finally:
        veth.remove()


def main():
    perf, plugin = sys.argv[1:]
    tap = Tap()
    with temporary_folder() as folder:
        bench = Bench(perf, folder)
        tap.result("kernel UDP on loopback", udp(bench))
        tap.result("memory of the server", memory_of_the_server(bench))
        tap.result("options that do not fit", options_that_do_not_fit(bench))
        tap.result("a client after one that was interrupted", a_client_after_one_that_was_interrupted(bench))
        cases = {
            "memif": lambda s: memif(bench, s),
            "memif, client first": lambda s: memif(bench, s, client_first=True),
            "memif with VLAN": lambda s: memif(bench, s, vlan="7"),
            "memif with native IP": lambda s: memif(bench, s, native=True),
            "memif with IPv6": lambda s: memif_v6(bench, s),
            "memif, server killed": lambda s: killed_peer(bench, s, "server"),
            "memif, client killed": lambda s: killed_peer(bench, s, "client"),
            "memif without copying": lambda s: memif(bench, s, of_client=",zero-copy=yes"),
            "memif without copying, client first": lambda s: memif(bench, s, client_first=True, of_client=",zero-copy=yes"),
            "virtio_user and vhost": lambda s: virtio_user(bench, s),
        }
        for number, (name, case) in enumerate(cases.items()):
            if not os.path.exists(plugin):
                tap.skip(name, "built without DPDK")
            else:
                tap.result(name, case(os.path.join(folder, f"memif{number}.sock")))
        on_interfaces = {
            "af_packet": lambda: af_packet(bench, False),
            "af_packet, address known to the kernel": lambda: af_packet(bench, True),
            "af_xdp": lambda: on_veth(bench, "dpdk:net_af_xdp0,iface=uet0", "dpdk:net_af_xdp0,iface=uet0"),
            "tap": lambda: on_tap(bench),
            "pcap": lambda: on_veth(bench, "dpdk:net_pcap0,iface=uet0", "dpdk:net_af_packet0,iface=uet0"),
        }
        for name, case in on_interfaces.items():
            if not os.path.exists(plugin):
                tap.skip(name, "built without DPDK")
            elif os.geteuid() != 0:
                tap.skip(name, "network namespaces and raw sockets need root")
            else:
                try:
                    tap.result(name, case())
                except (OSError, RuntimeError) as problem:
                    tap.skip(name, f"cannot make network namespaces with veth here: {problem}")
    tap.finish()


main()
