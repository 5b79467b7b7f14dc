"""Answers that are shown once somebody approved them, for those who may."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field

from api.auth import User
from api.bodies import Body
from api.context import Open
from api.oversight import ApprovalsView, PendingView, pending_views, waiting_for
from storage import approvals

router = APIRouter(prefix="/v1/approvals", tags=["oversight"])


class DecisionBody(Body):
    """Whether the answer may be shown; why not, or a note with it: whoever asked is told."""

    approved: bool
    reason: Annotated[str | None, Field(max_length=approvals.LONGEST_REASON)] = None


@router.get("")
async def list_approvals(principal: User, runtime: Open) -> ApprovalsView:
    """The answers that wait for one's decision: as an administrator, or as an approver of the collections they cite."""
    return await waiting_for(runtime.db, principal)


@router.post("/{turn_id}")
async def decide(turn_id: UUID, body: DecisionBody, principal: User, runtime: Open) -> PendingView:
    """Approve an answer, with a note or without, or reject it with a reason: whoever asked is told at the next look."""
    held = await approvals.decide(runtime.db, principal, turn_id, approved=body.approved, reason=body.reason)
    return (await pending_views(runtime.db, principal, [held]))[0]
