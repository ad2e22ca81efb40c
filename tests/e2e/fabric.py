#!/usr/bin/env python3
"""Unmodified libfabric programs on the legs of uet-fabric: four paths, one dying; what the fabric says; wrong scenarios.

    fabric.py PROVIDER-FOLDER DPDK-PLUG-IN UET-FABRIC FABRIC_TRAFFIC UET-DUMP
"""

import json
import os
import subprocess
import sys
import threading
import time

from fabric_run import Fabric, start_ranks, wait_ranks
from harness import Namespaces, Tap, need_program, need_provider, pingpong, skip_all, temporary_folder

FOUR_PATHS = """
[fabric]
leaves = {leaves}
spines = 4
host_rate = "1Gb/s"
rate = "250Mb/s"
delay = "50us"
trimming = {trimming}
seed = 3
"""
# Processes share cores with everything else that runs here.
SETTINGS = {"FI_UET_LINK_GBPS": 1, "FI_UET_BASE_RTT": "2ms", "FI_UET_LB": "mixed", "FI_UET_PATHS": 64}

WRONG = [
    ("[fabric]\nleafs = 2\n", ":2: unknown key \"leafs\""),
    ("[fabric]\nrate = \"fast\"\n[[leg]]\nmemif = \"/tmp/x\"\n", ":2: rate: \"fast\" is not a rate"),
    ("[[leg]]\nmemif = \"/tmp/x\"\n[[link]]\nname = \"spine0\"\nkill = true\n", ":5: kill: there is no link \"spine0\""),
    ("[[leg]]\nmemif = \"/tmp/x\"\n[[at]]\ntime = \"1s\"\ndo = \"explode\"\n", ":5: unknown command \"explode\""),
    ("[fabric\n", ":1:"),
]


def check_wrong_scenarios(tap, program, folder):
    for number, (text, expected) in enumerate(WRONG):
        path = os.path.join(folder, f"wrong{number}.toml")
        with open(path, "w") as file:
            file.write(text)
        for command in ("check", "run"):
            run = subprocess.run([program, command, path], capture_output=True, text=True, timeout=60)
            problem = "" if run.returncode == 2 and path + expected in run.stderr else f"{run.returncode}: {run.stderr}"
            tap.result(f"{command} refuses: {expected}", problem)
    run = subprocess.run([program, "ctl", f"{folder}/absent", "stats"], capture_output=True, text=True)
    tap.result("ctl without a fabric", "" if run.returncode == 1 and "no process answers" in run.stderr else run.stderr)
    run = subprocess.run([program, "ctl", "", "stats"], capture_output=True, text=True)
    tap.result("ctl without a path", "" if run.returncode == 1 and "no path" in run.stderr else run.stderr)


