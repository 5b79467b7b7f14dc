"""Search through blocks finds what comparing every chunk finds: the same chunks, scores and order."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from psycopg import sql
from psycopg.rows import DictRow
from psycopg.sql import Composed

from core.records import Filters, Hit, Principal, Tenant
from storage import collections, documents, lexical, merging, search, tenants, tending
from storage.database import Database, Transaction
from tests.conftest import DatabaseUnderTest
from tests.integration.storage.filling import EMBEDDER, fill, unit

BLOCK = 64
OFTEN = 8
WORDS = [f"word{n}" for n in range(60)]
# Common words alone, a rare one among them, rare ones alone, one that nothing holds.
QUERIES = ["word0 word1", "word0 word1 word2 word3 word59", "word40 word55", "word7 unheard", "word0 word0 word5"]
ALL = 10**9


@pytest.fixture
async def blocks(database: Database, tenant: Tenant) -> None:
    """Blocks of a few chunks."""
    async with database.transaction(tenant.id) as tx:
        await tx.connection.execute("UPDATE lex_stat SET block_size = %s", (BLOCK,))


def passages(seed: int, count: int) -> list[str]:
    """Texts of words that are the rarer the higher their number."""
    chance = random.Random(seed)
    weights = [1 / (n + 1) for n in range(len(WORDS))]
    return [" ".join(chance.choices(WORDS, weights, k=chance.randint(4, 16))) for _ in range(count)]


async def merge(db: Database, tenant: Tenant, *, tail: int = 1) -> list[merging.Merged]:
    made = []
    while (one := await merging.merge(db, tenant.id, start=1, tail=tail, often=OFTEN)) is not None:
        made.append(one)
    return made


async def find(
    db: Database, reader: Principal, query: str, monkeypatch: pytest.MonkeyPatch, exact_below: int, **options: object
) -> list[Hit]:
    options = {"vector": unit(1), "limit": 200, "mode": "bm25", **options}
    with monkeypatch.context() as patched:
        patched.setattr(search, "EXACT_BELOW", exact_below)
        return await search.search(db, reader, query, embedder_id=EMBEDDER, **options)  # type: ignore[arg-type]


async def same(
    db: Database,
    reader: Principal,
    monkeypatch: pytest.MonkeyPatch,
    queries: Sequence[str] = QUERIES,
    **options: object,
) -> list[Hit]:
    """Assert that both ways find the same; the last query's hits."""
    hits: list[Hit] = []
    for query in queries:
        exact = await find(db, reader, query, monkeypatch, ALL, **options)
        hits = await find(db, reader, query, monkeypatch, 0, **options)
        assert [(hit.chunk_id, hit.scores) for hit in hits] == [(hit.chunk_id, hit.scores) for hit in exact]
        assert hits
    return hits


