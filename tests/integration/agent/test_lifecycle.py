"""The life of a run: begun, watched, cancelled, killed, held back for approval, traced, and forgotten in its time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest

from agent import cancelling
from agent.ask import Agent
from agent.settling import settle
from core.errors import (
    AlreadyDecided,
    Forbidden,
    InvalidRequest,
    ModelUnavailable,
    NotFound,
    ReasonMissing,
    SessionBusy,
)
from core.records import Answered, Failed, Outcome, Principal, Role, RunState, Source, Tenant, Token
from core.settings import Settings
from inference.select import Models, open_chat
from policy.egress import Policy
from storage import approvals, audit, checkpoints, collections, documents, runs, sessions, traces, users
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.fakes.chat import ScriptedChat
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.ollama import FakeOllama, Reply
from tests.integration.agent.test_ask import (
    CAPS,
    QUESTION,
    agent_over,
    answer,
    chat,
    checkpoints_of,
    events,
    handbook,
    store,
)

__all__ = ["handbook"]


@pytest.fixture
async def session(handbook: Database, principal: Principal) -> UUID:
    """An empty session of the employee's."""
    return (await sessions.create(handbook, principal, "")).id


class Hanging(ScriptedChat):
    """A model that begins to think and does not end; it knows when its connection was closed."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.let_go = asyncio.Event()

    async def first_token(self, *_: Any, **__: Any) -> Any:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.let_go.set()


async def last_run(db: Database, admin: Principal) -> Any:
    return (await traces.listing(db, admin))[0]


# --- cancelling -----------------------------------------------------------------------------------------------------


async def test_a_run_that_is_cancelled_from_elsewhere_lets_the_model_go(
    handbook: Database,
    principal: Principal,
    admin: Principal,
    session: UUID,
    fresh: DatabaseUnderTest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.ask.cancellable", partial(cancelling.cancellable, pause=0.001))
    model = Hanging()
    asked = asyncio.ensure_future(events(agent_over(handbook, model), principal, session_id=session))
    await model.begun.wait()
    elsewhere = await Database.open(fresh.app_dsn, pool_size=1)
    try:
        assert await runs.cancel(elsewhere, principal, session)
    finally:
        await elsewhere.close()
    last = (await asked)[-1]
    assert isinstance(last, Failed)
    assert last.code == "cancelled"
    assert model.let_go.is_set()
    assert (await last_run(handbook, admin)).state is RunState.CANCELLED
    assert await runs.unanswered(handbook, principal, session) == (RunState.CANCELLED, QUESTION)
    assert not await runs.cancel(handbook, principal, session)
    assert (await answer(agent_over(handbook, chat()), principal, session_id=session)).outcome is Outcome.ANSWERED
    assert await runs.unanswered(handbook, principal, session) is None


async def test_cancelling_closes_the_connection_to_the_model(
    handbook: Database, principal: Principal, session: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.ask.cancellable", partial(cancelling.cancellable, pause=0.001))
    with FakeOllama(replies=[Reply("The", hang=True)]) as server:
        settings = Settings.load(chat_provider="ollama", ollama_url=server.url)
        policy = Policy.of(settings)
        model = await open_chat(settings, policy)
        agent = Agent(handbook, Models(model, FakeEmbedder()), policy, settings)
        asked = asyncio.ensure_future(events(agent, principal, session_id=session))
        while not server.chats:  # noqa: ASYNC110 the fake server lives in a thread and tells it by this alone
            await asyncio.sleep(0.001)
        assert await runs.cancel(handbook, principal, session)
        last = (await asked)[-1]
        assert await asyncio.to_thread(server.left.wait, 10)
        await model.close()
    assert isinstance(last, Failed)
    assert last.code == "cancelled"


def test_it_is_looked_for_more_than_once_a_second() -> None:
    assert cancelling.PAUSE < 0.5


async def test_only_the_owner_cancels(
    handbook: Database, principal: Principal, admin: Principal, session: UUID
) -> None:
    with pytest.raises(NotFound):
        await runs.cancel(handbook, admin, session)


async def test_leaving_is_a_cancelled_run_too(
    handbook: Database, principal: Principal, admin: Principal, session: UUID
) -> None:
    async with aclosing(agent_over(handbook, chat()).ask(principal, QUESTION, session_id=session)) as asked:
        async for event in asked:
            if isinstance(event, Source):
                break
    run = await last_run(handbook, admin)
    assert (run.state, run.turn_id) == (RunState.CANCELLED, None)
    whole = await traces.read(handbook, admin, run.id, "a complaint")
    assert "search" in [step.kind for step in whole.steps]


async def test_a_run_that_fails_says_why(
    handbook: Database, principal: Principal, admin: Principal, session: UUID
) -> None:
    gone = ScriptedChat(first_tokens=[ModelUnavailable()])
    await events(agent_over(handbook, gone), principal, session_id=session)
    run = await last_run(handbook, admin)
    assert (run.state, run.code) == (RunState.FAILED, "model_unavailable")


async def test_one_question_at_a_time_over_processes(
    handbook: Database, principal: Principal, session: UUID, fresh: DatabaseUnderTest
) -> None:
    elsewhere = await Database.open(fresh.app_dsn, pool_size=1)
    try:
        async with sessions.running(elsewhere, principal, session):
            (only,) = await events(agent_over(handbook, chat()), principal, session_id=session)
            assert isinstance(only, Failed)
            assert only.code == SessionBusy.code
    finally:
        await elsewhere.close()


# --- what is kept ---------------------------------------------------------------------------------------------------


async def test_a_trace_tells_how_the_answer_came_about(
    handbook: Database, principal: Principal, admin: Principal, session: UUID
) -> None:
    got = await answer(agent_over(handbook, chat()), principal, session_id=session)
    run = await last_run(handbook, admin)
    assert (run.user, run.session_id, run.turn_id) == ("erin", session, got.turn_id)
    assert (run.state, run.outcome) == (RunState.FINISHED, Outcome.ANSWERED)
    whole = await traces.read(handbook, admin, run.id, "  a   complaint ")
    assert whole.question == QUESTION
    assert whole.turn is not None
    assert (whole.turn.id, whole.turn.answer) == (got.turn_id, got.answer)
    kinds = [step.kind for step in whole.steps]
    assert kinds.index("search") < kinds.index("model") < kinds.index("answer")
    calls = [step.data for step in whole.steps if step.kind == "model"]
    assert len(calls) == run.model_calls == got.model_calls
    assert run.prompt_tokens == sum(call["prompt_tokens"] for call in calls)
    assert [step.at_ms for step in whole.steps] == sorted(step.at_ms for step in whole.steps)


async def test_who_reads_a_trace_is_told_to_whoever_asked(
    handbook: Database, principal: Principal, admin: Principal, session: UUID
) -> None:
    await answer(agent_over(handbook, chat()), principal, session_id=session)
    run = (await last_run(handbook, admin)).id
    for reason in ("", " \n "):
        with pytest.raises(ReasonMissing):
            await traces.read(handbook, admin, run, reason)
    with pytest.raises(InvalidRequest):
        await traces.read(handbook, admin, run, "x" * 501)
    assert await traces.readings(handbook, principal) == []
    await traces.read(handbook, admin, run, "complaint 12")
    (reading,) = await traces.readings(handbook, principal, session)
    assert (reading.run_id, reading.reader, reading.reason) == (run, "ada", "complaint 12")
    assert await traces.readings(handbook, admin) == []
    entry = (await audit.listing(handbook, admin.tenant_id, 1))[0]
    assert (entry.action, entry.actor, entry.subject) == ("trace.read", admin.user_id, str(run))


@pytest.mark.threat(51)
async def test_nobody_else_reads_a_trace(
    handbook: Database, principal: Principal, session: UUID, admin: Principal, other_tenant: Tenant
) -> None:
    await answer(agent_over(handbook, chat()), principal, session_id=session)
    run = (await last_run(handbook, admin)).id
    for reader in (principal, users.operator(other_tenant.id)):
        with pytest.raises(NotFound):
            await traces.read(handbook, reader, run, "curious")
    with pytest.raises(NotFound):
        await traces.listing(handbook, principal)
    assert await traces.listing(handbook, users.operator(other_tenant.id)) == []


async def test_a_question_outside_any_session_leaves_a_trace_and_no_turn(
    handbook: Database, principal: Principal, admin: Principal
) -> None:
    await answer(agent_over(handbook, chat()), principal)
    run = await last_run(handbook, admin)
    assert (run.session_id, run.turn_id, run.outcome) == (None, None, Outcome.ANSWERED)
    assert await sessions.listing(handbook, principal) == []
    assert await checkpoints_of(handbook, principal) == {}


async def test_no_trace_is_kept_where_none_is_wanted(
    handbook: Database, principal: Principal, admin: Principal, session: UUID
) -> None:
    await answer(agent_over(handbook, chat(), trace_days=0), principal, session_id=session)
    run = (await last_run(handbook, admin)).id
    assert (await traces.read(handbook, admin, run, "looking")).steps == ()


async def test_the_first_question_names_a_session(handbook: Database, principal: Principal, session: UUID) -> None:
    agent = agent_over(handbook, chat())
    await answer(agent, principal, session_id=session)
    await answer(agent, principal, "and in Beijing?", session_id=session)
    assert (await sessions.get(handbook, principal, session)).title == QUESTION


async def test_a_fork_goes_on_from_its_turn(handbook: Database, principal: Principal, session: UUID) -> None:
    agent = agent_over(handbook, chat())
    first = await answer(agent, principal, session_id=session)
    await answer(agent, principal, "and in Beijing?", session_id=session)
    assert first.turn_id is not None
    forked = await sessions.fork(handbook, principal, first.turn_id)
    assert forked.turns == 1
    again = await answer(agent, principal, "and in Beijing?", session_id=forked.id)
    assert again.standalone_question == "How much is the hotel cap in Beijing?"
    assert len(await sessions.turns(handbook, principal, session)) == 2


# --- approval -------------------------------------------------------------------------------------------------------


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


@pytest.mark.threat(51)
async def test_who_is_not_asked_decides_nothing(
    guarded: Database, tenant: Tenant, principal: Principal, admin: Principal, approver: Principal, session: UUID
) -> None:
    told = await waiting_turn(guarded, principal, session)
    decide = partial(approvals.decide, guarded, turn_id=told.turn_id, approved=True, reason=None)
    assert await approvals.pending(guarded, principal) == []
    with pytest.raises(NotFound):
        await decide(principal)
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


async def test_citations_are_pinned(handbook: Database, principal: Principal) -> None:
    got = await answer(agent_over(handbook, chat()), principal)
    (cited,) = got.citations
    passage = await documents.passage(handbook, principal, cited.document_id, cited.chunk_id, revision=cited.revision)
    assert (cited.revision, cited.collection) == (1, "handbook")
    assert passage.text[cited.start - passage.start : cited.end - passage.start] == cited.quote
