"""What the tests of the agent share: hits out of nothing, a retriever over them, a run, and its events."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from langgraph.checkpoint.base import BaseCheckpointSaver

from agent.ask import stream
from agent.models.metered import MeteredChat
from agent.workflow.run import Run
from core.records import Event, Hit, Mode, Scores
from core.settings import Settings
from core.text import language_of
from policy.egress import Policy
from storage.structure import Found, Shelved, checked, place
from tests.fakes.chat import ScriptedChat
from tests.fakes.embedder import FakeEmbedder

SETTINGS = Settings.load()
SURE = {"The": 0.97, "NOT": 0.01}
UNSURE = {"The": 0.80, "NOT": 0.20}
REFUSES = {"NOT": 0.95, "The": 0.02}
SURE_ZH = {"每": 0.99, "未": 0.001}
REFUSES_ZH = {"未": 0.95}


def hit(text: str, *, title: str = "Travel policy", chunk: int = 1, heading: Sequence[str] = (), **fields: Any) -> Hit:
    """A hit as search would return it."""
    values: dict[str, Any] = {
        "rank": chunk,
        "chunk_id": chunk,
        "document_id": uuid5(NAMESPACE_URL, title),
        "title": title,
        "path": f"{title}.md",
        "collection": "handbook",
        "heading_path": tuple(heading),
        "page": None,
        "text": text,
        "section_text": text,
        "kind": "text",
        "effective_from": None,
        "effective_to": None,
        "updated_at": datetime(2026, 1, 1, tzinfo=UTC),
        "scores": Scores(0.9, 3.0, 1.0),
    }
    return Hit(**(values | fields))


class FakeRetriever:
    """Finds what it was given: the same hits for every query, or by query. `queries` lists what was searched."""

    def __init__(self, hits: Sequence[Hit] | Mapping[str, Sequence[Hit]], fault: Exception | None = None) -> None:
        self.hits = hits
        self.fault = fault
        self.neighbours: list[Hit] = []
        self.queries: list[str] = []
        self.embedder_id = "fake:bag-64:1"
        self.embedder = FakeEmbedder()
        self.refusals = 0
        self.noting: Exception | None = None

    async def find(self, query: str, document: UUID | None = None) -> list[Hit]:
        self.queries.append(query)
        if self.fault is not None and len(self.queries) > 1:
            raise self.fault
        if document is not None:
            return [one for one in self._all() if one.document_id == document]
        return list(self.hits.get(query, ()) if isinstance(self.hits, Mapping) else self.hits)

    async def around(self, hit: Hit) -> list[Hit]:
        return [hit, *self.neighbours]

    async def shelf(self, about: str | None, most: int) -> tuple[list[Shelved], int]:
        found = {one.document_id: one for one in self._all() if about is None or about in (one.title, one.path)}
        shown = [Shelved(key, one.title, one.path, one.collection, one.page, None, None) for key, one in found.items()]
        return shown[:most], len(shown)

    async def outline(self, document_id: UUID) -> list[Hit]:
        return [one for one in self._all() if one.document_id == document_id]

    async def find_text(self, pattern: str) -> list[Found]:
        wanted = checked(pattern)
        places = [(one, place(one.text, wanted)) for one in self._all()]
        return [Found(one, one.start + at[0], one.start + at[1]) for one, at in places if at is not None]

    async def contacts(self, hits: Sequence[Hit]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(f"{one.collection}: Ada" for one in hits))

    def _all(self) -> list[Hit]:
        each = self.hits.values() if isinstance(self.hits, Mapping) else [self.hits]
        return list({one.chunk_id: one for hits in each for one in hits}.values())

    async def note_refusal(self) -> None:
        if self.noting is not None:
            raise self.noting
        self.refusals += 1


def make_run(
    chat: ScriptedChat,
    hits: Sequence[Hit] | Mapping[str, Sequence[Hit]] = (),
    question: str = "How much is the hotel cap in Shanghai?",
    *,
    mode: Mode = "auto",
    settings: Settings = SETTINGS,
    retriever: FakeRetriever | None = None,
    policy: Policy | None = None,
) -> Run:
    """A run over fakes; needs a running loop."""
    return Run(
        question=question,
        mode=mode,
        language=language_of(question),
        settings=settings,
        policy=policy or Policy.of(settings),
        chat=MeteredChat(chat, settings.ask_timeout),
        retriever=retriever or FakeRetriever(hits),  # type: ignore[arg-type] # the fake stands where it is used
    )


def decision(
    messages: Sequence[Any],
    *,
    questions: Sequence[str] = (),
    missing: Sequence[str] = (),
    verdict: str = "answer",
    route: str = "quick",
) -> str | None:
    """What a capable model decides when it is asked to, None where it is asked for something else. Without `questions`
    a question stays whole."""
    system, asked = messages[0].content, messages[-1].content
    replies: dict[str, Any] = {
        "route, reason": {"route": route, "reason": "because"},
        "missing, verdict": {"missing": list(missing), "verdict": verdict},
        "questions.": {"questions": list(questions) or [asked]},
    }
    return next((json.dumps(made) for form, made in replies.items() if f"Reply with JSON: {form}" in system), None)


async def events_of(run: Run, saver: BaseCheckpointSaver[Any] | None = None, thread: str = "t") -> list[Event]:
    """All events of the graph over a run."""
    return [event async for event in stream(run, saver, thread)]


async def never(*_: Any, **__: Any) -> Any:
    """A model that hangs."""
    await asyncio.Event().wait()
