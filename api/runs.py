"""One question being answered: in a task of its own, so that whoever waits for it may stop waiting, and it stops."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import cast

import anyio

from api import tasks
from core.errors import InferenceError
from core.records import Answered, Event, Failed, Refused

Final = Answered | Refused | Failed


class Run:
    """Pumps the agent's events. The task matters: a generator with time-outs inside must stay in the task it began in.

    Call `stop` in the end, whatever happened: it cancels what still runs and returns once the model was let go.
    """

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events: asyncio.Queue[Event | Exception] = asyncio.Queue()
        self._task = asyncio.create_task(self._pump(events), name="ask")

    async def next(self, within: float | None = None) -> Event | None:
        """The next event; None when none came `within` so many seconds. Raises what the agent raised."""
        try:
            async with asyncio.timeout(within):
                event = await self._events.get()
        except TimeoutError:
            return None
        if isinstance(event, Exception):
            raise event
        return event

    async def last(self) -> Final:
        """The event that ends the run. Raises what the agent raised."""
        while True:
            event = await self.next()
            if isinstance(event, Final):
                return event

    async def stop(self) -> None:
        """End the run if it still goes on."""
        with anyio.CancelScope(shield=True):
            await tasks.end(self._task)

    async def _pump(self, events: AsyncIterator[Event]) -> None:
        try:
            async with aclosing(cast(AsyncGenerator[Event], events)):
                async for event in events:
                    self._events.put_nowait(event)
            # Nobody waits for this unless the agent broke its promise to end with an outcome.
            self._events.put_nowait(InferenceError())
        except Exception as error:  # noqa: BLE001 not handled here: handed to whoever waits for the next event
            self._events.put_nowait(error)
