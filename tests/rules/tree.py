#!/usr/bin/env python3
"""What holds for the whole tree: no paths of the machine it was written on, no unfinished marks, a README per folder.

    tree.py SOURCE-ROOT
"""

import re
import subprocess
import sys
from pathlib import Path

from tap import Tap

TEXT = {".h", ".cc", ".c", ".py", ".md", ".build", ".txt", ".toml", ".tsv", ".sh", ".drill", ".pml", ".lua", ".7", ".5", ".1", ""}
NEEDS_README = ["lib/base", "lib/wire", "lib/net", "lib/udp", "lib/ports", "lib/dpdk", "keys", "cc", "tss", "pds", "ses", "fep", "sim",
                "embed", "provider", "apps", "tests"]
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
# The subject of a sentence is a protocol entity, a thread, a host, a user: docs/glossary.md. In code, test names and pages alike.
VAGUE = re.compile(r"(?<![a-z])(nobody|somebody|anybody|whoever|someone|everybody|no[ _]one|anyone)(?![a-z])", re.IGNORECASE)
PAST_OR_MADE = ("CHANGELOG.md", "docs/conformance.md")
HOME_PATH = re.compile(r"(?<![\w.])/(home|root|Users)/\w")


def files(root):
    """Tracked files, or every file outside build folders where git is not at hand."""
    try:
        listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], check=True, capture_output=True).stdout
        return [root / name for name in listed.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        return [p for p in root.rglob("*") if p.is_file() and not re.match(r"build|\.git", str(p.relative_to(root)))]


def matches(root, paths, pattern):
    for path in paths:
        if path.suffix not in TEXT or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            if pattern.search(line):
                yield f"{path.relative_to(root)}:{number}: {line.strip()[:100]}"


def main():
    root = Path(sys.argv[1]).resolve()
    tap = Tap()
    all_files = [f for f in files(root) if f != Path(__file__).resolve()]
    code = [f for f in all_files if f.suffix in (".h", ".cc", ".py")]
    tap.result("no home directories in the tree", matches(root, all_files, HOME_PATH))
    if len(root.parts) > 2:
        tap.result("no path of this checkout in the tree", matches(root, all_files, re.compile(re.escape(f"{root}/"))))
    tap.result("no unfinished marks", matches(root, code, UNFINISHED))
    product = [f for f in code if f.suffix != ".py" and f.relative_to(root).parts[0] not in ("tests", "tools")]
    told_now = [f for f in all_files if str(f.relative_to(root)) not in PAST_OR_MADE]
    tap.result("sentences name who acts", matches(root, told_now, VAGUE))
    built_again = (root / "apps/meson.build").read_text()
    planted = [f.relative_to(root) for f in product if f.name != "planted.h" and "PlantedBug::" in f.read_text()
               and f.relative_to(root).parts[0] != "apps"]
    tap.result("files with a planted bug are compiled again for uet-sim-planted",
               [f"{f} is not in apps/meson.build" for f in planted if f"'../{f}'" not in built_again])
    tap.result("a README in each folder", [f"{d}/README.md is missing" for d in NEEDS_README
                                           if not (root / d / "README.md").is_file()])
    tap.finish()


main()
