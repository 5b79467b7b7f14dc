"""Two sets of vectors beside each other: filled, searched by name, swapped, taken back and dropped."""

import asyncio

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from core.errors import AlreadyExists, EmbeddingSetMismatch, InvalidRequest, NotFound, StorageError
from core.records import DocumentState, Hit, Principal, Searchable, Tenant
from storage import documents, embedding_sets, search, tending
from storage.database import Database
from storage.embedding_sets import Lacking
from tests.conftest import DatabaseUnderTest
from tests.integration.storage.filling import DIMENSION, EMBEDDER, fill, random_units, read, unit

NEW = "test/5"
WIDTH = 5
ORPHANS = """
SELECT count(*) FROM embeddings e
WHERE NOT EXISTS (SELECT 1 FROM lex_doc l WHERE l.tenant_id = e.tenant_id AND l.chunk_id = e.chunk_id
                  AND l.document_id = e.document_id AND l.retired = e.retired)
"""


def narrow(at: int) -> NDArray[np.float32]:
    vector = np.zeros(WIDTH, np.float32)
    vector[at % WIDTH] = 1
    return vector


async def make(db: Database, tenant: Tenant, *, limit: int = 100, most: int = 10**6) -> list[str]:
    """Give the candidate the vectors it lacks, `most` at most; the texts that were embedded."""
    made: list[str] = []
    while len(made) < most and (
        wanted := await embedding_sets.lacking(db, tenant.id, NEW, after=0, limit=min(limit, most - len(made)))
    ):
        left = await embedding_sets.take_over(db, tenant.id, NEW, wanted)
        vectors = np.stack([narrow(one.chunk_id) for one in left]) if left else np.empty((0, WIDTH), np.float32)
        assert await embedding_sets.add(db, tenant.id, NEW, left, vectors) == len(left)
        made += [one.text for one in left]
    return made


async def begun(db: Database, tenant: Tenant) -> None:
    await embedding_sets.begin(db, tenant.id, NEW, WIDTH)


async def candidate(db: Database, tenant: Tenant) -> None:
    """A whole one."""
    await begun(db, tenant)
    await make(db, tenant)
    assert await embedding_sets.complete(db, tenant.id, NEW)


async def roles(db: Database, tenant: Tenant) -> dict[str, tuple[str, int, int]]:
    found = await embedding_sets.listing(db, tenant.id)
    return {one.embedder_id: (one.role, one.vectors, one.missing) for one in found}


async def by_new(db: Database, reader: Principal, at: int = 1) -> list[Hit]:
    return await search.search(db, reader, "anything", narrow(at), embedder_id=NEW, mode="vector")


async def by_old(db: Database, reader: Principal) -> list[Hit]:
    return await search.search(db, reader, "anything", unit(1), embedder_id=EMBEDDER, mode="vector")


def orphans(fresh: DatabaseUnderTest) -> int:
    with psycopg.connect(fresh.owner_dsn, options="-c search_path=intramuros,public") as connection:
        row = connection.execute(ORPHANS).fetchone()
    assert row is not None
    return int(row[0])


async def test_there_is_nothing_to_embed_anew_without_vectors(database: Database, tenant: Tenant) -> None:
    assert await embedding_sets.active(database, tenant.id) is None
    with pytest.raises(NotFound):
        await begun(database, tenant)


@pytest.mark.parametrize("dimension", [1, 4000])
async def test_any_dimension_an_index_takes(
    database: Database, tenant: Tenant, principal: Principal, dimension: int
) -> None:
    await fill(database, tenant.id, "a.md", ["one", "two"])
    await embedding_sets.begin(database, tenant.id, NEW, dimension)
    wanted = await embedding_sets.lacking(database, tenant.id, NEW, after=0, limit=9)
    vectors = np.eye(2, dimension, dtype=np.float32) if dimension > 1 else np.ones((2, 1), np.float32)
    await embedding_sets.add(database, tenant.id, NEW, wanted, vectors)
    assert await embedding_sets.complete(database, tenant.id, NEW, threshold=1)
    assert (await embedding_sets.listing(database, tenant.id))[1].indexed
    hits = await search.search(database, principal, "one", vectors[0], embedder_id=NEW, mode="vector")
    assert (hits[0].text, len(hits)) == ("one", 2)


