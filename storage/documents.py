"""Documents: registered by path and bytes, stored as revisions, found by words and then by meaning.

Whatever changes a document locks it first, the tenant's statistics after: no two writers wait for each other.
"""

import logging
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import date
from typing import Final, Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from psycopg.rows import DictRow

from core.errors import Forbidden, InvalidRequest, NotFound
from core.records import (
    Chunk,
    Document,
    DocumentState,
    ParsedDocument,
    Passage,
    Principal,
    Progress,
    Receipt,
    Revision,
)
from core.text import embedded_text
from storage import audit, indexing, revising
from storage.collections import grantees
from storage.database import Database, Transaction, typed_row
from storage.locks import key_of
from storage.rows import (
    StoredChunk,
    being_embedded,
    boxes_of,
    document_of,
    revision_of,
    stored_chunk_of,
)

logger = logging.getLogger(__name__)

# Up to here an exact scan of a tenant's vectors is quick and misses nothing; above, an HNSW index is made.
EXACT_BELOW: Final = 20_000
# Chunks shown before and after a cited one.
PASSAGE_REACH: Final = 2
# Revisions of a document that stay searchable by date.
KEEP: Final = 20

Registered = Literal["new", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class Unembedded:
    """A chunk that has no vector yet, and the text to make it from."""

    chunk_id: int
    text: str


# --- in: registered, read, embedded ---------------------------------------------------------------------------------


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
    source: str | None = None,
    parent_id: UUID | None = None,
) -> tuple[Document, Registered]:
    """Note that these bytes stand at this path. Nothing of them is searchable before `store_revision`.

    `unchanged`: the collection has these bytes ready, at this path or another. `new`: nothing of the document was read
    yet. `changed`: its older revision stays searchable. The last two ask for processing; so do bytes that failed or
    were left half-way before. A file that came inside another (`parent_id`) is known by its path alone.
    """
    found = {"path": path, "sha256": sha256, "media_type": media_type, "size": size, "title": title}
    owner = {"source": source, "parent": parent_id}
    async with db.transaction(tenant_id) as tx:
        # Two processes that register the same bytes or path wait for each other here.
        await tx.run("session.ingest_lock", key=key_of(tenant_id, "register", collection_id))
        same_path = await tx.row("documents.by_path", collection=collection_id, path=path)
        same_bytes = None
        if parent_id is None:
            same_bytes = await tx.row("documents.by_bytes", collection=collection_id, sha256=sha256)
        if same_bytes is not None and (same_path is None or same_path["id"] != same_bytes["id"]):
            document_id = same_bytes["id"]
            await tx.run("documents.requeue", id=document_id)
            if same_path is not None:
                # The path now holds a copy of another document: what it held before is nowhere any more.
                await _remove(tx, await _family(tx, same_path["id"]))
        elif same_path is not None:
            document_id = same_path["id"]
            await tx.run("documents.adopt", id=document_id, **owner)
            document = await _one(tx, document_id)
            await tx.run("documents.requeue", id=document_id)
            if document.sha256 != sha256:
                await tx.run("documents.new_bytes", id=document_id, **found)
        else:
            row = await tx.row("documents.insert", collection=collection_id, **found, **owner)
            document_id = typed_row(row)["id"]
        document = await _one(tx, document_id)
    if document.state is DocumentState.READY:
        return document, "unchanged"
    return document, "changed" if document.revision else "new"


async def move(db: Database, tenant_id: UUID, document_id: UUID, path: str) -> Document:
    """The document's file now stands at `path`; files that came inside it follow.

    Errors: NotFound, AlreadyExists (another document stands there).
    """
    async with db.transaction(tenant_id) as tx:
        document = await _locked(tx, document_id)
        await tx.run("documents.move", id=document_id, path=path, old=document.path)
        return await _one(tx, document_id)


async def store_revision(
    db: Database,
    tenant_id: UUID,
    document_id: UUID,
    parsed: ParsedDocument,
    chunks: Sequence[Chunk],
    *,
    sha256: str,
    keep: int = KEEP,
) -> Document:
    """Make what was read of these bytes the document's newest revision, in one transaction, findable by its words.

    Chunks that an earlier revision holds too keep their numbers, vectors and words; the others wait for
    `missing_vectors`. Suspicious chunks are stored, and kept from search. When newer bytes were registered meanwhile
    nothing is written. The document comes back as it then is. Errors: NotFound (deleted meanwhile), StorageError.
    """
    async with db.transaction(tenant_id) as tx:
        document = await _locked(tx, document_id)
        if document.sha256 != sha256:
            return document
        await revising.write(tx, document, parsed, chunks, keep=keep)
        return await _one(tx, document_id)


