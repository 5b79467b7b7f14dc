"""How well search finds the document that answers a question: vectors alone, BM25 alone, both fused, and reranked.

No language model takes part. A question's rank is that of its document: the best of its chunks counts, chunks of
documents already seen do not move the others down.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal

from core.errors import InvalidRequest
from core.records import Filters, Hit, Language, Principal
from core.text import language_of

if TYPE_CHECKING:
    # Its import brings LangChain along, which takes a second that no other command needs to wait for.
    from agent.sources.retrieval import Retrieval

Mode = Literal["vector", "bm25", "hybrid", "reranked"]
MODES: Final[tuple[Mode, ...]] = ("vector", "bm25", "hybrid", "reranked")
# Chunks asked for, so that ten different documents are among them even where one document has several that fit.
DEPTH: Final = 50
Advance = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the end of the path of the document that answers it; where several do, any of them is right."""

    question: str
    documents: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Shares of questions whose document is first, among the first 5 and 10; mean reciprocal rank. All 0 to 1."""

    hit_1: float
    hit_5: float
    hit_10: float
    mrr: float

    @classmethod
    def of(cls, ranks: Sequence[int | None]) -> "Score":
        """From each question's rank, counted from 1, None where its document was not found."""
        total = len(ranks) or 1
        found = [rank for rank in ranks if rank is not None]

        def within(cut: int) -> float:
            return sum(rank <= cut for rank in found) / total

        return cls(within(1), within(5), within(10), sum(1 / rank for rank in found) / total)

    def as_json(self) -> dict[str, float]:
        """Named as they are published."""
        return {"hit@1": self.hit_1, "hit@5": self.hit_5, "hit@10": self.hit_10, "mrr": self.mrr}


@dataclass(frozen=True, slots=True)
class Report:
    """Scores by mode, and the rank of each question's document in each mode, in the order of the questions."""

    questions: tuple[Question, ...]
    ranks: Mapping[Mode, tuple[int | None, ...]]
    embedder: str
    seconds: float

    @property
    def scores(self) -> dict[Mode, Score]:
        """Scores by mode."""
        return {mode: Score.of(ranks) for mode, ranks in self.ranks.items()}

    @property
    def by_language(self) -> dict[Language, dict[Mode, Score]]:
        """The same for the questions of each language, empty where all are of one."""
        languages = [language_of(asked.question) for asked in self.questions]
        if len(set(languages)) < 2:
            return {}
        return {
            language: {
                mode: Score.of([rank for rank, of in zip(ranks, languages, strict=True) if of == language])
                for mode, ranks in self.ranks.items()
            }
            for language in sorted(set(languages))
        }

    @property
    def missed(self) -> list[Question]:
        """Questions whose document the whole search does not show among the first ten."""
        ranks = self.ranks.get("reranked") or self.ranks["hybrid"]
        return [asked for asked, rank in zip(self.questions, ranks, strict=True) if rank is None or rank > 10]

    def as_json(self) -> dict[str, Any]:
        """One object: counts, speed, scores by mode, and the questions missed."""
        return {
            "questions": len(self.questions),
            "embedder": self.embedder,
            "questions_per_second": round(len(self.questions) / self.seconds, 1) if self.seconds else None,
            "modes": _as_json(self.scores),
            "by_language": {language: _as_json(scores) for language, scores in self.by_language.items()},
            "missed": [asdict(question) for question in self.missed],
        }


def load(path: Path) -> list[Question]:
    """Questions of a JSON Lines file, blank lines skipped. Raises InvalidRequest naming file and line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{path} cannot be read: {error}. Give a UTF-8 file of JSON lines") from error
    questions = [_question(line, f"{path}, line {n}") for n, line in enumerate(lines, 1) if line.strip()]
    if not questions:
        raise InvalidRequest(f'{path} holds no question. Each line is {{"question": "...", "document": "..."}}')
    return questions


async def evaluate(
    retrieval: "Retrieval",
    principal: Principal,
    questions: Sequence[Question],
    *,
    filters: Filters = Filters(),
    modes: Sequence[Mode] = MODES,
    advance: Advance = lambda done, total, item: None,
) -> Report:
    """Search each question in these modes; `reranked` only where something reranks. Errors: those of Retrieval."""
    measured = [mode for mode in modes if mode != "reranked" or retrieval.reranks]
    ranks: dict[Mode, list[int | None]] = {mode: [] for mode in measured}
    started = perf_counter()
    for done, asked in enumerate(questions, 1):
        for mode in measured:
            hits = await retrieval.find(
                principal,
                asked.question,
                filters=filters,
                limit=DEPTH,
                mode="hybrid" if mode == "reranked" else mode,
                rerank=mode == "reranked",
            )
            ranks[mode].append(rank(hits, asked.documents))
        advance(done, len(questions), asked.documents[0])
    frozen = {mode: tuple(found) for mode, found in ranks.items()}
    return Report(tuple(questions), frozen, retrieval.embedder_id, perf_counter() - started)


def rank(hits: Sequence[Hit], documents: Sequence[str]) -> int | None:
    """The rank, from 1, of the first document whose path ends as one of `documents`; documents count, not chunks."""
    paths = list(dict.fromkeys(hit.path for hit in hits))
    return next((place for place, path in enumerate(paths, 1) if _is_one(path, documents)), None)


def _is_one(path: str, documents: Sequence[str]) -> bool:
    return any(ends_with(path, document) for document in documents)


def ends_with(path: str, end: str) -> bool:
    """Whether a path ends with these whole components: `b/c.md` is the end of `a/b/c.md`, not of `a/bb/c.md`."""
    return ("/" + path).endswith("/" + end.strip("/"))


def _question(line: str, where: str) -> Question:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InvalidRequest(f"{where}: not JSON ({error}). Each line is one JSON object") from error
    if not isinstance(row, dict):
        raise InvalidRequest(f"{where}: not a JSON object")
    documents = row.get("document")
    several = documents if isinstance(documents, list) and documents else [documents]
    return Question(
        _text(row.get("question"), "question", where),
        tuple(_text(document, "document", where) for document in several),
    )


def _text(value: Any, key: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f'{where}: "{key}" must be a text that is not empty')
    return value


def _as_json(scores: Mapping[Mode, Score]) -> dict[str, dict[str, float]]:
    return {mode: {key: round(value, 4) for key, value in score.as_json().items()} for mode, score in scores.items()}


def unknown(paths: Sequence[str], questions: Sequence[Question]) -> list[Question]:
    """Questions without a document among the stored ones: mistakes in the file, or documents not yet ingested."""
    return [asked for asked in questions if not any(_is_one(path, asked.documents) for path in paths)]
