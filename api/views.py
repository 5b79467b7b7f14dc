"""The shapes that leave the program: what a route answers, and what the command line prints with --json."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from api.rendering import render
from core.records import (
    Answer,
    Box,
    Citation,
    Collection,
    Document,
    DocumentState,
    Hit,
    Language,
    Outcome,
    Passage,
    Principal,
    Receipt,
    Role,
    Session,
    Turn,
)
from storage.documents import StoredChunk


class View(BaseModel):
    """A response body. Built from a record's attributes of the same names."""

    model_config = ConfigDict(from_attributes=True, frozen=True)


class UserView(View):
    """Who is logged in."""

    name: str
    role: Role

    @classmethod
    def of(cls, principal: Principal) -> Self:
        return cls.model_validate(principal)


class CollectionView(View):
    """A collection that one can ask."""

    id: UUID
    name: str
    documents: int
    updated_at: datetime | None

    @classmethod
    def of(cls, collection: Collection) -> Self:
        return cls.model_validate(collection)


class DocumentView(View):
    """A document and its state."""

    id: UUID
    collection: str
    path: str
    title: str
    media_type: str
    size: int
    state: DocumentState
    reason_code: str | None
    reason: str | None
    pages: int | None
    chunks: int
    language: str | None
    effective_from: date | None
    effective_to: date | None
    supersedes: str | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, document: Document) -> Self:
        return cls.model_validate(document)


class BoxView(View):
    """A rectangle on a page, in fractions of it, origin at the top left."""

    page: int
    left: float
    top: float
    right: float
    bottom: float

    @classmethod
    def of(cls, box: Box) -> Self:
        return cls.model_validate(box)


class ChunkView(View):
    """A chunk as the machine read it."""

    id: int
    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    kind: str
    page: int | None

    @classmethod
    def of(cls, stored: StoredChunk) -> Self:
        chunk = stored.chunk
        return cls(
            id=stored.chunk_id,
            ordinal=chunk.ordinal,
            text=chunk.text,
            heading_path=chunk.heading_path,
            kind=chunk.kind,
            page=chunk.page,
        )


class PassageView(View):
    """A chunk in its context."""

    document: DocumentView
    chunk_id: int
    heading_path: tuple[str, ...]
    page: int | None
    boxes: tuple[BoxView, ...]
    before: str
    text: str
    after: str

    @classmethod
    def of(cls, passage: Passage) -> Self:
        return cls.model_validate(passage)


class ScoresView(View):
    """Similarity of the vectors, BM25, and both fused; null where a hit was not in that list."""

    vector: float | None
    bm25: float | None
    fused: float


class HitView(View):
    """One passage found. `document` is its document's path."""

    rank: int
    document: str
    document_id: UUID
    chunk_id: int
    title: str
    collection: str
    heading_path: tuple[str, ...]
    page: int | None
    text: str
    kind: str
    effective_from: date | None
    effective_to: date | None
    updated_at: datetime
    scores: ScoresView

    @classmethod
    def of(cls, hit: Hit) -> Self:
        return cls(
            rank=hit.rank,
            document=hit.path,
            document_id=hit.document_id,
            chunk_id=hit.chunk_id,
            title=hit.title,
            collection=hit.collection,
            heading_path=hit.heading_path,
            page=hit.page,
            text=hit.text,
            kind=hit.kind,
            effective_from=hit.effective_from,
            effective_to=hit.effective_to,
            updated_at=hit.updated_at,
            scores=ScoresView.model_validate(hit.scores),
        )


class SearchView(View):
    """What a search found, best first."""

    query: str
    hits: tuple[HitView, ...]

    @classmethod
    def of(cls, query: str, hits: Sequence[Hit]) -> Self:
        return cls(query=query, hits=tuple(map(HitView.of, hits)))


class CitationView(View):
    """What [n] stands for. `document` is the path; `quote` is the passage that supports the sentence."""

    n: int
    document: str
    document_id: UUID
    chunk_id: int
    title: str
    heading_path: tuple[str, ...]
    page: int | None
    quote: str

    @classmethod
    def of(cls, citation: Citation) -> Self:
        return cls.model_validate(citation)


