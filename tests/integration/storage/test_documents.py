"""Documents: registered once, searchable whole or not at all, gone without a trace."""

from collections import Counter
from dataclasses import replace
from uuid import UUID, uuid4

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray

from core.errors import AlreadyExists, Forbidden, NotFound
from core.records import (
    Answer,
    Box,
    Chunk,
    Citation,
    Document,
    DocumentState,
    Outcome,
    ParsedDocument,
    Principal,
    Tenant,
)
from storage import collections, documents, indexing, lexical, sessions, tending
from storage.database import Database
from storage.search import search
from tests.conftest import DatabaseUnderTest
from tests.integration.storage.filling import EMBEDDER, chunks_of, fill, random_units, register
from tests.storing import store

TEXTS = ["Annual leave is 25 days.", "Form HR-12 asks for leave.", "年假为二十五天，另见《差旅-03》。"]
LEFT_OVER = """
SELECT (SELECT count(*) FROM intramuros.chunks) AS chunks, (SELECT count(*) FROM intramuros.embeddings) AS vectors,
       (SELECT count(*) FROM intramuros.lex_doc) AS words, (SELECT count(*) FROM intramuros.lex_term) AS terms,
       s.n, s.text_sum, s.title_sum, s.headings_sum, s.next_chunk
FROM intramuros.lex_stat s WHERE s.tenant_id = %s
"""


async def embed(wanted: list[str]) -> NDArray[np.float32]:
    return random_units(len(wanted))


def state(fresh: DatabaseUnderTest, tenant: Tenant) -> dict[str, int]:
    """Row counts and statistics, read as a superuser, whom no row security keeps from seeing left-overs."""
    with psycopg.connect(fresh.owner_dsn, row_factory=psycopg.rows.dict_row) as connection:
        row = connection.execute(LEFT_OVER, (tenant.id,)).fetchone()
    assert row is not None
    return row


def postings(fresh: DatabaseUnderTest, tenant: Tenant) -> tuple[dict[int, int], dict[int, int]]:
    """Term -> number of chunks, once from the counts and once from the live chunks' own vectors."""
    with psycopg.connect(fresh.owner_dsn) as connection:
        counted = connection.execute(
            "SELECT term, df FROM intramuros.lex_term WHERE tenant_id = %s", (tenant.id,)
        ).fetchall()
        rows = connection.execute("SELECT w::text FROM intramuros.lex_doc WHERE NOT retired").fetchall()
    true: Counter[int] = Counter()
    for (w,) in rows:
        true.update(int(pair.split(":")[0]) for pair in w.strip("{}").split("}")[0].split(","))
    return dict(counted), dict(true)


async def test_a_document_is_new_then_ready_then_unchanged(database: Database, tenant: Tenant) -> None:
    handbook = await collections.ensure(database, tenant.id, "handbook")
    document, outcome = await register(database, tenant.id, handbook.id, "leave.md", "v1")
    assert (outcome, document.state, document.chunks) == ("new", DocumentState.QUEUED, 0)
    assert [waiting.id for waiting in await documents.pending(database, tenant.id)] == [document.id]
    # Left half-way, it is still to be done.
    assert (await register(database, tenant.id, handbook.id, "leave.md", "v1"))[1] == "new"
    parsed = ParsedDocument("Leave", (), pages=2)
    ready = await store(database, tenant.id, document, parsed, chunks_of(TEXTS), embed, embedder_id=EMBEDDER)
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
    late = await documents.store_revision(
        database, tenant.id, document.id, ParsedDocument("Late", ()), chunks_of(["late"]), sha256=document.sha256
    )
    assert (late.state, late.revision) == (DocumentState.QUEUED, 1)
    # What was read is not current: nothing to call ready, nothing to fail.
    done = await documents.finish(database, tenant.id, document.id, embedder_id=EMBEDDER, sha256=document.sha256)
    await documents.fail(database, tenant.id, document.id, "damaged_file", "Damaged.", sha256=document.sha256)
    assert done.state is (await documents.get(database, admin, document.id)).state is DocumentState.QUEUED
    assert len(await documents.chunks(database, admin, document.id)) == 3


async def test_replacing_leaves_no_orphan_and_reuses_no_number(
    database: Database, tenant: Tenant, admin: Principal, fresh: DatabaseUnderTest
) -> None:
    kept = await fill(database, tenant.id, "kept.md", ["kept words of leave"])
    for texts in (TEXTS, ["one leave", "two"]):
        document = await fill(database, tenant.id, "leave.md", texts, title="Leave", headings=["Leave", "Days"], keep=1)
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
    expected = await tending.deletion(database, admin, document.id)
    receipt = await tending.delete(database, admin, document.id)
    assert receipt.what == "leave.md"
    assert receipt.counts == {
        "documents": 1, "revisions": 1, "chunks": 3, "placements": 3, "vectors": 3, "words": 3, "quoting": 0,
    }  # fmt: skip
    assert expected == receipt
    left = state(fresh, tenant)
    assert {key: value for key, value in left.items() if value} == {"next_chunk": 4}
    with pytest.raises(NotFound):
        await tending.delete(database, admin, document.id)


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


