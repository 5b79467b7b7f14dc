"""The embedded models as they are: the built embedder, and llama.cpp in its child process."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import numpy as np
import pytest
from langchain_core.messages import HumanMessage

from core.errors import InferenceError, ModelUnavailable, PromptTooLong
from core.settings import Settings
from inference import embedded, fetch, runfile
from inference.e5 import E5Embedder
from inference.interfaces import Message
from inference.select import Models
from policy.egress import Policy
from tests.opening import open_models

READY = fetch.is_ready(Settings.load())
pytestmark = [
    pytest.mark.models,
    pytest.mark.skipif(not READY, reason="the embedded models are not here: run `intramuros models pull`"),
]
CANTEEN = "The canteen is open from half past eleven to two. "


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home for the module, so that its child is started once."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture
async def models(home: Path) -> AsyncIterator[Models]:
    settings = Settings.load(
        home=home, chat_provider="embedded", embed_provider="embedded", num_ctx=1024, chat_timeout=300
    )
    opened = await open_models(settings, Policy.of(settings))
    yield opened
    await opened.close()


@pytest.fixture(scope="module", autouse=True)
def _no_child_is_left(home: Path) -> object:
    yield
    asyncio.run(embedded.stop(home))
    assert not runfile.alive(home)


async def test_the_embedder_crosses_languages(models: Models) -> None:
    leave, server = await models.embedder.embed_passages(["员工每年可以休三十天年假。", "服务器机房在三楼。"])
    query = await models.embedder.embed_query("How many days of annual leave do I have?")
    assert query.shape == (models.embedder.dimension,) == (384,)
    assert query.dtype == np.float32
    assert float(query @ leave) > float(query @ server)


async def test_a_vector_does_not_depend_on_its_neighbours(models: Models) -> None:
    texts = [CANTEEN, "年假" * 100, "", CANTEEN * 60]
    together = await models.embedder.embed_passages(texts)
    alone = [(await models.embedder.embed_passages([text]))[0] for text in texts]
    assert np.array_equal(together, np.stack(alone))
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


async def test_windows_keep_what_stands_at_the_end(models: Models) -> None:
    long, beginning = await models.embedder.embed_passages([CANTEEN * 60 + "停车位 " * 800, CANTEEN * 60])
    query = await models.embedder.embed_query("停车位")
    assert float(query @ long) > float(query @ beginning)


async def test_a_closed_embedder_says_so(home: Path) -> None:
    embedder = E5Embedder(fetch.embedder_folder(Settings.load(home=home)), workers=1)
    await embedder.close()
    await embedder.close()
    with pytest.raises(InferenceError, match="stopped"):
        await embedder.embed_query("late")


async def test_chat(models: Models, home: Path) -> None:
    prompt = [Message("system", "Answer in one word."), Message("user", "What is the capital of France?")]
    assert "Paris" in (await models.chat.complete(prompt, max_tokens=10)).text
    found = await models.chat.first_token([Message("user", "Answer yes or no. Is ice cold?")])
    assert found is not None
    assert max(found, key=lambda token: found[token]).strip().lower() == "yes"
    with pytest.raises(PromptTooLong):
        await models.chat.complete([Message("user", CANTEEN * 200)], max_tokens=5)
    reply = await models.chat.langchain().ainvoke([HumanMessage("Say yes.")])
    assert reply.content
    running = runfile.Running.find(home)
    assert running is not None
    assert running.url.startswith("http://127.0.0.1:")
    command = await asyncio.to_thread(Path(f"/proc/{running.pid}/cmdline").read_text)
    assert running.key not in command


async def test_a_closed_stream_leaves_the_model_free(models: Models) -> None:
    story = [Message("user", "Tell a very long story about a lighthouse.")]
    async with aclosing(models.chat.stream(story, max_tokens=700)) as stream:  # type: ignore[type-var]
        assert await anext(stream)
    assert (await models.chat.complete([Message("user", "Say yes.")], max_tokens=3)).text


async def test_a_child_that_crashed_is_started_again_and_shared(models: Models, home: Path) -> None:
    await models.chat.complete([Message("user", "Say yes.")], max_tokens=2)
    before = runfile.Running.find(home)
    assert before is not None
    os.kill(before.pid, signal.SIGKILL)
    settings = Settings.load(home=home, chat_provider="embedded", embed_provider="embedded", num_ctx=1024)
    other = await open_models(settings, Policy.of(settings))
    say = [Message("user", "Say yes.")]
    await asyncio.gather(models.chat.complete(say, max_tokens=2), other.chat.complete(say, max_tokens=2))
    await other.close()
    after = runfile.Running.find(home)
    assert after is not None
    assert after.pid != before.pid


async def test_a_file_that_is_no_model_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"not a model")
    settings = Settings.load(
        home=tmp_path / "home", gguf=broken, chat_provider="embedded", embed_provider="embedded", chat_timeout=60
    )
    models = await open_models(settings, Policy.of(settings))
    with pytest.raises(ModelUnavailable, match=r"chat-model\.log"):
        await models.chat.complete([Message("user", "Say yes.")], max_tokens=2)
    await models.close()


async def test_an_idle_child_ends(tmp_path: Path) -> None:
    settings = Settings.load(
        home=tmp_path / "home", chat_provider="embedded", embed_provider="embedded", embedded_idle=0.4, num_ctx=1024
    )
    models = await open_models(settings, Policy.of(settings))
    await models.chat.complete([Message("user", "Say yes.")], max_tokens=2)
    await models.close()
    async with asyncio.timeout(30):
        while runfile.alive(settings.home):  # noqa: ASYNC110 another process ends: there is nothing to await
            await asyncio.sleep(0.05)
