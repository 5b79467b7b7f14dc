"""Late interaction: how well a passage's tokens answer to each token of the query (Khattab and Zaharia, 2020).

No model of its own: the token vectors are the embedder's last hidden states.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from inference.interfaces import QueryTokens, TokenEmbedder, Vectors

# Passages embedded at once; between two such parts another question gets its turn.
_PART: Final = 8


@dataclass(frozen=True, slots=True)
class _Tokens:
    """A passage's token vectors in 8 bits: `values` of shape (tokens, dimension), `scales` of shape (tokens,)."""

    values: NDArray[np.int8]
    scales: Vectors

    @classmethod
    def of(cls, vectors: Vectors) -> Self:
        if not len(vectors):  # a text without a token is like nothing
            vectors = np.zeros((1, vectors.shape[1]), np.float32)
        scales = np.abs(vectors).max(axis=1, initial=1e-9) / 127
        return cls(np.rint(vectors / scales[:, None]).astype(np.int8), scales)

    @property
    def bytes(self) -> int:
        return self.values.nbytes + self.scales.nbytes


class LateInteraction:
    """Implements `inference.interfaces.Reranker`: the mean, over the query's tokens by weight, of the best cosine.

    The vectors of passages seen lately are kept, so that the passages many ask for cost nothing.
    """

    # Found on the sets of docs/benchmarks.md: .6 and .8 come within half a point of MRR.
    weight = 0.7

    def __init__(self, embedder: TokenEmbedder, cache_bytes: int) -> None:
        self.id = f"late:{embedder.id}"
        self._embedder = embedder
        self._free = cache_bytes
        self._kept: OrderedDict[str, _Tokens] = OrderedDict()

    async def scores(self, query: str, passages: Sequence[str]) -> Vectors:
        asked = await self._embedder.query_tokens(query)
        found = await self._tokens(list(dict.fromkeys(passages)))
        return _scores(asked, [found[text] for text in passages])

    async def close(self) -> None:
        """The embedder is closed by whoever opened it."""
        self._kept.clear()

    async def _tokens(self, texts: Sequence[str]) -> dict[str, _Tokens]:
        found = {text: self._kept[text] for text in texts if text in self._kept}
        missing = [text for text in texts if text not in found]
        for at in range(0, len(missing), _PART):
            part = missing[at : at + _PART]
            vectors = await self._embedder.passage_tokens(part)
            found |= {text: _Tokens.of(rows) for text, rows in zip(part, vectors, strict=True)}
        for text in texts:
            self._keep(text, found[text])
        return found

    def _keep(self, text: str, tokens: _Tokens) -> None:
        """As the one used last; the ones not used for longest make room."""
        if text not in self._kept:
            self._free -= tokens.bytes
        self._kept[text] = tokens
        self._kept.move_to_end(text)
        while self._free < 0:
            self._free += self._kept.popitem(last=False)[1].bytes


def _scores(query: QueryTokens, passages: Sequence[_Tokens]) -> Vectors:
    """From -1 to 1 each; 0 where either has nothing to compare. All in one product: many small ones cost more."""
    total = float(query.weights.sum())
    starts = np.cumsum([0, *(len(passage.values) for passage in passages)])[:-1]
    values = np.concatenate([passage.values for passage in passages]).astype(np.float32)
    cosines = query.vectors @ values.T * np.concatenate([passage.scales for passage in passages])
    scores: Vectors = query.weights @ np.maximum.reduceat(cosines, starts, axis=1) / max(total, 1e-9)
    return scores
