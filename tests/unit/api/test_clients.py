"""Work ends with whoever asked for it."""

import asyncio

import pytest
from fastapi import Request
from starlette.types import Message

from api.clients import unless_gone


def request(*messages: str) -> Request:
    """A request whose connection says this, and then nothing more."""
    waiting = list(messages)

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()
        return {"type": waiting.pop(0)}

    return Request({"type": "http", "method": "GET", "headers": []}, receive)


async def test_a_client_that_waits_gets_what_it_asked_for() -> None:
    assert await unless_gone(request("http.request"), asyncio.sleep(0, "done")) == "done"


async def test_an_error_of_the_work_is_raised() -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await unless_gone(request("http.request"), broken())


async def test_the_work_of_a_client_that_goes_away_is_cancelled() -> None:
    ended = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    assert await unless_gone(request("http.request", "http.disconnect"), endless()) is None
    assert ended.is_set()


async def test_the_work_ends_with_whoever_waits_for_it() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def endless() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.create_task(unless_gone(request(), endless()))
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()
