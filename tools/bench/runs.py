"""Running one contender once: the processes, their output as rows, and what went wrong.

A row is {"test", "size", and by the name of its metric its value}; latencies also have their percentiles.
"""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "e2e"))

from box import CONTROL, FABRIC  # noqa: E402
from harness import Job, base_env, free_port, own_addresses  # noqa: E402

PERCENTILES = ("p90", "p99", "p99.9")


class Failed(Exception):
    """Why there are no figures, or not all; a sentence. `rows`: those that there are."""

    def __init__(self, why, rows=()):
        super().__init__(why)
        self.rows = list(rows)


def last_line(*texts):
    lines = [line.strip() for text in texts for line in text.splitlines() if line.strip() and not line.startswith("libfabric:")]
    told = [line for line in lines if line.startswith(("uet-perf:", "mpi_bench:"))] or lines
    return told[-1][:300] if told else ""


def end(job):
    """mpirun takes its ranks with it when it is asked to end."""
    if job.process.poll() is None:
        job.process.terminate()
        job.wait(3)
    job.kill()


def rows_of(report):
    """Of mpi_bench."""
    for row in report["results"]:
        out = {"test": row["test"], "size": row["size"]}
        for metric in ("gbit_per_s", "half_rtt_us", "time_us"):
            if metric in row:
                out[metric] = row[metric]["median"]
                out.update({p: row[metric][p] for p in PERCENTILES if p in row[metric]})
        yield out


def csv_rows(text):
    """Of `uet-perf fabric`, `tcp` and `copy`, as far as they came; and why some were not measured."""
    rows, why = [], ""
    for line in csv.DictReader(io.StringIO(text[:text.rfind("\n") + 1])):
        if line["not_measured"]:
            why = line["not_measured"]
            continue
        row = {"test": line["test"], "size": int(line["bytes"])}
        for metric in ("gbit_per_s", "messages_per_s", "half_rtt_us"):
            if line[f"{metric}_median"]:
                row[metric] = float(line[f"{metric}_median"])
        row.update({p: float(line[f"half_rtt_us_{p}"]) for p in PERCENTILES if line[f"half_rtt_us_{p}"]})
        rows.append(row)
    return rows, why


