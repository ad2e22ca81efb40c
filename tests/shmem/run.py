#!/usr/bin/env python3
"""shmem_all.c by an OpenSHMEM that uses libfabric, over the provider. Debian has none (Open MPI's goes by UCX), so it is named:

    UET_SHMEM=prefix of an installed Sandia OpenSHMEM
    UET_SHMEM_LAUNCHER=a program that starts -n processes with PMI (default: its own mpiexec.hydra, or the one in the path)

    run.py SOURCE-FOLDER PROVIDER-FOLDER
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from harness import Tap, need_provider, skip_all, temporary_folder  # noqa: E402
from pmi_job import IN_BAD_WEATHER, run  # noqa: E402

LAUNCHER = "UET_SHMEM_LAUNCHER"


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
            tap.result(f"{ranks} processes", run(provider, prefix, LAUNCHER, program, folder, ranks, SHMEM_OFI_PROVIDER="uet"))
        tap.result("3 processes in bad weather",
                   run(provider, prefix, LAUNCHER, program, folder, 3, SHMEM_OFI_PROVIDER="uet", FI_UET_IMPAIR=IN_BAD_WEATHER))
    tap.finish()


main()
