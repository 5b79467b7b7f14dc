"""A tenant's worth of chunks, drawn from the pool: text, words, vectors, documents. The same seed gives the same.

A document keeps to a few neighbouring passages: a chunk's text starts with sentences of one of them and goes on with
others from nearby, and its vector lies around that passage's, off it towards or away from its neighbours and a little
in the direction in which any two passages differ. Every fourth chunk also holds a case number, so that rare terms grow
with the corpus as they do in life.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from core.records import Language
from storage import lexical
from tests.bench.search.pool import Bags, Floats, Integers, Pool

SEED: Final = 20261130
COLLECTIONS: Final = ("general", "projects", "finance", "legal")
SHARES: Final = (0.60, 0.29, 0.10, 0.01)
MEDIA_TYPES: Final = ("text/markdown", "application/pdf", "text/html")
CHINESE: Final = 0.12
# Documents alike, of two chunks each, of which a user may read one. Their collection comes after the four.
SIMILAR: Final = 1000
SIMILAR_COLLECTION: Final = len(COLLECTIONS)
LATE: Final = date(2025, 6, 1)
ENDED: Final = date(2024, 12, 31)
_REACH: Final = 8
# How far from its passage's a chunk's vector lies, at most towards the neighbours, and always in any direction. With
# these, questions find vectors made from a ninth of the passages as far away, and as many the farther they look, as
# they find all the passages themselves (`likeness`).
_AROUND: Final = 0.2
_ANYWHERE: Final = np.float32(0.15)
# Weight and length normalisation of text, title and headings: the product's own.
_FIELDS: Final = (lexical._TEXT, lexical._TITLE, lexical._HEADINGS)
_BLOCK: Final = 20_000


@dataclass(frozen=True, slots=True)
class Corpus:
    """Chunk i (from 0) is of document `document[i]`; its sentences and terms start at `..._starts[i]` of their arrays.

    Documents have an own row of each array named `doc_...`: page of the pool, collection, media type, whether Chinese,
    whether in force from LATE only, whether it ended. `vectors` are unit, float16 as the database keeps them. `lengths`
    of shape (chunks, 3) counts the terms of text, title and headings; `weights` are saturated, without idf.
    """

    document: Integers
    heading: Integers
    sentence_starts: Integers
    sentence: Integers
    codes: Sequence[str]
    term_starts: Integers
    terms: NDArray[np.int32]
    weights: Floats
    lengths: NDArray[np.int32]
    averages: lexical.Lengths
    vectors: NDArray[np.float16]
    doc_page: Integers
    doc_collection: Integers
    doc_media: Integers
    doc_chinese: NDArray[np.bool_]
    doc_late: NDArray[np.bool_]
    doc_ended: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.document)

    def text(self, pool: Pool, chunk: int) -> str:
        """The chunk's sentences, one a line."""
        numbers = self.sentence[self.sentence_starts[chunk] : self.sentence_starts[chunk + 1]].tolist()
        known = len(pool.sentences)
        return "\n".join(pool.sentences[n] if n < known else self.codes[n - known] for n in numbers)

    def language(self, chunk: int) -> Language:
        return "zh" if self.doc_chinese[self.document[chunk]] else "en"


def load(pool: Pool, size: int, cache: Path, *, similar: int = 0) -> Corpus:
    """`size` chunks, the last 2 * `similar` of them in documents alike; from `cache` where they were made before."""
    folder = cache / f"{size}-{similar}"
    if not (folder / "rest.pickle").exists():
        folder.mkdir(parents=True, exist_ok=True)
        _keep(_make(pool, size, similar), folder)
    rest: dict[str, Any] = pickle.loads((folder / "rest.pickle").read_bytes())
    large = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}
    return Corpus(**rest, **large)


def _keep(made: Corpus, folder: Path) -> None:
    rest = {}
    for name in made.__slots__:
        value = getattr(made, name)
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.npy", value)
        else:
            rest[name] = value
    (folder / "rest.pickle").write_bytes(pickle.dumps(rest))


