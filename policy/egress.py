"""What may be connected to: one pure decision over an address, a port and a purpose.

Nothing here can allow a public address. `strict` allows the database and the model servers, on loopback or on a listed
peer; `private` allows the listed private peers for every other purpose too. A missing or malformed policy denies all.
"""

import logging
import re
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import httpx

from core.errors import BootRefused
from core.settings import Settings, variable
from policy import dsn as dsn_text
from policy import ledger
from policy.address import Address, AddressClass, MalformedHost, classify, literal, read_host

_log = logging.getLogger(__name__)

SCOPES = frozenset({"strict", "private"})
# What every scope allows: the database, a configured model server, and `embedded`, the model child that this program
# starts on a loopback port of the system's choice.
CORE_PURPOSES = frozenset({"database", "model", "embedded"})
# Where a PostgreSQL of the operating system keeps its socket.
POSTGRES_SOCKETS = ("/run/postgresql", "/var/run/postgresql")
UNRESOLVED = "unresolved"

Resolver = Callable[[str, int], Sequence[str]]

# The whole grammar of a configured URL. Anything that two parsers could read differently is outside of it.
_URL = re.compile(r"(https?)://(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::([1-9][0-9]{0,4}))?((?:/[A-Za-z0-9._~-]+)*/?)")
_PEER = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9.]+)):([1-9][0-9]{0,4})")
_DEFAULT_PORT = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Decision:
    """What the policy says. `reason` is a short machine code; `address` is where to connect when allowed."""

    allowed: bool
    reason: str
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server: `host` as written, `address` the judged literal to connect to (None before judging)."""

    scheme: str
    host: str
    port: int
    path: str = ""
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """The egress policy of a process. `Policy()` is the policy that denies everything.

    peers: exact (address, port) pairs. ports: loopback ports of the configured servers. names: host names that may
    be looked up. listen: where the server binds. sockets: folders whose Unix sockets may be used.
    """

    scope: Literal["strict", "private"] | None = None
    peers: frozenset[tuple[str, int]] = frozenset()
    ports: frozenset[int] = frozenset()
    names: frozenset[str] = frozenset()
    listen: tuple[str, int] | None = None
    sockets: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether there is a policy at all; when not, everything is denied and readiness should be red."""
        return self.scope in SCOPES

    @classmethod
    def parse(cls, source: Mapping[str, Any] | None) -> Self:
        """A policy from `{"scope", "peers"?, "ports"?, "names"?}`; the one that denies everything on any fault."""
        try:
            return cls(**_read(source))
        except ValueError:
            _log.error("egress policy is missing or malformed: everything is denied")
            return cls()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The policy that the settings describe. Raises BootRefused, naming the variable, for an unsafe value."""
        peers = frozenset(_listed(text) for text in settings.private_peers)
        servers = list(_servers(settings))
        policy = cls(
            scope=settings.scope,
            peers=peers,
            ports=frozenset(port for _, _, port, purpose in servers if purpose in CORE_PURPOSES),
            names=frozenset(host for _, host, _, _ in servers if literal(host) is None),
            listen=(settings.host, settings.port),
            sockets=(str(settings.home), *POSTGRES_SOCKETS),
        )
        for name, host, port, purpose in servers:
            decision = policy.decide(host, port, purpose)
            if not decision.allowed and decision.reason != UNRESOLVED:
                raise BootRefused(
                    f"{name} points to an address that the egress policy does not allow ({decision.reason}). "
                    + _remedy(purpose)
                )
        return policy

    def decide(self, host: str | bytes, port: int, purpose: str, answers: Iterable[str] = ()) -> Decision:
        """Judge one destination. Pure: a name is judged by `answers`, all addresses that a look-up gave for it.

        A name without answers is denied with the reason `unresolved`; `localhost` is 127.0.0.1 without a look-up.
        """
        if not self.sound:
            return Decision(False, "no_policy")
        if type(port) is not int or not 0 < port < 65536:
            return Decision(False, "malformed_port")
        try:
            place = read_host(host)
        except MalformedHost:
            return Decision(False, "malformed_host")
        if place == "localhost":
            place = read_host("127.0.0.1")
        if not isinstance(place, str):
            return self._judge(place, port, purpose)
        if place not in self.names:
            return Decision(False, "name_not_listed")
        return self._judge_all(list(answers), port, purpose)

    def _judge(self, address: Address, port: int, purpose: str) -> Decision:
        kind = classify(address)
        core = purpose in CORE_PURPOSES
        if (str(address), port) in self.peers and kind in (AddressClass.PRIVATE, AddressClass.LOOPBACK):
            if core or self.scope == "private":
                return Decision(True, "peer", str(address))
            return Decision(False, "scope")
        if kind is AddressClass.LOOPBACK:
            if purpose == "embedded" or (core and port in self.ports):
                return Decision(True, "loopback", str(address))
            return Decision(False, "port_not_listed" if core else "scope")
        return Decision(False, "peer_not_listed" if kind is AddressClass.PRIVATE else kind.value)

    def _judge_all(self, answers: list[str], port: int, purpose: str) -> Decision:
        if not answers:
            return Decision(False, UNRESOLVED)
        addresses = [literal(answer) for answer in answers]
        decisions = [
            Decision(False, "malformed_host") if address is None else self._judge(address, port, purpose)
            for address in addresses
        ]
        refused = [decision for decision in decisions if not decision.allowed]
        if refused:
            return Decision(False, refused[0].reason if len(refused) == len(decisions) else "mixed_answers")
        # The pinned address is the first IPv4 one where there is one: servers that listen on both are the exception.
        return next((d for d in decisions if ":" not in str(d.address)), decisions[0])


def look_up(host: str, port: int) -> tuple[str, ...]:
    """All addresses of a name, each once, in the resolver's order; empty when there is none. Blocks."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return ()
    return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))


