"""Programs that a launcher starts by PMI, each process with an address of its own on the loopback interface."""

import os

from harness import Job, base_env, own_addresses

IN_BAD_WEATHER = "loss=0.01,reorder=0.05,duplicate=0.01"


def run(provider, prefix, launcher, program, folder, ranks, **settings):
    """What went wrong, or nothing: each rank says that it had 0 wrong, and the provider carried something. `launcher`: the variable
    that may name one."""
    trace = os.path.join(folder, "events")
    env = base_env(provider, FI_UET_ADDR=own_addresses(ranks), FI_UET_TRACE=trace, **settings)
    env["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.path.join(prefix, "lib"), env.get("LD_LIBRARY_PATH")]))
    installed = os.path.join(prefix, "bin", "mpiexec.hydra")
    default = installed if os.path.exists(installed) else "mpiexec.hydra"
    command = [os.environ.get(launcher, default), "-launcher", "fork", "-iface", "lo", "-n", str(ranks), program]
    job = Job(command, env, folder, f"{os.path.basename(program)}-{ranks}")
    try:
        status = job.wait(240)
        if status != 0 or job.output()[0].count(": 0 wrong") != ranks:
            return job.report(status)
        return "" if '"request-delivered"' in open(trace).read() else "the provider had no part in it"
    finally:
        job.kill()
