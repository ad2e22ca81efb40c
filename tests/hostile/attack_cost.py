#!/usr/bin/env python3
"""What one attacker costs 24 endpoints on uet-fabric: goodput among themselves, in peace and under attack by turns.

    attack_cost.py PROVIDER-FOLDER DPDK-PLUG-IN UET-FABRIC FABRIC_TRAFFIC ENEMY [ROUNDS]

Each endpoint sends to the next over links so slow that the machine's cores limit nothing. The enemy hangs on a leg of its own,
speaks with each of them from three addresses and uses what their answers teach: openings, closes, NACKs, stale and future PSNs,
messages that never end. Needs root, some 2 GiB of memory and a machine that has nothing else to do; not part of ./check. The
simulator measures the same without noise (AttackCost in tests/sim). Prints TAP, and a table.
"""

import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "e2e"))

from fabric_run import Fabric, goodput_mbps, start_ranks, wait_ranks  # noqa: E402
from harness import Job, Namespaces, Tap, need_provider, skip_all, temporary_folder  # noqa: E402

RANKS, HOST_MBPS, SECONDS, SETTLE = 24, 6, 16, 4
ATTACK_PACKETS = 24 * 20  # a second: one for nine requests of the endpoints, and less than one percent of the bytes of a link
FIRST_OF_ENEMY = 101  # its addresses: the endpoints hold others of the same network for neighbors
LIMIT = 0.02
SCENARIO = f"""
[fabric]
leaves = 4
spines = 2
host_rate = "{HOST_MBPS}Mb/s"
rate = "100Mb/s"
delay = "25us"
max_frame = 4600
queue = "64KiB"
seed = 7
"""
ENEMY_LEG = """
[[leg]]
port = "dpdk:net_af_packet0,iface=uet0"
name = "enemy"
rate = "100Mb/s"
"""
SETTINGS = {"FI_UET_LINK_MBPS": HOST_MBPS, "FI_UET_BASE_RTT": "12ms", "FI_UET_MAX_PAYLOAD": 4096, "FI_LOG_LEVEL": "off"}


def round_of(provider, program, traffic, enemy, folder, namespaces, is_attack, seed):
    """Goodput in Mb/s, and a problem or nothing."""
    fabric = Fabric(program, folder, SCENARIO, RANKS, namespaces.names[0], ENEMY_LEG)
    try:
        jobs = start_ranks(fabric, provider, traffic, RANKS, "ring", SECONDS, 32768, 4, SETTINGS)
        if is_attack:
            end = time.monotonic() + 60
            while time.monotonic() < end and len(fabric.ctl("flows").get("flows", ())) < RANKS:
                time.sleep(0.1)
            attacker = Job([enemy, "rain", "10.79.0.1", f"10.79.0.{FIRST_OF_ENEMY}", str(RANKS), str(ATTACK_PACKETS), str(SECONDS), str(seed)],
                           dict(os.environ), folder, f"enemy{seed}", namespaces.names[1])
        results, problem = wait_ranks(jobs, SECONDS + 90)
        clock = fabric.ctl("clock")["clock"]
        if is_attack:
            status = attacker.wait(30)
            attacker.kill()
            print("#", attacker.output()[0].strip())
            if status != 0:
                problem += attacker.report(status)
    finally:
        fabric.stop()
    if problem:
        return 0, problem
    print(f"# {'attack' if is_attack else 'peace '} {goodput_mbps(results, SETTLE, SECONDS):.2f} Mb/s, fabric late "
          f"{100 * clock['late_share']:.1f} % of the time")
    sys.stdout.flush()
    return goodput_mbps(results, SETTLE, SECONDS), ""


def main():
    provider, plugin, program, traffic, enemy, *rounds = sys.argv[1:]
    need_provider(provider)
    if not os.path.exists(plugin):
        skip_all("built without DPDK")
    tap, goodput = Tap(), {False: [], True: []}
    namespaces = Namespaces({"uet0": None})
    try:
        attacker = namespaces.names[1]
        for n in range(3 * RANKS):
            namespaces.ip("-n", attacker, "address", "add", f"10.79.0.{FIRST_OF_ENEMY + n}/24", "dev", "uet0")
        for turn in range(int(rounds[0]) if rounds else 5):
            for is_attack in (False, True):
                with temporary_folder() as folder:
                    got, problem = round_of(provider, program, traffic, enemy, folder, namespaces, is_attack, 100 * turn + 1)
                tap.result(f"round {turn + 1}, {'under attack' if is_attack else 'in peace'}: no operation fails", problem)
                goodput[is_attack].append(got)
    finally:
        namespaces.remove()
    peace, attack = (statistics.median(goodput[x]) for x in (False, True))
    print(f"# median goodput of {RANKS} endpoints: {peace:.2f} Mb/s in peace ({min(goodput[False]):.2f} to {max(goodput[False]):.2f}), "
          f"{attack:.2f} Mb/s under attack ({min(goodput[True]):.2f} to {max(goodput[True]):.2f})")
    cost = 1 - attack / peace if peace else 1
    tap.result(f"the attack costs no more than {100 * LIMIT:.0f} %", "" if cost <= LIMIT else f"{100 * cost:.1f} %")
    tap.finish()


main()
