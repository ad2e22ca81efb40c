#!/usr/bin/env python3
"""uet-drill against live endpoints: the provider, and peers that are none.

    drill.py PROVIDER-FOLDER DPDK-PLUG-IN UET-DRILL UET-DUMP LISTENER SCRIPT-FOLDER UET-KEYS
"""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

from drill_listener import Listener
from harness import Tap, base_env, need_provider, own_addresses, temporary_folder

KNOWS_ALL = ["--key", "7", "--with", "receives,atomic,unexpected,numbered,overlaps,rations-reads"]
# Generous where only a failure would have to wait.
PATIENT = ["--patience", "20s", "--reach", "20s"]


class Bench:
    def __init__(self, arguments, folder):
        self.provider, self.plugin, self.drill, self.dump, self.listener, self.scripts, self.keys = arguments
        self.folder = folder
        self.peer, self.own = own_addresses(2).split("|")
        self.number = 0

    def listen(self, **settings):
        self.number += 1
        settings = {"FI_UET_ADDR": self.peer, "FI_UET_RI": "1", "FI_UET_MAX_PAYLOAD": "1024", **settings}
        env = base_env(self.provider, **{name: value for name, value in settings.items() if value})
        return Listener(self.folder, f"listener{self.number}", [self.listener], env)

    def run(self, *arguments, own=None, peer=None, seconds=240, port="udp"):
        """Exit status, what was said on stderr, and the report."""
        command = [self.drill, "--json", "--port", port, "--address", own or self.own, peer or self.peer, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=base_env(self.provider))
        return done.returncode, done.stderr, json.loads(done.stdout) if done.stdout else {}


def failures(report):
    return [f"{s['name']} line {s.get('line')}: {s['why']}\n{s.get('got')}" for s in report.get("scripts", [])
            if s["verdict"] == "fail"]


def verdicts(report):
    return {s["name"]: s["verdict"] for s in report.get("scripts", [])}


def expect(condition, *what):
    return "" if condition else "\n".join(str(w) for w in what)


def provider_passes(bench):
    """Every script that applies; and what is left behind for people."""
    out = os.path.join(bench.folder, "report")
    with bench.listen(FI_UET_PDC_IDLE="60s", FI_UET_ROD_REORDER="0") as listener:
        status, said, report = bench.run(*KNOWS_ALL, *PATIENT, "--initiate", listener.command(), "--out", out)
    needs = {need for s in report.get("scripts", []) if s["verdict"] == "skip" for need in s["needs"]}
    problem = expect(status == 0 and report["summary"]["pass"] > 85
                     and needs <= {"idle-close", "openings", "rod", "secured", "two-keys", "replay-window", "tsc-floor", "no-trim-hints", "epoch",
                                   "ssi-keys"}, status, said, report.get("trouble"), needs, *failures(report))
    if problem:
        return problem
    page = open(os.path.join(out, "report.html"), encoding="utf-8").read()
    outside = re.findall(r"(?:src|href)=\"(?!\w[\w-]*\.pcapng\")[^\"]*", page)
    dump = subprocess.run([bench.dump, os.path.join(out, "PDS-012-opening.pcapng")], capture_output=True, text=True, timeout=60)
    return (expect(not outside and "PDS-012-opening" in page, "the page needs more than itself", outside)
            or expect(json.load(open(os.path.join(out, "report.json")))["summary"] == report["summary"], "report.json differs")
            or expect("WRITE" in dump.stdout and "CLOSE_COMMAND" in dump.stdout, dump.stdout, dump.stderr))


def new_keys(bench, name, *options):
    folder = os.path.join(bench.folder, name)
    os.mkdir(folder, 0o700)
    file = os.path.join(folder, "keys.json")
    state = os.path.join(folder, "state")
    for command in (["new", "--out", file, "--state-dir", state, "--replay-window", "1024", *options], ["rotate", file]):
        subprocess.run([bench.keys, *command], check=True, capture_output=True)
    return file


