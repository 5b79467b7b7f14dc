"""Advisory locks that outlive a transaction: one document worked on, one session answered, by one process at a time;
and one that all who answer a question share.

All of a process's locks are held by one connection of their own: a question may take minutes, and a pooled connection
(with its place among the server's connections) must not wait beside it.
"""

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from core.errors import DatabaseUnavailable
from storage import queries
from storage.liveness import Liveness

logger = logging.getLogger(__name__)


def key_of(*parts: object) -> int:
    """A stable signed 64-bit key for PostgreSQL's advisory locks."""
    digest = hashlib.blake2b(":".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class Locks:
    """The locks of one process on one database."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: AsyncConnection[DictRow] | None = None
        self._liveness = Liveness()
        self._turn = asyncio.Lock()
        # A database session may take the same lock twice, so tasks of this process are kept apart here.
        self._held: set[int] = set()
        self._shared: Counter[int] = Counter()

    @asynccontextmanager
    async def hold(self, key: int) -> AsyncIterator[bool]:
        """Yields whether the lock was free; holds it while inside. Raises DatabaseUnavailable."""
        # Shielded: a caller that is cancelled while the server answers must not leave a lock that nobody knows of.
        taking = asyncio.ensure_future(self._take(key))
        try:
            yield await asyncio.shield(taking)
        finally:
            await asyncio.shield(asyncio.ensure_future(self._let_go(taking, key)))

    @asynccontextmanager
    async def share(self, key: int) -> AsyncIterator[None]:
        """Hold a lock beside all others who share it, while inside. Raises DatabaseUnavailable."""
        joining = asyncio.ensure_future(self._join(key))
        try:
            await asyncio.shield(joining)
            yield
        finally:
            await asyncio.shield(asyncio.ensure_future(self._leave(joining, key)))

    async def close(self) -> None:
        """Let the connection, and with it every lock, go."""
        async with self._turn:
            if self._connection is not None:
                await self._connection.close()
            self._connection = None
            self._held.clear()
            self._shared.clear()

    async def _take(self, key: int) -> bool:
        async with self._turn:
            if key in self._held:
                return False
            try:
                connection = await self._connected()
                taken = await _ask(connection, "session.take", key)
            except psycopg.Error as error:
                raise DatabaseUnavailable from error
            if taken:
                self._held.add(key)
            return taken

    async def _let_go(self, taking: asyncio.Future[bool], key: int) -> None:
        await asyncio.wait([taking])
        if taking.exception() is None and taking.result():
            await self._release(key)

    async def _release(self, key: int) -> None:
        async with self._turn:
            self._held.discard(key)
            await self._say("session.release", key)

    async def _join(self, key: int) -> None:
        async with self._turn:
            try:
                await _ask(await self._connected(), "session.share", key)
            except psycopg.Error as error:
                raise DatabaseUnavailable from error
            self._shared[key] += 1

    async def _leave(self, joining: asyncio.Future[None], key: int) -> None:
        await asyncio.wait([joining])
        if joining.exception() is None:
            async with self._turn:
                self._shared -= Counter([key])
                await self._say("session.unshare", key)

    async def _say(self, name: str, key: int) -> None:
        if self._connection is None or self._connection.closed:
            return
        try:
            await _ask(self._connection, name, key)
        except psycopg.Error:
            # The server lets go of a lost connection's locks by itself.
            logger.warning("the connection that held a lock was lost")

    async def _connected(self) -> AsyncConnection[DictRow]:
        connection = self._connection
        if connection is not None and not connection.closed and await self._stands(connection):
            return connection
        connection = await AsyncConnection.connect(
            self._dsn, autocommit=True, row_factory=dict_row, connect_timeout=10, gssencmode="disable"
        )
        self._connection = connection
        for key in self._held:  # what the lost connection held is still being worked on
            await _ask(connection, "session.take", key)
        for key in self._shared.elements():
            await _ask(connection, "session.share", key)
        return connection

    async def _stands(self, connection: AsyncConnection[DictRow]) -> bool:
        try:
            await self._liveness.check(connection)
        except psycopg.OperationalError:
            return False
        return True


async def _ask(connection: AsyncConnection[DictRow], name: str, key: int) -> bool:
    cursor = await connection.execute(queries.text(name), {"key": key})
    row = await cursor.fetchone()
    return row is not None and any(row.values())
