"""The truth that recall is measured against: every vector compared, BM25 of every chunk, in numpy.

Both lists are fused by the product's own rule.
"""

import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.settings import Settings
from core.text import language_of
from storage import fusing, lexical
from tests.bench.search.corpus import Corpus
from tests.bench.search.loading import document_id
from tests.bench.search.pool import Floats, Integers

Mask = NDArray[np.bool_]
Ranked = list[tuple[int, float]]
_BLOCK = 50_000


@dataclass(frozen=True, slots=True)
class Truth:
    """For each query the best chunks (numbers from 1, scores), by vector, by words, and fused (numbers)."""

    nearest: Sequence[Ranked]
    words: Sequence[Ranked]
    fused: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class Postings:
    """The chunks (from 0) that hold each term of the queries, and its weight in them."""

    n: int
    lists: dict[int, tuple[Integers, Floats]]

    @classmethod
    def of(cls, corpus: Corpus, queries: Sequence[str]) -> "Postings":
        wanted = np.unique([term for query in queries for term in lexical.query_vector(query)]).astype(np.int32)
        # A table by the last 20 bits keeps nearly everything else out before it is looked up.
        table = np.zeros(1 << 20, bool)
        table[wanted & 0xFFFFF] = True
        at = np.flatnonzero(table[corpus.terms & 0xFFFFF])
        at = at[np.isin(corpus.terms[at], wanted)]
        at = at[np.argsort(corpus.terms[at], kind="stable")]
        terms = corpus.terms[at]
        chunks = np.searchsorted(corpus.term_starts, at, side="right") - 1
        bounds = np.searchsorted(terms, wanted), np.searchsorted(terms, wanted, side="right")
        weights = corpus.weights[at]
        return cls(
            len(corpus),
            {int(t): (chunks[a:b], weights[a:b]) for t, a, b in zip(wanted, *bounds, strict=True)},
        )

    def best(self, query: str, allowed: Mask, depth: int) -> Ranked:
        scores = np.zeros(self.n)
        for term, count in lexical.query_vector(query).items():
            chunks, weights = self.lists[term]
            idf = np.log(1 + (self.n - len(chunks) + 0.5) / (len(chunks) + 0.5))
            scores[chunks] += weights * (count * idf)
        scores[~allowed] = 0
        held = np.flatnonzero(scores)
        return [(int(held[at]) + 1, score) for at, score in _top(scores[held], depth)]


def truth(corpus: Corpus, postings: Postings, queries: Sequence[str], vectors: Floats, allowed: Mask) -> Truth:
    """The exact lists of these queries among the chunks allowed.

    Which vectors are nearest takes the longest, and is kept in the cache by what was asked of what.
    """
    asked = hashlib.sha256(b"".join((str(len(corpus)).encode(), vectors.tobytes(), allowed.tobytes()))).hexdigest()
    kept = Settings.load().cache / "bench-search" / "nearest" / f"{asked[:32]}.pickle"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(_nearest(corpus, vectors, allowed)))
    nearest: list[Ranked] = pickle.loads(kept.read_bytes())
    words = [postings.best(query, allowed, fusing.DEPTH) for query in queries]
    fused = [_fused(corpus, query, a, b) for query, a, b in zip(queries, nearest, words, strict=True)]
    return Truth(nearest, words, fused)


def recall(found: Sequence[Sequence[int]], true: Sequence[Sequence[int]], depth: int = 10) -> float:
    """Mean share of the true first `depth` that was found among the first `depth`."""
    shares = [len(set(a[:depth]) & set(b[:depth])) / len(b[:depth]) for a, b in zip(found, true, strict=True) if b]
    return round(float(np.mean(shares)), 4)


def _nearest(corpus: Corpus, vectors: Floats, allowed: Mask) -> list[Ranked]:
    asked = vectors.astype(np.float16).astype(np.float32)
    kept: list[Ranked] = [[] for _ in vectors]
    numbers = np.flatnonzero(allowed)
    for at in range(0, len(numbers), _BLOCK):
        block = numbers[at : at + _BLOCK]
        scores = np.asarray(corpus.vectors[block], np.float32) @ asked.T
        for query, row in enumerate(scores.T):
            kept[query] += [(int(block[i]) + 1, score) for i, score in _top(row, fusing.DEPTH)]
    return [sorted(rows, key=lambda row: -row[1])[: fusing.DEPTH] for rows in kept]


def _top(scores: NDArray[np.floating], depth: int) -> Ranked:
    """Of those that score the same the first ones, as the product has it."""
    count = min(depth, len(scores))
    if not count:
        return []
    least = np.partition(scores, len(scores) - count)[len(scores) - count]
    best = np.flatnonzero(scores >= least)
    return [(int(i), float(scores[i])) for i in best[np.argsort(-scores[best], kind="stable")[:count]]]


def _fused(corpus: Corpus, query: str, nearest: Ranked, words: Ranked) -> list[int]:
    def listed(rows: Ranked) -> list[fusing.Found]:
        return [
            fusing.Found(chunk, document_id(int(corpus.document[chunk - 1])), 1, score, corpus.language(chunk - 1))
            for chunk, score in rows
        ]

    lists = fusing.Lists(listed(nearest), listed(words), exact=True)
    return [one.found.chunk_id for one in fusing.fuse(lists, language_of(query), 10)]
