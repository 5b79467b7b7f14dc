"""Ending tasks for certain."""

import asyncio
from typing import Any, Final

# Seconds a cancelled task has to clean up before it is cancelled once more.
PATIENCE: Final = 1.0


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and return when it has ended; what it raised is dropped.

    Once is not enough: before Python 3.12 `asyncio.wait_for`, which the database driver waits with, swallows a
    cancellation that comes in the same moment as what it waits for.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=PATIENCE)
    if not task.cancelled():
        # Looked at, so that asyncio does not report it as never retrieved.
        task.exception()
