"""One's own conversations."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter
from pydantic import BeforeValidator, Field, StringConstraints

from api.auth import User
from api.bodies import Body
from api.context import Open
from api.views import ConversationView, ReceiptView, SessionsView, SessionView, TurnView
from core.records import Principal, Turn
from storage import documents, sessions
from storage.database import Database

router = APIRouter(prefix="/v1", tags=["sessions"])

Title = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]


class SessionBody(Body):
    """A conversation's title; empty until its first question gives it one."""

    title: Title = ""


class RenameBody(Body):
    """A conversation's new title."""

    title: Annotated[Title, Field(min_length=1)]


def _whole(value: object) -> object:
    # True equals 1, and 1.0 does too.
    if type(value) is not int:
        raise ValueError("must be 1 or -1")
    return value


class FeedbackBody(Body):
    """Thumbs up (1) or down (-1), and why."""

    value: Annotated[Literal[-1, 1], BeforeValidator(_whole)]
    reason: Annotated[str | None, Field(max_length=2000)] = None


@router.get("/sessions")
async def list_sessions(principal: User, runtime: Open) -> SessionsView:
    """One's conversations, the latest first."""
    found = await sessions.listing(runtime.db, principal)
    return SessionsView(sessions=tuple(map(SessionView.of, found)))


@router.post("/sessions", status_code=201)
async def create_session(body: SessionBody, principal: User, runtime: Open) -> SessionView:
    """Begin a conversation."""
    return SessionView.of(await sessions.create(runtime.db, principal, body.title))


@router.get("/sessions/{session_id}")
async def show_session(session_id: UUID, principal: User, runtime: Open) -> ConversationView:
    """A conversation with its turns. Quotes of documents that one may no longer see are left out."""
    session = await sessions.get(runtime.db, principal, session_id)
    turns = await sessions.turns(runtime.db, principal, session_id)
    hidden = await _hidden(runtime.db, principal, turns)
    return ConversationView(
        session=SessionView.of(session), turns=tuple(TurnView.of(turn).without_quotes(hidden) for turn in turns)
    )


async def _hidden(db: Database, principal: Principal, turns: list[Turn]) -> frozenset[UUID]:
    """Documents cited in `turns` that were deleted, or that the principal may not see any more."""
    cited = frozenset(citation.document_id for turn in turns for citation in turn.citations)
    return cited - await documents.visible(db, principal, cited)


@router.patch("/sessions/{session_id}")
async def rename_session(session_id: UUID, body: RenameBody, principal: User, runtime: Open) -> SessionView:
    """Give a conversation another title."""
    return SessionView.of(await sessions.rename(runtime.db, principal, session_id, body.title))


@router.delete("/sessions/{session_id}")
async def delete_session(session_id: UUID, principal: User, runtime: Open) -> ReceiptView:
    """Remove a conversation with its turns and its memory."""
    # Deleting waits for nobody: it says when a session is busy, but only to its owner.
    await sessions.get(runtime.db, principal, session_id)
    return ReceiptView.of(await sessions.delete(runtime.db, principal, session_id))


@router.post("/turns/{turn_id}/feedback", status_code=204)
async def give_feedback(turn_id: UUID, body: FeedbackBody, principal: User, runtime: Open) -> None:
    """Say whether an answer helped."""
    await sessions.feedback(runtime.db, principal, turn_id, body.value, body.reason)