def _make(pool: Pool, size: int, similar: int) -> Corpus:
    random = np.random.default_rng(SEED + size)
    sizes = _document_sizes(random, size - 2 * similar, similar)
    count = len(sizes)
    alike = np.arange(count) >= count - similar
    chinese = (random.random(count) < CHINESE) & ~alike
    theme = _themes(random, pool, chinese)
    theme[alike] = pool.english_centres // 2
    document = np.repeat(np.arange(count), sizes)
    near = _nearby(random, pool, theme[document], chinese[document])
    sentence_starts, sentence, codes = _sentences(random, pool, near, chinese[document])
    page = pool.page_of[theme]
    heading = _headings(random, pool, page[document])
    words = _words(pool, Bags.of(lexical.fields(code, "", ()).text for code in codes), (sentence_starts, sentence),
                   page[document], heading)  # fmt: skip
    return Corpus(
        document=document,
        heading=heading,
        sentence_starts=sentence_starts,
        sentence=sentence,
        codes=codes,
        **words,
        vectors=_vectors(random, pool, near),
        doc_page=page,
        doc_collection=np.where(alike, SIMILAR_COLLECTION, random.choice(len(SHARES), count, p=SHARES)),
        doc_media=random.choice(3, count, p=(0.7, 0.2, 0.1)),
        doc_chinese=chinese,
        doc_late=(random.random(count) < 0.5) & ~alike,
        doc_ended=(random.random(count) < 0.05) & ~alike,
    )


