"""Documents: registered once, searchable whole or not at all, gone without a trace."""

from dataclasses import replace
from uuid import uuid4

import numpy as np
import psycopg
import pytest

from core.errors import AlreadyExists, EmbeddingSetMismatch, Forbidden, NotFound, StorageError
from core.records import Box, Chunk, DocumentState, ParsedDocument, Principal, Tenant
from storage import collections, documents, indexing, lexical
from storage.database import Database
from storage.search import search
from tests.conftest import DatabaseUnderTest
from tests.integration.storage.filling import DIMENSION, EMBEDDER, chunks_of, fill, random_units, register

TEXTS = ["Annual leave is 25 days.", "Form HR-12 asks for leave.", "年假为二十五天，另见《差旅-03》。"]
LEFT_OVER = """
SELECT (SELECT count(*) FROM intramuros.chunks) AS chunks, (SELECT count(*) FROM intramuros.embeddings) AS vectors,
       (SELECT count(*) FROM intramuros.lex_doc) AS words, (SELECT count(*) FROM intramuros.lex_term) AS terms,
       s.n, s.text_sum, s.title_sum, s.headings_sum, s.next_chunk
FROM intramuros.lex_stat s WHERE s.tenant_id = %s
"""


def state(fresh: DatabaseUnderTest, tenant: Tenant) -> dict[str, int]:
    """Row counts and statistics, read as a superuser, whom no row security keeps from seeing left-overs."""
    with psycopg.connect(fresh.owner_dsn, row_factory=psycopg.rows.dict_row) as connection:
        row = connection.execute(LEFT_OVER, (tenant.id,)).fetchone()
    assert row is not None
    return row


def postings(fresh: DatabaseUnderTest, tenant: Tenant) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Term -> chunks, once from the counts and once from the chunks' own vectors."""
    with psycopg.connect(fresh.owner_dsn) as connection:
        counted = connection.execute(
            "SELECT term, df, docs FROM intramuros.lex_term WHERE tenant_id = %s", (tenant.id,)
        ).fetchall()
        rows = connection.execute("SELECT chunk_id, w::text FROM intramuros.lex_doc").fetchall()
    assert all(df == len(docs) for _, df, docs in counted)
    true: dict[int, list[int]] = {}
    for chunk_id, w in sorted(rows):
        for pair in w.strip("{}").split("}")[0].split(","):
            true.setdefault(int(pair.split(":")[0]), []).append(chunk_id)
    return {term: docs for term, _, docs in counted}, true


async def test_a_document_is_new_then_ready_then_unchanged(database: Database, tenant: Tenant) -> None:
    handbook = await collections.ensure(database, tenant.id, "handbook")
    document, outcome = await register(database, tenant.id, handbook.id, "leave.md", "v1")
    assert (outcome, document.state, document.chunks) == ("new", DocumentState.QUEUED, 0)
    assert [waiting.id for waiting in await documents.pending(database, tenant.id)] == [document.id]
    # Left half-way, it is still to be done.
    assert (await register(database, tenant.id, handbook.id, "leave.md", "v1"))[1] == "new"
    ready = await documents.replace_chunks(
        database, tenant.id, document.id, ParsedDocument("Leave", (), pages=2), chunks_of(TEXTS), random_units(3),
        embedder_id=EMBEDDER, sha256=document.sha256,
    )  # fmt: skip
    assert (ready.state, ready.title, ready.chunks, ready.pages) == (DocumentState.READY, "Leave", 3, 2)
    assert (await register(database, tenant.id, handbook.id, "leave.md", "v1"))[1] == "unchanged"
    assert (await register(database, tenant.id, handbook.id, "copy.md", "v1"))[0].id == document.id
    assert await documents.pending(database, tenant.id) == []


