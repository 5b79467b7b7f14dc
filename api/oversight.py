"""The shapes of what administrators and approvers see of other people's questions."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from api.rendering import render
from api.views import CitationView, TurnView, View, pinned
from core.records import Language, Outcome, Pending, Principal, RunInfo, RunState, RunTrace, Step
from storage import approvals, pinning
from storage.database import Database
from storage.pinning import Place, Standing


class RunView(View):
    """When whose question ran and what it took; not what was asked."""

    id: UUID
    user: str
    session_id: UUID | None
    turn_id: UUID | None
    mode: str
    state: RunState
    outcome: Outcome | None
    code: str | None
    model_calls: int
    prompt_tokens: int
    completion_tokens: int
    ms: int | None
    started_at: datetime

    @classmethod
    def of(cls, info: RunInfo) -> Self:
        return cls.model_validate(info)


class RunsView(View):
    """The last runs, the latest first."""

    runs: tuple[RunView, ...]

    @classmethod
    def of(cls, found: Sequence[RunInfo]) -> Self:
        return cls(runs=tuple(map(RunView.of, found)))


class StepView(View):
    """One step of a run, `at_ms` milliseconds after it began."""

    kind: str
    at_ms: int
    data: dict[str, Any]

    @classmethod
    def of(cls, step: Step) -> Self:
        return cls(kind=step.kind, at_ms=step.at_ms, data=dict(step.data))


class TraceView(View):
    """A whole run: what was asked, every step, and the turn that came of it."""

    run: RunView
    question: str
    steps: tuple[StepView, ...]
    turn: TurnView | None

    @classmethod
    def of(cls, trace: RunTrace) -> Self:
        return cls(
            run=RunView.of(trace.info),
            question=trace.question,
            steps=tuple(map(StepView.of, trace.steps)),
            turn=None if trace.turn is None else TurnView.of(trace.turn),
        )


class PendingView(View):
    """An answer that waits to be approved, and which of the collections it cites ask for that."""

    turn_id: UUID
    user: str
    asked_at: datetime
    collections: tuple[str, ...]
    question: str
    answer: str
    answer_html: str
    language: Language
    citations: tuple[CitationView, ...]
    notice: str | None
    missing: tuple[str, ...]

    @classmethod
    def of(cls, pending: Pending, standings: Mapping[Place, Standing]) -> Self:
        """As somebody sees it to whom the citations stand so."""
        answer = pending.answer
        return cls(
            turn_id=pending.turn_id,
            user=pending.user,
            asked_at=pending.asked_at,
            collections=pending.collections,
            question=answer.question,
            answer=answer.answer,
            answer_html=render(answer.answer, answer.citations),
            language=answer.language,
            citations=tuple(pinned(CitationView.of(each), standings) for each in answer.citations),
            notice=answer.notice,
            missing=answer.missing,
        )


class ApprovalsView(View):
    """The first answers that wait for one's decision, oldest first, and how many there are."""

    approvals: tuple[PendingView, ...]
    waiting: int


async def waiting_for(db: Database, principal: Principal) -> ApprovalsView:
    """What waits for a decision of the principal's."""
    found = await approvals.pending(db, principal)
    # Fewer than are listed at once are all that wait.
    count = len(found) if len(found) < approvals.MOST else await approvals.waiting(db, principal) or 0
    return ApprovalsView(approvals=await pending_views(db, principal, found), waiting=count)


async def pending_views(db: Database, principal: Principal, found: Sequence[Pending]) -> tuple[PendingView, ...]:
    """These answers, each citation with what became of it, as the principal sees them."""
    cited = [citation for held in found for citation in held.answer.citations]
    standings = await pinning.standings(db, principal, cited)
    return tuple(PendingView.of(held, standings) for held in found)
