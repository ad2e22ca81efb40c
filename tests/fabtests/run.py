#!/usr/bin/env python3
"""The lists of fabtests, libfabric's own test programs, over the provider, less what the files of exclusions name. In strict mode: a test
that is not offered fails. Debian has no fabtests, so they are named:

    UET_FABTESTS=the folder of an installed runfabtests.sh; with several, separated by colons, each is run
    UET_FABTESTS_LISTS=lists (default: unit,functional,short,standard,complex)
    UET_FABTESTS_WAYS=words joined by +, several ways separated by blanks (default: udp). udp or memif, the latter as legs of an
        emulated fabric with four paths; loss: one packet in a hundred; keys: encrypted
    UET_FABTESTS_RECORD=a file to which each result is appended: version, way, test, result, seconds

    run.py PROVIDER-FOLDER UET-KEYS DPDK-PLUG-IN [UET-FABRIC]
"""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from fabric_run import FOUR_PATHS, Fabric  # noqa: E402
from harness import Tap, base_env, need_provider, own_addresses, own_fabric_addresses, skip_all, temporary_folder  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SECONDS_A_TEST = 480
PROCESSES = 12
LEGS = 4  # one for each process that is there at a time
ONE = re.compile(r"^- name: +(.*)\n(?: .*\n)*?  result: +(\w+).*\n(?:  time: +(\d+))?", re.M)
WORDS = {"udp", "memif", "loss", "keys"}

# Some programs of fabtests meet by TCP at the addresses of the provider, which the kernel need not have: here it has.
WITH_ADDRESSES = 'ip link set lo up; for a in $ADDRESSES; do ip address add "$a/32" dev lo; done; exec "$@"'


# runfabtests.sh ends what is left of a test by name, so it may see no processes but its own.
def own_processes():
    command = ["unshare", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    try:
        return command if subprocess.run([*command, "true"], capture_output=True).returncode == 0 else None
    except FileNotFoundError:
        return None


class Way:
    """How packets get from process to process, and the settings for it."""

    def __init__(self, text, place, uet_keys, uet_fabric=None):
        self.words = set(text.split("+"))
        if not self.words <= WORDS:
            sys.exit(f"UET_FABTESTS_WAYS: no such way: {text} ({', '.join(sorted(WORDS))} joined by +)")
        self.text, self.fabric = text, None
        self.settings = {"FI_UET_ADDR": own_addresses(PROCESSES)}
        if "memif" in self.words:
            folder = os.path.join(place, text)
            os.mkdir(folder)
            self.fabric = Fabric(uet_fabric, folder, FOUR_PATHS, LEGS)
            self.settings = {"FI_UET_ADDR": own_fabric_addresses(LEGS),
                             "FI_UET_PORT": "|".join(self.fabric.port(n) for n in range(LEGS)),
                             "FI_UET_TRIMMING": 1, "FI_UET_LINK_GBPS": 1, "FI_UET_BASE_RTT": "2ms"}
        if "loss" in self.words:
            self.settings["FI_UET_IMPAIR"] = "loss=0.01"
        if "keys" in self.words:
            self.settings["FI_UET_KEYS"] = os.path.join(place, "keys.json")
            if not os.path.exists(self.settings["FI_UET_KEYS"]):
                subprocess.run([uet_keys, "new", "--out", self.settings["FI_UET_KEYS"], "--state-dir",
                                os.path.join(place, "counters")], check=True, stdout=subprocess.DEVNULL)

    def exclusions(self):
        """The file of what is left out this way; read_exclude_file of runfabtests.sh takes one."""
        files = ["uet.exclude"] + (["uet-loss.exclude"] if "loss" in self.words else [])
        return "".join(open(os.path.join(HERE, name)).read() + "\n" for name in files)

    def stop(self):
        if self.fabric:
            self.fabric.stop()


def run_lists(tap, provider, folder, inside, place, way):
    env = base_env(provider, **way.settings)
    env["PATH"] = folder + ":" + env["PATH"]
    server = way.settings["FI_UET_ADDR"].split("|")[0]
    lists = os.environ.get("UET_FABTESTS_LISTS", "unit,functional,short,standard,complex")
    excluded = os.path.join(place, "exclude")
    with open(excluded, "w") as file:
        file.write(way.exclusions())
    env["ADDRESSES"] = way.settings["FI_UET_ADDR"].replace("|", " ")
    run = subprocess.run([*inside, "sh", "-c", WITH_ADDRESSES, "sh", os.path.join(folder, "runfabtests.sh"), "-S", "-v", "-T",
                          str(SECONDS_A_TEST), "-t", lists, "-f", excluded, "-u", os.path.join(HERE, "uet.test"), "-s", server, "uet"],
                         env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                         stdin=subprocess.DEVNULL, cwd=place)
    results = ONE.findall(run.stdout)
    if record := os.environ.get("UET_FABTESTS_RECORD"):
        with open(record, "a") as file:
            file.writelines(f"{folder}\t{way.text}\t{name.strip()}\t{result}\t{time}\n" for name, result, time in results)
    passed = [name for name, result, _ in results if result == "Pass"]
    wrong = [name for name, result, _ in results if result in ("Fail", "Notrun")]
    problem = "\n".join(wrong) + "\n" + run.stdout[-6000:] if wrong or not passed or run.returncode else ""
    tap.result(f"{folder}, {way.text}: {len(passed)} tests of {lists}", problem)


def main():
    provider, uet_keys, plugin, *uet_fabric = sys.argv[1:]
    need_provider(provider)
    folders = [f for f in os.environ.get("UET_FABTESTS", "").split(":") if shutil.which("runfabtests.sh", path=f)]
    if not folders:
        skip_all("no fabtests: UET_FABTESTS names the folder of runfabtests.sh")
    inside = own_processes()
    if not inside:
        skip_all("no processes and network of our own: unshare --pid --net is not allowed")
    tap = Tap()
    with temporary_folder() as place:  # it leaves files where it runs
        for text in os.environ.get("UET_FABTESTS_WAYS", "udp").split():
            if "memif" in text and not (uet_fabric and os.path.exists(plugin)):
                tap.skip(text, "built without DPDK")
                continue
            way = Way(text, place, uet_keys, *uet_fabric)
            try:
                for folder in folders:
                    run_lists(tap, provider, folder, inside, place, way)
            finally:
                way.stop()
    tap.finish()


main()
