#!/usr/bin/env python3
"""Two processes with two planes each, through DPDK's af_packet driver, through kernel sockets and through two uet-fabrics: both
planes carry; one dies in the middle and comes back; every message arrives whole.

    planes.py PROVIDER-FOLDER DPDK-PLUG-IN UET-PERF FABRIC_TRAFFIC [UET-FABRIC]
"""

import json
import os
import sys
import time

import path_log
from fabric_run import Fabric
from harness import Job, Namespaces, Tap, base_env, free_port, need_provider, skip_all, temporary_folder

PHASE = 4  # seconds: with both planes, with one; with both again for twice as long, for this machine may be crowded
ENOUGH = 20  # packets of a plane in a phase that show that it is in use
SETTINGS = {"FI_UET_PATHS": 16, "FI_UET_BASE_RTT": "1ms", "FI_UET_LINK_GBPS": 1, "FI_UET_MTU": 9000}
CONTROL = ("192.0.2.1", "192.0.2.2")
ONE_PATH = """
[fabric]
leaves = 2
spines = 1
host_rate = "1Gb/s"
rate = "500Mb/s"
delay = "50us"
"""


class Kill:
    """When a plane dies and returns, on the clock of the logs."""

    def __init__(self, kill, heal):
        self.kill, self.heal = kill, heal

    def play(self):
        time.sleep(PHASE)
        self.died = time.monotonic()
        self.kill()
        time.sleep(PHASE)
        self.returned = time.monotonic()
        self.heal()


def counters(lines, when):
    """The planes as they were last told before `when`."""
    known = [line for line in lines if line["t"] <= when * 1e9]
    return known[-1]["planes"] if known else None


def check_planes(lines, kill):
    """What is wrong with the course of the packets, or nothing."""
    moments = [counters(lines, t) for t in (kill.died, kill.died + 1.5, kill.returned, float("inf"))]
    if None in moments:
        return f"no line about planes in time: {[line['t'] for line in lines]}"
    alive, dying, dead, healed = moments
    problems = []
    for plane in (0, 1):
        if min(alive[plane]["sent"], alive[plane]["received"]) < ENOUGH:
            problems.append(f"plane {plane} carries nothing: {alive}")
    if dead[0]["sent"] - dying[0]["sent"] < ENOUGH:
        problems.append(f"nothing goes over the plane that is left: {dying} then {dead}")
    if dead[1]["received"] > dying[1]["received"]:
        problems.append(f"the dead plane is alive: {dying} then {dead}")
    if healed[1]["sent"] - dead[1]["sent"] < ENOUGH or healed[1]["received"] - dead[1]["received"] < ENOUGH:
        problems.append(f"the plane that returned is not used: {dead} then {healed}")
    return "\n".join(problems)


def ranks(tap, name, programs, folder, ports, addresses, namespaces, kill):
    """Two ranks that exchange messages while a plane dies."""
    provider, traffic = programs
    folder = os.path.join(folder, f"ranks{time.monotonic_ns()}")
    os.mkdir(folder)
    logs = [f"{folder}/{r}.paths" for r in range(2)]
    jobs = []
    try:
        for r in range(2):
            settings = {**SETTINGS, "FI_UET_PORT": ports[r], "FI_UET_ADDR": addresses[r], "FI_UET_PATH_LOG": logs[r]}
            command = [traffic, folder, str(r), "2", "exchange", str(4 * PHASE), "65536", "8"]
            jobs.append(Job(command, base_env(provider, **settings), folder, f"rank{r}", namespaces[r]))
        end = time.monotonic() + 60
        while not all(os.path.exists(f"{folder}/{r}.address") for r in range(2)) and time.monotonic() < end:
            time.sleep(0.05)
        kill.play()
        results, problems = [], []
        for job in jobs:
            status = job.wait(90)
            out = job.output()[0]
            if status != 0 or not out.startswith("{"):
                problems.append(job.report(status))
            else:
                results.append(json.loads(out))
        tap.result(f"{name}: every message arrives with its bytes", "\n".join(problems))
        for r, log in enumerate(logs):
            lines = path_log.read(log, "planes") if os.path.exists(log) else []
            tap.result(f"{name}: rank {r} uses both planes, one, both", check_planes(lines, kill))
            if lines:
                print("#", json.dumps(lines[-1]["planes"]))
        for result in results:
            print("# MB in each half second:", [round(n / 1e6, 1) for n in result["timeline"]])
    finally:
        for job in jobs:
            job.kill()