async def missing_vectors(
    db: Database, tenant_id: UUID, document_id: UUID, *, embedder_id: str, limit: int
) -> list[Unembedded]:
    """The next chunks of the newest revision to embed, in reading order; [] when no vector is missing.

    Vectors that the tenant has of the very same chunks are taken over here and never asked for. Errors: NotFound,
    EmbeddingSetMismatch.
    """
    async with db.transaction(tenant_id) as tx:
        await _lock(tx, document_id)
        rows = await indexing.missing(tx, document_id, embedder_id, limit)
    return [Unembedded(row["chunk_id"], embedded_text(row["title"], row["heading_path"], row["text"])) for row in rows]


async def add_vectors(
    db: Database,
    tenant_id: UUID,
    document_id: UUID,
    chunk_ids: Sequence[int],
    vectors: NDArray[np.float32],
    *,
    embedder_id: str,
) -> Progress:
    """Keep unit vectors, of shape (len(chunk_ids), dimension), and say how far the document has come.

    Chunks that went meanwhile are passed over. Errors: NotFound, EmbeddingSetMismatch, StorageError.
    """
    async with db.transaction(tenant_id) as tx:
        await _lock(tx, document_id)
        await indexing.add_vectors(tx, document_id, chunk_ids, vectors, embedder_id)
        document = await _one(tx, document_id)
    return document.progress or Progress("embedding", document.chunks, document.chunks)


async def finish(db: Database, tenant_id: UUID, document_id: UUID, *, embedder_id: str, sha256: str) -> Document:
    """Call a document ready when these bytes are read and no vector is missing; what it is afterwards.

    Errors: NotFound, EmbeddingSetMismatch (also where another set was made the active one meanwhile).
    """
    async with db.transaction(tenant_id) as tx:
        await _lock(tx, document_id)
        await indexing.keep_active(tx, embedder_id)
        if not await indexing.missing(tx, document_id, embedder_id, 1):
            await tx.run("documents.ready", id=document_id, sha256=sha256)
        document = await _one(tx, document_id)
        grown = await indexing.outgrown(tx, EXACT_BELOW)
    if grown is not None:
        await ensure_index(db, tenant_id)
    return document


async def ensure_index(db: Database, tenant_id: UUID, *, threshold: int = EXACT_BELOW) -> bool:
    """Build the HNSW index of the active vectors once the tenant has outgrown exact scans; whether it was built now."""
    async with db.transaction(tenant_id) as tx:
        grown = await indexing.outgrown(tx, threshold)
        if grown is None:
            return False
        await tx.row("index.index_set", embedder=grown)
        return True


# --- the queue ------------------------------------------------------------------------------------------------------


async def pending(db: Database, tenant_id: UUID) -> list[Document]:
    """Documents that wait to be processed or were left half-way, oldest first; not those to be tried again later."""
    async with db.transaction(tenant_id) as tx:
        return await _shown(tx, await tx.rows("documents.pending"))


@asynccontextmanager
async def processing(db: Database, tenant_id: UUID, document_id: UUID) -> AsyncIterator[Document | None]:
    """Hold the right to process a document, which counts as an attempt; yields None when another process has it.

    Raises NotFound.
    """
    async with db.locks.hold(key_of(tenant_id, "document", document_id)) as free:
        if not free:
            yield None
            return
        async with db.transaction(tenant_id) as tx:
            await tx.run("documents.processing", id=document_id)
            document = await _one(tx, document_id)
        yield document


async def fail(
    db: Database, tenant_id: UUID, document_id: UUID, code: str, reason: str, *, sha256: str | None = None
) -> None:
    """Mark a document as failed, with a machine code and a reason for people. Older revisions stay searchable.

    With `sha256` only while those bytes are the ones registered.
    """
    async with db.transaction(tenant_id) as tx:
        await tx.run("documents.fail", id=document_id, code=code, reason=reason, sha256=sha256)


async def retry_later(
    db: Database, tenant_id: UUID, document_id: UUID, code: str, reason: str, *, delay_seconds: float
) -> None:
    """Queue a document again after a fault that may pass: `pending` lists it once the delay is over."""
    async with db.transaction(tenant_id) as tx:
        await tx.run("documents.retry_later", id=document_id, code=code, reason=reason, delay=delay_seconds)


