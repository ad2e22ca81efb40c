#!/usr/bin/env python3
"""Every planted bug in the provider is found by uet-drill, from outside: one script fails with it, names the right item, and passes without.

    drill.py FOLDER-OF-THE-PLANTED-PROVIDER UET-DRILL LISTENER UET-KEYS PLANTED.H
"""

import itertools
import json
import os
import queue
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from drill_listener import Listener  # noqa: E402
from harness import Tap, base_env, own_addresses, temporary_folder  # noqa: E402

AT_ONCE = 3  # most of their time they wait


@dataclass(frozen=True)
class Bench:
    """Settings of the provider, and what uet-drill is told of it."""

    name: str
    settings: dict = field(default_factory=dict)
    told: tuple = ()
    keys: tuple = ()  # arguments of `uet-keys new`, where packets are secured


PLAIN = Bench("as it is", told=("--with", "unexpected,numbered,overlaps,rations-reads"))
# A congestion window that lets more than 128 packets through.
FAST = Bench("on a fast network", {"FI_UET_LINK_MBPS": "100000", "FI_UET_BASE_RTT": "1ms"})
IDLE = Bench("that closes idle PDCs", {"FI_UET_PDC_IDLE": "300ms"}, ("--with", "idle-close"))
SECURED = Bench("with keys", keys=("--replay-window", "1024"))
# Every sender has a key of its own, and the epoch is not 0.
CLUSTER = Bench("with keys of each sender", keys=("--mode", "cluster", "--ssi", "5"))

# The bug, the endpoint it is planted in, a script that shows it, and the item that the report must name.
FOUND = [
    ("plain-compare", PLAIN, "PDS-003-start-before-the-wrap", "PDS-52"),
    ("cack-past-stored", PLAIN, "PDS-087-guaranteed-response", "PDS-87"),
    ("clear-never-refreshed", PLAIN, "INI-093-clear-command", "PDS-93"),
    ("duplicate-delivered", PLAIN, "PDS-144-ordered-gap", "PDS-147"),
    ("sack-is-ack", PLAIN, "PDS-103-sack-is-no-ack", "PDS-103"),
    ("no-tombstone", PLAIN, "PDS-035-stray-syn-after-the-close", "PDS-35"),
    ("window-ignored", FAST, "INI-056-window-that-was-granted", "PDS-56"),
    ("wrong-segment-resent", PLAIN, "INI-054-one-loss", "PDS-54"),
    ("rod-order-ignored", PLAIN, "PDS-144-ordered-gap", "PDS-144"),
    ("lock-ignored", PLAIN, "INI-142-close-waits-for-read-data", "PDS-142"),
    ("unexpected-leak", PLAIN, "SES-042-unfinished-messages-give-back-their-room", "SES-42"),
    ("rudi-repeat-ignored", PLAIN, "PDS-178-rudi-request-again", "PDS-178"),
    ("null-context", IDLE, "PDS-118-ordering-nack-about-a-close-request", "PDS-118"),
    ("return-served", PLAIN, "INI-136-request-in-the-return-direction", "PDS-136"),
    ("ack-below-start", PLAIN, "INI-109-ack-from-before-the-start", "PDS-109"),
    ("bytes-not-covered", PLAIN, "SES-014-same-bytes-again", "SES-14"),
    ("numbers-ignored", PLAIN, "SES-080-number-that-is-over", "SES-80"),
    ("replay-ignored", SECURED, "TSS-T47-packet-again", "TSS-T47"),
    ("iv-without-epoch", CLUSTER, "TSS-T05-epoch-in-the-iv", "TSS-T5"),
    ("an-ignored", SECURED, "TSS-T24-key-of-the-other-slot", "TSS-T24"),
    ("trimmed-believed", SECURED, "TSS-T49-trimmed-packet", "TSS-T49"),
    ("kdf-without-ssi", CLUSTER, "TSS-T33-key-of-an-ssi", "TSS-T33"),
    ("guard-off", SECURED, "TSS-T40-opening-from-before", "TSS-T40"),
    ("clear-believed", SECURED, "TSS-T35-packet-in-clear", "TSS-T35"),
    ("close-keeps-reads", PLAIN, "PDS-165-close-with-many-reads-open", "PDS-165"),
]
# What only the program at the endpoint sees: no packet shows it.
LOCAL = {"peek-before-first"}