def parse_url(url: str) -> Endpoint:
    """Read a configured URL: `http(s)://HOST[:PORT][/path]`, canonical, nothing else. Raises ValueError."""
    match = _URL.fullmatch(url) if isinstance(url, str) else None
    if match is None:
        raise ValueError("malformed_url")
    scheme, v6, name, digits, path = match.groups()
    host = v6 or name
    port = int(digits) if digits else _DEFAULT_PORT[scheme]
    try:
        place = read_host(host)
    except MalformedHost:
        raise ValueError("malformed_host") from None
    if port > 65535 or (v6 is not None) != (not isinstance(place, str) and place.version == 6):
        raise ValueError("malformed_url")
    # The client's own parser has to agree, or what is judged is not what is connected to.
    seen = httpx.URL(url)
    if (seen.scheme, seen.host, seen.port or _DEFAULT_PORT[scheme]) != (scheme, host, port):
        raise ValueError("not_canonical")
    return Endpoint(scheme, host, port, path)


def check_url(policy: Policy, url: str, purpose: str, *, resolver: Resolver = look_up) -> Endpoint:
    """Read and judge a URL that an administrator configured. Blocks for a name that needs a look-up.

    Returns the endpoint with its judged address; raises EgressDenied (counted) for everything else.
    """
    try:
        endpoint = parse_url(url)
    except ValueError as error:
        raise ledger.deny(str(error), purpose=purpose) from None
    return replace(endpoint, address=judged(policy, endpoint.host, endpoint.port, purpose, resolver))


def judged(policy: Policy, host: str, port: int, purpose: str, resolver: Resolver = look_up) -> str:
    """The one address to connect to for this host. Raises EgressDenied (counted)."""
    decision = policy.decide(host, port, purpose)
    if decision.reason == UNRESOLVED:
        decision = policy.decide(host, port, purpose, resolver(host, port))
    if decision.address is not None and ledger.closed() and purpose != "database":
        decision = Decision(False, ledger.UNWRITTEN)
    if decision.address is None:
        raise ledger.deny(decision.reason, purpose=purpose, port=port, target=ledger.told(host, port))
    return decision.address


