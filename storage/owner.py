"""Connections of the owner: migrations, and the making and removing of tenants. Never used to answer a request."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row

from storage import queries
from storage.database import CONNECT_SECONDS, Connection, translated

# Waiting longer for a lock would hold up everyone who queues behind us. The queue's triggers name its tables without
# their schema.
OPTIONS = (
    "-c search_path=intramuros,public,procrastinate -c lock_timeout=5s -c client_min_messages=warning -c timezone=UTC"
)


@asynccontextmanager
async def connection(owner_dsn: str) -> AsyncIterator[Connection]:
    """An autocommit connection as whoever the address names. Errors: DatabaseUnavailable, StorageError."""
    with translated():
        async with await AsyncConnection[DictRow].connect(
            owner_dsn,
            autocommit=True,
            row_factory=dict_row,
            options=OPTIONS,
            connect_timeout=CONNECT_SECONDS,
            gssencmode="disable",
        ) as opened:
            yield opened


@asynccontextmanager
async def transaction(owner_dsn: str) -> AsyncIterator[Connection]:
    """One transaction as intramuros_owner, which row security binds like everyone else."""
    async with connection(owner_dsn) as opened, opened.transaction():
        await opened.execute(queries.text("schema.become_owner"))
        yield opened
