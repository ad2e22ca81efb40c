#!/usr/bin/env python3
"""The measurements of uet-fabric: capacity that goes away, trimming, incast. Prints TAP, and the tables as JSON in comments.

    fabric_acceptance.py PROVIDER-FOLDER DPDK-PLUG-IN UET-FABRIC FABRIC_TRAFFIC [capacity] [trimming] [incast]

Rates are low, so that the endpoints' share of two cores is not what is measured; run it on a machine that has nothing else to do.
"""

import json
import os
import sys
import time

import path_log
from fabric_run import Fabric, goodput_mbps, start_ranks, wait_ranks
from harness import Tap, need_provider, skip_all, temporary_folder

PATH_MBPS, SPINES, RANKS = 50, 4, 4
PAYLOAD = 4096
SCENARIO = """
[fabric]
leaves = {leaves}
spines = {spines}
host_rate = "{host_rate}"
rate = "{rate}Mb/s"
delay = "25us"
max_frame = 4600
queue = "64KiB"
ecn_low = "12KiB"
ecn_high = "48KiB"
trimming = {trimming}
seed = 7
"""
SETTINGS = {
    "FI_UET_LINK_MBPS": PATH_MBPS * SPINES,
    "FI_UET_BASE_RTT": "2ms",
    "FI_UET_LB": "mixed",
    "FI_UET_PATHS": 64,
    "FI_UET_MAX_PAYLOAD": PAYLOAD,
    "FI_LOG_LEVEL": "off",
}
PATH_COLUMNS = ["name", "state", "rate_mbps", "data_packets", "control_packets", "marks", "trims", "drops", "lost_while_down",
                "queue_peak_bytes"]


def scenario(leaves=RANKS, spines=SPINES, host_rate="200Mb/s", rate=PATH_MBPS, trimming=True):
    return SCENARIO.format(leaves=leaves, spines=spines, host_rate=host_rate, rate=rate, trimming=str(trimming).lower())


def show(title, rows):
    print(f"# {title}")
    for row in rows:
        print("#  ", json.dumps(row))
    sys.stdout.flush()


def difference(after, before):
    """Rows of counters, less what was counted before."""
    return [{k: v - old[k] if k in ("data_packets", "control_packets", "marks", "trims", "drops", "lost_while_down") else v
             for k, v in row.items() if k in PATH_COLUMNS} for row, old in zip(after, before)]


def endpoint_events(folder, ranks):
    """Counters at the end of each rank's event log, added up."""
    sums = {}
    for rank in range(ranks):
        with open(f"{folder}/{rank}.trace") as file:
            for line in file:
                name = line.split('"event":"', 1)[1].split('"', 1)[0] if '"event":"' in line else ""
                if name in ("rto", "retransmitted", "inferred-loss", "path-evicted", "path-restored", "nack-received",
                            "request-sent"):
                    sums[name] = sums.get(name, 0) + 1
    return sums


def honest(tap, fabric):
    clock = fabric.ctl("clock")["clock"]
    show("clock", [clock])
    name = "the fabric kept up with real time"
    if clock["fell_behind"] and clock["busy_share"] < 0.5:  # it was asleep for most of the time, and not woken when it should
        tap.skip(name, f"{100 * clock['late_share']:.1f} % of the time it was late: the machine had something else to do")
    else:
        tap.result(name, "fell behind: " + json.dumps(clock) if clock["fell_behind"] else "")


def capacity(tap, provider, program, traffic):
    """All paths; then one at 10 %; then one more dead. NSCC reaches 0.8 as well, but with nothing to spare."""
    capacity_with(tap, provider, program, traffic, "rccc", wanted=0.8)
    capacity_with(tap, provider, program, traffic, "nscc", wanted=0.7)


def capacity_with(tap, provider, program, traffic, algorithm, wanted):
    phases = [("four paths", None, 4.0), ("one at 10 %", "rate spine1 10%", 3.1), ("and one dead", "kill spine2", 2.1)]
    length, settle = 8, 2
    with temporary_folder() as folder:
        fabric = Fabric(program, folder, scenario(), RANKS)
        try:
            settings = {**SETTINGS, "FI_UET_TRIMMING": 1, "FI_UET_CC": algorithm,
                        "FI_UET_PATH_LOG": f"{folder}/%p.paths"}
            jobs = start_ranks(fabric, provider, traffic, RANKS, "exchange", length * len(phases) + 1, 262144, 4, settings)
            end = time.monotonic() + 30
            while time.monotonic() < end and sum(f["bytes"] for f in fabric.ctl("flows")["flows"]) < 1_000_000:
                time.sleep(0.05)
            begin, tables, times = time.monotonic(), [], []
            for _, command, _ in phases:
                if command:
                    fabric.ctl(*command.split())
                before = fabric.ctl("paths")["paths"]
                times.append(time.monotonic() - begin)
                time.sleep(max(0, length * (len(tables) + 1) - (time.monotonic() - begin)))
                tables.append(difference(fabric.ctl("paths")["paths"], before))
            results, problem = wait_ranks(jobs, 90)
            tap.result(f"no operation fails, {algorithm}", problem)
            honest(tap, fabric)
            known = path_log.read(f"{folder}/0.paths")
        finally:
            fabric.stop()
    if problem:
        return
    full = goodput_mbps(results, settle, times[1])
    payload_share = PAYLOAD / (PAYLOAD + 130)
    rows = []
    for number, (name, _, paths) in enumerate(phases):
        goodput = goodput_mbps(results, times[number] + settle, min(times[number] + length, results[0]["seconds"]) - 0.5)
        whole = RANKS * paths * PATH_MBPS * payload_share
        expected = full * paths / SPINES
        rows.append({"phase": name, "capacity_mbps": round(whole), "goodput_mbps": round(goodput),
                     "of_capacity": round(goodput / whole, 2), "against_proportional": round(goodput / expected, 2)})
        show(f"paths while {name}", tables[number])
        show(f"what rank 0 knows of them: {name}",
             path_log.table(known, begin + times[number], begin + times[number] + length))
        tap.result(f"goodput follows the capacity, {algorithm}: {name}",
                   "" if goodput >= wanted * whole else f"{goodput:.0f} of {whole:.0f} Mb/s")
    show(f"goodput, {algorithm}", rows)


