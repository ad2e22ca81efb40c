"""The network of one cell: a namespace for each end and one for uet-fabric between them, a leg for each end, and a wire beside
the fabric over which programs find each other."""

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import threading
import time

CONTROL = {"server": "192.0.2.1", "client": "192.0.2.2"}  # TEST-NET-1, beside the fabric
HOST = {"server": 1, "client": 2}
FABRIC_MTU = 9000
FABRIC = {"leaves": 2, "spines": 4, "host_rate": "1Gb/s", "rate": "500Mb/s", "delay": "20us", "packets": 2048, "seed": 7}
SIOCETHTOOL = 0x8946
# Set transmit checksum, scatter-gather TSO, GSO and receive GRO: uet-fabric's devices take each packet as it is on a wire.
OFFLOADS = (0x17, 0x1F, 0x24, 0x2C)
CLONE_NEWNET = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)


class NetworkError(Exception):
    """A sentence: why this machine gives no such network."""


def ip(*lines, namespace=None):
    """Several ip commands by one process."""
    command = ["ip", *(["-n", namespace] if namespace else []), "-batch", "-"]
    try:
        run = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=60)
    except OSError as problem:
        raise NetworkError(f"ip: {problem.strerror} (package iproute2)") from problem
    if run.returncode != 0:
        raise NetworkError(f"{lines[0]} ...: {run.stderr.strip()}")


def without_offloads(namespace, interface):
    """From a thread of its own, since a thread that entered a namespace stays there if something goes wrong."""
    problems = []

    def change():
        with open(f"/run/netns/{namespace}", "rb") as where:
            if libc.setns(where.fileno(), CLONE_NEWNET) != 0:
                problems.append(os.strerror(ctypes.get_errno()))
                return
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            for command in OFFLOADS:
                value = ctypes.create_string_buffer(struct.pack("II", command, 0))
                request = struct.pack("16sP", interface.encode(), ctypes.addressof(value)).ljust(40, b"\0")
                try:
                    fcntl.ioctl(any_socket, SIOCETHTOOL, request)
                except OSError:
                    pass  # a device without this offload
    thread = threading.Thread(target=change)
    thread.start()
    thread.join()
    if problems:
        raise NetworkError(f"namespace {namespace}: {problems[0]}")


def toml(table):
    def text(value):
        return str(value).lower() if isinstance(value, bool) else json.dumps(value)
    return "".join(f"{key} = {text(value)}\n" for key, value in table.items())


class Network:
    """Made by `with`; what it made is gone afterwards."""

    def __init__(self, tag, legs, is_ipv6, scenario, folder, sockets, fabric_program):
        """Files go into `folder`; sockets, whose paths must be short, into `sockets`."""
        self.legs, self.is_ipv6, self.scenario = legs, is_ipv6, scenario
        self.folder, self.sockets, self.fabric_program = folder, sockets, fabric_program
        self.names = {who: f"uet-{tag}-{who}" for who in ("server", "client", "fabric")}
        self.prefix = 112 if is_ipv6 else 16
        self.fabric = None
        self.mtu = dict(zip(("server", "client"), scenario.mtu))

    def address(self, end, number=0):
        """Of the end, or of its n-th process where it has several."""
        host = HOST[end] if number == 0 else 256 * HOST[end] + number
        return f"fd79::{host:x}" if self.is_ipv6 else f"10.79.{host >> 8}.{host & 255}"

    def __enter__(self):
        try:
            for name in self.names.values():
                ip(f"netns add {name}")
                ip("link set lo up", namespace=name)
            ends = self.names["server"], self.names["client"]
            ip(f"link add ctl0 netns {ends[0]} type veth peer name ctl0 netns {ends[1]}")
            for end in ("server", "client"):
                ip(f"address add {CONTROL[end]}/24 dev ctl0", "link set ctl0 up", namespace=self.names[end])
                if self.legs[end] != "memif":
                    self.join(end)
            self.start_fabric()
        except BaseException:
            self.__exit__()
            raise
        return self

    def join(self, end):
        """veth from the end to the fabric."""
        name, fabric = self.names[end], self.names["fabric"]
        ip(f"link add uet0 netns {name} type veth peer name {end} netns {fabric}")
        ip(f"link set {end} mtu {FABRIC_MTU} up", namespace=fabric)
        lines = [f"link set uet0 mtu {self.mtu[end]} up"]
        if self.legs[end] == "kernel":
            last = self.scenario.clients if end == "client" and self.scenario.clients > 1 else 0
            for number in range(last + 1):
                lines.append(f"address add {self.address(end, number)}/{self.prefix} dev uet0{' nodad' if self.is_ipv6 else ''}")
            other = "client" if end == "server" else "server"
            least = min(self.mtu.values())
            if least < self.mtu[end]:  # what path MTU discovery would find out
                lines.append(f"route add {self.address(other)} dev uet0 mtu {least}")
        ip(*lines, namespace=name)
        for where, interface in ((name, "uet0"), (fabric, end)):
            without_offloads(where, interface)

    def socket_of(self, end):
        return f"{self.sockets}/{end}.sock"

    def start_fabric(self):
        text = "[fabric]\n" + toml({**FABRIC, **self.scenario.fabric})
        text += "[run]\n" + toml({"control": f"{self.sockets}/control", "capture": f"{self.folder}/fabric.pcapng,snap=256"})
        for leaf, end in enumerate(("server", "client")):
            device = ({"memif": self.socket_of(end)} if self.legs[end] == "memif" else
                      {"port": f"dpdk:net_af_packet0,iface={end}".replace("packet0", f"packet{leaf}")})
            text += "[[leg]]\n" + toml({"name": end, "leaf": leaf, **device})
        for link in self.scenario.link:
            text += "[[link]]\n" + toml(link)
        path = f"{self.folder}/fabric.toml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.log = open(f"{self.folder}/fabric.log", "wb")
        self.fabric = subprocess.Popen(
            ["ip", "netns", "exec", self.names["fabric"], self.fabric_program, "run", path],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        end = time.monotonic() + 30
        while self.ctl("clock") is None:
            if self.fabric.poll() is not None or time.monotonic() > end:
                with open(f"{self.folder}/fabric.log", errors="replace") as log:
                    raise NetworkError(f"uet-fabric does not start: {log.read().strip()[-300:]}")
            time.sleep(0.02)

    def ctl(self, command):
        """The reply of the fabric, or None."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(10)
                connection.connect(f"{self.sockets}/control")
                connection.sendall(command.encode() + b"\n")
                with connection.makefile() as reply:
                    return json.loads(reply.readline())
        except (OSError, ValueError):
            return None

    def frames(self):
        """That came from the ends so far."""
        reply = self.ctl("legs")
        return sum(leg["rx_frames"] for leg in reply["legs"]) if reply and reply["ok"] else 0

    def __exit__(self, *_):
        if self.fabric:
            self.ctl("quit")
            try:
                self.fabric.wait(5)
            except subprocess.TimeoutExpired:
                self.fabric.kill()
                self.fabric.wait()
            self.log.close()
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)
