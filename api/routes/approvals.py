"""Answers that are shown once somebody approved them, for those who may."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from api.auth import User
from api.bodies import Body
from api.context import Open
from api.oversight import ApprovalsView, PendingView
from core.records import Pending, Principal
from storage import approvals, pinning
from storage.database import Database

router = APIRouter(prefix="/v1/approvals", tags=["oversight"])


class DecisionBody(Body):
    """Whether the answer may be shown; why not, which the asker is told."""

    approved: bool
    reason: Annotated[str | None, Field(max_length=500)] = None


@router.get("")
async def list_approvals(principal: User, runtime: Open) -> ApprovalsView:
    """The answers that wait for one's decision: as an administrator, or as an approver of the collections they cite."""
    found = await approvals.pending(runtime.db, principal)
    return ApprovalsView(approvals=await _views(runtime.db, principal, found))


@router.post("/{turn_id}")
async def decide(turn_id: UUID, body: DecisionBody, principal: User, runtime: Open) -> PendingView:
    """Approve an answer, or reject it with a reason. Whoever asked finds it so at their next look."""
    held = await approvals.decide(runtime.db, principal, turn_id, approved=body.approved, reason=body.reason)
    return (await _views(runtime.db, principal, [held]))[0]


async def _views(db: Database, principal: Principal, found: list[Pending]) -> tuple[PendingView, ...]:
    cited = [citation for held in found for citation in held.answer.citations]
    standings = await pinning.standings(db, principal, cited)
    return tuple(PendingView.of(held, standings) for held in found)
