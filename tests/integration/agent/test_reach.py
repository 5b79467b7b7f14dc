"""How far the agent's tools and sub-agents reach on a real database: never further than the principal who asks."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from core.records import Outcome, Principal, Tenant
from storage import collections
from storage.database import Database
from tests.fakes.chat import CAPABLE, ScriptedChat, tool_call
from tests.integration.agent.test_ask import QUESTION, agent_over, answer, store
from tests.unit.agent.support import REFUSES, decision

SECRET = "The board buys the hotel in Lima for CNY 77."
FOREIGN = "The rival sells the hotel in Lima for CNY 99."
CALLS = (
    tool_call("kb_list_documents"),
    tool_call("kb_list_documents", about="Board"),
    tool_call("kb_outline", document="Board"),
    tool_call("kb_outline", document="Rival"),
    tool_call("kb_find", text="hotel in Lima"),
    tool_call("kb_find", text="The*hotel"),
    tool_call("research_subtopics", questions=["What does the hotel in Lima cost the board of directors?"]),
)


@pytest.fixture
async def library(database: Database, tenant: Tenant, other_tenant: Tenant) -> Database:
    """One document for everyone, one that only administrators read, one of another tenant."""
    await store(database, tenant, "Hotels", "The hotel cap in Shanghai is CNY 550 per night.")
    await store(database, tenant, "Board", SECRET, "board")
    board = await collections.ensure(database, tenant.id, "board")
    await collections.revoke(database, tenant.id, board.id, "everyone")
    await store(database, other_tenant, "Rival", FOREIGN)
    return database


class Curious(ScriptedChat):
    """A capable model that makes every call in turn, in the loop and in each sub-agent, and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self._next: Iterator[AIMessage] = iter(CALLS)
        super().__init__(self._reply, first_tokens=lambda _: REFUSES, turns=self._turn, traits=CAPABLE)

    def _reply(self, messages: Sequence[Any]) -> str:
        self.shown.append(str([message.content for message in messages]))
        return decision(messages) or "NOT FOUND"

    def _turn(self, messages: Sequence[Any]) -> AIMessage:
        self.shown.append(str([message.text for message in messages if message.type == "tool"]))
        return next(self._next, AIMessage("DONE"))


async def ask_all(db: Database, principal: Principal, **options: Any) -> str:
    chat = Curious()
    agent = agent_over(db, chat, max_model_calls=20, max_tool_calls=20)
    last = await answer(agent, principal, QUESTION, mode="agent", **options)
    assert last.outcome is Outcome.REFUSED
    assert sum(call.kind == "langchain" for call in chat.calls) > len(CALLS)
    return "\n".join(chat.shown)


@pytest.mark.threat(44, 55)
async def test_no_tool_and_no_sub_agent_shows_what_may_not_be_read(library: Database, principal: Principal) -> None:
    shown = await ask_all(library, principal)
    assert "The hotel cap" in shown
    for hidden in (SECRET, FOREIGN, "Board.md", "Rival.md", "CNY 77", "CNY 99"):
        assert hidden not in shown


async def test_who_may_read_it_finds_it_by_every_tool(library: Database, admin: Principal) -> None:
    shown = await ask_all(library, admin)
    assert SECRET in shown
    start = SECRET.index("hotel in Lima")
    assert f"characters {start} to {start + len('hotel in Lima')}" in shown
    assert FOREIGN not in shown


async def test_only_the_collections_asked_about_are_looked_into(library: Database, admin: Principal) -> None:
    shown = await ask_all(library, admin, collections=["board"])
    assert SECRET in shown
    assert "The hotel cap" not in shown


async def test_a_refusal_says_what_was_searched_what_is_missing_and_whom_to_ask(
    library: Database, tenant: Tenant, principal: Principal
) -> None:
    handbook = await collections.by_name(library, tenant.id, "handbook")
    await collections.set_owner(library, tenant.id, handbook.id, "HR, ext. 12")
    board = await collections.by_name(library, tenant.id, "board")
    await collections.set_owner(library, tenant.id, board.id, "The chair")
    chat = ScriptedChat(["hotel sauna price"], first_tokens=lambda _: {"NOT": 0.97})
    refused = await answer(agent_over(library, chat), principal, "How much is the sauna in Shanghai?")
    assert (refused.verdict, refused.missing) == ("cannot", ("How much is the sauna in Shanghai?",))
    assert refused.searched == ("How much is the sauna in Shanghai?", "hotel sauna price")
    assert refused.contacts == ("handbook: HR, ext. 12",)