async def requeue(db: Database, tenant_id: UUID, document_id: UUID) -> Document:
    """Try a document again now that failed or waits for its next attempt; any other stays as it is. Raises NotFound."""
    async with db.transaction(tenant_id) as tx:
        await tx.run("documents.requeue", id=document_id)
        return await _one(tx, document_id)


async def children(db: Database, tenant_id: UUID, document_id: UUID) -> list[Document]:
    """The documents that came inside this one, by path."""
    async with db.transaction(tenant_id) as tx:
        return await _shown(tx, await tx.rows("documents.children", id=document_id))


# --- reading --------------------------------------------------------------------------------------------------------


async def listing(db: Database, principal: Principal, collection: str | None = None) -> list[Document]:
    """The documents that the principal may see, by collection and path."""
    async with db.transaction(principal.tenant_id) as tx:
        return await _readable(tx, principal, collection=collection)


async def visible(db: Database, principal: Principal, document_ids: Collection[UUID]) -> frozenset[UUID]:
    """Those of these documents that are still there and that the principal may see."""
    async with db.transaction(principal.tenant_id) as tx:
        return frozenset(document.id for document in await _readable(tx, principal, document_ids=document_ids))


async def digests(db: Database, tenant_id: UUID) -> frozenset[str]:
    """The digests of all files that documents of the tenant stand for."""
    async with db.transaction(tenant_id) as tx:
        return frozenset(row["sha256"] for row in await tx.rows("documents.digests"))


async def several(db: Database, principal: Principal, document_ids: Collection[UUID]) -> list[Document]:
    """Those of these documents that are still there and that the principal may see, by collection and path."""
    async with db.transaction(principal.tenant_id) as tx:
        return await _readable(tx, principal, document_ids=document_ids)


async def get(db: Database, principal: Principal, document_id: UUID) -> Document:
    """One document that the principal may see. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        return await _readable_one(tx, principal, document_id)


async def revisions(db: Database, principal: Principal, document_id: UUID) -> list[Revision]:
    """The kept revisions of a document, oldest first. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        await _readable_one(tx, principal, document_id)
        return [revision_of(row) for row in await tx.rows("revisions.all", document=document_id)]


