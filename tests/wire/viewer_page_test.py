#!/usr/bin/env python3
"""The page of uet-dump --html: needs nothing but itself, stays small however long the logs are, and draws in a browser.

    viewer_page_test.py UET-DUMP
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from browser import MISSING, browser, drawn  # noqa: E402

LINES = 150_000
SIZE_MAX = 24 << 20  # bytes of a page of full views


def log(path, count):
    """Sendings with a loss now and then, a window, and the counters at the end."""
    with open(path, "w", encoding="ascii") as out:
        for i in range(count):
            t = 1_000_000_000 + i * 1000
            out.write(f'{{"t":{t},"event":"request-sent","pdc":7,"psn":{100 + i},"payload_bytes":1024,"entropy_value":{i % 16}}}\n')
            if i % 1000 == 5:
                out.write(f'{{"t":{t},"event":"retransmitted","pdc":7,"psn":{90 + i},"cause":1,"entropy_value":3}}\n')
            if i % 10 == 0:
                out.write(f'{{"t":{t},"event":"cwnd","pdc":7,"psn":0,"bytes":{60000 + i % 5000},"inflight_bytes":{i % 60000}}}\n')
        out.write('{"events":{"request-sent":%d},"drops":{"bad-crc":3}}\n' % count)


def paths(path):
    with open(path, "w", encoding="ascii") as out:
        for second in range(3):
            entries = [{"entropy": e, "plane": 0, "state": "evicted" if e == second else "good", "score": e, "rtt_us": 10 + e, "sent": 5,
                        "marks": 0, "trims": 0, "losses": 0} for e in range(16)]
            out.write(json.dumps({"t": 1_000_000_000 + second * 50_000_000, "peer": "10.0.0.1", "window": 5, "inflight": 1,
                                  "base_rtt_us": 9, "rtt_us": 12, "paths": entries}) + "\n")


class Tap:
    def __init__(self):
        self.number = self.failures = 0

    def result(self, name, problem=""):
        self.number += 1
        self.failures += bool(problem)
        print(f"{'not ok' if problem else 'ok'} {self.number} - {name}")
        for line in str(problem).splitlines()[-30:]:
            print(f"# {line}")

    def skip(self, name, why):
        self.number += 1
        print(f"ok {self.number} - {name} # SKIP {why}")


def check_captures(tap, dump, page, folder):
    """A capture that ends in the middle of a packet is shown, and is a failure; keys that cannot be read are no page."""
    capture = os.path.join(folder, "cut.pcap")
    with open(capture, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + struct.pack("<IIII", 1, 0, 60, 60) + bytes(40))
    done = run(dump, "--html", page, capture)
    if "libjs-d3" not in done.stderr:
        text = open(page, encoding="utf-8").read()
        good = done.returncode == 1 and "cut.pcap" in done.stderr and "cannot be read to its end" in text
        tap.result("a capture that is cut is shown, with status 1", "" if good else str(done))
        os.remove(page)
        done = run(dump, "--html", page, "--keys", os.path.join(folder, "none"), capture)
        tap.result("no keys, no page", "" if done.returncode == 1 and done.stderr and not os.path.exists(page) else str(done))


def check_options(tap, dump, page, file):
    """What has no effect is refused; each form says how many files it takes."""
    problem = ""
    for form in ["--html", page, file], ["--ladder", file, file]:
        for option in ["--json"], ["-v"], ["--stats"], ["-c", "1"], ["--time", "delta"]:
            done = run(dump, *option, *form)
            if done.returncode != 2 or "excludes" not in done.stderr:
                problem = problem or f"{form} {option}: {done}"
    if run(dump, "--html", page, "--ladder", file, file).returncode != 2:
        problem = problem or "--html with --ladder"
    tap.result("options without effect are refused", problem)
    done = run(dump, "--help")
    tap.result("--help shows the forms", "" if done.returncode == 0 and "--ladder [OPTIONS] file file" in done.stdout else str(done))
    tap.result("--version", "" if run(dump, "--version").returncode == 0 else "no --version")


def check_recordings(tap, dump, folder):
    """A command line without its OUT destroys no capture and no event log: wrong usage, and nothing is written."""
    capture, log_file, keys, page = (os.path.join(folder, n) for n in ("kept.pcap", "kept.events", "kept.keylog", "kept.html"))
    link = os.path.join(folder, "link.pcap")
    start = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    kept = {capture: start, log_file: b'{"t":1,"event":"cwnd","bytes":5}\n', keys: b"", capture + "ng": b"\x0a\x0d\x0d\x0a" + bytes(24)}
    for path, text in kept.items():
        with open(path, "wb") as out:
            out.write(text)
    os.symlink(capture, link)
    problem = ""
    for words in [capture], [capture, log_file], [log_file, capture], [log_file], [capture, capture], [link, capture], [capture + "ng", log_file], \
            [keys, "--keys", keys, capture], [page]:
        done = subprocess.run([dump, "--html", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        if done.returncode != 2 or words[0] not in done.stderr:
            problem = problem or f"{words}: {done}"
    for path, text in kept.items():
        if open(path, "rb").read() != text:
            problem = problem or f"{path} was written over"
    tap.result("recordings are not written over", problem or ("" if not os.path.exists(page) else "a page of nothing"))
    done = run(dump, "--html", page, log_file)
    if "libjs-d3" not in done.stderr:
        again = run(dump, "--html", page, log_file)
        left = [name for name in os.listdir(folder) if name.startswith("kept.html.")]
        good = done.returncode == 0 and again.returncode == 0 and not left and os.stat(page).st_mode & 0o777 == 0o666 & ~umask()
        tap.result("a page is written over", "" if good else f"{done} {again} {left}")


def umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def main():
    dump, tap = sys.argv[1], Tap()
    with tempfile.TemporaryDirectory(prefix="uet-viewer-") as folder:
        events, path_log, page = (os.path.join(folder, n) for n in ("client.events", "client.paths", "view.html"))
        log(events, LINES)
        paths(path_log)
        done = subprocess.run([dump, "--html", page, events, path_log], capture_output=True, text=True, timeout=240)
        if done.returncode != 0 and "libjs-d3" in done.stderr:
            tap.skip("the page", "built without the package libjs-d3")
        else:
            tap.result("a page is written", "" if done.returncode == 0 else done.stderr)
            text = open(page, encoding="utf-8").read()
            outside = re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=[^>]*", text)
            tap.result("it needs nothing but itself", "\n".join(outside))
            tap.result("it is small", "" if len(text) < SIZE_MAX else f"{len(text)} bytes")
            if browser() is None:
                tap.skip("a browser draws it", MISSING)
            else:
                document, said = drawn(browser(), page, folder)
                ready = re.search(r"data-ready=\"2 files, (\d+) views\"", document)
                tap.result("a browser draws every view", "" if ready and int(ready[1]) >= 7 else document[-2000:] + said)
                left_out = "are shown, taken from all parts alike" in document and "bad-crc" in document
                tap.result("it says what it leaves out, and the drop reasons", "" if left_out else document[-2000:])
        done = subprocess.run([dump, "--html", os.path.join(folder, "no", "page"), events], capture_output=True, text=True, timeout=240)
        tap.result("a page that cannot be written", "" if done.returncode == 1 and done.stderr else str(done))
        done = subprocess.run([dump, "--html", page, os.path.join(folder, "none")], capture_output=True, text=True, timeout=60)
        tap.result("a file that is not there", "" if done.returncode == 1 and "none" in done.stderr else str(done))
        check_captures(tap, dump, page, folder)
        check_options(tap, dump, page, events)
        check_recordings(tap, dump, folder)
    print(f"1..{tap.number}")
    sys.exit(1 if tap.failures else 0)


main()
