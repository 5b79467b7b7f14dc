"""Ollama: chat through langchain-ollama, embedding, and what the server says of itself and of its models."""

import json
import logging
import re
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import httpx
import ollama
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_ollama import ChatOllama

from core.errors import (
    InferenceError,
    IntramurosError,
    ModelMissing,
    ModelRefused,
    ModelTimedOut,
    ModelUnavailable,
    PromptTooLong,
)
from core.settings import Settings, variable
from inference import tokens
from inference.chat import finish_of
from inference.interfaces import Traits, Usage, Vectors
from inference.openai import CAPABLE_BILLIONS, alternatives
from inference.served import ServedEmbedder, unit
from policy.egress import Policy
from policy.transport import async_transport, transport

log = logging.getLogger(__name__)

_PROBE_SECONDS = 5.0
_LOGPROBS_SINCE = (0, 12, 11)
# `model:cloud`, `model:120b-cloud` and `model-cloud[:tag]` run on the vendor's computers.
_CLOUD = re.compile(r"[:_-]cloud(?=:|$)")
_BILLIONS = re.compile(r"(\d+(?:\.\d+)?)\s*([BMK])", re.IGNORECASE)
_TOO_LONG = re.compile(r"context length|exceeds.*context|input length", re.IGNORECASE)
_BATCH = 16  # texts in one embedding request


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """What /api/show says of one model. `remote`: it runs on another computer. `billions` of parameters."""

    name: str
    capabilities: frozenset[str]
    billions: float
    context_tokens: int | None
    remote: bool
    digest: str = ""

    @property
    def usable(self) -> bool:
        """Whether it can be asked to chat."""
        return "completion" in self.capabilities and not self.remote


