"""The two small interfaces that every local model stands behind, and the values they exchange."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from langchain_core.language_models import BaseChatModel
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call took, as its server counted: 0 where it did not. `finish` is `length` when max_tokens cut it."""

    finish: Literal["stop", "length"]
    prompt_tokens: int
    completion_tokens: int


# Is told, when a call ended well, what it took.
Ended = Callable[[Usage], None]


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's whole reply, thinking removed. `finish` is `length` when max_tokens cut it."""

    text: str
    finish: Literal["stop", "length"]
    prompt_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class Traits:
    """What a chat model can do.

    `tools`: takes tool definitions. `logprobs`: gives the first token's alternatives. `capable`: large enough to
    answer over several passages and to steer its own search (about 3 billion parameters and more).
    """

    tools: bool
    logprobs: bool
    capable: bool
    context_tokens: int


class ChatModel(Protocol):
    """A chat model. Every call is at temperature 0, has a token limit and a time-out, and never cuts a prompt.

    A reply that was cut off, broke off, or did not say how it ended is an error: tried again by whatever gives whole
    replies, raised by `stream`. `identity` is the same for as long as the model's weights are.
    Errors: ModelUnavailable, ModelMissing, ModelTimedOut, ModelRefused, PromptTooLong, InferenceError.
    """

    name: str
    identity: str
    provider: Literal["ollama", "openai", "embedded"]
    traits: Traits

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        max_tokens: int,
        stop: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> Completion:
        """The whole reply; under `schema` (a JSON schema) the text is one JSON value that fits it."""
        ...

    def stream(
        self, messages: Sequence[Message], *, max_tokens: int, stop: Sequence[str] = (), ended: Ended | None = None
    ) -> AsyncIterator[str]:
        """The reply's pieces as they come, thinking removed. Closing the iterator stops the model."""
        ...

    async def first_token(
        self, messages: Sequence[Message], *, top: int = 20, ended: Ended | None = None
    ) -> Mapping[str, float] | None:
        """Probabilities of the `top` likeliest first tokens of the reply, or None where the server gives none."""
        ...

    def langchain(self) -> BaseChatModel:
        """The same model for LangGraph: guarded transport, token limit, time-out and temperature 0 already set."""
        ...

    async def close(self) -> None:
        """Let connections go. Safe to call twice."""
        ...


class Embedder(Protocol):
    """Turns text into unit vectors, float32.

    `id` names the embedding set (provider, model and version): vectors of two ids are never compared.
    Errors: ModelUnavailable, ModelMissing, ModelTimedOut, InferenceError.
    """

    id: str
    dimension: int

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension). Texts of any length: longer ones than the model takes are windowed."""
        ...

    async def embed_query(self, text: str) -> Vectors:
        """Shape (dimension,)."""
        ...

    async def close(self) -> None:
        """Let threads and connections go. Safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class QueryTokens:
    """A query's tokens: their unit vectors, shape (tokens, dimension), and what each weighs, shape (tokens,)."""

    vectors: Vectors
    weights: Vectors


@runtime_checkable
class TokenEmbedder(Embedder, Protocol):
    """An embedder that also gives a vector for every token of a text. Errors: those of Embedder."""

    async def query_tokens(self, text: str) -> QueryTokens:
        """The more of all texts hold a token, the less it weighs."""
        ...

    async def passage_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        """One array of unit vectors for each text, shape (tokens, dimension)."""
        ...


class Reranker(Protocol):
    """Scores passages against a query, better and dearer than a search can.

    `weight` is this score's share in the order that results, from 0 to 1; the rest is the fused score's.
    Errors: those of Embedder.
    """

    id: str
    weight: float

    async def scores(self, query: str, passages: Sequence[str]) -> Vectors:
        """Shape (len(passages),); larger is better, on any scale."""
        ...

    async def close(self) -> None:
        """Let threads and connections go. Safe to call twice."""
        ...