async def test_an_emptied_tenant_may_begin_anew_with_another_model(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    for embedder in ("first", "second", "first"):
        document = await fill(database, tenant.id, "a.md", ["leave"], embedder=embedder)
        [hit] = await search(database, admin, "leave", random_units(1)[0], embedder_id=embedder)
        assert hit.scores.vector is not None
        await tending.delete(database, admin, document.id)
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
    await store(database, tenant.id, document, ParsedDocument("T", ()), [chunk], embed, embedder_id=EMBEDDER)
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
            documents.revisions(database, reader, document.id),
            documents.revision_chunks(database, reader, document.id, 1),
        ):
            with pytest.raises(NotFound):
                await call
    for remove in (tending.delete, tending.deletion):
        with pytest.raises(Forbidden):
            await remove(database, principal, document.id)
        with pytest.raises(NotFound):
            await remove(database, outsider, document.id)
    assert [found.id for found in await documents.listing(database, admin, "board")] == [document.id]
    assert await documents.listing(database, admin, "handbook") == []


async def test_one_process_works_on_a_document(database: Database, tenant: Tenant, admin: Principal) -> None:
    handbook = await collections.ensure(database, tenant.id, "handbook")
    document, _ = await register(database, tenant.id, handbook.id, "a.md", "x")
    async with documents.processing(database, tenant.id, document.id) as mine:
        async with documents.processing(database, tenant.id, document.id) as theirs:
            assert mine is not None
            assert theirs is None
        assert (await documents.get(database, admin, document.id)).state is DocumentState.PROCESSING
    # It was left half-way: it waits again.
    assert [waiting.id for waiting in await documents.pending(database, tenant.id)] == [document.id]
    async with documents.processing(database, tenant.id, document.id) as again:
        assert again


async def test_a_document_that_was_deleted_meanwhile_stays_away(
    database: Database, tenant: Tenant, admin: Principal, fresh: DatabaseUnderTest
) -> None:
    document = await fill(database, tenant.id, "a.md", ["one"])
    await tending.delete(database, admin, document.id)
    with pytest.raises(NotFound):
        await documents.store_revision(
            database, tenant.id, document.id, ParsedDocument("t", ()), chunks_of(["one"]), sha256=document.sha256
        )
    with pytest.raises(NotFound):
        await documents.add_vectors(database, tenant.id, document.id, [1], random_units(1), embedder_id=EMBEDDER)
    assert state(fresh, tenant)["chunks"] == 0


async def test_an_error_names_what_is_wrong_without_the_rows(database: Database, tenant: Tenant) -> None:
    await collections.create(database, tenant.id, "secret name")
    with pytest.raises(AlreadyExists) as refused:
        await collections.create(database, tenant.id, "secret name")
    assert "secret" not in refused.value.message


# --- the queue ------------------------------------------------------------------------------------------------------


