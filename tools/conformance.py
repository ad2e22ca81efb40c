#!/usr/bin/env python3
"""Writes docs/conformance.md: which items of the checklists are implemented, tested, deliberately different or to do; and
docs/profiles.md: which features of the specification's profiles that makes.

    tools/conformance.py [--check] [SOURCE-ROOT]

Items come from docs/checklists/*.tsv (id, section, title). Tests name what they prove in a comment directly above them:

    // Covers: PDS-42, PDS-43..PDS-45, WIRE-V1

docs/conformance-notes.tsv (id, state, reason) says what no test can: `different` for a deliberate deviation, `implemented`
for what is there without a test of its own, `later` for what is put off. Whatever is left is to do. With --check nothing
is written, and the exit status is 1 when a committed page is stale or a tag or note names no item.
"""

import re
import sys
from pathlib import Path

import profiles

TAG = re.compile(r"(?://|#)\s*Covers:\s*(.*)")
TAG_GOES_ON = re.compile(r"^\s*(?://|#)\s*([A-Z]+-[A-Z]?\d+\b.*)$")  # the lines after a tag that did not fit
CASE = re.compile(r"^\s*(?:(?:TEST|TEST_F|TEST_P|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*(\w+)\s*,\s*(\w+)|def\s+(\w+))")
ID = re.compile(r"^([A-Z]+-[A-Z]?)0*(\d+)$")
LOOKS_LIKE_ITEM = re.compile(r"^(PDS|SES|FI|CC|WIRE|TSS)-?[IVT]?\d")
STATES = {"different": "different", "implemented": "implemented, no test of its own", "later": "later"}


def canonical(identifier):
    match = ID.match(identifier)
    return f"{match.group(1)}{match.group(2)}" if match else None


def expand(text):
    """Identifiers of a Covers line; A..B is a range. Yields (identifier or None, as written)."""
    for part in filter(None, re.split(r"[,\s]+", text.replace("Covers:", " ").strip())):
        first, _, last = part.partition("..")
        low, high = canonical(first), canonical(last) if last else None
        if last and low and high:
            stem, begin = ID.match(low).groups()
            end = ID.match(high).group(2)
            for n in range(int(begin), int(end) + 1):
                yield f"{stem}{n}", part
        else:
            yield low, part


def read_items(root):
    items = []
    for name in ["pds", "ses", "cc-i", "cc-v", "wire-v", "tss", "fi"]:
        for line in (root / "docs" / "checklists" / f"{name}.tsv").read_text().splitlines():
            identifier, section, title = line.split("\t")
            items.append((name, identifier, section, title))
    return items


def read_notes(root):
    notes = {}
    path = root / "docs" / "conformance-notes.tsv"
    for line in path.read_text().splitlines() if path.exists() else []:
        if line and not line.startswith("#"):
            identifiers, state, reason = line.split("\t")
            for identifier, written in expand(identifiers):
                notes[identifier or written] = (state, reason)
    return notes


def read_tests(root):
    """Identifier: list of test names; and complaints about tags that name nothing well-formed."""
    covered, complaints = {}, []
    for path in sorted((root / "tests").rglob("*")):
        if path.suffix not in (".cc", ".py", ".sh", ".h") or not path.is_file():
            continue
        pending = []
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            tag = TAG.search(line) or (TAG_GOES_ON.match(line) if pending else None)
            if tag:
                for identifier, written in expand(tag.group(1).rstrip(".")):
                    if identifier is None and not LOOKS_LIKE_ITEM.match(written):
                        continue  # prose: a system test names a scenario, not an item
                    if identifier is None:
                        complaints.append(f"{path.relative_to(root)}:{number}: \"{written}\" is no item")
                    else:
                        pending.append(identifier)
                continue
            case = CASE.match(line)
            if case and pending:
                name = f"{case.group(1)}.{case.group(2)}" if case.group(1) else f"{path.stem}: {case.group(3)}"
                for identifier in pending:
                    covered.setdefault(identifier, [])
                    if name not in covered[identifier]:
                        covered[identifier].append(name)
                pending = []
        if pending:  # a script tagged as a whole
            for identifier in pending:
                covered.setdefault(identifier, []).append(str(path.relative_to(root)))
    for script in sorted((root / "tests" / "drill").glob("*.drill")):  # named after the item that it plays
        match = re.match(r"([A-Z]+-[A-Z]?\d+)-", script.name)
        if match:
            covered.setdefault(canonical(match.group(1)), []).append(f"drill: {script.stem}")
    return covered, complaints


