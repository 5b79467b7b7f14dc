"""A run ends soon after somebody asked for it, whatever process they asked: the database carries the word."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from core.errors import Cancelled, StorageError

logger = logging.getLogger(__name__)

# Seconds between two looks.
PAUSE: Final = 0.4


@asynccontextmanager
async def cancellable(asked: Callable[[], Awaitable[bool]], *, pause: float = PAUSE) -> AsyncIterator[None]:
    """What is inside is cancelled, and leaves with Cancelled, once `asked` says so."""
    try:
        async with asyncio.timeout(None) as scope:
            watching = asyncio.create_task(_watch(asked, scope, pause), name="cancel watch")
            try:
                yield
            finally:
                watching.cancel()
                await asyncio.wait([watching])
    except TimeoutError as error:
        if scope.expired():
            raise Cancelled from error
        raise


async def _watch(asked: Callable[[], Awaitable[bool]], scope: asyncio.Timeout, pause: float) -> None:
    while True:
        await asyncio.sleep(pause)
        try:
            if await asked():
                scope.reschedule(asyncio.get_running_loop().time())
                return
        except StorageError as error:
            # A database that is away must not end an answer that needs it no more until its end.
            logger.warning("cannot tell whether to stop", extra={"code": error.code})
