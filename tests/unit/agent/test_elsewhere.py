"""The intranet search in the graph: asked only before a refusal, once, and cited as what it is."""

from typing import Any, cast

import pytest

from agent.language.words import say
from agent.sources.peer import SearchPeer
from agent.workflow.run import Run
from core.errors import EgressDenied, PeerUnavailable
from core.records import Answer, Hit, Outcome, Source, Status
from tests.fakes.chat import CAPABLE, SMALL, ScriptedChat
from tests.unit.agent.support import REFUSES, SURE, decision, events_of, hit, make_run

LUNCH = hit("Lunch is at noon.", title="Canteen")
PARKING = "A parking space in Shanghai costs CNY 80 a month."
WIKI = hit(PARKING, title="Parking", path="http://wiki.alderway.example/parking", collection="Wiki", origin="peer")
QUESTION = "How much is a parking space in Shanghai?"


class Peer:
    """Gives the same hits, or fails, and counts."""

    name = "Wiki"

    def __init__(self, hits: list[Hit], fault: Exception | None = None) -> None:
        self.hits, self.fault = hits, fault
        self.queries: list[str] = []

    async def find(self, query: str) -> list[Hit]:
        self.queries.append(query)
        if self.fault is not None:
            raise self.fault
        return self.hits


def run_beside(peer: Peer, chat: ScriptedChat, hits: Any = (LUNCH,), **options: Any) -> Run:
    run = make_run(chat, hits, QUESTION, **options)
    run.peer = cast("SearchPeer", peer)
    return run


def answered(run: Run) -> Answer:
    assert run.answer is not None
    return run.answer


def only_of(text: str) -> ScriptedChat:
    """A small model that answers from passages that hold `text` and refuses all others."""

    def first(messages: Any) -> dict[str, float]:
        return SURE if text in messages[-1].content else REFUSES

    def reply(messages: Any) -> str:
        return PARKING if text in messages[-1].content else "parking fee"

    return ScriptedChat(reply, first_tokens=first, traits=SMALL)


async def test_what_the_documents_do_not_say_the_peer_may() -> None:
    peer = Peer([WIKI])
    run = run_beside(peer, only_of(PARKING))
    events = await events_of(run)
    answer = answered(run)
    assert (answer.outcome, answer.answer) == (Outcome.ANSWERED, f"{PARKING[:-1]} [1].")
    (citation,) = answer.citations
    assert (citation.origin, citation.document, citation.quote) == ("peer", WIKI.path, PARKING)
    assert peer.queries == [QUESTION]
    assert any(isinstance(event, Status) and "Wiki" in event.text for event in events)
    assert WIKI in [event.hit for event in events if isinstance(event, Source)]


async def test_a_peer_is_not_asked_what_the_documents_answer() -> None:
    peer = Peer([WIKI])
    run = run_beside(peer, only_of(PARKING), [hit(PARKING)])
    await events_of(run)
    assert answered(run).citations[0].origin == "library"
    assert peer.queries == []


@pytest.mark.parametrize("traits", [SMALL, CAPABLE])
async def test_it_is_asked_once(traits: Any) -> None:
    peer = Peer([hit("The bus leaves at nine.", origin="peer")])
    chat = ScriptedChat(
        lambda messages: decision(messages, verdict="cannot") or "other words",
        first_tokens=lambda _: REFUSES,
        turns=lambda _: pytest.fail("no loop"),
        traits=traits,
    )
    run = run_beside(peer, chat, mode="quick")
    await events_of(run)
    assert answered(run).outcome is Outcome.REFUSED
    assert len(peer.queries) == 1


@pytest.mark.parametrize("fault", [PeerUnavailable(), EgressDenied()])
async def test_a_peer_that_fails_leaves_the_refusal_and_says_so(fault: Exception) -> None:
    run = run_beside(Peer([], fault), only_of("nothing"))
    await events_of(run)
    assert answered(run).answer == say("refusal", "en")
    assert run.notices == ["peer_failed"]


async def test_without_a_peer_there_is_no_last_resort() -> None:
    run = make_run(only_of("nothing"), [LUNCH], QUESTION)
    await events_of(run)
    assert answered(run).outcome is Outcome.REFUSED
    assert not run.peer_asked
