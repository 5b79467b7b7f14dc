"""What waits to be processed, seen from the documents: they are the truth, the jobs of the queue only follow them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from storage.database import Database, typed_row


@dataclass(frozen=True, slots=True)
class Missing:
    """A document that waits and has no job; `at` is when its next try is due, None for now."""

    document_id: UUID
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Load:
    """How much there is to do: documents by state, and how many chunks one usually has. `at`: the database's clock."""

    waiting: int
    processing: int
    usual_chunks: float
    at: datetime


async def missing(
    db: Database, tenant_id: UUID, *, only: UUID | None = None, parent: UUID | None = None
) -> tuple[list[Missing], int]:
    """Documents without a job, oldest first, and how many jobs of the tenant wait.

    `only` looks at that document, `parent` at those that came inside that one. A job that waits for a later time than
    its document, which an admin wants tried now, is due from here on.
    """
    async with db.transaction(tenant_id) as tx:
        await tx.rows("jobs.hasten")
        rows = await tx.rows("jobs.missing", only=only, parent=parent)
        waiting = typed_row(await tx.row("jobs.waiting"))["jobs"] if rows else 0
    return [Missing(row["id"], row["next_attempt_at"]) for row in rows], waiting


async def moving(db: Database, tenant_id: UUID, since: datetime) -> Collection[UUID]:
    """Documents being processed, and those that changed after a moment of the database's clock."""
    async with db.transaction(tenant_id) as tx:
        return [row["id"] for row in await tx.rows("jobs.moving", since=since)]


async def departed(db: Database, tenant_id: UUID, since: datetime) -> Collection[UUID]:
    """Documents that were deleted after a moment of the database's clock, not more than an hour ago."""
    async with db.transaction(tenant_id) as tx:
        return [row["id"] for row in await tx.rows("documents.departed", since=since)]


async def load(db: Database, tenant_id: UUID) -> Load:
    """How much the tenant has waiting."""
    async with db.transaction(tenant_id) as tx:
        return Load(**typed_row(await tx.row("jobs.load")))
