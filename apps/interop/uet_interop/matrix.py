"""All cells: which pairs, which scenarios, several at a time; and what machines read of them."""

import concurrent.futures
import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time

from .cell import Cell, Result
from .config import ConfigError

VERDICTS = ("pass", "fail", "unsupported", "not run")


def pairs_of(text, implementations):
    """`all`: each with each and with itself; `ring`: each with the next one that speaks like it, both ways; or SERVER:CLIENT,..."""
    names = list(implementations)
    if text == "all":
        return list(itertools.product(names, names))
    if text == "ring":
        out = []
        for wire in dict.fromkeys(one.wire for one in implementations.values()):
            alike = [name for name in names if implementations[name].wire == wire]
            after = list(zip(alike, alike[1:] + alike[:1]))
            out += after + [(b, a) for a, b in after]
        return list(dict.fromkeys(out))
    out = []
    for part in text.split(","):
        server, _, client = part.partition(":")
        for end in (server, client):
            if end not in names:
                raise ConfigError(f"there is no implementation \"{end}\"; known are {', '.join(names)}")
        out.append((server, client))
    return out


def versions(implementations, tools):
    """What each one says of itself, or why it is not there."""
    out, missing, answers = {}, {}, {}
    for name, one in implementations.items():
        environment = dict(os.environ)
        try:
            path = one.needs_path.format_map(tools) if one.needs_path else ""
            for key, value in one.environment.items():
                if key in ("FI_PROVIDER", "FI_PROVIDER_PATH", "LD_LIBRARY_PATH", "PATH"):
                    environment[key] = str(value).format_map(tools)
            command = one.version.format_map(tools)
        except KeyError as unknown:
            missing[name] = f"{name}: nothing says what {{{unknown.args[0]}}} stands for: --set {unknown.args[0]}=VALUE"
            continue
        if path and not os.path.exists(path):
            missing[name] = f"{name} is not there: no {path}"
        if one.version and name not in missing:
            asked = command, *sorted(environment.items())
            if asked not in answers:
                answers[asked] = version_of(asked[0], environment)
            out[name], problem = answers[asked]
            if problem:
                missing[name] = f"{name} does not tell its version: {problem}"
    return out, missing


def version_of(command, environment):
    """And what is wrong, if anything."""
    try:
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                              env=environment)
    except subprocess.TimeoutExpired:
        return "", "no answer within a minute"
    text = " ".join(done.stdout.split())
    return text, "" if done.returncode == 0 and text else (done.stderr or done.stdout).strip()[-200:] or "nothing is printed"


class Matrix:
    def __init__(self, implementations, scenarios, pairs, folder, tools, told=lambda result: None, views="all"):
        self.implementations, self.scenarios, self.pairs = implementations, scenarios, pairs
        self.folder, self.tools, self.told, self.views = folder, tools, told, views
        self.results, self.stopped = [], False
        self.sockets = tempfile.mkdtemp(prefix="uet-interop-")

    def cells(self):
        number = 0
        for scenario in self.scenarios.values():
            for server, client in self.pairs:
                number += 1
                folder = os.path.join(self.folder, "cells", f"{scenario.name}--{server}--{client}")
                yield Cell(scenario, self.implementations[server], self.implementations[client], folder,
                           f"{self.sockets}/{number}", self.tools, f"{os.getpid()}-{number}", lambda: self.stopped, self.views)

    def run(self, jobs):
        """Also when interrupted: what is under way then ends soon, and the rest was not run."""
        from_ = time.time()
        self.versions, missing = versions(self.implementations, self.tools)
        # An exception could break a lock of the pool.
        handlers = {number: signal.signal(number, self.stop) for number in (signal.SIGINT, signal.SIGTERM)
                    if signal.getsignal(number) != signal.SIG_IGN}
        try:
            with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
                waiting = [pool.submit(self.run_cell, cell, missing) for cell in self.cells()]
                # A signal that comes in the moment before a wait is heard after it.
                while concurrent.futures.wait(waiting, timeout=0.5).not_done:
                    pass
                self.results += [cell.result() for cell in waiting]
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
            shutil.rmtree(self.sockets, ignore_errors=True)
        return self.report(from_)

    def stop(self, *_):
        self.stopped = True

    def run_cell(self, cell, missing):
        result = cell.result
        absent = [missing[end.name] for end in cell.ends.values() if end.name in missing]
        obstacle = cell.obstacle()
        if obstacle:
            cell.verdict("unsupported", obstacle)
        elif absent or self.stopped:
            cell.verdict("not run", absent[0] if absent else "interrupted")
        else:
            if os.path.isdir(cell.folder):
                shutil.rmtree(cell.folder)
            result = cell.run()
        self.told(result)
        return result

    def report(self, from_):
        counts = {verdict: sum(r.verdict == verdict for r in self.results) for verdict in VERDICTS}
        return {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(from_)), "seconds": round(time.time() - from_, 1),
            "summary": counts, "interrupted": self.stopped,
            "implementations": [{"name": n, "title": i.title, "wire": i.wire, "leg": i.leg,
                                 "version": self.versions.get(n, "")} for n, i in self.implementations.items()],
            "scenarios": [{"name": n, "title": s.title} for n, s in self.scenarios.items()],
            "pairs": [list(pair) for pair in self.pairs],
            "cells": [result.as_dict() for result in self.results],
        }


def is_good(report, is_strict=False):
    """Nothing failed, and something passed; when strict, every cell was run."""
    sums = report["summary"]
    return sums["fail"] == 0 and sums["pass"] > 0 and not (is_strict and sums["not run"])


__all__ = ["Matrix", "Result", "is_good", "pairs_of"]
