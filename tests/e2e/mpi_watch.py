#!/usr/bin/env python3
"""uet-stat --watch on a job of eight MPI processes over a fabric: it shows which paths died, and costs the ranks next to nothing.

    mpi_watch.py [--no-kill] [--turns 3] PROVIDER-FOLDER DPDK-PLUG-IN UET-FABRIC UET-STAT MPI_STREAM.CC

uet-fabric says which spines each path of the job's busiest pair goes through. On a busy machine paths are given up now and then without a death, but
those of all spines alike: a spine is seen to be dead when at two looks in a row most of the paths that go through it are given up,
and few of those that do not touch it. With --no-kill none dies, and none may be seen.

A second is one of a machine with nothing else to do: it is over when the processes of the test have together used the processor time
that such a machine has in a second. A death that is seen late was still seen soon if the pair has sent little since: each pair finds out for itself,
with a timeout of a second, and while others do, this one may have nothing to send.
"""

import argparse
import collections
import os
import re
import statistics
import subprocess
import sys
import threading
import time

from fabric_run import Fabric, leaf_spine
from harness import Tap, need_provider, skip_all, temporary_folder

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "mpi"))

from open_mpi import compile_program, need_open_mpi, start_by_messages  # noqa: E402

RANKS, SPINES = 8, 4
FABRIC = leaf_spine(RANKS, SPINES, 40, 20, 1000)
PATIENCE = 120
PERIOD = 0.2  # seconds between two looks
PATHS = 64  # of each pair of ranks: a quarter of them goes through each spine
PACKETS = 500  # of the busiest pair before a spine dies; it keeps to a few paths while these are good
MOST, FEW = 0.6, 0.4  # shares of a spine's paths that are given up
LOOKS = 15  # without a death
RECENT = 10  # looks: what a path carried before does not say that it is good now
DEATH = 5  # seconds that a dead spine may stay unseen; mostly less than one
DEATH_PACKETS = 8 * PATHS  # of the pair, if it took longer
COST = 0.01  # seconds of a rank's time that one look may take: looking once a second then costs less than 1 %
TURN = 1.0  # seconds without a reader, which then looks twice
TICKS = os.sysconf("SC_CLK_TCK")
PROCESS = re.compile(r"^(\d+) (\S+)$")
ENDPOINT = re.compile(r"^  (\S+)  port ")
PEER = re.compile(r"^    peer (\S+) ")
PATH = re.compile(r"^      path +(\d+) plane \d+ (\w+) .*  sent (\d+) ")

Pair = collections.namedtuple("Pair", "process source destination")
Path = collections.namedtuple("Path", "state sent")
Turn = collections.namedtuple("Turn", "pairs processes")  # pairs: {Pair: {entropy value: Path}}


