"""Asking: the one door of this package. A question goes in, events come out."""

import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from datetime import date
from functools import partial
from typing import Any, Literal, cast
from uuid import UUID

import psycopg
from langchain_core.messages import AnyMessage
from langgraph.checkpoint.base import BaseCheckpointSaver

from agent.cancelling import cancellable
from agent.keeping import kept, steps
from agent.kept import memory
from agent.kept.recall import open_recall
from agent.language.words import say
from agent.models.metered import MeteredChat
from agent.questions.routing import clean_question
from agent.sources.peer import SearchPeer
from agent.sources.retrieval import Retrieval
from agent.workflow.approving import waiting
from agent.workflow.graph import GRAPH_STEPS, build
from agent.workflow.recalling import keep
from agent.workflow.run import Retriever, Run
from agent.workflow.state import State
from core.errors import IntramurosError, StorageError
from core.records import Answer, Answered, Event, Failed, Filters, Mode, Outcome, Principal, Refused, Token
from core.settings import Settings
from core.text import language_of
from inference.select import Models
from policy.egress import Policy
from storage import answering, approvals, checkpoints, runs, sessions, threads
from storage.database import Database

logger = logging.getLogger(__name__)

# What a checkpointer that does not work raises: our own errors, and those of its driver underneath.
_MEMORY_FAULTS = (StorageError, psycopg.Error, OSError)


