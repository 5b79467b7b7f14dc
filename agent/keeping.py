"""What is kept of a run while it goes on and when it ends, however it ends."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

from agent.workflow.run import Run
from core.errors import Cancelled, IntramurosError
from core.records import Principal, RunState, Step
from storage import runs
from storage.database import Database

logger = logging.getLogger(__name__)


@asynccontextmanager
async def kept(
    db: Database, principal: Principal, session_id: UUID | None, run: Run, *, checkpointed: bool
) -> AsyncIterator[UUID]:
    """Note a run while inside, under the id it yields. Whoever leaves with an answer has stored it by then."""
    run_id = await runs.begin(db, principal, session_id, run.question, run.mode, checkpointed=checkpointed)

    async def end(state: RunState, code: str | None = None) -> None:
        try:
            await runs.ended(db, principal, run_id, state, steps(run), code)
        except IntramurosError as error:
            # The next look at the session finds that it is not running.
            logger.warning("the end of a run was not stored", extra={"code": error.code})

    try:
        yield run_id
    except (asyncio.CancelledError, GeneratorExit, Cancelled):
        # Shielded: whoever cancels twice must not leave a run that seems to go on.
        await asyncio.shield(asyncio.ensure_future(end(RunState.CANCELLED)))
        raise
    except IntramurosError as error:
        await end(RunState.FAILED, error.code)
        raise
    except Exception:
        await end(RunState.FAILED, IntramurosError.code)
        raise


def steps(run: Run) -> tuple[Step, ...]:
    """What is kept of a run's trace: nothing where traces are not to be kept."""
    return run.trace.steps if run.settings.trace_days else ()
