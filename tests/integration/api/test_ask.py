"""Asking: the answer as JSON, the events of its making, and what ends them early."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest

import agent.workflow.run  # noqa: F401 its errors have statuses of their own
from core.records import Answered, Event, Failed, Outcome, Refused, Source, Status, Token
from inference import select
from storage import search, users
from tests.integration.api.conftest import Site, answered, events, scripted
from tests.integration.api.leaving import leave
from tests.integration.api.samples import answer_about

STREAM = {"accept": "text/event-stream"}
QUESTION = {"question": "What may a hotel in Munich cost?"}


async def test_an_answer_as_json(site: Site) -> None:
    assert site.demo.open
    site.agent.script = scripted(*answered(site.demo.open, site.demo.chunk_id))
    asked = {"question": " hotel? ", "collections": ["open"], "mode": "quick", "as_of": "2026-01-31"}
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.post("/v1/ask", json=asked)
    ((principal, question, options),) = site.agent.asked
    assert principal == site.demo.principals["employee"]
    assert question == "hotel?"
    assert options == {"session_id": None, "collections": ["open"], "mode": "quick", "as_of": date(2026, 1, 31)}
    body = reply.json()
    assert set(body) == {
        *("outcome", "answer", "answer_html", "language", "question", "standalone_question", "citations", "timings"),
        *("model_calls", "notice", "nearest", "session_id", "turn_id", "verdict", "missing", "searched", "contacts"),
    }
    assert (body["outcome"], body["language"], body["model_calls"]) == ("answered", "en", 2)
    (citation,) = body["citations"]
    assert citation == {
        "n": 1,
        "document": "travel.md",
        "document_id": str(site.demo.open.id),
        "chunk_id": site.demo.chunk_id,
        "title": site.demo.open.title,
        "heading_path": ["2. Hotel caps"],
        "page": None,
        "quote": "A hotel room costs at most 180 euros a night in Munich",
        "revision": 1,
        "start": 360,
        "end": 414,
        "collection": "open",
        "origin": "library",
        "standing": "present",
    }
    opening = f"/?document={site.demo.open.id}&amp;passage={site.demo.chunk_id}"
    assert f'href="{opening}&amp;revision=1&amp;start=360&amp;end=414"' in body["answer_html"]


async def test_the_events_come_in_order_each_with_its_data(site: Site) -> None:
    assert site.demo.open
    (hit, *_) = await search.search(
        site.runtime.db, site.demo.principals["employee"], "hotel caps Munich", None, embedder_id="", mode="bm25"
    )
    answer = answer_about(site.demo.open, site.demo.chunk_id)
    site.agent.script = scripted(
        Status("searching", "Searching"), Source(hit), Token("At most "), Token("180 euros\n[1]."), Answered(answer)
    )
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.post("/v1/ask", json=QUESTION, headers=STREAM)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["cache-control"] == "no-store"
    assert "default-src 'self'" in reply.headers["content-security-policy"]
    named = [(name, json.loads(data)) for name, data in events(reply.text)]
    assert [name for name, _ in named] == ["status", "source", "token", "token", "answered"]
    assert named[0][1] == {"stage": "searching", "text": "Searching"}
    assert named[1][1]["chunk_id"] == hit.chunk_id
    assert "".join(data["text"] for name, data in named if name == "token") == "At most 180 euros\n[1]."
    assert named[4][1]["answer"] == answer.answer
    assert named[4][1]["answer_html"].startswith("<p>")


async def test_a_refusal_is_an_answer_too(site: Site) -> None:
    assert site.demo.open
    refusal = replace(
        answer_about(site.demo.open, site.demo.chunk_id), outcome=Outcome.REFUSED, answer="Not found.", citations=()
    )
    site.agent.script = scripted(Refused(refusal))
    async with site.client(site.demo.tokens["employee"]) as client:
        plain = await client.post("/v1/ask", json=QUESTION)
        stream = await client.post("/v1/ask", json=QUESTION, headers=STREAM)
    assert (plain.status_code, plain.json()["outcome"]) == (200, "refused")
    ((name, data),) = events(stream.text)
    assert (name, json.loads(data)["outcome"]) == ("refused", "refused")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("session_busy", 409),
        ("model_unavailable", 503),
        ("model_timed_out", 504),
        ("not_found", 404),
        ("out_of_time", 504),
    ],
)
async def test_a_failure_before_anything_was_sent_has_its_status(site: Site, code: str, status: int) -> None:
    site.agent.script = scripted(Failed(code, "What to do."))
    async with site.client(site.demo.tokens["employee"]) as client:
        for headers in ({}, STREAM):
            reply = await client.post("/v1/ask", json=QUESTION, headers=headers)
            assert reply.status_code == status
            assert (reply.json()["code"], reply.json()["detail"]) == (code, "What to do.")


async def test_a_failure_on_the_way_ends_the_stream(site: Site) -> None:
    async def defect(_: str) -> AsyncIterator[Event]:
        yield Token("At most")
        raise RuntimeError("hunter2")

    async with site.client(site.demo.tokens["employee"]) as client:
        site.agent.script = scripted(Token("At most"), Failed("model_unavailable", "Start it."))
        reply = await client.post("/v1/ask", json=QUESTION, headers=STREAM)
        assert [name for name, _ in events(reply.text)] == ["token", "failed"]
        assert json.loads(events(reply.text)[1][1])["code"] == "model_unavailable"
        site.agent.script = defect
        reply = await client.post("/v1/ask", json=QUESTION, headers=STREAM)
        assert [name for name, _ in events(reply.text)] == ["token", "failed"]
        assert "hunter2" not in reply.text
        plain = await client.post("/v1/ask", json=QUESTION)
        assert (plain.status_code, plain.json()["code"]) == (500, "internal")


class Waiting:
    """An agent that says one thing and then waits; knows when it was stopped."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.stopped = asyncio.Event()

    async def script(self, _: str) -> AsyncIterator[Event]:
        try:
            yield Status("reading", "Reading")
            self.begun.set()
            await asyncio.Event().wait()
        finally:
            self.stopped.set()


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
async def test_a_client_that_leaves_stops_the_model(site: Site, accept: str) -> None:
    waiting = Waiting()
    site.agent.script = waiting.script
    body = json.dumps(QUESTION).encode()
    token = site.demo.tokens["employee"]
    sent = await leave(site, "POST", "/v1/ask", token=token, begun=waiting.begun, body=body, accept=accept)
    assert waiting.stopped.is_set()
    assert not any(b"answered" in message.get("body", b"") for message in sent)


