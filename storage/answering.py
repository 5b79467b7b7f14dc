"""Who answers a question says so, and who reads documents in can tell: on one machine both want the same processor."""

import platform
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from storage import queries
from storage.database import Database, typed_row
from storage.locks import key_of


def _key() -> int:
    # Machines do not hold each other up; the processes of one do.
    return key_of("answering", platform.node())


@asynccontextmanager
async def answering(db: Database) -> AsyncIterator[None]:
    """Say so while inside. Raises DatabaseUnavailable."""
    async with db.locks.share(_key()):
        yield


async def under_way(db: Database) -> bool:
    """Whether a process of this machine is answering a question. Raises DatabaseUnavailable."""
    async with db.unscoped() as connection:
        cursor = await connection.execute(queries.text("session.unshared"), {"key": _key()})
        return not typed_row(await cursor.fetchone())["free"]
