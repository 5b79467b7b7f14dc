"""Sidecars: what files beside the documents' own say of them. An administrator's word goes before theirs."""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from core.records import Document, Sidecar
from storage import revising, rows, shelf, superseding
from storage.database import Database, Transaction


async def known(db: Database, tenant_id: UUID, collection_id: UUID) -> Mapping[UUID, str]:
    """The digest of the sidecar last taken in, by document; without those that have none."""
    async with db.transaction(tenant_id) as tx:
        found = await tx.rows("documents.sidecars", collection=collection_id)
    return {row["id"]: row["sha256"] for row in found}


async def describe(db: Database, tenant_id: UUID, document_id: UUID, sidecar: Sidecar | None) -> Document:
    """Take in what a document's sidecar says now; None: it has none any more. The file is not read again for it.

    Dates hold at once, save where an admin set others; a title makes its passages wait for new vectors, state
    `processing`. A document that was not read yet is described when it is. Raises NotFound.
    """
    async with db.transaction(tenant_id) as tx:
        newest = await tx.row("revisions.one", document=document_id, number=0)
        own = rows.parsed_of(newest).supersedes if newest is not None else None
        said = (own, sidecar.supersedes if sidecar is not None else None)
        kin = await superseding.hold(tx, [document_id], said=said)
        before = rows.sidecar_of(await tx.row("documents.sidecar", id=document_id))
        if before == sidecar:
            return await shelf.one(tx, document_id)
        await tx.run(
            "documents.describe", id=document_id, sidecar=None if sidecar is None else rows.sidecar_json(sidecar)
        )
        document = await shelf.one(tx, document_id)
        if document.revision and document.read_sha256 == document.sha256:
            await _apply(tx, document, before, sidecar)
            await superseding.follow(tx, kin)
        return await shelf.one(tx, document_id)


async def _apply(tx: Transaction, document: Document, before: Sidecar | None, sidecar: Sidecar | None) -> None:
    newest = await tx.row("revisions.one", document=document.id, number=0)
    if newest is None:
        return
    stale = before.warnings if before is not None else ()
    own = tuple(warning for warning in rows.warnings_of(newest) if warning not in stale)
    parsed = replace(rows.parsed_of(newest), warnings=own)
    told = revising.over(sidecar, parsed)
    if told.title != document.title:
        found = await tx.rows("documents.chunks", document=document.id, revision=document.revision, admin=True)
        chunks = [rows.stored_chunk_of(row).chunk for row in found]
        await revising.write(tx, document, parsed, chunks, keep=document.revision)
        return
    warnings = rows.warnings_json(told.warnings)
    await tx.run("documents.warn", id=document.id, warnings=warnings)
    await tx.run("revisions.warn", document=document.id, number=document.revision, warnings=warnings)
    if not newest["dates_set"]:
        await revising.date_it(tx, document.id, document.revision, *revising.dates_of(told))
        await tx.run("revisions.settle", document=document.id)
