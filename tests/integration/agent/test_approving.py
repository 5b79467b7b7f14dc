"""An answer that cites certain collections waits for a person: who reads and decides it, and what the asker is told."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest

from agent.settling import settle
from core.errors import AlreadyDecided, Forbidden, InvalidRequest, NotFound
from core.records import Answered, Outcome, Principal, Role, Tenant, Token
from storage import approvals, audit, checkpoints, collections, sessions, users
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.integration.agent.test_ask import CAPS, QUESTION, agent_over, chat, checkpoints_of, events, handbook, store
from tests.integration.agent.test_lifecycle import last_run, session

__all__ = ["handbook", "session"]


@pytest.fixture
async def approver(handbook: Database, tenant: Tenant) -> Principal:
    return await users.create(handbook, tenant.id, "lena", "$hash", Role.EMPLOYEE, ["legal"])


@pytest.fixture
async def guarded(handbook: Database, tenant: Tenant) -> AsyncIterator[Database]:
    """The handbook's answers wait for legal."""
    home = await collections.by_name(handbook, tenant.id, "handbook")
    await collections.set_approvers(handbook, tenant.id, home.id, ["group:legal"])
    yield handbook


async def waiting_turn(db: Database, principal: Principal, session: UUID | None) -> Any:
    got = await events(agent_over(db, chat()), principal, session_id=session)
    last = got[-1]
    assert isinstance(last, Answered)
    assert not any(isinstance(event, Token) for event in got)
    return last.answer


async def test_an_answer_waits_and_is_shown_once_approved(
    guarded: Database, principal: Principal, approver: Principal, session: UUID
) -> None:
    told = await waiting_turn(guarded, principal, session)
    assert (told.outcome, told.citations) == (Outcome.WAITING, ())
    assert "550" not in told.answer
    (stored,) = await sessions.turns(guarded, principal, session)
    assert "550" not in stored.answer
    (held,) = await approvals.pending(guarded, approver)
    assert (held.user, held.collections, held.answer.question) == ("erin", ("handbook",), QUESTION)
    assert held.answer.citations[0].quote == CAPS["Shanghai"]
    await settle(guarded, principal, session)
    assert (await sessions.turns(guarded, principal, session))[0].outcome is Outcome.WAITING
    await approvals.decide(guarded, approver, held.turn_id, approved=True, reason=None)
    # By another process than the one that asked, and safe to do twice.
    for _ in range(2):
        await settle(guarded, principal, session)
    (shown,) = await sessions.turns(guarded, principal, session)
    assert (shown.id, shown.outcome) == (held.turn_id, Outcome.ANSWERED)
    assert (shown.answer, shown.citations) == (held.answer.answer, held.answer.citations)
    assert await approvals.pending(guarded, approver) == []
    assert (await audit.listing(guarded, approver.tenant_id, 1))[0].action == "answer.approved"


async def test_a_rejected_answer_says_why_and_nothing_else(
    guarded: Database, principal: Principal, approver: Principal, admin: Principal, session: UUID
) -> None:
    told = await waiting_turn(guarded, principal, session)
    with pytest.raises(InvalidRequest):
        await approvals.decide(guarded, approver, told.turn_id, approved=False, reason=" ")
    await approvals.decide(guarded, admin, told.turn_id, approved=False, reason="out of date")
    with pytest.raises(AlreadyDecided):
        await approvals.decide(guarded, approver, told.turn_id, approved=True, reason=None)
    await settle(guarded, principal, session)
    (shown,) = await sessions.turns(guarded, principal, session)
    assert (shown.outcome, shown.citations) == (Outcome.REJECTED, ())
    assert "out of date" in shown.answer
    assert "550" not in shown.answer
    assert (await last_run(guarded, admin)).outcome is Outcome.REJECTED


async def test_a_note_comes_with_the_answer(
    guarded: Database, principal: Principal, approver: Principal, session: UUID
) -> None:
    told = await waiting_turn(guarded, principal, session)
    decide = partial(approvals.decide, guarded, approver, told.turn_id, approved=True)
    with pytest.raises(InvalidRequest):
        await decide(reason="x" * (approvals.LONGEST_REASON + 1))
    await decide(reason=" until\nJune ")
    await settle(guarded, principal, session)
    (shown,) = await sessions.turns(guarded, principal, session)
    assert (shown.outcome, shown.notice) == (Outcome.ANSWERED, "Approved with this note: until June")


async def test_one_that_waits_is_read_by_whoever_decides(
    guarded: Database, principal: Principal, approver: Principal, admin: Principal, session: UUID
) -> None:
    assert await approvals.waiting(guarded, principal) is None
    assert [await approvals.waiting(guarded, who) for who in (approver, admin)] == [0, 0]
    told = await waiting_turn(guarded, principal, session)
    mine = await waiting_turn(guarded, approver, None)
    assert [await approvals.waiting(guarded, who) for who in (principal, approver, admin)] == [None, 1, 2]
    held = await approvals.one(guarded, approver, told.turn_id)
    assert (held.user, held.answer.citations[0].quote) == ("erin", CAPS["Shanghai"])
    with pytest.raises(Forbidden):
        await approvals.one(guarded, approver, mine.turn_id)
    await approvals.decide(guarded, approver, told.turn_id, approved=True, reason=None)
    with pytest.raises(AlreadyDecided):
        await approvals.one(guarded, admin, told.turn_id)
    assert [await approvals.waiting(guarded, who) for who in (approver, admin)] == [0, 1]


