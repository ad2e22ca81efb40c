#!/usr/bin/env python3
"""Unmodified libfabric programs with FI_UET_KEYS set and nothing else changed: over UDP and memif, through rotations, and
against peers with another key, with none, and in clear.

    secure.py PROVIDER-FOLDER DPDK-PLUG-IN UET-KEYS UET-DUMP OPEN-DOMAIN
"""

import itertools
import json
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

from harness import Job, Tap, base_env, free_port, need_program, need_provider, own_addresses, pingpong, temporary_folder


class Keys:
    """One folder with a key file, as one user would have it."""

    def __init__(self, program, folder, name="keys", *options):
        self.program = program
        self.path = os.path.join(folder, f"{name}.json")
        self.run("new", "--out", self.path, "--state-dir", os.path.join(folder, f"{name}.state"), *options)

    def run(self, command, *arguments):
        done = subprocess.run([self.program, command, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"uet-keys {command}: {done.stderr}")
        return done.stdout


def memif_ends(folder, extra, addresses=("10.77.0.1", "10.77.0.2")):
    memif_ends.count += 1
    port = f"dpdk:net_memif0,socket={folder}/memif{memif_ends.count}.sock,socket-abstract=no,role="
    return [{"FI_UET_PORT": port + role, "FI_UET_ADDR": address, **extra}
            for role, address in zip(("server", "client"), addresses)]


memif_ends.count = 0


def lines_of(dump, capture, *options):
    done = subprocess.run([dump, "--json", *options, str(capture)], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def uet_layers(packet):
    return [layer["layer"] for layer in packet["layers"] if layer["layer"] not in ("eth", "sll", "ipv4", "ipv6", "udp")]


# Covers: TSS-T18
def captured(tap, provider, dump, keys, folder):
    """What a tap on the wire sees, and what the owner of a key log sees."""
    settings = {"FI_UET_ADDR": own_addresses(2), "FI_UET_KEYS": keys.path, "FI_UET_PCAP": f"{folder}/%p.pcapng",
                "FI_UET_KEY_LOG": f"{folder}/%p.keylog"}
    tap.result("with capture and key log", pingpong(folder, provider, settings, settings, ["-S", "20000", "-I", "20"]))
    captures = sorted(pathlib.Path(folder).glob("*.pcapng"))
    logs = sorted(pathlib.Path(folder).glob("*.keylog"))
    loud = all("WARNING" in open(f"{folder}/{end}.err").read() for end in ("server", "client"))
    tap.result("key log: one each, private, and said so", "" if len(logs) == 2 and loud
               and all(os.stat(log).st_mode & 0o777 == 0o600 for log in logs) else f"{logs} {loud}")
    if not captures or not logs:
        return
    packets = lines_of(dump, captures[0])
    wrong = [p for p in packets if uet_layers(p) != ["tss", "cipher", "icv"]]
    tap.result("no packet shows more than its TSS header", "" if packets and not wrong else f"{len(packets)}: {wrong[:1]}")
    opened = [p for p in lines_of(dump, captures[0], "--keys", str(logs[0])) if "pds" in uet_layers(p)]
    tap.result("uet-dump --keys opens every one", "" if len(opened) == len(packets) else f"{len(opened)} of {len(packets)}")


def rotation(provider, keys, folder):
    """Two rotations while two processes talk. What went wrong, or nothing."""
    problems = []
    settings = {"FI_UET_ADDR": own_addresses(2), "FI_UET_KEYS": keys.path, "FI_UET_TRACE": f"{folder}/%p.trace"}

    def turn_keys():
        try:
            for _ in range(2):
                for command in (["rotate"], ["rotate", "--switch"], ["retire"]):
                    keys.run(command[0], keys.path, *command[1:])
                    time.sleep(3.5)  # the endpoints look once a second, on a busy machine later
        except RuntimeError as e:
            problems.append(str(e))

    thread = threading.Thread(target=turn_keys)
    thread.start()
    # Without -c: the time goes to packets.
    rounds = 0
    while thread.is_alive() and not problems:
        problem = pingpong(folder, provider, settings, settings, ["-m", "tagged", "-S", "4096", "-I", "2000"])
        rounds += 1
        if problem:
            problems.append(problem)
    thread.join()
    events = "".join(trace.read_text() for trace in pathlib.Path(folder).glob("*.trace"))
    for drop in ("tss-bad-icv", "tss-no-key"):
        if drop in events:
            problems.append(f"{drop} happened")
    return "\n".join(problems)


def rotation_by_signal(provider, keys, folder):
    """Two rotations of which the endpoints learn by signals, while two processes talk. What went wrong, or nothing.

    Each step is over when both processes say that they have read the file again, so no clock decides how long it takes: when the
    processes are done before the rotations are, two others send twice as much.
    """
    steps = itertools.cycle([(command, f"{count} keys, packets leave under AN {an}") for an, command, count in (
        (0, ["rotate"], 2), (1, ["rotate", "--switch"], 2), (1, ["retire"], 1),
        (1, ["rotate"], 2), (0, ["rotate", "--switch"], 2), (0, ["retire"], 1))])
    settings = {"FI_UET_ADDR": own_addresses(2), "FI_UET_KEYS": keys.path, "FI_UET_KEYS_SIGNAL": "usr1",
                "FI_UET_TRACE": f"{folder}/%p.trace", "FI_UET_KEY_LOG": f"{folder}/%p.keylog"}
    iterations, most, wanted, heard = 10_000, 10_000 << 8, 6, 0
    while heard < wanted:
        if iterations > most:
            return f"only {heard} steps were heard of during up to {most} messages"
        problem, more = one_talk(provider, keys, folder, settings, iterations, steps, wanted - heard)
        if problem:
            return problem
        heard += more
        iterations *= 2
    events = "".join(trace.read_text() for trace in pathlib.Path(folder).glob("*.trace"))
    return "\n".join(f"{drop} happened" for drop in ("tss-bad-icv", "tss-no-key") if drop in events)


def one_talk(provider, keys, folder, settings, iterations, steps, wanted):
    """Goes on with `steps` while messages go to and fro. What went wrong, or nothing; and of how many steps both processes said
    that they had heard."""
    port = free_port()
    program = ["fi_pingpong", "-p", "uet", "-e", "rdm", "-m", "tagged", "-S", "4096", "-I", str(iterations)]
    jobs = [Job(program + ["-B", str(port)], base_env(provider, **settings), folder, "server")]

    def talk():
        return all(job.process.poll() is None for job in jobs)

    def wait_for(is_true, seconds=60):
        """True unless the talk is over, or the time. An endpoint looks at its keys once a second."""
        end = time.monotonic() + seconds
        while talk() and time.monotonic() < end:
            if is_true():
                return True
            time.sleep(0.01)
        return False

    def said():
        return [job.output()[1].split("read again")[1:] for job in jobs]

    try:
        jobs[0].wait_until_it_listens(port)
        jobs.append(Job(program + ["-P", str(port), "127.0.0.1"], base_env(provider, **settings), folder, "client"))
        heard = 0
        # Messages flow: before, a signal would end a process that has not asked for it, or meet the control connection.
        traces = [pathlib.Path(folder, f"{job.process.pid}.trace") for job in jobs]
        if wait_for(lambda: all(trace.exists() and trace.stat().st_size > 100_000 for trace in traces)):
            while heard < wanted and talk():
                command, answer = next(steps)
                before = said()
                keys.run(command[0], keys.path, *command[1:])
                if not talk():
                    break
                for job in jobs:
                    os.kill(job.process.pid, signal.SIGUSR1)
                if wait_for(lambda: all(len(new) > len(old) and answer in new[-1] for new, old in zip(said(), before))):
                    heard += 1
                elif talk():
                    return "not heard after a minute: " + " ".join(command) + "".join(job.report(None) for job in jobs), heard
        statuses = [job.wait(400) for job in reversed(jobs)]
        # fi_pingpong's control connection has a time limit, so the kernel does not go on with a call there that a signal met, behind the
        # last message. Such a talk is over, the next one is longer.
        if any("ctrl/" in job.output()[1] and "Interrupted system call" in job.output()[1] for job in jobs):
            return "", heard
        if statuses != [0, 0]:
            return "".join(job.report(status) for job, status in zip(reversed(jobs), statuses)), heard
        return "", heard
    finally:
        for job in jobs:
            job.kill()


def refused(provider, server, client, folder):
    """A client that must get nothing while the server goes on: what went wrong, or nothing."""
    port = free_port()
    # More than an injected message has, which would fail without a word to this program.
    program = ["fi_pingpong", "-p", "uet", "-e", "rdm", "-S", "100000", "-I", "5"]
    job = Job(program + ["-B", str(port)], base_env(provider, **server), folder, "server")
    stranger = None
    try:
        job.wait_until_it_listens(port)
        stranger = Job(program + ["-P", str(port), "127.0.0.1"], base_env(provider, **client), folder, "client")
        status = stranger.wait(60)
        if status is None:
            return "the stranger was told nothing in a minute: " + stranger.report(status)
        if status == 0 or "MB/sec" in stranger.output()[0]:
            return "the stranger got an answer: " + stranger.report(status)
        if job.process.poll() not in (None, 0) and job.process.returncode < 0:
            return "the server died: " + job.report(job.process.returncode)
        return ""
    finally:
        job.kill()
        if stranger:
            stranger.kill()


def opening_of(provider, open_domain):
    """A function that opens a domain with a key file, or expects a refusal with these words: what went wrong, or nothing."""
    def opens(wanted, path, *job, **settings):
        env = base_env(provider, FI_UET_KEYS=path, FI_UET_ADDR=own_addresses(1), **settings)
        done = subprocess.run([open_domain, *job], env=env, capture_output=True, text=True, timeout=30)
        said = done.stdout + done.stderr
        if wanted is None:
            return "" if done.returncode == 0 else said
        return "" if done.returncode != 0 and wanted in said else f"exit status {done.returncode}: {said}"

    return opens


def lost_counters(tap, provider, open_domain, program, folder):
    """What the manual says to do after the counter state is gone, and what must not bring the old counters back."""
    opens = opening_of(provider, open_domain)
    keys = Keys(program, folder, "lost")
    state = pathlib.Path(folder, "lost.state")

    def fails(command, *arguments):
        done = subprocess.run([program, command, keys.path, *arguments], capture_output=True, text=True)
        return "" if done.returncode == 1 else f"exit status {done.returncode}: {done.stdout}{done.stderr}"

    tap.result("counters to lose", opens(None, keys.path))
    for file in state.iterdir():
        file.unlink()
    state.rmdir()
    tap.result("lost counters: endpoints do not start", opens("uet-keys rotate", keys.path))
    tap.result("lost counters: install does not begin them anew", fails("install") or opens("no counter state", keys.path))
    keys.run("rotate", keys.path)
    tap.result("lost counters: a second key does not bring the first one's back", fails("install") or opens("no counter state", keys.path))
    keys.run("rotate", keys.path, "--switch")
    tap.result("lost counters: endpoints start under the second key", opens(None, keys.path))
    keys.run("install", keys.path, "--state-dir", os.path.join(folder, "moved.state"))
    tap.result("endpoints start where the counters went", opens(None, keys.path))
    keys.run("retire", keys.path)
    keys.run("check", keys.path)
    tap.result("and after the first key was retired", opens(None, keys.path))


def opening(tap, provider, open_domain, keys, folder):
    """What refuses to start, and how the job chooses the domain."""
    opens = opening_of(provider, open_domain)
    tap.result("a usable key file", opens(None, keys.path))
    tap.result("no key file", opens("FI_UET_KEYS", folder + "/absent.json"))
    everyone = pathlib.Path(folder, "everyone.json")
    everyone.write_text(pathlib.Path(keys.path).read_text())
    everyone.chmod(0o644)
    tap.result("a key file that others can read", opens("chmod 600", str(everyone)))
    everyone.chmod(0o600)
    text = everyone.read_text()
    everyone.write_text(text.replace(".state", ".other"))
    tap.result("a key without counter state", opens("uet-keys install", str(everyone)))
    file = json.loads(text)
    file["secure_domains"][0]["keys"] = []
    everyone.write_text(json.dumps(file))
    tap.result("a domain without a key", opens("no key", str(everyone)))
    tap.result("a clear endpoint with a key file", opens("contradict", keys.path, FI_UET_PROTECT="crc"))
    of_seven = Keys(keys.program, folder, "seven", "--job", "7")
    tap.result("a job of another domain", opens("job 1", of_seven.path))
    tap.result("FI_UET_JOB chooses the domain", opens(None, of_seven.path, FI_UET_JOB="7"))
    tap.result("an authorization key chooses the domain", opens(None, of_seven.path, "7"))
    tap.result("and is refused when no domain has its job", opens("job 8", of_seven.path, "8"))


def loopback_alone(tap, provider, open_domain, by_address, by_ssi):
    """A host without a network: the address is one that every host has."""
    namespace = ["unshare", "-rn", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*namespace, "true"], capture_output=True).returncode != 0:
        return tap.skip("keys at a loopback address", "no network namespace of our own")

    def warns(wanted, keys, **settings):
        env = base_env(provider, FI_UET_KEYS=keys.path, **settings)
        done = subprocess.run([*namespace, open_domain], env=env, capture_output=True, text=True, timeout=30)
        is_right = done.returncode == 0 and ("keys without SSI at 127.0.0.2" in done.stderr) == wanted
        return "" if is_right else f"exit status {done.returncode}: {done.stdout + done.stderr}"

    tap.result("keys at a loopback address that nothing named: a warning", warns(True, by_address))
    tap.result("none where it is named", warns(False, by_address, FI_UET_ADDR="127.0.0.2"))
    tap.result("none with SSI", warns(False, by_ssi))


def main():
    provider, plugin, uet_keys, dump, open_domain = sys.argv[1:]
    need_provider(provider)
    need_program("fi_pingpong")
    tap = Tap()
    with temporary_folder() as folder:
        direct = Keys(uet_keys, folder, "direct")
        cluster = Keys(uet_keys, folder, "cluster", "--mode", "cluster", "--renew")
        one_rtt = Keys(uet_keys, folder, "one-rtt", "--opening", "1rtt", "--replay-window", "0")
        only_keys = {"FI_UET_KEYS": direct.path}
        opening(tap, provider, open_domain, direct, folder)
        loopback_alone(tap, provider, open_domain, direct, Keys(uet_keys, folder, "ssi", "--ssi", "7"))
        lost_counters(tap, provider, open_domain, uet_keys, folder)
        tap.result("only FI_UET_KEYS set, all sizes", pingpong(folder, provider, only_keys, only_keys, ["-S", "all"]))
        for name, keys in (("cluster mode", cluster), ("every opening challenged", one_rtt)):
            settings = {"FI_UET_KEYS": keys.path, "FI_UET_ADDR": own_addresses(2)}
            tap.result(name, pingpong(folder, provider, settings, settings, ["-m", "tagged", "-S", "all"]))
        bad = {**only_keys, "FI_UET_ADDR": own_addresses(2), "FI_UET_IMPAIR": "loss=0.01,reorder=0.05,duplicate=0.01,seed=3"}
        tap.result("in bad weather", pingpong(folder, provider, bad, bad, ["-S", "all", "-I", "10"]))
        if os.path.exists(plugin):
            tap.result("memif", pingpong(folder, provider, *memif_ends(folder, only_keys), ["-S", "all"]))
            v6 = memif_ends(folder, {"FI_UET_KEYS": cluster.path}, ("fd00:77::1", "fd00:77::2"))
            tap.result("memif, IPv6", pingpong(folder, provider, *v6, ["-S", "all"]))
            native = memif_ends(folder, {**only_keys, "FI_UET_ENCAP": "ip"})
            tap.result("memif, native IP", pingpong(folder, provider, *native, ["-S", "all"]))
        else:
            tap.skip("memif", "built without DPDK")
        captured(tap, provider, dump, direct, folder)
        tap.result("rotation under load", rotation(provider, direct, folder))
        by_signal = Keys(uet_keys, folder, "by-signal")
        with temporary_folder() as own:
            tap.result("rotation under load, by signals", rotation_by_signal(provider, by_signal, own))

        addresses = {"FI_UET_ADDR": own_addresses(2), "FI_UET_PEER_TIMEOUT": "2s"}
        good, other = {**addresses, **only_keys}, {**addresses, "FI_UET_KEYS": one_rtt.path}
        for name, stranger in (("another key", other), ("in clear", addresses),
                               ("no protection", {**addresses, "FI_UET_PROTECT": "none"})):
            tap.result(f"a peer with {name} gets nothing", refused(provider, good, stranger, folder))
        tap.result("a secured peer gets nothing from a clear one", refused(provider, addresses, good, folder))
        tap.result("and afterwards all is well", pingpong(folder, provider, only_keys, only_keys, ["-S", "1000"]))
    tap.finish()


main()
