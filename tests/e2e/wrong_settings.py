#!/usr/bin/env python3
"""Each wrong setting gives a message that names it, a non-zero exit status, and leaves nothing behind.

    wrong_settings.py PROVIDER-FOLDER DPDK-PLUG-IN OPEN-DOMAIN
"""

import os
import shutil
import subprocess
import sys

from harness import Namespaces, Tap, base_env, need_program, need_provider, own_addresses, skip_all, temporary_folder

# Settings, and what the message must contain. Checked by fi_info, which opens no port.
VALUES = [
    ({"FI_UET_PORT": "ucp"}, ["FI_UET_PORT", "ucp", "dpdk:"]),
    ({"FI_UET_PORT": "udp:lo+dpdk:net_memif0"}, ["FI_UET_PORT", "all be udp ports or all be dpdk"]),
    ({"FI_UET_PORT": "udp:lo+udp:lo"}, ["FI_UET_PORT", "two planes use lo"]),
    ({"FI_UET_PORT": "udp+udp:lo"}, ["FI_UET_PORT", "udp:eth0+udp:eth1"]),
    ({"FI_UET_PORT": "+".join(f"udp:e{n}" for n in range(9))}, ["FI_UET_PORT", "9 planes"]),
    ({"FI_UET_PORT": "udp:lo+udp:nonexistent9"}, ["nonexistent9"]),
    ({"FI_UET_PORT": "udp,nosuch=1"}, ["FI_UET_PORT", "nosuch=1"]),
    ({"FI_UET_PORT": "udp:lo,sockets=0"}, ["FI_UET_PORT", "from 1 to 64"]),
    ({"FI_UET_ADDR": "10.0.0.300"}, ["FI_UET_ADDR", "10.0.0.300"]),
    ({"FI_UET_ADDR": "fe80::1"}, ["fe80::1", "link-local"]),
    ({"FI_UET_GATEWAY": "x"}, ["FI_UET_GATEWAY"]),
    ({"FI_UET_ENCAP": "gre"}, ["FI_UET_ENCAP", "gre", "udp, ip"]),
    ({"FI_UET_MAX_PAYLOAD": "5000"}, ["FI_UET_MAX_PAYLOAD", "4096"]),
    ({"FI_UET_PROTECT": "aes"}, ["FI_UET_PROTECT", "auto, crc, none, tss"]),
    ({"FI_UET_JOB": "16777216"}, ["FI_UET_JOB", "16777215"]),
    ({"FI_UET_MODE": "x"}, ["FI_UET_MODE", "rel, abs"]),
    ({"FI_UET_CC": "cubic"}, ["FI_UET_CC", "nscc"]),
    ({"FI_UET_PATHS": "7"}, ["FI_UET_PATHS"]),
    ({"FI_UET_RTO_MAX": "soon"}, ["FI_UET_RTO_MAX", "unit"]),
    ({"FI_UET_PEER_TIMEOUT": "5 hours"}, ["FI_UET_PEER_TIMEOUT"]),
    ({"FI_UET_PROGRESS": "x"}, ["FI_UET_PROGRESS", "auto, manual, thread"]),
    ({"FI_UET_INJECT_SIZE": "1"}, ["FI_UET_INJECT_SIZE"]),
    ({"FI_UET_CONFIG": "/does/not/exist.toml"}, ["FI_UET_CONFIG", "/does/not/exist.toml"]),
    ({"FI_UET_IFNAME": "nonexistent9"}, ["FI_UET_IFNAME", "nonexistent9"]),
    ({"FI_UET_PORT": "udp:nonexistent9"}, ["FI_UET_PORT", "nonexistent9"]),
    ({"FI_UET_PORT": "udp:lo", "FI_UET_IFNAME": "nonexistent9"}, ["FI_UET_IFNAME", "udp:lo", "leave one out"]),
    ({"FI_UET_IFNAME": "nonexistent9", "FI_UET_ADDR": own_addresses(1)}, ["FI_UET_IFNAME", own_addresses(1), "interface lo", "nonexistent9"]),
    ({"FI_UET_ADDR": "224.0.0.1"}, ["FI_UET_ADDR", "224.0.0.1", "unicast"]),
    ({"FI_UET_KEYS_SIGNAL": "hup"}, ["FI_UET_KEYS_SIGNAL", "FI_UET_KEYS"]),
    ({"FI_UET_PDS": "rto_init_time=5ms"}, ["FI_UET_PDS", "RTO_Init_Time"]),
    ({"FI_UET_CONFIG": "profile:reference"}, ["FI_UET_ENCAP (in profile:reference)", "dpdk port"]),
]

# On a host with two interfaces, c0 and d0.
PLACES = [
    ({"FI_UET_PORT": "udp:c0", "FI_UET_ADDR": "10.8.0.1"}, ["FI_UET_PORT", "10.8.0.1", "d0", "c0"]),
    ({"FI_UET_IFNAME": "c0", "FI_UET_ADDR": "10.8.0.1"}, ["FI_UET_IFNAME", "10.8.0.1", "d0", "c0"]),
    ({"FI_UET_PORT": "udp:d0", "FI_UET_IFNAME": "c0"}, ["FI_UET_IFNAME", "c0", "udp:d0"]),
]