def perf(tap, program, provider, folder, ports, namespaces):
    """uet-perf over both planes: both of its parts."""
    control = free_port()
    jobs = []

    def run(name, commands, envs):
        jobs.clear()
        jobs.append(Job(commands[0], envs[0], folder, "server", namespaces[0]))
        jobs[0].wait_until_it_listens(control, 3)
        jobs.append(Job(commands[1], envs[1], folder, "client", namespaces[1]))
        status = [jobs[1].wait(60), jobs[0].wait(20)]
        good = status == [0, 0]
        tap.result(name, "" if good else "\n".join(j.report(s) for j, s in zip(jobs[::-1], status)))
        if good:
            print("#", jobs[1].output()[0].strip()[:300])
        for job in jobs:
            job.kill()

    addresses = ("10.78.0.1", "10.78.0.2")
    envs = [base_env(provider, **SETTINGS, FI_UET_PORT=p, FI_UET_ADDR=a) for p, a in zip(ports, addresses)]
    fabric = [program, "fabric", "write", "--control-port", str(control), "--count", "500", "--json"]
    run("uet-perf fabric over two planes", [fabric + ["--listen", "0.0.0.0"], fabric + ["--peer", CONTROL[0]]], envs)
    raw = [program, "raw", "--seconds", "1", "--json"]
    run("uet-perf raw over two planes",
        [raw + ["--server", "--port", ports[0], "--address", addresses[0], "--peer", addresses[1]],
         raw + ["--port", ports[1], "--address", addresses[1], "--peer", addresses[0]]], envs)


def link_of(namespaces, link):
    return Kill(lambda: Namespaces.ip("-n", namespaces.names[0], "link", "set", link, "down"),
                lambda: Namespaces.ip("-n", namespaces.names[0], "link", "set", link, "up"))


def over_af_packet(tap, programs, plugin, perf_program, folder):
    if not os.path.exists(plugin):
        return tap.skip("af_packet", "built without DPDK")
    namespaces = Namespaces({"uet0": None, "uet1": None, "ctl0": CONTROL})
    try:
        port = "dpdk:net_af_packet0,iface=uet0+dpdk:net_af_packet1,iface=uet1"
        ranks(tap, "af_packet", programs, folder, (port, port), ("10.78.0.1", "10.78.0.2"), namespaces.names,
              link_of(namespaces, "uet1"))
        perf(tap, perf_program, programs[0], folder, (port, port), namespaces.names)
    finally:
        namespaces.remove()


def over_udp(tap, name, addresses, programs, folder):
    namespaces = Namespaces({"uet0": addresses, "uet1": addresses})
    try:
        for host in namespaces.names:
            # An address that is on two interfaces is heard on the one that the route back does not choose.
            namespaces.set(host, "net/ipv4/conf/*/rp_filter", 0)
        port = "udp:uet0+udp:uet1"
        ranks(tap, name, programs, folder, (port, port), addresses, namespaces.names, link_of(namespaces, "uet1"))
    finally:
        namespaces.remove()


def over_fabrics(tap, programs, plugin, fabric, folder):
    """Each plane a fabric of its own; one is killed and started again."""
    if not os.path.exists(plugin):
        return tap.skip("memif", "built without DPDK")
    folders = [os.path.join(folder, f"plane{p}") for p in (0, 1)]
    for path in folders:
        os.mkdir(path)

    def start(p):
        return Fabric(fabric, folders[p], ONE_PATH, 2)

    fabrics = [start(p) for p in (0, 1)]
    killed = []  # waited for at the end: a process with much memory dies slowly on a crowded machine

    def restart():
        for name in os.listdir(folders[1]):
            if name.endswith(".sock"):
                os.unlink(os.path.join(folders[1], name))  # a killed process leaves them
        fabrics[1] = start(1)

    try:
        ports = ["+".join(f"dpdk:net_memif{p},role=client,socket-abstract=no,socket={folders[p]}/host{leg}.sock"
                          for p in (0, 1)) for leg in (0, 1)]
        ranks(tap, "memif", programs, folder, ports, ("10.79.0.1", "10.79.0.2"), (None, None),
              Kill(lambda: killed.append(fabrics[1].job) or fabrics[1].job.process.kill(), restart))
    finally:
        for f in fabrics:
            f.stop()
        for job in killed:
            job.kill()


def main():
    provider, plugin, perf_program, traffic, *fabric = sys.argv[1:]
    need_provider(provider)
    if os.geteuid() != 0:
        skip_all("network namespaces need root")
    try:
        Namespaces({"uet0": None}).remove()
    except (OSError, RuntimeError) as problem:
        skip_all(f"cannot make network namespaces with veth here: {problem}")
    tap = Tap()
    programs = (provider, traffic)
    only = os.environ.get("UET_PLANES_ONLY", "af_packet udp memif").split()
    with temporary_folder() as folder:
        if "af_packet" in only:
            over_af_packet(tap, programs, plugin, perf_program, folder)
        if "udp" in only:
            over_udp(tap, "kernel UDP", ("10.78.1.1", "10.78.1.2"), programs, folder)
            if os.environ.get("UET_TEST_DEPTH") == "long":
                over_udp(tap, "kernel UDP, IPv6", ("fd00:78::1", "fd00:78::2"), programs, folder)
        if "memif" in only and fabric:
            over_fabrics(tap, programs, plugin, fabric[0], folder)
    tap.finish()


main()
