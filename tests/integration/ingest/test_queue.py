"""The queue on its own: one job a document, turns between tenants, and nothing lost with a worker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from uuid import UUID

import psycopg
import pytest
from procrastinate import exceptions

from core.errors import DatabaseUnavailable
from core.records import Document, Tenant
from core.settings import Settings
from ingest.files import FileStore
from ingest.pipeline import Ingestor
from ingest.queue import Queue
from storage import documents, migrations
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.reader import LineReader


class Work:
    """What a queue is given to do: remembers the documents; `stopping` is set after so many."""

    def __init__(self, until: int) -> None:
        self.done: list[UUID] = []
        self.stopping = asyncio.Event()
        self._until = until

    async def __call__(self, tenant_id: UUID, document_id: UUID) -> None:
        self.done.append(document_id)
        if len(self.done) == self._until:
            self.stopping.set()


async def nothing(_: UUID, __: UUID) -> None:
    pass


@pytest.fixture
def ingestor(database: Database, tmp_path: Path) -> Ingestor:
    return Ingestor(database, FakeEmbedder(), FileStore(tmp_path), Settings(home=tmp_path), LineReader())


@pytest.fixture
async def queue(database: Database) -> AsyncIterator[Queue]:
    made = Queue(database, nothing)
    async with made.opened():
        yield made


async def uploads(ingestor: Ingestor, tenant: Tenant, count: int) -> list[Document]:
    return [
        await ingestor.accept_upload(tenant.id, "open", f"{number}.txt", f"{tenant.slug} {number}".encode())
        for number in range(count)
    ]


def waiting(fresh: DatabaseUnderTest) -> list[dict[str, object]]:
    """The jobs that wait, in the order in which they will be taken."""
    with psycopg.connect(fresh.owner_dsn) as connection:
        rows = connection.execute(
            "SELECT to_jsonb(j) FROM procrastinate.procrastinate_jobs j WHERE status = 'todo' "
            "ORDER BY priority DESC, id"
        ).fetchall()
    return [row[0] for row in rows]


async def test_a_job_names_a_tenant_and_a_document_and_nothing_else(
    queue: Queue, ingestor: Ingestor, tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    document = await ingestor.accept_upload(tenant.id, "board", "secret-plans.txt", b"A secret.")
    assert await queue.fill(tenant.id) == 1
    (job,) = waiting(fresh)
    assert job["args"] == {"tenant": str(tenant.id), "document": str(document.id)}
    assert "secret" not in str(job)
    assert "board" not in str(job)


@pytest.mark.threat(111)
async def test_a_document_has_one_job_however_often_and_by_whom_it_is_queued(
    database: Database, ingestor: Ingestor, tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    queued = await uploads(ingestor, tenant, 5)
    queues = [Queue(database, nothing) for _ in range(3)]
    async with AsyncExitStack() as stack:
        for queue in queues:
            await stack.enter_async_context(queue.opened())
        await asyncio.gather(*(queue.fill(tenant.id) for queue in queues for _ in range(3)))
    assert {job["queueing_lock"] for job in waiting(fresh)} == {str(document.id) for document in queued}
    assert len(waiting(fresh)) == 5


async def test_many_documents_of_one_tenant_do_not_hold_up_the_few_of_another(
    database: Database, ingestor: Ingestor, tenant: Tenant, other_tenant: Tenant
) -> None:
    work = Work(until=43)
    queue = Queue(database, work)
    many = await uploads(ingestor, tenant, 40)
    async with queue.opened():
        assert await queue.fill(tenant.id) == 40
        few = await uploads(ingestor, other_tenant, 3)
        assert await queue.fill(other_tenant.id) == 3
        async with asyncio.timeout(60):
            await queue.work(work.stopping, concurrency=1)
    # They take turns, and each tenant's are taken in their order.
    assert [work.done.index(document.id) for document in few] == [1, 3, 5]
    assert [one for one in work.done if one not in {document.id for document in few}] == [one.id for one in many]


async def test_the_more_wait_the_later_the_next_is_taken(
    queue: Queue, ingestor: Ingestor, tenant: Tenant, other_tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    await uploads(ingestor, tenant, 10)
    await queue.fill(tenant.id)
    late = await ingestor.accept_upload(tenant.id, "open", "late.txt", b"Late.")
    assert await queue.fill(tenant.id) == 1
    await uploads(ingestor, other_tenant, 1)
    await queue.fill(other_tenant.id)
    jobs = waiting(fresh)
    assert [job["queue_name"] for job in jobs[:2]] == [str(tenant.id), str(other_tenant.id)]
    assert (jobs[-1]["queueing_lock"], jobs[-1]["priority"]) == (str(late.id), -10)


async def test_a_try_that_is_to_come_later_is_queued_for_then(
    queue: Queue, ingestor: Ingestor, tenant: Tenant, database: Database, fresh: DatabaseUnderTest
) -> None:
    (document,) = await uploads(ingestor, tenant, 1)
    await documents.retry_later(database, tenant.id, document.id, "model_missing", "None.", delay_seconds=3600)
    assert await queue.fill(tenant.id) == 1
    (job,) = waiting(fresh)
    assert job["scheduled_at"]
    await queue.drain(tenant.id, concurrency=1)
    assert len(waiting(fresh)) == 1
    # An admin wants it tried now.
    await documents.requeue(database, tenant.id, document.id)
    assert await queue.fill(tenant.id) == 0
    assert [job["scheduled_at"] for job in waiting(fresh)] == [None]


@pytest.mark.threat(111)
async def test_jobs_of_a_lost_worker_are_taken_over(
    queue: Queue, ingestor: Ingestor, tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    (document,) = await uploads(ingestor, tenant, 1)
    await queue.fill(tenant.id)
    with psycopg.connect(fresh.owner_dsn, options="-c search_path=procrastinate") as connection:
        connection.execute("INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now() - interval '1 hour')")
        connection.execute(
            "UPDATE procrastinate_jobs SET status = 'doing', worker_id = (SELECT max(id) FROM procrastinate_workers)"
        )
    assert await queue.take_over() == 1
    assert await queue.take_over() == 0
    assert await queue.fill(tenant.id) == 1
    assert [job["queueing_lock"] for job in waiting(fresh)] == [str(document.id)]


async def test_a_worker_that_cannot_show_that_it_lives_ends(
    database: Database, ingestor: Ingestor, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(_: int) -> None:
        raise OSError("no heartbeat")

    queue = Queue(database, nothing, heartbeat=0.01)
    monkeypatch.setattr(queue._app.job_manager, "update_heartbeat", lost)
    async with queue.opened(), asyncio.timeout(30):
        # Never told to stop.
        await queue.work(asyncio.Event(), concurrency=1)


async def test_a_database_that_is_away_is_said_so(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(**_: object) -> None:
        raise exceptions.ConnectorException

    monkeypatch.setattr(queue._app.job_manager, "get_stalled_jobs", away)
    with pytest.raises(DatabaseUnavailable):
        await queue.take_over()


async def test_the_tables_are_made_anew_for_another_version_of_the_library(
    queue: Queue, ingestor: Ingestor, tenant: Tenant, fresh: DatabaseUnderTest
) -> None:
    await uploads(ingestor, tenant, 2)
    assert await queue.fill(tenant.id) == 2
    with psycopg.connect(fresh.owner_dsn) as connection:
        connection.execute("COMMENT ON SCHEMA procrastinate IS 'procrastinate 0.1'")
    await migrations.migrate(fresh.owner_dsn)
    assert waiting(fresh) == []
    # What waits is known from the documents.
    assert await queue.fill(tenant.id) == 2
    await migrations.migrate(fresh.owner_dsn)
    assert len(waiting(fresh)) == 2
