"""What a TOML file says of implementations and scenarios, verified as a whole before anything runs."""

import re
import tomllib
from dataclasses import dataclass, field

LEGS = ("kernel", "raw", "memif")
ENDS = ("server", "client")
MTU_MIN, MTU_MAX = 576, 65535  # of IPv4
CLIENTS_MAX, SECONDS_MAX = 1000, 86400
NAME = re.compile(r"[a-z0-9][a-z0-9-]*")


class ConfigError(Exception):
    """A sentence for the user."""


@dataclass(frozen=True)
class Commands:
    """Of one program: how an implementation starts it at each end."""

    server: str = ""
    client: str = ""
    wait: str = "listens"  # before the client is started: until the server listens by TCP at {port}, or "no"


@dataclass(frozen=True)
class Implementation:
    name: str
    title: str = ""
    leg: str = "kernel"
    wire: str = ""
    capabilities: tuple = ()
    version: str = ""
    needs_path: str = ""
    prepare: str = ""
    environment: dict = field(default_factory=dict)
    settings: dict = field(default_factory=dict)
    commands: dict = field(default_factory=dict)
    is_small: bool = False  # takes part in the small set


@dataclass(frozen=True)
class Fault:
    """Something that happens once the fabric has carried so many frames since the client began."""

    frames: int
    do: tuple = ()
    restart: str = ""


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str = ""
    program: str = "peer"
    exercise: str = ""
    server_options: str = ""
    client_options: str = ""
    needs: tuple = ()
    wants: tuple = ()
    server_wants: tuple = ()
    client_wants: tuple = ()
    fabric: dict = field(default_factory=dict)
    link: tuple = ()
    fault: tuple = ()
    expects: tuple = ()
    mtu: tuple = (9000, 9000)
    clients: int = 1
    seconds: int = 120  # for machines that do other things as well
    is_small: bool = False  # belongs to the small set

    def wanted_of(self, end):
        return self.wants + (self.server_wants if end == "server" else self.client_wants)


KINDS = {tuple: "a list", dict: "a table", str: "a text", int: "a whole number", bool: "true or false"}


def made(kind, table, what):
    """An object of a dataclass out of a table; an unknown key or a wrong kind of value is an error."""
    known = kind.__dataclass_fields__
    values = {}
    for key, value in table.items():
        attribute = "is_small" if key == "small" else key
        if attribute not in known or key == "is_small":
            names = sorted("small" if name == "is_small" else name for name in known)
            raise ConfigError(f"{what}: unknown key \"{key}\"; known are {', '.join(names)}")
        wanted = known[attribute].type
        wanted = wanted if isinstance(wanted, type) else {"str": str, "int": int, "bool": bool}.get(wanted, object)
        if wanted is tuple and isinstance(value, list):
            value = tuple(value)
        # To Python true is a number.
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise ConfigError(f"{what}: {key} must be {KINDS.get(wanted, wanted.__name__)}")
        element = ELEMENTS.get(attribute, str)
        if wanted is tuple and not all(isinstance(one, element) and not isinstance(one, bool) for one in value):
            raise ConfigError(f"{what}: {key} must be a list of {ELEMENT_NAMES[element]}")
        values[attribute] = value
    return kind(**values)


# Of lists: all others are of texts.
ELEMENTS = {"mtu": int, "link": dict, "fault": Fault}
ELEMENT_NAMES = {str: "texts", int: "whole numbers", dict: "tables", Fault: "tables"}


def tables_of(value, what):
    """The tables of a list, or of a table."""
    all_of_them = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else [value]
    if not all(isinstance(one, dict) for one in all_of_them):
        raise ConfigError(f"{what}: tables are wanted")
    return value


def need_range(what, key, value, least, most):
    if not least <= value <= most:
        raise ConfigError(f"{what}: {key} must be from {least} to {most}, not {value}")


def merged(base, table):
    """Tables within are merged, everything else is replaced."""
    out = dict(base)
    for key, value in table.items():
        out[key] = merged(out[key], value) if isinstance(value, dict) and isinstance(out.get(key), dict) else value
    return out


def inherited(tables, what):
    """Each table with what it extends, without the abstract ones. `extends` names one that stands before it."""
    out, abstract = {}, set()
    for table in tables:
        name = table.get("name")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise ConfigError(f"{what}: a name of small letters, digits and - is wanted, not {name!r}")
        if name in out:
            raise ConfigError(f"{what} \"{name}\" is there twice")
        base = table.get("extends")
        if base is not None and (not isinstance(base, str) or base not in out):
            raise ConfigError(f"{what} \"{name}\" extends \"{base}\", which does not stand before it")
        own = {k: v for k, v in table.items() if k not in ("extends", "abstract")}
        out[name] = merged(out[base], own) if base else own
        if table.get("abstract"):
            abstract.add(name)
    return {name: table for name, table in out.items() if name not in abstract}


def implementation(name, table):
    what = f"implementation \"{name}\""
    commands = table.get("commands", {})
    if not isinstance(commands, dict):
        raise ConfigError(f"{what}: commands must be a table")
    commands = {program: made(Commands, value, f"{what}, commands.{program}")
                for program, value in tables_of(commands, f"{what}, commands").items()}
    out = made(Implementation, {**table, "commands": commands}, what)
    tables_of(out.settings, f"{what}, settings")
    if out.leg not in LEGS:
        raise ConfigError(f"{what}: leg must be one of {', '.join(LEGS)}")
    if not out.wire or not out.commands:
        raise ConfigError(f"{what}: wire and commands are wanted")
    return out


def scenario(name, table):
    what = f"scenario \"{name}\""
    faults = table.get("fault", [])
    if not isinstance(faults, list):
        raise ConfigError(f"{what}: fault must be a list")
    faults = tuple(made(Fault, fault, f"{what}, fault") for fault in tables_of(faults, f"{what}, fault"))
    out = made(Scenario, {**table, "fault": faults}, what)
    for fault in out.fault:
        if fault.restart not in ("", *ENDS):
            raise ConfigError(f"{what}: restart must be server or client")
    if len(out.mtu) != 2:
        raise ConfigError(f"{what}: mtu is that of the server and that of the client")
    for mtu in out.mtu:
        need_range(what, "mtu", mtu, MTU_MIN, MTU_MAX)
    need_range(what, "clients", out.clients, 1, CLIENTS_MAX)
    need_range(what, "seconds", out.seconds, 1, SECONDS_MAX)
    return out


def read(paths):
    """Implementations and scenarios of several files, by name in their order."""
    tables = {"implementation": [], "scenario": []}
    for path in paths:
        try:
            with open(path, "rb") as file:
                text = tomllib.load(file)
        except OSError as problem:
            raise ConfigError(f"{path}: {problem.strerror}") from problem
        except tomllib.TOMLDecodeError as problem:
            raise ConfigError(f"{path}: {problem}") from problem
        for key, value in text.items():
            if key not in tables or not isinstance(value, list):
                raise ConfigError(f"{path}: unknown key \"{key}\"; [[implementation]] and [[scenario]] are known")
            tables[key] += tables_of(value, f"{path}: {key}")
    return ({n: implementation(n, t) for n, t in inherited(tables["implementation"], "implementation").items()},
            {n: scenario(n, t) for n, t in inherited(tables["scenario"], "scenario").items()})
