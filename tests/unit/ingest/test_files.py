"""The file store: whole or not at all, under digests only."""

import asyncio
import errno
import hashlib
import io
import os
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from core.errors import FileTooLarge, StorageError
from ingest.files import FileStore

TENANT = UUID(int=1)


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_a_file_is_kept_under_its_digest(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "home")
    source = tmp_path / "odd name.txt"
    source.write_bytes(b"words")
    stored = await store.put(TENANT, source)
    assert stored.sha256 == hashlib.sha256(b"words").hexdigest()
    assert store.path(TENANT, stored.sha256).read_bytes() == b"words"
    assert await store.remove(TENANT, stored.sha256) == 1
    assert await store.remove(TENANT, stored.sha256) == 0


@pytest.mark.parametrize("digest", ["../../etc/passwd", "", "A" * 64, "0" * 63])
def test_only_digests_name_files(tmp_path: Path, digest: str) -> None:
    with pytest.raises(ValueError, match="sha256"):
        FileStore(tmp_path).path(TENANT, digest)


async def test_an_upload_over_the_limit_leaves_nothing(tmp_path: Path) -> None:
    async def blocks() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b"x" * 10

    store = FileStore(tmp_path)
    with pytest.raises(FileTooLarge):
        await store.receive(TENANT, blocks(), 30)
    assert files_below(tmp_path) == []


async def test_an_upload_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    async def blocks() -> AsyncIterator[bytes]:
        yield b"x"
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await FileStore(tmp_path).receive(TENANT, blocks(), 30)
    assert files_below(tmp_path) == []


async def test_sweeping_removes_what_no_document_uses(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    kept = await store.adopt(TENANT, await store.receive(TENANT, b"kept", 10))
    gone = await store.adopt(TENANT, await store.receive(TENANT, b"gone", 10))
    assert await store.sweep(TENANT, {kept.sha256}) == 1
    assert store.path(TENANT, kept.sha256).exists()
    assert not store.path(TENANT, gone.sha256).exists()


async def test_tenants_do_not_share_files(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    stored = await store.adopt(TENANT, await store.receive(TENANT, b"mine", 10))
    assert not store.path(UUID(int=2), stored.sha256).exists()
    assert await store.remove(UUID(int=2), stored.sha256) == 0


async def test_many_waiters_leave_the_holder_its_threads(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))

    async def add(number: int) -> str:
        temporary = await store.receive(TENANT, str(number).encode(), 10)
        async with store.guard(TENANT):
            return (await store.adopt(TENANT, temporary)).sha256

    async with asyncio.timeout(30):
        assert len(set(await asyncio.gather(*map(add, range(4))))) == 4


async def test_a_waiter_that_gives_up_leaves_the_guard_free(tmp_path: Path) -> None:
    store = FileStore(tmp_path)

    async def wait() -> None:
        async with store.guard(TENANT):
            raise AssertionError("the guard was not free")

    async with store.guard(TENANT):
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with asyncio.timeout(30), store.guard(TENANT):
        assert waiting.cancelled()


async def test_the_guard_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    order: list[str] = []

    async def second() -> None:
        async with store.guard(TENANT):
            order.append("second")

    async with store.guard(TENANT):
        waiting = asyncio.create_task(second())
        await asyncio.to_thread(order.append, "first")
    await waiting
    assert order == ["first", "second"]


async def test_what_uploads_that_broke_off_left_is_swept_once_nobody_writes_to_it(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    folder = store.path(TENANT, "0" * 64).parent
    folder.mkdir(parents=True)
    old, new = folder / ".0123.part", folder / ".4567.part"
    for path in (old, new):
        path.write_bytes(b"half a")
    os.utime(old, (0, 0))
    assert await store.sweep(TENANT, set()) == 1
    assert list(folder.iterdir()) == [new]


class FullDisk(io.FileIO):
    """Takes a few bytes and no more."""

    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Path.open

    def opened(path: Path, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if mode != "xb":
            return real(path, mode, *args, **kwargs)
        # Buffered as any file: what the disk does not take is tried once more when the file is closed.
        return io.BufferedWriter(FullDisk(path, "xb"))

    monkeypatch.setattr(Path, "open", opened)


@pytest.mark.usefixtures("full_disk")
async def test_a_full_disk_is_said_in_words_and_leaves_nothing(tmp_path: Path) -> None:
    source = tmp_path / "note.txt"
    source.write_bytes(b"words")
    store = FileStore(tmp_path / "home")
    for keep in (store.put(TENANT, source), store.receive(TENANT, b"words", 100)):
        with pytest.raises(StorageError, match="No space left on device") as error:
            await keep
        assert isinstance(error.value.__cause__, OSError)
    assert files_below(tmp_path / "home") == []


async def test_a_source_that_is_gone_is_no_fault_of_the_store(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await FileStore(tmp_path / "home").put(TENANT, tmp_path / "gone.txt")
