#!/usr/bin/env python3
"""Open MPI over the provider, unmodified: in good and bad weather, encrypted, by messages and by one-sided communication.
tests/mpi goes through the rest of MPI.

    mpi.py PROVIDER-FOLDER MPI_EXCHANGE.CC MPI_ONE_SIDED.CC UET-KEYS
"""

import os
import subprocess
import sys

from harness import Namespaces, Tap, need_provider, temporary_folder

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mpi"))

from open_mpi import by_hosts, by_messages, by_one_sided, compile_program, find_unshare, need_open_mpi  # noqa: E402

BAD_WEATHER = "loss=0.01,reorder=0.05,duplicate=0.01"


# Covers: FI-52
def exchange(tap, provider, program, folder, uet_keys):
    tap.result("two ranks", by_messages(provider, program, folder, 2))
    tap.result("four ranks", by_messages(provider, program, folder, 4))
    tap.result("four threads of two ranks", by_messages(provider, program, folder, 2, arguments=["threads"]))
    tap.result("two ranks in bad weather", by_messages(provider, program, folder, 2, FI_UET_IMPAIR=BAD_WEATHER))
    keys = os.path.join(folder, "keys.json")
    subprocess.run([uet_keys, "new", "--out", keys, "--state-dir", os.path.join(folder, "state")], check=True,
                   stdout=subprocess.DEVNULL)
    tap.result("four ranks, encrypted", by_messages(provider, program, folder, 4, FI_UET_KEYS=keys))


# Covers: FI-53
def one_sided(tap, provider, source, folder):
    unshare = find_unshare()
    if not unshare:
        tap.skip("one-sided", "no host names of our own: unshare --uts is not allowed")
        return
    program = compile_program(source, folder)
    tap.result("one-sided", by_one_sided(provider, program, folder, unshare, 2))
    tap.result("one-sided in bad weather",
               by_one_sided(provider, program, folder, unshare, 3, FI_UET_IMPAIR=BAD_WEATHER))


# Ranks that share the address of their host are told apart by UDP ports. [decision 168]
def hosts(tap, provider, program, folder):
    try:
        network = Namespaces({"uet0": ("10.77.0.1", "10.77.0.2")})
    except (OSError, RuntimeError) as why:
        tap.skip("three ranks on each of two hosts", why)
        return
    try:
        tap.result("three ranks on each of two hosts", by_hosts(provider, program, folder, network.names, "uet0", 3))
    finally:
        network.remove()


def main():
    provider, source, one_sided_source, uet_keys = sys.argv[1:]
    need_provider(provider)
    need_open_mpi()
    tap = Tap()
    with temporary_folder() as folder:
        program = compile_program(source, folder)
        exchange(tap, provider, program, folder, uet_keys)
        hosts(tap, provider, program, folder)
        one_sided(tap, provider, one_sided_source, folder)
    tap.finish()


main()