class AnswerView(View):
    """One finished turn. `answer` is Markdown with [n], `answer_html` the same, made safe to show."""

    outcome: Outcome
    answer: str
    answer_html: str
    language: Language
    question: str
    standalone_question: str
    citations: tuple[CitationView, ...]
    timings: dict[str, float]
    model_calls: int
    notice: str | None
    nearest: tuple[HitView, ...]
    session_id: UUID | None
    turn_id: UUID | None

    @classmethod
    def of(cls, answer: Answer) -> Self:
        return cls(
            outcome=answer.outcome,
            answer=answer.answer,
            answer_html=render(answer.answer, answer.citations),
            language=answer.language,
            question=answer.question,
            standalone_question=answer.standalone_question,
            citations=tuple(map(CitationView.of, answer.citations)),
            timings=dict(answer.timings),
            model_calls=answer.model_calls,
            notice=answer.notice,
            nearest=tuple(map(HitView.of, answer.nearest)),
            session_id=answer.session_id,
            turn_id=answer.turn_id,
        )


class TurnView(View):
    """One stored question with its answer."""

    turn_id: UUID
    question: str
    answer: str
    answer_html: str
    outcome: Outcome
    language: Language
    citations: tuple[CitationView, ...]
    created_at: datetime
    feedback: int | None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        return cls(
            turn_id=turn.id,
            question=turn.question,
            answer=turn.answer,
            answer_html=render(turn.answer, turn.citations),
            outcome=turn.outcome,
            language=turn.language,
            citations=tuple(map(CitationView.of, turn.citations)),
            created_at=turn.created_at,
            feedback=turn.feedback,
        )

    def without_quotes(self, hidden: frozenset[UUID]) -> Self:
        """The same turn, saying nothing of what the documents in `hidden` hold beyond the answer once given."""
        kept = (
            citation.model_copy(update={"quote": ""}) if citation.document_id in hidden else citation
            for citation in self.citations
        )
        return self.model_copy(update={"citations": tuple(kept)})


class SessionView(View):
    """A conversation, without its turns."""

    id: UUID
    title: str
    turns: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, session: Session) -> Self:
        return cls.model_validate(session)


class ConversationView(View):
    """A conversation with its turns, oldest first."""

    session: SessionView
    turns: tuple[TurnView, ...]


class ReceiptView(View):
    """What a deletion removed, by kind."""

    what: str
    counts: dict[str, int]

    @classmethod
    def of(cls, receipt: Receipt) -> Self:
        return cls(what=receipt.what, counts=dict(receipt.counts))


class OverviewView(View):
    """What one can ask, and three questions to begin with."""

    collections: tuple[CollectionView, ...]
    documents: int
    updated_at: datetime | None
    questions: tuple[str, ...]


class CollectionsView(View):
    """Collections by name."""

    collections: tuple[CollectionView, ...]


class DocumentsView(View):
    """Documents, and the largest file that may be uploaded, in bytes."""

    documents: tuple[DocumentView, ...]
    max_bytes: int


class ChunksView(View):
    """A document's chunks in reading order."""

    chunks: tuple[ChunkView, ...]


class SessionsView(View):
    """One's own conversations, the latest first."""

    sessions: tuple[SessionView, ...]


class HealthView(View):
    """The process answers."""

    status: str = "ok"


class CheckView(View):
    """One thing that must be in order; `detail` says what to do where it is not."""

    name: str
    ok: bool
    code: str | None = None
    detail: str | None = None


class ReadyView(View):
    """Whether questions can be answered now."""

    ready: bool
    checks: tuple[CheckView, ...]


def answer_json(answer: Answer) -> dict[str, Any]:
    """An answer as JSON values."""
    return AnswerView.of(answer).model_dump(mode="json")


def search_json(query: str, hits: Sequence[Hit]) -> dict[str, Any]:
    """A search as JSON values."""
    return SearchView.of(query, hits).model_dump(mode="json")


def documents_json(documents: Sequence[Document], max_bytes: int) -> dict[str, Any]:
    """A list of documents as JSON values."""
    return DocumentsView(documents=tuple(map(DocumentView.of, documents)), max_bytes=max_bytes).model_dump(mode="json")
