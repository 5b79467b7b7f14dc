"""Answers that cite a collection whose owners want to see them first: they wait here until somebody decides.

The decision is recorded at once and taken up by the asker's own next look (`settle`), so that whatever is killed in
between is done again with the same decision.
"""

from typing import Final
from uuid import UUID

from psycopg.rows import DictRow

from core.errors import AlreadyDecided, Forbidden, InvalidRequest, NotFound
from core.records import Answer, Pending, Principal
from storage import audit, runs, sessions
from storage.collections import grantees
from storage.database import Database, Transaction

# How many are listed at once; the others move up as these are decided.
MOST: Final = 100
LONGEST_REASON: Final = 500


async def asking(db: Database, principal: Principal) -> frozenset[str]:
    """Names of the collections that an answer may not cite without approval, whoever may read them."""
    async with db.transaction(principal.tenant_id) as tx:
        return frozenset(row["name"] for row in await tx.rows("approvals.asking"))


async def pending(db: Database, principal: Principal) -> list[Pending]:
    """The oldest answers that wait for a decision of the principal's; one's own are for others to decide."""
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows("approvals.pending", turn=None, most=MOST, **_who(principal))
    return [runs.pending_of(row) for row in rows]


async def waiting(db: Database, principal: Principal) -> int | None:
    """How many answers wait for a decision of the principal's; None where none does and nobody would ask for one."""
    async with db.transaction(principal.tenant_id) as tx:
        oldest = await tx.row("approvals.pending", turn=None, most=1, **_who(principal))
        if oldest is not None:
            return int(oldest["waiting"])
        asked = await tx.row("approvals.asked", **_who(principal))
    return 0 if asked and asked["asked"] else None


async def one(db: Database, principal: Principal, turn_id: UUID) -> Pending:
    """One answer that waits for a decision of the principal's.

    Errors: NotFound (also for those who are not asked), Forbidden (one's own), AlreadyDecided.
    """
    async with db.transaction(principal.tenant_id) as tx:
        return runs.pending_of(await _held(tx, principal, turn_id))


async def decide(db: Database, principal: Principal, turn_id: UUID, *, approved: bool, reason: str | None) -> Pending:
    """Approve an answer, perhaps with a note, or reject it with a reason: whoever asked is told.

    Errors: those of `one`, and InvalidRequest (a rejection without a reason, or one that is too long).
    """
    stated = " ".join((reason or "").split()) or None
    if stated is not None and len(stated) > LONGEST_REASON:
        raise InvalidRequest(f"A reason has at most {LONGEST_REASON} characters.")
    async with db.transaction(principal.tenant_id) as tx:
        row = await _held(tx, principal, turn_id)
        if not approved and stated is None:
            raise InvalidRequest("Say why the answer is rejected: whoever asked is told.")
        if not await tx.run("approvals.decide", turn=turn_id, by=principal.user_id, approved=approved, reason=stated):
            raise AlreadyDecided
        await audit.note(tx, principal.user_id, "answer.approved" if approved else "answer.rejected", turn_id)
    return runs.pending_of(row)


async def decided(db: Database, principal: Principal, session_id: UUID) -> list[tuple[Pending, bool, str | None]]:
    """The principal's own answers of a session that were decided and not settled yet: approved or not, and the reason
    of that or the note with it.
    """
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows("approvals.decided", user=principal.user_id, session=session_id)
    return [(runs.pending_of(row), row["approved"], row["reason"]) for row in rows]


async def settle(db: Database, principal: Principal, held: Pending, answer: Answer) -> None:
    """Put what came of a decision in the place of the turn that waited for it."""
    async with db.transaction(principal.tenant_id) as tx:
        if await tx.run("approvals.settle", run=held.run_id, outcome=str(answer.outcome)):
            await sessions.replace_turn(tx, held.turn_id, answer)


async def _held(tx: Transaction, principal: Principal, turn_id: UUID) -> DictRow:
    row = await tx.row("approvals.pending", turn=turn_id, most=1, **_who(principal))
    if row is None:
        raise NotFound
    if row["user_id"] == principal.user_id:
        raise Forbidden("Your own answer is approved by somebody else.")
    if row["decided_at"] is not None:
        raise AlreadyDecided
    return row


def _who(principal: Principal) -> dict[str, object]:
    return {"user": principal.user_id, "admin": principal.is_admin, "grantees": grantees(principal)}
