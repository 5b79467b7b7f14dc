"""A backup made with PostgreSQL's own programs and restored elsewhere: the same answers behind the same walls."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from core.errors import UnsafeRole
from core.records import Principal, Tenant
from storage import audit, migrations
from storage.database import Database
from storage.embedded import programs
from storage.search import search
from tests.conftest import DatabaseUnderTest, Server
from tests.integration.storage.filling import EMBEDDER, fill
from tests.integration.storage.test_catalogue import breaches

RESTORED = "restored_from_backup"


def run(name: str, *arguments: str) -> None:
    # Beside the programs that the embedded server is made and started with.
    subprocess.run([str(programs()[0].parent / name), *arguments], check=True, capture_output=True)


@pytest.fixture
def empty(postgres: Server) -> Iterator[DatabaseUnderTest]:
    with psycopg.connect(postgres.owner("postgres"), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template0").format(sql.Identifier(RESTORED)))
        yield DatabaseUnderTest(postgres.owner(RESTORED), postgres.app(RESTORED))
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(RESTORED)))


@pytest.mark.threat(109)
async def test_a_restored_backup_has_its_walls(
    database: Database,
    fresh: DatabaseUnderTest,
    tenant: Tenant,
    other_tenant: Tenant,
    principal: Principal,
    empty: DatabaseUnderTest,
    tmp_path: Path,
) -> None:
    for each in (tenant, other_tenant):
        await fill(database, each.id, "a.md", ["annual leave is 25 days", "travel"])
    hits = await search(database, principal, "leave", None, embedder_id=EMBEDDER)
    dump = tmp_path / "dump"
    run("pg_dump", "--format=custom", f"--file={dump}", fresh.owner_dsn)
    run("pg_restore", f"--dbname={empty.owner_dsn}", str(dump))
    assert await migrations.migrate(empty.owner_dsn) == []
    assert breaches(empty.owner_dsn) == set()
    with pytest.raises(UnsafeRole):
        await Database.open(empty.owner_dsn, pool_size=1)
    restored = await Database.open(empty.app_dsn, pool_size=1)
    try:
        assert await search(restored, principal, "leave", None, embedder_id=EMBEDDER) == hits
        assert (await audit.verify(restored, tenant.id)).fault is None
        async with restored.unscoped() as connection:
            cursor = await connection.execute("SELECT count(*) AS n FROM chunks")
            assert await cursor.fetchone() == {"n": 0}
    finally:
        await restored.close()
