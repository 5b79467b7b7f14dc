"""Traces: how each run came to its answer, for administrators who say why they want to know.

A list says when whose questions ran and what they took, not what was asked. Who reads one of them states a reason,
which stands in the reading that the asker is shown; that it was read also stands in the audit log.
"""

from typing import Final
from uuid import UUID

from core.errors import InvalidRequest, NotFound, ReasonMissing
from core.records import Principal, Reading, RunInfo, RunTrace, Step
from storage import audit, runs, sessions
from storage.database import Database

MOST: Final = 200
LONGEST_REASON: Final = 500


async def listing(db: Database, principal: Principal, *, user: str | None = None, most: int = MOST) -> list[RunInfo]:
    """The last runs of the tenant, or of one user by name, the latest first. Raises NotFound to all but admins."""
    _admin(principal)
    async with db.transaction(principal.tenant_id) as tx:
        return [runs.info_of(row) for row in await tx.rows("runs.listing", user=user, most=most)]


async def read(db: Database, principal: Principal, run_id: UUID, reason: str) -> RunTrace:
    """One run, whole. The reading is recorded with its reason, or the run is not read.

    Errors: NotFound (also to all but admins), ReasonMissing, InvalidRequest (the reason is too long).
    """
    _admin(principal)
    stated = " ".join(reason.split())
    if len(stated) > LONGEST_REASON:
        raise InvalidRequest(f"A reason has at most {LONGEST_REASON} characters.")
    async with db.transaction(principal.tenant_id) as tx:
        row = await tx.row("runs.whole", run=run_id)
        if row is None:
            raise NotFound
        if not stated:
            raise ReasonMissing
        turn = await sessions.turn(tx, row["user_id"], row["turn_id"]) if row["turn_id"] else None
        await tx.run(
            "runs.note_reading",
            user=row["user_id"],
            session=row["session_id"],
            run=run_id,
            reader=principal.user_id,
            reader_name=principal.name,
            reason=stated,
        )
        await audit.note(tx, principal.user_id, "trace.read", run_id)
    steps = tuple(Step(step["kind"], step["at_ms"], step["data"]) for step in row["steps"])
    return RunTrace(runs.info_of(row), row["question"], steps, turn)


async def readings(db: Database, principal: Principal, session_id: UUID | None = None) -> list[Reading]:
    """Who read runs of the principal's (in one session, or all), the latest first."""
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows("runs.readings", user=principal.user_id, session=session_id)
    return [Reading(row["run_id"], row["session_id"], row["reader_name"], row["reason"], row["at"]) for row in rows]


def _admin(principal: Principal) -> None:
    if not principal.is_admin:
        raise NotFound
