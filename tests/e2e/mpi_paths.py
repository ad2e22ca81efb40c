#!/usr/bin/env python3
"""Messages of MPI take all paths of a fabric, and one of them dies: nothing fails, and what is left is used. [decision 141]

    mpi_paths.py PROVIDER-FOLDER DPDK-PLUG-IN UET-FABRIC UET-STAT MPI_STREAM.CC

Nothing depends on how fast the machine is: each step waits until so many packets have passed.
"""

import glob
import json
import os
import re
import subprocess
import sys
import time

import path_log
from fabric_run import Fabric, leaf_spine
from harness import Tap, need_provider, skip_all, temporary_folder

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mpi"))

from open_mpi import compile_program, need_open_mpi, start_by_messages  # noqa: E402

RANKS, SPINES, DEAD = 2, 4, "spine2"
FABRIC = leaf_spine(RANKS, SPINES, 400, 100, 50)
ENOUGH = 100  # packets on each path
LOST = 10  # packets on the path that dies
PATIENCE = 120
SPRAYED_TAGGED = 50  # opcode of a tagged message with a number


def data_packets(fabric):
    return {path["name"]: path["data_packets"] for path in fabric.ctl("paths").get("paths", [])}


def wait_for_packets(fabric, job, names):
    """Until each of these paths has carried enough more. Returns what went wrong, or nothing."""
    end = time.monotonic() + PATIENCE
    before = data_packets(fabric)
    while time.monotonic() < end and job.process.poll() is None:
        now = data_packets(fabric)
        if now and all(now[name] - before.get(name, 0) >= ENOUGH for name in names):
            return ""
        time.sleep(0.05)
    return f"paths: {before}, later {data_packets(fabric)}\n" + job.report(job.process.poll())


def path_losses(uet_stat, runtime):
    """Packets that the ranks miss on their paths, as uet-stat tells."""
    done = subprocess.run([uet_stat, "--json"], capture_output=True, text=True, timeout=60, env=dict(os.environ, XDG_RUNTIME_DIR=runtime))
    return sum(path["losses"] for process in json.loads(done.stdout or "[]") for endpoint in process["endpoints"]
               for context in endpoint["contexts"] for path in context.get("paths", []))


def wait_for_losses(uet_stat, runtime, before, job):
    """Until uet-stat tells of more; within a second of the path's death on a machine with nothing else to do."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and job.process.poll() is None:
        if path_losses(uet_stat, runtime) >= before + LOST:
            return ""
        time.sleep(0.05)
    return f"{before}, later {path_losses(uet_stat, runtime)}\n" + job.report(job.process.poll())


def paths_that_were_used(pattern):
    """Entropy values of contexts that spread their packets, and the number of lines about ordered contexts."""
    logs = glob.glob(pattern)
    used = {path["entropy"] for log in logs for line in path_log.read(log) for path in line["paths"] if path["sent"] > 0}
    return used, sum(len(path_log.read(log, "ordered")) for log in logs)


def all_paths(tap, provider, program, uet_fabric, uet_stat, folder):
    fabric = Fabric(uet_fabric, folder, FABRIC, RANKS)
    try:
        stop = os.path.join(folder, "stop")
        runtime = os.path.join(folder, "run")
        os.mkdir(runtime, 0o700)
        job, trace = start_by_messages(provider, program, folder, RANKS, [stop], **{
            "FI_UET_PORT": fabric.port("%r"), "FI_UET_ADDR": "|".join(f"10.79.0.{n + 1}" for n in range(RANKS)),
            "FI_UET_LINK_MBPS": 400, "FI_UET_BASE_RTT": "2ms", "FI_UET_TRIMMING": 1, "FI_UET_PATHS": 64,
            "FI_UET_PATH_LOG": f"{folder}/%p.paths", "XDG_RUNTIME_DIR": runtime})
        try:
            spines = [f"spine{n}" for n in range(SPINES)]
            tap.result("all paths carry messages", wait_for_packets(fabric, job, spines))
            before = path_losses(uet_stat, runtime)
            fabric.ctl("kill", DEAD)
            tap.result("uet-stat tells of a dead path", wait_for_losses(uet_stat, runtime, before, job))
            tap.result("one dies, and the others go on",
                       wait_for_packets(fabric, job, [name for name in spines if name != DEAD]))
            open(stop, "w").close()
            status = job.wait(PATIENCE)
            ok = status == 0 and job.output()[0].count(": 0 wrong") == RANKS
            tap.result("every message arrives in order, and every sum is right", "" if ok else job.report(status))
        finally:
            job.kill()
    finally:
        fabric.stop()
    entropies, ordered = paths_that_were_used(f"{folder}/*.paths")
    tap.result("no message went by an ordered context",
               "" if ordered == 0 and len(entropies) >= SPINES else f"{ordered} ordered, {len(entropies)} paths")
    with open(trace) as file:
        sprayed = re.search(rf'"message-submitted","opcode":{SPRAYED_TAGGED},', file.read())
    tap.result("the trace says that they were numbered", "" if sprayed else "no such message")


def main():
    provider, plugin, uet_fabric, uet_stat, source = sys.argv[1:]
    need_provider(provider)
    need_open_mpi()
    if not os.path.exists(plugin):
        skip_all("built without DPDK")
    tap = Tap()
    with temporary_folder() as folder:
        all_paths(tap, provider, compile_program(source, folder), uet_fabric, uet_stat, folder)
    tap.finish()


main()
