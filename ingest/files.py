"""Originals by their sha256 under `home/files/<tenant>/`: written whole or not at all, never under a given name."""

import asyncio
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from core.errors import FileTooLarge, StorageError

_BLOCK = 1024 * 1024
_PAUSE = 0.02
_TEMPORARY = ".part"
# Where an embedded PostgreSQL keeps its files, below home.
_DATABASE = "postgres"
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Seconds after which a temporary file that nobody writes to is left over from a process that ended.
_STALE = 3600.0


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored file: its digest in hexadecimal and its size in bytes."""

    sha256: str
    size: int


class FileStore:
    """The files of all tenants below `home`. One of them may be used by several documents of its tenant."""

    def __init__(self, home: Path) -> None:
        self._root = home / "files"

    def path(self, tenant_id: UUID, sha256: str) -> Path:
        """Where a file lies, whether or not it is there."""
        if not _SHA256.fullmatch(sha256):
            raise ValueError("not a sha256 in hexadecimal")
        return self._root / str(tenant_id) / sha256

    async def put(self, tenant_id: UUID, source: Path) -> Stored:
        """Copy a file in. The caller holds `guard` until a document refers to it.

        Raises StorageError when it cannot be stored (a full disk), OSError when `source` cannot be read.
        """
        return await asyncio.to_thread(self._copy, tenant_id, source)

    async def receive(self, tenant_id: UUID, data: bytes | AsyncIterator[bytes], max_bytes: int) -> Path:
        """Write an upload to a temporary file of the store; `adopt` makes it one of its files.

        Raises FileTooLarge, and StorageError when it cannot be stored.
        """
        temporary = self._temporary(tenant_id)
        size = 0
        try:
            # Closing a file tries once more to write what a full disk did not take.
            with storing(), temporary.open("xb") as file:
                async for block in _blocks(data):
                    size += len(block)
                    if size > max_bytes:
                        raise FileTooLarge()
                    await asyncio.to_thread(file.write, block)
                await asyncio.to_thread(_flush, file)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary

    async def adopt(self, tenant_id: UUID, temporary: Path) -> Stored:
        """Give a received file its place. The caller holds `guard` until a document refers to it.

        Raises StorageError.
        """

        def move() -> Stored:
            with storing():
                stored = digest(temporary)
                temporary.replace(self.path(tenant_id, stored.sha256))
                return stored

        return await asyncio.to_thread(move)

    async def remove(self, tenant_id: UUID, sha256: str) -> int:
        """Remove a file; how many went (0 or 1). The caller holds `guard` and knows that no document refers to it."""
        path = self.path(tenant_id, sha256)

        return await asyncio.to_thread(_unlink, path)

    async def sweep(self, tenant_id: UUID, used: Collection[str]) -> int:
        """Remove every file that no document refers to, and what uploads that broke off left; how many went.

        The caller holds `guard`.
        """
        folder = self._root / str(tenant_id)

        def clear() -> int:
            entries = list(folder.iterdir()) if folder.is_dir() else []
            return sum(_unlink(entry) for entry in entries if _is_stray(entry, used))

        return await asyncio.to_thread(clear)

    async def forget(self, tenant_id: UUID) -> int:
        """Remove the folder of a tenant that is gone; how many files went with it. Raises StorageError."""
        folder = self._root / str(tenant_id)

        def clear() -> int:
            if not folder.exists():
                return 0
            files = sum(_SHA256.fullmatch(entry.name) is not None for entry in folder.iterdir())
            with storing():
                shutil.rmtree(folder)
            return files

        return await asyncio.to_thread(clear)

    async def left(self, tenant_id: UUID) -> list[Path]:
        """Whatever in the whole home folder is named after a tenant; what is in the database's own files, it knows."""
        names = (str(tenant_id), tenant_id.hex)

        def look() -> list[Path]:
            home = self._root.parent
            found = [entry for entry in home.iterdir() if entry != home / _DATABASE] if home.is_dir() else []
            below = (path for entry in found for path in (entry, *entry.rglob("*")))
            return [path for path in below if any(name in path.name for name in names)]

        return await asyncio.to_thread(look)

    @asynccontextmanager
    async def guard(self, tenant_id: UUID) -> AsyncIterator[None]:
        """Keep other processes from removing what is being added, and the reverse. Raises StorageError."""
        with storing():
            descriptor = os.open(self._folder(tenant_id) / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            # Not waited for in a thread: waiters would take every thread that the holder needs for its own work, and
            # a cancelled one would take the lock all the same.
            while not _locked(descriptor):  # noqa: ASYNC110 another process may hold it: there is nothing to await
                await asyncio.sleep(_PAUSE)
            yield
        finally:
            # Closing a descriptor lets its lock go.
            os.close(descriptor)

    def _folder(self, tenant_id: UUID) -> Path:
        folder = self._root / str(tenant_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def _temporary(self, tenant_id: UUID) -> Path:
        with storing():
            folder = self._folder(tenant_id)
        return folder / f".{secrets.token_hex(8)}{_TEMPORARY}"

    def _copy(self, tenant_id: UUID, source: Path) -> Stored:
        temporary = self._temporary(tenant_id)
        digester, size = hashlib.sha256(), 0
        try:
            with source.open("rb") as original, storing(), temporary.open("xb") as copy:
                while block := original.read(_BLOCK):
                    digester.update(block)
                    size += len(block)
                    copy.write(block)
                _flush(copy)
            # Hashed as copied: a file that changes meanwhile is stored under what was stored.
            with storing():
                temporary.replace(self.path(tenant_id, digester.hexdigest()))
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return Stored(digester.hexdigest(), size)


@contextmanager
def storing() -> Iterator[None]:
    """Turn what the file system says of our own files into StorageError, the cause kept."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"A file could not be stored: {error.strerror or type(error).__name__}. Make room where INTRAMUROS_HOME "
            "is, and give this user the right to write there; nothing was half written."
        ) from error


def digest(path: Path) -> Stored:
    """Digest and size of a file, read in blocks."""
    digester, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digester.update(block)
            size += len(block)
    return Stored(digester.hexdigest(), size)


def _unlink(path: Path) -> int:
    there = path.exists()
    path.unlink(missing_ok=True)
    return int(there)


def _is_stray(path: Path, used: Collection[str]) -> bool:
    if path.name.endswith(_TEMPORARY):
        return time.time() - path.stat().st_mtime > _STALE
    return _SHA256.fullmatch(path.name) is not None and path.name not in used


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def _blocks(data: bytes | AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if isinstance(data, bytes):
        yield data
        return
    async for block in data:
        yield block
