"""The searchable half of a document: words and vectors, written and removed inside the caller's transaction.

The tenant's row in `lex_stat` is locked before words are written: it gives the chunk numbers and holds the averages, so
that the words of one document of a tenant are written at a time while other tenants go on. Vectors need no such turn.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any, Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.rows import DictRow

from core.errors import EmbeddingSetMismatch, StorageError
from storage import lexical
from storage.database import Transaction, typed_row

# Weights are made anew when an average field length has moved by more than this since they were made.
DRIFT: Final = 0.10
BATCH: Final = 1000

Words = Mapping[int, dict[int, float]]


async def numbers(tx: Transaction, count: int) -> list[int]:
    """Numbers for new chunks of the tenant, never given before."""
    first: int = typed_row(await tx.row("index.take_numbers", count=count))["first"]
    return list(range(first, first + count))


async def align(tx: Transaction, document_id: UUID) -> None:
    """Make words and vectors follow the document's placements.

    A chunk of the newest revision has words, unless it is quarantined; one of older revisions only is retired; one of
    none goes. Vectors of new chunks are left to `add_vectors`.
    """
    averages = _averages(typed_row(await tx.row("index.lock")))
    rows = await tx.rows("index.standing", document=document_id)
    orphans = [row for row in rows if not row["placed"]]
    placed = [row for row in rows if row["placed"]]
    await _retire(tx, _numbers(row for row in placed if not row["newest"] and row["retired"] is False))
    await _revive(tx, _numbers(row for row in placed if row["newest"] and row["retired"]))
    await _delete(tx, _numbers(orphans), live=_numbers(row for row in orphans if row["retired"] is False))
    await _add_words(
        tx,
        document_id,
        _numbers(row for row in placed if row["newest"] and row["retired"] is None and not row["quarantined"]),
        averages,
    )


async def remove(tx: Transaction, document_ids: Sequence[UUID]) -> None:
    """Remove words and vectors of whole documents, whose chunks go with them."""
    await tx.row("index.lock")
    rows = await tx.rows("index.words_of", documents=list(document_ids))
    await _uncount(tx, _numbers(row for row in rows if not row["retired"]))
    await _unmask(tx, _numbers(rows), gone=True)
    tx.later("index.empty_words", documents=list(document_ids))
    tx.later("index.empty_vectors", documents=list(document_ids))


async def add_vectors(
    tx: Transaction, document_id: UUID, chunk_ids: Sequence[int], vectors: NDArray[np.float32], embedder_id: str
) -> None:
    """Write vectors of shape (len(chunk_ids), dimension); chunks that went meanwhile are passed over.

    The tenant's first vectors make their set. Raises EmbeddingSetMismatch when it has only sets of other embedders or
    dimensions.
    """
    if vectors.ndim != 2 or len(vectors) != len(chunk_ids):
        raise StorageError(f"{len(chunk_ids)} chunks came with vectors of shape {vectors.shape}.")
    if not await _has_set(tx, embedder_id, vectors.shape[1]):
        # Two writers of the tenant's first vectors: the second finds the set made.
        await tx.row("index.lock")
        if not await _has_set(tx, embedder_id, vectors.shape[1]):
            await tx.row("index.add_set", embedder=embedder_id, dimension=vectors.shape[1])
    await tx.run(
        "index.insert_vectors",
        document=document_id,
        embedder=embedder_id,
        chunk_id=list(chunk_ids),
        v=[HalfVector(vector) for vector in vectors],
    )


async def missing(tx: Transaction, document_id: UUID, embedder_id: str, limit: int | None) -> list[DictRow]:
    """Chunks of the newest revision without a vector of this embedder, in reading order, those that are alike once.

    Those of which the tenant has the very same chunk's vector take that over first. Raises EmbeddingSetMismatch.
    """
    rows = await tx.rows("index.missing_vectors", document=document_id, embedder=embedder_id, limit=limit)
    if rows:
        await _has_set(tx, embedder_id)
    return rows


async def keep_active(tx: Transaction, embedder_id: str) -> None:
    """Keep this embedder's set active until the transaction ends. Raises EmbeddingSetMismatch where it is not."""
    row = await tx.row("index.keep_active")
    if row is not None and row["embedder_id"] != embedder_id and await _has_set(tx, embedder_id):
        raise EmbeddingSetMismatch


async def outgrown(tx: Transaction, threshold: int) -> str | None:
    """The embedder whose vectors want an index: the tenant has so many chunks, and they have none yet."""
    row = await tx.row("index.grown", threshold=threshold)
    return row["embedder_id"] if row else None


async def _add_words(tx: Transaction, document_id: UUID, chunk_ids: list[int], averages: lexical.Lengths) -> None:
    for at in range(0, len(chunk_ids), BATCH):
        rows = await tx.rows("index.contents", chunk_id=chunk_ids[at : at + BATCH])
        parts = await asyncio.to_thread(_fields, rows)
        words = {
            row["chunk_id"]: lexical.vector(lexical.weighted(part, averages))
            for row, part in zip(rows, parts, strict=True)
        }
        lengths = [part.lengths for part in parts]
        tx.later(
            "index.insert_words",
            document=document_id,
            chunk_id=list(words),
            text_length=[int(length.text) for length in lengths],
            title_length=[int(length.title) for length in lengths],
            headings_length=[int(length.headings) for length in lengths],
            w=_sparse(words.values()),
        )
        await _count(tx, words, lengths)
        tx.later("index.note_strays", chunk_id=list(words), first=min(words))


def _fields(rows: Sequence[Mapping[str, Any]]) -> list[lexical.Fields]:
    return [lexical.fields(row["text"], row["title"], row["heading_path"]) for row in rows]


