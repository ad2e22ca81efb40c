#!/usr/bin/env python3
"""Every C++ file is laid out as clang-format says.

    format.py CLANG-FORMAT SOURCE-ROOT
"""

import subprocess
import sys
from pathlib import Path

from tap import Tap

FOLDERS = ["lib", "cc", "tss", "keys", "pds", "ses", "fep", "sim", "embed", "provider", "apps", "include", "examples", "tests", "tools"]


def main():
    tool, root = sys.argv[1], Path(sys.argv[2])
    tap = Tap()
    for folder in FOLDERS:
        sources = sorted(p for p in (root / folder).rglob("*") if p.suffix in (".h", ".cc"))
        if not sources:
            continue
        run = subprocess.run([tool, "--dry-run", *map(str, sources)], capture_output=True, text=True)
        bad = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "clang-format-violations" in line})
        tap.result(f"layout of {folder}", [f"{Path(p).relative_to(root)}: run clang-format -i" for p in bad])
    tap.finish()


main()
