"""Words for BM25: pure functions from text to weighted terms.

English words are stemmed (Snowball) and joined to pairs of neighbours; Chinese gives single characters and bigrams;
numbers, and codes such as `HR-12`, `ISO 27001` or `差旅-03`, stay whole beside their parts. Everything is indexed;
question and function words are dropped from the query only. Three fields are summed before saturation (BM25F,
Robertson, Zaragoza and Taylor, 2004); the inverse document frequency is applied when asking, from live counts.
"""

import hashlib
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from math import log
from typing import Final, Literal

import snowballstemmer

from core.text import fold
from storage.stopwords import CHINESE, CHINESE_KEPT, ENGLISH

K1: Final = 1.2
# Dimension of the stored vectors: the most that pgvector's sparsevec has.
DIMENSION: Final = 1_000_000_000
# Terms whose numbers leave the same remainder share lists of the chunks that hold them.
LISTS: Final = 8192
# What a synonym's term counts, beside 1 for a typed one. Less gains less once fused, more loses by words alone
# (docs/benchmarks.md).
SYNONYM: Final = 0.7


@dataclass(frozen=True, slots=True)
class Lengths:
    """Numbers of terms by field; of one chunk, or on average."""

    text: float
    title: float
    headings: float


@dataclass(frozen=True, slots=True)
class Fields:
    """The terms of one chunk by field."""

    text: Counter[str]
    title: Counter[str]
    headings: Counter[str]

    @property
    def lengths(self) -> Lengths:
        return Lengths(self.text.total(), self.title.total(), self.headings.total())


# What a tenant's averages start from, until its own differ by more than a tenth.
USUAL: Final = Lengths(170.0, 8.0, 12.0)
# Weight and length normalisation (b) of each field.
_TEXT: Final = (1.0, 0.75)
_TITLE: Final = (2.0, 0.5)
_HEADINGS: Final = (1.0, 0.5)


def fields(text: str, title: str, heading_path: Sequence[str]) -> Fields:
    """The terms of a chunk, every one of them."""
    headings: Counter[str] = Counter()
    for heading in heading_path:
        headings.update(_counted(heading))
    return Fields(Counter(_terms(text)), Counter(_counted(title)), headings)


def weighted(chunk: Fields, averages: Lengths) -> dict[str, float]:
    """Term frequencies summed over the fields, each by its weight and the field's length."""
    total: dict[str, float] = {}
    for counts, average, (weight, b) in (
        (chunk.text, averages.text, _TEXT),
        (chunk.title, averages.title, _TITLE),
        (chunk.headings, averages.headings, _HEADINGS),
    ):
        scale = weight / (1 - b + b * counts.total() / max(average, 1.0))
        for term, count in counts.items():
            total[term] = total.get(term, 0.0) + count * scale
    return total


def document_terms(
    text: str, title: str, heading_path: Sequence[str], averages: Lengths = USUAL
) -> Mapping[str, float]:
    """Term -> weighted frequency of a chunk."""
    return weighted(fields(text, title, heading_path), averages)


def vector(terms: Mapping[str, float]) -> dict[int, float]:
    """Term number -> saturated BM25 weight, without idf: f (k1 + 1) / (f + k1)."""
    summed: dict[int, float] = {}
    for term, frequency in terms.items():
        number = term_number(term)
        summed[number] = summed.get(number, 0.0) + frequency
    return {number: f * (K1 + 1) / (f + K1) for number, f in summed.items()}


def query_terms(text: str) -> list[str]:
    """The terms to look for. Numbers and codes stand twice: they count double."""
    normal = unicodedata.normalize("NFKC", text)
    shouted = normal == normal.upper()
    return [term for term, strong in _query(normal, shouted) for _ in range(2 if strong else 1)]


