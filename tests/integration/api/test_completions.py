"""Asking as OpenAI's clients do: the same answer, its citations beside it, whole or in chunks."""

import json
from dataclasses import replace
from typing import Any

import pytest

from core.records import Answered, Failed, Outcome, Refused, Status, Token
from tests.integration.api.conftest import Site, answered, scripted
from tests.integration.api.samples import answer_about

PATH = "/v1/chat/completions"
QUESTION = {"role": "user", "content": "What may a hotel in Munich cost?"}


def chunks(text: str) -> list[Any]:
    """What each event of a stream carries; `[DONE]` as it is."""
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(one) if one != "[DONE]" else one for one in data]


async def test_a_completion_is_the_answer_with_its_citations(site: Site) -> None:
    assert site.demo.open
    site.agent.script = scripted(*answered(site.demo.open, site.demo.chunk_id))
    body = {"model": "any", "messages": [QUESTION], "temperature": 0.2, "role": "admin", "user": "x"}
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = (await client.post(PATH, json=body)).json()
        asked = (await client.post("/v1/ask", json={"question": QUESTION["content"]})).json()
    (choice,) = reply["choices"]
    assert (reply["object"], reply["model"], choice["finish_reason"]) == ("chat.completion", "intramuros", "stop")
    assert choice["message"] == {"role": "assistant", "content": asked["answer"]}
    assert "[1]" in choice["message"]["content"]
    assert reply["intramuros"]["citations"] == asked["citations"]
    assert reply["intramuros"]["outcome"] == "answered"
    assert site.agent.asked[0][0] == site.demo.principals["employee"]


async def test_what_was_said_before_and_what_is_our_own_reaches_the_agent(site: Site) -> None:
    assert site.demo.open
    site.agent.script = scripted(*answered(site.demo.open, site.demo.chunk_id))
    parts = [{"type": "text", "text": "and in"}, {"type": "image_url"}, {"type": "text", "text": "London?"}]
    messages = [
        {"role": "system", "content": "You are a pirate."},
        QUESTION,
        {"role": "assistant", "content": "At most 180 euros [1]."},
        {"role": "user", "content": parts},
    ]
    own = {"collections": ["open"], "mode": "quick", "as_of": "2026-01-31"}
    async with site.client(site.demo.tokens["employee"]) as client:
        assert (await client.post(PATH, json={"messages": messages, "intramuros": own})).is_success
        assert (await client.post(PATH, json={"messages": messages, "intramuros": {"tenant": "x"}})).status_code == 422
        assert (await client.post(PATH, json={"messages": messages[:3]})).status_code == 422
    ((_, question, options),) = site.agent.asked
    assert question == "and in\nLondon?"
    assert [message.text for message in options["history"]] == [QUESTION["content"], "At most 180 euros [1]."]
    assert (options["collections"], options["mode"], str(options["as_of"])) == (["open"], "quick", "2026-01-31")


async def test_a_stream_ends_with_what_the_marks_stand_for(site: Site) -> None:
    assert site.demo.open
    answer = answer_about(site.demo.open, site.demo.chunk_id)
    site.agent.script = scripted(
        Status("searching", "Searching"), Token("At most "), Token("180 euros [1]."), Answered(answer)
    )
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.post(PATH, json={"messages": [QUESTION], "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    first, *told, last, done = chunks(reply.text)
    assert done == "[DONE]"
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [one["choices"][0]["delta"]["content"] for one in told] == ["At most ", "180 euros [1]."]
    assert {one["id"] for one in (first, *told, last)} == {first["id"]}
    assert (last["choices"][0]["finish_reason"], last["intramuros"]["citations"][0]["n"]) == ("stop", 1)


@pytest.mark.parametrize(
    ("outcome", "finish"), [(Outcome.REFUSED, "stop"), (Outcome.WAITING, "stop"), (Outcome.INCOMPLETE, "length")]
)
async def test_what_was_not_streamed_is_told_whole(site: Site, outcome: Outcome, finish: str) -> None:
    assert site.demo.open
    told = replace(answer_about(site.demo.open, site.demo.chunk_id), outcome=outcome, answer="Words.", citations=())
    site.agent.script = scripted(Refused(told) if outcome is Outcome.REFUSED else Answered(told))
    async with site.client(site.demo.tokens["employee"]) as client:
        reply = await client.post(PATH, json={"messages": [QUESTION], "stream": True})
    _, text, last, _ = chunks(reply.text)
    assert text["choices"][0]["delta"]["content"] == "Words."
    assert last["choices"][0]["finish_reason"] == finish


async def test_faults_have_their_status_before_and_an_error_within_a_stream(site: Site) -> None:
    async with site.client(site.demo.tokens["employee"]) as client:
        site.agent.script = scripted(Failed("model_unavailable", "Start it."))
        for stream in (True, False):
            reply = await client.post(PATH, json={"messages": [QUESTION], "stream": stream})
            assert (reply.status_code, reply.json()["code"]) == (503, "model_unavailable")
        site.agent.script = scripted(Token("At most"), Failed("model_unavailable", "Start it."))
        reply = await client.post(PATH, json={"messages": [QUESTION], "stream": True})
    assert chunks(reply.text)[-1]["error"]["code"] == "model_unavailable"
