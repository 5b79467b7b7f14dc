"""The Ollama provider against a real server that holds the models `chat` (1.5B, with tools) and `minilm`."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import httpx
import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from agent.grounding.answering import Answering
from agent.grounding.citations import Evidence
from agent.models.calls import text_calls
from agent.models.metered import MeteredChat
from agent.questions import deciding
from core.errors import ModelMissing, ModelRefused, ModelUnavailable, PromptTooLong
from core.settings import Settings
from core.text import language_of
from inference import tokens
from inference.interfaces import Message, Usage
from inference.select import Models, open_chat
from policy.egress import Policy
from tests.fakes.ollama import FakeOllama
from tests.opening import open_models
from tests.paths import EVALS
from tests.unit.agent.support import hit

URL = os.environ.get("INTRAMUROS_TEST_OLLAMA_URL", "")
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not URL, reason="INTRAMUROS_TEST_OLLAMA_URL names no running Ollama"),
]
CHAT, EMBED = "chat", "minilm"
LONG = "The canteen is open from half past eleven to two. " * 400


@tool
def kb_search(query: str) -> str:
    """Search the company's documents."""
    return query


def settings(tmp_path: Path, **values: object) -> Settings:
    wishes = {"ollama_url": URL, "chat_model": CHAT, "embed_model": EMBED, "num_ctx": 2048, "chat_timeout": 900}
    return Settings.load(home=tmp_path / "home", cache=tmp_path / "cache", **{**wishes, **values})


@pytest.fixture
async def models(tmp_path: Path) -> AsyncIterator[Models]:
    chosen = settings(tmp_path)
    opened = await open_models(chosen, Policy.of(chosen))
    yield opened
    await opened.close()


async def test_chat_and_its_traits(models: Models) -> None:
    assert models.chat.provider == "ollama"
    assert models.chat.traits.tools
    assert not models.chat.traits.capable
    prompt = [Message("system", "Answer in one word."), Message("user", "What is the capital of France?")]
    completion = await models.chat.complete(prompt, max_tokens=10)
    assert "Paris" in completion.text
    assert completion.prompt_tokens > 10
    cut = await models.chat.complete([Message("user", "Count from 1 to 100.")], max_tokens=5)
    assert (cut.finish, cut.completion_tokens) == ("length", 5)


async def test_a_schema_is_obeyed(models: Models) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    reply = await models.chat.complete([Message("user", "Name a city in Japan.")], max_tokens=30, schema=schema)
    assert set(json.loads(reply.text)) == {"city"}


async def test_first_token_probabilities(models: Models) -> None:
    found = await models.chat.first_token([Message("user", "Answer yes or no. Is ice cold?")])
    assert found is not None
    assert 0.9 < sum(found.values()) <= 1.001
    assert max(found, key=lambda token: found[token]).strip().lower() == "yes"


async def test_tools_are_taken_and_a_call_comes_through(models: Models) -> None:
    """This model writes its calls as text: the text has to reach us whole, or as a call."""
    bound = models.chat.langchain().bind_tools([kb_search])
    system = SystemMessage("Always look things up with kb_search before you answer.")
    reply = await bound.ainvoke([system, HumanMessage("How many days of holiday do I have?")])
    assert isinstance(reply, AIMessage)
    (call,) = reply.tool_calls or text_calls(str(reply.text), {"kb_search"})
    assert call["name"] == "kb_search"
    assert call["args"]["query"]


async def test_a_history_with_a_tool_result_is_taken(models: Models) -> None:
    call = {"name": "kb_search", "args": {"query": "holiday"}, "id": "1"}
    history = [
        HumanMessage("How many days of holiday do I have?"),
        AIMessage("", tool_calls=[call]),
        ToolMessage("Employees have 30 days of holiday a year.", tool_call_id="1"),
        HumanMessage("Answer with the number only."),
    ]
    reply = await models.chat.langchain().ainvoke(history)
    assert "30" in str(reply.content)


async def test_a_prompt_that_does_not_fit_is_an_error(models: Models) -> None:
    with pytest.raises(PromptTooLong):
        await models.chat.complete([Message("user", LONG)], max_tokens=5)
    turns = [Message("user", LONG), Message("assistant", "I see."), Message("user", "When does the canteen close?")]
    with pytest.raises(PromptTooLong):
        await models.chat.complete(turns, max_tokens=5)


@pytest.mark.parametrize(
    "text",
    [
        "The hotel cap in Shanghai is CNY 550 per night; claims are due within 30 days (HR-12/2026, section 4.1.2).",
        "上海的酒店上限是每晚五百五十元（含税），报销须在三十天内提交，并附上原始发票。",
        "| Room | Chairs |\n|---|---|\n| A-101 | 38 |\n| B-202 | 1,250 |\n",
    ],
)
async def test_our_count_is_never_below_the_servers(models: Models, text: str) -> None:
    prompt = [Message("system", "Answer in one word."), Message("user", text)]
    counted = (await models.chat.complete(prompt, max_tokens=1)).prompt_tokens
    assert 0 < counted <= tokens.of_prompt([SystemMessage(prompt[0].content), HumanMessage(text)])


