#!/usr/bin/env python3
"""The provider as a file that libfabric loads: what it exports, what it needs, when it says no.

    loading.py PROVIDER-FOLDER
"""

import ctypes
import os
import re
import subprocess
import sys
import time

from harness import Tap, base_env, need_program, need_provider, own_addresses

FI_ENOSYS = 38
FI_PROV_ATTR_ONLY = 1 << 54


def text_of(command, env=None):
    run = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    return run.stdout, run.stderr, run.returncode


def getinfo(version, flags=0):
    """fi_getinfo without hints, through a libfabric that is loaded with RTLD_LOCAL. Runs in a process of its own."""
    fabric = ctypes.CDLL("libfabric.so.1", mode=os.RTLD_LOCAL | os.RTLD_NOW)
    info = ctypes.c_void_p()
    return fabric.fi_getinfo(ctypes.c_uint32(version), None, None, ctypes.c_uint64(flags), None, ctypes.byref(info))


def in_process(provider, body, **settings):
    """What `body` prints in a fresh Python with this script's functions."""
    code = f"import sys; sys.argv = ['x']; sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})\n" \
           f"from loading import *\n{body}"
    out, err, _ = text_of([sys.executable, "-c", code], base_env(provider, **settings))
    return out.strip() or err


# Covers: FI-1
def test_listed_once(provider):
    env = base_env(provider)
    del env["FI_PROVIDER"]
    out, _, _ = text_of(["fi_info", "-l"], env)
    return "" if len(re.findall(r"^uet:", out, re.MULTILINE)) == 1 else out


# Covers: FI-2
def test_exports_one_symbol(provider):
    library = os.path.join(provider, "libuet-fi.so")
    defined, _, _ = text_of(["nm", "-D", "--defined-only", library])
    strong = [l.split()[-1] for l in defined.splitlines() if l.split()[-2] not in "VWvwuA"]
    undefined, _, _ = text_of(["nm", "-D", "--undefined-only", library])
    dynamic, _, _ = text_of(["readelf", "-d", library])
    problems = []
    if [s.split("@")[0] for s in strong] != ["fi_prov_ini"]:
        problems.append(f"exported: {strong[:20]}")
    if re.search(r"\bofi_", undefined):
        problems.append("needs symbols inside of libfabric")
    if "libfabric.so.1" not in dynamic:
        problems.append("does not name libfabric.so.1")
    return "\n".join(problems)


# Covers: FI-3
def test_loads_under_rtld_local(provider):
    said = in_process(provider, "print(getinfo(1 << 16 | 17))", FI_UET_ADDR=own_addresses(1))
    return "" if said == "0" else said


# Covers: FI-4
def test_needs_no_new_symbol(provider):
    out, _, _ = text_of(["objdump", "-T", os.path.join(provider, "libuet-fi.so")])
    versions = {tuple(map(int, v.split("."))) for v in re.findall(r"FABRIC_(\d+\.\d+)", out)}
    return "" if versions and max(versions) <= (1, 6) else f"versions {versions}"


# Covers: FI-5
def test_no_layered_entries(provider):
    out, _, _ = text_of(["fi_info"], base_env(provider))
    providers = set(re.findall(r"^provider: (.*)$", out, re.MULTILINE))
    entries = re.findall(r"^ +domain: (.*)$(?:\n +.*)*?\n +type: (.*)$", out, re.MULTILINE)
    is_each_once = len(entries) == len(set(entries)) and {kind for _, kind in entries} == {"FI_EP_RDM", "FI_EP_DGRAM"}
    return "" if providers == {"uet"} and is_each_once else out


# Covers: FI-6
def test_exclusion_and_foreign_addresses(provider):
    problems = []
    out, _, _ = text_of(["fi_info"], base_env(provider, FI_PROVIDER="^uet"))
    if re.search(r"^provider: uet", out, re.MULTILINE):
        problems.append("excluded, and there all the same")
    out, err, status = text_of(["fi_info"], base_env(provider, FI_UET_ADDR="203.0.113.7"))
    warnings = [l for l in err.splitlines() if ":uet:" in l and "203.0.113.7" in l]
    if status == 0 or len(warnings) != 1:
        problems.append(f"foreign address: status {status}, warnings {warnings}")
    command = ["fi_info", "-p", "uet"]
    if os.geteuid() == 0:
        unprivileged = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        # A checkout that other users may not look into shows nothing about privileges.
        may_read = subprocess.run([*unprivileged, "test", "-r", os.path.join(provider, "libuet-fi.so")]).returncode == 0
        command = [*unprivileged, *command] if may_read else command
    out, err, status = text_of(command, base_env(provider))
    if status != 0 or "provider: uet" not in out:
        problems.append(f"nothing configured, no privilege: status {status}\n{out}\n{err}")
    return "\n".join(problems)


# Covers: FI-7
def test_listing_touches_nothing(provider):
    said = in_process(provider, f"""
before = len(os.listdir('/proc/self/task'))
getinfo(1 << 16 | 17, {FI_PROV_ATTR_ONLY})
took = []
for _ in range(5):
    start = time.monotonic()
    getinfo(1 << 16 | 17, {FI_PROV_ATTR_ONLY})
    took.append(time.monotonic() - start)
maps = open('/proc/self/maps').read()
print(len(os.listdir('/proc/self/task')) - before, min(took) < 0.05, 'dpdk' in maps or 'huge' in maps)
""", FI_UET_ADDR=own_addresses(1))
    return "" if said == "0 True False" else said


def test_fork_after_it_was_found_twice(provider):
    """A folder that is listed twice, or a second name in it: libfabric initialises the one library for each."""
    said = in_process(provider, """
import signal
getinfo(1 << 16 | 17)
signal.alarm(20)
child = os.fork()
if child == 0:
    os._exit(0)
print(os.waitpid(child, 0)[1])
""", FI_PROVIDER_PATH=f"{provider}:{provider}", FI_UET_ADDR=own_addresses(1))
    return "" if said == "0" else said or "it hung"


# Covers: FI-9
def test_versions(provider):
    said = in_process(provider, "print(*[getinfo(1 << 16 | v) for v in (5, 6, 17)], getinfo(9 << 16))",
                      FI_UET_ADDR=own_addresses(1))
    return "" if said == f"0 0 0 -{FI_ENOSYS}" else said


def main():
    provider, = sys.argv[1:]
    need_provider(provider)
    for program in ("fi_info", "nm", "readelf", "objdump"):
        need_program(program)
    tap = Tap()
    for name, case in list(globals().items()):
        if name.startswith("test_"):
            tap.result(name[5:].replace("_", " "), case(provider))
    tap.finish()


if __name__ == "__main__":
    main()
