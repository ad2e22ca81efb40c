#!/usr/bin/env python3
"""fi_pingpong over kernel UDP: nothing configured, given addresses, IPv6, other settings, impaired.

    pingpong_udp.py PROVIDER-FOLDER
"""

import sys

from harness import Tap, need_program, need_provider, own_addresses, pingpong, temporary_folder

ADDRESSES = {"FI_UET_ADDR": own_addresses(2)}
IMPAIR = {"FI_UET_IMPAIR": "loss=0.01,reorder=0.05,duplicate=0.01,seed=11"}


def main():
    provider = sys.argv[1]
    need_provider(provider)
    need_program("fi_pingpong")
    tap = Tap()
    cases = [
        ("nothing configured, msg, all sizes", {}, ["-m", "msg", "-S", "all"]),
        ("nothing configured, tagged, all sizes", {}, ["-m", "tagged", "-S", "all"]),
        ("address list", ADDRESSES, ["-m", "tagged", "-S", "all"]),
        ("no protection", {**ADDRESSES, "FI_UET_PROTECT": "none"}, ["-S", "all"]),
        ("payload of 1024 bytes, one path", {**ADDRESSES, "FI_UET_MAX_PAYLOAD": "1024", "FI_UET_LB": "single"}, ["-S", "all"]),
        ("no congestion control", {**ADDRESSES, "FI_UET_CC": "none"}, ["-S", "65536"]),
        ("datagrams, nothing configured", {}, ["-e", "dgram", "-S", "all"]),
        ("datagrams of 8192 bytes", {**ADDRESSES, "FI_UET_MAX_PAYLOAD": "8192"}, ["-e", "dgram", "-S", "all"]),
        ("progress thread", {**ADDRESSES, "FI_UET_PROGRESS": "thread"}, ["-S", "all"]),
        ("1 % loss, 5 % reorder, 1 % duplication, msg", {**ADDRESSES, **IMPAIR}, ["-m", "msg", "-S", "all", "-I", "10"]),
        ("1 % loss, 5 % reorder, 1 % duplication, tagged", {**ADDRESSES, **IMPAIR}, ["-m", "tagged", "-S", "all", "-I", "10"]),
    ]
    with temporary_folder() as folder:
        for name, settings, arguments in cases:
            tap.result(name, pingpong(folder, provider, settings, settings, arguments))
    tap.finish()


main()