class OllamaServer:
    """The server at `settings.ollama_url`: only routes that read are ever called."""

    def __init__(self, settings: Settings, policy: Policy, *, timeout: float = _PROBE_SECONDS) -> None:
        self._client = httpx.AsyncClient(
            base_url=settings.ollama_url,
            transport=_Plain(async_transport(policy, "model")),
            trust_env=False,
            follow_redirects=False,
            timeout=timeout,
        )

    async def version(self) -> tuple[int, ...]:
        """Its version, zeros for one built from source. Raises ModelUnavailable when nothing answers."""
        text = str((await self._json("GET", "/api/version")).get("version", ""))
        match = re.match(r"\d+(\.\d+)*", text)
        return tuple(map(int, match[0].split("."))) if match else (0,)

    async def models(self) -> list[OllamaModel]:
        """Every model that it holds and can speak of, the most recently changed first."""
        listed = (await self._json("GET", "/api/tags")).get("models") or []
        found = []
        for entry in listed:
            try:
                found.append(await self.show(str(entry["name"]), str(entry.get("digest") or "")))
            except (ModelUnavailable, ModelTimedOut):
                raise
            except InferenceError:  # gone since it was listed, or damaged: the others can still be used
                log.info("a model could not be shown", extra={"model": str(entry["name"])})
        return found

    async def show(self, name: str, digest: str = "") -> OllamaModel:
        """One model; the server is not asked about one whose name says that it runs elsewhere. Raises ModelMissing."""
        if is_cloud(name):
            return OllamaModel(name, frozenset(), 0.0, None, remote=True, digest=digest)
        shown = await self._json("POST", "/api/show", {"model": name})
        details, info = shown.get("details") or {}, shown.get("model_info") or {}
        context = next((int(value) for key, value in info.items() if key.endswith(".context_length")), None)
        remote = any(value for key, value in shown.items() if key.startswith("remote"))
        size = billions(str(details.get("parameter_size") or ""))
        return OllamaModel(name, frozenset(shown.get("capabilities") or ()), size, context, remote, digest)

    async def embed(self, name: str, texts: Sequence[str]) -> Vectors:
        """Unit vectors, shape (len(texts), dimension). Raises PromptTooLong instead of cutting a text."""
        reply = await self._json("POST", "/api/embed", {"model": name, "input": list(texts), "truncate": False})
        try:
            return unit(reply["embeddings"])
        except (KeyError, ValueError) as error:
            raise InferenceError("Ollama's vectors could not be read. Try again.") from error

    async def close(self) -> None:
        """Let connections go. Safe to call twice."""
        await self._client.aclose()

    async def _json(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        try:
            response = await self._client.request(method, path, json=body)
            if response.status_code != httpx.codes.OK:
                raise _refusal(response.status_code, response.text)
            document = response.json()
        except (httpx.HTTPError, ValueError) as error:
            raise _translate(error) from error
        return document if isinstance(document, dict) else {}


class OllamaProvider:
    """Chat with one model. Make one with `open`."""

    kind: Literal["ollama", "openai", "embedded"] = "ollama"
    foreign: tuple[type[Exception], ...] = (ollama.ResponseError, ConnectionError, httpx.HTTPError, ValueError)

    def __init__(self, settings: Settings, policy: Policy, model: OllamaModel, version: tuple[int, ...]) -> None:
        """Raises ModelRefused for a model that runs elsewhere or does not chat."""
        if model.remote:
            raise ModelRefused(
                f"The model {model.name} runs on somebody else's computer. Choose one that Ollama runs itself."
            )
        if not model.usable:
            raise ModelRefused(f"The model {model.name} does not chat. Name a chat model in {variable('chat_model')}.")
        self.name = model.name
        self.identity = f"ollama:{model.name}:{model.digest}"
        self._num_ctx = min(settings.num_ctx, model.context_tokens or settings.num_ctx)
        self.traits = Traits(
            tools="tools" in model.capabilities,
            logprobs=version >= _LOGPROBS_SINCE or not any(version),  # 0.0.0: built from source
            capable=model.billions >= CAPABLE_BILLIONS,
            context_tokens=self._num_ctx,
        )
        self._sync_transport = transport(policy, "model")
        self._async_transport = _Plain(async_transport(policy, "model"))
        self._model = ChatOllama(
            model=model.name,
            base_url=settings.ollama_url,
            num_ctx=self._num_ctx,
            temperature=0,
            # A thinking model answers at once; where it cannot, its thoughts come apart from its words.
            reasoning=False if "thinking" in model.capabilities else None,
            client_kwargs={"timeout": settings.chat_timeout, "trust_env": False, "follow_redirects": False},
            sync_client_kwargs={"transport": self._sync_transport},
            async_client_kwargs={"transport": self._async_transport},
        )

    @asynccontextmanager
    async def use(self) -> AsyncIterator[BaseChatModel]:
        yield self._model

    def options(
        self, *, max_tokens: int, stop: Sequence[str], schema: Mapping[str, Any] | None = None, top: int = 0
    ) -> dict[str, Any]:
        numbers = {"num_ctx": self._num_ctx, "temperature": 0.0, "num_predict": max_tokens}
        options: dict[str, Any] = {"options": numbers | ({"stop": list(stop)} if stop else {})}
        if schema is not None:
            options["format"] = dict(schema)
        if top:
            options |= {"logprobs": True, "top_logprobs": top}
        return options

    def ending(self, reply: AIMessageChunk, prompt: Sequence[BaseMessage]) -> Usage:
        said = reply.response_metadata
        if said.get("done") is not True:
            raise InferenceError("Ollama ended its reply early. Try again.", busy=True)
        read = int(said.get("prompt_eval_count") or 0)
        if tokens.was_cut(read, prompt, self._num_ctx):
            raise PromptTooLong(f"Ollama cut the prompt in silence. Raise {variable('num_ctx')}, or update Ollama.")
        return Usage(finish_of(said.get("done_reason")), read, int(said.get("eval_count") or 0))

    def first_token(self, reply: AIMessageChunk) -> Mapping[str, float] | None:
        return alternatives(reply.response_metadata.get("logprobs"))

    def translate(self, error: Exception) -> IntramurosError:
        return _translate(error)

    async def close(self) -> None:
        self._sync_transport.close()
        await self._async_transport.aclose()


class OllamaEmbedder(ServedEmbedder):
    """Implements `inference.interfaces.Embedder`. Make one with `open`."""

    def __init__(self, server: OllamaServer, model: OllamaModel, dimension: int) -> None:
        super().__init__(model.name, dimension, partial(server.embed, model.name), batch=_BATCH)
        self.id = f"ollama:{model.name}:{model.digest[:12]}"
        self._server = server

    @classmethod
    async def open(cls, settings: Settings, policy: Policy, model: OllamaModel) -> "OllamaEmbedder":
        """Ask for one vector, so that the dimension is known. Raises ModelRefused for a model that does not embed."""
        if model.remote or "embedding" not in model.capabilities:
            raise ModelRefused(f"The model {model.name} does not embed here. Name one in {variable('embed_model')}.")
        server = OllamaServer(settings, policy, timeout=settings.chat_timeout)
        try:
            dimension = (await server.embed(model.name, ["dimension"])).shape[1]
        except IntramurosError:
            await server.close()
            raise
        return cls(server, model, dimension)

    async def close(self) -> None:
        await self._server.close()


class _Plain(httpx.AsyncBaseTransport):
    """What every request passes: no key is sent, and /api/chat asks that a prompt be refused rather than cut.

    The client adds a key from the environment, and has no argument for `truncate` and `shift`.
    """

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        headers = request.headers.copy()
        headers.pop("authorization", None)
        content = await request.aread()
        if request.url.path.endswith("/api/chat"):
            content = json.dumps(json.loads(content) | {"truncate": False, "shift": False}).encode()
        headers.pop("content-length", None)
        plain = httpx.Request(
            request.method, request.url, headers=headers, content=content, extensions=request.extensions
        )
        return await self._inner.handle_async_request(plain)

    async def aclose(self) -> None:
        await self._inner.aclose()


def is_cloud(name: str) -> bool:
    """Whether a model's name says that it runs in the vendor's cloud, whatever its case, width and spaces."""
    return bool(_CLOUD.search("".join(unicodedata.normalize("NFKC", name).casefold().split())))


def billions(size: str) -> float:
    """`7.6B` is 7.6, `137M` is 0.137; 0 for anything else."""
    match = _BILLIONS.fullmatch(size.strip())
    return float(match[1]) / {"B": 1, "M": 1e3, "K": 1e6}[match[2].upper()] if match else 0.0


def _translate(error: Exception) -> IntramurosError:
    if isinstance(error, ollama.ResponseError):
        return _refusal(error.status_code, error.error)
    if isinstance(error, httpx.TimeoutException):
        return ModelTimedOut()
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
        return InferenceError("Ollama broke off its reply. Try again.", busy=True)
    if isinstance(error, httpx.TransportError | ConnectionError):
        return ModelUnavailable(f"Ollama does not answer at {variable('ollama_url')}. Start it with `ollama serve`.")
    return InferenceError("Ollama's reply could not be read. Try again.", busy=True)


def _refusal(status: int, text: str) -> IntramurosError:
    if _TOO_LONG.search(text):
        return PromptTooLong()
    if status == httpx.codes.NOT_FOUND:
        return ModelMissing("Ollama does not have this model. Name one that `ollama list` shows.")
    if "does not support" in text:
        return ModelRefused("This model lacks a needed capability, such as tools. Choose another.")
    if status in (httpx.codes.TOO_MANY_REQUESTS, httpx.codes.SERVICE_UNAVAILABLE):
        return ModelUnavailable("Ollama is busy. Try again in a moment.", busy=True)
    return InferenceError(f"Ollama answered with an error (HTTP {status}). See its log.", busy=status >= 500)
