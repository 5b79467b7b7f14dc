"""Fusing: the list by vector and the list by words made into one, from their scores alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from core.records import Scores

# Length of either list before they are fused; its last score is the zero of the normalised one.
DEPTH: Final = 100
# How far the weight of words moves from a half, at most, towards the list that is surer of its first document. Chosen
# on the sets of docs/benchmarks.md and XQuAD (en, zh), with up to a point of MRR over equal weights (which 0 gives).
SURENESS: Final = 0.4
# Across languages words say little: this share of their weight is left, the vector takes the rest.
ACROSS: Final = 0.3


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk in one of the lists. `revision` is the one in force of its document, `score` a cosine or BM25."""

    chunk_id: int
    document_id: UUID
    revision: int
    score: float
    language: str


@dataclass(frozen=True, slots=True)
class Fused:
    """A chunk of either list with its scores in both."""

    found: Found
    scores: Scores


@dataclass(frozen=True, slots=True)
class Lists:
    """Both lists, best first. `words` is the weight of the list by words; `exact`: no index was used."""

    nearest: Sequence[Found]
    lexical: Sequence[Found]
    exact: bool
    words: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "words", _balance(self.nearest, self.lexical))


def fuse(lists: Lists, language: str, limit: int) -> list[Fused]:
    """The best `limit` chunks of both lists, best first, for a query in this language."""
    nearest = {found.chunk_id: found for found in lists.nearest}
    words = {found.chunk_id: found for found in lists.lexical}
    by_vector = _spread(lists.nearest, lists.nearest[-1].score if lists.nearest else 0.0)
    by_words = _spread(lists.lexical, _floor(lists.lexical))
    either = nearest | words
    ranked = []
    for chunk_id, found in either.items():
        across = found.language != language and lists.words < 1
        weight = lists.words * (ACROSS if across else 1.0)
        fused = weight * by_words.get(chunk_id, 0.0) + (1 - weight) * by_vector.get(chunk_id, 0.0)
        # Chunks that are not in a list come after those that are.
        vector = -nearest[chunk_id].score if chunk_id in nearest else 2.0
        bm25 = -words[chunk_id].score if chunk_id in words else 0.0
        ranked.append((-fused, vector, bm25, chunk_id))
    return [
        Fused(
            either[chunk_id],
            Scores(
                vector=-vector if chunk_id in nearest else None,
                bm25=-bm25 if chunk_id in words else None,
                fused=-fused,
                by_vector=by_vector.get(chunk_id, 0.0),
                by_words=by_words.get(chunk_id, 0.0),
            ),
        )
        for fused, vector, bm25, chunk_id in sorted(ranked)[:limit]
    ]


def _balance(nearest: Sequence[Found], words: Sequence[Found]) -> float:
    """The weight of words, 0 to 1: more for the list that is surer of its first document."""
    if not nearest or not words:
        return 0.0 if nearest else 1.0
    return min(0.9, max(0.1, 0.5 + SURENESS * (_lead(words, _floor(words)) - _lead(nearest, nearest[-1].score))))


def _lead(listed: Sequence[Found], low: float) -> float:
    """How far the second document stays behind the first, 0 to 1."""
    high = listed[0].score
    second = next((found.score for found in listed if found.document_id != listed[0].document_id), low)
    return (high - second) / (high - low) if high > low else 0.0


def _floor(words: Sequence[Found]) -> float:
    """A list shorter than the depth has met every match: the next score would have been 0."""
    return words[-1].score if len(words) >= DEPTH else 0.0


def _spread(listed: Sequence[Found], low: float) -> dict[int, float]:
    """Chunk -> its score from 0 (`low`) to 1 (the best)."""
    span = listed[0].score - low if listed else 0.0
    return {found.chunk_id: (found.score - low) / span if span > 0 else 1.0 for found in listed}