def provider_with_keys_passes(bench):
    """Sealed: every script that applies, in both roles. The listener is the first to use the keys, so it trusts where PDCs start."""
    file = new_keys(bench, "keys")
    with bench.listen(FI_UET_PDC_IDLE="60s", FI_UET_ROD_REORDER="0", FI_UET_KEYS=file) as listener:
        status, said, report = bench.run(*KNOWS_ALL, *PATIENT, "--initiate", listener.command(), "--keys", file)
    needs = {need for s in report.get("scripts", []) if s["verdict"] == "skip" for need in s["needs"]}
    return expect(status == 0 and report["summary"]["pass"] > 90
                  and needs <= {"any-start", "trimming", "crc", "idle-close", "openings", "rod", "secured", "epoch", "ssi-keys"},
                  status, said, report.get("trouble"), needs, *failures(report))


def provider_that_challenges_passes(bench):
    """Each script starts where the endpoint wants it to; one with several openings is skipped."""
    file = new_keys(bench, "challenge", "--opening", "1rtt")
    names = ["PDS-012-opening", "PDS-030-noop-opens", "PDS-032-ordered-opening", "PDS-035-stray-syn-after-the-close",
             "INI-054-one-loss", "INI-161-close-request", "TSS-T35-packet-in-clear", "TSS-T40-opening-from-before"]
    with bench.listen(FI_UET_PDC_IDLE="60s", FI_UET_ROD_REORDER="0", FI_UET_KEYS=file) as listener:
        status, said, report = bench.run(*KNOWS_ALL, *PATIENT, "--initiate", listener.command(), "--keys", file, *names)
    skipped = [name for name, verdict in verdicts(report).items() if verdict == "skip"]
    return expect(status == 0 and report["summary"]["pass"] == 7 and skipped == ["PDS-035-stray-syn-after-the-close"],
                  status, said, report.get("trouble"), skipped, *failures(report))


def provider_with_limits_of_the_specification_passes(bench):
    """It gives a PDC up after 63 ms, so another try is due where this machine stalled for longer."""
    said = []
    with bench.listen(FI_UET_CONFIG="profile:specification", FI_UET_PDC_IDLE="60s") as listener:
        for _ in range(3):
            status, err, report = bench.run("--key", "7", "--with", "receives,atomic,unexpected", *PATIENT[2:], "--patience", "5s",
                                            "--initiate", listener.command(), "INI-109", "PDS-144-ordered-gap", "PDS-165")
            if status == 0 and report["summary"]["pass"] == 2:
                return ""
            said += [status, err, report.get("summary"), *failures(report)]
    return expect(False, *said)


def provider_restarted_initiator(bench):
    with bench.listen(FI_UET_PDC_IDLE="300ms"):
        status, said, report = bench.run("--with", "idle-close", *PATIENT, "REF-05")
    return expect(status == 0 and report["summary"]["pass"] == 1, status, said, *failures(report))


def nothing_known(bench):
    """Without a key scripts about packet delivery are played; the others say what they need."""
    with bench.listen(FI_UET_PDC_IDLE="60s"):
        status, said, report = bench.run(*PATIENT, "PDS-012", "PDS-087", "PDS-157", "SES-012-write", "INI-012")
    why = {s["name"]: s.get("why", "") for s in report.get("scripts", [])}
    return expect(status == 0 and report["summary"]["pass"] == 3 and "needs memory" in why["SES-012-write-and-read-back"]
                  and "--initiate" in why["INI-012-opening"], status, said, why)


def numbers_of_an_earlier_run(bench):
    """An endpoint remembers the numbers of a stream; those of a second run are new to it."""
    with bench.listen(FI_UET_PDC_IDLE="60s"):
        for _ in range(2):
            status, said, report = bench.run("--with", "receives,numbered", *PATIENT, "SES-080-number-that-is-over")
            problem = expect(status == 0 and report["summary"]["pass"] == 1, status, said, *failures(report))
            if problem:
                return problem
    return ""


def initiate_that_fails(bench):
    """A command of --initiate that ends badly is named: the endpoint was never asked."""
    with bench.listen():
        for command, text in (("exit 3", "the command of --initiate ended with status 3"), ("kill -9 $$", "was ended by signal 9")):
            status, said, report = bench.run("--patience", "1s", "--reach", "20s", "--initiate", command, "INI-012")
            problem = expect(status == 1 and text in report["scripts"][0]["why"], command, status, said, *failures(report))
            if problem:
                return problem
    return ""


