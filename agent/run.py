"""One run of the agent: what it works with and on whose behalf, its clock, and the count of its model calls.

Everything here lives for one question and is never stored; what a session remembers is in the graph's state.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, Literal

from agent.answering import Answering
from agent.citations import Evidence, Numbering
from agent.metered import MeteredChat
from agent.retrieval import Retrieval
from agent.routing import Mode
from core.records import Answer, Filters, Hit, Language, Principal
from core.settings import Settings
from policy.egress import Policy
from storage import audit, documents
from storage.database import Database

# Hits of one search that are kept as evidence, and of the first one that are shown while the model reads.
SEARCH_LIMIT: Final = 8
SHOWN_SOURCES: Final = 5

Limit = Literal["out_of_time", "out_of_calls", "model_stopped"]


class Retriever:
    """Searches and reads for one principal in what the question is narrowed to; each call has its own connection."""

    def __init__(self, db: Database, retrieval: Retrieval, principal: Principal, filters: Filters) -> None:
        self._db = db
        self._retrieval = retrieval
        self._principal = principal
        self._filters = filters

    async def find(self, query: str) -> list[Hit]:
        """The best hits for a query, best first."""
        return await self._retrieval.find(self._principal, query, filters=self._filters, limit=SEARCH_LIMIT)

    async def read(self, hit: Hit) -> str:
        """A hit's text in its context, rights checked anew. Raises NotFound."""
        passage = await documents.passage(self._db, self._principal, hit.document_id, hit.chunk_id)
        return "\n".join(filter(None, (passage.before, passage.text, passage.after)))

    async def note_refusal(self) -> None:
        """Put into the audit log that a tool was refused. Raises StorageError."""
        await audit.record(self._db, self._principal.tenant_id, self._principal.user_id, "tool.refused")


@dataclass(slots=True)
class Run:
    """The context that every node of the graph is given."""

    question: str
    mode: Mode
    language: Language
    settings: Settings
    policy: Policy
    chat: MeteredChat
    retriever: Retriever
    evidence: Evidence = field(default_factory=Evidence)
    timings: dict[str, float] = field(default_factory=dict)
    started: float = field(default_factory=time.perf_counter)
    sentences: list[str] = field(default_factory=list)
    shown: set[str] = field(default_factory=set)
    notices: list[str] = field(default_factory=list)
    limit: Limit | None = None
    answer: Answer | None = None
    numbering: Numbering = field(init=False)
    answering: Answering = field(init=False)

    def __post_init__(self) -> None:
        self.numbering = Numbering(self.evidence)
        self.answering = Answering(self.chat, self.evidence, self.language, self.settings.prompt_budget)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the seconds spent inside to a step's timing."""
        before = time.perf_counter()
        try:
            yield
        finally:
            self.timings[step] = self.timings.get(step, 0.0) + time.perf_counter() - before
