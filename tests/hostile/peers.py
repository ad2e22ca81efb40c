#!/usr/bin/env python3
"""Enemies, dead and stopped peers of real processes: no process crashes, and honest ones hardly notice.

    peers.py PROVIDER-FOLDER ENEMY LURE UET-STAT [FAULTS-LIBRARY]

Once these silenced or ended a process, or delivered a message twice. Virtual time says more, and faster: see docs/security.md for
the tests that hold each promise. UET_TEST_DEPTH=long also waits where a fault needs a minute to show.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "e2e"))

from harness import Job, Tap, base_env, need_provider, own_addresses, temporary_folder  # noqa: E402

SLOW = 20.0  # seconds; the faults were of 57 and more, an honest peer waits milliseconds
RESTLESS = 5000  # wake-ups a second; the fault had 10,000, retransmissions to silent enemies take some hundreds
IS_LONG = os.environ.get("UET_TEST_DEPTH") == "long"


class Stage:
    """The victim, and the peers that are told to deal with it. Every process has an address of its own."""

    def __init__(self, provider, enemy, lure, stat, folder):
        self.provider, self.enemy, self.lure, self.stat, self.folder = provider, enemy, lure, stat, folder
        # Made here: without it uet-stat looks where other processes of this user may be.
        os.makedirs(os.path.join(folder, "run", "uet"), 0o700)
        self.addresses = own_addresses(12).split("|")
        self.jobs = []
        self.victim, self.name = None, ""
        self.more = {}  # of the environment

    def start(self, command, address=None, stdin=subprocess.DEVNULL):
        env = base_env(self.provider, FI_UET_JOB=2, FI_UET_RI=7, XDG_RUNTIME_DIR=os.path.join(self.folder, "run"), **self.more)
        if address:
            env["FI_UET_ADDR"] = address
        job = Job(command, env, self.folder, f"{len(self.jobs)}-{os.path.basename(command[0])}-{command[1]}", stdin=stdin)
        self.jobs.append(job)
        return job

    def serve(self, *enemies):
        self.victim = self.start([self.lure, "serve", *enemies], self.addresses[0], subprocess.PIPE)
        end = time.monotonic() + 20
        while not self.name:
            assert time.monotonic() < end and self.victim.process.poll() is None, self.victim.report(None)
            time.sleep(0.02)
            self.name = self.victim.output()[0].strip()

    def talk(self, which, count, pause_ms, size=64):
        return self.start([self.lure, "talk", self.name, str(count), str(pause_ms), str(size)], self.addresses[which])

    def read(self, which, count, size, depth):
        return self.start([self.lure, "read", self.name, str(count), str(size), str(depth)], self.addresses[which])

    def attack(self, what, *arguments, victim=0):
        return self.start([self.enemy, what, self.addresses[victim], *map(str, arguments)])

    def look(self, job):
        """Its endpoint as uet-stat shows it, or nothing while it has none."""
        env = dict(os.environ, XDG_RUNTIME_DIR=os.path.join(self.folder, "run"))
        shown = subprocess.run([self.stat, "--json", "-p", str(job.process.pid)], env=env, capture_output=True, text=True, timeout=60)
        processes = json.loads(shown.stdout or "[]")
        return processes[0]["endpoints"][0] if processes and processes[0]["endpoints"] else None

    def count(self, job, event):
        endpoint = self.look(job)
        return endpoint["events"].get(event, 0) if endpoint else 0

    def wait_until(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition():
            ended = [job.report(job.process.poll()) for job in self.jobs if job.process.poll() is not None]
            assert not ended and time.monotonic() < end, "\n".join([f"never: {what}", *ended])
            time.sleep(0.05)

    def wakeups(self, seconds=1.0):
        """Of the victim's threads, a second."""
        def count():
            folder = f"/proc/{self.victim.process.pid}/task"
            return sum(int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", open(f"{folder}/{t}/status").read(), re.M)[1])
                       for t in os.listdir(folder))
        before, begin = count(), time.monotonic()
        time.sleep(seconds)
        return (count() - before) / (time.monotonic() - begin)

    def end(self):
        """What the victim says at its end, as numbers by name."""
        self.victim.process.stdin.close()
        status = self.victim.wait(30)
        assert status == 0, self.victim.report(status)
        words = self.victim.output()[0].split("\n")[1].split()
        print("#", " ".join(words))
        return dict(zip(words[::2], map(int, words[1::2])))

    def kill(self):
        for job in self.jobs:
            job.kill()


def slowest(job, seconds=120):
    """Of the operations of a `talk` or `read` that succeeded in all of them."""
    status = job.wait(seconds)
    assert status == 0, job.report(status)
    text = job.output()[0].strip().split("\n")[-1]
    print(f"# {job.name}: {text}")
    found = re.fullmatch(r"\w+ (\d+) failed (\d+) slowest ([\d.]+) s", text)
    assert found and found[2] == "0", text
    return float(found[3])


def done(job, seconds=120):
    status = job.wait(seconds)
    assert status == 0, job.report(status)
    return job.output()[0]


def all_arrived(stage):
    """Each message of honest peers once."""
    numbers = stage.end()
    assert numbers["received"] > 0 and numbers["duplicates"] == 0 and numbers["missing"] == 0, numbers


def one_forged_opening(stage):
    stage.serve()
    text = done(stage.attack("opening", stage.addresses[1], 70 if IS_LONG else 3))
    print("#", text.strip())
    packets, came, went = map(int, re.fullmatch(r"in (\d+) packets (\d+) bytes, out (\d+) bytes\n", text).groups())
    assert 1 <= packets <= 3, text
    assert came <= 2 * went, text


