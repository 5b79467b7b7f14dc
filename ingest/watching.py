"""Noticing that something changed below a folder: told by the system where it can, by looking again where it cannot."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from watchfiles import awatch

log = logging.getLogger(__name__)

# Seconds until the next look where nothing was told: files being written are looked at soon; network shares tell of
# their own machine's changes only, so it is never left to telling alone; without telling, looking is all there is.
SOON: Final = 2.5
TOLD: Final = 60.0
UNTOLD: Final = 10.0


class Watch:
    """Waits for something to change below one folder. Made by `watching`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changed = asyncio.Event()
        self._told = True

    async def next(self, *, soon: bool = False) -> None:
        """Return when something changed since the last call, or when it is time to look again."""
        seconds = SOON if soon else TOLD if self._told else UNTOLD
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        self._changed.clear()

    async def listen(self) -> None:
        """Take notice of what the system tells, for ever."""
        while True:
            try:
                await self._listen()
            except (OSError, RuntimeError) as error:
                # No folder now, no right to watch it, or no watches left: RuntimeError is how the library says some.
                if self._told:
                    log.warning("changes are looked for, not told", extra={"error": type(error).__name__})
                self._told = False
                await asyncio.sleep(UNTOLD)

    async def _listen(self) -> None:
        """Listen to the folder that is there now. Ends when it is another one: a share was mounted anew."""
        listened_to = _identity(self._folder)
        events = awatch(
            self._folder,
            watch_filter=None,
            # Never polling inside the library: it would read a share's every name three times a second.
            force_polling=False,
            ignore_permission_denied=True,
            rust_timeout=round(UNTOLD * 1000),
            yield_on_timeout=True,
        )
        async with aclosing(events):
            async for changes in events:
                self._told = True
                if changes:
                    self._changed.set()
                if _identity(self._folder) != listened_to:
                    self._changed.set()
                    return


@asynccontextmanager
async def watching(folder: Path) -> AsyncIterator[Watch]:
    """Watch a folder while inside, whether or not it is there."""
    watch = Watch(folder)
    task = asyncio.create_task(watch.listen(), name="watch folder")
    try:
        yield watch
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _identity(folder: Path) -> tuple[int, int]:
    status = folder.stat()
    return status.st_dev, status.st_ino
