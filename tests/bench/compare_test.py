#!/usr/bin/env python3
"""./bench in seconds: the shape of what it writes, that each contender is measured or named with the reason, and its ratios.
Never a speed.

    compare_test.py SOURCE-ROOT BUILD-ROOT
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT, BUILD = (Path(a).resolve() for a in sys.argv[1:3])
sys.path[:0] = [str(ROOT / "tests" / "rules"), str(ROOT / "tests" / "e2e"), str(ROOT / "tools" / "bench")]
sys.dont_write_bytecode = True

from harness import Tap, temporary_folder  # noqa: E402
from table import Table  # noqa: E402


def bench(folder, *arguments, **environment):
    return subprocess.run([sys.executable, str(ROOT / "bench"), "--build", str(BUILD), "--out", os.path.join(folder, "report"),
                           *arguments], capture_output=True, text=True, timeout=100, env={**os.environ, **environment})


def a_short_comparison(folder):
    """Without Open MPI in sight: its contenders are named."""
    asked = ["uet-udp", "kernel-tcp", "memcpy", "mpi-uet"]
    run = bench(folder, "--only", ",".join(asked), "--sizes", "64", "--tests", "write,tagged-latency", "--rounds", "1",
                "--count", "20", "--cpus", "none", "--seconds", "25", PATH=path_without_mpi(folder))
    if run.returncode != 0:
        return f"exit status {run.returncode}: {run.stdout}{run.stderr}"
    result = json.loads(Path(folder, "report.json").read_text())
    page = Path(folder, "report.html").read_text()
    measured = {row["contender"] for row in result["rows"]}
    skipped = {one["contender"]: one["why"] for one in result["skipped"]}
    if measured | set(skipped) != set(asked) or measured & set(skipped) or not all(skipped.values()):
        return f"measured {measured}, skipped {skipped}"
    if "memcpy" not in measured or "mpirun.openmpi" not in skipped.get("mpi-uet", ""):
        return f"measured {measured}, skipped {skipped}"
    for row in result["rows"]:
        spreads = [v for v in row.values() if isinstance(v, dict)]
        if not spreads or not all(0 < s["min"] <= s["median"] <= s["max"] and len(s["rounds"]) == 1 for s in spreads):
            return f"no spread: {row}"
    if "uet-udp" in measured and not any(r["ours"] == "uet-udp" for r in result["ratios"]) and "kernel-tcp" in measured:
        return f"no ratio: {result['ratios']}"
    missing = [k for k in ("cpu", "kernel", "libfabric", "governor", "commit", "load_at_start", "load_at_end", "build")
               if k not in result["environment"]]
    wanted = ["<svg", *asked]
    missing += [w for w in wanted if w not in page]
    if missing or "src=" in page or "href=" in page:
        return f"missing {missing}, or the page needs other files"
    return ""


def path_without_mpi(folder):
    """The programs of the machine but mpirun.openmpi."""
    here = Path(folder, "bin")
    here.mkdir()
    for place in os.environ["PATH"].split(":"):
        if place and Path(place).is_dir():
            for program in Path(place).iterdir():
                if not program.name.startswith("mpi") and not (here / program.name).is_symlink():
                    (here / program.name).symlink_to(program)
    return str(here)


def wrong_usage(folder):
    for arguments in (["--only", "nonesuch"], ["--sizes", "0"], ["--sizes", "x"], ["--rounds", "many"]):
        run = bench(folder, *arguments)
        if run.returncode != 2:
            return f"{arguments}: exit status {run.returncode}: {run.stderr}"
    return ""


def ratios():
    """Round by round, above 1 where we are better, and bare ports by the sizes that they have."""
    table = Table()
    for number, (ours, theirs) in enumerate([(10, 5), (30, 60), (8, 4)], 1):
        table.add("uet-udp", number, [
            {"test": "write", "size": 65536, "gbit_per_s": ours, "messages_per_s": 1},
            {"test": "write", "size": 64, "gbit_per_s": 1, "messages_per_s": ours},
            {"test": "tagged-latency", "size": 8, "half_rtt_us": ours}])
        table.add("tcp", number, [{"test": "tagged-latency", "size": 8, "half_rtt_us": theirs}])
        table.add("raw-udp", number, [{"test": "packets", "size": 4096, "gbit_per_s": theirs, "messages_per_s": 7},
                                      {"test": "packets", "size": 64, "messages_per_s": theirs}])
    table.fail("rxd", 1, "gone")
    table.settle()
    found = {(r["theirs"], r["test"], r["size"]): (r["min"], r["median"], r["max"]) for r in table.ratios()}
    wanted = {("tcp", "tagged-latency", 8): (0.5, 0.5, 2), ("raw-udp", "write", 65536): (0.5, 2, 2),
              ("raw-udp", "write", 64): (0.5, 2, 2)}
    return "" if found == wanted and table.skipped == {"rxd": "gone"} else f"{found}, {table.skipped}"


def main():
    tap = Tap()
    tap.result("ratios of rounds", ratios())
    with temporary_folder() as folder:
        tap.result("wrong usage", wrong_usage(folder))
    with temporary_folder() as folder:
        tap.result("a short comparison", a_short_comparison(folder))
    tap.finish()


main()
