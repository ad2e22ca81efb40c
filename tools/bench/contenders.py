"""Who is compared with whom. Each contender says how it is run once, and why it cannot be run here."""

import shutil
from dataclasses import dataclass
from typing import Callable

from box import CONTROL, FABRIC
from harness import own_addresses
from runs import Runner

TESTS = ("write", "read", "send", "tagged-latency")


@dataclass
class Work:
    """What is asked of a round."""
    sizes: list
    tests: tuple = TESTS

    @property
    def text(self):
        return ",".join(map(str, self.sizes))


@dataclass
class Contender:
    name: str
    what: str
    run: Callable[[Runner, Work], list]
    why_not: Callable[[Runner], str] = lambda runner: ""


def needs_dpdk(runner):
    return "" if (runner.build / "lib/dpdk/libuet-dpdk.so").exists() else "built without DPDK"


def needs_veth(runner):
    return runner.veth.why_not


def needs_frames(runner):
    return needs_dpdk(runner) or needs_veth(runner)


def needs_mpi(runner):
    for tool, package in (("mpirun.openmpi", "openmpi-bin"), ("mpicxx.openmpi", "libopenmpi-dev")):
        if not shutil.which(tool):
            return f"{tool} is not installed (package {package})"
    return ""


def needs_cipher(runner):
    return "" if (runner.build / "tests/bench/tss_bench").exists() else "tests/bench/tss_bench is not built"


def uet(ports, addresses, **more):
    return [{"FI_UET_PORT": port, "FI_UET_ADDR": address, **more} for port, address in zip(ports, addresses)]


def memif(runner):
    """A socket of its own for each pair of processes."""
    socket = f"{runner.folder.name}/memif{runner.number}"
    return [f"dpdk:net_memif0,role={role},socket-abstract=no,socket={socket}" for role in ("server", "client")]


def run_uet_memif(runner, work, **more):
    return runner.fabric("uet", uet(memif(runner), FABRIC, **more), work.tests, work.text)


def run_uet_udp(runner, work):
    return runner.fabric("uet", [{"FI_UET_ADDR": own_addresses(2)}] * 2, work.tests, work.text)


def run_uet_udp_veth(runner, work):
    return runner.fabric("uet", [{"FI_UET_ADDR": a} for a in CONTROL], work.tests, work.text, on_veth=True)


def on_link(driver, link):
    def run(runner, work):
        return runner.fabric("uet", uet([f"dpdk:{driver},iface={link}"] * 2, FABRIC), work.tests, work.text, on_veth=True)
    return run


def other(provider, on_veth=False, pinned=True):
    interface = {f"FI_{name}_IFACE": "net0" for name in ("TCP", "UDP", "SOCKETS")} if on_veth else {}

    def run(runner, work):
        return runner.fabric(provider, [interface] * 2, work.tests, work.text, on_veth=on_veth, pinned=pinned)
    return run


def open_mpi(*options, **settings):
    def run(runner, work):
        addresses = {"FI_UET_ADDR": own_addresses(2)}
        return runner.mpi(options, work.sizes, **addresses, **settings)
    return run


def by_ofi(provider):
    return ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", provider,
            "--mca", "btl", "self")


def raw_veth(driver, link):
    return lambda runner, work: runner.raw([f"dpdk:{driver},iface={link}"] * 2, "1400", on_veth=True)


def run_sealed(runner, work):
    keys = f"{runner.folder.name}/keys{runner.number}.json"
    runner.finish([runner.start([runner.build / "apps/keys/uet-keys", "new", "--out", keys, "--state-dir",
                                 f"{runner.folder.name}/state"], runner.env())])
    return run_uet_memif(runner, work, FI_UET_KEYS=keys)


