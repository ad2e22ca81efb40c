#!/usr/bin/env python3
"""The programs of this folder by an MPICH whose device is ch4:ofi, over the provider. Debian's is ch4:ucx, so it is named:

    UET_MPICH=prefix of an installed MPICH
    UET_MPICH_LAUNCHER=a program that starts -n processes with PMI (default: its own mpiexec.hydra, or the one in the path)

Its ranks take no shared memory, although they are on one host.

    mpich.py SOURCE-FOLDER PROVIDER-FOLDER
"""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from harness import Tap, need_provider, skip_all, temporary_folder  # noqa: E402
from pmi_job import IN_BAD_WEATHER, run  # noqa: E402

LAUNCHER = "UET_MPICH_LAUNCHER"
NO_SHARED_MEMORY = {"MPIR_CVAR_NOLOCAL": 1}
# Left alone, it chooses the keys of windows itself.
OUR_KEYS = {f"MPIR_CVAR_CH4_OFI_ENABLE_MR_{mode}": 1 for mode in ("PROV_KEY", "VIRT_ADDRESS", "ALLOCATED")}
PROGRAMS = ("collectives", "computing", "messages", "threads", "windows")


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
                tap.result(f"{name}, {ranks} ranks", run(provider, prefix, LAUNCHER, program, folder, ranks, **NO_SHARED_MEMORY))
            tap.result(f"{name}, 3 ranks in bad weather", run(provider, prefix, LAUNCHER, program, folder, 3, **NO_SHARED_MEMORY,
                                                                      FI_UET_IMPAIR=IN_BAD_WEATHER))
            if name == "windows":
                tap.result("windows with keys of the provider, 4 ranks", run(provider, prefix, LAUNCHER, program, folder, 4, **NO_SHARED_MEMORY, **OUR_KEYS))
    tap.finish()


main()
