"""The shapes that leave the program: what a route answers, and what the command line prints with --json."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from api.differences import Comparison, Operation
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
    Origin,
    Outcome,
    Passage,
    Principal,
    Reading,
    Receipt,
    Revision,
    Role,
    RunState,
    Searchable,
    Session,
    Sufficiency,
    Turn,
)
from storage.listing import Tally
from storage.pinning import Place, Standing
from storage.rows import StoredChunk

if TYPE_CHECKING:
    from ingest.sync import Done, Look


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
    """A collection that one can ask; `owner_contact` is whom to ask where its documents do not answer.

    `approval`: an answer that cites it is shown once somebody approved it.
    """

    id: UUID
    name: str
    documents: int
    updated_at: datetime | None
    owner_contact: str | None
    approval: bool

    @classmethod
    def of(cls, collection: Collection) -> Self:
        return cls(
            id=collection.id,
            name=collection.name,
            documents=collection.documents,
            updated_at=collection.updated_at,
            owner_contact=collection.owner_contact,
            approval=collection.approvers is not None,
        )


class WarningView(View):
    """What of a file could not be read, or was removed on purpose; `text` is for a person, `code` for programs."""

    code: str
    text: str
    count: int
    pages: tuple[int, ...]


class ProgressView(View):
    """How far processing has come: `done` of `total` passages embedded; `seconds_left` null where none can be said."""

    step: str
    done: int
    total: int
    attempts: int
    next_attempt_at: datetime | None
    seconds_left: float | None


class SuccessionView(View):
    """The other document, where one takes the place of another; `day` is the first on which the older is not found."""

    document_id: UUID
    title: str
    day: date | None


class DocumentView(View):
    """A document and its state. `searchable` says by what it is found; `progress` is null once nothing is left to do.

    `quarantined` counts the passages kept from search, `source` names the folder that keeps it current, `parent_id`
    is the mail or archive that it came in. `older` is the document that `supersedes` means, `newer` the one that takes
    this one's place.
    """

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
    searchable: Searchable
    revision: int
    warnings: tuple[WarningView, ...]
    quarantined: int
    progress: ProgressView | None
    source: str | None
    parent_id: UUID | None
    older: SuccessionView | None
    newer: SuccessionView | None

    @classmethod
    def of(cls, document: Document, reader: Principal | None = None) -> Self:
        """As admins see it. A `reader` who is none is not told from which folder of the server it comes."""
        view = cls.model_validate(document)
        return view if reader is None or reader.is_admin else view.model_copy(update={"source": None})


class RevisionView(View):
    """One dated state of a document. `confidence` gives the mean of a page's words that were read by OCR, 0 to 1."""

    number: int
    sha256: str
    title: str
    size: int
    pages: int | None
    chunks: int
    effective_from: date | None
    effective_to: date | None
    supersedes: str | None
    in_force_from: date | None
    created_at: datetime
    warnings: tuple[WarningView, ...]
    confidence: dict[int, float]

    @classmethod
    def of(cls, revision: Revision) -> Self:
        return cls.model_validate(revision)


class PieceView(View):
    """A stretch of text that both revisions have, or one of them alone."""

    op: Operation
    text: str
    heading_path: tuple[str, ...]


class DiffView(View):
    """What changed between two revisions, in reading order."""

    model_config = ConfigDict(serialize_by_alias=True, validate_by_name=True)

    from_: Annotated[int, Field(alias="from")]
    to: int
    pieces: tuple[PieceView, ...]

    @classmethod
    def of(cls, found: Comparison) -> Self:
        return cls(from_=found.first, to=found.second, pieces=tuple(map(PieceView.model_validate, found.pieces)))


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
    """A chunk as the machine read it. One with a `suspicion` is kept from search until it is `released`."""

    id: int
    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    kind: str
    page: int | None
    boxes: tuple[BoxView, ...]
    section: int
    suspicion: str | None
    released: bool

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
            boxes=tuple(map(BoxView.of, chunk.boxes)),
            section=chunk.section,
            suspicion=chunk.suspicion,
            released=stored.released,
        )