def printed_options_fit(bench):
    """What the listening program prints is said to the tool as it is."""
    for settings, verdict in (({}, "skip"), ({"FI_UET_ROD_REORDER": "0"}, "pass"), ({"FI_UET_CONFIG": "profile:specification"}, "pass"),
                              ({"FI_UET_PDS": "ROD_Reorder=0"}, "pass")):
        with bench.listen(FI_UET_PDC_IDLE="60s", **settings) as listener:
            ready = next(line for line in listener.job.output()[0].splitlines() if line.startswith("ready "))
            status, said, report = bench.run(*ready.split()[1:], *PATIENT, "PDS-144-ordered-gap", "SES-012-write-and-read-back")
        if status != 0 or verdicts(report) != {"PDS-144-ordered-gap": verdict, "SES-012-write-and-read-back": "pass"}:
            return f"{ready}: {status} {said} {verdicts(report)}"
    return ""


def wrong_index(bench):
    """An endpoint that refuses everything: the report says what may be wrong with the options."""
    with bench.listen():
        status, said, report = bench.run("--ri", "9", "--patience", "1s", "PDS-012", "SES-001-unknown-index")
    return expect(status == 1 and "BAD_INDEX" in report["note"] and "--ri" in report["note"], status, said, report)


def reached_too_early(bench):
    """What is refused at first and taken within the time to reach the endpoint is not held against it."""
    early = bench.listen(FI_UET_RI="2")
    result = []
    drill = threading.Thread(target=lambda: result.extend(bench.run("--reach", "30s", "--patience", "20s", "PDS-012")))
    with early:
        drill.start()
        time.sleep(1)
    with bench.listen():
        drill.join()
    status, said, report = result
    return expect(status == 0 and not report.get("note") and report["summary"]["pass"] == 1, status, said, report)


def own_calls(bench):
    """Scripts that drive our own endpoint say so."""
    scripts = os.path.join(bench.scripts, "..", "..", "..", "tests", "drill")
    names = ["PDS-042-original-syn-again-while-pending", "PDS-109-ack-from-a-wrong-pdcid"]
    status, said, report = bench.run(*[os.path.join(scripts, name + ".drill") for name in names])
    why = [s.get("why", "") for s in report.get("scripts", [])]
    return expect(status == 1 and "no script was played" in said and "upper layer" in why[0] and "'write' posts" in why[1],
                  status, said, why)


class Impostor:
    """Something on the UDP port that is no endpoint of UET."""

    def __init__(self, address, answers):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 4793))
        self.socket.settimeout(0.1)
        self.answers, self.ended = answers, False
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while not self.ended:
            try:
                packet, (host, _) = self.socket.recvfrom(65536)
            except TimeoutError:
                continue
            for answer in self.answers(packet):
                self.socket.sendto(answer, (host, 4793))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended = True
        self.thread.join()
        self.socket.close()


def impostor(bench, answers, more=(), says=""):
    """Bounded time, and a report that says it."""
    from_ = time.monotonic()
    with Impostor(bench.peer, answers):
        status, said, report = bench.run(*KNOWS_ALL, "--patience", "300ms", "--reach", "500ms", *more, seconds=120)
    took = time.monotonic() - from_
    # The time to reach it, not that of eighty scripts; the rest is for a machine that does other things as well.
    return expect(status == 1 and "gives no answer" in report["trouble"] and says in report["trouble"]
                  and report["summary"]["pass"] == 0 and report["packets"]["sent"] < 20 and took < 60,
                  status, took, said, report.get("trouble"), report.get("summary"))


def noise(packet):
    return [os.urandom(len(packet)), b"", b"\x38", os.urandom(1)]


def not_there(bench):
    status, said, report = bench.run("--reach", "500ms")
    return expect(status == 1 and "gives no answer" in report["trouble"] and report["summary"]["pass"] == 0, status, said,
                  report)


def lists_have_the_last_word(bench):
    """What --with and --without say counts more than what other options tell of the endpoint."""
    _, said, plain = bench.run("--reach", "100ms", "--key", "7", "--initiate", "true", "PDS-012")
    _, also, less = bench.run("--reach", "100ms", "--key", "7", "--initiate", "true", "--without", "crc,memory,relative,initiator", "PDS-012")
    file = new_keys(bench, "wishes")
    _, sealed_said, sealed = bench.run("--reach", "100ms", "--keys", file, "--with", "any-start", "--without", "two-keys", "PDS-012")
    taken = {"crc", "memory", "relative", "initiator"}
    return (expect(taken <= set(plain["capabilities"]), said, plain)
            or expect(set(less["capabilities"]) == set(plain["capabilities"]) - taken, also, less)
            or expect({"any-start", "secured", "replay-window"} <= set(sealed["capabilities"])
                      and not {"trimming", "two-keys", "crc"} & set(sealed["capabilities"]), sealed_said, sealed))


