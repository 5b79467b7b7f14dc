"""Ending tasks, also one that lets a cancellation pass."""

import asyncio
from contextlib import suppress

import pytest

from api import tasks


async def test_a_waiting_task_ends() -> None:
    task = asyncio.create_task(asyncio.Event().wait())
    await asyncio.sleep(0)
    await tasks.end(task)
    assert task.cancelled()


async def test_a_task_that_swallows_the_first_cancellation_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "PATIENCE", 0.0)
    swallowed = 0

    async def deaf() -> None:
        nonlocal swallowed
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        swallowed += 1
        await asyncio.Event().wait()

    task = asyncio.create_task(deaf())
    await asyncio.sleep(0)
    await tasks.end(task)
    assert swallowed == 1
    assert task.cancelled()


async def test_a_finished_task_is_left_alone_whatever_it_raised() -> None:
    async def broken() -> None:
        raise RuntimeError

    for work in (asyncio.sleep(0), broken()):
        task = asyncio.create_task(work)
        await asyncio.wait({task})
        await tasks.end(task)
        assert not task.cancelled()
