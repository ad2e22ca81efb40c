#!/usr/bin/python3
"""Captures as other programs write them: every file and link form decodes to the fields of the golden vectors.

usage: foreign_captures_test.py UET_DUMP VECTORS_DIRECTORY

The same packets are written as pcap (both byte orders, microseconds and nanoseconds) and pcapng (both byte orders, simple,
enhanced and obsolete packet blocks), behind every link header, with VLAN tags, IPv4 options and IPv6 extension headers,
and cut short. What uet-dump says about the UET layers must not depend on any of that.
"""
import json
import struct
import subprocess
import sys

import vectors_pcap

ETHERNET, RAW_OLD, RAW, SLL, IPV4, IPV6, SLL2 = 1, 12, 101, 113, 228, 229, 276
TIME = 1_700_000_000_123_456_789

# What each way of carrying a packet may add to the list of problems.
EXPECTED_PROBLEMS = {"ipv4 options": {"ip-options"}, "ipv6 extensions": {"ip-extension"}}


def pcap(packets, link, order="<", nanoseconds=False, fcs_bits=0):
    magic, unit = (0xA1B23C4D, 1) if nanoseconds else (0xA1B2C3D4, 1000)
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link | fcs_bits)
    for data, length in packets:
        out += struct.pack(order + "4I", TIME // 10**9, TIME % 10**9 // unit, len(data), length) + data
    return out


def padded(data):
    return data + bytes(-len(data) % 4)


def block(order, kind, body):
    total = 12 + len(body)
    return struct.pack(order + "II", kind, total) + body + struct.pack(order + "I", total)


def pcapng(packets, link, order="<", kind=6):
    """One section; unknown blocks before and between, and unknown options."""
    out = block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    unknown_option = struct.pack(order + "HH4s", 0x8123, 3, b"xyz\0")
    resolution = struct.pack(order + "HHB3x", 9, 1, 9)
    out += block(order, 1, struct.pack(order + "HHI", link, 0, 0) + unknown_option + resolution + bytes(4))
    for data, length in packets:
        out += block(order, 5, struct.pack(order + "III", 0, 0, 0))  # statistics
        time = struct.pack(order + "II", TIME >> 32, TIME & 0xFFFFFFFF)
        lengths = struct.pack(order + "II", len(data), length)
        if kind == 6:
            body = struct.pack(order + "I", 0) + time + lengths + padded(data) + unknown_option
        elif kind == 2:
            body = struct.pack(order + "HH", 0, 0xFFFF) + time + lengths + padded(data)
        else:
            body = struct.pack(order + "I", length) + padded(data)
        out += block(order, kind, body)
    return out


def with_ipv4_options(ip):
    header = bytearray(ip[:20])
    header[0] = 0x46
    struct.pack_into("!H", header, 2, len(ip) + 4)
    header[10:12] = bytes(2)
    options = bytes([1, 1, 1, 0])
    words = struct.unpack("!12H", bytes(header) + options)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    struct.pack_into("!H", header, 10, ~total & 0xFFFF)
    return bytes(header) + options + ip[20:]


def with_ipv6_extensions(ip):
    """Hop-by-hop, routing, destination options and a fragment header of a whole packet."""
    chain = [(0, bytes([0, 0, 1, 4, 0, 0, 0, 0])), (43, bytes([0, 0, 0, 0, 0, 0, 0, 0])),
             (60, bytes([0, 1, 1, 12] + [0] * 12)), (44, bytes(8))]
    extensions = b""
    for i, (_, body) in enumerate(chain):
        after = chain[i + 1][0] if i + 1 < len(chain) else ip[6]
        extensions += bytes([after]) + body[1:]
    length = struct.pack("!H", len(ip) - 40 + len(extensions))
    return ip[:4] + length + bytes([chain[0][0]]) + ip[7:40] + extensions + ip[40:]


def links(frame):
    """(name, link type, the packet behind that link header) of an Ethernet frame."""
    addresses, ether_type, ip = frame[:12], frame[12:14], frame[14:]
    if ether_type == b"\x81\x00":
        ether_type, ip = frame[16:18], frame[18:]
    is_ipv6 = ether_type == b"\x86\xdd"
    yield "ethernet", ETHERNET, frame
    yield "vlan", ETHERNET, addresses + b"\x81\x00\x20\x05" + ether_type + ip
    yield "qinq", ETHERNET, addresses + b"\x88\xa8\x00\x07\x81\x00\x20\x05" + ether_type + ip
    yield "raw", RAW, ip
    yield "old raw", RAW_OLD, ip
    yield "cooked", SLL, struct.pack("!HHH8s", 4, 1, 6, addresses[6:] + bytes(2)) + ether_type + ip
    yield "cooked v2", SLL2, ether_type + struct.pack("!HIHBB8s", 0, 3, 1, 0, 6, addresses[6:] + bytes(2)) + ip
    if is_ipv6:
        yield "ipv6", IPV6, ip
        yield "ipv6 extensions", RAW, with_ipv6_extensions(ip)
    else:
        yield "ipv4", IPV4, ip
        yield "ipv4 options", RAW, with_ipv4_options(ip)


def files(packets, link):
    for order in "<>":
        name = "little" if order == "<" else "big"
        yield f"pcap us {name}", pcap(packets, link, order), TIME // 1000 * 1000
        yield f"pcap ns {name}", pcap(packets, link, order, nanoseconds=True), TIME
        yield f"pcapng {name}", pcapng(packets, link, order), TIME
        yield f"pcapng old {name}", pcapng(packets, link, order, kind=2), TIME
        yield f"pcapng simple {name}", pcapng(packets, link, order, kind=3), 0
    yield "pcap with FCS length", pcap(packets, link, fcs_bits=0x50000000), TIME // 1000 * 1000


class Test:
    def __init__(self, dump):
        self.dump = dump
        self.number = self.failures = 0

    def decode(self, capture):
        run = subprocess.run([self.dump, "--json", "-"], input=capture, capture_output=True)
        return [json.loads(line) for line in run.stdout.splitlines()], run.stderr.decode()

    def result(self, name, problem):
        self.number += 1
        self.failures += bool(problem)
        print(f"{'not ok' if problem else 'ok'} {self.number} - {name}")
        if problem:
            print("#", str(problem)[:1500])


def uet_part(packet):
    """What must be the same however the packet was carried and captured."""
    layers = [{k: v for k, v in layer.items() if k != "offset"} for layer in packet["layers"]
              if layer["layer"] in ("entropy", "tss", "pds", "ses", "data", "crc")]
    return layers, packet["payload_len"]


def codes(packet):
    return {problem.split(":")[0] for problem in packet["problems"]}


def difference(got, error, want, extra, time_ns):
    if error or len(got) != len(want):
        return f"{len(got)} of {len(want)} packets: {error}"
    for n, (mine, reference) in enumerate(zip(got, want)):
        if uet_part(mine) != uet_part(reference):
            return f"packet {n + 1}: {uet_part(mine)} instead of {uet_part(reference)}"
        if codes(mine) != codes(reference) | extra:
            return f"packet {n + 1}: {mine['problems']}"
        if time_ns is not None and mine["time_ns"] != time_ns:
            return f"packet {n + 1}: time {mine['time_ns']}"
    return ""


def main():
    dump, vectors = sys.argv[1:]
    test = Test(dump)
    frames = [frame for _, _, frame in vectors_pcap.packets(vectors)]
    carried = {}  # name of the way -> (link type, [packet], [index of the frame])
    for i, frame in enumerate(frames):
        for name, link, packet in links(frame):
            entry = carried.setdefault(name, (link, [], []))
            entry[1].append((packet, len(packet)))
            entry[2].append(i)
    reference, error = test.decode(pcap([(f, len(f)) for f in frames], ETHERNET))
    test.result("plain pcap", error or ("" if len(reference) == len(frames) else "packets are missing"))

    for name, (link, packets, indices) in carried.items():
        want = [reference[i] for i in indices]
        extra = EXPECTED_PROBLEMS.get(name, set())
        for form, capture, time_ns in files(packets, link):
            got, error = test.decode(capture)
            test.result(f"{name}, {form}", difference(got, error, want, extra, time_ns))

    # Cut short at every length that tcpdump -s may have been given: all packets are there, the layers that were captured
    # whole are the same, and the cut is named.
    for snap in range(0, max(map(len, frames)) + 1):
        got, error = test.decode(pcap([(f[:snap], len(f)) for f in frames], ETHERNET))
        problem = error or ("" if len(got) == len(frames) else f"{len(got)} packets")
        for mine, whole, frame in zip(got, reference, frames):
            complete = [layer for layer in whole["layers"] if layer["offset"] + layer["length"] <= snap]
            complete = [layer for layer in complete if layer["layer"] not in ("crc", "data", "padding")]
            if mine["layers"][: len(complete)] != complete:
                problem = problem or f"{mine['layers']} instead of {complete}"
            if snap < len(frame) and not mine["problems"]:
                problem = problem or f"nothing said about a packet cut to {snap} of {len(frame)} bytes"
        test.result(f"cut to {snap} bytes", problem)
    print(f"1..{test.number}")
    return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())