CONTENDERS = [
    Contender("uet-udp", "this provider, kernel UDP on loopback, nothing configured", run_uet_udp),
    Contender("tcp", "libfabric tcp", other("tcp")),
    Contender("rxd", "libfabric udp;ofi_rxd", other("udp;ofi_rxd")),
    Contender("sockets", "libfabric sockets; not pinned, it has threads of its own", other("sockets", pinned=False)),
    Contender("shm", "libfabric shm", other("shm")),
    Contender("kernel-tcp", "kernel TCP on loopback, both sides spinning", lambda r, w: r.tcp(w.text)),
    Contender("raw-udp", "kernel UDP without UET: uet-perf raw", lambda r, w: r.raw(["udp"] * 2, "4096")),
    Contender("uet-memif", "this provider, DPDK memif", run_uet_memif, needs_dpdk),
    Contender("raw-memif", "memif without UET: uet-perf raw", lambda r, w: r.raw(memif(r), "4096"), needs_dpdk),
    Contender("raw-memif-copy-16m", "the same, payload copied once a side, 16 MiB in turn, as of 16 messages of 1 MiB",
              lambda r, w: r.raw(memif(r), "4096", more=["--copy", "--memory", "16M"]), needs_dpdk),
    Contender("raw-memif-copy", "the same, payload copied once a side", lambda r, w: r.raw(memif(r), "4096", more=["--copy"]),
              needs_dpdk),
    Contender("uet-memif-sealed", "this provider, DPDK memif, encrypted", run_sealed, needs_dpdk),
    Contender("uet-udp-veth", "this provider, kernel UDP, two namespaces, MTU 1500", run_uet_udp_veth, needs_veth),
    Contender("tcp-veth", "libfabric tcp, two namespaces, MTU 1500", other("tcp", True), needs_veth),
    Contender("rxd-veth", "libfabric udp;ofi_rxd, two namespaces, MTU 1500", other("udp;ofi_rxd", True), needs_veth),
    Contender("kernel-tcp-veth", "kernel TCP, two namespaces, MTU 1500", lambda r, w: r.tcp(w.text, on_veth=True), needs_veth),
    Contender("uet-af_packet", "this provider, DPDK af_packet, two namespaces, MTU 1500", on_link("net_af_packet0", "pkt0"),
              needs_frames),
    Contender("raw-af_packet", "af_packet without UET: uet-perf raw", raw_veth("net_af_packet0", "pkt0"), needs_frames),
    Contender("uet-af_xdp", "this provider, DPDK af_xdp, two namespaces, MTU 1500", on_link("net_af_xdp0", "xdp0"), needs_frames),
    Contender("raw-af_xdp", "af_xdp without UET: uet-perf raw", raw_veth("net_af_xdp0", "xdp0"), needs_frames),
    Contender("mpi-uet", "Open MPI, mtl ofi with this provider over kernel UDP", open_mpi(*by_ofi("uet"), FI_PROVIDER="uet"),
              needs_mpi),
    Contender("mpi-tcp", "Open MPI, mtl ofi with libfabric tcp", open_mpi(*by_ofi("tcp"), FI_PROVIDER="tcp"), needs_mpi),
    Contender("mpi-btl-tcp", "Open MPI, its own btl tcp", open_mpi("--mca", "pml", "ob1", "--mca", "btl", "tcp,self",
                                                                  "--mca", "btl_tcp_if_include", "lo"), needs_mpi),
    Contender("memcpy", "memcpy in one process: uet-perf copy", lambda r, w: r.copy(w.text)),
    Contender("cipher-openssl", "AES-256-GCM alone, OpenSSL", lambda r, w: r.cipher(0), needs_cipher),
    Contender("cipher-mb", "AES-256-GCM alone, intel-ipsec-mb", lambda r, w: r.cipher(1), needs_cipher),
]

# Ours, and what it is held against.
PAIRS = [
    ("uet-udp", ("tcp", "rxd", "sockets", "shm", "kernel-tcp", "raw-udp")),
    ("uet-udp-veth", ("tcp-veth", "rxd-veth", "kernel-tcp-veth")),
    ("uet-memif", ("raw-memif-copy", "raw-memif-copy-16m", "raw-memif", "shm", "memcpy")),
    ("uet-memif-sealed", ("uet-memif", "cipher-mb", "cipher-openssl")),
    ("uet-af_packet", ("raw-af_packet", "tcp-veth", "uet-udp-veth")),
    ("uet-af_xdp", ("raw-af_xdp", "tcp-veth", "uet-udp-veth")),
    ("mpi-uet", ("mpi-tcp", "mpi-btl-tcp")),
]