def _document_sizes(random: np.random.Generator, size: int, similar: int) -> Integers:
    """Chunks of each document, about twenty; then the documents alike."""
    sizes = random.integers(8, 33, size // 8 + 1)
    ends = np.cumsum(sizes)
    kept = int(np.searchsorted(ends, size))
    sizes = sizes[: kept + 1]
    sizes[-1] -= ends[kept] - size
    return np.concatenate([sizes, np.full(similar, 2)])


def _themes(random: np.random.Generator, pool: Pool, chinese: NDArray[np.bool_]) -> Integers:
    low, high = _centre_range(pool, chinese)
    return _between(random, low, high)


def _nearby(random: np.random.Generator, pool: Pool, theme: Integers, chinese: NDArray[np.bool_]) -> Integers:
    low, high = _centre_range(pool, chinese)
    found: Integers = np.clip(theme + random.integers(0, _REACH, len(theme)), low, high - 1)
    return found


def _centre_range(pool: Pool, chinese: NDArray[np.bool_]) -> tuple[Integers, Integers]:
    return np.where(chinese, pool.english_centres, 0), np.where(chinese, len(pool.centres), pool.english_centres)


def _sentences(
    random: np.random.Generator, pool: Pool, near: Integers, chinese: NDArray[np.bool_]
) -> tuple[Integers, Integers, list[str]]:
    """Of each chunk: two sentences of its passage, one to three from anywhere near, maybe a case number."""
    count = len(near)
    own = np.minimum(pool.last[near] - pool.first[near], 2)
    start = pool.first[near] + (random.random(count) * (pool.last[near] - pool.first[near] - own + 1)).astype(int)
    coded = random.random(count) < 0.25
    more = random.integers(1, 4, count)
    sizes = own + more + coded
    starts = np.concatenate([[0], np.cumsum(sizes)])
    place = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    of = np.repeat(np.arange(count), sizes)
    spread = np.repeat(start, sizes) + random.integers(-2500, 2500, len(of))
    low = np.where(chinese, pool.english_sentences, 0)[of]
    high = np.where(chinese, len(pool.sentences), pool.english_sentences)[of]
    sentence = np.where(place < own[of], start[of] + place, np.clip(spread, low, high - 1))
    sentence[starts[1:][coded] - 1] = len(pool.sentences) + np.arange(coded.sum())
    numbers = random.integers(100_000, 1_000_000, coded.sum())
    kinds = random.integers(0, 4, coded.sum())
    codes = [f"Case {('PO', 'HR', 'IT', '差旅')[kind]}-{n}." for kind, n in zip(kinds, numbers, strict=True)]
    return starts, sentence, codes


def _headings(random: np.random.Generator, pool: Pool, page: Integers) -> Integers:
    return _between(random, pool.heading_starts[page], pool.heading_starts[page + 1])


def _between(random: np.random.Generator, low: Integers, high: Integers) -> Integers:
    """From each range one number, its end not included."""
    return (low + random.random(len(low)) * (high - low)).astype(np.int64)


def _vectors(random: np.random.Generator, pool: Pool, near: Integers) -> NDArray[np.float16]:
    found = np.empty((len(near), pool.centres.shape[1]), np.float16)
    for at in range(0, len(near), _BLOCK):
        found[at : at + _BLOCK] = surroundings(random, pool.centres, pool.neighbours, near[at : at + _BLOCK])
    return found


def surroundings(random: np.random.Generator, centres: Floats, neighbours: Integers, near: Integers) -> Floats:
    """For each of `near`, (n,), a vector around that centre; `neighbours` says which others lie nearest to each."""
    own = centres[near]
    pull = random.standard_normal((len(near), neighbours.shape[1]), np.float32)
    local = np.zeros_like(own)
    for share, neighbour in zip(pull.T, neighbours[near].T, strict=True):
        local += share[:, None] * (centres[neighbour] - own)
    one, two = (centres[random.integers(0, len(centres), len(near))] for _ in range(2))
    far = random.uniform(0, _AROUND, (len(near), 1)).astype(np.float32)
    return _unit(own + far * _unit(local) + _ANYWHERE * _unit(one - two))


def _unit(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(length, np.float32(1e-6)))


def _words(
    pool: Pool, codes: Bags, sentences: tuple[Integers, Integers], page: Integers, heading: Integers
) -> dict[str, Any]:
    """What the product would index of these chunks; a line feed makes no pair of terms, so sentences just add up."""
    starts, sentence = sentences
    bags = Bags(
        np.concatenate([pool.bags.starts, pool.bags.starts[-1] + codes.starts[1:]]),
        np.concatenate([pool.bags.terms, codes.terms]),
        np.concatenate([pool.bags.counts, codes.counts]),
    )
    text = np.add.reduceat(bags.totals()[sentence], starts[:-1])
    lengths = np.stack([text, pool.title_bags.totals()[page], pool.heading_bags.totals()[heading]], axis=1)
    averages = lexical.Lengths(*(float(value) for value in lengths.mean(axis=0)))
    blocks = []
    for at in range(0, len(page), _BLOCK):
        end = min(at + _BLOCK, len(page))
        chunks = np.arange(end - at)
        blocks.append(_weigh(
            len(chunks),
            (
                (bags, np.repeat(chunks, np.diff(starts[at : end + 1])), sentence[starts[at] : starts[end]]),
                (pool.title_bags, chunks, page[at:end]),
                (pool.heading_bags, chunks, heading[at:end]),
            ),
            lengths[at:end],
            averages,
        ))  # fmt: skip
    sizes, terms, weights = (np.concatenate(part) for part in zip(*blocks, strict=True))
    return {
        "term_starts": np.concatenate([[0], np.cumsum(sizes)]),
        "terms": terms,
        "weights": weights,
        "lengths": lengths.astype(np.int32),
        "averages": averages,
    }


def _weigh(
    count: int, fields: Sequence[tuple[Bags, Integers, Integers]], lengths: Floats, averages: lexical.Lengths
) -> tuple[Integers, NDArray[np.int32], Floats]:
    """Number of terms of each chunk, the terms, their weights."""
    keys, values = [], []
    usual = (averages.text, averages.title, averages.headings)
    for (bags, chunk, which), length, average, (weight, b) in zip(fields, lengths.T, usual, _FIELDS, strict=True):
        scale = weight / (1 - b + b * length / max(average, 1.0))
        sizes = bags.starts[which + 1] - bags.starts[which]
        taken = np.repeat(bags.starts[which] - np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes) + np.arange(
            sizes.sum()
        )
        of = np.repeat(chunk, sizes)
        keys.append(of << 30 | bags.terms[taken])
        values.append(bags.counts[taken] * scale[of])
    key, value = np.concatenate(keys), np.concatenate(values)
    order = np.argsort(key, kind="stable")
    key, value = key[order], value[order]
    first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    frequency = np.add.reduceat(value, first)
    key = key[first]
    saturated = frequency * (lexical.K1 + 1) / (frequency + lexical.K1)
    return (
        np.bincount(key >> 30, minlength=count),
        (key & (2**30 - 1)).astype(np.int32),
        saturated.astype(np.float32),
    )
