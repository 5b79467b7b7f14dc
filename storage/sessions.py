"""Sessions and their turns. A session belongs to one user; nobody else, an administrator included, finds it by id.

The turns are all that a session remembers: LangGraph's checkpoints, which outlive neither `checkpoint_days` nor a
process that is killed at the wrong moment, hold nothing that a later question needs.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from uuid import UUID

from psycopg.rows import DictRow

from core.errors import InvalidRequest, NotFound, SessionBusy
from core.records import Answer, Outcome, Principal, Receipt, Session, Turn
from core.text import count_cjk
from storage import answers, threads
from storage.database import Database, Transaction, typed_row
from storage.locks import key_of

# Width of a title that is made from a question, a Chinese character counted twice.
TITLE_WIDTH: Final = 60
_LAST_STOP: Final = re.compile(r"[\s.。…]+$")


def title_of(question: str) -> str:
    """A title for a conversation that begins with this question: its first words, cut where a word ends."""
    title, width = "", 0
    for piece in re.findall(r"[^\W\u2e80-\u9fff]+|\s+|.", " ".join(question.split())):
        width += len(piece) + count_cjk(piece)
        if width > TITLE_WIDTH:
            return f"{title.rstrip() or piece[: TITLE_WIDTH - 1]}…"
        title += piece
    return _LAST_STOP.sub("", title) or title


async def create(db: Database, principal: Principal, title: str) -> Session:
    """Begin a conversation; without a title, its first question gives it one."""
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
        return await own(tx, principal, session_id)


async def rename(db: Database, principal: Principal, session_id: UUID, title: str) -> Session:
    """Give a session another title. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        await tx.run("sessions.rename", user=principal.user_id, id=session_id, title=title)
        return await own(tx, principal, session_id)


async def fork(db: Database, principal: Principal, turn_id: UUID) -> Session:
    """A new session that begins with what was said up to this turn, its own title in front. Raises NotFound.

    A turn that waits for approval is not taken along, as its answer will be told where it was asked for.
    """
    async with db.transaction(principal.tenant_id) as tx:
        row = await tx.row("sessions.fork", user=principal.user_id, turn=turn_id)
        if row is None:
            raise NotFound
        return await own(tx, principal, row["id"])


async def delete(db: Database, principal: Principal, session_id: UUID) -> Receipt:
    """Remove a session, its turns, traces and checkpoints. Errors: NotFound, SessionBusy (a question runs in it)."""
    async with (
        running(db, principal, session_id),
        db.transaction(principal.tenant_id, principal.user_id) as tx,
    ):
        session = await own(tx, principal, session_id)
        begun = [row["id"] for row in await tx.rows("sessions.delete_runs", id=session_id)]
        counts = {
            **await threads.remove(tx, principal.user_id, begun),
            "runs": len(begun),
            "turns": await tx.run("sessions.delete_turns", id=session_id),
            "sessions": await tx.run("sessions.delete", user=principal.user_id, id=session_id),
        }
    return Receipt(session.title, counts)


async def add_turn(db: Database, principal: Principal, session_id: UUID, answer: Answer) -> Turn:
    """Store a finished turn, its citations pinned as they are now. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        return await put_turn(tx, principal, session_id, answer)


async def put_turn(tx: Transaction, principal: Principal, session_id: UUID, answer: Answer) -> Turn:
    """As `add_turn`, in the caller's transaction."""
    title = title_of(answer.question)
    if not await tx.run("sessions.touch", user=principal.user_id, id=session_id, title=title):
        raise NotFound
    return _turn(typed_row(await tx.row("sessions.add_turn", session=session_id, **_stored(answer))))


async def replace_turn(tx: Transaction, turn_id: UUID, answer: Answer) -> None:
    """Put another answer in a turn's place, in the caller's transaction."""
    await tx.run("sessions.replace_turn", turn=turn_id, **_stored(answer))


async def turns(db: Database, principal: Principal, session_id: UUID) -> list[Turn]:
    """The turns of a session, in order. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        await own(tx, principal, session_id)
        return [_turn(row) for row in await tx.rows("sessions.turns", user=principal.user_id, session=session_id)]


async def latest(db: Database, principal: Principal, session_id: UUID, most: int) -> list[Turn]:
    """The last turns of a session, in order; none of a session that is not the principal's."""
    async with db.transaction(principal.tenant_id) as tx:
        rows = await tx.rows("sessions.latest", user=principal.user_id, session=session_id, most=most)
    return [_turn(row) for row in reversed(rows)]


async def turn(tx: Transaction, owner: UUID, turn_id: UUID) -> Turn | None:
    """One turn as its owner sees it, in the caller's transaction, which has seen to the right to read it."""
    row = await tx.row("sessions.turn", user=owner, turn=turn_id)
    return _turn(row) if row else None


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
    async with holding(db, principal, session_id) as free:
        if not free:
            raise SessionBusy
        yield


@asynccontextmanager
async def holding(db: Database, principal: Principal, session_id: UUID) -> AsyncIterator[bool]:
    """Hold the session where nobody else does; yields whether it was free."""
    async with db.locks.hold(key_of(principal.tenant_id, "session", session_id)) as free:
        yield free


async def own(tx: Transaction, principal: Principal, session_id: UUID) -> Session:
    """One of the principal's sessions, in the caller's transaction. Raises NotFound."""
    row = await tx.row("sessions.listing", user=principal.user_id, id=session_id)
    if row is None:
        raise NotFound
    return _session(row)


def _session(row: DictRow) -> Session:
    return Session(row["id"], row["title"], row["turns"], row["created_at"], row["updated_at"])


def _stored(answer: Answer) -> dict[str, object]:
    return {
        "question": answer.question,
        "standalone_question": answer.standalone_question,
        "answer": answer.answer,
        "outcome": str(answer.outcome),
        "language": answer.language,
        "citations": answers.citations_json(answer),
        "timings": json.dumps(dict(answer.timings)),
        "model_calls": answer.model_calls,
        "notice": answer.notice,
        "verdict": answer.verdict,
        "missing": list(answer.missing),
        "searched": list(answer.searched),
        "contacts": list(answer.contacts),
    }


def _turn(row: DictRow) -> Turn:
    return Turn(
        id=row["id"],
        session_id=row["session_id"],
        question=row["question"],
        answer=row["answer"],
        outcome=Outcome(row["outcome"]),
        language=row["language"],
        citations=tuple(map(answers.citation_of, row["citations"])),
        created_at=row["created_at"],
        feedback=row["feedback"],
        standalone_question=row["standalone_question"],
        notice=row["notice"],
        verdict=row["verdict"],
        missing=tuple(row["missing"]),
        searched=tuple(row["searched"]),
        contacts=tuple(row["contacts"]),
    )