# What only opening the port can tell. Checked by a program that opens a domain and nothing else.
PORTS = [
    ({"FI_UET_PORT": "udp:" + own_addresses(1), "FI_UET_IMPAIR": "loss=2"}, ["FI_UET_IMPAIR"]),
    ({"FI_UET_PORT": "udp:192.0.2.77"}, ["192.0.2.77"]),
    ({"FI_UET_ADDR": "192.0.2.77"}, ["192.0.2.77"]),
    ({"FI_UET_ADDR": own_addresses(1), "FI_UET_TRACE": "/does/not/exist/x"}, ["FI_UET_TRACE"]),
    ({"FI_UET_ADDR": own_addresses(1), "FI_UET_PATH_LOG": "/does/not/exist/x"}, ["FI_UET_PATH_LOG"]),
    ({"FI_UET_ADDR": own_addresses(1), "FI_UET_PCAP": "/does/not/exist/x"}, ["FI_UET_PCAP"]),
]
DPDK_PORTS = [
    ({"FI_UET_PORT": "dpdk:net_nonsense0", "FI_UET_ADDR": "10.0.0.1"}, ["net_nonsense0"]),
    ({"FI_UET_PORT": "dpdk:0000:ff:1f.7", "FI_UET_ADDR": "10.0.0.1"}, ["0000:ff:1f.7"]),
    ({"FI_UET_PORT": "dpdk:net_af_packet0,iface=nonexistent9", "FI_UET_ADDR": "10.0.0.1"}, ["nonexistent9"]),
    ({"FI_UET_PORT": "dpdk:net_null0+dpdk:net_nonsense1", "FI_UET_ADDR": "10.0.0.1"}, ["net_nonsense1"]),
    ({"FI_UET_PORT": "dpdk:net_memif0,role=client,socket=/does/not/exist/x,socket-abstract=no", "FI_UET_ADDR": "10.0.0.1"},
     ["no folder /does/not/exist "]),
    ({"FI_UET_PORT": "dpdk:net_memif0,role=none", "FI_UET_ADDR": "10.0.0.1"}, ["net_memif0"]),
]


def run(command, env):
    try:
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr
    except subprocess.TimeoutExpired as late:
        return None, ((late.stdout or b"") + (late.stderr or b"")).decode(errors="replace")


def problem_of(status, output, wanted):
    if status is None:
        return "it went on:\n" + output
    if status <= 0:
        return f"exit status {status}:\n{output}"
    missing = [w for w in wanted if w not in output]
    return f"the message does not say {missing}:\n{output[-2000:]}" if missing else ""


def main():
    if len(sys.argv) < 4:
        skip_all("the provider was not built")
    provider, plugin, open_domain = sys.argv[1:]
    need_provider(provider)
    need_program("fi_info")
    tap = Tap()
    for settings, wanted in VALUES:
        name = " ".join(f"{k}={v}" for k, v in settings.items())
        tap.result(name, problem_of(*run(["fi_info", "-p", "uet"], base_env(provider, **settings)), wanted))
    try:
        network = Namespaces({"c0": ("10.7.0.1", "10.7.0.2"), "d0": ("10.8.0.1", "10.8.0.2")})
    except (OSError, RuntimeError) as why:
        tap.skip("an address of another interface", str(why))
    else:
        inside = ["ip", "netns", "exec", network.names[0], "fi_info", "-p", "uet"]
        for settings, wanted in PLACES:
            name = " ".join(f"{k}={v}" for k, v in settings.items())
            tap.result(name, problem_of(*run(inside, base_env(provider, **settings)), wanted))
        good = {"FI_UET_PORT": "udp:d0", "FI_UET_ADDR": "10.8.0.1"}
        status, output = run(inside, base_env(provider, **good))
        tap.result("an address of the interface that is named", "" if status == 0 and "uet_d0" in output else output)
        network.remove()
    with temporary_folder() as folder:
        path = os.path.join(folder, "typo.toml")
        with open(path, "w") as file:
            file.write("pathz = 8\n")
        tap.result("unknown key in the file", problem_of(
            *run(["fi_info", "-p", "uet"], base_env(provider, FI_UET_CONFIG=path)), ["pathz", path]))
        with open(path, "w") as file:
            file.write('ifname = "nonexistent9"\n')
        tap.result("the file is named whose interface is not there", problem_of(
            *run(["fi_info", "-p", "uet"], base_env(provider, FI_UET_CONFIG=path)), [f"FI_UET_IFNAME (in {path})"]))
    tap.result("misspelt variable is named", "" if "FI_UET_PRT" in
               run(["fi_info", "-p", "uet"], base_env(provider, FI_UET_PRT="udp"))[1] else "no word about FI_UET_PRT")
    for settings, wanted in PORTS + (DPDK_PORTS if os.path.exists(plugin) else []):
        name = " ".join(f"{k}={v}" for k, v in settings.items())
        tap.result(name, problem_of(*run([open_domain], base_env(provider, **settings)), wanted))
    with temporary_folder() as folder:
        # A library of that name that does not belong to this provider, as after half a rebuild.
        for name in ("libuet-fi.so", "libuet-dpdk.so"):
            shutil.copy(os.path.join(provider, "libuet-fi.so"), os.path.join(folder, name))
        env = base_env(folder, FI_UET_PORT="dpdk:net_null0", FI_UET_ADDR="10.0.0.1")
        tap.result("plug-in of another build", problem_of(*run([open_domain], env), ["built from other sources"]))
    tap.finish()


main()
