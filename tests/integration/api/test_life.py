"""The whole way with the real agent: uploaded, asked about, cited, read, deleted, and then no longer answered."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import httpx
import pytest

from api.runtime import agent_over
from storage import answering, sessions
from tests.fakes.chat import ScriptedChat
from tests.integration.api.conftest import Site, events

FACT = "The hotel cap in Shanghai is CNY 550 per night."
NOTE = f"# Hotels\n\n{FACT}\n".encode()
QUESTION = "How much is the hotel cap in Shanghai?"


def _reply(messages: Sequence[Any]) -> str:
    return FACT if FACT in messages[-1].content else "hotel Shanghai"


def _first(messages: Sequence[Any]) -> Mapping[str, float]:
    return {"The": 0.97, "NOT": 0.01} if FACT in messages[-1].content else {"NOT": 0.97}


@pytest.fixture
def chat() -> ScriptedChat:
    """A model that knows what its passage says and nothing else."""
    return ScriptedChat(_reply, first_tokens=_first)


@pytest.fixture
async def live(site: Site) -> Site:
    """The site with the real agent, and the document that answers."""
    site.runtime.make_agent = agent_over
    async with site.client(site.demo.tokens["admin"]) as client:
        await client.post("/v1/documents", files={"file": ("hotels.md", NOTE)}, data={"collection": "open"})
    await site.context.worker.drain(site.demo.tenant.id)
    return site


async def _ask(client: httpx.AsyncClient, session_id: str | None = None, accept: str = "*/*") -> httpx.Response:
    body = {"question": QUESTION, "session_id": session_id}
    return await client.post("/v1/ask", json=body, headers={"accept": accept})


@pytest.mark.threat(53)
async def test_from_upload_to_answer_to_gone(live: Site) -> None:
    async with live.client(live.demo.tokens["admin"]) as admin, live.client(live.demo.tokens["employee"]) as employee:
        session_id = (await employee.post("/v1/sessions", json={"title": "Hotels"})).json()["id"]
        stream = events((await _ask(employee, session_id, "text/event-stream")).text)
        names = [name for name, _ in stream]
        assert (names[0], names[-1]) == ("status", "answered")
        assert names.index("source") < names.index("token")
        answer = json.loads(stream[-1][1])
        assert answer["answer"] == f"{FACT[:-1]} [1]."
        assert "".join(json.loads(data)["text"] for name, data in stream if name == "token") == answer["answer"]

        (citation,) = answer["citations"]
        address = f"/v1/documents/{citation['document_id']}/passages/{citation['chunk_id']}"
        assert citation["quote"] in (await employee.get(address)).json()["text"]
        (turn,) = (await employee.get(f"/v1/sessions/{session_id}")).json()["turns"]
        assert (turn["turn_id"], turn["answer"]) == (answer["turn_id"], answer["answer"])
        rated = await employee.post(f"/v1/turns/{turn['turn_id']}/feedback", json={"value": -1, "reason": "too short"})
        assert rated.status_code == 204
        assert (await employee.get(f"/v1/sessions/{session_id}")).json()["turns"][0]["feedback"] == -1

        await admin.delete(f"/v1/documents/{citation['document_id']}")
        again = (await _ask(employee)).json()
        assert again["outcome"] == "refused"
        assert citation["document_id"] not in json.dumps(again)
        assert (await employee.get(address)).status_code == 404
        receipt = (await employee.delete(f"/v1/sessions/{session_id}")).json()
        assert receipt["counts"]["turns"] == 1
        assert receipt["counts"]["checkpoints"] > 0
        assert (await employee.get(f"/v1/sessions/{session_id}")).status_code == 404


async def test_others_can_tell_while_a_question_is_answered(live: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    grade = ScriptedChat.first_token

    async def watched(chat: ScriptedChat, *args: Any, **options: Any) -> Any:
        seen.append(await answering.under_way(live.runtime.db))
        return await grade(chat, *args, **options)

    monkeypatch.setattr(ScriptedChat, "first_token", watched)
    async with live.client(live.demo.tokens["employee"]) as client:
        assert (await _ask(client)).json()["outcome"] == "answered"
    assert seen
    assert all(seen)
    assert not await answering.under_way(live.runtime.db)


async def test_a_session_answers_one_question_at_a_time(live: Site) -> None:
    employee = live.demo.principals["employee"]
    session = await sessions.create(live.runtime.db, employee, "Hotels")
    async with live.client(live.demo.tokens["employee"]) as client:
        async with sessions.running(live.runtime.db, employee, session.id):
            for accept in ("application/json", "text/event-stream"):
                reply = await _ask(client, str(session.id), accept)
                assert (reply.status_code, reply.json()["code"]) == (409, "session_busy")
            assert (await client.delete(f"/v1/sessions/{session.id}")).status_code == 409
        replies = await asyncio.gather(*(_ask(client, str(session.id)) for _ in range(4)))
        stored = await sessions.turns(live.runtime.db, employee, session.id)
    answered = [reply for reply in replies if reply.status_code == 200]
    assert {reply.status_code for reply in replies} <= {200, 409}
    assert len(answered) == len(stored) >= 1
    assert {UUID(reply.json()["turn_id"]) for reply in answered} == {turn.id for turn in stored}


async def test_a_session_of_somebody_else_is_not_there(live: Site) -> None:
    session = await sessions.create(live.runtime.db, live.demo.principals["admin"], "Hotels")
    for token in (live.demo.tokens["employee"], live.other.tokens["admin"]):
        async with live.client(token) as client:
            for accept in ("application/json", "text/event-stream"):
                reply = await _ask(client, str(session.id), accept)
                assert (reply.status_code, reply.json()["code"]) == (404, "not_found")
    assert await sessions.turns(live.runtime.db, live.demo.principals["admin"], session.id) == []
