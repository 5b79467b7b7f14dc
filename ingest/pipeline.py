"""From a file to searchable chunks: register, parse, chunk, embed, replace in one transaction; or say why not."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Literal
from uuid import UUID

import numpy as np

from core.errors import EmptyFile, IngestError, IntramurosError, NotFound, StorageError
from core.records import Chunk, Document, DocumentState, ParsedDocument, Principal, Receipt
from core.settings import Settings
from inference.interfaces import Embedder, Vectors
from ingest import gate
from ingest.chunking import chunk, embedded_text
from ingest.clean import clean
from ingest.files import FileStore, digest
from ingest.parse import humanised, parse
from storage import collections, documents, users
from storage.database import Database

log = logging.getLogger(__name__)

# Enough for the embedder to keep its workers busy, little enough to show progress and to stop at.
EMBED_BATCH = 32
_LONGEST_NAME = 200

Outcome = Literal["new", "changed", "unchanged", "failed"]


@dataclass(frozen=True, slots=True)
class Result:
    """A document after ingestion. `failed`: its `reason` says why; an older version stays searchable."""

    document: Document
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Progress:
    """One file of a folder is done: number `done` of `total`. `result` is None when it was passed over: `skipped`."""

    done: int
    total: int
    path: str
    result: Result | None
    skipped: str | None = None


class Ingestor:
    """Takes documents in and out of one database and one file store."""

    def __init__(self, db: Database, embedder: Embedder, files: FileStore, settings: Settings) -> None:
        self._db = db
        self._embedder = embedder
        self._files = files
        self._max_bytes = settings.max_file_bytes

    # --- in ---

    async def ingest_path(self, tenant_id: UUID, collection: str, path: Path, root: Path) -> Result:
        """Ingest one file, known by its path below `root`. The same bytes are not read twice.

        A file that cannot be read gives outcome `failed`. Raises NotFound for a path that is no file, and
        InferenceError or StorageError where the machinery, not the file, is at fault.
        """
        size = await asyncio.to_thread(_size, path)
        name = _shown_path(path, root)
        home = await collections.ensure(self._db, tenant_id, collection)
        # A file over the limit is noted as failed, but not kept.
        keep = size <= self._max_bytes
        async with self._files.guard(tenant_id):
            try:
                stored = await self._files.put(tenant_id, path) if keep else await asyncio.to_thread(digest, path)
            except PermissionError as error:
                raise IngestError(f"The file {path.name} may not be read. Grant this user the right.") from error
            except FileNotFoundError as error:
                raise NotFound(f"There is no file {path}.") from error
            document, registered = await self._register(tenant_id, home.id, name, stored.sha256, stored.size)
        if registered == "unchanged":
            return Result(document, "unchanged")
        if not keep:
            return Result(await self._note_failure(tenant_id, document, path), "failed")
        done = await self.process(tenant_id, document.id)
        return Result(done, "failed" if done.state is DocumentState.FAILED else registered)

    async def ingest_folder(
        self, tenant_id: UUID, collection: str, folder: Path, root: Path | None = None
    ) -> AsyncIterator[Progress]:
        """Ingest every file below a folder, in order of their paths, telling each as it is done.

        Documents are known by their paths below `root`, which is the folder itself when not given.
        Files of kinds that are not read, empty files, and links that lead out of the folder are passed over.
        """
        found = await asyncio.to_thread(_files_below, folder)
        for number, path in enumerate(found, start=1):
            result, skipped = None, await asyncio.to_thread(_passed_over, path, folder)
            if skipped is None:
                try:
                    result = await self.ingest_path(tenant_id, collection, path, root or folder)
                except (IngestError, NotFound) as error:
                    # Not readable for this user, or gone since the folder was listed: the others still go in.
                    skipped = error.message
            yield Progress(number, len(found), _shown_path(path, root or folder), result, skipped)
        await self.sweep(tenant_id)

    async def accept_upload(
        self, tenant_id: UUID, collection: str, filename: str, data: bytes | AsyncIterator[bytes]
    ) -> Document:
        """Keep an upload and queue it for `process`. Raises UnsupportedFormat, EmptyFile, FileTooLarge."""
        name = safe_name(filename)
        gate.kind_of(name)
        home = await collections.ensure(self._db, tenant_id, collection)
        temporary = await self._files.receive(tenant_id, data, self._max_bytes)
        try:
            if await asyncio.to_thread(_size, temporary) == 0:
                raise EmptyFile()
            async with self._files.guard(tenant_id):
                stored = await self._files.adopt(tenant_id, temporary)
                document, _ = await self._register(tenant_id, home.id, name, stored.sha256, stored.size)
        finally:
            temporary.unlink(missing_ok=True)
        return document

    async def process(self, tenant_id: UUID, document_id: UUID) -> Document:
        """Make a registered document searchable, or failed with its reason; what it is afterwards.

        When another process works on it, it comes back as it is. Raises NotFound, InferenceError, StorageError.
        """
        async with documents.processing(self._db, tenant_id, document_id) as mine:
            document = await self._document(tenant_id, document_id)
            # Newer bytes may be registered while the older ones are read: go on until what was read is current.
            while mine and document.state is not DocumentState.READY:
                before = document.sha256
                document = await self._attempt(tenant_id, document)
                if document.state is DocumentState.FAILED and document.sha256 == before:
                    break
        return document

    # --- out ---

    async def delete(self, principal: Principal, document_id: UUID) -> Receipt:
        """Remove a document with its chunks, vectors, words and file; the receipt counts each.

        Raises Forbidden for who is no admin, NotFound.
        """
        document = await documents.get(self._db, principal, document_id)
        async with self._files.guard(principal.tenant_id):
            receipt = await documents.delete(self._db, principal, document_id)
            used = await self._used(principal.tenant_id)
            gone = 0 if document.sha256 in used else await self._files.remove(principal.tenant_id, document.sha256)
        return Receipt(receipt.what, {**receipt.counts, "files": gone})

    async def sweep(self, tenant_id: UUID) -> int:
        """Remove stored files that no document refers to any more (replaced versions); how many went."""
        async with self._files.guard(tenant_id):
            return await self._files.sweep(tenant_id, await self._used(tenant_id))

    # --- steps ---

    async def _register(
        self, tenant_id: UUID, collection_id: UUID, name: str, sha256: str, size: int
    ) -> tuple[Document, documents.Registered]:
        kind = gate.EXTENSIONS.get(Path(name).suffix.lower())
        return await documents.register(
            self._db,
            tenant_id,
            collection_id,
            path=name,
            sha256=sha256,
            media_type=kind.value if kind else "application/octet-stream",
            size=size,
            title=humanised(Path(name).stem),
        )

    async def _attempt(self, tenant_id: UUID, document: Document) -> Document:
        """One run over the bytes now registered."""
        try:
            parsed, chunks = await self._read(tenant_id, document)
            vectors = await self._embed(parsed.title, chunks)
            stored = await documents.replace_chunks(
                self._db,
                tenant_id,
                document.id,
                parsed,
                chunks,
                vectors,
                embedder_id=self._embedder.id,
                sha256=document.sha256,
            )
        except IngestError as error:
            await documents.fail(self._db, tenant_id, document.id, error.code, error.message)
            log.info("document failed", extra={"document": str(document.id), "code": error.code})
            return await self._document(tenant_id, document.id)
        except Exception as error:
            await self._note_fault(tenant_id, document, error)
            raise
        for warning in parsed.warnings:
            log.info("document warning", extra={"document": str(document.id), "warning": warning})
        return stored

    async def _read(self, tenant_id: UUID, document: Document) -> tuple[ParsedDocument, list[Chunk]]:
        path = self._files.path(tenant_id, document.sha256)
        if not path.is_file():
            raise IngestError("The stored file is missing. Upload or ingest it again.")

        def read() -> tuple[ParsedDocument, list[Chunk]]:
            parsed = parse(path, max_bytes=self._max_bytes, name=document.path)
            return parsed, chunk(parsed)

        return await asyncio.to_thread(read)

    async def _embed(self, title: str, chunks: Sequence[Chunk]) -> Vectors:
        texts = [embedded_text(title, piece) for piece in chunks]
        batches = [
            await self._embedder.embed_passages(texts[at : at + EMBED_BATCH])
            for at in range(0, len(texts), EMBED_BATCH)
        ]
        return np.concatenate(batches) if batches else np.empty((0, self._embedder.dimension), np.float32)

    async def _note_failure(self, tenant_id: UUID, document: Document, path: Path) -> Document:
        """Fail a document for what the gate says of a file that was not kept."""
        try:
            gate.check(path, max_bytes=self._max_bytes)
        except IngestError as error:
            await documents.fail(self._db, tenant_id, document.id, error.code, error.message)
        return await self._document(tenant_id, document.id)

    async def _note_fault(self, tenant_id: UUID, document: Document, error: Exception) -> None:
        """Leave a reason behind for a fault that is not the file's; the fault itself goes on to the caller."""
        known = error if isinstance(error, IntramurosError) else IntramurosError()
        log.error("ingestion stopped", extra={"document": str(document.id), "error": type(error).__name__})
        try:
            await documents.fail(self._db, tenant_id, document.id, known.code, known.message)
        except StorageError:
            log.warning("the failure could not be noted", extra={"document": str(document.id)})

    async def _document(self, tenant_id: UUID, document_id: UUID) -> Document:
        return await documents.get(self._db, users.operator(tenant_id), document_id)

    async def _used(self, tenant_id: UUID) -> set[str]:
        """Digests of every file that a document of the tenant refers to, whatever its collection."""
        return {document.sha256 for document in await documents.listing(self._db, users.operator(tenant_id))}


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


def _shown_path(path: Path, root: Path) -> str:
    """The path below `root` with forward slashes; bytes that are no UTF-8 are shown as U+FFFD."""
    below = path.relative_to(root) if path.is_relative_to(root) else Path(path.name)
    return os.fsencode(below.as_posix()).decode("utf-8", errors="replace")


def _files_below(folder: Path) -> list[Path]:
    def hidden(path: Path) -> bool:
        return any(part.startswith(".") for part in path.relative_to(folder).parts)

    return sorted(path for path in folder.rglob("*") if path.is_file() and not hidden(path))


def _passed_over(path: Path, folder: Path) -> str | None:
    if not path.resolve().is_relative_to(folder.resolve()):
        return "a link that leads out of the folder"
    if not gate.supported(path):
        return "not a supported format"
    if not path.is_file():
        return "gone since the folder was listed"
    return "empty" if path.stat().st_size == 0 else None
