#!/usr/bin/env python3
"""Looking at endpoints while they run, and what they say of peers that do not fit.

    stat.py PROVIDER-FOLDER UET-PERF UET-STAT UET-KEYS
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

from harness import Job, Tap, base_env, free_port, need_provider, own_addresses, temporary_folder


class Pair:
    """uet-perf at work between two processes, until it is closed."""

    def __init__(self, bench, server=None, client=None, arguments=("send", "--size", "16k")):
        self.folder = pathlib.Path(bench.folder)
        port = str(free_port())
        addresses = own_addresses(2).split("|")
        env = [base_env(bench.provider, **{"FI_UET_ADDR": a, "XDG_RUNTIME_DIR": bench.runtime, **(extra or {})})
               for a, extra in zip(addresses, (server, client))]
        bench.number += 1
        self.addresses = addresses
        self.jobs = [Job([bench.perf, "fabric", "--control-port", port, "--timeout", "90"], env[0], bench.folder,
                         f"server{bench.number}")]
        self.jobs[0].wait_until_it_listens(int(port))
        self.jobs.append(Job([bench.perf, "fabric", *arguments, "--count", "100000000", "--runs", "1", "--peer", "127.0.0.1",
                              "--control-port", port, "--timeout", "90"], env[1], bench.folder, f"client{bench.number}"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for job in self.jobs:
            job.kill()


class Bench:
    def __init__(self, provider, perf, stat, folder):
        self.provider, self.perf, self.stat, self.folder, self.number = provider, perf, stat, folder, 0
        self.runtime = os.path.join(folder, "run")
        os.mkdir(self.runtime, 0o700)
        # Made here: without it uet-stat looks where other processes of this user may be.
        self.sockets = os.path.join(self.runtime, "uet")
        os.mkdir(self.sockets, 0o700)

    def ask(self, *arguments):
        env = dict(os.environ, XDG_RUNTIME_DIR=self.runtime)
        return subprocess.run([self.stat, *arguments], env=env, capture_output=True, text=True, timeout=60)

    def until(self, condition, seconds=60):
        """The first answer of all processes that fulfils the condition, or nothing."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            processes = json.loads(self.ask("--json").stdout or "[]")
            if condition(processes):
                return processes
            time.sleep(0.1)
        return None


def events(process, name):
    return sum(e["events"].get(name, 0) for e in process["endpoints"])


def both_at_work(processes):
    return len(processes) == 2 and all(events(p, "packet-sent") > 100 for p in processes)


def shows_both(bench):
    with Pair(bench) as pair:
        seen = bench.until(both_at_work)
        if seen is None:
            return pair.jobs[0].report(None) + pair.jobs[1].report(None) + bench.ask().stdout
        if {p["pid"] for p in seen} != {j.process.pid for j in pair.jobs}:
            return f"pids {[p['pid'] for p in seen]}"
        endpoints = {e["address"]: e for p in seen for e in p["endpoints"]}
        if set(endpoints) != set(pair.addresses):
            return f"addresses {set(endpoints)}"
        client = endpoints[pair.addresses[1]]
        if client["pdcs"][0]["state"] != "ESTABLISHED" or client["contexts"][0]["peer"] != pair.addresses[0]:
            return f"{client['pdcs']} {client['contexts']}"
        later = bench.until(lambda p: both_at_work(p) and all(
            events(a, "packet-sent") > events(b, "packet-sent") for a, b in zip(sorted(p, key=lambda x: x["pid"]),
                                                                                sorted(seen, key=lambda x: x["pid"]))))
        if later is None:
            return "the counters stand still"
        text = bench.ask("--watch", "0.2", "-c", "2", "--paths").stdout
        if "/s)" not in text or pair.addresses[0] not in text or "path " not in text:
            return text
        metrics = bench.ask("--prometheus").stdout
        if "uet_events_total{" not in metrics:
            return metrics
        lines = [json.loads(line) for line in bench.ask("--events", "-p", str(pair.jobs[0].process.pid)).stdout.splitlines()]
        if len(lines) < 100 or lines[0]["address"] != pair.addresses[0] or "event" not in lines[1]:
            return f"{len(lines)} events, {lines[:2]}"
        mode = [os.stat(self_path).st_mode & 0o777 for self_path in
                [bench.sockets, *(os.path.join(bench.sockets, n) for n in os.listdir(bench.sockets))]]
        return "" if mode == [0o700, 0o600, 0o600] else f"modes {[oct(m) for m in mode]}"


