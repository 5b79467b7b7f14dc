"""The embedded embedder: multilingual-e5-small on onnxruntime, 384 dimensions, English and Chinese among a hundred."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np

from core.errors import ChecksumMismatch, InferenceError, MissingExtra, ModelMissing
from inference import e5_build
from inference.e5_graph import EMBEDDING, TOKENS
from inference.e5_weights import HIDDEN
from inference.interfaces import QueryTokens, Vectors

_START, _END = 0, 2  # <s> and </s>
_WINDOW = 510  # tokens between them; the model has 512 positions
# A piece's score is the logarithm of how often it is met. One met as often as this, or more, weighs nothing.
_COMMON = -5.0


class E5Embedder:
    """Implements `inference.interfaces.TokenEmbedder`. `workers` texts run at once, one thread each, longest first."""

    id = "embedded:multilingual-e5-small:1"
    dimension = HIDDEN

    def __init__(self, folder: Path, workers: int) -> None:
        """Load what `e5_build.build` made (half a second). Raises ModelMissing, ChecksumMismatch, MissingExtra."""
        manifest = e5_build.Manifest.read(folder)
        if manifest is None:
            raise ModelMissing("The embedder is not on this machine. Run `intramuros models pull`.")
        if not manifest.intact(folder):
            raise ChecksumMismatch("The embedder's files were altered. Run `intramuros models pull` again.")
        try:
            self._session = e5_build.open_session(folder / manifest.graph)
            self._tokens = e5_build.open_tokenizer(folder)
        except ImportError as error:
            raise MissingExtra from error
        self._passage = self._tokens.encode("passage:")
        self._query = self._tokens.encode("query:")
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="embed")

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._embed, texts, self._passage)

    async def embed_query(self, text: str) -> Vectors:
        vectors = await asyncio.to_thread(self._embed, [text], self._query)
        first: Vectors = vectors[0]
        return first

    async def query_tokens(self, text: str) -> QueryTokens:
        (vectors,) = await asyncio.to_thread(self._embed_tokens, [text], self._query)
        scores = np.array([self._tokens.get_score(token) for token in self._tokens.encode(text.strip())], np.float32)
        return QueryTokens(vectors, np.maximum(_COMMON - scores, 0))

    async def passage_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        return await asyncio.to_thread(self._embed_tokens, texts, self._passage)

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _embed(self, texts: Sequence[str], prefix: list[int]) -> Vectors:
        """A text's vector is the mean of its windows' vectors, each weighted by its length."""
        total = np.zeros((len(texts), HIDDEN), np.float32)
        for number, window, vector in self._run(EMBEDDING, texts, prefix):
            total[number] += vector * max(len(window), 1)
        unit: Vectors = total / np.linalg.norm(total, axis=1, keepdims=True)
        return unit

    def _embed_tokens(self, texts: Sequence[str], prefix: list[int]) -> list[Vectors]:
        """The vectors of a text's windows in turn, without those of the prefix and of both ends."""
        parts: list[list[Vectors]] = [[] for _ in texts]
        for number, _, vectors in self._run(TOKENS, texts, prefix):
            parts[number].append(vectors[1 + len(prefix) : -1])
        return [np.concatenate(vectors) for vectors in parts]

    def _run(self, output: str, texts: Sequence[str], prefix: list[int]) -> list[tuple[int, list[int], Vectors]]:
        """Text number, token ids and the graph's output for each window; a text's windows in their order."""
        windows = [
            (number, window)
            for number, ids in enumerate(self._tokens.encode([text.strip() for text in texts]))
            for window in split(ids, _WINDOW - len(prefix))
        ]
        windows.sort(key=lambda pair: -len(pair[1]))

        def run(pair: tuple[int, list[int]]) -> Vectors:
            ids = np.array([[_START, *prefix, *pair[1], _END]], np.int64)
            result: Vectors = self._session.run([output], {"input_ids": ids})[0][0]
            return result

        try:
            return [(*pair, result) for pair, result in zip(windows, self._pool.map(run, windows), strict=True)]
        # onnxruntime's errors have no base of their own; the others say that the pool was closed meanwhile.
        except Exception as error:
            raise InferenceError("The embedder stopped while it worked. Try again.") from error


def split(ids: list[int], size: int) -> Iterator[list[int]]:
    """Cut into the fewest windows of at most `size`, all about equally long; an empty list is one empty window."""
    count = max(1, -(-len(ids) // size))
    edges = [round(len(ids) * step / count) for step in range(count + 1)]
    for start, end in pairwise(edges):
        yield ids[start:end]
