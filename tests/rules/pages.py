#!/usr/bin/env python3
"""Pages say what is: links and file names resolve, and decisions share one form and an index.

    pages.py SOURCE-ROOT
"""

import re
import subprocess
import sys
from pathlib import Path

from tap import Tap

LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
FILE_NAME = re.compile(r"`((?:[a-z_]+/)+[A-Za-z0-9_.-]+\.(?:h|cc|py|md|toml|tsv|json|pml|drill|build))`")
DECISION = re.compile(r"^# (\d{4}): \S.*\n\nStatus: \S", re.A)


def pages(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "*.md"], capture_output=True, check=False)
    names = [name for name in listed.stdout.decode().split("\0") if name]
    return [root / name for name in names] or sorted(root.glob("[a-z]*/**/*.md"))


def dead_links(root):
    for page in pages(root):
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for link in LINK.findall(line):
                if "://" not in link and not (page.parent / link).exists():
                    yield f"{page.relative_to(root)}:{number}: no file {link}"


def dead_names(root):
    """A path in backticks is one from the root, or from the folder of the page."""
    for page in pages(root):
        if page.relative_to(root).parts[:2] == ("docs", "protocol"):
            continue  # names files of other implementations
        for number, line in enumerate(page.read_text().splitlines(), 1):
            for name in FILE_NAME.findall(line):
                if not any((base / name).exists() for base in (root, page.parent, root / "tests")) and \
                        not name.startswith("build/"):
                    yield f"{page.relative_to(root)}:{number}: no file {name}"


def exclusions_without_reason(path):
    """A pattern belongs to the comment above it, with no empty line between."""
    has_reason = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            has_reason = False
        elif line.startswith("#"):
            has_reason = True
        elif not has_reason:
            yield f"{path.name}:{number}: {line}: why?"


def wrong_decisions(folder):
    index = (folder / "README.md").read_text()
    for page in sorted(folder.glob("[0-9]*.md")):
        head = DECISION.match(page.read_text())
        if not head or head.group(1) != page.name[:4]:
            yield f"{page.name}: begins with '# {page.name[:4]}: what was decided', an empty line and 'Status: ...'"
        if f"({page.name})" not in index:
            yield f"{page.name} is not in the index of README.md"


def main():
    root = Path(sys.argv[1]).resolve()
    tap = Tap()
    tap.result("links of pages resolve", dead_links(root))
    tap.result("file names in pages exist", dead_names(root))
    tap.result("decisions have one form and an index", wrong_decisions(root / "docs" / "decisions"))
    tap.result("every exclusion from fabtests has a reason", exclusions_without_reason(root / "tests/fabtests/uet.exclude"))
    tap.finish()


main()