def stopped_processes(bench):
    """Only the one that was asked for is waited for, and one that is silent is no missing one."""
    with Pair(bench) as pair:
        if bench.until(both_at_work) is None:
            return pair.jobs[1].report(None)
        pids = [str(job.process.pid) for job in pair.jobs]
        for job in pair.jobs:
            job.process.send_signal(signal.SIGSTOP)
        for forms, pid in ((["-p", pids[0]], pids[0]), (["--events", "-p", pids[0]], pids[0]), (["--events"], "")):
            took = []
            while not took or pid and took[-1] > 3.9 and len(took) < 4:  # a busy machine makes some longer
                begin = time.monotonic()
                done = bench.ask(*forms)
                took.append(time.monotonic() - begin)
                complaints = done.stderr.splitlines()
                if done.returncode != 1 or len(complaints) != (1 if pid else 2) or any(
                        f"/{pid}" not in line or "is the process stopped?" not in line for line in complaints):
                    return f"{forms}: {done}"
            if pid and took[-1] > 3.9:
                return f"{forms} took {took} s"
        none = bench.ask("-p", "1")
        return "" if none.returncode == 1 and "no live endpoint in process 1 " in none.stderr and "stopped" not in none.stderr else str(none)


def shows_lost_records(bench):
    """A full disk is told once for each file, and what is missing there stands among the counters."""
    full = {"FI_UET_TRACE": "/dev/full", "FI_UET_PATH_LOG": "/dev/full", "FI_UET_PCAP": "/dev/full,snap=256"}
    with Pair(bench, client=full) as pair:
        def is_shown(processes):
            lost = {p["pid"]: p.get("not_written", []) for p in processes}
            server, client = (lost.get(job.process.pid, []) for job in pair.jobs)
            return not server and len(client) >= 2  # the path log has a line a second
        if bench.until(is_shown) is None:
            return pair.jobs[1].report(None) + bench.ask("--json").stdout
        text = bench.ask("-p", str(pair.jobs[1].process.pid)).stdout
        if not re.search(r"not written: [0-9]+ records of /dev/full: No space left on device", text):
            return text
        said = pair.jobs[1].output()[1].count("cannot write /dev/full: No space left on device")
        return "" if 2 <= said <= 3 else f"said {said} times"


def sockets_go(bench):
    """With a process that ends by itself at once, with a killed one when it is looked for."""
    left = bench.ask()
    names = os.listdir(bench.sockets)
    return "" if left.returncode == 1 and "no live endpoint" in left.stderr and "XDG_RUNTIME_DIR" in left.stderr and not names else f"{left} {names}"


def nothing_to_show(bench):
    """The same status whatever the form; --watch waits for endpoints."""
    for form, printed in ("--json", "[]\n"), ("--prometheus", ""), ("--events", ""):
        done = bench.ask(form)
        if done.returncode != 1 or done.stdout != printed or "no live endpoint" not in done.stderr:
            return f"{form}: {done}"
    watched = bench.ask("--watch", "0.05", "-c", "2")
    if watched.returncode != 0 or watched.stdout.count("no live endpoint") != 2:
        return str(watched)
    both = bench.ask("--events", "--json")
    return "" if both.returncode == 2 else str(both)


def explains(bench):
    """Drops and events, without an endpoint."""
    one, all_of_them, unknown = bench.ask("--explain", "bad-crc"), bench.ask("--explain"), bench.ask("--explain", "bad-luck")
    if one.returncode != 0 or one.stdout not in all_of_them.stdout or not one.stdout.startswith("drop bad-crc: "):
        return f"{one} {all_of_them}"
    return "" if unknown.returncode == 2 and "bad-luck" in unknown.stderr else str(unknown)


def shows_impairment(bench):
    """What FI_UET_IMPAIR did stands among the gauges of that endpoint, also behind a capture, and of no other."""
    setting = {"FI_UET_IMPAIR": "tx_reorder=0.05", "FI_UET_PCAP": os.path.join(bench.folder, "impaired.pcapng,snap=256,files=1,size=1M")}
    with Pair(bench, client=setting) as pair:
        def is_shown(processes):
            gauges = {p["pid"]: p["endpoints"][0]["gauges"] for p in processes if p["endpoints"]}
            server, client = (gauges.get(job.process.pid, {}) for job in pair.jobs)
            return server and "impaired_tx_reordered" not in server and client.get("impaired_tx_reordered", 0) > 0
        return "" if bench.until(is_shown) else pair.jobs[1].report(None) + bench.ask("--json").stdout


def folder_of_others(bench):
    """A folder that others can enter is not used: the sockets are in the next one that this user may have."""
    def is_at_work(job):
        shown = json.loads(bench.ask("--json", "-p", str(job.process.pid)).stdout or "[]")
        return any(events(process, "packet-sent") > 100 for process in shown)

    os.chmod(bench.sockets, 0o755)
    try:
        with Pair(bench) as pair:
            end = time.monotonic() + 60
            while not all(is_at_work(job) for job in pair.jobs):
                ended = [job.report(job.process.poll()) for job in pair.jobs if job.process.poll() is not None]
                if ended or time.monotonic() > end:
                    return "\n".join(ended) or f"at work nowhere, and here {os.listdir(bench.sockets)}"
                time.sleep(0.1)
            return f"in a folder with mode 0755: {os.listdir(bench.sockets)}" if os.listdir(bench.sockets) else ""
    finally:
        os.chmod(bench.sockets, 0o700)


