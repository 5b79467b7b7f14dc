"""From the tail to blocks: what makes search by words quick in a large tenant.

A term in more than `RARE` chunks is dense: for each block of chunks a sparse vector holds its weights, by place in the
block. Any other has a list of its chunks. Weights are without idf, so that nothing here ages with the counts. Bits that
say which chunks of a block are live follow each change at once (`storage.indexing`); what went is still in lists and
blocks, where it costs a little and is never found.
"""

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
TAIL: Final = 5_000
# A term in more chunks than this is dense.
RARE: Final = 2_000
# Share of a block's chunks that may be gone before it is built anew.
WORN: Final = 0.2

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Merged:
    """One block that was built: its number, and how many chunks are in it."""

    block: int
    chunks: int


@dataclass(frozen=True, slots=True)
class _Range:
    """Chunks first to last - 1, all of one block; `fresh` are from that number on, or strays."""

    block: int
    block_size: int
    first: int
    last: int
    fresh: int
    strays: frozenset[int]


@dataclass(frozen=True, slots=True)
class _Postings:
    """Parallel arrays: that term has that weight in that chunk."""

    terms: Ints
    chunks: Ints
    weights: NDArray[np.float32]

    def where(self, wanted: NDArray[np.bool_]) -> "_Postings":
        return _Postings(self.terms[wanted], self.chunks[wanted], self.weights[wanted])


async def merge(
    db: Database, tenant_id: UUID, *, start: int = FROM, tail: int = TAIL, rare: int = RARE, worn: float = WORN
) -> Merged | None:
    """Build the block that is due, in one transaction that others who write words of the tenant wait for.

    Due is a block of which too many chunks went or that has strays, then the block that the tail begins in, once the
    tail has `tail` chunks. None: nothing is due. Call it until then.
    """
    async with db.transaction(tenant_id) as tx:
        part = _due(typed_row(await tx.row("merge.due", worn=worn)), start, tail)
        if part is None:
            return None
        chunks = await _build(tx, part, rare)
        await tx.run("merge.advance", first=part.first, last=part.last)
    return Merged(part.block, chunks)


async def merge_all(db: Database, tenant_id: UUID) -> None:
    """Merge until nothing is due."""
    while await merge(db, tenant_id) is not None:
        pass


def _due(state: DictRow, start: int, tail: int) -> _Range | None:
    size, merged_to, strays = state["block_size"], state["merged_to"], frozenset(state["strays"])
    if state["worn"] is not None:
        first = state["worn"] * size
        return _Range(state["worn"], size, first, min(first + size, merged_to), merged_to, strays)
    if state["next_chunk"] - merged_to < tail or (merged_to == 0 and state["n"] < start):
        return None
    block = merged_to // size
    last = min((block + 1) * size, state["next_chunk"])
    return _Range(block, size, block * size, last, merged_to, strays)


async def _build(tx: Transaction, part: _Range, rare: int) -> int:
    rows = await _run(tx, "merge.words", first=part.first, last=part.last)
    held = _postings(rows)
    dense = _terms(await _run(tx, "merge.dense"))
    fresh = (held.chunks >= part.fresh) | np.isin(held.chunks, list(part.strays))
    passed = await _list(tx, held.where(fresh & ~np.isin(held.terms, dense)), rare)
    if len(passed):
        await _spread(tx, part, passed)
        dense = np.concatenate([dense, passed])
    await tx.run("merge.clear_block", block=part.block)
    await _put(tx, held.where(np.isin(held.terms, dense)), part.block_size)
    await _mask(tx, part, rows)
    await tx.run("merge.put_span", block=part.block, chunks=len(rows))
    return len(rows)


async def _run(tx: Transaction, name: str, **params: object) -> list[DictRow]:
    cursor = await packed.cursor(tx.connection).execute(queries.text(name), {"tenant": tx.tenant_id, **params})
    return await cursor.fetchall() if cursor.description else []


def _terms(rows: Sequence[DictRow]) -> Ints:
    return np.array([row["term"] for row in rows], dtype=np.int32)


def _postings(rows: Sequence[DictRow]) -> _Postings:
    counts, terms, weights = packed.entries([row["w"] for row in rows])
    chunks = np.repeat(np.array([row["chunk_id"] for row in rows], dtype=np.int32), counts)
    # On the wire dimensions count from 0, in SQL from 1.
    return _Postings(terms + np.int32(1), chunks, weights)


async def _list(tx: Transaction, fresh: _Postings, rare: int) -> Ints:
    """Add chunks to the lists of their terms; the terms whose lists are now too long."""
    order = np.lexsort((fresh.chunks, fresh.terms))
    terms, firsts, counts = np.unique(fresh.terms[order], return_index=True, return_counts=True)
    return _terms(
        await _run(
            tx,
            "merge.extend",
            term=terms,
            first=firsts + 1,
            last=firsts + counts,
            chunk_id=fresh.chunks[order],
            rare=rare,
        )
    )


async def _spread(tx: Transaction, part: _Range, terms: Ints) -> None:
    """Make these terms dense: their lists become rows of the blocks that were built before."""
    units = packed.vectors(lexical.DIMENSION, np.ones(len(terms), np.int64), terms - 1, np.ones(len(terms), np.float32))
    span = {"first": part.first, "last": part.last}
    rows = await _run(tx, "merge.weights", term=terms, unit=units, **span)
    if rows:
        chunks = np.array([row["chunk_id"] for row in rows], dtype=np.int32)
        weights = np.array([row["weight"] for row in rows], dtype=np.float32)
        await _put(tx, _Postings(_terms(rows), chunks, weights), part.block_size)
    await _run(tx, "merge.make_dense", term=terms)


async def _put(tx: Transaction, held: _Postings, block_size: int) -> None:
    """Write rows of blocks: for each block and term its weights by place in the block."""
    order = np.lexsort((held.chunks, held.terms, held.chunks // block_size))
    terms, chunks = held.terms[order], held.chunks[order]
    blocks = chunks // block_size
    starts = np.flatnonzero((np.diff(terms, prepend=-1) != 0) | (np.diff(blocks, prepend=-1) != 0))
    counts = np.diff(starts, append=len(terms))
    made = packed.vectors(block_size, counts, chunks % block_size, held.weights[order])
    await _run(tx, "merge.put_block", block=blocks[starts], term=terms[starts], weights=made)


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
