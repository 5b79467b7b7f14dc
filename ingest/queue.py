"""The queue: one job in PostgreSQL for each document that waits, whichever process registered it.

The documents are the truth of what waits; jobs only say who is next. Whatever becomes of a job, `fill` makes it anew,
and a job too many finds its document done, or being worked on, and ends.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final
from uuid import UUID

import psycopg
from procrastinate import App, PsycopgConnector, exceptions
from procrastinate.jobs import DeleteJobCondition, Job, Status
from procrastinate.worker import Worker

from core.errors import DatabaseUnavailable
from storage import jobs
from storage.database import CONNECT_SECONDS, Database

log = logging.getLogger(__name__)

TASK: Final = "process"
# Seconds between two signs of life of a worker; after three that are missing, its jobs are somebody else's.
HEARTBEAT: Final = 10.0
MISSED: Final = 3
# Jobs that are written in one statement.
BATCH: Final = 500
# Seconds that jobs have to let go when a worker is told to stop.
STOP_SECONDS: Final = 10.0
OPTIONS: Final = "-c search_path=procrastinate -c timezone=UTC"

Process = Callable[[UUID, UUID], Awaitable[None]]


class Queue:
    """The jobs of all tenants on one database; inside `opened` only. `process` gets a tenant's and a document's id."""

    def __init__(self, db: Database, process: Process, *, heartbeat: float = HEARTBEAT) -> None:
        self._db = db
        self._process = process
        self._heartbeat = heartbeat
        self._taken = 0
        connector = PsycopgConnector(
            conninfo=db.dsn,
            kwargs={"options": OPTIONS, "connect_timeout": CONNECT_SECONDS, "gssencmode": "disable"},
            min_size=1,
            max_size=2,
            timeout=CONNECT_SECONDS,
        )
        self._app = App(connector=connector)
        self._app.task(name=TASK)(self._run)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Be connected while inside. Raises DatabaseUnavailable."""
        with _translated():
            await self._app.open_async()
        try:
            yield
        finally:
            await self._app.close_async()

    async def fill(self, tenant_id: UUID, *, only: UUID | None = None, parent: UUID | None = None) -> int:
        """Make a job for each document of a tenant that waits and has none; how many were made.

        `only`: for that document; `parent`: for those found inside that one. The more of a tenant's jobs wait, the
        later a new one is taken: thousands of one tenant do not hold up the few of another. Errors: StorageError.
        """
        missing, waiting = await jobs.missing(self._db, tenant_id, only=only, parent=parent)
        made = [_job(tenant_id, one, waiting + place) for place, one in enumerate(missing)]
        with _translated():
            for at in range(0, len(made), BATCH):
                await self._defer(made[at : at + BATCH])
        return len(made)

    async def take_over(self) -> int:
        """Drop the jobs of workers that give no sign of life, for `fill` to make anew; how many.

        Errors: StorageError.
        """
        manager, silence = self._app.job_manager, MISSED * self._heartbeat
        with _translated():
            stalled = list(await manager.get_stalled_jobs(seconds_since_heartbeat=silence))
            for job in stalled:
                # Gone already: another worker looks after it too.
                with suppress(exceptions.ConnectorException):
                    await manager.finish_job(job, Status.FAILED, delete_job=True)
            await manager.prune_stalled_workers(silence)
        if stalled:
            log.warning("jobs of a lost worker are taken over", extra={"jobs": len(stalled)})
        return len(stalled)

    async def work(self, stopping: asyncio.Event, *, concurrency: int) -> None:
        """Process jobs of all tenants, `concurrency` at a time, until told to stop; what is under way is then let go.

        Returns early, or raises DatabaseUnavailable, when the database is lost.
        """
        worker = self._worker(concurrency, wait=True, listen_notify=True, shutdown_graceful_timeout=0)
        running = asyncio.create_task(worker.run(), name="queue")  # type: ignore[no-untyped-call]
        told = asyncio.create_task(stopping.wait())
        try:
            await asyncio.wait({running, told}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            told.cancel()
            worker.stop()  # type: ignore[no-untyped-call]
            await asyncio.wait({running}, timeout=STOP_SECONDS)
        if not running.done():
            log.error("a job does not let go; it is left behind")
            running.cancel()
            return
        with _translated():
            running.result()

    async def drain(self, tenant_id: UUID, *, concurrency: int) -> None:
        """Process the jobs of one tenant until none is due, new ones included. Raises DatabaseUnavailable."""
        taken = -1
        while taken != self._taken:
            taken = self._taken
            worker = self._worker(concurrency, wait=False, listen_notify=False, queues=[str(tenant_id)])
            with _translated():
                await worker.run()  # type: ignore[no-untyped-call]

    def _worker(
        self,
        concurrency: int,
        *,
        wait: bool,
        listen_notify: bool,
        queues: Sequence[str] | None = None,
        shutdown_graceful_timeout: float | None = None,
    ) -> Worker:
        return _Worker(
            self._app,
            queues=queues,
            name=None,
            concurrency=concurrency,
            wait=wait,
            listen_notify=listen_notify,
            shutdown_graceful_timeout=shutdown_graceful_timeout,
            # A job that ended says nothing that its document does not.
            delete_jobs=DeleteJobCondition.ALWAYS,
            install_signal_handlers=False,
            update_heartbeat_interval=self._heartbeat,
            stalled_worker_timeout=MISSED * self._heartbeat,
        )

    async def _run(self, tenant: str, document: str) -> None:
        self._taken += 1
        await self._process(UUID(tenant), UUID(document))

    async def _defer(self, made: list[Job]) -> None:
        try:
            await self._app.job_manager.batch_defer_jobs_async(made)
        except exceptions.AlreadyEnqueued:
            # Another process fills at the same time, and none of these was written.
            for one in made if len(made) > 1 else []:
                await self._defer([one])


class _Worker(Worker):
    async def _periodic_deferrer(self) -> None:
        # There are no periodic tasks. Were this to return, the end of another side task, such as a heartbeat that could
        # not be written, would no longer end the worker: procrastinate waits for the first of them only.
        await asyncio.Event().wait()


def _job(tenant_id: UUID, missing: jobs.Missing, ahead: int) -> Job:
    document = str(missing.document_id)
    return Job(
        queue=str(tenant_id),
        task_name=TASK,
        priority=-ahead,
        lock=None,
        queueing_lock=document,
        task_kwargs={"tenant": str(tenant_id), "document": document},
        scheduled_at=missing.at,
    )


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (exceptions.ConnectorException, psycopg.OperationalError) as error:
        raise DatabaseUnavailable from error