def check_files(tap, program, folder):
    """Files of the user that are in the place of its outputs stay as they are."""
    scenario, notes = os.path.join(folder, "mine.toml"), os.path.join(folder, "notes")
    text = f"[[leg]]\nmemif = \"{folder}/mine%n.sock\"\ncount = 2\n"
    link = os.path.join(folder, "link.toml")
    os.symlink(scenario, link)
    for name, option, path, expected in (
            ("control socket in the place of a file", "--control", notes, "is no socket"),
            ("capture into the scenario", "--capture", scenario, "is the scenario"),
            ("capture into the scenario by a link", "--capture", link + ",size=1M", "is the scenario"),
            ("statistics into the scenario", "--stats", scenario, "is the scenario")):
        for file in (scenario, notes):
            with open(file, "w") as out:
                out.write(text)
        run = subprocess.run([program, "run", scenario, "--duration", "100ms", option, path], capture_output=True, text=True, timeout=60)
        kept = [os.path.isfile(file) and open(file, errors="replace").read() == text for file in (scenario, notes)]
        good = run.returncode in (1, 2) and expected in run.stderr and all(kept)
        tap.result(name, "" if good else f"{run.returncode}, files kept {kept}: {run.stderr}")
    run = subprocess.run([program, "run", scenario, "--stats", f"{folder}/none/stats.json"], capture_output=True, text=True, timeout=60)
    early = run.returncode == 1 and "cannot write" in run.stderr and "ready" not in run.stderr
    tap.result("statistics that cannot be written are told before the run", "" if early else f"{run.returncode}: {run.stderr}")
    run = subprocess.run([program, "run", scenario, "--duration", "100ms", "--capture", "/dev/full", "--stats", f"{folder}/written.json"],
                         capture_output=True, text=True, timeout=60)
    lacking = run.returncode == 1 and "/dev/full lacks" in run.stderr and os.path.exists(f"{folder}/written.json")
    tap.result("a capture that lacks records is a failure, behind the statistics", "" if lacking else f"{run.returncode}: {run.stderr}")
    late = os.path.join(folder, "late.json")
    os.symlink(f"{folder}/target.json", late)
    run = subprocess.run([program, "run", scenario, "--duration", "100ms", "--stats", late], capture_output=True, text=True, timeout=60)
    through = run.returncode == 0 and os.path.islink(late) and os.path.exists(f"{folder}/target.json")
    tap.result("statistics go through a link to a file that is not there", "" if through else f"{run.returncode}: {run.stderr}")
    run = subprocess.run([program, "rnu", scenario], capture_output=True, text=True, timeout=60)
    tap.result("a misspelt command", "" if run.returncode == 2 and "did you mean run?" in run.stderr else f"{run.returncode}: {run.stderr}")


def kill_and_heal(fabric, replies):
    end = time.monotonic() + 60
    while time.monotonic() < end and sum(leg["rx_frames"] for leg in fabric.ctl("legs")["legs"]) < 2000:
        time.sleep(0.1)
    for command in ("kill spine2", "rate spine1 10%", "heal spine2"):
        replies.append(fabric.ctl(*command.split()))
        time.sleep(1)


def check_pingpong(tap, provider, program, dump, folder):
    fabric = Fabric(program, folder, FOUR_PATHS.format(leaves=2, trimming="false"), 2)
    replies = [fabric.ctl("capture", f"{folder}/fabric.pcapng")]
    killer = threading.Thread(target=kill_and_heal, args=(fabric, replies))
    killer.start()
    settings = [fabric.settings(leg, **SETTINGS) for leg in range(2)]
    problem = pingpong(folder, provider, *settings, ["-m", "tagged", "-S", "65536", "-I", "2000"])
    killer.join()
    tap.result("fi_pingpong while a path dies, one slows down, the first comes back", problem)
    replies.append(fabric.ctl("capture", "off"))
    tap.result("every command was done", "" if all(r["ok"] for r in replies) else str(replies))
    paths = fabric.ctl("paths")["paths"]
    tap.result("all four paths carried packets", "" if all(p["data_packets"] > 0 for p in paths) else str(paths))
    tap.result("the dead path lost some", "" if paths[2]["lost_while_down"] > 0 else str(paths[2]))
    tap.result("ends when told", "" if fabric.stop() == 0 else fabric.job.report(None))
    with open(f"{folder}/stats.json") as file:
        stats = json.load(file)
    tap.result("the last word on everything", "" if stats["flows"] and stats["clock"]["turns"] > 0 else str(stats))
    output = subprocess.run([dump, "--stats", "--json", f"{folder}/fabric.pcapng"], capture_output=True, text=True)
    sums = json.loads(output.stdout) if output.returncode == 0 else {}
    sent, came = (sums.get(place, {}) for place in ("from_hosts", "to_hosts"))
    tap.result("uet-dump reads the capture", "" if came.get("payload_bytes", 0) > 0 else output.stderr + output.stdout)
    counted = 0 < came.get("messages", 0) <= sent.get("messages", 0) and came.get("out_of_order", 0) > 0
    tap.result("what hosts sent and what came to them are told apart", "" if counted else str(sums))


