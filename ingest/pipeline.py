"""From a file to searchable chunks: register, read, store what was read, add vectors; or say why not.

Every step is kept as it is done. Whatever ends the process, the next one goes on after the last step: a document whose
bytes were read needs only its missing vectors.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import Any, Final, Literal, Protocol
from uuid import UUID
from weakref import WeakValueDictionary

from core.errors import EmbeddingSetMismatch, EmptyFile, IngestError, IntramurosError, NotFound, StorageError
from core.records import Attachment, Document, DocumentState, ParsedDocument, Principal, Receipt
from core.settings import Settings
from inference.interfaces import Embedder
from ingest import gate
from ingest.album import Album, Place
from ingest.attachments import Takings
from ingest.clean import clean
from ingest.embedding import AHEAD, Batches
from ingest.files import FileStore, digest
from ingest.jail import Jail
from ingest.kinds import DRAWN, EXTENSIONS, kind_of, supported
from ingest.metadata import is_sidecar
from ingest.options import ParseOptions
from ingest.parse import humanised
from ingest.reading import Reading
from ingest.scanning import shown_path
from storage import collections, documents, users
from storage.database import Database

log = logging.getLogger(__name__)

# Documents that are read at once. More would take from the embedder what it waits for.
READERS: Final = 2
# Pictures of pages that are drawn at once, whatever is being read: a person waits for them.
DRAWERS: Final = 2
# Mail in an archive in a mail: deeper than this nothing is taken out.
DEEPEST: Final = 3
# Seconds before the second try of a document; each further pause is four times as long.
FIRST_PAUSE: Final = 15.0
LONGEST_PAUSE: Final = 3600.0
_DONE = (DocumentState.READY, DocumentState.FAILED)
_LONGEST_NAME = 200

Outcome = Literal["new", "changed", "unchanged", "failed"]
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
        self._embedder = embedder if callable(embedder) else _opener(embedder)
        self._batches = Batches(db)
        self._entering = asyncio.Lock()
        self._reading = asyncio.Semaphore(READERS)
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
        async with self._entering:
            document, registered = await self._enter(tenant_id, collection, path, root, source)
            turn = self._turns.setdefault(document.id, asyncio.Lock())
        # A copy of a file that is under way waits for it, and is then unchanged.
        waited = turn.locked()
        copied = waited and document.path != shown_path(path, root)
        async with turn:
            if registered != "unchanged" and document.size <= self._settings.max_file_bytes:
                document = await (
                    self.process(tenant_id, document.id) if waited else self._process(tenant_id, document)
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

        async def one(path: Path) -> Progress:
            shown = shown_path(path, root)
            try:
                return Progress(0, 0, shown, await self.ingest_path(tenant_id, collection, path, root, source=source))
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
        found = await asyncio.to_thread(_files_below, folder)
        reasons = {path: await asyncio.to_thread(_passed_over, path, folder) for path in found}
        wanted = [path for path, reason in reasons.items() if reason is None]
        passed = len(found) - len(wanted)
        for number, (path, reason) in enumerate(((p, r) for p, r in reasons.items() if r is not None), start=1):
            yield Progress(number, len(found), shown_path(path, root), None, reason)
        async for step in self.ingest_files(tenant_id, collection, wanted, root):
            yield replace(step, done=step.done + passed, total=step.total + passed)
        await self.sweep(tenant_id)

    async def accept_upload(
        self, tenant_id: UUID, collection: str, filename: str, data: bytes | AsyncIterator[bytes]
    ) -> Document:
        """Keep an upload, to be processed. Raises UnsupportedFormat, ActiveContent, EmptyFile, FileTooLarge."""
        name = safe_name(filename)
        kind_of(name)
        home = await collections.ensure(self._db, tenant_id, collection)
        return await self._keep(tenant_id, home.id, name, data)

    async def process(self, tenant_id: UUID, document_id: UUID) -> Document:
        """Make a registered document searchable, or failed with its reason; what it is afterwards.

        When another process works on it, it comes back as it is. A fault that may pass is noted with the document, with
        the time of its next try, and raised: InferenceError, StorageError. Raises NotFound.
        """
        document = await self._document(tenant_id, document_id)
        return document if document.state in _DONE else await self._process(tenant_id, document)

    # --- out ---

    async def picture(self, tenant_id: UUID, document: Document, page: int, width_px: int) -> bytes:
        """A page (from 1) of a document's newest revision as PNG, `width_px` wide where its shape allows.

        Raises NotFound where there is none: of another format, beyond the last page, or while newer bytes wait to be
        read. Raises IngestError for what the file is to blame for, ReaderUnavailable, StorageError.
        """
        current = document.read_sha256 == document.sha256
        if not current or document.media_type not in DRAWN or page > (document.pages or 0):
            raise NotFound("There is no picture of this page.")
        place = Place(tenant_id, document.sha256, page, width_px)
        if (kept := self._album.get(place)) is not None:
            return kept
        async with self._drawing:
            drawn = await self._reader.picture(self._stored(tenant_id, document), document.path, page, width_px)
        self._album.put(place, drawn)
        return drawn

    async def delete(self, principal: Principal, document_id: UUID) -> Receipt:
        """Remove a document with all that was made of it, what was found inside it, and the files.

        The receipt counts each. Raises Forbidden for who is no admin, NotFound.
        """
        async with self._files.guard(principal.tenant_id):
            before = await documents.digests(self._db, principal.tenant_id)
            receipt = await documents.delete(self._db, principal, document_id)
            unused = before - await documents.digests(self._db, principal.tenant_id)
            gone = sum([await self._files.remove(principal.tenant_id, sha256) for sha256 in unused])
        for sha256 in unused:
            self._album.forget(principal.tenant_id, sha256)
        return Receipt(receipt.what, {**receipt.counts, "files": gone})

    async def sweep(self, tenant_id: UUID) -> int:
        """Remove stored files that no document refers to any more (replaced versions); how many went."""
        async with self._files.guard(tenant_id):
            return await self._files.sweep(tenant_id, await documents.digests(self._db, tenant_id))

    # --- registering ---

    async def _enter(
        self, tenant_id: UUID, collection: str, path: Path, root: Path, source: str | None
    ) -> tuple[Document, documents.Registered]:
        """Store and register a file. One over the limit is noted as failed and not kept."""
        size = await asyncio.to_thread(_size, path)
        home = await collections.ensure(self._db, tenant_id, collection)
        keep = size <= self._settings.max_file_bytes
        async with self._files.guard(tenant_id):
            try:
                stored = await self._files.put(tenant_id, path) if keep else await asyncio.to_thread(digest, path)
            except PermissionError as error:
                raise IngestError(f"The file {path.name} may not be read. Grant this user the right.") from error
            except FileNotFoundError as error:
                raise NotFound(f"There is no file {path}.") from error
            document, registered = await self._register(
                tenant_id, home.id, shown_path(path, root), stored.sha256, stored.size, source=source
            )
        if not keep and registered != "unchanged":
            document = await self._refuse(tenant_id, document, path)
        return document, registered

    async def _keep(
        self,
        tenant_id: UUID,
        collection_id: UUID,
        name: str,
        data: bytes | AsyncIterator[bytes],
        parent_id: UUID | None = None,
    ) -> Document:
        """Store bytes and register them under a name."""
        temporary = await self._files.receive(tenant_id, data, self._settings.max_file_bytes)
        try:
            if await asyncio.to_thread(_size, temporary) == 0:
                raise EmptyFile()
            async with self._files.guard(tenant_id):
                stored = await self._files.adopt(tenant_id, temporary)
                document, _ = await self._register(
                    tenant_id, collection_id, name, stored.sha256, stored.size, parent_id=parent_id
                )
        finally:
            temporary.unlink(missing_ok=True)
        return document

    async def _register(
        self,
        tenant_id: UUID,
        collection_id: UUID,
        name: str,
        sha256: str,
        size: int,
        *,
        source: str | None = None,
        parent_id: UUID | None = None,
    ) -> tuple[Document, documents.Registered]:
        kind = EXTENSIONS.get(Path(name).suffix.lower())
        return await documents.register(
            self._db,
            tenant_id,
            collection_id,
            path=name,
            sha256=sha256,
            media_type=kind.value if kind else "application/octet-stream",
            size=size,
            title=humanised(Path(name).stem),
            source=source,
            parent_id=parent_id,
        )

    async def _refuse(self, tenant_id: UUID, document: Document, path: Path) -> Document:
        """Fail a document for what the gate says of a file that was not kept."""
        try:
            gate.check(path, max_bytes=self._settings.max_file_bytes)
        except IngestError as error:
            await self._fail(tenant_id, document, error)
        return await self._document(tenant_id, document.id)

    # --- steps ---

    async def _process(self, tenant_id: UUID, document: Document) -> Document:
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
            await self._fail(tenant_id, document, error)
            return await self._document(tenant_id, document.id)
        except NotFound:
            raise
        except Exception as error:
            await self._note_fault(tenant_id, document, error)
            raise

    async def _read(self, tenant_id: UUID, document: Document) -> Document:
        async with self._reading:
            reading = await self._reader.read(self._stored(tenant_id, document), document.path)
        # Before the document itself is stored: were the process to end in between, they would be lost.
        parsed = await self._take_out(tenant_id, document, reading.parsed)
        for warning in parsed.warnings:
            log.info("document warning", extra={"document": str(document.id), "warning": warning.code})
        return await documents.store_revision(
            self._db,
            tenant_id,
            document.id,
            parsed,
            reading.chunks,
            sha256=document.sha256,
            keep=self._settings.keep_revisions,
        )

    def _stored(self, tenant_id: UUID, document: Document) -> Path:
        path = self._files.path(tenant_id, document.sha256)
        if not path.is_file():
            raise StorageError(
                "The stored file is not on this machine. Let all workers share the folder files below INTRAMUROS_HOME, "
                "or upload it again."
            )
        return path

    async def _embed(self, tenant_id: UUID, document: Document) -> Document:
        """Add the vectors that are missing. Where sets were swapped meanwhile it comes back for another attempt."""
        embedder = await self._embedder(tenant_id)
        try:
            return await self._embed_by(embedder, tenant_id, document)
        except EmbeddingSetMismatch:
            if (await self._embedder(tenant_id)).id == embedder.id:
                raise
            return await self._document(tenant_id, document.id)

    async def _embed_by(self, embedder: Embedder, tenant_id: UUID, document: Document) -> Document:
        """Batch by batch; vectors of other documents are made in between."""
        more = True
        while more:
            missing = await documents.missing_vectors(
                self._db, tenant_id, document.id, embedder_id=embedder.id, limit=AHEAD
            )
            more = len(missing) == AHEAD
            async for part, vectors in self._batches.made(embedder, missing):
                ids = [one.chunk_id for one in part]
                await documents.add_vectors(self._db, tenant_id, document.id, ids, vectors, embedder_id=embedder.id)
        # Looks once more: where a chunk came in meanwhile, the document is not ready and is attempted again.
        return await documents.finish(self._db, tenant_id, document.id, embedder_id=embedder.id, sha256=document.sha256)

    async def _fail(self, tenant_id: UUID, document: Document, error: IntramurosError) -> None:
        await documents.fail(self._db, tenant_id, document.id, error.code, error.message, sha256=document.sha256)
        log.info("document failed", extra={"document": str(document.id), "code": error.code})

    async def _note_fault(self, tenant_id: UUID, document: Document, error: Exception) -> None:
        """Leave a reason and a time for the next try behind; the fault itself goes on to the caller."""
        known = error if isinstance(error, IntramurosError) else IntramurosError()
        tries = document.progress.attempts if document.progress else 1
        log.warning(
            "ingestion stopped", extra={"document": str(document.id), "error": type(error).__name__, "tries": tries}
        )
        try:
            if tries >= self._settings.max_attempts or isinstance(error, EmbeddingSetMismatch):
                await self._fail(tenant_id, document, known)
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
                await documents.delete(self._db, users.operator(tenant_id), child.id)
        return replace(parsed, attachments=(), warnings=(*parsed.warnings, *takings.warnings))

    async def _child(self, tenant_id: UUID, parent: Document, attachment: Attachment) -> Document:
        name = f"{parent.path}/{attachment.name}"
        return await self._keep(tenant_id, parent.collection_id, name, attachment.data, parent.id)

    async def _depth(self, tenant_id: UUID, document: Document) -> int:
        """In how many documents this one lies."""
        depth = 0
        while document.parent_id is not None:
            document, depth = await self._document(tenant_id, document.parent_id), depth + 1
        return depth

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


# --- names and folders ------------------------------------------------------------------------------------------------


def safe_name(filename: str) -> str:
    """An uploaded file's name without folders and unprintable characters, its extension kept."""
    base = PureWindowsPath(filename.replace("/", "\\")).name
    words = "".join(char for char in clean(base)[0] if char.isprintable()).strip()
    suffix = Path(words).suffix[:_LONGEST_NAME]
    stem = words.removesuffix(suffix)[: _LONGEST_NAME - len(suffix)]
    return (stem or "document") + suffix


def _size(path: Path) -> int:
    if not path.is_file():
        raise NotFound(f"There is no file {path}.")
    return path.stat().st_size


def _files_below(folder: Path) -> list[Path]:
    def hidden(path: Path) -> bool:
        return any(part.startswith(".") for part in path.relative_to(folder).parts)

    return sorted(path for path in folder.rglob("*") if path.is_file() and not hidden(path))


def _passed_over(path: Path, folder: Path) -> str | None:
    if not path.resolve().is_relative_to(folder.resolve()):
        return "a link that leads out of the folder"
    if is_sidecar(path):
        return "a sidecar: it counts where the folder is synced"
    if not supported(path):
        return "not a supported format"
    if not path.is_file():
        return "gone since the folder was listed"
    return "empty" if path.stat().st_size == 0 else None
