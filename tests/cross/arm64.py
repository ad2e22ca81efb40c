#!/usr/bin/env python3
"""The tree for arm64: compiled across, its tests run by an emulator, and its provider talks to the one of this machine.

    arm64.py SOURCE-ROOT PROVIDER-FOLDER [WORK-FOLDER]

Takes a Debian for arm64 from the distribution's mirror by mmdebstrap. A work folder that is given stays, and is used again.
qemu-user knows nothing of memory that other processors order differently: what this says is about code, layout and settings.
"""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from harness import Job, Tap, base_env, free_port, need_provider, skip_all, temporary_folder  # noqa: E402

RELEASE = "bookworm"
PACKAGES = ("libc6-dev libstdc++-12-dev libboost-dev libfmt-dev libtomlplusplus-dev nlohmann-json3-dev libcli11-dev libpcap-dev "
            "libisal-dev libssl-dev libfabric-dev libfabric-bin libdpdk-dev libgtest-dev libgmock-dev libbenchmark-dev "
            "librapidcheck-dev").split()
TARGET = "aarch64-linux-gnu"
EMULATOR = "qemu-aarch64-static"
SLOWER = 12  # than the limits of the tests

CROSS_FILE = """[constants]
root = '{root}'
[binaries]
c = '{target}-gcc'
cpp = '{target}-g++'
ar = '{target}-ar'
strip = '{target}-strip'
pkgconfig = 'pkg-config'
exe_wrapper = ['{emulator}', '-L', root]
[properties]
sys_root = root
pkg_config_libdir = [root / 'usr/lib/{target}/pkgconfig', root / 'usr/share/pkgconfig']
boost_includedir = root / 'usr/include'
boost_librarydir = root / 'usr/lib/{target}'
[built-in options]
c_args = ['--sysroot=' + root]
cpp_args = ['--sysroot=' + root]
c_link_args = ['--sysroot=' + root]
cpp_link_args = ['--sysroot=' + root]
[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
"""

TESTS = ("base wire net interrupt-gate dpdk cc cc-system tss pds ses fep fep-pair fep-secure fep-datapath fuzz-corpus "
         "fuzz-endpoint-corpus fuzz-calls-corpus sim drill stat provider_queues_test provider_bounce_test").split()
# What an emulator of one process cannot give: its memory by address, a second program, in /proc its system calls by number and
# the flags of its memory, and what a socket dropped.
PROVIDER_TESTS = "-*AddressSpace*:ExitTest.*:SleepersTest.*"
UDP_TESTS = "-*overflow_of_the_socket*:*nothing_configured_finds*"
KEY_TESTS = "-LockedMemory.*"


def end_of(run):
    return f"exit status {run.returncode}\n{run.stdout[-4000:]}" if run.returncode else ""


def call(*command, **more):
    try:
        return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", stdin=subprocess.DEVNULL, **more)
    except subprocess.TimeoutExpired as late:
        said = (late.stdout or b"").decode(errors="replace")
        return subprocess.CompletedProcess(command, 124, f"{said}\ndid not end within {late.timeout} s")


def gtest(build, root, program, only):
    env = dict(os.environ, FI_PROVIDER_PATH=os.path.join(build, "provider"), FI_PROVIDER="uet")
    return end_of(call(EMULATOR, "-L", root, os.path.join(build, "tests", program), f"--gtest_filter={only}", env=env, timeout=1800))


def pingpong(folder, root, build, native):
    """fi_pingpong, emulated at the one end."""
    port = free_port()
    program = ["-p", "uet", "-e", "rdm", "-c"]
    server = Job([EMULATOR, "-L", root, os.path.join(root, "usr/bin/fi_pingpong"), *program, "-B", str(port)],
                 base_env(os.path.join(build, "provider"), FI_UET_ADDR="127.0.0.2"), folder, "emulated")
    try:
        server.wait_until_it_listens(port)
        client = Job(["fi_pingpong", *program, "-P", str(port), "127.0.0.1"], base_env(native, FI_UET_ADDR="127.0.0.3"), folder,
                     "native")
        try:
            statuses = client.wait(120), server.wait(20)
            return "" if statuses == (0, 0) else client.report(statuses[0]) + server.report(statuses[1])
        finally:
            client.kill()
    finally:
        server.kill()


def check(tap, source, native, folder):
    root, build = os.path.join(folder, "root"), os.path.join(folder, "build")
    if not os.path.isdir(root):
        system = call("mmdebstrap", "--arch=arm64", "--variant=extract", f"--include={','.join(PACKAGES)}", RELEASE, root)
        if system.returncode != 0:
            skip_all(f"no Debian {RELEASE} for arm64 from the mirror: {system.stdout.strip().splitlines()[-1:]}")
    cross_file = os.path.join(folder, "cross.ini")
    with open(cross_file, "w") as out:
        out.write(CROSS_FILE.format(root=root, target=TARGET, emulator=EMULATOR))
    if not os.path.exists(os.path.join(build, "build.ninja")):
        problem = end_of(call("meson", "setup", build, source, "--cross-file", cross_file, "-Ddocs=false", "-Dtests=true"))
        tap.result("is configured", problem)
        if problem:
            return
    problem = end_of(call("ninja", "-C", build))
    tap.result("compiles without a warning", problem)
    if problem:
        return
    tap.result("tests", end_of(call("meson", "test", "-C", build, "--no-rebuild", "--timeout-multiplier", SLOWER, *TESTS)))
    for program, only in (("net/udp_test", UDP_TESTS), ("keys/keys_test", KEY_TESTS), ("provider/provider_test", PROVIDER_TESTS)):
        tap.result(f"{program}, of it {only}", gtest(build, root, program, only))
    tap.result("its provider and this machine's play ping-pong", pingpong(folder, root, build, native))


def main():
    source, native, *work = sys.argv[1:]
    need_provider(native)
    if os.geteuid() != 0:
        skip_all("needs root, to unpack a system")
    for program in ("mmdebstrap", f"{TARGET}-g++", EMULATOR):
        if not shutil.which(program):
            skip_all(f"{program} is not installed")
    tap = Tap()
    if work:
        check(tap, source, native, os.path.abspath(work[0]))
    else:
        with temporary_folder() as folder:
            check(tap, source, native, folder)
    tap.finish()


if __name__ == "__main__":
    main()
