"""`doctor --walls`: whether the operating system keeps in what the program itself cannot see."""

from collections.abc import Iterator
from typing import Final

from api.cli.checks import Check
from core.errors import IntramurosError
from policy import walls

_REMEDY: Final = "Put up a wall of docs/deployment.md: nftables, systemd, an internal network or a NetworkPolicy"
_UNHEEDED: Final = "The unit asks for an address filter that is not in force: systemd needs cgroup v2 and eBPF for it"
_WAYS: Final = {"tcp": "TCP, port 443", "udp": "UDP, port 53", "names": "name look-ups"}


def examine() -> Iterator[Check]:
    """Three ways out, then the rules that this user may see. Blocks for a few seconds."""
    try:
        found = walls.look()
    except IntramurosError as error:
        yield Check("walls", "fail", "the walls could not be looked at", error.message)
        return
    yield from judged(found)


def judged(found: walls.Walls) -> Iterator[Check]:
    """A way out that is open is a fault; rules that cannot be seen are none while nothing gets out."""
    remedy = _UNHEEDED if found.filter else _REMEDY
    for field, words in _WAYS.items():
        if getattr(found, field):
            yield Check(words, "ok", "kept in by the operating system or its network")
        else:
            yield Check(words, "fail", "left this machine unhindered", remedy)
    for name, present in (("nftables", found.rules), ("systemd", found.filter)):
        said = {True: "in place", False: "not in place", None: "cannot be seen from here"}[present]
        yield Check(name, "ok" if present or found.hold else "warn", said)
