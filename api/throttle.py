"""Limits failed log-ins, per name and per client address, in the memory of this process."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Final

from core.errors import TooManyAttempts

PER_NAME: Final = 10
PER_ADDRESS: Final = 50
WINDOW: Final = 60.0
# Keys remembered at once; the oldest go first, so that made-up names cannot fill the memory.
CAPACITY: Final = 10_000


class Throttle:
    """At most PER_NAME failures of one account and PER_ADDRESS of one client in any WINDOW seconds.

    An attempt counts when it starts, so that many at once gain nothing; success forgets the account's.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._attempts: OrderedDict[Hashable, deque[float]] = OrderedDict()

    def attempt(self, account: tuple[str, str], client: str) -> None:
        """Count one attempt. Raises TooManyAttempts where that is one too many."""
        keys = (("account", account), PER_NAME), (("client", client), PER_ADDRESS)
        now = self._clock()
        for key, most in keys:
            recent = self._recent(key, now)
            if len(recent) >= most:
                raise TooManyAttempts(retry_after=max(1, round(recent[0] + WINDOW - now)))
        for key, _ in keys:
            self._recent(key, now).append(now)

    def succeeded(self, account: tuple[str, str], client: str) -> None:
        """Forget the account's attempts, and this one of the client's."""
        self._attempts.pop(("account", account), None)
        recent = self._attempts.get(("client", client))
        if recent:
            recent.pop()

    def _recent(self, key: Hashable, now: float) -> deque[float]:
        recent = self._attempts.setdefault(key, deque())
        self._attempts.move_to_end(key)
        while recent and recent[0] <= now - WINDOW:
            recent.popleft()
        while len(self._attempts) > CAPACITY:
            self._attempts.popitem(last=False)
        return recent