@pytest.mark.threat(99)
async def test_a_user_disabled_meanwhile_reads_no_further(site: Site) -> None:
    assert site.demo.open
    answer = answer_about(site.demo.open, site.demo.chunk_id)
    principal = site.demo.principals["employee"]

    async def shut_out(_: str) -> AsyncIterator[Event]:
        yield Token("At most")
        await users.set_disabled(site.runtime.db, principal.tenant_id, principal.user_id, True)
        yield Token("180 euros")
        yield Answered(answer)

    site.agent.script = shut_out
    # Ask again before every event, instead of every two seconds.
    site.app.state.context = replace(site.context, recheck=0.0)
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.post("/v1/ask", json=QUESTION, headers=STREAM)
    named = events(reply.text)
    assert [name for name, _ in named][-1] == "failed"
    assert json.loads(named[-1][1])["code"] == "unauthenticated"
    assert "answered" not in [name for name, _ in named]


async def test_the_search_has_the_shape_that_the_command_line_prints(site: Site) -> None:
    async with site.client(site.demo.tokens["employee"]) as client:
        body = (await client.post("/v1/search", json={"query": "hotel caps", "limit": 1})).json()
    (hit,) = body["hits"]
    assert body["query"] == "hotel caps"
    assert {"rank", "document", "document_id", "chunk_id", "title", "heading_path", "page", "text", "scores"} <= set(
        hit
    )
    assert set(hit["scores"]) == {"vector", "bm25", "fused", "reranked"}
    assert (hit["rank"], hit["document"]) == (1, "travel.md")


async def test_a_search_says_whether_it_is_reranked(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    class Reranker:
        id, weight = "fake", 1.0

        async def scores(self, query: str, passages: Sequence[str]) -> np.ndarray[Any, Any]:
            return np.arange(len(passages), dtype=np.float32)

        async def close(self) -> None:
            """Holds nothing."""

    monkeypatch.setattr(select, "open_reranker", lambda *_: Reranker())
    async with site.client(site.demo.tokens["employee"]) as client:

        async def reranked(**options: bool) -> float | None:
            body = {"query": "hotel caps", **options}
            score: float | None = (await client.post("/v1/search", json=body)).json()["hits"][0]["scores"]["reranked"]
            return score

        assert await reranked() == await reranked(rerank=True) == 1
        assert await reranked(rerank=False) is None
