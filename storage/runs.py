"""Runs: each question while it is answered, what became of it, and how, step by step.

A row stands from the beginning: where a process is killed, the row says so to whoever looks at the session next.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from psycopg.rows import DictRow

from core.records import Answer, Outcome, Pending, Principal, RunInfo, RunState, Step, Turn
from storage import answers, sessions, threads
from storage.database import Database, Transaction, typed_row

# After so many seconds a run outside any session that said nothing more is taken for dead.
DEAD_AFTER: Final = 24 * 3600.0


async def begin(
    db: Database, principal: Principal, session_id: UUID | None, question: str, mode: str, *, checkpointed: bool
) -> UUID:
    """Note that a question is being answered; its run's id. Call it while holding the session, if there is one."""
    async with db.transaction(principal.tenant_id) as tx:
        if session_id is not None:
            # Who holds the session knows that whatever else seems to run in it was killed.
            await tx.run("runs.abort", session=session_id)
            title = sessions.title_of(question)
            await tx.run("sessions.touch", user=principal.user_id, id=session_id, title=title)
        row = await tx.row(
            "runs.begin",
            user=principal.user_id,
            session=session_id,
            question=question,
            mode=mode,
            checkpointed=checkpointed,
        )
    run_id: UUID = typed_row(row)["id"]
    return run_id


async def answered(
    db: Database,
    principal: Principal,
    run_id: UUID,
    session_id: UUID | None,
    answer: Answer,
    steps: Sequence[Step],
    *,
    pending: tuple[Answer, Sequence[str]] | None = None,
) -> Turn | None:
    """End a run with an answer: its turn (where there is a session) and its trace, both or neither.

    `pending`: the answer that `answer` stands for until it is approved, and the collections that ask for that.
    """
    async with db.transaction(principal.tenant_id) as tx:
        turn = None if session_id is None else await sessions.put_turn(tx, principal, session_id, answer)
        if pending is not None and turn is not None:
            held, asking = pending
            await tx.run(
                "approvals.ask",
                turn=turn.id,
                run=run_id,
                user=principal.user_id,
                collections=list(asking),
                answer=answers.answer_json(replace(held, session_id=None)),
            )
        state = RunState.WAITING if pending is not None else RunState.FINISHED
        await _end(tx, run_id, state, steps, turn=turn, outcome=answer.outcome)
    return turn


async def ended(
    db: Database, principal: Principal, run_id: UUID, state: RunState, steps: Sequence[Step], code: str | None = None
) -> None:
    """End a run that has no answer: it failed with this code, or was cancelled."""
    async with db.transaction(principal.tenant_id) as tx:
        await _end(tx, run_id, state, steps, code=code)


async def cancel(db: Database, principal: Principal, session_id: UUID) -> bool:
    """Ask whichever process answers in this session to stop; whether something was running. Raises NotFound."""
    async with db.transaction(principal.tenant_id) as tx:
        await sessions.own(tx, principal, session_id)
        return await tx.run("runs.cancel", session=session_id) > 0


async def cancelling(db: Database, principal: Principal, run_id: UUID) -> bool:
    """Whether somebody asked for this run to stop."""
    async with db.transaction(principal.tenant_id) as tx:
        row = await tx.row("runs.cancelling", run=run_id)
    return row is None or bool(row["cancelling"])


async def repair(db: Database, principal: Principal, session_id: UUID) -> None:
    """Say of a run whose process was killed that it was: what still seems to run in a session that nobody holds."""
    left = await unanswered(db, principal, session_id)
    if left is None or left[0] is not RunState.RUNNING:
        return  # a session must not be held, were it for a moment, where there is nothing to repair
    async with sessions.holding(db, principal, session_id) as free:
        if free:
            async with db.transaction(principal.tenant_id) as tx:
                await tx.run("runs.abort", session=session_id)


async def unanswered(db: Database, principal: Principal, session_id: UUID) -> tuple[RunState, str] | None:
    """The last question of a session where it has no turn, and what became of it. None where all have one."""
    async with db.transaction(principal.tenant_id) as tx:
        row = await tx.row("runs.last", user=principal.user_id, session=session_id)
    return (RunState(row["state"]), row["question"]) if row and row["turn_id"] is None else None


async def prune(db: Database, tenant_id: UUID, *, checkpoint_days: int, trace_days: int) -> dict[str, int]:
    """Remove checkpoints and traces that are older than this, those of runs that wait for approval excepted.

    Rows removed by kind. Safe beside others who do the same.
    """
    days = min(checkpoint_days, trace_days) if trace_days else checkpoint_days
    counts = {"checkpoints": 0, "traces": 0}
    async with db.transaction(tenant_id) as tx:
        await tx.run("runs.abort_old", seconds=DEAD_AFTER)
        owners = [row["user_id"] for row in await tx.rows("runs.checkpointed", days=days)]
    for user in owners:
        # Row security shows checkpoints to their user alone.
        async with db.transaction(tenant_id, user) as tx:
            old = [row["id"] for row in await tx.rows("runs.forget", user=user, days=days)]
            counts["checkpoints"] += (await threads.remove(tx, user, old))["checkpoints"]
    async with db.transaction(tenant_id) as tx:
        await tx.run("kept.prune")
        counts["traces"] = await tx.run("runs.delete_old", days=trace_days)
    return counts


async def _end(
    tx: Transaction,
    run_id: UUID,
    state: RunState,
    steps: Sequence[Step],
    *,
    turn: Turn | None = None,
    outcome: Outcome | None = None,
    code: str | None = None,
) -> None:
    calls = [step.data for step in steps if step.kind == "model"]
    await tx.run(
        "runs.end",
        run=run_id,
        state=str(state),
        turn=turn.id if turn else None,
        session=turn.session_id if turn else None,
        outcome=None if outcome is None else str(outcome),
        code=code,
        steps=steps_json(steps),
        model_calls=len(calls),
        prompt_tokens=sum(int(call.get("prompt_tokens") or 0) for call in calls),
        completion_tokens=sum(int(call.get("completion_tokens") or 0) for call in calls),
    )


def steps_json(steps: Sequence[Step]) -> str:
    """Steps as their column holds them. NUL, which a text of the database cannot hold, is left out."""
    told = [{"kind": step.kind, "at_ms": step.at_ms, "data": dict(step.data)} for step in steps]
    return json.dumps(told, default=str).replace("\\u0000", "")


def info_of(row: DictRow) -> RunInfo:
    return RunInfo(
        id=row["id"],
        user=row["user"],
        user_id=row["user_id"],
        session_id=row["session_id"],
        turn_id=row["turn_id"],
        mode=row["mode"],
        state=RunState(row["state"]),
        outcome=None if row["outcome"] is None else Outcome(row["outcome"]),
        code=row["code"],
        model_calls=row["model_calls"],
        prompt_tokens=row["prompt_tokens"],
        completion_tokens=row["completion_tokens"],
        ms=row["ms"],
        started_at=row["started_at"],
    )


def pending_of(row: DictRow) -> Pending:
    return Pending(
        turn_id=row["turn_id"],
        run_id=row["run_id"],
        user_id=row["user_id"],
        user=row["user"],
        answer=answers.answer_of(row["answer"]),
        collections=tuple(row["collections"]),
        asked_at=row["asked_at"],
    )
