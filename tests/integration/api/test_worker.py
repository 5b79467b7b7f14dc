"""The worker on the real queue: nothing is lost, nothing is done twice, one fault stops nothing else."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest

from api import worker as module
from api.runtime import Runtime
from api.worker import Worker
from core.errors import ModelMissing
from core.records import Document, DocumentState, Principal, Searchable, Tenant
from inference.interfaces import Vectors
from ingest.pipeline import Ingestor
from ingest.queue import Queue
from storage import documents, merging, search, users
from tests.conftest import DatabaseUnderTest
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import LineReader, inside
from tests.integration.api.conftest import Site


class Embedder(FakeEmbedder):
    """Waits for `go` at every call. `entered` is set when it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.go = asyncio.Event(), asyncio.Event()

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.entered.set()
        await self.go.wait()
        return await super().embed_passages(texts)


@pytest.fixture
def embedder() -> Embedder:
    return Embedder()


@pytest.fixture
def reader() -> LineReader:
    return LineReader()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGAIN", 0.01)


@dataclass(frozen=True)
class Place:
    """A runtime that reads lines, and embeds once its embedder is let go."""

    runtime: Runtime
    tenant: Tenant

    @property
    def admin(self) -> Principal:
        return users.operator(self.tenant.id)

    async def upload(self, name: str, text: str) -> Document:
        return await self.runtime.ingestor.accept_upload(self.tenant.id, "open", name, text.encode())

    async def shown(self, document: Document) -> Document:
        return await documents.get(self.runtime.db, self.admin, document.id)

    async def ready(self, document: Document) -> None:
        async def is_ready() -> bool:
            return (await self.shown(document)).state is DocumentState.READY

        await until(is_ready)


@pytest.fixture
async def place(runtime: Runtime, tenant: Tenant, embedder: Embedder, reader: LineReader) -> Place:
    runtime.ingestor = Ingestor(runtime.db, embedder, runtime.files, runtime.settings, reader)
    return Place(runtime, tenant)


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    """Look at the database again and again: nothing tells when another task has written to it."""
    async with asyncio.timeout(30):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def waiting(fresh: DatabaseUnderTest) -> list[str]:
    """The documents of the jobs that wait."""
    with psycopg.connect(fresh.owner_dsn) as connection:
        rows = connection.execute(
            "SELECT queueing_lock FROM procrastinate.procrastinate_jobs WHERE status = 'todo' ORDER BY id"
        ).fetchall()
    return [row[0] for row in rows]


async def posted(site: Site, name: str) -> Document:
    async with site.client(site.demo.tokens["admin"]) as client:
        files = {"file": (name, f"# Note\n\nIn {name}.\n".encode())}
        reply = await client.post("/v1/documents", files=files, data={"collection": "open"})
    return await documents.get(site.runtime.db, site.demo.principals["admin"], UUID(reply.json()["id"]))


async def test_an_upload_wakes_the_worker(site: Site) -> None:
    async with Worker(site.runtime).working():
        await Place(site.runtime, site.demo.tenant).ready(await posted(site, "a.md"))


async def test_a_server_without_a_worker_queues_for_others(site: Site, fresh: DatabaseUnderTest) -> None:
    assert not site.runtime.settings.serve_worker
    document = await posted(site, "a.md")

    async def is_queued() -> bool:
        return waiting(fresh) == [str(document.id)]

    await until(is_queued)
    assert (await Place(site.runtime, site.demo.tenant).shown(document)).state is DocumentState.QUEUED


async def test_a_worker_begins_with_what_was_left_behind(
    place: Place, other_tenant: Tenant, embedder: Embedder
) -> None:
    embedder.go.set()
    there = Place(place.runtime, other_tenant)
    here_left, there_left = await place.upload("left.txt", "A note."), await there.upload("left.txt", "A note.")
    async with Worker(place.runtime).working():
        await place.ready(here_left)
        await there.ready(there_left)


async def test_words_of_a_large_tenant_are_merged(
    place: Place, embedder: Embedder, fresh: DatabaseUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert merging.merge.__kwdefaults__ is not None
    for limit in ("start", "tail"):
        monkeypatch.setitem(merging.merge.__kwdefaults__, limit, 1)
    embedder.go.set()
    document = await place.upload("a.txt", "A note.")
    await place.runtime.ingestor.process(place.tenant.id, document.id)

    async def is_merged() -> bool:
        with psycopg.connect(fresh.owner_dsn, options=f"-c intramuros.tenant={place.tenant.id}") as connection:
            return connection.execute("SELECT 1 FROM intramuros.lex_span").fetchone() is not None

    async with Worker(place.runtime).working():
        await until(is_merged)


async def test_two_workers_share_the_work_and_do_nothing_twice(
    place: Place, embedder: Embedder, reader: LineReader
) -> None:
    embedder.go.set()
    queued = [await place.upload(f"{number}.txt", f"Number {number}.") for number in range(20)]
    async with Worker(place.runtime).working(), Worker(place.runtime).working():
        for document in queued:
            await place.ready(document)
    assert sorted(reader.names) == sorted(f"{number}.txt" for number in range(20))
    assert embedder.embedded == 20


async def test_a_worker_that_stops_lets_go_and_the_next_goes_on(
    place: Place, embedder: Embedder, reader: LineReader
) -> None:
    document = await place.upload("a.txt", "A note.")
    async with asyncio.timeout(30), Worker(place.runtime).working():
        await embedder.entered.wait()
    assert (await place.shown(document)).searchable is Searchable.WORDS
    embedder.go.set()
    async with Worker(place.runtime).working():
        await place.ready(document)
    assert reader.names == ["a.txt"]


async def test_a_worker_shows_that_it_lives(place: Place, fresh: DatabaseUnderTest, embedder: Embedder) -> None:
    await place.upload("a.txt", "A note.")

    def beat() -> Any:
        with psycopg.connect(fresh.owner_dsn) as connection:
            return connection.execute("SELECT max(last_heartbeat) FROM procrastinate.procrastinate_workers").fetchone()

    async with Worker(place.runtime, heartbeat=0.05).working():
        await embedder.entered.wait()
        first = beat()

        async def later() -> bool:
            return bool(beat() > first)

        await until(later)


async def test_a_worker_outlives_its_connections(place: Place, embedder: Embedder, fresh: DatabaseUnderTest) -> None:
    embedder.go.set()
    worker = Worker(place.runtime, heartbeat=0.05)
    async with worker.working():
        for name in ("before.txt", "after.txt"):
            document = await place.upload(name, f"In {name}.")
            worker.wake(place.tenant.id)
            await place.ready(document)
            with psycopg.connect(fresh.owner_dsn, autocommit=True) as owner:
                owner.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND usename = 'intramuros_app'"
                )


