"""A reply that is cut, broken or missing is never taken for an answer: every provider, every way of asking."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, cast

import pytest
from langchain_core.messages import HumanMessage

from core.errors import InferenceError, ModelTimedOut, PromptTooLong
from core.settings import Settings
from inference.chat import LangChat, Provider
from inference.embedded import EmbeddedProvider
from inference.interfaces import Message
from inference.ollama import OllamaModel, OllamaProvider
from inference.openai import OpenAIProvider
from inference.runfile import Running
from policy.egress import Policy
from tests.fakes import ollama, openai
from tests.unit.conftest import MakeSettings

ANSWER = "Sixteen weeks."
CONTEXT = 1024
ZH = "员工最多可以休十六周的带薪育儿假，须提前两个月提出申请。"
# About 700 tokens, so that a server with half the context could have cut it.
LONG = "Employees may take sixteen weeks of parental leave, paid in full. " * 55

Ask = Callable[[LangChat, str], Awaitable[str]]


class Site(Protocol):
    """A fake server and the chat model over it."""

    chat: LangChat

    def script(self, *names: str) -> None: ...

    @property
    def asked(self) -> int: ...


class _Ollama:
    SCRIPT: Mapping[str, ollama.Reply] = {
        "ok": ollama.Reply(ANSWER, first_token={"The": 1.0}, prompt_eval_count=30),
        "no end": ollama.Reply("Sixteen", done=False),
        "cut": ollama.Reply("Sixteen", done_reason="length"),
        "unknown end": ollama.Reply("Sixteen", done_reason="load"),
        "broken": ollama.Reply("Sixteen", done=False, broken=True),
        "error": ollama.Reply(status=500, error="the runner stopped"),
        "prompt cut": ollama.Reply(ANSWER, prompt_eval_count=CONTEXT // 2 + 2),
        "hang": ollama.Reply(ANSWER, hang=True),
        "nothing": ollama.Reply(done=False),
    }

    def __init__(self, server: ollama.FakeOllama, settings: Settings) -> None:
        self.server = server
        found = OllamaModel("chat", frozenset({"completion", "tools"}), 1.5, None, remote=False)
        self.chat = _chat(OllamaProvider(settings, Policy.of(settings), found, (0, 24)), settings)

    def script(self, *names: str) -> None:
        self.server.replies[:] = [self.SCRIPT[name] for name in names]

    @property
    def asked(self) -> int:
        return len(self.server.chats)


class _OpenAI:
    SCRIPT: Mapping[str, openai.Reply] = {
        "ok": openai.Reply(ANSWER, {"The": 1.0}),
        "no end": openai.Reply("Sixteen", finish=None),
        "cut": openai.Reply("Sixteen", finish="length"),
        "unknown end": openai.Reply("Sixteen", finish="content_filter"),
        "broken": openai.Reply("Sixteen", finish=None, broken=True),
        "error": openai.Reply(status=500, error="the runner stopped"),
        "prompt cut": openai.Reply(ANSWER, prompt_tokens=CONTEXT // 2 + 2),
        "hang": openai.Reply(ANSWER, hang=True),
        "nothing": openai.Reply(finish=None),
    }

    def __init__(self, server: openai.FakeOpenAI, provider: Provider, settings: Settings) -> None:
        self.server = server
        self.chat = _chat(provider, settings)

    def script(self, *names: str) -> None:
        self.server.replies[:] = [self.SCRIPT[name] for name in names]

    @property
    def asked(self) -> int:
        return len(self.server.chats)


class _Embedded(EmbeddedProvider):
    """The embedded provider over a server that runs already."""

    url = ""

    async def _running(self) -> Running:
        return Running(os.getpid(), self.url.removesuffix("/v1"), "key", "model", CONTEXT)


def _chat(provider: Provider, settings: Settings) -> LangChat:
    return LangChat(provider, timeout=settings.chat_timeout, retry_delays=(0, 0))


@pytest.fixture(params=["ollama", "openai", "embedded"])
async def site(request: pytest.FixtureRequest, make_settings: MakeSettings, tmp_path: Path) -> AsyncIterator[Site]:
    async with _opened(request.param, make_settings, tmp_path) as opened:
        yield opened
        await opened.chat.close()


@asynccontextmanager
async def _opened(kind: str, make_settings: MakeSettings, tmp_path: Path) -> AsyncIterator[Site]:
    values: dict[str, Any] = {"num_ctx": CONTEXT, "chat_timeout": 20.0}
    if kind == "ollama":
        with ollama.FakeOllama() as server:
            yield _Ollama(server, make_settings(ollama_url=server.url, **values))
        return
    with openai.FakeOpenAI() as other:
        settings = make_settings(openai_url=other.url, **values)
        if kind == "openai":
            yield _OpenAI(other, OpenAIProvider(settings, Policy.of(settings), "qwen3-8b"), settings)
            return
        gguf = tmp_path / "model.gguf"
        gguf.write_bytes(b"GGUF")
        provider = _Embedded(settings, Policy.of(settings), gguf)
        provider.url = other.url
        yield _OpenAI(other, provider, settings)


async def complete(chat: LangChat, question: str) -> str:
    return (await chat.complete([Message("user", question)], max_tokens=20)).text


async def stream(chat: LangChat, question: str) -> str:
    return "".join([piece async for piece in chat.stream([Message("user", question)], max_tokens=20)])


async def invoke(chat: LangChat, question: str) -> str:
    return str((await chat.langchain().ainvoke([HumanMessage(question)], max_tokens=20)).text)


async def astream(chat: LangChat, question: str) -> str:
    pieces = chat.langchain().astream([HumanMessage(question)], max_tokens=20)
    return "".join([str(piece.text) async for piece in pieces])


async def grade(chat: LangChat, question: str) -> str:
    return ANSWER if await chat.first_token([Message("user", question)]) else ""


WHOLE: list[Ask] = [complete, invoke, grade]
FLOWING: list[Ask] = [stream, astream]
FAULTS = ("no end", "unknown end", "broken", "nothing")


def _named(ask: Any) -> str:
    return str(getattr(ask, "__name__", ask))


@pytest.mark.parametrize("ask", WHOLE, ids=_named)
@pytest.mark.parametrize("fault", [*FAULTS, "error"])
async def test_a_whole_reply_is_asked_for_again(site: Site, ask: Ask, fault: str) -> None:
    site.script(fault, fault, "ok")
    assert await ask(site.chat, "How long?") == ANSWER
    assert site.asked == 3
    site.script(fault, fault, fault, "ok")
    with pytest.raises(InferenceError):
        await ask(site.chat, "How long?")


@pytest.mark.parametrize("ask", FLOWING, ids=_named)
@pytest.mark.parametrize("fault", ["no end", "unknown end", "broken"])
async def test_a_reply_that_was_begun_is_reported(site: Site, ask: Ask, fault: str) -> None:
    site.script(fault, "ok")
    with pytest.raises(InferenceError):
        await ask(site.chat, "How long?")
    assert site.asked == 1


@pytest.mark.parametrize("ask", FLOWING, ids=_named)
async def test_a_refused_stream_is_asked_for_again(site: Site, ask: Ask) -> None:
    site.script("error", "ok")
    assert await ask(site.chat, "How long?") == ANSWER


@pytest.mark.parametrize("ask", [*WHOLE, *FLOWING], ids=_named)
async def test_a_prompt_that_the_server_cut_is_a_fault(site: Site, ask: Ask) -> None:
    site.script("prompt cut")
    with pytest.raises(PromptTooLong):
        await ask(site.chat, LONG)
    assert site.asked == 1


@pytest.mark.parametrize("ask", [*WHOLE, *FLOWING], ids=_named)
@pytest.mark.parametrize("text", [LONG * 3, ZH * 60], ids=["en", "zh"])
async def test_a_prompt_that_does_not_fit_is_never_sent(site: Site, ask: Ask, text: str) -> None:
    site.script("ok")
    with pytest.raises(PromptTooLong, match="INTRAMUROS_NUM_CTX"):
        await ask(site.chat, text)
    assert site.asked == 0


@pytest.mark.parametrize("ask", [*WHOLE, *FLOWING], ids=_named)
async def test_a_server_that_hangs_is_left_in_time(site: Site, ask: Ask) -> None:
    site.script("hang")
    site.chat._timeout = 0.2
    with pytest.raises(ModelTimedOut):
        await ask(site.chat, "How long?")
    assert cast("Any", site).server.left.wait(5)


async def test_a_reply_cut_by_its_limit_says_so(site: Site) -> None:
    site.script("cut", "cut")
    assert (await site.chat.complete([Message("user", "How long?")], max_tokens=1)).finish == "length"
    usages: list[Any] = []
    async for _ in site.chat.stream([Message("user", "How long?")], max_tokens=1, ended=usages.append):
        pass
    assert [usage.finish for usage in usages] == ["length"]


async def test_what_a_call_took_is_told(site: Site) -> None:
    site.script("ok", "ok")
    usages: list[Any] = []
    await site.chat.first_token([Message("user", "How long?")], ended=usages.append)
    async for _ in site.chat.stream([Message("user", "How long?")], max_tokens=20, ended=usages.append):
        pass
    assert [usage.prompt_tokens for usage in usages] == [30, 30]
    assert all(usage.completion_tokens > 0 for usage in usages)
