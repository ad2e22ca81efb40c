#!/usr/bin/env python3
"""Each folder includes only what the dependency table allows, and only its own folder knows a foreign library.

    includes.py SOURCE-ROOT
"""

import re
import sys
from pathlib import Path

from tap import Tap

# Folder: folders (or single headers) that its files may include besides their own.
MAY_INCLUDE = {
    "lib/base": [],
    "lib/wire": ["lib/base"],
    "lib/net": ["lib/base", "lib/wire"],
    "lib/toml": ["lib/base"],
    "cc": ["lib/base"],
    "tss": ["lib/base", "lib/wire", "lib/net"],
    "keys": ["lib/base", "lib/net", "tss"],
    "pds": ["lib/base", "lib/wire", "lib/net", "cc"],
    "ses": ["lib/base", "lib/wire", "lib/net", "pds/pds.h"],
    "fep": ["lib/base", "lib/wire", "lib/net", "lib/toml", "keys", "cc", "tss", "pds", "ses"],
    "lib/udp": ["lib/base", "lib/wire", "lib/net"],
    "lib/dpdk": ["lib/base", "lib/wire", "lib/net"],
    "lib/ports": ["lib/base", "lib/net", "lib/udp"],
    "sim": ["lib/base", "lib/wire", "lib/net"],
    "embed": ["lib/base", "lib/net", "lib/ports", "ses", "fep", "uet"],
    "provider": ["lib/base", "lib/net", "lib/udp", "lib/ports", "ses", "fep"],
    "apps": ["lib", "cc", "tss", "pds", "ses", "fep", "sim", "keys", "include"],
}

# What protocol code must not even name; and libraries that one folder keeps to itself.
PROTOCOL = ["lib/base", "lib/wire", "lib/net", "cc", "tss", "pds", "ses", "fep", "sim"]
NOT_IN_PROTOCOL = re.compile(
    r"^(chrono|ctime|time\.h|sys/time\.h|random|sys/random\.h|thread|mutex|shared_mutex|"
    r"condition_variable|future|pthread\.h|sys/socket\.h|sys/epoll\.h|poll\.h|netinet/.*|net/if.*|linux/.*)$")
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


def sources(root, folder):
    return sorted(p for p in (root / folder).rglob("*") if p.suffix in (".h", ".cc"))


def folder_of(path):
    """The row of the table that an included path belongs to."""
    rows = [row for row in list(MAY_INCLUDE) + ["include", "tests"] if path == row or path.startswith(row + "/")]
    return max(rows, key=len) if rows else None


def is_allowed(header, folder):
    if folder_of(header) == folder:
        return True
    return any(header == entry or header.startswith(entry + "/") for entry in MAY_INCLUDE[folder])


def owned_by(header, folder):
    for pattern, owners in OWNERS:
        if pattern.match(header) and not any(folder == o or folder.startswith(o + "/") for o in owners):
            return ", ".join(owners)
    return None


def main():
    root = Path(sys.argv[1])
    tap = Tap()
    tap.result("lib/ is ground: nothing in it stands on what is above it", [
        f"{folder} may include {entry}" for folder, entries in MAY_INCLUDE.items() if folder.startswith("lib/")
        for entry in entries if not entry.startswith("lib/")])
    for folder in MAY_INCLUDE:
        problems = []
        for source in sources(root, folder):
            where = source.relative_to(root)
            for style, header in INCLUDE.findall(source.read_text(errors="replace")):
                if style == '"' and "/" in header and not is_allowed(header, folder):
                    problems.append(f"{where} includes {header}, which is not in the table for {folder}")
                if style == '"' and "/" not in header:
                    problems.append(f"{where} includes {header}: write paths from the source root")
                if style == "<" and folder in PROTOCOL and NOT_IN_PROTOCOL.match(header):
                    problems.append(f"{where} includes <{header}>: protocol code has no clock, randomness, sockets, threads")
                owners = owned_by(header, folder)
                if owners:
                    problems.append(f"{where} includes {header}, which belongs to {owners}")
        tap.result(f"includes of {folder}", problems)
    tap.finish()


if __name__ == "__main__":
    main()