def query_weights(text: str, synonyms: Sequence[str] = ()) -> dict[str, float]:
    """Term -> how often it counts in the query. What only `synonyms` add counts once, and less than what was typed."""
    typed = Counter(query_terms(text))
    added = {term for synonym in synonyms for term in query_terms(synonym)}
    return {**dict.fromkeys(sorted(added), SYNONYM), **typed}


def query_vector(text: str, synonyms: Sequence[str] = ()) -> dict[int, float]:
    """As `query_weights`, by term number."""
    summed: dict[int, float] = {}
    for term, weight in query_weights(text, synonyms).items():
        number = term_number(term)
        summed[number] = summed.get(number, 0.0) + weight
    return summed


def units(text: str) -> list[str]:
    """The least pieces of a text in order: stems of words, numbers, single Chinese characters."""
    found: list[str] = []
    for piece in _pieces(unicodedata.normalize("NFKC", text)):
        found += fold(piece.raw) if piece.kind == "han" else [piece.term]
    return found


def marked(text: str, terms: Collection[str]) -> list[tuple[str, bool]]:
    """A text in pieces, each with whether it is one of these terms, or part of one that is there.

    In its NFKC form where that has another length.
    """
    normal = unicodedata.normalize("NFKC", text)
    wanted, pieces = frozenset(terms), _pieces(normal)
    hit = bytearray(len(normal))
    for piece in pieces:
        runs = _runs(piece, wanted) if piece.kind == "han" else [(0, len(piece.raw))] if piece.term in wanted else []
        for start, end in runs:
            hit[piece.start + start : piece.start + end] = b"\1" * (end - start)
    for left, right in pairwise(pieces):
        joined = _join(left, right, normal[left.end : right.start])
        if joined is not None and joined[0] in wanted:
            hit[left.start : right.end] = b"\1" * (right.end - left.start)
    shown = text if len(text) == len(normal) else normal
    return [
        ("".join(char for char, _ in run), bool(is_hit))
        for is_hit, run in groupby(zip(shown, hit, strict=True), key=lambda pair: pair[1])
    ]


def rarity(chunks: int, n: int) -> float:
    """What a term weighs that so many of n chunks hold: the idf of BM25, above 0."""
    return log(1 + (n - chunks + 0.5) / (chunks + 0.5))


@lru_cache(maxsize=65536)
def term_number(term: str) -> int:
    """A stable number from 1 to 10^9 for a term.

    A hash, not a table: nothing to look up before a search, no row that all writers fight for, no vocabulary kept.
    Of a million terms about one in a thousand shares its number with another, which adds a stray match, no more.
    """
    digest = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (DIMENSION - 1) + 1


# --- text to pieces -------------------------------------------------------------------------------------------------

Kind = Literal["han", "number", "word"]

_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
_PIECE = re.compile(
    rf"(?P<han>[{_HAN}]+)|(?P<number>\d+(?:[.,]\d+)*)|(?P<word>(?:(?![{_HAN}])[^\W\d_])+(?:['’][a-z]{{1,2}}\b)?)"
)
_KINDS: Final[dict[str, Kind]] = {"han": "han", "number": "number", "word": "word"}
_CODE_GAPS: Final = frozenset({"", " ", "-", "_", "–", "‐", "/"})
# Neighbours across the end of a sentence, a cell or a line are no pair.
_PAIR_GAP = re.compile(r"[^.!?;:。！？；：|\n]{0,3}")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: Kind
    raw: str
    start: int
    end: int

    @property
    def plain(self) -> str:
        """The form before stemming: folded, without the possessive or thousands commas."""
        if self.kind == "number":
            return _THOUSANDS.sub("", self.raw)
        return re.split("['’]", fold(self.raw))[0]

    @property
    def term(self) -> str:
        return _stem(self.plain) if self.kind == "word" else self.plain


def _pieces(normal: str) -> list[_Piece]:
    return [_Piece(_KINDS[match.lastgroup or ""], match[0], *match.span()) for match in _PIECE.finditer(normal)]


