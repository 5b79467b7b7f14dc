"""Documents: registered by path and bytes, stored as revisions, found by words and then by meaning.

Whatever changes a document locks it first, the tenant's statistics after: no two writers wait for each other.
"""

import logging
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from core.errors import NotFound
from core.records import (
    Chunk,
    Document,
    DocumentState,
    ParsedDocument,
    Passage,
    Principal,
    Progress,
    Revision,
)
from core.text import embedded_text
from storage import audit, indexing, revising, shelf, superseding
from storage.database import Database, Transaction, typed_row
from storage.locks import key_of
from storage.rows import (
    StoredChunk,
    boxes_of,
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
    by: UUID | None = None,
) -> tuple[Document, Registered]:
    """Note that these bytes stand at this path. Nothing of them is searchable before `store_revision`.

    `unchanged`: the collection has these bytes ready, at this path or another. `new`: nothing of the document was read
    yet. `changed`: its older revision stays searchable. The last two ask for processing; so do bytes that failed or
    were left half-way before. A file that came inside another (`parent_id`) is known by its path alone. `by`: the user
    who sent it; None: the program found it.
    """
    found = {"path": path, "sha256": sha256, "media_type": media_type, "size": size, "title": title}
    async with db.transaction(tenant_id) as tx:
        # Two processes that register the same bytes or path wait for each other here.
        tx.later("session.ingest_lock", key=key_of(tenant_id, "register", collection_id))
        document_id, acts = await _shelve(tx, collection_id, found, {"source": source, "parent": parent_id})
        document = await shelf.one(tx, document_id)
        for act, subject in acts:
            await audit.note(tx, by, act, subject)
    if document.state is DocumentState.READY:
        return document, "unchanged"
    return document, "changed" if document.revision else "new"


async def _shelve(
    tx: Transaction, collection_id: UUID, found: Mapping[str, object], owner: Mapping[str, object]
) -> tuple[UUID, list[tuple[str, UUID]]]:
    """The document that a file found is, and what was done to which documents, as the audit log calls it."""
    same_path = await tx.row("documents.by_path", collection=collection_id, path=found["path"])
    same_bytes = None
    if owner["parent"] is None:
        same_bytes = await tx.row("documents.by_bytes", collection=collection_id, sha256=found["sha256"])
    if same_bytes is not None and (same_path is None or same_path["id"] != same_bytes["id"]):
        await tx.run("documents.requeue", id=same_bytes["id"])
        if same_path is None:
            return same_bytes["id"], []
        # The path now holds a copy of another document: what it held before is nowhere any more.
        await shelf.remove(tx, await shelf.family(tx, same_path["id"]))
        return same_bytes["id"], [("document.deleted", same_path["id"])]
    if same_path is not None:
        changed = await _come_back(tx, same_path["id"], found, owner)
        return same_path["id"], [("document.changed", same_path["id"])] if changed else []
    made = typed_row(await tx.row("documents.insert", collection=collection_id, **found, **owner))
    return made["id"], [("document.added", made["id"])]


async def _come_back(
    tx: Transaction, document_id: UUID, found: Mapping[str, object], owner: Mapping[str, object]
) -> bool:
    """Note that a file stands at the path of a document that is known; whether with other bytes than before."""
    await tx.run("documents.adopt", id=document_id, **owner)
    document = await shelf.one(tx, document_id)
    await tx.run("documents.requeue", id=document_id)
    if document.sha256 == found["sha256"]:
        return False
    await tx.run("documents.new_bytes", id=document_id, **found)
    return True


async def move(db: Database, tenant_id: UUID, document_id: UUID, path: str) -> Document:
    """The document's file now stands at `path`; files that came inside it follow.

    Errors: NotFound, AlreadyExists (another document stands there).
    """
    async with db.transaction(tenant_id) as tx:
        kin = await superseding.hold(tx, [document_id], path=path)
        document = await shelf.one(tx, document_id)
        await tx.run("documents.move", id=document_id, path=path, old=document.path)
        await superseding.follow(tx, kin)
        return await shelf.one(tx, document_id)


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
        document = await shelf.locked(tx, document_id)
        if document.sha256 != sha256:
            return document
        await revising.write(tx, document, parsed, chunks, keep=keep)
        return await shelf.one(tx, document_id)


async def missing_vectors(
    db: Database, tenant_id: UUID, document_id: UUID, *, embedder_id: str, limit: int
) -> list[Unembedded]:
    """The next chunks of the newest revision to embed, in reading order; [] when no vector is missing.

    Vectors that the tenant has of the very same chunks are taken over here and never asked for. Errors: NotFound,
    EmbeddingSetMismatch.
    """
    async with db.transaction(tenant_id) as tx:
        await shelf.lock(tx, document_id)
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
        await shelf.lock(tx, document_id)
        await indexing.add_vectors(tx, document_id, chunk_ids, vectors, embedder_id)
        document = await shelf.one(tx, document_id)
    return document.progress or Progress("embedding", document.chunks, document.chunks)


