#!/usr/bin/env python3
"""Every planted bug in the provider is found by uet-drill, from outside: one script fails with it, names the right item, and passes without.

    drill.py FOLDER-OF-THE-PLANTED-PROVIDER UET-DRILL LISTENER UET-KEYS PLANTED.H
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "e2e"))
from drill_listener import Listener  # noqa: E402
from harness import Tap, base_env, own_addresses, temporary_folder  # noqa: E402


@dataclass(frozen=True)
class Bench:
    """Settings of the provider, and what uet-drill is told of it."""

    name: str
    settings: dict = field(default_factory=dict)
    told: tuple = ()


PLAIN = Bench("as it is", told=("--with", "unexpected,numbered"))
# A congestion window that lets more than 128 packets through.
FAST = Bench("on a fast network", {"FI_UET_LINK_MBPS": "100000", "FI_UET_BASE_RTT": "1ms"})
IDLE = Bench("that closes idle PDCs", {"FI_UET_PDC_IDLE": "300ms"}, ("--with", "idle-close"))

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
    ("close-keeps-reads", PLAIN, "PDS-165-close-with-many-reads-open", "PDS-165"),
]


class Drill:
    def __init__(self, arguments, folder):
        self.provider, self.drill, self.listener, self.keys = arguments[:4]
        self.folder = folder
        self.peer, self.own = own_addresses(2).split("|")
        self.number = 0

    def play(self, bench, bug, scripts, *times):
        """Exit status, what was said, and the report."""
        self.number += 1
        settings = {"FI_UET_ADDR": self.peer, "FI_UET_RI": "1", "FI_UET_MAX_PAYLOAD": "1024", "FI_UET_PDC_IDLE": "60s",
                    "FI_UET_ROD_REORDER": "0", "UET_PLANTED_BUG": bug, **bench.settings}
        env = base_env(self.provider, **settings)
        with Listener(self.folder, f"listener{self.number}", [self.listener], env) as listener:
            command = [self.drill, "--json", "--address", self.own, self.peer, "--key", "7", "--with", "receives,atomic",
                       *bench.told, *times, "--initiate", listener.command(), *scripts]
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
    status, said, report = drill.play(bench, bug, [script], "--patience", "2s", "--reach", "5s", "--quiet", "1s")
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
    missing = set(names) - {"none"} ^ {bug for bug, *_ in FOUND}
    tap.result("every planted bug has its script", f"not so: {missing}" if missing else "")
    with temporary_folder() as folder:
        drill = Drill(sys.argv[1:], folder)
        for bench in (PLAIN, FAST, IDLE):
            tap.result(f"an endpoint {bench.name} passes without a bug", passes_without(drill, bench))
        for bug, bench, script, item in FOUND:
            tap.result(f"{bug} is found by {script}", finds(drill, bench, bug, script, item))
    tap.finish()


main()
