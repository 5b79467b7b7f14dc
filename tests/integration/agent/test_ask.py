"""Asking on a real database: rights, sessions, memory, one run at a time, cancelling. The model is scripted."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from agent.ask import Agent
from core.errors import ModelUnavailable
from core.records import (
    Answer,
    Answered,
    Chunk,
    Event,
    Failed,
    Outcome,
    ParsedDocument,
    Principal,
    Refused,
    Source,
    Tenant,
    Token,
)
from core.settings import Settings
from inference.select import Models
from policy.egress import Policy
from storage import checkpoints, collections, documents, sessions
from storage.database import Database
from tests.fakes.chat import ScriptedChat, tool_call
from tests.fakes.embedder import FakeEmbedder
from tests.storing import store as store_document

SURE = {"The": 0.97, "NOT": 0.01}
CAPS = {
    "Shanghai": "The hotel cap in Shanghai is CNY 550 per night.",
    "Beijing": "The hotel cap in Beijing is CNY 600 per night.",
}
QUESTION = "How much is the hotel cap in Shanghai?"


async def store(db: Database, tenant: Tenant, name: str, text: str, collection: str = "handbook") -> None:
    """One document of one chunk."""
    home = await collections.ensure(db, tenant.id, collection)
    document, _ = await documents.register(
        db,
        tenant.id,
        home.id,
        path=f"{name}.md",
        sha256=uuid4().hex * 2,
        media_type="text/markdown",
        size=1,
        title=name,
    )
    chunk = Chunk(0, text, (), 0, 0, len(text))
    embedder = FakeEmbedder()
    parsed = ParsedDocument(name, ())
    await store_document(db, tenant.id, document, parsed, [chunk], embedder.embed_passages, embedder_id=embedder.id)


@pytest.fixture
async def handbook(database: Database, tenant: Tenant) -> Database:
    for city, text in CAPS.items():
        await store(database, tenant, f"Hotels {city}", text)
    return database


def agent_over(db: Database, chat: ScriptedChat, **settings: Any) -> Agent:
    values = Settings.load(**{"answer_cache": False, **settings})
    return Agent(db, Models(chat, FakeEmbedder()), Policy.of(values), values)


def honest(messages: Sequence[Any]) -> str:
    """A model that copies its passage, and makes follow-ups whole."""
    last = messages[-1].content
    if "Follow-up: and in Beijing?" in last:
        return "How much is the hotel cap in Beijing?"
    return str(last.split("\n")[1]) if "\n" in last else "hotel"


def reading(messages: Sequence[Any]) -> Mapping[str, float]:
    """A model that is sure of a passage that holds the city asked about."""
    passage, question, _ = messages[-1].content.rsplit("\n\n", 2)
    return SURE if any(city in passage and city in question for city in CAPS) else {"NOT": 0.97}


def chat() -> ScriptedChat:
    return ScriptedChat(honest, first_tokens=reading)


async def events(agent: Agent, principal: Principal, question: str = QUESTION, **options: Any) -> list[Event]:
    return [event async for event in agent.ask(principal, question, **options)]


async def answer(agent: Agent, principal: Principal, question: str = QUESTION, **options: Any) -> Answer:
    last = (await events(agent, principal, question, **options))[-1]
    assert isinstance(last, Answered | Refused), last
    return last.answer


async def test_an_answer_with_its_source(handbook: Database, principal: Principal) -> None:
    got = await events(agent_over(handbook, chat()), principal)
    sources = [event.hit.title for event in got if isinstance(event, Source)]
    assert "Hotels Shanghai" in sources
    last = got[-1]
    assert isinstance(last, Answered)
    assert last.answer.answer == "The hotel cap in Shanghai is CNY 550 per night [1]."
    assert last.answer.answer == "".join(event.text for event in got if isinstance(event, Token))
    assert last.answer.citations[0].quote == CAPS["Shanghai"]
    assert last.answer.timings["total"] > 0
    assert last.answer.turn_id is None


@pytest.mark.threat(55)
async def test_what_one_may_not_read_is_not_answered(database: Database, tenant: Tenant, principal: Principal) -> None:
    await store(database, tenant, "Hotels Shanghai", CAPS["Shanghai"], "board")
    board = await collections.ensure(database, tenant.id, "board")
    await collections.revoke(database, tenant.id, board.id, "everyone")
    refused = await answer(agent_over(database, ScriptedChat(lambda _: "hotel")), principal)
    assert (refused.outcome, refused.nearest) == (Outcome.REFUSED, ())


async def test_only_the_collections_asked_about_are_searched(
    handbook: Database, tenant: Tenant, principal: Principal
) -> None:
    await store(handbook, tenant, "Lunch", "Lunch is at noon.", "canteen")
    refused = await answer(agent_over(handbook, chat()), principal, collections=["canteen"])
    assert refused.outcome is Outcome.REFUSED
    assert {hit.title for hit in refused.nearest} == {"Lunch"}


async def test_the_tools_reach_no_further_than_the_principal(
    handbook: Database, tenant: Tenant, principal: Principal
) -> None:
    await store(handbook, tenant, "Board", "The board meets in Shanghai about the hotel.", "board")
    board = await collections.ensure(handbook, tenant.id, "board")
    await collections.revoke(handbook, tenant.id, board.id, "everyone")
    seen: list[Any] = []

    def turns(messages: Sequence[Any]) -> Any:
        seen.append(messages)
        return tool_call("kb_search", query="board hotel Shanghai")

    scripted = ScriptedChat(honest, first_tokens=reading, turns=turns)
    assert (await answer(agent_over(handbook, scripted), principal, mode="agent")).outcome is Outcome.ANSWERED
    assert "board meets" not in str(seen)


async def test_kb_read_chunk_gives_the_passage_and_nothing_for_a_guessed_handle(
    handbook: Database, principal: Principal
) -> None:
    told: list[str] = []

    def turns(messages: Sequence[Any]) -> Any:
        last = messages[-1].text
        told.append(last)
        if len(told) == 1:
            return tool_call("kb_read_chunk", chunk=last.split("[chunk:")[1][:6])
        return tool_call("kb_read_chunk", chunk="1")

    scripted = ScriptedChat(honest, first_tokens=reading, turns=turns)
    await answer(agent_over(handbook, scripted), principal, mode="agent")
    assert any(text in told[1] for text in CAPS.values())
    assert "no such passage" in told[2]


async def test_a_follow_up_in_a_session_is_answered_and_stored(handbook: Database, principal: Principal) -> None:
    session = await sessions.create(handbook, principal, "travel")
    agent = agent_over(handbook, chat())
    first = await answer(agent, principal, session_id=session.id)
    second = await answer(agent, principal, "and in Beijing?", session_id=session.id)
    assert second.standalone_question == "How much is the hotel cap in Beijing?"
    assert "CNY 600" in second.answer
    turns = await sessions.turns(handbook, principal, session.id)
    assert [turn.question for turn in turns] == [QUESTION, "and in Beijing?"]
    assert [turn.id for turn in turns] == [first.turn_id, second.turn_id]
    assert turns[1].citations == second.citations


async def test_a_run_leaves_one_checkpoint(handbook: Database, principal: Principal) -> None:
    session = await sessions.create(handbook, principal, "travel")
    agent = agent_over(handbook, chat())
    for _ in range(2):
        await answer(agent, principal, session_id=session.id)
    kept = await checkpoints_of(handbook, principal)
    assert sorted(kept.values()) == [1, 1]


async def checkpoints_of(db: Database, principal: Principal) -> dict[str, int]:
    """Checkpoints by thread."""
    async with db.transaction(principal.tenant_id, principal.user_id) as tx:
        cursor = await tx.connection.execute("SELECT thread_id, count(*) AS n FROM checkpoints GROUP BY thread_id")
        return {row["thread_id"]: row["n"] for row in await cursor.fetchall()}


@pytest.mark.threat(51)
async def test_another_users_session_is_not_found(handbook: Database, principal: Principal, admin: Principal) -> None:
    session = await sessions.create(handbook, principal, "mine")
    (last,) = await events(agent_over(handbook, chat()), admin, session_id=session.id)
    assert isinstance(last, Failed)
    assert last.code == "not_found"


async def test_one_question_at_a_time_in_a_session(handbook: Database, principal: Principal) -> None:
    session = await sessions.create(handbook, principal, "travel")
    agent = agent_over(handbook, chat())
    async with aclosing(agent.ask(principal, QUESTION, session_id=session.id)) as running:
        await anext(running)
        (second,) = await events(agent, principal, session_id=session.id)
        assert isinstance(second, Failed)
        assert second.code == "session_busy"
    assert (await answer(agent, principal, session_id=session.id)).outcome is Outcome.ANSWERED
    assert len(await sessions.turns(handbook, principal, session.id)) == 1


async def test_leaving_while_the_model_works_stops_it_and_frees_the_session(
    handbook: Database, principal: Principal
) -> None:
    session = await sessions.create(handbook, principal, "travel")
    started, stopped = asyncio.Event(), asyncio.Event()

    class Hanging(ScriptedChat):
        async def first_token(self, *_: Any, **__: Any) -> Any:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

    asked = agent_over(handbook, Hanging()).ask(principal, QUESTION, session_id=session.id)
    waiting = asyncio.ensure_future(drain(asked))
    await started.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asked.aclose()
    assert stopped.is_set()
    assert await sessions.turns(handbook, principal, session.id) == []
    after = await answer(agent_over(handbook, chat()), principal, session_id=session.id)
    assert after.outcome is Outcome.ANSWERED


async def drain(asked: AsyncGenerator[Event, None]) -> None:
    async for _ in asked:
        pass


async def test_without_checkpoints_answers_come_and_are_remembered(
    handbook: Database, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await sessions.create(handbook, principal, "travel")

    class Broken:
        async def aget_tuple(self, _: Any) -> None:
            raise psycopg.OperationalError("no checkpoints")

    monkeypatch.setattr(checkpoints, "open_saver", lambda *_: Broken())
    agent = agent_over(handbook, chat())
    assert (await answer(agent, principal, session_id=session.id)).outcome is Outcome.ANSWERED
    second = await answer(agent, principal, "and in Beijing?", session_id=session.id)
    assert second.standalone_question == "How much is the hotel cap in Beijing?"
    assert len(await sessions.turns(handbook, principal, session.id)) == 2


async def test_a_checkpoint_that_cannot_be_written_does_not_lose_the_answer(
    handbook: Database, principal: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver

    async def broken(*_: Any, **__: Any) -> None:
        raise psycopg.OperationalError("disk full")

    monkeypatch.setattr(AsyncPostgresSaver, "aput", broken)
    session = await sessions.create(handbook, principal, "travel")
    got = await answer(agent_over(handbook, chat()), principal, session_id=session.id)
    assert got.outcome is Outcome.ANSWERED
    assert len(await sessions.turns(handbook, principal, session.id)) == 1


async def test_faults_are_the_last_event(handbook: Database, principal: Principal) -> None:
    gone = ScriptedChat(first_tokens=[ModelUnavailable()])
    last = (await events(agent_over(handbook, gone), principal))[-1]
    assert isinstance(last, Failed)
    assert (last.code, last.message) == ("model_unavailable", ModelUnavailable().message)
    defect = ScriptedChat(first_tokens=[ZeroDivisionError("secret")])
    last = (await events(agent_over(handbook, defect), principal))[-1]
    assert isinstance(last, Failed)
    assert last.code == "internal"
    assert "secret" not in last.message


async def test_an_unusable_question_fails_with_words(handbook: Database, principal: Principal) -> None:
    (last,) = await events(agent_over(handbook, chat()), principal, "\ud800 ?")
    assert isinstance(last, Failed)
    assert last.code == "invalid_request"
