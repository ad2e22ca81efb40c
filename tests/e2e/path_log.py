"""What endpoints say about their paths: the file of FI_UET_PATH_LOG."""

import json

COUNTS = ("sent", "marks", "trims", "losses")


def read(path, key="paths"):
    """Its lines about paths, or those with another key. The last one may be cut short."""
    lines = []
    with open(path) as file:
        for line in file:
            try:
                lines.append(json.loads(line))
            except ValueError:
                pass
    return [line for line in lines if key in line]


def last_before(lines, peer, end):
    """What was known of the paths to `peer` at `end` (seconds of the monotonic clock), or nothing."""
    known = [line for line in lines if line["peer"] == peer and line["t"] <= end * 1e9]
    return known[-1] if known else None


def table(lines, begin, end):
    """A row for each peer and state of paths at `end`: how many there are, what they carried since `begin`, their scores and
    round trips."""
    rows = []
    for peer in sorted({line["peer"] for line in lines}):
        now = last_before(lines, peer, end)
        if now is None:
            continue
        before = {p["entropy"]: p for p in (last_before(lines, peer, begin) or {"paths": []})["paths"]}
        for state in ("good", "returning", "evicted"):
            paths = [p for p in now["paths"] if p["state"] == state]
            if not paths:
                continue
            counts = {k: sum(p[k] - before.get(p["entropy"], {}).get(k, 0) for p in paths) for k in COUNTS}
            heard = sorted(p["rtt_us"] for p in paths if p["rtt_us"] > 0) or [0]
            rows.append({"peer": peer, "window": now["window"], "rtt_us": round(now["rtt_us"]), "state": state,
                         "paths": len(paths), **counts, "score_max": max(p["score"] for p in paths),
                         "path_rtt_us": [round(heard[0]), round(heard[len(heard) // 2]), round(heard[-1])]})
    return rows
