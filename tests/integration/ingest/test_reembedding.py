"""A tenant embedded anew: each text once, after a kill from where it was, beside ingestion, questions first."""

import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from core.errors import StorageError
from core.records import DocumentState, Principal, Tenant
from core.settings import Settings
from inference.interfaces import Embedder, Vectors
from ingest.embedding import BATCH
from ingest.files import FileStore
from ingest.pipeline import Ingestor
from ingest.reembedding import AHEAD, fill
from storage import answering, documents, embedding_sets, search
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.fakes.embedder import FakeEmbedder, vector
from tests.fakes.reader import LineReader
from tests.integration.ingest.dying import NEW, POINTS, WIDTH, reembed
from tests.paths import PROJECT

LINES = BATCH + 8


class Models:
    """The old and the new embedder; a tenant's is the one of its active vectors, as in the runtime."""

    def __init__(self, db: Database) -> None:
        self.old, self.new = FakeEmbedder(), FakeEmbedder(NEW, WIDTH)
        self._db = db

    async def __call__(self, tenant_id: UUID) -> Embedder:
        return self.new if await embedding_sets.active(self._db, tenant_id) == NEW else self.old


@pytest.fixture
def models(database: Database) -> Models:
    return Models(database)


@pytest.fixture
def ingestor(database: Database, models: Models, tmp_path: Path) -> Ingestor:
    return Ingestor(database, models, FileStore(tmp_path), Settings(home=tmp_path), LineReader())


async def ingest(ingestor: Ingestor, tenant: Tenant, name: str, *lines: str, collection: str = "open") -> DocumentState:
    queued = await ingestor.accept_upload(tenant.id, collection, name, "\n".join(lines).encode())
    return (await ingestor.process(tenant.id, queued.id)).state


@pytest.fixture
async def stocked(ingestor: Ingestor, tenant: Tenant) -> int:
    """Documents with more than a batch of chunks, two of them alike; how many chunks."""
    await ingest(ingestor, tenant, "many.txt", *(f"Rule {number} of many." for number in range(LINES)))
    await ingest(ingestor, tenant, "few.txt", "Thirty kangaroo days.", "Nothing else.")
    await ingest(ingestor, tenant, "few.txt", "Thirty kangaroo days.", "Something else.", collection="more")
    return LINES + 4


async def counts(db: Database, tenant: Tenant) -> dict[str, tuple[str, int, int]]:
    found = await embedding_sets.listing(db, tenant.id)
    return {one.embedder_id: (one.role, one.vectors, one.missing) for one in found}


async def made(db: Database, tenant: Tenant, embedder: Embedder) -> list[int]:
    return [count async for count in fill(db, tenant.id, embedder)]


async def test_every_chunk_is_embedded_those_that_are_alike_once(
    database: Database, tenant: Tenant, models: Models, stocked: int
) -> None:
    await embedding_sets.begin(database, tenant.id, NEW, WIDTH)
    told = await made(database, tenant, models.new)
    assert (told, told[-1]) == (sorted(told), stocked)
    assert models.new.embedded == models.old.embedded == stocked - 1
    assert await counts(database, tenant) == {
        models.old.id: ("active", stocked, 0),
        NEW: ("candidate", stocked, 0),
    }
    # Nothing is made twice.
    assert await made(database, tenant, models.new) == []


async def test_the_vectors_are_those_of_the_texts_that_ingestion_embeds(
    database: Database, tenant: Tenant, admin: Principal, models: Models, stocked: int
) -> None:
    await reembed(database, tenant.id, models.new)
    asked = vector("few\nThirty kangaroo days.", WIDTH)
    hits = await search.search(database, admin, "days", asked, embedder_id=NEW, mode="vector")
    assert hits[0].scores.vector == pytest.approx(1, abs=1e-3)
    assert hits[0].text == "Thirty kangaroo days."


