"""What administrators do with documents: date them, let passages into search, delete with a receipt."""

import logging
from collections.abc import Sequence
from datetime import date
from uuid import UUID

from core.errors import InvalidRequest
from core.records import Document, Principal, Receipt
from storage import audit, revising, shelf, superseding
from storage.database import Database, Transaction, typed_row
from storage.rows import StoredChunk, stored_chunk_of

logger = logging.getLogger(__name__)


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
    shelf.must_be_admin(principal)
    if effective_from is not None and effective_to is not None and effective_to < effective_from:
        raise InvalidRequest("The last day in force comes before the first.")
    dates = (effective_from, effective_to, supersedes)
    async with db.transaction(principal.tenant_id) as tx:
        kin = await superseding.hold(tx, [document_id], said=[supersedes])
        document = await shelf.one(tx, document_id)
        if not document.revision:
            raise InvalidRequest("The document has not been read yet. Date it when it is.")
        await revising.date_it(tx, document_id, document.revision, *dates, dates_set=True)
        await tx.run("revisions.settle", document=document_id)
        await superseding.follow(tx, kin)
        await audit.note(tx, principal.user_id, "document.dated", document_id)
        return await shelf.one(tx, document_id)


async def quarantined(
    db: Database, principal: Principal, collection: str | None = None
) -> list[tuple[Document, StoredChunk]]:
    """Chunks of newest revisions that wait for an admin, by document in reading order. Raises Forbidden."""
    shelf.must_be_admin(principal)
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows("documents.quarantined", collection=collection)
        found = await shelf.readable(tx, principal, document_ids={row["document_id"] for row in rows})
    return [(document, stored_chunk_of(row)) for document in found for row in rows if row["document_id"] == document.id]


async def release(
    db: Database, principal: Principal, document_id: UUID, chunk_ids: Sequence[int] | None = None
) -> Document:
    """Let quarantined chunks (None: all) of the newest revision into search: by words at once, by meaning in turn.

    The document is queued for their vectors. Errors: Forbidden, NotFound.
    """
    shelf.must_be_admin(principal)
    async with db.transaction(principal.tenant_id) as tx:
        await shelf.locked(tx, document_id)
        wanted = None if chunk_ids is None else list(chunk_ids)
        if await tx.run("documents.release", id=document_id, chunk_ids=wanted):
            await revising.follow(tx, document_id)
            await tx.run("documents.embed_again", id=document_id)
            await audit.note(tx, principal.user_id, "quarantine.released", document_id)
        return await shelf.one(tx, document_id)


async def deletion(db: Database, principal: Principal, document_id: UUID) -> Receipt:
    """What `delete` would remove. Errors: Forbidden, NotFound."""
    shelf.must_be_admin(principal)
    async with db.transaction(principal.tenant_id) as tx:
        document = await shelf.one(tx, document_id)
        return Receipt(document.path, await _counted(tx, await shelf.family(tx, document_id)))


async def delete(db: Database, principal: Principal, document_id: UUID) -> Receipt:
    """Remove a document, the files that came inside it and all that was made of them; the receipt counts the rows.

    `quoting` counts stored answers that cite one of them: they stay as they are. Errors: Forbidden, NotFound.
    """
    shelf.must_be_admin(principal)
    async with db.transaction(principal.tenant_id) as tx:
        family = await shelf.family(tx, document_id)
        await superseding.hold(tx, [document_id, *family])
        document = await shelf.one(tx, document_id)
        counts = await _counted(tx, family)
        await shelf.remove(tx, family)
        await audit.note(tx, principal.user_id, "document.deleted", document_id)
    logger.info("document deleted", extra={"document": str(document_id), **counts})
    return Receipt(document.path, counts)


async def _counted(tx: Transaction, document_ids: list[UUID]) -> dict[str, int]:
    return typed_row(await tx.row("documents.count", ids=document_ids))
