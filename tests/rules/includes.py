#!/usr/bin/env python3
"""Each folder includes only what the table in docs/architecture.md allows, and only its own folder knows a foreign library.

    includes.py SOURCE-ROOT
"""

import re
import sys
from pathlib import Path

from tap import Tap

# A row of the table in docs/architecture.md: folders, and what their files may include besides their own.
TABLE_ROW = re.compile(r"^\| ((?:`[a-z/_]+`(?:, )?)+) \| (.*) \|$", re.M)
CODE = re.compile(r"`([A-Za-z0-9/_.+-]+)`")
NO_SOURCES = {"docs", "tests", "tools", "examples", "bench", "include"}

# What protocol code must not even name; and libraries that one folder keeps to itself.
PROTOCOL = ["lib/base", "lib/wire", "lib/net", "cc", "tss", "pds", "ses", "fep", "fep/settings", "fep/report", "sim"]
NOT_IN_PROTOCOL = re.compile(
    r"^(chrono|ctime|time\.h|sys/time\.h|random|sys/random\.h|thread|mutex|shared_mutex|"
    r"condition_variable|future|pthread\.h|sys/socket\.h|sys/epoll\.h|poll\.h|netinet/.*|net/if.*|linux/.*)$")
# Says what pthread_cancel() may interrupt, and does nothing else with threads.
MAY_NAME = {("lib/base/cancellation.h", "pthread.h")}
OWNERS = [
    (re.compile(r"^rte_"), ["lib/dpdk", "tests", "apps"]),
    (re.compile(r"^CLI/"), ["apps"]),
    (re.compile(r"^rdma/"), ["provider", "apps", "tests"]),
    (re.compile(r"^openssl/"), ["tss", "tests"]),
    (re.compile(r"^intel-ipsec-mb"), ["tss"]),
    (re.compile(r"^toml\+\+/"), ["lib/toml"]),
    (re.compile(r"^isa-l"), ["lib/wire"]),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def table_of(page):
    """Folder -> folders (or single headers) that it may include."""
    return {folder: CODE.findall(allowed) for folders, allowed in TABLE_ROW.findall(page.read_text())
            for folder in CODE.findall(folders)}


def without_row(root, table):
    """Folders of sources that no row of the table speaks of, and rows of folders that are not there."""
    for source in sorted(root.glob("[a-z]*/**/*.cc")):
        folder = str(source.relative_to(root).parent)
        if folder.split("/")[0] not in NO_SOURCES and not folder.startswith("build") and not folder_of(folder, table):
            yield f"{source.relative_to(root)}: docs/architecture.md has no row for its folder"
    for folder in table:
        if not (root / folder).is_dir():
            yield f"docs/architecture.md has a row for {folder}, which does not exist"


def sources(root, folder, table):
    """Those of the folder, without its folders that have a row of their own."""
    return sorted(p for p in (root / folder).rglob("*") if p.suffix in (".h", ".cc")
                  and folder_of(str(p.relative_to(root)), table) in (folder, None))


def folder_of(path, table):
    """The row of the table that a path belongs to."""
    rows = [row for row in list(table) + ["include", "tests"] if path == row or path.startswith(row + "/")]
    return max(rows, key=len) if rows else None


def is_allowed(header, folder, table):
    if folder_of(header, table) == folder:
        return True
    return any(header == entry or header.startswith(entry + "/") for entry in table[folder])


def owned_by(header, folder):
    for pattern, owners in OWNERS:
        if pattern.match(header) and not any(folder == o or folder.startswith(o + "/") for o in owners):
            return ", ".join(owners)
    return None


def main():
    root = Path(sys.argv[1])
    table = table_of(root / "docs" / "architecture.md")
    tap = Tap()
    tap.result("every folder of sources has a row in the table of docs/architecture.md", without_row(root, table))
    tap.result("lib/ is ground: nothing in it stands on what is above it", [
        f"{folder} may include {entry}" for folder, entries in table.items() if folder.startswith("lib/")
        for entry in entries if not entry.startswith("lib/")])
    for folder in table:
        problems = []
        for source in sources(root, folder, table):
            where = source.relative_to(root)
            for style, header in INCLUDE.findall(source.read_text(errors="replace")):
                if style == '"' and "/" in header and not is_allowed(header, folder, table):
                    problems.append(f"{where} includes {header}, which is not in the table for {folder}")
                if style == '"' and "/" not in header:
                    problems.append(f"{where} includes {header}: write paths from the source root")
                may_name = (str(where), header) in MAY_NAME
                if style == "<" and folder in PROTOCOL and NOT_IN_PROTOCOL.match(header) and not may_name:
                    problems.append(f"{where} includes <{header}>: protocol code has no clock, randomness, sockets, threads")
                owners = owned_by(header, folder)
                if owners:
                    problems.append(f"{where} includes {header}, which belongs to {owners}")
        tap.result(f"includes of {folder}", problems)
    tap.finish()


if __name__ == "__main__":
    main()