TITLES = {
    "pds": "Packet delivery",
    "ses": "Semantic sublayer",
    "cc-i": "Congestion control, invariants",
    "cc-v": "Congestion control, vectors",
    "wire-v": "Wire format, golden vectors",
    "tss": "Transport security",
    "fi": "libfabric",
}


def state_of_item(identifier, covered, notes):
    state = notes.get(identifier, (None, ""))[0]
    return "different" if state == "different" else "tested" if covered.get(identifier) else state or "to do"


def page(items, covered, notes):
    lines = [
        "# Conformance",
        "",
        "Made by `tools/conformance.py` from the `Covers:` tags of the tests and from `docs/conformance-notes.tsv`;",
        "do not edit. \"Tested\" means that a test which can fail proves the item; an item with a test may still carry a",
        "note about what is different.",
        "",
        "The items are those of our own [checklists](checklists), made after the UE Specification 1.0.x as public descriptions and",
        "implementations give it. The specification's text was not read: [protocol](protocol/README.md) says how sure each statement is.",
        "",
        "| list | items | tested | implemented, no test of its own | deliberately different | later | to do |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    tables = []
    for group, title in TITLES.items():
        mine = [i for i in items if i[0] == group]
        count = dict.fromkeys(["tested", "implemented", "different", "later", "to do"], 0)
        table, last_section = [], None
        for _, identifier, section, what in mine:
            tests = covered.get(identifier, [])
            state, reason = notes.get(identifier, (None, ""))
            if section != last_section:
                table += ["", f"### {section}", "", "| item | what | state | where, or why |", "|---|---|---|---|"]
                last_section = section
            kind = state_of_item(identifier, covered, notes)
            count[kind] += 1
            shown = {"tested": "tested", "to do": "to do"}.get(kind) or STATES[kind]
            if kind == "different" and tests:
                shown = "different, tested"
            where = "; ".join(f"`{t}`" for t in tests[:2]) + (f" and {len(tests) - 2} more" if len(tests) > 2 else "")
            table.append(f"| {identifier} | {what} | {shown} | {' '.join(filter(None, [where, reason]))} |")
        lines.append(f"| {title} | {len(mine)} | {count['tested']} | {count['implemented']} | {count['different']} | "
                     f"{count['later']} | {count['to do']} |")
        tables += ["", f"## {title}"] + table
    return "\n".join(lines + tables) + "\n"


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    check = "--check" in sys.argv[1:]
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parent.parent
    items, notes = read_items(root), read_notes(root)
    covered, complaints = read_tests(root)
    known = {identifier for _, identifier, _, _ in items}
    complaints += [f"{t[0]} is tagged with {i}, which is no item" for i, t in covered.items() if i not in known]
    complaints += [f"docs/conformance-notes.tsv: {i} is no item" for i in notes if i not in known]
    complaints += [f"docs/conformance-notes.tsv: {i}: unknown state {s}" for i, (s, _) in notes.items() if s not in STATES]
    complaints += [f"docs/conformance-notes.tsv: {i} is put off, and {covered[i][0]} tests it"
                   for i, (state, _) in notes.items() if state == "later" and i in covered]
    rows = profiles.read(root)
    wrong_rows = list(profiles.complaints(rows, known, expand))
    complaints += wrong_rows
    for complaint in complaints:
        print(complaint, file=sys.stderr)

    notes = {i: n for i, n in notes.items() if n[0] in STATES}
    texts = {"conformance.md": page(items, covered, notes)}
    if not wrong_rows:
        texts["profiles.md"] = profiles.page(rows, lambda identifier: state_of_item(identifier, covered, notes), expand)
    is_stale = False
    for name, text in texts.items():
        target = root / "docs" / name
        if not check:
            target.write_text(text)
        elif not target.exists() or target.read_text() != text:
            is_stale = True
            print(f"docs/{name} is stale: run tools/conformance.py and commit the result", file=sys.stderr)
    return 1 if is_stale or complaints else 0


if __name__ == "__main__":
    sys.exit(main())