@pytest.mark.parametrize("where", POINTS)
async def test_killed_anywhere_it_goes_on(
    database: Database, tenant: Tenant, fresh: DatabaseUnderTest, models: Models, stocked: int, where: str
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.integration.ingest.dying", fresh.app_dsn, str(tenant.id), where),
        cwd=PROJECT,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        _, said = await process.communicate()
    assert process.returncode == -signal.SIGKILL, said.decode()
    await let_go(database, tenant)
    before = (await counts(database, tenant)).get(NEW, ("", 0, 0))[1]
    await reembed(database, tenant.id, models.new)
    assert await counts(database, tenant) == {
        NEW: ("active", stocked, 0),
        models.old.id: ("previous", stocked, 0),
    }
    # What was kept was not made again.
    assert before in (0, BATCH, stocked)
    assert models.new.embedded <= stocked - before


async def let_go(db: Database, tenant: Tenant) -> None:
    """The server sees a moment late that a killed process is gone, and holds its lock so long."""
    async with asyncio.timeout(30):
        while True:
            with suppress(StorageError):
                async with embedding_sets.changing(db, tenant.id):
                    return
            await asyncio.sleep(0.05)


async def test_documents_that_come_in_meanwhile_are_in_both_sets(
    database: Database, tenant: Tenant, models: Models, ingestor: Ingestor, stocked: int
) -> None:
    class Interrupted(FakeEmbedder):
        late = False

        async def embed_passages(self, texts: Sequence[str]) -> Vectors:
            if not self.late:
                self.late = True
                assert await ingest(ingestor, tenant, "late.txt", "It came late.") is DocumentState.READY
            return await super().embed_passages(texts)

    await reembed(database, tenant.id, Interrupted(NEW, WIDTH))
    assert await counts(database, tenant) == {
        NEW: ("active", stocked + 1, 0),
        models.old.id: ("previous", stocked + 1, 0),
    }


async def test_a_document_under_way_at_the_swap_is_ready_by_the_new_vectors(
    database: Database, tenant: Tenant, admin: Principal, models: Models, ingestor: Ingestor, stocked: int
) -> None:
    class Overtaken(FakeEmbedder):
        async def embed_passages(self, texts: Sequence[str]) -> Vectors:
            await reembed(database, tenant.id, models.new)
            return await super().embed_passages(texts)

    models.old = Overtaken()
    assert await ingest(ingestor, tenant, "late.txt", "It came late.") is DocumentState.READY
    assert await ingest(ingestor, tenant, "later.txt", "It came later.") is DocumentState.READY
    found = await counts(database, tenant)
    assert found[NEW] == ("active", stocked + 2, 0)
    # They are not in the set that is searched no more, until somebody goes back to that one.
    assert found[models.old.id] == ("previous", stocked, 2)
    listed = await documents.listing(database, admin)
    assert {one.state for one in listed} == {DocumentState.READY}


async def test_questions_go_first(
    database: Database, tenant: Tenant, models: Models, stocked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, under_way = asyncio.Event(), answering.under_way

    async def watched(db: Database) -> bool:
        found = await under_way(db)
        looked.set()
        return found

    monkeypatch.setattr(answering, "under_way", watched)
    await embedding_sets.begin(database, tenant.id, NEW, WIDTH)
    filling = fill(database, tenant.id, models.new)
    async with answering.answering(database):
        # What is copied needs no model.
        assert await anext(filling) == 0
        more = asyncio.ensure_future(anext(filling))
        await looked.wait()
        assert (models.new.embedded, more.done()) == (0, False)
    assert await more == BATCH


async def test_more_than_is_asked_for_at_once(
    database: Database, tenant: Tenant, ingestor: Ingestor, models: Models
) -> None:
    await ingest(ingestor, tenant, "book.txt", *(f"Line {number}." for number in range(2 * AHEAD + 3)))
    await reembed(database, tenant.id, models.new)
    assert (await counts(database, tenant))[NEW] == ("active", 2 * AHEAD + 3, 0)
