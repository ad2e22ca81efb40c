#!/usr/bin/env python3
"""Every tag in the tree resolves: [PDS 6.4] names a section of docs/protocol/pds.md, [UET 3.5] a chapter of the key, and
[decision 30], or decision 30 in a sentence, a page of docs/decisions. Tags have no other forms.

    tags.py SOURCE-ROOT
"""

import re
import subprocess
import sys
from pathlib import Path

from tap import Tap

PAGES = {"PDS": "pds.md", "SES": "ses.md", "CC": "cc.md", "WIRE": "wire.md", "TSS": "tss.md", "FI": "libfabric.md"}
TAG = re.compile(r"\[((?:PDS|SES|CC|WIRE|TSS|FI|UET) (?:appendix |table )?[0-9A-Z][^\][]{0,80})\]")
HEADING = re.compile(r"^#{2,4} (?:Appendix )?([0-9]+(?:\.[0-9]+)*|[A-Z]|V[0-9]+)[.:]? ", re.M)
PREFIX = re.compile(r"^(PDS|SES|CC|WIRE|TSS|FI|UET) +")
SECTION = re.compile(r"^(?:sections? )?(?!0x)([0-9]+(?:\.[0-9]+)*)(?:(?: to |-)([0-9]+(?:\.[0-9]+)*))?")
RULE = re.compile(r"\b([RN][0-9]+)\b")
DECISIONS = re.compile(r"\b[Dd]ecisions?:? (\d+(?:(?:, | and | to |, and )\d+)*)")
WRONG_FORM = re.compile(r"\[(?:libfabric|wire format|(?:pds|ses|cc|wire|tss|libfabric)\.md) [0-9][^]]*\]")
TEXT = {".h", ".cc", ".md", ".py", ".drill", ".pml", ".lua", ".in", ".7", ".5", ".1", ".build", ".tsv"}


def tracked(root):
    listed = subprocess.run(["git", "-C", str(root), "ls-files", "-z"], capture_output=True, check=False).stdout
    names = [name for name in listed.decode().split("\0") if name]
    return [root / n for n in names] or [p for p in root.rglob("*") if "build" not in p.parts[0]]


class Pages:
    """The numbered sections of each page of docs/protocol, and the chapters and tables that its README names."""

    def __init__(self, folder):
        self.text = {key: (folder / name).read_text() for key, name in PAGES.items()}
        self.sections = {key: set(HEADING.findall(text)) for key, text in self.text.items()}
        self.key = (folder / "README.md").read_text()

    def problem(self, page, part):
        """What is wrong with one part of a tag, e.g. ("PDS", "19 R5"); None when it resolves."""
        if page == "UET":
            return None if f"| {part} |" in self.key else f"docs/protocol/README.md has no row for {part}"
        section = SECTION.match(part)
        for number in [n for n in section.groups() if n] if section else []:
            if number not in self.sections[page] and not self.is_item(page, number):
                return f"{PAGES[page]} has no section {number}"
        for rule in RULE.findall(part):
            if not re.search(rf"\b{rule}\b", self.text[page]):
                return f"{PAGES[page]} has no rule {rule}"
        return None

    def is_item(self, page, number):
        """20.23: item 23 of a section that is one numbered list or table."""
        section, _, item = number.rpartition(".")
        if section not in self.sections[page]:
            return False
        body = re.split(rf"^#+ {re.escape(section)}[. ]", self.text[page], maxsplit=1, flags=re.M)[1]
        body = re.split(r"^## ", body, maxsplit=1, flags=re.M)[0]
        return re.search(rf"^(\| *({re.escape(section)}\.)?{item} *\||{item}\. )", body, re.M) is not None


def parts_of(tag):
    """("PDS", "6.4") for each part of "PDS 6.4, 9.1; SES 2"; parts without a prefix belong to the page before."""
    page = None
    for part in re.split(r"[,;]", tag):
        part = part.strip()
        if part.startswith("decision"):  # the numbers behind it are pages of docs/decisions
            return
        prefix = PREFIX.match(part)
        if prefix:
            page, part = prefix.group(1), part[prefix.end():]
        if page and part:
            yield page, part


def unresolved(root, pages):
    for path in tracked(root):
        relative = path.relative_to(root)
        if path.suffix not in TEXT or not path.is_file() or relative.parts[:2] == ("docs", "protocol"):
            continue
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
            for tag in TAG.findall(line):
                for page, part in parts_of(tag):
                    problem = pages.problem(page, part)
                    if problem:
                        yield f"{relative}:{number}: [{tag}]: {problem}"


def lines(root):
    """Of all text, without docs/protocol, which cites others, and what tells of the past."""
    for path in tracked(root):
        relative = path.relative_to(root)
        is_history = relative.parts[:2] in (("docs", "protocol"), ("docs", "notes")) or relative.name == "CHANGELOG.md"
        if path.suffix in TEXT and path.is_file() and not is_history:
            for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1):
                yield f"{relative}:{number}", line


def missing_decisions(root):
    pages = {int(page.name[:4]) for page in (root / "docs" / "decisions").glob("[0-9]*.md")}
    for where, line in lines(root):
        for numbers in DECISIONS.findall(line):
            for number in re.findall(r"\d+", numbers):
                if int(number) not in pages:
                    yield f"{where}: docs/decisions has no page {number}"


def main():
    root = Path(sys.argv[1]).resolve()
    pages = Pages(root / "docs" / "protocol")
    tap = Tap()
    tap.result("each page of docs/protocol has numbered sections",
               [f"{name} has none" for key, name in PAGES.items() if len(pages.sections[key]) < 10])
    tap.result("every tag names a section of docs/protocol", unresolved(root, pages))
    tap.result("every decision that is cited has a page", missing_decisions(root))
    tap.result("tags have one form", [f"{where}: {line.strip()[:100]}" for where, line in lines(root) if WRONG_FORM.search(line)])
    tap.finish()


main()
