#!/usr/bin/env python3
"""Protocol libraries call no clock, no source of randomness, no socket, no lock and no thread.

    symbols.py NM ARCHIVE...
"""

import re
import subprocess
import sys
from pathlib import Path

from tap import Tap

FORBIDDEN = [
    ("clock", r"(clock_gettime|clock_nanosleep|gettimeofday|time|timespec_get|clock|localtime.*|gmtime.*"
              r"|std::chrono::.*::now\(\))"),
    ("randomness", r"(rand|srand|rand_r|random|srandom|[dlm]rand48|getrandom|getentropy|arc4random.*"
                   r"|std::random_device::.*)"),
    ("sockets", r"(socket|socketpair|bind|connect|listen|accept4?|send|sendto|sendmsg|sendmmsg|recv|recvfrom|recvmsg"
                r"|recvmmsg|poll|ppoll|select|pselect|epoll_.*|eventfd.*)"),
    ("sleep", r"(sleep|usleep|nanosleep|sched_yield|std::this_thread::.*)"),
    ("locks and threads", r"(pthread_(mutex|rwlock|cond|spin|create|once).*|sem_.*|std::thread::.*|std::condition_variable.*"
                          r"|std::__condvar.*|mtx_.*|thrd_.*)"),
    ("processes", r"(fork|vfork|execv.*|system|popen|raise|kill|signal|sigaction)"),
]


def undefined_symbols(nm, archive):
    """Pairs of object file and demangled name without glibc version."""
    output = subprocess.run([nm, "--undefined-only", "--demangle", "--print-file-name", str(archive)],
                            check=True, capture_output=True, text=True).stdout
    for line in output.splitlines():
        match = re.match(r"^(.*?):\s+[Uw] (.*)$", line)
        if match:
            yield match.group(1).rsplit(":", 1)[-1], match.group(2).split("@")[0]


def main():
    nm, archives = sys.argv[1], [Path(a) for a in sys.argv[2:]]
    tap = Tap()
    for archive in archives:
        symbols = list(undefined_symbols(nm, archive))
        for what, pattern in FORBIDDEN:
            rule = re.compile(f"^{pattern}$")
            tap.result(f"{archive.name}: no {what}",
                       [f"{member} needs {name}" for member, name in symbols if rule.match(name)])
    tap.finish()


main()
