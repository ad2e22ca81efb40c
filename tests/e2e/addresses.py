#!/usr/bin/env python3
"""Several processes that share a list of addresses: who has one, since when and until when.

    addresses.py PROVIDER-FOLDER ADDRESS_CLIENT LIBRARY_CLIENT
"""

import os
import signal
import subprocess
import sys

from harness import Namespaces, Tap, base_env, need_provider, own_addresses


class Client:
    def __init__(self, command, env):
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.child = None

    def tell(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self):
        return self.process.stdout.readline().strip()

    def ask(self, line):
        self.tell(line)
        return self.hear()

    def fork(self):
        self.child = int(self.ask("fork"))

    def end(self, kill=False):
        if kill:
            self.process.kill()
        self.process.stdin.close()
        self.process.wait()

    def end_all(self):
        self.end(kill=True)
        if self.child:
            os.kill(self.child, signal.SIGKILL)


class Clients:
    """All with the same list of addresses."""

    def __init__(self, provider, program, addresses, **settings):
        self.program = program
        self.addresses = own_addresses(addresses)
        self.env = base_env(provider, **{"FI_UET_ADDR": self.addresses, **settings})
        self.all = []

    def one(self):
        self.all.append(Client([self.program], self.env))
        return self.all[-1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.all:
            client.end_all()


class Host(Clients):
    """All in a network namespace of their own, which has one address, and with no list."""

    ADDRESS = "10.78.0.1"

    def __init__(self, provider, program, **settings):
        super().__init__(provider, program, 1, **settings)
        del self.env["FI_UET_ADDR"]
        self.network = Namespaces({"uet0": (self.ADDRESS, "10.78.0.2")})

    def one(self, program=None):
        self.all.append(Client(["ip", "netns", "exec", self.network.names[0], program or self.program], self.env))
        return self.all[-1]

    def __exit__(self, *arguments):
        super().__exit__(*arguments)
        self.network.remove()


def why_no_hosts():
    try:
        Namespaces({"uet0": None}).remove()
        return ""
    except (OSError, RuntimeError) as why:
        return str(why)


def has(answer, address):
    return answer.startswith(f"uet://{address}/")


# Covers: FI-6
def test_who_only_looks_takes_no_address(provider, program):
    with Clients(provider, program, 1) as clients:
        for _ in range(5):
            if (said := clients.one().ask("look")) != clients.addresses:
                return f"fi_getinfo says {said}"
        user = clients.one()
        user.ask("look")
        said = user.ask("open")
        return "" if has(said, clients.addresses) else said


# Covers: FI-6
def test_a_proposal_that_is_gone_is_exchanged(provider, program):
    with Clients(provider, program, 3) as clients:
        first, second, third = clients.addresses.split("|")
        users = [clients.one() for _ in range(3)]
        proposed = [user.ask("look") for user in users]
        if proposed != [first] * 3:
            return f"proposed {proposed}"
        opened = [user.ask("open") for user in users]
        if not all(has(*pair) for pair in zip(opened, (first, second, third))):
            return f"opened {opened}"
        late = clients.one()
        said = late.ask("look")
        return "" if "No data" in said else f"a fourth was told {said}"


# Covers: FI-6
def test_no_address_left_for_a_proposal(provider, program):
    with Clients(provider, program, 1) as clients:
        users = [clients.one() for _ in range(2)]
        for user in users:
            user.ask("look")
        said = [user.ask("open") for user in users]
        return "" if has(said[0], clients.addresses) and said[1] == "No such device" else f"{said}"


# [decision 60]
def all_find_the_first(clients):
    """A client names the server of its host as clients of TCP do."""
    users = [clients.one() for _ in range(2)]
    for user in users:
        user.ask("look")
    first = users[0].ask("open").split("/")[2]
    users[1].ask("open")
    said = [user.ask("peer").split() for user in users]
    ends = {end for pair in said for end in pair}
    return "" if len(said[1]) == 2 and len(ends) == 1 and has(ends.pop(), first) else f"{first} is {said}"


def test_localhost_is_the_first_of_a_list_of_addresses(provider, program):
    with Clients(provider, program, 2) as clients:
        return all_find_the_first(clients)


def test_who_has_the_address_is_named_with_what_helps(provider, program):
    with Clients(provider, program, 1) as clients:
        holder = clients.one()
        holder.ask("look")
        holder.ask("open")
        done = subprocess.run([program], env=clients.env, input="look\n", capture_output=True, text=True, timeout=60)
        wanted = f"{clients.addresses} is used by process {holder.process.pid}: end it, or set FI_UET_ADDR"
        return "" if wanted in done.stderr else done.stderr[-1000:]


# Covers: FI-63
def test_each_device_has_an_entry_and_exchanges_its_own_addresses(provider, program):
    absent, first, second = "10.0.0.1", *own_addresses(2).split("|")
    settings = {"FI_UET_PORT": "dpdk:net_memif0|udp|udp", "FI_UET_ADDR": f"{absent}|{first}|{second}"}
    with Clients(provider, program, 2, **settings) as clients:
        users = [clients.one() for _ in range(2)]
        proposed = [user.ask("look") for user in users]
        if proposed != [f"{absent}|{first}"] * 2:
            return f"proposed {proposed}"
        opened = [user.ask("second") for user in users]
        if not has(opened[0], first) or not has(opened[1], second):
            return f"opened {opened}"
        if not has(again := users[1].ask("second"), second):
            return f"another domain of the same entry is at {again}"
        told = [users[1].ask("look"), clients.one().ask("look")]
        return "" if told == [f"{absent}|{second}", absent] else f"afterwards {told}"


def test_a_forked_child_keeps_no_address(provider, program):
    with Clients(provider, program, 1) as clients:
        parent = clients.one()
        parent.ask("look")
        if not has(said := parent.ask("open"), clients.addresses):
            return said
        parent.fork()
        stranger = clients.one()
        if "No data" not in (said := stranger.ask("look")):
            return f"while the parent lives: {said}"
        parent.end(kill=True)
        os.kill(parent.child, 0)  # it is there
        successor = clients.one()
        if (said := successor.ask("look")) != clients.addresses:
            return f"after the parent's death fi_getinfo says {said}"
        said = successor.ask("open")
        return "" if has(said, clients.addresses) else f"after the parent's death fi_domain says {said}"


# [decision 168]
def share_their_host(host, question):
    users = [host.one() for _ in range(3)]
    proposed = [user.ask(question) for user in users]
    if proposed != [host.ADDRESS] * 3:
        return f"proposed {proposed}"
    opened = [user.ask("open") for user in users]
    wanted = [host.ADDRESS, f"{host.ADDRESS}:20480", f"{host.ADDRESS}:20481"]
    if not all(has(*pair) for pair in zip(opened, wanted)):
        return f"opened {opened}"
    users[1].end(kill=True)
    late = host.one()
    late.ask(question)
    return "" if has(said := late.ask("open"), wanted[1]) else f"after one had ended: {said}"


def host_test_processes_share_the_address_of_their_host(provider, program):
    with Host(provider, program) as host:
        return share_their_host(host, "look")


def host_test_processes_share_the_address_of_an_interface(provider, program):
    with Host(provider, program, FI_UET_IFNAME="uet0") as host:
        return share_their_host(host, "look")


def host_test_processes_share_an_address_that_programs_name(provider, program):
    with Host(provider, program) as host:
        return share_their_host(host, f"name {host.ADDRESS}")


def host_test_localhost_is_the_process_with_the_port_of_uet(provider, program):
    with Host(provider, program) as host:
        return all_find_the_first(host)


def host_test_secured_processes_share_no_address(provider, program):
    with Host(provider, program) as host:
        holder = host.one()
        holder.ask("look")
        holder.ask("open")
        host.env["FI_UET_KEYS"] = "/no/keys"
        return "" if (said := host.one().ask("look")) == "127.0.0.2" else f"proposed {said}"


def host_test_an_address_that_the_kernel_takes_away_is_the_last_choice(provider, program):
    """The kernel lists the address first that was added last, and a temporary one stands behind the other; both are deprecated some day."""
    with Host(provider, program) as host:
        name = host.network.names[0]
        host.network.ip("-n", name, "address", "flush", "dev", "uet0")
        for lasting, life in ("fd78::1", ()), ("fd78::2", ("preferred_lft", "0")):
            host.network.ip("-n", name, "address", "add", f"{lasting}/64", "dev", "uet0", "nodad", *life)
        users = [host.one(), host.one(sys.argv[3])]
        users[0].ask("look")
        opened = [users[0].ask("open")]
        users[0].end(kill=True)
        opened.append(users[1].ask("open"))
        return "" if all("fd78::1" in said for said in opened) else f"opened {opened}"


def host_test_a_host_without_a_network_is_told_of_once(provider, program):
    """Of the two domains of a process only one says it, and who only looks is told nothing. A named loopback address is a choice."""
    with Host(provider, program) as host:
        name = host.network.names[0]
        host.network.ip("-n", name, "link", "set", "uet0", "down")
        inside = ["ip", "netns", "exec", name]
        for command, lines, wanted in ([program], "look", 0), ([program], "look\nopen\nopen", 1), ([sys.argv[3]], "open\nopen", 1), \
                (["env", "FI_UET_ADDR=127.0.0.9", program], "look\nopen", 0), (["env", "FI_UET_ADDR=127.0.0.9", sys.argv[3]], "open", 0):
            done = subprocess.run(inside + command, env=host.env, input=lines + "\nquit\n", capture_output=True, text=True, timeout=60)
            told = [line for line in done.stderr.splitlines() if line.startswith("uet: ") and "no network interface but the loopback" in line]
            if len(told) != wanted or "127.0.0." not in done.stdout:
                return f"{command} {lines!r}: {done}"
        return ""


def host_test_a_process_without_a_place_at_its_host_is_told(provider, program):
    """IPv6 addresses are not shared. Who only looks is told nothing, and a port that opens has no remark of the addresses before."""
    with Host(provider, program) as host:
        name = host.network.names[0]
        host.network.ip("-n", name, "address", "flush", "dev", "uet0")
        host.network.ip("-n", name, "address", "add", "fd78::1/64", "dev", "uet0", "nodad")
        holder = host.one()
        holder.ask("look")
        if not has(said := holder.ask("open"), "fd78::1"):
            return f"the first is {said}"
        for command, lines, wanted in ([program], "look", []), ([program], "look\nopen\nopen", ["fd78::1"]), ([sys.argv[3]], "open\nopen", ["fd78::1"]):
            done = subprocess.run(["ip", "netns", "exec", name] + command, env=host.env, input=lines + "\nquit\n", capture_output=True, text=True,
                                  timeout=60)
            told = [line for line in done.stderr.splitlines() if line.startswith("uet: ")]
            as_wanted = len(told) == len(wanted) and all(f"no place at {first}, " in line and "FI_UET_ADDR" in line for first, line in zip(wanted, told))
            if not as_wanted or "127.0.0." not in done.stdout:
                return f"{command} {lines!r}: {done}"
        return ""


def host_test_a_process_without_our_lock_keeps_its_port(provider, program):
    """The C++ library locks nothing, as an endpoint of another make, or one in a container with a /tmp of its own."""
    library = sys.argv[3]
    with Host(provider, program) as host:
        users = [host.one(library), host.one(), host.one(library), host.one()]
        proposed = [users[i].ask("look") for i in (1, 3)]
        opened = [user.ask("open") for user in users]
        wanted = [host.ADDRESS] + [f"{host.ADDRESS}:{port}" for port in (20480, 20481, 20482)]
        if not all(has(*pair) for pair in zip(opened, wanted)):
            return f"proposed {proposed}, opened {opened}"
        receiver, sender = users[0], users[2]
        receiver.tell("receive")
        said = [sender.ask("send " + opened[0].split()[1]), receiver.hear()]
        return "" if said == ["sent", "received"] else f"{said}"


# [decision 168]
def host_test_an_address_of_a_dead_process_leads_to_no_other(provider, program):
    """Successors with either interface have its IP address and UDP port. The seeds are of processes that draw different indices."""
    library = sys.argv[3]
    with Host(provider, program) as host:
        def opened(client, seed):
            host.env["FI_UET_SEED"] = str(seed)
            user = host.one(client)
            if client == program:
                user.ask("look")
            return user, user.ask("open")

        for client in program, library:
            victim, old = opened(library, 1)
            victim.end(kill=True)
            successor, new = opened(client, 2)
            if not has(old, host.ADDRESS) or not has(new, host.ADDRESS):
                return f"opened {old} and {new}"
            sender, _ = opened(library, 3)
            sender.tell("send " + old.split()[1])
            successor.tell("turn" if client == program else "receive")
            if (said := sender.hear()) == "sent" or "address anew" not in said:
                return f"the sender to {old} was told {said!r}, and {new} was there"
            sender.end(kill=True)
            successor.end(kill=True)
        return ""


def host_test_a_client_of_a_dead_service_is_not_its_own_server(provider, program):
    library = sys.argv[3]
    with Host(provider, program) as host:
        said = []
        for seed in 1, 2:
            host.env["FI_UET_SEED"] = str(seed)
            user = host.one(library)
            said.append(user.ask("open"))
            if seed == 1:
                user.end(kill=True)
        if not all(has(address, host.ADDRESS) for address in said):
            return f"opened {said}"
        answer = user.ask("send " + said[0].split()[1])
        return "" if "address anew" in answer else answer


def main():
    provider, program, _ = sys.argv[1:]
    need_provider(provider)
    tap = Tap()
    why = why_no_hosts()
    for name, case in list(globals().items()):
        if name.startswith("test_"):
            tap.result(name[5:].replace("_", " "), case(provider, program))
        if name.startswith("host_test_"):
            title = name[10:].replace("_", " ")
            if why:
                tap.skip(title, why)
            else:
                tap.result(title, case(provider, program))
    tap.finish()


main()