def until(condition, seconds=20):
    """Whether it came true."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def check_ranks(tap, provider, program, traffic, folder, trimming):
    fabric = Fabric(program, folder, FOUR_PATHS.format(leaves=4, trimming="true" if trimming else "false"), 4)

    def spine1():
        return fabric.ctl("paths")["paths"][1]

    with_trimming = ", with trimming" if trimming else ""
    try:
        settings = {**SETTINGS, "FI_UET_TRIMMING": int(trimming)}
        jobs = start_ranks(fabric, provider, traffic, 4, "exchange", 5, 65536, 4, settings)
        until(lambda: spine1()["data_packets"] > 1000)
        replies = [fabric.ctl("kill", "spine1")]
        until(lambda: spine1()["lost_while_down"] > 0)
        replies.append(fabric.ctl("match", "from=host0", "count=20", "do=drop"))
        _, problem = wait_ranks(jobs, 90)
        tap.result("four ranks exchange messages while a path dies" + with_trimming, problem)
        if problem:
            print("#", json.dumps(fabric.ctl("paths")))
        tap.result("both commands were done" + with_trimming, "" if all(r["ok"] for r in replies) else str(replies))
        lost = spine1()["lost_while_down"]
        tap.result("the dead path lost some" + with_trimming, "" if lost > 0 else json.dumps(fabric.ctl("paths")))
        rules = fabric.ctl("rules")["rules"]
        tap.result("the rule dropped its packets" + with_trimming, "" if [r["applied"] for r in rules] == [20] else str(rules))
    finally:
        fabric.stop()


VETH_LEG = """
[[leg]]
port = "dpdk:net_af_packet0,iface=uet0"
name = "wire"
leaf = 1
"""
CONTROL = ("192.0.2.1", "192.0.2.2")  # kernel addresses of the control connection


def check_veth_leg(tap, provider, program, folder):
    """One host on a memif leg, the other behind a cable: an af_packet leg on veth, whose other end is in another namespace."""
    name = "fi_pingpong from a memif leg to an af_packet leg"
    if os.geteuid() != 0:
        return tap.skip(name, "network namespaces and af_packet sockets need root")
    try:
        namespaces = Namespaces({"uet0": None, "ctl0": CONTROL})
    except (OSError, RuntimeError) as problem:
        return tap.skip(name, f"cannot make network namespaces with veth here: {problem}")
    try:
        here = namespaces.names[0]
        fabric = Fabric(program, folder, FOUR_PATHS.format(leaves=2, trimming="false"), 1, here, VETH_LEG)
        try:
            # Both ends must cut messages alike, and would choose by the MTU of their own device.
            settings = {**SETTINGS, "FI_UET_MAX_PAYLOAD": 4096}
            server = fabric.settings(0, **settings)
            client = {"FI_UET_PORT": "dpdk:net_af_packet0,iface=uet0", "FI_UET_ADDR": "10.79.0.2", **settings}
            tap.result(name, pingpong(folder, provider, server, client, ["-m", "tagged", "-S", "65536", "-I", "200"],
                                      namespaces=namespaces.names, control=CONTROL[0]))
            legs = {leg["name"]: leg for leg in fabric.ctl("legs")["legs"]}
            both = all(leg["rx_frames"] > 100 and leg["tx_frames"] > 100 for leg in legs.values())
            tap.result("both legs carried it", "" if both and "wire" in legs else json.dumps(legs))
            tap.result("over all four paths", "" if all(p["data_packets"] > 0 for p in fabric.ctl("paths")["paths"]) else
                       json.dumps(fabric.ctl("paths")))
        finally:
            fabric.stop()
    finally:
        namespaces.remove()


def main():
    provider, plugin, program, traffic, dump = sys.argv[1:]
    need_provider(provider)
    need_program("fi_pingpong")
    if not os.path.exists(plugin):
        skip_all("built without DPDK")
    tap = Tap()
    with temporary_folder() as folder:
        check_wrong_scenarios(tap, program, folder)
        check_files(tap, program, folder)
        check_pingpong(tap, provider, program, dump, folder)
    with temporary_folder() as folder:
        check_veth_leg(tap, provider, program, folder)
    for trimming in (False, True):
        with temporary_folder() as folder:
            check_ranks(tap, provider, program, traffic, folder, trimming)
    tap.finish()


main()
