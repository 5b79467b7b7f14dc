"""Documents: registered by path and bytes, made searchable in one transaction, read through one access check."""

import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import DictRow

from core.errors import Forbidden, NotFound
from core.records import Box, Chunk, Document, DocumentState, ParsedDocument, Passage, Principal, Receipt
from core.text import language_of
from storage import indexing
from storage.collections import grantees
from storage.database import Database, Transaction, typed_row
from storage.locks import key_of

logger = logging.getLogger(__name__)

# Up to here an exact scan of a tenant's vectors is quick and misses nothing; above, an HNSW index is made.
EXACT_BELOW: Final = 20_000
# Chunks shown before and after a cited one.
PASSAGE_REACH: Final = 2

Registered = Literal["new", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk of a document and the number it is cited by."""

    chunk_id: int
    chunk: Chunk


async def register(
    db: Database,
    tenant_id: UUID,
    collection_id: UUID,
    *,
    path: str,
    sha256: str,
    media_type: str,
    size: int,
    title: str,
) -> tuple[Document, Registered]:
    """Note that these bytes stand at this path. Nothing of them is searchable before `replace_chunks`.

    `unchanged`: the collection has these bytes ready, at this path or another. `new`: nothing of the document is
    searchable yet. `changed`: what an older state of it gave stays searchable until it is replaced. The last two ask
    for processing; so do bytes that failed or were left half-way before.
    """
    found = {"path": path, "sha256": sha256, "media_type": media_type, "size": size, "title": title}
    async with db.transaction(tenant_id) as tx:
        # Two processes that register the same bytes or path wait for each other here.
        await tx.run("session.ingest_lock", key=key_of(tenant_id, "register", collection_id))
        same_bytes = await tx.row("documents.by_bytes", collection=collection_id, sha256=sha256)
        same_path = await tx.row("documents.by_path", collection=collection_id, path=path)
        if same_bytes is not None:
            document_id = same_bytes["id"]
            await tx.run("documents.queue_again", id=document_id)
            if same_path is not None and same_path["id"] != document_id:
                # The path now holds a copy of another document: what it held before is nowhere any more.
                await _remove(tx, same_path["id"])
        elif same_path is not None:
            document_id = same_path["id"]
            await tx.run("documents.new_bytes", id=document_id, **found)
        else:
            document_id = typed_row(await tx.row("documents.insert", collection=collection_id, **found))["id"]
        document = await _one(tx, document_id)
    if document.state is DocumentState.READY:
        return document, "unchanged"
    return document, "changed" if document.chunks else "new"


async def replace_chunks(
    db: Database,
    tenant_id: UUID,
    document_id: UUID,
    parsed: ParsedDocument,
    chunks: Sequence[Chunk],
    vectors: NDArray[np.float32],
    *,
    embedder_id: str,
    sha256: str,
) -> Document:
    """Make a document searchable, in one transaction: chunks, vectors (n, dimension), words and counts, state ready.

    `sha256` names the bytes that were parsed. When newer ones were registered meanwhile nothing is written and the
    document comes back still queued. Errors: NotFound (deleted meanwhile), EmbeddingSetMismatch, StorageError.
    """
    async with db.transaction(tenant_id) as tx:
        document = await _locked(tx, document_id)
        if document.sha256 != sha256:
            return document
        await indexing.remove(tx, document_id)
        title = parsed.title or document.title
        await tx.run(
            "documents.ready",
            id=document_id,
            sha256=sha256,
            title=title,
            pages=parsed.pages,
            chunks=len(chunks),
            language=language_of(" ".join(chunk.text for chunk in chunks[:20])),
            effective_from=parsed.effective_from,
            effective_to=parsed.effective_to,
            supersedes=parsed.supersedes,
        )
        await indexing.add(tx, document_id, title, chunks, vectors, embedder_id)
        await indexing.settle(tx)
        document = await _one(tx, document_id)
    await ensure_index(db, tenant_id)
    return document


async def ensure_index(db: Database, tenant_id: UUID, *, threshold: int = EXACT_BELOW) -> bool:
    """Build the HNSW index of the active vectors once the tenant has outgrown exact scans; whether it was built now."""
    async with db.transaction(tenant_id) as tx:
        grown = await tx.row("index.grown", threshold=threshold)
        if grown is None:
            return False
        await tx.row("index.index_set", embedder=grown["embedder_id"])
        return True


async def fail(db: Database, tenant_id: UUID, document_id: UUID, code: str, reason: str) -> None:
    """Mark a document as failed, with a machine code and a reason for people. Older chunks stay searchable."""
    async with db.transaction(tenant_id) as tx:
        await tx.run("documents.fail", id=document_id, code=code, reason=reason)


async def listing(db: Database, principal: Principal, collection: str | None = None) -> list[Document]:
    """The documents that the principal may see, by collection and path."""
    async with db.transaction(principal.tenant_id) as tx:
        return await _readable(tx, principal, collection=collection)


async def visible(db: Database, principal: Principal, document_ids: Collection[UUID]) -> frozenset[UUID]:
    """Those of these documents that are still there and that the principal may see."""
    async with db.transaction(principal.tenant_id) as tx:
        return frozenset(document.id for document in await _readable(tx, principal, document_ids=document_ids))


async def get(db: Database, principal: Principal, document_id: UUID) -> Document:
    """One document that the principal may see. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        return await _readable_one(tx, principal, document_id)


async def chunks(db: Database, principal: Principal, document_id: UUID) -> list[StoredChunk]:
    """The chunks of a document in reading order. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        await _readable_one(tx, principal, document_id)
        rows = await tx.rows("documents.chunks", document=document_id)
    return [StoredChunk(row["chunk_id"], _chunk(row)) for row in rows]


async def passage(db: Database, principal: Principal, document_id: UUID, chunk_id: int) -> Passage:
    """A cited chunk with what stands around it. Raises NotFound, also when the document was replaced since."""
    async with db.transaction(principal.tenant_id) as tx:
        document = await _readable_one(tx, principal, document_id)
        rows = await tx.rows("documents.around", document=document_id, chunk=chunk_id, reach=PASSAGE_REACH)
    at = next((i for i, row in enumerate(rows) if row["chunk_id"] == chunk_id), None)
    if at is None:
        raise NotFound("This passage is no longer there: the document was replaced since.")
    return Passage(
        document=document,
        chunk_id=chunk_id,
        heading_path=tuple(rows[at]["heading_path"]),
        page=rows[at]["page"],
        boxes=_boxes(rows[at]),
        before="\n".join(row["text"] for row in rows[:at]),
        text=rows[at]["text"],
        after="\n".join(row["text"] for row in rows[at + 1 :]),
    )


async def pending(db: Database, tenant_id: UUID) -> list[Document]:
    """Documents that wait to be processed or were left half-way, oldest first."""
    async with db.transaction(tenant_id) as tx:
        return [_document(row) for row in await tx.rows("documents.pending")]


@asynccontextmanager
async def processing(db: Database, tenant_id: UUID, document_id: UUID) -> AsyncIterator[bool]:
    """Hold the right to process a document; yields False when another process has it."""
    async with db.locks.hold(key_of(tenant_id, "document", document_id)) as free:
        if free:
            async with db.transaction(tenant_id) as tx:
                await tx.run("documents.processing", id=document_id)
        yield free


async def delete(db: Database, principal: Principal, document_id: UUID) -> Receipt:
    """Remove a document and all that was made of it; the receipt counts the rows. Errors: Forbidden, NotFound."""
    if not principal.is_admin:
        raise Forbidden
    async with db.transaction(principal.tenant_id) as tx:
        document = await _locked(tx, document_id)
        counts = await _remove(tx, document_id)
        await indexing.settle(tx)
    logger.info("document deleted", extra={"document": str(document_id), **counts})
    return Receipt(document.path, counts)


async def _remove(tx: Transaction, document_id: UUID) -> dict[str, int]:
    counts = await indexing.remove(tx, document_id)
    return {"documents": await tx.run("documents.delete", id=document_id), **counts}


async def _locked(tx: Transaction, document_id: UUID) -> Document:
    # Every writer locks the document before the tenant's statistics, so that no two wait for each other.
    await tx.row("documents.lock", id=document_id)
    return await _one(tx, document_id)


async def _one(tx: Transaction, document_id: UUID) -> Document:
    row = await tx.row("documents.one", id=document_id)
    if row is None:
        raise NotFound
    return _document(row)


async def _readable(
    tx: Transaction,
    principal: Principal,
    *,
    document_ids: Collection[UUID] | None = None,
    collection: str | None = None,
) -> list[Document]:
    rows = await tx.rows(
        "documents.readable",
        admin=principal.is_admin,
        grantees=grantees(principal),
        ids=None if document_ids is None else list(document_ids),
        collection=collection,
    )
    return [_document(row) for row in rows]


async def _readable_one(tx: Transaction, principal: Principal, document_id: UUID) -> Document:
    found = await _readable(tx, principal, document_ids=[document_id])
    if not found:
        raise NotFound
    return found[0]


def _document(row: DictRow) -> Document:
    return Document(
        id=row["id"],
        collection_id=row["collection_id"],
        collection=row["collection"],
        path=row["path"],
        title=row["title"],
        media_type=row["media_type"],
        sha256=row["sha256"],
        size=row["size"],
        state=DocumentState(row["state"]),
        reason_code=row["reason_code"],
        reason=row["reason"],
        pages=row["pages"],
        chunks=row["chunks"],
        language=row["language"],
        effective_from=row["effective_from"],
        effective_to=row["effective_to"],
        supersedes=row["supersedes"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


def _chunk(row: DictRow) -> Chunk:
    return Chunk(
        ordinal=row["ordinal"],
        text=row["text"],
        heading_path=tuple(row["heading_path"]),
        section=row["section"],
        start=row["start_at"],
        end=row["end_at"],
        kind=row["kind"],
        page=row["page"],
        boxes=_boxes(row),
    )


def _boxes(row: DictRow) -> tuple[Box, ...]:
    return tuple(Box(**box) for box in row["boxes"])
