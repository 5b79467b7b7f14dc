"""The tripwire: a process-wide audit hook that refuses look-ups, connections and programs outside the policy.

It sees every thread of the interpreter, whatever library acts. It does not see C code (libpq, llama.cpp) or child
processes, and a name handed straight to `socket.connect` is resolved before the event: it is a guardrail, with the
operating system's rules as the wall. Whatever it does not understand it denies.
"""

import asyncio
import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from core.errors import BootRefused, EgressDenied
from policy import ledger
from policy.address import Address, AddressClass, MalformedHost, classify, read_host
from policy.egress import Policy

# TEST-NET-3 (RFC 5737) is routed nowhere: a connection that is not refused here reaches nobody either.
CANARY_ADDRESS = "203.0.113.1"
CANARY_PORT = 9

# A resolver on loopback forwards questions to the world, and a question can carry data.
_DNS_PORTS = frozenset({53, 853, 5353})
_FAMILIES = frozenset({socket.AF_INET, socket.AF_INET6, socket.AF_UNIX})
_RAW_TYPES = frozenset({socket.SOCK_RAW, 10})  # 10: SOCK_PACKET, which Python does not name
_TYPE_MASK = 0xF
_SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib")

# The hook cannot be taken out again, so it is kept where a reload of this module finds it.
_HOLDER = "_intramuros_tripwire"


@dataclass(frozen=True, slots=True)
class Rules:
    """What the hook compares with. Paths are real paths; a program may also be named by its folder."""

    policy: Policy
    programs: frozenset[str]
    sockets: tuple[str, ...]
    libraries: tuple[str, ...]
    forks: bool
    network: bool


def arm(
    policy: Policy,
    *,
    programs: Collection[Path] = (),
    sockets: Collection[Path] = (),
    forks: bool = False,
    network: bool = True,
) -> None:
    """Watch this process from now on. Installed once; a later call only replaces the rules.

    programs: executables that may be started, or folders of them, beside none at all by default.
    sockets: folders whose Unix sockets may be used, beside those of the policy.
    forks: whether this process may copy itself, as the one does that reads documents in children.
    network: False where there is nobody at all to talk to, not even on this machine.
    """
    rules = Rules(
        policy=policy,
        programs=frozenset(os.path.realpath(program) for program in programs),
        sockets=tuple(os.path.realpath(folder) for folder in (*policy.sockets, *map(str, sockets))),
        libraries=tuple(os.path.realpath(r) for r in (sys.prefix, sys.base_prefix, *_SYSTEM_LIBRARIES)),
        forks=forks,
        network=network,
    )
    holder = sys.modules.get(_HOLDER)
    if holder is not None:
        holder.rules = rules  # type: ignore[attr-defined]
        return
    # Clients describe the platform in a header; Python runs `uname` for that, once, and remembers.
    platform.platform()
    holder = ModuleType(_HOLDER)
    holder.rules = rules  # type: ignore[attr-defined]
    sys.modules[_HOLDER] = holder
    checks = dict(_CHECKS)

    def tripwire(event: str, args: tuple[Any, ...]) -> None:
        check = checks.get(event)
        if check is not None:
            _apply(check, holder.rules, event, args)

    sys.addaudithook(tripwire)


def in_force() -> Rules:
    """What the hook compares with. Raises BootRefused where it was not set."""
    holder = sys.modules.get(_HOLDER)
    if holder is None:
        raise BootRefused("The audit hook is not set. Start through the `intramuros` command.")
    rules: Rules = holder.rules
    return rules


def canary() -> None:
    """Prove that a public connection is refused, in a thread and in an event loop of the default kind.

    Raises BootRefused. Takes no time when the hook works; a second at most when it does not.
    """
    with ThreadPoolExecutor(max_workers=1) as pool:
        refused = pool.submit(_sync_refused).result() and pool.submit(asyncio.run, _async_refused()).result()
    _require(refused)


async def canary_in_loop() -> None:
    """The same proof inside the running event loop: for a server, before it listens. Raises BootRefused."""
    _require(await _async_refused())


def _require(refused: bool) -> None:
    if not refused:
        raise BootRefused(
            "A connection to a public address was not refused, so the audit hook does not work in this process. "
            "Start through the `intramuros` command with the standard asyncio event loop."
        )


def _sync_refused() -> bool:
    with socket.socket() as probe:
        probe.setblocking(False)
        try:
            probe.connect((CANARY_ADDRESS, CANARY_PORT))
        except EgressDenied:
            return True
        except OSError:
            return False
        return False


async def _async_refused() -> bool:
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(CANARY_ADDRESS, CANARY_PORT), timeout=1)
    except EgressDenied:
        return True
    except (OSError, TimeoutError):
        return False
    writer.close()
    return False


# --- the checks: each returns a reason to deny, or None ------------------------------------------------------------

Check = Callable[[Rules, tuple[Any, ...]], str | None]


def _apply(check: Check, rules: Rules, event: str, args: tuple[Any, ...]) -> None:
    try:
        reason = check(rules, args) if rules.network or event not in _PLACE else "no_network"
    except (TypeError, ValueError, AttributeError, IndexError):
        reason = "unknown_shape"
    if reason is not None:
        raise ledger.deny(reason, purpose=event, target=_target(event, args))


def _target(event: str, args: tuple[Any, ...]) -> str:
    """Where it was to go, as it may be recorded."""
    place = _PLACE.get(event, len(args))
    where = args[place] if place < len(args) else None
    host, port, *_ = (*where, None, None) if isinstance(where, tuple) else (where, None)
    return ledger.told(host, port)


