#!/usr/bin/env python3
"""`meson install` into the system's folders, then programs with no environment variable set. Everything is written into an
overlay over /usr that only this process and its children see.

    install.py BUILD-ROOT SOURCE-ROOT DPDK-PLUG-IN
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

OVERLAY = """
set -e
mount -t tmpfs overlay "$1" && mkdir "$1/upper" "$1/work"
mount -t overlay -o lowerdir=/usr,upperdir="$1/upper",workdir="$1/work" overlay /usr
mount -t tmpfs tmpfs /run && mkdir /run/lock && mount -t tmpfs -o mode=1777 tmpfs /dev/shm
ip link set lo up
"""
# ldconfig of the installation writes its cache below /etc.
OVERLAY_OF_ETC = """
mkdir "$1/etc" "$1/etc-work"
mount -t overlay -o lowerdir=/etc,upperdir="$1/etc",workdir="$1/etc-work" overlay /etc
"""


def in_namespace(script, folder, *command):
    """`command` after `script`, in namespaces of its own; $1 of the script is a folder to mount things on."""
    place = Path(folder, "overlay")
    place.mkdir(exist_ok=True)
    return subprocess.run(["unshare", "--net", "--mount", "--propagation", "private", "bash", "-c",
                           f'{script}\nshift\nexec "$@"', "install", str(place), *command], capture_output=True, text=True)


def needs(plugin):
    """What this machine has for installed.sh."""
    out = ["dpdk"] if os.path.exists(plugin) else []
    out += ["compile"] if shutil.which("g++") and shutil.which("pkg-config") else []
    out += ["manual"] if shutil.which("man") else []
    out += ["tshark"] if shutil.which("tshark") else []
    has_scapy = subprocess.run(["/usr/bin/python3", "-c", "import scapy"], capture_output=True).returncode == 0
    return out + (["scapy"] if has_scapy else [])


def main():
    build, source, plugin = sys.argv[1:]
    if not shutil.which("fi_pingpong"):
        print("1..0 # SKIP fi_pingpong is not installed (package libfabric-bin)")
        return 0
    with tempfile.TemporaryDirectory(prefix="uet-install-") as folder:
        script = OVERLAY + OVERLAY_OF_ETC
        possible = in_namespace(script, folder, "true")
        if possible.returncode != 0:
            print(f"1..0 # SKIP no overlay over /usr here: {possible.stderr.strip()[-200:]}")
            return 0
        shutil.copy(Path(source, "examples", "two_endpoints.cc"), folder)
        install = Path(folder, "install.sh")
        install.write_text(f"""set -e
meson install -C '{build}' --no-rebuild >'{folder}/meson' 2>&1 || {{ cat '{folder}/meson' >&2; exit 1; }}
exec '{source}/tests/packaging/installed.sh' '{folder}' {' '.join(needs(plugin))}
""")
        run = in_namespace(script, folder, "bash", str(install))
        print(run.stdout, end="")
        sys.stderr.write(run.stderr)
        return run.returncode


sys.exit(main())
