"""The pool of the app role, and transactions that belong to one tenant.

Three walls keep tenants apart: each statement names its tenant, row security compares every row with the tenant set
for the transaction, and a connection whose setting is not empty never goes back into the pool.
"""

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import UUID
from weakref import WeakSet

import psycopg
from pgvector.psycopg.halfvec import register_halfvec_info
from pgvector.psycopg.sparsevec import register_sparsevec_info
from psycopg import AsyncClientCursor, AsyncConnection, AsyncCursor, errors
from psycopg.rows import DictRow, dict_row
from psycopg.sql import SQL, Composed
from psycopg.types import TypeInfo
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from core.errors import (
    AlreadyExists,
    DatabaseUnavailable,
    IntramurosError,
    InvalidRequest,
    StorageError,
    TenantContextMissing,
    UnsafeRole,
)
from core.logs import trace_id
from storage import queries
from storage.liveness import Liveness
from storage.locks import Locks

logger = logging.getLogger(__name__)

Connection = AsyncConnection[DictRow]

# Session defaults, so that RESET ALL comes back to them. `checkpoints` is where LangGraph's tables live; `public` is
# where pgvector does. Custom plans: a generic one would not prune other tenants' partitions when it is made.
OPTIONS = (
    "-c search_path=intramuros,checkpoints,public -c plan_cache_mode=force_custom_plan -c jit=off"
    " -c hnsw.ef_search=400 -c hnsw.iterative_scan=strict_order -c work_mem=32MB -c timezone=UTC"
)
CONNECT_SECONDS = 10
WAIT_SECONDS = 30.0
_WIPE = ("session.reset", "session.leftover")
# A statement is prepared where it asks for it, not once it has come so many times.
_NEVER_BY_ITSELF = 2**31
# Ends a placeholder whose value travels in binary, which only a statement that goes by itself can have.
_BINARY = ")b"


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's errors into ours, cause kept; the message never quotes a row."""
    try:
        yield
    except IntramurosError:
        raise
    except errors.LockNotAvailable as error:
        raise StorageError("The database is busy with what this needs. Try again in a moment.") from error
    except (PoolTimeout, PoolClosed) as error:
        raise DatabaseUnavailable from error
    except psycopg.OperationalError as error:
        # Without a code of the server's, or of these classes: no connection, no room, shutting down.
        lost = error.sqlstate is None or error.sqlstate[:2] in ("08", "53", "57")
        raise (DatabaseUnavailable if lost else StorageError) from error
    except errors.UniqueViolation as error:
        raise AlreadyExists from error
    except (psycopg.DataError, errors.CheckViolation, UnicodeEncodeError) as error:
        raise InvalidRequest("A value cannot be stored: it holds characters or sizes the database refuses.") from error
    except psycopg.Error as error:
        raise StorageError from error


@dataclass(frozen=True, slots=True)
class Transaction:
    """An open transaction of one tenant. Every query gets `tenant` as a parameter besides the ones handed in.

    `_ahead`: statements that go along with the next one, their values written into them.
    """

    connection: Connection
    tenant_id: UUID
    _ahead: list[str] = field(default_factory=list)

    def later(self, name: str, /, **params: object) -> None:
        """Run a named statement in one trip with the next one, or with the end; its error, if any, is raised there.

        For small values: they go as text. Whoever uses `connection` itself must not come after it.
        """
        self._ahead.append(self._written(queries.text(name), self._with_tenant(params)))

    async def rows(self, name: str, /, **params: object) -> list[DictRow]:
        """All rows of a named query."""
        return await (await self._execute(name, params)).fetchall()

    async def rows_of(self, query: SQL | Composed, /, **params: object) -> list[DictRow]:
        """All rows of a query of psycopg.sql, which the connection keeps parsed for the next time."""
        if self._ahead:
            await self._together()
        cursor = await self.connection.execute(query, self._with_tenant(params), prepare=True)
        return await cursor.fetchall()

    async def row(self, name: str, /, **params: object) -> DictRow | None:
        """The first row of a named query, or None."""
        return await (await self._execute(name, params)).fetchone()

    async def run(self, name: str, /, **params: object) -> int:
        """Run a named statement; the number of rows it touched."""
        return (await self._execute(name, params)).rowcount

    async def end(self) -> AsyncCursor[DictRow]:
        """Commit, and wipe the connection's settings; the row says what is left of them."""
        return await self._together(*map(queries.text, ("session.commit", *_WIPE)))

    async def _execute(self, name: str, params: Mapping[str, object]) -> AsyncCursor[DictRow]:
        query, values = queries.text(name), self._with_tenant(params)
        if self._ahead and _BINARY not in query:
            return await self._together(self._written(query, values))
        if self._ahead:
            await self._together()
        return await self.connection.execute(query, values)

    async def _together(self, *last: str) -> AsyncCursor[DictRow]:
        """Send what waits and these, in one trip; the cursor stands at the last result."""
        statements = [*self._ahead, *last]
        self._ahead.clear()
        cursor = await AsyncClientCursor(self.connection).execute(";\n".join(statements))
        return await cursor.set_result(-1)

    def _written(self, query: str, values: Mapping[str, object]) -> str:
        # Several statements in one trip need their values written into them, by the driver.
        return AsyncClientCursor(self.connection).mogrify(query, values)

    def _with_tenant(self, params: Mapping[str, object]) -> dict[str, object]:
        return {"tenant": self.tenant_id, **params}