def check_dsn(policy: Policy, dsn: str, *, resolver: Resolver = look_up) -> str:
    """Read and judge a PostgreSQL connection string and return the one to use. Blocks for a name.

    libpq is a C library that the audit hook cannot see, so it is given a string that leaves it nothing to find out:
    keyword form, the judged address as `hostaddr`, no service file, no Kerberos, no OAuth. Raises EgressDenied.
    """
    try:
        fields = dsn_text.parse(dsn)
    except ValueError as error:
        raise ledger.deny(str(error), purpose="database") from None
    if not policy.sound:
        raise ledger.deny("no_policy", purpose="database")
    if not dsn_text.is_socket(fields):
        target = fields.get("hostaddr") or fields["host"]
        fields["hostaddr"] = judged(policy, target, int(fields["port"]), "database", resolver)
    return dsn_text.render({**fields, "gssencmode": "disable"})


def _read(source: Mapping[str, Any] | None) -> dict[str, Any]:
    if not isinstance(source, Mapping) or not set(source) <= {"scope", "peers", "ports", "names"}:
        raise ValueError("not a policy")
    scope, peers, ports, names = (source.get(key, ()) for key in ("scope", "peers", "ports", "names"))
    lists = all(isinstance(value, list | tuple | set | frozenset) for value in (peers, ports, names))
    if not isinstance(scope, str) or scope not in SCOPES or not lists:
        raise ValueError("not a policy")
    if not all(type(port) is int and 0 < port < 65536 for port in ports):
        raise ValueError("not a port")
    if not all(isinstance(name, str) and isinstance(read_host(name), str) for name in names):
        raise ValueError("not a name")
    return {
        "scope": scope,
        "peers": frozenset(map(parse_peer, peers)),
        "ports": frozenset(ports),
        "names": frozenset(names),
    }


def parse_peer(text: str) -> tuple[str, int]:
    """`ADDRESS:PORT` (IPv6 in brackets) of a private or loopback address. Raises ValueError."""
    match = _PEER.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ValueError("malformed_peer")
    address, port = literal(match[1] or match[2]), int(match[3])
    if address is None or port > 65535 or (address.version == 6) != bool(match[1]):
        raise ValueError("malformed_peer")
    if classify(address) not in (AddressClass.PRIVATE, AddressClass.LOOPBACK):
        raise ValueError("public_peer")
    return str(address), port


def _remedy(purpose: str) -> str:
    peers = variable("private_peers")
    if purpose in CORE_PURPOSES:
        return f"Use loopback, or list its ADDRESS:PORT in {peers} if it is in your network."
    return f"List its ADDRESS:PORT in {peers} and set {variable('scope')} to private."


def _listed(text: str) -> tuple[str, int]:
    try:
        return parse_peer(text)
    except ValueError as error:
        raise BootRefused(
            f"{variable('private_peers')} has an entry that is not ADDRESS:PORT of a private address ({error}). "
            "Write for example 10.0.0.5:11434 or [fd00::5]:443; names and public addresses are not accepted."
        ) from None


def _servers(settings: Settings) -> Iterable[tuple[str, str, int, str]]:
    """(variable, host, port, purpose) of every configured server that is reached over TCP."""
    purposes = dict.fromkeys(("ollama_url", "openai_url", "rerank_url"), "model") | {"search_peer_url": "search_peer"}
    for field, purpose in purposes.items():
        url = getattr(settings, field)
        if url is not None:
            try:
                endpoint = parse_url(url)
            except ValueError as error:
                raise BootRefused(
                    f"{variable(field)} is not a plain URL ({error}). Write http://ADDRESS:PORT or https://NAME:PORT, "
                    "in lower case, without user, query or trailing dot."
                ) from None
            yield variable(field), endpoint.host, endpoint.port, purpose
    for field in ("database_url", "database_owner_url"):
        secret = getattr(settings, field)
        if secret is not None:
            try:
                fields = dsn_text.parse(secret.get_secret_value())
            except ValueError as error:
                raise BootRefused(
                    f"{variable(field)} is not a connection string that can be used ({error}). Write "
                    "postgresql://USER:PASSWORD@ADDRESS:PORT/DATABASE, one host, without a service."
                ) from None
            if not dsn_text.is_socket(fields):
                yield variable(field), fields.get("hostaddr") or fields["host"], int(fields["port"]), "database"
