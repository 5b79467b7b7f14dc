"""Works on the queue, in a task of the server or in a process of its own, and keeps the queue full."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final
from uuid import UUID

from api import problems, tasks
from api.runtime import Runtime
from core.errors import IntramurosError, NotFound
from ingest.queue import HEARTBEAT, STOP_SECONDS, Queue
from storage import merging, runs, tenants

logger = logging.getLogger(__name__)

# Seconds after which the queue is looked at unasked: a process may have ended between registering and queueing.
RECHECK: Final = 60.0
# Seconds between two looks for what is past its days.
PRUNING: Final = 3600.0
# Seconds before work is begun again after the database was lost; doubled at each failure, up to RECHECK.
AGAIN: Final = 1.0


class Worker:
    """Inside `working`, every document that waits has a job, and the jobs are worked on.

    Safe beside any number of others, here and on other machines: each document is worked on by one of them.
    """

    def __init__(self, runtime: Runtime, *, heartbeat: float = HEARTBEAT) -> None:
        self._runtime = runtime
        self._concurrency = runtime.settings.concurrency
        self._queue = Queue(runtime.db, self._process, heartbeat=heartbeat)
        # Tenants to make jobs for now, and all that were ever heard of.
        self._woken: set[UUID] = set()
        self._tenants: set[UUID] = set()
        self._wake = asyncio.Event()

    @asynccontextmanager
    async def working(self, *, processing: bool = True) -> AsyncIterator[None]:
        """Keep the queue full while inside; with `processing`, work on it too. Raises DatabaseUnavailable."""
        stopping = asyncio.Event()
        async with self._queue.opened():
            keeper = asyncio.create_task(self._keep_full(), name="queue keeper")
            merger = asyncio.create_task(self._keep_merged(), name="words merger") if processing else None
            pruner = asyncio.create_task(self._keep_pruned(), name="pruner") if processing else None
            worker = asyncio.create_task(self._work(stopping), name="ingest worker") if processing else None
            try:
                yield
            finally:
                await tasks.end(keeper)
                for one in (merger, pruner):
                    if one is not None:
                        await tasks.end(one)
                stopping.set()
                if worker is not None:
                    await asyncio.wait({worker}, timeout=2 * STOP_SECONDS)
                    await tasks.end(worker)

    def wake(self, tenant_id: UUID) -> None:
        """Say that a document of this tenant was queued."""
        self._woken.add(tenant_id)
        self._wake.set()

    async def drain(self, tenant_id: UUID) -> None:
        """Process what a tenant has waiting, files found inside others included; not what is to be tried again later.

        Inside `working` only. Errors: StorageError.
        """
        await self._queue.fill(tenant_id)
        await self._queue.drain(tenant_id, concurrency=self._concurrency)

    # --- jobs made ---

    async def _keep_full(self) -> None:
        clock = asyncio.get_running_loop().time
        due = clock()
        while True:
            self._wake.clear()
            everybody = clock() >= due
            if everybody:
                due = clock() + RECHECK
            await self._fill(everybody=everybody)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._wake.wait()

    async def _fill(self, *, everybody: bool) -> None:
        try:
            if everybody:
                await self._queue.take_over()
                self._woken |= self._tenants | await self._known()
            while self._woken:
                self._tenants.add(tenant_id := self._woken.pop())
                await self._queue.fill(tenant_id)
        except IntramurosError as error:
            # A database that is away comes back, and everybody's turn with it.
            logger.warning("the queue waits", extra={"code": error.code})
        except Exception as error:  # noqa: BLE001 a defect must not end the only task that makes jobs
            problems.log_defect(error)

    async def _known(self) -> set[UUID]:
        if self._runtime.owner_dsn is not None:
            return {tenant.id for tenant in await tenants.list_all(self._runtime.owner_dsn)}
        # Who may not list the tenants knows its own, and those that were heard of.
        with suppress(NotFound):
            return {(await tenants.get(self._runtime.db, self._runtime.settings.tenant)).id}
        return set()

    async def _keep_merged(self) -> None:
        """Now and then: the words of what was read in go to where a large tenant's searches find them quickly."""
        while True:
            try:
                for tenant_id in self._tenants | await self._known():
                    await merging.merge_all(self._runtime.db, tenant_id)
            except IntramurosError as error:
                logger.warning("words wait to be merged", extra={"code": error.code})
            except Exception as error:  # noqa: BLE001 a defect must not end the only task that keeps searches quick
                problems.log_defect(error)
            await asyncio.sleep(RECHECK)

    async def _keep_pruned(self) -> None:
        """Now and then: checkpoints and traces that are past their days go."""
        while True:
            try:
                for tenant_id in self._tenants | await self._known():
                    await self.prune(tenant_id)
            except IntramurosError as error:
                logger.warning("what is past its days waits", extra={"code": error.code})
            except Exception as error:  # noqa: BLE001 a defect must not end the only task that removes it
                problems.log_defect(error)
            await asyncio.sleep(PRUNING)

    async def prune(self, tenant_id: UUID) -> None:
        """Remove a tenant's checkpoints and traces that are past their days. Errors: StorageError."""
        settings = self._runtime.settings
        days = {"checkpoint_days": settings.checkpoint_days, "trace_days": settings.trace_days}
        removed = await runs.prune(self._runtime.db, tenant_id, **days)
        if any(removed.values()):
            logger.info("pruned", extra={"tenant": str(tenant_id), **removed})

    # --- jobs done ---

    async def _work(self, stopping: asyncio.Event) -> None:
        clock, pause = asyncio.get_running_loop().time, AGAIN
        while not stopping.is_set():
            begun = clock()
            try:
                await self._queue.work(stopping, concurrency=self._concurrency)
            except IntramurosError as error:
                logger.warning("ingestion waits", extra={"code": error.code})
            except Exception as error:  # noqa: BLE001 a defect must not end the only task that makes uploads searchable
                problems.log_defect(error)
            pause = AGAIN if clock() - begun > RECHECK else min(2 * pause, RECHECK)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await stopping.wait()

    async def _process(self, tenant_id: UUID, document_id: UUID) -> None:
        """One job. What keeps a document from being processed stands with it; the job itself never fails."""
        try:
            await self._runtime.ingestor.process(tenant_id, document_id)
            await self._queue.fill(tenant_id, parent=document_id)
        except NotFound:
            logger.info("deleted while it waited", extra={"document": str(document_id)})
        except IntramurosError as error:
            await self._again(tenant_id, document_id, error.code)
        except Exception as error:  # noqa: BLE001 one document that trips over a defect must not stop all others
            problems.log_defect(error)
            await self._again(tenant_id, document_id, IntramurosError.code)

    async def _again(self, tenant_id: UUID, document_id: UUID, code: str) -> None:
        """Queue a document for the time that was noted with it."""
        logger.warning("not ingested", extra={"document": str(document_id), "code": code})
        with suppress(IntramurosError):
            await self._queue.fill(tenant_id, only=document_id)
