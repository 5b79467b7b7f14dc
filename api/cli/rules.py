"""Every rule of the egress policy in force, in words: what `policy show` shows."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from policy import boot, hook, ledger, tools
from policy.address import AddressClass
from policy.egress import Policy

Layer = Literal["boot", "judge", "transport", "tripwire", "tools"]

LAYERS: Final[dict[Layer, str]] = {
    "boot": "before the first library is imported, and checked again after it",
    "judge": "one decision over an address, a port and a purpose, the same for every caller",
    "transport": "the only way to make an HTTP client",
    "tripwire": "a hook over every thread of this process, whatever library acts",
    "tools": "what the model may call",
}
_SCOPES: Final = {
    "strict": "Only the database and the model servers are reached, on this machine or on a listed peer.",
    "private": "The database, the model servers, and listed peers for every purpose.",
    None: "There is no sound policy: everything is denied.",
}
_NEVER: Final = tuple(kind.value for kind in AddressClass if kind not in (AddressClass.LOOPBACK, AddressClass.PRIVATE))


@dataclass(frozen=True, slots=True)
class Rule:
    """What is in force, what that means, and the reasons that its denials carry."""

    layer: Layer
    name: str
    value: str
    meaning: str
    reasons: tuple[str, ...] = ()


def rules(policy: Policy) -> list[Rule]:
    """All of them, in the order in which a connection meets them. The tripwire must be set."""
    return [*_boot(), *_judge(policy), *_transport(), *_tripwire(policy), *_tools(policy)]


def _boot() -> Iterator[Rule]:
    switches = (f"{name}={value}" for name, value in sorted(boot.SWITCHES.items()))
    yield Rule(
        "boot", "switches", _joined(switches), "Telemetry, tracing, model hubs and plug-ins of libraries are off."
    )
    removed = (*sorted(boot.REMOVED), *(f"{prefix}*" for prefix in boot.REMOVED_PREFIXES))
    yield Rule(
        "boot",
        "variables removed",
        _joined(removed),
        "They would tell a library an address, a key or a path.",
    )
    yield Rule("boot", "no start with a proxy", _joined(boot.PROXIES), "A proxy would carry out what it is given.")
    yield Rule(
        "boot",
        "no start with an event loop in C",
        _joined(boot.BLIND_LOOPS),
        "They connect from C code, which nothing here sees.",
    )
    yield Rule(
        "boot", "proof", "a connection to a test address", "The start ends where it is not refused.", (ledger.CANARY,)
    )


def _judge(policy: Policy) -> Iterator[Rule]:
    yield Rule("judge", "scope", str(policy.scope), _SCOPES[policy.scope], ("no_policy", "scope"))
    yield Rule(
        "judge",
        "ports of this machine",
        _joined(map(str, sorted(policy.ports))),
        "Of the configured servers; beside them only the model that the program starts itself.",
        ("port_not_listed", "malformed_port"),
    )
    yield Rule(
        "judge",
        "private peers",
        _joined(f"{host}:{port}" for host, port in sorted(policy.peers)),
        "Exact addresses and ports; no other private address is reached.",
        ("peer_not_listed", "malformed_peer", "public_peer"),
    )
    yield Rule(
        "judge",
        "names",
        _joined(sorted(policy.names)),
        "Of configured servers, each only where every address that it has is allowed.",
        ("name_not_listed", "unresolved", "mixed_answers"),
    )
    yield Rule("judge", "public addresses", "none, ever", "No setting allows one, however it is written.", _NEVER)
    yield Rule(
        "judge",
        "URLs",
        "one spelling",
        "What two programs could read differently is refused.",
        ("malformed_url", "malformed_host", "not_canonical"),
    )
    yield Rule(
        "judge",
        "database addresses",
        "one host, no service file",
        "PostgreSQL's client gets the judged address and nothing to find out.",
        ("malformed_dsn", "no_host", "several_hosts", "abstract_socket", "parameter_not_allowed"),
    )
    yield Rule(
        "judge",
        "on the record",
        "every denial",
        "While the audit log cannot be written, nothing but the database is reached.",
        (ledger.UNWRITTEN,),
    )


def _transport() -> Iterator[Rule]:
    yield Rule("transport", "redirects", "none", "One is an error, and nothing is sent on.", ("redirect",))
    yield Rule("transport", "addresses", "pinned", "Judged at every request; what was judged is connected to.")
    yield Rule(
        "transport",
        "surroundings",
        "none",
        "No proxy, no netrc, no user in a URL, nothing but HTTP.",
        ("scheme", "credentials"),
    )


def _tripwire(policy: Policy) -> Iterator[Rule]:
    in_force = hook.in_force()
    yield Rule(
        "tripwire",
        "connections, datagrams",
        "this machine, private peers",
        "Every other address is refused, as the judge does.",
    )
    yield Rule("tripwire", "resolvers", "none", "One on this machine would ask the world.", ("dns",))
    looked_up = _joined(("localhost", *sorted(policy.names)))
    yield Rule("tripwire", "look-ups", looked_up, "A question for a name can carry data.", ("name", "reverse_look_up"))
    listening = ("this machine", "{}:{}".format(*policy.listen)) if policy.listen else ("this machine",)
    yield Rule("tripwire", "listening", _joined(listening), "Nobody is let in elsewhere.", ("bind",))
    yield Rule(
        "tripwire",
        "Unix sockets",
        _joined(dict.fromkeys(in_force.sockets)),
        "Below these folders only.",
        ("unix_socket",),
    )
    yield Rule("tripwire", "sockets", "IPv4, IPv6, Unix", "No other family, none raw.", ("family", "raw_socket"))
    yield Rule(
        "tripwire", "programs", _joined(sorted(in_force.programs)), "These may be started, no shell.", ("program",)
    )
    yield Rule(
        "tripwire",
        "shared libraries",
        _joined(dict.fromkeys(in_force.libraries)),
        "Loaded from these folders only.",
        ("library",),
    )
    yield Rule(
        "tripwire",
        "in the process that reads documents",
        "no network, no program but its converters",
        "It has nobody to talk to, not even on this machine.",
        ("no_network",),
    )
    yield Rule(
        "tripwire",
        "events",
        f"{len(hook.EVENTS)} watched",
        "What is not understood is refused.",
        ("unknown_shape",),
    )


def _tools(policy: Policy) -> Iterator[Rule]:
    offered = sorted(name for name in tools.REACH if tools.may_offer(policy, name))
    yield Rule(
        "tools",
        "offered",
        _joined(offered),
        "No other is shown to the model, and each call is checked once more.",
        ("tool_forbidden", "tool_unknown"),
    )


def _joined(parts: Iterable[str]) -> str:
    return ", ".join(parts) or "none"
