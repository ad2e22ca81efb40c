#!/usr/bin/python3
"""Writes the seed inputs of the fuzzers from the golden vectors.

usage: seeds.py VECTORS_DIRECTORY CORPUS_DIRECTORY
"""
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "wire"))
import vectors_pcap  # noqa: E402


def pcapng(frames):
    out = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    options = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    out += struct.pack("<IIHHI", 1, 20 + len(options), 1, 0, 0) + options + struct.pack("<I", 20 + len(options))
    for frame in frames:
        data = frame + bytes(-len(frame) % 4)
        comment = struct.pack("<HH4sHHIHH", 1, 4, b"pdc7", 2, 4, 1, 0, 0)
        total = 32 + len(data) + len(comment)
        out += struct.pack("<7I", 6, total, 0, 1, 2, len(frame), len(frame)) + data + comment + struct.pack("<I", total)
    simple = frames[0] + bytes(-len(frames[0]) % 4)
    total = 16 + len(simple)
    return out + struct.pack("<III", 3, total, len(frames[0])) + simple + struct.pack("<I", total)


def main():
    vectors, corpus = sys.argv[1], pathlib.Path(sys.argv[2])
    frames = []
    for n, (name, packet, frame) in enumerate(vectors_pcap.packets(vectors)):
        frames.append(frame)
        (corpus / "frame" / f"{name}-{n}").write_bytes(bytes([0, 0, 0]) + frame)
        if not packet["frame"]:
            (corpus / "uet" / f"{name}-{n}").write_bytes(bytes.fromhex(packet["hex"]))
        for m, layer in enumerate(packet["layers"]):
            if "fields" in layer:
                (corpus / "headers" / f"{name}-{n}-{m}").write_bytes(bytes([n + m]) + bytes.fromhex(layer["hex"]))
    ip = frames[0][14:]
    (corpus / "frame" / "sll").write_bytes(bytes([1, 0, 0]) + struct.pack("!HHH8sH", 0, 1, 6, bytes(8), 0x800) + ip)
    (corpus / "frame" / "sll2").write_bytes(
        bytes([2, 0, 0]) + struct.pack("!HHIHBB8s", 0x800, 0, 1, 1, 0, 6, bytes(8)) + ip)
    (corpus / "frame" / "raw").write_bytes(bytes([3, 0, 0]) + ip)
    extended = frames[1][14:20] + bytes([60]) + frames[1][21:54] + bytes([17, 0, 1, 4, 0, 0, 0, 0]) + frames[1][54:]
    (corpus / "frame" / "ipv6-options").write_bytes(bytes([3, 0, 0]) + extended)
    (corpus / "frame" / "cut").write_bytes(bytes([0, 0, 40]) + frames[0][:60])
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1)
    records = b"".join(struct.pack("<4I", 1, 2, len(f), len(f)) + f for f in frames[:6])
    (corpus / "capture" / "pcap").write_bytes(head + records)
    head = struct.pack(">IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 113)
    (corpus / "capture" / "pcap-big-endian-ns").write_bytes(head + struct.pack(">4I", 1, 2, 20, 60) + frames[0][:20])
    (corpus / "capture" / "pcapng").write_bytes(pcapng(frames[:6]))
    (corpus / "capture" / "two-sections").write_bytes(pcapng(frames[:1]) * 2)


if __name__ == "__main__":
    main()
