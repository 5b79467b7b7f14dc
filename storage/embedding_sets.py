"""A tenant's sets of vectors, one by each model: the active one is searched, another may be filled and take its place.

There are at most two. The other one is a candidate until it is swapped in; then the one that it replaced is kept, to go
back to. Whoever fills or changes sets does so inside `changing`.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector
from psycopg.rows import DictRow

from core.errors import AlreadyExists, EmbeddingSetMismatch, InvalidRequest, NotFound, StorageError
from core.records import Receipt
from core.text import embedded_text
from storage import audit
from storage.database import Database, Transaction, typed_row
from storage.documents import EXACT_BELOW
from storage.locks import key_of
from storage.users import OPERATOR

# What an index takes.
WIDEST: Final = 4000

Role = Literal["active", "candidate", "previous"]


@dataclass(frozen=True, slots=True)
class EmbeddingSet:
    """All vectors of a tenant by one embedder. `missing`: chunks that have no vector in it.

    `filled`: none was missing at some time, so that it can be searched. `indexed`: it has an HNSW index.
    """

    embedder_id: str
    dimension: int
    role: Role
    filled: bool
    indexed: bool
    replaced_at: datetime | None
    vectors: int
    missing: int


@dataclass(frozen=True, slots=True)
class Lacking:
    """A chunk that has no vector in a set, and the text to make it from."""

    chunk_id: int
    document_id: UUID
    text: str


async def active(db: Database, tenant_id: UUID) -> str | None:
    """The embedder whose vectors are searched; None while the tenant has no vector."""
    async with db.transaction(tenant_id) as tx:
        row = await tx.row("embedding_sets.active")
    return row["embedder_id"] if row else None


async def listing(db: Database, tenant_id: UUID) -> list[EmbeddingSet]:
    """The sets, the active one first; they are counted, which takes seconds where there are a million chunks."""
    async with db.transaction(tenant_id) as tx:
        return [_set_of(row) for row in await tx.rows("embedding_sets.all")]


@asynccontextmanager
async def changing(db: Database, tenant_id: UUID) -> AsyncIterator[None]:
    """Be the only one who changes sets. Raises StorageError where another process does."""
    async with db.locks.hold(_key(tenant_id)) as free:
        if not free:
            raise StorageError("Another `intramuros reembed` is at work on this tenant. Wait for it, or end it.")
        yield


async def being_changed(db: Database, tenant_id: UUID) -> bool:
    """Whether a process is inside `changing`."""
    async with db.locks.hold(_key(tenant_id)) as free:
        return not free


# --- filled -----------------------------------------------------------------------------------------------------------


async def begin(db: Database, tenant_id: UUID, embedder_id: str, dimension: int) -> None:
    """Make the candidate of this embedder, or go on with it.

    Errors: NotFound (the tenant has no vectors), InvalidRequest (its vectors are of this embedder), AlreadyExists
    (there is another set, which must be dropped first), EmbeddingSetMismatch (of another dimension).
    """
    if not 1 <= dimension <= WIDEST:
        raise InvalidRequest(f"Vectors of {dimension} numbers cannot be searched: {WIDEST} are the most.")
    async with db.transaction(tenant_id) as tx:
        if await tx.row("embedding_sets.active") is None:
            raise NotFound("There are no vectors yet. Set the embedding model and ingest documents.")
        held = {row["active"]: row for row in await tx.rows("embedding_sets.hold")}
        if held[True]["embedder_id"] == embedder_id:
            raise InvalidRequest(f"The vectors are of {embedder_id} already. Name another model.")
        if False not in held:
            await tx.row("index.add_set", embedder=embedder_id, dimension=dimension)
            await audit.note(tx, OPERATOR, "vectors.begun", audit.spelled(embedder_id))
        elif held[False]["embedder_id"] != embedder_id:
            other = held[False]["embedder_id"]
            raise AlreadyExists(f"There is a set of {other} beside the active one. Drop it first.")
        elif held[False]["dimension"] != dimension:
            raise EmbeddingSetMismatch


async def lacking(db: Database, tenant_id: UUID, embedder_id: str, *, after: int, limit: int) -> list[Lacking]:
    """Chunks without a vector of this embedder, by number, from the first above `after`; [] when none is missing."""
    async with db.transaction(tenant_id) as tx:
        rows = await tx.rows("embedding_sets.lacking", embedder=embedder_id, after=after, limit=limit)
    return [
        Lacking(row["chunk_id"], row["document_id"], embedded_text(row["title"], row["heading_path"], row["text"]))
        for row in rows
    ]


async def take_over(db: Database, tenant_id: UUID, embedder_id: str, chunks: Sequence[Lacking]) -> list[Lacking]:
    """Copy vectors that the set has of the very same chunks; those of `chunks` for which it has none.

    Raises EmbeddingSetMismatch.
    """
    async with db.transaction(tenant_id) as tx:
        await _lock(tx, embedder_id, chunks)
        ids = [one.chunk_id for one in chunks]
        rows = await tx.rows("embedding_sets.take_over", embedder=embedder_id, chunk_id=ids)
    copied = {row["chunk_id"] for row in rows}
    return [one for one in chunks if one.chunk_id not in copied]


async def add(
    db: Database, tenant_id: UUID, embedder_id: str, chunks: Sequence[Lacking], vectors: NDArray[np.float32]
) -> int:
    """Keep unit vectors, of shape (len(chunks), dimension); how many were new. Chunks that went are passed over.

    Raises EmbeddingSetMismatch where the tenant has no such set.
    """
    async with db.transaction(tenant_id) as tx:
        if await _lock(tx, embedder_id, chunks) != vectors.shape[1]:
            raise EmbeddingSetMismatch
        return await tx.run(
            "embedding_sets.insert",
            embedder=embedder_id,
            chunk_id=[one.chunk_id for one in chunks],
            v=[HalfVector(vector) for vector in vectors],
        )


async def complete(db: Database, tenant_id: UUID, embedder_id: str, *, threshold: int = EXACT_BELOW) -> bool:
    """Let a set be searched, unless vectors are missing; whether it may be.

    From `threshold` chunks on its index is built first.
    """
    async with db.transaction(tenant_id) as tx:
        if typed_row(await tx.row("embedding_sets.large", threshold=threshold))["large"]:
            await tx.row("index.index_set", embedder=embedder_id)
    async with db.transaction(tenant_id) as tx:
        return await tx.run("embedding_sets.fill", embedder=embedder_id) > 0


# --- swapped, dropped -------------------------------------------------------------------------------------------------


async def swap(db: Database, tenant_id: UUID, *, back: bool = False) -> bool:
    """Let the candidate be searched from now on, and keep the set that was; False, and nothing done, where it lacks
    vectors. `back` undoes it: the set that was replaced is active again, the one that replaced it a candidate.

    A document that is being embedded meanwhile goes on in the set that is then active.
    """
    async with db.transaction(tenant_id) as tx:
        await tx.rows("embedding_sets.hold")
        if not await tx.run("embedding_sets.swap", back=back):
            return False
        now = typed_row(await tx.row("embedding_sets.active"))["embedder_id"]
        await audit.note(tx, OPERATOR, "vectors.swapped_back" if back else "vectors.swapped", audit.spelled(now))
        return True


async def drop(db: Database, tenant_id: UUID, embedder_id: str) -> Receipt:
    """Remove a set that is not active, with its vectors. Raises NotFound."""
    async with db.transaction(tenant_id) as tx:
        vectors = typed_row(await tx.row("embedding_sets.drop", embedder=embedder_id))["vectors"]
        if vectors is None:
            raise NotFound(f"There is no set of {embedder_id} beside the active one.")
        await audit.note(tx, OPERATOR, "vectors.dropped", audit.spelled(embedder_id))
    return Receipt(f"the set of {embedder_id}", {"vectors": vectors})


async def _lock(tx: Transaction, embedder_id: str, chunks: Sequence[Lacking]) -> int:
    """Lock the documents of these chunks, as whoever writes vectors does; the dimension of the set."""
    await tx.rows("documents.lock", ids=list({one.document_id for one in chunks}))
    dimension = await tx.row("embedding_sets.dimension", embedder=embedder_id)
    if dimension is None:
        raise EmbeddingSetMismatch
    return int(dimension["dimension"])


def _set_of(row: DictRow) -> EmbeddingSet:
    role: Role = "active" if row["active"] else "candidate" if row["replaced_at"] is None else "previous"
    return EmbeddingSet(
        row["embedder_id"],
        row["dimension"],
        role,
        row["filled"] or row["active"],
        row["indexed"],
        row["replaced_at"],
        row["vectors"],
        row["missing"],
    )


def _key(tenant_id: UUID) -> int:
    return key_of(tenant_id, "embedding sets")