async def test_a_defect_ends_neither_keeper_nor_worker(
    place: Place, embedder: Embedder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    embedder.go.set()
    tripped: list[str] = []

    def once(name: str) -> None:
        real = getattr(Queue, name)

        async def trips(self: Queue, *args: Any, **kwargs: Any) -> Any:
            if name not in tripped:
                tripped.append(name)
                raise RuntimeError("hunter2")
            return await real(self, *args, **kwargs)

        monkeypatch.setattr(Queue, name, trips)

    once("take_over")
    once("work")
    worker = Worker(place.runtime)
    async with worker.working():

        async def both() -> bool:
            return len(tripped) == 2

        await until(both)
        document = await place.upload("a.txt", "A note.")
        worker.wake(place.tenant.id)
        await place.ready(document)
    assert "unexpected error" in caplog.text
    assert "hunter2" not in caplog.text


async def test_one_document_with_a_defect_does_not_stop_the_next(
    place: Place, embedder: Embedder, reader: LineReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder.go.set()
    read = reader.read

    async def trips(path: Any, name: str) -> Any:
        if name == "first.txt":
            raise RuntimeError("hunter2")
        return await read(path, name)

    monkeypatch.setattr(reader, "read", trips)
    first, second = await place.upload("first.txt", "One."), await place.upload("second.txt", "Two.")
    await drained(place)
    assert (await place.shown(second)).state is DocumentState.READY
    left = await place.shown(first)
    assert (left.state, left.reason_code) == (DocumentState.QUEUED, "internal")
    assert left.reason
    assert "hunter2" not in left.reason


async def drained(place: Place) -> None:
    worker = Worker(place.runtime)
    async with worker.working(processing=False):
        await worker.drain(place.tenant.id)


async def test_without_an_embedder_a_document_is_found_by_its_words_and_tried_again(
    site: Site, fresh: DatabaseUnderTest
) -> None:
    async def missing(*_: Any) -> Any:
        raise ModelMissing

    place = Place(site.runtime, site.demo.tenant)
    found, site.runtime.open_embedder = site.runtime.open_embedder, missing
    await site.runtime.close()
    document = await place.upload("a.md", "# Leave\n\nThirty kangaroo days.\n")
    await site.context.worker.drain(place.tenant.id)
    left = await place.shown(document)
    assert (left.state, left.reason_code, left.searchable) == ("queued", "model_missing", "words")
    hits = await search.search(site.runtime.db, place.admin, "kangaroo", None, embedder_id="fake:bag-64:1", mode="bm25")
    assert [hit.document_id for hit in hits] == [document.id]
    # Its job waits for the time that was noted with it.
    assert waiting(fresh) == [str(document.id)]
    site.runtime.open_embedder = found
    async with site.client(site.demo.tokens["admin"]) as client, Worker(site.runtime).working():
        assert (await client.post(f"/v1/documents/{document.id}/retry")).status_code == 200
        await place.ready(document)


async def test_a_document_another_process_works_on_is_left_alone(place: Place, embedder: Embedder) -> None:
    embedder.go.set()
    document = await place.upload("a.txt", "A note.")
    async with documents.processing(place.runtime.db, place.tenant.id, document.id) as mine:
        assert mine
        await drained(place)
        assert (await place.shown(document)).state is DocumentState.PROCESSING
    await drained(place)
    assert (await place.shown(document)).state is DocumentState.READY


async def test_files_found_inside_get_jobs_of_their_own(place: Place, embedder: Embedder) -> None:
    embedder.go.set()
    inner = inside("b.txt", f"Inner.\n{inside('c.txt', 'Innermost.')}")
    await place.upload("a.txt", f"Outer.\n{inner}")
    await drained(place)
    found = await documents.listing(place.runtime.db, place.admin)
    assert [(one.path, one.state) for one in found] == [
        ("a.txt", DocumentState.READY),
        ("a.txt/b.txt", DocumentState.READY),
        ("a.txt/b.txt/c.txt", DocumentState.READY),
    ]


async def test_what_was_deleted_while_it_waited_is_no_fault(
    place: Place, embedder: Embedder, caplog: pytest.LogCaptureFixture, fresh: DatabaseUnderTest
) -> None:
    embedder.go.set()
    document = await place.upload("a.txt", "A note.")
    worker = Worker(place.runtime)
    async with worker.working(processing=False):
        await worker._queue.fill(place.tenant.id)
        await place.runtime.ingestor.delete(place.admin, document.id)
        await worker.drain(place.tenant.id)
    assert waiting(fresh) == []
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]
