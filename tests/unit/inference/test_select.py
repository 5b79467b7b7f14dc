"""Which models are chosen, and why."""

from collections.abc import Mapping
from typing import Any

import pytest

from core.errors import IntramurosError, InvalidRequest, MissingExtra, ModelMissing, ModelRefused, ModelUnavailable
from core.settings import Settings
from inference import select
from policy.egress import Policy
from tests.fakes.ollama import FakeOllama, model
from tests.fakes.openai import FakeOpenAI
from tests.opening import open_models
from tests.unit.conftest import MakeSettings

CHAT, EMBED = model("completion", "tools"), model("embedding")


async def choose(settings: Settings) -> tuple[select.Choice, select.Choice]:
    return await select.report(settings, Policy.of(settings))


async def test_without_ollama_the_embedded_models_are_chosen(make_settings: MakeSettings) -> None:
    chat, embedder = await choose(make_settings())
    assert (chat.provider, embedder.provider) == ("embedded", "embedded")
    assert "does not answer" in chat.why
    for fault in (chat.fault, embedder.fault):
        assert isinstance(fault, ModelMissing)
        assert "models pull" in fault.message


async def test_a_usable_model_of_ollama_is_chosen(make_settings: MakeSettings) -> None:
    models = {
        "glm:cloud": CHAT,
        "hidden": model("completion", "tools", remote_host="https://models.example"),
        "minilm": EMBED,
        "plain": model("completion"),
        "chat:latest": CHAT,
        "bge-m3:latest": EMBED,
    }
    with FakeOllama(models=models) as server:
        chat, embedder = await choose(make_settings(ollama_url=server.url))
    assert (chat.provider, chat.model, chat.fault) == ("ollama", "chat:latest", None)
    assert (embedder.provider, embedder.model, embedder.fault) == ("ollama", "bge-m3:latest", None)


async def test_a_model_without_tools_is_better_than_none(make_settings: MakeSettings) -> None:
    with FakeOllama(models={"plain": model("completion")}) as server:
        chat, _ = await choose(make_settings(ollama_url=server.url))
    assert (chat.model, chat.fault) == ("plain", None)


async def test_an_ollama_without_usable_models_is_passed_over(make_settings: MakeSettings) -> None:
    with FakeOllama(models={"glm:cloud": CHAT, "minilm": EMBED}) as server:
        chat, embedder = await choose(make_settings(ollama_url=server.url))
    assert (chat.provider, embedder.provider) == ("embedded", "embedded")
    assert "no usable chat model" in chat.why
    assert "none of bge-m3" in embedder.why


async def test_a_model_that_cannot_be_shown_does_not_hide_the_others(make_settings: MakeSettings) -> None:
    class Damaged(FakeOllama):
        def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
            if path == "/api/show" and body["model"] == "damaged":
                return 500, {"error": "unexpected EOF"}
            return super().answer(path, body)

    with Damaged(models={"damaged": CHAT, "glm:cloud": CHAT, "chat:latest": CHAT}) as server:
        chat, _ = await choose(make_settings(ollama_url=server.url))
        shown = [request.body["model"] for request in server.requests if request.path == "/api/show"]
    assert (chat.provider, chat.model, chat.fault) == ("ollama", "chat:latest", None)
    assert "glm:cloud" not in shown


async def test_an_english_embedder_is_used_when_it_is_named(make_settings: MakeSettings) -> None:
    with FakeOllama(models={"minilm:latest": EMBED, "chat:latest": CHAT}) as server:
        _, embedder = await choose(make_settings(ollama_url=server.url, embed_model="minilm"))
    assert (embedder.model, embedder.fault) == ("minilm:latest", None)


@pytest.mark.parametrize(
    ("values", "fault"),
    [
        ({"chat_model": "absent"}, ModelMissing),
        ({"chat_model": "glm:cloud"}, ModelRefused),
        ({"chat_model": "minilm"}, ModelRefused),
        ({"chat_provider": "ollama"}, ModelMissing),
        ({"chat_provider": "openai"}, ModelMissing),
    ],
)
async def test_a_wish_that_cannot_be_met_is_said(
    make_settings: MakeSettings, values: dict[str, str], fault: type[IntramurosError]
) -> None:
    with FakeOllama(models={"glm:cloud": CHAT, "minilm": EMBED}) as server:
        settings = make_settings(ollama_url=server.url, **values)
        chat, _ = await choose(settings)
        assert isinstance(chat.fault, fault)
        with pytest.raises(fault):
            await select.open_chat(settings, Policy.of(settings))


@pytest.mark.parametrize("values", [{"chat_provider": "ollama"}, {"chat_model": "qwen3"}])
async def test_a_wished_ollama_that_is_silent_is_said(make_settings: MakeSettings, values: dict[str, str]) -> None:
    chat, _ = await choose(make_settings(**values))
    assert isinstance(chat.fault, ModelUnavailable)


async def test_a_missing_extra_is_said(make_settings: MakeSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "find_spec", lambda name: None)
    chat, embedder = await choose(make_settings())
    assert isinstance(chat.fault, MissingExtra)
    assert isinstance(embedder.fault, MissingExtra)


