"""Whether a connection still stands, without asking the server each time."""

import select
import time
from typing import Any, Final
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection

from storage import queries

# Seconds after which a silent connection is asked: a network may lose one without a word.
REST: Final = 5.0


class Liveness:
    """Watches connections. A server that ends one says so: what is silent and was used just now stands."""

    def __init__(self) -> None:
        self._used: WeakKeyDictionary[AsyncConnection[Any], float] = WeakKeyDictionary()

    def used(self, connection: AsyncConnection[Any]) -> None:
        """The server has just answered on this connection."""
        self._used[connection] = time.monotonic()

    async def check(self, connection: AsyncConnection[Any]) -> None:
        """Raises psycopg.OperationalError when the connection is lost."""
        rested = time.monotonic() - self._used.get(connection, 0.0) > REST
        if rested or _has_spoken(connection):
            await connection.execute(queries.text("session.ping"))
            self.used(connection)


def _has_spoken(connection: AsyncConnection[Any]) -> bool:
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
