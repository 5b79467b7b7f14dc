"""The searchable half of a document: chunks, vectors and words, written and removed inside the caller's transaction.

The tenant's row in `lex_stat` is locked first: it gives the chunk numbers and holds the averages, so that one document
of a tenant is written at a time while other tenants go on.
"""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector, SparseVector

from core.errors import EmbeddingSetMismatch, StorageError
from core.records import Chunk
from core.text import language_of
from storage import lexical
from storage.database import Transaction, typed_row

# A term in more chunks than this keeps no list of them.
DENSE: Final = 2000
# Weights are made anew when an average field length has moved by more than this since they were made.
DRIFT: Final = 0.10
BATCH: Final = 1000

Words = Mapping[int, dict[int, float]]


async def add(
    tx: Transaction,
    document_id: UUID,
    title: str,
    chunks: Sequence[Chunk],
    vectors: NDArray[np.float32],
    embedder_id: str,
) -> None:
    """Write the chunks (in order) of a document that has none, with their vectors of shape (len(chunks), dimension).

    Raises EmbeddingSetMismatch when the tenant's vectors are of another embedder or dimension.
    """
    if vectors.ndim != 2 or len(vectors) != len(chunks):
        raise StorageError(f"{len(chunks)} chunks came with vectors of shape {vectors.shape}.")
    state = typed_row(await tx.row("index.lock"))
    await _ensure_set(tx, embedder_id, vectors.shape[1], empty=state["n"] == 0)
    ids = list(range(state["next_chunk"], state["next_chunk"] + len(chunks)))
    parts = await asyncio.to_thread(lambda: [lexical.fields(chunk.text, title, chunk.heading_path) for chunk in chunks])
    averages = _averages(state)
    words = {i: lexical.vector(lexical.weighted(part, averages)) for i, part in zip(ids, parts, strict=True)}
    lengths = [part.lengths for part in parts]
    await tx.run("index.insert_chunks", document=document_id, chunk_id=ids, **_columns(chunks))
    await tx.run(
        "index.insert_vectors",
        document=document_id,
        embedder=embedder_id,
        chunk_id=ids,
        v=[HalfVector(vector) for vector in vectors],
    )
    await tx.run(
        "index.insert_words",
        document=document_id,
        chunk_id=ids,
        text_length=[int(length.text) for length in lengths],
        title_length=[int(length.title) for length in lengths],
        headings_length=[int(length.headings) for length in lengths],
        w=_sparse(words.values()),
    )
    term, chunk_id, weight = _flat(words)
    await tx.run("index.count_terms", term=term, chunk_id=chunk_id, weight=weight, dense=DENSE)
    await _count(tx, len(ids), len(ids), lengths, +1)


async def remove(tx: Transaction, document_id: UUID) -> dict[str, int]:
    """Remove what `add` wrote; the rows removed by kind. The tenant's counts are as if it had never been there."""
    typed_row(await tx.row("index.lock"))
    rows = await tx.rows("index.words", document=document_id)
    words = {row["chunk_id"]: dict(zip(row["w"].indices(), row["w"].values(), strict=True)) for row in rows}
    # pgvector's Python type counts from 0, SQL from 1.
    term, chunk_id, _ = _flat({i: {number + 1: w for number, w in terms.items()} for i, terms in words.items()})
    await tx.run("index.uncount_terms", term=term, chunk_id=chunk_id)
    await tx.run("index.forget_terms", term=sorted(set(term)))
    lengths = [lexical.Lengths(row["text_length"], row["title_length"], row["headings_length"]) for row in rows]
    counts = {
        "vectors": await tx.run("index.delete_vectors", document=document_id),
        "words": await tx.run("index.delete_words", document=document_id),
        "chunks": await tx.run("index.delete_chunks", document=document_id),
    }
    await _count(tx, -len(rows), 0, lengths, -1)
    return counts


async def settle(tx: Transaction) -> None:
    """After a change: weigh every chunk anew when the averages have drifted by more than a tenth.

    That reads all of a tenant's text, but only a small or fast-growing tenant drifts.
    """
    state = typed_row(await tx.row("index.lock"))
    frozen = _averages(state)
    n = max(state["n"], 1)
    true = lexical.Lengths(*(state[f"{name}_sum"] / n for name in ("text", "title", "headings")))
    if state["n"] == 0 or not any(
        abs(now - then) > DRIFT * max(then, 1.0)
        for now, then in zip(asdict(true).values(), asdict(frozen).values(), strict=True)
    ):
        return
    after = 0
    while rows := await tx.rows("index.texts", after=after, limit=BATCH):
        await _reweigh(tx, rows, true)
        after = rows[-1]["chunk_id"]
    await tx.run("index.freeze_averages", text=true.text, title=true.title, headings=true.headings)


async def _reweigh(tx: Transaction, rows: Sequence[Mapping[str, Any]], averages: lexical.Lengths) -> None:
    def weigh() -> dict[int, dict[int, float]]:
        return {
            row["chunk_id"]: lexical.vector(
                lexical.document_terms(row["text"], row["title"], row["heading_path"], averages)
            )
            for row in rows
        }

    words = await asyncio.to_thread(weigh)
    term, _, weight = _flat(words)
    await tx.run("index.reweigh", chunk_id=list(words), w=_sparse(words.values()))
    await tx.run("index.raise_bounds", term=term, weight=weight)


async def _ensure_set(tx: Transaction, embedder_id: str, dimension: int, *, empty: bool) -> None:
    active = await tx.row("index.active_set")
    if active is not None and (active["embedder_id"], active["dimension"]) == (embedder_id, dimension):
        return
    if not empty:
        raise EmbeddingSetMismatch
    await tx.row("index.add_set", embedder=embedder_id, dimension=dimension)


async def _count(tx: Transaction, n: int, given: int, lengths: Sequence[lexical.Lengths], sign: int) -> None:
    await tx.run(
        "index.count_chunks",
        n=n,
        given=given,
        text=sign * int(sum(length.text for length in lengths)),
        title=sign * int(sum(length.title for length in lengths)),
        headings=sign * int(sum(length.headings for length in lengths)),
    )


def _averages(state: Mapping[str, Any]) -> lexical.Lengths:
    return lexical.Lengths(state["text_average"], state["title_average"], state["headings_average"])


def _columns(chunks: Sequence[Chunk]) -> dict[str, list[Any]]:
    return {
        "ordinal": [chunk.ordinal for chunk in chunks],
        "section": [chunk.section for chunk in chunks],
        "kind": [chunk.kind for chunk in chunks],
        "language": [language_of(chunk.text) for chunk in chunks],
        "heading_path": [json.dumps(chunk.heading_path) for chunk in chunks],
        "text": [chunk.text for chunk in chunks],
        "page": [chunk.page for chunk in chunks],
        "boxes": [json.dumps([asdict(box) for box in chunk.boxes]) for chunk in chunks],
        "start_at": [chunk.start for chunk in chunks],
        "end_at": [chunk.end for chunk in chunks],
    }


def _sparse(words: Iterable[Mapping[int, float]]) -> list[SparseVector]:
    return [SparseVector({number - 1: w for number, w in terms.items()}, lexical.DIMENSION) for terms in words]


def _flat(words: Words) -> tuple[list[int], list[int], list[float]]:
    """Term numbers, chunk numbers and weights of every posting, in three lists."""
    postings = [(number, i, w) for i, terms in words.items() for number, w in terms.items()]
    return [p[0] for p in postings], [p[1] for p in postings], [p[2] for p in postings]