class Agent:
    """Answers questions from the documents that a principal may read."""

    def __init__(self, db: Database, models: Models, policy: Policy, settings: Settings) -> None:
        self._db = db
        self._models = models
        self._retrieval = Retrieval(db, models.embedder, models.reranker)
        self._policy = policy
        self._settings = settings
        self._peer = SearchPeer(settings, policy) if settings.search_peer_url else None

    async def ask(
        self,
        principal: Principal,
        question: str,
        *,
        session_id: UUID | None = None,
        collections: Sequence[str] | None = None,
        mode: Mode = "auto",
        as_of: date | None = None,
        history: Sequence[AnyMessage] = (),
    ) -> AsyncGenerator[Event, None]:
        """Answer one question from what is in force on a day (today); the last event is Answered, Refused or Failed.

        With a session, what was said before is understood and the turn is stored; without one, `history` (whole
        exchanges, see `memory.remember`) is what was said before. Closing the iterator stops the model and stores no
        turn; so does `storage.runs.cancel`, from any process. Errors never leave as exceptions: they are the Failed
        event, its code that of the error (`session_busy`, `not_found`, `cancelled`, `model_unavailable` ...).
        """
        started = time.perf_counter()
        language = language_of(question)
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(answering.answering(self._db))
                if session_id is not None:
                    await sessions.get(self._db, principal, session_id)
                    await stack.enter_async_context(sessions.running(self._db, principal, session_id))
                    history = await self._history(principal, session_id)
                filters = Filters(None if collections is None else tuple(collections), as_of=as_of)
                run = await self._opened(principal, question, mode, filters)
                remembers = session_id is not None or bool(run.approvals)
                begun = kept(self._db, principal, session_id, run, checkpointed=remembers)
                run_id = await stack.enter_async_context(begun)
                asked = partial(runs.cancelling, self._db, principal, run_id)
                await stack.enter_async_context(cancellable(asked))
                saver = await self._saver(principal) if remembers else None
                events = self._events(run, saver, threads.thread_id(principal, run_id), history)
                async for event in await stack.enter_async_context(aclosing(events)):
                    yield event
                await keep(run)
                answer = await self._stored(principal, session_id, run_id, run, started)
            yield Refused(answer) if answer.outcome is Outcome.REFUSED else Answered(answer)
        except IntramurosError as error:
            logger.warning("ask failed", extra={"code": error.code})
            yield Failed(error.code, error.message)
        except Exception:  # the edge of the package: a defect must end the stream with words, not a broken connection
            logger.exception("ask failed")
            yield Failed(IntramurosError.code, say("failed", language))

    async def _opened(self, principal: Principal, question: str, mode: Mode, filters: Filters) -> Run:
        """A run with what its principal may be given again, and what only after an approval."""
        run = self._run(clean_question(question), mode, Retriever(self._db, self._retrieval, principal, filters))
        run.recall = open_recall(self._db, principal, filters, self._models, self._policy, self._settings)
        run.approvals = await approvals.asking(self._db, principal)
        return run

    def _run(self, question: str, mode: Mode, retriever: Retriever) -> Run:
        settings, models = self._settings, self._models
        chat = MeteredChat(models.chat, settings.ask_timeout, budget=settings.token_budget, fallback=models.fallback)
        return Run(
            question=question,
            mode=mode,
            language=language_of(question),
            settings=settings,
            policy=self._policy,
            chat=chat,
            retriever=retriever,
            grader=chat.beside(models.grader),
            peer=self._peer,
        )

    async def _history(self, principal: Principal, session_id: UUID) -> list[AnyMessage]:
        most = self._settings.max_history // 2
        return memory.of_turns(await sessions.latest(self._db, principal, session_id, most))

    async def _events(
        self, run: Run, saver: BaseCheckpointSaver[Any] | None, thread: str, history: Sequence[AnyMessage]
    ) -> AsyncGenerator[Event, None]:
        """The graph's events. What may have to be approved is held back until it is known that it need not be."""
        held: list[Event] = []
        try:
            async with aclosing(stream(run, saver, thread, history)) as events:
                async for event in events:
                    if isinstance(event, Token) and run.approvals & run.evidence.collections:
                        held.append(event)
                    else:
                        yield event
        except _MEMORY_FAULTS as error:
            # The graph writes its state when it ends: an answer that is there is given all the same.
            if run.answer is None:
                raise
            logger.warning("checkpoint not written", extra={"error": type(error).__name__})
        if not run.awaiting:
            for event in held:
                yield event

    async def _saver(self, principal: Principal) -> BaseCheckpointSaver[Any] | None:
        """The checkpointer, tried once to know that it works; None where it does not: answers do without."""
        try:
            saver = checkpoints.open_saver(self._db, principal)
            await saver.aget_tuple({"configurable": {"thread_id": ""}})
        except _MEMORY_FAULTS as error:
            logger.warning("no checkpoints", extra={"error": type(error).__name__})
            return None
        return saver

    async def _stored(
        self, principal: Principal, session_id: UUID | None, run_id: UUID, run: Run, started: float
    ) -> Answer:
        """The answer as the asker is shown it, stored with its trace; one that waits has a session to wait in."""
        answer = self._finished(run, started)
        shown, pending = answer, None
        if run.awaiting:
            shown, pending = waiting(answer, run.awaiting), (answer, run.awaiting)
            if session_id is None:
                session_id = (await sessions.create(self._db, principal, "")).id
        turn = await runs.answered(self._db, principal, run_id, session_id, shown, steps(run), pending=pending)
        return shown if turn is None else replace(shown, session_id=turn.session_id, turn_id=turn.id)

    def _finished(self, run: Run, started: float) -> Answer:
        if run.answer is None:
            raise IntramurosError
        notices = [say(key, run.language) for key in run.notices]
        total = time.perf_counter() - started
        answer = replace(
            run.answer,
            timings={**run.timings, "total": total},
            notice=" ".join(filter(None, (run.answer.notice, *notices))) or None,
        )
        logger.info(
            "asked",
            extra={"outcome": answer.outcome.value, "model_calls": answer.model_calls, "seconds": round(total, 2)},
        )
        return answer


async def stream(
    run: Run, saver: BaseCheckpointSaver[Any] | None, thread: str, history: Sequence[AnyMessage] = ()
) -> AsyncGenerator[Event, None]:
    """Run the graph after these messages; closing this stops the model that is at work."""
    graph = build(saver)
    # One checkpoint for a run, when it ends or stops to be approved.
    durability: Literal["exit"] | None = "exit" if saver is not None else None
    state: State = {"question": run.question, "messages": list(history)}
    config: Any = {"recursion_limit": GRAPH_STEPS, "configurable": {"thread_id": thread}}
    stream = graph.astream(state, config, context=run, stream_mode="custom", durability=durability)
    async with aclosing(cast("Any", stream)) as events:
        async for event in events:
            yield event
