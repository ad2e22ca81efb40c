#!/usr/bin/env python3
"""Open MPI over the provider, unmodified: its `cm` layer takes any libfabric provider for its messages.

    mpi.py PROVIDER-FOLDER MPI_EXCHANGE.CC UET-KEYS
"""

import os
import shutil
import subprocess
import sys

from harness import Job, Tap, base_env, need_provider, own_addresses, skip_all, temporary_folder


def compile_program(source, folder):
    program = os.path.join(folder, "mpi_exchange")
    run = subprocess.run(["mpicxx.openmpi", "-O1", "-std=c++17", source, "-o", program], capture_output=True, text=True)
    if run.returncode != 0:
        skip_all(f"mpicxx.openmpi cannot compile: {run.stderr.strip()[-300:]}")
    return program


# Covers: FI-52
def exchange(provider, program, folder, ranks, arguments=(), **settings):
    """What went wrong, or nothing."""
    trace = os.path.join(folder, "events")
    env = base_env(provider, FI_UET_ADDR=own_addresses(ranks), FI_UET_TRACE=trace, **settings)
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", TMPDIR=folder)
    job = Job(["mpirun.openmpi", "--oversubscribe", "-np", str(ranks), "--mca", "pml", "cm", "--mca", "mtl", "ofi",
               "--mca", "mtl_ofi_provider_include", "uet", "--mca", "btl", "self,vader", "--mca", "osc", "pt2pt",
               "--mca", "plm", "isolated", program, *arguments], env, folder, f"mpi{ranks}")
    try:
        status = job.wait(180)
        out = job.output()[0]
        if status != 0 or out.count(": 0 wrong") != ranks:
            return job.report(status)
        if '"request-delivered"' not in open(trace).read():
            return "the ranks did not talk through the provider"
        return ""
    finally:
        job.kill()


def main():
    provider, source, uet_keys = sys.argv[1:]
    need_provider(provider)
    for tool in ("mpirun.openmpi", "mpicxx.openmpi"):
        if not shutil.which(tool):
            skip_all(f"{tool} is not installed (packages openmpi-bin and libopenmpi-dev)")
    tap = Tap()
    with temporary_folder() as folder:
        program = compile_program(source, folder)
        tap.result("two ranks", exchange(provider, program, folder, 2))
        tap.result("four ranks", exchange(provider, program, folder, 4))
        tap.result("four threads of two ranks", exchange(provider, program, folder, 2, arguments=["threads"]))
        tap.result("two ranks in bad weather",
                   exchange(provider, program, folder, 2, FI_UET_IMPAIR="loss=0.01,reorder=0.05,duplicate=0.01"))
        keys = os.path.join(folder, "keys.json")
        subprocess.run([uet_keys, "new", "--out", keys, "--state-dir", os.path.join(folder, "state")], check=True,
                       stdout=subprocess.DEVNULL)
        tap.result("four ranks, encrypted", exchange(provider, program, folder, 4, FI_UET_KEYS=keys))
    tap.finish()


main()
