"""Running unmodified libfabric programs over the provider: processes, ports, namespaces, TAP lines.

Only loopback addresses, sockets in temporary folders and network namespaces made here are used, and everything is ended
by process id.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SKIP = 77  # meson's exit status for a skipped test


class Tap:
    def __init__(self):
        self.number = 0
        self.failures = 0

    def result(self, name, problem=""):
        self.number += 1
        self.failures += bool(problem)
        print(f"{'not ok' if problem else 'ok'} {self.number} - {name}")
        for line in str(problem).splitlines():
            print(f"# {line}")
        sys.stdout.flush()

    def skip(self, name, why):
        self.number += 1
        print(f"ok {self.number} - {name} # SKIP {why}")

    def finish(self):
        print(f"1..{self.number}")
        sys.exit(1 if self.failures else 0)


def skip_all(why):
    print(f"1..0 # SKIP {why}")
    sys.exit(0)


class Job:
    """One process with its output in files, and a pipe as its standard input if it wants one. Ended with the object."""

    def __init__(self, command, env, folder, name, namespace=None, stdin=subprocess.DEVNULL):
        self.name = name
        self.paths = [os.path.join(folder, f"{name}.{kind}") for kind in ("out", "err")]
        if namespace:
            command = ["ip", "netns", "exec", namespace, *command]
        with open(self.paths[0], "wb") as out, open(self.paths[1], "wb") as err:
            self.process = subprocess.Popen(command, env=env, stdin=stdin, stdout=out, stderr=err)

    def wait(self, seconds):
        """Exit status, or None when it is still running."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def wait_until_it_listens(self, port, seconds=30):
        """On this TCP port, as the process's own network namespace sees it; or until it is gone."""
        listener = re.compile(rf":{port:04X} 0+:0000 0A")
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.process.poll() is None:
            for table in ("tcp", "tcp6"):
                try:
                    if listener.search(open(f"/proc/{self.process.pid}/net/{table}").read()):
                        return
                except OSError:
                    pass
            time.sleep(0.02)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def output(self):
        return [open(path, errors="replace").read() for path in self.paths]

    def report(self, status):
        out, err = self.output()
        state = "still running" if status is None else f"exit status {status}"
        return f"{self.name}: {state}\n{out[-1500:]}\n{err[-3000:]}"


class Namespaces:
    """Two network namespaces joined by veth. `links`: the pairs by interface name, the same at both ends, each with the
    addresses that the kernel has there, or None. Raises OSError or RuntimeError where that cannot be."""

    made = 0

    def __init__(self, links):
        Namespaces.made += 1
        self.names = [f"uet{os.getpid()}-{Namespaces.made}{end}" for end in "ab"]
        try:
            for name in self.names:
                self.ip("netns", "add", name)
                self.ip("-n", name, "link", "set", "lo", "up")
            for link, addresses in links.items():
                self.ip("link", "add", link, "netns", self.names[0], "type", "veth", "peer", "name", link, "netns",
                        self.names[1])
                for name, address in zip(self.names, addresses or (None, None)):
                    self.ip("-n", name, "link", "set", link, "mtu", "9000", "up")
                    if address and ":" in address:  # at once, and also while the link is down
                        self.set(name, f"net/ipv6/conf/{link}/keep_addr_on_down", 1)
                        self.ip("-n", name, "address", "add", f"{address}/64", "dev", link, "nodad")
                    elif address:
                        self.ip("-n", name, "address", "add", f"{address}/24", "dev", link)
        except (OSError, RuntimeError):
            self.remove()
            raise

    @staticmethod
    def ip(*arguments):
        run = subprocess.run(["ip", *arguments], capture_output=True, text=True)
        if run.returncode != 0:
            raise RuntimeError(f"ip {' '.join(arguments)}: {run.stderr.strip()}")

    @staticmethod
    def set(name, variable, value):
        """`variable` below /proc/sys; may be a pattern."""
        subprocess.run(["ip", "netns", "exec", name, "sh", "-c", f"for f in /proc/sys/{variable}; do echo {value} > $f; done"],
                       check=True)

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def base_env(provider, **settings):
    """The caller's environment without its own settings of this provider, plus `settings`."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("FI_", "OMPI_", "PMI_"))}
    env.update(FI_PROVIDER_PATH=provider, FI_PROVIDER="uet", FI_LOG_LEVEL="warn")
    env.update({k: str(v) for k, v in settings.items()})
    return env


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def own_addresses(count):
    """Loopback addresses that no other run of these tests uses, as a list for FI_UET_ADDR."""
    return "|".join(f"127.{100 + os.getpid() % 100}.{os.getpid() // 100 % 256}.{n + 1}" for n in range(count))


def own_fabric_addresses(count):
    """The same for hosts of an emulated fabric, whose addresses no kernel knows."""
    return "|".join(f"10.{100 + os.getpid() % 100}.{os.getpid() // 100 % 256}.{n + 1}" for n in range(count))


def need_program(name):
    path = shutil.which(name)
    if not path:
        skip_all(f"{name} is not installed (package libfabric-bin)")
    return path


def need_provider(folder):
    if not os.path.exists(os.path.join(folder, "libuet-fi.so")):
        skip_all("the provider was not built")


def pingpong(folder, provider, server_settings, client_settings, arguments=(), seconds=120, namespaces=(None, None),
             control="127.0.0.1"):
    """fi_pingpong between two processes. Returns what went wrong, or nothing."""
    port = free_port()
    program = ["fi_pingpong", "-p", "uet", "-e", "rdm", "-c", *arguments]
    server = Job(program + ["-B", str(port)], base_env(provider, **server_settings), folder, "server", namespaces[0])
    client = None
    try:
        server.wait_until_it_listens(port)
        client = Job(program + ["-P", str(port), control], base_env(provider, **client_settings), folder, "client",
                     namespaces[1])
        client_status = client.wait(seconds)
        server_status = server.wait(10)
        if client_status == 0 and server_status == 0:
            return "" if "MB/sec" in client.output()[0] else "no table:\n" + client.report(client_status)
        return client.report(client_status) + server.report(server_status)
    finally:
        server.kill()
        if client:
            client.kill()


def temporary_folder():
    return tempfile.TemporaryDirectory(prefix="uet-e2e-")
