"""From the tail to blocks: what makes search by words quick in a large tenant.

For each block of chunks, a term that at least `OFTEN` of them hold has a sparse vector of its weights by place in the
block; of all others the chunks are listed, those of many terms in one row. Weights there are times the term's rarity as
it was; a search makes up for what changed since. Bits that say which chunks of a block are live follow each change at
once (`storage.indexing`); what went is still in lists and blocks, where it costs a little and is never found.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import DictRow

from storage import lexical, packed, queries
from storage.database import Database, Transaction, typed_row

# Chunks of a tenant from which on blocks are made: fewer are read one by one as fast.
FROM: Final = 20_000
# Chunks that the tail may have; each search reads it.
TAIL: Final = 2_000
# To look so many chunks up costs a search about as much as to add up one vector more.
OFTEN: Final = 8
# Share of a block's chunks that may be gone before it is built anew.
WORN: Final = 0.2

Ints = NDArray[np.int32]
Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Merged:
    """One block that was built: its number, and how many chunks are in it."""

    block: int
    chunks: int


@dataclass(frozen=True, slots=True)
class _Range:
    """Chunks first to last - 1, all of one block, in a tenant of `n` chunks."""

    block: int
    block_size: int
    first: int
    last: int
    n: int


@dataclass(frozen=True, slots=True)
class _Postings:
    """Parallel arrays: that term has that weight in that chunk."""

    terms: Ints
    chunks: Ints
    weights: NDArray[np.float32]

    def where(self, wanted: NDArray[np.bool_]) -> "_Postings":
        return _Postings(self.terms[wanted], self.chunks[wanted], self.weights[wanted])


async def merge(
    db: Database, tenant_id: UUID, *, start: int = FROM, tail: int = TAIL, often: int = OFTEN, worn: float = WORN
) -> Merged | None:
    """Build the block that is due, in one transaction that others who write words of the tenant wait for.

    Due is a block of which too many chunks went or that has strays, then the block that the tail begins in, once the
    tail has `tail` chunks. None: nothing is due. Call it until then.
    """
    async with db.transaction(tenant_id) as tx:
        part = _due(typed_row(await tx.row("merge.due", worn=worn)), start, tail)
        if part is None:
            return None
        chunks = await _build(tx, part, often)
        await tx.run("merge.advance", first=part.first, last=part.last)
    return Merged(part.block, chunks)


async def merge_all(db: Database, tenant_id: UUID) -> None:
    """Merge until nothing is due."""
    while await merge(db, tenant_id) is not None:
        pass


def _due(state: DictRow, start: int, tail: int) -> _Range | None:
    size, merged_to, n = state["block_size"], state["merged_to"], state["n"]
    if state["worn"] is not None:
        first = state["worn"] * size
        return _Range(state["worn"], size, first, min(first + size, merged_to), n)
    if state["next_chunk"] - merged_to < tail or (merged_to == 0 and n < start):
        return None
    block = merged_to // size
    return _Range(block, size, block * size, min((block + 1) * size, state["next_chunk"]), n)


async def _build(tx: Transaction, part: _Range, often: int) -> int:
    rows = await _run(tx, "merge.words", first=part.first, last=part.last)
    held, starts, counts = await asyncio.to_thread(_postings, rows)
    kept = counts >= often
    await tx.run("merge.clear", block=part.block)
    await _put_vectors(tx, part, held.where(np.repeat(kept, counts)), held.terms[starts[kept]], counts[kept])
    await _put_lists(tx, part, held.where(np.repeat(~kept, counts)))
    await _mask(tx, part, rows)
    await tx.run("merge.put_span", block=part.block, chunks=len(rows))
    return len(rows)


async def _run(tx: Transaction, name: str, **params: object) -> list[DictRow]:
    cursor = await packed.cursor(tx.connection).execute(queries.text(name), {"tenant": tx.tenant_id, **params})
    return await cursor.fetchall() if cursor.description else []


def _postings(rows: Sequence[DictRow]) -> tuple[_Postings, Places, Places]:
    """By term, then chunk; where each term starts, and how many chunks hold it."""
    sizes, terms, weights = packed.entries([row["w"] for row in rows])
    chunks = np.repeat(np.array([row["chunk_id"] for row in rows], dtype=np.int32), sizes)
    # Stable, and rows come by chunk.
    order = np.argsort(terms, kind="stable")
    # On the wire dimensions count from 0, in SQL from 1.
    held = _Postings(terms[order] + np.int32(1), chunks[order], weights[order])
    starts = np.flatnonzero(np.diff(held.terms, prepend=0))
    return held, starts, np.diff(starts, append=len(terms))


async def _put_vectors(tx: Transaction, part: _Range, held: _Postings, terms: Ints, counts: Places) -> None:
    """For each term (held by so many chunks) its weights times its rarity by place in the block."""
    rows = await _run(tx, "merge.frequencies", term=terms)
    factors = np.array([lexical.rarity(row["df"], part.n) for row in rows], dtype=np.float32)
    vectors = packed.vectors(
        part.block_size, counts, held.chunks - np.int32(part.first), held.weights * np.repeat(factors, counts)
    )
    await _run(tx, "merge.put_vectors", block=part.block, term=terms, factor=factors.tolist(), weights=vectors)


async def _put_lists(tx: Transaction, part: _Range, held: _Postings) -> None:
    """The chunks of all terms that leave the same remainder are parts of two long arrays."""
    remainders = held.terms % lexical.LISTS
    order = np.argsort(remainders, kind="stable")
    found, firsts, counts = np.unique(remainders[order], return_index=True, return_counts=True)
    await _run(
        tx,
        "merge.put_lists",
        block=part.block,
        remainder=found,
        first=firsts + 1,
        last=firsts + counts,
        terms=held.terms[order],
        chunks=held.chunks[order],
    )


async def _mask(tx: Transaction, part: _Range, rows: Sequence[DictRow]) -> None:
    masks: dict[UUID, bytearray] = {}
    for row in rows:
        mask = masks.setdefault(row["collection_id"], bytearray(b"0" * part.block_size))
        if not row["retired"]:
            mask[row["chunk_id"] - part.first] = ord("1")
    await tx.run("merge.clear_masks", block=part.block)
    await tx.run(
        "merge.put_masks",
        block=part.block,
        collection_id=list(masks),
        live=[mask.decode() for mask in masks.values()],
    )