async def finish(
    db: Database,
    tenant_id: UUID,
    document_id: UUID,
    *,
    embedder_id: str,
    sha256: str,
    last: tuple[Sequence[int], NDArray[np.float32]] | None = None,
) -> Document:
    """Keep the `last` vectors, as `add_vectors` does, and call a document ready when these bytes are read and no vector
    is missing; what it is afterwards.

    Errors: as `add_vectors`; EmbeddingSetMismatch also where another set was made the active one meanwhile.
    """
    async with db.transaction(tenant_id) as tx:
        kin = await superseding.hold(tx, [document_id])
        if last is not None:
            await indexing.add_vectors(tx, document_id, *last, embedder_id)
        await indexing.keep_active(tx, embedder_id)
        if not await indexing.missing(tx, document_id, embedder_id, 1):
            tx.later("documents.ready", id=document_id, sha256=sha256)
            await superseding.follow(tx, kin)
        document = await shelf.one(tx, document_id)
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
        return await shelf.shown(tx, await tx.rows("documents.pending"))


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
            tx.later("documents.processing", id=document_id)
            document = await shelf.one(tx, document_id)
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
        return await shelf.one(tx, document_id)


async def children(db: Database, tenant_id: UUID, document_id: UUID) -> list[Document]:
    """The documents that came inside this one, by path."""
    async with db.transaction(tenant_id) as tx:
        return await shelf.shown(tx, await tx.rows("documents.children", id=document_id))


# --- reading --------------------------------------------------------------------------------------------------------


async def listing(db: Database, principal: Principal, collection: str | None = None) -> list[Document]:
    """The documents that the principal may see, by collection and path."""
    async with db.transaction(principal.tenant_id) as tx:
        return await shelf.readable(tx, principal, collection=collection)


async def visible(db: Database, principal: Principal, document_ids: Collection[UUID]) -> frozenset[UUID]:
    """Those of these documents that are still there and that the principal may see."""
    async with db.transaction(principal.tenant_id) as tx:
        return frozenset(document.id for document in await shelf.readable(tx, principal, document_ids=document_ids))


async def digests(db: Database, tenant_id: UUID) -> frozenset[str]:
    """The digests of all files that documents of the tenant, or their kept revisions, were read from or will be."""
    async with db.transaction(tenant_id) as tx:
        return frozenset(row["sha256"] for row in await tx.rows("documents.digests"))


async def several(db: Database, principal: Principal, document_ids: Collection[UUID]) -> list[Document]:
    """Those of these documents that are still there and that the principal may see, by collection and path."""
    async with db.transaction(principal.tenant_id) as tx:
        return await shelf.readable(tx, principal, document_ids=document_ids)


async def get(db: Database, principal: Principal, document_id: UUID) -> Document:
    """One document that the principal may see. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        return await shelf.readable_one(tx, principal, document_id)


async def revisions(db: Database, principal: Principal, document_id: UUID) -> list[Revision]:
    """The kept revisions of a document, oldest first. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        await shelf.readable_one(tx, principal, document_id)
        return [revision_of(row) for row in await tx.rows("revisions.all", document=document_id)]


async def revision(db: Database, principal: Principal, document_id: UUID, number: int) -> Revision:
    """One kept revision of a document, 0 for the newest. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        await shelf.readable_one(tx, principal, document_id)
        row = await tx.row("revisions.one", document=document_id, number=number)
    if row is None:
        raise NotFound(f"There is no revision {number}." if number else "Nothing of this document was read yet.")
    return revision_of(row)


async def chunks(db: Database, principal: Principal, document_id: UUID) -> list[StoredChunk]:
    """The chunks of the newest revision in reading order; quarantined ones are shown to admins. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        document = await shelf.readable_one(tx, principal, document_id)
        return await _chunks(tx, principal, document_id, document.revision)


async def revision_chunks(db: Database, principal: Principal, document_id: UUID, number: int) -> list[StoredChunk]:
    """As `chunks`, of one revision. Raises NotFound, also for a revision that is not kept."""
    async with db.transaction(principal.tenant_id) as tx:
        await shelf.readable_one(tx, principal, document_id)
        if not number or await tx.row("revisions.one", document=document_id, number=number) is None:
            raise NotFound(f"There is no revision {number}.")
        return await _chunks(tx, principal, document_id, number)


async def passage(
    db: Database, principal: Principal, document_id: UUID, chunk_id: int, *, revision: int = 0
) -> Passage:
    """A cited chunk with what stands around it, quarantined chunks left out: in this revision where it is kept, else in
    the last that holds the chunk.

    Raises NotFound, also when no kept revision holds it.
    """
    async with db.transaction(principal.tenant_id) as tx:
        document = await shelf.readable_one(tx, principal, document_id)
        rows = await tx.rows(
            "documents.around", document=document_id, chunk=chunk_id, revision=revision, reach=PASSAGE_REACH
        )
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
        revision=rows[at]["revision"],
        start=rows[at]["start_at"],
    )


async def _chunks(tx: Transaction, principal: Principal, document_id: UUID, revision: int) -> list[StoredChunk]:
    rows = await tx.rows("documents.chunks", document=document_id, revision=revision, admin=principal.is_admin)
    return [stored_chunk_of(row) for row in rows]