def _new_socket(rules: Rules, args: tuple[Any, ...]) -> str | None:
    _, family, kind, _ = args
    # -1: made from a descriptor; what it then does is judged by its real family.
    if family != -1 and family not in _FAMILIES:
        return "family"
    return "raw_socket" if kind & _TYPE_MASK in _RAW_TYPES else None


def _connect(rules: Rules, args: tuple[Any, ...]) -> str | None:
    sock, address = args
    if sock.family == socket.AF_UNIX:
        return _unix(rules, address)
    place, port = _inet(sock, address)
    kind = classify(place)
    if str(place) == CANARY_ADDRESS:
        return ledger.CANARY
    listed = (str(place), port) in rules.policy.peers
    if kind is AddressClass.LOOPBACK and not listed and port in _DNS_PORTS and port not in rules.policy.ports:
        return "dns"
    if listed or kind is AddressClass.LOOPBACK:
        return ledger.UNWRITTEN if ledger.closed() else None
    return "peer_not_listed" if kind is AddressClass.PRIVATE else kind.value


def _send_message(rules: Rules, args: tuple[Any, ...]) -> str | None:
    # On a connected socket it names no address: that one was judged when it connected.
    return None if args[1] is None else _connect(rules, args)


def _bind(rules: Rules, args: tuple[Any, ...]) -> str | None:
    sock, address = args
    if sock.family == socket.AF_UNIX:
        return _unix(rules, address)
    place, port = _inet(sock, address)
    if classify(place) is AddressClass.LOOPBACK or (str(place), port) == rules.policy.listen:
        return None
    return "bind"


def _inet(sock: Any, address: Any) -> tuple[Address, int]:
    """Address and port of an IPv4 or IPv6 socket address. Raises ValueError for any other shape."""
    lengths = {socket.AF_INET: (2,), socket.AF_INET6: (2, 3, 4)}[sock.family] if sock.family in _FAMILIES else ()
    if type(address) is not tuple or len(address) not in lengths or type(address[1]) is not int:
        raise ValueError("shape")
    if len(address) == 4 and address[3] != 0:
        raise ValueError("scope id")
    place = read_host(address[0])
    if place == "localhost":
        place = read_host("127.0.0.1")
    if isinstance(place, str):
        raise ValueError("name")
    return place, address[1]


def _unix(rules: Rules, address: Any) -> str | None:
    path = os.fsdecode(address)
    if not path or path.startswith("\0"):
        return "unix_socket"
    return None if _inside(path, rules.sockets) else "unix_socket"


def _look_up(rules: Rules, args: tuple[Any, ...]) -> str | None:
    host = args[0]
    if host is None:
        return None
    try:
        place = read_host(host)
    except MalformedHost:
        return "malformed_host"
    # A literal asks nobody; connecting to it is judged by itself.
    return None if not isinstance(place, str) or place == "localhost" or place in rules.policy.names else "name"


def _reverse_look_up(rules: Rules, args: tuple[Any, ...]) -> str | None:
    host = args[0][0] if isinstance(args[0], tuple) else args[0]
    place = read_host(host)
    local = place == "localhost" or (not isinstance(place, str) and classify(place) is AddressClass.LOOPBACK)
    return None if local else "reverse_look_up"


def _popen(rules: Rules, args: tuple[Any, ...]) -> str | None:
    executable, _, _, env = args
    return _program(rules, executable, env)


def _execute(rules: Rules, args: tuple[Any, ...]) -> str | None:
    return _program(rules, args[0], None)


def _program(rules: Rules, executable: Any, env: Mapping[Any, Any] | None) -> str | None:
    name = os.fsdecode(executable)
    if os.sep not in name:
        name = shutil.which(name, path=os.pathsep.join(map(os.fsdecode, os.get_exec_path(env)))) or ""
    if not name.startswith(os.sep):
        return "program"
    real = os.path.realpath(name)
    return None if real in rules.programs or str(Path(real).parent) in rules.programs else "program"


def _fork(rules: Rules, args: tuple[Any, ...]) -> str | None:
    return None if rules.forks else "program"


def _never(rules: Rules, args: tuple[Any, ...]) -> str | None:
    return "program"


def _library(rules: Rules, args: tuple[Any, ...]) -> str | None:
    if args[0] is None:
        return None
    name = os.fsdecode(args[0])
    # A bare name is found by the system's loader among the system's libraries.
    return None if os.sep not in name or _inside(name, rules.libraries) else "library"


def _inside(path: str, folders: Collection[str]) -> bool:
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(folder) for folder in folders)


# What asks or reaches others, and which of its arguments says whom. A Unix socket may be made, for a pair of them
# within the process.
_PLACE = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.bind": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
    "socket.getnameinfo": 0,
}

_CHECKS: dict[str, Check] = {
    "socket.__new__": _new_socket,
    "socket.connect": _connect,
    "socket.sendto": _connect,
    "socket.sendmsg": _send_message,
    "socket.bind": _bind,
    "socket.getaddrinfo": _look_up,
    "socket.gethostbyname": _look_up,
    "socket.gethostbyaddr": _reverse_look_up,
    "socket.getnameinfo": _reverse_look_up,
    "subprocess.Popen": _popen,
    "os.exec": _execute,
    "os.posix_spawn": _execute,
    "os.system": _never,
    "os.spawn": _never,
    "os.fork": _fork,
    "os.forkpty": _never,
    "pty.spawn": _never,
    "ctypes.dlopen": _library,
}

# Every event that is judged. The `purpose` of a denial by the tripwire is the event.
EVENTS = frozenset(_CHECKS)
