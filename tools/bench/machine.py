"""What a comparison ran on: processor, kernel, versions, load, commit."""

import json
import os
import platform
import re
import subprocess
import time
from pathlib import Path


def said(*command):
    """What a command prints, or "" where it cannot."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return run.stdout.strip() if run.returncode == 0 else ""


def text_of(path):
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""


def processor():
    match = re.search(r"^model name\s*: (.*)", text_of("/proc/cpuinfo"), re.M)
    return match.group(1) if match else platform.machine()


def load():
    return os.getloadavg()[0]


def pair_of_cpus():
    """Two cores for the two sides, on two physical cores of one node where there are such; None where there is one core."""
    allowed = sorted(os.sched_getaffinity(0))
    first = allowed[0]
    siblings = text_of(f"/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list")
    twins = {int(n) for n in re.findall(r"\d+", siblings)} if "-" not in siblings else set()
    others = [c for c in allowed[1:] if c not in twins] or allowed[1:]
    return (first, others[0]) if others else None


def describe(root, perf, build, cpus):
    version = re.search(r"^libfabric: (.*)", said("fi_info", "--version"), re.M)
    mpi = re.search(r"\(Open MPI\) (\S+)", said("mpirun.openmpi", "--version"))
    changed = said("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "cpu": processor(),
        "cpus": os.cpu_count(),
        "pinned_to": list(cpus) if cpus else None,
        "governor": text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "none visible",
        "hypervisor": "yes" if re.search(r"^flags.*\bhypervisor\b", text_of("/proc/cpuinfo"), re.M) else "no",
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "huge_pages": text_of("/proc/sys/vm/nr_hugepages"),
        "kernel": platform.release(),
        "load_at_start": load(),
        "commit": said("git", "-C", str(root), "rev-parse", "--short=12", "HEAD") or "unknown",
        "uncommitted_changes": bool(changed),
        "uet": said(str(perf), "--version"),
        "build": build_type(build),
        "libfabric": version.group(1) if version else "none",
        "dpdk": said("pkg-config", "--modversion", "libdpdk") or "none",
        "open_mpi": mpi.group(1) if mpi else "none",
        "compiler": said("c++", "--version").split("\n")[0],
    }


def build_type(build):
    told = said("meson", "introspect", "--buildoptions", str(build))
    options = {o["name"]: o["value"] for o in json.loads(told or "[]")}
    if not options:
        return "unknown"
    checks = options.get("simulation_checks")
    has_checks = checks == "true" or (checks == "auto" and options.get("buildtype") != "release")
    return (f"{options.get('buildtype')}, -O{options.get('optimization')}"
            f"{', optimised across files' if options.get('b_lto') else ''}"
            f"{', with invariants checked' if has_checks else ''}")
