#!/usr/bin/env python3
"""The checklists as a table in C++.

    checklist_table.py OUT FILE...      # files of other kinds are passed over
"""

import sys


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main():
    rows = []
    for path in [p for p in sys.argv[2:] if p.endswith(".tsv")]:
        with open(path, encoding="utf-8") as lines:
            rows += [line.rstrip("\n").split("\t") for line in lines if line.strip()]
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        out.write("// Made by checklist_table.py.\n")
        for item, _, title in rows:
            out.write(f"{{{quoted(item)}, {quoted(title)}}},\n")


main()
