"""The command line."""

import argparse
import json
import os
import shutil
import signal
import sys
from dataclasses import replace
from pathlib import Path

from .config import ConfigError, read
from .matrix import Matrix, is_good, pairs_of
from .page import write_page

DONE, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130
# Where a program lies in the build tree, from the folder of this tool.
BUILT = {"uet-interop-peer": "", "uet-fabric": "../fabric", "uet-keys": "../keys", "uet-dump": "..", "uet-perf": ".."}


class Found:
    """The programs and the provider: those of the build tree that this tool lies in, or those that are installed."""

    def __init__(self, here):
        self.here = here
        self.is_built = (here / "../../provider/libuet-fi.so").exists()

    def program(self, name):
        built = self.here / BUILT[name] / name
        if built.is_file() and os.access(built, os.X_OK):
            return os.path.normpath(built)
        return shutil.which(name) or name

    def tools(self):
        out = {name.replace("-", "_"): self.program(name) for name in BUILT}
        # An empty value leaves the variable out: libfabric knows where providers are installed.
        out["provider"] = os.path.normpath(self.here / "../../provider") if self.is_built else ""
        out["build"] = os.path.normpath(self.here / "../..")
        return out

    def data(self):
        for folder in (self.here, self.here.parent / "share" / "uet" / "interop"):
            if (folder / "ours.toml").is_file():
                return folder
        raise ConfigError("ours.toml is neither beside this program nor in ../share/uet/interop")


def chosen(names, all_of_them, what):
    if not names:
        return all_of_them
    out = {}
    for name in names.split(","):
        if name not in all_of_them:
            raise ConfigError(f"there is no {what} \"{name}\"; known are {', '.join(all_of_them)}")
        out[name] = all_of_them[name]
    return out


def in_small_set(table, names):
    """What is named is taken as it is."""
    return table if names else {name: one for name, one in table.items() if one.is_small}


def parser():
    p = argparse.ArgumentParser(prog="uet-interop", description="Run implementations of Ultra Ethernet Transport against each "
                                "other in pairs, each scenario on a network of its own, and write a matrix.")
    p.add_argument("file", nargs="*", help="TOML files with implementations and scenarios of yours")
    p.add_argument("--only-mine", action="store_true", help="without the implementations that come with the tool")
    p.add_argument("--implementations", metavar="NAME,...", help="only these, in this order")
    p.add_argument("--scenarios", metavar="NAME,...", help="only these")
    p.add_argument("--small", action="store_true", help="the small set: few scenarios, each pair of neighbours both ways")
    p.add_argument("--pairs", metavar="PAIRS", help="all (the default), ring, or SERVER:CLIENT,...")
    p.add_argument("--out", metavar="FOLDER", default="uet-interop-report", help="for index.html, matrix.json and cells/ (%(default)s)")
    p.add_argument("--jobs", type=int, default=2, help="cells at a time (%(default)s)")
    p.add_argument("--clients", type=int, metavar="N", help="no scenario with more clients: for small machines")
    p.add_argument("--views", choices=("all", "failed", "none"), default="all", help="cells that get a page of uet-dump --html (%(default)s)")
    p.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="{NAME} in the files stands for VALUE")
    p.add_argument("--json", action="store_true", help="print matrix.json instead of lines")
    p.add_argument("--strict", action="store_true", help="cells that were not run are a failure")
    p.add_argument("--list", action="store_true", help="only name implementations and scenarios")
    return p


class OutputError(Exception):
    """Why standard output cannot be written."""


def say(text):
    try:
        if sys.stdout is None:
            raise OutputError("it is closed")
        print(text, flush=True)
    except OSError as problem:
        # The interpreter would write once more at its end, and tell of that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise OutputError(problem.strerror) from problem


def show_list(implementations, scenarios):
    for kind, table in (("implementations", implementations), ("scenarios", scenarios)):
        say("\n".join([f"{kind}:", *(f"  {name:24} {one.title}" for name, one in table.items())]))


def tell(result):
    more = "; ".join(filter(None, [result.reason, *result.sessions]))
    print(f"{result.verdict:11} {result.scenario:16} {result.server} <- {result.client}{': ' if more else ''}{more}", file=sys.stderr,
          flush=True)


def with_values(tools, settings):
    """And the placeholders of the user's own."""
    out = dict(tools)
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.isidentifier() or not value:
            raise ConfigError(f"--set NAME=VALUE is wanted, not \"{setting}\"")
        if name in tools:
            raise ConfigError(f"--set {name}: {{{name}}} stands for something else")
        out[name] = value
    return out


def run(arguments, here):
    found = Found(here)
    data = found.data()
    tools = with_values(found.tools(), arguments.set)
    files = ([] if arguments.only_mine else [data / "ours.toml"]) + [data / "scenarios.toml"] + arguments.file
    implementations, scenarios = read(files)
    if arguments.small:
        implementations, scenarios = (in_small_set(table, names) for table, names in
                                      ((implementations, arguments.implementations), (scenarios, arguments.scenarios)))
    implementations = chosen(arguments.implementations, implementations, "implementation")
    scenarios = chosen(arguments.scenarios, scenarios, "scenario")
    if arguments.clients is not None:
        if arguments.clients < 2:
            raise ConfigError("--clients: 2 at least, as one client makes no incast")
        scenarios = {name: replace(one, clients=min(one.clients, arguments.clients)) for name, one in scenarios.items()}
    if arguments.list:
        show_list(implementations, scenarios)
        return DONE
    if not implementations:
        raise ConfigError("no implementation: give a file, or leave --only-mine out")
    if arguments.jobs < 1:
        raise ConfigError("--jobs 1 at least")
    if os.geteuid() != 0:
        print("uet-interop: network namespaces need root; start it with sudo, or under `unshare -rn` where that is allowed",
              file=sys.stderr)
        return FAILED
    pairs = pairs_of(arguments.pairs or ("ring" if arguments.small else "all"), implementations)
    out = os.path.abspath(arguments.out)
    os.makedirs(out, exist_ok=True)
    matrix = Matrix(implementations, scenarios, pairs, out, tools, tell, arguments.views)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    report = matrix.run(arguments.jobs)
    with open(os.path.join(out, "matrix.json"), "w", encoding="utf-8") as file:
        json.dump(report, file, indent=1)
    write_page(report, out)
    if arguments.json:
        say(json.dumps(report, indent=1))
    else:
        say(", ".join(f"{count} {verdict}" for verdict, count in report["summary"].items()))
        say(f"the matrix is in {out}/index.html")
    not_run, all_of_them = report["summary"]["not run"], len(report["cells"])
    if not_run:
        print(f"uet-interop: {not_run} of {all_of_them} cells were not run"
              f"{': interrupted' if report['interrupted'] else '' if arguments.strict else '; --strict makes that a failure'}",
              file=sys.stderr)
    if report["interrupted"]:
        return INTERRUPTED
    return DONE if is_good(report, arguments.strict) else FAILED


def main(here):
    try:
        return run(parser().parse_args(), Path(here))
    except ConfigError as problem:
        status, failure = USAGE, problem
    except KeyboardInterrupt:
        status, failure = INTERRUPTED, "interrupted"
    except OutputError as problem:
        status, failure = FAILED, f"standard output cannot be written: {problem}"
    except OSError as problem:
        status, failure = FAILED, f"{problem.filename}: {problem.strerror}" if problem.filename else problem.strerror
    print(f"uet-interop: {failure}", file=sys.stderr)
    return status