def processor_time(pids):
    """Seconds that these processes have run, on all processors together."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total / TICKS


def rank_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return int(dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)[b"OMPI_COMM_WORLD_LOCAL_RANK"])


class Watch:
    """uet-stat --watch, read as a person reads it: turn after turn."""

    def __init__(self, uet_stat, runtime, period):
        self.process = subprocess.Popen([uet_stat, "--watch", str(period), "--no-pdcs", "--paths"], stdout=subprocess.PIPE, text=True,
                                        stderr=subprocess.DEVNULL, env=dict(os.environ, XDG_RUNTIME_DIR=runtime))
        self.turn, self.count = None, 0
        self.came = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        pairs, processes, source, pair = collections.defaultdict(dict), [], None, None
        for line in self.process.stdout:
            line = line.rstrip("\n")
            if found := PROCESS.match(line):
                processes.append(int(found[1]))
            elif found := ENDPOINT.match(line):
                source = found[1]
            elif found := PEER.match(line):
                pair = Pair(processes[-1], source, found[1])
            elif found := PATH.match(line):
                pairs[pair][int(found[1])] = Path(found[2], int(found[3]))
            elif not line:
                with self.came:
                    self.turn = Turn(pairs, processes)
                    self.count += 1
                    self.came.notify_all()
                pairs, processes = collections.defaultdict(dict), []

    def until(self, condition, job):
        """The first turn from now on that fulfills the condition, or None."""
        end = time.monotonic() + PATIENCE
        with self.came:
            seen = self.count
            while time.monotonic() < end and job.process.poll() is None and self.process.poll() is None:
                if self.came.wait_for(lambda: self.count > seen, 1):
                    seen = self.count
                    if condition(self.turn):
                        return self.turn
        return None

    def looks(self, count, job, condition=lambda turn: False):
        """Whether the condition held at one of so many looks, or None when there were fewer."""
        left = iter(range(count, -1, -1))
        held = []
        last = self.until(lambda turn: held.append(condition(turn)) or next(left) <= 1, job)
        return any(held) if last else None

    def stop(self):
        self.process.terminate()
        self.process.wait()


def busiest_pair(turn):
    """The ranks of which one has sent most to the other; None as long as that is little."""
    sent = {pair: sum(path.sent for path in paths.values()) for pair, paths in turn.pairs.items()}
    pair = max(sent, key=sent.get, default=None)
    return pair if len(turn.processes) == RANKS and sent.get(pair, 0) >= PACKETS else None


class Spines:
    """Through which spine each path of a pair goes, there and back. Paths that are given up get new entropy values now and then."""

    def __init__(self, fabric, pair, legs):
        self.fabric, self.known = fabric, {}
        self.ways = [(legs[pair.source], pair.source, pair.destination), (legs[pair.destination], pair.destination, pair.source)]

    def of(self, entropies):
        new = [str(entropy) for entropy in entropies if entropy not in self.known]
        if new:
            there, back = [self.fabric.ctl("route", *way, *new)["route"] for way in self.ways]
            self.known.update((a["entropy"], (a["path"], b["path"])) for a, b in zip(there, back))
        return [self.known[entropy] for entropy in entropies]


class Fates:
    """Which paths of a pair are given up and which carry packets, as far as that is known."""

    def __init__(self):
        self.given_up, self.sent, self.used, self.count = {}, {}, {}, 0
        self.packets = 0  # since the first look

    def look(self, paths):
        """{entropy value: whether it is given up} of those that are known."""
        self.count += 1
        for entropy, path in paths.items():
            before = self.sent.get(entropy, 0)
            if path.sent != before:
                self.packets += path.sent - (before if path.sent > before else 0)  # less: the PDCs of the pair were closed between
                self.sent[entropy], self.used[entropy] = path.sent, self.count
            if path.state == "evicted":
                self.given_up[entropy] = True
            elif path.state == "good" and self.count - self.used.get(entropy, -RECENT) < RECENT:
                self.given_up[entropy] = False
            elif path.state == "good" or not self.given_up.get(entropy):  # returning: given up, unless it was only not heard of
                self.given_up.pop(entropy, None)
        return self.given_up


class Verdict:
    """Sees which spine is dead: at two looks in a row most of the known paths that go there through it are given up, and few of those that
    do not touch it."""

    def __init__(self, pair, spines):
        self.pair, self.spines, self.fates, self.last, self.shares = pair, spines, Fates(), None, {}

    def look(self, turn):
        """The spine that is seen to be dead, or None."""
        given_up = self.fates.look(turn.pairs[self.pair])
        ways = list(zip(self.spines.of(given_up), given_up.values()))
        self.shares = {spine: (self.share([bad for (there, _), bad in ways if there == spine]),
                               self.share([bad for both, bad in ways if spine not in both])) for spine in {there for (there, _), _ in ways}}
        dead = next((spine for spine, (through, beside) in self.shares.items() if through >= MOST and beside <= FEW), None)
        is_sure, self.last = dead == self.last, dead
        return dead if is_sure else None

    @staticmethod
    def share(given_up):
        return sum(given_up) / len(given_up) if given_up else 0

    def busiest(self, turn):
        """The spine with the most paths that are in use."""
        paths = [entropy for entropy, path in turn.pairs[self.pair].items() if path.sent > 0]
        return collections.Counter(there for there, _ in self.spines.of(paths)).most_common(1)[0][0]

    def told(self):
        return ", ".join(f"{spine} {through:.0%} and {beside:.0%} of the others" for spine, (through, beside) in sorted(self.shares.items()))


class Clock:
    """Seconds of a machine with nothing else to do."""

    def __init__(self, pids):
        self.pids, self.used = pids, processor_time(pids)

    def alone(self):
        """The ranks and the fabric never rest, so such a machine has them on all its processors."""
        return (processor_time(self.pids) - self.used) / min(os.cpu_count(), RANKS + 1)


def looking_time(ranks):
    """Seconds that the ranks' threads which answer uet-stat have run."""
    total = 0
    for pid in ranks:
        for task in os.listdir(f"/proc/{pid}/task"):
            folder = f"/proc/{pid}/task/{task}"
            with open(f"{folder}/comm") as comm, open(f"{folder}/schedstat") as schedstat:
                if comm.read().strip() == "uet-stat":
                    total += int(schedstat.read().split()[0]) / 1e9
    return total


