#!/usr/bin/env python3
"""Writes the header by which the DPDK plug-in and its users see that they were built from the same declarations.

    plugin_abi.py OUTPUT HEADER...
"""

import hashlib
import sys

output, *headers = sys.argv[1:]
digest = hashlib.sha256()
for header in headers:
    with open(header, "rb") as file:
        digest.update(file.read())
with open(output, "w", encoding="utf-8") as file:
    file.write(f"""/// Made by plugin_abi.py out of every header that both sides of the plug-in see.
#pragma once

namespace uet::net {{
inline constexpr char kPluginAbi[] = "{digest.hexdigest()[:16]}";
}}
""")
