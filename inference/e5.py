"""The embedded embedder: multilingual-e5-small on onnxruntime, 384 dimensions, English and Chinese among a hundred."""

import asyncio
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np

from core.errors import ChecksumMismatch, InferenceError, MissingExtra, ModelMissing
from inference import e5_build
from inference.e5_weights import HIDDEN
from inference.interfaces import Vectors

_START, _END = 0, 2  # <s> and </s>
_WINDOW = 510  # tokens between them; the model has 512 positions


class E5Embedder:
    """Implements `inference.interfaces.Embedder`. `workers` texts run at once, one thread each, longest first."""

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

    async def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _embed(self, texts: Sequence[str], prefix: list[int]) -> Vectors:
        """A text's vector is the mean of its windows' vectors, each weighted by its length."""
        windows = [
            (number, window)
            for number, ids in enumerate(self._tokens.encode([text.strip() for text in texts]))
            for window in split(ids, _WINDOW - len(prefix))
        ]
        windows.sort(key=lambda pair: -len(pair[1]))
        total = np.zeros((len(texts), HIDDEN), np.float32)
        try:
            runs = self._pool.map(lambda pair: self._run([_START, *prefix, *pair[1], _END]), windows)
            for (number, window), vector in zip(windows, runs, strict=True):
                total[number] += vector * max(len(window), 1)
        # onnxruntime's errors have no base of their own; the others say that the pool was closed meanwhile.
        except Exception as error:
            raise InferenceError("The embedder stopped while it worked. Try again.") from error
        unit: Vectors = total / np.linalg.norm(total, axis=1, keepdims=True)
        return unit

    def _run(self, ids: list[int]) -> Vectors:
        vector: Vectors = self._session.run(None, {"input_ids": np.array([ids], np.int64)})[0][0]
        return vector


def split(ids: list[int], size: int) -> Iterator[list[int]]:
    """Cut into the fewest windows of at most `size`, all about equally long; an empty list is one empty window."""
    count = max(1, -(-len(ids) // size))
    edges = [round(len(ids) * step / count) for step in range(count + 1)]
    for start, end in pairwise(edges):
        yield ids[start:end]
