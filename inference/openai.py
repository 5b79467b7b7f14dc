"""Private servers that speak OpenAI's protocol (vLLM, llama.cpp and others): chat and embedding."""

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage

from core.errors import (
    InferenceError,
    IntramurosError,
    MissingExtra,
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
from inference.served import ServedEmbedder, unit
from policy.egress import Policy, check_url
from policy.transport import async_client_options, client_options

CAPABLE_BILLIONS = 3.0  # parameters from which a model may answer over several passages
NO_KEY = "none"  # the client insists on a key
_PARAMETERS = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)\s?b(?![a-z])", re.IGNORECASE)
_TOO_LONG = re.compile(r"exceed_context_size|context[_ ]length|maximum context|context size", re.IGNORECASE)
_BATCH = 32  # texts in one embedding request


class OpenAIDialect:
    """What every server of this protocol shares; the embedded model is one of them."""

    kind: Literal["ollama", "openai", "embedded"] = "openai"
    traits: Traits

    def __init__(self) -> None:
        try:
            import openai
        except ImportError as error:
            raise MissingExtra("langchain-openai is missing. Run: pip install 'intramuros[openai]'.") from error
        self.foreign: tuple[type[Exception], ...] = (openai.OpenAIError, httpx.HTTPError, json.JSONDecodeError)

    def options(
        self, *, max_tokens: int, stop: Sequence[str], schema: Mapping[str, Any] | None = None, top: int = 0
    ) -> dict[str, Any]:
        options: dict[str, Any] = {"max_tokens": max_tokens}
        if stop:
            options["stop"] = list(stop)
        if top:
            options |= {"logprobs": True, "top_logprobs": top}
        if schema is not None:
            named = {"name": "reply", "schema": dict(schema), "strict": True}
            # In the body as it is: the client would otherwise parse the reply itself, and stream in another way.
            options["extra_body"] = {"response_format": {"type": "json_schema", "json_schema": named}}
        return options

    def ending(self, reply: AIMessageChunk, prompt: Sequence[BaseMessage]) -> Usage:
        finish = finish_of(reply.response_metadata.get("finish_reason"))
        usage = reply.usage_metadata
        read, wrote = (usage["input_tokens"], usage["output_tokens"]) if usage else (0, 0)
        if tokens.was_cut(read, prompt, self.traits.context_tokens):
            raise PromptTooLong("The model server cut the prompt in silence. Give it a larger context.")
        return Usage(finish, read, wrote)

    def first_token(self, reply: AIMessageChunk) -> Mapping[str, float] | None:
        return alternatives((reply.response_metadata.get("logprobs") or {}).get("content"))

    def translate(self, error: Exception) -> IntramurosError:
        import openai

        if isinstance(error.__cause__, IntramurosError):  # the transport refused; the client wrapped it
            return error.__cause__
        if isinstance(error, openai.APITimeoutError | httpx.TimeoutException):
            return ModelTimedOut()
        if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
            return InferenceError("The model server broke off its reply. Try again.", busy=True)
        if isinstance(error, openai.APIConnectionError | httpx.TransportError):
            return ModelUnavailable(busy=self.kind == "embedded")
        if _TOO_LONG.search(str(error)):
            return PromptTooLong()
        if isinstance(error, openai.APIStatusError):
            return self._refusal(error.status_code)
        return InferenceError(busy=True)

    def _refusal(self, status: int) -> IntramurosError:
        if status in (401, 403):
            return ModelRefused(f"The model server wants another key. Set {variable('openai_api_key')}.")
        if status == 404:
            return ModelMissing("The model server does not have this model. Name one that it has.")
        if status in (429, 503):
            return ModelUnavailable("The model server is busy. Try again in a moment.", busy=True)
        said = f"The model server answered with an error (HTTP {status}). See its log."
        return InferenceError(said, busy=status >= 500)


class OpenAIProvider(OpenAIDialect):
    """Chat on a private server that settings name."""

    def __init__(self, settings: Settings, policy: Policy, name: str) -> None:
        super().__init__()
        self.name = name
        self.identity = f"openai:{settings.openai_url}:{name}"
        size = billions_in(name)
        capable = size is None or size >= CAPABLE_BILLIONS
        self.traits = Traits(tools=True, logprobs=True, capable=capable, context_tokens=settings.num_ctx)
        self._client = Client(base_url(settings), api_key(settings), policy, "model", settings.chat_timeout)
        self._model = self._client.chat(name)

    @asynccontextmanager
    async def use(self) -> AsyncIterator[BaseChatModel]:
        yield self._model

    async def close(self) -> None:
        await self._client.close()


