#!/usr/bin/env python3
"""Open MPI over the provider, unmodified: its `cm` layer takes any libfabric provider for its messages, its `btl ofi` one
with atomics for one-sided communication.

    mpi.py PROVIDER-FOLDER MPI_EXCHANGE.CC MPI_ONE_SIDED.CC UET-KEYS
"""

import os
import re
import shutil
import subprocess
import sys

from harness import Job, Tap, base_env, need_provider, own_addresses, skip_all, temporary_folder


# A remote shell that stays on this host, under the name it was asked for: Open MPI reaches the memory of ranks that it
# takes for neighbours without the provider.
AGENT = """#!/bin/sh
name=$1
shift
exec {unshare} sh -c "hostname $name; $*"
"""


def compile_program(source, folder):
    program = os.path.join(folder, os.path.splitext(os.path.basename(source))[0])
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


def find_unshare():
    """What runs a program where it may have a host name of its own, or nothing."""
    for command in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        try:
            if subprocess.run([*command, "hostname", "node"], capture_output=True).returncode == 0:
                return " ".join(command)
        except FileNotFoundError:
            return ""
    return ""


# Covers: FI-53
def one_sided(provider, program, folder, unshare, ranks, **settings):
    """What went wrong, or nothing. Each rank is on a host of its own, as far as Open MPI can tell."""
    trace = os.path.join(folder, "events")
    agent = os.path.join(folder, "agent")
    with open(agent, "w") as file:
        file.write(AGENT.format(unshare=unshare))
    os.chmod(agent, 0o755)
    env = base_env(provider, FI_UET_ADDR=own_addresses(ranks), FI_UET_TRACE=trace, **settings)
    env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", TMPDIR=folder)
    passed_on = [word for name in env if name.startswith("FI_") or name == "TMPDIR" for word in ("-x", name)]
    hosts = ",".join(f"node{n}:1" for n in range(ranks))
    job = Job(["mpirun.openmpi", "--host", hosts, "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent,
               "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "oob_tcp_if_include", "lo", "--mca", "btl_tcp_if_include", "lo",
               "--mca", "pml", "ob1", "--mca", "btl", "self,tcp,ofi", "--mca", "btl_ofi_provider_include", "uet",
               "--mca", "osc", "rdma", *passed_on, program], env, folder, f"one_sided{ranks}")
    try:
        status = job.wait(180)
        out = job.output()[0]
        if status != 0 or out.count(": 0 wrong") != ranks:
            return job.report(status)
        fetching_atomic = 4
        if not re.search(rf'"message-submitted","opcode":{fetching_atomic},', open(trace).read()):
            return "no atomic went through the provider"
        return ""
    finally:
        job.kill()


def main():
    provider, source, one_sided_source, uet_keys = sys.argv[1:]
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
        unshare = find_unshare()
        if unshare:
            program = compile_program(one_sided_source, folder)
            tap.result("one-sided", one_sided(provider, program, folder, unshare, 2))
            tap.result("one-sided in bad weather", one_sided(provider, program, folder, unshare, 3,
                                                             FI_UET_IMPAIR="loss=0.01,reorder=0.05,duplicate=0.01"))
        else:
            tap.skip("one-sided", "no host names of our own: unshare --uts is not allowed")
    tap.finish()


main()
