"""Where a comparison runs: a network namespace of its own with nothing but loopback, and in it two more that veth joins.

Where the machine allows it the processes have a namespace of their own as well, and end with the comparison.
"""

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "e2e"))

from harness import Namespaces  # noqa: E402

INSIDE = "UET_BENCH_BOX"
SCRIPT = ("mount -t tmpfs tmpfs /run && mount -t tmpfs -o mode=1777 tmpfs /dev/shm && mkdir -p /run/netns && "
          'ip link set lo up && exec "$@"')
MTU = "1500"
CONTROL = ("10.77.1.1", "10.77.1.2")  # of the kernel, on net0
FABRIC = ("10.78.1.1", "10.78.1.2")  # of UET or of a bare port, on pkt0 and xdp0


def enter():
    """Starts this program again inside the box. Returns where that cannot be, with the reason in the environment."""
    if INSIDE in os.environ:
        return
    reasons = []
    alone = ["--pid", "--fork", "--kill-child", "--mount-proc"]
    as_root = ["--user", "--map-root-user"]
    for ask in (alone, [], [*as_root, *alone], as_root):
        unshare = ["unshare", *ask, "--net", "--mount", "--propagation", "private", "sh", "-c", SCRIPT, "sh"]
        try:
            probe = subprocess.run([*unshare, "true"], capture_output=True, text=True)
        except OSError as problem:
            reasons = [str(problem)]
            break
        if probe.returncode == 0:
            os.environ[INSIDE] = "yes"
            os.execvp("unshare", [*unshare, sys.executable, *sys.argv])
        reasons.append(probe.stderr.strip().splitlines()[-1] if probe.stderr.strip() else "unshare failed")
    os.environ[INSIDE] = f"no network namespace of our own can be made here: {'; '.join(reasons)}"


def why_outside():
    """Empty inside the box."""
    told = os.environ.get(INSIDE, "")
    return "" if told == "yes" else told


class Veth:
    """Two namespaces. net0 has addresses of the kernel; pkt0 and xdp0 none, for drivers that take whole frames."""

    def __init__(self):
        self.namespaces, self.why_not = None, why_outside()
        if self.why_not:
            return
        try:
            self.namespaces = Namespaces({"net0": CONTROL, "pkt0": None, "xdp0": None})
            for name in self.namespaces.names:
                for link in ("net0", "pkt0", "xdp0"):
                    self.namespaces.ip("-n", name, "link", "set", link, "mtu", MTU)
        except (OSError, RuntimeError) as problem:
            self.close()
            self.why_not = f"no network namespaces with veth here: {problem}"

    @property
    def names(self):
        return self.namespaces.names

    def close(self):
        if self.namespaces:
            self.namespaces.remove()
        self.namespaces = None
