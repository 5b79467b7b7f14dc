"""Killed at every step and started again: every document ends ready, once, and nothing is left over."""

from pathlib import Path

import psycopg
import pytest

from api.runtime import Runtime
from api.worker import Worker
from core.records import DocumentState, Searchable, Tenant
from ingest.embedding import BATCH
from ingest.pipeline import Ingestor
from storage import documents, users
from tests import killing
from tests.conftest import DatabaseUnderTest
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import LineReader, inside
from tests.integration.api.dying import POINTS

LONG = 2 * BATCH + 10
UPLOADING = ("stored the file", "registered")
FILES = {
    "long.txt": "\n".join(f"Line {number} of many." for number in range(LONG)),
    "mail.txt": f"See the file.\n{inside('inner.txt', 'The file inside.')}",
    "small.txt": "See the file.\nA note.",
}
CHUNKS = {"long.txt": LONG, "mail.txt": 1, "mail.txt/inner.txt": 1, "small.txt": 2}

COUNTS = """
SELECT (SELECT count(*) FROM documents) AS documents, (SELECT count(*) FROM revisions) AS revisions,
       (SELECT count(*) FROM chunks) AS chunks, (SELECT count(*) FROM placements) AS placements,
       (SELECT count(*) FROM lex_doc) AS words, (SELECT count(*) FROM embeddings) AS vectors,
       (SELECT count(DISTINCT chunk_id) FROM embeddings JOIN chunks USING (tenant_id, chunk_id)) AS embedded,
       (SELECT sum(n) FROM lex_stat) AS counted
"""


@pytest.fixture
def folder(runtime: Runtime) -> Path:
    made = runtime.settings.home / "in"
    made.mkdir(parents=True)
    for name, text in FILES.items():
        (made / name).write_text(text)
    return made


async def killed(fresh: DatabaseUnderTest, runtime: Runtime, tenant: Tenant, what: str, where: str) -> None:
    arguments = (fresh.app_dsn, str(runtime.settings.home), str(tenant.id), what, where)
    await killing.killed("tests.integration.api.dying", *arguments)


async def whole(fresh: DatabaseUnderTest, runtime: Runtime, tenant: Tenant) -> None:
    """Every document is ready, and the tables hold what belongs to them and nothing else."""
    found = await documents.listing(runtime.db, users.operator(tenant.id))
    assert {one.path: one.chunks for one in found} == CHUNKS
    assert {(one.state, one.searchable, one.revision) for one in found} == {
        (DocumentState.READY, Searchable.MEANING, 1)
    }
    total = sum(CHUNKS.values())
    with psycopg.connect(fresh.owner_dsn, options="-c search_path=intramuros,public") as connection:
        counts = connection.execute(COUNTS).fetchone()
    assert counts == (len(CHUNKS), len(CHUNKS), *[total] * 6)
    await runtime.ingestor.sweep(tenant.id)
    stored = {path.name for path in runtime.files.path(tenant.id, "0" * 64).parent.iterdir() if path.suffix == ""}
    assert stored - {".lock"} == {one.sha256 for one in found}


@pytest.fixture
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def survivor(runtime: Runtime, embedder: FakeEmbedder) -> Runtime:
    """What is started again: nothing kills it."""
    runtime.ingestor = Ingestor(runtime.db, embedder, runtime.files, runtime.settings, LineReader())
    return runtime


@pytest.mark.parametrize("where", POINTS)
async def test_every_document_ends_ready_once(
    survivor: Runtime, tenant: Tenant, fresh: DatabaseUnderTest, folder: Path, embedder: FakeEmbedder, where: str
) -> None:
    if where in UPLOADING:
        await killed(fresh, survivor, tenant, "upload", where)
    for name, text in FILES.items():
        await survivor.ingestor.accept_upload(tenant.id, "open", name, text.encode())
    if where not in UPLOADING:
        await killed(fresh, survivor, tenant, "work", where)
    worker = Worker(survivor)
    async with worker.working(processing=False):
        await worker.drain(tenant.id)
    await whole(fresh, survivor, tenant)
    if where in ("stored some vectors", "finished"):
        # What was there was not made again.
        assert embedder.embedded < sum(CHUNKS.values()) - 1


@pytest.mark.parametrize("where", ["registered", "took out a file", "stored what was read", "stored some vectors"])
async def test_a_folder_that_was_being_ingested_is_ingested_again(
    survivor: Runtime, tenant: Tenant, fresh: DatabaseUnderTest, folder: Path, where: str
) -> None:
    await killed(fresh, survivor, tenant, "ingest", where)
    async for _ in survivor.ingestor.ingest_folder(tenant.id, "open", folder):
        pass
    await whole(fresh, survivor, tenant)
