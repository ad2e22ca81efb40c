#!/usr/bin/env python3
"""The Debian packages in a clean Debian 12: built, linted, installed, used with no environment variable set, removed.

    debian.py SOURCE-ROOT [PACKAGE...]

Takes two systems from the distribution's mirror by mmdebstrap: one to build in, one to install in. Packages that are given are
installed instead of being built. Needs root and the mirror.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RELEASE = "bookworm"
# What a user of all packages has besides them; their own files are there before and after.
COMPANIONS = ["g++", "libfabric-bin", "man-db", "pkg-config", "tshark"]
# Written by apt, dpkg and the programs that they call, for packages of any kind; and the copies that the test makes.
NOT_OURS = ("/proc", "/dev", "/run", "/tmp", "/var/cache", "/var/lib/apt", "/var/lib/dpkg", "/var/log", "/etc/ld.so.cache",
            "/usr/share/man/index", "/build")


class Tap:
    number = failures = 0

    def result(self, name, problem=""):
        self.number += 1
        self.failures += bool(problem)
        print(f"{'not ok' if problem else 'ok'} {self.number} - {name}")
        for line in problem.splitlines():
            print(f"# {line}")
        sys.stdout.flush()
        return not problem


class System:
    """An unpacked Debian, and commands in it: with processes and mounts of their own, and without a network if asked."""

    def __init__(self, tar, place):
        self.place = Path(place)
        self.place.mkdir()
        subprocess.run(["tar", "-xpf", tar, "-C", str(place), "--numeric-owner"], check=True)
        shutil.copy("/etc/resolv.conf", self.place / "etc")
        no_services = self.place / "usr/sbin/policy-rc.d"
        no_services.write_text("#!/bin/sh\nexit 101\n")
        no_services.chmod(0o755)

    def run(self, command, has_network=True):
        """Exit status and output."""
        # DPDK finds the processors in /sys. Read-only: packages that come along would trigger devices of this host.
        inside = ["unshare", "--mount", "--pid", "--fork", "--kill-child", f"--mount-proc={self.place}/proc", "sh", "-c",
                  'mount --bind -o ro /sys "$0/sys" && exec chroot "$0" "$@"', str(self.place), "/usr/bin/env", "-i",
                  "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/tmp", "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", "sh",
                  "-c", command]
        if not has_network:
            inside = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", *inside]
        run = subprocess.run(inside, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                             stdin=subprocess.DEVNULL)
        return run.returncode, run.stdout

    def problem(self, command, **more):
        """The end of the output when the command fails."""
        status, output = self.run(command, **more)
        return f"exit status {status}\n{output[-4000:]}" if status else ""

    def files(self):
        out = set()
        for folder, folders, names in os.walk(self.place):
            inside = "/" + str(Path(folder).relative_to(self.place))
            folders[:] = [f for f in folders if not os.path.join(inside, f).replace("/./", "/").startswith(NOT_OURS)]
            out.update(os.path.normpath(os.path.join(inside, name)) for name in [*names, *folders])
        return {name for name in out if not name.startswith(NOT_OURS)}


def skip(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


def copy_of_sources(source, target):
    """What git has or would have: no build folders."""
    listed = subprocess.run(["git", "-C", source, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, check=True).stdout.decode()
    for name in filter(None, listed.split("\0")):
        if not Path(source, name).is_file():
            continue
        Path(target, name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(source, name), Path(target, name))


def build(tap, tar, folder, source):
    """The packages, or none."""
    system = System(tar, Path(folder, "build"))
    copy_of_sources(source, system.place / "build/uet")
    prepared = system.problem("apt-get update && cd /build/uet && apt-get build-dep -y --no-install-recommends ./ && "
                              "apt-get install -y --no-install-recommends lintian")
    if not tap.result("build dependencies are complete", prepared):
        return []
    if not tap.result("packages build", system.problem("cd /build/uet && dpkg-buildpackage -us -uc -b", has_network=False)):
        return []
    tap.result("lintian finds no error and no warning",
               system.problem("cd /build && lintian --allow-root --fail-on error,warning uet_*.changes"))
    return [deb for deb in sorted(system.place.glob("build/*.deb")) if "-dbgsym_" not in deb.name]


def use(tap, tar, folder, source, debs):
    system = System(tar, Path(folder, "use"))
    packages = system.place / "build"
    packages.mkdir()
    for file in [*debs, Path(source, "tests/packaging/installed.sh"), Path(source, "examples/two_endpoints.cc")]:
        shutil.copy(file, packages)
    names = " ".join(deb.name.split("_")[0] for deb in debs)
    # The packages of others that ours need, first: so that the files that appear afterwards are ours.
    others = system.problem("apt-get update && apt-get install -y --no-install-recommends " + " ".join(COMPANIONS) +
                            " && apt-get install -y --no-install-recommends $(apt-get install -s --no-install-recommends /build/*.deb |"
                            " awk '/^Inst/ {print $2}' | grep -vxF \"$(printf '%s\\n' " + names + ")\") ")
    if not tap.result("what they depend on installs", others):
        return
    before = system.files()
    if not tap.result("packages install", system.problem("apt-get install -y --no-install-recommends /build/*.deb",
                                                         has_network=False)):
        return
    status, output = system.run("/build/installed.sh /build dpdk compile manual tshark scapy", has_network=False)
    for line in output.splitlines():
        if line.startswith(("ok", "not ok")):
            tap.result(line.split(" - ", 1)[1], "" if line.startswith("ok") else output[-4000:])
    tap.result("every check of the installation ran", "" if status == 0 and "\n1.." in output else output[-4000:])
    tap.result("packages go", system.problem(f"apt-get purge -y {names}", has_network=False))
    left, lost = system.files() - before, before - system.files()
    tap.result("nothing is left, nothing else is lost", "\n".join([*sorted(left)[:20], *(f"lost: {n}" for n in sorted(lost)[:20])]))


def main():
    source, *debs = sys.argv[1:]
    if os.geteuid() != 0:
        skip("needs root, to make a system of its own")
    if not shutil.which("mmdebstrap"):
        skip("mmdebstrap is not installed")
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="uet-debian-") as folder:
        tar = os.path.join(folder, "base.tar")
        base = subprocess.run(["mmdebstrap", "--variant=apt", RELEASE, tar], capture_output=True, text=True)
        if base.returncode != 0:
            skip(f"no Debian {RELEASE} from the mirror: {base.stderr.strip().splitlines()[-1:]}")
        debs = [Path(deb) for deb in debs] or build(tap, tar, folder, source)
        if debs:
            use(tap, tar, folder, source, debs)
    print(f"1..{tap.number}")
    sys.exit(1 if tap.failures else 0)


main()
