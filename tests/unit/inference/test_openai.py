"""The provider and the embedder for private OpenAI-compatible servers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest

from core.errors import (
    BootRefused,
    InferenceError,
    IntramurosError,
    ModelMissing,
    ModelRefused,
    ModelUnavailable,
    PromptTooLong,
)
from core.settings import Settings
from inference import openai
from inference.chat import LangChat
from inference.interfaces import Message
from inference.openai import OpenAIEmbedder, OpenAIProvider
from policy.egress import Policy
from tests.fakes.embedder import DIMENSION, vector
from tests.fakes.openai import FakeOpenAI, Reply
from tests.unit.conftest import MakeSettings

QUESTION = [Message("system", "Answer briefly."), Message("user", "How long is parental leave?")]


@asynccontextmanager
async def chatting(settings: Settings, name: str = "qwen3-8b") -> AsyncIterator[LangChat]:
    provider = OpenAIProvider(settings, Policy.of(settings), name)
    chat = LangChat(provider, timeout=settings.chat_timeout, retry_delays=(0, 0))
    try:
        yield chat
    finally:
        await chat.close()


async def test_a_call_carries_every_limit(make_settings: MakeSettings) -> None:
    schema = {"type": "object"}
    with FakeOpenAI(replies=[Reply("<think>so</think>Sixteen weeks.")]) as server:
        async with chatting(make_settings(openai_url=server.url, openai_api_key="private")) as chat:
            completion = await chat.complete(QUESTION, max_tokens=22, stop=["\n"], schema=schema)
    assert (completion.text, completion.prompt_tokens, completion.completion_tokens) == ("Sixteen weeks.", 30, 5)
    (body,) = server.chats
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 22
    assert (body["temperature"], body["stop"]) == (0, ["\n"])
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert server.requests[0][1]["authorization"] == "Bearer private"


async def test_first_token_probabilities(make_settings: MakeSettings) -> None:
    with FakeOpenAI(replies=[Reply("NOT", {"NOT": 0.6, "The": 0.4}, finish="length"), Reply("NOT")]) as server:
        async with chatting(make_settings(openai_url=server.url)) as chat:
            assert await chat.first_token(QUESTION, top=2) == pytest.approx({"NOT": 0.6, "The": 0.4})
            assert await chat.first_token(QUESTION) is None


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=400, error="This model's maximum context length is 4096 tokens"), PromptTooLong),
        (Reply(status=400, error="exceed_context_size_error"), PromptTooLong),
        (Reply(status=401, error="no"), ModelRefused),
        (Reply(status=404, error="no such model"), ModelMissing),
        (Reply(status=503, error="loading"), ModelUnavailable),
        (Reply(status=500, error="boom"), InferenceError),
        (Reply("Sixteen", finish=None), InferenceError),
        (Reply("Sixteen", finish="content_filter"), InferenceError),
    ],
)
async def test_faults_have_types(make_settings: MakeSettings, reply: Reply, error: type[IntramurosError]) -> None:
    with FakeOpenAI(replies=[reply] * 3) as server:
        async with chatting(make_settings(openai_url=server.url)) as chat:
            with pytest.raises(error):
                await chat.complete(QUESTION, max_tokens=5)


async def test_a_stopped_server_is_unavailable(make_settings: MakeSettings) -> None:
    with FakeOpenAI() as server:
        settings = make_settings(openai_url=server.url)
    async with chatting(settings) as chat:
        with pytest.raises(ModelUnavailable):
            await chat.complete(QUESTION, max_tokens=5)
    with pytest.raises(ModelUnavailable, match="INTRAMUROS_OPENAI_URL"):
        await openai.models(settings, Policy.of(settings))


def test_a_public_server_is_refused(make_settings: MakeSettings) -> None:
    with pytest.raises(BootRefused):
        Policy.of(make_settings(openai_url="https://203.0.113.7/v1"))


@pytest.mark.parametrize(
    ("name", "capable"), [("qwen2.5-1.5b", False), ("Llama-3.2-3B-Instruct", True), ("house", True)]
)
async def test_capable_by_the_name(make_settings: MakeSettings, name: str, capable: bool) -> None:
    async with chatting(make_settings(openai_url="http://127.0.0.1:9/v1"), name) as chat:
        assert chat.traits.capable is capable


async def test_embedding(make_settings: MakeSettings) -> None:
    with FakeOpenAI() as server:
        settings = make_settings(openai_url=server.url)
        embedder = await OpenAIEmbedder.open(settings, Policy.of(settings), "nomic-embed-text-v2")
        vectors = await embedder.embed_passages([f"text {n}" for n in range(40)])
        query = await embedder.embed_query("which text?")
        await embedder.close()
        await embedder.close()
    assert (embedder.id, embedder.dimension) == ("openai:nomic-embed-text-v2", DIMENSION)
    assert vectors.shape == (40, DIMENSION)
    assert np.allclose(vectors[39], vector("search_document: text 39"), atol=1e-6)
    assert np.allclose(query, vector("search_query: which text?"), atol=1e-6)


async def test_a_long_text_is_embedded_in_windows(make_settings: MakeSettings) -> None:
    with FakeOpenAI(embed_words=32) as server:
        settings = make_settings(openai_url=server.url)
        embedder = await OpenAIEmbedder.open(settings, Policy.of(settings), "bge-m3")
        short, long = await embedder.embed_passages(["leave policy", "leave policy " * 40])
        await embedder.close()
    assert float(short @ long) > 0.9
