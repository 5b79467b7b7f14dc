"""A deterministic embedder without a model: a hashed bag of English stems and Chinese bigrams, dimension 64.

Texts that share words are near each other and texts that share none are not, which is all that a test of ingesting or
searching needs. The same text gives the same vector in every process.
"""

import hashlib
import re
from collections.abc import Iterator, Sequence

import numpy as np
import snowballstemmer

from core.text import fold, is_cjk
from inference.interfaces import Vectors

DIMENSION = 64
_WORD = re.compile(r"[a-z0-9]+|[^\x00-\x7f]+")
_stem = snowballstemmer.stemmer("english").stemWord


def _terms(text: str) -> Iterator[str]:
    for run in _WORD.findall(fold(text)):
        if any(map(is_cjk, run)):
            yield from run
            yield from (run[i : i + 2] for i in range(len(run) - 1))
        else:
            yield _stem(run)


def vector(text: str, dimension: int = DIMENSION) -> Vectors:
    """The unit vector of one text; a text without a word gets the first axis."""
    total = np.zeros(dimension, np.float32)
    for term in _terms(text):
        digest = hashlib.blake2b(term.encode(), digest_size=8).digest()
        total[digest[0] % dimension] += 1.0 if digest[1] % 2 else -1.0
        total[digest[2] % dimension] += 1.0 if digest[3] % 2 else -1.0
    if not total.any():
        total[0] = 1.0
    unit: Vectors = total / np.linalg.norm(total)
    return unit


class FakeEmbedder:
    """Implements `inference.interfaces.Embedder`. `embedded` counts the texts, `closed` tells whether it was let go."""

    def __init__(self, name: str = "fake:bag-64:1", dimension: int = DIMENSION) -> None:
        self.id = name
        self.dimension = dimension
        self.embedded = 0
        self.closed = False

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.embedded += len(texts)
        made = [vector(text, self.dimension) for text in texts]
        return np.stack(made) if made else np.empty((0, self.dimension), np.float32)

    async def embed_query(self, text: str) -> Vectors:
        return vector(text, self.dimension)

    async def close(self) -> None:
        self.closed = True
