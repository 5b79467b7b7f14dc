"""Frozen values that flow between the packages. No behaviour beyond what a value can say of itself."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

Language = Literal["en", "zh"]
Origin = Literal["library", "peer"]
# How a question is to be looked up: as code decides, or one way only; a brief is a report in sections.
Mode = Literal["auto", "quick", "agent", "brief"]
Stage = Literal["reading", "searching", "judging", "answering", "checking"]
Sufficiency = Literal["answer", "caveat", "cannot"]


class Role(StrEnum):
    """What a user may do: an employee asks, an admin also tends documents, collections and grants."""

    ADMIN = "admin"
    EMPLOYEE = "employee"


class DocumentState(StrEnum):
    """`queued` and `processing` become `ready` or `failed`; a person is told the reason of a failure."""

    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    FAILED = "failed"


class Searchable(StrEnum):
    """By what a document can be found: its words are in as soon as it is read, its meaning once all vectors are."""

    NOTHING = "nothing"
    WORDS = "words"
    MEANING = "meaning"


class Outcome(StrEnum):
    """How a turn ended: `conversed` is small talk, `incomplete` an answer cut short by a limit.

    `waiting`: an answer is there and is shown once somebody approved it; `rejected`: somebody did not.
    """

    ANSWERED = "answered"
    REFUSED = "refused"
    CONVERSED = "conversed"
    INCOMPLETE = "incomplete"
    WAITING = "waiting"
    REJECTED = "rejected"


class RunState(StrEnum):
    """What became of a run; `aborted`: its process ended without a word, `waiting`: for somebody's approval."""

    RUNNING = "running"
    WAITING = "waiting"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Tenant:
    """One organisation; `slug` is its short name in URLs and options."""

    id: UUID
    slug: str
    name: str


@dataclass(frozen=True, slots=True)
class Principal:
    """On whose behalf we read. Admins see every collection of their tenant, employees those granted to them."""

    tenant_id: UUID
    user_id: UUID
    name: str
    role: Role
    groups: frozenset[str] = frozenset()

    @property
    def is_admin(self) -> bool:
        return self.role is Role.ADMIN