class PassageView(View):
    """A chunk in its context, in one revision of its document; `text` begins at the character `start` of that."""

    document: DocumentView
    chunk_id: int
    heading_path: tuple[str, ...]
    page: int | None
    boxes: tuple[BoxView, ...]
    before: str
    text: str
    after: str
    revision: int
    start: int

    @classmethod
    def of(cls, passage: Passage, reader: Principal) -> Self:
        return cls.model_validate(passage).model_copy(update={"document": DocumentView.of(passage.document, reader)})


class ScoresView(View):
    """Similarity of the vectors, BM25, and both fused; null where a hit was not in that list, or not reranked."""

    vector: float | None
    bm25: float | None
    fused: float
    reranked: float | None


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
    """What [n] stands for. `document` is the path; `quote` is the passage that supports the sentence.

    It is pinned: `quote` stands at the characters `start` to `end` of that `revision` of the document. `standing` says
    what became of it since: `present`, `changed` (an older revision holds it), `gone` (none that is kept does),
    `deleted` (the document), `withheld` (one may not read it any more; the quote is left out).
    """

    n: int
    document: str
    document_id: UUID
    chunk_id: int
    title: str
    heading_path: tuple[str, ...]
    page: int | None
    quote: str
    revision: int = 0
    start: int = 0
    end: int = 0
    collection: str = ""
    origin: Origin = "library"
    standing: Standing = "present"

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
    verdict: Sufficiency
    missing: tuple[str, ...]
    searched: tuple[str, ...]
    contacts: tuple[str, ...]
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
            verdict=answer.verdict,
            missing=answer.missing,
            searched=answer.searched,
            contacts=answer.contacts,
            nearest=tuple(map(HitView.of, answer.nearest)),
            session_id=answer.session_id,
            turn_id=answer.turn_id,
        )


class TurnView(View):
    """One stored question with its answer."""

    turn_id: UUID
    question: str
    standalone_question: str
    answer: str
    answer_html: str
    outcome: Outcome
    language: Language
    citations: tuple[CitationView, ...]
    notice: str | None
    verdict: Sufficiency
    missing: tuple[str, ...]
    searched: tuple[str, ...]
    contacts: tuple[str, ...]
    created_at: datetime
    feedback: int | None

    @classmethod
    def of(cls, turn: Turn) -> Self:
        return cls(
            turn_id=turn.id,
            question=turn.question,
            standalone_question=turn.standalone_question,
            answer=turn.answer,
            answer_html=render(turn.answer, turn.citations),
            outcome=turn.outcome,
            language=turn.language,
            citations=tuple(map(CitationView.of, turn.citations)),
            notice=turn.notice,
            verdict=turn.verdict,
            missing=turn.missing,
            searched=turn.searched,
            contacts=turn.contacts,
            created_at=turn.created_at,
            feedback=turn.feedback,
        )

    def pinned(self, standings: Mapping[Place, Standing]) -> Self:
        """The same turn, each citation with what became of it, and without the words of what is withheld."""
        return self.model_copy(update={"citations": tuple(pinned(each, standings) for each in self.citations)})


def pinned(citation: CitationView, standings: Mapping[Place, Standing]) -> CitationView:
    """The citation with what became of it, and without its words where they are withheld."""
    standing = standings.get((citation.document_id, citation.chunk_id), "present")
    changes = {"standing": standing} | ({"quote": ""} if standing == "withheld" else {})
    return citation.model_copy(update=changes)


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


class ReadingView(View):
    """That an administrator read how one's answer came about, when, and the reason that was stated."""

    run_id: UUID
    session_id: UUID | None
    reader: str
    reason: str
    at: datetime

    @classmethod
    def of(cls, reading: Reading) -> Self:
        return cls.model_validate(reading)


class ReadingsView(View):
    """Every reading of one's own, the latest first."""

    readings: tuple[ReadingView, ...]


class UnansweredView(View):
    """The last question where it has no answer: it is `running`, or it `failed`, was `cancelled` or `aborted`."""

    state: RunState
    question: str


class ConversationView(View):
    """A conversation with its turns, oldest first; `readings`: who of the administrators looked into it."""

    session: SessionView
    turns: tuple[TurnView, ...]
    unanswered: UnansweredView | None
    readings: tuple[ReadingView, ...]


