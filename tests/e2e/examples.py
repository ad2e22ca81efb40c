#!/usr/bin/env python3
"""Every example of the pages, run as it is typed: the blocks of commands of manual pages, READMEs and docs/first-hour.md.

    examples.py SOURCE-ROOT BUILD-ROOT [PAGE...]

A page is one sitting: its blocks run in order, and each finds the exported variables, the folder and the files in /tmp that
the one before it left. Each block has a network namespace of its own with an address on eth0, and a time limit; all its
commands have to end with 0, those in the background as well. What a machine lacks is skipped, with the reason.
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from harness import Tap, skip_all, temporary_folder

SECONDS = 300  # for each block; seconds on an idle machine

PAGES = ["README.md", "docs/first-hour.md", "docs/interop.md", "apps/fabric/README.md", "examples/four-paths.toml",
         "examples/two_endpoints.cc", "apps/sim/README.md", "tools/wire_gen/README.md"]  # and every manual page

# Blocks that are no commands, or whose work another test does: (page, how the block begins) and why.
NOT_RUN = {
    ("README.md", "./demo"): "installs packages and builds: ./check runs both",
    ("README.md", "meson setup build && ninja"): "builds the tree",
    ("README.md", "meson setup build --buildtype"): "tests/packaging installs",
    ("docs/man/uet.toml.5.in", "port ="): "a file, not commands",
    ("apps/fabric/README.md", "match from="): "lines for a scenario or for ctl",
    ("docs/interop.md", "build/apps/interop/uet-interop"): "tests/interop plays the small set; the whole takes most of an hour",
    ("docs/interop.md", "[[implementation]]"): "a file: tests/interop reads others like it",
    ("docs/interop.md", "uet-interop mine.toml"): "that file is the reader's: tests/interop runs others like it",
    ("docs/interop.md", "uet-interop build/apps/interop/libfabric.toml"): "needs a second libfabric, which no package brings",
    ("docs/man/uet-interop.1", "sudo uet-interop"): "tests/interop plays the small set",
}

# Programs of others that the pages use; a block is skipped where one is missing.
FOREIGN = {"fi_pingpong": "libfabric-bin", "fi_info": "libfabric-bin", "mpirun": "openmpi-bin", "mpic++": "libopenmpi-dev",
           "tshark": "tshark", "tcpdump": "tcpdump", "jq": "jq", "g++": "g++", "pkg-config": "pkg-config"}

# Before each block: the box; the folder of the page is at /mnt. After a line that ends in &: until something listens, as a person would wait before typing on.
PROLOGUE = r"""
mount --bind "$1" /mnt && mount --rbind "$2" /mnt/source && mount --rbind "$3" /mnt/built && mount --bind /mnt/tmp /tmp && mount -t tmpfs tmpfs /run && mount -t tmpfs -o mode=1777 tmpfs /dev/shm || exit 99
mkdir -p /run/netns
ip link set lo up
ip link add eth0 type veth peer name eth0p && ip address add 192.0.2.2/24 dev eth0 && ip link set eth0 up &&
  ip link set eth0p up || exit 99
