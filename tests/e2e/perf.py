#!/usr/bin/env python3
"""What the two sides of `uet-perf fabric` say when they do not agree, and that nothing waits longer than it was told to.

    perf.py PROVIDER-FOLDER UET-PERF
"""

import csv
import io
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time

from harness import Job, Tap, base_env, free_port, need_provider, own_addresses, temporary_folder


class Bench:
    def __init__(self, provider, perf, folder):
        self.env = base_env(provider, FI_UET_ADDR=own_addresses(2), FI_LOG_LEVEL="")
        del self.env["FI_PROVIDER"]  # other providers are measured as well
        self.perf, self.folder, self.number = perf, folder, 0

    def start(self, *arguments, env=None):
        self.number += 1
        return Job([self.perf, *arguments], env or self.env, self.folder, f"job{self.number}")

    def pair(self, client, server=(), seconds=120):
        """Exit status and output of both: ((status, out, err) of the client, the same of the server)."""
        port = free_port()
        jobs = [self.start("fabric", *server, "--control-port", str(port))]
        try:
            jobs[0].wait_until_it_listens(port)
            jobs.append(self.start("fabric", *client, "--control-port", str(port), "--peer", "127.0.0.1"))
            status = jobs[1].wait(seconds), jobs[0].wait(20)
            return [(s, *job.output()) for s, job in zip(status, reversed(jobs))]
        finally:
            for job in jobs:
                job.kill()

    def alone(self, *arguments, env=None, seconds=30):
        """Exit status, output, and how long it took."""
        begin = time.monotonic()
        job = self.start(*arguments, env=env)
        try:
            status = job.wait(seconds)
            return (status, *job.output()), time.monotonic() - begin
        finally:
            job.kill()


def expect(ends, client, server, *texts):
    """Empty when the two exit statuses are these and each text stands in some output."""
    said = "".join(out + err for _, out, err in ends)
    missing = [text for text in texts if text not in said]
    if [ends[0][0], ends[1][0]] == [client, server] and not missing:
        return ""
    return f"exit statuses {ends[0][0]}, {ends[1][0]}; missing {missing} in:\n{said}"


def a_bare_server_does_what_the_client_asks(bench):
    tests = ("write", "read", "send", "tagged-rate", "write-latency", "read-latency", "send-latency", "tagged-latency")
    ends = bench.pair([*tests, "--sizes", "8,4k", "--count", "50", "--runs", "3", "--window", "4", "--json"])
    problem = expect(ends, 0, 0)
    if problem:
        return problem
    result = json.loads(ends[0][1])
    rows = [(r["test"], r["size"], r["runs"], r["messages"]) for r in result["results"]]
    wanted = [(t, s, 3, 50) for t in tests for s in (8, 4096)]
    if rows != wanted or not result["complete"]:
        return f"{rows}"
    for row in result["results"]:
        spread = row.get("half_rtt_us") or row["gbit_per_s"]
        if not 0 < spread["min"] <= spread["median"] <= spread["max"]:
            return f"no spread: {row}"
    return ""


def providers_side_by_side(bench):
    ends = bench.pair(["write", "--provider", "uet,tcp", "--size", "4k", "--count", "50", "--csv"])
    if ends[0][0] == 1 and "provider tcp" in ends[0][2]:
        return None
    problem = expect(ends, 0, 0)
    rows = list(csv.DictReader(io.StringIO(ends[0][1])))
    if problem or [r["provider"].split(";")[0] for r in rows] != ["uet", "tcp"]:
        return problem or str(rows)
    return "" if all(float(r["gbit_per_s_median"]) > 0 for r in rows) else str(rows)


def kernel_tcp(bench):
    port = str(free_port())
    server = bench.start("tcp", "--control-port", port, "--timeout", "20")
    client = None
    try:
        server.wait_until_it_listens(int(port))
        client = bench.start("tcp", "send", "send-latency", "--sizes", "8,4k", "--count", "20", "--runs", "2", "--peer", "127.0.0.1",
                             "--control-port", port, "--timeout", "20", "--json")
        status = client.wait(60), server.wait(20)
        if status != (0, 0):
            return client.report(status[0]) + server.report(status[1])
        rows = json.loads(client.output()[0])["results"]
        wanted = [(t, s) for t in ("send", "send-latency") for s in (8, 4096)]
        return "" if [(r["test"], r["size"]) for r in rows] == wanted else str(rows)
    finally:
        server.kill()
        if client:
            client.kill()