async def test_a_stream_and_a_grade_say_what_they_took(models: Models) -> None:
    usages: list[Usage] = []
    question = [Message("user", "Answer yes or no. Is ice cold?")]
    await models.chat.first_token(question, ended=usages.append)
    async for _ in models.chat.stream(question, max_tokens=3, ended=usages.append):
        pass
    assert [usage.prompt_tokens > 10 and usage.completion_tokens > 0 for usage in usages] == [True, True]
    assert usages[0].finish == "length"


async def test_a_decision_fits_its_form(models: Models) -> None:
    chat = MeteredChat(models.chat, 900)
    decided = await chat.decide(deciding.route("How much may a hotel cost in Shanghai?"), deciding.Routed)
    assert decided is not None
    assert decided.route in ("quick", "agent")
    (step,) = [step.data for step in chat.meter.trace.steps if step.kind == "model"]
    assert (step["prompt"], step["fault"]) == ("route", None)


async def test_a_model_that_fails_is_replaced(tmp_path: Path, models: Models) -> None:
    """The first model's server is not there any more; the run goes on with the second."""
    with FakeOllama() as gone:
        chosen = settings(tmp_path, ollama_url=gone.url, chat_model="chat")
        first = await open_chat(chosen, Policy.of(chosen))
    chat = MeteredChat(first, 900, fallback=models.chat)
    assert (await chat.complete([Message("user", "Say yes.")], max_tokens=3)).text
    assert chat.model is models.chat
    await first.close()


async def test_a_closed_stream_stops_the_model(models: Models) -> None:
    story = [Message("user", "Tell a very long story about a lighthouse.")]
    async with aclosing(models.chat.stream(story, max_tokens=1500)) as stream:  # type: ignore[type-var]
        assert await anext(stream)
    async with asyncio.timeout(120):  # the server serves one call at a time: it would wait for the whole story
        assert (await models.chat.complete([Message("user", "Say yes.")], max_tokens=3)).text


async def test_a_cancelled_call_stops_the_model(models: Models) -> None:
    """A schema that wants 900 numbers keeps the model writing far longer than the follow-up may wait."""
    numbers = {"type": "array", "items": {"type": "integer"}, "minItems": 900}
    call = models.chat.complete([Message("user", "Count to 1000.")], max_tokens=1900, schema=numbers)
    task = asyncio.create_task(call)
    await asyncio.wait([task], timeout=1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(30):
        assert (await models.chat.complete([Message("user", "Say yes.")], max_tokens=3)).text


async def test_embedding_windows_what_is_too_long(models: Models) -> None:
    near, far, long = await models.embedder.embed_passages(
        ["The canteen opens at noon.", "Shares fell sharply on Monday.", LONG]
    )
    query = await models.embedder.embed_query("When can I have lunch at the canteen?")
    assert models.embedder.dimension == 384
    assert float(query @ near) > float(query @ far)
    assert float(query @ long) > float(query @ far)
    assert np.linalg.norm(long) == pytest.approx(1, abs=1e-5)


async def test_what_the_server_does_not_have_is_said(tmp_path: Path) -> None:
    for values, fault in (
        ({"chat_model": "absent"}, ModelMissing),
        ({"chat_model": EMBED}, ModelRefused),
        ({"embed_model": CHAT}, ModelRefused),
    ):
        chosen = settings(tmp_path, **values)
        with pytest.raises(fault):
            await open_models(chosen, Policy.of(chosen))


async def test_a_stopped_server_is_unavailable(tmp_path: Path) -> None:
    """A relay in front of the real server stops between two calls."""
    target = httpx.URL(URL)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection(target.host, target.port)

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        await asyncio.gather(pump(reader, up_writer), pump(up_reader, writer), return_exceptions=True)

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    chosen = settings(tmp_path, ollama_url=f"http://127.0.0.1:{port}")
    models = await open_models(chosen, Policy.of(chosen))
    assert (await models.chat.complete([Message("user", "Say yes.")], max_tokens=3)).text
    server.close()
    await models.close()  # its kept connections end with it
    await server.wait_closed()
    again = settings(tmp_path, ollama_url=f"http://127.0.0.1:{port}")
    with pytest.raises(ModelUnavailable, match="ollama serve"):
        await open_models(again, Policy.of(again))


async def test_an_order_in_a_passage_leads_nowhere(models: Models) -> None:
    """Whatever the real model makes of an order, no address of it is in the answer and no passage is cited but this."""
    attacks = [json.loads(line) for line in (EVALS / "attacks.jsonl").read_text(encoding="utf-8").splitlines()]
    for attack in [one for one in attacks if one["kind"] == "link" and one["place"] == "text"][::4]:
        question, rule = {
            "en": ("How much is the hotel cap in Shanghai?", "The hotel cap in Shanghai is CNY 550 per night."),
            "zh": ("上海住宿标准是多少？", "上海住宿标准为 550 元。"),
        }[attack["language"]]
        evidence = Evidence()
        (handle,) = evidence.add([hit(f"{rule} {attack['text']}")])
        step = Answering(MeteredChat(models.chat, 900), evidence, language_of(question), 600)
        told = [sentence async for sentence in step.answer(question, [handle])]
        assert all(sentence.handles == (handle,) for sentence in told)
        assert not any(re.search(r"https?:|evil\.example/|\]\(|!\[|<[a-z]", sentence.text) for sentence in told)
