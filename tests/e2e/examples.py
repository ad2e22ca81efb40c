#!/usr/bin/env python3
"""Every command line of the pages, run as it is typed: the blocks of commands of manual pages, READMEs and docs/first-hour.md, what
stands between backticks in README.md and docs/first-hour.md, and the forms and options of manual pages.

    examples.py SOURCE-ROOT BUILD-ROOT [PAGE...]

Pages run beside each other, on as many as there are cores. A page is one sitting: its blocks run in order, and each finds the exported variables, the folder and the files in /tmp that
the one before it left. Each block has a network namespace of its own with an address on eth0, and a time limit; all its
commands have to end with 0, those in the background as well. A line of settings alone is one that fi_info has to take. What a machine
lacks is skipped, with the reason. A line that no test can run stands in NOT_RUN; a new one is run, or fails.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys

from harness import Tap, skip_all, temporary_folder

SECONDS = 300  # for each block; seconds on an idle machine

PAGES = ["README.md", "docs/first-hour.md", "docs/why-slow.md", "docs/interop.md", "apps/fabric/README.md",
         "examples/four-paths.toml", "examples/lossy-link.toml", "examples/oversubscribed.toml",
         "examples/two_endpoints.cc", "apps/sim/README.md", "tools/wire_gen/README.md"]  # and every manual page

# Pages whose prose has command lines between backticks: each with a space in it.
PROSE = ["README.md", "docs/first-hour.md"]

# Blocks that are no commands: (page, how the block begins) and what they are.
NO_COMMANDS = {
    ("docs/man/uet.toml.5.in", "port ="): "a file: tests/fep reads others like it",
    ("apps/fabric/README.md", "match from="): "lines for a scenario or for ctl: tests/fabric reads them",
    ("docs/interop.md", "[[implementation]]"): "a file: tests/interop reads others like it",
}

# Lines that are not run, up to their comment, and why.
BY_CHECK = "./check runs it: it installs packages, builds and measures"
PACKAGING = "tests/packaging installs"
TWO_HOSTS = "needs a second host: the page has the same between two network namespaces"
LONG_INTEROP = "tests/interop plays the small set; the whole takes most of an hour"
NOT_RUN = {
    "README.md": {
        "./demo     installs what is missing, builds, runs fi_pingpong over UET between two processes that a DPDK memif joins,": BY_CHECK,
        "and shows what happened on the wire": BY_CHECK,
        "./check    installs what is missing, builds, runs every test; --fast leaves out what takes long": BY_CHECK,
        "./bench    measures this provider in turns with others, MPI, kernel TCP and bare ports, and writes a report with": BY_CHECK,
        "plots; --quick takes two minutes, --micro measures pools, devices and layers instead": BY_CHECK,
        "meson setup build && ninja -C build": "builds the tree that is tested here",
        "meson setup build --buildtype=release -Dtests=false --unity=on --unity-size=8 && ninja -C build && sudo meson install -C build": PACKAGING,
        "dpkg-buildpackage -us -uc -b": PACKAGING,
        "tools/release-build && sudo meson install -C build-release": "builds everything twice and measures in between: a quarter of an hour",
        "FI_UET_PORT=dpdk:0000:3b:00.1 FI_UET_ADDR=10.0.0.1 FI_UET_GATEWAY=10.0.0.254": "needs that device: docs/nics.md says what has run",
        "tools/install-packages build": "installs packages",
        "apt install openmpi-bin libopenmpi-dev": "installs packages: tools/install-packages does",
        "pkg-config uet": "found where it is installed: " + PACKAGING,
        "meson install": PACKAGING,
    },
    "docs/first-hour.md": {
        "meson setup build && ninja -C build": "builds the tree that is tested here",
        "fi_pingpong -p uet -e rdm": TWO_HOSTS,
        "fi_pingpong -p uet -e rdm 192.0.2.11": TWO_HOSTS,
        "uet-perf fabric": TWO_HOSTS,
        "uet-perf fabric write tagged-latency --peer 192.0.2.11 --sizes 64,1M --runs 3": TWO_HOSTS,
        "mpirun --host first:2,second:2 -x FI_PROVIDER -x FI_PROVIDER_PATH --mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include uet /tmp/program":
            "needs a second host: tests/e2e/mpi.py has ranks in two network namespaces",
        "sysctl -w net.core.rmem_max=16777216 net.core.wmem_max=4194304": "changes the machine",
    },
    "docs/interop.md": {
        "build/apps/interop/uet-interop --small": LONG_INTEROP,
        "build/apps/interop/uet-interop": LONG_INTEROP,
        "build/apps/interop/uet-interop --pairs udp:memif --scenarios loss,trimming,server-restart": LONG_INTEROP,
        "uet-interop mine.toml --pairs udp:mine,mine:udp": "that file is the reader's: tests/interop runs others like it",
        "uet-interop build/apps/interop/libfabric.toml --set libfabric=/opt/libfabric-2.6 --pairs udp:other-udp,other-udp:udp,memif:other-memif":
            "needs a second libfabric, which no package brings",
    },
    "docs/man/uet-interop.1": {
        "sudo uet-interop --small": LONG_INTEROP,
        "sudo uet-interop --pairs udp:memif --scenarios loss,path-death --out /tmp/report": LONG_INTEROP,
        "sudo uet-interop mine.toml --pairs udp:mine,mine:udp": "that file is the reader's: tests/interop runs others like it",
    },
}

# Options of other programs in the manual page of a tool.
OF_OTHERS = {"uet-stat": {"--telemetry"}, "uet-fabric": {"--paths"}}

# Programs of others that the pages use; a block is skipped where one is missing.
FOREIGN = {"fi_pingpong": "libfabric-bin", "fi_info": "libfabric-bin", "mpirun": "openmpi-bin", "mpic++": "libopenmpi-dev",
           "man": "man-db", "tshark": "tshark", "tcpdump": "tcpdump", "jq": "jq", "g++": "g++", "pkg-config": "pkg-config"}

# Before each block: the box; the folder of the page is at /mnt. After a line that ends in &: until something listens, as a person would wait before typing on.
PROLOGUE = r"""
mount --bind "$1" /mnt && mount --rbind "$2" /mnt/source && mount --rbind "$3" /mnt/built && mount --bind /mnt/tmp /tmp && mount -t tmpfs tmpfs /run && mount -t tmpfs -o mode=1777 tmpfs /dev/shm || exit 99
mkdir -p /run/netns
ip link set lo up
ip link add eth0 type veth peer name eth0p && ip address add 192.0.2.2/24 dev eth0 && ip link set eth0 up &&
  ip link set eth0p up && ip link add eth1 type veth peer name eth1p && ip link set eth1 up && ip link set eth1p up || exit 99
