"""Tenants come with their partitions and go with everything in them."""

import psycopg
import pytest

from core.errors import AlreadyExists, InvalidRequest, NotFound
from core.records import Principal, Tenant
from storage import documents, tenants
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.integration.storage.filling import fill

PARTITIONS = "SELECT count(*) FROM pg_class WHERE relispartition AND relkind IN ('r', 'p')"


def count(dsn: str, query: str) -> int:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


async def test_a_tenant_is_found_by_its_short_name_only(database: Database, tenant: Tenant) -> None:
    assert await tenants.get(database, "demo") == tenant
    with pytest.raises(NotFound, match="nobody"):
        await tenants.get(database, "nobody")


async def test_a_short_name_is_given_once_and_is_well_formed(fresh: DatabaseUnderTest, tenant: Tenant) -> None:
    with pytest.raises(AlreadyExists, match="demo"):
        await tenants.create(fresh.owner_dsn, "demo", "Another")
    for odd in ("Demo", "de mo", "", "a" * 41, "'; drop"):
        with pytest.raises(InvalidRequest):
            await tenants.create(fresh.owner_dsn, odd, "Odd")
    assert await tenants.list_all(fresh.owner_dsn) == [tenant]


async def test_removing_a_tenant_leaves_the_others_whole(
    database: Database, tenant: Tenant, other_tenant: Tenant, admin: Principal, fresh: DatabaseUnderTest
) -> None:
    await fill(database, tenant.id, "a.md", ["one", "two"])
    kept = await fill(database, other_tenant.id, "a.md", ["one"])
    receipt = await tenants.remove(fresh.owner_dsn, "demo")
    expected = {
        "tenants": 1,
        "users": 2,
        "collections": 1,
        "documents": 1,
        "revisions": 1,
        "chunks": 2,
        "placements": 2,
        "embeddings": 2,
        "lex_doc": 2,
        "audit": 4,
    }
    assert {table: receipt.counts.get(table) for table in expected} == expected
    assert "sessions" not in receipt.counts
    assert await tenants.list_all(fresh.owner_dsn) == [other_tenant]
    assert (await documents.pending(database, other_tenant.id)) == []
    assert kept.chunks == 1
    assert count(fresh.owner_dsn, PARTITIONS + f" AND relname LIKE '%{tenant.id.hex}%'") == 0
    assert count(fresh.owner_dsn, PARTITIONS + f" AND relname LIKE '%{other_tenant.id.hex}%'") == 8


async def test_removing_twice_says_so(fresh: DatabaseUnderTest, tenant: Tenant) -> None:
    await tenants.remove(fresh.owner_dsn, "demo")
    with pytest.raises(NotFound):
        await tenants.remove(fresh.owner_dsn, "demo")