async def test_an_openai_server_serves_both_when_named(make_settings: MakeSettings) -> None:
    with FakeOpenAI(models=["qwen3-8b", "bge-m3"]) as server:
        wishes = {"chat_provider": "openai", "embed_provider": "openai", "embed_model": "bge-m3"}
        settings = make_settings(openai_url=server.url, **wishes)
        models = await open_models(settings, Policy.of(settings))
        await models.close()
    assert (models.chat.name, models.chat.provider) == ("qwen3-8b", "openai")
    assert models.embedder.id == "openai:bge-m3"


async def test_both_of_ollama_are_opened(make_settings: MakeSettings) -> None:
    with FakeOllama(models={"chat:latest": CHAT, "bge-m3:latest": EMBED}) as server:
        settings = make_settings(ollama_url=server.url)
        models = await open_models(settings, Policy.of(settings))
        await models.close()
        await models.close()
    assert (models.chat.name, models.chat.provider) == ("chat:latest", "ollama")
    assert models.embedder.id.startswith("ollama:bge-m3")
    routes = {request.path for request in server.requests}
    assert routes <= {"/api/version", "/api/tags", "/api/show", "/api/embed"}


async def test_the_embedder_opens_where_the_chat_model_is_missing(make_settings: MakeSettings) -> None:
    with FakeOllama(models={"bge-m3:latest": EMBED}) as server:
        settings = make_settings(ollama_url=server.url, chat_provider="ollama")
        policy = Policy.of(settings)
        with pytest.raises(ModelMissing):
            await select.open_chat(settings, policy)
        embedder = await select.open_embedder(settings, policy)
        await embedder.close()
    assert embedder.id.startswith("ollama:bge-m3")


@pytest.mark.parametrize(
    ("embedder_id", "named"),
    [
        ("embedded:multilingual-e5-small:1", "embedded"),
        ("ollama:bge-m3:latest:790764642607", "ollama:bge-m3:latest"),
        ("ollama:hf.co/a/b:Q4_K_M:", "ollama:hf.co/a/b:Q4_K_M"),
        ("openai:text-embedding-3", "openai:text-embedding-3"),
    ],
)
def test_an_embedder_is_named_so_that_it_can_be_opened_again(
    make_settings: MakeSettings, embedder_id: str, named: str
) -> None:
    assert select.model_of(embedder_id) == named
    settings = select.embedding_by(make_settings(embed_model="other"), named)
    provider, _, model = named.partition(":")
    assert (settings.embed_provider, settings.embed_model) == (provider, model or None)
    assert settings.chat_provider == make_settings().chat_provider


@pytest.mark.parametrize("name", ["", "bge-m3", "ollama", "ollama:", "openai:", "embedded:e5", "auto", "auto:x"])
def test_what_names_no_embedder_is_refused(make_settings: MakeSettings, name: str) -> None:
    with pytest.raises(InvalidRequest, match="Write embedded, ollama:NAME or openai:NAME"):
        select.embedding_by(make_settings(), name)


async def test_the_named_embedder_of_ollama_is_opened_by_its_id(make_settings: MakeSettings) -> None:
    with FakeOllama(models={"bge-m3:latest": EMBED, "minilm:latest": EMBED}) as server:
        settings = make_settings(ollama_url=server.url, embed_provider="embedded")
        first = await select.open_embedder(select.embedding_by(settings, "ollama:minilm"), Policy.of(settings))
        named = select.embedding_by(settings, select.model_of(first.id) or "")
        again = await select.open_embedder(named, Policy.of(settings))
        await first.close()
        await again.close()
    assert first.id == again.id


@pytest.mark.parametrize(
    ("named", "provider", "model"),
    [
        ("embedded", "embedded", None),
        ("ollama:qwen2.5:7b", "ollama", "qwen2.5:7b"),
        ("openai:house", "openai", "house"),
    ],
)
def test_a_further_chat_model_is_named_like_an_embedder(
    make_settings: MakeSettings, named: str, provider: str, model: str | None
) -> None:
    settings = select.chat_by(make_settings(chat_provider="ollama", chat_model="big", embed_model="other"), named)
    assert (settings.chat_provider, settings.chat_model) == (provider, model)
    assert settings.embed_model == "other"


@pytest.mark.parametrize("name", ["", "qwen3", "ollama:", "embedded:x"])
def test_what_names_no_chat_model_is_refused(make_settings: MakeSettings, name: str) -> None:
    with pytest.raises(InvalidRequest, match="names no chat model"):
        select.chat_by(make_settings(), name)


async def test_weights_have_an_identity(make_settings: MakeSettings) -> None:
    class Digests(FakeOllama):
        digest = "abc"

        def answer(self, path: str, body: Mapping[str, Any]) -> tuple[int, Any]:
            status, found = super().answer(path, body)
            if path == "/api/tags":
                found = {"models": [{**entry, "digest": self.digest} for entry in found["models"]]}
            return status, found

    identities = []
    with Digests(models={"chat:latest": CHAT}) as server:
        settings = make_settings(ollama_url=server.url)
        for digest in ("abc", "abc", "def"):
            server.digest = digest
            chat = await select.open_chat(settings, Policy.of(settings))
            identities.append(chat.identity)
            await chat.close()
    assert identities[0] == identities[1] != identities[2]
