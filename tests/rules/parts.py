#!/usr/bin/env python3
"""The README of a folder names each of its headers, and its parts know those before them: no file includes a part that its README lists further down.

    parts.py SOURCE-ROOT FOLDER...

The table of parts in a README is the one whose first heading is "part"; a row may hold several parts, which may know each other. A
`.cc` file stands where the header of its name stands, or in a row of its own. Every header that is not in the table is data or a word that any part may use,
so it may itself include nothing of the table but what each of its users may: it stands where the first of them stands.
"""

import re
import sys
from pathlib import Path

from tap import Tap

PART = re.compile(r"`([a-z0-9_]+\.(?:h|cc))`")


def places(readme):
    """File -> number of its row."""
    found, in_table = {}, False
    for number, line in enumerate(readme.read_text().splitlines()):
        if line.startswith("| part |"):
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table:
            for part in PART.findall(line.split("|")[1]):
                found[part] = number
    return found


def included(path, folder):
    return re.findall(rf'^#include "{folder}/([a-z0-9_]+\.h)"', path.read_text(), re.M)


def needs(root, folder, part, place, seen):
    """The parts that a header with no place of its own brings with it."""
    for header in included(root / folder / part, folder):
        if header in place:
            yield header
        elif header not in seen:
            seen.add(header)
            yield from needs(root, folder, header, place, seen)


def wrong(root, folder, place):
    for path in sorted((root / folder).glob("*.*")):
        row = place.get(path.name, place.get(f"{path.stem}.h"))
        if path.suffix not in (".h", ".cc") or row is None:
            continue
        for header in included(path, folder):
            brought = [header] if header in place else needs(root, folder, header, place, {header})
            for part in brought:
                if place[part] > row:
                    way = "" if part == header else f" by {header}"
                    yield f"{folder}/{path.name} knows {part}{way}, which {folder}/README.md lists below it"


def main():
    root = Path(sys.argv[1])
    tap = Tap()
    for folder in sys.argv[2:]:
        place = places(root / folder / "README.md")
        absent = [f"{folder}/README.md names {part}, which does not exist" for part in sorted(place)
                  if not (root / folder / part).exists()]
        tap.result(f"{folder}/README.md has a table of parts that exist", absent if place else ["there is no table"])
        named = (root / folder / "README.md").read_text()
        unnamed = [f"{folder}/README.md does not name {path.name}" for path in sorted((root / folder).glob("*.h"))
                   if not re.search(rf"\b{path.stem}\b", named)]
        tap.result(f"{folder}/README.md names every header", unnamed)
        tap.result(f"parts of {folder} know those above them", wrong(root, folder, place))
    tap.finish()


main()
