"""Asking: the one door of this package. A question goes in, events come out."""

import logging
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from datetime import date
from typing import Any, Literal, cast
from uuid import UUID

import psycopg
from langgraph.checkpoint.base import BaseCheckpointSaver

from agent.graph import GRAPH_STEPS, build
from agent.metered import MeteredChat
from agent.retrieval import Retrieval
from agent.routing import Mode
from agent.run import Retriever, Run
from agent.state import State
from agent.words import say
from core.errors import IntramurosError, StorageError
from core.records import Answer, Answered, Event, Failed, Filters, Outcome, Principal, Refused
from core.settings import Settings
from core.text import language_of
from inference.select import Models
from policy.egress import Policy
from storage import answering, checkpoints, sessions
from storage.database import Database

logger = logging.getLogger(__name__)

# What a checkpointer that does not work raises: our own errors, and those of its driver underneath.
_MEMORY_FAULTS = (StorageError, psycopg.Error, OSError)


class Agent:
    """Answers questions from the documents that a principal may read."""

    def __init__(self, db: Database, models: Models, policy: Policy, settings: Settings) -> None:
        self._db = db
        self._chat = models.chat
        self._retrieval = Retrieval(db, models.embedder, models.reranker)
        self._policy = policy
        self._settings = settings

    async def ask(
        self,
        principal: Principal,
        question: str,
        *,
        session_id: UUID | None = None,
        collections: Sequence[str] | None = None,
        mode: Mode = "auto",
        as_of: date | None = None,
    ) -> AsyncGenerator[Event, None]:
        """Answer one question from what is in force on a day (today); the last event is Answered, Refused or Failed.

        With a session, what was said before is understood and the turn is stored. Closing the iterator stops the
        model and stores nothing. Errors never leave as exceptions: they are the Failed event, its code that of the
        error (`session_busy`, `not_found`, `invalid_request`, `model_unavailable` ...).
        """
        started = time.perf_counter()
        language = language_of(question)
        try:
            async with AsyncExitStack() as stack:
                await stack.enter_async_context(answering.answering(self._db))
                if session_id is not None:
                    await sessions.get(self._db, principal, session_id)
                    await stack.enter_async_context(sessions.running(self._db, principal, session_id))
                filters = Filters(None if collections is None else tuple(collections), as_of=as_of)
                retriever = Retriever(self._db, self._retrieval, principal, filters)
                run = self._run(question, mode, retriever)
                events = self._events(principal, run, session_id)
                async for event in await stack.enter_async_context(aclosing(events)):
                    yield event
                answer = await self._stored(principal, session_id, run, started)
            yield Refused(answer) if answer.outcome is Outcome.REFUSED else Answered(answer)
        except IntramurosError as error:
            logger.warning("ask failed", extra={"code": error.code})
            yield Failed(error.code, error.message)
        except Exception:  # the edge of the package: a defect must end the stream with words, not a broken connection
            logger.exception("ask failed")
            yield Failed(IntramurosError.code, say("failed", language))

    def _run(self, question: str, mode: Mode, retriever: Retriever) -> Run:
        return Run(
            question=question,
            mode=mode,
            language=language_of(question),
            settings=self._settings,
            policy=self._policy,
            chat=MeteredChat(self._chat, self._settings.ask_timeout),
            retriever=retriever,
        )

    async def _events(self, principal: Principal, run: Run, session_id: UUID | None) -> AsyncGenerator[Event, None]:
        """The graph's events, with the session's memory where it works and without it where it does not."""
        thread = sessions.thread_id(principal, session_id) if session_id is not None else ""
        saver = await self._saver(principal, thread, run) if session_id is not None else None
        try:
            async with aclosing(stream(run, saver, thread)) as events:
                async for event in events:
                    yield event
            if saver is not None and session_id is not None:
                await checkpoints.prune(self._db, principal, session_id)
        except _MEMORY_FAULTS as error:
            # The graph writes its memory when it ends: an answer that is there is given all the same.
            if run.answer is None:
                raise
            logger.warning("memory not kept", extra={"error": type(error).__name__})
            run.notices.append("no_memory")

    async def _saver(self, principal: Principal, thread: str, run: Run) -> BaseCheckpointSaver[Any] | None:
        """The checkpointer, read once to know that it works; None where it does not."""
        try:
            saver = checkpoints.open_saver(self._db, principal)
            await saver.aget_tuple({"configurable": {"thread_id": thread}})
        except _MEMORY_FAULTS as error:
            logger.warning("memory unavailable", extra={"error": type(error).__name__})
            run.notices.append("no_memory")
            return None
        return saver

    async def _stored(self, principal: Principal, session_id: UUID | None, run: Run, started: float) -> Answer:
        answer = self._finished(run, started)
        if session_id is None:
            return answer
        turn = await sessions.add_turn(self._db, principal, session_id, answer)
        return replace(answer, session_id=session_id, turn_id=turn.id)

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


async def stream(run: Run, saver: BaseCheckpointSaver[Any] | None, thread: str) -> AsyncGenerator[Event, None]:
    """Run the graph; closing this stops the model that is at work."""
    graph = build(saver)
    # One checkpoint for a turn, when it ends.
    durability: Literal["exit"] | None = "exit" if saver is not None else None
    state: State = {"question": run.question}
    config: Any = {"recursion_limit": GRAPH_STEPS, "configurable": {"thread_id": thread}}
    stream = graph.astream(state, config, context=run, stream_mode="custom", durability=durability)
    async with aclosing(cast("Any", stream)) as events:
        async for event in events:
            yield event