async def chunks(db: Database, principal: Principal, document_id: UUID) -> list[StoredChunk]:
    """The chunks of the newest revision in reading order; quarantined ones are shown to admins. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        document = await _readable_one(tx, principal, document_id)
        return await _chunks(tx, principal, document_id, document.revision)


async def revision_chunks(db: Database, principal: Principal, document_id: UUID, number: int) -> list[StoredChunk]:
    """As `chunks`, of one revision. Raises NotFound, also for a revision that is not kept."""
    async with db.transaction(principal.tenant_id) as tx:
        await _readable_one(tx, principal, document_id)
        if all(row["number"] != number for row in await tx.rows("revisions.all", document=document_id)):
            raise NotFound(f"There is no revision {number}.")
        return await _chunks(tx, principal, document_id, number)


async def passage(db: Database, principal: Principal, document_id: UUID, chunk_id: int) -> Passage:
    """A cited chunk with what stands around it in the last revision that holds it, quarantined chunks left out.

    Raises NotFound, also when no kept revision holds it.
    """
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
        boxes=boxes_of(rows[at]),
        before="\n".join(row["text"] for row in rows[:at]),
        text=rows[at]["text"],
        after="\n".join(row["text"] for row in rows[at + 1 :]),
    )


# --- what admins do -------------------------------------------------------------------------------------------------


async def set_dates(
    db: Database,
    principal: Principal,
    document_id: UUID,
    *,
    effective_from: date | None,
    effective_to: date | None,
    supersedes: str | None,
) -> Document:
    """Date the newest revision, over what its file says; all None undates it.

    The dates last until a later file says its own. Errors: Forbidden, NotFound, InvalidRequest (not read yet, or the
    last day comes before the first).
    """
    _admin(principal)
    if effective_from is not None and effective_to is not None and effective_to < effective_from:
        raise InvalidRequest("The last day in force comes before the first.")
    dates = (effective_from, effective_to, supersedes)
    async with db.transaction(principal.tenant_id) as tx:
        document = await _locked(tx, document_id)
        if not document.revision:
            raise InvalidRequest("The document has not been read yet. Date it when it is.")
        await revising.date_it(tx, document_id, document.revision, *dates, dates_set=True)
        await tx.run("revisions.settle", document=document_id)
        await audit.note(tx, principal.user_id, "document.dated", document_id)
        return await _one(tx, document_id)


async def quarantined(
    db: Database, principal: Principal, collection: str | None = None
) -> list[tuple[Document, StoredChunk]]:
    """Chunks of newest revisions that wait for an admin, by document in reading order. Raises Forbidden."""
    _admin(principal)
    async with db.transaction(principal.tenant_id) as tx:
        found = [document for document in await _readable(tx, principal, collection=collection) if document.quarantined]
        rows = await tx.rows("documents.quarantined", ids=[document.id for document in found])
    return [(document, stored_chunk_of(row)) for document in found for row in rows if row["document_id"] == document.id]


async def release(
    db: Database, principal: Principal, document_id: UUID, chunk_ids: Sequence[int] | None = None
) -> Document:
    """Let quarantined chunks (None: all) of the newest revision into search: by words at once, by meaning in turn.

    The document is queued for their vectors. Errors: Forbidden, NotFound.
    """
    _admin(principal)
    async with db.transaction(principal.tenant_id) as tx:
        await _locked(tx, document_id)
        wanted = None if chunk_ids is None else list(chunk_ids)
        if await tx.run("documents.release", id=document_id, chunk_ids=wanted):
            await revising.follow(tx, document_id)
            await tx.run("documents.embed_again", id=document_id)
            await audit.note(tx, principal.user_id, "quarantine.released", document_id)
        return await _one(tx, document_id)


async def deletion(db: Database, principal: Principal, document_id: UUID) -> Receipt:
    """What `delete` would remove. Errors: Forbidden, NotFound."""
    _admin(principal)
    async with db.transaction(principal.tenant_id) as tx:
        document = await _one(tx, document_id)
        return Receipt(document.path, await _counted(tx, await _family(tx, document_id)))


async def delete(db: Database, principal: Principal, document_id: UUID) -> Receipt:
    """Remove a document, the files that came inside it and all that was made of them; the receipt counts the rows.

    `quoting` counts stored answers that cite one of them: they stay as they are. Errors: Forbidden, NotFound.
    """
    _admin(principal)
    async with db.transaction(principal.tenant_id) as tx:
        document = await _locked(tx, document_id)
        family = await _family(tx, document_id)
        counts = await _counted(tx, family)
        await _remove(tx, family)
        await audit.note(tx, principal.user_id, "document.deleted", document_id)
    logger.info("document deleted", extra={"document": str(document_id), **counts})
    return Receipt(document.path, counts)


def _admin(principal: Principal) -> None:
    if not principal.is_admin:
        raise Forbidden


# --- rows -----------------------------------------------------------------------------------------------------------


async def _family(tx: Transaction, document_id: UUID) -> list[UUID]:
    """A document and all that came inside it, at any depth."""
    return [row["id"] for row in await tx.rows("documents.family", id=document_id)]


async def _counted(tx: Transaction, document_ids: list[UUID]) -> dict[str, int]:
    return typed_row(await tx.row("documents.count", ids=document_ids))


async def _remove(tx: Transaction, document_ids: list[UUID]) -> None:
    await tx.rows("documents.lock", ids=document_ids)
    await indexing.remove(tx, document_ids)
    await tx.run("documents.delete", ids=document_ids)
    await indexing.settle(tx)


async def _lock(tx: Transaction, document_id: UUID) -> None:
    if not await tx.rows("documents.lock", ids=[document_id]):
        raise NotFound


async def _locked(tx: Transaction, document_id: UUID) -> Document:
    await _lock(tx, document_id)
    return await _one(tx, document_id)


async def _one(tx: Transaction, document_id: UUID) -> Document:
    found = await _shown(tx, await tx.rows("documents.some", ids=[document_id]))
    if not found:
        raise NotFound
    return found[0]


async def _shown(tx: Transaction, rows: Sequence[DictRow]) -> list[Document]:
    """Documents with their progress; vectors are counted for those that wait for some."""
    waiting = [row["id"] for row in rows if being_embedded(row)]
    embedded: dict[UUID, int] = {}
    if waiting:
        counted = await tx.rows("documents.embedded", ids=waiting)
        embedded = {row["document_id"]: row["embedded"] for row in counted}
    return [document_of(row, embedded.get(row["id"], 0)) for row in rows]


async def _chunks(tx: Transaction, principal: Principal, document_id: UUID, revision: int) -> list[StoredChunk]:
    rows = await tx.rows("documents.chunks", document=document_id, revision=revision, admin=principal.is_admin)
    return [stored_chunk_of(row) for row in rows]


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
    return await _shown(tx, rows)


async def _readable_one(tx: Transaction, principal: Principal, document_id: UUID) -> Document:
    found = await _readable(tx, principal, document_ids=[document_id])
    if not found:
        raise NotFound
    return found[0]
