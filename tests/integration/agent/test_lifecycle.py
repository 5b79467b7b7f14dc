"""The life of a run: begun, watched, cancelled, killed, traced, and forgotten in its time."""

import asyncio
from contextlib import aclosing
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from agent import cancelling
from agent.ask import Agent
from core.errors import (
    InvalidRequest,
    ModelUnavailable,
    NotFound,
    ReasonMissing,
    SessionBusy,
)
from core.records import Failed, Outcome, Principal, RunState, Source, Tenant
from core.settings import Settings
from inference.select import Models, open_chat
from policy.egress import Policy
from storage import audit, documents, runs, sessions, traces, users
from storage.database import Database
from tests.conftest import DatabaseUnderTest
from tests.fakes.chat import ScriptedChat
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.ollama import FakeOllama, Reply
from tests.integration.agent.test_ask import (
    QUESTION,
    agent_over,
    answer,
    chat,
    checkpoints_of,
    events,
    handbook,
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


async def test_one_question_at_a_time_over_connections(
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


async def test_citations_are_pinned(handbook: Database, principal: Principal) -> None:
    got = await answer(agent_over(handbook, chat()), principal)
    (cited,) = got.citations
    passage = await documents.passage(handbook, principal, cited.document_id, cited.chunk_id, revision=cited.revision)
    assert (cited.revision, cited.collection) == (1, "handbook")
    assert passage.text[cited.start - passage.start : cited.end - passage.start] == cited.quote
