"""An answer that is given again: to whom, for how long, and which never is."""

from datetime import date
from typing import Any

import pytest

from agent.ask import Agent
from core.errors import ModelUnavailable
from core.records import Answer, Answered, Outcome, Principal, Refused, Role, Tenant, Token
from core.settings import Settings
from inference.select import Models
from policy.egress import Policy
from storage import collections, sessions, tending, users
from storage.database import Database
from tests.fakes.chat import ScriptedChat
from tests.fakes.embedder import FakeEmbedder
from tests.integration.agent.test_ask import CAPS, QUESTION, chat, events, store

ZH = "上海的酒店上限是多少？"


@pytest.fixture
async def handbook(database: Database, tenant: Tenant) -> Database:
    for city, text in CAPS.items():
        await store(database, tenant, f"Hotels {city}", text)
    return database


def agent_over(db: Database, model: ScriptedChat, fallback: ScriptedChat | None = None, **settings: Any) -> Agent:
    values = Settings.load(**settings)
    return Agent(db, Models(model, FakeEmbedder(), fallback=fallback), Policy.of(values), values)


async def ask(
    db: Database, reader: Principal, model: ScriptedChat | None = None, question: str = QUESTION, **more: Any
) -> Answer:
    """A new agent each time, as another process would be."""
    options = {name: more.pop(name) for name in ("session_id", "mode", "as_of", "collections") if name in more}
    last = (await events(agent_over(db, model or chat(), **more), reader, question, **options))[-1]
    assert isinstance(last, Answered | Refused), last
    return last.answer


def silent() -> ScriptedChat:
    """A model that no call may reach."""
    return ScriptedChat()


async def test_the_same_question_is_answered_without_the_model(handbook: Database, principal: Principal) -> None:
    first = await ask(handbook, principal)
    got = await events(agent_over(handbook, silent()), principal)
    again = got[-1]
    assert isinstance(again, Answered)
    assert again.answer.model_calls == 0
    assert (again.answer.answer, again.answer.citations) == (first.answer, first.citations)
    assert "".join(event.text for event in got if isinstance(event, Token)) == first.answer


async def test_it_is_stored_like_any_turn_and_the_trace_says_where_it_comes_from(
    handbook: Database, principal: Principal
) -> None:
    await ask(handbook, principal)
    session = await sessions.create(handbook, principal, "")
    again = await ask(handbook, principal, silent(), session_id=session.id)
    (turn,) = await sessions.turns(handbook, principal, session.id)
    assert (turn.id, turn.answer, turn.citations) == (again.turn_id, again.answer, again.citations)
    async with handbook.transaction(principal.tenant_id) as tx:
        cursor = await tx.connection.execute("SELECT steps FROM runs ORDER BY started_at")
        first, second = [row["steps"] for row in await cursor.fetchall()]
    assert {"found": False} in [step["data"] for step in first if step["kind"] == "cache"]
    assert {"kept": True} in [step["data"] for step in first if step["kind"] == "cache"]
    assert [step["data"] for step in second if step["kind"] == "cache"] == [{"found": True}]
    assert not any(step["kind"] in ("search", "model") for step in second)


async def test_a_follow_up_is_recalled_by_what_it_means(handbook: Database, principal: Principal) -> None:
    await ask(handbook, principal, question="How much is the hotel cap in Beijing?")
    session = await sessions.create(handbook, principal, "")
    await ask(handbook, principal, session_id=session.id)
    again = await ask(handbook, principal, silent(), question="and in Beijing?", session_id=session.id)
    assert (again.question, again.model_calls) == ("and in Beijing?", 0)
    assert "600" in again.answer


@pytest.mark.parametrize(
    "other",
    [
        {"mode": "agent"},
        {"as_of": "2025-01-01"},
        {"prompt_budget": 700},
        {"scope": "private"},
        {"question": ZH},
    ],
    ids=str,
)
@pytest.mark.threat(56)
async def test_what_shapes_an_answer_asks_anew(handbook: Database, principal: Principal, other: dict[str, Any]) -> None:
    if "as_of" in other:
        other = {"as_of": date.fromisoformat(other["as_of"])}
    await ask(handbook, principal)
    with pytest.raises(AssertionError, match="Failed"):
        await ask(
            handbook,
            principal,
            ScriptedChat([ModelUnavailable()], first_tokens=[ModelUnavailable()] * 9, turns=[ModelUnavailable()] * 9),
            **other,
        )


async def test_another_model_asks_anew(handbook: Database, principal: Principal) -> None:
    await ask(handbook, principal)
    model = chat()
    model.identity = "scripted:newer"
    assert (await ask(handbook, principal, model)).model_calls > 0


async def test_switched_off_nothing_is_kept_or_given(handbook: Database, principal: Principal) -> None:
    await ask(handbook, principal, answer_cache=False)
    assert (await ask(handbook, principal)).model_calls > 0
    assert (await ask(handbook, principal, answer_cache=False)).model_calls > 0


@pytest.mark.threat(55)
@pytest.mark.threat(56)
async def test_it_is_not_given_to_whoever_may_not_read_it(
    handbook: Database, tenant: Tenant, principal: Principal
) -> None:
    home = await collections.by_name(handbook, tenant.id, "handbook")
    await ask(handbook, principal)
    await collections.revoke(handbook, tenant.id, home.id, "everyone")
    assert (await ask(handbook, principal, chat())).outcome is Outcome.REFUSED
    await collections.grant(handbook, tenant.id, home.id, "group:staff")
    assert (await ask(handbook, principal, silent())).model_calls == 0
    outsider = await users.create(handbook, tenant.id, "otto", "$hash", Role.EMPLOYEE)
    assert (await ask(handbook, outsider, chat())).outcome is Outcome.REFUSED


@pytest.mark.threat(53)
async def test_what_was_deleted_is_not_given(handbook: Database, tenant: Tenant, admin: Principal) -> None:
    cited = (await ask(handbook, admin)).citations[0]
    await tending.delete(handbook, admin, cited.document_id)
    assert (await ask(handbook, admin, chat())).outcome is Outcome.REFUSED


async def test_an_answer_that_somebody_approves_is_never_kept(
    handbook: Database, tenant: Tenant, principal: Principal
) -> None:
    home = await collections.by_name(handbook, tenant.id, "handbook")
    await collections.set_approvers(handbook, tenant.id, home.id, [])
    for _ in range(2):
        waits = await ask(handbook, principal)
        assert (waits.outcome, waits.model_calls > 0) == (Outcome.WAITING, True)


async def test_a_refusal_is_never_kept(handbook: Database, principal: Principal) -> None:
    for _ in range(2):
        refused = await ask(handbook, principal, question="How much is the hotel cap in Lima?")
        assert (refused.outcome, refused.model_calls > 0) == (Outcome.REFUSED, True)


async def test_an_answer_of_a_model_that_stood_in_is_never_kept(handbook: Database, principal: Principal) -> None:
    broken = ScriptedChat(first_tokens=[ModelUnavailable()])
    last = (await events(agent_over(handbook, broken, fallback=chat()), principal))[-1]
    assert isinstance(last, Answered)
    assert (await ask(handbook, principal)).model_calls > 0
