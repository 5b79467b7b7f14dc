"""Sessions and their turns. A session belongs to one user; nobody else, an administrator included, finds it by id."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from core.errors import InvalidRequest, NotFound, SessionBusy
from core.records import Answer, Citation, Outcome, Principal, Receipt, Session, Turn
from storage.database import Database, Transaction, typed_row
from storage.locks import key_of


def thread_id(principal: Principal, session_id: UUID) -> str:
    """The session's name among LangGraph's checkpoints; row security reads tenant and user from it."""
    return f"{principal.tenant_id}:{principal.user_id}:{session_id}"


async def create(db: Database, principal: Principal, title: str) -> Session:
    """Begin a conversation."""
    async with db.transaction(principal.tenant_id) as tx:
        row = await tx.row("sessions.create", user=principal.user_id, title=title)
    return _session(typed_row(row))


async def listing(db: Database, principal: Principal) -> list[Session]:
    """The principal's sessions, the latest first."""
    async with db.transaction(principal.tenant_id) as tx:
        return [_session(row) for row in await tx.rows("sessions.listing", user=principal.user_id, id=None)]


async def get(db: Database, principal: Principal, session_id: UUID) -> Session:
    """One of the principal's sessions. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        return await _own(tx, principal, session_id)


async def rename(db: Database, principal: Principal, session_id: UUID, title: str) -> Session:
    """Give a session another title. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        await tx.run("sessions.rename", user=principal.user_id, id=session_id, title=title)
        return await _own(tx, principal, session_id)


async def delete(db: Database, principal: Principal, session_id: UUID) -> Receipt:
    """Remove a session, its turns and its checkpoints. Errors: NotFound, SessionBusy while a question runs in it."""
    thread = thread_id(principal, session_id)
    async with (
        running(db, principal, session_id),
        db.transaction(principal.tenant_id, principal.user_id) as tx,
    ):
        session = await _own(tx, principal, session_id)
        counts = {
            "turns": await tx.run("sessions.delete_turns", id=session_id),
            "checkpoints": await tx.run("sessions.delete_checkpoints", thread=thread),
            "checkpoint_writes": await tx.run("sessions.delete_checkpoint_writes", thread=thread),
            "checkpoint_blobs": await tx.run("sessions.delete_checkpoint_blobs", thread=thread),
            "sessions": await tx.run("sessions.delete", user=principal.user_id, id=session_id),
        }
    return Receipt(session.title, counts)


async def add_turn(db: Database, principal: Principal, session_id: UUID, answer: Answer) -> Turn:
    """Store a finished turn, its citations pinned as they are now. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        if not await tx.run("sessions.touch", user=principal.user_id, id=session_id):
            raise NotFound
        row = await tx.row(
            "sessions.add_turn",
            session=session_id,
            question=answer.question,
            standalone_question=answer.standalone_question,
            answer=answer.answer,
            outcome=str(answer.outcome),
            language=answer.language,
            citations=json.dumps([asdict(citation) for citation in answer.citations], default=str),
            timings=json.dumps(dict(answer.timings)),
            model_calls=answer.model_calls,
            notice=answer.notice,
        )
    return _turn(typed_row(row))


async def turns(db: Database, principal: Principal, session_id: UUID) -> list[Turn]:
    """The turns of a session, in order. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        await _own(tx, principal, session_id)
        rows = await tx.rows("sessions.turns", user=principal.user_id, session=session_id)
    return [_turn(row) for row in rows]


async def feedback(db: Database, principal: Principal, turn_id: UUID, value: int, reason: str | None) -> None:
    """Say that a turn of one's own was good (1) or not (-1); the last word counts. Errors: InvalidRequest, NotFound."""
    if value not in (-1, 1):
        raise InvalidRequest("Feedback is 1 or -1.")
    async with db.transaction(principal.tenant_id) as tx:
        if not await tx.run("sessions.feedback", user=principal.user_id, turn=turn_id, value=value, reason=reason):
            raise NotFound


@asynccontextmanager
async def running(db: Database, principal: Principal, session_id: UUID) -> AsyncIterator[None]:
    """Hold the session while a question runs in it, against every process. Raises SessionBusy."""
    async with db.locks.hold(key_of(principal.tenant_id, "session", session_id)) as free:
        if not free:
            raise SessionBusy
        yield


async def _own(tx: Transaction, principal: Principal, session_id: UUID) -> Session:
    row = await tx.row("sessions.listing", user=principal.user_id, id=session_id)
    if row is None:
        raise NotFound
    return _session(row)


def _session(row: DictRow) -> Session:
    return Session(row["id"], row["title"], row["turns"], row["created_at"], row["updated_at"])


def _turn(row: DictRow) -> Turn:
    return Turn(
        id=row["id"],
        session_id=row["session_id"],
        question=row["question"],
        answer=row["answer"],
        outcome=Outcome(row["outcome"]),
        language=row["language"],
        citations=tuple(_citation(value) for value in row["citations"]),
        created_at=row["created_at"],
        feedback=row["feedback"],
    )


def _citation(value: dict[str, Any]) -> Citation:
    return Citation(
        **{
            **value,
            "document_id": UUID(str(value["document_id"])),
            "heading_path": tuple(value["heading_path"]),
        }
    )
