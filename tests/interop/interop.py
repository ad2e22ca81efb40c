#!/usr/bin/env python3
"""uet-interop: the small set of our configurations passes; wrong implementations are found; four kinds of verdict are told apart.

    interop.py UET-INTEROP DPDK-PLUG-IN [FOLDER-OF-THE-PLANTED-PROVIDER]
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from harness import Tap, temporary_folder  # noqa: E402

# The bug, and the scenario that shows it.
PLANTED = {"wrong-segment-resent": "loss", "rod-order-ignored": "ordered-loss"}

PLANTED_TOML = """
[[implementation]]
name = "planted-{bug}"
extends = "udp"
needs_path = "{folder}/libuet-planted-fi.so"
environment.FI_PROVIDER_PATH = "{folder}"
environment.UET_PLANTED_BUG = "{bug}"
environment.FI_UET_ROD_REORDER = "0"
environment.FI_UET_SPRAY_ORDERED = "0"
"""

# Programs of a line: what they do is the verdict.
STRANGERS = """
[[implementation]]
name = "right"
wire = "x"
leg = "kernel"
commands.say.server = "true"
commands.say.client = "true"
commands.say.wait = "no"

[[implementation]]
name = "wrong"
extends = "right"
commands.say.client = "sh -c 'echo the bytes differ; exit 1'"

[[implementation]]
name = "crashes"
extends = "right"
commands.say.client = "sh -c 'kill -SEGV $$'"

[[implementation]]
name = "hangs"
extends = "right"
commands.say.client = "sleep 1000"

[[implementation]]
name = "lacks"
extends = "right"
commands.say.client = "sh -c 'echo no atomics here; exit 77'"

[[implementation]]
name = "begins-anew"
extends = "right"
commands.say.client = "echo session 1 ended: the other side hung up"

[[implementation]]
name = "other-wire"
extends = "right"
wire = "y"

[[implementation]]
name = "elsewhere"
extends = "right"
needs_path = "/nonexistent/libuet-fi.so"

[[implementation]]
name = "by-value"
extends = "right"
commands.say.client = "{answer}"

[[implementation]]
name = "without-value"
extends = "right"
needs_path = "{nowhere}/libfabric.so.1"

[[scenario]]
name = "say"
program = "say"
seconds = 2

[[scenario]]
name = "say-long"
program = "say"

