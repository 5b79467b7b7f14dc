"""A process that is killed (SIGKILL, by itself) while it answers: python -m tests.integration.agent.dying ...

Arguments: the app role's address, the ids of tenant, user and session, what to do (`ask`, or `settle` what was decided)
and where to die: a name of ASKING or SETTLING.
"""

import asyncio
import sys
from typing import Final
from uuid import UUID

from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

from agent.settling import settle
from agent.workflow.run import Retriever
from storage import approvals, documents, runs, users
from storage.database import Database
from tests.fakes.chat import ScriptedChat
from tests.integration.agent.test_ask import QUESTION, agent_over, chat
from tests.killing import Point, after, arm, before

ASKING: Final[dict[str, Point]] = {
    "began": (runs, "begin", after),
    "searched": (Retriever, "find", after),
    "asked the model": (ScriptedChat, "first_token", before),
    "wrote the checkpoint": (AsyncPostgresSaver, "aput", after),
    "was about to store": (runs, "answered", before),
    "stored": (runs, "answered", after),
}
SETTLING: Final[dict[str, Point]] = {
    "looked at the rights": (documents, "visible", after),
    "went on": (AsyncPostgresSaver, "aput", after),
    "was about to settle": (approvals, "settle", before),
    "settled": (approvals, "settle", after),
}


async def main(dsn: str, tenant: str, user: str, session: str, what: str, where: str) -> None:
    db = await Database.open(dsn, pool_size=4)
    principal = await users.by_id(db, UUID(tenant), UUID(user))
    assert principal is not None
    arm((ASKING if what == "ask" else SETTLING)[where])
    if what == "settle":
        await settle(db, principal, UUID(session))
    else:
        async for _ in agent_over(db, chat()).ask(principal, QUESTION, session_id=UUID(session)):
            pass


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