async def _retire(tx: Transaction, chunk_ids: list[int]) -> None:
    if not chunk_ids:
        return
    await _uncount(tx, chunk_ids)
    await _unmask(tx, chunk_ids)
    tx.later("index.retire_words", chunk_id=chunk_ids, retired=True)
    tx.later("index.retire_vectors", chunk_id=chunk_ids, retired=True)


async def _revive(tx: Transaction, chunk_ids: list[int]) -> None:
    if not chunk_ids:
        return
    await _count(tx, *await _words(tx, chunk_ids))
    tx.later("index.set_bits", chunk_id=chunk_ids)
    tx.later("index.retire_words", chunk_id=chunk_ids, retired=False)
    tx.later("index.retire_vectors", chunk_id=chunk_ids, retired=False)


async def _delete(tx: Transaction, chunk_ids: list[int], *, live: list[int]) -> None:
    if not chunk_ids:
        return
    await _uncount(tx, live)
    await _unmask(tx, chunk_ids, gone=True)
    tx.later("index.delete_vectors", chunk_id=chunk_ids)
    tx.later("index.delete_words", chunk_id=chunk_ids)
    tx.later("index.delete_chunks", chunk_id=chunk_ids)


async def _unmask(tx: Transaction, chunk_ids: list[int], *, gone: bool = False) -> None:
    """Let search through blocks pass these chunks over from now on."""
    if chunk_ids:
        tx.later("index.clear_bits", chunk_id=chunk_ids)
        if gone:
            tx.later("index.count_gone", chunk_id=chunk_ids)


async def settle(tx: Transaction) -> None:
    """After a change: weigh every chunk anew when the averages have drifted by more than a tenth.

    That reads all of a tenant's text, but only a small or fast-growing tenant drifts. Blocks are then built anew one by
    one; until it is built, a block picks candidates by the older weights, which are scored by the new ones.
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
    tx.later("index.freeze_averages", text=true.text, title=true.title, headings=true.headings)
    tx.later("index.outdate_blocks")


async def _reweigh(tx: Transaction, rows: Sequence[Mapping[str, Any]], averages: lexical.Lengths) -> None:
    def weigh() -> dict[int, dict[int, float]]:
        return {
            row["chunk_id"]: lexical.vector(
                lexical.document_terms(row["text"], row["title"], row["heading_path"], averages)
            )
            for row in rows
        }

    words = await asyncio.to_thread(weigh)
    tx.later("index.reweigh", chunk_id=list(words), w=_sparse(words.values()))


async def _has_set(tx: Transaction, embedder_id: str, dimension: int | None = None) -> bool:
    """Whether the tenant has a set of this embedder. Raises EmbeddingSetMismatch where only others are in use."""
    sets = await tx.rows("index.sets")
    if any(one["embedder_id"] == embedder_id and dimension in (None, one["dimension"]) for one in sets):
        return True
    if any(one["used"] for one in sets):
        raise EmbeddingSetMismatch
    return False


async def _words(tx: Transaction, chunk_ids: list[int]) -> tuple[Words, list[lexical.Lengths]]:
    rows = await tx.rows("index.words", chunk_id=chunk_ids)
    # pgvector's Python type counts from 0, SQL from 1.
    words = {
        row["chunk_id"]: {number + 1: w for number, w in zip(row["w"].indices(), row["w"].values(), strict=True)}
        for row in rows
    }
    lengths = [lexical.Lengths(row["text_length"], row["title_length"], row["headings_length"]) for row in rows]
    return words, lengths


async def _count(tx: Transaction, words: Words, lengths: Sequence[lexical.Lengths]) -> None:
    term, df = _frequencies(words)
    tx.later("index.count_terms", term=term, df=df)
    await _count_chunks(tx, lengths, +1)


async def _uncount(tx: Transaction, chunk_ids: list[int]) -> None:
    for at in range(0, len(chunk_ids), BATCH):
        words, lengths = await _words(tx, chunk_ids[at : at + BATCH])
        term, df = _frequencies(words)
        tx.later("index.uncount_terms", term=term, df=df)
        tx.later("index.forget_terms", term=term)
        await _count_chunks(tx, lengths, -1)


async def _count_chunks(tx: Transaction, lengths: Sequence[lexical.Lengths], sign: int) -> None:
    tx.later(
        "index.count_chunks",
        n=sign * len(lengths),
        text=sign * int(sum(length.text for length in lengths)),
        title=sign * int(sum(length.title for length in lengths)),
        headings=sign * int(sum(length.headings for length in lengths)),
    )


def _numbers(rows: Iterable[Mapping[str, Any]]) -> list[int]:
    return [row["chunk_id"] for row in rows]


def _averages(state: Mapping[str, Any]) -> lexical.Lengths:
    return lexical.Lengths(state["text_average"], state["title_average"], state["headings_average"])


def _sparse(words: Iterable[Mapping[int, float]]) -> str:
    """Sparse vectors as PostgreSQL writes an array of them."""
    entries = (",".join([f"{number}:{weight!r}" for number, weight in terms.items()]) for terms in words)
    return _array(f'"{{{one}}}/{lexical.DIMENSION}"' for one in entries)


def _frequencies(words: Words) -> tuple[str, str]:
    """Term numbers, and in how many of these chunks each stands, as arrays."""
    counted = Counter(chain.from_iterable(words.values()))
    return _array(map(str, counted)), _array(map(str, counted.values()))


def _array(items: Iterable[str]) -> str:
    """As PostgreSQL writes an array: the driver would take longer for each item than the server for the work on it."""
    return f"{{{','.join(items)}}}"
