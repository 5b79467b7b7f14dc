"""After a tenant was removed nothing in the whole database holds its id, or a word of what it had."""

from dataclasses import replace
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql

from core.errors import NotFound, StorageError
from core.records import Answer, Citation, Filters, Outcome, Principal, Step, Tenant
from storage import (
    audit,
    collections,
    kept,
    merging,
    runs,
    sessions,
    synonyms,
    tenants,
    tending,
    threads,
    traces,
    users,
)
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.integration.storage.filling import fill
from tests.integration.storage.test_checkpoints import say

CANARY = "zyzzyva"
TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
"""
# The queue's registers of workers and of work that comes back at certain times hold nothing of a tenant's; its events
# name a job by number and go with it.
NEVER_A_TENANTS = {
    "schema_migrations",
    "checkpoint_migrations",
    "procrastinate_workers",
    "procrastinate_periodic_defers",
    "procrastinate_events",
}


def holding(dsn: str, *needles: str) -> dict[str, int]:
    """Tables, partitions too, with how many rows hold one of these texts in any column; names that hold it as well."""
    found = {}
    with psycopg.connect(dsn) as connection:
        for schema, name in connection.execute(sql.SQL(TABLES)).fetchall():
            query = sql.SQL("SELECT count(*) FROM {} t WHERE t::text ILIKE ANY(%s)").format(
                sql.Identifier(schema, name)
            )
            counted = connection.execute(query, ([f"%{needle}%" for needle in needles],)).fetchone()
            if counted is not None and counted[0]:
                found[str(name)] = int(counted[0])
        named = "SELECT relname FROM pg_class WHERE relname ILIKE ANY(%s)"
        rows = connection.execute(named, ([f"%{needle}%" for needle in needles],)).fetchall()
    return {**found, **{str(row[0]): 1 for row in rows}}


async def furnish(database: Database, principal: Principal, fresh: DatabaseUnderTest) -> None:
    """Something in every table that holds what is a tenant's."""
    tenant_id = principal.tenant_id
    texts = [f"{CANARY} {number} common words" for number in range(4)]
    await fill(database, tenant_id, f"{CANARY}.md", texts, suspicious=texts[:1])
    gone = await fill(database, tenant_id, "gone.md", texts[1:2])
    await tending.delete(database, users.operator(tenant_id), gone.id)
    home = await collections.by_name(database, tenant_id, "handbook")
    await collections.grant(database, tenant_id, home.id, f"group:{CANARY}")
    await synonyms.add(database, tenant_id, [CANARY, "weevil"])
    await users.add_token(database, principal, uuid4().hex * 2, CANARY, "api", None)
    session = await sessions.create(database, principal, CANARY)
    answer = Answer(Outcome.REFUSED, CANARY, CANARY, CANARY, "en", (), {}, 1)
    turn = await sessions.add_turn(database, principal, session.id, answer)
    await sessions.feedback(database, principal, turn.id, 1, CANARY)
    run = await runs.begin(database, principal, session.id, CANARY, "auto", checkpointed=True)
    cited = Citation(1, 1, uuid4(), CANARY, CANARY, (), None, CANARY)
    whole = replace(answer, outcome=Outcome.ANSWERED, citations=(cited,))
    key, _ = await kept.find(database, principal, Filters(), (CANARY,))
    assert await kept.keep(database, principal, Filters(), (CANARY,), key, whole)
    await say(database, principal, threads.thread_id(principal, run), CANARY)
    steps = [Step("search", 1, {"query": CANARY})]
    await runs.answered(database, principal, run, session.id, answer, steps, pending=(answer, ["handbook"]))
    await traces.read(database, users.operator(tenant_id), run, CANARY)
    async with database.transaction(tenant_id) as tx:
        await tx.connection.execute("UPDATE lex_stat SET block_size = 2")
    while await merging.merge(database, tenant_id, start=1, tail=1, often=2) is not None:
        pass
    with psycopg.connect(fresh.owner_dsn, options="-c search_path=procrastinate") as connection:
        connection.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, queueing_lock, args) "
            "VALUES (%s, 'process', %s, %s)",
            (str(tenant_id), str(uuid4()), f'{{"tenant": "{tenant_id}"}}'),
        )


def ids(tenant_id: UUID) -> tuple[str, str]:
    return str(tenant_id), tenant_id.hex


async def test_nothing_is_left_in_any_table(
    database: Database, tenant: Tenant, other_tenant: Tenant, principal: Principal, fresh: DatabaseUnderTest
) -> None:
    await furnish(database, principal, fresh)
    with psycopg.connect(fresh.owner_dsn) as connection:
        every = {str(name) for _, name in connection.execute(sql.SQL(TABLES)).fetchall()}
    ours = {name for name in every if other_tenant.id.hex not in name} - NEVER_A_TENANTS
    before = holding(fresh.owner_dsn, *ids(tenant.id), CANARY)
    assert ours - set(before) == set(), "a table is new: furnish it too"
    of_others = holding(fresh.owner_dsn, *ids(other_tenant.id))
    receipt = await tenants.remove(fresh.owner_dsn, "demo")
    assert holding(fresh.owner_dsn, *ids(tenant.id), CANARY) == {}
    assert receipt.counts["procrastinate_jobs"] == 1
    with psycopg.connect(fresh.owner_dsn) as connection:
        assert connection.execute("SELECT * FROM procrastinate.procrastinate_events").fetchall() == []
    assert receipt.counts["checkpoints"] >= 1
    assert receipt.counts["synonyms"] == 2
    assert holding(fresh.owner_dsn, *ids(other_tenant.id)) == of_others
    assert (await audit.listing(database, audit.INSTALLATION, 1))[0].action == "tenant.removed"


@pytest.mark.parametrize(
    "forgotten",
    [
        "CREATE TABLE loot (tenant_id uuid); SELECT protect('loot'); INSERT INTO loot VALUES ('{id}')",
        "CREATE TABLE loot (note text); INSERT INTO loot VALUES ('of {id}')",
        "CREATE TABLE loot_{hex} (note text)",
    ],
)
async def test_where_something_is_forgotten_nothing_is_removed(
    database: Database, tenant: Tenant, fresh: DatabaseUnderTest, forgotten: str
) -> None:
    await fill(database, tenant.id, "a.md", ["one"])
    with psycopg.connect(fresh.owner_dsn, options="-c search_path=intramuros,public") as connection:
        connection.execute("SET ROLE intramuros_owner")
        connection.execute("SELECT set_config('intramuros.tenant', %s, true)", (str(tenant.id),))
        connection.execute(sql.SQL(forgotten.format(id=tenant.id, hex=tenant.id.hex)))
    before = holding(fresh.owner_dsn, *ids(tenant.id))
    with pytest.raises(StorageError, match=r"loot|relations"):
        await tenants.remove(fresh.owner_dsn, "demo")
    assert holding(fresh.owner_dsn, *ids(tenant.id)) == before
    assert await tenants.get(database, "demo") == tenant


async def test_what_is_written_to_a_tenant_that_is_gone_does_not_last(
    database: Database, tenant: Tenant, principal: Principal, fresh: DatabaseUnderTest
) -> None:
    await tenants.remove(fresh.owner_dsn, "demo")
    with pytest.raises((StorageError, NotFound)):
        await sessions.create(database, principal, "late")
    with pytest.raises((StorageError, NotFound)):
        await collections.ensure(database, tenant.id, "late")
    assert holding(fresh.owner_dsn, *ids(tenant.id)) == {}
