"""The pool and the wall between tenants: nothing leaks, nothing is written across, nothing works without a tenant."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import errors

from core.errors import (
    AlreadyExists,
    DatabaseUnavailable,
    InvalidRequest,
    StorageError,
    TenantContextMissing,
    UnsafeRole,
)
from core.logs import traced
from core.records import Principal, Role, Tenant
from storage import collections, documents, liveness, queries, sessions, users
from storage.database import Database
from storage.search import search
from tests.conftest import DatabaseUnderTest
from tests.integration.storage.filling import EMBEDDER, fill, unit

TENANT = "SELECT coalesce(current_setting('intramuros.tenant', true), '') AS tenant"


@pytest.fixture
async def one_connection(fresh: DatabaseUnderTest) -> AsyncIterator[Database]:
    """A database whose pool has a single connection, so that each checkout gets what the last one left."""
    opened = await Database.open(fresh.app_dsn, pool_size=1)
    yield opened
    await opened.close()


async def value(connection: Any, query: str) -> object:
    row = await (await connection.execute(query)).fetchone()
    return next(iter(row.values()))


@pytest.mark.threat(38)
async def test_the_owner_and_superusers_are_refused(fresh: DatabaseUnderTest) -> None:
    with pytest.raises(UnsafeRole):
        await Database.open(fresh.owner_dsn, pool_size=1)


async def test_a_database_that_is_not_there_is_named_unavailable(fresh: DatabaseUnderTest) -> None:
    with pytest.raises(DatabaseUnavailable):
        await Database.open(psycopg.conninfo.make_conninfo(fresh.app_dsn, dbname="nowhere"), pool_size=1)


@pytest.mark.threat(41)
async def test_the_tenant_ends_with_the_transaction(one_connection: Database, tenant: Tenant) -> None:
    async with one_connection.transaction(tenant.id) as tx:
        assert await value(tx.connection, TENANT) == str(tenant.id)
    async with one_connection.unscoped() as connection:
        assert await value(connection, TENANT) == ""
        assert await value(connection, "SELECT count(*) FROM users") == 0


@pytest.mark.threat(41)
async def test_the_tenant_ends_with_a_crash(one_connection: Database, tenant: Tenant, other_tenant: Tenant) -> None:
    with pytest.raises(StorageError):
        async with one_connection.transaction(tenant.id) as tx:
            await tx.connection.execute("SELECT 1 FROM nowhere")
    with pytest.raises(ZeroDivisionError):
        async with one_connection.transaction(tenant.id):
            raise ZeroDivisionError
    async with one_connection.transaction(other_tenant.id) as tx:
        assert await value(tx.connection, "SELECT count(DISTINCT tenant_id) FROM users") == 1
        assert await value(tx.connection, TENANT) == str(other_tenant.id)


async def test_the_tenant_ends_with_a_cancelled_task(one_connection: Database, tenant: Tenant) -> None:
    inside = asyncio.Event()

    async def work() -> None:
        async with one_connection.transaction(tenant.id) as tx:
            inside.set()
            await tx.connection.execute("SELECT pg_sleep(60)")

    task = asyncio.create_task(work())
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with one_connection.unscoped() as connection:
        assert await value(connection, TENANT) == ""


async def test_what_is_left_for_later_goes_with_the_next_statement_or_the_end(
    one_connection: Database, tenant: Tenant
) -> None:
    async with one_connection.transaction(tenant.id) as tx:
        tx.later("collections.ensure", name="it's 100 %")
        assert await tx.row("collections.by_name", name="it's 100 %") is not None
        tx.later("collections.ensure", name="last")
    async with one_connection.transaction(tenant.id) as tx:
        assert await tx.row("collections.by_name", name="last") is not None


async def test_an_error_of_what_was_left_for_later_ends_the_transaction(
    one_connection: Database, tenant: Tenant
) -> None:
    with pytest.raises(AlreadyExists):
        async with one_connection.transaction(tenant.id) as tx:
            tx.later("collections.create", name="twice")
            tx.later("collections.create", name="twice")
    async with one_connection.transaction(tenant.id) as tx:
        assert await tx.row("collections.by_name", name="twice") is None


@pytest.mark.threat(42)
async def test_a_transaction_that_leaves_a_setting_behind_costs_the_connection(
    one_connection: Database, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = queries.text
    monkeypatch.setattr(queries, "text", lambda name: "SELECT 1" if name == "session.reset" else text(name))
    with pytest.raises(TenantContextMissing):
        async with one_connection.transaction(tenant.id) as tx:
            first = await value(tx.connection, "SELECT pg_backend_pid()")
            await tx.connection.execute(text("session.enter_connection"), {"tenant": str(tenant.id), "user": ""})
    async with one_connection.unscoped() as connection:
        assert await value(connection, "SELECT pg_backend_pid()") != first
        assert await value(connection, TENANT) == ""


@pytest.mark.threat(42)
async def test_a_setting_that_lasts_is_wiped_on_return(one_connection: Database, tenant: Tenant) -> None:
    async with one_connection.unscoped() as connection:
        await connection.execute(
            queries.text("session.enter_connection"), {"tenant": str(tenant.id), "user": str(uuid4())}
        )
    async with one_connection.unscoped() as connection:
        assert await value(connection, TENANT) == ""


async def test_a_connection_that_cannot_be_wiped_is_thrown_away(
    one_connection: Database, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = queries.text
    monkeypatch.setattr(queries, "text", lambda name: "SELECT 1" if name == "session.reset" else text(name))
    async with one_connection.unscoped() as connection:
        first = await value(connection, "SELECT pg_backend_pid()")
        await connection.execute(text("session.enter_connection"), {"tenant": str(tenant.id), "user": ""})
    async with one_connection.unscoped() as connection:
        assert await value(connection, "SELECT pg_backend_pid()") != first
        assert await value(connection, TENANT) == ""


@pytest.mark.threat(41)
async def test_every_connection_of_a_growing_pool_is_scoped(
    database: Database, tenant: Tenant, other_tenant: Tenant
) -> None:
    async def who(tenant_id: UUID) -> bool:
        async with database.transaction(tenant_id) as tx:
            await tx.connection.execute("SELECT pg_sleep(0.01)")
            return await value(tx.connection, TENANT) == str(tenant_id)

    assert all(await asyncio.gather(*(who(t.id) for _ in range(15) for t in (tenant, other_tenant))))


@pytest.mark.threat(43)
@pytest.mark.parametrize("nothing", [None, "", "demo", "3f0c7f9e-0000-4000-8000-000000000000"])
async def test_without_a_tenant_nothing_works(database: Database, nothing: Any) -> None:
    nobody = Principal(nothing, uuid4(), "nobody", Role.ADMIN)
    for call in (
        users.list_all(database, nothing),
        users.by_token(database, nothing, "0" * 64),
        collections.list_visible(database, nobody),
        documents.listing(database, nobody),
        documents.pending(database, nothing),
        search(database, nobody, "leave", None, embedder_id="x"),
        sessions.listing(database, nobody),
    ):
        with pytest.raises(TenantContextMissing):
            await call


@pytest.mark.threat(45)
async def test_a_row_of_another_tenant_can_not_be_written(
    database: Database, tenant: Tenant, other_tenant: Tenant
) -> None:
    with pytest.raises(StorageError) as refused:
        async with database.transaction(tenant.id) as tx:
            await tx.connection.execute(
                "INSERT INTO collections (tenant_id, name) VALUES (%s, 'stolen')", (other_tenant.id,)
            )
    assert isinstance(refused.value.__cause__, errors.InsufficientPrivilege)
    assert "collections" not in refused.value.message


async def test_rows_of_another_tenant_are_neither_seen_nor_changed(
    database: Database, tenant: Tenant, other_tenant: Tenant
) -> None:
    theirs = await collections.ensure(database, other_tenant.id, "theirs")
    async with database.transaction(tenant.id) as tx:
        assert (await tx.connection.execute("UPDATE collections SET name = 'mine'")).rowcount == 0
        assert (await tx.connection.execute("DELETE FROM collections WHERE id = %s", (theirs.id,))).rowcount == 0
    assert (await collections.by_name(database, other_tenant.id, "theirs")).id == theirs.id


@pytest.mark.threat(46)
async def test_two_tenants_may_hold_the_same_names(database: Database, tenant: Tenant, other_tenant: Tenant) -> None:
    for each in (tenant, other_tenant):
        assert (await collections.create(database, each.id, "handbook")).name == "handbook"
        await users.create(database, each.id, "ada", "$hash", Role.ADMIN)


async def test_the_trace_id_reaches_the_server(database: Database, tenant: Tenant) -> None:
    with traced("0123456789abcdef"):
        async with database.transaction(tenant.id) as tx:
            seen = await value(tx.connection, "SELECT current_setting('application_name')")
    assert seen == "intramuros 0123456789abcdef"


@pytest.mark.parametrize("odd", ["nul\x00", "lone \ud800"])
async def test_text_that_cannot_be_stored_is_a_bad_request(database: Database, tenant: Tenant, odd: str) -> None:
    with pytest.raises(InvalidRequest):
        await collections.create(database, tenant.id, odd)


async def test_a_connection_that_the_server_dropped_is_replaced(
    one_connection: Database, fresh: DatabaseUnderTest
) -> None:
    async with one_connection.unscoped() as connection:
        pid = await value(connection, "SELECT pg_backend_pid()")
    with psycopg.connect(fresh.owner_dsn, autocommit=True) as owner:
        owner.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    await one_connection.ping()


async def test_a_connection_is_asked_whether_it_stands_after_a_rest_only(
    one_connection: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    text = queries.text

    def noted(name: str) -> str:
        asked.append(name)
        return text(name)

    async with one_connection.unscoped():
        pass
    monkeypatch.setattr(queries, "text", noted)
    async with one_connection.unscoped():
        assert "session.ping" not in asked
    monkeypatch.setattr(liveness, "REST", -1.0)
    async with one_connection.unscoped():
        assert asked.count("session.ping") == 1


async def test_work_that_cannot_be_committed_is_told(one_connection: Database, tenant: Tenant) -> None:
    with pytest.raises(DatabaseUnavailable):
        async with one_connection.transaction(tenant.id) as tx:
            await tx.run("collections.ensure", name="lost")
            tx.connection.pgconn.finish()


@pytest.mark.threat(49)
async def test_a_search_touches_nothing_of_another_tenant(
    one_connection: Database, tenant: Tenant, other_tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    for each in (tenant, other_tenant):
        await fill(one_connection, each.id, "a.md", ["annual leave", "travel"])
    await flush_counts(one_connection)
    before = touched(fresh, other_tenant)
    assert len(before) > 6
    reader = users.operator(tenant.id)
    for mode in ("hybrid", "vector", "bm25"):
        found = await search(one_connection, reader, "leave", unit(1), embedder_id=EMBEDDER, mode=mode)  # type: ignore[arg-type]
        assert found
    await flush_counts(one_connection)
    assert touched(fresh, other_tenant) == before
    assert sum(touched(fresh, tenant).values()) > sum(before.values())


async def flush_counts(db: Database) -> None:
    """Let others see how often tables were scanned: a process keeps that to itself for up to a minute."""
    async with db.unscoped() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")


def touched(fresh: DatabaseUnderTest, tenant: Tenant) -> dict[str, int]:
    """How often each partition of a tenant was scanned, by whatever way."""
    query = "SELECT relname, seq_scan + coalesce(idx_scan, 0) FROM pg_stat_user_tables WHERE relname LIKE %s"
    with psycopg.connect(fresh.owner_dsn, autocommit=True) as connection:
        return dict(connection.execute(query, (f"%{tenant.id.hex}%",)).fetchall())
