"""A database of the first version, with documents in it, brought to the present one: nothing is lost or made anew."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import psycopg
from pgvector import HalfVector, SparseVector
from pgvector.psycopg import register_vector

from core.records import Chunk, Document, DocumentState, ParsedDocument, Searchable
from storage import documents, lexical, migrations, search, tenants, users
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.integration.storage.filling import DIMENSION, EMBEDDER, random_units, register, unit

TEXTS = ["Annual leave is 25 days.", "年假为二十五天，另见《差旅-03》。", "| a | b |"]
HEADINGS = ("Days", "差旅")


def connect(fresh: DatabaseUnderTest) -> psycopg.Connection[Any]:
    connection = psycopg.connect(fresh.owner_dsn, autocommit=True, options="-c search_path=intramuros,public")
    register_vector(connection)
    return connection


def first_version(fresh: DatabaseUnderTest, slug: str) -> UUID:
    """A tenant as the first version made it."""
    with connect(fresh) as connection:
        row = connection.execute("INSERT INTO tenants (slug, name) VALUES (%s, 'n') RETURNING id", (slug,)).fetchone()
        assert row is not None
        tenant_id: UUID = row[0]
        connection.execute("SET ROLE intramuros_owner")
        connection.execute("SELECT set_config('intramuros.tenant', %s, false)", (str(tenant_id),))
        for parent, sub_key in (("chunks", None), ("lex_doc", None), ("embeddings", "embedder_id")):
            connection.execute(
                "SELECT add_partition(%s, %s, %s, %s)",
                (parent, f"{parent}_{tenant_id.hex}", str(tenant_id), sub_key),
            )
        connection.execute(
            "INSERT INTO lex_stat (tenant_id, text_average, title_average, headings_average) VALUES (%s, 170, 8, 12)",
            (tenant_id,),
        )
        connection.execute("INSERT INTO collections (tenant_id, name) VALUES (%s, 'handbook')", (tenant_id,))
        connection.execute("SELECT add_embedding_set(%s, %s)", (EMBEDDER, DIMENSION))
    return tenant_id


def add(fresh: DatabaseUnderTest, tenant_id: UUID, path: str, sha256: str, state: str, ids: Sequence[int]) -> UUID:
    """A document of TEXTS as the first version stored it."""
    document_id = uuid4()
    with connect(fresh) as connection:
        connection.execute(
            "INSERT INTO documents (tenant_id, id, collection_id, path, sha256, media_type, size, title, state, "
            "chunks) SELECT %s, %s, id, %s, %s, 't', 1, 'Leave', %s, %s FROM collections WHERE tenant_id = %s",
            (tenant_id, document_id, path, sha256, state, len(ids), tenant_id),
        )
        for ordinal, (chunk_id, text) in enumerate(zip(ids, TEXTS, strict=False)):
            terms = lexical.vector(lexical.document_terms(text, "Leave", HEADINGS))
            lengths = lexical.fields(text, "Leave", HEADINGS).lengths
            connection.execute(
                "INSERT INTO chunks (tenant_id, chunk_id, document_id, ordinal, section, kind, language, heading_path, "
                "text, page, start_at, end_at) VALUES (%s, %s, %s, %s, 0, %s, 'en', %s, %s, 3, 0, 9)",
                (tenant_id, chunk_id, document_id, ordinal, kind(text), list(HEADINGS), text),
            )
            connection.execute(
                "INSERT INTO embeddings VALUES (%s, %s, %s, %s, %s)",
                (tenant_id, EMBEDDER, chunk_id, document_id, HalfVector(random_units(3)[ordinal])),
            )
            connection.execute(
                "INSERT INTO lex_doc VALUES (%s, %s, %s, %s, %s, %s, %s)",
                (tenant_id, chunk_id, document_id, lengths.text, lengths.title, lengths.headings,
                 SparseVector({number - 1: w for number, w in terms.items()}, lexical.DIMENSION)),
            )  # fmt: skip
            for number, w in terms.items():
                connection.execute(
                    "INSERT INTO lex_term VALUES (%s, %s, 1, %s, false, ARRAY[%s]) ON CONFLICT (tenant_id, term) "
                    "DO UPDATE SET df = lex_term.df + 1, docs = lex_term.docs || excluded.docs",
                    (tenant_id, number, w, chunk_id),
                )
            connection.execute(
                "UPDATE lex_stat SET n = n + 1, next_chunk = %s, text_sum = text_sum + %s, title_sum = title_sum + %s, "
                "headings_sum = headings_sum + %s WHERE tenant_id = %s",
                (chunk_id + 1, int(lengths.text), int(lengths.title), int(lengths.headings), tenant_id),
            )
    return document_id


def kind(text: str) -> str:
    return "table" if text.startswith("|") else "text"


def chunks() -> list[Chunk]:
    return [
        Chunk(ordinal, text, HEADINGS, 0, 0, 9, "table" if kind(text) == "table" else "text", 3)
        for ordinal, text in enumerate(TEXTS)
    ]


def stored_vectors(fresh: DatabaseUnderTest) -> list[Any]:
    with connect(fresh) as connection:
        return connection.execute(
            "SELECT tenant_id, chunk_id, v::text, retired FROM embeddings ORDER BY 1, 2"
        ).fetchall()


async def test_documents_of_the_first_version_stay_what_they_were(
    empty_database: DatabaseUnderTest, tmp_path: Path
) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    shutil.copy(migrations.FOLDER / "0001_schema.sql", folder)
    await migrations.migrate(empty_database.owner_dsn, folder=folder)
    demo, other = (first_version(empty_database, slug) for slug in ("demo", "other"))
    sha256 = "a" * 64
    ready = add(empty_database, demo, "leave.md", sha256, "ready", [4, 5, 6])
    changed = add(empty_database, demo, "changed.md", "b" * 64, "queued", [7, 8])
    add(empty_database, demo, "new.md", "c" * 64, "queued", [])
    add(empty_database, other, "leave.md", sha256, "ready", [1])
    with connect(empty_database) as connection:
        before = connection.execute(
            "SELECT tenant_id, chunk_id, v::text, false FROM embeddings ORDER BY 1, 2"
        ).fetchall()

    assert await migrations.migrate(empty_database.owner_dsn) == [m.name for m in migrations.known()[1:]]
    assert stored_vectors(empty_database) == before
    db = await Database.open(empty_database.app_dsn, pool_size=2)
    try:
        await _is_what_it_was(db, demo, ready, changed)
        # The same content read from new bytes keeps every chunk and asks for no vector.
        document, outcome = await register(db, demo, (await _get(db, demo, ready)).collection_id, "leave.md", "v2")
        assert (document.id, outcome) == (ready, "changed")
        second = await documents.store_revision(
            db, demo, ready, ParsedDocument("Leave", ()), chunks(), sha256=document.sha256
        )
        assert second.revision == 2
        assert await documents.missing_vectors(db, demo, ready, embedder_id=EMBEDDER, limit=9) == []
        kept = await documents.chunks(db, users.operator(demo), ready)
        assert [(stored.chunk_id, stored.chunk) for stored in kept] == list(zip([4, 5, 6], chunks(), strict=True))
        assert stored_vectors(empty_database) == before
    finally:
        await db.close()
    receipt = await tenants.remove(empty_database.owner_dsn, "demo")
    assert [receipt.counts[key] for key in ("documents", "revisions", "placements")] == [3, 3, 8]


async def _get(db: Database, tenant_id: UUID, document_id: UUID) -> Document:
    return await documents.get(db, users.operator(tenant_id), document_id)


async def _is_what_it_was(db: Database, tenant_id: UUID, ready: UUID, changed: UUID) -> None:
    operator = users.operator(tenant_id)
    document = await _get(db, tenant_id, ready)
    assert (document.state, document.revision, document.searchable) == (DocumentState.READY, 1, Searchable.MEANING)
    assert document.read_sha256 == document.sha256
    stored = await documents.chunks(db, operator, ready)
    assert [(one.chunk_id, one.chunk) for one in stored] == list(zip([4, 5, 6], chunks(), strict=True))
    [revision] = await documents.revisions(db, operator, ready)
    assert (revision.number, revision.sha256, revision.in_force_from) == (1, document.sha256, None)
    # Newer bytes wait; what was read before is found, though nobody knows of which bytes.
    waiting = await _get(db, tenant_id, changed)
    assert (waiting.state, waiting.revision, waiting.read_sha256) == (DocumentState.QUEUED, 1, None)
    [nothing] = [found for found in await documents.listing(db, operator) if found.path == "new.md"]
    assert (nothing.revision, nothing.searchable) == (0, Searchable.NOTHING)
    found = await search.search(db, operator, "annual leave", unit(1), embedder_id=EMBEDDER)
    assert {hit.document_id for hit in found} == {ready, changed}
    assert {hit.chunk_id for hit in found} == {4, 5, 6, 7, 8}
    by_words = await search.search(db, operator, "差旅-03 二十五天", None, embedder_id=EMBEDDER, mode="bm25")
    assert {hit.chunk_id for hit in by_words[:2]} == {5, 8}
    assert np.isclose(by_words[0].scores.fused, 1)


async def test_what_was_said_to_supersede_counts_after_the_next_look(
    empty_database: DatabaseUnderTest, tmp_path: Path
) -> None:
    folder = tmp_path / "migrations"
    folder.mkdir()
    shutil.copy(migrations.FOLDER / "0001_schema.sql", folder)
    await migrations.migrate(empty_database.owner_dsn, folder=folder)
    demo = first_version(empty_database, "demo")
    older = add(empty_database, demo, "2025.md", "a" * 64, "ready", [4])
    newer = add(empty_database, demo, "2026.md", "b" * 64, "ready", [5])
    with connect(empty_database) as connection:
        connection.execute("UPDATE documents SET supersedes = '2025.md' WHERE id = %s", (newer,))
    await migrations.migrate(empty_database.owner_dsn)
    db = await Database.open(empty_database.app_dsn, pool_size=2)
    try:
        assert [document.id for document in await documents.pending(db, demo)] == [newer]
        ready = await documents.finish(db, demo, newer, embedder_id=EMBEDDER, sha256="b" * 64)
        assert (ready.state, ready.warnings) == (DocumentState.READY, ())
        superseded = await _get(db, demo, older)
        assert superseded.newer is not None
        assert superseded.newer.document_id == newer
    finally:
        await db.close()
