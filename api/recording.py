"""Puts what the egress policy denied into the audit log, in the chain of the installation.

The attempt itself was refused before: what waits for an entry is whatever comes after it. While an entry cannot be
written, the policy lets nothing out, not to a listed peer either.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from api import problems, tasks
from core.errors import IntramurosError
from policy import ledger
from storage import audit
from storage.database import Database

logger = logging.getLogger(__name__)

ACTION: Final = "egress.denied"
# Seconds between two batches: what is denied meanwhile is counted, so that a flood makes as few entries as a trickle.
PAUSE: Final = 60.0
# Seconds after which a batch that could not be written is tried again.
AGAIN: Final = 1.0


@asynccontextmanager
async def recording(db: Database, *, pause: float = PAUSE) -> AsyncIterator[None]:
    """Record denials while inside, and what is left of them on leaving."""
    loop, denied = asyncio.get_running_loop(), asyncio.Event()
    if ledger.unwritten():
        denied.set()

    def tell() -> None:
        # From any thread, and perhaps from one that outlives the loop.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(denied.set)

    ledger.listen(tell)
    recorder = asyncio.create_task(_keep_recorded(db, denied, pause), name="denials recorder")
    try:
        yield
    finally:
        ledger.listen(None)
        await tasks.end(recorder)
        await write(db)


async def write(db: Database) -> bool:
    """Write what waits, in one transaction; where that fails let nothing out any more. Whether it was written."""
    kept = ledger.unwritten()
    try:
        if kept:
            told = [(trace, f"{denial} x{times}") for denial, (times, trace) in kept.items()]
            await audit.record_all(db, audit.INSTALLATION, ACTION, told)
    except IntramurosError as error:
        ledger.close()
        logger.error("a denial could not be recorded", extra={"code": error.code, "waiting": len(kept)})
        return False
    except Exception as error:  # noqa: BLE001 a defect must close the way out too, and not end the recorder
        ledger.close()
        problems.log_defect(error)
        return False
    ledger.written((denial, times) for denial, (times, _) in kept.items())
    return True


async def _keep_recorded(db: Database, denied: asyncio.Event, pause: float) -> None:
    while True:
        await denied.wait()
        denied.clear()
        if await write(db):
            await asyncio.sleep(pause)
        else:
            denied.set()
            await asyncio.sleep(AGAIN)