class _Types:
    """Teaches a new connection pgvector's types; their numbers are looked up once."""

    def __init__(self) -> None:
        self._known: dict[str, TypeInfo] = {}

    async def __call__(self, connection: Connection) -> None:
        for name, register in (("halfvec", register_halfvec_info), ("sparsevec", register_sparsevec_info)):
            info = self._known.get(name) or await TypeInfo.fetch(connection, name)
            if info is None:  # not migrated yet: the schema check says so in better words
                return
            self._known[name] = info
            register(connection, info)


@dataclass(frozen=True, slots=True)
class Database:
    """The one door to PostgreSQL for everything but migrations, tenants being made or removed, and the queue."""

    dsn: str = field(repr=False)
    pool: AsyncConnectionPool[Connection]
    locks: Locks
    # Connections on their way back into the pool whose last statement has wiped them already.
    _wiped: WeakSet[Connection]

    @classmethod
    async def open(cls, app_dsn: str, *, pool_size: int) -> Self:
        """Connect as the app role.

        Errors: DatabaseUnavailable; UnsafeRole when that role could step around row security.
        """
        liveness = Liveness()
        wiped: WeakSet[Connection] = WeakSet()

        async def reset(connection: Connection) -> None:
            if connection in wiped:
                wiped.discard(connection)
            else:
                await _must_be_empty(await connection.execute(";\n".join(map(queries.text, _WIPE))))
            liveness.used(connection)

        pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
            app_dsn,
            connection_class=AsyncConnection[DictRow],
            # What LangGraph's saver asks of a pool: autocommit and dict rows.
            kwargs={
                "autocommit": True,
                "row_factory": dict_row,
                "prepare_threshold": _NEVER_BY_ITSELF,
                "options": OPTIONS,
                "connect_timeout": CONNECT_SECONDS,
                "gssencmode": "disable",
            },
            min_size=1,
            max_size=pool_size,
            timeout=WAIT_SECONDS,
            check=liveness.check,
            configure=_Types(),
            reset=reset,
            open=False,
        )
        with translated():
            await _check_role(app_dsn)
            await pool.open()
        return cls(app_dsn, pool, Locks(app_dsn), wiped)

    async def close(self) -> None:
        """Let every connection go. Safe to call twice."""
        await self.locks.close()
        await self.pool.close()

    async def ping(self) -> None:
        """Raises DatabaseUnavailable when a query does not come back."""
        with translated():
            async with self.pool.connection(timeout=CONNECT_SECONDS) as connection:
                await connection.execute(queries.text("session.ping"))

    @asynccontextmanager
    async def transaction(self, tenant_id: UUID, user_id: UUID | None = None) -> AsyncIterator[Transaction]:
        """One transaction inside which only this tenant exists (and, for checkpoints, only this user).

        Errors: TenantContextMissing, DatabaseUnavailable, AlreadyExists, InvalidRequest, StorageError.
        """
        if not isinstance(tenant_id, UUID):
            raise TenantContextMissing
        with translated():
            # The pool rolls back what an error leaves open.
            async with self.pool.connection() as connection:
                # Several statements in one trip need their values written into them, by the driver.
                await AsyncClientCursor(connection).execute(
                    queries.text("session.enter"),
                    {
                        "tenant": str(tenant_id),
                        "user": str(user_id or ""),
                        "application": f"intramuros {trace_id()}",
                    },
                )
                transaction = Transaction(connection, tenant_id)
                yield transaction
                await _must_be_empty(await transaction.end())
                self._wiped.add(connection)

    @asynccontextmanager
    async def unscoped(self) -> AsyncIterator[Connection]:
        """A connection without a tenant: row security shows it no tenant's rows. For start-up and log-in look-ups."""
        with translated():
            async with self.pool.connection() as connection:
                yield connection


async def _check_role(app_dsn: str) -> None:
    async with await AsyncConnection.connect(
        app_dsn,
        autocommit=True,
        row_factory=dict_row,
        options=OPTIONS,
        connect_timeout=CONNECT_SECONDS,
        gssencmode="disable",
    ) as connection:
        cursor = await connection.execute(queries.text("session.unsafe_role"))
        row = await cursor.fetchone()
    if row is None or row["unsafe"]:
        raise UnsafeRole(role=row["name"] if row else "?")


async def _must_be_empty(wiped: AsyncCursor[DictRow]) -> None:
    row = await (await wiped.set_result(-1)).fetchone()
    if row is None or row["leftover"]:
        # The pool throws away a connection whose reset fails.
        logger.error("a tenant setting outlived its transaction; the connection is dropped")
        raise TenantContextMissing("A tenant setting outlived its transaction.")


def typed_row(row: DictRow | None) -> dict[str, Any]:
    """A row that the statement always gives (RETURNING, aggregates). Raises StorageError when it did not."""
    if row is None:
        raise StorageError
    return row