class CancelView(View):
    """Whether a question was being answered that is now told to stop."""

    cancelled: bool


class ReceiptView(View):
    """What a deletion removes, by kind; `quoting` counts the stored answers that quoted it, which stay."""

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


class QueueView(View):
    """How many documents wait and are being processed, and about how long that will take; null where unknown."""

    waiting: int
    processing: int
    seconds_left: float | None


class GoneView(View):
    """A document that was deleted."""

    id: UUID


class CountsView(View):
    """How many documents there are: in all, and by what one looks for; and how many of their passages are held back."""

    all: int
    working: int
    failed: int
    held: int
    warned: int
    superseded: int
    ready: int
    passages_held: int

    @classmethod
    def of(cls, tally: Tally) -> Self:
        counts = {str(name): count for name, count in tally.by_standing.items()}
        return cls(all=tally.total, passages_held=tally.passages_held, **counts)


class DocumentsView(View):
    """A page of documents, by collection and path. `next` asks for the next page, null on the last one.

    `counts` is told with the first page. `max_bytes` is the largest file that may be uploaded.
    """

    documents: tuple[DocumentView, ...]
    next: str | None
    counts: CountsView | None
    max_bytes: int


class ChunksView(View):
    """A document's chunks in reading order."""

    chunks: tuple[ChunkView, ...]


class RevisionsView(View):
    """A document's revisions that are kept, the newest first."""

    revisions: tuple[RevisionView, ...]


class HeldView(View):
    """A passage that is kept from search, and its document."""

    document: DocumentView
    chunk: ChunkView


class QuarantineView(View):
    """Every passage that waits for an admin to release it."""

    passages: tuple[HeldView, ...]

    @classmethod
    def of(cls, held: Sequence[tuple[Document, StoredChunk]]) -> Self:
        passages = (HeldView(document=DocumentView.of(owner), chunk=ChunkView.of(chunk)) for owner, chunk in held)
        return cls(passages=tuple(passages))


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


class MoveView(View):
    """A document that keeps everything but its path."""

    id: UUID
    before: str
    path: str


class CopyView(View):
    """A file with the same bytes as another file or document, which stands for both."""

    path: str
    of: str


class SyncView(View):
    """What a sync did, or with `dry_run` would do, by paths; `refused` says why that would need --force."""

    source: str
    collection: str
    dry_run: bool
    refused: str | None
    new: tuple[str, ...]
    changed: tuple[str, ...]
    moved: tuple[MoveView, ...]
    deleted: tuple[str, ...]
    described: tuple[str, ...]
    unchanged: int
    copies: tuple[CopyView, ...]
    clashes: tuple[str, ...]
    passed_over: dict[str, str]
    unclear: dict[str, str]
    failed: dict[str, str]
    receipts: tuple[ReceiptView, ...]

    @classmethod
    def of(cls, source: str, collection: str, look: "Look", done: "Done | None") -> Self:
        plan = look.plan
        return cls(
            source=source,
            collection=collection,
            dry_run=done is None,
            refused=look.refusal if done is None else None,
            new=plan.new,
            changed=plan.changed,
            moved=tuple(MoveView(id=m.document.id, before=m.document.path, path=m.path) for m in plan.moved),
            deleted=tuple(document.path for document in plan.deleted),
            described=tuple(look.described),
            unchanged=len(plan.unchanged),
            copies=tuple(map(CopyView.model_validate, plan.copies)),
            clashes=plan.clashes,
            passed_over=dict(look.scan.passed_over),
            unclear=dict(look.scan.unclear),
            failed=done.failed if done else {},
            receipts=tuple(map(ReceiptView.of, done.receipts)) if done else (),
        )


def answer_json(answer: Answer) -> dict[str, Any]:
    """An answer as JSON values."""
    return AnswerView.of(answer).model_dump(mode="json")


def search_json(query: str, hits: Sequence[Hit]) -> dict[str, Any]:
    """A search as JSON values."""
    return SearchView.of(query, hits).model_dump(mode="json")