def nacks_for_a_close(stage):
    """A target that never sent data was asked to send its Close Request again, and looked for a congestion context."""
    stage.serve()
    done(stage.attack("nacks", stage.addresses[1]))
    assert slowest(stage.talk(2, 20, 1)) < SLOW
    all_arrived(stage)


def flood(stage, what, count, size=64):
    """A peer that was there before the flood, and one that comes with it."""
    stage.serve()
    known = stage.talk(1, 80, 20, size)
    time.sleep(0.3)
    attack = stage.attack(what, count)
    newcomer = stage.talk(2, 40, 20, size)
    done(attack)
    late = stage.talk(3, 10, 10, size)
    for job in (known, newcomer, late):
        assert slowest(job) < SLOW
    all_arrived(stage)


def dead_reader(stage):
    stage.serve()
    dead = stage.read(1, 1_000_000, 1 << 20, 64)
    end = time.monotonic() + 20
    while "reading" not in dead.output()[0] and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.3)
    dead.kill()
    assert slowest(stage.read(2, 200, 64 * 1024, 4)) < SLOW
    assert slowest(stage.talk(3, 20, 1)) < SLOW
    stage.end()


def small_reads(stage):
    """ACKs may be told to carry no data: then small reads are answered otherwise."""
    stage.more = {"FI_UET_PDS": "Max_ACK_Data_Size=0"}
    stage.serve()
    slowest(stage.read(1, 100, 8, 4))
    stage.end()


def forged_acks(stage):
    """The receiver stands still while a stranger acknowledges what it never had."""
    stage.serve()
    stage.victim.process.send_signal(signal.SIGSTOP)
    sender = stage.talk(1, 3, 1)
    time.sleep(0.5)
    print("#", done(stage.attack("acks", stage.addresses[0], victim=1)).strip())
    stage.victim.process.send_signal(signal.SIGCONT)
    slowest(sender)
    all_arrived(stage)


def learning_enemy(stage):
    """It uses what the answers teach; the victim calls it, so it is the target of PDCs too."""
    enemies = stage.addresses[4:7]
    stage.serve(*enemies)
    honest = stage.talk(1, 100, 20, 20_000)
    print("#", done(stage.attack("learn", enemies[0], 100 if IS_LONG else 4, 4793), 600).strip())
    slowest(honest)
    rate = stage.wakeups()
    print(f"# {rate:.0f} wake-ups a second")
    assert rate < RESTLESS, rate
    all_arrived(stage)


def failing_calls(stage, library):
    """Of the calls that move packets or wait for them one in ten fails, and one in ten does half of its work, in all processes."""
    stage.more = {"LD_PRELOAD": library, "UET_TEST_FAULTS": 10}
    stage.serve()
    jobs = [stage.talk(1, 200, 1, 20_000), stage.talk(2, 200, 1, 100), stage.read(3, 100, 100_000, 4)]
    for job in jobs:
        assert slowest(job) < SLOW
    all_arrived(stage)


def stopped_sender(stage, library):
    """The ACKs of one message are lost, and its sender stands still until the receiver has forgotten their PDC: a message that may
    have arrived is not sent again, whatever became of the PDC."""
    mute = os.path.join(stage.folder, "mute")
    stage.more = {"LD_PRELOAD": library, "UET_TEST_MUTE": mute}
    stage.serve()
    stage.more = {}
    sender = stage.talk(1, 10, 500)
    stage.wait_until("a message was acknowledged", lambda: stage.count(sender, "message-completed") > 0)
    open(mute, "w").close()
    repeated = stage.count(sender, "retransmitted")
    stage.wait_until("a message arrived and its ACK was lost", lambda: (
        stage.count(sender, "retransmitted") > repeated
        and stage.count(stage.victim, "message-delivered") > stage.count(sender, "message-completed")))
    sender.process.send_signal(signal.SIGSTOP)
    os.unlink(mute)
    time.sleep(66)
    pdcs = stage.look(stage.victim)["pdcs"]
    assert not pdcs, f"the receiver still has {pdcs}"
    sender.process.send_signal(signal.SIGCONT)
    print("#", done(sender).strip())
    numbers = stage.end()
    assert numbers["received"] == 10 and numbers["duplicates"] == 0 and numbers["missing"] == 0, numbers


def main():
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    provider, enemy, lure, stat = sys.argv[1:5]
    need_provider(provider)
    tap = Tap()
    tests = {
        "one forged opening draws at most three packets": one_forged_opening,
        "NACKs for a Close Request": nacks_for_a_close,
        "960 forged openings": lambda s: flood(s, "openings", 960),
        "4,160 forged packets whose answers are kept": lambda s: flood(s, "answers", 4160),
        "16,384 READs that begin and do not go on": lambda s: flood(s, "reads", 16384, 50_000),
        "a reader is killed with 64 reads open": dead_reader,
        "small reads where ACKs carry no data": small_reads,
        "131,070 forged ACKs while the receiver stands still": forged_acks,
        "an enemy that learns": learning_enemy,
    }
    if len(sys.argv) == 6:
        tests["system calls fail in every process"] = lambda s: failing_calls(s, sys.argv[5])
    if len(sys.argv) == 6 and IS_LONG:
        tests["one lost ACK and a sender that stands still for 66 s"] = lambda s: stopped_sender(s, sys.argv[5])
    for name, test in tests.items():
        with temporary_folder() as folder:
            stage = Stage(provider, enemy, lure, stat, folder)
            try:
                test(stage)
                problem = ""
            except AssertionError as e:
                problem = str(e) or "see above"
            finally:
                stage.kill()
            tap.result(name, problem)
    tap.finish()


if __name__ == "__main__":
    main()