def listener_names_wrong_lines(bench):
    """And goes on."""
    env = base_env(bench.provider, FI_UET_ADDR=bench.peer, FI_UET_RI="1")
    done = subprocess.run([bench.listener, "0x1f"], input="push 8 127.0.0.1\nsend lots 127.0.0.1\nwrite 8\nread 8 127.0.0.1 now\nwrite 5 127.0.0.300\nquit\n",
                          env=env, capture_output=True, text=True, timeout=60)
    return expect(done.returncode == 0 and "--key 0x1f" in done.stdout and done.stderr.count("nor quit") == 4
                  and "'write 5 127.0.0.300' is left out" in done.stderr, done)


def hangs_up(bench):
    """The endpoint dies within the second script: the first one counts, the third is not played."""
    folder = os.path.join(bench.folder, "hang-up")
    os.mkdir(folder)
    opening = open(os.path.join(bench.scripts, "PDS-012-opening.drill"), encoding="utf-8").read()
    initiating = open(os.path.join(bench.scripts, "INI-012-opening.drill"), encoding="utf-8").read()
    for name, text in ("A-opening", opening), ("B-initiating", initiating), ("C-opening", opening):
        with open(os.path.join(folder, name + ".drill"), "w", encoding="utf-8") as script:
            script.write(text)
    with bench.listen() as listener:
        pid = listener.job.process.pid
        status, said, report = bench.run(*KNOWS_ALL, "--patience", "3s", "--reach", "3s", "--initiate", f"kill -9 {pid}", folder)
    last = report["scripts"][-1]
    return expect(status == 1 and verdicts(report) == {"A-opening": "pass", "B-initiating": "fail", "C-opening": "skip"}
                  and "since B-initiating" in report["trouble"] and "not played" in last["why"],
                  status, said, report.get("trouble"), verdicts(report))


def memif(bench, native):
    """The same over a DPDK port."""
    path = os.path.join(bench.folder, f"memif{native}.sock")
    spec = f"dpdk:net_memif0,socket={path},socket-abstract=no"
    settings = {"FI_UET_PORT": spec + ",role=server", "FI_UET_ADDR": "10.78.0.1", "FI_UET_PDC_IDLE": "60s"}
    more = []
    if native:  # the profile says so, besides index and payload
        settings.update(FI_UET_CONFIG="profile:reference", FI_UET_RI=None, FI_UET_MAX_PAYLOAD=None)
        more = ["--native-ip", "--ri", "15", "--initiator", "16"]
    with bench.listen(**settings):
        status, said, report = bench.run(*KNOWS_ALL, *PATIENT, *more, "PDS-012", "PDS-157", "SES-012", "PDS-194",
                                         own="10.78.0.2", peer="10.78.0.1", port=spec + ",role=client")
    return expect(status == 0 and report["summary"]["pass"] == 5, status, said, report.get("trouble"), *failures(report))


