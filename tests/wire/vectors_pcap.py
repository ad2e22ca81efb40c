#!/usr/bin/python3
"""Writes the golden vectors into a pcap file; vectors that are no frames get Ethernet, IPv4 and UDP in front.

usage: vectors_pcap.py VECTORS_DIRECTORY OUTPUT
"""
import json
import pathlib
import struct
import sys


def ipv4_checksum(header):
    total = sum(struct.unpack("!10H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def wrap(uet, source_port=0xC000):
    """A frame as an endpoint without UET CRC would send it."""
    udp = struct.pack("!4H", source_port, 4793, 8 + len(uet), 0)
    start = struct.pack("!BBHHHBBH", 0x45, 2, 28 + len(uet), 0, 0x4000, 64, 17, 0)
    addresses = bytes([10, 20, 30, 1, 10, 20, 30, 2])
    checksum = ipv4_checksum(start + addresses)
    ip = start[:10] + struct.pack("!H", checksum) + addresses
    return bytes.fromhex("025e1000000b025e1000000a0800") + ip + udp + uet


def packets(directory):
    """(vector name, packet as in the JSON file, frame) in order."""
    for path in sorted(pathlib.Path(directory).glob("V*.json")):
        vector = json.loads(path.read_text())
        for packet in vector["packets"]:
            data = bytes.fromhex(packet["hex"])
            yield vector["name"], packet, data if packet["frame"] else wrap(data)


def write_pcap(directory, output):
    frames, bare = [], None
    for _, packet, frame in packets(directory):
        frames.append(frame)
        bare = bare or (None if packet["frame"] else bytes.fromhex(packet["hex"]))
    frames.append(wrap(bare, source_port=53))  # an entropy value that happens to be the port of another protocol
    with open(output, "wb") as f:
        f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
        for n, frame in enumerate(frames):
            f.write(struct.pack("<4I", 1700000000 + n, 1000 * n, len(frame), len(frame)) + frame)


if __name__ == "__main__":
    write_pcap(sys.argv[1], sys.argv[2])
