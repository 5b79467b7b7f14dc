"""Files come in: bytes kept in the store, registered by path and digest, refused where that needs no reading."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path, PureWindowsPath
from typing import Final
from uuid import UUID

from core.errors import EmptyFile, IngestError, IntramurosError, NotFound, StorageError
from core.records import Document
from core.settings import Settings
from ingest import gate
from ingest.clean import clean
from ingest.files import FileStore, digest
from ingest.kinds import EXTENSIONS
from ingest.metadata import beside
from ingest.parse import humanised
from ingest.scanning import shown_path
from storage import documents, sidecars, users
from storage.database import Database

log = logging.getLogger(__name__)

_LONGEST_NAME: Final = 200


class Intake:
    """Registers documents in one database and one file store."""

    def __init__(self, db: Database, files: FileStore, settings: Settings) -> None:
        self._db = db
        self._files = files
        self._settings = settings

    async def enter(
        self, tenant_id: UUID, collection_id: UUID, path: Path, root: Path, source: str | None
    ) -> tuple[Document, documents.Registered]:
        """Store and register a file. One over the limit is noted as failed and not kept.

        Raises NotFound where there is none, IngestError where it may not be read.
        """
        size = await asyncio.to_thread(size_of, path)
        keep = size <= self._settings.max_file_bytes
        async with self._files.guard(tenant_id):
            try:
                stored = await self._files.put(tenant_id, path) if keep else await asyncio.to_thread(digest, path)
            except PermissionError as error:
                raise IngestError(f"The file {path.name} may not be read. Grant this user the right.") from error
            except FileNotFoundError as error:
                raise NotFound(f"There is no file {path}.") from error
            document, registered = await self._register(
                tenant_id, collection_id, shown_path(path, root), stored.sha256, stored.size, source=source
            )
        if not keep and registered != "unchanged":
            document = await self._refuse(tenant_id, document, path)
        return document, registered

    async def described(self, tenant_id: UUID, document: Document, path: Path) -> Document:
        """The document with what the sidecar beside its file says. That one is gone is noticed by a sync alone."""
        sidecar = await asyncio.to_thread(beside, path)
        if sidecar is None:
            return document
        return await sidecars.describe(self._db, tenant_id, document.id, sidecar)

    async def keep(
        self,
        tenant_id: UUID,
        collection_id: UUID,
        name: str,
        data: bytes | AsyncIterator[bytes],
        parent_id: UUID | None = None,
        by: UUID | None = None,
    ) -> Document:
        """Store bytes and register them under a name. Raises EmptyFile, FileTooLarge."""
        temporary = await self._files.receive(tenant_id, data, self._settings.max_file_bytes)
        try:
            if await asyncio.to_thread(size_of, temporary) == 0:
                raise EmptyFile()
            async with self._files.guard(tenant_id):
                stored = await self._files.adopt(tenant_id, temporary)
                document, _ = await self._register(
                    tenant_id, collection_id, name, stored.sha256, stored.size, parent_id=parent_id, by=by
                )
        finally:
            temporary.unlink(missing_ok=True)
        return document

    async def sweep(self, tenant_id: UUID) -> int:
        """Remove stored files that no document and no kept revision refers to any more; how many went."""
        async with self._files.guard(tenant_id):
            return await self._files.sweep(tenant_id, await documents.digests(self._db, tenant_id))

    def stored(self, tenant_id: UUID, sha256: str) -> Path:
        """Where these bytes lie. Raises StorageError where another machine has them."""
        path = self._files.path(tenant_id, sha256)
        if not path.is_file():
            raise StorageError(
                "The stored file is not on this machine. Let all workers share the folder files below INTRAMUROS_HOME, "
                "or upload it again."
            )
        return path

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
        by: UUID | None = None,
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
            by=by,
        )

    async def _refuse(self, tenant_id: UUID, document: Document, path: Path) -> Document:
        """Fail a document for what the gate says of a file that was not kept."""
        try:
            gate.check(path, max_bytes=self._settings.max_file_bytes)
        except IngestError as error:
            await fail(self._db, tenant_id, document, error)
        return await documents.get(self._db, users.operator(tenant_id), document.id)


async def fail(db: Database, tenant_id: UUID, document: Document, error: IntramurosError) -> None:
    """Note why a document cannot be searched, while these bytes are the ones registered."""
    await documents.fail(db, tenant_id, document.id, error.code, error.message, sha256=document.sha256)
    log.info("document failed", extra={"document": str(document.id), "code": error.code})


def safe_name(filename: str) -> str:
    """An uploaded file's name without folders and unprintable characters, its extension kept."""
    base = PureWindowsPath(filename.replace("/", "\\")).name
    words = "".join(char for char in clean(base)[0] if char.isprintable()).strip()
    suffix = Path(words).suffix[:_LONGEST_NAME]
    stem = words.removesuffix(suffix)[: _LONGEST_NAME - len(suffix)]
    return (stem or "document") + suffix


def size_of(path: Path) -> int:
    """Bytes. Raises NotFound where there is no such file."""
    if not path.is_file():
        raise NotFound(f"There is no file {path}.")
    return path.stat().st_size
