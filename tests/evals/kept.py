"""An embedder whose vectors are kept in a file by text, so that measuring again costs no embedding."""

import hashlib
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from inference.interfaces import QueryTokens, TokenEmbedder, Vectors

Embed = Callable[[Sequence[str]], Awaitable[Iterable[Vectors]]]


class KeptEmbedder:
    """Implements `inference.interfaces.TokenEmbedder` over another; what it made of passages is kept.

    What it made of queries is kept while the program runs.
    """

    def __init__(self, embedder: TokenEmbedder, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.id, self.dimension = embedder.id, embedder.dimension
        self._embedder = embedder
        self._asked: dict[str, Vectors] = {}
        self._asked_tokens: dict[str, QueryTokens] = {}
        # The program calls from one loop, which need not be on the thread that opened this.
        self._kept = sqlite3.connect(folder / f"{embedder.id.replace(':', '-')}.sqlite", check_same_thread=False)
        self._kept.execute("CREATE TABLE IF NOT EXISTS kept (digest BLOB PRIMARY KEY, data BLOB) WITHOUT ROWID")

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        vectors = await self._through("passage", texts, self._embedder.embed_passages)
        return np.stack(vectors)[:, 0] if vectors else np.empty((0, self.dimension), np.float32)

    async def embed_query(self, text: str) -> Vectors:
        if text not in self._asked:
            self._asked[text] = await self._embedder.embed_query(text)
        return self._asked[text]

    async def query_tokens(self, text: str) -> QueryTokens:
        if text not in self._asked_tokens:
            self._asked_tokens[text] = await self._embedder.query_tokens(text)
        return self._asked_tokens[text]

    async def unweighted(self, text: str) -> QueryTokens:
        """In place of `query_tokens`, all tokens weigh the same."""
        asked = await self._embedder.query_tokens(text)
        return QueryTokens(asked.vectors, np.ones_like(asked.weights))

    async def passage_tokens(self, texts: Sequence[str]) -> list[Vectors]:
        return await self._through("tokens", texts, self._embedder.passage_tokens)

    async def close(self) -> None:
        self._kept.close()
        await self._embedder.close()

    async def _through(self, kind: str, texts: Sequence[str], embed: Embed) -> list[Vectors]:
        keys = [hashlib.sha256(f"{kind}\n{text}".encode()).digest() for text in texts]
        found = {key: self._find(key) for key in keys}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if found[key] is None}
        if missing:
            made = await embed(list(missing.values()))
            new = {key: np.atleast_2d(rows) for key, rows in zip(missing, made, strict=True)}
            with self._kept:
                values = [(key, rows.astype(np.float16).tobytes()) for key, rows in new.items()]
                self._kept.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?)", values)
            found |= new
        return [rows for key in keys if (rows := found[key]) is not None]

    def _find(self, key: bytes) -> Vectors | None:
        row = self._kept.execute("SELECT data FROM kept WHERE digest = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], np.float16).reshape(-1, self.dimension).astype(np.float32)