async def found_by(query: str, db: Database, reader: Principal, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The words of a query by which its chunks are found, the rarest first."""
    names = {lexical.term_number(term): term for term in lexical.query_weights(query)}
    seen: list[list[int]] = []
    rows = search._rows

    async def watched(tx: Transaction, name: str, asked: search._Query, **more: Any) -> list[DictRow]:
        if name == "search.indexed":
            seen.append(more["terms"])
        return await rows(tx, name, asked, **more)

    with monkeypatch.context() as patched:
        patched.setattr(search, "_rows", watched)
        await find(db, reader, query, monkeypatch, 0)
    return [names[number] for number in seen[0]]


async def uses_blocks(db: Database, reader: Principal, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a search by meaning and words went through the indexes."""
    with monkeypatch.context() as patched:
        patched.setattr(search, "EXACT_BELOW", 1)
        found = await search.explain(db, reader, QUERIES[0], unit(1), embedder_id=EMBEDDER)
    return not found.exact


async def test_blocks_find_what_a_scan_finds_through_all_that_changes(
    database: Database, tenant: Tenant, admin: Principal, principal: Principal, blocks: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    made = [
        await fill(database, tenant.id, f"{n}.md", passages(n, 50), collection=("one", "two")[n % 2]) for n in range(6)
    ]
    assert [one.chunks for one in await merge(database, tenant)] == [63, 64, 64, 64, 45]
    assert await uses_blocks(database, principal, monkeypatch)
    await same(database, principal, monkeypatch)

    # A tail behind the blocks, and terms that pass from lists to blocks when it is merged.
    await fill(database, tenant.id, "tail.md", [*passages(20, 30), *["word59 word58"] * 30])
    await same(database, principal, monkeypatch)
    assert await merge(database, tenant, tail=1000) == []
    assert [one.block for one in await merge(database, tenant)] == [4, 5]
    await same(database, principal, monkeypatch)

    # Chunks that go, chunks that are retired and come back, a whole document that goes.
    await fill(database, tenant.id, "0.md", passages(30, 50), collection="one")
    await same(database, principal, monkeypatch)
    await fill(database, tenant.id, "0.md", passages(0, 50), collection="one")
    await same(database, principal, monkeypatch)
    await tending.delete(database, admin, made[1].id)
    await same(database, principal, monkeypatch)
    rebuilt = await merge(database, tenant)
    assert {one.block for one in rebuilt} >= {0, 1}
    await same(database, principal, monkeypatch)

    # Rights.
    await collections.revoke(database, tenant.id, made[0].collection_id, "everyone")
    hits = await same(database, principal, monkeypatch)
    assert "one" not in {hit.collection for hit in hits}
    await same(database, admin, monkeypatch)


async def test_a_released_passage_is_found_before_and_after_its_block_is_built_anew(
    database: Database, tenant: Tenant, admin: Principal, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*passages(1, 40), "word1 word2 obey", *passages(2, 60)]
    document = await fill(database, tenant.id, "a.md", texts, suspicious=["word1 word2 obey"])
    await merge(database, tenant)
    assert await find(database, admin, "obey", monkeypatch, 0) == []
    await tending.release(database, admin, document.id)
    await same(database, admin, monkeypatch, ["obey", *QUERIES])
    assert [one.block for one in await merge(database, tenant)] == [0]
    await same(database, admin, monkeypatch, ["obey", *QUERIES])
    assert await merge(database, tenant) == []


async def test_a_block_that_is_full_to_the_last_chunk_leaves_no_empty_one(
    database: Database, tenant: Tenant, principal: Principal, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(database, tenant.id, "a.md", passages(1, 2 * BLOCK - 1))
    assert [one.chunks for one in await merge(database, tenant)] == [BLOCK - 1, BLOCK]
    await same(database, principal, monkeypatch)


async def test_blocks_are_built_anew_once_chunks_were_weighed_anew(
    database: Database, tenant: Tenant, principal: Principal, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(database, tenant.id, "a.md", passages(1, 100))
    await merge(database, tenant)
    await fill(database, tenant.id, "b.md", [" ".join(passages(n, 30)) for n in range(40)])
    assert [one.block for one in await merge(database, tenant)] == [0, 1, 1, 2]
    await same(database, principal, monkeypatch)


async def test_numbers_that_count_twice_are_summed_twice(
    database: Database, tenant: Tenant, principal: Principal, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{text} 42" if n % 3 == 0 else text for n, text in enumerate(passages(1, 200))]
    await fill(database, tenant.id, "a.md", texts)
    await merge(database, tenant)
    await same(database, principal, monkeypatch, ["word0 42", "42", "word3 word40 42 word1"])


async def test_the_lightest_words_score_what_the_others_find(
    database: Database, tenant: Tenant, principal: Principal, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [
        "everywhere." + " alder." * (n % 6 == 0) + " birch." * (n % 10 == 0) + f" word{n % 7}." * (n % 9)
        for n in range(200)
    ]
    await fill(database, tenant.id, "a.md", texts)
    await merge(database, tenant)
    query = "everywhere alder birch"
    exact = await find(database, principal, query, monkeypatch, ALL)
    assert await found_by(query, database, principal, monkeypatch) == ["birch", "alder", "everywher"]
    monkeypatch.setattr(search, "DEPTH", 5)
    monkeypatch.setattr(search, "ENOUGH", 1)
    assert await found_by(query, database, principal, monkeypatch) == ["birch", "alder"]
    hits = await find(database, principal, query, monkeypatch, 0, limit=5)
    assert [(hit.chunk_id, hit.scores.bm25) for hit in hits] == [(hit.chunk_id, hit.scores.bm25) for hit in exact[:5]]


async def test_a_chunk_of_the_lightest_word_alone_is_found_where_nothing_else_is_left(
    database: Database, tenant: Tenant, principal: Principal, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(database, tenant.id, "a.md", ["everywhere. birch."] * 100)
    alone = await fill(database, tenant.id, "b.md", ["everywhere."])
    await merge(database, tenant)
    monkeypatch.setattr(search, "ENOUGH", 0)
    monkeypatch.setattr(search, "MOST_FINDING", 1)
    query, filters = "everywhere birch", Filters(documents=(alone.id,))
    assert await found_by(query, database, principal, monkeypatch) == ["birch"]
    for mode in ("bm25", "hybrid"):
        hits = await find(database, principal, query, monkeypatch, 0, filters=filters, mode=mode)
        assert [(hit.document_id, hit.scores.bm25 is not None) for hit in hits] == [(alone.id, True)]


async def test_filters_hold_in_both_ways(
    database: Database, tenant: Tenant, principal: Principal, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await fill(database, tenant.id, "a.md", passages(1, 150), collection="one")
    await fill(database, tenant.id, "b.md", passages(2, 150), collection="two")
    await fill(database, tenant.id, "c.md", [f"{text} 年假" for text in passages(3, 20)], collection="two")
    await merge(database, tenant)
    for filters in (
        Filters(collections=("two",)), Filters(documents=(one.id,)), Filters(languages=("en",)),
        Filters(media_types=(one.media_type,)), Filters(collections=("one", "two"), documents=(one.id,)),
    ):  # fmt: skip
        hits = await same(database, principal, monkeypatch, filters=filters)
        assert filters.documents is None or {hit.document_id for hit in hits} == {one.id}
        assert filters.collections is None or {hit.collection for hit in hits} <= set(filters.collections)
    for filters in (Filters(documents=()), Filters(media_types=("none/such",)), Filters(collections=("three",))):
        assert await find(database, principal, "word0", monkeypatch, 0, filters=filters) == []


async def test_one_of_a_thousand_alike_is_found_by_who_may_read_only_it(
    database: Database, tenant: Tenant, principal: Principal, blocks: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = np.tile(unit(1), (1000, 1))
    secret = await fill(database, tenant.id, "secret.md", ["word0 word1"] * 1000, collection="board", vectors=near)
    await collections.revoke(database, tenant.id, secret.collection_id, "everyone")
    open_one = await fill(database, tenant.id, "open.md", ["word0 word1 word2 word3"], vectors=near[:1])
    await merge(database, tenant)
    assert await documents.ensure_index(database, tenant.id, threshold=1)
    for mode in ("hybrid", "vector", "bm25"):
        hits = await find(database, principal, "word0 word1", monkeypatch, 0, mode=mode)
        assert [hit.document_id for hit in hits] == [open_one.id]


async def test_a_tenant_that_goes_takes_its_blocks_along(
    database: Database, tenant: Tenant, other_tenant: Tenant, principal: Principal, fresh: DatabaseUnderTest,
    blocks: None, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    await fill(database, tenant.id, "a.md", passages(1, 100))
    await merge(database, tenant)
    await tenants.remove(fresh.owner_dsn, other_tenant.slug)
    await same(database, principal, monkeypatch)
    await tenants.remove(fresh.owner_dsn, tenant.slug)
    async with database.unscoped() as connection:
        cursor = await connection.execute(
            "SELECT relname FROM pg_class WHERE relname LIKE %s", (f"lex%{tenant.id.hex}",)
        )
        assert await cursor.fetchall() == []


async def test_small_tenants_are_not_merged(database: Database, tenant: Tenant) -> None:
    await fill(database, tenant.id, "a.md", passages(1, 10))
    assert await merging.merge(database, tenant.id, tail=1) is None


async def test_only_partitions_of_the_tenant_are_touched(
    database: Database, tenant: Tenant, other_tenant: Tenant, principal: Principal, blocks: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """By the plans of the statements, and by what the transaction has locked, inside functions too."""
    for one in (tenant, other_tenant):
        await fill(database, one.id, "a.md", passages(1, 200))
        await merge(database, one)
    seen: list[str] = []
    rows_of = Transaction.rows_of

    async def watched(tx: Transaction, query: Composed, /, **params: object) -> list[DictRow]:
        rows = await rows_of(tx, query, **params)
        plan = await rows_of(tx, sql.SQL("EXPLAIN (COSTS OFF) ") + query, **params)
        locks = await tx.connection.execute("SELECT relation::regclass::text AS name FROM pg_locks WHERE pid = %s",
                                            (tx.connection.info.backend_pid,))  # fmt: skip
        seen.extend(row["QUERY PLAN"] for row in plan)
        seen.extend(row["name"] or "" for row in await locks.fetchall())
        return rows

    monkeypatch.setattr(Transaction, "rows_of", watched)
    for exact_below in (ALL, 0):
        await find(database, principal, "word0 word40", monkeypatch, exact_below, mode="hybrid")
    told = "\n".join(seen)
    for parent in (*tenants.PARTITIONED, "lex_doc"):
        assert f"{parent}_{tenant.id.hex}" in told
    assert "Function Scan on lex_dense" in told
    assert other_tenant.id.hex not in told
