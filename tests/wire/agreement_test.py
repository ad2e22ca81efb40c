#!/usr/bin/python3
"""uet-dump, tshark with the generated plug-in and scapy with the generated layers must agree on every field.

usage: agreement_test.py UET_DUMP PLUGIN.lua SCAPY_DIRECTORY NAMES.json CAPTURE|VECTORS_DIRECTORY

The capture may come from anywhere. Exit code 77: tshark or scapy is not installed.
"""
import ipaddress
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parent))

# Our field of the carrying protocols -> Wireshark's, with a conversion of Wireshark's number where it shows another unit.
CARRIERS = {
    "ethernet": {"dst": "eth.dst", "src": "eth.src", "type": "eth.type"},
    "vlan": {"pcp": "vlan.priority", "dei": "vlan.dei", "vid": "vlan.id", "type": "vlan.etype"},
    "ipv4": {
        "version": "ip.version", "dscp": "ip.dsfield.dscp", "ecn": "ip.dsfield.ecn", "total_length": "ip.len",
        "identification": "ip.id", "df": "ip.flags.df", "mf": "ip.flags.mf", "ttl": "ip.ttl", "protocol": "ip.proto",
        "checksum": "ip.checksum", "src": "ip.src", "dst": "ip.dst",
    },
    "ipv6": {
        "version": "ipv6.version", "dscp": "ipv6.tclass.dscp", "ecn": "ipv6.tclass.ecn", "flow_label": "ipv6.flow",
        "payload_length": "ipv6.plen", "next_header": "ipv6.nxt", "hop_limit": "ipv6.hlim", "src": "ipv6.src",
        "dst": "ipv6.dst",
    },
    "udp": {"src_port": "udp.srcport", "dst_port": "udp.dstport", "length": "udp.length", "checksum": "udp.checksum"},
}

failures = 0
compared = {"tshark": 0, "scapy": 0, "scapy built": 0}


def fail(text):
    global failures
    failures += 1
    if failures <= 20:
        print("DISAGREE", text)


def number(text):
    """What PDML shows, as an integer where it is one, else as text."""
    if text in ("True", "False"):
        return int(text == "True")
    try:
        return int(text, 0)
    except ValueError:
        return text.replace(":", "") if ":" in text and len(text.replace(":", "")) == 32 else text


def our_value(value):
    if isinstance(value, str) and value.startswith("0x"):
        return value[2:]  # 128 bits: hex digits in PDML
    if isinstance(value, str):
        try:
            return str(ipaddress.ip_address(value))
        except ValueError:
            return value
    return value


def tshark_packets(plugin, capture):
    command = ["tshark", "-X", f"lua_script:{plugin}", "-r", capture, "-T", "pdml"]
    pdml = subprocess.run(command, capture_output=True, check=True).stdout
    for packet in xml.etree.ElementTree.fromstring(pdml):
        fields = {}
        for element in packet.iter("field"):
            if element.get("name") and element.get("show") is not None:
                fields.setdefault(element.get("name"), number(element.get("show")))
        yield fields


def compare_tshark(n, packet, fields, names):
    for layer in packet["layers"]:
        form = layer["form"]
        table = {f: d["wireshark"] for f, d in names[form]["fields"].items()} if form in names else CARRIERS.get(form, {})
        for field, filter_name in table.items():
            compared["tshark"] += 1
            ours = our_value(layer["fields"][field])
            theirs = fields.get(filter_name)
            if isinstance(theirs, str) and ":" in theirs and form == "ipv6":
                theirs = str(ipaddress.ip_address(theirs))
            if theirs != ours:
                fail(f"packet {n} {form}.{field}: {ours} here, {filter_name} {theirs} in tshark")


def compare_scapy(n, packet, decoded, names, module):
    headers = {}
    layer = decoded
    while layer:
        if hasattr(layer, "form"):
            headers[layer.form] = layer
        layer = layer.payload
    for layer in packet["layers"]:
        if layer["form"] not in names:
            continue
        header = headers.get(layer["form"])
        if header is None:
            fail(f"packet {n}: scapy has no {layer['form']}")
            continue
        values = {}
        spec_names = {d["scapy"]: f for f, d in names[layer["form"]]["fields"].items()}
        for field in header.fields_desc:
            ours = layer["fields"][spec_names.get(field.name, field.name)]
            ours = int(ours, 16) if isinstance(ours, str) else ours
            values[field.name] = ours
            compared["scapy"] += 1
            if header.getfieldval(field.name) != ours:
                fail(f"packet {n} {layer['form']}.{field.name}: {ours} here, {header.getfieldval(field.name)} in scapy")
        # The other way: a header built by scapy from our fields has the bytes of the packet.
        built = bytes(getattr(module, names[layer["form"]]["scapy"])(**values))
        compared["scapy built"] += 1
        if built != bytes(decoded)[layer["offset"] : layer["offset"] + layer["length"]]:
            fail(f"packet {n} {layer['form']}: scapy builds {built.hex()}")


def main():
    dump, plugin, scapy_directory, names_file, subject = sys.argv[1:]
    names = json.loads(pathlib.Path(names_file).read_text())
    if not shutil.which("tshark"):
        print("tshark is not installed")
        return 77
    try:
        sys.path.insert(0, scapy_directory)
        import uet
        from scapy.utils import rdpcap
    except ImportError as error:
        print(error)
        return 77
    with tempfile.TemporaryDirectory() as directory:
        capture = subject
        if os.path.isdir(subject):
            import vectors_pcap

            capture = os.path.join(directory, "vectors.pcap")
            vectors_pcap.write_pcap(subject, capture)
        output = subprocess.run([dump, "--json", capture], capture_output=True, check=True).stdout
        ours = [json.loads(line) for line in output.splitlines()]
        theirs = list(tshark_packets(plugin, capture))
        decoded = list(rdpcap(capture))
        if not len(ours) == len(theirs) == len(decoded) or not ours:
            fail(f"{len(ours)} packets here, {len(theirs)} in tshark, {len(decoded)} in scapy")
        for n, (packet, fields, scapy_packet) in enumerate(zip(ours, theirs, decoded), 1):
            compare_tshark(n, packet, fields, names)
            compare_scapy(n, packet, scapy_packet, names, uet)
    print(f"{len(ours)} packets:", ", ".join(f"{v} {k}" for k, v in compared.items()), f"comparisons, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
