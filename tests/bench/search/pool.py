"""Real text to resample: sentences of public corpora, what they hold of terms, and the vectors of all their passages.

Read once and kept in the cache: cutting and tokenising take minutes, embedding a quarter of an hour and more, loading
what was kept a second.
"""

import asyncio
import json
import pickle
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from core.records import Language
from core.settings import Settings
from core.text import language_of
from inference.select import open_embedder
from policy.egress import Policy
from storage import lexical

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]

PAGES: Final = (
    "handbook-gsa-tts/pages",
    "policies-basecamp",
    "policies-github",
    "policies-strongdm-comply",
    "docs-dify-en-zh/en",
    "docs-dify-en-zh/zh",
)
SETS: Final = ("cmrc2018", "drcd", "hotpotqa-200", "musique-200", "scifact", "xquad-en-zh")
# How many of its nearest neighbours say where a passage's surroundings lie.
NEIGHBOURS: Final = 20
_WEIGHT: Final = 450
_SENTENCES: Final = 2
_BLOCK: Final = 2048
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
_MARKUP = re.compile(r"<[^>\n]{1,200}>|!?\[([^\]\n]*)\]\([^)\n]*\)|[*`]{1,3}")
_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)
_HEADING = re.compile(r"^#{1,4}\s+(.+?)\s*#*$")
_SENTENCE = re.compile(r"(?<=[。！？])|(?<=[.!?])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Bags:
    """Terms of many texts one after the other: those of text i are `[starts[i], starts[i + 1])` of both arrays."""

    starts: Integers
    terms: NDArray[np.int32]
    counts: Floats

    @classmethod
    def of(cls, counted: Iterable[Mapping[str, int]]) -> "Bags":
        """From term -> count of each text."""
        starts, terms, counts = [0], list[int](), list[int]()
        for bag in counted:
            terms.extend(map(lexical.term_number, bag))
            counts.extend(bag.values())
            starts.append(len(terms))
        return cls(np.array(starts), np.array(terms, np.int32), np.array(counts, np.float32))

    def totals(self) -> Floats:
        """How many terms each text has."""
        return np.diff(np.concatenate([[0.0], np.cumsum(self.counts, dtype=np.float64)])[self.starts]).astype(
            np.float32
        )


@dataclass(frozen=True, slots=True)
class Pool:
    """What is resampled. Pages, passages and sentences are numbered in reading order, Chinese ones after all others.

    `page_of` says which page a passage with a vector is of, `first` and `last` (not included) which its sentences are;
    `centres` are the vectors of passages, `neighbours` of shape (passages, NEIGHBOURS) says which lie nearest to each.
    `headings` holds the heading paths of all pages, those of page i from `heading_starts[i]`. `english_sentences` and
    `english_centres` count those before the Chinese ones.
    """

    sentences: Sequence[str]
    bags: Bags
    titles: Sequence[str]
    title_bags: Bags
    headings: Sequence[tuple[str, ...]]
    heading_starts: Integers
    heading_bags: Bags
    page_of: Integers
    first: Integers
    last: Integers
    centres: Floats
    neighbours: Integers
    english_sentences: int
    english_centres: int
    questions: Mapping[Language, Sequence[str]]


@dataclass(frozen=True, slots=True)
class _Page:
    title: str
    headings: list[tuple[str, ...]]
    sentences: list[str]
    language: Language


async def load(data: Path, cache: Path) -> Pool:
    """The pool of the corpora below `data`, from `cache` where it was made before."""
    kept = cache / "pool.pickle"
    if not kept.exists():
        made = await _make(data)
        partial = kept.with_suffix(".part")
        partial.write_bytes(pickle.dumps(made, protocol=5))
        partial.rename(kept)
    found: Pool = pickle.loads(kept.read_bytes())
    return found


async def embed(texts: Sequence[str], *, queries: bool) -> Floats:
    """Unit vectors of the embedded embedder, (len(texts), dimension)."""
    settings = Settings.load()
    embedder = await open_embedder(settings, Policy.of(settings))
    try:
        if queries:
            return np.stack([await embedder.embed_query(text) for text in texts])
        parts = [await embedder.embed_passages(texts[at : at + 64]) for at in range(0, len(texts), 64)]
        return np.concatenate(parts)
    finally:
        await embedder.close()


async def _make(data: Path) -> Pool:
    pages = sorted((page for page in _pages(data) if page.sentences), key=lambda page: page.language)
    sentences = [sentence for page in pages for sentence in page.sentences]
    passages = [one for one in _passages(pages) if one[2] - one[1] >= _SENTENCES]
    texts = [pages[page].title + "\n" + " ".join(sentences[first:last]) for page, first, last in passages]
    centres = await embed(texts, queries=False)
    page_of, first, last = np.array(passages).T
    headings = [path for page in pages for path in page.headings]
    return Pool(
        sentences=sentences,
        bags=await asyncio.to_thread(Bags.of, (lexical.fields(one, "", ()).text for one in sentences)),
        titles=[page.title for page in pages],
        title_bags=Bags.of(lexical.fields("", page.title, ()).title for page in pages),
        headings=headings,
        heading_starts=np.cumsum([0, *(len(page.headings) for page in pages)]),
        heading_bags=Bags.of(lexical.fields("", "", path).headings for path in headings),
        page_of=page_of,
        first=first,
        last=last,
        centres=centres,
        neighbours=await asyncio.to_thread(nearest, centres),
        english_sentences=sum(len(page.sentences) for page in pages if page.language == "en"),
        english_centres=int(sum(pages[page].language == "en" for page in page_of)),
        questions=_questions(data),
    )


def _pages(data: Path) -> Iterator[_Page]:
    for folder in PAGES:
        for path in sorted((data / folder).rglob("*.md*")):
            yield _markdown(path.read_text(encoding="utf-8", errors="replace"), path.stem)
    for name in SETS:
        for row in _rows(data / "retrieval-sets" / name / "corpus.jsonl"):
            sentences = list(_sentences(row["text"]))
            yield _Page(row["title"].replace("_", " "), [()], sentences, language_of(" ".join(sentences)))


def _markdown(source: str, name: str) -> _Page:
    titled = _TITLE.search(source)
    title = titled[1] if titled else name
    headings: list[tuple[str, ...]] = []
    sentences: list[str] = []
    for line in _MARKUP.sub(r"\1", _FENCE.sub("", _FRONT_MATTER.sub("", source))).splitlines():
        heading = _HEADING.match(line)
        if heading:
            headings.append((heading[1],))
        else:
            sentences.extend(_sentences(line.strip(" -*|>")))
    return _Page(title, headings or [()], sentences, language_of(" ".join(sentences)))


def _sentences(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        plain = " ".join(sentence.replace("\x00", "").split())
        if 12 <= len(plain) <= 400:
            yield plain


def _passages(pages: Sequence[_Page]) -> Iterator[tuple[int, int, int]]:
    """Page, first sentence, last sentence (not included) of passages of about the size of a chunk."""
    at = 0
    for number, page in enumerate(pages):
        first, weight = at, 0
        for sentence in page.sentences:
            at += 1
            weight += len(sentence) * (2 if page.language == "zh" else 1)
            if weight >= _WEIGHT:
                yield number, first, at
                first, weight = at, 0


def nearest(vectors: Floats) -> Integers:
    """Which others of these unit vectors lie nearest to each, in no order: (len(vectors), NEIGHBOURS or all)."""
    parts, count = [], min(NEIGHBOURS, len(vectors) - 1)
    for at in range(0, len(vectors), _BLOCK):
        alike = vectors[at : at + _BLOCK] @ vectors.T
        alike[np.arange(len(alike)), at + np.arange(len(alike))] = -1
        parts.append(np.argpartition(-alike, count, axis=1)[:, :count])
    return np.concatenate(parts)


def _questions(data: Path) -> dict[Language, list[str]]:
    found: dict[Language, list[str]] = {"en": [], "zh": []}
    for name in SETS:
        for row in _rows(data / "retrieval-sets" / name / "queries.jsonl"):
            found[language_of(row["text"])].append(row["text"])
    return found


def _rows(path: Path) -> Iterator[dict[str, str]]:
    return (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def common_words(pool: Pool, count: int) -> list[str]:
    """The most frequent English words of the pool that a query keeps."""
    words = Counter(
        word
        for sentence in pool.sentences[: pool.english_sentences]
        for word in re.findall("[a-z]{3,}", sentence.lower())
    )
    return [word for word, _ in words.most_common(4 * count) if lexical.query_terms(word)][:count]
