"""One cell: two implementations play one scenario on a network of their own. What became of it, and why."""

import json
import os
import re
import shlex
import signal
import subprocess
import time
from dataclasses import asdict, dataclass, field

from .network import CONTROL, Network, NetworkError

UNSUPPORTED = 77  # exit status of a program whose endpoint lacks what it was asked for
PORT = 4795
POLL = 0.02
GRACE = 5  # seconds for one end when the other has ended
OTHER = {"server": "client", "client": "server"}
# Of a program that only says that the other one went away; the reason is there.
# What a program says that begins anew with the same peer. Each cell tells how often that was, and why.
ENDED_SESSION = re.compile(r"^session \d+ ended: .*", re.M)
CONSEQUENCE = re.compile(r"hung up|says nothing|no client came|no server listens|[Cc]onnection refused|reset by peer")


@dataclass
class Result:
    scenario: str
    server: str
    client: str
    verdict: str = "not run"  # pass, fail, unsupported, not run
    reason: str = ""
    seconds: float = 0.0
    folder: str = ""
    files: list = field(default_factory=list)
    faults: dict = field(default_factory=dict)
    sessions: list = field(default_factory=list)  # those that ended before the one that counts: "END: session N ended: WHY"

    def as_dict(self):
        return asdict(self)


class Process:
    """A command line in a namespace, with its output in a file. It leads a process group, which is ended as a whole."""

    def __init__(self, name, command, namespace, environment, log):
        self.name, self.log = name, log
        with open(log, "wb") as out:
            out.write(f"$ {command}\n".encode())
            out.flush()
            self.process = subprocess.Popen(["ip", "netns", "exec", namespace, "sh", "-c", f"exec {command}"], env=environment,
                                            stdin=subprocess.DEVNULL, stdout=out, stderr=out, process_group=0)

    def status(self):
        return self.process.poll()

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()

    def listens(self, port):
        try:
            tables = [open(f"/proc/{self.process.pid}/net/{name}").read() for name in ("tcp", "tcp6")]
        except OSError:
            return False
        return any(re.search(rf":{port:04X} 0+:0000 0A", table) for table in tables)

    def ended_sessions(self):
        with open(self.log, errors="replace") as file:
            return ENDED_SESSION.findall(file.read())

    def last_words(self):
        """The last line that says something of its own."""
        with open(self.log, errors="replace") as file:
            lines = [line.strip() for line in file.read().splitlines()[1:]]
        lines = [line for line in lines if line and not line.startswith("libfabric:") and "session" not in line[:8]]
        return lines[-1][:400] if lines else "said nothing"


