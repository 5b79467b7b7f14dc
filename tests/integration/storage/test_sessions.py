"""Sessions belong to their user; turns are stored as they were; one question at a time."""

from dataclasses import replace
from uuid import uuid4

import pytest

from core.errors import InvalidRequest, NotFound, SessionBusy
from core.records import Answer, Citation, Outcome, Principal, Tenant
from storage import sessions, users
from storage.database import Database


def answer(text: str = "25 days [1].") -> Answer:
    citation = Citation(1, 7, uuid4(), "leave.md", "Leave", ("Leave", "年假"), 2, "Annual leave is 25 days.")
    return Answer(Outcome.ANSWERED, "How long?", "How long is leave?", text, "en", (citation,), {"search": 0.1}, 2)


async def test_turns_come_back_as_they_went_in(database: Database, principal: Principal) -> None:
    session = await sessions.create(database, principal, "Leave")
    first, second = answer(), answer("And more.")
    stored = await sessions.add_turn(database, principal, session.id, first)
    await sessions.add_turn(database, principal, session.id, second)
    turns = await sessions.turns(database, principal, session.id)
    assert turns[0] == stored
    assert [turn.answer for turn in turns] == ["25 days [1].", "And more."]
    assert turns[0].citations == first.citations
    assert (turns[0].outcome, turns[0].language, turns[0].feedback) == (Outcome.ANSWERED, "en", None)
    now = await sessions.get(database, principal, session.id)
    assert now.turns == 2
    assert now.updated_at > session.updated_at


async def test_sessions_are_listed_by_their_last_use(database: Database, principal: Principal) -> None:
    old = await sessions.create(database, principal, "old")
    new = await sessions.create(database, principal, "new")
    assert [session.id for session in await sessions.listing(database, principal)] == [new.id, old.id]
    await sessions.add_turn(database, principal, old.id, answer())
    renamed = await sessions.rename(database, principal, new.id, "newer")
    assert renamed.title == "newer"
    assert [session.title for session in await sessions.listing(database, principal)] == ["newer", "old"]


@pytest.mark.threat(51)
async def test_nobody_else_finds_a_session(
    database: Database, principal: Principal, admin: Principal, other_tenant: Tenant
) -> None:
    session = await sessions.create(database, principal, "mine")
    turn = await sessions.add_turn(database, principal, session.id, answer())
    for other in (admin, users.operator(principal.tenant_id), replace(principal, tenant_id=other_tenant.id)):
        assert await sessions.listing(database, other) == []
        for call in (
            sessions.get(database, other, session.id),
            sessions.turns(database, other, session.id),
            sessions.rename(database, other, session.id, "theirs"),
            sessions.add_turn(database, other, session.id, answer()),
            sessions.feedback(database, other, turn.id, 1, None),
            sessions.delete(database, other, session.id),
        ):
            with pytest.raises(NotFound):
                await call
    assert [kept.title for kept in await sessions.listing(database, principal)] == ["mine"]


async def test_the_last_feedback_counts(database: Database, principal: Principal) -> None:
    session = await sessions.create(database, principal, "mine")
    turn = await sessions.add_turn(database, principal, session.id, answer())
    await sessions.feedback(database, principal, turn.id, 1, None)
    await sessions.feedback(database, principal, turn.id, -1, "wrong page")
    [stored] = await sessions.turns(database, principal, session.id)
    assert stored.feedback == -1
    with pytest.raises(InvalidRequest):
        await sessions.feedback(database, principal, turn.id, 0, None)
    with pytest.raises(NotFound):
        await sessions.feedback(database, principal, uuid4(), 1, None)


async def test_one_question_at_a_time(database: Database, principal: Principal) -> None:
    session = await sessions.create(database, principal, "mine")
    other = await sessions.create(database, principal, "other")
    async with sessions.running(database, principal, session.id):
        with pytest.raises(SessionBusy):
            async with sessions.running(database, principal, session.id):
                pass
        with pytest.raises(SessionBusy):
            await sessions.delete(database, principal, session.id)
        async with sessions.running(database, principal, other.id):
            pass
    async with sessions.running(database, principal, session.id):
        pass


async def test_deleting_says_what_went(database: Database, principal: Principal) -> None:
    session = await sessions.create(database, principal, "mine")
    await sessions.add_turn(database, principal, session.id, answer())
    receipt = await sessions.delete(database, principal, session.id)
    assert (receipt.what, receipt.counts["turns"], receipt.counts["sessions"]) == ("mine", 1, 1)
    with pytest.raises(NotFound):
        await sessions.turns(database, principal, session.id)


async def test_the_operator_may_hold_sessions_too(database: Database, tenant: Tenant) -> None:
    operator = users.operator(tenant.id)
    session = await sessions.create(database, operator, "cli")
    assert [found.id for found in await sessions.listing(database, operator)] == [session.id]
