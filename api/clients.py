"""Work for a client that may go away before it is done."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from fastapi import Request

from api import tasks

# Nobody reads the reply of a client that went away; this is how access logs say so.
GONE: Final = 499

_Result = TypeVar("_Result")


async def unless_gone(request: Request, work: Coroutine[Any, Any, _Result]) -> _Result | None:
    """What the work gives or raises; None once the client has gone away, when the work has been cancelled."""
    working = asyncio.create_task(work)
    gone = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        gone.cancel()
        await tasks.end(working)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
