#!/usr/bin/env python3
"""Text files as constants of C++, in pieces. A file that is not there becomes an empty one: the program says what to install.

    embed.py OUT NAMESPACE NAME=FILE...
"""

import sys
from pathlib import Path

PIECE = 8000  # characters of a string literal: compilers have limits
MARK = "embedded"


def main():
    out, namespace, *entries = sys.argv[1:]
    lines = ["#include <span>", "#include <string_view>", "", f"namespace {namespace} {{"]
    for entry in entries:
        name, _, path = entry.partition("=")
        text = Path(path).read_text(encoding="utf-8") if path and Path(path).is_file() else ""
        if f"){MARK}\"" in text:
            raise SystemExit(f"{path} holds the end of a literal")
        pieces = [text[i:i + PIECE] for i in range(0, len(text), PIECE)] or [""]
        lines.append(f"static constexpr std::string_view {name}Pieces[] = {{")
        lines += [f'    R"{MARK}({piece}){MARK}",' for piece in pieces]
        lines += ["};", f"extern const std::span<const std::string_view> {name};",
                  f"const std::span<const std::string_view> {name} = {name}Pieces;"]
    Path(out).write_text("\n".join([*lines, f"}}  // namespace {namespace}", ""]), encoding="utf-8")


main()