async def test_changed_bytes_keep_the_document_and_its_old_chunks(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    document = await fill(database, tenant.id, "leave.md", TEXTS)
    changed, outcome = await register(database, tenant.id, document.collection_id, "leave.md", "v2")
    assert (changed.id, outcome, changed.state) == (document.id, "changed", DocumentState.QUEUED)
    assert len(await documents.chunks(database, admin, document.id)) == 3
    await documents.fail(database, tenant.id, document.id, "damaged_file", "It is damaged.")
    failed = await documents.get(database, admin, document.id)
    assert (failed.state, failed.reason_code, failed.reason) == (DocumentState.FAILED, "damaged_file", "It is damaged.")
    assert len(await documents.chunks(database, admin, document.id)) == 3


async def test_a_copy_over_another_document_takes_its_place(
    database: Database, tenant: Tenant, admin: Principal, fresh: DatabaseUnderTest
) -> None:
    old = await fill(database, tenant.id, "old.md", ["old words"])
    new = await fill(database, tenant.id, "new.md", ["new words"])
    document, outcome = await documents.register(
        database, tenant.id, new.collection_id, path="old.md", sha256=new.sha256, media_type="t", size=1, title="t"
    )
    assert (document.id, outcome) == (new.id, "unchanged")
    with pytest.raises(NotFound):
        await documents.get(database, admin, old.id)
    assert state(fresh, tenant)["chunks"] == 1


async def test_bytes_that_changed_meanwhile_are_not_replaced_by_older_ones(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    document = await fill(database, tenant.id, "leave.md", TEXTS)
    await register(database, tenant.id, document.collection_id, "leave.md", "v2")
    late = await documents.replace_chunks(
        database, tenant.id, document.id, ParsedDocument("Late", ()), chunks_of(["late"]), random_units(1),
        embedder_id=EMBEDDER, sha256=document.sha256,
    )  # fmt: skip
    assert late.state is DocumentState.QUEUED
    assert len(await documents.chunks(database, admin, document.id)) == 3


async def test_replacing_leaves_no_orphan_and_reuses_no_number(
    database: Database, tenant: Tenant, admin: Principal, fresh: DatabaseUnderTest
) -> None:
    kept = await fill(database, tenant.id, "kept.md", ["kept words of leave"])
    for texts in (TEXTS, ["one leave", "two"]):
        document = await fill(database, tenant.id, "leave.md", texts, title="Leave", headings=["Leave", "Days"])
    assert kept.id != document.id
    now = state(fresh, tenant)
    assert [now[key] for key in ("chunks", "vectors", "words", "n", "next_chunk")] == [3, 3, 3, 3, 7]
    stored = await documents.chunks(database, admin, document.id)
    assert [chunk.chunk_id for chunk in stored] == [5, 6]
    counted, true = postings(fresh, tenant)
    assert counted == true
    assert lexical.term_number("hr-12") not in counted


async def test_statistics_are_those_of_the_live_chunks(
    database: Database, tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    await fill(database, tenant.id, "a.md", TEXTS, title="Leave and form", headings=["Days"])
    await fill(database, tenant.id, "b.md", ["x"])
    parts = [lexical.fields(text, "Leave and form", ["Days"]) for text in TEXTS] + [lexical.fields("x", "b.md", [])]
    now = state(fresh, tenant)
    assert now["text_sum"] == sum(part.text.total() for part in parts)
    assert now["title_sum"] == sum(part.title.total() for part in parts)
    assert now["headings_sum"] == sum(part.headings.total() for part in parts)


async def test_deleting_leaves_nothing_and_says_what_went(
    database: Database, tenant: Tenant, admin: Principal, fresh: DatabaseUnderTest
) -> None:
    document = await fill(database, tenant.id, "leave.md", TEXTS)
    receipt = await documents.delete(database, admin, document.id)
    assert receipt.what == "leave.md"
    assert receipt.counts == {"documents": 1, "chunks": 3, "vectors": 3, "words": 3}
    left = state(fresh, tenant)
    assert {key: value for key, value in left.items() if value} == {"next_chunk": 4}
    with pytest.raises(NotFound):
        await documents.delete(database, admin, document.id)


async def test_a_document_is_stored_whole_or_not_at_all(
    database: Database, tenant: Tenant, admin: Principal, fresh: DatabaseUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = await fill(database, tenant.id, "leave.md", TEXTS)
    before = state(fresh, tenant)

    async def crash(*_: object) -> None:
        raise ConnectionAbortedError

    monkeypatch.setattr(indexing, "settle", crash)
    with pytest.raises(ConnectionAbortedError):
        await fill(database, tenant.id, "leave.md", ["other words"])
    after = await documents.get(database, admin, document.id)
    assert (after.state, after.chunks) == (DocumentState.QUEUED, 3)
    assert state(fresh, tenant) == before


async def test_vectors_of_another_model_or_shape_are_refused(database: Database, tenant: Tenant) -> None:
    await fill(database, tenant.id, "other.md", TEXTS)
    document = await fill(database, tenant.id, "leave.md", TEXTS)
    args = (database, tenant.id, document.id, ParsedDocument("t", ()), chunks_of(["a"]))
    with pytest.raises(EmbeddingSetMismatch):
        await documents.replace_chunks(*args, random_units(1), embedder_id="other", sha256=document.sha256)
    wide = np.ones((1, DIMENSION + 1), dtype=np.float32)
    with pytest.raises(EmbeddingSetMismatch):
        await documents.replace_chunks(*args, wide, embedder_id=EMBEDDER, sha256=document.sha256)
    with pytest.raises(StorageError):
        await documents.replace_chunks(*args, random_units(2), embedder_id=EMBEDDER, sha256=document.sha256)


async def test_an_emptied_tenant_may_begin_anew_with_another_model(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    for embedder in ("first", "second", "first"):
        document = await fill(database, tenant.id, "a.md", ["leave"], embedder=embedder)
        [hit] = await search(database, admin, "leave", random_units(1)[0], embedder_id=embedder)
        assert hit.scores.vector is not None
        await documents.delete(database, admin, document.id)
        assert await search(database, admin, "leave", random_units(1)[0], embedder_id="third") == []


async def test_weights_are_made_anew_when_texts_grow_longer(
    database: Database, tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    """What is stored must not depend on the order in which documents came."""
    for order in ("short first", "long first"):
        collection = order
        texts = {"short.md": ["leave"], "long.md": ["leave and " + "many other words " * 60] * 2}
        for path in sorted(texts, reverse=order == "short first"):
            await fill(database, tenant.id, f"{order} {path}", texts[path], collection=collection, title="t")
    with psycopg.connect(fresh.owner_dsn) as connection:
        averages = connection.execute(
            "SELECT text_average, title_average, headings_average, text_sum / n::real FROM intramuros.lex_stat"
        ).fetchone()
        rows = connection.execute(
            "SELECT d.path, c.text, l.w::text FROM intramuros.lex_doc l JOIN intramuros.chunks c USING (chunk_id) "
            "JOIN intramuros.documents d ON d.id = c.document_id"
        ).fetchall()
    assert averages is not None
    assert averages[0] == pytest.approx(averages[3], rel=indexing.DRIFT)
    number = lexical.term_number("leav")
    for _, text, w in rows:
        frozen = lexical.Lengths(*averages[:3])
        expected = lexical.vector(lexical.document_terms(text, "t", (), frozen))[number]
        stored = dict(pair.split(":") for pair in w.split("/")[0].strip("{}").split(","))
        assert float(stored[str(number)]) == pytest.approx(expected, rel=1e-4)


async def test_chunks_come_back_as_they_went_in(database: Database, tenant: Tenant, admin: Principal) -> None:
    handbook = await collections.ensure(database, tenant.id, "handbook")
    document, _ = await register(database, tenant.id, handbook.id, "table.pdf", "x")
    chunk = Chunk(0, "| a | b |", ("Costs", "差旅"), 2, 0, 9, "table", 3, (Box(3, 0.1, 0.2, 0.3, 0.4),))
    await documents.replace_chunks(
        database, tenant.id, document.id, ParsedDocument("T", ()), [chunk], random_units(1),
        embedder_id=EMBEDDER, sha256=document.sha256,
    )  # fmt: skip
    [stored] = await documents.chunks(database, admin, document.id)
    assert stored.chunk == chunk
    passage = await documents.passage(database, admin, document.id, stored.chunk_id)
    assert (passage.text, passage.page, passage.boxes) == (chunk.text, 3, chunk.boxes)
    assert passage.heading_path == ("Costs", "差旅")


async def test_a_passage_stands_in_its_context(database: Database, tenant: Tenant, admin: Principal) -> None:
    document = await fill(database, tenant.id, "a.md", ["one", "two", "three", "four", "five", "six"])
    stored = await documents.chunks(database, admin, document.id)
    passage = await documents.passage(database, admin, document.id, stored[3].chunk_id)
    assert (passage.before, passage.text, passage.after) == ("two\nthree", "four", "five\nsix")
    first = await documents.passage(database, admin, document.id, stored[0].chunk_id)
    assert (first.before, first.after) == ("", "two\nthree")
    other = await fill(database, tenant.id, "b.md", ["seven"])
    for wrong in (other.id, uuid4()):
        with pytest.raises(NotFound):
            await documents.passage(database, admin, wrong, stored[0].chunk_id)


async def test_what_is_not_granted_is_not_there(
    database: Database, tenant: Tenant, other_tenant: Tenant, admin: Principal, principal: Principal
) -> None:
    document = await fill(database, tenant.id, "secret.md", ["secret"], collection="board")
    [stored] = await documents.chunks(database, admin, document.id)
    await collections.revoke(database, tenant.id, document.collection_id, "everyone")
    outsider = replace(admin, tenant_id=other_tenant.id)
    for reader in (principal, outsider):
        assert await documents.listing(database, reader) == []
        for call in (
            documents.get(database, reader, document.id),
            documents.chunks(database, reader, document.id),
            documents.passage(database, reader, document.id, stored.chunk_id),
        ):
            with pytest.raises(NotFound):
                await call
    with pytest.raises(Forbidden):
        await documents.delete(database, principal, document.id)
    with pytest.raises(NotFound):
        await documents.delete(database, outsider, document.id)
    assert [found.id for found in await documents.listing(database, admin, "board")] == [document.id]
    assert await documents.listing(database, admin, "handbook") == []


async def test_one_process_works_on_a_document(database: Database, tenant: Tenant, admin: Principal) -> None:
    handbook = await collections.ensure(database, tenant.id, "handbook")
    document, _ = await register(database, tenant.id, handbook.id, "a.md", "x")
    async with documents.processing(database, tenant.id, document.id) as mine:
        async with documents.processing(database, tenant.id, document.id) as theirs:
            assert (mine, theirs) == (True, False)
        assert (await documents.get(database, admin, document.id)).state is DocumentState.PROCESSING
    # It was left half-way: it waits again.
    assert [waiting.id for waiting in await documents.pending(database, tenant.id)] == [document.id]
    async with documents.processing(database, tenant.id, document.id) as again:
        assert again


async def test_a_document_that_was_deleted_meanwhile_stays_away(
    database: Database, tenant: Tenant, admin: Principal, fresh: DatabaseUnderTest
) -> None:
    document = await fill(database, tenant.id, "a.md", ["one"])
    await documents.delete(database, admin, document.id)
    with pytest.raises(NotFound):
        await documents.replace_chunks(
            database, tenant.id, document.id, ParsedDocument("t", ()), chunks_of(["one"]), random_units(1),
            embedder_id=EMBEDDER, sha256=document.sha256,
        )  # fmt: skip
    assert state(fresh, tenant)["chunks"] == 0


async def test_an_error_names_what_is_wrong_without_the_rows(database: Database, tenant: Tenant) -> None:
    await collections.create(database, tenant.id, "secret name")
    with pytest.raises(AlreadyExists) as refused:
        await collections.create(database, tenant.id, "secret name")
    assert "secret" not in refused.value.message