[[scenario]]
name = "say-corrupt"
program = "say"
expects = ["corrupt"]
"""

# What each client gets against `right`, and a part of the reason.
VERDICTS = {
    "right": ("pass", ""), "wrong": ("fail", "the bytes differ"), "crashes": ("fail", "SIGSEGV"),
    "hangs": ("fail", "not done after 2 s"), "lacks": ("unsupported", "no atomics here"),
    "begins-anew": ("pass", ""),
    "other-wire": ("unsupported", "speak differently"), "elsewhere": ("not run", "is not there"),
    "by-value": ("pass", ""), "without-value": ("not run", "--set nowhere=VALUE"),
}

WRONG = {
    "[[implementation]\n": "wrong.toml",
    "[[implementation]]\nname = \"A\"\n": "a name of small letters",
    "[[implementation]]\nname = \"a\"\n": "wire and commands",
    "[[implementation]]\nname = \"a\"\nextends = \"nothing\"\n": "does not stand before it",
    "[[implementation]]\nname = \"a\"\nwings = 2\n": "unknown key \"wings\"",
    "[[scenario]]\nname = \"a\"\nseconds = \"long\"\n": "seconds must be a whole number",
    "[[scenario]]\nname = \"a\"\nfault = [{ frames = 1, restart = \"both\" }]\n": "restart must be",
    "[[implementation]]\nname = \"a\"\nwire = \"x\"\ncommands = 5\n": "commands must be a table",
    "[[implementation]]\nname = \"a\"\nwire = \"x\"\ncommands.say = 5\n": "commands: tables are wanted",
    "[[implementation]]\nname = \"a\"\ncapabilities = [1]\n": "a list of texts",
    "[[implementation]]\nname = \"a\"\nextends = [1]\n": "does not stand before it",
    "implementation = [5]\n": "implementation: tables are wanted",
    "implementation = 5\n": "unknown key \"implementation\"",
    "[[scenario]]\nname = \"a\"\nmtu = [\"a\", \"b\"]\n": "a list of whole numbers",
    "[[scenario]]\nname = \"a\"\nmtu = [9000, 5]\n": "mtu must be from 576 to 65535, not 5",
    "[[scenario]]\nname = \"a\"\nclients = 0\n": "clients must be from 1 to",
    "[[scenario]]\nname = \"a\"\nclients = true\n": "clients must be a whole number",
    "[[scenario]]\nname = \"a\"\nfault = 5\n": "fault must be a list",
    "[[scenario]]\nname = \"a\"\nfault = [5]\n": "fault: tables are wanted",
    "[[scenario]]\nname = \"a\"\nlink = [5]\n": "a list of tables",
}


class Tool:
    def __init__(self, path, folder):
        self.path, self.folder, self.runs = path, folder, 0

    def run(self, *arguments):
        """The finished process, the folder of its report, and the matrix if there is one."""
        self.runs += 1
        out = os.path.join(self.folder, f"out{self.runs}")
        done = subprocess.run([sys.executable, self.path, "--out", out, *arguments], capture_output=True, text=True, timeout=2400,
                              stdin=subprocess.DEVNULL)
        matrix = os.path.join(out, "matrix.json")
        return done, out, json.load(open(matrix)) if os.path.exists(matrix) else {"cells": []}

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path


def told(done):
    return f"exit status {done.returncode}\n{done.stdout[-1000:]}\n{done.stderr[-4000:]}"


def small_set(tool):
    done, out, matrix = tool.run("--small", "--jobs", "3", "--views", "failed")
    played = {(c["server"], c["client"]) for c in matrix["cells"] if c["verdict"] == "pass"}
    one_way = [pair for pair in played if pair[::-1] not in played]
    if done.returncode != 0 or matrix["summary"]["not run"] or one_way or len({end for pair in played for end in pair}) < 6:
        return told(done) + f"\n{matrix.get('summary')} {one_way}"
    page = open(os.path.join(out, "index.html"), encoding="utf-8").read()
    outside = re.findall(r"(?:src|href)=\"(?!#|cells/)[^\"]*", page)
    if outside:
        return f"the page needs more than itself: {outside}"
    links = set(re.findall(r"href=\"(cells/[^\"]*)", page))
    missing = [link for link in links if not os.path.exists(os.path.join(out, link))]
    kinds = {name.rpartition(".")[2] for cell in matrix["cells"] for name in cell["files"]}
    if missing or not {"log", "events", "pcapng", "json"} <= kinds:
        return f"missing {missing}, there is {kinds}"
    return ""


def wrong_ones(tool, tap, folder):
    """In each direction: the wrong one serves, or is the client."""
    path = tool.file("planted.toml", "".join(PLANTED_TOML.format(bug=bug, folder=folder) for bug in PLANTED))
    for bug, scenario in PLANTED.items():
        name = f"planted-{bug}"
        done, _, matrix = tool.run(path, "--pairs", f"udp:{name},{name}:udp", "--scenarios", scenario)
        found = [c for c in matrix["cells"] if c["verdict"] == "fail" and c["reason"]]
        tap.result(f"{bug} is found by {scenario}", "" if done.returncode == 1 and found else told(done))
        without = [c for c in matrix["cells"] if not {"view.html", "view.log"} & set(c["files"])]
        tap.result("with a page of the viewer, or why there is none", "" if matrix["cells"] and not without else str(without))


def verdicts(tool, tap):
    path = tool.file("strangers.toml", STRANGERS)
    pairs = ",".join(f"right:{name}" for name in VERDICTS)
    done, _, matrix = tool.run("--only-mine", path, "--pairs", pairs, "--scenarios", "say", "--jobs", "3", "--set", "answer=true")
    cells = {c["client"]: c for c in matrix["cells"]}
    for name, (verdict, reason) in VERDICTS.items():
        cell = cells.get(name, {"verdict": None, "reason": told(done)})
        good = cell["verdict"] == verdict and reason in cell["reason"]
        tap.result(f"a client that is {name}: {verdict}", "" if good else f"{cell['verdict']}: {cell['reason']}")
    anew = cells.get("begins-anew", {}).get("sessions")
    tap.result("a pass tells how often an end began anew, and why",
               "" if anew == ["client: session 1 ended: the other side hung up"] else str(anew))
    tap.result("a failure is the exit status", "" if done.returncode == 1 else told(done))
    done, _, matrix = tool.run("--only-mine", path, "--pairs", "right:right", "--scenarios", "say-corrupt")
    good = [c["verdict"] for c in matrix["cells"]] == ["not run"] and done.returncode == 1
    tap.result("a network without the fault that a scenario is about shows nothing", "" if good else told(done))
    for strict, status in ([], 0), (["--strict"], 1):
        done, _, _ = tool.run("--only-mine", path, "--pairs", "right:right,right:elsewhere", "--scenarios", "say", *strict)
        good = done.returncode == status and "1 of 2 cells were not run" in done.stderr
        tap.result(f"a part that was not run is told{', and a failure when strict' if strict else ''}", "" if good else told(done))
    tap.result("an interrupted run says so", interrupted(tool, path))


def interrupted(tool, path):
    """While the second cell hangs."""
    out = os.path.join(tool.folder, "interrupted")
    command = [sys.executable, tool.path, "--out", out, "--only-mine", path, "--pairs", "right:right,right:hangs", "--scenarios", "say-long",
               "--jobs", "1"]
    # Shells have what they start in the background ignore it.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    said = process.stderr.readline()
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=120)
    with open(os.path.join(out, "matrix.json"), encoding="utf-8") as file:
        sums = json.load(file)["summary"]
    good = process.returncode == 130 and sums["pass"] == 1 and sums["not run"] == 1 and "1 of 2 cells were not run: interrupted" in rest[1]
    return "" if good else f"exit status {process.returncode}, {sums}\n{said}{rest}"


def usage(tool, tap):
    for text, expected in WRONG.items():
        done, _, _ = tool.run(tool.file("wrong.toml", text))
        tap.result(f"refused: {expected}", "" if done.returncode == 2 and expected in done.stderr else told(done))
    for arguments, expected in ((["--scenarios", "x"], "no scenario"), (["--pairs", "udp:x"], "no implementation"),
                                (["--implementations", "x"], "no implementation"), (["--wings"], "unrecognized"), (["--set", "answer"], "NAME=VALUE"),
                                (["--set", "provider=x"], "stands for something else"), (["--clients", "1"], "2 at least")):
        done, _, _ = tool.run(*arguments)
        tap.result(f"refused: {' '.join(arguments)}", "" if done.returncode == 2 and expected in done.stderr else told(done))
    done, _, _ = tool.run("--out", "/dev/null/x", "--only-mine", tool.file("strangers.toml", STRANGERS), "--set", "answer=true")
    good = done.returncode == 1 and "uet-interop: " in done.stderr and "Traceback" not in done.stderr
    tap.result("a report that cannot be written", "" if good else told(done))
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([sys.executable, tool.path, "--list"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    good = done.returncode == 1 and done.stderr == "uet-interop: standard output cannot be written: No space left on device\n"
    tap.result("a list that cannot be written", "" if good else str(done))
    done, _, _ = tool.run("--list")
    tap.result("--list", "" if done.returncode == 0 and "server-restart" in done.stdout else told(done))


def namespaces_are_possible():
    name = f"uet-probe-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "delete", name], capture_output=True)
    return made


def main():
    path, plugin, *folder = sys.argv[1:]
    tap = Tap()
    with temporary_folder() as work:
        tool = Tool(path, work)
        usage(tool, tap)
        if os.geteuid() != 0 or not namespaces_are_possible():
            tap.skip("pairs", "network namespaces need root")
            tap.finish()
        if not os.path.exists(plugin):
            tap.skip("pairs", "uet-fabric needs DPDK")
            tap.finish()
        tap.result("the small set passes in both directions", small_set(tool))
        verdicts(tool, tap)
        if folder:
            wrong_ones(tool, tap, folder[0])
    tap.finish()


main()