class Drill:
    def __init__(self, arguments, folder):
        self.provider, self.drill, self.listener, self.keys = arguments[:4]
        self.folder = folder
        self.addresses = own_addresses(2 * AT_ONCE).split("|")
        self.free = queue.SimpleQueue()
        for n in range(AT_ONCE):
            self.free.put(self.addresses[2 * n:2 * n + 2])
        self.names = itertools.count()

    def make_keys(self, bench, name):
        """A new key file for the endpoint, and the same keys for uet-drill, which has another SSI. So that starts of PDCs are
        trusted the endpoint must be the first to use them."""
        folder = os.path.join(self.folder, f"{name}.keys")
        os.mkdir(folder, 0o700)
        files = [os.path.join(folder, f"{end}.json") for end in ("endpoint", "drill")]
        for command in (["new", "--out", files[0], "--state-dir", os.path.join(folder, "state"), *bench.keys], ["rotate", files[0]]):
            subprocess.run([self.keys, *command], check=True, capture_output=True)
        content = json.load(open(files[0]))
        if content["secure_domains"][0]["mode"] == "cluster":
            content["secure_domains"][0]["epoch"] = {"tx": 5}
        for file in files:
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
                json.dump(content, out)
        if "ssi" in content["node"]:
            # A state folder has one SSI of a domain.
            subprocess.run([self.keys, "install", files[1], "--ssi", "6", "--state-dir", os.path.join(folder, "drill-state")],
                           check=True, capture_output=True)
        return files

    def play(self, bench, bug, scripts, *times):
        """Exit status, what was said, and the report."""
        name = f"listener{next(self.names)}"
        addresses = self.free.get()
        try:
            return self.play_at(*addresses, name, bench, bug, scripts, *times)
        finally:
            self.free.put(addresses)

    def play_at(self, peer, own, name, bench, bug, scripts, *times):
        settings = {"FI_UET_ADDR": peer, "FI_UET_RI": "1", "FI_UET_MAX_PAYLOAD": "1024", "FI_UET_PDC_IDLE": "60s",
                    "FI_UET_ROD_REORDER": "0", "UET_PLANTED_BUG": bug, **bench.settings}
        env = base_env(self.provider, **settings)
        told = bench.told
        if bench.keys:
            env["FI_UET_KEYS"], of_drill = self.make_keys(bench, name)
            told += ("--keys", of_drill)
        with Listener(self.folder, name, [self.listener], env) as listener:
            command = [self.drill, "--json", "--address", own, peer, "--key", "7", "--with", "receives,atomic",
                       *told, *times, "--initiate", listener.command(), *scripts]
            done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=env)
        return done.returncode, done.stderr, json.loads(done.stdout) if done.stdout else {}


def passes_without(drill, bench):
    """What follows is about the bugs, and not about the endpoint."""
    scripts = sorted({script for _, of, script, _ in FOUND if of is bench})
    status, said, report = drill.play(bench, "none", scripts, "--patience", "20s", "--reach", "20s")
    passed = [s["name"] for s in report.get("scripts", []) if s["verdict"] == "pass"]
    return "" if status == 0 and passed == scripts else told(status, said, report)


def finds(drill, bench, bug, script, item):
    # Generous where only a failure has to wait.
    status, said, report = drill.play(bench, bug, [script], "--patience", "1s", "--reach", "2s", "--quiet", "1s")
    failed = [s for s in report.get("scripts", []) if s["name"] == script and s["verdict"] == "fail"]
    named = [i["item"] for s in failed for i in s["items"] if i["title"]]
    is_told = failed and failed[0]["why"] and failed[0]["says"] and failed[0]["expected"]
    return "" if status == 1 and item in named and is_told else told(status, said, report)


def told(status, said, report):
    lines = [f"exit status {status} {said} {report.get('trouble')}"]
    for s in report.get("scripts", []):
        lines.append(f"{s['verdict']} {s['name']} {s.get('line', '')} {s.get('why', '')} {s.get('got', '')}")
    return "\n".join(lines)


def main():
    names = re.findall(r'^      "([a-z-]+)"', Path(sys.argv[5]).read_text(), re.MULTILINE)
    tap = Tap()
    missing = (set(names) - {"none"} - LOCAL) ^ {bug for bug, *_ in FOUND}
    tap.result("every planted bug has its script", f"not so: {missing}" if missing else "")
    with temporary_folder() as folder:
        drill = Drill(sys.argv[1:], folder)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            runs = [(f"an endpoint {bench.name} passes without a bug", pool.submit(passes_without, drill, bench))
                    for bench in (PLAIN, FAST, IDLE, SECURED, CLUSTER)]
            runs += [(f"{bug} is found by {script}", pool.submit(finds, drill, bench, bug, script, item))
                     for bug, bench, script, item in FOUND]
            for name, run in runs:
                tap.result(name, run.result())
    tap.finish()


main()
