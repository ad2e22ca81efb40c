#!/usr/bin/env python3
"""Much data at five percent loss in each direction, over the kernel's UDP sockets: one write of a gibibyte, and 100,000 small
tagged messages. uet-perf looks at every byte that arrived.

    bad_weather.py PROVIDER-FOLDER UET-PERF
"""

import sys

from harness import Job, Tap, base_env, free_port, need_provider, own_addresses, temporary_folder


def run(provider, perf, folder, test, size, count, window):
    """What went wrong, or nothing."""
    env = base_env(provider, FI_UET_ADDR=own_addresses(2), FI_UET_IMPAIR="loss=0.05")
    command = [perf, "fabric", test, "--size", str(size), "--count", str(count), "--window", str(window),
               "--control-port", str(free_port()), "--timeout", "600"]
    server = Job(command, env, folder, f"{test}-server")
    client = None
    try:
        server.wait_until_it_listens(int(command[command.index("--control-port") + 1]))
        client = Job([*command, "--peer", "127.0.0.1"], env, folder, f"{test}-client")
        status = [client.wait(900), server.wait(60)]
        return "" if status == [0, 0] else client.report(status[0]) + server.report(status[1])
    finally:
        server.kill()
        if client:
            client.kill()


def main():
    provider, perf = sys.argv[1:]
    need_provider(provider)
    tap = Tap()
    with temporary_folder() as folder:
        tap.result("a gibibyte written", run(provider, perf, folder, "write", 1 << 30, 1, 1))
        tap.result("100,000 tagged messages", run(provider, perf, folder, "tagged-rate", 64, 100_000, 64))
    tap.finish()


main()