def memory_of_a_copy(bench):
    """Of the raw port. Refused before a port is opened."""
    for options, text in ((["--copy", "--memory", "3M"], "'3M' is not a power of two within 64k and 1G"),
                          (["--copy", "--memory", "2G"], "'2G' is not a power of two"), (["--memory", "2M"], "requires --copy")):
        (status, out, err), _ = bench.alone("raw", "--peer", "127.0.0.1", *options)
        if status == 0 or text not in err:
            return f"{options}: {status} {out} {err}"
    return ""


def kernel_tcp_server_with_conditions(bench):
    """What the server was not told is refused, and what it was told measured."""
    for condition, text in ((["send"], "test send, the client asks for send-latency"), (["--size", "8"], "--size 8, the client asks for 64"),
                            (["--count", "7"], "--count 7, the client asks for 20")):
        port = str(free_port())
        server = bench.start("tcp", *condition, "--control-port", port, "--timeout", "20")
        client = None
        try:
            server.wait_until_it_listens(int(port))
            client = bench.start("tcp", "send", "send-latency", "--sizes", "8,64", "--count", "20", "--runs", "1", "--peer", "127.0.0.1",
                                 "--control-port", port, "--timeout", "20", "--json")
            status = client.wait(60), server.wait(20)
            out, measured = client.output()[0], 0
            if out:
                measured = sum("gbit_per_s" in row or "half_rtt_us" in row for row in json.loads(out)["results"])
            wanted = 0 if condition[0] == "--count" else 2
            if status != (1, 1) or text not in out or text not in server.output()[1] or measured != wanted:
                return f"{condition}: {measured} measured\n" + client.report(status[0]) + server.report(status[1])
        finally:
            server.kill()
            if client:
                client.kill()
    return ""


def copying(bench):
    (status, out, err), _ = bench.alone("copy", "--sizes", "64,4k", "--count", "20", "--json")
    if status != 0:
        return f"exit status {status}: {err}"
    if [r["size"] for r in json.loads(out)["results"]] != [64, 4096]:
        return out
    # A warm-up that is asked for takes its time: as long as twenty runs. That of the processor: starting takes a while where others have it.
    def processor_time(warm_up):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        runs = ["copy", "--size", "4k", "--count", "200000", "--runs", "1", "--warm-up", warm_up]
        (status, _, err), _ = bench.alone(*runs, seconds=120)
        return status, err, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    _, _, without = processor_time("0")
    status, err, longer = processor_time("4000000")
    return "" if status == 0 and longer > 2 * without else f"{without} s, {longer} s: {err}"


def for_some_seconds(bench):
    """Runs begin until the time is over, whatever one takes: more than the usual five."""
    start = time.monotonic()
    ends = bench.pair(["write", "--size", "8", "--count", "1", "--seconds", "1", "--json"])
    took = time.monotonic() - start
    problem = expect(ends, 0, 0)
    if problem:
        return problem
    result = json.loads(ends[0][1])
    runs = result["results"][0]["runs"]
    return "" if took >= 1 and runs > 5 and result["seconds"] == 1 else f"{runs} runs in {took:.1f} s: {result}"


COLLECTIVES = ("all-reduce-ring", "all-reduce-tree", "all-gather", "reduce-scatter", "broadcast", "all-to-all")


def collectives(bench):
    """Three processes, one of which joins as a further host's would. Every element is right."""
    port, env = str(free_port()), dict(bench.env, FI_UET_ADDR=own_addresses(3))
    first = bench.start("collective", *COLLECTIVES, "--ranks", "3", "--local", "2", "--sizes", "12,64k", "--count", "2",
                        "--runs", "1", "--control-port", port, "--timeout", "30", "--json", env=env)
    third = None
    try:
        first.wait_until_it_listens(int(port))
        third = bench.start("collective", "--peer", "127.0.0.1", "--control-port", port, "--timeout", "30",
                            env=env)
        status = first.wait(90), third.wait(20)
        if status != (0, 0):
            return first.report(status[0]) + third.report(status[1])
        rows = json.loads(first.output()[0])["results"]
        if [(r["test"], r["count"]) for r in rows] != [(t, n) for t in COLLECTIVES for n in (3, 16383)]:
            return str(rows)
        bad = [r for r in rows if r["wrong"] != 0 or not 0 < r["time_us"]["min"] <= r["time_us"]["max"]]
        return str(bad) if bad else ""
    finally:
        first.kill()
        if third:
            third.kill()


