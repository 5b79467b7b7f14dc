"""Documents for the tests of this folder: one call from texts to a searchable document."""

import hashlib
from collections.abc import Collection, Sequence
from datetime import date
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from core.records import Chunk, Document, ParsedDocument
from core.text import embedded_text
from storage import collections, documents
from storage.database import Database
from tests.storing import store

EMBEDDER = "test/8"
DIMENSION = 8


def unit(*numbers: float) -> NDArray[np.float32]:
    """A unit vector that begins with these numbers."""
    length = sum(number * number for number in numbers) ** 0.5
    padding = [0.0] * (DIMENSION - len(numbers))
    return np.array([*(number / length for number in numbers), *padding], dtype=np.float32)


def random_units(count: int, seed: int = 0) -> NDArray[np.float32]:
    vectors: NDArray[np.float32] = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def chunks_of(texts: Sequence[str], headings: Sequence[str] = (), suspicious: Collection[str] = ()) -> list[Chunk]:
    """One chunk a text, all in one section."""
    made, start = [], 0
    for ordinal, text in enumerate(texts):
        suspicion = "instruction_like" if text in suspicious else None
        made.append(Chunk(ordinal, text, tuple(headings), 0, start, start + len(text), suspicion=suspicion))
        start += len(text) + 1
    return made


async def register(
    db: Database, tenant_id: UUID, collection_id: UUID, path: str, content: str
) -> tuple[Document, documents.Registered]:
    return await documents.register(
        db,
        tenant_id,
        collection_id,
        path=path,
        sha256=hashlib.sha256(content.encode()).hexdigest(),
        media_type="text/markdown",
        size=len(content),
        title=path,
    )


async def read(
    db: Database, tenant_id: UUID, path: str, texts: Sequence[str], *, suspicious: Collection[str] = ()
) -> Document:
    """Register a document and store what was read of it, without vectors."""
    target = await collections.ensure(db, tenant_id, "handbook")
    document, _ = await register(db, tenant_id, target.id, path, path + "\n".join(texts))
    made = chunks_of(texts, suspicious=suspicious)
    return await documents.store_revision(
        db, tenant_id, document.id, ParsedDocument(path, ()), made, sha256=document.sha256
    )


async def fill(
    db: Database,
    tenant_id: UUID,
    path: str,
    texts: Sequence[str],
    *,
    collection: str = "handbook",
    title: str = "",
    headings: Sequence[str] = (),
    suspicious: Collection[str] = (),
    vectors: NDArray[np.float32] | None = None,
    embedder: str = EMBEDDER,
    effective_from: date | None = None,
    effective_to: date | None = None,
    keep: int = documents.KEEP,
) -> Document:
    """Register, read and embed a document; without `vectors` they are random, the same for the same path."""
    target = await collections.ensure(db, tenant_id, collection)
    dates = f"{effective_from} {effective_to}"
    document, _ = await register(db, tenant_id, target.id, path, path + dates + "\n".join(texts))
    seed = int.from_bytes(hashlib.sha256(path.encode()).digest()[:4], "big")
    parsed = ParsedDocument(title or path, (), effective_from=effective_from, effective_to=effective_to)
    made = chunks_of(texts, headings, suspicious)
    given = random_units(len(texts), seed) if vectors is None else vectors
    by_text = {
        embedded_text(parsed.title, chunk.heading_path, chunk.text): vector
        for chunk, vector in zip(made, given, strict=True)
    }

    async def embed(wanted: list[str]) -> NDArray[np.float32]:
        return np.stack([by_text[text] for text in wanted])

    return await store(db, tenant_id, document, parsed, made, embed, embedder_id=embedder, keep=keep)