settle() {
  local i
  for i in $(seq 40); do
    if grep -qs ' 0A ' /proc/net/tcp /proc/net/tcp6 || grep -qs ' 00010000 ' /proc/net/unix; then sleep 0.2; return; fi
    sleep 0.05
  done
}
set -e -o pipefail
cd /mnt/tree
if [ -e /mnt/state ]; then . /mnt/state; fi
set -x
"""
EPILOGUE = r"""
{ set +x; } 2>/dev/null
export -p > /mnt/state
printf 'cd %q\n' "$PWD" >> /mnt/state
for job in $(jobs -p); do wait "$job" || { echo "a command in the background ended with $?"; exit 1; }; done
"""


def man_blocks(text):
    """What stands between .nf and .fi; the markup away."""
    for block in re.findall(r"^\.nf\n(.*?)^\.fi", text, re.S | re.M):
        yield re.sub(r"\\f[BIRP]", "", block).replace(r"\-", "-").replace(r"\(aq", "'").replace(r"\\", "\\")


def markdown_blocks(text):
    """Indented by four behind an empty line, or fenced as sh; in the order of the page."""
    for block in re.finditer(r"^```sh\n(.*?)^```|(?<=\n\n)((?:    [^\n]*\n)+)", text, re.S | re.M):
        yield block[1] or "".join(line[4:] + "\n" for line in block[2].splitlines())


def ordered_blocks(path):
    text = path.read_text()
    if path.suffix in (".toml", ".cc"):  # the comment at its head
        mark = "#" if path.suffix == ".toml" else "//"
        head = re.match(rf"(?:{mark}.*\n)*", text).group()
        return ["".join(f"{line}\n" for line in re.findall(rf"^{mark}   (.*)$", head, re.M))]
    if path.suffix == ".md":
        return list(markdown_blocks(text))
    return list(man_blocks(text))


def script_of(block):
    lines = []
    for line in block.splitlines():
        lines.append(line)
        if re.search(r"[^&]&\s*(#.*)?$", line):
            lines.append("{ settle; } 2>/dev/null")
    return PROLOGUE + "\n".join(lines) + EPILOGUE


def missing(block, build):
    """Why this block cannot run on this machine, or nothing."""
    words = set(re.findall(r"[\w+-]+", re.sub(r"#.*", "", block)))
    for program, package in FOREIGN.items():
        if program in words and not shutil.which(program):
            return f"{program} is not installed (package {package})"
    if "scapy" in words and subprocess.run([python(), "-c", "import scapy.all"], capture_output=True).returncode != 0:
        return "scapy is not installed (package python3-scapy)"
    if re.search(r"dpdk:|uet-fabric run", block) and not os.path.exists(f"{build}/lib/dpdk/libuet-dpdk.so"):
        return "built without DPDK"
    return ""


def python():
    """Debian's scapy is seen by the system's own Python."""
    return "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable


def environment(build):
    """Inside the box: its /tmp hides trees that lie in the machine's."""
    env = {k: v.replace(str(build), "/mnt/built") for k, v in os.environ.items()
           if not k.startswith(("FI_", "OMPI_", "PMI_"))}
    tools = ["/mnt/built/apps", *(f"/mnt/built/apps/{name}" for name in ("fabric", "drill", "interop", "keys")), "/mnt/bin"]
    env.update(PATH=":".join([*tools, env["PATH"]]), FI_PROVIDER_PATH="/mnt/built/provider", HOME="/mnt",
               PYTHONDONTWRITEBYTECODE="1", LC_ALL="C.UTF-8",
               # Root in a container with few cores: what a person on a desktop does not have to say.
               OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_rmaps_base_oversubscribe="1")
    return env


def box_command():
    return ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n", "-m", "--propagation", "private"]


def run(block, env, folder, source, build):
    """What went wrong, or nothing."""
    command = [*box_command(), "bash", "-c", script_of(block), "examples", folder, source, build]
    with open(folder / "output", "w+") as output:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                   start_new_session=True)
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        try:
            os.killpg(process.pid, signal.SIGKILL)  # its own group: whatever a failed line left behind
        except ProcessLookupError:
            pass
        process.wait()
        output.seek(0)
        said = output.read()
    if status == 0:
        return ""
    return f"{'still running after ' + str(SECONDS) + ' s' if status is None else f'exit status {status}'}\n{said[-4000:]}"


def prepare_tree(folder, source):
    """A tree as a person has it after building: the sources, and build/ in it. Pages may write into it."""
    tree = folder / "tree"
    tree.mkdir()
    for entry in source.iterdir():
        if not entry.name.startswith((".", "build")):
            (tree / entry.name).symlink_to(f"/mnt/source/{entry.name}")
    (tree / "build").symlink_to("/mnt/built")
    for name in ("source", "built", "tmp"):  # filled in the box
        (folder / name).mkdir()
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").symlink_to(python())


def run_page(tap, page, source, build):
    with temporary_folder() as name:
        folder = pathlib.Path(name)
        prepare_tree(folder, source)
        env = environment(build)
        for block in ordered_blocks(source / page):
            first = block.strip().splitlines()[0]
            title = f"{page}: {first[:70].replace('#', '')}"
            reason = next((why for (where, begin), why in NOT_RUN.items() if where == page and first.startswith(begin)),
                          missing(block, build))
            if reason:
                tap.skip(title, reason)
            else:
                tap.result(title, run(block, env, folder, source, build))


def check_manuals(source):
    """Empty when no command line of a manual page is set in another way than this test reads."""
    odd = [p.name for p in (source / "docs/man").iterdir() if re.search(r"^\.br\n(?!\.).*(uet\\?-|FI_UET_)|^\.EX", p.read_text(), re.M)]
    return f"lines that are not between .nf and .fi: {odd}" if odd else ""


def check_skips(source):
    """Empty when every entry of NOT_RUN still names a block."""
    gone = [key for key in NOT_RUN if not any(
        b.strip().startswith(key[1]) for b in ordered_blocks(source / key[0]))]
    return f"no such block: {gone}" if gone else ""


def main():
    source, build = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    probe = subprocess.run([*box_command(), "sh", "-c", "mount -t tmpfs tmpfs /run && ip link add uet0 type veth peer name uet1"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        skip_all(f"no network namespaces here: {probe.stderr.strip()}")
    tap = Tap()
    tap.result("every block that is left out exists", check_skips(source))
    tap.result("examples of manual pages stand between .nf and .fi", check_manuals(source))
    for page in sys.argv[3:] or [*PAGES, *sorted(str(p.relative_to(source)) for p in (source / "docs/man").iterdir())]:
        run_page(tap, page, source, build)
    tap.finish()


main()