def last_words(bench, number):
    """Counters after a signal, in a line of their own. Other libraries leave files of their own in the working folder at a crash."""
    os.chdir(bench.folder)
    trace = os.path.join(bench.folder, f"trace{number}")
    # Debian's libfabric brings libinfinipath, whose handler of these signals calls exit() and may wait for itself there.
    quiet = {"IPATH_NO_BACKTRACE": "1", "HFI_NO_BACKTRACE": "1"}
    with Pair(bench, client={"FI_UET_TRACE": trace, **quiet}) as pair:
        if bench.until(both_at_work) is None:
            return pair.jobs[1].report(None)
        pair.jobs[1].process.send_signal(number)
        status = pair.jobs[1].wait(20)
        if status in (None, 0):
            return f"exit status {status}"
    for line in open(trace, errors="replace"):
        if line.startswith('{"signal"'):
            words = json.loads(line)
            sent = words["events"].get("packet-sent", 0)
            return "" if words["signal"] == number and sent > 100 else line
    return f"no counters in {os.path.getsize(trace)} bytes"


def is_told(bench, server, client, text, arguments=("send", "--size", "16k")):
    """Within a second or two on an idle machine, and once; a crowded one has half a minute."""
    with Pair(bench, server, client, arguments) as pair:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if text in pair.jobs[1].output()[1]:
                time.sleep(2.5)  # two more checks
                said = sum(line.startswith("uet: ") and text in line for line in pair.jobs[1].output()[1].splitlines())
                return "" if said == 1 else f"said {said} times"
            time.sleep(0.1)
        return pair.jobs[1].report(None)


def gets_through(bench, server, client):
    """Many times what leaves before an answer of the destination's congestion control."""
    with Pair(bench, server, client, ("send", "--size", "64k")) as pair:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            shown = json.loads(bench.ask("--json", "-p", str(pair.jobs[1].process.pid)).stdout or "[]")
            if any(events(process, "packet-sent") > 20000 for process in shown):
                return ""
            time.sleep(0.2)
        return pair.jobs[1].report(None)


def no_memif_server(bench):
    """Both ends are clients of one socket. Nothing to try where there is no DPDK."""
    if not os.path.exists(os.path.join(bench.provider, "../lib/dpdk/libuet-dpdk.so")):
        return ""
    port = f"dpdk:net_memif0,role=client,socket-abstract=no,socket={bench.folder}/absent.sock"
    ends = [{"FI_UET_PORT": port, "FI_UET_ADDR": f"10.78.0.{n}"} for n in (1, 2)]
    return is_told(bench, *ends, f"has no link: is there a process with the other role at its socket? Here FI_UET_PORT is {port}")


def main():
    provider, perf, stat, uet_keys = map(os.path.abspath, sys.argv[1:])
    need_provider(provider)
    tap = Tap()
    with temporary_folder() as folder:
        bench = Bench(provider, perf, stat, folder)
        tap.result("both ends of a benchmark at work", shows_both(bench))
        tap.result("what FI_UET_IMPAIR did is shown", shows_impairment(bench))
        tap.result("stopped processes", stopped_processes(bench))
        tap.result("what a full disk has no room for is told and shown", shows_lost_records(bench))
        tap.result("sockets of processes that are gone go too", sockets_go(bench))
        tap.result("no endpoint to show", nothing_to_show(bench))
        tap.result("a drop is explained", explains(bench))
        tap.result("a folder that others can enter is not used", folder_of_others(bench))
        for number in (signal.SIGTERM, signal.SIGSEGV):
            tap.result(f"counters reach the trace at {number.name}", last_words(bench, number))
        tap.result("a peer without CRC is named", is_told(bench, {"FI_UET_PROTECT": "none"}, None, "packets with a wrong CRC"))
        tap.result("a peer on another UDP port is named",
                   is_told(bench, {"FI_UET_UDP_PORT": "4999"}, None, "with FI_UET_UDP_PORT 4793 as here"))
        keys = os.path.join(folder, "keys.json")
        subprocess.run([uet_keys, "new", "--out", keys, "--state-dir", os.path.join(folder, "keys.state")], check=True,
                       capture_output=True, timeout=60)
        tap.result("a peer that does not encrypt is named", is_told(bench, None, {"FI_UET_KEYS": keys}, "and with the same FI_UET_KEYS?"))
        tap.result("a memif without a peer at its socket is named", no_memif_server(bench))
        tap.result("a source with credit reaches a peer with a window", gets_through(bench, {}, {"FI_UET_CC": "rccc"}))
        tap.result("a source with a window reaches a peer with credit", gets_through(bench, {"FI_UET_CC": "rccc"}, {}))
        tap.result("an address of another family is refused at once",
                   is_told(bench, None, {"FI_UET_ADDR": "::1"}, "is not of the family of our own address"))
    tap.finish()


main()
