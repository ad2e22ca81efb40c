#!/usr/bin/env python3
"""The programs of this folder by an MPICH whose device is ch4:ofi, over the provider. Debian's is ch4:ucx, so it is named:

    UET_MPICH=prefix of an installed MPICH
    UET_MPICH_LAUNCHER=a program that starts -n processes with PMI (default: mpiexec.hydra)

    mpich.py SOURCE-FOLDER PROVIDER-FOLDER
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from harness import Job, Tap, base_env, need_provider, own_addresses, skip_all, temporary_folder  # noqa: E402

PROGRAMS = ("collectives", "messages", "threads", "windows")
IN_BAD_WEATHER = "loss=0.01,reorder=0.05,duplicate=0.01"


def run(provider, prefix, program, folder, ranks, **settings):
    """What went wrong, or nothing."""
    trace = os.path.join(folder, "events")
    env = base_env(provider, FI_UET_ADDR=own_addresses(ranks), FI_UET_TRACE=trace, **settings)
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.path.join(prefix, "lib"), env.get("LD_LIBRARY_PATH")]))
    launcher = os.environ.get("UET_MPICH_LAUNCHER", "mpiexec.hydra")
    job = Job([launcher, "-launcher", "fork", "-iface", "lo", "-n", str(ranks), program], env, folder, f"mpich{ranks}")
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
    prefix = os.environ.get("UET_MPICH")
    if not prefix:
        skip_all("no MPICH over libfabric: UET_MPICH names one")
    tap = Tap()
    with temporary_folder() as folder:
        for name in PROGRAMS:
            program = os.path.join(folder, name)
            compiled = subprocess.run([os.path.join(prefix, "bin", "mpicc"), "-O1", "-std=c++17", os.path.join(source, name + ".cc"),
                                       "-o", program], env={**os.environ, "MPICH_CC": "c++"}, capture_output=True, text=True)
            if compiled.returncode:
                tap.result(f"{name} compiles", compiled.stderr)
                continue
            for ranks in (2, 4):
                tap.result(f"{name}, {ranks} ranks", run(provider, prefix, program, folder, ranks))
            tap.result(f"{name}, 3 ranks in bad weather", run(provider, prefix, program, folder, 3, FI_UET_IMPAIR=IN_BAD_WEATHER))
    tap.finish()


main()
