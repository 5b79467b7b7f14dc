"""What was decided about answers that waited is taken up: their graphs go on, and their turns say what came of it."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from langgraph.types import Command

from agent.language.words import say
from agent.workflow.approving import decided
from agent.workflow.graph import build
from agent.workflow.run import Run
from core.errors import StorageError
from core.records import Answer, Pending, Principal
from storage import approvals, checkpoints, documents, runs, sessions, threads
from storage.database import Database

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Resumed:
    """All that the last step of the graph needs of a run."""

    answer: Answer | None
    awaiting: tuple[str, ...] = field(default=())


async def settle(db: Database, principal: Principal, session_id: UUID) -> None:
    """Bring one's own session up to date before it is shown: runs that were killed say so, decisions are taken up.

    Safe to be killed at any point: it is done again at the next look.
    """
    await runs.repair(db, principal, session_id)
    for held, approved, reason in await approvals.decided(db, principal, session_id):
        async with sessions.holding(db, principal, session_id) as free:
            if not free:  # another process does it now, or a question runs: next time
                return
            decision = await _decision(db, principal, held, approved, reason)
            answer = await _resumed(db, principal, held, decision)
            await approvals.settle(db, principal, held, answer)


async def _decision(
    db: Database, principal: Principal, held: Pending, approved: bool, reason: str | None
) -> dict[str, Any]:
    """What was decided, unless the asker may not read any more what is cited."""
    cited = {citation.document_id for citation in held.answer.citations if citation.origin == "library"}
    if approved and not cited <= await documents.visible(db, principal, cited):
        return {"approved": False, "reason": say("out_of_reach", held.answer.language)}
    return {"approved": approved, "reason": reason}


async def _resumed(db: Database, principal: Principal, held: Pending, decision: Mapping[str, Any]) -> Answer:
    """The answer that the graph ends with; where its state is not there any more, what it would have ended with."""
    config: Any = {"configurable": {"thread_id": threads.thread_id(principal, held.run_id)}}
    context = _Resumed(held.answer, held.collections)
    try:
        graph = build(checkpoints.open_saver(db, principal))
        if (await graph.aget_state(config)).next:
            await graph.ainvoke(Command(resume=dict(decision)), config, context=cast("Run", context))
            if context.answer is not None:
                return context.answer
    except StorageError as error:
        logger.warning("not resumed", extra={"code": error.code})
    return decided(held.answer, dict(decision))