def show_death(tap, fabric, watch, job, kills):
    before = watch.until(busiest_pair, job)
    tap.result("all ranks and the paths of the busiest pair are seen", "" if before else job.report(job.process.poll()))
    if not before:
        return None
    pair = busiest_pair(before)
    verdict = Verdict(pair, Spines(fabric, pair, {source: f"host{rank_of(process)}" for process, source, _ in before.pairs}))
    seen = watch.looks(LOOKS, job, verdict.look)
    tap.result("no spine looks dead as long as none is", "" if seen is False else verdict.told() if seen else job.report(job.process.poll()))
    clock = Clock([*before.processes, watch.process.pid, fabric.job.process.pid])
    if not kills:
        seen = watch.looks(2 * LOOKS, job, verdict.look)
        tap.result("none dies, and none is seen", "" if seen is False else verdict.told())
        return before.processes
    spine = verdict.busiest(watch.turn)
    sent = verdict.fates.packets
    fabric.ctl("kill", spine)
    seen = watch.until(lambda turn: verdict.look(turn) == spine, job)
    took, sent = clock.alone(), verdict.fates.packets - sent
    fabric.ctl("heal", spine)
    told = f"{took:.2f} s of this machine alone and {sent} packets"
    print(f"# {spine} dead: given up {verdict.told()}, after {told}")
    tap.result("the death of a spine is seen", "" if seen else verdict.told() + job.report(job.process.poll()))
    tap.result("soon", "" if took <= DEATH or sent <= DEATH_PACKETS else told)
    return before.processes


def bytes_sent(fabric):
    return sum(leg["tx_bytes"] for leg in fabric.ctl("legs")["legs"])


def show_cost(tap, fabric, uet_stat, runtime, job, ranks, turns):
    """What a look takes of a rank's time is judged. Rates, with a reader that looks once a second and without, are told only: on most machines
    they differ by more than one per cent from second to second."""
    rates, taken, looks = {True: [], False: []}, 0, 0
    for is_watched in [False, True] * turns:
        watch = Watch(uet_stat, runtime, 1) if is_watched else None
        if watch and not watch.until(lambda turn: True, job):
            break
        before, begin, used = bytes_sent(fabric), time.monotonic(), looking_time(ranks)
        if watch:
            first = watch.count
            watch.looks(1, job)
            taken, looks = taken + looking_time(ranks) - used, looks + watch.count - first
        else:
            time.sleep(TURN)
        rates[is_watched].append((bytes_sent(fabric) - before) / (time.monotonic() - begin))
        if watch:
            watch.stop()
    cost = taken / (len(ranks) * looks) if looks else 0
    if all(rates.values()):
        with_reader, without = sorted(rates[True]), sorted(rates[False])
        print(f"# rate with a reader to rate without: {statistics.median(with_reader) / statistics.median(without):.3f}; turns without differ by a "
              f"factor of {without[-1] / without[0]:.2f} among each other")
    print(f"# a look takes {1e6 * cost:.0f} us of a rank's time")
    tap.result("a look takes less than one per cent of a second", "" if 0 < cost < COST else f"{cost} s at {looks} looks")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--no-kill", dest="kills", action="store_false")
    parser.add_argument("--turns", type=int, default=3, help="with and without a reader; many tell how the rates differ")
    parser.add_argument("files", nargs=5)
    options = parser.parse_args()
    provider, plugin, uet_fabric, uet_stat, source = options.files
    need_provider(provider)
    need_open_mpi()
    if not os.path.exists(plugin):
        skip_all("built without DPDK")
    tap = Tap()
    with temporary_folder() as folder:
        fabric = Fabric(uet_fabric, folder, FABRIC, RANKS)
        runtime = os.path.join(folder, "run")
        os.mkdir(runtime, 0o700)
        stop = os.path.join(folder, "stop")
        job, _ = start_by_messages(provider, compile_program(source, folder), folder, RANKS, [stop], **{
            "FI_UET_PORT": fabric.port("%r"), "FI_UET_ADDR": "10.79.0.1%r", "FI_UET_TRACE": "",
            "FI_UET_LINK_MBPS": 40, "FI_UET_BASE_RTT": "10ms", "FI_UET_TRIMMING": 1, "FI_UET_PATHS": PATHS, "FI_UET_LB": "bitmap",
            # On a crowded machine ranks answer late, and that must not look like a loss: what is lost shows in what overtakes it.
            "FI_UET_RTO_INIT": "1s", "FI_UET_RTO_MAX": "1s", "XDG_RUNTIME_DIR": runtime})
        watch = Watch(uet_stat, runtime, PERIOD)
        try:
            ranks = show_death(tap, fabric, watch, job, options.kills)
            watch.stop()
            if ranks:
                show_cost(tap, fabric, uet_stat, runtime, job, ranks, options.turns)
            open(stop, "w").close()
            status = job.wait(PATIENCE)
            ok = status == 0 and job.output()[0].count(": 0 wrong") == RANKS
            tap.result("every message arrives in order, and every sum is right", "" if ok else job.report(status))
        finally:
            watch.stop()
            job.kill()
            fabric.stop()
    tap.finish()


main()