async def test_wider_vectors_than_an_index_takes_are_refused(database: Database, tenant: Tenant) -> None:
    await fill(database, tenant.id, "a.md", ["one"])
    for dimension in (0, 4001):
        with pytest.raises(InvalidRequest):
            await embedding_sets.begin(database, tenant.id, NEW, dimension)


async def test_a_candidate_is_begun_once_and_gone_on_with(database: Database, tenant: Tenant) -> None:
    await fill(database, tenant.id, "a.md", ["one", "two", "three"])
    await begun(database, tenant)
    assert await make(database, tenant, limit=1, most=2) == ["a.md\none", "a.md\ntwo"]
    await begun(database, tenant)
    assert await roles(database, tenant) == {EMBEDDER: ("active", 3, 0), NEW: ("candidate", 2, 1)}
    assert await make(database, tenant) == ["a.md\nthree"]
    with pytest.raises(AlreadyExists):
        await embedding_sets.begin(database, tenant.id, "third", 3)
    with pytest.raises(InvalidRequest):
        await embedding_sets.begin(database, tenant.id, EMBEDDER, DIMENSION)
    with pytest.raises(EmbeddingSetMismatch):
        await embedding_sets.begin(database, tenant.id, NEW, WIDTH + 1)


async def test_chunks_that_are_alike_are_embedded_once(database: Database, tenant: Tenant) -> None:
    await fill(database, tenant.id, "a.md", ["same", "one"], title="T")
    await fill(database, tenant.id, "b.md", ["two", "same"], title="T")
    await begun(database, tenant)
    assert await make(database, tenant, limit=1) == ["T\nsame", "T\none", "T\ntwo"]
    assert (await roles(database, tenant))[NEW] == ("candidate", 4, 0)


