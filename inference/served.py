"""What the embedders of model servers share: batches, prefixes, and windows where a text is too long for the model."""

from collections.abc import Awaitable, Callable, Sequence

import numpy as np

from core.errors import PromptTooLong
from inference.interfaces import Vectors
from inference.prefixes import prefixes_of

_SHORTEST = 64  # characters: a text as short as this that is still too long is an error

# Unit vectors of a few texts, shape (len(texts), dimension). Raises PromptTooLong instead of cutting a text.
Ask = Callable[[Sequence[str]], Awaitable[Vectors]]


class ServedEmbedder:
    """Embeds by asking a server, for `batch` texts at once at most."""

    def __init__(self, name: str, dimension: int, ask: Ask, *, batch: int) -> None:
        self.dimension = dimension
        self._name, self._ask, self._batch = name, ask, batch
        self._query, self._passage = prefixes_of(name)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        batches = [texts[at : at + self._batch] for at in range(0, len(texts), self._batch)]
        if not batches:
            return np.empty((0, self.dimension), np.float32)
        return np.concatenate([await self._embed(batch, self._passage) for batch in batches])

    async def embed_query(self, text: str) -> Vectors:
        first: Vectors = (await self._embed([text], self._query))[0]
        return first

    async def _embed(self, texts: Sequence[str], prefix: str) -> Vectors:
        try:
            return await self._ask([prefix + text for text in texts])
        except PromptTooLong:
            if len(texts) == 1:
                return await self._embed_halves(texts[0], prefix)
        return np.concatenate([await self._embed([text], prefix) for text in texts])

    async def _embed_halves(self, text: str, prefix: str) -> Vectors:
        """A text that is too long is embedded in two windows, and they again in two where they must."""
        if len(text) <= _SHORTEST:
            raise PromptTooLong(f"The embedding model {self._name} takes too few tokens to be of use.")
        middle = len(text) // 2
        halves = await self._embed([text[:middle], text[middle:]], prefix)
        return unit(halves.sum(axis=0, keepdims=True).tolist())


def unit(rows: Sequence[Sequence[float]]) -> Vectors:
    """Rows scaled to length one. Raises ValueError for an empty or a zero row."""
    vectors = np.asarray(rows, np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not lengths.all():
        raise ValueError("a vector of length zero")
    scaled: Vectors = vectors / lengths
    return scaled