def a_member_that_fails(bench):
    """Its own words reach rank 0, and nothing is left running."""
    (status, _, err), took = bench.alone("collective", "--ranks", "3", "--provider", "nonesuch", "--timeout", "20")
    return "" if status == 1 and "provider nonesuch" in err and took < 15 else f"after {took:.1f} s, exit status {status}: {err}"


REFUSALS = {  # options of the server: those of the client, and what is said
    "another test": (["read"], ["write"], "test read, the client asks for write"),
    "another size": (["--size", "8"], ["--size", "64"], "--size 8, the client asks for 64"),
    "another count": (["--count", "7"], ["--count", "9"], "--count 7, the client asks for 9"),
    "another window": (["--window", "7"], ["--window", "9"], "--window 7, the client asks for 9"),
    "another provider": (["--provider", "uet"], ["--provider", "tcp"], "--provider uet, the client asks for tcp"),
    "order on one side": (["--ordered"], [], "started with --ordered"),
}


def a_server_that_was_told_something_else_refuses(bench, server, client, text):
    return expect(bench.pair([*client, "--size", "64"] if "--size" not in client else client, server), 1, 1, text)


def options_that_agree_are_no_refusal(bench):
    same = ["send", "--size", "64", "--count", "20", "--window", "4", "--ordered"]
    return expect(bench.pair(same, same), 0, 0, "send")


def a_provider_that_is_not_there(bench):
    (status, _, err), took = bench.alone("fabric", "--provider", "nonesuch", "--timeout", "20")
    if status != 1 or "provider nonesuch" not in err or took > 10:
        return f"after {took:.1f} s, exit status {status}: {err}"
    ends = bench.pair(["--provider", "uet,nonesuch", "--timeout", "10"], ["--timeout", "10"])
    return expect(ends, 1, 1, "provider nonesuch")


def no_interface_is_up(bench):
    """The provider itself says so, and uet-perf that it is installed."""
    box = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-n"]
    if subprocess.run([*box, "true"], capture_output=True).returncode != 0:
        return ""
    env = {k: v for k, v in bench.env.items() if k != "FI_UET_ADDR"}
    done = subprocess.run([*box, bench.perf, "fabric", "--timeout", "5"], env=env, capture_output=True, text=True, timeout=60)
    said = [line for line in done.stderr.splitlines() if line.startswith("uet: no network interface is up")]
    good = done.returncode == 1 and len(said) == 1 and "it is installed" in done.stderr and "FI_PROVIDER_PATH" not in done.stderr
    return "" if good else str(done)


def the_server_lacks_what_the_client_asks_for(bench):
    """One row is missing, the other is measured, and neither side ends with 0."""
    server = bench.env
    bench.env = dict(server, FI_PROVIDER="uet")
    port = free_port()
    job = bench.start("fabric", "--control-port", str(port))
    bench.env = server
    client = None
    try:
        job.wait_until_it_listens(port)
        client = bench.start("fabric", "--provider", "uet,tcp", "--size", "64", "--count", "20", "--peer", "127.0.0.1",
                             "--control-port", str(port))
        status = client.wait(60), job.wait(20)
        out, err = client.output()
        if status != (1, 1) or "not measured: the server failed: provider tcp" not in out or "FI_PROVIDER=uet" not in out:
            return f"{status}\n{out}{err}"
        return "" if any(line.split()[:2] == ["write", "uet"] and "not" not in line for line in out.splitlines()) else out
    finally:
        job.kill()
        if client:
            client.kill()


def no_listener(bench):
    (status, _, err), took = bench.alone("fabric", "--timeout", "1", "--control-port", str(free_port()))
    if status != 1 or "no client connected" not in err or took > 15:
        return f"server after {took:.1f} s, exit status {status}: {err}"
    (status, _, err), took = bench.alone("fabric", "--peer", "127.0.0.1", "--timeout", "1", "--control-port", str(free_port()))
    if status != 1 or "no server at" not in err or "waiting" in err or took > 15:
        return f"client after {took:.1f} s, exit status {status}: {err}"
    port = free_port()
    (status, _, err), took = bench.alone("fabric", "--peer", "127.0.0.1", "--timeout", "3", "--control-port", str(port))
    if status != 1 or err.count(f"waiting for a server at 127.0.0.1 control port {port}, 3 s at most (--timeout)\n") != 1 or took > 15:
        return f"a client with more patience after {took:.1f} s, exit status {status}: {err}"
    return ""


