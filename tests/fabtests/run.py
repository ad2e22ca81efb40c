#!/usr/bin/env python3
"""The lists of fabtests, libfabric's own test programs, over the provider, less what uet.exclude names. In strict mode: a test that is
not offered fails. Debian has no fabtests, so they are named:

    UET_FABTESTS=the folder of an installed runfabtests.sh; with several, separated by colons, each is run
    UET_FABTESTS_LISTS=lists (default: unit,functional,short)
    UET_FABTESTS_IMPAIR=FI_UET_IMPAIR for all of them

    run.py PROVIDER-FOLDER
"""

import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from harness import Tap, base_env, need_provider, own_addresses, skip_all, temporary_folder  # noqa: E402

EXCLUDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "uet.exclude")
SECONDS_A_TEST = 240
PROCESSES = 12
ONE = re.compile(r"^- name: +(.*)\n(?: .*\n)*?  result: +(\w+)$", re.M)


# runfabtests.sh ends what is left of a test by name, so it may see no processes but its own.
def own_processes():
    command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        command[1:1] = ["--user", "--map-root-user"]
    try:
        return command if subprocess.run([*command, "true"], capture_output=True).returncode == 0 else None
    except FileNotFoundError:
        return None


def run_lists(tap, provider, folder, inside, place):
    settings = {"FI_UET_ADDR": own_addresses(PROCESSES)}
    if impair := os.environ.get("UET_FABTESTS_IMPAIR"):
        settings["FI_UET_IMPAIR"] = impair
    env = base_env(provider, **settings)
    env["PATH"] = folder + ":" + env["PATH"]
    server = settings["FI_UET_ADDR"].split("|")[0]
    lists = os.environ.get("UET_FABTESTS_LISTS", "unit,functional,short")
    run = subprocess.run([*inside, os.path.join(folder, "runfabtests.sh"), "-S", "-v", "-T", str(SECONDS_A_TEST), "-t", lists,
                          "-f", EXCLUDED, "-s", server, "uet"], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                         text=True, errors="replace", stdin=subprocess.DEVNULL, cwd=place)
    results = ONE.findall(run.stdout)
    passed = [name for name, result in results if result == "Pass"]
    wrong = [name for name, result in results if result in ("Fail", "Notrun")]
    problem = "\n".join(wrong) + "\n" + run.stdout[-6000:] if wrong or not passed or run.returncode else ""
    tap.result(f"{folder}: {len(passed)} tests of {lists}", problem)


def main():
    (provider,) = sys.argv[1:]
    need_provider(provider)
    folders = [f for f in os.environ.get("UET_FABTESTS", "").split(":") if shutil.which("runfabtests.sh", path=f)]
    if not folders:
        skip_all("no fabtests: UET_FABTESTS names the folder of runfabtests.sh")
    inside = own_processes()
    if not inside:
        skip_all("no processes of our own: unshare --pid is not allowed")
    tap = Tap()
    with temporary_folder() as place:  # it leaves files where it runs
        for folder in folders:
            run_lists(tap, provider, folder, inside, place)
    tap.finish()


main()
