"""Denials: counted for the whole process, logged, and kept until they stand in the audit log.

What is kept of one is a reason code, a word of our own code and an address, of a name only a hash: nothing that a user
or a model wrote. Nothing here writes the audit log: whoever does so listens, takes what is `unwritten` and says so when
it is `written`. While it cannot be, everything outward is refused.
"""

import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from core.errors import EgressDenied
from core.logs import trace_id
from policy.address import MalformedHost, read_host

_log = logging.getLogger(__name__)

# Reason of the boot canary's own attempts: expected, so neither logged as a warning nor kept.
CANARY: Final = "canary"
# Reason of a denial that an earlier one, which could not be written down, brought about.
UNWRITTEN: Final = "unwritten"
# Kinds that are kept at once. What is of a further kind is told apart by its reason alone, so that a flood of
# destinations makes a handful of entries.
KINDS: Final = 16
SEVERAL: Final = "several"

_ADVICE: Final = "If it is a peer inside your network, list its ADDRESS:PORT in INTRAMUROS_PRIVATE_PEERS."
_CLOSED: Final = (
    "The audit log cannot be written, so nothing may be reached. Run `intramuros doctor`; it is tried again."
)


@dataclass(frozen=True, slots=True)
class Denial:
    """Denials of one kind: why, on behalf of what, where to (an address and port, a name's hash, or empty)."""

    reason: str
    purpose: str
    target: str

    def __str__(self) -> str:
        return " ".join(filter(None, (self.purpose, self.reason, self.target)))


@dataclass(slots=True)
class _Ledger:
    """What this process knows. `kept`: times and the first one's trace id, by kind."""

    counts: Counter[str] = field(default_factory=Counter)
    kept: dict[Denial, tuple[int, str]] = field(default_factory=dict)
    listener: Callable[[], None] | None = None
    closed: bool = False


_ledger = _Ledger()
# Re-entrant: the audit hook may refuse something in the middle of a count (a finaliser run by the collector).
_lock = threading.RLock()


def count(reason: str, *, purpose: str, port: int | None = None) -> None:
    """Count one denial and log it. `purpose` is a word of our own code, never anything a user or model wrote."""
    with _lock:
        _ledger.counts[reason] += 1
    level = logging.DEBUG if reason == CANARY else logging.WARNING
    _log.log(level, "denied by the egress policy", extra={"reason": reason, "purpose": purpose, "port": port})


def deny(reason: str, *, purpose: str, port: int | None = None, target: str = "") -> EgressDenied:
    """Count one denial, keep it for the audit log, and return the error to raise. `target`: see `told`."""
    count(reason, purpose=purpose, port=port)
    if reason != CANARY:
        _keep(Denial(reason, purpose, target))
    return EgressDenied(
        f"A connection for '{purpose}' was refused by the egress policy ({reason}). "
        f"{_CLOSED if reason == UNWRITTEN else _ADVICE}",
        reason=reason,
        purpose=purpose,
    )


def denials() -> Mapping[str, int]:
    """Denials of this process so far, by reason code."""
    with _lock:
        return dict(_ledger.counts)


def told(host: object, port: object = None) -> str:
    """A destination as it may be recorded: an address, or the beginning of a name's SHA-256; empty for all else."""
    if not isinstance(host, str | bytes):
        return ""
    try:
        place = read_host(host)
    except MalformedHost:
        return ""
    name = f"name {hashlib.sha256(place.encode()).hexdigest()[:16]}" if isinstance(place, str) else str(place)
    return f"{name} port {port}" if type(port) is int else name


# --- for the audit log ------------------------------------------------------------------------------------------------


def listen(listener: Callable[[], None] | None) -> None:
    """Have `listener` called, from any thread, whenever something is unwritten; None: nobody listens any more."""
    with _lock:
        _ledger.listener = listener


def unwritten() -> dict[Denial, tuple[int, str]]:
    """What was kept and not yet said to be written: by kind how often, and the trace id of the first."""
    with _lock:
        return dict(_ledger.kept)


def written(denials: Iterable[tuple[Denial, int]]) -> None:
    """Say that so many of each kind stand in the audit log: others may be let out again."""
    with _lock:
        for denial, times in denials:
            now, trace = _ledger.kept.pop(denial, (0, ""))
            if now > times:
                _ledger.kept[denial] = (now - times, trace)
        _ledger.closed = False


def close() -> None:
    """Refuse everything outward from now on: what was denied cannot be written down."""
    with _lock:
        _ledger.closed = True


def closed() -> bool:
    """Whether everything outward is refused."""
    return _ledger.closed


def _keep(denial: Denial) -> None:
    with _lock:
        if denial not in _ledger.kept and len(_ledger.kept) >= KINDS:
            denial = Denial(denial.reason, SEVERAL, "")
        times, trace = _ledger.kept.get(denial, (0, trace_id()))
        _ledger.kept[denial] = (times + 1, trace)
        listener = _ledger.listener
    if listener is not None:
        listener()