def a_listener_that_says_nothing(bench):
    """Connected, and then silence: the limit holds."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        (status, _, err), took = bench.alone("fabric", "--peer", "127.0.0.1", "--timeout", "1", "--control-port",
                                             str(listener.getsockname()[1]))
    return "" if status == 1 and "greeting" in err and took < 15 else f"after {took:.1f} s, exit status {status}: {err}"


def another_program(bench):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        job = bench.start("fabric", "--peer", "127.0.0.1", "--control-port", str(listener.getsockname()[1]))
        try:
            listener.settimeout(20)
            connection, _ = listener.accept()
            connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            status = job.wait(20)
            connection.close()
            return "" if status == 1 and "not this uet-perf" in job.output()[1] else job.report(status)
        finally:
            job.kill()


def strangers_at_the_control_port(bench):
    """One that leaves and one that says nothing are passed over; the client that comes behind them is served."""
    port = free_port()
    server = bench.start("fabric", "--control-port", str(port))
    client = None
    try:
        server.wait_until_it_listens(port)
        socket.create_connection(("127.0.0.1", port)).close()
        with socket.create_connection(("127.0.0.1", port)):
            client = bench.start("fabric", "--size", "64", "--count", "20", "--runs", "1", "--peer", "127.0.0.1", "--control-port", str(port))
            status = client.wait(60), server.wait(20)
        said = server.output()[1]
        if status == (0, 0) and said.count("passed over a connection from") == 2 and "it sent no greeting" in said:
            return ""
        return client.report(status[0]) + server.report(status[1])
    finally:
        server.kill()
        if client:
            client.kill()


def another_command_at_the_other_side(bench):
    """The client is told at once, and the server waits for one of its own."""
    port = free_port()
    jobs = [bench.start("tcp", "--control-port", str(port), "--timeout", "30")]
    try:
        jobs[0].wait_until_it_listens(port)
        few = ["--size", "64", "--count", "20", "--runs", "1", "--peer", "127.0.0.1", "--control-port", str(port)]
        jobs.append(bench.start("fabric", *few))
        status = jobs[1].wait(20)
        if status != 1 or "the other side runs uet-perf tcp, this one uet-perf fabric" not in jobs[1].output()[1]:
            return jobs[1].report(status)
        jobs.append(bench.start("tcp", *few))
        status = jobs[2].wait(60), jobs[0].wait(20)
        return "" if status == (0, 0) else jobs[2].report(status[0]) + jobs[0].report(status[1])
    finally:
        for job in jobs:
            job.kill()


def options_that_change_nothing_are_named(bench):
    client = ["send-latency", "--window", "16", "--size", "8", "--count", "20", "--runs", "1"]
    return expect(bench.pair(client, ["--window", "16", "--json", "--runs", "9"]), 0, 0, "--window: latency tests have one operation in flight",
                  "--runs, --json: of the client alone")


def more_than_there_is(bench):
    """Buffers that the system cannot give are told beforehand."""
    (status, _, err), _ = bench.alone("copy", "--size", "1G", "--window", "65536")
    if status != 1 or "GiB of memory" not in err or "smaller --window" not in err:
        return f"exit status {status}: {err}"
    limited = subprocess.run(["prlimit", "--as=400000000", bench.perf, "copy", "--size", "256M", "--window", "1"],
                             capture_output=True, text=True, timeout=60, env=bench.env)
    if limited.returncode != 1 or "gives no 0.25 GiB" not in limited.stderr:
        return f"limited: {limited}"
    return expect(bench.pair(["--size", "16G", "--window", "64"]), 1, 0, "not measured: this needs", "smaller --window")


def stop(bench, victim, how, expected):
    """A peer that is stopped or killed in the middle: the other one says so in time, and does not end with 0."""
    port = free_port()
    jobs = {"server": bench.start("fabric", "--control-port", str(port), "--timeout", "5")}
    try:
        jobs["server"].wait_until_it_listens(port)
        jobs["client"] = bench.start("fabric", "write", "--size", "64k", "--count", "1000000", "--peer", "127.0.0.1",
                                     "--control-port", str(port), "--timeout", "5")
        wait_for_traffic(jobs["client"])
        jobs[victim].process.send_signal(how)
        survivor = jobs["client" if victim == "server" else "server"]
        status = survivor.wait(30)
        text = "".join(survivor.output())
        return "" if status == 1 and any(e in text for e in expected) else survivor.report(status)
    finally:
        for job in jobs.values():
            job.process.send_signal(signal.SIGCONT) if job.process.poll() is None else None
            job.kill()


def wait_for_traffic(job, seconds=20):
    """Until the process has used the processor for half a second: it spins while it measures."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and job.process.poll() is None:
        fields = open(f"/proc/{job.process.pid}/stat").read().rsplit(")", 1)[1].split()
        if (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 0.5:
            return
        time.sleep(0.05)


def pinned(bench):
    cpu = min(os.sched_getaffinity(0))
    ends = bench.pair(["--size", "64", "--count", "20", "--pin", str(cpu)], ["--pin", str(cpu)])
    problem = expect(ends, 0, 0)
    if problem:
        return problem
    (status, _, err), _ = bench.alone("fabric", "--pin", "1023")
    return "" if status == 1 and "--pin 1023" in err else f"exit status {status}: {err}"


def wrong_usage(bench):
    for arguments in (["fabric", "wriet"], ["fabric", "--size", "8x"], ["fabric", "--count", "0"], ["fabric", "--timeout", "0"],
                      ["fabric", "--csv", "--json"], ["collective", "all-reduce"], ["collective", "--type", "half"], ["tcp", "write"],
                      ["nothing"], []):
        (status, _, err), _ = bench.alone(*arguments)
        if status != 2:
            return f"{arguments}: exit status {status}: {err}"
    (status, _, err), _ = bench.alone("fabirc", "write")
    return "" if status == 2 and "no command 'fabirc'; did you mean fabric?" in err else f"exit status {status}: {err}"


def main():
    provider, perf = sys.argv[1:]
    need_provider(provider)
    tap = Tap()
    with temporary_folder() as folder:
        bench = Bench(provider, perf, folder)
        tap.result("a server without options does what the client asks", a_bare_server_does_what_the_client_asks(bench))
        both = providers_side_by_side(bench)
        if both is None:
            tap.skip("two providers in one table", "libfabric has no tcp provider here")
        else:
            tap.result("two providers in one table", both)
        tap.result("kernel TCP", kernel_tcp(bench))
        tap.result("a server of kernel TCP with conditions", kernel_tcp_server_with_conditions(bench))
        tap.result("copying", copying(bench))
        tap.result("memory that a raw port copies", memory_of_a_copy(bench))
        tap.result("runs for some seconds", for_some_seconds(bench))
        tap.result("collective operations", collectives(bench))
        tap.result("a member that fails", a_member_that_fails(bench))
        for name, (server, client, text) in REFUSALS.items():
            tap.result(f"refused by name: {name}", a_server_that_was_told_something_else_refuses(bench, server, client, text))
        tap.result("options that agree are no refusal", options_that_agree_are_no_refusal(bench))
        tap.result("a provider that is not there", a_provider_that_is_not_there(bench))
        tap.result("no interface is up", no_interface_is_up(bench))
        tap.result("the server lacks a provider", the_server_lacks_what_the_client_asks_for(bench))
        tap.result("no listener at the other side", no_listener(bench))
        tap.result("a listener that says nothing", a_listener_that_says_nothing(bench))
        tap.result("another program at the control port", another_program(bench))
        tap.result("strangers at the control port", strangers_at_the_control_port(bench))
        tap.result("another command at the other side", another_command_at_the_other_side(bench))
        tap.result("options that change nothing", options_that_change_nothing_are_named(bench))
        tap.result("more memory than there is", more_than_there_is(bench))
        tap.result("server killed while measuring", stop(bench, "server", signal.SIGKILL, ["closed the control", "is gone"]))
        tap.result("client killed while measuring", stop(bench, "client", signal.SIGKILL, ["closed the control", "is gone"]))
        tap.result("server stopped while measuring", stop(bench, "server", signal.SIGSTOP, ["nothing happened for 5 s"]))
        tap.result("pinned to a core", pinned(bench))
        tap.result("wrong usage", wrong_usage(bench))
    tap.finish()


main()