async def test_a_fault_that_may_pass_is_tried_again_in_time(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    handbook = await collections.ensure(database, tenant.id, "handbook")
    document, _ = await register(database, tenant.id, handbook.id, "a.md", "x")
    for delay in (3600, -1):
        async with documents.processing(database, tenant.id, document.id):
            await documents.retry_later(
                database, tenant.id, document.id, "model_unavailable", "The model is away.", delay_seconds=delay
            )
        waits = await documents.get(database, admin, document.id)
        assert (waits.state, waits.reason_code) == (DocumentState.QUEUED, "model_unavailable")
        assert bool(await documents.pending(database, tenant.id)) is (delay < 0)
    assert waits.progress is not None
    assert (waits.progress.step, waits.progress.attempts) == ("waiting", 2)
    assert waits.progress.next_attempt_at is not None


@pytest.mark.parametrize("how", ["failed", "waiting"])
async def test_an_admin_tries_again_at_once(database: Database, tenant: Tenant, how: str) -> None:
    handbook = await collections.ensure(database, tenant.id, "handbook")
    document, _ = await register(database, tenant.id, handbook.id, "a.md", "x")
    async with documents.processing(database, tenant.id, document.id):
        if how == "failed":
            await documents.fail(database, tenant.id, document.id, "damaged_file", "It is damaged.")
        else:
            await documents.retry_later(database, tenant.id, document.id, "c", "r", delay_seconds=3600)
    again = await documents.requeue(database, tenant.id, document.id)
    assert (again.state, again.reason_code, again.reason) == (DocumentState.QUEUED, None, None)
    assert again.progress is not None
    assert (again.progress.attempts, again.progress.next_attempt_at) == (0, None)


async def test_trying_again_leaves_what_is_ready_or_at_work_alone(database: Database, tenant: Tenant) -> None:
    ready = await fill(database, tenant.id, "a.md", ["one"])
    assert await documents.requeue(database, tenant.id, ready.id) == ready
    working, _ = await register(database, tenant.id, ready.collection_id, "b.md", "x")
    async with documents.processing(database, tenant.id, working.id):
        assert (await documents.requeue(database, tenant.id, working.id)).state is DocumentState.PROCESSING
    with pytest.raises(NotFound):
        await documents.requeue(database, tenant.id, uuid4())


# --- folders and families -------------------------------------------------------------------------------------------


async def put(
    db: Database, tenant: Tenant, path: str, content: str, *, source: str | None = None, parent: UUID | None = None
) -> tuple[Document, documents.Registered]:
    home = await collections.ensure(db, tenant.id, "handbook")
    return await documents.register(
        db, tenant.id, home.id, path=path, sha256=content, media_type="t", size=1, title="t", source=source,
        parent_id=parent,
    )  # fmt: skip


async def test_a_folder_adopts_what_stands_at_its_paths(database: Database, tenant: Tenant, admin: Principal) -> None:
    await put(database, tenant, "b.md", "2")
    await put(database, tenant, "elsewhere.md", "3")
    await put(database, tenant, "a.md", "1", source="/hr")
    await put(database, tenant, "b.md", "2", source="/hr")
    # An upload over it does not take it out of the folder.
    await put(database, tenant, "a.md", "changed")
    found = {document.path: document.source for document in await documents.listing(database, admin)}
    assert found == {"a.md": "/hr", "b.md": "/hr", "elsewhere.md": None}


async def test_a_moved_document_keeps_everything_but_its_path(
    database: Database, tenant: Tenant, admin: Principal
) -> None:
    document = await fill(database, tenant.id, "old.eml", ["one"])
    await put(database, tenant, "old.eml/part.pdf", "1", parent=document.id)
    await put(database, tenant, "old.eml.md", "2")
    moved = await documents.move(database, tenant.id, document.id, "new/mail.eml")
    assert replace(moved, path=document.path, updated_at=document.updated_at) == document
    paths = [found.path for found in await documents.listing(database, admin)]
    assert paths == ["new/mail.eml", "new/mail.eml/part.pdf", "old.eml.md"]
    with pytest.raises(AlreadyExists):
        await documents.move(database, tenant.id, document.id, "old.eml.md")
    with pytest.raises(NotFound):
        await documents.move(database, tenant.id, uuid4(), "x")


async def test_what_came_inside_is_its_parents_own(
    database: Database, tenant: Tenant, other_tenant: Tenant, admin: Principal
) -> None:
    """The same attachment in two mails is two documents: one stays when the other's mail goes."""
    logo, _ = await put(database, tenant, "logo.png", "logo")
    mails = [(await put(database, tenant, f"{name}.eml", name))[0] for name in ("one", "two")]
    for mail in mails:
        child, outcome = await put(database, tenant, f"{mail.path}/logo.png", "logo", parent=mail.id)
        assert (child.parent_id, outcome) == (mail.id, "new")
        assert child.id != logo.id
        assert await documents.children(database, tenant.id, mail.id) == [child]
        assert await documents.children(database, other_tenant.id, mail.id) == []
    await tending.delete(database, admin, mails[0].id)
    left = [found.path for found in await documents.listing(database, admin)]
    assert left == ["logo.png", "two.eml", "two.eml/logo.png"]
    # The same bytes uploaded again are the document of their own, not a part of a mail.
    assert (await put(database, tenant, "copy.png", "logo"))[0].id == logo.id


async def test_a_document_takes_along_all_that_came_inside_and_says_who_quoted_it(
    database: Database, tenant: Tenant, admin: Principal, principal: Principal, fresh: DatabaseUnderTest
) -> None:
    mail = await fill(database, tenant.id, "mail.eml", ["see the archive"])
    archive, _ = await put(database, tenant, "mail.eml/all.zip", "zip", parent=mail.id)
    inner, _ = await put(database, tenant, "mail.eml/all.zip/leave.md", "leave", parent=archive.id)
    texts = ParsedDocument("Leave", ())
    await store(database, tenant.id, inner, texts, chunks_of(["annual leave"]), embed, embedder_id=EMBEDDER)
    kept = await fill(database, tenant.id, "kept.md", ["annual leave"])
    session = await sessions.create(database, principal, "s")
    for cited in ([inner, kept], [mail, inner], [kept], []):
        citations = tuple(
            Citation(n, 1, document.id, document.path, "t", (), None, "q") for n, document in enumerate(cited, start=1)
        )
        answer = Answer(Outcome.ANSWERED, "q", "q", "a", "en", citations, {}, 1)
        await sessions.add_turn(database, principal, session.id, answer)
    receipt = await tending.delete(database, admin, mail.id)
    assert receipt.counts == {
        "documents": 3, "revisions": 2, "chunks": 2, "placements": 2, "vectors": 2, "words": 2, "quoting": 2,
    }  # fmt: skip
    assert len(await sessions.turns(database, principal, session.id)) == 4
    assert [found.id for found in await documents.listing(database, admin)] == [kept.id]
    now = state(fresh, tenant)
    assert [now[key] for key in ("chunks", "vectors", "words", "n")] == [1, 1, 1, 1]
    counted, true = postings(fresh, tenant)
    assert counted == true
