"""From a file to searchable chunks, and out again: what commands, routes and workers call."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal
from uuid import UUID
from weakref import WeakValueDictionary

from core.errors import IngestError, NotFound
from core.records import Document, DocumentState, Principal, Receipt, Revision
from core.settings import Settings
from inference.interfaces import Embedder
from ingest.album import Album, Place
from ingest.files import FileStore
from ingest.intake import Intake, safe_name
from ingest.jail import Jail
from ingest.kinds import DRAWN, kind_of
from ingest.processing import DONE, OpenEmbedder, Processor, Reader
from ingest.scanning import files_below, passed_over, shown_path
from storage import collections, documents, tending, users
from storage.database import Database

# Pictures of pages that are drawn at once, whatever is being read: a person waits for them.
DRAWERS: Final = 2

Outcome = Literal["new", "changed", "unchanged", "failed"]


@dataclass(frozen=True, slots=True)
class Result:
    """A document after ingestion. `failed`: its `reason` says why; an older version stays searchable."""

    document: Document
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Progress:
    """A file is done: number `done` of `total`, which grows by the files found inside others.

    `result` is None when it was passed over: `skipped`.
    """

    done: int
    total: int
    path: str
    result: Result | None
    skipped: str | None = None


class Ingestor:
    """Takes documents in and out of one database and one file store. Call `close` in the end.

    `embedder` is one, or what opens a tenant's at the first need of it.
    """

    def __init__(
        self,
        db: Database,
        embedder: Embedder | OpenEmbedder,
        files: FileStore,
        settings: Settings,
        reader: Reader | None = None,
    ) -> None:
        self._db = db
        self._files = files
        self._settings = settings
        self._reader = reader or Jail(settings)
        self._intake = Intake(db, files, settings)
        open_embedder = embedder if callable(embedder) else _opener(embedder)
        self._processor = Processor(db, open_embedder, self._intake, settings, self._reader)
        self._entering = asyncio.Lock()
        self._drawing = asyncio.Semaphore(DRAWERS)
        self._album = Album()
        self._turns: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()

    async def close(self) -> None:
        """End the reader. Safe to call twice."""
        await self._reader.close()

    # --- in ---

    async def ingest_path(
        self, tenant_id: UUID, collection: str, path: Path, root: Path, *, source: str | None = None
    ) -> Result:
        """Ingest one file, known by its path below `root`. The same bytes are not read twice.

        A file that cannot be read gives outcome `failed`. Files found inside it are queued. Raises NotFound for a path
        that is no file, IngestError for one that may not be read, and InferenceError or StorageError where the
        machinery, not the file, is at fault.
        """
        home = await collections.ensure(self._db, tenant_id, collection)
        return await self._ingest(tenant_id, home.id, path, root, source)

    async def _ingest(self, tenant_id: UUID, collection_id: UUID, path: Path, root: Path, source: str | None) -> Result:
        async with self._entering:
            document, registered = await self._intake.enter(tenant_id, collection_id, path, root, source)
            turn = self._turns.setdefault(document.id, asyncio.Lock())
        # A copy of a file that is under way waits for it, and is then unchanged.
        waited = turn.locked()
        copied = waited and document.path != shown_path(path, root)
        async with turn:
            if document.path == shown_path(path, root):
                document = await self._intake.described(tenant_id, document, path)
            if document.state not in DONE:
                document = await (
                    self.process(tenant_id, document.id) if waited else self._processor.process(tenant_id, document)
                )
        if document.state is DocumentState.FAILED:
            return Result(document, "failed")
        return Result(document, "unchanged" if copied else registered)

    async def ingest_files(
        self, tenant_id: UUID, collection: str, paths: Sequence[Path], root: Path, *, source: str | None = None
    ) -> AsyncIterator[Progress]:
        """Ingest files and what is found inside them, telling each as it is done; some are read ahead of others.

        They are registered in the order given. A file that is gone or may not be read is passed over. Errors: those of
        `ingest_path` where the machinery is at fault; what was done by then is kept.
        """

        home = await collections.ensure(self._db, tenant_id, collection)

        async def one(path: Path) -> Progress:
            shown = shown_path(path, root)
            try:
                return Progress(0, 0, shown, await self._ingest(tenant_id, home.id, path, root, source))
            except (IngestError, NotFound) as error:
                return Progress(0, 0, shown, None, error.message)

        async def inside(document: Document) -> Progress:
            done = await self.process(tenant_id, document.id)
            return Progress(0, 0, done.path, Result(done, "failed" if done.state is DocumentState.FAILED else "new"))

        done, total = 0, len(paths)
        async for step in _abreast(map(one, paths), self._settings.concurrency):
            done += 1
            yield replace(step, done=done, total=total)
        tried: set[UUID] = set()
        while found := [each for each in await self._found_inside(tenant_id) if each.id not in tried]:
            tried.update(document.id for document in found)
            total += len(found)
            async for step in _abreast(map(inside, found), self._settings.concurrency):
                done += 1
                yield replace(step, done=done, total=total)

    async def ingest_folder(
        self, tenant_id: UUID, collection: str, folder: Path, root: Path | None = None
    ) -> AsyncIterator[Progress]:
        """Ingest every file below a folder and what is found inside, as `ingest_files`.

        Documents are known by their paths below `root`, which is the folder itself when not given.
        Files of kinds that are not read, empty files, and links that lead out of the folder are passed over.
        """
        root = root or folder
        found = await asyncio.to_thread(files_below, folder)
        reasons = {path: await asyncio.to_thread(passed_over, path, folder) for path in found}
        wanted = [path for path, reason in reasons.items() if reason is None]
        passed = len(found) - len(wanted)
        for number, (path, reason) in enumerate(((p, r) for p, r in reasons.items() if r is not None), start=1):
            yield Progress(number, len(found), shown_path(path, root), None, reason)
        async for step in self.ingest_files(tenant_id, collection, wanted, root):
            yield replace(step, done=step.done + passed, total=step.total + passed)
        await self.sweep(tenant_id)

    async def accept_upload(
        self,
        tenant_id: UUID,
        collection: str,
        filename: str,
        data: bytes | AsyncIterator[bytes],
        *,
        by: UUID | None = None,
    ) -> Document:
        """Keep an upload of the user `by`, to be processed.

        Raises UnsupportedFormat, ActiveContent, EmptyFile, FileTooLarge.
        """
        name = safe_name(filename)
        kind_of(name)
        home = await collections.ensure(self._db, tenant_id, collection)
        return await self._intake.keep(tenant_id, home.id, name, data, by=by)

    async def process(self, tenant_id: UUID, document_id: UUID) -> Document:
        """Make a registered document searchable, or failed with its reason; what it is afterwards.

        When another process works on it, it comes back as it is. A fault that may pass is noted with the document, with
        the time of its next try, and raised: InferenceError, StorageError. Raises NotFound.
        """
        document = await self._document(tenant_id, document_id)
        return document if document.state in DONE else await self._processor.process(tenant_id, document)

    # --- out ---

    async def picture(self, tenant_id: UUID, document: Document, revision: Revision, page: int, width_px: int) -> bytes:
        """A page (from 1) of one revision of a document as PNG, `width_px` wide where its shape allows.

        Raises NotFound where there is none: of another format, beyond the last page, or of a revision whose file was
        not kept. Raises IngestError for what the file is to blame for, ReaderUnavailable, StorageError.
        """
        if document.media_type not in DRAWN or page > (revision.pages or 0) or not revision.sha256:
            raise NotFound("There is no picture of this page.")
        place = Place(tenant_id, revision.sha256, page, width_px)
        if (kept := self._album.get(place)) is not None:
            return kept
        async with self._drawing:
            if revision.number != document.revision and not self._files.path(tenant_id, revision.sha256).is_file():
                raise NotFound("The file of this revision was not kept.")
            path = self._intake.stored(tenant_id, revision.sha256)
            drawn = await self._reader.picture(path, document.path, page, width_px)
        self._album.put(place, drawn)
        return drawn

    async def delete(self, principal: Principal, document_id: UUID) -> Receipt:
        """Remove a document with all that was made of it, what was found inside it, and the files.

        The receipt counts each. Raises Forbidden for who is no admin, NotFound.
        """
        async with self._files.guard(principal.tenant_id):
            before = await documents.digests(self._db, principal.tenant_id)
            receipt = await tending.delete(self._db, principal, document_id)
            unused = before - await documents.digests(self._db, principal.tenant_id)
            gone = sum([await self._files.remove(principal.tenant_id, sha256) for sha256 in unused])
        for sha256 in unused:
            self._album.forget(principal.tenant_id, sha256)
        return Receipt(receipt.what, {**receipt.counts, "files": gone})

    async def sweep(self, tenant_id: UUID) -> int:
        """Remove stored files that no document and no kept revision refers to any more; how many went."""
        return await self._intake.sweep(tenant_id)

    async def _found_inside(self, tenant_id: UUID) -> list[Document]:
        return [each for each in await documents.pending(self._db, tenant_id) if each.parent_id is not None]

    async def _document(self, tenant_id: UUID, document_id: UUID) -> Document:
        return await documents.get(self._db, users.operator(tenant_id), document_id)


def _opener(embedder: Embedder) -> OpenEmbedder:
    async def opened(_: UUID) -> Embedder:
        return embedder

    return opened


async def _abreast(work: Iterable[Coroutine[Any, Any, Progress]], at_once: int) -> AsyncIterator[Progress]:
    """Run so many at a time, begun in their order; each result as it comes. The first error ends all."""
    waiting = iter(work)
    going: set[asyncio.Task[Progress]] = set()
    try:
        while True:
            while len(going) < at_once and (coroutine := next(waiting, None)) is not None:
                going.add(asyncio.create_task(coroutine))
            if not going:
                return
            done, going = await asyncio.wait(going, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                yield task.result()
    finally:
        for task in going:
            task.cancel()
        await asyncio.gather(*going, return_exceptions=True)