async def test_only_the_oldest_are_listed_and_all_are_counted(
    guarded: Database, principal: Principal, admin: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = [await waiting_turn(guarded, principal, None) for _ in range(2)]
    monkeypatch.setattr(approvals, "MOST", 1)
    assert [held.turn_id for held in await approvals.pending(guarded, admin)] == [first.turn_id]
    assert await approvals.waiting(guarded, admin) == 2


@pytest.mark.threat(51)
async def test_what_waits_elsewhere_is_not_there(
    guarded: Database, principal: Principal, other_tenant: Tenant, session: UUID
) -> None:
    told = await waiting_turn(guarded, principal, session)
    stranger = users.operator(other_tenant.id)
    assert (await approvals.pending(guarded, stranger), await approvals.waiting(guarded, stranger)) == ([], None)
    with pytest.raises(NotFound):
        await approvals.one(guarded, stranger, told.turn_id)
    with pytest.raises(NotFound):
        await approvals.decide(guarded, stranger, told.turn_id, approved=True, reason=None)


@pytest.mark.threat(51)
async def test_who_is_not_asked_decides_nothing(
    guarded: Database, tenant: Tenant, principal: Principal, admin: Principal, approver: Principal, session: UUID
) -> None:
    told = await waiting_turn(guarded, principal, session)
    decide = partial(approvals.decide, guarded, turn_id=told.turn_id, approved=True, reason=None)
    assert await approvals.pending(guarded, principal) == []
    with pytest.raises(NotFound):
        await decide(principal)
    with pytest.raises(NotFound):
        await approvals.one(guarded, principal, told.turn_id)
    mine = await waiting_turn(guarded, admin, None)
    assert [held.turn_id for held in await approvals.pending(guarded, admin)] == [told.turn_id]
    with pytest.raises(Forbidden):
        await approvals.decide(guarded, admin, mine.turn_id, approved=True, reason=None)
    home = await collections.by_name(guarded, tenant.id, "handbook")
    await collections.revoke(guarded, tenant.id, home.id, "everyone")
    assert await approvals.pending(guarded, approver) == []
    with pytest.raises(NotFound):
        await decide(approver)


async def test_outside_a_session_one_is_begun_to_wait_in(guarded: Database, admin: Principal) -> None:
    told = await waiting_turn(guarded, admin, None)
    assert told.session_id is not None
    assert (await sessions.get(guarded, admin, told.session_id)).title == QUESTION
    receipt = await sessions.delete(guarded, admin, told.session_id)
    assert (receipt.counts["runs"], receipt.counts["checkpoints"]) == (1, 1)
    assert await approvals.pending(guarded, users.operator(admin.tenant_id)) == []


async def test_without_its_checkpoint_a_decision_counts_all_the_same(
    guarded: Database, principal: Principal, admin: Principal, session: UUID, fresh: DatabaseUnderTest
) -> None:
    told = await waiting_turn(guarded, principal, session)
    with psycopg.connect(fresh.owner_dsn) as connection:
        connection.execute("DELETE FROM checkpoints.checkpoints")
    await approvals.decide(guarded, admin, told.turn_id, approved=True, reason=None)
    await settle(guarded, principal, session)
    assert (await sessions.turns(guarded, principal, session))[0].outcome is Outcome.ANSWERED


async def test_the_graph_stands_still_in_between(
    guarded: Database, principal: Principal, session: UUID, admin: Principal
) -> None:
    from agent.workflow.graph import build

    await waiting_turn(guarded, principal, session)
    (thread,) = await checkpoints_of(guarded, principal)
    graph = build(checkpoints.open_saver(guarded, principal))
    state = await graph.aget_state({"configurable": {"thread_id": thread}})
    assert state.next == ("approve",)
    assert [held.value for held in state.interrupts] == [{"collections": ["handbook"]}]


@pytest.mark.threat(55)
async def test_an_approved_answer_is_not_shown_to_whom_the_document_was_taken_from(
    guarded: Database, tenant: Tenant, principal: Principal, admin: Principal, session: UUID
) -> None:
    told = await waiting_turn(guarded, principal, session)
    home = await collections.by_name(guarded, tenant.id, "handbook")
    await collections.revoke(guarded, tenant.id, home.id, "everyone")
    await approvals.decide(guarded, admin, told.turn_id, approved=True, reason=None)
    await settle(guarded, principal, session)
    (shown,) = await sessions.turns(guarded, principal, session)
    assert shown.outcome is Outcome.REJECTED
    assert "550" not in shown.answer


async def test_what_cites_another_collection_is_shown_at_once(
    guarded: Database, tenant: Tenant, principal: Principal, session: UUID
) -> None:
    await store(guarded, tenant, "Hotels Berlin", "The hotel cap in Shanghai is CNY 550 per night.", "open")
    got = await events(agent_over(guarded, chat()), principal, session_id=session, collections=["open"])
    last = got[-1]
    assert isinstance(last, Answered)
    assert last.answer.outcome is Outcome.ANSWERED
    assert "".join(event.text for event in got if isinstance(event, Token)) == last.answer.answer
