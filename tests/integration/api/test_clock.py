"""The clock of the machine jumps by ten years, either way: log-ins end, nothing lasts longer, all else goes on."""

import psycopg
import pytest
from psycopg import sql

from storage import audit
from tests.conftest import DatabaseUnderTest
from tests.integration.api.conftest import PASSWORD, Site

MOMENTS = """
SELECT c.relname, a.attname FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'intramuros' AND c.relkind = 'r' AND a.atttypid = 'timestamptz'::regtype AND a.attnum > 0
  AND c.relname NOT IN ('audit', 'schema_migrations')
"""


def jump(fresh: DatabaseUnderTest, years: int) -> None:
    """Let the clock jump: every moment that was written down moves the other way."""
    with psycopg.connect(fresh.owner_dsn, options="-c search_path=intramuros,public") as connection:
        moments = connection.execute(sql.SQL(MOMENTS)).fetchall()
        assert ("tokens", "expires_at") in moments
        for table, column in moments:
            moved = sql.SQL("UPDATE {table} SET {column} = {column} - make_interval(years => %s)")
            connection.execute(moved.format(table=sql.Identifier(table), column=sql.Identifier(column)), (years,))


@pytest.mark.threat(110)
@pytest.mark.parametrize("years", [10, -10])
async def test_after_a_jump_one_logs_in_again_and_finds_all(site: Site, fresh: DatabaseUnderTest, years: int) -> None:
    log_in = {"name": "admin", "password": PASSWORD}
    async with site.client() as client, site.client(site.demo.tokens["admin"]) as with_token:
        assert (await client.post("/v1/login", json=log_in)).status_code == 200
        assert (await client.get("/v1/me")).status_code == 200
        found = await with_token.post("/v1/search", json={"query": "hotel"})
        jump(fresh, years)
        # Ahead: it has ended. Back: it would last for ten years more, and ends too.
        assert (await client.get("/v1/me")).status_code == 401
        assert (await client.post("/v1/login", json=log_in)).status_code == 200
        assert (await client.get("/v1/me")).status_code == 200
        # A token without an end, made by an administrator, is no matter of time.
        assert (await with_token.get("/v1/me")).status_code == 200
        again = await with_token.post("/v1/search", json={"query": "hotel"})
        assert [hit["chunk_id"] for hit in again.json()["hits"]] == [hit["chunk_id"] for hit in found.json()["hits"]]
        assert found.json()["hits"]
    assert (await audit.verify(site.runtime.db, site.demo.tenant.id)).fault is None


@pytest.mark.threat(110)
@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Shanghai", "Pacific/Kiritimati"])
async def test_a_log_in_lasts_as_long_in_every_zone(site: Site, fresh: DatabaseUnderTest, zone: str) -> None:
    with psycopg.connect(fresh.owner_dsn, autocommit=True) as connection:
        database = sql.Identifier(connection.info.dbname)
        connection.execute(sql.SQL("ALTER DATABASE {} SET timezone = {}").format(database, sql.Literal(zone)))
    async with site.client() as client:
        await client.post("/v1/login", json={"name": "admin", "password": PASSWORD})
    with psycopg.connect(fresh.owner_dsn, options="-c search_path=intramuros,public") as connection:
        connection.execute("SELECT set_config('intramuros.tenant', %s, true)", (str(site.demo.tenant.id),))
        lasting = "SELECT extract(epoch FROM expires_at - created_at)::int FROM tokens WHERE kind = 'cookie'"
        assert connection.execute(lasting).fetchall() == [(12 * 3600,)]
