"""One run of the agent: what it works with and on whose behalf, its clock, and the count of its model calls.

Everything here lives for one question and is never stored; what a session remembers is in the graph's state.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, Literal
from uuid import UUID

from agent.grounding.answering import Answering
from agent.grounding.citations import Evidence, Numbering
from agent.grounding.verification import Verifier
from agent.kept.recall import Recall
from agent.models.fitting import prompt_budget
from agent.models.metered import MeteredChat
from agent.models.trace import Trace
from agent.questions.subquestions import Queue
from agent.sources.peer import SearchPeer
from agent.sources.retrieval import Retrieval
from core.records import Answer, Filters, Hit, Language, Mode, Principal
from core.settings import Settings
from inference.interfaces import Embedder
from policy.egress import Policy
from storage import audit, collections, structure
from storage.database import Database

# Hits of one search that are kept as evidence, and of the first one that are shown while the model reads.
SEARCH_LIMIT: Final = 8
SHOWN_SOURCES: Final = 5
SUBAGENTS_AT_ONCE: Final = 4

# Collections that an answer names with whom to ask.
_MOST_CONTACTS: Final = 3

Limit = Literal["out_of_time", "out_of_tokens", "out_of_calls", "model_stopped"]


class Retriever:
    """Searches and reads for one principal in what the question is narrowed to; each call has its own connection."""

    def __init__(self, db: Database, retrieval: Retrieval, principal: Principal, filters: Filters) -> None:
        self._db = db
        self._retrieval = retrieval
        self._principal = principal
        self._filters = filters

    @property
    def embedder_id(self) -> str:
        """Whose vectors a search compares."""
        return self._retrieval.embedder_id

    @property
    def embedder(self) -> Embedder:
        """What makes vectors of queries and of what they are compared with."""
        return self._retrieval.embedder

    async def find(self, query: str, document: UUID | None = None) -> list[Hit]:
        """The best hits for a query, best first; `document`: of that one only."""
        filters = self._filters if document is None else replace(self._filters, documents=(document,))
        return await self._retrieval.find(self._principal, query, filters=filters, limit=SEARCH_LIMIT)

    async def around(self, hit: Hit) -> list[Hit]:
        """A hit, what comes after it and what comes before, rights checked anew. Raises NotFound."""
        return await structure.around(self._db, self._principal, self._filters, hit)

    async def shelf(self, about: str | None, most: int) -> tuple[list[structure.Shelved], int]:
        """Documents, and how many there are; `about`: words of title or path."""
        return await structure.shelf(self._db, self._principal, self._filters, about=about, most=most)

    async def outline(self, document_id: UUID) -> list[Hit]:
        """The first chunk under each heading of a document. Raises NotFound."""
        return await structure.outline(self._db, self._principal, self._filters, document_id)

    async def find_text(self, pattern: str) -> list[structure.Found]:
        """Where an exact text stands. Raises InvalidRequest."""
        return await structure.find(self._db, self._principal, self._filters, pattern)

    async def contacts(self, hits: Sequence[Hit]) -> tuple[str, ...]:
        """`collection: whom to ask`, for the collections that these hits come from, for all that were searched where
        there are none; those that name nobody are left out."""
        near = list(dict.fromkeys(hit.collection for hit in hits))
        wanted = near or (None if self._filters.collections is None else list(self._filters.collections))
        visible = {one.name: one for one in await collections.list_visible(self._db, self._principal)}
        named = [visible[name] for name in (visible if wanted is None else wanted) if name in visible]
        return tuple(f"{one.name}: {one.owner_contact}" for one in named if one.owner_contact)[:_MOST_CONTACTS]

    async def note_refusal(self) -> None:
        """Put into the audit log that a tool was refused. Raises StorageError."""
        await audit.record(self._db, self._principal.tenant_id, self._principal.user_id, "tool.refused")


@dataclass(frozen=True, slots=True)
class Limits:
    """Calls that one tool loop may make."""

    model_calls: int
    tool_calls: int


@dataclass(frozen=True, slots=True)
class Task:
    """Something to answer: a question and the passages that answer it; `answering` has graded them."""

    question: str
    handles: tuple[str, ...]
    answering: Answering


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a sub-question. No handles: nothing that answers it was found, or `limit` or `fault` ended it."""

    question: str
    answering: Answering
    handles: tuple[str, ...] = ()
    limit: Limit | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a brief: its heading, and the question that is looked into for it."""

    heading: str
    question: str


@dataclass(slots=True)
class Run:
    """The context that every node of the graph is given. `nested`: it is a part of another run.

    `approvals`: collections that an answer may cite only once somebody approved it. `named`: the handles of the
    passages that a model with tools said in the end to answer.
    """

    question: str
    mode: Mode
    language: Language
    settings: Settings
    policy: Policy
    chat: MeteredChat
    retriever: Retriever
    grader: MeteredChat | None = None
    recall: Recall | None = None
    peer: SearchPeer | None = None
    peer_asked: bool = False
    evidence: Evidence = field(default_factory=Evidence)
    timings: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    sentences: list[str] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)
    trace: Trace = field(default_factory=Trace)
    limit: Limit | None = None
    answer: Answer | None = None
    approvals: frozenset[str] = frozenset()
    nested: bool = False
    searched: list[str] = field(default_factory=list)
    named: tuple[str, ...] = ()
    queue: Queue = field(default_factory=Queue)
    findings: list[Finding] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    sections: tuple[Section, ...] = ()
    missing: tuple[str, ...] = ()
    judged: bool = False
    gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SUBAGENTS_AT_ONCE))
    limits: Limits = field(init=False)
    numbering: Numbering = field(init=False)
    answering: Answering = field(init=False)

    def __post_init__(self) -> None:
        self.chat.meter.trace = self.trace
        self.numbering = Numbering(self.evidence)
        judge = self.grader if self.grader is not None and self.grader.traits.capable else self.chat
        self.answering = Answering(
            self.chat,
            self.evidence,
            self.language,
            self.budget,
            self.grader,
            Verifier(self.evidence, self.retriever.embedder, judge, self.trace),
            self.settings.answer_unsupported,
        )
        self.limits = Limits(self.settings.max_model_calls, self.settings.max_tool_calls)

    def branch(self, question: str, seconds: float, limits: Limits) -> "Run":
        """A run for a part of the question: on behalf of the same principal, under the same policy, over the same hits;
        its clock, its limits and its batches are its own. What it does stands in the same trace."""
        chat = self.chat.branch(seconds)
        made = Run(
            question=question,
            mode="agent",
            language=self.language,
            settings=self.settings,
            policy=self.policy,
            chat=chat,
            retriever=self.retriever,
            grader=None if self.grader is None else chat.beside(self.grader.model),
            evidence=self.evidence.branch(),
            trace=self.trace.part(subtopic=question),
            nested=True,
        )
        made.limits = limits
        return made

    @property
    def budget(self) -> int:
        """New prompt tokens of one model call, about."""
        return prompt_budget(self.settings, self.chat.traits)

    @property
    def awaiting(self) -> tuple[str, ...]:
        """The collections that the answer cites and that ask for approval."""
        cited = () if self.answer is None else (citation.collection for citation in self.answer.citations)
        return tuple(sorted(self.approvals.intersection(cited)))

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the seconds spent inside to a step's timing."""
        before = time.perf_counter()
        try:
            yield
        finally:
            self.timings[step] = self.timings.get(step, 0.0) + time.perf_counter() - before
