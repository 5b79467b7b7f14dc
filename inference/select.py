"""Choosing the models: what settings name, else a usable one of Ollama, else the embedded one; and saying why."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Literal

from core.errors import (
    InferenceError,
    IntramurosError,
    InvalidRequest,
    MissingExtra,
    ModelMissing,
    ModelRefused,
    ModelUnavailable,
)
from core.settings import Settings, variable
from inference import certificates, fetch, openai
from inference.certificates import Certificate
from inference.chat import LangChat
from inference.e5 import E5Embedder
from inference.embedded import EmbeddedProvider
from inference.interfaces import ChatModel, Embedder, Reranker, TokenEmbedder
from inference.late import LateInteraction
from inference.ollama import OllamaEmbedder, OllamaModel, OllamaProvider, OllamaServer
from inference.rerank_server import RerankServer
from policy.egress import Policy

# Embedding models of Ollama that know Chinese and English, best first. Others are used only when they are named.
MULTILINGUAL = ("bge-m3", "qwen3-embedding", "embeddinggemma", "multilingual-e5", "snowflake-arctic-embed2")

ProviderName = Literal["ollama", "openai", "embedded"]


@dataclass(frozen=True, slots=True)
class Models:
    """The models in use. `grading` and `fallback` are None where settings name none."""

    chat: ChatModel
    embedder: Embedder
    reranker: Reranker | None = None
    grading: ChatModel | None = None
    fallback: ChatModel | None = None

    @property
    def grader(self) -> ChatModel:
        """What grades passages: the chat model where no other is named."""
        return self.grading or self.chat


@dataclass(frozen=True, slots=True)
class Choice:
    """One model that would be used. `fault`, where there is one, says what is wrong and what to do."""

    part: Literal["chat", "embedder"]
    provider: ProviderName
    model: str
    why: str
    fault: IntramurosError | None = None
    found: OllamaModel | None = None


@dataclass(frozen=True, slots=True)
class _Ollama:
    """What was found at `ollama_url`; no version when nothing answered."""

    version: tuple[int, ...] = ()
    models: Sequence[OllamaModel] = ()

    def named(self, name: str) -> OllamaModel | None:
        return next((model for model in self.models if name in (model.name, model.name.removesuffix(":latest"))), None)


async def open_chat(settings: Settings, policy: Policy) -> ChatModel:
    """Choose and open the chat model; the embedded one starts at its first call. Where it has a certificate, it can do
    what that says.

    Raises ModelMissing, MissingExtra, ModelRefused or ModelUnavailable, each with its remedy.
    """
    chat = await open_uncertified(settings, policy)
    certificate = await asyncio.to_thread(certificates.read, settings.home, chat.identity)
    if certificate is not None:
        chat.traits = certificate.applied(chat.traits)
    return chat


async def open_uncertified(settings: Settings, policy: Policy) -> LangChat:
    """The same as its name and size speak for it, to be examined. Errors: as `open_chat`."""
    choice = await _chat(settings, policy, await _look(settings, policy))
    if choice.fault is not None:
        raise choice.fault
    return await _open_chat(settings, policy, choice)


async def certificate(settings: Settings, policy: Policy) -> Certificate | None:
    """That of the chat model that would be used; None where it has none. Errors: as `open_chat`."""
    chat = await open_uncertified(settings, policy)
    await chat.close()
    return await asyncio.to_thread(certificates.read, settings.home, chat.identity)


def embedding_by(settings: Settings, model: str) -> Settings:
    """Settings that name this embedder: `embedded`, `ollama:NAME`, or `openai:NAME` on the server of `openai_url`.

    Raises InvalidRequest for anything else.
    """
    provider, name = _parts_of(model, "embedder")
    return settings.model_copy(update={"embed_provider": provider, "embed_model": name})


def chat_by(settings: Settings, model: str) -> Settings:
    """Settings that name this chat model, in the words of `embedding_by`. Raises InvalidRequest for anything else."""
    provider, name = _parts_of(model, "chat model")
    return settings.model_copy(update={"chat_provider": provider, "chat_model": name})


def _parts_of(model: str, what: str) -> tuple[str, str | None]:
    provider, _, name = model.partition(":")
    if (provider == "embedded") == bool(name) or provider not in ("embedded", "ollama", "openai"):
        raise InvalidRequest(f"'{model}' names no {what}. Write embedded, ollama:NAME or openai:NAME.")
    return provider, name or None


def model_of(embedder_id: str) -> str | None:
    """How `embedding_by` is told of the embedder of this id; None for one that no provider gives."""
    provider, _, name = embedder_id.partition(":")
    if provider == "ollama":
        return f"{provider}:{name.rpartition(':')[0]}"
    return {"embedded": provider, "openai": embedder_id}.get(provider)


async def open_embedder(settings: Settings, policy: Policy) -> Embedder:
    """Choose and open the embedder. Errors: as `open_chat`."""
    choice = await _embedder(settings, policy, await _look(settings, policy))
    if choice.fault is not None:
        raise choice.fault
    return await _open_embedder(settings, policy, choice)


def open_reranker(settings: Settings, policy: Policy, embedder: Embedder) -> Reranker | None:
    """What settings ask for; None where nothing reranks. Raises ModelMissing, ModelRefused."""
    if settings.reranker == "server" or (settings.reranker == "auto" and settings.rerank_url):
        return RerankServer(settings, policy)
    if settings.reranker == "off":
        return None
    if isinstance(embedder, TokenEmbedder):
        return LateInteraction(embedder, settings.rerank_cache_mb * 1024 * 1024)
    if settings.reranker == "late":
        said = f"{embedder.id} gives no vectors of tokens. Set {variable('reranker')} to auto, server or off."
        raise ModelRefused(said)
    return None


async def report(settings: Settings, policy: Policy) -> tuple[Choice, Choice]:
    """Which chat model and which embedder would be used, why, and what keeps them from working."""
    ollama = await _look(settings, policy)
    return await _chat(settings, policy, ollama), await _embedder(settings, policy, ollama)


# --- finding --------------------------------------------------------------------------------------------------------


async def _look(settings: Settings, policy: Policy) -> _Ollama:
    if not {"auto", "ollama"} & {settings.chat_provider, settings.embed_provider}:
        return _Ollama()
    server = OllamaServer(settings, policy)
    try:
        return _Ollama(await server.version(), await server.models())
    except InferenceError:
        return _Ollama()
    finally:
        await server.close()


async def _chat(settings: Settings, policy: Policy, ollama: _Ollama) -> Choice:
    provider, name = settings.chat_provider, settings.chat_model
    if provider == "openai":
        return await _openai("chat", settings, policy, name)
    if provider == "embedded" or (provider == "auto" and not ollama.version and not name):
        why = f"{variable('chat_provider')} says so" if provider == "embedded" else _silent(settings)
        return await _embedded_chat(settings, why)
    if name:
        return _named(Choice("chat", "ollama", name, f"{variable('chat_model')} names it"), settings, ollama)
    usable = [model for model in ollama.models if model.usable]
    best = next((model for model in usable if "tools" in model.capabilities), usable[0] if usable else None)
    if best is not None:
        why = f"Ollama answers at {settings.ollama_url} and {best.name} is its first usable chat model"
        return Choice("chat", "ollama", best.name, why, found=best)
    if provider == "auto":
        return await _embedded_chat(settings, f"Ollama answers at {settings.ollama_url} but has no usable chat model")
    missing = ModelMissing("Ollama has no usable chat model. Pull one on a machine with network and copy it over.")
    fault = missing if ollama.version else ModelUnavailable(f"{_silent(settings)}. Start it with `ollama serve`.")
    return Choice("chat", "ollama", "", f"{variable('chat_provider')} says so", fault)


async def _embedder(settings: Settings, policy: Policy, ollama: _Ollama) -> Choice:
    provider, name = settings.embed_provider, settings.embed_model
    if provider == "openai":
        return await _openai("embedder", settings, policy, name)
    if provider == "embedded" or (provider == "auto" and not ollama.version and not name):
        why = f"{variable('embed_provider')} says so" if provider == "embedded" else _silent(settings)
        return _embedded_embedder(settings, why)
    if name:
        return _named(Choice("embedder", "ollama", name, f"{variable('embed_model')} names it"), settings, ollama)
    embedding = [model for model in ollama.models if "embedding" in model.capabilities and not model.remote]
    good = (model for known in MULTILINGUAL for model in embedding if known in model.name.lower())
    if (best := next(good, None)) is not None:
        why = f"Ollama has {best.name}, which knows both languages"
        return Choice("embedder", "ollama", best.name, why, found=best)
    if provider == "auto":
        return _embedded_embedder(settings, f"Ollama has none of {', '.join(MULTILINGUAL)}")
    missing = ModelMissing(f"Ollama has none of {', '.join(MULTILINGUAL)}. Name another in {variable('embed_model')}.")
    fault = missing if ollama.version else ModelUnavailable(f"{_silent(settings)}. Start it with `ollama serve`.")
    return Choice("embedder", "ollama", "", f"{variable('embed_provider')} says so", fault)


def _named(choice: Choice, settings: Settings, ollama: _Ollama) -> Choice:
    found = ollama.named(choice.model)
    needed = "completion" if choice.part == "chat" else "embedding"
    if found is None:
        where = f"Ollama at {settings.ollama_url}"
        missing = ModelMissing(f"{where} does not have {choice.model}. Name one that `ollama list` shows.")
        silent = ModelUnavailable(f"{_silent(settings)}. Start it with `ollama serve`.")
        return replace(choice, fault=missing if ollama.version else silent)
    if found.remote:
        fault = ModelRefused(f"The model {found.name} runs on somebody else's computer. Choose one that runs here.")
        return replace(choice, fault=fault)
    if needed not in found.capabilities:
        return replace(choice, fault=ModelRefused(f"The model {found.name} lacks the capability {needed}."))
    return replace(choice, model=found.name, found=found)


async def _embedded_chat(settings: Settings, why: str) -> Choice:
    choice = Choice("chat", "embedded", (settings.gguf or fetch.models_folder(settings) / fetch.CHAT_MODEL).stem, why)
    if find_spec("xllamacpp") is None or find_spec("langchain_openai") is None:
        return replace(choice, fault=MissingExtra())
    try:
        await asyncio.to_thread(fetch.gguf_path, settings)
    except InferenceError as error:
        return replace(choice, fault=error)
    return choice


def _embedded_embedder(settings: Settings, why: str) -> Choice:
    choice = Choice("embedder", "embedded", fetch.EMBEDDER, why)
    if find_spec("onnxruntime") is None or find_spec("sentencepiece") is None:
        return replace(choice, fault=MissingExtra())
    if not fetch.has_embedder(settings):
        return replace(choice, fault=fetch.embedder_missing())
    return choice


async def _openai(part: Literal["chat", "embedder"], settings: Settings, policy: Policy, name: str | None) -> Choice:
    field = "chat_provider" if part == "chat" else "embed_provider"
    choice = Choice(part, "openai", name or "", f"{variable(field)} says so")
    if part == "embedder" and name is None:
        return replace(choice, fault=ModelMissing(f"Name the embedding model in {variable('embed_model')}."))
    try:
        offered = await openai.models(settings, policy)
    except IntramurosError as error:
        return replace(choice, fault=error)
    if name is None and offered:
        return replace(choice, model=offered[0])
    if name not in offered:
        return replace(choice, fault=ModelMissing(f"The server at {variable('openai_url')} does not offer {name}."))
    return choice


def _silent(settings: Settings) -> str:
    return f"Ollama does not answer at {settings.ollama_url}"


# --- opening --------------------------------------------------------------------------------------------------------


async def _open_chat(settings: Settings, policy: Policy, choice: Choice) -> LangChat:
    if choice.provider == "embedded":
        gguf = await asyncio.to_thread(fetch.gguf_path, settings)
        return LangChat(EmbeddedProvider(settings, policy, gguf), timeout=settings.chat_timeout)
    if choice.provider == "openai":
        return LangChat(openai.OpenAIProvider(settings, policy, choice.model), timeout=settings.chat_timeout)
    server = OllamaServer(settings, policy)
    try:
        model, version = choice.found or await server.show(choice.model), await server.version()
    finally:
        await server.close()
    return LangChat(OllamaProvider(settings, policy, model, version), timeout=settings.chat_timeout)


async def _open_embedder(settings: Settings, policy: Policy, choice: Choice) -> Embedder:
    if choice.provider == "embedded":
        folder = await asyncio.to_thread(fetch.embedder_folder, settings)
        return await asyncio.to_thread(E5Embedder, folder, settings.cores)
    if choice.provider == "openai":
        return await openai.OpenAIEmbedder.open(settings, policy, choice.model)
    if choice.found is None:
        raise ModelMissing
    return await OllamaEmbedder.open(settings, policy, choice.found)
