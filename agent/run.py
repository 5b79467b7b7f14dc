"""One run of the agent: what it works with and on whose behalf, its clock, and the count of its model calls.

Everything here lives for one question and is never stored; what a session remembers is in the graph's state.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Literal

from agent.answering import Answering
from agent.citations import Evidence, Numbering
from agent.metered import MeteredChat
from agent.routing import Mode
from core.records import Answer, Hit, Language, Principal
from core.settings import Settings
from inference.interfaces import Embedder
from policy.egress import Policy
from storage import documents
from storage.database import Database
from storage.search import search

# Hits of one search that are kept as evidence, and of the first one that are shown while the model reads.
SEARCH_LIMIT: Final = 8
SHOWN_SOURCES: Final = 5

Limit = Literal["out_of_time", "out_of_calls", "model_stopped"]


class Retriever:
    """Searches and reads for one principal in the collections asked about; each call has its own connection.

    With `as_of` it searches in what was in force on that day.
    """

    def __init__(
        self,
        db: Database,
        embedder: Embedder,
        principal: Principal,
        collections: Sequence[str] | None,
        as_of: date | None = None,
    ) -> None:
        self._db = db
        self._embedder = embedder
        self._principal = principal
        self._collections = collections
        self._as_of = as_of

    async def find(self, query: str) -> list[Hit]:
        """The best hits for a query, best first."""
        vector = await self._embedder.embed_query(query)
        return await search(
            self._db,
            self._principal,
            query,
            vector,
            embedder_id=self._embedder.id,
            collections=self._collections,
            limit=SEARCH_LIMIT,
            as_of=self._as_of,
        )

    async def read(self, hit: Hit) -> str:
        """A hit's text in its context, rights checked anew. Raises NotFound."""
        passage = await documents.passage(self._db, self._principal, hit.document_id, hit.chunk_id)
        return "\n".join(filter(None, (passage.before, passage.text, passage.after)))


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
