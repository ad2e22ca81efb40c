#!/usr/bin/env python3
"""Which files of a folder call each other in a circle, and how many methods each of its classes has.

    call_graph.py [--check [--circle=FILES] [--methods=HEADER:CLASS:COUNT ...]] [--calls] NM ARCHIVE SOURCE-FOLDER

A file calls another one when its object refers to a function that the other one's object defines; `nm` says so, so overloads,
templates and lambdas need no guess. Virtual calls through an interface are not followed. Methods are counted in headers and
sources: constructors and operators too, friends and inherited ones not. --calls lists every pair of files. --check prints TAP
and fails on a circle of more than three files and on a class of more than 40 methods. A folder that is not so far has its own
bounds, for circles and for each of its larger classes; when it has come below one of them, the check says to what it may fall.
"""

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

LARGEST_CYCLE = 3
MOST_METHODS = 40


def calls_of(nm, archive):
    """File -> files it calls, by object of the archive."""
    listed = subprocess.run([nm, "--format=posix", archive], check=True, capture_output=True, text=True).stdout
    defined, wanted, current = {}, defaultdict(set), None
    for line in listed.splitlines():
        if match := re.search(r"\[(?:.*/)?([^/\[]+)\.cc\.o\]:$", line):
            current = match.group(1)
            wanted[current] = set()
            continue
        symbol, kind = (line.split() + ["", ""])[:2]
        if kind == "T":
            defined[symbol] = current
        elif kind == "U":
            wanted[current].add(symbol)
    return {name: {defined[s] for s in symbols if s in defined} - {name} for name, symbols in wanted.items()}


def cycles(graph):
    """Strongly connected components, largest first. [Tarjan]"""
    index, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        on_stack.add(node)
        for callee in sorted(graph[node]):
            if callee not in index:
                visit(callee)
                low[node] = min(low[node], low[callee])
            elif callee in on_stack:
                low[node] = min(low[node], index[callee])
        if low[node] != index[node]:
            return
        component = []
        while not component or component[-1] != node:
            component.append(stack.pop())
            on_stack.discard(component[-1])
        found.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found, key=len, reverse=True)


def plain(text):
    """Code without comments, strings and preprocessor lines."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'(?!\w)', '""', text)
    return re.sub(r"^\s*#[^\n]*(?:\\\n[^\n]*)*", "", text, flags=re.M)


def statements(body):
    """The declarations directly in a class: text up to `;`, or up to the body that follows."""
    depth, begin, result, i = 0, 0, [], 0
    while i < len(body):
        c = body[i]
        if c in "({":
            if c == "{" and depth == 0:
                result.append(body[begin:i])
            depth += 1
        elif c in ")}":
            depth -= 1
            if c == "}" and depth == 0:
                begin = i + 1
        elif c == ";" and depth == 0:
            result.append(body[begin:i])
            begin = i + 1
        i += 1
    return result


def is_method(statement):
    text = re.sub(r"^\s*(?:(?:public|private|protected)\s*:\s*)+", "", statement.strip())
    text = re.sub(r"^template\s*<[^>]*>", "", text).strip()
    while (shorter := re.sub(r"<[^<>()]*(?:\([^()]*\))?[^<>()]*>", "", text)) != text:
        text = shorter
    if re.match(r"(?:using|friend|struct|class|enum|union|static_assert|typedef)\b", text):
        return False
    head = text.split("(")[0]
    return "(" in text and "=" not in re.sub(r"operator\s*\S+", "", head) and bool(re.search(r"\w\s*$|operator", head))


def methods(folder):
    """Class -> number of methods, over all files of the folder."""
    counts = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".h", ".cc"):
            continue
        text = plain(path.read_text())
        for match in re.finditer(r"\b(?:class|struct)\s+(\w+)(?:\s+final)?\s*(?::[^;{]*)?\{", text):
            depth, end = 1, match.end()
            while depth > 0:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            counts[f"{path.name}: {match.group(1)}"] = sum(map(is_method, statements(text[match.end():end - 1])))
    return counts


def report(graph, counts, with_calls):
    pairs = sum(len(callees) for callees in graph.values())
    circles = [c for c in cycles(graph) if len(c) > 1]
    print(f"{len(graph)} files, {pairs} pairs of caller and callee")
    print(f"largest cycle: {len(circles[0]) if circles else 0} files")
    for circle in circles:
        print("  " + " ".join(circle))
    print("classes by methods:")
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:15]:
        print(f"  {count:4} {name}")
    if with_calls:
        for name, callees in sorted(graph.items()):
            print(f"{name} -> {' '.join(sorted(callees))}")


def check(graph, counts, circle, allowed):
    largest = max(len(c) for c in cycles(graph))
    bounds = {name: allowed.get(name, MOST_METHODS) for name in counts}
    unknown = sorted(allowed.keys() - counts.keys())
    problems = [
        [f"{len(c)} files call each other: {' '.join(c)}" for c in cycles(graph) if len(c) > circle],
        [f"{name} has {count} methods, {bounds[name]} are allowed" for name, count in sorted(counts.items())
         if count > bounds[name]] + [f"there is no class {name}" for name in unknown],
    ]
    names = [f"no more than {circle} files call each other in a circle",
             f"no class has more than {MOST_METHODS} methods"
             + "".join(f", {name} no more than {count}" for name, count in sorted(allowed.items()))]
    print(f"1..{len(names)}")
    if LARGEST_CYCLE <= largest < circle:
        print(f"# the bound of circles may fall to {largest}")
    for name, count in sorted(counts.items()):
        if MOST_METHODS != bounds[name] > count:
            print(f"# the bound of {name} may fall to {max(count, MOST_METHODS)}")
    for number, (name, wrong) in enumerate(zip(names, problems), 1):
        print(f"{'not ok' if wrong else 'ok'} {number} - {name}")
        for line in wrong:
            print(f"# {line}")
    sys.exit(1 if any(problems) else 0)


def main():
    arguments = [a for a in sys.argv[1:] if not a.startswith("--")]
    if len(arguments) != 3:
        sys.exit(__doc__)
    nm, archive, folder = arguments
    graph, counts = calls_of(nm, archive), methods(Path(folder))
    if "--check" in sys.argv:
        options = [a.split("=", 1) for a in sys.argv[1:] if "=" in a]
        circle = int(dict(options).get("--circle", LARGEST_CYCLE))
        allowed = {name: int(count)
                   for key, value in options if key == "--methods" for name, count in [value.replace(":", ": ", 1).rsplit(":", 1)]}
        check(graph, counts, circle, allowed)
    report(graph, counts, "--calls" in sys.argv)


main()
