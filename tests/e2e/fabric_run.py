"""A running uet-fabric and ranks of fabric_traffic on its legs."""

import json
import math
import os
import socket
import time

from harness import Job, base_env

HEAD = """
[run]
control = "{folder}/control"
stats = "{folder}/stats.json"
realtime = {realtime}

[[leg]]
memif = "{folder}/host%n.sock"
count = {legs}
"""



def leaf_spine(leaves, spines, host_mbps, path_mbps, delay_us):
    """The [fabric] of a scenario: a host on each leaf, a path over each spine."""
    return f"""
[fabric]
leaves = {leaves}
spines = {spines}
host_rate = "{host_mbps}Mb/s"
rate = "{path_mbps}Mb/s"
delay = "{delay_us}us"
trimming = true
"""


FOUR_PATHS = leaf_spine(2, 4, 1000, 250, 50)


class Fabric:
    """uet-fabric with a scenario: `text` is its [fabric] and what else it needs; memif legs and sockets are added. It runs in
    `namespace`, its memif clients where they like."""

    def __init__(self, program, folder, text, legs, namespace=None, more_legs=""):
        self.program, self.folder = program, folder
        self.control = os.path.join(folder, "control")
        scenario = os.path.join(folder, "scenario.toml")
        with open(scenario, "w") as file:
            realtime = "true" if os.geteuid() == 0 else "false"
            file.write(text + HEAD.format(folder=folder, legs=legs, realtime=realtime) + more_legs)
        self.job = Job([program, "run", scenario], dict(os.environ), folder, "fabric", namespace)
        end = time.monotonic() + 60
        while time.monotonic() < end and self.job.process.poll() is None and not self.ctl("clock")["ok"]:
            time.sleep(0.1)
        if not self.ctl("clock")["ok"]:
            raise RuntimeError(self.job.report(self.job.process.poll()))

    def ctl(self, *words):
        """The reply to a command. Without the program's help: starting one takes long on a crowded machine."""
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(30)
                connection.connect(self.control)
                connection.sendall(" ".join(words).encode() + b"\n")
                with connection.makefile() as reply:
                    return json.loads(reply.readline())
        except (OSError, ValueError) as problem:
            return {"ok": False, "error": str(problem)}

    def port(self, leg):
        return f"dpdk:net_memif0,role=client,socket-abstract=no,socket={self.folder}/host{leg}.sock"

    def settings(self, leg, **more):
        return {"FI_UET_PORT": self.port(leg), "FI_UET_ADDR": f"10.79.0.{leg + 1}", **more}

    def stop(self):
        """Exit status."""
        self.ctl("quit")
        status = self.job.wait(10)
        self.job.kill()
        return status


def start_ranks(fabric, provider, traffic, ranks, pattern, seconds, size, window, settings, first_leg=0):
    folder = os.path.join(fabric.folder, f"ranks{time.monotonic_ns()}")
    os.mkdir(folder)
    return [
        Job([traffic, folder, str(r), str(ranks), pattern, str(seconds), str(size), str(window)],
            base_env(provider, **fabric.settings(first_leg + r, **{k: str(v).replace("%p", str(r))
                                                                   for k, v in settings.items()})), folder, f"rank{r}")
        for r in range(ranks)
    ]


def wait_ranks(jobs, seconds):
    """What each rank printed, and what went wrong."""
    results, problems = [], []
    end = time.monotonic() + seconds
    for job in jobs:
        status = job.wait(max(0.1, end - time.monotonic()))
        out = job.output()[0]
        results.append(json.loads(out) if out.startswith("{") else None)
        if status != 0 or results[-1] is None:
            problems.append(job.report(status))
    for job in jobs:
        job.kill()
    return results, "\n".join(problems)


def goodput_mbps(results, begin, end):
    """All ranks together, in the time between two points of the run."""
    interval = results[0]["interval"]
    first, last = math.ceil(begin / interval), math.floor(end / interval)
    total = sum(sum(result["timeline"][first:last]) for result in results)
    return total * 8e-6 / ((last - first) * interval)
