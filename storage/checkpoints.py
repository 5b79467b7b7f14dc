"""LangGraph's memory, walled in: a saver that sees the threads of one user of one tenant and nothing else.

LangGraph's tables know only thread ids. Row security compares the first two parts of `<tenant>:<user>:<run>` with
the settings of the connection, so that even a guessed id reads, continues and deletes nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from psycopg_pool import AsyncConnectionPool

from core.errors import BootRefused
from core.records import Principal
from storage import queries
from storage.database import Connection, Database, translated

if TYPE_CHECKING:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver


class _UsersPool(AsyncConnectionPool[Connection]):
    """A view of the database's pool whose connections carry one user's settings while they are out.

    The saver works in autocommit and opens transactions of its own, so the settings last for the connection here, the
    only place where they do; the pool's reset wipes them and drops a connection on which that fails.
    """

    def __init__(self, db: Database, principal: Principal) -> None:
        # No super().__init__: this is a view that owns no connection; the saver only asks it for `connection()`.
        self._db = db
        self._settings = {"tenant": str(principal.tenant_id), "user": str(principal.user_id)}

    @asynccontextmanager
    async def connection(self, timeout: float | None = None) -> AsyncIterator[Connection]:  # noqa: ASYNC109 - the pool's
        with translated():
            async with self._db.pool.connection(timeout) as connection:
                await connection.execute(queries.text("session.enter_connection"), self._settings)
                yield connection


def open_saver(db: Database, principal: Principal) -> "AsyncPostgresSaver":
    """A checkpointer for this principal's runs; use `threads.thread_id` for the thread. Call it in the event loop.

    Make one for each question: a saver serialises all that goes through it. Raises BootRefused when LangGraph was
    imported without strict deserialisation, under which a stored checkpoint could name code to run.
    """
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.checkpoint.serde import _msgpack

    if not _msgpack.STRICT_MSGPACK_ENABLED:
        raise BootRefused("LANGGRAPH_STRICT_MSGPACK must be `true` before LangGraph is imported.")
    return AsyncPostgresSaver(_UsersPool(db, principal))