def _terms(text: str) -> Iterator[str]:
    normal = unicodedata.normalize("NFKC", text)
    pieces = _pieces(normal)
    for piece in pieces:
        if piece.kind == "han":
            yield from _grams(fold(piece.raw))
        else:
            yield piece.term
    for left, right in pairwise(pieces):
        joined = _join(left, right, normal[left.end : right.start])
        if joined is not None:
            yield joined[0]


def _runs(piece: _Piece, wanted: Collection[str]) -> list[tuple[int, int]]:
    """Spans within a run of Chinese that are among the terms."""
    folded = fold(piece.raw)
    return [(at, at + n) for n in (1, 2) for at in range(len(folded) - n + 1) if folded[at : at + n] in wanted]


@lru_cache(maxsize=8192)
def _counted(short: str) -> tuple[str, ...]:
    return tuple(_terms(short))


def _grams(run: str) -> Iterator[str]:
    yield from run
    yield from (run[at : at + 2] for at in range(len(run) - 1))


def _join(left: _Piece, right: _Piece, gap: str) -> tuple[str, bool] | None:
    """The term that two neighbours make together, and whether it is a code; None when they make none."""
    if right.kind == "number" and gap in _CODE_GAPS:
        if left.kind == "word":
            return f"{left.plain}-{right.plain}", True
        if left.kind == "han" and gap not in ("", " "):
            return f"{fold(left.raw)[-2:]}-{right.plain}", True
    if left.kind == "number" and right.kind == "han" and gap in ("", " "):
        return f"{left.plain}{fold(right.raw)[0]}", False
    if "han" in (left.kind, right.kind) or not _PAIR_GAP.fullmatch(gap):
        return None
    return f"{left.term} {right.term}", False


# --- the query ------------------------------------------------------------------------------------------------------

_CHINESE_CUT = re.compile(
    "|".join(
        (
            f"(?P<kept>{'|'.join(map(re.escape, sorted(CHINESE_KEPT, key=len, reverse=True)))})",
            *map(re.escape, sorted(CHINESE, key=len, reverse=True)),
        )
    )
)


def _query(normal: str, shouted: bool) -> Iterator[tuple[str, bool]]:
    """Each term and whether it counts double."""
    pieces = _pieces(normal)
    kept = [piece.kind == "han" or not _dropped(piece, shouted) for piece in pieces]
    for piece, keep in zip(pieces, kept, strict=True):
        if piece.kind == "han":
            for run in _content(fold(piece.raw)):
                yield from ((gram, False) for gram in _grams(run))
        elif keep:
            yield piece.term, piece.kind == "number" or _capital(piece, shouted)
    for (left, keep_left), (right, keep_right) in pairwise(zip(pieces, kept, strict=True)):
        joined = _join(left, right, normal[left.end : right.start]) if keep_left and keep_right else None
        if joined is not None:
            yield joined


def _capital(piece: _Piece, shouted: bool) -> bool:
    return piece.kind == "word" and not shouted and len(piece.raw) > 1 and piece.raw.isupper()


def _dropped(piece: _Piece, shouted: bool) -> bool:
    # "IT" and "US" are departments and countries, "it" and "us" are not.
    return piece.kind == "word" and piece.plain in ENGLISH and not _capital(piece, shouted)


def _content(run: str) -> Iterator[str]:
    """What is left of a run of Chinese when question and function words are cut out of it."""
    start = 0
    for match in _CHINESE_CUT.finditer(run):
        if match["kept"] is None:
            if run[start : match.start()]:
                yield run[start : match.start()]
            start = match.end()
    if run[start:]:
        yield run[start:]


# The pure Python stemmer keeps the word in the object: one at a time.
_stemming = threading.Lock()


@lru_cache(maxsize=1)
def _stemmer() -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer("english")


@lru_cache(maxsize=131072)
def _stem(word: str) -> str:
    with _stemming:
        return str(_stemmer().stemWord(word))
