#!/usr/bin/env python3
"""collectives.py by NCCL and its libfabric plug-in (aws-ofi-nccl), over the provider. They are named:

    UET_NCCL=folder that holds libnccl-net-ofi.so
    UET_NCCL_PYTHON=a python3 that has PyTorch with NCCL (default: python3)

Ranks have a host name each: NCCL wants a GPU for every rank of a host, and uses the network between hosts only.

    run.py COLLECTIVES PROVIDER-FOLDER UET-KEYS
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from harness import Job, Tap, base_env, need_provider, own_addresses, skip_all, temporary_folder  # noqa: E402
from pmi_job import IN_BAD_WEATHER  # noqa: E402


def run(program, provider, plugin, folder, name, ranks, **settings):
    """What went wrong, or nothing: every rank has 0 wrong, and channels of NCCL went by libfabric."""
    env = base_env(provider, FI_UET_ADDR=own_addresses(ranks), NCCL_NET_PLUGIN="ofi", NCCL_SOCKET_IFNAME="lo", NCCL_DEBUG="INFO", **settings)
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, [plugin, env.get("LD_LIBRARY_PATH")]))
    python = os.environ.get("UET_NCCL_PYTHON", "python3")
    jobs = []
    try:
        for rank in range(ranks):
            own = {**env, "NCCL_HOSTID": f"host{rank}", "NCCL_DEBUG_FILE": os.path.join(folder, f"{name}-{rank}.nccl")}
            jobs.append(Job([python, program, str(rank), str(ranks), os.path.join(folder, name + ".meeting")], own, folder, f"{name}-{rank}"))
        for rank, job in enumerate(jobs):
            status = job.wait(200)
            if status != 0 or ": 0 wrong" not in job.output()[0]:
                return job.report(status)
            if "via NET/Libfabric" not in open(os.path.join(folder, f"{name}-{rank}.nccl")).read():
                return f"rank {rank}: no channel went by libfabric"
        return ""
    finally:
        for job in jobs:
            job.kill()


def main():
    program, provider, uet_keys = sys.argv[1:]
    need_provider(provider)
    plugin = os.environ.get("UET_NCCL")
    if not plugin:
        skip_all("no NCCL over libfabric: UET_NCCL names the folder of its plug-in")
    tap = Tap()
    with temporary_folder() as folder:
        keys = os.path.join(folder, "keys.json")
        subprocess.run([uet_keys, "new", "--out", keys, "--state-dir", os.path.join(folder, "counters")], check=True,
                       stdout=subprocess.DEVNULL)
        for ranks in (2, 4):
            tap.result(f"{ranks} ranks", run(program, provider, plugin, folder, f"plain{ranks}", ranks))
        tap.result("4 ranks in bad weather", run(program, provider, plugin, folder, "weather", 4, FI_UET_IMPAIR=IN_BAD_WEATHER))
        tap.result("4 ranks, encrypted", run(program, provider, plugin, folder, "keys", 4, FI_UET_KEYS=keys))
    tap.finish()


main()