class Cell:
    def __init__(self, scenario, server, client, folder, sockets, tools, tag, is_stopped=lambda: False, views="all"):
        self.scenario, self.folder, self.tools, self.tag = scenario, folder, tools, tag
        self.sockets, self.is_stopped, self.views = sockets, is_stopped, views
        self.ends = {"server": server, "client": client}
        self.result = Result(scenario.name, server.name, client.name, folder=os.path.basename(folder))
        self.starts = {"server": 0, "client": 0}

    # --- What can be known without running ---

    def obstacle(self):
        """Why this cell is unsupported, or nothing."""
        server, client = self.ends["server"], self.ends["client"]
        if server.wire != client.wire:
            return f"they speak differently: {server.name} {server.wire}, {client.name} {client.wire}"
        for end in (server, client):
            lacking = [need for need in self.scenario.needs if need not in end.capabilities]
            if lacking:
                return f"{end.name} has no {', '.join(lacking)}"
            if self.scenario.program not in end.commands:
                return f"{end.name} has no commands for the program {self.scenario.program}"
        if self.scenario.clients > 1 and client.leg != "kernel":
            return f"{client.name}: a {client.leg} leg joins one process to the fabric"
        return ""

    # --- Command lines and environment ---

    def words(self, end, number, network):
        """What {placeholders} stand for."""
        mine, count = self.ends[end], self.starts[end]
        name = end + (f"-{number}" if number else "") + (f".{count}" if count else "")
        path = f"{self.folder}/{name}"
        s = self.scenario
        return {
            "address": network.address(end, number), "peer_address": network.address(OTHER[end]),
            "prefix": network.prefix, "interface": "uet0",
            "socket": network.socket_of(end), "control": CONTROL["server"], "port": PORT, "end": end, "name": name,
            "folder": self.folder, "log": f"{path}.log", "events": f"{path}.events", "capture": f"{path}.pcapng",
            "paths": f"{path}.paths", "key_log": f"{path}.keylog", "mtu": s.mtu[0 if end == "server" else 1],
            "path_mtu": min(s.mtu), "exercise": s.exercise, "clients": s.clients, "patience": s.seconds / 2,
            "options": (s.server_options if end == "server" else s.client_options).format(clients=s.clients),
            "implementation": mine.name, **self.tools,
        }

    def environment(self, end, words):
        mine = self.ends[end]
        out = {k: v for k, v in os.environ.items() if not k.startswith(("FI_", "OMPI_", "PMI_"))}
        tables = [mine.environment, *(mine.settings.get(want, {}) for want in self.scenario.wanted_of(end))]
        for table in tables:
            for key, value in table.items():
                text = str(value).format_map(words)
                if text:
                    out[key] = text
                else:
                    out.pop(key, None)
        if self.starts[end] == 0 and words["name"] == end:
            changed = {k: v for k, v in out.items() if os.environ.get(k) != v}
            with open(f"{self.folder}/{end}.environment", "w", encoding="utf-8") as file:
                file.writelines(f"export {key}={shlex.quote(value)}\n" for key, value in sorted(changed.items()))
        return out

    def start(self, end, network, number=0):
        words = self.words(end, number, network)
        commands = self.ends[end].commands[self.scenario.program]
        command = (commands.server if end == "server" else commands.client).format_map(words)
        process = Process(end + (f" {number}" if number else ""), command, network.names[end], self.environment(end, words),
                          words["log"])
        self.started.append(process)
        return process

    # --- The run ---

    def run(self):
        from_ = time.monotonic()
        self.started = []
        os.makedirs(self.folder, exist_ok=True)
        os.makedirs(self.sockets, exist_ok=True)
        is_ipv6 = "ipv6" in self.ends["server"].wire.split()
        legs = {end: implementation.leg for end, implementation in self.ends.items()}
        try:
            with Network(self.tag, legs, is_ipv6, self.scenario, self.folder, self.sockets, self.tools["uet_fabric"]) as network:
                try:
                    self.play(network)
                finally:
                    for process in self.started:
                        process.kill()
                    self.result.sessions = [f"{p.name}: {line}" for p in self.started for line in p.ended_sessions()]
                    self.note_fabric(network)
            self.require_faults()
        except NetworkError as problem:
            self.verdict("not run", str(problem))
        except KeyError as problem:
            self.verdict("not run", f"there is no placeholder {{{problem.args[0]}}} for a command line or an environment")
        self.write_view()
        self.result.seconds = round(time.monotonic() - from_, 2)
        self.result.files = sorted(name for name in os.listdir(self.folder) if os.path.getsize(f"{self.folder}/{name}") > 0)
        with open(f"{self.folder}/cell.json", "w", encoding="utf-8") as file:
            json.dump(self.result.as_dict(), file, indent=1)
        return self.result

    def write_view(self):
        """The page on which both ends can be seen."""
        if self.views == "none" or (self.views == "failed" and self.result.verdict in ("pass", "unsupported")):
            return
        names = [f"{end}.{kind}" for kind in ("events", "paths", "pcapng") for end in ("server", "client")]
        files = [name for name in names if os.path.isfile(f"{self.folder}/{name}") and os.path.getsize(f"{self.folder}/{name}")]
        if not files:  # an endpoint of another make: what the fabric saw
            files = [name for name in ("fabric.pcapng",) if os.path.isfile(f"{self.folder}/{name}")]
        keys = [f"--keys={self.folder}/{name}" for name in ("server.keylog",) if os.path.isfile(f"{self.folder}/{name}")]
        try:
            done = subprocess.run([self.tools["uet_dump"], "--html", "view.html", *keys, *files], cwd=self.folder, timeout=120,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            problem = done.stderr.strip() if done.returncode != 0 else ""
        except (OSError, subprocess.TimeoutExpired) as failure:
            problem = str(failure)
        if problem:
            with open(f"{self.folder}/view.log", "w", encoding="utf-8") as file:
                file.write(problem + "\n")

    def verdict(self, verdict, reason=""):
        self.result.verdict, self.result.reason = verdict, reason

    def prepare(self, network):
        """Once for both, in the folder of the cell."""
        mine = self.ends["server"]
        if mine.prepare:
            words = self.words("server", 0, network)
            done = subprocess.run(["sh", "-c", mine.prepare.format_map(words)], capture_output=True, text=True, timeout=60,
                                  env=self.environment("server", words), stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                raise NetworkError(f"prepare of {mine.name}: {done.stderr.strip()[-300:]}")

    def play(self, network):
        self.prepare(network)
        end = time.monotonic() + self.scenario.seconds
        processes = {"server": self.start("server", network)}
        if self.ends["server"].commands[self.scenario.program].wait == "listens":
            while processes["server"].status() is None and not processes["server"].listens(PORT) and time.monotonic() < end:
                time.sleep(POLL)
        processes["client"] = self.start("client", network, 1 if self.scenario.clients > 1 else 0)
        others = [self.start("client", network, n) for n in range(2, self.scenario.clients + 1)]
        pending = list(self.scenario.fault)
        before = network.frames()
        while time.monotonic() < end:
            if self.is_stopped():
                return self.verdict("not run", "interrupted")
            if pending and network.frames() - before >= pending[0].frames:
                self.strike(pending.pop(0), network, processes)
            statuses = [p.status() for p in [*processes.values(), *others]]
            if None not in statuses:
                break
            if any(statuses):  # one failed, and the other has no reason to go on
                end = min(end, time.monotonic() + GRACE)
            time.sleep(POLL)
        return self.judge([*processes.values(), *others], pending)

    def strike(self, fault, network, processes):
        for command in fault.do:
            reply = network.ctl(command)
            if not reply or not reply["ok"]:
                raise NetworkError(f"uet-fabric: {command}: {reply and reply.get('error')}")
        if fault.restart:
            processes[fault.restart].kill()
            self.starts[fault.restart] += 1
            processes[fault.restart] = self.start(fault.restart, network)

    def judge(self, processes, pending):
        statuses = {p: p.status() for p in processes}
        lacking = [p for p, status in statuses.items() if status == UNSUPPORTED]
        failed = [p for p, status in statuses.items() if status not in (0, None, UNSUPPORTED)]
        if lacking:
            self.verdict("unsupported", f"{lacking[0].name}: {lacking[0].last_words()}")
        elif failed:
            # The end that knows more than that the other one went away.
            told = sorted(failed, key=lambda p: bool(CONSEQUENCE.search(p.last_words())))[0]
            self.verdict("fail", f"{told.name}: {self.ending(statuses[told])}{told.last_words()}")
        elif None in statuses.values():
            slow = [p.name for p, status in statuses.items() if status is None]
            self.verdict("fail", f"{', '.join(slow[:4])}: not done after {self.scenario.seconds} s")
        elif pending:
            self.verdict("not run", f"the exchange ended before {pending[0].frames} frames had passed: "
                                    f"{' '.join(pending[0].do) or 'restart'} never happened")
        else:
            self.verdict("pass")

    @staticmethod
    def ending(status):
        if status < 0:
            return f"ended by {signal.Signals(-status).name}; "
        return f"exit status {status}; " if status != 1 else ""

    def note_fabric(self, network):
        """What the fabric did to the packets."""
        stats = network.ctl("stats")
        if not stats or not stats.get("ok"):
            return
        with open(f"{self.folder}/fabric.json", "w", encoding="utf-8") as file:
            json.dump(stats, file, indent=1)
        sums = {}
        for link in stats.get("stats", stats)["links"]:
            for name, value in [*link.get("faults", {}).items(), ("trimmed by switches", link["trims"]),
                                ("lost while down", link["lost_while_down"]), ("dropped", link["drops"])]:
                sums[name] = sums.get(name, 0) + value
        self.result.faults = {name: value for name, value in sums.items() if value}

    def require_faults(self):
        """A scenario about losses in which nothing was lost shows nothing."""
        missing = [fault for fault in self.scenario.expects if not self.result.faults.get(fault)]
        if self.result.verdict == "pass" and missing:
            self.verdict("not run", f"the network did nothing of this: {', '.join(missing)}")
