#!/usr/bin/env python3
"""shmem_all.c by an OpenSHMEM that uses libfabric, over the provider. Debian has none (Open MPI's goes by UCX), so it is named:

    UET_SHMEM=prefix of an installed Sandia OpenSHMEM
    UET_SHMEM_LAUNCHER=a program that starts -n processes with PMI (default: mpiexec.hydra)

    run.py SOURCE-FOLDER PROVIDER-FOLDER
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from harness import Job, Tap, base_env, need_provider, own_addresses, skip_all, temporary_folder  # noqa: E402


def run(provider, prefix, program, folder, ranks, **settings):
    """What went wrong, or nothing."""
    trace = os.path.join(folder, "events")
    env = base_env(provider, FI_UET_ADDR=own_addresses(ranks), FI_UET_TRACE=trace, SHMEM_OFI_PROVIDER="uet", **settings)
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.path.join(prefix, "lib"), env.get("LD_LIBRARY_PATH")]))
    launcher = os.environ.get("UET_SHMEM_LAUNCHER", "mpiexec.hydra")
    job = Job([launcher, "-launcher", "fork", "-iface", "lo", "-n", str(ranks), program], env, folder, f"shmem{ranks}")
    try:
        status = job.wait(240)
        if status != 0 or job.output()[0].count(": 0 wrong") != ranks:
            return job.report(status)
        return "" if '"request-delivered"' in open(trace).read() else "the provider had no part in it"
    finally:
        job.kill()


def main():
    source, provider = sys.argv[1:]
    need_provider(provider)
    prefix = os.environ.get("UET_SHMEM")
    if not prefix:
        skip_all("no OpenSHMEM over libfabric: UET_SHMEM names one")
    tap = Tap()
    with temporary_folder() as folder:
        program = os.path.join(folder, "shmem_all")
        compiled = subprocess.run([os.path.join(prefix, "bin", "oshcc"), "-O1", os.path.join(source, "shmem_all.c"), "-o", program],
                                  capture_output=True, text=True)
        tap.result("compiles", compiled.stderr if compiled.returncode else "")
        for ranks in (2, 3, 8):
            tap.result(f"{ranks} processes", run(provider, prefix, program, folder, ranks))
        tap.result("3 processes in bad weather",
                   run(provider, prefix, program, folder, 3, FI_UET_IMPAIR="loss=0.01,reorder=0.05,duplicate=0.01"))
    tap.finish()


main()
