"""Waiting for a folder to change: told, not told, and while it is not there."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from ingest import watching

Round = Callable[[], AsyncIterator[set[str]]]


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> list[Round]:
    """What the library does each time it is asked to listen; after the last it tells nothing, for ever."""
    played: list[Round] = []

    async def nothing() -> AsyncIterator[set[str]]:
        await asyncio.Event().wait()
        yield set()

    def listen(*_: Any, **options: Any) -> AsyncIterator[set[str]]:
        assert options["force_polling"] is False
        return (played.pop(0) if played else nothing)()

    monkeypatch.setattr(watching, "awatch", listen)
    return played


async def test_a_change_is_told(tmp_path: Path) -> None:
    async with asyncio.timeout(30), watching.watching(tmp_path) as watch:
        # The task has begun to listen when it first waits.
        await asyncio.sleep(0)
        (tmp_path / "a.md").write_text("text")
        await watch.next()


async def test_without_a_change_it_is_time_to_look_again(
    tmp_path: Path, rounds: list[Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "TOLD", 0.0)
    async with asyncio.timeout(30), watching.watching(tmp_path) as watch:
        await watch.next()
    assert rounds == []


async def test_files_being_written_are_looked_at_soon(
    tmp_path: Path, rounds: list[Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "SOON", 0.0)
    async with asyncio.timeout(30), watching.watching(tmp_path) as watch:
        await watch.next(soon=True)
    assert rounds == []


async def test_a_folder_that_is_not_there_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(watching, "UNTOLD", 0.0)
    folder = tmp_path / "share"
    async with asyncio.timeout(30), watching.watching(folder) as watch:
        await asyncio.sleep(0)
        await watch.next()
    assert caplog.messages == ["changes are looked for, not told"]


async def test_where_the_system_tells_nothing_it_is_asked_again(
    tmp_path: Path, rounds: list[Round], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_watches_left() -> AsyncIterator[set[str]]:
        raise OSError(28, "No space left on device")
        yield set()

    async def tells() -> AsyncIterator[set[str]]:
        yield {"a.md"}
        await asyncio.Event().wait()

    monkeypatch.setattr(watching, "UNTOLD", 0.0)
    rounds += [no_watches_left, tells]
    async with asyncio.timeout(30), watching.watching(tmp_path) as watch:
        while rounds:
            await watch.next()


async def test_a_share_that_was_mounted_anew_is_listened_to_anew(tmp_path: Path, rounds: list[Round]) -> None:
    folder = tmp_path / "share"
    folder.mkdir()

    async def unmounted() -> AsyncIterator[set[str]]:
        folder.rename(tmp_path / "away")
        folder.mkdir()
        # Nothing happens in what is listened to, only time passes.
        yield set()
        raise AssertionError("still listening to the old folder")

    again = asyncio.Event()

    async def mounted() -> AsyncIterator[set[str]]:
        again.set()
        await asyncio.Event().wait()
        yield set()

    rounds += [unmounted, mounted]
    async with asyncio.timeout(30), watching.watching(folder) as watch:
        await watch.next()
        await again.wait()
