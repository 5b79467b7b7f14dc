"""A run: events pass in order, errors come out, and stopping reaches the agent."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from api.runs import Run
from core.errors import InferenceError, NotFound
from core.records import Event, Failed, Status, Token


async def _finite() -> AsyncIterator[Event]:
    yield Status("searching", "Searching")
    yield Token("Sixteen")
    yield Failed("inference", "broken")


async def test_events_come_in_order() -> None:
    run = Run(_finite())
    assert [await run.next() for _ in range(3)] == [event async for event in _finite()]
    await run.stop()


async def test_the_last_event_is_found() -> None:
    run = Run(_finite())
    assert await run.last() == Failed("inference", "broken")
    await run.stop()


async def test_what_the_agent_raises_is_raised_to_the_waiter() -> None:
    async def broken() -> AsyncIterator[Event]:
        yield Token("x")
        raise NotFound("gone")

    run = Run(broken())
    assert await run.next() == Token("x")
    with pytest.raises(NotFound, match="gone"):
        await run.next()
    await run.stop()


async def test_an_agent_without_an_outcome_is_a_fault_not_a_wait() -> None:
    async def endless() -> AsyncIterator[Event]:
        yield Token("x")

    run = Run(endless())
    with pytest.raises(InferenceError):
        await run.last()
    await run.stop()


async def test_stopping_reaches_the_agent_in_the_task_it_began_in() -> None:
    seen: list[object] = []

    async def waiting() -> AsyncIterator[Event]:
        seen.append(asyncio.current_task())
        try:
            async with asyncio.timeout(3600):
                yield Token("x")
                await asyncio.Event().wait()
        finally:
            seen.append(asyncio.current_task())

    run = Run(waiting())
    assert await run.next() == Token("x")
    assert await run.next(within=0) is None
    await run.stop()
    assert len(seen) == 2
    assert seen[0] is seen[1]


async def test_stopping_twice_and_after_the_end_is_fine() -> None:
    run = Run(_finite())
    await run.last()
    await run.stop()
    await run.stop()