@dataclass(frozen=True, slots=True)
class Collection:
    """A named set of documents that grants attach to. `owner_contact` says whom to ask where they do not answer.

    `approvers`: grantees who, beside admins, approve answers that cite it before they are shown; None: shown at once.
    """

    id: UUID
    name: str
    documents: int = 0
    updated_at: datetime | None = None
    owner_contact: str | None = None
    approvers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Synonym:
    """Words and phrases of a tenant that mean the same, by the alphabet."""

    id: UUID
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ParseWarning:
    """Something in a file that could not be read, or was removed on purpose. `text` is for a person.

    `code` is for programs and for translation; `count` says how many pieces it concerns, `pages` which pages.
    """

    code: str
    text: str
    count: int = 1
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far processing has come: `done` of `total` chunks embedded, 0 of 0 until the file was read.

    `seconds_left` is an estimate, None when there is none. `attempts` counts the tries since the bytes were registered;
    `next_attempt_at` is when a fault that may pass is tried again.
    """

    step: Literal["waiting", "reading", "embedding"]
    done: int = 0
    total: int = 0
    attempts: int = 0
    next_attempt_at: datetime | None = None
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class Succession:
    """The other one of two documents of which one takes the place of the other.

    `day`: the first on which the older is not found any more; None while the newer is not ready.
    """

    document_id: UUID
    title: str
    day: date | None


@dataclass(frozen=True, slots=True)
class Document:
    """A source and its present state. `path` is relative to the folder that was ingested; sizes in bytes.

    `revision` numbers the newest one that was read, from 1; 0 before the first. `source` names the folder that keeps it
    current, None for an upload; `parent_id` is the mail or archive that it came in. `quarantined` passages are kept
    from search until an admin releases them. `progress` is None once nothing is left to do. `read_sha256` names the
    bytes of the newest revision: once they are those of `sha256`, only vectors may be missing. `supersedes` is what was
    said, `older` the document that it means, `newer` the one that takes this one's place.
    """

    id: UUID
    collection_id: UUID
    collection: str
    path: str
    title: str
    media_type: str
    sha256: str
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
    searchable: Searchable = Searchable.NOTHING
    revision: int = 0
    warnings: tuple[ParseWarning, ...] = ()
    quarantined: int = 0
    progress: Progress | None = None
    source: str | None = None
    parent_id: UUID | None = None
    read_sha256: str | None = None
    older: Succession | None = None
    newer: Succession | None = None


@dataclass(frozen=True, slots=True)
class Revision:
    """One dated state of a document, numbered from 1; in force from `in_force_from` (None: always) to the next one's.

    `effective_from` and `effective_to` are what its file or an admin said. `confidence` maps pages that were read by
    OCR to the mean confidence of their words, 0 to 1.
    """

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
    warnings: tuple[ParseWarning, ...] = ()
    confidence: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a page as fractions (0 to 1) of its width and height, origin at the top left."""

    page: int
    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Element:
    """A typed piece found by a partitioner; never stored. `level` is the heading depth of a Title, from 1."""

    kind: Literal["title", "text", "list", "table"]
    text: str
    level: int = 0
    page: int | None = None
    boxes: tuple[Box, ...] = ()


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file found inside another (mail, archive), to become a document of its own. `name` may hold folders."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Sidecar:
    """What a small file beside a document's own says of it, over what that one says; None where it is silent.

    `sha256` is that of the small file, `warnings` what of it could not be used.
    """

    sha256: str
    title: str | None = None
    effective_from: date | None = None
    effective_to: date | None = None
    supersedes: str | None = None
    warnings: tuple[ParseWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """What a partitioner found in one file, before chunking. `confidence` as in Revision."""

    title: str
    elements: tuple[Element, ...]
    pages: int | None = None
    warnings: tuple[ParseWarning, ...] = ()
    effective_from: date | None = None
    effective_to: date | None = None
    supersedes: str | None = None
    attachments: tuple[Attachment, ...] = ()
    confidence: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The unit embedded, searched and cited.

    `start` and `end` are character offsets in the document's text (its chunks' texts joined by a line feed);
    `section` numbers the parent section that is handed to model and reader, from 0 in reading order. `suspicion` is the
    code of what makes its text look like an instruction to the model; such a chunk waits for an admin.
    """

    ordinal: int
    text: str
    heading_path: tuple[str, ...]
    section: int
    start: int
    end: int
    kind: Literal["text", "table"] = "text"
    page: int | None = None
    boxes: tuple[Box, ...] = ()
    suspicion: str | None = None


@dataclass(frozen=True, slots=True)
class Filters:
    """What a search is narrowed to, beside the principal's rights; None: not narrowed.

    `as_of`: the day whose revisions count, today when None. `media_types` as in Document. `without`: documents that are
    left out.
    """

    collections: tuple[str, ...] | None = None
    documents: tuple[UUID, ...] | None = None
    languages: tuple[Language, ...] | None = None
    media_types: tuple[str, ...] | None = None
    as_of: date | None = None
    without: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class Scores:
    """Similarity of the vectors (cosine), BM25, and the fused score in [0, 1]. None: not in that list.

    `by_vector` and `by_words` are the first two from 0 (their list's last) to 1 (its best). `reranked` is the score
    that the order of reranked hits follows, 0 to 1, None for those that were not reranked.
    """

    vector: float | None
    bm25: float | None
    fused: float
    by_vector: float = 0.0
    by_words: float = 0.0
    reranked: float | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk returned by search. `section_text` is its parent section, of which `text` is a part.

    `revision` is the one of its document that was searched, 0 where there is none; `start` is where `text` begins in
    that revision's text, as in Chunk. `origin` is `peer` for a passage of an intranet search: its `path` is the address
    there, its ids lead to nothing here.
    """

    rank: int
    chunk_id: int
    document_id: UUID
    title: str
    path: str
    collection: str
    heading_path: tuple[str, ...]
    page: int | None
    text: str
    section_text: str
    kind: Literal["text", "table"]
    effective_from: date | None
    effective_to: date | None
    updated_at: datetime
    scores: Scores
    revision: int = 0
    start: int = 0
    origin: Origin = "library"


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a query: `weight` is its idf times how often it counts, `chunks` those that hold it."""

    text: str
    weight: float
    chunks: int


@dataclass(frozen=True, slots=True)
class Listed:
    """A chunk's place in one of the lists that were fused; `matched` holds the query's terms that stand in it."""

    rank: int
    chunk_id: int
    document_id: UUID
    title: str
    heading_path: tuple[str, ...]
    score: float
    matched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a search found what it found.

    `documents` and `chunks` are how many the rights and filters left; `words` is the weight of the list by words in the
    fusion, 0 to 1; `exact` says that vectors were compared one by one, without an index. `synonyms` maps a word of the
    query to those that were looked for as well.
    """

    hits: tuple[Hit, ...]
    nearest: tuple[Listed, ...]
    lexical: tuple[Listed, ...]
    terms: tuple[Term, ...]
    documents: int
    chunks: int
    words: float
    exact: bool
    synonyms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Passage:
    """A cited chunk shown in its context: the texts before and after it in the same revision of its document.

    `start` is where `text` begins in that revision's text.
    """

    document: Document
    chunk_id: int
    heading_path: tuple[str, ...]
    page: int | None
    boxes: tuple[Box, ...]
    before: str
    text: str
    after: str
    revision: int = 0
    start: int = 0


@dataclass(frozen=True, slots=True)
class Citation:
    """[n] of an answer: the chunk it opens, and the passage `quote` that supports the sentence.

    It is pinned: `quote` stands at `start` to `end` (characters, as in Chunk) of the text of the document's `revision`.
    Revision 0: a citation of before there were revisions, known by its chunk alone. `collection` is its document's,
    empty where that is not known. `origin` as in Hit: what a peer said is known by its quote alone.
    """

    n: int
    chunk_id: int
    document_id: UUID
    document: str
    title: str
    heading_path: tuple[str, ...]
    page: int | None
    quote: str
    revision: int = 0
    start: int = 0
    end: int = 0
    origin: Origin = "library"
    collection: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One finished turn. `timings` maps a step's name to seconds; `nearest` is what a refusal found closest.

    `verdict` says how far the evidence goes: all that was asked, a part of it (`caveat`), nothing (`cannot`). For the
    last two `missing` lists what was not found, `searched` the queries tried, `contacts` the collections searched with
    whom to ask about each.
    `session_id` and `turn_id` say where it was stored; None for a question asked outside a session.
    """

    outcome: Outcome
    question: str
    standalone_question: str
    answer: str
    language: Language
    citations: tuple[Citation, ...]
    timings: Mapping[str, float]
    model_calls: int
    nearest: tuple[Hit, ...] = ()
    notice: str | None = None
    session_id: UUID | None = None
    turn_id: UUID | None = None
    verdict: Sufficiency = "answer"
    missing: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    contacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation of one user."""

    id: UUID
    title: str
    turns: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Turn:
    """One stored question with its answer, citations pinned; the rest as in Answer."""

    id: UUID
    session_id: UUID
    question: str
    answer: str
    outcome: Outcome
    language: Language
    citations: tuple[Citation, ...]
    created_at: datetime
    feedback: int | None = None
    standalone_question: str = ""
    notice: str | None = None
    verdict: Sufficiency = "answer"
    missing: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    contacts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run as its trace keeps it: `at_ms` since the run began; `data` is plain JSON."""

    kind: str
    at_ms: int
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run without what was asked and done in it. `code` says why it failed; `ms` is None while it goes on."""

    id: UUID
    user: str
    user_id: UUID
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


@dataclass(frozen=True, slots=True)
class RunTrace:
    """A run as an administrator replays it. `turn` is what came of it; None where nothing was stored."""

    info: RunInfo
    question: str
    steps: tuple[Step, ...]
    turn: Turn | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """That an administrator read a run of somebody's, when, and the reason that was stated."""

    run_id: UUID
    session_id: UUID | None
    reader: str
    reason: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Pending:
    """An answer that is shown once it is approved, and which of the collections it cites ask for that."""

    turn_id: UUID
    run_id: UUID
    user_id: UUID
    user: str
    answer: Answer
    collections: tuple[str, ...]
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a deletion removed: rows or files by kind, and `quoting`: stored answers that quoted it and stay."""

    what: str
    counts: Mapping[str, int] = field(default_factory=dict)


# --- events of one ask, in the order they may come: Status*, Source*, Token*, then one of the last three ------------


@dataclass(frozen=True, slots=True)
class Status:
    """What is going on, for a person; `stage` is for programs."""

    stage: Stage
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """A passage that the answer may cite, shown while the model still reads."""

    hit: Hit


@dataclass(frozen=True, slots=True)
class Token:
    """A checked piece of the answer, marks [n] included. What was sent is never taken back."""

    text: str


@dataclass(frozen=True, slots=True)
class Answered:
    """The turn ended with an answer (also small talk, and an incomplete one)."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing supports an answer; `answer.nearest` says what came closest."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Failed:
    """The turn could not be finished; nothing of it was stored as an answer."""

    code: str
    message: str


Event = Status | Source | Token | Answered | Refused | Failed
