"""Killed while it answers, at every step: the next look says what became of it, and the session goes on."""

import asyncio
from uuid import UUID

import pytest

from agent.settling import settle
from core.records import Outcome, Principal, RunState
from storage import approvals, collections, runs, sessions, traces
from storage.database import Database
from tests import killing
from tests.conftest import DatabaseUnderTest
from tests.integration.agent.dying import ASKING, SETTLING
from tests.integration.agent.test_ask import QUESTION, agent_over, answer, chat, handbook

__all__ = ["handbook"]


async def killed(
    db: Database, fresh: DatabaseUnderTest, principal: Principal, session: UUID, what: str, where: str
) -> None:
    ids = (str(principal.tenant_id), str(principal.user_id), str(session))
    await killing.killed("tests.integration.agent.dying", fresh.app_dsn, *ids, what, where)
    # The server needs a moment to see that the one who held the session is gone.
    async with asyncio.timeout(30):
        free = False
        while not free:
            async with sessions.holding(db, principal, session) as free:
                pass


@pytest.mark.parametrize("where", ASKING)
async def test_what_was_killed_is_repaired_at_the_next_look(
    handbook: Database, principal: Principal, admin: Principal, fresh: DatabaseUnderTest, where: str
) -> None:
    session = (await sessions.create(handbook, principal, "")).id
    await killed(handbook, fresh, principal, session, "ask", where)
    await settle(handbook, principal, session)
    stored = await sessions.turns(handbook, principal, session)
    (run,) = await traces.listing(handbook, admin)
    if where == "stored":
        assert (run.state, [turn.outcome for turn in stored]) == (RunState.FINISHED, [Outcome.ANSWERED])
        assert await runs.unanswered(handbook, principal, session) is None
    else:
        assert (run.state, stored) == (RunState.ABORTED, [])
        assert await runs.unanswered(handbook, principal, session) == (RunState.ABORTED, QUESTION)
    agent = agent_over(handbook, chat())
    assert (await answer(agent, principal, session_id=session)).outcome is Outcome.ANSWERED
    follow_up = await answer(agent, principal, "and in Beijing?", session_id=session)
    assert follow_up.standalone_question == "How much is the hotel cap in Beijing?"
    assert len(await sessions.turns(handbook, principal, session)) == len(stored) + 2


@pytest.mark.parametrize("where", SETTLING)
async def test_a_decision_is_taken_up_once_whatever_is_killed(
    handbook: Database, principal: Principal, admin: Principal, fresh: DatabaseUnderTest, where: str
) -> None:
    home = await collections.by_name(handbook, admin.tenant_id, "handbook")
    await collections.set_approvers(handbook, admin.tenant_id, home.id, [])
    session = (await sessions.create(handbook, principal, "")).id
    told = await answer(agent_over(handbook, chat()), principal, session_id=session)
    assert told.outcome is Outcome.WAITING
    (held,) = await approvals.pending(handbook, admin)
    await approvals.decide(handbook, admin, held.turn_id, approved=True, reason=None)
    await killed(handbook, fresh, principal, session, "settle", where)
    await settle(handbook, principal, session)
    (shown,) = await sessions.turns(handbook, principal, session)
    assert (shown.id, shown.outcome, shown.answer) == (held.turn_id, Outcome.ANSWERED, held.answer.answer)
    assert (await traces.listing(handbook, admin))[0].state is RunState.FINISHED
