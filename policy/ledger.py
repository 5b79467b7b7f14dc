"""Denials, counted for the whole process and logged with a reason code: no host name, no URL, no user text."""

import logging
import threading
from collections import Counter
from collections.abc import Mapping

from core.errors import EgressDenied

_log = logging.getLogger(__name__)
_counts: Counter[str] = Counter()
# Re-entrant: the audit hook may refuse something in the middle of a count (a finaliser run by the collector).
_lock = threading.RLock()

# Reason of the boot canary's own attempts: expected, so not logged as a warning.
CANARY = "canary"


def count(reason: str, *, purpose: str, port: int | None = None) -> None:
    """Count one denial and log it. `purpose` is a word of our own code, never anything a user or model wrote."""
    with _lock:
        _counts[reason] += 1
    level = logging.DEBUG if reason == CANARY else logging.WARNING
    _log.log(level, "denied by the egress policy", extra={"reason": reason, "purpose": purpose, "port": port})


def deny(reason: str, *, purpose: str, port: int | None = None) -> EgressDenied:
    """Count one denial and return the error to raise."""
    count(reason, purpose=purpose, port=port)
    return EgressDenied(
        f"A connection for '{purpose}' was refused by the egress policy ({reason}). "
        "If it is a peer inside your network, list its ADDRESS:PORT in INTRAMUROS_PRIVATE_PEERS.",
        reason=reason,
        purpose=purpose,
    )


def denials() -> Mapping[str, int]:
    """Denials of this process so far, by reason code."""
    with _lock:
        return dict(_counts)
