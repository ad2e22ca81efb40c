#!/usr/bin/env python3
"""uet-keys as people use it: a life of a key file, a server with a client, and what it refuses.

    uet_keys_test.py UET-KEYS
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

number = failures = 0


def result(name, good, detail=""):
    global number, failures
    number += 1
    failures += not good
    print(f"{'ok' if good else 'not ok'} {number} - {name}")
    if not good:
        print(f"# {detail}")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory(prefix="uet-keys-") as folder:
        os.chmod(folder, 0o700)
        path, state = pathlib.Path(folder, "keys.json"), pathlib.Path(folder, "state")
        said = []

        def run(*arguments):
            done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
            said.append(done.stdout + done.stderr)
            return done.returncode

        def domain(file=path):
            return json.loads(file.read_text())["secure_domains"][0]

        for wrong in ([], ["nothing"], ["new"], ["check"], ["new", "--out", path, "--mode", "none"], ["check", path, "--more"]):
            status = run(*wrong)
            result(f"wrong usage: {' '.join(map(str, wrong[:1])) or 'no command'}", status == 2 and said[-1] and not path.exists(), f"{status}: {said[-1]}")
        result("--help and --version", run("--help") == run("--version") == 0)
        result("new", run("new", "--out", path, "--state-dir", state) == 0, said[-1:])
        result("the file is private", path.stat().st_mode & 0o777 == 0o600)
        result("new does not overwrite", run("new", "--out", path, "--state-dir", state) != 0)
        first = domain()["keys"][0]["key"]
        result("retire without a second key is refused", run("retire", path) != 0)
        result("switch without a second key is refused", run("rotate", "--switch", path) != 0)
        result("rotate", run("rotate", path) == 0 and domain()["tx_an"] == 0 and len(domain()["keys"]) == 2, said[-1:])
        result("a third key is refused", run("rotate", path) != 0)
        result("retire of the key that comes is refused", run("retire", path) == 1 and "--key" in said[-1] and len(domain()["keys"]) == 2, said[-1:])
        result("switch", run("rotate", "--switch", path) == 0 and domain()["tx_an"] == 1, said[-1:])
        result("switch again changes nothing", run("rotate", "--switch", path) == 0 and "already" in said[-1] and domain()["tx_an"] == 1, said[-1:])
        name = said[-1].split()[-1]
        result("switch to a key by its name", run("rotate", "--switch", "--to", name, path) == 0 and domain()["tx_an"] == 0
               and run("rotate", "--switch", path) == 0 and domain()["tx_an"] == 1, said[-2:])
        result("--to without --switch is wrong usage", run("rotate", "--to", name, path) == 2)
        with_first = path.read_text()
        result("retire", run("retire", path) == 0 and [k["an"] for k in domain()["keys"]] == [1], said[-1:])
        result("check", run("check", path) == 0, said[-1:])
        result("check: what is left", f"{2**48 - 1} left" in said[-1] and f"{2**28 - 1} processes" in said[-1], said[-1:])
        path.write_text(with_first)
        result("a retired key does not come back", run("install", path) != 0 and run("check", path) != 0, said[-2:])

        copy = pathlib.Path(folder, "copy.json")
        copy.write_text(with_first.replace(str(state), str(pathlib.Path(folder, "other-host"))))
        copy.chmod(0o600)
        result("check: a host without counters", run("check", copy) != 0 and "uet-keys install" in said[-1], said[-1:])
        result("install", run("install", copy) == 0 and run("check", copy) == 0, said[-2:])
        copy.chmod(0o644)
        result("a file that others can read is refused", run("check", copy) != 0)

        copy.chmod(0o600)
        lost = pathlib.Path(folder, "other-host")
        lost.rename(f"{lost}-away")
        result("install does not begin them anew", run("install", copy) == run("check", copy) == 1 and not lost.exists()
               and "--never-sent-here" in said[-1], said[-2:])
        pathlib.Path(f"{lost}-away").rename(lost)
        result("and takes them when they are there again", run("install", copy) == run("check", copy) == 0, said[-2:])
        result("install --state-dir carries them along", run("install", copy, "--state-dir", pathlib.Path(folder, "moved")) == run("check", copy) == 0
               and "came along" in said[-2], said[-2:])
        left = pathlib.Path(folder, "copy.json.new.0123456789abcdef")
        os.link(copy, left)
        result("check names what a crash left", run("check", copy) == 1 and f"remove {left}" in said[-1], said[-1:])
        result("a command removes it", run("install", copy) == run("check", copy) == 0 and not left.exists(), said[-2:])

        server, client = pathlib.Path(folder, "server.json"), pathlib.Path(folder, "client.json")
        run("new", "--mode", "server", "--out", server, "--state-dir", state)
        result("derive", run("derive", server, "--ip", "10.0.0.7", "--out", client) == 0, said[-1:])
        result("a client has its own key only", domain(client)["role"] == "client" and "ivmask" in domain(client)["keys"][0]
               and domain(server)["keys"][0]["key"] not in client.read_text())
        result("a server without SSI with an empty list takes all", "members" not in domain(server))

        def change(file, **fields):
            content = json.loads(file.read_text())
            content["secure_domains"][0] |= fields
            file.write_text(json.dumps(content))

        change(server, members=[{"ip": "10.0.0.7"}])
        result("one that lists some gets the new client listed", run("derive", server, "--ip", "10.0.0.8", "--out", f"{client}8") == 0
               and [m["ip"] for m in domain(server)["members"]] == ["10.0.0.7", "10.0.0.8"], said[-1:])
        result("derive from what is no server", run("derive", client, "--ip", "10.0.0.8", "--out", f"{client}2") != 0)
        server, client = pathlib.Path(folder, "ssi-server.json"), pathlib.Path(folder, "ssi-client.json")
        result("new: a server with SSI", run("new", "--mode", "server", "--ssi", 1, "--out", server, "--state-dir", state) == 0 and "uet-keys derive" in said[-1], said[-1:])
        result("check: a server with SSI and an empty list", run("check", server) == 1 and "no members" in said[-1], said[-1:])
        result("derive with SSI wants the address too", run("derive", server, "--ssi", 7, "--out", client) == 1 and "give --ip" in said[-1]
               and not client.exists(), said[-1:])
        result("derive lists the client", run("derive", server, "--ssi", 7, "--ip", "fd00::7", "--out", client) == 0
               and domain(server)["members"] == [{"ssi": "0x00000007", "ip": "fd00::7"}] and "members" not in domain(client), said[-1:])
        result("check: a server with a client", run("check", server) == 0, said[-1:])
        other = pathlib.Path(folder, "other-server.json")
        other.write_text(server.read_text().replace(str(state), str(pathlib.Path(folder, "other-server"))))
        other.chmod(0o600)
        result("install of another server's file wants a number", run("install", other) == 1 and "--server-id" in said[-1]
               and run("install", other, "--server-id", 16) == 2, said[-2:])
        result("install --server-id", run("install", other, "--server-id", 3) == run("check", other) == run("install", other) == 0
               and json.loads(other.read_text())["node"]["tsc_partition"] == {"bits": 5, "id": 19}, said[-3:])
        listed, client = server.read_text(), pathlib.Path(folder, "other-client.json")
        result("derive refuses the address of another client", run("derive", server, "--ssi", 8, "--ip", "fd00::7", "--out", client) == 1
               and "stands twice" in said[-1] and server.read_text() == listed and not client.exists(), said[-1:])
        result("derive again", run("derive", server, "--ssi", 7, "--ip", "fd00::7", "--out", client) == 0 and server.read_text() == listed, said[-1:])
        client = pathlib.Path(folder, "moved.json")
        result("derive refuses another address for an SSI", run("derive", server, "--ssi", 7, "--ip", "fd00::a", "--out", client) == 1
               and "another SSI" in said[-1] and server.read_text() == listed and not client.exists(), said[-1:])
        client = pathlib.Path(folder, "both.json")
        result("derive: a client has several addresses", run("derive", "--ssi", 9, "--ip", "fd00::9", "--ip", "10.0.0.9", server, "--out", client) == 0
               and [m["ip"] for m in domain(server)["members"]] == ["fd00::7", "fd00::9", "10.0.0.9"], said[-1:])
        keys = []
        change(server, offsets={"kdf_ipv6_ignores_ssi": True})
        for ip in ("fd00::a", "fd00::b"):
            client = pathlib.Path(folder, f"client-{len(keys)}.json")
            run("derive", server, "--ssi", 7, "--ip", ip, "--out", client)
            keys.append(domain(client)["keys"][0]["key"])
        result("derive: with kdf_ipv6_ignores_ssi a key for each address", len(set(keys)) == 2 and len(domain(server)["members"]) == 5, said[-1:])
        result("no digit of a key was said", first not in "".join(said) and domain(client)["keys"][0]["key"] not in "".join(said))
    print(f"1..{number}")
    sys.exit(1 if failures else 0)


main()