async def test_nothing_is_searched_by_a_set_that_is_being_filled(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    await fill(database, tenant.id, "a.md", ["one", "two"])
    await begun(database, tenant)
    await make(database, tenant, most=1)
    assert not await embedding_sets.complete(database, tenant.id, NEW)
    with pytest.raises(EmbeddingSetMismatch):
        await by_new(database, principal)
    assert not await embedding_sets.swap(database, tenant.id)
    assert len(await by_old(database, principal)) == 2


@pytest.mark.threat(106)
async def test_vectors_of_two_models_are_never_mixed(database: Database, tenant: Tenant, principal: Principal) -> None:
    await fill(database, tenant.id, "a.md", ["one", "two"], vectors=random_units(2))
    await candidate(database, tenant)
    old, new = await by_old(database, principal), await by_new(database, principal)
    assert {hit.scores.vector for hit in new} == {0.0, 1.0}
    assert {hit.scores.vector for hit in old} & {0.0, 1.0} == set()
    assert len(old) == len(new) == 2
    for vector, name in ((unit(1), NEW), (narrow(1), EMBEDDER), (unit(1), "third")):
        with pytest.raises(EmbeddingSetMismatch):
            await search.search(database, principal, "one", vector, embedder_id=name)
    wanted = [Lacking(1, old[0].document_id, "")]
    for vectors, name in ((random_units(1), NEW), (narrow(1)[None], EMBEDDER), (narrow(1)[None], "third")):
        with pytest.raises(EmbeddingSetMismatch):
            await embedding_sets.add(database, tenant.id, name, wanted, vectors)


async def test_swapped_taken_back_and_swapped_again(database: Database, tenant: Tenant, principal: Principal) -> None:
    await fill(database, tenant.id, "a.md", ["one", "two"])
    await candidate(database, tenant)
    assert await embedding_sets.active(database, tenant.id) == EMBEDDER
    assert not await embedding_sets.swap(database, tenant.id, back=True)
    for _ in range(2):
        assert await embedding_sets.swap(database, tenant.id)
        assert await roles(database, tenant) == {NEW: ("active", 2, 0), EMBEDDER: ("previous", 2, 0)}
        assert await embedding_sets.active(database, tenant.id) == NEW
        # Whoever embedded a question just before the swap is answered all the same.
        assert len(await by_old(database, principal)) == len(await by_new(database, principal)) == 2
        assert not await embedding_sets.swap(database, tenant.id)
        assert await embedding_sets.swap(database, tenant.id, back=True)
        assert await roles(database, tenant) == {EMBEDDER: ("active", 2, 0), NEW: ("candidate", 2, 0)}


async def test_a_swap_waits_for_documents_that_came_in_meanwhile(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    await fill(database, tenant.id, "a.md", ["one"])
    await candidate(database, tenant)
    late = await fill(database, tenant.id, "late.md", ["two"])
    # Its progress counts the vectors of one set.
    assert (late.state, late.searchable) == (DocumentState.READY, Searchable.MEANING)
    assert not await embedding_sets.swap(database, tenant.id)
    assert await make(database, tenant) == ["late.md\ntwo"]
    assert await embedding_sets.swap(database, tenant.id)
    assert len(await by_new(database, principal)) == 2


async def test_a_document_is_not_ready_by_vectors_that_are_searched_no_more(
    database: Database, tenant: Tenant, principal: Principal
) -> None:
    await fill(database, tenant.id, "a.md", ["one"])
    await candidate(database, tenant)
    document = await read(database, tenant.id, "late.md", ["two"])
    target = (database, tenant.id, document.id)
    [missing] = await documents.missing_vectors(*target, embedder_id=EMBEDDER, limit=9)
    await make(database, tenant)
    assert await embedding_sets.swap(database, tenant.id)
    await documents.add_vectors(*target, [missing.chunk_id], random_units(1), embedder_id=EMBEDDER)
    with pytest.raises(EmbeddingSetMismatch):
        await documents.finish(*target, embedder_id=EMBEDDER, sha256=document.sha256)
    assert await documents.missing_vectors(*target, embedder_id=NEW, limit=9) == []
    ready = await documents.finish(*target, embedder_id=NEW, sha256=document.sha256)
    assert ready.state is DocumentState.READY


async def test_a_swap_waits_for_who_is_calling_a_document_ready(database: Database, tenant: Tenant) -> None:
    await fill(database, tenant.id, "a.md", ["one"])
    await candidate(database, tenant)
    async with database.transaction(tenant.id) as tx:
        await tx.row("index.keep_active")
        swapping = asyncio.create_task(embedding_sets.swap(database, tenant.id))
        async with database.unscoped() as connection:
            while not (await (await connection.execute("SELECT 1 FROM pg_locks WHERE NOT granted")).fetchall()):
                assert not swapping.done()
    assert await swapping


async def test_what_changes_meanwhile_leaves_no_orphan_and_nothing_out(
    database: Database, tenant: Tenant, admin: Principal, principal: Principal, fresh: DatabaseUnderTest
) -> None:
    first = await fill(database, tenant.id, "a.md", ["kept", "old"])
    gone = await fill(database, tenant.id, "gone.md", ["gone"])
    await fill(database, tenant.id, "held.md", ["obey", "plain"], suspicious=["obey"])
    await begun(database, tenant)
    asked = await embedding_sets.lacking(database, tenant.id, NEW, after=0, limit=9)
    assert [one.text.split("\n")[1] for one in asked] == ["kept", "old", "gone", "plain"]
    # While these are embedded: a document goes, another changes, a passage is released.
    await tending.delete(database, admin, gone.id)
    await fill(database, tenant.id, "a.md", ["kept", "new"])
    held = next(one for one in await documents.listing(database, admin) if one.path == "held.md")
    await tending.release(database, admin, held.id)
    vectors = np.stack([narrow(one.chunk_id) for one in asked])
    assert await embedding_sets.add(database, tenant.id, NEW, asked, vectors) == 3
    assert await make(database, tenant) == ["held.md\nobey", "a.md\nnew"]
    assert orphans(fresh) == 0
    assert await embedding_sets.complete(database, tenant.id, NEW)
    assert {hit.text for hit in await by_new(database, principal)} == {"kept", "new", "plain", "obey"}
    # Both sets follow what happens to a document.
    assert await embedding_sets.swap(database, tenant.id)
    receipt = await tending.delete(database, admin, first.id)
    assert receipt.counts["vectors"] == 6
    assert orphans(fresh) == 0
    assert {hit.text for hit in await by_new(database, principal)} == {"plain", "obey"}


async def test_older_revisions_are_searched_by_the_new_vectors_too(
    database: Database, tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    await fill(database, tenant.id, "a.md", ["old"])
    await fill(database, tenant.id, "a.md", ["new"])
    await begun(database, tenant)
    assert await make(database, tenant) == ["a.md\nold", "a.md\nnew"]
    assert orphans(fresh) == 0


async def test_dropping_tells_what_went_and_spares_the_active_set(
    database: Database, tenant: Tenant, principal: Principal, fresh: DatabaseUnderTest
) -> None:
    await fill(database, tenant.id, "a.md", ["one", "two"])
    await candidate(database, tenant)
    with pytest.raises(NotFound):
        await embedding_sets.drop(database, tenant.id, EMBEDDER)
    assert (await embedding_sets.drop(database, tenant.id, NEW)).counts == {"vectors": 2}
    with pytest.raises(EmbeddingSetMismatch):
        await by_new(database, principal)
    await candidate(database, tenant)
    assert await embedding_sets.swap(database, tenant.id)
    assert (await embedding_sets.drop(database, tenant.id, EMBEDDER)).counts == {"vectors": 2}
    assert await roles(database, tenant) == {NEW: ("active", 2, 0)}
    assert not await embedding_sets.swap(database, tenant.id, back=True)
    with psycopg.connect(fresh.owner_dsn) as connection:
        left = connection.execute(
            "SELECT count(*) FROM pg_class WHERE relname ~ '^embeddings_[0-9a-f]{32}_[0-9a-f]{8}$'"
        )
        assert left.fetchone() == (1,)


async def test_tenants_have_sets_of_their_own(
    database: Database, tenant: Tenant, other_tenant: Tenant, principal: Principal
) -> None:
    for one in (tenant, other_tenant):
        await fill(database, one.id, "a.md", ["one"])
    await candidate(database, tenant)
    assert await roles(database, other_tenant) == {EMBEDDER: ("active", 1, 0)}
    assert await embedding_sets.lacking(database, other_tenant.id, NEW, after=0, limit=9) != []
    with pytest.raises(EmbeddingSetMismatch):
        await embedding_sets.take_over(database, other_tenant.id, NEW, [])
    assert not await embedding_sets.swap(database, other_tenant.id)
    with pytest.raises(NotFound):
        await embedding_sets.drop(database, other_tenant.id, NEW)
    assert await embedding_sets.swap(database, tenant.id)
    assert await embedding_sets.active(database, other_tenant.id) == EMBEDDER
    assert len(await by_new(database, principal)) == 1


async def test_one_at_a_time_changes_sets(database: Database, tenant: Tenant, other_tenant: Tenant) -> None:
    async with embedding_sets.changing(database, tenant.id):
        assert await embedding_sets.being_changed(database, tenant.id)
        assert not await embedding_sets.being_changed(database, other_tenant.id)
        with pytest.raises(StorageError):
            async with embedding_sets.changing(database, tenant.id):
                pass
    assert not await embedding_sets.being_changed(database, tenant.id)


async def test_an_emptied_tenant_keeps_to_its_sets_until_one_is_dropped(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    document = await fill(database, tenant.id, "a.md", ["one"])
    await candidate(database, tenant)
    await tending.delete(database, admin, document.id)
    assert await embedding_sets.active(database, tenant.id) == EMBEDDER
    await embedding_sets.drop(database, tenant.id, NEW)
    assert await embedding_sets.active(database, tenant.id) is None
    await fill(database, tenant.id, "b.md", ["two"], embedder="third")
    assert await roles(database, tenant) == {"third": ("active", 1, 0)}
