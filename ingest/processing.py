"""From a registered document to searchable chunks: read it, store what was read, add vectors; or say why not.

Every step is kept as it is done. Whatever ends the process, the next one goes on after the last step: a document whose
bytes were read needs only its missing vectors.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol
from uuid import UUID

from core.errors import EmbeddingSetMismatch, IngestError, IntramurosError, NotFound, StorageError
from core.records import Attachment, Document, DocumentState, ParsedDocument
from core.settings import Settings
from inference.interfaces import Embedder, Vectors
from ingest.attachments import Takings
from ingest.embedding import AHEAD, Batches
from ingest.intake import Intake, fail
from ingest.options import ParseOptions
from ingest.reading import Reading
from storage import documents, tending, users
from storage.database import Database

log = logging.getLogger(__name__)

# Documents that are read at once. More would take from the embedder what it waits for.
READERS: Final = 2
# Mail in an archive in a mail: deeper than this nothing is taken out.
DEEPEST: Final = 3
# Seconds before the second try of a document; each further pause is four times as long.
FIRST_PAUSE: Final = 15.0
LONGEST_PAUSE: Final = 3600.0
DONE: Final = (DocumentState.READY, DocumentState.FAILED)

# The embedder that a tenant's vectors are made with.
OpenEmbedder = Callable[[UUID], Awaitable[Embedder]]


class Reader(Protocol):
    """Reads a document. `ingest.jail.Jail` does so where it can do no harm."""

    async def read(self, path: Path, name: str) -> Reading:
        """The document at `path`, which was given the name `name`. Raises IngestError and its kinds."""
        ...

    async def picture(self, path: Path, name: str, page: int, width_px: int) -> bytes:
        """A page (from 1) of such a document as PNG. Raises NotFound, IngestError and its kinds."""
        ...

    async def close(self) -> None:
        """Let go of what reading needs. Safe to call twice."""
        ...


class Processor:
    """Works on documents that are registered. Each is worked on by one process at a time."""

    def __init__(
        self, db: Database, open_embedder: OpenEmbedder, intake: Intake, settings: Settings, reader: Reader
    ) -> None:
        self._db = db
        self._open_embedder = open_embedder
        self._intake = intake
        self._settings = settings
        self._reader = reader
        self._batches = Batches(db)
        self._reading = asyncio.Semaphore(READERS)

    async def process(self, tenant_id: UUID, document: Document) -> Document:
        """Make a document searchable, or failed with its reason; as it is where another process works on it.

        A fault that may pass is noted with the document, with the time of its next try, and raised: InferenceError,
        StorageError. Raises NotFound.
        """
        async with documents.processing(self._db, tenant_id, document.id) as taken:
            if taken is None:
                return await self._document(tenant_id, document.id)
            document = taken
            # Newer bytes may be registered while the older ones are read: go on until what was read is current.
            while document.state is not DocumentState.READY:
                before = document.sha256
                document = await self._attempt(tenant_id, document)
                if document.state is DocumentState.FAILED and document.sha256 == before:
                    break
        return document

    async def _attempt(self, tenant_id: UUID, document: Document) -> Document:
        """One run over the bytes now registered."""
        try:
            read = document.read_sha256 == document.sha256
            stored = document if read else await self._read(tenant_id, document)
            return await self._embed(tenant_id, stored) if stored.sha256 == document.sha256 else stored
        except IngestError as error:
            await fail(self._db, tenant_id, document, error)
            return await self._document(tenant_id, document.id)
        except NotFound:
            raise
        except Exception as error:
            await self._note_fault(tenant_id, document, error)
            raise

    async def _read(self, tenant_id: UUID, document: Document) -> Document:
        async with self._reading:
            reading = await self._reader.read(self._intake.stored(tenant_id, document.sha256), document.path)
        # Before the document itself is stored: were the process to end in between, they would be lost.
        parsed = await self._take_out(tenant_id, document, reading.parsed)
        for warning in parsed.warnings:
            log.info("document warning", extra={"document": str(document.id), "warning": warning.code})
        stored = await documents.store_revision(
            self._db,
            tenant_id,
            document.id,
            parsed,
            reading.chunks,
            sha256=document.sha256,
            keep=self._settings.keep_revisions,
        )
        if stored.revision > self._settings.keep_revisions:
            # The oldest revision went, and nothing may refer to its file any more.
            await self._intake.sweep(tenant_id)
        return stored

    async def _embed(self, tenant_id: UUID, document: Document) -> Document:
        """Add the vectors that are missing. Where sets were swapped meanwhile it comes back for another attempt."""
        embedder = await self._open_embedder(tenant_id)
        try:
            return await self._embed_by(embedder, tenant_id, document)
        except EmbeddingSetMismatch:
            if (await self._open_embedder(tenant_id)).id == embedder.id:
                raise
            return await self._document(tenant_id, document.id)

    async def _embed_by(self, embedder: Embedder, tenant_id: UUID, document: Document) -> Document:
        """Part by part; vectors of other documents are made in between. The last part is stored as it is finished."""
        place = (self._db, tenant_id, document.id)
        last: tuple[Sequence[int], Vectors] | None = None
        more = True
        while more:
            missing = await documents.missing_vectors(*place, embedder_id=embedder.id, limit=AHEAD)
            more = len(missing) == AHEAD
            async for part, vectors in self._batches.made(embedder, missing):
                last = [one.chunk_id for one in part], vectors
                if more or part[-1] is not missing[-1]:
                    await documents.add_vectors(*place, *last, embedder_id=embedder.id)
                    last = None
        # Looks once more: where a chunk came in meanwhile, the document is not ready and is attempted again.
        return await documents.finish(*place, embedder_id=embedder.id, sha256=document.sha256, last=last)

    async def _note_fault(self, tenant_id: UUID, document: Document, error: Exception) -> None:
        """Leave a reason and a time for the next try behind; the fault itself goes on to the caller."""
        known = error if isinstance(error, IntramurosError) else IntramurosError()
        tries = document.progress.attempts if document.progress else 1
        log.warning(
            "ingestion stopped", extra={"document": str(document.id), "error": type(error).__name__, "tries": tries}
        )
        try:
            if tries >= self._settings.max_attempts or isinstance(error, EmbeddingSetMismatch):
                await fail(self._db, tenant_id, document, known)
            else:
                pause = min(FIRST_PAUSE * 4 ** max(tries - 1, 0), LONGEST_PAUSE)
                await documents.retry_later(
                    self._db, tenant_id, document.id, known.code, known.message, delay_seconds=pause
                )
        except StorageError:
            log.warning("the fault could not be noted", extra={"document": str(document.id)})

    # --- files inside others ---

    async def _take_out(self, tenant_id: UUID, document: Document, parsed: ParsedDocument) -> ParsedDocument:
        """Queue the files found inside a document as documents of their own, and remove those it had before and has no
        more. What comes back holds no files, and tells those that were refused.
        """
        takings = Takings(ParseOptions.of(self._settings))
        deep = await self._depth(tenant_id, document) >= DEEPEST if parsed.attachments else False
        for attachment in parsed.attachments:
            # The reader has met a hostile file: what it names is judged once more on this side.
            if deep:
                takings.refuse(attachment.name, "nested too deeply")
            else:
                takings.take(attachment.name, attachment.data)
        kept = {(await self._child(tenant_id, document, each)).id for each in takings.kept}
        for child in await documents.children(self._db, tenant_id, document.id):
            if child.id not in kept:
                await tending.delete(self._db, users.operator(tenant_id), child.id)
        return replace(parsed, attachments=(), warnings=(*parsed.warnings, *takings.warnings))

    async def _child(self, tenant_id: UUID, parent: Document, attachment: Attachment) -> Document:
        name = f"{parent.path}/{attachment.name}"
        return await self._intake.keep(tenant_id, parent.collection_id, name, attachment.data, parent.id)

    async def _depth(self, tenant_id: UUID, document: Document) -> int:
        """In how many documents this one lies."""
        depth = 0
        while document.parent_id is not None:
            document, depth = await self._document(tenant_id, document.parent_id), depth + 1
        return depth

    async def _document(self, tenant_id: UUID, document_id: UUID) -> Document:
        return await documents.get(self._db, users.operator(tenant_id), document_id)