def usage(bench):
    for arguments in ([], ["nowhere"], ["127.0.0.1", "--with", "wings"], ["127.0.0.1", "NO-SUCH-SCRIPT"],
                      ["127.0.0.1", "--patience", "soon"], ["127.0.0.1", "--with", "atomic", "--without", "rod,atomic"],
                      ["127.0.0.1", "--with", "crc", "--protect", "none"], ["127.0.0.1", "--with", "crc", "--keys", "none"],
                      ["127.0.0.1", "--with", "relative", "--absolute"], ["127.0.0.1", "--with", "initiator"],
                      ["127.0.0.1", "--with", "secured"], ["127.0.0.1", "--with", "memory"], ["127.0.0.1", "--with", "epoch"],
                      ["127.0.0.1", "--with", "two-keys"], ["127.0.0.1", "--mtu", "10"], ["127.0.0.1", "--prefix", "99"],
                      ["127.0.0.1", "--udp-port", "0"], ["127.0.0.1", "--address", "127.0.0.1"]):
        done = subprocess.run([bench.drill, *arguments], capture_output=True, text=True, timeout=30)
        if done.returncode != 2 or not done.stderr:
            return f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    for status, text, arguments in ((2, "one family", ["127.0.0.9", "--address", "::1"]),
                                    (2, "one family", ["::1", "--port", "udp:" + bench.own]),
                                    (1, "leave --native-ip out", [bench.peer, "--address", bench.own, "--native-ip"])):
        done = subprocess.run([bench.drill, *arguments, "PDS-012"], capture_output=True, text=True, timeout=30)
        if done.returncode != status or text not in done.stderr or "FI_UET" in done.stderr:
            return f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    for arguments in (["--halp"], ["7x"], ["-1"], ["0x"], [""], ["7", "8"]):
        done = subprocess.run([bench.listener, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
        if done.returncode != 2 or "Usage" not in done.stderr or done.stdout:
            return f"listener {arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
    helped = subprocess.run([bench.listener, "--help"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    if helped.returncode != 0 or "Usage" not in helped.stdout:
        return f"listener --help: {helped}"
    with temporary_folder() as empty:
        listed = subprocess.run([bench.drill, "--list", empty], capture_output=True, text=True, timeout=30)
        if listed.returncode != 2 or f"no scripts (*.drill) in {empty}" not in listed.stderr:
            return f"a folder without scripts: {listed}"
    for head, text in (("title Mine", "no line 'live' in its head"), ("live\ncontact\npatience soon", "in its head, 'patience soon'")):
        with temporary_folder() as folder:
            script = os.path.join(folder, "mine.drill")
            with open(script, "w", encoding="utf-8") as file:
                file.write(f"{head}\nwait 1ms\n")
            done = subprocess.run([bench.drill, bench.peer, "--address", bench.own, "--reach", "100ms", script], capture_output=True, text=True, timeout=30)
            if done.returncode != 1 or text not in done.stdout or "line 0" in done.stdout:
                return f"{head}: {done.returncode}\n{done.stdout}{done.stderr}"
    listed = subprocess.run([bench.drill, "--list", "SES-012"], capture_output=True, text=True, timeout=30)
    return expect(listed.returncode == 0 and len(listed.stdout.splitlines()) == 2, listed)


def main():
    need_provider(sys.argv[1])
    tap = Tap()
    with temporary_folder() as folder:
        bench = Bench(sys.argv[1:], folder)
        tap.result("the provider passes every script that applies", provider_passes(bench))
        tap.result("with keys it passes as well", provider_with_keys_passes(bench))
        tap.result("and where it challenges every opening", provider_that_challenges_passes(bench))
        tap.result("and with the retry limits of the specification", provider_with_limits_of_the_specification_passes(bench))
        tap.result("the provider lets an initiator start anew", provider_restarted_initiator(bench))
        tap.result("a listening program of which nothing is known", nothing_known(bench))
        tap.result("the options that a listening program prints", printed_options_fit(bench))
        tap.result("an endpoint that remembers an earlier run", numbers_of_an_earlier_run(bench))
        tap.result("a command of --initiate that fails", initiate_that_fails(bench))
        tap.result("options that do not fit", wrong_index(bench))
        tap.result("an endpoint that is not ready yet", reached_too_early(bench))
        tap.result("scripts that drive our own calls say so", own_calls(bench))
        tap.result("an endpoint that is not there", not_there(bench))
        tap.result("an endpoint that is silent", impostor(bench, lambda packet: []))
        tap.result("an endpoint that answers noise", impostor(bench, noise, says="bad-crc"))
        tap.result("the same without a CRC", impostor(bench, noise, ["--protect", "none"]))
        tap.result("--with and --without have the last word", lists_have_the_last_word(bench))
        tap.result("a listener names lines that it does not know", listener_names_wrong_lines(bench))
        tap.result("an endpoint that hangs up", hangs_up(bench))
        tap.result("wrong usage", usage(bench))
        for native in (False, True):
            name = "over a DPDK port, " + ("native IP and the profile of the reference" if native else "UDP")
            if os.path.exists(bench.plugin):
                tap.result(name, memif(bench, native))
            else:
                tap.skip(name, "built without DPDK")
    tap.finish()


main()
