"""The last resort before a refusal: the intranet search that the operator listed, asked once."""

import logging
from typing import Literal

from agent.workflow.run import Run, Task
from agent.workflow.searching import taken
from agent.workflow.state import Change, Context, State, status, within_time
from agent.workflow.steps import passes
from core.errors import EgressDenied, PeerUnavailable

logger = logging.getLogger(__name__)

LastResort = Literal["elsewhere", "refuse"]


def last_resort(run: Run) -> LastResort:
    """Where a question goes that our own documents do not answer: once to the peer, where there is one."""
    return "elsewhere" if run.peer is not None and not run.peer_asked and not run.limit else "refuse"


@within_time
async def elsewhere(state: State, runtime: Context) -> Change:
    """Ask the peer, and have what it gives graded as any passage. One that fails leaves the refusal as it was."""
    run, question = runtime.context, state["standalone"]
    peer, run.peer_asked = run.peer, True
    if peer is None:
        return {"refused": True}
    status(runtime, "searching", "status_peer", name=peer.name)
    try:
        with run.timed("peer"):
            hits = await peer.find(question)
    except (PeerUnavailable, EgressDenied) as error:
        logger.warning("peer not asked", extra={"code": error.code})
        run.trace.note("search", query=question, origin="peer", fault=error.code)
        run.notices.append("peer_failed")
        return {"refused": True}
    handles = taken(run, "search", hits, query=question, origin="peer")
    passed = await passes(run, runtime, question, handles)
    run.tasks = [Task(question, handles, run.answering)] if passed else []
    run.missing = ()
    return {"refused": not passed}
