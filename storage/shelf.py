"""Documents found, locked, shown and removed, inside the caller's transaction: for the modules of this package."""

from collections.abc import Collection, Sequence
from uuid import UUID

from psycopg.rows import DictRow

from core.errors import Forbidden, NotFound
from core.records import Document, Principal
from storage import indexing, superseding
from storage.collections import grantees
from storage.database import Transaction
from storage.rows import being_embedded, document_of


def must_be_admin(principal: Principal) -> None:
    """Raises Forbidden."""
    if not principal.is_admin:
        raise Forbidden


async def lock(tx: Transaction, document_id: UUID) -> None:
    """Keep other writers of a document out until the transaction ends. Raises NotFound."""
    if not await tx.rows("documents.lock", ids=[document_id]):
        raise NotFound


async def locked(tx: Transaction, document_id: UUID) -> Document:
    """A document, locked. Raises NotFound."""
    tx.later("documents.lock", ids=[document_id])
    return await one(tx, document_id)


async def one(tx: Transaction, document_id: UUID) -> Document:
    """A document of the tenant, whoever may read it. Raises NotFound."""
    found = await shown(tx, await tx.rows("documents.some", ids=[document_id]))
    if not found:
        raise NotFound
    return found[0]


async def shown(tx: Transaction, rows: Sequence[DictRow]) -> list[Document]:
    """Documents with their progress; vectors are counted for those that wait for some."""
    waiting = [row["id"] for row in rows if being_embedded(row)]
    embedded: dict[UUID, int] = {}
    if waiting:
        counted = await tx.rows("documents.embedded", ids=waiting)
        embedded = {row["document_id"]: row["embedded"] for row in counted}
    return [document_of(row, embedded.get(row["id"], 0)) for row in rows]


async def readable(
    tx: Transaction,
    principal: Principal,
    *,
    document_ids: Collection[UUID] | None = None,
    collection: str | None = None,
    called: str | None = None,
) -> list[Document]:
    """What the principal may read of these documents (None: all), of this collection, of those whose path is or ends
    with `called`, in whole components; by collection and path."""
    rows = await tx.rows(
        "documents.readable",
        admin=principal.is_admin,
        grantees=grantees(principal),
        ids=None if document_ids is None else list(document_ids),
        collection=collection,
        called=called,
    )
    return await shown(tx, rows)


async def readable_one(tx: Transaction, principal: Principal, document_id: UUID) -> Document:
    """A document that the principal may read. Raises NotFound."""
    found = await readable(tx, principal, document_ids=[document_id])
    if not found:
        raise NotFound
    return found[0]


async def family(tx: Transaction, document_id: UUID) -> list[UUID]:
    """A document and all that came inside it, at any depth."""
    return [row["id"] for row in await tx.rows("documents.family", id=document_id)]


async def remove(tx: Transaction, document_ids: list[UUID]) -> None:
    """Remove documents with all that was made of them; what they superseded is found again. Raises NotFound."""
    kin = await superseding.hold(tx, document_ids)
    await indexing.remove(tx, document_ids)
    await tx.run("documents.delete", ids=document_ids)
    await tx.run("documents.depart", ids=document_ids)
    await indexing.settle(tx)
    await superseding.follow(tx, set(kin) - set(document_ids))
