"""Running MPI programs by Open MPI over the provider: by its `cm` layer, which takes any libfabric provider for its messages, and
by its `btl ofi`, which takes one with atomics for one-sided communication.

The programs print "rank R of N: W wrong" as each of tests/mpi does.
"""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from harness import Job, base_env, own_addresses, skip_all  # noqa: E402

# A remote shell that stays on this host, under the name it was asked for: Open MPI reaches the memory of ranks that it
# takes for neighbours without the provider.
AGENT = """#!/bin/sh
name=$1
shift
exec {unshare} sh -c "hostname $name; $*"
"""

# The same for hosts that are network namespaces.
NAMESPACE_AGENT = """#!/bin/sh
name=$1
shift
exec ip netns exec $name unshare --uts sh -c "hostname $name; $*"
"""
BY_MESSAGES = ["--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "uet", "--mca", "btl", "self,vader",
               "--mca", "osc", "pt2pt"]

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def need_open_mpi():
    for tool in ("mpirun.openmpi", "mpicxx.openmpi"):
        if not shutil.which(tool):
            skip_all(f"{tool} is not installed (packages openmpi-bin and libopenmpi-dev)")


def compile_program(source, folder):
    program = os.path.join(folder, os.path.splitext(os.path.basename(source))[0])
    run = subprocess.run(["mpicxx.openmpi", "-O1", "-std=c++17", source, "-o", program], capture_output=True, text=True)
    if run.returncode != 0:
        skip_all(f"mpicxx.openmpi cannot compile: {run.stderr.strip()[-300:]}")
    return program


def find_unshare():
    """What runs a program where it may have a host name of its own, or nothing."""
    for command in (["unshare", "--uts"], ["unshare", "--user", "--map-root-user", "--uts"]):
        try:
            if subprocess.run([*command, "hostname", "node"], capture_output=True).returncode == 0:
                return " ".join(command)
        except FileNotFoundError:
            return ""
    return ""


def judge(job, ranks, seconds, trace, went_through):
    """What went wrong, or nothing. `went_through`: a pattern of the trace that shows the provider at work."""
    try:
        status = job.wait(seconds)
        if status != 0 or job.output()[0].count(": 0 wrong") != ranks:
            return job.report(status)
        return "" if re.search(went_through, open(trace).read()) else "the provider had no part in it"
    finally:
        job.kill()


def environment(provider, folder, ranks, settings):
    """Of the ranks, and the file of their events."""
    trace = os.path.join(folder, "events")
    if os.path.exists(trace):
        os.remove(trace)
    env = base_env(provider, **{"FI_UET_ADDR": own_addresses(ranks), "FI_UET_TRACE": trace, **settings})
    env.update(AS_ROOT, TMPDIR=folder)
    return env, trace


def start_by_messages(provider, program, folder, ranks, arguments=(), **settings):
    """The running job, and the file of its events. One-sided communication is made of messages too."""
    env, trace = environment(provider, folder, ranks, settings)
    job = Job(["mpirun.openmpi", "--oversubscribe", "-np", str(ranks), *BY_MESSAGES, "--mca", "plm", "isolated", program, *arguments],
              env, folder, f"mpi{ranks}")
    return job, trace


def by_messages(provider, program, folder, ranks, arguments=(), seconds=180, **settings):
    job, trace = start_by_messages(provider, program, folder, ranks, arguments, **settings)
    return judge(job, ranks, seconds, trace, '"request-delivered"')


def write_agent(folder, text):
    agent = os.path.join(folder, "agent")
    with open(agent, "w") as file:
        file.write(text)
    os.chmod(agent, 0o755)
    return agent


def passed_on(env):
    return [word for name in env if name.startswith("FI_") or name == "TMPDIR" for word in ("-x", name)]


def by_hosts(provider, program, folder, namespaces, link, ranks_each, seconds=180):
    """Several ranks on each of some hosts, network namespaces with an interface `link`, and no address given to any."""
    agent = write_agent(folder, NAMESPACE_AGENT)
    env, trace = environment(provider, folder, 1, {})
    del env["FI_UET_ADDR"]
    hosts = ",".join(f"{name}:{ranks_each}" for name in namespaces)
    job = Job(["unshare", "--uts", "sh", "-c", 'hostname "$0"; exec "$@"', namespaces[0],
               "mpirun.openmpi", "--host", hosts, "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent,
               "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "oob_tcp_if_include", link, "--mca", "btl_tcp_if_include", link,
               *BY_MESSAGES, *passed_on(env), program], env, folder, "hosts", namespace=namespaces[0])
    return judge(job, ranks_each * len(namespaces), seconds, trace, '"request-delivered"')


def by_one_sided(provider, program, folder, unshare, ranks, arguments=(), seconds=180, **settings):
    """Each rank is on a host of its own, as far as Open MPI can tell."""
    agent = write_agent(folder, AGENT.format(unshare=unshare))
    env, trace = environment(provider, folder, ranks, settings)
    hosts = ",".join(f"node{n}:1" for n in range(ranks))
    job = Job(["mpirun.openmpi", "--host", hosts, "--mca", "plm", "rsh", "--mca", "plm_rsh_agent", agent,
               "--mca", "plm_rsh_no_tree_spawn", "1", "--mca", "oob_tcp_if_include", "lo", "--mca", "btl_tcp_if_include", "lo",
               "--mca", "pml", "ob1", "--mca", "btl", "self,tcp,ofi", "--mca", "btl_ofi_provider_include", "uet",
               "--mca", "osc", "rdma", *passed_on(env), program, *arguments], env, folder, f"one_sided{ranks}")
    fetching_atomic = 4
    return judge(job, ranks, seconds, trace, rf'"message-submitted","opcode":{fetching_atomic},')