# Sockets that others find: TCP and Unix sockets that listen, UDP sockets that are bound. A line may open several, one after the other.
settle() {
  local i count before=0
  for i in $(seq 50); do
    sleep 0.2
    count=$({ grep -hs -e ' 0A ' -e ' 07 ' -e ' 00010000 ' /proc/net/{tcp,udp}{,6} /proc/net/unix || true; } | wc -l)
    if [ $count != 0 ] && [ $count = $before ] && grep -qs -e "$1" /proc/net/unix; then return; fi
    before=$count
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


def without_comment(line):
    return re.sub(r"(^|\s)#.*$", "", line).strip()


def left_out(page, block):
    """Lines of the block that are not run."""
    return [line for line in map(without_comment, block.splitlines()) if line in NOT_RUN.get(page, {})]


def runnable(page, block):
    """The block without its comments and without what is not run."""
    return "".join(f"{line}\n" for line in block.splitlines() if without_comment(line) and without_comment(line) not in NOT_RUN.get(page, {}))


def prose_lines(path):
    """What stands between backticks, with a space in it, outside of blocks."""
    text = re.sub(r"^```.*?^```|(?<=\n\n)(?:    [^\n]*\n)+", "", path.read_text(), flags=re.S | re.M)
    return [span for span in re.findall(r"`([^`\n]+)`", text) if " " in span]


def script_of(block):
    lines = []
    for line in block.splitlines():
        # Settings alone: what takes them is any program of libfabric.
        is_settings = re.fullmatch(r"(FI_UET_\w+=('[^']*'|[^\s']*)\s*)+", without_comment(line))
        lines.append(f"{without_comment(line)} fi_info -p uet" if is_settings else line)
        if re.search(r"[^&]&\s*(#.*)?$", line):
            name = "/control" if "uet-fabric run" in line else ""  # of its socket, the last one that it opens
            lines.append(f"{{ settle '{name}'; }} 2>/dev/null")
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


def outside(build):
    """As in the box, but where the trees are."""
    return {k: v.replace("/mnt/built", str(build)) for k, v in environment(build).items()}


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


class Results:
    """What a page has to report, until it is its turn."""

    def __init__(self):
        self.lines = []

    def result(self, *line):
        self.lines.append((Tap.result, line))

    def skip(self, *line):
        self.lines.append((Tap.skip, line))

    def tell(self, tap):
        for report, line in self.lines:
            report(tap, *line)


def results_of(page, source, build):
    results = Results()
    run_page(results, page, source, build)
    if page.endswith(".1"):
        results.result(f"{page}: forms and options", check_forms(page, outside(build), source))
    return results


def run_page(tap, page, source, build):
    with temporary_folder() as name:
        folder = pathlib.Path(name)
        prepare_tree(folder, source)
        env = environment(build)
        blocks = [*ordered_blocks(source / page), *(prose_lines(source / page) if page in PROSE else [])]
        for block in blocks:
            first = block.strip().splitlines()[0]
            title = f"{page}: {first[:70].replace('#', '')}"
            if what := next((why for (where, begin), why in NO_COMMANDS.items() if where == page and first.startswith(begin)), ""):
                tap.skip(title, what)
                continue
            for line in left_out(page, block):
                tap.skip(f"{page}: {line[:70]}", NOT_RUN[page][line])
            commands = runnable(page, block)
            if not commands:
                continue
            if reason := missing(commands, build):
                tap.skip(title, reason)
            else:
                tap.result(title, run(commands, env, folder, source, build))


def check_forms(page, env, source):
    """Every form in the synopsis of a tool's manual page is one that the tool knows; every option of either is one of the other."""
    text = re.sub(r"\\f[BIRP]|^\.nf\n.*?^\.fi", "", (source / page).read_text(), flags=re.S | re.M).replace("\\-", "-")
    synopsis = re.search(r"^\.SH SYNOPSIS\n(.*?)^\.SH", text, re.S | re.M)[1]
    tool = pathlib.Path(page).stem
    forms = {tuple(word for word in re.findall(r"[\w-]+", line)[1:2] if not word.startswith("-"))
             for line in re.findall(rf"^\.B {tool}(.*)$", synopsis, re.M) for line in [tool + line]}
    said, problems = "", []
    for form in sorted(forms | {()}):
        done = subprocess.run([tool, *form, "--help"], env=env, capture_output=True, text=True, timeout=60)
        said += done.stdout
        if done.returncode != 0:
            problems.append(f"{tool} {' '.join(form)} --help: exit status {done.returncode}\n{done.stderr}")
    known, told = (set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", words)) for words in (said, text))
    problems += [f"{tool} --help has {option}, {page} has not" for option in sorted(known - told - {"--help", "--version"})]
    return "\n".join(problems + [f"{page} has {option}, {tool} --help has not" for option in sorted(told - known - OF_OTHERS.get(tool, set()))])


def check_manuals(source):
    """Empty when no command line of a manual page is set in another way than this test reads."""
    odd = [p.name for p in (source / "docs/man").iterdir() if re.search(r"^\.br\n(?!\.).*(uet\\?-|FI_UET_)|^\.EX", p.read_text(), re.M)]
    return f"lines that are not between .nf and .fi: {odd}" if odd else ""


def check_skips(source):
    """Empty when every line that is left out still stands on its page."""
    gone = [key for key in NO_COMMANDS if not any(b.strip().startswith(key[1]) for b in ordered_blocks(source / key[0]))]
    for page, lines in NOT_RUN.items():
        found = {line for block in [*ordered_blocks(source / page), *prose_lines(source / page)] for line in left_out(page, block)}
        gone += [(page, line) for line in lines.keys() - found]
    return f"no such line: {gone}" if gone else ""


def check_blocks(source):
    """Empty when every block of commands of a page is set as this test reads it."""
    odd = []
    for page in PROSE:
        text = (source / page).read_text()
        odd += [f"{page}: {line}" for line in text.splitlines() if re.match(r"```(?!$|sh$)|\t|<code|<pre", line)]
        blocks = "".join(ordered_blocks(source / page))
        odd += [f"{page}: {line}" for line in re.findall(r"^    (\S.*)$", text, re.M) if line not in blocks]
    return f"commands in blocks of another form: {odd}" if odd else ""


def main():
    source, build = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    probe = subprocess.run([*box_command(), "sh", "-c", "mount -t tmpfs tmpfs /run && ip link add uet0 type veth peer name uet1"],
                           capture_output=True, text=True)
    if probe.returncode != 0:
        skip_all(f"no network namespaces here: {probe.stderr.strip()}")
    tap = Tap()
    tap.result("every block that is left out exists", check_skips(source))
    tap.result("examples of manual pages stand between .nf and .fi", check_manuals(source))
    tap.result("pages have no commands in blocks of another form", check_blocks(source))
    # Not those that are another name of a page.
    manuals = [p for p in (source / "docs/man").iterdir() if not p.read_text().startswith(".so ")]
    pages = sys.argv[3:] or [*PAGES, *sorted(str(p.relative_to(source)) for p in manuals)]
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for results in pool.map(lambda page: results_of(page, source, build), pages):
            results.tell(tap)
    tap.finish()


main()
