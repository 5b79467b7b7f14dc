"""One's own conversations."""

import asyncio
from typing import Annotated, Final, Literal
from uuid import UUID

from fastapi import APIRouter, Request, Response
from pydantic import BeforeValidator, Field, StringConstraints

from api.auth import User
from api.bodies import Body, Question
from api.context import Open
from api.conversations import conversation, markdown, only
from api.docx import docx
from api.language import preferred
from api.views import CancelView, ConversationView, ReceiptView, SessionsView, SessionView
from storage import runs, sessions

router = APIRouter(prefix="/v1", tags=["sessions"])

_MEDIA_TYPES: Final = {
    "md": "text/markdown; charset=utf-8",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
}

Title = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]


class SessionBody(Body):
    """A conversation's title, or the question that it is to begin with, which gives it one; so does its first."""

    title: Title = ""
    question: Question | None = None


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
    title = body.title or (sessions.title_of(body.question) if body.question else "")
    return SessionView.of(await sessions.create(runtime.db, principal, title))


@router.get("/sessions/{session_id}")
async def show_session(session_id: UUID, principal: User, runtime: Open) -> ConversationView:
    """A conversation with its turns, each citation with what became of it. Quotes of documents that one may no longer
    see are left out.
    """
    return await conversation(runtime.db, principal, session_id)


@router.get("/sessions/{session_id}/export", response_class=Response)
async def export_session(
    session_id: UUID,
    principal: User,
    runtime: Open,
    request: Request,
    format: Literal["md", "docx"] = "md",
    turn: UUID | None = None,
) -> Response:
    """A conversation, or one turn of it, with its sources, as Markdown or a Word document in the reader's language."""
    whole = await conversation(runtime.db, principal, session_id)
    if turn is not None:
        whole = only(whole, turn)
    text = markdown(whole, preferred(request))
    return Response(
        await asyncio.to_thread(docx, text, whole.session.title) if format == "docx" else text,
        media_type=_MEDIA_TYPES[format],
        headers={
            "Content-Disposition": f'attachment; filename="intramuros-{turn or session_id}.{format}"',
            "X-Content-Type-Options": "nosniff",
        },
    )


@router.post("/sessions/{session_id}/cancel")
async def cancel_question(session_id: UUID, principal: User, runtime: Open) -> CancelView:
    """Stop the question that is being answered in a conversation, whichever process does it."""
    return CancelView(cancelled=await runs.cancel(runtime.db, principal, session_id))


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


@router.post("/turns/{turn_id}/fork", status_code=201)
async def fork_session(turn_id: UUID, principal: User, runtime: Open) -> SessionView:
    """Begin another conversation with what was said up to this turn."""
    return SessionView.of(await sessions.fork(runtime.db, principal, turn_id))


@router.post("/turns/{turn_id}/feedback", status_code=204)
async def give_feedback(turn_id: UUID, body: FeedbackBody, principal: User, runtime: Open) -> None:
    """Say whether an answer helped."""
    await sessions.feedback(runtime.db, principal, turn_id, body.value, body.reason)
