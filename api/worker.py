"""Makes uploaded documents searchable, one at a time, in a task of the server."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final
from uuid import UUID

from api import problems, tasks
from api.runtime import Runtime
from core.errors import IntramurosError
from core.records import Document
from storage import documents, tenants

logger = logging.getLogger(__name__)

# Seconds after which queues are looked at again unasked: another process may have left something in them.
RECHECK: Final = 60.0


class Worker:
    """Processes what `storage.documents.pending` lists for the tenants it knows.

    Safe beside other processes: each document is worked on under the lock of `storage.documents.processing`.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._tenants: set[UUID] = set()
        self._wake = asyncio.Event()
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Work in the background while inside."""
        task = asyncio.create_task(self._run(), name="ingest worker")
        try:
            yield
        finally:
            await tasks.end(task)

    def wake(self, tenant_id: UUID) -> None:
        """Say that a document of this tenant was queued."""
        self._tenants.add(tenant_id)
        self._wake.set()

    async def drain(self, tenant_id: UUID) -> None:
        """Process everything queued for a tenant; what cannot be read is marked as failed, with the reason.

        Without an embedder everything stays queued: raises ModelMissing and its like.
        """
        async with self._turn:
            queued = await documents.pending(self._runtime.db, tenant_id)
            if queued:
                await self._runtime.embedder()
            for document in queued:
                await self._process(tenant_id, document)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            await self._round()
            with suppress(TimeoutError):
                async with asyncio.timeout(RECHECK):
                    await self._wake.wait()

    async def _round(self) -> None:
        try:
            self._tenants |= await self._known()
            for tenant_id in sorted(self._tenants):
                await self.drain(tenant_id)
        except IntramurosError as error:
            # A database or a model that is away comes back: what is queued stays queued until the next round.
            logger.warning("ingestion waits", extra={"code": error.code})
        except Exception as error:  # noqa: BLE001 a defect must not end the only task that makes uploads searchable
            problems.log_defect(error)

    async def _known(self) -> set[UUID]:
        if self._runtime.owner_dsn is None:
            return {(await tenants.get(self._runtime.db, self._runtime.settings.tenant)).id}
        return {tenant.id for tenant in await tenants.list_all(self._runtime.owner_dsn)}

    async def _process(self, tenant_id: UUID, document: Document) -> None:
        try:
            await self._runtime.ingestor.process(tenant_id, document.id)
        except IntramurosError as error:
            # The ingestor has noted it with the document. NotFound: deleted while it waited.
            logger.warning("not ingested", extra={"document": str(document.id), "code": error.code})
        except Exception as error:  # noqa: BLE001 one document that trips over a defect must not stop all others
            problems.log_defect(error)