class Client:
    """The guarded connections to one server."""

    def __init__(self, url: str, key: str, policy: Policy, purpose: str, timeout: float) -> None:
        self._url, self._key, self._timeout = url, key, timeout
        self._sync = httpx.Client(**client_options(policy, purpose), timeout=timeout)
        self._async = httpx.AsyncClient(**async_client_options(policy, purpose), timeout=timeout)

    def chat(self, name: str) -> BaseChatModel:
        """The LangChain model of this server."""
        from langchain_openai import ChatOpenAI
        from pydantic import SecretStr

        return ChatOpenAI(
            model=name,
            base_url=self._url,
            api_key=SecretStr(self._key),
            http_client=self._sync,
            http_async_client=self._async,
            http_socket_options=(),  # or a transport of its own is made
            timeout=self._timeout,
            max_retries=0,
            temperature=0,
            stream_usage=True,
            use_responses_api=False,
        )

    async def get(self, path: str) -> Any:
        """A JSON document of the server. Raises httpx.HTTPError or ValueError."""
        return (await self._send("GET", path)).json()

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The JSON reply to a JSON request. Raises httpx.HTTPError or ValueError."""
        return (await self._send("POST", path, json=body)).json()

    async def _send(self, method: str, path: str, **content: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self._key}"}
        response = await self._async.request(method, f"{self._url}{path}", headers=headers, **content)
        return response.raise_for_status()

    async def close(self) -> None:
        """Let connections go. Safe to call twice."""
        self._sync.close()
        await self._async.aclose()


class OpenAIEmbedder(ServedEmbedder):
    """Implements `inference.interfaces.Embedder` on a private server. Make one with `open`."""

    def __init__(self, client: Client, name: str, dimension: int) -> None:
        super().__init__(name, dimension, self._vectors, batch=_BATCH)
        self.id = f"openai:{name}"
        self._client = client

    @classmethod
    async def open(cls, settings: Settings, policy: Policy, name: str) -> "OpenAIEmbedder":
        """Ask the server for one vector, so that the dimension is known."""
        client = Client(base_url(settings), api_key(settings), policy, "model", settings.chat_timeout)
        embedder = cls(client, name, 0)
        try:
            embedder.dimension = (await embedder._vectors(["dimension"])).shape[1]
        except IntramurosError:
            await client.close()
            raise
        return embedder

    async def close(self) -> None:
        await self._client.close()

    async def _vectors(self, texts: Sequence[str]) -> Vectors:
        try:
            reply = await self._client.post("/embeddings", {"model": self._name, "input": list(texts)})
            return unit([row["embedding"] for row in sorted(reply["data"], key=lambda row: row["index"])])
        except httpx.HTTPStatusError as error:
            if _TOO_LONG.search(error.response.text):
                raise PromptTooLong("A passage is longer than the embedding model reads.") from error
            raise InferenceError(f"The embedding server answered HTTP {error.response.status_code}.") from error
        except httpx.TimeoutException as error:
            raise ModelTimedOut from error
        except httpx.HTTPError as error:
            raise ModelUnavailable from error
        except (ValueError, KeyError, TypeError) as error:
            raise InferenceError("The embedding server's reply could not be read.") from error


async def models(settings: Settings, policy: Policy) -> list[str]:
    """Names of the models that the private server offers. Raises ModelUnavailable."""
    client = Client(base_url(settings), api_key(settings), policy, "model", timeout=5.0)
    try:
        await asyncio.to_thread(check_url, policy, base_url(settings), "model")
        return [str(entry["id"]) for entry in (await client.get("/models"))["data"]]
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as error:
        raise ModelUnavailable(f"No OpenAI-compatible server answers at {variable('openai_url')}.") from error
    finally:
        await client.close()


def base_url(settings: Settings) -> str:
    """The server's base URL without a slash at its end. Raises ModelMissing when settings name none."""
    if not settings.openai_url:
        raise ModelMissing(f"No OpenAI-compatible server is named. Set {variable('openai_url')}.")
    return settings.openai_url.rstrip("/")


def api_key(settings: Settings) -> str:
    """The server's key, a placeholder when it wants none."""
    return settings.openai_api_key.get_secret_value() if settings.openai_api_key else NO_KEY


def billions_in(name: str) -> float | None:
    """Billions of parameters that a model's name speaks of: 3.0 for `Llama-3.2-3B-Instruct`, None for no number."""
    size = _PARAMETERS.search(name)
    return float(size[1]) if size else None


def alternatives(tokens: Any) -> Mapping[str, float] | None:
    """Probabilities of the first token's alternatives, from a list in OpenAI's form; equal texts are summed."""
    if not tokens:
        return None
    found: dict[str, float] = {}
    for choice in tokens[0].get("top_logprobs") or ():
        found[choice["token"]] = found.get(choice["token"], 0.0) + math.exp(choice["logprob"])
    return found or None