class Runner:
    def __init__(self, build, veth, cpus, seconds, count=None):
        self.build, self.veth, self.cpus, self.seconds = Path(build).resolve(), veth, cpus, seconds
        self.count = ["--count", str(count)] if count else []
        self.perf = str(self.build / "apps" / "uet-perf")
        self.folder = tempfile.TemporaryDirectory(prefix="uet-bench-")
        self.number = 0

    def close(self):
        self.folder.cleanup()

    def env(self, **settings):
        env = base_env(str(self.build / "provider"), FI_LOG_LEVEL="", **settings)
        del env["FI_PROVIDER"]  # others are measured as well
        return env

    def pin(self, side):
        return ["--pin", str(self.cpus[side])] if self.cpus else []

    def start(self, command, env, namespace=None):
        self.number += 1
        return Job([str(word) for word in command], env, self.folder.name, f"job{self.number}", namespace)

    def finish(self, jobs):
        """Output of the first; ends them all."""
        try:
            for job in jobs:
                status = job.wait(self.seconds if job is jobs[0] else 10)
                if status == 0:
                    continue
                words = last_line(*(one.output()[1] for one in jobs))
                state = f"not done after {self.seconds:g} s" if status is None else f"exit status {status}"
                raise Failed(": ".join(text for text in (state, words) if text))
            return jobs[0].output()[0]
        finally:
            for job in jobs:
                end(job)

    def table(self, jobs):
        """Rows of the first, which prints them as they come."""
        try:
            text = self.finish(jobs)
        except Failed as failure:
            rows, why = csv_rows(jobs[0].output()[0])
            raise Failed(why or str(failure), rows)
        rows, why = csv_rows(text)
        if why:
            raise Failed(why, rows)
        return rows

    def pair(self, mode, arguments, settings, on_veth, pinned=True):
        """`uet-perf fabric` or `tcp`: a server, and a client that says what is measured. `settings` of each side."""
        pin = self.pin if pinned else lambda side: []
        port = str(free_port())
        places = self.veth.names if on_veth else (None, None)
        host = CONTROL[0] if on_veth else "127.0.0.1"
        common = [self.perf, mode, "--control-port", port, "--timeout", "10"]
        server = self.start([*common, *pin(0)], self.env(**settings[0]), places[0])
        jobs = [server]
        try:
            server.wait_until_it_listens(int(port))
            jobs.insert(0, self.start([*common, *pin(1), "--peer", host, "--csv", "--runs", "1", *self.count, *arguments],
                                      self.env(**settings[1]), places[1]))
            return self.table(jobs)
        finally:
            for job in jobs:
                end(job)

    def fabric(self, provider, settings, tests, sizes, on_veth=False, pinned=True):
        return self.pair("fabric", [*tests, "--provider", provider, "--sizes", sizes], settings, on_veth, pinned)

    def tcp(self, sizes, on_veth=False):
        return self.pair("tcp", ["send", "send-latency", "--sizes", sizes], ({}, {}), on_veth)

    def raw(self, ports, size, on_veth=False, more=(), addresses=None):
        places = self.veth.names if on_veth else (None, None)
        addresses = addresses or (FABRIC if any("dpdk" in p for p in ports) else own_addresses(2).split("|"))
        jobs = []
        for side in (0, 1):
            role = ["--server"] if side == 0 else ["--json"]
            jobs.insert(0, self.start([self.perf, "raw", "--port", ports[side], "--address", addresses[side], "--peer",
                                       addresses[1 - side], "--size", size, "--seconds", "0.5", "--pings", "2000",
                                       "--timeout", "10", *self.pin(side), *role, *more], self.env(), places[side]))
        told = json.loads(self.finish(jobs))
        return [{"test": "packets", "size": told["size"], "gbit_per_s": told["gbps"],
                 "messages_per_s": told["packets_per_second"]},
                {"test": "packets", "size": told["small_size"], "messages_per_s": told["small_packets_per_second"]},
                {"test": "ping", "size": 8, "half_rtt_us": told["half_rtt_us_median"],
                 **{p: told[f"half_rtt_us_{p}"] for p in PERCENTILES if told[f"half_rtt_us_{p}"] is not None}}]

    def copy(self, sizes):
        job = self.start([self.perf, "copy", "--sizes", sizes, "--runs", "3", "--csv", *self.count, *self.pin(0)], self.env())
        return self.table([job])

    def cipher(self, library):
        """tests/bench/tss_bench: AES-256-GCM, sealing alone."""
        command = [str(self.build / "tests/bench/tss_bench"), f"--benchmark_filter=^cipher_seal/mb:{library}/",
                   "--benchmark_format=json", "--benchmark_min_time=0.05"]
        if self.cpus and shutil.which("taskset"):
            command = ["taskset", "-c", str(self.cpus[0]), *command]
        rows = []
        for one in json.loads(self.finish([self.start(command, self.env())]))["benchmarks"]:
            if one.get("error_occurred"):
                raise Failed(one.get("error_message", "it failed"))
            size = int(one["name"].split("bytes:")[1])
            rows.append({"test": "seal", "size": size, "gbit_per_s": one["bytes_per_second"] * 8e-9})
        return rows

    def mpi(self, options, sizes, **settings):
        program = Path(self.folder.name) / "mpi_bench"
        if not program.exists():
            source = Path(__file__).resolve().parents[2] / "tests" / "bench" / "mpi_bench.cc"
            made = subprocess.run(["mpicxx.openmpi", "-O2", "-std=c++17", str(source), "-o", str(program)],
                                  capture_output=True, text=True)
            if made.returncode != 0:
                raise Failed(f"mpicxx.openmpi cannot compile: {last_line(made.stderr)}")
        env = self.env(**settings)
        env.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", TMPDIR=self.folder.name)
        cpus = [",".join(map(str, self.cpus))] if self.cpus else []
        job = self.start(["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-np", "2", "--mca", "plm", "isolated",
                          *options, program, "1", ",".join(map(str, sizes)), *cpus], env)
        return list(rows_of(json.loads(self.finish([job]))))
