"""The Ollama provider and embedder against a small server on loopback that follows Ollama's protocol."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

import numpy as np
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from core.errors import (
    EgressDenied,
    InferenceError,
    IntramurosError,
    ModelMissing,
    ModelRefused,
    ModelTimedOut,
    ModelUnavailable,
    PromptTooLong,
)
from core.settings import Settings
from inference.chat import LangChat
from inference.interfaces import Message
from inference.ollama import OllamaEmbedder, OllamaProvider, OllamaServer, billions, is_cloud
from policy.egress import Policy
from tests.fakes import embedder as fake_embedder
from tests.fakes.ollama import FakeOllama, Reply, model
from tests.unit.conftest import MakeSettings

QUESTION = [Message("system", "Answer briefly."), Message("user", "How long is parental leave?")]
LONG = "Employees may take sixteen weeks of parental leave, paid in full. " * 60


@asynccontextmanager
async def chatting(server: FakeOllama, settings: Settings, name: str = "chat:latest") -> AsyncIterator[LangChat]:
    policy = Policy.of(settings)
    about = OllamaServer(settings, policy)
    try:
        provider = OllamaProvider(settings, policy, await about.show(name), await about.version())
    finally:
        await about.close()
    chat = LangChat(provider, timeout=settings.chat_timeout, retry_delays=(0, 0))
    try:
        yield chat
    finally:
        await chat.close()


async def test_a_call_carries_every_limit_and_asks_not_to_cut(make_settings: MakeSettings) -> None:
    with FakeOllama(replies=[Reply("Sixteen weeks.", prompt_eval_count=30)]) as server:
        async with chatting(server, make_settings(ollama_url=server.url, num_ctx=2048)) as chat:
            completion = await chat.complete(QUESTION, max_tokens=22, stop=["\n"])
    assert (completion.text, completion.finish, completion.prompt_tokens) == ("Sixteen weeks.", "stop", 30)
    (body,) = server.chats
    assert body["truncate"] is False
    assert body["shift"] is False
    assert body["options"] == {"num_ctx": 2048, "temperature": 0.0, "num_predict": 22, "stop": ["\n"]}
    assert [message["role"] for message in body["messages"]] == ["system", "user"]


async def test_a_schema_becomes_the_format(make_settings: MakeSettings) -> None:
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    with FakeOllama(replies=[Reply('{"city": "Berlin"}')]) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            await chat.complete(QUESTION, max_tokens=20, schema=schema)
    assert server.chats[0]["format"] == schema


@pytest.mark.threat(12)
async def test_no_key_is_sent_whatever_the_environment_holds(
    make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_API_KEY", "secret")
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:1")
    with FakeOllama(replies=[Reply("Yes.")]) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            await chat.complete(QUESTION, max_tokens=5)
    assert [request.path for request in server.requests] == ["/api/show", "/api/version", "/api/chat"]
    assert not any("authorization" in request.headers for request in server.requests)


@pytest.mark.threat(11)
async def test_a_redirect_is_refused_and_nothing_sent_on(make_settings: MakeSettings) -> None:
    with FakeOllama(replies=[Reply("never")]) as other:
        redirect = Reply(status=307, headers={"location": f"{other.url}/api/chat"})
        with FakeOllama(replies=[redirect]) as server:
            async with chatting(server, make_settings(ollama_url=server.url)) as chat:
                with pytest.raises(EgressDenied):
                    await chat.complete(QUESTION, max_tokens=5)
        assert other.requests == []


async def test_thinking_never_reaches_a_reply(make_settings: MakeSettings) -> None:
    pieces = ["<th", "ink>The policy says", " 16.</th", "ink>Sixteen", " weeks."]
    with FakeOllama(replies=[Reply(pieces=pieces)] * 3) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            whole = await chat.complete(QUESTION, max_tokens=50)
            streamed = "".join([piece async for piece in chat.stream(QUESTION, max_tokens=50)])
            message = await chat.langchain().ainvoke([HumanMessage("How long?")])
    assert whole.text == streamed == message.content == "Sixteen weeks."


async def test_a_model_that_thinks_is_asked_not_to(make_settings: MakeSettings) -> None:
    models = {"qwen3:8b": model("completion", "tools", "thinking", size="8.2B")}
    with FakeOllama(models=models, replies=[Reply("Yes.")]) as server:
        async with chatting(server, make_settings(ollama_url=server.url), "qwen3:8b") as chat:
            await chat.complete(QUESTION, max_tokens=5)
            assert chat.traits.capable
    assert server.chats[0]["think"] is False


async def test_first_token_probabilities(make_settings: MakeSettings) -> None:
    with FakeOllama(replies=[Reply("NOT", first_token={"NOT": 0.6, "The": 0.4}, done_reason="length")]) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            found = await chat.first_token(QUESTION, top=2)
    assert found == pytest.approx({"NOT": 0.6, "The": 0.4})
    assert server.chats[0]["top_logprobs"] == 2
    assert server.chats[0]["options"]["num_predict"] == 1


async def test_first_token_is_none_where_the_server_gives_none(make_settings: MakeSettings) -> None:
    with FakeOllama(replies=[Reply("NOT", done_reason="length")]) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            assert await chat.first_token(QUESTION) is None


async def test_tools_go_out_and_calls_come_back(make_settings: MakeSettings) -> None:
    @tool
    def kb_search(query: str) -> str:
        """Search."""
        return query

    calls = [{"name": "kb_search", "arguments": {"query": "leave"}}]
    with FakeOllama(replies=[Reply(tool_calls=calls), Reply('{"name": "kb_search"}')]) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            bound = chat.langchain().bind_tools([kb_search])
            message = await bound.ainvoke([HumanMessage("How long?")])
            as_text = await bound.ainvoke([HumanMessage("How long?")])
    assert isinstance(message, AIMessage)
    assert [(call["name"], call["args"]) for call in message.tool_calls] == [("kb_search", {"query": "leave"})]
    assert as_text.content == '{"name": "kb_search"}'
    assert server.chats[0]["tools"][0]["function"]["name"] == "kb_search"
    assert server.chats[0]["options"]["num_predict"] > 0


# --- faults ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (Reply(status=400, error="the input length exceeds the context length"), PromptTooLong),
        (Reply(status=400, error="registry/chat does not support tools"), ModelRefused),
        (Reply(status=404, error="model not found"), ModelMissing),
        (Reply(status=500, error="boom"), InferenceError),
        (Reply("Sixteen", done=False), InferenceError),
        (Reply("", done_reason="load"), InferenceError),
        (Reply("Sixteen", done_reason="something new"), InferenceError),
    ],
)
async def test_faults_have_types(make_settings: MakeSettings, reply: Reply, error: type[IntramurosError]) -> None:
    with FakeOllama(replies=[reply] * 3) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            with pytest.raises(error):
                await chat.complete(QUESTION, max_tokens=5)


async def test_a_stream_that_ends_early_fails_after_its_pieces(make_settings: MakeSettings) -> None:
    with FakeOllama(replies=[Reply("Sixteen weeks", done=False)]) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            pieces: list[str] = []
            with pytest.raises(InferenceError, match="early"):
                async for piece in chat.stream(QUESTION, max_tokens=5):
                    pieces.append(piece)  # noqa: PERF401 what came before the error counts
    assert "".join(pieces) == "Sixteen weeks"
    assert len(server.chats) == 1  # what was begun is not tried again


async def test_a_cut_reply_says_so(make_settings: MakeSettings) -> None:
    with FakeOllama(replies=[Reply("Sixteen", done_reason="length")]) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            assert (await chat.complete(QUESTION, max_tokens=1)).finish == "length"


async def test_a_busy_server_is_asked_three_times(make_settings: MakeSettings) -> None:
    busy = Reply(status=503, error="server busy")
    with FakeOllama(replies=[busy, busy, Reply("Yes."), busy, busy, busy]) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            assert (await chat.complete(QUESTION, max_tokens=5)).text == "Yes."
            with pytest.raises(ModelUnavailable, match="busy"):
                await chat.complete(QUESTION, max_tokens=5)
    assert len(server.chats) == 6


async def test_a_hung_server_times_out(make_settings: MakeSettings) -> None:
    with FakeOllama(replies=[Reply("Sixteen", hang=True)]) as server:
        async with chatting(server, make_settings(ollama_url=server.url, chat_timeout=0.3)) as chat:
            with pytest.raises(ModelTimedOut):
                await chat.complete(QUESTION, max_tokens=5)
        assert server.left.wait(5)


async def test_closing_a_stream_closes_the_connection(make_settings: MakeSettings) -> None:
    with FakeOllama(replies=[Reply("Sixteen weeks", hang=True)]) as server:
        async with chatting(server, make_settings(ollama_url=server.url)) as chat:
            async with aclosing(chat.stream(QUESTION, max_tokens=50)) as stream:  # type: ignore[type-var]
                assert await anext(stream) == "Sixt"
            assert server.left.wait(5)  # closed when `aclose` has returned, not some time later


async def test_a_stopped_server_is_unavailable(make_settings: MakeSettings) -> None:
    with FakeOllama() as server:
        settings = make_settings(ollama_url=server.url)
        async with chatting(server, settings) as chat:
            server.__exit__(None, None, None)
            with pytest.raises(ModelUnavailable, match="INTRAMUROS_OLLAMA_URL"):
                await chat.complete(QUESTION, max_tokens=5)


@pytest.mark.parametrize(
    ("count", "cut"),
    [(1024, True), (1024 // 2 + 2, True), (560, True), (900, False), (780, False), (None, False)],
)
async def test_a_silent_cut_is_noticed(make_settings: MakeSettings, count: int | None, cut: bool) -> None:
    prompt = [Message("user", LONG)]  # about 780 tokens by their true number, 990 by the estimate
    with FakeOllama(replies=[Reply("Sixteen weeks.", prompt_eval_count=count)]) as server:
        async with chatting(server, make_settings(ollama_url=server.url, num_ctx=1024)) as chat:
            if cut:
                with pytest.raises(PromptTooLong):
                    await chat.complete(prompt, max_tokens=5)
            else:
                assert (await chat.complete(prompt, max_tokens=5)).text == "Sixteen weeks."


async def test_a_small_count_is_no_alarm_when_nothing_can_have_been_cut(make_settings: MakeSettings) -> None:
    with FakeOllama(replies=[Reply("Sixteen weeks.", prompt_eval_count=40)]) as server:
        async with chatting(server, make_settings(ollama_url=server.url, num_ctx=8192)) as chat:
            assert (await chat.complete([Message("user", LONG)], max_tokens=5)).text == "Sixteen weeks."


# --- what models may be used ----------------------------------------------------------------------------------------


@pytest.mark.threat(13)
@pytest.mark.parametrize(
    "name",
    [
        "glm:cloud",
        "gpt-oss:120b-cloud",
        "GLM:Cloud",
        " glm:cloud ",
        "glm: cloud",
        "glm-cloud",
        "glm-cloud:latest",
        "ｇｌｍ：ｃｌｏｕｄ",
    ],
)
def test_cloud_names_are_known(name: str) -> None:
    assert is_cloud(name)


@pytest.mark.parametrize("name", ["cloudy:latest", "qwen3:8b", "icloud-helper:1b", "cloud9"])
def test_other_names_are_not(name: str) -> None:
    assert not is_cloud(name)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("glm:cloud", model()),
        ("plain", model(remote_host="https://models.example")),
        ("plain", model(remote_model="glm")),
        ("minilm", model("embedding")),
    ],
)
async def test_a_model_that_runs_elsewhere_or_does_not_chat_is_refused(
    make_settings: MakeSettings, name: str, shown: dict[str, object]
) -> None:
    with FakeOllama(models={name: shown}) as server:
        with pytest.raises(ModelRefused, match=name):
            async with chatting(server, make_settings(ollama_url=server.url), name):
                raise AssertionError("it was opened")
        assert server.chats == []


async def test_traits_come_from_the_server(make_settings: MakeSettings) -> None:
    small = model("completion", size="1.5B", model_info={"qwen2.context_length": 2048})
    with FakeOllama(models={"small": small}) as server:
        async with chatting(server, make_settings(ollama_url=server.url), "small") as chat:
            traits = chat.traits
    assert (traits.tools, traits.capable, traits.logprobs, traits.context_tokens) == (False, False, True, 2048)


@pytest.mark.parametrize(
    ("size", "number"), [("7.6B", 7.6), ("137M", 0.137), ("22.57M", 0.02257), ("", 0.0), ("x", 0.0)]
)
def test_parameter_sizes(size: str, number: float) -> None:
    assert billions(size) == pytest.approx(number)


# --- embedding ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def embedding(server: FakeOllama, settings: Settings, name: str) -> AsyncIterator[OllamaEmbedder]:
    policy = Policy.of(settings)
    about = OllamaServer(settings, policy)
    try:
        embedder = await OllamaEmbedder.open(settings, policy, await about.show(name, "sha256-digest"))
    finally:
        await about.close()
    try:
        yield embedder
    finally:
        await embedder.close()


async def test_embedding_asks_not_to_cut_and_prefixes_by_model(make_settings: MakeSettings) -> None:
    models = {"multilingual-e5-large": model("embedding")}
    with FakeOllama(models=models) as server:
        async with embedding(server, make_settings(ollama_url=server.url), "multilingual-e5-large") as embedder:
            vectors = await embedder.embed_passages([f"text {n}" for n in range(20)])
            query = await embedder.embed_query("which text?")
            empty = await embedder.embed_passages([])
    assert embedder.dimension == fake_embedder.DIMENSION
    assert vectors.shape == (20, embedder.dimension)
    assert empty.shape == (0, embedder.dimension)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    assert np.allclose(query, fake_embedder.vector("query: which text?"))
    asked = [request.body for request in server.requests if request.path == "/api/embed"]
    assert all(body["truncate"] is False for body in asked)
    assert asked[1]["input"][0] == "passage: text 0"


async def test_a_long_text_is_embedded_in_windows(make_settings: MakeSettings) -> None:
    text = "leave policy " * 40
    with FakeOllama(models={"bge-m3": model("embedding")}, embed_tokens=32) as server:
        async with embedding(server, make_settings(ollama_url=server.url), "bge-m3") as embedder:
            short, long = await embedder.embed_passages(["leave policy", text])
    assert float(short @ long) > 0.9


async def test_a_model_that_takes_almost_nothing_is_an_error(make_settings: MakeSettings) -> None:
    with FakeOllama(models={"tiny": model("embedding")}, embed_tokens=2) as server:
        async with embedding(server, make_settings(ollama_url=server.url), "tiny") as embedder:
            with pytest.raises(PromptTooLong, match="tiny"):
                await embedder.embed_query("how many days of leave do I get")


async def test_a_chat_model_does_not_embed(make_settings: MakeSettings) -> None:
    with FakeOllama() as server, pytest.raises(ModelRefused):
        async with embedding(server, make_settings(ollama_url=server.url), "chat"):
            raise AssertionError("it was opened")