def trimming(tap, provider, program, traffic):
    """Eight senders and one receiver with NSCC and a short queue, without and with trimming."""
    ranks, seconds, host_mbps = 9, 10, 100
    rows = {}
    for on in (False, True):
        with temporary_folder() as folder:
            text = scenario(leaves=1, spines=0, host_rate=f"{host_mbps}Mb/s", trimming=on).replace("64KiB", "48KiB")
            fabric = Fabric(program, folder, text, ranks)
            try:
                settings = {**SETTINGS, "FI_UET_TRIMMING": int(on), "FI_UET_TRACE": f"{folder}/%p.trace",
                            "FI_UET_LINK_MBPS": host_mbps}
                jobs = start_ranks(fabric, provider, traffic, ranks, "incast", seconds, 65536, 4, settings)
                results, problem = wait_ranks(jobs, 90)
                tap.result(f"no operation fails, trimming {'on' if on else 'off'}", problem)
                if problem:
                    return
                link = next(l for l in fabric.ctl("links")["links"] if l["name"] == "leaf0>host0")
                events = endpoint_events(folder, ranks)
                rows[on] = {"trimming": on, "goodput_mbps": round(goodput_mbps(results, 2, seconds)),
                            **{k: link[k] for k in ("data_packets", "marks", "trims", "drops")},
                            "requests": events.pop("request-sent"), **dict(sorted(events.items()))}
            finally:
                fabric.stop()
    show("trimming off and on", rows.values())
    off, on = (rows[x].get("rto", 0) / rows[x]["requests"] for x in (False, True))
    tap.result("fewer timeouts with trimming", "" if on < off else f"{on} a request, without trimming {off}")


def incast(tap, provider, program, traffic):
    """Eight to one with receiver credit."""
    ranks, seconds, host_mbps = 9, 12, 100
    text = scenario(leaves=1, spines=0, host_rate=f"{host_mbps}Mb/s")
    with temporary_folder() as folder:
        fabric = Fabric(program, folder, text, ranks)
        try:
            settings = {**SETTINGS, "FI_UET_TRIMMING": 1, "FI_UET_CC": "rccc", "FI_UET_LB": "oblivious",
                        "FI_UET_LINK_MBPS": host_mbps}
            jobs = start_ranks(fabric, provider, traffic, ranks, "incast", seconds, 65536, 4, settings)
            results, problem = wait_ranks(jobs, 120)
            tap.result("no operation fails", problem)
            link = next(l for l in fabric.ctl("links")["links"] if l["name"] == "leaf0>host0")
            honest(tap, fabric)
        finally:
            fabric.stop()
    if problem:
        return
    shares = results[0]["received"][1:]
    jain = sum(shares)**2 / (len(shares) * sum(s * s for s in shares))
    show("incast 8 to 1, RCCC", [{
        "jain": round(jain, 4), "goodput_mbps": round(goodput_mbps(results, 2, seconds)), "link_mbps": host_mbps,
        "shares_mib": [round(s / 2**20, 1) for s in shares],
        **{k: link[k] for k in ("queue_peak_bytes", "queue_limit_bytes", "marks", "trims", "drops", "data_packets")}
    }])
    tap.result("fair shares: Jain at least 0.98", "" if jain >= 0.98 else f"{jain:.4f}: {shares}")
    bounded = link["queue_peak_bytes"] <= link["queue_limit_bytes"] and link["drops"] == 0
    tap.result("the queue stays bounded and drops nothing", "" if bounded else json.dumps(link))


def main():
    provider, plugin, program, traffic, *chosen = sys.argv[1:]
    need_provider(provider)
    if not os.path.exists(plugin):
        skip_all("built without DPDK")
    tap = Tap()
    for part in (capacity, trimming, incast):
        if not chosen or part.__name__ in chosen:
            part(tap, provider, program, traffic)
    tap.finish()


main()
