"""Answers that cite a collection whose owners want to see them first: they wait here until somebody decides.

The decision is recorded at once and taken up by the asker's own next look (`settle`), so that whatever is killed in
between is done again with the same decision.
"""

from uuid import UUID

from core.errors import AlreadyDecided, Forbidden, InvalidRequest, NotFound
from core.records import Answer, Pending, Principal
from storage import audit, runs, sessions
from storage.collections import grantees
from storage.database import Database


async def asking(db: Database, principal: Principal) -> frozenset[str]:
    """Names of the collections that an answer may not cite without approval, whoever may read them."""
    async with db.transaction(principal.tenant_id) as tx:
        return frozenset(row["name"] for row in await tx.rows("approvals.asking"))


async def pending(db: Database, principal: Principal) -> list[Pending]:
    """The answers that wait for a decision of the principal's, oldest first; one's own are for others to decide."""
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows("approvals.pending", turn=None, **_who(principal))
    return [runs.pending_of(row) for row in rows if row["user_id"] != principal.user_id]


async def decide(db: Database, principal: Principal, turn_id: UUID, *, approved: bool, reason: str | None) -> Pending:
    """Approve an answer, or reject it with a reason.

    Errors: NotFound (also for those who are not asked), Forbidden (one's own), AlreadyDecided, InvalidRequest (a
    rejection without a reason).
    """
    stated = " ".join((reason or "").split()) or None
    async with db.transaction(principal.tenant_id) as tx:
        row = await tx.row("approvals.pending", turn=turn_id, **_who(principal))
        if row is None:
            raise NotFound
        if row["user_id"] == principal.user_id:
            raise Forbidden("Your own answer is approved by somebody else.")
        if not approved and stated is None:
            raise InvalidRequest("Say why the answer is rejected: whoever asked is told.")
        if not await tx.run("approvals.decide", turn=turn_id, by=principal.user_id, approved=approved, reason=stated):
            raise AlreadyDecided
        await audit.note(tx, principal.user_id, "answer.approved" if approved else "answer.rejected", turn_id)
    return runs.pending_of(row)


async def decided(db: Database, principal: Principal, session_id: UUID) -> list[tuple[Pending, bool, str | None]]:
    """The principal's own answers of a session that were decided and not settled yet: approved or not, and why not."""
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows("approvals.decided", user=principal.user_id, session=session_id)
    return [(runs.pending_of(row), row["approved"], row["reason"]) for row in rows]


async def settle(db: Database, principal: Principal, held: Pending, answer: Answer) -> None:
    """Put what came of a decision in the place of the turn that waited for it."""
    async with db.transaction(principal.tenant_id) as tx:
        if await tx.run("approvals.settle", run=held.run_id, outcome=str(answer.outcome)):
            await sessions.replace_turn(tx, held.turn_id, answer)


def _who(principal: Principal) -> dict[str, object]:
    return {"admin": principal.is_admin, "grantees": grantees(principal)}
